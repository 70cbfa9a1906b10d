# SPDX-License-Identifier: Apache-2.0
"""The sources of the ranges of a subgraph's float tensors.  The first one that a tensor has counts:

overrides     a range, or the parameters themselves, that the caller gives by a tensor's name
FAKE_QUANT    the operator's min and max, which training chose; the operator goes (tq/quantization/trained.py)
QUANTIZE      the scale and zero point of a QUANTIZE before a DEQUANTIZE, which go too
calibration   the values of the runs
stored        min and max in the file, beside a tensor that has no scale

toco has the same order, without calibration (tflite/toco/graph_transformations/hardcode_min_max.cc and quantize.cc of
TensorFlow 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Union

import numpy as np

from tq._core import QuantizationParams
from tq.calibration.calibrate import Calibration
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.enums import LIMITS
from tq.nearest import hint
from tq.quantization import grids
from tq.quantization.grids import Grid, Grids
from tq.quantization.recipes import Recipe
from tq.running.recurrent import INTERMEDIATES, LSTMS
from tq.running.watching import key_of, subgraph_and_index

Override = Union[tuple[float, float], QuantizationParams]  # noqa: UP007 - evaluated on Python 3.10 too


class Parameters(NamedTuple):
    """The quantization parameters of a group of tensors."""

    scale: np.float32
    zero_point: int
    low: float
    high: float


class Trained(NamedTuple):
    """A range that training chose for an activation.

    parameters: of `type` ("int8" or "int16"), where training chose these too.
    """

    low: float
    high: float
    source: str = "FAKE_QUANT"
    type: str = ""
    parameters: QuantizationParams | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether nothing may change the parameters.  Those of FAKE_QUANT are only a range, which a group may widen."""
        return self.parameters is not None and self.source != "FAKE_QUANT"


def overrides_of(given: Mapping[str, Any] | None, graphs: Sequence[SubgraphPart]) -> list[dict[str, Override]]:
    """The overrides of each subgraph.  A name that the first subgraph has means its tensor alone.

    ValueError or TypeError names a tensor that does not exist, or a value that is neither a range nor parameters.
    """
    if not given:
        return [{} for _ in graphs]
    checked = _checked(given)
    known = [{tensor.name for tensor in graph.tensors} for graph in graphs]
    for name in checked:
        if not any(name in found for found in known):
            raise ValueError(f"overrides: the model has no tensor {name!r}{hint(name, set().union(*known))}")
    rest = {name: value for name, value in checked.items() if name not in known[0]}
    return [checked, *([rest] * (len(known) - 1))]


def input_ranges(
    given: Mapping[str, tuple[float, float]], graphs: Sequence[SubgraphPart], recipe: Recipe
) -> dict[str, tuple[float, float]]:
    """The ranges of inputs of which (mean, std) are given.

    ValueError: no input has that name; a mean that int16 values, whose zero point is 0, cannot have."""
    known = {tensor.name for graph in graphs for tensor in graph.inputs if tensor is not None}
    found = {}
    for name, (mean, std) in given.items():
        if name not in known:
            raise ValueError(f"input_stats: the model has no input {name!r}{hint(name, known)}")
        if recipe.activations == "int16" and mean:
            raise ValueError(f"input_stats: the mean of {name!r} is {mean}; int16 values have the zero point 0")
        least, most = LIMITS["uint8" if recipe.weights == "uint8" else recipe.activations]
        if recipe.activations == "int16":
            least = -most
        found[name] = (least - mean) / std, (most - mean) / std
    return found


def grids_of(graphs: Sequence[SubgraphPart], overrides: Sequence[Mapping[str, Override]]) -> Grids:
    """The grids that the caller or the file gives constants.

    ValueError: parameters of several scales for an activation."""
    found = Grids()
    for graph, given in zip(graphs, overrides, strict=True):
        for tensor in graph.tensors:
            override = given.get(tensor.name)
            if not tensor.is_constant or tensor.type_name != "FLOAT32":
                if isinstance(override, QuantizationParams) and np.size(override.scale) > 1:
                    raise ValueError(f"overrides: {tensor.name!r} is an activation, which has one scale")
            elif override is not None:
                found.add(tensor, replace(_grid(override), given=tensor.name))
            elif why := _why_no_range(tensor):
                found.wrong[tensor] = why
            elif (stored := _stored_grid(tensor)) is not None:
                found.add(tensor, stored)
    return found


