# SPDX-License-Identifier: Apache-2.0
"""The command line: tq, and python -m tq.

Exit codes: 0 fine; 1 problems or differences found; 2 bad use, or a file that cannot be read or written, with one
line on stderr; 130 interrupted.  A reader that closes the pipe early is no error.  Each command makes its whole text
before it writes any of it, and returns it with its exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from tq._core import Model
    from tq.calibration import Calibration
    from tq.interpreter import Interpreter

Result = tuple[str, int]

# Those of tq.recipes, which is imported when it is needed; a test holds the two against each other.
RECIPE_NAMES = (
    "int8",
    "int16x8",
    "dynamic_int8",
    "dynamic_int4",
    "blockwise_int4",
    "weight_only_int8",
    "weight_only_int4",
    "float16",
    "float",
)
IO_TYPES = ("float32", "int8", "uint8", "int16")
NUMERICS = ("reference", "optimized", "xnnpack")
FINE, FOUND, BAD, INTERRUPTED = 0, 1, 2, 130
DEMO = Path(__file__).with_name("demo.tflite")


class _Failure(Exception):
    """Bad use or an unreadable file, in one line."""


class _Exit(Exception):
    """argparse is done: its text, already printed, and an exit code."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse would add its usage."""

    def error(self, message: str) -> NoReturn:
        raise _Failure(f"{message} (see '{self.prog} --help')")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _Exit(status)


# ---- reading ----


def _open(path: str) -> Model:
    import tq

    try:
        return tq.Model(path)
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror or error}") from error
    except (tq.Error, ValueError) as error:
        raise _Failure(f"{path}: no TensorFlow Lite model: {error}") from error


def _dumps(value: Any) -> str:
    from tq import jsonable

    return jsonable.dumps(value)


# ---- commands ----


def _show(args: argparse.Namespace) -> Result:
    from tq import jsonable
    from tq.listing import listing

    model = _open(args.file)
    # --tensors and --ops each ask for a part; neither or both for the whole
    operators, tensors = args.ops or not args.tensors, args.tensors or not args.ops
    if args.json:
        return _dumps(jsonable.model(model, operators=operators, tensors=tensors)), FINE
    return listing(model, operators=operators, tensors=tensors), FINE


def _array_text(value: Any) -> str:
    import numpy as np

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


def _details(args: argparse.Namespace) -> Result:
    model = _open(args.file)
    if not 0 <= args.subgraph < len(model.subgraphs):
        raise _Failure(f"{args.file}: there is no subgraph {args.subgraph}; the model has {len(model.subgraphs)}")
    details = model.get_tensor_details(args.subgraph)
    return _dumps(details) if args.json else _details_text(details), FINE


def _summary(args: argparse.Namespace) -> Result:
    summary = _open(args.file).summary()
    return _dumps(summary.to_dict()) if args.json else str(summary), FINE


def _problems(args: argparse.Namespace) -> Result:
    problems = _open(args.file).problems
    code = FOUND if problems else FINE
    if args.json:
        return _dumps(
            [{"code": p.code, "place": p.place, "text": p.text, "severity": p.severity} for p in problems]
        ), code
    return "\n".join(f"{p.severity} {p.code}: {p.place}: {p.text}" for p in problems), code


def _export(args: argparse.Namespace) -> Result:
    from tq.export import export_npz

    model = _open(args.file)
    try:
        result = export_npz(model, args.output, dequantized=args.dequantized)
    except OSError as error:
        raise _Failure(f"{args.output}: {error.strerror or error}") from error
    for place, reason in result.skipped:
        _complain(f"{args.file}: {place}: not exported: {reason}")
    count = len(result.arrays)
    return f"{count} array{'' if count == 1 else 's'} in {args.output}", FOUND if result.skipped else FINE


