# SPDX-License-Identifier: Apache-2.0
"""Grids of constants: scales and zero points that training, the caller or the file chose, in place of the constant's
own least and greatest value.

Kernels take weights of zero point 0, so the zero point is subtracted from the quantized values.  A value that then
passes the type's end by one step is set to the end.  Where a value passes the end by more, the constant gets a scale of
its own, and does not lie on the grid.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.graph import TensorPart
from tq.quantization.ends import of_activation, symmetric_scale

Floats = NDArray[np.float32]

TRAINED = ("FAKE_QUANT", "QUANTIZE")  # the sources that weights_on_grid counts
KERNELS = -1
# The least and the greatest quantized value of weights with zero point 0.
WEIGHT_LIMITS = {"int8": (-127, 127), "int4": (-8, 7)}
WEIGHT_MOST = {name: most for name, (_, most) in WEIGHT_LIMITS.items()}
_MOST_OF_BIASES = 2**31 - 1
# toco and TFLiteConverter round the zero point of FAKE_QUANT's values from 0 on.
BITS = {4: "uint4", 8: "uint8", 16: "uint16"}
# Why a constant cannot lie on a grid; see also passes().
NARROW = "its bias needs a wider scale"
# {source of a grid: the owner of its scale, in notes}.
_OWNERS = {
    "FAKE_QUANT": "its FAKE_QUANT",
    "QUANTIZE": "its QUANTIZE",
    "calibration": "the calibration",
    "stored": "the min and max that the file stores",
}
# {unsigned type: (the signed type of as many bits, the difference of their values)}.
SIGNED = {"UINT8": ("int8", 128), "UINT4": ("int4", 8)}


class Weights(NamedTuple):
    """Quantized weights, of zero point 0.  scale: an array, or one scale."""

    values: NDArray[Any]
    scale: Any
    type: str
    is_on_grid: bool = False


@dataclass(frozen=True, eq=False)
class Grid:
    """real = scale * (q - zero_point), with q from `least` to `most`.

    axis: that several scales belong to; None: one scale; KERNELS: the one that the kernel takes.
    source: "FAKE_QUANT", "QUANTIZE", "override", "stored" or "calibration".
    ends: the ranges that the scales were made from, if there are any: the least and the greatest real values.
    given: the name under which the caller gives it.
    """

    scale: Floats
    zero_point: NDArray[np.int64]
    axis: int | None
    least: int
    most: int
    source: str
    ends: tuple[Floats, Floats] | None = None
    given: str = ""

    @property
    def is_range(self) -> bool:
        """Whether the recipe's rule makes the scale from the ends."""
        return self.ends is not None and self.source not in TRAINED

    def of_all(self) -> Grid:
        """The grid with one scale, that of the range of all channels."""
        if self.axis is None or self.ends is None or not self.is_range:
            return self
        low, high = self.ends[0].min(), self.ends[1].max()
        return replace(of_range(low, high, None, self.source, self.most), given=self.given)

    def steps(self, data: NDArray[Any]) -> NDArray[np.int32]:
        """Quantized values less their zero points."""
        scale: Any = self.scale if self.axis is not None else self.scale[0]
        values = np.asarray(_core.quantize(data, scale, 0, dtype="int32", axis=self.axis))
        shape = [1] * values.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        zero = self.zero_point.reshape(shape) if values.ndim else self.zero_point[0]
        moved: NDArray[np.int32] = np.clip(values, self.least - zero, self.most - zero).astype(np.int32)
        return moved

    def is_empty(self, data: NDArray[Any]) -> bool:
        """Whether the range of a scale is 0 to 0, and its values are others."""
        if self.ends is None or not self.is_range:
            return False
        if self.axis is not None and (self.axis >= data.ndim or data.shape[self.axis] != self.ends[0].size):
            return False
        rows = np.moveaxis(data, self.axis, 0) if self.axis is not None else data[None]
        most = np.abs(rows).reshape(len(rows), -1).max(axis=1, initial=0)
        return bool(((self.ends[0] == 0) & (self.ends[1] == 0) & (most > 0)).any())

    def weights(self, data: NDArray[Any], axis: int | None, types: Sequence[str]) -> Weights | None:
        """The constant on this grid, in the narrowest of the types that holds its values; None: none does.

        axis: along which the kernel takes scales; None: it takes one."""
        if self.axis == KERNELS and axis is not None:
            return replace(self, axis=axis).weights(data, axis, types)
        if self.axis not in (axis, None) and self.is_range:
            return self.of_all().weights(data, axis, types)
        if self.is_empty(data):
            return None
        if self.ends is not None and self.is_range and (type_ := types[0]) == "int4":
            made = of_range(*self.ends, self.axis, self.source, WEIGHT_MOST[type_])
            return replace(made, ends=None).weights(data, axis, types)
        if self.axis is not None and (self.axis != axis or self.scale.size != data.shape[self.axis]):
            return None
        steps = self.steps(data)
        for type_ in ("int4", "int8") if self.most <= WEIGHT_LIMITS["int4"][1] else ("int8",):
            least, most = WEIGHT_LIMITS[type_]
            over = 1 if type_ == "int8" else 0
            if type_ in types and (not steps.size or (steps.min() >= least - over and steps.max() <= most + over)):
                scale = self.scale if self.axis is not None else self.scale[0]
                return Weights(np.clip(steps, least, most).astype(np.int8), scale, type_, True)
        return None

    def symmetric(self, data: NDArray[Any], most: int) -> tuple[NDArray[np.int32], np.float32] | None:
        """Values from -most to most with one scale and zero point 0, and the scale; None: a value lies outside."""
        if self.ends is not None and self.is_range:
            if self.is_empty(data):
                return None
            (scale,) = of_range(self.ends[0].min(), self.ends[1].max(), None, self.source, most).scale
            return np.asarray(_core.quantize(data, scale, 0, dtype="int32")).clip(-most, most), np.float32(scale)
        if self.scale.size != 1:
            return None
        steps = self.steps(data)
        return (steps, np.float32(self.scale[0])) if np.abs(steps).max(initial=0) <= most else None

    def parameters(self, type: str, limits: tuple[int, int]) -> tuple[float, int] | None:
        """The scale and zero point of a constant that is quantized like an activation; None: the grid has no such."""
        if self.ends is not None and self.is_range:
            low, high = float(self.ends[0].min()), float(self.ends[1].max())
            made = _core.choose_quantization_params(low, high, type, symmetric=type == "int16", rule="mlir")
            return float(made.scale), int(made.zero_point)
        if self.axis is not None:
            return None
        zero = int(self.zero_point[0])
        if type == "int16":
            fits = limits[0] <= self.least - zero and self.most - zero <= limits[1]
            return (float(self.scale[0]), 0) if fits else None
        return (float(self.scale[0]), zero) if limits[0] <= self.least and self.most <= limits[1] else None


