# SPDX-License-Identifier: Apache-2.0
"""Writing what was read: equal models, unknown fields, constants outside the flatbuffer, what LiteRT says of it."""

import errno
import os
import struct

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import oracle
import pytest
import zoo
from equal_models import assert_equal_models, upstream
from models import build_model, operator, tensor
from zoo import small_table, vector_of, with_tensor_fields

import tq
from tq import _core


def rewritten(source, **arguments):
    return _core._Tree(source if isinstance(source, tq.Model) else tq.Model(source)).write(**arguments)


# ---- equal models ----


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_made_models(name):
    before = tq.Model(zoo.MODELS[name])
    data = rewritten(before)
    assert_equal_models(before, tq.Model(data))
    assert rewritten(data) == data, "written again, nothing changes"


@pytest.mark.corpus
def test_corpus(corpus):
    """tests/fuzz/fuzz_rewrite.c compares every field of all of them; here, what Python shows of some."""
    for index, path in enumerate(corpus):
        before = tq.Model(path)
        data = rewritten(before)
        if index % 5 == 0:
            assert_equal_models(before, tq.Model(data))
        assert rewritten(data) == data, path
        assert len(data) < before.nbytes * 1.2 + 1024, path


@pytest.mark.parametrize("name", sorted(set(zoo.MODELS) - {"outside"}))
def test_the_upstream_reader_sees_no_difference(name):
    data = zoo.MODELS[name]
    assert upstream(rewritten(data)) == upstream(data)


@pytest.mark.corpus
def test_the_upstream_reader_sees_no_difference_in_real_models(corpus):
    small = [path for path in corpus if path.stat().st_size < 40_000]
    for path in small[::4]:
        data = path.read_bytes()
        before, after = upstream(data), upstream(rewritten(data))
        outside = {key for key in before if key.endswith((".offset", ".largeCustomOptionsOffset"))}
        assert {key: before[key] for key in before.keys() - outside} == {
            key: after[key] for key in after.keys() - outside
        }


def test_a_stored_default_stays_stored():
    forced = tq.Model(build_model([tensor("x", [1], is_variable=False)]))
    assert forced.tensors[0].stored("is_variable") is False
    assert tq.Model(rewritten(forced)).tensors[0].stored("is_variable") is False
    plain = tq.Model(rewritten(build_model([tensor("x", [1])])))
    assert plain.tensors[0].stored("is_variable") is None


def test_names_that_are_no_text_keep_their_bytes():
    data = build_model([tensor("bad_name", [1])]).replace(b"bad_name", b"\xff\xfe\0a\xc3(bc")
    assert b"\xff\xfe\0a\xc3(bc" in rewritten(data)


@pytest.mark.parametrize("value", [0x7FC00001, 0x7F800001, 0xFF800000, 0x80000000, 1])
def test_every_bit_of_a_float_stays(value):
    item = tensor("x", [1], scale=1.0)
    data = build_model([item]).replace(struct.pack("<If", 1, 1.0), struct.pack("<II", 1, value))
    scale = tq.Model(rewritten(data)).tensors[0].quantization.scale
    assert scale.view(np.uint32).tolist() == [value]


# ---- fields that the schema does not know ----


def raw_tensor(data):
    """The first tensor as the flatbuffers package reads it: slots by number."""
    return schema.Model.GetRootAs(bytearray(data), 0).Subgraphs(0).Tensors(0)._tab


def at(table, slot):
    offset = table.Offset(4 + 2 * slot)
    return offset + table.Pos if offset else None


def scalar(flags, value):
    """A scalar in a slot; stored even if it is 0."""
    return lambda builder, slot: (builder.Prepend(flags, value), builder.Slot(slot))


N = flatbuffers.number_types
SCALARS = [
    (N.BoolFlags, True),
    (N.Uint8Flags, 200),
    (N.Int16Flags, -2),
    (N.Uint16Flags, 65535),
    (N.Int32Flags, -5),
    (N.Uint32Flags, 8),
    (N.Uint32Flags, 64),
    (N.Float32Flags, 0.1),
    (N.Int64Flags, -(1 << 60)),
    (N.Float64Flags, 1e-300),
]


