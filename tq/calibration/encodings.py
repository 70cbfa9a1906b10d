# SPDX-License-Identifier: Apache-2.0
"""Ranges, scales and zero points by a tensor's name: of any quantized model, and of files of JSON.

tq's own file is {"format": "tq ranges", "version": 1, "tensors": {name: {"min": [...], "max": [...]}}}, with "scale",
"zero_point", "type" and "axis" where they are known.  Also read are ONNX Runtime's calibration tables and overrides
(onnxruntime/python/tools/quantization/quant_utils.py: calibration.json and calibration.cache), and AIMET's encodings of
the versions 0.6, 1.0 and 2.0 (aimet_common/quantsim.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np

from tq._core import Model, Operator
from tq.enums import LIMITS, name_of
from tq.running.recurrent import INTERMEDIATES, LSTMS, inside

FORMAT, VERSION = "tq ranges", 1
_LIMITS = {name: LIMITS[name] for name in ("int4", "int8", "int16")}
_SHIFTS = {f"u{name}": (name, -least) for name, (least, _) in _LIMITS.items()}
_BETWEEN = {"QUANTIZE": "inputs", "DEQUANTIZE": "outputs"}  # where their float tensor is


@dataclass(frozen=True)
class Encoding:
    """The known parameters of a tensor: a range, or several along an axis; scales and zero points of a signed type
    where a file gives them.

    axis: None with several ranges: the one that kernels take; negative: from the last one on."""

    min: tuple[float, ...]
    max: tuple[float, ...]
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    type: str = ""
    axis: int | None = None

    def __post_init__(self) -> None:
        ends = list(zip(self.min, self.max, strict=True))
        if not ends or not all(math.isfinite(low) and math.isfinite(high) and low <= high for low, high in ends):
            wrong = f"min {list(self.min)} and max {list(self.max)} are no ranges"
            raise ValueError(f"{wrong}: min <= max, both finite, is needed")
        if self.scale and not len(self.scale) == len(self.zero_point) == len(ends):
            raise ValueError(f"{len(self.scale)} scales, {len(self.zero_point)} zero points, {len(ends)} ranges")
        if any(not (scale > 0 and math.isfinite(scale)) for scale in self.scale):
            raise ValueError(f"scales are {list(self.scale)}; they must be finite and over 0")
        if self.scale and self.type not in _LIMITS:
            raise ValueError(f"type is {self.type!r}; it must be one of {', '.join(_LIMITS)}")

    @classmethod
    def of_parameters(cls, scale: Any, zero_point: Any, type: str, axis: int | None = None) -> Encoding:
        """ValueError: no such type."""
        name, shift = _SHIFTS.get(type, (type, 0))
        if name not in _LIMITS:
            raise ValueError(f"type is {type!r}; it must be one of {', '.join((*_LIMITS, *_SHIFTS))}")
        least, most = _LIMITS[name]
        scales = [float(np.float32(item)) for item in np.ravel(scale)]
        given = [int(item) for item in np.ravel(zero_point)] or [0]
        zeros = [item - shift for item in (given * len(scales) if len(given) == 1 else given)]
        ends = [(s * (least - z), s * (most - z)) for s, z in zip(scales, zeros, strict=True)]
        low, high = (tuple(end[side] for end in ends) for side in (0, 1))
        return cls(low, high, tuple(scales), tuple(zeros), name, axis if len(scales) > 1 else None)


# ---- of a model ----


def of_model(model: Model) -> dict[str, Encoding]:
    """The encodings of all int4, int8, uint8 and int16 tensors with a scale, but of those in blocks, and of the float
    tensors that QUANTIZE reads or DEQUANTIZE writes.  Of several tensors with one name the first counts."""
    found: dict[str, Encoding] = {}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            q = tensor.quantization
            type_ = name_of(tensor.type).lower()
            scales = q.scale.ndim == 1 and q.scale.size > 0 and bool((np.isfinite(q.scale) & (q.scale > 0)).all())
            if scales and (type_ in _LIMITS or type_ in _SHIFTS) and tensor.name not in found:
                made = Encoding.of_parameters(q.scale, q.zero_point, type_, q.quantized_dimension)
                found[tensor.name] = made
        for op in graph.operators:
            found |= {name: item for name, item in _of_intermediates(op) if name not in found}
            side = _BETWEEN.get(op.name)
            source, target = (op.inputs or (None,))[0], (op.outputs or (None,))[0]
            if side is None or source is None or target is None:
                continue
            real, quantized = (source, target) if side == "inputs" else (target, source)
            if name_of(real.type) == "FLOAT32" and quantized.name in found:
                found.setdefault(real.name, found[quantized.name])
    return found


def _of_intermediates(op: Operator) -> Iterator[tuple[str, Encoding]]:
    """The encodings of values inside an integer LSTM, by tensor name."""
    inputs, scaled = (
        op.inputs,
        (t if t is not None and t.quantization.scale.size == 1 else None for t in op.intermediates),
    )
    for place, tensor in zip(INTERMEDIATES, scaled, strict=False):
        under = inputs[place] if place < len(inputs) else None
        if op.name in LSTMS and tensor is not None and under is not None:
            q = tensor.quantization
            yield inside(under.name), Encoding.of_parameters(q.scale, q.zero_point, name_of(tensor.type).lower())


# ---- tq's files ----


def to_json(encodings: Mapping[str, Encoding]) -> str:
    tensors = {name: _row(item) for name, item in encodings.items()}
    return json.dumps({"format": FORMAT, "version": VERSION, "tensors": tensors}, indent=1) + "\n"


def _row(item: Encoding) -> dict[str, Any]:
    row: dict[str, Any] = {"min": list(item.min), "max": list(item.max)}
    if item.scale:
        row |= {"scale": list(item.scale), "zero_point": list(item.zero_point), "type": item.type}
    return row | ({"axis": item.axis} if item.axis is not None else {})


def from_json(text: str) -> dict[str, Encoding]:
    """The encodings in a JSON file of tq, ONNX Runtime or AIMET, by tensor name.  ValueError: it is none of these."""
    data: Any = json.loads(text) if text.lstrip().startswith(("{", "[")) else _cache(text)
    if not isinstance(data, dict):
        raise ValueError(f"it holds a {type(data).__name__}; a JSON object is needed")
    if data.get("format") == FORMAT:
        if data.get("version") != VERSION:
            raise ValueError(f"version {data.get('version')}; this version of tq reads {VERSION}")
        rows: Iterable[tuple[str, Any]] = data["tensors"].items()
    elif "activation_encodings" in data or "param_encodings" in data:
        rows = _aimet(data)
    elif isinstance(data.get("encodings"), list):  # AIMET's 2.0
        rows = ((item["name"], item) for item in data["encodings"])
    else:
        rows = data.get("data", data).items()
    found = {}
    in_blocks = []
    for name, item in rows:
        if name == "CLASS" or (isinstance(item, (str, int, float)) or item is None):
            continue
        try:
            encoding = _encoding(item)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"tensor {name!r}: {error}") from None
        except _InBlocks:
            in_blocks.append(name)
            continue
        if encoding is not None:
            found[str(name)] = encoding
    if in_blocks:
        warn(f"scales of blocks are left out: of {len(in_blocks)} tensors, as {in_blocks[0]!r}", RuntimeWarning, 2)
    if not found:
        raise ValueError("it holds no ranges")
    return found


class _InBlocks(Exception):
    """An encoding with a scale for each block."""


def _cache(text: str) -> dict[str, list[float]]:
    """ONNX Runtime's calibration.cache: in each line a name and the greatest magnitude."""
    found = {}
    for line in text.splitlines():
        name, _, most = line.strip().rpartition(" ")
        try:
            found[name] = [-float(most), float(most)]
        except ValueError:
            raise ValueError(f"line {line!r} is no name with a range, and the file no JSON") from None
    return found


