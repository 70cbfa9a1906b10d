# SPDX-License-Identifier: Apache-2.0
"""requantize against integer and rational arithmetic, and LiteRT's reference QUANTIZE between integers."""

import numpy as np
import one_op
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import RANGES

import tq

RULES = ["double", "single", "up", "float64-away", "float32-even"]
TYPES = ["int8", "uint8", "int16", "int32"]
MULTIPLIERS = [
    0.0014402704,
    0.5,
    2.0**-7,
    0.75,
    1.0,
    1.5,
    127.9,
    2.0**-31,
    2.0**-32,
    2.0**-40,
    3e-9,
    0.999999999999,
    1e-3,
    0.0,
    2.0**20 + 0.3,
]


def values(dtype, rng, multiplier=1.0, count=150):
    """Extremes, everything near zero, and what lands on the ties of the multiplier."""
    low, high = RANGES[dtype]
    near = np.arange(-70, 70)
    ties = np.rint((rng.integers(-130, 130, 60) + 0.5) / max(multiplier, 1e-9))
    parts = [near, ties, ties + 1, ties - 1, rng.integers(low, high + 1, count), [low, low + 1, high, high - 1]]
    return np.clip(np.concatenate(parts), low, high).astype(dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("of", TYPES)
def test_every_rule_and_type(of, to, rule):
    rng = np.random.default_rng(1)
    zeros = [(0, 0), (RANGES[to][0], 3), (RANGES[to][1], RANGES[of][0]), (5, RANGES[of][1])]
    for k, multiplier in enumerate([*MULTIPLIERS, *(10.0 ** rng.uniform(-6, 2, 4))]):
        q = values(of, rng, multiplier)
        for zero, input_zero in [zeros[0], zeros[1 + k % 3]]:
            found = tq.requantize(q, multiplier, zero, input_zero_point=input_zero, dtype=to, rounding=rule)
            expected = oracles.requantize(q, multiplier, input_zero, zero, to, rule)
            assert same(found, expected), (multiplier, zero, input_zero)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_properties(rule, data):
    of, to = data.draw(st.sampled_from(TYPES)), data.draw(st.sampled_from(TYPES))
    multiplier = data.draw(st.one_of(st.floats(0, 1), st.floats(0, 3e38), st.integers(-45, 31).map(lambda e: 2.0**e)))
    q = np.array(data.draw(st.lists(st.integers(*RANGES[of]), min_size=1, max_size=70)), of)
    zero, input_zero = data.draw(st.integers(*RANGES[to])), data.draw(st.integers(*RANGES[of]))
    found = tq.requantize(q, multiplier, zero, input_zero_point=input_zero, dtype=to, rounding=rule)
    assert same(found, oracles.requantize(q, multiplier, input_zero, zero, to, rule))


def test_rules_differ_where_they_are_known_to():
    q = np.int32([7984, -7984])
    found = {rule: tq.requantize(q, 0.0014402704, rounding=rule).tolist() for rule in RULES}
    assert found["double"] == [12, -12]
    assert found["float64-away"] == [11, -11]
    assert found["single"] == [11, -11]
    assert tq.requantize(np.int32([1]), 0.25).tolist() == [1]  # twice rounded: 0.25 -> 0.5 -> 1
    assert tq.requantize(np.int32([1]), 0.25, rounding="single").tolist() == [0]
    assert tq.requantize(np.int32([-6]), 0.25).tolist() == [-2]  # -1.5, ties away
    assert tq.requantize(np.int32([-6]), 0.25, rounding="up").tolist() == [-1]


def test_large_accumulators_round_to_float32_first_in_xnnpack():
    q = np.int32([2**24 + 1, 2**25 + 3])
    assert tq.requantize(q, 1.0, dtype="int32", rounding="float32-even").tolist() == [2**24, 2**25 + 4]


def test_left_shifts_saturate():
    q = np.int32([2**30, -(2**30), 2**31 - 1, -(2**31), 1, -1, 0])
    for rule in ["double", "up", "single"]:
        found = tq.requantize(q, 2.0**40, dtype="int32", rounding=rule)
        assert same(found, oracles.requantize(q, 2.0**40, 0, 0, "int32", rule))
        assert found[-1] == 0
        assert (found[:4] == [2**31 - 1, -(2**31)] * 2).all() or rule != "single"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(300,), (70, 3), (3, 70), (4, 5, 6), (2, 3, 130)])
