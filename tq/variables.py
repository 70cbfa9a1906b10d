# SPDX-License-Identifier: Apache-2.0
"""Resource variables of integers: READ_VARIABLE and ASSIGN_VARIABLE copy bytes, so that all operators that touch a
variable, in whatever subgraph, must do so in codes of one type and the same parameters, or none.

A variable's range is that of all tensors that are assigned to it or read from it, and of what must have the same
parameters as these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.integer import VARIABLES

if TYPE_CHECKING:
    from tq.edit_graph import SubgraphPart
    from tq.static import Static

Key = tuple[str, str]  # container and name
_MOST_TURNS = 16  # until parameters agree; ranges only grow


def value_of(op: OperatorPart) -> TensorPart | None:
    """The tensor that is assigned or read."""
    side, place = VARIABLES[op._code_name() or ""]
    tensors: Sequence[TensorPart | None] = getattr(op, side)
    return tensors[place] if place < len(tensors) else None


def users(graphs: Iterable[SubgraphPart]) -> dict[OperatorPart, Key]:
    """The operators that read or assign variables, and whose; none where a handle's variable cannot be told."""
    found: dict[OperatorPart, Key] = {}
    for graph in graphs:
        touching = [op for op in graph._operators if op._code_name() in VARIABLES]
        handles: dict[TensorPart, Key] = {}
        for op in graph._operators if touching else ():
            if op._code_name() == "VAR_HANDLE":
                key = (_text(op.options.get("container")), _text(op.options.get("shared_name")))
                handles.update((tensor, key) for tensor in op.outputs if tensor is not None)
        for op in touching:
            handle = op.inputs[0] if op.inputs else None
            if handle is None or handle not in handles:
                return {}
            found[op] = handles[handle]
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value or "")


def agree(statics: Sequence[Static], found: dict[OperatorPart, Key]) -> None:
    """Takes variables out that some operator touches as floats, and gives the others the same parameters everywhere."""
    owners = {op: static for static in statics for op in static.variables}
    groups: dict[Key, list[OperatorPart]] = {}
    for op, key in found.items():
        groups.setdefault(key, []).append(op)
    for _ in range(_MOST_TURNS):
        changed = {static for key, ops in groups.items() for static in _drop_unless_all(ops, owners)}
        if not changed:
            changed = {static for key, ops in groups.items() for static in _widen(key, ops, owners)}
        if not changed:
            return
        for static in changed:
            static.settle()
    for op, static in owners.items():
        static.operators.pop(op, None)
    for static in statics:
        static.settle()


def _drop_unless_all(ops: Sequence[OperatorPart], owners: dict[OperatorPart, Static]) -> list[Static]:
    """Those that it takes an operator out of."""
    chosen = [op for op in ops if op in owners and op in owners[op].operators]
    computed = any(not value.is_constant for op in chosen if (value := value_of(op)) is not None)
    types = {owners[op].type for op in chosen}
    if not chosen or (len(chosen) == len(ops) and computed and len(types) == 1):
        return []
    for op in chosen:
        del owners[op].operators[op]
    return [owners[op] for op in chosen]


def _widen(key: Key, ops: Sequence[OperatorPart], owners: dict[OperatorPart, Static]) -> list[Static]:
    """Those in which the variable's range has grown, since its parameters are not the same everywhere."""
    if not all(op in owners and op in owners[op].operators for op in ops):
        return []
    values = [(owners[op], value) for op in ops if (value := value_of(op)) is not None]
    parameters = [static.of(value) for static, value in values if not value.is_constant]
    ranges = [(p.low, p.high) for p in parameters]
    first = parameters[0]
    constants = [static._range_of(value) for static, value in values if value.is_constant]
    low = min(least for least, _ in (*ranges, *constants))
    high = max(most for _, most in (*ranges, *constants))
    agreed = all((p.scale, p.zero_point) == (first.scale, first.zero_point) for p in parameters)
    if agreed and all(first.low <= least and most <= first.high for least, most in constants):
        for static, _value in values:
            static.agreed[key] = first
        return []
    for static, _value in values:
        static.spans[key] = (low, high)
    return [static for static, _value in values]
