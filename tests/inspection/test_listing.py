# SPDX-License-Identifier: Apache-2.0
"""print(model): the lines of TFLite's Model Analyzer, and what tq adds to them."""

import re
import sys

import ml_dtypes
import numpy as np
import oracle
import pytest
from models import build_model, make_model, operator, pack, signature, subgraph, tensor

import tq
from tq.inspection.listing import listing, preview, printable

# ---- comparing with the analyzer ----


def analyzed(text):
    """The analyzer's lines from the first subgraph to the sizes.  Data that it prints as characters may hold newlines:
    what follows them is left out."""
    text = text[re.search(r"(?m)(^|(?<=Tensor numbers\. ))Subgraph#0", text).start() :]
    text = text[: text.index("\n* Buffers of TFLite model")]
    lines, unfinished = [], False
    for line in text.rstrip("\n").split("\n"):
        if not unfinished:
            lines.append(line)
        unfinished = (unfinished or (line.startswith("  T#") and ", data:[" in line)) and not line.endswith("]")
    return lines


def unlike(ours, theirs):
    """The first line of the analyzer's that tq's listing lacks, with tq's; None where it has them all, in order.

    Tensor lines must be equal up to their size in bytes, all others altogether.
    """
    lines = iter(ours.split("\n"))
    for line in lines:
        if line.startswith("Subgraph#0"):
            break
    for number, wanted in enumerate(analyzed(theirs)):
        if number:
            line = next(lines, "")
            while line.startswith("      ") and not re.match(r" +(- )?[(A-Z][A-Za-z#0-9 -]*\)? *: +\d+ bytes", line):
                line = next(lines, "")  # a quantization line
        is_tensor = wanted.startswith("  T#")
        start = re.sub(r"( RO \d+ bytes), buffer: .*", r"\1", wanted) if is_tensor else wanted
        if not (line.startswith(start) if is_tensor else line == start):
            return wanted, line
    return None


def check_alike(data):
    (theirs,) = oracle.ask("listing", [data])
    assert isinstance(theirs, str), theirs
    ours = str(tq.Model(data))
    assert unlike(ours, theirs) is None
    return ours


@pytest.mark.corpus
def test_the_lines_of_every_real_model_are_the_analyzers(corpus):
    wrong, answered = [], 0
    for path, theirs in zip(corpus, oracle.ask("listing", corpus), strict=True):
        ours = str(tq.Model(path))
        if isinstance(theirs, str):
            answered += 1
            found = unlike(ours, theirs)
            if found:
                wrong.append((path.name, *found))
    assert not wrong
    assert answered > 0.99 * len(corpus)


@pytest.mark.corpus
def test_parts_of_every_real_model_list(corpus):
    for path in corpus:
        model = tq.Model(path)
        whole = listing(model)
        operators, tensors = listing(model, tensors=False), listing(model, operators=False)
        assert whole.count("\n  Op#") == operators.count("\n  Op#")
        assert "\n  Op#" not in tensors
        assert "\nTensors of Subgraph#" not in operators


# ---- what the analyzer's own tests look for ----


def test_signatures():
    data = build_model(
        subgraphs=[
            subgraph([tensor("x", [1]), tensor("y", [1])], [operator("ADD", [0, 0], [1])], [0], [1]),
            subgraph([tensor("x", [1]), tensor("y", [1])], [operator("SUB", [0, 0], [1])], [0], [1], "sub"),
        ],
        signatures=[signature("add", {"a": 1}, {"out": 1}), signature("sub", {"a": 0}, {"out": 1}, subgraph_index=1)],
    )
    text = check_alike(data)
    assert "Your TFLite model has '2' signature_def(s).\n\nSignature#0 key: 'add'\n- Subgraph: Subgraph#0\n" in text
    assert "    'a' : T#1\n" in text
    assert "    'a' : T#1_0\n" in text
    assert "Subgraph#1 sub(T#1_0) -> [T#1_1]\n  Op#0 SUB(T#1_0, T#1_0) -> [T#1_1]\n" in text


def test_constants_of_operators_are_inlined():
    data = build_model(
        [
            tensor("t0", [4, 65536]),
            tensor("x", [4, 65536]),
            tensor("y", [512, 512]),
            tensor("t3", [1]),
            tensor("shape", [2], "INT32", np.array([512, 512], np.int32)),
        ],
        [operator("RESHAPE", [1, 4], [2])],
        [1],
        [2],
    )
    assert "  Op#0 RESHAPE(T#1, T#4[512, 512]) -> [T#2]\n" in check_alike(data)


