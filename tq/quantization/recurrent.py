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

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.quantization.ranges import Parameters, Ranges
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

# Writes a constant of the operator's: place, quantized values, type, scale.
Put = Callable[[int, NDArray[Any], str, np.float32], None]
Inputs = Sequence["TensorPart | None"]


def inner_states(op: OperatorPart) -> list[TensorPart]:
    """The tensors under which calibration keeps the ranges of values inside the operator."""
    places = [SVDF_STATE] if op.name == "SVDF" else [PROJECTION, CELL_STATE, *range(NORM, NORM + GATES)]
    return [tensor for place in places if (tensor := _at(op.inputs, place)) is not None]


def is_eligible(op: OperatorPart, readers: Mapping[TensorPart, Sequence[OperatorPart]], ranges: Ranges) -> bool:
    """Whether it has an integer kernel as it is: constant weights, states that nothing else reads, known ranges."""
    inputs, outputs = op.inputs, op.outputs
    if len(outputs) != 1 or outputs[0] is None or not _is_complete(op.name, inputs):
        return False
    if inputs[0] is None or inputs[0].is_constant or not (_fits_svdf if op.name == "SVDF" else _fits_lstm)(op):
        return False
    states = [SVDF_STATE] if op.name == "SVDF" else [OUTPUT_STATE, CELL_STATE]
    places = (
        [FEATURES, TIME, SVDF_BIAS] if op.name == "SVDF" else [i for i in range(1, NORM + GATES) if i not in states]
    )
    for place in states:
        state = _at(inputs, place)
        if state is None or not state.is_variable or len(readers[state]) > 1:
            return False
    weights = [t for place in places if (t := _at(inputs, place)) is not None]
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
    """Whether all inputs that the kernel needs are there; a whole input gate may be left out."""
    if name == "SVDF":
        return all(_at(inputs, place) is not None for place in (0, FEATURES, TIME, SVDF_STATE))
    normed = [_at(inputs, NORM + gate) is not None for gate in range(GATES)]
    for gate in range(GATES):
        parts = [_at(inputs, first + gate) is not None for first in (WEIGHTS, RECURRENT, BIAS)]
        left_out = gate == 0 and not any(parts)
        if not left_out and (not all(parts) or normed[gate] != normed[1]):
            return False
    return True


def _activation(op: OperatorPart) -> str:
    return str(getattr(op.options.get("fused_activation_function"), "name", ""))


def _at(inputs: Inputs, place: int) -> TensorPart | None:
    return inputs[place] if place < len(inputs) else None


def write(op: OperatorPart, x: Parameters, y: Parameters, ranges: Ranges, put: Put) -> None:
    """Gives an operator its integer weights, states and intermediate tensors.  x, y: of its input and output."""
    writer = _Writer(op, x, y, ranges, put)
    if op.name == "SVDF":
        writer.svdf()
    else:
        writer.lstm()


