# SPDX-License-Identifier: Apache-2.0
"""A model's graphs with the figures of its operators, which a page or another program shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tq.inspection.graph import Graph, graph_of

if TYPE_CHECKING:
    from tq._core import Model
    from tq.reports.report import Report
    from tq.view.overlays import Overlay


class Drawing:
    """The graphs of a model.

    overlays: the figures that color operators.
    notes: the figures that are missing, and why.
    report: the errors beside the other model; None without one.
    """

    model: Model
    name: str
    graphs: list[Graph]
    overlays: list[Overlay]
    notes: list[str]
    report: Report | None

    def __init__(
        self, model: Model, name: str, overlays: list[Overlay], notes: list[str], report: Report | None
    ) -> None:
        self.model, self.name, self.overlays, self.notes, self.report = model, name, overlays, notes, report
        self.graphs = [graph_of(subgraph) for subgraph in model.subgraphs]
