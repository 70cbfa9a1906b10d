# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model with recipe int8: every row runs, with LiteRT's reference bits; parameters by their formulas."""

import contextlib
import os
import pathlib
import subprocess

import numpy as np
import oracle
import pytest
import quantization_table
from commands import TQ, environment
from damage import damaged
from models import calibrated
from test_quantize_model import away, noise_db, normal, outputs

import tq
from tq.specification.table import CALLING, FLOAT, INTEGER, NOT_INT16, VARIABLES

RESOLVERS = ["AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "TQ"]


def draws(model, count=8):
    """Samples that have the range of what `outputs` feeds."""
    rng = np.random.default_rng(0)
    shapes = [tensor.shape for tensor in tq.Model(model).inputs]
    drawn = [[rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes] for _ in range(count)]
    return [*drawn, *([np.full(shape, end, np.float32) for shape in shapes] for end in (-1, 1))]


def quantized(model, recipe="int8", **options):
    options = {**calibrated(recipe, draws(model)), **options}
    return tq.quantize_model(model, recipe, **options)


def check(model, data, least=25, without=()):
    """It runs everywhere, close to the float model, and tq gives LiteRT's reference bits."""
    assert not tq.Model(data).problems
    exact = outputs(model, "TQ")
    found = {resolver: outputs(data, resolver) for resolver in RESOLVERS if resolver not in without}
    for resolver, given in found.items():
        assert noise_db(exact, given) > least, resolver
    if "BUILTIN_REF" in found:
        np.testing.assert_array_equal(found["TQ"], found["BUILTIN_REF"])


# ---- every row ----


def chain(name, constants, output, shape=(1, 4, 4, 8), place=0, results=1, first="LEAKY_RELU", **options):
    """x -> LEAKY_RELU -> the operator -> LEAKY_RELU: the operator's input and output are quantized."""
    b = tq.ModelBuilder()
    x, middle = b.input("x", shape), b.tensor("middle", shape)
    b.operator(first, [x], [middle], **({"alpha": 0.75} if first == "LEAKY_RELU" else {}))
    count = len(constants) + 1
    rest = iter([b.constant(f"c{i}", data) for i, data in enumerate(constants)])
    types = ["float32"] * results if isinstance(results, int) else results
    made = [b.tensor(f"out{i}", output, type_) for i, type_ in enumerate(types)]
    b.operator(name, [middle if i == place else next(rest) for i in range(count)], made, **options)
    y = b.tensor("y", output)
    if types[-1] == "float32":
        b.operator("LEAKY_RELU", [made[-1]], [y], alpha=0.5)
    elif types[0] == "float32":
        b.operator("LEAKY_RELU", [made[0]], [y], alpha=0.5)
    else:
        b.operator("CAST", [made[0]], [y])
    b.output(y)
    return b.to_bytes()


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def doubled():
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 4, 8]), b.input("y", [1, 8, 4]), b.tensor("z", [1, 4, 4])
    b.operator("BATCH_MATMUL", [x, y], [z])
    b.output(z)
    return b.to_bytes()


def states(name, weights, shape, output, variables, places, **options):
    """x -> LEAKY_RELU -> an operator with states -> LEAKY_RELU."""
    b = tq.ModelBuilder()
    x, middle, made, y = b.input("x", shape), b.tensor("middle", shape), b.tensor("made", output), b.tensor("y", output)
    b.operator("LEAKY_RELU", [x], [middle], alpha=0.75)
    inputs = [middle, *[None] * (places - 1)]
    for place, data in weights.items():
        inputs[place] = b.constant(f"w{place}", data)
    for place, size in variables.items():
        inputs[place] = b.tensor(f"state{place}", size, is_variable=True)
    b.operator(name, inputs, [made], **options)
    b.operator("LEAKY_RELU", [made], [y], alpha=0.5)
    b.output(y)
    return b.to_bytes()


def lstm(name="UNIDIRECTIONAL_SEQUENCE_LSTM", more=(), outputs=5, gates=range(4), **options):
    """more: "peephole", "norm", "projection"."""
    shape = (2, 6, 7) if name != "LSTM" else (2, 7)
    weights = {1 + g: normal(5, 7, seed=g) / 2 for g in gates} | {5 + g: normal(5, outputs, seed=g) / 2 for g in gates}
    weights |= {12 + g: normal(5, seed=g) / 4 for g in gates}
    if "peephole" in more:
        weights |= {place: normal(5, seed=place) / 4 for place in (9, 10, 11) if place > 9 or 0 in gates}
    if "norm" in more:
        weights |= {20 + g: 1 + normal(5, seed=20 + g) / 8 for g in gates}
    if "projection" in more:
        weights |= {16: normal(outputs, 5) / 2, 17: normal(outputs) / 4}
    output, batch = (*shape[:-1], outputs), shape[1 if options.get("time_major") else 0]
    places = 24 if "norm" in more else 20 if name == "LSTM" else 24
    return states(
        name,
        weights,
        shape,
        output,
        {18: (batch, outputs), 19: (batch, 5)},
        places,
        fused_activation_function="TANH",
        **options,
    )


