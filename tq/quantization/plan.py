# SPDX-License-Identifier: Apache-2.0
"""Plan: every decision of tq.quantize_model, frozen, which tq/quantization/rewrite.py applies to the model it is of.

QuantizationPlan is the plan as tables without the model: the result of tq.plan_quantization, and the text of a Plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.pages.tables import Table, aligned
from tq.quantization.boundaries import Boundary
from tq.quantization.choice import Choice
from tq.quantization.records import Product, Record
from tq.quantization.weights import Use
from tq.texts import middle

_MOST_TENSORS = 4  # of a group that a table names
_WIDTH = 60  # of a table's column


# ---- as tables ----


@dataclass(frozen=True)
class PlannedOperator:
    """becomes: "int8" or "int16", the type of its activations; the type of its weights; or "float32".
    why: the reason for which it stays float32, is written as another operator, or has wider weights than asked for."""

    subgraph: int
    index: int
    name: str
    recipe: str
    becomes: str
    why: str


@dataclass(frozen=True)
class PlannedGroup:
    """Activations that share their parameters.  source: where the range comes from: "calibration", "FAKE_QUANT",
    "stored", "override", "default", or "kernel", which demands the parameters."""

    subgraph: int
    tensors: tuple[str, ...]
    type: str
    scale: float
    zero_point: int
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class PlannedConstraint:
    """A variable, or a value that control flow hands on.  becomes: the type of all of its tensors."""

    name: str
    becomes: str


@dataclass(frozen=True)
class PlannedConstant:
    """A constant, as the operators at `readers` read it."""

    subgraph: int
    name: str
    becomes: str
    readers: tuple[int, ...]


@dataclass(frozen=True)
class PlannedConversion:
    """A QUANTIZE behind a tensor that is float32, or that operators read by several scales; or a DEQUANTIZE behind
    integers.  `io` comes later, and takes QUANTIZE of inputs and DEQUANTIZE of outputs away."""

    subgraph: int
    operator: str
    tensor: str


Row = PlannedOperator | PlannedGroup | PlannedConstraint | PlannedConstant | PlannedConversion


@dataclass(frozen=True, repr=False)
class QuantizationPlan:
    """The decisions of tq.quantize_model for a model.  `str()` is tables; a notebook shows them."""

    recipe: str
    operators: tuple[PlannedOperator, ...]
    groups: tuple[PlannedGroup, ...]
    constraints: tuple[PlannedConstraint, ...]
    constants: tuple[PlannedConstant, ...]
    conversions: tuple[PlannedConversion, ...]

    @property
    def floats(self) -> tuple[PlannedOperator, ...]:
        """The operators that stay float32, with the reason."""
        return tuple(row for row in self.operators if row.becomes == "float32")

    def _tables(self) -> list[tuple[str, Sequence[Row]]]:
        found: list[tuple[str, Sequence[Row]]] = [
            ("operators", self.operators),
            ("groups", self.groups),
            ("constraints", self.constraints),
            ("constants", self.constants),
            ("conversions", self.conversions),
        ]
        return [(name, rows) for name, rows in found if rows]

    def table(self) -> Table:
        """A row for each operator."""
        heads = [item.name for item in fields(PlannedOperator)]
        return Table(heads, [[getattr(row, name) for name in heads] for row in self.operators])

    def to_dict(self) -> dict[str, Any]:
        """The recipe, and each table as dicts."""
        return {"recipe": self.recipe, **{name: [asdict(row) for row in rows] for name, rows in self._tables()}}

    def __repr__(self) -> str:
        count = len(self.operators) - len(self.floats)
        return f"<tq quantization plan: {self.recipe}, {count} of {len(self.operators)} operators quantized>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """As str().  width: the characters of a line, to which long texts are cut in their middle."""
        parts = [repr(self)[4:-1]]
        for name, rows in self._tables():
            lines = aligned(_heads(rows[0]), list(map(_cells, rows)), None if width is None else width - 2)
            parts.append("\n".join([f"{name}:", *(f"  {line}" for line in lines)]))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from tq.pages.html import count, escaped, fold, page, table

        body = []
        for name, rows in self._tables():
            cells = [[escaped(cell) for cell in _cells(row)] for row in rows]
            body.append(fold(name, count(len(rows), "row"), table(_heads(rows[0]), cells, len(rows), len(rows)), True))
        return page("quantization plan", escaped(self.recipe), [], body)


def _heads(row: Row) -> list[str]:
    """Names of columns; "#" in front: numbers, as in tq.pages.tables."""
    numbers = [isinstance(getattr(row, item.name), (int, float)) for item in fields(row)]
    return ["#" * number + item.name.replace("_", " ") for number, item in zip(numbers, fields(row), strict=True)]


def _cells(row: Row) -> list[str]:
    return [_cell(getattr(row, item.name)) for item in fields(row)]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, tuple):
        rest = f" and {len(value) - _MOST_TENSORS} more" if len(value) > _MOST_TENSORS else ""
        return ", ".join(_cell(item) for item in value[:_MOST_TENSORS]) + rest
    text = str(value)
    return middle(text, _WIDTH if " " not in text else 200)


# ---- as it is applied ----


@dataclass(frozen=True)
class Activations:
    """The integer activations of one type in a subgraph.

    choice: the operators that become integer operators, why others stay float, and the parameters of all groups.
    products: the operators among them that are written as MUL.
    records: their constants, states and intermediate tensors, in the order in which they are written.
    boundaries: where QUANTIZE and DEQUANTIZE stand, and the parameters of each activation.
    options: options that the integer kernels ask for.
    is_unsigned: all int8 values are written as uint8.
    """

    choice: Choice
    products: Mapping[OperatorPart, Product]
    records: tuple[Record, ...]
    boundaries: tuple[Boundary, ...]
    options: Mapping[OperatorPart, Mapping[str, Any]]
    is_unsigned: bool


@dataclass(frozen=True)
class SubgraphPlan:
    """uses: constants that are quantized beside float activations.
    activations: of each type.
    joined: tensors that pass from integer operators of one type to those of the other by one QUANTIZE, and whether
    others read them as float.
    unjoined: operators that would have requantized and stay float: they go."""

    graph: SubgraphPart
    uses: tuple[Use, ...]
    activations: tuple[Activations, ...] = ()
    joined: Mapping[TensorPart, bool] = field(default_factory=lambda: MappingProxyType({}))
    unjoined: tuple[OperatorPart, ...] = ()


@dataclass(frozen=True, repr=False)
class Plan:
    """constraints: the type of the tensors of each variable, and of each value that control flow hands on.
    on_grid: constants that lie on the grid that training, the caller or the file chose.
    overrides: the names of the caller's overrides that have an effect.
    tables: all of this as text."""

    subgraphs: tuple[SubgraphPlan, ...]
    constraints: Mapping[tuple[str, ...], str]
    on_grid: frozenset[TensorPart]
    overrides: frozenset[str]
    tables: QuantizationPlan

    def __repr__(self) -> str:
        return repr(self.tables)

    def __str__(self) -> str:
        return str(self.tables)

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()
