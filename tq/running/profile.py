# SPDX-License-Identifier: Apache-2.0
"""The time of a run, operator by operator."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tq.inspection.plots import new_axes
from tq.pages.tables import Result, Table, aligned
from tq.texts import middle

if TYPE_CHECKING:
    from tq._core import Interpreter, Model, Tensor
    from tq.inspection.plots import Axes

_WIDE = 100  # characters of a line that has room for the least and the greatest time
_NAME = 40  # characters of an operator's name; a custom operator may have any
_MOST_NAMES = 60  # more operators than this have no names on a plot's axis

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
    peak: float | None = (
        None  # billions of multiply-adds a second that the machine reaches with its types; None: not asked
    )

    @property
    def speed(self) -> float | None:
        """Billions of multiply-adds a second; None: their number is not known, or there was nothing to run."""
        return self.multiply_adds / self.microseconds / 1e3 if self.multiply_adds and self.microseconds else None


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
            "#gmacs",
            "#peak_gmacs",
            "output",
        )
        rows = [
            (
                r.index,
                r.name,
                r.microseconds,
                r.mean,
                r.least,
                r.most,
                r.bytes,
                r.multiply_adds,
                r.speed,
                r.peak,
                r.output,
            )
            for r in self.rows
        ]
        return Table(heads, rows)

    def summary(self) -> list[str]:
        """The time of runs and of preparing, memory, and the operators that take most."""
        whole = self.microseconds or 1.0
        names = [f"{name} {100 * us / whole:.0f} %" for name, us in list(self.by_name().items())[:3]]
        lines = [
            f"{len(self.rows)} operators take {self.microseconds:.1f} us, the median of {self.runs} runs: "
            f"{', '.join(names)}"
        ]
        if self.times is not None:
            t = self.times
            lines.append(
                f"{self.runs} runs after {self.warm_up} to warm up: median {t.median:.1f} us, mean {t.mean:.1f}, "
                f"min {t.least:.1f}, max {t.most:.1f}, standard deviation {t.deviation:.1f}"
            )
            lines.append(f"first run {t.first:.1f} us; init {self.init:.1f} us; memory {self.memory} bytes at most")
        return lines

    def text(self, width: int | None = None) -> str:
        heads = ["##", "operator", "#us", "#%", "#min", "#max", "#bytes", "#MACs", "output"]
        rows = [
            [
                f"{row.index}", middle(row.name, _NAME), f"{row.microseconds:.1f}", self._share(row.microseconds),
                f"{row.least:.1f}", f"{row.most:.1f}", f"{row.bytes}",
                "-" if row.multiply_adds is None else f"{row.multiply_adds}", middle(row.output),
            ]
            for row in self.rows
        ]  # fmt: skip
        if any(row.peak for row in self.rows):
            heads[-1:-1] = ["#GMAC/s", "#of peak"]
            for cells, row in zip(rows, self.rows, strict=True):
                cells[-1:-1] = _of_peak(row)
        if width is not None and width < _WIDE:
            heads, rows = _without_ends(heads), list(map(_without_ends, rows))
        names = [[middle(name, _NAME), f"{us:.1f}", self._share(us)] for name, us in self.by_name().items()]
        names = [["all", f"{self.microseconds:.1f}", ""], *names]
        return "\n".join(
            [*aligned(heads, rows, width), "", *aligned(("operators", "#us", "#%"), names, width), "", *self.summary()]
        )

    def _share(self, microseconds: float) -> str:
        return f"{100 * microseconds / (self.microseconds or 1.0):.1f}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """A bar for each operator in order, with a color for each name; ax: None: a new figure.  Needs matplotlib."""
        ax = new_axes() if ax is None else ax
        for name in self.by_name():
            rows = [row for row in self.rows if row.name == name]
            ax.barh([row.index for row in rows], [row.microseconds for row in rows], label=name)
        ax.set_xlabel("microseconds")
        ax.set_ylabel("operator")
        ax.invert_yaxis()
        if len(self.rows) <= _MOST_NAMES:
            ax.set_yticks([row.index for row in self.rows], [f"{r.index} {r.name}" for r in self.rows], fontsize=6)
        ax.legend(fontsize=7)
        ax.set_title(f"{self.microseconds:.0f} µs, the median of {self.runs} runs")
        return ax


def _of_peak(row: OperatorTime) -> list[str]:
    """Billions of multiply-adds a second, and their share of the peak."""
    if row.speed is None:
        return ["-", "-"]
    return [f"{row.speed:.1f}", f"{100 * row.speed / row.peak:.0f} %" if row.peak else "-"]


def _without_ends(cells: list[str]) -> list[str]:
    """Without the least and the greatest time."""
    return cells[:4] + cells[6:]


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


def profile(interpreter: Interpreter, model: Model, runs: int, warm_up: int | None, preparation: float) -> Profile:
    """See Interpreter.profile; preparation: the seconds that making and allocating it took."""
    if runs < 1 or (warm_up is not None and warm_up < 0):
        raise ValueError(f"runs is {runs} and warm_up {warm_up}; they need to be at least 1 and 0")
    warmed, first = _warmed(interpreter, warm_up)
    operators = model.subgraphs[0].operators
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
    return Profile(rows, runs, warmed, RunTimes.of(first, times), peak, 1e6 * preparation)
