# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED."""

import numpy as np

from generators import generator

KINDS = {  # kind: (activations, weights, bias)
    "float32": ("float32", "float32", "float32"),
    "int8": ("int8", "int8", "int32"),
    "uint8": ("uint8", "uint8", "int32"),
    "uint8-int16": ("uint8", "uint8", "int32"),
    "int16": ("int16", "int8", "int64"),
    "int16-bias32": ("int16", "int8", "int32"),
    "int4": ("int8", "int4", "int32"),
    "int2": ("int8", "int2", "int32"),
    "int16-int4": ("int16", "int4", "int64"),
    "int16-int2": ("int16", "int2", "int64"),
    "hybrid": ("float32", "int8", "float32"),
    "hybrid-int4": ("float32", "int4", "float32"),
    "hybrid-int2": ("float32", "int2", "float32"),
    "float16": ("float32", "float16", "float32"),
    "int16-weights16": ("int16", "int16", "int64"),
}


def given(m):
    """A function that makes an input of the model, with the arguments of m.constant."""

    def make(type, values, **parameters):
        return m.input(type, np.shape(values), values, **(parameters or {"scale": None}))

    return make


def weights(m, kind, shape, axis, per_channel, gain=None, shifted=False):
    """A constant of weights: symmetric where the type is signed; uint8 has a zero point.

    Codes of -128 do not occur beside float inputs, where LiteRT gets their sign wrong.
    gain: about how much larger the product is than its input; None: whatever comes.  Some are inputs of the model.
    shifted: some that have one scale have a zero point."""
    type = KINDS[kind][1]
    put = m.constant
    if gain is None and not kind.startswith("hybrid") and type in ("float32", "int8", "uint8") and m.chance(0.05):
        put = given(m)
    if type in ("float32", "float16"):
        spread = 1.0 if gain is None else gain / np.sqrt(np.prod(shape) / shape[axis])
        values = put(type, m.floats(shape, type, special=0.01 if gain is None else 0, magnitude=spread))
        if type == "float32":
            return values
        wide = m.inner("float32", shape)
        m.operator("DEQUANTIZE", [values], [wide], version=3)
        return wide
    low, high = {"int16": (-32767, 32767), "int8": (-127, 127), "uint8": (0, 255), "int4": (-7, 7), "int2": (-1, 1)}[
        type
    ]
    if type == "int8" and kind != "hybrid" and m.chance(0.05):
        low = -128
    how = m.rng.random()
    if how < 0.6:
        values = np.clip(np.round(m.rng.normal((low + high) / 2, (high - low) / 5, shape)), low, high)
    elif how < 0.9:
        values = m.rng.integers(low, high, shape, endpoint=True)
    else:
        values = m.rng.choice([low, high], shape)
    zero = m.zero_point("uint8") if type == "uint8" else 0
    if shifted and not per_channel and m.chance(0.1):
        zero = m.integer(-100, 100)
    middle = m.scale()
    if gain is not None:
        spread = max(float(np.std(values.astype(float) - zero)), 0.5)
        middle = float(np.float32(gain / (spread * np.sqrt(np.prod(shape) / shape[axis]))))
    if not per_channel:
        return put(type, values, scale=middle, zero_point=zero)
    count = shape[axis]
    scales = np.float32(middle * 2.0 ** m.rng.uniform(-2, 2, count))
    if m.chance(0.1):
        scales[:] = scales[0]
    return put(type, values, scale=scales, zero_point=[0] * count, quantized_dimension=axis)


def source(m, kind, shape):
    """The input: finite where it is quantized on the way, since a range with infinite ends has no meaning."""
    if kind.startswith("hybrid"):
        return m.input("float32", shape, draw=lambda: m.floats(shape, special=0, magnitude=m.pick(0.1, 1, 10)))
    return m.input(KINDS[kind][0], shape)