def svdf(activation="RELU"):
    weights = {1: normal(8, 6) / 2, 2: normal(8, 5) / 2, 3: normal(4)}
    options = {"rank": 2, "fused_activation_function": activation}
    return states("SVDF", weights, (2, 6), (2, 4), {4: (2, 40)}, 5, **options)


def variable():
    """Assigned, and read again."""
    b = tq.ModelBuilder()
    x, h, y, state = b.input("x", SHAPE), b.tensor("h", SHAPE), b.tensor("y", SHAPE), b.tensor("s", [1], "resource")
    b.operator("VAR_HANDLE", [], [state], shared_name="state")
    b.operator("LEAKY_RELU", [x], [h], alpha=0.1)
    b.operator("ASSIGN_VARIABLE", [state, h], [])
    b.operator("READ_VARIABLE", [state], [y])
    b.output(y)
    return b.to_bytes()


def calling(name):
    """A branch, which all that could be taken are, or a loop of three turns: of ABS and a sum."""
    b = tq.ModelBuilder()
    x, y = b.input("x", SHAPE), b.tensor("y", SHAPE)
    chosen = b.constant("chosen", {"IF": np.array([True])}.get(name, i32(0)))
    bodies = [b.subgraph("first"), *([b.subgraph("second")] if name == "WHILE" else [])]
    for graph in bodies:
        counter = [graph.input("n", [1], "int32")] if name == "WHILE" else []
        u, v, w = graph.input("u", SHAPE), graph.tensor("v", SHAPE), graph.tensor("w", SHAPE)
        if name == "WHILE" and graph is bodies[0]:
            less = graph.tensor("less", [1], "bool")
            graph.operator("LESS", [*counter, graph.constant("three", i32(3))], [less])
            graph.output(less)
            continue
        graph.operator("ABS", [u], [v])
        graph.operator("ADD", [v, graph.constant("step", np.float32([0.5]))], [w])
        following = [graph.tensor("m", [1], "int32")] if counter else []
        for after in following:
            graph.operator("ADD", [*counter, graph.constant("one", i32(1))], [after])
        graph.output(*following, w)
    ends = [b.tensor("turns", [1], "int32"), y] if name == "WHILE" else [y]
    b.operator(name, [chosen, x], ends, **CALLEES[name])
    b.output(y)
    return b.to_bytes()


CALLEES = {
    "IF": {"then_subgraph_index": 1, "else_subgraph_index": 1},
    "STABLEHLO_CASE": {"branch_subgraph_indices": [1, 1]},
    "WHILE": {"cond_subgraph_index": 1, "body_subgraph_index": 2},
}
SHAPE = (1, 4, 4, 8)
POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
HALF = np.arange(128).reshape(SHAPE) % 3 == 0
COMPARISONS = "LESS LESS_EQUAL GREATER GREATER_EQUAL"
CURVES = """RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ELU GELU HARD_SWISH ABS LOGISTIC TANH L2_NORMALIZATION LOG_SOFTMAX EXP
    NEG SQUARE"""
