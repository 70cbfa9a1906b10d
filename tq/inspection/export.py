# SPDX-License-Identifier: Apache-2.0
"""A model's constants as an .npz file, which `numpy.load` reads without pickle."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tq._core import Error
from tq.saving import Target
from tq.sources import Source, opened

if TYPE_CHECKING:
    from tq._core import Model, Tensor

# Tensors may share a buffer, so a small hostile file could describe an endless export.
_GROWTH, _SLACK = 64, 1 << 30


class Export(NamedTuple):
    """The result of `export_npz`."""

    arrays: dict[str, tuple[int, int]]  # key in the .npz file -> (subgraph, tensor)
    skipped: list[tuple[str, str]]  # a tensor's subgraph, index and name as text, and the reason


def _place(subgraph_index: int, tensor: Tensor) -> str:
    return f"subgraph {subgraph_index}, tensor {tensor.index} {tensor.name!r}"


def _key(name: str, index: int, taken: dict[str, Any]) -> str:
    """A unique key for a tensor's name that a zip file can hold.

    Control characters, backslashes, and "." and ".." between slashes become "_", so that no unpacking tool leaves its
    folder.  numpy.load strips ".npy" from a key, so "_" follows it in a name.
    """
    text = re.sub(r"[\x00-\x1f\x7f\\\ud800-\udfff]", "_", name)[:1000]
    text = "/".join("_" if part in ("", ".", "..") else part for part in text.split("/")) if text else f"tensor_{index}"
    if text.endswith(".npy"):
        text += "_"
    key, number = text, 1
    while key in taken:
        number += 1
        key = f"{text}_{number}"
    return key


def _portable(values: np.ndarray) -> np.ndarray:
    """`values` in a dtype of NumPy's own; ml_dtypes' types are widened without loss.

    ValueError: strings that NumPy's fixed-width strings cannot hold.
    """
    if values.dtype.kind == "O":
        items = values.ravel().tolist()
        if any(item.endswith(b"\0") for item in items):
            raise ValueError("a string ends with a zero byte, which NumPy's fixed-width strings cannot hold")
        width = max((len(item) for item in items), default=0)
        if width * len(items) > 16 * sum(map(len, items)) + (1 << 20):
            raise ValueError("its strings differ too much in length for NumPy's fixed-width strings")
        return np.array(items, dtype=f"S{max(width, 1)}").reshape(values.shape)
    if values.dtype.isbuiltin == 1:
        return values
    name = values.dtype.name
    narrow = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}
    return values.astype(narrow.get(name, np.float32))


def constant_array(tensor: Tensor, dequantized: bool = False) -> np.ndarray:
    """A constant tensor's values, dense, in the tensor's shape and a dtype of NumPy's own.

    dequantized: quantized constants as float32 real values; others as stored.
    ValueError, ModelError, OSError: the data are not in the file, or the strings do not fit.
    """
    if dequantized and tensor.quantization.kind not in ("none", "custom"):
        return tensor.dequantized()
    values = tensor.densify()
    if values is None:
        raise ValueError("the model does not say where its data lies")  # an external buffer that it does not list
    return _portable(values)


def _constants(model: Model) -> Iterator[tuple[int, Tensor]]:
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.is_constant:
                yield subgraph.index, tensor


def _write(archive: zipfile.ZipFile, key: str, values: np.ndarray) -> None:
    entry = zipfile.ZipInfo(key + ".npy", (1980, 1, 1, 0, 0, 0))  # no clock: equal models give equal files
    entry.external_attr = 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as stream:
        np.lib.format.write_array(stream, np.asarray(values, order="C"), allow_pickle=False)


def _export(model: Model, archive: zipfile.ZipFile, dequantized: bool) -> Export:
    result = Export({}, [])
    left = model.nbytes * _GROWTH + _SLACK
    for subgraph_index, tensor in _constants(model):
        try:
            values = constant_array(tensor, dequantized)
            left -= values.nbytes
            if left < 0:
                raise ValueError(f"the arrays so far hold over {_GROWTH} times the model's bytes; are buffers shared?")
        except (Error, ValueError, TypeError, OSError) as error:  # OSError: of a file beside the model
            result.skipped.append((_place(subgraph_index, tensor), str(error)))
            if left < 0:
                break
            continue
        key = _key(tensor.name, tensor.index, result.arrays)
        _write(archive, key, values)
        result.arrays[key] = (subgraph_index, tensor.index)
    return result


def export_npz(model: Source, path: str | os.PathLike[str], dequantized: bool = False) -> Export:
    """Writes all constants of all subgraphs of a model (an open one, a path or bytes) to `path`, an .npz file.

    Keys are tensor names, made unique by "_2" and so on.  Arrays have the tensors' shapes; sub-byte types become
    int8 or uint8, bfloat16 and float8 float32, strings fixed-width bytes; sparse tensors are dense.
    dequantized: quantized constants as float32 real values.

    Returns an Export: the arrays written, and the constants skipped because the model describes them wrongly.
    The file appears whole or not at all.  OSError: `path` is the model's own file, no regular file, or read-only.
    ModelError: as tq.Model.
    """
    model = opened(model)
    made: list[Export] = []

    def write(archive: zipfile.ZipFile) -> None:
        made.append(_export(model, archive, dequantized))

    _save(Target(path, model=model), write)
    return made[-1]


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *inputs: Any) -> None:
    """Writes arrays to `path`, an .npz file, whole or not at all.

    inputs: files that it must not overwrite (tq.saving).  OSError: as tq.saving.Target.
    """

    def write(archive: zipfile.ZipFile) -> None:
        keys: dict[str, Any] = {}
        for position, (name, values) in enumerate(arrays.items()):
            key = _key(name, position, keys)
            keys[key] = None
            _write(archive, key, _portable(values))

    _save(Target(path, *inputs), write)


def _save(target: Target, write: Callable[[zipfile.ZipFile], None]) -> None:
    def fill(descriptor: int) -> None:
        with open(descriptor, "wb", closefd=False) as stream, zipfile.ZipFile(stream, "w") as archive:
            write(archive)

    target.save(fill)
