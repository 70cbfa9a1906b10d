# SPDX-License-Identifier: Apache-2.0
"""Arguments that stand for a model: an open model, a path, or bytes."""

from __future__ import annotations

import os
from typing import Union

from tq._core import Model

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Model]


def opened(source: Source) -> Model:
    """The open model.  ModelError, OSError: as tq.Model."""
    return source if isinstance(source, Model) else Model(source)


def snapshot(source: Source) -> Model:
    """The open model; of a copy where the source is a buffer that its owner may change.  Errors: as opened."""
    return opened(bytes(source) if isinstance(source, (bytearray, memoryview)) else source)
