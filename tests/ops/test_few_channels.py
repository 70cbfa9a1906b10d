# SPDX-License-Identifier: Apache-2.0
"""Float convolutions of few channels give LiteRT's bits.  Depthwise ones with stride 1 run by image lines; tiles of
both write vectors that reach into the next pixels."""

import itertools

import numpy as np
import oracle
import pytest

import tq

# numerics: the resolver of the same kernels
RESOLVERS = {"reference": "BUILTIN_REF", "xnnpack": "AUTO"}
RULES = ("SAME", "VALID")
DEPTHWISE = list(itertools.product((1, 3, 8, 12, 16, 24, 40, 72), ((3, 3), (1, 5), (5, 2))))
LONG = [((70, 1), (211, 2)), ((2, 66), (4, 140))]  # filters of one channel, and images
CONVOLUTIONS = list(itertools.product((2, 7, 8, 24, 40, 72), ((1, 1), (3, 2))))


def out_size(size, taps, stride, dilation, padding):
    room = size if padding == "SAME" else size - (taps - 1) * dilation
    return -(-room // stride)


def model(operator, channels, taps, stride, dilation, padding, shape, batch=2):
    """A model of one convolution, and an input; CONV_2D reads five channels."""
    rng = np.random.default_rng(channels)
    depthwise = operator == "DEPTHWISE_CONV_2D"
    height, width = (out_size(n, k, stride, dilation, padding) for n, k in zip(shape, taps, strict=True))
    build = tq.ModelBuilder()
    x = build.input("x", (batch, *shape, channels if depthwise else 5), "FLOAT32")
    filters = (1, *taps, channels) if depthwise else (channels, *taps, 5)
    weights = build.tensor("weights", data=rng.standard_normal(filters).astype(np.float32))
    bias = build.tensor("bias", data=rng.standard_normal(channels).astype(np.float32))
    y = build.tensor("y", (batch, height, width, channels), "FLOAT32")
    options = dict(padding=padding, stride_h=stride, stride_w=stride, fused_activation_function="RELU6")
    options |= dict(dilation_h_factor=dilation, dilation_w_factor=dilation)
    build.operator(operator, [x, weights, bias], [y], **options, **({"depth_multiplier": 1} if depthwise else {}))
    build.output(y)
    return build.to_bytes(), rng.standard_normal(x.shape).astype(np.float32)


def result(data, x, numerics, threads):
    interpreter = tq.Interpreter(model_content=data, numerics=numerics, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("numerics", RESOLVERS)
@pytest.mark.parametrize("operator", ["DEPTHWISE_CONV_2D", "CONV_2D"])
def test_few_channels_give_litert_bits_on_one_thread_and_two(operator, numerics):
    cases = []
    for number, (channels, taps) in enumerate(DEPTHWISE if operator == "DEPTHWISE_CONV_2D" else CONVOLUTIONS):
        padding = ("SAME", "VALID")[number // 2 % 2]
        # small, and so large that two threads divide them; lines that end within a vector
        for stride, dilation, shape in ((1, 1, (7, 6)), (1, 1 + number % 2, (17, 29)), (2, 1, (19, 23))):
            data, x = model(operator, channels, taps, stride, dilation, padding, shape)
            cases.append((data, x, tq.Model(data).outputs[0].index))
    for taps, shape in LONG if operator == "DEPTHWISE_CONV_2D" else ():
        for stride in (1, 3):
            data, x = model(operator, 1, taps, stride, 1, "VALID", shape)
            cases.append((data, x, tq.Model(data).outputs[0].index))
    questions = [(data, RESOLVERS[numerics], [{0: x}], {}, [output]) for data, x, output in cases]
    for (data, x, output), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        for threads in (1, 2):
            np.testing.assert_array_equal(result(data, x, numerics, threads), answer[0][output])


def transposed(outputs, channels, taps, stride, padding, shape):
    """A model of one TRANSPOSE_CONV with int8 weights of a scale each, two images, and an input."""
    rng = np.random.default_rng(outputs)
    sides = [n * stride if padding == "SAME" else (n - 1) * stride + k for n, k in zip(shape, taps, strict=True)]
    build = tq.ModelBuilder()
    x = build.input("x", (2, *shape, channels), "FLOAT32")
    filters = rng.integers(-127, 128, (outputs, *taps, channels)).astype(np.int8)
    scale = dict(scale=rng.uniform(0.001, 0.1, outputs), zero_point=[0] * outputs, quantized_dimension=0)
    inputs = [
        build.tensor("shape", data=np.array([2, *sides, outputs], np.int32)),
        build.tensor("w", data=filters, **scale),
    ]
    y = build.tensor("y", (2, *sides, outputs), "FLOAT32")
    bias = build.tensor("bias", data=rng.standard_normal(outputs).astype(np.float32))
    build.operator("TRANSPOSE_CONV", [*inputs, x, bias], [y], padding=padding, stride_h=stride, stride_w=stride)
    build.output(y)
    return build.to_bytes(), rng.standard_normal(x.shape).astype(np.float32)


def test_transposed_convolutions_of_int8_weights_give_litert_bits_on_one_thread_and_two():
    """By vectors of pixels: images whose rows end within a vector, and more phases than taps of a phase."""
    cases = []
    for outputs, channels in itertools.product((1, 2, 3, 5, 18), (1, 4, 17)):
        for (taps, stride), padding in itertools.product((((3, 3), 1), ((5, 4), 2), ((2, 2), 2), ((7, 4), 4)), RULES):
            for shape in ((1, 1), (5, 3), (9, 37)):
                data, x = transposed(outputs, channels, taps, stride, padding, shape)
                cases.append((data, x, tq.Model(data).outputs[0].index))
    questions = [(data, "BUILTIN_REF", [{0: x}], {}, [output]) for data, x, output in cases]
    for (data, x, output), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        for threads in (1, 2):
            np.testing.assert_array_equal(result(data, x, "reference", threads), answer[0][output])


@pytest.mark.parametrize("numerics", RESOLVERS)
def test_filters_as_wide_as_the_image_give_litert_bits(numerics):
    cases = []
    for batch, stride, taps, height in itertools.product((1, 2), (1, 2), ((5, 1), (3, 4)), (3, 5, 8)):
        if height >= taps[0]:
            data, x = model("CONV_2D", 20, taps, stride, 1, "VALID", (height, taps[1]), batch)
            for form in (data, tq.quantize_model(data, "int8", calibration=[[x]])):
                cases.append((form, x, tq.Model(form).outputs[0].index))
    questions = [(data, RESOLVERS[numerics], [{0: x}], {}, [output]) for data, x, output in cases]
    for (data, x, output), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        np.testing.assert_array_equal(result(data, x, numerics, 1), answer[0][output])


@pytest.mark.parametrize(
    ("operator", "numerics"),
    [(f"{kind}_POOL_2D", numerics) for kind in ("MAX", "AVERAGE") for numerics in RESOLVERS]
    + [("L2_POOL_2D", "reference")],
)
def test_pools_of_any_number_of_channels_give_litert_bits(operator, numerics):
    """The last vector of a pixel's channels overlaps the one before, or the next pixel."""
    cases = []
    for channels, padding in itertools.product((1, 2, 3, 4, 6, 8, 14, 16, 17, 33, 40, 257), ("SAME", "VALID")):
        build = tq.ModelBuilder()
        x = build.input("x", (2, 5, 147, channels), "FLOAT32")
        height, width = (out_size(n, 3, 2, 1, padding) for n in (5, 147))
        y = build.tensor("y", (2, height, width, channels), "FLOAT32")
        sizes = dict(filter_height=3, filter_width=3, stride_h=2, stride_w=2)
        build.operator(operator, [x], [y], padding=padding, **sizes)
        build.output(y)
        cases.append((build.to_bytes(), np.random.default_rng(channels).standard_normal(x.shape, np.float32)))
    questions = [(data, RESOLVERS[numerics], [{0: x}], {}, [1]) for data, x in cases]
    for (data, x), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        np.testing.assert_array_equal(result(data, x, numerics, 1), answer[0][1])


@pytest.mark.parametrize("batch", [1, 2])
def test_a_pool_of_one_column_writes_its_output_alone(batch):
    """An image of one column is pooled as one row; a tensor that was computed before keeps its values."""
    build = tq.ModelBuilder()
    x = build.input("x", (batch, 48, 1, 3), "FLOAT32")
    before = build.tensor("before", (batch, 4, 1, 3), "FLOAT32")
    y = build.tensor("y", (batch, 8, 1, 3), "FLOAT32")
    options = dict(padding="VALID", stride_w=1, filter_width=1)
    build.operator("MAX_POOL_2D", [x], [before], stride_h=12, filter_height=12, **options)
    build.operator("MAX_POOL_2D", [x], [y], stride_h=6, filter_height=6, **options)
    build.output(y)
    build.output(before)
    interpreter = tq.Interpreter(model_content=build.to_bytes())
    interpreter.allocate_tensors()
    values = np.arange(batch * 48 * 3, dtype=np.float32).reshape(batch, 48, 1, 3)
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), values[:, 5::6])
    np.testing.assert_array_equal(interpreter.get_tensor(1), values[:, 11::12])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["FLOAT32", "INT8"])
