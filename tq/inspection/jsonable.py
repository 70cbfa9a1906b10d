# SPDX-License-Identifier: Apache-2.0
"""JSON of the command line: every value exact, and every text valid JSON.

Integers of any size are numbers.  Floats are written in full (`repr`), float32 widened to double.  Non-finite floats
are
strings: "NaN", "Infinity", "-Infinity".  Enum members are their names, NumPy classes and dtypes
their names, bytes {"base64": "..."}, arrays nested lists.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tq._core import Model, Operator, Quantization, Subgraph, Tensor


def plain(value: Any) -> Any:
    """`value` in the types that json.dumps(..., allow_nan=False) takes."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return (
            value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64

        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray):
        return plain(value.tolist() if value.dtype.isbuiltin == 1 else value.astype(np.float64).tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def dumps(value: Any) -> str:
    """The JSON text of any value, in ASCII."""
    return json.dumps(plain(value), allow_nan=False, indent=1, ensure_ascii=True)


# ---- a model ----


def _quantization(q: Quantization) -> dict[str, Any] | None:
    if not q:
        return None
    names = (
        "kind", "scale", "zero_point", "min", "max", "range_min", "range_max", "quantized_dimension", "block_size",
        "details",
    )  # fmt: skip
    return {name: getattr(q, name) for name in names}


def tensor(t: Tensor) -> dict[str, Any]:
    """A tensor's fields, without its data."""
    external = t.external_buffer
    return {
        "index": t.index,
        "name": t.name,
        "type": t.type,
        "shape": t.shape,
        "shape_signature": t.shape_signature,
        "nbytes": t.nbytes,
        "buffer": t.buffer,
        "external_buffer": None if external is None else external_buffer(external),
        "is_constant": t.is_constant,
        "is_variable": t.is_variable,
        "quantization": _quantization(t.quantization),
        "sparse": t.sparsity is not None,
    }


def operator(op: Operator) -> dict[str, Any]:
    """An operator, with its tensors as indices."""
    return {
        "index": op.index,
        "name": op.name,
        "version": op.version,
        "inputs": op.input_indices,
        "outputs": op.output_indices,
        "intermediates": op.intermediate_indices,
        "options_type": op.options_type,
        "options": op.options,
    }


def external_buffer(buffer: Any) -> dict[str, Any]:
    """An ExternalBuffer's fields."""
    return {name: getattr(buffer, name) for name in ("id", "group", "offset", "length", "packing")}


def _subgraph(graph: Subgraph, operators: bool, tensors: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "index": graph.index,
        "name": graph.name,
        "inputs": graph.input_indices,
        "outputs": graph.output_indices,
    }
    if operators:
        result["operators"] = map(operator, graph.operators)
    if tensors:
        result["tensors"] = map(tensor, graph.tensors)
    return result


def _metadata(m: Model) -> dict[str, Any]:
    """{name: bytes}; {"nbytes": n} in their place once the entries, which may share a buffer, exceed the file's
    size."""
    result: dict[str, Any] = {}
    left = m.nbytes
    for name, content in m.metadata.items():
        left -= len(content)
        result[name] = content if left >= 0 else {"nbytes": len(content)}
    return result


def model(m: Model, *, operators: bool = True, tensors: bool = True) -> dict[str, Any]:
    """The contents of a model without its constants' data; `operators`, `tensors`: whether to list them."""
    return {
        "path": None if m.path is None else str(m.path),
        "nbytes": m.nbytes,
        "version": m.version,
        "description": m.description,
        "min_runtime_version": m.min_runtime_version,
        "operator_codes": [{"name": code.name, "version": code.version} for code in m.operator_codes],
        "subgraphs": [_subgraph(graph, operators, tensors) for graph in m.subgraphs],
        "signatures": [
            {"key": s.key, "subgraph_index": s.subgraph_index, "inputs": s.inputs, "outputs": s.outputs}
            for s in m.signatures
        ],
        "metadata": _metadata(m),
        "external_buffers": [external_buffer(buffer) for buffer in m.external_buffers],
    }
