# SPDX-License-Identifier: Apache-2.0
"""The verdicts of LiteRT's three kernel sets on an operator that breaks a rule: rows, which tests compare with LiteRT.

A row is of the kernels without XNNPACK; what XNNPACK's delegate takes is tq's own knowledge (Interpreter.backends).

Source: LiteRT 2.3.0, asked with the models of tests/support/specification_cases.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tq._core import Error, Model
from tq.running.backends import Backend
from tq.running.interpreter import Interpreter
from tq.specification.operands import one_scale, type_of, zero_points
from tq.specification.rule import Found

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
_NO_INT16 = """ARG_MAX ARG_MIN DEPTH_TO_SPACE ELU HARD_SWISH L2_NORMALIZATION LOG_SOFTMAX LSTM RELU_0_TO_1 RELU_N1_TO_1
    SCATTER_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SQUARED_DIFFERENCE SVDF UNIDIRECTIONAL_SEQUENCE_LSTM"""
_COMPARISONS = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL"
_SUMS = "ADD SUB SQUARED_DIFFERENCE"


class Row(NamedTuple):
    """rules, specs, operators: names with spaces between; "": all.  The first row that holds counts."""

    rules: str
    specs: str
    operators: str
    reference: str
    optimized: str
    holds: Callable[[Found], bool] | None = None
    xnnpack: str = ""  # "": those of the optimized kernels, where the delegate does not take it


def _is_far(item: Found) -> bool:
    """Whether kernels of one weight scale take the bias for one of another operator."""
    v = item.operands
    needed, output = v.bias_scale(), one_scale(v.outputs[0].tensor) if v.outputs else None
    if needed is None or output is None or needed.size != 1 or v.bias is None:
        return False
    have = v.bias.tensor.quantization.scale
    return bool(np.abs(have.astype(np.float64) - float(needed[0])).max(initial=0.0) > 0.02 * float(output))


def _counts_others(item: Found) -> bool:
    """Whether there is not a scale for each channel of the operator."""
    v = item.operands
    if v.weights is None or v.row is None or v.row.axis is None:
        return False
    return v.weights.tensor.quantization.scale_count != v.weights.tensor.shape[v.row.axis]


def _is_input(item: Found) -> bool:
    return item.operand is not None and item.operand.side == "inputs"


def _reads_one_type(item: Found) -> bool:
    """Whether the operator writes another type than all that it reads have, such as a tensor that it reads twice."""
    v = item.operands
    types = {type_of(operand.tensor) for operand in v.data}
    return len(v.data) > 1 and len(types) == 1 and types != {type_of(operand.tensor) for operand in v.outputs}


def _is_outside(item: Found) -> bool:
    """Whether the zero point, too, is none of the tensor's type."""
    tensor = None if item.operand is None else item.operand.tensor
    if tensor is None or type_of(tensor) not in ("int8", "uint8"):
        return False
    info = np.iinfo(type_of(tensor))
    return any(not info.min <= zero <= info.max for zero in zero_points(tensor))