def test_pools_of_a_long_column_write_its_outputs_alone(kind, threads):
    """Such an image is pooled as one row: rows of the output's shape would reach far behind its memory."""
    build = tq.ModelBuilder()
    quantization = dict(scale=1.0, zero_point=0) if kind == "INT8" else {}
    x = build.input("x", (2, 4096, 1, 64), kind, **quantization)
    y = build.tensor("y", (2, 2048, 1, 64), kind, **quantization)
    sizes = dict(filter_height=2, filter_width=1, stride_h=2, stride_w=1)
    build.operator("MAX_POOL_2D", [x], [y], padding="VALID", **sizes)
    build.output(y)
    image = np.random.default_rng(0).integers(-128, 128, x.shape).astype(kind.lower())
    expected = image.reshape(2, 2048, 2, 1, 64).max(axis=2)
    np.testing.assert_array_equal(result(build.to_bytes(), image, "reference", threads), expected)


@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
def test_softmax_of_few_classes_gives_litert_bits(kind):
    cases = []
    for classes, rows in itertools.product((1, 2, 3, 4, 5, 6, 7, 8, 9, 21), (1, 2, 700)):
        build = tq.ModelBuilder()
        x = build.input("x", (rows, classes), kind, scale=0.07, zero_point=3)
        y = build.tensor("y", (rows, classes), kind, scale=1 / 256, zero_point=-128 if kind == "INT8" else 0)
        build.operator("SOFTMAX", [x], [y], beta=1.0, version=2)
        build.output(y)
        info = np.iinfo(kind.lower())
        values = np.random.default_rng(classes).integers(info.min, info.max + 1, x.shape).astype(kind.lower())
        cases.append((build.to_bytes(), values))
    questions = [(data, "BUILTIN_REF", [{0: x}], {}, [1]) for data, x in cases]
    for (data, x), answer in zip(cases, oracle.ask("tensors", questions), strict=True):
        np.testing.assert_array_equal(result(data, x, "reference", 1), answer[0][1])
