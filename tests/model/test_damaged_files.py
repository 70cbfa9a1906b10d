# SPDX-License-Identifier: Apache-2.0
"""No file can hurt: through Python, every damaged model is a ModelError or a model that can be walked entirely.

tests/flatbuffer/test_fuzz.py does the same to the C core, millions of times.  Here the binding stands in between, and
with it memory, time, paths that are no files, and threads.  `.ci/run` runs this file once more with the extension
itself under the sanitizers.
"""

import os
import random
import struct
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest
import zoo
from damage import EXTREMES, damaged
from models import build_model, make_model, operator, pack, tensor
from walk import Walk, open_and_walk, walk

import tq

NAMES = [make.__name__ for make in zoo.MAKERS]


# ---- intact models ----


@pytest.mark.parametrize("name", NAMES)
def test_made_models_walk(name):
    answers, _refusals = walk(tq.Model(zoo.MODELS[name]))
    assert answers > 10


def test_a_sound_model_refuses_only_what_it_cannot_have():
    """Numbers of tensors that are no constants, and real numbers of a shape vector that has no scale."""
    _answers, refusals = walk(tq.Model(zoo.MODELS["conv"]))
    assert {error.code for error in refusals} == {"DATA_SIZE", "BAD_QUANTIZATION"}
    assert sum("no constant" in str(error) for error in refusals) == len(refusals) - 1


@pytest.mark.corpus
def test_corpus_walks(corpus):
    for path in corpus:
        if path.stat().st_size < 1 << 19:
            assert walk(tq.Model(path))[0] > 10, path


# ---- damaged models ----


@pytest.mark.parametrize("name", NAMES)
def test_truncated_at_every_length(name):
    data = zoo.MODELS[name]
    opened = 0
    for length in range(len(data)):
        try:
            tq.Model(data[:length])
        except tq.ModelError as error:
            assert str(error), length
        else:
            opened += 1
            walk(tq.Model(data[:length]))
    assert opened < len(data) // 2


@pytest.mark.parametrize("name", NAMES)
def test_mutated(name):
    data = zoo.MODELS[name]
    opened = sum(open_and_walk(damaged(data, seed)) is None for seed in range(150))
    assert opened > 0, "mutations that no model survives prove nothing about walking"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_mutated_more(name):
    for seed in range(1000, 6000):
        open_and_walk(damaged(zoo.MODELS[name], seed))


