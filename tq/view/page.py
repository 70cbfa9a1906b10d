# SPDX-License-Identifier: Apache-2.0
"""The page of a drawing: one HTML document that links to nothing outside itself.

The document holds the operators as a list of text, the graph as numbers, and the page of each operator and tensor in
compressed blocks, which page.js draws and shows.  Texts from files are escaped or made visible here.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tq.inspection.graph import INPUT, OPERATOR, OUTPUT, Box, Graph, type_text
from tq.inspection.notebook import operator_html, tensor_html
from tq.pages.html import NAME, count, escaped, fold, size_text
from tq.pages.html import facts as fact_table
from tq.pages.layout import is_available
from tq.pages.style import DARK, LIGHT, style_sheet
from tq.pages.theme import BUTTON, SCRIPT, palettes
from tq.texts import visible
from tq.version import __version__
from tq.view.colors import DARK_BOXES, LIGHT_BOXES
from tq.view.overlays import Overlay

if TYPE_CHECKING:
    from tq._core import Operator, Subgraph
    from tq.view.records import Drawing

_BLOCK = 64  # pages that are compressed together
_LIST = 1000  # operators in one list
_PART = 500
_KINDS = (INPUT, OPERATOR, OUTPUT)
_CODE = {kind: number for number, kind in enumerate(_KINDS)}

# Forbids a browser to load anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def document(view: Drawing) -> str:
    """The document of a view."""
    name = escaped(view.name)
    data = _json(_data(view))
    blocks = "".join(f'<script type="text/plain" class="pages">{block}</script>' for block in _blocks(view))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{name}: graph</title>\n'
        f"{style_sheet()}<style>\n{_colors()}\n{_asset('page.css')}</style></head>\n"
        f'<body>{_header(view, name)}<div id="all">{_STAGE}{_lists(view)}</div>'
        f'<script type="application/json" id="data">{data}</script>{blocks}'
        f"<script>{SCRIPT}{_asset('page.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _colors() -> str:
    return palettes(LIGHT | LIGHT_BOXES, DARK | DARK_BOXES)


def _json(value: Any) -> str:
    """JSON that no HTML parser takes for an end of the script element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _plain(text: str, most: int = NAME) -> str:
    return visible(text[:most]) + ("…" if len(text) > most else "")


# ---- the parts that are text ----

_STAGE = """<main><div id="stage" tabindex="0" role="application" aria-label="Graph of operators"
aria-describedby="keys"><canvas id="canvas" aria-hidden="true"></canvas></div>
<p id="keys" class="hidden">Arrow keys go along the graph, plus and minus zoom, 0 shows all of it, Enter goes to the
panel.</p><div id="zoom"><button type="button" id="closer" aria-label="Zoom in">+</button><button type="button"
id="farther" aria-label="Zoom out">−</button><button type="button" id="fit" aria-label="Show the whole graph">▣</button>
</div><p id="legend"></p></main>
<section id="panel" tabindex="0" aria-label="Details"><div id="details"><p class="muted">Choose an operator in the
graph or in the list, or search for one.</p></div></section>"""


def _header(view: Drawing, name: str) -> str:
    model = view.model
    operators = sum(len(graph.operators) for graph in model.subgraphs)
    constants = model.summary().constant_bytes
    facts = [size_text(model.nbytes), count(operators, "operator"), f"{size_text(constants)} of constants"]
    if len(model.subgraphs) > 1:
        facts.append(count(len(model.subgraphs), "subgraph"))
    if view.report is not None:
        second = view.report.float_name if view.report.quantized is model else view.report.quantized_name
        facts.append(f"beside {escaped(second)}")
    choices = "".join(f'<option value="{overlay.key}">{overlay.title}</option>' for overlay in view.overlays)
    notes = "".join(f'<li class="t-warn">{escaped(note, 400)}</li>' for note in view.notes)
    if not is_available():
        notes += "<li class=\"muted\">In order of execution: <code>pip install 'tq[view]'</code> brings layers.</li>"
    return (
        f'<header><h1>{name}</h1><p class="muted">{" · ".join(facts)}</p>'
        '<form id="tools" role="search"><span><label for="search">Search</label> '
        '<input id="search" type="search" autocomplete="off" spellcheck="false" '
        'placeholder="name, type or index" aria-describedby="found"></span>'
        f'<span><label for="overlay">Color by</label> <select id="overlay">{choices}</select></span>{BUTTON}</form>'
        f'<p id="found" role="status"></p><ul id="results" hidden></ul>{f"<ul>{notes}</ul>" if notes else ""}</header>'
    )


def _lists(view: Drawing) -> str:
    """The operators of every subgraph, as text."""
    parts = [_list(graph, graph.index == 0) for graph in view.graphs]
    return f'<nav id="lists" aria-label="Operators"><h2>Operators</h2>{"".join(parts)}{_footer()}</nav>'


