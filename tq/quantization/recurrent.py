# SPDX-License-Identifier: Apache-2.0
"""Recurrent operators as integers: LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF with int8 activations.

    weights        int8, one scale a matrix; SVDF's weights of time int16, of which 10 bits are used
    cell state     int16, its scale a power of two
    SVDF's state   int16
    peepholes, layer normalizations  int16
    biases         int32: s_input * s_weights; behind a layer normalization s_norm * 2^-10; of SVDF s_state * s_time

Source: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc, tflite/kernels/lstm_eval.cc, svdf.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization.grids import NARROW, own_scales, passes
from tq.quantization.ranges import Parameters, Ranges
from tq.quantization.records import Constant, Intermediate, Intermediates, Record, State
from tq.quantization.view import is_float
from tq.running.recurrent import (
    BIAS,
    CELL_STATE,
    FEATURES,
    GATES,
    NORM,
    OUTPUT_STATE,
    PEEPHOLE,
    PEEPHOLE_OF,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT,
    SVDF_BIAS,
    SVDF_STATE,
    TIME,
    WEIGHTS,
    Floats,
)  # fmt: skip

TIME_MOST = 511  # of 10 bits
_NORM_SHIFT = 2.0**-10

Inputs = Sequence["TensorPart | None"]


def inner_states(op: OperatorPart) -> list[TensorPart]:
    """The tensors under which calibration keeps the ranges of values inside the operator."""
    indices = [SVDF_STATE] if op.name == "SVDF" else [PROJECTION, CELL_STATE, *range(NORM, NORM + GATES)]
    return [tensor for index in indices if (tensor := _at(op.inputs, index)) is not None]


def is_eligible(op: OperatorPart, readers: Mapping[TensorPart, Sequence[OperatorPart]], ranges: Ranges) -> bool:
    """Whether it has an integer kernel as it is: constant weights, states that nothing else reads, known ranges."""
    inputs, outputs = op.inputs, op.outputs
    if len(outputs) != 1 or outputs[0] is None or not _is_complete(op.name, inputs):
        return False
    if inputs[0] is None or inputs[0].is_constant or not (_fits_svdf if op.name == "SVDF" else _fits_lstm)(op):
        return False
    states = [SVDF_STATE] if op.name == "SVDF" else [OUTPUT_STATE, CELL_STATE]
    indices = (
        [FEATURES, TIME, SVDF_BIAS] if op.name == "SVDF" else [i for i in range(1, NORM + GATES) if i not in states]
    )
    for index in states:
        state = _at(inputs, index)
        if state is None or not state.is_variable or len(readers[state]) > 1:
            return False
    weights = [t for index in indices if (t := _at(inputs, index)) is not None]
    if any(not is_float(t) or not t.is_constant or t.is_sparse for t in weights):
        return False
    return all(ranges.knows(tensor) for tensor in inner_states(op))


def _fits_svdf(op: OperatorPart) -> bool:
    return _activation(op) == "RELU"


def _fits_lstm(op: OperatorPart) -> bool:
    inputs = op.inputs
    kernel = getattr(op.options.get("kernel_type"), "name", "FULL")
    if _activation(op) != "TANH" or kernel != "FULL" or len(inputs) not in (20, 24):
        return False
    state, cell = _at(inputs, OUTPUT_STATE), _at(inputs, CELL_STATE)
    if op.options.get("diagonal_recurrent_tensors") or state is None or cell is None:
        return False
    # Beside a projection, LiteRT takes as many peepholes as there are outputs.
    has_both = _at(inputs, PROJECTION) is not None and any(_at(inputs, PEEPHOLE + i) is not None for i in range(3))
    return not has_both or state.shape == cell.shape


def _is_complete(name: str, inputs: Inputs) -> bool:
    """Whether no input that the kernel needs is left out; a whole input gate may be."""
    if name == "SVDF":
        return all(_at(inputs, index) is not None for index in (0, FEATURES, TIME, SVDF_STATE))
    normed = [_at(inputs, NORM + gate) is not None for gate in range(GATES)]
    for gate in range(GATES):
        parts = [_at(inputs, first + gate) is not None for first in (WEIGHTS, RECURRENT, BIAS)]
        left_out = gate == 0 and not any(parts)
        if not left_out and (not all(parts) or normed[gate] != normed[1]):
            return False
    return True


def _activation(op: OperatorPart) -> str:
    return str(getattr(op.options.get("fused_activation_function"), "name", ""))


def _at(inputs: Inputs, index: int) -> TensorPart | None:
    return inputs[index] if index < len(inputs) else None


def plan(op: OperatorPart, x: Parameters, y: Parameters, ranges: Ranges) -> list[Record]:
    """The operator's integer weights, states and intermediate tensors.  x, y: of its input and output."""
    planner = _Planner(op, x, y, ranges)
    if op.name == "SVDF":
        planner.svdf()
    else:
        planner.lstm()
    return planner.made


