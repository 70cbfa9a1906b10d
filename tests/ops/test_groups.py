# SPDX-License-Identifier: Apache-2.0
"""A convolution of groups gives what convolutions of each group give, a dilated one what its taps among zeros give."""

import numpy as np
import pytest

import tq

SHAPES = [  # groups, input and output channels of a group, filter height and width, dilation, batch
    (2, 3, 5, 3, 3, 1, 1),
    (32, 4, 4, 3, 3, 1, 1),
    (12, 2, 3, 1, 1, 1, 2),
    (8, 2, 2, 3, 3, 1, 1),
    (6, 3, 3, 3, 3, 1, 2),
    (9, 3, 4, 3, 3, 1, 1),
    (8, 8, 2, 3, 1, 2, 1),
    (16, 1, 2, 3, 3, 1, 1),
    (4, 16, 16, 3, 3, 2, 2),
    (6, 5, 4, 2, 5, 1, 1),
]
KINDS = ["int8", "uint8", "int16", "float32", "hybrid"]


def run(kind, x, weights, biases, scales, dilation, numerics, constant):
    build = tq.ModelBuilder()
    zero = {"int8": -7, "uint8": 120, "int16": 0}.get(kind)
    floats = kind in ("float32", "hybrid")
    parameters = {} if floats else {"scale": 0.03, "zero_point": zero}
    source = build.input("x", x.shape, str(x.dtype), **parameters)
    axis = {"quantized_dimension": 0} if kind in ("int8", "int16", "hybrid") else {}
    of_weights = (
        {} if kind == "float32" else {"scale": scales if axis else 0.01, "zero_point": 3 if kind == "uint8" else 0}
    )
    if axis:
        of_weights["zero_point"] = [0] * len(scales)
    if constant:
        w = build.tensor("w", data=weights, **of_weights, **axis)
    else:
        w = build.input("w", weights.shape, str(weights.dtype), **of_weights, **axis)
    of_bias = (
        {}
        if floats
        else {
            "scale": 0.0003 if kind == "uint8" else 0.03 * np.array(scales),
            "zero_point": 0 if kind == "uint8" else [0] * len(scales),
        }
    )
    bias = build.tensor("b", data=biases, **of_bias, **(axis if of_bias else {}))
    height, width = x.shape[1] - (weights.shape[1] - 1) * dilation, x.shape[2] - (weights.shape[2] - 1) * dilation
    out = build.tensor(
        "y",
        (x.shape[0], height, width, len(weights)),
        str(x.dtype),
        **({} if floats else {"scale": 0.05, "zero_point": zero}),
    )
    options = {"dilation_h_factor": dilation, "dilation_w_factor": dilation, "stride_h": 1, "stride_w": 1}
    build.operator("CONV_2D", [source, w, bias], [out], padding="VALID", **options)
    build.output(out)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics=numerics)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    if not constant:
        interpreter.set_tensor(1, weights)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def draw(rng, kind, *shape):
    if kind == "float32":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


@pytest.mark.parametrize(("numerics", "constant"), [("reference", True), ("reference", False), ("xnnpack", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_each_group_by_itself_gives_the_same(kind, numerics, constant):
    rng = np.random.default_rng(0)
    for groups, depth, each, high, wide, dilation, batch in SHAPES:
        if kind == "hybrid" and high * wide == 1 and numerics == "xnnpack":
            continue  # a group by itself is fully connected there, and quantizes each pixel
        x = draw(rng, "float32" if kind == "hybrid" else kind, batch, 11, 9, groups * depth)
        if kind == "hybrid":  # all groups have the image's range
            x[:, 0, 0], x[:, 5, 5] = -9, 8
        weights = draw(rng, "int8" if kind in ("int16", "hybrid") else kind, groups * each, high, wide, depth)
        if weights.dtype == np.int8:
            weights[weights == -128] = -127
        biases = rng.integers(-3000, 3000, len(weights)).astype("float32" if kind in ("float32", "hybrid") else "int32")
        scales = (0.002 + 0.003 * rng.random(len(weights))).astype(np.float32)
        whole = run(kind, x, weights, biases, scales.tolist(), dilation, numerics, constant)
        for g in range(groups):
            of, ins = slice(g * each, (g + 1) * each), slice(g * depth, (g + 1) * depth)
            one = run(
                kind,
                np.ascontiguousarray(x[..., ins]),
                weights[of],
                biases[of],
                scales[of].tolist(),
                dilation,
                numerics,
                constant,
            )
            np.testing.assert_array_equal(whole[..., of], one, err_msg=f"group {g} of {groups}, depth {depth}")


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "float32"])
def test_a_batch_gives_what_its_images_give(kind, numerics):
    rng = np.random.default_rng(0)
    for groups, depth, each, high, wide, dilation, _ in SHAPES:
        x = draw(rng, kind, 3, 11, 9, groups * depth)
        weights = draw(rng, kind, groups * each, high, wide, depth)
        if kind == "int8":
            weights[weights == -128] = -127
        biases = rng.integers(-3000, 3000, len(weights)).astype("float32" if kind == "float32" else "int32")
        scales = (0.002 + 0.003 * rng.random(len(weights))).astype(np.float32).tolist()
        whole = run(kind, x, weights, biases, scales, dilation, numerics, True)
        for image, found in zip(x, whole, strict=True):
            alone = run(kind, image[None], weights, biases, scales, dilation, numerics, True)
            np.testing.assert_array_equal(found, alone[0], err_msg=f"{groups} groups, depth {depth}")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "float32"])
def test_a_dilated_filter_gives_what_its_taps_among_zeros_give(kind):
    rng = np.random.default_rng(0)
    for depth in (1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 33):  # pixels of 1 to 132 bytes
        x = draw(rng, kind, 2, 13, 11, depth)
        weights = draw(rng, "int8" if kind == "int16" else kind, 6, 3, 3, depth)
        if weights.dtype == np.int8:
            weights[weights == -128] = -127
        among = np.full((6, 5, 5, depth), 3 if kind == "uint8" else 0, weights.dtype)  # the zero point
        among[:, ::2, ::2] = weights
        biases = rng.integers(-3000, 3000, 6).astype("float32" if kind == "float32" else "int32")
        scales = (0.002 + 0.003 * rng.random(6)).astype(np.float32).tolist()
        dilated = run(kind, x, weights, biases, scales, 2, "reference", True)
        plain = run(kind, x, among, biases, scales, 1, "reference", True)
        np.testing.assert_array_equal(dilated, plain, err_msg=f"depth {depth}")
