# SPDX-License-Identifier: Apache-2.0
"""effort="better" and "best": passes that lessen the errors of a quantized model, each kept only where they fall.

channels    channels of the float model are scaled (channel_scales.py)
rounding    weights are rounded by what they are multiplied with, or biases corrected (rounding.py, bias_correction.py)
ranges      ranges of activations are chosen by the errors at the outputs (range_search.py); of "best" alone

A pass changes the float model, or the options from which build.py makes its plan.  So a candidate is a model with
options; it is built, run on the samples with the kernels of LiteRT's default, and measured before a last SOFTMAX or
LOGISTIC.  The measure is the mean over the outputs of their SQNR in dB.  The first candidate is the model of
effort="fast"; a later one takes its place only where the gain is more than its standard error over the samples, of
which a part is held out from all passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy import measuring
from tq.accuracy.logits import without_last
from tq.accuracy.measuring import Noise, Samples
from tq.calibration.calibrate import Calibration
from tq.progress import Progress
from tq.quantization.channel_scales import scale_channels
from tq.quantization.options import Options
from tq.quantization.range_search import choose_ranges
from tq.quantization.recipes import BEST
from tq.running.limits import Limits

_MARGIN = 0.25  # dB that a candidate must gain: a smaller gain on the samples is none on others
_FEW, _PART = 8, 4  # fewer samples are not split; of these every fourth is held out
_KERNELS = "xnnpack"  # those of LiteRT's default
_MOST_DECIBELS = 120.0  # of an output, so that one exact output does not hide the others' errors

Array = NDArray[Any]
Build = Callable[[Model, Options], bytes]
Calibrate = Callable[[Model], Options]


class Candidate(NamedTuple):
    """What build.py makes a model of."""

    model: Model
    options: Options


def split(samples: Samples) -> tuple[Samples, Samples]:
    """The samples to fit candidates to, and all of them, to measure with: candidates have not seen every fourth."""
    if len(samples) < _FEW:
        return samples, samples
    return samples.only(place for place in range(len(samples)) if place % _PART != _PART - 1), samples


def choose(
    model: Model, options: Options, samples: Samples, measured: Samples, build: Build, calibrate: Calibrate | None
) -> Candidate:
    """The candidate with the least errors.

    samples: for the passes.  measured: to measure candidates with.
    calibrate: the options with the calibration of a model whose channels were scaled; None: the caller's is for this
        model alone.
    """
    trials = _Trials(model, measured, build, options.limits, options.num_threads)
    best = Candidate(model, options)
    stages: list[Stage] = [_as_it_is]
    if calibrate is not None:
        stages.append(_scaled(samples, calibrate))
    if options.effort == BEST and _has_ranges(model, options):
        stages.append(_ranged(samples))
    ways = _roundings(options)
    with Progress(None, range(len(stages) * len(ways)), f"effort {options.effort!r}", " models") as bar:
        level: Measured | None = None
        for stage in stages:
            changed = stage(best)
            for way in ways:
                if changed is None:
                    break
                other = changed._replace(options=replace(changed.options, **way))
                found = trials.measure(other)
                if level is None or found.is_better(level):
                    best, level = other, found
                bar.add()
    return best


def _roundings(options: Options) -> list[dict[str, Any]]:
    """The options of rounding to try, the caller's first; these alone where he asks for a rounding."""
    given = {"weight_rounding": options.weight_rounding, "bias_correction": options.bias_correction}
    if options.rounds_weights:
        return [given]
    found = [given, {**given, "bias_correction": True}, {**given, "weight_rounding": "gptq"}]
    return [item for place, item in enumerate(found) if item not in found[:place]]


def _has_ranges(model: Model, options: Options) -> bool:
    """Whether ranges can be chosen: a model with variables cannot be run from its middle."""
    has_variables = any(tensor.is_variable for tensor in model.subgraphs[0].tensors)
    return options.is_static and isinstance(options.calibration, Calibration) and not has_variables


# ---- stages: what a pass makes of the best candidate so far; None: it changes nothing ----

Stage = Callable[[Candidate], "Candidate | None"]


def _as_it_is(best: Candidate) -> Candidate:
    return best


def _scaled(samples: Samples, calibrate: Calibrate) -> Stage:
    def stage(best: Candidate) -> Candidate | None:
        options = best.options
        made = scale_channels(best.model, samples, options.all_overrides, options.limits, options.num_threads)
        moves = len(made.subgraphs[0].operators) != len(best.model.subgraphs[0].operators)
        if made is best.model or (moves and any(rule.index is not None for rule in options.all_rules)):
            return None
        return Candidate(made, calibrate(made))

    return stage


def _ranged(samples: Samples) -> Stage:
    def stage(best: Candidate) -> Candidate | None:
        made = choose_ranges(best.model, best.options, samples)
        if made is best.options.calibration:
            return None
        return best._replace(options=replace(best.options, calibration=made))

    return stage


# ---- measuring ----


class Measured(NamedTuple):
    """The errors of a candidate.  level: the mean SQNR of the outputs in dB; by_sample: the same of each sample."""

    level: float
    by_sample: Array

    def is_better(self, other: Measured) -> bool:
        """Whether the gain over another is no chance of these samples: more than the margin and its standard error."""
        gains = self.by_sample - other.by_sample
        error = float(gains.std()) / math.sqrt(max(len(gains) - 1, 1))
        return min(self.level - other.level, float(gains.mean())) > max(_MARGIN, error)


class _Trials:
    """Builds candidates, and measures them against the float model."""

    def __init__(self, model: Model, samples: Samples, build: Build, limits: Limits, num_threads: int | None) -> None:
        self._samples, self._build = samples, build
        self._limits, self._num_threads = limits, num_threads
        self._exact = self._outputs(model)

    def _outputs(self, model: Model) -> list[list[Array]]:
        return measuring.outputs(without_last(model), self._samples, self._num_threads, self._limits, _KERNELS)

    def measure(self, candidate: Candidate) -> Measured:
        found = self._outputs(Model(self._build(*candidate)))
        rows = [measuring.output_noises([x], [y]) for x, y in zip(self._exact, found, strict=True)]
        return Measured(_mean(measuring.output_noises(self._exact, found)), np.array([_mean(row) for row in rows]))


def _mean(noises: Iterable[Noise]) -> float:
    """The mean SQNR of outputs in dB."""
    levels = [float(np.clip(noise.sqnr_db, -_MOST_DECIBELS, _MOST_DECIBELS)) for noise in noises if noise.count]
    return float(np.mean(levels)) if levels else 0.0
