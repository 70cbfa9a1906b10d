# SPDX-License-Identifier: Apache-2.0
"""Which operators have integer kernels, and what those ask of their tensors: a row an operator.

INTEGER has the operators that tq.quantize_model can make integer operators; FLOAT has those that stay float although
some kernel takes integers, with the reason.  The passes of this folder, the tests and docs/quantization.md
(tests/support/quantization_table.py) walk the rows.

Source: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc (shared and fixed parameters) and
tflite/kernels (types and limits); where those kernels compute something else than the operator means,
docs/deviations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Union

FREE = "free"  # each output has its own range
SAME = "same"  # inputs and outputs have the same parameters
CENTERED = "centered"  # so, with zero point 0: the kernel writes the quantized value 0 for 0.0
READS = "reads"  # the inputs are quantized; the outputs are indices, truth values or shapes

Output = Union[str, tuple[float, int]]  # noqa: UP007 - evaluated on Python 3.10 too
LIMITS = {"int8": (-128, 127), "int16": (-32768, 32767)}


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
    """What a kernel needs to compute the operator's meaning; an operator whose limit does not hold stays float."""

    why: str
    holds: Callable[[Scales], bool]
    least: Callable[[Scales], float] | None = None  # an output scale with which it holds: the range is widened to it
    relative: bool = False  # the input's small values count as much as its great ones: its producers stay float too


class Integer(NamedTuple):
    """How an operator's integer kernel wants its tensors."""

    int8: Output | None = None  # its outputs, with int8 activations; None: there is no such kernel
    int16: Output | None = None
    data: tuple[int, ...] | None = None  # the places of activations; None: of all float inputs but the two below
    weights: int | None = None  # of int8 weights
    bias: int | None = None
    axis: int | None = None  # of the weights' scales; None: one scale
    needs_bias: bool = False
    narrow: int | None = None  # of an input that is int8 beside int16 activations too
    limit: Limit | None = None
    options: tuple[tuple[str, object], ...] = ()  # that int16 activations need
    recurrent: bool = False  # tq/quantization/recurrent.py has the rest
    only: tuple[str, tuple[str, ...]] | None = (
        None  # an option, and its values for which the kernel's result is the operator's
    )


def _at_least(why: str, least: Callable[[Scales], float]) -> Limit:
    return Limit(why, lambda s: s.output >= least(s), least)


def _keeps(s: Scales) -> bool:
    """Whether the range of each computed operand is more than one step of the sum."""
    low, high = LIMITS[s.type]
    operands = zip(s.inputs, s.constants, strict=True)
    return all(constant or s.output <= scale * (high - low) for scale, constant in operands)


_SUM = Limit(
    "the whole range of a computed operand must be more than a step of the sum, which it is not beside a mask of -1e9;"
    " and twice an input's"
    " scale at most 2^14 of the output's: beyond, LiteRT ends the process; with int8, the output's scale grows to more"
    " than 2^-7 of both inputs' together: below, LiteRT's optimized kernel loses upper bits",
    lambda s: s.output >= max(s.inputs) * 2.0**-10 and _keeps(s),
    lambda s: sum(s.inputs) * 1.001 * 2.0**-7 if s.type == "int8" else max(s.inputs) * 2.0**-10,
)
_SQUARE = _at_least(
    "the square of an input's scale may be at most 2^12 of the output's: beyond, LiteRT ends the process",
    lambda s: max(s.inputs) ** 2 * 2.0**-11,
)
_PRODUCT = _at_least(
    "with int16, the product of the inputs' scales may be at most the output's: beyond, quantized values wrap",
    lambda s: s.inputs[0] * s.inputs[-1] * 1.001 if s.type == "int16" else 0.0,
)
_SWISH = _at_least("the output's scale must be more than a 128th of the input's", lambda s: s.inputs[0] / 120)
_COMPARED = Limit(
    "scales from 1/512 to 1: the kernel compares in steps of 1/256, and ends the process at a scale of 1",
    lambda s: all(2.0**-9 <= scale < 1 for scale in s.inputs),
)
_ROOT = Limit(
    "no quantized value may stand for a negative real value: the kernel refuses to run on one",
    lambda s: min(s.lows if s.type == "int16" else s.ends) >= 0,
)
_LOG = Limit(
    "the least number of the input must be 8 steps or more: else small ones lose what the logarithm is to show, and the"
    " operators before it that keep small values small stay float as well",
    lambda s: s.lows[0] >= 8 * s.inputs[0],
    relative=True,
)
_EXP = Limit(
    "int16 values that stand for at most 88: the kernel's table overflows beyond",
    lambda s: s.type == "int8" or 32767 * s.inputs[0] <= 88,
)
_SOFTMAX = Limit(
    "a step of at most 5 logits: coarser ones tell nothing but the greatest apart, and with int16 the kernel wraps; and"
    " with int8 of at least 2^-24: at finer ones LiteRT ends the process",
    lambda s: (2.0**-24 if s.type == "int8" else 0) <= s.inputs[0] * abs(s.beta) < 5,  # 2^15 of 10 / 65535
)
_SUMS_OF_PRODUCTS = _at_least(
    "with int8, s_input * s_weights must be less than 256 of the output's scale, which grows where the output was"
    " always 0: beyond, XNNPACK refuses the model; with int16 at most the output's scale: beyond, sums wrap",
    lambda s: s.inputs[0] * s.weights / (250 if s.type == "int8" else 1),
)

