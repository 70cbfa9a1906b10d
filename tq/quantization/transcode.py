# SPDX-License-Identifier: Apache-2.0
"""tq.transcode: a model of uint8 values as one of int8.

Activations, and constants that are read like them, move by 128 with their zero points: they stand for the same real
values.  Weights get the zero point 0, which int8 kernels take: exact where q - z lies within -127 and 127, else by
another scale, with the bias.  Kernels that take a scale for each channel get it for those channels alone that need it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core, saving
from tq.editing import versions
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.sources import Source, snapshot
from tq.specification.applying import complete
from tq.specification.table import INTEGER

_SHIFT = 128
_MOST = 127
# Operators whose int8 kernels take a scale for each channel in every runtime.
_PER_AXIS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
_BETWEEN = ("QUANTIZE", "DEQUANTIZE")


Factors = NDArray[np.float64]  # one, or one a channel


class Change(NamedTuple):
    """A constant that does not keep its real values, or a tensor that CONCATENATION read with a scale of its own.

    scale: the new one, of several the greatest.  loss: the greatest difference of a real value; steps: the greatest in
    steps of its new scale.  Of a tensor before CONCATENATION: what QUANTIZE rounds otherwise than the uint8 kernel.
    """

    subgraph: int
    tensor: str
    scale: float
    loss: float
    steps: float


class TranscodedModel(bytes):
    """A model, with the constants that lost something by it."""

    changes: tuple[Change, ...] = ()


def transcode(
    model: Source, dtype: str = "int8", output: str | os.PathLike[str] | None = None, *, in_place: bool = False
) -> TranscodedModel:
    """A model whose quantized values are uint8, as one of int8, inputs and outputs too.

    model: a path, bytes or a tq.Model, which stays as it is.
    dtype: "int8".
    output: a path to write the model to as well; the file appears whole or not at all.
    in_place: `output` may be the path of `model`.

    Returns the model's bytes, whose `changes` name the tensors that lost something, and how much: weights of which
    q - z passes 127, and their biases; what QUANTIZE rounds otherwise than a CONCATENATION of several scales.  int8
    kernels may round otherwise than uint8 kernels too, by a step or two: a detection head orders scores that are nearly
    equal otherwise.  Operators without an int8 kernel, and such as take quantized values for what
    they are (CAST, custom ones), keep uint8 between two QUANTIZE, which lose nothing.

    ValueError: dtype is another; the model has no uint8 values with a scale.  OSError: as tq.quantize_model.
    """
    if dtype != "int8":
        raise ValueError(f"dtype is {dtype!r}; uint8 models become 'int8'")
    model = snapshot(model)
    goal = saving.target(output, model=model, in_place=in_place)
    editor = Editor(model)
    try:
        complete(editor)
        graphs = [_Graph(graph) for graph in editor.subgraphs]
        if not any([graph.run() for graph in graphs]):
            raise ValueError("the model has no uint8 values with a scale")
        editor.prune_operator_codes()
        made = TranscodedModel(editor.to_bytes())
        made.changes = tuple(change for graph in graphs for change in graph.changes)
    finally:
        editor.close()
    if goal is not None:
        goal.save(made)
    return made


class _Graph:
    """One subgraph on its way."""

    def __init__(self, graph: SubgraphPart) -> None:
        self._graph = graph
        self.changes: list[Change] = []

    def run(self) -> bool:
        """False: it has no uint8 values."""
        graph = self._graph
        found = [tensor for tensor in graph.tensors if _is_uint8(tensor)]
        if not found:
            return False
        operators = list(graph.operators)
        touched = [op for op in operators if any(t in found for t in (*op.inputs, *op.outputs))]
        for op in touched:
            if _has_int8(op):
                self._weights(op)
        for tensor in found:
            if tensor.type_name == "UINT8":  # those that are left
                _shift(tensor)
        for op in touched:
            if _has_int8(op):
                self._make_equal(op)
                op.share_version(max(op.version, versions.needed(op)))
            else:
                self._keep(op, found)
        return True

    # -- weights

    def _weights(self, op: OperatorPart) -> None:
        row = INTEGER.get(op.builtin_name or "")
        if row is None or row.weights is None:
            return
        weights = op.inputs[row.weights] if row.weights < len(op.inputs) else None
        if weights is None or not weights.is_constant:
            return
        bias = op.inputs[row.bias] if row.bias is not None and row.bias < len(op.inputs) else None
        if _is_uint8(weights):
            axis = row.axis if op.builtin_name in _PER_AXIS else None
            factor = self._move(op, row.weights, weights, axis)
            if factor is not None and bias is not None and bias.is_constant:
                self._rescale(op, row.bias or 0, bias, factor)
        if bias is None and row.needs_bias:
            self._add_bias(op, row.bias or 0)

    def _make_equal(self, op: OperatorPart) -> None:
        """Requantizes what CONCATENATION reads: its uint8 kernel takes several scales, its int8 kernel one."""
        output = op.outputs[0] if op.builtin_name == "CONCATENATION" else None
        for tensor in dict.fromkeys(op.inputs) if output is not None else ():
            if tensor is None or output is None or _same(tensor, output):
                continue
            made = self._graph.add_tensor(
                f"{tensor.name}_requantized", tensor.shape, "int8", shape_signature=tensor.shape_signature
            )
            made.quantization = output.quantization
            quantize = self._graph.insert_before(op, "QUANTIZE", [tensor], [made])
            quantize.share_version(versions.needed(quantize))
            op.replace_inputs({tensor: made})
            self._note_requantized(tensor, output)

    def _note_requantized(self, tensor: TensorPart, output: TensorPart) -> None:
        """By how much QUANTIZE and the uint8 kernel of CONCATENATION differ at most."""
        scale, to = float(tensor.quantization.scale[0]), float(output.quantization.scale[0])
        zero, zero_to = int(_zero_points(tensor)[0]), int(_zero_points(output)[0])
        q = np.arange(-_SHIFT, _SHIFT)
        made = _core.requantize((q - zero).astype(np.int32), float(np.float32(scale) / np.float32(to)), zero_to)
        real = (q - zero) * scale / to
        needed = np.copysign(np.floor(np.abs(real) + 0.5), real) + zero_to
        steps = float(np.abs(made - np.clip(needed, -_SHIFT, _MOST)).max())
        if steps:
            self.changes.append(Change(self._graph.index, tensor.name, to, steps * to, steps))

    def _own(self, op: OperatorPart, place: int, tensor: TensorPart) -> TensorPart:
        """The tensor, or a copy where others read it."""
        if sum(other.input_indices.count(tensor.index) for other in self._graph.operators) == 1:
            return tensor
        made = self._graph.add_tensor(f"{tensor.name}_int8", tensor.shape, tensor.type, data=tensor.data)
        made.quantization = tensor.quantization
        op.set_input(place, made)
        return made

    def _move(self, op: OperatorPart, place: int, tensor: TensorPart, axis: int | None) -> Factors | None:
        """Takes the zero points of weights out.  Returns by how much the scales grew; None: they are the same.

        axis: along which the kernel takes scales; None: it takes one."""
        weights = self._own(op, place, tensor)
        steps = _steps(weights)
        factors: Factors = np.maximum(np.abs(steps).max(initial=0) / _MOST, np.ones(1))
        scale = np.asarray(weights.quantization.scale, np.float32)
        if factors[0] == 1:
            _write(weights, steps, "int8", scale, weights.quantization.quantized_dimension)
            return None
        real, own = steps * _along(scale, weights), weights.quantization.quantized_dimension
        if axis is not None and (scale.size == 1 or axis == own):
            factors, own = _factors(steps, axis), axis
        new = (scale.astype(np.float64) * factors).astype(np.float32)
        each = _along(new, weights, own)
        steps = np.clip(np.rint(real / each), -_MOST, _MOST).astype(np.int64)
        self._note(weights, new, np.abs(real - steps * each), each)
        _write(weights, steps, "int8", new, own)
        return factors

    def _rescale(self, op: OperatorPart, place: int, tensor: TensorPart, factor: Factors) -> None:
        """A bias of weights whose scales grew."""
        bias = self._own(op, place, tensor)
        values = np.asarray(bias.data).astype(np.int64)
        scale = np.asarray(bias.quantization.scale, np.float64)
        new = np.rint(values / factor).astype(np.int64)
        made = (scale * factor if scale.size else scale).astype(np.float32)
        if scale.size:
            self._note(bias, made, np.abs(values - new * factor) * scale, made)
        _write(bias, new, bias.type_name, made, 0)

    def _add_bias(self, op: OperatorPart, place: int) -> None:
        data, weights, output = op.inputs[0], op.inputs[1], op.outputs[0]
        if data is None or weights is None or output is None or not output.shape or output.type_name == "FLOAT32":
            return
        scale = np.asarray(data.quantization.scale * weights.quantization.scale, np.float32)
        zeros = np.zeros(output.shape[-1], np.int32)
        op.set_input(place, self._graph.constant(f"{output.name}_bias", zeros, scale=scale))

    def _note(self, tensor: TensorPart, scale: NDArray[np.float32], error: NDArray[Any], each: NDArray[Any]) -> None:
        """each: the scale of each error."""
        loss, steps = float(error.max(initial=0)), float((error / each).max(initial=0))
        self.changes.append(Change(self._graph.index, tensor.name, float(scale.max()), loss, steps))

    # -- operators that keep uint8

    def _keep(self, op: OperatorPart, found: list[TensorPart]) -> None:
        for place, tensor in enumerate(op.inputs):
            if tensor is not None and tensor in found:
                twin = self._twin(tensor)
                op.set_input(place, twin)
                if _has_data(tensor):
                    twin.data = (np.asarray(tensor.data).astype(np.int16) + _SHIFT).astype(np.uint8)
                else:
                    self._graph.insert_before(op, "QUANTIZE", [tensor], [twin], version=2)
        for tensor in op.outputs:
            if tensor is not None and tensor in found:
                twin = self._twin(tensor)
                op.outputs = [twin if t == tensor else t for t in op.outputs]
                self._graph.insert_after(op, "QUANTIZE", [twin], [tensor], version=2)

    def _twin(self, tensor: TensorPart) -> TensorPart:
        made = self._graph.add_tensor(
            f"{tensor.name}_uint8", tensor.shape, "uint8", shape_signature=tensor.shape_signature
        )
        made.quantization = tensor.quantization
        made.quantization.zero_point = np.asarray(tensor.quantization.zero_point) + _SHIFT
        return made


def _is_uint8(tensor: TensorPart) -> bool:
    scale = np.asarray(tensor.quantization.scale)
    return tensor.type_name == "UINT8" and scale.size > 0 and bool((np.isfinite(scale) & (scale > 0)).all())


def _same(one: TensorPart, other: TensorPart) -> bool:
    a, b = one.quantization, other.quantization
    return np.array_equal(a.scale, b.scale) and np.array_equal(_zero_points(one), _zero_points(other))


def _has_int8(op: OperatorPart) -> bool:
    row = INTEGER.get(op.builtin_name or "")
    return op.builtin_name in _BETWEEN or (row is not None and row.int8 is not None and not row.recurrent)


def _has_data(tensor: TensorPart) -> bool:
    """Files of accelerators' compilers have empty buffers."""
    return tensor.is_constant and tensor.raw_data is not None and len(tensor.raw_data) > 0


