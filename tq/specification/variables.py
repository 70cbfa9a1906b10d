# SPDX-License-Identifier: Apache-2.0
"""Resource variables: which one a handle is of, and the operator by whose parameters a subgraph knows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.specification.table import SPEC_OF_TYPE, VARIABLES

Key = tuple[str, str, str]  # "variable", container, name


def handles_of(graph: SubgraphPart) -> dict[TensorPart, Key]:
    """The variable that each handle is of."""
    found: dict[TensorPart, Key] = {}
    for op in graph.operators:
        if op.builtin_name == "VAR_HANDLE":
            key = ("variable", _text(op.options.get("container")), _text(op.options.get("shared_name")))
            found.update((tensor, key) for tensor in op.outputs if tensor is not None)
    return found


def value_of(op: OperatorPart) -> TensorPart | None:
    """The tensor that is assigned or read."""
    side, port = VARIABLES[op.builtin_name or ""]
    tensors = op.inputs if side == "inputs" else op.outputs
    return tensors[port] if port < len(tensors) else None


def known_by(op: OperatorPart) -> TensorPart | None:
    """The tensor whose parameters an operator's variable has: the first that its subgraph assigns, else reads, of
    those with sound parameters, if there are such."""
    handle = op.inputs[0] if op.inputs else None
    handles = handles_of(op.subgraph)
    if handle is None or handle not in handles:
        return None
    touching = [other for other in op.subgraph.operators if other.builtin_name in VARIABLES and other.inputs]
    of_key = {tensor for tensor, key in handles.items() if key == handles[handle]}
    same = [other for other in touching if other.inputs[0] in of_key]
    same.sort(key=lambda other: other.builtin_name != "ASSIGN_VARIABLE")
    found = [tensor for other in same if (tensor := value_of(other)) is not None]
    return min(found, key=lambda tensor: not fits_a_kernel(tensor), default=None)


def fits_a_kernel(tensor: TensorPart) -> bool:
    """Whether it has one scale, and a zero point that kernels of its type take."""
    if tensor.type_name.lower() not in SPEC_OF_TYPE:
        return False
    q, info = tensor.quantization, np.iinfo(tensor.type_name.lower())
    zero = int(q.zero_point[0]) if q.zero_point.size else 0
    is_number = q.scale_count == 1 and bool(np.isfinite(q.scale[0])) and q.scale[0] > 0
    return is_number and (zero == 0 if info.bits == 16 else info.min <= zero <= info.max)


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value or "")
