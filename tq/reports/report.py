# SPDX-License-Identifier: Apache-2.0
"""The errors of a quantized model, tensor by tensor: tq.report.

    tq.report("float.tflite", "int8.tflite", {"x": pictures}, output="report.html")

Both models run on the same samples; figures of a tensor are over all samples.  tq.reports.page makes the page.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Error, Model
from tq.accuracy import measuring
from tq.accuracy.matching import is_computed, match, type_kind
from tq.calibration.observers import HistogramObserver
from tq.calibration.samples import Data
from tq.enums import name_of
from tq.progress import tracked
from tq.reports.advice import OPTIONS, attempts
from tq.reports.page import document
from tq.reports.records import Counts, Figures, OutputReport, TensorReport
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits
from tq.saving import Target, files_of, target
from tq.sources import Source, opened, shown_name

if TYPE_CHECKING:
    from tq._core import Operator, Tensor

Array = NDArray[Any]
_BINS = 64  # of a histogram, at most


class Report(Figures):
    """The result of tq.report.  `str()` is a table; `to_html()` and `save()` make the page, which a notebook shows."""

    _input_files: frozenset[tuple[int, int]] = frozenset()  # of models and samples: save() does not overwrite them

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html())
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 48rem; border: 0"></iframe>'
        )

    def to_html(self) -> str:
        """The page: one HTML document that loads nothing else."""
        return document(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; it appears whole or not at all.

        OSError: the path is that of a model or of samples, no regular file, or read-only.
        """
        Target(path, self).save(self.to_html().encode("utf-8"))


