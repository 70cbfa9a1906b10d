# SPDX-License-Identifier: Apache-2.0
"""tq.dequantize_model and tq.transcode: quantized models as float models, uint8 ones as int8 ones."""

import subprocess

import numpy as np
import pytest
from commands import TQ, environment
from test_quantize_model import noise_db, outputs
from test_quantize_static import CONV, ROWS, check, lstm, network, quantized
from test_trained_grids import LAYERS, fake, layer, pair, paired

import tq
from tq.quantization import ends

F = np.float32


def names(data):
    return [op.name for op in tq.Model(data).operators]


def rows(data):
    """The quantized tensors: type, scales, zero points, quantized values."""
    found = [t for t in tq.Model(data).tensors if len(t.quantization.scale)]
    made = [
        (t.type.name, t.quantization.scale.tolist(), t.quantization.zero_point.tolist(), np.array(t.data).tolist())
        for t in found
    ]
    return sorted(made, key=str)


# ---- ranges that stand for scales ----


@pytest.mark.parametrize("most", [127, 7])
def test_ranges_of_weights_give_every_bit_of_the_scale(most):
    scales = np.exp(np.random.default_rng(0).uniform(-12, 3, 20000)).astype(F)
    np.testing.assert_array_equal(ends.symmetric_scale(*ends.of_weights(scales, most), most), scales)


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_ranges_of_activations_give_the_scale_and_the_zero_point(type_):
    rng = np.random.default_rng(1)
    exact = 0
    for scale in np.exp(rng.uniform(-8, 2, 300)).astype(F):
        zero = int(rng.integers(-128, 128)) if type_ == "int8" else 0
        centered = type_ == "int16"
        low, high = ends.of_activation(float(scale), zero, type_)
        made = tq.choose_quantization_params(low, high, type_, symmetric=centered, narrow_range=centered, rule="mlir")
        assert made.zero_point == zero and abs(float(made.scale) / float(scale) - 1) < 2e-7
        exact += made.scale == scale
    assert exact >= 296


# ---- back to floats ----


NAMES = "ADD SOFTMAX CONCATENATION MEAN LOGISTIC PRELU TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM SVDF"
MODELS = {
    "network": network,
    **{name: lambda name=name: layer(name, lambda b, w: w) for name in LAYERS},
    "trained": lambda: layer("CONV_2D", lambda b, w: fake(b, w, "w", -1.25, 1.25, narrow=True)),
    **{name: ROWS[name] for name in NAMES.split()},
}
RECIPES = ["int8", "int16x8", "dynamic_int8", "dynamic_int4", "weight_only_int8", "weight_only_int4"]


@pytest.mark.parametrize("fake_quant", [False, True])
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", MODELS)
def test_quantized_again_it_has_the_same_scales_and_values(name, recipe, fake_quant):
    model = MODELS[name]()
    given = {} if recipe in ("int8", "int16x8") else {"min_elements": 0}
    try:
        first = quantized(model, recipe, **given)
    except ValueError as error:
        assert "finds nothing to quantize" in str(error)
        return
    real = tq.dequantize_model(first, fake_quant=fake_quant)
    opened = tq.Model(real)
    assert not opened.problems and not any(len(t.quantization.scale) for t in opened.tensors)
    assert {t.type.name for t in opened.tensors} <= {"FLOAT32", "INT32", "BOOL"}
    again = tq.quantize_model(real, recipe, **given)
    assert rows(again) == rows(first)
    assert names(again) == names(first)


@pytest.mark.parametrize("name", ["network", "CONV_2D", "ADD", "SOFTMAX"])
def test_it_computes_what_the_quantized_model_computes(name):
    first = quantized(MODELS[name]())
    exact = outputs(first, "TQ")
    assert noise_db(exact, outputs(tq.dequantize_model(first), "TQ")) > 30
    assert noise_db(exact, outputs(tq.dequantize_model(first, fake_quant=True), "BUILTIN_REF")) > 40


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", ["CONV_2D", "FULLY_CONNECTED"])
def test_litert_runs_its_fake_quants(name, recipe):
    """Its kernel refuses narrow_range.  Weights have one scale here."""
    static = recipe in ("int8", "int16x8")
    first = quantized(MODELS[name](), recipe, per_axis=False, **({} if static else {"min_elements": 0}))
    made = tq.dequantize_model(first, fake_quant=True)
    assert "FAKE_QUANT" in names(made)
    for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN"):
        assert noise_db(outputs(first, "TQ"), outputs(made, kernels)) > 38


