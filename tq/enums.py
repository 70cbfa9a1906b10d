# SPDX-License-Identifier: Apache-2.0
"""The schema's enums (TensorType, BuiltinOperator, Padding ...), built from the core's rows when first asked for.

LIMITS: {type of quantized values, as "int8": (its least value, its greatest value)}, from the core's rows.
"""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

from tq import _core

LIMITS = {name: (least, most) for name, least, most in _core.integer_types()}


@cache
def _rows() -> dict[str, list[tuple[str, int]]]:
    return _core.schema_enums()


@cache
def by_name(name: str) -> type[enum.IntEnum]:
    """The enum of a name in the schema.  KeyError: the schema has none."""
    make: Any = enum.IntEnum  # mypy knows enums whose names are literals
    made: type[enum.IntEnum] = make(name, _rows()[name], module=__name__)
    return made


@cache
def members_by_value(name: str) -> dict[int, enum.IntEnum]:
    """{number: member} of an enum; the core calls it.  KeyError: as by_name."""
    return {int(member): member for member in by_name(name)}


def name_of(value: object) -> str:
    """A member's name, such as `INT8`; the digits of an int, the form of a value that the schema does not know."""
    return str(getattr(value, "name", value))


def __getattr__(name: str) -> type[enum.IntEnum]:
    try:
        return by_name(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*globals(), *_rows()]