def _grid(override: Override) -> Grid:
    if isinstance(override, QuantizationParams):
        return grids.of_parameters(override.scale, override.zero_point, grids.KERNELS, "INT8", "override")
    return grids.of_range(*override, None, "override")


def _stored_grid(tensor: TensorPart) -> Grid | None:
    """The grid of a constant with min and max and without a scale."""
    stored = tensor.quantization
    if not _stores_range(tensor):
        return None
    return grids.of_range(stored.min, stored.max, stored.quantized_dimension, "stored")


def _stores_range(tensor: TensorPart) -> bool:
    """Whether the file stores min or max beside a tensor without a scale."""
    parameters = tensor.node.get("quantization")
    if parameters is None or parameters.length("scale"):
        return False
    return bool(parameters.length("min") or parameters.length("max"))


def _why_no_range(tensor: TensorPart) -> str:
    """The reason why min and max of a tensor are no range, nor one for each channel; "": they are, or are absent."""
    if not _stores_range(tensor):
        return ""
    stored = tensor.quantization
    low, high, axis = stored.min, stored.max, stored.quantized_dimension
    if len(low) != len(high):
        return f"min has {len(low)} values, max {len(high)}"
    if len(low) > 1 and not 0 <= axis < len(tensor.shape):
        return f"they have {len(low)} values along dimension {axis}; the shape is {list(tensor.shape)}"
    if len(low) > 1 and len(low) != tensor.shape[axis]:
        return f"they have {len(low)} values; dimension {axis} has {tensor.shape[axis]}"
    wrong = ~(np.isfinite(low) & np.isfinite(high) & (low <= high))
    if wrong.any():
        place = int(np.argmax(wrong))
        return f"min is {float(low[place])} and max {float(high[place])}; both finite, min <= max, is needed"
    return ""


def _checked(given: Mapping[str, Any]) -> dict[str, Override]:
    made: dict[str, Override] = {}
    for name, value in given.items():
        if isinstance(value, QuantizationParams):
            scale = np.asarray(value.scale)
            if not ((scale > 0) & np.isfinite(scale)).all():
                raise ValueError(f"overrides: the scale of {name!r} is {scale}; it must be finite and over 0")
            made[name] = value
            continue
        try:
            low, high = (float(item) for item in value)
        except (TypeError, ValueError):
            raise TypeError(
                f"overrides: {name!r} gets {value!r}; a range is (low, high), parameters are tq.QuantizationParams"
            ) from None
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(
                f"overrides: the range of {name!r} is {low} to {high}; low <= high, both finite, is needed"
            )
        made[name] = (low, high)
    return made


def main_ran(calibration: Calibration | None) -> bool:
    """Whether the calibration ran the first subgraph, or no subgraph."""
    observers = calibration.observers.items() if calibration is not None else ()
    seen = {subgraph_and_index(key)[0] for key, item in observers if item.min <= item.max}
    return 0 in seen or not seen


