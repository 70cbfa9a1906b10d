# SPDX-License-Identifier: Apache-2.0
"""A float model to quantize, and pictures for it: `tq demo --write FOLDER`.

The net classifies the direction of stripes in a picture of 32 x 32 pixels: edge filters in eight directions, each with
its negative, a blur, the sum of each pair, the mean over the picture, and a dense layer.  Its channels have unequal
scales, for which later layers compensate, as in trained nets; this makes it hard to quantize.  All weights are
multiples of 2^-10, so that the bytes are the same on every machine.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from tq.editing.builder import ModelBuilder
from tq.inspection.export import write_npz
from tq.saving import Target

CLASSES = ("horizontal", "rising", "vertical", "falling")
_DIRECTIONS, _SIZE = 8, 32
_GAINS = 2.0 ** np.array([0, -3, 1, -2, -4, 0, -1, 2])  # of the directions' channels


def _exact(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return (np.rint(values * 1024) / 1024).astype(np.float32)


def _filters() -> NDArray[np.float64]:
    """[16, 5, 5, 3]: derivatives of a Gaussian in eight directions, then their negatives."""
    y, x = np.mgrid[-2:3, -2:3].astype(np.float64)
    angles = np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    across = np.cos(angles)[:, None, None] * y - np.sin(angles)[:, None, None] * x
    edges = across * np.exp(-(x**2 + y**2) / 3) * _GAINS[:, None, None]
    one = edges[..., None] * np.array([0.5, 0.35, 0.15])
    return np.concatenate([one, -one])


def float_model() -> bytes:
    """The bytes of the net, float32: input "picture" [1, 32, 32, 3] between -1 and 1, output "direction" [1, 4]."""
    b = ModelBuilder(description="tq's float demonstration model")
    half, quarter = _SIZE // 2, _SIZE // 4
    picture = b.input("picture", [1, _SIZE, _SIZE, 3])
    steps = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "RELU"}
    filters, gains = _filters(), np.concatenate([_GAINS, _GAINS])
    edges = b.tensor("edges", [1, half, half, 16])
    weights, bias = b.constant("edges/weights", _exact(filters)), b.constant("edges/bias", _exact(-0.02 * gains))
    b.operator("CONV_2D", [picture, weights, bias], [edges], **steps)
    blur = np.outer([1, 2, 1], [1, 2, 1])[None, :, :, None] / 16.0 * np.ones(16)
    soft = b.tensor("soft", [1, quarter, quarter, 16])
    weights, bias = b.constant("soft/weights", _exact(blur)), b.constant("soft/bias", _exact(np.zeros(16)))
    b.operator("DEPTHWISE_CONV_2D", [edges, weights, bias], [soft], depth_multiplier=1, **steps)
    pairs = np.concatenate([np.diag(1 / _GAINS), np.diag(1 / _GAINS)], axis=1)
    energy = b.tensor("energy", [1, quarter, quarter, 8])
    weights, bias = (
        b.constant("energy/weights", _exact(pairs[:, None, None])),
        b.constant("energy/bias", _exact(np.zeros(8))),
    )
    b.operator("CONV_2D", [soft, weights, bias], [energy], **{**steps, "stride_w": 1, "stride_h": 1})
    mean = b.tensor("mean", [1, 8])
    b.operator("MEAN", [energy, b.constant("mean/axes", np.array([1, 2], np.int32))], [mean], keep_dims=False)
    angles = np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    classes = np.pi * np.arange(len(CLASSES)) / len(CLASSES)
    dense = 3 * np.cos(2 * (angles[None] - classes[:, None]))
    scores = b.tensor("scores", [1, len(CLASSES)])
    weights, bias = (
        b.constant("scores/weights", _exact(dense)),
        b.constant("scores/bias", _exact(np.zeros(len(CLASSES)))),
    )
    b.operator("FULLY_CONNECTED", [mean, weights, bias], [scores])
    direction = b.tensor("direction", [1, len(CLASSES)])
    b.operator("SOFTMAX", [scores], [direction], beta=1.0)
    b.output(direction)
    return b.to_bytes()


def pictures(count: int = 32, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """(pictures of stripes with noise, float32 [count, 1, 32, 32, 3]; their classes, int64 [count])."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % len(CLASSES)
    angles = np.pi * labels / len(CLASSES) + random.uniform(-0.2, 0.2, count)
    y, x = np.mgrid[:_SIZE, :_SIZE].astype(np.float64)
    waves = np.cos(angles)[:, None, None] * y - np.sin(angles)[:, None, None] * x
    widths, shifts = random.uniform(0.6, 1.1, count), random.uniform(0, 6, count)
    stripes = (
        np.sin(waves * widths[:, None, None] + shifts[:, None, None]) * random.uniform(0.4, 0.9, count)[:, None, None]
    )
    colors = stripes[..., None] * random.uniform(0.6, 1.0, (count, 1, 1, 3))
    noisy = np.clip(colors + random.normal(0, 0.05, colors.shape), -1, 1)
    return noisy[:, None].astype(np.float32), labels


def write(folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Writes demo_float.tflite and demo_samples.npz into an existing folder; returns their paths.

    OSError: a file cannot be written.
    """
    model, samples = (os.path.join(folder, name) for name in ("demo_float.tflite", "demo_samples.npz"))
    Target(model).save(float_model())
    values, labels = pictures()
    write_npz(samples, {"picture": values, "labels": labels})
    return model, samples
