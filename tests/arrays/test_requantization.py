# SPDX-License-Identifier: Apache-2.0
"""tq.Requantization: what tq.requantize gives, whose rules test_requantize.py holds against oracles."""

import concurrent.futures
import copy
import itertools
import pickle

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import RANGES

import tq

RULES = ["double", "single", "up", "float64-away", "float32-even"]
TYPES = ["int8", "uint8", "int16", "int32"]


def ties(rng, multiplier, shape):
    """Accumulators at ties between two quantized values of their channel (the last dimension), or next to them."""
    codes = rng.integers(-140, 140, shape) + 0.5
    return (np.rint(codes / multiplier) + rng.integers(-1, 2, shape)).astype(np.int32)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("channels", [1, 3, 24, 64, 96, 200, 640, 700])
@pytest.mark.parametrize("zero_point", [0, 3, -128, 127])
def test_equals_the_oracle_at_ties(rule, channels, zero_point):
    rng = np.random.default_rng(channels)
    multiplier = np.exp(rng.uniform(np.log(0.0006), np.log(0.01), channels))
    layer = tq.Requantization(multiplier, zero_point, axis=1, rounding=rule)
    q = ties(rng, multiplier, (80, channels))
    q.flat[: min(6, q.size)] = [-(2**31), 2**31 - 1, 0, -1, 1, 2**24][: min(6, q.size)]
    found = layer.requantize(q)
    for k in range(0, channels, max(1, channels // 8)):
        expected = oracles.requantize(q[:, k], multiplier[k], 0, zero_point, "int8", rule)
        assert np.array_equal(found[:, k], expected), k
    assert np.array_equal(found, tq.requantize(q, multiplier, zero_point, axis=1, rounding=rule))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("of", "to"), list(itertools.product(TYPES, TYPES)))
def test_every_rule_and_type(rule, of, to):
    rng = np.random.default_rng(5)
    q = rng.integers(RANGES[of][0], RANGES[of][1], (70, 9), endpoint=True).astype(of)
    multiplier = 10.0 ** rng.uniform(-4, 0, 9)
    zero_point = rng.integers(RANGES[to][0], RANGES[to][1], 9, endpoint=True) if to != "int32" else 0
    layer = tq.Requantization(multiplier, zero_point, input_zero_point=3, dtype=to, axis=-1, rounding=rule)
    expected = tq.requantize(q, multiplier, zero_point, input_zero_point=3, dtype=to, axis=-1, rounding=rule)
    found = layer.requantize(q)
    assert found.dtype == expected.dtype and np.array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_the_function_on_any_layout(data):
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sets = max(shape[axis], 1)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    multiplier = 10.0 ** rng.uniform(-4, -1, sets)
    zero_point = rng.integers(-128, 128, sets) if data.draw(st.booleans()) else 5
    rule = data.draw(st.sampled_from(RULES))
    shape[axis] = sets
    q = rng.integers(-(2**17), 2**17, [2 * n for n in shape]).astype(np.int32)
    q = q[tuple(slice(None, 2 * n, 2) for n in shape)]
    layer = tq.Requantization(multiplier, zero_point, axis=axis, rounding=rule)
    assert np.array_equal(layer.requantize(q), tq.requantize(q, multiplier, zero_point, axis=axis, rounding=rule))


def test_one_set_for_all():
    layer = tq.Requantization(0.0014402704)
    assert layer.requantize([7984, -7984]).tolist() == [12, -12]
    assert layer.requantize(np.int32(7984)).shape == ()
    assert tq.Requantization(0.0014402704, rounding="float64-away").requantize([7984, -7984]).tolist() == [11, -11]
    assert tq.Requantization([0.5, 0.25], axis=0).requantize(np.int32([10, 10])).tolist() == [5, 3]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_no_channels(dtype):
    layer = pickle.loads(pickle.dumps(tq.Requantization([], 3, axis=-1, dtype=dtype)))
    assert layer.multiplier.shape == (0,) and "0 multipliers" in repr(layer)
    found = layer.requantize(np.zeros((5, 0), np.int32))
    assert found.shape == (5, 0) and found.dtype == dtype
    with pytest.raises(ValueError, match=r"multiplier has shape \(0,\): it needs one value, or 5"):
        layer.requantize(np.zeros((5, 5), np.int32))


def test_out_and_threads():
    rng = np.random.default_rng(0)
    multiplier = rng.uniform(0.001, 0.005, 64)
    layer = tq.Requantization(multiplier, 3, axis=1)
    q = rng.integers(-30000, 30000, (9000, 64)).astype(np.int32)
    out = np.empty(q.shape, np.int8)
    assert layer.requantize(q, out=out, num_threads=2) is out
    assert np.array_equal(out, tq.requantize(q, multiplier, 3, axis=1))
    with pytest.raises(ValueError, match="out has shape"):
        layer.requantize(q, out=out[:4])
    with pytest.raises(TypeError, match="num_threads"):
        layer.requantize(q, num_threads="2")


def test_several_threads_share_one():
    rng = np.random.default_rng(0)
    multiplier = rng.uniform(0.001, 0.005, 32)
    layer = tq.Requantization(multiplier, axis=1)
    arrays = [rng.integers(-30000, 30000, (3000, 32)).astype(np.int32) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for q, found in zip(arrays, pool.map(layer.requantize, arrays), strict=True):
            assert np.array_equal(found, tq.requantize(q, multiplier, axis=1))


def test_keeps_copies_that_cannot_be_written_to():
    multiplier = np.array([0.5, 0.25])
    layer = tq.Requantization(multiplier, [1, 2], input_zero_point=4, dtype="uint8", axis=-1, rounding="up")
    multiplier[:] = 7
    assert layer.multiplier.tolist() == [0.5, 0.25] and layer.multiplier.dtype == np.float64
    assert layer.zero_point.tolist() == [1, 2] and layer.input_zero_point.tolist() == 4
    assert (layer.axis, layer.dtype, layer.rounding) == (-1, "uint8", "up")
    for values in (layer.multiplier, layer.zero_point, layer.input_zero_point):
        assert not values.flags.writeable
    with pytest.raises(AttributeError):
        layer.axis = 0
    assert (
        repr(layer) == "<tq.Requantization: (q - 4) * 2 multipliers + 2 zero points, to uint8, axis -1, rounding 'up'>"
    )


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_and_pickles(again):
    layer = tq.Requantization(np.linspace(0.001, 0.004, 64), 3, input_zero_point=1, axis=1, rounding="single")
    other = again(layer)
    assert repr(other) == repr(layer) and np.array_equal(other.multiplier, layer.multiplier)
    q = np.random.default_rng(0).integers(-30000, 30000, (200, 64)).astype(np.int32)
    assert np.array_equal(other.requantize(q), layer.requantize(q))
    swapped = again(tq.Requantization(0.5, dtype=">i2"))
    assert swapped.dtype == "int16" and swapped.requantize(q).dtype == ">i2"


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "words"),
    [
        (("a",), {}, TypeError, "multiplier has dtype"),
        ((-1.0,), {}, ValueError, "multiplier is -1.0: a multiplier must be finite and not negative"),
        ((np.nan,), {}, ValueError, "multiplier is nan"),
        (([1, 2],), {}, ValueError, "give axis"),
        (([1, 2], [1, 2, 3]), {"axis": 0}, ValueError, "multiplier has 2 values and zero_point has 3: each needs one"),
        (
            (1, [1, 2]),
            {"axis": 0, "input_zero_point": []},
            ValueError,
            "zero_point has 2 values and input_zero_point has 0",
        ),
        (([[1, 2]],), {"axis": 0}, ValueError, "multiplier has shape"),
        ((1.0, 300), {}, ValueError, "zero_point is 300: it must be a value of int8"),
        ((1.0, 0.5), {}, TypeError, "zero_point"),
        ((1.0,), {"axis": "x"}, TypeError, "axis is a str"),
        ((1.0,), {"axis": 100}, ValueError, "axis is 100"),
        ((1.0,), {"rounding": "q"}, ValueError, "rounding is 'q'"),
        ((1.0,), {"dtype": "float32"}, TypeError, "dtype is 'float32': it must be int8, uint8, int16 or int32$"),
        ((1.0,), {"dtype": "int4"}, TypeError, "dtype is int4"),
        ((), {}, TypeError, "multiplier"),
        ((1.0, 0, 0), {}, TypeError, "at most 2 positional"),
        ((1.0,), {"out": None}, TypeError, "out"),
    ],
)
def test_bad_arguments(arguments, keywords, error, words):
    with pytest.raises(error, match=words):
        tq.Requantization(*arguments, **keywords)


