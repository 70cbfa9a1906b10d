# SPDX-License-Identifier: Apache-2.0
"""Problems of operators: their tensors, options and constants."""

import pytest
from models import pack, tensor
from problem_cases import case, cases, codes, conv, ints, one, one_model, relu, with_byte, x, y

import tq


@case("opcode-index")
def opcode_index_out_of_range():
    model = relu()
    model.operators[0].store("opcode_index", 9)
    return pack(model)


@pytest.mark.parametrize("index", [2, -2, 2**31 - 1, -(2**31)])
def test_tensor_indices(index):
    model = relu()
    model.operators[0].store("inputs", [index])
    assert codes(pack(model)) == {"tensor-index"}
    model = relu()
    model.operators[0].store("intermediates", [index])
    assert codes(pack(model)) == {"tensor-index"}


@case("tensor-index")
def output_index_out_of_range():
    model = relu()
    model.operators[0].store("outputs", [9])
    model.outputs = [0]
    return pack(model)


cases(
    ("optional-input", "input left out", one("ADD", [x(4), None], [y(4)])),
    ("optional-output", "output left out", one("RELU", [x(4)], [None])),
    ("input-count", "of a custom operator that tq knows", one("Mfcc", [x(4)], [y(4)])),
    ("optional-input", "of a custom operator that tq knows", one("MaxUnpooling2D", [x(4), None], [y(4)])),
    ("input-count", "one input for add", one("ADD", [x(4)], [y(4)])),
    ("input-count", "no inputs", one("RELU", [], [y(4)])),
    ("output-count", "two outputs for relu", one("RELU", [x(4)], [y(4), tensor("z", [4])])),
)


def svdf(is_variable=True, data=None, rank=1):
    state = tensor("state", [1, 4], data=data, is_variable=is_variable)
    features = tensor("features", [2, 3], data=bytes(24))
    times = tensor("times", [2, 2], data=bytes(16))
    return one("SVDF", [x(1, 3), features, times, None, state], [y(1, 2)], rank=rank)


cases(
    ("not-variable", "state is not variable", svdf(is_variable=False)),
    ("variable-data", "state has data", svdf(data=bytes(16))),
)


def test_a_variable_state_is_no_problem():
    assert codes(svdf()) == set()


@case("mutating-count")
def too_many_mutating_flags():
    model = one_model("RELU", [x(4)], [y(4)])
    model.operators[0].store("mutating_variable_inputs", [False, True])
    return pack(model)


def with_options_of_another():
    model = one_model("RELU", [x(4)], [y(4)])
    model.operators[0].store("builtin_options", {"type": "AddOptions"})
    return pack(model)


cases(
    ("options-type", "options of another", with_options_of_another()),
    ("options-missing", "add without options", one("ADD", [x(4), tensor("z", [4])], [y(4)], options=None)),
    (
        "union-unknown",
        "options of the future",
        with_byte(with_options_of_another(), lambda graph: graph.Operators(0), 3, 250),
    ),
)


@case("union-unknown")
def details_of_the_future():
    data = pack(relu(x(1, 4, details={"type": "CustomQuantization"})))
    return with_byte(data, lambda graph: graph.Tensors(0).Quantization(), 4, 99)


cases(
    ("enum-unknown", "unknown padding", conv(padding=9)),
    ("option-not-finite", "beta is nan", one("SOFTMAX", [x(4)], [y(4)], beta=float("nan"))),
)


@pytest.mark.parametrize("value", [0, -1, -(2**31)])
@pytest.mark.parametrize("field", ["stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"])
def test_divisors_of_convolution(field, value):
    assert codes(conv(**{field: value})) == {"option-range"}


cases(
    ("option-range", "stride 0", conv(stride_w=0)),
    (
        "option-range",
        "two ellipses",
        one("STRIDED_SLICE", [x(4, 4), ints([0, 0]), ints([1, 1]), ints([1, 1])], [y(1, 1)], ellipsis_mask=3),
    ),
)


@case("option-range")
def detections_below_zero():
    from flatbuffers import flexbuffers

    content = flexbuffers.Dumps({"max_detections": -1, "num_classes": 2})
    boxes = [tensor(name, [1, 4, 4]) for name in "abc"]
    return one("TFLite_Detection_PostProcess", boxes, [tensor(name, [1, 4]) for name in "klmn"], custom_options=content)


