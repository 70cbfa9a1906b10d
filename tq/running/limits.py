# SPDX-License-Identifier: Apache-2.0
"""What a run may take: the limits that functions which run models pass on to tq.Interpreter."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """tq.Interpreter's arguments of these names, which say what they mean."""

    max_memory: int | None = None
    max_multiply_adds: int | None = None


NONE = Limits()
CODES = ("MEMORY_LIMIT", "WORK_LIMIT")  # of the errors of a run that passes one
