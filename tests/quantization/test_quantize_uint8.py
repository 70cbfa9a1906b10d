# SPDX-License-Identifier: Apache-2.0
"""Recipes "uint8", "int4" and "int16x4", ranges without data, and the mean and std of inputs."""

import numpy as np
import oracle
import pytest
import quantization_table
from test_quantize_control_flow import recurrent
from test_quantize_model import noise_db, outputs
from test_quantize_static import RESOLVERS, ROWS, network, quantized
from test_trained_grids import LAYERS, fake, layer

import tq
from tq.quantization import unsigned
from tq.specification.table import CALLING, INSTEAD, INTEGER, VARIABLES

F = np.float32


def names(data):
    return [op.name for op in tq.Model(data).operators]


def parameters(data):
    found = [t for t in tq.Model(data).tensors if len(t.quantization.scale)]
    return {t.name: (t.type.name, t.quantization.scale.tolist(), t.quantization.zero_point.tolist()) for t in found}


# ---- uint8 ----


@pytest.mark.parametrize("name", [name for name, row in INTEGER.items() if row.int8 is not None])
def test_every_operator_with_a_uint8_kernel(name):
    model = ROWS[name]()
    if name == "BATCH_MATMUL":
        with pytest.raises(ValueError, match="recipe 'uint8' finds nothing to quantize"):
            quantized(model, "uint8")
        return
    data = quantized(model, "uint8")
    opened = tq.Model(data)
    assert not opened.problems and not {"INT8", "INT16"} & {t.type.name for t in opened.tensors}
    if name in unsigned.WITHOUT:
        assert name not in [op.name for op in opened.operators if op.outputs[0].type.name == "UINT8"]
    without = ["BUILTIN_REF"] if name in ("ELU", "STABLEHLO_CASE") else []  # which it has not, of floats either
    exact = outputs(model, "TQ")
    found = {resolver: outputs(data, resolver) for resolver in RESOLVERS if resolver not in without}
    assert all(noise_db(exact, given) > 18 for given in found.values())
    if not without:
        np.testing.assert_array_equal(found["TQ"], found["BUILTIN_REF"])


def test_operators_without_a_uint8_kernel_are_those_that_are_not_compared_with_litert():
    """And those whose kernel writes the quantized value 0 for 0.0, or takes uint8 weights beside floats alone."""
    rows = {name for name, row in INTEGER.items() if row.int8 is not None and name not in INSTEAD}
    copying = {*CALLING, *VARIABLES}
    others = {"MATRIX_DIAG", "MATRIX_SET_DIAG", "SCATTER_ND", "EMBEDDING_LOOKUP"}
    others |= {name for name in rows if INTEGER[name].recurrent}
    assert rows - quantization_table.kernels("uint8") - copying | others == unsigned.WITHOUT


def test_weights_are_tocos():
    """From 1 to 255, by their least and greatest value; biases of the product of both scales."""
    model = layer("FULLY_CONNECTED", lambda b, w: w)
    data = tq.quantize_model(model, "uint8")
    w = tq.Model(model).tensors["weights"].data
    low, high = float(w.min()), float(w.max())
    made = tq.Model(data).tensors["weights"]
    scale = F((high - low) / 254)
    assert made.quantization.scale == scale and made.type.name == "UINT8"
    assert made.quantization.zero_point == round(1 - low / float(scale))
    assert (made.data.min(), made.data.max()) == (1, 255)
    np.testing.assert_allclose(made.dequantized(), w, atol=scale * 0.501)
    found = parameters(data)
    (x,) = next(scales for type_, scales, _ in found.values() if scales == [F(2 / 255)])
    assert found["bias"] == ("INT32", [F(x) * scale], [0])


@pytest.mark.parametrize("recipe", ["uint8", "int4"])
def test_the_plan_says_the_types_that_are_written(recipe):
    model = layer("FULLY_CONNECTED", lambda b, w: w)
    plan = tq.plan_quantization(model, recipe)
    found = parameters(tq.quantize_model(model, recipe))
    (weights,) = (row for row in plan.constants if row.name == "weights")
    assert weights.becomes == ("uint8" if recipe == "uint8" else "int4 along axis 0")
    written = {(type_.lower(), zero[0]) for type_, _, zero in found.values() if type_ in ("INT8", "UINT8")}
    assert {(group.type, group.zero_point) for group in plan.groups} <= written