ROWS = {
    "CONV_2D": lambda: chain("CONV_2D", [normal(6, 3, 3, 8), normal(6)], (1, 4, 4, 6), **CONV),
    "DEPTHWISE_CONV_2D": lambda: chain(
        "DEPTHWISE_CONV_2D", [normal(1, 3, 3, 8), normal(8)], SHAPE, depth_multiplier=1, **CONV
    ),
    "FULLY_CONNECTED": lambda: chain("FULLY_CONNECTED", [normal(5, 128), normal(5)], (1, 5)),
    "TRANSPOSE_CONV": lambda: chain(
        "TRANSPOSE_CONV", [i32(1, 4, 4, 5), normal(5, 3, 3, 8), normal(5)], (1, 4, 4, 5), place=2, **CONV
    ),
    "BATCH_MATMUL": doubled,
    "AVERAGE_POOL_2D": lambda: chain("AVERAGE_POOL_2D", [], (1, 2, 2, 8), **POOL),
    "MAX_POOL_2D": lambda: chain("MAX_POOL_2D", [], (1, 2, 2, 8), **POOL),
    "SPACE_TO_BATCH_ND": lambda: chain("SPACE_TO_BATCH_ND", [i32(2, 2), i32([0, 0], [0, 0])], (4, 2, 2, 8)),
    "BATCH_TO_SPACE_ND": lambda: chain(
        "BATCH_TO_SPACE_ND", [i32(2, 2), i32([0, 0], [0, 0])], (1, 4, 4, 8), (4, 2, 2, 8)
    ),
    "SPACE_TO_DEPTH": lambda: chain("SPACE_TO_DEPTH", [], (1, 2, 2, 32), block_size=2),
    "DEPTH_TO_SPACE": lambda: chain("DEPTH_TO_SPACE", [], (1, 8, 8, 2), block_size=2),
    "SPLIT": lambda: chain("SPLIT", [i32(3).reshape(())], (1, 4, 4, 4), place=1, results=2, num_splits=2),
    "SPLIT_V": lambda: chain("SPLIT_V", [i32(4, 4), i32(3).reshape(())], (1, 4, 4, 4), results=2, num_splits=2),
    "CONCATENATION": lambda: chain("CONCATENATION", [normal(*SHAPE)], (1, 4, 4, 16), axis=3),
    "EXPAND_DIMS": lambda: chain("EXPAND_DIMS", [i32(0)], (1, *SHAPE)),
    "GATHER": lambda: chain("GATHER", [i32(5, 1)], (1, 4, 4, 2), axis=3),
    "GATHER_ND": lambda: chain("GATHER_ND", [i32([0, 1], [0, 3])], (2, 4, 8)),
    "MAXIMUM": lambda: chain("MAXIMUM", [normal(8)], SHAPE),
    "MINIMUM": lambda: chain("MINIMUM", [normal(8)], SHAPE),
    "PACK": lambda: chain("PACK", [normal(*SHAPE)], (2, *SHAPE), values_count=2, axis=0),
    "UNPACK": lambda: chain("UNPACK", [], (1, 4, 8), results=4, num=4, axis=1),
    "PAD": lambda: chain("PAD", [i32([0, 0], [1, 1], [0, 2], [0, 0])], (1, 6, 6, 8)),
    "PADV2": lambda: chain("PADV2", [i32([0, 0], [1, 1], [0, 2], [0, 0]), normal(1)], (1, 6, 6, 8)),
    "MIRROR_PAD": lambda: chain("MIRROR_PAD", [i32([0, 0], [1, 1], [0, 2], [0, 0])], (1, 6, 6, 8), mode="REFLECT"),
    "RESHAPE": lambda: chain("RESHAPE", [i32(1, 128)], (1, 128), new_shape=[1, 128]),
    "RESIZE_BILINEAR": lambda: chain("RESIZE_BILINEAR", [i32(8, 8)], (1, 8, 8, 8)),
    "RESIZE_NEAREST_NEIGHBOR": lambda: chain("RESIZE_NEAREST_NEIGHBOR", [i32(8, 8)], (1, 8, 8, 8)),
    "REVERSE_V2": lambda: chain("REVERSE_V2", [i32(1)], SHAPE),
    "SLICE": lambda: chain("SLICE", [i32(0, 1, 0, 2), i32(1, 2, 4, 6)], (1, 2, 4, 6)),
    "SQUEEZE": lambda: chain("SQUEEZE", [], (4, 4, 8), squeeze_dims=[0]),
    "STRIDED_SLICE": lambda: chain("STRIDED_SLICE", [i32(0, 0, 0, 0), i32(1, 4, 4, 8), i32(1, 2, 2, 1)], (1, 2, 2, 8)),
    "TILE": lambda: chain("TILE", [i32(1, 2, 1, 1)], (1, 8, 4, 8)),
    "TRANSPOSE": lambda: chain("TRANSPOSE", [i32(0, 3, 1, 2)], (1, 8, 4, 4)),
    "REDUCE_MAX": lambda: chain("REDUCE_MAX", [i32(3)], (1, 4, 4)),
    "REDUCE_MIN": lambda: chain("REDUCE_MIN", [i32(3)], (1, 4, 4)),
    "SELECT": lambda: chain("SELECT", [HALF, normal(*SHAPE)], SHAPE, place=1),
    "SELECT_V2": lambda: chain("SELECT_V2", [HALF, normal(*SHAPE)], SHAPE, place=1),
    "BROADCAST_TO": lambda: chain("BROADCAST_TO", [i32(2, 4, 4, 8)], (2, 4, 4, 8), version=2),
    "MEAN": lambda: chain("MEAN", [i32(1, 2)], (1, 8)),
    "PRELU": lambda: chain("PRELU", [normal(1, 1, 8)], SHAPE),
    "LEAKY_RELU": lambda: chain("LEAKY_RELU", [], SHAPE, alpha=0.3),
    "SOFTMAX": lambda: chain("SOFTMAX", [], SHAPE, beta=1.0),
    **{
        name: lambda name=name: chain(name, [normal(*SHAPE)], SHAPE)
        for name in ("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "DIV")
    },
    **{name: lambda name=name: chain(name, [], SHAPE, first="LOGISTIC") for name in ("SQRT", "RSQRT", "LOG")},
    "REDUCE_PROD": lambda: chain("REDUCE_PROD", [i32(1)], (1, 4, 8), first="EXP"),
    "DILATE": lambda: chain("DILATE", [i32(2, 3), np.float32(0.5)], (3, 10), shape=(2, 4)),
    "DYNAMIC_UPDATE_SLICE": lambda: chain("DYNAMIC_UPDATE_SLICE", [normal(1, 2, 2, 8), i32(0, 1, 1, 0)], SHAPE),
    "FILL": lambda: chain("FILL", [i32(2, 3)], (2, 3), shape=(), place=1),
    "MATRIX_SET_DIAG": lambda: chain("MATRIX_SET_DIAG", [normal(1, 4, 4)], SHAPE),
    "MATRIX_DIAG": lambda: chain("MATRIX_DIAG", [], (1, 4, 4, 8, 8)),
    "TOPK_V2": lambda: chain("TOPK_V2", [i32(3).reshape(())], (1, 4, 4, 3), results=["float32", "int32"]),
    "EMBEDDING_LOOKUP": lambda: chain("EMBEDDING_LOOKUP", [i32(3, 1)], (2, 8), shape=(4, 8), place=1),
    "ONE_HOT": lambda: chain(
        "ONE_HOT", [i32(2, 0, 1), i32(4).reshape(()), np.float32(-0.25)], (3, 4), shape=(), place=2, axis=-1
    ),
    "SPARSE_TO_DENSE": lambda: chain(
        "SPARSE_TO_DENSE", [i32([0, 1], [2, 0]), i32(3, 4), np.float32(0.25)], (3, 4), shape=(2,), place=2
    ),
    "SCATTER_ND": lambda: chain("SCATTER_ND", [i32([0], [2]), i32(3, 4)], (3, 4), shape=(2, 4), place=1),
    "REVERSE_SEQUENCE": lambda: chain("REVERSE_SEQUENCE", [i32(3)], SHAPE, seq_dim=1, batch_dim=0),
    **{name: lambda name=name: chain(name, [normal(8) / 3], SHAPE, results=["bool"]) for name in COMPARISONS.split()},
    **{
        name: lambda name=name: chain(name, [np.float32(0)], SHAPE, results=["bool"], first="RELU")
        for name in ("EQUAL", "NOT_EQUAL")
    },
    "ARG_MAX": lambda: chain("ARG_MAX", [i32(3)], (1, 4, 4), results=["int32"], output_type="INT32"),
    "ARG_MIN": lambda: chain("ARG_MIN", [i32(3)], (1, 4, 4), results=["int32"], output_type="INT32"),
    "SUM": lambda: chain("SUM", [i32(1, -2)], (1, 8)),
    "STABLEHLO_GATHER": lambda: chain(
        "STABLEHLO_GATHER",
        [i32([0, 1], [2, 2])],
        (2, 3, 2),
        shape=(4, 4),
        offset_dims=[1, 2],
        start_index_map=[0, 1],
        index_vector_dim=1,
        slice_sizes=[3, 2],
    ),
    "STABLEHLO_PAD": lambda: chain(
        "STABLEHLO_PAD",
        [np.float32(0.25)],
        (5, 8),
        shape=(2, 4),
        edge_padding_low=[1, 0],
        edge_padding_high=[1, 1],
        interior_padding=[1, 1],
    ),
    "REDUCE_WINDOW": lambda: chain(
        "REDUCE_WINDOW",
        [np.float32(-np.inf), i64(2, 2), i64(1, 1), i64(1, 1)],
        (3, 7),
        shape=(4, 8),
        reduce_function="MAXIMUM",
    ),
    "LSTM": lambda: lstm("LSTM"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "SVDF": svdf,
    "SHAPE": lambda: chain("SHAPE", [], (4,), results=["int32"], out_type="INT32"),
    "RANK": lambda: chain("RANK", [], (), results=["int32"]),
    **{name: lambda name=name: chain(name, [], SHAPE) for name in CURVES.split()},
    **{name: variable for name in VARIABLES},
    **{name: lambda name=name: calling(name) for name in CALLING},
}


def test_every_row_has_a_model():
    assert ROWS.keys() == INTEGER.keys()


def test_every_integer_kernel_has_a_row():
    """Each operator that LiteRT runs on quantized values becomes an integer one, or the table says why not."""
    missing = []
    for type_, excused in (("int8", FLOAT), ("int16", {**FLOAT, **NOT_INT16})):
        for operator in quantization_table.kernels(type_) - excused.keys():
            row = INTEGER.get(operator)
            if row is None or getattr(row, type_) is None:
                missing.append((operator, type_))
    assert missing == []
    assert not FLOAT.keys() & INTEGER.keys()


def test_the_table_in_the_documents():
    path = pathlib.Path(__file__).parents[2] / "docs" / "quantization.md"
    wanted = quantization_table.document()
    assert path.read_text("utf-8") == wanted, "python tests/support/quantization_table.py > docs/quantization.md"


KINDS = [(name, recipe) for recipe, field in (("int8", "int8"), ("int16x8", "int16")) for name in INTEGER
         if getattr(INTEGER[name], field) is not None]  # fmt: skip


@pytest.mark.parametrize(("name", "recipe"), KINDS)
def test_runs_in_every_runtime(name, recipe):
    model = ROWS[name]()
    data = quantized(model, recipe)
    operators = tq.Model(data).operators
    assert next(op.name for op in operators if op.name != "VAR_HANDLE") == "QUANTIZE"
    assert not [op.name for op in operators if op.name not in ("QUANTIZE", "DEQUANTIZE", "CAST") and is_float(op)]
    without = ["BUILTIN_REF"] if name in ("ELU", "STABLEHLO_CASE") else []  # that resolver has neither at all
    least = 18 if recipe == "int8" else 38 if INTEGER[name].weights or INTEGER[name].narrow else 50
    check(model, data, least=least, without=without)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        (["peephole"], {}),
        (["norm"], {}),
        (["projection"], {"outputs": 3}),
        (["projection", "norm"], {"outputs": 3, "time_major": True}),
        (["projection", "norm", "peephole"], {}),
        ([], {"gates": (1, 2, 3), "cell_clip": 0.5}),
    ],
)
def test_lstms(more, options):
    model = lstm(more=more, **options)
    data = quantized(model)
    assert [op.name for op in tq.Model(data).operators if is_float(op)] == ["QUANTIZE", "DEQUANTIZE"]
    check(model, data, least=20)


