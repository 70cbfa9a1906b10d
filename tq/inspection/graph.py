# SPDX-License-Identifier: Apache-2.0
"""A subgraph as boxes and arrows: its inputs, operators and outputs, and the tensors between them.

Texts are those of the file, as they are: whoever writes them into a page escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tq.enums import name_of
from tq.pages.html import shape_text
from tq.pages.layout import Layout, layout
from tq.pages.svg import number

if TYPE_CHECKING:
    from tq._core import Operator, Quantization, Subgraph, Tensor

INPUT, OPERATOR, OUTPUT = "input", "operator", "output"
_WIDTH = 226.0
_LINE, _PADDING = 16.0, 9.0
_ARROWS = 32  # tensors of an operator that are drawn
_CALLS = ("subgraph", "subgraph_index", "subgraph_indices")  # ends of the options that name subgraphs


@dataclass(frozen=True)
class Box:
    """An operator, or an input or output of the subgraph."""

    kind: str  # INPUT, OPERATOR or OUTPUT
    index: int  # of the operator, or of the tensor
    name: str  # the operator's schema name, or the tensor's name
    lines: list[str]  # type and shape, quantization, constants
    reads: list[int]  # tensors; -1: left out
    writes: list[int]
    calls: list[int]  # subgraphs that the operator runs


class Arrow(NamedTuple):
    """A tensor, from the box that writes it to one that reads it."""

    source: int  # positions in Graph.boxes
    target: int
    tensor: int


@dataclass(frozen=True)
class Graph:
    """A subgraph.  Boxes are in the order of execution."""

    index: int
    name: str
    boxes: list[Box]
    arrows: list[Arrow]

    def sizes(self, extra: int = 0) -> list[tuple[float, float]]:
        """Width and height of each box; extra: lines that are added to operators."""
        return [
            (_WIDTH, 2 * _PADDING + _LINE * (1 + len(box.lines) + (extra if box.kind == OPERATOR else 0)))
            for box in self.boxes
        ]

    def layout(self, extra: int = 0) -> Layout:
        """Positions of the boxes of these sizes."""
        return layout(self.sizes(extra), [(arrow.source, arrow.target) for arrow in self.arrows])


def quantization_text(quantization: Quantization) -> str:
    """A quantization in a few words: `0.0235 × (q + 128)`, `per-axis, 32 scales`; "" without one."""
    if not quantization or not quantization.scale.size:
        return ""
    if quantization.scale.size > 1 or quantization.kind not in ("none", "per-tensor"):
        scales = quantization.scale.size
        return f"{quantization.kind}, {scales:,} scale{'' if scales == 1 else 's'}"
    zero = int(quantization.zero_point.flat[0]) if quantization.zero_point.size else 0
    stored = f"(q {'−' if zero > 0 else '+'} {abs(zero)})" if zero else "q"
    return f"{number(float(quantization.scale.flat[0]))} × {stored}"


def type_text(tensor: Tensor) -> str:
    """`INT8 [1, 16, 16, 32]`."""
    return f"{name_of(tensor.type)} {shape_text(tensor.shape)}"


def called_subgraphs(operator: Operator) -> list[int]:
    """The subgraphs that an operator runs, of those that the model has."""
    options = operator.options
    if not isinstance(options, Mapping):
        return []
    found = [value for key, value in options.items() if str(key).endswith(_CALLS) and value is not None]
    indices = [int(index) for value in found for index in (value if np.ndim(value) else [value])]
    return [index for index in dict.fromkeys(indices) if 0 <= index < len(operator.model.subgraphs)]


def _constant_text(tensors: Sequence[Tensor | None]) -> str:
    """The largest constant among an operator's inputs; "" without one."""
    constants = [tensor for tensor in tensors[:_ARROWS] if tensor is not None and tensor.is_constant]
    if not constants:
        return ""
    largest = max(constants, key=lambda tensor: tensor.nbytes)
    shape = "×".join(map(str, largest.shape[:6])) or "scalar"
    scales = largest.quantization.scale.size
    note = f", {scales:,} scales" if scales > 1 else ""
    return f"constant {name_of(largest.type)} {shape}{note}"


def _operator_box(operator: Operator) -> Box:
    outputs = [tensor for tensor in operator.outputs[:_ARROWS] if tensor is not None]
    lines = []
    if outputs:
        more = f" +{len(operator.outputs) - 1}" if len(operator.outputs) > 1 else ""
        lines = [type_text(outputs[0]) + more, quantization_text(outputs[0].quantization)]
    lines.append(_constant_text(operator.inputs))
    calls = called_subgraphs(operator)
    if calls:
        lines.append(f"runs subgraph {', '.join(map(str, calls))}")
    reads, writes = (list(indices[:_ARROWS]) for indices in (operator.input_indices, operator.output_indices))
    return Box(OPERATOR, operator.index, operator.name, [line for line in lines if line], reads, writes, calls)


def _end_box(kind: str, tensor: Tensor) -> Box:
    lines = [line for line in (type_text(tensor), quantization_text(tensor.quantization)) if line]
    reads, writes = ([], [tensor.index]) if kind == INPUT else ([tensor.index], [])
    return Box(kind, tensor.index, tensor.name or f"tensor {tensor.index}", lines, reads, writes, [])


def graph_of(subgraph: Subgraph) -> Graph:
    """The boxes and arrows of a subgraph."""
    boxes = [_end_box(INPUT, tensor) for tensor in subgraph.inputs if tensor is not None]
    boxes += [_operator_box(operator) for operator in subgraph.operators]
    boxes += [_end_box(OUTPUT, tensor) for tensor in subgraph.outputs if tensor is not None]
    writers: dict[int, int] = {}
    for position, box in enumerate(boxes):
        for tensor in box.writes:
            writers.setdefault(tensor, position)
    arrows = [
        Arrow(writers[tensor], position, tensor)
        for position, box in enumerate(boxes)
        for tensor in dict.fromkeys(box.reads)
        if tensor in writers and writers[tensor] != position
    ]
    return Graph(subgraph.index, subgraph.name or "", boxes, arrows)
