# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: what they refuse, weights that are not constant, instruction sets,
threads.  Random models against LiteRT are in test_ops.py, kernels against plain sums in test_variants_c.py."""

import os
import subprocess
import sys

import numpy as np
import pytest
from models import build_model, operator, tensor
from repository import import_path

import tq


def conv(**changes):
    """One CONV_2D of 4 to 6 channels, 3 by 3, int8.  changes: of tensors x, w, b and y (keywords of `tensor`, with
    `shape` and `type`), of `options`, and `op`: another operator."""
    rng = np.random.default_rng(1)
    parts = {
        "x": {"shape": [1, 6, 7, 4], "type": "INT8", "scale": 0.05, "zero_point": 3},
        "w": {"shape": [6, 3, 3, 4], "type": "INT8", "scale": 0.01},
        "b": {"shape": [6], "type": "INT32", "scale": 0.0005},
        "y": {"shape": [], "type": "INT8", "scale": 0.1, "zero_point": -5},
    }
    name = changes.pop("op", "CONV_2D")
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1} if "CONV_2D" in name else {}
    options |= changes.pop("options", {})
    for key, change in changes.items():
        parts[key] = {**parts[key], **change}
    for key, dtype in (("w", np.int8), ("b", np.int32)):
        types = {"INT8": np.int8, "UINT8": np.uint8, "FLOAT32": np.float32, "INT32": np.int32, "INT64": np.int64}
        dtype = types.get(parts[key]["type"], dtype)
        if "data" not in parts[key]:
            parts[key]["data"] = rng.integers(0, 100, parts[key]["shape"]).astype(dtype)
    tensors = [tensor(key, part.pop("shape"), part.pop("type"), **part) for key, part in parts.items()]
    product = operator(name, [0, 1, 2], [3], **options)
    return build_model(tensors=tensors, operators=[product], inputs=[0], outputs=[3])


def dense(**changes):
    """One FULLY_CONNECTED of 8 to 5 units on 3 rows, int8."""
    parts = {"x": {"shape": [3, 8]}, "w": {"shape": [5, 8]}, "b": {"shape": [5]}, "options": {}}
    for key, change in changes.items():
        parts[key] = {**parts.get(key, {}), **change}
    return conv(op="FULLY_CONNECTED", **parts)


def depthwise(**changes):
    shapes = {"w": {"shape": [1, 3, 3, 8]}, "b": {"shape": [8]}}
    for key, change in changes.items():
        shapes[key] = {**shapes.get(key, {}), **change}
    return conv(op="DEPTHWISE_CONV_2D", **shapes)


def transposed(side):
    """One Convolution2DTransposeBias of 8 to 3 channels, stride 2, with a filter of side x side, float32."""
    options = {"custom_options": np.array([1, 2, 2], "<i4").tobytes()}
    x, w, b = {"shape": [1, 70, 67, 8]}, {"shape": [3, side, side, 8]}, {"shape": [3]}
    parts = {key: FLOATS[key] | part for key, part in {"x": x, "w": w, "b": b, "y": {}}.items()}
    return conv(op="Convolution2DTransposeBias", options=options, **parts)


def refused(data):
    interpreter = tq.Interpreter(model_content=data)
    with pytest.raises(RuntimeError) as caught:
        interpreter.allocate_tensors()
    return str(caught.value)


def scales(count, axis, **more):
    return {"scale": np.full(count, 0.01, np.float32), "zero_point": [0] * count, "quantized_dimension": axis, **more}


@pytest.mark.parametrize(
    "data, text",
    [
        (conv(options={"stride_w": 0}), "stride"),
        (conv(options={"stride_h": -1}), "stride"),
        (conv(options={"dilation_h_factor": 0}), "dilation"),
        (conv(options={"dilation_w_factor": 2**31 - 1, "padding": "VALID"}), "the filter spans"),
        (conv(w={"shape": [6, 3, 3, 3]}), "must divide the input's 4"),
        (conv(w={"shape": [5, 3, 3, 2]}, b={"shape": [5]}), "multiple of the 2 groups"),
        (conv(w={"shape": [6, 9, 4]}), "has 3 dimensions"),
        (conv(x={"shape": [6, 7, 4]}), "has 3 dimensions"),
        (conv(x={"shape": [1, 0, 7, 4]}), "0 by 7 pixels"),
        (conv(b={"shape": [5]}), "has 5 elements"),
        (conv(b={"type": "INT64"}), "INT64"),
        (conv(b={"type": "FLOAT32"}), "FLOAT32"),
        (conv(w={"zero_point": 1}), "has the zero point 1"),
        (conv(w={"scale": None}), "has no scale"),
        (conv(x={"scale": None}), "has no scale"),
        (conv(y={"scale": float("inf")}), "negative or not finite"),
        (conv(y={"zero_point": 1793}), "zero point"),
        (conv(w={"scale": float("nan")}), "scale nan"),
        (conv(w={"scale": -0.01}), "0 or more"),
        (conv(w=scales(4, 3)), "it needs one, or"),
        (conv(y={"type": "UINT8"}), "UINT8"),
        (conv(w={"type": "UINT8"}), "UINT8"),
        (conv(x={"type": "INT16"}, y={"type": "INT16", "zero_point": 0}), "INT16 needs 0"),
        (depthwise(w={"shape": [2, 3, 3, 8]}), "first dimension of 2"),
        (depthwise(w={"shape": [1, 3, 3, 6]}, b={"shape": [6]}), "multiple of the input's 4"),
        (depthwise(w=scales(3, 1)), "it needs one, or"),
        (dense(x={"shape": [3, 7]}), "rows of 8 are needed"),
        (dense(w={"shape": [5, 2, 4]}), "has 3 dimensions"),
        (dense(b={"shape": [4]}), "has 4 elements"),
        (dense(options={"weights_format": 2}), "weights_format"),
        (dense(options={"fused_activation_function": "TANH"}), "activation"),
        (dense(options={"quantized_bias_type": "INT8"}, x={"type": "INT16", "zero_point": 0},
               y={"type": "INT16", "zero_point": 0}), "quantized_bias_type"),
    ],
)  # fmt: skip
def test_refuses(data, text):
    message = refused(data)
    assert text in message
    assert "perator 0 (" in message


def run(data, x, **arguments):
    interpreter = tq.Interpreter(model_content=data, **arguments)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_weights_that_are_not_constant_give_what_constant_ones_do():
    rng = np.random.default_rng(3)
    w, b = rng.integers(-127, 128, (5, 8)).astype(np.int8), rng.integers(-500, 500, 5).astype(np.int32)
    x = rng.integers(-128, 128, (3, 8)).astype(np.int8)
    expected = run(dense(w={"data": w}, b={"data": b}), x)
    model = tq.Interpreter(model_content=_inputs(dense(w={"data": None}, b={"data": None}), [0, 1, 2]))
    model.allocate_tensors()
    for index, value in enumerate((x, w, b)):
        model.set_tensor(index, value)
    for _ in range(2):
        model.invoke()
        np.testing.assert_array_equal(model.get_tensor(3), expected)


def _inputs(data, indices):
    editor = tq.edit(data)
    editor.inputs = indices
    return editor.to_bytes()


WIDE = {"x": {"type": "INT16", "zero_point": 0}, "y": {"type": "INT16", "zero_point": 0}}
FLOATS = {key: {"type": "FLOAT32", "scale": None, "zero_point": None} for key in "xwby"}
HYBRID = {key: FLOATS[key] for key in "xby"}
LARGE = {**FLOATS["x"], "shape": [1, 97, 87, 4]}  # quantized by several threads, with a remainder of blocks


def transposed_by_pixels(channels, outputs, taps, stride):
    """One TRANSPOSE_CONV of a 7 by 23 image of floats with int8 weights."""
    rng = np.random.default_rng(outputs)
    shape = [1, 7 * stride, 23 * stride, outputs]
    tensors = [
        tensor("x", [1, 7, 23, channels]),
        tensor("shape", [4], "INT32", data=np.array(shape, np.int32)),
        tensor("w", [outputs, taps, taps, channels], "INT8", **scales(outputs, 0),
               data=rng.integers(-127, 128, (outputs, taps, taps, channels)).astype(np.int8)),
        tensor("b", [outputs], data=rng.standard_normal(outputs).astype(np.float32)),
        tensor("y", shape),
    ]  # fmt: skip
    options = {"padding": "SAME", "stride_w": stride, "stride_h": stride}
    return build_model(tensors, [operator("TRANSPOSE_CONV", [1, 2, 0, 3], [4], **options)], [0], [4])


def embedding(table, output):
    """EMBEDDING_LOOKUP of rows of 5 vectors and a remainder."""
    codes = np.random.default_rng(1).integers(0, 255, (4, 83)).astype({"INT8": np.int8, "UINT8": np.uint8}[table])
    tensors = [tensor("x", [4], "INT32"), tensor("w", [4, 83], table, data=codes, **scales(4, 0))]
    tensors.append(tensor("y", [4, 83], output))
    return build_model(tensors, [operator("EMBEDDING_LOOKUP", [0, 1], [2], version=4)], [0], [2])


def vector_by_rows(width, units):
    """One SVDF of a row of floats with int8 weights, whose state is one step: the row times the matrix."""
    rng = np.random.default_rng(width)
    codes = {"feature": [units, width], "time": [units, 1]}
    weights = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in codes.items()}
    tensors = [tensor("x", [1, width])]
    tensors += [tensor(name, codes[name], "INT8", data=data, scale=0.01) for name, data in weights.items()]
    tensors += [tensor("state", [1, units], is_variable=True), tensor("y", [1, units])]
    options = {"rank": 1, "asymmetric_quantize_inputs": True}
    return build_model(tensors, [operator("SVDF", [0, 1, 2, -1, 3], [4], version=4, **options)], [0], [4])


# models of one batch: of a constant shape of the output, or of indices
ONE_BATCH = {
    f"embedding, {table} to {output}": embedding(table, output)
    for table in ("INT8", "UINT8")
    for output in ("FLOAT32", "FLOAT16")
} | {
    f"hybrid, transposed by pixels, {outputs} of {channels}": transposed_by_pixels(channels, outputs, taps, stride)
    for channels, outputs, taps, stride in [(5, 1, 5, 2), (8, 3, 4, 2), (1, 6, 3, 1), (16, 19, 2, 2)]
}
ONE_BATCH |= {
    f"hybrid, a row of {width} by {units} rows": vector_by_rows(width, units)
    for width, units in [(1, 1), (1, 70), (15, 3), (16, 4), (17, 9), (33, 67), (64, 6), (1030, 13), (2048, 5)]
}
CASES = {
    "conv": conv(),
    "conv by channel": conv(w=scales(6, 0)),
    "grouped": conv(w={"shape": [6, 3, 3, 2]}),
    "by channel": conv(w={"shape": [8, 3, 3, 1]}, b={"shape": [8]}),
    "float": conv(**FLOATS),
    "hybrid": conv(**HYBRID),
    "hybrid, a large image": conv(**HYBRID | {"x": LARGE}),
    "hybrid depthwise, a large image": depthwise(**HYBRID | {"x": LARGE}),
    "16x8": conv(b={"type": "INT64"}, **WIDE),
    "16x8, 32 bits": conv(**WIDE),
    "depthwise": depthwise(),
    "dense": dense(),
    "hybrid dense, blocks of rows": dense(
        **HYBRID
        | {"x": {**FLOATS["x"], "shape": [301, 43]}, "w": {"shape": [53, 43]}, "b": {**FLOATS["b"], "shape": [53]}}
    ),
    "transposed": transposed(3),
    "transposed, phases that read the same pixels": transposed(2),
}


def values(data):
    tensor = tq.Model(data).subgraphs[0].tensors[0]
    rng = np.random.default_rng(5)
    if tensor.dtype == np.float32:
        return rng.standard_normal(tensor.shape).astype(np.float32)
    if tensor.dtype == np.int32:
        return np.arange(tensor.shape[0], dtype=np.int32)  # rows of a table
    info = np.iinfo(tensor.dtype)
    return rng.integers(info.min, info.max, tensor.shape, endpoint=True).astype(tensor.dtype)


@pytest.mark.parametrize("case", ONE_BATCH)
def test_threads_change_nothing(case):
    data, x = ONE_BATCH[case], values(ONE_BATCH[case])
    one, many = (run(data, x, numerics="reference", num_threads=n) for n in (1, 4))
    np.testing.assert_array_equal(many, one)


@pytest.mark.parametrize("case", CASES)
def test_threads_and_batches_change_nothing(case):
    data, x = CASES[case], values(CASES[case])
    alone = run(data, x)
    np.testing.assert_array_equal(run(data, x, num_threads=4), alone)
    for numerics in ("optimized", "xnnpack"):
        one, many = (run(data, x, numerics=numerics, num_threads=n) for n in (1, 4))
        np.testing.assert_array_equal(many, one)
    interpreter = tq.Interpreter(model_content=data)
    many = np.concatenate([x] * 5)
    interpreter.resize_tensor_input(0, many.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, many)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), np.concatenate([alone] * 5))


def test_instruction_sets_change_nothing(tmp_path):
    """Each in a process of its own, as users choose them."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, numpy as np\n"
        f"sys.path[:0] = {import_path(__file__)!r}\n"
        "import test_run_products as t\n"
        "for name, data in (t.CASES | t.ONE_BATCH).items():\n"
        "    numerics = {'numerics': 'reference'} if name in t.ONE_BATCH else {}\n"
        "    print(name, t.run(data, t.values(data), **numerics).tobytes().hex())\n"
    )

    def answer(disabled):
        environment = {**os.environ, "TQ_DISABLE_CPU": disabled}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    plain = answer("avx2,neon")
    assert plain.count("\n") == len(CASES | ONE_BATCH)
    for disabled in ("", "avx512vnni", "avx512", "avx512,avxvnni", "dotprod"):
        assert answer(disabled) == plain, disabled


