# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and comparisons of two tensors."""

import math

import numpy as np

from deviations.table import deviation
from deviations.values import (
    QUANTIZED,
    activation,
    bounded,
    centered,
    is_known,
    is_quantized,
    kind,
    multiplier,
    multiply,
    nearest,
    real,
    scale,
)

# ---- sums ----


def sum_multiplier(node, bits, squares=1):
    """The output multiplier of ADD, SUB and SQUARED_DIFFERENCE."""
    twice = float(np.float32(2) * max(scale(node.inputs[0]), scale(node.inputs[1])))
    return twice**squares / float(np.float32(2.0 ** (bits * squares)) * scale(node.outputs[0]))


def absurd_sum(name):
    def draw(m):
        x = m.input("int8", [40], scale=1.0, zero_point=0)
        y = m.input("int8", [40], scale=0.5, zero_point=0)
        z = m.output("int8", scale=1e-7 if name != "SQUARED_DIFFERENCE" else 1e-5, zero_point=0)
        m.operator(name, [x, y], [z], version=2)

    return draw


def large_sum(node, function, squares=1):
    if not is_quantized(node) or not is_known(node):
        return None
    bits = 7 if squares == 2 else 15 if kind(node.inputs[0]) == "int16" else 20
    if sum_multiplier(node, bits, squares) < 1:
        return None
    with np.errstate(over="ignore"):
        return [(bounded(node, function(real(node.inputs[0]), real(node.inputs[1]))), 1)]


@deviation(
    "ADD",
    when="quantized values, twice the larger input scale is at least 2^20 (INT16: 2^15) times the output's",
    litert="ends the process",
    tq="the sum, with the shift to the left that its multiplier needs",
    example=absurd_sum("ADD"),
)
def large_add(node):
    return large_sum(node, np.add)


def steep_sum(m):
    x = m.input("int8", [40], scale=0.0629, zero_point=0)
    y = m.input("int8", [40], scale=0.0031, zero_point=-95)
    m.operator("ADD", [x, y], [m.output("int8", scale=0.000185, zero_point=54)], version=2)


@deviation(
    "ADD",
    when="INT8 or UINT8, the inputs' scales add up to 2^7 times the output's or more",
    litert="loses the upper bits of its 16-bit sum",
    tq="the sum, saturated",
    numerics=("optimized",),
    example=steep_sum,
)
def steep_add(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[0]) not in ("int8", "uint8"):
        return None
    if sum(scale(operand) for operand in node.inputs[:2]) < 2**7 * scale(node.outputs[0]):
        return None
    with np.errstate(over="ignore"):
        return [(bounded(node, real(node.inputs[0]) + real(node.inputs[1])), 1)]


@deviation(
    "SUB",
    when="quantized values, twice the larger input scale is at least 2^20 (INT16: 2^15) times the output's",
    litert="shifts by a negative count: any values",
    tq="the difference, with the shift to the left that its multiplier needs",
    example=absurd_sum("SUB"),
)
def large_sub(node):
    return large_sum(node, np.subtract)


@deviation(
    "SQUARED_DIFFERENCE",
    when="quantized values, the square of twice the larger input scale is at least 2^14 times the output's",
    litert="ends the process",
    tq="the square, with the shift to the left that its multiplier needs",
    example=absurd_sum("SQUARED_DIFFERENCE"),
)
def large_square(node):
    return large_sum(node, lambda a, b: (a - b) ** 2, squares=2)


def shifted_broadcast(m):
    x = m.input("int16", [4, 5], scale=2.0**-10, zero_point=0)
    y = m.input("int16", [5], scale=2.0**-12, zero_point=0)
    z = m.output("int16", scale=2.0**-10, zero_point=0)
    m.operator("ADD", [x, y], [z], pot_scale_int16=True, version=2)


@deviation(
    "ADD",
    when="INT16, pot_scale_int16, three scales that are powers of two, and broadcasting",
    litert="ends the process",
    tq="broadcasts, as its SUB does",
    example=shifted_broadcast,
)
def shifted_add(node):
    if not is_quantized(node) or kind(node.inputs[0]) != "int16" or not node.options.get("pot_scale_int16"):
        return None
    powers = [math.log2(scale(o)) for o in (*node.inputs, node.outputs[0])]
    if node.inputs[0].shape == node.inputs[1].shape or any(p != round(p) for p in powers) or not is_known(node):
        return None
    return [(bounded(node, real(node.inputs[0]) + real(node.inputs[1])), 1)]