class _Writer:
    def __init__(self, op: OperatorPart, x: Parameters, y: Parameters, ranges: Ranges, put: Put) -> None:
        self._op, self._inputs, self._x, self._y, self._ranges, self._put = op, op.inputs, x, y, ranges, put

    def svdf(self) -> None:
        self._matrix(FEATURES)
        time = self._symmetric(TIME, TIME_MOST)
        state, _ = self._inner(SVDF_STATE, "int16")
        self._state(SVDF_STATE, "int16", state, 0)
        self._bias(SVDF_BIAS, state * time)

    def lstm(self) -> None:
        cell = _core.choose_quantization_params(*self._range(CELL_STATE), "int16", rule="power-of-two")
        # The kernel takes powers from 2^-15 to 2^-9; tanh has long been 1 where those end.
        scale = np.clip(np.float32(cell.scale), np.float32(2.0**-15), np.float32(2.0**-9))
        self._state(CELL_STATE, "int16", scale, 0)
        self._state(OUTPUT_STATE, "int8", self._y.scale, self._y.zero_point)
        gates = [self._gate(gate) for gate in range(GATES)]
        hidden = self._y.scale, self._y.zero_point
        if _at(self._inputs, PROJECTION) is not None:
            hidden = self._inner(PROJECTION, "int8")
            self._bias(PROJECTION_BIAS, hidden[0] * self._matrix(PROJECTION))
        (output,) = self._op.outputs
        graph, name = self._op.subgraph, "" if output is None else output.name
        made = [graph.add_tensor(f"{name}_gate{gate}", (), "int16", scale=scale) for gate, scale in enumerate(gates)]
        made.append(graph.add_tensor(f"{name}_hidden", (), "int8", scale=[hidden[0]], zero_point=[hidden[1]]))
        self._op.intermediates = made

    def _gate(self, gate: int) -> list[np.float32] | None:
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
        return [inner]

    def _tensor(self, place: int) -> TensorPart:
        """An input that is_eligible found there."""
        tensor = self._inputs[place]
        assert tensor is not None
        return tensor

    def _data(self, place: int) -> Floats:
        return np.asarray(self._tensor(place).data, np.float32)

    def _range(self, place: int) -> tuple[float, float]:
        low, high = self._ranges.of(self._tensor(place))
        return min(low, 0.0), max(high, 0.0)

    def _inner(self, place: int, type_: str) -> tuple[np.float32, int]:
        """The scale and zero point of values inside the operator: chosen for them, or of their range."""
        chosen = self._ranges.trained(self._tensor(place))
        if chosen is not None and chosen.parameters is not None and chosen.type == type_:
            return np.float32(chosen.parameters.scale), int(chosen.parameters.zero_point)
        made = _core.choose_quantization_params(*self._range(place), type_, rule="mlir")
        return np.float32(made.scale), int(made.zero_point)

    def _state(self, place: int, type_: str, scale: np.float32, zero: int) -> None:
        state = self._tensor(place)
        state.type = type_
        state.quantization = {"scale": [scale], "zero_point": [zero]}

    def _matrix(self, place: int, bias: Floats | None = None) -> np.float32:
        """int8, and the scale, grown where the bias would not fit."""
        tensor, data = self._tensor(place), self._data(place)
        grids = self._ranges.grids
        values, scale = grids.weights(tensor, data) or _own(data)
        if bias is not None:
            fitted = np.float32(_core.fit_scales_to_bias(scale, self._x.scale, bias)[0])
            if fitted != scale:
                grids.leave(tensor, "its bias needs a wider scale")
                values, scale = _own(data, fitted)
        self._put(place, values, "int8", scale)
        return scale

    def _symmetric(self, place: int, most: int) -> np.float32:
        """int16 from -most to most, and the scale."""
        data = self._data(place)
        if not np.isfinite(data).all():
            raise ValueError(f"{self._tensor(place)!r} holds values that are not finite")
        values, scale = self._ranges.grids.symmetric(self._tensor(place), data, most) or _symmetric(data, most)
        self._put(place, values, "int16", scale)
        return scale

    def _bias(self, place: int, scale: np.float32) -> None:
        if _at(self._inputs, place) is not None:
            self._put(place, np.asarray(_core.quantize_bias(self._data(place), scale, 1)), "int32", scale)


def _own(data: Floats, scale: np.float32 | None = None) -> tuple[NDArray[Any], np.float32]:
    """int8 weights with the scale of their own values, or with this one."""
    made = _core.quantize_weights(data, None, "int8", scale=scale)
    return made.codes, np.float32(made.scale) if scale is None else scale


def _symmetric(data: Floats, most: int) -> tuple[NDArray[Any], np.float32]:
    bound = np.abs(data).max(initial=0)
    scale = np.float32(bound / np.float32(most)) if bound > 0 else np.float32(1)
    return _core.quantize(data, scale, 0, dtype="int16").clip(-most, most), scale
