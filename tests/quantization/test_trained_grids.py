# SPDX-License-Identifier: Apache-2.0
"""Networks that were trained with quantization: what training chose is what the quantized model has."""

import numpy as np
import pytest
from test_quantize_model import noise_db, normal, outputs, rnn
from test_quantize_static import CONV, check, i32, lstm, quantized, svdf

import tq

F = np.float32


def names(data):
    return [op.name for op in tq.Model(data).operators]


def tensor(data, name):
    return next(t for t in tq.Model(data).tensors if t.name == name)


def fake(b, source, name, low, high, bits=8, narrow=False):
    made = b.tensor(name, source.shape)
    b.operator("FAKE_QUANT", [source], [made], min=low, max=high, num_bits=bits, narrow_range=narrow)
    return made


def pair(b, source, name, scale, zero, type="int8", axis=0):
    """source -> QUANTIZE -> DEQUANTIZE"""
    middle = b.tensor(f"{name}_q", source.shape, type, scale=scale, zero_point=zero, quantized_dimension=axis)
    made = b.tensor(name, source.shape)
    b.operator("QUANTIZE", [source], [middle])
    b.operator("DEQUANTIZE", [middle], [made])
    return made


LAYERS = {
    "CONV_2D": ((8, 3, 3, 4), CONV),
    "DEPTHWISE_CONV_2D": ((1, 3, 3, 4), CONV | {"depth_multiplier": 1}),
    "FULLY_CONNECTED": ((8, 64), {}),
}


def layer(name, weights, bias=None, factor=0.5):
    """A layer between FAKE_QUANTs; `weights` makes its weights' tensor of a builder and an array."""
    b = tq.ModelBuilder()
    shape, options = LAYERS[name]
    channels = shape[-1] if name == "DEPTHWISE_CONV_2D" else shape[0]
    size = [1, 64] if name == "FULLY_CONNECTED" else [1, 4, 4, 4]
    x = fake(b, b.input("x", size), "q", -1.0, 1.0)
    w = weights(b, b.constant("weights", normal(*shape) * F(factor)))
    y = b.tensor("y", [*size[:-1], channels])
    b.operator(name, [x, w, b.constant("bias", normal(channels) if bias is None else bias)], [y], **options)
    b.output(fake(b, y, "z", -8.0, 8.0))
    return b.to_bytes()


def on_grid(data, name, scale, real):
    """Whether a constant has that scale and, to the bit, the values that training computed with."""
    found = tensor(data, name)
    np.testing.assert_array_equal(found.quantization.scale, np.atleast_1d(F(scale)))
    assert not found.quantization.zero_point.any()
    steps = np.rint(real.astype(np.float64) / scale)
    np.testing.assert_array_equal(np.asarray(found.data, np.int32), steps)
    return found


# ---- FAKE_QUANT on weights ----


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_lie_on_the_grid_that_they_were_trained_with(name, recipe):
    model = layer(name, lambda b, w: fake(b, w, "w", -1.25, 1.25, narrow=True))
    data = tq.quantize_model(model, recipe)
    assert data.weights_on_grid == (1, 1)
    real = tq.fake_quant(normal(*LAYERS[name][0]) / 2, -1.25, 1.25, narrow_range=True)
    on_grid(data, "w", 2.5 / 254, real)
    check(model, data)


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8"])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_beside_floats_lie_on_it_too(name, recipe):
    model = layer(name, lambda b, w: fake(b, w, "w", -1.25, 1.25, narrow=True))
    data = tq.quantize_model(model, recipe, min_elements=0)
    assert data.weights_on_grid == (1, 1)
    found = tensor(data, "w")
    assert set(found.quantization.scale) == {F(2.5 / 254)}
    assert noise_db(outputs(model, "TQ"), outputs(data, "TQ")) > 30


def test_a_zero_point_is_taken_out():
    """-1.0 to 1.25 has the zero point 113 - 128; kernels take 0, and the real values stay."""
    model = layer("CONV_2D", lambda b, w: fake(b, w, "w", -1.0, 1.25), factor=0.25)
    data = tq.quantize_model(model, "int8")
    on_grid(data, "w", 2.25 / 255, tq.fake_quant(normal(8, 3, 3, 4) / 4, -1.0, 1.25))
    assert data.weights_on_grid == (1, 1)
    check(model, data)


def test_a_value_of_128_steps_stays_at_127():
    """The zero point 127.5 of a symmetric range goes up, as the converter has it: int8's is 0."""
    model = layer("CONV_2D", lambda b, w: fake(b, w, "w", -0.5, 0.5))
    data = tq.quantize_model(model, "int8")
    real = tq.fake_quant(normal(8, 3, 3, 4) / 2, -0.5, 0.5)
    on_grid(data, "w", 1 / 255, np.clip(real, F(-127 / 255), F(127 / 255)))
    assert data.weights_on_grid == (1, 1)
    assert {int(t.quantization.zero_point[0]) for t in tq.Model(data).tensors if len(t.quantization.scale)} == {0}


def test_a_grid_that_int8_cannot_hold_is_left_and_not_counted():
    model = layer("CONV_2D", lambda b, w: fake(b, w, "w", 0.0, 1.25))
    data = tq.quantize_model(model, "int8")
    assert data.weights_on_grid == (0, 1)
    assert tensor(data, "w").quantization.scale.size == 8
    check(model, data)


