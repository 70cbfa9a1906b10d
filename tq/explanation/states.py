# SPDX-License-Identifier: Apache-2.0
"""Operators with a state: READ_VARIABLE and SVDF, whose state is as the invoke left it.

Sources: src/runtime/variables.c, src/ops/recurrent/svdf.c.
"""

from __future__ import annotations

import numpy as np

from tq._core import Operator
from tq.explanation.fixed_point import INT32_MAX, f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish, fixed_steps
from tq.explanation.steps import Trail

_FEATURE, _TIME, _BIAS, _STATE = 1, 2, 3, 4  # inputs of SVDF


def _wrapped(x: int) -> int:
    """As sums of int32 wrap."""
    return (x + INT32_MAX + 1) % 2**32 - INT32_MAX - 1


def _variable(node: Node, handle: int) -> str:
    """The variable that a handle names, by container and name."""
    for op in node.run.model.subgraphs[0].operators:
        if handle in op.output_indices and op.name == "VAR_HANDLE":
            options = op.options or {}
            return "/".join(filter(None, (options.get("container"), options.get("shared_name"))))
    return f"of tensor {handle}"


def _assignment(node: Node, variable: str) -> Operator | None:
    """The ASSIGN_VARIABLE that last gave the variable its value before the operator, in the same invoke."""
    found: Operator | None = None
    for op in node.run.model.subgraphs[0].operators[: node.op.index]:
        if op.name == "ASSIGN_VARIABLE" and _variable(node, op.input_indices[0]) == variable:
            found = op
    return found


def read_variable(trail: Trail, node: Node) -> int:
    variable = _variable(node, node.op.input_indices[0])
    assigned = _assignment(node, variable)
    if assigned is None:
        q = int(np.asarray(node.run.get_tensor(node.out.index))[node.element])
        note = f"variable {variable!r}, as an invoke before, a called subgraph or its initial value left it"
        trail.add("q", q, note)
    else:
        source = assigned.inputs[1]
        assert source is not None
        values = source.data if source.is_constant else node.run.get_tensor(source.index)
        q = int(np.asarray(values)[node.element])
        trail.add("q", q, f"variable {variable!r}, assigned by operator {assigned.index} from {source.name!r}")
    return int(trail.add("quantized value", q, "as it is"))


def svdf(trail: Trail, node: Node) -> int:
    batch, unit = node.element
    rank, time = int(node.options["rank"]), node.values(_TIME)
    filters = slice(unit * rank, (unit + 1) * rank)
    state = node.values(_STATE).reshape(-1, *time.shape)[batch, filters]
    zero = 0 if node.type_of(_STATE) == "INT16" else node.zero_point(_STATE)
    scale = float(node.scale(_STATE))
    for place, newest in enumerate(state[:, -1]):
        trail.add(f"newest state {place}", int(newest), f"of filter {unit * rank + place}; scale {scale!r}")
    total = trail.add("sum(time w (state - z))", int((time[filters] * (state - zero)).sum()), f"over {rank} filters")
    if node.tensor(_BIAS) is not None:
        total += trail.add("bias", int(node.values(_BIAS).reshape(-1)[unit]), "added")
    trail.accumulator = int(trail.add("accumulator", total, "the exact sum"))
    real = float(f32(f32(node.scale(_STATE) * node.scale(_TIME)) / node.out_scale))
    trail.add("real multiplier", real, "state scale * time scale / output scale, in float32")
    return finish(
        trail, node, fixed_steps(trail, _wrapped(total), node.parts(real), node.rule("double")), None, node.limits
    )
