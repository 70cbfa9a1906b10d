# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points: of groups of activations, and of constants that are quantized like activations.

A group's range is that of all its tensors; or the operator that writes it demands the parameters; or the caller gives
them.  A kernel's limit may widen it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from tq import _core
from tq.editing.graph import OperatorPart, TensorPart
from tq.enums import LIMITS
from tq.quantization import clipping, unsigned
from tq.quantization.groups import SHARING, Groups
from tq.quantization.ranges import Parameters
from tq.quantization.view import Key, View, range_of_constant
from tq.specification.limits import Scales
from tq.specification.table import FREE, READS

Spans = Mapping[Key, tuple[float, float]]  # the range that all tensors under a constraint need

# Operators whose constants are bounds.  A bound outside of the computed values changes none of them, and may saturate.
_BOUNDING = ("MINIMUM", "MAXIMUM")
# The least range of a constant in a comparison: its steps are then 1/256, those in which kernels compare.
_LEAST_COMPARED = 255 / 256
_MOST_SWEEPS = 8  # a wider group may narrow another operator's inputs
_JUST_OVER = 1.0001  # float32 rounds the scale


def of_range(type: str, low: float, high: float, centered: bool = False, is_unsigned: bool = False) -> Parameters:
    """The parameters of a range.  is_unsigned: for int8 values that become uint8, whose zero point toco rounds.

    A range of one value follows rule "mlir", which has a least range: toco's scale would be 0, a divisor in kernels.
    """
    if is_unsigned and not centered and max(high, 0) - min(low, 0) > unsigned.LEAST_RANGE:
        made = _core.choose_quantization_params(low, high, "uint8", rule="toco")
        return Parameters(np.float32(made.scale), int(made.zero_point) - unsigned.SHIFT, low, high)
    made = _core.choose_quantization_params(low, high, type, symmetric=centered, narrow_range=centered, rule="mlir")
    return Parameters(np.float32(made.scale), int(made.zero_point), low, high)


def of_scale(limits: tuple[int, int], scale: float, zero_point: int) -> Parameters:
    least, most = limits
    return Parameters(np.float32(scale), zero_point, scale * (least - zero_point), scale * (most - zero_point))


@dataclass(frozen=True)
class GroupParameters:
    """The parameters of all groups of a subgraph.  agreed: the parameters under each constraint that holds."""

    view: View
    groups: Groups
    by_root: Mapping[TensorPart, Parameters]
    agreed: Mapping[Key, Parameters]
    defaults: frozenset[TensorPart] = frozenset()  # the roots of the groups that got the default range

    def of(self, tensor: TensorPart) -> Parameters:
        return self.by_root[self.groups.roots[tensor]]

    def of_constant(self, op: OperatorPart, index: int, tensor: TensorPart) -> Parameters:
        """The parameters of a constant that an operator reads like an activation."""
        view = self.view
        if op in view.variables:
            return self.agreed[view.variables[op]]
        if op in view.ends:
            return self.agreed[view.ends[op]["inputs", index]]
        rule = view.rule(op)
        if rule in SHARING:
            return self.of(view.activations(op)[0])
        low, high = view.range_of_constant(tensor)
        type_ = "int8" if view.row(op).narrow == index else view.type
        grid = view.ranges.grids.get(tensor)
        by_toco = view.ranges.is_unsigned and grid is not None and grid.is_range
        chosen = grid.parameters(type_, LIMITS[type_]) if grid is not None and rule == FREE and not by_toco else None
        if chosen is not None:
            return of_scale(LIMITS[type_], *chosen)
        if view.row(op).narrow == index:
            return of_range("int8", low, high, is_unsigned=view.ranges.is_unsigned)
        if rule == READS:
            high = max(high, low + _LEAST_COMPARED)
        return of_range(view.type, low, high, is_unsigned=view.ranges.is_unsigned)

    def scales(self, op: OperatorPart) -> Scales:
        """The scales that the operator's kernel gets."""
        view, read, outputs = self.view, self.view.read(op), self.view.outputs(op)
        found = [self.of_constant(op, index, t) if t.is_constant else self.of(t) for index, t in read]
        ends = [float(p.scale) * (view.limits[0] - p.zero_point) for p in found]
        beta = op.options.get("beta")
        return Scales(
            view.type,
            tuple(float(p.scale) for p in found),
            tuple(t.is_constant for _, t in read),
            tuple(self._least(t, end) for (_, t), end in zip(read, ends, strict=True)),
            tuple(ends),
            float(self.of(outputs[0]).scale) if outputs else 0.0,
            1.0 if beta is None else float(beta),
            self._weights_scale(op, float(found[0].scale)),
        )

    def _least(self, tensor: TensorPart, end: float) -> float:
        if tensor.is_constant:
            return range_of_constant(tensor)[0]
        return self.view.ranges.of(tensor)[0] if self.view.ranges.knows(tensor) else end

    def _weights_scale(self, op: OperatorPart, input_scale: float) -> float:
        """The greatest scale, which grows where the bias would not fit."""
        view, weights, bias = self.view, self.view.weights(op), self.view.bias(op)
        if weights is None:
            return 0.0
        if weights.is_constant:
            grid = view.ranges.grids.get(weights)
            scale = view.magnitude(weights) / 127 if grid is None else float(grid.scale.max())
        elif view.type == "int8":
            scale = float(self.of(weights).scale)
        else:
            scale = max(map(abs, view.ranges.of(weights))) / 127
        return scale if bias is None else max(scale, view.magnitude(bias) * 2.0**-30 / input_scale)


