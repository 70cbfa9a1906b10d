# SPDX-License-Identifier: Apache-2.0
"""The errors at the outputs from quantizing one part of a model alone: tq.sensitivity.

    print(tq.sensitivity("float.tflite", samples))

For each sample the float model runs once.  Then, from the last operator to the first, the outputs of its quantized form
for the same inputs replace those of the operator, and the operators behind it run again.  A pass over n operators takes
the time of n / 2 runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Operator
from tq.accuracy import measuring
from tq.accuracy.matching import Matching, match, type_kind
from tq.accuracy.measuring import Noise, Samples
from tq.editing.editor import Editor
from tq.pages.tables import Result, Table, aligned
from tq.progress import tracked
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits
from tq.texts import middle

if TYPE_CHECKING:
    from tq._core import Tensor

Array = NDArray[Any]
_SHAPES = ("SHAPE", "RANK")  # their outputs depend on shapes alone
WAYS = ("operator", "tensor")


@dataclass(frozen=True)
class SensitivityRow:
    """A part of a model, quantized alone."""

    kind: str  # "operator"; "weights" (of an operator, with its bias); "activation"
    operator: (
        int | None
    )  # the operator itself, the reader of the weights, or the producer of the activation; None: an input
    operator_name: str
    tensor: int  # the operator's first output, or its weights, or the activation
    name: str  # of that tensor
    sqnr_db: float  # of the outputs: of the mean of their ratios of noise to signal
    ratio: float  # that mean; the sum over parts is close to the ratio of all together


@dataclass(repr=False)
class Sensitivity(Result):
    """The parts of a model, the least SQNR first.  `str()` is a table."""

    rows: list[SensitivityRow]
    samples: int
    sqnr_db: float  # of the model with all parts quantized

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SensitivityRow]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> SensitivityRow:
        return self.rows[index]

    def table(self) -> Table:
        """A row for each part."""
        heads = ("#sqnr_db", "kind", "#operator", "operator_name", "#tensor", "name", "#ratio")
        rows = [(r.sqnr_db, r.kind, r.operator, r.operator_name, r.tensor, r.name, r.ratio) for r in self.rows]
        return Table(heads, rows)

    def summary(self) -> list[str]:
        """The worst part, and all together."""
        worst = self.rows[0]
        return [
            f"{len(self.rows)} parts; the worst is {worst.kind} {worst.operator_name} '{middle(worst.name)}' with "
            f"{worst.sqnr_db:.2f} dB",
            f"all of it: {self.sqnr_db:.2f} dB at the outputs, over {self.samples} samples",
        ]

    def text(self, width: int | None = None) -> str:
        rows = []
        for row in self.rows:
            operator = "" if row.operator is None else f"{row.operator}"
            rows.append([f"{row.sqnr_db:.2f}", row.kind, operator, middle(row.operator_name, 40), middle(row.name)])
        lines = aligned(("#SQNR dB", "part", "##", "operator", "tensor"), rows, width)
        return "\n".join([*lines, self.summary()[-1]])


def measure(
    model: Model,
    quantized: Model,
    samples: Samples,
    *,
    by: str = "operator",
    num_threads: int | None = None,
    limits: Limits = NONE,
    progress: bool | None = None,
) -> Sensitivity:
    """tq.sensitivity of a float model and a model quantized from it.

    by: one of WAYS.  ValueError: nothing in the first subgraph is quantized.
    """
    matching = match(model, quantized)
    runs = _Runs(model, quantized, matching, num_threads, limits)
    parts = runs.operators() if by == "operator" else runs.tensors()
    if not parts:
        raise ValueError("nothing that the first subgraph's operators read or write is quantized")
    parts.sort(key=lambda part: -part.start)
    noises = [[Noise() for _ in runs.outputs] for _ in parts]
    whole = [Noise() for _ in runs.outputs]
    steps = zip(samples.each(runs.exact), samples.each(runs.rounded), strict=True)
    for _ in tracked(steps, samples, "quantizing each part", progress):
        runs.sample(parts, noises, whole)
    rows = []
    for part, noise in zip(parts, noises, strict=True):
        decibels = measuring.together(noise)
        ratios = [item.ratio for item in noise if item.count]
        rows.append(SensitivityRow(*part[:5], decibels, float(np.mean(ratios)) if ratios else float("nan")))
    rows.sort(key=lambda row: row.sqnr_db)
    return Sensitivity(rows, len(samples), measuring.together(whole))


class _Part(NamedTuple):
    """A part to quantize alone."""

    kind: str
    operator: int | None
    operator_name: str
    tensor: int
    name: str
    start: int  # the first operator to run again
    change: Callable[[], Iterable[tuple[int, Array]]]  # (tensor of the float model, its new value)


class _Runs:
    """The interpreters of the float and of the quantized model."""

    def __init__(
        self, model: Model, quantized: Model, matching: Matching, num_threads: int | None, limits: Limits
    ) -> None:
        self.model, self.quantized, self.matching = model, quantized, matching
        self.threads, self.limits = num_threads, limits
        self.exact, self.rounded = self._interpreter(model), self._interpreter(quantized)
        self.outputs = [tensor for tensor in model.outputs if tensor is not None]
        self.count = len(model.subgraphs[0].operators)
        self.has_state = any(tensor.is_variable for tensor in model.tensors)
        self.written = {index: op for op in model.subgraphs[0].operators for index in op.output_indices}
        self.moving, self.moving_quantized = _moving(model), _moving(quantized)
        self.with_weights: Interpreter | None = None  # the float model with the quantized model's weights

    # -- parts

    def operators(self) -> list[_Part]:
        """The operators that are quantized."""
        found = []
        for one, two in self.matching.operators:
            out = next((tensor for tensor in one.outputs if tensor is not None), None)
            if out is not None and out.index in self.moving and _is_quantized(two):
                change = self._by_operator(one, two)
                found.append(_Part("operator", one.index, one.name, out.index, out.name, one.index + 1, change))
        return found

    def tensors(self) -> list[_Part]:
        """The activations that are quantized, and the quantized constants of each operator."""
        found = []
        for left, right in self.matching.activations:
            single = type_kind(right) in ("i", "u") and right.quantization.scale.size == 1
            if type_kind(left) == "f" and single and left.index in self.moving:
                writer = self.written.get(left.index)
                index, name = (None, "input") if writer is None else (writer.index, writer.name)
                start = 0 if index is None else index + 1
                change = self._by_rounding(left, right)
                found.append(_Part("activation", index, name, left.index, left.name, start, change))
        pairs = {
            left.index: (left, right)
            for left, right in self.matching.constants
            if right.quantization and type_kind(left) == "f"
        }
        for op in self.model.subgraphs[0].operators:
            own = [pairs[index] for index in op.input_indices if index in pairs]
            if own and op.name != "DEQUANTIZE" and self.moving.issuperset(op.output_indices):
                tensor = own[0][0]
                found.append(
                    _Part("weights", op.index, op.name, tensor.index, tensor.name, op.index + 1, self._by_weights(op))
                )
        if any(part.kind == "weights" for part in found):
            self.with_weights = self._with_weights(list(pairs.values()))
        return found

    def _with_weights(self, pairs: list[tuple[Tensor, Tensor]]) -> Interpreter:
        """The float model with the real values of the quantized constants."""
        editor = Editor(self.model)
        for left, right in pairs:
            editor.main.tensors[left.index].data = right.dequantized().astype(left.dtype)
        return self._interpreter(editor.to_model())

    def _interpreter(self, model: Model) -> Interpreter:
        return Interpreter(
            model=model,
            num_threads=self.threads,
            experimental_preserve_all_tensors=True,
            numerics="reference",
            **self.limits._asdict(),
        )

    # -- changes

    def _exact(self, index: int) -> Array:
        return np.asarray(self.exact.get_tensor(index))

    def _by_rounding(self, left: Tensor, right: Tensor) -> Callable[[], Iterable[tuple[int, Array]]]:
        def change() -> Iterable[tuple[int, Array]]:
            quantized = right.quantization.quantize(self._exact(left.index))
            return [(left.index, right.quantization.dequantize(quantized))]

        return change

    def _by_operator(self, one: Operator, two: Operator) -> Callable[[], Iterable[tuple[int, Array]]]:
        def change() -> Iterable[tuple[int, Array]]:
            for left, right in zip(one.inputs, two.inputs, strict=False):
                if left is None or right is None or left.is_variable:
                    continue
                if left.index in self.moving and right.index in self.moving_quantized:
                    self.rounded.set_tensor(right.index, measuring.as_input(self._exact(left.index), right))
            self.rounded.run(two.index, two.index + 1)
            return list(self._results(self.rounded, one, two))

        return change

    def _by_weights(self, operator: Operator) -> Callable[[], Iterable[tuple[int, Array]]]:
        def change() -> Iterable[tuple[int, Array]]:
            run = self.with_weights
            assert run is not None
            for tensor in operator.inputs:
                if tensor is not None and tensor.index in self.moving and not tensor.is_variable:
                    run.set_tensor(tensor.index, self._exact(tensor.index))
            run.run(operator.index, operator.index + 1)
            return list(self._results(run, operator, operator))

        return change

    @staticmethod
    def _results(run: Interpreter, one: Operator, two: Operator) -> Iterator[tuple[int, Array]]:
        for left, right in zip(one.outputs, two.outputs, strict=False):
            if left is not None and right is not None:
                value = measuring.real(np.asarray(run.get_tensor(right.index)), right)
                if value is not None:
                    yield left.index, value.astype(left.dtype)

    # -- runs

    def sample(self, parts: list[_Part], noises: list[list[Noise]], whole: list[Noise]) -> None:
        """Adds the errors of one sample, which is set in both models.  parts: in descending order of `start`."""
        inputs = {tensor.index: self._exact(tensor.index).copy() for tensor in self.model.inputs if tensor is not None}
        self.exact.invoke()
        self.rounded.invoke()
        exact = [np.array(self._exact(tensor.index)) for tensor in self.outputs]
        theirs = [tensor for tensor in self.quantized.outputs if tensor is not None]
        found = [measuring.real(np.asarray(self.rounded.get_tensor(tensor.index)), tensor) for tensor in theirs]
        _add(whole, exact, found)
        if self.with_weights is not None:
            self._follow(self.with_weights, inputs)
        for part, noise in zip(parts, noises, strict=True):
            if self.has_state:
                self._again(inputs, part.start)
            changed = list(part.change())
            before = [(index, self._exact(index).copy()) for index, _value in changed]
            for index, value in changed:
                self.exact.set_tensor(index, value)
            self.exact.run(part.start)
            _add(noise, exact, [self._exact(tensor.index) for tensor in self.outputs])
            for index, value in before:  # another part may start at the same operator
                self.exact.set_tensor(index, value)

    def _again(self, inputs: Mapping[int, Array], start: int) -> None:
        """Resets all variables, and runs the float model up to operator `start`."""
        for run in (self.rounded, self.with_weights):
            if run is not None:
                run.reset_all_variables()
        self.exact.reset_all_variables()
        for index, value in inputs.items():
            self.exact.set_tensor(index, value)
        self.exact.run(0, start)

    @staticmethod
    def _follow(run: Interpreter, inputs: Mapping[int, Array]) -> None:
        """Runs a model on the same inputs, which gives its tensors their shapes."""
        for index, value in inputs.items():
            run.resize_tensor_input(index, value.shape)
        run.allocate_tensors()
        for index, value in inputs.items():
            run.set_tensor(index, value)
        run.invoke()


def _moving(model: Model) -> set[int]:
    """The tensors that depend on inputs or variables; an interpreter folds the others."""
    found = {tensor.index for tensor in model.inputs if tensor is not None}
    found |= {tensor.index for tensor in model.tensors if tensor.is_variable}
    for op in model.subgraphs[0].operators:
        if op.name not in _SHAPES and (found.intersection(op.input_indices) or not op.input_indices):
            found.update(op.output_indices)
    return found


def _add(noises: list[Noise], exact: list[Array], found: Iterable[Array | None]) -> None:
    for noise, x, y in zip(noises, exact, found, strict=True):
        if y is not None and x.dtype.kind == "f":
            if x.shape != y.shape:
                raise ValueError(f"an output has the shape {list(x.shape)}, and {list(y.shape)} when quantized")
            noise.add(x, y)


def _is_quantized(operator: Operator) -> bool:
    """Whether an operator reads or writes quantized values, or reads a dequantized constant."""
    for tensor in (*operator.inputs, *operator.outputs):
        if tensor is None:
            continue
        if tensor.quantization and len(tensor.quantization.scale) and type_kind(tensor) != "f":
            return True
        if tensor.quantization.kind == "blockwise" or str(tensor.dtype) in ("int4", "int2", "uint4"):
            return True
        writer = None if tensor.is_constant else tensor.producer
        source = writer.inputs[0] if writer is not None and writer.name == "DEQUANTIZE" and writer.inputs else None
        if source is not None and source.is_constant:
            return True
    return False
