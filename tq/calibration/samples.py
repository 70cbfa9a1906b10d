# SPDX-License-Identifier: Apache-2.0
"""Calibration data in every form, as one array for each input of a model.

A sample that does not fit is a ValueError that names the sample and the input.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Tensor, filetype
from tq.calibration.pictures import Pictures
from tq.enums import name_of
from tq.nearest import hint

Values = dict[int, NDArray[Any]]  # by tensor index, one for each input
# Samples: an iterable, a mapping, a function that returns them, or the path of a file or folder of them.
Data = Iterable[Any] | Mapping[str, Any] | Callable[[], Iterable[Any]] | os.PathLike[str]
_FILES = (str, os.PathLike)
LABELS = "labels"  # the name of stacked labels beside stacked inputs


class Inputs:
    """The inputs of a subgraph, and their names in samples.

    signature: the key of a signature: its subgraph, with its names; None: the first subgraph, with the names of all its
        signatures and of the tensors.
    quantizes: whether real values are quantized for an integer input with a scale; else they are refused.
    ValueError: there is no such signature, or its subgraph does not exist.
    """

    def __init__(self, model: Model, signature: str | None = None, quantizes: bool = False) -> None:
        self.signature = signature
        self._quantizes = quantizes
        self._model = model
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
        return {tensor.index: _fitting(tensor, given[tensor.index], where, self._quantizes) for tensor in self.tensors}

    def labelled(self, data: Any, where: str = "calibration data") -> Iterator[tuple[Any, Any]]:
        """The samples of data, each with its label, or None.

        data: an iterable of samples, (sample, label) pairs and files; stacked arrays, among them "labels"; a file of
            these; a folder of pictures; or a function without arguments that returns one of them, as
            TFLiteConverter's representative_dataset.
        """
        data = _made(data)
        if isinstance(data, _FILES):
            yield from self._of_file(data)
        elif isinstance(data, Mapping):
            yield from self._stacked({name: np.asarray(array) for name, array in data.items()}, where)
        elif isinstance(data, np.ndarray):
            yield from self._of_array(data, where)
        elif not isinstance(data, Iterable) or isinstance(data, (bytes, bytearray, memoryview)):
            raise ValueError(f"{where} are of type {type(data).__name__}; an iterable of samples is needed")
        else:
            for item in data:
                if isinstance(item, _FILES):
                    yield from self._of_file(item)
                else:
                    yield self.split(item)

    def each(self, data: Any, where: str = "calibration data") -> Iterator[Any]:
        """The samples of data, without labels."""
        for sample, _label in self.labelled(data, where):
            yield sample

    def split(self, item: Any) -> tuple[Any, Any]:
        """A (sample, label) pair, or a sample and None.

        A pair is a tuple of two: for a single input any, for several one that begins with a dict or a list of arrays.
        """
        if not (isinstance(item, tuple) and len(item) == 2) or isinstance(item[0], str):
            return item, None
        sample, label = item
        several = isinstance(sample, (list, tuple)) and all(isinstance(part, np.ndarray) for part in sample)
        is_pair = len(self.tensors) == 1 or isinstance(sample, Mapping) or (several and len(sample) > 1)
        return (sample, label) if is_pair else (item, None)

    def _of_file(self, path: str | os.PathLike[str]) -> Iterator[tuple[Any, Any]]:
        if os.path.isdir(path):
            yield from Pictures(path, self._only(f"{os.fspath(path)!r} is a folder of pictures"), self._model)
            return
        found = _load(path)
        if isinstance(found, np.ndarray):
            yield from self._of_array(found, os.fspath(path))
        else:
            yield from self._stacked(found, os.fspath(path))

    def _of_array(self, array: NDArray[Any], where: str) -> Iterator[tuple[Any, Any]]:
        for sample, label in self._stacked({self._only(f"{where} are one array").name: array}, where):
            yield from ((value, label) for value in sample.values())

    def _only(self, given: str) -> Tensor:
        if len(self.tensors) != 1:
            raise ValueError(f"{given}; the model has {len(self.tensors)} inputs")
        return self.tensors[0]

    def _stacked(self, arrays: Mapping[str, NDArray[Any]], where: str) -> Iterator[tuple[dict[str, NDArray[Any]], Any]]:
        """Samples and labels from arrays by input name that are stacked along their first axis.

        An array has one dimension more than its input, or as many; then its first dimension holds the rows of all
        samples, of which each has the first dimension of the input's shape.
        ValueError: an array does not fit its input, or the arrays hold different numbers of samples.
        """
        parts, labels = {}, None
        for name, array in arrays.items():
            if name == LABELS and name not in self.by_name:
                labels = array
            else:
                parts[name] = _rows(self.named(name, where), array, where)
        counts = {name: len(items) for name, items in parts.items()}
        if labels is not None:
            counts[LABELS] = len(labels) if labels.ndim else 0
        if len(set(counts.values())) > 1:
            raise ValueError(f"{where}: the arrays have different numbers of samples: {counts}")
        for at in range(next(iter(counts.values()), 0)):
            yield {name: items[at] for name, items in parts.items()}, None if labels is None else labels[at]


def _made(data: Any) -> Any:
    """The data that a function returns; other data as they are."""
    return data() if callable(data) and not isinstance(data, Iterable) else data


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

    def __init__(self, model: Model, signature: str | None = None, quantizes: bool = False) -> None:
        self._model = model
        self._quantizes = quantizes
        self._first = Inputs(model, signature, quantizes)
        self._names = {} if signature is not None else {item.key: frozenset(item.inputs) for item in model.signatures}
        self._keys = {item.key for item in model.signatures}
        self._by_key: dict[str, Inputs] = {}

    def each(self, data: Any, where: str = "calibration data") -> Iterator[tuple[Inputs, Any]]:
        """The samples, each with its subgraph's inputs."""
        for inputs, sample, _label in self.labelled(data, where):
            yield inputs, sample

    def labelled(self, data: Any, where: str = "calibration data") -> Iterator[tuple[Inputs, Any, Any]]:
        """The same with labels, or None.  data: as Inputs.labelled takes them."""
        data = _made(data)
        if isinstance(data, Mapping) and self._is_by_key(data):
            for key, part in data.items():
                for sample, label in self._of(key).labelled(part, f"{where} of signature {key!r}"):
                    yield self._of(key), sample, label
        elif isinstance(data, (*_FILES, Mapping, np.ndarray)):
            for sample, label in self._first.labelled(data, where):
                yield self._first, sample, label
        else:
            for item, label in self._first.labelled(data, where):
                yield from self._call(item, label, where)

    def one(self, item: Any, where: str) -> tuple[Inputs, Any]:
        """The inputs and the sample of one item of data."""
        sample, label = self._first.split(item)
        inputs, sample, _label = next(self._call(sample, label, where))
        return inputs, sample

    def _of(self, key: str) -> Inputs:
        if key not in self._by_key:
            self._by_key[key] = Inputs(self._model, key, self._quantizes)
        return self._by_key[key]

    def _is_by_key(self, data: Mapping[Any, Any]) -> bool:
        names = set(data)
        return bool(names) and names <= self._keys and not names <= set(self._first.by_name)

    def _call(self, item: Any, label: Any, where: str) -> Iterator[tuple[Inputs, Any, Any]]:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and not self._takes_text(item[0]):
            inputs = self._of(item[0])
            found = inputs.labelled([item[1]], where) if isinstance(item[1], _FILES) else [inputs.split(item[1])]
            for sample, own in found:
                yield inputs, sample, own
            return
        yield self._by_names(item) if isinstance(item, Mapping) else self._first, item, label

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


def _load(path: str | os.PathLike[str]) -> Any:
    """An array of an .npy file, or a dict of those of an .npz file."""
    where = repr(os.fspath(path))
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            return file
        with file:
            return {name: file[name] for name in file.files}
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{where} is no .npz file of arrays by input name: {refusal(path, error)}") from error


def refusal(path: str | os.PathLike[str], error: Exception) -> str:
    """The reason why NumPy did not read a file, without its advice to allow pickles, which run code."""
    with open(path, "rb") as file:
        head = file.read(64)
    found = "a TFLite model" if head[4:7] == b"TFL" else filetype(head)
    text = "it holds Python objects" if "allow_pickle" in str(error) or "Object arrays" in str(error) else str(error)
    return f"it is {found}" if found and "zip" not in found and "NumPy" not in found else text


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


def _fitting(tensor: Tensor, value: Any, where: str, quantizes: bool) -> NDArray[Any]:
    try:
        array: NDArray[Any] = value if isinstance(value, np.ndarray) else np.asarray(value, tensor.dtype)
        if quantizes and array.dtype.kind == "f" and tensor.quantization and tensor.dtype.kind in "iu":
            array = tensor.quantization.quantize(array)
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
