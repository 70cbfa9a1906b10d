# SPDX-License-Identifier: Apache-2.0
"""The schema's enums (TensorType, BuiltinOperator, Padding ...), built from the core's rows when first asked for."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

from tq import _core


@cache
def _rows() -> dict[str, list[tuple[str, int]]]:
    return _core.schema_enums()


@cache
def by_name(name: str) -> type[enum.IntEnum]:
    """The enum of that name; KeyError if the schema has none."""
    make: Any = enum.IntEnum  # mypy knows enums whose names are literals
    made: type[enum.IntEnum] = make(name, _rows()[name], module=__name__)
    return made


@cache
def members_by_value(name: str) -> dict[int, enum.IntEnum]:
    """{value: member} of an enum, for the core."""
    return {int(member): member for member in by_name(name)}


def name_of(value: object) -> str:
    """`INT8` of a member; the number of a value that the schema does not know, which is an int."""
    return str(getattr(value, "name", value))


def __getattr__(name: str) -> type[enum.IntEnum]:
    try:
        return by_name(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*globals(), *_rows()]