def test_a_bias_that_does_not_fit_takes_the_weights_off_the_grid():
    bias = np.full(8, 3e5, F)
    model = layer("CONV_2D", lambda b, w: fake(b, w, "w", -1e-6, 1e-6, narrow=True), bias=bias)
    data = tq.quantize_model(model, "int8")
    assert data.weights_on_grid == (0, 1)
    assert tensor(data, "w").quantization.scale[0] > F(2e-6 / 254)


@pytest.mark.parametrize("name", LAYERS)
def test_four_bits_are_a_type_where_all_kernels_take_it(name):
    type_ = "INT8" if name == "DEPTHWISE_CONV_2D" else "INT4"
    model = layer(name, lambda b, w: fake(b, w, "w", -1.25, 1.25, bits=4, narrow=True))
    data = tq.quantize_model(model, "int8")
    real = tq.fake_quant(normal(*LAYERS[name][0]) / 2, -1.25, 1.25, num_bits=4, narrow_range=True)
    assert on_grid(data, "w", 2.5 / 14, real).type.name == type_
    assert data.weights_on_grid == (1, 1)
    check(model, data)


@pytest.mark.parametrize(
    ("bits", "words"), [(5, "FAKE_QUANT of 5 bits; types have 4, 8 or 16"), (16, "no kernel takes int16 weights")]
)
def test_other_numbers_of_bits_are_an_error(bits, words):
    with pytest.raises(ValueError, match=words):
        tq.quantize_model(layer("CONV_2D", lambda b, w: fake(b, w, "w", -1.25, 1.25, bits=bits)), "int8")


def test_activations_of_other_numbers_of_bits_are_an_error():
    b = tq.ModelBuilder()
    x = fake(b, b.input("x", [1, 8]), "q", -1.0, 1.0, bits=4)
    y = b.tensor("y", [1, 8])
    b.operator("LEAKY_RELU", [x], [y], alpha=0.5)
    b.output(fake(b, y, "z", -1.0, 1.0))
    with pytest.raises(ValueError, match="FAKE_QUANT of 4 bits; activations have 8 or 16"):
        tq.quantize_model(b.to_bytes(), "int8")


def moved(b, move, source):
    """A matrix of 8 by 64."""
    made = b.tensor("moved", [8, 64])
    how = b.constant("how", i32(1, 0) if move == "TRANSPOSE" else i32(8, 64))
    b.operator(move, [source, how], [made], **({"new_shape": [8, 64]} if move == "RESHAPE" else {}))
    return made


def trained_per_tensor(b, source):
    return fake(b, source, "w", -1.25, 1.25, narrow=True)


def trained_per_axis(b, source):
    axis = source.shape.index(8)
    return pair(b, source, "w", np.linspace(0.01, 0.02, 8, dtype=F), [0] * 8, axis=axis)


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("trained", [trained_per_tensor, trained_per_axis])
@pytest.mark.parametrize("move", ["TRANSPOSE", "RESHAPE"])
def test_trained_weights_that_are_moved(move, trained, is_first):
    """Before FAKE_QUANT or a pair, or behind it."""

    def weights(b):
        kernel = b.constant("kernel", normal(64, 8) / 2 if move == "TRANSPOSE" else normal(8, 8, 8) / 2)
        return trained(b, moved(b, move, kernel)) if is_first else moved(b, move, trained(b, kernel))

    def end(b, y):
        return pair(b, y, "z", 16 / 255, 0) if trained is trained_per_axis else fake(b, y, "z", -8.0, 8.0)

    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64]), b.tensor("y", [1, 8])
    start = pair(b, x, "q", 2 / 255, 0) if trained is trained_per_axis else fake(b, x, "q", -1.0, 1.0)
    b.operator("FULLY_CONNECTED", [start, weights(b), b.constant("bias", normal(8))], [y])
    b.output(end(b, y))
    data = tq.quantize_model(b.to_bytes(), "int8")
    assert names(data) == ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"] and data.weights_on_grid == (1, 1)
    scale = np.linspace(0.01, 0.02, 8, dtype=F) if trained is trained_per_axis else F(2.5 / 254)
    found = next(t for t in tq.Model(data).tensors if t.is_constant and t.type == tq.TensorType.INT8)
    np.testing.assert_array_equal(found.quantization.scale, scale)
    check(b.to_bytes(), data)


def trained_convolution():
    rng = np.random.default_rng(0)
    b = tq.ModelBuilder()
    x = fake(b, b.input("x", [1, 32, 32, 3]), "q", -1.0, 1.0)
    w = b.constant("weights", (rng.standard_normal((15, 3, 3, 3)) * 0.3).astype(F))
    y = b.tensor("y", [1, 32, 32, 15])
    bias = b.constant("bias", (rng.standard_normal(15) * 0.2).astype(F))
    b.operator("CONV_2D", [x, fake(b, w, "w", -0.7, 0.7, narrow=True), bias], [y], **CONV)
    b.output(fake(b, y, "z", -4.0, 4.0))
    return b.to_bytes()


