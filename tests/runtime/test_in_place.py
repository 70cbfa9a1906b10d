# SPDX-License-Identifier: Apache-2.0
"""Outputs of elementwise operators in the memory of an input that is read no more."""

import numpy as np
import pytest

import tq

SHAPE = [3, 70, 65]


def chain(steps, shape=SHAPE):
    """NEG of the input, then each step (operator, its other input): a number is a constant of that rank, "x" the
    graph's input, "same" the tensor itself; before a number, "-" puts the constant first."""
    build = tq.ModelBuilder()
    x = build.input("x", shape, "float32")
    now = build.tensor("t0", shape, "float32")
    build.operator("NEG", [x], [now])
    for k, (name, other) in enumerate(steps):
        inputs = [now]
        if other in ("x", "same"):
            inputs.append({"x": x, "same": now}[other])
        elif other:
            values = np.random.default_rng(k).normal(size=shape[len(shape) - abs(int(other)) :]).astype(np.float32)
            inputs.append(build.tensor(f"c{k}", list(values.shape), "float32", data=values))
        if str(other).startswith("-"):
            inputs.reverse()
        now = build.tensor(f"t{k + 1}", shape, "float32")
        build.operator(name, inputs, [now], **({"alpha": 0.1} if name == "LEAKY_RELU" else {}))
    build.output(now)
    return build.to_bytes()


def run(model, **options):
    interpreter = tq.Interpreter(model_content=model, **options)
    interpreter.allocate_tensors()
    for k, detail in enumerate(interpreter.get_input_details()):
        values = np.random.default_rng(9 + k).normal(size=detail["shape"]).astype(np.float32)
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return interpreter, interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def placed(interpreter):
    return {item.name: item for item in interpreter.memory_plan().placed}


UNARY = (
    "ABS NEG SQUARE SQRT RSQRT EXP LOG SIN COS FLOOR CEIL ROUND RELU RELU6 LEAKY_RELU ELU GELU HARD_SWISH LOGISTIC TANH"
)
STEPS = [[(name, None)] for name in UNARY.split()]
STEPS += [
    [(name, other)] for name in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM") for other in ("x", "same", "3", "-3", "1", "-1")
]
STEPS += [
    [("PRELU", "1")],
    [("PRELU", "3")],
    [("SQUARED_DIFFERENCE", "2")],
    [("ADD", "x"), ("MUL", "-3"), ("RELU", None)],
]


@pytest.mark.parametrize("numerics", ["reference", "optimized", "xnnpack"])
def test_outputs_in_place_have_the_same_bits(numerics):
    for steps in STEPS:
        model = chain(steps)
        for threads in (1, 2):
            interpreter, found = run(model, numerics=numerics, num_threads=threads)
            _, wanted = run(model, numerics=numerics, num_threads=threads, experimental_preserve_all_tensors=True)
            np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32), err_msg=str(steps))
            places = placed(interpreter)
            assert places["t1"].offset == places["t0"].offset, steps


def test_an_overwritten_tensor_is_not_readable():
    """Not even that of the last operator."""
    interpreter, _ = run(chain([("NEG", None), ("RELU", None)]))
    for detail in interpreter.get_tensor_details()[1:3]:
        with pytest.raises(ValueError, match="was not kept"):
            interpreter.get_tensor(detail["index"])


def test_a_tensor_that_is_read_again_stays():
    build = tq.ModelBuilder()
    x = build.input("x", SHAPE, "float32")
    t, u, y = (build.tensor(name, SHAPE, "float32") for name in "tuy")
    build.operator("ABS", [x], [t])
    build.operator("EXP", [t], [u])
    build.operator("SUB", [u, t], [y])
    build.output(y)
    interpreter, found = run(build.to_bytes())
    _, wanted = run(build.to_bytes(), experimental_preserve_all_tensors=True)
    np.testing.assert_array_equal(found, wanted)
    places = placed(interpreter)
    assert places["u"].offset != places["t"].offset


def test_as_many_bytes_of_fewer_elements_are_no_place():
    """16 floats, which broadcast to 64 booleans."""
    build = tq.ModelBuilder()
    x, z = build.input("x", [16], "float32"), build.input("z", [4, 16], "float32")
    t, y = build.tensor("t", [16], "float32"), build.tensor("y", [4, 16], "bool")
    build.operator("NEG", [x], [t])
    build.operator("LESS", [t, z], [y])
    build.output(y)
    interpreter, found = run(build.to_bytes())
    _, wanted = run(build.to_bytes(), experimental_preserve_all_tensors=True)
    np.testing.assert_array_equal(found, wanted)
    places = placed(interpreter)
    assert places["y"].offset != places["t"].offset
