# SPDX-License-Identifier: Apache-2.0
"""The command line: tq, and python -m tq.

Exit codes: 0 fine; 1 problems or differences found; 2 bad use, or a file that cannot be read or written, with one
line on stderr; 130 interrupted.  A reader that closes the pipe early is no error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import tq
from tq.cli import checking, commands, editing, running, terminal, viewing
from tq.cli import quantize as commands_quantize
from tq.cli.commands import FINE, Failure, Result, complain, in_options
from tq.cli.manual import manual
from tq.extras import missing
from tq.nearest import hint

# The names in tq.quantization.recipes, which only its commands import; a test compares the two.
RECIPE_NAMES = (
    "int8",
    "int16x8",
    "dynamic_int8",
    "dynamic_int4",
    "dynamic_int2",
    "blockwise_int4",
    "weight_only_int8",
    "weight_only_int4",
    "weight_only_int2",
    "float16",
    "int4",
    "int16x4",
    "uint8",
    "float",
)
IO_TYPES = ("float32", "int8", "uint8", "int16")
SPECS = ("int8", "int16x8", "uint8")  # those of tq.specification.table, held like the recipes
SHELLS = ("bash", "zsh")
NUMERICS = ("reference", "optimized", "xnnpack")
BAD, INTERRUPTED = 2, 130


class _Exit(Exception):
    """argparse has printed its text and ends with an exit code."""


def _with_hint(message: str) -> str:
    """argparse's text about a wrong choice, with similar ones in place of all where there are many."""
    found = re.match(r"(.*invalid choice: )'(.*?)' \(choose from (.*)\)$", message, re.DOTALL)
    if found is None:
        return message
    near = hint(found[2], re.findall(r"[\w.-]+", found[3]))
    return f"{found[1]}{found[2]!r}{near}" if near else message


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line, without the usage that argparse adds."""

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{_with_hint(message)} (see '{self.prog} --help')")

    def arguments(self) -> list[argparse.Action]:
        """The positional arguments and options."""
        return [action for action in self._actions if not isinstance(action.choices, Mapping)]

    def commands(self) -> dict[str, _Parser]:
        """The parsers of commands, by name."""
        found: dict[str, _Parser] = {}
        for action in self._actions:
            if isinstance(action.choices, Mapping):
                found |= action.choices
        return found

    def _joined(self, args: Sequence[str]) -> list[str]:
        """ "--default-ranges", "-1,6" as one argument: argparse takes "-1,6" alone for an option."""
        taking = {name for action in self._actions if action.nargs is None for name in action.option_strings}
        made: list[str] = []
        for arg in args:
            if made and made[-1] in taking and re.match(r"-[\d.]+,", arg):
                made[-1] += f"={arg}"
            else:
                made.append(arg)
        return made

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(None if args is None else self._joined(args), namespace)
        if unknown:  # refused here, where the command's own options are known
            known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
            options = [item.partition("=")[0] for item in unknown if item.startswith("--")]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint(options[0], known) if options else ''}")
        return found, unknown

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _Exit(status)


# ---- arguments ----


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


_count.__name__ = "number"  # argparse names it so in errors


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_some.__name__ = "number of 1 or more"


def _limit(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**64:
        raise ValueError
    return number


_limit.__name__ = "number from 1"


def _two_names(text: str) -> tuple[str, str]:
    one, two = text.split(",")
    if not {one, two} <= set(NUMERICS):
        raise ValueError
    return one, two


def _two_roundings(text: str) -> tuple[str, str]:
    one, two = text.split(",")
    if not {one, two} <= {"double", "single"}:
        raise ValueError
    return one, two


_two_roundings.__name__ = "pair, as double,single"
_two_names.__name__ = "pair, as reference,xnnpack"


def _rule(text: str) -> tuple[str, str]:
    """The texts before and behind the last =."""
    subject, equals, recipe = text.rpartition("=")
    if not (equals and subject and recipe):
        raise ValueError
    return subject, recipe


_rule.__name__ = "rule, as CONV_2D=float"


def _pair(text: str) -> tuple[str, str]:
    return _rule(text)


_pair.__name__ = "pair, as conv1/relu=relu1"


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, ends = text.rpartition("=")
    low, comma, high = ends.partition(",")
    if not (equals and name and comma):
        raise ValueError
    return name, (float(low), float(high))


_range.__name__ = "range, as conv1/relu=-1,6"


def _ends(text: str) -> tuple[float, float]:
    low, high = text.split(",")
    return float(low), float(high)


_ends.__name__ = "range, as -1,6"


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


_numbers.__name__ = "numbers, as 127.5 or 124,116,104"


def _stats(text: str) -> tuple[str, tuple[float, float]]:
    return _range(text)


_stats.__name__ = "mean and std, as input=127.5,127.5"


def _places(text: str) -> tuple[str, list[int]]:
    name, equals, places = text.rpartition("=")
    if not (equals and name):
        raise ValueError
    return name, [_count(place) for place in places.split(",")]


_places.__name__ = "inputs, as MyOp=1,2"


def _indices(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


_indices.__name__ = "index, as 0,3,5,1"


_WRITES = "the file to write; -: standard output"


def _file(text: str) -> str:
    """The path of a file to write; "-" is standard output."""
    return "/dev/stdout" if text == "-" else text


def _ranges_file(text: str) -> str:
    """The path of a file of ranges, whose name says the format; "-" is standard output, of .npz."""
    if text != "-" and not text.endswith((".npz", ".json")):
        raise argparse.ArgumentTypeError(f"{text!r} ends neither in .npz nor in .json, the formats of ranges")
    return _file(text)


def _out(parser: _Parser) -> None:
    parser.add_argument("out", metavar="OUT", nargs="?", type=_file, help=_WRITES)
    parser.add_argument("--in-place", action="store_true", help="write over FILE itself")


def _forms(parser: _Parser) -> None:
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="write JSON; NaN and infinities are strings")
    forms.add_argument("--csv", action="store_true", help="write rows of comma-separated values")


def _samples(parser: _Parser, use: str = "", *more: str, required: bool = False) -> None:
    parser.add_argument(
        "--samples",
        *more,
        action="append",
        required=required,
        metavar="X",
        help=f"{use}an .npz of arrays by input name, an .npy or a folder of pictures; "
        "KEY=X: of a signature; any number of them",
    )
    parser.add_argument("--mean", type=_numbers, metavar="M", help="of pictures: (pixel - M) / S (the metadata's)")
    parser.add_argument("--std", type=_numbers, metavar="S", help="the same; one number, or one a channel, as 58,57,57")


def _most(parser: _Parser) -> None:
    parser.add_argument("--max-samples", type=_count, default=0, metavar="N", help="run no more samples (0: all)")


def _threads(parser: _Parser, default: int | None = 1, text: str = "threads (1)") -> None:
    parser.add_argument("--threads", type=_some, default=default, metavar="N", help=text)


def _inputs(parser: _Parser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        metavar="X",
        help="inputs of the run: an .npy for each input, or one .npz of arrays by input name (random)",
    )
    parser.add_argument("--resize", action="store_true", help="run at the shapes of --input where the file has others")
    parser.add_argument("--seed", type=_count, metavar="N", help="of random inputs (0)")
    _threads(parser)


def _limits(parser: _Parser) -> None:
    parser.add_argument("--max-memory", type=_limit, metavar="BYTES", help="that a run may take (the machine's)")
    parser.add_argument("--max-multiply-adds", type=_limit, metavar="N", help="that a run may take (no limit)")


def _numerics(parser: _Parser, default: str | None = None) -> None:
    text = "the arithmetic of TFLite's kernels" + ("" if default is None else f" ({default})")
    parser.add_argument("--numerics", choices=NUMERICS, default=default, help=text)


# ---- commands ----

_Add = Callable[..., _Parser]  # a command: the function that runs it and is named like it, its help, its files


def _parser() -> _Parser:
    parser = _Parser(
        prog="tq", description="Reads, checks, explains, runs and quantizes TensorFlow Lite models.", allow_abbrev=False
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    parser.add_argument("--print-completion", choices=SHELLS, metavar="SHELL", help="print completions for bash or zsh")
    parser.add_argument("--print-man", action="store_true", help="print the manual page, for man")
    found = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def add(run: Callable[[argparse.Namespace], Result], text: str, *files: str) -> _Parser:
        about = text[0].upper() + text[1:] + "."
        made = found.add_parser(run.__name__, help=text, description=about, allow_abbrev=False)
        made.set_defaults(run=run)
        for file in files:
            made.add_argument(file.lower(), metavar=file, help="a .tflite file")
        return made

    for add_command in _COMMANDS:
        add_command(add)
    return parser


def _add_show(add: _Add) -> None:
    show = add(commands.show, "list subgraphs, operators, tensors, signatures and sizes", "FILE")
    show.add_argument("--tensors", action="store_true", help="only the tensors")
    show.add_argument("--ops", action="store_true", help="only the operators")
    _forms(show)


def _add_details(add: _Add) -> None:
    details = add(commands.details, "print the result of get_tensor_details(), min and max included", "FILE")
    details.add_argument("--subgraph", type=_count, default=0, metavar="N", help="which subgraph (0)")
    _forms(details)


def _add_summary(add: _Add) -> None:
    _forms(add(commands.summary, "count operators, parameters, bytes and multiply-adds", "FILE"))


def _add_problems(add: _Add) -> None:
    _forms(add(commands.problems, "list the defects of a file; exit code 1 if there are any", "FILE"))


def _add_check(add: _Add) -> None:
    check = add(
        checking.check, "hold a model against the quantization specification; exit code 1: it breaks it", "FILE"
    )
    check.add_argument("--spec", choices=SPECS, help="which one all operators must obey (each its own)")
    check.add_argument("--ignore", action="append", metavar="RULE", help="a rule whose findings are left out")
    _samples(check, "for effects: ")
    _most(check)
    _threads(check)
    check.add_argument("--fix", action="store_true", help="write a repaired model to OUT, and say what it cost")
    check.add_argument("-o", "--output", type=_file, metavar="OUT", help=_WRITES)
    _forms(check)


def _add_view(add: _Add) -> None:
    view = add(viewing.view, "show the graph of operators in a browser, or write it as a page", "FILE")
    view.add_argument("other", metavar="OTHER", nargs="?", help="a model quantized from FILE, or the float one: SQNR")
    view.add_argument("-o", "--output", type=_file, metavar="OUT", help=_WRITES + "; no browser is opened")
    view.add_argument("--export", choices=viewing.EXPORTS, help="write the graph for Model Explorer or Graphviz to OUT")
    _samples(view, "of the float model, for SQNR (random): ")
    view.add_argument("--profile", action="store_true", help="run FILE on random inputs, and show the operators' times")
    _most(view)
    _threads(view)
    _limits(view)
    _forms(view)


def _add_export(add: _Add) -> None:
    export = add(commands.export, "write all constants to an .npz file", "FILE")
    export.add_argument("-o", "--output", type=_file, required=True, metavar="OUT.npz", help=_WRITES)
    export.add_argument("--dequantized", action="store_true", help="quantized constants as float32 real values")
    _forms(export)


def _add_diff(add: _Add) -> None:
    diff = add(viewing.diff, "list the differences between two models; exit code 1 if there are any", "A", "B")
    diff.add_argument("--limit", type=_count, metavar="N", help="lines to print (100; of a page 1000; 0: all)")
    diff.add_argument("--html", action="store_true", help="write a page to OUT: graphs, values and histograms")
    diff.add_argument("-o", "--output", type=_file, metavar="OUT", help=_WRITES)
    _forms(diff)


def _add_run(add: _Add) -> None:
    run = add(running.run, "run a model and print or save its outputs", "FILE")
    _inputs(run)
    _limits(run)
    _numerics(run)
    run.add_argument("-o", "--output", type=_file, metavar="OUT.npz", help=_WRITES)
    run.add_argument("--all", action="store_true", help="every tensor, not only the outputs")
    _samples(run, "run all of these, and hold their outputs one behind the other: ")
    _most(run)
    _forms(run)


def _add_compare(add: _Add) -> None:
    compare = add(running.compare, "run two models on the same inputs, tensor by tensor", "A")
    compare.add_argument("b", metavar="B", nargs="?", help="a .tflite file; with --numerics it may be left out")
    compare.add_argument(
        "--numerics",
        type=_two_names,
        metavar="X,Y",
        help="the arithmetic of A and of B: reference, optimized or xnnpack",
    )
    compare.add_argument(
        "--rounding",
        type=_two_roundings,
        metavar="X,Y",
        help="how the reference kernels of A and B round: double, single",
    )
    _inputs(compare)
    _samples(compare, "in place of --input, with sums over all: ")
    _most(compare)
    _limits(compare)
    _forms(compare)


def _add_profile(add: _Add) -> None:
    profile = add(running.profile, "list time, bytes and multiply-adds of each operator", "FILE")
    _inputs(profile)
    _limits(profile)
    _numerics(profile)
    profile.add_argument("--runs", type=_some, default=50, metavar="N", help="runs to measure (50)")
    profile.add_argument("--warm-up", type=_count, metavar="N", help="runs before these (0.1 s, at most 50)")
    profile.add_argument(
        "--peak",
        action="store_true",
        help="add multiply-adds a second, and the part of what a large product reaches here",
    )
    _samples(profile, "the first of these is the input: ")
    _forms(profile)


def _add_evaluate(add: _Add) -> None:
    evaluate = add(running.evaluate, "measure a model against the labels of samples", "FILE")
    _samples(evaluate, "with an array `labels`, or a folder for each class: ", required=True)
    evaluate.add_argument("--metric", choices=("top-1", "top-5"), default="top-1", help="what to measure (top-1)")
    _most(evaluate)
    _threads(evaluate)
    _numerics(evaluate)
    _limits(evaluate)
    _forms(evaluate)


def _add_calibrate(add: _Add) -> None:
    calibrate = add(running.calibrate, "write the ranges of a float model's activations, for quantize", "FILE")
    _samples(calibrate, required=True)
    calibrate.add_argument(
        "-o", "--output", type=_ranges_file, required=True, metavar="OUT", help=_WRITES + "; .npz or .json"
    )
    calibrate.add_argument("--observer", default="minmax", metavar="NAME", help="as of quantize (minmax)")
    calibrate.add_argument("--percentile", type=float, default=99.99, metavar="P", help="of that observer (99.99)")
    _most(calibrate)
    _threads(calibrate, None, "samples that run at the same time (as many as processors)")
    _limits(calibrate)
    _forms(calibrate)


def _add_explain(add: _Add) -> None:
    explain = add(running.explain, "show the steps to one element of a run", "FILE")
    explain.add_argument("tensor", metavar="TENSOR", help="name or index of an int8, uint8 or int16 tensor")
    explain.add_argument("index", metavar="INDEX", type=_indices, help="of the element: 0,3,5,1, or one number, flat")
    _inputs(explain)
    _samples(explain, "the first of these is the input: ")
    _limits(explain)
    _numerics(explain)
    explain.add_argument("--rounding", choices=("double", "single"), help="how the reference kernels round (double)")
    explain.add_argument("--float", metavar="FLOAT", help="the float model: its value, and the error of each step")
    _forms(explain)


def _add_backends(add: _Add) -> None:
    backends = add(
        running.backends,
        "list the kernels that LiteRT would run each operator with, and the rule that decides",
        "FILE",
    )
    _numerics(backends, "xnnpack")
    backends.add_argument("--subgraph", type=_count, default=0, metavar="N", help="which subgraph (0)")
    _forms(backends)


def _add_quantize(add: _Add) -> None:
    quantize = add(commands_quantize.quantize, "write a quantized model", "FILE")
    _out(quantize)
    quantize.add_argument("--recipe", required=True, metavar="NAME", help=f"one of: {', '.join(RECIPE_NAMES)}")
    _samples(quantize, "for recipes of integer activations: ")
    quantize.add_argument(
        "--calibration",
        metavar="X",
        help="in place of --samples: an .npz or .json of Calibration.save, ONNX Runtime or AIMET",
    )
    quantize.add_argument(
        "--io", choices=IO_TYPES, default="float32", help="of inputs and outputs that are integers inside (float32)"
    )
    quantize.add_argument("--per-tensor", action="store_true", help="one scale a tensor in place of one a channel")
    _quantize_parts(quantize)
    _quantize_ranges(quantize)
    _quantize_effort(quantize)
    quantize.add_argument(
        "--plan", action="store_true", help="print the decision for each operator, with its reason; OUT is not needed"
    )
    _most(quantize)
    _threads(quantize, None, "of runs of samples (for ranges as many as processors, else 1)")
    _limits(quantize)
    _forms(quantize)


def _quantize_parts(quantize: _Parser) -> None:
    """Options for some operators or tensors alone."""
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
        "--range",
        action="append",
        type=_range,
        metavar="NAME=LOW,HIGH",
        help="for int8, int16x8: of an activation; of weights, for these and other integers",
    )
    quantize.add_argument(
        "--min-elements", type=_count, default=1024, metavar="N", help="leave smaller weights float (1024)"
    )
    quantize.add_argument(
        "--block-size", type=_count, default=32, metavar="N", help="of blockwise_int4: 32, 64, 128 or 256 (32)"
    )
    quantize.add_argument(
        "--custom-weights", action="append", type=_places, metavar="NAME=1,2", help="inputs of a custom operator"
    )


def _quantize_ranges(quantize: _Parser) -> None:
    quantize.add_argument(
        "--default-ranges",
        type=_ends,
        metavar="LOW,HIGH",
        help="for recipes of integer activations: where no range is known",
    )
    quantize.add_argument(
        "--input-stats",
        action="append",
        type=_stats,
        metavar="NAME=MEAN,STD",
        help="of an input: (q - mean) / std",
    )
    quantize.add_argument("--observer", metavar="NAME", help="minmax, moving_average, percentile, mse or entropy")
    quantize.add_argument("--percentile", type=float, default=99.99, metavar="P", help="of that observer (99.99)")


def _quantize_effort(quantize: _Parser) -> None:
    """Options that run samples for better accuracy."""
    quantize.add_argument(
        "--weight-rounding",
        default="nearest",
        metavar="NAME",
        help="nearest, or fitted to the layers' inputs: gptq or comq",
    )
    quantize.add_argument(
        "--effort", default="fast", metavar="NAME", help="fast, or search for smaller errors: better or best"
    )
    quantize.add_argument("--equalize", action="store_true", help="scale channels first so that they quantize better")
    quantize.add_argument("--bias-correction", action="store_true", help="change biases so that means of outputs stay")
    quantize.add_argument(
        "--target-sqnr",
        type=float,
        metavar="DB",
        help="let the operators with the most error fall back until it is reached",
    )
    quantize.add_argument(
        "--budget",
        metavar="AMOUNT",
        help="let operators fall back; the most that the file (20000, 10%%) or a run (2ms, '10%% time') grows by",
    )
    quantize.add_argument("--fallback", default="float", metavar="NAME", help="the recipe they get (float)")


def _add_dequantize(add: _Add) -> None:
    dequantize = add(commands_quantize.dequantize, "write a quantized model as a float model", "FILE")
    _out(dequantize)
    dequantize.add_argument("--dtype", choices=("float32", "float16"), default="float32", help="of constants (float32)")
    dequantize.add_argument(
        "--fake-quant", action="store_true", help="FAKE_QUANT operators where values were quantized"
    )
    _forms(dequantize)


def _add_transcode(add: _Add) -> None:
    transcode = add(commands_quantize.transcode, "write a model of uint8 values as one of int8", "FILE")
    _out(transcode)
    transcode.add_argument("--dtype", choices=("int8",), default="int8", help="what uint8 becomes (int8)")
    _forms(transcode)


def _add_equalize(add: _Add) -> None:
    equalize = add(commands_quantize.equalize, "scale a float model's channels; it computes the same", "FILE")
    _out(equalize)
    _samples(equalize, "for ranges: ")
    equalize.add_argument("--relu6", choices=("keep", "minimum"), default="keep", help="leave it, or write it out")
    _most(equalize)
    _threads(equalize, None, "threads of a run of samples (1)")
    _limits(equalize)
    _forms(equalize)


def _add_sensitivity(add: _Add) -> None:
    sensitivity = add(commands_quantize.sensitivity, "rank operators by the error from quantizing each alone", "FILE")
    sensitivity.add_argument("--recipe", default="int8", metavar="NAME", help="as of quantize (int8)")
    _samples(sensitivity, required=True)
    sensitivity.add_argument("--by", choices=("operator", "tensor"), default="operator", help="what to rank")
    _most(sensitivity)
    _threads(sensitivity)
    _limits(sensitivity)
    _forms(sensitivity)


def _add_report(add: _Add) -> None:
    report = add(commands_quantize.report, "write a page that shows where a quantized model's accuracy goes", "FLOAT")
    report.add_argument("quantized", metavar="QUANTIZED", help="a .tflite file that was made from it")
    _samples(report, "", "--inputs", required=True)
    report.add_argument("-o", "--output", type=_file, required=True, metavar="OUT.html", help=_WRITES)
    report.add_argument("--advise", action="store_true", help="quantize FLOAT with other options too: what they gain")
    _most(report)
    _threads(report)
    _limits(report)
    _forms(report)


def _add_demo(add: _Add) -> None:
    demo = add(commands_quantize.demo, "list a small quantized model that comes with tq")
    demo.add_argument("--write", metavar="FOLDER", help="write a float model and samples to quantize it with instead")
    _forms(demo)


def _add_edit(add: _Add) -> None:
    edit = add(editing.edit, "change names, quantization, metadata or the description of a model", "FILE")
    _out(edit)
    edit.add_argument("--description", metavar="TEXT", help="of the model")
    for name, value, text in (
        ("rename", "NAME", "another name of a tensor"),
        ("scale", "X", "the scale of a tensor with one"),
        ("zero-point", "N", "the zero point of a tensor with one"),
    ):
        edit.add_argument(f"--{name}", action="append", type=_pair, metavar=f"TENSOR={value}", help=text)
    edit.add_argument("--metadata", action="append", type=_pair, metavar="KEY=FILE", help="the bytes of an entry")
    edit.add_argument("--remove-metadata", action="append", metavar="KEY", help="an entry to leave out")
    _forms(edit)


def _add_extract(add: _Add) -> None:
    extract = add(editing.extract, "write the part of a model between some tensors as a model", "FILE")
    _out(extract)
    for name in ("inputs", "outputs"):
        text = f"one of its {name}; any number of them"
        extract.add_argument(f"--{name}", action="append", required=True, metavar="TENSOR", help=text)
    extract.add_argument("--subgraph", type=_count, default=0, metavar="N", help="which subgraph (0)")
    _forms(extract)


# In the order of the help.
_COMMANDS: tuple[Callable[[_Add], None], ...] = (
    _add_show,
    _add_details,
    _add_summary,
    _add_problems,
    _add_check,
    _add_view,
    _add_export,
    _add_diff,
    _add_run,
    _add_compare,
    _add_profile,
    _add_evaluate,
    _add_calibrate,
    _add_explain,
    _add_backends,
    _add_quantize,
    _add_dequantize,
    _add_transcode,
    _add_equalize,
    _add_sensitivity,
    _add_report,
    _add_demo,
    _add_edit,
    _add_extract,
)


# ---- running them ----


def _discard_stdout() -> None:
    """Redirects stdout to the null device, so that Python's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _write(text: str) -> None:
    """Writes to stdout, which may be closed, end early, or lack some of the characters."""
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
        raise Failure(f"cannot write: {error.strerror or error}") from error


