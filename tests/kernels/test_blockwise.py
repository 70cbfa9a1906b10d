# SPDX-License-Identifier: Apache-2.0
"""Every row of blockwise.def against the scalar row, on whole operators."""

import itertools

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq
from tq import _core

ISAS = [row["isa"] for row in _core.kernel_variants() if row["name"] == "blockwise_i4" and row["isa"] != "scalar"]
AVAILABLE = {row["isa"] for row in _core.kernel_variants() if row["name"] == "blockwise_i4" and row["available"]}


def model(rng, rows, units, columns, block, bias, dtype="INT4", **options):
    details = {"type": "BlockwiseQuantization", "scales": 3, "zero_points": -1, "block_size": block}
    codes = rng.integers(-8, 8, [units, columns], np.int8)
    codes[0] = 7
    weights = tensor("w", [units, columns], dtype, codes, details=details)
    scales = (10 ** rng.uniform(-3, -1, [units, columns // block])).astype(np.float16)
    tensors = [tensor("x", [rows, columns]), weights, tensor("y", [rows, units])]
    tensors.append(tensor("scales", scales.shape, "FLOAT16", scales))
    if bias:
        tensors.append(tensor("bias", [units], data=rng.normal(size=units).astype(np.float32)))
    operators = [operator("FULLY_CONNECTED", [0, 1, *([4] if bias else [])], [2], version=13, **options)]
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
        activation = ("NONE", "RELU", "RELU6", "TANH")[case % 4]
        content = model(rng, rows, units, columns, block, case % 2, fused_activation_function=activation)
        x = (rng.normal(size=[rows, columns]) * 10 ** rng.uniform(-2, 3)).astype(np.float32)
        x.flat[:: max(1, 5 - case % 7)] *= -1
        x[0] = (3, -3)[case // 2 % 2]  # all quantized values are 127, or -128: the greatest sums
        x[rows - 1 :] = np.nan if case % 5 == 0 else x[rows - 1]
        expected = run("scalar", content, x, numerics)
        assert run(isa, content, x, numerics).tobytes() == expected.tobytes(), (case, rows, units, columns, block)


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize("isa", ISAS)
def test_one_row_of_weights_without_blocks_equals_the_matrix_kernel(isa, numerics):
    """Up to the most columns whose sums floats hold, with the greatest sums; one more column is the matrix kernel's."""
    if isa not in AVAILABLE:
        pytest.skip(f"this processor has no {isa}")
    rng = np.random.default_rng(8)
    for columns, units, dtype in itertools.product((1, 7, 64, 1000, 16384, 16385), (1, 16, 39), ("INT4", "INT2")):
        codes = rng.integers(*((-8, 8) if dtype == "INT4" else (-2, 2)), [units, columns], np.int8)
        codes[0] = codes.min()
        scale = rng.uniform(0.01, 0.1, 1 if units == 16 else units)
        weights = tensor("w", codes.shape, dtype, codes, scale=scale, zero_point=[0] * len(scale))
        parts = [tensor("x", [1, columns]), weights, tensor("y", [1, units])]
        parts.append(tensor("bias", [units], data=rng.normal(size=units).astype(np.float32)))
        inputs, options = [0, 1] + [3] * (columns > 7), {"asymmetric_quantize_inputs": columns % 2 == 0}
        content = build_model(parts, [operator("FULLY_CONNECTED", inputs, [2], version=9, **options)], [0], [2])
        for x in (rng.normal(size=[1, columns]), rng.uniform(1, 2, [1, columns]), np.full([1, columns], np.nan)):
            expected = run("scalar", content, x.astype(np.float32), numerics)
            np.testing.assert_array_equal(run(isa, content, x.astype(np.float32), numerics), expected)


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
