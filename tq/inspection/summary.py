# SPDX-License-Identifier: Apache-2.0
"""A model's summary: operators, types, shapes, bytes, parameters and multiply-adds.

A parameter is an element of a constant that an operator reads.  Unquantized integers of 32 or 64 bits, bools and
strings do not count: they are shapes, axes and indices.  A quantized bias counts.

A multiply-add is the multiplication of an activation with a weight or another activation, and the addition of the
product to a sum, as in convolutions, matrix products and recurrent cells.  Padding counts as data.  Biases,
activations, pooling and elementwise arithmetic do not count (src/model/multiply_adds.def has the rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tq.pages.tables import aligned
from tq.texts import middle

if TYPE_CHECKING:
    from tq._core import Model, Subgraph

Shape = tuple[int, ...]

# ---- rows ----


class TensorSummary(NamedTuple):
    """The type and shape of a tensor."""

    type: str  # "INT8"
    shape: Shape | None  # as stored; None for one of more than 64 dimensions

    def __str__(self) -> str:
        return f"{self.type}[{'?' if self.shape is None else ','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class OperatorSummary:
    """One operator: its tensors, its constants and its work."""

    subgraph: int
    index: int
    name: str
    inputs: list[TensorSummary | None]  # None: an optional input that is left out
    outputs: list[TensorSummary | None]
    parameters: int  # elements of its constants; shared ones count in each operator that reads them
    constant_bytes: int  # bytes of its constants
    macs: int | None  # multiply-adds of one run; None: not known


@dataclass(frozen=True)
class GroupSummary:
    """All operators of one name.  A constant that several of them read counts once."""

    name: str
    count: int
    parameters: int
    constant_bytes: int
    macs: int  # of the operators whose multiply-adds are known
    macs_unknown: int  # operators whose multiply-adds are not known


class _Constant(NamedTuple):
    """A constant tensor, inside the file or in an external buffer."""

    identity: tuple[str, int, int]  # equal for tensors that share their bytes
    parameters: int
    nbytes: int


def _sum(constants: Sequence[_Constant]) -> tuple[int, int]:
    """Parameters and bytes of constants; shared ones count once."""
    if len(constants) == 1:
        return constants[0].parameters, constants[0].nbytes
    distinct: dict[Any, _Constant] = {}
    for constant in constants:
        known = distinct.get(constant.identity)
        if known is None or known.parameters < constant.parameters:
            distinct[constant.identity] = constant
    return sum(c.parameters for c in distinct.values()), sum(c.nbytes for c in distinct.values())


def _rows(subgraph: Subgraph) -> tuple[list[OperatorSummary], list[Sequence[_Constant]], list[_Constant]]:
    """A subgraph's operators, the constants that each of them reads, and all constants."""
    constants, operators = subgraph._facts(TensorSummary, _Constant)
    rows: list[OperatorSummary] = []
    read: list[Sequence[_Constant]] = []
    for index, (name, inputs, outputs, found, macs) in enumerate(operators):
        parameters, nbytes = _sum(found) if found else (0, 0)
        row = object.__new__(OperatorSummary)  # the constructor of a frozen dataclass takes several times as long
        vars(row).update(
            subgraph=subgraph.index,
            index=index,
            name=name,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            constant_bytes=nbytes,
            macs=macs,
        )
        rows.append(row)
        read.append(found or ())
    return rows, read, [constant for constant in constants if constant is not None]


def _groups(rows: list[OperatorSummary], constants: list[Sequence[_Constant]]) -> list[GroupSummary]:
    """One entry an operator name; most multiply-adds first, then most bytes."""
    members: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        members.setdefault(row.name, []).append(position)
    groups = []
    for name, positions in members.items():
        parameters, nbytes = _sum([constant for position in positions for constant in constants[position]])
        macs = [rows[position].macs for position in positions]
        known = [count for count in macs if count is not None]
        groups.append(GroupSummary(name, len(positions), parameters, nbytes, sum(known), len(macs) - len(known)))
    return sorted(groups, key=lambda g: (-g.macs, -g.constant_bytes, g.name))


