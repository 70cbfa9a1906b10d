# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `pytest_plugins = ["tq.pytest_plugin"]` in a conftest.py, or `-p tq.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import tq

if TYPE_CHECKING:
    from tq.running.compat import StandIn


@pytest.fixture
def tq_stand_in() -> Iterator[StandIn]:
    """tq in the place of ai_edge_litert, tflite_runtime and tensorflow.lite for the length of a test."""
    with tq.stand_in() as stand_in:
        yield stand_in
