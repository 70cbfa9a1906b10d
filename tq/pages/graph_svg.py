# SPDX-License-Identifier: Apache-2.0
"""A picture of a graph without a script: boxes with lines of text, and arrows, as one `<svg>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tq.pages.html import escaped
from tq.pages.layout import Arrow, Layout, Point, Size

LINE, PADDING = 16, 9
_LETTERS = 34  # of a line in a box
_MARGIN = 8


class BoxPicture(NamedTuple):
    """The texts of a box are plain: they are escaped here."""

    title: str
    lines: Sequence[str]
    role: str = ""  # a CSS class
    link: str = ""  # the identifier that a click leads to
    hint: str = ""  # shown beside the pointer, and read aloud; "": title and lines


def route_path(start: Point, between: Sequence[Point], end: Point) -> str:
    """The path data of an arrow that leaves and arrives vertically."""
    parts = [f"M{start[0]:.0f} {start[1]:.0f}"]
    x, y = start
    for to_x, to_y in (*between, end):
        if abs(to_x - x) < 0.5:
            parts.append(f"V{to_y:.0f}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}")
        x, y = to_x, to_y
    return "".join(parts)


def _texts(box: BoxPicture, x: float, y: float) -> str:
    rows = [
        f'<text class="{"tq-label" if number == 0 else "tq-line"}" x="{x + 12:.0f}" '
        f'y="{y + PADDING + LINE * number + 12:.0f}">{escaped(text, _LETTERS)}</text>'
        for number, text in enumerate((box.title, *box.lines))
    ]
    return "".join(rows)


def graph_svg(
    boxes: Sequence[BoxPicture], sizes: Sequence[Size], arrows: Sequence[Arrow], made: Layout, label: str
) -> str:
    """The picture; `label` names it for readers who do not see it.  "" without boxes."""
    if not boxes:
        return ""
    linked = any(box.link for box in boxes)
    width, height = made.width + 2 * _MARGIN, made.height + 2 * _MARGIN
    paths = []
    for (source, target), route in zip(arrows, made.routes, strict=True):
        (x, y), (w, h) = made.corners[source], sizes[source]
        (to_x, to_y), (to_w, _) = made.corners[target], sizes[target]
        paths.append(route_path((x + w / 2, y + h), route, (to_x + to_w / 2, to_y)))
    parts = [
        f'<svg class="tq-graph" role="{"group" if linked else "img"}" aria-label="{escaped(label)}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        f'<path class="tq-arrow" d="{"".join(paths)}"/>'
    ]
    for box, (x, y), (w, h) in zip(boxes, made.corners, sizes, strict=True):
        shape = f'<rect class="tq-box {box.role}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6"/>'
        hint = escaped(box.hint or "; ".join((box.title, *box.lines)), 400)
        body = f"{shape}{_texts(box, x, y)}<title>{hint}</title>"
        parts.append(f'<a href="#{box.link}">{body}</a>' if box.link else f"<g>{body}</g>")
    return "".join(parts) + "</svg>"
