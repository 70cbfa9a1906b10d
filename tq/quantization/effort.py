# SPDX-License-Identifier: Apache-2.0
"""effort="better" and "best": passes that lessen the errors of a quantized model, tested on other samples.

PRELU       stands in place of the operators that some converters write for it (prelu.py)
channels    channels of the float model are scaled (channel_scales.py)
ranges      ranges of activations are chosen by the errors at the outputs (range_search.py)
rounding    weights are rounded for the inputs that samples give their layer (rounding.py)

The test compares all passes together with plain quantization, which is effort="fast".  Single passes are not tested: a
few samples cannot tell the gain of one.  But rounding alone is tested, and the passes are compared with it, where
activations stay float32: factors of channels, which are for the steps of activations, may cost more there than they
gain, and far less than rounding gains.
The test is a cross-validation.  The samples are split into parts; for each part, the models are made from the samples
of the other parts and run on the samples of this part, with the kernels that give the bits of LiteRT's default.  Errors
are measured before a last SOFTMAX or LOGISTIC.  If the errors of the passes are smaller by more than chance explains
(judgement.py), the result is made by the passes from all samples, else by plain quantization.  Parts are left out once
the others leave no doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy import measuring
from tq.accuracy.logits import without_last
from tq.accuracy.measuring import KERNELS, Noise, Samples
from tq.calibration.calibrate import Calibration
from tq.progress import tracked
from tq.quantization import judgement
from tq.quantization.channel_scales import scale_channels
from tq.quantization.judgement import Sums
from tq.quantization.options import Options
from tq.quantization.prelu import fuse_prelus
from tq.quantization.range_search import Chosen, choose_ranges
from tq.quantization.recipes import BEST, BETTER

_FEW = 8  # fewer samples are not split
_PARTS = {BETTER: 2, BEST: 4}  # of the samples; for each part the passes run once more

Array = NDArray[Any]
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

    def outputs(made: Model, held_out: Samples) -> list[list[Array]]:
        return measuring.outputs(without_last(made), held_out, threads, limits, KERNELS)

    makers = passes.makers()
    errors: list[list[list[Noise]]] = [[] for _ in makers]
    split = parts(samples, effort)
    for seen, held_out in tracked(split, split, f"effort {effort!r}", unit=" parts"):
        exact = outputs(model, held_out)
        for rows, make in zip(errors, makers, strict=True):
            found = outputs(Model(build(*make(seen), seen)), held_out)
            rows += [measuring.output_noises([x], [y]) for x, y in zip(exact, found, strict=True)]
        best, is_settled = _best([Sums.of(rows) for rows in errors])
        if is_settled:
            break
    return makers[best](samples) if best else plain


def _best(candidates: list[Sums]) -> tuple[int, bool]:
    """The last of the candidates that gains over the best before it; whether more samples would hardly change that."""
    best, is_settled = 0, True
    for number, after in enumerate(candidates[1:], 1):
        before = candidates[best]
        is_settled = is_settled and judgement.is_settled(before, after)
        best = number if judgement.gains(before, after) else best
    return best, is_settled


def parts(samples: Samples, effort: str) -> list[tuple[Samples, Samples]]:
    """For each part, (samples to make models from, samples to test on).  Few samples are both at once."""
    if len(samples) < _FEW:
        return [(samples, samples)]
    numbers, count = range(len(samples)), _PARTS[effort]
    return [
        (samples.only(i for i in numbers if i % count != part), samples.only(numbers[part::count]))
        for part in range(count)
    ]


class Passes:
    """Makes candidates from samples.  Factors of ranges are chosen once, from all samples (range_search.py)."""

    def __init__(self, model: Model, samples: Samples, calibrate: Calibrate, keeps_channels: bool) -> None:
        self._model, self._calibrate, self._keeps_channels = model, calibrate, keeps_channels
        self._ranges: Chosen | None = None
        found = self._scaled(samples)
        self._rounds_alone = found.model is not model and not (found.options.is_static or found.options.rounds_weights)
        if _has_ranges(found):
            self._ranges = choose_ranges(found.model, found.options, samples)

    def plain(self, samples: Samples) -> Candidate:
        return Candidate(self._model, self._calibrate(self._model, samples))

    def makers(self) -> list[Callable[[Samples], Candidate]]:
        """The candidates, each with more passes than the one before."""
        return [self.plain, *([self.rounded] if self._rounds_alone else []), self.made]

    def rounded(self, samples: Samples) -> Candidate:
        """The candidate of rounding alone."""
        model, options = self.plain(samples)
        return Candidate(model, replace(options, weight_rounding="gptq"))

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
        if options.per_axis and not options.is_unsigned:  # else a channel with a greater factor has fewer steps
            made = scale_channels(made, samples, options.all_overrides, options.limits, options.num_threads)
        moves = len(made.subgraphs[0].operators) != len(model.subgraphs[0].operators)
        if made is model or (moves and any(rule.index is not None for rule in options.all_rules)):
            return plain
        return Candidate(made, self._calibrate(made, samples))


def _has_ranges(found: Candidate) -> bool:
    """Whether ranges can be chosen: a model with variables cannot be run from its middle."""
    has_variables = any(tensor.is_variable for tensor in found.model.subgraphs[0].tensors)
    return found.options.is_static and isinstance(found.options.calibration, Calibration) and not has_variables
