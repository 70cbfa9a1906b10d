# SPDX-License-Identifier: Apache-2.0
"""Pools, transposed convolutions, resizing."""

import numpy as np

from generators import generator
from generators.draft import QUANTIZED
from generators.layout import same
from generators.matrices import KINDS, bias, bias_type, plane, result, weights


@generator("AVERAGE_POOL_2D", "float32", "int8", "uint8", "int16")
@generator("MAX_POOL_2D", "float32", "int8", "uint8", "int16")
@generator("L2_POOL_2D", "float32")
def pool(m, kind):
    (height, width), (kh, kw), (sh, sw), _, padding = plane(m)
    if m.chance(0.1) and height * width < 260:
        kh, kw = height, width
    x = m.input(kind, [m.pick(1, 1, 2), height, width, m.dimension(max(min(70, 8000 // (height * width)), 1))])
    options = {
        "padding": padding,
        "stride_h": sh,
        "stride_w": sw,
        "filter_height": kh,
        "filter_width": kw,
        "fused_activation_function": m.activation(),
    }
    m.operator(m.name, [x], [m.output(kind, **same(m, x))], **options, version=3 if kind == "int16" else 1)


@generator("TRANSPOSE_CONV", "float32", "int8", "uint8", "int16")
def transpose_conv(m, kind):
    (height, width), (kh, kw), (sh, sw), _, padding = plane(m, 60)
    x_type, w_type, _ = KINDS[kind]
    depth, count = m.dimension(20), m.dimension(20)
    batch = m.pick(1, 1, 2)
    if padding == "SAME":
        out = [height * sh - m.integer(0, sh - 1), width * sw - m.integer(0, sw - 1)]
    else:
        out = [(height - 1) * sh + kh + m.integer(0, sh - 1), (width - 1) * sw + kw + m.integer(0, sw - 1)]
    shape = m.input_or_constant("int32", [4], [batch, *out, count], chance=0.7)
    x = m.input(x_type, [batch, height, width, depth])
    w = weights(m, kind, [count, kh, kw, depth], 0, w_type != "uint8" and m.chance(0.7))
    inputs = [shape, w, x]
    if m.chance(0.7):
        inputs.append(bias(m, kind, x, w, count, kh * kw * depth))
    options = {
        "padding": padding,
        "stride_h": sh,
        "stride_w": sw,
        "fused_activation_function": m.activation(),
        "quantized_bias_type": bias_type(kind),
    }
    terms = max(kh * kw * depth // (sh * sw), 1)
    m.operator("TRANSPOSE_CONV", inputs, [result(m, kind, x, w, terms)], **options, version=4)


@generator("RESIZE_BILINEAR", "float32", "int8", "uint8", "int16")
@generator("RESIZE_NEAREST_NEIGHBOR", "float32", "int8", "uint8", "int16")
def resize(m, kind):
    height, width = m.shape(rank=2, elements=200)
    x = m.input(kind, [m.pick(1, 1, 2), height, width, m.dimension(33)])
    out = [height * 2, width * 2] if m.chance(0.2) else m.shape(rank=2, elements=300)
    size = m.input_or_constant("int32", [2], out, chance=0.8)
    corners, centres = m.pick((False, False), (True, False), (False, True))
    if m.name == "RESIZE_BILINEAR":
        options = {"align_corners": corners, "half_pixel_centers": centres}
    else:
        options = {"align_corners": corners, "half_pixel_centers": centres}
    m.operator(m.name, [x, size], [m.output(kind, **same(m, x))], **options, version=4 if kind == "int16" else 3)


@generator("CONV_3D", "float32")
def conv_3d(m, kind):
    sizes = [m.integer(1, 6) for _ in range(3)]
    kernel = [m.integer(1, n) for n in sizes]
    depth, count = m.dimension(9), m.dimension(9)
    x = m.input(kind, [m.pick(1, 2), *sizes, depth])
    w = m.input_or_constant(kind, [*kernel, depth, count], chance=0.7)
    inputs = [x, w]
    if m.chance(0.6):
        inputs.append(m.input_or_constant(kind, [count], chance=0.7))
    options = {
        "padding": m.pick("SAME", "VALID"),
        "stride_d": m.integer(1, 2),
        "stride_h": m.integer(1, 2),
        "stride_w": m.integer(1, 2),
        "fused_activation_function": m.activation(),
    }
    m.operator("CONV_3D", inputs, [m.output(kind)], **options)


@generator("CONV_3D_TRANSPOSE", "float32")
def conv_3d_transpose(m, kind):
    sizes = [m.integer(1, 5) for _ in range(3)]
    kernel = [m.integer(1, 3) for _ in sizes]
    stride = [m.integer(1, 2) for _ in sizes]
    padding = m.pick("SAME", "VALID")
    depth, count, batch = m.dimension(9), m.dimension(9), m.pick(1, 2)
    if padding == "SAME":
        out = [n * s for n, s in zip(sizes, stride, strict=True)]
    else:
        out = [(n - 1) * s + k for n, s, k in zip(sizes, stride, kernel, strict=True)]
    shape = m.input_or_constant("int32", [5], [batch, *out, count], chance=0.7)
    w = m.input_or_constant(kind, [*kernel, count, depth], chance=0.7)
    inputs = [shape, w, m.input(kind, [batch, *sizes, depth])]
    if m.chance(0.6):
        inputs.append(m.input_or_constant(kind, [count], chance=0.7))
    options = {
        "padding": padding,
        "stride_d": stride[0],
        "stride_h": stride[1],
        "stride_w": stride[2],
        "fused_activation_function": m.activation(),
    }
    m.operator("CONV_3D_TRANSPOSE", inputs, [m.output(kind)], **options)


# ---- along axes ----


def axes_of(m, rank, least=1):
    """Some axes, some of them counted from the end."""
    chosen = m.subset(range(rank), min(least, rank))
    return [axis - rank if m.chance(0.3) else axis for axis in chosen]


def reduction(m, kind, x, output):
    rank = len(m.shape_of(x))
    axes = axes_of(m, rank)
    if rank == 4 and m.chance(0.3):
        axes = [1, 2]
    axis = m.input_or_constant("int32", [len(axes)], axes, chance=0.85)
    version = 1 if kind == "bool" else 2
    m.operator(m.name, [x, axis], [output(axes)], keep_dims=m.chance(0.5), version=version)


def count(m, x, axes):
    shape = m.shape_of(x)
    return int(np.prod([shape[a] for a in {a % len(shape) for a in axes}], initial=1))


@generator("MEAN", "float32", "int8", "uint8", "int16", "int32", "int64")
def mean(m, kind):
    x = m.input(kind, m.shape(1, 5, 4000))

    def output(axes):
        if kind not in QUANTIZED:
            return m.output(kind)
        if m.chance(0.4):
            return m.output(kind, **m.parameters[x])
        return m.output(kind, **m.affine(kind, m.largest(x) / count(m, x, axes) ** 0.4))

    reduction(m, kind, x, output)


@generator("SUM", "float32", "int8", "uint8", "int16", "int32", "int64")
def sum_(m, kind):
    x = m.input(kind, m.shape(1, 5, 4000))

    def output(axes):
        size = m.largest(x) * count(m, x, axes) ** 0.5
        return m.output(kind, **m.affine(kind, size)) if kind in QUANTIZED else m.output(kind)

    reduction(m, kind, x, output)


@generator("REDUCE_PROD", "float32", "int8", "int16", "int32", "int64")
def reduce_prod(m, kind):
    x = m.input(kind, m.shape(1, 4, 60))

    def output(axes):
        size = m.largest(x) * 0.6
        with np.errstate(over="ignore"):
            product = min(float(np.float64(size) ** count(m, x, axes)), 1e20)
        return m.output(kind, **m.affine(kind, product)) if kind in QUANTIZED else m.output(kind)

    reduction(m, kind, x, output)


@generator("REDUCE_MAX", "float32", "int8", "uint8", "int16", "int32", "int64")
@generator("REDUCE_MIN", "float32", "int8", "uint8", "int16", "int32", "int64")
@generator("REDUCE_ANY", "bool")
@generator("REDUCE_ALL", "bool")
def reduce_same(m, kind):
    x = m.input(kind, m.shape(1, 5))
    reduction(m, kind, x, lambda axes: m.output(kind, **same(m, x)))


@generator("ARG_MAX", "float32", "int8", "uint8", "int32", "bool")
@generator("ARG_MIN", "float32", "int8", "uint8", "int32", "bool")
def arg_max(m, kind):
    shape = m.shape(1, 5)
    x = m.input(kind, shape)
    axis = m.integer(-len(shape), len(shape) - 1)
    axis = m.input_or_constant(m.pick("int32", "int64"), m.pick([], [1]), axis, chance=0.8)
    target = m.pick("int32", "int64")
    m.operator(m.name, [x, axis], [m.output(target)], output_type=target, version=2)


@generator("CUMSUM", "float32", "int32", "int64")
def cumsum(m, kind):
    shape = m.shape(1, 4)
    axis = m.constant("int32", m.integer(-len(shape), len(shape) - 1))
    options = {"exclusive": m.chance(0.5), "reverse": m.chance(0.5)}
    m.operator("CUMSUM", [m.input(kind, shape), axis], [m.output(kind)], **options)


# ---- normalizations ----

FIXED = {
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (2**-15, 0), "int8-int16": (2**-16, -32768)},
    "LOG_SOFTMAX": {"int8": (1 / 16, 127), "uint8": (1 / 16, 255)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
}


@generator("SOFTMAX", "float32", "int8", "uint8", "int16", "int8-int16")
@generator("LOG_SOFTMAX", "float32", "int8", "uint8")
@generator("L2_NORMALIZATION", "float32", "int8", "uint8")
def normalization(m, kind):
    shape = m.shape(1, 4)
    source, *target = kind.split("-")
    parameters = {}
    if source == "float32":
        y = m.output("float32")
    else:
        parameters = m.affine(source, m.rng.uniform(0.5, 12) if m.chance(0.9) else None)
        scale, zero = FIXED[m.name][kind]
        y = m.output(target[0] if target else kind, scale=scale, zero_point=zero)
    x = m.input(source, shape, **parameters)
    options = {"beta": m.pick(1.0, 1.0, 1.0, 0.5, 2.0, 0.1)} if m.name == "SOFTMAX" else {}
    m.operator(m.name, [x], [y], **options, version=3 if (m.name, kind) == ("SOFTMAX", "int16") else 2)


@generator("LOCAL_RESPONSE_NORMALIZATION", "float32")
def local_response_normalization(m, kind):
    x = m.input(kind, m.shape(rank=4))
    options = {
        "radius": m.integer(0, 6),
        "bias": float(m.rng.uniform(0.5, 3)),
        "alpha": float(m.rng.uniform(0.01, 2)),
        "beta": m.pick(0.5, 1.0, 0.75),
    }
    m.operator("LOCAL_RESPONSE_NORMALIZATION", [x], [m.output(kind)], **options)