def test_one_multiplier_a_channel(shape, rule):
    rng = np.random.default_rng(2)
    for of, to in [("int32", "int8"), ("int8", "int8"), ("int16", "int32"), ("int32", "uint8")]:
        q = rng.integers(*(np.array(RANGES[of]) // (1000 if of == "int32" else 1)), shape).astype(of)
        for axis in range(len(shape)):
            n = shape[axis]
            multiplier = 10.0 ** rng.uniform(-6, 0.5, n)
            zero, input_zero = rng.integers(0, 100, n), rng.integers(0, 100, n)
            spread = [
                v.reshape([-1 if i == axis else 1 for i in range(q.ndim)]) for v in (multiplier, input_zero, zero)
            ]
            found = tq.requantize(q, multiplier, zero, input_zero_point=input_zero, dtype=to, axis=axis, rounding=rule)
            assert same(found, oracles.requantize(q, *spread, to, rule))
            found = tq.requantize(q, multiplier, 7, dtype=to, axis=axis - q.ndim, rounding=rule, num_threads=2)
            assert same(found, oracles.requantize(q, spread[0], 0, 7, to, rule))


def test_litert_requantizes_the_same():
    rng = np.random.default_rng(3)
    pairs = [
        ("int8", "int8"),
        ("int8", "uint8"),
        ("uint8", "int8"),
        ("uint8", "uint8"),
        ("int8", "int16"),
        ("uint8", "int16"),
        ("int16", "int8"),
        ("int16", "int16"),
        ("int16", "int32"),
        ("int32", "int8"),
        ("int32", "int16"),
    ]
    jobs, found = [], []
    for of, to in pairs:
        for _ in range(8):
            input_scale, scale = (10.0 ** rng.uniform(-3, 0, 2)).astype(np.float32)
            if of == "int32":
                input_scale = np.float32(input_scale * 1e-6)
            zero = 0 if to in ("int16", "int32") else int(rng.integers(*RANGES[to]))
            input_zero = 0 if of in ("int16", "int32") else int(rng.integers(*RANGES[of]))
            multiplier = float(input_scale) / float(scale)
            q = values(of, rng, multiplier)
            q = q[np.abs(q.astype(np.float64) * max(multiplier, 1)) < 2.0**30]  # left shifts wrap in C
            jobs.append((q, ([input_scale], [input_zero], 0), to, ([scale], [zero], 0)))
            found.append(tq.requantize(q, multiplier, zero, input_zero_point=input_zero, dtype=to))
    for job, mine, its in zip(jobs, found, one_op.answers(jobs), strict=True):
        assert same(mine, its), job


def test_in_place_and_overlap():
    rng = np.random.default_rng(4)
    q = rng.integers(-128, 128, 5000).astype(np.int8)
    expected = tq.requantize(q, 0.7, 3)
    assert tq.requantize(q, 0.7, 3, out=q) is q
    assert same(q, expected)
    acc = rng.integers(-30000, 30000, 5000).astype(np.int32)
    with pytest.raises(ValueError, match="overlaps"):
        tq.requantize(acc, 0.01, out=acc.view(np.int8)[:5000])
    expected = tq.requantize(acc, 0.01, dtype="int32")
    assert same(tq.requantize(acc, 0.01, dtype="int32", out=acc), expected)


def test_wrong_arguments_are_refused():
    q = np.ones((2, 3), np.int32)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^multiplier is .*: a multiplier must"):
            tq.requantize(q, bad)
        with pytest.raises(ValueError, match=r"^multiplier\[1\] is"):
            tq.requantize(q, [1.0, bad, 1.0], axis=1)
    with pytest.raises(ValueError, match="finite as float32"):
        tq.requantize(q, 1e39, rounding="float32-even")
    assert tq.requantize(q, 1e39).tolist() == [[127] * 3] * 2
    with pytest.raises(TypeError, match=r"^q has dtype"):
        tq.requantize(np.ones(3, np.float32), 1.0)
    with pytest.raises(TypeError, match="q's dtype is uint16"):
        tq.requantize(np.ones(3, np.uint16), 1.0)
    for bad in ("int4", "uint16"):
        with pytest.raises(TypeError, match=f"dtype is {bad}"):
            tq.requantize(q, 1.0, dtype=bad)
    with pytest.raises(ValueError, match="rounding is 'away'"):
        tq.requantize(q, 1.0, rounding="away")
    with pytest.raises(ValueError, match="zero_point is 128"):
        tq.requantize(q, 1.0, 128)
    with pytest.raises(ValueError, match="input_zero_point is 300: it must be a value of int8"):
        tq.requantize(q.astype(np.int8), 1.0, input_zero_point=300)
    with pytest.raises(ValueError, match=r"multiplier has shape \(2,\)"):
        tq.requantize(q, [1.0, 2.0], axis=1)
