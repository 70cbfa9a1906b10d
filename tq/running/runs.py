# SPDX-License-Identifier: Apache-2.0
"""A run operator by operator; its time; its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tq.pages.tables import Result, Table
from tq.texts import middle

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

# Without a number: runs until the time is over, at least one.
_WARM_UP_SECONDS, _WARM_UP_RUNS = 0.1, 50


@dataclass(frozen=True)
class OperatorTime:
    """One row of a profile."""

    index: int
    name: str
    output: str  # the first output's name
    microseconds: float  # the median of the runs; 0 for an operator that was folded at prepare
    bytes: int  # of inputs, constants among them, and outputs
    multiply_adds: int | None  # None: not known
    mean: float = 0.0  # of the runs' microseconds
    least: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class RunTimes:
    """The time of whole runs, in microseconds."""

    first: float  # of the first run to warm up, which is no part of the others; 0: there was none
    least: float
    median: float
    mean: float
    most: float
    deviation: float  # the standard deviation

    @classmethod
    def of(cls, first: float, times: Sequence[float]) -> RunTimes:
        least, most = min(times), max(times)
        return cls(first, least, float(np.median(times)), float(np.mean(times)), most, float(np.std(times)))


@dataclass(repr=False)
class Profile(Result):
    """The time of each operator of a run.  `str()` is a table."""

    rows: list[OperatorTime]
    runs: int
    warm_up: int = 0
    times: RunTimes | None = None  # of whole runs
    memory: int = 0  # bytes of the interpreter, at most
    init: float = 0.0  # microseconds of making the interpreter and allocating its tensors

    @property
    def microseconds(self) -> float:
        """The sum over all operators' medians: the time of one run without the steps between operators."""
        return sum(row.microseconds for row in self.rows)

    def by_name(self) -> dict[str, float]:
        """{operator name: microseconds of one run}, the longest first."""
        total: dict[str, float] = {}
        for row in self.rows:
            total[row.name] = total.get(row.name, 0.0) + row.microseconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def table(self) -> Table:
        """A row for each operator."""
        heads = (
            "#index",
            "operator",
            "#median_us",
            "#mean_us",
            "#min_us",
            "#max_us",
            "#bytes",
            "#multiply_adds",
            "output",
        )
        rows = [
            (r.index, r.name, r.microseconds, r.mean, r.least, r.most, r.bytes, r.multiply_adds, r.output)
            for r in self.rows
        ]
        return Table(heads, rows)

    def summary(self) -> list[str]:
        """The time of runs and of preparing, memory, and the operators that take most."""
        whole = self.microseconds or 1.0
        names = [f"{name} {100 * us / whole:.0f} %" for name, us in list(self.by_name().items())[:3]]
        lines = [f"{len(self.rows)} operators take {self.microseconds:.1f} us: {', '.join(names)}"]
        if self.times is not None:
            t = self.times
            lines.append(
                f"{self.runs} runs after {self.warm_up} to warm up: median {t.median:.1f} us, mean {t.mean:.1f}, "
                f"min {t.least:.1f}, max {t.most:.1f}, standard deviation {t.deviation:.1f}"
            )
            lines.append(f"first run {t.first:.1f} us; init {self.init:.1f} us; memory {self.memory} bytes at most")
        return lines

    def __str__(self) -> str:
        whole = self.microseconds or 1.0
        lines = ["   # operator                       us     %      min      max        bytes           MACs  output"]
        for row in self.rows:
            macs = "-" if row.multiply_adds is None else f"{row.multiply_adds}"
            lines.append(
                f"{row.index:4} {row.name[:24]:24} {row.microseconds:8.1f} {100 * row.microseconds / whole:5.1f}"
                f" {row.least:8.1f} {row.most:8.1f} {row.bytes:12} {macs:>14}  {middle(row.output)}"
            )
        lines.append(f"     {'all':24} {self.microseconds:8.1f}, the median of {self.runs} runs")
        lines += [f"     {name[:24]:24} {us:8.1f} {100 * us / whole:5.1f}" for name, us in self.by_name().items()]
        return "\n".join([*lines, *self.summary()[1:]])

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


def _warmed(interpreter: Interpreter, warm_up: int | None) -> tuple[int, float]:
    """Runs that are not measured: their number, and the microseconds of the first."""
    most = _WARM_UP_RUNS if warm_up is None else warm_up
    end, first = time.perf_counter() + _WARM_UP_SECONDS, 0.0
    for done in range(most):
        took = _run(interpreter)
        first = first if done else took
        if warm_up is None and time.perf_counter() > end:
            return done + 1, first
    return most, first


def _run(interpreter: Interpreter) -> float:
    """The microseconds of one run."""
    start = time.perf_counter()
    interpreter._invoke()
    return 1e6 * (time.perf_counter() - start)


def profile(interpreter: Interpreter, runs: int, warm_up: int | None) -> Profile:
    """See Interpreter.profile."""
    if runs < 1 or (warm_up is not None and warm_up < 0):
        raise ValueError(f"runs is {runs} and warm_up {warm_up}; they need to be at least 1 and 0")
    warmed, first = _warmed(interpreter, warm_up)
    operators = interpreter.model.subgraphs[0].operators
    spent, times = np.zeros((runs, len(operators))), []
    try:
        for row in spent:
            interpreter._profile_start(True)  # at zero
            times.append(_run(interpreter))
            row[:] = [nanoseconds / 1000 for _count, nanoseconds, _folded in interpreter._profile_read(0)]
    finally:
        interpreter._profile_start(False)
    rows, changed = [], interpreter._changed_shapes(0)
    for op, micros in zip(operators, spent.T, strict=True):
        output = next((t.name for t in op.outputs if t is not None), "")
        figures = float(np.mean(micros)), float(np.min(micros)), float(np.max(micros))
        size = _nbytes([*op.inputs, *op.outputs], changed)
        rows.append(OperatorTime(op.index, op.name, output, float(np.median(micros)), size, op.multiply_adds, *figures))
    _used, peak = interpreter._memory_used()
    return Profile(rows, runs, warmed, RunTimes.of(first, times), peak, 1e6 * interpreter.preparation_seconds)


# ---- memory ----


class Placed(NamedTuple):
    """A tensor, or an operator's scratch, in the arena."""

    name: str
    tensor: int | None  # None: scratch
    offset: int
    nbytes: int
    first: int  # the operator that writes it; -1: an input
    last: int  # the last operator that reads it


@dataclass(repr=False)
class MemoryPlan(Result):
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
            lines.append(
                f"{item.offset:11} {item.nbytes:12} {item.first:6} {item.last:6}  {tensor} {middle(item.name)}"
            )
        return "\n".join([*lines, *self.summary()])

    def table(self) -> Table:
        """A row for each tensor and scratch."""
        placed = sorted(self.placed, key=lambda item: (item.offset, item.first))
        rows = [(i.offset, i.nbytes, i.first, i.last, i.tensor, i.name) for i in placed]
        return Table(("#offset", "#bytes", "#first", "#last", "#tensor", "name"), rows)

    def summary(self) -> list[str]:
        """The bytes of the arena, of tensors outside of it, and of the interpreter."""
        lines = [f"arena {self.arena} bytes; at least {self.lower_bound} are in use at once"]
        if self.own:
            lines.append(f"{len(self.own)} tensors have {sum(self.own.values())} bytes of their own")
        return [*lines, f"the interpreter uses {self.used} bytes, at most {self.peak}"]

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
