# SPDX-License-Identifier: Apache-2.0
"""Ranges of activations, chosen by the errors at the model's outputs.

A range without the greatest values has finer steps.  A range that is wider than that of the samples saturates fewer
values of other samples.  So each group of activations that share parameters has candidates: the calibration's range
with its ends multiplied by a factor.  The error of a candidate has two parts:

rounding    the group alone is rounded in the float model.  This is measured once; the error grows as the square of the
            step.
saturation  values outside of the range become its ends.  The range of all samples saturates none of their values, so
            the samples are split into parts: a factor is applied to the range of the other parts' samples.

Both are errors at the model's outputs: benchmarks/README.md has what the outputs of the operators that read a group
choose.  Errors of groups nearly add up: the chosen candidates are those with the least sum.

Each sample adds to the saturation, most where the range is narrowest.  So a candidate is given up, and not run on
further samples, once its saturation exceeds that of a wider one by more than finer steps can win back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Model
from tq.accuracy.logits import logits
from tq.accuracy.measuring import Noise, Samples
from tq.calibration.calibrate import Calibration
from tq.calibration.observers import MinMaxObserver
from tq.editing.editor import Editor
from tq.editing.graph import TensorPart
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

# The factors of candidates; the first leaves the range as it is.
_FACTORS = (1.0, 1.07, 1.15, 1.25, 1.4, 1.6, 2.0, 0.975, 0.95, 0.925, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4)
_SWEEPS = 8  # over all groups
_SHARE = 0.25  # a group whose error is less than this part of the mean over groups, in all outputs, keeps its range
_UNEVEN = 0.1  # a group with values farther outside of the other samples' range, over its length, is searched
_PARTS = 4  # of the samples; saturation in a part is measured with the range of the others


def _won_back() -> Array:
    """[wide, narrow]: the most saturation that candidate `narrow` may have beyond that of `wide` and be as good, over
    the rounding with factor 1; infinite where it is not narrower than both `wide` and 1.

    With the rounding W of `wide` and g = narrow / wide, the logarithms of g^2 W in all parts of the samples but one,
    and of g^2 W and the saturation in this one, have the sum of those of W.  Where saturation is in several parts, and
    beside errors of other groups, less loses as much.
    """
    factors = np.array(_FACTORS)
    wide, narrow = factors[:, None], factors[None]
    ratio = narrow / wide
    most = wide**2 * (ratio ** (2 - 2 * _PARTS) - ratio**2) / _PARTS
    found: Array = np.where((ratio < 1) & (narrow < 1), most, np.inf)
    return found


_WON_BACK = _won_back()


class Group(NamedTuple):
    """Activations of the float model that share parameters.  tensors: all of them, by their indices; entries: those
    at which values come to the group."""

    tensors: tuple[int, ...]
    entries: tuple[int, ...]
    type: str
    is_centered: bool
    range: Range


class Chosen:
    """The chosen factor of each group; names: of the tensors, which another model with the same names shares."""

    def __init__(self, names: Mapping[int, str], factors: Mapping[Group, float]) -> None:
        self._rows = [([names[i] for i in group.tensors if i in names], group, row) for group, row in factors.items()]

    def of(self, calibration: Calibration) -> Calibration:
        """A calibration with the ranges times the factors."""
        observers: dict[int, Any] = dict(calibration.observers)
        indices = {name: index for index, name in calibration.names.items()}
        for names, group, factor in self._rows:
            found = {indices[name]: observers.get(indices[name]) for name in names if name in indices}
            seen = {index: item for index, item in found.items() if item is not None and item.min <= item.max}
            if seen:
                least, most = min(float(x.min) for x in seen.values()), max(float(x.max) for x in seen.values())
                low, high = max(least, group.range[0]) * factor, min(most, group.range[1]) * factor
                for index, item in seen.items():
                    ends = np.array([item.min, item.max], np.float64) * max(factor, 1.0)
                    observers[index] = MinMaxObserver().update(np.clip(ends, low, high))
        options: dict[str, Any] = {"method": calibration.method, "percentile": calibration.percentile}
        encodings = calibration.encodings
        return Calibration(calibration.names, observers, calibration.samples, **options, encodings=encodings)


def choose_ranges(model: Model, options: Options, samples: Samples) -> Chosen:
    """The factors with the least errors at the outputs."""
    calibration = options.calibration
    assert isinstance(calibration, Calibration)
    search = _Search(model, groups_of(model, options), options.limits, options.num_threads)
    for _ in tracked(samples.each(search.interpreter), samples, "ranges: rounding of each group"):
        search.add_rounding()
    search.drop_small()
    for number in tracked(samples.each(search.interpreter), samples, "ranges: saturation of candidates"):
        search.add_saturation(number)
    return Chosen(calibration.names, dict(search.chosen()))


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
        entries = tuple(index for tensor, index in indices.items() if _enters(choice, tensor))
        if entries and not any(isinstance(_rule(choice, tensor), tuple) for tensor in indices):
            chosen = parameters.by_root[root]
            range_ = (float(chosen.low), float(chosen.high))
            yield Group(tuple(indices.values()), entries, choice.type, root in centered, range_)


def _rule(choice: Choice, tensor: TensorPart) -> Any:
    """How the integer operator that writes a tensor wants its outputs; None: none writes it."""
    producer = choice.view.producers.get(tensor)
    return choice.view.rule(producer) if producer is not None and producer in choice.operators else None


def _enters(choice: Choice, tensor: TensorPart) -> bool:
    """Whether values come to a group at this tensor: its writer computes, or reads a tensor that the quantizer made."""
    if _rule(choice, tensor) not in SHARING:
        return True
    view = choice.view
    return any(view.ranges.index(source) is None for source in view.data(view.producers[tensor]))


# ---- errors ----


class _Trial:
    """A group, and the errors of the model's outputs with each factor.

    stops: (the operator behind the one that writes an entry, the entry), in order.
    ends: the least and greatest value of each sample.  saturation: [factors, outputs, parts of the samples].
    """

    def __init__(self, group: Group, stops: list[tuple[int, int]], outputs: int) -> None:
        self.group, self.stops = group, stops
        self.rounding = [Noise() for _ in range(outputs)]
        self.saturation = np.zeros((len(_FACTORS), outputs, _PARTS))
        self.ends: list[Range] = []

    def table(self) -> Array:
        """Ratios of error to signal, shaped as the saturation."""
        signal = np.array([noise.signal for noise in self.rounding])[:, None]
        total = np.square(_FACTORS)[:, None, None] * self._rounding()[:, None] + _PARTS * self.saturation
        found: Array = np.divide(total, signal, out=np.zeros_like(total), where=signal > 0)
        return found

    def _rounding(self) -> Array:
        return np.array([noise.noise for noise in self.rounding])

    def add_saturation(self, number: int, sample: int, noises: Array) -> None:
        """Adds the errors of a sample with a candidate, and gives it up if it cannot be the best any more."""
        found = self.saturation[number]
        found[:, sample % _PARTS] += noises
        with np.errstate(invalid="ignore"):  # infinities: of candidates that were given up, and of _WON_BACK
            more = found.sum(axis=1) - self.saturation.sum(axis=2)
            most = np.outer(_WON_BACK[:, number], self._rounding())
        if ((more >= most).all(axis=1) & (more > most).any(axis=1)).any():
            found[:] = np.inf

    def is_lost(self, number: int) -> bool:
        return bool(np.isinf(self.saturation[number]).all())

    def is_uneven(self) -> bool:
        """Whether a sample has values far outside of the range that the other parts' samples have."""
        low, high = np.array([self.others_range(sample) for sample in range(len(self.ends))]).T
        least, most = np.array(self.ends).T
        beyond = np.maximum(low - least, most - high)
        return bool((beyond > _UNEVEN * (self.group.range[1] - self.group.range[0])).any())

    def others_range(self, sample: int) -> Range:
        """The range with the ends that the samples of other parts have."""
        low, high = np.array(self.ends).T
        others = np.arange(len(low)) % _PARTS != sample % _PARTS
        if not others.any():
            return self.group.range
        least, most = self.group.range
        return least * _part(low[others].min(), low.min()), most * _part(high[others].max(), high.max())


