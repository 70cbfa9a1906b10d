# SPDX-License-Identifier: Apache-2.0
"""model.problems: for each row of src/model/problems.def a made model that has this problem and no other."""

import json
import os
import struct
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest
from models import build_model, make_model, operator, pack, signature, subgraph, tensor

import tq

KINDS = {code: (severity, text) for code, severity, text in tq._core.problem_kinds()}
CASES = []  # (code, name, function that returns a file's bytes)


def case(code):
    """Registers a function whose model has exactly the problem `code`."""

    def register(function):
        CASES.append((code, function.__name__.replace("_", " "), function))
        return function

    return register


def cases(*rows):
    """Registers models as (code, name, bytes)."""
    CASES.extend((code, name, lambda data=data: data) for code, name, data in rows)


def codes(data):
    return {problem.code for problem in tq.Model(data).problems}


# ---- models to break ----


def relu(first=None, **changes):
    """x -> RELU -> y, as a ModelBuilder; `first` in the place of x."""
    return make_model([first or x(1, 4), y(1, 4)], [operator("RELU", [0], [1])], [0], [1], **changes)


def one(*arguments, **fields):
    """The bytes of one_model's."""
    return pack(one_model(*arguments, **fields))


def one_model(name, inputs, outputs, **fields):
    """A model of one operator; tensors of `inputs` without data are the graph's inputs.  fields: as of `operator`."""
    tensors = [t for t in [*inputs, *outputs] if t is not None]
    places = {id(t): i for i, t in enumerate(tensors)}
    given = [t for t in inputs if t is not None and t.data is None and not t.fields.get("is_variable")]
    made = [t for t in outputs if t is not None]
    item = operator(name, *([places.get(id(t), -1) for t in side] for side in (inputs, outputs)), **fields)
    return make_model(tensors, [item], *([places[id(t)] for t in side] for side in (given, made)))


def x(*shape, **kwargs):
    return tensor("x", list(shape), **kwargs)


def y(*shape, **kwargs):
    return tensor("y", list(shape), **kwargs)


def ints(values, type="INT32"):
    array = np.array(values, {"INT32": np.int32, "INT64": np.int64}[type])
    return tensor("constant", list(array.shape), type, array)


def quantized(shape=(4, 8), type="INT8", **parameters):
    """A graph input with these quantization parameters."""
    return pack(relu(tensor("x", list(shape), type, **parameters)))


def conv(**options):
    weights = tensor("w", [2, 1, 1, 3], data=np.zeros((2, 1, 1, 3), np.float32))
    return one("CONV_2D", [x(1, 4, 4, 3), weights], [y(1, 4, 4, 2)], **{"stride_w": 1, "stride_h": 1, **options})


def coded(**code):
    """The operator code has these fields."""
    model = relu()
    model.store("operator_codes", [code])
    return pack(model)


def with_byte(data, table, slot, value):
    """A file in which a field of one byte holds what no schema knows.  table: a function of the schema's SubGraph."""
    data = bytearray(data)
    found = table(schema.Model.GetRootAs(data).Subgraphs(0))._tab
    data[found.Pos + found.Offset(4 + 2 * slot)] = value
    return bytes(data)


# ---- the file ----


@case("identifier")
def no_identifier():
    return pack(relu(), identifier=b"TFL9")


@case("version")
def version_2():
    model = relu()
    model.version = 2
    return pack(model)


@case("no-subgraphs")
def no_subgraphs():
    return build_model(subgraphs=[])


@case("buffer-zero")
def buffer_zero_has_data():
    model = relu()
    model.buffers[0].store("data", b"\1\2")
    return pack(model)


@case("buffer-range")
def buffer_past_the_end():
    model = relu()
    model.add_buffer(offset=1 << 40, size=16)
    return pack(model)


@case("buffer-range")
def buffer_that_wraps():
    model = relu()
    model.tensors[0].buffer = model.add_buffer(offset=1 << 63, size=(1 << 63) + 16)
    return pack(model)


@case("buffer-index")
def tensor_buffer_out_of_range():
    model = relu()
    model.tensors[0].buffer = 7
    return pack(model)