def choose(view: View, operators: Collection[OperatorPart], groups: Groups, spans: Spans) -> GroupParameters:
    """The parameters of the groups of integer operators."""
    passing = clipping.passing(view.graph, {op: op.builtin_name or "" for op in operators}, view.apart)
    chooser = _Chooser(view, frozenset(operators), groups, spans, passing)
    constants = _shared_constants(view, operators, groups)
    members = groups.members()
    given = {root: p for root, tensors in members.items() if (p := _given(view, tensors)) is not None}
    found = {
        root: given.get(root) or chooser.parameters(root, tensors, constants.get(root, ()))
        for root, tensors in members.items()
    }
    made = GroupParameters(view, groups, MappingProxyType(found), MappingProxyType({}), frozenset(chooser.defaults))
    for _ in range(_MOST_SWEEPS):
        is_wider = False
        for op in operators:
            wider = _wider(made, op, given)
            if wider is not None:
                is_wider, found[wider[0]] = True, wider[1]
        if not is_wider:
            break
    return made


def _shared_constants(
    view: View, operators: Iterable[OperatorPart], groups: Groups
) -> dict[TensorPart, list[TensorPart]]:
    """The constants that must have the parameters of a group, by its root."""
    found: dict[TensorPart, list[TensorPart]] = {}
    for op in operators:
        tensors = view.activations(op)
        if view.rule(op) in SHARING and op.builtin_name not in _BOUNDING and tensors:
            constants = [tensor for _, tensor in view.read(op) if tensor.is_constant]
            found.setdefault(groups.roots[tensors[0]], []).extend(constants)
    return found


def _given(view: View, tensors: Sequence[TensorPart]) -> Parameters | None:
    """The parameters that the caller gives or that training chose.

    ValueError: tensors that must have equal ones get different ones from the caller."""
    if not any(view.ranges.override_name(tensor) is not None for tensor in tensors):
        rows = [view.ranges.trained(tensor) for tensor in tensors]
        is_fixed = any(row is not None and row.is_fixed for row in rows)
        return _trained(view, tensors) if is_fixed else None
    found: dict[tuple[float, int], TensorPart] = {}
    for tensor in tensors:
        given = view.ranges.fixed(tensor)
        if given is not None:
            found.setdefault((float(given.scale), int(given.zero_point)), tensor)
    if len(found) > 1:
        names = " and ".join(repr(tensor.name) for tensor in list(found.values())[:2])
        raise ValueError(f"overrides: tensors {names} must have the same parameters, and get different ones")
    least, most = view.limits
    for (scale, zero), tensor in found.items():
        if not least <= zero <= most or (view.type == "int16" and zero):
            needed = "0" if view.type == "int16" else f"{least} to {most}"
            raise ValueError(f"overrides: the zero point of {tensor.name!r} is {zero}; {view.type} needs {needed}")
        return of_scale(view.limits, scale, zero)
    return None


def _trained(view: View, tensors: Sequence[TensorPart]) -> Parameters | None:
    """The trained parameters, if training chose the same for all tensors of known range; else None."""
    found = [row for tensor in tensors if (row := view.ranges.trained(tensor)) is not None]
    if len(found) < sum(view.ranges.knows(tensor) for tensor in tensors):
        return None
    chosen = found[0].parameters if found and found[0].type == view.type else None
    if chosen is None or any(row.parameters != chosen or row.type != view.type for row in found):
        return None
    if view.type == "int16" and chosen.zero_point:
        return None
    made = of_scale(view.limits, float(chosen.scale), int(chosen.zero_point))
    return made if found[0].is_fixed else made._replace(low=found[0].low, high=found[0].high)


