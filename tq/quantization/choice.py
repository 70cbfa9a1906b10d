# SPDX-License-Identifier: Apache-2.0
"""Which operators of a subgraph become integer operators, and the parameters of their activations.

settle() is the passes in a row, until they leave no more operators float: groups; operators that only move data, or
whose ranges are not known; parameters of the groups; limits of kernels.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.eligible import reason_against
from tq.quantization.groups import SHARING, Groups, group
from tq.quantization.parameters import GroupParameters, Spans, choose
from tq.quantization.ranges import Parameters
from tq.quantization.view import View, is_constant_float
from tq.specification.table import CALLING, READS, RELATIVE, VARIABLES

_IDLE = (*SHARING, READS)
_NO_RANGE = "the range of a tensor of its group is not known"
_NO_END = "the range of a tensor of its group has no end"
_ALONE = "it only moves data, and no other integer operator reads or writes these"


@dataclass(frozen=True)
class Choice:
    """operators: the operators that become integer operators, in their order, with their indices.
    reasons: why other operators stay float."""

    view: View
    operators: Mapping[OperatorPart, int]
    reasons: Mapping[OperatorPart, str]
    parameters: GroupParameters

    @property
    def graph(self) -> SubgraphPart:
        return self.view.graph

    @property
    def type(self) -> str:
        return self.view.type

    def of(self, tensor: TensorPart) -> Parameters:
        return self.parameters.of(tensor)

    def is_integer(self, tensor: TensorPart) -> bool:
        """Whether an integer operator reads or writes it."""
        return not tensor.is_constant and tensor in self.parameters.groups

    def writes(self, tensor: TensorPart) -> bool:
        """Whether an integer operator writes it."""
        producer = self.view.producers.get(tensor)
        return producer is not None and producer in self.operators and tensor in self.view.outputs(producer)

    def reads(self, op: OperatorPart, tensor: TensorPart) -> bool:
        """Whether the operator reads it as integers, at all inputs that it is."""
        if op not in self.operators or op not in self.view.ends:
            return op in self.operators
        ends = self.view.ends[op]
        return all(("inputs", i) in ends for i, found in enumerate(op.inputs) if found == tensor)

    def apart(self) -> dict[OperatorPart, frozenset[TensorPart]]:
        """{operator: its tensors that are integers without a QUANTIZE before it}: the argument View.apart of another
        choice."""
        entering = self.view.graph_ends("inputs")
        found = {}
        for op in self.operators:
            read = [t for t in op.inputs if t is not None and (self.writes(t) or t in entering) and self.reads(op, t)]
            found[op] = frozenset([*read, *(t for t in op.outputs if t is not None and self.writes(t))])
        return found


def start(view: View, wanted: Iterable[OperatorPart]) -> Choice:
    """The choice among the operators of all that can become integer operators."""
    known, operators, reasons = set(wanted), {}, {}
    for index, op in enumerate(view.graph.operators):
        if op in known:
            reason = reason_against(view, op)
            if reason:
                reasons[op] = reason
            else:
                operators[op] = index
    return settle(view, operators, reasons, {})


def settle(
    view: View, operators: Mapping[OperatorPart, int], reasons: Mapping[OperatorPart, str], spans: Spans
) -> Choice:
    """The choice that is left when no pass takes an operator away any more.  spans: as in parameters.choose."""
    chosen, against = dict(operators), dict(reasons)
    against.update((op, reason) for op in operators if (reason := _without_constraint(view, op)))
    while True:
        chosen = {op: index for op, index in chosen.items() if op not in against}
        groups = group(view, chosen)
        found = _idle(view, chosen, groups)
        if not found:
            parameters = choose(view, chosen, groups, spans)
            found = _limited(view, chosen, parameters)
        if not found:
            return Choice(view, MappingProxyType(chosen), MappingProxyType(against), parameters)
        against.update(found)


def _without_constraint(view: View, op: OperatorPart) -> str:
    """Why an operator must go whose constraints leave its tensors float."""
    if op.builtin_name in CALLING and not view.ends.get(op):
        return "a tensor that it hands over stays float on one side, or loses too much by one range"
    if op.builtin_name in VARIABLES and op not in view.variables:
        return "not all operators that touch the variable can be integer operators of one type"
    return ""


# ---- operators that only move data, or without ranges ----


def _idle(view: View, operators: Mapping[OperatorPart, int], groups: Groups) -> dict[OperatorPart, str]:
    """Operators that only move data where no other integer operator reads or writes it, nor the caller, and operators
    of tensors whose range is not known or has no end; with the reason."""
    busy, known, infinite = {groups.roots[tensor] for tensor in _ends(view, operators)}, set(), set()
    for op in operators:
        rule, tensors = view.rule(op), view.activations(op)
        if rule not in _IDLE and op not in view.ends:
            busy |= {groups.roots[tensor] for tensor in tensors}
        known |= {groups.roots[tensor] for tensor in tensors if view.ranges.knows(tensor)}
        infinite |= {groups.roots[tensor] for tensor in tensors if view.is_infinite(tensor)}
        if isinstance(rule, tuple):
            known |= {groups.roots[tensor] for tensor in view.outputs(op)}
    found = {}
    for op in operators:
        roots = {groups.roots[tensor] for tensor in view.activations(op)}
        if not roots and (op in view.variables or op in view.ends):
            continue  # a constant is assigned: the others decide
        if roots & infinite:
            _check_constants(view, op)
        if not roots <= known and view.ranges.default is None:
            found[op] = _NO_RANGE
        elif roots & infinite:
            found[op] = _NO_END
        elif view.rule(op) in _IDLE and not roots & busy:
            found[op] = _ALONE
    return found


def _ends(view: View, operators: Container[OperatorPart]) -> Iterator[TensorPart]:
    """The subgraph's inputs and outputs that become integers with the operators beside them, as the caller wants."""
    if not view.ranges.has_integer_ends:
        return
    for tensor in view.graph.inputs:
        readers = [] if tensor is None else view.readers.get(tensor, [])
        if tensor is not None and readers and all(op in operators and tensor in view.data(op) for op in readers):
            yield tensor
    for tensor in view.graph.outputs:
        producer = None if tensor is None else view.producers.get(tensor)
        if tensor is not None and producer is not None and producer in operators and tensor in view.outputs(producer):
            yield tensor


