# SPDX-License-Identifier: Apache-2.0
"""Rules of weights."""

from __future__ import annotations

from tq.specification.findings import UNUSUAL, VIOLATES
from tq.specification.operands import (
    Operands,
    data_of,
    holds_data,
    type_of,
    zero_points,
)
from tq.specification.rule import Finds, Rule, is_constant, parameters

_NARROW = {"int8": -127, "int4": -7, "uint8": 1}  # the least weight of a type
_WEIGHTS = {"int8": ("int8", "int4", "int2"), "int16x8": ("int8", "int4", "int2"), "uint8": ("uint8",)}


def _weights_type(v: Operands) -> Finds:
    if v.weights is None:
        return
    wanted = (v.weights_type,) if v.weights_type else _WEIGHTS[v.spec.name]
    if type_of(v.weights.tensor) not in wanted:
        is_other = type_of(v.weights.tensor) == v.spec.type and not holds_data(v.weights.tensor)
        yield v.weights, UNUSUAL if is_other else VIOLATES, type_of(v.weights.tensor), wanted[0]


def _weights_range(v: Operands) -> Finds:
    if v.weights is None or not is_constant(v.weights):
        return
    least = _NARROW.get(type_of(v.weights.tensor))
    data = data_of(v.weights.tensor)
    if least is not None and data is not None and data.size and data.min() < least:
        count = int((data < least).sum())
        level = VIOLATES if type_of(v.weights.tensor) == "int8" else UNUSUAL
        yield v.weights, level, f"{count} of {data.size} weights are {least - 1}", f"weights from {least}"


def _weights_zero_point(v: Operands) -> Finds:
    if v.weights is None or v.spec.type == "uint8":
        return
    zero = zero_points(v.weights.tensor)
    if zero.any():
        level = VIOLATES if holds_data(v.weights.tensor) else UNUSUAL
        yield v.weights, level, f"zero point {zero[zero != 0][0]}", "zero point 0"


def _weights_axis(v: Operands) -> Finds:
    if v.weights is None or v.row is None:
        return
    q = v.weights.tensor.quantization
    if q.scale_count > 1 and v.row.axis is not None and q.quantized_dimension != v.row.axis:
        yield v.weights, VIOLATES, f"quantized dimension {q.quantized_dimension}", f"quantized dimension {v.row.axis}"


def _weights_per_axis(v: Operands) -> Finds:
    if v.weights is None or v.row is None:
        return
    if v.weights.tensor.quantization.scale_count > 1 and (v.row.axis is None or v.spec.type == "uint8"):
        yield v.weights, VIOLATES, parameters(v.weights.tensor), "one scale"


def _weights_per_tensor(v: Operands) -> Finds:
    if v.weights is None or v.row is None or v.row.axis is None or v.spec.type == "uint8":
        return
    shape = v.weights.tensor.shape
    channels = shape[v.row.axis] if v.row.axis < len(shape) else 1
    if v.weights.tensor.quantization.scale_count == 1 and channels > 1 and v.name != "FULLY_CONNECTED":
        yield v.weights, UNUSUAL, "one scale", f"{channels} scales, one a channel"


RULES: tuple[Rule, ...] = (
    Rule("weights-type", "weights are int8, or uint8 beside uint8 activations", _weights_type),
    Rule("weights-range", "weights lie between -127 and 127, uint8 ones between 1 and 255", _weights_range),
    Rule("weights-zero-point", "weights have zero point 0", _weights_zero_point),
    Rule("weights-axis", "scales of weights lie along the operator's dimension", _weights_axis),
    Rule("weights-per-axis", "weights of other operators have one scale", _weights_per_axis),
    Rule("weights-per-tensor", "weights of convolutions have a scale a channel", _weights_per_tensor),
)