def test_outputs_are_those_that_were_trained():
    """15 of 15,360 round the other way with the trained scale, 911 with max|w| / 127 of each channel."""
    model = trained_convolution()
    x = np.random.default_rng(1).uniform(-1, 1, (1, 32, 32, 3)).astype(F)

    def differing(data):
        steps = [run_once(item, x) / F(8 / 255) for item in (model, data)]
        differences = np.rint(np.abs(steps[0] - steps[1]))
        assert differences.max() <= 1 and differences.size == 15360
        return int(differences.sum())

    assert differing(tq.quantize_model(model, "int8")) <= 17
    w = tq.fake_quant(tensor(model, "weights").data, -0.7, 0.7, narrow_range=True)
    own = tq.QuantizationParams(((np.abs(w).max((1, 2, 3)) / 127).astype(F), np.zeros(15, np.int32)))
    assert differing(tq.quantize_model(model, "int8", overrides={"weights": own})) > 500


def run_once(data, x):
    interpreter = tq.Interpreter(model_content=bytes(data), numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


# ---- FAKE_QUANT on activations ----


def test_ranges_move_past_relu_and_reshape():
    """conv -> RELU -> FAKE_QUANT, and FAKE_QUANT -> RESHAPE -> RELU: all have the range, none is unknown."""
    b = tq.ModelBuilder()
    x = fake(b, b.input("x", [1, 64]), "q", -1.0, 1.0)
    y, r, s, t, u = (b.tensor(n, [8, 1] if n in "tu" else [1, 8]) for n in ("y", "r", "s", "t", "u"))
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 64) / 4), b.constant("b", normal(8))], [y])
    b.operator("RELU", [y], [r])
    b.operator("LEAKY_RELU", [fake(b, r, "r2", 0.0, 6.0)], [s], alpha=0.5)
    b.operator("RESHAPE", [fake(b, s, "s2", -2.0, 5.0), b.constant("shape", i32(8, 1))], [t], new_shape=[8, 1])
    b.operator("RELU6", [t], [u])
    b.output(u)
    model = b.to_bytes()
    data = tq.quantize_model(model, "int8")
    found = [op.name for op in tq.Model(data).operators if op.name not in ("QUANTIZE", "DEQUANTIZE")]
    assert found == ["FULLY_CONNECTED", "RELU", "LEAKY_RELU", "RESHAPE", "RELU6"]
    assert names(data)[0] == "QUANTIZE" and names(data)[-1] == "DEQUANTIZE" and len(names(data)) == 7
    assert tensor(data, "y").quantization.scale == tensor(data, "r2").quantization.scale == F(6 / 255)
    assert tensor(data, "u_int8").quantization.scale == tensor(data, "t").quantization.scale == F(7 / 255)
    check(model, data)


def test_a_concatenation_shares_its_range():
    """As toco's change_concat_input_ranges does: the output's range is that of all inputs."""
    b = tq.ModelBuilder()
    x = fake(b, b.input("x", [1, 8]), "q", -1.0, 1.0)
    parts = []
    for place, (low, high) in enumerate([(-0.5, 2.0), (-4.0, 4.0)]):
        made = b.tensor(f"part{place}", [1, 8])
        b.operator("LEAKY_RELU", [x], [made], alpha=0.25 * (place + 1))
        parts.append(fake(b, made, f"p{place}", low, high))
    both = b.tensor("both", [1, 16])
    b.operator("CONCATENATION", parts, [both], axis=1)
    b.output(fake(b, both, "z", -1.0, 1.0))
    model = b.to_bytes()
    data = tq.quantize_model(model, "int8")
    assert names(data) == ["QUANTIZE", "LEAKY_RELU", "LEAKY_RELU", "CONCATENATION", "DEQUANTIZE"]
    assert {F(2 / 255)} == {tensor(data, name).quantization.scale[0] for name in ("p0", "p1", "z_int8")}
    check(model, data)


def test_several_fake_quants_of_one_range_are_one():
    b = tq.ModelBuilder()
    x, m, y = b.input("x", [1, 8]), b.tensor("m", [1, 8]), b.tensor("y", [1, 8])
    b.operator("LEAKY_RELU", [x], [m], alpha=0.5)
    b.operator("ADD", [fake(b, m, "a", -1.0, 1.0), fake(b, m, "c", -1.0, 1.0)], [y])
    b.output(y)
    assert "FAKE_QUANT" not in names(quantized(b.to_bytes()))


# ---- QUANTIZE and DEQUANTIZE ----


