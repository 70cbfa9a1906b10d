# SPDX-License-Identifier: Apache-2.0
"""Runs the first subgraph of a model piece by piece, over all samples at once.

Between two pieces the tensors that later operators read are held for each sample.  So a later piece can run behind
operators whose constants have changed meanwhile, and no operator runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.measuring import Samples, as_input
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

Array = NDArray[Any]
Change = Callable[[OperatorPart], None]  # of an operator of the piece, before the piece is run

_NO_TENSOR = -1


class Segments:
    """A model on its way through all samples.

    position: the operators before it have run.  value() gives tensors that a piece was asked for.
    """

    def __init__(self, model: Model, samples: Samples, limits: Limits = NONE, num_threads: int | None = None) -> None:
        self._model, self._limits, self._num_threads = model, limits, num_threads
        graph = model.subgraphs[0]
        self._operators = graph.operators
        self._last = {i: op.index for op in self._operators for i in op.input_indices}
        self._constant = _constants(model)
        partners = samples.partners(model)
        self._live: list[dict[int, Array]] = [
            {partners[i].index: as_input(value, partners[i]) for i, value in row.items()} for row in samples.values
        ]
        self.position = 0

    def __len__(self) -> int:
        return len(self._live)

    def value(self, sample: int, tensor: int) -> Array:
        return self._live[sample][tensor]

    def advance(self, stop: int, changes: Mapping[int, Change] | None = None) -> None:
        """Runs the operators up to `stop`; changes: of operators by index."""
        start, self.position = self.position, max(stop, self.position)
        operators = self._operators[start:stop]
        wanted = [i for op in operators for i in op.output_indices if self._last.get(i, -1) >= stop]
        wanted = [i for i in dict.fromkeys(wanted) if i not in self._constant]
        if wanted:
            made = {i for op in operators for i in op.output_indices}
            read = dict.fromkeys(i for op in operators for i in op.input_indices)
            given = [i for i in read if i != _NO_TENSOR and i not in made and i not in self._constant]
            self._run(self._piece(operators, given, wanted, changes or {}), given, wanted)
        for row in self._live:
            for index in [i for i in row if self._last.get(i, -1) < stop]:
                del row[index]

    def _piece(
        self, operators: Iterable[Any], inputs: list[int], outputs: list[int], changes: Mapping[int, Change]
    ) -> Model:
        editor = Editor(self._model)
        try:
            graph = editor.main
            parts = {op.index: graph.operators[op.index] for op in operators}
            read = {i for part in parts.values() for i in part.input_indices}
            behind = [op for op in self._operators if set(op.output_indices) & read & self._constant]
            for op in behind:  # constants are computed anew
                parts.setdefault(op.index, graph.operators[op.index])
            tensors = graph.tensors
            ends = [tensors[i] for i in inputs], [tensors[i] for i in outputs]
            for index, change in changes.items():  # which may renumber tensors
                if index in parts:
                    change(parts[index])
            editor.set_rows("signature_defs", [])
            graph.keep_operators([parts[i] for i in sorted(parts)])
            graph.inputs, graph.outputs = ends
            editor.prune()
            return Model(editor.to_bytes())
        finally:
            editor.close()

    def _run(self, piece: Model, inputs: list[int], outputs: list[int]) -> None:
        interpreter = Interpreter(
            model=piece, num_threads=self._num_threads, numerics="reference", **self._limits._asdict()
        )
        starts = [t.index for t in piece.inputs if t is not None]
        ends = [t.index for t in piece.outputs if t is not None]
        shapes: list[tuple[int, ...]] | None = None
        for row in self._live:
            now = [row[i].shape for i in inputs]
            if now != shapes:
                for index, shape in zip(starts, now, strict=True):
                    interpreter.resize_tensor_input(index, shape)
                interpreter.allocate_tensors()
                shapes = now
            interpreter.reset_all_variables()
            for index, i in zip(starts, inputs, strict=True):
                interpreter.set_tensor(index, row[i])
            interpreter.invoke()
            for index, i in zip(ends, outputs, strict=True):
                row[i] = np.array(interpreter.get_tensor(index))


def _constants(model: Model) -> set[int]:
    """The tensors that do not depend on inputs, all of them without those of variables."""
    graph = model.subgraphs[0]
    found = {t.index for t in graph.tensors if t.is_constant or t.is_variable}
    known = found | {_NO_TENSOR}
    for op in graph.operators:
        if op.input_indices and all(i in known for i in op.input_indices) and op.name == "DEQUANTIZE":
            found |= set(op.output_indices)
            known |= found
    return found