@case("buffer-index")
def metadata_buffer_out_of_range():
    model = relu()
    model.store("metadata", [{"name": "a", "buffer": 0xFFFFFFFF}])
    return pack(model)


@case("buffer-index")
def old_metadata_buffer_out_of_range():
    model = relu()
    model.store("metadata_buffer", [0, -1])
    return pack(model)


cases(
    ("opcode-unknown", "code of the future", coded(builtin_code=5000, deprecated_builtin_code=127)),
    ("opcode-unknown", "code below zero", coded(builtin_code=-3, deprecated_builtin_code=-3)),
    ("opcode-unknown", "code that only marks greater ones", coded(builtin_code=127, deprecated_builtin_code=127)),
    (
        "opcode-name",
        "custom without name",
        coded(builtin_code="CUSTOM", deprecated_builtin_code=tq.BuiltinOperator.CUSTOM),
    ),
    ("opcode-conflict", "two codes", coded(builtin_code="RELU", deprecated_builtin_code=tq.BuiltinOperator.LOGISTIC)),
    (
        "opcode-version",
        "opcode version 0",
        coded(builtin_code="RELU", deprecated_builtin_code=tq.BuiltinOperator.RELU, version=0),
    ),
)


def shifted(data, by):
    """The file with everything behind its header moved up by so many bytes; offsets are relative."""
    return struct.pack("<I", struct.unpack_from("<I", data)[0] + by) + data[4:8] + bytes(by) + data[8:]


@case("misaligned")
def all_tables_two_bytes_late():
    return shifted(pack(relu()), 2)


@pytest.mark.parametrize("by", [1, 2, 3])
def test_each_misaligned_thing_is_named(by):
    texts = [p.text for p in tq.Model(shifted(pack(relu()), by)).problems]
    assert any("a Model table at byte" in text for text in texts)
    assert any("Tensor.shape: elements at byte" in text for text in texts)
    assert codes(shifted(pack(relu()), 16)) == set()


@case("field-outside")
def table_smaller_than_its_fields():
    data = bytearray(pack(relu()))
    root = struct.unpack_from("<I", data)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    struct.pack_into("<H", data, vtable + 2, 4)
    return bytes(data)


@case("no-buffers")
def no_buffers():
    model = make_model()
    model.store("buffers", None)
    return pack(model)


@case("string-end")
def description_without_nul():
    data = pack(relu())
    return data.replace(b"made for a test\0", b"made for a test!")


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4", b"\x80", b"\xf0\x80\x80\x80"]
)
def test_text_that_is_not_utf8(text):
    assert codes(pack(relu(description=text))) == {"string-encoding"}


@pytest.mark.parametrize("text", ["", "a\0b", "\u00e4\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"])
def test_text_that_is_utf8(text):
    assert codes(pack(relu(description=text))) == set()


@case("string-encoding")
def name_in_latin_1():
    return pack(relu(tensor("\u00e4".encode("latin-1"), [1, 4])))


@case("subgraph-parts")
def subgraph_without_operators():
    model = relu()
    model.main.store("operators", None)
    model.outputs = [0]
    return pack(model)


@case("subgraph-parts")
def subgraph_without_tensors():
    model = make_model()
    model.main.store("tensors", None)
    return pack(model)


def late_constant(by, type="FLOAT32"):
    """A constant behind the flatbuffer, `by` bytes past a multiple of 16."""
    model = make_model([tensor("w", [2], type, buffer=1)], [], [], [0])
    size = 16 if type == "INT64" else 8
    model.add_buffer(offset=1 << 20, size=size)
    start = -(-len(pack(model)) // 16) * 16 + by
    model.buffers[1].store("offset", start)
    return pack(model).ljust(start, b"\0") + bytes(size)


@case("data-misaligned")
def constant_two_bytes_late():
    return late_constant(2)


def test_constants_at_multiples_of_four_are_no_problem():
    assert codes(late_constant(4)) == codes(late_constant(4, "INT64")) == set()
    assert codes(late_constant(2, "INT64")) == {"data-misaligned"}


# ---- external buffers ----


def external(length=64, group=0, name="weights.bin", offset=0, ids=(7,), use=7, packing=None):
    weights = tensor("w", [4, 4], external_buffer=use)
    model = make_model([weights, y(4, 4)], [operator("RELU", [0], [1])], [], [1])
    model.store("external_buffer_groups", [{"name": name}])
    rest = {"group": group, "offset": offset, "length": length, "packing": packing}
    model.store("external_buffers", [{"id": id, **rest} for id in ids])
    return model


cases(
    ("external-id", "external id unknown", pack(external(use=8))),
    ("external-duplicate", "external ids repeat", pack(external(ids=(7, 3, 7)))),
    ("external-group", "external group out of range", pack(external(group=1))),
)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../w", "a/../../w", "..", "a\\..\\w", "C:\\w", "\\\\host\\w", "a\0b", "", None]
)
def test_external_names_that_lead_away(name):
    assert codes(pack(external(name=name))) == {"external-name"}


