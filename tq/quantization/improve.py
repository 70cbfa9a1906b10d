# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model with equalization, second-order rounding, bias correction and fallback, which make a model better
than plain rounding.

They come in this order: the float model is equalized, quantized, its biases corrected, its weights rounded anew; then
its outputs are measured against the float model's on the samples, and while they are too far off, the operators that
cost most fall back.  How many fall back is found by halving, since more of them mean less noise, nearly; the returned
model was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tq._core import Model, Operator, QuantizationParams, choose_quantization_params
from tq.accuracy import measuring
from tq.accuracy.matching import is_computed
from tq.accuracy.measuring import Samples
from tq.accuracy.sensitivities import measure
from tq.calibration.calibrate import Calibration, calibrate
from tq.quantization.bias_correction import correct_biases, layers_of
from tq.quantization.build import build as build_plain
from tq.quantization.equalization import CLAMPED, NOTHING, scaled
from tq.quantization.options import Options
from tq.quantization.recipes import NEAREST, STATIC, Rule, find
from tq.quantization.result import QuantizedModel
from tq.quantization.rounding import NOT_ROUNDED, round_weights
from tq.quantization.rules import method_of
from tq.running.limits import Limits

_MOST = 8  # samples that the ranking of operators looks at


def build(model: Model, options: Options) -> QuantizedModel:
    """tq.quantize_model of checked options that run samples."""
    _check(options)
    samples = _samples(model, options)
    if options.equalize:
        model = _equalized(model, samples, options)
    options = replace(options, calibration=_calibration(model, samples, options))
    if options.equalize:
        options = replace(options, own_overrides=_clamps(model, options))

    def made(rules: Sequence[Rule]) -> QuantizedModel:
        quantized = build_plain(model, replace(options, own_rules=tuple(rules)))
        data: bytes = quantized
        if options.bias_correction:
            data = _corrected(model, data, samples, options, bool(rules))
        if options.rounds_weights:
            data = _rounded(model, data, samples, options, bool(rules))
        return QuantizedModel.of(data, quantized.weights_on_grid, quantized.notes)

    if options.target_sqnr is None:
        return made(())
    return _reach(model, samples, made, options)


def _check(options: Options) -> None:
    target, fallback = options.target_sqnr, options.fallback
    if target is not None and not math.isfinite(float(target)):
        raise ValueError(f"target_sqnr is {target}; it must be a number of dB")
    if fallback != "float" and find(fallback).form != STATIC:
        raise ValueError(f"fallback is {fallback!r}; it must be 'float' or a recipe of integer activations")


def _samples(model: Model, options: Options) -> Samples:
    calibration, samples = options.calibration, options.samples
    if samples is not None:
        return Samples(model, samples)
    if calibration is None or isinstance(calibration, Calibration):
        what = "a tq.Calibration, which holds no samples" if calibration is not None else "not given"
        raise ValueError(
            f"equalize, weight_rounding, bias_correction and target_sqnr run samples, and calibration is {what}: "
            "samples= is needed"
        )
    return Samples(model, calibration)


def _equalized(model: Model, samples: Samples, options: Options) -> Model:
    """With a scale for each channel of the weights, the activations are left to make alike, which samples show.  With
    one scale the weights matter most, and a MINIMUM beside each RELU6 is worth it.  So it was measured
    (benchmarks/bench_better.py): the other way round is worse for both."""
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
    """Parameters for the input of each MINIMUM of equalize: its output's.

    The MINIMUM's tensors share parameters.  Without this they would have to reach up to the highest of its constants,
    which stands for a channel that was made large; but quantized values end where the output ends anyway.
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


def _calibration(model: Model, samples: Samples, options: Options) -> Calibration | None:
    """A calibration that every build can use; None where no recipe asks for one."""
    given = options.calibration
    if isinstance(given, Calibration) or not options.is_static:
        return given if isinstance(given, Calibration) else None
    return calibrate(
        model,
        samples.all(),
        observer=options.observer or "minmax",
        percentile=options.percentile,
        progress=False,
        num_threads=options.num_threads,
        **options.limits._asdict(),
    )


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

    rounded = round_weights(model, Model(made), samples, method, limits=options.limits, num_threads=options.num_threads)
    if rounded is None and not may_lack_layers:
        raise ValueError(f"weight_rounding has no effect: {NOT_ROUNDED}")
    return made if rounded is None else rounded


# ---- fallback ----


def _reach(
    model: Model,
    samples: Samples,
    build: Callable[[Sequence[Rule]], QuantizedModel],
    options: Options,
) -> QuantizedModel:
    """The model in which the fewest operators, the most sensitive ones, have another recipe."""
    recipe, threads, limits = options.fallback, options.num_threads, options.limits
    assert options.target_sqnr is not None
    target = float(options.target_sqnr)
    exact = measuring.outputs(model, samples, threads, limits)
    made: dict[int, QuantizedModel] = {}
    found: dict[int, float] = {}

    def measured(indices: list[int]) -> float:
        count = len(indices)
        if count not in found:
            made[count] = build((Rule(recipe, index=tuple(indices), subgraph=0),) if indices else ())
            noises = measuring.output_noises(exact, measuring.outputs(Model(made[count]), samples, threads, limits))
            found[count] = measuring.together(noises)
        return found[count]

    if measured([]) >= target:
        return made[0]
    order = _order(model, made[0], samples, threads, limits)
    low, high = 0, len(order)
    if recipe == "float":
        high -= 1  # something is to stay quantized
    while high - low > 1:
        middle = (low + high) // 2
        if measured(order[:middle]) >= target:
            high = middle
        else:
            low = middle
    if high > 0:
        measured(order[:high])
    good = [count for count, decibels in found.items() if decibels >= target]
    if good:
        return made[min(good)]
    best = max(found, key=lambda count: found[count])
    raise ValueError(
        f"target_sqnr is {target:g} dB; the best that was found is {found[best]:.2f} dB, with {best} of {len(order)} "
        f"operators as {recipe!r}"
    )


def _order(model: Model, quantized: bytes, samples: Samples, threads: int | None, limits: Limits) -> list[int]:
    """The quantized operators: the most sensitive first, operators that were not ranked last."""
    ranked = measure(model, Model(quantized), samples.first(_MOST), num_threads=threads, limits=limits)
    indices = [row.operator for row in ranked if row.operator is not None]
    known = set(indices)
    rest = [op.index for op in model.subgraphs[0].operators if is_computed(op) and op.index not in known]
    return [*indices, *rest]
