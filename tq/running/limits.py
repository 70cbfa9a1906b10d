# SPDX-License-Identifier: Apache-2.0
"""Limits of memory and work, as functions that run models pass them to tq.Interpreter."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """tq.Interpreter's arguments of the same names; None: no limit."""

    max_memory: int | None = None
    max_multiply_adds: int | None = None


NONE = Limits()
ERROR_CODES = ("MEMORY_LIMIT", "WORK_LIMIT")  # `code` of the error of a run that exceeds a limit
