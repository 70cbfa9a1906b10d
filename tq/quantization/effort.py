# SPDX-License-Identifier: Apache-2.0
"""effort="better" and "best": passes that lessen the errors of a quantized model, tested on other samples.

PRELU       stands in place of the operators that some converters write for it (prelu.py)
channels    channels of the float model are scaled (channel_scales.py)
ranges      ranges of activations are chosen by the errors at the outputs (range_search.py)
rounding    weights are rounded for the inputs that samples give their layer (rounding.py)

The test compares all passes together with plain quantization, which is effort="fast".  Single passes are not tested: a
few samples cannot tell the gain of one.  The test is a cross-validation.  The samples are split into parts; for each
part, both models are made from the samples of the other parts and run on the samples of this part, with the kernels
that give the bits of LiteRT's default.  Errors are measured before a last SOFTMAX or LOGISTIC.  If the passes have the
smaller errors, the result is made by the passes from all samples, else by plain quantization.
"""

from __future__ import annotations

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
from tq.progress import tracked
from tq.quantization.channel_scales import scale_channels
from tq.quantization.options import Options
from tq.quantization.prelu import fuse_prelus
from tq.quantization.range_search import Chosen, choose_ranges
from tq.quantization.recipes import BEST

_FEW = 8  # fewer samples are not split
_HALVES = 2  # of the samples; the errors of a half are measured together, as those of a set of new samples would be
_PARTS_OF_HALF = {BEST: 2}  # by effort, else 1; the passes run once for each part
_KERNELS = "xnnpack"  # those of LiteRT's default
_MOST_DECIBELS = 120.0  # the most that an output counts: an exact one does not hide the errors of the others

Array = NDArray[Any]
Outputs = list[list[Array]]
Build = Callable[[Model, Options, Samples], bytes]
Calibrate = Callable[[Model, Samples], Options]


class Candidate(NamedTuple):
    """The arguments of build.py: a float model and options."""

    model: Model
    options: Options


def choose(model: Model, samples: Samples, build: Build, calibrate: Calibrate, keeps_channels: bool) -> Candidate:
    """The model and the options after all passes, or those of plain quantization.

    build: a quantized model; the samples are for rounding.  calibrate: the options, with a calibration by samples.
    keeps_channels: whether the calibration is of the model as it is.
    """
    passes = Passes(model, samples, calibrate, keeps_channels)
    plain = passes.plain(samples)
    effort, limits, threads = plain.options.effort, plain.options.limits, plain.options.num_threads

    def outputs(data: bytes | None, held_out: Samples) -> Outputs:
        made = without_last(model if data is None else Model(data))
        return measuring.outputs(made, held_out, threads, limits, _KERNELS)

    gains = []
    for half in tracked(halves(samples, effort), range(_HALVES), f"effort {effort!r}", unit=" halves"):
        exact: Outputs = []
        before: Outputs = []
        after: Outputs = []
        for seen, held_out in half:
            exact += outputs(None, held_out)
            before += outputs(build(*passes.plain(seen), seen), held_out)
            after += outputs(build(*passes.made(seen), seen), held_out)
        gains.append(level(exact, after) - level(exact, before))
    return passes.made(samples) if np.mean(gains) > 0 else plain


def halves(samples: Samples, effort: str) -> list[list[tuple[Samples, Samples]]]:
    """For each half, its parts as (samples to make models from, samples to test on).  Few samples are both at once."""
    if len(samples) < _FEW:
        return [[(samples, samples)]]
    each = _PARTS_OF_HALF.get(effort, 1)
    numbers, count = range(len(samples)), _HALVES * each

    def part(number: int) -> tuple[Samples, Samples]:
        of_part = [i for i in numbers if i % count == number]
        return samples.only(i for i in numbers if i not in of_part), samples.only(of_part)

    return [[part(half * each + number) for number in range(each)] for half in range(_HALVES)]


class Passes:
    """Makes candidates from samples.  Factors of ranges are chosen once, from all samples (range_search.py)."""

    def __init__(self, model: Model, samples: Samples, calibrate: Calibrate, keeps_channels: bool) -> None:
        self._model, self._calibrate, self._keeps_channels = model, calibrate, keeps_channels
        self._ranges: Chosen | None = None
        found = self._scaled(samples)
        if _has_ranges(found):
            self._ranges = choose_ranges(found.model, found.options, samples)

    def plain(self, samples: Samples) -> Candidate:
        return Candidate(self._model, self._calibrate(self._model, samples))

    def made(self, samples: Samples) -> Candidate:
        """The candidate of all passes."""
        model, options = self._scaled(samples)
        if self._ranges is not None and isinstance(options.calibration, Calibration):
            options = replace(options, calibration=self._ranges.of(options.calibration))
        return Candidate(model, options if options.rounds_weights else replace(options, weight_rounding="gptq"))

    def _scaled(self, samples: Samples) -> Candidate:
        plain = self.plain(samples)
        if self._keeps_channels:
            return plain
        model, options = plain
        made = model if options.all_rules else fuse_prelus(model, options.all_overrides)
        made = scale_channels(made, samples, options.all_overrides, options.limits, options.num_threads)
        moves = len(made.subgraphs[0].operators) != len(model.subgraphs[0].operators)
        if made is model or (moves and any(rule.index is not None for rule in options.all_rules)):
            return plain
        return Candidate(made, self._calibrate(made, samples))


def _has_ranges(found: Candidate) -> bool:
    """Whether ranges can be chosen: a model with variables cannot be run from its middle."""
    has_variables = any(tensor.is_variable for tensor in found.model.subgraphs[0].tensors)
    return found.options.is_static and isinstance(found.options.calibration, Calibration) and not has_variables


def level(exact: Outputs, found: Outputs) -> float:
    """The mean SQNR of the outputs in dB."""
    return _mean(measuring.output_noises(exact, found))


def _mean(noises: Iterable[Noise]) -> float:
    levels = [float(np.clip(noise.sqnr_db, -_MOST_DECIBELS, _MOST_DECIBELS)) for noise in noises if noise.count]
    return float(np.mean(levels)) if levels else 0.0
