# SPDX-License-Identifier: Apache-2.0
"""Runs the first subgraph of a model piece by piece, over all samples.

Between two pieces, small tensors that later operators read are held for all samples.  Where these tensors are large,
nothing new is held: the next piece begins at the tensors that are held already, and runs the operators behind them
again.  Either way, constants of earlier operators may change between two pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.measuring import Samples, as_input
from tq.calibration.runs import in_order
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart
from tq.quantization.pieces import CHUNK, Chunk, Piece, Rows
from tq.running.limits import NONE, Limits

Array = NDArray[Any]
Change = Callable[[OperatorPart], None]  # edits an operator before a piece with this operator runs

_NO_TENSOR = -1
_QUANTIZED = ("INT8", "UINT8", "INT16")  # activations of layers


# The most operators that run again.  Where there would be more, tensors are held, however large they are.
_MOST_AGAIN = 12


class Segments:
    """A model that runs piece by piece, with the tensors that it holds for all samples.

    most: the bytes to hold between two pieces; some pieces hold more (_MOST_AGAIN).
    executor: whose workers run the pieces; None: this process.
    position: the index of an operator; chunks() gives the tensors that this operator reads.
    """

    def __init__(
        self,
        model: Model,
        samples: Samples,
        most: int,
        *,
        limits: Limits = NONE,
        num_threads: int | None = None,
        executor: Any = None,
    ) -> None:
        self._model, self._most, self._limits = model, most, limits
        self._executor, self._num_threads = executor, num_threads if executor is None else 1
        graph = model.subgraphs[0]
        self._tensors, self._operators = graph.tensors, graph.operators
        self._last = {i: op.index for op in self._operators for i in op.input_indices}
        self._constant = _constants(model)
        partners = samples.partners(model)
        self._inputs = {tensor.index for tensor in partners.values()}  # the caller holds them
        self._live: Rows = [
            {partners[i].index: as_input(value, partners[i]) for i, value in row.items()} for row in samples.values
        ]
        self._start = 0  # the first operator that runs for the next piece: the tensors that it reads are held
        self._changes: Mapping[int, Change] = {}
        self.position = 0

    def advance(self, stop: int, changes: Mapping[int, Change] | None = None) -> None:
        """Moves the position to operator `stop`.  changes: {index of an operator: its change}."""
        self.position, self._changes = max(stop, self.position), changes or {}
        made = [i for op in self._operators[self._start : stop] for i in op.output_indices]
        wanted = [i for i in dict.fromkeys(made) if self._last.get(i, -1) >= stop and i not in self._constant]
        held = [i for i in self._live[0] if self._last.get(i, -1) >= stop and i not in self._inputs]
        size = sum(self._tensors[i].nbytes for i in (*wanted, *held)) * len(self._live)
        if size <= self._most or stop - self._start > _MOST_AGAIN:
            self._hold(wanted)

    def _hold(self, wanted: list[int]) -> None:
        """Computes the wanted tensors and holds them; drops the tensors that no operator from `position` on reads."""
        piece = self._piece(wanted) if wanted else None
        if piece is not None:
            rows = ({i: row[i] for i in piece.inputs} for row in self._live)
            made: Iterable[list[Array]] = piece.run(rows)
            if self._executor is not None:
                tasks = ((piece, chunk) for chunk in _chunks(rows))
                made = chain.from_iterable(in_order(self._executor, Piece.outputs_of, tasks))
            for row, values in zip(self._live, made, strict=True):
                row.update(zip(wanted, values, strict=True))
        for row in self._live:
            for index in [i for i in row if self._last.get(i, -1) < self.position]:
                del row[index]
        self._start = self.position

    def chunks(self, tensor: int) -> Iterator[Chunk]:
        """A tensor that the operator at `position` reads: chunks of at most CHUNK samples, in order."""
        piece = None if tensor in self._live[0] else self._piece([tensor])
        needed = [tensor] if piece is None else piece.inputs
        found = self._tensors[tensor]
        quantization = found.quantization if found.type.name in _QUANTIZED and found.quantization else None
        for rows in _chunks({i: row[i] for i in needed} for row in self._live):
            yield Chunk(tensor, quantization, rows, piece)

    def _piece(self, wanted: list[int]) -> Piece:
        """The operators before `position` that compute the wanted tensors from held ones."""
        operators, needed = [], set(wanted)
        for op in self._operators[self._start : self.position][::-1]:
            if needed & set(op.output_indices) or not op.output_indices:
                operators.append(op)
                needed.update(op.input_indices)
        made = {i for op in operators for i in op.output_indices}
        read = dict.fromkeys(i for op in operators[::-1] for i in op.input_indices)
        given = [i for i in read if i != _NO_TENSOR and i not in made and i not in self._constant]
        return Piece(self._extract(operators, given, wanted), given, wanted, self._num_threads, self._limits)

    def _extract(self, operators: Iterable[Any], inputs: list[int], outputs: list[int]) -> bytes:
        editor = Editor(self._model)
        try:
            graph = editor.main
            parts = {op.index: graph.operators[op.index] for op in operators}
            read = {i for part in parts.values() for i in part.input_indices}
            behind = [op for op in self._operators if set(op.output_indices) & read & self._constant]
            for op in behind:  # DEQUANTIZE of constants runs in each piece
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
            return editor.to_bytes()
        finally:
            editor.close()


def _chunks(rows: Iterable[dict[int, Array]]) -> Iterator[Rows]:
    rest = iter(rows)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def _constants(model: Model) -> set[int]:
    """The constants, the variables, and the tensors that DEQUANTIZE computes from constants."""
    graph = model.subgraphs[0]
    found = {t.index for t in graph.tensors if t.is_constant or t.is_variable}
    known = found | {_NO_TENSOR}
    for op in graph.operators:
        if op.input_indices and all(i in known for i in op.input_indices) and op.name == "DEQUANTIZE":
            found |= set(op.output_indices)
            known |= found
    return found
