# SPDX-License-Identifier: Apache-2.0
"""The multiply-adds a second that this machine reaches, for `tq profile --peak`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tq._core import Model, Operator
    from tq.running.profile import OperatorTime

# A product whose weights stay in the second-level cache, and whose tiles are all whole.
_ROWS, _CHANNELS, _DEPTH = 192, 256, 1024
_SECONDS = 0.05

# Places of the rows and of the weights among an operator's inputs.
_PLACES = {"TRANSPOSE_CONV": (2, 1)}
# Types of rows and weights: the types of biases and outputs.
_TYPES = {
    ("FLOAT32", "FLOAT32"): ("FLOAT32", "FLOAT32"),
    ("FLOAT32", "INT8"): ("FLOAT32", "FLOAT32"),
    ("INT8", "INT8"): ("INT32", "INT8"),
    ("INT8", "INT4"): ("INT32", "INT8"),
    ("UINT8", "UINT8"): ("INT32", "UINT8"),
    ("INT16", "INT8"): ("INT64", "INT16"),
}


def with_peaks(
    rows: Sequence[OperatorTime], model: Model, numerics: str | None, threads: int | None
) -> list[OperatorTime]:
    """The rows of a profile of the model's first subgraph, with peaks."""
    types = [product_types(model.subgraphs[0].operators[row.index]) for row in rows]
    peaks = {item: peak(item, numerics, threads) for item in set(types) if item is not None}
    return [replace(row, peak=None if item is None else peaks[item]) for row, item in zip(rows, types, strict=True)]


def product_types(operator: Operator) -> tuple[str, str] | None:
    """The types of rows and weights of an operator that multiplies and adds; None: of another."""
    rows, weights = _PLACES.get(operator.name, (0, 1))
    tensors = [operator.inputs[i] if i < len(operator.inputs) else None for i in (rows, weights)]
    if not operator.multiply_adds or any(tensor is None for tensor in tensors):
        return None
    first, second = (str(getattr(tensor.type, "name", "")) for tensor in tensors if tensor is not None)
    return (first, second) if (first, second) in _TYPES else None


def peak(types: tuple[str, str], numerics: str | None, threads: int | None) -> float:
    """Billions of multiply-adds a second of a large FULLY_CONNECTED of these types: the best of many runs."""
    from tq.running.interpreter import Interpreter

    interpreter = Interpreter(model_content=_product(*types), numerics=numerics, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.invoke()
    least, end = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        interpreter.invoke()
        least = min(least, time.perf_counter() - start)
    return _ROWS * _CHANNELS * _DEPTH / least / 1e9


def _product(rows: str, weights: str) -> bytes:
    """A model of one product."""
    from tq.editing.builder import ModelBuilder

    bias, output = _TYPES[rows, weights]

    def grid(type_: str, scale: float) -> dict[str, Any]:
        return {} if type_ == "FLOAT32" else {"scale": scale, "zero_point": 0}

    build, random = ModelBuilder(), np.random.default_rng(0)
    x = build.input("rows", (_ROWS, _DEPTH), rows, **grid(rows, 0.01))
    values = random.standard_normal((_CHANNELS, _DEPTH)) * (1 if weights == "FLOAT32" else 2)
    kept = values.astype(np.float32 if weights == "FLOAT32" else np.uint8 if weights == "UINT8" else np.int8)
    w = build.tensor("weights", data=np.clip(kept, -7, 7) if weights == "INT4" else kept, type=weights,
                     **grid(weights, 0.01))  # fmt: skip
    b = build.tensor("bias", data=np.zeros(_CHANNELS, bias.lower()), type=bias, **grid(bias, 0.0001))
    y = build.tensor("products", (_ROWS, _CHANNELS), output, **grid(output, 0.1))
    build.operator("FULLY_CONNECTED", [x, w, b], [y])
    build.output(y)
    return build.to_bytes()