@case("output-size")
def detections_that_overflow():
    from flatbuffers import flexbuffers

    content = flexbuffers.Dumps({"max_detections": 1 << 20, "max_classes_per_detection": 1 << 20})
    boxes = [tensor(name, [1, 4, 4]) for name in "abc"]
    return one("TFLite_Detection_PostProcess", boxes, [tensor(name, [1, 4]) for name in "klmn"], custom_options=content)


@case("custom-options-range")
def large_custom_options_past_the_end():
    model = one_model("Mine", [x(4)], [y(4)])
    model.operators[0].store("large_custom_options_offset", 1 << 40)
    model.operators[0].store("large_custom_options_size", 4)
    return pack(model)


@pytest.mark.parametrize(
    ("name", "options", "low", "high"),
    [("CONCATENATION", {}, -2, 1), ("GATHER", {}, -2, 1), ("PACK", {"values_count": 1}, -3, 2)],
)
def test_axes_of_options(name, options, low, high):
    inputs = [x(2, 2), ints([0, 1])] if name == "GATHER" else [x(2, 2)]
    for axis in range(low - 2, high + 3):
        expected = set() if low <= axis <= high else {"axis-range"}
        assert codes(one(name, inputs, [y(2, 2)], axis=axis, **options)) == expected, axis


cases(
    ("axis-range", "mean along a third axis", one("MEAN", [x(2, 3), ints([1, 2])], [y(2)])),
    ("axis-range", "mean along axis minus three", one("MEAN", [x(2, 3), ints([-3])], [y(3)])),
    (
        "axis-range",
        "arg max past the rank",
        one("ARG_MAX", [x(2, 3), ints(2, "INT64")], [y(2, type="INT64")], output_type=4),
    ),
    ("axis-range", "transpose past the rank", one("TRANSPOSE", [x(2, 3), ints([0, 2])], [y(2, 3)])),
    ("axis-duplicate", "transpose names one twice", one("TRANSPOSE", [x(2, 3), ints([1, -1])], [y(3, 2)])),
    ("constant-value", "pad below zero", one("PAD", [x(2, 3), ints([[0, -1], [0, 0]])], [y(2, 3)])),
    ("constant-value", "strided slice by zero", one("STRIDED_SLICE", [x(4), ints([0]), ints([1]), ints([0])], [y(1)])),
    (
        "constant-value",
        "block shape zero",
        one("SPACE_TO_BATCH_ND", [x(1, 4, 4, 1), ints([0, 2]), ints([[0, 0], [0, 0]])], [y(4, 2, 2, 1)]),
    ),
    ("constant-value", "tile below zero", one("TILE", [x(2), ints([-1])], [y(2)])),
    ("constant-value", "resize to nothing", one("RESIZE_BILINEAR", [x(1, 2, 2, 1), ints([0, 4])], [y(1, 1, 4, 1)])),
    ("constant-value", "reshape to minus two", one("RESHAPE", [x(4), ints([-2, 2])], [y(2, 2)])),
    ("constant-value", "reshape with two open", one("RESHAPE", [x(4), ints([-1, -1])], [y(2, 2)])),
    ("constant-value", "mirror more than there is", one("MIRROR_PAD", [x(3), ints([[0, 3]])], [y(6)])),
    (
        "constant-value",
        "split sizes below zero",
        one("SPLIT_V", [x(4), ints([5, -2]), ints(0)], [y(5), tensor("z", [1])], num_splits=2),
    ),
    ("constant-count", "perm too short", one("TRANSPOSE", [x(2, 3), ints([0])], [y(2, 3)])),
    (
        "constant-count",
        "begin and end differ",
        one("STRIDED_SLICE", [x(4, 4), ints([0, 0]), ints([1]), ints([1, 1])], [y(1, 4)]),
    ),
    (
        "constant-count",
        "slices of more than there is",
        one("STRIDED_SLICE", [x(4), ints([0, 0]), ints([1, 1]), ints([1, 1])], [y(1, 1)]),
    ),
)


