# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor, element by element."""

import math

import numpy as np

from deviations.table import deviation
from deviations.values import (
    RANGES,
    away,
    centered,
    is_known,
    is_quantized,
    kind,
    limits,
    multiplier,
    multiply,
    nearest,
    real,
    scale,
)

# ---- rescaling ----


def wide_rescaling(m):
    x = m.input("int32", [20], np.full(20, 2**24), scale=1.0, zero_point=0)
    m.operator("QUANTIZE", [x], [m.output("int16", scale=0.001, zero_point=0)], version=3)


@deviation(
    "QUANTIZE",
    when="quantized values to quantized values, one of them times the power of two in the multiplier is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=wide_rescaling,
)
def wide_requantize(node):
    if not is_quantized(node) or not is_known(node):
        return None
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(node.outputs[0])))
    x = centered(node.inputs[0])
    if e <= 0 or not (abs(x) * 2.0**e >= 2**31).any():
        return None
    out = node.outputs[0]
    return [np.clip(multiply(x, m, e) + int(out.zero_point[0]), *limits(out)).astype(kind(out))]


def infinities(m):
    x = m.input("float32", [6], [np.inf, -np.inf, np.nan, 1e20, -1e20, 1.0])
    m.operator("QUANTIZE", [x], [m.output("int8", scale=0.1, zero_point=3)], version=2)


def only_where(node, deviates, meant):
    """`meant` where LiteRT deviates, and elsewhere LiteRT's result: the numerics' own rounding."""
    value = node.outputs[0].value
    return meant if node.numerics == "reference" or value is None else np.where(deviates, meant, value)


@deviation(
    "QUANTIZE",
    when="FLOAT32, a value of 2^31 scales or more, an infinity or NaN",
    litert="converts out of range; on x86 all give the least value, or with some zero points the greatest",
    tq="saturates; NaN gives the zero point",
    example=infinities,
)
def far_values(node):
    x, out = node.inputs[0], node.outputs[0]
    if kind(x) != "float32" or x.value is None or not len(out.scale):
        return None
    shape = [1] * x.value.ndim
    if len(out.scale) > 1:
        shape[out.axis] = -1
    s, z = np.float32(out.scale).reshape(shape), np.int64(out.zero_point).reshape(shape)
    with np.errstate(all="ignore"):
        steps = (x.value / s).astype(np.float32)
        if (abs(steps) < 2**31).all():
            return None
        low, high = {"int4": (-8, 7), "uint4": (0, 15)}.get(kind(out)) or limits(out)
        q = np.where(np.isnan(steps), z, np.clip(away(np.clip(steps.astype(float), -1e15, 1e15)) + z, low, high))
        q = only_where(node, ~(abs(steps) < 2**31), q)
    return [q.astype({"int4": "int8", "uint4": "uint8"}.get(kind(out), kind(out)))]


def empty_range(m):
    m.operator(
        "FAKE_QUANT",
        [m.input("float32", [3], [-1, 0, 2])],
        [m.output("float32")],
        min=0.0,
        max=0.0,
        num_bits=8,
        version=2,
    )


@deviation(
    "FAKE_QUANT",
    when="min and max are both 0",
    litert="divides by 0: NaN",
    tq="0, as in TensorFlow",
    example=empty_range,
)
def empty_ranges(node):
    x = node.inputs[0].value
    return [np.zeros_like(x)] if node.options["min"] == node.options["max"] == 0 and x is not None else None


# ---- functions ----


def coarse_words(m):
    x = m.input("int16", [40], np.linspace(-(2**15), 2**15 - 1, 40).astype(np.int16), scale=8.7, zero_point=0)
    m.operator("TANH", [x], [m.output("int16", scale=2.0**-15, zero_point=0)])


