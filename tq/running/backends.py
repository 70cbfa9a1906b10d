# SPDX-License-Identifier: Apache-2.0
"""The kernels of TFLite that would compute each operator of a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from tq.pages.tables import Result, Table

if TYPE_CHECKING:
    from tq._core import Interpreter, Model

_LEAST = 24  # characters of a rule on a line, in the narrowest terminal


@dataclass(frozen=True)
class Backend:
    """An operator and the kernels whose arithmetic it has."""

    index: int
    operator: str
    numerics: str  #: "reference", "optimized" or "xnnpack"
    rule: str  #: the condition that decided, as text
    litert: str | None  #: LiteRT's behaviour where it is known not to run the operator


class Backends(Result, list[Backend]):
    """A Backend for each operator of a subgraph, in order.  `str()` is a table."""

    def table(self) -> Table:
        """A row for each operator."""
        rows = [(row.index, row.operator, row.numerics, row.rule, row.litert) for row in self]
        return Table(("#index", "operator", "numerics", "rule", "litert"), rows)

    def summary(self) -> list[str]:
        """How many operators have the arithmetic of each of LiteRT's kernels."""
        counts = Counter(row.numerics for row in self)
        lines = [", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "no operators"]
        refused = [row for row in self if row.litert]
        if refused:
            lines.append(f"{len(refused)} that LiteRT does not run, the first {refused[0].index} {refused[0].operator}")
        return lines

    def text(self, width: int | None = None) -> str:
        lines = ["   # operator                 numerics   rule"]
        for row in self:
            front = f"{row.index:4} {row.operator[:24]:24} {row.numerics:10} "
            for text in filter(None, (row.rule, row.litert)):
                parts = (
                    [text] if width is None else wrap(text, max(width - len(front), _LEAST))
                )  # a long rule continues in its column
                for part in parts:
                    lines.append(front + part)
                    front = " " * len(front)
        return "\n".join([*lines, "     " + self.summary()[0]])


def backends(interpreter: Interpreter, model: Model, subgraph: int) -> Backends:
    """See Interpreter.backends."""
    operators = model.subgraphs[subgraph].operators
    rows = interpreter._backends(subgraph)
    return Backends(Backend(op.index, op.name, *row) for op, row in zip(operators, rows, strict=True))