def test_slices_with_new_axes_are_no_problem():
    inputs = [x(4), ints([0, 0, 0]), ints([1, 1, 1]), ints([1, 1, 1])]
    assert codes(one("STRIDED_SLICE", inputs, [y(1, 1)], new_axis_mask=1, ellipsis_mask=2)) == set()


@case("constant-count")
def segment_ids_too_few():
    return one("SEGMENT_SUM", [x(3, 2), ints([0, 1])], [y(2, 2)])


@pytest.mark.parametrize("index", [-1, 3, 100000, -(2**31)])
def test_gather_indices(index):
    data = one("GATHER", [x(3), ints([0, 2, index])], [y(3)])
    (problem,) = tq.Model(data).problems
    assert problem.code == "index-range" and problem.place == "subgraph 0, operator 0 GATHER, input 1"
    assert f"value 2 is {index}; it needs to be from 0 to 2" in problem.text


cases(
    ("index-range", "gather past the end", one("GATHER", [x(2, 3), ints([0, 3])], [y(2, 2)], axis=1)),
    ("index-range", "gather nd past the end", one("GATHER_ND", [x(2, 3), ints([[1, 2], [0, 3]])], [y(2)])),
    ("index-range", "scatter nd past the end", one("SCATTER_ND", [ints([[0], [4]]), x(2), ints([4])], [y(4)])),
    ("index-range", "embedding past the end", one("EMBEDDING_LOOKUP", [ints([0, 5]), x(5, 2)], [y(2, 2)])),
    ("index-range", "segment ids fall", one("SEGMENT_SUM", [x(3, 2), ints([0, 1, 0])], [y(2, 2)])),
    ("index-range", "segment ids jump", one("SEGMENT_SUM", [x(2, 2), ints([0, 2**30])], [y(2, 2)])),
    (
        "index-range",
        "unsorted segment past the end",
        one("UNSORTED_SEGMENT_SUM", [x(2, 2), ints([0, 2]), ints(2)], [y(2, 2)]),
    ),
    ("index-range", "slice past the end", one("SLICE", [x(4), ints([3]), ints([2])], [y(2)])),
    (
        "index-range",
        "sequence too long",
        one("REVERSE_SEQUENCE", [x(2, 3), ints([3, 4])], [y(2, 3)], seq_dim=1, batch_dim=0),
    ),
    ("divisor-zero", "division by zero", one("FLOOR_DIV", [x(2, type="INT32"), ints([1, 0])], [y(2, type="INT32")])),
)


@case("groups")
def channels_that_no_group_fits():
    weights = tensor("w", [2, 1, 1, 2], data=bytes(16))
    return one("CONV_2D", [x(1, 4, 4, 3), weights], [y(1, 4, 4, 2)], stride_w=1, stride_h=1)


@case("groups")
def filter_without_channels():
    weights = tensor("w", [2, 1, 1, 0], data=b"")
    return one("CONV_2D", [x(1, 4, 4, 3), weights], [y(1, 4, 4, 2)], stride_w=1, stride_h=1)


@case("groups")
def depthwise_without_channels():
    weights = tensor("w", [1, 1, 1, 2], data=bytes(8))
    return one(
        "DEPTHWISE_CONV_2D", [x(1, 4, 4, 0), weights], [y(1, 4, 4, 2)], stride_w=1, stride_h=1, depth_multiplier=1
    )


@case("groups")
def weights_without_columns():
    """CVE-2021-37680: the batch is the input's size over the weights' columns."""
    weights = tensor("w", [2, 0], data=b"")
    return one("FULLY_CONNECTED", [x(4), weights], [y(2)])


