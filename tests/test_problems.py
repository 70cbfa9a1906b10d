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
        CASES.append((code, function.__name__, function))
        return function

    return register


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


@case("opcode-unknown")
def code_of_the_future():
    return coded(builtin_code=5000, deprecated_builtin_code=127)


@case("opcode-unknown")
def code_below_zero():
    return coded(builtin_code=-3, deprecated_builtin_code=-3)


@case("opcode-unknown")
def code_that_only_marks_greater_ones():
    return coded(builtin_code=127, deprecated_builtin_code=127)


@case("opcode-name")
def custom_without_name():
    return coded(builtin_code="CUSTOM", deprecated_builtin_code=tq.BuiltinOperator.CUSTOM)


@case("opcode-conflict")
def two_codes():
    return coded(builtin_code="RELU", deprecated_builtin_code=tq.BuiltinOperator.LOGISTIC)


@case("opcode-version")
def opcode_version_0():
    return coded(builtin_code="RELU", deprecated_builtin_code=tq.BuiltinOperator.RELU, version=0)


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


@case("external-id")
def external_id_unknown():
    return pack(external(use=8))


@case("external-duplicate")
def external_ids_repeat():
    return pack(external(ids=(7, 3, 7)))


@case("external-group")
def external_group_out_of_range():
    return pack(external(group=1))


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../w", "a/../../w", "..", "a\\..\\w", "C:\\w", "\\\\host\\w", "a\0b", "", None]
)
def test_external_names_that_lead_away(name):
    assert codes(pack(external(name=name))) == {"external-name"}


@pytest.mark.parametrize("name", ["w", "a/w.bin", "..w", "w..", "a/..b/c", "...", "."])
def test_external_names_that_stay(name):
    assert codes(pack(external(name=name))) == set()


@case("external-name")
def external_name_leads_away():
    return pack(external(name="../secret"))


@case("external-range")
def external_range_wraps():
    return pack(external(offset=(1 << 64) - 32))


@case("external-length")
def external_too_short():
    return pack(external(length=63))


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


@case("signature-subgraph")
def signature_of_no_subgraph():
    return pack(signed(signature("f", {"x": 0}, {"y": 1}, subgraph_index=1)))


@case("signature-key")
def signature_without_key():
    return pack(signed(signature(None, {"x": 0}, {"y": 1})))


@case("signature-duplicate")
def signature_keys_repeat():
    return pack(signed(*[signature(key, {"x": 0}, {"y": 1}) for key in "fgf"]))


@case("signature-name")
def signature_input_without_name():
    return pack(signed(signature("f", {"": 0}, {"y": 1})))


@case("signature-name-duplicate")
def signature_names_repeat():
    twice = signature("f", {"x": 0}, {"y": 1})
    twice["inputs"] *= 2
    return pack(signed(twice))


@case("signature-tensor")
def signature_tensor_out_of_range():
    return pack(signed(signature("f", {"x": 0}, {"y": 2})))


@case("signature-foreign")
def signature_gives_an_input():
    return pack(signed(signature("f", {"x": 0}, {"y": 0})))


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


@case("never-written")
def nothing_writes_it():
    return build_model([x(4), y(4)], [operator("RELU", [0], [1])], [], [1])


@case("never-written")
def nothing_writes_what_is_given_back():
    return build_model([x(4), y(4), tensor("z", [4])], [operator("RELU", [0], [1])], [0], [1, 2])


@case("written-later")
def read_before_it_is_written():
    return build_model(
        [x(4), y(4), tensor("z", [4])], [operator("RELU", [1], [2]), operator("RELU", [0], [1])], [0], [2]
    )


@case("written-twice")
def two_writers():
    return build_model([x(4), y(4)], [operator("RELU", [0], [1]), operator("TANH", [0], [1])], [0], [1])


@case("written-twice")
def two_outputs_of_one():
    return build_model([x(2), tensor("y", [])], [operator("UNPACK", [0], [1, 1], num=2)], [0], [1])


@case("constant-written")
def constant_as_output():
    return build_model([x(1), tensor("w", [1], data=bytes(4))], [operator("RELU", [0], [1])], [0], [1])


@case("input-written")
def input_as_output():
    return build_model([x(4), y(4)], [operator("RELU", [0], [1])], [0, 1], [1])


