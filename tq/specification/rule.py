# SPDX-License-Identifier: Apache-2.0
"""The records that all rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tq.editing.graph import TensorPart
from tq.specification.operands import Operand, Operands, holds_data, zero_points

Finds = Iterator[tuple["Operand | None", str, str, str]]  # operand, level, found, needed


class Rule(NamedTuple):
    name: str
    says: str  # the specification's demand, for documents
    find: Callable[[Operands], Finds]


class Found(NamedTuple):
    """A deviation from a rule, before its effect is known.  operand: of the operator; None: the operator lacks one."""

    rule: str
    level: str
    operands: Operands
    operand: Operand | None
    found: str
    needed: str


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


def is_constant(operand: Operand | None) -> bool:
    return operand is not None and holds_data(operand.tensor) and not operand.tensor.is_sparse