@deviation(
    "LOGISTIC",
    "TANH",
    when="INT16, a quantized value times 12288 scales is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=coarse_words,
)
def coarse_curves(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    steps = centered(node.inputs[0]) * math.floor(float(scale(node.inputs[0])) * 12288)
    if not (abs(steps) >= 2**31).any():
        return None
    x = real(node.inputs[0])
    with np.errstate(over="ignore"):
        values = np.tanh(x) if node.name == "TANH" else 1 / (1 + np.exp(-x))
    return [(nearest(node.outputs[0], values), 4)]


def far_root(m):
    x = m.input("int8", [16], np.arange(-120, 136, 16), scale=0.0164, zero_point=-128)
    m.operator("RSQRT", [x], [m.output("int8", scale=4e4, zero_point=-128)], version=2)


@deviation(
    "RSQRT",
    when="INT8, with an output's scale that is far greater or far smaller than its values",
    litert="shifts by more than 31 bits, or out of 32 bits: any values",
    tq="the nearest quantized value",
    example=far_root,
)
def far_roots(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[0]) != "int8":
        return None
    value = centered(node.inputs[0])
    if (value < 0).any():
        return None
    _, e = multiplier(1 / (math.sqrt(scale(node.inputs[0])) * float(scale(node.outputs[0]))))
    shift, least = e - 20, min(value[value > 0], default=1)
    if shift >= -31 and (shift <= 0 or 2.0 ** (20 + shift) / math.sqrt(least) < 2**31):
        return None
    with np.errstate(divide="ignore"):
        return [(nearest(node.outputs[0], 1 / np.sqrt(real(node.inputs[0]))), 1)]


def steep_words(m):
    x = m.input("int16", [512], np.arange(-(2**15), 2**15, 128), scale=0.01, zero_point=0)
    m.operator("EXP", [x], [m.output("int16", scale=0.01, zero_point=0)], version=2)


@deviation(
    "EXP",
    when="INT16, an input scale with which e^x overflows float32",
    litert="its table holds NaN: 0",
    tq="saturates to the greatest value",
    example=steep_words,
)
def steep_exponential_of_words(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    s, out = scale(node.inputs[0]), scale(node.outputs[0])
    if float(s) * 32767 < 88.7:
        return None
    f = np.float32
    with np.errstate(all="ignore"):
        low, high = s * f(-32768), s * f(32767)
        step = (high - low) / f(512)
        inverse = f(65536) / (out * f(32767) - out * f(-32768))

        def at(x):
            return np.exp(x.astype(f).astype(float)).astype(f)

        i = np.arange(512).astype(f)
        here, middle, after = at(low + i * step), at(low + i * step + step / f(2)), at(low + (i + f(1)) * step)
        sample = away(here * inverse).astype(f)
        bias = away((away((after * inverse + sample) / f(2)) - away(middle * inverse)) / f(2))
        points = np.where(np.isnan(bias), sample, sample - bias)
        points = np.append(points, away(at(np.asarray(high)) * inverse))
    points = np.clip(points, -32768, 32767).astype(np.int64)
    x = node.inputs[0].value.astype(np.int64)
    index, rest = 256 + (x >> 7), x & 127
    slope = (points[index + 1] - points[index]).astype(np.int16).astype(np.int64)
    return [((points[index] + ((slope * rest + 64) >> 7)).astype(np.int16), 2)]


# ---- rectifiers ----


def slopes(m):
    x = m.input("int16", [2, 8], scale=0.01, zero_point=0)
    y = m.constant("int16", m.integers("int16", [8], -3000, 3000), scale=0.0003, zero_point=0)
    m.operator("PRELU", [x, y], [m.output("int16", scale=0.01, zero_point=0)])


@deviation(
    "PRELU",
    when="INT16 with INT16 slopes",
    litert="reads the slopes as INT8",
    tq="reads them as INT16",
    example=slopes,
)
def wide_slopes(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[1]) != "int16":
        return None
    x, slope, out = (scale(o) for o in (*node.inputs, node.outputs[0]))
    value = centered(node.inputs[0])
    above = multiply(value, *multiplier(x / out))
    below = multiply(value * centered(node.inputs[1]), *multiplier(x * slope / out))
    return [np.clip(np.where(value >= 0, above, below), *RANGES["int16"]).astype(np.int16)]


def fine_six(m):
    x = m.input("int16", [4], [0, 1, 100, 32767], scale=1e-9, zero_point=0)
    m.operator("RELU6", [x], [m.output("int16", scale=1e-9, zero_point=0)])


RECTIFIERS = {"RELU6": (0, 6), "RELU_0_TO_1": (0, 1), "RELU_N1_TO_1": (-1, 1)}


@deviation(
    *RECTIFIERS,
    when="quantized values, an output scale with which a bound is 2^31 steps or more",
    litert="converts the bound out of range: on x86 the least integer",
    tq="saturates",
    example=fine_six,
)
def bound_of_fine_scales(node):
    low, high = RECTIFIERS[node.name]
    if not is_quantized(node) or not is_known(node) or high / float(scale(node.outputs[0])) < 2**31:
        return None
    x, out = node.inputs[0], node.outputs[0]
    m, e = multiplier(np.float32(scale(x) / scale(out)))
    zero, (least, most) = int(out.zero_point[0]), limits(out)
    return [np.clip(multiply(centered(x), m, e) + zero, least if low else zero, most).astype(kind(out))]