# ---- products ----


def wide_product(m):
    values = np.linspace(-32768, 32767, 300).astype(np.int16)
    x, y = (m.input("int16", [300], scale=1.0, zero_point=0, draw=lambda: values) for _ in range(2))
    z = m.output("int16", scale=0.03, zero_point=0)
    m.operator("MUL", [x, y], [z], version=4)


@deviation(
    "MUL",
    when="INT16, a product of quantized values times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=wide_product,
)
def wide_multiply(node):
    if not is_quantized(node) or not is_known(node) or kind(node.outputs[0]) != kind(node.inputs[0]):
        return None
    m, e = multiplier(scale(node.inputs[0]) * scale(node.inputs[1]) / scale(node.outputs[0]))
    product = centered(node.inputs[0]) * centered(node.inputs[1])
    if e <= 0 or not (abs(product) * 2.0**e >= 2**31).any():
        return None
    low, high = activation(node)
    reals = multiply(product, m, e) * float(scale(node.outputs[0]))
    return [nearest(node.outputs[0], np.clip(reals, low, high))]


def steep_product(m):
    x, y = (m.input("int8", [40], np.full(40, 120), scale=0.01, zero_point=-50) for _ in range(2))
    m.operator("MUL", [x, y], [m.output("int8", scale=0.00005, zero_point=47)], version=2)


@deviation(
    "MUL",
    when="INT8 or UINT8, a product that is 2^15 steps of the output away from the quantized value 0",
    litert="adds the zero point in 16 bits, and wraps",
    tq="saturates",
    numerics=("optimized",),
    example=steep_product,
)
def steep_multiply(node):
    if not is_quantized(node) or not is_known(node) or any(kind(o) not in ("int8", "uint8") for o in node.inputs):
        return None
    with np.errstate(over="ignore"):
        values = real(node.inputs[0]) * real(node.inputs[1])
    steps = values / float(scale(node.outputs[0])) + int(node.outputs[0].zero_point[0])
    return [(bounded(node, values), 1)] if (abs(steps) >= 2**15 - 1).any() else None


def unsigned_bounds(m):
    x, y = (m.input("uint32", [9], np.arange(9)) for _ in range(2))
    m.operator("MUL", [x, y], [m.output("uint32")], fused_activation_function="RELU_N1_TO_1", version=7)


@deviation(
    "MUL",
    when="UINT32 with RELU_N1_TO_1",
    litert="takes -1 as the greatest integer: always 1",
    tq="bounds to [0, 1]",
    example=unsigned_bounds,
)
def unsigned_product(node):
    if not is_known(node) or kind(node.inputs[0]) != "uint32" or activation(node) != (-1, 1):
        return None
    return [np.minimum(node.inputs[0].value * node.inputs[1].value, np.uint32(1))]


# ---- quotients and powers ----


def bit_length(x):
    return np.where(x > 0, np.floor(np.log2(np.maximum(x, 1))).astype(np.int64) + 1, 0)


def quotient(m):
    x = m.input("uint8", [256], np.arange(256), scale=0.02, zero_point=128)
    y = m.input("uint8", [256], np.full(256, 209), scale=0.01, zero_point=0)
    m.operator("DIV", [x, y], [m.output("uint8", scale=0.1, zero_point=100)], version=2)


@deviation(
    "DIV",
    when="quantized values, a quotient that is far smaller than the output's scale, such as 0 / x, or far greater",
    litert="shifts by more than 31 bits, or by a negative count: 1 more, or any values",
    tq="the quotient",
    example=quotient,
)
def far_quotient(node):
    if not is_quantized(node) or not is_known(node):
        return None
    a, b = np.broadcast_arrays(centered(node.inputs[0]), centered(node.inputs[1]))
    _, e = multiplier(scale(node.inputs[0]) / (scale(node.inputs[1]) * scale(node.outputs[0])))
    a, b = np.where(b < 0, -a, a), abs(b)
    room = np.where(a == 0, 31, 31 - bit_length(np.where(a < 0, ~a, a)))
    shift = e - (bit_length(b) - 1) - room
    if not ((shift > 0) | (shift < -31)).any():
        return None
    with np.errstate(all="ignore"):
        values = a * float(scale(node.inputs[0])) / (b * float(scale(node.inputs[1])))
    return [(bounded(node, values), 1)]


