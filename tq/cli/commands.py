# SPDX-License-Identifier: Apache-2.0
"""The commands that look at models, and the functions that all commands share.

A command takes the parsed arguments and returns its whole text and its exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import re
import sys
import zipfile
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import tq
from tq.cli import terminal
from tq.texts import middle

if TYPE_CHECKING:
    from tq._core import Model
    from tq.pages import tables

Result = tuple[str, int]

FINE, FOUND = 0, 1
_MOST = 1500  # characters of a message: less than a screen


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


# {words in messages of Python's functions: those of the command line}.  Other arguments become --name with hyphens.
_OPTIONS = {
    "a tq.Calibration, or samples as tq.calibrate takes them": "an .npz, an .npy or a folder",
    "as in tq.pictures(folder, model, mean=127.5, std=127.5) or": "as",
    "tq.dequantize_model": "tq dequantize",
    "calibration": "--samples or --calibration",
    "fallback": "--fallback",
    "io": "--io",
    "num_threads": "--threads",
    "observer": "--observer",
    "percentile": "--percentile",
    "overrides": "--range",
    "per_axis": "--per-tensor",
    "samples": "--samples",
}
_WORDS = "block_size bias_correction custom_weights default_ranges in_place input_stats max_memory max_multiply_adds "
_WORDS += "max_samples min_elements target_sqnr"
_OPTIONS |= {word: "--" + word.replace("_", "-") for word in _WORDS.split()}
# Words of plain English too: arguments only before these.
_AS_ARGUMENT, _BEFORE = ("calibration", "fallback", "io", "observer", "percentile", "samples"), r"(?==| is given)"


def in_options(message: str) -> str:
    """A message of a function, with the command line's options in the place of arguments; quoted names stay."""
    words = sorted(_OPTIONS, key=len, reverse=True)
    names = "|".join(re.escape(word) + (_BEFORE if word in _AS_ARGUMENT else "") for word in words)
    pattern = rf"'[^']*'|(?<![\w-])({names})(?!\w)=?"
    return re.sub(pattern, lambda found: _OPTIONS[found[1]] if found[1] else found[0], message)


@contextlib.contextmanager
def refusing(place: str = "") -> Iterator[None]:
    """Turns ValueError into a Failure, which begins with `place`."""
    try:
        yield
    except ValueError as error:
        text = in_options(str(error))
        raise Failure(f"{place}: {text}" if place else text) from error


def complain(message: str) -> None:
    """One line on stderr; names in files and paths may hold anything."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{terminal.alarm('tq:')} {middle(message, _MOST)}\n")


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
        from tq.calibration.samples import refusal

        raise Failure(f"{path}: no array of NumPy: {refusal(path, error)}") from error


def dumps(value: Any) -> str:
    from tq.inspection import jsonable

    return jsonable.dumps(value)


def csv_of(table: tables.Table) -> str:
    """A table as lines of comma-separated values, with the names of columns first."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([head.removeprefix("#") for head in table.heads])
    lines.writerows(table.rows)
    return text.getvalue().rstrip("\n")


def shown(args: argparse.Namespace, result: tables.Result) -> str:
    """A result as --json or --csv ask for it, else as text."""
    if args.csv:
        return csv_of(result.table())
    return dumps(result.to_dict()) if args.json else result.text(terminal.width())


def written(args: argparse.Namespace, path: str, text: str, **facts: Any) -> str:
    """A command's text about the file that it wrote; --json, --csv: the facts about it, and its path."""
    if args.json:
        return saved(path, dumps({"output": path, **facts}))
    if args.csv:
        from tq.pages.tables import Table

        return saved(path, csv_of(Table(("output", *facts), [(path, *facts.values())])))
    return saved(path, text)


def limits(args: argparse.Namespace) -> dict[str, Any]:
    """--max-memory and --max-multiply-adds, as keyword arguments of functions that run models."""
    return {"max_memory": args.max_memory, "max_multiply_adds": args.max_multiply_adds}


