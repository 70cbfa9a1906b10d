# SPDX-License-Identifier: Apache-2.0
"""Nets of 3x3 convolutions with RELU, trained with NumPy: what digits.py and shapes.py share."""

from itertools import pairwise

import numpy as np


def patches(x, stride):
    """[n, rows, columns, 9 * channels] of 3x3 windows, padded as TFLite's SAME pads."""
    n, height, width, channels = x.shape
    rows, columns = -(-height // stride), -(-width // stride)
    total = max((rows - 1) * stride + 3 - height, 0), max((columns - 1) * stride + 3 - width, 0)
    before = total[0] // 2, total[1] // 2
    padded = np.pad(x, ((0, 0), (before[0], 2), (before[1], 2), (0, 0)))
    parts = [
        padded[:, i : i + rows * stride : stride, j : j + columns * stride : stride] for i in range(3) for j in range(3)
    ]
    return np.stack(parts, axis=3).reshape(n, rows, columns, 9 * channels), before, padded.shape


def back(gradient, stride, before, padded, shape):
    """The gradient of x from that of its patches."""
    found = np.zeros(padded, np.float32)
    n, rows, columns, _ = gradient.shape
    parts = gradient.reshape(n, rows, columns, 9, -1)
    for place in range(9):
        i, j = divmod(place, 3)
        found[:, i : i + rows * stride : stride, j : j + columns * stride : stride] += parts[:, :, :, place]
    return found[:, before[0] : before[0] + shape[1], before[1] : before[1] + shape[2]]


def first_weights(channels, outputs, random):
    """[9 * inputs, outputs] and biases of the convolutions, then of the last layer."""
    weights = []
    for inputs, made in pairwise(channels):
        weights += [random.normal(0, np.sqrt(2 / (9 * inputs)), (9 * inputs, made)), np.zeros(made)]
    weights += [random.normal(0, np.sqrt(1 / channels[-1]), (channels[-1], outputs)), np.zeros(outputs)]
    return [item.astype(np.float32) for item in weights]


def forward(weights, strides, x):
    """The last convolution's output, and what backward() needs."""
    kept, at = [], x
    for layer, stride in enumerate(strides):
        columns, before, padded = patches(at, stride)
        out = columns @ weights[2 * layer] + weights[2 * layer + 1]
        kept.append((columns, before, padded, at.shape, out))
        at = np.maximum(out, 0)
    return at, kept


def backward(weights, strides, kept, gradient):
    """The gradients of the convolutions' weights and biases from that of their output."""
    gradients = []
    for layer in reversed(range(len(strides))):
        columns, before, padded, shape, out = kept[layer]
        gradient = gradient * (out > 0)
        flat = gradient.reshape(-1, gradient.shape[-1])
        gradients[:0] = [columns.reshape(-1, columns.shape[-1]).T @ flat, flat.sum(axis=0)]
        gradient = back(gradient @ weights[2 * layer].T, strides[layer], before, padded, shape)
    return gradients


def softmax(logits):
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def adam(weights, step, x, y, random, epochs=25, batch=32, rate=3e-3):
    """The weights, trained.  step(weights, x, y): the gradients for a batch."""
    first, second = [np.zeros_like(item) for item in weights], [np.zeros_like(item) for item in weights]
    count = 0
    for epoch in range(epochs):
        order = random.permutation(len(y))
        for start in range(0, len(y) - batch + 1, batch):
            which = order[start : start + batch]
            gradients = step(weights, x[which], y[which])
            count += 1
            now = rate * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
            for place, gradient in enumerate(gradients):
                first[place] = 0.9 * first[place] + 0.1 * gradient
                second[place] = 0.999 * second[place] + 0.001 * np.square(gradient)
                size = np.sqrt(second[place] / (1 - 0.999**count)) + 1e-8
                weights[place] = (weights[place] - now * first[place] / (1 - 0.9**count) / size).astype(np.float32)
    return weights


def add_convolutions(builder, x, size, weights, strides):
    """Adds the convolutions to a tq.ModelBuilder behind a square picture x.  Returns the output and its size."""
    for layer, stride in enumerate(strides):
        inputs, outputs = weights[2 * layer].shape[0] // 9, weights[2 * layer].shape[1]
        size = -(-size // stride)
        w = weights[2 * layer].reshape(3, 3, inputs, outputs).transpose(3, 0, 1, 2)
        y = builder.tensor(f"layer_{layer}", [1, size, size, outputs])
        add_convolution(builder, x, y, w, weights[2 * layer + 1], stride, "RELU")
        x = y
    return x, size


def add_convolution(builder, x, y, w, bias, stride, activation):
    constants = [builder.constant(f"{y.name}_w", np.ascontiguousarray(w)), builder.constant(f"{y.name}_b", bias)]
    builder.operator(
        "CONV_2D", [x, *constants], [y],
        stride_h=stride, stride_w=stride, padding="SAME", fused_activation_function=activation,
        dilation_h_factor=1, dilation_w_factor=1,
    )  # fmt: skip
