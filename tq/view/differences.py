# SPDX-License-Identifier: Apache-2.0
"""The page of `tq diff --html`: two models side by side, their differences, and histograms of changed constants."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tq._core import Error, Model, Tensor
from tq.accuracy.measuring import Noise
from tq.inspection.differences import Difference, matched_operators, matched_tensors
from tq.inspection.graph import OPERATOR, graph_of
from tq.pages.graph_svg import BoxPicture, graph_svg
from tq.pages.html import count, escaped, shape_text, size_text, value_text
from tq.reports import svg
from tq.reports.elements import DASH, card, cell, decibels_text, frame, short_text, sqnr_cell, table
from tq.version import __version__

_ROWS = 1000  # of a table
_DRAWN = 300  # operators of a graph
_PICTURES, _OPEN = 120, 12  # changed constants with pictures, and those that are visible at first
_BINS = 64
_SAMPLE = 1 << 20  # values of a histogram
_PLACE = re.compile(r"subgraph (\d+), (operator|tensor) (\d+) ")
_KINDS = ("structure", "quantization", "weights")

Items = set[tuple[int, str, int]]  # (subgraph, "operator" or "tensor", index)


class Change(NamedTuple):
    """A constant of two models with other values.  Figures are of real values."""

    left: Tensor
    right: Tensor
    different: int
    noise: Noise
    values: svg.Counts
    others: svg.Counts
    errors: svg.Counts | None


def document(a: Model, b: Model, names: Sequence[str], differences: Sequence[Difference], limit: int = _ROWS) -> str:
    """The page of the differences of a and b; limit: rows of the table, 0 for all."""
    changes = sorted(_changes(a, b, differences), key=lambda change: change.noise.sqnr_db)
    shown = [escaped(name) for name in names]
    sections = [
        ("graphs", "Graphs", _graphs(a, b, shown, differences)),
        ("differences", "Differences", _table(shown, differences, limit)),
        ("constants", "Changed constants", _constants(changes)),
        ("histograms", "Histograms", _pictures(changes, shown)),
    ]
    title = f"Differences: {shown[0]} and {shown[1]}"
    return frame(title, _header(a, b, shown, differences, changes), sections, _footer())


def _header(a: Model, b: Model, names: list[str], differences: Sequence[Difference], changes: list[Change]) -> str:
    kinds = Counter(difference.kind for difference in differences)
    cards = [card("Differences", f"{len(differences):,}", ", ".join(f"{kinds[kind]:,} of {kind}" for kind in _KINDS))]
    cards.append(card("File", size_text(b.nbytes), f"{size_text(a.nbytes)} in the first model"))
    operators = [sum(len(graph.operators) for graph in model.subgraphs) for model in (a, b)]
    cards.append(card("Operators", f"{operators[1]:,}", f"{operators[0]:,} in the first model"))
    if changes:
        cards.append(card("Most changed constant", _sqnr(changes[0]), escaped(changes[0].left.name)))
    return (
        f'<header><div><h1>Differences</h1><div class="files muted"><code>{names[0]}</code> beside '
        f'<code>{names[1]}</code></div><div class="cards">{"".join(cards)}</div></div></header>'
    )


def _footer() -> str:
    return (
        f"<footer>Made by tq {__version__}. Tensors are matched by name. SQNR is 10 log10(Σ first² / "
        "Σ (first − second)²) of real values.</footer>"
    )


# ---- graphs ----


def _marked(differences: Sequence[Difference], absent: str) -> tuple[Items, Items]:
    """(the operators and tensors that differ, those that only the other model has); absent: "a" or "b" has None."""
    changed: Items = set()
    only: Items = set()
    for difference in differences:
        found = _PLACE.match(difference.place)
        if found is None:
            continue
        item = int(found[1]), found[2], int(found[3])
        is_whole = difference.what in ("operator", "tensor")
        if not is_whole:
            changed.add(item)
        elif getattr(difference, absent) is None:
            only.add(item)
    return changed, only


def _graphs(a: Model, b: Model, names: list[str], differences: Sequence[Difference]) -> str:
    """The first subgraphs side by side."""
    if not differences or any(not 0 < len(model.subgraphs[0].operators) <= _DRAWN for model in (a, b)):
        return ""
    changed, _ = _marked(differences, "a")
    only_a, only_b = (_marked(differences, absent)[1] for absent in ("b", "a"))
    one, two = a.subgraphs[0], b.subgraphs[0]
    partners = {"tensor": _known(matched_tensors(one, two)), "operator": _known(matched_operators(one, two))}
    changed_b = {(0, kind, partners[kind][k]) for graph, kind, k in changed if graph == 0 and k in partners[kind]}
    pictures = [_picture(a, names[0], changed, only_a), _picture(b, names[1], changed_b, only_b)]
    legend = '<span><i class="g-warn"></i>differs</span><span><i class="g-bad"></i>only in this model</span>'
    return f'<div class="legend">{legend}</div><div class="pair">{"".join(pictures)}</div>'


def _picture(model: Model, name: str, changed: Items, only: Items) -> str:
    graph = graph_of(model.subgraphs[0])
    boxes = []
    for box in graph.boxes:
        own = (0, OPERATOR, box.index) if box.kind == OPERATOR else (0, "tensor", box.index)
        items = {own, *((0, "tensor", tensor) for tensor in (*box.reads, *box.writes))}
        role = "b-bad" if own in only else "b-warn" if items & changed else ""
        title = f"{box.index} {box.name}" if box.kind == OPERATOR else f"{box.kind} {box.name}"
        boxes.append(BoxPicture(title, box.lines, role))
    arrows = [(arrow.source, arrow.target) for arrow in graph.arrows]
    drawn = graph_svg(boxes, graph.sizes(), arrows, graph.layout(), f"graph of {model.path or 'a model in memory'}")
    return (
        f'<div><h3 class="mono">{name}</h3><div class="scroll high" tabindex="0" role="region" '
        f'aria-label="Graph of {name}">{drawn}</div></div>'
    )


# ---- differences ----


def _table(names: list[str], differences: Sequence[Difference], limit: int) -> str:
    if not differences:
        return "<p>The models are equal.</p>"
    rows = [
        f'<tr><td>{difference.kind}</td><td class="name">{escaped(difference.place, 200)}</td>'
        f'<td class="mono fit">{escaped(difference.what)}</td><td class="name">{_value(difference.a)}</td>'
        f'<td class="name">{_value(difference.b)}</td><td class="name">{_text(difference)}</td></tr>'
        for difference in (differences[:limit] if limit else differences)
    ]
    heads = ("Kind", "Place", "Field", *names, "Difference")
    cut = f'<p class="muted">The first {limit:,} of {len(differences):,} are listed.</p>'
    return table("differences", heads, rows) + (cut if len(rows) < len(differences) else "")


def _value(value: Any) -> str:
    return f'<span class="mono">{value_text(value)}</span>' if value is not None else DASH


def _text(difference: Difference) -> str:
    """The text of a difference, where it says more than the two values."""
    return "" if " -> " in difference.text and "differ" not in difference.text else escaped(difference.text, 400)


# ---- constants ----


def _known(pairs: Iterable[tuple[int | None, int | None]]) -> dict[int, int]:
    return {i: j for i, j in pairs if i is not None and j is not None}


def _changes(a: Model, b: Model, differences: Sequence[Difference]) -> list[Change]:
    """The constants whose values differ, of those that can be read as real values."""
    changes, partners = [], dict[int, dict[int, int]]()
    for graph, kind, index in sorted(_marked(differences, "a")[0]):
        if kind != "tensor":
            continue
        one, two = a.subgraphs[graph], b.subgraphs[graph]
        if graph not in partners:
            partners[graph] = _known(matched_tensors(one, two))
        left, right = one.tensors[index], two.tensors[partners[graph][index]]
        change = _change(left, right) if left.is_constant and right.is_constant else None
        if change is not None:
            changes.append(change)
    return changes


def _real(tensor: Tensor) -> Any:
    """A constant's real values as float64; None: there are none, or they cannot be read."""
    try:
        data = tensor.dequantized() if tensor.quantization else tensor.data
    except (Error, ValueError, OSError):
        return None
    if data is None or data.shape != tensor.shape or not data.size or data.dtype.kind not in "iufb":
        return None
    return data.astype(np.float64)


