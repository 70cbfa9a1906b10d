# SPDX-License-Identifier: Apache-2.0
"""Recipe "uint8": asymmetric uint8 activations and weights, as toco writes whole models.

The passes plan it as int8; here are the operators without a uint8 kernel, weights of 1 to 255, and the
step that moves the written integers by 128, with fixed outputs, which are 128 above int8's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization.grids import TRAINED, Grid
from tq.specification.table import WITHOUT_UINT8

SHIFT = 128
LEAST_RANGE = 1e-6  # narrower ranges are quantized by the int8 rules, which widen them to this one
# Operators that stay float: all without a uint8 kernel, LSTM, whose uint8 kernel is another operator's, and two that
# write the quantized value 0 for 0.0.
WITHOUT = WITHOUT_UINT8 | {"LSTM", "MATRIX_DIAG", "MATRIX_SET_DIAG"}


class Unsigned(NamedTuple):
    """Weights, quantized."""

    values: NDArray[np.uint8]
    scale: np.float32
    zero_point: int
    is_on_grid: bool = False


def weights(data: NDArray[np.float32], grid: Grid | None) -> Unsigned:
    """With the scale of their own range, or on the grid that training, the caller or the file chose.

    ValueError: they are not finite."""
    grid = None if grid is None else grid.of_all()
    takes = grid is not None and grid.axis is None and grid.most == np.iinfo(np.int8).max
    if grid is not None and takes and not grid.is_empty(data):
        if grid.ends is not None and grid.source not in TRAINED:
            low, high = float(grid.ends[0][0]), float(grid.ends[1][0])
            made = _core.quantize_weights(data, None, "uint8", rule="toco", min=low, max=high, narrow_range=True)
            return Unsigned(made.codes.astype(np.uint8), np.float32(made.scale), int(made.zero_point), True)
        zero = int(grid.zero_point[0]) + SHIFT
        return Unsigned((grid.steps(data) + zero).astype(np.uint8), grid.scale[0], zero, True)
    if data.max(initial=0) - data.min(initial=0) <= LEAST_RANGE:
        return of_scale(data, np.float32(LEAST_RANGE / 254))
    made = _core.quantize_weights(data, None, "uint8", rule="toco", narrow_range=True)
    return Unsigned(made.codes.astype(np.uint8), np.float32(made.scale), int(made.zero_point))


def of_scale(data: NDArray[np.float32], scale: np.float32) -> Unsigned:
    """With a given scale and the middle as the zero point."""
    made = _core.quantize_weights(data, None, "int8", scale=scale)
    return Unsigned((made.codes.astype(np.int16) + SHIFT).astype(np.uint8), scale, SHIFT)


def shift(operators: Iterable[OperatorPart], others: Iterable[TensorPart]) -> None:
    """Makes the int8 values of operators and of `others` uint8.

    others: inputs of a subgraph that no operator reads are among them: control flow gives them uint8."""
    tensors = {t for op in operators for t in (*op.inputs, *op.outputs) if t is not None} | set(others)
    for tensor in tensors:
        if tensor.type_name != "INT8":
            continue
        data = tensor.data if tensor.is_constant else None
        tensor.quantization.zero_point = np.asarray(tensor.quantization.zero_point) + SHIFT
        tensor.type = "uint8"
        if data is not None:
            tensor.data = (data.astype(np.int16) + SHIFT).astype(np.uint8)