def test_inputs_and_outputs_become_float():
    first = quantized(network(), io="uint8")
    real = tq.Model(tq.dequantize_model(first))
    assert [t.type.name for t in (*real.inputs, *real.outputs)] == ["FLOAT32"] * 2
    assert [t.name for t in real.inputs] == [t.name for t in tq.Model(first).inputs]


def test_float16():
    first = quantized(layer("CONV_2D", lambda b, w: w))
    real = tq.dequantize_model(first, dtype="float16")
    assert {t.type.name for t in tq.Model(real).tensors if t.is_constant} == {"FLOAT16"}
    assert noise_db(outputs(first, "TQ"), outputs(real, "TQ")) > 30


@pytest.mark.parametrize(("zero", "scale", "fused"), [(0, 6 / 255, "RELU6"), (0, 0.05, "RELU"), (1, 6 / 255, "NONE")])
def test_the_relu_that_toco_took_away_is_there_again(zero, scale, fused):
    """It does so where the least quantized value is 0.0."""
    rng = np.random.default_rng(3)
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 8], "uint8", scale=0.5), b.tensor("y", [1, 8], "uint8", scale=scale, zero_point=zero)
    w = b.constant("w", rng.integers(1, 256, (8, 8)).astype(np.uint8), scale=0.01, zero_point=128)
    bias = b.constant("bias", rng.integers(-99, 99, 8, dtype=np.int32), scale=0.5 * 0.01)
    b.operator("FULLY_CONNECTED", [x, w, bias], [y])
    b.output(y)
    model = b.to_bytes()
    real = tq.Model(tq.dequantize_model(model))
    assert real.operators[0].options["fused_activation_function"].name == fused
    kept = tq.Model(tq.dequantize_model(model, fake_quant=True)).operators[-2]
    assert kept.name == "FULLY_CONNECTED" and kept.options["fused_activation_function"].name == "NONE"
    assert rows(tq.quantize_model(tq.dequantize_model(model), "uint8", io="uint8")) == rows(model)


def test_fake_quants_keep_two_scales_of_one_value():
    """A requantization is a FAKE_QUANT behind another."""
    first = tq.quantize_model(paired()[0], "int8")
    kept = tq.dequantize_model(first, fake_quant=True)
    assert names(tq.quantize_model(kept, "int8")).count("QUANTIZE") >= 2
    assert noise_db(outputs(first, "TQ"), outputs(kept, "TQ")) > 35


POOL = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
BETWEEN = {"MAX_POOL_2D": POOL, "AVERAGE_POOL_2D": POOL, "LEAKY_RELU": {"alpha": 0.5}}


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
@pytest.mark.parametrize("name", BETWEEN)
def test_fake_quants_keep_a_requantization_behind_each_operator(name, recipe):
    type_, shift = {"int8": ("int8", 1), "int16x8": ("int16", 0)}[recipe]
    b = tq.ModelBuilder()
    x = pair(b, b.input("x", [1, 4, 4, 4]), "x1", 2 / 255, 0, type_)
    p, y = b.tensor("p", [1, 4, 4, 4]), b.tensor("y", [1, 4, 4, 4])
    b.operator(name, [x], [p], **BETWEEN[name])
    b.operator("LEAKY_RELU", [pair(b, pair(b, p, "p1", 2 / 255, 0, type_), "p2", 0.006, -20 * shift, type_)], [y])
    b.output(pair(b, y, "z", 0.005, 4 * shift, type_))
    first = tq.quantize_model(b.to_bytes(), recipe)
    assert names(first) == ["QUANTIZE", name, "QUANTIZE", "LEAKY_RELU", "DEQUANTIZE"]
    again = tq.quantize_model(tq.dequantize_model(first, fake_quant=True), recipe)
    assert names(again) == names(first) and rows(again) == rows(first)