@pytest.mark.parametrize("name", ["w", "a/w.bin", "..w", "w..", "a/..b/c", "...", "."])
def test_external_names_that_stay(name):
    assert codes(pack(external(name=name))) == set()


cases(
    ("external-name", "external name leads away", pack(external(name="../secret"))),
    ("external-range", "external range wraps", pack(external(offset=(1 << 64) - 32))),
    ("external-length", "external too short", pack(external(length=63))),
)


@case("external-twice")
def external_and_internal():
    model = external()
    model.tensors[0].buffer = model.add_buffer(bytes(64))
    return pack(model)


def test_a_sound_external_buffer_is_no_problem():
    assert codes(pack(external())) == set()
    assert codes(pack(external(length=5, packing="zip"))) == set()


# ---- metadata and signatures ----


@case("metadata-name")
def metadata_without_name():
    model = relu()
    model.store("metadata", [{"buffer": model.add_buffer(b"1")}])
    return pack(model)


@case("metadata-duplicate")
def metadata_repeats():
    model = relu()
    model.store("metadata", [{"name": name, "buffer": model.add_buffer(b"1")} for name in "aba"])
    return pack(model)


def signed(*signatures):
    return relu(signatures=list(signatures) or [signature("f", {"x": 0}, {"y": 1})])


cases(
    (
        "signature-subgraph",
        "signature of no subgraph",
        pack(signed(signature("f", {"x": 0}, {"y": 1}, subgraph_index=1))),
    ),
    ("signature-key", "signature without key", pack(signed(signature(None, {"x": 0}, {"y": 1})))),
    (
        "signature-duplicate",
        "signature keys repeat",
        pack(signed(*[signature(key, {"x": 0}, {"y": 1}) for key in "fgf"])),
    ),
    ("signature-name", "signature input without name", pack(signed(signature("f", {"": 0}, {"y": 1})))),
)


@case("signature-name-duplicate")
def signature_names_repeat():
    twice = signature("f", {"x": 0}, {"y": 1})
    twice["inputs"] *= 2
    return pack(signed(twice))


cases(
    ("signature-tensor", "signature tensor out of range", pack(signed(signature("f", {"x": 0}, {"y": 2})))),
    ("signature-foreign", "signature gives an input", pack(signed(signature("f", {"x": 0}, {"y": 0})))),
)


# ---- the graph ----


@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("field", ["inputs", "outputs"])
def test_graph_indices(field, index):
    model = relu()
    model.main.store(field, [*model.main.stored(field), index])
    assert codes(pack(model)) == {"graph-index"}


@case("graph-index")
def graph_output_left_out():
    model = relu()
    model.outputs = [1, None]
    return pack(model)


@case("graph-duplicate")
def graph_input_twice():
    model = relu()
    model.inputs = [0, 0]
    return pack(model)


@case("input-constant")
def graph_input_is_constant():
    model = make_model([tensor("w", [1], data=np.zeros(1, np.float32)), y(1)], [operator("RELU", [0], [1])], [0], [1])
    return pack(model)


