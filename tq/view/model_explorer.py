# SPDX-License-Identifier: Apache-2.0
"""A view's graph as Model Explorer reads it: a collection of graphs, and node data in files beside it.

The formats are those of ai-edge-model-explorer 0.1.34: a GraphCollection, and a ModelNodeData for each overlay with
figures.  Nodes are called by their subgraph and index, which the node data repeat.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tq.enums import name_of
from tq.inspection.graph import OPERATOR, Box, Graph, quantization_text
from tq.pages.html import NAME, shape_text
from tq.saving import Target, is_stdout
from tq.texts import visible
from tq.view.colors import box_color
from tq.view.overlays import Overlay

if TYPE_CHECKING:
    from tq._core import Operator, Tensor
    from tq.view.view import View

_DATA = ("sqnr", "time")  # overlays that become node data
_TEXT = 400  # characters of a value


def save(view: View, path: str | os.PathLike[str]) -> list[str]:
    """Writes the graphs to `path`, and node data to files beside it: graph.json, graph.sqnr.json, graph.time.json.

    Returns the paths.  OSError: as View.save; none is written where one of them may not be.  ValueError: node data and
    standard output.
    """
    name = os.fspath(path)
    stem, suffix = os.path.splitext(name)
    contents = {name: collection(view)}
    for overlay in view.overlays:
        if overlay.key in _DATA:
            contents[f"{stem}.{overlay.key}{suffix}"] = node_data(view, overlay)
    if is_stdout(name) and len(contents) > 1:
        raise ValueError("SQNR and time are written to files beside OUT, which is standard output: OUT must be a file")
    targets = [(Target(file, view), value) for file, value in contents.items()]
    for target, _ in targets:
        target.check()
    for target, value in targets:
        target.save(json.dumps(value, separators=(",", ":")).encode("ascii"))
    return list(contents)


def _plain(value: object) -> str:
    text = str(value)
    return visible(text[:_TEXT]) + ("…" if len(text) > _TEXT else "")


def _graph_id(graph: Graph) -> str:
    return _plain(graph.name[:NAME]) + f"#{graph.index}" if graph.name else f"subgraph {graph.index}"


def _node_id(graph: Graph, box: Box) -> str:
    return f"{graph.index}/{box.index}" if box.kind == OPERATOR else f"{graph.index}/{box.kind}/{box.index}"


def _pairs(values: Mapping[str, object]) -> list[dict[str, str]]:
    return [{"key": key, "value": _plain(value)} for key, value in values.items() if value not in ("", None)]


# ---- graphs ----


def collection(view: View) -> dict[str, Any]:
    """A GraphCollection."""
    ids = [_graph_id(graph) for graph in view.graphs]
    return {"label": _plain(view.name), "graphs": [_graph(view, graph, ids) for graph in view.graphs]}


def _graph(view: View, graph: Graph, ids: list[str]) -> dict[str, Any]:
    subgraph = view.model.subgraphs[graph.index]
    incoming: dict[int, list[dict[str, str]]] = {}
    for arrow in graph.arrows:
        source, target = graph.boxes[arrow.source], graph.boxes[arrow.target]
        incoming.setdefault(arrow.target, []).append(
            {
                "sourceNodeId": _node_id(graph, source),
                "sourceNodeOutputId": str(source.writes.index(arrow.tensor)),
                "targetNodeInputId": str(target.reads.index(arrow.tensor)),
            }
        )
    nodes = []
    for position, box in enumerate(graph.boxes):
        node: dict[str, Any] = {"id": _node_id(graph, box), "label": _plain(box.name), "namespace": ""}
        node["incomingEdges"] = incoming.get(position, [])
        if box.kind == OPERATOR:
            node["attrs"] = _attributes(view, subgraph.operators[box.index])
        for key, indices in (("inputsMetadata", box.reads), ("outputsMetadata", box.writes)):
            node[key] = [
                {"id": str(port), "attrs": _tensor(subgraph.tensors[index])}
                for port, index in enumerate(indices)
                if 0 <= index < len(subgraph.tensors)
            ]
        if box.calls:
            node["subgraphIds"] = [ids[index] for index in box.calls]
        nodes.append(node)
    return {"id": ids[graph.index], "nodes": nodes}


def _attributes(view: View, operator: Operator) -> list[dict[str, str]]:
    place = operator.subgraph.index, operator.index
    options = operator.options if isinstance(operator.options, dict) else {"options": operator.options}
    found: dict[str, object] = {_plain(key): name_of(value) for key, value in options.items()}
    found |= {overlay.title: overlay.texts[place] for overlay in view.overlays if place in overlay.texts}
    return _pairs({"operator": operator.index, "operator version": operator.version, **found})


def _tensor(tensor: Tensor) -> list[dict[str, str]]:
    return _pairs(
        {
            "tensor_index": tensor.index,
            "tensor_name": tensor.name,
            "__tensor_tag": tensor.name,
            "tensor_shape": f"{name_of(tensor.type).lower()}{shape_text(tensor.shape)}",
            "quantization": quantization_text(tensor.quantization),
        }
    )


# ---- node data ----


def node_data(view: View, overlay: Overlay) -> dict[str, Any]:
    """A ModelNodeData of an overlay's figures; exact outputs, of infinite SQNR, have none."""
    found: dict[str, Any] = {}
    for graph in view.graphs:
        values = {
            _node_id(graph, box): {"value": overlay.values[graph.index, box.index]}
            for box in graph.boxes
            if box.kind == OPERATOR and math.isfinite(overlay.values.get((graph.index, box.index), math.nan))
        }
        if values:
            found[_graph_id(graph)] = {"name": _UNITS[overlay.key], "results": values, **_colors(overlay.key)}
    return found


_UNITS = {"sqnr": "SQNR (dB)", "time": "time (µs)"}


def _colors(key: str) -> dict[str, Any]:
    """Thresholds are upper ends."""
    if key == "time":
        return {"gradient": [{"stop": 0, "bgColor": box_color("heat-0")}, {"stop": 1, "bgColor": box_color("heat-4")}]}
    grades = ((10, "bad"), (20, "warn"), (30, "fair"), (1000, "good"))
    return {"thresholds": [{"value": end, "bgColor": box_color(role)} for end, role in grades]}
