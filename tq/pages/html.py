# SPDX-License-Identifier: Apache-2.0
"""Elements of HTML pages: escaped texts, folds, tables, facts.  Nothing here knows a model.

A text from a file is hostile until `escaped` has treated it.  Arguments named `body`, `cell`, `note` and `title` are
HTML already.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from html import escape
from itertools import islice

import numpy as np

from tq.pages.style import style_sheet
from tq.texts import visible

NAME = 120  # characters of a name
LINE = 200  # characters of a quantization line
LIST = 16  # items of a list
HEX = 256  # bytes in a preview
NOTHING = '<span class="tq-muted">–</span>'


def escaped(value: object, most: int = NAME) -> str:
    """HTML of a text from a file: at most `most` characters, with escapes for those that do not print (controls,
    bidirectional marks, lone surrogates)."""
    text = str(value)
    cut = len(text) > most
    return escape(visible(text[:most])) + ("…" if cut else "")


def count(n: int, noun: str) -> str:
    """`1 tensor`, `2,000 tensors`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def size_text(nbytes: int) -> str:
    """`1.23 MB`: three significant digits, decimal units."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return count(nbytes, "byte")


def enum_text(value: object) -> str:
    """An enum member's name; the digits of a number that the schema does not know."""
    return escaped(value.name if isinstance(value, Enum) else value)


def shape_text(shape: Sequence[int]) -> str:
    """`[1, 224, 224, 3]`, at most LIST dimensions."""
    items = ", ".join(map(str, shape[:LIST]))
    return f"[{items}{', …' if len(shape) > LIST else ''}]"


def float_text(value: object) -> str:
    """The shortest decimal that reads back as the same value in its type."""
    return str(value).replace("-", "−")


def value_text(value: object, depth: int = 0) -> str:
    """HTML of a value of an options or details table, of bounded length; `depth`: how many containers hold it."""
    if isinstance(value, Enum):
        return enum_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        plain = bytes(value[:NAME])
        if plain and all(32 <= b < 127 for b in plain):
            return f"“{escape(plain.decode())}{'…' if len(value) > NAME else ''}”"
        return f"{count(len(value), 'byte')}: {bytes(value[:LIST]).hex(' ')}{' …' if len(value) > LIST else ''}"
    if isinstance(value, str):
        return f"“{escaped(value)}”"
    if depth < 4 and isinstance(value, Mapping):
        items = [f"{escaped(k)}: {value_text(v, depth + 1)}" for k, v in islice(value.items(), LIST)]
        return "{" + ", ".join(items) + rest(len(value)) + "}"
    is_scalar = isinstance(value, np.ndarray) and value.ndim == 0
    if depth < 4 and isinstance(value, (list, tuple, np.ndarray)) and not is_scalar:
        return "[" + ", ".join(value_text(v, depth + 1) for v in value[:LIST]) + rest(len(value)) + "]"
    return escaped(value)


def rest(n: int) -> str:
    """The end of a list of n items of which LIST are shown."""
    return f", … {n:,} in all" if n > LIST else ""


def hex_dump(data: bytes) -> str:
    """Rows of 16 bytes: offset, hexadecimal, printable ASCII."""
    rows = []
    for at in range(0, min(len(data), HEX), 16):
        row = data[at : min(at + 16, HEX)]
        plain = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        rows.append(f"{at:04x}  {row.hex(' '):<47}  {escape(plain)}")
    if len(data) > HEX:
        rows.append(f"… {count(len(data), 'byte')} in all")
    return f'<pre class="tq-pre">{chr(10).join(rows)}</pre>'


# Elements


def page(kind: str, name: str, chips: Iterable[str], body: Iterable[str], styles: bool = True) -> str:
    """A page: the kind of object (a class of tq), its name, chips, and sections; HTML.

    styles: whether it begins with the style sheet.
    """
    title = f'<span class="tq-name">{name}</span>' if name else ""
    head = f'<div class="tq-head"><span class="tq-kind">tq.{kind}</span>{title}'
    return f'<div class="tq-repr">{style_sheet() if styles else ""}{head}{"".join(chips)}</div>{"".join(body)}</div>'


def chip(text: str, role: str = "") -> str:
    """A short fact beside the title; role: "good", "warn", "bad" or ""."""
    return f'<span class="tq-chip{" tq-" + role if role else ""}">{text}</span>'


def fold(title: str, note: str, body: str, shown: bool = False) -> str:
    """A section that opens and closes; open at first where `shown`."""
    note = f' <span class="tq-muted">{note}</span>' if note else ""
    return f"<details{' open' if shown else ''}><summary><b>{title}</b>{note}</summary>{body}</details>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], total: int, shown: int, note: str = "") -> str:
    """A scrolling table of HTML cells: `shown` rows of `total`.

    heads: column titles; "#" in front: numbers, "|": cells that do not wrap, "~": long texts.
    note: the end of the sentence about rows left out.
    """
    classes = {"#": ' class="tq-num"', "|": ' class="tq-fit"', "~": ' class="tq-long"'}
    kinds = [classes.get(h[:1], "") for h in heads]
    top = "".join(f'<th scope="col"{k}>{h.lstrip("#|~") or "#"}</th>' for h, k in zip(heads, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{k}>{cell}</td>' for cell, k in zip(row, kinds, strict=True))}</tr>" for row in rows
    )
    cut = f'<p class="tq-warn">The first {shown:,} of {total:,} are listed{note}.</p>' if shown < total else ""
    grid = f'<table class="tq-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="tq-scroll">{grid}</div>{cut}'


def facts(facts: Iterable[tuple[str, str] | None]) -> str:
    """A table of (name, HTML value) pairs; None is skipped."""
    rows = "".join(f'<tr><th scope="row">{f[0]}</th><td>{f[1]}</td></tr>' for f in facts if f)
    return f'<table class="tq-table tq-facts"><tbody>{rows}</tbody></table>'
