# SPDX-License-Identifier: Apache-2.0
"""Operators that fall back to another recipe, within a budget of bytes or of time.

An operator's worth is the error at the outputs from quantizing it alone (tq/accuracy/sensitivities.py), divided by an
estimate of its cost: the bytes or the time that its fallback adds.  Operators fall back in the order of their worth.
Their number is found by halving: each trial is a model whose bytes are counted, or whose run is timed.

Times are measured on this machine, with tq's kernels that give the bits of LiteRT's default.  An operator's cost is its
time in the model with the other recipe less its time in the quantized model.  The time of a trial is measured in turns
with that of the model without fallback.
"""

from __future__ import annotations

import math
import re
import time
from typing import NamedTuple, Protocol

import numpy as np

from tq._core import Model, Operator
from tq.accuracy import measuring
from tq.accuracy.matching import constant_of, match
from tq.accuracy.measuring import KERNELS, Samples
from tq.accuracy.sensitivities import measure
from tq.quantization.fallback import MOST, Build
from tq.quantization.options import Options
from tq.quantization.recipes import Rule
from tq.quantization.result import QuantizedModel
from tq.running.interpreter import Interpreter

_BETWEEN = 256  # bytes: an estimate for a QUANTIZE, a DEQUANTIZE and their tensors
_BETWEEN_TIME = 0.0005  # microseconds: an estimate of QUANTIZE's or DEQUANTIZE's time for an element
_LEAST_TIME = 0.1  # microseconds: the least cost of an operator, even where its fallback saves time
_SECONDS, _RUNS = 0.2, (5, 100)  # of each measured model: the time aimed at; the least and most runs

_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}
_FORM = re.compile(r"\+?\s*([0-9.]+)\s*(%|us|ms|s)?\s*(time)?")


class Budget(NamedTuple):
    """Bytes or microseconds that fallback may add: an amount, or a percentage of the model without fallback."""

    amount: float
    is_percentage: bool
    is_time: bool

    @classmethod
    def of(cls, given: int | str) -> Budget:
        """ValueError: the text is no budget."""
        found = _FORM.fullmatch(str(given).strip())
        try:
            number = float(found[1]) if found else math.nan
        except ValueError:
            number = math.nan
        unit, word = found.groups()[1:] if found else (None, None)
        if not 0 < number < math.inf or (word and unit != "%"):
            raise ValueError(
                f"budget is {given!r}; it must be a number of bytes over 0, a percentage as '10%', a time as '500us' "
                "or '2ms', or a percentage of the time as '10% time'"
            )
        is_time = bool(word) or unit in _UNITS
        return cls(number * _UNITS.get(unit or "", 1), unit == "%", is_time)

    def beyond(self, plain: float) -> float:
        """The most bytes or microseconds of a model with fallback; plain: those of the model without."""
        return plain + (plain * self.amount / 100 if self.is_percentage else self.amount)


class _Purse(Protocol):
    """How a budget is measured: the amount of a model, and an estimate of the cost of an operator's fallback."""

    unit: str
    plain: float  # of the model without fallback

    def of(self, data: bytes) -> float: ...

    def cost(self, operator: Operator) -> float: ...


def spend(model: Model, samples: Samples, build: Build, options: Options) -> QuantizedModel:
    """The model in which the operators of most worth have the recipe `fallback`, as many as the budget allows."""
    assert options.budget is not None
    budget, recipe, threads, limits = Budget.of(options.budget), options.fallback, options.num_threads, options.limits
    plain = build(())
    purse: _Purse = Time(model, plain, build, options) if budget.is_time else Bytes(plain, recipe)
    most = budget.beyond(purse.plain)
    order = _by_worth(model, plain, samples, purse, options)
    if recipe == "float":
        order.pop()  # at least one operator stays quantized
    made = {0: plain}
    low, high = 0, len(order) + 1
    while high - low > 1:  # the cost nearly always grows with their number
        middle = (low + high) // 2
        made[middle] = build((Rule(recipe, index=tuple(order[:middle]), subgraph=0),))
        low, high = (middle, high) if purse.of(made[middle]) <= most else (low, middle)
    if not low:
        raise ValueError(
            f"budget is {options.budget!r}, {most - purse.plain:.0f} {purse.unit}, and has no effect: no operator that "
            f"costs accuracy gets the recipe {recipe!r} for less"
        )
    exact = measuring.outputs(model, samples, threads, limits)

    def decibels(count: int) -> float:
        found = measuring.outputs(Model(made[count]), samples, threads, limits)
        return measuring.together(measuring.output_noises(exact, found))

    return made[max((low, 0), key=decibels)]


