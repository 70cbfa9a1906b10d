# SPDX-License-Identifier: Apache-2.0
"""What functions take that take a model: one that is open, a path, or bytes."""

from __future__ import annotations

import os
from typing import Union

from tq._core import Model

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Model]


def opened(source: Source) -> Model:
    """The model.  ModelError, OSError: as tq.Model."""
    return source if isinstance(source, Model) else Model(source)


def snapshot(source: Source) -> Model:
    """The model, of bytes that nobody can change meanwhile."""
    return opened(bytes(source) if isinstance(source, (bytearray, memoryview)) else source)