def test_an_lstm_in_parameters():
    """Scales by the formulas of operator_property.cc."""
    model = lstm()
    tensors = {t.name: t for t in tq.Model(quantized(model)).tensors}
    cells = []
    for sample in draws(model):
        x = sample[0]
        x, h, c = np.where(x > 0, x, np.float32(0.75) * x), np.zeros((2, 5)), np.zeros((2, 5))
        w = {t.name: t.data for t in tq.Model(model).tensors if t.is_constant}
        for step in range(6):
            i, f, g, o = (x[:, step] @ w[f"w{1 + k}"].T + h @ w[f"w{5 + k}"].T + w[f"w{12 + k}"] for k in range(4))
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            cells.append(np.abs(c).max())
    assert tensors["state19"].quantization.scale == 2.0 ** (np.ceil(np.log2(max(cells))) - 15)
    assert tensors["state19"].type.name == "INT16" and tensors["state18"].type.name == "INT8"
    assert tensors["state18"].quantization.scale == tensors["made"].quantization.scale
    for gate in range(4):
        scale = tensors["middle"].quantization.scale * tensors[f"w{1 + gate}"].quantization.scale
        assert tensors[f"w{12 + gate}"].quantization.scale == scale


def test_an_svdf_that_is_not_rectified_stays_float():
    data = quantized(svdf("NONE"))
    assert [op.name for op in tq.Model(data).operators if is_float(op)].count("SVDF") == 1
    check(svdf("NONE"), data, least=20)


