# SPDX-License-Identifier: Apache-2.0
"""Ranges of activations, chosen by the errors of the operators that read them.

A range that leaves out the greatest values has finer steps; whether that is worth it depends on the weights that the
values are multiplied with.  So each group of activations that share parameters is quantized alone, in the float model,
by one candidate after another, and the outputs of the operators that read the group are compared with their exact
outputs: the candidate is taken with the least sum, over these operators, of error over signal.

The candidates: the range of the calibration; what its histograms choose (percentiles, the least mean squared error);
parts of the range, from both ends and from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Model
from tq.accuracy.logits import logits
from tq.accuracy.measuring import Noise, Samples
from tq.calibration.calibrate import Calibration
from tq.calibration.observers import HistogramObserver, MinMaxObserver
from tq.editing.editor import Editor
from tq.progress import tracked
from tq.quantization import passes
from tq.quantization.choice import Choice
from tq.quantization.groups import SHARING
from tq.quantization.options import Options
from tq.quantization.parameters import of_range
from tq.quantization.prepare import prepare
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits

Array = NDArray[Any]
Range = tuple[float, float]

_PARTS = (0.9, 0.8, 0.65)
_PERCENTILE = 99.9
_ONE_SIDED = 0.05  # of the other end: an end nearer to 0 is not cut alone
_SWEEPS = 8  # over all groups
_SHARE = 0.25  # of a group's equal part of the error: a group with less in all outputs keeps its range


class Group(NamedTuple):
    """Activations of the float model that share parameters.  tensors: all of them, by their indices; entries: those
    that no operator within the group writes."""

    tensors: tuple[int, ...]
    entries: tuple[int, ...]
    type: str
    is_centered: bool
    range: Range


def choose_ranges(model: Model, options: Options, samples: Samples) -> Calibration:
    """The calibration of the options, with ranges of which the readers' outputs have the least errors."""
    calibration = options.calibration
    assert isinstance(calibration, Calibration)
    found = groups_of(model, options)
    search = _Search(model, found, calibration, options.limits, options.num_threads)
    for _ in tracked(samples.each(search.interpreter), samples, "ranges: errors of each group"):
        search.add(slice(1))
    search.drop_small()
    for _ in tracked(samples.each(search.interpreter), samples, "ranges: errors of candidates"):
        search.add(slice(1, None))
    chosen = dict(search.chosen())
    return _with_ranges(calibration, chosen) if chosen else calibration


# ---- groups ----


def groups_of(model: Model, options: Options) -> list[Group]:
    """The groups of the first subgraph whose ranges a calibration gives, as the plan has them."""
    editor = Editor(model)
    try:
        plan = passes.plan(prepare(editor, model, options))
        return [group for item in plan.subgraphs[0].activations for group in _groups(item.choice)]
    finally:
        editor.close()


def _groups(choice: Choice) -> Iterator[Group]:
    view, parameters = choice.view, choice.parameters
    centered = parameters.groups.centered
    for root, members in parameters.groups.members().items():
        if any(not view.ranges.was_measured(tensor) for tensor in members):
            continue
        indices = {tensor: index for tensor in members if (index := view.ranges.index(tensor)) is not None}
        rules = {tensor: _rule(choice, tensor) for tensor in indices}
        entries = tuple(indices[tensor] for tensor, rule in rules.items() if rule not in SHARING)
        if entries and not any(isinstance(rule, tuple) for rule in rules.values()):
            chosen = parameters.by_root[root]
            range_ = (float(chosen.low), float(chosen.high))
            yield Group(tuple(indices.values()), entries, choice.type, root in centered, range_)


def _rule(choice: Choice, tensor: Any) -> Any:
    """How the integer operator that writes a tensor wants its outputs; None: none writes it."""
    producer = choice.view.producers.get(tensor)
    return choice.view.rule(producer) if producer is not None and producer in choice.operators else None


# ---- candidates ----


def candidates(group: Group, calibration: Calibration) -> list[Range]:
    """The ranges to try, the calibration's first."""
    low, high = group.range
    found = [(low, high)]
    found += [(max(low, a), min(high, b)) for a, b in _from_histograms(group, calibration)]
    found += [(low * part, high * part) for part in _PARTS]
    if min(-low, high) > _ONE_SIDED * max(-low, high):
        found += [(low * part, high) for part in _PARTS]
        found += [(low, high * part) for part in _PARTS]
    return list(dict.fromkeys((a, b) for a, b in found if a < b))


def _from_histograms(group: Group, calibration: Calibration) -> Iterator[Range]:
    observers = [calibration.observers[index] for index in group.tensors if index in calibration.observers]
    histograms = [o for o in observers if isinstance(o, HistogramObserver) and o.min <= o.max]
    asked: dict[str, Any] = {"percentile": _PERCENTILE, "dtype": group.type, "symmetric": group.is_centered}
    for method in ("mse", "percentile"):
        ranges = [observer.range(method, **asked) for observer in histograms]
        if ranges:
            yield min(float(a) for a, _ in ranges), max(float(b) for _, b in ranges)


# ---- errors ----


