# SPDX-License-Identifier: Apache-2.0
"""Pictures of a run with matplotlib (the extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tq.inspection.plots import new_axes

if TYPE_CHECKING:
    from tq.inspection.plots import Axes
    from tq.running.runs import MemoryPlan, Profile

_MOST_NAMES = 60  # operators that get a name on the axis


def plot_profile(profile: Profile, ax: Axes | None) -> Axes:
    """A bar for each operator, in their order, a color for each kind."""
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
    ax.set_title(f"{profile.microseconds:.0f} µs, the mean of {profile.runs} runs")
    return ax


def plot_memory_plan(plan: MemoryPlan, ax: Axes | None) -> Axes:
    """A box for each tensor: the operators that it lives for across, its bytes upwards."""
    from matplotlib.patches import Rectangle

    ax = new_axes() if ax is None else ax
    colors = ["#3a8ee0", "#d5690f", "#7b8da3", "#4c9f70", "#b5539c"]
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
    ax.set_xlim(-1, end)
    ax.set_ylim(0, max(plan.arena, 1))
    ax.set_xlabel("operator")
    ax.set_ylabel("bytes from the arena's start")
    ax.set_title(f"arena of {plan.arena} bytes; at least {plan.lower_bound} are in use at once")
    return ax
