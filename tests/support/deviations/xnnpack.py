# SPDX-License-Identifier: Apache-2.0
"""Deviations of XNNPACK's kernels."""

import numpy as np

from deviations.table import UNPROMISED, deviation
from deviations.values import activation, f32, is_known, is_same, kind, limits, window_counts

NAMES = """
    ABS ADD AVERAGE_POOL_2D BATCH_MATMUL CEIL CONV_2D COS DEPTHWISE_CONV_2D DIV ELU EXP FLOOR FULLY_CONNECTED GELU
    HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL PRELU REDUCE_MAX REDUCE_MIN RELU RELU6
    RELU_N1_TO_1 RESIZE_BILINEAR ROUND RSQRT SIN SOFTMAX SQRT SQUARED_DIFFERENCE SUB SUM TANH TRANSPOSE_CONV
"""


FLOATS = NAMES.split()


def infinite_pool(m):
    options = {
        "padding": "SAME",
        "stride_h": 1,
        "stride_w": 1,
        "filter_height": 2,
        "filter_width": 2,
        "fused_activation_function": "RELU",
    }
    x = m.input("float32", [1, 4, 4, 8], np.full([1, 4, 4, 8], np.nan, f32))
    m.operator("AVERAGE_POOL_2D", [x], [m.output("float32", [1, 4, 4, 8])], **options)


def is_odd(operand):
    """Holds an infinity, NaN or a denormal number."""
    if operand is None or operand.value is None or operand.value.dtype.kind not in "fV":
        return False
    size = np.abs(operand.value.astype(np.float64))
    return bool((~np.isfinite(size) | ((size < np.finfo(f32).tiny) & (size > 0))).any())


@deviation(
    *FLOATS,
    when="FLOAT32, an input that holds an infinity, NaN or a denormal number",
    litert="XNNPACK takes denormals for 0, and what becomes of the others depends on the kernel: an infinity times the "
    "zeros that fill up weights is NaN, a fused activation makes its bound of NaN or leaves it",
    tq="denormals count as 0; the others by the operator's own formula",
    example=infinite_pool,
    numerics=("xnnpack",),
)
def odd_floats(node):
    return [UNPROMISED for _ in node.outputs] if any(is_odd(operand) for operand in node.inputs) else None


def root_of_zero(m):
    m.operator("RSQRT", [m.input("float32", [9], np.zeros(9, f32))], [m.output("float32", [9])])


@deviation(
    "RSQRT",
    when="FLOAT32, an input that holds 0",
    litert="XNNPACK makes it NaN on some processors",
    tq="an infinity",
    example=root_of_zero,
    numerics=("xnnpack",),
)
def roots_of_zero(node):
    x = node.inputs[0]
    if x.value is None or x.value.dtype != f32 or x.value.all():
        return None
    with np.errstate(all="ignore"):
        y = f32(1) / np.sqrt(x.value)
    return [(y, 1e-6 * float(np.abs(y[np.isfinite(y)]).max(initial=0)))]


def constant_of_more_dimensions(m):
    x = m.input("int8", [5], scale=0.02, zero_point=0)
    y = m.constant("int8", [[3]], scale=0.03, zero_point=0)
    z = m.output("int8", [1, 5], scale=0.05, zero_point=0)
    m.operator("ADD", [x, y], [z], fused_activation_function="RELU")


@deviation(
    "ADD",
    "MUL",
    "SUB",
    when="INT8 or UINT8, a constant of one element that has more dimensions than the other input, an activation",
    litert="XNNPACK makes a table of both, and gives the other input's shape",
    tq="the shape that they broadcast to",
    example=constant_of_more_dimensions,
    numerics=("xnnpack",),
)
def shape_of_table(node):
    x, y = node.inputs
    value = node.outputs[0].value
    if value is None or kind(x) not in ("int8", "uint8"):
        return None
    few, many = sorted((x.shape, y.shape), key=len)
    if len(few) == len(many) or np.prod(many) != 1:
        return None
    return [value.reshape(np.broadcast_shapes(few, many))]


# ---- products of quantized values ----


def even_rounded(values, output, low, high):
    """XNNPACK's last step: ties to even, then the zero point."""
    return np.clip(np.rint(values) + int(output.zero_point[0]), low, high).astype(kind(output))


def even_bounds(node):
    """The quantized bounds of a fused activation, with the zero point inside the rounding."""
    output = node.outputs[0]
    low, high = limits(output)
    least, most = (
        None if np.isinf(bound) else int(np.rint(f32(bound) / output.scale[0] + f32(output.zero_point[0])))
        for bound in activation(node)
    )
    return low if least is None else max(low, least), high if most is None else min(high, most)


