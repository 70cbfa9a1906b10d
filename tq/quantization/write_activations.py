# SPDX-License-Identifier: Apache-2.0
"""Writes a choice into its graph: integer operators with their weights, biases, constants and parameters, and the
QUANTIZE and DEQUANTIZE around them.

Of constants each operator reads the quantized values that it needs; the float constant itself becomes them where
nothing else reads it.  Arithmetic: rule "mlir" of tq.choose_quantization_params, tq.fit_scales_to_bias; biases of int16
operators are int64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.quantization import recurrent, unsigned
from tq.quantization.boundaries import Boundary, boundaries
from tq.quantization.choice import Choice
from tq.quantization.grids import Weights
from tq.quantization.parameters import of_scale
from tq.quantization.ranges import Parameters
from tq.quantization.recipes import WEIGHTS
from tq.specification.limits import LIMITS
from tq.specification.table import INSTEAD

Floats = NDArray[np.float32]

# The 64-bit requantization takes biases of at most 2^47; half of that is left to sums.
_MOST_BIAS = 2.0**46
_NARROW = "its bias needs a wider scale"


class _Insertion(NamedTuple):
    place: int  # in the order of operators before any is inserted
    order: int
    operator: str
    source: TensorPart
    target: TensorPart


def write(
    choice: Choice, per_axis: bool, narrow: Collection[OperatorPart] = (), is_unsigned: bool = False
) -> list[OperatorPart]:
    """Changes the graph.  Returns the integer operators and what was put between.

    narrow: operators whose weights are to be int4, where their kernels take these.
    is_unsigned: all integers become uint8."""
    if not choice.operators and not choice.view.ends.get(choice.graph):
        return []
    found = boundaries(choice)
    for op in choice.operators:
        if op.builtin_name in INSTEAD:
            _become_product(op)
    writer = _Writer(choice, per_axis, narrow, is_unsigned)
    for op in choice.operators:
        writer.weights(op)
    for op in choice.operators:
        writer.constants(op)
    for boundary in found:
        writer.boundary(boundary)
    writer.rewire()
    made = [*choice.operators, *writer.insert()]
    if is_unsigned:
        unsigned.shift(made)
    return made


def _become_product(op: OperatorPart) -> None:
    """The operator as a MUL: tq.specification.table.INSTEAD."""
    graph, inputs = op.subgraph, op.inputs
    x, divisor, y = inputs[0], inputs[-1], op.outputs[0]
    name = "" if y is None else y.name
    if op.builtin_name == "SQUARE":
        other = x
    elif op.builtin_name == "NEG":
        other = graph.constant(f"{name}_minus", np.float32(-1), shape=())
    else:
        assert divisor is not None
        other = graph.constant(f"{divisor.name}_reciprocal", np.float32(1) / np.asarray(divisor.data))
    activation = op.options.get("fused_activation_function")
    op.become("MUL", [x, other], {} if activation is None else {"fused_activation_function": activation})


class _Writer:
    """Writes the constants of one operator after another, then the boundaries, then lets operators read them."""

    def __init__(self, choice: Choice, per_axis: bool, narrow: Collection[OperatorPart], is_unsigned: bool) -> None:
        self._is_unsigned = is_unsigned
        self._int4 = frozenset(op for op in narrow if "int4" in _types_of(op))
        self._choice, self._view, self._graph, self._per_axis = choice, choice.view, choice.graph, per_axis
        self._places = {op: place for place, op in enumerate(self._graph.operators)}
        self._reads = Counter(index for op in self._graph.operators for index in op.input_indices)
        self._reads.update(tensor.index for tensor in self._graph.outputs if tensor is not None)
        self._constants: dict[tuple[OperatorPart, int], TensorPart] = {}  # what an operator reads at a place instead
        self._made: dict[tuple[TensorPart, str, bytes, int], TensorPart] = {}  # constants by what they were made of
        self._integers: dict[TensorPart, TensorPart] = {}  # what integer operators read for a float tensor
        self._floats: dict[TensorPart, TensorPart] = {}  # what float operators read for an integer tensor
        self._narrow: dict[TensorPart, TensorPart] = {}  # int8 values of int16 activations that are weights
        self._insertions: list[_Insertion] = []

    # -- weights and biases

    def weights(self, op: OperatorPart) -> None:
        view, row = self._view, self._view.row(op)
        if row.recurrent:
            self._recurrent(op)
        weights, bias = view.weights(op), view.bias(op)
        if row.weights is None or weights is None:
            return
        place, data = next((i, tensor) for i, tensor in view.read(op) if i != row.weights)
        constant = self._choice.parameters.of_constant
        input_scale = (constant(op, place, data) if data.is_constant else self._choice.of(data)).scale
        try:
            if view.has_constant_weights(op):
                write = self._unsigned_weights if self._is_unsigned else self._constant_weights
                scale = write(op, row.weights, weights, bias, input_scale)
            else:
                scale = np.atleast_1d(self._computed_weights(op, row.weights, weights))
            self._bias(op, bias, np.asarray(np.float32(input_scale) * scale, np.float32))
        except ValueError as error:
            raise ValueError(f"{weights!r} of operator {op.name}: {error}") from None

    def _recurrent(self, op: OperatorPart) -> None:
        inputs = op.inputs

        def put(place: int, values: NDArray[Any], type: str, scale: np.float32) -> None:
            tensor = inputs[place]
            assert tensor is not None
            self._constants[op, place] = self._constant(tensor, values, type, np.array([scale], np.float32))

        x, y = (self._choice.of(tensor) for tensor in (inputs[0], op.outputs[0]) if tensor is not None)
        recurrent.write(op, x, y, self._view.ranges, put)

    def _constant_weights(
        self, op: OperatorPart, place: int, weights: TensorPart, bias: TensorPart | None, input_scale: np.float32
    ) -> Floats:
        """Quantizes weights, and gives their scales."""
        axis = self._view.row(op).axis if self._per_axis else None
        data = np.asarray(weights.data)
        type_ = "int4" if op in self._int4 else "int8"
        made = self._on_grid(op, weights, data, axis) or _own_scales(data, axis, type_)
        if bias is not None and bias.data is not None:
            fitted = self._fitted(made.scale, input_scale, bias.data)
            if not np.array_equal(fitted, made.scale):
                self._view.ranges.grids.leave(weights, _NARROW)
                made = _own_scales(data, axis if np.ndim(fitted) else None, type_, fitted)
        if made.is_on_grid:
            self._view.ranges.grids.note(weights)
        scales = np.atleast_1d(np.asarray(made.scale, np.float32))
        self._constants[op, place] = self._constant(weights, made.values, made.type, scales, axis or 0)
        return scales

    def _unsigned_weights(
        self, op: OperatorPart, place: int, weights: TensorPart, bias: TensorPart | None, input_scale: np.float32
    ) -> Floats:
        data = np.asarray(weights.data)
        made = unsigned.weights(data, self._view.ranges.grids.get(weights))
        if bias is not None and bias.data is not None:
            fitted = np.float32(self._fitted(np.asarray(made.scale), input_scale, bias.data))
            if fitted != made.scale:
                self._view.ranges.grids.leave(weights, _NARROW)
                made = unsigned.of_scale(data, fitted)
        if made.is_on_grid:
            self._view.ranges.grids.note(weights)
        else:
            self._view.ranges.grids.leave(weights, "recipe 'uint8' takes one scale")
        scales = np.array([made.scale], np.float32)
        self._constants[op, place] = self._constant(weights, made.values, "uint8", scales, zero_point=made.zero_point)
        return scales

    def _on_grid(self, op: OperatorPart, weights: TensorPart, data: Floats, axis: int | None) -> Weights | None:
        """The weights on the grid that training, the caller or the file chose; None: they have none, or leave it."""
        grid = self._view.ranges.grids.get(weights)
        if grid is None:
            return None
        if grid.source == "FAKE_QUANT" and grid.most > np.iinfo(np.int8).max:
            raise ValueError("FAKE_QUANT of 16 bits; no kernel takes int16 weights, num_bits 4 or 8 is needed")
        types = ("int4",) if op in self._int4 else _types_of(op)
        made = grid.weights(data, axis, types)
        if made is None:
            self._view.ranges.grids.leave(weights)
        return made

    def _computed_weights(self, op: OperatorPart, place: int, weights: TensorPart) -> np.float32:
        """The scale of computed weights: int8 activations, and beside int16 activations int8 values of them."""
        if self._view.type == "int8":
            return self._choice.of(weights).scale
        if weights not in self._narrow:
            if not self._view.ranges.knows(weights):
                raise ValueError(
                    f"operator {op.index} ({op.name}) computes with {weights.name!r}, whose range is not known"
                )
            most = max(map(abs, self._view.ranges.of(weights)))
            made = _core.choose_quantization_params(-most, most, "int8", symmetric=True, narrow_range=True, rule="mlir")
            twin = self._twin(weights, f"{weights.name}_int8")
            twin.type = "int8"
            twin.quantization = {"scale": [made.scale], "zero_point": [0], "min": [-most], "max": [most]}
            self._narrow[weights] = twin
            place_behind = self._place_behind(self._view.producers.get(weights))
            self._insertions.append(_Insertion(place_behind, 2, "QUANTIZE", weights, twin))
        self._constants[op, place] = self._narrow[weights]
        return np.float32(self._narrow[weights].quantization.scale[0])

    def _fitted(self, scale: Floats, input_scale: np.float32, bias: Floats) -> Floats:
        """Scales of weights with which the bias fits its type."""
        if self._view.type == "int8":
            return np.asarray(_core.fit_scales_to_bias(scale, input_scale, bias)[0])
        least = np.abs(bias) / np.float32(_MOST_BIAS) / input_scale
        if not np.ndim(scale):
            least = least.max(initial=0)
        return np.maximum(scale, np.asarray(least, np.float32))

    def _bias(self, op: OperatorPart, bias: TensorPart | None, scale: Floats) -> None:
        row = self._view.row(op)
        if row.bias is None or (bias is None and not row.needs_bias):
            return
        type_ = "int32" if self._view.type == "int8" else "int64"
        if bias is None:
            (output, *_) = self._view.outputs(op)
            channels = output.shape[-1]
            made = self._graph.add_tensor(
                f"{output.name}_bias", (channels,), type_, data=np.zeros(channels, type_), scale=scale
            )
        else:
            values = np.asarray(_core.quantize_bias(np.asarray(bias.data), scale, 1, dtype=type_))
            made = self._constant(bias, values, type_, scale)
        self._constants[op, row.bias] = made

    # -- other constants

    def constants(self, op: OperatorPart) -> None:
        """Writes the constants that kernels read like activations."""
        for place, tensor in self._view.read(op):
            if tensor.is_constant:
                p = self._choice.parameters.of_constant(op, place, tensor)
                type_ = "int8" if self._view.row(op).narrow == place else self._view.type
                values = _core.quantize(np.asarray(tensor.data), p.scale, p.zero_point, dtype=type_)
                made = self._constant(tensor, values, type_, np.array([p.scale]), zero_point=p.zero_point)
                self._constants[op, place] = made
                self._note(tensor, type_, p)

    def _note(self, tensor: TensorPart, type: str, p: Parameters) -> None:
        """Whether a constant that is read like an activation got the parameters of its grid, or its range took part in
        those of the group."""
        grids = self._view.ranges.grids
        grid = grids.get(tensor)
        if grid is None:
            return
        if grid.parameters(type, LIMITS[type]) == (float(p.scale), int(p.zero_point)):
            grids.note(tensor)
        elif grid.ends is not None:
            grids.use(tensor)

    def _constant(
        self, tensor: TensorPart, values: NDArray[Any], type: str, scale: Floats, axis: int = 0, zero_point: int = 0
    ) -> TensorPart:
        """The constant with these quantized values: the float one itself where nothing else reads it."""
        key = (tensor, type, scale.tobytes(), zero_point)
        if key in self._made:
            return self._made[key]
        target = tensor
        if self._reads[tensor.index] > 1:
            target = self._made[key] = self._graph.add_tensor(f"{tensor.name}_{type}", tensor.shape)
        target.type = type
        target.quantization = {
            "scale": scale,
            "zero_point": np.full(len(scale), zero_point, np.int64),
            "quantized_dimension": axis,
        }
        target.data = values
        return target

    # -- activations

    def _set(self, tensor: TensorPart, p: Parameters) -> None:
        tensor.type = self._view.type
        tensor.quantization = {"scale": [p.scale], "zero_point": [p.zero_point], "min": [p.low], "max": [p.high]}

    def _twin(self, tensor: TensorPart, name: str) -> TensorPart:
        """A new tensor of the same real values."""
        made = self._graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)
        self._view.ranges.alias(made, tensor)
        return made

    def _place_behind(self, producer: OperatorPart | None) -> int:
        return 0 if producer is None else self._places[producer] + 1

    def boundary(self, boundary: Boundary) -> None:
        tensor, type_ = boundary.tensor, self._view.type
        place = self._place_behind(boundary.producer)
        if boundary.quantize:
            twin = self._integers[tensor] = self._twin(tensor, f"{tensor.name}_{type_}")
            self._set(twin, boundary.parameters)
            self._insertions.append(_Insertion(place, 0, "QUANTIZE", tensor, twin))
            return
        self._set(tensor, boundary.parameters)
        self._integers[tensor] = tensor
        if boundary.demanded is not None and boundary.producer is not None:
            fixed = self._twin(tensor, f"{tensor.name}_fixed")
            self._set(fixed, of_scale(self._view.limits, *boundary.demanded))
            boundary.producer.outputs = [fixed if t == tensor else t for t in boundary.producer.outputs]
            self._insertions.append(_Insertion(place, 0, "QUANTIZE", fixed, tensor))
        if boundary.dequantize:
            name = tensor.name
            if boundary.is_output:
                tensor.name = f"{name}_{type_}"
            real = self._floats[tensor] = self._twin(tensor, name if boundary.is_output else f"{name}_float32")
            self._insertions.append(_Insertion(place, 1, "DEQUANTIZE", tensor, real))

    def rewire(self) -> None:
        """Lets operators, outputs and signatures read what was made for them."""
        for (op, place), made in self._constants.items():
            op.set_input(place, made)
        for op in self._graph.operators:
            is_integer = op in self._choice.operators
            if is_integer and op in self._view.ends:
                self._rewire_ends(op)
            else:
                op.replace_inputs(self._integers if is_integer else self._floats)
        kept = self._view.graph_ends("outputs")
        self._graph.replace_ends("outputs", {t: real for t, real in self._floats.items() if t not in kept})
        for op in self._choice.operators if self._view.type == "int16" else ():
            op.options.update(self._view.row(op).options)

    def _rewire_ends(self, op: OperatorPart) -> None:
        """Control flow hands over integers at some places, floats at others."""
        ends = self._view.ends[op]
        for place, tensor in enumerate(op.inputs):
            if tensor is not None:
                known = self._integers if ("inputs", place) in ends else self._floats
                op.set_input(place, known.get(tensor, tensor))

    def insert(self) -> list[OperatorPart]:
        """Puts QUANTIZE and DEQUANTIZE in, and takes float constants away that nothing reads any more."""
        rows = sorted(self._insertions, key=lambda row: row[:2], reverse=True)
        made = [self._graph.add_operator(row.operator, [row.source], [row.target], at=row.place) for row in rows]
        self._graph.remove_unused(dict.fromkeys(key[0] for key in self._made))
        return made


def _types_of(op: OperatorPart) -> tuple[str, ...]:
    """The types of weights that its kernels take."""
    row = WEIGHTS.get(op.builtin_name or "")
    return () if row is None else row.integer


def _own_scales(data: Floats, axis: int | None, type: str, scale: Floats | None = None) -> Weights:
    """Weights with the scales of their own values, or with these."""
    made = _core.quantize_weights(data, axis, type, scale=scale)
    return Weights(made.codes, made.scale if scale is None else scale, type)


def join(made: Sequence[OperatorPart]) -> list[OperatorPart]:
    """Where a DEQUANTIZE stands before a QUANTIZE of another type, one QUANTIZE does both.  Returns the operators that
    are left."""
    if not made:
        return []
    graph = made[0].subgraph
    producers = {tensor: op for op in graph.operators for tensor in op.outputs if tensor is not None}
    uses = Counter(index for op in graph.operators for index in op.input_indices)
    uses.update(tensor.index for tensor in graph.outputs if tensor is not None)
    ours, gone = set(made), set[OperatorPart]()
    tensors: set[TensorPart] = set()
    for op in made:
        real = op.inputs[0] if op.name == "QUANTIZE" else None
        source = producers.get(real) if real is not None else None
        if real is None or source is None or source.name != "DEQUANTIZE" or source not in ours:
            continue
        op.set_input(0, source.inputs[0])
        uses[real.index] -= 1
        if not uses[real.index]:
            gone.add(source)
            tensors.add(real)
    for op in gone:
        graph.remove_operator(op)
    graph.remove_tensors(tensors)
    return [op for op in made if op not in gone]
