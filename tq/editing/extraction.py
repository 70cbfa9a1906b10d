# SPDX-License-Identifier: Apache-2.0
"""Extraction of a part of a model: the operators between some of its tensors, as a new model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tq import _core
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorLike, TensorPart
from tq.sources import Source

_NO_TENSOR = -1
_RESOURCES = ("VAR_HANDLE", "HASHTABLE")


def _indices(operator: OperatorPart) -> tuple[set[int], set[int]]:
    return set(operator.input_indices) - {_NO_TENSOR}, set(operator.output_indices) - {_NO_TENSOR}


def _needed_operators(graph: SubgraphPart, inputs: set[int], outputs: set[int]) -> list[OperatorPart]:
    """The operators that compute the outputs from the inputs, in their order; arguments: tensor indices.

    An operator without outputs, which writes a variable, is needed if one of its inputs is; CALL_ONCE, which
    initializes variables and tables, if one of these is needed.
    """
    needed, found = set(outputs) - inputs, set()
    grows = True
    while grows:
        grows = False
        for operator in reversed(graph.operators):
            reads, makes = _indices(operator)
            if operator not in found and (makes & needed or (not makes and reads & needed)):
                found.add(operator)
                needed |= reads - inputs
                grows = True
    if any(operator.name in _RESOURCES for operator in found):
        found |= {operator for operator in graph.operators if operator.name == "CALL_ONCE"}
    return [operator for operator in graph.operators if operator in found]


def _check(graph: SubgraphPart, operators: list[OperatorPart], inputs: set[int], outputs: set[int]) -> None:
    """ValueError: the operators read a tensor that nothing computes, or write one of the inputs."""
    made: set[int] = set()
    for operator in operators:
        _reads, makes = _indices(operator)
        for index in makes & inputs:
            raise ValueError(
                f"operator {operator.index} {operator.name} is needed, and also writes {graph.tensors[index].name!r}, "
                "which is an input: cut before or behind all of its outputs"
            )
        made |= makes
    for index in sorted(set().union(outputs, *(_indices(operator)[0] for operator in operators)) - made - inputs):
        tensor = graph.tensors[index]
        if not (tensor.is_constant or tensor.is_variable or tensor.stored("external_buffer")):
            raise ValueError(f"tensor {tensor.name!r} is needed and nothing computes it: it must be one of the inputs")


def _called(operator: OperatorPart) -> Iterable[int]:
    for name, table, field, *_ in _core.callees():
        if operator.name == name and operator.options.type == table:
            value = operator.options[field]
            yield from value if isinstance(value, list) else [] if value is None else [value]


def _renumber_calls(operator: OperatorPart, new: dict[int, int]) -> None:
    for name, table, field, *_ in _core.callees():
        if operator.name == name and operator.options.type == table:
            value: Any = operator.options[field]
            changed = [new.get(i, i) for i in value] if isinstance(value, list) else new.get(value, value)
            if value is not None and changed != value:
                operator.options[field] = changed


def _keep_reachable(editor: Editor, graph: SubgraphPart) -> None:
    """Makes `graph` the first subgraph, and removes the subgraphs that it does not call, directly or not."""
    found = [graph]
    for item in found:  # which grows
        for operator in item.operators:
            for index in _called(operator):
                if 0 <= index < len(editor.subgraphs) and editor.subgraphs[index] not in found:
                    found.append(editor.subgraphs[index])
    new = {item.index: index for index, item in enumerate(found)}
    for item in found:
        for operator in item.operators:
            _renumber_calls(operator, new)
    editor.keep_subgraphs(found)


def _sign(editor: Editor, key: str, inputs: list[TensorPart], outputs: list[TensorPart]) -> None:
    editor.add_signature(key, {t.name: t for t in inputs}, {t.name: t for t in outputs})


def extract(model: Source, inputs: Iterable[TensorLike], outputs: Iterable[TensorLike], *, subgraph: int = 0) -> bytes:
    """The part of a model that computes `outputs` from `inputs`, as the bytes of a new model.

        part = tq.extract("model.tflite", inputs=["conv1/relu"], outputs=["block4/add"])

    inputs, outputs: names or indices of tensors of the subgraph, in the order of the new model's inputs and outputs.
    The part has the constants, quantization, options and called subgraphs that it needs, and nothing else.  If the
    subgraph has a signature, the part has one of the same key, with the tensors' names.

    ValueError: a tensor does not exist, or is needed and not given; the message names it.  ModelError, OSError: as
    tq.Model.
    """
    editor = Editor(model)
    graph = editor.subgraphs[subgraph]
    starts, ends = [graph.find(item) for item in inputs], [graph.find(item) for item in outputs]
    if not ends:
        raise ValueError("outputs: at least one tensor is needed")
    given, wanted = {tensor.index for tensor in starts}, {tensor.index for tensor in ends}
    operators = _needed_operators(graph, given, wanted)
    _check(graph, operators, given, wanted)
    keys = [signature.key for signature in editor.signatures_of(graph)]
    editor.set_rows("signature_defs", [])
    graph.keep_operators(operators)
    graph.inputs, graph.outputs = starts, ends
    for tensor in starts:
        if tensor.is_constant:
            tensor.data = None
    _keep_reachable(editor, graph)
    if editor.trailing and not any(operator.node in editor.trailing.bytecode for operator in operators):
        editor.trailing = None  # it describes the whole model
    if keys:
        _sign(editor, keys[0], starts, ends)
    editor.prune()
    return editor.to_bytes()
