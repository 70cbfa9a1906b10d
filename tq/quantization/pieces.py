# SPDX-License-Identifier: Apache-2.0
"""Pieces of a model that run over chunks of samples.  Both can be pickled for an executor's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tq._core import Model, Quantization
from tq.accuracy.measuring import KERNELS
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits

Array = NDArray[Any]
Rows = list[dict[int, Array]]  # tensors of samples, by index

# Samples that a worker runs in a row.  The number is fixed, so that the last bits of sums do not depend on the workers.
CHUNK = 16


class Piece(NamedTuple):
    """Operators of a model that run on their own.  It can be pickled."""

    model: bytes
    inputs: list[int]  # tensors of the whole model
    outputs: list[int]
    num_threads: int | None
    limits: Limits

    def run(self, rows: Iterable[dict[int, Array]]) -> Iterator[list[Array]]:
        """The outputs for the inputs of one sample after another."""
        interpreter = Interpreter(
            model=Model(self.model), num_threads=self.num_threads, numerics=KERNELS, **self.limits._asdict()
        )
        starts = [t.index for t in interpreter.model.inputs if t is not None]
        ends = [t.index for t in interpreter.model.outputs if t is not None]
        shapes: list[tuple[int, ...]] | None = None
        for row in rows:
            now = [row[i].shape for i in self.inputs]
            if now != shapes:
                for index, shape in zip(starts, now, strict=True):
                    interpreter.resize_tensor_input(index, shape)
                interpreter.allocate_tensors()
                shapes = now
            interpreter.reset_all_variables()
            for index, i in zip(starts, self.inputs, strict=True):
                interpreter.set_tensor(index, row[i])
            interpreter.invoke()
            yield [interpreter.get_tensor(index) for index in ends]

    def outputs_of(self, rows: Rows) -> list[list[Array]]:
        return list(self.run(rows))


class Chunk(NamedTuple):
    """A tensor of some samples, held or made by a piece.  It can be pickled."""

    tensor: int
    quantization: Quantization | None
    rows: Rows
    piece: Piece | None

    def reals(self) -> Iterator[Array]:
        """The real values, sample by sample."""
        made = self.piece.run(self.rows) if self.piece is not None else ([row[self.tensor]] for row in self.rows)
        for (value,) in made:
            yield value if self.quantization is None else self.quantization.dequantize(value)
