# SPDX-License-Identifier: Apache-2.0
"""From a prepared float model to a Plan: the passes in a row.  No pass changes the model, nor the result of another.

weights.py                        constants beside float activations
agreement.py, choice.py           which operators become integer operators, with which parameters; variables and
                                  control flow of several subgraphs
constants.py                      the constants of integer operators
boundaries.py                     where QUANTIZE and DEQUANTIZE stand
trained.py                        operators of training that nothing needs
describe.py                       all of it as tables

Where rules ask for int8 and int16 activations in one subgraph, its operators are chosen for the one type, then for the
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tq.calibration.calibrate import Calibration
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.agreement import choose_all
from tq.quantization.boundaries import boundaries, joined
from tq.quantization.choice import Choice, start
from tq.quantization.constants import constants, products
from tq.quantization.describe import describe
from tq.quantization.options import Options
from tq.quantization.plan import Activations, Plan, SubgraphPlan
from tq.quantization.prepare import Prepared
from tq.quantization.recipes import STATIC
from tq.quantization.records import ComputedWeights, Constant
from tq.quantization.recurrent import inner_states
from tq.quantization.rules import check_overrides
from tq.quantization.trained import unjoined
from tq.quantization.view import Key, View
from tq.quantization.weights import Use, find_uses, place_on_grids


def plan(prepared: Prepared) -> Plan:
    """All decisions.  ValueError: nothing to quantize, or an override without effect."""
    uses = {graph: find_weights(prepared, graph) for graph in prepared.graphs}
    choices, constraints = choose(prepared)
    subgraphs = tuple(_subgraph(prepared, graph, uses[graph], choices.get(graph, ())) for graph in prepared.graphs)
    _check(prepared, subgraphs)
    tables = describe(prepared, subgraphs, constraints)
    return Plan(subgraphs, MappingProxyType(constraints), _on_grid(subgraphs), _used(prepared, subgraphs), tables)


def find_weights(prepared: Prepared, graph: SubgraphPart) -> tuple[Use, ...]:
    """The constants of a subgraph that are quantized beside float activations."""
    return tuple(place_on_grids(find_uses(graph, prepared.ruling, prepared.options), prepared.grids))


def choose(prepared: Prepared) -> tuple[dict[SubgraphPart, tuple[Choice, ...]], dict[Key, str]]:
    """The choices of each subgraph, one for each type of activations, and the type of the tensors under each
    constraint."""
    wanted = prepared.wanted
    if not any(wanted.values()):
        return {}, {}
    other = max((type_ for operators in wanted.values() for type_ in list(operators)[:1]), default="int8")
    types = {graph: next(iter(operators), other) for graph, operators in wanted.items()}
    first = {graph: wanted[graph].get(types[graph], ()) for graph in wanted}
    chosen, constraints = choose_all(list(wanted), first, types, prepared.ranges, prepared.entries)
    return {choice.graph: (choice, *_further(prepared, choice)) for choice in chosen}, constraints


def _further(prepared: Prepared, first: Choice) -> Iterator[Choice]:
    """The choices of the other types in a subgraph."""
    graph = first.graph
    for type_ in list(prepared.wanted[graph])[1:]:
        view = View.of(graph, prepared.ranges[graph], type_, first.apart())
        yield start(view, prepared.wanted[graph][type_])


def _subgraph(
    prepared: Prepared, graph: SubgraphPart, uses: tuple[Use, ...], choices: Sequence[Choice]
) -> SubgraphPlan:
    activations = tuple(_activations(prepared, choice) for choice in choices)
    integers = {op for choice in choices for op in choice.operators}
    gone = unjoined(graph, integers) if choices else ()
    read = {item.choice.type: frozenset(_quantized(item)) for item in activations}
    return SubgraphPlan(graph, uses, activations, MappingProxyType(joined(choices, read)), gone)


def _quantized(item: Activations) -> Iterator[TensorPart]:
    """The tensors that a QUANTIZE reads."""
    yield from (boundary.tensor for boundary in item.boundaries if boundary.quantize)
    yield from (record.tensor for record in item.records if isinstance(record, ComputedWeights))


def _activations(prepared: Prepared, choice: Choice) -> Activations:
    options = prepared.options
    narrow = [op for op in choice.operators if prepared.recipe(op).weights == "int4"]
    return Activations(
        choice,
        MappingProxyType(products(choice)),
        constants(choice, options.per_axis, narrow, options.is_unsigned),
        tuple(boundaries(choice)),
        MappingProxyType(_options(choice)),
        options.is_unsigned,
    )


def _options(choice: Choice) -> dict[OperatorPart, Mapping[str, Any]]:
    """Options that the kernels of int16 ask for."""
    if choice.type != "int16":
        return {}
    found = {op: dict(choice.view.row(op).options) for op in choice.operators}
    return {op: MappingProxyType(row) for op, row in found.items() if row}


# ---- which constants lie on grids, which overrides have an effect ----


def _on_grid(subgraphs: Iterable[SubgraphPlan]) -> frozenset[TensorPart]:
    found: set[TensorPart] = set()
    for subgraph in subgraphs:
        found.update(use.tensor for use in subgraph.uses if use.on_grid is not None)
        for item in subgraph.activations:
            rows = [record for record in item.records if isinstance(record, Constant) and record.is_on_grid]
            found.update(row.tensor for row in rows if row.tensor is not None)
    return frozenset(found)


def _used(prepared: Prepared, subgraphs: Iterable[SubgraphPlan]) -> frozenset[str]:
    """The names of overrides of tensors that integer operators read or write, and of constants."""
    found: set[str] = set()
    for subgraph in subgraphs:
        grids = [prepared.grids.get(use.tensor) for use in subgraph.uses if use.on_grid is not None]
        found.update(grid.given for grid in grids if grid is not None and grid.given)
        for item in subgraph.activations:
            found |= _used_activations(item.choice)
            grids = [prepared.grids.get(tensor) for tensor in _used_constants(item)]
            found.update(grid.given for grid in grids if grid is not None and grid.given)
    return frozenset(found)


def _used_activations(choice: Choice) -> set[str]:
    states = [state for op in choice.operators if choice.view.row(op).recurrent for state in inner_states(op)]
    tensors = [*(tensor for tensor in choice.parameters.groups.roots if choice.is_integer(tensor)), *states]
    return {name for tensor in tensors if (name := choice.view.ranges.override_name(tensor)) is not None}


def _used_constants(item: Activations) -> Iterator[TensorPart]:
    """The constants that lie on their grids, and those whose ranges took part in the parameters of a group."""
    view = item.choice.view
    for record in item.records:
        if isinstance(record, Constant) and record.tensor is not None:
            grid = view.ranges.grids.get(record.tensor)
            is_read = (record.input, record.tensor) in view.read(record.operator)
            if record.is_on_grid or (is_read and grid is not None and grid.ends is not None):
                yield record.tensor


class NothingToQuantize(ValueError):
    """The recipe is for none of the model's operators."""