def _completion(parser: _Parser, shell: str) -> str:
    """A script for a shell that completes commands, options and files."""
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        raise Failure(missing("--print-completion", "shtab", "completion")) from None
    return str(shtab.complete(parser, shell))


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        _write(f"tq {tq.__version__}")
        return FINE
    if args.print_completion is not None:
        _write(_completion(parser, args.print_completion))
        return FINE
    if args.print_man:
        _write(manual(parser, tq.__version__))
        return FINE
    if not hasattr(args, "run"):
        raise Failure("a command is needed (see 'tq --help')")
    try:
        text: str
        code: int
        text, code = args.run(args)
    except tq.Error as error:  # a part of the model cannot be read
        raise Failure(in_options(str(error))) from error
    except ImportError as error:  # of an optional library
        raise Failure(str(error)) from error
    _write(text if getattr(args, "json", False) or getattr(args, "csv", False) else terminal.colored(text))
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `tq` with `argv` (None: sys.argv[1:]), and returns its exit code."""
    try:
        return _run(argv)
    except _Exit as done:
        with contextlib.suppress(Failure):
            _write("")
        return int(done.args[0])
    except Failure as failure:
        complain(str(failure))
        return BAD
    except BrokenPipeError:  # argparse writes --help itself, and lets this through before Python 3.11
        _discard_stdout()
        return FINE
    except MemoryError:
        complain("out of memory")
        return BAD
    except KeyboardInterrupt:
        _discard_stdout()
        return INTERRUPTED
