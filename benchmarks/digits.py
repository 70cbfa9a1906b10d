# SPDX-License-Identifier: Apache-2.0
"""A small net for scikit-learn's handwritten digits, trained with NumPy: accuracy on data with labels.

    python benchmarks/digits.py OUT.tflite

Three convolutions of 3x3, a mean and a fully connected layer, 11 000 weights; Adam on 1 297 of the 1 797 pictures of
8 x 8 pixels, the other 500 to test with.
"""

import sys

import numpy as np
import training

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


def step(weights, x, y):
    """The gradients of all weights for a batch."""
    at, kept = training.forward(weights, STRIDES, x)
    mean = at.mean(axis=(1, 2))
    p = training.softmax(mean @ weights[-2] + weights[-1])
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    gradient = np.broadcast_to((p @ weights[-2].T)[:, None, None] / (at.shape[1] * at.shape[2]), at.shape)
    return [*training.backward(weights, STRIDES, kept, gradient), mean.T @ p, p.sum(axis=0)]


def train(x, y):
    random = np.random.default_rng(1)
    return training.adam(training.first_weights(CHANNELS, 10, random), step, x, y, random)


def model(weights):
    """The float model."""
    b = tq.ModelBuilder()
    x, _size = training.add_convolutions(b, b.input("picture", [1, 8, 8, 1]), 8, weights, STRIDES)
    mean, out = b.tensor("mean", [1, CHANNELS[-1]]), b.tensor("digit", [1, 10])
    b.operator("MEAN", [x, b.constant("axes", np.array([1, 2], np.int32))], [mean], keep_dims=False)
    last = [b.constant("w", np.ascontiguousarray(weights[-2].T)), b.constant("b", weights[-1])]
    b.operator("FULLY_CONNECTED", [mean, *last], [out])
    b.output(out)
    return b.to_bytes()


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(model(train(*data()[0])))
