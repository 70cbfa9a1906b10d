# SPDX-License-Identifier: Apache-2.0
"""Codes through IF, WHILE and STABLEHLO_CASE, whose kernels copy bytes into the subgraphs that they call and back.

What an operator hands over, and what all of its branches, or the loop's condition and body, take and give at that
place, is codes of the same parameters, or float32 for all.  It is codes where little is lost by that: all branches
read it with integer operators, or write it with such; what a loop carries is written by one in the body; and with 8
bits none of them has a much smaller range.

STABLEHLO_COMPOSITE is not among them: its name and its float tensors are what it promises to those who run it
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tq.agreement import Bond, Key
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart

if TYPE_CHECKING:
    from tq.edit_graph import SubgraphPart
    from tq.static import Static

# Operators, the options that name what they call, and how many inputs stand before those that they hand over.
CALLING: dict[str, tuple[tuple[str, ...], int]] = {
    "IF": (("then_subgraph_index", "else_subgraph_index"), 1),
    "STABLEHLO_CASE": (("branch_subgraph_indices",), 1),
    "WHILE": (("cond_subgraph_index", "body_subgraph_index"), 0),
}


# By how much the range of all may exceed that of one of them, where codes have 8 bits: 3.5 dB.
_MOST_WIDER = 1.5

# Others that name subgraphs, which have float ends.
_OTHERS = """CALL CALL_ONCE STABLEHLO_COMPOSITE STABLEHLO_REDUCE STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER
    STABLEHLO_SORT STABLEHLO_WHILE"""
_NAMING = frozenset((*CALLING, *_OTHERS.split()))


class Place(NamedTuple):
    """An input or an output, of an operator or of a subgraph."""

    owner: OperatorPart | SubgraphPart
    side: str  # "inputs", "outputs"
    at: int

    def tensor(self) -> TensorPart | None:
        found: TensorPart | None = getattr(self.owner, self.side)[self.at]
        return found


class Carried(Bond):
    """Places that hand the same numbers on."""

    def __init__(self, key: Key, places: Sequence[Place], is_loop: bool) -> None:
        super().__init__(key)
        self.places = places
        self.is_loop = is_loop
        self._statics: dict[SubgraphPart, Static] = {}
        self._was_compared = self._is_loose = False

    def enter(self, statics: dict[SubgraphPart, Static]) -> None:
        self._statics = statics
        for place in self.places:
            static = statics.get(self._graph(place))
            if static is not None:
                static.calls.setdefault(place.owner, {})[place.side, place.at] = self.key

    @staticmethod
    def _graph(place: Place) -> SubgraphPart:
        return place.owner.subgraph if isinstance(place.owner, OperatorPart) else place.owner

    def holds(self) -> bool:
        found = [(self._statics.get(self._graph(place)), place, place.tensor()) for place in self.places]
        if len({static.type for static, _, _ in found if static is not None}) != 1 or self._is_loose:
            return False
        readers = 0
        for static, place, tensor in found:
            if static is None or tensor is None:
                return False
            if isinstance(place.owner, OperatorPart):
                if place.owner not in static.operators:
                    return False
            elif place.side == "outputs":
                if not static.makes_codes(tensor) and not static.enters(tensor):
                    return False
            else:
                reading = static.readers.get(tensor, [])
                passes = tensor in place.owner.outputs
                readers += len(reading)
                if (not self.is_loop or passes) and not all(static.reads_codes(op, tensor) for op in reading):
                    return False
        return self.is_loop or readers > 0 or any(place.side == "outputs" for place in self.places)

    def widen(self) -> set[Static]:
        if not self._was_compared and self._costs():
            return self.loosen()
        self._was_compared = True
        return super().widen()

    def _costs(self) -> bool:
        """Whether one range for all is much wider than that of what a branch takes or gives, or a body gives: 8 bits
        then have too few codes of that."""
        values = self.values()
        if values[0][0].type != "int8":
            return False
        found = [static.of(value) for static, value in values if static.is_touched(value)]
        constants = [static._range_of(value) for static, value in values if value.is_constant]
        low = min([*(p.low for p in found), *(low for low, _ in constants)])
        high = max([*(p.high for p in found), *(high for _, high in constants)])
        own = []
        for place in self.places:
            tensor, static = place.tensor(), self._statics[self._graph(place)]
            inside = not isinstance(place.owner, OperatorPart) and (place.side == "outputs" or not self.is_loop)
            if tensor is not None and inside and static.is_touched(tensor):
                own.append(static.of(tensor))
        return any(high - low > _MOST_WIDER * (p.high - p.low) for p in own)

    def loosen(self) -> set[Static]:
        self._is_loose = True
        changed = set()
        for place in self.places:
            static = self._statics.get(self._graph(place))
            if static is None:
                continue
            static.loose.add(self.key)
            changed.add(static)
            if isinstance(place.owner, OperatorPart) and not static.tight(place.owner):
                static.operators.pop(place.owner, None)
        return changed

    def values(self) -> list[tuple[Static, TensorPart]]:
        return [(self._statics[self._graph(place)], t) for place in self.places if (t := place.tensor()) is not None]


def find(graphs: Sequence[SubgraphPart], entries: Iterable[int]) -> list[Carried]:
    """All that could be codes.  entries: subgraphs that a caller of the model runs, whose ends are not to change."""
    if len(graphs) < 2:
        return []
    parents: dict[Place, Place] = {}
    loops: set[Place] = set()
    fixed = {graphs[place] for place in entries if 0 <= place < len(graphs)}

    def root(place: Place) -> Place:
        while parents.setdefault(place, place) != place:
            place = parents[place]
        return place

    def tie(*places: Place) -> None:
        for place in places[1:]:
            parents[root(place)] = root(places[0])

    for graph in graphs:
        for op in graph.operators:
            callees = _callees(op, graphs)
            if op.builtin_name not in CALLING or not _fits(op, callees):
                fixed.update(callees)
                continue
            is_loop, first = op.builtin_name == "WHILE", CALLING[op.builtin_name or ""][1]
            for index in range(first, len(op.inputs)):
                tie(Place(op, "inputs", index), *(Place(callee, "inputs", index - first) for callee in callees))
            for index in range(len(op.outputs)):
                givers = callees[1:] if is_loop else callees
                tie(Place(op, "outputs", index), *(Place(callee, "outputs", index) for callee in givers))
                if is_loop:
                    tie(Place(op, "inputs", index), Place(op, "outputs", index))
                    loops.add(Place(op, "outputs", index))
    groups: dict[Place, list[Place]] = {}
    for place in list(parents):
        groups.setdefault(root(place), []).append(place)
    looping = {root(place) for place in loops}
    return [
        Carried(("carried", str(number)), places, top in looping)
        for number, (top, places) in enumerate(groups.items())
        if all(_can_be_codes(place) and place.owner not in fixed for place in places)
    ]


def _callees(op: OperatorPart, graphs: Sequence[SubgraphPart]) -> list[SubgraphPart]:
    """Every subgraph that an operator's options name, in their order."""
    found = []
    for name in op.options if op.builtin_name in _NAMING else ():
        if not name.endswith(("subgraph_index", "subgraph_indices")) and name != "subgraph":
            continue
        value = op.options.get(name)
        for item in np.atleast_1d(np.asarray([] if value is None else value)).tolist():
            if 0 <= int(item) < len(graphs):
                found.append(graphs[int(item)])
    return found


def _fits(op: OperatorPart, callees: Sequence[SubgraphPart]) -> bool:
    """Whether it has as many callees, inputs and outputs as it should."""
    names, first = CALLING[op.builtin_name or ""]
    is_loop = op.builtin_name == "WHILE"
    if len(callees) < len(names) or any(len(callee.inputs) != len(op.inputs) - first for callee in callees):
        return False
    givers = callees[1:] if is_loop else callees
    if any(len(callee.outputs) != len(op.outputs) for callee in givers):
        return False
    return not is_loop or (len(op.inputs) == len(op.outputs) and callees[0] != callees[1])


def _can_be_codes(place: Place) -> bool:
    tensor = place.tensor()
    if tensor is None or int(tensor.type) != 0 or tensor.is_variable or tensor.is_sparse:
        return False
    return not tensor.is_constant or (isinstance(place.owner, OperatorPart) and place.side == "inputs")
