# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of quantized values.

Formulas and sources: src/ops/reductions/resize.c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.steps import Trail


class _Sample(NamedTuple):
    """Two positions of the input along an axis, and the weight of the second."""

    low: int
    high: int
    weight: Any


def _ratio(node: Node, size: int, out: int) -> np.float32:
    if node.options.get("align_corners") and out > 1:
        return f32(f32(size - 1) / f32(out - 1))
    return f32(f32(size) / f32(out))


def _in_float(node: Node, at: int, size: int, out: int) -> _Sample:
    scale, half = _ratio(node, size, out), node.options.get("half_pixel_centers")
    v = f32(f32(f32(at) + f32(0.5)) * scale) - f32(0.5) if half else f32(f32(at) * scale)
    low, high = min(max(int(np.floor(v)), 0), size - 1), min(int(np.ceil(v)), size - 1)
    return _Sample(low, max(high, 0), f32(f32(v) - f32(low)))


def _in_1024ths(node: Node, at: int, size: int, out: int) -> _Sample:
    scale = (1024 * size + out // 2) // out
    if node.options.get("align_corners") and out > 1:
        scale = (1024 * (size - 1) + (out - 1) // 2) // (out - 1)
    v = at * scale + (scale // 2 - 512 if node.options.get("half_pixel_centers") else 0)
    low, high = 0 if v < 0 else min(v // 1024, size - 1), min(max(v + 1023, 0) // 1024, size - 1)
    return _Sample(low, high, 0 if low == high else v - 1024 * low)


def _in_2048ths(node: Node, at: int, size: int, out: int) -> _Sample:
    scale = _ratio(node, size, out)
    v = f32(f32(at) * scale)
    if node.options.get("half_pixel_centers"):
        v = f32(v + f32(f32(f32(0.5) * scale) - f32(0.5)))
    v = f32(min(max(v, f32(0)), f32(size - 1)))
    low = min(int(v), size - 1)
    return _Sample(low, min(low + 1, size - 1), fx.even(float(f32(f32(v - f32(low)) * f32(2048)))))


def _corners(trail: Trail, node: Node, find: Any, unit: str) -> tuple[list[int], Any, Any]:
    """Quantized values at (y0, x0), (y1, x0), (y0, x1) and (y1, x1), and the weights of y1 and x1."""
    values = node.values(0)
    n, row, column, channel = node.element
    y = find(node, row, values.shape[1], node.shape[1])
    x = find(node, column, values.shape[2], node.shape[2])
    found = []
    for name, i, j in (("q00", y.low, x.low), ("q10", y.high, x.low), ("q01", y.low, x.high), ("q11", y.high, x.high)):
        found.append(int(trail.add(name, int(values[n, i, j, channel]), f"quantized, at row {i}, column {j}")))
    for name, sample in (("wy", y), ("wx", x)):
        value = sample.weight if isinstance(sample.weight, int) else float(sample.weight)
        trail.add(name, value, f"the weight of the second {'row' if name == 'wy' else 'column'}{unit}")
    return found, y.weight, x.weight


def _xnnpack(trail: Trail, node: Node) -> int:
    (a, b, c, d), down, right = _corners(trail, node, _in_2048ths, ", in 2048ths, ties to even")
    above = trail.add("above", a * 2048 + (c - a) * right, "2048 q00 + (q01 - q00) wx")
    below = trail.add("below", b * 2048 + (d - b) * right, "2048 q10 + (q11 - q10) wx")
    total = trail.add("sum", above * 2048 + (below - above) * down, "2048 above + (below - above) wy")
    return finish(trail, node, trail.add("rounded", fx.shift_up(total, 22), "the sum / 2^22, ties up"), 0)


def _fixed(trail: Trail, node: Node) -> int:
    (a, b, c, d), y, x = _corners(trail, node, _in_1024ths, ", in 1024ths")
    total = a * (1024 - y) * (1024 - x) + b * y * (1024 - x) + c * (1024 - y) * x + d * y * x
    trail.add("sum", total, "of the four values times their weights")
    if node.single:
        return finish(trail, node, trail.add("rounded", fx.shift_up(total, 20), "the sum / 2^20, ties up"), 0)
    rounded = trail.add("rounded", fx.shift_away(total, 20), "the sum / 2^20, ties away from zero")
    return finish(trail, node, rounded, 0)


def _float(trail: Trail, node: Node) -> int:
    (a, b, c, d), y, x = _corners(trail, node, _in_float, ", in float32")
    up, left = f32(f32(1) - y), f32(f32(1) - x)
    if node.numerics == "optimized":
        products = [f32(f32(q) * f32(v * h)) for q, v, h in ((a, up, left), (c, up, x), (b, y, left), (d, y, x))]
    else:
        products = [f32(f32(f32(q) * v) * h) for q, v, h in ((a, up, left), (b, y, left), (c, up, x), (d, y, x))]
    total = f32(f32(f32(products[0] + products[1]) + products[2]) + products[3])
    trail.add("sum", float(total), "of the four values times their weights, in float32")
    rounded = int(min(max(f32(total + f32(0.5)), f32(0)), f32(255)))
    return finish(trail, node, trail.add("rounded", rounded, "the sum + 1/2, truncated"), 0)


def bilinear(trail: Trail, node: Node) -> int:
    if node.numerics == "xnnpack":
        return _xnnpack(trail, node)
    return (_float if node.out_type == "UINT8" else _fixed)(trail, node)


def nearest(trail: Trail, node: Node) -> int:
    values, places = node.values(0), []
    for axis, name in ((1, "row"), (2, "column")):
        size, out = values.shape[axis], node.shape[axis]
        half = f32(0.5) if node.options.get("half_pixel_centers") else f32(0)
        v = float(f32(f32(f32(node.element[axis]) + half) * _ratio(node, size, out)))
        rounded = fx.away(v) if node.options.get("align_corners") else int(np.floor(v))
        places.append(trail.add(name, min(rounded, size - 1), f"of the input, for {v!r}"))
    q = int(values[node.element[0], places[0], places[1], node.element[3]])
    return finish(trail, node, trail.add("q", q, "the quantized value there"), 0)
