# SPDX-License-Identifier: Apache-2.0
"""Arguments that stand for a model: an open model, a path, bytes, or an open file."""

from __future__ import annotations

import os
from typing import IO, Any, Union

from tq._core import Model

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes], Model]


def opened(source: Source) -> Model:
    """The open model.  ModelError, OSError, TypeError: as tq.Model."""
    return source if isinstance(source, Model) else Model(source)


def snapshot(source: Source) -> Model:
    """The open model; of a copy where the source is a buffer that its owner may change.  Errors: as opened."""
    return opened(bytes(source) if isinstance(source, (bytearray, memoryview)) else source)


def shown_name(source: Source, otherwise: str) -> str:
    """The name of the model's file; `otherwise` where it comes from memory."""
    path = source.path if isinstance(source, Model) else source
    return os.path.basename(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else otherwise


def is_path(source: Any) -> bool:
    """Whether an argument is a path and no model's bytes, which hold a zero byte: a path cannot."""
    if isinstance(source, bytes):
        return b"\0" not in source[:64]
    return isinstance(source, (str, os.PathLike))
