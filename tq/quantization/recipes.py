# SPDX-License-Identifier: Apache-2.0
"""How a model may be quantized, in rows: recipes, and the operators' weights.

Source of the weights: LiteRT f6745779, tflite/kernels (the inputs of each hybrid kernel) and
tflite/converter/ir/tfl_ops.td (GetQuantizableOperandIndices, GetQuantizationDimIndex).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tq.nearest import hint

# How weights are rounded: each to the nearest, or for the inputs of their layer (tq/quantization/rounding.py).
NEAREST = "nearest"
ROUNDINGS = (NEAREST, "gptq", "comq")

# How long to search for a model with small errors (tq/quantization/effort.py).
FAST, BETTER, BEST = EFFORTS = ("fast", "better", "best")

HYBRID = "hybrid"  # integer weights beside float activations: the kernel quantizes the activations as it runs
GATHERED = "gathered"  # a narrow table, of which the operator takes rows; a DEQUANTIZE stands behind it
DEQUANTIZED = "dequantized"  # narrow weights behind a DEQUANTIZE: the operator computes in float32
STATIC = "static"  # integer activations too, with ranges from calibration
FLOAT = "float"  # as it is


@dataclass(frozen=True)
class Recipe:
    """The change of an operator by a recipe."""

    name: str
    form: str
    weights: str = ""  # the type of the quantized values, or "float16"
    in_blocks: bool = False
    activations: str = "float32"


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("int8", STATIC, "int8", activations="int8"),
        Recipe("int16x8", STATIC, "int8", activations="int16"),
        Recipe("dynamic_int8", HYBRID, "int8"),
        Recipe("dynamic_int4", HYBRID, "int4"),
        Recipe("dynamic_int2", HYBRID, "int2"),
        Recipe("blockwise_int4", HYBRID, "int4", in_blocks=True),
        Recipe("weight_only_int8", DEQUANTIZED, "int8"),
        Recipe("weight_only_int4", DEQUANTIZED, "int4"),
        Recipe("weight_only_int2", DEQUANTIZED, "int2"),
        Recipe("float16", DEQUANTIZED, "float16"),
        Recipe("int4", STATIC, "int4", activations="int8"),
        Recipe("int16x4", STATIC, "int4", activations="int16"),
        Recipe("uint8", STATIC, "uint8", activations="int8"),  # written as uint8: tq/quantization/unsigned.py
        Recipe("float", FLOAT),
    )
}


class Weights(NamedTuple):
    """The weights of an operator."""

    inputs: tuple[int, ...]  # which inputs; all of them are quantized, or none
    axis: int | None  # along which each index has its own scale; None: one scale for all
    hybrid: tuple[str, ...]  # the types that its kernel takes beside float activations
    in_blocks: bool = False  # whether that kernel takes scales of blocks
    scale_per_channel: bool = False  # it wants a scale for each channel, be they equal
    integer: tuple[str, ...] = ("int8",)  # the types that all kernel sets take beside int8 and int16 activations
    gathers: bool = False  # its output holds rows of the weights


_LSTM = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16)
_TWO_LSTMS = (*_LSTM, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 33, *range(40, 48))

# The types that the dynamic recipes hand over to custom operators, which the caller says are weights.
CUSTOM_WEIGHTS = ("int8", "int4")

WEIGHTS = {
    "CONV_2D": Weights((1,), 0, ("int8", "int4"), integer=("int8", "int4")),
    "DEPTHWISE_CONV_2D": Weights((1,), 3, ("int8",), scale_per_channel=True),
    "FULLY_CONNECTED": Weights((1,), 0, ("int8", "int4", "int2"), in_blocks=True, integer=("int8", "int4")),
    "TRANSPOSE_CONV": Weights((1,), 0, ("int8",), scale_per_channel=True),
    "BATCH_MATMUL": Weights((1,), None, ("int8",)),
    "EMBEDDING_LOOKUP": Weights((1,), 0, ("int8", "int4", "int2")),
    "GATHER": Weights((0,), None, ("int8",), gathers=True),
    "CONV_3D": Weights((1,), 4, ()),
    "CONV_3D_TRANSPOSE": Weights((1,), 4, ()),
    "SVDF": Weights((1, 2), None, ("int8",)),
    "RNN": Weights((1, 2), None, ("int8",)),
    "UNIDIRECTIONAL_SEQUENCE_RNN": Weights((1, 2), None, ("int8",)),
    "BIDIRECTIONAL_SEQUENCE_RNN": Weights((1, 2, 5, 6, 10, 11), None, ("int8",)),
    "LSTM": Weights(_LSTM, None, ("int8",)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Weights(_LSTM, None, ("int8",)),
    "BIDIRECTIONAL_SEQUENCE_LSTM": Weights(_TWO_LSTMS, None, ("int8",)),
}

# Operators that read a float constant when they are prepared, before a DEQUANTIZE could run.
READ_WHEN_PREPARED = {"RANGE"}


def find(name: str) -> Recipe:
    """The recipe of that name; ValueError lists all names."""
    if name not in RECIPES:
        raise ValueError(f"there is no recipe {name!r}; there are: {', '.join(RECIPES)}{hint(name, RECIPES)}")
    return RECIPES[name]


def check_effort(name: str) -> None:
    """ValueError: there is no such effort."""
    if name not in EFFORTS:
        raise ValueError(f"effort is {name!r}; there are: {', '.join(EFFORTS)}{hint(name, EFFORTS)}")


def check_rounding(name: str) -> None:
    """ValueError: there is no such rounding of weights."""
    if name not in ROUNDINGS:
        raise ValueError(f"weight_rounding is {name!r}; there are: {', '.join(ROUNDINGS)}{hint(name, ROUNDINGS)}")


@dataclass(frozen=True)
class Rule:
    """Gives some operators a recipe of their own.

    recipe: one of tq.quantization.recipes.RECIPES; "float" leaves them as they are.
    operator: their name, "CONV_2D".  tensor: a regular expression that is searched for in the names of their outputs
    and of their constant inputs.  subgraph: its index.  index: the operator's
    index in its subgraph, or several.  An operator for which all given conditions hold gets the recipe; where
    `operator`, `tensor` or `index` finds a STABLEHLO_COMPOSITE, the operators of its subgraph get it too.
    weight_rounding: of its weights, as of tq.quantize_model, which decides where it is None.
    """

    __module__ = "tq"  # pickles name it so, wherever it is defined

    recipe: str
    operator: str | None = None
    tensor: str | None = None
    subgraph: int | None = None
    index: int | tuple[int, ...] | None = None
    weight_rounding: str | None = None

    def __post_init__(self) -> None:
        find(self.recipe)
        if self.weight_rounding is not None:
            check_rounding(self.weight_rounding)
        if self.tensor is not None:
            try:
                re.compile(self.tensor)
            except re.error as error:
                raise ValueError(f"{self.tensor!r} is no regular expression: {error}") from None

    def holds(self, operator: str, subgraph: int, names: Iterable[str], index: int | None = None) -> bool:
        """Whether it is meant for an operator at that index, whose tensors have these names."""
        if self.index is not None and index not in (self.index if isinstance(self.index, tuple) else (self.index,)):
            return False
        if self.operator is not None and self.operator != operator:
            return False
        if self.subgraph is not None and self.subgraph != subgraph:
            return False
        return self.tensor is None or any(re.search(self.tensor, name) for name in names)
