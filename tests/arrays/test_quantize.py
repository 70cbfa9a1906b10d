# SPDX-License-Identifier: Apache-2.0
"""quantize, dequantize, pack and unpack against independent oracles and LiteRT's reference kernels."""

import ml_dtypes
import numpy as np
import one_op
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import HOLDER, RANGES, floats_for

import tq

CODES = list(RANGES)
FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
SCALES = [1.0, 0.5, 0.1, 1 / 255, 0.0235, 3.7e-6, 123.4, 2.0**-126, 1e-30, 1e30, 2.0**127, 3.4e38]

scales = st.floats(2.0**-126, 3.4028234663852886e38, width=32)
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def zero_points(dtype):
    low, high = RANGES[dtype]
    return sorted({low, high, 0, (low + high) // 3})


def same(a, b):
    """Equal bits, NaNs included."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- values ----


@pytest.mark.parametrize("rule", ["away", "even"])
@pytest.mark.parametrize("dtype", CODES)
def test_quantize_equals_numpy_division_and_product(dtype, rule):
    rng = np.random.default_rng(1)
    for scale in SCALES:
        for zero in zero_points(dtype):
            x = floats_for(np.float32(scale), zero, dtype, rng)
            found = tq.quantize(x, scale, zero, dtype=dtype, rounding=rule)
            assert same(found, oracles.quantize(x, scale, zero, dtype, rule)), (scale, zero)


@pytest.mark.parametrize("rule", ["away", "even"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_quantize_equals_rational_arithmetic(rule, data):
    dtype = data.draw(st.sampled_from(CODES))
    low, high = RANGES[dtype]
    scale = data.draw(scales)
    zero = data.draw(st.integers(low, high))
    near = st.integers(-300, 300).map(lambda k: float(np.float32(np.clip((k + 0.5) * scale, -3e38, 3e38))))
    x = data.draw(st.lists(st.one_of(finite, near), min_size=1, max_size=70))
    x = np.clip(x, -3.4028234663852886e38, 3.4028234663852886e38).astype(np.float32)
    expected = [oracles.quantize_one(v, np.float32(scale), zero, low, high, rule) for v in x]
    assert tq.quantize(x, scale, zero, dtype=dtype, rounding=rule).tolist() == expected


def test_ties_go_away_before_the_zero_point_is_added():
    assert tq.quantize([1.25, -1.25], 0.5).tolist() == [3, -3]
    assert tq.quantize([0.75, -0.75], 0.5, 3).tolist() == [5, 1]
    assert tq.quantize([1.25, 0.75], 0.5, rounding="even").tolist() == [2, 2]
    assert tq.quantize([0.4999, 1.01, -0.02], 1 / 255, -128).tolist() == [-1, 127, -128]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("rule", ["away", "even"])
def test_non_finite_values_saturate(dtype, rule):
    low, high = RANGES[dtype]
    for zero in zero_points(dtype):
        x = np.float32([np.inf, -np.inf, np.nan, 3e38, -3e38] * 30)
        found = tq.quantize(x, 0.1, zero, dtype=dtype, rounding=rule)
        assert found.tolist() == [high, low, zero, high, low] * 30


@pytest.mark.parametrize("dtype", CODES)
def test_narrow_range_leaves_out_the_least_value(dtype):
    low, _ = RANGES[dtype]
    x = np.linspace(-1e6, 1e6, 999, dtype=np.float32)
    zero = max(low + 1, 0)
    found = tq.quantize(x, 1.0, zero, dtype=dtype, narrow_range=True)
    assert found.min() >= low + 1
    assert same(found, oracles.quantize(x, 1.0, zero, dtype, "away", narrow=True))


@pytest.mark.parametrize("dtype", CODES)
def test_dequantize_every_quantized_value(dtype):
    low, high = RANGES[dtype]
    rng = np.random.default_rng(2)
    q = np.arange(low, high + 1) if high < 2**17 else rng.integers(low, high + 1, 100000)
    q = np.append(q, [low, high]).astype(oracles.holder(dtype))
    for scale in SCALES:
        for zero in zero_points(dtype):
            assert same(tq.dequantize(q, scale, zero), oracles.dequantize(q, scale, zero))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_dequantize_to_half_rounds_the_float32_result(name):
    q = np.arange(-32768, 32768).astype(np.int16)
    for scale in [1.0, 0.1, 3.0, 1e-9, 2.0**-30, 1e34]:
        with np.errstate(all="ignore"):
            expected = oracles.dequantize(q, scale, 7).astype(FLOATS[name])
        assert same(tq.dequantize(q, scale, 7, dtype=name), expected)
        assert same(tq.dequantize(q, scale, 7, dtype=FLOATS[name]), expected)


def test_round_trip_of_every_quantized_value():
    for dtype in ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2"]:
        low, high = RANGES[dtype]
        q = np.arange(low, high + 1).astype(oracles.holder(dtype))
        for rule in ["away", "even"]:
            assert same(tq.quantize(tq.dequantize(q, 0.1, 1), 0.1, 1, dtype=dtype, rounding=rule), q)


def test_every_half_precision_value():
    bits = np.arange(65536).astype(np.uint16)
    for kind in [np.float16, ml_dtypes.bfloat16]:
        x = bits.view(kind)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32)
        for scale in [0.01, 2.0**-20, 7.0]:
            assert same(tq.quantize(x, scale, 3), oracles.quantize(wide, scale, 3, "int8", "away"))


def test_float64_is_first_rounded_to_float32():
    x = np.array([0.5 + 2.0**-40, 0.5 - 2.0**-40, 1e300, -1e300, np.nan, 1e-300])
    assert tq.quantize(x, 1.0).tolist() == [1, 1, 127, -128, 0, 0]
    rng = np.random.default_rng(3)
    x = rng.normal(0, 30, 5000)
    assert same(tq.quantize(x, 0.3), oracles.quantize(x.astype(np.float32), 0.3, 0, "int8", "away"))


# ---- LiteRT ----

NONE = ((), (), 0)


def test_litert_quantizes_the_same():
    rng = np.random.default_rng(4)
    jobs, found = [], []
    for dtype in ["int8", "uint8", "int16"]:
        for _ in range(12):
            scale = np.float32(10.0 ** rng.uniform(-6, 3))
            zero = 0 if dtype == "int16" else int(rng.integers(RANGES[dtype][0], RANGES[dtype][1] + 1))
            x = floats_for(scale, zero, dtype, rng)
            with np.errstate(all="ignore"):  # from 2^31 on its conversion is undefined
                x = x[np.abs(x / scale) < 2.0**31]
            jobs.append((x, NONE, dtype, ([scale], [zero], 0)))
            found.append(tq.quantize(x, scale, zero, dtype=dtype))
        for axis in range(3):
            x = rng.normal(0, 40, (4, 5, 6)).astype(np.float32)
            scale = (10.0 ** rng.uniform(-2, 1, x.shape[axis])).astype(np.float32)
            jobs.append((x, NONE, dtype, (scale, [0] * len(scale), axis)))
            found.append(tq.quantize(x, scale, dtype=dtype, axis=axis))
    for mine, its in zip(found, one_op.answers(jobs), strict=True):
        assert same(mine, its)


@pytest.mark.parametrize("resolver", ["BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"])
def test_litert_quantizes_to_even_in_other_kernels(resolver):
    rng = np.random.default_rng(14)
    jobs, found = [], []
    for dtype in ["int8", "uint8", "int16"] * 3:
        scale = np.float32(10.0 ** rng.uniform(-5, 2))
        zero = 0 if dtype == "int16" else int(rng.integers(RANGES[dtype][0], RANGES[dtype][1] + 1))
        x = floats_for(scale, zero, dtype, rng)
        with np.errstate(all="ignore"):  # NaN and what is too large come out otherwise there
            x = x[np.abs(x / scale) < 2.0**30]
        x = x[: len(x) // 64 * 64]  # what is left of a block goes the reference's way
        jobs.append((x, NONE, dtype, ([scale], [zero], 0)))
        found.append(tq.quantize(x, scale, zero, dtype=dtype, rounding="even"))
        assert not same(found[-1], tq.quantize(x, scale, zero, dtype=dtype))
    for mine, its in zip(found, one_op.answers(jobs, resolver), strict=True):
        assert same(mine, its)


def test_litert_dequantizes_the_same():
    rng = np.random.default_rng(5)
    jobs, found = [], []
    for dtype in ["int8", "uint8", "int16"]:
        low, high = RANGES[dtype]
        codes = np.arange(low, high + 1).astype(dtype)
        for _ in range(8):
            scale = np.float32(10.0 ** rng.uniform(-6, 3))
            zero = 0 if dtype == "int16" else int(rng.integers(low, high + 1))
            jobs.append((codes, ([scale], [zero], 0), "float32", NONE))
            found.append(tq.dequantize(codes, scale, zero))
        for axis in range(3) if dtype != "int16" else ():  # which it does not do per axis
            q = rng.integers(low, high + 1, (4, 5, 6)).astype(dtype)
            scale = (10.0 ** rng.uniform(-2, 1, q.shape[axis])).astype(np.float32)
            jobs.append((q, (scale, [0] * len(scale), axis), "float32", NONE))
            found.append(tq.dequantize(q, scale, axis=axis))
    for mine, its in zip(found, one_op.answers(jobs), strict=True):
        assert same(mine, its)


# ---- layouts ----


def along(values, rank, axis):
    return np.asarray(values).reshape([-1 if i == axis else 1 for i in range(rank)])


@pytest.mark.parametrize(
    "shape", [(7,), (64, 3), (3, 64), (5, 1), (2, 3, 4, 5), (3, 130, 2), (40, 9), (1, 5, 70), (6, 2, 31, 2)]
)
@pytest.mark.parametrize("rule", ["away", "even"])
def test_per_axis_on_any_axis(shape, rule):
    rng = np.random.default_rng(6)
    x = rng.normal(0, 50, shape).astype(np.float32)
    for axis in range(len(shape)):
        n = shape[axis]
        scale = rng.uniform(0.05, 2, n).astype(np.float32)
        zero = rng.integers(-128, 128, n)
        s, z = along(scale, x.ndim, axis), along(zero, x.ndim, axis)
        expected = oracles.quantize(x, s, z, "int8", rule)
        for a in (axis, axis - len(shape)):
            assert same(tq.quantize(x, scale, zero, axis=a, rounding=rule), expected)
            assert same(tq.quantize(x, s, z, axis=a, rounding=rule), expected)
            assert same(tq.dequantize(expected, scale, zero, axis=a), oracles.dequantize(expected, s, z))
        assert same(tq.quantize(x, scale, 5, axis=axis), oracles.quantize(x, s, 5, "int8", "away"))
        assert same(tq.quantize(x, 0.5, zero, axis=axis), oracles.quantize(x, 0.5, z, "int8", "away"))


@pytest.mark.parametrize(
    "shape,axis,size",
    [
        ((64,), 0, 8),
        ((6, 64), 1, 32),
        ((64, 6), 0, 16),
        ((2, 12, 3, 5), 1, 4),
        ((3, 4, 8), -1, 1),
        ((3, 4, 8), -1, 8),
        ((70, 4), 0, 35),
    ],
)
def test_blocks(shape, axis, size):
    rng = np.random.default_rng(7)
    x = rng.normal(0, 3, shape).astype(np.float32)
    at = axis % len(shape)
    blocks = tuple(n // size if i == at else n for i, n in enumerate(shape))
    scale = rng.uniform(0.05, 2, blocks).astype(np.float32)
    zero = rng.integers(-8, 8, blocks)
    s, z = np.repeat(scale, size, at), np.repeat(zero, size, at)
    expected = oracles.quantize(x, s, z, "int4", "away")
    assert same(tq.quantize(x, scale, zero, dtype="int4", axis=axis, block_size=size), expected)
    assert same(tq.dequantize(expected, scale, zero, axis=axis, block_size=size), oracles.dequantize(expected, s, z))
    if at == len(shape) - 1:
        assert same(tq.quantize(x, scale, zero, dtype="int4", block_size=size), expected)


def test_strides_orders_and_byte_orders():
    rng = np.random.default_rng(8)
    base = rng.normal(0, 40, (6, 8, 10)).astype(np.float32)
    views = [
        base[::2],
        base[:, ::-1],
        base.T,
        base[..., 3],
        np.asfortranarray(base),
        base.astype(">f4"),
        base[1:, 2:, 3:],
        np.broadcast_to(base[0, 0], (4, 10)),
        base.astype(">f8"),
        base.astype(">f2"),
    ]
    odd = np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float32)
    for x in [*views, odd]:
        before = x.copy()
        found = tq.quantize(x, 0.3, 2)
        assert found.flags.c_contiguous
        assert same(found, oracles.quantize(np.ascontiguousarray(x).astype(np.float32), 0.3, 2, "int8", "away"))
        assert np.array_equal(x, before)
    q = rng.integers(-30000, 30000, (6, 8)).astype(">i2")
    assert same(tq.dequantize(q.T, 0.3), oracles.dequantize(q.T, 0.3, 0))


def test_no_dimensions_and_no_elements():
    assert same(tq.quantize(np.float32(3.3), 0.5), np.array(7, np.int8))
    assert same(tq.quantize(2.0, 0.5), np.array(4, np.int8))
    assert same(tq.dequantize(np.int8(4), 0.5), np.array(2.0, np.float32))
    for shape in [(0,), (3, 0), (0, 3), (2, 0, 4)]:
        x = np.empty(shape, np.float32)
        assert tq.quantize(x, 0.5).shape == shape
        for axis in range(len(shape)):
            assert tq.quantize(x, np.ones(shape[axis]), axis=axis).shape == shape
        assert tq.dequantize(np.empty(shape, np.int8), 0.5).shape == shape
    assert tq.quantize([], 0.5).dtype == np.int8


def test_objects_like_arrays_are_taken():
    class Offers:
        def __array__(self, dtype=None, copy=None):
            return np.float32([1, 2])

    class Lends:
        def __dlpack__(self, **arguments):
            return np.float32([1, 2]).__dlpack__(**arguments)

        def __dlpack_device__(self):
            return (1, 0)

    for x in [
        [1.0, 2.0],
        (1, 2),
        Offers(),
        Lends(),
        memoryview(np.float32([1, 2])),
        np.array([1, 2]),
        np.array([1, 2], np.uint8),
    ]:
        assert tq.quantize(x, 0.5).tolist() == [2, 4]
    assert tq.dequantize([1, -2], 0.5).tolist() == [0.5, -1.0]
    assert tq.dequantize(memoryview(np.int8([1, -2])), 0.5).tolist() == [0.5, -1.0]


# ---- types ----


@pytest.mark.parametrize("name", CODES)
def test_types_by_string_by_type_and_by_dtype(name):
    low, high = RANGES[name]
    x = np.float32([-1e10, 1e10, 1])
    assert tq.quantize(x, 1.0, dtype=name).dtype == oracles.holder(name)
    assert tq.quantize(x, 1.0, dtype=name).tolist() == [low, high, 1]
    if name in HOLDER:
        kind = getattr(ml_dtypes, name)
        for dtype in (kind, np.dtype(kind)):
            found = tq.quantize(x, 1.0, dtype=dtype)
            assert found.dtype == kind
            assert found.astype(int).tolist() == [low, high, 1]
            assert same(found, np.array([low, high, 1]).astype(kind))
            assert tq.dequantize(found, 0.5).tolist() == [low / 2, high / 2, 0.5]
    else:
        for dtype in (getattr(np, name), np.dtype(name)):
            assert tq.quantize(x, 1.0, dtype=dtype).dtype == name


def test_swapped_result_types():
    x = np.float32([1, 2, -3])
    found = tq.quantize(x, 1.0, dtype=">i2")
    assert found.dtype == np.dtype(">i2") and found.tolist() == [1, 2, -3]
    assert tq.dequantize(np.int8([1, 2]), 0.5, dtype=">f4").tolist() == [0.5, 1.0]


# ---- out ----


def test_out_is_filled_and_returned():
    x = np.random.default_rng(9).normal(0, 40, (30, 40)).astype(np.float32)
    expected = tq.quantize(x, 0.5)
    for out in [np.empty(x.shape, np.int8), np.empty((60, 80), np.int8)[::2, ::2], np.empty((40, 30), np.int8).T]:
        assert tq.quantize(x, 0.5, out=out) is out
        assert np.array_equal(out, expected)
    wide = np.empty(x.shape, ">i2")
    assert tq.quantize(x, 0.5, dtype="int16", out=wide) is wide
    assert np.array_equal(wide, tq.quantize(x, 0.5, dtype="int16"))
    narrow = np.empty(x.shape, ml_dtypes.int4)
    assert tq.quantize(x, 0.5, dtype=ml_dtypes.int4, out=narrow) is narrow
    assert np.array_equal(narrow.astype(int), tq.quantize(x, 0.5, dtype="int4"))


@pytest.mark.parametrize(("shape", "axis"), [((64, 5000), 0), ((500, 70), 0), ((3, 5000), 1)])
def test_out_over_parameters(shape, axis):
    """Results are written while parameters are read."""
    rng = np.random.default_rng(15)
    x = rng.normal(0, 4, shape).astype(np.float32)
    n = shape[axis]
    for function, a, of, to in (
        (tq.quantize, x, np.float32, np.int8),
        (tq.dequantize, tq.quantize(x, 0.1), np.float32, np.float32),
        (tq.requantize, (x * 1000).astype(np.int32), np.float64, np.int8),
    ):
        for count in (n, 1):
            memory = np.zeros(x.size * 8 + n * 8, np.uint8)
            parameters = memory[: n * np.dtype(of).itemsize].view(of)[:count]
            parameters[:] = rng.uniform(0.01, 0.2, count)
            out = memory[: x.size * np.dtype(to).itemsize].view(to).reshape(shape)
            expected = function(a, parameters.copy(), axis=axis)
            assert np.array_equal(function(a, parameters, axis=axis, out=out, num_threads=2), expected), function


def test_out_that_overlaps():
    n = 5000
    memory = np.random.default_rng(10).normal(0, 40, n).astype(np.float32)
    x = memory.copy()
    same_size = memory.view(np.int32)
    assert tq.quantize(memory, 0.5, dtype="int32", out=same_size) is same_size
    assert np.array_equal(same_size, oracles.quantize(x, 0.5, 0, "int32", "away"))
    again = same_size.copy()
    assert np.array_equal(tq.dequantize(same_size, 0.5, out=memory), oracles.dequantize(again, 0.5, 0))
    for out in [memory.view(np.int8)[:n], memory.view(np.int8)[-n:], memory.view(np.int8)[1 : n + 1]]:
        before = memory.copy()
        with pytest.raises(ValueError, match="overlaps"):
            tq.quantize(memory, 0.5, out=out)
        assert same(memory, before)
    with pytest.raises(ValueError, match="overlaps"):
        tq.quantize(memory[1:], 0.5, dtype="int32", out=memory.view(np.int32)[:-1])
    # strided on either side: nothing is read after it was written
    x = memory.copy()
    out = memory.view(np.int8)[::4]
    tq.quantize(memory, 0.5, out=out)
    assert np.array_equal(out, oracles.quantize(x, 0.5, 0, "int8", "away"))


# ---- threads ----


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 100])
def test_any_number_of_threads_gives_the_same(threads):
    rng = np.random.default_rng(11)
    x = rng.normal(0, 40, (123, 457)).astype(np.float32)
    scale = rng.uniform(0.1, 1, 457).astype(np.float32)
    rows = rng.uniform(0.1, 1, 123).astype(np.float32)
    assert same(tq.quantize(x, 0.5, num_threads=threads), tq.quantize(x, 0.5, num_threads=1))
    q = tq.quantize(x, scale, axis=1, num_threads=threads)
    assert same(q, oracles.quantize(x, scale, 0, "int8", "away"))
    assert same(
        tq.quantize(x, rows, axis=0, num_threads=threads), oracles.quantize(x, rows[:, None], 0, "int8", "away")
    )
    assert same(tq.dequantize(q, scale, axis=1, num_threads=threads), oracles.dequantize(q, scale, 0))


# ---- what is refused ----


def refuses(error, pattern, function, *args, **kwargs):
    with pytest.raises(error, match=pattern):
        function(*args, **kwargs)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-40, 1e-300, 1e300, 10**400])
def test_scales_that_are_no_scales(scale):
    x = np.ones((2, 3), np.float32)
    q = np.ones((2, 3), np.int8)
    refuses(ValueError, r"^scale is .*: a scale must", tq.quantize, x, scale)
    refuses(ValueError, r"^scale is .*: a scale must", tq.dequantize, q, scale)
    if scale != 10**400:
        refuses(ValueError, r"^scale\[1\] is .*: a scale must", tq.quantize, x, [1.0, scale, 1.0], axis=1)
        refuses(ValueError, r"^scale\[2\] is .*: a scale must", tq.dequantize, q, [1.0, 1.0, scale], axis=1)


def test_zero_points_outside_the_type():
    x = np.ones((2, 3), np.float32)
    for dtype in CODES:
        low, high = RANGES[dtype]
        for zero in (low - 1, high + 1, 2**80, -(2**80)):
            pattern = f"zero_point is {zero}: it must be a value of {dtype}"
            refuses(ValueError, pattern, tq.quantize, x, 1.0, zero, dtype=dtype)
        refuses(ValueError, r"zero_point\[2\] is", tq.quantize, x, 1.0, [0, 0, high + 1], dtype=dtype, axis=1)
    refuses(ValueError, "zero_point is -128", tq.quantize, x, 1.0, -128, narrow_range=True)
    refuses(ValueError, "zero_point is 0", tq.quantize, x, 1.0, dtype="uint8", narrow_range=True)
    refuses(ValueError, "zero_point is 128: it must be a value of int8", tq.dequantize, np.ones(3, np.int8), 1.0, 128)
    huge = np.full(3, 2**64 - 1, np.uint64)
    refuses(ValueError, r"zero_point\[0\]", tq.quantize, x, 1.0, huge, axis=1, dtype="int32")
    refuses(TypeError, "zero_point has dtype", tq.quantize, x, 1.0, 0.5)
    refuses(TypeError, "zero_point has dtype", tq.quantize, x, 1.0, [0.0, 1.0, 2.0], axis=1)


@pytest.mark.parametrize("count", [1, 2, 7, 33, 300])
def test_one_parameter_of_many_that_is_wrong(count):
    """Checks take many at once; an error names the first that is wrong."""
    x = np.zeros((2, count), np.float32)
    for at in {0, count // 2, count - 1}:
        for wrong in (0, -0.5, 1e-40, -1e-40, -np.inf, np.inf, np.nan, -3e38):
            scale = np.full(count, 0.5, np.float32)
            scale[[at, -1]] = wrong
            with pytest.raises(ValueError, match="scale" + (rf"\[{at}\]" if count > 1 else "")):
                tq.quantize(x, scale, axis=1)
        for kind, wrongs in {
            np.int64: [-129, 128, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, -(2**63), 2**62],
            np.int32: [-129, 128, 2**31 - 1, -(2**31)],
            np.uint64: [128, 2**64 - 1, 2**63],
            np.int16: [-129, 128],
        }.items():
            for wrong in wrongs:
                zero = np.full(count, 3, kind)
                zero[[at, -1]] = np.array(wrong, kind)
                with pytest.raises(ValueError, match="zero_point" + (rf"\[{at}\]" if count > 1 else "")):
                    tq.quantize(x, 0.5, zero, axis=1)
    for kind in (np.int64, np.int32):
        for of_type, low, high in (("int8", -128, 127), ("int32", -(2**31), 2**31 - 1), ("uint8", 0, 255)):
            zero = np.array([low, high] * count, kind)[:count]
            assert (tq.quantize(x, 0.5, zero, axis=1, dtype=of_type) == zero).all()
    with pytest.raises(ValueError, match="zero_point"):
        tq.quantize(x, 0.5, np.zeros(count, int), axis=1, dtype="uint8", narrow_range=True)


def test_shapes_that_do_not_fit():
    x = np.ones((2, 3, 4), np.float32)
    refuses(ValueError, r"scale has shape \(2,\).*axis", tq.quantize, x, [1.0, 2.0])
    refuses(
        ValueError, r"scale has shape \(2,\): it needs one value, or 3, the len", tq.quantize, x, [1.0, 2.0], axis=1
    )
    refuses(ValueError, r"zero_point has shape \(4,\)", tq.quantize, x, 1.0, [1, 2, 3, 4], axis=1)
    refuses(ValueError, r"scale has shape \(3, 1\)", tq.quantize, x, np.ones((3, 1)), axis=1)
    for axis in (3, -4, 10**30):
        refuses(ValueError, "axis is .*must be from -3 to 2", tq.quantize, x, 1.0, axis=axis)
    refuses(TypeError, "axis is a float", tq.quantize, x, 1.0, axis=1.0)
    several = np.array([1])  # NumPy lets these have __index__, which raises
    for function, a in ((tq.quantize, x), (tq.dequantize, x.astype(np.int8)), (tq.requantize, x.astype(np.int8))):
        refuses(TypeError, r"axis is array\(\[1\]\): it must be an int or None", function, a, 1.0, axis=several)
        refuses(TypeError, r"num_threads is array\(\[1\]\): it must be", function, a, 1.0, num_threads=several)
    refuses(ValueError, "axis is 0: an array of no dimensions", tq.quantize, 1.0, 1.0, axis=0)
    refuses(ValueError, "block_size is 3: it must divide .* axis 2, which is 4", tq.quantize, x, 1.0, block_size=3)
    refuses(ValueError, f"block_size is {2**70}: it must divide", tq.quantize, x, 1.0, block_size=2**70)
    for size in (0, -1):
        refuses(ValueError, "block_size is", tq.quantize, x, 1.0, block_size=size)
    refuses(
        ValueError, r"scale has shape \(2, 3\): .* the shape \(2, 3, 2\)", tq.quantize, x, np.ones((2, 3)), block_size=2
    )
    refuses(ValueError, "num_threads is 0", tq.quantize, x, 1.0, num_threads=0)


def test_types_that_are_refused():
    x = np.ones(3, np.float32)
    for bad in ["int64", "float32", "int3", "nonsense", object, np.int64, 3, None, ml_dtypes.float8_e4m3fn]:
        refuses(TypeError, "^dtype is .*: it must be int8", tq.quantize, x, 1.0, dtype=bad)
    for bad in ["float64", "int8", np.float64]:
        refuses(TypeError, "^dtype is .*: it must be float32", tq.dequantize, np.ones(3, np.int8), 1.0, dtype=bad)
    for bad in [np.ones(3, complex), np.array(["a"]), np.array([None]), np.ones(3, bool)]:
        refuses(TypeError, "^x has dtype", tq.quantize, bad, 1.0)
    for bad in [np.ones(3, np.float32), np.ones(3, np.int64), np.ones(3, np.uint32), [0.5]]:
        refuses(TypeError, "^q has dtype", tq.dequantize, bad, 1.0)
    refuses(ValueError, "q holds 2147483648", tq.dequantize, [2**31], 1.0)
    refuses(ValueError, "^x is no array: .*inhomogeneous", tq.quantize, [[1.0, 2.0], [3.0]], 1.0)
    refuses(ValueError, "^scale is no array: .*inhomogeneous", tq.quantize, x, [[1.0, 2.0], [3.0]], axis=0)
    refuses(TypeError, "^scale has dtype", tq.quantize, x, "1.0")
    refuses(TypeError, "^scale has dtype", tq.quantize, x, 1j)
    refuses(ValueError, "rounding is 'up'", tq.quantize, x, 1.0, rounding="up")
    refuses(TypeError, "rounding is None", tq.quantize, x, 1.0, rounding=None)
    refuses(TypeError, "needs the argument 'scale'", tq.quantize, x)
    refuses(TypeError, "at most 3 positional", tq.quantize, x, 1.0, 0, "int8")
    refuses(TypeError, "no argument 'scales'", tq.quantize, x, 1.0, scales=3)
    refuses(TypeError, "'scale' twice", tq.quantize, x, 1.0, scale=3)


@pytest.mark.parametrize("flag", ["no", None, 2, 0.0, np.float32(1)])
def test_values_that_are_no_flags_are_refused(flag):
    refuses(TypeError, "narrow_range is (a .*|2): it must be True or False", tq.quantize, [1.0], 1.0, narrow_range=flag)


def test_flags():
    for flag, low in ((True, -127), (np.True_, -127), (1, -127), (False, -128), (np.False_, -128), (0, -128)):
        assert tq.quantize([-999.0], 1.0, narrow_range=flag).tolist() == [low]


def test_types_that_errors_ask_for_are_the_functions_own():
    every = "it must be int8, uint8, int16, uint16, int32, int4, uint4 or int2$"
    narrow = "it must be int4, uint4 or int2$"
    for dtype in ("float32", np.float64, None, "\ud800", "q"):
        refuses(TypeError, every, tq.quantize, [1.0], 1.0, dtype=dtype)
        refuses(TypeError, narrow, tq.pack, [1], dtype)
        refuses(TypeError, "it must be int8, uint8, int16 or int32$", tq.requantize, [1], 1.0, dtype=dtype)
    for dtype in ("int8", "int32", "uint16"):  # of which int32's range is wider than an int is
        refuses(TypeError, f"dtype is {dtype}: {narrow}", tq.pack, [1], dtype)
        refuses(TypeError, f"dtype is {dtype}: {narrow}", tq.unpack, b"1", 2, dtype)


def test_shapes_of_scales_of_blocks_that_errors_ask_for():
    wanted = r"scale has shape \(1, 2\): it needs one value, or the shape \(2, 1\): the input's, with axis 1 counting"
    refuses(ValueError, wanted, tq.quantize, np.ones((2, 3)), [[0.1, 0.2]], block_size=3)


def test_outs_that_are_refused():
    x = np.ones((2, 3), np.float32)
    refuses(TypeError, "out is a list", tq.quantize, x, 1.0, out=[1])
    wrong, turned = np.empty((2, 3), np.uint8), np.empty((3, 2), np.int8)
    refuses(TypeError, "out has dtype dtype..uint8.*must be dtype..int8", tq.quantize, x, 1.0, out=wrong)
    refuses(ValueError, r"out has shape \(3, 2\): it must be \(2, 3\)", tq.quantize, x, 1.0, out=turned)
    out = np.empty((2, 3), np.int8)
    out.flags.writeable = False
    refuses(ValueError, "out is read-only", tq.quantize, x, 1.0, out=out)


def test_outs_whose_elements_share_memory():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    base = np.zeros(64, np.int8)
    for strides in [(0, 1), (1, 1), (1, 0), (-1, 1), (3, 1), (2, 2)]:
        out = np.lib.stride_tricks.as_strided(base[32:], (3, 4), strides)
        refuses(ValueError, "out's own elements share memory", tq.quantize, x, 1.0, out=out)
    wanted = tq.quantize(x, 1.0)
    for strides in [(4, 1), (1, 3), (-8, 2), (16, -1), (5, 1)]:
        out = np.lib.stride_tricks.as_strided(base[32:], (3, 4), strides)
        assert same(tq.quantize(x, 1.0, out=out), wanted)
    out = np.lib.stride_tricks.as_strided(base, (1, 4), (0, 1))
    assert same(tq.quantize(x[:1], 1.0, out=out), wanted[:1])


class Tensor:
    """A tensor of another library: it offers DLPack, and looks like a sequence and like a number."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __len__(self):
        raise AssertionError("walked as a sequence")

    __getitem__ = __index__ = __float__ = __len__


def test_dlpack_everywhere():
    x, scale, zero = np.float32([0.3, -2, 7]), np.array([0.1, 0.2, 0.3]), np.array([1, 2, 3])
    q = tq.quantize(x, scale, zero, axis=0)
    assert same(tq.quantize(Tensor(x), Tensor(scale), Tensor(zero), axis=0), q)
    assert same(tq.dequantize(Tensor(q), Tensor(scale), Tensor(zero), axis=0), tq.dequantize(q, scale, zero, axis=0))
    wide = q.astype(np.int32)
    assert same(tq.requantize(Tensor(wide), Tensor(scale), axis=0), tq.requantize(wide, scale, axis=0))
    packed = tq.pack(Tensor(np.int8([1, 2])), "int4")
    assert same(tq.unpack(Tensor(packed), 2, "int4"), np.int8([1, 2]))


def test_integers_of_python_have_no_width():
    assert same(tq.quantize([10**400, -(10**400), 2**70, 3], 0.5), np.int8([127, -128, 127, 6]))
    assert same(tq.quantize(2**70, 0.5), np.int8(127).reshape(()))
    for empty in ([], (), [[], []]):
        assert tq.dequantize(empty, 0.5).shape == tq.requantize(empty, 0.5).shape == np.shape(empty)
        assert tq.pack(empty, "int4").shape == (0,)
    refuses(ValueError, "q holds 1180591620717411303424", tq.dequantize, [2**70], 0.5)
    refuses(ValueError, "zero_point holds 1180591620717411303424", tq.quantize, [1.0, 2], 1.0, [0, 2**70], axis=0)
    refuses(ValueError, r"scale\[1\] is inf", tq.quantize, [1.0, 2], [1, 10**400], axis=0)
    refuses(TypeError, "scale is list; it must be an array of numbers", tq.quantize, [1.0, 2], [1, None], axis=0)
    refuses(
        TypeError, "q has dtype dtype..uint32.*must be int8, uint8, int16, int32 or int64$", tq.requantize,
        np.ones(2, np.uint32), 1
    )  # fmt: skip


def test_narrow_integers_are_real_numbers_too():
    for kind in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2):
        assert same(tq.quantize(np.array([1, 0], kind), 0.5), np.int8([2, 0]))


def test_flags_and_names():
    class Index:
        def __index__(self):
            return 3

    x = np.float32([1, 2])
    assert same(tq.quantize(x, 1.0, Index(), axis=np.int64(0)), np.int8([4, 5]))
    refuses(TypeError, "narrow_range is a numpy.ndarray: it must be True", tq.quantize, x, 1.0, narrow_range=x)
    refuses(TypeError, "rounding is 3; it must be 'away' or 'even'", tq.quantize, x, 1.0, rounding=3)


# ---- packing ----


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", ">i4", "u4", "i8", ">u8"])
def test_pack_takes_every_integer(kind):
    values = np.array([[1, 7, 0], [3, 2, 5]], kind)
    assert same(tq.pack(values, "int4"), np.uint8([0x71, 0x30, 0x52]))
    assert same(tq.pack(values.T[::-1], "int4"), tq.pack([0, 5, 7, 2, 1, 3], "int4"))


def test_shapes_that_unpack_refuses():
    for shape in (1.5, None, "a", (1,) * 65, 2**70, (1.5,)):
        refuses((TypeError, ValueError), "^shape is .*: it must be an int", tq.unpack, b"a", shape, "int4")
    refuses(ValueError, "^shape is .*too many", tq.unpack, b"", (0, 2**62, 2**62), "int4")
    refuses(ValueError, "values holds 9223372036854775808", tq.pack, np.array([2**63], np.uint64), "int4")


@pytest.mark.parametrize("name", ["int4", "uint4", "int2"])
def test_pack_and_unpack(name):
    low, high = RANGES[name]
    bits = 2 if name == "int2" else 4
    rng = np.random.default_rng(12)
    for count in [*range(70), 1000]:
        codes = rng.integers(low, high + 1, count)
        expected = np.zeros((count * bits + 7) // 8, np.uint8)
        for i, code in enumerate(codes):
            expected[i * bits // 8] |= (int(code) & (2**bits - 1)) << (i * bits % 8)
        for values in [
            codes.tolist(),
            codes.astype(np.int8),
            codes.astype(np.int16),
            codes.astype(getattr(ml_dtypes, name)),
        ]:
            if count:
                assert same(tq.pack(values, name), expected)
        back = tq.unpack(expected, count, name)
        assert same(back, codes.astype(oracles.holder(name)))
        assert same(tq.unpack(expected.tobytes(), (count, 1), name), back.reshape(count, 1))
        kind = getattr(ml_dtypes, name)
        assert same(tq.unpack(expected, [count], kind), codes.astype(kind))
    assert tq.pack(np.empty((3, 0), np.int8), name).shape == (0,)


def test_packing_refuses():
    refuses(ValueError, r"values holds 8 \(element 1\): int4 goes from -8 to 7", tq.pack, [7, 8], "int4")
    refuses(ValueError, r"values holds -9 \(element 0\)", tq.pack, np.int8([-9]), "int4")
    refuses(ValueError, r"values holds 200", tq.pack, np.uint8([200]), "int2")
    refuses(ValueError, r"values holds 70000", tq.pack, [70000], "uint4")
    refuses(TypeError, "dtype is int8", tq.pack, [1], "int8")
    refuses(TypeError, "values has dtype", tq.pack, [0.5], "int4")
    refuses(ValueError, "packed holds 2 bytes: 5 elements of int4 need 3", tq.unpack, b"ab", 5, "int4")
    refuses(ValueError, "packed holds 2 bytes: 2 elements of int4 need 1", tq.unpack, b"ab", 2, "int4")
    refuses(ValueError, "no dimension may be negative", tq.unpack, b"ab", (-1,), "int4")
    refuses(ValueError, "too many elements", tq.unpack, b"ab", (2**40, 2**40), "int4")
    refuses(TypeError, "packed has dtype", tq.unpack, np.ones(2), 4, "int4")


@pytest.mark.parametrize("rule", ["away", "even"])
@pytest.mark.parametrize("axis", [0, 1])
def test_ties_in_rows_with_parameters_of_their_own(axis, rule):
    """Every instruction set's loops for brief rows and for groups of them: all ties, one here and there, none."""
    isas = sorted({row["isa"] for row in tq._core.kernel_variants() if row["available"] and "quantize" in row["name"]})
    draw = np.random.default_rng(6)
    try:
        for isa in isas:
            tq._core._force_isa(isa)
            for length in (16, 32, 64, 96, 128, 192):
                for rows in (1, 3, 4, 9, 33):
                    shape = (rows, length)
                    scale = draw.uniform(0.01, 2, shape[axis]).astype(np.float32)
                    zero = draw.integers(-20, 20, shape[axis])
                    codes = draw.integers(-150, 150, shape) + 0.25
                    codes[draw.random(shape) < draw.choice([0.01, 0.5])] += 0.25
                    wide = np.expand_dims(scale, 1 - axis), np.expand_dims(zero, 1 - axis)
                    x = (codes * wide[0]).astype(np.float32)
                    found = tq.quantize(x, scale, zero, axis=axis, rounding=rule, num_threads=1)
                    assert same(found, oracles.quantize(x, *wide, "int8", rule)), (isa, shape)
    finally:
        tq._core._force_isa(None)


# ---- every float32 ----


@pytest.mark.slow
def test_every_float32():
    """All 2**32 patterns, one scale and zero point, every variant, both rules, against NumPy: some minutes."""
    isas = sorted({row["isa"] for row in tq._core.kernel_variants() if row["available"] and "quantize" in row["name"]})
    scale, zero, step = np.float32(0.0235), -3, 2**22
    try:
        for start in range(0, 2**32, step):
            x = np.arange(start, start + step, dtype=np.uint32).view(np.float32)
            for rule in ["away", "even"]:
                expected = oracles.quantize(x, scale, zero, "int8", rule)
                expected[np.isnan(x)] = zero
                for isa in isas:
                    tq._core._force_isa(isa)
                    found = tq.quantize(x, scale, zero, rounding=rule, num_threads=1)
                    assert same(found, expected), (hex(start), isa, rule)
    finally:
        tq._core._force_isa(None)


def test_zero_points_that_are_all_the_same_are_one():
    x = np.linspace(-9, 9, 60, dtype=np.float32).reshape(5, 4, 3)
    scale = np.float32([0.03, 0.05, 0.07, 0.11])
    q = tq.quantize(x, scale, 3, axis=1)
    for points in (np.full(4, 3), np.full(4, 3, np.int8), [3, 3, 3, 3]):
        assert np.array_equal(tq.quantize(x, scale, points, axis=1), q)
        assert np.array_equal(tq.dequantize(q, scale, points, axis=1), tq.dequantize(q, scale, 3, axis=1))
    with pytest.raises(ValueError, match=r"zero_point.*128"):
        tq.quantize(x, scale, np.full(4, 128), axis=1)
    assert tq.quantize(np.zeros((0, 2), np.float32), np.zeros(0, np.float32), np.zeros(0, int), axis=0).shape == (0, 2)
