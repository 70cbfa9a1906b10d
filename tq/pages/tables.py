# SPDX-License-Identifier: Apache-2.0
"""Results that are tables: one description gives the text, the notebook page, dicts and a pandas DataFrame."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tq.extras import missing
from tq.pages import html
from tq.texts import middle

_MOST = 200  # rows of a notebook page
_SHORT = 24  # characters of a text that does not wrap in a page
_LEAST = 12  # characters of a column in the narrowest terminal


class Table(NamedTuple):
    """Columns and rows.

    heads: names of columns; "#" in front: numbers.  rows: their values, one for each column; None is shown as "-".
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def dicts(self) -> list[dict[str, Any]]:
        """Each row by the names of columns."""
        names = [head.removeprefix("#") for head in self.heads]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class Result:
    """The base of results: `repr` is a line or a few, `str` a table; a page in notebooks.

    A class defines table() and summary(); it may define text() for a table with more columns.
    """

    def table(self) -> Table:
        """The rows of the result."""
        raise NotImplementedError

    def summary(self) -> list[str]:
        """The result in a few lines."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<tq.{type(self).__name__}: {'; '.join(self.summary())}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """As str().  width: the characters of a line, to which long names are cut in their middle."""
        return "\n".join(self.summary())

    def to_dict(self) -> dict[str, Any]:
        """{"summary": lines of text, "rows": a dict for each row of the table}."""
        return {"summary": self.summary(), "rows": self.table().dicts()}

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the table's rows.  ImportError: pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError(missing("to_pandas()", "pandas", "pandas")) from None
        table = self.table()
        return pandas.DataFrame(list(table.rows), columns=[head.removeprefix("#") for head in table.heads])

    def _repr_html_(self) -> str:
        table = self.table()
        rows = [[_cell(value) for value in row] for row in table.rows[:_MOST]]
        lines = "".join(f"<p>{html.escaped(line, 300)}</p>" for line in self.summary())
        heads = [_page_head(head, [row[i] for row in table.rows[:_MOST]]) for i, head in enumerate(table.heads)]
        grid = html.table(heads, rows, len(table.rows), len(rows), "; str() lists all")
        return html.page(type(self).__name__, "", [], [lines, grid])


# ---- tables of text ----


def aligned(
    heads: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None, ruled: bool = False
) -> list[str]:
    """Lines of a table whose columns are as wide as their texts.

    heads: names of columns; "#" in front: numbers, which stand at the right.  ruled: a line under them.
    width: the characters of a line; the widest columns of text lose the middle of long texts.
    """
    titles = [head.removeprefix("#") for head in heads]
    lines = [titles, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        texts = [i for i, head in enumerate(heads) if not head.startswith("#")]
        _narrow(widths, texts, width - 2 * (len(widths) - 1))
    if ruled:
        lines.insert(1, ["-" * count for count in widths])
    form = "  ".join(
        f"{{:{'>' if head.startswith('#') else '<'}{count}}}" for head, count in zip(heads, widths, strict=True)
    )
    return [form.format(*map(middle, line, widths)).rstrip() for line in lines]


def _narrow(widths: list[int], texts: list[int], room: int) -> None:
    """Makes the widest of some columns narrower until all fit the room."""
    while sum(widths) > room and texts:
        widest = max(texts, key=lambda i: widths[i])
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


# ---- pages ----


def _page_head(head: str, values: Sequence[Any]) -> str:
    """With "|" in front, as html.table takes it, where all texts are short and so need not wrap."""
    is_short = not head.startswith("#") and all(len(str(value)) <= _SHORT for value in values)
    return f"|{head}" if is_short else head


def _cell(value: Any) -> str:
    if value is None:
        return html.NOTHING
    if isinstance(value, float):
        return html.escaped(f"{value:.6g}" if math.isfinite(value) else str(value))
    return html.escaped(value)
