# SPDX-License-Identifier: Apache-2.0
"""Overlays: figures of operators that color a graph's boxes.

An overlay has a level and a text for each operator that it knows.  A level is a row of its legend, whose role is a
color of the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tq.pages.html import size_text
from tq.reports.page import kind_of
from tq.reports.svg import grade
from tq.specification.findings import VIOLATES

if TYPE_CHECKING:
    from tq._core import Model
    from tq.reports.report import Report
    from tq.running.backends import Backends
    from tq.running.profile import Profile
    from tq.specification.findings import Finding

Place = tuple[int, int]  # a subgraph, an operator of it


class Overlay(NamedTuple):
    """One way to color operators."""

    key: str
    title: str
    note: str  # how the figures were found; "" where the title says it
    legend: list[tuple[str, str]]  # (role, text) of each level
    levels: dict[Place, int]
    texts: dict[Place, str]
    values: dict[Place, float]  # the figures, of overlays that have any


_SHARES = ((0.2, "heat-4", "20 % and more"), (0.1, "heat-3", "10 to 20 %"), (0.05, "heat-2", "5 to 10 %"),
           (0.01, "heat-1", "1 to 5 %"), (0.0, "heat-0", "less"))  # fmt: skip


def _shares(key: str, title: str, note: str, values: Mapping[Place, float], text: Callable[[float], str]) -> Overlay:
    """An overlay of parts of a whole."""
    whole = sum(values.values()) or 1.0
    levels, texts = {}, {}
    for place, value in values.items():
        levels[place] = next(k for k, row in enumerate(_SHARES) if value / whole >= row[0])
        texts[place] = f"{text(value)}, {100 * value / whole:.3g} %" if value else text(value)
    legend = [(role, f"{said} of all" if k == 0 else said) for k, (_, role, said) in enumerate(_SHARES)]
    return Overlay(key, title, note, legend, levels, texts, dict(values))


def _classes(key: str, title: str, note: str, found: Mapping[Place, tuple[str, str]],
             roles: Sequence[tuple[str, str, str]]) -> Overlay:  # fmt: skip
    """An overlay of classes; found: (class, text) of a place; roles: (class, role, legend's text)."""
    used = {name for name, _ in found.values()}
    rows = [row for row in roles if row[0] in used]
    numbers = {row[0]: k for k, row in enumerate(rows)}
    levels = {place: numbers[name] for place, (name, _) in found.items() if name in numbers}
    texts = {place: text for place, (_, text) in found.items()}
    return Overlay(key, title, note, [(role, text) for _, role, text in rows], levels, texts, {})


_KINDS = (
    ("integer", "class-0", "on integers"),
    ("hybrid", "class-1", "hybrid: float with quantized weights"),
    ("float", "class-2", "on floats"),
    ("other", "class-3", "other"),
)


def kinds(model: Model) -> Overlay:
    """Whether operators compute on integers or on floats."""
    found = {}
    for graph in model.subgraphs:
        for operator in graph.operators:
            kind = kind_of(operator)
            found[graph.index, operator.index] = kind, kind
    return _classes("kind", "Integer or float", "", found, _KINDS)


def sizes(model: Model) -> list[Overlay]:
    """Bytes of constants, and multiply-adds."""
    rows = model.summary().operators
    constants = {(row.subgraph, row.index): float(row.constant_bytes) for row in rows}
    known = {(row.subgraph, row.index): float(row.macs) for row in rows if row.macs is not None}
    return [
        _shares("bytes", "Bytes of constants", "", constants, lambda value: size_text(int(value))),
        _shares("macs", "Multiply-adds", "", known, lambda value: f"{int(value):,}"),
    ]


def times(profile: Profile) -> Overlay:
    """The time of each operator of subgraph 0."""
    values = {(0, row.index): row.microseconds for row in profile.rows}
    note = f"The mean of {profile.runs} runs in tq; one run takes {profile.microseconds:,.0f} µs."
    return _shares("time", "Time", note, values, lambda value: f"{value:,.4g} µs")


_BACKENDS = (
    ("xnnpack", "class-0", "XNNPACK"),
    ("optimized", "class-1", "TFLite's optimized kernels"),
    ("reference", "class-2", "TFLite's reference kernels"),
    ("refused", "bad", "LiteRT does not run it"),
)


def backends(rows: Mapping[int, Backends]) -> Overlay:
    """The kernels that LiteRT would run each operator with; rows: by subgraph."""
    found = {}
    for subgraph, table in rows.items():
        for row in table:
            text = f"{row.numerics}: {row.rule}" + (f"; {row.litert}" if row.litert else "")
            found[subgraph, row.index] = ("refused" if row.litert else row.numerics), text
    return _classes("backend", "LiteRT's backend", "As tq.Interpreter.backends predicts it.", found, _BACKENDS)


_LEVELS = (
    ("violates", "bad", "violates the quantization specification"),
    ("unusual", "warn", "unusual: converters do not write it"),
    ("none", "none", "no finding"),
)


def findings(model: Model, rows: Iterable[Finding]) -> Overlay:
    """The findings of tq.check."""
    found: dict[Place, tuple[str, str]] = {}
    for row in rows:
        place = row.subgraph, row.operator
        level, text = found.get(place, ("", ""))
        said = f"{row.level} {row.rule}, {row.tensor}: found {row.found}, needed {row.needed}"
        worst = VIOLATES if VIOLATES in (level, row.level) else row.level
        found[place] = worst, f"{text}; {said}" if text else said
    for graph in model.subgraphs:
        for operator in graph.operators:
            found.setdefault((graph.index, operator.index), ("none", "no finding"))
    return _classes("findings", "Findings of tq check", "", found, _LEVELS)


_GRADES = (("good", "good", "30 dB and more"), ("fair", "fair", "20 to 30"), ("warn", "warn", "10 to 20"),
           ("bad", "bad", "under 10"))  # fmt: skip


def sqnr(report: Report, quantized: bool, note: str) -> Overlay:
    """SQNR of each operator's output in dB; quantized: the graph is that of the report's quantized model."""
    model = report.quantized if quantized else report.float_model
    writers = {index: op.index for op in reversed(model.subgraphs[0].operators) for index in op.output_indices}
    levels: dict[Place, int] = {}
    texts: dict[Place, str] = {}
    values: dict[Place, float] = {}
    names = [row[0] for row in _GRADES]
    for row in report.activations:
        writer = writers.get(row.index_b if quantized else row.index)
        if writer is None or math.isnan(row.sqnr_db) or values.get((0, writer), math.inf) < row.sqnr_db:
            continue
        place = 0, writer
        levels[place] = names.index(grade(row.sqnr_db))
        values[place] = row.sqnr_db
        texts[place] = "exact" if row.sqnr_db == math.inf else f"{row.sqnr_db:.1f} dB".replace("-", "−")
    legend = [(role, text) for _, role, text in _GRADES]
    said = f"Signal to quantization noise of the outputs: {report.sqnr_db:.1f} dB. {note}"
    return Overlay("sqnr", "SQNR", said, legend, levels, texts, values)