def test_fixed_outputs():
    for name, wanted in {"SOFTMAX": (1 / 256, 0), "TANH": (1 / 128, 128), "LOG_SOFTMAX": (1 / 16, 255)}.items():
        found = parameters(quantized(ROWS[name](), "uint8"))
        assert ("UINT8", [wanted[0]], [wanted[1]]) in found.values()


@pytest.mark.parametrize("name", LAYERS)
def test_trained_weights_keep_their_zero_point(name):
    model = layer(name, lambda b, w: fake(b, w, "w", -0.75, 1.5))
    data = tq.quantize_model(model, "uint8")
    w = tq.Model(data).tensors["w"]
    assert data.weights_on_grid == (1, 1)
    assert (w.quantization.scale, w.quantization.zero_point) == (F(2.25 / 255), 85)
    real = tq.Model(model).tensors["weights"].data
    np.testing.assert_allclose(w.dequantized(), np.clip(real, -0.75, 1.5), atol=2.25 / 255 * 0.501)


def dense(weights, bias):
    b = tq.ModelBuilder()
    x, y = b.input("x", [2, 4]), b.tensor("y", [2, 3])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", weights), b.constant("b", bias)], [y])
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("weight", [0, 1e-42, 1e-8, 1])
@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("value", [0, 1e-30, 1])
def test_ranges_of_one_value_get_scales_that_every_resolver_takes(weight, bias, value):
    """toco's scale of such a range is 0, which LiteRT's XNNPACK does not survive."""
    model, x = dense(np.full((3, 4), weight, F), np.full(3, bias, F)), np.full((2, 4), value, F)
    data = tq.quantize_model(model, "uint8", calibration=tq.calibrate(model, [[x]], progress=False))
    assert all((t.quantization.scale >= np.finfo(F).tiny).all() for t in tq.Model(data).tensors)
    runs = [(data, resolver, [{0: x}], {}, [tq.Model(data).outputs[0].index]) for resolver in RESOLVERS]
    for answer in oracle.ask("tensors", runs):
        (found,) = answer[0].values()
        np.testing.assert_allclose(found, np.full((2, 3), 4 * weight * value + bias), atol=0.02)


def test_inputs_of_a_loops_condition_that_nothing_reads_are_uint8():
    model = recurrent()
    data = quantized(model, "uint8")
    assert "INT8" not in {t.type.name for graph in tq.Model(data).subgraphs for t in graph.tensors}
    for resolver in RESOLVERS:
        assert noise_db(outputs(model, "TQ"), outputs(data, resolver)) > 18


def test_inputs_and_outputs_of_uint8():
    data = quantized(network(), "uint8", io="uint8")
    model = tq.Model(data)
    assert {t.type.name for t in (*model.inputs, *model.outputs)} == {"UINT8"}
    assert "QUANTIZE" not in names(data)[:1] and "DEQUANTIZE" not in names(data)[-1:]


def test_uint8_is_for_whole_models():
    with pytest.raises(ValueError, match="recipe 'uint8' is for whole models: beside it stands 'int8'"):
        quantized(network(), "uint8", rules=[tq.Rule("int8", operator="CONV_2D")])


def test_back_and_across():
    first = quantized(network(), "uint8")
    again = tq.quantize_model(tq.dequantize_model(first), "uint8")
    assert parameters(again) == parameters(first)
    new = tq.Model(again).tensors
    for old in tq.Model(first).tensors:
        if old.is_constant:
            np.testing.assert_array_equal(old.data, new[old.name].data)
    assert noise_db(outputs(first, "TQ"), outputs(tq.transcode(first), "TQ")) > 35


# ---- int4 ----


@pytest.mark.parametrize("recipe", ["int4", "int16x4"])
@pytest.mark.parametrize("name", LAYERS)
def test_int4_weights_beside_integer_activations(name, recipe):
    """DEPTHWISE_CONV_2D has int8 weights: LiteRT's reference set has no such version, and no kernel beside int16."""
    model = layer(name, lambda b, w: w)
    data = tq.quantize_model(model, recipe)
    weights = tq.Model(data).tensors["weights"]
    assert weights.type.name == ("INT8" if name == "DEPTHWISE_CONV_2D" else "INT4")
    (made,) = (item for item in tq.Model(data).subgraphs[0].operators if item.name == name)
    assert {tensor.type.name for tensor in (made.inputs[0], made.outputs[0])} == {
        "INT8" if recipe == "int4" else "INT16"
    }
    channels = LAYERS[name][0][3 if name == "DEPTHWISE_CONV_2D" else 0]
    assert len(weights.quantization.scale) == channels and not weights.quantization.zero_point.any()
    exact = outputs(model, "TQ")
    found = {resolver: outputs(data, resolver) for resolver in RESOLVERS}
    assert all(noise_db(exact, given) > 12 for given in found.values())
    np.testing.assert_array_equal(found["TQ"], found["BUILTIN_REF"])
    np.testing.assert_array_equal(outputs(data, "TQ xnnpack"), found["AUTO"])