def _by_worth(model: Model, quantized: bytes, samples: Samples, purse: _Purse, options: Options) -> list[int]:
    """The operators whose quantization causes errors, by falling worth."""
    ranked = measure(
        model, Model(quantized), samples.first(MOST), num_threads=options.num_threads, limits=options.limits
    )
    operators = model.subgraphs[0].operators
    ratios = {row.operator: row.ratio for row in ranked if row.operator is not None and row.ratio > 0}
    costs = {index: purse.cost(operators[index]) for index in ratios}
    return sorted(ratios, key=lambda index: (-ratios[index] / costs[index], index))


class Bytes:
    """Bytes of the written file."""

    unit = "bytes"

    def __init__(self, plain: bytes, recipe: str) -> None:
        self.plain = float(len(plain))
        self._a_weight = 3 if recipe == "float" else 0  # bytes that a weight takes beyond its int8 value

    def of(self, data: bytes) -> float:
        return len(data)

    def cost(self, operator: Operator) -> float:
        constants = [constant_of(operator, place) for place in range(len(operator.inputs))]
        return _BETWEEN + self._a_weight * sum(math.prod(tensor.shape) for tensor in constants if tensor is not None)


class Time:
    """Microseconds of a run with inputs of zeros, by the kernels that give the bits of LiteRT's default."""

    unit = "microseconds"

    def __init__(self, model: Model, plain: bytes, build: Build, options: Options) -> None:
        self._options, self._model = options, Model(plain)
        self.plain = self._in_turns(self._model)[0]
        other = model
        if options.fallback != "float":
            indices = tuple(op.index for op in model.subgraphs[0].operators)
            other = Model(build((Rule(options.fallback, index=indices, subgraph=0),)))
        times, others = (self._by_operator(model, item) for item in (self._model, other))
        self._costs = {index: others.get(index, 0.0) - spent for index, spent in times.items()}

    def of(self, data: bytes) -> float:
        plain, found = self._in_turns(self._model, Model(data))
        return self.plain * found / plain

    def cost(self, operator: Operator) -> float:
        tensors = [t for t in (*operator.inputs, *operator.outputs) if t is not None and not t.is_constant]
        between = _BETWEEN_TIME * sum(math.prod(tensor.shape) for tensor in tensors)
        return max(self._costs.get(operator.index, 0.0), 0.0) + between + _LEAST_TIME

    def _interpreter(self, model: Model) -> Interpreter:
        threads = self._options.num_threads or 1
        made = Interpreter(model=model, num_threads=threads, numerics=KERNELS, **self._options.limits._asdict())
        made.allocate_tensors()
        return made

    def _in_turns(self, *models: Model) -> list[float]:
        """The least time of each model, over runs in turns."""
        interpreters = [self._interpreter(model) for model in models]
        first = [_time(item) for item in interpreters for _ in range(2)]  # the first run of each warms up
        rounds = [[_time(item) for item in interpreters] for _ in range(_runs(max(first[1::2])))]
        return [min(column) for column in zip(*rounds, strict=True)]

    def _by_operator(self, model: Model, other: Model) -> dict[int, float]:
        """{index of an operator of the float model: the least time of its counterpart in the other model}."""
        interpreter = self._interpreter(other)
        _time(interpreter)
        rows = interpreter.profile(_runs(_time(interpreter)), warm_up=1).rows
        return {one.index: rows[two.index].least for one, two in match(model, other).operators}


def _time(interpreter: Interpreter) -> float:
    """The microseconds of a run."""
    start = time.perf_counter()
    interpreter.invoke()
    return 1e6 * (time.perf_counter() - start)


def _runs(microseconds: float) -> int:
    return int(np.clip(1e6 * _SECONDS / max(microseconds, 1), *_RUNS))
