# SPDX-License-Identifier: Apache-2.0
"""Calibration data in every form, as one array for each input of a model.

A sample that does not fit is a ValueError that names the sample and the input.
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
from tq.enums import name_of
from tq.nearest import hint

Values = dict[int, NDArray[Any]]  # by tensor index, one for each input
_FILES = (str, os.PathLike)


class Inputs:
    """The inputs of a subgraph, and their names in samples.

    signature: the key of a signature: its subgraph, with its names; None: the first subgraph, with the names of all its
        signatures and of the tensors.
    ValueError: there is no such signature, or its subgraph does not exist.
    """

    def __init__(self, model: Model, signature: str | None = None) -> None:
        self.signature = signature
        self.subgraph = 0
        if signature is not None:
            self.subgraph = _subgraph_of(model, signature)
        self.tensors = [tensor for tensor in model.subgraphs[self.subgraph].inputs if tensor is not None]
        by_index = {tensor.index: tensor for tensor in self.tensors}
        self.by_name = {tensor.name: tensor for tensor in self.tensors}
        for item in model.signatures:
            if item.subgraph_index == self.subgraph and signature in (None, item.key):
                self.by_name |= {name: by_index[i] for name, i in item.inputs.items() if i in by_index}

    def named(self, name: str, where: str) -> Tensor:
        """The input of a name.  ValueError, which begins with `where`: there is none."""
        if name not in self.by_name:
            raise ValueError(
                f"{where}: no input is called {name!r}; there are: {', '.join(self.by_name)}{hint(name, self.by_name)}"
            )
        return self.by_name[name]

    def values(self, sample: Any, where: str) -> Values:
        """The arrays of a sample: a dict by name, a list in the order of the inputs, or an array for a single input.

        ValueError, which begins with `where`: an input is missing or unknown, or of another dtype or shape.
        """
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
        """Samples from arrays by input name that are stacked along their first axis.

        An array has one dimension more than its input, or as many; then its first dimension holds the rows of all
        samples, of which each has the first dimension of the input's shape.
        ValueError: an array does not fit its input, or the arrays hold different numbers of samples.
        """
        parts = {name: _rows(self.named(name, where), array, where) for name, array in arrays.items()}
        counts = {name: len(items) for name, items in parts.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"{where}: the arrays have different numbers of samples: {counts}")
        for at in range(next(iter(counts.values()), 0)):
            yield {name: items[at] for name, items in parts.items()}

    def each(self, data: Any, where: str = "calibration data") -> Iterator[Any]:
        """The samples of data: an iterable of samples and .npz files, one such file, or stacked arrays."""
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


def _subgraph_of(model: Model, signature: str) -> int:
    found = next((item for item in model.signatures if item.key == signature), None)
    if found is None:
        keys = [item.key for item in model.signatures]
        raise ValueError(
            f"no signature is called {signature!r}; there are: {', '.join(keys) or 'none'}{hint(signature, keys)}"
        )
    if not 0 <= found.subgraph_index < len(model.subgraphs):
        raise ValueError(
            f"signature {signature!r} runs subgraph {found.subgraph_index}; there are {len(model.subgraphs)}"
        )
    return int(found.subgraph_index)


class Calls:
    """The subgraph of each sample of data.

    By default a sample is for the first subgraph, or for `signature`'s.  A sample names another signature as a pair
    (key, sample), in a dict of data by signatures' keys, or, where `signature` is None, as a dict with exactly the
    names of that signature's inputs.
    """

    def __init__(self, model: Model, signature: str | None = None) -> None:
        self._model = model
        self._first = Inputs(model, signature)
        self._names = {} if signature is not None else {item.key: frozenset(item.inputs) for item in model.signatures}
        self._keys = {item.key for item in model.signatures}
        self._made: dict[str, Inputs] = {}

    def each(self, data: Any, where: str = "calibration data") -> Iterator[tuple[Inputs, Any]]:
        """The samples, each with its subgraph's inputs."""
        if isinstance(data, Mapping) and self._is_by_key(data):
            for key, part in data.items():
                for sample in self._of(key).each(part, f"{where} of signature {key!r}"):
                    yield self._of(key), sample
        elif isinstance(data, (*_FILES, Mapping, np.ndarray)):
            for sample in self._first.each(data, where):
                yield self._first, sample
        else:
            for item in self._first.each(data, where):
                yield from self._call(item, where)

    def one(self, item: Any, where: str) -> tuple[Inputs, Any]:
        """The same for one sample."""
        return next(self._call(item, where))

    def _of(self, key: str) -> Inputs:
        if key not in self._made:
            self._made[key] = Inputs(self._model, key)
        return self._made[key]

    def _is_by_key(self, data: Mapping[Any, Any]) -> bool:
        names = set(data)
        return bool(names) and names <= self._keys and not names <= set(self._first.by_name)

    def _call(self, item: Any, where: str) -> Iterator[tuple[Inputs, Any]]:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and not self._takes_text(item[0]):
            inputs = self._of(item[0])
            is_file = isinstance(item[1], _FILES)
            for sample in inputs.each([item[1]], where) if is_file else [item[1]]:
                yield inputs, sample
            return
        yield self._by_names(item) if isinstance(item, Mapping) else self._first, item

    def _takes_text(self, key: str) -> bool:
        """Whether a string is a value for the first input, and no signature's key."""
        tensors = self._first.tensors
        return key not in self._keys and bool(tensors) and name_of(tensors[0].type) == "STRING"

    def _by_names(self, sample: Mapping[Any, Any]) -> Inputs:
        names = frozenset(sample)
        if names <= set(self._first.by_name):
            return self._first
        found = [self._of(key) for key, wanted in self._names.items() if wanted == names]
        return found[0] if len({inputs.subgraph for inputs in found}) == 1 else self._first


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
                f"{where}: input {tensor.name!r} has dimension {axis} open; the shape {shape} has length 0 there"
            )
    return array


# ---- choosing among samples ----


class Reservoir:
    """A uniform random choice of `size` items of a stream (Vitter's algorithm R).

    The choice depends on the seed and the number of items alone, so workers that count items agree on it.
    """

    def __init__(self, size: int, seed: int) -> None:
        if size < 1:
            raise ValueError(f"max_samples is {size}; it must be at least 1")
        self._size = size
        self._count = 0
        self._random = np.random.default_rng(seed)

    def slot(self) -> int | None:
        """The slot, 0 to size - 1, that the next item takes over; None: the item is not chosen."""
        at = self._count
        self._count += 1
        if at < self._size:
            return at
        slot = int(self._random.integers(at + 1))
        return slot if slot < self._size else None


def chosen(items: Iterable[Any], size: int, seed: int) -> list[Any]:
    """A uniform random choice of at most `size` items, in their order."""
    reservoir, found = Reservoir(size, seed), {}
    for number, item in enumerate(items):
        slot = reservoir.slot()
        if slot is not None:
            found[slot] = (number, item)
    return [item for _number, item in sorted(found.values(), key=lambda row: row[0])]


# ---- progress ----


class Progress:
    """A progress bar of tqdm's, or none.

    wanted: None: a bar on a terminal and in a notebook, where tqdm is installed.
    ImportError: wanted is True and tqdm is not installed.
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
                raise ImportError("progress=True needs tqdm, which is not installed: pip install tqdm") from None
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
