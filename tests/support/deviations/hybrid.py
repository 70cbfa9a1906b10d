# SPDX-License-Identifier: Apache-2.0
"""Convolutions, layers and matrix products of floats and quantized values."""

import numpy as np

from deviations.products import patches
from deviations.table import NOT_XNNPACK, UNPROMISED, deviation
from deviations.values import activated, f32, kind, known, option

FAINT = f32(1e-35)


# ---- rows of floats, quantized ----


def quantized(row, asymmetric):
    """Quantized values less their zero point, and the scale (NaN: non-finite), as ops/products/hybrid.c computes."""
    row = np.asarray(row, f32).reshape(-1)
    low, high = min(f32(0), np.nanmin(row)), max(f32(0), np.nanmax(row))
    if not np.isfinite(row).all():
        return np.zeros(row.size, np.int64), f32(np.nan)
    if max(-low, high) < FAINT:
        return np.zeros(row.size, np.int64), f32(1)
    if asymmetric:
        scale = float(f32(high - low)) / 255
        ends = [-128 - float(low) / scale, 127 - float(high) / scale]
        from_low = 128 + abs(float(low) / scale) < 127 + abs(float(high) / scale)
        zero = int(np.clip(np.trunc(ends[not from_low] + np.copysign(0.5, ends[not from_low])), -128, 127))
        least, scale = -128, f32(scale)
        scaled = row * (f32(1) / scale)
    else:
        bound = max(-low, high)
        zero, least, scale = 0, -127, f32(bound / f32(127))
        scaled = row * (f32(127) / bound)
    whole = row.size - row.size % 8
    rounded = np.trunc(scaled + np.where(scaled < 0, f32(-0.5), f32(0.5)))
    rounded[whole:] = np.trunc(scaled[whole:].astype(float) + np.copysign(0.5, scaled[whole:]))
    return np.clip(rounded.astype(np.int64) + zero, least, 127) - zero, scale


def is_hybrid(node):
    return (
        len(node.inputs) > 1
        and known(node.inputs[0], node.inputs[1])
        and kind(node.inputs[0]) == "float32"
        and kind(node.inputs[1]) in ("int8", "int4", "int2")
    )


def is_odd(rows):
    """Whether a row is not finite, or so small that its scale's inverse is not."""
    rows = np.asarray(rows, f32)
    with np.errstate(invalid="ignore"):
        faint = (np.abs(rows).max(axis=-1, initial=0) < FAINT) & (rows != 0).any(axis=-1)
    return not np.isfinite(rows).all() or faint.any()


def hybrid_products(node, rows, asymmetric, weights=None):
    """[row, unit] floats without bias: rows by weights [unit, column], input 1 if none are given."""
    weights = node.inputs[1].value.astype(np.int64) if weights is None else weights
    out = []
    for row in rows:
        q, scale = quantized(row, asymmetric)
        acc = (weights @ q).astype(f32)
        s = node.inputs[1].scale.astype(f32)
        with np.errstate(all="ignore"):
            out.append(acc * (s * scale))
    return np.array(out, f32)


# ---- layers ----


def layer(node):
    """FULLY_CONNECTED of floats and quantized weights."""
    x, w = node.inputs[0].value, node.inputs[1].value
    rows = x.reshape(-1, w.shape[1])
    y = hybrid_products(node, rows, bool(node.options["asymmetric_quantize_inputs"]))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        y = y + node.inputs[2].value
    shape = (*x.shape[:-1], w.shape[0]) if node.options["keep_num_dims"] else (-1, w.shape[0])
    return activated(node, y).reshape(shape)


def is_layer(node):
    scale = node.inputs[1].scale if is_hybrid(node) else np.empty(0)
    return scale.ndim == 1 and scale.size in (1, node.inputs[1].shape[0])


def has_lowest(node):
    """Whether a weight is -128 beside a float input; of UINT8, 128 is, which hybrid kernels read as INT8."""
    x, w = node.inputs[:2]
    if not known(x, w) or kind(x) != "float32" or kind(w) not in ("int8", "uint8"):
        return False
    return bool((np.ascontiguousarray(w.value).view(np.int8) == -128).any())