@case("in-and-out")
def same_tensor_in_and_out():
    return build_model([x(4), y(4)], [operator("ADD", [0, 1], [1])], [0], [1])


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


@case("optional-input")
def input_left_out():
    return one("ADD", [x(4), None], [y(4)])


@case("optional-output")
def output_left_out():
    return one("RELU", [x(4)], [None])


@case("input-count")
def one_input_for_add():
    return one("ADD", [x(4)], [y(4)])


@case("input-count")
def no_inputs():
    return one("RELU", [], [y(4)])


@case("output-count")
def two_outputs_for_relu():
    return one("RELU", [x(4)], [y(4), tensor("z", [4])])


def svdf(is_variable=True, data=None, rank=1):
    state = tensor("state", [1, 4], data=data, is_variable=is_variable)
    features = tensor("features", [2, 3], data=bytes(24))
    times = tensor("times", [2, 2], data=bytes(16))
    return one("SVDF", [x(1, 3), features, times, None, state], [y(1, 2)], rank=rank)


@case("not-variable")
def state_is_not_variable():
    return svdf(is_variable=False)


@case("variable-data")
def state_has_data():
    return svdf(data=bytes(16))


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


@case("options-type")
def options_of_another():
    return with_options_of_another()


@case("options-missing")
def add_without_options():
    return one("ADD", [x(4), tensor("z", [4])], [y(4)], options=None)


@case("union-unknown")
def options_of_the_future():
    return with_byte(with_options_of_another(), lambda graph: graph.Operators(0), 3, 250)


@case("union-unknown")
def details_of_the_future():
    data = pack(relu(x(1, 4, details={"type": "CustomQuantization"})))
    return with_byte(data, lambda graph: graph.Tensors(0).Quantization(), 4, 99)


@case("enum-unknown")
def unknown_padding():
    return conv(padding=9)


@case("option-not-finite")
def beta_is_nan():
    return one("SOFTMAX", [x(4)], [y(4)], beta=float("nan"))


@pytest.mark.parametrize("value", [0, -1, -(2**31)])
@pytest.mark.parametrize("field", ["stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"])
def test_divisors_of_convolution(field, value):
    assert codes(conv(**{field: value})) == {"option-range"}


@case("option-range")
def stride_0():
    return conv(stride_w=0)


@case("option-range")
def two_ellipses():
    return one("STRIDED_SLICE", [x(4, 4), ints([0, 0]), ints([1, 1]), ints([1, 1])], [y(1, 1)], ellipsis_mask=3)


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


@case("axis-range")
def mean_along_a_third_axis():
    return one("MEAN", [x(2, 3), ints([1, 2])], [y(2)])


@case("axis-range")
def mean_along_axis_minus_three():
    return one("MEAN", [x(2, 3), ints([-3])], [y(3)])


@case("axis-range")
def arg_max_past_the_rank():
    return one("ARG_MAX", [x(2, 3), ints(2, "INT64")], [y(2, type="INT64")], output_type=4)


@case("axis-range")
def transpose_past_the_rank():
    return one("TRANSPOSE", [x(2, 3), ints([0, 2])], [y(2, 3)])


@case("axis-duplicate")
def transpose_names_one_twice():
    return one("TRANSPOSE", [x(2, 3), ints([1, -1])], [y(3, 2)])


@case("constant-value")
def pad_below_zero():
    return one("PAD", [x(2, 3), ints([[0, -1], [0, 0]])], [y(2, 3)])


@case("constant-value")
def strided_slice_by_zero():
    inputs = [x(4), ints([0]), ints([1]), ints([0])]
    return one("STRIDED_SLICE", inputs, [y(1)])


@case("constant-value")
def block_shape_zero():
    inputs = [x(1, 4, 4, 1), ints([0, 2]), ints([[0, 0], [0, 0]])]
    return one("SPACE_TO_BATCH_ND", inputs, [y(4, 2, 2, 1)])


@case("constant-value")
def tile_below_zero():
    return one("TILE", [x(2), ints([-1])], [y(2)])


@case("constant-value")
def resize_to_nothing():
    return one("RESIZE_BILINEAR", [x(1, 2, 2, 1), ints([0, 4])], [y(1, 1, 4, 1)])


@case("constant-value")
def reshape_to_minus_two():
    return one("RESHAPE", [x(4), ints([-2, 2])], [y(2, 2)])