_SHARING = """AVERAGE_POOL_2D MAX_POOL_2D BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND BROADCAST_TO SPLIT SPLIT_V
    CONCATENATION DILATE DYNAMIC_UPDATE_SLICE EXPAND_DIMS FILL GATHER GATHER_ND MATRIX_SET_DIAG MAXIMUM MINIMUM
    MIRROR_PAD PACK PAD PADV2 REDUCE_MAX REDUCE_MIN RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT
    SELECT_V2 SLICE SQUEEZE STABLEHLO_GATHER STRIDED_SLICE TILE TOPK_V2 TRANSPOSE UNPACK"""
_SHARING_INT8 = "DEPTH_TO_SPACE EMBEDDING_LOOKUP ONE_HOT SPACE_TO_DEPTH SPARSE_TO_DENSE STABLEHLO_PAD"
_FREE = "ABS BATCH_MATMUL GELU LEAKY_RELU MEAN REDUCE_PROD RELU RELU6"
_FREE_INT8 = "ELU RELU_0_TO_1 RELU_N1_TO_1"
_COMPARISONS = "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL"

INTEGER: dict[str, Integer] = {
    "CONV_2D": Integer(FREE, FREE, weights=1, bias=2, axis=0, needs_bias=True, limit=_SUMS_OF_PRODUCTS),
    "DEPTHWISE_CONV_2D": Integer(FREE, FREE, weights=1, bias=2, axis=3, limit=_SUMS_OF_PRODUCTS),
    "FULLY_CONNECTED": Integer(FREE, FREE, weights=1, bias=2, axis=0, limit=_SUMS_OF_PRODUCTS),
    "TRANSPOSE_CONV": Integer(FREE, FREE, weights=1, bias=3, axis=0, limit=_SUMS_OF_PRODUCTS),
    "SOFTMAX": Integer((1 / 256, -128), (1 / 32768, 0), limit=_SOFTMAX),
    "LOGISTIC": Integer((1 / 256, -128), (1 / 32768, 0)),
    "TANH": Integer((1 / 128, 0), (1 / 32768, 0)),
    "L2_NORMALIZATION": Integer((1 / 128, 0)),
    "LOG_SOFTMAX": Integer((1 / 16, 127), limit=_SOFTMAX),
    "ADD": Integer(FREE, FREE, limit=_SUM, options=(("pot_scale_int16", False),)),
    "SUB": Integer(FREE, FREE, limit=_SUM, options=(("pot_scale_int16", False),)),
    "SQUARED_DIFFERENCE": Integer(FREE, limit=_SQUARE),
    "MUL": Integer(FREE, FREE, limit=_PRODUCT),
    "EXP": Integer(FREE, FREE, limit=_EXP),
    "LOG": Integer(FREE, FREE, limit=_LOG),
    "SQRT": Integer(FREE, FREE, limit=_ROOT),
    "RSQRT": Integer(FREE, FREE, limit=_ROOT),
    "HARD_SWISH": Integer(FREE, limit=_SWISH),
    "PRELU": Integer(FREE, FREE, narrow=1),
    **{name: Integer(FREE, FREE) for name in _FREE.split()},
    **{name: Integer(FREE) for name in _FREE_INT8.split()},
    **{name: Integer(SAME, SAME) for name in _SHARING.split()},
    **{name: Integer(SAME) for name in _SHARING_INT8.split()},
    "REDUCE_WINDOW": Integer(SAME, SAME, only=("reduce_function", ("MINIMUM", "MAXIMUM"))),
    "MATRIX_DIAG": Integer(CENTERED, SAME),
    "SCATTER_ND": Integer(CENTERED),
    "REVERSE_SEQUENCE": Integer(None, SAME),
    **{name: Integer(READS, limit=_COMPARED) for name in _COMPARISONS.split()},
    "ARG_MAX": Integer(READS),
    "ARG_MIN": Integer(READS),
    "RANK": Integer(READS, READS),
    "SHAPE": Integer(READS, READS),
    "LSTM": Integer(FREE, data=(0,), recurrent=True),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Integer(FREE, data=(0,), recurrent=True),
    "SVDF": Integer(FREE, data=(0,), recurrent=True),
    "READ_VARIABLE": Integer(SAME, SAME, data=()),
    "ASSIGN_VARIABLE": Integer(SAME, SAME, data=(1,)),
    # Under constraints across subgraphs: tq/quantization/constraints.py.
    "IF": Integer(FREE, FREE),
    "STABLEHLO_CASE": Integer(FREE, FREE),
    "WHILE": Integer(FREE, FREE),
    # Written as others, which mean the same: see INSTEAD.
    "SQUARE": Integer(FREE, FREE, limit=_PRODUCT),
    "NEG": Integer(FREE, FREE),
    "DIV": Integer(FREE, FREE, data=(0,)),
    "SUM": Integer(FREE, FREE),
}

