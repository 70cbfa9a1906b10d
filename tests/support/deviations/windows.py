# SPDX-License-Identifier: Apache-2.0
"""Pools, and images resized."""

import numpy as np

from deviations.table import NOT_XNNPACK, deviation
from deviations.values import activation, away, is_known, is_quantized, is_same, kind, limits, scale, window_counts


def far_pool(m):
    shape = [1, 6, 5, 8]
    values = np.linspace(-32768, 32767, 240).astype(np.int16).reshape(shape)
    x = m.input("int16", shape, scale=2e-9, zero_point=0, draw=lambda: values)
    y = m.output("int16", shape, scale=2e-9, zero_point=0)
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    m.operator("MAX_POOL_2D", [x], [y], fused_activation_function="RELU6", version=3, **options)


def windows(node):
    """The input values of each output element: [row][column], an array [batch, taps, channels] of INT64."""
    values, options = node.inputs[0].value.astype(np.int64), node.options
    parts = []
    for n, count, axis, name in zip(values.shape[1:3], window_counts(node), "hw", ("height", "width"), strict=True):
        reach, stride = options[f"filter_{name}"], options[f"stride_{axis}"]
        before = max((count - 1) * stride + reach - n, 0) // 2 if is_same(node) else 0
        parts.append([slice(max(k * stride - before, 0), k * stride - before + reach) for k in range(count)])
    return [[values[:, y, x].reshape(len(values), -1, values.shape[3]) for x in parts[1]] for y in parts[0]]


@deviation(
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    when="quantized values, a fused activation with a bound that is 2^31 steps of the output or more",
    litert="goes on with bounds that it has not computed: any values",
    tq="saturates",
    example=far_pool,
    numerics=NOT_XNNPACK,
)
def far_pools(node):
    if not is_quantized(node) or not is_known(node):
        return None
    low, high = activation(node)
    if not 2**31 * float(scale(node.outputs[0])) <= (high if high < np.inf else 0):
        return None
    way = np.max if node.name == "MAX_POOL_2D" else np.mean
    cells = np.array([[way(cell, axis=1) for cell in row] for row in windows(node)]).transpose(2, 0, 1, 3)
    least, most = limits(node.outputs[0])
    lowest = least if low < 0 else max(least, int(node.outputs[0].zero_point[0]))
    return [np.clip(away(cells), lowest, most).astype(kind(node.outputs[0]))]


def far_pixels(m):
    x = m.input("int8", [1, 10, 10, 2], scale=0.1, zero_point=0)
    y = m.output("int8", [1, 400, 400, 2], scale=0.1, zero_point=0)
    m.operator("RESIZE_BILINEAR", [x, m.constant("int32", [400, 400])], [y], version=3)


def fixed_positions(node, dimension, size):
    """Lower and upper pixels and the way between them, of 1024; and whether the reference goes past the last."""
    count = node.inputs[0].shape[dimension]
    step = (1024 * count + size // 2) // size
    if node.options["align_corners"] and size > 1:
        step = (1024 * (count - 1) + (size - 1) // 2) // (size - 1)
    at = np.arange(size) * step + (step // 2 - 512 if node.options["half_pixel_centers"] else 0)
    low = np.maximum(at, 0) // 1024
    high = np.minimum(np.where(at > -1023, (at + 1023) // 1024, 0), count - 1)
    return np.minimum(low, count - 1), high, at - 1024 * np.minimum(low, count - 1), bool((low >= count).any())


@deviation(
    "RESIZE_BILINEAR",
    when="INT8 or INT16, a step that rounds up so far that its multiples pass the last pixel",
    litert="reads behind the row or the image",
    tq="the last pixel",
    example=far_pixels,
)
def far_resize(node):
    x = node.inputs[0]
    if kind(x) not in ("int8", "int16") or not is_known(node):
        return None
    height, width = (int(n) for n in node.inputs[1].value)
    top, bottom, down, below = fixed_positions(node, 1, height)
    left, right, across, beside = fixed_positions(node, 2, width)
    if not (below or beside):
        return None
    down, across = (np.where(a == b, 0, way) for a, b, way in ((top, bottom, down), (left, right, across)))
    pixels, down, across = x.value.astype(np.int64), down[:, None, None], across[:, None]
    total = (
        pixels[:, top][:, :, left] * (1024 - down) * (1024 - across)
        + pixels[:, bottom][:, :, left] * down * (1024 - across)
        + pixels[:, top][:, :, right] * (1024 - down) * across
        + pixels[:, bottom][:, :, right] * down * across
    )
    rounded = total + np.where(total > 0, 2**19, -(2**19))
    return [(np.sign(rounded) * (abs(rounded) >> 20)).astype(kind(x))]
