# SPDX-License-Identifier: Apache-2.0
"""Element by element: operators of one or two tensors, and activations."""

import numpy as np

from generators import OPTIMIZED, generator
from generators.draft import QUANTIZED

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64")


def operands(m, kind, rank=(0, 5), draw=None, plain=False, shapes=None):
    """Two tensors that broadcast with each other; one of them may be a constant, or both the same tensor."""
    low, high = rank
    a, b = shapes or m.broadcast_pair(low, high, empty=0.02)
    more = {"scale": None} if plain else {}

    def make(shape, chance):
        values = draw(shape) if draw else None
        return m.input_or_constant(kind, shape, values, chance=chance, **more)

    if a == b and m.chance(0.05):
        x = make(a, 0)
        return x, x
    first = make(a, 0.2)
    return first, make(b, 0.3 if first in m.inputs else 0)


def rescaled(m, kind, magnitude):
    """An output with parameters for values up to a magnitude; without any for types that are not quantized."""
    return m.output(kind, **m.affine(kind, magnitude)) if kind in QUANTIZED else m.output(kind)


@generator("ADD", "float32", "int8", "uint8", "int16", "int32", "int64")
def add(m, kind):
    x, y = operands(m, kind)
    options = {"fused_activation_function": m.activation(), "pot_scale_int16": m.chance(0.3)}
    m.operator("ADD", [x, y], [rescaled(m, kind, m.largest(x) + m.largest(y))], **options, version=3)


@generator("SUB", "float32", "int8", "uint8", "int16", "int32", "int64")
def sub(m, kind):
    x, y = operands(m, kind)
    options = {"fused_activation_function": m.activation(), "pot_scale_int16": m.chance(0.3)}
    m.operator("SUB", [x, y], [rescaled(m, kind, m.largest(x) + m.largest(y))], **options, version=3)


@generator("MUL", "float32", "int8", "uint8", "int16", "int32", "int64", "complex64")
def mul(m, kind):
    x, y = operands(m, kind)
    options = {"fused_activation_function": m.activation() if kind != "complex64" else 0}
    m.operator("MUL", [x, y], [rescaled(m, kind, m.largest(x) * m.largest(y) / 2)], **options, version=7)


@generator("DIV", "float32", "uint8", "int32")
def div(m, kind):
    def nonzero(shape):
        values = m.draw(kind, shape)
        return np.where(values == 0, values.dtype.type(1), values) if kind == "int32" else values

    a, b = m.broadcast_pair(0, 5)
    x = m.input(kind, a)
    if kind == "uint8":
        parameters = m.affine(kind)
        zero = parameters["zero_point"]
        values = m.draw(kind, b)
        values = np.where(values == zero, values.dtype.type(zero + 1 if zero < 255 else zero - 1), values)
        y = m.input_or_constant(kind, b, values, **parameters)
        output = m.output(kind, **m.affine(kind, m.largest(x) / (parameters["scale"] * 40)))
    else:
        y = m.input_or_constant(kind, b, nonzero(b))
        output = m.output(kind)
    m.operator("DIV", [x, y], [output], fused_activation_function=m.activation(), version=2)


@generator("SQUARED_DIFFERENCE", "float32", "int8", "int32")
def squared_difference(m, kind):
    x, y = operands(m, kind)
    output = rescaled(m, kind, (m.largest(x) + m.largest(y)) ** 2 / 2)
    m.operator("SQUARED_DIFFERENCE", [x, y], [output], version=2)


@generator("MAXIMUM", "float32", "int8", "uint8", "int16", "int32", "int64")
@generator("MINIMUM", "float32", "int8", "uint8", "int16", "int32", "int64")
def maximum(m, kind):
    x, y = operands(m, kind)
    m.operator(m.name, [x, y], [m.output(kind, **(m.parameters[x] or {"scale": None}))], version=4)


@generator("POW", "float32", "int32")
def power(m, kind):
    if kind == "int32":
        a, b = m.broadcast_pair(0, 4, empty=0.02)
        x = m.input(kind, a, m.integers(kind, a, -5, 5))
        y = m.input_or_constant(kind, b, m.integers(kind, b, 0, 9))
    else:
        x, y = operands(m, kind)
    m.operator("POW", [x, y], [m.output(kind)])


