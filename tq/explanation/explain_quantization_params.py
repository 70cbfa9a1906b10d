# SPDX-License-Identifier: Apache-2.0
"""The steps from a real range to a scale and a zero point: tq.explain_quantization_params."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from tq import _core
from tq.pages.tables import Result, Table
from tq.texts import steps_table


class _Rule(NamedTuple):
    """The arithmetic of a row of src/quant/params.def."""

    real: Any  # in which it divides
    scale: str
    symmetric_scale: str
    least_range: float = 0.0  # a narrower one is widened to it


_HALF = "the greater of -min and max, over the values above the middle"
_RULES = {
    "toco": _Rule(np.float64, "range / steps in float64, kept as float32", _HALF),
    "tflite": _Rule(np.float32, "range / steps in float32", _HALF),
    "mlir": _Rule(np.float64, "range / steps in float32", "twice the greater of -min and max, over the steps", 1e-6),
    "power-of-two": _Rule(
        np.float64, "the least power of two of at least range / steps", "of a power of two of at least -min and max"
    ),
    "ai-edge-quantizer": _Rule(
        np.float32, "range / steps in float32, of a range of at least 1e-9", f"{_HALF}, or 1e-9"
    ),
}


@dataclass(frozen=True, repr=False)
class QuantizationParamsExplanation(Result):
    """The steps from a range to parameters.  `str()` is a table, and a notebook shows one."""

    __module__ = "tq"  # for pickles, which name the public place

    min: float  #: as given
    max: float
    dtype: str
    rule: str
    symmetric: bool  #: the zero point is the middle of the quantized values
    narrow_range: bool
    low: int  #: the least quantized value in use
    high: int  #: the greatest
    widened: tuple[float, float]  #: the range with 0 in it, no narrower than the rule takes
    scale: float  #: float32
    zero_point: int
    from_min: float | None  #: the zero point that maps min to `low` exactly: low - min / scale; None: symmetric
    from_max: float | None  #: that maps max to `high` exactly: high - max / scale
    from_min_error: float | None  #: toco's: |low| + |min / scale|, to which its rounding error is proportional
    from_max_error: float | None  #: of from_max: |high| + |max / scale|
    nudge: float | None  #: zero_point less the candidate that was rounded
    taken: str | None  #: "min" or "max": the candidate that was rounded; only rule "toco" looks at both
    representable: tuple[float, float]  #: the real values of `low` and `high`
    clipped: tuple[float, float]  #: the parts of the range below and above it

    def as_dict(self) -> dict[str, Any]:
        """Every field by its name."""
        return asdict(self)

    def _rows(self) -> Iterator[tuple[str, Any, str]]:
        yield "range", f"{self.min!r} to {self.max!r}", ""
        if self.widened != (self.min, self.max):
            yield (
                "widened",
                f"{self.widened[0]!r} to {self.widened[1]!r}",
                "with 0 in it, and as wide as the rule takes",
            )
        yield "quantized values", f"{self.low} to {self.high}", self.dtype + (", narrow" if self.narrow_range else "")
        rule = _RULES[self.rule]
        yield "scale", self.scale, rule.symmetric_scale if self.symmetric else rule.scale
        if self.from_min is not None and self.from_max is not None:
            errors = f"{self.from_min_error:.6g}", f"{self.from_max_error:.6g}"
            yield "zero point from min", self.from_min, f"low - min / scale; error |low| + |min / scale| = {errors[0]}"
            yield (
                "zero point from max",
                self.from_max,
                f"high - max / scale; error |high| + |max / scale| = {errors[1]}",
            )
        note = "the middle" if self.symmetric else "the scale is 0"
        if self.nudge is not None:
            note = f"that from {self.taken} rounded: moved by {self.nudge:.6g} steps"
        yield "zero point", self.zero_point, note
        yield "representable", f"{self.representable[0]!r} to {self.representable[1]!r}", ""
        below, above = self.clipped
        yield "clipped", f"{below:.6g} below, {above:.6g} above", "of the range"

    def table(self) -> Table:
        """A row for each step."""
        return Table(("step", "#value", "note"), list(self._rows()))

    def summary(self) -> list[str]:
        """The scale and the zero point."""
        return [f"{self.min!r} to {self.max!r} gives scale {self.scale!r}, zero point {self.zero_point}, {self.dtype}"]

    def to_dict(self) -> dict[str, Any]:
        """As as_dict."""
        return self.as_dict()

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
    middle = symmetric or _is_symmetric_unasked(dtype, rule)
    least, most = _widened(float(lo), float(hi), middle, rule)
    ends = (scale * (low - zero), scale * (high - zero))
    candidates: tuple[Any, ...] = (None,) * 6
    if not middle and scale > 0:
        candidates = _candidates(least, most, scale, low, high, zero, rule)
    from_min, from_max, from_min_error, from_max_error, nudge, taken = candidates
    return QuantizationParamsExplanation(
        float(lo), float(hi), name, rule, middle, bool(narrow_range), low, high, (least, most), scale, zero,
        from_min, from_max, from_min_error, from_max_error, nudge, taken, ends,
        (max(ends[0] - min(float(lo), 0.0), 0.0), max(max(float(hi), 0.0) - ends[1], 0.0)),
    )  # fmt: skip


def _widened(lo: float, hi: float, symmetric: bool, rule: str) -> tuple[float, float]:
    """The range with 0 in it, no narrower than the rule takes."""
    least, most, narrowest = min(lo, 0.0), max(hi, 0.0), _RULES[rule].least_range
    width = 2 * max(-least, most) if symmetric else most - least
    return (least, most) if width > narrowest else (min(least, -narrowest / 2), max(most, narrowest / 2))


def _is_symmetric_unasked(dtype: DTypeLike, rule: str) -> bool:
    """Whether the rule gives a one-sided range the zero point 0 of a symmetric one, as some do for int16."""
    alone = _core.choose_quantization_params(0.0, 1.0, dtype, rule=rule)
    return bool(alone == _core.choose_quantization_params(0.0, 1.0, dtype, symmetric=True, rule=rule))


def _candidates(least: float, most: float, scale: float, low: int, high: int, zero: int, rule: str) -> tuple[Any, ...]:
    """Both candidates for the zero point, their error terms, the distance of the chosen one from its candidate, and
    the end that this one comes from."""
    real = _RULES[rule].real
    step = real((most - least) / (high - low) if rule == "toco" else scale)
    parts = [real(end) / step for end in (least, most)]
    from_min, from_max = (float(real(end) - part) for end, part in zip((low, high), parts, strict=True))
    if rule == "mlir":
        from_min, from_max = float(np.float32(from_min)), float(np.float32(from_max))
    min_terms, max_terms = (float(abs(end) + abs(part)) for end, part in zip((low, high), parts, strict=True))
    taken = "max" if rule == "toco" and not min_terms < max_terms else "min"
    return from_min, from_max, min_terms, max_terms, zero - (from_max if taken == "max" else from_min), taken
