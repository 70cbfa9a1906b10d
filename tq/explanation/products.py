# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED and BATCH_MATMUL.

The rules by kernel are those of src/ops/products; sources stand there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tq.explanation.fixed_point import f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps, requantize, requantize_wide
from tq.explanation.steps import Trail
from tq.explanation.sums import accumulate, cells, stacked


def _real(node: Node, x: int, w: int, channel: int, product_in_f32: bool) -> float:
    """The real multiplier, in the kernel's order and precision."""
    scale_x, scale_w, scale_y = node.scale(x), node.scale(w, channel), node.out_scale
    if np.isinf(scale_w):
        return 0.0
    if node.numerics == "xnnpack":
        return float(scale_x * scale_w / scale_y)
    exact = float(scale_x * scale_w) if product_in_f32 else float(scale_x) * float(scale_w)
    return exact / float(scale_y)


def _bias(node: Node, place: int, channel: int) -> int | None:
    return None if node.tensor(place) is None else int(node.values(place).reshape(-1)[channel])


def _weights_zero(node: Node, place: int) -> int:
    """Only UINT8 weights, and FULLY_CONNECTED's with one scale, have a zero point that counts."""
    counts = node.type_of(place) == "UINT8" or (node.op.name == "FULLY_CONNECTED" and node.scale_count(place) == 1)
    return node.zero_point(place) if counts else 0


def _matrix(node: Node) -> Any:
    """FULLY_CONNECTED's weights.  XNNPACK takes INT4 ones for unsigned ones less 8 beside zero point 8."""
    w = node.values(1)
    if node.numerics != "xnnpack" or node.type_of(1) != "INT4" or node.scale_count(1) < 2:
        return w
    tensor = node.tensor(1)
    first = 0 if tensor is None or tensor.quantization is None else int(tensor.quantization.zero_point[0])
    return (w.astype(np.int64) & 15) - 8 if first == 8 else w


def _is_wide(node: Node, bias: int) -> bool:
    if node.type_of(0 if node.op.name != "TRANSPOSE_CONV" else 2) != "INT16":
        return False
    asked = node.option("quantized_bias_type", "FLOAT32")
    if asked in ("INT32", "INT64"):
        return bool(asked == "INT64")
    return node.tensor(bias) is None or node.type_of(bias) == "INT64"


def _finish(trail: Trail, node: Node, accumulator: int, real: float, rule: str, wide: bool) -> int:
    if node.numerics == "xnnpack":
        rule = "float32-even"
    if wide and rule != "float64-away":
        return requantize_wide(trail, node, accumulator, real)
    return requantize(trail, node, accumulator, real, rule)


def conv_2d(trail: Trail, node: Node) -> int:
    x, w, channel = node.values(0), node.values(1), node.element[3]
    groups = x.shape[3] // w.shape[3]
    first = channel * groups // w.shape[0] * w.shape[3]
    pairs = [
        (x[node.element[0], row, column, first : first + w.shape[3]], w[channel, i, j])
        for i, j, row, column in cells(node, x.shape, w.shape[1:3])
    ]
    wide = _is_wide(node, 2)
    total = accumulate(trail, *stacked(pairs), node.zero_point(0), _weights_zero(node, 1), _bias(node, 2, channel))
    narrow_option = node.type_of(0) != "INT16" or node.option("quantized_bias_type") == "INT32"
    rule = "up" if node.numerics == "optimized" and groups == 1 and narrow_option else "double"
    return _finish(trail, node, total, _real(node, 0, 1, channel, node.type_of(0) == "UINT8"), rule, wide)


def depthwise_conv_2d(trail: Trail, node: Node) -> int:
    x, w, channel = node.values(0), node.values(1), node.element[3]
    source = channel // (w.shape[3] // x.shape[3])
    pairs = [
        (x[node.element[0], row, column, source], w[0, i, j, channel])
        for i, j, row, column in cells(node, x.shape, w.shape[1:3])
    ]
    total = accumulate(trail, *stacked(pairs), node.zero_point(0), _weights_zero(node, 1), _bias(node, 2, channel))
    in_blocks = node.type_of(0) == "INT8" and channel < w.shape[3] - w.shape[3] % 8
    rule = "up" if node.numerics == "optimized" and in_blocks else "double"
    real = _real(node, 0, 1, channel, node.type_of(0) == "UINT8")
    return _finish(trail, node, total, real, rule, _is_wide(node, 2))


