# SPDX-License-Identifier: Apache-2.0
"""The repairs, a function a rule: each changes the model so that one finding goes, and says what it did and lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.editing import versions
from tq.editing.graph import OperatorPart, TensorPart
from tq.specification import values
from tq.specification.findings import UNUSUAL
from tq.specification.operands import Operand, Operands, has_scale, holds_data, operands, type_of, zero_points
from tq.specification.recurrent import states_of
from tq.specification.rule import Found, is_constant
from tq.specification.rules_of_activations import reference
from tq.specification.table import CENTERED, SAME, VARIABLES
from tq.specification.variables import fits_a_kernel, known_by

_INT32, _INT64 = 2**31 - 1, 2**62
_MOST = {"int8": 127, "int4": 7, "int2": 1, "int16": 32767}


class Done(NamedTuple):
    """loss: the greatest error of the tensor's real values, in steps of its new scale; 0: none."""

    did: str
    loss: float


class NotRepairable(Exception):
    """Why."""


def _operand(item: Found) -> Operand:
    assert item.operand is not None
    return item.operand


# ---- activations ----


def _one_scale(item: Found) -> Done:
    """Gives an activation one scale, and a zero point of its type."""
    tensor = _operand(item).tensor
    scale = tensor.quantization.scale
    touching = next(
        (op for op in (tensor.producer, *tensor.consumers) if op is not None and op.name in VARIABLES), None
    )
    known = None if touching is None else known_by(touching)
    if touching is not None and (known is None or known == tensor or not fits_a_kernel(known)):
        raise NotRepairable("all that touch its variable have its parameters")
    if known is not None and touching == tensor.producer:
        values.put(tensor, type_of(known), known.quantization.scale, int(zero_points(known)[0]))
        return Done(f"the parameters of {known.name!r}, as its variable has", 0.0)
    if not np.isfinite(scale).all() or (scale <= 0).any():
        raise NotRepairable("its scales are no numbers above 0")
    writer = None if tensor.producer is None else operands(tensor.producer)
    if writer is not None and writer.mixed is not None:
        raise NotRepairable(f"{writer.name} of these types writes it with parameters of its own")
    low, high = values.range_of(tensor)
    to = values.covering(type_of(tensor), low, high)
    loss = 0.5
    if holds_data(tensor):
        loss = _constant(tensor, to)
    else:
        values.put(tensor, to.type, np.array([to.scale]), to.zero_point)
    return Done(f"scale {float(to.scale):.7g}, zero point {to.zero_point} for its range {low:.6g} to {high:.6g}", loss)


def _constant(tensor: TensorPart, to: values.Parameters) -> float:
    info = np.iinfo(to.type)
    return values.write(
        tensor, values.real(tensor), to.type, np.array([to.scale]), info.min, info.max, zero=to.zero_point
    )


def _requantize(op: OperatorPart, operand: Operand, to: values.Parameters) -> Done:
    """Lets an operator read or write a tensor with other parameters."""
    words = f"scale {float(to.scale):.9g}, zero point {to.zero_point}"
    if operand.side == "inputs" and holds_data(operand.tensor):
        return Done(f"the constant written with {words}", _constant(values.own(op, operand.place), to))
    if values.of(operand.tensor).type == "int16" and to.type == "uint8":
        raise NotRepairable("no kernel requantizes int16 to uint8")
    added, loss = values.requantized(op, operand.side, operand.place, to)
    added.share_version(versions.needed(added))
    where = "before" if operand.side == "inputs" else "behind"
    return Done(f"QUANTIZE {where} the operator, which uses {words}", loss)


def _type(item: Found) -> Done:
    operand, v = _operand(item), item.operands
    if item.level == UNUSUAL:
        raise NotRepairable("some runtimes have kernels of these types")
    if operand.side == "outputs" or operand.tensor.is_variable or not _is_plain(operand.tensor):
        raise NotRepairable("no QUANTIZE makes its type of another")
    to = item.needed
    have = values.of(operand.tensor)
    moved = {("uint8", "int8"): -128, ("int8", "uint8"): 128}.get((have.type, to))
    wanted = (
        values.Parameters(to, have.scale, have.zero_point + moved)
        if moved is not None
        else values.covering(to, *have.range)
    )
    return _requantize(v.op, operand, wanted)


