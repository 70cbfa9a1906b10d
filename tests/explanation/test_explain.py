# SPDX-License-Identifier: Apache-2.0
"""tq.explain: the last step of every explained element is the tensor's own element, in each numerics."""

import differential
import generators
import numpy as np
import pytest
from commands import fine
from models import build_model, operator, tensor

import tq
from tq.explanation.element import _OPERATORS
from tq.explanation.node import RANGES

NUMERICS = ("reference", "optimized", "xnnpack")
ROWS = [row for name in _OPERATORS for row in generators.rows(name)]


def run_case(case, numerics, **options):
    """An interpreter that has run a case with all tensors preserved; None where tq refuses the model."""
    interpreter = tq.Interpreter(
        model_content=case.model, experimental_preserve_all_tensors=True, numerics=numerics, num_threads=1, **options
    )
    try:
        interpreter.allocate_tensors()
        for index, value in case.runs[-1].items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
    except (tq.Error, ValueError):
        return None
    return interpreter


def explained(interpreter, name, rng, count):
    """How many random elements of the operators `name` are explained, each to the bit."""
    found = 0
    for op in interpreter.model.subgraphs[0].operators:
        values = np.asarray(interpreter.get_tensor(op.output_indices[0])) if op.name == name else np.zeros(0)
        for index in rng.integers(values.size, size=count) if values.size else ():
            try:
                explanation = tq.explain(interpreter, op.output_indices[0], int(index))
            except ValueError as error:
                assert "explained are" in str(error) or "has no scale" in str(error)
                continue
            assert explanation.code == values.reshape(-1)[index]
            assert explanation.steps[-1].value == explanation.value
            found += 1
    return found


@pytest.mark.parametrize("name", [name for name in _OPERATORS if name != "READ_VARIABLE"])  # drawn of no 8 bits
def test_random_elements_are_explained_to_the_bit_in_each_numerics(name):
    rng, found = np.random.default_rng(1), 0
    for row in generators.rows(name):
        for numerics in NUMERICS:
            interpreter = run_case(differential.draw(*row, 5, 0), numerics)
            found += explained(interpreter, name, rng, 2) if interpreter else 0
    assert found >= 6


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_thousands_of_elements_are_explained_to_the_bit(name, kind):
    rng = np.random.default_rng(2)
    for number in range(60):
        for numerics in NUMERICS:
            interpreter = run_case(differential.draw(name, kind, 6, number), numerics)
            if interpreter:
                explained(interpreter, name, rng, 8)


def convolution(bias=5):
    """A convolution of 1 x 1 over two channels: 3 * 7 - 2 * 4, less the zero point, and a bias."""
    return build_model(
        [
            tensor("x", [1, 1, 1, 2], "INT8", scale=0.5, zero_point=1),
            tensor("w", [1, 1, 1, 2], "INT8", np.array([7, -2], np.int8).reshape(1, 1, 1, 2), scale=[0.25]),
            tensor("b", [1], "INT32", np.array([bias], np.int32), scale=[0.125]),
            tensor("y", [1, 1, 1, 1], "INT8", scale=1.0, zero_point=-3),
        ],
        [operator("CONV_2D", [0, 1, 2], [3], padding="VALID", stride_h=1, stride_w=1)],
        [0],
        [3],
    )


def invoked(model, **options):
    interpreter = tq.Interpreter(model_content=model, experimental_preserve_all_tensors=True, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([[[[3, 4]]]], np.int8))
    interpreter.invoke()
    return interpreter


def test_the_parts_of_a_sum_are_named():
    explanation = tq.explain(invoked(convolution(), numerics="reference"), "y", (0, 0, 0, 0))
    parts = {step.name: step.value for step in explanation.steps}
    assert parts["sum(qx qw)"] == 3 * 7 - 4 * 2 and parts["-zx sum(qw)"] == -1 * 5 and parts["bias"] == 5
    assert explanation.accumulator == parts["accumulator"] == 13
    assert parts["M0"] * 2.0 ** (parts["n"] - 31) == 0.125
    assert (explanation.code, explanation.value) == (-1, 2.0)  # 13 / 8 rounded, less 3
    assert explanation.as_dict()["steps"][0]["name"] == "sum(qx qw)"
    assert "accumulator" in str(explanation) and "<table>" in explanation._repr_html_()


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize(("name", "scale"), [("LOGISTIC", 2.0**-12), ("TANH", 2.0**-12), ("TANH", 2.0**-11)])
def test_int16_at_powers_of_two(name, scale, numerics):
    """Where the optimized kernels have a function in fixed point in place of a table."""
    values = np.int16([*range(-32768, 32768, 331), -32768, 32767, -1, 0, 1, -16384, 16384])
    b = tq.ModelBuilder()
    x = b.input("x", [len(values)], "int16", scale=scale)
    y = b.tensor("y", [len(values)], "int16", scale=2.0**-15)
    b.operator(name, [x], [y])
    b.output(y)
    run = tq.Interpreter(model_content=b.to_bytes(), experimental_preserve_all_tensors=True, numerics=numerics)
    run.allocate_tensors()
    run.set_tensor(0, values)
    run.invoke()
    found = run.get_tensor(1)
    for index, code in enumerate(found):
        assert tq.explain(run, "y", index).code == code
    assert ("e" in {step.name for step in tq.explain(run, "y", 0).steps}) == (numerics != "reference")


