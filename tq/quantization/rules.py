# SPDX-License-Identifier: Apache-2.0
"""Which recipe an operator gets, and whether all rules and overrides have an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tq._core import Operator
from tq.editing.graph import OperatorPart, SubgraphPart
from tq.nearest import hint, pattern_hint
from tq.quantization.options import Options
from tq.quantization.recipes import Recipe, Rule, find

_COMPOSITE = "STABLEHLO_COMPOSITE"


class Seen(NamedTuple):
    """What rules see of an operator."""

    name: str
    subgraph: int
    tensors: Sequence[str]  # the names of its outputs and constant inputs
    position: int | None


class Ruled(NamedTuple):
    """An operator, the composites whose subgraph it stands in, and whether a recipe changes it."""

    seen: Seen
    within: Sequence[Seen]
    can: Callable[[Recipe], bool]

    def holds(self, rule: Rule) -> bool:
        """Whether a rule is meant for it: one that finds a composite, not all operators of the composite's subgraph, is
        meant for the operators within too."""
        finds = any(condition is not None for condition in (rule.operator, rule.tensor, rule.index))
        return rule.holds(*self.seen) or (finds and any(rule.holds(*item) for item in self.within))


class Ruling:
    """The recipe of each operator.  It is made of the model as it was: indices are as a rule's `index` counts."""

    def __init__(self, graphs: Sequence[SubgraphPart], options: Options) -> None:
        self._recipe, self._rules = options.recipe, options.all_rules
        counts = any(rule.index is not None for rule in self._rules)
        self._indices: Mapping[OperatorPart, int] = (
            {op: index for graph in graphs for index, op in enumerate(graph.operators)} if counts else {}
        )
        self._composites: dict[int, list[OperatorPart]] = {}  # by the subgraph that they call
        for op in (op for graph in (graphs if self._rules else ()) for op in graph.operators):
            if op.name == _COMPOSITE:
                called = int(op.options.get("decomposition_subgraph_index", -1))
                self._composites.setdefault(called, []).append(op)

    def recipe(self, operator: OperatorPart, subgraph: int) -> Recipe:
        if not self._rules:
            return self._recipe
        ruled, found = self.ruled(operator, subgraph, self._indices.get(operator), bool), self._recipe
        for rule in self._rules:
            if ruled.holds(rule):
                found = find(rule.recipe)
        return found

    def ruled(
        self, operator: OperatorPart, subgraph: int, position: int | None, can: Callable[[Recipe], bool]
    ) -> Ruled:
        within = dict.fromkeys(self._composites.get(subgraph, ()))
        waiting = list(within)
        while waiting:
            further = [op for op in self._composites.get(waiting.pop().subgraph.index, ()) if op not in within]
            within.update(dict.fromkeys(further))
            waiting += further
        around = [Seen(op.name, op.subgraph.index, tensor_names(op), self._indices.get(op)) for op in within]
        return Ruled(Seen(operator.name, subgraph, tensor_names(operator), position), around, can)

    def index(self, operator: OperatorPart, now: int) -> int:
        """The operator's index in the model as it was; `now` where no rule asks for indices."""
        return self._indices.get(operator, now)


def method_of(operator: Operator, options: Options) -> str:
    """The rounding of an operator's weights: of the last rule that holds and says one."""
    found, names = options.weight_rounding, tensor_names(operator)
    for rule in options.rules:
        if rule.weight_rounding is not None and rule.holds(operator.name, 0, names, operator.index):
            found = rule.weight_rounding
    return found


def tensor_names(operator: OperatorPart | Operator) -> list[str]:
    """The names that a rule's `tensor` is searched for in."""
    tensors = [*operator.outputs, *(tensor for tensor in operator.inputs if tensor and tensor.is_constant)]
    return [tensor.name for tensor in tensors if tensor is not None]


