# SPDX-License-Identifier: Apache-2.0
"""RELU and its kin, LEAKY_RELU and HARD_SWISH of quantized values.

Formulas and sources: src/ops/elementwise/unary_quantized.c.
"""

from __future__ import annotations

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.fixed_point_16 import high_mul_16, saturated
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps
from tq.explanation.steps import Trail


def _difference(trail: Trail, node: Node) -> int:
    """The input's quantized value less its zero point."""
    q, zero = int(node.values(0)[node.element]), node.zero_point(0)
    trail.add("q", q, f"quantized; zero point {zero}, scale {float(node.scale(0))!r}")
    return int(trail.add("x", q - zero, "q - z"))


def relu(trail: Trail, node: Node) -> int:
    x = _difference(trail, node)
    real = float(trail.add("real multiplier", float(f32(node.scale(0) / node.out_scale)), "s / so in float32"))
    return finish(trail, node, fixed_steps(trail, x, node.parts(real), node.rule("double")))


def leaky_relu(trail: Trail, node: Node) -> int:
    x, scale, alpha = _difference(trail, node), node.scale(0), f32(node.options.get("alpha", 0.0))
    if node.numerics == "xnnpack":
        ratio = f32(scale / node.out_scale)
        real = ratio if x > 0 else f32(ratio * alpha)
        m = trail.add(
            "m",
            fx.clamp(fx.even(float(f32(real * f32(256)))), -32768, 32768),
            f"rne(256 * ratio), ratio {float(real)!r}: eight fractional bits",
        )
        return finish(trail, node, trail.add("rounded", (x * m + 128) >> 8, "x m / 256, ties up"))
    text = "s / so in float32" if x >= 0 else "s alpha / so in float32"
    real = f32((scale if x >= 0 else f32(scale * alpha)) / node.out_scale)
    trail.add("real multiplier", float(real), text)
    multiplier, shift = node.parts(abs(float(real)))
    if real >= 0:
        return finish(trail, node, fixed_steps(trail, x, (multiplier, shift), node.rule("double")))
    if node.out_type == "INT16" and node.numerics == "optimized":
        return finish(trail, node, fixed_steps(trail, x, (-multiplier, shift), node.rule("double")))
    rounded = fixed_steps(trail, x, (multiplier, shift), node.rule("double"))
    return finish(trail, node, trail.add("negated", -rounded, "by the sign of the multiplier"))


def _short(multiplier: int) -> int:
    """The leading 15 of a multiplier's 31 bits, rounded."""
    return (multiplier + (1 << 15)) >> 16 if multiplier < fx.INT32_MAX - (1 << 15) else 0x7FFF


def _right(x: int, places: int) -> int:
    """x / 2^places in 16 bits, ties away from zero; 16 places and more give -1 or 1."""
    return fx.shift_away(x, places) if places < 16 else -1 if x < 0 else 1


def _gate(x: int, by: tuple[int, int]) -> int:
    """(x + 3) / 6 within 0 and 1, in steps of 2^-15; the last bit of a left shift comes after the multiplication."""
    multiplier, shift = _short(by[0]), by[1]
    if shift > 0:
        return (saturated(2 * high_mul_16(saturated(x << (shift - 1)), multiplier)) + (1 << 15)) >> 1
    return (_right(high_mul_16(x, multiplier), -shift) + (1 << 15)) >> 1


def hard_swish(trail: Trail, node: Node) -> int:
    x = 128 * _difference(trail, node)
    x = trail.add("128 x", (x + (1 << 15)) % (1 << 16) - (1 << 15), "in 16 bits")
    fine = f32(f32(1 / 128) * node.scale(0))
    multiplier, shift = node.parts(float(f32(fine / node.out_scale)))
    gate = trail.add("gate", _gate(x, node.parts(float(f32(fine / f32(f32(3) / f32(32768)))))), "2^15 (x + 3) / 6")
    factor = trail.add("factor", high_mul_16(x, _short(multiplier)), "128 x M0 / 2^15, in 16 bits")
    product = gate * factor
    part = trail.add(
        "product", abs(product) // (1 << 15) * (1 if product >= 0 else -1), "gate factor / 2^15, truncated"
    )
    rounded = fx.shift_left(part, shift) if shift > 0 else _right(part, -shift)
    return finish(trail, node, trail.add("rounded", rounded, f"the product times 2^{shift}, ties away from zero"))
