# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL, the transposed and three-dimensional convolutions, lookups in embeddings, and float operators with
weights of integers: what they refuse, when they are prepared and when they run.  Random models against LiteRT are in
test_ops.py."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

DTYPES = {"FLOAT32": np.float32, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64}


def one(name, options, parts, changes):
    """A model of one operator, whose inputs are `parts` in order, its first output is y.  changes: of a part, None to
    leave it out, or of `options`.  A part with fed=True is the model's input; another is a constant of random data."""
    rng = np.random.default_rng(1)
    options = {**options, **changes.pop("options", {})}
    parts = {**parts, "y": {"shape": [], **parts.get("y", {})}}
    for key, change in changes.items():
        parts[key] = None if change is None else {**(parts[key] or {}), **change}
    tensors, inputs, places, out = [], [], [], None
    for key, part in parts.items():
        if part is None:
            places.append(-1)
            continue
        part = {"type": "FLOAT32", **part}
        fed = part.pop("fed", False)
        if fed:
            inputs.append(len(tensors))
        elif key != "y" and "data" not in part:
            part["data"] = (rng.uniform(-1, 1, part["shape"]) * 9).astype(DTYPES[part["type"]])
        if key == "y":
            out = len(tensors)
        else:
            places.append(len(tensors))
        tensors.append(tensor(key, part.pop("shape"), part.pop("type"), **part))
    item = operator(name, places, [out], **options)
    return build_model(tensors=tensors, operators=[item], inputs=inputs, outputs=[out])


def matmul(**changes):
    parts = {"a": {"shape": [2, 3, 4], "fed": True}, "b": {"shape": [2, 4, 5]}}
    return one("BATCH_MATMUL", {}, parts, changes)


CODES = {"type": "INT8", "scale": 0.05, "zero_point": 3}
CODE_MATMUL = {"a": CODES, "b": CODES, "y": CODES}


def faked(bits):
    parts = {"x": {"shape": [2, 3], "fed": True}, "y": {"shape": [2, 3]}}
    return one("FAKE_QUANT", {"min": -1.0, "max": 1.0, "num_bits": bits}, parts, {})


def pool(**changes):
    defaults = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    return one("MAX_POOL_2D", defaults, {"x": {"shape": [1, 4, 4, 2], "fed": True}}, changes)


def transposed(**changes):
    parts = {
        "shape": {"shape": [4], "type": "INT32", "data": np.int32([1, 8, 6, 5])},
        "w": {"shape": [5, 3, 3, 2]},
        "x": {"shape": [1, 4, 3, 2], "fed": True},
        "b": {"shape": [5]},
    }
    defaults = {"stride_h": 2, "stride_w": 2, "padding": "SAME"}
    return one("TRANSPOSE_CONV", defaults, parts, changes)


def wanted(*shape):
    return {"data": np.int32(shape), "shape": [len(shape)]}


STRIDES = {f"stride_{axis}": 1 for axis in "dhw"}


def conv_3d(**changes):
    parts = {"x": {"shape": [1, 4, 5, 6, 2], "fed": True}, "w": {"shape": [2, 2, 2, 2, 3]}, "b": {"shape": [3]}}
    return one("CONV_3D", {**STRIDES, "padding": "VALID"}, parts, changes)


def conv_3d_transposed(**changes):
    parts = {
        "shape": {"shape": [5], "type": "INT32", "data": np.int32([1, 5, 6, 7, 3])},
        "w": {"shape": [2, 2, 2, 3, 2]},
        "x": {"shape": [1, 4, 5, 6, 2], "fed": True},
        "b": {"shape": [3]},
    }
    return one("CONV_3D_TRANSPOSE", {**STRIDES, "padding": "VALID"}, parts, changes)


def lookup(**changes):
    parts = {"ids": {"shape": [3], "type": "INT32", "fed": True}, "table": {"shape": [4, 2]}}
    return one("EMBEDDING_LOOKUP", {}, parts, changes)


