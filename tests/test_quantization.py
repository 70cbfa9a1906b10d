# SPDX-License-Identifier: Apache-2.0
"""tq.Quantization: made in Python, and applied to arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tq

SCALES = st.floats(2.0**-20, 2.0**20, width=32)


def test_says_what_netron_says():
    q = tq.Quantization(np.float32(0.012566017), 3, min=np.float32(-1.6488091), max=1.5555250644683838)
    assert str(q) == "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838"
    assert str(tq.Quantization([0.5, 1], [-2, 0], max=[0, 3])) == "0: 0.5 * (q + 2)\n1: q ≤ 3"


def test_has_the_parts_of_a_tensors_own():
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


def test_a_tensors_own_gives_its_codes_back():
    for tensor in tq.Model(tq.__path__[0] + "/demo.tflite").tensors:
        if tensor.is_constant and tensor.quantization:
            real = tensor.dequantized()
            assert np.array_equal(tensor.quantization.quantize(real), tensor.data), tensor
            if tensor.data.itemsize == 1:
                assert np.array_equal(tensor.quantization.dequantize(tensor.data), real), tensor


@pytest.mark.parametrize(
    ("arguments", "keywords", "text"),
    [
        (([1, 2], [1, 2, 3]), {}, "zero_point has 3 values, scale has 2"),
        (([1, 2],), {"min": [1]}, "min has 1 values, scale has 2"),
        ((1,), {"dtype": "float32"}, "integer type"),
        ((1,), {"dtype": bool}, "integer type"),
        (([[1]],), {}, "at most one dimension"),
    ],
)
def test_refuses_what_does_not_fit(arguments, keywords, text):
    with pytest.raises(ValueError, match=text):
        tq.Quantization(*arguments, **keywords)


def test_nothing_to_apply():
    with pytest.raises(ValueError, match="no scales"):
        tq.Quantization([]).quantize([1.0])