@pytest.mark.parametrize(
    ("q", "error", "words"),
    [
        (np.zeros((2, 3), np.int32), ValueError, r"multiplier has shape \(2,\): it needs one value, or 3"),
        (np.zeros(2, np.int32), ValueError, "axis"),
        (np.zeros((3, 2), np.float32), TypeError, "q"),
        (np.zeros((3, 2), np.int64), TypeError, "q"),
    ],
)
def test_bad_input(q, error, words):
    layer = tq.Requantization([0.5, 0.25], axis=1)
    with pytest.raises(error, match=words):
        layer.requantize(q)


@pytest.mark.parametrize("name", ["zero_point", "input_zero_point"])
def test_values_that_are_all_the_same_are_as_many_as_channels(name):
    layer = pickle.loads(pickle.dumps(tq.Requantization(0.5, axis=1, **{name: [3, 3]})))
    assert getattr(layer, name).tolist() == [3, 3] and layer.multiplier.shape == ()
    q = np.arange(-20, 20, dtype=np.int32).reshape(20, 2)
    assert np.array_equal(layer.requantize(q), tq.requantize(q, 0.5, **{name: 3}))
    with pytest.raises(ValueError, match=rf"{name} has shape \(2,\): it needs one value, or 5"):
        layer.requantize(np.zeros((4, 5), np.int32))


def test_an_input_zero_point_must_be_a_value_of_the_input_type():
    layer = tq.Requantization(0.5, input_zero_point=300)
    assert layer.requantize(np.int32([310])).tolist() == [5]
    with pytest.raises(ValueError, match="input_zero_point is 300: it must be a value of int8"):
        layer.requantize(np.int8([1]))
