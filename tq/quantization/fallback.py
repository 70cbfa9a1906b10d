# SPDX-License-Identifier: Apache-2.0
"""Operators that fall back to another recipe: the fewest that reach a target, or those that gain most for the bytes
that they cost.

Operators are ranked by the error at the outputs from quantizing each alone (tq/accuracy/sensitivities.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tq._core import Model, Operator
from tq.accuracy import measuring
from tq.accuracy.matching import constant_of, is_computed
from tq.accuracy.measuring import Samples
from tq.accuracy.sensitivities import measure
from tq.quantization.options import Options
from tq.quantization.recipes import Rule
from tq.quantization.result import QuantizedModel
from tq.running.limits import Limits

Build = Callable[[Sequence[Rule]], QuantizedModel]

_MOST = 8  # samples that the ranking of operators looks at
_BETWEEN = 256  # bytes of a QUANTIZE, a DEQUANTIZE and their tensors, about


def reach(
    model: Model,
    samples: Samples,
    build: Build,
    options: Options,
) -> QuantizedModel:
    """The model in which the fewest operators, the most sensitive ones, have another recipe.

    Their number is found by halving, since more of them mean less noise, nearly; the returned model was measured."""
    recipe, threads, limits = options.fallback, options.num_threads, options.limits
    assert options.target_sqnr is not None
    target = float(options.target_sqnr)
    exact = measuring.outputs(model, samples, threads, limits)
    made: dict[int, QuantizedModel] = {}
    found: dict[int, float] = {}

    def measured(indices: list[int]) -> float:
        count = len(indices)
        if count not in found:
            made[count] = build((Rule(recipe, index=tuple(indices), subgraph=0),) if indices else ())
            noises = measuring.output_noises(exact, measuring.outputs(Model(made[count]), samples, threads, limits))
            found[count] = measuring.together(noises)
        return found[count]

    if measured([]) >= target:
        return made[0]
    order = _order(model, made[0], samples, threads, limits)
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


def bytes_of(budget: int | str, size: int) -> int:
    """The bytes that a model of `size` may grow by.  ValueError: the budget is neither bytes nor a percentage."""
    text = str(budget).strip().removeprefix("+")
    is_percentage = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"budget is {budget!r}; it must be a number of bytes over 0, or a percentage as '10%'")
    return int(size * number / 100) if is_percentage else int(number)


def spend(model: Model, samples: Samples, build: Build, options: Options) -> QuantizedModel:
    """The model in which operators have another recipe that lessen the error most for a byte, within the budget."""
    budget, recipe, threads, limits = options.budget, options.fallback, options.num_threads, options.limits
    assert budget is not None
    plain = build(())
    most = len(plain) + bytes_of(budget, len(plain))
    order, costs = _by_worth(model, plain, samples, options)
    if recipe == "float":
        order, costs = order[:-1], costs[:-1]  # something is to stay quantized
    low, high = 0, int(np.searchsorted(np.cumsum(costs), most - len(plain), side="right"))
    made = {0: plain}
    while low < high:  # the most that fit; the costs are estimates
        made[high] = build((Rule(recipe, index=tuple(order[:high]), subgraph=0),))
        if len(made[high]) <= most:
            low = high
        else:
            high = max(low, high - max(1, (high - low) // 4))
    if not low:
        raise ValueError(
            f"budget is {budget!r}, {most - len(plain)} bytes, and has no effect: no operator that costs accuracy gets "
            f"the recipe {recipe!r} for less"
        )
    exact = measuring.outputs(model, samples, threads, limits)

    def decibels(count: int) -> float:
        found = measuring.outputs(Model(made[count]), samples, threads, limits)
        return measuring.together(measuring.output_noises(exact, found))

    return made[max((low, 0), key=decibels)]


def _by_worth(model: Model, quantized: bytes, samples: Samples, options: Options) -> tuple[list[int], list[int]]:
    """The operators that cost accuracy, those that cost most for a byte first, and the bytes of each."""
    ranked = measure(
        model, Model(quantized), samples.first(_MOST), num_threads=options.num_threads, limits=options.limits
    )
    operators = model.subgraphs[0].operators
    ratios = {row.operator: row.ratio for row in ranked if row.operator is not None and row.ratio > 0}
    costs = {index: _cost(operators[index], options.fallback) for index in ratios}
    order = sorted(ratios, key=lambda index: (-ratios[index] / costs[index], index))
    return order, [costs[index] for index in order]


def _cost(operator: Operator, recipe: str) -> int:
    """The bytes that an operator takes beyond int8 weights and activations, about."""
    constants = [constant_of(operator, place) for place in range(len(operator.inputs))]
    count = sum(int(np.prod(tensor.shape)) for tensor in constants if tensor is not None)
    return _BETWEEN + (3 * count if recipe == "float" else 0)


def _order(model: Model, quantized: bytes, samples: Samples, threads: int | None, limits: Limits) -> list[int]:
    """The quantized operators: the most sensitive first, operators that were not ranked last."""
    ranked = measure(model, Model(quantized), samples.first(_MOST), num_threads=threads, limits=limits)
    indices = [row.operator for row in ranked if row.operator is not None]
    known = set(indices)
    rest = [op.index for op in model.subgraphs[0].operators if is_computed(op) and op.index not in known]
    return [*indices, *rest]
