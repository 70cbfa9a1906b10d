# SPDX-License-Identifier: Apache-2.0
"""The commands that look at models and run them, and the functions that all commands share.

A command takes the parsed arguments and returns its whole text and its exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import zipfile
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import tq
from tq.texts import dotted

if TYPE_CHECKING:
    from tq._core import Model
    from tq.running.interpreter import Interpreter

Result = tuple[str, int]

FINE, FOUND = 0, 1


class Failure(Exception):
    """Bad use or an unreadable file, in one line."""


@contextlib.contextmanager
def using(path: str) -> Iterator[None]:
    """Turns the system's errors into Failures that name the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from error


@contextlib.contextmanager
def refusing(place: str = "") -> Iterator[None]:
    """Turns ValueError into a Failure, which begins with `place`."""
    try:
        yield
    except ValueError as error:
        raise Failure(f"{place}: {error}" if place else str(error)) from error


def complain(message: str) -> None:
    """One line on stderr; names in files and paths may hold anything."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"tq: {dotted(message)}\n")


# ---- writing ----


def refuse_inputs(path: str | None, *inputs: Any) -> None:
    """Failure, before any work is done, where a file to be written is an input or cannot be replaced."""
    from tq.saving import target

    with using(path or ""):
        target(path, *inputs)


def saved(path: str, text: str) -> str:
    """A command's text about the file that it wrote; on stderr, and "" returned, where the file went to stdout."""
    from tq.saving import is_stdout

    if not is_stdout(path):
        return text
    complain(text)
    return ""


# ---- reading ----


def open_model(path: str) -> Model:
    """The model of a file.  Failure: it cannot be read or is no model."""
    try:
        with using(path):
            return tq.Model(path)
    except (tq.Error, ValueError) as error:
        raise Failure(f"{path}: no TensorFlow Lite model: {error}") from error


def read_array(path: str) -> Any:
    """The arrays of an .npz file as a dict, or the array of an .npy file.  Failure: it is neither."""
    try:
        with using(path), open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Failure(f"{path}: no array of NumPy: {error}") from error


def dumps(value: Any) -> str:
    from tq.inspection import jsonable

    return jsonable.dumps(value)


# ---- commands ----


def show(args: argparse.Namespace) -> Result:
    from tq.inspection import jsonable
    from tq.inspection.listing import listing

    model = open_model(args.file)
    # --tensors and --ops each ask for a part; neither or both for the whole
    operators, tensors = args.ops or not args.tensors, args.tensors or not args.ops
    if args.json:
        return dumps(jsonable.model(model, operators=operators, tensors=tensors)), FINE
    return listing(model, operators=operators, tensors=tensors), FINE


def _array_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=8, edgeitems=3, max_line_width=10**6)
    return getattr(value, "__name__", None) or str(value)


def _details_text(details: list[dict[str, Any]]) -> str:
    lines = []
    for tensor in details:
        lines.append(f"{tensor['index']} {tensor['name']!r}")
        for key, value in tensor.items():
            if key in ("index", "name") or (key == "sparsity_parameters" and not value):
                continue
            if isinstance(value, dict):
                lines += [f"    {key}", *(f"        {name}: {_array_text(item)}" for name, item in value.items())]
            else:
                lines.append(f"    {key}: {_array_text(value)}")
    return "\n".join(lines)


def details(args: argparse.Namespace) -> Result:
    model = open_model(args.file)
    if not 0 <= args.subgraph < len(model.subgraphs):
        raise Failure(f"{args.file}: there is no subgraph {args.subgraph}; the model has {len(model.subgraphs)}")
    details = model.get_tensor_details(args.subgraph)
    return dumps(details) if args.json else _details_text(details), FINE


def summary(args: argparse.Namespace) -> Result:
    summary = open_model(args.file).summary()
    return dumps(summary.to_dict()) if args.json else str(summary), FINE


def problems(args: argparse.Namespace) -> Result:
    problems = open_model(args.file).problems
    code = FOUND if problems else FINE
    if args.json:
        return dumps(
            [{"code": p.code, "place": p.place, "text": p.text, "severity": p.severity} for p in problems]
        ), code
    return "\n".join(f"{p.severity} {p.code}: {p.place}: {p.text}" for p in problems), code


def _written(arrays: Collection[Any], path: str) -> str:
    return f"{len(arrays)} array{'' if len(arrays) == 1 else 's'} in {path}"


def export(args: argparse.Namespace) -> Result:
    from tq.inspection.export import export_npz

    model = open_model(args.file)
    with using(args.output):
        result = export_npz(model, args.output, dequantized=args.dequantized)
    for place, reason in result.skipped:
        complain(f"{args.file}: {place}: not exported: {reason}")
    return saved(args.output, _written(result.arrays, args.output)), FOUND if result.skipped else FINE


