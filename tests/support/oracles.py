# SPDX-License-Identifier: Apache-2.0
"""Rounding rules once more, independently: exact integers and rationals, or NumPy's IEEE operations one at a time."""

from fractions import Fraction
from math import floor, frexp

import numpy as np

RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
}
HOLDER = {"int4": "int8", "uint4": "uint8", "int2": "int8"}


def holder(dtype):
    return np.dtype(HOLDER.get(dtype, dtype))


def float32_of(value):
    """A Fraction to the nearest float32, ties to even, as a Fraction; None beyond the largest."""
    if value == 0:
        return Fraction(0)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length() - 24
    exponent = max(exponent + (size >= Fraction(2) ** (exponent + 24)), -149)
    units = size / Fraction(2) ** exponent
    whole = floor(units)
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    result = whole * Fraction(2) ** exponent
    if result >= Fraction(2) ** 128:
        return None
    return result if value > 0 else -result


def away(value):
    return floor(value + Fraction(1, 2)) if value >= 0 else -floor(-value + Fraction(1, 2))


def even(value):
    below = floor(value)
    rest = value - below
    return below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1))


def clamp(value, low, high):
    return max(low, min(high, value))


def quantize_one(x, scale, zero, low, high, rule):
    """One finite float32 by rational arithmetic."""
    x, scale = Fraction(float(x)), Fraction(float(scale))
    t = float32_of(x / scale if rule == "away" else x * float32_of(1 / scale))
    if t is None:
        return high if x > 0 else low
    return clamp((away if rule == "away" else even)(t) + zero, low, high)


def quantize(x, scale, zero, dtype, rule, narrow=False):
    """Arrays, by NumPy: scale and zero broadcast."""
    low, high = RANGES[dtype]
    low += narrow
    scale, zero = np.float32(scale), np.int64(zero)
    with np.errstate(all="ignore"):
        x = np.asarray(x).astype(np.float32)
        if rule == "away":
            t = np.float64(x / scale)
            r = np.copysign(np.floor(np.abs(t) + 0.5), t)
        else:
            r = np.rint(np.float64(x * (np.float32(1) / scale)))
        codes = np.clip(np.where(np.isnan(r), 0, r), -(2.0**34), 2.0**34).astype(np.int64) + zero
    return np.clip(codes, low, high).astype(holder(dtype))


def dequantize(q, scale, zero):
    with np.errstate(all="ignore"):
        return (np.asarray(q).astype(np.int64) - np.int64(zero)).astype(np.float32) * np.float32(scale)


# Fixed point, on Python's integers.

INT32 = RANGES["int32"]


def high_mul(a, b):
    product = a * b
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    return clamp(nudged // 2**31 if nudged >= 0 else -(-nudged // 2**31), *INT32)


def divide_by_pot(x, n):
    mask = 2**n - 1
    return (x >> n) + ((x & mask) > (mask >> 1) + (x < 0))


def quantize_multiplier(real, single=False):
    if real == 0:
        return 0, 0
    mantissa, exponent = frexp(real)
    fixed = away(Fraction(mantissa) * 2**31)
    if fixed == 2**31:
        fixed, exponent = 2**30, exponent + 1
    if exponent < -31:
        return 0, 0
    if single and exponent > 30:
        return 2**31 - 1, 30
    return fixed, exponent


def multiply(x, m, e, rule):
    if rule == "single":
        return clamp((x * m + 2 ** (30 - e)) >> (31 - e), *INT32)
    n = max(-e, 0)
    high = high_mul(clamp(x * 2 ** max(e, 0), *INT32), m)
    if rule == "double":
        return divide_by_pot(high, n)
    return (high + 2 ** (n - 1)) >> n if n else high


def requantize_one(q, real, input_zero, zero, dtype, rule):
    acc = clamp(q - input_zero, *INT32)
    far = 2**80 if acc > 0 else -(2**80)
    if rule == "float64-away":
        t = float(acc) * real
        product = away(Fraction(t)) if abs(t) < 2.0**80 else far
    elif rule == "float32-even":
        factor = float32_of(Fraction(real))
        t = float32_of(float32_of(Fraction(acc)) * factor)
        product = even(t) if t is not None else far
    else:
        product = multiply(acc, *quantize_multiplier(real, rule == "single"), rule)
    return clamp(product + zero, *RANGES[dtype])


def requantize(q, real, input_zero, zero, dtype, rule):
    """Arrays: real, input_zero and zero broadcast."""
    parts = np.broadcast_arrays(np.asarray(q), np.float64(real), input_zero, zero)
    codes = [
        requantize_one(int(a), float(m), int(zi), int(zo), dtype, rule)
        for a, m, zi, zo in zip(*(p.reshape(-1) for p in parts), strict=True)
    ]
    return np.array(codes, np.int64).reshape(parts[0].shape).astype(dtype)


# Values that are hard.


def floats_for(scale, zero, dtype, rng, count=2000):
    """Spread-out values, every tie of the type with its neighbours, extremes."""
    low, high = RANGES[dtype]
    span = min(high - low, 70000)
    ks = np.arange(-span - 2, span + 3) if span < 300 else rng.integers(-span, span, 600)
    with np.errstate(over="ignore"):
        ties = ((ks + 0.5) * float(scale)).astype(np.float32)
    near = [ties]
    up = down = ties
    for _ in range(3):
        up, down = np.nextafter(up, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf))
        near += [up, down]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38]
    special += [float(scale), -float(scale), 2.0**31, -(2.0**31), 2.0**33, 1e10, -1e10]
    with np.errstate(all="ignore"):
        spread = (rng.normal(0, 1, count) * float(scale) * min(span, 1000)).astype(np.float32)
        return np.concatenate([*near, np.float32(special), np.float32(special) * np.float32(scale), spread])
