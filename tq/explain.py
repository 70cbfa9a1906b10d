# SPDX-License-Identifier: Apache-2.0
"""One requantization, step by step: how an int32 accumulator becomes a code."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from numpy.typing import DTypeLike

from tq import _core


@dataclass(frozen=True)
class RequantizeExplanation:
    """The steps of one requantization, as attributes, as a dict (`as_dict()`, `e["code"]`) and, by `str`, as a table.

    Steps that a rule does not have are None: the rules on floating point ('float64-away', 'float32-even') have no
    fixed-point multiplier, and 'single' has no high part.
    """

    acc: int  #: the accumulator, less the input's zero point
    rounding: str
    real_multiplier: float  #: as given; rule 'float32-even' rounds it to float32
    multiplier: int | None  #: real_multiplier = multiplier * 2^(shift - 31), nearly
    shift: int | None
    shifted: int | None  #: acc * 2^max(shift, 0), saturated to int32
    product: int | float  #: shifted * multiplier, 64 bits; or acc * real_multiplier
    high: int | None  #: product / 2^31 rounded to the nearest, ties up
    right_shift: int | None  #: the places that the last step drops
    remainder: int | None  #: what they held: of high, or of product under 'single'
    scaled: int | float  #: rounded, before the zero point
    zero_point: int
    code: int  #: scaled + zero_point, clamped to the dtype
    dtype: str
    low: int  #: the dtype's lowest code
    high_code: int  #: and highest

    @property
    def result(self) -> int | float:
        """scaled + zero_point, before it is clamped."""
        return self.scaled + self.zero_point

    @property
    def clamped(self) -> bool:
        """Whether the dtype could not hold the result."""
        return self.result != self.code

    @property
    def exact(self) -> float:
        """What the code would be without any rounding or clamping: acc * real_multiplier + zero_point."""
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
        yield "code", self.code, note

    def __str__(self) -> str:
        rows = [(name, str(value), note) for name, value, note in self._rows()]
        names, values = (max(len(row[i]) for row in rows) for i in (0, 1))
        lines = [f"{name:<{names}}  {value:>{values}}  {note}".rstrip() for name, value, note in rows]
        return "\n".join([f"rounding {self.rounding!r}", *lines])


_FIXED_POINT_STEPS = ("multiplier", "shift", "shifted", "high", "right_shift", "remainder")


def explain_requantize(
    acc: int,
    multiplier: float | tuple[int, int],
    zero_point: int = 0,
    *,
    input_zero_point: int = 0,
    dtype: DTypeLike = "int8",
    rounding: str = "double",
) -> RequantizeExplanation:
    """Each step of requantizing one value: `requantize` and the operators do the same to arrays.

    acc: an int32 accumulator, or a code whose zero point is `input_zero_point`. multiplier: the real multiplier
    (input scale * weight scale / output scale), or the pair that quantize_multiplier gives. zero_point: the output's,
    within dtype. dtype: the output's. rounding: a name of tq.rules()['requantize'].

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
    code                         15  int8: -128 to 127
    """
    acc = operator.index(acc) - operator.index(input_zero_point)
    if not -(2**31) <= acc < 2**31:
        raise ValueError(f"acc - input_zero_point is {acc}; it must fit int32")
    steps, dtype, low, high = _core._requantize_steps(acc, multiplier, zero_point, rounding, dtype)
    scaled = steps.pop("scaled")
    is_whole = abs(scaled) != float("inf") and scaled == scaled
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
