# SPDX-License-Identifier: Apache-2.0
"""model.view(): the graph of a model, with figures of its operators.

    tq.Model("int8.tflite").view("float.tflite", samples=samples).save("page.html")

tq.view.page makes the page; tq.view.model_explorer and tq.view.dot write the graph for other programs.
"""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from tq._core import Error, Model
from tq.accuracy.comparison import feed
from tq.accuracy.matching import type_kind
from tq.calibration.samples import Data
from tq.reports.report import Report, report
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits
from tq.running.random_values import random_value
from tq.saving import Target, files_of, target
from tq.sources import Source, opened, shown_name
from tq.specification.check import check
from tq.view import overlays as o
from tq.view.page import document
from tq.view.records import Drawing

Samples = Data
_RANDOM = "Inputs were random: with samples the figures are of real ones."


class View(Drawing):
    """The graph of a model.  `save()` writes its page, `open()` shows it in a browser; a notebook shows it too."""

    def __init__(self, model: Model, name: str, overlays: list[o.Overlay], notes: list[str], made: Report | None,
                 inputs: frozenset[tuple[int, int]]) -> None:  # fmt: skip
        super().__init__(model, name, overlays, notes, made)
        self._input_files = inputs  # save() does not overwrite them

    def __repr__(self) -> str:
        operators = sum(len(subgraph.operators) for subgraph in self.model.subgraphs)
        shown = ", ".join(overlay.title for overlay in self.overlays)
        return f"<tq view of {self.name}: {operators:,} operators; {shown}>"

    def to_html(self) -> str:
        """The page: one HTML document that loads nothing else."""
        return document(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; it appears whole or not at all.

        OSError: the path is that of a model or of samples, no regular file, or read-only.
        """
        Target(path, self).save(self.to_html().encode("utf-8"))

    def open(self) -> str:
        """Writes the page into the system's folder for temporary files and opens it in a browser; returns its path.

        OSError: the page cannot be written.  RuntimeError: there is no browser; the text names the page.
        """
        folder = tempfile.mkdtemp(prefix="tq-view-")
        path = os.path.join(folder, "view.html")
        self.save(path)
        if not webbrowser.open(Path(path).as_uri()):
            raise RuntimeError(f"no browser can be opened; the page is {path}")
        return path

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html())
        return (
            '<iframe title="graph" sandbox="allow-scripts" style="width: 100%; height: 44rem; border: 0" '
            f'srcdoc="{page}"></iframe>'
        )


def view(
    model: Source,
    other: Source | None = None,
    *,
    samples: Samples | None = None,
    profile: bool = False,
    output: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> View:
    """The graph of a model, as a page for a browser or a notebook.

    other: a second model: a model that this one was quantized from, or one quantized from this one.  Operators get the
        SQNR of their outputs, over all samples.
    samples: for the float model of the two, as tq.calibrate takes them; None: one random sample.
    profile: whether to run the model, on random values, and show the time of each operator.
    output: a path to write the page to.
    num_threads: threads of a run; None: one.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    OSError: as View.save.  ValueError: samples are given without a second model, or do not fit, or the models do not
    belong together.  RunError: a model cannot be run.
    """
    shown, second = opened(model), None if other is None else opened(other)
    target(output, shown, second, samples)
    if samples is not None and second is None:
        raise ValueError("samples are given and have no effect without a second model")
    limits = Limits(max_memory, max_multiply_adds)
    found, notes = _static(shown)
    made = None
    if second is not None:
        made, overlay = _beside(shown, second, samples, num_threads, limits)
        found.insert(0, overlay)
    if profile:
        found.insert(0, _timed(shown, num_threads, limits))
    result = View(shown, shown_name(model, "a model in memory"), found, notes, made, files_of(shown, second, samples))
    if output is not None:
        result.save(output)
    return result


def _static(model: Model) -> tuple[list[o.Overlay], list[str]]:
    """The overlays that need no run, and the reasons why others of them are missing."""
    found, notes = [o.kinds(model), *o.sizes(model)], []
    for title, make in (("LiteRT's backend", _backends), ("Findings of tq check", _findings)):
        try:
            found.append(make(model))
        except (Error, ValueError, MemoryError) as error:
            notes.append(f"{title}: not known: {error}")
    return found, notes


def _backends(model: Model) -> o.Overlay:
    interpreter = Interpreter(model=model, numerics="xnnpack")
    return o.backends({index: interpreter.backends(index) for index in range(len(model.subgraphs))})


def _findings(model: Model) -> o.Overlay:
    return o.findings(model, check(model))


def _quantized_tensors(model: Model) -> int:
    tensors = [tensor for op in model.operators for tensor in op.outputs if tensor is not None]
    constants = [tensor for op in model.operators for tensor in op.inputs if tensor is not None and tensor.is_constant]
    return sum(type_kind(tensor) in ("i", "u") and bool(tensor.quantization) for tensor in (*tensors, *constants))


def in_order(one: Model, two: Model) -> tuple[Model, Model]:
    """The float model and the quantized one of two models: the one with fewer quantized tensors comes first."""
    return (two, one) if _quantized_tensors(one) >= _quantized_tensors(two) else (one, two)


def _random_sample(model: Model) -> list[Any]:
    return [random_value(tensor) for tensor in model.inputs]


def _beside(
    shown: Model, second: Model, samples: Samples | None, num_threads: int | None, limits: Limits
) -> tuple[Report, o.Overlay]:
    """The errors of the quantized one of two models."""
    a, b = in_order(shown, second)
    given = [_random_sample(a)] if samples is None else samples
    made = report(a, b, given, num_threads=num_threads, **limits._asdict())
    return made, o.sqnr(made, b is shown, _RANDOM if samples is None else f"Over {made.samples:,} samples.")


def _timed(model: Model, num_threads: int | None, limits: Limits) -> o.Overlay:
    interpreter = Interpreter(model=model, num_threads=num_threads, **limits._asdict())
    feed(interpreter, _random_sample(model))
    return o.times(interpreter.profile())
