# SPDX-License-Identifier: Apache-2.0
"""Limits of integer kernels: scales with which a kernel computes its operator's meaning.

Source: LiteRT f6745779, tflite/kernels; where those kernels compute something else than the operator means,
docs/deviations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tq.enums import LIMITS


class Scales(NamedTuple):
    """The scales of an operator's tensors, on which its kernel's limits depend."""

    type: str  # of the activations
    inputs: tuple[float, ...]
    constants: tuple[bool, ...]  # which inputs are
    lows: tuple[float, ...]  # the least real value of each input where it is known, else of its quantized values
    ends: tuple[float, ...]  # the least real value that each input's quantized values stand for
    output: float  # the first output's; 0 where that is not quantized
    beta: float  # the option; 1 where there is none
    weights: float  # the greatest scale of the weights; 0 where there are none


class Limit(NamedTuple):
    """A condition on which a kernel computes its operator's meaning; where it fails, the operator stays float."""

    why: str
    holds: Callable[[Scales], bool]
    least: Callable[[Scales], float] | None = None  # an output scale with which it holds: the range is widened to it
    relative: bool = False  # the input's small values count as much as its great ones: its producers stay float too


def _at_least(why: str, least: Callable[[Scales], float]) -> Limit:
    return Limit(why, lambda s: s.output >= least(s), least)


def _keeps(s: Scales) -> bool:
    """Whether the range of each computed operand is more than one step of the sum."""
    low, high = LIMITS[s.type]
    operands = zip(s.inputs, s.constants, strict=True)
    return all(constant or s.output <= scale * (high - low) for scale, constant in operands)


SUM: Limit = Limit(
    "the whole range of a computed operand must be more than a step of the sum, which it is not beside a mask of -1e9;"
    " and twice an input's"
    " scale at most 2^14 of the output's: beyond, LiteRT ends the process; with int8, the output's scale grows to more"
    " than 2^-7 of both inputs' together: below, LiteRT's optimized kernel loses upper bits",
    lambda s: s.output >= max(s.inputs) * 2.0**-10 and _keeps(s),
    lambda s: sum(s.inputs) * 1.001 * 2.0**-7 if s.type == "int8" else max(s.inputs) * 2.0**-10,
)
SQUARE: Limit = _at_least(
    "the square of an input's scale may be at most 2^12 of the output's: beyond, LiteRT ends the process",
    lambda s: max(s.inputs) ** 2 * 2.0**-11,
)
PRODUCT: Limit = _at_least(
    "with int16, the product of the inputs' scales may be at most the output's: beyond, quantized values wrap",
    lambda s: s.inputs[0] * s.inputs[-1] * 1.001 if s.type == "int16" else 0.0,
)
SWISH: Limit = _at_least("the output's scale must be more than a 128th of the input's", lambda s: s.inputs[0] / 120)
COMPARED: Limit = Limit(
    "scales from 1/512 to 1: the kernel compares in steps of 1/256, and ends the process at a scale of 1",
    lambda s: all(2.0**-9 <= scale < 1 for scale in s.inputs),
)
ROOT: Limit = Limit(
    "no quantized value may stand for a negative real value: the kernel refuses to run on one",
    lambda s: min(s.lows if s.type == "int16" else s.ends) >= 0,
)
LOG: Limit = Limit(
    "the least number of the input must be 8 steps or more: else small ones lose what the logarithm is to show, and the"
    " operators before it that keep small values small stay float as well",
    lambda s: s.lows[0] >= 8 * s.inputs[0],
    relative=True,
)
EXP: Limit = Limit(
    "int16 values that stand for at most 88: the kernel's table overflows beyond",
    lambda s: s.type == "int8" or 32767 * s.inputs[0] <= 88,
)
SOFTMAX: Limit = Limit(
    "a step of at most 5 logits: coarser ones tell nothing but the greatest apart, and with int16 the kernel wraps; and"
    " with int8 of at least 2^-24: at finer ones LiteRT ends the process",
    lambda s: (2.0**-24 if s.type == "int8" else 0) <= s.inputs[0] * abs(s.beta) < 5,  # 2^15 of 10 / 65535
)
SUMS_OF_PRODUCTS: Limit = _at_least(
    "with int8, s_input * s_weights must be less than 256 of the output's scale, which grows where the output was"
    " always 0: beyond, XNNPACK refuses the model; with int16 at most the output's scale: beyond, sums wrap",
    lambda s: s.inputs[0] * s.weights / (250 if s.type == "int8" else 1),
)