def odd_layer(m):
    x = m.input("float32", [2, 16], np.where(np.arange(32).reshape(2, 16) == 3, np.inf, 1.0))
    w = m.constant("int8", m.integers("int8", [8, 16], -100, 100), scale=0.01, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, -1], [m.output("float32")], version=9)


@deviation(
    "FULLY_CONNECTED",
    when="FLOAT32 with weights of 8 bits or fewer, a row that holds an infinity or NaN, or stays below 1e-35",
    litert="converts out of range: values that depend on their positions, and on x86",
    tq="NaN throughout such a row; zeros where it stays below",
    example=odd_layer,
    numerics=NOT_XNNPACK,
)
def odd_rows(node):
    if not is_layer(node) or not is_odd(node.inputs[0].value.reshape(-1, node.inputs[1].value.shape[1])):
        return None
    return [layer(node)]


def lowest_weight(m):
    x = m.input("float32", [1, 32], -np.ones((1, 32)))
    w = m.constant("int8", np.full((3, 32), -128), scale=0.01, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, -1], [m.output("float32")], version=9)


@deviation(
    "FULLY_CONNECTED",
    when="FLOAT32 with INT8 weights of which one is -128",
    litert="takes it for 128 beside a negative quantized value",
    tq="-128",
    example=lowest_weight,
    numerics=NOT_XNNPACK,
)
def lowest_weights(node):
    return [layer(node)] if is_layer(node) and has_lowest(node) else None


def lowest_value(m):
    x = m.input("float32", [2, 64], draw=lambda: m.floats([2, 64], special=0))
    w = m.constant("int4", m.integers("int4", [8, 64], -8, 7), scale=0.1, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, -1], [m.output("float32")], version=9)


def has_kernel_of_4_bits(node):
    units, columns = node.inputs[1].shape
    return kind(node.inputs[1]) == "int4" and units >= 4 and columns >= 32 and columns % 2 == 0


@deviation(
    "FULLY_CONNECTED",
    when="FLOAT32 with INT4 weights of which one is -8, at least 4 units and 32 columns",
    litert="takes it for 8, and another weight for 8 too",
    tq="-8",
    numerics=("optimized",),
    example=lowest_value,
)
def lowest_values(node):
    if not is_layer(node) or not has_kernel_of_4_bits(node) or not (node.inputs[1].value == -8).any():
        return None
    w = node.inputs[1].value.astype(float) * np.reshape(node.inputs[1].scale, (-1, 1))
    y = node.inputs[0].value.reshape(-1, w.shape[1]).astype(float) @ w.T
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        y = y + node.inputs[2].value
    shape = (*node.inputs[0].shape[:-1], len(w)) if node.options["keep_num_dims"] else y.shape
    steps = np.abs(node.inputs[0].value).max() / 254 * np.abs(w).sum(axis=1).max()  # half a step in every product
    return [(activated(node, y).astype(f32).reshape(shape), steps)]


def blocks(m):
    q = m.integers("int4", [8, 64], -8, 7)
    scales = m.constant("float16", np.linspace(0.01, 0.04, 16).reshape(8, 2).astype(np.float16))
    w = m.constant("int4", q)
    details = {"type": "BlockwiseQuantization", "scales": scales, "zero_points": -1, "block_size": 32}
    m.tensors[w].fields["details"] = details
    x = m.input("float32", [2, 64], draw=lambda: m.floats([2, 64], special=0))
    m.operator("FULLY_CONNECTED", [x, w, -1], [m.output("float32")], version=13)


