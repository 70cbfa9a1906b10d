# SPDX-License-Identifier: Apache-2.0
"""The command that holds a model against TFLite's quantization specification, and repairs it."""

from __future__ import annotations

import argparse
from typing import Any

from tq.cli import terminal
from tq.cli.commands import (
    FINE,
    FOUND,
    Failure,
    Result,
    csv_of,
    dumps,
    open_model,
    refuse_inputs,
    refusing,
    saved,
    using,
)
from tq.cli.samples import samples_of


def check(args: argparse.Namespace) -> Result:
    from tq.specification.check import check

    if bool(args.fix) != bool(args.output):
        raise Failure(
            "--fix writes OUT: it needs -o OUT" if args.fix else "-o is given and has no effect without --fix"
        )
    refuse_inputs(args.output, args.file, args.samples)
    model = open_model(args.file)
    with refusing():
        samples = samples_of(args, model)
        if args.fix:
            return _fix(args, samples)
        findings = check(model, args.spec, ignore=args.ignore or (), samples=samples, num_threads=args.threads)
    code = FOUND if findings.violations else FINE
    if args.csv:
        return _csv([finding.to_dict() for finding in findings]), code
    return dumps([finding.to_dict() for finding in findings]) if args.json else findings.text(terminal.width()), code


def _csv(rows: list[dict[str, Any]]) -> str:
    from tq.pages.tables import Table

    keys = list(rows[0]) if rows else ["rule"]
    return csv_of(Table(keys, [[row[key] for key in keys] for row in rows]))


def _fix(args: argparse.Namespace, samples: list[Any] | None) -> Result:
    from tq.specification.repair import repair

    with using(args.output):
        ignore = args.ignore or ()
        repaired = repair(
            args.file, args.output, spec=args.spec, ignore=ignore, samples=samples, num_threads=args.threads
        )
    left = repaired.unrepaired
    code = FOUND if any(finding.level == "violates" for finding in left) else FINE
    if args.csv:
        return saved(args.output, _csv([change.to_dict() for change in repaired.changes])), code
    if args.json:
        rows = [change.to_dict() for change in repaired.changes]
        return saved(args.output, dumps({"changes": rows, "findings": [item.to_dict() for item in left]})), code
    return saved(
        args.output, f"{repaired.changes}\n{left.text(terminal.width())}" if left else str(repaired.changes)
    ), code
