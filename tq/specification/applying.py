# SPDX-License-Identifier: Apache-2.0
"""Applies repairs to an open model, until none is left that changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart
from tq.specification.operands import has_scale, is_sound, operands, type_of
from tq.specification.recurrent import parts_of
from tq.specification.repairs import STAGES, Done, NotRepairable, Repair
from tq.specification.rule import Found
from tq.specification.rules import found_in, of_another_spec
from tq.specification.table import INTERPRETING, SPEC_OF_TYPE

Key = tuple[str, OperatorPart, str, int]  # rule, operator, side and place of the tensor

_MOST_ROUNDS = 4  # a repair may call for another: a new scale of weights for one of the bias


def key_of(item: Found) -> Key:
    """The identity of a finding, which later repairs do not change."""
    side, place = ("", -1) if item.operand is None else (item.operand.side, item.operand.place)
    return item.rule, item.operands.op, side, place


def each(editor: Editor, spec: str | None = None) -> Iterator[Found]:
    """All deviations from rules.  spec: the one that every operator must obey; None: the one of its types."""
    interpreted = {
        op.options.get(INTERPRETING[op.name])
        for graph in editor.subgraphs
        for op in graph.operators
        if op.name in INTERPRETING
    }
    for graph in editor.subgraphs:
        for op in graph.operators if not graph.index or graph.index not in interpreted else ():
            yield from of_operator(op, spec)


def of_operator(op: OperatorPart, spec: str | None = None) -> list[Found]:
    view = operands(op)
    other = [] if spec is None else of_another_spec(op, view, spec)
    if view is None:
        return other
    parts = parts_of(view) if view.row is not None and view.row.recurrent else ()
    return [*other, *(item for part in (view, *parts) for item in found_in(part))]


def _repaired(item: Found, repair: Repair) -> Done:
    """NotRepairable, or another ValueError, before anything is changed."""
    v = item.operands
    tensors = [operand.tensor for operand in (*v.activations, v.weights, v.bias) if operand is not None]
    if not all(map(is_sound, tensors)):
        raise NotRepairable("parameters or values do not fit a tensor's shape")
    with np.errstate(all="ignore"):
        return repair(item)


def apply(editor: Editor, wanted: Callable[[Found], bool]) -> tuple[list[tuple[Found, Done]], dict[Key, str]]:
    """Repairs the wanted findings.  Returns the repairs, and the reason for each finding that cannot be repaired."""
    done: list[tuple[Found, Done]] = []
    refused: dict[Key, str] = {}
    for _ in range(_MOST_ROUNDS):
        count = len(done)
        for stage in STAGES:
            for item in [found for found in each(editor) if found.rule in stage and wanted(found)]:
                now = next((x for x in of_operator(item.operands.op) if key_of(x) == key_of(item)), None)
                if now is None or key_of(now) in refused:
                    continue
                try:
                    done.append((now, _repaired(now, stage[now.rule])))
                except (NotRepairable, ValueError) as error:
                    refused[key_of(now)] = str(error)
        if len(done) == count:
            break
    return done, refused


def complete(editor: Editor) -> None:
    """Gives integer activations without a scale the one that follows from their operators' rows."""
    tensors = [tensor for graph in editor.subgraphs for tensor in graph.tensors if type_of(tensor) in SPEC_OF_TYPE]
    if any(map(has_scale, tensors)) and not all(map(has_scale, tensors)):
        apply(editor, lambda item: item.rule == "scale-missing" and item.operand in item.operands.activations)