@pytest.mark.parametrize("numerics", NUMERICS)
def test_shuffled_weights_whose_sums_of_two_products_wrap(numerics):
    b = tq.ModelBuilder()
    x = b.input("x", [1, 16], "uint8", scale=1.0, zero_point=128)
    w = b.constant("w", np.full((4, 16), 0x80, np.uint8), scale=1.0, zero_point=128)
    y = b.tensor("y", [1, 4], "int16", scale=64.0)
    reordered = b.tensor("reordered", [1, 16], "uint8")
    b.operator("FULLY_CONNECTED", [x, w], [y, reordered], weights_format="SHUFFLED4x16INT8", version=2)
    b.output(y)
    run = tq.Interpreter(model_content=b.to_bytes(), experimental_preserve_all_tensors=True, numerics=numerics)
    run.allocate_tensors()
    run.set_tensor(0, np.zeros((1, 16), np.uint8))
    run.invoke()
    sum = 16 * 128 * 128 * (1 if numerics == "reference" else -1)
    assert tq.explain(run, "y", 3).code == run.get_tensor(y.index)[0, 3] == sum // 64
    with pytest.raises(ValueError, match="a further output of operator 0"):
        tq.explain(run, "reordered", 0)


@pytest.mark.parametrize("name", ["RELU", "LEAKY_RELU", "HARD_SWISH", "RESIZE_BILINEAR"])
def test_single_rounding_is_explained_too(name):
    rng, found = np.random.default_rng(3), 0
    for row in generators.rows(name):
        for number in range(3):
            run = run_case(differential.draw(*row, 8, number), "reference", rounding="single")
            found += explained(run, name, rng, 8) if run else 0
    assert found >= 40


def test_the_float_models_value_stands_beside():
    b = tq.ModelBuilder()
    x = b.input("x", [1, 1, 1, 2])
    y = b.tensor("y", [1, 1, 1, 1])
    w = b.constant("w", np.array([1.75, -0.5], np.float32).reshape(1, 1, 1, 2))
    b.operator("CONV_2D", [x, w, b.constant("b", np.array([0.6], np.float32))], [y], stride_h=1, stride_w=1)
    b.output(y)
    real = tq.Interpreter(model_content=b.to_bytes(), experimental_preserve_all_tensors=True)
    real.allocate_tensors()
    real.set_tensor(0, np.array([[[[1.0, 1.5]]]], np.float32))
    real.invoke()
    explanation = tq.explain(invoked(convolution()), "y", 0, float_run=real)
    assert explanation.real == pytest.approx(1.6)
    assert sum(list(explanation.errors.values())[1:]) == pytest.approx(explanation.value - explanation.real)
    errors = {step.name: step.error for step in explanation.steps if step.error is not None}
    assert errors == {
        "accumulator": pytest.approx(explanation.accumulator * 0.125 - explanation.real),
        "rounded": pytest.approx(explanation.value - explanation.real),
        "quantized value": pytest.approx(explanation.value - explanation.real),
        "real value": pytest.approx(explanation.value - explanation.real),
    }
    assert "stands for" in str(explanation) and "stands for" in explanation._repr_html_()


@pytest.mark.parametrize(
    ("tensor_of", "index", "error", "words"),
    [
        ("z", 0, KeyError, "no tensor is called 'z'"),
        (9, 0, IndexError, "there is no tensor 9"),
        ("w", 0, ValueError, "a constant"),
        ("x", 0, ValueError, "no operator's output"),
        ("y", 1, IndexError, "outside of the tensor's 1 elements"),
        ("y", (0, 0), IndexError, "2 indices were given"),
        ("y", (0, 0, 0, 1), IndexError, "outside of the shape"),
    ],
)
def test_what_cannot_be_explained_is_named(tensor_of, index, error, words):
    with pytest.raises(error, match=words):
        tq.explain(invoked(convolution()), tensor_of, index)


def test_an_index_may_be_an_array_and_a_run_must_be_one():
    run = invoked(convolution())
    assert tq.explain(run, "y", np.array([0, 0, 0, 0])) == tq.explain(run, "y", 0)
    with pytest.raises(TypeError, match=r"run is a str; it must be a tq\.Interpreter"):
        tq.explain("m.tflite", "y", 0)
    with pytest.raises(TypeError, match=r"float_run is a bytes; it must be a tq\.Interpreter"):
        tq.explain(run, "y", 0, float_run=b"")