@pytest.mark.corpus
def test_mutated_corpus(corpus):
    small = [path for path in corpus if path.stat().st_size < 4000]
    for path in small[:: max(1, len(small) // 40)]:
        data = path.read_bytes()
        for seed in range(20):
            open_and_walk(damaged(data, seed))


def test_short_files():
    """0 to 64 bytes of everything interesting."""
    words = [0, 1, 4, 8, 12, 16, 0x00040004, 0x000C0008, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF, 0x334C4654]
    for first in words:
        for second in words:
            whole = struct.pack("<II", first, second) + struct.pack("<I", second) * 14
            for size in range(65):
                open_and_walk(whole[:size])


def test_every_file_of_few_bytes_is_refused():
    for size in range(8):
        for fill in (0, 1, 255):
            with pytest.raises(tq.ModelError) as caught:
                tq.Model(bytes([fill]) * size)
            assert caught.value.code == "TOO_SMALL"


def test_an_error_names_the_byte_and_the_check():
    data = bytearray(zoo.MODELS["conv"])
    data[:4] = struct.pack("<I", 0x7FFFFFF0)
    with pytest.raises(tq.ModelError, match="byte 0") as caught:
        tq.Model(data)
    assert (caught.value.code, caught.value.offset) == ("OFFSET_RANGE", 0)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, tq.Error)


# ---- explosions: few bytes that describe a walk without end ----


class Raw:
    """Writes tables of uoffset fields front to back, so that offsets may lead anywhere ahead."""

    def __init__(self):
        self.data = bytearray(8)

    def put(self, form, *values):
        at = len(self.data)
        self.data += struct.pack("<" + form, *values)
        return at

    def table(self, slots):
        """A table whose slots hold offsets to be linked later; returns {slot: position of the offset}."""
        vtable = self.put(f"{2 + slots}H", 4 + 2 * slots, 4 + 4 * slots, *range(4, 4 + 4 * slots, 4))
        table = self.put("i", len(self.data) - vtable)
        return table, {slot: self.put("I", 0) for slot in range(slots)}

    def vector(self, count):
        at = self.put("I", count)
        return at, [self.put("I", 0) for _ in range(count)]

    def link(self, source, target):
        struct.pack_into("<I", self.data, source, target - source)


def shared_subtables(width):
    """`width` times the same subgraph of `width` times the same operator of `width` times the same index vector."""
    raw = Raw()
    root, fields = raw.table(5)
    raw.link(0, root)
    for slot in (0, 3, 4):  # version, description, buffers: not stored
        struct.pack_into("<H", raw.data, 8 + 4 + 2 * slot, 0)
    codes, _none = raw.vector(0)
    raw.link(fields[1], codes)
    subgraphs, places = raw.vector(width)
    raw.link(fields[2], subgraphs)
    graph, parts = raw.table(4)
    for place in places:
        raw.link(place, graph)
    tensors, places = raw.vector(width)
    raw.link(parts[0], tensors)
    item, shape = raw.table(1)
    for place in places:
        raw.link(place, item)
    long, _none = raw.vector(width)
    for source in (shape[0], parts[1], parts[2]):
        raw.link(source, long)
    operators, places = raw.vector(0)
    raw.link(parts[3], operators)
    return bytes(raw.data)


def test_shared_subtables_that_fit_the_budget_open():
    model = tq.Model(shared_subtables(10))
    assert (len(model.subgraphs), len(model.subgraphs[9].tensors)) == (10, 10)
    walk(model)


@pytest.mark.parametrize("width", [100, 1000, 30_000, 300_000])
def test_shared_subtables_explode(width):
    data = shared_subtables(width)
    start = time.monotonic()
    with pytest.raises(tq.ModelError) as caught:
        tq.Model(data)
    assert caught.value.code in ("TABLE_BUDGET", "BYTE_BUDGET")
    assert time.monotonic() - start < 10


def shared_everything(count):
    """Tensors that share one shape, one name, one buffer, one set of scales: within the budget, but wide.  They are one
    table, in places as many as they are; tq writes no such file."""
    builder = flatbuffers.Builder(1024)
    quantization = schema.QuantizationParametersT(scale=[0.5] * 64, zeroPoint=[0] * 64)
    parts = {"name": "x" * 40, "shape": [4] * 16, "type": schema.TensorType.INT8, "buffer": 1}
    item = schema.TensorT(**parts, quantization=quantization).Pack(builder)
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(item)
    tensors = builder.EndVector()
    schema.SubGraphStart(builder)
    schema.SubGraphAddTensors(builder, tensors)
    graph = schema.SubGraphEnd(builder)
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(graph)
    graphs = builder.EndVector()
    buffers = [item.Pack(builder) for item in (schema.BufferT(), schema.BufferT(data=bytes(4000)))]
    builder.StartVector(4, len(buffers), 4)
    for offset in reversed(buffers):
        builder.PrependUOffsetTRelative(offset)
    buffers = builder.EndVector()
    schema.ModelStart(builder)
    schema.ModelAddSubgraphs(builder, graphs)
    schema.ModelAddBuffers(builder, buffers)
    builder.Finish(schema.ModelEnd(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def test_a_wide_model_walks_in_time():
    data = shared_everything(1000)
    model = tq.Model(data)
    assert len(model.tensors) == 1000
    start = time.monotonic()
    walk(model)
    assert time.monotonic() - start < 120


def nested_flexbuffer(depth):
    """A vector in a vector in a vector ...  Each level is a size, one slot (the distance back to the level inside)
    and its type byte; 0x28 is an untyped vector of bytes."""
    return b"\1\0\0" + b"\1\3\x28" * depth + b"\2\x28\1"


def shared_flexbuffer(width, depth):
    """Each level holds `width` slots that all lead to the level below: width ** depth values."""
    data = bytearray(struct.pack("<HH", 1, 7) + b"\x04")
    below = 2
    for _ in range(depth):
        data += struct.pack("<H", width)
        first = len(data)
        for _ in range(width):
            data += struct.pack("<H", len(data) - below)
        data += bytes([10 << 2 | 1]) * width
        below = first
    data += struct.pack("<H", len(data) - below) + bytes([10 << 2 | 1, 2])
    return bytes(data)


@pytest.mark.parametrize(
    "options",
    [nested_flexbuffer(3), nested_flexbuffer(100_000), shared_flexbuffer(3, 3), shared_flexbuffer(60, 30)],
    ids=["nested", "deep", "shared", "exploding"],
)
def test_flexbuffers(options):
    model = tq.Model(build_model([tensor("x", [1])], [operator("Custom", [0], [0], custom_options=options)]))
    start = time.monotonic()
    item = model.operators[0]
    assert item.custom_options == options
    assert isinstance(item.options, (dict, list))
    walk(model)
    assert time.monotonic() - start < 20


def test_long_names_and_many_dimensions():
    name = "n" * 1_000_000
    model = tq.Model(build_model([tensor(name, [1] * 100_000), tensor("\n\x1b[31m<b>&\u202e", [2])]))
    assert model.tensors[0].name == name
    assert len(model.tensors[0].shape) == 100_000
    walk(model)


def test_names_that_are_not_utf8():
    data = build_model([tensor("name", [2])]).replace(b"name", b"\xff\xc3\x28n")
    model = tq.Model(data)
    assert model.tensors[0].name.encode()
    assert model.tensors[0].name.endswith("(n")
    walk(model)


# ---- memory ----


def peak_of(tmp_path, data, statement):
    """By how many bytes the peak of a fresh process's memory rises while it runs the statement on the file."""
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    small = tmp_path / "small.tflite"
    small.write_bytes(zoo.MODELS["conv"])
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(tq.__file__).parents[1])!r})
        import tq

        def memory(field):
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

        def use(path):
            try:
                {statement}
            except tq.ModelError as error:
                return str(error)

        use({str(small)!r})
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = memory("VmRSS")
        result = use({str(path)!r})
        print(memory("VmHWM") - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
sanitized = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer has memory and time of its own")


def wide_model(count):
    return build_model([tensor(f"t{i}", [1, 2, 3], "INT8", scale=0.5) for i in range(count)])


@needs_proc
@sanitized
@pytest.mark.parametrize("read", ["tq.Model(path)", "tq.Model(open(path, 'rb').read())"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: shared_subtables(100_000),
        lambda: shared_subtables(10),
        lambda: shared_everything(20_000),
        lambda: wide_model(20_000),
        lambda: zoo.MODELS["conv"] + bytes(50 << 20),
        lambda: b"\xff" * (20 << 20),
        zoo.external,
    ],
    ids=["exploding", "shared", "wide shared", "wide", "long tail", "garbage", "external"],
)
def test_opening_takes_at_most_four_times_the_file_and_16_mb(tmp_path, make, read):
    data = make()
    assert peak_of(tmp_path, data, read) <= 4 * len(data) + (16 << 20)


@needs_proc
@sanitized
@pytest.mark.parametrize("make", [lambda: shared_everything(20_000), lambda: shared_subtables(10), zoo.odd_indices])
def test_problems_take_no_more(tmp_path, make):
    """They are capped at a thousand of each kind, so that Python's objects for them stay below the 16 MB."""
    data = make()
    assert peak_of(tmp_path, data, "tq.Model(path).problems") <= 4 * len(data) + (16 << 20)


@needs_proc
@sanitized
def test_a_large_file_is_hardly_touched(tmp_path):
    """Opening a 1 GB model touches under 2 MB of it; here the file is sparse, so that it costs no disk."""
    path = tmp_path / "large.tflite"
    model = make_model([tensor("w", [1 << 30], "INT8", buffer=1)])
    model.add_buffer(offset=1 << 20, size=1 << 30)
    path.write_bytes(pack(model))
    os.truncate(path, (1 << 20) + (1 << 30))

    def resident():
        text = Path("/proc/self/smaps").read_text()
        block = text[text.index(str(path)) :].split("\nVmFlags", 1)[0]
        return int(block.split("Rss:")[1].split()[0]) * 1024

    opened = tq.Model(path)
    assert opened.tensors[0].nbytes == 1 << 30
    opened.get_tensor_details()
    assert resident() < 2 << 20
    assert opened.tensors[0].data[-1] == 0
    assert opened.nbytes == (1 << 20) + (1 << 30)


# ---- paths that are no files ----


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        tq.Model(tmp_path / "none.tflite")
    assert caught.value.filename == str(tmp_path / "none.tflite")
    with pytest.raises(FileNotFoundError):
        tq.Model("")
    with pytest.raises(NotADirectoryError):
        tq.Model(Path(__file__) / "x")


def test_folder(tmp_path):
    with pytest.raises(IsADirectoryError):
        tq.Model(tmp_path)


def test_empty_file(tmp_path):
    (tmp_path / "empty").touch()
    for source in (tmp_path / "empty", b"", bytearray(), memoryview(b""), np.zeros(0, np.uint8)):
        with pytest.raises(tq.ModelError) as caught:
            tq.Model(source)
        assert caught.value.code == "TOO_SMALL"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(OSError, match="regular"):
            tq.Model(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(zoo.MODELS["conv"])
    path.chmod(0)
    with pytest.raises(PermissionError):
        tq.Model(path)


def test_odd_paths(tmp_path):
    with pytest.raises(ValueError, match="null"):
        tq.Model("a\0b")
    path = tmp_path / "mödel \U0001f600.tflite"
    path.write_bytes(zoo.MODELS["conv"])
    assert tq.Model(path).path == str(path)
    raw = os.path.join(os.fsencode(tmp_path), b"\xff.tflite")
    try:
        Path(os.fsdecode(raw)).write_bytes(zoo.MODELS["conv"])
    except OSError:
        return  # a file system of Unicode names only
    assert len(tq.Model(os.fsdecode(raw)).subgraphs) == 1


@pytest.mark.parametrize("source", [None, 3, 1.5, ["a"], {}, object()])
def test_what_is_no_source(source):
    with pytest.raises(TypeError):
        tq.Model(source)


def test_any_buffer_will_do():
    data = zoo.MODELS["conv"]
    expected = str(tq.Model(data))
    padded = bytearray(b"\0" + data)
    for source in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), memoryview(padded)[1:]):
        assert str(tq.Model(source)) == expected
    with pytest.raises((ValueError, BufferError)):
        tq.Model(memoryview(data)[::2])  # not contiguous


