# SPDX-License-Identifier: Apache-2.0
"""The memory of a run: where tensors lie in the arena, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tq.inspection.plots import new_axes
from tq.pages.tables import Result, Table, aligned
from tq.texts import dotted, middle

if TYPE_CHECKING:
    from tq._core import Interpreter, Model
    from tq.inspection.plots import Axes

_MOST_NAMES = 60  # boxes of a plot that have names
_LEAST_SHARE = 0.01  # of the arena: the height of a box that has room for a name


def _label(name: str) -> str:
    """The end of a name, which tells tensors apart, as matplotlib's plain text."""
    shown = dotted(name if len(name) <= 24 else "…" + name[-23:])
    return shown.replace("$", r"\$")


class Placed(NamedTuple):
    """A tensor, or an operator's scratch, in the arena."""

    name: str
    tensor: int | None  # None: scratch
    offset: int
    nbytes: int
    first: int  # the operator that writes it; -1: an input
    last: int  # the last operator that reads it


@dataclass(repr=False)
class MemoryPlan(Result):
    """The layout of a subgraph's memory.  `str()` is a table."""

    arena: int  # bytes
    placed: list[Placed]  # tensors and scratch in the arena
    own: dict[int, int]  # bytes of tensors with memory of their own: variables, computed constants, dynamic ones
    used: int  # bytes of the whole interpreter; prepacked weights count for the interpreter that made them
    peak: int  # the greatest value of `used`

    @property
    def lower_bound(self) -> int:
        """The greatest sum of bytes that live at the same operator: no plan takes less."""
        steps: dict[int, int] = {}
        ends = {(item.offset, item.last): item for item in self.placed if item.nbytes}
        for item in self.placed:
            # An output in its input's memory counts once.
            taken = ends.get((item.offset, item.first), item) is not item
            steps[item.first + taken] = steps.get(item.first + taken, 0) + item.nbytes
            steps[item.last + 1] = steps.get(item.last + 1, 0) - item.nbytes
        most = now = 0
        for step in sorted(steps):
            now += steps[step]
            most = max(most, now)
        return most

    def text(self, width: int | None = None) -> str:
        rows = []
        for item in sorted(self.placed, key=lambda item: (item.offset, item.first)):
            tensor = "scratch" if item.tensor is None else f"{item.tensor}"
            numbers = map(str, (item.offset, item.nbytes, item.first, item.last))
            rows.append([*numbers, tensor, middle(item.name)])
        lines = aligned(("#offset", "#bytes", "#first", "#last", "#tensor", "name"), rows, width)
        return "\n".join([*lines, *self.summary()])

    def table(self) -> Table:
        """A row for each tensor and scratch."""
        placed = sorted(self.placed, key=lambda item: (item.offset, item.first))
        rows = [(i.offset, i.nbytes, i.first, i.last, i.tensor, i.name) for i in placed]
        return Table(("#offset", "#bytes", "#first", "#last", "#tensor", "name"), rows)

    def summary(self) -> list[str]:
        """The bytes of the arena, of tensors outside of it, and of the interpreter."""
        lines = [f"arena {self.arena} bytes; at least {self.lower_bound} are in use at once"]
        if self.own:
            lines.append(f"{len(self.own)} tensors have {sum(self.own.values())} bytes of their own")
        return [*lines, f"the interpreter uses {self.used} bytes, at most {self.peak}"]

    def plot(self, ax: Axes | None = None) -> Axes:
        """A box for each tensor: its lifetime in operators to the right, its bytes upwards; ax: None: a new figure.
        Needs matplotlib."""
        ax = new_axes() if ax is None else ax
        from matplotlib.patches import Rectangle  # new_axes says where it is missing

        colors = ["#3a8ee0", "#d5690f", "#7b8da3", "#4c9f70", "#b5539c"]
        tensors = sorted((item for item in self.placed if item.tensor is not None), key=lambda item: -item.nbytes)
        named = [item for item in tensors[:_MOST_NAMES] if item.nbytes >= _LEAST_SHARE * self.arena]
        end = max((item.last for item in self.placed), default=0) + 1
        for k, item in enumerate(self.placed):
            color = "#00000020" if item.tensor is None else colors[k % len(colors)]
            box = Rectangle(
                (item.first, item.offset),
                item.last + 1 - item.first,
                item.nbytes,
                facecolor=color,
                edgecolor="black",
                linewidth=0.3,
            )
            ax.add_patch(box)
        for item in named:
            place = ((item.first + item.last + 1) / 2, item.offset + item.nbytes / 2)
            ax.annotate(_label(item.name), place, ha="center", va="center", fontsize=6)
        ax.set_xlim(-1, end)
        ax.set_ylim(0, max(self.arena, 1))
        ax.set_xlabel("operator")
        ax.set_ylabel("bytes from the arena's start")
        ax.set_title(f"arena of {self.arena} bytes; at least {self.lower_bound} are in use at once")
        return ax


def memory_plan(interpreter: Interpreter, model: Model, subgraph: int) -> MemoryPlan:
    """See Interpreter.memory_plan."""
    graph = model.subgraphs[subgraph]
    arena, tensors, scratch, own = interpreter._memory_plan(subgraph)
    placed = [
        Placed(graph.tensors[index].name, index, offset, size, first, last)
        for index, offset, size, first, last in tensors
    ]
    placed += [Placed(graph.operators[k].name, None, offset, size, k, k) for k, offset, size in scratch]
    used, peak = interpreter._memory_used()
    return MemoryPlan(arena, placed, dict(own), used, peak)
