# SPDX-License-Identifier: Apache-2.0
"""Equalization keeps every bit of a float model; bias correction keeps means; sensitivity is what a model shows in
which one part alone is quantized; a target is reached, or refused with the best that there is."""

import contextlib

import numpy as np
import pytest
import test_quantize_static
from commands import failed, fine
from damage import damaged
from models import calibrated
from test_quantize_model import normal
from test_quantize_static import draws

import tq
from tq.accuracy import measuring
from tq.cli import demo_float
from tq.cli.arguments import main
from tq.quantization import bias_correction, equalization
from tq.quantization.bias_correction import correct_biases
from tq.quantization.recipes import Rule
from tq.reports.page import kind_of

FLOAT = demo_float.float_model()
PICTURES = list(demo_float.pictures(10)[0])


def opened(model):
    return model if isinstance(model, tq.Model) else tq.Model(model)


def outputs(model, samples, of=None):
    return measuring.outputs(opened(model), measuring.Samples(opened(of or model), samples))


def sqnr(model, data, samples):
    return measuring.together(measuring.output_noises(outputs(model, samples), outputs(data, samples, model)))


def images(model, count=4):
    rng = np.random.default_rng(1)
    shapes = [tensor.shape for tensor in tq.Model(model).inputs]
    return [[rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes] for _ in range(count)]


STEPS = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
UNEVEN = (4.0 ** np.arange(-4, 4)).astype(np.float32)  # of 8 channels


