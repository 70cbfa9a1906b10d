# SPDX-License-Identifier: Apache-2.0
"""Custom operators as their published definitions have them, in NumPy: an interpreter of models of one operator."""

import numpy as np

import tq

SAME = 1


def transpose_conv_bias(options, x, weights, bias):
    """MediaPipe's Convolution2DTransposeBias: every cell is spread over the output, which begins as the bias."""
    padding, across, down = np.frombuffer(options, "<i4")[:3]
    filters, strides, sizes = weights.shape[1:3], (down, across), x.shape[1:3]
    pads = [
        max(0, k - (n - 1) % s - 1) if padding == SAME else 0 for k, s, n in zip(filters, strides, sizes, strict=True)
    ]
    whole = [s * (n - 1) + k for k, s, n in zip(filters, strides, sizes, strict=True)]
    image = np.zeros((x.shape[0], *whole, weights.shape[0]))
    for y in range(sizes[0]):
        for z in range(sizes[1]):
            spread = np.einsum("nc,ohwc->nhwo", x[:, y, z].astype(float), weights.astype(float))
            image[:, y * down : y * down + filters[0], z * across : z * across + filters[1]] += spread
    front = [p // 2 for p in pads]
    cut = image[:, front[0] : front[0] + whole[0] - pads[0], front[1] : front[1] + whole[1] - pads[1]]
    return (cut + bias).astype(np.float32)


def max_unpooling(options, x, places):
    padding, across, down, wide, high = np.frombuffer(options, "<i4")[:5]
    n, h, w, c = x.shape
    size = (h * down, w * across) if padding == SAME else ((h - 1) * down + high, (w - 1) * across + wide)
    out = np.zeros((n, int(np.prod(size)) * c), np.float32)
    for image, values, at in zip(out, x.reshape(n, -1), places.reshape(n, -1), strict=True):
        image[at] = values
    return out.reshape(n, *size, c)


OPERATORS = {
    "Convolution2DTransposeBias": transpose_conv_bias,
    "MaxUnpooling2D": max_unpooling,
    "LiteRtMaxUnpooling2D": max_unpooling,
}


class Interpreter:
    """As LiteRT's, as far as oracle.py asks it."""

    def __init__(self, source):
        self.graph = tq.Model(source).subgraphs[0]
        self.values = {tensor.index: tensor.data for tensor in self.graph.tensors if tensor.is_constant}

    def resize_tensor_input(self, index, shape):
        pass

    def allocate_tensors(self):
        pass

    def set_tensor(self, index, value):
        self.values[index] = value

    def invoke(self):
        (item,) = self.graph.operators
        given = (self.values[index] for index in item.input_indices)
        self.values[item.output_indices[0]] = OPERATORS[item.name](item.custom_options, *given)

    def get_tensor(self, index):
        return self.values[index]
