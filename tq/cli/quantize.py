# SPDX-License-Identifier: Apache-2.0
"""The commands that quantize models, and those that measure the error."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tq
from tq.cli import terminal
from tq.cli.commands import (
    FINE,
    Failure,
    Result,
    csv_of,
    dumps,
    limits,
    open_model,
    refuse_inputs,
    refusing,
    shown,
    using,
    written,
)
from tq.cli.samples import sample_files, samples_of
from tq.pages.tables import Table

if TYPE_CHECKING:
    from tq._core import Model
    from tq.calibration.calibrate import Calibration
    from tq.quantization.plan import QuantizationPlan

DEMO = Path(tq.__file__).with_name("demo.tflite")


def output_of(args: argparse.Namespace, model: Model, samples: list[str] | None = None, *inputs: Any) -> str:
    """The file that a command will write, checked before its work.  Failure: none is given, or it may not be
    replaced."""
    from tq.saving import target

    out = args.out or (args.file if args.in_place else None)
    if out is None:
        raise Failure("OUT is needed, the file to write, or --in-place")
    with using(out), refusing():
        target(out, sample_files(samples or [], model), *inputs, model=model, in_place=args.in_place)
    return str(out)


def _load_calibration(path: str) -> Calibration:
    from tq.calibration.calibrate import Calibration

    with using(path):
        return Calibration.load(path)


def quantize(args: argparse.Namespace) -> Result:
    from tq.quantization.quantize import plan_quantization, quantize_model

    if args.plan:
        return _plan(args)
    model = open_model(args.file)
    out = output_of(args, model, args.samples, args.calibration)
    corrects = args.bias_correction or args.target_sqnr is not None or args.weight_rounding != "nearest"
    corrects = corrects or args.effort != "fast" or args.budget is not None
    if not args.samples and (args.equalize or corrects):
        raise Failure(
            "--effort, --equalize, --weight-rounding, --bias-correction, --target-sqnr and --budget run samples: "
            "--samples is needed"
        )
    if args.samples and args.calibration and not corrects:
        raise Failure("--calibration and --samples are given; one is needed")
    samples = samples_of(args, model)
    options = _options(args, samples)
    improves = args.equalize or corrects
    if samples is not None and not improves and not args.calibration:
        options |= _calibrated(args, model, samples)
    with using(out), refusing(args.file):
        data = quantize_model(
            model,
            args.recipe,
            **options,
            effort=args.effort,
            weight_rounding=args.weight_rounding,
            equalize=args.equalize,
            bias_correction=args.bias_correction,
            target_sqnr=args.target_sqnr,
            budget=args.budget,
            fallback=args.fallback,
            samples=samples if args.calibration else None,
            output=out,
            in_place=args.in_place,
        )
    placed, trained = data.weights_on_grid
    grids = f"; {placed} of {trained} weights lie on the trained grid" if trained else ""
    text = f"{out}: {len(data)} bytes, {len(data) / model.nbytes:.3f} of {model.nbytes}{grids}"
    floats = "" if improves else _floats(plan_quantization(model, args.recipe, **options))
    facts = {"bytes": len(data), "of": model.nbytes, "float32": floats, "notes": list(data.notes)}
    return written(args, out, "\n".join(filter(None, (text, floats, *_first(data.notes)))), **facts), FINE


def _calibrated(args: argparse.Namespace, model: Model, samples: list[Any]) -> dict[str, Any]:
    """The calibration that quantize_model and plan_quantization would each make; {}: the recipe needs none."""
    from tq.calibration.calibrate import calibrate
    from tq.quantization.options import needs_samples

    with refusing(args.file):
        if not needs_samples(args.recipe, {}):
            return {}
        made = calibrate(
            model,
            samples,
            observer=args.observer or "minmax",
            percentile=args.percentile,
            num_threads=args.threads,
            **limits(args),
        )
    nothing_runs = {"max_memory": None, "max_multiply_adds": None, "num_threads": None}
    return {"calibration": made, "observer": None, "percentile": 99.99, **nothing_runs}


def _first(notes: tuple[str, ...]) -> list[str]:
    """The first three notes, and the number of the others."""
    return [*notes[:3], f"{len(notes) - 3} more notes: --json has them"] if len(notes) > 3 else list(notes)


def _floats(plan: QuantizationPlan) -> str:
    """The operators that stay float32, and why, in a line; "": there are none."""
    if not plan.floats:
        return ""
    reasons: dict[str, list[str]] = {}
    for row in plan.floats:
        reasons.setdefault(row.why or "the recipe leaves it", []).append(f"{row.name} {row.index}")
    told = [f"{', '.join(names[:3])}{' ...' if len(names) > 3 else ''} ({why})" for why, names in reasons.items()]
    more = f"; {len(told) - 3} more reasons" if len(told) > 3 else ""
    count = f"{len(plan.floats)} of {len(plan.operators)} operators stay float32"
    return f"{count}: {'; '.join(told[:3])}{more} (--plan lists all)"


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
        "num_threads": args.threads,
        **limits(args),
    }


def _plan(args: argparse.Namespace) -> Result:
    from tq.quantization.quantize import plan_quantization

    if args.out or args.in_place:
        raise Failure("--plan writes nothing: leave OUT and --in-place out")
    improves = args.equalize or args.bias_correction or args.target_sqnr is not None or args.fallback != "float"
    improves = improves or args.budget is not None
    if improves or args.weight_rounding != "nearest" or args.effort != "fast":
        raise Failure(
            "--plan is without --effort, --equalize, --weight-rounding, --bias-correction, --target-sqnr, --budget "
            "and --fallback"
        )
    if args.samples and args.calibration:
        raise Failure("--calibration and --samples are given; one is needed")
    model = open_model(args.file)
    samples = samples_of(args, model)
    with refusing(args.file):
        plan = plan_quantization(model, args.recipe, **_options(args, samples))
    if args.csv:
        return csv_of(plan.table()), FINE
    return dumps(plan.to_dict()) if args.json else plan.text(terminal.width()), FINE


def dequantize(args: argparse.Namespace) -> Result:
    from tq.quantization.dequantize import dequantize_model

    model = open_model(args.file)
    out = output_of(args, model, None)
    with using(out), refusing(args.file):
        options = {"dtype": args.dtype, "fake_quant": args.fake_quant}
        data = dequantize_model(model, out, **options, in_place=args.in_place)
    return written(args, out, f"{out}: {len(data)} bytes", bytes=len(data)), FINE


def transcode(args: argparse.Namespace) -> Result:
    from tq.quantization.transcode import transcode

    model = open_model(args.file)
    out = output_of(args, model, None)
    with using(out), refusing(args.file):
        data = transcode(model, args.dtype, out, in_place=args.in_place)
    lost = [
        f"{change.tensor!r} of subgraph {change.subgraph}: a scale of its own, {change.scale:g}; "
        f"real values differ by at most {change.loss:g}, {change.steps:.2f} steps"
        for change in data.changes
    ]
    return written(args, out, "\n".join([*lost, f"{out}: {len(data)} bytes"]), bytes=len(data), lost=lost), FINE


def equalize(args: argparse.Namespace) -> Result:
    from tq.quantization.equalization import equalize

    model = open_model(args.file)
    out = output_of(args, model, args.samples)
    samples = samples_of(args, model)
    with using(out), refusing(args.file), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        data = equalize(
            model,
            samples=samples,
            relu6=args.relu6,
            output=out,
            in_place=args.in_place,
            num_threads=args.threads,
            **limits(args),
        )
    notes = [f"warning: {warning.message}" for warning in caught]
    return written(args, out, "\n".join([*notes, f"{out}: {len(data)} bytes"]), bytes=len(data), notes=notes), FINE


def sensitivity(args: argparse.Namespace) -> Result:
    from tq.quantization.sensitivity import sensitivity

    model = open_model(args.file)
    samples = samples_of(args, model)
    assert samples is not None
    with refusing(args.file):
        found = sensitivity(
            model, samples, recipe=args.recipe, by=args.by, num_threads=args.threads, progress=None, **limits(args)
        )
    return shown(args, found), FINE


def report(args: argparse.Namespace) -> Result:
    from tq.reports.report import report

    a, b = open_model(args.float), open_model(args.quantized)
    refuse_inputs(args.output, a, b, sample_files(args.samples, a))
    samples = samples_of(args, a)
    assert samples is not None
    with refusing():
        made = report(
            a,
            b,
            samples,
            advise=args.advise,
            num_threads=args.threads,
            **limits(args),
        )
    with using(args.output):
        made.save(args.output)
    worst = "".join(f"; the lowest tensor has {row.sqnr_db:.1f} dB: {row.name}" for row in made.worst[:1])
    text = f"{args.output}: outputs {made.sqnr_db:.1f} dB over {made.samples} samples{worst}"
    return written(args, args.output, text, sqnr_db=made.sqnr_db, samples=made.samples), FINE


def demo(args: argparse.Namespace) -> Result:
    if args.write is not None:
        from tq.cli.demo_float import write

        with using(args.write):
            files = write(args.write)
        if args.csv:
            return csv_of(Table(("file",), [[file] for file in files])), FINE
        return dumps({"files": files}) if args.json else "\n".join(files), FINE
    model = open_model(str(DEMO))
    tensor = model.inputs[0]
    assert tensor is not None
    run = _demo_run(model)
    if args.csv:
        rows = list(zip(run["quantized"], run["real"], strict=True))
        return csv_of(Table(("#quantized", "#real"), rows)), FINE
    if args.json:
        return dumps(run), FINE
    real = np.array2string(np.array([run["real"]], np.float32), precision=4)
    text = (
        f"{model}\n\nThe input's quantization, str(model.inputs[0].quantization), reads\n\n"
        f"    {tensor.quantization}\n\n"
        f"where q is the int8 value, and the ends are the min and max that the file stores.\n\n"
        "Run on a picture that is bright on its left half, with the bits of TFLite's reference kernels, it gives\n\n"
        f"    {[run['quantized']]}, which stand for {real}\n\n"
        f"in {run['microseconds']:.0f} microseconds, most of them in {run['slowest']}."
    )
    return text, FINE


def _demo_run(model: Model) -> dict[str, Any]:
    """The outputs and the time of a run of the demonstration model on a picture with a bright and a dark half."""
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
    profile = interpreter.profile(runs=100)
    return {
        "quantized": quantized.ravel().tolist(),
        "real": output.quantization.dequantize(quantized).ravel().tolist(),
        "microseconds": profile.microseconds,
        "slowest": next(iter(profile.by_name())),
    }