def network(between=(), first="CONV_2D", second="CONV_2D", activation="RELU", shape=(1, 4, 4, 8)):
    """A layer with uneven channels, operators (name, constants, output's shape, options), and a layer."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 4, 4, 3] if first == "CONV_2D" else [1, 4, 4, 8] if first != "FULLY_CONNECTED" else [2, 5])
    tensor = b.tensor("t", shape)
    weights = {"CONV_2D": (8, 3, 3, 3), "DEPTHWISE_CONV_2D": (1, 3, 3, 8), "FULLY_CONNECTED": (8, 5)}[first]
    axis = -1 if first == "DEPTHWISE_CONV_2D" else 0
    gains = UNEVEN.reshape([-1 if place == axis % len(weights) else 1 for place in range(len(weights))])
    options = {**(STEPS if first != "FULLY_CONNECTED" else {}), "fused_activation_function": activation}
    options |= {"depth_multiplier": 1} if first == "DEPTHWISE_CONV_2D" else {}
    b.operator(
        first, [x, b.constant("w", normal(*weights) * gains), b.constant("b", normal(8) * UNEVEN)], [tensor], **options
    )
    for place, (name, constants, size, more) in enumerate(between):
        out = b.tensor(f"m{place}", size)
        b.operator(name, [tensor, *(b.constant(f"c{place}{i}", c) for i, c in enumerate(constants))], [out], **more)
        tensor, shape = out, size
    if second == "CONV_2D":
        weights, out, options = normal(6, 3, 3, 8), [*shape[:3], 6], STEPS
    elif second == "DEPTHWISE_CONV_2D":
        weights, out, options = normal(1, 3, 3, 16), [*shape[:3], 16], {**STEPS, "depth_multiplier": 2}
    else:
        count = int(np.prod(shape[1:]))
        weights, out, options = normal(6, count), [shape[0], 6], {}
    y = b.tensor("y", out)
    b.operator(
        second,
        [
            tensor,
            b.constant("v", weights),
            b.constant("d", normal(weights.shape[0 if second != "DEPTHWISE_CONV_2D" else 3])),
        ],
        [y],
        **options,
    )
    b.output(y)
    return b.to_bytes()


def i32(*values):
    return np.array(values, np.int32)


POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
SCALED = {
    "conv": lambda: network(),
    "linear": lambda: network(activation="NONE"),
    "depthwise first": lambda: network(first="DEPTHWISE_CONV_2D"),
    "depthwise second": lambda: network(second="DEPTHWISE_CONV_2D"),
    "dense": lambda: network(first="FULLY_CONNECTED", second="FULLY_CONNECTED", shape=(2, 8)),
    "flattened": lambda: network(second="FULLY_CONNECTED"),
    "reshaped": lambda: network(
        [("RESHAPE", [i32(1, 128)], (1, 128), {"new_shape": [1, 128]})], second="FULLY_CONNECTED"
    ),
    "relu": lambda: network([("RELU", [], (1, 4, 4, 8), {})], activation="NONE"),
    "leaky": lambda: network([("LEAKY_RELU", [], (1, 4, 4, 8), {"alpha": 0.3})], activation="NONE"),
    "prelu": lambda: network([("PRELU", [normal(1, 1, 8)], (1, 4, 4, 8), {})], activation="NONE"),
    "abs": lambda: network([("ABS", [], (1, 4, 4, 8), {})], activation="NONE"),
    "pools": lambda: network([("MAX_POOL_2D", [], (1, 2, 2, 8), POOL)]),
    "means": lambda: network([("AVERAGE_POOL_2D", [], (1, 2, 2, 8), POOL)]),
    "mean": lambda: network([("MEAN", [i32(1, 2)], (1, 8), {})], second="FULLY_CONNECTED"),
    "pad": lambda: network([("PAD", [i32([0, 0], [1, 1], [0, 2], [0, 0])], (1, 6, 6, 8), {})]),
    "resize": lambda: network([("RESIZE_BILINEAR", [i32(8, 8)], (1, 8, 8, 8), {})]),
}
SIX = {**POOL, "fused_activation_function": "RELU6"}
WIDE, NARROW = [i32([0, 0], [0, 0], [0, 0], [4, 4])], [i32(0, 0, 0, 4), i32(1, 4, 4, 8)]
LEFT_ALONE = {
    "relu6": lambda: network(activation="RELU6"),
    "tanh": lambda: network(activation="TANH"),
    "logistic between": lambda: network([("LOGISTIC", [], (1, 4, 4, 8), {})]),
    "fused between": lambda: network([("MAX_POOL_2D", [], (1, 2, 2, 8), SIX)]),
    "mean of channels": lambda: network([("MEAN", [i32(3)], (1, 4, 4, 8), {"keep_dims": True})]),
    "padded channels": lambda: network([("PAD", WIDE, (1, 4, 4, 16), {}), ("SLICE", NARROW, (1, 4, 4, 8), {})]),
    "mixed channels": lambda: network([("TRANSPOSE", [i32(0, 1, 2, 3)], (1, 4, 4, 8), {})]),
}


# ---- equalization ----


@pytest.mark.filterwarnings("ignore:relu6='minimum' changes nothing")
@pytest.mark.parametrize("relu6", ["keep", "minimum"])
@pytest.mark.parametrize("with_samples", [False, True])
@pytest.mark.parametrize("name", SCALED)
def test_equalized_models_keep_every_bit(name, with_samples, relu6):
    model = SCALED[name]()
    samples = images(model)
    made = tq.equalize(model, samples=samples if with_samples else None, relu6=relu6)
    old, new = (tq.Model(data).tensors["w"].data for data in (model, made))
    assert not np.array_equal(old, new)
    for row, other in zip(outputs(model, samples), outputs(made, samples), strict=True):
        for x, y in zip(row, other, strict=True):
            assert x.tobytes() == y.tobytes() and np.abs(x).max() > 0


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_does_not_scale_is_left_alone(name):
    model = LEFT_ALONE[name]()
    with pytest.warns(RuntimeWarning, match="no two layers"):
        made = tq.equalize(model)
    assert not tq.diff(tq.Model(model), tq.Model(made))


def test_relu6_becomes_minimum():
    model = network(activation="RELU6")
    made = tq.equalize(model, relu6="minimum")
    assert [op.name for op in tq.Model(made).operators] == ["CONV_2D", "MINIMUM", "CONV_2D"]
    samples = [[8 * item[0]] for item in images(model)]  # so that many values pass 6
    assert (outputs(model, samples)[0][0] == outputs(made, samples)[0][0]).all()
    top = tq.Model(made).tensors["t_top"].data
    assert top.min() < 6 < top.max()


def test_ranges_become_alike():
    model = network()
    spreads = []
    for data in (model, tq.equalize(model)):
        opened = tq.Model(data)
        first = np.abs(opened.tensors["w"].data).max((1, 2, 3))
        second = np.abs(opened.tensors["v"].data).max((0, 1, 2))
        spreads.append(first.max() / first.min())
        assert spreads[0] > 1000
    assert spreads[1] < 150
    assert (first / second).max() / (first / second).min() <= 4.001  # powers of two, each within sqrt(2) of the best


def test_a_chain_settles():
    made = tq.equalize(FLOAT)
    assert tq.equalize(made) == tq.equalize(tq.equalize(made))
    assert len(equalization.pairs(tq.edit(FLOAT).main)) == 3
    options = {"calibration": PICTURES, "per_axis": False}
    better = tq.quantize_model(tq.equalize(FLOAT, per_axis=False), "int8", **options)
    assert sqnr(FLOAT, better, PICTURES) > sqnr(FLOAT, tq.quantize_model(FLOAT, "int8", **options), PICTURES) + 3


def test_weights_of_float16_are_scaled_too():
    half = tq.quantize_model(FLOAT, "float16")
    for samples in (None, PICTURES):
        made = tq.equalize(half, samples=samples)
        weights = tq.Model(FLOAT).tensors["edges/weights"].data.astype(np.float16).astype(np.float32)
        scaled = next(op for op in tq.Model(made).operators if op.name == "CONV_2D").inputs[1]
        assert scaled.name.startswith("edges/weights") and not np.array_equal(scaled.data, weights)
        for row, other in zip(outputs(half, PICTURES), outputs(made, PICTURES), strict=True):
            assert row[0].tobytes() == other[0].tobytes()
    alone = tq.quantize_model(SCALED["conv"](), "float16", rules=[Rule("float", tensor="^y$")])
    with tq.edit(alone) as e:
        e.main.outputs = [*e.outputs, "t"]  # nothing to scale any more
        alone = e.to_bytes()
    with pytest.warns(RuntimeWarning, match="no two layers"):
        assert tq.equalize(alone) == tq.edit(alone).to_bytes()


def test_stored_ranges_go():
    with tq.edit(SCALED["relu"]()) as e:
        for name in ("t", "m0", "w", "y"):
            e.tensors[name].quantization.min, e.tensors[name].quantization.max = [-1], [1]
        model = e.to_bytes()
    made = tq.Model(tq.equalize(model))
    assert [len(made.tensors[name].quantization.min) for name in ("t", "m0", "w", "y")] == [0, 0, 0, 1]


def test_layers_that_others_read_are_left_alone():
    with tq.edit(network()) as e:
        e.main.outputs = [*e.outputs, "t"]
        shown = e.to_bytes()
    with pytest.warns(RuntimeWarning, match="no two layers"):
        assert not tq.diff(tq.Model(shown), tq.Model(tq.equalize(shown)))
    for options in ({}, {"per_axis": False}):
        with pytest.raises(ValueError, match="equalize changes nothing"):
            tq.quantize_model(shown, "int8", samples=images(shown), equalize=True, **options)
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 4, 4, 8]), b.tensor("y", [1, 4, 4, 8]), b.tensor("z", [1, 4, 4, 8])
    w = b.constant("w", normal(8, 1, 1, 8) * UNEVEN[:, None, None, None])
    b.operator("CONV_2D", [x, w], [y], **STEPS)
    b.operator("CONV_2D", [y, w], [z], **STEPS)
    b.output(z)
    shared = b.to_bytes()
    with pytest.warns(RuntimeWarning, match="no two layers"):
        assert not tq.diff(tq.Model(shared), tq.Model(tq.equalize(shared)))


def test_equalize_refuses():
    with pytest.raises(ValueError, match="relu6 is 'no'"):
        tq.equalize(FLOAT, relu6="no")
    with pytest.raises(ValueError, match="no samples"):
        tq.equalize(FLOAT, samples=[])
    with tq.edit(FLOAT) as e:
        e.tensors["soft/weights"].data = np.full((1, 3, 3, 16), np.nan, np.float32)
        data = e.to_bytes()
    with pytest.raises(ValueError, match=r"'soft/weights'.*not finite"):
        tq.equalize(data)


def test_equalize_without_a_relu6_to_write_out_warns():
    with pytest.warns(RuntimeWarning, match="relu6='minimum' changes nothing"):
        made = tq.equalize(SCALED["relu"](), relu6="minimum")
    assert made == tq.equalize(SCALED["relu"]())


def test_the_command_says_that_nothing_was_scaled(tmp_path, capsys):
    model = tmp_path / "m.tflite"
    model.write_bytes(LEFT_ALONE["tanh"]())
    assert main(["equalize", str(model), str(tmp_path / "out.tflite")]) == 0
    assert "warning: equalize changes nothing: no two layers" in capsys.readouterr().out
    assert not tq.diff(model, tmp_path / "out.tflite")


def test_equalize_writes(tmp_path):
    data = tq.equalize(FLOAT, output=tmp_path / "m.tflite")
    assert (tmp_path / "m.tflite").read_bytes() == data


# ---- bias correction ----


def layer(name, weights, shape, output, **options):
    b = tq.ModelBuilder()
    x, y = b.input("x", shape), b.tensor("y", output)
    channels = weights.shape[3 if name == "DEPTHWISE_CONV_2D" else 0]
    b.operator(name, [x, b.constant("w", weights), b.constant("b", normal(channels))], [y], **options)
    b.output(y)
    return b.to_bytes()


def conv(padding, stride=1, dilation=1, size=(7, 8), name="CONV_2D", filter=(5, 3, 2, 4), **more):
    out = []
    for length, taps in zip(size, filter[1:3], strict=True):
        reach = (taps - 1) * dilation + 1
        out.append(-(-length // stride) if padding == "SAME" else (length - reach) // stride + 1)
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, **more}
    options |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation}
    channels = filter[3] if name == "DEPTHWISE_CONV_2D" else filter[0]
    return layer(name, normal(*filter), (2, *size, 4), (2, *out, channels), **options)


@pytest.mark.parametrize(
    "model",
    [
        *(conv(padding, stride, 1) for padding in ("SAME", "VALID") for stride in (1, 2, 3)),
        *(conv(padding, 1, 2) for padding in ("SAME", "VALID")),
        conv("SAME", 5, 1, size=(3, 2)),
        conv("SAME", 2, name="DEPTHWISE_CONV_2D", filter=(1, 3, 2, 8), depth_multiplier=2),
        conv("SAME", filter=(6, 3, 3, 2)),  # two groups
        layer("FULLY_CONNECTED", normal(6, 10), (3, 10), (3, 6)),
    ],
)
def test_means_are_those_of_the_outputs(model):
    opened = tq.Model(model)
    (op,) = opened.operators
    samples = images(model)
    mean = bias_correction._means(opened, [op], measuring.Samples(opened, samples), None)[0]
    expected = bias_correction._expected(op, op.inputs[1].data.astype(np.float64), mean) + op.inputs[2].data
    found = np.mean([row[0] for row in outputs(model, samples)], axis=0, dtype=np.float64)
    np.testing.assert_allclose(expected, found.mean(axis=tuple(range(found.ndim - 1))), atol=1e-5)


@pytest.mark.parametrize("recipe", ["int8", "dynamic_int8", "weight_only_int4", "dynamic_int4"])
def test_mean_errors_shrink(recipe):
    model = layer("FULLY_CONNECTED", normal(24, 64), (2, 64), (2, 24))
    samples = [[np.abs(item[0]) + 1] for item in images(model, 20)]  # far from zero: rounding shifts the mean
    data = tq.quantize_model(model, recipe, **calibrated(recipe, samples), per_axis=False, min_elements=0)
    exact = np.mean([row[0] for row in outputs(model, samples)], axis=(0, 1))
    before = np.mean([row[0] for row in outputs(data, samples, model)], axis=(0, 1)) - exact
    made = correct_biases(model, data, samples)
    after = np.mean([row[0] for row in outputs(made, samples, model)], axis=(0, 1)) - exact
    assert np.abs(after).max() < np.abs(before).max() / 3
    assert not tq.Model(made).problems
    assert [d.kind for d in tq.diff(tq.Model(data), tq.Model(made))] == ["weights"]


def test_biases_are_added_and_unshared():
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 8]), b.tensor("y", [1, 8]), b.tensor("z", [1, 8])
    shared = b.constant("b", normal(8))
    b.operator("FULLY_CONNECTED", [x, b.constant("v", normal(8, 8)), shared], [y])
    b.operator("FULLY_CONNECTED", [y, b.constant("w", normal(8, 8, seed=1)), shared], [z])
    b.operator("FULLY_CONNECTED", [z, b.constant("u", normal(8, 8, seed=2))], [b.tensor("end", [1, 8])])
    b.output("end")
    model = b.to_bytes()
    samples = [[np.abs(item[0])] for item in images(model)]
    types = {"int8": "INT32", "int16x8": "INT64", "dynamic_int8": "FLOAT32"}  # LiteRT reads INT16's biases as INT64
    for recipe, type_ in types.items():
        data = tq.quantize_model(model, recipe, **calibrated(recipe, samples), min_elements=0)
        made = tq.Model(correct_biases(model, data, samples))
        layers = [op for op in made.operators if op.name == "FULLY_CONNECTED"]
        biases = [op.inputs[2] for op in layers]
        assert len({tensor.index for tensor in biases}) == 3
        assert {tensor.type.name for tensor in biases} == {type_}
        assert not made.problems
        if recipe == "int8":
            np.testing.assert_allclose(
                biases[2].quantization.scale,
                layers[2].inputs[0].quantization.scale * layers[2].inputs[1].quantization.scale,
            )
        sqnr(model, bytes(correct_biases(model, data, samples)), samples)


def test_biases_of_64_bits():
    """Inputs that were always 0 have a scale in which biases take more than 32 bits."""
    model = layer("FULLY_CONNECTED", normal(6, 10), (3, 10), (3, 6))
    samples = [np.zeros((3, 10), np.float32)]
    data = tq.quantize_model(model, "int16x8", calibration=samples)
    made = tq.Model(correct_biases(model, data, samples))
    before, after = (opened.operators[1].inputs[2].data for opened in (tq.Model(data), made))
    assert np.abs(before).max() > 2**31
    np.testing.assert_array_equal(before, after)


def test_bias_correction_refuses():
    data = tq.quantize_model(FLOAT, "int8", calibration=PICTURES)
    with pytest.raises(ValueError, match="no layer in common"):
        correct_biases(FLOAT, FLOAT, PICTURES)
    with pytest.raises(ValueError, match="no samples"):
        correct_biases(FLOAT, data, [])


# ---- sensitivity ----


def test_operators_alone_are_models_of_their_own():
    samples = PICTURES[:3]
    found = tq.sensitivity(FLOAT, samples, max_samples=0)
    assert [row.sqnr_db for row in found] == sorted(row.sqnr_db for row in found) and len(found) == 6
    for row in found:
        rules = [Rule("int8", tensor=f"^{row.name}$")]
        if row.operator_name == "MEAN":
            continue
        alone = tq.quantize_model(FLOAT, "float", rules=rules, calibration=samples)
        assert sqnr(FLOAT, alone, samples) == pytest.approx(row.sqnr_db, abs=1e-6), row.name
    whole = tq.quantize_model(FLOAT, "int8", calibration=samples)
    assert found.sqnr_db == pytest.approx(sqnr(FLOAT, whole, samples), abs=1e-6)


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int4"])
def test_weights_alone(recipe):
    samples = PICTURES[:2]
    for by in ("operator", "tensor"):
        found = tq.sensitivity(FLOAT, samples, recipe=recipe, by=by, min_elements=0)
        row = next(row for row in found if row.operator == 4)
        rules = [Rule(recipe, tensor="^scores$")]
        alone = tq.quantize_model(FLOAT, "float", rules=rules, min_elements=0)
        if by == "operator" or recipe == "weight_only_int4":
            assert sqnr(FLOAT, alone, samples) == pytest.approx(row.sqnr_db, abs=1e-6)
        assert {item.kind for item in found} == ({"operator"} if by == "operator" else {"weights"})


def test_an_activation_alone_is_rounded():
    (picture,) = samples = PICTURES[:1]
    found = tq.sensitivity(FLOAT, PICTURES, by="tensor", samples=samples)
    data = tq.Model(tq.quantize_model(FLOAT, "int8", calibration=PICTURES))
    for name, place in (("edges", 0), ("soft", 1), ("mean", 3), ("picture", -1)):
        alone = tq.Interpreter(model_content=FLOAT, experimental_preserve_all_tensors=True, numerics="reference")
        alone.allocate_tensors()
        alone.set_tensor(0, picture)
        alone.invoke()
        exact = alone.get_tensor(alone.get_output_details()[0]["index"])
        tensor = tq.Model(FLOAT).tensors[name]
        parameters = data.tensors["picture_int8" if name == "picture" else name].quantization
        alone.set_tensor(tensor.index, parameters.dequantize(parameters.quantize(alone.get_tensor(tensor.index))))
        alone.run(place + 1)
        x, y = (
            np.asarray(value, np.float64) for value in (exact, alone.get_tensor(alone.get_output_details()[0]["index"]))
        )
        expected = 10 * np.log10((x**2).sum() / ((x - y) ** 2).sum())
        (row,) = (row for row in found if row.name == name)
        assert row.kind == "activation" and row.sqnr_db == pytest.approx(expected, abs=1e-6)
        assert row.operator == (None if name == "picture" else place)


def test_outputs_of_one_operator_are_rounded_one_by_one():
    """As if the others had not been: a part leaves nothing behind."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 8])
    halves = [b.tensor(f"half{i}", [1, 4]) for i in range(2)]
    b.operator("SPLIT", [b.constant("axis", np.array(1, np.int32)), x], halves, num_splits=2)
    made = [b.tensor(f"y{i}", [1, 4]) for i in range(2)]
    for half, y, alpha in zip(halves, made, (0.25, 0.5), strict=True):
        b.operator("LEAKY_RELU", [half], [y], alpha=alpha)
    b.output(*made)
    model = b.to_bytes()
    rows = {row.name: row for row in tq.sensitivity(model, images(model), by="tensor", max_samples=0)}
    assert rows["half0"].ratio + rows["half1"].ratio == pytest.approx(rows["x"].ratio, rel=1e-6)


