# SPDX-License-Identifier: Apache-2.0
"""The reason why an element of two runs differs: each run's steps from the operator's inputs to the element.

tq.explanation has the steps; operators that it does not explain have their formulas in `_FORMULAS`.  Sources: LiteRT
f6745779, tflite/kernels; XNNPACK 75db3c09, src.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tq.explanation.element import explain_as
from tq.explanation.steps import Explanation

if TYPE_CHECKING:
    from tq._core import Operator, Tensor

_TRIES = 16  # elements tried, for one that both runs' steps explain

_FORMULAS = {
    "DEQUANTIZE": {
        "reference": "f32(s * (q - z))",
        "optimized": "whole blocks of 8: f32(f32(q * s) + f32(-z * s)); the rest: s * (q - z) by way of float64",
        "xnnpack": "f32(s * (q - z))",
    },
}


class Kernels(NamedTuple):
    """The kernels whose arithmetic an operator of a run follows."""

    numerics: str | None  #: "reference", "optimized" or "xnnpack"; None: unknown, a run of another runtime
    single: bool = False  #: with TFLITE_SINGLE_ROUNDING

    @property
    def label(self) -> str | None:
        return f"{self.numerics}, single rounding" if self.single else self.numerics


@dataclass(frozen=True)
class DifferenceSteps:
    """One element that differs, from the same inputs.  `str()` tells it in lines."""

    tensor: str
    operator: int
    operator_name: str
    element: tuple[int, ...]
    labels: tuple[str, str]  #: the kernels of the two runs, or 'a' and 'b'
    values: tuple[Any, Any]  #: the two quantized or real values
    accumulator: int | None  #: where the operator requantizes one exact sum
    steps: tuple[Explanation | None, Explanation | None]
    formulas: tuple[str | None, str | None]  #: of runs without steps

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        place = ", ".join(map(str, self.element))
        yield f"operator {self.operator} ({self.operator_name}), element [{place}] of '{self.tensor}':"
        for label, value, steps, formula in zip(self.labels, self.values, self.steps, self.formulas, strict=True):
            yield f"  {label}: {value}" + (f"   {formula}" if formula else "")
            if steps is not None:
                yield from (f"    {line}" for line in str(steps).splitlines()[1:])


def _formula(op: Operator, numerics: str | None) -> str | None:
    known = _FORMULAS.get(op.name, {})
    return known.get(numerics or "") or (known.get("reference") if numerics == "optimized" else None)


def _steps(run: Any, op: Operator, element: tuple[int, ...], value: Any, kernels: Kernels) -> Explanation | None:
    """The steps of the kernels, or, where they are unknown, of the first that give this value."""
    if np.asarray(value).dtype.kind not in "iu":
        return None
    for numerics in [kernels.numerics] if kernels.numerics else ["reference", "optimized", "xnnpack"]:
        try:
            found = explain_as(run, op, element, int(value), numerics, kernels.single)
        except (ValueError, IndexError):  # an operator or type without steps, or scales that fit no shape
            return None
        if found is not None:
            return found
    return None


def explain_element(
    interpreter: Any, op: Operator, tensor: Tensor, values: tuple[Any, Any], kernels: tuple[Kernels, Kernels]
) -> DifferenceSteps | None:
    """An element in which `values`, two arrays that `op` computed from the same inputs, differ; None where only
    signs of zeros or bits of NaN do.

    It is the first one that both runs' steps explain, of the first few; else the first.
    interpreter: of either run, with the operator's inputs.
    """
    a, b = values
    different = [tuple(int(i) for i in row) for row in np.argwhere((a != b) & ~((a != a) & (b != b)))[:_TRIES]]
    if not different:
        return None
    chosen, steps = different[0], _both(interpreter, op, different[0], values, kernels)
    for element in different[1:] if a.dtype == b.dtype else []:
        if None not in steps or steps == (None, None):
            break
        if None not in (made := _both(interpreter, op, element, values, kernels)):
            chosen, steps = element, made
    formulas = [_formula(op, k.numerics) if s is None else None for s, k in zip(steps, kernels, strict=True)]
    known = next((item for item in steps if item is not None), None)
    return DifferenceSteps(
        tensor=tensor.name,
        operator=op.index,
        operator_name=op.name,
        element=chosen,
        labels=(kernels[0].label or "a", kernels[1].label or "b"),
        values=(a[chosen], b[chosen]),
        accumulator=None if known is None else known.accumulator,
        steps=steps,
        formulas=(formulas[0], formulas[1]),
    )


def _both(
    run: Any, op: Operator, element: tuple[int, ...], values: tuple[Any, Any], kernels: tuple[Kernels, Kernels]
) -> tuple[Explanation | None, Explanation | None]:
    a, b = values
    if a.dtype != b.dtype:
        return None, None
    return _steps(run, op, element, a[element], kernels[0]), _steps(run, op, element, b[element], kernels[1])
