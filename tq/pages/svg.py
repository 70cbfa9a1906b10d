# SPDX-License-Identifier: Apache-2.0
"""Small inline SVG pictures for the notebook pages: ranges and a histogram on one axis, channel ranges, a sparkline.

Every function returns a complete `<svg>` element, or "" where there is nothing finite to draw.  Labels are escaped
here.  Shapes of one kind are one `<path>`, so that a picture stays a few kilobytes whatever it shows; a picture uses
no identifiers, so that many of them can share a page.
"""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

_WIDTH = 640
_LEFT = 168  # the column of labels
_RIGHT = _WIDTH - 16
_HISTOGRAM = 84
_ROW = 34
_STRIP = 120


class Bar(NamedTuple):
    """One range on the axis: its label, its ends, and the class that colors it ("stored", "range")."""

    label: str
    low: float
    high: float
    role: str


class Histogram(NamedTuple):
    """`counts[i]` values lie between `edges[i]` and `edges[i + 1]`; one edge more than counts."""

    counts: Sequence[float]
    edges: Sequence[float]


def number(value: float) -> str:
    """Up to six significant digits, with a true minus sign."""
    return format(float(value), ".6g").replace("-", "−")


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) within [low, high]: at most `most` of them."""
    span = high - low
    if not 0 < span < math.inf:
        return [low]
    # Between neighbours among the subnormals there is no round value.
    if span < 1e-300:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    for step in (k * power for k in (1, 2, 5, 10, 20)):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < most:
            return [k * step for k in range(first, last + 1)]
    return [low]


def finite_span(values: Sequence[float]) -> tuple[float, float] | None:
    """The finite span of `values`, widened where it is a single point; None where nothing is finite."""
    finite = [float(v) for v in values if math.isfinite(v)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    if low == high:
        margin = abs(low) / 2 or 1.0
        low, high = low - margin, high + margin
    return (low, high) if math.isfinite(high - low) else None


def horizontal(low: float, high: float, left: float, right: float) -> Callable[[float], float]:
    """The x coordinate of a value on an axis from `low` at `left` to `high` at `right`; others lie at its ends."""
    scale = (right - left) / (high - low)
    return lambda value: left + (min(max(float(value), low), high) - low) * scale


def opening(height: float, label: str) -> str:
    return (
        f'<svg class="tq-chart" role="img" aria-label="{escape(label)}" viewBox="0 0 {_WIDTH} {height:g}" '
        f'width="{_WIDTH}" height="{height:g}" fill="currentColor">'
    )


def text_at(x: float, y: float, text: str, anchor: str = "start", role: str = "") -> str:
    kind = f' class="{role}"' if role else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _bars(histogram: Histogram, x_of: Callable[[float], float], bottom: float) -> str:
    top = max(histogram.counts, default=0) or 1
    parts = []
    for i, count in enumerate(histogram.counts):
        if count <= 0:
            continue
        left, right = x_of(histogram.edges[i]), x_of(histogram.edges[i + 1])
        width = max(right - left - (0.6 if right - left > 3 else 0), 0.8)
        # A bin that holds anything shows at least a sliver.
        height = max((_HISTOGRAM - 12) * count / top, 1)
        parts.append(f"M{left:.1f} {bottom:.1f}v{-height:.1f}h{width:.1f}v{height:.1f}z")
    return f'<path class="tq-values" d="{"".join(parts)}"/>'


def axis_chart(bars: Sequence[Bar], histogram: Histogram | None = None, label: str = "values") -> str:
    """Ranges as bars under an optional histogram, all on one horizontal axis.  `label` names the histogram."""
    bars = [bar for bar in bars if math.isfinite(bar.low) and math.isfinite(bar.high)]
    limits = finite_span([v for bar in bars for v in bar[1:3]] + ([*histogram.edges] if histogram else []))
    if limits is None:
        return ""
    low, high = limits
    x_of = horizontal(low, high, _LEFT, _RIGHT)
    top = 6 + (_HISTOGRAM if histogram else 0)
    bottom = top + _ROW * len(bars) + (0 if bars else 4)
    marks = ticks(low, high)
    spoken = [label] * bool(histogram) + [f"{bar.label} {bar.low:g} to {bar.high:g}" for bar in bars]
    parts = [opening(bottom + 22, "; ".join(spoken))]
    parts.append(f'<path class="tq-grid" d="{"".join(f"M{x_of(t):.1f} 4V{bottom + 4:.1f}" for t in marks)}"/>')
    if histogram:
        parts.append(text_at(0, top - _HISTOGRAM / 2, label, role="tq-label"))
        parts.append(_bars(histogram, x_of, top))
        parts.append(f'<path class="tq-grid" d="M{_LEFT} {top}H{_RIGHT}"/>')
    for row, bar in enumerate(bars):
        y = top + row * _ROW
        left, right = sorted((x_of(bar.low), x_of(bar.high)))
        parts.append(text_at(0, y + 15, bar.label, role="tq-label"))
        parts.append(text_at(0, y + 29, f"{number(bar.low)} … {number(bar.high)}"))
        size = f'x="{left:.1f}" y="{y + 10}" width="{max(right - left, 2):.1f}" height="14" rx="2"'
        parts.append(f'<rect class="tq-{bar.role}" {size}/>')
    if low < 0 < high:
        parts.append(f'<path class="tq-zero" d="M{x_of(0):.1f} 4V{bottom + 4:.1f}"/>')
    for t in marks:
        x = x_of(t)
        anchor = "end" if x > _RIGHT - 14 else "middle"
        parts.append(text_at(x if anchor == "middle" else _RIGHT + 12, bottom + 17, number(t), anchor))
    parts.append("</svg>")
    return "".join(parts)


def channel_strip(bars: Sequence[Sequence[Bar]], names: Sequence[str], noun: str = "channel") -> str:
    """A column for each channel or block: `bars[i]` are its ranges, widest role first; `names` label the ends."""
    limits = finite_span([v for column in bars for bar in column for v in bar[1:3]] + [0.0])
    if limits is None or not bars:
        return ""
    low, high = limits
    low, high = low - 0.04 * (high - low), high + 0.04 * (high - low)
    if not math.isfinite(high - low):
        return ""
    top, bottom = 6, 6 + _STRIP
    pitch = (_RIGHT - _LEFT) / len(bars)

    def y_of(value: float) -> float:
        return bottom - (min(max(float(value), low), high) - low) * _STRIP / (high - low)

    parts = [opening(bottom + 22, f"ranges of {len(bars)} {noun}s between {low:g} and {high:g}")]
    marks = ticks(low, high, 5)
    parts.append(f'<path class="tq-grid" d="{"".join(f"M{_LEFT} {y_of(t):.1f}H{_RIGHT}" for t in marks)}"/>')
    roles: dict[str, list[str]] = {}
    legend: dict[str, str] = {}
    for i, column in enumerate(bars):
        x = _LEFT + (i + 0.5) * pitch
        for bar in column:
            if math.isfinite(bar.low) and math.isfinite(bar.high):
                roles.setdefault(bar.role, []).append(f"M{x:.1f} {y_of(bar.low):.1f}V{y_of(bar.high) - 0.5:.1f}")
                legend[bar.role] = bar.label
    for depth, (role, paths) in enumerate(roles.items()):
        width = max(min(pitch * (0.8 if depth == 0 else 0.35), 9), 0.7)
        parts.append(f'<path class="tq-line-{role}" stroke-width="{width:.1f}" d="{"".join(paths)}"/>')
        parts.append(f'<rect class="tq-{role}" x="0" y="{top + 4 + 20 * depth}" width="10" height="10" rx="2"/>')
        parts.append(text_at(16, top + 13 + 20 * depth, legend[role], role="tq-label"))
    parts.append(f'<path class="tq-zero" d="M{_LEFT} {y_of(0):.1f}H{_RIGHT}"/>')
    parts.extend(text_at(_LEFT - 6, y_of(t) + 4, number(t), "end") for t in marks)
    parts.append(text_at(_LEFT, bottom + 17, names[0]))
    if len(names) > 1:
        parts.append(text_at(_RIGHT, bottom + 17, names[-1], "end"))
    parts.append("</svg>")
    return "".join(parts)


def sparkline(values: Sequence[float], label: str) -> str:
    """The run of `values` as a line 120 by 22 pixels, from zero (or the lowest, where negative) to the highest."""
    limits = finite_span([*values, 0.0])
    if limits is None or len(values) < 2:
        return ""
    low, high = limits
    step = 118 / (len(values) - 1)
    points = (
        f"{'ML'[i > 0]}{1 + i * step:.1f} {20 - (min(max(float(v), low), high) - low) * 18 / (high - low):.1f}"
        for i, v in enumerate(v if math.isfinite(v) else low for v in values)
    )
    line = f'<path class="tq-line-range" stroke-width="1.2" d="{"".join(points)}"/>'
    size = 'viewBox="0 0 120 22" width="120" height="22"'
    label = escape(label)
    return (
        f'<svg class="tq-spark" role="img" aria-label="{label}" {size} fill="none" stroke="currentColor">{line}</svg>'
    )