def is_float(operator):
    return "FLOAT32" in [t.type.name for t in (*operator.inputs, *operator.outputs) if t is not None]


# ---- parameters ----


def parts(b):
    """A convolution, a pool, a float operator in between, and a softmax."""
    x = b.input("x", [1, 8, 8, 3])
    conv, pool = b.tensor("conv", [1, 8, 8, 4]), b.tensor("pool", [1, 4, 4, 4])
    sine, flat = b.tensor("sine", [1, 4, 4, 4]), b.tensor("flat", [1, 64])
    logits, y = b.tensor("logits", [1, 5]), b.tensor("y", [1, 5])
    w, bias = b.constant("w", normal(4, 3, 3, 3)), b.constant("bias", normal(4))
    b.operator("CONV_2D", [x, w, bias], [conv], fused_activation_function="RELU6", **CONV)
    b.operator("MAX_POOL_2D", [conv], [pool], **POOL)
    b.operator("SIN", [pool], [sine])
    b.operator("RESHAPE", [sine, b.constant("shape", i32(1, 64))], [flat], new_shape=[1, 64])
    b.operator("FULLY_CONNECTED", [flat, b.constant("v", normal(5, 64)), None], [logits])
    b.operator("SOFTMAX", [logits], [y], beta=1.0)
    b.output(y)
    b.signature()


def network():
    b = tq.ModelBuilder()
    parts(b)
    return b.to_bytes()


