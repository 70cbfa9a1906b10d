# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model: weights by their formulas, graphs that LiteRT runs, versions, sharing, rules, refusals."""

import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
from commands import TQ, environment

import tq
from tq.cli.arguments import RECIPE_NAMES
from tq.quantization import recipes
from tq.quantization.recipes import RECIPES, WEIGHTS, Rule

QUANTIZING = [name for name, recipe in RECIPES.items() if recipe.form not in (recipes.FLOAT, recipes.STATIC)]
RESOLVERS = ["AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"]


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def one(name, weights, inputs, output, **options):
    """A model of one operator.  weights: {place: array}; inputs: {place: shape, or (shape, type)}."""
    b = tq.ModelBuilder()
    places = {}
    for place, shape in inputs.items():
        shape, kind = shape if isinstance(shape[-1], str) else (shape, "float32")
        places[place] = b.input(f"x{place}", shape, kind)
    for place, data in weights.items():
        places[place] = b.constant(f"w{place}", data)
    y = b.tensor("y", output)
    count = options.pop("count", 0)
    for place, shape in options.pop("states", {}).items():
        places[place] = b.tensor(f"state{place}", shape, is_variable=True)
    b.operator(name, [places.get(i) for i in range(max(max(places) + 1, count))], [y], **options)
    b.output(y)
    return b.to_bytes()


def conv(filter=(8, 3, 3, 4)):
    shape = {"stride_h": 1, "stride_w": 1, "padding": "SAME"}
    return one("CONV_2D", {1: normal(*filter), 2: normal(filter[0], seed=1)}, {0: [1, 6, 6, 4]}, [1, 6, 6, 8], **shape)


def depthwise():
    shape = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "depth_multiplier": 2}
    weights = {1: normal(1, 3, 3, 8), 2: normal(8)}
    return one("DEPTHWISE_CONV_2D", weights, {0: [1, 6, 6, 4]}, [1, 6, 6, 8], **shape)


def fully_connected(rows=12, columns=64, **options):
    return one("FULLY_CONNECTED", {1: normal(rows, columns), 2: normal(rows)}, {0: [3, columns]}, [3, rows], **options)


def transpose_conv():
    weights = {0: np.array([1, 8, 8, 5], np.int32), 1: normal(5, 3, 3, 4)}
    options = {"stride_h": 2, "stride_w": 2, "padding": "SAME"}
    return one("TRANSPOSE_CONV", weights, {2: [1, 4, 4, 4]}, [1, 8, 8, 5], **options)


def embedding_lookup():
    return one("EMBEDDING_LOOKUP", {1: normal(10, 32)}, {0: ([3], "int32")}, [3, 32])


def gather():
    return one("GATHER", {0: normal(50, 32)}, {1: ([3], "int32")}, [3, 32])


