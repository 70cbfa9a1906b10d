# SPDX-License-Identifier: Apache-2.0
"""The arguments of tq.quantize_model as one record, checked once: no argument is ignored in silence.

A default that is given explicitly is no error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tq.calibration.calibrate import Calibration
from tq.calibration.samples import Data
from tq.quantization.ranges import Override
from tq.quantization.recipes import (
    CUSTOM_WEIGHTS,
    DEQUANTIZED,
    FAST,
    HYBRID,
    NEAREST,
    STATIC,
    Recipe,
    Rule,
    check_effort,
    check_rounding,
    find,
)
from tq.running.limits import NONE, Limits

_IO_TYPES = ("float32", "int8", "uint8", "int16")
ROUNDED = ("int8", "int4", "int2")  # types of weights that weight_rounding concerns
_BLOCK_SIZES = (32, 64, 128, 256)


@dataclass(frozen=True)
class Options:
    """The arguments of tq.quantize_model, which explains them."""

    recipe: Recipe
    calibration: Calibration | Data | None = None
    observer: str | None = None
    percentile: float = 99.99
    io: str = "float32"
    per_axis: bool = True
    rules: tuple[Rule, ...] = ()
    overrides: Mapping[str, Override] = field(default_factory=dict)
    min_elements: int = 1024
    block_size: int = 32
    effort: str = FAST
    weight_rounding: str = NEAREST
    equalize: bool = False
    bias_correction: bool = False
    target_sqnr: float | None = None
    budget: int | str | None = None
    fallback: str = "float"
    samples: Data | None = None
    num_threads: int | None = None
    executor: Any = None
    limits: Limits = NONE  # of each run
    custom_weights: Mapping[str, Sequence[int]] = field(default_factory=dict)
    default_ranges: tuple[float, float] | None = None
    input_stats: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # tq's own.  Beside own_rules, which take operators away, the caller's options need not have an effect.
    own_rules: tuple[Rule, ...] = ()
    own_overrides: Mapping[str, Override] = field(default_factory=dict)

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The last that holds for an operator is taken."""
        return (*self.rules, *self.own_rules)

    @property
    def all_overrides(self) -> dict[str, Override]:
        return {**self.own_overrides, **self.overrides}

    @property
    def recipes(self) -> list[Recipe]:
        """All recipes that operators may get."""
        return [self.recipe, *(find(rule.recipe) for rule in self.all_rules)]

    @property
    def is_static(self) -> bool:
        """Whether operators may get integer activations."""
        return any(recipe.form == STATIC for recipe in self.recipes)

    @property
    def is_unsigned(self) -> bool:
        """Whether activations and weights become uint8."""
        return any(recipe.weights == "uint8" for recipe in self.recipes)

    @property
    def rounds_weights(self) -> bool:
        """Whether weights of some operators are rounded otherwise than to the nearest."""
        return any(
            name not in (None, NEAREST) for name in (self.weight_rounding, *(r.weight_rounding for r in self.rules))
        )

    @property
    def falls_back(self) -> bool:
        """Whether operators may fall back."""
        return self.target_sqnr is not None or self.budget is not None

    @property
    def runs_samples(self) -> bool:
        """Whether effort, equalization, rounding of weights, bias correction or fallback is asked for."""
        asked = self.effort != FAST or self.equalize or self.bias_correction or self.falls_back
        return bool(asked or self.rounds_weights)

    @property
    def calibrates(self) -> bool:
        """Whether ranges are found in samples."""
        given = self.calibration if self.calibration is not None or not self.runs_samples else self.samples
        return self.is_static and given is not None and not isinstance(given, Calibration)

    @property
    def runs_models(self) -> bool:
        """Whether models are run."""
        return self.runs_samples or self.calibrates


def needs_samples(recipe: str, given: Mapping[str, Any]) -> bool:
    """Whether tq.quantize_model with these arguments looks at samples."""
    options = _unchecked(recipe, given)
    return options.runs_samples or options.is_static


