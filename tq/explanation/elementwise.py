# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB, MUL and QUANTIZE of quantized values.  Formulas and sources: src/ops/elementwise."""

from __future__ import annotations

from math import frexp, log

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps, requantize
from tq.explanation.steps import Trail
from tq.explanation.tables import real_table

# How ADD scales an input: the plain way, and the two of the optimized kernel's vectors, which it takes for whole blocks
# of elements (src/ops/elementwise/add.c).
PLAIN: str = "plain"
FOLDED: str = "folded"
UNROUNDED: str = "unrounded"


def _pair(trail: Trail, node: Node) -> tuple[int, int]:
    """Both inputs' quantized values less their zero points."""
    found = []
    for place, name in ((0, "a"), (1, "b")):
        q = int(np.broadcast_to(node.values(place), node.shape)[node.element])
        zero = node.zero_point(place)
        trail.add(f"q{name}", q, f"quantized; zero point {zero}, scale {float(node.scale(place))!r}")
        found.append(q - zero)
    return found[0], found[1]


def add_or_sub(trail: Trail, node: Node, way: str = PLAIN) -> int:
    a, b = _pair(trail, node)
    sign = -1 if node.op.name == "SUB" else 1
    if node.numerics == "xnnpack" and node.out_type != "INT16":
        return _xnnpack_sum(trail, node, a, b * sign)
    shifts = _power_shifts(node)
    if shifts is not None:
        first = trail.add("a shifted", fx.shift_away(a, -shifts[0]), f"2^{shifts[0]} a, ties away from zero")
        second = trail.add("b shifted", fx.shift_away(b, -shifts[1]), f"2^{shifts[1]} b, ties away from zero")
        total = first + sign * second
        total = total if sign < 0 else fx.clamp(total, -32768, 32767)
        return finish(trail, node, trail.add("sum", total, "" if sign < 0 else "saturated to int16"))
    return _sum(trail, node, a, b, sign, way)


def _power_shifts(node: Node) -> tuple[int, int] | None:
    """The inputs' shifts where all scales of INT16 are powers of two and the option allows shifts alone."""
    if node.out_type != "INT16" or not node.options.get("pot_scale_int16", True):
        return None
    logs = []
    for scale in (node.scale(0), node.scale(1), node.out_scale):
        exact = f32(f32(log(float(scale))) * f32(1 / f32(log(2.0))))
        if abs(float(exact) - fx.away(float(exact))) >= 1e-3:
            return None
        logs.append(fx.away(float(exact)))
    return logs[0] - logs[2], logs[1] - logs[2]


def _scaled(node: Node, x: int, left: int, by: tuple[int, int], way: str) -> tuple[int, str]:
    if way == FOLDED:
        return fx.high_mul(
            x << max(left + by[1], 0), by[0]
        ), "2^(shift + L) times M0 / 2^31: a shift that loses nothing"
    if way == UNROUNDED:
        return fx.high_mul(x << left, by[0]) >> max(-by[1], 0), "2^L times M0 / 2^31, shifted without rounding"
    return node.multiply(x << left, by), "2^L times the fixed-point form of s / T, rounded twice"


def _sum(trail: Trail, node: Node, a: int, b: int, sign: int, way: str) -> int:
    left = 15 if node.out_type == "INT16" else 20
    twice = 2 * float(max(node.scale(0), node.scale(1)))
    trail.add("T", twice, "twice the larger scale")
    trail.add("L", left, "bits that both inputs are shifted left by")
    scaled = []
    for name, x, place in (("a", a, 0), ("b", b, 1)):
        value, note = _scaled(node, x, left, node.parts(float(node.scale(place)) / twice), way)
        scaled.append(trail.add(f"{name} scaled", value, f"q{name} - z{name} times {note}"))
    total = trail.add("sum" if sign > 0 else "difference", scaled[0] + sign * scaled[1], "")
    real = twice / float(f32(f32(1 << left) * node.out_scale))
    trail.stands_for(total * real * float(node.out_scale))
    trail.add("real multiplier", real, "T / (2^L so)")
    return finish(trail, node, fixed_steps(trail, total, node.parts(real), node.rule("double")))