def transpose_conv(trail: Trail, node: Node) -> int:
    x, w, channel = node.values(2), node.values(1), node.element[3]
    pairs = []
    starts = []
    for axis, which in ((1, "h"), (2, "w")):
        stride, taps = int(node.options[f"stride_{which}"]), w.shape[axis]
        reach = (x.shape[axis] - 1) * stride + taps - node.shape[axis]
        before = max(reach, 0) // 2 if node.option("padding") == "SAME" else 0
        starts.append((stride, taps, before))
    (down, high, top), (across, broad, left) = starts
    for i in range(high):
        for j in range(broad):
            row, column = node.element[1] + top - i, node.element[2] + left - j
            if row % down or column % across:
                continue
            row, column = row // down, column // across
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                pairs.append((x[node.element[0], row, column], w[channel, i, j]))
    zero_w = node.zero_point(1) if node.type_of(2) == "UINT8" else 0
    total = accumulate(trail, *stacked(pairs), node.zero_point(2), zero_w, _bias(node, 3, channel))
    rule = "double"
    if node.numerics == "optimized" and node.type_of(2) == "INT8":
        rule = "up" if channel < w.shape[0] - w.shape[0] % 8 else "double"
    elif node.numerics == "optimized" and node.type_of(2) == "UINT8":
        count = int(np.prod(node.shape))
        rule = "up" if int(np.ravel_multi_index(node.element, node.shape)) < count - count % 16 else "double"
    real = _real(node, 2, 1, channel, node.type_of(2) == "UINT8")
    return _finish(trail, node, total, real, rule, _is_wide(node, 3))


def fully_connected(trail: Trail, node: Node) -> int:
    if node.option("weights_format", "DEFAULT") != "DEFAULT":
        return _shuffled(trail, node)
    w, channel = _matrix(node), node.element[-1]
    row = node.values(0).reshape(-1, w.shape[1])[int(np.ravel_multi_index(node.element, node.shape)) // w.shape[0]]
    total = accumulate(trail, row, w[channel], node.zero_point(0), _weights_zero(node, 1), _bias(node, 2, channel))
    many = node.scale_count(1) > 1
    if node.type_of(0) == "INT16" and node.type_of(1) == "INT16":
        return _finish(trail, node, total, _real(node, 0, 1, channel, not many), "double", _is_wide(node, 2))
    sparse = node.needed(1).sparsity is not None and node.type_of(0) == "INT8"
    optimized = not sparse and _has_optimized_kernel(node)
    rule = "double" if sparse else "up" if optimized else "float64-away"
    real = _real(node, 0, 1, channel, (sparse or optimized) and not many)
    return _finish(trail, node, total, real, rule, _is_wide(node, 2) and not optimized)


def _shuffled(trail: Trail, node: Node) -> int:
    """Weights in blocks of 4 units by 16 columns, stored less their zero point of 128."""
    units, columns = node.values(1).shape
    blocks = node.values(1).astype(np.uint8).view(np.int8).reshape(units // 4, columns // 16, 4, 16)
    channel = node.element[-1]
    w = blocks[channel // 4, :, channel % 4].reshape(-1).astype(np.int64)
    row = node.values(0).reshape(-1, columns)[int(np.ravel_multi_index(node.element, node.shape)) // units]
    total = accumulate(trail, row, w, 128, 0, _bias(node, 2, channel))
    bounds = node.bounds
    if node.numerics != "reference":
        bounds = node.limits
        pairs = ((row - 128) * w).reshape(-1, 2, 8).sum(axis=1)
        wrapped = int((pairs == 1 << 15).sum())
        if wrapped:
            total -= trail.add("wrapped", wrapped << 16, f"{wrapped} sums of two products are -2^15 in 16 bits: less")
    total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    real = float(f32(node.scale(0) * node.scale(1))) / float(node.out_scale)
    trail.add("real multiplier", real, "input scale * weight scale in float32 / output scale")
    return finish(trail, node, fixed_steps(trail, total, node.parts(real), node.rule("double")), 0, bounds)


def _has_optimized_kernel(node: Node) -> bool:
    """The optimized kernel of INT16 inputs takes neither an INT64 bias nor zero points."""
    if node.numerics != "optimized" or node.type_of(0) != "INT16":
        return node.numerics == "optimized"
    has_int64 = node.tensor(2) is not None and node.type_of(2) == "INT64"
    shifted = node.scale_count(1) == 1 and node.zero_point(1) != 0
    return not has_int64 and not shifted and node.option("quantized_bias_type") != "INT64"


def batch_matmul(trail: Trail, node: Node) -> int:
    a, b = node.values(0), node.values(1)
    a = np.swapaxes(a, -1, -2) if node.options.get("adj_x") else a
    b = np.swapaxes(b, -1, -2) if node.options.get("adj_y") else b
    a = np.broadcast_to(a, node.shape[:-2] + a.shape[-2:])
    b = np.broadcast_to(b, node.shape[:-2] + b.shape[-2:])
    row: Any = a[node.element[:-1]]
    column: Any = np.swapaxes(b, -1, -2)[(*node.element[:-2], node.element[-1])]
    total = accumulate(trail, row, column, node.zero_point(0), node.zero_point(1), None)
    real = _real(node, 0, 1, node.element[-1], True)
    return _finish(trail, node, total, real, "double", node.type_of(0) == "INT16")