# Control flow: the options that name the subgraphs that it calls, and how many inputs stand before those that it hands
# over.
CALLING: dict[str, tuple[tuple[str, ...], int]] = {
    "IF": (("then_subgraph_index", "else_subgraph_index"), 1),
    "STABLEHLO_CASE": (("branch_subgraph_indices",), 1),
    "WHILE": (("cond_subgraph_index", "body_subgraph_index"), 0),
}

# Operators that touch resource variables: where the value is that they read or write.
VARIABLES = {"READ_VARIABLE": ("outputs", 0), "ASSIGN_VARIABLE": ("inputs", 1)}

# Operators whose small results come from small inputs.
_RELATIVE = "ABS ADD EXPAND_DIMS MAXIMUM MEAN MUL NEG RESHAPE SQRT SQUARE SQUEEZE STRIDED_SLICE SUB SUM TRANSPOSE"
RELATIVE = frozenset(_RELATIVE.split())

# What is written for operators that have no integer kernel, or one that computes something else than they mean.
INSTEAD = {
    "SQUARE": "MUL by itself: there is no kernel",
    "NEG": "MUL by -1: the kernel negates quantized values, and -128 has no opposite",
    "DIV": "MUL by the reciprocals of a constant divisor: the kernel shifts small quotients by too many places, and"
    " fails where a divisor's quantized value is the zero point; other divisors stay float",
    "SUM": "MEAN, and MUL by the count, of known shapes and axes: LiteRT's reference kernel reads int8 values as uint8",
}

# Operators that stay float, though kernels take int8 or int16.
FLOAT = {
    "BITCAST": "the bits of a quantized value are not those of its real value",
    "BITWISE_XOR": "of integers",
    "CALL_ONCE": "it has no tensors",
    "CAST": "the kernel converts quantized values, not the real values behind them",
    "DENSIFY": "of weights, which become plain constants",
    "DEQUANTIZE": "it is what stands between; of float16 weights, these become plain constants",
    "FLOOR_DIV": "the kernel divides quantized values, not the real values behind them",
    "FLOOR_MOD": "the kernel divides quantized values, not the real values behind them",
    "NumericVerify": "its purpose is to compare quantized values with float values",
    "QUANTIZE": "it is what stands between",
    "RIGHT_SHIFT": "of integers",
    "STABLEHLO_AND": "of integers",
    "STABLEHLO_REDUCE_WINDOW": "what it calls has float tensors",
    "STABLEHLO_SCATTER": "what it calls has float tensors",
    "STABLEHLO_SHIFT_LEFT": "of integers",
    "UNIQUE": "values that round to the same quantized value would become one, and shapes would change",
    "WHERE": "the kernel takes the quantized value 0 for 0.0",
}
# Operators with an int8 form alone, though kernels take int16.
NOT_INT16 = dict.fromkeys(_COMPARISONS.split(), "int16 values are finer than the kernel's steps of 1/256")
