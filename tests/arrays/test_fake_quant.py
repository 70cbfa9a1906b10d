# SPDX-License-Identifier: Apache-2.0
"""Fake quantization against the formulas in NumPy's float32, LiteRT's operator, and TensorFlow's where installed."""

import math

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import build_model, operator, tensor

import tq

f32 = np.float32


def nudge(lo, hi, bits, narrow):
    """The nudged range and scale, one float32 operation a step."""
    lo, hi, qmin, qmax = f32(lo), f32(hi), f32(narrow), f32(2**bits - 1)
    scale = (hi - lo) / (qmax - qmin)
    z = qmin - lo / scale
    z = qmin if z < qmin else qmax if z > qmax else f32(math.floor(float(z) + 0.5))
    return (qmin - z) * scale, (qmax - z) * scale, scale


def fake(x, lo, hi, bits=8, narrow=False, rule="tflite", per_channel=False):
    x = np.asarray(x, f32)
    if lo == 0 and hi == 0:
        return np.zeros_like(x)
    low, high, scale = nudge(lo, hi, bits, narrow)
    with np.errstate(invalid="ignore"):
        shifted = np.minimum(np.maximum(x, low), high) - low
        if rule == "tflite":
            steps = np.floor((shifted * (f32(1) / scale)).astype(np.float64) + 0.5).astype(f32)  # exact in float64
            return steps * scale + low
        zero = np.floor(-low * (f32(1) / scale) + f32(0.5))
        if per_channel:
            return np.floor(shifted * (f32(2**bits - 1 - narrow) / (f32(hi) - f32(lo))) - zero + f32(0.5)) * scale
        return np.floor(shifted / scale - zero + f32(0.5)) * scale


RANGES = [
    (-1, 1),
    (-1, 2),
    (0, 6),
    (-6, 0),
    (1, 2),
    (-2, -1),
    (-0.1, 127.3),
    (-3e-5, 1e-4),
    (-1e30, 2e30),
    (-0.5, 254.5),
    (-10, 0.001),
]


def probes(lo, hi, bits, narrow, seed=0):
    """Values across the range, on every sixteenth tie and next to it, outside, and special ones."""
    low, high, scale = (float(v) for v in nudge(lo, hi, bits, narrow))
    rng = np.random.default_rng(seed)
    inside = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), 500)
    ties = low + (rng.integers(0, 2**bits - 1, 300) + 0.5) * scale
    points = np.concatenate([inside, ties, low + rng.integers(0, 2**bits, 200) * scale, [0, -0.0, low, high]]).astype(
        f32
    )
    points = np.concatenate([points, np.nextafter(points, f32(np.inf)), np.nextafter(points, f32(-np.inf))])
    return np.concatenate([points, np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45], f32)])


@pytest.mark.parametrize("rule", ["tflite", "tensorflow"])
@pytest.mark.parametrize("bits", [2, 4, 7, 8, 16])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_formula(rule, bits, narrow):
    for lo, hi in RANGES:
        x = probes(lo, hi, bits, narrow)
        got = tq.fake_quant(x, lo, hi, bits, narrow, rule=rule)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, fake(x, lo, hi, bits, narrow, rule))
        got = tq.fake_quant(x.reshape(1, -1), lo, hi, bits, narrow, 0, rule=rule)
        np.testing.assert_array_equal(got[0], fake(x, lo, hi, bits, narrow, rule, per_channel=True))