def _is_plain(tensor: TensorPart) -> bool:
    scale = tensor.quantization.scale
    return scale.size == 1 and bool(np.isfinite(scale[0])) and scale[0] > 0


def _same_scale(item: Found) -> Done:
    op, first = item.operands.op, reference(item.operands)
    like = first.tensor if first is not None else known_by(op) if item.operands.name in VARIABLES else None
    if like is None or not _is_plain(like) or not _is_plain(_operand(item).tensor):
        raise NotRepairable("a scale of it is no number above 0")
    return _requantize(op, _operand(item), values.of(like))


def _fixed_output(item: Found) -> Done:
    rule, operand = item.operands.rule, _operand(item)
    if not isinstance(rule, tuple) or not _is_plain(operand.tensor):
        raise NotRepairable("its own scale is no number above 0")
    type_ = item.operands.spec.type
    return _requantize(item.operands.op, operand, values.Parameters(type_, np.float32(rule[0]), rule[1]))


def _state(item: Found) -> Done:
    """A state's own parameters, which begins at 0.0."""
    operand, v = _operand(item), item.operands
    kind = dict(states_of(v))[operand.place]
    if kind == "output":
        to = values.of(v.outputs[0].tensor)
    elif _is_plain(operand.tensor) and type_of(operand.tensor) == "int16":
        to = values.covering("int16", *values.range_of(operand.tensor))
        if kind == "power":
            # The kernel takes powers from 2^-15 to 2^-9.
            to = to._replace(scale=np.float32(2.0 ** np.clip(np.ceil(np.log2(to.scale)), -15, -9)))
    else:
        raise NotRepairable("it is not int16, or its scale is no number above 0")
    loss = 0.0 if to.scale == operand.tensor.quantization.scale[0] else 0.5
    values.put(operand.tensor, to.type, np.array([to.scale]), to.zero_point)
    return Done(f"scale {float(to.scale):.9g}, zero point {to.zero_point}", loss)


def _zero_is_zero(item: Found) -> Done:
    v, operand = item.operands, _operand(item)
    if not _is_plain(operand.tensor):
        raise NotRepairable("its own scale is no number above 0")
    low, high = values.range_of(operand.tensor)
    most = max(-low, high)
    to = values.covering(v.spec.type, -most, most)._replace(zero_point=0 if v.spec.type != "uint8" else 128)
    done = [_requantize(v.op, other, to) for other in (*v.data, operand) if has_scale(other.tensor)]
    return Done(done[-1].did, max(one.loss for one in done))


def _missing(item: Found) -> Done:
    """Parameters that follow from others."""
    v, operand = item.operands, _operand(item)
    if operand == v.bias:
        scale = v.bias_scale()
        if scale is not None:
            tensor = values.own(v.op, operand.place)
            values.put(tensor, type_of(tensor), scale)
            return Done("the scales input scale * weight scale, values as they are", 0.0)
    if operand in v.activations:
        to, whose = _following(v, operand)
        values.put(operand.tensor, to.type, np.array([to.scale]), to.zero_point)
        return Done(f"the parameters of {whose}", 0.0)
    raise NotRepairable("nothing says what its scale is")


def _following(v: Operands, operand: Operand) -> tuple[values.Parameters, str]:
    """The parameters that an activation needs by its operator's row, and whose they are."""
    if isinstance(v.rule, tuple) and operand in v.outputs[:1]:
        return values.Parameters(v.spec.type, np.float32(v.rule[0]), v.rule[1]), f"{v.name}'s outputs"
    if v.rule in (SAME, CENTERED):
        of_type = (o.tensor for o in v.shared if o != operand and type_of(o.tensor) == type_of(operand.tensor))
        other = next((tensor for tensor in of_type if _is_plain(tensor)), None)
        if other is not None:
            return values.of(other), repr(other.name)
    raise NotRepairable("nothing says what its scale is")


