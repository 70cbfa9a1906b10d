# SPDX-License-Identifier: Apache-2.0
"""By how many output steps an operator's result changes when it is repaired, on samples or random values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Error, Model, Tensor
from tq.calibration.samples import Calls, Data
from tq.editing.editor import Editor
from tq.editing.extraction import extract
from tq.editing.graph import OperatorPart
from tq.enums import name_of
from tq.running.interpreter import Interpreter
from tq.running.random_values import random_value
from tq.specification.applying import apply, key_of, of_operator
from tq.specification.operands import holds_data, type_of
from tq.specification.repairs import REPAIRS
from tq.specification.rule import Found
from tq.specification.table import SPEC_OF_TYPE

Array = NDArray[Any]

_MOST_SAMPLES = 8
_MOST_ROUNDS = 1000  # of loops in a run, which might never end
_SEED = 0
_KERNELS = ("reference", "optimized", "xnnpack")


# The input that is the shape of an operator's output.
_SHAPES = {"BROADCAST_TO": 1, "FILL": 0, "RESHAPE": 1, "TRANSPOSE_CONV": 0}


class Effect(NamedTuple):
    """steps: of the output; None: they are not known, and `why` says the reason."""

    steps: float | None
    why: str = ""


class Effects:
    """Measures the effects of one model's findings.  Without samples, one input is drawn at random, always the same."""

    def __init__(self, model: Model, samples: Data | None = None, num_threads: int | None = None) -> None:
        self._model, self._num_threads = model, num_threads
        self._given = None if samples is None else _calls(model, samples)
        self._runs: dict[int, list[dict[int, Array]]] = {}  # by subgraph: values of its tensors, a run
        self._parts: dict[tuple[int, int], _Part | str] = {}

    def of(self, item: Found) -> Effect:
        if item.rule not in REPAIRS:
            return Effect(None, "there is no repair")
        op = item.operands.op
        place = op.subgraph.index, op.index
        if place not in self._parts:
            self._parts[place] = self._part(item)
        part = self._parts[place]
        return Effect(None, part) if isinstance(part, str) else part.effect(item)

    def of_model(self, repaired: Model) -> Effect:
        """The effect of all repairs on the outputs of the first subgraph."""
        inputs = [tensor for tensor in self._model.inputs if tensor is not None]
        try:
            given = self._given or [{tensor.index: random_value(tensor, _SEED) for tensor in inputs}]
            feeds = [[values[tensor.index] for tensor in inputs] for values in given]
            before = _results(self._model, feeds)
        except (Error, ValueError, MemoryError) as error:
            return Effect(None, f"the model does not run as it is: {error}")
        try:
            after = _results(repaired, _as_inputs(feeds, self._model, repaired))
        except (Error, ValueError, MemoryError) as error:
            return Effect(None, f"the model does not run when it is repaired: {error}")
        return Effect(_difference(self._model, before, after, repaired))

    def _part(self, item: Found) -> _Part | str:
        """The operator, or the reason why it cannot run."""
        op = item.operands.op
        graph = self._model.subgraphs[op.subgraph.index]
        if not _is_whole(op, len(graph.tensors)):
            return "the operator names tensors that are not there"
        given = [t for t in dict.fromkeys(op.inputs) if t is not None and not holds_data(t) and not t.is_variable]
        inputs = [graph.tensors[t.index] for t in given]
        outputs = [t.index for t in op.outputs if t is not None]
        if not outputs or any(name_of(t.type) == "RESOURCE" for t in inputs):
            return "the operator reads or writes a variable"
        try:
            made = extract(self._model, [t.index for t in inputs], outputs, subgraph=graph.index)
            if len(Model(made).subgraphs[0].operators) != 1:
                return "the operator's result does not depend on it alone"
            runs = self._values(graph.index)
            feeds = [[run[t.index] for t in inputs] for run in runs if all(t.index in run for t in inputs)]
            return _Part(made, feeds or [[_drawn(op, t) for t in inputs]])
        except (Error, ValueError, MemoryError) as error:
            return f"the operator does not run as it is: {error}"

    def _values(self, subgraph: int) -> list[dict[int, Array]]:
        """The values of all tensors of a subgraph, for each sample; empty where it does not run as a whole."""
        if subgraph not in self._runs:
            try:
                self._runs[subgraph] = self._run() if subgraph == 0 else []
            except (Error, ValueError, MemoryError):
                self._runs[subgraph] = []
        return self._runs[subgraph]

    def _run(self) -> list[dict[int, Array]]:
        graph = self._model.subgraphs[0]
        tensors = [tensor for tensor in graph.inputs if tensor is not None]
        given = self._given or [{tensor.index: random_value(tensor, _SEED) for tensor in tensors}]
        wanted = {i for op in graph.operators for i in op.input_indices if i >= 0}
        interpreter = Interpreter(
            model=self._model,
            experimental_preserve_all_tensors=True,
            num_threads=self._num_threads,
            max_multiply_adds=_most_multiply_adds(self._model),
        )
        found = []
        for values in given:
            for index, value in values.items():
                interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
            interpreter.reset_all_variables()
            for index, value in values.items():
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            found.append({i: np.array(interpreter.get_tensor(i)) for i in wanted if not graph.tensors[i].is_constant})
        return found