def layer_sums(node):
    """The exact sums of an INT8 FULLY_CONNECTED: [rows, units]."""
    x, w = node.inputs[:2]
    rows = x.value.astype(np.int64).reshape(-1, w.value.shape[1]) - int(x.zero_point[0])
    sums = rows @ w.value.astype(np.int64).T
    return sums + node.inputs[2].value if len(node.inputs) > 2 and node.inputs[2] is not None else sums


def even_layer(node):
    x, w, output = *node.inputs[:2], node.outputs[0]
    by = x.scale[0] * w.scale / output.scale[0]
    q = even_rounded(layer_sums(node).astype(f32) * by, output, *even_bounds(node))
    shape = (*x.value.shape[:-1], -1) if node.options["keep_num_dims"] else q.shape
    return q.reshape(shape)


def is_layer(node, types):
    return is_known(node) and kind(node.inputs[0]) == "int8" and kind(node.inputs[1]) in types


def large_bias(m):
    x = m.input("int8", [3, 32], scale=0.02, zero_point=3)
    w = m.constant("int4", m.integers("int4", [8, 32], -7, 7), scale=0.05, zero_point=0)
    b = m.constant("int32", np.int32([2**27] * 4 + [5] * 4), scale=0.001, zero_point=0)
    y = m.output("int8", [3, 8], scale=0.01, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, b], [y], version=12)


@deviation(
    "FULLY_CONNECTED",
    when="INT8 with INT4 or INT2 weights, a sum of 2^27 or more, or below -2^27",
    litert="XNNPACK sums 16 times as much, and wraps to 32 bits, on processors with AVX-512",
    tq="the sum",
    example=large_bias,
    numerics=("xnnpack",),
    on="avx512f",
)
def large_sums(node):
    if not is_layer(node, ("int4", "int2")) or np.abs(layer_sums(node)).max(initial=0) < 2**27:
        return None
    return [even_layer(node)]


def sparse_layer(m):
    from generators.sparse import sparse_weights

    x = m.input("int8", [4, 32], scale=0.02, zero_point=3)
    w = sparse_weights(m, "int8", 8, 32, 16, scale=0.01, zero_point=0)
    b = m.constant("int32", m.integers("int32", [8], -999, 999), scale=0.0002, zero_point=0)
    y = m.output("int8", [4, 8], scale=0.2, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, b], [y], version=9)


@deviation(
    "FULLY_CONNECTED",
    when="weights that the file stores sparse",
    litert="XNNPACK reads the stored weights as if none were left out, and past their end",
    tq="the weights",
    example=sparse_layer,
    numerics=("xnnpack",),
)
def sparse_layers(node):
    if len(node.inputs) < 2 or not node.inputs[1].is_sparse or not is_known(node):
        return None
    return [even_layer(node) if kind(node.inputs[0]) == "int8" else UNPROMISED]


# ---- slices ----


def slice_to_nothing(m):
    x = m.input("int8", [2, 6], scale=0.1, zero_point=0)
    parts = [m.constant("int32", values) for values in ([0, 0], [2, 0], [1, 1])]
    y = m.output("int8", [2, 0], scale=0.1, zero_point=0)
    m.operator("STRIDED_SLICE", [x, *parts], [y], version=2)


@deviation(
    "STRIDED_SLICE",
    when="an end of 0 that is not masked",
    litert="XNNPACK takes it for the dimension's end",
    tq="0: nothing",
    example=slice_to_nothing,
    numerics=("xnnpack",),
)
def slices_to_nothing(node):
    if not is_known(node):
        return None
    x, begin, end = (operand.value for operand in node.inputs[:3])
    masked = [bool(node.options["end_mask"] >> i & 1) for i in range(len(end))]
    begin = [0 if node.options["begin_mask"] >> i & 1 else int(b) for i, b in enumerate(begin)]
    ends = [int(e) + (b if node.options["offset"] else 0) for b, e in zip(begin, end, strict=True)]
    if not any(e == 0 and not m for e, m in zip(ends, masked, strict=True)):
        return None
    return [x[tuple(slice(b, None if m else e) for b, e, m in zip(begin, ends, masked, strict=True))]]


def wide_window(m):
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 1, "filter_height": 3, "filter_width": 2}
    x = m.input("float32", [1, 2, 5, 4])
    m.operator("MAX_POOL_2D", [x], [m.output("float32", [1, 0, 4, 4])], **options)


@deviation(
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    when="VALID, a window that is higher or wider than the image",
    litert="XNNPACK gives one window",
    tq="none",
    example=wide_window,
    numerics=("xnnpack",),
)
def beyond_the_image(node):
    if is_same(node) or not is_known(node):
        return None
    x, counts = node.inputs[0], [max(count, 0) for count in window_counts(node)]
    return [np.zeros((x.shape[0], *counts, x.shape[3]), x.value.dtype)] if 0 in counts else None
