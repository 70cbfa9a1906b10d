# SPDX-License-Identifier: Apache-2.0
"""Element by element: types that few models have."""

import numpy as np

from generators import OPTIMIZED, generator
from generators.arithmetic import COMPARISONS, comparison, operands, rescaled, unary

# ---- float16, bfloat16, float64 ----


@generator("ADD", "float16")
@generator("MUL", "float16")
@generator("MAXIMUM", "float16")
@generator("MINIMUM", "float16")
def binary(m, kind):
    x, y = operands(m, kind)
    options = {"fused_activation_function": m.activation()} if m.name in ("ADD", "MUL") else {}
    m.operator(m.name, [x, y], [m.output(kind)], **options, version=7 if m.name == "MUL" else 4)


for name in ("FLOOR", "NEG", "SIN", "COS", "TANH", "LOGISTIC"):
    generator(name, "float16")(unary)
generator("ROUND", "float16", resolver=OPTIMIZED)(unary)
for name in COMPARISONS:
    generator(name, "float16")(comparison)


@generator("ATAN2", "float16")
def atan2(m, kind):
    shape = m.shape(0, 5)
    m.operator("ATAN2", [m.input(kind, shape), m.input(kind, shape)], [m.output(kind)])


@generator("GELU", "float16", "int16")
def gelu(m, kind):
    x = m.input(kind, m.shape(0, 5))
    y = rescaled(m, kind, m.largest(x))
    m.operator("GELU", [x], [y], approximate=m.chance(0.5), version=2)


@generator("SOFTMAX", "float16", "uint8-int16")
def softmax(m, kind):
    source, target = kind.split("-") if "-" in kind else (kind, kind)
    shape = [*m.shape(0, 3, 100), m.dimension(70)]
    parameters = {} if kind == "float16" else {"scale": 1 / 32768, "zero_point": 0}
    x = m.input(source, shape, **({} if kind == "float16" else m.affine(source, m.rng.uniform(1, 12))))
    options = {"beta": m.pick(1.0, 1.0, 0.5, 2.0)}
    m.operator("SOFTMAX", [x], [m.output(target, **parameters)], **options, version=3)


# ---- quantized values ----


@generator("DIV", "int8", "int16")
def div(m, kind):
    a, b = m.broadcast_pair(0, 5)
    x = m.input(kind, a)
    parameters = m.affine(kind)
    zero = parameters["zero_point"]
    values = m.draw(kind, b)
    values = np.where(values == zero, values.dtype.type(zero + 1 if zero < 100 else zero - 1), values)
    y = m.input_or_constant(kind, b, values, **parameters)
    output = m.output(kind, **m.affine(kind, m.largest(x) / (parameters["scale"] * 40)))
    m.operator("DIV", [x, y], [output], fused_activation_function=m.activation(), version=2)


@generator("MUL", "int16-int8", "int16-uint8")
def mul(m, kind):
    """In Q15, whatever the scales."""
    shape = m.shape(0, 4)
    x, y = m.input("int16", shape), m.input("int16", shape)
    options = {"fused_activation_function": m.activation()}
    m.operator("MUL", [x, y], [m.output(kind.split("-")[1])], **options, version=3)


@generator("PRELU", "int16")
def prelu(m, kind):
    shape = m.shape(1, 4)
    x = m.input(kind, shape)
    slopes = m.pick(shape, shape[-1:], [1] * (len(shape) - 1) + shape[-1:])
    alpha = m.input_or_constant("int8", slopes, chance=0.9)
    m.operator("PRELU", [x, alpha], [rescaled(m, kind, m.largest(x) * max(1, m.largest(alpha) / 2))])


@generator("EQUAL", "int16-quantized")
@generator("NOT_EQUAL", "int16-quantized")
def words(m, kind):
    a, b = m.broadcast_pair(0, 4)
    parameters = {"scale": min(m.scale(), 0.9), "zero_point": 0}
    x = m.input("int16", a, m.integers("int16", a, 0, 4), **parameters)
    y = m.input_or_constant("int16", b, m.integers("int16", b, 0, 4), **parameters)
    m.operator(m.name, [x, y], [m.output("bool")], version=4)


for name in ("LESS_EQUAL", "GREATER"):
    generator(name, "int16")(comparison)


@generator("MUL", "uint32")
def unsigned(m, kind):
    x, y = operands(m, kind)
    options = {"fused_activation_function": m.activation()}
    m.operator("MUL", [x, y], [m.output(kind)], **options, version=7)