def test_a_float_weight_that_is_not_finite_meets_no_padding():
    w = np.ones((6, 3, 3, 4), np.float32)
    w[2, 0, 0, 0] = np.inf
    data = conv(**{**FLOATS, "w": {**FLOATS["w"], "data": w}})
    out = run(data, np.ones((1, 6, 7, 4), np.float32))
    assert np.isfinite(out[0, 0, :, 2]).all() and np.isfinite(out[0, :, 0, 2]).all()  # the tap is outside
    assert np.isinf(out[0, 1:, 1:, 2]).all() or (out[0, 1:, 1:, 2] == np.finfo(np.float32).max).all()


def test_an_empty_batch():
    interpreter = tq.Interpreter(model_content=conv())
    interpreter.resize_tensor_input(0, [0, 6, 7, 4])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(3).shape == (0, 6, 7, 6)


def shuffled(rows=1, columns=16, units=4, weights_format=1):
    """FULLY_CONNECTED of weights in blocks of 4 by 16."""
    codes = {"type": "UINT8", "scale": 0.01, "zero_point": 128}
    tensors = [
        tensor("x", [rows, columns], **codes),
        tensor("w", [units, columns], data=np.zeros((units, columns), np.uint8), **codes),
        tensor("b", [units], "INT32", data=np.arange(units, dtype=np.int32), scale=0.0001, zero_point=0),
        tensor("y", [rows, units], "INT16", scale=0.0001, zero_point=0),
        tensor("workspace", [rows, columns], "UINT8"),
    ]
    product = operator("FULLY_CONNECTED", [0, 1, 2], [3, 4], weights_format=weights_format)
    return build_model(tensors=tensors, operators=[product], inputs=[0], outputs=[3, 4])


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"rows": 2}, "has 2 rows; shuffled weights take 1 or 4"),
        ({"columns": 8}, "has 4 units of 8 columns; shuffled weights have multiples of 4 and 16"),
        ({"units": 6}, "has 6 units of 16 columns"),
        ({"weights_format": 2}, "weights_format is 2; there are DEFAULT (0) and SHUFFLED4x16INT8 (1)"),
    ],
)
def test_shuffled_weights_that_are_refused(changes, text):
    with pytest.raises(RuntimeError) as caught:
        tq.Interpreter(model_content=shuffled(**changes)).allocate_tensors()
    assert text in str(caught.value)


