# SPDX-License-Identifier: Apache-2.0
"""Values inside LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF that are not tensors of the float model.

Integer kernels need their ranges.  `inner` computes the values from an operator's input and states; a Calibration
stores each range under the index of one of the operator's input tensors, which `inner` yields with the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Operator

Floats = NDArray[np.float32]
LSTMS = ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
# Positions of an LSTM's inputs: the first of four gates (input, forget, modulation, output), of three peepholes.
WEIGHTS, RECURRENT, PEEPHOLE, BIAS, NORM, GATES = 1, 5, 9, 12, 20, 4
PROJECTION, PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
PEEPHOLE_OF = {0: 0, 1: 1, 3: 2}  # the modulation has none
FEATURES, TIME, SVDF_BIAS, SVDF_STATE = 1, 2, 3, 4  # positions of an SVDF's inputs

# An LSTM's intermediate tensors, and the inputs under whose names and indices the ranges of their values are.
INTERMEDIATES = (NORM, NORM + 1, NORM + 2, NORM + 3, PROJECTION)

Tensors = Callable[[int], "NDArray[Any] | None"]


def inner_indices(operator: Operator) -> list[int]:
    """The indices under which `inner` yields values; [] for other operators."""
    if operator.name == "SVDF":
        positions = [SVDF_STATE]
    elif operator.name in LSTMS:
        positions = [PROJECTION, CELL_STATE, *range(NORM, NORM + GATES)]
    else:
        return []
    inputs = operator.inputs
    return [tensor.index for i in positions if i < len(inputs) and (tensor := inputs[i]) is not None]


def inside(name: str) -> str:
    """The name of values that are kept under a constant's index."""
    return f"{name} (inside)"


def inner(operator: Operator, view: Callable[[int], NDArray[Any]]) -> Iterator[tuple[int, Floats]]:
    """Yields (tensor index, float32 values) of an operator that is about to run.

    SVDF: the products that enter its state.  LSTM: after each step the cell state, the input of each gate's layer
    normalization, and the input of the projection.  Nothing where the operator's tensors do not fit each other.
    view: the array of a tensor by its index.
    """
    indices = [-1 if tensor is None else tensor.index for tensor in operator.inputs]

    def tensor(position: int) -> NDArray[Any] | None:
        there = position < len(indices) and indices[position] >= 0
        return np.asarray(view(indices[position])) if there else None

    try:
        with np.errstate(all="ignore"):
            if operator.name == "SVDF":
                x, features = tensor(0), tensor(FEATURES)
                found = [] if x is None or features is None else [(SVDF_STATE, x @ features.T)]
            else:
                found = list(_lstm(operator.options, tensor))
    except (ValueError, IndexError, TypeError):
        return
    for position, values in found:
        yield indices[position], values


def _logistic(x: Floats) -> Floats:
    made: Floats = np.float32(1) / (np.float32(1) + np.exp(-x))
    return made


def _lstm(options: Mapping[str, Any], tensor: Tensors) -> Iterator[tuple[int, Floats]]:
    x, state, cell = tensor(0), tensor(OUTPUT_STATE), tensor(CELL_STATE)
    if x is None or state is None or cell is None:
        return
    h, c = state.astype(np.float32), cell.astype(np.float32)
    steps = x[None] if x.ndim == 2 else x if options.get("time_major") else x.swapaxes(0, 1)
    gates = [_Gate(gate, tensor) for gate in range(GATES)]
    projection, bias = tensor(PROJECTION), tensor(PROJECTION_BIAS)
    for step in steps:
        normed = [gate.sum(step, h, c) for gate in gates[:3]]
        for position, found in enumerate(normed):
            if found is not None and gates[position].norm is not None:
                yield NORM + position, found
        given = [None if found is None else gate.finish(found) for gate, found in zip(gates, normed, strict=False)]
        if given[1] is None or given[2] is None:
            raise ValueError("only the input gate may be left out")
        forget = _logistic(given[1])
        admitted = 1 - forget if given[0] is None else _logistic(given[0])
        c = forget * c + admitted * np.tanh(given[2])
        clip = float(options.get("cell_clip") or 0)
        c = np.clip(c, -clip, clip) if clip > 0 else c
        yield CELL_STATE, c
        last = gates[3].sum(step, h, c)
        if last is None:
            raise ValueError("only the input gate may be left out")
        if gates[3].norm is not None:
            yield NORM + 3, last
        h = _logistic(gates[3].finish(last)) * np.tanh(c)
        if projection is not None:
            yield PROJECTION, h
            h = h @ projection.T + (0 if bias is None else bias)
            clip = float(options.get("proj_clip") or 0)
            h = np.clip(h, -clip, clip) if clip > 0 else h


class _Gate:
    """A gate's weights; the layer normalization is optional."""

    def __init__(self, gate: int, tensor: Tensors) -> None:
        self.weights, self.recurrent = tensor(WEIGHTS + gate), tensor(RECURRENT + gate)
        self.peephole = tensor(PEEPHOLE + PEEPHOLE_OF[gate]) if gate in PEEPHOLE_OF else None
        self.bias, self.norm = tensor(BIAS + gate), tensor(NORM + gate)

    def sum(self, x: Floats, h: Floats, c: Floats) -> Floats | None:
        """The products of input, state and peephole, without the bias; None: the gate is left out."""
        if self.weights is None or self.recurrent is None:
            return None
        made: Floats = x @ self.weights.T + h @ self.recurrent.T
        return made if self.peephole is None else np.asarray(made + self.peephole * c, np.float32)

    def finish(self, sums: Floats) -> Floats:
        if self.norm is not None:
            spread = np.sqrt(sums.var(-1, keepdims=True) + 1e-8)
            sums = (sums - sums.mean(-1, keepdims=True)) / spread * self.norm
        return sums if self.bias is None else np.asarray(sums + self.bias, np.float32)