def test_biases_of_int64_come_back():
    """Their steps are finer than float32's."""
    rng = np.random.default_rng(8)
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 16]), b.tensor("y", [1, 64])
    w, bias = rng.standard_normal((64, 16)).astype(F), rng.uniform(-900, 900, 64).astype(F)
    b.operator("FULLY_CONNECTED", [x, b.constant("w", w), b.constant("bias", bias)], [y])
    b.output(y)
    first = tq.quantize_model(b.to_bytes(), "int16x8", default_ranges=(-1, 1))
    assert (np.abs(tq.Model(first).tensors["bias"].data) > 2**25).any()
    real = tq.dequantize_model(first)
    assert rows(tq.quantize_model(real, "int16x8")) == rows(first)


@pytest.mark.parametrize("fake_quant", [False, True])
@pytest.mark.parametrize("name", [*LAYERS, "network", "TRANSPOSE_CONV"])
def test_uint8_comes_back_too(name, fake_quant):
    first = quantized(MODELS[name](), "uint8")
    again = tq.quantize_model(tq.dequantize_model(first, fake_quant=fake_quant), "uint8")
    assert rows(again) == rows(first) and names(again) == names(first)


def test_ranges_of_uint8_weights_give_the_scale_and_the_zero_point():
    rng = np.random.default_rng(2)
    exact = 0
    for scale in np.exp(rng.uniform(-8, 2, 300)).astype(F):
        zero = int(rng.integers(1, 256))
        low, high = ends.of_unsigned_weights(float(scale), zero)
        made = tq.choose_quantization_params(low, high, "uint8", narrow_range=True, rule="toco")
        exact += (F(made.scale), int(made.zero_point)) == (scale, zero)
    assert exact >= 296


def test_a_sum_of_given_ranges_is_split_the_first_time():
    b = tq.ModelBuilder()
    x, m, y = b.input("x", [1, 8]), b.tensor("m", [1, 8]), b.tensor("y", [1])
    b.operator("LEAKY_RELU", [x], [m], alpha=0.5)
    b.operator("SUM", [m, b.constant("axes", np.array([1], np.int32))], [y], keep_dims=False)
    b.output(y)
    first = tq.quantize_model(b.to_bytes(), "int8", default_ranges=(-1, 2))
    assert "SUM" not in names(first)
    assert rows(tq.quantize_model(tq.dequantize_model(first), "int8")) == rows(first)


def cast():
    b = tq.ModelBuilder()
    x, y = b.input("x", [4], "int8", scale=0.5), b.tensor("y", [4], "int32")
    b.operator("CAST", [x], [y])
    b.output(y)
    return b.to_bytes()


