# SPDX-License-Identifier: Apache-2.0
"""Post-training quantization: tq.quantize_model, and tq.plan_quantization, which shows its decisions.

tq.quantize_model("float.tflite", "dynamic_int8", output="int8.tflite")
print(tq.plan_quantization("float.tflite", "int8", calibration=samples))
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tq import saving
from tq._core import QuantizationParams
from tq.calibration.calibrate import Calibration
from tq.calibration.samples import Data
from tq.quantization import build, improve, recipes
from tq.quantization.options import Options, check
from tq.quantization.plan import QuantizationPlan
from tq.quantization.recipes import FAST, NEAREST, Rule
from tq.quantization.result import QuantizedModel
from tq.running.limits import Limits
from tq.sources import Source, snapshot


def quantize_model(
    model: Source,
    recipe: str = "int8",
    *,
    calibration: Calibration | Data | None = None,
    observer: str | None = None,
    percentile: float = 99.99,
    io: str = "float32",
    per_axis: bool = True,
    rules: Iterable[Rule] = (),
    overrides: Mapping[str, tuple[float, float] | QuantizationParams] | None = None,
    min_elements: int = 1024,
    block_size: int = 32,
    custom_weights: Mapping[str, Sequence[int]] | None = None,
    default_ranges: tuple[float, float] | None = None,
    input_stats: Mapping[str, tuple[float, float]] | None = None,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    effort: str = FAST,
    weight_rounding: str = NEAREST,
    equalize: bool = False,
    bias_correction: bool = False,
    target_sqnr: float | None = None,
    budget: int | str | None = None,
    fallback: str = "float",
    samples: Data | None = None,
    num_threads: int | None = None,
    executor: Any = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> QuantizedModel:
    """A float model, quantized.

    model: a path, bytes or a tq.Model, which stays as it is.
    recipe: "int8", "int16x8": int8 weights, and activations of int8 or int16, whose ranges come from calibration;
        operators without an integer kernel stay float32 between DEQUANTIZE and QUANTIZE (docs/quantization.md lists
        them).  "int4", "int16x4": the same with int4 weights of CONV_2D and FULLY_CONNECTED; others'
        stay int8, since LiteRT's reference kernels have no int4 ones of DEPTHWISE_CONV_2D.  "uint8": uint8
        activations and weights, which are asymmetric, as toco writes whole models.  The other recipes leave activations
        float32 and need no calibration.  "dynamic_int8", "dynamic_int4", "dynamic_int2": integer weights, which kernels
        multiply with activations that they quantize to 8 bits as they run.  "blockwise_int4": so, with a scale for each
        `block_size` weights of a row; of FULLY_CONNECTED alone.  "weight_only_int8", "weight_only_int4",
        "weight_only_int2", "float16": weights behind a DEQUANTIZE (for float16, all float constants of two values and
        more).
    calibration: a tq.Calibration of this model, of which recipes of float activations take the scales of weights that
        it has from a model or a file of JSON; or samples as tq.calibrate takes them, of one signature or several;
        subgraphs that only signatures without samples run stay float32.  FAKE_QUANT operators, and QUANTIZE before
        DEQUANTIZE, go, also where the caller of a model of integer inputs or outputs has one of the two; what they set
        is taken before a calibration's ranges; those that the file stores as min and max, where there is none.
    observer, percentile: how ranges are found, as for tq.calibrate: "minmax" by default, "moving_average",
        "percentile", "mse", "entropy".  With a tq.Calibration, its own choice is the default; another choice needs its
        histograms.
    io: the type of each signature's inputs and outputs that are integers inside: "float32"; "int8" or "uint8" where
        those are int8, "int16" where they are int16.
    per_axis: a scale for each channel, where the operator's kernel takes them; else one for each constant.
    rules: tq.Rule objects, for operators that get another recipe; the last that holds is taken.
    overrides: for activations of recipes "int8" and "int16x8", and for weights, by the tensor's name: a range
        (low, high), or the parameters, tq.QuantizationParams((scale, zero_point)), of weights with a scale or one a
        channel.  A name that the first subgraph lacks is looked for in the others.  Tensors that must have equal
        parameters get them too.
    min_elements: weights with fewer stay float32; TFLiteConverter's number by default.  Does not concern float16.
    block_size: of blockwise_int4: 32, 64, 128 or 256; rows that it does not divide get a scale each.
    custom_weights: {"MyOp": [1, 2]}: which inputs of custom operators are weights, for recipes of float activations.
        The dynamic ones hand them over as they are, one scale each; weight_only ones behind a DEQUANTIZE.
    default_ranges: (low, high): the range of activations that have none from another source.  No calibration is needed
        then: size and speed of the model can be measured before there is data.  An error where all ranges are known.
    input_stats: {an input's name: (mean, std)}: real = (q - mean) / std, of the quantized values q that the input has.
    output: a path to write the model to as well; the file appears whole or not at all.
    in_place: `output` may be the path of `model`.
    effort: how long to search for a model with smaller errors: "fast": not at all.  "better", seconds to minutes:
        channels of activations are scaled across branches, ranges are chosen by the errors at the outputs, weights are
        rounded by "gptq".  This model is taken if its errors on samples that it was not made from are less than those
        of "fast"; "best" tests this more surely, in up to twice the time.  The scaled float model computes the same,
        nearly to the bit, except for a RELU6 whose input is greater than in the samples.
    weight_rounding: "nearest"; or, for the inputs that samples give each layer, with earlier layers rounded already:
        "gptq", the more accurate, or "comq".  It concerns int8, int4 and int2 weights with zero point 0 in the first
        subgraph that one CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV or BATCH_MATMUL reads, or several
        of one kind, for whose inputs together they are rounded.  Their scales and biases change too.  Weights that
        overrides name stay.
    equalize: scale channels first so that they quantize better: see tq.equalize.
    bias_correction: change biases so that layers keep the mean outputs of the float model: see tq.correct_biases.
    target_sqnr: dB: as few operators as reach this signal-to-noise ratio of the outputs, over all samples, get the
        recipe `fallback`: "float", or "int16x8" where the others are int8.  The most sensitive (tq.sensitivity) first.
    budget: the bytes that the file may grow by, 20_000 or "10%" of the model without fallback; or the time that a run
        may grow by, "500us", "2ms" or "10% time".  Time is measured on this machine with `num_threads` (1) and the
        kernels that give the bits of LiteRT's default; it varies, so two calls may choose different operators.
        Operators get the recipe `fallback` until the budget is spent: those first whose quantization costs most
        accuracy (tq.sensitivity) for the bytes or the time that their fallback adds.
    samples: run by these six, as tq.calibrate takes them; by default the samples of `calibration`.
    num_threads: for runs of samples: as of tq.calibrate, and of tq.Interpreter for these six.
    executor: any concurrent.futures executor: its workers find ranges, as for tq.calibrate, and gather what
        weight_rounding needs, layer by layer, sixteen samples at a time.  The bytes are the same without it.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    Returns the quantized model, bytes with two attributes.  weights_on_grid: (n, of): of the `of` constants to which
    training gave a scale, n have it.  notes: for constants without the scale of their training, of the calibration, or
    of the min and max that the file stores (an error where these are no range): the reason.
    Rounded to the nearest, int8 weights are TFLiteConverter's, int4 weights ai-edge-quantizer's to the bit (but no
    scale of a block is 0).
    Operators are given the versions that their kernels have.  Weights that several operators share stay shared.
    ValueError: no such recipe; a model that is quantized already, weights that are not finite, nothing to quantize;
    a calibration that is missing, empty, of another model, or without a finite value of a tensor; overrides of a tensor
    that does not exist, or that contradict each other; an io that an input or output is not inside; a rule, an override
    or an option that has no effect.  OSError: output is the model's own path, an input, no regular file, or read-only.
    """
    model = snapshot(model)
    options = Options(
        recipes.find(recipe),
        calibration=calibration,
        observer=observer,
        percentile=percentile,
        io=io,
        per_axis=bool(per_axis),
        rules=tuple(rules),
        overrides=dict(overrides or {}),
        min_elements=min_elements,
        block_size=block_size,
        custom_weights=dict(custom_weights or {}),
        default_ranges=default_ranges,
        input_stats=dict(input_stats or {}),
        effort=effort,
        weight_rounding=weight_rounding,
        equalize=equalize,
        bias_correction=bias_correction,
        target_sqnr=target_sqnr,
        budget=budget,
        fallback=fallback,
        samples=samples,
        num_threads=num_threads,
        executor=executor,
        limits=Limits(max_memory, max_multiply_adds),
    )
    goal = saving.target(output, calibration, samples, model=model, in_place=in_place)
    result = (improve.build if check(options).runs_samples else build.build)(model, options)
    if goal is not None:
        goal.save(result)
    return result


def plan_quantization(
    model: Source,
    recipe: str = "int8",
    *,
    calibration: Calibration | Data | None = None,
    observer: str | None = None,
    percentile: float = 99.99,
    io: str = "float32",
    per_axis: bool = True,
    rules: Iterable[Rule] = (),
    overrides: Mapping[str, tuple[float, float] | QuantizationParams] | None = None,
    min_elements: int = 1024,
    block_size: int = 32,
    custom_weights: Mapping[str, Sequence[int]] | None = None,
    default_ranges: tuple[float, float] | None = None,
    input_stats: Mapping[str, tuple[float, float]] | None = None,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> QuantizationPlan:
    """The decisions of tq.quantize_model for these arguments, one by one; nothing is written.

    Operators: their recipe, their type, and the reason where they stay float32.  Groups of activations that share
    parameters: the parameters, the range and its source.  Variables and control flow: whether they hold integers.
    Constants: their type.  The places of QUANTIZE and DEQUANTIZE.

    print() shows tables, a notebook too.  ValueError: as tq.quantize_model.
    """
    options = Options(
        recipes.find(recipe),
        calibration=calibration,
        observer=observer,
        percentile=percentile,
        io=io,
        per_axis=bool(per_axis),
        rules=tuple(rules),
        overrides=dict(overrides or {}),
        min_elements=min_elements,
        block_size=block_size,
        custom_weights=dict(custom_weights or {}),
        default_ranges=default_ranges,
        input_stats=dict(input_stats or {}),
        num_threads=num_threads,
        limits=Limits(max_memory, max_multiply_adds),
    )
    return build.plan(snapshot(model), check(options))
