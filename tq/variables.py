# SPDX-License-Identifier: Apache-2.0
"""Resource variables of integers: READ_VARIABLE and ASSIGN_VARIABLE copy bytes, so that all operators that touch a
variable, in whatever subgraph, must do so in codes of one type and the same parameters, or none (tq/agreement.py).

A variable's range is that of all tensors that are assigned to it or read from it, and of what must have the same
parameters as these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tq.agreement import Bond, Key
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.integer import VARIABLES

if TYPE_CHECKING:
    from tq.edit_graph import SubgraphPart
    from tq.static import Static


def users(graphs: Iterable[SubgraphPart]) -> dict[OperatorPart, Key]:
    """The operators that read or assign variables, and whose; none where a handle's variable cannot be told."""
    found: dict[OperatorPart, Key] = {}
    for graph in graphs:
        touching = [op for op in graph.operators if op.builtin_name in VARIABLES]
        handles: dict[TensorPart, Key] = {}
        for op in graph.operators if touching else ():
            if op.builtin_name == "VAR_HANDLE":
                key = ("variable", _text(op.options.get("container")), _text(op.options.get("shared_name")))
                handles.update((tensor, key) for tensor in op.outputs if tensor is not None)
        for op in touching:
            handle = op.inputs[0] if op.inputs else None
            if handle is None or handle not in handles:
                return {}
            found[op] = handles[handle]
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value or "")


def _value_of(op: OperatorPart) -> TensorPart | None:
    """The tensor that is assigned or read."""
    side, place = VARIABLES[op.builtin_name or ""]
    tensors: Sequence[TensorPart | None] = getattr(op, side)
    return tensors[place] if place < len(tensors) else None


class Variable(Bond):
    """owners: of its operators, those that may become integer ones."""

    def __init__(self, key: Key, operators: Sequence[OperatorPart], owners: dict[OperatorPart, Static]) -> None:
        super().__init__(key)
        self._operators, self._owners = operators, owners

    def _chosen(self) -> list[OperatorPart]:
        return [op for op in self._operators if op in self._owners and op in self._owners[op].operators]

    def holds(self) -> bool:
        chosen = self._chosen()
        computed = any(not value.is_constant for op in chosen if (value := _value_of(op)) is not None)
        one_type = len({self._owners[op].type for op in chosen}) == 1
        return len(chosen) == len(self._operators) and computed and one_type

    def loosen(self) -> set[Static]:
        chosen = self._chosen()
        for op in chosen:
            del self._owners[op].operators[op]
        return {self._owners[op] for op in chosen}

    def values(self) -> list[tuple[Static, TensorPart]]:
        return [(self._owners[op], value) for op in self._operators if (value := _value_of(op)) is not None]


def bonds(found: dict[OperatorPart, Key], statics: Iterable[Static]) -> list[Bond]:
    owners = {op: static for static in statics for op in static.variables}
    groups: dict[Key, list[OperatorPart]] = {}
    for op, key in found.items():
        groups.setdefault(key, []).append(op)
    return [Variable(key, operators, owners) for key, operators in groups.items()]
