# SPDX-License-Identifier: Apache-2.0
"""The interval of a tensor's values that its readers let through: a RELU nothing below 0, a MINIMUM with a constant
nothing above the constant.

Values outside need no quantized values.  Clamping x to [a, b] twice gives the same as clamping it once.  This holds too
where operators between the two clamps only move values, or take the least or greatest of them, since these commute with
clamping.  Integer kernels saturate, which is the first clamp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

import numpy as np

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart

Interval = tuple[float, float]
ALL = (-math.inf, math.inf)
BOUNDS = {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0), "RELU_N1_TO_1": (-1.0, 1.0)}
# Each number of the output is one of the inputs', or 0, whatever they are or by their order.
_MOVING = """BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DEPTH_TO_SPACE EXPAND_DIMS GATHER GATHER_ND MAX_POOL_2D
    MAXIMUM MINIMUM MIRROR_PAD PACK PAD REDUCE_MAX REDUCE_MIN RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT
    SELECT_V2 SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE UNPACK"""
MOVING = frozenset(_MOVING.split())


def passing(
    graph: SubgraphPart, integers: Mapping[OperatorPart, str], apart: Mapping[OperatorPart, Set[TensorPart]]
) -> dict[TensorPart, Interval]:
    """The intervals that pass, by tensor.  integers: the names of the operators that become integer ones.
    apart: the tensors that integer operators of another type read as integers: View.apart."""
    found: dict[TensorPart, Interval] = {tensor: ALL for tensor in graph.outputs if tensor is not None}
    for op in reversed(graph.operators):
        interval = _through(op, integers.get(op), found)
        for tensor in op.inputs:
            if tensor is not None and tensor not in apart.get(op, ()):
                low, high = found.get(tensor, interval)
                found[tensor] = min(low, interval[0]), max(high, interval[1])
    for tensor in graph.inputs:  # their parameters are the caller's business
        if tensor is not None:
            found[tensor] = ALL
    return found


def cut(interval: Interval, bounds: Interval) -> Interval:
    """The intersection of both; the interval itself where they are disjoint."""
    low, high = max(interval[0], bounds[0]), min(interval[1], bounds[1])
    return (low, high) if low <= high else interval


def _through(op: OperatorPart, name: str | None, found: Mapping[TensorPart, Interval]) -> Interval:
    """The values that pass an operator and the readers of its output."""
    if name is None or (name not in BOUNDS and name not in MOVING):
        return ALL
    later = [found[tensor] for tensor in op.outputs if tensor is not None and tensor in found]
    after = (min(low for low, _ in later), max(high for _, high in later)) if later else ALL
    return cut(_bounds(op, name), after)


def _bounds(op: OperatorPart, name: str) -> Interval:
    if name not in ("MINIMUM", "MAXIMUM"):
        return BOUNDS.get(name, ALL)
    constants = [tensor.data for tensor in op.inputs if tensor is not None and tensor.is_constant]
    data = constants[0] if constants else None
    if data is None or not data.size or np.isnan(data).any():
        return ALL
    return (-math.inf, float(data.max())) if name == "MINIMUM" else (float(data.min()), math.inf)