def report(
    float_model: Source,
    quantized: Source,
    samples: Data,
    *,
    output: str | os.PathLike[str] | None = None,
    max_samples: int | None = None,
    advise: bool = False,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> Report:
    """Runs a float model and a model quantized from it on the same samples, and measures the error of each tensor.

    samples: for the float model, as tq.calibrate takes them, or a dict of arrays of stacked samples by input name.  An
        integer input of the quantized model gets them quantized.
    output: a path to write the page to.
    max_samples: the greatest number of samples to run; None: all.
    advise: whether to quantize the float model with other options too, and to show what they gain on these samples.
    num_threads: threads of each interpreter; None: one.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    Tensors are matched by the operators that write them (tq.accuracy.matching).
    ValueError: samples do not fit, or the models have no operators or not the same outputs in common.  RunError: a
        model cannot be run.  OSError: as Report.save.
    """
    a, b = opened(float_model), opened(quantized)
    target(output, a, b, samples)
    fed = measuring.Samples(a, samples, max_samples)
    matching = match(a, b)
    limits = Limits(max_memory, max_multiply_adds)
    activations, ends = _run(a, b, fed, matching.activations, num_threads, limits)
    matched = {row.index for row in activations}
    written = [t for op in a.subgraphs[0].operators if is_computed(op) for t in op.outputs if t is not None]
    floats = {tensor.index: tensor.name for tensor in written if type_kind(tensor) == "f"}
    if floats and not matched:
        raise ValueError(f"{measuring.UNRELATED}: they have no operators in common")
    made = Report(
        a,
        b,
        shown_name(float_model, "float model"),
        shown_name(quantized, "quantized model"),
        len(fed),
        activations,
        _constants(matching.constants, a),
        ends.results(),
        measuring.together(ends.noises),
        (_arena(a, limits), _arena(b, limits)),
        [name for index, name in floats.items() if index not in matched],
    )
    if advise:
        tries = attempts(a, fed, num_threads, limits)
        made.advice = list(tracked(tries, OPTIONS, "trying other options", unit=" options"))
    made._input_files = files_of(a, b, samples)
    if output is not None:
        made.save(output)
    return made


def _run(
    a: Model,
    b: Model,
    fed: measuring.Samples,
    pairs: Iterable[tuple[Tensor, Tensor]],
    num_threads: int | None,
    limits: Limits,
) -> tuple[list[TensorReport], _Outputs]:
    """Runs both models on the samples.  The errors of pairs of tensors, and of the outputs."""
    one, two = (
        Interpreter(
            model=m,
            num_threads=num_threads,
            experimental_preserve_all_tensors=True,
            numerics="reference",
            **limits._asdict(),
        )
        for m in (a, b)
    )
    writers = {index: op for op in reversed(a.subgraphs[0].operators) for index in op.output_indices}
    rows = [_Activation(left, right, writers.get(left.index)) for left, right in pairs]
    ends = _Outputs(a, b)
    for _ in tracked(zip(fed.each(one), fed.each(two), strict=True), fed, "comparing for the report"):
        one.invoke()
        two.invoke()
        for row in rows:
            row.add(_value(one, row.left), _value(two, row.right))
        ends.add(one, two)
    return [found for row in rows if (found := row.result()) is not None], ends


def _value(interpreter: Interpreter, tensor: Tensor) -> Array | None:
    try:
        return np.asarray(interpreter.get_tensor(tensor.index))
    except (ValueError, Error):  # in an operator's own memory, or never computed
        return None


def _arena(model: Model, limits: Limits) -> int:
    """Bytes of the arena of activations; 0: the model cannot be allocated."""
    interpreter = Interpreter(model=model, numerics="reference", **limits._asdict())
    try:
        interpreter.allocate_tensors()
        return interpreter.memory_plan().arena
    except Error:
        return 0


# ---- activations ----


class _Activation:
    """The sums of a tensor over the samples."""

    def __init__(self, left: Tensor, right: Tensor, writer: Operator | None) -> None:
        self.left, self.right, self.writer = left, right, writer
        self.noise = measuring.Noise()
        self.observer, self.errors = HistogramObserver(bins=1024), HistogramObserver(bins=1024)
        scale = right.quantization.scale
        self.is_quantized = type_kind(right) in ("i", "u") and scale.size == 1
        self.range = _representable(right)
        self.outside = 0
        self.counts = np.zeros(0, np.int64)

    def add(self, left: Array | None, right: Array | None) -> None:
        if left is None or right is None or left.dtype.kind != "f" or left.shape != right.shape:
            return
        approximate = measuring.real(right, self.right)
        if approximate is None:
            return
        self.noise.add(left, approximate)
        self.observer.update(left)
        with np.errstate(all="ignore"):
            self.errors.update(approximate - left)
        if self.is_quantized:
            low, high = self.range
            half = (high - low) / (2 * (np.iinfo(right.dtype).max - int(np.iinfo(right.dtype).min)))
            self.outside += int(np.count_nonzero((left < low - half) | (left > high + half)))
            self._count(right)

    def _count(self, quantized: Array) -> None:
        kind = np.iinfo(quantized.dtype)
        if kind.bits > 16:
            return
        found = np.bincount(quantized.ravel().astype(np.int64) - kind.min, minlength=kind.max - kind.min + 1)
        self.counts = found if not self.counts.size else self.counts + found

    def result(self) -> TensorReport | None:
        if not self.noise.count:
            return None
        finite = self.observer.count > 0
        total = max(int(self.counts.sum()), 1)
        row = _row(self.left, self.right, self.writer, self.noise)
        row.low, row.high = (float(self.observer.min), float(self.observer.max)) if finite else (math.nan, math.nan)
        row.range_low, row.range_high = self.range
        row.clipped = self.outside / self.noise.count
        if self.counts.size:
            row.at_low, row.at_high = float(self.counts[0]) / total, float(self.counts[-1]) / total
            row.codes = self._quantized_counts()
        row.values = _folded(*self.observer.histogram()) if finite else None
        if self.errors.count and self.errors.min < self.errors.max:
            row.errors = _folded(*self.errors.histogram())
        return row

    def _quantized_counts(self) -> Counts:
        """Counts of quantized values in bins of equally many values, with real edges."""
        used = np.flatnonzero(self.counts)
        first, last = int(used[0]), int(used[-1])
        each = -(-(last - first + 1) // _BINS)
        starts = np.arange(first, last + 1, each)
        lowest = int(np.iinfo(self.right.dtype).min)
        quantization = self.right.quantization
        scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
        edges = (np.append(starts, starts[-1] + each) - 0.5 + lowest - zero) * scale
        return np.add.reduceat(self.counts[: last + 1], starts), edges


def _representable(tensor: Tensor) -> tuple[float, float]:
    quantization = tensor.quantization
    low, high = quantization.range_min, quantization.range_max
    return (float(np.min(low)), float(np.max(high))) if len(low) and len(high) else (math.nan, math.nan)


def _row(left: Tensor, right: Tensor, operator: Operator | None, noise: measuring.Noise) -> TensorReport:
    quantization = right.quantization
    single = quantization.scale.size == 1  # blocks' scales have the shape of their tensor
    return TensorReport(
        left.index,
        right.index,
        left.name,
        None if operator is None else operator.index,
        "input" if operator is None else operator.name,
        name_of(right.type),
        left.shape,
        float(quantization.scale.flat[0]) if single else None,
        int(quantization.zero_point.flat[0]) if single and quantization.zero_point.size else None,
        int(np.size(quantization.scale)),
        noise.sqnr_db,
        noise.largest,
        noise.mean_error,
        math.nan,
        math.nan,
        math.nan,
        math.nan,
        0.0,
        0.0,
        0.0,
    )


def _folded(counts: Array, edges: Array) -> Counts:
    """A histogram of at most _BINS bins, without empty bins at its ends."""
    used = np.flatnonzero(counts)
    first, last = int(used[0]), int(used[-1])
    each = 1
    while (last // each - first // each + 1) > _BINS:
        each *= 2
    first = first // each * each
    last = min((last // each + 1) * each, len(counts))
    starts = np.arange(first, last, each)
    return np.add.reduceat(counts[:last], starts), edges[np.append(starts, last)]


# ---- constants ----


def _constants(pairs: list[tuple[Tensor, Tensor]], a: Model) -> list[TensorReport]:
    """The rows of constants whose type or values differ in the quantized model."""
    readers: dict[int, Operator] = {}
    for op in a.subgraphs[0].operators:
        for index in op.input_indices:
            readers.setdefault(index, op)
    rows = []
    for left, right in pairs:
        reader = readers.get(left.index)
        if reader is not None and reader.name == "DEQUANTIZE":
            reader = readers.get(reader.output_indices[0]) if reader.output_indices else None
        row = _constant(left, right, reader)
        if row is not None:
            rows.append(row)
    return rows


def _real(tensor: Tensor) -> Array | None:
    try:
        data = tensor.dequantized() if tensor.quantization else tensor.data
    except (Error, ValueError):
        return None
    if data is None or data.shape != tensor.shape or not data.size:
        return None
    return data.astype(np.float32) if data.dtype.kind == "f" else None


def _constant(left: Tensor, right: Tensor, reader: Operator | None) -> TensorReport | None:
    if left.type == right.type and not right.quantization:
        return None
    x, y = _real(left), _real(right)
    if x is None or y is None:
        return None
    noise = measuring.Noise()
    noise.add(x, y)
    row = _row(left, right, reader, noise)
    finite = x[np.isfinite(x)]
    if finite.size:
        row.low, row.high = float(finite.min()), float(finite.max())
    row.range_low, row.range_high = _representable(right)
    row.values = _histogram(finite)
    with np.errstate(all="ignore"):
        row.errors = _histogram(y - x)
    row.codes = _histogram(y[np.isfinite(y)], None if row.values is None else row.values[1])
    axis = right.quantization.quantized_dimension
    if right.quantization.kind == "per-axis" and 0 <= axis < x.ndim and x.shape[axis] == row.scales:
        row.worst_channel, row.worst_channel_db = _worst_channel(x, y, axis)
    return row


def _histogram(values: Array, edges: Array | None = None) -> Counts | None:
    with np.errstate(all="ignore"):
        span = float(np.ptp(values.astype(np.float64))) if values.size else math.nan
    if not math.isfinite(span):
        return None
    if edges is None and span <= abs(float(values.flat[0])) * 1e-5:
        return None  # a single value
    counts, edges = np.histogram(values.astype(np.float64).ravel(), bins=_BINS if edges is None else edges)
    return counts, edges


def _worst_channel(x: Array, y: Array, axis: int) -> tuple[int, float]:
    others = tuple(position for position in range(x.ndim) if position != axis)
    with np.errstate(all="ignore"):
        noise = np.sum((x.astype(np.float64) - y) ** 2, axis=others)
        signal = np.sum(x.astype(np.float64) ** 2, axis=others)
        ratio = np.where(noise > 0, noise / signal, 0.0)
    worst = int(np.argmax(np.nan_to_num(ratio, nan=0.0, posinf=0.0)))
    return worst, measuring.decibels(float(ratio[worst]))


# ---- outputs ----


class _Outputs:
    """The sums of the models' outputs over the samples."""

    def __init__(self, a: Model, b: Model) -> None:
        self.left = [tensor for tensor in a.outputs if tensor is not None]
        self.right = [tensor for tensor in b.outputs if tensor is not None]
        if len(self.left) != len(self.right):
            raise ValueError(
                f"{measuring.UNRELATED}: the float model has {len(self.left)} outputs, the quantized one "
                f"{len(self.right)}"
            )
        self.noises = [measuring.Noise() for _ in self.left]
        self.products = [np.zeros(3) for _ in self.left]  # aa, ab, bb
        self.tops = [[0, 0] for _ in self.left]  # (samples with the same greatest element, samples)

    def add(self, one: Interpreter, two: Interpreter) -> None:
        for position, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            x = np.asarray(one.get_tensor(left.index))
            y = measuring.real(np.asarray(two.get_tensor(right.index)), right)
            if x.dtype.kind != "f" or y is None:
                continue
            if x.shape != y.shape:
                raise ValueError(
                    f"{measuring.UNRELATED}: output {left.name!r} has the shape {list(x.shape)} in the float model, "
                    f"{list(y.shape)} in the quantized one"
                )
            self.noises[position].add(x, y)
            p, q = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
            with np.errstate(all="ignore"):
                self.products[position] += [p @ p, p @ q, q @ q]
            if x.ndim and 1 < x.shape[-1] <= 100_000 and x.size == x.shape[-1] * x.shape[0]:
                same = np.argmax(x.reshape(-1, x.shape[-1]), -1) == np.argmax(y.reshape(-1, x.shape[-1]), -1)
                self.tops[position][0] += int(same.sum())
                self.tops[position][1] += same.size

    def results(self) -> list[OutputReport]:
        rows = []
        for left, right, noise, products, (same, of) in zip(
            self.left, self.right, self.noises, self.products, self.tops, strict=True
        ):
            with np.errstate(all="ignore"):
                cosine = float(products[1] / math.sqrt(products[0] * products[2])) if products[[0, 2]].all() else 1.0
            rows.append(
                OutputReport(
                    left.name,
                    left.shape,
                    name_of(right.type),
                    noise.sqnr_db if noise.count else math.nan,
                    noise.largest,
                    noise.mean_error,
                    cosine if noise.count else math.nan,
                    same / of if of else math.nan,
                )
            )
        return rows
