# SPDX-License-Identifier: Apache-2.0
"""Calibration: the ranges of a model's activations, from running it on data.

calibration = tq.calibrate("float.tflite", samples)
calibration.save("ranges.npz")
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import observers, recurrent
from tq._core import Model, Operator, Tensor
from tq.editor import Source, write_all, write_atomically
from tq.interpreter import Interpreter

Observer = observers.MinMaxObserver | observers.MovingAverageObserver | observers.HistogramObserver
_CLASSES: dict[str, Any] = {
    "MinMaxObserver": observers.MinMaxObserver,
    "MovingAverageObserver": observers.MovingAverageObserver,
    "HistogramObserver": observers.HistogramObserver,
}
_FORMAT = 1  # of the files


class Calibration:
    """What calibration data taught about the float activations of a model's first subgraph.

    observers: {tensor index: observer}.  names: {tensor index: the tensor's name}, by which merge and load make sure
    that it is the same model.  samples: how many were run.
    """

    def __init__(self, names: Mapping[int, str], observers: Mapping[int, Observer], samples: int = 0) -> None:
        self.names = dict(names)
        self.observers = dict(observers)
        self.samples = samples

    def range(self, tensor: int | str) -> tuple[float, float]:
        """(least, greatest) value seen of a tensor, by its index or name.

        KeyError: it was not observed.  ValueError: it never had a finite value.
        """
        index = tensor if not isinstance(tensor, str) else self._index(tensor)
        observer = self.observers[index]
        low, high = float(observer.min), float(observer.max)
        if low > high:
            raise ValueError(f"tensor {self.names[index]!r} had no finite value in {self.samples} samples")
        return low, high

    def _index(self, name: str) -> int:
        for index, found in self.names.items():
            if found == name:
                return index
        raise KeyError(f"no tensor {name!r} was observed")

    def merge(self, other: Calibration) -> Calibration:
        """Takes in what another calibration of the same model saw.  Returns this one.

        ValueError: another model, or other observers.
        """
        if other.names != self.names:
            raise ValueError(f"the calibrations are of different models: {_first_difference(self.names, other.names)}")
        for index in self.names:
            observer: Any = self.observers[index]
            theirs: Any = other.observers[index]
            if type(theirs) is not type(observer):
                raise ValueError(
                    f"tensor {self.names[index]!r} has a {type(observer).__name__} in one, "
                    f"a {type(theirs).__name__} in the other"
                )
            observer.merge(theirs)
        self.samples += other.samples
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, an .npz, which load reads; the file appears whole or not at all."""
        arrays: dict[str, Any] = {}
        rows: list[dict[str, Any]] = []
        for index, observer in self.observers.items():
            state = observer.__getstate__()
            rows.append({"index": index, "name": self.names[index], "class": type(observer).__name__, "plain": {}})
            for field, value in state.items():
                if isinstance(value, np.ndarray):
                    arrays[f"{index}/{field}"] = value
                else:
                    rows[-1]["plain"][field] = value
        header = json.dumps({"format": _FORMAT, "samples": self.samples, "observers": rows})
        stream = io.BytesIO()
        np.savez_compressed(stream, header=np.frombuffer(header.encode(), np.uint8), **arrays)
        data = stream.getvalue()
        write_atomically(os.fspath(path), lambda descriptor: write_all(descriptor, data))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """What save wrote.  ValueError: the file is something else."""
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(bytes(file["header"]))
                if header["format"] != _FORMAT:
                    raise ValueError(f"format {header['format']}; this version of tq reads {_FORMAT}")
                names, found = {}, {}
                for row in header["observers"]:
                    prefix = f"{row['index']}/"
                    state = row["plain"] | {
                        key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)
                    }
                    observer = _CLASSES[row["class"]].__new__(_CLASSES[row["class"]])
                    observer.__setstate__(state)
                    names[int(row["index"])], found[int(row["index"])] = row["name"], observer
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(path)!r} is no saved calibration: {error}") from error
        return cls(names, found, int(header["samples"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        mine, theirs = (self.names, self.observers, self.samples), (other.names, other.observers, other.samples)
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # equal by what was seen, and that changes

    def __repr__(self) -> str:
        return f"<tq calibration: {len(self.observers)} tensors, {self.samples} samples>"


def _first_difference(mine: Mapping[int, str], theirs: Mapping[int, str]) -> str:
    for index in sorted(mine.keys() | theirs.keys()):
        if mine.get(index) != theirs.get(index):
            return f"tensor {index} is {mine.get(index)!r} in one and {theirs.get(index)!r} in the other"
    return "none"


def calibrate(
    model: Source,
    inputs: Iterable[Any],
    *,
    observer: Callable[[], Observer] = observers.MinMaxObserver,
    num_threads: int | None = None,
) -> Calibration:
    """Runs a float model on data, and observes every float32 activation of its first subgraph.

    inputs: an iterable, be it a generator, of one sample a run: a dict of arrays by the names of the inputs (the
        signature's or the tensors'), a list in the order of the inputs, or an array where there is one input.  Arrays
        have the inputs' dtypes and shapes; dimensions that the file leaves open may be any.
    observer: makes the observer of a tensor: tq.MinMaxObserver, tq.HistogramObserver, or a function that gives one.
    num_threads: as of tq.Interpreter.

    Variables are reset before each sample.  The operators run one by one, so that memory is that of a plain run.
    ValueError: no samples, or one that does not fit: the message names the sample and the input.  RunError: the model
    cannot be run.
    """
    opened = model if isinstance(model, Model) else Model(model)
    interpreter = Interpreter(model=opened, num_threads=num_threads)
    graph = opened.subgraphs[0]
    plan = _Plan(opened)
    tensors = graph.tensors
    names = {index: tensors[index].name for index in sorted(plan.observed)}
    made = Calibration(names, {index: observer() for index in names})
    for sample in inputs:
        plan.feed(interpreter, sample, made.samples)
        _observe(interpreter, plan, made)
        made.samples += 1
    if not made.samples:
        raise ValueError("the calibration set is empty: at least one sample is needed")
    return made


def samples_of(model: Model, arrays: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
    """Samples from arrays by input name that hold one behind the other along their first axis.

    An array has a dimension more than its input, or the input's number of them, the first counting the rows of all
    samples.  ValueError: arrays of different numbers of samples, or of another shape.
    """
    shapes = _Plan(model).input_names
    parts: dict[str, list[NDArray[Any]]] = {}
    for name, array in arrays.items():
        if name not in shapes:
            raise ValueError(f"no input is called {name!r}; there are: {', '.join(shapes)}")
        shape = shapes[name].shape
        rows = shape[0] if shape else 1
        if array.ndim == len(shape) + 1:
            parts[name] = list(array)
        elif array.ndim == len(shape) and rows > 0 and len(array) % rows == 0:
            parts[name] = [array[at : at + rows] for at in range(0, len(array), rows)]
        else:
            raise ValueError(f"array {name!r} of shape {list(array.shape)} holds no inputs of shape {list(shape)}")
    counts = {name: len(items) for name, items in parts.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the arrays have different numbers of samples: {counts}")
    for at in range(next(iter(counts.values()), 0)):
        yield {name: items[at] for name, items in parts.items()}


def _written(operators: Iterable[Operator]) -> Iterator[Tensor]:
    for operator in operators:
        yield from (tensor for tensor in operator.outputs if tensor is not None)


def _is_float(tensor: Tensor) -> bool:
    return str(getattr(tensor.type, "name", "")) == "FLOAT32"


class _Plan:
    """The inputs and what is observed after each operator."""

    def __init__(self, model: Model) -> None:
        graph = model.subgraphs[0]
        self.inputs = [tensor for tensor in graph.inputs if tensor is not None]
        self.input_names = {tensor.name: tensor for tensor in self.inputs}
        for signature in model.signatures:
            if signature.subgraph_index == 0:
                tensors = {tensor.index: tensor for tensor in self.inputs}
                self.input_names |= {name: tensors[i] for name, i in signature.inputs.items() if i in tensors}
        self.first = [tensor.index for tensor in self.inputs if _is_float(tensor)]
        self.after = [
            [tensor.index for tensor in operator.outputs if tensor is not None and _is_float(tensor)]
            for operator in graph.operators
        ]
        self.before = [recurrent.inner_indices(operator) for operator in graph.operators]
        self.operators = list(graph.operators)
        self.observed = {*self.first, *(index for indices in (*self.after, *self.before) for index in indices)}
        self._shapes: dict[int, tuple[int, ...]] | None = None

    def feed(self, interpreter: Interpreter, sample: Any, number: int) -> None:
        values = self._values(sample, f"calibration sample {number}")
        shapes = {index: value.shape for index, value in values.items()}
        if shapes != self._shapes:
            for index, shape in shapes.items():
                interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        interpreter.reset_all_variables()
        for index, value in values.items():
            interpreter.set_tensor(index, value)

    def _values(self, sample: Any, where: str) -> dict[int, NDArray[Any]]:
        if isinstance(sample, Mapping):
            unknown = next((name for name in sample if name not in self.input_names), None)
            if unknown is not None:
                raise ValueError(f"{where}: no input is called {unknown!r}; there are: {', '.join(self.input_names)}")
            given = {self.input_names[name].index: value for name, value in sample.items()}
        else:
            items = [sample] if isinstance(sample, np.ndarray) else list(sample)
            if len(items) != len(self.inputs):
                raise ValueError(f"{where} has {len(items)} inputs; the model has {len(self.inputs)}")
            given = {tensor.index: value for tensor, value in zip(self.inputs, items, strict=True)}
        missing = next((tensor for tensor in self.inputs if tensor.index not in given), None)
        if missing is not None:
            raise ValueError(f"{where} has no input {missing.name!r}")
        return {tensor.index: _fitting(tensor, given[tensor.index], where) for tensor in self.inputs}


def _fitting(tensor: Tensor, value: Any, where: str) -> NDArray[Any]:
    array: NDArray[Any] = value if isinstance(value, np.ndarray) else np.asarray(value, tensor.dtype)
    if array.dtype != tensor.dtype:
        raise ValueError(f"{where}: input {tensor.name!r} is of {tensor.dtype}, not {array.dtype}")
    wanted = tensor.shape_signature
    fits = len(wanted) == array.ndim and all(n in (-1, m) for n, m in zip(wanted, array.shape, strict=True))
    if not fits:
        raise ValueError(f"{where}: input {tensor.name!r} has the shape {list(wanted)}, not {list(array.shape)}")
    return array


def _observe(interpreter: Interpreter, plan: _Plan, made: Calibration) -> None:
    """One run; the inputs are set."""
    for index in plan.first:
        made.observers[index].update(interpreter._view(index))
    for place, indices in enumerate(plan.after):
        if plan.before[place]:
            for index, values in recurrent.inner(plan.operators[place], interpreter._view):
                made.observers[index].update(np.ascontiguousarray(values, np.float32))
        interpreter._invoke(0, place, place + 1)
        for index in indices:
            made.observers[index].update(interpreter._view(index))