def _diff(args: argparse.Namespace) -> Result:
    from tq.differences import diff

    differences = diff(_open(args.a), _open(args.b))
    code = FOUND if differences else FINE
    shown = differences[: args.limit] if args.limit else differences
    left_out = len(differences) - len(shown)
    if args.json:
        rows = [{"kind": d.kind, "place": d.place, "what": d.what, "text": d.text} for d in shown]
        return _dumps({"differences": rows, "left_out": left_out}), code
    lines = list(map(str, shown))
    if left_out:
        lines.append(f"... and {left_out} more (--limit 0 shows all)")
    return "\n".join(lines), code


def _interpreter(path: str, args: argparse.Namespace, keep: bool = False, numerics: str | None = None) -> Interpreter:
    from tq.interpreter import Interpreter

    threads = args.threads or None
    return Interpreter(
        model=_open(path), num_threads=threads, experimental_preserve_all_tensors=keep, numerics=numerics
    )


def _read_array(path: str) -> Any:
    """The arrays of an .npz file as a dict, or the array of an .npy file."""
    import numpy as np

    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _Failure(f"{path}: no array of NumPy: {error}") from error


def _inputs(args: argparse.Namespace, details: list[dict[str, Any]]) -> Any:
    """Inputs in the model's order, or by name: from files, else at random from --seed."""
    import numpy as np

    if args.input:
        arrays = [_read_array(path) for path in args.input]
        return arrays[0] if len(arrays) == 1 and isinstance(arrays[0], dict) else arrays
    random = np.random.default_rng(args.seed)
    result = []
    for item in details:
        dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
        if dtype.kind not in "iufb":
            raise _Failure(f"input {item['name']!r} is of {dtype}: --input is needed")
        value: Any
        if dtype.kind == "f":
            value = random.uniform(-1, 1, shape)
        elif dtype.itemsize <= 2:
            low, high = (0, 2) if dtype.kind == "b" else (np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1)
            value = random.integers(low, high, shape)
        else:
            value = np.zeros(shape)
        result.append(value.astype(dtype))
    return result


def _fed(interpreter: Interpreter, args: argparse.Namespace) -> Interpreter:
    from tq.comparison import feed

    try:
        feed(interpreter, _inputs(args, interpreter.get_input_details()))
    except ValueError as error:
        raise _Failure(str(error)) from error
    return interpreter


def _run_model(args: argparse.Namespace) -> Result:
    import numpy as np

    interpreter = _fed(_interpreter(args.file, args, keep=args.all, numerics=args.numerics), args)
    interpreter.invoke()
    details = interpreter.get_tensor_details() if args.all else interpreter.get_output_details()
    outputs: dict[str, Any] = {}
    for item in details:
        name = item["name"] or f"tensor {item['index']}"
        key = name if name not in outputs else f"{name} {item['index']}"
        outputs[key] = np.asarray(interpreter.get_tensor(item["index"]))
    if args.output:
        from tq.export import write_npz

        try:
            write_npz(args.output, outputs)
        except OSError as error:
            raise _Failure(f"{args.output}: {error.strerror or error}") from error
        return f"{len(outputs)} array{'' if len(outputs) == 1 else 's'} in {args.output}", FINE
    return "\n".join(f"{key!r} {v.dtype} {list(v.shape)}\n{_array_text(v)}" for key, v in outputs.items()), FINE


def _compare(args: argparse.Namespace) -> Result:
    from tq.comparison import compare

    if args.b is None and args.numerics is None:
        raise _Failure("compare needs two models, or one and --numerics")
    names = args.numerics or (None, None)
    one, two = (
        _interpreter(path, args, keep=True, numerics=name)
        for path, name in zip((args.a, args.b or args.a), names, strict=True)
    )
    try:
        comparison = compare(one, two, _inputs(args, one.get_input_details()))
    except ValueError as error:
        raise _Failure(str(error)) from error
    return str(comparison), FINE if comparison.equal and not comparison.unmatched else FOUND


def _profile(args: argparse.Namespace) -> Result:
    interpreter = _fed(_interpreter(args.file, args, numerics=args.numerics), args)
    return str(interpreter.profile(runs=max(args.runs, 1))), FINE