class _Trial:
    """A group, its candidates, and the errors of the model's outputs for each."""

    def __init__(self, group: Group, ranges: list[Range], stops: list[tuple[int, int]], outputs: int) -> None:
        self.group, self.ranges = group, ranges
        self.stops = stops  # (the operator behind the one that writes an entry, the entry), in order
        self.noises = [[Noise() for _ in range(outputs)] for _ in ranges]

    def ratios(self) -> Array:
        """Of error to signal, [candidates, outputs]."""
        return np.array([[noise.ratio for noise in row] for row in self.noises])


class _Search:
    """Runs of the float model, in which one group at a time is quantized, the last group first: what stands before a
    group keeps its exact values."""

    def __init__(
        self,
        model: Model,
        groups: Iterable[Group],
        calibration: Calibration,
        limits: Limits,
        num_threads: int | None,
    ) -> None:
        self.interpreter = Interpreter(
            model=model,
            num_threads=num_threads,
            experimental_preserve_all_tensors=True,
            numerics="reference",
            **limits._asdict(),
        )
        self._num_threads = num_threads
        self._count = len(model.subgraphs[0].operators)
        writers = {i: op.index for op in model.subgraphs[0].operators for i in op.output_indices}
        self._outputs = [tensor.index for tensor in logits(model) if tensor.dtype == np.float32]
        found = []
        for group in groups:
            stops = sorted((writers.get(index, -1) + 1, index) for index in group.entries)
            found.append(_Trial(group, candidates(group, calibration), stops, len(self._outputs)))
        self._trials = sorted(found, key=lambda trial: -trial.stops[0][0])
        self._rest: Array = np.zeros(len(self._outputs))  # the errors of groups that were dropped

    def drop_small(self) -> None:
        """Leaves the groups that matter, by the errors of the first candidates."""
        if not self._trials:
            return
        first = np.array([trial.ratios()[0] for trial in self._trials])
        total = first.sum(axis=0)
        shares = np.divide(first, total, out=np.zeros_like(first), where=total > 0).max(axis=1, initial=0)
        least = _SHARE / len(self._trials)
        self._rest = first[shares < least].sum(axis=0)
        self._trials = [t for t, share in zip(self._trials, shares, strict=True) if share >= least]

    def add(self, which: slice) -> None:
        """The errors of these candidates for the inputs that the interpreter has."""
        run = self.interpreter
        run.invoke()
        exact = [np.array(run.get_tensor(index)) for index in self._outputs]
        for trial in self._trials:
            first = np.array(run.get_tensor(trial.stops[0][1]))
            for range_, noises in zip(trial.ranges[which], trial.noises[which], strict=True):
                run.set_tensor(trial.stops[0][1], first)
                self._run(trial, range_)
                for index, x, noise in zip(self._outputs, exact, noises, strict=True):
                    noise.add(x, run.get_tensor(index))
            run.set_tensor(trial.stops[0][1], first)

    def _run(self, trial: _Trial, range_: Range) -> None:
        run, group, threads = self.interpreter, trial.group, self._num_threads
        made = of_range(group.type, *range_, group.is_centered)
        scale, zero_point = float(made.scale), made.zero_point
        ends = [*(start for start, _ in trial.stops[1:]), self._count]
        for (start, index), stop in zip(trial.stops, ends, strict=True):
            rounded = _core.quantize(run.get_tensor(index), scale, zero_point, dtype=group.type, num_threads=threads)
            run.set_tensor(index, _core.dequantize(rounded, scale, zero_point, num_threads=threads))
            run.run(start, stop)

    def chosen(self) -> Iterator[tuple[Group, Range]]:
        """The groups with another range than the calibration's."""
        ratios = [trial.ratios() for trial in self._trials]
        for trial, choice in zip(self._trials, _least(ratios, self._rest), strict=True):
            if choice:
                yield trial.group, trial.ranges[choice]


def _least(ratios: Sequence[Array], rest: Array) -> list[int]:
    """The candidate of each group, so that the mean over outputs of the errors' logarithms is least; the errors of
    groups add up, nearly.  rest: of other groups."""
    chosen = [0] * len(ratios)
    if not ratios:
        return chosen
    total = rest + np.sum([table[0] for table in ratios], axis=0)
    for _ in range(_SWEEPS):
        before = list(chosen)
        for place, table in enumerate(ratios):
            others = np.maximum(total - table[chosen[place]], 0)
            levels = np.log(others + table + 1e-30).mean(axis=1)
            best = int(np.argmin(levels))
            if levels[best] < levels[chosen[place]]:
                chosen[place], total = best, others + table[best]
        if chosen == before:
            break
    return chosen


def _with_ranges(calibration: Calibration, chosen: Mapping[Group, Range]) -> Calibration:
    observers: dict[int, Any] = dict(calibration.observers)
    for group, (low, high) in chosen.items():
        for index in group.tensors:
            seen = observers.get(index)
            if seen is not None and seen.min <= seen.max:
                ends = np.clip([float(seen.min), float(seen.max)], low, high)
                observers[index] = MinMaxObserver().update(ends)
    options: dict[str, Any] = {"method": calibration.method, "percentile": calibration.percentile}
    return Calibration(calibration.names, observers, calibration.samples, **options, encodings=calibration.encodings)