def test_constants_show_their_values_or_the_first_five():
    shape = np.array([1, 100, 8, 64], np.int32)
    data = build_model(
        [
            tensor("x", [1]),
            tensor("shape", [4], "INT32", shape),
            tensor("long", [6], "INT32", np.arange(-3, 3).astype(np.int32)),
            tensor("f", [4], "FLOAT32", np.array([0.1, 1e-7, -1234567.0, np.inf], np.float32)),
        ],
        buffers=[b"", b""],
    )
    text = check_alike(data)
    assert "T#1(shape) shape:[4], type:INT32 RO 16 bytes, buffer: 3, data:[1, 100, 8, 64]\n" in text
    assert "T#2(long) shape:[6], type:INT32 RO 24 bytes, buffer: 4, data:[-3, -2, -1, 0, 1, ...]\n" in text
    assert "buffer: 5, data:[0.1, 1e-07, -1.23457e+06, inf]\n" in text


def test_an_unnamed_subgraph():
    data = build_model([tensor("a", [1]), tensor("x", [1]), tensor("y", [1])], [], [1], [2], name=None)
    assert "Subgraph#0(T#1) -> [T#2]\n" in check_alike(data)


# ---- names, shapes, types ----


def test_fields_left_out_and_empty_ones_differ_as_in_the_analyzer():
    data = build_model(
        [
            tensor(None, [2]),
            tensor("", [2]),
            tensor("n", None),
            tensor("n", []),
            tensor("n", [2], shape_signature=[]),
            tensor("n", [1, 2], shape_signature=[-1, 2]),
        ],
        name="",
    )
    text = check_alike(data)
    assert "  T#0shape:[2], type:FLOAT32\n  T#1() shape:[2]" in text
    assert "  T#2(n) shape:n/a, type:FLOAT32\n  T#3(n) shape:[], " in text
    assert "  T#4(n) shape_signature:[], " in text
    assert "Subgraph#0 () -> []\n" in text


def test_what_the_file_stores():
    model = tq.Model(build_model([tensor(None, [2]), tensor("", [2], shape_signature=[], data=np.ones(2, "<f4"))]))
    bare, full = model.tensors
    assert bare.stored("name") is None and full.stored("name") == ""
    assert bare.stored("shape_signature") is None and full.stored("shape_signature") == []
    assert full.shape_signature == (2,)
    assert full.stored("shape") == [2] and full.stored("buffer") == full.buffer
    assert full.stored("quantization") is None
    with pytest.raises(ValueError, match="Tensor has no field 'nmae'"):
        full.stored("nmae")
    with pytest.raises(TypeError, match="int"):
        full.stored(3)
    assert model.buffers[full.buffer].is_inline and not model.buffers[0].is_inline
    assert not tq.Model(offset_model()).buffers[1].is_inline


def test_bytes_that_are_not_printable_are_dots():
    name = "a\tb\x7fé≤\U0001f600\nend"
    data = build_model([tensor(name, [1])], [operator("Café", [0], [0])], name=name)
    text = check_alike(data)
    assert "T#0(a.b........." in text  # é is 2 bytes, ≤ 3, the face 4, and a newline stays one
    assert "\nend) shape:[1]" in text
    assert "Op#0 Caf..(T#0) -> [T#0]" in text


def test_bytes_that_are_no_utf8_are_dots():
    data = build_model([tensor("12345", [1])]).replace(b"12345", b"1\xff\xe93\x80")
    assert "T#0(1..3.) shape" in check_alike(data)
    assert printable("\\xff \\x1f \\x") == ". \\x1f \\x"


def test_control_flow_names_its_subgraphs():
    body = [tensor("c", [], "BOOL"), tensor("x", [1]), tensor("y", [1])]
    operators = [
        operator("CALL_ONCE", [], [], init_subgraph_index=2),
        operator("IF", [0, 1], [2], then_subgraph_index=1, else_subgraph_index=2),
        operator("WHILE", [0, 1], [0, 2], cond_subgraph_index=1, body_subgraph_index=2),
    ]
    text = check_alike(build_model(subgraphs=[subgraph(body, operators), subgraph(), subgraph()]))
    assert "Op#0 CALL_ONCE(Subgraph#2) -> []\n" in text
    assert "Op#1 IF(T#0, T#1, Then: Subgraph#1, Else: Subgraph#2) -> [T#2]\n" in text
    assert "Op#2 WHILE(T#0, T#1, Cond: Subgraph#1, Body: Subgraph#2) -> [T#0, T#2]\n" in text