cases(
    ("never-written", "nothing writes it", build_model([x(4), y(4)], [operator("RELU", [0], [1])], [], [1])),
    (
        "never-written",
        "nothing writes what is given back",
        build_model([x(4), y(4), tensor("z", [4])], [operator("RELU", [0], [1])], [0], [1, 2]),
    ),
    (
        "written-later",
        "read before it is written",
        build_model([x(4), y(4), tensor("z", [4])], [operator("RELU", [1], [2]), operator("RELU", [0], [1])], [0], [2]),
    ),
    (
        "written-twice",
        "two writers",
        build_model([x(4), y(4)], [operator("RELU", [0], [1]), operator("TANH", [0], [1])], [0], [1]),
    ),
    (
        "written-twice",
        "two outputs of one",
        build_model([x(2), tensor("y", [])], [operator("UNPACK", [0], [1, 1], num=2)], [0], [1]),
    ),
    (
        "constant-written",
        "constant as output",
        build_model([x(1), tensor("w", [1], data=bytes(4))], [operator("RELU", [0], [1])], [0], [1]),
    ),
    ("input-written", "input as output", build_model([x(4), y(4)], [operator("RELU", [0], [1])], [0, 1], [1])),
    ("in-and-out", "same tensor in and out", build_model([x(4), y(4)], [operator("ADD", [0, 1], [1])], [0], [1])),
)


# ---- operators ----


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
    return one("TFLite_Detection_PostProcess", boxes, [y(1, 4)], custom_options=content)


@case("output-size")
def detections_that_overflow():
    from flatbuffers import flexbuffers

    content = flexbuffers.Dumps({"max_detections": 1 << 20, "max_classes_per_detection": 1 << 20})
    boxes = [tensor(name, [1, 4, 4]) for name in "abc"]
    return one("TFLite_Detection_PostProcess", boxes, [y(1, 4)], custom_options=content)


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


# ---- calls ----


def loop(condition=1, body=2, cond_outputs=1, constant=None):
    """WHILE over one tensor: subgraph 1 is its condition, 2 its body."""
    main = subgraph(
        [x(1), y(1)], [operator("WHILE", [0], [1], cond_subgraph_index=condition, body_subgraph_index=body)], [0], [1]
    )
    less = operator("LESS", [0, 0], [1])
    flag = tensor("flag", [1], "BOOL", constant)
    cond = subgraph([x(1), flag], [less] if constant is None else [], [0], [1] * cond_outputs, name="cond")
    step = subgraph([x(1), y(1)], [operator("RELU", [0], [1])], [0], [1], name="body")
    return build_model(subgraphs=[main, cond, step])


def test_a_sound_loop_is_no_problem():
    assert codes(loop()) == set()
    assert codes(loop(constant=b"\0")) == set()


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1])
def test_calls_of_no_subgraph(index):
    assert codes(loop(body=index)) == {"call-index"}


cases(
    ("call-index", "condition is no subgraph", loop(condition=3)),
    ("call-cycle", "body is the caller", loop(body=0)),
)


@case("call-cycle")
def two_that_call_each_other():
    def call(index):
        return subgraph([x(1), y(1)], [operator("CALL", [0], [1], subgraph=index)], [0], [1])

    return build_model(subgraphs=[call(1), call(2), call(1)])


cases(
    (
        "call-cycle",
        "call once of itself",
        build_model(subgraphs=[subgraph([], [operator("CALL_ONCE", [], [], init_subgraph_index=0)])]),
    ),
    ("call-arity", "condition gives nothing", loop(cond_outputs=0)),
)


@case("call-arity")
def branch_takes_too_much():
    options = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    branch = subgraph([x(1), y(1)], [operator("RELU", [0], [1])], [0], [1])
    main = subgraph([tensor("c", [], "BOOL"), y(1)], [operator("IF", [0], [1], **options)], [0], [1])
    return build_model(subgraphs=[main, branch])


@case("endless-loop")
def condition_is_true():
    return loop(constant=b"\1")


def test_a_deep_chain_of_calls():
    """No recursion in C: each of 20,000 subgraphs runs the next."""
    count = 20000

    def call(index):
        return subgraph([], [operator("CALL", [], [], subgraph=index)])

    graphs = [call(i + 1) for i in range(count)]
    assert codes(build_model(subgraphs=[*graphs, subgraph()])) == set()
    assert codes(build_model(subgraphs=[*graphs, call(0)])) == {"call-cycle"}


# ---- tensors ----