def test_network():
    data = quantized(network())
    check(network(), data, least=20)
    names = [op.name for op in tq.Model(data).operators]
    integers = ["QUANTIZE", "CONV_2D", "MAX_POOL_2D", "DEQUANTIZE", "SIN", "QUANTIZE", "RESHAPE", "FULLY_CONNECTED"]
    assert names == [*integers, "SOFTMAX", "DEQUANTIZE"]


def test_parameters():
    calibration = tq.calibrate(network(), draws(network()))
    model = tq.Model(quantized(network(), calibration=calibration))
    tensors = model.tensors
    low, high = map(np.float32, calibration.range("x"))
    scale = np.float32(np.float32(high - low) / np.float32(255))
    x = tensors["x_int8"].quantization
    assert x.scale == scale and x.zero_point == away(np.float32(-128 - low / scale))
    assert (x.min, x.max) == (low, high)
    w = tq.Model(network()).tensors["w"].data
    bound = np.abs(w).max((1, 2, 3), keepdims=True)
    scales = ((bound + bound) / np.float32(254)).astype(np.float32)
    np.testing.assert_array_equal(tensors["w"].quantization.scale, scales.ravel())
    np.testing.assert_array_equal(tensors["w"].data, away(w * (np.float32(1) / scales)))
    bias, b = tensors["bias"], tq.Model(network()).tensors["bias"].data
    np.testing.assert_array_equal(bias.quantization.scale, scale * scales.ravel())
    assert bias.data.dtype == np.int32
    np.testing.assert_array_equal(bias.data, away(b * (np.float32(1) / (scale * scales.ravel()))))
    conv, pool = tensors["conv"].quantization, tensors["pool"].quantization
    assert (conv.scale, conv.zero_point) == (pool.scale, pool.zero_point) and conv.zero_point == -128
    y = tensors["y_int8"].quantization
    assert (y.scale, y.zero_point) == (np.float32(1 / 256), -128)


def test_interface_keeps_its_names():
    before, after = tq.Model(network()), tq.Model(quantized(network()))
    assert [t.name for t in after.inputs + after.outputs] == ["x", "y"]
    assert [t.type.name for t in after.inputs + after.outputs] == ["FLOAT32", "FLOAT32"]
    named = after.signatures[0]
    assert named.inputs.keys() == before.signatures[0].inputs.keys()
    assert named.outputs == {"y": after.outputs[0].index}


@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_io(io):
    model = tq.Model(quantized(network(), io=io))
    assert {t.type.name for t in model.inputs + model.outputs} == {io.upper()}
    assert [t.name for t in model.inputs + model.outputs] == ["x", "y"]


def test_versions():
    model = tq.Model(quantized(network()))
    found = {op.name: op.version for op in model.operators}
    assert found == {
        "QUANTIZE": 1,
        "CONV_2D": 3,
        "MAX_POOL_2D": 2,
        "DEQUANTIZE": 2,
        "SIN": 1,
        "RESHAPE": 1,
        "FULLY_CONNECTED": 4,
        "SOFTMAX": 2,
    }


def test_fixed_parameters_that_others_do_not_share():
    """TANH writes 1/128; the CONCATENATION needs a wider range, so a QUANTIZE stands between."""
    b = tq.ModelBuilder()
    x, t, y = b.input("x", [1, 8]), b.tensor("t", [1, 8]), b.tensor("y", [1, 16])
    b.operator("TANH", [x], [t])
    b.operator("CONCATENATION", [t, b.constant("c", 5 * normal(1, 8))], [y], axis=1)
    b.output(y)
    model = b.to_bytes()
    data = quantized(model)
    check(model, data)
    names = [op.name for op in tq.Model(data).operators]
    assert names == ["QUANTIZE", "TANH", "QUANTIZE", "CONCATENATION", "DEQUANTIZE"]
    assert tq.Model(data).tensors["t_fixed"].quantization.scale == np.float32(1 / 128)


def test_a_bias_that_would_overflow():
    """Weights near 0 give their channel a scale for which the bias' quantized value passes int32: the scale grows."""
    b = tq.ModelBuilder()
    weights, bias = normal(4, 16), np.array([13.3, 0.5, -7, 1], np.float32)
    weights[0] = 1e-9
    x, y = b.input("x", [1, 16]), b.tensor("y", [1, 4])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", weights), b.constant("b", bias)], [y])
    b.output(y)
    model = b.to_bytes()
    data = quantized(model)
    check(model, data)
    found = tq.Model(data).tensors["b"]
    assert abs(int(found.data[0]) - 2**30) <= 64  # what float32 holds of it
    scales = found.quantization.scale.astype(float)
    assert (np.abs(found.data * scales - bias) <= scales / 2 + 1e-6 * np.abs(bias)).all()