def _list(graph: Graph, shown: bool) -> str:
    rows = [
        f'<li><button type="button" data-box="{position}"><span class="number">{box.index}</span> '
        f'{escaped(box.name)}<span class="muted"> {escaped(box.lines[0]) if box.lines else ""}</span></button></li>'
        for position, box in enumerate(graph.boxes)
        if box.kind == OPERATOR
    ]
    name = f" “{escaped(graph.name)}”" if graph.name else ""
    body = f"<ol>{''.join(rows)}</ol>" if len(rows) <= _LIST else "".join(_parts(rows))
    return (
        f'<details class="graph" data-graph="{graph.index}"{" open" if shown else ""}><summary>Subgraph {graph.index}'
        f'{name}<span class="muted"> {count(len(rows), "operator")}</span></summary>{body}</details>'
    )


def _parts(rows: list[str]) -> Iterator[str]:
    """A long list in parts that open: a browser lays out only open ones."""
    for first in range(0, len(rows), _PART):
        part = rows[first : first + _PART]
        title = f"{first} to {first + len(part) - 1}"
        yield f'<details class="part"><summary>{title}</summary><ol>{"".join(part)}</ol></details>'


def _footer() -> str:
    return f'<p class="muted">Made by tq {__version__}.</p>'


# ---- the graph as numbers ----


def _data(view: Drawing) -> dict[str, Any]:
    """The data that page.js reads."""
    first, graphs = 0, []
    for graph in view.graphs:
        subgraph = view.model.subgraphs[graph.index]
        graphs.append(_graph(graph, subgraph, view.overlays, first))
        first += len(subgraph.operators) + len(subgraph.tensors)
    legends = [
        {"key": overlay.key, "title": overlay.title, "note": overlay.note, "legend": overlay.legend}
        for overlay in view.overlays
    ]
    return {"graphs": graphs, "overlays": legends, "block": _BLOCK}


def _graph(graph: Graph, subgraph: Subgraph, overlays: list[Overlay], first_page: int) -> dict[str, Any]:
    made = graph.layout(extra=1)
    sizes = graph.sizes(extra=1)
    boxes = [
        [_CODE[box.kind], box.index, _plain(box.name), [_plain(line) for line in box.lines],
         *(round(number) for number in (*corner, *size)), box.reads, box.writes, box.calls]
        for box, corner, size in zip(graph.boxes, made.corners, sizes, strict=True)
    ]  # fmt: skip
    arrows = [
        [arrow.source, arrow.target, arrow.tensor, [round(number) for point in route for number in point]]
        for arrow, route in zip(graph.arrows, made.routes, strict=True)
    ]
    return {
        "index": graph.index,
        "name": _plain(graph.name),
        "width": math.ceil(made.width),
        "height": math.ceil(made.height),
        "boxes": boxes,
        "arrows": arrows,
        "tensors": [[_plain(tensor.name), _plain(type_text(tensor))] for tensor in subgraph.tensors],
        "page": first_page,
        "operators": len(subgraph.operators),
        "levels": [_of_boxes(graph, overlay.levels, -1) for overlay in overlays],
        "texts": [_of_boxes(graph, overlay.texts, "") for overlay in overlays],
    }


def _of_boxes(graph: Graph, found: dict[tuple[int, int], Any], missing: Any) -> list[Any]:
    """The figures of an overlay by box."""

    def of(box: Box) -> Any:
        value = found.get((graph.index, box.index), missing) if box.kind == OPERATOR else missing
        return _plain(value, 400) if isinstance(value, str) else value

    return [of(box) for box in graph.boxes]


# ---- pages of operators and tensors ----


def _pages(view: Drawing) -> Iterator[str]:
    """The panels of each subgraph: those of operators, then those of tensors, in order."""
    for subgraph in view.model.subgraphs:
        for operator in subgraph.operators:
            yield _figures(view, operator) + operator_html(operator, styles=False)
        for tensor in subgraph.tensors:
            yield tensor_html(tensor, styles=False)


def _figures(view: Drawing, operator: Operator) -> str:
    place = operator.subgraph.index, operator.index
    rows = [(overlay.title, escaped(overlay.texts[place], 2000)) for overlay in view.overlays if place in overlay.texts]
    return f'<div class="tq-repr">{fold("Figures", "", fact_table(rows), shown=True)}</div>'


def _blocks(view: Drawing) -> Iterator[str]:
    """Pages as JSON, _BLOCK of them compressed together, as base64."""
    block: list[str] = []
    for page in _pages(view):
        block.append(page)
        if len(block) == _BLOCK:
            yield _compressed(block)
            block = []
    if block:
        yield _compressed(block)


def _compressed(block: list[str]) -> str:
    return base64.b64encode(zlib.compress(json.dumps(block).encode("ascii"), 6)).decode("ascii")
