# SPDX-License-Identifier: Apache-2.0
"""Fixed-point arithmetic against exact integers and fractions, written from the definitions."""

import doctest
import importlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tq

LOW, HIGH = -(2**31), 2**31 - 1
EXTREMES = [LOW, LOW + 1, -(2**30) - 1, -(2**30), -3, -2, -1, 0, 1, 2, 3, 2**30 - 1, 2**30, 2**30 + 1, HIGH - 1, HIGH]
int32s = st.one_of(st.sampled_from(EXTREMES), st.integers(LOW, HIGH))
HALF = Fraction(1, 2)


def saturate(x):
    return max(LOW, min(HIGH, x))


def ties_up(x):
    return math.floor(x + HALF)


def ties_away(x):
    return math.floor(x + HALF) if x >= 0 else -math.floor(-x + HALF)


def ties_even(x):
    below = math.floor(x)
    if x - below != HALF:
        return ties_up(x)
    return below if below % 2 == 0 else below + 1


def shift_ties_up(x, places):
    """ties_up(x / 2^places), on integers alone for speed; places may be negative."""
    return x << -places if places <= 0 else (x + (1 << (places - 1))) >> places


def shift_ties_away(x, places):
    return shift_ties_up(x, places) if x >= 0 else -shift_ties_up(-x, places)


def high_mul(a, b):
    return saturate(shift_ties_up(a * b, 31))


def multiply(x, multiplier, shift, rounding):
    """The rules' formulas, in rationals, and in NumPy's floats for those on floating point."""
    if rounding in ("double", "up"):
        high = high_mul(saturate(x << max(shift, 0)), multiplier)
        return (shift_ties_away if rounding == "double" else shift_ties_up)(high, max(-shift, 0))
    if rounding == "single":
        return saturate(shift_ties_up(x * multiplier, 31 - shift))
    real = math.ldexp(multiplier, shift - 31)
    if rounding == "float64-away":
        return saturate(ties_away(Fraction(float(x) * real)))
    return saturate(ties_even(Fraction(float(np.float32(x) * np.float32(real)))))


RULES = list(tq.rules()["requantize"])


def test_the_oracles_agree():
    for x in range(-70, 70):
        for places in range(6):
            assert shift_ties_up(x, places) == ties_up(Fraction(x, 2**places))
            assert shift_ties_away(x, places) == ties_away(Fraction(x, 2**places))


def test_the_examples_that_show_two_roundings():
    assert tq.multiply_by_quantized_multiplier(7984, 1583594044, -9, rounding="double") == 12
    assert tq.multiply_by_quantized_multiplier(7984, 1583594044, -9, rounding="single") == 11
    assert tq.multiply_by_quantized_multiplier(1, 1 << 30, -1, rounding="double") == 1
    assert tq.multiply_by_quantized_multiplier(1, 1 << 30, -1, rounding="single") == 0
    assert tq.multiply_by_quantized_multiplier(7984, 1583594044, -9) == 12, "double is the default"


def test_high_mul_on_every_pair_of_extremes():
    a, b = np.meshgrid(EXTREMES, EXTREMES)
    expected = [[high_mul(int(x), int(y)) for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]
    got = tq.saturating_rounding_doubling_high_mul(a.astype(np.int32), b.astype(np.int32))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected)
    assert tq.saturating_rounding_doubling_high_mul(LOW, LOW) == HIGH


@given(int32s, int32s)
def test_high_mul(a, b):
    assert tq.saturating_rounding_doubling_high_mul(a, b) == high_mul(a, b)


def test_high_mul_breaks_ties_upward():
    # a * b = (2k + 1) * 2^30 is a tie between k and k + 1.
    for k in range(-5, 6):
        assert tq.saturating_rounding_doubling_high_mul(2 * k + 1, 2**30) == k + 1


