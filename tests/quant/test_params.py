# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points against each rule written step by step in NumPy's own float32 and float64, or in fractions;
and, where they are installed, against the tools themselves."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import RANGES

import tq

f32 = np.float32
BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "int4": 4, "uint4": 4, "int2": 2}
RULES = ["toco", "tflite", "mlir", "power-of-two", "ai-edge-quantizer"]


def away(x):
    return math.copysign(math.floor(abs(Fraction(float(x))) + Fraction(1, 2)), x)


def nearest(zero_point, round_, low, high):
    if math.isnan(zero_point):  # 0 / 0, where the scale underflowed
        return low
    zero_point = float(zero_point)  # or NumPy would round `high` to float32 to compare
    return low if zero_point < low else high if zero_point > high else int(round_(zero_point))


def toco(lo, hi, q, half, bits):
    if lo == hi:
        return 0.0, 0
    if half:
        return max(-lo, hi) / half, None
    scale = (hi - lo) / (float(q[1]) - float(q[0]))
    from_lo, from_hi = q[0] - lo / scale, q[1] - hi / scale
    z = from_lo if abs(q[0]) + abs(lo / scale) < abs(q[1]) + abs(hi / scale) else from_hi
    return scale, nearest(z, away, *q)


def tflite(lo, hi, q, half, bits):
    lo, hi = f32(lo), f32(hi)
    if half:
        return max(-lo, hi) / f32(half), None
    scale = (hi - lo) / (f32(q[1]) - f32(q[0]))
    z = f32(q[0]) - lo / scale if scale != 0 else f32(q[0])
    return scale, nearest(z, away, *q)


def mlir(lo, hi, q, half, bits):
    if half:
        hi = max(-lo, hi)
        lo, q = -hi, (-half, half)
    if hi - lo <= 1e-6:
        lo, hi = min(lo, -5e-7), max(hi, 5e-7)
    scale = (f32(hi) - f32(lo)) / f32(q[1] - q[0])
    if half:
        return scale, None
    return scale, nearest(f32(q[0] - np.float64(lo) / np.float64(scale)), away, *q)


def power_of_two(lo, hi, q, half, bits):
    if lo == hi:
        return 0.0, None if half else q[0]
    exact = Fraction(float(max(-lo, hi))) if half else Fraction(float((hi - lo) / (float(q[1]) - float(q[0]))))
    if exact == 0:
        return 0.0, q[0]
    power = Fraction(2) ** -1100
    while power < exact:
        power *= 2
    scale = power / 2 ** (bits - 1) if half else power
    return float(scale), None if half else nearest(q[0] - lo / np.float64(float(scale)), away, *q)


def ai_edge(lo, hi, q, half, bits):
    lo, hi = f32(lo), f32(hi)
    if half:
        return np.maximum(max(-lo, hi), f32(1e-9)) / f32(half), None
    scale = np.maximum(hi - lo, f32(1e-9)) / f32(q[1] - q[0])
    return scale, nearest(f32(q[0]) - lo / scale, np.rint, *q)


ORACLES = dict(zip(RULES, [toco, tflite, mlir, power_of_two, ai_edge], strict=True))


def choose(lo, hi, dtype, symmetric, narrow, rule):
    """(scale, zero_point) by the oracles."""
    lo, hi = np.float64(min(float(lo), 0.0)), np.float64(max(float(hi), 0.0))
    low, high = RANGES[dtype]
    symmetric = symmetric or (dtype == "int16" and rule in ("tflite", "mlir", "power-of-two"))
    middle = 0 if low < 0 else 2 ** (BITS[dtype] - 1)
    half = high - middle if symmetric else None
    with np.errstate(all="ignore"):
        scale, zero_point = ORACLES[rule](lo, hi, (low + narrow, high), half, BITS[dtype])
        return f32(scale), middle if zero_point is None else zero_point


