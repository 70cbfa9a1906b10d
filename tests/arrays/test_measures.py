# SPDX-License-Identifier: Apache-2.0
"""sqnr_db, mse, max_error, cosine: against exact arithmetic, for every type, layout and number of threads."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tq

MEASURES = {f.__name__: f for f in (tq.sqnr_db, tq.mse, tq.max_error, tq.cosine)}
TYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "bfloat16", "int4", "uint4", "int2"]


def log10(ratio):
    """The logarithm of a Fraction of any size."""
    shift = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2 * 2
    return math.log10(ratio / Fraction(2) ** shift) + shift * math.log10(2)


def root(square):
    shift = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    return Fraction(math.sqrt(square / Fraction(4) ** shift)) * Fraction(2) ** shift


def as_float(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf


def exact(name, x, y):
    """The definition, in rationals but for one root or logarithm."""
    x, y = ([Fraction(float(v)) for v in np.ravel(a)] for a in (x, y))
    errors = [a - b for a, b in zip(x, y, strict=True)]
    if name == "max_error":
        return as_float(max(map(abs, errors), default=0))
    if not x:
        return math.nan
    noise, power = sum(d * d for d in errors), sum(a * a for a in x)
    if name == "mse":
        return as_float(noise / len(x))
    if name == "sqnr_db":
        return math.inf if noise == 0 else -math.inf if power == 0 else 10 * log10(power / noise)
    other = sum(b * b for b in y)
    return (
        math.nan if power == 0 or other == 0 else float(sum(map(Fraction.__mul__, x, y)) / (root(power) * root(other)))
    )


def close(found, wanted, name="mse"):
    assert isinstance(found, np.float64)
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12 if name in ("cosine", "sqnr_db") else 0, nan_ok=True)


def array_of(kind, shape, rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    values = rng.integers(0, 2, shape) if kind in ("?", "int2") else rng.integers(0, 8, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", TYPES)
def test_every_type(name, kind):
    rng = np.random.default_rng(len(kind))
    for other in ("f4", kind, "i8"):
        x, y = array_of(kind, (5, 7), rng), array_of(other, (5, 7), rng)
        close(MEASURES[name](x, y), exact(name, x, y), name)
        close(MEASURES[name](y, x), exact(name, y, x), name)


def test_every_float16_and_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    patterns = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = patterns.view(dtype)
        with np.errstate(invalid="ignore"):  # signalling NaN
            wide = x.astype(np.float64)
        wanted = np.where(np.isfinite(wide), 0, np.nan)
        np.testing.assert_array_equal(tq.max_error(x, wide, 0), wanted)
        infinite = np.isinf(wide)
        np.testing.assert_array_equal(tq.max_error(x[infinite], [0.0, 0.0], 0), [np.inf, np.inf])


floats = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1, 1), st.just(0.0), st.integers(-9, 9))
pairs = st.lists(st.tuples(floats, floats), max_size=30)


@given(pairs, st.sampled_from(sorted(MEASURES)))
def test_any_float64(values, name):
    """All of float64's range: squares below and beyond it, too."""
    x, y = np.array([v[0] for v in values], np.float64), np.array([v[1] for v in values], np.float64)
    close(MEASURES[name](x, y), exact(name, x, y), name)
    close(MEASURES[name](x, x), exact(name, x, x), name)


@given(st.lists(st.tuples(*[st.floats(width=32)] * 2), max_size=40), st.sampled_from(sorted(MEASURES)))
def test_nan_and_infinity_have_a_result(values, name):
    x, y = np.array([v[0] for v in values], np.float32), np.array([v[1] for v in values], np.float32)
    found = MEASURES[name](x, y)
    if np.isfinite(x).all() and np.isfinite(y).all():
        close(found, exact(name, x, y), name)
    elif np.isnan(x).any() or np.isnan(y).any() or ((x == y) & np.isinf(x)).any():
        assert np.isnan(found)
    elif name in ("mse", "max_error"):
        assert found == np.inf
    elif name == "sqnr_db" and np.isfinite(x).all():
        assert found == -np.inf
    else:
        assert np.isnan(found)