def diff(args: argparse.Namespace) -> Result:
    from tq.inspection.differences import diff

    if args.html or args.output:
        from tq.cli.viewing import diff_page

        return diff_page(args)
    differences = diff(open_model(args.a), open_model(args.b))
    code = FOUND if differences else FINE
    limit = 100 if args.limit is None else args.limit
    shown = differences[:limit] if limit else differences
    left_out = len(differences) - len(shown)
    if args.json:
        rows = [{"kind": d.kind, "place": d.place, "what": d.what, "text": d.text} for d in shown]
        return dumps({"differences": rows, "left_out": left_out}), code
    lines = list(map(str, shown))
    if left_out:
        lines.append(f"... and {left_out} more (--limit 0 shows all)")
    return "\n".join(lines), code


def limits(args: argparse.Namespace) -> dict[str, Any]:
    """--max-memory and --max-multiply-adds, as keyword arguments of functions that run models."""
    return {"max_memory": args.max_memory, "max_multiply_adds": args.max_multiply_adds}


def _interpreter(
    path: str,
    args: argparse.Namespace,
    preserve: bool = False,
    numerics: str | None = None,
    rounding: str | None = None,
) -> Interpreter:
    from tq.running.interpreter import Interpreter

    return Interpreter(
        model=open_model(path),
        num_threads=args.threads,
        experimental_preserve_all_tensors=preserve,
        numerics=numerics,
        rounding=rounding,
        **limits(args),
    )


def _inputs(args: argparse.Namespace, details: list[dict[str, Any]]) -> Any:
    """Inputs in the model's order, or by name: from files, else at random from --seed."""
    if args.input:
        if args.seed:
            raise Failure("--seed is given and has no effect: --input gives the inputs, and nothing is random")
        arrays = [read_array(path) for path in args.input]
        if len(arrays) > 1 and any(isinstance(array, dict) for array in arrays):
            raise Failure("several --input are .npy files, one for each input; one .npz holds all inputs")
        return arrays[0] if len(arrays) == 1 and isinstance(arrays[0], dict) else arrays
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


def _fed(interpreter: Interpreter, args: argparse.Namespace) -> Interpreter:
    from tq.running.comparison import feed

    with refusing():
        feed(interpreter, _inputs(args, interpreter.get_input_details()))
    return interpreter


def run(args: argparse.Namespace) -> Result:
    refuse_inputs(args.output, args.file, args.input)
    interpreter = _fed(_interpreter(args.file, args, preserve=args.all, numerics=args.numerics), args)
    interpreter.invoke()
    details = interpreter.get_tensor_details() if args.all else interpreter.get_output_details()
    outputs: dict[str, Any] = {}
    for item in details:
        name = item["name"] or f"tensor {item['index']}"
        key = name if name not in outputs else f"{name} {item['index']}"
        outputs[key] = np.asarray(interpreter.get_tensor(item["index"]))
    if args.output:
        from tq.inspection.export import write_npz

        with using(args.output):
            write_npz(args.output, outputs, args.file, args.input)
        return saved(args.output, _written(outputs, args.output)), FINE
    return "\n".join(f"{key!r} {v.dtype} {list(v.shape)}\n{_array_text(v)}" for key, v in outputs.items()), FINE


def compare(args: argparse.Namespace) -> Result:
    from tq.running.comparison import compare

    if args.b is None and args.numerics is None and args.rounding is None:
        raise Failure("compare needs two models, or one and --numerics or --rounding")
    names = args.numerics or (("reference",) * 2 if args.rounding else (None, None))
    rounds = args.rounding or (None, None)
    with refusing():
        one, two = (
            _interpreter(path, args, preserve=True, numerics=name, rounding=rounding)
            for path, name, rounding in zip((args.a, args.b or args.a), names, rounds, strict=True)
        )
        comparison = compare(one, two, _inputs(args, one.get_input_details()))
    return str(comparison), FINE if comparison.equal and not comparison.unmatched else FOUND


def profile(args: argparse.Namespace) -> Result:
    interpreter = _fed(_interpreter(args.file, args, numerics=args.numerics), args)
    return str(interpreter.profile(runs=args.runs)), FINE


def explain(args: argparse.Namespace) -> Result:
    from tq.explanation.element import explain as explain_element

    interpreter = _fed(_interpreter(args.file, args, preserve=True, numerics=args.numerics), args)
    interpreter.invoke()
    tensor = int(args.tensor) if args.tensor.isdecimal() else args.tensor
    with refusing():
        explanation = explain_element(interpreter, tensor, args.index if len(args.index) > 1 else args.index[0])
    return dumps(explanation.as_dict()) if args.json else str(explanation), FINE


def backends(args: argparse.Namespace) -> Result:
    from tq.running.interpreter import Interpreter

    interpreter = Interpreter(model=open_model(args.file), numerics=args.numerics)
    if args.subgraph >= interpreter.num_subgraphs():
        raise Failure(f"the model has {interpreter.num_subgraphs()} subgraphs")
    rows = interpreter.backends(args.subgraph)
    if args.json:
        return dumps({"operators": [vars(row) for row in rows]}), FINE
    return str(rows), FINE
