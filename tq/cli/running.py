# SPDX-License-Identifier: Apache-2.0
"""The commands that run models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from tq.cli.commands import (
    FINE,
    FOUND,
    Failure,
    Result,
    array_text,
    arrays_in,
    csv_of,
    dumps,
    limits,
    open_model,
    read_array,
    refuse_inputs,
    refusing,
    shown,
    using,
    written,
)
from tq.cli.peaks import with_peaks
from tq.cli.samples import sample_files, samples_of

if TYPE_CHECKING:
    from tq._core import Model
    from tq.running.interpreter import Interpreter


def _interpreter(
    path: str | Model,
    args: argparse.Namespace,
    preserve: bool = False,
    numerics: str | None = None,
    rounding: str | None = None,
) -> Interpreter:
    from tq.running.interpreter import Interpreter

    return Interpreter(
        model=open_model(path) if isinstance(path, str) else path,
        num_threads=args.threads,
        experimental_preserve_all_tensors=preserve,
        numerics=numerics,
        rounding=rounding,
        **limits(args),
    )


# ---- inputs ----


def _inputs(args: argparse.Namespace, details: list[dict[str, Any]]) -> Any:
    """Inputs in the model's order, or by name: from files, else at random from --seed."""
    if args.input:
        if args.seed:
            raise Failure("--seed is given and has no effect: --input gives the inputs, and nothing is random")
        arrays = [read_array(path) for path in args.input]
        if len(arrays) > 1 and any(isinstance(array, dict) for array in arrays):
            raise Failure("several --input are .npy files, one for each input; one .npz holds all inputs")
        found = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], dict) else arrays
        _check_shapes(args, found, details)
        return found
    if args.resize:
        raise Failure("--resize is given and has no effect: --input gives no shapes")
    random = np.random.default_rng(args.seed or 0)
    result, is_random = [], False
    for item in details:
        dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
        if dtype.kind not in "iufb":
            raise Failure(f"input {item['name']!r} is of {dtype}: --input is needed")
        value: Any
        if dtype.kind == "f":
            value = random.uniform(-1, 1, shape)
        elif dtype.itemsize <= 2:
            low, high = (0, 2) if dtype.kind == "b" else (np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1)
            value = random.integers(low, high, shape)
        else:
            value = np.zeros(shape)
        is_random = is_random or dtype.kind == "f" or dtype.itemsize <= 2
        result.append(value.astype(dtype))
    if args.seed and not is_random:
        raise Failure("--seed is given and has no effect: wide integer inputs are zeros, and there are no others")
    return result


def _check_shapes(args: argparse.Namespace, found: Any, details: list[dict[str, Any]]) -> None:
    """Failure: an array has another shape than the file gives its input, without --resize."""
    by_name = (
        found if isinstance(found, dict) else {item["name"]: value for item, value in zip(details, found, strict=False)}
    )
    for item in details:
        wanted, shape = [int(n) for n in item["shape_signature"]], list(np.shape(by_name.get(item["name"], ())))
        if args.resize or len(shape) != len(wanted):  # of another number of dimensions: no model runs so
            continue
        if any(n not in (-1, m) for n, m in zip(wanted, shape, strict=True)):
            raise Failure(
                f"input {item['name']!r} has the shape {wanted}; --input gives {shape}: --resize runs the model so"
            )


def _fed(interpreter: Interpreter, args: argparse.Namespace) -> Interpreter:
    """The interpreter with the inputs of --input or the first sample of --samples, else random ones."""
    from tq.accuracy.comparison import feed

    samples = samples_of(args, interpreter.model, quantizes=True)
    with refusing():
        if samples is None:
            feed(interpreter, _inputs(args, interpreter.get_input_details()))
        else:
            _alone(args)
            next(_each(interpreter, samples))
    return interpreter


def _alone(args: argparse.Namespace) -> None:
    if args.input or args.seed or args.resize:
        raise Failure("--samples give the inputs: --input, --seed and --resize have no effect")


def _each(interpreter: Interpreter, samples: Any) -> Any:
    """Sets the inputs to one sample after another; the caller runs it."""
    from tq.accuracy.measuring import Samples
    from tq.progress import tracked

    fed = Samples(interpreter.model, samples, quantizes=True)
    return tracked(fed.each(interpreter), fed, "running")


# ---- commands ----


def _values(interpreter: Interpreter, details: list[dict[str, Any]]) -> dict[str, Any]:
    """Values by tensors' names; with the index where names repeat."""
    found: dict[str, Any] = {}
    for item in details:
        name = item["name"] or f"tensor {item['index']}"
        key = name if name not in found else f"{name} {item['index']}"
        found[key] = np.array(interpreter.get_tensor(item["index"]))
    return found


def _outputs(args: argparse.Namespace, interpreter: Interpreter) -> dict[str, Any]:
    """The outputs of the run; with --samples those of all, one behind the other."""
    details = interpreter.get_tensor_details() if args.all else interpreter.get_output_details()
    samples = samples_of(args, interpreter.model, quantizes=True)
    if samples is None:
        _fed(interpreter, args).invoke()
        return _values(interpreter, details)
    _alone(args)
    rows = []
    with refusing():
        for _ in _each(interpreter, samples):
            interpreter.invoke()
            rows.append(_values(interpreter, details))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def run(args: argparse.Namespace) -> Result:
    model = open_model(args.file)
    refuse_inputs(args.output, args.file, args.input, sample_files(args.samples or [], model))
    outputs = _outputs(args, _interpreter(model, args, preserve=args.all, numerics=args.numerics))
    if args.output:
        from tq.inspection.export import write_npz

        with using(args.output):
            write_npz(args.output, outputs, args.file, args.input)
        counts = {"arrays": len(outputs), "samples": len(next(iter(outputs.values()), ())) if args.samples else 1}
        return written(args, args.output, arrays_in(outputs, args.output), **counts), FINE
    if args.csv:
        return csv_of(_elements(outputs)), FINE
    if args.json:
        rows = {
            name: {"dtype": str(v.dtype), "shape": list(v.shape), "data": v.tolist()} for name, v in outputs.items()
        }
        return dumps(rows), FINE
    return "\n".join(f"{key!r} {v.dtype} {list(v.shape)}\n{array_text(v)}" for key, v in outputs.items()), FINE


