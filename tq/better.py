# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model with what makes a model better than plain rounding: equalization, bias correction, fallback.

They come in this order: the float model is equalized, quantized, its biases corrected; then its outputs are measured
against the float model's on the samples, and while they are too far off, the operators that cost most fall back.
How many fall back is found by halving, since more of them mean less noise, nearly; what is returned was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tq import measuring
from tq._core import Model, QuantizationParams, choose_quantization_params
from tq.calibration import Calibration, calibrate
from tq.limits import Limits
from tq.matching import is_computed
from tq.measuring import Samples
from tq.recipes import STATIC, Rule, find

_MOST = 8  # samples that the ranking of operators looks at


def quantize(arguments: Mapping[str, Any], asked: Mapping[str, Any], build: Callable[..., bytes]) -> bytes:
    """tq.quantize_model of the arguments that tq.quantizing.build takes, and of those that are for here (`asked`)."""
    rest = dict(arguments)
    model: Model = rest.pop("model")
    equalizes, corrects, target = (asked[name] for name in ("equalize", "bias_correction", "target_sqnr"))
    limits = _limits(rest)
    _check(target, asked["fallback"])
    fed = _samples(model, rest["calibration"], asked["samples"])
    if equalizes:
        model = _equalized(model, fed, rest)
    rest["calibration"] = _calibration(model, fed, rest)
    if equalizes:
        rest["own_overrides"] = _clamps(model, rest)

    def made(rules: Sequence[Rule]) -> bytes:
        quantized = build(model, **rest, own_rules=rules)
        return _corrected(model, quantized, fed, bool(rules), limits) if corrects else quantized

    return made(()) if target is None else _reach(model, fed, made, float(target), asked["fallback"], limits)


def _check(target: Any, fallback: str) -> None:
    if target is not None and not math.isfinite(float(target)):
        raise ValueError(f"target_sqnr is {target}; it must be a number of dB")
    if fallback == "float":
        return
    if find(fallback).form != STATIC:
        raise ValueError(f"fallback is {fallback!r}; it must be 'float' or a recipe of integer activations")


def _samples(model: Model, calibration: Any, samples: Any) -> Samples:
    if samples is None and (calibration is None or isinstance(calibration, Calibration)):
        what = "a tq.Calibration, which holds no samples" if calibration is not None else "not given"
        raise ValueError(
            f"equalize, bias_correction and target_sqnr run samples, and calibration is {what}: samples= is needed"
        )
    return Samples(model, calibration if samples is None else samples)


def _equalized(model: Model, samples: Samples, rest: Mapping[str, Any]) -> Model:
    """With a scale for each channel of the weights, what is left to make alike are the activations, which samples show.
    With one scale the weights matter most, and a MINIMUM beside each RELU6 is worth it.  So it was measured
    (benchmarks/bench_better.py): the other way round is worse for both."""
    from tq.equalization import NOTHING, scaled

    if isinstance(rest["calibration"], Calibration):
        raise ValueError("calibration is a tq.Calibration, of the model before it is equalized: give samples instead")
    if rest["per_axis"]:
        data, found = scaled(model, samples.lists(), _limits(rest), relu6="keep", per_axis=True)
    else:
        data, found = scaled(model, None, _limits(rest), relu6="minimum", per_axis=False)
    if not found:
        raise ValueError(NOTHING)
    return Model(data)


def _clamps(model: Model, rest: Mapping[str, Any]) -> dict[str, QuantizationParams]:
    """Parameters for what a MINIMUM of equalize reads: those of what it writes.

    The MINIMUM's tensors share parameters.  Without this they would have to reach up to the highest of its constants,
    which stands for a channel that was made large; but codes end at what the output reaches anyway.
    """
    from tq.equalization import CLAMPED

    calibration, recipe = rest["calibration"], find(rest["recipe"])
    found = {}
    for op in model.subgraphs[0].operators if isinstance(calibration, Calibration) else ():
        if op.name == "MINIMUM" and op.inputs[0] is not None and op.inputs[0].name.endswith(CLAMPED):
            low, high = calibration.range(op.output_indices[0])
            centered = recipe.activations == "int16"
            made = choose_quantization_params(low, high, recipe.activations, symmetric=centered, rule="mlir")
            found[op.inputs[0].name] = made
    return found if recipe.form == STATIC else {}


def _calibration(model: Model, samples: Samples, rest: dict[str, Any]) -> Calibration | None:
    """A calibration that every build can use; None where no recipe asks for one."""
    given = rest["calibration"]
    recipes = [rest["recipe"], *(rule.recipe for rule in rest["rules"] if isinstance(rule, Rule))]
    if isinstance(given, Calibration) or not any(find(name).form == STATIC for name in recipes):
        return given if isinstance(given, Calibration) else None
    observer = rest["observer"] or "minmax"
    limits = _limits(rest)._asdict()
    return calibrate(model, samples.all(), observer=observer, percentile=rest["percentile"], progress=False, **limits)


def _limits(rest: Mapping[str, Any]) -> Limits:
    return Limits(rest["max_memory"], rest["max_multiply_adds"])


def _corrected(model: Model, made: bytes, samples: Samples, may_lack_layers: bool, limits: Limits) -> bytes:
    from tq.bias_correction import correct_biases, layers_of

    quantized = Model(made)
    if layers_of(model, quantized):
        return correct_biases(model, quantized, samples, **limits._asdict())
    if may_lack_layers:
        return made
    raise ValueError("bias_correction has no effect: no CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED is quantized")


# ---- fallback ----


def _reach(
    model: Model,
    samples: Samples,
    build: Callable[[Sequence[Rule]], bytes],
    target: float,
    recipe: str,
    limits: Limits,
) -> bytes:
    """The model in which the fewest operators, the most sensitive ones, have another recipe."""
    exact = measuring.outputs(model, samples, limits=limits)
    made: dict[int, bytes] = {}
    found: dict[int, float] = {}

    def measured(places: list[int]) -> float:
        count = len(places)
        if count not in found:
            made[count] = build((Rule(recipe, index=tuple(places), subgraph=0),) if places else ())
            noises = measuring.output_noises(exact, measuring.outputs(Model(made[count]), samples, limits=limits))
            found[count] = measuring.together(noises)
        return found[count]

    if measured([]) >= target:
        return made[0]
    order = _order(model, made[0], samples, limits)
    low, high = 0, len(order)
    if recipe == "float":
        high -= 1  # something is to stay quantized
    while high - low > 1:
        middle = (low + high) // 2
        if measured(order[:middle]) >= target:
            high = middle
        else:
            low = middle
    if high > 0:
        measured(order[:high])
    good = [count for count, decibels in found.items() if decibels >= target]
    if good:
        return made[min(good)]
    best = max(found, key=lambda count: found[count])
    raise ValueError(
        f"target_sqnr is {target:g} dB; the best that was found is {found[best]:.2f} dB, with {best} of {len(order)} "
        f"operators as {recipe!r}"
    )


def _order(model: Model, quantized: bytes, samples: Samples, limits: Limits) -> list[int]:
    """The operators that are quantized, those that cost most first; last those of which nothing is known."""
    from tq.sensitivities import measure

    ranked = measure(model, Model(quantized), samples.first(_MOST), limits=limits)
    places = [row.operator for row in ranked if row.operator is not None]
    known = set(places)
    rest = [op.index for op in model.subgraphs[0].operators if is_computed(op) and op.index not in known]
    return [*places, *rest]
