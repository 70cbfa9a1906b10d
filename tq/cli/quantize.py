# SPDX-License-Identifier: Apache-2.0
"""The commands that quantize models, and those that measure the error."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tq
from tq.cli.commands import FINE, Failure, Result, limits, open_model, read_array, refuse_inputs, refusing, saved, using

if TYPE_CHECKING:
    from tq._core import Model
    from tq.calibration.calibrate import Calibration

DEMO = Path(tq.__file__).with_name("demo.tflite")


def _out(args: argparse.Namespace, model: Model, samples: list[str] | None, *inputs: Any) -> str:
    """The file that a command will write, checked before its work.  Failure: none is given, or it may not be
    replaced."""
    from tq.saving import target

    out = args.out or (args.file if args.in_place else None)
    if out is None:
        raise Failure("OUT is needed, the file to write, or --in-place")
    with using(out), refusing():
        target(out, _sample_files(samples or [], model), *inputs, model=model, in_place=args.in_place)
    return str(out)


def _key_and_file(text: str, model: Model) -> tuple[str | None, str]:
    """FILE, or KEY=FILE."""
    key, equals, path = text.partition("=")
    keyed = bool(equals) and (any(item.key == key for item in model.signatures) or not os.path.exists(text))
    return (key, path) if keyed else (None, text)


def _sample_files(given: list[str], model: Model) -> list[str]:
    return [_key_and_file(text, model)[1] for text in given]


def samples_of(given: list[str], model: Model) -> list[Any]:
    """The samples in files of arrays: FILE for the first subgraph, KEY=FILE for signature KEY."""
    from tq.calibration.samples import Inputs

    found: list[Any] = []
    for text in given:
        key, path = _key_and_file(text, model)
        arrays = read_array(path)
        with refusing(text):
            inputs = Inputs(model, key)
            if not isinstance(arrays, dict) and len(inputs.tensors) != 1:
                raise ValueError(f"there are {len(inputs.tensors)} inputs: an .npz with an array for each is needed")
            samples = list(inputs.each(arrays, "the samples"))
        found += [(key, sample) for sample in samples] if key is not None else samples
    return found


def _load_calibration(path: str) -> Calibration:
    from tq.calibration.calibrate import Calibration

    with using(path):
        return Calibration.load(path)


def quantize(args: argparse.Namespace) -> Result:
    from tq.quantization.quantize import quantize_model

    if args.plan:
        return _plan(args)
    model = open_model(args.file)
    out = _out(args, model, args.samples, args.calibration)
    corrects = args.bias_correction or args.target_sqnr is not None or args.weight_rounding != "nearest"
    if not args.samples and (args.equalize or corrects):
        raise Failure(
            "--equalize, --weight-rounding, --bias-correction and --target-sqnr run samples: --samples is needed"
        )
    if args.samples and args.calibration and not corrects:
        raise Failure("--calibration and --samples are given; one is needed")
    samples = samples_of(args.samples, model) if args.samples else None
    with using(out), refusing(args.file):
        data = quantize_model(
            model,
            args.recipe,
            **_options(args, samples),
            weight_rounding=args.weight_rounding,
            equalize=args.equalize,
            bias_correction=args.bias_correction,
            target_sqnr=args.target_sqnr,
            fallback=args.fallback,
            samples=samples if args.calibration else None,
            output=out,
            in_place=args.in_place,
        )
    placed, trained = data.weights_on_grid
    grids = f"; {placed} of {trained} weights lie on the trained grid" if trained else ""
    return saved(out, f"{out}: {len(data)} bytes, {len(data) / model.nbytes:.3f} of {model.nbytes}{grids}"), FINE


def _options(args: argparse.Namespace, samples: list[Any] | None) -> dict[str, Any]:
    """The arguments that tq.quantize_model and tq.plan_quantization share."""
    from tq.quantization.recipes import Rule

    rules = [Rule(recipe, operator=name) for name, recipe in args.operator or ()]
    rules += [Rule(recipe, tensor=pattern) for pattern, recipe in args.tensor or ()]
    return {
        "calibration": _load_calibration(args.calibration) if args.calibration else samples,
        "io": args.io,
        "per_axis": not args.per_tensor,
        "rules": rules,
        "overrides": dict(args.range or ()),
        "custom_weights": dict(args.custom_weights or ()),
        "default_ranges": args.default_ranges,
        "input_stats": dict(args.input_stats or ()),
        "min_elements": args.min_elements,
        "block_size": args.block_size,
        "observer": args.observer,
        "percentile": args.percentile,
        **limits(args),
    }


def _plan(args: argparse.Namespace) -> Result:
    from tq.quantization.quantize import plan_quantization

    if args.out or args.in_place:
        raise Failure("--plan writes nothing: leave OUT and --in-place out")
    improves = args.equalize or args.bias_correction or args.target_sqnr is not None or args.fallback != "float"
    if improves or args.weight_rounding != "nearest":
        raise Failure(
            "--plan is without --equalize, --weight-rounding, --bias-correction, --target-sqnr and --fallback"
        )
    if args.samples and args.calibration:
        raise Failure("--calibration and --samples are given; one is needed")
    model = open_model(args.file)
    samples = samples_of(args.samples, model) if args.samples else None
    with refusing(args.file):
        return str(plan_quantization(model, args.recipe, **_options(args, samples))), FINE


def dequantize(args: argparse.Namespace) -> Result:
    from tq.quantization.dequantize import dequantize_model

    model = open_model(args.file)
    out = _out(args, model, None)
    with using(out), refusing(args.file):
        options = {"dtype": args.dtype, "fake_quant": args.fake_quant}
        data = dequantize_model(model, out, **options, in_place=args.in_place)
    return saved(out, f"{out}: {len(data)} bytes"), FINE


def transcode(args: argparse.Namespace) -> Result:
    from tq.quantization.transcode import transcode

    model = open_model(args.file)
    out = _out(args, model, None)
    with using(out), refusing(args.file):
        data = transcode(model, args.dtype, out, in_place=args.in_place)
    lost = [
        f"{change.tensor!r} of subgraph {change.subgraph}: a scale of its own, {change.scale:g}; "
        f"real values differ by at most {change.loss:g}, {change.steps:.2f} steps"
        for change in data.changes
    ]
    return saved(out, "\n".join([*lost, f"{out}: {len(data)} bytes"])), FINE


def equalize(args: argparse.Namespace) -> Result:
    from tq.quantization.equalization import equalize

    model = open_model(args.file)
    out = _out(args, model, args.samples)
    samples = samples_of(args.samples, model) if args.samples else None
    with using(out), refusing(args.file), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        data = equalize(model, samples=samples, relu6=args.relu6, output=out, in_place=args.in_place)
    notes = [f"warning: {warning.message}" for warning in caught]
    return saved(out, "\n".join([*notes, f"{out}: {len(data)} bytes"])), FINE


def sensitivity(args: argparse.Namespace) -> Result:
    from tq.quantization.sensitivity import sensitivity

    model = open_model(args.file)
    samples = samples_of(args.samples, model)
    with refusing(args.file):
        found = sensitivity(model, samples, recipe=args.recipe, by=args.by, max_samples=args.max_samples)
    return str(found), FINE


def report(args: argparse.Namespace) -> Result:
    from tq.reports.report import report

    a, b = open_model(args.float), open_model(args.quantized)
    refuse_inputs(args.output, a, b, _sample_files(args.samples, a))
    samples = samples_of(args.samples, a)
    with refusing():
        made = report(
            a,
            b,
            samples,
            max_samples=args.max_samples or None,
            advise=args.advise,
            num_threads=args.threads,
            **limits(args),
        )
    with using(args.output):
        made.save(args.output)
    worst = "".join(f"; the lowest tensor has {row.sqnr_db:.1f} dB: {row.name}" for row in made.worst[:1])
    text = f"{args.output}: outputs {made.sqnr_db:.1f} dB over {made.samples} samples{worst}"
    return saved(args.output, text), FINE


def demo(args: argparse.Namespace) -> Result:
    if args.write is not None:
        from tq.cli.demo_float import write

        with using(args.write):
            files = write(args.write)
        return "\n".join(files), FINE
    model = open_model(str(DEMO))
    tensor = model.inputs[0]
    assert tensor is not None
    text = (
        f"{model}\n\nThe input's quantization, str(model.inputs[0].quantization), reads\n\n"
        f"    {tensor.quantization}\n\n"
        f"where q is the int8 value, and the ends are the min and max that the file stores.\n\n"
        f"{_demo_run(model)}"
    )
    return text, FINE


def _demo_run(model: Model) -> str:
    """A run of the demonstration model on a picture with a bright and a dark half."""
    from tq.running.interpreter import Interpreter

    tensor, output = model.inputs[0], model.outputs[0]
    assert tensor is not None and output is not None
    picture = np.ones(tensor.shape, np.float32)
    picture[:, :, tensor.shape[2] // 2 :] = -1
    interpreter = Interpreter(model=model, numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(tensor.index, tensor.quantization.quantize(picture))
    interpreter.invoke()
    quantized = interpreter.get_tensor(output.index)
    real = np.array2string(output.quantization.dequantize(quantized), precision=4)
    profile = interpreter.profile(runs=100)
    slowest = next(iter(profile.by_name()))
    return (
        "Run on a picture that is bright on its left half, with the bits of TFLite's reference kernels, it gives\n\n"
        f"    {quantized.tolist()}, which stand for {real}\n\n"
        f"in {profile.microseconds:.0f} microseconds, most of them in {slowest}."
    )
