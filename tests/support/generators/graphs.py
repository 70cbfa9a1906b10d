# SPDX-License-Identifier: Apache-2.0
"""Networks of several operators with consistent parameters: chains, branches that meet again, a head.

The row's operator is "GRAPH".  `network(m, kind, count)` is for other tests too: it returns the index of the last
tensor, and m.case() the model.
"""

import numpy as np

from generators import generator
from generators.arithmetic import FIXED as CURVES
from generators.draft import QUANTIZED
from generators.matrices import KINDS, bias, bias_type, weights
from generators.windows import FIXED as NORMALIZATIONS

GAIN = 0.7  # of a layer: values neither grow nor vanish


def inner(m, type, shape, magnitude):
    """A tensor between operators, with parameters that suit values up to a magnitude.

    None is tiny: where 6 is 2^31 scales or more, LiteRT's RELU6 converts its bound out of range."""
    magnitude = max(magnitude, 0.01)
    parameters = {}
    if type in QUANTIZED:
        parameters = {"scale": m.scale_for(type, magnitude, wild=0), "zero_point": m.zero_point(type)}
    return m.inner(type, shape, **parameters)


def finite(m, shape):
    """A float input without infinities and NaN, which would soon be everywhere."""
    return m.input("float32", shape, draw=lambda: m.floats(shape, special=0))


def alike(m, x, shape):
    """A tensor with the parameters of x."""
    return m.inner(m.types[x], shape, **(m.parameters[x] or {"scale": None}))


def product(m, x, shape):
    return inner(m, m.types[x], shape, GAIN * m.largest(x))


