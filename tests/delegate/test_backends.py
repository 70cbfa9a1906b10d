# SPDX-License-Identifier: Apache-2.0
"""Which of LiteRT's kernels computes a node: tq's prediction against what its XNNPACK delegate really takes."""

import json
import re
from pathlib import Path

import differential
import generators
import numpy as np
import oracle
import pytest
from generators.draft import Draft

import tq
from tq.cli import arguments as cli

DEFINITIONS = (Path(__file__).parents[2] / "src" / "delegate" / "backends.def").read_text(encoding="utf-8")
DEFINITIONS = re.sub(r'"\s+"', "", DEFINITIONS)
TAKEN = set(re.findall(r"^(?:TAKES|UNARY|BINARY)\((\w+),", DEFINITIONS, re.M))
CONDITION_ROWS = re.findall(r'^CONDITION\((\w+), "(.*)"\)', DEFINITIONS, re.M)
CONDITIONS = {name: f"XNNPACK needs {text}" for name, text in CONDITION_ROWS}
FAILING_ROWS = re.findall(r"^FAILS\((\w+), (\w+), (\w+)\)", DEFINITIONS, re.M)
ASKED_ROWS = re.findall(r"^FAILS_ASKED\((\w+), (\w+)\)", DEFINITIONS, re.M)
BUILTIN_ROWS = [row for row in FAILING_ROWS if row[0] != "CUSTOM"]
LITERT_FAILURES = dict(re.findall(r'^FAILURE\((\w+), "(.*)"\)', DEFINITIONS, re.M))
ROWS = [row for row in generators.rows() if row[0] in {*TAKEN, *generators.GRAPHS}]
TAKES = "XNNPACK takes it"


def predicted(case):
    return tq.Interpreter(model_content=case.model, numerics="xnnpack").backends()


def check(cases):
    """Every node of models that LiteRT prepares; the rules that decided."""
    rules, count = set(), 0
    for case, taken in zip(cases, oracle.ask("delegated", (case.model for case in cases), 2), strict=True):
        rows = predicted(case)
        rules |= {(row.operator, row.rule) for row in rows}
        if isinstance(taken, oracle.Refusal | oracle.Abort):
            continue
        for item, row in zip(tq.Model(case.model).subgraphs[0].operators, rows, strict=True):
            if not item.output_indices or row.rule.startswith("computed once"):
                continue
            count += 1
            assert (item.output_indices[0] in taken) == (row.numerics == "xnnpack"), (str(case), row)
    return rules, count


def drawn(row, seed, count):
    return [differential.shaped(differential.draw(*row, seed, number)) for number in range(count)]


def test_predictions_are_what_the_delegate_takes():
    rules, count = check([case for row in ROWS for case in drawn(row, 3, 2)])
    assert count > 250
    assert {operator for operator, rule in rules if rule == TAKES} >= TAKEN


@pytest.mark.thorough
@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_hundreds_of_predictions(row):
    check(drawn(row, 4, 300))


# ---- models that LiteRT does not run ----


def codes(m, type="int8", shape=(1, 4, 4, 4), **parameters):
    parameters = {"scale": 0.1, "zero_point": 0, **parameters}
    return m.input(type, list(shape), **parameters)


def depthwise_without_bias(m, *_):
    x = codes(m)
    w = m.constant("int8", np.ones([1, 2, 2, 4]), scale=0.01, zero_point=0)
    m.operator(
        "DEPTHWISE_CONV_2D",
        [x, w],
        [m.output("int8", [1, 4, 4, 4], scale=0.2, zero_point=0)],
        depth_multiplier=1,
        stride_w=1,
        stride_h=1,
        version=3,
    )


def convolution(m, name="CONV_2D", w_scale=0.01, bias_scale=None, out_scale=0.2, x_scale=0.1):
    x = codes(m, scale=x_scale)
    many = np.size(w_scale) > 1
    deep = name == "DEPTHWISE_CONV_2D"
    shape = [1, 2, 2, 4] if deep else [4, 2, 2, 4]
    axis = {"quantized_dimension": 3 if deep else 0} if many else {}
    zero = [0] * np.size(w_scale) if many else 0
    w = m.constant("int8", np.ones(shape), scale=w_scale, zero_point=zero, **axis)
    bias_scale = np.float32(x_scale) * np.float32(w_scale) if bias_scale is None else bias_scale
    many = {"scale": bias_scale, "zero_point": [0] * np.size(bias_scale) if np.size(bias_scale) > 1 else 0}
    bias = m.constant("int32", np.zeros(4), **many)
    options = {"stride_w": 1, "stride_h": 1} | ({"depth_multiplier": 1} if deep else {})
    y = m.output("int8", [1, 4, 4, 4], scale=out_scale, zero_point=0)
    m.operator(name, [x, w, bias], [y], **options, version=3)