def _backends(args: argparse.Namespace) -> Result:
    from tq.interpreter import Interpreter

    interpreter = Interpreter(model=_open(args.file), numerics=args.numerics)
    if args.subgraph >= interpreter.num_subgraphs():
        raise _Failure(f"the model has {interpreter.num_subgraphs()} subgraphs")
    rows = interpreter.backends(args.subgraph)
    if args.json:
        return _dumps({"operators": [vars(row) for row in rows]}), FINE
    return str(rows), FINE


def _two_names(text: str) -> tuple[str, str]:
    one, two = text.split(",")
    if not {one, two} <= set(NUMERICS):
        raise ValueError
    return one, two


_two_names.__name__ = "pair, as reference,xnnpack"  # argparse's word for it in errors


def _rule(text: str) -> tuple[str, str]:
    """What stands before the last = and behind it."""
    what, equals, recipe = text.rpartition("=")
    if not (equals and what and recipe):
        raise ValueError
    return what, recipe


_rule.__name__ = "rule, as CONV_2D=float"  # argparse's word for it in errors


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, ends = text.rpartition("=")
    low, comma, high = ends.partition(",")
    if not (equals and name and comma):
        raise ValueError
    return name, (float(low), float(high))


_range.__name__ = "range, as conv1/relu=-1,6"


def _samples(given: list[str], model: Model) -> list[Any]:
    """The samples in files of arrays: of FILE for the first subgraph, of KEY=FILE for the signature KEY's."""
    from tq.samples import Inputs

    keys = {signature.key for signature in model.signatures}
    found: list[Any] = []
    for text in given:
        key, equals, path = text.partition("=")
        keyed = bool(equals) and (key in keys or not os.path.exists(text))
        arrays = _read_array(path if keyed else text)
        try:
            inputs = Inputs(model, key if keyed else None)
            if not isinstance(arrays, dict) and len(inputs.tensors) != 1:
                raise ValueError(f"there are {len(inputs.tensors)} inputs: an .npz with an array for each is needed")
            samples = list(inputs.each(arrays, "the samples"))
        except ValueError as error:
            raise _Failure(f"{text}: {error}") from error
        found += [(key, sample) for sample in samples] if keyed else samples
    return found


def _load_calibration(path: str) -> Calibration:
    from tq.calibration import Calibration

    try:
        return Calibration.load(path)
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror or error}") from error


def _quantize(args: argparse.Namespace) -> Result:
    from tq.quantizing import quantize_model
    from tq.recipes import Rule

    model = _open(args.file)
    corrects = args.bias_correction or args.target_sqnr is not None
    if not args.samples and (args.equalize or corrects):
        raise _Failure("--equalize, --bias-correction and --target-sqnr run samples: --samples is needed")
    if args.samples and args.calibration and not corrects:
        raise _Failure("--calibration and --samples are given; one is needed")
    samples = _samples(args.samples, model) if args.samples else None
    try:
        rules = [Rule(recipe, operator=name) for name, recipe in args.operator or ()]
        rules += [Rule(recipe, tensor=pattern) for pattern, recipe in args.tensor or ()]
        data = quantize_model(
            model,
            args.recipe,
            calibration=_load_calibration(args.calibration) if args.calibration else samples,
            io=args.io,
            per_axis=not args.per_tensor,
            rules=rules,
            overrides=dict(args.range or ()),
            min_elements=args.min_elements,
            block_size=args.block_size,
            observer=args.observer,
            percentile=args.percentile,
            equalize=args.equalize,
            bias_correction=args.bias_correction,
            target_sqnr=args.target_sqnr,
            fallback=args.fallback,
            samples=samples if args.calibration else None,
            output=args.out,
        )
    except OSError as error:
        raise _Failure(f"{args.out}: {error.strerror or error}") from error
    except ValueError as error:
        raise _Failure(f"{args.file}: {error}") from error
    return f"{args.out}: {len(data)} bytes, {len(data) / model.nbytes:.3f} of {model.nbytes}", FINE