def test_optional_inputs_left_out():
    graph = subgraph([tensor("x", [1]), tensor("y", [1])], [operator("FULLY_CONNECTED", [0, 0, -1], [1])])
    text = check_alike(build_model(subgraphs=[subgraph(), graph]))
    assert "FULLY_CONNECTED(T#1_0, T#1_0, T#-1) -> [T#1_1]" in text


def test_a_custom_operator_named_like_a_builtin_one_is_not_one():
    model = make_model([tensor("x", [1])], [operator("WHILE_", [0], [0], custom_options=b"")])
    (code,) = model.stored("operator_codes")
    model.store("operator_codes", [code | {"custom_code": "WHILE"}])
    assert "Op#0 WHILE(T#0) -> [T#0]" in check_alike(pack(model))


ZEROS = np.zeros(700, np.uint8)
SIZES = [
    [],
    [ZEROS],
    [np.arange(256, dtype=np.uint8)] * 3,
    [ZEROS, np.ones(3, np.uint8)],
    [np.r_[ZEROS, 1].astype(np.uint8), ZEROS[:1]],
    [np.zeros(200_000, np.uint8), np.r_[np.zeros(150_000), 1, np.zeros(9)].astype(np.uint8)],
]


@pytest.mark.parametrize("contents", SIZES)
def test_sizes(contents):
    tensors = [tensor(f"t{i}", [len(c)], "UINT8", c) for i, c in enumerate(contents)]
    check_alike(build_model(subgraphs=[subgraph(tensors), subgraph([tensor("again", [1], "UINT8", buffer=1)])]))
    check_alike(build_model(tensors))


# ---- what tq adds ----

DATA = [
    ("INT8", np.array([-128, -1, 0, 1, 127, 5], np.int8), "[-128, -1, 0, 1, 127, ...]"),
    ("UINT8", np.array([0, 10, 255], np.uint8), "[0, 10, 255]"),
    ("INT16", np.array([-32768, 7], np.int16), "[-32768, 7]"),
    ("UINT16", np.array([65535], np.uint16), "[65535]"),
    ("UINT32", np.array([4294967295], np.uint32), "[4294967295]"),
    ("INT64", np.array([-(2**63), 2**63 - 1], np.int64), "[-9223372036854775808, 9223372036854775807]"),
    ("UINT64", np.array([2**64 - 1], np.uint64), "[18446744073709551615]"),
    ("BOOL", np.array([True, False]), "[1, 0]"),
    ("FLOAT16", np.array([0.5, -65504], np.float16), "[0.5, -65504]"),
    ("FLOAT64", np.array([1 / 3, -0.0]), "[0.333333, -0]"),
    ("FLOAT32", np.array([np.nan, -np.inf], np.float32), "[nan, -inf]"),
    ("COMPLEX64", np.array([1 + 2j], np.complex64), "[(1,2)]"),
    ("BFLOAT16", np.array([1, -5], ml_dtypes.bfloat16), "[1, -5]"),
    ("FLOAT8_E4M3FN", np.array([0x38, 0x7E], np.uint8).tobytes(), "[1, 448]"),
    ("FLOAT8_E5M2", np.array([0x3C, 0xFC], np.uint8).tobytes(), "[1, -inf]"),
    ("INT4", bytes([0x87, 0x0F]), "[7, -8, -1, 0]"),
    ("UINT4", bytes([0x87, 0x0F, 0x21]), "[7, 8, 15, 0, 1, ...]"),
    ("INT2", bytes([0b11100100, 0b01]), "[0, 1, -2, -1, 1, ...]"),
    ("STRING", [b"ab", b"", b"\x00\xff"], r"['ab', '', '\x00\xff']"),
    ("STRING", [b"x"] * 6, "['x', 'x', 'x', 'x', 'x', ...]"),
    ("STRING", [b"y" * 40], "['" + "y" * 32 + "'...]"),
    ("STRING", b"\xff\xff\xff\x7f", "[??]"),
    ("STRING", b"\x01\0\0\0\x0c\0\0\0\xff\0\0\0", "[??]"),
    ("RESOURCE", b"\x01\x02", "[1, 2]"),
    (99, b"\x01\x02", "[1, 2]"),
]