def _wider(
    made: GroupParameters, op: OperatorPart, given: Mapping[TensorPart, Parameters]
) -> tuple[TensorPart, Parameters] | None:
    """The group of an operator's output with the scale that the kernel needs.  None: the group has this scale, or the
    caller gives its parameters."""
    least = _least_scale(made, op)
    if not least:
        return None
    view = made.view
    root = made.groups.roots[view.outputs(op)[0]]
    have = made.by_root[root]
    if have.scale >= least or root in given:
        return None
    least *= _JUST_OVER
    low, high = min(have.low, view.limits[0] * least), max(have.high, view.limits[1] * least)
    return root, of_range(view.type, low, high, root in made.groups.centered, view.ranges.is_unsigned)


def _least_scale(made: GroupParameters, op: OperatorPart) -> float:
    """The least scale of an output, by the kernel's limit and by its fused activation.

    LiteRT refuses an activation's end that is 2^31 steps or more away.  int16 would have such an end where all values
    in calibration were 0, since its ranges are not widened."""
    limit = made.view.row(op).limit
    _, end = clipping.BOUNDS.get(getattr(op.options.get("fused_activation_function"), "name", ""), clipping.ALL)
    least = limit.least(made.scales(op)) if limit is not None and limit.least is not None else 0.0
    return max(least, end * 2.0**-30) if math.isfinite(end) else least


@dataclass(frozen=True)
class _Chooser:
    """Chooses the parameters of one group after another."""

    view: View
    operators: frozenset[OperatorPart]
    groups: Groups
    spans: Spans
    passing: Mapping[TensorPart, clipping.Interval]
    defaults: set[TensorPart] = field(default_factory=set)  # the roots of groups that got the default range

    def parameters(
        self, root: TensorPart, tensors: Sequence[TensorPart], constants: Sequence[TensorPart]
    ) -> Parameters:
        view, centered = self.view, root in self.groups.centered
        spans = [self.spans[key] for key in self.groups.constraints.get(root, ()) if key in self.spans]
        demanded, is_free = self._demanded(tensors)
        trained = None if constants or spans or self._is_given(tensors) else _trained(view, tensors)
        if trained is not None and not (centered and trained.zero_point):
            return trained
        if len(demanded) == 1 and not (is_free or constants or centered or spans):
            made = of_scale(view.limits, *demanded[0])
            if not self._is_exceeded(made, tensors):
                return made
        ranges = [self._needed(tensor) for tensor in tensors if view.ranges.knows(tensor)]
        ranges += [*spans, *map(view.range_of_constant, constants)]
        ranges += [of_scale(view.limits, *rule)[2:] for rule in demanded if not ranges]
        if not ranges and view.ranges.default is not None:
            ranges = [view.ranges.default]
            self.defaults.add(root)
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        if centered and view.type == "int8":
            high = max(abs(low), abs(high))
            low = -high
        return of_range(view.type, low, high, centered, view.ranges.is_unsigned)

    def _is_given(self, tensors: Iterable[TensorPart]) -> bool:
        return any(self.view.ranges.override_name(tensor) is not None for tensor in tensors)

    def _demanded(self, tensors: Sequence[TensorPart]) -> tuple[list[tuple[float, int]], bool]:
        """The parameters that kernels demand of their outputs, and whether another kernel takes any parameters."""
        demanded, is_free = set(), False
        for tensor in tensors:
            producer = self.view.producers.get(tensor)
            rule = self.view.rule(producer) if producer is not None and producer in self.operators else FREE
            if isinstance(rule, tuple):
                demanded.add(rule)
            elif rule not in SHARING:
                is_free = True
        return list(demanded), is_free

    def _is_exceeded(self, made: Parameters, tensors: Sequence[TensorPart]) -> bool:
        """Whether the parameters saturate a result of MINIMUM or MAXIMUM, such as a bound that no range contains."""
        writers = ((tensor, self.view.producers.get(tensor)) for tensor in tensors)
        outputs = [t for t, op in writers if op is not None and op.builtin_name in _BOUNDING]
        needed = [self._needed(tensor) for tensor in outputs if self.view.ranges.knows(tensor)]
        return any(low < made.low - made.scale or high > made.high + made.scale for low, high in needed)

    def _needed(self, tensor: TensorPart) -> tuple[float, float]:
        """The range that the parameters must contain."""
        found, passing = self.view.ranges.of(tensor), self.passing.get(tensor, clipping.ALL)
        return clipping.cut(found, passing) if self.view.ranges.was_measured(tensor) else found
