# SPDX-License-Identifier: Apache-2.0
"""A subgraph as the passes read it that plan integer activations of one type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.enums import LIMITS
from tq.quantization.ranges import Ranges
from tq.specification.table import CALLING, FREE, INTEGER, Integer, Output

# Real values from here on stand for infinities: bounds and paddings of constants, masks of activations.
INFINITE = 1e30

# Takes a float tensor from one scale and zero point to others: tq/quantization/trained.py puts it in.
REQUANTIZING = "QUANTIZE"
_ROWS = {**INTEGER, REQUANTIZING: Integer(FREE, FREE)}

Key = tuple[str, ...]  # of a constraint: tq/quantization/constraints.py
End = tuple[str, int]  # ("inputs", 2): of an operator or of a subgraph
Owner = Union[OperatorPart, SubgraphPart]  # noqa: UP007 - evaluated on Python 3.10 too
Apart = Mapping[OperatorPart, Set[TensorPart]]


def is_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and tensor.type_name == "FLOAT32"


def is_constant_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and is_float(tensor) and tensor.is_constant and not tensor.is_sparse


def is_infinite(ranges: Ranges, tensor: TensorPart) -> bool:
    return ranges.knows(tensor) and max(map(abs, ranges.of(tensor))) >= INFINITE


def range_of_constant(tensor: TensorPart) -> tuple[float, float]:
    data = tensor.data
    if data is None or not data.size:
        return 0.0, 0.0
    if np.isnan(data).any():
        raise ValueError(f"{tensor!r} holds NaN")
    return range_of_values(data)


def range_of_values(data: NDArray[Any]) -> tuple[float, float]:
    """Without infinities, which saturate, as they are meant to."""
    real = data[np.abs(data) < INFINITE]
    return (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)


@dataclass(frozen=True)
class View:
    """Passes change nothing in it."""

    graph: SubgraphPart
    ranges: Ranges
    type: str  # of the activations: "int8" or "int16"
    producers: Mapping[TensorPart, OperatorPart]
    readers: Mapping[TensorPart, list[OperatorPart]]
    # {operator that reads or writes a variable: its constraint}, and {owner: {end of a call: its constraint}}: the
    # constraint under which it may have integers.  An operator or an end that must stay float is left out.
    variables: Mapping[OperatorPart, Key] = field(default_factory=dict)
    ends: Mapping[Owner, Mapping[End, Key]] = field(default_factory=dict)
    # {integer operator of another type: its integer tensors}.  Other operators read these through a DEQUANTIZE.
    # Neither producers nor readers have them.
    apart: Apart = field(default_factory=dict)
    _magnitudes: dict[TensorPart, float] = field(default_factory=dict)  # of constants, computed once

    @classmethod
    def of(cls, graph: SubgraphPart, ranges: Ranges, type: str, apart: Apart | None = None) -> View:
        readers: dict[TensorPart, list[OperatorPart]] = {}
        producers: dict[TensorPart, OperatorPart] = {}
        apart = apart or {}
        for op in graph.operators:
            hidden = apart.get(op, ())
            for tensor in dict.fromkeys(op.inputs):
                if tensor is not None and tensor not in hidden:
                    readers.setdefault(tensor, []).append(op)
            producers.update((t, op) for t in op.outputs if t is not None and t not in hidden)
        return cls(graph, ranges, type, producers, readers, apart=apart)

    def without(self, floats: Set[Key]) -> View:
        """The view in which these constraints leave their tensors float."""
        return replace(
            self,
            variables={op: item for op, item in self.variables.items() if item not in floats},
            ends={
                owner: {end: item for end, item in ends.items() if item not in floats}
                for owner, ends in self.ends.items()
            },
        )

    @property
    def limits(self) -> tuple[int, int]:
        return LIMITS[self.type]

    # -- operators

    @staticmethod
    def row(op: OperatorPart) -> Integer:
        """The row of an operator that has one."""
        return _ROWS[op.builtin_name or ""]

    def rule(self, op: OperatorPart) -> Output | None:
        """How the kernel wants its outputs; None: there is none for this type."""
        row = _ROWS.get(op.builtin_name or "")
        return None if row is None else row.int8 if self.type == "int8" else row.int16

    def activation_inputs(self, op: OperatorPart) -> list[int]:
        """Where it reads activations, or constants that are quantized like them."""
        row, inputs = self.row(op), op.inputs
        keeps_int8 = self.type != "int8" or self.has_constant_weights(op)  # weights are int8 beside int16, too
        skipped = (row.weights, row.bias) if keeps_int8 else (row.bias,)
        wanted = row.data if row.data is not None else [i for i in range(len(inputs)) if i not in skipped]
        if op.builtin_name in CALLING:
            wanted = [index for side, index in self.ends.get(op, {}) if side == "inputs"]
        return [i for i in wanted if i < len(inputs) and is_float(inputs[i])]

    def has_constant_weights(self, op: OperatorPart) -> bool:
        """Computed weights are activations."""
        row, inputs = self.row(op), op.inputs
        return row.weights is not None and row.weights < len(inputs) and is_constant_float(inputs[row.weights])

    def weights(self, op: OperatorPart) -> TensorPart | None:
        return self._input(op, self.row(op).weights)

    def bias(self, op: OperatorPart) -> TensorPart | None:
        return self._input(op, self.row(op).bias)

    @staticmethod
    def _input(op: OperatorPart, index: int | None) -> TensorPart | None:
        inputs = op.inputs
        return inputs[index] if index is not None and index < len(inputs) else None

    def read(self, op: OperatorPart) -> list[tuple[int, TensorPart]]:
        """The activations that it reads, and constants that are quantized like them, with their indices."""
        inputs = op.inputs
        return [(i, tensor) for i in self.activation_inputs(op) if (tensor := inputs[i]) is not None]

    def data(self, op: OperatorPart) -> list[TensorPart]:
        """The activations that it reads."""
        return [tensor for _, tensor in self.read(op) if not tensor.is_constant]

    def outputs(self, op: OperatorPart) -> list[TensorPart]:
        """The activations that it writes."""
        found = [tensor for tensor in op.outputs if tensor is not None and is_float(tensor)]
        if op.builtin_name in CALLING:
            ends = [op.outputs[index] for side, index in self.ends.get(op, {}) if side == "outputs"]
            return [tensor for tensor in found if tensor in ends]
        return found

    def activations(self, op: OperatorPart) -> list[TensorPart]:
        return [*self.data(op), *self.outputs(op)]

    # -- tensors

    def range_of_constant(self, tensor: TensorPart) -> tuple[float, float]:
        """The range that the caller or the file gives, else that of its values."""
        grid = self.ranges.grids.get(tensor)
        if grid is None or grid.ends is None:
            return range_of_constant(tensor)
        return float(grid.ends[0].min()), float(grid.ends[1].max())

    def is_infinite(self, tensor: TensorPart) -> bool:
        return is_infinite(self.ranges, tensor)

    def magnitude(self, tensor: TensorPart) -> float:
        """The greatest magnitude of a constant; 0 where it is infinite: its quantization will be refused."""
        if tensor not in self._magnitudes:
            data = tensor.data
            found = 0.0 if data is None or not data.size else max(float(data.max()), -float(data.min()))
            self._magnitudes[tensor] = found if math.isfinite(found) else 0.0
        return self._magnitudes[tensor]

    def graph_ends(self, side: str) -> dict[TensorPart, Key]:
        """The subgraph's inputs or outputs that are integers for its callers."""
        own = self.ends.get(self.graph, {})
        found = {tensor_at(self.graph, end): item for end, item in own.items() if end[0] == side}
        return {tensor: item for tensor, item in found.items() if tensor is not None}


def tensor_at(owner: Owner, end: End) -> TensorPart | None:
    side, index = end
    return (owner.inputs if side == "inputs" else owner.outputs)[index]