@pytest.mark.parametrize("exponent", [*range(0, 32), 40, 62, 63, 1000, HIGH])
def test_divide_by_pot_at_extremes_and_ties(exponent):
    half = 1 << max(min(exponent, 40) - 1, 0)
    xs = EXTREMES + [s * (k * 2 * half + half + d) for k in range(4) for d in (-1, 0, 1) for s in (-1, 1)]
    xs = [x for x in xs if LOW <= x <= HIGH]
    got = tq.rounding_divide_by_pot(np.array(xs, np.int64), exponent)
    # Past 40 places every quotient is far below a half.
    assert got.tolist() == [ties_away(Fraction(x, 2 ** min(exponent, 40))) for x in xs]


@given(int32s, st.integers(0, 31))
def test_divide_by_pot(x, exponent):
    assert tq.rounding_divide_by_pot(x, exponent) == ties_away(Fraction(x, 2**exponent))


def test_negative_exponents_count_as_zero():
    assert tq.rounding_divide_by_pot(EXTREMES, -1).tolist() == EXTREMES
    assert tq.rounding_divide_by_pot(EXTREMES, LOW).tolist() == EXTREMES


@pytest.mark.parametrize("rounding", RULES)
def test_multiply_on_every_extreme(rounding):
    shifts = [-31, -30, -17, -16, -9, -2, -1, 0, 1, 2, 15, 29, 30]
    x, m, s = np.meshgrid(EXTREMES, EXTREMES, shifts, indexing="ij")
    got = tq.multiply_by_quantized_multiplier(x, m, s, rounding=rounding)
    expected = [
        multiply(a, b, c, rounding)
        for a, b, c in zip(x.ravel().tolist(), m.ravel().tolist(), s.ravel().tolist(), strict=True)
    ]
    np.testing.assert_array_equal(got.ravel(), expected)


@pytest.mark.parametrize("rounding", RULES)
@given(x=int32s, multiplier=int32s, shift=st.integers(-31, 30))
def test_multiply(rounding, x, multiplier, shift):
    got = tq.multiply_by_quantized_multiplier(x, multiplier, shift, rounding)
    assert got == multiply(x, multiplier, shift, rounding)


@pytest.mark.parametrize("rounding", ["double", "up", "single"])
@pytest.mark.parametrize("shift", range(-20, 1))
def test_multiply_on_ties(rounding, shift):
    """x * 2^30 * 2^(shift - 31) = x * 2^(shift - 1): odd multiples of the half."""
    half = 1 << -shift
    xs = np.array([s * (2 * k + 1) * half + d for k in range(8) for s in (-1, 1) for d in (-1, 0, 1)], np.int32)
    got = tq.multiply_by_quantized_multiplier(xs, 1 << 30, shift, rounding)
    assert got.tolist() == [multiply(x, 1 << 30, shift, rounding) for x in xs.tolist()]


def test_multiply_at_shift_31_and_beyond():
    for x in EXTREMES:
        expected = high_mul(saturate(x << 31), 2**30)
        for shift in (31, 32, 63, 64, HIGH):
            assert tq.multiply_by_quantized_multiplier(x, 2**30, shift) == expected
    assert tq.multiply_by_quantized_multiplier(EXTREMES, HIGH, LOW).tolist() == [0] * len(EXTREMES)
    # single reads other shifts as the nearest it has
    assert tq.multiply_by_quantized_multiplier(3, 2**30, 31, "single") == multiply(3, 2**30, 30, "single")
    assert tq.multiply_by_quantized_multiplier(HIGH, HIGH, -40, "single") == multiply(HIGH, HIGH, -31, "single")


def multiply_int64(x, multiplier, shift):
    x = max(-(2**47), min(2**47 - 1, x))
    multiplier = max(multiplier, 0)
    reduced = (multiplier + 2**15) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return saturate(shift_ties_up(x * reduced, 15 - max(-31, min(14, shift))))