def test_variables_do_not_carry_over():
    """A state that each run changes: what a part costs does not depend on which parts were tried before it."""
    b = tq.ModelBuilder()
    x, state = b.input("x", [1, 4]), b.tensor("state", [1, 4], is_variable=True)
    y = b.tensor("y", [1, 4])
    weights = [b.constant("w", normal(4, 4)), b.constant("r", normal(4, 4, seed=1)), b.constant("b", normal(4))]
    b.operator("RNN", [x, *weights, state], [y], fused_activation_function="TANH")
    z = b.tensor("z", [1, 4])
    b.operator("FULLY_CONNECTED", [y, b.constant("v", normal(4, 4, seed=2))], [z])
    b.output(z)
    model = b.to_bytes()
    samples = images(model)
    found = tq.sensitivity(model, samples, recipe="dynamic_int8", min_elements=0)
    for row in found:
        alone = tq.quantize_model(model, "float", rules=[Rule("dynamic_int8", tensor=f"^{row.name}$")], min_elements=0)
        assert sqnr(model, alone, samples) == pytest.approx(row.sqnr_db, abs=1e-6)


def test_what_depends_on_no_input_is_left_out():
    b = tq.ModelBuilder()
    x, scaled, y = b.input("x", [1, 8]), b.tensor("scaled", [8]), b.tensor("y", [1, 8])
    b.operator("MUL", [b.constant("c", normal(8)), b.constant("d", normal(8, seed=1))], [scaled])
    b.operator("ADD", [x, scaled], [y])
    shape, flat = b.tensor("shape", [2], "int32"), b.tensor("flat", [1, 8])
    b.operator("SHAPE", [y], [shape], out_type="INT32")
    b.operator("RESHAPE", [y, shape], [flat])
    b.output(flat)
    model = b.to_bytes()
    for by in ("operator", "tensor"):
        assert {row.name for row in tq.sensitivity(model, images(model), by=by)} <= {"x", "y", "flat"}


