# SPDX-License-Identifier: Apache-2.0
"""The result of tq.check: findings, which print as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tq.pages.html import count, escaped, fold, page, table
from tq.pages.tables import Result, Table, aligned
from tq.texts import middle

VIOLATES, UNUSUAL = "violates", "unusual"

_HEADS = ("level", "rule", "operator", "tensor", "found", "needed", "effect", "kernels")
_WIDTH = 48  # of a table's column


@dataclass(frozen=True)
class Finding:
    """A tensor of an operator that deviates from the operator's row of the specification."""

    __module__ = "tq"  # pickles name it so, wherever it is defined

    level: str  #: "violates", or "unusual": the specification allows it, converters do not write it
    rule: str  #: the name that `ignore` takes
    operator: int  #: its index in its subgraph
    tensor: str  #: its name, "tensor 12" where it has none; the output's where a tensor is missing
    found: str
    needed: str
    effect: (
        float | None
    )  #: output steps by which the operator's result changes when it is repaired; None: see unmeasured
    kernels: Mapping[str, str]  #: of LiteRT: "reference", "optimized", "xnnpack": "runs", "refuses" or "dies"
    subgraph: int = 0
    row: str = ""  #: the operator's name, which is the row's
    unmeasured: str = ""  #: the reason where the effect is None
    unrepairable: str = ""  #: of tq.repair's `unrepaired`: the reason why it is left

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON takes them; reasons where there are such."""
        made = asdict(self)
        for reason in ("unmeasured", "unrepairable"):
            if not made[reason]:
                del made[reason]
        return made

    def __str__(self) -> str:
        graph = f"subgraph {self.subgraph}, " if self.subgraph else ""
        place = f"{graph}operator {self.operator} {self.row}, {self.tensor!r}"
        return f"{self.level} {self.rule}: {place}: found {self.found}, needed {self.needed}{self._more()}"

    def _more(self) -> str:
        effect = f"; effect {_steps(self.effect)}" if self.effect is not None else ""
        if self.unmeasured:
            effect = f"; no effect is known: {self.unmeasured}"
        if self.unrepairable:
            effect += f"; it is left: {self.unrepairable}"
        kernels = "; ".join(f"{name} {does}" for name, does in self.kernels.items() if does != "runs")
        return f"{effect}{f' ({kernels})' if kernels else ''}"

    def cells(self) -> list[str]:
        """The cells of its row of a table, in the order of the names above."""
        graph = f"{self.subgraph}:" if self.subgraph else ""
        kernels = ", ".join(f"{name} {does}" for name, does in self.kernels.items() if does != "runs") or "all run"
        effect = "-" if self.effect is None else _steps(self.effect)
        place = f"{graph}{self.operator} {self.row}"
        return [self.level, self.rule, place, self.tensor, self.found, self.needed, effect, kernels]


def _steps(effect: float) -> str:
    return f"{effect:.4g} step{'' if effect == 1 else 's'}"


class Findings(Result, list[Finding]):
    """The findings of a model, in the order of its operators.  `str()` is a table; a notebook shows one."""

    __module__ = "tq"

    @property
    def violations(self) -> list[Finding]:
        """The findings of level "violates"."""
        return [finding for finding in self if finding.level == VIOLATES]

    def counts(self) -> dict[str, int]:
        """How many there are of each rule, the most first."""
        return dict(Counter(finding.rule for finding in self).most_common())

    def table(self) -> Table:
        """A row for each finding; `operator` has its subgraph in front where that is not 0."""
        return Table(_HEADS, [finding.cells() for finding in self])

    def summary(self) -> list[str]:
        """How many findings there are of each level."""
        levels = Counter(finding.level for finding in self)
        return [", ".join(f"{levels[level]} {level}" for level in (VIOLATES, UNUSUAL)) if self else "no findings"]

    def text(self, width: int | None = None) -> str:
        """As str().  width: the characters of a line, to which long texts are cut in their middle."""
        if not self:
            return self.summary()[0]
        cells = [[middle(cell, _WIDTH) for cell in finding.cells()] for finding in self]
        return "\n".join([*aligned(_HEADS, cells, width), *self.summary()])

    def _repr_html_(self) -> str:
        rows = [[escaped(cell) for cell in finding.cells()] for finding in self]
        body = [fold("findings", count(len(rows), "finding"), table(_HEADS, rows, len(rows), len(rows)), True)]
        return page("quantization check", escaped(self.summary()[0]), [], body if rows else [])
