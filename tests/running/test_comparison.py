# SPDX-License-Identifier: Apache-2.0
"""tq.compare under two numerics, and the steps to an element that differs."""

import differential
import generators
import numpy as np
import pytest
import zoo
from generators.draft import Draft

import tq
from tq.accuracy.comparison import feed
from tq.cli import demo_float

PAIR = ("reference", "xnnpack")
CODES = ("int8", "uint8", "channel", "per_channel")
SUMS = ["BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MUL", "QUANTIZE"]
OTHERS = ("float", "sparse", "shuffled")  # kinds that have more to their sums


def drawn(operator, count, kinds=None):
    """Random models of one operator on integers, with their inputs."""
    for _, kind in generators.rows(operator):
        if not kind.startswith(kinds or CODES) or any(word in kind for word in OTHERS):
            continue
        for number in range(count):
            case = differential.shaped(differential.draw(operator, kind, 7, number))
            indices = tq.Model(case.model).subgraphs[0].input_indices
            if all(index in case.runs[0] for index in indices):
                yield case.model, [case.runs[0][index] for index in indices]


def run(model, inputs, numerics):
    made = tq.Interpreter(
        model_content=model, numerics=numerics, experimental_preserve_all_tensors=True, max_memory=2**30
    )
    feed(made, inputs)
    made.invoke()
    return made


@pytest.mark.parametrize("operator", SUMS)
def test_steps_end_at_the_quantized_values_of_both_runs(operator):
    explained = differing = 0
    for model, inputs in drawn(operator, 200 if operator == "FULLY_CONNECTED" else 30):
        try:
            made = tq.compare(model, inputs=inputs, numerics=PAIR)
        except (ValueError, RuntimeError):
            continue
        if made.equal:
            assert made.steps is None
            continue
        differing += 1
        steps = made.steps
        assert steps.operator == 0 and steps.operator_name == operator and steps.values[0] != steps.values[1]
        assert all(item is None or item.code == value for item, value in zip(steps.steps, steps.values, strict=True))
        if None not in steps.steps:
            explained += 1
            assert {item.accumulator for item in steps.steps} - {None} == {steps.accumulator}  # a table has none
            assert "accumulator" in str(made)
    assert differing and explained == differing, (explained, differing)


def chain():
    """LEAKY_RELU, whose two formulas differ widely, and NEG after it."""
    m = Draft(1, name="chain")
    x = m.input("int8", [64], scale=0.1, zero_point=3)
    y = m.inner("int8", [64], scale=0.07, zero_point=-5)
    z = m.output("int8", [64], scale=0.07, zero_point=-5)
    m.operator("LEAKY_RELU", [x], [y], alpha=0.3)
    m.operator("RELU", [y], [z])
    return m.case("LEAKY_RELU", "int8", 1, 0).model


def test_how_far_a_difference_has_grown():
    x = np.arange(-64, 64, 2).astype(np.int8)
    made = tq.compare(chain(), inputs=[x], numerics=PAIR)
    first, last = made.first_difference, made.outputs[-1]
    assert first.operator_name == "LEAKY_RELU" and first.max_codes == 1 and not first.is_output
    assert last.is_output and last.operator_name == "RELU"
    text = str(made)
    assert "rne(256 * ratio)" in text and "ties away from zero" in text
    assert f"{last.different} of 64 elements differ" in text or "': equal" in text


CONV = zoo.MODELS["conv"]


def test_models_that_do_not_belong_together_are_told_by_the_shapes_of_their_inputs():
    x = np.zeros((1, 32, 32, 3), np.float32)
    text = r"do not belong together: input 0 has the shape \[1, 32, 32, 3\] in one, \[1, 5, 5, 1\] in the other"
    for given in ({"inputs": [x]}, {"samples": [[x]]}):
        with pytest.raises(ValueError, match=text):
            tq.compare(demo_float.float_model(), CONV, **given)


def test_models_without_tensors_in_common_are_not_equal():
    a, b = (tq.ModelBuilder() for _ in range(2))
    for builder, name in ((a, "a"), (b, "b")):
        x = builder.input(f"{name}0", [1, 4])
        y = builder.tensor(f"{name}1", [1, 4])
        builder.operator("RELU" if name == "a" else "NEG", [x], [y])
        builder.output(y)
    found = tq.compare(a.to_bytes(), b.to_bytes(), [np.zeros((1, 4), np.float32)])
    assert "the two models do not belong together: they have no tensors in common" in str(found)


def test_names_of_kernels_are_two_and_of_models():
    model = chain()
    x = [np.zeros(64, np.int8)]
    for numerics in ("reference", ("reference",), ("reference", "optimized", "xnnpack"), ("reference", "other")):
        with pytest.raises(ValueError, match="numerics"):
            tq.compare(model, inputs=x, numerics=numerics)
    with pytest.raises(ValueError, match="is an interpreter"):
        tq.compare(run(model, x, "reference"), model, x, numerics=PAIR)
    with pytest.raises(TypeError, match="needs b, or numerics"):
        tq.compare(model, inputs=x)
    with pytest.raises(TypeError, match="needs inputs"):
        tq.compare(model, numerics=PAIR)
