# SPDX-License-Identifier: Apache-2.0
"""Every row of gemm.def and depthwise.def that this machine can run gives the scalar row's bits, in the operators that
stand on it.  Kernels by themselves, of other machines too: test_variants_c.py."""

import differential
import generators
import numpy as np
import pytest

import tq

ROWS = [row for row in tq._core.kernel_variants() if row["name"].startswith(("gemm_", "depthwise_"))]
ISAS = sorted({row["isa"] for row in ROWS if row["available"] and row["isa"] != "scalar"})
KINDS = {"i8": "int8", "u8": "uint8", "i16": "int16", "f32": "float32", "f32_fused": "float32"}
CASES = 12


def outputs(case, isa, numerics):
    """The outputs of a model, as bytes, with the kernels of this instruction set."""
    tq._core._force_isa(isa)
    try:
        interpreter = tq.Interpreter(model_content=case.model, numerics=numerics, num_threads=1)
        for index, shape in case.shapes.items():
            interpreter.resize_tensor_input(index, shape)
        interpreter.allocate_tensors()
        for index, value in case.runs[0].items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
    finally:
        tq._core._force_isa(None)
    found = [interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()]
    return b"".join(np.ascontiguousarray(value).tobytes() for value in found)


@pytest.mark.skipif(not ISAS, reason="this machine has only scalar kernels")
@pytest.mark.parametrize("isa", ISAS)
def test_every_row_gives_the_bits_of_the_scalar_one(isa):
    generators.rows()
    for name in sorted({row["name"] for row in ROWS if row["isa"] == isa}):
        family, kind = name.split("_", 1)
        for operator in ["DEPTHWISE_CONV_2D"] if family == "depthwise" else ["CONV_2D", "FULLY_CONNECTED"]:
            for number in range(CASES):
                case = differential.draw(operator, KINDS[kind], 4, number)
                numerics = "xnnpack" if kind == "f32_fused" else "reference"
                assert outputs(case, isa, numerics) == outputs(case, "scalar", numerics), (name, str(case))


def fully_connected(x, w, bias, scale):
    build = tq.ModelBuilder()
    rows = build.input("x", x.shape, "INT16", scale=2.0**-15, zero_point=0)
    weights = build.tensor("w", data=w, scale=2.0**-7, zero_point=0)
    y = build.tensor("y", (len(x), len(w)), "INT16", scale=scale, zero_point=0)
    biases = [build.tensor("b", data=bias)] if bias.any() else []
    build.operator("FULLY_CONNECTED", [rows, weights, *biases], [y])
    build.output(y)
    return build.to_bytes()


@pytest.mark.parametrize("isa", ["scalar", *ISAS])
@pytest.mark.parametrize("depth", [1, 100, 511, 512, 600])
@pytest.mark.parametrize("most", [0, 1, 1 << 20, 1 << 31, 1 << 45])
def test_sums_of_int16_rows_have_64_bits_where_32_are_too_few(isa, depth, most):
    rng = np.random.default_rng(depth + most)
    x = rng.integers(-(1 << 15), 1 << 15, (7, depth), np.int16)
    x[2:4] = -(1 << 15)
    w = rng.integers(-128, 128, (37, depth), np.int8)
    w[:9] = -128
    bias = rng.integers(-most, most + 1, 37)
    sums = (x.astype(np.int64) @ w.T.astype(np.int64) + bias).astype(np.float64)
    for scale in (2.0**-15, 2.0**-9, 0.7, 2.0**8):
        real = sums * (2.0**-22 / np.float64(np.float32(scale)))
        expected = np.clip(np.trunc(real + np.copysign(np.nextafter(0.5, 0), real)), -(1 << 15), (1 << 15) - 1)
        tq._core._force_isa(isa)
        try:
            run = tq.Interpreter(model_content=fully_connected(x, w, bias, scale), numerics="reference")
            run.allocate_tensors()
            run.set_tensor(0, x)
            run.invoke()
        finally:
            tq._core._force_isa(None)
        np.testing.assert_array_equal(run.get_tensor(run.get_output_details()[0]["index"]), expected)


def test_listing():
    assert len({(row["name"], row["isa"]) for row in ROWS}) == len(ROWS)
    for name in {row["name"] for row in ROWS}:
        rows = [row for row in ROWS if row["name"] == name]
        assert rows[0]["isa"] == "scalar" and rows[0]["available"], "the scalar row is the definition"
        chosen = [row for row in rows if row["chosen"]]
        assert chosen == [row for row in rows if row["available"]][-1:], "of those the machine has, the last"