def test_sensitivity_refuses():
    calibration = tq.calibrate(FLOAT, PICTURES)
    with pytest.raises(ValueError, match="holds no samples: samples= is needed"):
        tq.sensitivity(FLOAT, calibration)
    assert len(tq.sensitivity(FLOAT, calibration, samples=PICTURES[:1])) == 6
    with pytest.raises(ValueError, match="by is 'layer'"):
        tq.sensitivity(FLOAT, PICTURES, by="layer")
    with pytest.raises(ValueError, match="'float' finds nothing"):
        tq.sensitivity(FLOAT, PICTURES, recipe="float")
    text = str(tq.sensitivity(FLOAT, PICTURES[:1]))
    assert "all of it" in text and "energy" in text


# ---- options of quantize_model ----


def float_operators(data):
    return [op.index for op in tq.Model(data).operators if kind_of(op) == "float"]


def test_a_target_is_reached_with_few_operators():
    plain = sqnr(FLOAT, tq.quantize_model(FLOAT, "int8", calibration=PICTURES), PICTURES)
    low = tq.quantize_model(FLOAT, "int8", calibration=PICTURES, target_sqnr=plain - 1, rules=iter(()))
    assert low == tq.quantize_model(FLOAT, "int8", calibration=PICTURES)
    made = tq.quantize_model(FLOAT, "int8", calibration=PICTURES, target_sqnr=plain + 3)
    assert sqnr(FLOAT, made, PICTURES) >= plain + 3 and 0 < len(float_operators(made)) <= 3
    ranked = tq.sensitivity(FLOAT, PICTURES)
    names = {tq.Model(made).operators[place].outputs[0].name for place in float_operators(made)}
    assert names == {row.name for row in ranked[: len(names)]}