CASES = [
    (-1, 2),
    (0, 6),
    (-6, 0),
    (0.1, 1),
    (-2, -1),
    (-1, 1),
    (-1e-3, 5),
    (-0.3, 1e-7),
    (1e30, 2e30),
    (-3e-7, 2e-7),
    (0, 1e-6),
    (0, 1.1e-6),
    (-127.5, 127.5),
    (-128, 127),
    (-0.5, 254.5),
    (-1.5, 253.5),
    (-1e-20, 1e-20),
    (0, 5e-324),
    (-1e-323, 5e-324),
    (0, 1e-45),
    (0, 1e-38),
    (-255 / 2, 255 / 2),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_every_rule_dtype_and_option(rule, dtype, symmetric, narrow):
    for lo, hi in CASES:
        got = tq.choose_quantization_params(lo, hi, dtype, symmetric=symmetric, narrow_range=narrow, rule=rule)
        assert tuple(got) == choose(lo, hi, dtype, symmetric, narrow, rule), (lo, hi)


finite = st.floats(-1e30, 1e30)


@pytest.mark.parametrize("rule", RULES)
@given(
    ends=st.tuples(finite, finite), dtype=st.sampled_from(list(RANGES)), options=st.tuples(st.booleans(), st.booleans())
)
def test_every_rule_on_random_ranges(rule, ends, dtype, options):
    lo, hi = sorted(ends)
    got = tq.choose_quantization_params(lo, hi, dtype, symmetric=options[0], narrow_range=options[1], rule=rule)
    expected = choose(lo, hi, dtype, *options, rule)
    assert tuple(got) == expected or (got.scale == 0 and got.scale == expected[0])
    low, high = RANGES[dtype]
    assert low <= got.zero_point <= high


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4"])
def test_ranges_whose_zero_point_is_next_to_a_tie(rule, dtype):
    """Here every rounding on the way shows: of the scale, of min / scale, and which end the sum starts from."""
    rng = np.random.default_rng(8)
    low, high = RANGES[dtype]
    factor = rng.uniform(0.01, 100, 1000)
    below = rng.integers(0, high - low, factor.size) + 0.5
    lo, hi = -below * factor, (high - low - below) * factor
    ends = (lo, hi) if rule in ("toco", "power-of-two") else (lo.astype(f32), hi.astype(f32))
    got = tq.choose_quantization_params(*ends, dtype, rule=rule)
    expected = [choose(a, b, dtype, False, False, rule) for a, b in zip(*ends, strict=True)]
    np.testing.assert_array_equal(got.scale, [e[0] for e in expected])
    np.testing.assert_array_equal(got.zero_point, [e[1] for e in expected])


@pytest.mark.parametrize("rule", ["toco", "tflite", "mlir", "ai-edge-quantizer"])
@given(st.floats(-1e6, 0, width=32), st.floats(0, 1e6, width=32))
def test_the_range_is_representable_to_half_a_step(rule, lo, hi):
    if hi - lo < 1e-3:
        return
    scale, z = tq.choose_quantization_params(lo, hi, rule=rule)
    scale, z = float(scale), int(z)
    slack = 0.5 * scale * (1 + 1e-3)
    assert scale * (-128 - z) <= lo + slack and scale * (127 - z) >= hi - slack


def test_known_parameters():
    # -128 + 127.5 and 127 - 127.5 are the tie -0.5, which goes away from zero
    assert tuple(tq.choose_quantization_params(-1, 1)) == (f32(2 / 255), -1)
    assert tuple(tq.choose_quantization_params(0, 255, "uint8")) == (f32(1), 0)
    assert tuple(tq.choose_quantization_params(-128, 127)) == (f32(1), 0)
    assert tuple(tq.choose_quantization_params(-1, 1, "int16", rule="tflite")) == (f32(1) / f32(32767), 0)
    assert tuple(tq.choose_quantization_params(-3, 2, "int16", rule="power-of-two")) == (f32(4 / 32768), 0)
    assert tuple(tq.choose_quantization_params(-4, 2, "int16", rule="power-of-two")) == (f32(4 / 32768), 0)
    assert tuple(tq.choose_quantization_params(-7, 3, "int4", symmetric=True)) == (f32(1), 0)
    assert tuple(tq.choose_quantization_params(-1, 0.5, "int2", symmetric=True)) == (f32(1), 0)
    assert tuple(tq.choose_quantization_params(-127, 127, "uint8", symmetric=True)) == (f32(1), 128)


@pytest.mark.parametrize("rule", RULES)
def test_a_range_of_zeros(rule):
    expected = {
        "toco": (0, 0),
        "tflite": (0, -128),
        "mlir": (f32(1e-6) / f32(255), 0),
        "power-of-two": (0, -128),
        "ai-edge-quantizer": (f32(1e-9) / f32(255), -128),
    }[rule]
    if rule == "mlir":
        expected = choose(0, 0, "int8", False, False, rule)
        assert expected[0] > 0
    assert tuple(tq.choose_quantization_params(0, 0, rule=rule)) == expected


def test_precisions_differ():
    """There are ranges on which float32 and float64 give different zero points or scales."""
    rng = np.random.default_rng(1)
    hi = rng.uniform(0.1, 5, 20000).astype(f32)
    lo = -hi * ((rng.integers(1, 250, hi.size) + 0.5) / (255 - rng.integers(1, 250, hi.size))).astype(f32)
    lo[0], hi[0] = -1.5, 253.5  # a tie of the zero point, at -126.5
    results = {rule: tq.choose_quantization_params(lo, hi, rule=rule) for rule in RULES}
    for a, b in (("toco", "tflite"), ("toco", "mlir"), ("tflite", "ai-edge-quantizer")):
        same = (results[a].scale == results[b].scale) & (results[a].zero_point == results[b].zero_point)
        assert not same.all(), (a, b)


def test_arrays_give_per_axis_parameters():
    lo, hi = np.array([-1.0, 0, -5, -2]), np.array([1, 2.0, 5, 7])
    got = tq.choose_quantization_params(lo, hi, "int8", rule="tflite")
    assert type(got) is tq.QuantizationParams
    assert got.scale.dtype == np.float32 and got.zero_point.dtype == np.int32 and got.scale.shape == (4,)
    for i in range(4):
        assert (got.scale[i], got.zero_point[i]) == tuple(tq.choose_quantization_params(lo[i], hi[i], rule="tflite"))
    again = tq.choose_quantization_params(lo.astype(">f8")[::-1], hi.astype(f32)[::-1], rule="tflite")
    np.testing.assert_array_equal(again.scale, got.scale[::-1])
    assert tq.choose_quantization_params(-1, hi).scale.shape == (4,)
    assert tq.choose_quantization_params([], []).scale.shape == (0,)
    scalar = tq.choose_quantization_params(-1, 1)
    assert type(scalar.scale) is np.float32 and type(scalar.zero_point) is np.int32
    scale, zero_point = scalar
    assert (scale, zero_point) == (scalar.scale, scalar.zero_point)


def test_parameters_can_be_pickled():
    for made in (tq.choose_quantization_params([-1, 0], 2), tq.quantize_weights([[1.0, -2.0]], 0)):
        copy = pickle.loads(pickle.dumps(made))
        assert type(copy) is type(made)
        for a, b in zip(copy, made, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize("dtype", [np.int8, np.dtype("int8"), "int8"])
def test_dtypes_by_any_name(dtype):
    assert tuple(tq.choose_quantization_params(-1, 1, dtype)) == tuple(tq.choose_quantization_params(-1, 1))


def test_ml_dtypes_names():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("int4", "uint4", "int2"):
        got = tq.choose_quantization_params(-1, 2, getattr(ml_dtypes, name))
        assert tuple(got) == tuple(tq.choose_quantization_params(-1, 2, name))
    assert tuple(tq.choose_quantization_params(ml_dtypes.bfloat16(-1), f32(1))) == (f32(2 / 255), -1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.choose_quantization_params(1, 0), ValueError, "min is 1 and max is 0"),
        (lambda: tq.choose_quantization_params(0, math.nan), ValueError, "max is nan"),
        (lambda: tq.choose_quantization_params([0, -math.inf], 1), ValueError, "min is -inf"),
        (lambda: tq.choose_quantization_params(-1e308, 1e308), ValueError, "infinite scale"),
        (lambda: tq.choose_quantization_params(-3e38, 3e38, rule="tflite"), ValueError, "infinite scale"),
        (lambda: tq.choose_quantization_params(-1e308, 1e308, rule="power-of-two"), ValueError, "infinite scale"),
        (lambda: tq.choose_quantization_params(0, 1, "int3"), TypeError, "dtype is 'int3'"),
        (lambda: tq.choose_quantization_params(0, 1, np.float32), TypeError, "dtype is"),
        (lambda: tq.choose_quantization_params(0, 1, 3.5), TypeError, "dtype is 3.5"),
        (lambda: tq.choose_quantization_params(0, 1, rule="best"), ValueError, "rule is 'best'"),
        (lambda: tq.choose_quantization_params("0", 1), TypeError, "min has dtype"),
        (lambda: tq.choose_quantization_params([0, 0], [1, 1, 1]), ValueError, "broadcast"),
        (lambda: tq.bias_quantization_params(math.nan, 1), ValueError, "input_scale is nan; it must be finite and not"),
        (lambda: tq.bias_quantization_params(-1, -1), ValueError, "input_scale is -1; it must be finite and not neg"),
        (lambda: tq.bias_quantization_params(np.inf, 0), ValueError, "input_scale is inf"),
        (lambda: tq.bias_quantization_params(1e30, 1e30), ValueError, "input_scale * weight_scale is inf"),
        (lambda: tq.quantize_bias(1, 1, -1), ValueError, "weight_scale is -1; it must be finite and not negative"),
        (lambda: tq.quantize_bias(1, 1, 1, np.int8), ValueError, "dtype is 'int8'; it must be 'int32' or 'int64'"),
        (lambda: tq.quantize_bias(1, 1, 1, None), TypeError, "dtype is None"),
        (lambda: tq.choose_quantization_params(0, 1, symmetric=np.ones(2)), TypeError, "symmetric is a numpy.ndarray"),
        (lambda: tq.choose_quantization_params(0, 1, narrow_range=np.ones(2)), TypeError, "narrow_range is a numpy"),
        (lambda: tq.quantize_bias(1, 1, 1, "int8"), ValueError, "dtype is 'int8'"),
        (lambda: tq.quantize_weights([[1.0]], 2), ValueError, "axis is 2; an array of rank 2 needs one from -2 to 1"),
        (lambda: tq.quantize_weights([[1.0]], "a"), TypeError, "axis is 'a'"),
        (lambda: tq.quantize_weights([1.0, math.inf], 0), ValueError, "w holds inf in channel 1"),
        (lambda: tq.quantize_weights([1.0, math.nan, 7.0], None), ValueError, "w holds nan in channel 0"),
        (lambda: tq.quantize_weights([1.0], 0, "uint4"), ValueError, "dtype is 'uint4'"),
        (lambda: tq.quantize_weights([1.0], 0, "int4", rule="mlir"), ValueError, "rule 'mlir' needs 'int8'"),
        (lambda: tq.quantize_weights([1.0], 0, rule="x"), ValueError, "rule is 'x'"),
        (lambda: tq.quantize_weights(["a"], 0), TypeError, "w has dtype"),
        (lambda: tq.quantize_weights([1.0], 0, scale=1.0), ValueError, "scale has shape (); it must be (1,)"),
        (lambda: tq.quantize_weights([1.0], None, scale=[1.0]), ValueError, "scale has shape (1,); it must be ()"),
        (lambda: tq.quantize_weights([1.0], 0, scale=[0.0]), ValueError, "scale is 0 in channel 0"),
        (lambda: tq.quantize_weights([1.0], 0, scale=[1e-45]), ValueError, "scale is 1.4013e-45 in channel 0"),
        (lambda: tq.quantize_weights([1e300], 0), ValueError, "w holds inf in channel 0"),
        (lambda: tq.fit_scales_to_bias([1.0, math.nan], 1, 0), ValueError, "weight_scale is nan"),
        (lambda: tq.fit_scales_to_bias(1.0, 0, 0), ValueError, "input_scale is 0; it must be finite and over 0"),
        (lambda: tq.fit_scales_to_bias(1.0, 1, [0, math.inf]), ValueError, "b holds inf"),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


# ---- bias ----


@given(st.floats(0, 1e3, width=32), st.lists(st.floats(0, 1e3, width=32), min_size=1))
def test_bias_parameters(input_scale, weight_scales):
    got = tq.bias_quantization_params(input_scale, np.array(weight_scales, f32))
    np.testing.assert_array_equal(got.scale, [f32(input_scale) * f32(s) for s in weight_scales])
    assert got.zero_point.tolist() == [0] * len(weight_scales)


@given(st.floats(-1e6, 1e6, width=32), st.floats(2**-20, 1, width=32), st.floats(2**-20, 1, width=32))
def test_quantized_biases(b, input_scale, weight_scale):
    scale = f32(input_scale) * f32(weight_scale)
    with np.errstate(all="ignore"):
        wanted = int(away(f32(b) * (f32(1) / scale)))
    assert tq.quantize_bias(b, input_scale, weight_scale) == max(-(2**31) + 1, min(2**31 - 1, wanted))
    assert tq.quantize_bias(b, input_scale, weight_scale, "int64") == wanted


def test_quantized_biases_saturate():
    assert tq.quantize_bias([1e30, -1e30, math.nan, 0], 1, 1).tolist() == [2**31 - 1, -(2**31) + 1, 0, 0]
    assert tq.quantize_bias([1e30, -1e30], 1, 1, "int64").tolist() == [2**63 - 1, -(2**63) + 1]
    assert tq.quantize_bias([1.0, math.inf], 0, 1).tolist() == [0, 0]
    assert tq.quantize_bias([2.5, -2.5, 1.5], 1, 1).tolist() == [3, -3, 2]


# ---- weights ----


def weights(w, axis, half, rule, lowest=None):
    """(quantized values, scales) by the formulas, channel by channel."""
    w = np.asarray(w, f32)
    moved = w[None] if axis is None else np.moveaxis(w, axis, 0)
    codes, scales = np.zeros(moved.shape, np.int64), []
    for i, channel in enumerate(moved):
        bound = np.abs(channel).max(initial=0)
        with np.errstate(all="ignore"):
            if rule == "tflite":
                scale = f32(1) if bound == 0 and axis is None else bound / f32(half)
                q = channel * (f32(half) / bound if bound else f32(0))
            elif rule == "mlir":
                b = max(bound, f32(5e-7))
                scale = (b - -b) / f32(2 * half)
                q = channel * (f32(1) / scale if axis is not None else f32(half) / bound if bound else f32(0))
            else:
                scale = np.maximum(bound, f32(1e-9)) / f32(half)
                q = channel / scale
        round_ = np.rint if rule == "ai-edge-quantizer" else np.vectorize(away, otypes=[np.float64])
        codes[i] = np.clip(round_(np.nan_to_num(q, nan=0, posinf=1e9, neginf=-1e9)), lowest or -half, half)
        scales.append(scale)
    if axis is None:
        return codes[0], scales[0]
    return np.moveaxis(codes, 0, axis), np.array(scales, f32)


WEIGHT_CASES = [
    ("int8", "mlir"),
    *((d, r) for r in ("tflite", "ai-edge-quantizer") for d in ("int8", "int16", "int4", "int2")),
]


@pytest.mark.parametrize(("dtype", "rule"), WEIGHT_CASES)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_weights(dtype, rule, axis):
    rng = np.random.default_rng(3)
    w = (rng.normal(size=(4, 5, 6)) * 10.0 ** rng.integers(-8, 3, (4, 5, 6))).astype(f32)
    w[2] = 0
    w[:, 1] = 0
    w[..., 3] = rng.normal(size=(4, 5)) * 1e-8
    lowest = {"int4": -8, "int2": -2}.get(dtype) if rule == "ai-edge-quantizer" else None
    codes, scales = weights(w, axis, RANGES[dtype][1], rule, lowest)
    got = tq.quantize_weights(w, axis, dtype, rule=rule)
    np.testing.assert_array_equal(got.codes, codes)
    np.testing.assert_array_equal(got.scale, scales)
    assert got.codes.dtype == (np.int16 if dtype == "int16" else np.int8) and got.scale.dtype == np.float32
    assert np.shape(got.scale) == (() if axis is None else (w.shape[axis],))
    for variant in (np.asfortranarray(w), w.astype(">f4"), w[::-1, :, ::-1][::-1, :, ::-1], w.astype(np.float64)):
        again = tq.quantize_weights(variant, axis, dtype, rule=rule)
        np.testing.assert_array_equal(again.codes, codes)


def near_ties(half, rng, n=4000):
    """Weights next to ties of a channel whose greatest is bound: where the rules' arithmetics part."""
    bound = rng.uniform(0.1, 2, n).astype(f32)
    k = rng.integers(-half, half, n)
    w = ((k + 0.5) * (bound.astype(np.float64) / half)).astype(f32)
    return np.stack([bound, w, np.nextafter(w, f32(9)), np.nextafter(w, f32(-9))], 1)


@pytest.mark.parametrize(("dtype", "rule"), WEIGHT_CASES)
def test_weights_next_to_ties(dtype, rule):
    half = RANGES[dtype][1]
    w = near_ties(half, np.random.default_rng(half))
    codes, scales = weights(
        w, 0, half, rule, {"int4": -8, "int2": -2}.get(dtype) if rule == "ai-edge-quantizer" else None
    )
    got = tq.quantize_weights(w, 0, dtype, rule=rule)
    np.testing.assert_array_equal(got.codes, codes)
    np.testing.assert_array_equal(got.scale, scales)


def test_the_weight_rules_part_next_to_ties():
    w = near_ties(127, np.random.default_rng(0))
    codes = [tq.quantize_weights(w, 0, rule=rule).codes for rule in ("mlir", "tflite", "ai-edge-quantizer")]
    assert (codes[0] != codes[1]).any() and (codes[1] != codes[2]).any() and (codes[0] != codes[2]).any()


def test_weights_defaults_and_empties():
    w = near_ties(127, np.random.default_rng(0))
    np.testing.assert_array_equal(tq.quantize_weights(w, 0).codes, tq.quantize_weights(w, 0, rule="mlir").codes)
    for dtype in ("int4", "int2", "int16"):
        expected = tq.quantize_weights(w, 0, dtype, rule="ai-edge-quantizer").codes
        np.testing.assert_array_equal(tq.quantize_weights(w, 0, dtype, rule=None).codes, expected)
    assert tq.quantize_weights(np.zeros((0, 3)), 1).scale.shape == (3,)
    assert tq.quantize_weights(np.zeros((1 << 40, 0)), 1).codes.shape == (1 << 40, 0)
    assert tq.quantize_weights(f32(-3.0), None).codes == -127


@pytest.mark.parametrize("rule", ["mlir", "tflite", "ai-edge-quantizer"])
def test_weights_with_given_scales(rule):
    w = near_ties(127, np.random.default_rng(4))[:500]
    scale = (np.abs(w).max(1) / 100).astype(f32)
    got = tq.quantize_weights(w, 0, rule=rule, scale=scale)
    np.testing.assert_array_equal(got.scale, scale)
    divides = rule == "ai-edge-quantizer"
    q = w / scale[:, None] if divides else w * (f32(1) / scale)[:, None]
    round_ = np.rint if divides else np.vectorize(away, otypes=[np.float64])
    np.testing.assert_array_equal(got.codes, np.clip(round_(q), -127, 127))
    assert tq.quantize_weights(f32(3), None, rule=rule, scale=0.5).codes == 6


def fit(weight_scale, input_scale, b, per_channel):
    most = 2**30 - 1
    usual = f32(input_scale) * f32(weight_scale)
    with np.errstate(all="ignore"):
        code = np.float64(abs(f32(b))) / np.float64(usual) if b else 0.0
    if code < most or (per_channel and code == most):
        return f32(weight_scale), usual
    new = float(abs(f32(b))) / most
    return f32(new / float(f32(input_scale))), f32(new)


@given(
    st.floats(2**-40, 1, width=32), st.floats(2**-20, 1, width=32), st.lists(st.floats(-1e5, 1e5, width=32), min_size=1)
)
def test_scales_that_fit_a_bias(weight_scale, input_scale, b):
    got = tq.fit_scales_to_bias(np.full(len(b), weight_scale), input_scale, b)
    expected = [fit(weight_scale, input_scale, v, True) for v in b]
    np.testing.assert_array_equal(got, np.array(expected, f32).T)
    assert (np.abs(tq.quantize_bias(b, got[1], 1).astype(np.int64)) <= 2**30 + 64).all()
    assert tq.fit_scales_to_bias(weight_scale, input_scale, b) == fit(
        weight_scale, input_scale, max(map(abs, b)), False
    )


def test_weights_equal_ai_edge_quantizer():
    tensors = pytest.importorskip(
        "ai_edge_quantizer.algorithms.uniform_quantize.uniform_quantize_tensor",
        reason="ai-edge-quantizer is not installed",
    )
    from ai_edge_quantizer import qtyping

    rng = np.random.default_rng(11)
    shapes = [near_ties(127, rng), rng.normal(size=(64, 33)).astype(f32), np.zeros((2, 3), f32), near_ties(7, rng)]
    for w in shapes:
        for dtype, bits in (("int8", 8), ("int4", 4), ("int2", 2), ("int16", 16)):
            granularity = qtyping.QuantGranularity.CHANNELWISE
            z, scale = tensors.tensor_zp_scale_from_min_max(
                w.min(1, keepdims=True), w.max(1, keepdims=True), bits, True, granularity
            )
            params = qtyping.UniformQuantParams(bits, 0, scale, z, True)
            codes = tensors.uniform_quantize(w, params)
            got = tq.quantize_weights(w, 0, dtype, rule="ai-edge-quantizer")
            np.testing.assert_array_equal(got.codes, codes)
            np.testing.assert_array_equal(got.scale, scale[:, 0])
    lo = (-rng.uniform(0, 5, 3000) * rng.integers(0, 2, 3000)).astype(f32)
    hi = (rng.uniform(0, 5, 3000) * rng.integers(0, 2, 3000)).astype(f32)
    for symmetric in (False, True):
        z, scale = tensors.tensor_zp_scale_from_min_max(lo, hi, 8, symmetric, qtyping.QuantGranularity.TENSORWISE)
        got = tq.choose_quantization_params(lo, hi, symmetric=symmetric, rule="ai-edge-quantizer")
        np.testing.assert_array_equal(got.scale, scale)
        np.testing.assert_array_equal(got.zero_point, z)


def converted(tf, w, b, lo, hi):
    """TFLiteConverter's int8 model of a convolution or a matrix product whose input spans lo to hi."""

    shape = (1, 4, 4, w.shape[2]) if w.ndim == 4 else (2, w.shape[0])

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
        def f(self, x):
            return tf.nn.conv2d(x, w, 1, "SAME") + b if w.ndim == 4 else tf.matmul(x, w) + b

    def batches():
        x = np.random.default_rng(0).uniform(lo, hi, shape).astype(f32)
        x.flat[0], x.flat[1] = lo, hi
        yield [x]

    module = Module()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = batches
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def quantized_tensors(model):
    """{operand name: (quantized values, scales, zero point)} of the model's one convolution or matrix product."""
    operator = next(op for op in tq.Model(model).operators if len(op.inputs) == 3)
    return {
        name: (part.data, part.quantization.scale, int(part.quantization.zero_point[0]))
        for name, part in zip(("input", "weights", "bias"), operator.inputs, strict=True)
    }


def test_everything_equals_tflite_converter():
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    rng = np.random.default_rng(17)
    for trial in range(10):
        ends = np.sort(rng.normal(size=2) * 10.0 ** rng.uniform(-2, 2)).astype(f32)
        if trial % 2:  # a matrix product, rows near ties, transposed on its way
            w = near_ties(127, rng, 24).T.copy()
        else:
            w = rng.normal(size=(3, 3, 3, 8)).astype(f32)
            w[..., 2] = 0
        b = (rng.normal(size=w.shape[-1]) * 10.0 ** rng.uniform(-4, 1)).astype(f32)
        if trial % 2 == 0:
            b[2] = 5 * np.abs(ends).max()  # far beyond the values of a channel without weights
        found = quantized_tensors(converted(tf, w, b, *ends))
        input_params = tq.choose_quantization_params(*ends, rule="mlir")
        assert (input_params.scale, input_params.zero_point) == (found["input"][1][0], found["input"][2])
        moved = np.moveaxis(w, -1, 0)
        got = tq.quantize_weights(moved, 0)
        scale, bias_scale = tq.fit_scales_to_bias(got.scale, input_params.scale, b)
        fitted = tq.quantize_weights(moved, 0, scale=scale)
        np.testing.assert_array_equal(scale, found["weights"][1])
        np.testing.assert_array_equal(fitted.codes, found["weights"][0])
        np.testing.assert_array_equal(bias_scale, found["bias"][1])
        np.testing.assert_array_equal(tq.quantize_bias(b, bias_scale, 1), found["bias"][0])
        if trial % 2:  # no channel needs a larger scale for its bias: the plain functions agree
            np.testing.assert_array_equal(got.scale, scale)
            np.testing.assert_array_equal(got.codes, fitted.codes)
            np.testing.assert_array_equal(tq.quantize_bias(b, input_params.scale, got.scale), found["bias"][0])
        else:
            assert (got.scale != scale).any()