# ---- commands ----


def show(args: argparse.Namespace) -> Result:
    from tq.inspection import jsonable
    from tq.inspection.listing import listing

    model = open_model(args.file)
    # --tensors and --ops each ask for a part; neither or both for the whole
    operators, tensors = args.ops or not args.tensors, args.tensors or not args.ops
    if args.csv:
        return csv_of(_tensor_table(model) if tensors else _operator_table(model)), FINE
    if args.json:
        return dumps(jsonable.model(model, operators=operators, tensors=tensors)), FINE
    return listing(model, operators=operators, tensors=tensors), FINE


def _tensor_table(model: Model) -> tables.Table:
    from tq.enums import name_of
    from tq.pages.tables import Table

    heads = ("subgraph", "index", "name", "type", "shape", "bytes", "constant", "quantization")
    return Table(
        heads,
        [
            (graph.index, t.index, t.name, name_of(t.type), list(t.shape), t.nbytes, t.is_constant, str(t.quantization))
            for graph in model.subgraphs
            for t in graph.tensors
        ],
    )


def _operator_table(model: Model) -> tables.Table:
    from tq.pages.tables import Table

    return Table(
        ("subgraph", "index", "operator", "version", "inputs", "outputs", "multiply_adds"),
        [
            (
                graph.index,
                op.index,
                op.name,
                op.version,
                list(op.input_indices),
                list(op.output_indices),
                op.multiply_adds,
            )
            for graph in model.subgraphs
            for op in graph.operators
        ],
    )


def array_text(value: Any) -> str:
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
                lines += [f"    {key}", *(f"        {name}: {array_text(item)}" for name, item in value.items())]
            else:
                lines.append(f"    {key}: {array_text(value)}")
    return "\n".join(lines)


def details(args: argparse.Namespace) -> Result:
    model = open_model(args.file)
    if not 0 <= args.subgraph < len(model.subgraphs):
        raise Failure(f"{args.file}: there is no subgraph {args.subgraph}; the model has {len(model.subgraphs)}")
    details = model.get_tensor_details(args.subgraph)
    if args.csv:
        from tq.pages.tables import Table

        keys = list(details[0]) if details else []
        return csv_of(Table(keys, [[array_text(item[key]) for key in keys] for item in details])), FINE
    return dumps(details) if args.json else _details_text(details), FINE


def summary(args: argparse.Namespace) -> Result:
    summary = open_model(args.file).summary()
    if args.csv:
        from tq.pages.tables import Table

        rows = summary.to_dict()["operators"]
        keys = list(rows[0]) if rows else []
        return csv_of(Table(keys, [[row[key] for key in keys] for row in rows])), FINE
    return dumps(summary.to_dict()) if args.json else summary.text(terminal.width()), FINE


def problems(args: argparse.Namespace) -> Result:
    problems = open_model(args.file).problems
    code = FOUND if problems else FINE
    if args.csv:
        from tq.pages.tables import Table

        return csv_of(Table(problems[0].__match_args__ if problems else ("code",), problems)), code
    if args.json:
        return dumps(
            [{"code": p.code, "place": p.place, "text": p.text, "severity": p.severity} for p in problems]
        ), code
    return "\n".join(f"{p.severity} {p.code}: {p.place}: {p.text}" for p in problems), code


def arrays_in(arrays: Collection[Any], path: str) -> str:
    return f"{len(arrays)} array{'' if len(arrays) == 1 else 's'} in {path}"


def export(args: argparse.Namespace) -> Result:
    from tq.inspection.export import export_npz

    model = open_model(args.file)
    with using(args.output):
        result = export_npz(model, args.output, dequantized=args.dequantized)
    for place, reason in result.skipped:
        complain(f"{args.file}: {place}: not exported: {reason}")
    text = arrays_in(result.arrays, args.output)
    return written(args, args.output, text, arrays=len(result.arrays)), FOUND if result.skipped else FINE
