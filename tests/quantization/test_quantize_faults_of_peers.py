# SPDX-License-Identifier: Apache-2.0
"""Faults of other quantizers that tq does not have (found in ai-edge-quantizer 0.10, over 58 public models)."""

import numpy as np
import pytest
from test_quantize_model import noise_db, normal, outputs
from test_quantize_ranges import build, floats, names, tensor
from test_quantize_static import RESOLVERS, ROWS, check, draws, i32, lstm, quantized, svdf

import tq
from tq.specification.table import INTEGER

SIZE = (1, 8)


def test_biases_beyond_int32():
    """A bias of +13.3 became -8.2."""
    weights, bias = np.full((2, 8), 1e-9, np.float32), np.array([13.3, -13.3], np.float32)
    model = build(("FULLY_CONNECTED", [weights, bias], (1, 2), {}))
    for resolver in RESOLVERS:
        np.testing.assert_allclose(outputs(quantized(model), resolver).ravel(), bias, atol=0.1)


# By op_version.cc; by its comments where it asks for int16 weights.
VERSIONS = {
    "int8": """
        ABS 2, ADD 2, ARG_MAX 2, ARG_MIN 2, AVERAGE_POOL_2D 2, BATCH_MATMUL 2, BATCH_TO_SPACE_ND 2, BROADCAST_TO 3,
        CONCATENATION 2, CONV_2D 3, DEPTHWISE_CONV_2D 3, DEPTH_TO_SPACE 1, ELU 1, EMBEDDING_LOOKUP 1, EXP 2,
        EXPAND_DIMS 1, FILL 3, FULLY_CONNECTED 4, GATHER 2, GATHER_ND 1, GELU 2, GREATER 2, GREATER_EQUAL 2,
        HARD_SWISH 1, L2_NORMALIZATION 2, LEAKY_RELU 1, LESS 2, LESS_EQUAL 2, LOG 2, LOGISTIC 2, LOG_SOFTMAX 2, LSTM
        1, MAXIMUM 2, MAX_POOL_2D 2, MEAN 2, MINIMUM 2, MIRROR_PAD 2, MUL 2, PACK 2, PAD 2, PADV2 2, PRELU 1, RANK
        1, REDUCE_MAX 2, REDUCE_MIN 2, REDUCE_PROD 2, RELU 2, RELU6 2, RELU_0_TO_1 1, RELU_N1_TO_1 1, RESHAPE 1,
        RESIZE_BILINEAR 2, RESIZE_NEAREST_NEIGHBOR 2, REVERSE_V2 3, RSQRT 2, SCATTER_ND 1, SHAPE 1, SLICE 2, SOFTMAX
        2, SPACE_TO_BATCH_ND 2, SPACE_TO_DEPTH 2, SPARSE_TO_DENSE 3, SPLIT 2, SPLIT_V 2, SQRT 2, SQUARED_DIFFERENCE
        2, SQUEEZE 1, STRIDED_SLICE 2, SUB 2, SVDF 3, TANH 2, TILE 1, TOPK_V2 2, TRANSPOSE 2, TRANSPOSE_CONV 3,
        UNIDIRECTIONAL_SEQUENCE_LSTM 1, UNPACK 2, EQUAL 2, NOT_EQUAL 2""",
    "int16x8": """
        ABS 3, ADD 3, AVERAGE_POOL_2D 3, BATCH_MATMUL 3, BATCH_TO_SPACE_ND 4, BROADCAST_TO 3, CONCATENATION 3,
        CONV_2D 4, DEPTHWISE_CONV_2D 5, EXP 2, EXPAND_DIMS 1, FILL 3, FULLY_CONNECTED 7, GATHER 4, GATHER_ND 3,
        LEAKY_RELU 2, LOG 2, LOGISTIC 3, MAXIMUM 4, MAX_POOL_2D 3, MEAN 3, MINIMUM 4, MIRROR_PAD 3, MUL 4, PACK 3,
        PAD 3, PADV2 3, REDUCE_MAX 3, REDUCE_MIN 3, REDUCE_PROD 2, RELU 3, RELU6 3, RESHAPE 1, RESIZE_BILINEAR 4,
        RESIZE_NEAREST_NEIGHBOR 4, RSQRT 3, SLICE 4, SOFTMAX 3, SPACE_TO_BATCH_ND 4, SPLIT 4, SQRT 2, SUB 5, TANH 3,
        TOPK_V2 3, TRANSPOSE 5, TRANSPOSE_CONV 3, UNPACK 4""",
}


@pytest.mark.parametrize("recipe", VERSIONS)
def test_versions_are_written(recipe):
    wrong = []
    for row in VERSIONS[recipe].split(","):
        name, version = row.split()
        found = {op.version for op in tq.Model(quantized(ROWS[name](), recipe)).operators if op.name == name}
        if not found or max(found) != int(version):
            wrong.append((name, version, found))
    assert wrong == []


