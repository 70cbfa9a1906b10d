# SPDX-License-Identifier: Apache-2.0
"""SQRT, RSQRT and L2_NORMALIZATION.

Formulas and sources: src/ops/elementwise/unary_quantized.c, src/ops/reductions/normalization.c, src/quant/fixed_math.h.
"""

from __future__ import annotations

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import INT32_MAX, f32, high_mul, shift_left
from tq.explanation.interpolation import between_points, function_points
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps
from tq.explanation.steps import Trail

_UP = 20  # the left shift of RSQRT, so that the inverse is an integer


def _input(trail: Trail, node: Node) -> int:
    q, zero = int(node.values(0)[node.element]), node.zero_point(0)
    trail.add("q", q, f"quantized; zero point {zero}, scale {float(node.scale(0))!r}")
    return q - zero


def _inverse_root(x: int) -> tuple[int, int]:
    """1 / sqrt(x) as a fixed-point multiplier, by five steps of Newton's method."""
    if x <= 1:
        return INT32_MAX, 0
    right = 11
    while x >= 1 << 29:
        x, right = x // 4, right + 1
    pairs = (32 - x.bit_length() - 1) // 2 - 1
    right -= pairs
    half = fx.shift_away((x << 2 * pairs) >> 1, 1)
    y = 1 << 28
    for _ in range(5):
        cube = shift_left(high_mul(high_mul(y, y), y), 6)
        y = shift_left(high_mul((1 << 28) + (1 << 27), y) - high_mul(half, cube), 3)
    y = high_mul(y, 1518500250)  # sqrt(1/2)
    return (shift_left(y, -right), 0) if right < 0 else (y, -right)


def sqrt(trail: Trail, node: Node) -> int:
    x = _input(trail, node)
    real = trail.add("x", float(f32(node.scale(0) * f32(x))), "the real value, in float32")
    root = f32(np.sqrt(f32(real)))
    trail.add("y", float(root), "sqrt(x), in float32", float(root))
    steps = f32(root / node.out_scale)
    trail.add("y / so", float(steps), "in float32")
    return finish(trail, node, trail.add("rounded", int(min(steps, f32(1e9))), "truncated"))


def rsqrt(trail: Trail, node: Node) -> int:
    if node.type_of(0) == "INT16":
        most = f32(f32(32767) * node.out_scale)
        return between_points(
            trail,
            node,
            "1 / sqrt(x)",
            function_points(node, lambda x: most if x <= 0 else f32(f32(1) / f32(np.sqrt(x)))),
        )
    x = trail.add("x", _input(trail, node), "q - z")
    if x <= 0:
        return int(trail.add("quantized value", node.limits[1], "the greatest: 1 / sqrt(0) is infinite"))
    multiplier, shift = _inverse_root(x)
    inverse = node.multiply(1, (multiplier, shift + _UP))
    trail.add("1 / sqrt(x)", inverse, f"in fixed point, {_UP} bits of fraction")
    real = 1.0 / float(f32(f32(np.sqrt(node.scale(0))) * node.out_scale))
    trail.add("real multiplier", real, "1 / (sqrt(s) so), in float32")
    m0, n = node.parts(real)
    return finish(trail, node, fixed_steps(trail, inverse, (m0, n - _UP), node.rule("double")))


def l2_normalization(trail: Trail, node: Node) -> int:
    x, row = _input(trail, node), node.values(0)[node.element[:-1]] - node.zero_point(0)
    trail.add("x", x, "q - z")
    total = trail.add("sum(x^2)", int((row * row).sum()), "of the row")
    multiplier, shift = _inverse_root(total)
    trail.add("1 / sqrt(sum)", multiplier * 2.0 ** (shift - 31), "in fixed point")
    if node.out_type == "UINT8":
        x = trail.add("128 x", 128 * x, "in steps of the output, 1/128")
    else:
        shift += 7  # in steps of the output, 1/128
    return finish(trail, node, fixed_steps(trail, x, (multiplier, shift), node.rule("double")))