SCALES = [0.01, 0.02, 0.03, 0.04]


def one_bias_scale(name):
    return lambda m: convolution(m, name, SCALES, bias_scale=0.001)


def large_multiplier(name):
    return lambda m: convolution(m, name, w_scale=100.0, x_scale=100.0, out_scale=1.0)


def large_layer(m):
    x = codes(m, shape=(2, 8), scale=100.0)
    w = m.constant("int8", np.ones([4, 8]), scale=100.0, zero_point=0)
    y = m.output("int8", [2, 4], scale=1.0, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, -1], [y], version=4)


def empty_matrices(m):
    a, b = m.input("float32", [2, 3, 0]), m.input("float32", [2, 0, 4])
    m.operator("BATCH_MATMUL", [a, b], [m.output("float32", [2, 3, 4])])
    m.fixed = True


def empty_rows(m):
    m.operator("SOFTMAX", [m.input("float32", [4, 2, 0])], [m.output("float32", [4, 2, 0])], beta=1.0)
    m.fixed = True


def unsigned_batches(m):
    a, b = (codes(m, "uint8", (2, 4, 4), zero_point=3) for _ in range(2))
    y = m.output("uint8", [2, 4, 4], scale=0.5, zero_point=3)
    m.operator("BATCH_MATMUL", [a, b], [y], version=3)


def many_bias_scales(name):
    return lambda m: convolution(m, name, bias_scale=[0.001] * 4)


def channel_zero_points(name):
    def draw(m):
        convolution(m, name, SCALES)
        m.tensors[2].fields["zero_point"] = [0, 1, 0, 0]  # the bias

    return draw


def layer(m, x, w_scale, zero_point):
    many = {"quantized_dimension": 0} if np.size(w_scale) > 1 else {}
    w = m.constant("int8", np.ones([4, 8]), scale=w_scale, zero_point=zero_point, **many)
    output = m.output(m.types[x], [2, 4], **m.parameters[x])
    m.operator("FULLY_CONNECTED", [x, w, -1], [output], version=9)


def zero_points_of_matrices(m):
    b = m.constant("int8", np.ones([8, 4]), scale=0.01, zero_point=3)
    m.operator("BATCH_MATMUL", [m.input("float32", [2, 8]), b], [m.output("float32", [2, 4])], version=4)