def sparse(**changes):
    parts = {
        "ids": {"shape": [3], "type": "INT32", "fed": True},
        "places": {"shape": [3, 2], "type": "INT32", "data": np.int32([[0, 0], [1, 0], [1, 1]])},
        "dense": {"shape": [2], "type": "INT32", "data": np.int32([2, 3])},
        "weights": {"shape": [3]},
        "table": {"shape": [4, 2]},
    }
    return one("EMBEDDING_LOOKUP_SPARSE", {"combiner": "MEAN"}, parts, changes)


def places(*rows):
    return {"data": np.int32(rows), "shape": [len(rows), len(rows[0])]}


def hybrid(name, shapes, changes):
    """An operator of floats with weights of INT8.  shapes: of x, w and b."""
    x, w, b = shapes
    changes["w"] = {"scale": 0.01, **changes.get("w", {})}
    parts = {"x": {"shape": x, "fed": True}, "w": {"shape": w, "type": "INT8"}, "b": {"shape": b}}
    strides = {"stride_h": 1, "stride_w": 1}
    return one(name, strides if "CONV" in name else {}, parts, changes)


def dense(**changes):
    return hybrid("FULLY_CONNECTED", ([3, 8], [5, 8], [5]), changes)


def conv(**changes):
    return hybrid("CONV_2D", ([1, 6, 7, 4], [6, 3, 3, 4], [6]), changes)


def depthwise(**changes):
    shapes = [1, 6, 7, 4], [1, 3, 3, 8], [8]
    return hybrid("DEPTHWISE_CONV_2D", shapes, changes)


def refused(data):
    interpreter = tq.Interpreter(model_content=data)
    with pytest.raises(RuntimeError) as caught:
        interpreter.allocate_tensors()
    return str(caught.value)


