# SPDX-License-Identifier: Apache-2.0
"""Float depthwise convolutions of few channels, stride 1, which run by image lines, give LiteRT's bits."""

import itertools

import numpy as np
import oracle
import pytest

import tq

CHANNELS = (1, 3, 8, 12, 16, 24, 40, 72)
FILTERS = ((3, 3), (1, 5), (5, 2))
# numerics: the resolver of the same kernels
RESOLVERS = {"reference": "BUILTIN_REF", "xnnpack": "AUTO"}


def model(channels, taps, dilation, padding, shape):
    rng = np.random.default_rng(channels)
    height, width = ((n if padding == "SAME" else n - (k - 1) * dilation) for n, k in zip(shape, taps, strict=True))
    build = tq.ModelBuilder()
    x = build.input("x", (2, *shape, channels), "FLOAT32")
    weights = build.tensor("weights", data=rng.standard_normal((1, *taps, channels)).astype(np.float32))
    bias = build.tensor("bias", data=rng.standard_normal(channels).astype(np.float32))
    y = build.tensor("y", (2, height, width, channels), "FLOAT32")
    factors = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": dilation, "dilation_w_factor": dilation}
    build.operator(
        "DEPTHWISE_CONV_2D", [x, weights, bias], [y], padding=padding, depth_multiplier=1, **factors,
        fused_activation_function="RELU6",
    )  # fmt: skip
    build.output(y)
    return build.to_bytes(), rng.standard_normal(x.shape).astype(np.float32)


def result(data, x, numerics, threads):
    interpreter = tq.Interpreter(model_content=data, numerics=numerics, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("numerics", RESOLVERS)
def test_few_channels_give_litert_bits_on_one_thread_and_two(numerics):
    cases = []
    for number, (channels, taps) in enumerate(itertools.product(CHANNELS, FILTERS)):
        # wide enough that two threads divide it; lines that end within a block of vectors
        data, x = model(channels, taps, 1 + number % 2, ("SAME", "VALID")[number // 2 % 2], (17, 29))
        cases.append((data, x, tq.Model(data).outputs[0].index))
    questions = [(data, RESOLVERS[numerics], [{0: x}], {}, [output]) for data, x, output in cases]
    for (data, x, output), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        for threads in (1, 2):
            np.testing.assert_array_equal(result(data, x, numerics, threads), answer[0][output])
