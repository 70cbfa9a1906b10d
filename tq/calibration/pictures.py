# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures as samples: resized to an input's height and width, normalized, labelled by subfolder.

Needs Pillow.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Tensor
from tq.calibration.normalization import Normalization, normalization
from tq.extras import missing

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by channels


class Pictures:
    """The pictures of a folder as (array, label) pairs, in the order of their paths.

    folder: pictures, or folders of pictures, one for each class.  A class's number is its folder's name where all names
        are numbers, else its place among the sorted names; None without such folders.
    tensor: the input, of the shape [1, height, width, channels].
    mean, std: the input's value is (pixel - mean) / std, pixels being 0 to 255.  None: as the model's metadata state.
        A uint8 input without either takes the pixels.
    ValueError: there are no pictures, or the shape or the normalization is not known.  ImportError: without Pillow.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        tensor: Tensor,
        model: Model,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
    ) -> None:
        self.folder, self._tensor = os.fspath(folder), tensor
        self._size, self._mode = _form(tensor)
        self._scaling = _scaling(tensor, model, mean, std)
        self.classes, self._files = _listed(self.folder)
        if not self._files:
            raise ValueError(f"the folder {self.folder!r} holds no pictures ({', '.join(ENDINGS)})")

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[tuple[NDArray[Any], int | None]]:
        for path, label in self._files:
            yield self._read(path), label

    def __repr__(self) -> str:
        return f"<{len(self)} pictures of {len(self.classes)} classes in {self.folder!r}>"

    def _read(self, path: str) -> NDArray[Any]:
        image = _pillow()
        try:
            with image.open(path) as picture:
                shown = picture.convert(self._mode).resize(self._size, image.Resampling.BILINEAR)
        except image.UnidentifiedImageError:
            raise ValueError(f"{path!r} is no picture that Pillow reads") from None
        pixels = np.asarray(shown).reshape(1, self._size[1], self._size[0], -1)
        if self._scaling is None:
            return pixels
        mean, std = (np.array(item, np.float32) for item in self._scaling)
        values = (pixels.astype(np.float32) - mean) / std
        return self._tensor.quantization.quantize(values) if self._tensor.dtype.kind in "iu" else values


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError(missing("a folder of pictures", "Pillow", "pictures")) from None


def _form(tensor: Tensor) -> tuple[tuple[int, int], str]:
    """(width, height), and Pillow's mode."""
    shape = tensor.shape
    if len(shape) != 4 or shape[0] != 1 or shape[3] not in _MODES or min(shape) < 1:
        raise ValueError(
            f"input {tensor.name!r} has the shape {list(shape)}; pictures need [1, height, width, 1, 3 or 4 channels]"
        )
    return (shape[2], shape[1]), _MODES[shape[3]]


def _scaling(tensor: Tensor, model: Model, mean: Any, std: Any) -> Normalization | None:
    """None: the pixels as they are."""
    if (mean is None) != (std is None):
        raise ValueError("mean and std belong together: one of them is given")
    if mean is not None:
        found = Normalization(tuple(np.ravel(mean).tolist()), tuple(np.ravel(std).tolist()))
    else:
        number = [None if item is None else item.index for item in model.inputs].index(tensor.index)
        stated = normalization(model, number)
        if stated is None and tensor.dtype == np.uint8:
            return None
        if stated is None:
            raise ValueError(
                f"the model states no mean and std of input {tensor.name!r}: give them, as in "
                "tq.pictures(folder, model, mean=127.5, std=127.5) or --mean 127.5 --std 127.5"
            )
        found = stated
    for name, values in zip(("mean", "std"), found, strict=True):
        if len(values) not in (1, tensor.shape[3]):
            raise ValueError(f"{name} has {len(values)} numbers; the input has {tensor.shape[3]} channels")
    if not all(np.isfinite(found.mean)) or not all(value > 0 for value in found.std):
        raise ValueError(f"mean is {found.mean} and std {found.std}; finite numbers, and a std above 0, are needed")
    if tensor.dtype.kind in "iu" and not tensor.quantization:
        raise ValueError(f"input {tensor.name!r} is of {tensor.dtype} and has no scale")
    return found


def _listed(folder: str) -> tuple[list[str], list[tuple[str, int | None]]]:
    """The classes, and the paths of pictures with their labels."""
    names = sorted(os.listdir(folder))
    classes = [name for name in names if os.path.isdir(os.path.join(folder, name)) and not name.startswith(".")]
    numbers = [int(name) for name in classes] if all(name.isdecimal() for name in classes) else range(len(classes))
    found: list[tuple[str, int | None]] = [(os.path.join(folder, name), None) for name in names if _is_picture(name)]
    for name, number in zip(classes, numbers, strict=True):
        inside = os.path.join(folder, name)
        found += [(os.path.join(inside, file), number) for file in sorted(os.listdir(inside)) if _is_picture(file)]
    return classes, found


def _is_picture(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def pictures(
    folder: str | os.PathLike[str],
    model: Model,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
) -> Pictures:
    """The pictures of a folder as samples of a model with one input, wherever samples are taken.

        samples = tq.pictures("photos", tq.Model("float.tflite"), mean=127.5, std=127.5)
        tq.quantize_model("float.tflite", "int8", calibration=samples)

    folder, mean, std: as Pictures, whose errors this function raises.
    """
    inputs = [tensor for tensor in model.inputs if tensor is not None]
    if len(inputs) != 1:
        raise ValueError(f"a folder of pictures is given; the model has {len(inputs)} inputs")
    return Pictures(folder, inputs[0], model, mean, std)
