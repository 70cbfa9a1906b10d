# SPDX-License-Identifier: Apache-2.0
"""Calibration data in all their forms, turned into one array for each input of a model.

What does not fit is a ValueError that names the sample and the input.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Tensor

Values = dict[int, NDArray[Any]]  # by tensor index, one for each input
_FILES = (str, os.PathLike)


class Inputs:
    """The inputs of a model's first subgraph, and the names that samples may give them.

    signature: the key of the signature whose names count; None: those of all signatures, and the tensors' own.
    ValueError: there is no such signature, or it is another subgraph's.
    """

    def __init__(self, model: Model, signature: str | None = None) -> None:
        self.tensors = [tensor for tensor in model.subgraphs[0].inputs if tensor is not None]
        by_index = {tensor.index: tensor for tensor in self.tensors}
        self.by_name = {tensor.name: tensor for tensor in self.tensors}
        keys = [item.key for item in model.signatures]
        if signature is not None and signature not in keys:
            raise ValueError(f"no signature is called {signature!r}; there are: {', '.join(keys) or 'none'}")
        for item in model.signatures:
            if item.key == signature and item.subgraph_index != 0:
                place = item.subgraph_index
                raise ValueError(f"signature {signature!r} runs subgraph {place}; only the first is calibrated")
            if item.subgraph_index == 0 and signature in (None, item.key):
                self.by_name |= {name: by_index[i] for name, i in item.inputs.items() if i in by_index}

    def named(self, name: str, where: str) -> Tensor:
        if name not in self.by_name:
            raise ValueError(f"{where}: no input is called {name!r}; there are: {', '.join(self.by_name)}")
        return self.by_name[name]

    def values(self, sample: Any, where: str) -> Values:
        """A sample, be it a dict by name, a list in the order of the inputs, or an array where there is one input."""
        if isinstance(sample, Mapping):
            given = {self.named(name, where).index: value for name, value in sample.items()}
        else:
            if isinstance(sample, np.ndarray) and (len(self.tensors) == 1 or sample.ndim == 0):
                sample = [sample]
            elif isinstance(sample, (*_FILES, bytes)) or not isinstance(sample, Iterable):
                raise ValueError(f"{where} is {sample!r}; an array, a list of arrays or a dict of them is needed")
            items = list(sample)
            if len(items) != len(self.tensors):
                raise ValueError(f"{where} has {len(items)} inputs; the model has {len(self.tensors)}")
            given = {tensor.index: value for tensor, value in zip(self.tensors, items, strict=True)}
        missing = next((tensor for tensor in self.tensors if given.get(tensor.index) is None), None)
        if missing is not None:
            raise ValueError(f"{where} has no input {missing.name!r}")
        return {tensor.index: _fitting(tensor, given[tensor.index], where) for tensor in self.tensors}

    def stacked(self, arrays: Mapping[str, NDArray[Any]], where: str) -> Iterator[dict[str, NDArray[Any]]]:
        """Samples from arrays by input name that hold one behind the other along their first axis.

        An array has a dimension more than its input, or the input's number of them, the first counting the rows of all
        samples; where the file leaves that dimension open, a sample has as many rows as the input's shape says.
        """
        parts = {name: _rows(self.named(name, where), array, where) for name, array in arrays.items()}
        counts = {name: len(items) for name, items in parts.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"{where}: the arrays have different numbers of samples: {counts}")
        for at in range(next(iter(counts.values()), 0)):
            yield {name: items[at] for name, items in parts.items()}

    def each(self, data: Any, where: str = "calibration data") -> Iterator[Any]:
        """The samples of data: an iterable of samples and of .npz files, one such file, or stacked arrays."""
        if isinstance(data, _FILES):
            yield from self.stacked(_load(data), os.fspath(data))
        elif isinstance(data, Mapping):
            yield from self.stacked({name: np.asarray(array) for name, array in data.items()}, where)
        elif isinstance(data, np.ndarray):
            if len(self.tensors) != 1:
                raise ValueError(f"{where} are one array; the model has {len(self.tensors)} inputs")
            for sample in self.stacked({self.tensors[0].name: data}, where):
                yield from sample.values()
        elif not isinstance(data, Iterable) or isinstance(data, (bytes, bytearray, memoryview)):
            raise ValueError(f"{where} are of type {type(data).__name__}; an iterable of samples is needed")
        else:
            for item in data:
                if isinstance(item, _FILES):
                    yield from self.stacked(_load(item), os.fspath(item))
                else:
                    yield item


def samples_of(model: Model, arrays: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
    """Samples from arrays by input name, stacked as Inputs.stacked takes them."""
    return Inputs(model).stacked(arrays, "the samples")


def _load(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{os.fspath(path)!r} is no .npz file of arrays by input name: {error}") from error


def _rows(tensor: Tensor, array: NDArray[Any], where: str) -> list[NDArray[Any]]:
    shape = tensor.shape
    rows = shape[0] if shape else 1
    if array.ndim == len(shape) + 1:
        return list(array)
    if array.ndim == len(shape) and array.ndim and rows > 0 and len(array) % rows == 0:
        return [array[at : at + rows] for at in range(0, len(array), rows)]
    raise ValueError(
        f"{where}: array {tensor.name!r} of shape {list(array.shape)} holds no inputs of shape {list(shape)}"
    )


def _fitting(tensor: Tensor, value: Any, where: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = value if isinstance(value, np.ndarray) else np.asarray(value, tensor.dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: input {tensor.name!r} needs an array of {tensor.dtype}: {error}") from None
    if array.dtype != tensor.dtype:
        raise ValueError(f"{where}: input {tensor.name!r} is of {tensor.dtype}, not {array.dtype}")
    wanted = tensor.shape_signature
    fits = len(wanted) == array.ndim and all(n in (-1, m) for n, m in zip(wanted, array.shape, strict=True))
    if not fits:
        raise ValueError(f"{where}: input {tensor.name!r} has the shape {list(wanted)}, not {list(array.shape)}")
    for axis, length in enumerate(array.shape):
        if wanted[axis] == -1 and length == 0:
            shape = list(array.shape)
            raise ValueError(
                f"{where}: input {tensor.name!r} has dimension {axis} open; the shape {shape} fixes it not"
            )
    return array


# ---- choosing among samples ----


class Reservoir:
    """Which of a stream's items a fair choice of `size` keeps (Vitter's algorithm R).  A function of the seed and of
    how many items there are, so that parts that only know their numbers choose the same."""

    def __init__(self, size: int, seed: int) -> None:
        if size < 1:
            raise ValueError(f"max_samples is {size}; it must be at least 1")
        self._size = size
        self._seen = 0
        self._random = np.random.default_rng(seed)

    def place(self) -> int | None:
        """Where the next item goes, in place of what is there; None: it is passed over."""
        at = self._seen
        self._seen += 1
        if at < self._size:
            return at
        place = int(self._random.integers(at + 1))
        return place if place < self._size else None


def chosen(items: Iterable[Any], size: int, seed: int) -> list[Any]:
    """A fair choice of at most `size` of the items, in their order."""
    reservoir, kept = Reservoir(size, seed), {}
    for number, item in enumerate(items):
        place = reservoir.place()
        if place is not None:
            kept[place] = (number, item)
    return [item for _number, item in sorted(kept.values(), key=lambda row: row[0])]


# ---- progress ----


class Progress:
    """A bar of tqdm's, or nothing.

    wanted: None: on a terminal and in a notebook, where tqdm is installed.  ImportError: True, and it is not.
    """

    def __init__(self, wanted: bool | None, data: Any) -> None:
        self._bar: Any = None
        shown = sys.stderr is not None and sys.stderr.isatty()
        if wanted is False or (wanted is None and not shown and "ipykernel" not in sys.modules):
            return
        try:
            tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            if wanted:
                raise ImportError("progress=True needs tqdm: pip install 'tq[progress]'") from None
            return
        total = len(data) if isinstance(data, Sequence) and not isinstance(data, str) else None
        self._bar = tqdm(total=total, desc="calibrating", unit=" samples", delay=0 if wanted else 0.5)

    def add(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()