def test_operators_and_types_that_are_not_explained_are_named():
    model = build_model(
        [tensor("x", [2], "INT8", scale=1.0), tensor("y", [2], "INT8", scale=1.0)],
        [operator("NEG", [0], [1])],
        [0],
        [1],
    )
    interpreter = tq.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.invoke()
    with pytest.raises(ValueError, match=r"NEG.* is not explained; explained are CONV_2D"):
        tq.explain(interpreter, "y", 0)
    assert set(RANGES) == {"INT8", "UINT8", "INT16"}


def test_scales_of_blocks_are_not_explained():
    b = tq.ModelBuilder()
    x, scales = b.input("x", [1, 32], "int8", scale=0.5), b.constant("scales", np.full((2, 1), 0.5, np.float16))
    w = b.constant("w", np.ones((2, 32), np.int8), scale=0.25)
    w.quantization.details = {
        "type": "BlockwiseQuantization", "scales": scales.index, "zero_points": -1, "block_size": 32
    }  # fmt: skip
    b.operator("FULLY_CONNECTED", [x, w, None], [b.tensor("y", [1, 2], "int8", scale=3.0)])
    b.output("y")
    interpreter = tq.Interpreter(model_content=b.to_bytes(), experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.invoke()
    with pytest.raises(ValueError, match=r"tensor 2 .'w'. has a scale for each block"):
        tq.explain(interpreter, "y", 0)


def test_the_command_explains_an_element(run, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(convolution())
    out = fine(run("explain", path, "y", "0,0,0,0", "--seed", "3"))
    assert "accumulator" in out and "quantized value" in out
    assert '"accumulator"' in fine(run("explain", path, "3", "0", "--json"))
    assert "CONV_2D, reference, single rounding" in fine(run("explain", path, "y", "0", "--rounding", "single"))
    real = tmp_path / "float.tflite"
    real.write_bytes(tq.dequantize_model(convolution()))
    out = fine(run("explain", path, "y", "0", "--float", real))
    assert "stands for" in out and "of that by rounding to the output's steps alone" in out


def test_the_float_models_value_is_found_behind_a_dequantize_and_before_a_quantize():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 4]), b.tensor("y", [1, 4])
    b.operator("LOGISTIC", [x], [y])
    b.output(y)
    source = b.to_bytes()
    sample = np.linspace(-2, 2, 4, dtype=np.float32).reshape(1, 4)
    runs = []
    for model in (source, tq.quantize_model(source, "int8", calibration=[{"x": sample}])):
        runs.append(tq.Interpreter(model_content=bytes(model), experimental_preserve_all_tensors=True))
        runs[-1].allocate_tensors()
        runs[-1].set_tensor(runs[-1].get_input_details()[0]["index"], sample)
        runs[-1].invoke()
    real, quantized = runs
    operators = quantized.model.subgraphs[0].operators
    assert [op.name for op in operators] == ["QUANTIZE", "LOGISTIC", "DEQUANTIZE"]
    for op, values in zip(operators, (sample, real.get_tensor(1)), strict=False):
        explanation = tq.explain(quantized, op.outputs[0].index, 3, float_run=real)
        assert explanation.real == values[0, 3] and op.outputs[0].name not in ("x", "y")


@pytest.mark.parametrize("kind", ["int32-int8", "int32-int16"])
def test_accumulators_that_are_quantized_are_explained(kind):
    rng, found = np.random.default_rng(4), 0
    for number in range(4):
        interpreter = run_case(differential.draw("QUANTIZE", kind, 9, number), "reference")
        found += explained(interpreter, "QUANTIZE", rng, 3) if interpreter else 0
    assert found >= 6


def test_a_variable_that_is_read_is_explained_by_its_assignment_or_as_an_invoke_before_left_it():
    parameters = {"scale": 0.5, "zero_point": 3}
    b = tq.ModelBuilder()
    x = b.input("x", [4], "int8", **parameters)
    handles = [b.tensor(name, [], "resource") for name in ("early", "late")]
    y, z = (b.tensor(name, [4], "int8", **parameters) for name in ("y", "z"))
    for handle in handles:
        b.operator("VAR_HANDLE", [], [handle], container="box", shared_name="v")
    b.operator("ASSIGN_VARIABLE", [handles[0], x], [])
    b.operator("READ_VARIABLE", [handles[1]], [y])
    b.operator("ADD", [y, x], [z], version=2)
    b.operator("ASSIGN_VARIABLE", [handles[0], z], [])
    b.output(z)
    run = tq.Interpreter(model_content=b.to_bytes(), experimental_preserve_all_tensors=True)
    run.allocate_tensors()
    run.set_tensor(0, np.int8([5, -6, 7, 8]))
    run.invoke()
    explanation = tq.explain(run, "y", 1)
    assert explanation.code == -6 and explanation.value == -4.5
    assert "variable 'box/v', assigned by operator 2 from 'x'" in str(explanation)