@given(
    st.floats(-1e6, 1e6, width=32),
    st.floats(-1e6, 1e6, width=32),
    st.integers(2, 16),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_formula_on_random_ranges(a, b, bits, narrow, seed):
    lo, hi = min(a, b), max(a, b)
    if hi - lo < 1e-30:
        return
    x = probes(lo, hi, bits, narrow, seed)
    for rule in ("tflite", "tensorflow"):
        np.testing.assert_array_equal(
            tq.fake_quant(x, lo, hi, bits, narrow, rule=rule), fake(x, lo, hi, bits, narrow, rule)
        )


def test_the_result_is_a_quantized_value_of_the_range():
    x = np.linspace(-3, 3, 10001, dtype=f32)
    y = tq.fake_quant(x, -1, 2)
    assert len(np.unique(y)) == 256 and 0 in tq.fake_quant(x, -1, 2, rule="tensorflow")
    assert len(np.unique(tq.fake_quant(x, -1, 2, narrow_range=True))) == 255
    assert len(np.unique(tq.fake_quant(x, -1, 2, num_bits=3))) == 8
    np.testing.assert_array_equal(tq.fake_quant(y, -1, 2), y)


def test_special_values():
    low, _high, _ = nudge(-1, 1, 8, False)
    got = tq.fake_quant([np.nan, np.inf, -np.inf], -1, 1)
    assert math.isnan(got[0]) and got[2] == low
    assert got[1] == fake([np.inf], -1, 1)[0]
    np.testing.assert_array_equal(tq.fake_quant([1.0, np.nan, -5], 0, 0), [0, 0, 0])


def test_per_axis_equals_slices():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 4, 5)).astype(f32)
    for axis in (0, 1, 2, -1, -3):
        n = x.shape[axis]
        lo, hi = -rng.uniform(0.1, 2, n).astype(f32), rng.uniform(0.1, 2, n).astype(f32)
        lo[1] = hi[1] = 0
        dy = rng.normal(size=x.shape).astype(f32)
        y = tq.fake_quant(x, lo, hi, 4, True, axis)
        dx, dmin, dmax = tq.fake_quant_gradient(dy, x, lo, hi, 4, True, axis)
        assert dmin.shape == dmax.shape == (n,) and dmin.dtype == np.float32
        for i in range(n):
            at = (slice(None),) * (axis % 3) + (i,)
            np.testing.assert_array_equal(y[at], tq.fake_quant(x[at], lo[i], hi[i], 4, True))
            for a, b in zip(
                (dx[at], dmin[i], dmax[i]), tq.fake_quant_gradient(dy[at], x[at], lo[i], hi[i], 4, True), strict=True
            ):
                np.testing.assert_array_equal(a, b)
        one = tq.fake_quant(x, -1, hi, axis=axis)
        np.testing.assert_array_equal(one, tq.fake_quant(x, np.full(n, -1.0), hi, axis=axis))


def test_ranges_that_keep_dimensions():
    x = np.random.default_rng(4).normal(size=(3, 4, 5)).astype(f32)
    for axis in (0, 1, -1):
        others = tuple(i for i in range(3) if i != axis % 3)
        lo, hi = x.min(others, keepdims=True), x.max(others, keepdims=True)
        expected = tq.fake_quant(x, lo.ravel(), hi.ravel(), axis=axis)
        np.testing.assert_array_equal(tq.fake_quant(x, lo, hi, axis=axis), expected)
        got = tq.fake_quant_gradient(x, x, lo / 2, hi / 2, axis=axis)
        for a, b in zip(got, tq.fake_quant_gradient(x, x, lo.ravel() / 2, hi.ravel() / 2, axis=axis), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(tq.fake_quant(x, [[-1]], [[[1]]]), tq.fake_quant(x, -1, 1))
    with pytest.raises(ValueError, match="min has 4 values in 3 dimensions; axis 1 needs 1, or 4 in one or in x's"):
        tq.fake_quant(x, np.zeros((1, 1, 4)), 1, axis=1)


def test_any_stride_order_and_type():
    x = np.random.default_rng(3).normal(size=(6, 8)).astype(f32)
    y = tq.fake_quant(x, -1, 1)
    for variant in (np.asfortranarray(x), x.astype(">f4"), x[::-1][::-1], x.repeat(2, 0)[::2], x.astype(np.float64)):
        np.testing.assert_array_equal(tq.fake_quant(variant, -1, 1), y)
    half = x.astype(np.float16)
    np.testing.assert_array_equal(tq.fake_quant(half, -1, 1), tq.fake_quant(half.astype(f32), -1, 1))
    readonly = x.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(tq.fake_quant(readonly, -1, 1), y)
    assert tq.fake_quant(np.zeros((0, 3)), -1, 1).shape == (0, 3)
    assert tq.fake_quant(np.zeros((3, 0)), np.full(3, -1), 1, axis=0).shape == (3, 0)
    scalar = tq.fake_quant(0.3, -1, 1)
    assert np.ndim(scalar) == 0 and scalar == fake(0.3, -1, 1)


def gradient(dy, x, lo, hi, bits=8, narrow=False):
    dy, x = np.asarray(dy, f32), np.asarray(x, f32)
    if lo == 0 and hi == 0:
        return dy, f32(0), f32(0)
    low, high, _ = nudge(lo, hi, bits, narrow)
    inside = (x >= low) & (x <= high)
    return np.where(inside, dy, f32(0)), f32(math.fsum(dy[x < low].tolist())), f32(math.fsum(dy[x > high].tolist()))


@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_gradient(bits, narrow):
    rng = np.random.default_rng(4)
    for lo, hi in [*RANGES, (0, 0)]:
        x = probes(lo, hi, bits, narrow) if hi else rng.normal(size=50).astype(f32)
        dy = rng.integers(-1000, 1000, x.shape).astype(f32)  # sums of these are exact
        dx, dmin, dmax = tq.fake_quant_gradient(dy, x, lo, hi, bits, narrow)
        expected = gradient(dy, x, lo, hi, bits, narrow)
        np.testing.assert_array_equal(dx, expected[0])
        assert (dmin, dmax) == expected[1:]
        assert dx.dtype == np.float32 and type(dmin) is np.float32


def test_the_gradient_sums_to_float32_rounding():
    rng = np.random.default_rng(5)
    x, dy = np.full(1 << 20, -9, f32), rng.normal(size=1 << 20).astype(f32)
    dmin = tq.fake_quant_gradient(dy, x, -1, 1)[1]
    assert abs(float(dmin) - math.fsum(dy.tolist())) <= np.spacing(abs(dmin))


def test_the_gradient_is_the_derivative():
    """The straight-through estimate: the clamp's own derivative, by differences."""
    lo, hi, step = -1.0, 2.0, 0.25
    low, high, _ = (float(v) for v in nudge(lo, hi, 8, False))

    def clamp(x, low, high):
        return np.clip(x, low, high).sum()

    x = np.array([-4, -2, 0.1, 0.5, 3, 5])
    dx, dmin, dmax = tq.fake_quant_gradient(np.ones(6), x, lo, hi)
    assert dmin == (clamp(x, low + step, high) - clamp(x, low, high)) / step
    assert dmax == (clamp(x, low, high + step) - clamp(x, low, high)) / step
    assert dx.tolist() == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: tq.fake_quant([1.0], 1, 1),
            "min is 1 and max is 1; both must be finite and min less than max, or both 0",
        ),
        (lambda: tq.fake_quant([1.0], 2, 1), "min is 2 and max is 1"),
        (lambda: tq.fake_quant([1.0], math.nan, 1), "min is nan"),
        (lambda: tq.fake_quant([1.0], -3e38, 3e38), "too wide"),
        (lambda: tq.fake_quant([1.0], 0, 1e-44), "too narrow"),
        (lambda: tq.fake_quant([1.0], 0, 1, 1), "num_bits is 1: it must be from 2 to 16"),
        (lambda: tq.fake_quant([1.0], 0, 1, 17), "num_bits is 17"),
        (lambda: tq.fake_quant([1.0, 2], [0, 0], 1), "min has 2 values; without axis it must be one number"),
        (lambda: tq.fake_quant([[1.0, 2]], 0, [1, 1, 1], axis=1), "max has 3 values"),
        (lambda: tq.fake_quant([1.0], 0, 1, axis=1), "axis is 1"),
        (lambda: tq.fake_quant([1.0], 0, 1, rule="onnx"), "rule is 'onnx'; it must be 'tflite' or 'tensorflow'"),
        (lambda: tq.fake_quant_gradient([1.0, 2], [1.0], 0, 1), "dy has shape (2,) and x (1,); they must be the same"),
    ],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)
    with pytest.raises(TypeError, match="x has dtype complex128"):
        tq.fake_quant([1j], 0, 1)