@pytest.mark.parametrize("recipe", ["int8", "int16x8", "uint8"])
def test_a_bias_of_rank_4_keeps_its_shape(recipe):
    """TRANSPOSE_CONV with a bias of [1, 1, 1, o], as converters write it for a folded normalization."""
    weights, bias = normal(5, 2, 2, 8), normal(1, 1, 1, 5)
    b = tq.ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 8)), b.tensor("y", (1, 8, 8, 5))
    inputs = [b.constant("shape", i32(1, 8, 8, 5)), b.constant("w", weights), x, b.constant("bias", bias)]
    b.operator("TRANSPOSE_CONV", inputs, [y], padding="SAME", stride_h=2, stride_w=2)
    b.output(y)
    data = quantized(b.to_bytes(), recipe)
    made = next(tensor for tensor in tq.Model(data).tensors if tensor.name == "bias")
    assert made.shape == (1, 1, 1, 5)
    assert made.dtype == (np.int64 if recipe == "int16x8" else np.int32)
    check(b.to_bytes(), data)


def test_shared_weights():
    b = tq.ModelBuilder()
    x, m, y = b.input("x", [1, 64]), b.tensor("m", [1, 64]), b.tensor("y", [1, 64])
    w = b.constant("w", normal(64, 64) / 8)
    b.operator("FULLY_CONNECTED", [x, w, None], [m])
    b.operator("FULLY_CONNECTED", [m, w, None], [y])
    b.output(y)
    model = b.to_bytes()
    data = quantized(model)
    check(model, data)
    assert len([buffer for buffer in tq.Model(data).buffers if buffer.nbytes]) == 1


def test_rules():
    data = quantized(
        network(),
        rules=[tq.Rule("float", operator="SOFTMAX"), tq.Rule("dynamic_int8", tensor="^logits")],
        min_elements=0,
    )
    check(network(), data, least=20)
    types = {t.name: t.type.name for t in tq.Model(data).tensors}
    assert (types["conv"], types["logits"], types["v"]) == ("INT8", "FLOAT32", "INT8")


def test_data_that_only_moves_stays_float():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 8]), b.tensor("y", [8])
    b.operator("RESHAPE", [x, b.constant("shape", i32(8))], [y], new_shape=[8])
    b.output(y)
    with pytest.raises(ValueError, match="nothing to quantize"):
        quantized(b.to_bytes())


@pytest.mark.corpus
def test_weights_of_converter_files(corpus):
    files = {path.stem: path for path in corpus}
    model = tq.Model(files["k_mnv2s_float"])
    sample = np.random.default_rng(0).uniform(-1, 1, model.inputs[0].shape).astype(np.float32)
    ours = {t.name: t for t in tq.Model(tq.quantize_model(model, calibration=[[sample]])).tensors}
    count = 0
    for tensor in tq.Model(files["k_mnv2s_int8"]).tensors:
        if tensor.is_constant and tensor.type.name == "INT8" and tensor.name in ours:
            other = ours[tensor.name]
            np.testing.assert_array_equal(other.quantization.scale, tensor.quantization.scale)
            np.testing.assert_array_equal(other.data, tensor.data)
            count += 1
    assert count > 40


# ---- bad input ----


def test_calibration_that_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match="needs calibration="):
        tq.quantize_model(network(), "int8")
    with pytest.raises(ValueError, match="calibration set is empty"):
        quantized(network(), calibration=[])
    other = tq.calibrate(doubled(), draws(doubled()))
    with pytest.raises(ValueError, match="of another model: its tensor"):
        quantized(network(), calibration=other, output=tmp_path / "out.tflite")
    with pytest.raises(ValueError, match="the calibration is empty"):
        quantized(network(), calibration=tq.Calibration({}, {}))
    nothing = [[np.full((1, 8, 8, 3), np.nan, np.float32)]]
    with pytest.raises(ValueError, match="tensor 'x' had no finite value"):
        quantized(network(), calibration=nothing)
    assert os.listdir(tmp_path) == []


def test_non_finite_weights_are_refused():
    weights = normal(5, 128)
    weights[2, 3] = np.nan
    model = chain("FULLY_CONNECTED", [weights, normal(5)], (1, 5))
    with pytest.raises(ValueError, match=r"'c0'.*FULLY_CONNECTED.*nan"):
        quantized(model)


