# SPDX-License-Identifier: Apache-2.0
"""Rules of biases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tq.specification.findings import VIOLATES
from tq.specification.operands import (
    Operands,
    has_scale,
    type_of,
    zero_points,
)
from tq.specification.rule import Finds, Rule, number

# Scales of biases are float32 products, of which converters round some twice.
_SAME_SCALE = 2.0**-18


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


RULES: tuple[Rule, ...] = (
    Rule("bias-missing", "CONV_2D has a bias", _bias_missing),
    Rule("bias-type", "a bias is int32, int64 beside int16 activations", _bias_type),
    Rule("bias-zero-point", "a bias has zero point 0", _bias_zero_point),
    Rule("bias-scale", "a bias has the scale input scale * weight scale", _bias_scale),
)
