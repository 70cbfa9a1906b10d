# SPDX-License-Identifier: Apache-2.0
"""Positions of boxes and routes of arrows in a drawing of a graph: layers by igraph's Sugiyama, or one column.

Boxes are numbered in an order of execution: an arrow to a box of a lower number goes back, and moves no box.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Point = tuple[float, float]
Size = tuple[float, float]
Arrow = tuple[int, int]  # from a box, to a box

_BETWEEN_ROWS = 34.0
_BETWEEN_BOXES = 26.0
_LANE = 12.0  # between arrows beside a column
_LANES = 24
_BENDS = 40_000  # points at which arrows pass a row; igraph's time grows with them
_ROUNDS = 24  # of igraph's search for fewer crossings
_SWEEPS = 12
_BEND = 0.2  # weight of a bend: a chain of boxes is straight before an arrow that passes it is


class Layout(NamedTuple):
    """Where everything stands; y grows downwards."""

    corners: list[Point]  # of each box, the left upper corner
    routes: list[list[Point]]  # of each arrow, the points between its ends, in the arrow's direction
    width: float
    height: float
    is_layered: bool  # False: one column


def is_available() -> bool:
    """Whether igraph is installed."""
    return _igraph() is not None


def _igraph() -> Any:
    try:
        return importlib.import_module("igraph")
    except ImportError:
        return None


def layout(sizes: Sequence[Size], arrows: Sequence[Arrow], layered: bool | None = None) -> Layout:
    """The layout of boxes and arrows.

    sizes: width and height of each box, in the order of execution.
    layered: None: if igraph is installed; False: one column.
    """
    igraph = None if layered is False else _igraph()
    made = _column(sizes, arrows) if igraph is None else _layers(igraph, sizes, arrows)
    return _at_origin(made, sizes)


def _at_origin(made: Layout, sizes: Sequence[Size]) -> Layout:
    """The same layout, with its left upper corner at 0, 0."""
    points = [point for route in made.routes for point in route]
    left = min((x for x, _ in (*made.corners, *points)), default=0.0)
    right = max((x for x, _ in points), default=left)
    right = max([right, *(x + w for (x, _), (w, _) in zip(made.corners, sizes, strict=True))])
    bottom = max((y + h for (_, y), (_, h) in zip(made.corners, sizes, strict=True)), default=0.0)
    corners = [(x - left, y) for x, y in made.corners]
    routes = [[(x - left, y) for x, y in route] for route in made.routes]
    return Layout(corners, routes, right - left, bottom, made.is_layered)


# ---- one column ----


def _column(sizes: Sequence[Size], arrows: Sequence[Arrow]) -> Layout:
    """Boxes below one another; arrows that pass a box run in lanes beside the column."""
    corners, y = [], 0.0
    for width, height in sizes:
        corners.append((-width / 2, y))
        y += height + _BETWEEN_ROWS
    side = max((width for width, _ in sizes), default=0.0) / 2
    routes: list[list[Point]] = [[] for _ in arrows]
    free = [-1] * _LANES  # of each lane, the last box that it passes
    for which in sorted(range(len(arrows)), key=lambda k: min(arrows[k])):
        source, target = arrows[which]
        first, last = min(source, target), max(source, target)
        if last - first > 1 or source >= target:
            lane = next((k for k, end in enumerate(free) if end <= first), _LANES - 1)
            free[lane] = last
            x = side + _LANE * (lane + 1)
            down = corners[source][1] + sizes[source][1] + _BETWEEN_ROWS / 2
            routes[which] = [(x, down), (x, corners[target][1] - _BETWEEN_ROWS / 2)]
    return Layout(corners, routes, 0.0, 0.0, False)


# ---- layers ----


def _rows(count: int, arrows: Iterable[Arrow]) -> list[int]:
    """The row of each box: below all boxes that lead to it; a box that nothing leads to: just above its first reader.

    Arrows lead to boxes of higher numbers.
    """
    rows, first_reader = [0] * count, [count] * count
    sources: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        sources[target].append(source)
    for box, before in enumerate(sources):
        if before:
            rows[box] = 1 + max(rows[source] for source in before)
            for source in before:
                first_reader[source] = min(first_reader[source], rows[box])
    for box, before in enumerate(sources):
        if not before and first_reader[box] < count:
            rows[box] = first_reader[box] - 1
    return rows


def _passed(rows: Sequence[int], arrows: Iterable[Arrow]) -> dict[Arrow, range]:
    """The rows that each arrow passes, of the shortest arrows: _BENDS rows in all."""
    spans = sorted((rows[target] - rows[source] - 1, source, target) for source, target in arrows)
    passed, total = {}, 0
    for span, source, target in spans:
        total += span
        if total > _BENDS:
            break
        passed[source, target] = range(rows[source] + 1, rows[target])
    return passed


def _layers(igraph: Any, sizes: Sequence[Size], arrows: Sequence[Arrow]) -> Layout:
    forward = sorted({(a, b) for a, b in arrows if a < b})
    rows = _rows(len(sizes), forward)
    passed = _passed(rows, forward)
    # A bend stands in each row that an arrow passes, so that no box lies there.
    places = list(rows)
    links: list[Arrow] = []
    bends: dict[Arrow, range] = {}
    for (source, target), between in passed.items():
        chain = range(len(places), len(places) + len(between))
        places += between
        bends[source, target] = chain
        path = [source, *chain, target]
        links += pairwise(path)
    graph = igraph.Graph(len(places), links, directed=True)
    found = graph.layout_sugiyama(layers=places, hgap=1, vgap=1, maxiter=_ROUNDS).coords if places else []
    pitch = max((width for width, _ in sizes), default=0.0) + _BETWEEN_BOXES
    centers = _across([point[0] for point in found[: len(places)]], places, links, len(sizes), pitch)
    tops, heights = _heights(rows, sizes)
    corners = [(centers[box] - width / 2, tops[rows[box]]) for box, (width, _) in enumerate(sizes)]
    routes = []
    for source, target in arrows:
        route: list[Point] = []
        for bend in bends.get((source, target), ()):
            top = tops[places[bend]]
            route += [(centers[bend], top), (centers[bend], top + heights[places[bend]])]
        routes.append(route)
    return Layout(corners, routes, 0.0, 0.0, True)


def _heights(rows: Sequence[int], sizes: Sequence[Size]) -> tuple[list[float], list[float]]:
    """The upper edge and the height of each row."""
    heights = [0.0] * (max(rows, default=-1) + 1)
    for row, (_, height) in zip(rows, sizes, strict=True):
        heights[row] = max(heights[row], height)
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + _BETWEEN_ROWS
    return tops, heights


# ---- across ----


def _across(xs: Sequence[float], rows: Sequence[int], links: Sequence[Arrow], boxes: int, pitch: float) -> list[float]:
    """The x coordinate of the middle of each box and bend: in igraph's order, and as near as there is room to the
    boxes that lead there and that are led to.

    igraph's own coordinates have bends as wide as boxes, and long chains that drift to a side.
    """
    members: dict[int, list[int]] = {}
    for item in sorted(range(len(xs)), key=lambda k: xs[k]):
        members.setdefault(rows[item], []).append(item)
    before: list[list[int]] = [[] for _ in xs]
    behind: list[list[int]] = [[] for _ in xs]
    for source, target in links:
        before[target].append(source)
        behind[source].append(target)
    # A box that nothing leads to, such as DEQUANTIZE of a constant, follows its reader, and does not push it aside.
    weights = [_BEND if item >= boxes else 1.0 if before[item] else 0.05 for item in range(len(xs))]
    order = sorted(members)
    starts = {row: _starts(members[row], boxes, pitch) for row in order}
    made = [0.0] * len(xs)
    for row in order:
        for item, start in zip(members[row], starts[row], strict=True):
            made[item] = start - starts[row][-1] / 2
    for sweep in range(_SWEEPS):
        neighbours = (before, behind, [a + b for a, b in zip(before, behind, strict=True)])[
            2 if sweep >= _SWEEPS - 2 else sweep % 2
        ]
        for row in order if sweep % 2 == 0 else reversed(order):
            items = members[row]
            wanted = [_mean(item, neighbours[item], made, weights, item >= boxes) for item in items]
            _settle(items, wanted, starts[row], weights, made)
    return made


def _mean(item: int, others: Sequence[int], made: Sequence[float], weights: Sequence[float], is_bend: bool) -> float:
    """The weighted mean of neighbours; a bend keeps straight on, whatever its weight for boxes."""
    if not others:
        return made[item]
    shares = [1.0 if is_bend else weights[k] for k in others]
    return sum(share * made[k] for share, k in zip(shares, others, strict=True)) / sum(shares)


def _starts(items: Sequence[int], boxes: int, pitch: float) -> list[float]:
    """The least distance of each item of a row from the first."""
    starts, x = [0.0], 0.0
    for left, right in pairwise(items):
        narrow = (left >= boxes) + (right >= boxes)
        x += (pitch, pitch / 2 + _LANE, 2 * _LANE)[narrow]
        starts.append(x)
    return starts


def _settle(
    items: Sequence[int],
    wanted: Sequence[float],
    starts: Sequence[float],
    weights: Sequence[float],
    made: list[float],
) -> None:
    """Stores the x coordinates of a row with the least sum of squared distances from the wanted ones, in their order
    (isotonic regression: neighbours that would overlap become one group)."""
    groups: list[tuple[float, float, int]] = []  # mean, weight, items
    for item, x, start in zip(items, wanted, starts, strict=True):
        mean, weight, count = x - start, weights[item], 1
        while groups and groups[-1][0] > mean:
            other, more, members = groups.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, count = weight + more, count + members
        groups.append((mean, weight, count))
    position = 0
    for mean, _, count in groups:
        for at in range(position, position + count):
            made[items[at]] = mean + starts[at]
        position += count