def passes(type: str = "int8") -> str:
    """The reason why a constant of values of this type does not lie on a grid."""
    least, most = WEIGHT_LIMITS[type]
    return f"its values pass {least} or {most}, the scales do not fit it, or the range is 0 to 0"


def of_fake_quant(low: float, high: float, bits: int, narrow: bool, where: str) -> Grid:
    """ValueError: a number of bits that is no type's."""
    type_ = BITS.get(bits)
    if type_ is None:
        raise ValueError(f"{where}: FAKE_QUANT of {bits} bits; types have 4, 8 or 16")
    made = _core.choose_quantization_params(low, high, type_, narrow_range=narrow, rule="toco")
    half = 1 << (bits - 1)
    scale, zero = np.array([made.scale], np.float32), np.array([int(made.zero_point) - half], np.int64)
    if bits == 16 and not zero.any():  # int16's own range is symmetric
        low, high = of_activation(float(scale[0]), 0, "int16")
    both = np.array([low], np.float32), np.array([high], np.float32)
    return Grid(scale, zero, None, -half + (narrow or bits == 16), half - 1, "FAKE_QUANT", both)


def of_parameters(scale: Any, zero_point: Any, axis: int | None, type_name: str, source: str) -> Grid:
    """The grid of a tensor of an integer type, in the values of the signed type of as many bits."""
    type_, shift = SIGNED.get(type_name, (type_name.lower(), 0))
    half = 1 << (int(type_.removeprefix("int")) - 1)
    scales = np.atleast_1d(np.asarray(scale, np.float32)).ravel()
    zeros = np.zeros(scales.size, np.int64) + (np.asarray(zero_point, np.int64).ravel() if np.size(zero_point) else 0)
    return Grid(scales, zeros - shift, axis if scales.size > 1 else None, -half, half - 1, source)


def of_range(low: Any, high: Any, axis: int | None, source: str, most: int = WEIGHT_MOST["int8"]) -> Grid:
    """The grid of weights with this range: symmetric, with values from -most to most."""
    lows, highs = (np.atleast_1d(np.asarray(end, np.float32)) for end in (low, high))
    scale = symmetric_scale(lows, highs, most)
    zeros = np.zeros(scale.size, np.int64)
    return Grid(scale, zeros, axis if scale.size > 1 else None, -most, most, source, (lows, highs))


def own_scales(data: Floats, axis: int | None, type: str, scale: Floats | None = None) -> Weights:
    """Weights with the scales of their own values, or with these."""
    made = _core.quantize_weights(data, axis, type, scale=scale)
    return Weights(made.codes, made.scale if scale is None else scale, type)


@dataclass
class Grids:
    """The grids of a model's constants.

    wrong: why the min and max that the file stores beside a constant are no range.
    left: why a constant gets another scale than its grid's.
    """

    by_tensor: dict[TensorPart, Grid] = field(default_factory=dict)
    trained: set[TensorPart] = field(default_factory=set)
    wrong: dict[TensorPart, str] = field(default_factory=dict)
    left: dict[TensorPart, str] = field(default_factory=dict)

    def get(self, tensor: TensorPart) -> Grid | None:
        """ValueError: the file's min and max are no range."""
        grid = self.by_tensor.get(tensor)
        if grid is None and tensor in self.wrong:
            raise ValueError(
                f"{tensor!r} stores min and max that are no range: {self.wrong[tensor]}; give its range by overrides= "
                "(--range), or remove them: tq.edit(model), then tensor.quantization = None"
            )
        return grid

    def add(self, tensor: TensorPart, grid: Grid) -> None:
        self.by_tensor[tensor] = grid
        if grid.source in TRAINED and grid.most < _MOST_OF_BIASES:
            self.trained.add(tensor)

    def leave(self, tensor: TensorPart, why: str) -> None:
        """The constant gets another scale than its grid's.  ValueError: the grid is the caller's."""
        grid = self.get(tensor)
        if grid is None:
            return
        if grid.source == "override":
            raise ValueError(f"overrides: {tensor.name!r} cannot have these parameters: {why}")
        self.left[tensor] = why

    def notes(self) -> tuple[str, ...]:
        """A sentence for each constant that gets another scale than its grid's."""
        grids = {tensor: self.by_tensor[tensor] for tensor in self.left}
        return tuple(
            f"{tensor.name!r} does not get the scale of {_OWNERS[grid.source]}: {self.left[tensor]}"
            for tensor, grid in grids.items()
        )

    def count(self, written: Set[TensorPart]) -> tuple[int, int]:
        """(written on a trained grid, trained): of constants that are no biases.  written: on their grids."""
        return len(self.trained & written), len(self.trained)
