# SPDX-License-Identifier: Apache-2.0
"""Tensors of several subgraphs that must all be codes of one type with the same parameters, or all float: what
variables hold (tq/variables.py), and what goes into and out of branches and loop bodies (tq/carried.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tq.edit_tensor import TensorPart
    from tq.static import Static

Key = tuple[str, ...]
_MOST_TURNS = 16  # in which parameters come to agree; ranges only grow


class Bond:
    """Such tensors."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def holds(self) -> bool:
        """Whether all of them can be codes."""
        raise NotImplementedError

    def loosen(self) -> set[Static]:
        """Leaves all of them float.  Those that it changes."""
        raise NotImplementedError

    def values(self) -> list[tuple[Static, TensorPart]]:
        raise NotImplementedError

    def widen(self) -> set[Static]:
        """Those in which the range has grown, since the parameters are not the same everywhere."""
        values = self.values()
        parameters = [static.of(value) for static, value in values if static.is_touched(value)]
        constants = [static._range_of(value) for static, value in values if value.is_constant]
        first = parameters[0]
        agreed = all((p.scale, p.zero_point) == (first.scale, first.zero_point) for p in parameters)
        if agreed and all(first.low <= low and high <= first.high for low, high in constants):
            for static, _value in values:
                static.agreed[self.key] = first
            return set()
        ranges = [*((p.low, p.high) for p in parameters), *constants]
        span = min(low for low, _ in ranges), max(high for _, high in ranges)
        for static, _value in values:
            static.spans[self.key] = span
        return {static for static, _value in values}


def agree(statics: Sequence[Static], bonds: Sequence[Bond]) -> None:
    """Loosens those that cannot hold, and gives the tensors of the others the same parameters."""
    tight = list(bonds)
    for _ in range(_MOST_TURNS):
        tight = _holding(tight)
        changed = {static for bond in tight for static in bond.widen()}
        if not changed:
            return
        for static in changed:
            static.settle()
    for bond in tight:
        bond.loosen()
    for static in statics:
        static.settle()


def _holding(tight: list[Bond]) -> list[Bond]:
    """Those that hold when all others are loose, which may take an operator from yet another."""
    while loose := [bond for bond in tight if not bond.holds()]:
        changed = {static for bond in loose for static in bond.loosen()}
        tight = [bond for bond in tight if bond not in loose]
        for static in changed:
            static.settle()
    return tight
