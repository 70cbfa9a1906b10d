# SPDX-License-Identifier: Apache-2.0
"""Activations that must share their parameters form a group: inputs and outputs of an operator that only moves data,
and tensors under one constraint.  Constants belong to no group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.view import Key, Owner, View, tensor_at
from tq.specification.table import CENTERED, SAME

SHARING = (SAME, CENTERED)


@dataclass(frozen=True)
class Groups:
    """A group goes by one of its tensors, its root."""

    roots: Mapping[TensorPart, TensorPart]
    centered: frozenset[TensorPart]  # roots of groups whose zero point is 0
    constraints: Mapping[TensorPart, list[Key]]  # by root

    def __contains__(self, tensor: TensorPart) -> bool:
        return tensor in self.roots

    def members(self) -> dict[TensorPart, list[TensorPart]]:
        """The tensors of each root."""
        found: dict[TensorPart, list[TensorPart]] = {}
        for tensor, root in self.roots.items():
            found.setdefault(root, []).append(tensor)
        return found


class UnionFind:
    """Sets of tensors that are joined."""

    def __init__(self) -> None:
        self.parents: dict[TensorPart, TensorPart] = {}

    def root(self, tensor: TensorPart) -> TensorPart:
        parents = self.parents
        while parents.setdefault(tensor, tensor) != tensor:
            above = parents[tensor]
            parents[tensor] = parents.setdefault(above, above)  # shortens the way for the next time
            tensor = above
        return tensor

    def join(self, tensors: list[TensorPart]) -> None:
        for tensor in tensors[1:]:
            self.parents[self.root(tensor)] = self.root(tensors[0])


def group(view: View, operators: Iterable[OperatorPart]) -> Groups:
    """The groups of the activations of integer operators."""
    union, centered = UnionFind(), []
    for op in operators:
        rule, row, tensors = view.rule(op), view.row(op), view.activations(op)
        for tensor in tensors:
            union.root(tensor)
        if rule in SHARING:
            union.join(tensors)
        if rule == CENTERED:
            centered.append(tensors[0])
        weights = view.weights(op)
        if weights is not None and row.weights in view.activation_inputs(op):
            centered.append(weights)
    members = _constrained(view, operators, union.parents)
    for tensors in members.values():
        union.join(tensors)
    constraints: dict[TensorPart, list[Key]] = {}
    for key, tensors in members.items():
        if tensors:
            constraints.setdefault(union.root(tensors[0]), []).append(key)
    roots = {tensor: union.root(tensor) for tensor in list(union.parents)}
    return Groups(roots, frozenset(union.root(tensor) for tensor in centered), constraints)


def _constrained(
    view: View, operators: Iterable[OperatorPart], activations: Mapping[TensorPart, TensorPart]
) -> dict[Key, list[TensorPart]]:
    """The tensors of this subgraph under each constraint."""
    members: dict[Key, list[TensorPart]] = {}
    for op in operators:
        if op in view.variables:
            members.setdefault(view.variables[op], []).extend(view.activations(op))
    owners: list[Owner] = [op for op in operators if op in view.ends]
    graph: SubgraphPart = view.graph
    for owner in (*owners, graph):
        for end, key in view.ends.get(owner, {}).items():
            tensor = tensor_at(owner, end)
            if tensor is not None and tensor in activations:
                members.setdefault(key, []).append(tensor)
    return members
