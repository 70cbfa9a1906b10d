# SPDX-License-Identifier: Apache-2.0
"""A table's fields as Python values, by the schema's rows, for tq.edit and tq.ModelBuilder.

A value that does not fit a field's kind is a ValueError that names the field, the value and the need.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core, enums
from tq.nearest import hint

# NumPy's types of the kinds: of a vector's elements in the file, and of the range of a scalar.
_DTYPES = {
    "BOOL": "?",
    "I8": "<i1",
    "U8": "<u1",
    "I16": "<i2",
    "U16": "<u2",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
    "U64": "<u8",
    "F32": "<f4",
    "F64": "<f8",
}
# The same for the struct module, of the kinds that it checks as NumPy does.
_PACKED = {"I8": "b", "U8": "B", "I16": "h", "U16": "H", "I32": "i", "U32": "I", "I64": "q", "U64": "Q", "F32": "f"}


@cache
def rows(table: str) -> dict[str, str]:
    """{field: kind} of a table, such as "VEC_F32".  KeyError: the schema has no such table."""
    return {name: kind for name, _slot, kind, _default in _core.schema_tables()[table]}


@cache
def options_table(operator_name: str) -> str | None:
    """The name of a builtin operator's options table; None: it has none.  KeyError: it is no builtin operator."""
    return {name: table for name, _code, table in _core.schema_builtins()}[operator_name]


@cache
def members(union: str) -> list[str]:
    """The names of the tables that a union may hold."""
    return [table for table, _type in _core.schema_unions()[union]]


def kind_of(node: _core._Node, field: str) -> str:
    """The kind of a table's field.  ValueError: the table has no such field, or the schema does not know the table."""
    return _kind(node.type, field)


@cache
def _kind(table: str | None, field: str) -> str:
    if table is None:
        raise ValueError("the schema does not know this table, and so none of its fields")
    kind = rows(table).get(field)
    if kind is None:
        names = ", ".join(rows(table)) or "none at all"
        raise ValueError(f"{table} has no field {field!r}; its fields are: {names}{hint(field, rows(table))}")
    return kind


@cache
def _members(table: str | None, field: str) -> dict[int, Any] | None:
    """{number: member} of a field's enum; None: the field is no enum."""
    kind = _kind(table, field)
    return dict(enums.members_by_value(_argument(kind))) if kind.startswith("ENUM(") else None


def _argument(kind: str) -> str:
    """ "Padding" of the kind "ENUM(Padding)"."""
    return kind[kind.index("(") + 1 : -1]


def enum_number(enum: str, value: Any) -> int:
    """The number of an enumerator, given by name in any case, as a member or as a number.

    ValueError: the enum has no such name, or the value is neither.
    """
    if isinstance(value, str):
        members_ = enums.by_name(enum).__members__
        member = members_.get(value, members_.get(value.upper()))
        if member is None:
            raise ValueError(f"{enum} has no {value!r}; it has: {', '.join(members_)}{hint(str(value), members_)}")
        return int(member)
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{enum} needs a name or a number, not {value!r}") from None


@cache
def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype(_DTYPES[kind])


def _packed(kind: str, value: Any) -> bytes | None:
    """The bytes of a short list, faster than by an array; None: the kind or an element does not fit struct, see
    vector."""
    try:
        return struct.pack(f"<{len(value)}{_PACKED[kind]}", *value)
    except (KeyError, struct.error, OverflowError, TypeError, ValueError):
        return None


@cache
def _limits(kind: str) -> tuple[int, int]:
    """(least, greatest) integer or boolean of a kind."""
    dtype = _dtype(kind)
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def vector(kind: str, value: Any, where: str) -> NDArray[Any]:
    """A flat, contiguous array in a kind's dtype, from an array-like.

    ValueError, which begins with `where`: elements of another type, or integers out of range.
    """
    array = np.asarray(value)
    dtype = _dtype(kind)
    if array.ndim != 1:
        array = array.reshape(-1)
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, dtype)
    taken = {"b": "b", "f": "biuf"}.get(dtype.kind, "biu")
    if array.dtype.kind not in taken:
        needed = {"b": "booleans", "f": "numbers"}.get(dtype.kind, "integers")
        raise ValueError(f"{where} needs {needed}, not {array.dtype} values")
    if dtype.kind in "iu":
        least, most = _limits(kind)
        low, high = int(array.min()), int(array.max())
        if low < least or high > most:
            raise ValueError(f"{where} needs integers from {least} to {most}, not {low if low < least else high}")
    return np.ascontiguousarray(array, dtype)


