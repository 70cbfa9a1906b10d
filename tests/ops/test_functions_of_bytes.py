# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of a quantized tensor with a function of itself gives what each operator gives by itself."""

import numpy as np
import pytest

import tq

MIDDLE = {"int8": 0, "uint8": 128}
IN = {"scale": 0.06, "zero_point": -5}
SIGMOID = {"scale": 1 / 256, "zero_point": -128}
OUT = {"scale": 0.05, "zero_point": -90}
GRAPHS = {  # operator, inputs (0 is the graph's, -1 a constant of one element), the output's parameters
    "silu": [("LOGISTIC", [0], SIGMOID), ("MUL", [0, 1], OUT)],
    "silu turned round": [("LOGISTIC", [0], SIGMOID), ("MUL", [1, 0], OUT)],
    "hard swish": [
        ("ADD", [0, -1], IN),
        ("RELU6", [1], {"scale": 6 / 255, "zero_point": -128}),
        ("MUL", [2, -1], SIGMOID),
        ("MUL", [0, 3], OUT),
    ],
    "square": [("MUL", [0, 0], OUT)],
    "sum": [("TANH", [0], {"scale": 1 / 128, "zero_point": 0}), ("ADD", [0, 1], OUT)],
    "difference": [("LOGISTIC", [0], SIGMOID), ("LOGISTIC", [1], SIGMOID), ("SUB", [2, 0], OUT)],
    "of one source": [("LOGISTIC", [0], SIGMOID), ("RELU", [0], IN), ("MUL", [1, 2], OUT)],
}


def run(kind, operators, values, numerics):
    """The last operator's result; `values` are the inputs of the graph."""
    build = tq.ModelBuilder()
    shifted = lambda p: {"scale": p["scale"], "zero_point": p["zero_point"] + MIDDLE[kind]}  # noqa: E731
    tensors = [build.input(f"in{i}", x.shape, kind, **shifted(p)) for i, (x, p) in enumerate(values)]
    one = build.tensor("one", [], data=np.array(MIDDLE[kind] + 50, kind), **shifted({"scale": 0.06, "zero_point": 0}))
    for k, (name, inputs, parameters) in enumerate(operators):
        tensors.append(build.tensor(f"t{k}", values[0][0].shape, kind, **shifted(parameters)))
        build.operator(name, [one if i < 0 else tensors[i] for i in inputs], [tensors[-1]], version=2)
    build.output(tensors[-1])
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics=numerics)
    interpreter.allocate_tensors()
    for item, (x, _) in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(item["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("numerics", ["reference", "optimized", "xnnpack"])
@pytest.mark.parametrize("kind", MIDDLE)
@pytest.mark.parametrize("name", GRAPHS)
def test_each_operator_by_itself_gives_the_same(name, kind, numerics):
    if name == "square" and numerics == "xnnpack":
        pytest.skip("one operator by itself")
    rng = np.random.default_rng(0)
    info = np.iinfo(kind)
    for count in (1023, 1024, 5000):
        found = [(rng.integers(info.min, info.max, count, endpoint=True).astype(kind), IN)]
        whole = run(kind, GRAPHS[name], found, numerics)
        for operator, inputs, parameters in GRAPHS[name]:
            given = [found[i] for i in inputs if i >= 0]
            step = [(operator, [-1 if i < 0 else min(k, len(given) - 1) for k, i in enumerate(inputs)], parameters)]
            found.append((run(kind, step, given, numerics), parameters))
        np.testing.assert_array_equal(whole, found[-1][0], err_msg=str(count))


def test_a_tensor_that_the_caller_sets_between_two_operators_counts():
    build = tq.ModelBuilder()
    x = build.input("x", [2000], "int8", **IN)
    y, z = (build.tensor(name, [2000], "int8", **p) for name, p in (("y", SIGMOID), ("z", OUT)))
    build.operator("LOGISTIC", [x], [y], version=2)
    build.operator("MUL", [x, y], [z], version=2)
    build.output(z)
    values, replaced = np.random.default_rng(0).integers(-128, 128, (2, 2000)).astype(np.int8)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(x.index, values)
    interpreter.invoke()
    whole = interpreter.get_tensor(z.index)
    interpreter.set_tensor(x.index, values)
    interpreter.run(0, 1)
    interpreter.set_tensor(y.index, replaced)
    interpreter.run(1)
    (product,) = [run("int8", [("MUL", [0, 1], OUT)], [(values, IN), (replaced, SIGMOID)], "reference")]
    np.testing.assert_array_equal(interpreter.get_tensor(z.index), product)
    assert np.any(whole != product)