def _as_inputs(feeds: Sequence[Sequence[Array]], before: Model, after: Model) -> list[list[Array]]:
    """The same real values as the repaired model takes them."""
    return [
        [_converted(value, a, b) for value, a, b in zip(feed, before.inputs, after.inputs, strict=True)]
        for feed in feeds
    ]


def _drawn(op: OperatorPart, tensor: Tensor) -> Array:
    """A random value; the output's shape where the operator reads that."""
    place, output = _SHAPES.get(op.name), op.outputs[0]
    read = op.input_indices[place] if place is not None and place < len(op.input_indices) else -1
    if read != tensor.index or output is None or tensor.dtype not in (np.int32, np.int64):
        return random_value(tensor, _SEED)
    return np.asarray([max(n, 1) for n in output.shape], tensor.dtype)


class _Part:
    """An operator as a model of its own, with what it reads in each run."""

    def __init__(self, model: bytes, feeds: Sequence[Sequence[Array]]) -> None:
        """ValueError, tq.Error: none of the kernel sets runs it."""
        self._model, self._feeds = model, feeds
        self._before = _results(Model(_as_litert_reads(model)), feeds)
        self._known: dict[tuple[str, int], Effect] = {}

    def effect(self, item: Found) -> Effect:
        """The effect of repairing one tensor; activations depend on each other and are repaired together."""
        about = _about(item)
        if about not in self._known:
            self._known[about] = self._measured(about)
        return self._known[about]

    def _measured(self, about: tuple[str, int]) -> Effect:
        editor = Editor(self._model)
        (op,) = editor.main.operators
        others = {key_of(found) for found in of_operator(op) if _about(found) != about}
        done, refused = apply(editor, lambda found: key_of(found) not in others)
        if not done:
            return Effect(None, f"it cannot be repaired: {next(iter(refused.values()), 'nothing would change')}")
        before, after = Model(self._model), Model(editor.to_bytes())
        try:
            return Effect(
                _difference(before, self._before, _results(after, _as_inputs(self._feeds, before, after)), after)
            )
        except (Error, ValueError, MemoryError) as error:
            return Effect(None, f"the operator does not run when it is repaired: {error}")


def _as_litert_reads(model: bytes) -> bytes:
    """LiteRT's BATCH_MATMUL takes the scale of an operand that has several for 0; tq takes each column's."""
    editor = Editor(model)
    (op,) = editor.main.operators
    several = [t for t in op.inputs if t is not None and t.quantization.scale_count > 1]
    if op.name != "BATCH_MATMUL" or not several or op.inputs[0] is None or type_of(op.inputs[0]) not in SPEC_OF_TYPE:
        return model
    for tensor in several:
        tensor.quantization = {"scale": [0.0], "zero_point": [0]}
    return editor.to_bytes()