@deviation(
    "FULLY_CONNECTED",
    when="FLOAT32 with blockwise weights",
    litert="gives the bias (the optimized kernel, of 4 units and 32 columns or more: no activation)",
    tq="the products, and the activation",
    example=blocks,
    numerics=NOT_XNNPACK,
)
def blockwise(node):
    if not is_hybrid(node) or node.inputs[1].scale.ndim != 2:
        return None
    if (
        node.numerics == "optimized"
        and has_kernel_of_4_bits(node)
        and option(node, "fused_activation_function") == "NONE"
    ):
        return None
    scales, w = node.inputs[1].scale, node.inputs[1].value.astype(np.int64)
    block = w.shape[1] // scales.shape[1]
    out = []
    x = node.inputs[0].value
    for row in x.reshape(-1, w.shape[1]):
        q, scale = quantized(row, True)
        sums = (w * q).reshape(*scales.shape, block).sum(axis=2)
        out.append((sums * scales.astype(float)).sum(axis=1) * float(scale))
    y = np.array(out, f32)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        y += node.inputs[2].value
    if node.options["keep_num_dims"]:
        y = y.reshape(*x.shape[:-1], len(w))
    return [(activated(node, y), 1e-6 * float(np.abs(y).max()))]


# ---- convolutions ----


