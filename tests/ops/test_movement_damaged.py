# SPDX-License-Identifier: Apache-2.0
"""Indices, axes, sizes and options that do not fit: an error that names the operator and the tensor, when the operator
is prepared if they are constants, when it runs if they are data, and an interpreter that can be used afterwards."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

HUGE = 2**31 - 1


def model(name, inputs, outputs, options=None, constants=True):
    """One operator.  An input is an array of integers, which is constant if `constants`, or (shape, type)."""
    tensors, fed = [], []
    for k, given in enumerate(inputs):
        if isinstance(given, tuple):
            fed.append(k)
            tensors.append(tensor(f"in{k}", *given))
        else:
            type = given.dtype.name.upper()
            tensors.append(tensor(f"in{k}", list(given.shape), type, given if constants else None))
            if not constants:
                fed.append(k)
    tensors += [tensor(f"out{k}", *given) for k, given in enumerate(outputs)]
    places = list(range(len(inputs), len(tensors)))
    item = operator(name, list(range(len(inputs))), places, options=options, version=2)
    return build_model(tensors, [item], fed, places)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def f32(*shape):
    return list(shape), "FLOAT32"


X = f32(2, 3)
IMAGE = f32(1, 4, 4, 4)

# name, inputs, options, what the message says; the integer arrays are constants, and then data
VALUES = [
    ("RESHAPE", [X, i32(4, 2)], None, "in0"),
    ("RESHAPE", [X, i32(-1, -1)], None, "dimension 1"),
    ("RESHAPE", [X, i32(HUGE, HUGE)], None, "in0"),
    ("RESHAPE", [X, i32(-1, 0)], None, "in0"),
    ("EXPAND_DIMS", [X, i32(4)], None, "axis is 4"),
    ("EXPAND_DIMS", [X, i64(-(2**62))], None, "axis"),
    ("TRANSPOSE", [X, i32(0, 2)], None, "perm is 2"),
    ("TRANSPOSE", [X, i32(1, 1)], None, "in1"),
    ("SLICE", [X, i32(0, 4), i32(1, 1)], None, "in1"),
    ("SLICE", [X, i32(0, -1), i32(1, 1)], None, "in1"),
    ("SLICE", [X, i32(1, 1), i32(1, 3)], None, "in2"),
    ("SLICE", [X, i64(1, 1), i64(1, 2**63 - 1)], None, "in2"),
    ("STRIDED_SLICE", [X, i32(0, 0), i32(2, 3), i32(1, 0)], {}, "in3"),
    ("STRIDED_SLICE", [X, i32(5, 0), i32(6, 3), i32(1, 1)], {"shrink_axis_mask": 1}, "in1"),
    ("STRIDED_SLICE", [X, i32(0, 0), i32(2, 3), i32(1, -(2**31))], {}, "in3"),
    ("STRIDED_SLICE", [X, i32(0, 0, 0), i32(1, 1, 1), i32(1, 1, 1)], {}, "in1"),
    ("TILE", [X, i32(-1, 1)], None, "in1"),
    ("TILE", [X, i64(2**62, 2**62)], None, "in1"),
    ("TILE", [X, i32(HUGE, 1)], None, "out0"),
    ("BROADCAST_TO", [X, i32(3, 3)], None, "in0"),
    ("BROADCAST_TO", [X, i32(-5, 2, 3)], None, "out0"),
    ("FILL", [i32(2, -1), f32()], None, "out0"),
    ("PAD", [X, i32(1, -1, 0, 0).reshape(2, 2)], None, "in1"),
    ("PAD", [X, i64(2**62, 2**62, 0, 0).reshape(2, 2)], None, "in1"),
    ("MIRROR_PAD", [X, i32(2, 0, 0, 0).reshape(2, 2)], {}, "in1"),
    ("DILATE", [X, i32(0, 1), f32()], None, "in1"),
    ("SPACE_TO_BATCH_ND", [IMAGE, i32(0, 2), i32(0, 0, 0, 0).reshape(2, 2)], None, "in1"),
    ("SPACE_TO_BATCH_ND", [IMAGE, i32(3, 2), i32(0, 0, 0, 0).reshape(2, 2)], None, "in0"),
    ("SPACE_TO_BATCH_ND", [IMAGE, i32(2, 2), i32(-2, 0, 0, 0).reshape(2, 2)], None, "in2"),
    ("BATCH_TO_SPACE_ND", [f32(4, 2, 2, 1), i32(2, 2), i32(3, 3, 0, 0).reshape(2, 2)], None, "out0"),
    ("BATCH_TO_SPACE_ND", [f32(3, 2, 2, 1), i32(2, 1), i32(0, 0, 0, 0).reshape(2, 2)], None, "in0"),
    ("SPLIT", [i32(2), X], {"num_splits": 1}, "split_dim is 2"),
    ("SPLIT_V", [X, i32(4), i32(1)], {"num_splits": 1}, "in1"),
    ("SPLIT_V", [X, i32(2), i32(1)], {"num_splits": 1}, "in1"),
    ("GATHER", [X, i32(0, 2)], {}, "in1"),
    ("GATHER", [X, i32(-1)], {"axis": 1}, "in1"),
    ("GATHER_ND", [X, i32(0, 3).reshape(1, 2)], None, "in1"),
    ("SCATTER_ND", [i32(3).reshape(1, 1), f32(1), i32(3)], None, "in0"),
    ("SCATTER_ND", [i32(0).reshape(1, 1), f32(2), i32(3)], None, "in1"),
    ("SPARSE_TO_DENSE", [i32(1, 5), i32(5), f32(2), f32()], None, "in0"),
    ("SEGMENT_SUM", [X, i32(0, 2)], None, "in1"),
    ("SEGMENT_SUM", [X, i32(1, 1)], None, "in1"),
    ("UNSORTED_SEGMENT_SUM", [X, i32(0, 5), i32(5)], None, "in1"),
    ("REVERSE_V2", [X, i32(2)], None, "axis is 2"),
    ("REVERSE_SEQUENCE", [X, i32(4, 1)], {"seq_dim": 1}, "in1"),
    ("ONE_HOT", [i32(0, 1), i32(-3), f32(), f32()], {"axis": -1}, "out0"),
    ("RANGE", [i32(0), i32(5), i32(0)], None, "delta 0"),
    ("RANGE", [i32(0), i32(5), i32(-1)], None, "delta -1"),
    ("RANGE", [i64(-(2**63)), i64(2**63 - 1), i64(1)], None, "limit"),
    ("TOPK_V2", [X, i32(4)], None, "in1"),
    ("MEAN", [X, i32(2)], {}, "axis is 2"),
    ("REDUCE_MAX", [X, i32(-3)], {}, "axis is -3"),
    ("ARG_MAX", [X, i32(2)], {}, "axis is 2"),
    ("RESIZE_BILINEAR", [IMAGE, i32(0, 4)], {}, "in1"),
    ("RESIZE_NEAREST_NEIGHBOR", [IMAGE, i32(4, -2)], {}, "in1"),
    ("RFFT2D", [IMAGE, i32(3, 4)], None, "in1"),
]

TYPES = {"TOPK_V2": [f32(), ([], "INT32")], "ARG_MAX": [([], "INT32")], "RFFT2D": [([], "COMPLEX64")]}

WHOLE_STEPS = {"stride_w": 1, "stride_h": 1}

# What options alone get wrong.
OPTIONS = [
    ("SQUEEZE", [X], {"squeeze_dims": [0]}, "in0"),
    ("SQUEEZE", [X], {"squeeze_dims": [7]}, "squeeze_dims is 7"),
    ("CONCATENATION", [X, f32(3, 2)], {"axis": 1}, "in1"),
    ("CONCATENATION", [X, X], {"axis": 2}, "axis is 2"),
    ("PACK", [X, X], {"values_count": 2, "axis": 3}, "axis is 3"),
    ("PACK", [X, X], {"values_count": 3}, "values_count 3"),
    ("UNPACK", [X], {"num": 1, "axis": 0}, "in0"),
    ("SPACE_TO_DEPTH", [IMAGE], {"block_size": 0}, "block_size"),
    ("SPACE_TO_DEPTH", [IMAGE], {"block_size": 3}, "in0"),
    ("DEPTH_TO_SPACE", [IMAGE], {"block_size": HUGE}, "in0"),
    ("GATHER", [X, ([2], "INT32")], {"axis": 0, "batch_dims": 1}, "batch_dims"),
    ("REVERSE_SEQUENCE", [X, ([2], "INT32")], {"seq_dim": 2}, "seq_dim 2"),
    ("MAX_POOL_2D", [IMAGE], {"stride_w": 0, "stride_h": 1, "filter_width": 2, "filter_height": 2}, "stride 0"),
    ("AVERAGE_POOL_2D", [IMAGE], {**WHOLE_STEPS, "filter_width": 0, "filter_height": 1}, "filter 0"),
    (
        "MAX_POOL_2D",
        [IMAGE],
        {"padding": 1, "stride_w": 1, "stride_h": 1, "filter_width": 9, "filter_height": 1},
        "out0",
    ),
    ("STABLEHLO_PAD", [X, f32()], {"edge_padding_low": [0]}, "paddings"),
    (
        "STABLEHLO_PAD",
        [X, f32()],
        {"edge_padding_low": [-9, 0], "edge_padding_high": [0, 0], "interior_padding": [0, 0]},
        "out0",
    ),
]


def outputs_of(name, inputs):
    if name == "RANGE":
        return [([], inputs[0].dtype.name.upper())]
    return TYPES.get(name, [f32()])


def refused(name, text, run):
    with pytest.raises(tq.Error) as caught:
        run()
    assert f"({name})" in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize(("name", "inputs", "given", "text"), VALUES + OPTIONS)
def test_constants_that_do_not_fit(name, inputs, given, text):
    interpreter = tq.Interpreter(model_content=model(name, inputs, outputs_of(name, inputs), given))

    def run():
        interpreter.allocate_tensors()
        interpreter.invoke()

    refused(name, text, run)


@pytest.mark.parametrize(("name", "inputs", "given", "text"), VALUES)
def test_data_that_do_not_fit(name, inputs, given, text):
    interpreter = tq.Interpreter(model_content=model(name, inputs, outputs_of(name, inputs), given, constants=False))
    interpreter.allocate_tensors()
    for k, values in enumerate(inputs):
        if not isinstance(values, tuple):
            interpreter.set_tensor(k, values)
    for _ in range(2):  # an error leaves the interpreter as it was
        refused(name, text, interpreter.invoke)


def test_right_data_after_wrong_data():
    interpreter = tq.Interpreter(model_content=model("GATHER", [X, i32(0, 2)], [f32()], {}, constants=False))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(6, dtype=np.float32).reshape(2, 3))
    interpreter.set_tensor(1, i32(0, 2))
    refused("GATHER", "has index 2 at 1; it needs 0 to 1", interpreter.invoke)
    interpreter.set_tensor(1, i32(1, 0))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [[3, 4, 5], [0, 1, 2]]


def test_a_shape_that_follows_from_data_changes_with_it():
    interpreter = tq.Interpreter(model_content=model("TILE", [X, i32(1, 1)], [f32()], None, constants=False))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    for times in ([1, 2], [3, 0], [2, 5], [1, 1]):
        interpreter.set_tensor(1, i32(*times))
        interpreter.invoke()
        assert interpreter.get_tensor(2).shape == (2 * times[0], 3 * times[1])


@pytest.mark.parametrize("constants", (True, False))
def test_no_strings_do_not_become_more_than_can_be_counted(constants):
    """2^93 elements, whose product wrapped around and passed for none."""
    made = model("RESHAPE", [([0, 2], "STRING"), i32(HUGE, HUGE, HUGE)], [([], "STRING")], constants=constants)
    interpreter = tq.Interpreter(model_content=made)
    with pytest.raises(tq.Error, match="in0"):
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.empty((0, 2), object))
        if not constants:
            interpreter.set_tensor(1, i32(HUGE, HUGE, HUGE))
        interpreter.invoke()


def test_strings_are_not_split():
    """One output took them: a single string, whatever the shape, and none of no strings."""
    made = model("UNPACK", [([1, 3], "STRING")], [([3], "STRING")], {"num": 1, "axis": 0})
    with pytest.raises(tq.Error, match=r"in0.*STRING, which is not split"):
        tq.Interpreter(model_content=made).allocate_tensors()
