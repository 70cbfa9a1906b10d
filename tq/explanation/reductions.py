# SPDX-License-Identifier: Apache-2.0
"""Pooling, MEAN, SUM, REDUCE_MAX and REDUCE_MIN of quantized values.  The formulas are those of src/ops/reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps
from tq.explanation.steps import Trail
from tq.explanation.sums import cells


def _window(node: Node) -> Any:
    """The values of the window's cells that lie in the input."""
    x = node.values(0)
    taps = (int(node.options["filter_height"]), int(node.options["filter_width"]))
    found = [x[node.element[0], row, column, node.element[3]] for _, _, row, column in cells(node, x.shape, taps)]
    return np.array(found, np.int64)


def average_pool(trail: Trail, node: Node) -> int:
    values = _window(node)
    count = trail.add("n", len(values), "cells of the window that lie in the input")
    trail.accumulator = total = trail.add("accumulator", int(values.sum()), "the sum of their quantized values")
    if count == 0:
        return finish(trail, node, 0, 0)
    trail.stands_for((total / count - node.zero_point(0)) * float(node.scale(0)))
    half = count // 2 if total > 0 or node.out_type == "UINT8" else -(count // 2)
    quotient = abs(total + half) // count * (1 if total + half >= 0 else -1)
    ties = "ties up" if node.out_type == "UINT8" else "ties away from zero"
    return finish(trail, node, trail.add("rounded", quotient, f"(sum +- n / 2) / n, truncated: {ties}"), 0)


def max_pool(trail: Trail, node: Node) -> int:
    values = _window(node)
    trail.add("n", len(values), "cells of the window that lie in the input")
    most = int(values.max()) if len(values) else node.limits[0]
    return finish(trail, node, trail.add("maximum", most, "of their quantized values"), 0)


def _reduced(node: Node) -> tuple[Any, set[int]]:
    """The values that one output adds up, and the axes."""
    x = node.values(0)
    axes = {int(axis) % x.ndim for axis in np.atleast_1d(node.values(1))}
    rest = iter(node.element)
    if node.options.get("keep_dims"):
        index: list[Any] = [slice(None) if d in axes else i for d, i in enumerate(node.element)]
    else:
        index = [slice(None) if d in axes else next(rest) for d in range(x.ndim)]
    return x[tuple(index)].reshape(-1), axes


def mean_or_sum(trail: Trail, node: Node) -> int:
    values, axes = _reduced(node)
    n = trail.add("n", len(values), "inputs of this output")
    zero = node.zero_point(0)
    total = trail.add("sum(q)", int(values.sum()), "of their quantized values")
    mean = node.op.name == "MEAN"
    trail.accumulator = total - n * zero
    if node.numerics == "xnnpack" and node.out_type != "INT16":
        return _in_float(trail, node, total, n, mean)
    if node.numerics == "optimized" and not mean:
        return _sum_in_float(trail, node, total, n)
    if node.numerics == "optimized" and _is_optimized_mean(node, axes):
        return _optimized_mean(trail, node, total, n)
    trail.add("accumulator", trail.accumulator, f"sum(q) - n z, z {zero}")
    trail.stands_for(trail.accumulator * float(node.scale(0)) / (n if mean else 1) if n else 0.0)
    if n == 0:
        return finish(trail, node, 0)
    by = node.parts(float(node.scale(0)) / float(node.out_scale))
    if mean:
        by = _divided(by, n)
        trail.add("real multiplier", float(node.scale(0)) / float(node.out_scale) / n, "s / so / n")
    return finish(trail, node, fixed_steps(trail, trail.accumulator, by, node.rule("double")))


def extreme(trail: Trail, node: Node) -> int:
    values, _ = _reduced(node)
    trail.add("n", len(values), "inputs of this output")
    is_most = node.op.name == "REDUCE_MAX"
    none = node.limits[0 if is_most else 1]
    found = int((values.max() if is_most else values.min()) if len(values) else none)
    return int(trail.add("quantized value", found, "the greatest of them" if is_most else "the least of them"))


def _divided(by: tuple[int, int], n: int) -> tuple[int, int]:
    multiplier, shift = by
    t = min(n.bit_length() - 1, 32, 31 + shift)
    return ((multiplier << t) // n, shift - t) if t >= 0 else by


def _is_optimized_mean(node: Node, axes: set[int]) -> bool:
    rank = len(node.values(0).shape)
    return node.out_type != "INT16" and rank == 4 and axes == {1, 2} and bool(node.options.get("keep_dims"))


def _optimized_mean(trail: Trail, node: Node, total: int, n: int) -> int:
    real = float(f32(node.scale(0) / f32(f32(n) * node.out_scale)))
    trail.add("real multiplier", real, "s / (n so) in float32")
    channels = node.shape[3]
    rule = "up" if node.element[3] < channels - channels % 16 else "double"
    rounded = fixed_steps(trail, total, fx.parts(real), rule)
    zero = f32(f32(node.zero_point(0)) * node.scale(0)) / node.out_scale
    shift = int(np.trunc(f32(zero + f32(0.5 if zero > 0 else -0.5))))
    trail.add("input's zero point", -shift, "-z s / so, rounded")
    return finish(trail, node, rounded, node.out_zero_point - shift)


def _in_float(trail: Trail, node: Node, total: int, n: int, mean: bool) -> int:
    k = f32(node.scale(0) / node.out_scale)
    if mean:
        k = f32(k * f32(f32(1) / f32(n)))
    trail.add("k", float(k), "s / so" + (" / n" if mean else "") + ", in float32")
    shift = trail.add("z'", float(f32(f32(node.out_zero_point) - f32(f32(n * node.zero_point(0)) * k))), "zo - n z k")
    product = trail.add("sum k + z'", float(f32(f32(f32(total) * k) + f32(shift))), "in float32")
    low, high = node.limits
    return finish(trail, node, trail.add("rounded", fx.even(float(np.clip(product, low, high))), "ties to even"), 0)


def _sum_in_float(trail: Trail, node: Node, total: int, n: int) -> int:
    k = f32(node.scale(0) / node.out_scale)
    trail.add("k", float(k), "s / so, in float32")
    shift = trail.add("b", float(f32(f32(f32(-node.zero_point(0)) * k) * f32(n))), "-z k n")
    product = trail.add("sum k + b", float(f32(f32(f32(total) * k) + f32(shift))), "in float32")
    return finish(trail, node, trail.add("rounded", fx.away(product), "to the nearest, ties away from zero"))