@case("constant-value")
def reshape_with_two_open():
    return one("RESHAPE", [x(4), ints([-1, -1])], [y(2, 2)])


@case("constant-value")
def mirror_more_than_there_is():
    return one("MIRROR_PAD", [x(3), ints([[0, 3]])], [y(6)])


@case("constant-value")
def split_sizes_below_zero():
    inputs = [x(4), ints([5, -2]), ints(0)]
    return one("SPLIT_V", inputs, [y(5), tensor("z", [1])], num_splits=2)


@case("constant-count")
def perm_too_short():
    return one("TRANSPOSE", [x(2, 3), ints([0])], [y(2, 3)])


@case("constant-count")
def begin_and_end_differ():
    inputs = [x(4, 4), ints([0, 0]), ints([1]), ints([1, 1])]
    return one("STRIDED_SLICE", inputs, [y(1, 4)])


@case("constant-count")
def slices_of_more_than_there_is():
    inputs = [x(4), ints([0, 0]), ints([1, 1]), ints([1, 1])]
    return one("STRIDED_SLICE", inputs, [y(1, 1)])


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


@case("index-range")
def gather_past_the_end():
    return one("GATHER", [x(2, 3), ints([0, 3])], [y(2, 2)], axis=1)


@case("index-range")
def gather_nd_past_the_end():
    return one("GATHER_ND", [x(2, 3), ints([[1, 2], [0, 3]])], [y(2)])


@case("index-range")
def scatter_nd_past_the_end():
    return one("SCATTER_ND", [ints([[0], [4]]), x(2), ints([4])], [y(4)])


@case("index-range")
def embedding_past_the_end():
    return one("EMBEDDING_LOOKUP", [ints([0, 5]), x(5, 2)], [y(2, 2)])


@case("index-range")
def segment_ids_fall():
    return one("SEGMENT_SUM", [x(3, 2), ints([0, 1, 0])], [y(2, 2)])


@case("index-range")
def segment_ids_jump():
    return one("SEGMENT_SUM", [x(2, 2), ints([0, 2**30])], [y(2, 2)])


@case("index-range")
def unsorted_segment_past_the_end():
    return one("UNSORTED_SEGMENT_SUM", [x(2, 2), ints([0, 2]), ints(2)], [y(2, 2)])


@case("index-range")
def slice_past_the_end():
    return one("SLICE", [x(4), ints([3]), ints([2])], [y(2)])


@case("index-range")
def sequence_too_long():
    return one("REVERSE_SEQUENCE", [x(2, 3), ints([3, 4])], [y(2, 3)], seq_dim=1, batch_dim=0)


@case("divisor-zero")
def division_by_zero():
    inputs = [x(2, type="INT32"), ints([1, 0])]
    return one("FLOOR_DIV", inputs, [y(2, type="INT32")])


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


@case("groups")
def rank_that_does_not_divide():
    return svdf(rank=3)


@case("shape-mismatch")
def biases_for_other_filters():
    inputs = [x(4), tensor("w", [2, 4], data=bytes(32)), tensor("b", [0], data=b"")]
    return one("FULLY_CONNECTED", inputs, [y(2)])


@case("shape-mismatch")
def reshape_by_option_to_other_count():
    return one("RESHAPE", [x(2, 3)], [y(5)], new_shape=[5])


@case("shape-mismatch")
def blocks_that_do_not_divide():
    inputs = [x(1, 4, 5, 1), ints([2, 2]), ints([[0, 0], [0, 0]])]
    return one("SPACE_TO_BATCH_ND", inputs, [y(4, 2, 2, 1)])


@case("shape-mismatch")
def batch_that_blocks_do_not_divide():
    inputs = [x(6, 2, 2, 1), ints([2, 2]), ints([[0, 0], [0, 0]])]
    return one("BATCH_TO_SPACE_ND", inputs, [y(1, 4, 4, 1)])


@case("constant-count")
def paddings_for_other_blocks():
    return one("SPACE_TO_BATCH_ND", [x(1, 4, 4, 1), ints([2, 2]), ints([[0, 0]])], [y(4, 2, 2, 1)])


@case("constant-value")
def more_than_all():
    return one("TOPK_V2", [x(3), ints(4)], [y(4), tensor("i", [4], "INT32")])


