# SPDX-License-Identifier: Apache-2.0
"""Decisions of the passes as rows of a tq.quantization.plan.QuantizationPlan.

Names are read before a decision is written, since writing renames tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from tq.editing.graph import SubgraphPart
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.quantization.boundaries import Boundary, boundaries
from tq.quantization.choice import Choice
from tq.quantization.plan import (
    PlannedConstant,
    PlannedConstraint,
    PlannedConversion,
    PlannedGroup,
    PlannedOperator,
    QuantizationPlan,
)
from tq.quantization.recipes import FLOAT, STATIC, WEIGHTS, Recipe
from tq.quantization.rules import Ruling
from tq.quantization.view import Key
from tq.quantization.weights import Use
from tq.specification.table import INSTEAD

_NO_WEIGHTS = "it has no weights that the recipe quantizes"


class PlanBuilder:
    """operators: of the model, prepared; each with its recipe."""

    def __init__(self, graphs: Sequence[SubgraphPart], ruling: Ruling, recipe: Recipe) -> None:
        self._recipe, self._type = recipe, ""
        self._recipes = {op: ruling.recipe(op, graph.index) for graph in graphs for op in graph.operators}
        self._places = {op: (graph.index, place) for graph in graphs for place, op in enumerate(graph.operators)}
        self._names = {op: op.name for op in self._recipes}
        self._becomes: dict[OperatorPart, tuple[str, str]] = {}  # and why
        self._groups: list[PlannedGroup] = []
        self._constraints: dict[Key, PlannedConstraint] = {}
        self._constants: list[PlannedConstant] = []
        self._conversions: list[PlannedConversion] = []

    def add_prepared(self, graphs: Sequence[SubgraphPart]) -> None:
        """Notes the operators that preparation took away."""
        left = {op for graph in graphs for op in graph.operators}
        gone = ("folded", "its result is a constant, or its range is taken from it")
        self._becomes.update((op, gone) for op in self._recipes if op not in left)

    def add_weights(self, uses: Iterable[Sequence[Use]]) -> None:
        """Describes the constants of each subgraph beside float activations."""
        found: dict[tuple[TensorPart, str], list[OperatorPart]] = {}
        for use in chain.from_iterable(uses):
            becomes = str(use.target)
            self._becomes[use.operator] = (f"{use.target.type} weights", "")
            found.setdefault((use.tensor, becomes), []).append(use.operator)
        for (tensor, becomes), operators in found.items():
            self._add_constant(tensor, becomes, operators)

    def add_choice(self, choice: Choice, per_axis: bool, is_unsigned: bool = False) -> None:
        """Describes the operators of one subgraph that are to have integer activations of one type.

        is_unsigned: all int8 values are written as uint8."""
        self._type = "uint8" if is_unsigned else choice.type
        for op, reason in choice.reasons.items():
            self._becomes.setdefault(op, ("float32", reason))
        for op in choice.operators:
            self._becomes[op] = (self._type, f"written as {INSTEAD[op.name]}" if op.name in INSTEAD else "")
            self._add_constants(choice, op, per_axis)
        self._add_groups(choice)
        for boundary in boundaries(choice):
            self._add_conversions(choice, boundary)

    def add_constraints(self, types: Mapping[Key, str]) -> None:
        for key, type_ in types.items():
            self._constraints[key] = PlannedConstraint(" ".join(part for part in key if part), type_)

    def _add_constant(self, tensor: TensorPart, becomes: str, operators: Sequence[OperatorPart]) -> None:
        places = tuple(self._places[op][1] for op in operators if op in self._places)
        self._constants.append(PlannedConstant(tensor.subgraph.index, tensor.name, becomes, places))

    def _add_constants(self, choice: Choice, op: OperatorPart, per_axis: bool) -> None:
        view, row = choice.view, choice.view.row(op)
        weights, bias = view.weights(op), view.bias(op)
        if weights is not None and view.has_constant_weights(op):
            axis = row.axis if per_axis and self._type != "uint8" else None
            self._add_constant(weights, self._weights_type(choice, op, weights, axis), [op])
        if bias is not None:
            self._add_constant(bias, "int32" if choice.type == "int8" else "int64", [op])
        for place, tensor in view.read(op):
            if tensor.is_constant:
                self._add_constant(
                    tensor, "int8" if row.narrow == place and choice.type == "int16" else self._type, [op]
                )

    def _weights_type(self, choice: Choice, op: OperatorPart, weights: TensorPart, axis: int | None) -> str:
        if self._type == "uint8":
            return self._type
        row, grid = WEIGHTS[op.builtin_name or ""], choice.view.ranges.grids.get(weights)
        is_narrow = self._recipes.get(op, self._recipe).weights == "int4" or (grid is not None and grid.most == 7)
        type_ = "int4" if is_narrow and "int4" in row.integer else "int8"
        if grid is not None and grid.axis is None:
            axis = None
        return type_ if axis is None else f"{type_} along axis {axis}"

    def _add_groups(self, choice: Choice) -> None:
        ranges = choice.view.ranges
        for root, tensors in choice.parameters.groups.members().items():
            p = choice.of(root)
            sources = dict.fromkeys(source for tensor in tensors if (source := ranges.source(tensor)))
            demanded = any(_demands(choice, tensor, float(p.scale)) for tensor in tensors)
            source = "kernel" if demanded else " and ".join(sources) or "default"
            names = tuple(tensor.name for tensor in tensors)
            zero = int(p.zero_point) + (128 if self._type == "uint8" else 0)
            row = (self._type, float(p.scale), zero, float(p.low), float(p.high), source)
            self._groups.append(PlannedGroup(choice.graph.index, names, *row))

    def _add_conversions(self, choice: Choice, boundary: Boundary) -> None:
        kinds = ["QUANTIZE"] if boundary.quantize or boundary.demanded else []
        kinds += ["DEQUANTIZE"] if boundary.dequantize else []
        for kind in kinds:
            self._conversions.append(PlannedConversion(choice.graph.index, kind, boundary.tensor.name))

    def finished(self) -> QuantizationPlan:
        rows = []
        for op, recipe in self._recipes.items():
            becomes, why = self._becomes.get(op, ("float32", _why_float(recipe)))
            rows.append(PlannedOperator(*self._places[op], self._names[op], recipe.name, becomes, why))
        return QuantizationPlan(
            self._recipe.name,
            tuple(rows),
            tuple(self._groups),
            tuple(self._constraints.values()),
            tuple(self._constants),
            tuple(self._conversions),
        )


def _why_float(recipe: Recipe) -> str:
    if recipe.form == FLOAT:
        return "a rule leaves it float"
    return "no integer kernel computes it" if recipe.form == STATIC else _NO_WEIGHTS


def _demands(choice: Choice, tensor: TensorPart, scale: float) -> bool:
    """Whether an integer operator's kernel demands the scale of a tensor that it writes."""
    producer = choice.view.producers.get(tensor)
    rule = choice.view.rule(producer) if producer is not None and choice.writes(tensor) else None
    return isinstance(rule, tuple) and rule[0] == scale