@given(
    st.one_of(st.sampled_from([-(2**63), -(2**47), 2**47 - 1, 2**47, 2**63 - 1]), st.integers(-(2**48), 2**48)),
    st.one_of(st.sampled_from([0x7FFEFFFF, 0x7FFF0000, 0x7FFF0001, *EXTREMES]), st.integers(LOW, HIGH)),
    st.one_of(st.integers(-31, 7), st.sampled_from([-40, 8, 31, LOW, HIGH])),
)
def test_multiply_int64(x, multiplier, shift):
    assert tq.multiply_by_quantized_multiplier_int64(x, multiplier, shift) == multiply_int64(x, multiplier, shift)


def quantize_multiplier(real):
    """From the exact value: the only pair with a normalized multiplier that is nearest."""
    exact = abs(Fraction(real))
    if exact == 0:
        return 0, 0
    shift = 0
    while exact >= 1:
        exact, shift = exact / 2, shift + 1
    while exact < HALF:
        exact, shift = exact * 2, shift - 1
    m = ties_away(exact * 2**31)
    if m == 2**31 and real > 0:
        m, shift = 2**30, shift + 1
    if shift < -31:
        return 0, 0
    return (m if real > 0 else -m), shift


SPECIAL_REALS = [
    0.0,
    -0.0,
    1.0,
    0.5,
    0.25,
    2.0,
    1 - 2**-31,
    1 - 2**-32,
    1 - 2**-33,
    0.5 - 2**-33,
    2**-31,
    2**-32,
    2**-32 * (1 - 2**-20),
    2**-33,
    5e-324,
    1.7e308,
    2**30,
    2**31,
    2**31 - 1,
    0.0014402704,
    0.5 + 2**-32,
    0.5 + 2**-33,
    -1.0,
    -0.3,
    -(2**-32),
    3e9,
]


@pytest.mark.parametrize("real", SPECIAL_REALS)
def test_quantize_multiplier_special(real):
    got = tq.quantize_multiplier(real)
    assert got == quantize_multiplier(real)
    assert all(type(value) is np.int32 for value in got)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_quantize_multiplier(real):
    assert tq.quantize_multiplier(real) == quantize_multiplier(real)


def test_quantize_multiplier_takes_arrays():
    m, s = tq.quantize_multiplier(np.array([SPECIAL_REALS, SPECIAL_REALS]))
    assert m.dtype == s.dtype == np.int32 and m.shape == s.shape == (2, len(SPECIAL_REALS))
    assert list(zip(m[1].tolist(), s[1].tolist(), strict=True)) == [quantize_multiplier(r) for r in SPECIAL_REALS]


def test_single_rounding_builds_saturate_large_multipliers():
    assert tq.quantize_multiplier(2.0**31, rounding="single") == (HIGH, 30)
    assert tq.quantize_multiplier(2.0**29, rounding="single") == (2**30, 30)
    assert tq.quantize_multiplier(2.0**31) == (2**30, 32)


def test_broadcasting_strides_and_byte_order():
    x = np.arange(-12, 12, dtype=np.int32).reshape(4, 6) * 1000003
    m = np.array([2**30, -(2**30), HIGH, 1583594044, 7, 0], np.int32)
    s = np.array([[-3], [0], [2], [-31]], np.int32)
    expected = tq.multiply_by_quantized_multiplier(x, m, s)
    assert expected.shape == (4, 6)
    assert expected[3, 3] == multiply(int(x[3, 3]), 1583594044, -31, "double")
    for variant in (x.astype(">i4"), np.asfortranarray(x), x.repeat(2, 1)[:, ::2], x[::-1][::-1], x.astype(np.int64)):
        np.testing.assert_array_equal(tq.multiply_by_quantized_multiplier(variant, m.astype(">i4"), s), expected)
    readonly = x.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(tq.multiply_by_quantized_multiplier(readonly, m, s), expected)
    assert tq.rounding_divide_by_pot(np.zeros((0, 3), np.int32), 1).shape == (0, 3)
    assert tq.rounding_divide_by_pot(np.array(5, np.int8), 1) == 3
    assert tq.rounding_divide_by_pot(np.full(100_000, 5), 1).tolist() == [3] * 100_000


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.rounding_divide_by_pot(1.5, 1), TypeError, "x has dtype float64; it must hold integers"),
        (lambda: tq.rounding_divide_by_pot(2**31, 1), ValueError, "x holds 2147483648; it must fit int32"),
        (lambda: tq.rounding_divide_by_pot(2**70, 1), ValueError, "x is 1180591620717411303424; it must fit int32"),
        (lambda: tq.rounding_divide_by_pot(np.array([0, 2**63], np.uint64), 1), ValueError, "9223372036854775808"),
        (lambda: tq.rounding_divide_by_pot(1, "a"), TypeError, "exponent has dtype <U1"),
        (lambda: tq.multiply_by_quantized_multiplier(1, 2, object()), TypeError, "shift is object"),
        (lambda: tq.multiply_by_quantized_multiplier(1, 2, 3, "up-and-down"), ValueError, "rounding is 'up-and-down'"),
        (lambda: tq.multiply_by_quantized_multiplier(1, 2, 3, 4), TypeError, "rounding is 4"),
        (lambda: tq.multiply_by_quantized_multiplier([1, 2], [1, 2, 3], 0), ValueError, "broadcast"),
        (lambda: tq.quantize_multiplier(float("nan")), ValueError, "real is nan; it must be finite"),
        (lambda: tq.quantize_multiplier([1.0, float("inf")]), ValueError, "real is inf"),
        (lambda: tq.quantize_multiplier(1j), TypeError, "real has dtype complex128"),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