def runs_models(recipe: str, given: Mapping[str, Any]) -> bool:
    """Whether tq.quantize_model with these arguments runs models, which limits concern."""
    return _unchecked(recipe, given).runs_models


def _unchecked(recipe: str, given: Mapping[str, Any]) -> Options:
    names = (
        "calibration",
        "rules",
        "effort",
        "equalize",
        "bias_correction",
        "target_sqnr",
        "budget",
        "weight_rounding",
    )
    some = {name: given[name] for name in names if name in given}
    some["rules"] = tuple(rule for rule in given.get("rules", ()) if isinstance(rule, Rule))
    return Options(find(recipe), **some)


def check(options: Options) -> Options:
    """The options.  TypeError, ValueError: one is no value of its kind, or has no effect beside the others."""
    for rule in options.rules:
        if not isinstance(rule, Rule):
            raise TypeError(f"rules must be tq.Rule objects, not {rule!r}")
    if options.block_size not in _BLOCK_SIZES:
        raise ValueError(f"block_size is {options.block_size}; TFLite's kernels take 32, 64, 128 and 256")
    if options.min_elements < 0:
        raise ValueError(f"min_elements is {options.min_elements}; it must not be negative")
    if options.io not in _IO_TYPES:
        raise ValueError(f"io is {options.io!r}; it must be one of {', '.join(map(repr, _IO_TYPES))}")
    for name, indices in options.custom_weights.items():
        if not _are_indices(indices):
            raise ValueError(f"custom_weights: {name!r} gets {indices!r}; the indices of inputs are needed, as [1, 2]")
    check_effort(options.effort)
    check_rounding(options.weight_rounding)
    _check_numbers(options)
    others = [recipe.name for recipe in options.recipes if recipe.form == STATIC and recipe.weights != "uint8"]
    if options.is_unsigned and others:
        raise ValueError(f"recipe 'uint8' is for whole models: beside it stands {others[0]!r}")
    for row in _rows(options):
        if row.is_idle:
            raise ValueError(f"{row.option} is given and has no effect: {row.why}")
    return options


def _are_indices(given: Any) -> bool:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        return False
    return all(isinstance(index, int) and not isinstance(index, bool) and index >= 0 for index in given)


def _check_numbers(options: Options) -> None:
    if options.default_ranges is not None:
        ends = tuple(options.default_ranges)
        if len(ends) != 2 or not all(map(math.isfinite, ends)) or not ends[0] <= 0 <= ends[1] or ends[0] == ends[1]:
            raise ValueError(f"default_ranges is {ends}; (low, high) with low <= 0 <= high, both finite, is needed")
    for name, given in options.input_stats.items():
        if len(given) != 2 or not all(map(math.isfinite, given)) or not given[1] > 0:
            raise ValueError(f"input_stats: {name!r} gets {given!r}; (mean, std), finite, with std > 0, is needed")
        if name in options.overrides:
            raise ValueError(f"input_stats: {name!r} gets a range by overrides, too")


class _Row(NamedTuple):
    """An option, whether it is given and has no effect, and why."""

    option: str
    is_idle: bool
    why: str


