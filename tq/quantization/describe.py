# SPDX-License-Identifier: Apache-2.0
"""The last pass: the decisions as rows of a tq.quantization.plan.QuantizationPlan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization.plan import (
    Activations,
    PlannedConstant,
    PlannedConstraint,
    PlannedConversion,
    PlannedGroup,
    PlannedOperator,
    QuantizationPlan,
    SubgraphPlan,
)
from tq.quantization.prepare import Original, Prepared
from tq.quantization.recipes import FLOAT, STATIC, WEIGHTS, Recipe
from tq.quantization.records import ComputedWeights, Constant
from tq.quantization.view import REQUANTIZING, Key
from tq.specification.table import INSTEAD

_NO_WEIGHTS = "it has no weights that the recipe quantizes"


def describe(prepared: Prepared, subgraphs: Sequence[SubgraphPlan], constraints: Mapping[Key, str]) -> QuantizationPlan:
    """The plan as tables."""
    activations = [item for subgraph in subgraphs for item in subgraph.activations]
    becomes = _becomes(prepared, subgraphs)
    indices = {row.operator: row.index for row in prepared.original}
    return QuantizationPlan(
        prepared.options.recipe.name,
        tuple(_operator(row, becomes) for row in prepared.original),
        tuple(row for item in activations for row in _groups(item)),
        tuple(PlannedConstraint(" ".join(part for part in key if part), type_) for key, type_ in constraints.items()),
        (*_uses(subgraphs, indices), *(row for item in activations for row in _constants(item, indices))),
        tuple(row for subgraph in subgraphs for row in _conversions(subgraph)),
    )


# ---- operators ----


def _becomes(prepared: Prepared, subgraphs: Sequence[SubgraphPlan]) -> dict[OperatorPart, tuple[str, str]]:
    """The form of operators, and why they stay float or are written as another."""
    left = {op for graph in prepared.graphs for op in graph.operators}
    gone = "folded", "its result is a constant, or its range is taken from it"
    found = {row.operator: gone for row in prepared.original if row.operator not in left}
    uses = chain.from_iterable(subgraph.uses for subgraph in subgraphs)
    found.update((use.operator, (f"{use.target.type} weights", "")) for use in uses)
    recipes = {row.operator: row.recipe for row in prepared.original}
    for item in chain.from_iterable(subgraph.activations for subgraph in subgraphs):
        for op, reason in item.choice.reasons.items():
            found.setdefault(op, ("float32", reason))
        for op in item.choice.operators:
            instead = f"written as {INSTEAD[op.name]}" if op in item.products else ""
            found[op] = _type(item), instead or _why_wide(op, recipes.get(op))
    return found


def _why_wide(op: OperatorPart, recipe: Recipe | None) -> str:
    """Why its weights have more bits than the recipe asks for; "" where they have not."""
    row = WEIGHTS.get(op.name)
    if recipe is None or recipe.weights != "int4" or row is None or "int4" in row.integer:
        return ""
    inputs = op.inputs
    has_weights = any(
        place < len(inputs) and (t := inputs[place]) is not None and t.is_constant for place in row.inputs
    )
    return "its weights are int8: one of LiteRT's kernel sets or more take no int4 ones" if has_weights else ""


def _type(item: Activations) -> str:
    return "uint8" if item.is_unsigned else item.choice.type


def _operator(row: Original, becomes: Mapping[OperatorPart, tuple[str, str]]) -> PlannedOperator:
    type_, why = becomes.get(row.operator, ("float32", _why_float(row.recipe)))
    return PlannedOperator(row.subgraph, row.index, row.name, row.recipe.name, type_, why)


def _why_float(recipe: Recipe) -> str:
    if recipe.form == FLOAT:
        return "a rule leaves it float"
    return "no integer kernel computes it" if recipe.form == STATIC else _NO_WEIGHTS


# ---- groups ----


def _groups(item: Activations) -> Iterator[PlannedGroup]:
    choice, type_ = item.choice, _type(item)
    for root, tensors in choice.parameters.groups.members().items():
        p = choice.of(root)
        sources = dict.fromkeys(source for tensor in tensors if (source := choice.view.ranges.source(tensor)))
        demanded = any(_demands(item, tensor, float(p.scale)) for tensor in tensors)
        source = "kernel" if demanded else " and ".join(sources) or "default"
        names = tuple(tensor.name for tensor in tensors)
        zero = int(p.zero_point) + (128 if item.is_unsigned else 0)
        row = type_, float(p.scale), zero, float(p.low), float(p.high), source
        yield PlannedGroup(choice.graph.index, names, *row)


def _demands(item: Activations, tensor: TensorPart, scale: float) -> bool:
    """Whether an integer operator's kernel demands the scale of a tensor that it writes."""
    choice = item.choice
    producer = choice.view.producers.get(tensor)
    rule = choice.view.rule(producer) if producer is not None and choice.writes(tensor) else None
    return isinstance(rule, tuple) and rule[0] == scale


# ---- constants ----


def _uses(subgraphs: Sequence[SubgraphPlan], indices: Mapping[OperatorPart, int]) -> Iterator[PlannedConstant]:
    found: dict[tuple[TensorPart, str], list[OperatorPart]] = {}
    for use in chain.from_iterable(subgraph.uses for subgraph in subgraphs):
        found.setdefault((use.tensor, str(use.target)), []).append(use.operator)
    for (tensor, becomes), operators in found.items():
        readers = tuple(indices[op] for op in operators if op in indices)
        yield PlannedConstant(tensor.subgraph.index, tensor.name, becomes, readers)


def _constants(item: Activations, indices: Mapping[OperatorPart, int]) -> Iterator[PlannedConstant]:
    for record in item.records:
        if isinstance(record, Constant):
            becomes = "uint8" if item.is_unsigned and record.type == "int8" else str(record)
            name = record.name if record.tensor is None else record.tensor.name
            readers = (indices[record.operator],) if record.operator in indices else ()
            yield PlannedConstant(item.choice.graph.index, name, becomes, readers)


# ---- QUANTIZE and DEQUANTIZE ----


def _conversions(subgraph: SubgraphPlan) -> Iterator[PlannedConversion]:
    for item in subgraph.activations:
        computed = [record for record in item.records if isinstance(record, ComputedWeights)]
        for tensor in dict.fromkeys(record.tensor for record in computed):
            yield PlannedConversion(subgraph.graph.index, "QUANTIZE", tensor.name)
        for boundary in item.boundaries:
            if boundary.quantize or boundary.demanded:
                yield PlannedConversion(subgraph.graph.index, "QUANTIZE", boundary.tensor.name)
            if boundary.dequantize and subgraph.joined.get(boundary.tensor, True):
                yield PlannedConversion(subgraph.graph.index, "DEQUANTIZE", boundary.tensor.name)
        for op in item.choice.operators:
            if op.builtin_name == REQUANTIZING and (source := op.inputs[0]) is not None:
                yield PlannedConversion(subgraph.graph.index, "QUANTIZE", source.name)