def _part(a: float, b: float) -> float:
    return float(a / b) if b else 1.0


class _Search:
    """Runs of the float model, in which one group at a time is changed, the last group first: what stands before a
    group keeps its exact values."""

    def __init__(self, model: Model, groups: Iterable[Group], limits: Limits, num_threads: int | None) -> None:
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
            found.append(_Trial(group, stops, len(self._outputs)))
        self._trials = sorted(found, key=lambda trial: -trial.stops[0][0])
        self._rest: Array = np.zeros((len(self._outputs), 1))  # the errors of groups that were dropped

    def drop_small(self) -> None:
        """Drops groups whose ranges cause little of the error, unless few samples have their greatest values."""
        if not self._trials:
            return
        first = np.array([trial.table()[0, :, 0] for trial in self._trials])
        total = first.sum(axis=0)
        shares = np.divide(first, total, out=np.zeros_like(first), where=total > 0).max(axis=1, initial=0)
        matter = (shares >= _SHARE / len(shares)) | np.array([trial.is_uneven() for trial in self._trials])
        self._rest = first[~matter].sum(axis=0)[:, None]
        self._trials = [trial for trial, stays in zip(self._trials, matter, strict=True) if stays]

    def add_rounding(self) -> None:
        """The errors of rounding for the inputs that the interpreter has, and the ends of the groups' values."""

        def rounded(group: Group, value: Array) -> Array:
            threads = self._num_threads
            made = of_range(group.type, *group.range, group.is_centered)
            scale, zero_point = float(made.scale), made.zero_point
            found = _core.quantize(value, scale, zero_point, dtype=group.type, num_threads=threads)
            return _core.dequantize(found, scale, zero_point, num_threads=threads)

        exact = self._start()
        for trial in self._trials:
            trial.ends.append(self._ends(trial.group))
            self._run(trial, partial(rounded, trial.group), exact, trial.rounding)

    def add_saturation(self, sample: int) -> None:
        """The errors of saturation of all candidates for the inputs that the interpreter has."""
        exact = self._start()
        for trial in self._trials:
            range_, ends = trial.others_range(sample), trial.ends[sample]
            for number, factor in enumerate(_FACTORS):
                low, high = range_[0] * factor, range_[1] * factor
                if (ends[0] < low or ends[1] > high) and not trial.is_lost(number):
                    noises = [Noise() for _ in exact]
                    self._run(trial, partial(np.clip, a_min=low, a_max=high), exact, noises)
                    trial.add_saturation(number, sample, np.array([noise.noise for noise in noises]))

    def _start(self) -> list[Array]:
        self.interpreter.invoke()
        return [np.array(self.interpreter.get_tensor(index)) for index in self._outputs]

    def _ends(self, group: Group) -> Range:
        """The least and greatest value of the group, at most the ends of its range."""
        values = [self.interpreter.get_tensor(index) for index in group.entries]
        low, high = min(float(x.min(initial=0)) for x in values), max(float(x.max(initial=0)) for x in values)
        return max(low, group.range[0]), min(high, group.range[1])

    def _run(self, trial: _Trial, change: Callable[[Array], Array], exact: list[Array], noises: list[Noise]) -> None:
        run, first = self.interpreter, trial.stops[0][1]
        before = np.array(run.get_tensor(first))
        ends = [*(start for start, _ in trial.stops[1:]), self._count]
        for (start, index), stop in zip(trial.stops, ends, strict=True):
            run.set_tensor(index, change(run.get_tensor(index)))
            run.run(start, stop)
        for index, x, noise in zip(self._outputs, exact, noises, strict=True):
            noise.add(x, run.get_tensor(index))
        run.set_tensor(first, before)

    def chosen(self) -> Iterator[tuple[Group, float]]:
        """The groups with another range than the calibration's."""
        tables = [trial.table() for trial in self._trials]
        for trial, choice in zip(self._trials, _least(tables, self._rest), strict=True):
            if choice:
                yield trial.group, _FACTORS[choice]


def _least(ratios: Sequence[Array], rest: Array) -> list[int]:
    """The candidate of each group.  The mean logarithm of the error, over outputs and parts, is least.

    The error is the sum over groups, and of `rest`: that of the groups that were dropped."""
    chosen = [0] * len(ratios)
    if not ratios:
        return chosen
    total = rest + np.sum([table[0] for table in ratios], axis=0)
    for _ in range(_SWEEPS):
        before = list(chosen)
        for place, table in enumerate(ratios):
            others = np.maximum(total - table[chosen[place]], 0)
            levels = np.log(others + table + 1e-30).mean(axis=(1, 2))
            best = int(np.argmin(levels))
            if levels[best] < levels[chosen[place]]:
                chosen[place], total = best, others + table[best]
        if chosen == before:
            break
    return chosen