def _rows(options: Options) -> list[_Row]:
    used = options.recipes
    if options.falls_back:
        used.append(find(options.fallback))
    names = " and ".join(dict.fromkeys(repr(item.name) for item in used))
    is_static = any(item.form == STATIC for item in used)
    has_integers = any(item.form in (HYBRID, DEQUANTIZED) and item.weights != "float16" for item in used)
    floats = f"recipe {names} leaves activations float32"
    takes_custom = any(
        (item.form == DEQUANTIZED and item.weights != "float16")
        or (item.form == HYBRID and item.weights in CUSTOM_WEIGHTS and not item.in_blocks)
        for item in used
    )  # fmt: skip
    no_ranges = f"{floats}, and needs no ranges"
    has_channels = any(item.form == STATIC and item.weights != "uint8" for item in used)
    chooses_observer = options.observer not in (None, "minmax")
    sets_least = options.min_elements not in (0, 1, 1024)  # 0 and 1 leave no weights float, which holds
    return [
        _Row("io", options.io != "float32" and not is_static, f"{floats}, and so inputs and outputs"),
        _Row("overrides", bool(options.overrides) and not (is_static or has_integers), no_ranges),
        _Row("observer", chooses_observer and not is_static, no_ranges),
        _Row(
            "per_axis",
            not options.per_axis and not (has_channels or has_integers),
            f"recipe {names} has no scales of channels",
        ),
        _Row("min_elements", sets_least and not has_integers, f"recipe {names} quantizes weights of any size"),
        _Row("default_ranges", options.default_ranges is not None and not is_static, no_ranges),
        _Row("input_stats", bool(options.input_stats) and not is_static, no_ranges),
        _Row("custom_weights", bool(options.custom_weights) and not takes_custom, f"recipe {names} leaves them float"),
        _Row(
            "block_size",
            options.block_size != 32 and not any(item.in_blocks for item in used),
            f"recipe {names} makes no blocks, as 'blockwise_int4' does",
        ),
        _Row(
            "effort",
            options.effort != FAST and not (is_static or any(item.weights in ROUNDED for item in used)),
            f"recipe {names} makes no integers that it could choose",
        ),
        _Row("equalize", options.equalize and options.effort != FAST, f"effort {options.effort!r} scales channels"),
        _Row(
            "weight_rounding",
            options.rounds_weights and not any(item.weights in ROUNDED for item in used),
            f"recipe {names} makes no int8, int4 or int2 weights",
        ),
        *_sample_rows(options, is_static, has_integers, no_ranges),
        *_fallback_rows(options),
        *_limit_rows(options),
    ]


def _limit_rows(options: Options) -> list[_Row]:
    given, why = options.limits._asdict(), "it limits runs, and nothing is run"
    return [_Row(name, value is not None and not options.runs_models, why) for name, value in given.items()]


def _sample_rows(options: Options, is_static: bool, has_integers: bool, no_ranges: str) -> list[_Row]:
    given, runs = options.calibration, options.runs_samples
    is_saved = isinstance(given, Calibration)
    of_weights = has_integers and isinstance(given, Calibration) and bool(given.encodings)
    has_calibration, has_samples = options.calibration is not None, options.samples is not None
    chooses_observer = options.observer not in (None, "minmax")
    return [
        _Row("calibration", has_calibration and not (is_static or of_weights) and (is_saved or not runs), no_ranges),
        _Row(
            "samples",
            has_samples and not runs,
            "only effort, equalize, weight_rounding, bias_correction, target_sqnr and budget run samples; "
            "calibration= takes samples for ranges",
        ),
        _Row(
            "observer",
            chooses_observer and not has_calibration and not has_samples,
            "it finds ranges in a calibration, which is not given",
        ),
        _Row(
            "num_threads",
            options.num_threads is not None and not runs and (is_saved or not has_calibration),
            "no samples are run",
        ),
        _Row(
            "executor",
            options.executor is not None
            and not (options.calibrates or options.effort != FAST or options.rounds_weights),
            "its workers find ranges in samples, and round weights by samples",
        ),
        _Row(
            "percentile",
            options.percentile != 99.99 and options.observer != "percentile",
            "only observer 'percentile' has one",
        ),
    ]


def _fallback_rows(options: Options) -> list[_Row]:
    fallback = options.fallback
    return [
        _Row(
            "fallback",
            fallback != "float" and not options.falls_back,
            "a target_sqnr or a budget lets operators fall back",
        ),
        _Row("budget", options.budget is not None and options.target_sqnr is not None, "target_sqnr decides"),
        _Row("fallback", options.falls_back and fallback == options.recipe.name, f"{fallback!r} is the recipe itself"),
    ]