def test_what_has_no_float_form_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"operator 0 \(CAST\) .* has no float form: the kernel converts"):
        tq.dequantize_model(cast(), tmp_path / "out.tflite")
    with pytest.raises(ValueError, match="no quantized values"):
        tq.dequantize_model(network())
    with pytest.raises(ValueError, match="dtype is 'int8'"):
        tq.dequantize_model(quantized(network()), dtype="int8")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def scaleless():
    """SPACE_TO_DEPTH of uint8, whose output alone has a scale."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 4, 4, 2], "uint8")
    y = b.tensor("y", [1, 2, 2, 8], "uint8", scale=0.25, zero_point=127)
    b.operator("SPACE_TO_DEPTH", [x], [y], block_size=2)
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize(
    "change",
    [
        tq.dequantize_model,
        tq.transcode,
        lambda model: tq.dequantize_model(model, fake_quant=True),
        lambda model: tq.dequantize_model(model, dtype="float16"),  # although there are no weights
    ],
)
def test_a_scale_that_follows_from_another_need_not_be_there(scaleless, change):
    made = tq.Model(bytes(change(scaleless)))
    assert not made.problems and made.inputs[0].type == made.outputs[0].type != tq.TensorType.UINT8
    assert np.isfinite(outputs(bytes(change(scaleless)), "BUILTIN_REF")).all()  # LiteRT runs it


INSIDE = [["norm"], ["projection"], ["projection", "norm", "peephole"]]


@pytest.mark.parametrize("more", INSIDE, ids="-".join)
@pytest.mark.parametrize("name", ["LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"])
def test_values_inside_lstms_keep_their_scales(name, more, tmp_path):
    """The inputs of a layer normalization and of a projection, which are no tensors of the graph."""
    model = lstm(name, more)
    samples = [[np.random.default_rng(i).uniform(-1, 1, tq.Model(model).inputs[0].shape).astype(F)] for i in range(3)]
    seen = tq.calibrate(model, samples)
    first = tq.quantize_model(model, "int8", calibration=seen)
    assert name in names(first) and "INT8" in {t.type.name for t in tq.Model(first).operators[-2].outputs}
    seen.save(tmp_path / "seen.json")
    for known in (tq.Calibration.load(tmp_path / "seen.json"), tq.Calibration.from_model(first)):
        assert rows(tq.quantize_model(model, "int8", calibration=known)) == rows(first)
    real = tq.dequantize_model(first)
    assert rows(tq.quantize_model(real, "int8")) == rows(first)
    assert tq.Calibration.from_model(tq.quantize_model(real, "int8")) == tq.Calibration.from_model(first)
    for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN"):
        assert noise_db(outputs(model, "TQ"), outputs(real, kernels)) > 25


# ---- uint8 as int8 ----


def uint8_network(spread=120):
    """conv -> pool -> concatenation -> fully connected of uint8 values; `spread`: of q - z of the weights."""
    rng = np.random.default_rng(4)
    b = tq.ModelBuilder()
    x = b.input("x", [1, 4, 4, 4], "uint8", scale=2 / 255, zero_point=128)
    steps = rng.integers(-spread, spread + 1, (8, 3, 3, 4))
    steps.flat[0] = spread
    zero = 255 - spread if spread > 127 else 121
    w = b.constant("w", (steps + zero).clip(0, 255).astype(np.uint8), scale=0.01, zero_point=zero)
    bias = b.constant("bias", rng.integers(-5000, 5000, 8, dtype=np.int32), scale=2 / 255 * 0.01)
    y = b.tensor("y", [1, 4, 4, 8], "uint8", scale=0.03, zero_point=100)
    b.operator("CONV_2D", [x, w, bias], [y], **CONV)
    p = b.tensor("p", [1, 4, 4, 8], "uint8", scale=0.03, zero_point=100)
    b.operator("MAX_POOL_2D", [y], [p], filter_height=2, filter_width=2, stride_h=1, stride_w=1, padding="SAME")
    both = b.tensor("both", [1, 4, 4, 16], "uint8", scale=0.03, zero_point=100)
    b.operator("CONCATENATION", [y, p], [both], axis=3)
    more = b.constant("more", rng.integers(0, 256, 16, dtype=np.uint8), scale=0.02, zero_point=90)
    s = b.tensor("s", [1, 4, 4, 16], "uint8", scale=0.04, zero_point=110)
    b.operator("ADD", [both, more], [s])
    soft = b.tensor("soft", [1, 4, 4, 16], "uint8", scale=1 / 256, zero_point=0)
    b.operator("SOFTMAX", [s], [soft], beta=1.0)
    b.output(soft)
    return b.to_bytes()


def run(data, x):
    interpreter = tq.Interpreter(model_content=bytes(data), numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_uint8_becomes_int8_exactly():
    model = uint8_network()
    made = tq.transcode(model)
    assert made.changes == () and not tq.Model(made).problems
    assert {t.type.name for t in tq.Model(made).tensors} == {"INT8", "INT32"}
    assert tq.Model(made).tensors["w"].quantization.zero_point == 0
    for old, new in zip(tq.Model(model).tensors, tq.Model(made).tensors, strict=True):
        assert old.name == new.name
        np.testing.assert_array_equal(old.quantization.scale, new.quantization.scale)
        if old.is_constant:
            np.testing.assert_array_equal(old.dequantized(), new.dequantized())
    x = np.random.default_rng(5).integers(0, 256, (1, 4, 4, 4)).astype(np.uint8)
    given = (x.astype(np.int16) - 128).astype(np.int8)
    np.testing.assert_array_equal(run(made, given).astype(np.int16) + 128, run(model, x))
    from_litert = outputs(made, "BUILTIN_REF")
    np.testing.assert_array_equal(outputs(made, "TQ"), from_litert)


def test_weights_that_do_not_fit_get_a_scale_and_say_what_it_costs():
    model = uint8_network(200)
    made = tq.transcode(model)
    assert [change.tensor for change in made.changes] == ["w", "bias"]
    old, new = tq.Model(model).tensors, tq.Model(made).tensors
    for change in made.changes:
        error = np.abs(old[change.tensor].dequantized().astype(np.float64) - new[change.tensor].dequantized())
        assert change.loss == pytest.approx(error.max(), rel=1e-3) and change.steps <= 0.51
        assert change.scale == new[change.tensor].quantization.scale.max()
    assert new["w"].quantization.scale[0] == pytest.approx(0.01 * 200 / 127)
    assert np.abs(new["w"].data).max() == 127
    np.testing.assert_array_equal(outputs(made, "TQ"), outputs(made, "BUILTIN_REF"))


@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_channels_whose_weights_fit_stay_as_they_are(name):
    b = tq.ModelBuilder()
    x = b.input("x", [1, 4, 4, 4], "uint8", scale=2 / 255, zero_point=128)
    steps = np.random.default_rng(7).integers(-50, 51, (4, 3, 3, 4) if name == "CONV_2D" else (1, 3, 3, 4))
    axis = 0 if name == "CONV_2D" else 3
    np.moveaxis(steps, axis, 0)[2].flat[0] = 200
    w = b.constant("w", (steps + 55).astype(np.uint8), scale=0.01, zero_point=55)
    bias = b.constant("bias", np.array([10, -2000, 3001, 7], np.int32), scale=2 / 255 * 0.01)
    y = b.tensor("y", [1, 4, 4, 4], "uint8", scale=0.05, zero_point=100)
    more = {"depth_multiplier": 1} if name == "DEPTHWISE_CONV_2D" else {}
    b.operator(name, [x, w, bias], [y], padding="SAME", stride_h=1, stride_w=1, **more)
    b.output(y)
    made = tq.transcode(b.to_bytes())
    new = tq.Model(made).tensors
    scales = np.float32([0.01, 0.01, 0.01 * 200 / 127, 0.01])
    np.testing.assert_allclose(new["w"].quantization.scale, scales, rtol=1e-6)
    assert new["w"].quantization.quantized_dimension == axis
    old = np.moveaxis(steps, axis, 0)
    np.testing.assert_array_equal(np.moveaxis(new["w"].data, axis, 0)[[0, 1, 3]], old[[0, 1, 3]])
    np.testing.assert_array_equal(new["bias"].data, [10, -2000, np.rint(3001 * 127 / 200), 7])
    assert tq.check(made) == () or not [item for item in tq.check(made) if item.level == "violates"]
    np.testing.assert_array_equal(outputs(made, "TQ"), outputs(made, "BUILTIN_REF"))


def test_operators_of_uint8_alone_keep_it_between_quantizes():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 4], "uint8", scale=0.5, zero_point=7), b.tensor("y", [1, 4], "int32")
    r = b.tensor("r", [1, 4], "uint8", scale=0.5, zero_point=7)
    b.operator("RESHAPE", [x, b.constant("shape", np.array([1, 4], np.int32))], [r], new_shape=[1, 4])
    b.operator("CAST", [r], [y])
    b.output(y)
    made = tq.transcode(b.to_bytes())
    assert names(made) == ["RESHAPE", "QUANTIZE", "CAST"]
    np.testing.assert_array_equal(run(made, np.int8([[-128, 0, 5, 127]])), [[0, 128, 133, 255]])


def test_concatenations_of_several_scales_are_requantized():
    b = tq.ModelBuilder()
    x = b.input("x", [1, 4], "uint8", scale=0.5, zero_point=7)
    y = b.input("y", [1, 4], "uint8", scale=0.25, zero_point=0)
    z = b.tensor("z", [1, 8], "uint8", scale=0.5, zero_point=7)
    b.operator("CONCATENATION", [x, y], [z], axis=1)
    b.output(z)
    made = tq.transcode(b.to_bytes())
    assert names(made) == ["QUANTIZE", "CONCATENATION"] and not tq.Model(made).problems


@pytest.mark.parametrize("scale", [0.03218776, 0.05, 0.0432779, 0.2])
def test_a_requantization_before_concatenation_is_a_change_where_it_rounds_otherwise(scale):
    b = tq.ModelBuilder()
    x = b.input("x", [1, 256], "uint8", scale=scale, zero_point=140)
    y = b.constant("y", np.uint8([[1, 2]]), scale=0.0865558, zero_point=183)
    z = b.tensor("z", [1, 258], "uint8", scale=0.0865558, zero_point=183)
    b.operator("CONCATENATION", [x, y], [z], axis=1)
    b.output(z)
    model, q = b.to_bytes(), np.arange(256).reshape(1, 256)
    made = tq.transcode(model)
    most = np.abs(run(made, (q - 128).astype(np.int8)) + 128.0 - run(model, q.astype(np.uint8))).max()
    assert [(change.tensor, change.steps) for change in made.changes] == ([("x", most)] if most else [])


def test_models_without_uint8_are_an_error():
    with pytest.raises(ValueError, match="no uint8 values"):
        tq.transcode(network())
    with pytest.raises(ValueError, match="dtype is 'int16'"):
        tq.transcode(uint8_network(), "int16")


def test_damaged_files_are_errors():
    """Any bytes give a result, a ValueError or a tq.Error."""
    rng = np.random.default_rng(7)
    seeds = [paired("uint8")[0], uint8_network(200), bytes(quantized(network()))]
    calls = [
        tq.dequantize_model,
        lambda data: tq.dequantize_model(data, fake_quant=True),
        tq.transcode,
        tq.Calibration.from_model,
        lambda data: tq.quantize_model(data, "int8", default_ranges=(-1, 1)),
    ]
    refused = 0
    for number in range(300):
        data = bytearray(seeds[number % len(seeds)])
        for place in rng.integers(len(data), size=3):
            data[place] = rng.integers(256)
        for call in calls:
            try:
                call(bytes(data))
            except (ValueError, tq.Error):
                refused += 1
    assert refused > 300


# ---- the command line ----


def tq_command(*arguments, folder):
    done = subprocess.run([*TQ, *arguments], cwd=folder, capture_output=True, text=True, env=environment(), timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_commands(tmp_path):
    (tmp_path / "u8.tflite").write_bytes(uint8_network(200))
    code, said = tq_command("transcode", "u8.tflite", "i8.tflite", folder=tmp_path)
    assert code == 0 and "'w' of subgraph 0: a scale of its own" in said
    assert (tmp_path / "i8.tflite").read_bytes() == tq.transcode(uint8_network(200))
    code, said = tq_command("dequantize", "i8.tflite", "f.tflite", "--fake-quant", folder=tmp_path)
    assert code == 0 and "FAKE_QUANT" in names((tmp_path / "f.tflite").read_bytes())
    code, said = tq_command("dequantize", "f.tflite", "g.tflite", folder=tmp_path)
    assert code == 2 and "no quantized values" in said
    (tmp_path / "t.tflite").write_bytes(layer("CONV_2D", lambda b, w: fake(b, w, "w", -1.25, 1.25, narrow=True)))
    quantize = ("quantize", "t.tflite", "q.tflite", "--recipe", "int8")
    code, said = tq_command(*quantize, "--range", "bias=0,1", folder=tmp_path)
    assert code == 2 and "no effect" in said
    code, said = tq_command(*quantize, folder=tmp_path)
    assert code == 0 and "1 of 1 weights lie on the trained grid" in said
    check((tmp_path / "t.tflite").read_bytes(), (tmp_path / "q.tflite").read_bytes())
