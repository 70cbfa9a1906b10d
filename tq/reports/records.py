# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: of tensors, of outputs, of both models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tq.texts import middle

if TYPE_CHECKING:
    from tq._core import Model
    from tq.reports.advice import Tried

Counts = tuple[NDArray[Any], NDArray[Any]]  # of bins, and the bins' edges


@dataclass
class TensorReport:
    """A tensor of the float model and its partner in the quantized model.  Errors are of real values."""

    index: int  # in the float model
    index_b: int
    name: str
    operator: int | None  # in the float model, the producer; of a constant, the reader; None: an input
    operator_name: str
    type: str  # in the quantized model: "INT8"
    shape: tuple[int, ...]
    scale: float | None  # of the quantized tensor; None: none, or several
    zero_point: int | None
    scales: int  # the number of scales
    sqnr_db: float
    max_error: float
    mean_error: float  # of the quantized values less the float ones
    low: float  # of the float values
    high: float
    range_low: float  # the least representable real value; NaN: not quantized
    range_high: float  # the greatest
    clipped: float  # the part, 0 to 1, of the float values that lie outside the range by more than half a step
    at_low: float  # the part of the quantized values that are the least of their type
    at_high: float  # the part that are the greatest
    values: Counts | None = field(default=None, repr=False)  # histogram of the float values
    codes: Counts | None = field(
        default=None, repr=False
    )  # of the quantized values, with real edges; None: several scales
    errors: Counts | None = field(default=None, repr=False)  # histogram of the quantized values less the float ones
    worst_channel: int | None = None  # of a constant with several scales
    worst_channel_db: float = math.nan


@dataclass
class OutputReport:
    """An output of the model."""

    name: str
    shape: tuple[int, ...]
    type: str
    sqnr_db: float
    max_error: float
    mean_error: float
    cosine: float
    same_top: float  # the part of samples with the same greatest element; NaN: not an output of scores


@dataclass(repr=False)
class Figures:
    """The figures of a report, which its page shows."""

    float_model: Model
    quantized: Model
    float_name: str
    quantized_name: str
    samples: int
    activations: list[TensorReport]  # in the order of execution
    constants: list[TensorReport]
    outputs: list[OutputReport]
    sqnr_db: float  # of all outputs together: of the mean of their ratios of noise to signal
    arena: tuple[int, int]  # bytes of activations of each model; 0: not known
    unmatched: list[str]  # float activations that have no partner
    advice: list[Tried] = field(default_factory=list)  # other options, where `advise` asked for them

    @property
    def worst(self) -> list[TensorReport]:
        """The activations, the lowest SQNR first."""
        return sorted(self.activations, key=lambda row: row.sqnr_db)

    def __str__(self) -> str:
        lines = ["SQNR dB   max error  clipped %  type    operator             tensor"]
        for row in self.worst:
            lines.append(
                f"{row.sqnr_db:7.2f} {row.max_error:11.5g} {100 * row.clipped:10.3f}  {row.type[:7]:7} "
                f"{row.operator_name[:20]:20} {middle(row.name)}"
            )
        lines.append(f"outputs {self.sqnr_db:.2f} dB over {self.samples} samples")
        lines.append(f"{self.float_model.nbytes} bytes -> {self.quantized.nbytes}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<tq report: {len(self.activations)} tensors, outputs {self.sqnr_db:.2f} dB over {self.samples} samples>"
        )