def _elements(outputs: dict[str, Any]) -> Any:
    from tq.pages.tables import Table

    rows = [
        (name, " ".join(map(str, place)), item)
        for name, value in outputs.items()
        for place, item in np.ndenumerate(value)
    ]
    return Table(("name", "index", "value"), rows)


def compare(args: argparse.Namespace) -> Result:
    from tq.accuracy.comparison import compare

    if args.b is None and args.numerics is None and args.rounding is None:
        raise Failure("compare needs two models, or one and --numerics or --rounding")
    names = args.numerics or (("reference",) * 2 if args.rounding else (None, None))
    rounds = args.rounding or (None, None)
    with refusing():
        one, two = (
            _interpreter(path, args, preserve=True, numerics=name, rounding=rounding)
            for path, name, rounding in zip((args.a, args.b or args.a), names, rounds, strict=True)
        )
        floats = all(item["dtype"] == np.float32 for item in two.get_input_details())
        samples = samples_of(args, (two if floats else one).model, quantizes=True)
        if samples is None:
            comparison = compare(one, two, _inputs(args, one.get_input_details()))
        else:
            _alone(args)
            comparison = compare(one, two, samples=samples)
    return shown(args, comparison), FINE if comparison.equal and not comparison.unmatched else FOUND


def profile(args: argparse.Namespace) -> Result:
    interpreter = _fed(_interpreter(args.file, args, numerics=args.numerics), args)
    found = interpreter.profile(runs=args.runs, warm_up=args.warm_up)
    if args.peak:
        found.rows = with_peaks(found.rows, interpreter.model, args.numerics, args.threads)
    return shown(args, found), FINE


def evaluate(args: argparse.Namespace) -> Result:
    from tq.accuracy.evaluation import evaluate

    model = open_model(args.file)
    samples = samples_of(args, model, quantizes=True, labels=True)
    with refusing(args.file):
        found = evaluate(model, samples, args.metric, numerics=args.numerics, num_threads=args.threads, **limits(args))
    return shown(args, found), FINE


def calibrate(args: argparse.Namespace) -> Result:
    from tq.calibration.calibrate import calibrate

    model = open_model(args.file)
    refuse_inputs(args.output, model, sample_files(args.samples, model))
    samples = samples_of(args, model)
    with refusing(args.file):
        found = calibrate(
            model,
            samples,
            observer=args.observer,
            percentile=args.percentile,
            num_threads=args.threads,
            **limits(args),
        )
    with using(args.output):
        found.save(args.output)
    text = f"{args.output}: the ranges of {len(found.names)} tensors over {found.samples} samples"
    return written(args, args.output, text, tensors=len(found.names), samples=found.samples), FINE


def explain(args: argparse.Namespace) -> Result:
    from tq.explanation.element import explain as explain_element

    with refusing():
        made = _interpreter(args.file, args, preserve=True, numerics=args.numerics, rounding=args.rounding)
    interpreter = _fed(made, args)
    interpreter.invoke()
    tensor = int(args.tensor) if args.tensor.isdecimal() else args.tensor
    index = args.index if len(args.index) > 1 else args.index[0]
    try:
        with refusing():
            real = None if args.float is None else _float_run(args, interpreter)
            explanation = explain_element(interpreter, tensor, index, float_run=real)
    except (KeyError, IndexError, RuntimeError) as error:
        raise Failure(str(error.args[0])) from error
    if args.csv:
        return csv_of(explanation.table()), FINE
    return dumps(explanation.as_dict()) if args.json else str(explanation), FINE


def _float_run(args: argparse.Namespace, quantized: Interpreter) -> Interpreter:
    """A run of --float on the real values of the quantized run's inputs."""
    from tq.accuracy.comparison import feed

    real = _interpreter(args.float, args, preserve=True)
    given, wanted = quantized.get_input_details(), real.get_input_details()
    if len(given) != len(wanted):
        raise Failure(f"{args.float} has {len(wanted)} inputs and {args.file} {len(given)}: it is no float form of it")
    values = []
    for item, other in zip(given, wanted, strict=True):
        value, (scale, zero_point) = quantized.get_tensor(item["index"]), item["quantization"]
        is_real = np.dtype(other["dtype"]).kind == "f" and value.dtype.kind in "iu" and scale
        values.append(((value.astype(np.float32) - zero_point) * np.float32(scale)) if is_real else value)
    feed(real, values)
    real.invoke()
    return real


def backends(args: argparse.Namespace) -> Result:
    from tq.running.interpreter import Interpreter

    interpreter = Interpreter(model=open_model(args.file), numerics=args.numerics)
    if args.subgraph >= interpreter.num_subgraphs():
        raise Failure(f"the model has {interpreter.num_subgraphs()} subgraphs")
    rows = interpreter.backends(args.subgraph)
    if args.json:
        return dumps({"operators": [vars(row) for row in rows]}), FINE
    return shown(args, rows), FINE