def one_fake_quant(low, high, bits, count):
    item = operator("FAKE_QUANT", [0], [1], min=low, max=high, num_bits=bits)
    return build_model([tensor("x", [count]), tensor("y", [count])], [item], [0], [1])


def test_litert_gives_the_same_bits():
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    cases = [(f32(lo).item(), f32(hi).item(), bits) for lo, hi in RANGES for bits in (2, 4, 8, 16)]
    inputs = [probes(lo, hi, bits, False)[:-6] for lo, hi, bits in cases]
    inputs = [np.concatenate([x, np.array([np.inf, -np.inf], f32)]) for x in inputs]
    questions = [
        (one_fake_quant(*case, x.size), "BUILTIN_REF", [{0: x}], {}, [1]) for case, x in zip(cases, inputs, strict=True)
    ]
    outputs = [runs[0][1] for runs in oracle.ask("tensors", questions)]
    for (lo, hi, bits), x, y in zip(cases, inputs, outputs, strict=True):
        np.testing.assert_array_equal(tq.fake_quant(x, lo, hi, bits), y, err_msg=f"{lo} {hi} {bits}")


def test_tensorflow_gives_the_same():
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    rng = np.random.default_rng(6)
    ops = tf.quantization
    for lo, hi in [*RANGES, (0, 0)]:
        for bits in (2, 4, 8, 16):
            for narrow in (False, True):
                x = probes(lo, hi, bits, narrow) if hi else rng.normal(size=50).astype(f32)
                x = x[~((x != 0) & (np.abs(x) < f32(2**-126)))]  # TensorFlow's threads read these as 0
                dy = rng.integers(-1000, 1000, x.shape).astype(f32)
                options = {"num_bits": bits, "narrow_range": narrow}
                y = ops.fake_quant_with_min_max_vars(x, lo, hi, **options).numpy()
                np.testing.assert_array_equal(tq.fake_quant(x, lo, hi, bits, narrow, rule="tensorflow"), y)
                expected = ops.fake_quant_with_min_max_vars_gradient(dy, x, lo, hi, **options)
                for a, b in zip(tq.fake_quant_gradient(dy, x, lo, hi, bits, narrow), expected, strict=True):
                    np.testing.assert_array_equal(a, b.numpy())
                channel = ops.fake_quant_with_min_max_vars_per_channel(x.reshape(-1, 1), [lo], [hi], **options)
                y = tq.fake_quant(x.reshape(-1, 1), lo, hi, bits, narrow, 1, rule="tensorflow")
                np.testing.assert_array_equal(y, channel.numpy())
    x, dy = rng.normal(size=(7, 5, 6)).astype(f32), rng.integers(-1000, 1000, (7, 5, 6)).astype(f32)
    lo, hi = -rng.uniform(0.1, 1, 6).astype(f32), rng.uniform(0.1, 1, 6).astype(f32)
    y = ops.fake_quant_with_min_max_vars_per_channel(x, lo, hi).numpy()
    np.testing.assert_array_equal(tq.fake_quant(x, lo, hi, axis=-1, rule="tensorflow"), y)
    flat = (-1, 6)  # TensorFlow's gradient per channel takes ranks 1, 2 and 4
    expected = ops.fake_quant_with_min_max_vars_per_channel_gradient(dy.reshape(flat), x.reshape(flat), lo, hi)
    for a, b in zip(tq.fake_quant_gradient(dy, x, lo, hi, axis=-1), expected, strict=True):
        np.testing.assert_array_equal(a.reshape(b.shape), b.numpy())