class Summary:
    """The result of `model.summary()`; `str()` is a table.

    operators: one OperatorSummary each, of all subgraphs in order.
    groups: one GroupSummary an operator name.
    parameters, constant_bytes: of all the model's constants; shared ones count once.
    macs: multiply-adds of the operators for which they are known, each run once.
    macs_unknown: the number of the other operators.
    nbytes: the file's size in bytes.
    """

    operators: list[OperatorSummary]
    groups: list[GroupSummary]
    parameters: int
    constant_bytes: int
    macs: int
    macs_unknown: int
    nbytes: int

    def __init__(self, model: Model) -> None:
        self.nbytes = model.nbytes
        self.operators = []
        read: list[Sequence[_Constant]] = []
        every: list[_Constant] = []
        for subgraph in model.subgraphs:
            rows, reads, constants = _rows(subgraph)
            self.operators += rows
            read += reads
            every += constants
        self.groups = _groups(self.operators, read)
        self.parameters, self.constant_bytes = _sum(every)
        known = [row.macs for row in self.operators if row.macs is not None]
        self.macs, self.macs_unknown = sum(known), len(self.operators) - len(known)

    def to_dict(self) -> dict[str, Any]:
        """The summary as dicts, lists, strings and ints, for json.dumps; unknown macs are None."""

        def tensors(items: list[TensorSummary | None]) -> list[dict[str, Any] | None]:
            return [
                None if t is None else {"type": t.type, "shape": None if t.shape is None else list(t.shape)}
                for t in items
            ]

        return {
            "operators": [
                {**vars(row), "inputs": tensors(row.inputs), "outputs": tensors(row.outputs)} for row in self.operators
            ],
            "groups": [asdict(group) for group in self.groups],
            "totals": {
                "operators": len(self.operators),
                "parameters": self.parameters,
                "constant_bytes": self.constant_bytes,
                "macs": self.macs,
                "macs_unknown": self.macs_unknown,
                "nbytes": self.nbytes,
            },
        }

    def __repr__(self) -> str:
        return (
            f"<tq.Summary: {len(self.operators)} operators, {self.parameters:,} parameters, "
            f"{_macs_total(self.macs, self.macs_unknown)} multiply-adds>"
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """As str().  width: the characters of a line, to which long texts are cut in their middle."""
        parts = [
            _text_table(_OPERATOR_HEADS, _operator_cells(self.operators), width),
            _text_table(_GROUP_HEADS, _group_cells(self.groups), width),
            "\n".join(f"{label:<18} {value}" for label, value in self._totals()),
        ]
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        totals = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td style='text-align:right'>{value}</td></tr>"
            for label, value in self._totals()
        )
        operators = _html_table(_OPERATOR_HEADS, _operator_cells(self.operators))
        return (
            f"<table>{totals}</table>"
            + _html_table(_GROUP_HEADS, _group_cells(self.groups))
            + f"<details><summary>{len(self.operators)} operators</summary>{operators}</details>"
        )

    def _totals(self) -> list[tuple[str, str]]:
        return [
            ("Operators", f"{len(self.operators):,}"),
            ("Parameters", f"{self.parameters:,}"),
            ("Constant bytes", f"{self.constant_bytes:,}"),
            ("File bytes", f"{self.nbytes:,}"),
            ("Multiply-adds", _macs_total(self.macs, self.macs_unknown)),
        ]


# ---- text ----

# Names of columns; "#" in front: numbers, as in tq.pages.tables.
_OPERATOR_HEADS = ("#Op", "Name", "Inputs", "Outputs", "#Parameters", "#Bytes", "#Multiply-adds")
_GROUP_HEADS = ("Name", "#Count", "#Parameters", "#Bytes", "#Multiply-adds")
_MOST = 60  # characters of a cell
_SHOWN = 4  # tensors of one operator in a table's cell


def _macs_total(known: int, unknown: int) -> str:
    return f"{known:,}" + (f" + {unknown} operator{'s' if unknown > 1 else ''} unknown" if unknown else "")


def _tensor_cell(tensors: list[TensorSummary | None]) -> str:
    shown = " ".join("-" if tensor is None else str(tensor) for tensor in tensors[:_SHOWN])
    return f"{shown} +{len(tensors) - _SHOWN}" if len(tensors) > _SHOWN else shown


def _operator_cells(rows: list[OperatorSummary]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (
            f"{row.subgraph}:{row.index}" if row.subgraph else str(row.index),
            row.name,
            _tensor_cell(row.inputs),
            _tensor_cell(row.outputs),
            f"{row.parameters:,}",
            f"{row.constant_bytes:,}",
            "?" if row.macs is None else f"{row.macs:,}",
        )


def _group_cells(groups: list[GroupSummary]) -> Iterator[tuple[str, ...]]:
    for group in groups:
        yield (
            group.name,
            f"{group.count:,}",
            f"{group.parameters:,}",
            f"{group.constant_bytes:,}",
            "?" if group.macs_unknown == group.count else _macs_total(group.macs, group.macs_unknown),
        )


def _text_table(heads: Sequence[str], cells: Iterable[tuple[str, ...]], width: int | None) -> str:
    rows = [[middle(cell, _MOST) for cell in row] for row in cells]
    return "\n".join(aligned(heads, rows, width, ruled=True)) if rows else ""


def _html_table(heads: Sequence[str], cells: Iterable[tuple[str, ...]]) -> str:
    import html

    styles = [f" style='text-align:{'right' if head.startswith('#') else 'left'}'" for head in heads]

    def row(tag: str, texts: Iterable[str]) -> str:
        cells = zip(texts, styles, strict=True)
        return f"<tr>{''.join(f'<{tag}{style}>{html.escape(text)}</{tag}>' for text, style in cells)}</tr>"

    titles = row("th", (head.removeprefix("#") for head in heads))
    return f"<table><thead>{titles}</thead><tbody>{''.join(row('td', c) for c in cells)}</tbody></table>"


def summary(model: Model) -> Summary:
    """The model's operators, types, shapes, bytes, parameters and multiply-adds, and the totals."""
    return Summary(model)
