# SPDX-License-Identifier: Apache-2.0
"""Second moments of a layer's inputs in the quantized model and in the float one, gathered in chunks of samples.

Chunks are merged in their order, so that the sums have the same bits whether workers or this process gather them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.calibration.hessians import Filter, HessianObserver, PairObserver, Shape
from tq.calibration.runs import in_order
from tq.quantization.pieces import CHUNK, Chunk

Array = NDArray[Any]


class Layer(NamedTuple):
    """The facts of a layer that moments need.  weights: the shape of the tensor.

    products, pairs: whether second moments and halves are gathered."""

    filter: Filter
    weights: tuple[int, ...]
    shape: Shape
    products: bool
    pairs: bool


class Moments:
    """Moments of a layer's inputs.

    rounded: in the quantized model.  exact: in the float model, without products.  halves: joint moments of both
    models, of the samples with even and with odd numbers.
    """

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self.rounded = HessianObserver(layer.shape, with_products=layer.products)
        self.exact = HessianObserver(layer.shape, with_products=False)
        self.halves = [PairObserver(layer.filter, layer.shape, layer.weights) for _ in range(2 if layer.pairs else 0)]
        self._is_finite = True

    def update(self, x: Array, y: Array | None, num_threads: int | None) -> None:
        """Adds a sample: x in the quantized model, y in the float one; None: there is no float model."""
        half = self.rounded.samples % 2  # a chunk begins with an even number
        self.rounded.update(self._layer.filter, self._layer.weights, x, num_threads=num_threads)
        if y is None:
            return
        self.exact.update(self._layer.filter, self._layer.weights, y, num_threads=num_threads)
        self._is_finite = self._is_finite and bool(np.isfinite(y).all())
        if self.halves and self._is_finite and not np.array_equal(x, y):
            self.halves[half].update(x, y, num_threads=num_threads)

    def merge(self, other: Moments) -> Moments:
        """Adds the sums of another.  Returns itself."""
        self.rounded.merge(other.rounded)
        self.exact.merge(other.exact)
        for mine, others in zip(self.halves, other.halves, strict=True):
            mine.merge(others)
        self._is_finite = self._is_finite and other._is_finite
        return self

    def take_halves(self) -> list[PairObserver]:
        """The halves, if both have finite patches that differ between the models; else []."""
        halves, self.halves = self.halves, []
        return halves if self._is_finite and all(half.count for half in halves) else []


def gather(
    layer: Layer, rounded: Iterator[Chunk], exact: Iterator[Chunk] | None, num_threads: int | None, executor: Any
) -> Moments:
    """The moments of all samples.  executor: whose workers gather chunks; None: this process."""
    pairs = zip(rounded, itertools.repeat(None) if exact is None else exact, strict=False)
    threads = num_threads if executor is None else 1
    tasks = ((layer, one, other, threads) for one, other in pairs)
    parts = itertools.starmap(of_chunk, tasks) if executor is None else in_order(executor, of_chunk, tasks)
    found = next(parts)
    for part in parts:
        found.merge(part)
    return found


def of_chunk(layer: Layer, rounded: Chunk, exact: Chunk | None, num_threads: int | None) -> Moments:
    """The moments of one chunk."""
    found = Moments(layer)
    others = itertools.repeat(None) if exact is None else exact.reals()
    for x, y in zip(rounded.reals(), others, strict=False):
        found.update(x, y, num_threads)
    return found


assert CHUNK % 2 == 0  # Moments.update