# ---- files beside the model ----


def external_model(folder, group, offset=0, length=4):
    model = make_model([tensor("weights", [4], "INT8", external_buffer=7)])
    model.store("external_buffer_groups", [{"name": group}])
    model.store("external_buffers", [{"id": 7, "group": 0, "offset": offset, "length": length}])
    (folder / "model.tflite").write_bytes(pack(model))
    return tq.Model(folder / "model.tflite").tensors[0]


def test_a_side_file_is_read(tmp_path):
    (tmp_path / "side.bin").write_bytes(b"xx\1\2\3\4yy")
    assert external_model(tmp_path, "side.bin", 2).data.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "group", ["../side.bin", "/etc/passwd", "", "a/../../side.bin", "x\0y", "..", ".", None, "C:\\x"]
)
def test_a_side_file_elsewhere_is_refused(tmp_path, group):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "side.bin").write_bytes(bytes(9))
    item = external_model(folder, group)
    with pytest.raises((tq.ModelError, IsADirectoryError)):
        print(item.data)
    walk(item.model)


@pytest.mark.parametrize(("offset", "length"), [(5, 4), (2**63, 4), (2**64 - 1, 4), (0, 2**64 - 1), (0, 3), (9, 0)])
def test_a_side_file_that_is_too_short(tmp_path, offset, length):
    (tmp_path / "side.bin").write_bytes(bytes(8))
    item = external_model(tmp_path, "side.bin", offset, length)
    with pytest.raises(tq.ModelError):
        print(item.data)
    walk(item.model)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_side_file_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "side.bin")
    item = external_model(tmp_path, "side.bin")
    with pytest.raises(OSError, match="regular"):
        print(item.data)
    walk(item.model)