def test_a_range_of_int4_weights():
    data = tq.quantize_model(layer("CONV_2D", lambda b, w: w), "int4", overrides={"weights": (-1.4, 1.4)})
    weights = tq.Model(data).tensors["weights"]
    assert (weights.type.name, weights.quantization.scale) == ("INT4", F(1.4 / 7))


# ---- ranges without data, mean and std ----


def test_default_ranges_that_no_tensor_gets_are_an_error():
    with pytest.raises(ValueError, match="default_ranges is given and has no effect: the range of every activation is"):
        tq.quantize_model(layer("CONV_2D", lambda b, w: w), "int8", default_ranges=(-4, 6))


def test_default_ranges_need_no_calibration():
    data = tq.quantize_model(network(), "int8", default_ranges=(-4, 6))
    assert names(data)[0] == "QUANTIZE" and ("INT8", [F(10 / 255)], [-26]) in parameters(data).values()
    plan = tq.plan_quantization(network(), "int8", default_ranges=(-4, 6))
    assert "default" in {group.source for group in plan.groups}


def test_ranges_that_are_known_come_before_the_default():
    (name,) = (t.name for t in tq.Model(network()).inputs)
    given = tq.Calibration({}, {})
    given.set_range(name, -3, 3)
    data = tq.quantize_model(network(), "int8", calibration=given, default_ranges=(-4, 6))
    found = [scale for _, scale, _ in parameters(data).values()]
    assert [F(6 / 255)] in found and [F(10 / 255)] in found


@pytest.mark.parametrize(("recipe", "mean", "zero"), [("uint8", 127.5, 128), ("uint8", 128, 128), ("int8", 0, 0)])
def test_mean_and_std_of_inputs(recipe, mean, zero):
    (name,) = (t.name for t in tq.Model(network()).inputs)
    data = quantized(network(), recipe, input_stats={name: (mean, 127.5)})
    source = tq.Model(data).operators[0].outputs[0].quantization
    assert (source.scale, source.zero_point) == (F(1 / 127.5), zero)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"default_ranges": (1, 2)}, "default_ranges is"),
        ({"default_ranges": (0, np.inf)}, "default_ranges is"),
        ({"input_stats": {"nothing": (0, 1)}}, "the model has no input 'nothing'"),
        ({"input_stats": {"x": (0, 0)}}, "with std > 0"),
        ({"input_stats": {"x": (0, 1)}, "overrides": {"x": (0, 1)}}, "by overrides, too"),
        ({"recipe": "int16x8", "input_stats": {"x": (3, 1)}}, "int16 values have the zero point 0"),
        ({"recipe": "dynamic_int8", "default_ranges": (0, 1)}, "default_ranges is given and has no effect"),
        ({"recipe": "float16", "input_stats": {"x": (0, 1)}}, "input_stats is given and has no effect"),
    ],
)
def test_what_they_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        quantized(network(), **{"recipe": "int8", **options})


@pytest.mark.parametrize("high", [0.0, 1e-9, 9e-7])
def test_activations_that_are_next_to_nothing_have_scales_that_every_kernel_takes(high):
    b = tq.ModelBuilder()
    x, z, product, y = b.input("x", [1, 4]), b.input("z", [1, 4]), b.tensor("product", [1, 4]), b.tensor("y", [1, 4])
    b.operator("MUL", [x, z], [product])
    b.operator("ADD", [product, x], [y])
    b.output(y)
    sample = {"x": np.float32([[-1, 1, 2, 3]]), "z": np.float32([[0, 0, 0, high]])}
    data = bytes(tq.quantize_model(b.to_bytes(), "uint8", calibration=[sample]))
    assert not tq.check(data) and not tq.Model(data).problems
    made = tq.Model(data)
    given = {item.index: sample[item.name] for item in made.inputs}
    kernels = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN", "TQ", "TQ optimized", "TQ xnnpack")
    place = made.outputs[0].index
    for (values,) in oracle.ask("tensors", [(data, name, [given], {}, [place], False) for name in kernels]):
        np.testing.assert_allclose(values[place], sample["x"], atol=1e-5)
    again = tq.quantize_model(tq.dequantize_model(data), "uint8")
    assert parameters(bytes(again)) == parameters(data)
