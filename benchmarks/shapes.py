# SPDX-License-Identifier: Apache-2.0
"""A small detector of shapes in pictures made for it, trained with NumPy: mean average precision with known answers.

    python benchmarks/shapes.py OUT.tflite

One to four squares, crosses and rings of several sizes and contrasts in noise, 32 x 32 pixels; the net says of each of
8 x 8 cells whether a shape has its middle there, and which.  Three convolutions of 3x3 and one of 1x1, 11 000 weights;
Adam on 3000 pictures; 500 others to test with.
"""

import sys

import numpy as np
import training

import tq

SIZE, CELL = 32, 4
CHANNELS = (1, 16, 24, 32)
STRIDES = (2, 2, 1)
KINDS = ("square", "cross", "ring")
NOTHING = len(KINDS)


def shape(kind, radius):
    """A picture of 0 and 1 of 2 radius + 1 pixels a side."""
    rows, columns = np.abs(np.mgrid[-radius : radius + 1, -radius : radius + 1])
    far = np.hypot(rows, columns)
    drawn = {
        "square": np.maximum(rows, columns) == radius,
        "cross": np.minimum(rows, columns) == 0,
        "ring": np.abs(far - radius) < 0.7,
    }
    return drawn[kind].astype(np.float32)


def pictures(count, seed):
    """(pictures [n, 32, 32, 1], the kind of each cell [n, 8, 8])."""
    random = np.random.default_rng(seed)
    x = random.normal(0, 0.3, (count, SIZE, SIZE, 1)).astype(np.float32)
    y = np.full((count, SIZE // CELL, SIZE // CELL), NOTHING)
    for picture, cells in zip(x, y, strict=True):
        for _ in range(random.integers(1, 5)):
            radius, kind = random.integers(2, 5), random.integers(len(KINDS))
            row, column = random.integers(radius, SIZE - radius, 2)
            around = cells[max(row // CELL - 2, 0) : row // CELL + 3, max(column // CELL - 2, 0) : column // CELL + 3]
            if (around != NOTHING).any():
                continue  # shapes do not touch
            place = slice(row - radius, row + radius + 1), slice(column - radius, column + radius + 1)
            picture[(*place, 0)] += random.uniform(0.5, 1.5) * shape(KINDS[kind], radius)
            cells[row // CELL, column // CELL] = kind
    return x, y


def data():
    """Pictures and cells to train with, and the same to test with."""
    return pictures(3000, 1), pictures(500, 2)


def step(weights, x, y):
    """The gradients of all weights for a batch."""
    at, kept = training.forward(weights, STRIDES, x)
    p = training.softmax(at @ weights[-2] + weights[-1])
    p -= np.eye(NOTHING + 1, dtype=p.dtype)[y]
    p /= len(y)
    flat = p.reshape(-1, p.shape[-1])
    last = [at.reshape(len(flat), -1).T @ flat, flat.sum(axis=0)]
    return [*training.backward(weights, STRIDES, kept, p @ weights[-2].T), *last]


def train(x, y):
    random = np.random.default_rng(1)
    return training.adam(training.first_weights(CHANNELS, NOTHING + 1, random), step, x, y, random, epochs=12)


def model(weights):
    """The float model."""
    b = tq.ModelBuilder()
    x, size = training.add_convolutions(b, b.input("picture", [1, SIZE, SIZE, 1]), SIZE, weights, STRIDES)
    out = b.tensor("cells", [1, size, size, NOTHING + 1])
    training.add_convolution(b, x, out, weights[-2].T[:, None, None], weights[-1], 1, "NONE")
    b.output(out)
    return b.to_bytes()


def mean_average_precision(logits, y):
    """In percent, over kinds: of all cells in the order of their scores, the area under precision over recall."""
    scores = training.softmax(np.asarray(logits, np.float64)).reshape(-1, NOTHING + 1)
    found = []
    for kind in range(NOTHING):
        right = (y.ravel() == kind)[np.argsort(-scores[:, kind], kind="stable")]
        precision = np.cumsum(right) / np.arange(1, len(right) + 1)
        best = np.maximum.accumulate(precision[::-1])[::-1]  # at this recall or a higher one
        found.append(best[right].mean())
    return 100 * float(np.mean(found))


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(model(train(*data()[0])))
