# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model by checked options.

prepare.py      the float model, so that it can be quantized
passes.py       the plan: nothing is written
rewrite.py      writes what the plan says: nothing is decided
interface.py    types of inputs and outputs
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tq._core import Model
from tq.editing.editor import Editor
from tq.quantization import passes
from tq.quantization.interface import set_io
from tq.quantization.options import Options
from tq.quantization.plan import Plan, QuantizationPlan
from tq.quantization.prepare import prepare
from tq.quantization.result import QuantizedModel
from tq.quantization.rewrite import rewrite


def build(model: Model, options: Options) -> QuantizedModel:
    """The quantized model."""
    with _closing(Editor(model)) as editor:
        prepared = prepare(editor, model, options)
        made = passes.plan(prepared)
        _apply(made, editor, model, options)
        editor.prune_operator_codes()
        return QuantizedModel.of(editor.to_bytes(), prepared.grids.count(made.on_grid), prepared.grids.notes())


def plan(model: Model, options: Options) -> QuantizationPlan:
    """The decisions of build, without the model that they are of."""
    with _closing(Editor(model)) as editor:
        made = passes.plan(prepare(editor, model, options))
        if options.io != "float32":  # it may be refused
            _apply(made, editor, model, options)
        return made.tables


def _apply(plan: Plan, editor: Editor, model: Model, options: Options) -> None:
    rewrite(editor, plan)
    if not set_io(editor, model, options.io) and not options.own_rules and options.io != "float32":
        raise ValueError(f"io is {options.io!r} and has no effect: no input or output is an integer inside")


@contextmanager
def _closing(editor: Editor) -> Iterator[Editor]:
    try:
        yield editor
    finally:
        editor.close()