def _equalize(args: argparse.Namespace) -> Result:
    from tq.equalization import equalize

    model = _open(args.file)
    samples = _samples(args.samples, model) if args.samples else None
    try:
        data = equalize(model, samples=samples, relu6=args.relu6, output=args.out)
    except OSError as error:
        raise _Failure(f"{args.out}: {error.strerror or error}") from error
    except ValueError as error:
        raise _Failure(f"{args.file}: {error}") from error
    return f"{args.out}: {len(data)} bytes", FINE


def _sensitivity(args: argparse.Namespace) -> Result:
    from tq.sensitivities import sensitivity

    model = _open(args.file)
    samples = _samples(args.samples, model)
    try:
        found = sensitivity(model, samples, recipe=args.recipe, by=args.by, max_samples=args.max_samples)
    except ValueError as error:
        raise _Failure(f"{args.file}: {error}") from error
    return str(found), FINE


def _report(args: argparse.Namespace) -> Result:
    from tq.reporting import report

    a, b = _open(args.float), _open(args.quantized)
    try:
        made = report(
            a, b, _samples(args.samples, a), max_samples=args.max_samples or None, num_threads=args.threads or None
        )
    except ValueError as error:
        raise _Failure(str(error)) from error
    try:
        made.save(args.output)
    except OSError as error:
        raise _Failure(f"{args.output}: {error.strerror or error}") from error
    worst = "".join(f"; the lowest tensor has {row.sqnr_db:.1f} dB: {row.name}" for row in made.worst[:1])
    return f"{args.output}: outputs {made.sqnr_db:.1f} dB over {made.samples} samples{worst}", FINE


def _demo(args: argparse.Namespace) -> Result:
    if args.write is not None:
        from tq.demo_float import write

        try:
            files = write(args.write)
        except OSError as error:
            raise _Failure(f"{args.write}: {error.strerror or error}") from error
        return "\n".join(files), FINE
    model = _open(str(DEMO))
    tensor = model.inputs[0]
    assert tensor is not None
    text = (
        f"{model}\n\nThe input's quantization, str(model.inputs[0].quantization), reads\n\n"
        f"    {tensor.quantization}\n\n"
        f"where q is the int8 code, and the ends are the min and max that the file stores.\n\n"
        f"{_demo_run(model)}"
    )
    return text, FINE