@pytest.mark.parametrize(
    "data, text",
    [
        (matmul(b={"shape": [2, 3, 5]}), "'b' has 3 rows to multiply; the other operand has 4 columns"),
        (matmul(b={"shape": [3, 4, 5]}), "is 2 on the left and 3 on the right"),
        (matmul(b={"shape": [4]}), "'b' has 1 dimensions"),
        (matmul(a={"shape": [1, 1, 1, 1, 1, 3, 4]}), "'a' has 7 dimensions"),
        (matmul(options={"adj_x": True}), "'b' has 4 rows to multiply; the other operand has 3 columns"),
        (matmul(b={"type": "INT16", "scale": 0.1}), "'b'"),
        (matmul(**{**CODE_MATMUL, "y": {"type": "INT16", "scale": 0.1}}), "'y'"),
        (matmul(b={"type": "INT8"}), "'b' has no scale"),
        (transposed(shape=wanted(1, 8, 6)), "'shape' has 3 elements"),
        (transposed(shape=wanted(1, 8, 6, 4)), "'shape' asks for [1,8,6,4]"),
        (transposed(shape=wanted(2, 8, 6, 5)), "the batch must be 1"),
        (transposed(shape=wanted(1, 8, -6, 5)), "'shape' asks for [1,8,-6,5]"),
        (transposed(shape=wanted(1, 8, 9, 5)), "asks for a size of 8 x 9, whose convolution is 4 x 5"),
        (transposed(w={"shape": [5, 3, 3, 3]}), "'w' takes 3 channels and gives 5; the input has 2"),
        (transposed(b={"shape": [4]}), "'b' has 4 elements; the weights give 5 channels"),
        (transposed(options={"stride_h": 0}), "the stride is 0 x 2"),
        (transposed(options={"stride_w": -1}), "the stride is 2 x -1"),
        (transposed(options={"padding": 2}), "padding is 2"),
        (pool(options={"padding": 2}), "padding is 2; there are SAME (0) and VALID (1)"),
        (transposed(x={"shape": [1, 4, 3]}), "'x' has 3 dimensions"),
        (transposed(w={"type": "INT8"}), "'w' has no scale"),
        (conv_3d(w={"shape": [2, 2, 2, 3, 3]}), "'w' takes 3 channels and gives 3; the input has 2"),
        (conv_3d(w={"shape": [0, 2, 2, 2, 3]}), "the filter's depth is 0"),
        (conv_3d(b={"shape": [2]}), "'b' has 2 elements; the filter gives 3 channels"),
        (conv_3d(options={"stride_d": 0}), "the stride along"),
        (conv_3d(options={"dilation_h_factor": -1}), "the dilation along"),
        (conv_3d(x={"shape": [4, 5, 6, 2]}), "'x' has 4 dimensions"),
        (conv_3d_transposed(shape=wanted(1, 5, 6, 7)), "'shape' has 4 elements"),
        (conv_3d_transposed(shape=wanted(1, 5, 6, 0, 3)), "'shape' asks for dimension 3 of 0"),
        (conv_3d_transposed(shape=wanted(1, 5, 6, 9, 3)), "whose convolution is 8; the input has 6"),
        (conv_3d_transposed(shape=wanted(1, 5, 6, 7, 2)), "asks for a batch of 1 and 2 channels"),
        (lookup(ids={"shape": [3, 1]}), "'ids' has 2 dimensions"),
        (lookup(ids={"type": "INT64"}), "'ids' has type INT64"),
        (lookup(table={"shape": [4]}), "'table' has 1 dimensions"),
        (lookup(table={"type": "INT8"}), "'table' has no scale"),
        (sparse(places={"shape": [2, 2], "data": np.int32([[0, 0], [1, 0]])}), "there are 3 ids, 2 indices"),
        (sparse(weights={"shape": [4]}), "4 weights"),
        (sparse(options={"combiner": 3}), "the combiner is 3; there are SUM (0)"),
        (dense(w={"shape": [5, 7]}), "'x' has 24 elements; rows of 7 are needed"),
        (dense(b={"shape": [4]}), "'b' has 4 elements; the weights have 5 units"),
        (dense(w={"scale": None}), "'w' has no scale"),
        (dense(w={"scale": [0.1] * 4}), "'w' has no scale, or several that fit no dimension"),
        (dense(w={"scale": -0.5}), "'w' has the scale -0.5"),
        (conv(w={"shape": [6, 3, 3, 3]}), "'w' takes 3 channels; the input's 4 must be a multiple"),
        (conv(b={"shape": [4]}), "'b' has 4 elements; the filter gives 6 channels"),
        (conv(w={"scale": None}), "'w' has no scale"),
        (conv(options={"stride_w": 0}), "the stride along width is 0"),
        (depthwise(w={"shape": [2, 3, 3, 8]}), "'w' has a first dimension of 2"),
        (depthwise(w={"shape": [1, 3, 3, 6]}), "'w' gives 6 channels; a positive multiple of the input's 4"),
        (depthwise(options={"dilation_w_factor": 0}), "the dilation along width is 0"),
        (one("SHAPE", {"out_type": "INT64"}, {"x": {"shape": [3], "fed": True}, "y": {"type": "INT32"}}, {}),
         "output 0 'y' has type INT32; it needs to be INT64"),
        (one("ARG_MIN", {"output_type": "INT32"}, {"x": {"shape": [3], "fed": True}, "axis": {"shape": [],
         "type": "INT32", "data": np.int32(0)}, "y": {"type": "INT64"}}, {}),
         "output 0 'y' has type INT64; it needs to be INT32"),
        *((faked(bits), f"num_bits is {bits}; it must be from 2 to 16") for bits in (-2, 0, 1, 17, 2**31 - 1)),
    ],
)  # fmt: skip
def test_refuses(data, text):
    message = refused(data)
    assert text in message
    assert "perator 0 (" in message


