# SPDX-License-Identifier: Apache-2.0
"""Observers against NumPy and Python's integers; and that splitting, ordering and merging change nothing."""

import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tq

f32 = np.float32
values32 = st.one_of(
    st.floats(width=32),
    st.floats(-2, 2, width=32),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149, 3.0e38, -4.0, 4.0]),
)
values64 = st.one_of(st.floats(), st.sampled_from([5e-324, -5e-324, 1.7e308, -1.7e308, 2.0**-1022, 0.0, -0.0]))


def batches_of(values):
    return st.lists(st.lists(values, max_size=20), min_size=1, max_size=6)


def plan(draw_order, observers):
    """Merges observers pairwise in an order that the draw decides."""
    observers = list(observers)
    while len(observers) > 1:
        a = observers.pop(draw_order(len(observers)))
        b = observers.pop(draw_order(len(observers)))
        observers.append(a.merge(b))
    return observers[0]


# ---- the histogram, in integers ----


def expected_histogram(values, bins):
    """{bin: count} and the exponent, from the definition, in exact arithmetic."""
    values = [Fraction(v) for v in values]
    half = bins // 2

    def fits(e):
        width = Fraction(2) ** e
        return all(-half <= v / width < half for v in values)

    # The exponents at which two values fit are those past a bound, so halving finds it.
    low, high = -1074, 1100
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    counts = [0] * bins
    for v in values:
        counts[math.floor(v / Fraction(2) ** low) + half] += 1
    return counts, low


