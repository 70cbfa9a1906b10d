# SPDX-License-Identifier: Apache-2.0
"""A run operator by operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tq._core import Interpreter, Model, Operator


@dataclass(frozen=True, repr=False)
class Step:
    """An operator that has just run, with its outputs."""

    index: int
    operator: Operator
    outputs: list[Any]  # arrays; None for an output that is left out

    def __repr__(self) -> str:
        outputs = ", ".join("none" if x is None else f"{x.dtype} {x.shape}" for x in self.outputs)
        return f"<tq.Step {self.index} {self.operator.name}: {outputs}>"


def trace(interpreter: Interpreter, model: Model) -> Iterator[Step]:
    """See Interpreter.trace."""
    for op in model.subgraphs[0].operators:
        interpreter._invoke(0, op.index, op.index + 1)
        outputs = [None if i < 0 else interpreter.get_tensor(i) for i in op.output_indices]
        yield Step(op.index, op, outputs)