def _demo_run(model: Model) -> str:
    """What the demonstration model computes: a picture of a bright and a dark half."""
    import numpy as np

    from tq.interpreter import Interpreter

    tensor, output = model.inputs[0], model.outputs[0]
    assert tensor is not None and output is not None
    picture = np.ones(tensor.shape, np.float32)
    picture[:, :, tensor.shape[2] // 2 :] = -1
    interpreter = Interpreter(model=model, numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(tensor.index, tensor.quantization.quantize(picture))
    interpreter.invoke()
    codes = interpreter.get_tensor(output.index)
    real = np.array2string(output.quantization.dequantize(codes), precision=4)
    profile = interpreter.profile(runs=100)
    slowest = next(iter(profile.by_name()))
    return (
        "Run on a picture that is bright on its left half, with the bits of TFLite's reference kernels, it gives\n\n"
        f"    {codes.tolist()}, which stand for {real}\n\n"
        f"in {profile.microseconds:.0f} microseconds, most of them in {slowest}."
    )


# ---- the command line ----


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


_count.__name__ = "number"  # argparse's word for it in errors


def _parser() -> _Parser:
    parser = _Parser(
        prog="tq", description="Reads, checks, explains, runs and quantizes TensorFlow Lite models.", allow_abbrev=False
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], Result], text: str, *files: str) -> _Parser:
        made = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
        made.set_defaults(run=run)
        for file in files:
            made.add_argument(file.lower(), metavar=file, help="a .tflite file")
        return made

    def json(parser: _Parser) -> None:
        parser.add_argument("--json", action="store_true", help="write JSON; NaN and infinities are strings")

    show = command("show", _show, "list subgraphs, operators, tensors, signatures and sizes", "FILE")
    show.add_argument("--tensors", action="store_true", help="only the tensors")
    show.add_argument("--ops", action="store_true", help="only the operators")
    json(show)
    details = command("details", _details, "what get_tensor_details() returns, min and max included", "FILE")
    details.add_argument("--subgraph", type=_count, default=0, metavar="N", help="which subgraph (0)")
    json(details)
    json(command("summary", _summary, "count operators, parameters, bytes and multiply-adds", "FILE"))
    json(command("problems", _problems, "say what is wrong with a file; exit code 1 if anything is", "FILE"))
    export = command("export", _export, "write all constants to an .npz file", "FILE")
    export.add_argument("-o", "--output", required=True, metavar="OUT.npz", help="the file to write")
    export.add_argument("--dequantized", action="store_true", help="quantized constants as float32 real values")
    diff = command("diff", _diff, "say what differs between two models; exit code 1 if anything does", "A", "B")
    diff.add_argument("--limit", type=_count, default=100, metavar="N", help="lines to print (100; 0: all)")
    json(diff)

    def samples(parser: _Parser, use: str = "", *more: str, required: bool = False) -> None:
        parser.add_argument(
            "--samples",
            *more,
            action="append",
            required=required,
            metavar="X",
            help=f"{use}an .npz of arrays by input name, or an .npy; KEY=X: of a signature; any number of them",
        )

    def inputs(parser: _Parser) -> None:
        parser.add_argument(
            "--input",
            action="append",
            metavar="X",
            help="what one run reads: an .npy for each input, or one .npz of arrays by input name (random)",
        )
        parser.add_argument("--seed", type=_count, default=0, metavar="N", help="of random inputs (0)")
        parser.add_argument("--threads", type=_count, default=1, metavar="N", help="threads (1)")

    def numerics(parser: _Parser, default: str | None = None) -> None:
        text = "whose arithmetic" if default is None else f"whose arithmetic ({default})"
        parser.add_argument("--numerics", choices=NUMERICS, default=default, help=text)

    run = command("run", _run_model, "run a model and print or save its outputs", "FILE")
    inputs(run)
    numerics(run)
    run.add_argument("-o", "--output", metavar="OUT.npz", help="the file to write")
    run.add_argument("--all", action="store_true", help="every tensor, not only the outputs")
    compare = command("compare", _compare, "run two models on the same inputs, tensor by tensor", "A")
    compare.add_argument("b", metavar="B", nargs="?", help="a .tflite file; with --numerics it may be left out")
    compare.add_argument(
        "--numerics",
        type=_two_names,
        metavar="X,Y",
        help="whose arithmetic A and B run with: reference, optimized or xnnpack",
    )
    inputs(compare)
    profile = command("profile", _profile, "say what each operator takes: time, bytes, multiply-adds", "FILE")
    inputs(profile)
    numerics(profile)
    profile.add_argument("--runs", type=_count, default=10, metavar="N", help="runs to take the mean of (10)")
    backends = command("backends", _backends, "say whose kernels LiteRT would run each operator with, and why", "FILE")
    numerics(backends, "xnnpack")
    backends.add_argument("--subgraph", type=_count, default=0, metavar="N", help="which subgraph (0)")
    json(backends)
    quantize = command("quantize", _quantize, "write a quantized model", "FILE")
    quantize.add_argument("out", metavar="OUT", help="the file to write")
    quantize.add_argument("--recipe", required=True, metavar="NAME", help=f"one of: {', '.join(RECIPE_NAMES)}")
    samples(quantize, "for int8, int16x8: ")
    quantize.add_argument("--calibration", metavar="X.npz", help="for int8, int16x8: what Calibration.save wrote")
    quantize.add_argument("--io", choices=IO_TYPES, default="float32", help="for int8, int16x8: of inputs and outputs")
    quantize.add_argument("--per-tensor", action="store_true", help="one scale a tensor in place of one a channel")
    quantize.add_argument(
        "--operator", action="append", type=_rule, metavar="NAME=RECIPE", help="another recipe for operators of a name"
    )
    quantize.add_argument(
        "--tensor",
        action="append",
        type=_rule,
        metavar="REGEX=RECIPE",
        help="another recipe for operators whose constants or outputs have such a name",
    )
    quantize.add_argument(
        "--range", action="append", type=_range, metavar="NAME=LOW,HIGH", help="for int8, int16x8: of an activation"
    )
    quantize.add_argument(
        "--min-elements", type=_count, default=1024, metavar="N", help="leave smaller weights float (1024)"
    )
    quantize.add_argument(
        "--block-size", type=_count, default=32, metavar="N", help="of blockwise_int4: 32, 64, 128 or 256 (32)"
    )
    quantize.add_argument("--observer", metavar="NAME", help="minmax, moving_average, percentile, mse or entropy")
    quantize.add_argument("--percentile", type=float, default=99.99, metavar="P", help="of that observer (99.99)")
    quantize.add_argument("--equalize", action="store_true", help="scale channels first so that they quantize better")
    quantize.add_argument("--bias-correction", action="store_true", help="take shifts of means back through biases")
    quantize.add_argument(
        "--target-sqnr", type=float, metavar="DB", help="let the operators that cost most fall back until it is reached"
    )
    quantize.add_argument("--fallback", default="float", metavar="NAME", help="the recipe they get (float)")
    equalize = command("equalize", _equalize, "scale a float model's channels; it computes the same", "FILE")
    equalize.add_argument("out", metavar="OUT", help="the file to write")
    samples(equalize, "for ranges: ")
    equalize.add_argument("--relu6", choices=("keep", "minimum"), default="keep", help="leave it, or write it out")
    sensitivity = command("sensitivity", _sensitivity, "rank operators by what quantizing each alone costs", "FILE")
    sensitivity.add_argument("--recipe", default="int8", metavar="NAME", help="as of quantize (int8)")
    samples(sensitivity, required=True)
    sensitivity.add_argument("--by", choices=("operator", "tensor"), default="operator", help="what to rank")
    sensitivity.add_argument("--max-samples", type=_count, default=4, metavar="N", help="samples to run (4; 0: all)")
    report = command("report", _report, "write a page that shows where a quantized model's accuracy goes", "FLOAT")
    report.add_argument("quantized", metavar="QUANTIZED", help="a .tflite file that was made from it")
    samples(report, "", "--inputs", required=True)
    report.add_argument("-o", "--output", required=True, metavar="OUT.html", help="the file to write")
    report.add_argument("--max-samples", type=_count, default=0, metavar="N", help="run no more samples (0: all)")
    report.add_argument("--threads", type=_count, default=1, metavar="N", help="threads (1)")
    demo = command("demo", _demo, "list a small quantized model that comes with tq")
    demo.add_argument("--write", metavar="FOLDER", help="write a float model and samples to quantize it with instead")
    return parser


