# SPDX-License-Identifier: Apache-2.0
"""Elements of the report's page and of the page of differences: the document, tables, cards, cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tq.pages import theme
from tq.pages.svg import number
from tq.reports import svg as report_svg
from tq.reports.style import SCRIPT, style_sheet

DASH = "–"

# Forbids a browser to load anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def frame(title: str, header: str, sections: Sequence[tuple[str, str, str]], footer: str) -> str:
    """A document that links to nothing outside itself.

    title, header, footer: HTML.  sections: (identifier, title, body) of each; one without a body is left out.
    """
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, body in sections if body)
    body = "".join(f'<section><h2 id="{key}">{title}</h2>{body}</section>' for key, title, body in sections if body)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title>\n'
        f"<style>\n{style_sheet()}\n</style></head>\n<body>{header}"
        f'<nav aria-label="Sections"><div>{links}'
        '<span id="filters" hidden><label for="filter">Filter tables</label> <input id="filter" type="search" '
        'autocomplete="off" spellcheck="false"> <span id="left" role="status"></span></span>'
        f"{theme.BUTTON}</div></nav>"
        f"<main>{body}{footer}</main>\n<script>{theme.SCRIPT}{SCRIPT}</script></body></html>\n"
    )


def decibels_text(value: float) -> str:
    if math.isnan(value):
        return DASH
    return "exact" if value == math.inf else "none" if value == -math.inf else f"{value:.1f}".replace("-", "−")


def number_text(value: float) -> str:
    return number(value) if math.isfinite(value) else DASH if math.isnan(value) else str(value).replace("-", "−")


def short_text(value: float) -> str:
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else number_text(value)


def percent_text(part: float) -> str:
    if math.isnan(part):
        return DASH
    return "0" if part == 0 else "<0.01" if part < 1e-4 else f"{100 * part:.2f}"


def cell(text: str, value: float | None = None, role: str = "num") -> str:
    shown = "" if value is None else f' data-v="{plain_number(value)}"'
    return f'<td class="{role}"{shown}>{text}</td>'


def plain_number(value: float) -> str:
    if math.isnan(value):
        return ""
    return ("-" if value < 0 else "") + "Infinity" if math.isinf(value) else f"{value:.6g}"


def sqnr_cell(decibels: float) -> str:
    return cell(decibels_text(decibels), decibels, f"num t-{report_svg.grade(decibels)}")


def table(label: str, heads: Sequence[str], rows: Iterable[str], sorts: bool = True, high: bool = True) -> str:
    """A table, which the keyboard scrolls; heads: "#" in front: numbers, "^": numbers that a click sorts in
    ascending order first."""
    cells = []
    for head in heads:
        attributes = ' class="num"' if head[:1] in "#^" else ""
        attributes += ' data-up="1"' if head[:1] == "^" else ""
        cells.append(f'<th scope="col"{attributes}>{head.lstrip("#^")}</th>')
    kind = ' class="sorts"' if sorts else ""
    return (
        f'<div class="scroll{" high" if high else ""}" tabindex="0" role="region" aria-label="Table of {label}">'
        f"<table{kind}><thead><tr>{''.join(cells)}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def card(what: str, big: str, note: str, role: str = "") -> str:
    return (
        f'<div class="card"><div class="what">{what}</div><div class="big{" t-" + role if role else ""}">{big}</div>'
        f'<div class="note">{note}</div></div>'
    )


def grades() -> str:
    """The legend of SQNR."""
    return "".join(
        f'<span><i class="g-{kind}"></i>{text}</span>'
        for kind, text in (("good", "30 dB and more"), ("fair", "20 to 30"), ("warn", "10 to 20"), ("bad", "under 10"))
    )