class Ranges:
    """The known ranges of tensors of a subgraph as it was opened."""

    def __init__(
        self, graph: SubgraphPart, overrides: Mapping[str, Override] | None = None, grids: Grids | None = None
    ) -> None:
        given = dict(overrides or {})
        self.is_unsigned = False  # whether int8 values are written as uint8
        self.default: tuple[float, float] | None = None  # the range of groups without a known one
        self.has_integer_ends = False  # whether the caller wants integer inputs and outputs of the subgraph
        self.read_real: set[OperatorPart] = set()  # QUANTIZE operators of an input that another QUANTIZE reads too
        self.grids = grids if grids is not None else Grids()  # of constants
        self._overrides = {tensor: given[tensor.name] for tensor in graph.tensors if tensor.name in given}
        self._override_names = {tensor: tensor.name for tensor in self._overrides}
        self._keys = {tensor: key_of(graph.index, index) for index, tensor in enumerate(graph.tensors)}
        self._trained: dict[TensorPart, Trained] = {}
        self._calibration: Calibration | None = None
        self._main_ran = False  # and not other signatures alone
        self._stored = {tensor: found for tensor in graph.tensors if (found := _stored(tensor)) is not None}
        for op in graph.operators:
            self._read_intermediates(op)

    def _read_intermediates(self, op: OperatorPart) -> None:
        """Takes ranges of values inside an LSTM from its intermediate tensors, each under a constant input."""
        if op.builtin_name not in LSTMS:
            return
        inputs, inner = op.inputs, op.intermediates
        for number, place in enumerate(INTERMEDIATES):
            under = inputs[place] if place < len(inputs) else None
            tensor = inner[number] if number < len(inner) else None
            found = None if tensor is None else _stored(tensor)
            if under is not None:
                self._stored.pop(under, None)
                self._stored.update({} if found is None else {under: found})

    def names(self) -> list[str]:
        """The names of tensors whose ranges are known, without constants."""
        return [tensor.name for tensor in self._keys if self.knows(tensor) and not tensor.is_constant]

    def index(self, tensor: TensorPart) -> int | None:
        """The index that a tensor had when the subgraph was opened; None: it was made later."""
        key = self._keys.get(tensor)
        return None if key is None else subgraph_and_index(key)[1]

    def calibrate(self, calibration: Calibration | None, main_ran: bool) -> None:
        self._calibration = calibration
        self._main_ran = main_ran

    def train(self, ranges: Mapping[TensorPart, Trained]) -> None:
        """Adds ranges that training chose."""
        self._trained.update(ranges)

    def move(self, tensor: TensorPart, made: TensorPart) -> None:
        """Moves the override of a tensor to another tensor, which has its values now."""
        if tensor in self._overrides:
            self._overrides[made] = self._overrides.pop(tensor)
            self._override_names[made] = self._override_names.pop(tensor)

    def trained(self, tensor: TensorPart) -> Trained | None:
        return self._trained.get(tensor)

    def __bool__(self) -> bool:
        return bool(self._trained or self._stored or self._overrides or self._calibration)

    def knows(self, tensor: TensorPart) -> bool:
        return self._chosen(tensor) is not None or self._was_seen(tensor)

    def of(self, tensor: TensorPart) -> tuple[float, float]:
        """The range.  ValueError: a calibration without a finite value of the tensor.  KeyError: no range is known."""
        found = self._chosen(tensor)
        if isinstance(found, tuple):
            return found
        if self._calibration is not None and self._was_seen(tensor):
            return self._calibration.range(self._keys[tensor])
        return self._stored[tensor]

    def of_any(self, tensor: TensorPart) -> tuple[float, float] | None:
        """The range, else the default; None: there is neither."""
        return self.of(tensor) if self.knows(tensor) else self.default

    def source(self, tensor: TensorPart) -> str:
        """The source of the range, by the table above; "": no range is known."""
        if tensor in self._overrides:
            return "override"
        if tensor in self._trained:
            return self._trained[tensor].source
        if self._was_seen(tensor):
            return "calibration"
        return "stored" if tensor in self._stored else ""

    def was_measured(self, tensor: TensorPart) -> bool:
        """Whether the range is a calibration's, not one that the caller or training chose."""
        return self._chosen(tensor) is None

    def fixed(self, tensor: TensorPart) -> QuantizationParams | None:
        """The parameters that the caller gives."""
        found = self._overrides.get(tensor)
        return found if isinstance(found, QuantizationParams) else None

    def override_name(self, tensor: TensorPart) -> str | None:
        """The name under which the caller gives the tensor's range; None: the caller gives none."""
        return self._override_names.get(tensor)

    def _was_seen(self, tensor: TensorPart) -> bool:
        key = self._keys.get(tensor)
        if self._calibration is None or key is None or key not in self._calibration.observers:
            return False
        observer = self._calibration.observers[key]
        # a branch that never ran, or a signature without samples, has min > max
        return bool(observer.min <= observer.max) or (subgraph_and_index(key)[0] == 0 and self._main_ran)

    def _chosen(self, tensor: TensorPart) -> tuple[float, float] | None:
        """The range; None: a calibration's, or none."""
        found = self._overrides.get(tensor)
        if found is not None and not isinstance(found, QuantizationParams):
            return found
        if tensor in self._trained:
            return self._trained[tensor][:2]
        return None if self._was_seen(tensor) else self._stored.get(tensor)


def _stored(tensor: TensorPart) -> tuple[float, float] | None:
    """The range in the file of a float tensor without a scale; several channels' ranges are joined."""
    if int(tensor.type) != 0 or not _stores_range(tensor) or _why_no_range(tensor):
        return None
    stored = tensor.quantization
    return float(stored.min.min()), float(stored.max.max())