@pytest.mark.parametrize(("flags", "value"), SCALARS)
def test_an_unknown_scalar_stays(flags, value):
    data = with_tensor_fields(lambda builder: [(13, scalar(flags, value))])
    before, after = raw_tensor(data), raw_tensor(rewritten(data))
    assert at(before, 13)
    assert after.Get(flags, at(after, 13)) == before.Get(flags, at(before, 13))
    assert tq.Model(rewritten(data)).tensors[0].shape == (7,)


@pytest.mark.parametrize("value", range(4, 400, 4))
def test_an_unknown_integer_that_looks_like_an_offset_stays(value):
    """Every number that could lead from the field to some place in the file: all of it is covered by what is known."""
    data = with_tensor_fields(lambda builder: [(12, scalar(N.Uint32Flags, value))])
    after = raw_tensor(rewritten(data))
    assert after.Get(N.Uint32Flags, at(after, 12)) == value


def test_an_unknown_integer_beside_unknown_objects_stays():
    """Unless it is the very distance to the start of one: then nothing can tell it from an offset."""
    wrong = []
    for value in range(4, 400, 4):

        def make(builder, value=value):
            made = [builder.CreateString("a text"), builder.CreateNumpyVector(np.float64([1.5, -2, 3])), None]
            made[2] = small_table(builder, 5, "the inner one")
            offsets = [(11 + i, offset_to(item)) for i, item in enumerate(made)]
            return [*offsets, (14, scalar(N.Uint32Flags, value))]

        data = with_tensor_fields(make)
        before, after = raw_tensor(data), raw_tensor(rewritten(data))
        if after.Get(N.Uint32Flags, at(after, 14)) != value:
            starts = [at(before, 11 + i) + before.Get(N.Uint32Flags, at(before, 11 + i)) for i in range(3)]
            inner = small_name(before, starts[2])
            wrong.append(at(before, 14) + value in [*starts, inner])
    assert all(wrong) and len(wrong) <= 4


def small_name(table, position):
    """Where a small table's name stands."""
    inner = flatbuffers.table.Table(table.Bytes, position)
    return inner.Indirect(at(inner, 2))


def test_all_unknown_scalars_at_once():
    extra = [(11 + i, scalar(*item)) for i, item in enumerate(SCALARS)]
    data = with_tensor_fields(lambda builder: extra, count=len(SCALARS))
    after = raw_tensor(rewritten(data))
    before = raw_tensor(data)
    for i, (flags, _value) in enumerate(SCALARS):
        assert after.Get(flags, at(after, 11 + i)) == before.Get(flags, at(before, 11 + i))


def offset_to(made):
    return lambda builder, slot: builder.PrependUOffsetTRelativeSlot(slot, made, 0)


TEXTS = ["a", "text", "twelve bytes", "ä longer text, of many words, that is no table"]


@pytest.mark.parametrize("text", TEXTS)
def test_an_unknown_string_stays(text):
    data = with_tensor_fields(lambda builder: [(11, offset_to(builder.CreateString(text)))])
    after = raw_tensor(rewritten(data))
    assert after.String(at(after, 11)).decode() == text


VECTORS = [
    np.array([1, 2, 3], np.int8),
    np.array([0], np.uint8),
    np.array([0, 0, 0, 0], np.int32),
    np.array([4, 8], np.int32),
    np.array([-1, 70000], np.int32),
    np.array([300, 2], np.int16),
    np.array([1 << 40, -1], np.int64),
    np.array([1.5, -2.5, 1e30], np.float32),
    np.array([1e-300], np.float64),
]


@pytest.mark.parametrize("values", VECTORS, ids=lambda v: f"{v.dtype}{v.tolist()}")
def test_an_unknown_vector_stays(values):
    data = with_tensor_fields(lambda builder: [(14, offset_to(builder.CreateNumpyVector(values)))])
    after = raw_tensor(rewritten(data))
    offset = at(after, 14) - after.Pos
    assert after.VectorLen(offset) == len(values)
    start = after.Vector(offset)
    assert start % values.itemsize == 0, "elements stay aligned"
    assert bytes(after.Bytes[start : start + values.nbytes]) == values.tobytes()