def test_a_target_that_cannot_be_reached():
    with pytest.raises(
        ValueError, match=r"target_sqnr is 150 dB; the best that was found is \d+\.\d\d dB, with \d of 6"
    ):
        tq.quantize_model(FLOAT, "int8", calibration=PICTURES, target_sqnr=150)
    with pytest.raises(ValueError, match="target_sqnr is nan"):
        tq.quantize_model(FLOAT, "int8", calibration=PICTURES, target_sqnr=float("nan"))
    with pytest.raises(ValueError, match="fallback is 'dynamic_int8'"):
        tq.quantize_model(FLOAT, "int8", calibration=PICTURES, target_sqnr=20, fallback="dynamic_int8")


def test_a_target_of_weights_alone():
    plain = sqnr(FLOAT, tq.quantize_model(FLOAT, "weight_only_int4", min_elements=0), PICTURES)
    made = tq.quantize_model(FLOAT, "weight_only_int4", min_elements=0, target_sqnr=plain + 3, samples=PICTURES)
    assert sqnr(FLOAT, made, PICTURES) >= plain + 3 and "INT4" in {t.type.name for t in tq.Model(made).tensors}


def test_options_are_the_functions():
    corrected = tq.quantize_model(FLOAT, "int8", calibration=iter(PICTURES), bias_correction=True)
    plain = tq.quantize_model(FLOAT, "int8", calibration=PICTURES)
    assert corrected == correct_biases(FLOAT, plain, PICTURES) != plain
    calibration = tq.calibrate(FLOAT, PICTURES)
    again = tq.quantize_model(FLOAT, "int8", calibration=calibration, samples=PICTURES, bias_correction=True)
    assert again == corrected
    options = {"calibration": PICTURES, "per_axis": False}
    equal = tq.quantize_model(FLOAT, "int8", equalize=True, **options)
    assert equal == tq.quantize_model(tq.equalize(FLOAT, per_axis=False), "int8", **options)
    equal = tq.quantize_model(FLOAT, "int8", equalize=True, calibration=PICTURES)
    assert equal == tq.quantize_model(tq.equalize(FLOAT, samples=PICTURES), "int8", calibration=PICTURES)