# ---- bytes that change, and threads ----


def test_a_bytearray_that_changes_under_an_open_model():
    draw = random.Random(1)
    for name in ("conv", "per_axis", "sparse", "subgraphs", "custom_operators", "constants", "blockwise", "external"):
        source = bytearray(zoo.MODELS[name])
        model = tq.Model(source)
        for _ in range(60):
            at = draw.randrange(len(source) - 4)
            old = source[at : at + 4]
            source[at : at + 4] = struct.pack("<I", draw.choice([*EXTREMES, draw.getrandbits(32)]))
            walk(model)
            if draw.random() < 0.7:
                source[at : at + 4] = old


def test_a_bytearray_cannot_shrink_under_an_open_model():
    source = bytearray(zoo.MODELS["conv"])
    model = tq.Model(source)
    with pytest.raises(BufferError):
        source.clear()
    view = model.tensors[1].data
    del model
    with pytest.raises(BufferError):
        source.clear()
    assert view.size == 18
    del view
    source.clear()


def snapshot(model):
    """Texts of everything, to compare."""
    found = Walk()
    found.model(model)
    texts = [str(model)]
    for g, graph in enumerate(model.subgraphs):
        texts.append(repr(model.get_tensor_details(g)))
        texts += [str(item.quantization) + repr(item.data) for item in graph.tensors]
        texts += [repr(item.options) + repr(item.inputs) for item in graph.operators]
    return texts


def test_many_threads_read_one_model():
    for name in ("conv", "per_axis", "subgraphs", "custom_operators", "blockwise"):
        model = tq.Model(zoo.MODELS[name])
        expected = snapshot(tq.Model(zoo.MODELS[name]))
        start = threading.Barrier(8)

        def work(_number, model=model, start=start):
            start.wait()
            return [snapshot(model) for _ in range(5)]

        with ThreadPoolExecutor(8) as pool:
            for results in pool.map(work, range(8)):
                assert all(result == expected for result in results)


def test_many_threads_open_models(tmp_path):
    paths = []
    for name in NAMES:
        paths.append(tmp_path / name)
        paths[-1].write_bytes(zoo.MODELS[name])

    def work(number):
        draw = random.Random(number)
        for _ in range(30):
            open_and_walk(draw.choice(paths))
            open_and_walk(damaged(zoo.MODELS[draw.choice(NAMES)], draw.random()))

    for path in paths:  # first alone: Python 3.11's ast.parse, which signatures are read by, fails in two threads
        open_and_walk(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_writes_into_data_are_refused():
    model = tq.Model(bytearray(zoo.MODELS["conv"]))
    data = model.tensors[1].data
    assert not data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        data.flags.writeable = True