@generator("FLOOR_DIV", "float32", "int8", "int16", "int32")
@generator("FLOOR_MOD", "float32", "int8", "int16", "int32", "int64")
def floor_div(m, kind):
    def nonzero(shape):
        values = m.draw(kind, shape)
        return np.where(values == 0, values.dtype.type(3), values)

    a, b = m.broadcast_pair(0, 4, empty=0.02)
    x = m.input(kind, a, scale=None)
    y = m.input_or_constant(kind, b, nonzero(b), scale=None)
    m.operator(m.name, [x, y], [m.output(kind, scale=None)], version=2)


@generator("ATAN2", "float32", "float64")
def atan2(m, kind):
    shape = m.shape(0, 5, empty=0.02)
    m.operator("ATAN2", [m.input(kind, shape), m.input(kind, shape)], [m.output(kind)])


COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


def comparison(m, kind):
    a, b = m.broadcast_pair(0, 4, empty=0.02)
    if kind in ("int8", "uint8"):
        one = {"scale": min(m.scale(), 0.9), "zero_point": m.zero_point(kind)}
        two = one if m.chance(0.4) else {"scale": min(m.scale(), 0.9), "zero_point": m.zero_point(kind)}
        x, y = m.input(kind, a, **one), m.input_or_constant(kind, b, **two)
    else:
        small = m.chance(0.5)

        def values(shape):
            if kind in INTEGERS and small:
                return m.integers(kind, shape, 0, 3)
            return np.round(m.floats(shape)) if kind == "float32" and small else m.draw(kind, shape)

        x = m.input(kind, a, values(a), scale=None)
        y = m.input_or_constant(kind, b, values(b), scale=None)
    m.operator(m.name, [x, y], [m.output("bool")], version=2)


for name in COMPARISONS:
    generator(name, "float32", "int8", "uint8", "int32", "int64")(comparison)
for name in ("EQUAL", "NOT_EQUAL"):
    generator(name, "bool", "string")(comparison)
for name in ("EQUAL", "LESS", "GREATER_EQUAL"):
    generator(name, "int16")(comparison)


@generator("LOGICAL_AND", "bool")
@generator("LOGICAL_OR", "bool")
def logical(m, kind):
    x, y = operands(m, kind)
    m.operator(m.name, [x, y], [m.output(kind)])


@generator("BITWISE_XOR", "int8", "uint8", "int16", "uint16", "int32", "uint32")
@generator("RIGHT_SHIFT", "int8", "uint8", "int16", "uint16", "int32", "uint32")
def bitwise(m, kind):
    a, b = m.broadcast_pair(0, 4, empty=0.02)
    x = m.input(kind, a, scale=None)
    if m.name == "RIGHT_SHIFT":
        y = m.input_or_constant(kind, b, m.integers(kind, b, 0, 8 * np.dtype(kind).itemsize + 2), scale=None)
    else:
        y = m.input_or_constant(kind, b, scale=None)
    m.operator(m.name, [x, y], [m.output(kind, scale=None)])


@generator("ADD_N", "float32", "int32")
def add_n(m, kind):
    shape = m.shape(0, 4)
    inputs = [m.input_or_constant(kind, shape, chance=0.2) for _ in range(m.integer(2, 5))]
    m.operator("ADD_N", inputs, [m.output(kind)])


# ---- one tensor ----


def unary(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02), scale=None)
    m.operator(m.name, [x], [m.output(kind, scale=None)])


for name, kinds in {
    "FLOOR": ("float32",),
    "NEG": ("float32", "int8", "int16", "int32", "int64"),
    "SIN": ("float32",),
    "COS": ("float32",),
    "SQUARE": ("float32",),
    "SIGN": ("float32", "float64", "int32"),
    "LOGICAL_NOT": ("bool",),
    "ZEROS_LIKE": ("float32", "int32", "int64"),
    "ABS": ("float32", "int32"),
    "LOG": ("float32",),
    "SQRT": ("float32",),
    "RSQRT": ("float32",),
    "EXP": ("float32",),
    "RELU": ("float32",),
    "RELU6": ("float32",),
    "RELU_N1_TO_1": ("float32",),
    "RELU_0_TO_1": ("float32",),
    "TANH": ("float32",),
    "LOGISTIC": ("float32",),
    "HARD_SWISH": ("float32",),
}.items():
    generator(name, *kinds)(unary)


