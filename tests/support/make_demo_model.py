# SPDX-License-Identifier: Apache-2.0
"""Makes tq/demo.tflite, the small quantized network that `tq demo` opens.

    python tests/support/make_demo_model.py [OUT]

It tells horizontal from vertical stripes in an 8 x 8 RGB image, with filters written by hand: two convolutions, a
mean over the image, and a dense layer.  Activations are int8 per tensor, weights int8 per axis, biases int32; every
quantized tensor stores the min and max that its scale was made from, so that all of what tq shows is there to see.
The same bytes come out on every machine: all numbers are integers, or float32 made by one rounding each.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # a safe path leaves the script's own folder out
import built  # noqa: F401
from models import build_model, operator, signature, tensor

OUT = Path(__file__).resolve().parents[2] / "tq" / "demo.tflite"

# The range of the input: its scale is (max - min) / 255 in float32, its zero point 3.
INPUT = {"scale": 0.012566017, "zero_point": 3, "min": -1.6488091, "max": 1.5555250644683838}
CONV = {"scale": 0.03125, "zero_point": -128, "min": 0.0, "max": 7.96875}
DEPTHWISE = {"scale": 0.0625, "zero_point": -128, "min": 0.0, "max": 15.9375}
LOGITS = {"scale": 0.125, "zero_point": 0, "min": -16.0, "max": 15.875}
PROBABILITIES = {"scale": 1 / 256, "zero_point": -128, "min": 0.0, "max": 255 / 256}


def filters():
    """float32 [4, 3, 3, 3] (output, height, width, input): the first two see vertical edges, the others horizontal."""
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    gains = np.array([0.5, 0.25, 0.125], np.float32)  # red, green, blue
    edges = [sobel, -sobel, sobel.T, -sobel.T]
    strengths = [1.0, 0.8125, 1.25, 0.6875]  # so that every channel has a scale of its own
    return np.stack([e[:, :, None] * gains * np.float32(s) for e, s in zip(edges, strengths, strict=True)])


def blurs():
    """float32 [1, 3, 3, 4] (1, height, width, channel)."""
    kernel = np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16
    return (kernel[:, :, None] * np.array([1.0, 1.125, 0.875, 1.25], np.float32))[None]


def dense():
    """float32 [2, 4] (class, channel): vertical edges speak for class 0, horizontal ones for class 1."""
    return np.array([[1.5, 1.75, -1.5, -1.25], [-1.25, -1.5, 1.5, 1.75]], np.float32)


def per_axis(weights, axis):
    """Symmetric int8 values of `weights` and their parameters: one scale an index of `axis`, zero points 0."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    limit = np.abs(weights).max(axis=others, keepdims=True)
    scale = limit / np.float32(127)
    codes = np.rint(weights / scale).astype(np.int8)
    return codes, {
        "scale": scale.ravel(),
        "zero_point": np.zeros(limit.size, int),
        "min": -limit.ravel(),
        "max": limit.ravel(),
        "quantized_dimension": axis,
    }


def bias(values, input_scale, weights):
    """int32 values, whose scales are the products of the input's and the weights' scales."""
    scale = np.float32(input_scale) * weights["scale"]
    codes = np.rint(np.asarray(values, np.float32) / scale).astype(np.int32)
    return codes, {"scale": scale, "zero_point": np.zeros(scale.size, int)}


def make():
    """The file's bytes."""
    conv, conv_parameters = per_axis(filters(), 0)
    conv_bias, conv_bias_parameters = bias([0.25, 0.125, 0.25, 0.125], INPUT["scale"], conv_parameters)
    blur, blur_parameters = per_axis(blurs(), 3)
    blur_bias, blur_bias_parameters = bias([0.0, 0.0625, 0.0, -0.0625], CONV["scale"], blur_parameters)
    fc, fc_parameters = per_axis(dense(), 0)
    fc_bias, fc_bias_parameters = bias([0.5, -0.5], DEPTHWISE["scale"], fc_parameters)
    return build_model(
        tensors=[
            tensor("image", [1, 8, 8, 3], "INT8", shape_signature=[-1, 8, 8, 3], **INPUT),
            tensor("edges/filter", [4, 3, 3, 3], "INT8", conv, **conv_parameters),
            tensor("edges/bias", [4], "INT32", conv_bias, **conv_bias_parameters),
            tensor("edges", [1, 8, 8, 4], "INT8", shape_signature=[-1, 8, 8, 4], **CONV),
            tensor("blur/filter", [1, 3, 3, 4], "INT8", blur, **blur_parameters),
            tensor("blur/bias", [4], "INT32", blur_bias, **blur_bias_parameters),
            tensor("blur", [1, 4, 4, 4], "INT8", shape_signature=[-1, 4, 4, 4], **DEPTHWISE),
            tensor("mean/axes", [2], "INT32", np.array([1, 2], np.int32)),
            tensor("mean", [1, 4], "INT8", shape_signature=[-1, 4], **DEPTHWISE),
            tensor("dense/weights", [2, 4], "INT8", fc, **fc_parameters),
            tensor("dense/bias", [2], "INT32", fc_bias, **fc_bias_parameters),
            tensor("logits", [1, 2], "INT8", shape_signature=[-1, 2], **LOGITS),
            tensor("probabilities", [1, 2], "INT8", shape_signature=[-1, 2], **PROBABILITIES),
        ],
        operators=[
            operator("CONV_2D", [0, 1, 2], [3], stride_w=1, stride_h=1, fused_activation_function="RELU", version=3),
            operator(
                "DEPTHWISE_CONV_2D",
                [3, 4, 5],
                [6],
                stride_w=2,
                stride_h=2,
                depth_multiplier=1,
                fused_activation_function="RELU",
                version=3,
            ),
            operator("MEAN", [6, 7], [8], keep_dims=False, version=2),
            operator("FULLY_CONNECTED", [8, 9, 10], [11], version=4),
            operator("SOFTMAX", [11], [12], beta=1.0, version=2),
        ],
        inputs=[0],
        outputs=[12],
        signatures=[signature("serving_default", {"image": 0}, {"probabilities": 12})],
        metadata={"min_runtime_version": b"1.14.0".ljust(16, b"\0")},
        description="Tells vertical stripes from horizontal ones",
    )


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else OUT).write_bytes(make())