def _check(prepared: Prepared, subgraphs: Sequence[SubgraphPlan]) -> None:
    options = prepared.options
    operators = [op for subgraph in subgraphs for item in subgraph.activations for op in item.choice.operators]
    if not operators and not any(subgraph.uses for subgraph in subgraphs):
        raise NothingToQuantize(_nothing(options))
    given = [*options.overrides, *options.input_stats]
    if given and not options.own_rules:
        names = (name for ranges in prepared.ranges.values() for name in ranges.names())
        check_overrides(given, _used(prepared, subgraphs), names)
    if not options.own_rules:
        _check_ranges(prepared, subgraphs)
        _check_scales(options, subgraphs)


def _check_ranges(prepared: Prepared, subgraphs: Sequence[SubgraphPlan]) -> None:
    """ValueError: no activation gets the default range; no weights can have the scales of a calibration."""
    options, given = prepared.options, prepared.options.calibration
    choices = [item.choice for subgraph in subgraphs for item in subgraph.activations]
    if options.default_ranges is not None and not any(choice.parameters.defaults for choice in choices):
        raise ValueError("default_ranges is given and has no effect: the range of every activation is known")
    if any(prepared.wanted.values()) or options.runs_samples or not isinstance(given, Calibration):
        return
    weights = [use.tensor.name for subgraph in subgraphs for use in subgraph.uses if use.on_grid is not None]
    if given.encodings and not any(name in given.encodings for name in weights):
        raise ValueError("calibration is given and has no effect: no weights can have the scales that it has")


def _check_scales(options: Options, subgraphs: Sequence[SubgraphPlan]) -> None:
    """ValueError: block_size is given, and no weights are in blocks, or per_axis, and all are."""
    uses = [use for subgraph in subgraphs for use in subgraph.uses]
    in_blocks = [use.target.block_size for use in uses if use.target.block_size]
    if options.block_size != Options.block_size and not in_blocks:
        raise ValueError(f"block_size is given and has no effect: {options.block_size} divides no row of weights")
    if not options.per_axis and in_blocks and len(in_blocks) == len(uses) and not options.is_static:
        raise ValueError("per_axis is given and has no effect: all weights have scales of blocks")


def _nothing(options: Options) -> str:
    if options.recipe.form == STATIC:
        why = "no operator has an integer kernel, and a range with an end for what it reads and writes"
        more = (
            "; operators that only move data become integers where io= asks for it" if options.io == "float32" else ""
        )
        return f"recipe {options.recipe.name!r} finds nothing to quantize: {why}{more}"
    least = f" of at least {options.min_elements} elements" if options.recipe.weights != "float16" else ""
    return f"recipe {options.recipe.name!r} finds nothing to quantize: no operator it is for has float32 weights{least}"
