# SPDX-License-Identifier: Apache-2.0
"""The commands that change a model's file, and that cut a part out of it."""

from __future__ import annotations

import argparse

from tq.cli.commands import FINE, Failure, Result, open_model, refusing, using, written
from tq.cli.quantize import output_of


def edit(args: argparse.Namespace) -> Result:
    from tq.editing.editor import edit

    model = open_model(args.file)
    out = output_of(args, model)
    changes = [args.rename, args.scale, args.zero_point, args.metadata, args.remove_metadata]
    if args.description is None and not any(changes):
        raise Failure("nothing is to be changed (see 'tq edit --help')")
    with using(out), refusing(args.file):
        editor = edit(model)
        graph = editor.main
        if args.description is not None:
            editor.description = args.description
        for name, value in args.scale or ():
            graph.find(name).quantization.scale = float(value)
        for name, value in args.zero_point or ():
            graph.find(name).quantization.zero_point = int(value)
        for name, new in args.rename or ():
            graph.find(name).name = new
        for name, path in args.metadata or ():
            with using(path), open(path, "rb") as file:
                editor.metadata[name] = file.read()
        for name in args.remove_metadata or ():
            if name not in editor.metadata:
                raise Failure(f"{args.file}: no metadata are called {name!r}; there are: {', '.join(editor.metadata)}")
            del editor.metadata[name]
        editor.save(out, in_place=args.in_place)
        size = len(editor.to_bytes())
    return written(args, out, f"{out}: {size} bytes", bytes=size), FINE


def extract(args: argparse.Namespace) -> Result:
    from tq.editing.extraction import extract
    from tq.saving import target

    model = open_model(args.file)
    out = output_of(args, model)
    with using(out), refusing(args.file):
        goal = target(out, model=model, in_place=args.in_place)
        data = extract(model, args.inputs, args.outputs, subgraph=args.subgraph)
        assert goal is not None
        goal.save(data)
    return written(args, out, f"{out}: {len(data)} bytes", bytes=len(data)), FINE