def paired(type_="int8", weight_type="int8", per_axis=True):
    """conv -> pool -> concatenation of two scales -> conv, as TFLiteConverter writes networks with FakeQuant."""
    shift = 128 if type_ == "uint8" else 0
    b = tq.ModelBuilder()
    x = pair(b, b.input("x", [1, 4, 4, 4]), "x1", 2 / 255, shift, type_)
    rng = np.random.default_rng(3)
    steps = rng.integers(-127, 128, (8, 1, 1, 4))
    scale = rng.uniform(0.002, 0.004, 8 if per_axis else 1).astype(F)
    zero = 128 if weight_type == "uint8" else 0
    stored = (steps + zero).astype(weight_type)
    codes = b.constant("codes", stored, scale=scale, zero_point=np.full(len(scale), zero))
    w = b.tensor("w", steps.shape)
    b.operator("DEQUANTIZE", [codes], [w])
    y = b.tensor("y", [1, 4, 4, 8])
    b.operator("CONV_2D", [x, w, b.constant("bias", normal(8) / 4)], [y], **CONV)
    y1 = pair(b, y, "y1", 4 / 255, shift - 3, type_)
    p = b.tensor("p", [1, 4, 4, 8])
    b.operator("MAX_POOL_2D", [y1], [p], filter_height=3, filter_width=3, stride_h=1, stride_w=1, padding="SAME")
    both, r = b.tensor("both", [1, 4, 4, 16]), b.tensor("r", [1, 4, 4, 16])
    b.operator("CONCATENATION", [y1, pair(b, p, "p1", 3 / 255, shift - 20, type_)], [both], axis=3)
    b.operator("RELU", [both], [r])
    z = pair(b, r, "z", 3.5 / 255, shift - 128, type_)
    v = b.constant("v", normal(4, 1, 1, 16) / 4)
    v1 = pair(
        b, v, "v1", np.full(4, 0.01, F) if per_axis else 0.01, np.full(4, zero) if per_axis else zero, weight_type
    )
    o = b.tensor("o", [1, 4, 4, 4])
    b.operator("CONV_2D", [z, v1, b.constant("bias2", normal(4) / 4)], [o], **CONV)
    b.output(pair(b, o, "out", 6 / 255, shift + 5, type_))
    return b.to_bytes(), scale, steps


@pytest.mark.parametrize("per_axis", [True, False])
@pytest.mark.parametrize("type_", ["int8", "uint8"])
def test_pairs_fold_into_integer_operators_of_their_own_scales(type_, per_axis):
    model, scale, steps = paired(type_, type_, per_axis)
    data = tq.quantize_model(model, "int8")
    kinds = [name for name in names(data) if name != "QUANTIZE"]
    assert kinds == ["CONV_2D", "MAX_POOL_2D", "CONCATENATION", "RELU", "CONV_2D", "DEQUANTIZE"]
    assert data.weights_on_grid == (2, 2)
    np.testing.assert_array_equal(tensor(data, "w").quantization.scale, scale)
    np.testing.assert_array_equal(tensor(data, "w").data, steps)
    for name, wanted in {"x_int8": (2, 0), "y": (4, -3), "p": (3, -20), "r": (3.5, -128)}.items():
        found = tensor(data, name).quantization
        assert (found.scale, found.zero_point) == (F(wanted[0] / 255), wanted[1]), name
    check(model, data, least=35)


def test_a_fold_computes_what_the_pairs_compute():
    """Real values differ by the rounding of a requantization: by a step, seldom."""
    model, *_ = paired()
    data = tq.quantize_model(model, "int8")
    exact, found = outputs(model, "TQ"), outputs(data, "TQ")
    steps = np.rint(np.abs(np.concatenate(exact) - np.concatenate(found)) / F(6 / 255))
    assert steps.max() <= 1 and np.mean(steps > 0) < 0.05


def test_biases_and_constants_with_pairs():
    b = tq.ModelBuilder()
    x = pair(b, b.input("x", [1, 8]), "x1", 2 / 255, 0)
    values = np.arange(-4, 4, dtype=np.int32) * 1000
    stored = b.constant("stored", values, scale=[2 / 255 * 0.01], zero_point=[0])
    bias = b.tensor("bias", [8])
    b.operator("DEQUANTIZE", [stored], [bias])
    w = pair(b, b.constant("w", normal(8, 8) / 4), "w1", 0.01, 0)
    y = b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, w, bias], [y])
    more, s = pair(b, b.constant("more", normal(1, 8)), "more1", 0.02, 7), b.tensor("s", [1, 8])
    b.operator("ADD", [pair(b, y, "y1", 4 / 255, 0), more], [s])
    b.output(pair(b, s, "out", 8 / 255, 0))
    model = b.to_bytes()
    data = tq.quantize_model(model, "int8")
    assert data.weights_on_grid == (2, 2)  # the weights, and the constant of ADD
    np.testing.assert_array_equal(tensor(data, "bias").data, values)
    found = tensor(data, "more1").quantization
    assert (found.scale, found.zero_point) == (F(0.02), 7)
    # its real values, since LiteRT has no DEQUANTIZE of int32
    with tq.edit(model) as editor:
        op = next(op for op in editor.operators if op.inputs[0].name == "stored")
        editor.tensors["bias"].data = values.astype(F) * F(2 / 255 * 0.01)
        editor.main.remove_operator(op)
        model = editor.to_bytes()
    check(model, data)


def integer_ends(type_):
    """The model of pairs between inputs and outputs of integers: DEQUANTIZE comes first, QUANTIZE last."""
    with tq.edit(paired(type_)[0]) as editor:
        graph = editor.main
        first, last = graph.operators[0], graph.operators[-1]
        graph.inputs, graph.outputs = first.outputs, last.inputs
        graph.remove_operator(last)
        graph.remove_operator(first)
        editor.prune()
        return editor.to_bytes()


