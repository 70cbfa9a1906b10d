# SPDX-License-Identifier: Apache-2.0
"""Colors of boxes by the roles of overlays: the text of the pages' palette is legible on each."""

LIGHT_BOXES = {
    "heat-0": "#f1f4f7", "heat-1": "#fdebc8", "heat-2": "#fbd08f", "heat-3": "#f7a968", "heat-4": "#ef8354",
    "class-0": "#cfe3fb", "class-1": "#e3d8f8", "class-2": "#f9e2bd", "class-3": "#e7ebef",
    "box-good": "#cdeed4", "box-fair": "#cfe3fb", "box-warn": "#fbd9a6", "box-bad": "#fbc4be", "box-none": "#f1f4f7",
}  # fmt: skip
DARK_BOXES = {
    "heat-0": "#22282e", "heat-1": "#453a22", "heat-2": "#5f4518", "heat-3": "#7d4a14", "heat-4": "#9a3d1c",
    "class-0": "#1c3f63", "class-1": "#42336a", "class-2": "#57431b", "class-3": "#2c333a",
    "box-good": "#1d4a2b", "box-fair": "#1c3f63", "box-warn": "#5f4518", "box-bad": "#702a26", "box-none": "#22282e",
}  # fmt: skip


def box_color(role: str) -> str:
    """The light color of a role of a legend."""
    return LIGHT_BOXES[role if role in LIGHT_BOXES else f"box-{role}"]