def run(data, *values, **arguments):
    interpreter = tq.Interpreter(model_content=data, **arguments)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize(
    "data, ids, text",
    [
        (lookup(), [0, 4, 1], "'ids' has index 4 at position 1; the table has 4 rows"),
        (lookup(), [-1, 0, 1], "'ids' has index -1 at position 0"),
        (sparse(), [0, 1, 4], "'ids' has index 4 at position 2; the table has 4 rows"),
        (sparse(), [0, -2, 1], "'ids' has index -2 at position 1"),
        (sparse(places=places([0, 0], [1, 0], [2, 1])), [0, 1, 2], "'places' has index 2 at position 2, 0"),
        (sparse(places=places([0, 0], [-1, 0], [1, 1])), [0, 1, 2], "'places' has index -1 at position 1, 0"),
    ],
)
def test_refuses_indices_when_it_runs(data, ids, text):
    with pytest.raises(RuntimeError) as caught:
        run(data, np.int32(ids))
    assert text in str(caught.value)
    assert "perator 0 (EMBEDDING_LOOKUP" in str(caught.value)


def test_a_shape_that_is_not_constant_is_checked_when_it_runs():
    data = transposed(shape={"fed": True, "data": None})
    x = np.ones((1, 4, 3, 2), np.float32)
    fed = [details["name"] for details in tq.Interpreter(model_content=data).get_input_details()]
    assert fed == ["shape", "x"]
    expected = run(transposed(), x)
    np.testing.assert_array_equal(run(data, np.int32([1, 8, 6, 5]), x), expected)
    with pytest.raises(RuntimeError, match="'shape' asks for a size of 8 x 9"):
        run(data, np.int32([1, 8, 9, 5]), x)


FOURIER = {"x": {"shape": [9, 3, 128], "fed": True}, "n": {"shape": [2], "type": "INT32", "data": np.int32([4, 128])}}
FLOATS = {"matmul": matmul(), "transposed": transposed(), "conv 3d": conv_3d(), "dense": dense(), "conv": conv(),
          "depthwise": depthwise(), "matmul of codes": matmul(**CODE_MATMUL),
          "hybrid matmul": matmul(b={"type": "INT8", "scale": 0.01}),
          "matmul of many batches": matmul(a={"shape": [8, 40, 50]}, b={"shape": [8, 50, 60]}),
          "hybrid matmul of many batches": matmul(a={"shape": [35, 40, 50]}, b={"shape": [35, 50, 60],
                                                  "type": "INT8", "scale": 0.01}),
          "fourier": one("RFFT2D", {}, {**FOURIER, "y": {"shape": [], "type": "COMPLEX64"}}, {})}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_threads_change_nothing(name):
    interpreter = tq.Interpreter(model_content=FLOATS[name])
    details = interpreter.get_input_details()[0]
    rng = np.random.default_rng(4)
    x = rng.integers(-128, 128, details["shape"]) if details["dtype"] == np.int8 else rng.normal(size=details["shape"])
    x = x.astype(details["dtype"])
    np.testing.assert_array_equal(run(FLOATS[name], x, num_threads=4), run(FLOATS[name], x))


def test_a_matmul_of_two_inputs_is_that_of_a_constant():
    for kind, dtype in ((CODES, np.int8), ({}, np.float32)):
        both = {"a": kind, "b": kind, "y": kind}
        a, b = (np.random.default_rng(5).integers(-128, 128, s).astype(dtype) for s in ((2, 3, 4), (2, 4, 5)))
        constant = run(matmul(**{**both, "b": {**kind, "data": b}}), a)
        np.testing.assert_array_equal(run(matmul(**{**both, "b": {**kind, "fed": True}}), a, b), constant)


def test_hybrid_rows_do_not_depend_on_other_rows():
    """Every row has a scale of its own, in every batch."""
    x = np.random.default_rng(6).normal(size=(3, 8)).astype(np.float32)
    alone = run(dense(), x)
    loud = x.copy()
    loud[1] *= 1000
    np.testing.assert_array_equal(run(dense(), loud)[[0, 2]], alone[[0, 2]])