def test_command(tmp_path):
    (tmp_path / "in.tflite").write_bytes(network())
    tq.calibrate(network(), draws(network())).save(tmp_path / "ranges.npz")
    np.savez(tmp_path / "samples.npz", x=np.concatenate([sample[0] for sample in draws(network())]))
    for option in (["--calibration", "ranges.npz"], ["--samples", "samples.npz"]):
        command = [*TQ, "quantize", "in.tflite", "out.tflite", "--recipe", "int8", "--io", "int8", *option]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out.tflite").read_bytes() == quantized(network(), io="int8")
    command = [*TQ, "quantize", "in.tflite", "out.tflite", "--recipe", "int16x8", "--calibration", "ranges.npz"]
    done = subprocess.run([*command, "--range", "conv=-1,9"], cwd=tmp_path, env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.tflite").read_bytes() == quantized(network(), "int16x8", overrides={"conv": (-1, 9)})
    for given, words in (("conv=1", b"invalid range, as conv1/relu=-1,6"), ("cone=0,1", b"no tensor 'cone'")):
        done = subprocess.run([*command, "--range", given], cwd=tmp_path, env=environment(), capture_output=True)
        assert done.returncode == 2 and words in done.stderr


def test_oracle_runs_the_integer_interface():
    data = quantized(network(), io="int8")
    values = np.arange(192, dtype=np.uint8).view(np.int8).reshape(1, 8, 8, 3)
    model = tq.Model(data)
    places = model.inputs[0].index, model.outputs[0].index
    answers = [
        next(oracle.ask("tensors", [(data, resolver, [{places[0]: values}], {}, [places[1]])]))
        for resolver in RESOLVERS
    ]
    np.testing.assert_array_equal(answers[1][0][places[1]], answers[3][0][places[1]])


@pytest.mark.parametrize(
    ("whole", "recipe"),
    [
        *((network, recipe) for recipe in ("int8", "int16x8", "dynamic_int8", "weight_only_int4", "blockwise_int4")),
        (network, "float16"),
        (lambda: lstm(more=["norm", "projection", "peephole"]), "int8"),
        (svdf, "int8"),
        (lambda: ROWS["PRELU"](), "int16x8"),
        (lambda: ROWS["SUM"](), "int8"),
        *((lambda name=name: ROWS[name](), "int16x8") for name in ("WHILE", "IF", "ASSIGN_VARIABLE")),
    ],
)
def test_damaged_models(whole, recipe):
    """A model whose bytes are changed is quantized, or refused by an error of tq's; nothing else comes out."""
    whole = whole()
    ranges = tq.calibrate(whole, draws(whole))
    made = 0
    for seed in range(150):
        with contextlib.suppress(tq.Error, ValueError):
            given = calibrated(recipe, ranges)
            made += bool(tq.quantize_model(damaged(whole, seed), recipe, **given, min_elements=0))
    assert made > 6


@pytest.mark.parametrize(("function", "start"), [("ADD", 0.0), ("MUL", 1.0)])
def test_windows_that_add_or_multiply_quantized_values_stay_float(function, start):
    """The sum of quantized values is no quantized value of the sum: their zero points add up, too."""
    windows = [np.float32(start), i64(2, 2), i64(1, 1), i64(1, 1)]
    model = chain("REDUCE_WINDOW", windows, (3, 7), shape=(4, 8), reduce_function=function)
    data = quantized(model)
    (op,) = [item for item in tq.Model(data).subgraphs[0].operators if item.name == "REDUCE_WINDOW"]
    assert op.outputs[0].type.name == "FLOAT32"
    check(model, data)
    assert f"reduce_function {function}" in str(tq.plan_quantization(model, "int8", **calibrated("int8", draws(model))))


@pytest.mark.parametrize(("recipe", "io"), [("int8", "int8"), ("uint8", "uint8"), ("int16x8", "int16")])
def test_operators_that_only_move_data_become_integers_where_io_asks_for_it(recipe, io):
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 4]), b.tensor("y", [1, 6]), b.tensor("z", [2, 3])
    b.operator("PAD", [x, b.constant("pads", np.int32([[0, 0], [1, 1]]))], [y])
    b.operator("RESHAPE", [y, b.constant("shape", np.int32([2, 3]))], [z])
    b.output(z)
    samples = [[np.float32([[-1, 2, 3, 0.5]])]]
    made = tq.Model(tq.quantize_model(b.to_bytes(), recipe, calibration=samples, io=io))
    assert [op.name for op in made.operators] == ["PAD", "RESHAPE"]
    assert {made.inputs[0].type.name, made.outputs[0].type.name} == {io.upper()}
    with pytest.raises(ValueError, match="operators that only move data become integers where io= asks for it"):
        tq.quantize_model(b.to_bytes(), recipe, calibration=samples)


def test_data_that_a_float_operator_reads_too_moves_as_float_also_with_io():
    b = tq.ModelBuilder()
    x, y, z, n = b.input("x", [1, 4]), b.tensor("y", [4]), b.tensor("z", [1, 4]), b.tensor("n", [4])
    b.operator("RESHAPE", [x, b.constant("shape", np.int32([4]))], [y], new_shape=[4])
    b.operator("COS", [y], [n])
    b.operator("COS", [x], [z])
    b.output(n)
    b.output(z)
    with pytest.raises(ValueError, match="finds nothing to quantize"):
        tq.quantize_model(b.to_bytes(), "int8", calibration=[[np.float32([[-1, 2, 3, 0.5]])]], io="int8")