RUN = {
    "equalized": {"equalize": True},
    "clamps": {"equalize": True, "per_axis": False},
    "corrected": {"bias_correction": True},
    "16 bits": {"rules": [Rule("int16x8", index=(1,))], "bias_correction": True},
    "target": {"target_sqnr": 40.0, "equalize": True, "bias_correction": True},
}


@pytest.mark.parametrize("name", RUN)
def test_litert_runs_what_is_made(name):
    """Under its default and reference kernels; tq gives the reference's bits."""
    activation = "RELU6" if name == "clamps" else "RELU"
    model = network([("MAX_POOL_2D", [], (1, 2, 2, 8), POOL)], activation=activation)
    test_quantize_static.check(model, tq.quantize_model(model, "int8", calibration=draws(model), **RUN[name]), least=20)


def test_options_refuse(tmp_path):
    calibration = tq.calibrate(FLOAT, PICTURES)
    for option in ({"bias_correction": True}, {"target_sqnr": 10.0}, {"equalize": True}):
        with pytest.raises(ValueError, match="samples= is needed"):
            tq.quantize_model(FLOAT, "int8", calibration=calibration, **option)
        with pytest.raises(ValueError, match="samples= is needed"):
            tq.quantize_model(FLOAT, "dynamic_int8", **option)
    with pytest.raises(ValueError, match="before it is equalized"):
        tq.quantize_model(FLOAT, "int8", calibration=calibration, samples=PICTURES, equalize=True)
    with pytest.raises(TypeError, match="Rule objects"):
        tq.quantize_model(FLOAT, calibration=PICTURES, bias_correction=True, rules=["float"])
    with pytest.raises(ValueError, match="target_sqnr is 150"):
        tq.quantize_model(FLOAT, calibration=PICTURES, target_sqnr=150, output=tmp_path / "m.tflite")
    assert not list(tmp_path.iterdir())
    data = tq.quantize_model(FLOAT, calibration=PICTURES, bias_correction=True, output=tmp_path / "m.tflite")
    assert (tmp_path / "m.tflite").read_bytes() == data


