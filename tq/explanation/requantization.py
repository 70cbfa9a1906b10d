# SPDX-License-Identifier: Apache-2.0
"""From an accumulator to a quantized value, by each rule of quant/rounding.def, with steps."""

from __future__ import annotations

from tq.explanation import fixed_point as fx
from tq.explanation.explain_requantize import explain_requantize
from tq.explanation.node import Node
from tq.explanation.steps import Trail

_DTYPES = {"INT8": "int8", "UINT8": "uint8", "INT16": "int16"}


def finish(
    trail: Trail, node: Node, rounded: int, zero_point: int | None = None, bounds: tuple[int, int] | None = None
) -> int:
    """Adds the output's zero point and applies the bounds, the node's unless others are given."""
    zero = node.out_zero_point if zero_point is None else zero_point
    low, high = bounds or node.bounds
    total = rounded + zero
    trail.stands_for(node.real_value(total))
    trail.add("zero point", zero, "added")
    activation = "" if node.activation == "NONE" else f", fused {node.activation}"
    code = fx.clamp(total, low, high)
    note = f"{_DTYPES[node.out_type]}: {low} to {high}{activation}" + (f"; {total} clamped" if code != total else "")
    return int(trail.add("quantized value", code, note, node.real_value(code)))


def requantize(trail: Trail, node: Node, accumulator: int, real: float, rule: str) -> int:
    """The quantized value of an int32 accumulator, by a rule of tq.rules()["requantize"]."""
    rule = node.rule(rule)
    trail.stands_for(accumulator * real * float(node.channel_scale(node.element)), "accumulator")
    steps = explain_requantize(accumulator, real, 0, dtype="int32", rounding=rule)
    trail.add("real multiplier", steps.real_multiplier, "input scale * weight scale / output scale, by their order")
    if steps.multiplier is None or steps.shift is None:
        precision = "float32" if rule == "float32-even" else "float64"
        trail.add("product", steps.product, f"accumulator * real multiplier in {precision}")
        ties = "to even" if rule == "float32-even" else "away from zero"
        rounded = trail.add("rounded", int(steps.scaled), f"to the nearest, ties {ties}")
    else:
        rounded = fixed_steps(trail, accumulator, (steps.multiplier, steps.shift), rule)
    return finish(trail, node, int(rounded))


def fixed_steps(trail: Trail, x: int, by: tuple[int, int], rule: str = "double") -> int:
    """x times a fixed-point multiplier: rule "double" or "up", or "single", of one rounding."""
    multiplier, shift = by
    trail.add("M0", multiplier, "the multiplier's 31 bits")
    trail.add("n", shift, "its shift: real multiplier = M0 * 2^(n - 31)")
    if rule == "single":
        return int(trail.add("rounded", fx.shift_up(x * multiplier, 31 - shift), "x M0 / 2^(31 - n), ties up"))
    shifted = fx.shift_left(x, max(shift, 0))
    if shift > 0:
        trail.add("shifted", shifted, f"times 2^{shift}, saturated to int32")
    high = trail.add("high part", fx.high_mul(shifted, multiplier), "times M0 / 2^31 to the nearest, ties up")
    ties, function = ("up", fx.shift_up) if rule == "up" else ("away from zero", fx.shift_away)
    return int(trail.add("rounded", function(high, max(-shift, 0)), f"the high part / 2^{max(-shift, 0)}, ties {ties}"))


def requantize_wide(trail: Trail, node: Node, accumulator: int, real: float) -> int:
    """The quantized value of an int64 accumulator: a multiplier of 15 bits, one rounding, ties up."""
    multiplier, shift = fx.parts(real)
    trail.stands_for(accumulator * real * float(node.out_scale), "accumulator")
    trail.add("real multiplier", real, "input scale * weight scale / output scale")
    trail.add("M0", multiplier, "the multiplier's 31 bits")
    trail.add("n", shift, "its shift: real multiplier = M0 * 2^(n - 31)")
    short = trail.add("M0 of 16 bits", fx.short_multiplier(multiplier), "M0 / 2^16 to the nearest")
    right = 15 - shift
    product = trail.add("product", accumulator * short, "accumulator * the 16-bit multiplier")
    rounded = trail.add("rounded", fx.shift_up(product, right), f"the product / 2^{right} to the nearest, ties up")
    return finish(trail, node, int(rounded))