def _complain(message: str) -> None:
    """One line on stderr; names in files and paths may hold anything."""
    line = "".join(c if c.isprintable() else "." for c in message)
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"tq: {line}\n")


def _discard_stdout() -> None:
    """Sends what is still to be written nowhere, so that the interpreter's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _write(text: str) -> None:
    """Writes to stdout, which may be closed, end early, or know fewer characters than the text has."""
    if sys.stdout is None:
        return
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if text:
            sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise _Failure(f"cannot write: {error.strerror or error}") from error


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        import tq

        _write(f"tq {tq.__version__}")
        return FINE
    if not hasattr(args, "run"):
        raise _Failure("a command is needed (see 'tq --help')")
    from tq import Error

    try:
        text: str
        code: int
        text, code = args.run(args)
    except Error as error:  # a part of the model that cannot be read
        raise _Failure(str(error)) from error
    _write(text)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `tq` with `argv` (sys.argv[1:] without it), and returns its exit code."""
    try:
        return _run(argv)
    except _Exit as done:
        with contextlib.suppress(_Failure):
            _write("")
        return int(done.args[0])
    except _Failure as failure:
        _complain(str(failure))
        return BAD
    except BrokenPipeError:  # argparse writes --help itself, and lets this through before Python 3.11
        _discard_stdout()
        return FINE
    except MemoryError:
        _complain("out of memory")
        return BAD
    except KeyboardInterrupt:
        _discard_stdout()
        return INTERRUPTED
