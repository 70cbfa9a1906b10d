# SPDX-License-Identifier: Apache-2.0
"""Ranges as a file: of any quantized model, saved as JSON, edited, applied again; ONNX Runtime's and AIMET's files."""

import json
import warnings

import numpy as np
import pytest

import tq

F = np.float32


def normal(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(F)


def network():
    """x -> FULLY_CONNECTED -> y -> LEAKY_RELU -> z"""
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 16]), b.tensor("y", [1, 8]), b.tensor("z", [1, 8])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 16)), b.constant("b", normal(8))], [y])
    b.operator("LEAKY_RELU", [y], [z], alpha=0.25)
    b.output(z)
    return b.to_bytes()


def samples(count=4):
    return [[np.random.default_rng(i).uniform(-1, 1, (1, 16)).astype(F)] for i in range(count)]


def parameters(data):
    found = [t for t in tq.Model(data).tensors if len(t.quantization.scale)]
    return {t.name: (t.type.name, t.quantization.scale.tolist(), t.quantization.zero_point.tolist()) for t in found}


def values(data):
    return {t.name: t.data.tolist() for t in tq.Model(data).tensors if t.is_constant}


def written(folder, data, name="ranges.json"):
    path = folder / name
    path.write_text(json.dumps(data))
    return tq.Calibration.load(path)


# ---- of a model ----


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_a_models_parameters_give_the_same_model(recipe, tmp_path):
    first = tq.quantize_model(network(), recipe, calibration=samples())
    known = tq.Calibration.from_model(first)
    again = tq.quantize_model(network(), recipe, calibration=known)
    assert parameters(again) == parameters(first) and values(again) == values(first)
    known.save(tmp_path / "ranges.json")
    loaded = tq.Calibration.load(tmp_path / "ranges.json")
    assert loaded == known and "ranges" in (tmp_path / "ranges.json").read_text()
    assert tq.quantize_model(network(), recipe, calibration=loaded) == again
    known.save(tmp_path / "ranges.npz")
    assert tq.Calibration.load(tmp_path / "ranges.npz") == known


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8", "weight_only_int4"])
def test_weights_beside_floats_get_their_scales(recipe):
    first = tq.quantize_model(network(), recipe, overrides={"w": (-4, 4)}, min_elements=0)
    known = tq.Calibration.from_model(first)
    again = tq.quantize_model(network(), recipe, calibration=known, min_elements=0)
    assert parameters(again) == parameters(first) and values(again) == values(first)
    given = tq.Calibration({}, {})
    given.set_range("w", -3, 3)
    made = tq.quantize_model(network(), recipe, calibration=given, min_elements=0)
    assert set(parameters(made)["w"][1]) == {F(3 / (7 if recipe.endswith("4") else 127))}


def test_a_calibration_without_an_effect_is_an_error():
    given = tq.Calibration({}, {})
    given.set_range("y", -3, 3)
    with pytest.raises(ValueError, match="no weights can have the scales"):
        tq.quantize_model(network(), "dynamic_int8", calibration=given, min_elements=0)
    with pytest.raises(ValueError, match="observer 'mse' has no effect: the calibration holds ranges, and no values"):
        tq.quantize_model(network(), "int8", calibration=given, observer="mse")


def test_names_that_the_model_lacks_are_told():
    given = tq.Calibration.from_model(tq.quantize_model(network(), "int8", calibration=samples()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # x_int8 and its like are the quantizer's own
        tq.quantize_model(network(), "int8", calibration=given)
    given.set_range("ww", -3, 3)
    with pytest.warns(RuntimeWarning, match="1 tensors that the model lacks, as 'ww'; did you mean 'w'"):
        tq.quantize_model(network(), "int8", calibration=given)


def test_scales_of_blocks_are_left_out():
    """They are no scales along an axis."""
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64]), b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 64)), b.constant("b", normal(8))], [y])
    b.output(y)
    model = tq.quantize_model(b.to_bytes(), "blockwise_int4", min_elements=0)
    with pytest.raises(ValueError, match="the model holds no quantized values"):
        tq.Calibration.from_model(model)


def test_weights_are_included():
    first = tq.quantize_model(network(), "int8", calibration=samples(), overrides={"w": (-4, 4)})
    again = tq.quantize_model(network(), "int8", calibration=tq.Calibration.from_model(first))
    assert parameters(again)["w"] == parameters(first)["w"] == ("INT8", [F(4 / 127)], [0])
    assert values(again) == values(first)


def test_uint8_models_too():
    b = tq.ModelBuilder()
    x = b.input("x", [1, 16], "uint8", scale=0.5, zero_point=3)
    y = b.tensor("y", [1, 16], "uint8", scale=0.25, zero_point=200)
    b.operator("LEAKY_RELU", [x], [y], alpha=0.25)
    b.output(y)
    found = tq.Calibration.from_model(b.to_bytes())
    assert found.encodings["x"].zero_point == (-125,) and found.range("x") == (-1.5, 126)
    assert found.encodings["y"].type == "int8"


