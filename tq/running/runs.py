# SPDX-License-Identifier: Apache-2.0
"""A run operator by operator; its time; its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tq._core import Operator, Tensor
    from tq.inspection.plots import Axes
    from tq.running.interpreter import Interpreter

# ---- trace ----


@dataclass(frozen=True, repr=False)
class Step:
    """An operator that has just run, with its outputs."""

    index: int
    operator: Operator
    outputs: list[Any]  # arrays; None for an output that is left out

    def __repr__(self) -> str:
        outputs = ", ".join("none" if x is None else f"{x.dtype} {x.shape}" for x in self.outputs)
        return f"<tq.Step {self.index} {self.operator.name}: {outputs}>"


def trace(interpreter: Interpreter) -> Iterator[Step]:
    """See Interpreter.trace."""
    for op in interpreter.model.subgraphs[0].operators:
        interpreter._invoke(0, op.index, op.index + 1)
        outputs = [None if i < 0 else interpreter.get_tensor(i) for i in op.output_indices]
        yield Step(op.index, op, outputs)


# ---- profile ----


@dataclass(frozen=True)
class OperatorTime:
    """One row of a profile."""

    index: int
    name: str
    output: str  # the first output's name
    microseconds: float  # the mean of the runs; 0 for an operator that was folded at prepare
    bytes: int  # of inputs, constants among them, and outputs
    multiply_adds: int | None  # None: not known


@dataclass
class Profile:
    """The time of each operator of a run.  `str()` is a table."""

    rows: list[OperatorTime]
    runs: int

    @property
    def microseconds(self) -> float:
        """The sum over all operators: the time of one run."""
        return sum(row.microseconds for row in self.rows)

    def by_name(self) -> dict[str, float]:
        """{operator name: microseconds of one run}, the longest first."""
        total: dict[str, float] = {}
        for row in self.rows:
            total[row.name] = total.get(row.name, 0.0) + row.microseconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        whole = self.microseconds or 1.0
        lines = ["   # operator                       us     %        bytes           MACs  output"]
        for row in self.rows:
            macs = "-" if row.multiply_adds is None else f"{row.multiply_adds}"
            lines.append(
                f"{row.index:4} {row.name[:24]:24} {row.microseconds:8.1f} {100 * row.microseconds / whole:5.1f}"
                f" {row.bytes:12} {macs:>14}  {row.output[:60]}"
            )
        lines.append(f"     {'all':24} {self.microseconds:8.1f}, the mean of {self.runs} runs")
        lines += [f"     {name[:24]:24} {us:8.1f} {100 * us / whole:5.1f}" for name, us in self.by_name().items()]
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """A bar for each operator.  Needs matplotlib."""
        from tq.running.plots import plot_profile

        return plot_profile(self, ax)


def _nbytes(tensors: Sequence[Tensor | None], changed: Mapping[int, tuple[int, ...]]) -> int:
    """Bytes of tensors; changed: {tensor index: shape} where the shape is not the file's."""
    total = 0
    for tensor in tensors:
        if tensor is None or not tensor.nbytes:
            continue
        size = int(np.prod(tensor.shape, dtype=np.int64)) if tensor.shape else 1
        now = int(np.prod(changed.get(tensor.index, tensor.shape), dtype=np.int64))
        total += tensor.nbytes * now // size if size else 0
    return total


def profile(interpreter: Interpreter, runs: int, warm_up: int) -> Profile:
    """See Interpreter.profile."""
    if runs < 1 or warm_up < 0:
        raise ValueError(f"runs is {runs} and warm_up {warm_up}; they need to be at least 1 and 0")
    for _ in range(warm_up):
        interpreter._invoke()
    interpreter._profile_start(True)
    try:
        for _ in range(runs):
            interpreter._invoke()
    finally:
        interpreter._profile_start(False)
    rows = []
    times, changed = interpreter._profile_read(0), interpreter._changed_shapes(0)
    for op, (count, nanoseconds, _) in zip(interpreter.model.subgraphs[0].operators, times, strict=True):
        output = next((t.name for t in op.outputs if t is not None), "")
        size = _nbytes([*op.inputs, *op.outputs], changed)
        micro = nanoseconds / count / 1000 if count else 0.0
        rows.append(OperatorTime(op.index, op.name, output, micro, size, op.multiply_adds))
    return Profile(rows, runs)


# ---- memory ----


class Placed(NamedTuple):
    """A tensor, or an operator's scratch, in the arena."""

    name: str
    tensor: int | None  # None: scratch
    offset: int
    nbytes: int
    first: int  # the operator that writes it; -1: an input
    last: int  # the last operator that reads it


@dataclass
class MemoryPlan:
    """The layout of a subgraph's memory.  `str()` is a table."""

    arena: int  # bytes
    placed: list[Placed]  # tensors and scratch in the arena
    own: dict[int, int]  # bytes of tensors with memory of their own: variables, computed constants, dynamic ones
    used: int  # bytes of the whole interpreter; prepacked weights count for the interpreter that made them
    peak: int  # the greatest value of `used`

    @property
    def lower_bound(self) -> int:
        """The greatest sum of bytes that live at the same operator: no plan takes less."""
        steps: dict[int, int] = {}
        ends = {(item.offset, item.last): item for item in self.placed if item.nbytes}
        for item in self.placed:
            # An output in its input's memory counts once.
            taken = ends.get((item.offset, item.first), item) is not item
            steps[item.first + taken] = steps.get(item.first + taken, 0) + item.nbytes
            steps[item.last + 1] = steps.get(item.last + 1, 0) - item.nbytes
        most = now = 0
        for step in sorted(steps):
            now += steps[step]
            most = max(most, now)
        return most

    def __str__(self) -> str:
        lines = ["     offset        bytes  first   last  tensor"]
        for item in sorted(self.placed, key=lambda item: (item.offset, item.first)):
            tensor = "scratch" if item.tensor is None else f"{item.tensor}"
            lines.append(f"{item.offset:11} {item.nbytes:12} {item.first:6} {item.last:6}  {tensor} {item.name[:60]}")
        lines.append(f"arena {self.arena} bytes; at least {self.lower_bound} are in use at once")
        if self.own:
            lines.append(f"{len(self.own)} tensors have {sum(self.own.values())} bytes of their own")
        lines.append(f"the interpreter uses {self.used} bytes, at most {self.peak}")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """A box for each tensor: operators across, bytes upwards.  Needs matplotlib."""
        from tq.running.plots import plot_memory_plan

        return plot_memory_plan(self, ax)


def memory_plan(interpreter: Interpreter, subgraph: int) -> MemoryPlan:
    """See Interpreter.memory_plan."""
    graph = interpreter.model.subgraphs[subgraph]
    arena, tensors, scratch, own = interpreter._memory_plan(subgraph)
    placed = [
        Placed(graph.tensors[index].name, index, offset, size, first, last)
        for index, offset, size, first, last in tensors
    ]
    placed += [Placed(graph.operators[k].name, None, offset, size, k, k) for k, offset, size in scratch]
    used, peak = interpreter._memory_used()
    return MemoryPlan(arena, placed, dict(own), used, peak)
