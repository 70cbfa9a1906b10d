# SPDX-License-Identifier: Apache-2.0
"""Progress of work that takes more than a second: a bar of tqdm's where it is installed, else a line.

On a terminal and in a notebook; nothing where standard error is a file or a pipe.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

from tq.extras import missing

_T = TypeVar("_T")
_DELAY, _EVERY = 1.0, 0.2  # seconds until the first line, and between two


class _Line:
    """One line of a terminal, written again and again; with the methods of tqdm's bars."""

    def __init__(self, total: int | None, desc: str, unit: str, delay: float) -> None:
        self._text = f"{desc} {{}}{'' if total is None else f' of {total}'}{unit}, {{:.0f}} s"
        self._start = time.monotonic()
        self._next = self._start + delay
        self._count = 0
        self._shown = 0

    def update(self, count: int) -> None:
        self._count += count
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        text = self._text.format(self._count, now - self._start)
        sys.stderr.write("\r" + text.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(text)

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()


def _tqdm() -> Any:
    """tqdm's class; in a notebook without its widgets, the one that writes text, for the other warns."""
    widgets = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    return importlib.import_module("tqdm.auto" if widgets else "tqdm").tqdm


class Progress:
    """A bar, or none.

    wanted: None: a bar on a terminal and in a notebook.  True: always, by tqdm.
    data: what is counted, where its length is known.
    ImportError: wanted is True and tqdm is not installed.
    """

    def __init__(self, wanted: bool | None, data: Any, text: str = "calibrating", unit: str = " samples") -> None:
        self._bar: Any = None
        shown = sys.stderr is not None and sys.stderr.isatty()
        if wanted is False or (wanted is None and not shown and "ipykernel" not in sys.modules):
            return
        total = len(data) if isinstance(data, Sized) and not isinstance(data, (str, dict)) else None
        try:
            make = _tqdm()
        except ImportError:
            if wanted:
                raise ImportError(missing("progress=True", "tqdm", "progress")) from None
            self._bar = _Line(total, text, unit, _DELAY)
            return
        self._bar = make(total=total, desc=text, unit=unit, delay=0 if wanted else _DELAY, leave=bool(wanted))

    def add(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def tracked(
    items: Iterable[_T], total: Any, text: str, wanted: bool | None = None, unit: str = " samples"
) -> Iterator[_T]:
    """The items, with progress.  total: an object with their number as its length; text: the name of the work."""
    with Progress(wanted, total, text, unit) as bar:
        for item in items:
            yield item
            bar.add()