def scalar(kind: str, value: Any, where: str) -> int | float:
    """The int or float of a kind.  ValueError, which begins with `where`: another type, or out of range."""
    if type(value) is int and kind in _PACKED and kind[0] != "F":
        low, high = _limits(kind)
        if low <= value <= high:
            return value
    dtype = _dtype(kind)
    try:
        if dtype.kind == "f":
            return float(value)
        number = operator.index(value) if not isinstance(value, np.bool_) else int(value)
    except TypeError:
        needed = "a number" if dtype.kind == "f" else "an integer"
        raise ValueError(f"{where} needs {needed}, not {value!r}") from None
    low, high = _limits(kind)
    if not low <= number <= high:
        raise ValueError(f"{where} needs an integer from {low} to {high}, not {number}")
    return number


def text(value: Any, where: str) -> bytes:
    """The UTF-8 bytes of a str; bytes unchanged.  ValueError, which begins with `where`: another type."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise ValueError(f"{where} needs a str, not {value!r}")


def table(tree: _core._Tree, name: str, value: Any, where: str) -> _core._Node:
    """A node of the table `name`: the given one, or a new one from a dict of fields.

    ValueError, which begins with `where`: neither, or a field that does not fit.
    """
    if isinstance(value, _core._Node):
        if value.type != name:
            raise ValueError(f"{where} needs a table {name}, not {value.type}")
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} needs a dict of the fields of {name}, not {value!r}")
    node = tree.make(name)
    for field, item in value.items():
        if field != "type" or ("type" in rows(name) and item != name):
            put(node, field, item)
    return node


def _union(tree: _core._Tree, union: str, value: Any, where: str) -> _core._Node:
    if isinstance(value, _core._Node):
        return value
    name = value.get("type") if isinstance(value, Mapping) else None
    if name not in members(union):
        raise ValueError(
            f"{where} needs a dict with its table's name under 'type', one of: {', '.join(members(union))}"
        )
    return table(tree, name, value, where)


def _items(value: Any, where: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ValueError(f"{where} needs a list, not {value!r}")
    return list(value)


def _converted(node: _core._Node, kind: str, value: Any, where: str) -> Any:
    if kind.startswith("VEC_"):
        element = kind[4:]
        if element in _DTYPES:
            if element == "U8" and isinstance(value, (bytes, bytearray, memoryview)):
                return bytes(value)
            packed = _packed(element, value) if isinstance(value, (list, tuple)) else None
            return vector(element, value, where).tobytes() if packed is None else packed
        if element == "STRING":
            return [text(item, where) for item in _items(value, where)]
        if element.startswith("ENUM("):
            numbers = [enum_number(_argument(element), item) for item in _items(value, where)]
            return vector("U32", numbers, where).tobytes()  # StablehloPrecisionConfig, the only vector of enums
        return [table(node.tree, _argument(element), item, where) for item in _items(value, where)]
    if kind == "STRING":
        return text(value, where)
    if kind.startswith("ENUM("):
        return enum_number(_argument(kind), value)
    if kind.startswith("TABLE("):
        return table(node.tree, _argument(kind), value, where)
    if kind.startswith("UNION("):
        return _union(node.tree, _argument(kind), value, where)
    return scalar(kind, value, where)


_PLAIN = {int, bool, list, tuple, np.ndarray}  # types that node.store may take without conversion


def put(node: _core._Node, field: str, value: Any) -> None:
    """Stores a field; None removes it, so that it reads as its default.  ValueError: the value does not fit."""
    if type(value) in _PLAIN and node.store(field, value):
        return
    kind = kind_of(node, field)
    where = f"{node.type}.{field}"
    if value is not None:
        value = _converted(node, kind, value, where)
    try:
        node.set(field, value)
    except OverflowError as error:
        raise ValueError(f"{where}: {error}") from None


def get(node: _core._Node, field: str) -> Any:
    """A field's value: enums as members, vectors as read-only arrays, tables as nodes.

    A scalar that is not stored has its default; another field None.
    """
    members = _members(node.type, field)
    value = node.get(field)
    return value if members is None else members.get(value, value)


def plain(node: _core._Node, field: str) -> Any:
    """As get(), with lists for arrays, dicts for nodes, and bytes for [ubyte].  A union's dict has its table's name
    under "type"."""
    value = get(node, field)
    if isinstance(value, np.ndarray):
        return value.tobytes() if kind_of(node, field) == "VEC_U8" else value.tolist()
    if isinstance(value, _core._Node):
        is_union = kind_of(node, field).startswith("UNION(")
        return as_dict(value) | {"type": value.type} if is_union else as_dict(value)
    if isinstance(value, list):
        return [as_dict(item) if isinstance(item, _core._Node) else item for item in value]
    return value


def as_dict(node: _core._Node) -> dict[str, Any]:
    """{field: value} of all fields of a table, values as plain() gives them; {} of an unknown table."""
    return {} if node.type is None else {field: plain(node, field) for field in rows(node.type)}