def test_ranges_can_be_edited(tmp_path):
    found = tq.calibrate(network(), samples())
    found.save(tmp_path / "ranges.json")
    data = json.loads((tmp_path / "ranges.json").read_text())
    assert set(data["tensors"]) == {"x", "y", "z"}
    data["tensors"]["y"] = {"min": [-3], "max": [5]}
    data["tensors"]["w"] = {"min": [-2], "max": [2]}
    made = parameters(tq.quantize_model(network(), "int8", calibration=written(tmp_path, data)))
    assert made["y"][1] == [F(8 / 255)] and made["w"][1] == [F(2 / 127)]
    found.set_range("y", -3, 5)
    assert found.range("y") == (-3, 5)
    assert parameters(tq.quantize_model(network(), "int8", calibration=found))["y"] == made["y"]


def test_fake_quant_comes_first():
    with tq.edit(network()) as editor:
        graph, old = editor.main, editor.tensors["y"]
        made = graph.add_tensor("y2", old.shape)
        graph.operators[1].replace_inputs({old: made})
        graph.insert_after(graph.operators[0], "FAKE_QUANT", [old], [made], min=-6.0, max=6.0, num_bits=8)
        model = editor.to_bytes()
    known = tq.calibrate(network(), samples())
    known.set_range("y", -1, 1)
    known = tq.Calibration({}, {}, encodings=known._all_encodings())
    assert parameters(tq.quantize_model(model, "int8", calibration=known))["y2"][1] == [F(12 / 255)]


def test_pickles_of_earlier_versions():
    made = tq.Calibration.__new__(tq.Calibration)
    made.__setstate__({k: v for k, v in tq.calibrate(network(), samples()).__dict__.items() if k != "encodings"})
    assert tq.quantize_model(network(), "int8", calibration=made) == tq.quantize_model(
        network(), "int8", calibration=samples()
    )


# ---- others' files ----


def check_others(calibration, low=-3.0, high=5.0):
    made = parameters(tq.quantize_model(network(), "int8", calibration=calibration))
    assert made["y"][1] == [F((high - low) / 255)]
    return made


REST = {"x": (-1.0, 1.0), "z": (-1.0, 5.0)}


@pytest.mark.parametrize("nested", [False, True])
def test_onnx_runtimes_calibration_tables(nested, tmp_path):
    def array(value):
        return {"CLASS": "numpy.array", "data": value, "dtype": "float32"}

    ranges = {"y": (-3.0, 5.0), **REST}
    data = {k: {"CLASS": "TensorData", "lowest": array(a), "highest": array([b])} for k, (a, b) in ranges.items()}
    check_others(written(tmp_path, {"CLASS": "TensorsData", "data": data, "method": {}} if nested else data))


def test_onnx_runtimes_pairs_and_overrides(tmp_path):
    check_others(written(tmp_path, {"y": [-3.0, 5.0], **REST}))
    scales = np.linspace(0.01, 0.03, 8)
    data = {
        "y": [{"rmin": -3.0, "rmax": 5.0}],
        "x": [{"scale": 0.0078125, "zero_point": 128, "quant_type": "QUInt8"}],
        "z": [{"scale": 0.02, "zero_point": -50, "quant_type": "QInt8"}],
        "w": [{"scale": float(s), "zero_point": 0, "quant_type": "QInt8", "axis": 0} for s in scales],
    }
    made = check_others(written(tmp_path, data))
    assert made["x_int8"] == ("INT8", [0.0078125], [0]) and made["z_int8"] == ("INT8", [F(0.02)], [-50])
    np.testing.assert_array_equal(made["w"][1], scales.astype(F))


def aimet(low, high):
    scale = (high - low) / 255
    row = {"bitwidth": 8, "dtype": "int", "is_symmetric": "False", "min": low, "max": high, "scale": scale}
    return row | {"offset": round(low / scale)}


def test_aimets_encodings(tmp_path):
    rows = {name: aimet(*ends) for name, ends in {"y": (-3.0, 5.0), **REST}.items()}
    weights = [{"bitwidth": 8, "dtype": "int", "offset": -128, "scale": 0.01 + i / 1000} for i in range(8)]
    old = {
        "version": "0.6.1",
        "activation_encodings": {name: [row] for name, row in rows.items()},
        "param_encodings": {"w": weights, "b": [{"bitwidth": 16, "dtype": "float"}]},
    }
    made = check_others(written(tmp_path, old))
    assert made["w"][1] == [F(0.01 + i / 1000) for i in range(8)]
    layers = {**old, "activation_encodings": {name: {"output": {"0": row}} for name, row in rows.items()}}
    assert check_others(written(tmp_path, layers)) == made
    one = {"bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": False}
    given = [{"name": n, **one, "offset": [row["offset"]], "scale": [row["scale"]]} for n, row in rows.items()]
    scales = [row["scale"] for row in weights]
    params = [{"name": "w", **one, "offset": [-128] * 8, "scale": scales}]
    new = {"version": "1.0.0", "activation_encodings": given, "param_encodings": params}
    assert check_others(written(tmp_path, new)) == made
    one = {"output_dtype": "uint8"}
    latest = [{"name": n, **one, "y_scale": row["scale"], "y_zero_point": -row["offset"]} for n, row in rows.items()]
    latest.append({"name": "w", "output_dtype": "int8", "y_scale": scales, "axis": 0})
    assert check_others(written(tmp_path, {"version": "2.0.0", "encodings": latest})) == made


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "no ranges"),
        ({"y": [{"min": 3, "max": -3}]}, r"'y': min \[3.0\] and max \[-3.0\] are no ranges"),
        ({"y": [{"scale": -1, "zero_point": 0}]}, "'y'"),
        ({"y": [{"offset": 1}]}, "neither a range nor a scale"),
        ({"format": "tq ranges", "version": 9, "tensors": {}}, "version 9"),
        ({"y": [{"scale": 1, "zero_point": 0, "quant_type": "QFloat8"}]}, "type is 'float8'"),
    ],
)
def test_files_that_are_none_of_these(data, words, tmp_path):
    with pytest.raises(ValueError, match=f"no saved calibration: .*{words}"):
        written(tmp_path, data)