# ---- explain_requantize ----


@pytest.mark.parametrize(("rounding", "code"), [("double", 12), ("single", 11), ("up", 12), ("float64-away", 11)])
def test_explain_the_example(rounding, code):
    steps = tq.explain_requantize(7984, 0.0014402704, rounding=rounding)
    assert steps.code == steps["code"] == steps.as_dict()["code"] == code
    assert str(code) in str(steps).splitlines()[-1]
    assert "RequantizeExplanation" in repr(steps)


@pytest.mark.parametrize("rounding", RULES)
@given(
    acc=int32s,
    real=st.one_of(st.floats(2**-20, 2.0), st.floats(0.0, 2.0)),
    zero_point=st.integers(-128, 127),
)
def test_explanations_add_up(rounding, acc, real, zero_point):
    e = tq.explain_requantize(acc, real, zero_point, rounding=rounding)
    assert e.result == e.scaled + zero_point
    assert e.code == max(-128, min(127, e.result))
    assert e.clamped == (e.code != e.result)
    if e.multiplier is None:
        product = float(acc) * real if rounding == "float64-away" else float(np.float32(acc) * np.float32(real))
        assert e.product == product
        assert e.scaled == (ties_away if rounding == "float64-away" else ties_even)(Fraction(product))
        return
    assert (e.multiplier, e.shift) == tq.quantize_multiplier(real)
    assert e.product == e.shifted * e.multiplier
    assert e.scaled == multiply(acc, e.multiplier, e.shift, rounding)
    if rounding == "single":
        assert e.high is None and e.remainder == e.product % 2**e.right_shift
    else:
        assert e.shifted == saturate(acc << max(e.shift, 0))
        assert e.high == high_mul(e.shifted, e.multiplier)
        assert e.right_shift == max(-e.shift, 0) and e.remainder == e.high % 2**e.right_shift