def test_operators_fall_back_to_16_bits():
    plain = sqnr(FLOAT, tq.quantize_model(FLOAT, "int8", calibration=PICTURES), PICTURES)
    options = {"calibration": PICTURES, "target_sqnr": plain + 3, "fallback": "int16x8"}
    made = tq.quantize_model(FLOAT, "int8", **options)
    assert sqnr(FLOAT, made, PICTURES) >= plain + 3
    types = {op.outputs[0].type.name for op in tq.Model(made).operators}
    assert {"INT8", "INT16"} <= types and not float_operators(made)


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_written_out_clamps_cost_no_range(recipe):
    model = network(activation="RELU6")
    samples = [[8 * item[0]] for item in images(model, 8)]
    made = tq.Model(tq.quantize_model(model, recipe, calibration=samples, per_axis=False, equalize=True))
    clamp = next(op for op in made.operators if op.name == "MINIMUM")
    assert clamp.inputs[0].quantization.scale == clamp.outputs[0].quantization.scale
    equal = tq.Model(tq.equalize(model, per_axis=False, relu6="minimum"))
    seen = tq.calibrate(equal, samples).range("t")[1]
    top = 127 if recipe == "int8" else 32767
    zero = clamp.outputs[0].quantization.zero_point[0]
    assert (top - zero) * clamp.outputs[0].quantization.scale[0] == pytest.approx(seen, rel=0.02)
    assert equal.tensors["t_top"].data.max() > 2 * seen
    plain = tq.quantize_model(model, recipe, calibration=samples, per_axis=False)
    assert sqnr(model, made, samples) > sqnr(model, plain, samples)


