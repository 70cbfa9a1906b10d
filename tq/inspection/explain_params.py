# SPDX-License-Identifier: Apache-2.0
"""The steps from a real range to a scale and a zero point: tq.explain_quantization_params."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import DTypeLike

from tq import _core
from tq.texts import steps_table


@dataclass(frozen=True)
class QuantizationParamsExplanation:
    """The steps from a range to parameters.  `str()` is a table."""

    min: float  #: as given
    max: float
    dtype: str
    rule: str
    symmetric: bool  #: the zero point is the middle of the quantized values
    narrow_range: bool
    low: int  #: the least quantized value in use
    high: int  #: the greatest
    widened: tuple[float, float]  #: the range with 0 in it
    scale: float  #: float32
    zero_point: int
    from_min: float | None  #: the zero point that maps min to `low` exactly: low - min / scale; None: symmetric
    from_max: float | None  #: that maps max to `high` exactly: high - max / scale
    from_min_error: float | None  #: float64 error bound of from_min, in the rule's terms: |low| + |min / scale|
    from_max_error: float | None  #: of from_max: |high| + |max / scale|
    nudge: float | None  #: zero_point less the candidate that was rounded
    representable: tuple[float, float]  #: the real values of `low` and `high`
    clipped: tuple[float, float]  #: the parts of the range below and above it

    def as_dict(self) -> dict[str, Any]:
        """Every field by its name."""
        return asdict(self)

    def _rows(self) -> Iterator[tuple[str, Any, str]]:
        yield "range", f"{self.min!r} to {self.max!r}", ""
        if self.widened != (self.min, self.max):
            yield "with 0 in it", f"{self.widened[0]!r} to {self.widened[1]!r}", "0 has a quantized value of its own"
        yield "quantized values", f"{self.low} to {self.high}", self.dtype + (", narrow" if self.narrow_range else "")
        text = "the greater of -min and max, over the values above the middle" if self.symmetric else "range / steps"
        yield "scale", self.scale, text
        if self.from_min is not None and self.from_max is not None:
            yield "zero point from min", self.from_min, f"low - min / scale, of terms {self.from_min_error:.6g}"
            yield "zero point from max", self.from_max, f"high - max / scale, of terms {self.from_max_error:.6g}"
        note = "the middle" if self.nudge is None else f"rounded: moved by {self.nudge:.6g} steps"
        yield "zero point", self.zero_point, note
        yield "representable", f"{self.representable[0]!r} to {self.representable[1]!r}", ""
        below, above = self.clipped
        yield "clipped", f"{below:.6g} below, {above:.6g} above", "of the range"

    def __str__(self) -> str:
        return "\n".join([f"rule {self.rule!r}", *steps_table(self._rows())])


def explain_quantization_params(
    lo: float,
    hi: float,
    dtype: DTypeLike = "int8",
    *,
    symmetric: bool = False,
    narrow_range: bool = False,
    rule: str = "toco",
) -> QuantizationParamsExplanation:
    """The steps by which tq.choose_quantization_params computes scale and zero point of one range.

    lo, hi: finite, lo <= hi. dtype, symmetric, narrow_range, rule, and errors: as choose_quantization_params.
    """
    chosen = _core.choose_quantization_params(
        float(lo), float(hi), dtype, symmetric=symmetric, narrow_range=narrow_range, rule=rule
    )
    _steps, name, low, high = _core._requantize_steps(0, 1.0, 0, "double", dtype)  # the core has each type's range
    low += bool(narrow_range)
    scale, zero = float(chosen.scale), int(chosen.zero_point)
    least, most = min(float(lo), 0.0), max(float(hi), 0.0)
    middle = symmetric or _is_symmetric_unasked(dtype, rule)
    ends = (scale * (low - zero), scale * (high - zero))
    candidates: tuple[Any, ...] = (None,) * 5
    if not middle and scale > 0:
        candidates = _candidates(least, most, scale, low, high, zero, rule)
    from_min, from_max, from_min_error, from_max_error, nudge = candidates
    return QuantizationParamsExplanation(
        float(lo), float(hi), name, rule, middle, bool(narrow_range), low, high, (least, most), scale, zero,
        from_min, from_max, from_min_error, from_max_error, nudge, ends,
        (max(ends[0] - least, 0.0), max(most - ends[1], 0.0)),
    )  # fmt: skip


def _is_symmetric_unasked(dtype: DTypeLike, rule: str) -> bool:
    """Whether the rule gives a one-sided range the zero point 0 of a symmetric one, as some do for int16."""
    alone = _core.choose_quantization_params(0.0, 1.0, dtype, rule=rule)
    return bool(alone == _core.choose_quantization_params(0.0, 1.0, dtype, symmetric=True, rule=rule))


def _candidates(least: float, most: float, scale: float, low: int, high: int, zero: int, rule: str) -> tuple[Any, ...]:
    """Both candidates for the zero point, their error terms, and the distance of the chosen one from its candidate."""
    from_min, from_max = low - least / scale, high - most / scale
    min_terms, max_terms = abs(low) + abs(least / scale), abs(high) + abs(most / scale)
    taken = from_max if rule == "toco" and not min_terms < max_terms else from_min
    return from_min, from_max, min_terms, max_terms, zero - taken
