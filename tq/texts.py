# SPDX-License-Identifier: Apache-2.0
"""Texts from files and from users, made safe to print: names may hold any character."""

from __future__ import annotations


def dotted(text: str) -> str:
    """The text with "." for each character that does not print."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "." for c in text)


def visible(text: str) -> str:
    r"""The text with an escape (\n, \x1b, \ud800) for each character that does not print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
