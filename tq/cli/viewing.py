# SPDX-License-Identifier: Apache-2.0
"""The command that shows a model's graph."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tq.cli.commands import FINE, Failure, Result, complain, limits, open_model, refuse_inputs, refusing, saved, using
from tq.cli.quantize import samples_of

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
    refuse_inputs(args.output, model, other, args.samples)
    samples = _samples(args.samples, model, other)
    with refusing():
        shown = view(model, other, samples=samples, profile=args.profile, num_threads=args.threads, **limits(args))
    for note in shown.notes:
        complain(f"{args.file}: {note}")
    return _export(args, shown) if args.export else _page(args, shown), FINE


def _samples(given: list[str] | None, model: Model, other: Model | None) -> list[Any] | None:
    """The samples for the float model of the two."""
    from tq.view.view import in_order

    if not given:
        return None
    if other is None:
        raise Failure("--samples is given and has no effect without OTHER")
    return samples_of(given, in_order(model, other)[0])


def _page(args: argparse.Namespace, shown: View) -> str:
    if args.output:
        with using(args.output):
            shown.save(args.output)
        return saved(args.output, f"{args.output}: {_about(shown)}")
    try:
        path = shown.open()
    except RuntimeError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    return f"{path}: {_about(shown)}"


def _about(shown: View) -> str:
    operators = sum(len(graph.operators) for graph in shown.model.subgraphs)
    return f"{operators:,} operators, colored by {', '.join(overlay.title for overlay in shown.overlays)}"


def _export(args: argparse.Namespace, shown: View) -> str:
    from tq.view import dot, model_explorer

    with using(args.output), refusing():
        files = (dot if args.export == "dot" else model_explorer).save(shown, args.output)
    return saved(args.output, f"{', '.join(files)}: {_about(shown)}")
