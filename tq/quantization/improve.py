# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model with options that run samples: equalization, effort, bias correction, rounding, fallback.

1. equalize: the float model's channels are scaled (equalization.py).
2. effort: passes make another float model and other options, where these lessen the errors (effort.py).
3. The model is quantized (build.py), its biases are corrected (bias_correction.py), its weights rounded (rounding.py).
4. The outputs are compared with the float model's, and operators fall back to another recipe (fallback.py, budget.py).
   Each set of operators is a model that step 3 makes anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tq._core import Model, Operator, QuantizationParams, choose_quantization_params
from tq.accuracy.measuring import Samples
from tq.calibration.calibrate import Calibration, calibrate
from tq.calibration.runs import computed
from tq.quantization.bias_correction import correct_biases, layers_of
from tq.quantization.budget import Budget, spend
from tq.quantization.build import build as build_plain
from tq.quantization.effort import Candidate, choose
from tq.quantization.equalization import CLAMPED, NOTHING, scaled
from tq.quantization.fallback import reach
from tq.quantization.layers import NOT_ROUNDED
from tq.quantization.options import Options
from tq.quantization.recipes import FAST, NEAREST, STATIC, Rule, find
from tq.quantization.result import QuantizedModel
from tq.quantization.rounding import round_weights
from tq.quantization.rules import method_of


def build(model: Model, options: Options) -> QuantizedModel:
    """The quantized model; the options are checked and run samples."""
    _check(options)
    samples = _samples(model, options)
    if options.equalize:
        model = _equalized(model, samples, options)
    if options.effort != FAST:
        model, options = _chosen(model, samples, options)
    else:
        options = _calibrated(model, samples, options)
    if options.equalize:
        options = replace(options, own_overrides=_clamps(model, options))

    def made(rules: Sequence[Rule]) -> QuantizedModel:
        return _made(model, replace(options, own_rules=tuple(rules)), samples)

    if options.target_sqnr is not None:
        return reach(model, samples, made, options)
    if options.budget is not None:
        return spend(model, samples, made, options)
    return made(())


def _made(model: Model, options: Options, samples: Samples) -> QuantizedModel:
    quantized = build_plain(model, options)
    data: bytes = quantized
    may_lack_layers = bool(options.own_rules) or options.effort != FAST
    if options.bias_correction:
        data = _corrected(model, data, samples, options, may_lack_layers)
    if options.rounds_weights:
        data = _rounded(model, data, samples, options, may_lack_layers)
    return QuantizedModel.of(data, quantized.weights_on_grid, quantized.notes)


def _chosen(model: Model, samples: Samples, options: Options) -> Candidate:
    """The model and the options that effort chooses."""

    def calibrated(model: Model, seen: Samples) -> Options:
        return _calibrated(model, seen, options, samples.others)

    return choose(model, samples, _made, calibrated, isinstance(options.calibration, Calibration))


def _check(options: Options) -> None:
    target, fallback = options.target_sqnr, options.fallback
    if options.budget is not None:
        Budget.of(options.budget)
    if target is not None and not math.isfinite(float(target)):
        raise ValueError(f"target_sqnr is {target}; it must be a number of dB")
    if fallback != "float" and find(fallback).form != STATIC:
        raise ValueError(f"fallback is {fallback!r}; it must be 'float' or a recipe of integer activations")


def _samples(model: Model, options: Options) -> Samples:
    calibration, samples = options.calibration, options.samples
    if samples is not None:
        return Samples(model, computed(samples))
    if calibration is None or isinstance(calibration, Calibration):
        what = "a tq.Calibration, which holds no samples" if calibration is not None else "not given"
        raise ValueError(
            "effort, equalize, weight_rounding, bias_correction, target_sqnr and budget run samples, and calibration "
            f"is {what}: samples= is needed"
        )
    return Samples(model, computed(calibration))


def _equalized(model: Model, samples: Samples, options: Options) -> Model:
    """The float model with equalized channels.

    per_axis: weights have a scale for each channel already, so the ranges of activations are made alike; samples show
    these ranges.  Else the ranges of weights are made alike, and a MINIMUM beside each RELU6 is worth its time.
    benchmarks/bench_better.py measured both ways for both: each is worse with the other's.
    """
    if isinstance(options.calibration, Calibration):
        raise ValueError("calibration is a tq.Calibration, of the model before it is equalized: give samples instead")
    if options.per_axis:
        data, found = scaled(
            model, samples.lists(), options.limits, relu6="keep", per_axis=True, num_threads=options.num_threads
        )
    else:
        data, found = scaled(model, None, options.limits, relu6="minimum", per_axis=False)
    if not found:
        raise ValueError(NOTHING)
    return Model(data)


def _clamps(model: Model, options: Options) -> dict[str, QuantizationParams]:
    """{name of the input of each MINIMUM that equalize added: the parameters of its output}.

    Input, constant and output of a MINIMUM share parameters.  The constant of an enlarged channel may lie far above the
    output's range; without these overrides the shared range would contain it, with longer steps for no gain.
    """
    calibration, recipe = options.calibration, options.recipe
    if recipe.form != STATIC or not isinstance(calibration, Calibration):
        return {}
    found = {}
    for op in model.subgraphs[0].operators:
        source = op.inputs[0] if op.name == "MINIMUM" else None
        if source is not None and source.name.endswith(CLAMPED):
            low, high = calibration.range(op.output_indices[0])
            centered = recipe.activations == "int16"
            made = choose_quantization_params(low, high, recipe.activations, symmetric=centered, rule="mlir")
            found[source.name] = made
    return found


def _calibrated(model: Model, samples: Samples, options: Options, others: Sequence[Any] | None = None) -> Options:
    """The options with a calibration that every build can use; without one where no recipe asks for it.

    others: samples of other signatures; None: the `others` of `samples`."""
    given, observer = options.calibration, options.observer
    if isinstance(given, Calibration):
        made = given if observer is None else given.with_observer(observer, options.percentile)
    elif not options.is_static:
        return replace(options, calibration=None)
    else:
        chosen: dict[str, Any] = {"observer": observer or "minmax", "percentile": options.percentile}
        threads = options.num_threads if options.executor is None else None
        chosen |= {"progress": False, "num_threads": threads, "executor": options.executor, **options.limits._asdict()}
        fed = [*samples.lists(), *(samples.others if others is None else others)]
        made = calibrate(model, fed, **chosen)
    return replace(options, calibration=made, observer=None)


def _corrected(model: Model, made: bytes, samples: Samples, options: Options, may_lack_layers: bool) -> bytes:
    quantized = Model(made)
    if layers_of(model, quantized):
        return correct_biases(model, quantized, samples, num_threads=options.num_threads, **options.limits._asdict())
    if may_lack_layers:
        return made
    raise ValueError("bias_correction has no effect: no CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED is quantized")


def _rounded(model: Model, made: bytes, samples: Samples, options: Options, may_lack_layers: bool) -> bytes:
    def method(op: Operator) -> str:
        given = any(tensor is not None and tensor.name in options.overrides for tensor in op.inputs[1:2])
        return NEAREST if given else method_of(op, options)

    rounded = round_weights(
        model,
        Model(made),
        samples,
        method,
        limits=options.limits,
        num_threads=options.num_threads,
        executor=options.executor,
    )
    if rounded is None and not may_lack_layers:
        raise ValueError(f"weight_rounding has no effect: {NOT_ROUNDED}")
    return made if rounded is None else rounded
