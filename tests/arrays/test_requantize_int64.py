# SPDX-License-Identifier: Apache-2.0
"""int64 accumulators, those of 16x8 operators: requantize, explain_requantize and the rules' names."""

from fractions import Fraction

import numpy as np
import oracles
import pytest

import tq

RULES = list(tq.rules()["requantize_int64"])
EDGES = [0, 1, -1, 2**31, -(2**31), 2**47 - 1, -(2**47), 2**47, 2**63 - 1, -(2**63)]


def one(acc, real, zero, low, high, rule):
    """In exact rationals, by the formulas in tq.rules()."""
    if rule == "float64-away":
        return oracles.clamp(oracles.away(Fraction(float(acc) * real)) + zero, low, high)
    m, e = oracles.quantize_multiplier(real)
    k = (m + 2**15) // 2**16 if m < 0x7FFF0000 else 0x7FFF
    e = oracles.clamp(e, -31, 14)
    acc = oracles.clamp(acc, -(2**47), 2**47 - 1)
    product = oracles.clamp((acc * k + 2 ** (14 - e)) // 2 ** (15 - e), -(2**31), 2**31 - 1)
    return oracles.clamp(product + zero, low, high)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("rule", RULES)
def test_values_are_those_of_the_formula(rule, dtype):
    rng = np.random.default_rng(3)
    acc = np.array([*EDGES, *(rng.integers(-(2**40), 2**40, 400) >> rng.integers(0, 40, 400))], np.int64)
    info = np.iinfo(dtype)
    zero = 3
    for real in (0.0, 1e-9, 0.00144, 0.5, 0.75, 1.0, 100.0, 0.99999999, 2.0**14):
        expected = [one(int(a), real, zero, int(info.min), int(info.max), rule) for a in acc]
        got = tq.requantize(acc, real, zero, dtype=dtype, rounding=rule)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
        explained = [tq.explain_requantize(int(a), real, zero, dtype=dtype, rounding="int64-up").code for a in acc[:30]]
        np.testing.assert_array_equal(explained, tq.requantize(acc[:30], real, zero, dtype=dtype))


def test_each_channel_has_its_own_parameters_on_any_number_of_threads():
    acc = np.arange(-30000, 30000, dtype=np.int64).reshape(20, 3, 1000) * 977
    reals, zeros, inputs = [0.001, 0.02, 0.3], [0, 5, -7], [9, -9, 2**31 - 1]
    got = tq.requantize(acc, reals, zeros, input_zero_point=inputs, axis=1, dtype="int16", num_threads=3)
    for c in range(3):
        alone = tq.requantize(acc[:, c] - inputs[c], reals[c], zeros[c], dtype="int16", num_threads=1)
        np.testing.assert_array_equal(got[:, c], alone)
    out = np.empty(acc.shape, np.int16)
    assert tq.requantize(acc, reals, zeros, input_zero_point=inputs, axis=1, dtype="int16", out=out) is out
    np.testing.assert_array_equal(out, got)


def test_other_byte_orders_strides_and_scalars():
    acc = np.arange(-600, 600, dtype=np.int64) * 10**9
    wanted = tq.requantize(acc, 1e-8, dtype="int16")
    np.testing.assert_array_equal(tq.requantize(acc.astype(">i8"), 1e-8, dtype="int16"), wanted)
    np.testing.assert_array_equal(tq.requantize(acc[::-3], 1e-8, dtype="int16"), wanted[::-3])
    assert tq.requantize(np.int64(-600 * 10**9), 1e-8, dtype="int16") == wanted[0]


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"rounding": "double"}, ValueError, "must be 'int64-up' or 'float64-away'"),
        ({"dtype": "float32"}, TypeError, "int8, uint8, int16 or int32"),
        ({"dtype": "int4"}, TypeError, "int8, uint8, int16 or int32"),
        ({"zero_point": 300}, ValueError, "zero_point"),
        ({"axis": 3}, (ValueError, IndexError), "axis"),
    ],
)
def test_arguments_that_do_not_fit_are_named(keywords, error, words):
    with pytest.raises(error, match=words):
        tq.requantize(np.zeros(3, np.int64), 0.5, **keywords)


@pytest.mark.parametrize("real", [0.3, -0.3, 1.0, 2.0**-32, 2.0**-33, 5e9, 0.999999, 0.0])
@pytest.mark.parametrize("bits", [2, 8, 16, 30, 31])
def test_multipliers_of_fewer_bits_state_their_error(bits, real):
    result = tq.quantize_multiplier(real, bits=bits)
    multiplier, shift = result
    assert len(result) == 2 and (result.multiplier, result.shift) == (multiplier, shift)
    exact = Fraction(int(multiplier)) * Fraction(2) ** (int(shift) - bits) - Fraction(real)
    assert Fraction(float(result.error)) == exact
    assert multiplier == 0 or 2 ** (bits - 1) <= abs(int(multiplier)) < 2**bits
    if abs(real) >= 2.0**-32:
        assert abs(result.error) <= abs(real) * 2.0**-bits


def test_numbers_of_bits_out_of_range_are_refused():
    for bits in (0, 1, 32):
        with pytest.raises(ValueError, match=f"bits is {bits}; it must be from 2 to 31"):
            tq.quantize_multiplier(0.3, bits=bits)
    with pytest.raises(ValueError, match="31 with rounding='single'"):
        tq.quantize_multiplier(0.3, bits=16, rounding="single")


def test_the_default_rule_of_an_accumulator_is_requantize_s():
    for acc in (np.int32(7984), np.int64(7984)):
        explained = tq.explain_requantize(acc, 0.0014402704)
        assert explained.code == tq.requantize(acc, 0.0014402704)
        assert explained.rounding == ("double" if acc.dtype == np.int32 else "int64-up")
    with pytest.raises(ValueError, match="accumulators need 'int64-up' or 'float64-away'"):
        tq.explain_requantize(2**40, 1e-9)


def test_multipliers_of_fewer_bits_are_no_multipliers_of_the_rules():
    short = tq.quantize_multiplier(0.3, bits=8)
    assert short.bits == 8 and tq.quantize_multiplier([0.3, 0.4]).bits == 31
    with pytest.raises(ValueError, match="multiplier has 8 bits; the rules need 31"):
        tq.explain_requantize(1000, short)