@given(
    st.lists(st.one_of(values32, values64).filter(math.isfinite), min_size=1, max_size=30),
    st.sampled_from([16, 32, 64, 1024]),
)
def test_the_histogram_is_the_definition(values, bins):
    observer = tq.HistogramObserver(bins).update(np.array(values, np.float64))
    counts, exponent = expected_histogram(values, bins)
    got, edges = observer.histogram()
    assert got.tolist() == counts
    assert edges[bins // 2 + 1] == math.ldexp(1, exponent) and len(edges) == bins + 1
    assert observer.min == min(values) and observer.max == max(values)


@given(batches_of(values32), st.randoms(use_true_random=False), st.sampled_from([16, 64]))
def test_splitting_and_merging_change_nothing(batches, random, bins):
    everything = np.array([v for batch in batches for v in batch], f32)
    for make in (lambda: tq.HistogramObserver(bins), tq.MinMaxObserver):
        whole = make().update(everything)
        parts = [make().update(np.array(batch, f32)) for batch in batches]
        merged = plan(random.randrange, parts)
        assert merged == whole
        in_turn = make()
        for batch in random.sample(batches, len(batches)):
            in_turn.update(np.array(batch, f32))
        assert in_turn == whole
        shuffled = everything.copy()
        random.shuffle(shuffled)
        assert make().update(shuffled) == whole
        assert str(merged.min) == str(whole.min), "the sign of zero too"


@given(batches_of(values64), st.randoms(use_true_random=False))
def test_merging_doubles(batches, random):
    whole = tq.HistogramObserver(16).update(np.array([v for batch in batches for v in batch], np.float64))
    assert plan(random.randrange, [tq.HistogramObserver(16).update(np.array(b, np.float64)) for b in batches]) == whole


@given(
    st.lists(st.lists(st.tuples(values32, values32, values32), min_size=1, max_size=8), min_size=1, max_size=5),
    st.randoms(),
)
def test_merging_per_axis(batches, random):
    batches = [np.array(batch, f32) for batch in batches]
    for make in (lambda: tq.HistogramObserver(16, axis=1), lambda: tq.MinMaxObserver(axis=-1)):
        whole = make().update(np.concatenate(batches))
        merged = plan(random.randrange, [make().update(b) for b in batches])
        assert merged == whole
        for c in range(3):
            one = (tq.HistogramObserver(16) if isinstance(whole, tq.HistogramObserver) else tq.MinMaxObserver()).update(
                np.concatenate(batches)[:, c]
            )
            assert (whole.min[c], whole.max[c], whole.count[c]) == (one.min, one.max, one.count)
            if isinstance(one, tq.HistogramObserver):
                for a, b in zip(whole.histogram(c), one.histogram(), strict=True):
                    np.testing.assert_array_equal(a, b)


def test_a_growing_range_keeps_its_counts():
    observer = tq.HistogramObserver(16)
    rng = np.random.default_rng(0)
    seen = []
    for step in range(60):
        x = rng.normal(size=37).astype(f32) * f32(1.7) ** f32(step)
        seen.append(x)
        observer.update(x)
        counts, edges = observer.histogram()
        expected, _ = np.histogram(np.concatenate(seen).astype(np.float64), edges)
        assert counts.tolist() == expected.tolist()
        assert counts.sum() == observer.count == 37 * (step + 1)


# ---- ranges ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, ">f4", ">f8"])
@pytest.mark.parametrize("size", [0, 1, 5, 15, 16, 17, 31, 100, 4097])
def test_least_and_greatest_of_any_type_and_length(dtype, size):
    rng = np.random.default_rng(size)
    x = (rng.normal(size=size) * 30).astype(dtype)
    observer = tq.MinMaxObserver().update(x)
    assert observer.count == size
    if size:
        assert (observer.min, observer.max) == (float(x.min()), float(x.max()))
    else:
        assert (observer.min, observer.max) == (math.inf, -math.inf)


def test_a_zero_of_either_sign_is_zero():
    for make in (tq.MinMaxObserver, tq.HistogramObserver):
        for x in ([-0.0], [0.0, -0.0], [-0.0, 0.0], [-0.0] * 40, [0.0] * 20 + [-0.0] * 20):
            for dtype in (np.float32, np.float64):
                observer = make().update(np.array(x, dtype))
                assert (str(float(observer.min)), str(float(observer.max))) == ("0.0", "0.0")


def test_values_at_every_place():
    for n in (1, 16, 33, 50):
        for at in range(n):
            x = np.ones(n, f32)
            x[at] = -7
            assert tq.MinMaxObserver().update(x).min == -7
            x[at] = 9
            assert tq.MinMaxObserver().update(x).max == 9
            x[at] = np.nan
            observer = tq.MinMaxObserver().update(x)
            assert (observer.nan_count, observer.infinite_count, observer.count) == (1, 0, n - 1)
            x[at] = -np.inf
            observer = tq.MinMaxObserver().update(x)
            assert (observer.nan_count, observer.infinite_count, observer.count) == (0, 1, n - 1)
            assert observer.min == (1 if n > 1 else math.inf)


@pytest.mark.parametrize("make", [tq.MinMaxObserver, tq.MovingAverageObserver, tq.HistogramObserver])
def test_nan_and_infinity_are_counted_and_passed_over(make):
    observer = make().update([np.nan, np.inf, -np.inf, 1.5, -0.5, np.nan])
    assert (observer.count, observer.nan_count, observer.infinite_count) == (2, 2, 2)
    assert (observer.min, observer.max) == (-0.5, 1.5)
    assert tuple(observer.quantization()) == tuple(make().update([1.5, -0.5]).quantization())


def test_per_axis_of_any_layout():
    x = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(f32)
    for axis in (0, 1, 2, -1, -2):
        others = tuple(i for i in range(3) if i != axis % 3)
        for variant in (x, np.asfortranarray(x), x[::-1, :, ::-1][::-1, :, ::-1], x.astype(">f4")):
            observer = tq.MinMaxObserver(axis).update(variant)
            np.testing.assert_array_equal(observer.min, x.min(others))
            np.testing.assert_array_equal(observer.max, x.max(others))
            assert observer.count.tolist() == [60 // x.shape[axis]] * x.shape[axis]


@pytest.mark.parametrize("rule", ["toco", "tflite", "mlir"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int4"])
def test_minmax_quantization_is_choose_quantization_params(rule, dtype):
    x = np.random.default_rng(2).normal(size=(4, 100)).astype(f32)
    for options in ({}, {"symmetric": True}, {"narrow_range": True}):
        expected = tq.choose_quantization_params(x.min(), x.max(), dtype, rule=rule, **options)
        for made in (
            tq.MinMaxObserver().update(x).quantization(dtype, rule=rule, **options),
            tq.HistogramObserver().update(x).quantization(dtype, method="minmax", rule=rule, **options),
            tq.HistogramObserver()
            .update(x)
            .quantization(dtype, method="percentile", percentile=100, rule=rule, **options),
        ):
            assert tuple(made) == tuple(expected)
            assert type(made) is tq.QuantizationParams
    per_axis = tq.MinMaxObserver(axis=0).update(x).quantization(dtype, rule=rule)
    expected = tq.choose_quantization_params(x.min(1), x.max(1), dtype, rule=rule)
    np.testing.assert_array_equal(per_axis.scale, expected.scale)
    np.testing.assert_array_equal(per_axis.zero_point, expected.zero_point)


# ---- moving average ----


def moving_average(batches, averaging):
    low = high = None
    for batch in batches:
        batch = [v for v in batch if math.isfinite(v)]
        if not batch:
            continue
        if low is None:
            low, high = min(batch), max(batch)
        else:
            low, high = low + averaging * (min(batch) - low), high + averaging * (max(batch) - high)
    return low, high


@given(batches_of(st.floats(-1e6, 1e6, width=32)), st.floats(0.01, 1), st.integers(0, 6))
def test_moving_average_and_its_merge(batches, averaging, cut):
    expected = moving_average(batches, averaging)
    whole = tq.MovingAverageObserver(averaging)
    for batch in batches:
        whole.update(batch)
    parts = []
    for part in (batches[:cut], batches[cut:]):
        parts.append(tq.MovingAverageObserver(averaging))
        for batch in part:
            parts[-1].update(batch)
    merged = parts[0].merge(parts[1])
    if expected[0] is None:
        assert whole.count == merged.count == 0
        return
    bound = max(abs(v) for batch in batches for v in batch)
    for observer in (whole, merged):
        assert observer.min == pytest.approx(expected[0], rel=1e-9, abs=1e-9 * bound)
        assert observer.max == pytest.approx(expected[1], rel=1e-9, abs=1e-9 * bound)
    assert merged.count == whole.count


def test_moving_average_per_axis_skips_empty_batches():
    observer = tq.MovingAverageObserver(0.5, axis=0)
    observer.update([[1.0, 2.0], [np.nan, np.nan]]).update([[3.0, 4.0], [5.0, 6.0]]).update(
        [[np.inf, np.inf], [7.0, 8.0]]
    )
    assert observer.min.tolist() == [2, 6] and observer.max.tolist() == [3, 7]


# ---- choosing a range from a histogram ----


def centred(observer):
    """(centres, counts) of the filled bins."""
    counts, edges = observer.histogram()
    filled = counts > 0
    centres = np.clip((edges[:-1] + edges[1:]) / 2, observer.min, observer.max)
    return centres[filled], counts[filled].astype(float)


def squared_error(observer, low, high, dtype="int8", **options):
    centres, counts = centred(observer)
    scale, z = tq.choose_quantization_params(low, high, dtype, **options)
    qmin, qmax = {"int8": (-128, 127), "int4": (-8, 7)}[dtype]
    q = centres / float(scale)
    q = np.clip(np.sign(q) * np.floor(np.abs(q) + 0.5) + int(z), qmin, qmax)
    return float((counts * ((q - int(z)) * float(scale) - centres) ** 2).sum())


SAMPLES = {
    "normal": lambda rng: rng.normal(size=20000),
    "outliers": lambda rng: np.concatenate([rng.normal(size=20000), [40, -25]]),
    "relu": lambda rng: np.maximum(rng.normal(size=20000), 0) * 3,
    "negative": lambda rng: -rng.exponential(size=20000),
    "laplace": lambda rng: rng.laplace(size=20000),
    "shifted": lambda rng: rng.normal(5, 1, size=20000),
}


@pytest.fixture(params=list(SAMPLES))
def sample(request):
    return SAMPLES[request.param](np.random.default_rng(9)).astype(f32)


@pytest.mark.parametrize("percentile", [50, 99, 99.9, 99.99, 100])
def test_percentile(sample, percentile):
    observer = tq.HistogramObserver().update(sample)
    low, high = observer.range("percentile", percentile=percentile)
    cut = (100 - percentile) / 200 * sample.size
    assert (sample < low).sum() <= cut and (sample > high).sum() <= cut
    _, edges = observer.histogram()
    width = edges[1] - edges[0]
    # one bin less at either end would cut too much
    assert low == observer.min or (sample < low + width).sum() > cut
    assert high == observer.max or (sample >= high - width).sum() > cut
    symmetric = observer.range("percentile", percentile=percentile, symmetric=True)
    assert symmetric[0] == -symmetric[1]
    assert (np.abs(sample) > symmetric[1]).sum() <= (100 - percentile) / 100 * sample.size + 1e-6


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_mse_is_the_least_along_both_sides(sample, dtype):
    observer = tq.HistogramObserver(1024).update(sample)
    low, high = observer.range("mse", dtype=dtype)
    least = squared_error(observer, low, high, dtype)
    assert least <= squared_error(observer, observer.min, observer.max, dtype) * (1 + 1e-9)
    bottom, top = min(observer.min, 0), max(observer.max, 0)
    for k in range(1, 129):
        if bottom < 0:
            assert least <= squared_error(observer, bottom * k / 128, high, dtype) * (1 + 1e-9)
        if top > 0:
            assert least <= squared_error(observer, low, top * k / 128, dtype) * (1 + 1e-9)
    low, high = observer.range("mse", dtype=dtype, symmetric=True)
    bound = max(-observer.min, observer.max)
    errors = [squared_error(observer, -bound * k / 128, bound * k / 128, dtype, symmetric=True) for k in range(1, 129)]
    assert low == -high and high * 128 / bound in range(1, 129)
    assert squared_error(observer, low, high, dtype, symmetric=True) <= min(errors) * (1 + 1e-9)


def test_mse_serves_the_data_too():
    """The error over the data themselves, not only over bins, falls where there are outliers."""
    x = SAMPLES["outliers"](np.random.default_rng(9)).astype(f32)
    observer = tq.HistogramObserver().update(x)

    def error(method):
        scale, z = observer.quantization("int4", method=method)
        q = np.clip(np.round(x / scale) + z, -8, 7)
        return (((q - z) * scale - x) ** 2).sum()

    assert error("mse") < 0.5 * error("minmax")


def divergence(counts, low, high, levels):
    """KL(P || Q) by the method's definition, bins [low, high) of `counts`, step by step."""
    p = [Fraction(int(c)) for c in counts[low:high]]
    inside = list(p)
    p[0] += int(counts[:low].sum())
    p[-1] += int(counts[high:].sum())
    width = high - low
    q = [Fraction(0)] * width
    for level in range(levels):
        a, b = width * level // levels, width * (level + 1) // levels
        filled = [i for i in range(a, b) if p[i]]
        for i in filled:
            q[i] = sum(inside[a:b]) / len(filled)
    total, kept, sum_ = sum(p), sum(inside), 0.0
    for a, b in zip(p, q, strict=True):
        if a and not b:
            return math.inf
        if a:
            sum_ += float(a / total) * math.log(a / total / (b / kept))
    return sum_


def least_divergence(observer, codes, symmetric):
    """The range that the method's definition picks, every candidate measured."""
    counts, edges = observer.histogram()
    half = observer.bins // 2
    filled = np.flatnonzero(counts) - half
    first, last = min(filled[0], 0), max(filled[-1], -1)
    lost = {}
    for reach in range(max(-first, last + 1), 0, -1):
        a, b = (-reach, reach) if symmetric else (max(first, -reach), min(last + 1, reach))
        if b - a < codes or counts[a + half : b + half].sum() == 0:
            break
        lost[reach] = divergence(counts, a + half, b + half, codes)
    bound = max(-observer.min, observer.max)
    low, high = (-bound, bound) if symmetric else (observer.min, observer.max)
    if not lost:
        return low, high
    best, least = None, math.inf
    for reach, value in lost.items():  # the widest first
        if value < least - 1e-9:
            best, least = reach, value
    if best == max(lost):
        return low, high
    edge = edges[best + half]
    if symmetric:
        return max(low, -edge), min(high, edge)
    return max(low, max(edges[first + half], -edge)), min(high, min(edges[last + 1 + half], edge))


@pytest.mark.parametrize("symmetric", [False, True])
def test_entropy_is_the_least(sample, symmetric):
    observer = tq.HistogramObserver(128).update(sample)
    expected = least_divergence(observer, 15 if symmetric else 16, symmetric)
    assert observer.range("entropy", dtype="int4", symmetric=symmetric) == pytest.approx(expected, abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(-32, 31), st.integers(1, 50)), min_size=1, max_size=20),
    st.booleans(),
    st.sampled_from([("int2", 4, 3), ("int4", 16, 15)]),
)
def test_entropy_of_sparse_histograms(filled, symmetric, dtype):
    """Holes, and outliers that land in empty bins."""
    x = np.repeat([b + 0.5 for b, _ in filled], [n for _, n in filled])
    observer = tq.HistogramObserver(64).update(x)
    expected = least_divergence(observer, dtype[2] if symmetric else dtype[1], symmetric)
    assert observer.range("entropy", dtype=dtype[0], symmetric=symmetric) == pytest.approx(expected, abs=1e-12)


def test_entropy_of_few_bins_loses_nothing():
    x = np.random.default_rng(3).normal(size=1000).astype(f32)
    observer = tq.HistogramObserver(64).update(x)
    assert observer.range("entropy") == (x.min(), x.max())
    assert tq.HistogramObserver().update(x).range("entropy", dtype="int16") == (x.min(), x.max())


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse", "entropy"])
def test_degenerate_data(method):
    for x in ([0.0], [0.0, 0.0, -0.0], [1.0], [-3.5, -3.5], [1e-30], [2.0**-149], [3e38], [5.0, 1e-40]):
        observer = tq.HistogramObserver().update(np.array(x, f32))
        low, high = observer.range(method)
        assert observer.min <= max(low, observer.min) and low <= high
        scale, zero_point = observer.quantization(method=method)
        assert math.isfinite(scale) and -128 <= zero_point <= 127
        assert np.isfinite(observer.range(method, symmetric=True)).all()


def test_methods_per_axis_equal_each_channel(sample):
    x = np.stack([sample, sample[::-1] * 2, np.sin(sample)])
    observer = tq.HistogramObserver(256, axis=0).update(x)
    for method in tq.rules()["histogram"]:
        got = observer.quantization("int4", method=method, percentile=99)
        for c in range(3):
            one = tq.HistogramObserver(256).update(x[c]).quantization("int4", method=method, percentile=99)
            assert (got.scale[c], got.zero_point[c]) == tuple(one)


# ---- as objects ----

OBSERVERS = [
    lambda: tq.MinMaxObserver(),
    lambda: tq.MinMaxObserver(axis=1),
    lambda: tq.MovingAverageObserver(0.25),
    lambda: tq.MovingAverageObserver(0.25, axis=-1),
    lambda: tq.HistogramObserver(64),
    lambda: tq.HistogramObserver(64, axis=0),
]


@pytest.mark.parametrize("make", OBSERVERS)
def test_pickling(make):
    x = np.random.default_rng(5).normal(size=(4, 6)).astype(f32)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        empty = pickle.loads(pickle.dumps(make(), protocol))
        assert empty == make()
        assert empty.update(x) == make().update(x)
        full = pickle.loads(pickle.dumps(make().update(x), protocol))
        assert full == make().update(x)
        assert full.update(x) == make().update(x).update(x), "a copy goes on observing"


@pytest.mark.parametrize("make", OBSERVERS)
def test_merging_leaves_the_other_alone(make):
    x = np.random.default_rng(6).normal(size=(4, 6)).astype(f32)
    a, b = make().update(x), make().update(x * 5)
    before = pickle.loads(pickle.dumps(b))
    assert a.merge(b) is a
    assert b == before
    assert make().merge(b) == b and make().merge(make()) == make()
    assert b.merge(make()) == before
    b.merge(b)
    assert np.sum(b.count) == 48


@pytest.mark.parametrize("make", OBSERVERS[:2] + OBSERVERS[4:])
def test_threads(make):
    rng = np.random.default_rng(7)
    batches = [(rng.normal(size=(4, 3000)) * 10.0 ** rng.integers(-3, 4)).astype(f32) for _ in range(24)]
    if make().axis == 1:
        batches = [b.T for b in batches]
        batches = [np.ascontiguousarray(b[:, :4]) for b in batches]
    whole = make()
    for batch in batches:
        whole.update(batch)
    shared, partial = make(), make()

    def work(mine):
        for batch in mine:
            shared.update(batch)
            partial.merge(make().update(batch))

    threads = [threading.Thread(target=work, args=(batches[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == whole and partial == whole


def test_repr():
    assert repr(tq.MinMaxObserver()) == "tq.MinMaxObserver(axis=None): empty"
    assert (
        repr(tq.HistogramObserver(64, 0).update([[1.0], [2.0]]))
        == "tq.HistogramObserver(bins=64, axis=0): 2 values over 2 channels"
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.MinMaxObserver().quantization(), ValueError, "has no values"),
        (lambda: tq.MinMaxObserver().update([np.nan]).quantization(), ValueError, "no finite values"),
        (lambda: tq.MinMaxObserver(0).update([[1.0], [np.nan]]).quantization(), ValueError, "in channel 1"),
        (lambda: tq.MinMaxObserver(2).update([[1.0]]), ValueError, "axis is 2"),
        (
            lambda: tq.MinMaxObserver(0).update([1.0, 2]).update([1.0]),
            ValueError,
            "x has 1 channels along axis 0; the observer has 2",
        ),
        (lambda: tq.MinMaxObserver().update(["a"]), TypeError, "x has dtype"),
        (lambda: tq.MinMaxObserver().update(np.array([1j])), TypeError, "x has dtype complex128"),
        (
            lambda: tq.MinMaxObserver().merge(tq.HistogramObserver()),
            TypeError,
            "other is HistogramObserver; it must be MinMaxObserver",
        ),
        (lambda: tq.HistogramObserver(64).merge(tq.HistogramObserver(32)), ValueError, "'bins': 32"),
        (lambda: tq.MinMaxObserver(0).merge(tq.MinMaxObserver(1)), ValueError, "'axis': 1"),
        (lambda: tq.HistogramObserver(100), ValueError, "bins is 100; it must be a power of two from 16 to 1048576"),
        (lambda: tq.HistogramObserver(8), ValueError, "bins is 8"),
        (lambda: tq.MovingAverageObserver(0), ValueError, "averaging is 0"),
        (lambda: tq.MovingAverageObserver(1.5), ValueError, "averaging is 1.5"),
        (lambda: tq.HistogramObserver().update([1.0]).range("best"), ValueError, "method is 'best'"),
        (lambda: tq.HistogramObserver().update([1.0]).range("percentile", percentile=0), ValueError, "percentile is 0"),
        (
            lambda: tq.HistogramObserver().update([1.0]).range("percentile", percentile=math.nan),
            ValueError,
            "percentile is nan",
        ),
        (lambda: tq.HistogramObserver().update([1.0]).histogram(0), ValueError, "channel is 0"),
        (lambda: tq.HistogramObserver(axis=0).update([1.0]).histogram(), ValueError, "channel is None"),
    ],
)
def test_errors_say_what_is_needed(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_observed_ranges_hold_the_data(seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=500) * 10.0 ** rng.integers(-6, 7)).astype(f32)
    observer = tq.HistogramObserver().update(x)
    for method in tq.rules()["histogram"]:
        low, high = observer.range(method)
        assert low <= high and min(0, x.min()) <= low and high <= max(0, x.max())


# ---- threads ----


def state(observer):
    return {name: np.asarray(value).tolist() for name, value in observer.__getstate__().items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((400_003,), None), ((300, 1000), 0), ((300, 1000), 1), ((50_000, 3), -1), ((3, 50, 2000), 1), ((1, 300_000), 0)],
)
def test_threads_change_nothing(shape, axis, dtype):
    rng = np.random.default_rng(5)
    x = (rng.normal(size=shape) * np.exp(rng.normal(size=shape))).astype(dtype)
    x.flat[:: x.size // 7] = [np.nan, np.inf, -0.0, -np.inf, 0.0, 1e30, np.nan, -1e30][: len(x.flat[:: x.size // 7])]
    for make in (tq.MinMaxObserver, tq.MovingAverageObserver, lambda **k: tq.HistogramObserver(64, **k)):
        one = make(axis=axis).update(x, num_threads=1)
        for threads in (2, 3, 7, 64, None):
            assert state(make(axis=axis).update(x, num_threads=threads)) == state(one), threads
    moved = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(shape[axis], -1)
    finite = np.where(np.isfinite(moved), moved, 0).astype(np.float64)
    np.testing.assert_array_equal(np.atleast_1d(one.min), finite.min(1))
    np.testing.assert_array_equal(np.atleast_1d(one.nan_count), np.isnan(moved).sum(1))
    np.testing.assert_array_equal(np.atleast_1d(one.count), np.isfinite(moved).sum(1))
    np.testing.assert_array_equal(one._bin_counts.sum(1), np.isfinite(moved).sum(1))


def test_the_number_of_threads_is_checked():
    for make in (tq.MinMaxObserver, tq.MovingAverageObserver, tq.HistogramObserver):
        with pytest.raises(ValueError, match="num_threads is 0: it must be from 1"):
            make().update([1.0], num_threads=0)
        with pytest.raises(TypeError, match="num_threads is a float"):
            make().update([1.0], num_threads=2.0)


# ---- what is refused, and extremes ----


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.MinMaxObserver(1.5), TypeError, "axis is 1.5; it must be an integer"),
        (lambda: tq.HistogramObserver(16.0), TypeError, "bins is 16.0; it must be an integer"),
        (lambda: tq.MovingAverageObserver("a"), TypeError, "averaging is 'a'; it must be a number"),
        (lambda: tq.MovingAverageObserver(None), TypeError, "averaging is None; it must be a number"),
        (
            lambda: tq.HistogramObserver().update([1.0]).range(percentile="a"),
            TypeError,
            "percentile is 'a'; it must be",
        ),
        (lambda: tq.HistogramObserver().update(None), TypeError, "x is NoneType; it must be an array of numbers"),
        (lambda: tq.HistogramObserver().update(iter([1])), TypeError, "x is list_iterator"),
        (
            lambda: tq.HistogramObserver(16, 0).update([1.0]).histogram(1),
            ValueError,
            "channel is 1; it must be from -1",
        ),
        (lambda: tq.HistogramObserver(16, 0).update([1.0]).histogram(0.0), TypeError, "channel is 0.0; it must be an"),
        (
            lambda: tq.MinMaxObserver(0).update([1.0]).merge(tq.MinMaxObserver(0).update([1.0, 2])),
            ValueError,
            "other has 2 channels along axis 0; the observer has 1",
        ),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_greatest_doubles():
    """Ends are scaled without leaving float64; scales that float32 cannot hold are refused by their range."""
    observer = tq.HistogramObserver().update([1e308, -1e308, 3.0])
    with pytest.raises(ValueError, match=r"min -1e\+308 to max 1e\+308 is too wide"):
        observer.quantization()
    assert observer.range("minmax") == (-1e308, 1e308)
    wide = tq.HistogramObserver().update([3e38, -3e38])
    assert wide.range("mse", dtype="int16") == (-3e38, 3e38)


def test_averages_of_the_greatest_and_the_least_doubles():
    greatest, least = np.finfo(np.float64).max, 5e-324
    for averaging in (0.01, 0.5, 1.0):
        with np.errstate(all="raise"):
            same = tq.MovingAverageObserver(averaging).update([-greatest, greatest]).update([-greatest, greatest])
            assert (same.min, same.max) == (-greatest, greatest)
            low = tq.MovingAverageObserver(averaging).update([-greatest]).update([greatest])
            high = tq.MovingAverageObserver(averaging).update([greatest]).merge(low)
            wanted = (1 - averaging) ** 2 + averaging - averaging * (1 - averaging)
            assert high.max == pytest.approx(wanted * greatest)
            assert tq.MovingAverageObserver(averaging).update([least]).update([0.0]).max <= least