def convolution(node, depthwise=False):
    x, w = node.inputs[0].value, node.inputs[1].value.astype(np.int64)
    scales = np.broadcast_to(node.inputs[1].scale.astype(f32), w.shape[3] if depthwise else w.shape[0])
    index, sizes = patches(node)
    depth = x.shape[3]
    count = scales.size
    asymmetric = depthwise or depth != w.shape[3] or len(set(scales.tolist())) > 1
    out = []
    for image in x:
        q, scale = quantized(image, asymmetric)
        cells = np.vstack([q.reshape(-1, depth), np.zeros((1, depth), np.int64)])[index]  # [pixel, tap, channel]
        if depthwise:
            taps = w.reshape(-1, count)
            acc = (np.repeat(cells, count // depth, axis=2) * taps).sum(axis=1)
        else:
            groups = depth // w.shape[3]
            parts = np.split(cells, groups, axis=2)
            filters = np.split(w.reshape(count, -1, w.shape[3]), groups)
            acc = np.concatenate(
                [np.einsum("ptc,otc->po", part, f) for part, f in zip(parts, filters, strict=True)], axis=1
            )
        with np.errstate(all="ignore"):
            y = acc.astype(f32) * scales * scale if asymmetric and not depthwise else acc.astype(f32) * (scales * scale)
        out.append(y)
    y = np.array(out, f32)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        y = y + node.inputs[2].value
    return activated(node, y).reshape(x.shape[0], *sizes, count)


def image_rows(node):
    return node.inputs[0].value.reshape(node.inputs[0].value.shape[0], -1)


def convolve(m, x, w, channels, name="CONV_2D"):
    """The operator of a draft, with a bias of zeros."""
    deep = {"depth_multiplier": 1} if name == "DEPTHWISE_CONV_2D" else {}
    inputs = [x, w, m.constant("float32", np.zeros(channels))]
    m.operator(name, inputs, [m.output("float32")], stride_h=1, stride_w=1, **deep, version=6 if deep else 5)


def odd_image(name):
    def draw(m):
        values = np.ones((2, 3, 3, 4))
        values[0, 1, 1, 1] = np.inf
        x = m.input("float32", [2, 3, 3, 4], values)
        shape = [1, 2, 2, 4] if name == "DEPTHWISE_CONV_2D" else [5, 2, 2, 4]
        count = shape[3] if shape[0] == 1 else shape[0]
        axis = 3 if shape[0] == 1 else 0
        scales = np.linspace(0.01, 0.02, count).astype(f32)
        w = m.constant(
            "int8", m.integers("int8", shape, -100, 100), scale=scales, zero_point=[0] * count, quantized_dimension=axis
        )
        convolve(m, x, w, count, name)

    return draw


@deviation(
    "CONV_2D",
    when="FLOAT32 with an INT8 or INT4 filter, an image that holds an infinity or NaN, or stays below 1e-35",
    litert="converts out of range: values that depend on their positions, and on x86",
    tq="NaN throughout such an image; zeros where it stays below",
    example=odd_image("CONV_2D"),
    numerics=NOT_XNNPACK,
)
def odd_images(node):
    return [convolution(node)] if is_hybrid(node) and is_odd(image_rows(node)) else None


@deviation(
    "DEPTHWISE_CONV_2D",
    when="FLOAT32 with an INT8 filter, an image that holds an infinity or NaN, or stays below 1e-35",
    litert="converts out of range: values that depend on their positions, and on x86",
    tq="NaN throughout such an image; zeros where it stays below",
    example=odd_image("DEPTHWISE_CONV_2D"),
)
def odd_depthwise_images(node):
    return [convolution(node, depthwise=True)] if is_hybrid(node) and is_odd(image_rows(node)) else None


def lowest_filter(m):
    x = m.input("float32", [1, 1, 1, 32], -np.ones((1, 1, 1, 32)))
    w = m.constant("int8", np.full((3, 1, 1, 32), -128), scale=0.01, zero_point=0)
    convolve(m, x, w, 3)


@deviation(
    "CONV_2D",
    when="FLOAT32 with an INT8 filter of which a weight is -128, all scales the same",
    litert="takes it for 128 beside a negative quantized value, unless the channels are a multiple of 4",
    tq="-128",
    example=lowest_filter,
    numerics=NOT_XNNPACK,
)
def lowest_filters(node):
    if not has_lowest(node):
        return None
    return [convolution(node)] if is_hybrid(node) else [UNPROMISED]  # of UINT8, as old models have them


def grouped(m):
    x = m.input("float32", [1, 2, 2, 4], np.arange(16.0))
    w = m.constant("int8", m.integers("int8", [6, 1, 1, 2], -100, 100), scale=0.01, zero_point=0)
    convolve(m, x, w, 6)


@deviation(
    "CONV_2D",
    when="FLOAT32 with an INT8 or INT4 filter of several groups and one scale",
    litert="reads scales behind the one",
    tq="the one scale for all channels",
    example=grouped,
    numerics=NOT_XNNPACK,
)
def grouped_filters(node):
    if not is_hybrid(node) or len(node.inputs[1].scale) != 1:
        return None
    return [convolution(node)] if node.inputs[0].value.shape[3] != node.inputs[1].value.shape[3] else None


def deep_of_one_scale(m):
    x = m.input("float32", [1, 2, 2, 6], np.arange(24.0))
    w = m.constant("int8", m.integers("int8", [1, 1, 1, 6], 50, 100), scale=0.01, zero_point=0)
    convolve(m, x, w, 6, "DEPTHWISE_CONV_2D")


@deviation(
    "DEPTHWISE_CONV_2D",
    when="FLOAT32 with an INT8 filter of several channels and one scale",
    litert="reads scales behind the one",
    tq="the one scale for all channels",
    example=deep_of_one_scale,
)
def deep_filters(node):
    if not is_hybrid(node) or len(node.inputs[1].scale) != 1 or node.inputs[1].value.shape[3] == 1:
        return None
    return [convolution(node, depthwise=True)]


# ---- matrices ----


def several(m):
    x = m.input("float32", [2, 3, 2, 8], draw=lambda: m.floats([2, 3, 2, 8], special=0))
    y = m.constant("int8", m.integers("int8", [2, 3, 8, 5], -127, 127), scale=0.01, zero_point=0)
    m.operator("BATCH_MATMUL", [x, y], [m.output("float32")], asymmetric_quantize_inputs=True, version=4)


@deviation(
    "BATCH_MATMUL",
    when="FLOAT32 with INT8, two dimensions of batches or more",
    litert="reads other matrices' scales, zero points and sums",
    tq="each matrix's own",
    example=several,
    numerics=NOT_XNNPACK,
)
def several_matrices(node):
    if not is_hybrid(node) or node.inputs[1].value.ndim < 3 or node.options["adj_x"] or node.options["adj_y"]:
        return None
    a, b = node.inputs[0].value, node.inputs[1].value
    if len(node.inputs[1].scale) != 1 or max(a.ndim, b.ndim) < 4:
        return None
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*lead, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    b = np.broadcast_to(b, (*lead, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    asymmetric = bool(node.options["asymmetric_quantize_inputs"])
    out = [
        hybrid_products(node, rows, asymmetric, weights=columns.T.astype(np.int64))
        for rows, columns in zip(a, b, strict=True)
    ]
    return [np.array(out, f32).reshape(*lead, a.shape[-2], b.shape[-1])]