def _has_channels(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and weights.tensor.quantization.scale_count > 1


def _is_output(item: Found) -> bool:
    return item.operand is not None and item.operand.side == "outputs"


def _converts(item: Found) -> bool:
    """Whether the input has another type than the output."""
    inputs, outputs = item.operands.op.inputs, item.operands.op.outputs
    types = {tensor.type_name for tensor in (*inputs[:1], *outputs[:1]) if tensor is not None}
    return len(types) > 1


ROWS = (
    Row("no-row", "", _NO_INTEGERS, REFUSES, REFUSES),
    Row("no-row", "", "FAKE_QUANT", DIES, DIES),
    Row("no-row", "uint8", _NO_UINT8, REFUSES, REFUSES),
    Row("no-row", "int16x8", _NO_INT16, REFUSES, REFUSES),
    Row("no-row", "int8", "REVERSE_SEQUENCE", REFUSES, REFUSES),
    Row("type", "", "ELU", REFUSES, REFUSES),
    Row("", "", "ELU", REFUSES, RUNS),  # there is no reference kernel
    Row("type", "", "", RUNS, RUNS, lambda item: item.operands.mixed is not None),
    Row("type", "", "ADD SUB MINIMUM MAXIMUM", RUNS, RUNS, _reads_one_type),
    Row("type", "int8", "BATCH_MATMUL", REFUSES, REFUSES, _is_outside, xnnpack=DIES),
    Row("type", "int8", "FULLY_CONNECTED", REFUSES, REFUSES, _has_channels),
    Row("type", "int16x8", "FULLY_CONNECTED", DIES, RUNS, lambda item: item.operands.bias is None),
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
    Row("scale-missing", "", f"{_PRODUCTS} REDUCE_PROD SVDF", REFUSES, REFUSES),
    Row("scale-missing", "int8", "LOG SQRT RSQRT ABS", REFUSES, REFUSES),
    Row("scale-missing", "int16x8", "LOG SQRT RSQRT", DIES, DIES),
    Row("scale-missing scale-value activation-per-axis", "", _SUMS, DIES, DIES),
    Row("scale-missing scale-value activation-per-axis", "int8 uint8", _COMPARISONS, DIES, DIES, _is_input),
    Row(
        "scale-missing scale-value activation-per-axis",
        "int8 uint8",
        "SOFTMAX LOG_SOFTMAX",
        DIES,
        RUNS,
        _is_input,
    ),
    Row("scale-missing", "", "QUANTIZE", REFUSES, REFUSES, _is_output),
    Row("zero-point-range activation-symmetric", "int16x8", "QUANTIZE", RUNS, RUNS, _converts),
    Row("zero-point-range activation-symmetric", "int16x8", _SYMMETRIC, REFUSES, REFUSES),
    Row("zero-point-range", "", "SUB SQUARED_DIFFERENCE SQRT RSQRT", REFUSES, REFUSES),
    Row("scale-value zero-point-range activation-per-axis same-scale", "", _COMPARING, REFUSES, REFUSES),
    Row("scale-value zero-point-range activation-per-axis same-scale", "int8", "CONCATENATION", REFUSES, REFUSES),
    Row("activation-per-axis", "", "EMBEDDING_LOOKUP", REFUSES, REFUSES),
    Row("weights-type", "int8", "UNIDIRECTIONAL_SEQUENCE_LSTM", RUNS, RUNS),
    Row("bias-type", "int8", "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM", REFUSES, REFUSES),
    Row("scale-value zero-point-range", "int8 uint8", "READ_VARIABLE ASSIGN_VARIABLE", RUNS, RUNS, xnnpack=REFUSES),
    Row("same-scale", "int8 uint8", "READ_VARIABLE ASSIGN_VARIABLE", RUNS, RUNS, xnnpack=REFUSES),
    Row("weights-type", "uint8", "CONV_2D FULLY_CONNECTED", RUNS, RUNS),
    Row("weights-type", "int16x8", "FULLY_CONNECTED", RUNS, RUNS),
    Row("weights-type", "", "", REFUSES, REFUSES),
    Row("weights-zero-point", "", "FULLY_CONNECTED", REFUSES, REFUSES, lambda item: _is_narrow(item)),
    Row("weights-zero-point", "", "CONV_2D", REFUSES, REFUSES),
    Row("weights-axis", "", "FULLY_CONNECTED", REFUSES, REFUSES),
    Row("weights-axis", "", _PRODUCTS, REFUSES, REFUSES, _counts_others),
    Row("weights-per-axis", "uint8", "", REFUSES, REFUSES),
    Row("bias-missing", "", "", REFUSES, REFUSES),
    Row("bias-type", "int16x8", "CONV_2D TRANSPOSE_CONV", RUNS, RUNS),
    Row("bias-type", "", "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV", REFUSES, REFUSES),
    Row("bias-zero-point", "uint8", "CONV_2D DEPTHWISE_CONV_2D", REFUSES, REFUSES),
    Row("bias-scale", "uint8", _PRODUCTS, REFUSES, REFUSES, _is_far),
    Row("bias-scale", "", "FULLY_CONNECTED", REFUSES, REFUSES, _is_far),
    Row("fixed-output", "uint8", "SOFTMAX", RUNS, RUNS),
    Row("fixed-output", "int8 uint8", "TANH", RUNS, RUNS),
    Row("fixed-output", "int8 uint8", "LOGISTIC", REFUSES, REFUSES, lambda item: _has_other_scale(item)),
    Row("fixed-output", "int8 uint8", "LOGISTIC", RUNS, RUNS),
    Row("fixed-output", "", "", REFUSES, REFUSES),
)


# Of operators that XNNPACK's delegate takes; "", and where there is none: tq's own knowledge counts.
DELEGATED = (
    ("scale-value zero-point-range same-scale", "PAD", RUNS),
    ("same-scale", "REDUCE_MAX REDUCE_MIN MEAN SUM", RUNS),
    ("type", "REDUCE_MAX REDUCE_MIN MEAN SUM", ""),
    ("type same-scale", "", REFUSES),
    ("weights-zero-point bias-zero-point", "FULLY_CONNECTED", REFUSES),
)


def _has_other_scale(item: Found) -> bool:
    rule = item.operands.rule
    own = None if item.operand is None else one_scale(item.operand.tensor)
    return isinstance(rule, tuple) and own is not None and own != np.float32(rule[0])


def _is_narrow(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and type_of(weights.tensor) == "int4"


def _is_unsigned(item: Found) -> bool:
    """Whether XNNPACK takes the weights for unsigned ones, less 8."""
    weights = item.operands.weights
    if not _is_narrow(item) or weights is None or item.rule != "weights-zero-point":
        return False
    return _has_channels(item) and set(zero_points(weights.tensor).tolist()) <= {0, 8}


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
        xnnpack = ("" if _is_unsigned(item) else next(found, "")) or (REFUSES if backend.litert is not None else RUNS)
    if backend is not None and "process ends" in (backend.litert or ""):
        xnnpack = DIES
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