def test_rules_by_place():
    made = tq.quantize_model(FLOAT, "int8", calibration=PICTURES, rules=[Rule("float", index=(0, 4), subgraph=0)])
    names = [tq.Model(made).operators[place].outputs[0].name for place in float_operators(made)]
    assert names == ["edges", "scores"]
    with pytest.raises(ValueError, match="operator 'MEAN', index 2 holds for no operator: each of its conditions"):
        tq.quantize_model(FLOAT, "int8", calibration=PICTURES, rules=[Rule("float", index=2, operator="MEAN")])


def test_command_line(run, tmp_path):
    demo_float.write(tmp_path)
    files = ["demo_float.tflite", "out.tflite", "--recipe", "int8", "--samples", "demo_samples.npz"]
    fine(run("quantize", *files, "--equalize", "--bias-correction", "--target-sqnr", "50", "--observer", "mse"))
    samples = list(demo_float.pictures()[0])
    assert sqnr(FLOAT, (tmp_path / "out.tflite").read_bytes(), samples) >= 50
    failed(run("quantize", *files, "--target-sqnr", "200"), "--target-sqnr is 200 dB", "best")
    failed(run("quantize", *files[:4], "--bias-correction"), "--samples is needed")
    text = fine(run("sensitivity", "demo_float.tflite", "--recipe", "int8", "--samples", "demo_samples.npz"))
    assert "DEPTHWISE_CONV_2D" in text and "all of it" in text
    fine(run("equalize", "demo_float.tflite", "equal.tflite"))
    assert (tmp_path / "equal.tflite").read_bytes() == tq.equalize(FLOAT)


def test_damaged_models():
    """What a damaged model gives is a result or an error of tq's, from every function here and from the report."""
    model = network(activation="RELU6")
    samples = images(model, 1)
    integers = tq.quantize_model(model, "int8", calibration=samples)
    made = 0
    for seed in range(60):
        bad, worse = damaged(model, seed), damaged(integers, seed)
        for function in (
            lambda bad=bad: tq.equalize(bad, relu6="minimum", samples=samples),
            lambda bad=bad: tq.sensitivity(bad, samples),
            lambda bad=bad: tq.report(bad, integers, samples).to_html(),
            lambda worse=worse: tq.report(model, worse, samples).to_html(),
            lambda worse=worse: correct_biases(model, worse, samples),
        ):
            with contextlib.suppress(tq.Error, ValueError):
                made += bool(function())
    assert made > 60
