# SPDX-License-Identifier: Apache-2.0
"""Custom operators of images and of quantization's tools."""

import flatbuffers.flexbuffers as flexbuffers
import numpy as np

from generators import OPTIMIZED, PUBLISHED, generator


@generator("Convolution2DTransposeBias", "float32", resolver=PUBLISHED)
def transpose_conv_bias(m, kind):
    n, channels, filters = m.integer(1, 2), m.integer(1, 9), m.integer(1, 5)
    shape, window = (
        [n, m.integer(1, 7), m.integer(1, 7), channels],
        [filters, m.integer(1, 4), m.integer(1, 4), channels],
    )
    x = m.input(kind, shape, draw=lambda: m.floats(shape, special=0))
    inputs = [x, m.constant(kind, m.floats(window, special=0)), m.constant(kind, m.floats([filters], special=0))]
    options = np.array([m.integer(1, 2), m.integer(1, 4), m.integer(1, 4)], "<i4")
    m.operator(m.name, inputs, [m.output(kind)], custom_options=options.tobytes())


@generator("MaxUnpooling2D", "float32", resolver=PUBLISHED)
@generator("LiteRtMaxUnpooling2D", "float32", resolver=PUBLISHED)
def max_unpooling(m, kind):
    shape = [m.integer(1, 3), m.integer(1, 6), m.integer(1, 6), m.integer(1, 5)]
    padding, across, down, wide, high = m.integer(1, 2), *(m.integer(1, 3) for _ in range(4))
    rows, columns = shape[1] * down, shape[2] * across
    if padding == 2:
        rows, columns = (shape[1] - 1) * down + high, (shape[2] - 1) * across + wide
    places = m.integers("int32", shape, 0, rows * columns * shape[3] - 1)
    options = np.array([padding, across, down, wide, high, 0, 0, 0, 0, 0], "<i4")
    inputs = [m.input(kind, shape), m.input_or_constant("int32", shape, places)]
    m.operator(m.name, inputs, [m.output(kind)], custom_options=options.tobytes())


@generator("aeq.hadamard_rotation", "float32", resolver=OPTIMIZED)
def hadamard(m, kind):
    size = 2 ** m.integer(0, 8)
    shape = [*m.shape(1, 2, 12), size * m.integer(1, 3)]
    x = m.input(kind, shape, draw=lambda: m.floats(shape, special=0))
    options = flexbuffers.Dumps({"hadamard_size": size})
    m.operator(m.name, [x], [m.output(kind, shape)], custom_options=options)
    m.fixed = True


@generator("NumericVerify", "int8", "uint8", "int16", "float16", resolver=OPTIMIZED)
def numeric_verify(m, kind):
    shape = m.shape(1, 4)
    options = flexbuffers.Dumps({"tolerance": m.pick(0.05, 5.0), "log_if_failed": m.chance(0.2)})
    inputs = [m.input(kind, shape), m.input("float32", shape, draw=lambda: m.floats(shape, special=0))]
    m.operator(m.name, inputs, [m.output("float32", shape)], custom_options=options)
    m.fixed = True
