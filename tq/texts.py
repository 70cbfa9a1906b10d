# SPDX-License-Identifier: Apache-2.0
"""Texts from files and from users, made safe to print: names may hold any character."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def dotted(text: str) -> str:
    """The text with "." for each character that does not print."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "." for c in text)


def visible(text: str) -> str:
    r"""The text with an escape (\n, \x1b, \ud800) for each character that does not print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def steps_table(steps: Iterable[tuple[str, Any, str]]) -> list[str]:
    """Aligned lines of (name, value, note)."""
    rows = [(name, str(value), note) for name, value, note in steps]
    names, values = (max(len(row[i]) for row in rows) for i in (0, 1))
    return [f"{name:<{names}}  {value:>{values}}  {note}".rstrip() for name, value, note in rows]


def middle(text: str, most: int = 60) -> str:
    """A name of at most `most` characters, with an ellipsis in its middle where it is longer; see dotted."""
    if len(text) > most:
        front = (most - 1) // 2
        text = f"{text[:front]}…{text[len(text) - (most - 1 - front) :]}"
    return dotted(text)
