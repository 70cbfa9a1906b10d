# SPDX-License-Identifier: Apache-2.0
"""TFLite's quantization specification: which operators have integer kernels, and what those ask of their tensors, a
row an operator.

INTEGER has the operators that tq.quantize_model can make integer operators; FLOAT has those that stay float although
some kernel takes integers, with the reason.  The quantizer, tq.check, tq.repair, the tests and docs/quantization.md
(tests/support/quantization_table.py) walk the rows.

Source: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc (shared and fixed parameters) and
tflite/kernels (types and limits); where those kernels compute something else than the operator means,
docs/deviations.md.
"""

from __future__ import annotations

from typing import NamedTuple, Union

from tq import _core
from tq.enums import LIMITS
from tq.specification import limits

FREE = "free"  # each output has its own range
SAME = "same"  # inputs and outputs have the same parameters
CENTERED = "centered"  # so, with zero point 0: the kernel writes the quantized value 0 for 0.0
CONVERTS = "converts"  # QUANTIZE and DEQUANTIZE: parameters of any kind
READS = "reads"  # the inputs are quantized; the outputs are indices, truth values or shapes

Output = Union[str, tuple[float, int]]  # noqa: UP007 - evaluated on Python 3.10 too


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
    limit: limits.Limit | None = None
    options: tuple[tuple[str, object], ...] = ()  # that int16 activations need
    recurrent: bool = False  # tq/quantization/recurrent.py has the rest
    only: tuple[str, tuple[str, ...]] | None = (
        None  # an option, and its values for which the kernel's result is the operator's
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
    "CONV_2D": Integer(FREE, FREE, weights=1, bias=2, axis=0, needs_bias=True, limit=limits.SUMS_OF_PRODUCTS),
    "DEPTHWISE_CONV_2D": Integer(FREE, FREE, weights=1, bias=2, axis=3, limit=limits.SUMS_OF_PRODUCTS),
    "FULLY_CONNECTED": Integer(FREE, FREE, weights=1, bias=2, axis=0, limit=limits.SUMS_OF_PRODUCTS),
    "TRANSPOSE_CONV": Integer(FREE, FREE, weights=1, bias=3, axis=0, limit=limits.SUMS_OF_PRODUCTS),
    "SOFTMAX": Integer((1 / 256, -128), (1 / 32768, 0), limit=limits.SOFTMAX),
    "LOGISTIC": Integer((1 / 256, -128), (1 / 32768, 0)),
    "TANH": Integer((1 / 128, 0), (1 / 32768, 0)),
    "L2_NORMALIZATION": Integer((1 / 128, 0)),
    "LOG_SOFTMAX": Integer((1 / 16, 127), limit=limits.SOFTMAX),
    "ADD": Integer(FREE, FREE, limit=limits.SUM, options=(("pot_scale_int16", False),)),
    "SUB": Integer(FREE, FREE, limit=limits.SUM, options=(("pot_scale_int16", False),)),
    "SQUARED_DIFFERENCE": Integer(FREE, limit=limits.SQUARE),
    "MUL": Integer(FREE, FREE, limit=limits.PRODUCT),
    "EXP": Integer(FREE, FREE, limit=limits.EXP),
    "LOG": Integer(FREE, FREE, limit=limits.LOG),
    "SQRT": Integer(FREE, FREE, limit=limits.ROOT),
    "RSQRT": Integer(FREE, FREE, limit=limits.ROOT),
    "HARD_SWISH": Integer(FREE, limit=limits.SWISH),
    "PRELU": Integer(FREE, FREE, narrow=1),
    **{name: Integer(FREE, FREE) for name in _FREE.split()},
    **{name: Integer(FREE) for name in _FREE_INT8.split()},
    **{name: Integer(SAME, SAME) for name in _SHARING.split()},
    **{name: Integer(SAME) for name in _SHARING_INT8.split()},
    "REDUCE_WINDOW": Integer(SAME, SAME, only=("reduce_function", ("MINIMUM", "MAXIMUM"))),
    "MATRIX_DIAG": Integer(CENTERED, SAME),
    "SCATTER_ND": Integer(CENTERED),
    "REVERSE_SEQUENCE": Integer(None, SAME),
    **{name: Integer(READS, limit=limits.COMPARED) for name in _COMPARISONS.split()},
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
    "SQUARE": Integer(FREE, FREE, limit=limits.PRODUCT),
    "NEG": Integer(FREE, FREE),
    "DIV": Integer(FREE, FREE, data=(0,)),
    "SUM": Integer(FREE, FREE),
}


