# SPDX-License-Identifier: Apache-2.0
"""Extremes and truths of runs are found in lanes; their bits are those of one element after the other."""

import functools

import numpy as np
import pytest

import tq

FOLDS = {
    "REDUCE_MAX": lambda found, x: x if x > found else found,
    "REDUCE_MIN": lambda found, x: x if x < found else found,
    "REDUCE_ANY": lambda found, x: bool(found) or bool(x),
    "REDUCE_ALL": lambda found, x: bool(found) and bool(x),
}
STARTS = {
    "REDUCE_MAX": -np.finfo(np.float32).max,
    "REDUCE_MIN": np.finfo(np.float32).max,
    "REDUCE_ANY": False,
    "REDUCE_ALL": True,
}


def invoked(name, values, axes, shape, numerics):
    build = tq.ModelBuilder()
    kind = "BOOL" if values.dtype == bool else "FLOAT32"
    x = build.input("x", values.shape, kind)
    axes = build.tensor("axes", data=np.int32(axes))
    y = build.tensor("y", shape, kind)
    build.operator(name, [x, axes], [y], keep_dims=False)
    build.output(y)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics=numerics)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    return interpreter.get_tensor(2)


def reduced(name, values, axis=1, numerics="reference"):
    return invoked(name, values, [axis], values.shape[1 - axis : 2 - axis], numerics)


def floats(rng, rows, length):
    """Few values, so that zeros of both signs, infinities and NaN are often the extreme."""
    some = np.float32([-np.inf, -2.5, -0.0, 0.0, 1.5, np.nan, np.inf])
    chances = rng.dirichlet(np.full(len(some), 0.4), rows)
    return np.stack([rng.choice(some, length, p=p) for p in chances])


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 40, 530])
def test_a_run_or_column_is_reduced_as_one_element_after_the_other(name, length):
    rng = np.random.default_rng(length)
    for rows in (1, 5, 131):
        if name in ("REDUCE_ANY", "REDUCE_ALL"):
            rare = rng.random((rows, length)) < 1 / length
            values = rare if name == "REDUCE_ANY" else ~rare
        else:
            values = floats(rng, rows, length)
        expected = [functools.reduce(FOLDS[name], row, values.dtype.type(STARTS[name])) for row in values]
        expected = np.array(expected, values.dtype).view(np.uint8)
        np.testing.assert_array_equal(reduced(name, values).view(np.uint8), expected)
        columns = np.ascontiguousarray(values.T)
        np.testing.assert_array_equal(reduced(name, columns, 0).view(np.uint8), expected)


def searched(name, values, axis):
    build = tq.ModelBuilder()
    x = build.input("x", values.shape, values.dtype.name)
    axis = build.tensor("axis", data=np.int32(axis))
    y = build.tensor("y", [1], "INT32")
    build.operator(name, [x, axis], [y], output_type="INT32")
    build.output(y)
    interpreter = tq.Interpreter(model_content=build.to_bytes())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    return interpreter.get_tensor(2)


def first_of(sign, row):
    """NaN loses to every number."""
    best = 0
    for k, x in enumerate(row):
        if sign * x > sign * row[best] or (np.isnan(row[best]) and not np.isnan(x)):
            best = k
    return best


@pytest.mark.parametrize("name", ["ARG_MAX", "ARG_MIN"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 15, 16, 17, 21, 40, 63, 64, 65, 530])
def test_the_first_of_the_greatest_or_least_is_found(name, length):
    rng = np.random.default_rng(length)
    find, sign = (np.argmax, 1) if name == "ARG_MAX" else (np.argmin, -1)
    for rows in (1, 5, 131):
        values = floats(rng, rows, length)
        expected = [first_of(sign, row) for row in values]
        np.testing.assert_array_equal(searched(name, values, 1), expected)
        np.testing.assert_array_equal(searched(name, values.T.copy(), 0), expected)
        for kind in (np.int8, np.uint8, np.int32):
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            values = rng.choice(np.array([low, low + 1, 0, 1, high - 1, high], kind), (rows, length))
            np.testing.assert_array_equal(searched(name, values, 1), find(values, axis=1))
            np.testing.assert_array_equal(searched(name, values.T.copy(), 0), find(values, axis=1))


