# SPDX-License-Identifier: Apache-2.0
"""Base classes and functions of the parts of a model that is being edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from numpy.typing import NDArray

from tq._core import _Node
from tq.editing import fields
from tq.editing.tables import Tables
from tq.nearest import hint

_P = TypeVar("_P", bound="Part")


class Part:
    """A table of the model: the base of tensors, operators, subgraphs and others."""

    def __init__(self, editor: Tables, node: _Node) -> None:
        self.editor = editor
        self.node = node

    def stored(self, field: str) -> Any:
        """A schema field as plain Python values (see Tensor.stored); None: not stored.

        ValueError: the table has no such field.
        """
        fields.kind_of(self.node, field)
        return fields.plain(self.node, field) if self.node.has(field) else None

    def store(self, field: str, value: Any) -> None:
        """Stores a schema field without a check of its meaning: tables as dicts, a union's with its table's name under
        "type", enums by name or number, any indices.  None removes the field.

        ValueError: the table has no such field, or its kind does not hold the value."""
        self.put(field, value)

    def _get(self, field: str) -> Any:
        return fields.get(self.node, field)

    def put(self, field: str, value: Any) -> None:
        """Stores a field: see tq.editing.fields.put."""
        fields.put(self.node, field, value)

    def nodes(self, field: str) -> list[_Node]:
        """The tables of a field; [] where it is not stored."""
        found: list[_Node] | None = self.node.get(field)
        return found or []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)


class OnlyPart(Part):
    """A part with one object for its table, so that objects are compared by identity."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Parts(Sequence[_P], Generic[_P]):
    """A read-only sequence of parts, by index or name; the editor's methods add and remove parts.

    KeyError: no part has the name; the message names similar ones.  IndexError: there is no such index.
    """

    def __init__(self, what: str, items: list[_P], name_of: Callable[[_P], str | None]) -> None:
        self._what = what
        self._items = items
        self._name_of = name_of

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int | str) -> _P: ...
    @overload
    def __getitem__(self, index: slice) -> list[_P]: ...
    def __getitem__(self, index: int | str | slice) -> _P | list[_P]:
        if isinstance(index, str):
            found = self.get(index)
            if found is not None:
                return found
            known = [name for item in self._items if (name := self._name_of(item))]
            raise KeyError(f"no {self._what} is named {index!r}{hint(index, known)}")
        if isinstance(index, slice):
            return self._items[index]
        try:
            return self._items[index]
        except IndexError:
            raise IndexError(f"there is no {self._what} {index}: the model has {len(self._items)}") from None

    def __iter__(self) -> Iterator[_P]:
        return iter(self._items)

    def __contains__(self, value: object) -> bool:
        """Whether a part has this name, or is this one."""
        return self.get(value) is not None if isinstance(value, str) else value in self._items

    def get(self, name: str, default: _P | None = None) -> _P | None:
        """The first part of this name; `default` where none has it."""
        return next((item for item in self._items if self._name_of(item) == name), default)

    def _ipython_key_completions_(self) -> list[str]:
        return [name for item in self._items if (name := self._name_of(item))]

    def index(self, value: Any, *bounds: int) -> int:
        """The index of a part, given as itself, between `bounds`.  ValueError: it is not among them."""
        return self._items.index(value, *bounds)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}s>"


def empty_if_parts(
    node: _Node, field: str, value: Any, lists: Mapping[str, list[Any]], write: Callable[[], None]
) -> bool:
    """Whether a field is one of `lists`, whose parts have methods of their own; its list is then emptied, after
    `write`.

    ValueError: the field is one of them and the value is not None."""
    if field not in lists:
        return False
    if value is not None:
        raise ValueError(f"{node.type}.{field} takes None here; add_{field[:-1]} adds to them")
    write()
    lists[field].clear()
    return True


# ---- given values ----


def listed(value: Any, where: str, need: str = "a list") -> list[Any]:
    """The elements of a value.  ValueError: it is no list; the message begins with `where`."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ValueError(f"{where}: {need} is needed, not {value!r}")
    return list(value)


def mapped(value: Any, where: str) -> Mapping[str, Any]:
    """The value.  ValueError: it is no dict; the message begins with `where`."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: a dict is needed, not {value!r}")
    return value


# ---- indices ----


def as_tuple(array: NDArray[Any] | None) -> tuple[int, ...]:
    """The elements of a stored vector; () for None."""
    return () if array is None else tuple(array.tolist())


def renumber(node: _Node, field: str, new: Mapping[int, int]) -> None:
    """Maps a vector's indices; others stay, and an unchanged vector is not written.  new: {old index: new index}."""
    old = node.numbers(field)
    changed = [new.get(index, index) for index in old]
    if list(old) != changed:
        fields.put(node, field, changed)


def renumber_one(node: _Node, field: str, new: Mapping[int, int]) -> None:
    """Maps one index; a new index of -1 leaves the old one."""
    old = int(node.get(field))
    value = new.get(old, old)
    if value != old and value >= 0:
        fields.put(node, field, value)