def conv_3d(name="CONV_3D"):
    options = {"stride_d": 1, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    if name == "CONV_3D":
        return one(name, {1: normal(2, 3, 3, 4, 5)}, {0: [1, 4, 4, 4, 4]}, [1, 4, 4, 4, 5], **options)
    weights = {0: np.array([1, 4, 4, 4, 5], np.int32), 1: normal(2, 3, 3, 5, 4)}
    return one(name, weights, {2: [1, 4, 4, 4, 4]}, [1, 4, 4, 4, 5], **options)


def svdf():
    weights = {1: normal(8, 6), 2: normal(8, 5), 3: normal(4)}
    return one("SVDF", weights, {0: [2, 6]}, [2, 4], states={4: [2, 40]}, rank=2)


def rnn(name="RNN", steps=()):
    weights = {1: normal(5, 6), 2: normal(5, 5), 3: normal(5)}
    return one(name, weights, {0: [2, *steps, 6]}, [2, *steps, 5], states={4: [2, 5]}, fused_activation_function="TANH")


def lstm(name="UNIDIRECTIONAL_SEQUENCE_LSTM", steps=(3,)):
    weights = {i: normal(5, 6, seed=i) for i in range(1, 5)} | {i: normal(5, 5, seed=i) for i in range(5, 9)}
    weights |= {i: normal(5, seed=i) for i in range(12, 16)}
    states = {18: [2, 5], 19: [2, 5]}
    return one(name, weights, {0: [2, *steps, 6]}, [2, *steps, 5], states=states, fused_activation_function="TANH")


def two_rnns():
    weights = {1: normal(5, 6), 2: normal(5, 5), 3: normal(5), 5: normal(5, 6, seed=1), 6: normal(5, 5, seed=1)}
    states = {4: [2, 5], 8: [2, 5]}
    options = {"fused_activation_function": "TANH", "merge_outputs": True, "states": states, "count": 12}
    return one("BIDIRECTIONAL_SEQUENCE_RNN", weights | {7: normal(5, seed=2)}, {0: [2, 3, 6]}, [2, 3, 10], **options)


def two_lstms():
    weights, states = {}, {35: [2, 5], 36: [2, 5], 37: [2, 5], 38: [2, 5]}
    for first in (1, 18):
        weights |= {first + i: normal(5, 6, seed=i) for i in range(4)}
        weights |= {first + i: normal(5, 5, seed=i) for i in range(4, 8)}
        weights |= {first + i: normal(5, seed=i) for i in range(11, 15)}
    options = {"fused_activation_function": "TANH", "merge_outputs": True, "states": states, "time_major": True}
    options["count"] = 48
    return one("BIDIRECTIONAL_SEQUENCE_LSTM", weights, {0: [3, 2, 6]}, [3, 2, 10], **options)


MODELS = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transpose_conv,
    "BATCH_MATMUL": lambda: one("BATCH_MATMUL", {1: normal(2, 6, 5)}, {0: [2, 4, 6]}, [2, 4, 5]),
    "EMBEDDING_LOOKUP": embedding_lookup,
    "GATHER": gather,
    "CONV_3D": conv_3d,
    "CONV_3D_TRANSPOSE": lambda: conv_3d("CONV_3D_TRANSPOSE"),
    "SVDF": svdf,
    "RNN": rnn,
    "UNIDIRECTIONAL_SEQUENCE_RNN": lambda: rnn("UNIDIRECTIONAL_SEQUENCE_RNN", (3,)),
    "BIDIRECTIONAL_SEQUENCE_RNN": two_rnns,
    "LSTM": lambda: lstm("LSTM", ()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": two_lstms,
}


def quantized(model, recipe, **options):
    return tq.quantize_model(model, recipe, **{"min_elements": 0, **options})


def outputs(model, resolver, seed=0):
    """The first output for one draw of inputs, by LiteRT's kernels or by "TQ"."""
    opened = tq.Model(model)
    rng = np.random.default_rng(seed)
    fed = {}
    for tensor in opened.inputs:
        values = rng.uniform(-1, 1, tensor.shape) if tensor.dtype == np.float32 else rng.integers(0, 5, tensor.shape)
        fed[tensor.index] = values.astype(tensor.dtype)
    place = opened.outputs[0].index
    (answer,) = oracle.ask("tensors", [(bytes(model), resolver, [fed], {}, [place])])
    assert isinstance(answer, list), answer
    return answer[0][place]


def noise_db(exact, given):
    return 10 * np.log10(np.square(exact).sum() / max(np.square(exact - given).sum(), 1e-30))


def takes(name, recipe):
    row = WEIGHTS[name]
    if recipe.form != recipes.HYBRID:
        return True
    return recipe.weights in row.hybrid and (row.in_blocks or not recipe.in_blocks)


def test_every_row_has_a_model():
    assert MODELS.keys() == WEIGHTS.keys()


@pytest.mark.parametrize("per_axis", [True, False])
@pytest.mark.parametrize("recipe", QUANTIZING)
@pytest.mark.parametrize("name", MODELS)
def test_runs_in_every_runtime(name, recipe, per_axis):
    """What is written runs under each of LiteRT's resolvers and in tq, with about the float model's numbers."""
    model = MODELS[name]()
    refusal = None if takes(name, RECIPES[recipe]) else f"recipe '{recipe}' finds nothing to quantize"
    if refusal is None and recipe in ("float16", "blockwise_int4") and not per_axis:
        refusal = (
            "per_axis is given and has no effect: (recipe 'float16' has no scales|all weights have scales of blocks)"
        )
    if refusal:
        with pytest.raises(ValueError, match=refusal):
            quantized(model, recipe, per_axis=per_axis)
        return
    exact = outputs(model, "BUILTIN_REF")
    data = quantized(model, recipe, per_axis=per_axis)
    assert not tq.Model(data).problems
    least = {"int8": 25, "int4": 5, "int2": -5, "float16": 50}[RECIPES[recipe].weights]
    for resolver in [*RESOLVERS, "TQ"]:
        if recipe == "blockwise_int4" and resolver == "BUILTIN_REF":
            continue  # LiteRT's reference kernel knows no blocks, and returns the bias
        assert noise_db(exact, outputs(data, resolver)) > least, resolver


def test_recipes_of_the_command_line():
    assert tuple(RECIPES) == RECIPE_NAMES


# ---- weights ----


def away(x):
    return np.trunc(x + np.copysign(np.float32(0.5), x))


def converter_int8(w, axes):
    """TFLiteConverter's values, a scale for each index of the axis that `axes` leaves (see quant/weights.def)."""
    bound = np.abs(w).max(axes, keepdims=True)
    scale = ((bound + bound) / np.float32(254)).astype(np.float32)
    return np.clip(away(w * (np.float32(1) / scale)), -127, 127), scale.ravel()


def peer_int4(w, axes):
    """ai-edge-quantizer's."""
    scale = (np.abs(w).max(axes, keepdims=True) / np.float32(7)).astype(np.float32)
    return np.clip(np.rint(w / scale), -8, 7), scale.ravel()


@pytest.mark.parametrize(("make", "axes"), [(conv, (1, 2, 3)), (depthwise, (0, 1, 2)), (fully_connected, (1,))])
@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8", "weight_only_int4"])
def test_weights(make, axes, recipe):
    model = tq.Model(quantized(make(), recipe))
    tensor = model.tensors["w1"]
    w = tq.Model(make()).tensors["w1"].data
    values, scale = (peer_int4 if recipe.endswith("4") else converter_int8)(w, axes)
    np.testing.assert_array_equal(np.asarray(tensor.data).astype(int), values)
    np.testing.assert_array_equal(tensor.quantization.scale, scale)
    assert tensor.quantization.zero_point.tolist() == [0] * len(scale)
    assert tensor.quantization.quantized_dimension == next(i for i in range(w.ndim) if i not in axes)


def test_depthwise_per_tensor_repeats_the_scale():
    """The hybrid kernel refuses fewer scales than channels."""
    tensor = tq.Model(quantized(depthwise(), "dynamic_int8", per_axis=False)).tensors["w1"]
    assert len(tensor.quantization.scale) == 8 and len(set(tensor.quantization.scale.tolist())) == 1
    w = tq.Model(depthwise()).tensors["w1"].data
    assert tensor.quantization.scale[0] == np.float32(2 * np.abs(w).max() / np.float32(254))


def test_float16():
    weights = np.array([[1e-8, 70000.0, -1e9, 1.0009765625]], np.float32)
    model = tq.Model(quantized(one("FULLY_CONNECTED", {1: weights}, {0: [1, 4]}, [1, 1]), "float16"))
    assert model.tensors["w1"].data.tolist() == [[0.0, 65504.0, -65504.0, 1.0009765625]]


def test_single_numbers_stay_float32():
    """float16 would make an epsilon 0, and saves nothing."""
    model = one("ADD", {1: np.array([1e-9], np.float32)}, {0: [1, 4]}, [1, 4])
    with pytest.raises(ValueError, match="nothing to quantize"):
        quantized(model, "float16")


def test_blocks():
    model = tq.Model(quantized(fully_connected(), "blockwise_int4"))
    tensor = model.tensors["w1"]
    w = tq.Model(fully_connected()).tensors["w1"].data
    made = tq.quantize_weights(w, 1, "int4", block_size=32)
    assert tensor.quantization.block_size == 32
    np.testing.assert_array_equal(np.asarray(tensor.data).astype(np.int8), made.codes)
    np.testing.assert_array_equal(np.asarray(tensor.quantization.scale, np.float32), made.scale)


def test_blocks_of_scales_that_float16_rounds_to_zero():
    """XNNPACK refuses a model with a scale of 0."""
    w = normal(4, 64)
    w[1, :32] *= 1e-8
    w[2, 32:] = 0
    model = one("FULLY_CONNECTED", {1: w, 2: normal(4)}, {0: [3, 64]}, [3, 4])
    data = quantized(model, "blockwise_int4", min_elements=0)
    made, scale = tq.Model(data).tensors["w1"], 2.0**-24
    assert tq.quantize_weights(w, 1, "int4", block_size=32).scale[1, 0] == 0  # as ai-edge-quantizer has it
    np.testing.assert_array_equal(np.asarray(made.quantization.scale).ravel()[[2, 5]], [scale, scale])
    np.testing.assert_array_equal(np.asarray(made.data).astype(int)[1, :32], np.rint(w[1, :32] / np.float32(scale)))
    assert noise_db(outputs(model, "AUTO"), outputs(data, "AUTO")) > 15


def test_rows_that_blocks_do_not_divide_get_a_scale_each():
    tensor = tq.Model(quantized(fully_connected(columns=40), "blockwise_int4")).tensors["w1"]
    assert tensor.quantization.kind == "per-axis"


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("source", "converted", "recipe", "differing"),
    [
        ("k_mnv2s_float", "k_mnv2s_drq", "dynamic_int8", 0),
        ("k_mnv2_float", "k_mnv2_drq", "dynamic_int8", 2),  # values of two tensors, by one each: see docs/recipes.md
        ("k_mnv2s_float", "k_mnv2s_f16", "float16", 0),
    ],
)
def test_converter_files(corpus, source, converted, recipe, differing):
    """What TFLiteConverter made of the same network."""
    files = {path.stem: path for path in corpus}
    ours = {t.name: t for t in tq.Model(tq.quantize_model(files[source], recipe)).tensors}
    count = different = 0
    for tensor in tq.Model(files[converted]).tensors:
        if not tensor.is_constant or tensor.type.name not in ("INT8", "FLOAT16"):
            continue
        other = ours.get(tensor.name)
        if other is None or other.type != tensor.type:  # named otherwise: found by what it holds
            other = next(t for t in ours.values() if t.type == tensor.type and t.shape == tensor.shape)
        count += 1
        np.testing.assert_array_equal(other.quantization.scale, tensor.quantization.scale)
        gap = np.abs(np.asarray(other.data, np.float32) - np.asarray(tensor.data, np.float32)).max()
        assert gap <= (1 if differing else 0)
        different += bool(gap)
    assert count > 30 and different == differing


