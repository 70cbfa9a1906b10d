# SPDX-License-Identifier: Apache-2.0
"""tq.Quantization: made in Python, and applied to arrays."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import build_model, tensor

import tq

SCALES = st.floats(2.0**-20, 2.0**20, width=32)


def test_says_what_netron_says():
    q = tq.Quantization(np.float32(0.012566017), 3, min=np.float32(-1.6488091), max=1.5555250644683838)
    assert str(q) == "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838"
    assert str(tq.Quantization([0.5, 1], [-2, 0], max=[0, 3])) == "0: 0.5 * (q + 2)\n1: q ≤ 3"


def test_has_the_attributes_of_a_tensors_quantization():
    q = tq.Quantization([0.5, 0.25], [1, -1], dtype=np.uint8, quantized_dimension=2, min=[-1, -2], max=[1, 2])
    assert (q.kind, q.quantized_dimension, q.block_size, q.dtype, q.details) == ("per-axis", 2, 0, "uint8", None)
    assert q.scale.dtype == np.float32 and q.zero_point.dtype == np.int64
    assert q.range_min.tolist() == [-0.5, 0.25] and q.range_max.tolist() == [127.0, 64.0]
    assert bool(q) and not tq.Quantization([])


@given(st.lists(SCALES, min_size=1, max_size=5), st.integers(-128, 127), st.sampled_from(["away", "even"]))
def test_applies_as_the_array_functions_do(scales, zero_point, rounding):
    x = np.linspace(-300, 300, 4 * len(scales), dtype=np.float32).reshape(4, len(scales))
    if len(scales) == 1:
        q, rest = tq.Quantization(scales, zero_point), {}
        scale = scales[0]
    else:
        q, rest = tq.Quantization(scales, zero_point, quantized_dimension=1), {"axis": 1}
        scale = np.array(scales, np.float32)
    zeros = zero_point if len(scales) == 1 else np.full(len(scales), zero_point)
    codes = q.quantize(x, rounding=rounding)
    assert np.array_equal(codes, tq.quantize(x, scale, zeros, rounding=rounding, **rest))
    assert np.array_equal(q.dequantize(codes), tq.dequantize(codes, scale, zeros, **rest))


def test_a_tensors_own_quantization_gives_its_values_back():
    for part in tq.Model(tq.__path__[0] + "/demo.tflite").tensors:
        if part.is_constant and part.quantization:
            real = part.dequantized()
            assert np.array_equal(part.quantization.quantize(real), part.data), part
            if part.data.itemsize == 1:
                assert np.array_equal(part.quantization.dequantize(part.data), real), part


@pytest.mark.parametrize(
    ("arguments", "keywords", "text"),
    [
        (([1, 2], [1, 2, 3]), {}, "zero_point has 3 values, scale has 2"),
        (([1, 2],), {"min": [1]}, "min has 1 values, scale has 2"),
        ((1,), {"dtype": "float32"}, "integer type"),
        ((1,), {"dtype": bool}, "integer type"),
        (([[1]],), {}, "at most one dimension"),
        ((1, 2**70), {}, "zero_point is 1180591620717411303424; it must fit int64"),
        ((1,), {"quantized_dimension": 2**40}, "quantized_dimension is 1099511627776"),
    ],
)
def test_refuses_what_does_not_fit(arguments, keywords, text):
    with pytest.raises(ValueError, match=text):
        tq.Quantization(*arguments, **keywords)


def test_nothing_to_apply():
    with pytest.raises(ValueError, match="no scales"):
        tq.Quantization([]).quantize([1.0])


@pytest.mark.parametrize(
    ("arguments", "keywords", "text"),
    [
        ((1, 1.5), {}, "zero_point has dtype float64; it must hold integers"),
        (("a",), {}, "scale has dtype"),
        ((1j,), {}, "scale has dtype complex128"),
        ((1,), {"min": "a"}, "min has dtype"),
        ((1,), {"dtype": None}, "dtype is None"),
        ((1,), {"dtype": 3.5}, "dtype is 3.5"),
        ((1,), {"quantized_dimension": "a"}, "quantized_dimension is a str"),
    ],
)
def test_refuses_other_types(arguments, keywords, text):
    with pytest.raises(TypeError, match=text):
        tq.Quantization(*arguments, **keywords)


def test_takes_any_array_of_numbers_without_a_warning(recwarn):
    class Tensor:
        def __dlpack__(self, **options):
            return np.array([0.5, 0.25]).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    assert tq.Quantization(Tensor()).scale.tolist() == [0.5, 0.25]
    assert tq.Quantization(np.array([1e300, 0.5]), np.array([1, 2], ">u2")).scale.tolist() == [np.inf, 0.5]
    assert tq.Quantization(0.5, min=-1e300).min.tolist() == [-np.inf] and not recwarn


def test_has_its_own_parameters():
    q, x = tq.Quantization([0.5, 0.25]), np.ones(2, np.float32)
    for name in ("scale", "zero_point", "axis", "block_size", "dtype"):
        with pytest.raises(TypeError, match=f"no argument '{name}': the quantization has its own"):
            q.quantize(x, **{name: 1})
    with pytest.raises(TypeError, match="no argument 'axis'"):
        q.dequantize(np.ones(2, np.int8), axis=0)
    assert q.dequantize(np.ones(2, np.int8), dtype="float16").dtype == np.float16
    with pytest.raises(TypeError, match=r"quantize\(\) takes exactly 1 argument"):
        q.quantize()


def test_blocks():
    w = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    codes, scale = tq.quantize_weights(w, 1, "int4", block_size=4)
    q = tq.Quantization(scale, dtype="int4", block_size=4)
    assert (q.kind, q.block_size, q.scale.shape, q.range_max.size) == ("blockwise", 4, (3, 2), 6)
    assert np.array_equal(q.quantize(w), codes)
    assert np.array_equal(q.dequantize(codes), tq.dequantize(codes, scale, block_size=4))
    zeros = np.arange(-3, 3).reshape(3, 2)
    moved = tq.Quantization(scale, zeros, dtype="int4", block_size=4)
    assert np.array_equal(moved.quantize(w), tq.quantize(w, scale, zeros, dtype="int4", block_size=4))
    assert np.array_equal(tq.Quantization(scale.ravel(), zeros.ravel(), dtype="int4", block_size=4).quantize(w),
                          moved.quantize(w))  # fmt: skip
    assert "blockwise" in repr(moved) and str(moved).count("\n") == 5
    with pytest.raises(ValueError, match="block_size is 4: it must divide the length of axis 1, which is 6"):
        q.quantize(w[:, :6])
    with pytest.raises(ValueError, match="block_size is -1"):
        tq.Quantization(scale, block_size=-1)
    with pytest.raises(ValueError, match="zero_point has 2 values, scale has 6"):
        tq.Quantization(scale, [1, 2], block_size=4)


def test_blocks_with_one_zero_point():
    w = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32)
    scale = np.float32([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    for zero_point in (0, 3, [3], np.int8(-2)):
        q = tq.Quantization(scale, zero_point, block_size=4)
        one = int(np.ravel(zero_point)[0])
        codes = tq.quantize(w, scale, one, block_size=4)
        assert np.array_equal(q.quantize(w), codes)
        assert np.array_equal(q.dequantize(codes), tq.dequantize(codes, scale, one, block_size=4))


def test_blocks_of_objects_like_arrays_are_taken():
    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    w = np.arange(8, dtype=np.float32).reshape(2, 4)
    for scale in ([[0.5, 1.0], [2.0, 0.25]], [0.5, 1.0, 2.0, 0.25]):
        q = tq.Quantization(scale, block_size=2)
        assert np.array_equal(q.quantize(Tensor(w)), q.quantize(w))
        assert np.array_equal(q.quantize(w.tolist()), q.quantize(w))


def test_blocks_that_do_not_fit_say_so():
    two = tq.Quantization([[0.5, 1.0], [2.0, 0.25]], block_size=2)
    with pytest.raises(ValueError, match=r"scale has shape \(2, 2\): it needs one value, or the shape \(3, 2\)"):
        two.quantize(np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match=r"scale has shape \(2, 2\): it does not fit an array of shape \(3, 2, 2\)"):
        two.quantize(np.ones((3, 2, 2), np.float32))
    with pytest.raises(ValueError, match="at least one dimension"):
        two.quantize(1.0)


def test_elements_outside_the_type_are_refused():
    parts = [tensor("x", [2], scale=0.5, zero_point=[1])]
    quantization = tq.Model(build_model(parts, [], [0], [0])).tensors[0].quantization
    assert quantization.dtype is None
    with pytest.raises(TypeError, match=r"elements are no quantized values, .* call tq.quantize with one"):
        quantization.quantize([1.0, 2.0])
    assert quantization.dequantize(np.int8([1, 3])).tolist() == [0.0, 1.0]


def test_values_of_the_other_signedness_are_refused():
    """The bytes of int8 values, read as uint8, would stand for other numbers."""
    signed, unsigned = tq.Quantization(0.5, -3), tq.Quantization(0.5, 3, dtype="uint16")
    for codes in (np.int8([-3, 4]), np.int32([-3, 4]), [-3, 4], np.int8([[-3], [4]])):
        assert signed.dequantize(codes).ravel().tolist() == [0.0, 3.5]
    with pytest.raises(TypeError, match=r"q has dtype dtype\('uint8'\): this quantization is of int8 quantized values"):
        signed.dequantize(np.uint8([4]))
    with pytest.raises(TypeError, match="of int4 quantized values"):
        tq.Quantization(0.5, dtype="int4").dequantize(np.uint8([15]))
    assert unsigned.dequantize(np.uint8([4])).tolist() == unsigned.dequantize(np.uint16([4])).tolist() == [0.5]
    with pytest.raises(TypeError, match="of uint16 quantized values"):
        unsigned.dequantize(np.int16([4]))


def parts(q):
    arrays = (q.scale, q.zero_point, q.min, q.max, q.range_min, q.range_max)
    return [a.tobytes() + a.dtype.str.encode() for a in arrays], [a.shape for a in arrays], str(q), repr(q), q.dtype


@pytest.mark.parametrize("copied", (copy.copy, copy.deepcopy, lambda q: pickle.loads(pickle.dumps(q))))
@pytest.mark.parametrize(
    "q",
    (
        tq.Quantization(0.5, 3, dtype="uint8"),
        tq.Quantization([0.5, 0.25], [1, -1], quantized_dimension=2, min=[-1, -2], max=[1, 2]),
        tq.Quantization(np.float32([[0.5, 0.25]]), block_size=32, dtype="int4"),
        tq.Quantization([]),
        *(part.quantization for part in tq.Model(tq.__path__[0] + "/demo.tflite").tensors[:4]),
    ),
)
def test_copies_and_pickles(q, copied):
    again = copied(q)
    assert parts(again) == parts(q)
    assert (again.kind, again.quantized_dimension, again.block_size) == (q.kind, q.quantized_dimension, q.block_size)


def test_what_only_a_file_can_say_is_not_pickled():
    model = tq.Model(build_model([tensor("x", [2], scale=0.5, zero_point=[1])], [], [0], [0]))
    with pytest.raises(TypeError, match="no dtype, since its tensor's elements are no quantized values"):
        pickle.dumps(model.tensors[0].quantization)
