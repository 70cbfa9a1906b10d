# SPDX-License-Identifier: Apache-2.0
"""Every row of blockwise.def against the scalar row, on whole operators."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq
from tq import _core

ISAS = [row["isa"] for row in _core.kernel_variants() if row["name"] == "blockwise_i4" and row["isa"] != "scalar"]
AVAILABLE = {row["isa"] for row in _core.kernel_variants() if row["name"] == "blockwise_i4" and row["available"]}


def model(rng, rows, units, columns, block, bias, dtype="INT4"):
    details = {"type": "BlockwiseQuantization", "scales": 3, "zero_points": -1, "block_size": block}
    weights = tensor("w", [units, columns], dtype, rng.integers(-8, 8, [units, columns], np.int8), details=details)
    scales = (10 ** rng.uniform(-3, -1, [units, columns // block])).astype(np.float16)
    tensors = [tensor("x", [rows, columns]), weights, tensor("y", [rows, units])]
    tensors.append(tensor("scales", scales.shape, "FLOAT16", scales))
    if bias:
        tensors.append(tensor("bias", [units], data=rng.normal(size=units).astype(np.float32)))
    operators = [operator("FULLY_CONNECTED", [0, 1, *([4] if bias else [])], [2], version=13)]
    return build_model(tensors, operators, [0], [2])


def run(isa, content, x, numerics, threads=1):
    _core._force_isa(isa)
    try:
        interpreter = tq.Interpreter(model_content=content, numerics=numerics, num_threads=threads)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        return interpreter.get_tensor(2)
    finally:
        _core._force_isa(None)


@pytest.mark.parametrize("numerics", ["optimized", "xnnpack"])
@pytest.mark.parametrize("isa", ISAS)
def test_a_row_equals_the_scalar_row(isa, numerics):
    if isa not in AVAILABLE:
        pytest.skip(f"this processor has no {isa}")
    rng = np.random.default_rng(5)
    for case in range(60):
        block = int(rng.choice([1, 2, 3, 4, 12, 16, 20, 32, 64, 96]))
        rows, units, columns = rng.integers(1, 11), int(rng.integers(1, 70)), block * int(rng.integers(1, 9))
        content = model(rng, rows, units, columns, block, case % 2)
        x = (rng.normal(size=[rows, columns]) * 10 ** rng.uniform(-2, 3)).astype(np.float32)
        x.flat[:: max(1, 5 - case % 7)] *= -1
        expected = run("scalar", content, x, numerics)
        assert run(isa, content, x, numerics).tobytes() == expected.tobytes(), (case, rows, units, columns, block)


def test_threads_do_not_change_the_result():
    rng = np.random.default_rng(6)
    content, x = model(rng, 2, 500, 512, 32, True), rng.normal(size=[2, 512]).astype(np.float32)
    for numerics in ("optimized", "xnnpack"):
        assert run(None, content, x, numerics, 3).tobytes() == run(None, content, x, numerics).tobytes()


def test_weights_with_blockwise_scales_that_are_no_int4_are_refused():
    rng = np.random.default_rng(7)
    interpreter = tq.Interpreter(model_content=model(rng, 1, 4, 32, 32, False, "INT8"))
    with pytest.raises(RuntimeError, match="has blockwise scales; such weights must be INT4"):
        interpreter.allocate_tensors()
