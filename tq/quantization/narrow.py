# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE before operators whose inputs and outputs share parameters, such as CONCATENATION.

A chain of such operators gives all of its tensors the range of the widest.  A tensor with a much narrower range would
get few of the 256 quantized values: the first tensor of a DenseNet's block, say.  It keeps its own parameters where
other operators compute with it, and a QUANTIZE gives its values to the chain.  Where the chain alone reads it, sharing
loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.eligible import reason_against
from tq.quantization.groups import SHARING, UnionFind
from tq.quantization.ranges import Ranges
from tq.quantization.view import REQUANTIZING, View
from tq.specification.table import SAME

# A tensor keeps its own range where the common one is so many times wider, or more: it gains a bit of eight.
_WIDER = 2.0

_MEASURED = ("calibration", "stored")  # sources of ranges (ranges.py) that neither training nor the caller chose

Edge = tuple[OperatorPart, TensorPart]  # an operator, and an input


def requantize_narrow(graph: SubgraphPart, operators: Collection[OperatorPart], ranges: Ranges) -> list[OperatorPart]:
    """Inserts QUANTIZEs among the operators that may become int8 operators, where ranges were measured.  Returns
    the QUANTIZEs."""
    view = View.of(graph, ranges, "int8")
    integers = [op for op in operators if view.rule(op) is not None and not reason_against(view, op)]
    joining = [op for op in integers if view.rule(op) == SAME and len(set(view.data(op))) > 1]
    if not joining:
        return []
    order = {op: index for index, op in enumerate(graph.operators)}
    sides = _Sides(view, integers, joining)
    # The last operator of a chain has the widest range.
    edges = [edge for op in sorted(joining, key=lambda op: -order[op]) for edge in sides.cut(op)]
    twins: dict[tuple[TensorPart, TensorPart], TensorPart] = {}
    made = []
    for op, tensor in sorted(edges, key=lambda edge: order[edge[0]]):
        key = tensor, sides.root(view.outputs(op)[0])
        if key not in twins:
            name = f"{tensor.name}_requantized"
            twins[key] = graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)
            made.append(graph.insert_before(op, REQUANTIZING, [tensor], [twins[key]]))
        op.replace_inputs({tensor: twins[key]})
    return made


class _Sides:
    """The groups of tensors on both sides of the inputs of joining operators, which cut() joins or leaves apart."""

    def __init__(self, view: View, integers: Collection[OperatorPart], joining: Collection[OperatorPart]) -> None:
        self._view, self._union = view, UnionFind()
        moving = {op for op in integers if view.rule(op) in SHARING}
        for op in moving:
            self._union.join(view.outputs(op) if op in joining else view.activations(op))
        tensors = dict.fromkeys(tensor for op in moving for tensor in view.activations(op))
        self._ranges: dict[TensorPart, tuple[float, float]] = {}  # by root, 0 included
        self._fixed: set[TensorPart] = set()  # roots of groups with a range that was not measured
        self._computed: set[TensorPart] = set()  # roots of groups that others read
        for tensor in tensors:
            self._add(tensor, moving)

    def root(self, tensor: TensorPart) -> TensorPart:
        return self._union.root(tensor)

    def _add(self, tensor: TensorPart, moving: Collection[OperatorPart]) -> None:
        view, root = self._view, self._union.root(tensor)
        if view.ranges.source(tensor) in _MEASURED and not view.is_infinite(tensor):
            self._ranges[root] = _hull((0.0, 0.0), self._ranges.get(root, (0.0, 0.0)), view.ranges.of(tensor))
        else:
            self._fixed.add(root)
        if tensor in view.graph.outputs or any(op not in moving for op in view.readers.get(tensor, ())):
            self._computed.add(root)

    def cut(self, op: OperatorPart) -> Iterator[Edge]:
        """The inputs of the operator that keep their own range; the others join its output."""
        tensors = dict.fromkeys(self._view.data(op))
        for tensor in sorted(tensors, key=lambda tensor: -self._width(tensor)):
            own, other = self.root(tensor), self.root(self._view.outputs(op)[0])
            if own == other:
                continue
            if self._gains(own, other):
                yield op, tensor
            else:
                self._join(own, other)

    def _width(self, tensor: TensorPart) -> float:
        return _width(self._ranges.get(self.root(tensor), (0.0, 0.0)))

    def _gains(self, own: TensorPart, other: TensorPart) -> bool:
        """Whether a group that others read has a much narrower range than both together."""
        if {own, other} & self._fixed:
            return False
        common = _width(_hull(self._ranges[own], self._ranges[other]))
        widths = [_width(self._ranges[root]) for root in (own, other) if root in self._computed]
        return any(0 < width <= common / _WIDER for width in widths)

    def _join(self, own: TensorPart, other: TensorPart) -> None:
        self._union.join([other, own])
        found = [self._ranges[root] for root in (own, other) if root in self._ranges]
        if found:
            self._ranges[other] = _hull(*found)
        for roots in (self._fixed, self._computed):
            if own in roots:
                roots.add(other)


def _hull(*ranges: tuple[float, float]) -> tuple[float, float]:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _width(range_: tuple[float, float]) -> float:
    return range_[1] - range_[0]
