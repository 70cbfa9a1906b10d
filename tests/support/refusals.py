# SPDX-License-Identifier: Apache-2.0
"""What LiteRT runs and tq refuses: there LiteRT reads or writes past tensors, or leaves C++'s defined behaviour.

    @refusal("MEAN", when="...", litert="...", message="...")
    def draw(m):
        ...  # a Draft of a model of which LiteRT does what the row says

tests/ops/test_deviations.py asks both; docs/deviations.md is made of the rows (deviation_table.py)."""

from collections.abc import Callable
from dataclasses import dataclass

ROWS = []


@dataclass(frozen=True, eq=False)
class Refused:
    operators: str
    when: str
    litert: str
    message: str
    example: Callable

    def __str__(self):
        return f"{self.operators}: {self.when}"


def refusal(operators, *, when, litert, message):
    """Enters the function below as a row."""

    def enter(function):
        ROWS.append(Refused(operators, when, litert, message, function))
        return function

    return enter


SMALL = {"scale": 0.05, "zero_point": 3}
SCALES = {"scale": [0.01, 0.02, 0.03, 0.04], "zero_point": [0] * 4, "quantized_dimension": 0}


def binary(name, x, y, out, **options):
    def draw(m):
        inputs = [m.input("int8", [3, 20], **x), m.input("int8", [3, 20], **y)]
        m.operator(name, inputs, [m.output("int8", [3, 20], **out)], version=2, **options)

    return draw


refusal(
    "any with quantized values",
    when="a zero point below -1792 or above 1792 (INT16: 65536)",
    litert="runs; its sums and products of 32 bits overflow from some thousands on",
    message="a zero point far outside its type",
)(binary("ADD", {"scale": 0.05, "zero_point": 1793}, SMALL, SMALL))

refusal(
    "any that reads the scale",
    when="a scale that is negative, infinite or NaN",
    litert="runs with some kernels: multipliers that C++ does not define",
    message="a scale that is negative or not finite",
)(binary("MUL", {"scale": -0.05, "zero_point": 0}, SMALL, SMALL))

refusal(
    "AVERAGE_POOL_2D, CONCATENATION, DIV, ELU, EXP, FULLY_CONNECTED, GELU, LOG, LOGISTIC, MAX_POOL_2D, MEAN, MUL, "
    "QUANTIZE, REDUCE_PROD, RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1, RSQRT, SOFTMAX, SQRT, SUM, TANH, TRANSPOSE_CONV",
    when="an output without a scale, with several, or with a scale of 0, by which the kernel divides",
    litert="converts an infinity or NaN, or shifts by it: undefined in C++",
    message="has no scale, several, or 0",
)(binary("MUL", SMALL, SMALL, {"scale": [0.1, 0.2, 0.3], "zero_point": [0] * 3, "quantized_dimension": 0}))


@refusal(
    "DIV",
    when="an input without a scale, with several, or with a scale of 0",
    litert="shifts by more than 31 bits",
    message="has no scale, several, or 0",
)
def quotient(m):
    x = m.input("int8", [3, 4], scale=0.0, zero_point=0)
    y = m.input("int8", [3, 4], m.integers("int8", [3, 4], 10, 99), **SMALL)
    m.operator("DIV", [x, y], [m.output("int8", [3, 4], **SMALL)], version=2)


@refusal(
    "ADD, AVERAGE_POOL_2D, MUL and TRANSPOSE_CONV (optimized and XNNPACK's), DEPTHWISE_CONV_2D (a zero point below the "
    "type), DIV, with a fused activation",
    when="an output's zero point outside its type",
    litert="cuts the activation's bounds to the type in some loops, of which the lower one may then be the greater",
    message="with a fused activation it needs one from",
)
def bounds(m):
    x, y = (m.input("int8", [3, 20], **SMALL) for _ in range(2))
    out = m.output("int8", [3, 20], scale=0.1, zero_point=130)
    m.operator("DIV", [x, y], [out], fused_activation_function="RELU", version=2)


@refusal(
    "BATCH_MATMUL, EMBEDDING_LOOKUP, FULLY_CONNECTED, LSTM, MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, RESHAPE, SUM, "
    "SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM",
    when="an output of another width than the input's",
    litert="writes values of the input's type, past the end of a narrower output, and into a part of a wider one",
    message="has type INT8; it needs that of input 0, INT16",
)
def narrow_mean(m):
    x = m.input("int16", [3, 20], scale=0.001, zero_point=0)
    out = m.output("int8", [3], scale=0.1, zero_point=0)
    m.operator("MEAN", [x, m.constant("int32", [1])], [out], version=3)


@refusal(
    "BIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_RNN, CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, LSTM, "
    "MATRIX_SET_DIAG, PRELU, SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM",
    when="weights, slopes or diagonals of another width than those that the kernel reads",
    litert="takes their bytes for values of the width that it reads, and reads past narrower ones",
    message="input 1 't1' has type INT16; tq runs this operator on UINT8",
)
def wide_filter(m):
    x = m.input("uint8", [1, 4, 4, 2], **SMALL)
    w = m.constant("int16", m.integers("int16", [3, 1, 1, 2], 0, 255), **SMALL)
    b = m.constant("int32", m.integers("int32", [3], -99, 99), scale=0.0025, zero_point=0)
    m.operator("CONV_2D", [x, w, b], [m.output("uint8", [1, 4, 4, 3], **SMALL)], stride_w=1, stride_h=1, version=3)


@refusal(
    "FULLY_CONNECTED",
    when="UINT8 outputs of INT8 weights with several scales, or of INT4 or INT2 weights",
    litert="multiplies by what was never computed, or reads past the weights",
    message="has 4 scales along dimension 0",
)
def unsigned_channels(m):
    x, w = m.input("int8", [3, 9], **SMALL), m.constant("int8", m.integers("int8", [4, 9], -127, 127), **SCALES)
    m.operator("FULLY_CONNECTED", [x, w], [m.output("uint8", [3, 4], **SMALL)], version=5)


@refusal(
    "CONV_2D",
    when="FLOAT32 with a UINT8 filter of several scales, or several groups",
    litert="takes the scales for 0, or reads scales behind the one",
    message="is UINT8; with a FLOAT32 input it needs one scale and one group",
)
def unsigned_filter(m):
    x = m.input("float32", [1, 4, 4, 2])
    w = m.constant("uint8", m.integers("uint8", [4, 1, 1, 2], 0, 255), **SCALES)
    b = m.constant("float32", [0, 1, 2, 3])
    m.operator("CONV_2D", [x, w, b], [m.output("float32", [1, 4, 4, 4])], stride_w=1, stride_h=1, version=5)


@refusal(
    "BATCH_MATMUL",
    when="INT8 to an output that is neither INT8 nor INT32",
    litert="writes sums of 32 bits, past the end of a narrower output",
    message="has type FLOAT32; it needs to be INT32, INT8",
)
def float_products(m):
    x, y = m.input("int8", [2, 3, 4], **SMALL), m.input("int8", [2, 4, 5], scale=0.1, zero_point=0)
    m.operator("BATCH_MATMUL", [x, y], [m.output("float32", [2, 3, 5])], version=4)