@pytest.mark.parametrize(
    ("shape", "axis"), [((300_001,), None), ((3, 100_001), 0), ((5000, 64), 1), ((20, 30, 400), 1), ((2, 200_000), 1)]
)
def test_threads_change_nothing(shape, axis):
    rng = np.random.default_rng(2)
    x, dy = rng.normal(size=(2, *shape)).astype(np.float32)
    low = -1 if axis is None else rng.uniform(-2, 0, shape[axis]).astype(np.float32)
    high = 0.5
    for rule in ("tflite", "tensorflow"):
        one = tq.fake_quant(x, low, high, axis=axis, rule=rule, num_threads=1)
        for threads in (2, 3, 64, None):
            np.testing.assert_array_equal(tq.fake_quant(x, low, high, axis=axis, rule=rule, num_threads=threads), one)
    one = tq.fake_quant_gradient(dy, x, low, high, axis=axis, num_threads=1)
    for threads in (2, 3, 64, None):
        for a, b in zip(tq.fake_quant_gradient(dy, x, low, high, axis=axis, num_threads=threads), one, strict=True):
            np.testing.assert_array_equal(a, b)
    moved = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(shape[axis], -1)
    slopes = dy.reshape(1, -1) if axis is None else np.moveaxis(dy, axis, 0).reshape(shape[axis], -1)
    for i, (v, d) in enumerate(zip(moved, slopes, strict=True)):
        each = tq.fake_quant_gradient(d, v, low if axis is None else low[i], high)
        np.testing.assert_array_equal(np.atleast_1d(one[1])[i], each[1])
        np.testing.assert_array_equal(np.atleast_1d(one[2])[i], each[2])
    with pytest.raises(ValueError, match="num_threads is 0"):
        tq.fake_quant(x, -1, 1, num_threads=0)
    with pytest.raises(ValueError, match="num_threads is -1"):
        tq.fake_quant_gradient(dy, x, -1, 1, num_threads=-1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_bits": 2**40}, ValueError, "num_bits is 1099511627776: it must be from 2 to 16"),
        ({"num_bits": 2.5}, TypeError, "num_bits is a float"),
        ({"narrow_range": np.ones(2)}, TypeError, "narrow_range is a numpy.ndarray"),
    ],
)
def test_options_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        tq.fake_quant([1.0], -1, 1, **options)
    with pytest.raises(error, match=words):
        tq.fake_quant_gradient([1.0], [1.0], -1, 1, **options)


def test_conversions_do_not_warn(recwarn):
    """Values beyond float32, and signalling NaN, as any other."""
    assert tq.fake_quant(np.array([1e300, -1e300]), -1, 1).tolist() == tq.fake_quant([9.0, -9.0], -1, 1).tolist()
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    found = tq.fake_quant(half, -1, 1)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, tq.fake_quant(half.astype(np.float32), -1, 1))
        assert tq.MinMaxObserver().update(half).nan_count == np.isnan(half).sum()
    tq.quantize_weights(np.array([3.0], np.float16), None)
    assert not recwarn
