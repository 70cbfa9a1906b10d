# SPDX-License-Identifier: Apache-2.0
"""Integer LSTM and SVDF: their weights, biases and states, each as the rules read those of other operators.

Source: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc; tq/quantization/recurrent.py writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tq.running.recurrent import (
    BIAS,
    CELL_STATE,
    FEATURES,
    GATES,
    LSTMS,
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
)  # fmt: skip
from tq.specification.operands import Operands, at, one_scale, type_of

_NORM_STEP = np.float32(2.0**-10)  # of a normalized value: int16 of a layer normalization
_LSTM_INPUTS = (20, 24)  # others are of kernels of another form
_HIDDEN = 4  # the place of what is projected among the intermediate tensors


def parts_of(v: Operands) -> Iterator[Operands]:
    """For each weights, with their bias: operands of them alone."""
    if v.spec.type != "int8":
        return
    if v.name == "SVDF":
        yield _part(v, FEATURES, "int8")
        yield _part(v, TIME, "int8" if is_narrow(v) else "int16", SVDF_BIAS, _scale(v, SVDF_STATE))
    elif _is_lstm(v):
        yield from _lstm(v)


def is_narrow(v: Operands) -> bool:
    """An SVDF whose state is int8 too, which some runtimes have."""
    state = at(v.op, SVDF_STATE)
    return v.name == "SVDF" and state is not None and type_of(state.tensor) == "int8"


def _is_lstm(v: Operands) -> bool:
    """Whether it has the form of the specification: others have other inputs, or products of int8."""
    return v.name in LSTMS and len(v.op.inputs) in _LSTM_INPUTS and len(v.op.intermediates) <= _HIDDEN + 1


def _lstm(v: Operands) -> Iterator[Operands]:
    for gate in range(GATES):
        norm = at(v.op, NORM + gate)
        x = _scale(v, 0)
        yield _part(v, WEIGHTS + gate, "int8", *(() if norm else (BIAS + gate, x)))
        yield _part(v, RECURRENT + gate, "int8")
        if norm:
            yield _part(v, NORM + gate, "int16", BIAS + gate, _NORM_STEP)
        if gate in PEEPHOLE_OF:
            yield _part(v, PEEPHOLE + PEEPHOLE_OF[gate], "int16")
    hidden = v.op.intermediates[_HIDDEN] if len(v.op.intermediates) > _HIDDEN else None
    yield _part(v, PROJECTION, "int8", PROJECTION_BIAS, None if hidden is None else one_scale(hidden))


def _part(v: Operands, weights: int, type_: str, bias: int | None = None, scale: np.float32 | None = None) -> Operands:
    """scale: that the weights' is multiplied with for the bias."""
    return replace(
        v,
        data=(),
        outputs=(),
        weights=at(v.op, weights),
        bias=None if bias is None else at(v.op, bias),
        weights_type=type_,
        factor=scale,
    )


def _scale(v: Operands, place: int) -> np.float32 | None:
    operand = at(v.op, place)
    return None if operand is None else one_scale(operand.tensor)


def states_of(v: Operands) -> list[tuple[int, str]]:
    """The places of its states, and what each is: "output", the output's parameters; "int16", zero point 0;
    "power", so and a scale that is a power of two."""
    if v.spec.type != "int8":
        return []
    if v.name == "SVDF":
        return [] if is_narrow(v) else [(SVDF_STATE, "int16")]
    return [(OUTPUT_STATE, "output"), (CELL_STATE, "power")] if _is_lstm(v) else []
