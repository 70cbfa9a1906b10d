# SPDX-License-Identifier: Apache-2.0
"""Tensor types by name, number or dtype; the bytes of constants."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing import fields
from tq.nearest import hint


@cache
def _rows() -> list[tuple[str, int, str]]:
    return _core.tensor_types()


def type_row(number: int) -> tuple[str, int, str] | None:
    """(name, bits of an element, dtype) of a TensorType; None: the schema does not know it."""
    rows = _rows()
    return rows[number] if 0 <= number < len(rows) else None


@cache
def _named(value: str) -> int | None:
    for number, (name, _bits, dtype) in enumerate(_rows()):
        if value.upper() == name or value == dtype:
            return number
    return None


def type_number(value: Any) -> int:
    """The number of a TensorType that is given as a member, number, name in any case, or NumPy dtype.

    ValueError: there is no such type.
    """
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, str):
        found = _named(value)
        if found is not None:
            return found
    elif isinstance(value, (int, np.integer)):
        return int(value)
    else:
        with contextlib.suppress(TypeError):
            wanted = np.dtype(value).name
            for number, (_name, _bits, dtype) in enumerate(_rows()):
                if dtype.removeprefix("ml_dtypes.") == wanted and dtype != "object":
                    return number
    names = ", ".join(name.lower() for name, _bits, _dtype in _rows())
    raise ValueError(f"no tensor type is called {value!r}; there are: {names}{hint(str(value), names.split(', '))}")


def type_of_array(array: NDArray[Any]) -> Any:
    """The argument of type_number for an array's dtype; texts are a string tensor."""
    return "STRING" if array.dtype.kind in "SUO" else array.dtype


@cache
def dtype_of(row: tuple[str, int, str]) -> np.dtype[Any]:
    """The NumPy dtype of a row of type_row."""
    name = row[2]
    if name.startswith("ml_dtypes."):
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name.removeprefix("ml_dtypes.")))
        return narrow
    return np.dtype(name)


def pack_strings(items: Iterable[Any]) -> bytes:
    """The buffer of a string tensor: int32 count and offsets, then characters (tensor.h)."""
    encoded = [fields.text(item, "a string tensor") for item in items]
    offsets = np.cumsum([4 * (len(encoded) + 2), *map(len, encoded)])
    return np.array([len(encoded), *offsets], "<i4").tobytes() + b"".join(encoded)


def encode(value: Any, type: int, shape: tuple[int, ...] | None, where: str) -> tuple[bytes, tuple[int, ...] | None]:
    """(the bytes of a constant in a buffer, the shape of the array `value`; None where `value` is bytes).

    type: a TensorType's number.  shape: the shape that an array must have; None: any.  where: the beginning of errors.
    ValueError: dtype or shape do not fit.
    """
    row = type_row(type)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), None
    if row is None or row[0] in ("RESOURCE", "VARIANT"):
        raise ValueError(f"{where}: a tensor of type {row[0] if row else type} takes bytes alone")
    array = np.asarray(value, object) if row[0] == "STRING" else np.asarray(value)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{where}: its shape is {list(shape)}, the data's is {list(array.shape)}")
    if row[0] == "STRING":
        return pack_strings(array.ravel().tolist()), array.shape
    dtype = dtype_of(row)
    if row[1] < 8:
        if array.dtype.kind not in "iu" and array.dtype != dtype:
            raise ValueError(f"{where}: its type is {row[0]}, which takes {dtype} or integers, not {array.dtype}")
        return _core.pack(array, row[0].lower()).tobytes(), array.shape
    if array.dtype.newbyteorder("=") != dtype:
        if not isinstance(value, np.ndarray) and _fits(array, dtype):
            array = array.astype(dtype)
        else:
            raise ValueError(f"{where}: its type is {row[0]}, which takes {dtype}, not {array.dtype}")
    return np.ascontiguousarray(array, dtype.newbyteorder("<")).tobytes(), array.shape


def _fits(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether Python numbers, in an array of NumPy's choice, may be converted to a dtype."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        is_whole = array.dtype.kind in "iub" or array.size == 0
        return bool(is_whole and (array.size == 0 or (array.min() >= limits.min and array.max() <= limits.max)))
    return array.dtype.kind in "iufb" if dtype.kind in "fV" else array.dtype.kind in "iufcb"