cases(
    ("type-unknown", "type of the future", build_model([x(4, type=99)], [], [0], [0])),
    ("dimension-negative", "dimension below zero", build_model([x(4, -1)], [], [0], [0])),
    ("shape-overflow", "shape that wraps", build_model([x(*[2**31 - 1] * 3)], [], [0], [0])),
    ("signature-rank", "signature of another rank", build_model([x(1, 4, shape_signature=[-1])], [], [0], [0])),
    ("signature-shape", "signature of another shape", build_model([x(1, 4, shape_signature=[-1, 5])], [], [0], [0])),
)


def constant(shape, type, data):
    return build_model([tensor("w", shape, type, data)], [], [], [0])


cases(
    ("data-short", "constant too short", constant([4], "FLOAT32", bytes(15))),
    ("data-long", "constant too long", constant([4], "FLOAT32", bytes(17))),
)


@pytest.mark.parametrize(
    ("type", "count", "size"),
    [("INT4", 5, 3), ("INT2", 5, 2), ("BOOL", 3, 3), ("FLOAT16", 3, 6), ("COMPLEX128", 2, 32)],
)
def test_sizes_of_constants(type, count, size):
    assert codes(constant([count], type, bytes(size - 1))) == {"data-short"}
    assert codes(constant([count], type, bytes(size))) == set()
    assert codes(constant([count], type, bytes(size + 1))) == {"data-long"}


@case("strings")
def strings_past_the_end():
    return constant([1], "STRING", struct.pack("<3i", 1, 12, 99) + b"abc")


@pytest.mark.parametrize(
    "content", [b"", b"\1", struct.pack("<i", -1), struct.pack("<i", 2**31 - 1), struct.pack("<3i", 1, 20, 4)]
)
def test_malformed_strings(content):
    assert codes(constant([1], "STRING", content)) == {"strings"}


@case("string-count")
def strings_of_another_shape():
    return constant([2], "STRING", struct.pack("<3i", 1, 12, 15) + b"abc")


def sparse(segments, stored=2):
    segments, indices = ({"type": "Int32Vector", "values": values} for values in (segments, [0, 1]))
    compressed = {"format": "SPARSE_CSR", "array_segments": segments, "array_indices": indices}
    sparsity = {"traversal_order": [0, 1], "dim_metadata": [{"format": "DENSE", "dense_size": 2}, compressed]}
    return build_model([tensor("w", [2, 2], data=bytes(4 * stored), sparsity=sparsity)], [], [], [0])


cases(
    ("sparsity", "segments that fall", sparse([0, 2, 1])),
    ("sparsity", "segments past the indices", sparse([0, 1, 9])),
)


def test_a_sound_sparse_tensor_is_no_problem():
    assert codes(sparse([0, 1, 2])) == set()


cases(
    (
        "type-unknown",
        "variant of the future",
        build_model([x(4, type="VARIANT", variant_tensors=[{"shape": [1], "type": 77}])], [], [0], [0]),
    ),
    ("sparsity", "fewer values than described", sparse([0, 1, 2], stored=1)),
)


# ---- quantization ----


cases(
    ("scale-missing", "zero point alone", quantized(zero_point=[3])),
    ("zero-point-count", "scale without zero point", quantized(scale=[0.5], zero_point=[])),
    ("zero-point-count", "two zero points", quantized(scale=[0.5], zero_point=[0, 0])),
    ("scale-count", "three scales for four channels", quantized(scale=[1, 2, 3], zero_point=[0, 0, 0])),
    ("quantized-dimension", "axis past the rank", quantized(scale=[1] * 4, zero_point=[0] * 4, quantized_dimension=2)),
    ("quantized-dimension", "axis past the rank per tensor", quantized(scale=0.5, quantized_dimension=-1)),
    ("scale-value", "scale below zero", quantized(scale=-0.5)),
)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), float("-inf"), -1e-40])
def test_scales_that_are_no_scales(scale):
    assert codes(quantized(scale=scale)) == {"scale-value"}