def _encoding(item: Any) -> Encoding | None:
    """One of an entry's many forms; None: of floats, or of a bias, whose scale follows from others.

    _InBlocks: it has a scale for each block."""
    item = _plain(item)
    if isinstance(item, list) and len(item) == 2 and not any(isinstance(part, (dict, list)) for part in item):
        return _ranges(item[0], item[1], None)  # ONNX Runtime's plain (low, high)
    rows = item if isinstance(item, list) else [item]
    if any(map(_is_left_out, rows)):
        return None
    if any(row.get("block_size") or "per_block_int_scale" in row for row in rows):
        raise _InBlocks
    if len(rows) == 1:
        return _one(rows[0])
    parts = [_one(row, per_axis=True) for row in rows]
    scales = all(part.scale for part in parts)
    return Encoding(
        tuple(part.min[0] for part in parts),
        tuple(part.max[0] for part in parts),
        tuple(part.scale[0] for part in parts) if scales else (),
        tuple(part.zero_point[0] for part in parts) if scales else (),
        parts[0].type if scales else "",
        rows[0].get("axis"),
    )


def _is_left_out(row: Mapping[str, Any]) -> bool:
    names = (str(row.get(key, "int8")).lower() for key in ("dtype", "output_dtype"))
    return (
        any(name.startswith("float") or name == "int32" for name in names) or row.get("bitwidth", row.get("bw")) == 32
    )


