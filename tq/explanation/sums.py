# SPDX-License-Identifier: Apache-2.0
"""The exact sums behind products: sum(q_x q_w), -z_x sum(q_w), -z_w sum(q_x), n z_x z_w and the bias."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tq.explanation.node import Node
from tq.explanation.steps import Trail


def window(node: Node, size: int, taps: int, axis: str, at: int, out: int) -> tuple[int, int]:
    """Where the window of output position `at` begins, and the distance of its taps."""
    stride = int(node.options[f"stride_{axis}"])
    dilation = int(node.options.get(f"dilation_{axis}_factor", 1) or 1)
    reach = (taps - 1) * dilation + 1
    before = max((out - 1) * stride + reach - size, 0) // 2 if node.option("padding") == "SAME" else 0
    return at * stride - before, dilation


def cells(node: Node, shape: tuple[int, ...], taps: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """(tap row, tap column, input row, input column) of each tap that lies in the input."""
    top, down = window(node, shape[1], taps[0], "h", node.element[1], node.shape[1])
    left, across = window(node, shape[2], taps[1], "w", node.element[2], node.shape[2])
    for i in range(taps[0]):
        for j in range(taps[1]):
            row, column = top + i * down, left + j * across
            if 0 <= row < shape[1] and 0 <= column < shape[2]:
                yield i, j, row, column


def stacked(pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The factors of all products of an element, as two arrays."""
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([np.atleast_1d(a) for a, _ in pairs]), np.concatenate([np.atleast_1d(b) for _, b in pairs])


def accumulate(trail: Trail, x: Any, w: Any, zero_x: int, zero_w: int, bias: int | None) -> int:
    """The accumulator: sum((q_x - zero_x) (q_w - zero_w)) + bias, in its parts."""
    products = trail.add("sum(qx qw)", int(np.dot(x, w)), f"{len(x)} products of quantized values")
    total = products
    if zero_x:
        total += trail.add("-zx sum(qw)", -zero_x * int(w.sum()), f"zx {zero_x}, sum(qw) {int(w.sum())}")
    if zero_w:
        total += trail.add("-zw sum(qx)", -zero_w * int(x.sum()), f"zw {zero_w}, sum(qx) {int(x.sum())}")
    if zero_x and zero_w:
        total += trail.add("n zx zw", len(x) * zero_x * zero_w, "")
    if bias is not None:
        total += trail.add("bias", bias, "")
    trail.accumulator = int(total)
    return int(trail.add("accumulator", trail.accumulator, "their sum"))
