# SPDX-License-Identifier: Apache-2.0
"""Problems of the file: its tables, texts and buffers, metadata and signatures."""

import struct

import pytest
from models import build_model, make_model, operator, pack, signature, tensor
from problem_cases import case, cases, coded, codes, relu, signed, y

import tq

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
