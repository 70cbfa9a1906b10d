# SPDX-License-Identifier: Apache-2.0
"""The option `io` of tq.quantize_model: integer inputs and outputs in place of float32."""

from __future__ import annotations

from collections.abc import Sequence

from tq._core import Model
from tq.editing.editor import Editor
from tq.editing.graph import SubgraphPart, TensorPart
from tq.editing.io_types import set_io_types
from tq.running.watching import callees


def set_io(editor: Editor, model: Model, io: str) -> bool:
    """Changes the inputs that the model quantizes, and the outputs that it dequantizes, of the first subgraph and of
    subgraphs that signatures run.  A subgraph that operators call keeps its inputs and outputs.  False: there are none.

    model: the editor's source."""
    if io == "float32":
        return False
    called = {index for graph in model.subgraphs for op in graph.operators for index in callees(model, op)}
    indices = dict.fromkeys([0, *(item.subgraph_index for item in model.signatures)])
    graphs = [editor.subgraphs[i] for i in indices if i not in called and 0 <= i < len(editor.subgraphs)]
    return any([_set_graph_io(graph, io) for graph in graphs])


def _set_graph_io(graph: SubgraphPart, io: str) -> bool:
    inputs: dict[TensorPart, str] = {}
    outputs: dict[TensorPart, str] = {}
    for tensor in graph.inputs:
        readers = tensor.consumers if tensor is not None else []
        if tensor is not None and readers and all(op.name == "QUANTIZE" for op in readers):
            inside = [item for op in readers for item in op.outputs if item is not None]
            inputs[tensor] = _io_type("input", tensor, inside, io)
            if tensor in graph.outputs:  # handed through
                outputs[tensor] = inputs[tensor]
    for tensor in graph.outputs:
        producer = tensor.producer if tensor is not None else None
        if tensor is not None and producer is not None and producer.name == "DEQUANTIZE":
            inside = [item for item in producer.inputs if item is not None]
            outputs[tensor] = _io_type("output", tensor, inside, io)
    set_io_types(graph, inputs, outputs)
    return bool(inputs or outputs)


def _io_type(what: str, tensor: TensorPart, inside: Sequence[TensorPart], io: str) -> str:
    types = {item.type_name.lower() for item in inside}
    if types not in (({"int16"},) if io == "int16" else ({"int8"}, {"uint8"})):
        raise ValueError(f"io is {io!r}, but {what} {tensor.name!r} is {' and '.join(sorted(types))} inside")
    return io
