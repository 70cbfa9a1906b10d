# SPDX-License-Identifier: Apache-2.0
"""Every row of gemm.def and depthwise.def that this machine can run gives the scalar row's bits, in the operators that
stand on it.  Kernels by themselves, of other machines too: test_variants_c.py."""

import itertools
from types import SimpleNamespace

import differential
import generators
import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

ROWS = [row for row in tq._core.kernel_variants() if row["name"].startswith(("gemm_", "depthwise_"))]
ISAS = sorted({row["isa"] for row in ROWS if row["available"] and row["isa"] != "scalar"})
KINDS = {"i8": "int8", "u8": "uint8", "i16": "int16", "f32": "float32", "f32_fused": "float32"}
CASES = 12


def outputs(case, isa, numerics, threads=1):
    """The outputs of a model, as bytes, with the kernels of this instruction set."""
    tq._core._force_isa(isa)
    try:
        interpreter = tq.Interpreter(model_content=case.model, numerics=numerics, num_threads=threads)
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
        for code in ["DEPTHWISE_CONV_2D"] if family == "depthwise" else ["CONV_2D", "FULLY_CONNECTED"]:
            for number in range(CASES):
                case = differential.draw(code, KINDS[kind], 4, number)
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


def depthwise(kind, channels, stride, dilation, taps=(3, 3)):
    """A filter over an image whose rows fill several vectors; every element may have any value."""
    random = np.random.default_rng(channels)
    info = np.iinfo(kind)
    type, shape = kind.upper(), [1, 5, 18, channels]
    weights, x = (random.integers(info.min, info.max + 1, size).astype(kind) for size in ([1, *taps, channels], shape))
    quantized = {"scale": [0.01] * channels, "zero_point": [0] * channels, "quantized_dimension": 3}
    if kind == "uint8":
        quantized = {"scale": 0.01, "zero_point": 121}
    model = build_model(
        tensors=[
            tensor("x", shape, type, scale=0.05, zero_point=3),
            tensor("w", [1, *taps, channels], type, weights, **quantized),
            tensor("b", [channels], "INT32", np.arange(channels, dtype=np.int32), scale=0.0005),
            tensor("y", [1, -(-5 // stride), -(-18 // stride), channels], type, scale=0.3, zero_point=3),
        ],
        operators=[
            operator(
                "DEPTHWISE_CONV_2D",
                [0, 1, 2],
                [3],
                padding="SAME",
                stride_w=stride,
                stride_h=stride,
                depth_multiplier=1,
                dilation_w_factor=dilation,
                dilation_h_factor=dilation,
            )
        ],
        inputs=[0],
        outputs=[3],
    )
    return SimpleNamespace(model=model, shapes={}, runs=[{0: x}])


@pytest.mark.parametrize("isa", ISAS)
def test_depthwise_filters_of_three_columns_give_the_bits_of_the_scalar_row(isa):
    channels = (1, 3, 8, 16, 24, 48, 100, 208, 384)
    for kind, n, (stride, dilation) in itertools.product(("int8", "uint8"), channels, ((1, 1), (1, 2), (2, 1))):
        case = depthwise(kind, n, stride, dilation)
        assert outputs(case, isa, "reference") == outputs(case, "scalar", "reference"), (kind, n, stride, dilation)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("taps", [2, 4, 5, 9, 21])
def test_depthwise_filters_of_one_row_give_the_bits_of_the_scalar_row(isa, taps):
    channels = (1, 3, 6, 16, 24, 100)
    for kind, n, (stride, dilation) in itertools.product(("int8", "uint8"), channels, ((1, 1), (1, 3), (2, 1), (3, 1))):
        case = depthwise(kind, n, stride, dilation, (1, taps))
        assert outputs(case, isa, "reference") == outputs(case, "scalar", "reference"), (kind, n, stride, dilation)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("taps", [2, 3, 4, 5, 9])
def test_depthwise_filters_of_one_column_give_the_bits_of_the_scalar_row(isa, taps):
    channels = (1, 3, 8, 16, 24, 100)
    for kind, n, (stride, dilation) in itertools.product(("int8", "uint8"), channels, ((1, 1), (1, 2), (2, 1))):
        case = depthwise(kind, n, stride, dilation, (taps, 1))
        assert outputs(case, isa, "reference") == outputs(case, "scalar", "reference"), (kind, n, stride, dilation)


def one_row(kind, inputs, units):
    """A FULLY_CONNECTED of one row; tq packs its weights in another order than those of several rows."""
    random = np.random.default_rng(units)
    type = kind.upper()
    quantized = [{}, {}, {}, {}]
    weights, bias, x = (random.normal(0, 1, size).astype(np.float32) for size in ((units, inputs), units, (1, inputs)))
    if kind != "float32":
        quantized = [{"scale": s, "zero_point": 0} for s in (0.02, 0.01, 0.0002, 0.3)]
        weights, x = ((50 * value).clip(-127, 127).astype(np.int8) for value in (weights, x))
        bias = (1000 * bias).astype(np.int32)
    model = build_model(
        tensors=[
            tensor("x", [1, inputs], type, **quantized[0]),
            tensor("w", [units, inputs], type, weights, **quantized[1]),
            tensor("b", [units], "FLOAT32" if kind == "float32" else "INT32", bias, **quantized[2]),
            tensor("y", [1, units], type, **quantized[3]),
        ],
        operators=[operator("FULLY_CONNECTED", [0, 1, 2], [3])],
        inputs=[0],
        outputs=[3],
    )
    return SimpleNamespace(model=model, shapes={}, runs=[{0: x}])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 3])
def test_one_row_gives_the_bits_of_the_scalar_row(isa, threads):
    # 24 to 70 panels: of tiles that are full and not, of whole and part panels and groups, of one part and of three
    for kind, inputs, units in itertools.product(("int8", "float32"), (33, 300), (24, 130, 200, 280, 1100)):
        for numerics in ("reference", "xnnpack"):
            case = one_row(kind, inputs, units)
            assert outputs(case, isa, numerics, threads) == outputs(case, "scalar", numerics), (kind, inputs, units)


@pytest.mark.parametrize("isa", ["scalar", *ISAS])
def test_right_matrices_are_packed_from_rows_and_from_columns(isa):
    rng = np.random.default_rng(0)
    for (m, k, n), swapped in itertools.product(
        [(1, 1, 1), (3, 2, 3), (2, 15, 4), (1, 16, 8), (2, 17, 9), (1, 31, 12), (5, 64, 16), (1, 65, 23), (2, 150, 41)],
        (False, True),
    ):
        a, b = (rng.integers(-128, 128, (2, *shape), np.int8) for shape in ((m, k), (n, k) if swapped else (k, n)))
        build = tq.ModelBuilder()
        pair = [build.input(name, x.shape, "INT8", scale=1.0, zero_point=0) for name, x in (("a", a), ("b", b))]
        out = build.tensor("y", (2, m, n), "INT32")
        build.operator("BATCH_MATMUL", pair, [out], adj_y=swapped)
        build.output(out)
        case = SimpleNamespace(model=build.to_bytes(), shapes={}, runs=[{0: a, 1: b}])
        expected = a.astype(np.int32) @ (b.swapaxes(1, 2) if swapped else b).astype(np.int32)
        assert outputs(case, isa, "reference") == expected.tobytes(), (m, k, n, swapped)


@pytest.mark.parametrize("isa", ISAS)
def test_right_matrices_of_floats_give_the_bits_of_the_scalar_row(isa):
    rng = np.random.default_rng(0)
    # whole panels of any width, which few rows read where they lie; parts of panels; more panels than a tile has
    for (m, k, n), swapped, numerics in itertools.product(
        [(1, 9, 16), (1, 70, 64), (1, 33, 272), (3, 20, 48), (7, 5, 20), (64, 16, 32), (65, 16, 32), (13, 40, 160)],
        (False, True),
        ("reference", "xnnpack"),
    ):
        a, b = (rng.normal(size=(2, *shape)).astype(np.float32) for shape in ((m, k), (n, k) if swapped else (k, n)))
        a[0, 0, :3], b[1, 0, :3] = (np.inf, 0, -0.0), (np.inf, -np.inf, np.nan)
        build = tq.ModelBuilder()
        pair = [build.input(name, x.shape, "FLOAT32") for name, x in (("a", a), ("b", b))]
        out = build.tensor("y", (2, m, n), "FLOAT32")
        build.operator("BATCH_MATMUL", pair, [out], adj_y=swapped)
        build.output(out)
        case = SimpleNamespace(model=build.to_bytes(), shapes={}, runs=[{0: a, 1: b}])
        assert outputs(case, isa, numerics, 2) == outputs(case, "scalar", numerics), (m, k, n, swapped, numerics)


def floats(x, filters, bias, stride):
    """A case of a convolution of floats, with its padding."""
    build = tq.ModelBuilder()
    rows = build.input("x", x.shape, "FLOAT32")
    parts = [build.tensor("w", data=filters), build.tensor("b", data=bias)]
    y = build.tensor("y", (len(x), -(-x.shape[1] // stride), -(-x.shape[2] // stride), len(bias)), "FLOAT32")
    build.operator("CONV_2D", [rows, *parts], [y], padding="SAME", stride_w=stride, stride_h=stride)
    build.output(y)
    return SimpleNamespace(model=build.to_bytes(), shapes={}, runs=[{0: x}])


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize("isa", ISAS)
def test_convolutions_of_floats_give_the_bits_of_the_scalar_row(isa, numerics):
    rng = np.random.default_rng(0)
    # tiles of one to four panels, of which the last may not be full; rows behind the last tile; more than caches hold
    shapes = itertools.product([1, 2, 17, 50], [8, 16, 24, 32, 48, 64, 80, 100, 200])
    cases = [((1, 7, 11, depth), (channels, 1, 1, depth), 1) for depth, channels in shapes]
    cases += [((1, 71, 1000, 16), (channels, 1, 1, 16), 1) for channels in (16, 32, 48)]
    cases += [((30, 32, 32, 40), (channels, 3, 3, 40), 2) for channels in (8, 24, 40)]
    for x, filters, stride in cases:
        values, weights = (rng.normal(size=shape).astype(np.float32) for shape in (x, filters))
        bias = rng.choice(np.float32([0.5, 0, -0.0]), len(weights))
        values[..., : x[3] // 2 + 1][values[..., : x[3] // 2 + 1] < 0] = -0.0
        weights[::3] = np.abs(weights[::3])
        values[0, :2] = -0.0  # sums of nothing but -0, where the weights are positive
        case = floats(values, weights, bias, stride)
        assert outputs(case, isa, numerics) == outputs(case, "scalar", numerics), (x, filters)


def test_listing():
    assert len({(row["name"], row["isa"]) for row in ROWS}) == len(ROWS)
    for name in {row["name"] for row in ROWS}:
        rows = [row for row in ROWS if row["name"] == name]
        assert rows[0]["isa"] == "scalar" and rows[0]["available"], "the scalar row is the definition"
        chosen = [row for row in rows if row["chosen"]]
        assert chosen == [row for row in rows if row["available"]][-1:], "of those the machine has, the last"


@pytest.mark.parametrize("isa", ["scalar", *ISAS])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 17, 49, 70])
@pytest.mark.parametrize("adjoint", [False, True])
def test_matrices_of_any_width_and_depth_are_packed_right(isa, columns, adjoint):
    rng = np.random.default_rng(columns)
    for depth in (1, 5, 8, 16, 63, 64, 65, 72, 130):
        a = rng.integers(-128, 128, (2, 3, depth), np.int8)
        b = rng.integers(-128, 128, (2, columns, depth) if adjoint else (2, depth, columns), np.int8)
        b[0, 0] = -128
        build = tq.ModelBuilder()
        x = build.input("a", a.shape, "INT8", scale=1.0, zero_point=0)
        y = build.input("b", b.shape, "INT8", scale=1.0, zero_point=0)
        z = build.tensor("sums", (2, 3, columns), "INT32")
        build.operator("BATCH_MATMUL", [x, y], [z], adj_y=adjoint, version=4)
        build.output(z)
        tq._core._force_isa(isa)
        try:
            run = tq.Interpreter(model_content=build.to_bytes(), numerics="reference")
            run.allocate_tensors()
        finally:
            tq._core._force_isa(None)
        run.set_tensor(0, a)
        run.set_tensor(1, b)
        run.invoke()
        expected = a.astype(np.int32) @ (b.swapaxes(1, 2) if adjoint else b)
        assert np.array_equal(run.get_tensor(2), expected), (depth, isa)