@case("output-size")
def pad_that_overflows():
    return one("PAD", [x(4), ints([[2**30, 2**30]])], [y(4)])


@case("output-size")
def range_that_overflows():
    return one("RANGE", [ints(-(2**31)), ints(2**31 - 1), ints(1)], [y(1, type="INT32")])


@case("output-size")
def resize_that_overflows():
    return one("RESIZE_BILINEAR", [x(2, 2, 2, 2), ints([2**15, 2**15])], [y(1)])


@case("shape-mismatch")
def split_into_unequal_parts():
    return one("SPLIT", [ints(0), x(5)], [y(2), tensor("z", [2])], num_splits=2)


@case("shape-mismatch")
def split_v_sums_to_less():
    return one("SPLIT_V", [x(4), ints([2, 1]), ints(0)], [y(2), tensor("z", [1])], num_splits=2)


@case("shape-mismatch")
def reshape_to_other_count():
    return one("RESHAPE", [x(2, 3), ints([7])], [y(7)])


@case("shape-mismatch")
def unpack_other_number():
    return one("UNPACK", [x(3, 2)], [y(2), tensor("z", [2])], num=2)


@case("shape-mismatch")
def squeeze_of_two():
    return one("SQUEEZE", [x(1, 2)], [y(2)], squeeze_dims=[1])


@case("shape-mismatch")
def blocks_that_do_not_fit():
    return one("SPACE_TO_DEPTH", [x(1, 5, 4, 1)], [y(1, 2, 2, 4)], block_size=2)


@case("shape-mismatch")
def index_with_too_many_parts():
    return one("GATHER_ND", [x(2), ints([[0, 0]])], [y(1)])


@case("output-size")
def fill_that_overflows():
    return one("FILL", [ints([1 << 20, 1 << 20]), tensor("v", [], data=bytes(4))], [y(1)])


@case("output-size")
def tile_that_overflows():
    return one("TILE", [x(4), ints([1 << 30])], [y(4)])


@case("output-size")
def concatenation_that_overflows():
    inputs = [x(1 << 30), tensor("z", [1 << 30])]
    return one("CONCATENATION", inputs, [y(4)])


@case("output-size")
def embedding_that_overflows():
    ids = tensor("ids", [1 << 20], "INT32")
    return one("EMBEDDING_LOOKUP", [ids, x(2, 1 << 20)], [y(4)])


def test_what_the_file_leaves_open_is_no_problem():
    open_shape = x(1, 3, shape_signature=[-1, 3])
    assert codes(one("RESHAPE", [open_shape, ints([4, 3])], [y(4, 3)])) == set()
    assert codes(one("SPLIT", [ints(0), x(1, shape_signature=[-1])], [y(1), tensor("z", [1])], num_splits=2)) == set()
    assert codes(one("RESHAPE", [x(1), ints([0])], [y()])) == set()  # a scalar, as old converters wrote it


@case("index-range")
def sparse_to_dense_past_the_end():
    inputs = [ints([1, 4]), ints([4]), x(2), tensor("default", [], data=bytes(4))]
    return one("SPARSE_TO_DENSE", inputs, [y(4)])


@case("shape-mismatch")
def pack_of_another_number():
    return one("PACK", [x(2)], [y(2, 2)], values_count=2)


@case("shape-mismatch")
def depth_that_blocks_do_not_divide():
    return one("DEPTH_TO_SPACE", [x(1, 2, 2, 6)], [y(1, 4, 4, 1)], block_size=2)


@case("constant-count")
def split_into_other_sizes():
    inputs = [x(4), ints([2, 1, 1]), ints(0)]
    return one("SPLIT_V", inputs, [y(2), tensor("z", [2])], num_splits=2)


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


@case("call-index")
def condition_is_no_subgraph():
    return loop(condition=3)


@case("call-cycle")
def body_is_the_caller():
    return loop(body=0)


@case("call-cycle")
def two_that_call_each_other():
    def call(index):
        return subgraph([x(1), y(1)], [operator("CALL", [0], [1], subgraph=index)], [0], [1])

    return build_model(subgraphs=[call(1), call(2), call(1)])


@case("call-cycle")
def call_once_of_itself():
    return build_model(subgraphs=[subgraph([], [operator("CALL_ONCE", [], [], init_subgraph_index=0)])])


