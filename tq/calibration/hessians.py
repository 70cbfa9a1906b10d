# SPDX-License-Identifier: Apache-2.0
"""Second moments of the inputs that the weights of a layer are multiplied with, gathered sample by sample.

An output value of a layer is the product of weights w with a patch z of the input: the values under the filter, zeros
of the padding among them.  With H the mean of z z^T over all patches, the mean square error of rounding w to v is
(w - v) H (w - v).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Operator

Array = NDArray[Any]

# The operators, and which input is the data and which the weights.
LAYERS = {
    "CONV_2D": (0, 1),
    "DEPTHWISE_CONV_2D": (0, 1),
    "FULLY_CONNECTED": (0, 1),
    "TRANSPOSE_CONV": (2, 1),
    "BATCH_MATMUL": (0, 1),
}


class Filter(NamedTuple):
    """The options of an operator that choose the patches of its input.  It can be pickled."""

    name: str
    options: dict[str, Any]
    made: tuple[int, ...]  # the shape of its output


def filter_of(layer: Operator | Filter) -> Filter:
    if isinstance(layer, Filter):
        return layer
    made = layer.outputs[0]
    return Filter(layer.name, layer.options, () if made is None else made.shape)


class Shape(NamedTuple):
    """Weights as `groups` matrices of `rows` rows, one for each output channel, and `length` columns."""

    groups: int
    rows: int
    length: int


def shape_of(layer: Operator, weights: tuple[int, ...]) -> Shape | None:
    """The matrices of a layer's weights; None: its weights are no such matrices."""
    data = layer.inputs[LAYERS[layer.name][0]]
    channels = data.shape[-1] if data is not None and data.shape else 0
    if layer.name == "FULLY_CONNECTED":
        return Shape(1, weights[0], weights[1]) if len(weights) == 2 and weights[1] else None
    if layer.name == "BATCH_MATMUL":
        if len(weights) < 2:
            return None
        rows, length = weights[-2:] if layer.options.get("adj_y") else weights[:-3:-1]
        return Shape(int(np.prod(weights[:-2])), rows, length)
    if len(weights) != 4 or min(weights) < 1 or channels < 1:
        return None
    if layer.name == "DEPTHWISE_CONV_2D":
        return Shape(channels, weights[3] // channels, weights[1] * weights[2]) if weights[3] % channels == 0 else None
    groups = channels // weights[3] if layer.name == "CONV_2D" else 1
    if groups * weights[3] != channels or weights[0] % max(groups, 1):
        return None
    return Shape(groups, weights[0] // groups, weights[1] * weights[2] * weights[3])


def matrices_of(layer: Operator, shape: Shape, weights: Array) -> Array:
    """Weights as [groups, rows, length]."""
    if layer.name == "DEPTHWISE_CONV_2D":
        return weights.reshape(shape.length, shape.groups, shape.rows).transpose(1, 2, 0)
    if layer.name == "BATCH_MATMUL" and not layer.options.get("adj_y"):
        return weights.reshape(shape.groups, shape.length, shape.rows).swapaxes(1, 2)
    return weights.reshape(shape)


def weights_of(layer: Operator, matrices: Array, like: tuple[int, ...]) -> Array:
    """The inverse of matrices_of."""
    if layer.name == "DEPTHWISE_CONV_2D":
        matrices = matrices.transpose(2, 0, 1)
    elif layer.name == "BATCH_MATMUL" and not layer.options.get("adj_y"):
        matrices = matrices.swapaxes(1, 2)
    return np.ascontiguousarray(matrices).reshape(like)


# With more columns, the H of each sample is not computed (HessianObserver.squares).
WIDE = 1024


class HessianObserver:
    """The sums of z z^T and of z over the patches z of a layer's inputs, and the number of patches.

    shape: of the weights' matrices.  products: float64 [groups, length, length], of which the upper triangles count;
    sums: float64 [groups, length].  with_products: whether products are summed at all.
    samples: the calls of update.  squares: [groups], the sum over samples of |H|^2, H the mean of z z^T of one sample;
    NaN where it was not computed.
    Sums do not depend on the number of threads; merged in another order they differ in their last bits.
    """

    by_order = False

    def __init__(self, shape: Shape, *, with_products: bool = True) -> None:
        self.shape = shape
        side = shape.length if with_products else 0
        self.products = np.zeros((shape.groups, side, side))
        self.sums = np.zeros((shape.groups, shape.length))
        self.squares = np.zeros(shape.groups)
        self.count = 0
        self.samples = 0

    def update(
        self, layer: Operator | Filter, weights: tuple[int, ...], x: Array, *, num_threads: int | None = None
    ) -> None:
        """Adds the patches of one input.  weights: the shape of the layer's weights."""
        z, geometry = _geometry(filter_of(layer), self.shape, weights, x)
        count = geometry[0] * geometry[4] * geometry[5]
        if not self.products.size:
            _core._hessian_add(z, geometry, None, self.sums, num_threads)
        elif self.shape.length > WIDE:
            _core._hessian_add(z, geometry, self.products, self.sums, num_threads)
            one = count == 1 and self.shape.groups == 1
            self.squares += np.square(np.square(z, dtype=np.float64).sum()) if one else np.nan
        else:
            own = np.zeros_like(self.products)
            _core._hessian_add(z, geometry, own, self.sums, num_threads)
            self.squares += _norms(own) / max(count, 1) ** 2
            self.products += own
        self.count += count
        self.samples += 1

    def merge(self, other: HessianObserver) -> HessianObserver:
        """Adds another observer's sums.  Returns this one.  ValueError: it is of a layer of another shape."""
        if other.shape != self.shape or other.products.shape != self.products.shape:
            raise ValueError(f"one observer is of {tuple(self.shape)}, the other of {tuple(other.shape)}")
        self.products += other.products
        self.sums += other.sums
        self.squares += other.squares
        self.count += other.count
        self.samples += other.samples
        return self

    def mean(self) -> Array:
        """The mean patch, [groups, length]."""
        found: Array = self.sums / max(self.count, 1)
        return found

    def shrinkage(self) -> Array:
        """[groups]: the shrinkage of the moments towards a multiple of the identity, from 0 to 1.

        It is 0 where all samples have equal moments, and 1 where they have nothing in common.  With it the expected
        error of the moments, as an estimate of those of all possible samples, is least (Ledoit, Wolf 2004); the patches
        of one sample count as one observation.
        """
        scale = 1 / max(self.count, 1)
        square = _norms(self.products) * scale**2
        level = np.diagonal(self.products, axis1=1, axis2=2).mean(1) * scale
        spread = square - self.shape.length * level**2
        noise = (self.squares / max(self.samples, 1) - square) / max(self.samples - 1, 1)
        known = np.isfinite(noise) & (self.samples > 1)
        part = np.divide(noise, spread, out=np.ones_like(noise), where=spread > 0)
        found: Array = np.where(known, np.clip(part, 0.0, 1.0), 0.0)
        return found

    def moments(self, group: int, *, release: bool = False) -> Array:
        """The mean of z z^T of a group, [length, length].  release: in place of `products`."""
        made = self.products[group]
        if release:
            self.products = np.zeros((0, 0, 0))
            made /= max(self.count, 1)
        else:
            made = made / max(self.count, 1)
        mirror(made)
        found: Array = made
        return found


def mirror(upper: Array) -> None:
    """Writes the upper triangle of a matrix into its lower one."""
    for row in range(len(upper)):
        upper[row + 1 :, row] = upper[row, row + 1 :]


def _norms(upper: Array) -> Array:
    """The sums of squares of symmetric matrices, of which the upper triangles are given."""
    found: Array = np.zeros(upper.shape[:-2])
    for row in range(upper.shape[-1]):
        found += 2 * np.square(upper[..., row, row + 1 :]).sum(-1) + np.square(upper[..., row, row])
    return found


class PairObserver:
    """Joint moments of a layer's inputs in two models: x in one, y in the other, for the same samples.

    weights: the shape of the layer's weights.  count: of patches.  Where a sample has many patches, some are left out.
    Sums do not depend on the number of threads; merged in another order they differ in their last bits.
    """

    def __init__(self, layer: Operator | Filter, shape: Shape, weights: tuple[int, ...]) -> None:
        self._layer, self._shape, self._weights = filter_of(layer), shape, weights
        self.count = 0
        self._own, self._cross = (np.zeros((shape.groups, shape.length, shape.length)) for _ in range(2))
        self._sums = np.zeros((2, shape.groups, shape.length))

    def update(self, x: Array, y: Array, *, num_threads: int | None = None) -> None:
        """Adds one sample."""
        (one, geometry), (two, _) = (
            _thinned(*_geometry(self._layer, self._shape, self._weights, item), 4 * self._shape.length)
            for item in (x, y)
        )
        _core._hessian_add_pair(one, two, geometry, self._own, self._cross, self._sums, num_threads)
        self.count += geometry[0] * geometry[4] * geometry[5]

    def merge(self, other: PairObserver) -> PairObserver:
        """Adds another observer's sums.  Returns this one."""
        self._own += other._own
        self._cross += other._cross
        self._sums += other._sums
        self.count += other.count
        return self

    def moments(self, group: int) -> tuple[Array, Array]:
        """Second moments about the means: of x with x, and of x (rows) with y - x (columns)."""
        x, y = self._sums[:, group] / max(self.count, 1)
        own, cross = (products[group] / max(self.count, 1) for products in (self._own, self._cross))
        mirror(own)
        for moments, mean in ((own, x), (cross, y)):
            for row, value in zip(moments, x, strict=True):
                row -= value * mean
        cross -= own
        return own, cross


def _thinned(z: Array, geometry: tuple[Any, ...], wanted: int) -> tuple[Array, tuple[Any, ...]]:
    """The values and the geometry with fewer patches, where there are many more than wanted: the remaining patches lie
    side by side."""
    batches, height, width, channels, out_h, out_w, kernel_h, kernel_w, *rest, groups, transposed = geometry
    step = math.isqrt(batches * out_h * out_w // wanted)
    if step < 2 or transposed or out_h * out_w == 1:
        return z, geometry
    z = z.reshape(batches, height, width, channels)
    for axis, size, kernel in ((1, out_h, kernel_h), (2, out_w, kernel_w)):
        stride, dilation, before = rest[axis - 1 :: 2]
        starts = np.arange(0, size, step) * stride - before
        places = (starts[:, None] + np.arange(kernel) * dilation).ravel()
        inside = (places >= 0) & (places < z.shape[axis])
        z = np.take(z, np.where(inside, places, 0), axis)
        z[(slice(None),) * axis + (~inside,)] = 0  # padding
    out_h, out_w = -(-out_h // step), -(-out_w // step)
    sizes = (batches, *z.shape[1:], out_h, out_w, kernel_h, kernel_w)
    return z, (*sizes, kernel_h, kernel_w, 1, 1, 0, 0, groups, False)


def _geometry(layer: Filter, shape: Shape, weights: tuple[int, ...], x: Array) -> tuple[Array, tuple[Any, ...]]:
    """The input as float32 [batches, height, width, channels], and the numbers of _core._hessian_add."""
    x = np.ascontiguousarray(x, np.float32)
    if layer.name == "BATCH_MATMUL" and layer.options.get("adj_x"):
        x = np.ascontiguousarray(x.swapaxes(-1, -2))
    if layer.name == "BATCH_MATMUL" and shape.groups > 1:
        batch = np.broadcast_to(x, (*np.broadcast_shapes(x.shape[:-2], weights[:-2]), *x.shape[-2:]))
        x = np.ascontiguousarray(np.moveaxis(batch.reshape(-1, shape.groups, *x.shape[-2:]), 1, 2))
    if layer.name in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        length = shape.groups * shape.length
        rows = x.size // length
        return x, (rows, 1, 1, length, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, shape.groups, False)
    batches, height, width, channels = x.shape
    kernel_h, kernel_w = weights[1:3]
    options = layer.options
    stride_h, stride_w = int(options.get("stride_h") or 1), int(options.get("stride_w") or 1)
    dilation_h = int(options.get("dilation_h_factor") or 1)
    dilation_w = int(options.get("dilation_w_factor") or 1)
    out: list[int]
    if layer.name == "TRANSPOSE_CONV":
        out = list(layer.made[1:3]) or [0, 0]
        before = [
            max((n - 1) * s + k - o, 0) // 2
            for n, s, k, o in ((height, stride_h, kernel_h, out[0]), (width, stride_w, kernel_w, out[1]))
        ]
        numbers = (*out, kernel_h, kernel_w, stride_h, stride_w, 1, 1, *before, 1, True)
        return x, (batches, height, width, channels, *numbers)
    same = getattr(options.get("padding"), "name", "SAME") == "SAME"
    out, before = [], []
    for size, kernel, stride, dilation in (
        (height, kernel_h, stride_h, dilation_h),
        (width, kernel_w, stride_w, dilation_w),
    ):
        reach = (kernel - 1) * dilation + 1
        out.append(-(-size // stride) if same else max((size - reach) // stride + 1, 0))
        before.append(max((out[-1] - 1) * stride + reach - size, 0) // 2 if same else 0)
    numbers = (*out, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, *before, shape.groups, False)
    return x, (batches, height, width, channels, *numbers)