# ---- weights ----


def _weights_range(item: Found) -> Done:
    operand, v = _operand(item), item.operands
    tensor = values.own(v.op, operand.place)
    data = np.asarray(tensor.data)
    least = int(item.needed.split()[-1])
    tensor.data = np.maximum(data, least).astype(data.dtype)
    return Done(f"{int((data < least).sum())} weights of {least - 1} moved to {least}", 1.0)


def _weights_zero_point(item: Found) -> Done:
    operand, v = _operand(item), item.operands
    if not is_constant(operand):
        raise NotRepairable("the weights are computed")
    tensor = values.own(v.op, operand.place)
    type_ = type_of(tensor)
    most = _MOST.get(type_, 127)
    moved = _moved(v, tensor)
    if np.abs(moved).max(initial=0) <= most:
        _move(tensor, moved, type_)
        return Done("values moved by the zero point", 0.0)
    loss = _anew(tensor, tensor.quantization.quantized_dimension, type_, moved)
    return Done(f"a new scale where moved values do not fit into -{most} to {most}", loss)


def _moved(v: Operands, tensor: TensorPart) -> NDArray[np.int64]:
    """Quantized values less their zero points.  Beside the zero point 8 of several scales XNNPACK, whose kernels alone
    run it, takes int4 weights of FULLY_CONNECTED for unsigned ones: docs/numerics.md."""
    data, zero = np.asarray(tensor.data).astype(np.int64), zero_points(tensor)
    if v.name == "FULLY_CONNECTED" and type_of(tensor) == "int4" and zero.size > 1 and (zero == 8).all():
        data &= 15
    return np.asarray(data - values.along(tensor, zero)).reshape(tensor.shape)


def _move(tensor: TensorPart, moved: NDArray[np.int64], type_: str) -> None:
    """The same scales, with zero points 0."""
    q = tensor.quantization
    values.put(tensor, type_, q.scale, axis=q.quantized_dimension if q.scale_count > 1 else 0)
    tensor.data = moved.astype(values.holder(type_))


def _anew(tensor: TensorPart, axis: int | None, type_: str = "int8", moved: NDArray[np.int64] | None = None) -> float:
    """Weights with scales of their own: a scale for all, or one a channel.

    moved: quantized values of zero point 0, whose scales stay where they fit."""
    most, q = _MOST[type_], tensor.quantization
    reals = values.real(tensor) if moved is None else moved * values.along(tensor, q.scale.astype(np.float64))
    axis = axis if q.scale_count > 1 else None
    axes = None if axis is None else tuple(i for i in range(reals.ndim) if i != axis)
    scale = (np.atleast_1d(np.abs(reals).max(axis=axes, initial=0.0)) / most).astype(np.float32)
    scale[scale == 0] = 1
    if moved is not None:
        scale = np.where(np.atleast_1d(np.abs(moved).max(axis=axes, initial=0)) <= most, q.scale, scale)
    return values.write(tensor, reals, type_, scale, -most, most, axis=axis or 0)


def _anew_uint8(tensor: TensorPart) -> float:
    """Weights from 1 to 255 around 128."""
    reals = values.real(tensor)
    scale = np.float32(np.abs(reals).max(initial=0.0) / 127) or np.float32(1)
    return values.write(tensor, reals, "uint8", np.array([scale]), 1, 255, zero=128)


def _weights_anew(item: Found) -> Done:
    """For weights of another type, dimension or granularity."""
    operand, v = _operand(item), item.operands
    if not is_constant(operand) or v.row is None or not has_scale(operand.tensor):
        raise NotRepairable("the weights are computed")
    if v.weights_type not in ("", "int8"):
        raise NotRepairable(f"weights of {v.weights_type} are not written anew")
    tensor = values.own(v.op, operand.place)
    if v.spec.type == "uint8":
        return Done("uint8 with one new scale, zero point 128", _anew_uint8(tensor))
    moved = _moved(v, tensor)
    if item.rule == "weights-type" and np.abs(moved).max(initial=0) <= _MOST["int8"]:
        _move(tensor, moved, "int8")
        return Done("int8, values moved by the zero point", 0.0)
    axis = v.row.axis if tensor.quantization.scale_count > 1 else None
    loss = _anew(tensor, axis, "int8")
    return Done(f"int8 with {tensor.quantization.scale_count} new scales along dimension {axis or 0}", loss)