def bias(m, kind, x, w, count, terms):
    """A constant bias with scales s_x * s_w, of about the size of the sums; or -1 for none."""
    _, _, type = KINDS[kind]
    if type == "float32":
        return m.constant("float32", m.floats([count], special=0.01))
    scale = np.float32(np.float32(m.parameters[x]["scale"]) * np.float32(m.parameters[w]["scale"]))
    x_range = {"int16": 2**15}.get(KINDS[kind][0], 128)
    w_range = {"int4": 7, "int2": 1, "int16": 2**15}.get(KINDS[kind][1], 127)
    most = min(x_range * w_range * np.sqrt(terms), 2**30)
    values = m.rng.uniform(-most, most, count).astype(np.int64)
    if m.chance(0.05):
        values[m.integer(0, count - 1)] = m.pick(-(2**27), 2**27)
    return m.constant(type, values, scale=scale, zero_point=np.zeros_like(scale, int))


def result(m, kind, x, w, terms):
    """The output of a product: a scale under which it neither vanishes nor always saturates."""
    type = "int16" if kind == "uint8-int16" else KINDS[kind][0]
    if type == "float32":
        return m.output("float32")
    size = np.sqrt(terms) * m.largest(x) * float(np.median(m.parameters[w]["scale"]))
    size *= {"int4": 4, "int2": 1, "int16": 2**14}.get(KINDS[kind][1], 64)
    return m.output(type, **m.affine(type, size))


def bias_type(kind):
    """The option quantized_bias_type; without it a bias of 16x8 is read as int64, one of 16x16 as int32."""
    types = {"int16-bias32": "INT32", "int16-weights16": "INT64"}
    return types.get(kind, "FLOAT32")


def plane(m, elements=400):
    """Height, width, and for each axis kernel, stride, dilation; padding: a kernel fits a VALID convolution."""
    height, width = m.shape(rank=2, elements=elements)
    kernel, stride, dilation = [], [], []
    for size in (height, width):
        kernel.append(m.integer(1, min(size, 5)))
        stride.append(m.pick(1, 1, 1, 2, 2, 3))
        room = (size - 1) // max(kernel[-1] - 1, 1)
        dilation.append(m.integer(1, max(min(room, 3), 1)) if m.chance(0.2) else 1)
    padding = m.pick("SAME", "VALID")
    if padding == "SAME" and m.chance(0.1):  # larger than the image
        kernel[0] += 2
    return (height, width), kernel, stride, dilation, padding


CONV_KINDS = ("float32", "float16", "int8", "uint8", "int16", "int16-bias32", "int16-int4", "int4", "hybrid")