UNEQUAL = {  # options, constants, shapes of outputs
    "MAX_POOL_2D": ({"stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2}, [], [[1, 4, 4, 4]]),
    "PAD": ({}, [np.ones([4, 2], np.int32)], [[3, 6, 6, 6]]),
    "RESIZE_BILINEAR": ({}, [np.int32([8, 8])], [[1, 8, 8, 4]]),
    "SPACE_TO_DEPTH": ({"block_size": 2}, [], [[1, 2, 2, 16]]),
    "SPLIT": ({"num_splits": 2}, [np.int32(1)], [[1, 2, 4, 4]] * 2),
    "TRANSPOSE": ({}, [np.int32([3, 1, 2, 0])], [[4, 4, 4, 1]]),
}


def unequal(name):
    def draw(m):
        options, constants, shapes = UNEQUAL[name]
        inputs = [codes(m), *(m.constant("int32", values) for values in constants)]
        outputs = [m.output("int8", shape, scale=0.2, zero_point=0) for shape in shapes]
        m.operator(name, inputs[::-1] if name == "SPLIT" else inputs, outputs, **options, version=2)

    return draw


def large_factors(m):
    b = m.constant("int8", np.ones([4, 4]), scale=16.0, zero_point=0)
    y = m.output("int8", [2, 4], scale=1.0, zero_point=0)
    m.operator("BATCH_MATMUL", [codes(m, shape=(2, 4), scale=16.0), b], [y], version=3)


def unsigned_layer(weights_format="DEFAULT"):
    """UINT8 to INT16, without a bias."""

    def draw(m, *_):
        x = m.input("uint8", [1, 32], scale=0.05, zero_point=7)
        w = m.constant("uint8", m.integers("uint8", [8, 32], 0, 255), scale=0.01, zero_point=128)
        y = m.output("int16", [1, 8], scale=0.001, zero_point=0)
        spare = [m.output("uint8", [1, 32], scale=None)] if weights_format != "DEFAULT" else []
        m.operator("FULLY_CONNECTED", [x, w], [y, *spare], weights_format=weights_format, version=2)

    return draw


MODELS = {
    ("FULLY_CONNECTED", "no_shuffled_bias"): unsigned_layer("SHUFFLED4x16INT8"),
    ("FULLY_CONNECTED", "no_wide_bias"): unsigned_layer(),
    **{
        ("CONV_2D", name): made("CONV_2D")
        for name, made in (("many_bias_scales", many_bias_scales), ("channel_zero_points", channel_zero_points))
    },
    **{
        ("DEPTHWISE_CONV_2D", name): made("DEPTHWISE_CONV_2D")
        for name, made in (("many_bias_scales", many_bias_scales), ("channel_zero_points", channel_zero_points))
    },
    ("FULLY_CONNECTED", "channel_zero_points"): lambda m: layer(m, codes(m, shape=(2, 8)), SCALES, [0, 1, 0, 0]),
    ("FULLY_CONNECTED", "float_zero_points"): lambda m: layer(m, m.input("float32", [2, 8]), 0.01, 3),
    ("BATCH_MATMUL", "float_zero_points"): zero_points_of_matrices,
    **{(name, "unequal_quantization"): unequal(name) for name in UNEQUAL},
    ("DEPTHWISE_CONV_2D", "no_bias"): depthwise_without_bias,
    ("CONV_2D", "one_bias_scale"): one_bias_scale("CONV_2D"),
    ("DEPTHWISE_CONV_2D", "one_bias_scale"): one_bias_scale("DEPTHWISE_CONV_2D"),
    ("CONV_2D", "large_multiplier"): large_multiplier("CONV_2D"),
    ("DEPTHWISE_CONV_2D", "large_multiplier"): large_multiplier("DEPTHWISE_CONV_2D"),
    ("FULLY_CONNECTED", "large_multiplier"): large_layer,
    ("BATCH_MATMUL", "uint8_matrices"): unsigned_batches,
    ("BATCH_MATMUL", "large_factors"): large_factors,
    ("BATCH_MATMUL", "empty_matrices"): empty_matrices,
    ("SOFTMAX", "empty_rows"): empty_rows,
}


def asked(case, resolver):
    wanted = differential.compared(tq.Model(case.model))
    (answer,) = oracle.ask("tensors", [differential.question(case.model, resolver, case.runs, None, wanted)])
    return answer


@pytest.mark.parametrize("failure", [f for f in BUILTIN_ROWS if f[2] != "no_kernel"], ids="-".join)
def test_what_litert_does_not_run(failure):
    operator, numerics, failure = failure
    m = Draft(1)
    MODELS[operator, failure](m)
    case = m.case()
    name = numerics.lower()
    (row,) = tq.Interpreter(model_content=case.model, numerics=name).backends()
    assert row.litert == LITERT_FAILURES[failure] and row.numerics == name
    answer = asked(case, generators.NUMERICS[name])
    assert isinstance(answer, oracle.Abort if "ends" in row.litert else oracle.Refusal), answer
    if failure != "uint8_matrices":  # which tq has no product for either
        assert isinstance(asked(case, differential.candidate_of(name)), list)


INVALID = [{"scale": s} for s in (0.0, 1e-39, -0.1, np.inf, np.nan)] + [{"zero_point": z} for z in (128, -129)]


def converted(m, broken, where):
    x, y = codes(m), m.output("int8", [1, 4, 4, 4], scale=0.2, zero_point=0)
    m.operator("QUANTIZE", [x], [y], version=2)
    m.tensors[(x, y)[where]].fields.update(broken)


def multiplied(m, broken, where):
    a, b = codes(m, shape=(2, 4, 4)), codes(m, shape=(2, 4, 4))
    m.operator("BATCH_MATMUL", [a, b], [m.output("int8", [2, 4, 4], scale=0.5, zero_point=0)], version=3)
    m.tensors[(a, b)[where]].fields.update(broken)


@pytest.mark.parametrize("broken", INVALID, ids=str)
@pytest.mark.parametrize(
    ("draw", "where", "failure"),
    [
        (converted, 0, "invalid_conversion"),
        (converted, 1, "invalid_conversion"),
        (multiplied, 0, "invalid_factor"),
        (multiplied, 1, None),
    ],
)
def test_operators_at_whose_question_the_delegate_dies(draw, where, failure, broken):
    """Whatever it would answer; the optimized kernels by themselves live."""
    m = Draft(1)
    m.fixed = True
    draw(m, broken, where)
    case = m.case()
    (row,) = predicted(case)
    assert row.litert == (failure and LITERT_FAILURES[failure])
    assert isinstance(asked(case, "BUILTIN"), oracle.Abort) == (failure is not None)
    (alone,) = tq.Interpreter(model_content=case.model, numerics="optimized").backends()
    assert alone.litert is None
    for finding in tq.check(case.model):
        assert (finding.kernels["xnnpack"] == "dies") == (failure is not None), finding


def test_every_such_operator_is_asked():
    assert sorted(ASKED_ROWS) == [("BATCH_MATMUL", "invalid_factor"), ("QUANTIZE", "invalid_conversion")]


@pytest.mark.parametrize("operator", [f[0] for f in BUILTIN_ROWS if f[2] == "no_kernel"])
def test_what_has_no_reference_kernel(operator):
    row = next(row for row in generators.rows() if row[0] == operator)
    case = differential.draw(*row, 1, 0)
    rows = tq.Interpreter(model_content=case.model, numerics="reference").backends()
    assert LITERT_FAILURES["no_kernel"] in {row.litert for row in rows}
    assert isinstance(asked(case, "BUILTIN_REF"), oracle.Refusal)


@pytest.mark.parametrize("name", generators.NUMERICS)
def test_experts_run_by_the_delegate_alone(name):
    case = differential.draw("moe", "hybrid", 1, 0)
    (row,) = tq.Interpreter(model_content=case.model, numerics=name).backends()
    assert row.numerics == name and row.litert == (None if name == "xnnpack" else LITERT_FAILURES["only_delegate"])
    assert isinstance(asked(case, generators.NUMERICS[name]), list if name == "xnnpack" else oracle.Refusal)
    assert isinstance(asked(case, differential.candidate_of(name)), list)


@pytest.mark.parametrize("scale", [0.0, 1e-39])
def test_scales_that_xnnpack_cannot_describe(scale):
    m = Draft(1)
    x = codes(m, scale=scale)
    m.operator("TANH", [x], [m.output("int8", [1, 4, 4, 4], scale=1 / 128, zero_point=0)])
    (row,) = predicted(m.case())
    assert row.numerics == "xnnpack" and row.litert == LITERT_FAILURES["invalid_quantization"]
    assert isinstance(asked(m.case(), "BUILTIN"), oracle.Refusal)


@pytest.mark.parametrize("reader", [None, "ADD", "GATHER"])
def test_unpacked_constants_that_are_outputs(reader):
    m = Draft(1)
    m.fixed = True
    y = m.output("float32", [16])
    m.operator("DEQUANTIZE", [m.constant("int8", np.arange(1, 17), scale=0.5, zero_point=0)], [y], version=2)
    if reader == "ADD":
        m.operator(reader, [m.input("float32", [16]), y], [m.output("float32", [16])])
    elif reader == "GATHER":  # which XNNPACK refuses
        m.operator(reader, [y, m.input("int32", [2], [0, 3], scale=None)], [m.output("float32", [2])])
    case = m.case()
    row = predicted(case)[0]
    theirs = asked(case, "BUILTIN")
    mine = asked(case, "TQ xnnpack")[0][y]
    assert (mine == np.arange(1, 17) / 2).all()
    written = isinstance(theirs, list) and (theirs[0][y] == mine).all()
    assert written == (row.litert is None) == (reader == "GATHER")


def test_more_dimensions_than_xnnpack_has():
    m = Draft(1)
    x, axis = m.input("float32", [1, 2, 1, 2, 1, 2, 4]), m.constant("int32", [6])
    m.operator("SUM", [x, axis], [m.output("float32", [1, 2, 1, 2, 1, 2])], version=2)
    m.fixed = True
    (row,) = predicted(m.case())
    assert row.numerics == "xnnpack" and row.litert == LITERT_FAILURES["many_dimensions"]
    assert isinstance(asked(m.case(), "BUILTIN"), oracle.Refusal)
    assert isinstance(asked(m.case(), "TQ xnnpack"), list)


# ---- how it is shown ----


def test_rows_and_table():
    m = Draft(1)
    x = codes(m)
    y = m.inner("int8", [1, 4, 4, 4], scale=0.1, zero_point=0)
    z = m.output("int8", [1, 4, 4, 4], scale=1 / 256, zero_point=-128)
    m.operator("ADD", [x, x], [y], version=2)
    m.operator("SOFTMAX", [y], [z], beta=1.0, version=2)
    content = m.case().model
    interpreter = tq.Interpreter(model_content=content, numerics="xnnpack")
    first, second = interpreter.backends()
    assert (first.index, first.operator, first.numerics, first.rule, first.litert) == (0, "ADD", "xnnpack", TAKES, None)
    assert (second.operator, second.numerics, second.rule) == ("SOFTMAX", "optimized", CONDITIONS["float_types"])
    text = str(interpreter.backends())
    assert "0 ADD" in text and CONDITIONS["float_types"] in text and "optimized: 1, xnnpack: 1" in text
    for name in ("reference", "optimized"):
        assert {row.numerics for row in tq.Interpreter(model_content=content, numerics=name).backends()} == {name}
    with pytest.raises(IndexError):
        interpreter.backends(1)


def test_command(tmp_path, capsys):
    case = differential.draw("GRAPH", "int8", 4, 0)
    path = tmp_path / "model.tflite"
    path.write_bytes(case.model)
    assert cli.main(["backends", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["operators"]
    assert [row["operator"] for row in rows] == [item.name for item in tq.Model(case.model).subgraphs[0].operators]
    assert {row["numerics"] for row in rows} == {"optimized", "xnnpack"}
    assert cli.main(["backends", str(path), "--numerics", "reference"]) == 0
    assert "xnnpack" not in capsys.readouterr().out
    assert cli.main(["backends", str(path), "--subgraph", "1"]) == 2


def test_run_command_takes_numerics(tmp_path, capsys):
    case = differential.draw("GRAPH", "int8", 4, 0)
    path = tmp_path / "model.tflite"
    path.write_bytes(case.model)
    texts = set()
    for name in cli.NUMERICS:
        assert cli.main(["run", str(path), "--numerics", name, "--all"]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) > 1
    assert cli.main(["profile", str(path), "--numerics", "xnnpack", "--runs", "1"]) == 0


def open_convolution():
    """A convolution whose file says 1 for every dimension of what it reads and writes, as open shapes are written."""
    draw, b = np.random.default_rng(0), tq.ModelBuilder()
    scales = (0.01 * np.arange(1, 17)).astype(np.float32)
    x = b.input("x", [1, 1, 1, 1], "int8", shape_signature=[-1, -1, -1, -1], scale=0.5, zero_point=3)
    w = draw.integers(-127, 128, (16, 1, 1, 8)).astype(np.int8)
    w = b.constant("w", w, scale=scales, quantized_dimension=0)
    bias = draw.integers(-100, 100, 16).astype(np.int32)
    bias = b.constant("bias", bias, scale=scales * np.float32(0.5), quantized_dimension=0)
    y = b.tensor("y", [1, 1, 1, 1], "int8", shape_signature=[-1, -1, -1, -1], scale=3.0, zero_point=-5)
    b.operator("CONV_2D", [x, w, bias], [y], padding="VALID", stride_h=1, stride_w=1)
    b.output(y)
    return b.to_bytes(), draw.integers(-128, 128, (4, 9, 9, 8)).astype(np.int8)


def test_backends_are_chosen_at_the_first_allocation():
    """LiteRT asks its delegate then: inputs that were resized before it have their new shapes, later ones do not."""
    model, x = open_convolution()
    questions = [
        (model, name, [{0: x}], {0: x.shape}, [3]) for name in ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    ]
    (theirs, optimized) = (answer[0][3] for answer in oracle.ask("tensors", questions))
    assert (theirs != optimized).any()
    for expected, too_late in ((theirs, False), (optimized, True)):
        made = tq.Interpreter(model_content=model)
        assert made.backends()[0].numerics == "optimized"
        if too_late:
            with pytest.raises(RuntimeError):
                made.allocate_tensors()
        made.resize_tensor_input(0, x.shape)
        assert made.backends()[0].numerics == ("optimized" if too_late else "xnnpack")
        made.allocate_tensors()
        made.set_tensor(0, x)
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(3), expected)