def least_by_minus_one(m):
    x = m.input("int8", [64], np.full(64, -128), scale=None)
    y = m.input("int8", [64], np.full(64, -1), scale=None)
    m.operator("FLOOR_DIV", [x, y], [m.output("int8", scale=None)], version=2)


@deviation(
    "FLOOR_DIV",
    when="the least integer divided by -1",
    litert="converts out of range: the greatest or the least integer",
    tq="wraps to the least integer",
    example=least_by_minus_one,
)
def wrapped_quotient(node):
    x, y = node.inputs
    if not is_known(node) or x.value.dtype.kind != "i":
        return None
    if not ((x.value == np.iinfo(x.value.dtype).min) & (y.value == -1)).any() or (y.value == 0).any():
        return None
    wide = x.value.astype(np.int64) // y.value.astype(np.int64)
    return [wide.astype(x.value.dtype)]


def large_powers(m):
    x = m.input("int32", [5], [3, -7, 12, 99, 2])
    y = m.input("int32", [5], [40, 33, 21, 9, 31])
    m.operator("POW", [x, y], [m.output("int32")])


@deviation(
    "POW",
    when="INT32, a power of 2^31 or more",
    litert="converts out of range: the least integer",
    tq="wraps, as products of INT32 do",
    example=large_powers,
)
def wrapped_power(node):
    if not is_known(node) or node.inputs[0].value.dtype != np.int32 or (node.inputs[1].value < 0).any():
        return None
    x, y = np.broadcast_arrays(node.inputs[0].value, node.inputs[1].value)
    if not (np.abs(x.astype(float)) ** y >= 2**31).any():
        return None
    wrapped = [pow(int(a), int(b), 2**32) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return [np.array(wrapped, np.uint32).astype(np.int32).reshape(x.shape)]


# ---- comparisons ----


def coarse(m):
    x = m.input("int8", [50], scale=1.5, zero_point=0)
    y = m.input("int8", [50], scale=2.5, zero_point=0)
    m.operator("LESS", [x, y], [m.output("bool")], version=2)


COMPARISONS = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


@deviation(
    *COMPARISONS,
    when="quantized values, a scale of 1 or more",
    litert="ends the process at 1; above, loses the multiplier's shift: any answers",
    tq="compares in steps of 1/256, as below 1",
    example=coarse,
)
def coarse_comparison(node):
    if not is_known(node) or any(kind(o) not in QUANTIZED or len(o.scale) != 1 for o in node.inputs):
        return None
    raw = kind(node.inputs[0]) == "int16" and node.name not in ("EQUAL", "NOT_EQUAL")
    if raw or max(scale(o) for o in node.inputs) < 1:
        return None
    sides = [multiply(centered(o) * 256, *multiplier(scale(o))) for o in node.inputs]
    return [COMPARISONS[node.name](*sides)]


def unscaled_words(m):
    x, y = (m.input("int16", [50], m.integers("int16", [50], 0, 2), scale=None) for _ in range(2))
    m.operator("NOT_EQUAL", [x, y], [m.output("bool")], version=4)


@deviation(
    "NOT_EQUAL",
    when="INT16 without a scale",
    litert="writes nothing: any answers",
    tq="compares the integers",
    example=unscaled_words,
)
def compared_words(node):
    if not is_known(node) or kind(node.inputs[0]) != "int16" or len(node.inputs[0].scale):
        return None
    return [node.inputs[0].value != node.inputs[1].value]


def far_shifts(m):
    x = m.input("int32", [6], np.full(6, -1), scale=None)
    m.operator(
        "STABLEHLO_SHIFT_LEFT", [x, m.constant("int32", [-1, 0, 5, 31, 32, 40])], [m.output("int32", scale=None)]
    )


@deviation(
    "STABLEHLO_SHIFT_LEFT",
    when="a shift below 0, or of 32 and more",
    litert="shifts by what C++ does not define; on x86 by the last 5 bits of the count",
    tq="0",
    example=far_shifts,
    numerics=("optimized", "xnnpack"),
)
def shifted_far(node):
    x, shifts = (operand.value for operand in node.inputs)
    if x is None or shifts is None or not ((shifts < 0) | (shifts > 31)).any():
        return None
    near = np.where((shifts < 0) | (shifts > 31), 63, shifts).astype(np.int64)
    wide = np.where(near == 63, 0, x.astype(np.int64) << np.where(near == 63, 0, near))
    return [wide.astype(x.dtype)]