# ---- the graph ----


@pytest.mark.parametrize(
    ("name", "recipe", "per_axis", "version"),
    [
        ("CONV_2D", "dynamic_int8", True, 5),
        ("CONV_2D", "dynamic_int8", False, 2),
        ("CONV_2D", "dynamic_int4", True, 7),
        ("DEPTHWISE_CONV_2D", "dynamic_int8", True, 6),
        ("FULLY_CONNECTED", "dynamic_int8", True, 12),
        ("FULLY_CONNECTED", "dynamic_int8", False, 9),
        ("FULLY_CONNECTED", "dynamic_int4", True, 10),
        ("TRANSPOSE_CONV", "dynamic_int8", True, 2),
        ("BATCH_MATMUL", "dynamic_int8", True, 4),
        ("EMBEDDING_LOOKUP", "dynamic_int8", True, 4),
        ("EMBEDDING_LOOKUP", "dynamic_int8", False, 1),
        ("SVDF", "dynamic_int8", True, 4),
        ("RNN", "dynamic_int8", True, 3),
        ("LSTM", "dynamic_int8", True, 4),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "dynamic_int8", True, 3),
        ("BIDIRECTIONAL_SEQUENCE_LSTM", "dynamic_int8", True, 3),
        ("CONV_2D", "weight_only_int8", True, 5),
        ("CONV_2D", "weight_only_int8", False, 2),
        ("CONV_2D", "weight_only_int4", True, 6),
        ("CONV_2D", "float16", True, 3),
    ],
)
def test_versions(name, recipe, per_axis, version):
    """By op_version.cc; of the operator itself, or of the DEQUANTIZE."""
    model = tq.Model(quantized(MODELS[name](), recipe, per_axis=per_axis))
    looked_at = name if RECIPES[recipe].form == recipes.HYBRID else "DEQUANTIZE"
    assert {op.version for op in model.operators if op.name == looked_at} == {version}
    assert len(model.operator_codes) == len({(code.name, code.version) for code in model.operator_codes})


