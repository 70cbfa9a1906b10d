# SPDX-License-Identifier: Apache-2.0
"""A classifier of small pictures, with pictures and their labels."""

import numpy as np
from models import build_model, operator, tensor

import tq
from tq.calibration.normalization import KEY

f32 = np.float32
RANDOM = np.random.default_rng(3)
WEIGHTS = RANDOM.normal(size=(3, 12)).astype(f32)
SHAPE = [1, 2, 2, 3]


def classifier(metadata=None, kind="FLOAT32", **quantization):
    """Three classes of pictures of 2 x 2 pixels."""
    made = build_model(
        [
            tensor("image", SHAPE, kind, **quantization),
            tensor("w", shape=[3, 12], data=WEIGHTS),
            tensor("scores", shape=[1, 3]),
        ],
        [operator("FULLY_CONNECTED", [0, 1, -1], [2])],
        inputs=[0],
        outputs=[2],
    )
    if metadata is None:
        return made
    editor = tq.edit(made)
    editor.metadata[KEY] = metadata
    return editor.to_bytes()


IMAGES = RANDOM.normal(size=(6, *SHAPE)).astype(f32)
TRUE = [int(np.argmax(WEIGHTS @ image.ravel())) for image in IMAGES]