@pytest.mark.parametrize("io", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("type_", ["int8", "uint8"])
def test_pairs_whose_other_halves_are_the_callers(type_, io):
    whole = tq.quantize_model(paired(type_)[0], "int8", io=io)
    data = tq.quantize_model(integer_ends(type_), "int8", io=io)
    assert names(data) == names(whole) and data.weights_on_grid == (2, 2)
    assert {t.type.name for t in (*tq.Model(data).inputs, *tq.Model(data).outputs)} == {io.upper()}
    assert [t.name for t in tq.Model(data).inputs] == [t.name for t in tq.Model(integer_ends(type_)).inputs]
    np.testing.assert_array_equal(outputs(data, "TQ"), outputs(whole, "TQ"))


def test_a_range_for_an_input_of_integers_counts():
    model = integer_ends("int8")
    (x,) = tq.Model(model).inputs
    data = tq.quantize_model(model, "int8", overrides={x.name: (-2.0, 2.0)})
    assert tensor(data, f"{x.name}_int8").quantization.scale == F(4 / 255)


def test_an_input_of_integers_that_is_an_output_too_is_refused():
    with tq.edit(integer_ends("int8")) as editor:
        editor.main.outputs = [*editor.main.outputs, *editor.main.inputs]
        model = editor.to_bytes()
    with pytest.raises(ValueError, match="quantized already"):
        tq.quantize_model(model, "int8")


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8"])
@pytest.mark.parametrize("ends", [False, True])
def test_beside_floats_pairs_of_activations_stay_and_weights_keep_their_grid(recipe, ends):
    whole, scale, steps = paired()
    model = integer_ends("int8") if ends else whole
    data = tq.quantize_model(model, recipe, min_elements=0)
    assert data.weights_on_grid == (2, 2)
    np.testing.assert_array_equal(tensor(data, "w").quantization.scale, scale)
    np.testing.assert_array_equal(tensor(data, "w").data, steps)
    hidden = 2 if recipe == "weight_only_int8" else 0  # weights behind DEQUANTIZE
    assert names(data).count("QUANTIZE") == names(model).count("QUANTIZE") - 1  # that of the weights
    assert names(data).count("DEQUANTIZE") == names(model).count("DEQUANTIZE") - 2 + hidden
    if not ends:
        assert noise_db(outputs(model, "TQ"), outputs(data, "TQ")) > 30


def test_a_pair_behind_a_pair_rounds_twice():
    b = tq.ModelBuilder()
    x = pair(b, b.input("x", [1, 8]), "x1", 2 / 255, 0)
    w = pair(b, b.constant("w", normal(8, 8) / 4), "w1", 0.01, 0)
    y, z = b.tensor("y", [1, 8]), b.tensor("z", [1, 8])
    b.operator("FULLY_CONNECTED", [x, w], [y])
    b.operator("LEAKY_RELU", [pair(b, pair(b, y, "y1", 6 / 255, 0), "y2", 4 / 255, 3)], [z], alpha=0.5)
    b.output(pair(b, z, "out", 4 / 255, 0))
    data = tq.quantize_model(b.to_bytes(), "int8")
    assert names(data) == ["QUANTIZE", "FULLY_CONNECTED", "QUANTIZE", "LEAKY_RELU", "DEQUANTIZE"]
    found = [op.outputs[0].quantization for op in tq.Model(data).operators[1:3]]
    assert [(q.scale, q.zero_point) for q in found] == [(F(6 / 255), 0), (F(4 / 255), 3)]
    check(b.to_bytes(), data)


BLOCK = {  # of MobileNetV2: the operator, its weights, and the range of its result
    "expand": ("CONV_2D", (24, 1, 1, 8), (0.0, 6.0)),
    "deep": ("DEPTHWISE_CONV_2D", (1, 3, 3, 24), (0.0, 6.0)),
    "project": ("CONV_2D", (8, 1, 1, 24), (-5.0, 4.0)),
}


def grid_of(low, high):
    """The scale and the zero point that FakeQuantWithMinMaxVars gives uint8 values."""
    return F((high - low) / 255), round(-low * 255 / (high - low))


def mobile_block():
    """As TFLiteConverter writes FakeQuantWithMinMaxVars, and FakeQuantWithMinMaxVarsPerChannel on weights."""
    b = tq.ModelBuilder()
    x = y = pair(b, b.input("x", [1, 8, 8, 8]), "x1", *grid_of(-1.0, 1.0), "uint8")
    for name, (kind, shape, span) in BLOCK.items():
        axis, channels = (3, shape[3]) if kind.startswith("DEPTH") else (0, shape[0])
        most = np.abs(normal(*shape)).max(tuple(i for i in range(4) if i != axis)) * F(0.27)
        w = b.constant(f"{name}_w", normal(*shape) * F(0.3))
        fused = {"fused_activation_function": "RELU6" if span == (0.0, 6.0) else "NONE"}
        more = {"depth_multiplier": 1} if kind.startswith("DEPTH") else {}
        made = b.tensor(f"{name}_y", [1, 8, 8, channels])
        q = pair(b, w, f"{name}_v", most / F(127), [128] * channels, "uint8", axis)
        b.operator(kind, [y, q, b.constant(f"{name}_b", normal(channels) / 5)], [made], **CONV, **fused, **more)
        y = pair(b, made, name, *grid_of(*span), "uint8")
    total = b.tensor("total", [1, 8, 8, 8])
    b.operator("ADD", [x, y], [total])
    b.output(pair(b, total, "z", *grid_of(-5.5, 5.0), "uint8"))
    return b.to_bytes()


def test_a_block_of_mobilenet_v2_is_the_converters():
    """TFLiteConverter 2.21 wrote 18 Keras models so, MobileNetV2's blocks, pools and concatenations among them.  Of 272
    operands 3 weights differed, which had -128 or a zero point, and 34 scales of biases, by a step of float32."""
    model = mobile_block()
    data = tq.quantize_model(model, "int8")
    assert names(data) == ["QUANTIZE", "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "DEQUANTIZE"]
    assert data.weights_on_grid == (3, 3)
    ops = tq.Model(data).operators
    spans = [(-1.0, 1.0), *(span for *_, span in BLOCK.values()), (-5.5, 5.0)]
    for op, span in zip(ops, spans, strict=False):
        scale, zero = grid_of(*span)
        found = op.outputs[0].quantization
        assert (found.scale, found.zero_point) == (scale, zero - 128), op.name
    for op, (name, (_, shape, _)) in zip(ops[1:4], BLOCK.items(), strict=True):
        x, w, bias = op.inputs
        axis = w.quantization.quantized_dimension
        real = normal(*shape) * F(0.3)
        scale = np.abs(normal(*shape)).max(tuple(i for i in range(4) if i != axis)) * F(0.27) / F(127)
        np.testing.assert_array_equal(w.quantization.scale, scale)
        spread = scale.reshape([-1 if i == axis else 1 for i in range(4)])
        np.testing.assert_array_equal(w.data, np.rint(real / spread).clip(-127, 127))
        product = x.quantization.scale * scale
        np.testing.assert_array_equal(bias.quantization.scale, product)
        np.testing.assert_array_equal(bias.data, np.rint(normal(scale.size) / F(5) / product), name)
    check(model, data)


def converted_concatenation(is_read_twice=False):
    """What TFLiteConverter writes for two convolutions, 0 to 3 and -2 to 2, and their concatenation of -3 to 3."""
    b = tq.ModelBuilder()
    x = pair(b, b.input("x", [1, 4, 4, 4]), "x1", 2 / 255, 128, "uint8")
    parts = []
    for place, (scale, zero) in enumerate([(3 / 255, 0), (4 / 255, 128)]):
        w = b.constant(f"kernel{place}", normal(6, 1, 1, 4, seed=place) / 2)
        y = b.tensor(f"y{place}", [1, 4, 4, 6])
        scales = np.full(6, 1.25 / 127)
        bias = b.constant(f"bias{place}", normal(6) / 4)
        relu = {"fused_activation_function": "NONE" if place else "RELU"}
        b.operator("CONV_2D", [x, pair(b, w, f"w{place}", scales, [128] * 6, "uint8"), bias], [y], **CONV, **relu)
        parts.append(pair(b, y, f"part{place}", scale, zero, "uint8"))
    both = b.tensor("both", [1, 4, 4, 12])
    b.operator("CONCATENATION", parts, [both], axis=3)
    b.output(pair(b, both, "z", 6 / 255, 128, "uint8"))
    if is_read_twice:
        other = b.tensor("other", [1, 4, 4, 6])
        b.operator("LEAKY_RELU", [parts[0]], [other], alpha=0.5)
        b.output(pair(b, other, "o", 3 / 255, 0, "uint8"))
    return b.to_bytes()


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_a_concatenation_shares_its_scale_as_in_the_converter(is_read_twice):
    """TFLiteConverter 2.21: what it alone reads is written with its scale; the rest is requantized to it."""
    model = converted_concatenation(is_read_twice)
    data = tq.quantize_model(model, "int8")
    between = [op.name for op in tq.Model(data).operators if op.inputs[0].name.startswith("y")]
    assert between.count("QUANTIZE") == is_read_twice
    own = [op.outputs[0].quantization.scale[0] for op in tq.Model(data).operators if op.name == "CONV_2D"]
    assert own == [F(3 / 255) if is_read_twice else F(6 / 255), F(6 / 255)]
    check(model, data)


def test_a_model_that_is_partly_of_integers_is_still_refused():
    data = tq.quantize_model(layer("CONV_2D", lambda b, w: w), "int8")
    with pytest.raises(ValueError, match="quantized already"):
        tq.quantize_model(data, "int8")


# ---- recurrent operators ----

RECURRENT = {"LSTM": lambda: lstm("LSTM", ("peephole", "norm", "projection")), "SVDF": svdf}
RNNS = {"UNIDIRECTIONAL_SEQUENCE_RNN": lambda: rnn("UNIDIRECTIONAL_SEQUENCE_RNN", (3,)), "RNN": rnn}


def trained_weights(model, low=-1.0, high=1.0):
    """FAKE_QUANT behind each matrix of the first recurrent operator.  Also their names."""
    with tq.edit(model) as editor:
        graph = editor.main
        op = next(op for op in graph.operators if op.builtin_name in (*RECURRENT, *RNNS))
        names = []
        for place, source in enumerate(op.inputs):
            if source is not None and source.is_constant and len(source.shape) == 2:
                made = graph.add_tensor(f"{source.name}_trained", source.shape)
                graph.insert_before(op, "FAKE_QUANT", [source], [made], min=low, max=high, num_bits=8)
                op.set_input(place, made)
                names.append(made.name)
        return editor.to_bytes(), names


@pytest.mark.parametrize("name", RECURRENT)
def test_integer_recurrent_operators_keep_the_grids_of_their_weights(name):
    model, weights = trained_weights(RECURRENT[name]())
    data = quantized(model)
    assert data.weights_on_grid == (len(weights), len(weights)) and weights
    for weight in weights:
        found = tensor(data, weight)
        assert found.quantization.scale == F(2 / 255) and found.quantization.zero_point == 0
        source = tensor(model, weight.removesuffix("_trained"))
        real = tq.fake_quant(source.data, -1.0, 1.0)
        most = 511 if found.type.name == "INT16" else 127
        np.testing.assert_allclose(found.dequantized(), real.clip(-most * 2 / 255, most * 2 / 255), atol=1e-6)
    assert tq.Model(data).problems == [] and noise_db(outputs(model, "TQ"), outputs(data, "TQ")) > 15


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8"])
@pytest.mark.parametrize("name", [*RECURRENT, *RNNS])
def test_recurrent_operators_beside_floats_keep_them_too(name, recipe):
    model, weights = trained_weights({**RECURRENT, **RNNS}[name]())
    data = tq.quantize_model(model, recipe, min_elements=0)
    assert data.weights_on_grid == (len(weights), len(weights))
    assert {tensor(data, weight).quantization.scale[0] for weight in weights} == {F(2 / 255)}


@pytest.mark.parametrize("name", RECURRENT)
def test_ranges_of_recurrent_weights_count(name):
    model = RECURRENT[name]()
    data = quantized(model, overrides={"w1": (-4.0, 3.0)})
    assert tensor(data, "w1").quantization.scale == F(4 / 127)
    with pytest.raises(ValueError, match="'w1' cannot have these parameters: its values pass -127 or 127"):
        quantized(model, overrides={"w1": tq.QuantizationParams((0.005, 100))})


@pytest.mark.parametrize("name", ["SVDF", "LSTM"])
def test_a_calibration_of_a_model_has_the_scales_inside_recurrent_operators(name):
    model = {"SVDF": svdf, "LSTM": lambda: lstm("LSTM", ("peephole",))}[name]()
    first = quantized(model)
    again = tq.quantize_model(model, "int8", calibration=tq.Calibration.from_model(first))
    for one, other in zip(tq.Model(first).tensors, tq.Model(again).tensors, strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.quantization.scale, other.quantization.scale)
        np.testing.assert_array_equal(one.quantization.zero_point, other.quantization.zero_point)
        np.testing.assert_array_equal(one.data, other.data)


# ---- ranges that the caller or the file gives ----


@pytest.mark.parametrize("recipe", ["int8", "int16x8", "dynamic_int8", "weight_only_int8"])
def test_a_range_for_weights_counts(recipe):
    given = {"calibration": [[normal(1, 64)]]} if recipe.startswith("int") else {"min_elements": 0}
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64]), b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 64)), b.constant("bias", normal(8))], [y])
    b.output(y)
    model = b.to_bytes()
    data = tq.quantize_model(model, recipe, overrides={"w": (-2.0, 1.0)}, **given)
    assert set(tensor(data, "w").quantization.scale) == {F(2 / 127)}
    np.testing.assert_array_equal(tensor(data, "w").data, np.clip(np.rint(normal(8, 64) / F(2 / 127)), -127, 127))
    scales = np.linspace(0.01, 0.03, 8).astype(F)
    data = tq.quantize_model(model, recipe, overrides={"w": tq.QuantizationParams((scales, 0))}, **given)
    np.testing.assert_array_equal(tensor(data, "w").quantization.scale, scales)
    with pytest.raises(ValueError, match="range of 'bias' has no effect"):
        tq.quantize_model(model, recipe, overrides={"bias": (-1.0, 1.0)}, **given)


