# SPDX-License-Identifier: Apache-2.0
"""3 x 3 convolutions by Winograd's transforms, and 3 x 3 depthwise ones whose neighbours share columns, give the bits
of plain sums.  Random products: tests/c/products.c."""

import itertools

import numpy as np
import oracle
import pytest

import tq

ROWS = [row for row in tq._core.kernel_variants() if row["name"] == "winograd_i8"]
ISAS = [row["isa"] for row in ROWS if row["available"]]


def convolution(weights, shape, zero_point, scale, kind="int8", operator="CONV_2D"):
    """A model of one operator with stride 1 and padding SAME; scale: an output step, in accumulators."""
    build = tq.ModelBuilder()
    x = build.input("x", shape, kind, scale=1.0, zero_point=zero_point)
    middle = 128 if kind == "uint8" else 0
    w = build.tensor("w", data=(weights + middle).astype(kind), scale=1.0, zero_point=middle)
    channels = weights.shape[3 if operator.startswith("DEPTHWISE") else 0]
    bias = np.arange(channels, dtype=np.int32) * 1000
    b = build.tensor("b", data=bias, scale=1.0, zero_point=0)
    y = build.tensor("y", (*shape[:3], channels), kind, scale=float(scale), zero_point=middle)
    options = {"depth_multiplier": 1} if operator.startswith("DEPTHWISE") else {}
    build.operator(operator, [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1, **options)
    build.output(y)
    return build.to_bytes()


def result(model, x, isa, threads=1):
    tq._core._force_isa(isa)
    try:
        interpreter = tq.Interpreter(model_content=model, numerics="reference", num_threads=threads)
        interpreter.allocate_tensors()
    finally:
        tq._core._force_isa(None)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.skipif(not ISAS, reason="this machine has no body")
@pytest.mark.parametrize("depth", [96, 112, 128, 256])  # the greatest sums of 112 are below the bound, of 128 above it
@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_the_greatest_sums_are_exact(depth, zero_point):
    rng = np.random.default_rng(depth)
    signs = np.stack([np.ones(9 * depth), -np.ones(9 * depth), *rng.choice([-1, 1], (30, 9 * depth))])
    weights = (127 * signs).reshape(32, 3, 3, depth)
    shape = (1, 8, 8, depth)
    model = convolution(weights, shape, zero_point, 9 * depth * 127 * max(127 - zero_point, 128 + zero_point) / 120)
    rows = [np.full(shape, value, np.int8) for value in (-128, 127)]
    wanted = [result(model, x, "scalar") for x in rows]
    assert len(np.unique(wanted)) > 2, "the sums must show in the output"
    for isa, (x, sums) in itertools.product(ISAS, zip(rows, wanted, strict=True)):
        np.testing.assert_array_equal(result(model, x, isa), sums, err_msg=isa)


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_all_sizes_give_litert_bits_on_any_number_of_threads(operator):
    rng = np.random.default_rng(19)
    sizes = [(1, 1), (3, 4), (4, 4), (6, 9), (7, 7), (13, 30), (16, 12), (3, 110)]
    cases = []
    for (height, width), (kind, zero_point), batch in itertools.product(sizes, [("int8", -5), ("uint8", 99)], (1, 2)):
        depth, channels = (40, 40) if operator.startswith("DEPTHWISE") else (48, 31)
        filters = (1, 3, 3, channels) if operator.startswith("DEPTHWISE") else (channels, 3, 3, depth)
        weights = rng.integers(-127, 128, filters)
        scale = 60 * np.sqrt(9 * (depth if operator == "CONV_2D" else 1)) * 74 / 50
        model = convolution(weights, (batch, height, width, depth), zero_point, scale, kind, operator)
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max + 1, (batch, height, width, depth)).astype(kind)
        cases.append((model, x, tq.Model(model).outputs[0].index))
    answers = oracle.ask("tensors", [(model, "BUILTIN_REF", [{0: x}], {}, [out]) for model, x, out in cases])
    features = [row["isa"] for row in tq._core.kernel_variants() if row["name"] == "gemm_i16" and row["available"]]
    for (model, x, out), answer in zip(cases, answers, strict=True):
        for isa, threads in itertools.product({*ISAS, *features}, (1, 2, 4)):
            np.testing.assert_array_equal(result(model, x, isa, threads), answer[0][out], err_msg=f"{isa} {x.shape}")


def test_listing():
    assert sum(row["chosen"] for row in ROWS) <= 1
    for isa in ISAS:
        tq._core._force_isa(isa)
        try:
            rows = [row for row in tq._core.kernel_variants() if row["name"] == "winograd_i8"]
        finally:
            tq._core._force_isa(None)
        assert [row["isa"] for row in rows if row["chosen"]] == [isa]
