# SPDX-License-Identifier: Apache-2.0
"""Runs the first subgraph of a model piece by piece, over all samples.

Between two pieces the tensors that later operators read are held for each sample, where they are small.  Where they
are large, the operators since the last ones that were held run again for the next piece, sample by sample.  Either way
a later piece can run behind operators whose constants have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

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


# Operators that run again at most: more take time, and tensors are held however large they are.
_MOST_AGAIN = 12


class Segments:
    """A model on its way through all samples.

    most: the bytes to hold between two pieces; some pieces hold more (_MOST_AGAIN).
    position: the operators before it have been asked for; values() gives the tensors that an operator there reads.
    """

    def __init__(
        self, model: Model, samples: Samples, most: int, limits: Limits = NONE, num_threads: int | None = None
    ) -> None:
        self._model, self._most, self._limits, self._num_threads = model, most, limits, num_threads
        graph = model.subgraphs[0]
        self._operators = graph.operators
        self._last = {i: op.index for op in self._operators for i in op.input_indices}
        self._constant = _constants(model)
        self._sizes = {tensor.index: tensor.nbytes * len(samples) for tensor in graph.tensors}
        partners = samples.partners(model)
        self._inputs = {tensor.index for tensor in partners.values()}  # the caller holds them
        self._live: list[dict[int, Array]] = [
            {partners[i].index: as_input(value, partners[i]) for i, value in row.items()} for row in samples.values
        ]
        self._start = 0  # the operators before it need not run again
        self._changes: Mapping[int, Change] = {}
        self.position = 0

    def advance(self, stop: int, changes: Mapping[int, Change] | None = None) -> None:
        """Goes on to the operator `stop`; changes: of operators by index."""
        self.position, self._changes = max(stop, self.position), changes or {}
        made = [i for op in self._operators[self._start : stop] for i in op.output_indices]
        wanted = [i for i in dict.fromkeys(made) if self._last.get(i, -1) >= stop and i not in self._constant]
        held = [i for i in self._live[0] if self._last.get(i, -1) >= stop and i not in self._inputs]
        size = sum(self._sizes[i] for i in (*wanted, *held))
        if size <= self._most or stop - self._start > _MOST_AGAIN:
            for row, values in zip(self._live, self._run(wanted), strict=True):
                row.update(zip(wanted, values, strict=True))
                for index in [i for i in row if self._last.get(i, -1) < stop]:
                    del row[index]
            self._start = self.position

    def values(self, tensor: int) -> Iterator[Array]:
        """A tensor that the operator at `position` reads, sample by sample."""
        for row, made in zip(self._live, self._run([] if tensor in self._live[0] else [tensor]), strict=True):
            yield made[0] if made else row[tensor]

    def _run(self, wanted: list[int]) -> Iterator[list[Array]]:
        """Tensors that the operators up to `position` make, sample by sample."""
        if not wanted:
            yield from ([] for _ in self._live)
            return
        operators, needed = [], set(wanted)
        for op in self._operators[self._start : self.position][::-1]:
            if needed & set(op.output_indices) or not op.output_indices:
                operators.append(op)
                needed.update(op.input_indices)
        made = {i for op in operators for i in op.output_indices}
        read = dict.fromkeys(i for op in operators[::-1] for i in op.input_indices)
        given = [i for i in read if i != _NO_TENSOR and i not in made and i not in self._constant]
        yield from self._run_piece(self._piece(operators, given, wanted), given, wanted)

    def _piece(self, operators: Iterable[Any], inputs: list[int], outputs: list[int]) -> Model:
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
            for index, change in self._changes.items():  # which may renumber tensors
                if index in parts:
                    change(parts[index])
            editor.set_rows("signature_defs", [])
            graph.keep_operators([parts[i] for i in sorted(parts)])
            graph.inputs, graph.outputs = ends
            editor.prune()
            return Model(editor.to_bytes())
        finally:
            editor.close()

    def _run_piece(self, piece: Model, inputs: list[int], outputs: list[int]) -> Iterator[list[Array]]:
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
            yield [interpreter.get_tensor(index) for index in ends]


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
