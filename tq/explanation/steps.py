# SPDX-License-Identifier: Apache-2.0
"""The steps by which a kernel computes one element, as a value: a list of named figures, and what they are for."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from tq.pages.tables import Table
from tq.texts import steps_table


class Step(NamedTuple):
    """A figure on the way to an element."""

    name: str
    value: int | float
    note: str
    real: float | None = None  #: the real value that the result has by this step; None: it is not yet one
    error: float | None = None  #: real less the float model's value, where one is given


@dataclass(frozen=True)
class Explanation:
    """How one element of a run came about.  `str()` is a table, a notebook shows it as one."""

    tensor: str
    index: tuple[int, ...]
    operator: int  #: the operator that computes the tensor
    operator_name: str
    numerics: str  #: whose arithmetic it follows: "reference", "optimized" or "xnnpack"
    rounding: str  #: of the reference kernels: "double", or "single" with TFLITE_SINGLE_ROUNDING
    accumulator: int | None  #: the exact integer sum, bias and zero points included; None where there is none
    steps: tuple[Step, ...]
    code: int  #: the quantized value
    value: float  #: the real value, scale * (code - zero point)
    scale: float  #: of the tensor, for this element
    real: float | None = None  #: the float model's value, where one is given
    errors: dict[str, float] = field(default_factory=dict)  #: the difference of both values, and its parts

    def as_dict(self) -> dict[str, Any]:
        """All fields by name; each step is a dict too."""
        return asdict(self) | {"steps": [step._asdict() for step in self.steps]}

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for step in self.steps:
            beside = "" if step.error is None else f"stands for {step.real:.6g}, error {step.error:.3g}"
            yield step.name, repr(step.value), "; ".join(filter(None, (step.note, beside)))
        if self.real is not None:
            yield "float model", repr(self.real), "the same element there"
        for name, error in self.errors.items():
            yield "error", f"{error:.6g}", name

    def table(self) -> Table:
        """A row for each step."""
        return Table(("step", "#value", "note"), list(self._rows()))

    @property
    def title(self) -> str:
        place = ", ".join(map(str, self.index))
        rounding = ", single rounding" if self.rounding == "single" else ""
        return f"'{self.tensor}' [{place}]: operator {self.operator}, {self.operator_name}, {self.numerics}{rounding}"

    def __str__(self) -> str:
        return "\n".join([self.title, *steps_table(self._rows())])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:right'>{html.escape(value)}"
            f"</td><td style='text-align:left'>{html.escape(note)}</td></tr>"
            for name, value, note in self._rows()
        )
        return f"<table><caption>{html.escape(self.title)}</caption>{cells}</table>"


class Trail:
    """Collects steps while a kernel's arithmetic is done again."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.accumulator: int | None = None

    def add(self, name: str, value: Any, note: str = "", real: float | None = None) -> Any:
        """Adds a step; the value."""
        self.steps.append(Step(name, value, note, real))
        return value

    def stands_for(self, real: float, name: str | None = None) -> None:
        """The real value of the last step, or of the last one of a name, if there is one."""
        for place in range(len(self.steps) - 1, -1, -1):
            if name in (None, self.steps[place].name):
                self.steps[place] = self.steps[place]._replace(real=float(real))
                return
