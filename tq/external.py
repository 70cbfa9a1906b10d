# SPDX-License-Identifier: Apache-2.0
"""Paths of the files that hold a model's external buffers."""

from __future__ import annotations

import os
from pathlib import PurePosixPath, PureWindowsPath

from tq._core import ModelError


def _refusal(text: str) -> ModelError:
    error = ModelError(text)
    error.code, error.offset = "EXTERNAL_FILE", None
    return error


def side_file(model_and_name: tuple[str | None, str]) -> str:
    """The path of an external buffer group's file: in the model's folder or below it.

    model_and_name: the model's path (None: opened from bytes) and the group's name; the core calls it.
    ModelError: the model has no path, or the name is empty, absolute, or leaves the folder.  A model is untrusted.
    """
    model, name = model_and_name
    if model is None:
        raise _refusal(f"external buffer group {name!r} lies beside the model's file; the model was opened from bytes")
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    unsafe = posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\0" in name
    if not posix.parts or unsafe:
        raise _refusal(f"external buffer group {name!r} must name a file in the model's folder")
    return os.path.join(os.path.dirname(model), name)