def _callees(name: str) -> list[tuple[str, str]]:
    """(option that names a subgraph, form of the subgraph's inputs) of an operator: src/model/callees.def."""
    return [(field, inputs) for row, _, field, inputs, _ in _core.callees() if row == name]


# Control flow: the options that name the subgraphs that it calls, and the first input that these get.
CALLING: dict[str, tuple[tuple[str, ...], int]] = {
    name: (tuple(field for field, _ in found), int(found[0][1] == "ALL_BUT_ONE"))
    for name in ("IF", "STABLEHLO_CASE", "WHILE")
    if (found := _callees(name))
}

# Operators that touch resource variables: where the value is that they read or write.
VARIABLES = {"READ_VARIABLE": ("outputs", 0), "ASSIGN_VARIABLE": ("inputs", 1)}

# Operators whose small results come from small inputs.
_RELATIVE = "ABS ADD EXPAND_DIMS MAXIMUM MEAN MUL NEG RESHAPE SQRT SQUARE SQUEEZE STRIDED_SLICE SUB SUM TRANSPOSE"
RELATIVE = frozenset(_RELATIVE.split())

# {operator without an integer kernel that computes its meaning: the operators in its place, and the reason}.
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

# Beyond what the quantizer writes: operators as files have them.
_FOUND = {
    "DIV": Integer(FREE, FREE),
    "SUM": Integer(FREE, SAME),
    "NEG": Integer(),
    "SQUARE": Integer(),
    "QUANTIZE": Integer(CONVERTS, CONVERTS),
    "DEQUANTIZE": Integer(CONVERTS, CONVERTS),
}


# Operators whose kernels take int8 values beside int16 activations too, which the quantizer does not write.
NARROW_TOO = {"BATCH_MATMUL": 1}

# Operators of the same scale before and behind whose kernels rescale all the same.
RESCALING = {("CONCATENATION", "uint8"), ("SUM", "int16")}

# Kernels of runtimes whose outputs have another type, which the specification does not know: operator, types.
MIXED = {
    ("SOFTMAX", "int8", "int16"),
    ("SOFTMAX", "uint8", "int16"),
    ("FULLY_CONNECTED", "uint8", "int16"),
    ("MUL", "int16", "int8"),
    ("MUL", "int16", "uint8"),
}

# {operator that interprets a subgraph itself, on plain values: its option}.
INTERPRETING = {
    name: _callees(name)[0][0]
    for name in ("STABLEHLO_REDUCE", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER", "STABLEHLO_SORT")
}


class Spec(NamedTuple):
    """The types of an operator of activations of one type."""

    name: str
    type: str  # of activations
    low: int
    high: int
    weights: str
    bias: str
    symmetric: bool  # activations have zero point 0


SPECS = {
    "int8": Spec("int8", "int8", *LIMITS["int8"], "int8", "int32", False),
    "int16x8": Spec("int16x8", "int16", *LIMITS["int16"], "int8", "int64", True),
    "uint8": Spec("uint8", "uint8", *LIMITS["uint8"], "uint8", "int32", False),
}
SPEC_OF_TYPE = {spec.type: spec for spec in SPECS.values()}


def row_of(name: str) -> Integer | None:
    """The row of a builtin operator; None: it has none."""
    return _FOUND.get(name) or INTEGER.get(name)


# Operators whose kernels take no uint8 values.
_NO_UINT8 = """ABS BATCH_MATMUL DILATE DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EXP FILL LOG REDUCE_PROD RSQRT
    SCATTER_ND SQRT SQUARED_DIFFERENCE STABLEHLO_GATHER STABLEHLO_PAD SVDF UNIDIRECTIONAL_SEQUENCE_LSTM"""
WITHOUT_UINT8 = frozenset(_NO_UINT8.split())


def form_of(name: str, spec: Spec) -> Output | None:
    """The form of an operator's outputs by its row; None: the operator has no row, or no form in this specification."""
    row = row_of(name)
    missing = row is None or (spec.type == "uint8" and name in WITHOUT_UINT8)
    return None if missing or row is None else output_of(row, spec)


def output_of(row: Integer, spec: Spec) -> Output | None:
    """The parameters of an operator's outputs.  uint8 values are those of int8 and 128."""
    rule = row.int16 if spec.type == "int16" else row.int8
    return (rule[0], rule[1] + 128) if spec.type == "uint8" and isinstance(rule, tuple) else rule