class _Planner:
    def __init__(self, op: OperatorPart, x: Parameters, y: Parameters, ranges: Ranges) -> None:
        self._op, self._inputs, self._x, self._y, self._ranges = op, op.inputs, x, y, ranges
        self.made: list[Record] = []

    def svdf(self) -> None:
        self._matrix(FEATURES)
        time = self._symmetric(TIME, TIME_MOST)
        state, _ = self._inner(SVDF_STATE, "int16")
        self._state(SVDF_STATE, "int16", state, 0)
        self._bias(SVDF_BIAS, state * time)

    def lstm(self) -> None:
        cell = _core.choose_quantization_params(*self._range(CELL_STATE), "int16", rule="power-of-two")
        # The kernel takes powers from 2^-15 to 2^-9; tanh is 1 at 64, the end of the greatest.
        scale = np.clip(np.float32(cell.scale), np.float32(2.0**-15), np.float32(2.0**-9))
        self._state(CELL_STATE, "int16", scale, 0)
        self._state(OUTPUT_STATE, "int8", self._y.scale, self._y.zero_point)
        gates = [self._gate(gate) for gate in range(GATES)]
        hidden = self._y.scale, self._y.zero_point
        if _at(self._inputs, PROJECTION) is not None:
            hidden = self._inner(PROJECTION, "int8")
            self._bias(PROJECTION_BIAS, hidden[0] * self._matrix(PROJECTION))
        (output,) = self._op.outputs
        name = "" if output is None else output.name
        inner = [Intermediate(f"{name}_gate{gate}", "int16", scale) for gate, scale in enumerate(gates)]
        self.made.append(Intermediates(self._op, (*inner, Intermediate(f"{name}_hidden", "int8", *hidden))))

    def _gate(self, gate: int) -> np.float32 | None:
        """The scale of its intermediate tensor, which only a layer normalization has."""
        if _at(self._inputs, WEIGHTS + gate) is None:
            return None
        bias, norm = _at(self._inputs, BIAS + gate), _at(self._inputs, NORM + gate)
        self._matrix(RECURRENT + gate)
        if gate in PEEPHOLE_OF and _at(self._inputs, PEEPHOLE + PEEPHOLE_OF[gate]) is not None:
            self._symmetric(PEEPHOLE + PEEPHOLE_OF[gate], 32767)
        if norm is None:
            weights = self._matrix(WEIGHTS + gate, None if bias is None else bias.data)
            self._bias(BIAS + gate, self._x.scale * weights)
            return None
        self._matrix(WEIGHTS + gate)
        inner, _ = self._inner(NORM + gate, "int16")
        self._bias(BIAS + gate, np.float32(self._symmetric(NORM + gate, 32767) * np.float32(_NORM_SHIFT)))
        return inner

    def _tensor(self, index: int) -> TensorPart:
        """An input that is_eligible found there."""
        tensor = self._inputs[index]
        assert tensor is not None
        return tensor

    def _data(self, index: int) -> Floats:
        return np.asarray(self._tensor(index).data, np.float32)

    def _range(self, index: int) -> tuple[float, float]:
        low, high = self._ranges.of(self._tensor(index))
        return min(low, 0.0), max(high, 0.0)

    def _inner(self, index: int, type_: str) -> tuple[np.float32, int]:
        """The scale and zero point of values inside the operator: chosen for them, or of their range."""
        chosen = self._ranges.trained(self._tensor(index))
        if chosen is not None and chosen.parameters is not None and chosen.type == type_:
            return np.float32(chosen.parameters.scale), int(chosen.parameters.zero_point)
        made = _core.choose_quantization_params(*self._range(index), type_, rule="mlir")
        return np.float32(made.scale), int(made.zero_point)

    def _state(self, index: int, type_: str, scale: np.float32, zero: int) -> None:
        self.made.append(State(self._op, self._tensor(index), type_, scale, zero))

    def _put(self, index: int, values: NDArray[Any], type_: str, scale: np.float32, is_on_grid: bool = False) -> None:
        scales, tensor = np.array([scale], np.float32), self._tensor(index)
        self.made.append(Constant(self._op, index, tensor, values, type_, scales, is_on_grid=is_on_grid))

    def _matrix(self, index: int, bias: Floats | None = None) -> np.float32:
        """int8, and the scale, grown where the bias would not fit."""
        tensor, data, grids = self._tensor(index), self._data(index), self._ranges.grids
        grid = grids.get(tensor)
        found = None if grid is None else grid.weights(data, None, ("int8",))
        if found is None:
            grids.leave(tensor, passes())
        made, is_on_grid = found or own_scales(data, None, "int8"), found is not None
        scale = np.float32(made.scale)
        if bias is not None:
            fitted = np.float32(_core.fit_scales_to_bias(scale, self._x.scale, bias)[0])
            if fitted != scale:
                grids.leave(tensor, NARROW)
                made, scale, is_on_grid = own_scales(data, None, "int8", np.asarray(fitted)), fitted, False
        self._put(index, made.values, "int8", scale, is_on_grid)
        return scale

    def _symmetric(self, index: int, most: int) -> np.float32:
        """int16 from -most to most, and the scale."""
        data = self._data(index)
        if not np.isfinite(data).all():
            raise ValueError(f"{self._tensor(index)!r} holds values that are not finite")
        grid = self._ranges.grids.get(self._tensor(index))
        found = None if grid is None else grid.symmetric(data, most)
        if found is None:
            self._ranges.grids.leave(self._tensor(index), passes())
            bound = np.abs(data).max(initial=0)
            scale = np.float32(bound / np.float32(most)) if bound > 0 else np.float32(1)
            found = np.asarray(_core.quantize(data, scale, 0, dtype="int32")).clip(-most, most), scale
            grid = None
        values, scale = found
        self._put(index, values.astype(np.int16), "int16", scale, grid is not None)
        return scale

    def _bias(self, index: int, scale: np.float32) -> None:
        if _at(self._inputs, index) is not None:
            self._put(index, np.asarray(_core.quantize_bias(self._data(index), scale, 1)), "int32", scale)