def test_inputs_are_quantized_asymmetrically():
    """As TFLiteConverter asks for."""
    assert tq.Model(quantized(fully_connected(), "dynamic_int8")).operators[0].options["asymmetric_quantize_inputs"]


def twins(share="tensor"):
    """Two FULLY_CONNECTEDs of the same weights: of one tensor, or of two with one buffer."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 64])
    w = b.constant("w", normal(64, 64))
    v = w if share == "tensor" else b.tensor("v", [64, 64], buffer=w.buffer)
    middle, y = b.tensor("middle", [1, 64]), b.tensor("y", [1, 64])
    b.operator("FULLY_CONNECTED", [x, w, None], [middle])
    b.operator("FULLY_CONNECTED", [middle, v, None], [y])
    b.output(y)
    b.signature()
    return b.to_bytes()


@pytest.mark.parametrize("share", ["tensor", "buffer"])
@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8", "weight_only_int4", "float16"])
def test_shared_weights_stay_shared(share, recipe):
    data = quantized(twins(share), recipe)
    filled = [buffer for buffer in tq.Model(data).buffers if buffer.nbytes]
    assert len(filled) == 1
    assert noise_db(outputs(twins(share), "BUILTIN_REF"), outputs(data, "BUILTIN_REF")) > 8


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8"])
def test_operators_that_stay_float_read_floats(recipe):
    """A rule leaves the second operator alone; it goes on reading the float weights that the first one shared."""
    data = quantized(twins(), recipe, rules=[Rule("float", tensor="^y$")])
    model = tq.Model(data)
    w = model.tensors["w"]
    np.testing.assert_array_equal(w.data, tq.Model(twins()).tensors["w"].data)
    last = model.operators[len(model.operators) - 1]
    assert last.inputs[1].name == "w" and last.outputs[0].name == "y"
    assert model.tensors["w_int8"].data.dtype == np.int8
    assert {op.version for op in model.operators if op.name == "FULLY_CONNECTED"} >= {1}
    for resolver in RESOLVERS:
        outputs(data, resolver)


def test_each_dequantize_stands_before_its_reader():
    names = [op.name for op in tq.Model(quantized(twins("buffer"), "weight_only_int8")).operators]
    assert names == ["DEQUANTIZE", "FULLY_CONNECTED"] * 2


def test_tensors_that_recipes_do_not_concern_stay_as_they_were():
    before, after = tq.Model(twins()), tq.Model(quantized(twins(), "dynamic_int8"))
    assert after.signatures[0] == before.signatures[0]
    assert [t.name for t in after.tensors] == [t.name for t in before.tensors]
    assert after.tensors["x"].type == before.tensors["x"].type


def two_graphs():
    b = tq.ModelBuilder()
    for graph in (b.graph, b.subgraph("second")):
        x = graph.input("x", [1, 64])
        y = graph.tensor("y", [1, 64])
        graph.operator("FULLY_CONNECTED", [x, graph.constant(f"w{graph.index}", normal(64, 64)), None], [y])
        graph.output(y)
    return b.to_bytes()


@pytest.mark.parametrize(
    ("rules", "types"),
    [
        ([], ["INT8", "INT8"]),
        ([Rule("float", subgraph=1)], ["INT8", "FLOAT32"]),
        ([Rule("dynamic_int4", tensor="^w0$")], ["INT4", "INT8"]),
        ([Rule("float", operator="FULLY_CONNECTED"), Rule("dynamic_int4", tensor="w1")], ["FLOAT32", "INT4"]),
    ],
)
def test_rules(rules, types):
    model = tq.Model(quantized(two_graphs(), "dynamic_int8", rules=rules))
    assert [graph.tensors[f"w{i}"].type.name for i, graph in enumerate(model.subgraphs)] == types


def test_small_weights_stay_float():
    model = fully_connected(rows=16, columns=64)  # 1024 elements
    assert tq.Model(tq.quantize_model(model, "dynamic_int8")).tensors["w1"].type.name == "INT8"
    with pytest.raises(ValueError, match="at least 1025 elements"):
        tq.quantize_model(model, "dynamic_int8", min_elements=1025)


# ---- bad input, and files ----


@pytest.mark.parametrize("recipe", QUANTIZING)
def test_a_quantized_model(recipe, tmp_path):
    path = tmp_path / "out.tflite"
    with pytest.raises(ValueError, match=r"quantized already.*'w1'"):
        tq.quantize_model(quantized(conv(), "weight_only_int8"), recipe, output=path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int4", "float16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_weights_are_refused(recipe, bad, tmp_path):
    weights = normal(8, 32)
    weights[1, 2] = bad
    model = one("FULLY_CONNECTED", {1: weights}, {0: [1, 32]}, [1, 8])
    if recipe == "float16" and bad == np.inf:  # such a constant is a bound or a padding, and stays
        with pytest.raises(ValueError, match="nothing to quantize"):
            quantized(model, recipe)
        return
    with pytest.raises(ValueError, match=r"'w1'.*(nan|inf|NaN)"):
        quantized(model, recipe, output=tmp_path / "out.tflite")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recipe": "int7"}, "no recipe 'int7'; there are: int8, int16x8, dynamic_int8"),
        ({"block_size": 16}, "block_size is 16"),
        ({"min_elements": -1}, "min_elements is -1"),
    ],
)
def test_bad_arguments(options, words):
    recipe = options.pop("recipe", "dynamic_int8")
    with pytest.raises(ValueError, match=words):
        tq.quantize_model(conv(), recipe, **options)


def test_bad_rules():
    with pytest.raises(ValueError, match="no recipe"):
        Rule("int7")
    with pytest.raises(ValueError, match="no regular expression"):
        Rule("float", tensor="(")
    with pytest.raises(TypeError, match="Rule"):
        tq.quantize_model(conv(), "dynamic_int8", rules=["float"])


def test_no_model():
    with pytest.raises(tq.ModelError):
        tq.quantize_model(b"nothing", "dynamic_int8")


def test_output(tmp_path):
    path = tmp_path / "out.tflite"
    path.write_bytes(b"old")
    assert quantized(conv(), "dynamic_int8", output=path) == path.read_bytes()
    assert os.listdir(tmp_path) == ["out.tflite"]


def test_sources_stay_as_they_are(tmp_path):
    data = conv()
    path = tmp_path / "in.tflite"
    path.write_bytes(data)
    model = tq.Model(data)
    results = {quantized(source, "dynamic_int8") for source in (data, bytearray(data), path, str(path), model)}
    assert len(results) == 1 and path.read_bytes() == data
    assert model.tensors["w1"].data.dtype == np.float32


def test_command(tmp_path):
    (tmp_path / "in.tflite").write_bytes(two_graphs())

    def run(*arguments):
        command = [*TQ, "quantize", "in.tflite", "out.tflite", *arguments]
        assert command[0] == sys.executable
        return subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8")

    done = run("--recipe", "dynamic_int8", "--tensor", "w1=dynamic_int4", "--per-tensor")
    assert done.returncode == 0 and done.stdout.startswith("out.tflite: "), done.stderr
    expected = tq.quantize_model(
        two_graphs(), "dynamic_int8", per_axis=False, rules=[Rule("dynamic_int4", tensor="w1")]
    )
    assert (tmp_path / "out.tflite").read_bytes() == expected
    for arguments, words in (
        (["--recipe", "int7"], "there is no recipe 'int7'"),
        (["--recipe", "float"], "nothing to quantize"),
        (["--recipe", "float16", "--operator", "CONV_2D"], "invalid rule"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1