def _scale_value(item: Found) -> Done:
    """Scales of 0: of channels whose weights are all 0, of activations whose parameters follow from others."""
    operand, v = _operand(item), item.operands
    if operand in v.activations and operand.tensor.quantization.scale_count == 1:
        return _missing(item)
    scale = operand.tensor.quantization.scale
    if operand != v.weights or not is_constant(operand) or not np.isfinite(scale).all() or (scale < 0).any():
        raise NotRepairable("nothing says what its scale is")
    tensor = values.own(v.op, operand.place)
    changed = scale.copy()
    bad = changed < np.finfo(np.float32).tiny
    changed[bad] = changed[~bad].max(initial=0) or 1
    loss = np.abs(values.real(tensor)).max(initial=0.0) if bad.all() else 0.0
    moved = np.asarray(tensor.data).astype(np.int64) - values.along(tensor, zero_points(tensor))
    kept = np.where(values.along(tensor, bad), 0, moved) + values.along(tensor, zero_points(tensor))
    tensor.data = kept.reshape(tensor.shape).astype(np.asarray(tensor.data).dtype)
    tensor.quantization.scale = changed
    return Done("scales of 0 made those of the largest, and the weights under them 0", float(loss))


# ---- biases ----


def _bias(item: Found) -> Done:
    """The bias's real values with the scale that it needs."""
    operand, v = _operand(item), item.operands
    scale = v.bias_scale()
    if scale is None or not is_constant(operand) or not has_scale(operand.tensor):
        raise NotRepairable("the bias is computed, or a scale is not known")
    if not np.isfinite(scale).all() or not (scale >= 0).all():
        raise NotRepairable("input scale * weight scale is no number above 0")
    tensor = values.own(v.op, operand.place)
    reals = values.real(tensor)
    if v.spec.bias == "int64" and type_of(tensor) == "int32" and item.rule != "bias-type":
        type_, most = "int32", _INT32
    else:
        type_, most = v.spec.bias, _INT32 if v.spec.bias == "int32" else _INT64
    loss = values.write(tensor, reals, type_, scale, -most, most)
    return Done(
        f"{type_} values with {'the scales' if scale.size > 1 else 'the scale'} input scale * weight scale", loss
    )


def _bias_missing(item: Found) -> Done:
    v = item.operands
    scale = v.bias_scale()
    if scale is None or v.row is None or v.row.bias is None or not v.outputs:
        raise NotRepairable("a scale is not known")
    assert v.weights is not None
    channels = v.weights.tensor.shape[v.row.axis or 0]
    name = f"{v.outputs[0].tensor.name}_bias"
    made = v.op.subgraph.constant(name, np.zeros(channels, v.spec.bias), v.spec.bias, scale=scale)
    v.op.set_input(v.row.bias, made)
    return Done("a bias of zeros", 0.0)


# In stages: each ends what the next one reads.
Repair = Callable[[Found], Done]
STAGES: tuple[dict[str, Repair], ...] = (
    {"scale-missing": _missing, "scale-value": _scale_value},
    {"activation-per-axis": _one_scale, "zero-point-range": _one_scale, "activation-symmetric": _one_scale},
    {"type": _type},
    {"zero-is-zero": _zero_is_zero, "state": _state},
    {"same-scale": _same_scale, "fixed-output": _fixed_output},
    {"weights-type": _weights_anew, "weights-per-axis": _weights_anew, "weights-axis": _weights_anew},
    {"weights-zero-point": _weights_zero_point},
    {"weights-range": _weights_range},
    {"bias-missing": _bias_missing, "bias-type": _bias, "bias-zero-point": _bias, "bias-scale": _bias},
)
REPAIRS: dict[str, Any] = {name: repair for stage in STAGES for name, repair in stage.items()}