@generator("CONV_2D", *CONV_KINDS)
def conv_2d(m, kind):
    (height, width), (kh, kw), (sh, sw), (dh, dw), padding = plane(m, 150)
    w_type = KINDS[kind][1]
    groups = m.pick(1, 1, 1, 1, 2, 3) if kind != "uint8" else 1
    per_group, out_per_group = m.dimension(33), m.dimension(33)
    while per_group * groups * height * width > 4000:
        per_group = max(per_group // 2, 1)
        height, width = (height, width) if per_group > 1 else (min(height, 8), min(width, 8))
    depth, count = per_group * groups, out_per_group * groups
    kh, kw = (min(kh, height), min(kw, width)) if padding == "VALID" else (kh, kw)
    dh, dw = (dh if (kh - 1) * dh < height else 1), (dw if (kw - 1) * dw < width else 1)
    x = source(m, kind, [m.pick(1, 1, 2), height, width, depth])
    per_channel = w_type != "uint8" and (m.chance(0.7) or (kind == "hybrid" and groups > 1))
    w = weights(m, kind, [count, kh, kw, per_group], 0, per_channel)
    terms = kh * kw * per_group
    options = {
        "padding": padding,
        "stride_h": sh,
        "stride_w": sw,
        "dilation_h_factor": dh,
        "dilation_w_factor": dw,
        "fused_activation_function": m.activation(),
        "quantized_bias_type": bias_type(kind),
    }
    m.operator(
        "CONV_2D", [x, w, bias(m, kind, x, w, count, terms)], [result(m, kind, x, w, terms)], **options, version=8
    )


@generator("DEPTHWISE_CONV_2D", "float32", "float16", "int8", "uint8", "int16", "int4", "hybrid")
def depthwise_conv_2d(m, kind):
    (height, width), (kh, kw), (sh, sw), (dh, dw), padding = plane(m, 150)
    w_type = KINDS[kind][1]
    multiplier = m.pick(1, 1, 1, 2, 3, 8)
    depth = m.dimension(max(min(70 // multiplier, 6000 // (height * width)), 1))
    x = source(m, kind, [m.pick(1, 1, 2), height, width, depth])
    count = depth * multiplier
    per_channel = kind == "hybrid" or (w_type != "uint8" and m.chance(0.7))
    w = weights(m, kind, [1, kh, kw, count], 3, per_channel)
    options = {
        "padding": padding,
        "stride_h": sh,
        "stride_w": sw,
        "depth_multiplier": multiplier,
        "dilation_h_factor": dh,
        "dilation_w_factor": dw,
        "fused_activation_function": m.activation(),
    }
    inputs = [x, w]
    if m.chance(0.85):
        inputs.append(bias(m, kind, x, w, count, kh * kw))
    m.operator("DEPTHWISE_CONV_2D", inputs, [result(m, kind, x, w, kh * kw)], **options, version=6)


@generator("FULLY_CONNECTED", "uint8-shuffled")
def shuffled(m, kind):
    """Weights in blocks of 4 units by 16 columns, whose sign bits are flipped: old models for ARM have them."""
    rows, depth, count = m.pick(1, 4), 16 * m.integer(1, 5), 4 * m.integer(1, 8)
    x = m.input("uint8", [rows, depth], scale=m.scale(), zero_point=128)
    w = m.constant("uint8", m.codes("uint8", [count, depth]), scale=m.scale(), zero_point=128)
    b = bias(m, "uint8", x, w, count, depth)
    size = m.largest(x) * float(m.parameters[w]["scale"]) * 64 * np.sqrt(depth)
    outputs = [m.output("int16", **m.affine("int16", size)), m.output("uint8", [rows, depth], scale=None)]
    options = {"fused_activation_function": m.activation(), "weights_format": "SHUFFLED4x16INT8"}
    m.operator("FULLY_CONNECTED", [x, w, b], outputs, **options, version=2)
    m.fixed = True


FC_KINDS = ("float32", "float16", "int16-weights16", "int8", "uint8", "int16", "int16-bias32", "int4", "int2")


@generator(
    "FULLY_CONNECTED", *FC_KINDS, "int16-int4", "int16-int2", "uint8-int16", "hybrid", "hybrid-int4", "hybrid-int2"
)
def fully_connected(m, kind):
    w_type = KINDS[kind][1]
    keep = m.chance(0.4)
    lead = m.shape(1, 3, 60)
    depth, count = m.dimension(70), m.dimension(70)
    if m.chance(0.1):
        depth *= 9
    x = source(m, kind, [*lead, depth])
    per_channel = w_type not in ("uint8", "int16") and kind != "hybrid" and m.chance(0.5)
    shifted = kind in ("int8", "int16", "int16-bias32", "int16-weights16")
    w = weights(m, kind, [count, depth], 0, per_channel, shifted=shifted)
    options = {
        "keep_num_dims": keep,
        "fused_activation_function": m.activation(),
        "asymmetric_quantize_inputs": m.chance(0.5),
        "quantized_bias_type": bias_type(kind),
    }
    has_bias = m.chance(0.8) or kind in ("int16-bias32", "uint8-int16")
    b = bias(m, kind, x, w, count, depth) if has_bias else -1
    m.operator("FULLY_CONNECTED", [x, w, b], [result(m, kind, x, w, depth)], **options, version=12)