def convolution(m, kind, x):
    batch, height, width, depth = m.shape_of(x)
    kh, kw = m.integer(1, min(height, 3)), m.integer(1, min(width, 3))
    stride = m.pick(1, 1, 2)
    padding = m.pick("SAME", "SAME", "VALID")
    deep = m.chance(0.35)
    multiplier = m.pick(1, 1, 2)
    count = depth * multiplier if deep else m.pick(4, 8, 11, 16)
    w = weights(
        m,
        kind,
        [1, kh, kw, count] if deep else [count, kh, kw, depth],
        3 if deep else 0,
        kind != "uint8",
        gain=GAIN,
    )
    if padding == "SAME":
        size = [-(-height // stride), -(-width // stride)]
    else:
        size = [(height - kh) // stride + 1, (width - kw) // stride + 1]
    terms = kh * kw * (1 if deep else depth)
    y = product(m, x, [batch, *size, count])
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, "fused_activation_function": m.activation()}
    options |= {"depth_multiplier": multiplier} if deep else {"quantized_bias_type": bias_type(kind)}
    name = "DEPTHWISE_CONV_2D" if deep else "CONV_2D"
    m.operator(name, [x, w, bias(m, kind, x, w, count, terms)], [y], **options, version=6)
    return y


def pool(m, kind, x):
    batch, height, width, depth = m.shape_of(x)
    kh, kw = m.integer(1, min(height, 3)), m.integer(1, min(width, 3))
    stride = m.pick(1, 2)
    y = alike(m, x, [batch, -(-height // stride), -(-width // stride), depth])
    m.operator(
        m.pick("AVERAGE_POOL_2D", "MAX_POOL_2D"),
        [x],
        [y],
        padding="SAME",
        stride_h=stride,
        stride_w=stride,
        filter_height=kh,
        filter_width=kw,
        version=3,
    )
    return y


def binary(m, kind, x, other=None):
    """With another tensor of the same shape, a constant, or itself."""
    shape = m.shape_of(x)
    if other is None:
        parameters = {}
        if m.types[x] in QUANTIZED:
            parameters = {"scale": m.scale_for(m.types[x], m.largest(x)), "zero_point": m.zero_point(m.types[x])}
        small = m.pick(shape, shape[-1:], [1])
        values = m.draw(m.types[x], small) if parameters else m.floats(small, special=0)
        other = m.constant(m.types[x], values, **parameters)
    name = m.pick("ADD", "ADD", "MUL", "SUB")
    options = {"fused_activation_function": m.activation()}
    if name != "MUL":
        options["pot_scale_int16"] = False
    size = m.largest(x) * m.largest(other) / 2 if name == "MUL" else m.largest(x) + m.largest(other)
    y = inner(m, m.types[x], shape, size)
    m.operator(name, [x, other], [y], **options, version=2)
    return y


def activation(m, kind, x):
    type = m.types[x]
    names = ["LOGISTIC", "TANH", "LEAKY_RELU", "RELU", "RELU6"] + ["HARD_SWISH"] * (type != "int16")
    name = m.pick(*names)
    if name in CURVES and type in QUANTIZED:
        scale, zero = CURVES[name][type]
        y = m.inner(type, m.shape_of(x), scale=scale, zero_point=zero)
    else:
        y = inner(m, type, m.shape_of(x), m.largest(x))
    options = {"alpha": m.pick(0.1, 0.3)} if name == "LEAKY_RELU" else {}
    m.operator(name, [x], [y], **options, version=1 if name == "HARD_SWISH" else 2)
    return y


def pad(m, kind, x):
    shape = m.shape_of(x)
    widths = [[0, 0], *([m.integer(0, 1), m.integer(0, 2)] for _ in shape[1:-1]), [0, 0]]
    y = alike(m, x, [n + sum(w) for n, w in zip(shape, widths, strict=True)])
    m.operator("PAD", [x, m.constant("int32", widths)], [y], version=2)
    return y


def resize(m, kind, x):
    batch, height, width, depth = m.shape_of(x)
    size = [m.integer(1, 2 * height), m.integer(1, 2 * width)]
    y = alike(m, x, [batch, *size, depth])
    options = {"half_pixel_centers": m.chance(0.5)}
    m.operator("RESIZE_BILINEAR", [x, m.constant("int32", size)], [y], **options, version=4)
    return y


def crop(m, kind, x):
    shape = m.shape_of(x)
    begin = [0, *(m.integer(0, (n - 1) // 2) for n in shape[1:])]
    end = [shape[0], *(m.integer(b + 1, n) for b, n in zip(begin[1:], shape[1:], strict=True))]
    y = alike(m, x, [b - a for a, b in zip(begin, end, strict=True)])
    parts = [m.constant("int32", values) for values in (begin, end, [1] * len(shape))]
    m.operator("STRIDED_SLICE", [x, *parts], [y], version=2)
    return y


def requantize(m, kind, x):
    if m.types[x] not in QUANTIZED:
        return x
    y = inner(m, m.types[x], m.shape_of(x), m.largest(x))
    m.operator("QUANTIZE", [x], [y], version=2)
    return y


def joined(m, kind, x, y):
    """Two tensors of equal shape become one: by arithmetic, or side by side."""
    if m.chance(0.6):
        return binary(m, kind, x, y)
    if m.types[x] in QUANTIZED and m.parameters[x] != m.parameters[y]:
        same = alike(m, x, m.shape_of(y))
        m.operator("QUANTIZE", [y], [same], version=2)
        y = same
    *lead, depth = m.shape_of(x)
    z = alike(m, x, [*lead, 2 * depth])
    m.operator("CONCATENATION", [x, y], [z], axis=len(lead), version=3)
    return z


def branch(m, kind, x):
    """Two ways that do not change the shape, and meet again."""
    one = m.pick(activation, requantize, binary)(m, kind, x)
    two = m.pick(activation, binary)(m, kind, x)
    return joined(m, kind, one, two)


def head(m, kind, x):
    """Pooling, a fully connected layer, perhaps a softmax."""
    type = m.types[x]
    batch, height, width, depth = m.shape_of(x)
    if m.chance(0.5):
        y = inner(m, type, [batch, depth], m.largest(x) / np.sqrt(height * width))
        m.operator("MEAN", [x, m.constant("int32", [1, 2])], [y], version=2)
    else:
        y = alike(m, x, [batch, height * width * depth])
        m.operator("RESHAPE", [x, m.constant("int32", m.shape_of(y))], [y])
    depth, count = m.shape_of(y)[-1], m.integer(2, 12)
    w = weights(m, kind, [count, depth], 0, False, gain=GAIN)
    z = product(m, y, [batch, count])
    m.operator(
        "FULLY_CONNECTED",
        [y, w, bias(m, kind, y, w, count, depth)],
        [z],
        quantized_bias_type=bias_type(kind),
        version=4,
    )
    if m.chance(0.5):
        parameters = {}
        if type in QUANTIZED:
            parameters = dict(zip(("scale", "zero_point"), NORMALIZATIONS["SOFTMAX"][type], strict=True))
        last = m.inner(type, [batch, count], **parameters)
        m.operator("SOFTMAX", [z], [last], beta=1.0, version=2)
        z = last
    return z


STEPS = (convolution,) * 5 + (branch,) * 3 + (pool, binary, activation, pad, resize, crop, requantize)


def network(m, kind, count):
    """A network of about `count` operators; its last tensor.  kind: of generators.matrices.KINDS."""
    type = KINDS[kind][0]
    shape = [1, m.integer(5, 12), m.integer(5, 12), m.integer(1, 6)]
    if type in QUANTIZED and m.chance(0.3):  # as a converted model with float inputs has it
        source = finite(m, shape)
        x = inner(m, type, shape, 3.0)
        m.operator("QUANTIZE", [source], [x], version=2)
    else:
        parameters = m.affine(type, m.pick(1.0, 3.0, 6.0))
        x = m.input(type, shape, **parameters) if parameters else finite(m, shape)
    while len(m.operators) < count:
        x = m.pick(*STEPS)(m, kind, x)
    x = head(m, kind, x) if m.chance(0.6) else x
    if type in QUANTIZED and m.chance(0.3):
        y = m.inner("float32", m.shape_of(x))
        m.operator("DEQUANTIZE", [x], [y], version=2)
        x = y
    m.outputs.append(x)
    return x


@generator("GRAPH", "float32", "float16", "int8", "uint8", "int16", "int4", "hybrid")
def graph(m, kind):
    network(m, kind, m.integer(3, 12))