def test_parameters_that_weights_cannot_have_are_an_error():
    model = layer("CONV_2D", lambda b, w: w)
    with pytest.raises(ValueError, match="its values pass -127 or 127"):
        tq.quantize_model(model, "int8", overrides={"weights": tq.QuantizationParams((0.005, 100))})


def test_parameters_that_recipes_cannot_give_are_an_error():
    """In place of others in silence."""
    model = layer("CONV_2D", lambda b, w: w)
    per_channel = tq.QuantizationParams((np.full(8, 0.02, F), np.zeros(8, np.int32)))
    with pytest.raises(ValueError, match="'weights' cannot have these parameters: recipe 'uint8' takes one scale"):
        tq.quantize_model(model, "uint8", overrides={"weights": per_channel})
    model = layer("CONV_2D", lambda b, w: w, bias=np.full(8, 3e5, F))
    with pytest.raises(ValueError, match="'weights' cannot have these parameters: its bias needs a wider scale"):
        tq.quantize_model(model, "int8", overrides={"weights": (-1e-6, 1e-6)})


def test_ranges_that_are_stored_on_weights_count():
    with tq.edit(layer("CONV_2D", lambda b, w: w)) as editor:
        editor.tensors["weights"].quantization = {"min": [-3.0], "max": [2.0]}
        model = editor.to_bytes()
    assert tensor(tq.quantize_model(model, "int8"), "weights").quantization.scale == F(3 / 127)