@pytest.mark.parametrize("numerics", ["reference", "optimized", "xnnpack"])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_infinite_weight_scales(kind, numerics):
    """Converters write them behind an input that is always 0; LiteRT multiplies the channel's sums by 0."""
    import oracle
    from generators import NUMERICS
    from generators.draft import Draft

    m = Draft(3)
    m.fixed = True
    zero = 3 if kind == "int8" else 0
    x = m.input(kind, [1, 4, 4, 8], scale=0.1, zero_point=zero)
    scales = np.float32([0.01, np.inf, 0.02])
    parameters = {"scale": scales, "zero_point": [0, 0, 0]}
    w = m.constant("int8", m.integers("int8", [3, 1, 1, 8], -127, 127), **parameters)
    b = m.constant("int32" if kind == "int8" else "int64", [100, -7, 3], **parameters)
    y = m.output(kind, [1, 4, 4, 3], scale=0.5, zero_point=2 * zero)
    m.operator("CONV_2D", [x, w, b], [y], padding="SAME", stride_w=1, stride_h=1, version=4)
    case = m.case()
    mine, theirs = (
        next(oracle.ask("tensors", [(case.model, who, case.runs, {}, [y])]))
        for who in (f"TQ {numerics}", NUMERICS[numerics])
    )
    assert (mine[0][y] == theirs[0][y]).all()
    assert (mine[0][y][..., 1] == 2 * zero).all() and (mine[0][y][..., 0] != 2 * zero).any()


