# SPDX-License-Identifier: Apache-2.0
"""Observers, where pickles of earlier versions look for them."""

from tq.calibration.observers import HistogramObserver, MinMaxObserver, MovingAverageObserver

__all__ = ["HistogramObserver", "MinMaxObserver", "MovingAverageObserver"]