def test_ranges_are_of_all_samples():
    """The peer's moving average kept 70 % of the first sample's range."""
    model = build(("LEAKY_RELU", [], SIZE, {"alpha": 0.5}))
    samples = [[np.full(SIZE, value, np.float32)] for value in (1, -2, 3, 0.5)]
    found = tensor(quantized(model, calibration=samples), "x_int8").quantization
    assert (found.min, found.max) == (-2, 3)


@pytest.mark.parametrize("recipe", ["int8", "int16x8", "dynamic_int8", "weight_only_int8"])
def test_files_that_hold_only_the_old_operator_code(recipe):
    """All their operators looked like ADD."""
    model = ROWS["FULLY_CONNECTED"]()
    with tq.edit(model) as editor:
        for code in editor.root_nodes("operator_codes"):
            assert int(code.get("deprecated_builtin_code")) == int(code.get("builtin_code"))
            code.set("builtin_code", None)
        old = editor.to_bytes()
    data = quantized(old, recipe, min_elements=0)
    assert names(data).count("FULLY_CONNECTED") == 1 and "ADD" not in names(data)
    check(model, data, least=20)


def test_no_signature_is_needed():
    assert not tq.Model(ROWS["ADD"]()).signatures
    check(ROWS["ADD"](), quantized(ROWS["ADD"]()))


@pytest.mark.parametrize(
    "name", ["EXPAND_DIMS", "MINIMUM", "ABS", "PRELU", "LEAKY_RELU", "FILL", "ELU", "NEG", "HARD_SWISH"]
)
def test_operators_that_were_left_float(name):
    assert floats(quantized(ROWS[name]())) == []
    if INTEGER[name].int16 is not None:
        assert floats(quantized(ROWS[name](), "int16x8")) == []


def test_a_float_bias_behind_an_integer_input():
    """A FULLY_CONNECTED with a bias that is computed stays float as a whole."""
    b = tq.ModelBuilder()
    x, a, bias, y, z = b.input("x", SIZE), *(b.tensor(name, [8] if name == "bias" else SIZE) for name in
                                             ("a", "bias", "y", "z"))  # fmt: skip
    b.operator("RELU", [x], [a])
    b.operator("RESHAPE", [x, b.constant("shape", i32(8))], [bias], new_shape=[8])
    b.operator("FULLY_CONNECTED", [a, b.constant("w", normal(8, 8)), bias], [y])
    b.operator("RELU", [y], [z])
    b.output(z)
    data = quantized(b.to_bytes())
    assert floats(data) == ["FULLY_CONNECTED"] or floats(data) == ["RESHAPE", "FULLY_CONNECTED"]
    check(b.to_bytes(), data)


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_an_output_that_nothing_reads(recipe):
    """An UNPACK's unused output became no integer one."""
    b = tq.ModelBuilder()
    x, u, v, y = b.input("x", [2, 8]), b.tensor("u", [8]), b.tensor("v", [8]), b.tensor("y", [8])
    b.operator("UNPACK", [x], [u, v], num=2, axis=0)
    b.operator("RELU", [v], [y])
    b.output(y)
    data = quantized(b.to_bytes(), recipe)
    assert floats(data) == []
    check(b.to_bytes(), data)


@pytest.mark.corpus
def test_an_lstm_beside_the_converter(corpus):
    """Weights and scales of a trained LSTM as TFLiteConverter wrote them, but for what its calibration data decided."""
    files = {path.stem: path for path in corpus}
    source = next(path for stem, path in files.items() if stem.endswith("mnist_lstm__trained_lstm"))
    theirs = next(path for stem, path in files.items() if stem.endswith("mnist_lstm__trained_lstm_int8"))
    rng = np.random.default_rng(0)
    ours = tq.Model(tq.quantize_model(source, calibration=[[rng.random((1, 28, 28), np.float32)] for _ in range(4)]))
    mine, other = (
        next(op for op in model.operators if op.name == "UNIDIRECTIONAL_SEQUENCE_LSTM")
        for model in (ours, tq.Model(theirs))
    )
    assert mine.version == other.version
    for place in range(1, 9):
        a, b = mine.inputs[place], other.inputs[place]
        np.testing.assert_allclose(a.quantization.scale, b.quantization.scale, rtol=2e-7)
        assert np.abs(a.data.astype(int) - b.data).max() <= 1
        assert (a.data != b.data).mean() < 0.01
    assert [t.type for t in mine.inputs if t] == [t.type for t in other.inputs if t]
    assert mine.intermediates[4].quantization.scale == mine.outputs[0].quantization.scale


@pytest.mark.parametrize("model", [lstm, svdf])
def test_recurrent_models_keep_their_state(model):
    """A second run goes on from the first one's state, as the float model does."""
    built = model()
    data = quantized(built)
    runs = []
    for source in (built, data):
        interpreter = tq.Interpreter(model_content=source)
        interpreter.allocate_tensors()
        found = []
        for sample in draws(built)[:3]:
            interpreter.set_tensor(tq.Model(source).inputs[0].index, sample[0])
            interpreter.invoke()
            found.append(interpreter.get_tensor(tq.Model(source).outputs[0].index))
        runs.append(np.concatenate(found))
    assert noise_db(*runs) > 15
