# SPDX-License-Identifier: Apache-2.0
"""Rounds the matrices of a layer's weights for the second moments of its inputs (src/kernels/rounding/round_rows.h)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Tensor
from tq.calibration.hessians import HessianObserver, Shape, mirror
from tq.quantization.layers import LIMITS, Layer
from tq.quantization.shift import damping

Array = NDArray[Any]

# Multiples of the usual scale to try: a smaller scale saturates the largest weights, and has finer steps.
FACTORS = {
    "INT8": (1.03, 1.015, 1.0, 0.985, 0.97, 0.955, 0.94, 0.92, 0.9),
    "INT4": (1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.62),
    "INT2": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4),
}
SWEEPS = {"gptq": 3, "comq": 4}
# With more columns, rounding takes seconds: fewer scales are tried, and fewer sweeps follow.
_MANY = 1024


def round_matrices(
    layer: Layer,
    matrices: Array,
    gathered: HessianObserver,
    parts: Array,
    centered: bool,
    method: str,
    num_threads: int | None,
) -> tuple[Array, Array]:
    """The integers [groups, rows, length], and the scales as the tensor has them."""
    shape, kind = layer.shape, layer.weights.type.name
    in_blocks = _block_scales(layer.weights)
    stored = layer.weights.quantization.scale if in_blocks is None else in_blocks[0]
    steps = _Steps(shape.length if in_blocks is None else in_blocks[1], in_blocks is not None, *LIMITS[kind])
    given = np.broadcast_to(stored.reshape(-1, steps.count(shape)), (shape.groups * shape.rows, steps.count(shape)))
    scales = np.array(given.reshape(shape.groups, shape.rows, -1).swapaxes(1, 2), np.float32, order="C")
    values = np.empty(matrices.shape, np.int8)
    if in_blocks is None and (len(stored) == 1 or bool((stored == stored[0]).all())):
        squares = [
            _Square(gathered, group, parts[group], centered, method, num_threads) for group in range(shape.groups)
        ]
        best = np.inf
        for factor in _factors(kind, shape):
            found = [square.round(matrices[g], scales[g], (factor,), steps, False) for g, square in enumerate(squares)]
            error = sum(float(errors.sum()) for _, _, errors in found)
            if error < best:
                best, made = error, float(np.float32(factor * float(stored[0])))
                for group, item in enumerate(found):
                    values[group] = item[0]
        return values, np.full(len(stored), made, np.float32)
    for group in range(shape.groups):
        square = _Square(gathered, group, parts[group], centered, method, num_threads)
        found_rows = square.round(matrices[group], scales[group], _factors(kind, shape), steps, True)
        values[group], scales[group] = found_rows[:2]
    by_row = scales.swapaxes(1, 2).reshape(shape.groups * shape.rows, -1)
    return values, by_row if in_blocks is not None else by_row.ravel()


def _factors(kind: str, shape: Shape) -> tuple[float, ...]:
    return FACTORS[kind][::2] if shape.length > _MANY else FACTORS[kind]


class _Steps(NamedTuple):
    """The scales of quantized weights.  block: weights of a row with one scale; halves: scales are float16 values."""

    block: int
    halves: bool
    least: int
    most: int

    def count(self, shape: Shape) -> int:
        """The scales of a row."""
        return shape.length // self.block


class _Square:
    """The damped second moments of a group, in the order of rounding, with their factor.

    One matrix has both: the moments stand below its diagonal, and the factor above and on it.
    """

    def __init__(
        self, gathered: HessianObserver, group: int, part: float, centered: bool, method: str, num_threads: int | None
    ) -> None:
        self._method, self._num_threads = method, num_threads
        moments = gathered.moments(group, release=gathered.shape.groups == 1)
        if centered:
            mean = gathered.mean()[group]
            for row, value in zip(moments, mean, strict=True):  # a matrix may be as large as the model
                row -= value * mean
        more = damping(moments, gathered.count, part)
        diagonal = np.maximum(np.diag(moments), 0) + more
        self._order = np.argsort(diagonal, kind="stable").astype(np.int64)
        _reorder(moments, self._order)
        self._square, self._diagonal = moments, diagonal[self._order]
        np.fill_diagonal(moments, self._diagonal)
        while method == "gptq" and not _core._cholesky(moments, num_threads):
            self._diagonal += more
            mirror(moments.T)
            np.fill_diagonal(moments, self._diagonal)

    def round(
        self, rows: Array, scales: Array, factors: tuple[float, ...], steps: _Steps, refit: bool
    ) -> tuple[Array, Array, Array]:
        """The integers of rows of weights, their scales, and the remaining errors."""
        return _core._round_rows(
            self._method,
            np.ascontiguousarray(rows, np.float64),
            self._order,
            self._square,
            self._diagonal,
            np.ascontiguousarray(scales, np.float32),
            steps.block,
            steps.halves,
            np.array(factors),
            SWEEPS[self._method] if len(self._order) <= _MANY else 1 + (self._method == "comq"),
            refit,
            steps.least,
            steps.most,
            self._num_threads,
        )


def _reorder(matrix: Array, order: Array) -> None:
    """Puts rows and columns into an order, in place."""
    for row in matrix:
        row[:] = row[order]
    left = set(range(len(order)))
    while left:
        start = at = left.pop()
        first = matrix[start].copy()
        while (source := int(order[at])) != start:
            matrix[at] = matrix[source]
            left.remove(source)
            at = source
        matrix[at] = first


def _block_scales(weights: Tensor) -> tuple[Array, int] | None:
    details = weights.quantization.details
    if not details or details.get("type") != "BlockwiseQuantization":
        return None
    scales = weights.subgraph.tensors[details["scales"]]
    return np.asarray(scales.data, np.float32), int(details["block_size"])


def spread(layer: Layer, scales: Array) -> Array:
    """The scales of all weights, [groups, rows, length] or what broadcasts to it."""
    shape = layer.shape
    if scales.ndim == 2:
        return np.repeat(scales, shape.length // scales.shape[1], axis=1)[None].astype(np.float64)
    if len(scales) == 1:
        return scales.astype(np.float64)
    return scales.reshape(shape.groups, shape.rows, 1).astype(np.float64)
