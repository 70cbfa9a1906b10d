# SPDX-License-Identifier: Apache-2.0
"""The manual page, made from the parser: tq --print-man > tq.1."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Protocol


class Command(Protocol):
    """A parser that tells its arguments and its commands."""

    description: str | None

    def arguments(self) -> list[argparse.Action]: ...

    def commands(self) -> Mapping[str, Command]: ...


EXIT_CODES = (
    ("0", "fine"),
    ("1", "problems or differences were found"),
    ("2", "bad use, or a file that cannot be read or written"),
    ("130", "interrupted"),
)


def _escaped(text: str) -> str:
    """Text for roff: backslashes, hyphens, and dots and quotes that would begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _item(head: str, text: str) -> list[str]:
    return [".TP", f".B {_escaped(head)}", _escaped(text)]


def _heading(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if action.choices is not None and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def _arguments(parser: Command) -> list[str]:
    lines = []
    for action in parser.arguments():
        lines += _item(_heading(action), action.help or "")
    return lines


def manual(parser: Command, version: str) -> str:
    """The page in the macros of man(7)."""
    about = parser.description or ""
    lines = [f'.TH TQ 1 "" "tq {version}" "User Commands"', ".SH NAME", f"tq \\- {_escaped(about)}"]
    lines += [".SH SYNOPSIS", ".B tq", ".I COMMAND", "[\\fIARGUMENTS\\fR]", ".SH OPTIONS", *_arguments(parser)]
    lines.append(".SH COMMANDS")
    for name, command in parser.commands().items():
        lines += [f".SS tq {_escaped(name)}", _escaped(command.description or ""), *_arguments(command)]
    lines.append(".SH EXIT STATUS")
    for code, text in EXIT_CODES:
        lines += _item(code, text)
    return "\n".join(lines)
