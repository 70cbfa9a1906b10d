# SPDX-License-Identifier: Apache-2.0
"""Constants that operators compute from constants: large floats in the first run, all others in allocate_tensors, and
nobody can tell the difference but by the clock."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

ROWS, COLS, UNITS = 2, 40, 16  # UNITS * COLS floats are more than what allocate_tensors computes at once
WEIGHTS = np.linspace(-2, 2, UNITS * COLS).reshape(UNITS, COLS).astype(np.float16)
X = np.linspace(-1, 1, ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)
HALVES, FLOATS, TURNED, Y, ORDER = range(1, 6)
DENSE = operator("FULLY_CONNECTED", [0, FLOATS, -1], [Y])


def tensors():
    return [
        tensor("x", [ROWS, COLS]),
        tensor("halves", [UNITS, COLS], "FLOAT16", data=WEIGHTS),
        tensor("floats", [UNITS, COLS]),
        tensor("turned", [COLS, UNITS]),
        tensor("y", [ROWS, UNITS]),
        tensor("order", [2], "INT32", data=np.array([1, 0], np.int32)),
    ]


def model(operators, outputs):
    return build_model(
        tensors=tensors(),
        operators=[operator("DEQUANTIZE", [HALVES], [FLOATS]), *operators],
        inputs=[0],
        outputs=outputs,
    )


def dense():
    return tq.Interpreter(model_content=model([DENSE], [Y]))


def result(interpreter):
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    return interpreter.get_tensor(Y)


WANTED = (X.astype(np.float64) @ WEIGHTS.astype(np.float64).T).astype(np.float32)


def test_the_first_run_computes_them():
    run = dense()
    run.allocate_tensors()
    np.testing.assert_allclose(result(run), WANTED, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(result(run), result(run))
    np.testing.assert_array_equal(run.get_tensor(FLOATS), WEIGHTS.astype(np.float32))


@pytest.mark.parametrize("how", ["get_tensor", "tensor"])
def test_they_can_be_read_before(how):
    run = dense()
    run.allocate_tensors()
    value = run.get_tensor(FLOATS) if how == "get_tensor" else run.tensor(FLOATS)()
    np.testing.assert_array_equal(value, WEIGHTS.astype(np.float32))
    np.testing.assert_allclose(result(run), WANTED, rtol=1e-5, atol=1e-5)
    if how == "tensor":  # a view keeps the memory
        del run
        np.testing.assert_array_equal(value, WEIGHTS.astype(np.float32))


def test_a_run_that_begins_behind_them():
    run = dense()
    run.allocate_tensors()
    run.set_tensor(0, X)
    run.run(start=1)
    np.testing.assert_allclose(run.get_tensor(Y), WANTED, rtol=1e-5, atol=1e-5)


def test_again_after_a_resize():
    run = dense()
    run.allocate_tensors()
    result(run)
    run.resize_tensor_input(0, [1, COLS])
    run.allocate_tensors()
    run.set_tensor(0, X[:1])
    run.invoke()
    np.testing.assert_allclose(run.get_tensor(Y), WANTED[:1], rtol=1e-5, atol=1e-5)


def test_an_operator_that_looks_at_them_gets_them():
    """TRANSPOSE of a constant is computed in allocate_tensors, and so is what it reads."""
    run = tq.Interpreter(model_content=model([operator("TRANSPOSE", [FLOATS, ORDER], [TURNED]), DENSE], [Y, TURNED]))
    run.allocate_tensors()
    np.testing.assert_array_equal(run.get_tensor(TURNED), WEIGHTS.T.astype(np.float32))
    np.testing.assert_allclose(result(run), WANTED, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(run.get_tensor(TURNED), WEIGHTS.T.astype(np.float32))


def test_an_output_is_there():
    run = tq.Interpreter(model_content=model([DENSE], [Y, FLOATS]))
    run.allocate_tensors()
    np.testing.assert_array_equal(run.get_tensor(FLOATS), WEIGHTS.astype(np.float32))
    np.testing.assert_allclose(result(run), WANTED, rtol=1e-5, atol=1e-5)


def sparse_chain(count):
    """A sparse constant of FLOAT16, made dense `count` times, then floats: the rows of WEIGHTS that are even."""
    levels = {
        "array_segments": {"type": "Int32Vector", "values": [0, UNITS // 2]},
        "array_indices": {"type": "Int32Vector", "values": list(range(0, UNITS, 2))},
    }
    sparsity = {
        "traversal_order": [0, 1],
        "dim_metadata": [{"format": "SPARSE_CSR", **levels}, {"format": "DENSE", "dense_size": COLS}],
    }
    stored = tensor("stored", [UNITS, COLS], "FLOAT16", data=WEIGHTS[::2].tobytes(), sparsity=sparsity)
    halves = [tensor(f"halves {i}", [UNITS, COLS], "FLOAT16") for i in range(count)]
    all_tensors = [
        tensor("x", [ROWS, COLS]),
        stored,
        *halves,
        tensor("floats", [UNITS, COLS]),
        tensor("y", [ROWS, UNITS]),
    ]
    operators = [operator("DENSIFY", [1 + i], [2 + i]) for i in range(count)]
    operators.append(operator("DEQUANTIZE", [1 + count], [2 + count]))
    operators.append(operator("FULLY_CONNECTED", [0, 2 + count, -1], [3 + count]))
    return build_model(tensors=all_tensors, operators=operators, inputs=[0], outputs=[3 + count])


@pytest.mark.parametrize("count", [1, 3, 4, 9, 2000])
def test_sparse_constants(count):
    """Operators that wait for each other, and more of them than may: none is left out, and no stack runs out."""
    run = tq.Interpreter(model_content=sparse_chain(count))
    run.allocate_tensors()
    run.set_tensor(0, X)
    run.invoke()
    wanted = WANTED.copy()
    wanted[:, 1::2] = 0
    np.testing.assert_allclose(run.get_tensor(3 + count), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(run.get_tensor(1), WEIGHTS[::2].ravel())  # the stored values, flat


def test_a_sparse_constant_that_contradicts_itself_is_refused_at_once():
    data = bytearray(sparse_chain(1))
    run = tq.Interpreter(model_content=bytes(data))
    run.allocate_tensors()
    at = data.find(np.array(list(range(0, UNITS, 2)), np.int32).tobytes())
    data[at : at + 4] = np.int32(UNITS).tobytes()
    with pytest.raises((ValueError, RuntimeError), match="tensor 1 'stored'"):
        tq.Interpreter(model_content=bytes(data)).allocate_tensors()
