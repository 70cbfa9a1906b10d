# SPDX-License-Identifier: Apache-2.0
"""tq.sensitivity: quantizes a model, and ranks its parts (tq/accuracy/sensitivities.py)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.measuring import Samples
from tq.accuracy.sensitivities import WAYS, Sensitivity, measure
from tq.calibration.calibrate import Calibration
from tq.calibration.samples import Data
from tq.quantization.options import needs_samples, runs_models
from tq.quantization.quantize import quantize_model
from tq.running.limits import Limits
from tq.sources import Source, opened

Array = NDArray[Any]


def sensitivity(
    model: Source,
    calibration: Calibration | Data,
    *,
    recipe: str = "int8",
    by: str = "operator",
    samples: Data | None = None,
    max_samples: int | None = None,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Sensitivity:
    """Ranks the parts of a float model by the error at its outputs that quantizing each one alone causes.

    calibration: a tq.Calibration, or samples, as tq.quantize_model takes them; the samples are run, too.
    recipe, options: as tq.quantize_model takes them.
    by: "operator": an operator alone is in its quantized form, with its inputs, weights and outputs, and its integer
        kernel computes it.  "tensor": an activation alone is rounded to its quantized values, or the
        weights (and bias) of an operator.
    samples: samples to run, where calibration is a tq.Calibration.  max_samples: how many of them; None: all,
        since few samples may rank parts wrongly.  progress: as of tq.calibrate.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    Only the first subgraph's operators are looked at.  ValueError: as tq.quantize_model; no samples; nothing
    that is quantized.  RunError: the model cannot be run.
    """
    if by not in WAYS:
        raise ValueError(f"by is {by!r}; it must be 'operator' or 'tensor'")
    model = opened(model)
    given, run = _samples(model, calibration, samples, max_samples)
    limits = Limits(max_memory, max_multiply_adds)
    if needs_samples(recipe, options) or isinstance(given, Calibration):
        options["calibration"] = given
    if runs_models(recipe, options):
        options |= limits._asdict()
    quantized = Model(quantize_model(model, recipe, **options))
    return measure(model, quantized, run, by=by, num_threads=num_threads, limits=limits, progress=progress)


def _samples(
    model: Model, calibration: Any, samples: Any, most: int | None
) -> tuple[Calibration | list[dict[int, Array]] | list[Any], Samples]:
    """The samples for calibration, and the samples to run."""
    if isinstance(calibration, Calibration):
        if samples is None:
            raise ValueError("calibration is a tq.Calibration, which holds no samples: samples= is needed")
        return calibration, Samples(model, samples, most or None)
    fed = Samples(model, calibration)
    return fed.lists(), Samples(model, samples if samples is not None else fed.lists(), most or None)
