# SPDX-License-Identifier: Apache-2.0
"""Calibration: the ranges of a model's activations, from running it on samples."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`Calibration`, for pickles of earlier versions."""
    if name != "Calibration":
        raise AttributeError(f"module 'tq.calibration' has no attribute {name!r}")
    from tq.calibration.calibrate import Calibration

    return Calibration
