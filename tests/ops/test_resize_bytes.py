# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR of UINT8 has the bits of its formula in float32, where it runs in fixed point, too."""

import numpy as np
import pytest

import tq

F32 = np.float32


def samples(size, out, half_pixel):
    """Of each output index: both input indices, and the second one's weight."""
    scale = F32(size) / F32(out)
    at = np.arange(out, dtype=F32)
    v = (at + F32(0.5)) * scale - F32(0.5) if half_pixel else at * scale
    low = np.clip(np.floor(v), 0, size - 1).astype(int)
    return low, np.clip(np.ceil(v), 0, size - 1).astype(int), v - low.astype(F32)


def resized(image, height, width, half_pixel):
    top, bottom, y = samples(image.shape[1], height, half_pixel)
    left, right, x = samples(image.shape[2], width, half_pixel)
    y, x = y[:, np.newaxis, np.newaxis], x[:, np.newaxis]

    def part(rows, columns, *weights):
        found = image[:, rows][:, :, columns].astype(F32)
        for weight in weights:
            found = found * weight
        return found

    total = part(top, left, 1 - y, 1 - x) + part(bottom, left, y, 1 - x)
    total = total + part(top, right, 1 - y, x) + part(bottom, right, y, x)
    return (total + F32(0.5)).astype(int).astype(np.uint8)


@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("size", [(14, 26), (28, 52), (7, 104), (448, 13), (14, 17), (3, 6), (21, 39), (11, 12)])
@pytest.mark.parametrize("channels", [1, 3, 7, 8, 13, 37])
def test_resizes_of_bytes_have_the_formulas_bits(half_pixel, size, channels):
    image = np.random.default_rng(channels).integers(0, 256, (2, 7, 13, channels)).astype(np.uint8)
    build = tq.ModelBuilder()
    x = build.input("x", image.shape, "UINT8", scale=0.1, zero_point=7)
    y = build.tensor("y", (2, *size, channels), "UINT8", scale=0.1, zero_point=7)
    sizes = build.tensor("size", data=np.int32(size))
    build.operator("RESIZE_BILINEAR", [x, sizes], [y], align_corners=False, half_pixel_centers=half_pixel)
    build.output(y)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(found, resized(image, *size, half_pixel))