@generator("GELU", "float32", "int8", "uint8")
def gelu(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    y = rescaled(m, kind, m.largest(x))
    m.operator("GELU", [x], [y], approximate=m.chance(0.5), version=2)


@generator("ABS", "int8", "int16")
def absolute(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    y = m.output(kind, **m.parameters[x]) if m.chance(0.3) else rescaled(m, kind, m.largest(x))
    m.operator("ABS", [x], [y], version=2)


@generator("EXP", "int8", "int16")
def exponential(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02), **m.affine(kind, m.rng.uniform(0.5, 12)))
    m.operator("EXP", [x], [rescaled(m, kind, np.exp(min(m.largest(x), 20)))], version=2)


@generator("LOG", "int8", "int16")
def logarithm(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    m.operator("LOG", [x], [rescaled(m, kind, 5)], version=2)


@generator("SQRT", "int8", "int16")
@generator("RSQRT", "int8", "int16")
def square_root(m, kind):
    shape = m.shape(0, 5, empty=0.02)
    low, high = (-128, 127) if kind == "int8" else (0, 32767)
    zero = m.pick(low, m.integer(low, high - 1)) if kind == "int8" else 0
    x = m.input(kind, shape, m.integers(kind, shape, zero, high), scale=m.scale(), zero_point=zero)
    size = np.sqrt(m.largest(x)) if m.name == "SQRT" else m.parameters[x]["scale"] ** -0.5
    m.operator(m.name, [x], [rescaled(m, kind, size)], version=3 if m.name == "RSQRT" else 2)


@generator("RELU", "int8", "uint8", "int16")
@generator("RELU6", "int8", "uint8", "int16")
@generator("RELU_N1_TO_1", "int8", "uint8")
@generator("RELU_0_TO_1", "int8", "uint8")
def relu(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    y = m.output(kind, **m.parameters[x]) if m.chance(0.3) else rescaled(m, kind, m.largest(x))
    m.operator(m.name, [x], [y], version=2 if m.name in ("RELU", "RELU6") else 1)


@generator("LEAKY_RELU", "float32", "int8", "uint8", "int16")
def leaky_relu(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    alpha = m.pick(0.01, 0.1, 0.2, 0.3, float(m.rng.uniform(0, 1)), 1.5, -0.25, 0.0)
    m.operator("LEAKY_RELU", [x], [rescaled(m, kind, m.largest(x))], alpha=alpha, version=2)


@generator("PRELU", "float32", "int8", "uint8")
def prelu(m, kind):
    shape = m.shape(1, 4)
    x = m.input(kind, shape)
    alpha = m.input_or_constant(kind, m.pick(shape, shape[-1:], [1] * (len(shape) - 1) + shape[-1:]), chance=0.9)
    m.operator("PRELU", [x, alpha], [rescaled(m, kind, m.largest(x) * max(1, m.largest(alpha) / 2))])


@generator("HARD_SWISH", "int8", "uint8")
def hard_swish(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02), **m.affine(kind, m.rng.uniform(1, 12)))
    m.operator("HARD_SWISH", [x], [m.output(kind, **m.affine(kind, m.largest(x)))])


FIXED = {  # operator: {type: (scale, zero point) of the output}
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (2**-15, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (2**-15, 0)},
}


@generator("LOGISTIC", "int8", "uint8", "int16")
@generator("TANH", "int8", "uint8", "int16")
def curve(m, kind):
    scale, zero = FIXED[m.name][kind]
    if kind == "int16" and m.chance(0.4):
        parameters = {"scale": 2.0 ** m.pick(-12, -11, -10, -13, -9), "zero_point": 0}
    else:
        parameters = m.affine(kind, m.rng.uniform(1, 12))
    x = m.input(kind, m.shape(0, 5, empty=0.02), **parameters)
    m.operator(m.name, [x], [m.output(kind, scale=scale, zero_point=zero)], version=3)


@generator("ELU", "float32", "int8", resolver=OPTIMIZED)
def elu(m, kind):
    x = m.input(kind, m.shape(0, 5, empty=0.02))
    m.operator("ELU", [x], [rescaled(m, kind, m.largest(x))])


@generator("CEIL", "float32", resolver=OPTIMIZED)
@generator("ROUND", "float32", resolver=OPTIMIZED)
def rounding(m, kind):
    shape = m.shape(0, 5, empty=0.02)
    x = m.input(kind, shape, draw=lambda: m.floats(shape, magnitude=m.pick(1, 100)))
    m.operator(m.name, [x], [m.output(kind)])


# ---- between types ----


@generator("QUANTIZE", "float32-int8", "float32-uint8", "float32-int16", "float32-int4")
def quantize(m, kind):
    target = kind.split("-")[1]
    shape = m.shape(1, 5)
    parameters = m.affine(target)
    if target != "int4" and m.chance(0.3):
        axis = m.integer(0, len(shape) - 1)
        scales = np.float32([m.scale() for _ in range(shape[axis])])
        zeros = [m.zero_point(target) if target != "int16" else 0 for _ in scales]
        parameters = {"scale": scales, "zero_point": zeros, "quantized_dimension": axis}
    size = float(np.median(parameters["scale"])) * (128 if target != "int16" else 2**15)

    def values():
        x = m.floats(shape, magnitude=size * m.pick(0.1, 0.5, 2))
        if m.chance(0.3):  # ties
            x = ((np.round(x / np.max(parameters["scale"])) + 0.5) * np.max(parameters["scale"])).astype(np.float32)
        return x

    x = m.input("float32", shape, draw=values)
    m.operator("QUANTIZE", [x], [m.output(target, shape, **parameters)], version=3)


PAIRS = (
    *("int8-int8", "int8-uint8", "uint8-int8", "uint8-uint8", "int8-int16", "uint8-int16"),
    *("int16-int8", "int16-int16", "int16-int32", "int32-int8", "int32-int16"),
)


@generator("QUANTIZE", *PAIRS)
def requantize(m, kind):
    source, target = kind.split("-")
    shape = m.shape(1, 5)
    if source == "int32":
        scale = m.scale() / 2**10
        x = m.input(source, shape, m.integers(source, shape, -(2**20), 2**20), scale=scale, zero_point=0)
        y = m.output(target, **m.affine(target, scale * 2**19))
    elif {source, target} == {"int8", "uint8"} and m.chance(0.2):
        x = m.input(source, shape)
        zero = m.parameters[x]["zero_point"] + (128 if source == "int8" else -128)
        y = m.output(target, scale=m.parameters[x]["scale"], zero_point=zero)
    else:
        x = m.input(source, shape)
        scale = m.scale_for(target if target != "int32" else "int16", m.largest(x))
        y = m.output(target, scale=scale, zero_point=m.zero_point(target))
    m.operator("QUANTIZE", [x], [y], version=3)


@generator("DEQUANTIZE", "int8", "uint8", "int16", "int4", "int2", "uint4", "float16")
def dequantize(m, kind):
    shape = m.shape(1, 5)
    if kind == "float16":
        x = m.input_or_constant(kind, shape)
    else:
        parameters = m.affine(kind)
        if m.chance(0.3) and kind != "int16":
            axis = m.integer(0, len(shape) - 1)
            scales = np.float32([m.scale() for _ in range(shape[axis])])
            parameters = {
                "scale": scales,
                "zero_point": [m.zero_point(kind) for _ in scales],
                "quantized_dimension": axis,
            }
        x = m.input_or_constant(kind, shape, chance=1 if kind == "int2" else 0.4, **parameters)
    m.operator("DEQUANTIZE", [x], [m.output("float32")], version=6)


CASTS = ("float32", "int32", "int64", "bool", "int8", "uint8", "int16", "uint16", "uint32", "float16", "float64")


@generator("CAST", *CASTS, "complex64", "int4")
def cast(m, kind):
    target = m.pick(*CASTS) if kind != "complex64" else m.pick("complex64", "float32")
    if kind == "int4":
        target = "float32"
    shape = m.shape(0, 4)

    def values():
        x = m.draw(kind, shape)
        if kind in ("float32", "float16", "float64") and m.chance(0.7):
            with np.errstate(over="ignore", invalid="ignore"):
                x = (x * m.pick(1, 10, 100, 1e5)).astype(x.dtype)
        return x

    x = m.input(kind, shape, draw=values, scale=None)
    options = {"in_data_type": kind, "out_data_type": target} if m.chance(0.8) else None
    m.operator("CAST", [x], [m.output(target, scale=None)], options=options, version=6)


@generator("FAKE_QUANT", "float32")
def fake_quant(m, kind):
    x = m.input(kind, m.shape(0, 4))
    low, high = m.pick((-1.0, 1.0), (0.0, 6.0), (-0.3, 2.7), (-6.0, 0.0), (-3.2, 2.9))
    options = {"min": low, "max": high, "num_bits": m.pick(8, 8, 8, 4, 16, 2)}
    m.operator("FAKE_QUANT", [x], [m.output(kind)], **options, version=2)
