# SPDX-License-Identifier: Apache-2.0
"""What a model is made of: operators, types, shapes, bytes, parameters and multiply-adds.

A parameter is an element of a constant that an operator reads, other than of plain integers of 32 or 64 bits, bools
and strings: those are shapes, axes and indices unless they are quantized (a bias is).

A multiply-add is one multiplication of an activation with a weight or another activation, and the addition of the
product to a sum: what convolutions, matrix products and recurrent cells are made of.  Padding counts as if it were
data.  Biases, activations, pooling and elementwise arithmetic do not count (src/model/multiply_adds.def has the rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tq.texts import dotted

if TYPE_CHECKING:
    from tq._core import Model, Subgraph

Shape = tuple[int, ...]

# ---- rows ----


class TensorSummary(NamedTuple):
    type: str  # "INT8"
    shape: Shape | None  # as stored; None for one of more than 64 dimensions

    def __str__(self) -> str:
        return f"{self.type}[{'?' if self.shape is None else ','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class OperatorSummary:
    subgraph: int
    index: int
    name: str
    inputs: list[TensorSummary | None]  # None: an optional input that is left out
    outputs: list[TensorSummary | None]
    parameters: int  # elements of its constants; shared ones count in each operator that reads them
    constant_bytes: int  # bytes of its constants
    macs: int | None


@dataclass(frozen=True)
class GroupSummary:
    """All operators of one name.  A constant that several of them read counts once."""

    name: str
    count: int
    parameters: int
    constant_bytes: int
    macs: int  # of the operators whose multiply-adds are known
    macs_unknown: int  # operators whose multiply-adds are not


class _Constant(NamedTuple):
    """A constant tensor; an external buffer's lies in another file."""

    identity: tuple[str, int, int]  # equal for tensors that share their bytes
    parameters: int
    nbytes: int


def _sum(constants: Sequence[_Constant]) -> tuple[int, int]:
    """Parameters and bytes of constants, each counted once though shared."""
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
    place = subgraph.index
    rows: list[OperatorSummary] = []
    read: list[Sequence[_Constant]] = []
    for index, (name, inputs, outputs, found, macs) in enumerate(operators):
        parameters, nbytes = _sum(found) if found else (0, 0)
        row = object.__new__(OperatorSummary)  # a frozen one's own constructor takes several times as long
        vars(row).update(
            subgraph=place,
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
    for place, row in enumerate(rows):
        members.setdefault(row.name, []).append(place)
    groups = []
    for name, places in members.items():
        parameters, nbytes = _sum([constant for place in places for constant in constants[place]])
        macs = [rows[place].macs for place in places]
        known = [count for count in macs if count is not None]
        groups.append(GroupSummary(name, len(places), parameters, nbytes, sum(known), len(macs) - len(known)))
    return sorted(groups, key=lambda g: (-g.macs, -g.constant_bytes, g.name))


class Summary:
    """The table that `model.summary()` returns; `print` it, or read its rows.

    operators: one OperatorSummary each, of all subgraphs in order.
    groups: one GroupSummary an operator name.
    parameters, constant_bytes: of all the model's constants, each counted once though shared.
    macs: multiply-adds of the operators for which they are known, each taken to run once.
    macs_unknown: the number of operators for which they are not.
    nbytes: the file's size.
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
        """The same as dicts, lists, strings and ints, which json.dumps takes; macs that are not known are None."""

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
        parts = [
            "\n".join(_aligned(_OPERATOR_HEAD, _operator_cells(self.operators))),
            "\n".join(_aligned(_GROUP_HEAD, _group_cells(self.groups))),
            "\n".join(f"{label:<18} {value}" for label, value in self._totals()),
        ]
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        totals = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td style='text-align:right'>{value}</td></tr>"
            for label, value in self._totals()
        )
        operators = _html_table(_OPERATOR_HEAD, _operator_cells(self.operators))
        return (
            f"<table>{totals}</table>"
            + _html_table(_GROUP_HEAD, _group_cells(self.groups))
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

# A column's title, and whether it is numbers, which stand at the right.
_Head = tuple[tuple[str, bool], ...]
_OPERATOR_HEAD: _Head = (
    ("Op", True),
    ("Name", False),
    ("Inputs", False),
    ("Outputs", False),
    ("Parameters", True),
    ("Bytes", True),
    ("Multiply-adds", True),
)
_GROUP_HEAD: _Head = (
    ("Name", False),
    ("Count", True),
    ("Parameters", True),
    ("Bytes", True),
    ("Multiply-adds", True),
)
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


def _one_line(text: str, width: int = 60) -> str:
    """Names come from the file: control characters show as ".", long ones are cut."""
    if len(text) <= width and text.isprintable():
        return text
    text = text[: width + 1]
    text = dotted(text)
    return text if len(text) <= width else text[: width - 3] + "..."


def _aligned(head: _Head, cells: Iterable[tuple[str, ...]]) -> list[str]:
    """A text table."""
    rows = [tuple(map(_one_line, row)) for row in cells]
    if not rows:
        return []
    titles = tuple(title for title, _ in head)
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    line = "  ".join(f"{{:{'>' if right else '<'}{width}}}" for width, (_, right) in zip(widths, head, strict=True))
    return [line.format(*row).rstrip() for row in (titles, ["-" * width for width in widths], *rows)]


def _html_table(head: _Head, cells: Iterable[tuple[str, ...]]) -> str:
    import html

    aligned = [f" style='text-align:{'right' if right else 'left'}'" for _, right in head]

    def row(tag: str, texts: Iterable[str]) -> str:
        cells = zip(texts, aligned, strict=True)
        return f"<tr>{''.join(f'<{tag}{style}>{html.escape(text)}</{tag}>' for text, style in cells)}</tr>"

    titles = row("th", (title for title, _ in head))
    return f"<table><thead>{titles}</thead><tbody>{''.join(row('td', c) for c in cells)}</tbody></table>"


def summary(model: Model) -> Summary:
    """The model's operators, types, shapes, bytes, parameters and multiply-adds, and the totals."""
    return Summary(model)
