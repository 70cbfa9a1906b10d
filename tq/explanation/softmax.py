# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX: in fixed point, by the optimized kernel's table of floats, or of INT16 between points of two functions.

Sources: LiteRT f6745779, tflite/kernels/internal/reference/softmax.h, optimized/optimized_ops.h; gemmlowp
fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import INT32_MAX, clamp, f32, high_mul, shift_away, shift_left
from tq.explanation.interpolation import interpolate, points
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.steps import Trail

_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # e^-2^k for k from -2, in Q31


def saturated(x: int) -> int:
    return clamp(x, -INT32_MAX - 1, INT32_MAX)


def _exp_small(a: int) -> int:
    """e^a for a in [-1/4, 0), in Q31: a polynomial around -1/8."""
    at, third = 1895147668, 715827883  # e^-1/8, 1/3
    x = a + (1 << 28)
    x2 = high_mul(x, x)
    x3, x4 = high_mul(x2, x), high_mul(x2, x2)
    rest = high_mul(shift_away(x4, 2) + x3, third) + x2
    return saturated(at + high_mul(at, x + shift_away(rest, 1)))


def _exp_negative(a: int) -> int:
    """e^a for a <= 0 with 5 integer bits, in Q31."""
    fraction = 26
    quarter = 1 << (fraction - 2)
    if a >= 0:
        return INT32_MAX
    rest = (a & (quarter - 1)) - quarter
    result = _exp_small(shift_left(rest, 5))
    for k in range(-2, 5):
        if (rest - a) >> (fraction + k) & 1:
            result = high_mul(result, _FACTORS[k + 2])
    return result


def inverse_of_one_plus(a: int) -> int:
    """1 / (1 + a) for a in [0, 1), in Q31."""
    total = a + INT32_MAX
    half = int((total + (1 if total >= 0 else -1)) / 2) if abs(total) < 2**52 else total // 2
    y = saturated(1515870810 + high_mul(half, -1010580540))
    for _ in range(3):
        y = saturated(y + shift_left(high_mul(y, saturated((1 << 29) - high_mul(half, y))), 2))
    return shift_left(y, 1)


def _reciprocal(x: int, digits: int) -> tuple[int, int]:
    """(scale, over): 1 / x = scale * 2^-over, scale in Q31."""
    zeros = 32 - x.bit_length()
    a = (x << zeros if zeros >= 0 else x >> -zeros) - (1 << 31)
    return inverse_of_one_plus(a), digits - zeros


def softmax(trail: Trail, node: Node) -> int:
    row = node.values(0)[node.element[:-1]]
    q, most = int(row[node.element[-1]]), int(row.max())
    trail.add("q", q, f"quantized; scale {float(node.scale(0))!r}")
    below = most - row
    trail.add("d", q - most, "q less the row's greatest")
    beta = f32(node.options.get("beta", 1.0))
    if node.type_of(0) == "INT16":
        return _of_int16(trail, node, below, beta)
    if node.numerics != "reference":
        return _by_table(trail, node, below, beta)
    return _fixed(trail, node, below, float(beta))


def exponentials(node: Node, beta: float) -> tuple[tuple[int, int], int, Callable[[int], int]]:
    """(multiplier, shift) of a difference to the greatest, the least difference that counts, and e^-d in Q31."""
    real = min(beta * float(node.scale(0)) * 2.0**26, 1073741823.0 if node.single else 2147483647.0)
    by = node.parts(real)
    radius = math.floor(math.ldexp(31.0 * 2**26, -by[1]))
    least = -radius if radius < 256 else -256

    def exponential(d: int) -> int:
        return _exp_negative(node.multiply(-d, by)) if -d >= least else 0

    return by, least, exponential


def _fixed(trail: Trail, node: Node, below: Any, beta: float) -> int:
    by, least, exponential = exponentials(node, beta)
    own = int(below[node.element[-1]])
    trail.add("d beta s", node.multiply(-own, by), "in fixed point, 26 bits of fraction")
    power = trail.add("e^(d beta s)", exponential(own), "in fixed point, 31 bits of fraction")
    powers = sum(shift_away(exponential(int(d)), 12) for d in below)
    total = trail.add("sum", powers, "of the row's, 19 bits of fraction")
    inverse, over = _reciprocal(total, 12)
    trail.add("1 / sum", inverse, f"times 2^-{over}, 31 bits of fraction")
    bits = 16 if node.out_type == "INT16" else 8
    low = node.limits[0]
    if -own < least:
        return finish(trail, node, trail.add("rounded", low, "too far below the greatest"), 0)
    share = shift_away(high_mul(inverse, power), over + 31 - bits)
    trail.add("rounded", share, f"e^(d beta s) / sum in units of 2^-{bits}, ties away from zero")
    return finish(trail, node, share, low)


def table_of_floats(node: Node, below: Any, beta: np.float32) -> tuple[list[np.float32], np.float32]:
    """e^(d beta s) of each element of the row, and their sum in order, in float32."""
    scale = f32(-node.scale(0) * beta)
    powers = [f32(math.exp(float(f32(scale * f32(d))))) for d in below]
    total = f32(0)
    for item in powers:
        total = f32(total + item)
    return powers, total


def _by_table(trail: Trail, node: Node, below: Any, beta: np.float32) -> int:
    powers, total = table_of_floats(node, below, beta)
    power = trail.add("e^(d beta s)", float(powers[node.element[-1]]), "in float32")
    trail.add("sum", float(total), "of the row's, in order, in float32")
    inverse = f32(f32(1) / f32(total * node.out_scale))
    trail.add("1 / (sum so)", float(inverse), "in float32")
    share = f32(f32(power) * inverse)
    trail.add("share", float(share), "in units of the output's scale")
    if node.out_type == "UINT8":
        rounded = trail.add("rounded", int(f32(min(share, f32(1 << 20)) + f32(0.5))), "share + 1/2, truncated")
        return finish(trail, node, rounded, 0)
    bounded = float(min(share, f32(1 << 20)))
    return finish(trail, node, trail.add("rounded", fx.away(bounded), "to the nearest, ties away from zero"))


def _of_int16(trail: Trail, node: Node, below: Any, beta: np.float32) -> int:
    step = 10.0 / 65535
    powers = points(math.exp, step * -65535, step * 0, 2.0 / 65535, float)
    inverses = points(lambda x: 1.0 / (1.0 + x), 0.0, 1.0, 2.0 / 65535, float)
    by = node.parts(float(f32(node.scale(0) * beta)) / step)

    def exponential(d: int) -> int:
        return interpolate(powers, clamp(node.multiply(-d, by) + 32767, -32768, 32767))

    power = trail.add("e^(d beta s)", exponential(int(below[node.element[-1]])), "between points, 15 bits of fraction")
    total = trail.add("sum", sum(exponential(int(d)) for d in below), "of the row's")
    zeros = 32 - total.bit_length()
    leading = total << (zeros - 1) if zeros >= 1 else total >> (1 - zeros)
    place = clamp(((leading + (1 << 13)) >> 14) - ((1 << 15) + (1 << 16)), -32768, 32767)
    inverse = trail.add("1 / sum", interpolate(inverses, place), "between points of 1 / (1 + x)")
    share = fx.shift_up(power * inverse, 31 - zeros)
    trail.add("rounded", share, f"their product / 2^{31 - zeros}, ties up")
    return finish(trail, node, clamp(share, 0, 32767), 0)
