# SPDX-License-Identifier: Apache-2.0
"""Weights in blocks, and those of old uint8 models, against their sources' formulas; and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import build_model, operator, tensor

import tq

f32 = np.float32
RANGE = {"int8": (-127, 127), "int16": (-32767, 32767), "int4": (-8, 7), "int2": (-2, 1)}


def blockwise(w, axis, size, dtype):
    """ai-edge-quantizer's formulas, an array operation at a time; bfloat16 by ml_dtypes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    axis %= w.ndim
    low, high = RANGE[dtype]
    split = w.reshape(*w.shape[:axis], w.shape[axis] // size, size, *w.shape[axis + 1 :])
    bound = np.maximum(np.abs(split).max(axis + 1, initial=0), f32(1e-9))
    scale = (bound / f32(high)).astype(ml_dtypes.bfloat16).astype(np.float16).astype(f32)
    with np.errstate(all="ignore"):
        q = np.clip(np.rint(split / np.expand_dims(scale, axis + 1)), low, high)
    return np.nan_to_num(q).reshape(w.shape).astype(np.int64), scale


def hard_weights(shape, seed):
    rng = np.random.default_rng(seed)
    w = (rng.normal(size=shape) * 10.0 ** rng.integers(-9, 4, (*shape[:-1], 1))).astype(f32)
    w[..., ::7] = 0
    w[0] = 0
    return w


@pytest.mark.parametrize("dtype", RANGE)
@pytest.mark.parametrize(("axis", "size"), [(-1, 32), (2, 1), (1, 4), (0, 3), (-2, 2), (2, 64)])
def test_blocks(dtype, axis, size):
    w = hard_weights((6, 8, 64), 5)
    codes, scale = blockwise(w, axis, size, dtype)
    for given_w in (w, np.asfortranarray(w), w.astype(">f8"), w[::-1, :, ::-1][::-1, :, ::-1]):
        got = tq.quantize_weights(given_w, axis, dtype, block_size=size, rule="ai-edge-quantizer")
        np.testing.assert_array_equal(got.codes, codes)
        np.testing.assert_array_equal(got.scale, scale)
    assert got.scale.dtype == f32 and np.array_equal(got.scale.astype(np.float16).astype(f32), got.scale)
    assert got.zero_point == 0 and got.codes.dtype == (np.int16 if dtype == "int16" else np.int8)


@given(st.lists(st.floats(-60000, 60000, width=32), min_size=1, max_size=12), st.sampled_from(sorted(RANGE)))
def test_blocks_of_any_values(values, dtype):
    w = np.array(values, f32)
    codes, scale = blockwise(w, 0, len(w), dtype)
    got = tq.quantize_weights(w, 0, dtype, block_size=len(w), rule="ai-edge-quantizer")
    assert got.codes.tolist() == codes.tolist() and got.scale.tolist() == scale.tolist()


def test_scales_of_blocks_round_twice():
    """bfloat16 first: 1 + 2^-8 + 2^-11 is above its tie; and below 2^-14 float16 rounds once more."""
    for scale, wanted in [
        (1 + 2**-8, 1),
        (1 + 3 * 2**-8, 1 + 2**-6),
        (1 + 2**-8 + 2**-11, 1 + 2**-7),
        (2**-15 * (1 + 2**-7), 2**-15 * (1 + 2**-7)),
        (2**-18 * (1 + 2**-7), 2**-18),
        (2**-18 * (1 + 3 * 2**-7), 2**-18 * (1 + 2**-5)),
        (2**-24 * 0.75, 2**-24),
        (2**-24 * 0.5, 0),
        (65280, 65280),
    ]:
        got = tq.quantize_weights([scale], 0, "int2", block_size=1)
        assert got.scale.tolist() == [wanted], scale
        assert got.codes.tolist() == [1]
    assert tq.quantize_weights([-0.0, 1e-10, -1e-10], 0, "int4", block_size=3).codes.tolist() == [0, 7, -8]
    with pytest.raises(ValueError, match=r"w holds 65536 in block 1; .* as float16"):
        tq.quantize_weights([[1, 1], [65536, 0]], 1, "int2", block_size=2)


def test_blocks_give_what_the_array_functions_take():
    w = hard_weights((4, 64), 2)[1:]
    w[np.abs(w) < 1e-3] = 0.01
    codes, scale = tq.quantize_weights(w, None, "int4", block_size=32)
    assert scale.shape == (3, 2)
    np.testing.assert_array_equal(tq.dequantize(codes, scale, block_size=32), codes * np.repeat(scale, 32, 1))
    fitted = tq.quantize_weights(w, 1, "int4", block_size=32, scale=scale)
    np.testing.assert_array_equal(fitted.codes, codes)
    np.testing.assert_array_equal(fitted.scale, scale)
    scale[1, 1] = 0.1
    with pytest.raises(ValueError, match=r"scale is 0\.1 in block 3; float16, in which"):
        tq.quantize_weights(w, 1, "int4", block_size=32, scale=scale)


@pytest.mark.parametrize("shape", [(0, 64), (4, 0), (64, 0), (0, 0, 32), (2, 64, 0)])
def test_no_weights_in_blocks(shape):
    for axis in range(len(shape)):
        if shape[axis] % 32 == 0:
            got = tq.quantize_weights(np.zeros(shape), axis, "int4", block_size=32)
            assert got.codes.shape == shape
            assert got.scale.shape == tuple(n // 32 if i == axis else n for i, n in enumerate(shape))


# ---- toco ----


def toco(w, dtype, narrow, low=None, high=None):
    """QuantizeBuffer, and GetOrComputeMinMax where no range is given, in float64."""
    qmin, qmax = {"uint8": (0, 255), "int16": (-32768, 32767)}[dtype]
    if low is None:
        low, high = min(float(np.min(w, initial=0)), 0), max(float(np.max(w, initial=0)), 0)
        high = 1.0 if low == high else high
    first = qmin + narrow
    scale = (high - low) / (qmax - first)
    from_min, from_max = first - low / scale, qmax - high / scale
    nearer = abs(first) + abs(low / scale) < abs(qmax) + abs(high / scale)
    zero = min(max(from_min if nearer else from_max, first), qmax)
    zero = int(np.floor(zero + 0.5) if zero >= 0 else -np.floor(-zero + 0.5))
    scaled = zero + (1 / scale) * np.asarray(w, np.float64)
    rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    codes = np.clip(rounded, qmin, qmax).astype(np.int64)
    return codes + (codes == qmin) * narrow, f32(scale), zero


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
@pytest.mark.parametrize("narrow", [False, True])
def test_toco(dtype, narrow):
    rng = np.random.default_rng(7)
    for trial in range(40):
        w = (rng.normal(size=(3, 5, 20)) * 10.0 ** rng.integers(-8, 4) + rng.normal() * (trial % 3)).astype(f32)
        ranges = [(None, None), (-2.5, 3.25), (0.0, 1.0), (-1e-3, 0.0)]
        for low, high in ranges:
            codes, scale, zero = toco(w, dtype, narrow, low, high)
            got = tq.quantize_weights(w, None, dtype, rule="toco", min=low, max=high, narrow_range=narrow)
            np.testing.assert_array_equal(got.codes, codes)
            assert (got.scale, got.zero_point) == (scale, zero)
            assert got.codes.dtype == dtype and got.zero_point.dtype == np.int32


def test_toco_next_to_ties():
    """float64 keeps apart what float32 would not: each weight beside a tie, by its own last place."""
    scale = (3.25 + 2.5) / 255
    w = ((np.arange(-108, 140) + 0.5) * scale).astype(f32)
    w = np.concatenate([w, np.nextafter(w, f32(9)), np.nextafter(w, f32(-9))])
    codes, _, _ = toco(w, "uint8", False, -2.5, 3.25)
    got = tq.quantize_weights(w, None, "uint8", min=-2.5, max=3.25)
    np.testing.assert_array_equal(got.codes, codes)
    assert (tq.quantize(w, got.scale, got.zero_point, dtype="uint8") != codes).any()


def test_toco_of_zeros():
    got = tq.quantize_weights(np.zeros(3), None, "uint8")
    assert (got.codes.tolist(), got.scale, got.zero_point) == ([0, 0, 0], f32(1 / 255), 0)
    assert tq.quantize_weights([], None, "uint8").scale == f32(1 / 255)
    got = tq.quantize_weights([0.0], None, "uint8", min=0, max=0)
    assert (got.codes.tolist(), got.scale, got.zero_point) == ([0], 0, 0)
    assert tq.quantize_weights([-5.0, 0.0], None, "uint8", min=-1, max=1, narrow_range=True).codes.tolist() == [1, 128]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (([[1.0, 2, 3]], 1), {"block_size": 2}, ValueError, "block_size is 2: it must divide the length of axis 1"),
        (([1.0], 0), {"block_size": 0}, ValueError, "block_size is 0: it must be from 1"),
        (([1.0], 0), {"block_size": 1.0}, TypeError, "block_size is a float"),
        ((1.0, None), {"block_size": 1}, ValueError, "axis is -1; an array of no dimensions has no axis"),
        (([1.0], 0), {"block_size": 1, "rule": "mlir"}, ValueError, "rule 'mlir' has no blocks"),
        (([1.0], 0), {"block_size": 1, "rule": "tflite"}, ValueError, "rule 'tflite' has no blocks"),
        (([1.0], 0, "uint8"), {"block_size": 1}, ValueError, "rule 'toco' has no blocks"),
        (([1.0, 2], 0), {"block_size": 1, "scale": [1]}, ValueError, r"scale has shape (1,); it must be (2,)"),
        (([1.0, 2], 0), {"block_size": 1, "scale": [1, -1]}, ValueError, "scale is -1 in block 1"),
        (([1.0, np.inf], 0), {"block_size": 1}, ValueError, "w holds inf in block 1"),
        (([1.0], 0, "uint8"), {}, ValueError, "axis is 0; rule 'toco' has one scale"),
        (([1.0], None, "uint8"), {"scale": 1}, ValueError, "scale is given; rule 'toco' takes min and max"),
        (([1.0], None), {"min": 0}, ValueError, "min is given; only rule 'toco'"),
        (([1.0], None), {"max": 0}, ValueError, "max is given; only rule 'toco'"),
        (([1.0], None), {"narrow_range": True}, ValueError, "narrow_range is given; only rule 'toco'"),
        (([1.0], None, "uint8"), {"min": [1, 2]}, ValueError, "min has 2 values"),
        (([1.0], None, "uint8"), {"min": "a"}, TypeError, "min has dtype"),
        (([1.0], None, "uint8"), {"min": 2, "max": 1}, ValueError, "min is 2 and max is 1"),
        (([1.0], None, "uint8"), {"max": np.nan}, ValueError, "max is nan"),
        (([1.0], None, "uint8"), {"min": 0, "max": 0}, ValueError, "w holds 1, and min and max are 0"),
        (([np.nan], None, "uint8"), {}, ValueError, "w holds nan; weights must be finite"),
        (([-np.inf], None, "uint8"), {"min": 0, "max": 1}, ValueError, "w holds inf; weights must be finite"),
        (([1.0], None, "int8"), {"rule": "toco"}, ValueError, "dtype is 'int8'; rule 'toco' needs"),
        (([1.0], None, "uint8"), {"rule": "mlir"}, ValueError, "dtype is 'uint8'; rule 'mlir' needs 'int8'"),
    ],
)
def test_errors_name_the_argument(arguments, options, error, words):
    with pytest.raises(error) as caught:
        tq.quantize_weights(*arguments, **options)
    assert words in str(caught.value)


