# SPDX-License-Identifier: Apache-2.0
"""One requantization, step by step: from an accumulator to a quantized value."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import floor, ldexp
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tq import _core
from tq.pages.tables import Result, Table
from tq.texts import steps_table


@dataclass(frozen=True, repr=False)
class RequantizeExplanation(Result):
    """The steps of one requantization, as attributes, as a dict (`as_dict()`, `e["code"]`) and, by `str`, as a table.

    Steps that a rule does not have are None: the rules on floating point ('float64-away', 'float32-even') have no
    fixed-point multiplier, 'single' and 'int64-up' no high part; only 'int64-up' has a short multiplier.
    """

    __module__ = "tq"  # for pickles, which name the public place

    acc: int  #: the accumulator, less the input's zero point
    rounding: str
    real_multiplier: float  #: as given; rule 'float32-even' rounds it to float32
    multiplier: int | None  #: real_multiplier = multiplier * 2^(shift - 31), nearly
    shift: int | None
    shifted: int | None  #: acc * 2^max(shift, 0), saturated to int32
    product: int | float  #: shifted * multiplier, 64 bits; or acc * real_multiplier
    high: int | None  #: product / 2^31 rounded to the nearest, ties up
    right_shift: int | None  #: the bits that the last step drops
    remainder: int | None  #: their value: of high, or of product under 'single'
    scaled: int | float  #: rounded, before the zero point
    zero_point: int
    code: int  #: the quantized value: scaled + zero_point, clamped to the dtype
    dtype: str
    low: int  #: the dtype's least value
    high_code: int  #: the dtype's greatest value
    short_multiplier: int | None = None  #: of int64 accumulators: the multiplier's upper 15 bits, rounded

    @property
    def result(self) -> int | float:
        """scaled + zero_point, before the clamp."""
        return self.scaled + self.zero_point

    @property
    def clamped(self) -> bool:
        """Whether the dtype could not hold the result."""
        return self.result != self.code

    @property
    def exact(self) -> float:
        """The quantized value without rounding and clamp: acc * real_multiplier + zero_point."""
        return self.acc * self.real_multiplier + self.zero_point

    def as_dict(self) -> dict[str, Any]:
        """Every step by its name, with `result`, `clamped` and `exact`."""
        return asdict(self) | {"result": self.result, "clamped": self.clamped, "exact": self.exact}

    def keys(self) -> list[str]:
        return [f.name for f in fields(self)] + ["result", "clamped", "exact"]

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]

    def _rows(self) -> Iterator[tuple[str, Any, str]]:
        yield "accumulator", self.acc, ""
        yield "real multiplier", repr(self.real_multiplier), ""
        if self.multiplier is None or self.shift is None:
            precision = "float32" if self.rounding == "float32-even" else "float64"
            yield "product", repr(self.product), f"accumulator * real multiplier in {precision}"
            ties = "to even" if self.rounding == "float32-even" else "away from zero"
            yield "rounded", self.scaled, f"to the nearest, ties {ties}"
        else:
            yield "multiplier", self.multiplier, "real multiplier * 2^(31 - shift)"
            yield "shift", self.shift, "left" if self.shift > 0 else "right" if self.shift < 0 else "none"
            if self.shifted != self.acc:
                wanted = self.acc << self.shift
                note = f"accumulator * 2^{self.shift}" + (", saturated" if wanted != self.shifted else "")
                yield "shifted", self.shifted, note
            if self.short_multiplier is not None:
                yield "short multiplier", self.short_multiplier, "multiplier / 2^16 to the nearest, below 2^15"
                yield "product", self.product, "times the short multiplier, 64 bits"
            else:
                yield "product", self.product, "times the multiplier, 64 bits"
            if self.high is not None:
                yield "high part", self.high, "product / 2^31 to the nearest, ties up"
            of = "the high part" if self.high is not None else "the product"
            if self.right_shift:
                half = 1 << (self.right_shift - 1)
                yield "remainder", self.remainder, f"the low {self.right_shift} bits of {of}; half is {half}"
            ties = "away from zero" if self.rounding == "double" else "up"
            yield "rounded", self.scaled, f"{of} / 2^{self.right_shift} to the nearest, ties {ties}"
        yield "zero point", self.zero_point, "added" if self.zero_point else ""
        note = f"{self.dtype}: {self.low} to {self.high_code}" + (f"; {self.result} clamped" if self.clamped else "")
        yield "quantized", self.code, note

    def table(self) -> Table:
        """A row for each step."""
        return Table(("step", "#value", "note"), list(self._rows()))

    def summary(self) -> list[str]:
        """The accumulator and the quantized value."""
        clamped = ", clamped" if self.clamped else ""
        return [
            f"{self.acc} * {self.real_multiplier!r} gives {self.dtype} {self.code}{clamped}, rounding {self.rounding!r}"
        ]

    def to_dict(self) -> dict[str, Any]:
        """As as_dict."""
        return self.as_dict()

    def text(self, width: int | None = None) -> str:
        return "\n".join([f"rounding {self.rounding!r}", *steps_table(self._rows())])


def _integer(value: Any, name: str, low: int, high: int) -> int:
    try:
        integer = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    if not low <= integer <= high:
        raise ValueError(f"{name} is {integer}; it must be from {low} to {high}")
    return integer


def _multiplier(value: Any, rounding: str) -> float | tuple[int, int]:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"multiplier has {len(value)} parts; it must be a number, or (multiplier, shift)")
        if isinstance(value, _core.QuantizedMultiplier) and value.bits != 31:
            raise ValueError(f"multiplier has {value.bits} bits; the rules need 31, quantize_multiplier's default")
        parts = _integer(value[0], "multiplier[0]", 0, _INT32[1]), _integer(value[1], "multiplier[1]", -31, 1024)
        if rounding == "float32-even" and ldexp(parts[0], parts[1] - 31) >= _FLOAT32_OVERFLOW:
            raise ValueError(f"multiplier is {value!r}; it must be finite as float32")
        return parts
    try:
        real = float(value) if not isinstance(value, str | bytes | bytearray) else None
    except OverflowError:
        real = float("inf")
    except (TypeError, ValueError):
        real = None
    if real is None:
        raise TypeError(f"multiplier is {value!r}; it must be a number, or (multiplier, shift)")
    most = _FLOAT32_OVERFLOW if rounding == "float32-even" else float("inf")
    if not 0 <= real < most:
        finite = "finite as float32" if rounding == "float32-even" else "finite"
        raise ValueError(f"multiplier is {real!r}; it must be {finite} and not negative")
    return real


_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_FAR = 2**47  # int64 accumulators beyond it saturate
_FLOAT32_OVERFLOW = 2.0**128 - 2.0**103  # the least value that float32 rounds to infinity
_FIXED_POINT_STEPS = ("multiplier", "shift", "shifted", "high", "right_shift", "remainder")


def explain_requantize(
    acc: int,
    multiplier: float | tuple[int, int],
    zero_point: int = 0,
    *,
    input_zero_point: int = 0,
    dtype: DTypeLike = "int8",
    rounding: str | None = None,
) -> RequantizeExplanation:
    """The steps of requantizing one value; `requantize` and the operators compute the same for arrays.

    acc: an int32 accumulator, or a quantized value with the zero point `input_zero_point`; an int64 accumulator under
        the rules of 16x8 operators.
    multiplier: the real multiplier (input scale * weight scale / output scale), finite and not negative, or the pair
        (multiplier, shift) of quantize_multiplier.
    zero_point: the output's, in the range of dtype.  dtype: the output's.
    rounding: a name of tq.rules()["requantize"], "double" where it is left out; of int64 accumulators one of
        tq.rules()["requantize_int64"], "int64-up" where it is left out and acc is numpy.int64.
    TypeError, ValueError: an argument is not a number, or out of range; the message names it.

    >>> print(explain_requantize(7984, 0.0014402704, 3))
    rounding 'double'
    accumulator                7984
    real multiplier    0.0014402704
    multiplier           1583594052  real multiplier * 2^(31 - shift)
    shift                        -9  right
    product          12643414911168  times the multiplier, 64 bits
    high part                  5888  product / 2^31 to the nearest, ties up
    remainder                   256  the low 9 bits of the high part; half is 256
    rounded                      12  the high part / 2^9 to the nearest, ties away from zero
    zero point                    3  added
    quantized                    15  int8: -128 to 127
    """
    if rounding is None:
        rounding = "int64-up" if isinstance(acc, np.int64) else "double"
    acc = _integer(acc, "acc", *_INT64)
    is_wide, wide_rules = not _INT32[0] <= acc <= _INT32[1], _core.rules()["requantize_int64"]
    if rounding in wide_rules and (is_wide or rounding == "int64-up"):
        return _explain_int64(acc, multiplier, zero_point, input_zero_point, dtype, rounding)
    if is_wide and rounding in _core.rules()["requantize"]:
        names = " or ".join(map(repr, wide_rules))
        raise ValueError(
            f"acc is {acc}; it must be from {_INT32[0]} to {_INT32[1]} under rounding {rounding!r}, and int64 "
            f"accumulators need {names}"
        )
    acc = _integer(acc - _integer(input_zero_point, "input_zero_point", *_INT32), "acc - input_zero_point", *_INT32)
    zero_point = _integer(zero_point, "zero_point", *_INT32)
    multiplier = _multiplier(multiplier, rounding)
    steps, dtype, low, high = _core._requantize_steps(acc, multiplier, zero_point, rounding, dtype)
    scaled = steps.pop("scaled")
    is_whole = abs(scaled) < 2**63  # beyond, rules on floating point have nothing to round
    return RequantizeExplanation(
        acc=acc,
        rounding=rounding,
        scaled=int(scaled) if is_whole else scaled,
        zero_point=zero_point,
        dtype=dtype,
        low=low,
        high_code=high,
        **{name: steps.pop(name, None) for name in _FIXED_POINT_STEPS},
        **steps,
    )


def _explain_int64(
    acc: int,
    multiplier: float | tuple[int, int],
    zero_point: int,
    input_zero_point: int,
    dtype: DTypeLike,
    rounding: str,
) -> RequantizeExplanation:
    """The same of an int64 accumulator, on Python's integers."""
    acc -= _integer(input_zero_point, "input_zero_point", *_INT32)
    acc = min(max(acc, _INT64[0]), _INT64[1])
    given = _multiplier(multiplier, rounding)
    real = ldexp(given[0], given[1] - 31) if isinstance(given, tuple) else given
    _steps, name, low, high = _core._requantize_steps(0, real, zero_point, "double", dtype)  # checks zero_point, dtype
    steps: dict[str, Any] = dict.fromkeys(_FIXED_POINT_STEPS)
    if rounding == "int64-up":
        fixed, shift = given if isinstance(given, tuple) else map(int, _core.quantize_multiplier(real))
        short = (fixed + 2**15) >> 16 if fixed < 0x7FFF0000 else 0x7FFF
        right = 15 - min(max(shift, -31), 14)
        product = min(max(acc, -_FAR), _FAR - 1) * short
        scaled: int = min(max((product + (1 << (right - 1))) >> right, _INT32[0]), _INT32[1])
        steps |= {"multiplier": fixed, "shift": shift, "shifted": acc, "right_shift": right, "short_multiplier": short}
        steps |= {"remainder": product & ((1 << right) - 1), "product": product}
    else:
        steps |= {"product": float(acc) * real}
        scaled = floor(abs(Fraction(steps["product"])) + Fraction(1, 2)) * (1 if steps["product"] >= 0 else -1)
    code = min(max(scaled + zero_point, low), high)
    return RequantizeExplanation(
        acc=acc, rounding=rounding, real_multiplier=real, scaled=scaled, zero_point=zero_point, code=code, dtype=name,
        low=low, high_code=high, **steps,
    )  # fmt: skip
