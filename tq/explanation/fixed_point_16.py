# SPDX-License-Identifier: Apache-2.0
"""The logistic function and tanh in 16-bit fixed point, as the optimized kernels of INT16 compute them.

A value in Qk is an integer of real value raw / 2^(15 - k).  Source: gemmlowp fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from tq.explanation.fixed_point import clamp, shift_away, shift_up
from tq.explanation.steps import Trail

_FACTORS = (25520, 19875, 12055, 4435, 600, 11, 0)  # e^-2^E, E = -2 ... 4


def saturated(x: int) -> int:
    return clamp(x, -(1 << 15), (1 << 15) - 1)


def high_mul_16(a: int, b: int) -> int:
    """a * b / 2^15 to the nearest, ties up, saturated to int16."""
    return saturated(shift_up(a * b, 15))


def _exp_small(a: int) -> int:
    """e^a for a in [-1/4, 0), Q0 to Q0: by four terms about -1/8."""
    x = a + (1 << 12)
    x2 = high_mul_16(x, x)
    x3, x4 = high_mul_16(x2, x), high_mul_16(x2, x2)
    higher = high_mul_16(shift_away(x4, 2) + x3, 10923) + x2
    return saturated(28918 + high_mul_16(28918, x + shift_away(higher, 1)))


def _exp_negative(a: int, k: int) -> int:
    """e^a for a <= 0 in Qk, in Q0: quarters by factors, the rest by _exp_small."""
    if a == 0:
        return (1 << 15) - 1
    fraction = 15 - k
    quarter = 1 << (fraction - 2)
    rest = (a & (quarter - 1)) - quarter
    result, quarters = _exp_small(saturated(rest << k)), rest - a
    for e, factor in enumerate(_FACTORS, -2):
        if e < k and quarters >> (fraction + e) & 1:
            result = high_mul_16(result, factor)
    return result


def _newton(a: int) -> int:
    """2 / (1 + a) in Q2, for a in [0, 1) in Q0: three steps of Newton-Raphson."""
    half = (a + (1 << 15)) // 2
    x = 23130 + high_mul_16(half, -15420)
    for _ in range(3):
        x += saturated(4 * high_mul_16(x, (1 << 13) - high_mul_16(half, x)))
    return x


def sigmoid_16(trail: Trail, q: int, tanh: bool, doubled: bool) -> int:
    """The logistic function, or tanh, of q in Q3, in Q0.  doubled: q is in Q4."""
    x = saturated(2 * q) if doubled else q
    trail.add("x", x, "in steps of 2^-12" + (", 2 q saturated to int16" if doubled else ""))
    if x == 0:
        return int(trail.add("y", 0 if tanh else 1 << 14, "at 0, in steps of 2^-15"))
    power = trail.add("e", _exp_negative(max(-abs(x), -(1 << 15)), 4 if tanh else 3), "e^-2|x|" if tanh else "e^-|x|")
    ratio = trail.add("2 / (1 + e)", _newton(power), "in steps of 2^-13, by Newton-Raphson")
    if tanh:
        y = saturated(4 * (ratio - (1 << 13)))
        return int(trail.add("y", y if x > 0 else -y, "2 / (1 + e) - 1, with the sign of x, in steps of 2^-15"))
    y = saturated(2 * ratio)
    return int(
        trail.add("y", y if x > 0 else (1 << 15) - 1 - y, "1 / (1 + e), below zero 1 less it, in steps of 2^-15")
    )
