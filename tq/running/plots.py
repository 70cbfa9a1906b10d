# SPDX-License-Identifier: Apache-2.0
"""Pictures of a run with matplotlib (the extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tq.inspection.plots import new_axes
from tq.texts import dotted

if TYPE_CHECKING:
    from tq.inspection.plots import Axes
    from tq.running.runs import MemoryPlan, Profile

_MOST_NAMES = 60  # more operators than this have no names on the axis
_LEAST_SHARE = 0.01  # of the arena: the height of a box that has room for a name


def plot_profile(profile: Profile, ax: Axes | None) -> Axes:
    """Draws a bar for each operator in order, with a color for each name; ax: None: a new figure."""
    ax = new_axes() if ax is None else ax
    for name in profile.by_name():
        rows = [row for row in profile.rows if row.name == name]
        ax.barh([row.index for row in rows], [row.microseconds for row in rows], label=name)
    ax.set_xlabel("microseconds")
    ax.set_ylabel("operator")
    ax.invert_yaxis()
    if len(profile.rows) <= _MOST_NAMES:
        ax.set_yticks([row.index for row in profile.rows], [f"{r.index} {r.name}" for r in profile.rows], fontsize=6)
    ax.legend(fontsize=7)
    ax.set_title(f"{profile.microseconds:.0f} µs, the median of {profile.runs} runs")
    return ax


def _label(name: str) -> str:
    """The end of a name, which tells tensors apart, as matplotlib's plain text."""
    shown = dotted(name if len(name) <= 24 else "…" + name[-23:])
    return shown.replace("$", r"\$")


def plot_memory_plan(plan: MemoryPlan, ax: Axes | None) -> Axes:
    """Draws a box for each tensor: its lifetime in operators to the right, its bytes upwards; ax: None: a new
    figure."""
    from matplotlib.patches import Rectangle

    ax = new_axes() if ax is None else ax
    colors = ["#3a8ee0", "#d5690f", "#7b8da3", "#4c9f70", "#b5539c"]
    tensors = sorted((item for item in plan.placed if item.tensor is not None), key=lambda item: -item.nbytes)
    named = [item for item in tensors[:_MOST_NAMES] if item.nbytes >= _LEAST_SHARE * plan.arena]
    end = max((item.last for item in plan.placed), default=0) + 1
    for k, item in enumerate(plan.placed):
        color = "#00000020" if item.tensor is None else colors[k % len(colors)]
        box = Rectangle(
            (item.first, item.offset),
            item.last + 1 - item.first,
            item.nbytes,
            facecolor=color,
            edgecolor="black",
            linewidth=0.3,
        )
        ax.add_patch(box)
    for item in named:
        place = ((item.first + item.last + 1) / 2, item.offset + item.nbytes / 2)
        ax.annotate(_label(item.name), place, ha="center", va="center", fontsize=6)
    ax.set_xlim(-1, end)
    ax.set_ylim(0, max(plan.arena, 1))
    ax.set_xlabel("operator")
    ax.set_ylabel("bytes from the arena's start")
    ax.set_title(f"arena of {plan.arena} bytes; at least {plan.lower_bound} are in use at once")
    return ax
