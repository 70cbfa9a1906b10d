# SPDX-License-Identifier: Apache-2.0
"""The terminal: its width, and colors of text; neither where the output is a file or a pipe.

Our own tables and some twenty lines here, for rich would lay out the same tables a second time, beside those of str().
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

_NARROWEST = 40  # columns; a terminal of fewer wraps lines
_RESET = "\x1b[0m"
_RED, _GREEN, _YELLOW, _BOLD, _DIM = (f"\x1b[{code}m" for code in (31, 32, 33, 1, 2))

# Parts of lines, and their colors; the first that begins at a place has it.
_PARTS = (
    (
        r"^ *(?:#  ?operator|operators? +us|Op  +Name|Name  +Count|level +rule|tensor +operator|SQNR dB  ).*$",
        _BOLD,
    ),  # heads of tables
    (r"^ *-+(?:  -+)+$", _DIM),
    (r"^(?:violates|error)(?= )", _RED),
    (r"^(?:unusual|warning)(?=[ :])", _YELLOW),
    (r"^(?:no findings|no differences|all \d+ tensors are equal).*$", _GREEN),
    (r"only in the first model$", _RED),
    (r"only in the second model$", _GREEN),
    (r"^Subgraph#\d+.*$|^Tensors of Subgraph#\d+.*$", _BOLD),
    (r"(?<=^  Op#)\d+ \w+", _BOLD),
    (r"^      (?:\d+: )?[^ ].* \* (?:q|\(q [-+] \d+\))(?: ≤ .*)?$", _DIM),  # a line of quantization
)
_PATTERN = re.compile("|".join(f"({pattern})" for pattern, _ in _PARTS), re.MULTILINE)


def width() -> int | None:
    """Columns of the terminal that stdout is; None: it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _NARROWEST)


def is_colored(stream: TextIO | None) -> bool:
    """Whether text to it may have colors: NO_COLOR forbids, FORCE_COLOR demands; else a terminal that is not dumb."""
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return os.environ.get("TERM", "dumb") != "dumb" and stream.isatty()


def colored(text: str) -> str:
    """A command's text for people, with colors where stdout takes them."""
    if not is_colored(sys.stdout):
        return text
    return _PATTERN.sub(lambda found: f"{_PARTS[(found.lastindex or 1) - 1][1]}{found[0]}{_RESET}", text)


def alarm(text: str) -> str:
    """The beginning of a message to stderr."""
    return f"{_RED}{text}{_RESET}" if is_colored(sys.stderr) else text
