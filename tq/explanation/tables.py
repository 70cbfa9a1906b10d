# SPDX-License-Identifier: Apache-2.0
"""Operators that look up a table: LOGISTIC, TANH, ELU, GELU, EXP and LOG.

8-bit values have a table of 256 entries.  INT16 values interpolate between points: 512 of the function, or, of LOGISTIC
and TANH, 256 of the logistic function (interpolation.py).

Sources: LiteRT f6745779, tflite/kernels/internal/common.h; XNNPACK 75db3c09, src/reference/unary-elementwise.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.interpolation import between_points, function_points, sigmoid
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.steps import Trail


def real_table(trail: Trail, node: Node, text: str, function: Callable[[np.float32], Any]) -> int:
    """The entry of the table for the input's value: y = function(x), a real number, quantized."""
    q = int(node.values(0)[node.element])
    zero, scale = node.zero_point(0), node.scale(0)
    trail.add("q", q, f"quantized; zero point {zero}, scale {float(scale)!r}")
    x = f32(f32(q - zero) * scale)
    trail.add("x", float(x), "the real value, in float32")
    y = f32(function(x))
    trail.add("y", float(y), text, float(y))
    scaled = f32(y * f32(f32(1) / node.out_scale))
    trail.add("y / so", float(scaled), "times the reciprocal of the output's scale, in float32")
    low, high = node.limits
    if node.numerics == "xnnpack":
        shifted = f32(scaled + f32(node.out_zero_point))
        trail.add("y / so + zo", float(shifted), "the zero point is inside the rounding")
        rounded = fx.even(float(np.clip(np.nan_to_num(shifted, posinf=1e9, neginf=-1e9), low, high)))
        trail.add("rounded", rounded, "to the nearest, ties to even")
        return finish(trail, node, rounded, 0)
    bounded = float(np.clip(np.nan_to_num(scaled, posinf=1e9, neginf=-1e9), -1e9, 1e9))
    return finish(trail, node, trail.add("rounded", fx.away(bounded), "to the nearest, ties away from zero"))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _logistic(node: Node) -> Callable[[np.float32], Any]:
    if node.numerics == "xnnpack":
        return lambda x: 1.0 if x > 100 else 0.0 if x < -100 else _exp(float(x)) / (1 + _exp(float(x)))
    return lambda x: f32(1) / (f32(1) + f32(_exp(-float(x))))


def _gelu(node: Node) -> Callable[[np.float32], Any]:
    if node.options.get("approximate"):

        def by_tanh(x: np.float32) -> Any:
            inner = f32(0.797884560802865) * (x + f32(0.044715) * x * x * x)
            return f32(0.5) * x * (f32(1) + f32(math.tanh(float(inner))))

        return by_tanh
    return lambda x: f32(0.5) * x * f32(math.erfc(float(f32(x * f32(-0.70710678118654752440)))))


def _log(node: Node) -> Callable[[np.float32], Any]:
    least = f32(f32(node.limits[0] - node.out_zero_point) * node.out_scale)
    return lambda x: least if x <= 0 else f32(math.log(float(x)))


_FUNCTIONS: dict[str, tuple[str, Callable[[Node], Callable[[np.float32], Any]]]] = {
    "LOGISTIC": ("1 / (1 + e^-x)", _logistic),
    "TANH": ("tanh(x)", lambda node: lambda x: math.tanh(float(x))),
    "ELU": ("e^x - 1 below zero, else x", lambda node: lambda x: math.expm1(float(x)) if x < 0 else x),
    "GELU": ("GELU(x)", _gelu),
    "EXP": ("e^x", lambda node: lambda x: _exp(float(x))),
    "LOG": ("ln(x)", _log),
}
NAMES: tuple[str, ...] = tuple(_FUNCTIONS)


def table(trail: Trail, node: Node) -> int:
    text, make = _FUNCTIONS[node.op.name]
    if node.type_of(0) != "INT16":
        return real_table(trail, node, text, make(node))
    if node.op.name in ("LOGISTIC", "TANH"):
        return sigmoid(trail, node)
    return between_points(trail, node, text, function_points(node, make(node)))