def _xnnpack_sum(trail: Trail, node: Node, a: int, b: int) -> int:
    ratios = [f32(node.scale(place) / node.out_scale) for place in (0, 1)]
    right = 21 - frexp(float(max(ratios)))[1]
    factors = [fx.even(float(np.ldexp(ratio, right))) for ratio in ratios]
    trail.add("n", right, "20 - floor(log2 of the larger ratio of scales)")
    for name, factor in zip("ab", factors, strict=True):
        trail.add(f"m{name}", factor, f"s{name} / so 2^n to the nearest, ties to even")
    total = trail.add("sum", a * factors[0] + b * factors[1], "ma (qa - za) + mb (qb - zb)")
    trail.stands_for(total * 2.0**-right * float(node.out_scale))
    rounded = trail.add("rounded", fx.shift_up(total, right), "the sum / 2^n to the nearest, ties up")
    return finish(trail, node, fx.clamp(rounded, -32768, 32767))


def mul(trail: Trail, node: Node) -> int:
    same = node.op.inputs[0] is not None and node.op.input_indices[0] == node.op.input_indices[1]
    if node.numerics == "xnnpack" and same and node.out_type != "INT16":
        return real_table(trail, node, "x * x", lambda x: f32(x * x))
    a, b = _pair(trail, node)
    trail.accumulator = trail.add("accumulator", a * b, "(qa - za) (qb - zb)")
    if node.out_type != node.type_of(0):
        high = 32767 if a == b == -32768 else (a * b + (1 << 14)) >> 15
        trail.add("high part", high, "the product / 2^15, ties up")
        return finish(trail, node, trail.add("rounded", fx.shift_away(high, 8), "the high part / 2^8"))
    real = f32(f32(node.scale(0) * node.scale(1)) / node.out_scale)
    rule = "float32-even" if node.numerics == "xnnpack" and node.out_type != "INT16" else "double"
    return requantize(trail, node, a * b, float(real), rule)


def quantize(trail: Trail, node: Node) -> int:
    if node.type_of(0) == "FLOAT32":
        return _of_real(trail, node)
    q = int(node.values(0)[node.element])
    trail.add("q", q, f"quantized; zero point {node.zero_point(0)}, scale {float(node.scale(0))!r}")
    x = q - node.zero_point(0)
    trail.accumulator = trail.add("accumulator", x, "q - z")
    flips = {node.type_of(0), node.out_type} == {"INT8", "UINT8"} and node.scale(0) == node.out_scale
    if node.numerics == "xnnpack":
        m = trail.add("m", fx.even(float(f32(256 * f32(node.scale(0) / node.out_scale)))), "256 s / so, ties to even")
        return finish(trail, node, trail.add("rounded", (x * m + 128) >> 8, "(q - z) m / 256, ties up"))
    eight = {node.type_of(0), node.out_type} <= {"INT8", "UINT8"}
    count = int(np.prod(node.shape))
    place = int(np.ravel_multi_index(node.element, node.shape)) if node.shape else 0
    blocks = node.numerics == "optimized" and eight and not flips and place < count - count % 16
    return requantize(trail, node, x, float(node.scale(0)) / float(node.out_scale), "up" if blocks else "double")


def _of_real(trail: Trail, node: Node) -> int:
    x = f32(node.real(0)[node.element])
    trail.add("x", float(x), "the input")
    count, scale = int(np.prod(node.shape)), node.channel_scale(node.element)
    place = int(np.ravel_multi_index(node.element, node.shape)) if node.shape else 0
    blocks = node.numerics == "optimized" and len(node.out.quantization.scale) == 1
    if node.numerics == "xnnpack" or (blocks and place < count - count % 8):
        quotient = float(f32(x * f32(f32(1) / scale)))
        rounding, text = fx.even, "times the reciprocal of the scale, in float32"
    elif blocks:
        quotient, rounding, text = float(x) / float(scale), fx.away, "x / s in float64"
    else:
        quotient, rounding, text = float(f32(x / scale)), fx.away, "x / s in float32"
    trail.add("x / s", quotient, text)
    bounded = float(np.clip(np.nan_to_num(quotient, nan=0.0), -(2.0**31), 2.0**31))
    ties = "to even" if rounding is fx.even else "away from zero"
    rounded = trail.add("rounded", rounding(bounded), f"to the nearest, ties {ties}")
    return finish(trail, node, rounded, node.channel_zero_point(node.element))