def _one(row: Mapping[str, Any], per_axis: bool = False) -> Encoding:
    axis = row.get("axis")
    if "type" in row and "scale" in row:  # tq's own
        low, high, scale = (tuple(map(float, row[key])) for key in ("min", "max", "scale"))
        return Encoding(low, high, scale, tuple(map(int, row["zero_point"])), str(row["type"]), axis)
    if "y_scale" in row:
        type_ = str(row.get("output_dtype", "int8"))
        return Encoding.of_parameters(row["y_scale"], row.get("y_zero_point") or 0, type_, axis)
    bits = row.get("bitwidth", row.get("bw"))
    if bits is not None and "offset" in row and "scale" in row:  # AIMET: q - offset, from 0
        zeros = [-int(item) for item in np.ravel(row["offset"])]
        return Encoding.of_parameters(row["scale"], zeros, f"uint{int(bits)}", axis)
    if "scale" in row and "zero_point" in row:
        type_ = str(row.get("quant_type", "QInt8")).lower().removeprefix("q")
        return Encoding.of_parameters(row["scale"], row["zero_point"], type_, axis)
    for least, most in (("min", "max"), ("rmin", "rmax"), ("lowest", "highest")):
        if least in row and most in row:
            return _ranges(row[least], row[most], axis)
    raise ValueError(f"it has neither a range nor a scale and a zero point, but {', '.join(map(str, row))}")


def _ranges(low: Any, high: Any, axis: int | None) -> Encoding:
    lows, highs = (tuple(float(item) for item in np.ravel(end)) for end in (low, high))
    return Encoding(lows, highs, axis=axis if len(lows) > 1 else None)


def _plain(item: Any) -> Any:
    """Without ONNX Runtime's records of arrays."""
    if isinstance(item, dict):
        if str(item.get("CLASS", "")).startswith("numpy"):
            return item["data"]
        return {key: _plain(value) for key, value in item.items()}
    return [_plain(part) for part in item] if isinstance(item, list) else item


def _aimet(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field in ("activation_encodings", "param_encodings"):
        part = data.get(field) or {}
        if isinstance(part, list):  # 1.0
            yield from ((row["name"], row) for row in part)
            continue
        for name, item in part.items():
            if isinstance(item, dict) and ("output" in item or "input" in item):  # by layer: what it gives
                given = item.get("output") or {}
                yield from ((name if place == "0" else f"{name}:{place}", row) for place, row in given.items())
            else:
                yield name, item
