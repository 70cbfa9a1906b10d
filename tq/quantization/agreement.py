# SPDX-License-Identifier: Apache-2.0
"""The choices of all subgraphs under their constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tq.editing.graph import OperatorPart, SubgraphPart
from tq.quantization.choice import Choice, settle, start
from tq.quantization.constraints import Constraint, find_control_flow, find_variables
from tq.quantization.ranges import Parameters, Ranges
from tq.quantization.view import End, Key, Owner, View

_MOST_TURNS = 16  # in which parameters come to agree; ranges only grow


def choose_all(
    graphs: Sequence[SubgraphPart],
    wanted: Mapping[SubgraphPart, Sequence[OperatorPart]],
    types: Mapping[SubgraphPart, str],
    ranges: Mapping[SubgraphPart, Ranges],
    entries: Iterable[int],
) -> tuple[list[Choice], dict[Key, str]]:
    """The choice of each subgraph, and the type of the tensors under each constraint.

    wanted, types: the operators that may become integer operators, and the type of their activations.
    entries: subgraphs that a caller of the model runs.
    """
    variables, control_flow = find_variables(graphs), find_control_flow(graphs, entries)
    ends: dict[SubgraphPart, dict[Owner, dict[End, Key]]] = {graph: {} for graph in graphs}
    for item in control_flow:
        for port in item.ports:
            ends[port.graph].setdefault(port.owner, {})[port.end] = item.key
    keys = {op: variable.key for variable in variables for op in variable.operators}
    choices = {}
    for graph in graphs:
        own = {op: keys[op] for op in wanted[graph] if op in keys}
        view = replace(View.of(graph, ranges[graph], types[graph]), variables=own, ends=ends[graph])
        choices[graph] = start(view, wanted[graph])
    constraints = [*variables, *control_flow]
    found = list(agree(choices, constraints).values())
    integers = {key: choice.type for choice in found for key in choice.parameters.agreed}
    return found, {item.key: integers.get(item.key, "float32") for item in constraints}


def agree(choices: Mapping[SubgraphPart, Choice], constraints: Sequence[Constraint]) -> dict[SubgraphPart, Choice]:
    """The choices in which the tensors under each constraint have the same parameters, or are float."""
    state = _Agreement(dict(choices), list(constraints))
    for turn in range(_MOST_TURNS):
        state.drop_broken()
        costly = [item for item in state.constraints if turn == 0 and item.costs_much(state.choices)]
        common = {item: item.common(state.choices) for item in state.constraints if item not in costly}
        agreed = {item.key: found for item, found in common.items() if isinstance(found, Parameters)}
        if len(agreed) == len(state.constraints):
            return state.finished(agreed)
        spans = {item.key: found for item, found in common.items() if not isinstance(found, Parameters)}
        state.spans.update(spans)
        state.leave_float(costly, [item for item in common if item.key in spans])
    state.leave_float(state.constraints, [])
    return state.choices


class _Agreement:
    """constraints: all that hold.  spans: the ranges that their tensors need."""

    def __init__(self, choices: dict[SubgraphPart, Choice], constraints: list[Constraint]) -> None:
        self.choices, self.constraints = choices, constraints
        self.spans: dict[Key, tuple[float, float]] = {}
        self._floats: set[Key] = set()

    def drop_broken(self) -> None:
        """Leaves the tensors of constraints that do not hold float, with their operators, which may break other
        constraints."""
        while broken := [item for item in self.constraints if not item.holds(self.choices)]:
            self.leave_float(broken, [])

    def leave_float(self, dropped: Sequence[Constraint], wider: Sequence[Constraint]) -> None:
        """Gives up constraints, and chooses again in their subgraphs and in subgraphs with a wider range."""
        self._floats.update(item.key for item in dropped)
        self.constraints = [item for item in self.constraints if item not in dropped]
        graphs = {graph for item in (*dropped, *wider) for graph in item.graphs()}
        for graph in graphs:
            old = self.choices[graph]
            self.choices[graph] = settle(old.view.without(self._floats), old.operators, old.reasons, self.spans)

    def finished(self, agreed: Mapping[Key, Parameters]) -> dict[SubgraphPart, Choice]:
        return {
            graph: replace(choice, parameters=replace(choice.parameters, agreed=agreed))
            for graph, choice in self.choices.items()
        }
