# SPDX-License-Identifier: Apache-2.0
"""Operators that fall back to another recipe: as few as reach a target of accuracy.

Operators are ranked by the error at the outputs from quantizing each alone (tq/accuracy/sensitivities.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tq._core import Model
from tq.accuracy import measuring
from tq.accuracy.matching import is_computed
from tq.accuracy.measuring import Samples
from tq.accuracy.sensitivities import measure
from tq.quantization.options import Options
from tq.quantization.recipes import Rule
from tq.quantization.result import QuantizedModel
from tq.running.limits import Limits

Build = Callable[[Sequence[Rule]], QuantizedModel]

MOST = 8  # samples that the ranking of operators looks at


def reach(
    model: Model,
    samples: Samples,
    build: Build,
    options: Options,
) -> QuantizedModel:
    """The model in which the most sensitive operators, as few as possible, have the recipe `fallback`.

    Their number is found by halving, since more of them nearly always mean less noise.  The returned model was measured
    to reach the target."""
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
        high -= 1  # at least one operator stays quantized
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


def _order(model: Model, quantized: bytes, samples: Samples, threads: int | None, limits: Limits) -> list[int]:
    """The quantized operators: the most sensitive first, operators that were not ranked last."""
    ranked = measure(model, Model(quantized), samples.first(MOST), num_threads=threads, limits=limits)
    indices = [row.operator for row in ranked if row.operator is not None]
    known = set(indices)
    rest = [op.index for op in model.subgraphs[0].operators if is_computed(op) and op.index not in known]
    return [*indices, *rest]