def check_rules(recipe: Recipe, rules: Sequence[Rule], operators: Sequence[Ruled]) -> None:
    """ValueError: a rule that holds for no operator, for none that later rules leave to it, or for none that recipes
    change."""
    held = [[op.holds(rule) for rule in rules] for op in operators]
    for index, rule in enumerate(rules):
        own = [(op, row) for op, row in zip(operators, held, strict=True) if row[index]]
        if not own:
            raise ValueError(f"{_text(rule)} holds for no operator: {_missing(rule, operators)}")
        _check_indices(rule, {op.seen.position for op, _row in own if rule.holds(*op.seen)})
        own = [(op, row) for op, row in own if not any(row[index + 1 :])]
        if not own:
            raise ValueError(f"{_text(rule)} has no effect: later rules hold for all of its operators")
        new = find(rule.recipe)
        changes = [(op, old) for op, row in own if (old := _before(recipe, rules, row, index)) != new]
        if changes and not any(op.can(new) or op.can(old) for op, old in changes):
            names = ", ".join(dict.fromkeys(op.seen.name for op, _old in changes))
            others = " and ".join(dict.fromkeys(repr(old.name) for _op, old in changes))
            raise ValueError(f"{_text(rule)} has no effect: neither {rule.recipe!r} nor {others} changes {names} here")


def _before(recipe: Recipe, rules: Sequence[Rule], row: Sequence[bool], index: int) -> Recipe:
    """The recipe of an operator without the rule at `index`."""
    return next((find(rules[i].recipe) for i in range(index - 1, -1, -1) if row[i]), recipe)


def _text(rule: Rule) -> str:
    fields = ("operator", "tensor", "subgraph", "index")
    given = [f"{name} {value!r}" for name in fields if (value := getattr(rule, name)) is not None]
    return f"the rule of recipe {rule.recipe!r} for {', '.join(given) or 'all operators'}"


def _check_indices(rule: Rule, found: set[int | None]) -> None:
    wanted = rule.index if isinstance(rule.index, tuple) else ()
    missing = [index for index in wanted if index not in found]
    if missing:
        raise ValueError(f"{_text(rule)} holds for no operator {missing[0]}")


def _missing(rule: Rule, ruled: Sequence[Ruled]) -> str:
    """Which of a rule's conditions no operator meets."""
    operators = [op.seen for op in ruled]
    names = {op.name for op in operators}
    if rule.operator is not None and rule.operator not in names:
        kinds = sorted(names)
        listed = f"; there are: {', '.join(kinds)}" if len(kinds) <= 20 else ""
        return f"the model has no operator {rule.operator!r}{hint(rule.operator, kinds) or listed}"
    if rule.tensor is not None and not any(
        Rule("float", tensor=rule.tensor).holds("", 0, op.tensors) for op in operators
    ):
        known = dict.fromkeys(name for op in operators for name in op.tensors)
        return f"no output or constant has a name that {rule.tensor!r} is found in{pattern_hint(rule.tensor, known)}"
    graphs = {op.subgraph for op in operators}
    if rule.subgraph is not None and rule.subgraph not in graphs:
        return f"the subgraphs with operators are {', '.join(map(str, sorted(graphs)))}"
    last = max((op.position or 0 for op in operators if rule.subgraph in (None, op.subgraph)), default=-1)
    indices = rule.index if isinstance(rule.index, tuple) else () if rule.index is None else (rule.index,)
    if not any(0 <= index <= last for index in indices) and rule.index is not None:
        return f"the last operator is {last}"
    return "each of its conditions holds for some operator, but not all for one"


def check_overrides(overrides: Iterable[str], used: Iterable[str], activations: Iterable[str]) -> None:
    """ValueError: the name of a tensor whose given range nothing uses: a constant, or a tensor that stays float32."""
    found = set(used)
    for name in overrides:
        if name not in found:
            near = hint(name, (item for item in activations if item != name))
            raise ValueError(
                f"overrides: the range of {name!r} has no effect: no integer operator reads or writes this tensor as "
                f"an activation, or reads it as weights{near}"
            )