def read_small(table, position):
    inner = flatbuffers.table.Table(table.Bytes, position)
    text = inner.Offset(8)
    number = inner.Get(N.Int32Flags, at(inner, 0)) if at(inner, 0) else 0
    return number, inner.String(text + inner.Pos).decode() if text else None


def test_an_unknown_table_stays_with_what_it_leads_to():
    def make(builder):
        inner = small_table(builder, 5, "the inner one")
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(1, inner, 0)
        builder.PrependInt64Slot(0, 77, 0)
        return [(12, offset_to(builder.EndObject()))]

    after = raw_tensor(rewritten(with_tensor_fields(make)))
    outer = flatbuffers.table.Table(after.Bytes, after.Indirect(at(after, 12)))
    assert outer.Get(N.Int64Flags, at(outer, 0)) == 77
    assert read_small(outer, outer.Indirect(at(outer, 1))) == (5, "the inner one")


def test_unknown_vectors_of_tables_and_of_strings_stay():
    def make(builder):
        tables = vector_of(builder, [small_table(builder, i, f"table {i}") for i in range(1, 4)])
        strings = vector_of(builder, [builder.CreateString(f"text {i}") for i in range(5)])
        return [(11, offset_to(tables)), (12, offset_to(strings))]

    after = raw_tensor(rewritten(with_tensor_fields(make)))
    tables, strings = at(after, 11) - after.Pos, at(after, 12) - after.Pos
    found = [read_small(after, after.Indirect(after.Vector(tables) + 4 * i)) for i in range(3)]
    assert found == [(i, f"table {i}") for i in range(1, 4)]
    assert after.VectorLen(strings) == 5
    assert [after.String(after.Vector(strings) + 4 * i).decode() for i in range(5)] == [f"text {i}" for i in range(5)]


def test_a_union_of_unknown_type_stays():
    def make(builder):
        inner = small_table(builder, 9, "a new option")
        builder.StartObject(8)
        builder.PrependUint8Slot(4, 250, 0)
        builder.PrependUOffsetTRelativeSlot(5, inner, 0)
        return [(4, offset_to(builder.EndObject()))]

    data = with_tensor_fields(make)
    assert tq.Model(data).tensors[0].quantization.details is None
    after = raw_tensor(rewritten(data))
    quantization = flatbuffers.table.Table(after.Bytes, after.Indirect(at(after, 4)))
    assert quantization.Get(N.Uint8Flags, at(quantization, 4)) == 250
    assert read_small(quantization, quantization.Indirect(at(quantization, 5))) == (9, "a new option")


def test_a_union_that_leads_nowhere_is_counted_as_lost():
    def make(builder):
        builder.StartObject(8)
        builder.PrependUint8Slot(4, 250, 0)
        builder.PrependUint32Slot(5, 8, 0)  # into a table that is known
        return [(4, offset_to(builder.EndObject()))]

    data = with_tensor_fields(make)
    tree = _core._Tree(tq.Model(data))
    assert tree.lost == 1
    with tq.edit(data) as e:
        with pytest.raises(tq.ModelError, match="cannot be written"):
            e.to_bytes()
        assert tq.Model(e.to_bytes(allow_loss=True)).tensors[0].stored("quantization")["details"] is None


def test_what_cannot_be_kept_an_unknown_offset_to_an_empty_vector():
    """It looks like a number that leads to padding; docs/editing.md says so."""
    data = with_tensor_fields(lambda builder: [(11, offset_to(builder.CreateNumpyVector(np.array([], np.int32))))])
    before, after = raw_tensor(data), raw_tensor(rewritten(data))
    assert after.Get(N.Uint32Flags, at(after, 11)) == before.Get(N.Uint32Flags, at(before, 11))


