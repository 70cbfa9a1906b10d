# SPDX-License-Identifier: Apache-2.0
"""An operator under its row: which of its tensors are activations, weights and bias, and which spec it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import ModelError
from tq.editing.graph import OperatorPart, TensorPart
from tq.specification.table import (
    CALLING,
    CONVERTS,
    FLOAT,
    FREE,
    MIXED,
    NOT_INT16,
    SPEC_OF_TYPE,
    Integer,
    Output,
    Spec,
    form_of,
    row_of,
)

_CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")
FLOATS = ("FLOAT32", "FLOAT16", "BFLOAT16", "FLOAT64")


class Operand(NamedTuple):
    """A tensor at a place of an operator."""

    side: str  # "inputs" or "outputs"
    place: int
    tensor: TensorPart


@dataclass(frozen=True)
class Operands:
    """The operands of an operator with integer activations.

    row: None where the table has none.  rule: what the row says of the outputs; None: it has no form of this spec.
    data, outputs: the quantized activations, and constants that are read like them.
    """

    op: OperatorPart
    name: str
    spec: Spec
    row: Integer | None
    rule: Output | None
    data: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    weights: Operand | None
    bias: Operand | None
    mixed: Operand | None = None  # an output of another type, which some kernels have
    weights_type: str = ""  # that they need; "": that of the spec
    factor: np.float32 | None = None  # of the scale of weights, where no activation stands for it

    @property
    def activations(self) -> tuple[Operand, ...]:
        return (*self.data, *self.outputs)

    @property
    def shared(self) -> tuple[Operand, ...]:
        """Activations that have parameters."""
        return tuple(item for item in self.activations if has_scale(item.tensor))

    def input_scale(self) -> np.float32 | None:
        """The scale of the activation that weights are multiplied with."""
        return one_scale(self.data[0].tensor) if self.data else self.factor

    def bias_scale(self) -> NDArray[np.float32] | None:
        """The scales that the bias needs; None where its operator's own are not known."""
        scale = self.input_scale()
        if scale is None or self.weights is None or not has_scale(self.weights.tensor):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(scale * self.weights.tensor.quantization.scale, np.float32)


def type_of(tensor: TensorPart) -> str:
    return tensor.type_name.lower()


def has_scale(tensor: TensorPart) -> bool:
    return tensor.quantization.scale_count > 0


def holds_data(tensor: TensorPart) -> bool:
    """Whether it is a constant: some files name an empty buffer for tensors that operators write."""
    data = tensor.raw_data
    return data is not None and bool(data.size or 0 in tensor.shape)


def data_of(tensor: TensorPart) -> NDArray[Any] | None:
    """A constant's quantized values; None: it has none, or not as many as its shape says."""
    try:
        data = tensor.data
    except ModelError:
        return None
    return data if data is not None and data.shape == tensor.shape else None


def is_sound(tensor: TensorPart) -> bool:
    """Whether its parameters and values fit its shape."""
    q = tensor.quantization
    axis, count = q.quantized_dimension, q.scale_count
    fits = count <= 1 or (0 <= axis < len(tensor.shape) and tensor.shape[axis] == count)
    return fits and q.zero_point.size in (0, 1, count) and (not holds_data(tensor) or data_of(tensor) is not None)


def is_in_blocks(operand: Operand | None) -> bool:
    """Whether its scales are those of blocks, or of several axes."""
    return operand is not None and operand.tensor.quantization.details is not None


def one_scale(tensor: TensorPart) -> np.float32 | None:
    """The scale of a tensor that has one."""
    scale = tensor.quantization.scale
    return np.float32(scale[0]) if scale.size == 1 else None


def zero_points(tensor: TensorPart) -> NDArray[np.int64]:
    """One zero point for each scale: 0 where none is stored; a single one holds for all scales."""
    stored, count = tensor.quantization.zero_point, tensor.quantization.scale_count
    if stored.size == count:
        return stored
    return np.full(count, stored[0] if stored.size else 0, np.int64)


def operands(op: OperatorPart) -> Operands | None:
    """None: an operator without integer activations, or one whose values are not quantized."""
    name = op.builtin_name
    row = None if name is None else row_of(name)
    if name is None or name == "CUSTOM" or name in CALLING or (name in FLOAT and row is None):
        return None
    weights, bias = (at(op, place) for place in (row.weights, row.bias)) if row is not None else (None, None)
    if is_in_blocks(weights):
        weights = bias = None
    data = _activations(op, "inputs", _data_places(op, row))
    outputs = _activations(op, "outputs", range(len(op.outputs)))
    if row is not None and (row.weights is not None or row.recurrent):
        outputs = outputs[:1]
    mixed = _mixed(name, data, outputs)
    outputs = [item for item in outputs if item != mixed]
    first = next((t for t in (*outputs, *data)), None)
    if first is None or (name == "DEQUANTIZE" and holds_data(first.tensor)):
        return None
    if name not in _CONVERSIONS and _is_float(op, row, outputs):
        return None
    known = [item for item in (*outputs, *data) if has_scale(item.tensor)]
    spec = SPEC_OF_TYPE[type_of((known or [first])[0].tensor)]
    rule = form_of(name, spec)
    if not known and weights is None and _may_be_plain(name, rule, spec):
        return None
    return Operands(op, name, spec, row, rule, tuple(data), tuple(outputs), weights, bias, mixed)


def _mixed(name: str, data: list[Operand], outputs: list[Operand]) -> Operand | None:
    if data and outputs and (name, type_of(data[0].tensor), type_of(outputs[0].tensor)) in MIXED:
        return outputs[0]
    return None


def _may_be_plain(name: str, rule: Output | None, spec: Spec) -> bool:
    """Whether the kernel takes integers without scales."""
    return rule is None or not needs_scales(name, rule) or (spec.type == "int16" and rule != CONVERTS)


def needs_scales(name: str, rule: Output) -> bool:
    """Whether the kernel computes with scales; others take plain integers too."""
    return rule in (FREE, CONVERTS) or isinstance(rule, tuple) or name in NOT_INT16


def _data_places(op: OperatorPart, row: Integer | None) -> list[int]:
    places = range(len(op.inputs)) if row is None or row.data is None else row.data
    return [place for place in places if row is None or place not in (row.weights, row.bias)]


def _activations(op: OperatorPart, side: str, places: Iterable[int]) -> list[Operand]:
    tensors = op.inputs if side == "inputs" else op.outputs
    present = ((i, tensors[i]) for i in places if i < len(tensors))
    found = [Operand(side, i, tensor) for i, tensor in present if tensor is not None]
    return [item for item in found if type_of(item.tensor) in SPEC_OF_TYPE]


def _is_float(op: OperatorPart, row: Integer | None, outputs: list[Operand]) -> bool:
    """Whether it computes with floats, and its integers are weights, indices or tables."""
    if any(t is not None and t.type_name in FLOATS for t in op.outputs):
        return True
    first = next((t for t in op.inputs if t is not None and t.type_name not in ("INT32", "INT64")), None)
    return not outputs and first is not None and first.type_name in FLOATS


def at(op: OperatorPart, place: int | None) -> Operand | None:
    """An input; None: it is left out."""
    inputs = op.inputs
    tensor = inputs[place] if place is not None and place < len(inputs) else None
    return None if tensor is None or place is None else Operand("inputs", place, tensor)