def test_explain_takes_a_pair_zero_points_and_dtypes():
    e = tq.explain_requantize(7984, (1583594044, -9), 3, input_zero_point=0, dtype=np.uint8)
    assert (e.code, e.result, e.dtype) == (15, 15, "uint8")
    assert tq.explain_requantize(8000, (1583594044, -9), input_zero_point=16).code == 12
    e = tq.explain_requantize(100000, 3.7, dtype="int16")
    assert (e.code, e.result, e.clamped) == (32767, 370000, True)
    assert "370000 clamped" in str(e)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.explain_requantize(2**31, 0.5), ValueError, "acc is 2147483648; it must be from -2147483648"),
        (
            lambda: tq.explain_requantize(2**31 - 1, 1, input_zero_point=-1),
            ValueError,
            "acc - input_zero_point is 2147",
        ),
        (lambda: tq.explain_requantize(5.5, 0.5), TypeError, "acc is 5.5; it must be an integer"),
        (lambda: tq.explain_requantize(5, "0.5"), TypeError, "multiplier is '0.5'; it must be a number"),
        (lambda: tq.explain_requantize(5, None), TypeError, "multiplier is None; it must be a number"),
        (lambda: tq.explain_requantize(5, 10**400), ValueError, "multiplier is inf; it must be finite"),
        (
            lambda: tq.explain_requantize(5, 1e39, rounding="float32-even"),
            ValueError,
            "multiplier is 1e+39; it must be",
        ),
        (lambda: tq.explain_requantize(5, (2**31, 0)), ValueError, "multiplier[0] is 2147483648"),
        (lambda: tq.explain_requantize(5, -0.5), ValueError, "multiplier is -0.5; it must be finite and not negative"),
        (lambda: tq.explain_requantize(5, (-1, 0)), ValueError, "multiplier[0] is -1; it must be from 0 to"),
        (lambda: tq.explain_requantize(0, (2**30, 129), rounding="float32-even"), ValueError, "finite as float32"),
        (lambda: tq.explain_requantize(5, b"1"), TypeError, "multiplier is b'1'; it must be a number"),
        (lambda: tq.explain_requantize(5, (1.5, 0)), TypeError, "multiplier[0] is 1.5; it must be an integer"),
        (lambda: tq.explain_requantize(5, 0.5, 1.5), TypeError, "zero_point is 1.5; it must be an integer"),
        (lambda: tq.explain_requantize(5, 0.5, 2**70), ValueError, "zero_point is 1180591620717411303424"),
        (lambda: tq.explain_requantize(1, float("nan")), ValueError, "multiplier is nan"),
        (lambda: tq.explain_requantize(1, 0.5, 128), ValueError, "zero_point is 128; int8 needs one from -128 to 127"),
        (lambda: tq.explain_requantize(1, 0.5, rounding="no"), ValueError, "rounding is 'no'"),
        (lambda: tq.explain_requantize(1, 0.5, dtype="int7"), TypeError, "dtype is 'int7'"),
        (
            lambda: tq.explain_requantize(1, (2**30, -32)),
            ValueError,
            "multiplier[1] is -32; it must be from -31 to 1024",
        ),
        (lambda: tq.explain_requantize(1, (1, 2, 3)), ValueError, "multiplier has 3 parts"),
    ],
)
def test_explain_errors(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_table_in_the_documentation():
    shown = doctest.testmod(importlib.import_module("tq.explanation.explain_requantize"))
    assert shown.attempted and not shown.failed


def test_the_examples_of_functions_in_c_hold():
    runner, parser, examples = doctest.DocTestRunner(verbose=False), doctest.DocTestParser(), 0
    for name in tq.__all__:
        function = getattr(tq, name)
        if getattr(function, "__module__", None) == "tq._core" and ">>>" in (function.__doc__ or ""):
            test = parser.get_doctest(function.__doc__, {**vars(tq), "numpy": np}, name, None, 0)
            examples += len(test.examples)
            runner.run(test)
    assert examples > 10 and runner.failures == 0


def test_rules_are_documented():
    rules = tq.rules()
    assert list(rules["requantize"]) == ["double", "single", "up", "float64-away", "float32-even"]
    assert list(rules["requantize_int64"]) == ["int64-up", "float64-away"]
    families = {"quantize", "requantize", "requantize_int64", "parameters", "weights", "histogram", "fake_quant"}
    assert set(rules) == families
    assert all(len(text) > 20 for family in rules.values() for text in family.values())


def frexp_multiplier(real):
    """The runtime's own way: round(frexp(real, &exponent) * 2^31), ties away."""
    fraction, exponent = np.frexp(real)
    scaled = np.abs(fraction) * 2.0**31  # below 2^31 + 1: adding a half is exact enough to find ties
    fixed = np.floor(scaled).astype(np.int64) + (scaled - np.floor(scaled) >= 0.5)
    fixed = np.where(real < 0, -fixed, fixed)
    exponent = exponent.astype(np.int64) + (fixed == 2**31)
    fixed = np.where(fixed == 2**31, 2**30, fixed)
    flushed = (fixed == 0) | (exponent < -31)
    return np.where(flushed, 0, fixed).astype(np.int32), np.where(flushed, 0, exponent).astype(np.int32)


def test_multipliers_of_any_bits():
    """tq takes the bits apart: the same as the runtime's frexp, over random bits, every exponent and every carry."""
    rng = np.random.default_rng(7)
    exponents = np.arange(2047, dtype=np.uint64) << np.uint64(52)
    fractions = np.array(
        [0, 1, 2**21 - 1, 2**21, 2**21 + 1, 3 * 2**21, 2**52 - 2**21 - 1, 2**52 - 2**21, 2**52 - 1], np.uint64
    )
    edges = (exponents[:, None] | fractions).ravel()
    near = (rng.integers(1023 - 40, 1023 + 40, 200_000).astype(np.uint64) << np.uint64(52)) | rng.integers(
        0, 2**52, 200_000, dtype=np.uint64
    )
    bits = np.concatenate([edges, near, rng.integers(0, 2**63, 200_000, dtype=np.uint64)])
    real = np.concatenate([bits, bits | np.uint64(2**63)]).view(np.float64)
    real = real[np.isfinite(real)]
    multiplier, shift = tq.quantize_multiplier(real)
    expected_multiplier, expected_shift = frexp_multiplier(real)
    assert (np.asarray(multiplier) == expected_multiplier).all()
    assert (np.asarray(shift) == expected_shift).all()


@pytest.mark.parametrize("rounding", tq.rules()["requantize"])
@pytest.mark.parametrize("real", [2.0**31, 2.0**33, 1e38, 3e38, 5e-324, 2.0**-32, 0.0])
def test_explain_takes_every_pair_that_quantize_multiplier_gives(real, rounding):
    pair = tuple(int(v) for v in tq.quantize_multiplier(real, rounding=rounding))
    for acc in (0, 1, -1, 7, -(2**31), 2**31 - 1):
        e = tq.explain_requantize(acc, pair, dtype="int32", rounding=rounding)
        assert e.code == tq.multiply_by_quantized_multiplier(acc, *pair, rounding)
        assert e.code == tq.requantize(
            np.int32([acc]), pair[0] * 2.0 ** (pair[1] - 31), dtype="int32", rounding=rounding
        )
        assert max(map(len, str(e).split("\n"))) < 120


def test_explanations_of_huge_products_fit_a_table():
    assert len(str(tq.explain_requantize(5, 1e300, rounding="float64-away")).split("\n")[1]) < 80


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tq.rounding_divide_by_pot([1, 2**70], 1), ValueError, "x holds 1180591620717411303424"),
        (lambda: tq.rounding_divide_by_pot([1, None], 1), TypeError, "x is list; it must be an array of numbers"),
        (lambda: tq.quantize_multiplier([1.0, 10**400][1:]), ValueError, "real is inf"),
        (
            lambda: tq.rounding_divide_by_pot([1, 2], [1, 2, 3]),
            ValueError,
            "x has shape (2,), exponent has shape (3,);",
        ),
        (
            lambda: tq.choose_quantization_params([0] * 2, [1] * 3),
            ValueError,
            "min has shape (2,), max has shape (3,);",
        ),
        (
            lambda: tq.quantize_bias([1, 2], [1, 2, 3], 1),
            ValueError,
            "b has shape (2,), input_scale has shape (3,), wei",
        ),
    ],
)
def test_array_errors_name_the_argument(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_wide_reals_round_to_float64():
    for wide in (np.longdouble(0.3), np.array([0.3], np.longdouble), [2**70], -(2**70)):
        found, wanted = tq.quantize_multiplier(wide), tq.quantize_multiplier(np.array(wide, np.float64))
        np.testing.assert_array_equal(found, wanted)