@pytest.mark.parametrize(("kind", "data", "shown"), DATA)
def test_data_shows_as_numbers(kind, data, shown):
    shape = [1] if isinstance(data, bytes) else [len(data)]
    assert f", buffer: 1, data:{shown}\n" in str(tq.Model(build_model([tensor("t", shape, kind, data)])))


def test_a_preview_reads_only_the_first_elements():
    large = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (1 << 40,), (0,))  # one byte that looks like 2^40
    for kind, _, _ in DATA:
        assert preview(str(kind), large)


def test_quantization_lines_stand_below_the_tensor():
    many = np.linspace(1, 2, 11, dtype=np.float32)
    data = build_model(
        [
            tensor("a", [1], "INT8", scale=0.012566017, zero_point=3, min=-1.6488091, max=1.5555250644683838),
            tensor("b", [2], "INT8", scale=[0.5, 0.25]),
            tensor("c", [11], "INT8", scale=many),
            tensor("d", [1]),
            tensor("e", [9], "INT8", scale=many[:9]),
            tensor("f", [1], "INT8", scale=1.0, zero_point=0),
        ]
    )
    lines = check_alike(data).split("\n")
    at = lines.index("  T#0(a) shape:[1], type:INT8")
    assert lines[at + 1] == "      -1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838"
    assert lines[at + 2 : at + 5] == ["  T#1(b) shape:[2], type:INT8", "      0: 0.5 * q", "      1: 0.25 * q"]
    at = lines.index("  T#2(c) shape:[11], type:INT8")
    assert lines[at + 1].strip() == "0: q"
    assert lines[at + 9 : at + 11] == ["      ... 3 more channels", "  T#3(d) shape:[1], type:FLOAT32"]
    at = lines.index("  T#4(e) shape:[9], type:INT8")
    assert lines[at + 9 : at + 11] == ["      ... 1 more channel", "  T#5(f) shape:[1], type:INT8"]
    assert lines[at + 11] == ""  # scale 1, zero point 0: "q" says nothing


def offset_model():
    """A constant behind the flatbuffer, found by offset, as in files over 2 GB."""
    model = make_model([tensor("x", [2], "INT32", np.array([1, 2], np.int32))], [operator("ABS", [0], [0])])
    model.tensors[0].data = None
    model.buffers[1].store("size", 8)
    model.buffers[1].store("offset", 1 << 40)  # stands for the offset until it is known
    model.buffers[1].store("offset", len(pack(model)))
    return pack(model) + np.array([7, 9], "<i4").tobytes()


def test_data_behind_the_flatbuffer_is_shown():
    text = check_alike(offset_model())
    assert "Op#0 ABS(T#0) -> [T#0]" in text  # the analyzer inlines only what is in the flatbuffer
    assert "T#0(x) shape:[2], type:INT32 RO 8 bytes, buffer: 1, data:[7, 9]\n" in text
    assert re.search(r"\(Data by offset\): +8 bytes", text)


def test_external_buffers_are_named():
    model = make_model([tensor("x", [4], "INT8", external_buffer=5)])
    model.store("external_buffer_groups", [{"name": "weights.bin"}])
    model.store("external_buffers", [{"id": 5, "group": 0, "offset": 64, "length": 4}])
    text = check_alike(pack(model))
    assert "type:INT8 RO 4 bytes, external buffer: 5 in 'weights.bin' at 64\n" in text
    assert re.search(r"\(In external buffers\): +4 bytes", text)


def test_the_header_says_what_the_file_says_of_itself():
    data = build_model(metadata={"min_runtime_version": b"1.5.0\0\0"}, description="a\x07b")
    assert str(tq.Model(data)).startswith(
        "TensorFlow Lite model: schema version 3, description 'a.b', needs runtime 1.5.0.\n"
    )


# ---- what the analyzer refuses, or dies of ----


