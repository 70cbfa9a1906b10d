# SPDX-License-Identifier: Apache-2.0
"""The mean and std of an input that a model's metadata state: TFLite Metadata's NormalizationOptions.

Source: tflite_support, metadata/metadata_schema.fbs, schema 1.5.0.  The numbers are the fields' slots.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tq._core import Model

KEY = "TFLITE_METADATA"
_SUBGRAPHS, _INPUTS, _PROCESS_UNITS = 3, 2, 4  # of ModelMetadata, SubGraphMetadata, TensorMetadata
_OPTIONS_TYPE, _OPTIONS = 0, 1  # of ProcessUnit
_MEAN, _STD = 0, 1  # of NormalizationOptions
_NORMALIZATION = 1  # the member of the union ProcessUnitOptions
_MOST = 4096  # items of a vector that are read


class Normalization(NamedTuple):
    """An input's value is (pixel - mean) / std, with one of each, or one a channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


class _Table:
    """A table of a flatbuffer.  struct.error: it lies outside the bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._read("<i", at)

    def _read(self, form: str, at: int) -> int:
        if at < 0:
            raise struct.error("an offset below 0")
        return int(struct.unpack_from(form, self._data, at)[0])

    def _field(self, slot: int) -> int | None:
        """Where a field's value lies; None: it is not stored."""
        if 4 + 2 * slot >= self._read("<H", self._vtable):
            return None
        offset = self._read("<H", self._vtable + 4 + 2 * slot)
        return self._at + offset if offset else None

    def number(self, slot: int) -> int:
        at = self._field(slot)
        return 0 if at is None else self._read("<B", at)

    def table(self, slot: int) -> _Table | None:
        at = self._field(slot)
        return None if at is None else _Table(self._data, at + self._read("<I", at))

    def tables(self, slot: int) -> Iterator[_Table]:
        for at in self._items(slot):
            yield _Table(self._data, at + self._read("<I", at))

    def floats(self, slot: int) -> tuple[float, ...]:
        return tuple(struct.unpack_from("<f", self._data, at)[0] for at in self._items(slot))

    def _items(self, slot: int) -> Iterator[int]:
        at = self._field(slot)
        if at is None:
            return
        start = at + self._read("<I", at)
        count = self._read("<I", start)
        yield from range(start + 4, start + 4 + 4 * min(count, _MOST), 4)


def normalization(model: Model, number: int = 0) -> Normalization | None:
    """The normalization of the first subgraph's input of this number; None: the metadata state none.

    ValueError: the metadata cannot be read.
    """
    data = model.metadata.get(KEY, b"")
    if not data:
        return None
    try:
        return _found(_Table(data, struct.unpack_from("<I", data)[0]), number)
    except struct.error as error:
        raise ValueError(f"the model's metadata {KEY!r} are damaged: {error}") from None


def _found(metadata: _Table, number: int) -> Normalization | None:
    graph = next(metadata.tables(_SUBGRAPHS), None)
    inputs = [] if graph is None else list(graph.tables(_INPUTS))
    for unit in inputs[number].tables(_PROCESS_UNITS) if number < len(inputs) else ():
        options = unit.table(_OPTIONS)
        if unit.number(_OPTIONS_TYPE) == _NORMALIZATION and options is not None:
            mean, std = options.floats(_MEAN), options.floats(_STD)
            return Normalization(mean, std) if mean and std else None
    return None
