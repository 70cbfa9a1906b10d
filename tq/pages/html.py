# SPDX-License-Identifier: Apache-2.0
"""What the notebook pages are made of: escaped words, folds, tables, facts.  Nothing here knows a model.

Words from a file are hostile until `words` has made visible what does not print and escaped the rest; every other
argument named `body`, `cell` or `note` is HTML already.
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
    """Text from a file, cut, made visible (controls, bidirectional marks, lone surrogates as escapes) and escaped."""
    text = str(value)
    cut = len(text) > most
    return escape(visible(text[:most])) + ("…" if cut else "")


def count(n: int, noun: str) -> str:
    """`1 tensor`, `2,000 tensors`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def size_text(nbytes: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return count(nbytes, "byte")


def enum_text(value: object) -> str:
    """An enum member's name; a number that the schema does not know, as it is."""
    return escaped(value.name if isinstance(value, Enum) else value)


def shape_text(shape: Sequence[int]) -> str:
    items = ", ".join(map(str, shape[:LIST]))
    return f"[{items}{', …' if len(shape) > LIST else ''}]"


def float_text(value: object) -> str:
    """The shortest decimal that gives this value back in its own type."""
    return str(value).replace("-", "−")


def value_text(value: object, depth: int = 0) -> str:
    """A value of an options table or a details table, bounded, escaped."""
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
    if depth < 4 and isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) != 0:
        return "[" + ", ".join(value_text(v, depth + 1) for v in value[:LIST]) + rest(len(value)) + "]"
    return escaped(value)


def rest(n: int) -> str:
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


def page(kind: str, name: str, chips: Iterable[str], body: Iterable[str]) -> str:
    title = f'<span class="tq-name">{name}</span>' if name else ""
    head = f'<div class="tq-head"><span class="tq-kind">tq.{kind}</span>{title}'
    return f'<div class="tq-repr">{style_sheet()}{head}{"".join(chips)}</div>{"".join(body)}</div>'


def chip(text: str, role: str = "") -> str:
    return f'<span class="tq-chip{" tq-" + role if role else ""}">{text}</span>'


def fold(title: str, note: str, body: str, shown: bool = False) -> str:
    """A collapsible section; `title` and `note` are HTML."""
    note = f' <span class="tq-muted">{note}</span>' if note else ""
    return f"<details{' open' if shown else ''}><summary><b>{title}</b>{note}</summary>{body}</details>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], total: int, shown: int, note: str = "") -> str:
    """A scrolling table of HTML cells.  A head starts with "#" over numbers, "|" where none wraps, "~" over words."""
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
    rows = "".join(f'<tr><th scope="row">{f[0]}</th><td>{f[1]}</td></tr>' for f in facts if f)
    return f'<table class="tq-table tq-facts"><tbody>{rows}</tbody></table>'
