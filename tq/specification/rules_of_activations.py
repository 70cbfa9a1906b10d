# SPDX-License-Identifier: Apache-2.0
"""Rules of activations: types, scales, zero points."""

from __future__ import annotations

import numpy as np

from tq.editing.graph import TensorPart
from tq.running.recurrent import SVDF_STATE
from tq.specification.findings import UNUSUAL, VIOLATES
from tq.specification.operands import (
    Operand,
    Operands,
    at,
    has_scale,
    needs_scales,
    one_scale,
    type_of,
    zero_points,
)
from tq.specification.recurrent import is_narrow, states_of
from tq.specification.rule import Finds, Rule, number, parameters
from tq.specification.table import CENTERED, CONVERTS, NARROW_TOO, RESCALING, SAME, VARIABLES
from tq.specification.variables import known_by


def _no_row(v: Operands) -> Finds:
    if v.rule is None:
        first = (v.outputs or v.data)[0]
        form = "row" if v.row is None else f"{v.spec.name} form in its row"
        yield first, UNUSUAL, f"{v.name} of {v.spec.type} values", f"an operator of the specification: it has no {form}"


def _types(v: Operands) -> Finds:
    if v.mixed is not None:
        yield v.mixed, UNUSUAL, type_of(v.mixed.tensor), v.spec.type
    if v.outputs and is_narrow(v):
        yield at(v.op, SVDF_STATE), UNUSUAL, "an int8 state", "int16"
    if v.rule is None or v.rule == CONVERTS or v.row is None:
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
        if needs_scales(v.name, v.rule) or (v.rule in (SAME, CENTERED) and item in v.outputs[:1] and v.shared):
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
    if v.name in VARIABLES and v.shared:
        (item,), known = v.shared, known_by(v.op)
        if known is not None and _differs(item.tensor, known):
            yield item, VIOLATES, parameters(item.tensor), f"{parameters(known)}, as its variable has"
    first = reference(v)
    if first is None:
        return
    for item in v.shared:
        if item.tensor != first.tensor and _differs(item.tensor, first.tensor):
            level = UNUSUAL if (v.name, v.spec.type) in RESCALING else VIOLATES
            yield item, level, parameters(item.tensor), parameters(first.tensor)


def _states(v: Operands) -> Finds:
    for place, kind in states_of(v) if v.outputs else ():
        state = at(v.op, place)
        if state is None or not has_scale(state.tensor):
            continue
        output, needed = v.outputs[0].tensor, "zero point 0"
        if kind == "output":
            if _differs(state.tensor, output):
                yield state, VIOLATES, parameters(state.tensor), parameters(output)
            continue
        scale = one_scale(state.tensor)
        is_power = scale is not None and bool(np.frexp(scale)[0] == 0.5)
        if kind == "power" and not is_power:
            needed = "a scale that is a power of two, zero point 0"
        if zero_points(state.tensor).any() or (kind == "power" and not is_power):
            yield state, VIOLATES, parameters(state.tensor), needed


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


RULES: tuple[Rule, ...] = (
    Rule("no-row", "the table has a row for the operator and its types", _no_row),
    Rule("type", "activations have one type", _types),
    Rule("scale-missing", "quantized tensors have a scale", _scale_missing),
    Rule("scale-value", "scales are normal numbers above 0", _scale_value),
    Rule("activation-per-axis", "activations have one scale", _activation_per_axis),
    Rule("zero-point-range", "a zero point is a value of its type", _zero_point_range),
    Rule("activation-symmetric", "int16 activations have zero point 0", _activation_symmetric),
    Rule("same-scale", "operators that move values, and those of one variable, have the same parameters", _same_scale),
    Rule("fixed-output", "operators of a known range have a fixed scale and zero point", _fixed_output),
    Rule("state", "states of LSTM and SVDF are int16 with zero point 0, cells in powers of two", _states),
    Rule("zero-is-zero", "operators that write the quantized value 0 have zero point 0", _zero_is_zero),
)