cases(
    ("scale-zero", "scale is zero", quantized(scale=[1, 0, 1, 1], zero_point=[0] * 4)),
    ("scale-absurd", "scale is huge", quantized(scale=1e36)),
    ("scale-absurd", "scale is subnormal", quantized(scale=1e-40)),
    ("zero-point-range", "zero point of uint8", quantized(scale=0.5, zero_point=128)),
    ("zero-point-wide", "zero point of 64 bits", quantized(scale=0.5, zero_point=2**33 + 5)),
    ("quantization-type", "quantized bool", quantized(type="BOOL", scale=0.5)),
    ("range-count", "two minima", quantized(scale=0.5, min=[0, 0], max=[1])),
    ("range-count", "three ranges", quantized(scale=0.5, min=[0, 0, 0], max=[1, 1, 1])),
    ("range-order", "range upside down", quantized(scale=0.5, min=[1], max=[0])),
    ("range-not-finite", "range without end", quantized(scale=0.5, min=[0], max=[float("inf")])),
)


def test_quantization_that_is_sound():
    assert (
        codes(quantized(scale=[1] * 8, zero_point=[-128, 127] * 4, quantized_dimension=1, min=[0] * 8, max=[1] * 8))
        == set()
    )
    assert codes(quantized(type="FLOAT32", scale=0.5, zero_point=3000, min=[0], max=[1])) == set()  # trained for int8
    assert codes(quantized(min=[-1], max=[1])) == set()
    assert codes(quantized(type="UINT8", scale=0.5, zero_point=255)) == set()
    assert codes(quantized(type="INT16", scale=1e-30)) == set()


@case("scale-count")
def two_scales_for_a_scalar():
    return quantized(shape=(), scale=[1, 1], zero_point=[0, 0])


def blockwise(block_size=4, scales=1, zero_points=-1, scale_type="FLOAT16", scale_shape=(2, 2), shape=(2, 8)):
    details = {"type": "BlockwiseQuantization", "scales": scales, "zero_points": zero_points, "block_size": block_size}
    size = int(np.prod(scale_shape)) * (4 if scale_type == "FLOAT32" else 1 if scale_type == "INT8" else 2)
    weights = tensor("w", list(shape), "INT8", bytes(int(np.prod(shape))), details=details)
    return build_model([weights, tensor("s", list(scale_shape), scale_type, bytes(size))], [], [], [0])


@case("block-size")
def block_size_0():
    return blockwise(block_size=0)


@pytest.mark.parametrize("size", [-1, 3, 16, -(2**31)])
def test_block_sizes(size):
    assert codes(blockwise(block_size=size)) == {"block-size"}


cases(
    ("block-tensor", "scales in no tensor", blockwise(scales=2)),
    ("block-tensor", "zero points in no tensor", blockwise(zero_points=-7)),
    ("block-tensor", "scales are integers", blockwise(scale_type="INT8")),
    ("block-tensor", "too few scales", blockwise(scale_shape=(3,))),
    ("block-dimensions", "blocks of a scalar", blockwise(shape=())),
)


def multi_axis(axes, block_size=0, scales=4):
    details = {"type": "MultiAxisQuantization", "scales": 1, "zero_points": -1, "block_size": block_size}
    details["quantized_dimensions"] = axes
    weights = tensor("w", [2, 2, 4], "INT8", bytes(16), details=details)
    return build_model([weights, tensor("s", [scales], "FLOAT32", bytes(4 * scales))], [], [], [0])


@case("block-dimensions")
def axis_named_twice():
    return multi_axis([0, 0])


@pytest.mark.parametrize("axes", [[], [0, 3], [-1], [0, 1, 2, 0]])
def test_multi_axis_dimensions(axes):
    assert codes(multi_axis(axes)) == {"block-dimensions"}


def test_blocks_that_are_sound():
    assert codes(blockwise()) == set()
    assert codes(blockwise(scale_type="FLOAT32")) == set()
    assert codes(multi_axis([0, 1])) == set()
    assert codes(multi_axis([0, 2], block_size=2)) == set()
    assert codes(multi_axis([0, 2], block_size=2, scales=5)) == {"block-tensor"}


# ---- limits ----


@case("unchecked")
def shared_too_often():
    """25 operators read one constant of 1 MB: more than 4 times the file and 16 MiB."""
    indices = tensor("indices", [1 << 18], "INT32", bytes(1 << 20))
    tensors = [x(4), indices] + [tensor(f"y{i}", [1 << 18]) for i in range(25)]
    operators = [operator("GATHER", [0, 1], [2 + i]) for i in range(25)]
    return build_model(tensors, operators, [0], [2])