def _zero_points(tensor: TensorPart) -> NDArray[np.int64]:
    q = tensor.quantization
    found = np.asarray(q.zero_point, np.int64) if len(q.zero_point) else np.zeros(1, np.int64)
    return np.asarray(np.resize(found, np.shape(q.scale)), np.int64)


def _factors(steps: NDArray[np.int64], axis: int) -> Factors:
    """By how much the scale of each channel grows."""
    others = tuple(place for place in range(steps.ndim) if place != axis)
    return np.asarray(np.maximum(np.abs(steps).max(axis=others, initial=0) / _MOST, 1.0))


def _along(values: NDArray[Any], tensor: TensorPart, axis: int | None = None) -> NDArray[Any]:
    """One value a channel, to be multiplied with the tensor's.  axis: the channels'; None: that of its scales."""
    shape = [1] * len(tensor.shape)
    if values.size > 1:
        shape[tensor.quantization.quantized_dimension if axis is None else axis] = -1
    return np.asarray(values.reshape(shape), np.float64 if values.dtype.kind == "f" else np.int64)


def _steps(tensor: TensorPart) -> NDArray[np.int64]:
    return np.asarray(np.asarray(tensor.data, np.int64) - _along(_zero_points(tensor), tensor))


def _write(tensor: TensorPart, values: NDArray[Any], type: str, scale: NDArray[np.float32], axis: int) -> None:
    tensor.type = type
    tensor.data = values.astype(type.lower())
    tensor.quantization = {"scale": scale, "zero_point": np.zeros(scale.size, np.int64), "quantized_dimension": axis}


def _shift(tensor: TensorPart) -> None:
    """The same real values, 128 below."""
    data = tensor.data if _has_data(tensor) else None
    tensor.quantization.zero_point = _zero_points(tensor) - _SHIFT
    tensor.type = "int8"
    if data is not None:
        tensor.data = (data.astype(np.int16) - _SHIFT).astype(np.int8)
