# SPDX-License-Identifier: Apache-2.0
"""A view's graph in the dot language of Graphviz: a cluster for each subgraph, boxes in the color of one overlay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tq.inspection.graph import OPERATOR, Box, Graph, type_text
from tq.pages.html import NAME
from tq.saving import Target
from tq.texts import visible
from tq.view.colors import box_color
from tq.view.overlays import Overlay

if TYPE_CHECKING:
    from tq.view.view import View


def save(view: View, path: str | os.PathLike[str]) -> list[str]:
    """Writes the file, whole or not at all; returns its path.  OSError: as View.save."""
    Target(path, view).save(text(view).encode("utf-8"))
    return [os.fspath(path)]


def text(view: View) -> str:
    """The graph, colored by the view's first overlay."""
    lines = [
        "digraph model {",
        f"  graph [label={_quoted(view.name)}, labelloc=t, rankdir=TB]",
        '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="Helvetica", fontsize=10]',
        '  edge [fontname="Helvetica", fontsize=8]',
    ]
    overlay = view.overlays[0]
    for graph in view.graphs:
        lines += _cluster(view, graph, overlay)
    return "\n".join([*lines, "}", ""])


def _cluster(view: View, graph: Graph, overlay: Overlay) -> Iterator[str]:
    several = len(view.graphs) > 1
    if several:
        yield f"  subgraph cluster_{graph.index} {{"
        yield f"    label={_quoted(f'subgraph {graph.index} {graph.name}')}"
    for position, box in enumerate(graph.boxes):
        yield f"    {_name(graph, position)} [{_attributes(graph, box, overlay)}]"
    tensors = view.model.subgraphs[graph.index].tensors
    for arrow in graph.arrows:
        label = _quoted(type_text(tensors[arrow.tensor]))
        yield f"    {_name(graph, arrow.source)} -> {_name(graph, arrow.target)} [label={label}]"
    if several:
        yield "  }"


def _name(graph: Graph, position: int) -> str:
    return f"g{graph.index}_{position}"


def _attributes(graph: Graph, box: Box, overlay: Overlay) -> str:
    place = graph.index, box.index
    title = f"{box.index} {box.name}" if box.kind == OPERATOR else f"{box.kind} {box.name}"
    lines, color = [title, *box.lines], ""
    if box.kind == OPERATOR and place in overlay.levels:
        lines.append(f"{overlay.title}: {overlay.texts[place]}")
        color = f', fillcolor="{box_color(overlay.legend[overlay.levels[place]][0])}"'
    return f"label={_quoted(*lines)}{color}"


def _quoted(*lines: str) -> str:
    """A quoted string of centered lines."""
    shown = [visible(line[:NAME]).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(shown) + '"'