def test_unknown_fields_survive_an_edit():
    def make(builder):
        return [(11, offset_to(builder.CreateString("kept"))), (12, scalar(N.Float32Flags, 0.5))]

    with tq.edit(with_tensor_fields(make)) as e:
        e.tensors[0].name = "another name, which is longer"
        e.tensors[0].quantization.scale = [0.25]
        data = e.to_bytes()
    after = raw_tensor(data)
    assert after.String(at(after, 11)) == b"kept"
    assert after.Get(N.Float32Flags, at(after, 12)) == 0.5
    assert tq.Model(data).tensors[0].quantization.scale.tolist() == [0.25]


# ---- constants ----


def test_shared_tables_become_separate():
    """Two tensors of one quantization table, as tq writes none: a change of the one must not show in the other."""
    data = bytearray(build_model([tensor("a", [1], scale=0.5), tensor("b", [1], scale=0.5)]))
    graph = schema.Model.GetRootAs(data).Subgraphs(0)
    places = [at(graph.Tensors(i)._tab, 4) for i in range(2)]
    last = max(place + struct.unpack_from("<I", data, place)[0] for place in places)
    for place in places:
        struct.pack_into("<I", data, place, last - place)
    with tq.edit(data) as e:
        e.tensors["a"].quantization.scale = [2.0]
        after = e.to_model()
    assert [t.quantization.scale.tolist() for t in after.tensors] == [[2.0], [0.5]]


def test_equal_constants_are_stored_once_on_request():
    data = np.arange(1000, dtype=np.float32)
    model = build_model([tensor(f"t{i}", [1000], data=data if i != 2 else data + 1) for i in range(5)])
    apart, shared = rewritten(model), rewritten(model, share_constants=True)
    assert len(apart) - len(shared) == pytest.approx(3 * 4000, abs=100)
    before, after = tq.Model(model), tq.Model(shared)
    assert_equal_models(before, after)
    assert len({b.offset for b in after.buffers if b.nbytes}) == 2
    assert_equal_models(before, tq.Model(rewritten(after))), "and stay so"
    assert len(rewritten(after)) == len(shared)


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_constants_move_outside_where_the_flatbuffer_would_be_too_large(name):
    before = tq.Model(zoo.MODELS[name])
    biggest = rewritten(before, limit=1 << 20)
    try:
        after = tq.Model(rewritten(before, limit=len(biggest) - 48))
    except ValueError as error:  # its tables alone are as large
        assert "the flatbuffer would have" in str(error)
        return
    used = {item.buffer for graph in before.subgraphs for item in graph.tensors}
    for old, new in zip(before.buffers, after.buffers, strict=True):
        assert old.nbytes == new.nbytes and np.array_equal(old.data, new.data)
        if new.nbytes and new.index in used:
            assert not new.is_inline and new.offset % 16 == 0
    assert before.metadata == after.metadata


def test_a_flatbuffer_that_is_too_large_without_its_constants():
    with pytest.raises(ValueError, match=r"the flatbuffer would have .* bytes; at most 100 fit"):
        rewritten(zoo.MODELS["conv"], limit=100)


@pytest.mark.slow
def test_more_than_two_gigabytes(tmp_path):
    """Constants of 2.2 GB: written outside the flatbuffer, read by tq and by LiteRT."""
    path = tmp_path / "large.tflite"
    builder = tq.ModelBuilder()
    x = builder.input("x", [1])
    halves = [builder.constant(f"c{i}", np.full(275_000_000, i + 1, np.float32)) for i in range(2)]
    y = builder.tensor("y", [275_000_000])
    builder.operator("ADD", [x, halves[1]], [y])
    builder.output(y)
    builder.save(path)
    assert path.stat().st_size > 1 << 31
    model = tq.Model(path)
    assert [t.buffer for t in model.tensors] == [0, 1, 2, 0]
    assert not model.buffers[1].is_inline
    assert model.tensors["c1"].data[-1] == 2
    (answer,) = oracle.ask("outputs", [(path, "AUTO", 0)])
    assert isinstance(answer, list) and answer[0].shape == (275_000_000,)


# ---- where it goes ----


def test_a_full_disk_is_an_os_error():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    tree = _core._Tree(tq.Model(zoo.MODELS["conv"]))
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError) as caught:
            tree.write(descriptor)
        assert caught.value.errno == errno.ENOSPC
    finally:
        os.close(descriptor)