@pytest.mark.parametrize("recipe", ["int8", "uint8", "dynamic_int8", "weight_only_int4"])
def test_a_stored_range_of_0_to_0_says_nothing_of_weights_that_are_not_0(recipe):
    model = layer("FULLY_CONNECTED", lambda b, w: w)
    edited = tq.edit(model)
    edited.tensors["weights"].quantization = {"min": [0.0], "max": [0.0]}
    given = {"min_elements": 0} if "_" in recipe else {"calibration": [[normal(*tq.Model(model).inputs[0].shape)]]}
    plain, made = (tq.quantize_model(source, recipe, **given) for source in (model, edited.to_bytes()))
    np.testing.assert_array_equal(tensor(made, "weights").data, tensor(plain, "weights").data)
    with pytest.raises(ValueError, match=r"'weights' cannot have these parameters: .*range (of|is) 0 to 0"):
        tq.quantize_model(model, recipe, overrides={"weights": (0.0, 0.0)}, **given)


def stores(low, high, axis=0, name="weights", kind="FULLY_CONNECTED"):
    """A layer whose weights have min and max."""
    editor = tq.edit(layer(kind, lambda b, w: w))
    editor.tensors[name].quantization = {"min": low, "max": high, "quantized_dimension": axis}
    return editor.to_bytes()


