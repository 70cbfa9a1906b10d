# SPDX-License-Identifier: Apache-2.0
"""What quantizing each part of a model alone costs at its outputs: tq.sensitivity.

    print(tq.sensitivity("float.tflite", samples))

The float model runs once a sample; then, from the last operator to the first, an operator's outputs are replaced by
what its quantized form makes of the same inputs, and the operators behind it run again.  So one pass over n operators
costs the time of n / 2 runs, and nothing is built anew.
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
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits
from tq.texts import dotted

if TYPE_CHECKING:
    from tq._core import Tensor

Array = NDArray[Any]
_SHAPES = ("SHAPE", "RANK")  # what they write is known before the inputs are
WAYS = ("operator", "tensor")


@dataclass(frozen=True)
class SensitivityRow:
    """A part of a model, quantized alone."""

    kind: str  # "operator"; "weights", those of an operator with its bias; "activation"
    operator: int | None  # that it is, or that reads the weights, or writes the activation; None: an input
    operator_name: str
    tensor: int  # the operator's first output, or its weights, or the activation
    name: str  # of that tensor
    sqnr_db: float  # of the outputs: of the mean of their ratios of noise to signal
    ratio: float  # that mean; those of several parts add up, nearly, to that of all of them


@dataclass(repr=False)
class Sensitivity:
    """The parts of a model, the one that costs most first.  `str()` is a table."""

    rows: list[SensitivityRow]
    samples: int
    sqnr_db: float  # of the model in which all of them are quantized

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SensitivityRow]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> SensitivityRow:
        return self.rows[place]

    def __repr__(self) -> str:
        return f"<tq sensitivity: {len(self.rows)} parts, together {self.sqnr_db:.2f} dB over {self.samples} samples>"

    def __str__(self) -> str:
        lines = ["SQNR dB  part        #  operator             tensor"]
        for row in self.rows:
            place = "" if row.operator is None else row.operator
            lines.append(
                f"{row.sqnr_db:7.2f}  {row.kind:10} {place:>3}  {row.operator_name[:20]:20} {dotted(row.name[:60])}"
            )
        lines.append(f"all of it: {self.sqnr_db:.2f} dB at the outputs, over {self.samples} samples")
        return "\n".join(lines)


def measure(
    model: Model,
    quantized: Model,
    samples: Samples,
    *,
    by: str = "operator",
    num_threads: int | None = None,
    limits: Limits = NONE,
) -> Sensitivity:
    """As tq.sensitivity, of a model that is quantized already."""
    matching = match(model, quantized)
    runs = _Runs(model, quantized, matching, num_threads, limits)
    parts = runs.operators() if by == "operator" else runs.tensors()
    if not parts:
        raise ValueError("nothing is quantized of what the first subgraph's operators read and write")
    parts.sort(key=lambda part: -part.start)
    noises = [[Noise() for _ in runs.outputs] for _ in parts]
    whole = [Noise() for _ in runs.outputs]
    for _ in zip(samples.each(runs.exact), samples.each(runs.rounded), strict=True):
        runs.sample(parts, noises, whole)
    rows = []
    for part, noise in zip(parts, noises, strict=True):
        decibels = measuring.together(noise)
        ratios = [item.ratio for item in noise if item.count]
        rows.append(SensitivityRow(*part[:5], decibels, float(np.mean(ratios)) if ratios else float("nan")))
    rows.sort(key=lambda row: row.sqnr_db)
    return Sensitivity(rows, len(samples), measuring.together(whole))


class _Part(NamedTuple):
    """Something to quantize alone."""

    kind: str
    operator: int | None
    operator_name: str
    tensor: int
    name: str
    start: int  # the first operator to run again
    change: Callable[[], Iterable[tuple[int, Array]]]  # the float model's tensors that it changes, and to what


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
        self.moving, self.moving_codes = _moving(model), _moving(quantized)
        self.weighed: Interpreter | None = None

    # -- parts

    def operators(self) -> list[_Part]:
        """Every operator whose quantized form is another."""
        found = []
        for one, two in self.matching.operators:
            out = next((tensor for tensor in one.outputs if tensor is not None), None)
            if out is not None and out.index in self.moving and _is_quantized(two):
                change = self._by_operator(one, two)
                found.append(_Part("operator", one.index, one.name, out.index, out.name, one.index + 1, change))
        return found

    def tensors(self) -> list[_Part]:
        """Every activation that becomes codes, and the constants of every operator that do."""
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
            self.weighed = self._weighed(list(pairs.values()))
        return found

    def _weighed(self, pairs: list[tuple[Tensor, Tensor]]) -> Interpreter:
        """The float model with the numbers that its constants' codes stand for."""
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
            codes = right.quantization.quantize(self._exact(left.index))
            return [(left.index, right.quantization.dequantize(codes))]

        return change

    def _by_operator(self, one: Operator, two: Operator) -> Callable[[], Iterable[tuple[int, Array]]]:
        def change() -> Iterable[tuple[int, Array]]:
            for left, right in zip(one.inputs, two.inputs, strict=False):
                if left is None or right is None or left.is_variable:
                    continue
                if left.index in self.moving and right.index in self.moving_codes:
                    self.rounded.set_tensor(right.index, measuring.as_input(self._exact(left.index), right))
            self.rounded.run(two.index, two.index + 1)
            return list(self._results(self.rounded, one, two))

        return change

    def _by_weights(self, operator: Operator) -> Callable[[], Iterable[tuple[int, Array]]]:
        def change() -> Iterable[tuple[int, Array]]:
            run = self.weighed
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
        """Takes in one sample, which both models were fed.  Parts come in the order of their start, the last first."""
        inputs = {tensor.index: self._exact(tensor.index).copy() for tensor in self.model.inputs if tensor is not None}
        self.exact.invoke()
        self.rounded.invoke()
        exact = [np.array(self._exact(tensor.index)) for tensor in self.outputs]
        theirs = [tensor for tensor in self.quantized.outputs if tensor is not None]
        found = [measuring.real(np.asarray(self.rounded.get_tensor(tensor.index)), tensor) for tensor in theirs]
        _add(whole, exact, found)
        if self.weighed is not None:
            self._follow(self.weighed, inputs)
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
        """The float model up to an operator, and variables, as if nothing had run."""
        for run in (self.rounded, self.weighed):
            if run is not None:
                run.reset_all_variables()
        self.exact.reset_all_variables()
        for index, value in inputs.items():
            self.exact.set_tensor(index, value)
        self.exact.run(0, start)

    @staticmethod
    def _follow(run: Interpreter, inputs: Mapping[int, Array]) -> None:
        """Runs a model on the same inputs, so that all its tensors have their shapes."""
        for index, value in inputs.items():
            run.resize_tensor_input(index, value.shape)
        run.allocate_tensors()
        for index, value in inputs.items():
            run.set_tensor(index, value)
        run.invoke()


def _moving(model: Model) -> set[int]:
    """The tensors that depend on inputs or variables; an interpreter computes the others once, and keeps them."""
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
    """Whether an operator reads or writes codes, or reads what a DEQUANTIZE makes of constant ones."""
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
