# SPDX-License-Identifier: Apache-2.0
"""A small net for scikit-learn's handwritten digits, trained with NumPy: accuracy on data with labels.

    python benchmarks/digits.py OUT.tflite

Three convolutions of 3x3, a mean and a fully connected layer, 11 000 weights; Adam on 1 297 of the 1 797 pictures of
8 x 8 pixels, the other 500 to test with.
"""

import sys
from itertools import pairwise

import numpy as np

import tq

CHANNELS = (1, 16, 24, 32)
STRIDES = (1, 2, 1)
TEST = 500


def data():
    """(pictures [n, 8, 8, 1] from 0 to 1, labels) to train with, and the same to test with."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    x = (found.images[order, :, :, None] / 16).astype(np.float32)
    y = found.target[order]
    return (x[TEST:], y[TEST:]), (x[:TEST], y[:TEST])


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


def step(weights, x, y):
    """The gradients of all weights, and the loss, for a batch."""
    kept, at = [], x
    for layer, stride in enumerate(STRIDES):
        columns, before, padded = patches(at, stride)
        out = columns @ weights[2 * layer] + weights[2 * layer + 1]
        kept.append((columns, before, padded, at.shape, out))
        at = np.maximum(out, 0)
    mean = at.mean(axis=(1, 2))
    logits = mean @ weights[-2] + weights[-1]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    gradients = [mean.T @ p, p.sum(axis=0)]
    gradient = np.broadcast_to((p @ weights[-2].T)[:, None, None] / (at.shape[1] * at.shape[2]), at.shape)
    for layer in reversed(range(len(STRIDES))):
        columns, before, padded, shape, out = kept[layer]
        gradient = gradient * (out > 0)
        flat = gradient.reshape(-1, gradient.shape[-1])
        gradients[:0] = [columns.reshape(-1, columns.shape[-1]).T @ flat, flat.sum(axis=0)]
        gradient = back(gradient @ weights[2 * layer].T, STRIDES[layer], before, padded, shape)
    return gradients, loss


def train(x, y, epochs=25, batch=32, rate=3e-3):
    """The weights: [9 * inputs, outputs] and biases of the convolutions, then of the last layer."""
    random = np.random.default_rng(1)
    weights = []
    for inputs, outputs in pairwise(CHANNELS):
        weights += [random.normal(0, np.sqrt(2 / (9 * inputs)), (9 * inputs, outputs)), np.zeros(outputs)]
    weights += [random.normal(0, np.sqrt(1 / CHANNELS[-1]), (CHANNELS[-1], 10)), np.zeros(10)]
    weights = [item.astype(np.float32) for item in weights]
    first, second = [np.zeros_like(item) for item in weights], [np.zeros_like(item) for item in weights]
    count = 0
    for epoch in range(epochs):
        order = random.permutation(len(y))
        for start in range(0, len(y) - batch + 1, batch):
            which = order[start : start + batch]
            gradients, _ = step(weights, x[which], y[which])
            count += 1
            now = rate * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
            for place, gradient in enumerate(gradients):
                first[place] = 0.9 * first[place] + 0.1 * gradient
                second[place] = 0.999 * second[place] + 0.001 * np.square(gradient)
                size = np.sqrt(second[place] / (1 - 0.999**count)) + 1e-8
                weights[place] = (weights[place] - now * first[place] / (1 - 0.9**count) / size).astype(np.float32)
    return weights


def model(weights):
    """The float model."""
    b = tq.ModelBuilder()
    x, size = b.input("picture", [1, 8, 8, 1]), 8
    for layer, stride in enumerate(STRIDES):
        inputs, outputs = CHANNELS[layer : layer + 2]
        size = -(-size // stride)
        w = weights[2 * layer].reshape(3, 3, inputs, outputs).transpose(3, 0, 1, 2)
        y = b.tensor(f"layer_{layer}", [1, size, size, outputs])
        constants = [b.constant(f"w{layer}", np.ascontiguousarray(w)), b.constant(f"b{layer}", weights[2 * layer + 1])]
        b.operator(
            "CONV_2D", [x, *constants], [y],
            stride_h=stride, stride_w=stride, padding="SAME", fused_activation_function="RELU",
            dilation_h_factor=1, dilation_w_factor=1,
        )  # fmt: skip
        x = y
    mean, out = b.tensor("mean", [1, CHANNELS[-1]]), b.tensor("digit", [1, 10])
    b.operator("MEAN", [x, b.constant("axes", np.array([1, 2], np.int32))], [mean], keep_dims=False)
    last = [b.constant("w", np.ascontiguousarray(weights[-2].T)), b.constant("b", weights[-1])]
    b.operator("FULLY_CONNECTED", [mean, *last], [out])
    b.output(out)
    return b.to_bytes()


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(model(train(*data()[0])))
