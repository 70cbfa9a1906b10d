# SPDX-License-Identifier: Apache-2.0
"""Recurrent operators as integers: LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF with int8 activations.

    weights        int8, one scale a matrix; SVDF's weights of time int16, of which 10 bits are used
    cell state     int16, its scale a power of two
    SVDF's state   int16
    peepholes, layer normalizations  int16
    biases         int32: s_input * s_weights; behind a layer normalization s_norm * 2^-10; of SVDF s_state * s_time

Besides activations these need the ranges of numbers that are no tensors of the float model, step by step: `inner`
computes them from an operator's input and states, and a Calibration keeps them under the index of the tensor that
INNER names.

Source: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc, tflite/kernels/lstm_eval.cc, svdf.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Operator
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart

if TYPE_CHECKING:
    from collections import Counter

    from tq.groups import Groups
    from tq.static import Static

Floats = NDArray[np.float32]
LSTMS = ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
# Places among an LSTM's inputs: the first of four gates (input, forget, modulation, output), of three peepholes.
_WEIGHTS, _RECURRENT, _PEEPHOLE, _BIAS, _NORM, _GATES = 1, 5, 9, 12, 20, 4
_PROJECTION, _PROJECTION_BIAS, _OUTPUT_STATE, _CELL_STATE = 16, 17, 18, 19
_PEEPHOLE_OF = {0: 0, 1: 1, 3: 2}  # the modulation has none
_FEATURES, _TIME, _SVDF_BIAS, _SVDF_STATE = 1, 2, 3, 4
_TIME_MOST = 511  # of 10 bits
_NORM_SHIFT = 2.0**-10
_HIDDEN = 4  # the intermediate tensor of what is projected

Tensors = Callable[[int], "NDArray[Any] | None"]


# ---- calibration ----


def inner_indices(operator: Operator) -> list[int]:
    """The tensors under whose indices `inner` gives values."""
    if operator.name == "SVDF":
        places = [_SVDF_STATE]
    elif operator.name in LSTMS:
        places = [_PROJECTION, _CELL_STATE, *range(_NORM, _NORM + _GATES)]
    else:
        return []
    inputs = operator.inputs
    return [tensor.index for i in places if i < len(inputs) and (tensor := inputs[i]) is not None]


def inner(operator: Operator, view: Callable[[int], NDArray[Any]]) -> Iterator[tuple[int, Floats]]:
    """(tensor index, values), before the operator runs: what SVDF puts into its state; an LSTM's cell state after each
    step, what each gate gives to its layer normalization, and what is projected.

    view: the array of a tensor's index.  An operator whose tensors do not fit gives nothing.
    """
    indices = [-1 if tensor is None else tensor.index for tensor in operator.inputs]

    def tensor(place: int) -> NDArray[Any] | None:
        there = place < len(indices) and indices[place] >= 0
        return np.asarray(view(indices[place])) if there else None

    try:
        with np.errstate(all="ignore"):
            if operator.name == "SVDF":
                x, features = tensor(0), tensor(_FEATURES)
                found = [] if x is None or features is None else [(_SVDF_STATE, x @ features.T)]
            else:
                found = list(_lstm(operator.options, tensor))
    except (ValueError, IndexError, TypeError):
        return
    for place, values in found:
        yield indices[place], values


def _logistic(x: Floats) -> Floats:
    made: Floats = np.float32(1) / (np.float32(1) + np.exp(-x))
    return made


def _lstm(options: Mapping[str, Any], tensor: Tensors) -> Iterator[tuple[int, Floats]]:
    x, state, cell = tensor(0), tensor(_OUTPUT_STATE), tensor(_CELL_STATE)
    if x is None or state is None or cell is None:
        return
    h, c = state.astype(np.float32), cell.astype(np.float32)
    steps = x[None] if x.ndim == 2 else x if options.get("time_major") else x.swapaxes(0, 1)
    gates = [_Gate(gate, tensor) for gate in range(_GATES)]
    projection, bias = tensor(_PROJECTION), tensor(_PROJECTION_BIAS)
    for step in steps:
        normed = [gate.sum(step, h, c) for gate in gates[:3]]
        for place, found in enumerate(normed):
            if found is not None and gates[place].norm is not None:
                yield _NORM + place, found
        given = [None if found is None else gate.finish(found) for gate, found in zip(gates, normed, strict=False)]
        forget = _logistic(given[1])  # type: ignore[arg-type]
        admitted = 1 - forget if given[0] is None else _logistic(given[0])
        c = forget * c + admitted * np.tanh(given[2])  # type: ignore[arg-type]
        clip = float(options.get("cell_clip") or 0)
        c = np.clip(c, -clip, clip) if clip > 0 else c
        yield _CELL_STATE, c
        last = gates[3].sum(step, h, c)
        if gates[3].norm is not None:
            yield _NORM + 3, last  # type: ignore[misc]
        h = _logistic(gates[3].finish(last)) * np.tanh(c)  # type: ignore[arg-type]
        if projection is not None:
            yield _PROJECTION, h
            h = h @ projection.T + (0 if bias is None else bias)
            clip = float(options.get("proj_clip") or 0)
            h = np.clip(h, -clip, clip) if clip > 0 else h


class _Gate:
    def __init__(self, gate: int, tensor: Tensors) -> None:
        self.weights, self.recurrent = tensor(_WEIGHTS + gate), tensor(_RECURRENT + gate)
        self.peephole = tensor(_PEEPHOLE + _PEEPHOLE_OF[gate]) if gate in _PEEPHOLE_OF else None
        self.bias, self.norm = tensor(_BIAS + gate), tensor(_NORM + gate)

    def sum(self, x: Floats, h: Floats, c: Floats) -> Floats | None:
        """Without the bias; None: a gate that is left out."""
        if self.weights is None or self.recurrent is None:
            return None
        made: Floats = x @ self.weights.T + h @ self.recurrent.T
        return made if self.peephole is None else np.asarray(made + self.peephole * c, np.float32)

    def finish(self, sums: Floats) -> Floats:
        if self.norm is not None:
            spread = np.sqrt(sums.var(-1, keepdims=True) + 1e-8)
            sums = (sums - sums.mean(-1, keepdims=True)) / spread * self.norm
        return sums if self.bias is None else np.asarray(sums + self.bias, np.float32)


# ---- quantization ----


def can(op: OperatorPart, groups: Groups) -> bool:
    """Whether it has an integer kernel as it is: constant weights, states that nothing else reads, known ranges."""
    inputs, outputs = op.inputs, op.outputs
    if len(outputs) != 1 or outputs[0] is None or not _is_complete(op.name, inputs):
        return False
    if inputs[0] is None or inputs[0].is_constant:
        return False
    if op.name == "SVDF":
        states, constants, fits = [_SVDF_STATE], [_FEATURES, _TIME, _SVDF_BIAS], _activation(op) == "RELU"
        inner_places = states
    else:
        states = [_OUTPUT_STATE, _CELL_STATE]
        constants = [place for place in range(1, _NORM + _GATES) if place not in states]
        kernel = getattr(op.options.get("kernel_type"), "name", "FULL")
        fits = _activation(op) == "TANH" and kernel == "FULL" and len(inputs) in (20, 24)
        fits = fits and not op.options.get("diagonal_recurrent_tensors")
        narrow = _at(inputs, _PROJECTION) is not None and any(_at(inputs, _PEEPHOLE + i) is not None for i in range(3))
        if narrow and _at(inputs, _OUTPUT_STATE).shape != _at(inputs, _CELL_STATE).shape:  # type: ignore[union-attr]
            return False  # LiteRT takes as many peepholes as there are outputs
        inner_places = [
            place for place in (_PROJECTION, _CELL_STATE, *range(_NORM, _NORM + _GATES)) if _at(inputs, place)
        ]
    found = [_at(inputs, place) for place in states]
    if not fits or any(t is None or not t.is_variable or len(groups.readers[t]) > 1 for t in found):
        return False
    weights = [t for place in constants if (t := _at(inputs, place)) is not None]
    if any(int(t.type) != 0 or not t.is_constant or t.is_sparse for t in weights):
        return False
    return all((t := _at(inputs, place)) is not None and groups.ranges.knows(t) for place in inner_places)


def _is_complete(name: str, inputs: tuple[TensorPart | None, ...]) -> bool:
    """Whether there is what the kernel cannot do without; a whole input gate may be left out."""
    if name == "SVDF":
        return all(_at(inputs, place) is not None for place in (0, _FEATURES, _TIME, _SVDF_STATE))
    normed = [_at(inputs, _NORM + gate) is not None for gate in range(_GATES)]
    for gate in range(_GATES):
        parts = [_at(inputs, first + gate) is not None for first in (_WEIGHTS, _RECURRENT, _BIAS)]
        left_out = gate == 0 and not any(parts)
        if not left_out and (not all(parts) or normed[gate] != normed[1]):
            return False
    return True


def _activation(op: OperatorPart) -> str:
    return str(getattr(op.options.get("fused_activation_function"), "name", ""))


def _at(inputs: tuple[TensorPart | None, ...], place: int) -> TensorPart | None:
    return inputs[place] if place < len(inputs) else None


class Recurrent:
    """Gives one operator its integer weights, states and intermediate tensors."""

    def __init__(self, op: OperatorPart, static: Static, counts: Counter[int]) -> None:
        self.op, self.static, self.counts = op, static, counts
        self.inputs = op.inputs
        self.x, self.y = static.of(op.inputs[0]), static.of(op.outputs[0])  # type: ignore[arg-type]

    def run(self) -> None:
        if self.op.name == "SVDF":
            self._svdf()
        else:
            self._lstm()

    def _svdf(self) -> None:
        self._matrix(_FEATURES)
        time = self._symmetric(_TIME, _TIME_MOST)
        state = _core.choose_quantization_params(*self._range(_SVDF_STATE), "int16", rule="mlir")
        self._variable(_SVDF_STATE, "int16", np.float32(state.scale), 0)
        self._bias(_SVDF_BIAS, np.float32(state.scale) * time)

    def _lstm(self) -> None:
        projected = _at(self.inputs, _PROJECTION) is not None
        cell = _core.choose_quantization_params(*self._range(_CELL_STATE), "int16", rule="power-of-two")
        # The kernel takes powers from 2^-15 to 2^-9; tanh has long been 1 where those end.
        scale = np.clip(np.float32(cell.scale), np.float32(2.0**-15), np.float32(2.0**-9))
        self._variable(_CELL_STATE, "int16", scale, 0)
        self._variable(_OUTPUT_STATE, "int8", self.y.scale, self.y.zero_point)
        made = [self._gate(gate) for gate in range(_GATES)]
        hidden = self.y.scale, self.y.zero_point
        if projected:
            found = _core.choose_quantization_params(*self._range(_PROJECTION), "int8", rule="mlir")
            hidden = np.float32(found.scale), int(found.zero_point)
            self._bias(_PROJECTION_BIAS, hidden[0] * self._matrix(_PROJECTION))
        graph, name = self.op.subgraph, self.op.outputs[0].name  # type: ignore[union-attr]
        made = [graph.add_tensor(f"{name}_gate{gate}", (), "int16", scale=scale) for gate, scale in enumerate(made)]
        made.append(graph.add_tensor(f"{name}_hidden", (), "int8", scale=[hidden[0]], zero_point=[hidden[1]]))
        self.op.intermediates = made

    def _gate(self, gate: int) -> Any:
        """The scale of its intermediate tensor, which only a layer normalization has."""
        if _at(self.inputs, _WEIGHTS + gate) is None:
            return None
        bias, norm = _at(self.inputs, _BIAS + gate), _at(self.inputs, _NORM + gate)
        self._matrix(_RECURRENT + gate)
        if gate in _PEEPHOLE_OF and _at(self.inputs, _PEEPHOLE + _PEEPHOLE_OF[gate]) is not None:
            self._symmetric(_PEEPHOLE + _PEEPHOLE_OF[gate], 32767)
        if norm is None:
            weights = self._matrix(_WEIGHTS + gate, None if bias is None else bias.data)
            self._bias(_BIAS + gate, self.x.scale * weights)
            return None
        self._matrix(_WEIGHTS + gate)
        inner = _core.choose_quantization_params(*self._range(_NORM + gate), "int16", rule="mlir")
        self._bias(_BIAS + gate, np.float32(self._symmetric(_NORM + gate, 32767) * np.float32(_NORM_SHIFT)))
        return [np.float32(inner.scale)]

    def _range(self, place: int) -> tuple[float, float]:
        low, high = self.static.ranges.of(self.inputs[place])  # type: ignore[arg-type]
        self.static.ranges.use(self.inputs[place])  # type: ignore[arg-type]
        return min(low, 0.0), max(high, 0.0)

    def _variable(self, place: int, type_: str, scale: np.float32, zero: int) -> None:
        state: TensorPart = self.inputs[place]  # type: ignore[assignment]
        state.type = type_
        state.quantization = {"scale": [scale], "zero_point": [zero]}

    def _matrix(self, place: int, bias: Floats | None = None) -> np.float32:
        """int8, and the scale, grown where the bias would have no code."""
        tensor: TensorPart = self.inputs[place]  # type: ignore[assignment]
        made = _core.quantize_weights(tensor.data, None, "int8")  # type: ignore[arg-type]
        scale = np.float32(made.scale)
        if bias is not None:
            fitted = np.float32(_core.fit_scales_to_bias(scale, self.x.scale, bias)[0])
            if fitted != scale:
                made, scale = _core.quantize_weights(tensor.data, None, "int8", scale=fitted), fitted  # type: ignore[arg-type]
        self._put(place, made.codes, "int8", scale)
        return scale

    def _symmetric(self, place: int, most: int) -> np.float32:
        """int16 codes from -most to most."""
        tensor: TensorPart = self.inputs[place]  # type: ignore[assignment]
        data = np.asarray(tensor.data, np.float32)
        if not np.isfinite(data).all():
            raise ValueError(f"{tensor!r} holds values that are not finite")
        bound = np.abs(data).max(initial=0)
        scale = np.float32(bound / np.float32(most)) if bound > 0 else np.float32(1)
        codes = _core.quantize(data, scale, 0, dtype="int16").clip(-most, most)
        self._put(place, codes, "int16", scale)
        return scale

    def _bias(self, place: int, scale: np.float32) -> None:
        tensor = _at(self.inputs, place)
        if tensor is not None:
            self._put(place, np.asarray(_core.quantize_bias(tensor.data, scale, 1)), "int32", scale)  # type: ignore[arg-type]

    def _put(self, place: int, codes: NDArray[Any], type_: str, scale: np.float32) -> None:
        static, tensor = self.static, self.inputs[place]
        made = static._constant(tensor, codes, type_, np.array([scale], np.float32), 0, self.counts)  # type: ignore[arg-type]
        static.constants[self.op, place] = made
