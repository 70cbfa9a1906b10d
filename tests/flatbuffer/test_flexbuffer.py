# SPDX-License-Identifier: Apache-2.0
"""decode_flexbuffer, and operator options that are flexbuffers, against the builder and the reader of `flatbuffers`."""

import gc
import struct
import tracemalloc

import numpy as np
import pytest
from flatbuffers import flexbuffers
from flatbuffers.flexbuffers import BitWidth, Builder
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models import build_model, operator, tensor

import tq

FLOAT32_MAX = float(np.finfo(np.float32).max)
WIDTHS = [BitWidth.W8, BitWidth.W16, BitWidth.W32, BitWidth.W64]

KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    | st.binary(max_size=20)
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5))


def built(write, **options):
    builder = Builder(**options)
    write(builder)
    return bytes(builder.Finish())


def add(builder, value):
    """Like Builder.Add, which knows no unsigned 64-bit integers and makes typed vectors of equal elements."""
    if isinstance(value, dict):
        with builder.Map():
            for key, item in value.items():
                builder.Key(key.encode())  # of a str it takes ASCII alone
                add(builder, item)
    elif isinstance(value, list):
        with builder.Vector():
            for item in value:
                add(builder, item)
    elif isinstance(value, int) and value >= 2**63:
        builder.UInt(value)
    elif isinstance(value, float) and abs(value) > FLOAT32_MAX:
        builder.Float(value, 8)  # it cannot find out by itself
    else:
        builder.Add(value)


