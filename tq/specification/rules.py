# SPDX-License-Identifier: Apache-2.0
"""The rules of the specification, each a row: its stable name, and a function that finds what breaks it.

A function gets an operator under its row of the table and yields what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.specification.findings import UNUSUAL, VIOLATES
from tq.specification.operands import (
    FLOATS,
    Operand,
    Operands,
    has_scale,
    needs_scales,
    one_scale,
    type_of,
    zero_points,
)
from tq.specification.table import CENTERED, CONVERTS, NARROW_TOO, SAME, SPECS

# Scales of biases are float32 products, of which converters round some twice.
_SAME_SCALE = 2.0**-18
_NARROW = {"int8": -127, "int4": -7, "uint8": 1}  # the least weight of a type
_WEIGHTS = {"int8": ("int8", "int4", "int2"), "int16x8": ("int8", "int4", "int2"), "uint8": ("uint8",)}


class Found(NamedTuple):
    """What breaks a rule, before its effect is known.  operand: of the operator; None: it lacks one."""

    rule: str
    level: str
    operands: Operands
    operand: Operand | None
    found: str
    needed: str


class Rule(NamedTuple):
    name: str
    says: str  # what the specification asks for
    find: Callable[[Operands], Iterator[tuple[Operand | None, str, str, str]]]  # operand, level, found, needed


Finds = Iterator[tuple["Operand | None", str, str, str]]


def number(value: float | np.floating[Any]) -> str:
    return f"{float(np.float32(value)):.9g}"


def parameters(tensor: TensorPart) -> str:
    """The scale and zero point of a tensor, in words."""
    scale, zero = tensor.quantization.scale, zero_points(tensor)
    if not scale.size:
        return "no scale"
    if scale.size > 1:
        return f"{scale.size} scales along dimension {tensor.quantization.quantized_dimension}"
    return f"scale {number(scale[0])}, zero point {zero[0]}"


# ---- rows ----


def _no_row(v: Operands) -> Finds:
    if v.rule is None:
        first = (v.outputs or v.data)[0]
        form = "row" if v.row is None else f"{v.spec.name} form in its row"
        yield first, UNUSUAL, f"{v.name} of {v.spec.type} values", f"an operator of the specification: it has no {form}"


# ---- activations ----


def _types(v: Operands) -> Finds:
    if v.mixed is not None:
        yield v.mixed, UNUSUAL, type_of(v.mixed.tensor), v.spec.type
    if v.rule is None or v.rule == CONVERTS or v.row is None or v.row.recurrent:
        return
    for item in v.activations:
        wanted = {v.spec.type}
        if v.spec.type == "int16" and item.side == "inputs":
            wanted = {"int8"} if v.row.narrow == item.place else wanted
            wanted |= {"int8"} if NARROW_TOO.get(v.name) == item.place else set()
        if has_scale(item.tensor) and type_of(item.tensor) not in wanted:
            yield item, VIOLATES, type_of(item.tensor), min(wanted)


def _scale_missing(v: Operands) -> Finds:
    if v.rule is None:
        return
    for item in v.activations:
        if has_scale(item.tensor):
            continue
        if needs_scales(v.rule) or (v.rule in (SAME, CENTERED) and item in v.outputs[:1] and v.shared):
            yield item, VIOLATES, "no scale", "a scale and a zero point"
    first = next(iter(v.data), None)
    moves = v.rule in (SAME, CENTERED) and v.shared and not any(has_scale(item.tensor) for item in v.data)
    if moves and first is not None and type_of(first.tensor) == v.spec.type:
        yield first, VIOLATES, "no scale", "a scale and a zero point"
    for operand in (v.weights, v.bias):
        if operand is not None and not has_scale(operand.tensor) and type_of(operand.tensor) != "float32":
            yield operand, VIOLATES, "no scale", "a scale and a zero point"


def _scale_value(v: Operands) -> Finds:
    for item in (*v.activations, *filter(None, (v.weights, v.bias))):
        scale = item.tensor.quantization.scale
        bad = ~(np.isfinite(scale) & (scale >= np.finfo(np.float32).tiny))
        if bad.any():
            is_empty = item in (v.weights, v.bias) and not np.asarray(scale[bad]).any()
            worst = scale[bad][0]
            yield (
                item,
                UNUSUAL if is_empty else VIOLATES,
                f"scale {number(worst)}",
                "scales that are normal numbers above 0",
            )


def _zero_point_range(v: Operands) -> Finds:
    for item in v.activations:
        spec_limits = np.iinfo(type_of(item.tensor))
        zero = zero_points(item.tensor)
        if has_scale(item.tensor) and ((zero < spec_limits.min) | (zero > spec_limits.max)).any():
            worst = zero[(zero < spec_limits.min) | (zero > spec_limits.max)][0]
            yield item, VIOLATES, f"zero point {worst}", f"a zero point from {spec_limits.min} to {spec_limits.max}"


def _activation_symmetric(v: Operands) -> Finds:
    for item in v.activations:
        if type_of(item.tensor) == "int16" and zero_points(item.tensor).any():
            zero = zero_points(item.tensor)
            yield item, VIOLATES, f"zero point {zero[zero != 0][0]}", "zero point 0"


def _activation_per_axis(v: Operands) -> Finds:
    if v.rule == CONVERTS:
        return
    for item in v.activations:
        if item.tensor.quantization.scale_count > 1:
            yield item, VIOLATES, parameters(item.tensor), "one scale"


def _differs(a: TensorPart, b: TensorPart) -> bool:
    one, two = one_scale(a), one_scale(b)
    if one is None or two is None:
        return False
    return one != two or int(zero_points(a)[0]) != int(zero_points(b)[0])


def reference(v: Operands) -> Operand | None:
    """The activation whose parameters the others of a same-scale operator need: the only output, else an input."""
    if v.rule not in (SAME, CENTERED) or len(v.shared) < 2:
        return None
    outputs = [item for item in v.outputs if has_scale(item.tensor)]
    inputs = [item for item in v.data if has_scale(item.tensor)]
    return outputs[0] if len(outputs) == 1 or not inputs else inputs[0]


def _same_scale(v: Operands) -> Finds:
    first = reference(v)
    if first is None:
        return
    for item in v.shared:
        if item.tensor != first.tensor and _differs(item.tensor, first.tensor):
            # LiteRT's uint8 kernel rescales.
            level = UNUSUAL if v.spec.type == "uint8" and v.name == "CONCATENATION" else VIOLATES
            yield item, level, parameters(item.tensor), parameters(first.tensor)


def _fixed_output(v: Operands) -> Finds:
    if not isinstance(v.rule, tuple):
        return
    scale, zero = np.float32(v.rule[0]), v.rule[1]
    for item in v.outputs[:1]:
        own = one_scale(item.tensor)
        if own is not None and (own != scale or int(zero_points(item.tensor)[0]) != zero):
            yield item, VIOLATES, parameters(item.tensor), f"scale {number(scale)}, zero point {zero}"


def _zero_is_zero(v: Operands) -> Finds:
    if v.rule == CENTERED:
        for item in v.outputs[:1]:
            if has_scale(item.tensor) and zero_points(item.tensor).any():
                yield (
                    item,
                    UNUSUAL,
                    parameters(item.tensor),
                    "zero point 0: the kernel writes the quantized value 0 for 0.0",
                )


# ---- weights ----


def _weights_type(v: Operands) -> Finds:
    if v.weights is not None and type_of(v.weights.tensor) not in _WEIGHTS[v.spec.name]:
        is_other = type_of(v.weights.tensor) == v.spec.type and not v.weights.tensor.is_constant
        yield v.weights, UNUSUAL if is_other else VIOLATES, type_of(v.weights.tensor), v.spec.weights


def is_constant(operand: Operand | None) -> bool:
    return operand is not None and operand.tensor.is_constant and not operand.tensor.is_sparse


def _weights_range(v: Operands) -> Finds:
    if v.weights is None or not is_constant(v.weights):
        return
    least = _NARROW.get(type_of(v.weights.tensor))
    data = v.weights.tensor.data
    if least is not None and data is not None and data.size and data.min() < least:
        count = int((data < least).sum())
        level = VIOLATES if type_of(v.weights.tensor) == "int8" else UNUSUAL
        yield v.weights, level, f"{count} of {data.size} weights are {least - 1}", f"weights from {least}"


def _weights_zero_point(v: Operands) -> Finds:
    if v.weights is None or v.spec.type == "uint8":
        return
    zero = zero_points(v.weights.tensor)
    if zero.any():
        level = VIOLATES if v.weights.tensor.is_constant else UNUSUAL
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


# ---- biases ----


def _bias_missing(v: Operands) -> Finds:
    if v.row is not None and v.row.needs_bias and v.bias is None and v.weights is not None:
        yield None, VIOLATES, "no bias", f"a bias of {v.spec.bias}"


def _bias_type(v: Operands) -> Finds:
    if v.bias is None:
        return
    allowed = (v.spec.bias, "int32") if _takes_int32(v) else (v.spec.bias,)
    if type_of(v.bias.tensor) not in allowed:
        yield v.bias, VIOLATES, type_of(v.bias.tensor), v.spec.bias


def _takes_int32(v: Operands) -> bool:
    """int16 activations take a bias of int32 where the option says so."""
    return getattr(v.op.options.get("quantized_bias_type"), "name", "") == "INT32"


def _bias_zero_point(v: Operands) -> Finds:
    if v.bias is not None and zero_points(v.bias.tensor).any():
        zero = zero_points(v.bias.tensor)
        yield v.bias, VIOLATES, f"zero point {zero[zero != 0][0]}", "zero point 0"


def _bias_scale(v: Operands) -> Finds:
    needed = v.bias_scale()
    if v.bias is None or needed is None or not has_scale(v.bias.tensor):
        return
    have = v.bias.tensor.quantization.scale
    if have.size == 1 < needed.size:
        yield v.bias, VIOLATES, "one scale", f"{needed.size} scales: input scale * weight scale"
        return
    if needed.size not in (1, have.size):
        yield v.bias, VIOLATES, f"{have.size} scales", f"{needed.size} scales: input scale * weight scale"
        return
    off = _ratio(have, needed)
    if (np.abs(off - 1) > _SAME_SCALE).any():
        at = int(np.abs(np.log(np.maximum(off, 1e-38))).argmax())
        wanted = np.broadcast_to(needed, have.shape)[at]
        channel = f" of channel {at}" if have.size > 1 else ""
        yield v.bias, VIOLATES, f"scale {number(have[at])}{channel}", f"input scale * weight scale = {number(wanted)}"


def _ratio(have: NDArray[np.float32], needed: NDArray[np.float32]) -> NDArray[np.float64]:
    """1 where both are 0."""
    a, b = np.broadcast_arrays(have.astype(np.float64), needed.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == b, 1.0, np.nan_to_num(a / b, nan=np.inf))


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("spec", "operators mean the spec that was asked for", lambda v: iter(())),
        Rule("no-row", "the table has a row for the operator and its types", _no_row),
        Rule("type", "activations have one type", _types),
        Rule("scale-missing", "quantized tensors have a scale", _scale_missing),
        Rule("scale-value", "scales are normal numbers above 0", _scale_value),
        Rule("activation-per-axis", "activations have one scale", _activation_per_axis),
        Rule("zero-point-range", "a zero point is a value of its type", _zero_point_range),
        Rule("activation-symmetric", "int16 activations have zero point 0", _activation_symmetric),
        Rule("same-scale", "operators that move values have the same parameters before and behind them", _same_scale),
        Rule("fixed-output", "operators of a known range have a fixed scale and zero point", _fixed_output),
        Rule("zero-is-zero", "operators that write the quantized value 0 have zero point 0", _zero_is_zero),
        Rule("weights-type", "weights are int8, or uint8 beside uint8 activations", _weights_type),
        Rule("weights-range", "weights lie between -127 and 127, uint8 ones between 1 and 255", _weights_range),
        Rule("weights-zero-point", "weights have zero point 0", _weights_zero_point),
        Rule("weights-axis", "scales of weights lie along the operator's dimension", _weights_axis),
        Rule("weights-per-axis", "weights of other operators have one scale", _weights_per_axis),
        Rule("weights-per-tensor", "weights of convolutions have a scale a channel", _weights_per_tensor),
        Rule("bias-missing", "CONV_2D has a bias", _bias_missing),
        Rule("bias-type", "a bias is int32, int64 beside int16 activations", _bias_type),
        Rule("bias-zero-point", "a bias has zero point 0", _bias_zero_point),
        Rule("bias-scale", "a bias has the scale input scale * weight scale", _bias_scale),
    )
}


def of_another_spec(op: OperatorPart, v: Operands | None, spec: str) -> list[Found]:
    """An operator that does not mean the spec that was asked for.  Conversions stand between."""
    output = next((t for t in op.outputs if t is not None), None)
    if output is None or op.name in ("QUANTIZE", "DEQUANTIZE") or (v is not None and v.spec.name == spec):
        return []
    operand = Operand("outputs", op.outputs.index(output), output)
    if v is not None:
        return [Found("spec", VIOLATES, v, operand, f"{v.spec.name} activations", f"{spec} activations")]
    if not any(t is not None and t.type_name in FLOATS for t in (*op.inputs, *op.outputs)):
        return []
    own = Operands(op, op.name, SPECS[spec], None, None, (), (), None, None)
    return [Found("spec", UNUSUAL, own, operand, "float activations", f"{spec} activations")]


def found_in(v: Operands) -> Iterator[Found]:
    """All that breaks a rule, a tensor at most once a rule."""
    for rule in RULES.values():
        seen: set[TensorPart] = set()
        for operand, level, found, needed in rule.find(v):
            if operand is None or operand.tensor not in seen:
                yield Found(rule.name, level, v, operand, found, needed)
            if operand is not None:
                seen.add(operand.tensor)