def calibrated(model, recipe):
    shape = tq.Model(model).inputs[0].shape
    return tq.quantize_model(
        model, recipe, **({"min_elements": 0} if "_" in recipe else {"calibration": [[normal(*shape)]]})
    )


@pytest.mark.parametrize("recipe", ["int8", "uint8", "dynamic_int8", "weight_only_int4"])
@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([float("nan")], [1.0], "min is nan and max 1.0"),
        ([2.0], [1.0], "min is 2.0 and max 1.0"),
        ([-1.0], [], "min has 1 values, max 0"),
        ([-1.0] * 7, [1.0] * 7, "they have 7 values; dimension 0 has"),
    ],
)
def test_min_and_max_on_weights_that_are_no_range_are_an_error(recipe, low, high, words):
    with pytest.raises(ValueError, match=rf"'weights'.* no range: {words}.*overrides="):
        calibrated(stores(low, high), recipe)


@pytest.mark.parametrize("recipe", ["uint8", "int8"])
def test_a_stored_range_for_each_channel_counts_where_the_kernel_takes_one_scale(recipe):
    count = LAYERS["FULLY_CONNECTED"][0][0]
    low, high = -np.linspace(1, 3, count), np.linspace(1, 2, count)
    given = {"per_axis": False} if recipe == "int8" else {}
    model, one = stores(low, high), stores([-3.0], [2.0])
    shape = tq.Model(model).inputs[0].shape
    made, needed = (
        tensor(tq.quantize_model(data, recipe, calibration=[[normal(*shape)]], **given), "weights")
        for data in (model, one)
    )
    np.testing.assert_array_equal(made.quantization.scale, needed.quantization.scale)
    np.testing.assert_array_equal(made.data, needed.data)
    plain = tensor(calibrated(layer("FULLY_CONNECTED", lambda b, w: w), recipe), "weights")
    assert made.quantization.scale[0] != plain.quantization.scale[0]


def test_a_stored_range_that_does_not_count_is_said_in_the_notes():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64]), b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 64)), b.constant("bias", normal(8))], [y])
    b.output(y)
    editor = tq.edit(b.to_bytes())
    editor.tensors["w"].quantization = {"min": [-3.0], "max": [2.0]}
    made = tq.quantize_model(editor.to_bytes(), "blockwise_int4", min_elements=0)
    (note,) = made.notes
    assert "'w' does not get the scale of the min and max that the file stores: " in note and "in blocks" in note
    assert tq.quantize_model(b.to_bytes(), "blockwise_int4", min_elements=0).notes == ()


def two_pairs():
    """Two layers, each with a grid of its own for the one input."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 64])
    for number, (scale, zero) in enumerate([(0.008, 0), (0.021, -20)]):
        q, d = b.tensor(f"q{number}", [1, 64], "int8", scale=scale, zero_point=zero), b.tensor(f"d{number}", [1, 64])
        b.operator("QUANTIZE", [x], [q])
        b.operator("DEQUANTIZE", [q], [d])
        y = b.tensor(f"y{number}", [1, 8])
        b.operator(
            "FULLY_CONNECTED", [d, b.constant(f"w{number}", normal(8, 64)), b.constant(f"b{number}", normal(8))], [y]
        )
        b.output(y)
    return b.to_bytes()


def test_two_grids_of_one_input_are_both_of_its_real_values():
    samples = [[normal(1, 64)]]
    data = tq.quantize_model(two_pairs(), "int8", calibration=samples)
    made = tq.Model(data)
    found = [op for op in made.operators if op.name == "QUANTIZE"]
    assert [op.inputs[0].name for op in found] == ["x", "x"]
    assert [float(op.outputs[0].quantization.scale[0]) for op in found] == [F(0.008), F(0.021)]
    x = samples[0][0]
    for real, ours in zip(*(run_all(model, x) for model in (two_pairs(), data)), strict=True):
        assert 10 * np.log10((real**2).sum() / ((real - ours) ** 2).sum()) > 30


def run_all(data, x):
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()]


def test_of_two_grids_an_input_of_integers_has_the_wider():
    made = tq.Model(tq.quantize_model(two_pairs(), "int8", calibration=[[normal(1, 64)]], io="int8"))
    assert made.inputs[0].type.name == "INT8" and made.inputs[0].quantization.scale == F(0.021)
    (op,) = [op for op in made.operators if op.name == "QUANTIZE"]
    assert op.outputs[0].quantization.scale == F(0.008)
