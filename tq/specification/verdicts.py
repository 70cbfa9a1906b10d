# SPDX-License-Identifier: Apache-2.0
"""The verdicts of LiteRT's three kernel sets on an operator that breaks a rule: rows, which tests compare with LiteRT.

A row is of the kernels without XNNPACK; what XNNPACK's delegate takes is tq's own knowledge (Interpreter.backends).

Source: LiteRT 2.3.0, asked with the models of tests/support/specification_cases.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tq._core import Error, Model
from tq.running.backends import Backend
from tq.running.interpreter import Interpreter
from tq.specification.rule import Found
from tq.specification.verdict_conditions import (
    converts,
    counts_others,
    has_channels,
    has_no_bias,
    has_no_mixed_bias,
    has_no_shuffled_bias,
    has_one_uint8_scale,
    has_other_scale,
    has_packed_weights,
    has_uint8_channels,
    is_all_negative,
    is_below,
    is_beyond_16_bits,
    is_bias,
    is_far,
    is_far_output,
    is_input,
    is_int8_to_uint8,
    is_int16_to_uint8,
    is_integer_lstm,
    is_mixed,
    is_nan_output,
    is_no_mixed_output,
    is_no_number,
    is_no_sum,
    is_nothing,
    is_of_second_version,
    is_one_bias,
    is_output,
    is_outside_first,
    is_packed_to_uint8,
    is_tiny_input,
    is_tiny_output,
    is_uint8_by_int8_to_int16,
    is_unbounded,
    is_unread,
    is_unsigned,
    lacks_cell_state_scale,
    lacks_second_scale,
    lacks_svdf_state_scale,
    others_have_scales,
    pads_otherwise,
    reads_int8,
    reads_one_type,
    writes_another_type,
)

RUNS, REFUSES, DIES = "runs", "refuses", "dies"

# Kernels that compare the parameters of what they read and write.
_COMPARING = "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND EXPAND_DIMS FILL MIRROR_PAD PACK UNPACK REDUCE_MAX REDUCE_MIN"
# Kernels of int16 that look at zero points.
_SYMMETRIC = f"""{_COMPARING} CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED TRANSPOSE_CONV SOFTMAX LOGISTIC TANH ADD SUB MUL
    EXP LOG SQRT RSQRT ABS BATCH_MATMUL LEAKY_RELU MEAN REDUCE_PROD RELU RELU6 CONCATENATION SUM QUANTIZE DEQUANTIZE"""
_PRODUCTS = "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED TRANSPOSE_CONV"
# Kernels of no quantized values.
_NO_INTEGERS = """ADD_N ATAN2 BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BUCKETIZE CEIL COMPLEX_ABS CONV_3D
    CONV_3D_TRANSPOSE COS CUMSUM EMBEDDING_LOOKUP_SPARSE FLOOR IMAG L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 POW RANGE REAL RFFT2D RNN ROUND SIGN SIN SQUARE
    UNIDIRECTIONAL_SEQUENCE_RNN UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM
    ZEROS_LIKE"""
_NO_UINT8 = """ABS BATCH_MATMUL ELU EXP LOG NEG REDUCE_PROD RSQRT SQRT SQUARED_DIFFERENCE SVDF
    UNIDIRECTIONAL_SEQUENCE_LSTM"""
# Kernels of INT8 that write the same bytes to a UINT8 output.
_WITH_UINT8_OUTPUTS = "EXP REDUCE_PROD SQUARED_DIFFERENCE SVDF UNIDIRECTIONAL_SEQUENCE_LSTM"
_NO_INT16 = """ARG_MAX ARG_MIN DEPTH_TO_SPACE ELU HARD_SWISH L2_NORMALIZATION LOG_SOFTMAX LSTM RELU_0_TO_1 RELU_N1_TO_1
    SCATTER_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SQUARED_DIFFERENCE SVDF UNIDIRECTIONAL_SEQUENCE_LSTM"""
_COMPARISONS = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL"
# Rules of scales that kernels read as 0, or as none.
_SCALE = "scale-missing scale-value activation-per-axis"
# Kernels that give their output the input's type, or do not look at it.
_TYPED = """ADD SUB SQUARED_DIFFERENCE DIV MAXIMUM MINIMUM SELECT SELECT_V2 DYNAMIC_UPDATE_SLICE FILL MATRIX_DIAG
    REDUCE_MAX REDUCE_MIN EXPAND_DIMS GATHER GATHER_ND PRELU RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SPLIT
    SPLIT_V"""


class Row(NamedTuple):
    """rules, specs, operators: names with spaces between; "": all.  The first row that holds counts."""

    rules: str
    specs: str
    operators: str
    reference: str
    optimized: str
    holds: Callable[[Found], bool] | None = None
    xnnpack: str = ""  # "": those of the optimized kernels, where the delegate does not take it


ROWS = (
    Row("no-row", "", _NO_INTEGERS, REFUSES, REFUSES),
    Row("no-row", "", "FAKE_QUANT", DIES, DIES),
    Row("no-row", "uint8", "BATCH_MATMUL", DIES, DIES, reads_int8),
    Row("no-row", "uint8", _WITH_UINT8_OUTPUTS, RUNS, RUNS, reads_int8),
    Row("no-row", "int8 uint8", "DILATE STABLEHLO_PAD", REFUSES, REFUSES, converts),
    Row("no-row", "int16x8", "EQUAL NOT_EQUAL", DIES, DIES, lacks_second_scale),
    Row("no-row", "uint8", _NO_UINT8, REFUSES, REFUSES),
    Row("no-row", "int16x8", _NO_INT16, REFUSES, REFUSES),
    Row("no-row", "int8", "REVERSE_SEQUENCE", REFUSES, REFUSES),
    Row("type", "", "ELU", REFUSES, REFUSES),
    Row("", "", "ELU", REFUSES, RUNS),  # there is no reference kernel
    Row("", "", "FULLY_CONNECTED", DIES, DIES, has_no_shuffled_bias),
    Row("", "", "SQUEEZE", REFUSES, RUNS, is_of_second_version),
    Row("", "int8", "SVDF", REFUSES, REFUSES, lacks_svdf_state_scale),
    Row("", "int8", "LSTM", DIES, DIES, lacks_cell_state_scale),
    Row("", "", "QUANTIZE", REFUSES, REFUSES, is_int16_to_uint8),
    Row("zero-point-range", "", "HARD_SWISH", REFUSES, REFUSES, is_beyond_16_bits),
    Row("fixed-output scale-value", "", "SOFTMAX", RUNS, RUNS, is_nan_output),
    Row("type", "", "FULLY_CONNECTED", REFUSES, REFUSES, is_uint8_by_int8_to_int16),
    Row("type", "", "FULLY_CONNECTED", REFUSES, REFUSES, is_far_output),
    Row("type weights-type weights-per-axis", "", "FULLY_CONNECTED", REFUSES, RUNS, is_packed_to_uint8),
    Row("type weights-type weights-per-axis", "", "FULLY_CONNECTED", RUNS, RUNS, is_int8_to_uint8),
    Row("type", "", "MUL", REFUSES, REFUSES, is_unbounded),
    Row("type", "", "EMBEDDING_LOOKUP", RUNS, RUNS),
    Row("type", "", "LSTM", RUNS, RUNS, is_integer_lstm),
    Row("type", "", "FULLY_CONNECTED", DIES, RUNS, has_no_mixed_bias),
    Row("type", "", "", RUNS, RUNS, is_mixed),
    Row("type", "", "ADD SUB MINIMUM MAXIMUM", RUNS, RUNS, reads_one_type),
    Row("type zero-point-range", "", _TYPED, RUNS, RUNS, writes_another_type),
    Row("type", "int8", "BATCH_MATMUL", REFUSES, REFUSES, is_outside_first, xnnpack=DIES),
    Row("type", "int8", "FULLY_CONNECTED", REFUSES, REFUSES, has_channels),
    Row("type", "int16x8", "FULLY_CONNECTED", DIES, RUNS, has_no_bias),
    Row("type", "int16x8", "SQUEEZE", REFUSES, REFUSES),
    Row("type", "int16x8", "EXP REDUCE_PROD GATHER RESHAPE", RUNS, RUNS),
    Row(
        "type",
        "",
        """FULLY_CONNECTED PRELU MEAN SPLIT SPLIT_V EXPAND_DIMS FILL GATHER GATHER_ND MATRIX_SET_DIAG
        REDUCE_MAX REDUCE_MIN RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SQUEEZE STABLEHLO_GATHER MATRIX_DIAG
        SUM SCATTER_ND""",
        RUNS,
        RUNS,
    ),
    Row("type", "", "", REFUSES, REFUSES),
    Row(_SCALE, "", "ADD SQUARED_DIFFERENCE", DIES, DIES, is_no_sum),
    Row(_SCALE, "uint8", "AVERAGE_POOL_2D", REFUSES, REFUSES, is_unbounded),
    Row(_SCALE, "", "AVERAGE_POOL_2D MAX_POOL_2D", RUNS, RUNS, is_output),
    Row("scale-value activation-per-axis", "", "SVDF", RUNS, RUNS, is_output),
    Row("scale-missing", "int16x8", "MUL", RUNS, RUNS),
    Row("scale-value", "", "SUB", DIES, DIES, is_no_number),
    Row(_SCALE, "", "", REFUSES, REFUSES, is_unbounded, xnnpack=REFUSES),
    Row(_SCALE, "uint8", _PRODUCTS, REFUSES, REFUSES, is_far, xnnpack=REFUSES),
    Row(_SCALE, "", "FULLY_CONNECTED", REFUSES, REFUSES, is_far, xnnpack=REFUSES),
    Row("scale-missing", "", f"{_PRODUCTS} SVDF", RUNS, RUNS, is_bias),
    Row("scale-missing", "", _PRODUCTS, RUNS, RUNS, is_output),
    Row("scale-missing", "", f"{_PRODUCTS} SVDF", REFUSES, REFUSES),
    Row("scale-missing", "", "REDUCE_PROD", REFUSES, REFUSES, is_input),
    Row("scale-missing", "", _COMPARING, REFUSES, REFUSES, others_have_scales),
    Row("scale-missing", "int8", "CONCATENATION", REFUSES, REFUSES, is_output),
    Row("scale-missing activation-per-axis", "", "L2_NORMALIZATION LOGISTIC LOG_SOFTMAX", REFUSES, REFUSES, is_output),
    Row("scale-missing activation-per-axis", "int8", "SOFTMAX", REFUSES, REFUSES, is_no_mixed_output),
    Row("scale-missing activation-per-axis", "int16x8", "SOFTMAX TANH", REFUSES, REFUSES, is_no_mixed_output),
    Row("scale-missing", "int16x8", "ABS LOG SQRT RSQRT", REFUSES, REFUSES, is_output),
    Row(f"{_SCALE} zero-point-range same-scale", "", "PADV2", REFUSES, REFUSES, pads_otherwise),
    Row("zero-point-range", "", "PAD PADV2", REFUSES, REFUSES, is_output),
    Row("scale-value", "int8 int16x8", "BATCH_MATMUL SQRT", REFUSES, REFUSES, is_below),
    Row("scale-value", "", "HARD_SWISH", REFUSES, REFUSES, is_tiny_output),
    Row(_SCALE, "", "SUB", RUNS, RUNS, is_output),
    Row("scale-missing", "int8", "LOG SQRT RSQRT ABS", REFUSES, REFUSES),
    Row("scale-missing", "int16x8", "LOG SQRT RSQRT", DIES, DIES),
    Row(_SCALE, "", "SUB", DIES, DIES, is_no_sum),
    Row(_SCALE, "int8 uint8", _COMPARISONS, DIES, DIES, is_nothing),
    Row("scale-value activation-per-axis", "int16x8", "EQUAL NOT_EQUAL", DIES, DIES, is_nothing),
    Row(_SCALE, "int8 uint8", "SOFTMAX LOG_SOFTMAX", DIES, RUNS, is_nothing),
    Row("scale-value", "int8 uint8", "SOFTMAX LOG_SOFTMAX", DIES, RUNS, is_tiny_input),
    Row("scale-missing", "", "QUANTIZE", REFUSES, REFUSES, is_output),
    Row("zero-point-range activation-symmetric", "int16x8", "QUANTIZE", RUNS, RUNS, converts),
    Row("zero-point-range activation-symmetric", "int16x8", "MUL", RUNS, RUNS, is_mixed),
    Row("zero-point-range activation-symmetric", "int16x8", _SYMMETRIC, REFUSES, REFUSES),
    Row("zero-point-range", "", "SUB SQUARED_DIFFERENCE", REFUSES, REFUSES),
    Row("zero-point-range", "", "SQRT RSQRT", REFUSES, REFUSES, is_all_negative),
    Row("scale-value zero-point-range activation-per-axis same-scale", "", _COMPARING, REFUSES, REFUSES),
    Row("scale-value zero-point-range activation-per-axis same-scale", "int8", "CONCATENATION", REFUSES, REFUSES),
    Row("activation-per-axis", "", "EMBEDDING_LOOKUP", REFUSES, REFUSES, is_input),
    Row("weights-type", "int8", "LSTM SVDF UNIDIRECTIONAL_SEQUENCE_LSTM", RUNS, RUNS, is_unread),
    Row("bias-type", "int8", "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM", REFUSES, REFUSES),
    Row("scale-value zero-point-range", "int8 uint8", "READ_VARIABLE ASSIGN_VARIABLE", RUNS, RUNS, xnnpack=REFUSES),
    Row("same-scale", "int8 uint8", "READ_VARIABLE ASSIGN_VARIABLE", RUNS, RUNS, xnnpack=REFUSES),
    Row("weights-type", "uint8", "CONV_2D FULLY_CONNECTED", RUNS, RUNS),
    Row("weights-type", "int16x8", "CONV_2D DEPTHWISE_CONV_2D", RUNS, RUNS, has_one_uint8_scale),
    Row("weights-type", "int8", "FULLY_CONNECTED", RUNS, RUNS, has_one_uint8_scale),
    Row("weights-type", "int16x8", "FULLY_CONNECTED", REFUSES, REFUSES, has_uint8_channels),
    Row("weights-type", "int16x8", "FULLY_CONNECTED", RUNS, RUNS),
    Row("weights-type", "", "", REFUSES, REFUSES),
    Row("weights-zero-point", "", "FULLY_CONNECTED", REFUSES, REFUSES, has_packed_weights),
    Row("weights-zero-point", "", "CONV_2D", REFUSES, REFUSES),
    Row("weights-axis", "", "FULLY_CONNECTED", REFUSES, REFUSES),
    Row("weights-axis", "", _PRODUCTS, REFUSES, REFUSES, counts_others),
    Row("weights-per-axis", "uint8", "", REFUSES, REFUSES),
    Row("bias-missing", "", "", REFUSES, REFUSES),
    Row("bias-type", "int16x8", "CONV_2D TRANSPOSE_CONV", RUNS, RUNS),
    Row("bias-type", "", "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV", REFUSES, REFUSES),
    Row("bias-zero-point", "", "CONV_2D DEPTHWISE_CONV_2D", REFUSES, REFUSES, is_one_bias),
    Row("bias-scale", "uint8", _PRODUCTS, REFUSES, REFUSES, is_far),
    Row("bias-scale", "", "FULLY_CONNECTED", REFUSES, REFUSES, is_far),
    Row("fixed-output", "uint8", "SOFTMAX", RUNS, RUNS),
    Row("fixed-output", "int8 uint8", "TANH", RUNS, RUNS),
    Row("fixed-output", "int8 uint8", "LOGISTIC", REFUSES, REFUSES, has_other_scale),
    Row("fixed-output", "int8 uint8", "LOGISTIC", RUNS, RUNS),
    Row("fixed-output", "", "", REFUSES, REFUSES),
)


# LiteRT's answers for operators that XNNPACK's delegate takes: (rules, operators, answer).  Where no row holds, or its
# answer is "", tq's prediction counts.
DELEGATED = (
    ("scale-value zero-point-range same-scale", "PAD", RUNS),
    ("same-scale", "REDUCE_MAX REDUCE_MIN MEAN SUM", RUNS),
    ("type", "REDUCE_MAX REDUCE_MIN MEAN SUM RESIZE_BILINEAR", ""),
    ("weights-type bias-zero-point", "TRANSPOSE_CONV", REFUSES),
    ("scale-value", "FULLY_CONNECTED", REFUSES),
    ("weights-zero-point", "CONV_2D DEPTHWISE_CONV_2D", REFUSES),
    ("type same-scale", "", REFUSES),
    ("weights-zero-point bias-zero-point", "FULLY_CONNECTED", REFUSES),
)


def _row(item: Found) -> Row | None:
    name, spec = item.operands.name, item.operands.spec.name
    for row in ROWS:
        names = zip((row.rules, row.specs, row.operators), (item.rule, spec, name), strict=True)
        if all(not known or one in known.split() for known, one in names) and (row.holds is None or row.holds(item)):
            return row
    return None


def kernels_of(item: Found, backend: Backend | None = None) -> dict[str, str]:
    """backend: who computes the operator beside XNNPACK's delegate; None: not known, and taken for no delegate."""
    row = _row(item)
    reference, optimized = (RUNS, RUNS) if row is None else (row.reference, row.optimized)
    xnnpack = optimized if row is None else row.xnnpack or optimized
    if backend is not None and backend.numerics == "xnnpack":
        found = (does for rules, names, does in DELEGATED if item.rule in rules.split() and _is_in(item, names))
        xnnpack = ("" if is_unsigned(item) else next(found, "")) or (REFUSES if backend.litert is not None else RUNS)
    if backend is not None and "process ends" in (backend.litert or ""):
        if item.operands.name != "DEPTHWISE_CONV_2D":
            xnnpack = DIES
        elif optimized == RUNS:  # by the kernel behind XNNPACK's delegate, too
            optimized = xnnpack = DIES
    return {"reference": reference, "optimized": optimized, "xnnpack": xnnpack}


def _is_in(item: Found, names: str) -> bool:
    return not names or item.operands.name in names.split()


class Delegates:
    """Who computes each operator of a model beside XNNPACK's delegate."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._interpreter: Interpreter | None = None
        self._known: dict[int, list[Backend]] = {}

    def of(self, subgraph: int, operator: int) -> Backend | None:
        if subgraph not in self._known:
            try:
                self._interpreter = self._interpreter or Interpreter(model=self._model, numerics="xnnpack")
                self._known[subgraph] = self._interpreter.backends(subgraph)
            except (Error, ValueError, MemoryError):
                self._known[subgraph] = []
        rows = self._known[subgraph]
        return rows[operator] if operator < len(rows) else None
