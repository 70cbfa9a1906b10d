# SPDX-License-Identifier: Apache-2.0
"""Results that are tables: one description gives the text, the notebook page, dicts and a pandas DataFrame."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tq.pages import html

_MOST = 200  # rows of a notebook page


class Table(NamedTuple):
    """Columns and rows.

    heads: names of columns; "#" in front: numbers.  rows: their values, one for each column; None is shown as "-".
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def dicts(self) -> list[dict[str, Any]]:
        """Each row by the names of columns."""
        names = [head.lstrip("#") for head in self.heads]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class Result:
    """The base of results: `repr` is a line or a few, `str` a table; a page in notebooks.

    A class defines table() and summary(); it may define __str__ for a table with more columns.
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
        return "\n".join(self.summary())

    def to_dict(self) -> dict[str, Any]:
        """{"summary": lines of text, "rows": a dict for each row of the table}."""
        return {"summary": self.summary(), "rows": self.table().dicts()}

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the table's rows.  ImportError: pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas() needs pandas, which is not installed: pip install pandas") from None
        table = self.table()
        return pandas.DataFrame(list(table.rows), columns=[head.lstrip("#") for head in table.heads])

    def _repr_html_(self) -> str:
        table = self.table()
        rows = [[_cell(value) for value in row] for row in table.rows[:_MOST]]
        lines = "".join(f"<p>{html.escaped(line, 300)}</p>" for line in self.summary())
        grid = html.table(table.heads, rows, len(table.rows), len(rows), "; str() lists all")
        return html.page(type(self).__name__, "", [], [lines, grid])


def _cell(value: Any) -> str:
    if value is None:
        return html.NOTHING
    if isinstance(value, float):
        return html.escaped(f"{value:.6g}" if math.isfinite(value) else str(value))
    return html.escaped(value)