@case("call-arity")
def condition_gives_nothing():
    return loop(cond_outputs=0)


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


@case("type-unknown")
def type_of_the_future():
    return build_model([x(4, type=99)], [], [0], [0])


@case("dimension-negative")
def dimension_below_zero():
    return build_model([x(4, -1)], [], [0], [0])


@case("shape-overflow")
def shape_that_wraps():
    return build_model([x(*[2**31 - 1] * 3)], [], [0], [0])


@case("signature-rank")
def signature_of_another_rank():
    return build_model([x(1, 4, shape_signature=[-1])], [], [0], [0])


@case("signature-shape")
def signature_of_another_shape():
    return build_model([x(1, 4, shape_signature=[-1, 5])], [], [0], [0])


def constant(shape, type, data):
    return build_model([tensor("w", shape, type, data)], [], [], [0])


@case("data-short")
def constant_too_short():
    return constant([4], "FLOAT32", bytes(15))


@case("data-long")
def constant_too_long():
    return constant([4], "FLOAT32", bytes(17))


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


@case("sparsity")
def segments_that_fall():
    return sparse([0, 2, 1])


@case("sparsity")
def segments_past_the_indices():
    return sparse([0, 1, 9])


def test_a_sound_sparse_tensor_is_no_problem():
    assert codes(sparse([0, 1, 2])) == set()


@case("type-unknown")
def variant_of_the_future():
    return build_model([x(4, type="VARIANT", variant_tensors=[{"shape": [1], "type": 77}])], [], [0], [0])


@case("sparsity")
def fewer_values_than_described():
    return sparse([0, 1, 2], stored=1)


# ---- quantization ----


@case("scale-missing")
def zero_point_alone():
    return quantized(zero_point=[3])


@case("zero-point-count")
def scale_without_zero_point():
    return quantized(scale=[0.5], zero_point=[])


@case("zero-point-count")
def two_zero_points():
    return quantized(scale=[0.5], zero_point=[0, 0])


@case("scale-count")
def three_scales_for_four_channels():
    return quantized(scale=[1, 2, 3], zero_point=[0, 0, 0])


@case("quantized-dimension")
def axis_past_the_rank():
    return quantized(scale=[1] * 4, zero_point=[0] * 4, quantized_dimension=2)


@case("quantized-dimension")
def axis_past_the_rank_per_tensor():
    return quantized(scale=0.5, quantized_dimension=-1)


@case("scale-value")
def scale_below_zero():
    return quantized(scale=-0.5)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), float("-inf"), -1e-40])
def test_scales_that_are_no_scales(scale):
    assert codes(quantized(scale=scale)) == {"scale-value"}


@case("scale-zero")
def scale_is_zero():
    return quantized(scale=[1, 0, 1, 1], zero_point=[0] * 4)


@case("scale-absurd")
def scale_is_huge():
    return quantized(scale=1e36)


@case("scale-absurd")
def scale_is_subnormal():
    return quantized(scale=1e-40)


@case("zero-point-range")
def zero_point_of_uint8():
    return quantized(scale=0.5, zero_point=128)


@case("zero-point-wide")
def zero_point_of_64_bits():
    return quantized(scale=0.5, zero_point=2**33 + 5)


@case("quantization-type")
def quantized_bool():
    return quantized(type="BOOL", scale=0.5)


@case("range-count")
def two_minima():
    return quantized(scale=0.5, min=[0, 0], max=[1])


@case("range-count")
def three_ranges():
    return quantized(scale=0.5, min=[0, 0, 0], max=[1, 1, 1])


@case("range-order")
def range_upside_down():
    return quantized(scale=0.5, min=[1], max=[0])


@case("range-not-finite")
def range_without_end():
    return quantized(scale=0.5, min=[0], max=[float("inf")])


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


@case("block-tensor")
def scales_in_no_tensor():
    return blockwise(scales=2)


@case("block-tensor")
def zero_points_in_no_tensor():
    return blockwise(zero_points=-7)


@case("block-tensor")
def scales_are_integers():
    return blockwise(scale_type="INT8")


@case("block-tensor")
def too_few_scales():
    return blockwise(scale_shape=(3,))


@case("block-dimensions")
def blocks_of_a_scalar():
    return blockwise(shape=())


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
