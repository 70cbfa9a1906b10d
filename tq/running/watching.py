# SPDX-License-Identifier: Apache-2.0
"""Watching a model run, operator by operator: also the operators of the subgraphs that IF, WHILE and others call.

A called subgraph is run once by its caller, as in every run, and before that once more, by another interpreter,
operator by operator.  What that interpreter cannot run, such as a body that reads a variable which another subgraph
sets, is not seen.

A tensor of the first subgraph has its index for its key; key_of has those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Model, Operator, RunError
from tq.enums import name_of
from tq.running import recurrent
from tq.running.interpreter import Interpreter
from tq.running.limits import CODES, NONE, Limits

_SHIFT = 32
_MOST_TURNS = 10_000  # of a loop that are watched
_MOST_DEPTH = 4  # of calls in calls, each of which takes an interpreter
Update = Callable[[int, int, NDArray[Any]], None]  # subgraph, tensor index, values


def key_of(subgraph: int, index: int) -> int:
    return subgraph << _SHIFT | index


def subgraph_and_index(key: int) -> tuple[int, int]:
    """(subgraph, tensor index)."""
    return key >> _SHIFT, key & ((1 << _SHIFT) - 1)


@cache
def _options() -> dict[str, tuple[str, ...]]:
    """Operators that hand their inputs to subgraphs, and the options that name those (src/model/callees.def)."""
    found: dict[str, tuple[str, ...]] = {}
    for operator, _, option, inputs, _ in _core.callees():
        if inputs in ("SAME", "ALL_BUT_ONE"):
            found[operator] = (*found.get(operator, ()), option)
    return found


def callees(model: Model, operator: Operator) -> list[int]:
    """The subgraphs that an operator runs, in the order of its options; those that do not exist are left out."""
    found = []
    for name in _options().get(operator.name, ()):
        value = operator.options.get(name)
        for item in np.atleast_1d(np.asarray([] if value is None else value)).tolist():
            found.append(int(item))
    return found if all(0 < item < len(model.subgraphs) for item in found) else []


def reached(model: Model) -> list[int]:
    """The first subgraph, those that signatures run, and those that their operators run, and theirs."""
    if not model.subgraphs:
        return []
    found = list(dict.fromkeys([0, *(item.subgraph_index for item in model.signatures)]))
    found = [place for place in found if 0 <= place < len(model.subgraphs)]
    for place in found:
        for operator in model.subgraphs[place].operators:
            found += [item for item in callees(model, operator) if item not in found]
    return found


class Watcher:
    """Runs what is called a second time."""

    def __init__(self, model: Model, limits: Limits = NONE) -> None:
        self._limits = limits
        self._model = model
        self._inputs = {place: _floats(model.subgraphs[place].inputs) for place in reached(model)}
        self._steps = {
            place: [
                (
                    operator,
                    bool(recurrent.inner_indices(operator)),
                    operator.name in _options(),
                    _floats(operator.outputs),
                )
                for operator in model.subgraphs[place].operators
            ]
            for place in self._inputs
        }
        self._interpreters: list[Interpreter] = []  # by how deep calls are in each other
        self._shapes: dict[tuple[int, int], list[tuple[int, ...]]] = {}  # by depth and subgraph

    def watch(self, interpreter: Interpreter, subgraph: int, update: Update) -> None:
        """One run of a subgraph that nobody calls, whose inputs are set."""
        self._watch(interpreter, subgraph, update, 0)

    def _watch(self, interpreter: Interpreter, graph: int, update: Update, depth: int) -> None:
        def view(index: int) -> NDArray[Any]:
            return interpreter._view(index, graph)

        for index in self._inputs[graph]:
            update(graph, index, view(index))
        for place, (operator, is_recurrent, calls, written) in enumerate(self._steps[graph]):
            for index, values in recurrent.inner(operator, view) if is_recurrent else ():
                update(graph, index, np.ascontiguousarray(values, np.float32))
            if calls:
                self._enter(interpreter, graph, operator, update, depth)
            interpreter._invoke(graph, place, place + 1)
            for index in written:
                update(graph, index, view(index))

    def _enter(self, interpreter: Interpreter, graph: int, operator: Operator, update: Update, depth: int) -> None:
        """Runs what an operator calls, with its inputs as they are."""
        found = callees(self._model, operator)
        if not found or depth >= _MOST_DEPTH:
            return

        def call(subgraph: int, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
            return self._call(subgraph, values, update, depth)

        values = [interpreter._view(index, graph).copy() for index in _indices(operator.inputs)]
        try:
            if operator.name == "IF":
                call(found[0] if values[0].ravel()[0] else found[1], values[1:])
            elif operator.name == "STABLEHLO_CASE":
                place = int(values[0].ravel()[0])
                call(found[place if 0 <= place < len(found) else -1], values[1:])
            elif operator.name.endswith("WHILE"):
                for _ in range(_MOST_TURNS):
                    if not call(found[0], values)[0].ravel()[0]:
                        break
                    values = call(found[1], values)
            else:
                call(found[0], values)
        except (RunError, ValueError, IndexError) as error:
            if getattr(error, "code", None) in CODES:
                raise

    def _call(self, graph: int, values: Sequence[NDArray[Any]], update: Update, depth: int) -> list[NDArray[Any]]:
        if depth == len(self._interpreters):
            self._interpreters.append(Interpreter(model=self._model, num_threads=1, **self._limits._asdict()))
            self._interpreters[depth].allocate_tensors()
        interpreter = self._interpreters[depth]
        inputs = [tensor.index for tensor in self._model.subgraphs[graph].inputs if tensor is not None]
        shapes = [value.shape for value in values]
        if self._shapes.get((depth, graph)) != shapes:
            for index, shape in zip(inputs, shapes, strict=True):
                interpreter._resize(index, shape, graph)
            interpreter._allocate(graph)
            self._shapes[depth, graph] = shapes
        for index, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(index, value, graph)
        self._watch(interpreter, graph, update, depth + 1)
        return [interpreter._view(index, graph).copy() for index in _indices(self._model.subgraphs[graph].outputs)]


def is_float32(tensor: Any) -> bool:
    return name_of(tensor.type) == "FLOAT32"


def _indices(tensors: Iterable[Any]) -> list[int]:
    return [tensor.index for tensor in tensors if tensor is not None]


def _floats(tensors: Iterable[Any]) -> list[int]:
    return [tensor.index for tensor in tensors if tensor is not None and is_float32(tensor)]