# ---- the package itself ----


def test_blocks_equal_ai_edge_quantizer():
    tensors = pytest.importorskip(
        "ai_edge_quantizer.algorithms.uniform_quantize.uniform_quantize_tensor",
        reason="ai-edge-quantizer is not installed",
    )
    from ai_edge_quantizer import qtyping

    granularity = qtyping.QuantGranularity.BLOCKWISE_32
    for seed in range(5):
        w = hard_weights((16, 128), seed)
        split = w.reshape(16, 4, 32)
        for dtype, bits in (("int8", 8), ("int4", 4), ("int2", 2)):
            z, scale = tensors.tensor_zp_scale_from_min_max(split.min(2), split.max(2), bits, True, granularity)
            params = qtyping.UniformQuantParams(bits, 1, scale, z, True, block_size=32)
            with np.errstate(all="ignore"):
                codes = tensors.uniform_quantize(w, params, True)
            got = tq.quantize_weights(w, 1, dtype, rule="ai-edge-quantizer", block_size=32)
            np.testing.assert_array_equal(got.scale, scale)
            np.testing.assert_array_equal(got.codes, codes)


@pytest.mark.parametrize(("bits", "size"), [(4, 32), (8, 32), (4, 64), (2, 32)])
def test_a_model_that_ai_edge_quantizer_wrote(bits, size):
    quantizer = pytest.importorskip("ai_edge_quantizer.quantizer", reason="ai-edge-quantizer is not installed")
    from ai_edge_quantizer import qtyping

    w = (np.random.default_rng(bits).normal(size=(24, 128)) * 0.1).astype(f32)
    w[3, 32:64] *= 100
    tensors = [tensor("x", [1, 128]), tensor("w", [24, 128], data=w), tensor("y", [1, 24])]
    product = operator("FULLY_CONNECTED", [0, 1, -1], [2])
    model = build_model(tensors, [product], [0], [2])
    q = quantizer.Quantizer(bytearray(model))
    q.update_quantization_recipe(
        regex=".*",
        operation_name=qtyping.TFLOperationName.FULLY_CONNECTED,
        op_config=qtyping.OpQuantizationConfig(
            weight_tensor_config=qtyping.TensorQuantizationConfig(
                num_bits=bits, granularity=qtyping.QuantGranularity[f"BLOCKWISE_{size}"]
            ),
            compute_precision=qtyping.ComputePrecision.INTEGER,
            skip_checks=True,
        ),
    )
    written = next(t for t in tq.Model(bytes(q.quantize().quantized_model)).tensors if t.name == "w")
    got = tq.quantize_weights(w, 1, f"int{bits}", rule="ai-edge-quantizer", block_size=size)
    np.testing.assert_array_equal(written.data, got.codes)
    np.testing.assert_array_equal(written.quantization.scale.reshape(got.scale.shape), got.scale)
    assert written.quantization.block_size == size