@pytest.mark.parametrize("length", [1, 3, 15, 16, 21, 70, 1030])
def test_several_runs_are_added_as_one_number_after_the_other(length):
    rng = np.random.default_rng(length)
    for rows in (1, 3, 4, 15, 16, 37, 100):
        values = rng.standard_normal((rows, length), np.float32)
        sums = np.zeros(rows, np.float32)
        for column in values.T:
            sums += column
        np.testing.assert_array_equal(reduced("SUM", values), sums)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("channels", [1, 3, 24, 64, 65])
def test_short_rows_of_integers_are_reduced_as_one_after_the_other(kind, channels):
    """Of equal scales and no zero point a sum is saturated alone."""
    info = np.iinfo(kind)
    rng = np.random.default_rng(channels)
    for pixels in ((1, 7), (31, 33), (16, 64)):
        values = rng.integers(info.min, info.max + 1, (2, *pixels, channels)).astype(kind)
        few = np.where(rng.random(values.shape) < 0.9, 0, values)
        for name, x in (("SUM", few), ("REDUCE_MAX", values), ("REDUCE_MIN", values)):
            build = tq.ModelBuilder()
            of = {"scale": 0.5, "zero_point": 0}
            source = build.input("x", x.shape, kind.upper(), **of)
            axes = build.tensor("axes", data=np.int32([1, 2]))
            y = build.tensor("y", (2, channels), kind.upper(), **of)
            build.operator(name, [source, axes], [y], keep_dims=False, version=2)
            build.output(y)
            interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics="reference")
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            sums = x.astype(np.int64).sum((1, 2)).clip(info.min, info.max)
            expected = {"SUM": sums, "REDUCE_MAX": x.max((1, 2)), "REDUCE_MIN": x.min((1, 2))}[name]
            np.testing.assert_array_equal(interpreter.get_tensor(2), expected, err_msg=f"{name} {pixels}")


def added_in_lanes(run):
    """XNNPACK's order with AVX: four accumulators of eight lanes."""
    whole = len(run) // 8 * 8
    vectors = run[:whole].reshape(-1, 8)
    lanes = np.zeros((4, 8), np.float32)
    for i, vector in enumerate(vectors):
        lanes[i % 4] += vector
    sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    sum[: len(run) - whole] += run[whole:]
    sum = sum[:4] + sum[4:]
    return (sum[0] + sum[2]) + (sum[1] + sum[3])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 23, 31, 33, 63, 70, 1030, 40009])
def test_xnnpack_adds_a_run_in_four_accumulators_of_eight_lanes(length):
    rng = np.random.default_rng(length)
    for rows in (1, 3, 70):
        values = rng.standard_normal((rows, length), np.float32)
        sums = np.float32([added_in_lanes(row) for row in values])
        np.testing.assert_array_equal(reduced("SUM", values, numerics="xnnpack"), sums)
        means = sums * (np.float32(1) / np.float32(length))
        np.testing.assert_array_equal(reduced("MEAN", values, numerics="xnnpack"), means)


@pytest.mark.parametrize("channels", [1, 5, 600])
def test_xnnpack_scales_each_pass_over_the_innermost_reduced_dimension(channels):
    rng = np.random.default_rng(channels)
    values = rng.standard_normal((6, 3, 11, channels), np.float32)
    expected = np.zeros((3, channels), np.float32)
    for image in values:
        sums = np.zeros((3, channels), np.float32)
        for x in range(11):
            sums += image[:, x]
        expected += sums * (np.float32(1) / np.float32(66))
    np.testing.assert_array_equal(invoked("MEAN", values, [0, 2], (3, channels), "xnnpack"), expected)


@pytest.mark.parametrize("length", [1, 4, 7, 33])
@pytest.mark.parametrize("groups", [1, 3, 16, 37])
def test_neighbouring_runs_meet_each_pass_together(length, groups):
    rng = np.random.default_rng(length)
    values = rng.standard_normal((2, 5, groups, length), np.float32)
    sums = np.zeros((2, groups), np.float32)
    totals = np.zeros((2, groups), np.float32)
    for line in range(5):
        for x in range(length):
            sums += values[:, line, :, x]
        runs = np.float32([[added_in_lanes(run) for run in image[line]] for image in values])
        totals += runs * (np.float32(1) / np.float32(5 * length))
    np.testing.assert_array_equal(invoked("SUM", values, [1, 3], (2, groups), "reference"), sums)
    np.testing.assert_array_equal(invoked("MEAN", values, [1, 3], (2, groups), "xnnpack"), totals)
