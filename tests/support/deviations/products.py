# SPDX-License-Identifier: Apache-2.0
"""Convolutions, layers and matrix products of quantized values."""

import numpy as np

from deviations.table import NOT_XNNPACK, deviation
from deviations.values import QUANTIZED, activation, centered, f32, kind, known, limits, multiplier, nearest, option


def patches(node):
    """For each image [pixel, tap, channel] as an index into its cells, -1 for padding; and the output's shape."""
    (_, height, width, _), (_, kh, kw, _) = node.inputs[0].value.shape, node.inputs[1].value.shape
    positions, sizes = [], []
    for n, k, axis in ((height, kh, "h"), (width, kw, "w")):
        stride, dilation = node.options[f"stride_{axis}"], node.options[f"dilation_{axis}_factor"]
        reach = (k - 1) * dilation + 1
        out = -(-n // stride) if option(node, "padding") == "SAME" else (n + stride - reach) // stride
        pad = max((out - 1) * stride + reach - n, 0) // 2
        at = np.arange(out)[:, None] * stride - pad + np.arange(k) * dilation
        positions.append(np.where((at >= 0) & (at < n), at, -1))
        sizes.append(out)
    y, x = positions[0][:, None, :, None], positions[1][None, :, None, :]
    return np.where((y < 0) | (x < 0), -1, y * width + x).reshape(sizes[0] * sizes[1], kh * kw), sizes


def padded(image, index):
    """[pixel, tap, channel] of an image [row, column, channel]; 0 where there is none."""
    cells = image.reshape(-1, image.shape[2])
    return np.vstack([cells, np.zeros((1, image.shape[2]), np.int64)])[index]


def convolution(node):
    x, w = centered(node.inputs[0]), centered(node.inputs[1])
    index, sizes = patches(node)
    groups, count = x.shape[3] // w.shape[3], w.shape[0]
    out = []
    for image in x:
        parts = np.split(padded(image, index), groups, axis=2)
        filters = np.split(w.reshape(count, -1, w.shape[3]), groups)
        products = [np.einsum("ptc,otc->po", part, f) for part, f in zip(parts, filters, strict=True)]
        out.append(np.concatenate(products, axis=1))
    return np.array(out).reshape(len(x), *sizes, count)


def depthwise(node):
    x, w = centered(node.inputs[0]), centered(node.inputs[1])
    index, sizes = patches(node)
    taps, times = w.reshape(-1, w.shape[3]), w.shape[3] // x.shape[3]
    out = [(np.repeat(padded(image, index), times, axis=2) * taps).sum(axis=1) for image in x]
    return np.array(out).reshape(len(x), *sizes, w.shape[3])


def transposed(node):
    w, x = centered(node.inputs[1]), centered(node.inputs[2])
    sizes, sy, sx = node.inputs[0].value, node.options["stride_h"], node.options["stride_w"]
    ends = []
    for size, k, stride in ((sizes[1], w.shape[1], sy), (sizes[2], w.shape[2], sx)):
        steps = -(-size // stride) if option(node, "padding") == "SAME" else (size - k + stride) // stride
        ends.append(max((steps - 1) * stride + k - size, 0) // 2)
    out = np.zeros(tuple(sizes), np.int64)
    products = np.einsum("nyxc,okjc->nyxkjo", x, w)
    for at in np.ndindex(*products.shape[1:5]):
        y, column = at[0] * sy + at[2] - ends[0], at[1] * sx + at[3] - ends[1]
        if 0 <= y < sizes[1] and 0 <= column < sizes[2]:
            out[:, y, column] += products[(slice(None), *at)]
    return out


def is_shuffled(node):
    return node.name == "FULLY_CONNECTED" and option(node, "weights_format") == "SHUFFLED4x16INT8"


def layer(node):
    x, w = centered(node.inputs[0]), centered(node.inputs[1])
    if is_shuffled(node):  # blocks of 4 units by 16 columns, without their zero point
        units, columns = w.shape
        blocks = node.inputs[1].value.view(np.int8).reshape(units // 4, columns // 16, 4, 16)
        w = blocks.transpose(0, 2, 1, 3).reshape(units, columns).astype(np.int64)
    return (x.reshape(-1, w.shape[1]) @ w.T).reshape(node.outputs[0].shape)


def operands_of_product(node):
    """a [..., m, k] and b [..., k, n], less their zero points."""
    found = []
    for operand, adjoint in zip(node.inputs, ("adj_x", "adj_y"), strict=True):
        q = operand.value.astype(np.int64) - int(operand.zero_point[0])
        found.append(np.swapaxes(q, -1, -2) if node.options[adjoint] else q)
    return found


def matrices(node):
    left, right = operands_of_product(node)
    return left @ right


# name: its sums, and where its input, weights and bias are
PRODUCTS = {
    "BATCH_MATMUL": (matrices, 0, 1, None),
    "CONV_2D": (convolution, 0, 1, 2),
    "DEPTHWISE_CONV_2D": (depthwise, 0, 1, 2),
    "FULLY_CONNECTED": (layer, 0, 1, 2),
    "TRANSPOSE_CONV": (transposed, 2, 1, 3),
}


def at(node, index):
    return node.inputs[index] if index is not None and index < len(node.inputs) else None


def scaled_sums(node):
    """The sums, the bias with them, in steps of the output; None where they stay within 32 bits."""
    function, input_at, weights_at, bias_at = PRODUCTS[node.name]
    x, w, bias, out = at(node, input_at), at(node, weights_at), at(node, bias_at), node.outputs[0]
    if not known(x, w) or kind(x) not in QUANTIZED or kind(out) not in QUANTIZED or len(out.scale) != 1:
        return None
    step = float(x.scale[0]) * w.scale.astype(float) / float(out.scale[0])
    if step.max() < 0.5 or (node.name == "TRANSPOSE_CONV" and not known(node.inputs[0])):
        return None
    sums = function(node) + (0 if bias is None else bias.value.astype(np.int64))
    powers = np.exp2(np.maximum([multiplier(s)[1] for s in step], 0))
    return sums * step if (abs(sums) * powers >= 2**31).any() else None


# ---- sums and bounds beyond 32 bits ----


def large_convolution(m):
    x = m.input("int8", [1, 2, 2, 40], np.full([1, 2, 2, 40], 127), scale=1.0, zero_point=-128)
    w = m.constant("int8", np.full((3, 1, 1, 40), 127), scale=1.0, zero_point=0)
    b = m.constant("int32", np.zeros(3), scale=1.0, zero_point=0)
    m.operator("CONV_2D", [x, w, b], [m.output("int8", scale=0.0006, zero_point=0)], stride_h=1, stride_w=1, version=3)


@deviation(
    *PRODUCTS,
    when="quantized values, a sum times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=large_convolution,
)
def large_products(node):
    steps = scaled_sums(node)
    if steps is None:
        return None
    out = node.outputs[0]
    slack = 1 if kind(out) != "int16" else 2  # of 15 bits of multiplier
    reals = steps * float(out.scale[0])
    if node.name != "BATCH_MATMUL" and not is_shuffled(node):  # whose kernel knows no activation
        reals = np.clip(reals, *activation(node))
    return [(nearest(out, reals), slack), *[None] * (len(node.outputs) - 1)]


def far_bounds(m):
    x = m.input("int8", [1, 2, 2, 3], scale=2.0**-12, zero_point=-60)
    w = m.constant("int8", m.integers("int8", [4, 1, 1, 3], -100, 100), scale=2.0**-19, zero_point=0)
    b = m.constant("int32", m.integers("int32", [4], -9999, 9999), scale=2.0**-31, zero_point=0)
    options = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    options["fused_activation_function"] = "RELU_N1_TO_1"
    m.operator("CONV_2D", [x, w, b], [m.output("int8", scale=2.0**-31, zero_point=-7)], **options, version=3)


@deviation(
    *[name for name in PRODUCTS if name != "BATCH_MATMUL"],
    when="quantized values, a fused activation whose bound is 2^31 steps of the output",
    litert="converts it out of range, and clamps by the result: any values",
    tq="saturates",
    example=far_bounds,
    numerics=NOT_XNNPACK,
)
def bounds_out_of_range(node):
    function, input_at, weights_at, bias_at = PRODUCTS[node.name]
    x, w, bias, out = at(node, input_at), at(node, weights_at), at(node, bias_at), node.outputs[0]
    if not known(x, w) or kind(x) not in QUANTIZED or kind(out) not in QUANTIZED or len(out.scale) != 1:
        return None
    if not any(2**31 <= abs(bound / float(out.scale[0])) < np.inf for bound in activation(node)):
        return None
    sums = function(node) + (0 if bias is None else bias.value.astype(np.int64))
    reals = sums * float(x.scale[0]) * w.scale.astype(float)
    return [(nearest(out, np.clip(reals, *activation(node))), 1)]


# ---- biases of another type, scales of columns ----


def short_bias(m):
    x = m.input("int16", [1, 2, 2, 3], scale=0.01, zero_point=0)
    w = m.constant("int8", m.integers("int8", [2, 1, 1, 3], -100, 100), scale=0.01, zero_point=0)
    b = m.constant("int32", [3000, -3000], scale=0.0001, zero_point=0)
    shape = m.constant("int32", [1, 2, 2, 2])
    m.operator(
        "TRANSPOSE_CONV",
        [shape, w, x, b],
        [m.output("int16", scale=0.05, zero_point=0)],
        stride_h=1,
        stride_w=1,
        version=4,
    )


@deviation(
    "CONV_2D",
    "FULLY_CONNECTED",
    "TRANSPOSE_CONV",
    when="INT16, quantized_bias_type not set, an INT32 bias (with INT16 weights: an INT64 one)",
    litert="reads the bias as INT64 (INT32)",
    tq="reads the bias as its own type, and sums in its bits",
    example=short_bias,
)
def biases_of_another_type(node):
    function, input_at, weights_at, bias_at = PRODUCTS[node.name]
    x, w, bias, out = at(node, input_at), at(node, weights_at), at(node, bias_at), node.outputs[0]
    if not known(x, w, bias) or kind(x) != "int16" or kind(out) != "int16" or len(out.scale) != 1:
        return None
    other = "int64" if kind(w) == "int16" else "int32"
    if option(node, "quantized_bias_type") in ("INT32", "INT64") or kind(bias) != other:
        return None
    steps = (function(node) + bias.value.astype(np.int64)) * (float(x.scale[0]) * w.scale / float(out.scale[0]))
    return [(nearest(out, np.clip(steps * float(out.scale[0]), *activation(node))), 2)]


def packed_filter(m):
    x = m.input("int16", [1, 4, 4, 6], scale=0.001, zero_point=0)
    scales = np.linspace(0.01, 0.03, 6).astype(f32)
    codes = m.integers("int4", [1, 3, 3, 6], -7, 7)
    w = m.constant("int4", codes, scale=scales, zero_point=[0] * 6, quantized_dimension=3)
    bias = m.constant("int64", [0] * 6, scale=0.001 * scales, zero_point=[0] * 6, quantized_dimension=0)
    options = {"depth_multiplier": 1, "stride_h": 1, "stride_w": 1}
    y = m.output("int16", scale=0.01, zero_point=0)
    m.operator("DEPTHWISE_CONV_2D", [x, w, bias], [y], **options, version=6)


@deviation(
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    when="INT16 with an INT2 filter of one scale; DEPTHWISE_CONV_2D of INT16 with an INT4 or INT2 filter",
    litert="takes the bytes of packed values for values, and reads past their end",
    tq="the filter's values",
    example=packed_filter,
)
def packed_filters(node):
    function, input_at, weights_at, bias_at = PRODUCTS[node.name]
    x, w, bias, out = at(node, input_at), at(node, weights_at), at(node, bias_at), node.outputs[0]
    packed = ("int2",) if node.name == "CONV_2D" else ("int4", "int2")
    if kind(x) != "int16" or kind(w) not in packed or not known(x, w) or kind(out) != "int16" or len(out.scale) != 1:
        return None
    sums = function(node) + (0 if bias is None else bias.value.astype(np.int64))
    return [(nearest(out, np.clip(sums * (float(x.scale[0]) * w.scale), *activation(node))), 2)]


def column_scales(m):
    x = m.input("int16", [2, 8], scale=0.001, zero_point=0)
    scales = np.linspace(0.01, 0.03, 5).astype(f32)
    y = m.constant(
        "int8", m.integers("int8", [8, 5], -127, 127), scale=scales, zero_point=[0] * 5, quantized_dimension=1
    )
    m.operator("BATCH_MATMUL", [x, y], [m.output("int16", scale=0.002, zero_point=0)], version=4)


@deviation(
    "BATCH_MATMUL",
    when="INT8 or INT16, a scale for each column on the right",
    litert="takes the scale for 0: all values are the zero point",
    tq="each column's scale",
    example=column_scales,
)
def scaled_columns(node):
    a, b, out = *node.inputs, node.outputs[0]
    if not known(a, b) or len(b.scale) < 2 or kind(a) not in ("int8", "int16") or kind(out) not in ("int8", "int16"):
        return None
    left, right = operands_of_product(node)
    y = (left @ right) * (b.scale.astype(float) * float(a.scale[0]))
    return [(nearest(out, y), max(1, 2**-14 * limits(out)[1]))]  # 16 bits: of 15 bits of multiplier
