# SPDX-License-Identifier: Apache-2.0
"""Ranges that stand for scales: their ends as float32, from which the rule gives the same scale to the bit.

An end is a scale times up to 2^15, rounded, so that the plain product may give a neighbour of the scale.  Some steps of
float32 beside it there is one that does not; but of six scales in a thousand of activations no range gives the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.enums import LIMITS

Floats = NDArray[np.float32]
_STEPS = 4  # of float32, to both sides
# Ends that are this near to opposite each other are: they stand for the mean of both.
_OPPOSITE = 1e-6


def symmetric_scale(low: object, high: object, most: int) -> Floats:
    """The scale of values from -most to most that reach the farther end."""
    lows, highs = np.atleast_1d(np.asarray(low, np.float64)), np.atleast_1d(np.asarray(high, np.float64))
    ends = np.maximum(np.abs(lows), np.abs(highs))
    ends = np.where(np.abs(lows + highs) <= _OPPOSITE * ends, (highs - lows) / 2, ends)
    return np.where(ends > 0, ends / most, 1).astype(np.float32)


def of_weights(scale: Floats, most: int) -> tuple[Floats, Floats]:
    """Ends from which symmetric_scale gives the scales."""
    scales = np.asarray(scale, np.float32)
    highs = (scales.astype(np.float64) * most).astype(np.float32)
    lows = -highs
    for step in range(_STEPS):
        wrong = symmetric_scale(lows, highs, most) != scales
        if not wrong.any():
            break
        up = symmetric_scale(lows, highs, most) < scales
        moved = np.nextafter(highs if step % 2 else lows, np.float32(np.inf) if step % 2 else np.float32(-np.inf))
        back = np.nextafter(highs if step % 2 else lows, np.float32(0))
        changed = np.where(wrong, np.where(up, moved, back), highs if step % 2 else lows)
        lows, highs = (lows, changed) if step % 2 else (changed, highs)
    return lows, highs


def of_activation(scale: float, zero_point: int, type: str, rule: str = "mlir") -> tuple[float, float]:
    """Ends from which the rule gives the scale and the zero point, where there are such.

    rule: "mlir", or "toco", which rounds the zero points of uint8."""
    least, most = LIMITS[type]
    if type == "int16":
        return searched(scale, zero_point, (-most, most), partial(_parameters, type=type, rule="mlir"))
    made = partial(_parameters, type=type, rule=rule)
    if rule == "toco":
        made = partial(_parameters, type="uint8", rule=rule, shift=128)
    return searched(scale, zero_point, (least, most), made)


def of_zeros(scale: float, zero_point: int, type: str) -> tuple[float, float] | None:
    """0 and 0, which rule "mlir" widens, and others to more, where the parameters are made of them."""
    made = _parameters(0.0, 0.0, type, "mlir")
    return (0.0, 0.0) if made == (np.float32(scale), zero_point) else None


def of_unsigned_weights(scale: float, zero_point: int) -> tuple[float, float]:
    """Ends from which recipe "uint8" gives weights, from 1 to 255, the scale and the zero point."""
    made = partial(_parameters, type="uint8", rule="toco", narrow=True)
    return searched(scale, zero_point, (1, 255), made)


def _parameters(
    low: float, high: float, type: str, rule: str, shift: int = 0, narrow: bool = False
) -> tuple[np.float32, int]:
    centered = type == "int16"
    made = _core.choose_quantization_params(
        low, high, type, symmetric=centered, narrow_range=centered or narrow, rule=rule
    )
    return np.float32(made.scale), int(made.zero_point) - shift


def searched(
    scale: float, zero_point: int, limits: tuple[int, int], made: Callable[[float, float], tuple[np.float32, int]]
) -> tuple[float, float]:
    """The ends of the limits, or ones beside them, of which the scale and the zero point are made."""
    exact = float(np.float32(scale))
    low, high = (np.float32(exact * (end - zero_point)) for end in limits)
    if not low <= 0 <= high:  # a zero point that the type has not
        return min(float(low), 0.0), max(float(high), 0.0)
    is_centered = zero_point == 0 and limits[0] == -limits[1]
    lows, highs = _around(low, -high), _around(high, -low)
    pairs = [(a, b) for a in lows for b in (highs if not is_centered else [-a])]
    pairs.sort(key=lambda pair: abs(float(pair[0]) - float(low)) + abs(float(pair[1]) - float(high)))
    for one, other in pairs:
        if made(float(one), float(other)) == (np.float32(scale), zero_point):
            return float(one), float(other)
    return float(low), float(high)


def _around(value: np.float32, opposite: np.float32) -> list[np.float32]:
    """The value and some beside it; beside 0 such as are a part of a step of the other end."""
    found = [value]
    if not value:
        part = np.spacing(np.abs(opposite)) / 4
        return [*found, *(np.float32(np.copysign(part * step, opposite)) for step in range(1, _STEPS + 1))]
    up = down = value
    for _ in range(_STEPS):
        up, down = np.nextafter(up, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf))
        found += [up, down]
    return found