def hostile_models():
    yield "no subgraphs", make_model(subgraphs=[])
    model = make_model()
    model.store("subgraphs", None)
    yield "subgraphs left out", model
    model = make_model()
    model.store("buffers", None)
    model.store("operator_codes", None)
    yield "no buffers, no operator codes", model
    yield (
        "indices out of range",
        make_model([tensor("x", [1], buffer=77)], [operator("ADD", [0, 5, -2], [2**31 - 1, -(2**31)])], [9], [-7]),
    )
    for name in ("IF", "WHILE", "CALL_ONCE"):
        yield f"{name} without options", make_model([tensor("x", [1])], [operator(name, [0], [0], options=None)])
        model = make_model([tensor("x", [1])], [operator(name, [0], [0])])
        model.operators[0].store("builtin_options", {"type": "Conv2DOptions"})
        yield f"{name} with other options", model
    model = make_model([tensor("x", [1])], [operator("ADD", [0], [0])])
    model.operators[0].store("opcode_index", 3)
    yield "operator code out of range", model
    model = make_model([tensor("x", [1])], [operator("ADD", [0], [0])])
    model.store("operator_codes", [{"builtin_code": 9999}])
    yield "unknown operator", model
    model = make_model([tensor("x", [1])], [operator("custom", [0], [0])])
    model.store("operator_codes", [{"builtin_code": "CUSTOM"}])
    yield "custom operator without a name", model
    model = make_model([tensor("x", [1])], signatures=[{"inputs": [{"tensor_index": 5}], "subgraph_index": 8}])
    yield "signature without key, name and outputs, of no subgraph", model
    model = make_model([tensor("x", [1])])
    for field in ("tensors", "operators", "inputs", "outputs"):
        model.main.store(field, None)
    yield "a subgraph of nothing", model
    model = make_model([tensor("x", [4], "INT32", b"\x01\x02\x03\x04\x05"), tensor("y", [4], "INT32", b"\1\2")])
    yield "constants of odd lengths", model
    model = make_model([tensor("x", [4], "INT8", b"1234")])
    model.tensors[0].data = None
    model.buffers[1].store("offset", 1 << 50)
    model.buffers[1].store("size", 1 << 20)
    yield "data outside the file", model
    model = make_model(
        [tensor("x", [-1, 2**31 - 1] * 20, "INT8", b"1234", scale=[], zero_point=[1, 2], quantized_dimension=-3)]
    )
    yield "shapes and parameters that do not fit", model
    yield "an external buffer that does not exist", make_model([tensor("x", [1], external_buffer=6)])
    model = make_model([tensor("x", [2], "INT8", b"12", scale=[float("nan"), -0.0], zero_point=[2**63 - 1, 0])])
    yield "odd numbers", model
    details = {"type": "BlockwiseQuantization", "scales": 99, "zero_points": -5, "block_size": -1}
    yield "blockwise scales that do not exist", make_model([tensor("x", [2], "INT4", b"1", details=details)])


@pytest.mark.parametrize(("what", "model"), [pytest.param(w, m, id=w) for w, m in hostile_models()])
def test_anything_that_opens_lists(what, model):
    model = tq.Model(pack(model))
    text = str(model)
    assert text.isprintable() or "\n" in text
    assert f"{model.nbytes} bytes" in text
    assert str(model.summary()) and model.summary().to_dict()


def test_missing_options_show_a_question_mark():
    text = str(tq.Model(build_model([tensor("c", [])], [operator("IF", [0], [], options=None)])))
    assert "IF(T#0, Then: Subgraph#?, Else: Subgraph#?) -> []" in text


def test_a_listing_that_would_grow_too_long_ends_with_a_note(monkeypatch):
    model = chain(100)
    whole = str(model)
    for limit in (0, 50, 1000, len(whole) - 1):
        monkeypatch.setattr("tq.inspection.listing.LIMIT_SLACK", limit)
        monkeypatch.setattr("tq.inspection.listing.LIMIT_GROWTH", 0)
        text, note = str(model).rsplit("\n", 1)
        assert note.startswith("The rest is left out")
        assert whole.startswith(text.rstrip("\n")) and len(text) <= limit + 1
    monkeypatch.setattr("tq.inspection.listing.LIMIT_SLACK", len(whole) + 1)
    assert str(model) == whole


# ---- growth ----


def calls(function):
    """How many functions are called, in Python or C: a measure of time that is the same on every machine."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def chain(length):
    """Operators one after the other; half of them read the first constant."""
    tensors = [tensor("c", [1], "INT32", b"1234", scale=1.5), *(tensor(f"t{i}", [1]) for i in range(length + 1))]
    operators = [operator("ADD", [i + 1, 0] if i % 2 else [i + 1], [i + 2]) for i in range(length)]
    return tq.Model(build_model(tensors, operators, [1], [length + 1]))


@pytest.mark.parametrize("what", [str, lambda model: str(model.summary())], ids=["listing", "summary"])
def test_time_grows_with_the_model_not_with_its_square(what):
    small, large = chain(200), chain(2000)
    what(small)  # imports
    assert calls(lambda: what(large)) < 10.5 * calls(lambda: what(small))
