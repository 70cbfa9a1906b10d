# SPDX-License-Identifier: Apache-2.0
"""tq's docstrings as Markdown, for the reference pages of the site (mkdocs.yml names this file).

scale: positive float32.            - `scale`: positive float32.
    one, or one a channel.              one, or one a channel.
rounding, with s the scale:         - `rounding`: with s the scale:
>>> tq.quantize(1.0, 0.5)           a fenced block of Python
"""

import re
from typing import Any

import griffe

TERM = re.compile(r"""(\s*)((?:[\w.]+|'[\w-]+'|"[\w-]+")(?:, (?:[\w.]+|'[\w-]+'|"[\w-]+"))*): (?=\S)""")
HEADED = re.compile(r"(\w+), (with .*:)$")
SPECIAL = re.compile(r"([\[\]*<])")
FENCE = "```"


def escaped(line: str) -> str:
    """Without Markdown's meaning of brackets, stars and tags, but between backquotes."""
    parts = line.split("`")
    return "`".join(part if i % 2 else SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def markdown(text: str) -> str:
    lines: list[str] = []
    fenced = listed = False
    for line in text.splitlines():
        line = HEADED.sub(r"\1: \2", line)
        if fenced and not line.strip():
            lines.append(FENCE)
            fenced = False
        if not fenced and line.startswith(">>> "):
            lines += ["", FENCE + "python"]
            fenced = True
        term = TERM.match(line)
        if fenced or (line.startswith("    ") and not term and not listed):
            lines.append(line)  # Python, or an indented block, which Markdown takes as it is
        elif term:
            if not listed:
                lines.append("")
            lines.append(f"{term[1]}- `{term[2]}`: {escaped(line[term.end() :])}")
            listed = True
        else:
            if listed and line.startswith(("Returns ", "Source")):
                lines.append("")
                listed = False
            listed = listed and bool(line.strip())
            lines.append(escaped(line))
    return "\n".join([*lines, FENCE] if fenced else lines)


class Docstrings(griffe.Extension):
    def __init__(self) -> None:
        super().__init__()
        self._done: set[int] = set()

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        docstring = obj.docstring
        if docstring is not None and id(docstring) not in self._done:
            self._done.add(id(docstring))
            docstring.value = markdown(docstring.value)