def same(a, b):
    """Equal in type and value, and floats in sign too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return struct.pack("<d", a) == struct.pack("<d", b) if isinstance(a, float) else a == b


@given(VALUES, st.sampled_from(WIDTHS), st.booleans())
@example({}, BitWidth.W8, True)
@example([], BitWidth.W64, True)
@example({"k": {"k": [{"k": 1}, {"k": 2}]}}, BitWidth.W8, True)
def test_round_trip(value, width, share):
    data = built(lambda b: add(b, value), force_min_bit_width=width, share_strings=share, share_keys=share)
    assert same(tq.decode_flexbuffer(data), value)


def number(kind, content):
    """A root that is one number: in its slot, and (but for booleans) behind it."""
    size = len(content)
    yield content + bytes([kind << 2, size])
    if kind < 4:
        yield content + bytes([size, kind + 5 << 2 | size.bit_length() - 1, 1])


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_integer_widths(width):
    top = 2 ** (8 * width - 1)
    for kind, values in ((1, (-top, -1, 0, top - 1)), (2, (0, 1, top, 2 * top - 1)), (26, (False, True))):
        for value in values:
            for data in number(kind, value.to_bytes(width, "little", signed=kind == 1)):
                assert same(tq.decode_flexbuffer(data), value)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
@pytest.mark.parametrize("value", [1.5, -0.0, 6e-8, 65504.0, float("inf"), -float("inf"), float("nan")])
def test_float_widths(dtype, value):
    stored = np.array(value, dtype)
    for data in number(3, stored.tobytes()):
        result = tq.decode_flexbuffer(data)
        assert same(result, float(stored)) or (np.isnan(stored) and np.isnan(result))


ELEMENTS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "bool": st.booleans(),
}


@given(st.data(), st.sampled_from(sorted(ELEMENTS)), st.sampled_from(WIDTHS))
def test_typed_vectors(data, kind, width):
    values = data.draw(st.lists(ELEMENTS[kind], min_size=1, max_size=9))
    encoded = built(lambda b: b.TypedVectorFromElements(values), force_min_bit_width=width)
    assert same(tq.decode_flexbuffer(encoded), values)
    if kind != "bool" and 2 <= len(values) <= 4:
        encoded = built(lambda b: b.FixedTypedVectorFromElements(values), force_min_bit_width=width)
        assert same(tq.decode_flexbuffer(encoded), values)


def test_vectors_of_keys_and_of_deprecated_strings():
    keys = b"ab\0c\0" + bytes([2, 6, 4])
    for kind in (14, 15):
        assert tq.decode_flexbuffer(keys + bytes([2, kind << 2, 1])) == ["ab", "c"]


def test_text_that_is_not_utf8_stays_readable():
    data = built(lambda b: b.Add({"k": "zwölf"})).replace("ö".encode(), b"\xff\x41").replace(b"k\0", b"\xfe\0")
    assert tq.decode_flexbuffer(data) == {"\\xfe": "zw\\xffAlf"}
    assert tq.decode_flexbuffer(built(lambda b: b.String("a\0b"))) == "a\0b"


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_buffers(wrap):
    assert tq.decode_flexbuffer(wrap(flexbuffers.Dumps({"a": [1, "x"]}))) == {"a": [1, "x"]}


def test_other_arguments():
    with pytest.raises(TypeError):
        tq.decode_flexbuffer("text")
    with pytest.raises((BufferError, ValueError)):
        tq.decode_flexbuffer(memoryview(b"abcdef")[::2])
    with pytest.raises(tq.ModelError, match="needs at least 3") as info:
        tq.decode_flexbuffer(b"")
    assert (info.value.code, info.value.offset) == ("BAD_FLEXBUFFER", 0)


def decode_or_refuse(data):
    """Anything but a value or ModelError is a defect."""
    try:
        return tq.decode_flexbuffer(data)
    except tq.ModelError as error:
        assert error.code == "BAD_FLEXBUFFER"
        assert 0 <= error.offset <= len(data)
        return None


@settings(max_examples=300)
@given(st.binary(max_size=64), st.sampled_from([9, 10, 11, 14, 16, 25, 36]), st.sampled_from([1, 2, 4, 8]))
def test_any_bytes(data, kind, width):
    decode_or_refuse(data)
    decode_or_refuse(data + bytes([kind << 2 | width.bit_length() - 1, width]))


@settings(max_examples=300)
@given(VALUES, st.data())
def test_mutations(value, data):
    encoded = bytearray(built(lambda b: add(b, value)))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    decode_or_refuse(encoded)
    decode_or_refuse(encoded[data.draw(st.integers(0, len(encoded))) :])


def nest(depth, width):
    """`depth` vectors around an empty one, each of `width` times the next."""
    data, target = bytearray([0]), 1
    for _ in range(depth):
        data.append(width)
        start = len(data)
        for _ in range(width):
            data.append(len(data) - target)
        data += bytes([10 << 2] * width)
        target = start
    return bytes(data) + bytes([len(data) - target, 10 << 2, 1])


def test_depth():
    value = tq.decode_flexbuffer(nest(31, 1))
    for _ in range(31):
        (value,) = value
    assert value == []
    with pytest.raises(tq.ModelError, match="more than 32 deep"):
        tq.decode_flexbuffer(nest(32, 1))


def test_shared_vectors_do_not_explode():
    assert tq.decode_flexbuffer(nest(3, 2)) == [[[[], []]] * 2] * 2
    data = nest(30, 3)
    tracemalloc.start()
    with pytest.raises(tq.ModelError, match="are they shared"):
        tq.decode_flexbuffer(data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_shared_keys_of_many_maps_are_no_explosion():
    value = [{"a key of some length": index, "and another one": None} for index in range(3000)]
    assert tq.decode_flexbuffer(built(lambda b: add(b, value))) == value


def test_refusing_leaks_nothing():
    cut = bytearray(built(lambda b: add(b, [{"key": ["text", b"blob", 2.5, 12345]}] * 50)))
    cut[-6] ^= 0x80  # the type of one of the last elements: what is before it has become objects by then
    assert decode_or_refuse(cut) is None

    def measure():
        for _ in range(50):
            decode_or_refuse(nest(30, 3))
            decode_or_refuse(cut)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    first = [measure() for _ in range(3)][-1]
    assert measure() - first < 4096
    tracemalloc.stop()


# ---- operators ----


def options_of(content):
    model = tq.Model(build_model([tensor("x", [1])], [operator("Own", [0], [0], custom_options=content)]))
    op = model.operators[0]
    assert op.custom_options == content
    return op.options_type, op.options


def test_options():
    value = {"alpha": 0.5, "axes": [1, 2], "name": "x"}
    assert options_of(flexbuffers.Dumps(value)) == ("flexbuffer", value)
    node = ["AddV2", "\x12\x05AddV2"]
    assert options_of(built(lambda b: add(b, node))) == ("flexbuffer", node)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01\x04\x01",  # the number 1, as Ethos-U's driver happens to write
        b"\x03\x00\x2c\x01",  # a typed vector
        struct.pack("<3i", 1, 2, 2),  # a C struct
        flexbuffers.Dumps({"a": "text"})[1:],
    ],
)
def test_options_that_are_no_flexbuffer(content):
    assert options_of(content) == (None, {})


@pytest.mark.corpus
def test_options_of_real_models(corpus):
    decoded = 0
    for path in corpus:
        try:
            model = tq.Model(path)
        except tq.ModelError:
            continue
        for graph in model.subgraphs:
            for op in graph.operators:
                if op.options_type != "flexbuffer":
                    continue
                try:
                    expected = flexbuffers.Loads(op.custom_options)
                except UnicodeDecodeError:
                    continue
                assert same(op.options, expected), (path, op.index)
                decoded += 1
    assert decoded