def test_stated_results():
    for name, nothing in (("sqnr_db", np.nan), ("mse", np.nan), ("max_error", 0.0), ("cosine", np.nan)):
        for shape in [(0,), (3, 0), (0, 1 << 40), (1 << 40, 0)]:
            x = np.zeros(shape, np.float32)
            np.testing.assert_equal(MEASURES[name](x, x), nothing)
        np.testing.assert_array_equal(MEASURES[name](np.zeros((3, 0)), np.zeros((3, 0)), 0), np.full(3, nothing))
        assert MEASURES[name](np.zeros((0, 3)), np.zeros((0, 3)), 0).shape == (0,)
        np.testing.assert_equal(MEASURES[name](1.0, np.nan), np.nan)
    assert tq.sqnr_db([0.0], [0.0]) == np.inf and tq.sqnr_db([0.0], [1.0]) == -np.inf
    assert np.isnan(tq.cosine([0.0], [1.0])) and tq.cosine([-2.0], [3.0]) == -1
    assert tq.cosine([1e200, 3e-200], [1e200, 3e-200]) == 1 and tq.mse([1e-160], [0.0]) == 1e-320
    assert tq.mse(np.uint8([0]), np.uint8([255])) == 255**2 and tq.max_error(np.int8([-128]), np.int8([127])) == 255
    assert tq.max_error(2**40, 0) == 2**40 and tq.mse(True, False) == 1
    x = np.random.default_rng(0).normal(size=1000)
    assert tq.cosine(x, x) == 1 == -tq.cosine(x, -x)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_layouts(name, axis):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 6, 5, 9)).astype(np.float32)

    def apart():
        moved = [np.moveaxis(a, axis, 0) if axis is not None else a[None] for a in (x, y)]
        return [exact(name, a, b) for a, b in zip(*moved, strict=True)]

    wanted = apart()
    forms = [np.asarray, np.asfortranarray, lambda a: a.astype(">f4"), lambda a: a[::-1, :, ::-1][::-1, :, ::-1],
             lambda a: np.repeat(a, 2, 2)[:, :, ::2], lambda a: np.frombuffer(b"." + a.tobytes(), np.uint8)[1:]
             .view(np.float32).reshape(a.shape), lambda a: a.tolist(), lambda a: memoryview(a)]  # fmt: skip
    for form in forms:
        for other in (forms[0], form):
            found = np.atleast_1d(MEASURES[name](form(x), other(y), axis))
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    wide = np.broadcast_to(x[:1], x.shape), y  # strides of 0
    x = wide[0]
    np.testing.assert_allclose(np.atleast_1d(MEASURES[name](x, y, axis)), apart(), rtol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("shape", [(300_001,), (7, 50_000), (50_000, 7), (1000, 300), (300, 3, 400), (2, 150_000)])
def test_threads_change_nothing(name, shape):
    rng = np.random.default_rng(9)
    x = rng.normal(size=shape).astype(np.float32)
    y = (x + rng.normal(size=shape) * 0.01).astype(np.float16)
    for axis in (None, *range(len(shape))):
        one = MEASURES[name](x, y, axis, num_threads=1)
        for threads in (2, 3, 5, 64, None):
            np.testing.assert_array_equal(MEASURES[name](x, y, axis, num_threads=threads), one)
    d = x.astype(np.float64) - y
    if name == "mse":
        assert one == pytest.approx(np.mean(d * d, axis=tuple(range(len(shape) - 1))), rel=1e-12)
    if name == "max_error":
        np.testing.assert_array_equal(one, np.abs(d).max(axis=tuple(range(len(shape) - 1))))


def test_objects_with_array_or_dlpack():
    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.ones(3, np.int16)

    class DLPack:
        def __dlpack__(self, **options):
            return np.zeros(3, np.float32).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    assert tq.mse(Array(), DLPack()) == 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (([1.0], [1.0, 2]), {}, ValueError, r"y has shape (2,) and x (1,); they must be the same"),
        ((1.0, [1.0]), {}, ValueError, r"y has shape (1,) and x (); they must be the same"),
        (([1.0], [1.0], 1), {}, ValueError, "axis is 1; an array of rank 1 needs one from -1 to 0"),
        ((1.0, 1.0, 0), {}, ValueError, "axis is 0; an array of no dimensions has no axis"),
        (([1.0], [1.0]), {"axis": 0.0}, TypeError, "axis is 0.0; it must be an integer or None"),
        (([1.0], [1.0]), {"axis": 10**30}, ValueError, "axis is 1000"),
        (([1.0], [1.0]), {"num_threads": 0}, ValueError, "num_threads is 0: it must be from 1"),
        (([1.0], [1.0]), {"num_threads": "2"}, TypeError, "num_threads is a str"),
        (([1j], [1.0]), {}, TypeError, "x has dtype complex128"),
        (([1.0], ["a"]), {}, TypeError, "y has dtype <U1"),
        (([1.0], object()), {}, TypeError, "y is object; it must be an array of numbers"),
        (([1.0], np.array(["2000-01-01"], "M8[D]")), {}, TypeError, "y has dtype datetime64[D]"),
        (([1.0],), {}, TypeError, "() needs the argument 'y'"),
        (([1.0], [1.0], None, 1), {}, TypeError, "takes at most 3 positional"),
        (([1.0], [1.0]), {"ax": 1}, TypeError, "has no argument 'ax'"),
    ],
)
@pytest.mark.parametrize("name", MEASURES)
def test_errors_name_the_argument(name, arguments, options, error, words):
    with pytest.raises(error) as caught:
        MEASURES[name](*arguments, **options)
    assert words in str(caught.value)