def _check_constants(view: View, op: OperatorPart) -> None:
    """ValueError: weights or a bias are not finite, which makes activations infinite."""
    for tensor in (view.weights(op), view.bias(op)):
        data = tensor.data if tensor is not None and is_constant_float(tensor) else None
        if data is not None and not np.isfinite(data).all():
            wrong = data[~np.isfinite(data)].ravel()[0]
            raise ValueError(f"{tensor!r} of operator {op.name}: it holds {wrong}")


# ---- limits of kernels ----


def _limited(view: View, operators: Iterable[OperatorPart], parameters: GroupParameters) -> dict[OperatorPart, str]:
    """Operators whose kernels could not compute their meaning with these parameters, and others that go with them."""
    found: dict[OperatorPart, str] = {}
    for op in operators:
        limit = view.row(op).limit
        if op in found or limit is None or limit.holds(parameters.scales(op)):
            continue
        found[op] = limit.why
        if limit.relative:
            found.update(dict.fromkeys(_small_values(view, op), f"{op.name} behind it needs its small values"))
    return found


def _small_values(view: View, op: OperatorPart) -> Sequence[OperatorPart]:
    """The producers of an operator's inputs, and the operators before them that give small results for small inputs."""
    waiting = [writer for t in view.data(op) if (writer := view.producers.get(t)) is not None]
    first, seen = set(waiting), dict[OperatorPart, None]()
    while waiting:
        writer = waiting.pop()
        name = writer.builtin_name or ""
        if writer in seen or not (writer in first or name in RELATIVE):
            continue
        seen[writer] = None
        if name in RELATIVE:
            found = [view.producers.get(t) for t in writer.inputs if t is not None]
            waiting += [item for item in found if item is not None]
    return list(seen)