cases(
    ("groups", "rank that does not divide", svdf(rank=3)),
    (
        "shape-mismatch",
        "biases for other filters",
        one("FULLY_CONNECTED", [x(4), tensor("w", [2, 4], data=bytes(32)), tensor("b", [0], data=b"")], [y(2)]),
    ),
    ("shape-mismatch", "reshape by option to other count", one("RESHAPE", [x(2, 3)], [y(5)], new_shape=[5])),
    (
        "shape-mismatch",
        "blocks that do not divide",
        one("SPACE_TO_BATCH_ND", [x(1, 4, 5, 1), ints([2, 2]), ints([[0, 0], [0, 0]])], [y(4, 2, 2, 1)]),
    ),
    (
        "shape-mismatch",
        "batch that blocks do not divide",
        one("BATCH_TO_SPACE_ND", [x(6, 2, 2, 1), ints([2, 2]), ints([[0, 0], [0, 0]])], [y(1, 4, 4, 1)]),
    ),
    (
        "constant-count",
        "paddings for other blocks",
        one("SPACE_TO_BATCH_ND", [x(1, 4, 4, 1), ints([2, 2]), ints([[0, 0]])], [y(4, 2, 2, 1)]),
    ),
    ("constant-value", "more than all", one("TOPK_V2", [x(3), ints(4)], [y(4), tensor("i", [4], "INT32")])),
    ("output-size", "pad that overflows", one("PAD", [x(4), ints([[2**30, 2**30]])], [y(4)])),
    (
        "output-size",
        "range that overflows",
        one("RANGE", [ints(-(2**31)), ints(2**31 - 1), ints(1)], [y(1, type="INT32")]),
    ),
    ("output-size", "resize that overflows", one("RESIZE_BILINEAR", [x(2, 2, 2, 2), ints([2**15, 2**15])], [y(1)])),
    (
        "shape-mismatch",
        "split into unequal parts",
        one("SPLIT", [ints(0), x(5)], [y(2), tensor("z", [2])], num_splits=2),
    ),
    (
        "shape-mismatch",
        "split v sums to less",
        one("SPLIT_V", [x(4), ints([2, 1]), ints(0)], [y(2), tensor("z", [1])], num_splits=2),
    ),
    ("shape-mismatch", "reshape to other count", one("RESHAPE", [x(2, 3), ints([7])], [y(7)])),
    ("shape-mismatch", "unpack other number", one("UNPACK", [x(3, 2)], [y(2), tensor("z", [2])], num=2)),
    ("shape-mismatch", "squeeze of two", one("SQUEEZE", [x(1, 2)], [y(2)], squeeze_dims=[1])),
    ("shape-mismatch", "blocks that do not fit", one("SPACE_TO_DEPTH", [x(1, 5, 4, 1)], [y(1, 2, 2, 4)], block_size=2)),
    ("shape-mismatch", "index with too many parts", one("GATHER_ND", [x(2), ints([[0, 0]])], [y(1)])),
    (
        "output-size",
        "fill that overflows",
        one("FILL", [ints([1 << 20, 1 << 20]), tensor("v", [], data=bytes(4))], [y(1)]),
    ),
    ("output-size", "tile that overflows", one("TILE", [x(4), ints([1 << 30])], [y(4)])),
    ("output-size", "concatenation that overflows", one("CONCATENATION", [x(1 << 30), tensor("z", [1 << 30])], [y(4)])),
    (
        "output-size",
        "embedding that overflows",
        one("EMBEDDING_LOOKUP", [tensor("ids", [1 << 20], "INT32"), x(2, 1 << 20)], [y(4)]),
    ),
)


def test_what_the_file_leaves_open_is_no_problem():
    open_shape = x(1, 3, shape_signature=[-1, 3])
    assert codes(one("RESHAPE", [open_shape, ints([4, 3])], [y(4, 3)])) == set()
    assert codes(one("SPLIT", [ints(0), x(1, shape_signature=[-1])], [y(1), tensor("z", [1])], num_splits=2)) == set()
    assert codes(one("RESHAPE", [x(1), ints([0])], [y()])) == set()  # a scalar, as old converters wrote it


cases(
    (
        "index-range",
        "sparse to dense past the end",
        one("SPARSE_TO_DENSE", [ints([1, 4]), ints([4]), x(2), tensor("default", [], data=bytes(4))], [y(4)]),
    ),
    ("shape-mismatch", "pack of another number", one("PACK", [x(2)], [y(2, 2)], values_count=2)),
    (
        "shape-mismatch",
        "depth that blocks do not divide",
        one("DEPTH_TO_SPACE", [x(1, 2, 2, 6)], [y(1, 4, 4, 1)], block_size=2),
    ),
    (
        "constant-count",
        "split into other sizes",
        one("SPLIT_V", [x(4), ints([2, 1, 1]), ints(0)], [y(2), tensor("z", [2])], num_splits=2),
    ),
)
