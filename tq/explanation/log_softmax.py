# SPDX-License-Identifier: Apache-2.0
"""LOG_SOFTMAX of 8 bits: in fixed point, or by the optimized kernel's table of floats.

Sources: src/ops/reductions/softmax.c, src/quant/fixed_math.h.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import INT32_MAX, f32, high_mul, shift_away, shift_left
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.softmax import exponentials, inverse_of_one_plus, saturated, table_of_floats
from tq.explanation.steps import Trail

_LN2_Q5 = 46516320
_BITS = 26  # of fraction, beside 5 of the integer


def _half_sum(a: int, b: int) -> int:
    """(a + b) / 2, ties away from zero."""
    return shift_away(a + b, 1)


def _power(zeros: int, quarter: int) -> int:
    return saturated(shift_left(12 - zeros, 25) + quarter)


def _ln(x: int) -> int:
    """ln(x) for x with 12 integer bits, in 5.

    Of two powers of two, a quarter apart, the larger makes the argument of the rational function near 1."""
    sqrt_half, root, quarter = 1518500250, 1805811301, 1 << 23  # 2^-1/2, 2^-1/4, 1/4
    x = max(x, 1)
    zeros = 32 - x.bit_length()
    halved = high_mul(x, sqrt_half)
    other = 32 - halved.bit_length() - 1
    r = min(shift_left(high_mul(shift_left(x, zeros - 1), sqrt_half), 1), shift_left(x, other))
    power = max(_power(zeros, quarter), _power(other, -quarter))
    q = 2 * (r - root)
    square = high_mul(q, q)
    above = high_mul(q, r) + high_mul(high_mul(q, square), 117049297)
    inner = 1057819769 + q + high_mul(127690142, square)
    below = high_mul(_half_sum(r, root), inner) + high_mul(638450708, q)
    rest = high_mul(shift_away(above, 6), inverse_of_one_plus(below))
    return shift_left(high_mul(power, 1488522236) + rest, 1)


def log_softmax(trail: Trail, node: Node) -> int:
    row = node.values(0)[node.element[:-1]]
    q, most = int(row[node.element[-1]]), int(row.max())
    trail.add("q", q, f"quantized; scale {float(node.scale(0))!r}")
    if node.numerics != "reference":
        return _by_table(trail, node, q, most, most - row)
    return _fixed(trail, node, int(trail.add("d", q - most, "q less the row's greatest")), most - row)


def _fixed(trail: Trail, node: Node, d: int, below: Any) -> int:
    by, least, exponential = exponentials(node, 1.0)
    x = trail.add("d s", node.multiply(d, by), f"in fixed point, {_BITS} bits of fraction")
    total = sum(shift_away(exponential(int(item)), 12) for item in below)
    trail.add("sum(e^(d s))", total, "of the row's, 19 bits of fraction")
    log = 0
    while total > INT32_MAX:
        total, log = total // 2, log + _LN2_Q5
    log = trail.add("ln(sum)", saturated(log + _ln(total)), f"in fixed point, {_BITS} bits of fraction")
    back = node.parts(math.ldexp(1.0, 31 - by[1]) / by[0] if by[0] > 0 else 0.0)
    if d <= max(node.multiply(saturated(log - INT32_MAX - 1), back), least - 1):
        return int(trail.add("quantized value", node.limits[0], "too far below the greatest"))
    y = shift_away(saturated(x - log), _BITS - 4)
    return finish(trail, node, trail.add("rounded", y, "d s - ln(sum) in units of 1/16, ties away from zero"))


def _by_table(trail: Trail, node: Node, q: int, most: int, below: Any) -> int:
    log = f32(np.log(table_of_floats(node, below, f32(1))[1]))
    trail.add("ln(sum)", float(log), "of the row's e^(d s), in order, in float32")
    offset = f32(f32(f32(node.scale(0) * f32(most)) + log) / node.out_scale)
    trail.add("offset", float(offset), "(s max + ln(sum)) / so, in float32")
    y = f32(f32(f32(node.scale(0) / node.out_scale) * f32(q)) - offset)
    trail.add("y", float(y), "q s / so - offset, in float32")
    bounded = float(np.clip(np.nan_to_num(y, posinf=1e9, neginf=-1e9), -1e9, 1e9))
    return finish(trail, node, trail.add("rounded", fx.even(bounded), "to the nearest, ties to even"))