def test_a_calibration_of_another_model():
    other = tq.Calibration({}, {})
    other.set_range("other", -1, 1)
    with pytest.raises(ValueError, match="of another model, which has no tensor 'other'"):
        tq.quantize_model(network(), "int8", calibration=other)
    with pytest.raises(ValueError, match="no quantized values"):
        tq.Calibration.from_model(network())


def test_onnx_runtimes_cache(tmp_path):
    path = tmp_path / "calibration.cache"
    path.write_text("x 1.0\ny 4.5\nz 5.0\n")
    check_others(tq.Calibration.load(path), -4.5, 4.5)
    path.write_text("x one\n")
    with pytest.raises(ValueError, match="no saved calibration: line 'x one' is no name with a range"):
        tq.Calibration.load(path)


def test_encodings_of_floats_and_biases_are_none(tmp_path):
    """AIMET 2.0 writes the biases' int32 scales, which follow from others."""
    rows = [{"name": n, "output_dtype": "uint8", "y_scale": 8 / 255, "y_zero_point": 96} for n in "xyz"]
    more = [
        {"name": "b", "output_dtype": "int32", "axis": 0, "y_scale": [1e-4] * 8},
        {"name": "w", "output_dtype": "float16"},
    ]
    made = written(tmp_path, {"version": "2.0.0", "encodings": [*rows, *more]})
    assert set(made.encodings) == set("xyz")
    old = {"x": [{"bitwidth": 8, "dtype": "int", "min": -3.0, "max": 5.0}], "b": [{"bitwidth": 32, "dtype": "int"}]}
    assert set(written(tmp_path, {"activation_encodings": {}, "param_encodings": old}).encodings) == {"x"}


def test_scales_of_blocks_in_a_file_are_left_out_and_told(tmp_path):
    one = {"dtype": "INT", "enc_type": "LPBQ", "bw": 8, "compressed_bw": 4, "block_size": 16, "is_sym": True}
    blocks = one | {"name": "w", "per_block_int_scale": [1] * 32, "scale": [0.5] * 8, "offset": [-128] * 8}
    whole = {"name": "y", "dtype": "INT", "enc_type": "PER_TENSOR", "bw": 8, "scale": [8 / 255], "offset": [-96]}
    data = {"version": "1.0.0", "activation_encodings": [whole], "param_encodings": [blocks]}
    with pytest.warns(RuntimeWarning, match="scales of blocks are left out: of 1 tensors, as 'w'"):
        assert set(written(tmp_path, data).encodings) == {"y"}


def depthwise():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 4, 4, 8]), b.tensor("y", [1, 4, 4, 8])
    w = b.constant("w", normal(1, 3, 3, 8))
    options = {"stride_w": 1, "stride_h": 1, "padding": "SAME", "depth_multiplier": 1}
    b.operator("DEPTHWISE_CONV_2D", [x, w, b.constant("b", normal(8))], [y], **options)
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("axis", [None, -1, 3])
def test_the_axis_of_weights_may_be_missing_or_negative(axis, tmp_path):
    """AIMET's files before 2.0 do not name it: the kernel's counts."""
    scales = np.linspace(0.03, 0.05, 8).astype(F).tolist()
    row = {"name": "w", "output_dtype": "int8", "y_scale": scales, **({} if axis is None else {"axis": axis})}
    given = written(tmp_path, {"version": "2.0.0", "encodings": [row]})
    given.save(tmp_path / "again.json")
    for known in (given, tq.Calibration.load(tmp_path / "again.json")):
        assert known == given
        made = tq.quantize_model(depthwise(), "int8", calibration=known, default_ranges=(-4, 4))
        assert parameters(made)["w"][1] == scales


def test_several_ranges_of_an_activation_are_one(tmp_path):
    """ONNX Runtime's calibrators give one a channel where they are asked to."""
    y = {"CLASS": "TensorData", "lowest": [-3.0] + [-1.0] * 7, "highest": [1.0] * 7 + [5.0]}
    check_others(written(tmp_path, {"y": y, **REST}))
