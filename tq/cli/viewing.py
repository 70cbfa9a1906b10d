# SPDX-License-Identifier: Apache-2.0
"""The commands that show a model's graph and the differences of two models."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from tq.cli.commands import (
    FINE,
    FOUND,
    Failure,
    Result,
    complain,
    csv_of,
    dumps,
    limits,
    open_model,
    refuse_inputs,
    refusing,
    using,
    written,
)
from tq.cli.samples import sample_files, samples_of

if TYPE_CHECKING:
    from tq._core import Model
    from tq.view.view import View

EXPORTS = ("model-explorer", "dot")


def view(args: argparse.Namespace) -> Result:
    from tq.view.view import view

    if args.export and not args.output:
        raise Failure(f"--export {args.export} writes OUT: it needs -o OUT")
    model = open_model(args.file)
    other = open_model(args.other) if args.other else None
    refuse_inputs(args.output, model, other, sample_files(args.samples or [], model))
    samples = _samples(args, model, other)
    with refusing():
        shown = view(model, other, samples=samples, profile=args.profile, num_threads=args.threads, **limits(args))
    for note in shown.notes:
        complain(f"{args.file}: {note}")
    return _export(args, shown) if args.export else _page(args, shown), FINE


def diff(args: argparse.Namespace) -> Result:
    from tq.inspection.differences import Differences, diff

    if args.html or args.output:
        return _diff_page(args)
    differences = diff(open_model(args.a), open_model(args.b))
    code = FOUND if differences else FINE
    limit = 100 if args.limit is None else args.limit
    rows = differences[:limit] if limit else differences
    left_out = len(differences) - len(rows)
    if args.csv:
        return csv_of(Differences(rows).table()), code
    if args.json:
        found = [{"kind": d.kind, "place": d.place, "what": d.what, "text": d.text} for d in rows]
        return dumps({"differences": found, "left_out": left_out}), code
    lines = list(map(str, rows))
    if left_out:
        lines.append(f"... and {left_out} more (--limit 0 shows all)")
    return "\n".join(lines), code


def _diff_page(args: argparse.Namespace) -> Result:
    """`tq diff --html`."""
    from tq.inspection.differences import diff
    from tq.saving import Target
    from tq.view.differences import document

    if not (args.html and args.output):
        raise Failure("--html writes OUT: it needs -o OUT" if args.html else "-o has no effect without --html")
    a, b = open_model(args.a), open_model(args.b)
    refuse_inputs(args.output, a, b)
    differences = diff(a, b)
    names = [os.path.basename(path) for path in (args.a, args.b)]
    page = document(a, b, names, differences, *([] if args.limit is None else [args.limit]))
    with using(args.output):
        Target(args.output, a, b).save(page.encode("utf-8"))
    text = f"{args.output}: {len(differences):,} differences"
    return written(args, args.output, text, differences=len(differences)), FOUND if differences else FINE


def _samples(args: argparse.Namespace, model: Model, other: Model | None) -> list[Any] | None:
    """The samples for the float model of the two."""
    from tq.view.view import in_order

    if args.samples and other is None:
        raise Failure("--samples is given and has no effect without OTHER")
    found: list[Any] | None = samples_of(args, model if other is None else in_order(model, other)[0])
    return found


def _page(args: argparse.Namespace, shown: View) -> str:
    if args.output:
        with using(args.output):
            shown.save(args.output)
        return _told(args, shown, args.output)
    try:
        path = shown.open()
    except RuntimeError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    return _told(args, shown, path)


def _told(args: argparse.Namespace, shown: View, path: str, *more: str) -> str:
    """The text about the files that were written."""
    names = [overlay.title for overlay in shown.overlays]
    facts = {"operators": _operators(shown), "colored_by": names} | ({"more": list(more)} if more else {})
    return written(args, path, f"{', '.join((path, *more))}: {_about(shown)}", **facts)


def _operators(shown: View) -> int:
    return sum(len(graph.operators) for graph in shown.model.subgraphs)


def _about(shown: View) -> str:
    return f"{_operators(shown):,} operators, colored by {', '.join(overlay.title for overlay in shown.overlays)}"


def _export(args: argparse.Namespace, shown: View) -> str:
    from tq.view import dot, model_explorer

    with using(args.output), refusing():
        files = (dot if args.export == "dot" else model_explorer).save(shown, args.output)
    return _told(args, shown, *files)
