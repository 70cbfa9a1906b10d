# SPDX-License-Identifier: Apache-2.0
"""DEQUANTIZE, functions of a float and QUANTIZE run as one table, with the bits of the operators one by one."""

import itertools

import numpy as np
import pytest

import tq

FUNCTIONS = (
    "ABS NEG SQUARE SQRT RSQRT EXP LOG SIN COS FLOOR CEIL ROUND RELU RELU6 LEAKY_RELU ELU GELU HARD_SWISH LOGISTIC TANH"
)
SHAPE = (3, 700)


def chain(names, kind="int8", shape=SHAPE, outputs=(), readers=()):
    """TRANSPOSE, DEQUANTIZE, functions, QUANTIZE; outputs, readers: places of floats that are one or have another."""
    build = tq.ModelBuilder()
    zero_point = 100 if kind == "uint8" else -20
    x = build.input("x", shape, kind, scale=0.05, zero_point=zero_point)
    start = build.tensor("start", shape, kind, scale=0.05, zero_point=zero_point)
    build.operator("TRANSPOSE", [x, build.tensor("order", data=np.int32([0, 1]))], [start])
    floats = [build.tensor("f0", shape, "float32")]
    build.operator("DEQUANTIZE", [start], [floats[0]])
    for name in names:
        floats.append(build.tensor(f"f{len(floats)}", shape, "float32"))
        build.operator(name, [floats[-2]], [floats[-1]], **({"alpha": 0.1} if name == "LEAKY_RELU" else {}))
    for i in readers:
        other = build.tensor(f"other{i}", shape, "float32")
        build.operator("NEG", [floats[i]], [other])
        build.output(other)
    y = build.tensor("y", shape, kind, scale=0.02, zero_point=zero_point)
    build.operator("QUANTIZE", [floats[-1]], [y])
    build.output(y)
    for i in outputs:
        build.output(floats[i])
    return build.to_bytes()


def run(model, values, **options):
    interpreter = tq.Interpreter(model_content=model, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    return interpreter, [interpreter.get_tensor(out["index"]) for out in interpreter.get_output_details()]


def bytes_of(kind, shape=SHAPE):
    return np.resize(np.random.default_rng(3).permutation(256).astype(np.uint8), shape).view(kind)


def is_table(interpreter):
    """Whether the last operator's float input, which no later operator overwrites, is not computed."""
    last = max(detail["index"] for detail in interpreter.get_tensor_details() if detail["name"].startswith("f"))
    try:
        interpreter.get_tensor(last)
    except ValueError as error:
        assert "a table computes it" in str(error)
        return True
    return False


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_tables_have_the_bits_of_the_operators(numerics, kind):
    chains = [[name] for name in FUNCTIONS.split()] + [["SIN", "SQUARE"], ["ABS", "LOG", "NEG"]]
    for names, threads in itertools.product(chains, (1, 2)):
        model, x = chain(names, kind), bytes_of(kind)
        interpreter, [found] = run(model, x, numerics=numerics, num_threads=threads)
        _, [wanted] = run(model, x, numerics=numerics, num_threads=threads, experimental_preserve_all_tensors=True)
        np.testing.assert_array_equal(found, wanted, err_msg=str(names))
        assert is_table(interpreter), names


@pytest.mark.parametrize(
    "options",
    [{"outputs": [0]}, {"outputs": [1]}, {"readers": [0]}, {"readers": [1]}, {"shape": (5, 7)}],
    ids=["output 0", "output 1", "reader 0", "reader 1", "few elements"],
)
def test_floats_that_others_read_are_computed(options):
    model, x = chain(["SIN"], **options), bytes_of("int8", options.get("shape", SHAPE))
    interpreter, found = run(model, x)
    _, wanted = run(model, x, experimental_preserve_all_tensors=True)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not is_table(interpreter)


def test_optimized_kernels_have_no_table():
    """Their last elements follow other formulas."""
    interpreter, _ = run(chain(["ELU"]), bytes_of("int8"), numerics="optimized")
    assert not is_table(interpreter)


def test_another_shape_has_the_same_table():
    interpreter, [first] = run(chain(["COS"]), bytes_of("int8"))
    index = interpreter.get_input_details()[0]["index"]
    for shape in ((5, 700), (2, 3), SHAPE):
        interpreter.resize_tensor_input(index, shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, bytes_of("int8", shape))
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        count = min(found.size, first.size)
        np.testing.assert_array_equal(found.reshape(-1)[:count], first.reshape(-1)[:count])
