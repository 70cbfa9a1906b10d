# SPDX-License-Identifier: Apache-2.0
"""Operators of INT16 that interpolate between points of a function.

Sources: LiteRT f6745779, tflite/kernels/internal/common.h (LUTPopulate, LUTLookup), activations.cc (TanhPrepare,
SigmoidPrepare), reference/integer_ops/logistic.h, tanh.h; gemmlowp fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import clamp, f32
from tq.explanation.fixed_point_16 import sigmoid_16
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.steps import Trail

_STEPS = 512


def points(
    function: Callable[[Any], Any], low: Any, high: Any, out_scale: Any, real: Callable[[Any], Any], out_zero: int = 0
) -> list[int]:
    """513 points of a function from `low` to `high`, in steps of the output: each corrected by half of the error that
    the line to the next has in the middle.  real: float, or float32, in which all is computed."""
    out_low, out_high = (real(real(out_scale) * real(q - out_zero)) for q in (-32768, 32767))
    step = real(real(real(high) - real(low)) / real(_STEPS))
    half, inverse = real(step / real(2)), real(real(65536) / real(out_high - out_low))

    def at(x: Any) -> Any:
        return real(real(function(real(x))) * inverse)

    def rounded(x: Any) -> Any:
        return real(fx.away(float(x))) if math.isfinite(x) else x

    found = []
    for i in range(_STEPS):
        begin = real(real(low) + real(real(i) * step))
        here, middle, after = at(begin), at(real(begin + half)), at(real(real(low) + real(real(i + 1) * step)))
        sample = rounded(here)
        between = rounded(real(real(after + sample) / real(2)))
        bias = rounded(real(real(between - rounded(middle)) / real(2)))
        found.append(real(sample - bias) if not math.isnan(bias) else sample)
    found.append(rounded(at(high)))
    return [int(min(max(float(x), -32768.0), 32767.0)) for x in found]


def function_points(node: Node, function: Callable[[Any], Any]) -> list[int]:
    """The points of a function of real values over the whole of an INT16 input."""
    scale, zero = node.scale(0), f32(node.zero_point(0))
    low, high = (f32(scale * (f32(q) - zero)) for q in (-32768, 32767))
    return points(function, low, high, node.out_scale, f32, node.out_zero_point)


def interpolate(table: list[int], q: int) -> int:
    """The value at q, -32768 to 32767, on the line between two of 513 points."""
    place, rest = 256 + (q >> 7), q & 127
    return table[place] + (((table[place + 1] - table[place]) * rest + 64) >> 7)


def between_points(trail: Trail, node: Node, text: str, table: list[int]) -> int:
    """An element by 513 points of the function, whose zero point they do not have."""
    q = int(node.values(0)[node.element])
    trail.add("q", q, f"quantized; scale {float(node.scale(0))!r}")
    place = 256 + (q >> 7)
    trail.add("point", table[place], f"{text}, at point {place} of 512")
    trail.add("next point", table[place + 1], "")
    return finish(trail, node, trail.add("rounded", interpolate(table, q), f"{q & 127} / 128 of the way, ties up"), 0)


# Entries of the runtime's table that are one more than the function rounded.
_ONE_MORE = {4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45}
_ONE_MORE |= {46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255}


def _entry(i: int) -> int:
    return fx.away(65536 / (1 + math.exp(-i / 24.0))) + (i in _ONE_MORE)


def _power(scale: float, tanh: bool) -> int | None:
    """The power of two that the scale is, of those that kernels know."""
    return next((n for n in ((-12, -11) if tanh else (-12,)) if abs(math.log2(scale) - n) < 1e-3 / math.log(2)), None)


def _resolution(scale: float, power: int | None) -> tuple[int, int]:
    """(multiplier, right shift) from the input to steps of 1 / (3 * 4096)."""
    if power is not None:
        return 3 << (power + 12), 0
    real, right = scale * 4096 * 3, 0
    while real <= 16383.5 and right <= 30:
        real, right = real * 2, right + 1
    return int(real), right


def sigmoid(trail: Trail, node: Node) -> int:
    """LOGISTIC and TANH: between entries of a table of 2^16 / (1 + e^(-i / 24)), or, of the optimized kernels at scales
    that are powers of two, in fixed point."""
    tanh = node.op.name == "TANH"
    q = int(node.values(0)[node.element])
    trail.add("q", q, f"quantized; scale {float(node.scale(0))!r}")
    power = _power(float(node.scale(0)), tanh)
    if power is not None and node.numerics == "optimized":
        return finish(trail, node, sigmoid_16(trail, q, tanh, power == -11), 0)
    multiplier, right = _resolution(float(node.scale(0)), power)
    x = trail.add("x", (q * multiplier + ((1 << right) >> 1)) >> right, "in steps of 1 / (3 * 4096)")
    bits = 8 if tanh else 9
    place, rest = abs(x) >> bits, abs(x) & ((1 << bits) - 1)
    if place >= 255:
        value = 65535 << 8 if tanh else 32767 << 10
    else:
        value = (_entry(place) << bits) + rest * (_entry(place + 1) - _entry(place))
    trail.add(
        "y", value, f"between entries {place} and {place + 1} of 2^16 / (1 + e^(-i / 24)), {bits} bits of fraction"
    )
    if tanh:
        y = value - (1 << 23)
        return finish(trail, node, trail.add("rounded", ((y if x >= 0 else -y - 1) + 128) >> 8, "2 y - 1, ties up"), 0)
    rounded = (value + 512) >> 10 if x >= 0 else ((1 << 25) - value + 511) >> 10
    return finish(trail, node, clamp(trail.add("rounded", rounded, "by symmetry below zero"), -32768, 32767), 0)
