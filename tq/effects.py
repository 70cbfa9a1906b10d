# SPDX-License-Identifier: Apache-2.0
"""Whether all that tq.quantize_model and its kin are asked for has an effect: nothing that a user says is ignored.

Each function raises ValueError, which names the option or the rule, and the nearest names that exist.  A default that
is given explicitly is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tq.calibration import Calibration
from tq.nearest import hint, pattern_hint
from tq.recipes import DEQUANTIZED, HYBRID, STATIC, Recipe, Rule, find

# ---- options ----


def recipes_of(recipe: str, rules: Iterable[Rule]) -> list[Recipe]:
    """All recipes that operators may get."""
    return [find(recipe), *(find(rule.recipe) for rule in rules if isinstance(rule, Rule))]


def runs_samples(arguments: Mapping[str, Any]) -> bool:
    """Whether arguments of tq.quantize_model ask for what runs samples: equalization, bias correction, fallback."""
    return bool(arguments["equalize"] or arguments["bias_correction"] or arguments["target_sqnr"] is not None)


def needs_samples(recipe: str, options: Mapping[str, Any]) -> bool:
    """Whether tq.quantize_model of these arguments looks at samples."""
    named = {"equalize": False, "bias_correction": False, "target_sqnr": None, "rules": (), **options}
    return runs_samples(named) or any(item.form == STATIC for item in recipes_of(recipe, named["rules"]))


def check_options(arguments: Mapping[str, Any]) -> None:
    """Of all arguments of tq.quantize_model by name: an option that the recipes and the other options do not use."""
    used = recipes_of(arguments["recipe"], arguments["rules"])
    if arguments["target_sqnr"] is not None:
        used.append(find(arguments["fallback"]))
    names = " and ".join(dict.fromkeys(repr(item.name) for item in used))
    is_static = any(item.form == STATIC for item in used)
    has_codes = any(item.form in (HYBRID, DEQUANTIZED) and item.weights != "float16" for item in used)
    floats = f"recipe {names} leaves activations float32"
    without: list[tuple[str, bool, str]] = [
        ("io", arguments["io"] != "float32" and not is_static, f"{floats}, and so inputs and outputs"),
        ("overrides", bool(arguments["overrides"]) and not is_static, f"{floats}, and needs no ranges"),
        ("observer", arguments["observer"] not in (None, "minmax") and not is_static, f"{floats}, and needs no ranges"),
        (
            "per_axis",
            not arguments["per_axis"] and not (is_static or has_codes),
            f"recipe {names} makes no scales",
        ),
        (
            "min_elements",
            arguments["min_elements"] not in (0, 1, 1024) and not has_codes,  # 0, 1: leave none float, which holds
            f"recipe {names} quantizes weights of any size",
        ),
        (
            "block_size",
            arguments["block_size"] != 32 and not any(item.in_blocks for item in used),
            f"recipe {names} makes no blocks, as 'blockwise_int4' does",
        ),
        *_about_samples(arguments, is_static, floats),
        *_about_fallback(arguments),
    ]
    for option, is_idle, why in without:
        if is_idle:
            raise ValueError(f"{option} is given and has no effect: {why}")


def _about_samples(arguments: Mapping[str, Any], is_static: bool, floats: str) -> list[tuple[str, bool, str]]:
    calibration, observer, samples = arguments["calibration"], arguments["observer"], arguments["samples"]
    runs = runs_samples(arguments)
    is_saved = isinstance(calibration, Calibration)
    return [
        (
            "calibration",
            calibration is not None and not is_static and (is_saved or not runs),
            f"{floats}, and needs no ranges",
        ),
        (
            "samples",
            samples is not None and not runs,
            "only equalize, bias_correction and target_sqnr run samples; calibration= takes those for ranges",
        ),
        (
            "observer",
            observer not in (None, "minmax") and calibration is None and samples is None,
            "it finds ranges in a calibration, which is not given",
        ),
        (
            "percentile",
            arguments["percentile"] != 99.99 and observer != "percentile",
            "only observer 'percentile' has one",
        ),
    ]


def _about_fallback(arguments: Mapping[str, Any]) -> list[tuple[str, bool, str]]:
    fallback, target = arguments["fallback"], arguments["target_sqnr"]
    return [
        ("fallback", fallback != "float" and target is None, "operators fall back to reach a target_sqnr"),
        ("fallback", target is not None and fallback == arguments["recipe"], f"{fallback!r} is the recipe itself"),
    ]


# ---- rules ----


class Ruled(NamedTuple):
    """An operator, as rules see it."""

    subgraph: int
    place: int
    name: str
    tensors: Sequence[str]  # the names of its outputs and constant inputs
    can: Callable[[Recipe], bool]  # whether a recipe changes it


def check_rules(recipe: Recipe, rules: Sequence[Rule], operators: Sequence[Ruled]) -> None:
    """A rule that holds for no operator, for none that later rules leave to it, or for none that recipes change."""
    held = [[rule.holds(op.name, op.subgraph, op.tensors, op.place) for rule in rules] for op in operators]
    for place, rule in enumerate(rules):
        own = [(op, row) for op, row in zip(operators, held, strict=True) if row[place]]
        if not own:
            raise ValueError(f"{_text(rule)} holds for no operator: {_missing(rule, operators)}")
        _check_indices(rule, {op.place for op, _row in own})
        own = [(op, row) for op, row in own if not any(row[place + 1 :])]
        if not own:
            raise ValueError(f"{_text(rule)} has no effect: later rules hold for all of its operators")
        new = find(rule.recipe)
        changes = [(op, old) for op, row in own if (old := _before(recipe, rules, row, place)) != new]
        if changes and not any(op.can(new) or op.can(old) for op, old in changes):
            names = ", ".join(dict.fromkeys(op.name for op, _old in changes))
            others = " and ".join(dict.fromkeys(repr(old.name) for _op, old in changes))
            raise ValueError(f"{_text(rule)} has no effect: neither {rule.recipe!r} nor {others} changes {names} here")


def _before(recipe: Recipe, rules: Sequence[Rule], row: Sequence[bool], place: int) -> Recipe:
    """The recipe of an operator without the rule at `place`."""
    return next((find(rules[i].recipe) for i in range(place - 1, -1, -1) if row[i]), recipe)


def _text(rule: Rule) -> str:
    fields = ("operator", "tensor", "subgraph", "index")
    given = [f"{name} {value!r}" for name in fields if (value := getattr(rule, name)) is not None]
    return f"the rule of recipe {rule.recipe!r} for {', '.join(given) or 'all operators'}"


def _check_indices(rule: Rule, found: set[int]) -> None:
    wanted = rule.index if isinstance(rule.index, tuple) else ()
    missing = [index for index in wanted if index not in found]
    if missing:
        raise ValueError(f"{_text(rule)} holds for no operator {missing[0]}")


def _missing(rule: Rule, operators: Sequence[Ruled]) -> str:
    """Which of a rule's conditions nothing meets."""
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
    last = max((op.place for op in operators if rule.subgraph in (None, op.subgraph)), default=-1)
    indices = rule.index if isinstance(rule.index, tuple) else () if rule.index is None else (rule.index,)
    if not any(0 <= index <= last for index in indices) and rule.index is not None:
        return f"the last operator is {last}"
    return "each of its conditions holds for some operator, but not all for one"


# ---- overrides ----


def check_overrides(overrides: Iterable[str], used: Iterable[str], activations: Iterable[str]) -> None:
    """Names of tensors whose given range nothing asked for: constants, and what stays float32."""
    found = set(used)
    for name in overrides:
        if name not in found:
            raise ValueError(
                f"overrides: the range of {name!r} has no effect: no integer operator reads or writes this "
                f"tensor as an activation{hint(name, (item for item in activations if item != name))}"
            )