def test_a_zero_point_of_weights_beside_16_bits():
    """In all three numerics; a scale for each unit leaves it out, as for INT8."""
    rng = np.random.default_rng(5)
    x, w = rng.integers(-(2**15), 2**15, (3, 40), np.int16), rng.integers(-128, 128, (4, 40), np.int8)
    for scales in ([0.02], [0.02] * 4):
        b = tq.ModelBuilder()
        place, y = b.input("x", x.shape, "int16", scale=0.01), b.tensor("y", [3, 4], "int16", scale=0.5)
        weights = b.constant("w", w, scale=scales, zero_point=[5] * len(scales), quantized_dimension=0)
        b.operator("FULLY_CONNECTED", [place, weights, None], [y])
        b.output(y)
        real = np.float64(np.float32(0.01)) * np.float64(np.float32(0.02)) / np.float64(np.float32(0.5))
        exact = x.astype(np.int64) @ (w.astype(np.int64) - (5 if len(scales) == 1 else 0)).T * real
        for numerics in ("reference", "optimized", "xnnpack"):
            run = tq.Interpreter(model=b.to_model(), numerics=numerics)
            run.allocate_tensors()
            run.set_tensor(0, x)
            run.invoke()
            got = run.get_tensor(run.get_output_details()[0]["index"])
            np.testing.assert_allclose(got, np.clip(np.round(exact), -32768, 32767), atol=1)


@pytest.mark.parametrize("columns", [7, 16, 24, 43, 75])
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
def test_hybrid_rows_are_quantized_as_each_alone(numerics, asymmetric, columns):
    """Sixteen rows find their scales side by side; a row that is not finite, 0 or tiny changes no other."""
    shapes = {"x": {**FLOATS["x"], "shape": [1, columns]}, "w": {"shape": [5, columns]}}
    data = dense(**HYBRID | shapes | {"options": {"asymmetric_quantize_inputs": asymmetric}})
    x = np.random.default_rng(columns).standard_normal((37, columns)).astype(np.float32)
    specials = (0, -0.0, np.nan, np.inf, -np.inf, 1e-39, -1e-36, 3e38)
    x[range(1, 37, 4), 2] = np.resize(np.float32(specials), 9)
    x[range(2, 37, 8)] *= np.float32(1e-37)
    x[3] = 0
    x[19] = np.abs(x[19])
    x[20] = -np.abs(x[20])
    interpreter = tq.Interpreter(model_content=data, numerics=numerics)
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    alone = np.concatenate([run(data, row[None], numerics=numerics) for row in x])
    np.testing.assert_array_equal(interpreter.get_tensor(3), alone)
