# SPDX-License-Identifier: Apache-2.0
"""The pictures of the report: two histograms on one axis, SQNR along the network, a small range.

As in tq.pages.svg, each function returns one `<svg>`, or "" where no value is finite; all shapes of one kind are one
path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tq.pages.svg import finite_span, horizontal, number, opening, text_at, ticks

Counts = tuple[Sequence[float], Sequence[float]]

_WIDTH, _LEFT, _RIGHT = 640, 16, 624
_HALF = 74  # height of a histogram
_ROW = 13  # of a range
_SQNR_WIDTH, _SQNR_HEIGHT, _SQNR_LEFT, _SQNR_TOP = 1120, 190, 46, 60  # pixels, and dB at the top
_MOST = 2000  # bars in a picture


def grade(decibels: float) -> str:
    """The CSS class of a SQNR in dB: "good" from 30, "fair" from 20, "warn" from 10, "bad"; "none" for NaN."""
    if math.isnan(decibels):
        return "none"
    return "good" if decibels >= 30 else "fair" if decibels >= 20 else "warn" if decibels >= 10 else "bad"


def _outline(counts: Counts, x_of: Callable[[float], float], axis: float, sign: int) -> str:
    """The path of bars from the axis up (sign -1) or down (1), as high as the square roots of their counts."""
    heights, edges = counts
    top = math.sqrt(max(heights, default=0)) or 1
    parts = []
    for position, count in enumerate(heights):
        if count > 0:
            left, right = x_of(edges[position]), x_of(edges[position + 1])
            width = max(right - left - (0.5 if right - left > 3 else 0), 0.7)
            height = max((_HALF - 8) * math.sqrt(count) / top, 1) * sign
            parts.append(f"M{left:.1f} {axis:g}v{height:.1f}h{width:.1f}V{axis:g}z")
    return "".join(parts)


def histograms(values: Counts | None, quantized: Counts | None, ranges: Sequence[tuple[str, float, float, str]]) -> str:
    """Histograms of float values (upwards) and of quantized values (downwards) on one axis, with ranges below.

    ranges: (name, low, high, CSS role).
    """
    ranges = [row for row in ranges if math.isfinite(row[1]) and math.isfinite(row[2])]
    ends = [end for _name, low, high, _role in ranges for end in (low, high)]
    for counts in (values, quantized):
        if counts is not None:
            ends += [counts[1][0], counts[1][-1]]
    limits = finite_span([float(end) for end in ends])
    if limits is None:
        return ""
    low, high = limits
    x_of = horizontal(low, high, _LEFT, _RIGHT)
    axis = 4 + _HALF
    bottom = axis + (_HALF if quantized is not None else 6)
    spoken = "; ".join(f"{name} {number(a)} to {number(b)}" for name, a, b, _role in ranges)
    parts = [opening(bottom + _ROW * len(ranges) + 20, f"histograms; {spoken}")]
    marks = ticks(low, high)
    lowest = bottom + _ROW * len(ranges)
    parts.append(f'<path class="tq-grid" d="{"".join(f"M{x_of(t):.1f} 4V{lowest}" for t in marks)}"/>')
    if values is not None:
        parts.append(f'<path class="tq-values" d="{_outline(values, x_of, axis, -1)}"/>')
    if quantized is not None:
        parts.append(f'<path class="tq-range" d="{_outline(quantized, x_of, axis, 1)}"/>')
    parts.append(f'<path class="tq-axis" d="M{_LEFT} {axis}H{_RIGHT}"/>')
    for position, (_name, first, last, role) in enumerate(ranges):
        y = bottom + 4 + position * _ROW
        left, right = x_of(first), x_of(last)
        parts.append(
            f'<rect class="tq-{role}" x="{left:.1f}" y="{y}" width="{max(right - left, 1.5):.1f}" height="6"/>'
        )
    for mark in marks:
        x = x_of(mark)
        anchor = "end" if x > _RIGHT - 24 else "start" if x < _LEFT + 12 else "middle"
        parts.append(text_at(min(max(x, 2), _WIDTH - 2), lowest + 15, number(mark), anchor))
    return "".join(parts) + "</svg>"


def errors(counts: Counts) -> str:
    """A histogram of errors around zero."""
    low, high = float(counts[1][0]), float(counts[1][-1])
    end = max(-low, high)
    if not 0 < end < math.inf:
        return ""
    scale = (_RIGHT - _LEFT) / (2 * end)

    def x_of(value: float) -> float:
        return _LEFT + (float(value) + end) * scale

    axis = _HALF - 6
    parts = [opening(axis + 22, f"histogram of errors from {number(low)} to {number(high)}")]
    parts.append(f'<path class="tq-grid" d="M{x_of(0):.1f} 0V{axis}"/>')
    parts.append(f'<path class="tq-stored" d="{_outline(counts, x_of, axis, -1)}"/>')
    parts.append(f'<path class="tq-axis" d="M{_LEFT} {axis}H{_RIGHT}"/>')
    parts += [text_at(2, axis + 17, number(-end)), text_at(x_of(0), axis + 17, "0", "middle")]
    parts.append(text_at(_WIDTH - 2, axis + 17, number(end), "end"))
    return "".join(parts) + "</svg>"


def along(rows: Sequence[tuple[str, float, str]]) -> str:
    """A bar for each tensor in the order of execution, and a link where there is a picture of it.

    rows: (label in HTML, SQNR in dB, identifier that the link leads to or "").
    """
    if not rows:
        return ""
    right, bottom = _SQNR_WIDTH - 6, _SQNR_HEIGHT - 20
    pitch = (right - _SQNR_LEFT) / len(rows)

    def y_of(decibels: float) -> float:
        return bottom - (bottom - 8) * min(max(decibels, 0.0), _SQNR_TOP) / _SQNR_TOP

    parts = [
        f'<svg class="along" role="group" aria-label="SQNR of {len(rows)} tensors in the order of execution" '
        f'viewBox="0 0 {_SQNR_WIDTH} {_SQNR_HEIGHT}">'
    ]
    marks = (0, 10, 20, 30, 40, 50, 60)
    parts.append(f'<path class="tq-grid" d="{"".join(f"M{_SQNR_LEFT} {y_of(m):.1f}H{right}" for m in marks)}"/>')
    parts += [text_at(_SQNR_LEFT - 6, y_of(mark) + 4, f"{mark}", "end") for mark in marks]
    parts.append(text_at(4, 12, "dB"))
    width = max(pitch - (1 if pitch > 3 else 0), 0.6)
    for position, (label, decibels, link) in enumerate(rows[:_MOST]):
        if math.isnan(decibels):
            continue
        top = min(y_of(decibels), bottom - 1)
        x = _SQNR_LEFT + position * pitch
        shape = f'x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}"'
        bar = f'<rect class="g-{grade(decibels)}" {shape}><title>{label}</title></rect>'
        parts.append(f'<a href="#{link}" aria-label="{label}">{bar}</a>' if link else bar)
    parts.append(f'<path class="tq-axis" d="M{_SQNR_LEFT} {bottom}H{right}"/>')
    first, last = (_SQNR_LEFT, bottom + 15), (right, bottom + 15)
    parts.append(text_at(*first, "input") + text_at(*last, "output", "end"))
    return "".join(parts) + "</svg>"


def small_range(low: float, high: float, range_low: float, range_high: float) -> str:
    """The range of the values (thick bar) above the representable range (thin bar)."""
    limits = finite_span([low, high, range_low, range_high])
    if limits is None or not all(map(math.isfinite, (low, high, range_low, range_high))):
        return ""
    scale = 108 / (limits[1] - limits[0])
    left, right = (1 + (end - limits[0]) * scale for end in (range_low, range_high))
    first, last = (1 + (end - limits[0]) * scale for end in (low, high))
    return (
        '<svg class="small" viewBox="0 0 110 12" aria-hidden="true">'
        f'<rect class="tq-range" x="{left:.1f}" y="8" width="{max(right - left, 1):.1f}" height="3"/>'
        f'<rect class="tq-values" x="{first:.1f}" y="1" width="{max(last - first, 1):.1f}" height="5"/></svg>'
    )
