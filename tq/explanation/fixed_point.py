# SPDX-License-Identifier: Apache-2.0
"""Fixed-point and float32 arithmetic on Python's integers: exact, so that every step can be shown.

Sources: LiteRT f6745779, tflite/kernels/internal/common.cc, quantization_util.cc; gemmlowp fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from tq._core import quantize_multiplier, saturating_rounding_doubling_high_mul

INT32_MAX = 2**31 - 1


def high_mul(a: int, b: int) -> int:
    """a * b / 2^31 to the nearest, ties up; the one overflow saturates."""
    return int(saturating_rounding_doubling_high_mul(a, b))


def shift_away(x: int, places: int) -> int:
    """x / 2^places to the nearest, ties away from zero."""
    half = (1 << places) >> 1
    return (x + half) >> places if x >= 0 else -((-x + half) >> places)


def shift_up(x: int, places: int) -> int:
    """x / 2^places to the nearest, ties up."""
    return (x + ((1 << places) >> 1)) >> places


def shift_left(x: int, places: int) -> int:
    """x * 2^places, saturated to int32."""
    return clamp(x << places, -INT32_MAX - 1, INT32_MAX)


def parts(real: float, rounding: str = "double") -> tuple[int, int]:
    """(multiplier, shift) of a real multiplier: real = multiplier * 2^(shift - 31), nearly."""
    multiplier, shift = quantize_multiplier(real, rounding=rounding)
    return int(multiplier), int(shift)


def multiply(x: int, by: tuple[int, int]) -> int:
    """MultiplyByQuantizedMultiplier with two roundings."""
    multiplier, shift = by
    return shift_away(high_mul(shift_left(x, max(shift, 0)), multiplier), max(-shift, 0))


def multiply_once(x: int, by: tuple[int, int]) -> int:
    """MultiplyByQuantizedMultiplier with one rounding, ties up."""
    multiplier, shift = by
    return shift_up(x * multiplier, 31 - clamp(shift, -31, 30))


def short_multiplier(multiplier: int) -> int:
    """The 16-bit multiplier that 64-bit accumulators are multiplied by."""
    return (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF


def clamp(x: int, low: int, high: int) -> int:
    return min(max(x, low), high)


def away(x: float) -> int:
    """The nearest integer, ties away from zero."""
    exact = Fraction(x)
    return floor(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)


def even(x: float) -> int:
    """The nearest integer, ties to even."""
    return round(Fraction(x))


def f32(x: Any) -> np.float32:
    return np.float32(x)