def test_a_thousand_of_a_kind_and_then_a_number():
    tensors = [tensor(f"t{i}", [1], "INT8", scale=0.0) for i in range(1234)]
    problems = tq.Model(build_model(tensors, [], [0], [0])).problems
    assert len(problems) == 1001 and {p.code for p in problems} == {"scale-zero"}
    assert problems[-1].place == "model" and problems[-1].text.startswith("and 234 more: ")


def test_names_are_printable_and_cut():
    (problem,) = tq.Model(pack(relu(tensor("a\n\x1b[2J" + "\u00e4" * 100, [-1])))).problems
    assert problem.place.startswith("subgraph 0, tensor 0 'a??[2J\u00e4") and problem.place.endswith("\u00e4...'")
    assert problem.place.isprintable()


# ---- all of them ----


def test_a_clean_model_has_no_problem():
    assert tq.Model(pack(relu())).problems == []
    assert tq.Model(conv()).problems == []
    assert tq.Model(pack(signed())).problems == []


@pytest.mark.parametrize(
    ("code", "make"), [(code, make) for code, name, make in CASES], ids=[f"{c}-{n}" for c, n, _ in CASES]
)
def test_case(code, make):
    problems = tq.Model(make()).problems
    assert {problem.code for problem in problems} == {code}
    for problem in problems:
        assert isinstance(problem, tq.Problem)
        assert problem.severity == KINDS[code][0]
        assert problem.place and problem.text and problem.place.isprintable() and problem.text.isprintable()


def test_every_kind_has_a_case():
    assert {code for code, _, _ in CASES} == set(KINDS)


def test_kinds_are_distinct_words():
    assert len(KINDS) == len(tq._core.problem_kinds())
    for code, (severity, text) in KINDS.items():
        assert code.replace("-", "").isalpha() and code == code.lower()
        assert severity in ("error", "warning") and text


def test_counts_are_told_in_words():
    def text(*parts):
        return next(p.text for p in tq.Model(one(*parts)).problems if p.code.endswith("-count"))

    assert text("CONV_2D", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 2 to 3"
    assert text("ADD_N", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 2 or more"
    assert text("LSTM", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 5 or 20 or 24"
    assert text("LSTM", [x(1) for _ in range(5)], [y(1)]) == "the operator has 1 outputs; with its 5 inputs it gives 4"


def test_a_long_name_is_cut_between_characters():
    for start in ("", "a"):
        (problem,) = tq.Model(pack(relu(tensor(start + "\u00e4" * 100, [-1])))).problems
        assert problem.place.endswith("\u00e4...'") and "\\x" not in problem.place


# ---- real models ----

CORPUS = Path(os.environ.get("TQ_MODELS") or Path(__file__).parents[2] / "shared" / "models")


@pytest.mark.corpus
def test_models_that_run_have_no_error():
    """What LiteRT loads, allocates and invokes has nothing that TFLite refuses.

    Allocating alone proves less: LiteRT looks at constant indices and at missing inputs only as it invokes.
    """
    if not (CORPUS / "MANIFEST.json").exists():
        pytest.skip(f"no models in {CORPUS}; TQ_MODELS names another folder")
    wrong, seen = [], 0
    for row in json.loads((CORPUS / "MANIFEST.json").read_text()):
        problems = tq.Model(CORPUS / row["file"]).problems
        runs = row["litert"]["allocate_ok"] and not (row["litert"]["invoke"] or "").startswith("error")
        seen += runs
        if runs:
            wrong += [(row["file"], p) for p in problems if p.severity == "error"]
    assert seen and not wrong


@pytest.mark.corpus
def test_person_detect_says_why_litert_refuses_it():
    path = CORPUS / "tensorflow+tflite-micro" / "tensorflow__lite__micro__models__person_detect.tflite"
    if not path.exists():
        pytest.skip(f"no {path.name} in {CORPUS}")
    problems = tq.Model(path).problems
    assert {p.code for p in problems} == {"quantized-dimension"}
    assert "quantized_dimension is 3; it needs to be from 0 to 0" in problems[0].text
