# SPDX-License-Identifier: Apache-2.0
"""Interpreter(rounding="single"): the reference kernels as a build with TFLITE_SINGLE_ROUNDING has them.

The kernels were compared once with LiteRT's sources (revision f6745779) compiled with the flag: 266,593 values of ADD,
MUL, CONV_2D, UINT8 DEPTHWISE_CONV_2D, SOFTMAX, RESIZE_BILINEAR and L2_NORMALIZATION were equal.  Here the exact
formulas of tq.explain hold them.
"""

import differential
import generators
import numpy as np
import pytest
from commands import failed, fine
from models import build_model, operator, tensor

import tq
from tq.explanation.element import _OPERATORS


def tie():
    """A convolution whose sum, 7984 times 0.0014402704, is 12 rounded twice and 11 rounded once."""
    return build_model(
        [
            tensor("x", [1, 1, 1, 1], "INT8", scale=1.0),
            tensor("w", [1, 1, 1, 1], "INT8", np.int8([[[[0]]]]), scale=[0.0014402704]),
            tensor("b", [1], "INT32", np.int32([7984]), scale=[0.0014402704]),
            tensor("y", [1, 1, 1, 1], "INT8", scale=1.0),
        ],
        [operator("CONV_2D", [0, 1, 2], [3], padding="VALID", stride_h=1, stride_w=1)],
        [0],
        [3],
    )


def invoked(model, **options):
    interpreter = tq.Interpreter(model_content=model, experimental_preserve_all_tensors=True, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros((1, 1, 1, 1), np.int8))
    interpreter.invoke()
    return interpreter


def test_a_sum_between_two_values_rounds_once():
    single = invoked(tie(), rounding="single")
    assert invoked(tie(), numerics="reference", rounding="double").get_tensor(3) == 12
    assert invoked(tie(), numerics="reference").get_tensor(3) == 12
    assert single.get_tensor(3) == 11
    assert (single.numerics, single.rounding) == ("reference", "single") and "'single'" in repr(single)
    (row,) = single.backends()
    assert row.numerics == "reference" and "TFLITE_SINGLE_ROUNDING" in row.rule
    assert tq.explain(single, 3, 0).code == 11


@pytest.mark.parametrize("name", [name for name in _OPERATORS if name != "READ_VARIABLE"])  # drawn of no 8 bits
def test_elements_of_random_models_are_those_of_the_exact_formulas(name):
    rng, found = np.random.default_rng(1), 0
    for row in generators.rows(name):
        case = differential.draw(*row, 8, 0)
        interpreter = tq.Interpreter(
            model_content=case.model, experimental_preserve_all_tensors=True, rounding="single", num_threads=1
        )
        try:
            interpreter.allocate_tensors()
            for index, value in case.runs[-1].items():
                interpreter.set_tensor(index, value)
            interpreter.invoke()
        except (tq.Error, ValueError):
            continue
        for op in interpreter.model.subgraphs[0].operators:
            if op.name != name:
                continue
            values = np.asarray(interpreter.get_tensor(op.output_indices[0]))
            for index in rng.integers(values.size, size=3) if values.size else ():
                try:
                    explanation = tq.explain(interpreter, op.output_indices[0], int(index))
                except ValueError:  # of another type
                    continue
                assert explanation.code == values.reshape(-1)[index]
                found += 1
    assert found >= 3


def test_half_way_resized_values_go_up():
    """Below zero, where the other build rounds away from it."""
    model = build_model(
        [
            tensor("x", [1, 1, 2, 1], "INT8", scale=1.0),
            tensor("size", [2], "INT32", np.int32([1, 4])),
            tensor("y", [1, 1, 4, 1], "INT8", scale=1.0),
        ],
        [operator("RESIZE_BILINEAR", [0, 1], [2])],
        [0],
        [2],
    )
    results = []
    for rounding in ("double", "single"):
        interpreter = tq.Interpreter(model_content=model, numerics="reference", rounding=rounding)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.int8([-4, -3]).reshape(1, 1, 2, 1))
        interpreter.invoke()
        results.append(interpreter.get_tensor(2).ravel().tolist())
    assert results == [[-4, -4, -3, -3], [-4, -3, -3, -3]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounding": "once"}, "rounding is 'once'; it needs to be 'double' or 'single'"),
        ({"rounding": "single", "numerics": "xnnpack"}, "only the reference kernels can be built so"),
        ({"rounding": "double", "numerics": "exact"}, "numerics is 'exact'; it needs to be 'reference'"),
        ({"numerics": "reference-single"}, "it needs to be 'reference', 'optimized' or 'xnnpack'"),
    ],
)
def test_names_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        tq.Interpreter(model_content=tie(), **options)


def test_two_builds_compare_on_the_same_inputs():
    x = np.zeros((1, 1, 1, 1), np.int8)
    comparison = tq.compare(tie(), inputs=[x], rounding=("double", "single"))
    assert not comparison.equal and "12" in str(comparison.steps) and "11" in str(comparison.steps)
    assert tq.compare(tie(), inputs=[x], rounding=("single", "single")).equal
    with pytest.raises(ValueError, match="must be two names"):
        tq.compare(tie(), inputs=[x], rounding="single")


def test_the_command_compares_two_builds(run, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(tie())
    fine(run("compare", path, "--rounding", "double,single"), code=1)
    failed(run("compare", path, "--rounding", "double,once"), "--rounding")
    failed(run("compare", path, "--rounding", "double,single", "--numerics", "xnnpack,xnnpack"), "single")