def test_a_file_has_the_same_bytes_as_memory(tmp_path):
    tree = _core._Tree(tq.Model(build_model([tensor("w", [300_000], "INT8", data=np.zeros(300_000, np.int8))])))
    with open(tmp_path / "m", "wb") as file:
        size = tree.write(file.fileno())
    data = (tmp_path / "m").read_bytes()
    assert len(data) == size and data == tree.write()


def test_a_table_in_two_places_is_refused():
    tree = _core._Tree(tq.Model(zoo.MODELS["conv"]))
    graph = tree.root.get("subgraphs")[0]
    first = graph.get("tensors")[0]
    graph.set("tensors", [first, first])
    with pytest.raises(ValueError, match="a table Tensor occurs in two places"):
        tree.write()


def test_a_tree_is_not_changed_while_it_is_written():
    tree = _core._Tree(tq.Model(zoo.MODELS["conv"]))

    def tail(size):
        tree.root.set("description", b"now")
        return b""

    with pytest.raises(RuntimeError, match="another thread is writing"):
        tree.write(trailing=tail)
    tree.root.set("description", b"now")
    assert tq.Model(tree.write(trailing=lambda size: b"tail%d" % size)).description == "now"


def test_nodes_of_another_tree_are_refused():
    a, b = (_core._Tree(tq.Model(zoo.MODELS["conv"])) for _ in range(2))
    with pytest.raises(ValueError, match="belongs to another model"):
        a.root.set("subgraphs", b.root.get("subgraphs"))
    with pytest.raises(ValueError, match="belongs to another model"):
        a.copy(b.root)
    with pytest.raises(ValueError, match="a table SubGraph is needed"):
        a.root.set("subgraphs", [a.make("Tensor")])
    with pytest.raises(TypeError, match="a table is needed, not int"):
        a.root.set("subgraphs", [1])


def test_what_is_written_is_kept_from_the_garbage_collector():
    tree = _core._Tree()
    buffer = tree.make("Buffer")
    buffer.set("data", np.arange(100_000, dtype=np.uint8).tobytes())
    view = buffer.get("data")
    tree.root.set("buffers", [buffer])
    del tree, buffer
    assert view.sum() == np.arange(100_000, dtype=np.uint8).sum()


# ---- LiteRT ----


@pytest.mark.corpus
def test_litert_opens_and_runs_what_is_written(corpus):
    """Details and outputs of real models, before and after, bit for bit."""
    chosen = [path for path in corpus if path.stat().st_size < 1_500_000][::16]
    written = [rewritten(path) for path in chosen]
    for what, ask in (
        ("details", lambda source: source),
        ("outputs", lambda source: (source, "BUILTIN_REF", 1)),
    ):
        before = oracle.ask(what, [ask(path) for path in chosen])
        after = oracle.ask(what, [ask(data) for data in written])
        answered = 0
        for path, x, y in zip(chosen, before, after, strict=True):
            if isinstance(x, oracle.Refusal | oracle.Abort):
                assert type(x) is type(y), path
                continue
            assert not isinstance(y, oracle.Refusal | oracle.Abort), (path, y)
            answered += 1
            if what == "outputs":
                assert all(a.tobytes() == b.tobytes() for a, b in zip(x, y, strict=True)), path
            else:
                assert repr(x) == repr(y), path
        assert answered > len(chosen) * 0.6


def test_litert_runs_a_model_whose_constants_stand_outside(tmp_path):
    data = build_model(
        [tensor("x", [200]), tensor("c", [200], data=np.arange(200, dtype=np.float32)), tensor("y", [200])],
        [operator("ADD", [0, 1], [2])],
        inputs=[0],
        outputs=[2],
    )
    outside = rewritten(data, limit=len(rewritten(data)) - 200)
    assert not tq.Model(outside).buffers[1].is_inline
    path = tmp_path / "m.tflite"
    path.write_bytes(outside)
    inside, *others = oracle.ask("outputs", [(data, "BUILTIN_REF", 0), (outside, "BUILTIN_REF", 0), (path, "AUTO", 0)])
    for answer in others:
        assert np.array_equal(answer[0], inside[0])