def _most_multiply_adds(model: Model) -> int:
    """The limit of a run: some rounds of all operators; an element counts as one multiply-add."""
    graphs = model.subgraphs
    products = sum(op.multiply_adds or 0 for graph in graphs for op in graph.operators)
    elements = sum(math.prod(max(n, 1) for n in t.shape) for graph in graphs for t in graph.tensors)
    return int(min(_MOST_ROUNDS * (products + elements + 1), 2**63))


def _is_whole(op: OperatorPart, count: int) -> bool:
    """Whether the tensors that it names are there."""
    return all(-1 <= index < count for index in (*op.input_indices, *op.output_indices))


def _about(item: Found) -> tuple[str, int]:
    """The tensor that a finding is about; the same for all activations."""
    return ("activations", 0) if item.operand in item.operands.activations else key_of(item)[2:]


def _calls(model: Model, samples: Data) -> list[dict[int, Array]]:
    """Samples of the first subgraph's inputs."""
    found: list[dict[int, Array]] = []
    for number, (inputs, sample) in enumerate(Calls(model).each(samples, "the samples")):
        if len(found) == _MOST_SAMPLES:
            break
        if inputs.subgraph == 0:
            found.append(inputs.values(sample, f"sample {number}"))
    if not found:
        raise ValueError("there are no samples of the first subgraph: at least one is needed")
    return found


def _results(model: Model, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs by the first kernel set that runs the model.  ValueError, tq.Error: no set does; the first one's."""
    refused: Exception | None = None
    for numerics in _KERNELS:
        try:
            return _run_with(numerics, model, feeds)
        except (Error, ValueError) as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _run_with(numerics: str, model: Model, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    limit = _most_multiply_adds(model)
    interpreter = Interpreter(model=model, numerics=numerics, num_threads=1, max_multiply_adds=limit)
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for feed in feeds:
        for item, value in zip(inputs, feed, strict=True):
            interpreter.resize_tensor_input(item["index"], value.shape)
        interpreter.allocate_tensors()
        for item, value in zip(inputs, feed, strict=True):
            interpreter.set_tensor(item["index"], value)
        interpreter.invoke()
        found.append([np.array(interpreter.get_tensor(item["index"])) for item in outputs])
    return found


def _converted(value: Array, a: Tensor | None, b: Tensor | None) -> Array:
    """The same real values as an input of other parameters takes them."""
    assert a is not None and b is not None
    if not len(b.quantization.scale) or _parameters(a) == _parameters(b):
        return value
    converted: Array = b.quantization.quantize(_real(value, a).astype(np.float32))
    return converted


def _parameters(tensor: Tensor) -> tuple[Any, ...]:
    q = tensor.quantization
    return tensor.dtype, q.scale.tolist(), q.zero_point.tolist()


def _real(value: Array, tensor: Tensor) -> Array:
    q = tensor.quantization
    if not len(q.scale) or value.dtype.kind not in "iu":
        return value.astype(np.float64)
    shape = [1] * value.ndim
    if q.scale.size > 1:
        shape[q.quantized_dimension] = q.scale.size
    scale, zero = q.scale.astype(np.float64), np.broadcast_to(q.zero_point, q.scale.shape)
    shaped = (value - zero.reshape(shape)) * scale.reshape(shape) if shape else (value - zero[0]) * scale[0]
    return np.asarray(shaped)


def _difference(before: Model, a: list[list[Array]], b: list[list[Array]], after: Model) -> float:
    """The greatest, in steps of the outputs as they were."""
    most = 0.0
    for one, two in zip(a, b, strict=True):
        for x, y, old, new in zip(one, two, before.outputs, after.outputs, strict=True):
            if old is None or new is None or x.dtype.kind not in "biuf" or x.shape != y.shape:
                continue
            scale = old.quantization.scale
            step = float(scale.max()) if scale.size and float(scale.max()) > 0 else 1.0
            difference = np.abs(_real(x, old) - _real(y, new)) / step
            most = max(most, float(difference.max(initial=0.0)))
    return round(most, 6)