def _change(left: Tensor, right: Tensor) -> Change | None:
    x, y = _real(left), _real(right)
    if x is None or y is None or x.shape != y.shape:
        return None
    noise = Noise()
    noise.add(x, y)
    if not noise.noise:
        return None
    different = int(np.count_nonzero(~((x == y) | (np.isnan(x) & np.isnan(y)))))
    step = -(-x.size // _SAMPLE)
    x, y = x.ravel()[::step], y.ravel()[::step]
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not x.size:
        return None
    errors = y - x
    counted = None if not errors.any() else _histogram(errors)
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    return Change(left, right, different, noise, _histogram(x, low, high), _histogram(y, low, high), counted)


def _histogram(values: Any, low: float | None = None, high: float | None = None) -> svg.Counts:
    ends = (values.min() if low is None else low), (values.max() if high is None else high)
    counts, edges = np.histogram(values, bins=_BINS, range=ends)
    return counts.tolist(), edges.tolist()


def _constants(changes: list[Change]) -> str:
    if not changes:
        return ""
    rows = []
    for number, change in enumerate(changes[:_ROWS]):
        name = escaped(change.left.name) or f"tensor {change.left.index}"
        link = f'<a href="#c{number}">{name}</a>' if number < _PICTURES else name
        noise = change.noise
        rows.append(
            f'<tr>{sqnr_cell(noise.sqnr_db)}<td class="name mono">{link}</td>'
            f'<td class="fit">{shape_text(change.left.shape)}</td>{cell(f"{change.different:,}", change.different)}'
            f"{cell(short_text(noise.largest), noise.largest)}"
            f"{cell(short_text(noise.mean_error), noise.mean_error)}</tr>"
        )
    return table("changed constants", ("^SQNR dB", "Tensor", "Shape", "#Elements", "#Largest change", "#Mean"), rows)


def _pictures(changes: list[Change], names: list[str]) -> str:
    if not changes:
        return ""
    legend = (
        f'<div class="legend"><span><i class="tq-values"></i>{names[0]}, upwards</span><span><i class="tq-range"></i>'
        f'{names[1]}, downwards</span><span><i class="tq-stored"></i>second less first</span>'
        "<span>heights are square roots of counts</span></div>"
    )
    drawn = [_histograms(number, change) for number, change in enumerate(changes[:_PICTURES])]
    more = drawn[_OPEN:]
    rest = f'<div class="tensors">{"".join(more)}</div>'
    folded = f"<details><summary>{count(len(more), 'more constant')}</summary>{rest}</details>" if more else ""
    return f'{legend}<div class="tensors">{"".join(drawn[:_OPEN])}</div>{folded}'


def _sqnr(change: Change) -> str:
    decibels = change.noise.sqnr_db
    return f"{decibels_text(decibels)} dB" if math.isfinite(decibels) else "from zeros"


def _histograms(number: int, change: Change) -> str:
    name = escaped(change.left.name) or f"tensor {change.left.index}"
    share = 100 * change.different / max(math.prod(change.left.shape), 1)
    line = f"{_sqnr(change)}, {change.different:,} elements differ ({share:.3g} %)"
    errors = "" if change.errors is None else svg.errors(change.errors)
    return (
        f'<article class="tensor" id="c{number}"><h3 class="mono">{name}</h3>'
        f'<div class="line"><span>{line}</span></div>'
        f"{svg.histograms(change.values, change.others, [])}{errors}</article>"
    )
