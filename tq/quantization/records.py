# SPDX-License-Identifier: Apache-2.0
"""The constants, states and form of an integer operator, as records that tq/quantization/rewrite.py writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from tq.editing.graph import OperatorPart, TensorPart

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Constant:
    """Quantized values that an operator reads at an input in place of its float constant.

    scale: one, or one for each index of `axis` (is_per_axis).
    tensor: the float constant; None of a bias that the operator lacks and of the factor of a Product.
    name: of the tensor, where there is no float constant.
    is_on_grid: whether the values lie on the grid that training, the caller or the file chose.
    """

    operator: OperatorPart
    input: int
    tensor: TensorPart | None
    values: NDArray[Any]
    type: str
    scale: Floats
    zero_point: int = 0
    axis: int = 0
    is_per_axis: bool = False
    name: str = ""
    is_on_grid: bool = False

    def __post_init__(self) -> None:
        for name in ("values", "scale"):
            array = np.asarray(getattr(self, name)).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __str__(self) -> str:
        return f"{self.type} along axis {self.axis}" if self.is_per_axis else self.type


@dataclass(frozen=True, eq=False)
class ComputedWeights:
    """int8 values, of zero point 0, that an operator with int16 activations reads of computed weights.

    magnitude: the greatest absolute real value."""

    operator: OperatorPart
    input: int
    tensor: TensorPart
    scale: float
    magnitude: float


@dataclass(frozen=True, eq=False)
class State:
    """The type and parameters of a state of a recurrent operator."""

    operator: OperatorPart
    tensor: TensorPart
    type: str
    scale: np.float32
    zero_point: int = 0


class Intermediate(NamedTuple):
    """A tensor without data whose parameters are those of values inside a recurrent operator; scale None: none."""

    name: str
    type: str
    scale: np.float32 | None
    zero_point: int = 0


@dataclass(frozen=True, eq=False)
class Intermediates:
    """All of a recurrent operator."""

    operator: OperatorPart
    tensors: tuple[Intermediate, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """An operator written as MUL of its first input and a factor: tq.specification.table.INSTEAD.

    factor: float values; None: the first input again."""

    operator: OperatorPart
    name: str
    factor: Floats | None


Record = Union[Constant, ComputedWeights, State, Intermediates]  # noqa: UP007 - evaluated on Python 3.10 too
