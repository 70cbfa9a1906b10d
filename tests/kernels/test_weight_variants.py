# SPDX-License-Identifier: Apache-2.0
"""Quantized weights and ranges of arrays have the same bits with every instruction set and any number of threads,
whether they are asked for or made while a model is written."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from repository import import_path

import tq

SHAPES = [(1, 1), (3, 7), (16, 65), (257, 33), (5, 3, 3, 71), (1024, 1031), (1, 3, 3, 40000)]
LAYOUTS = [("int8", None), ("int4", None), ("int2", None), ("int16", None), ("int4", 32), ("int8", 64)]


def add_quantized(e, weights, axis, dtype, block_size, label):
    """A new buffer with quantized weights, which are computed when the model is written."""
    index = e.add_buffer()
    return index, tq._core._quantize_into(e.buffer_node(index), weights, axis, dtype, block_size, label)


def weights(shape):
    """Weights of all magnitudes, with ties under each channel's scale, their neighbours, signed zeros and denormals."""
    rng = np.random.default_rng(shape)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 4, (*shape[:-1], 1))
    most = np.abs(values).max(axis=-1, keepdims=True)
    for steps in (254, 14):  # halves of values of 8 and of 4 bits
        halves = np.float32(rng.integers(-steps, steps + 1, shape) / steps * most)
        halves = np.nextafter(halves, halves * rng.integers(0, 3, shape, np.int32).astype(np.float32))
        values = np.where(rng.random(shape) < 0.2, np.clip(halves, -most, most), values)
    values[rng.random(shape) < 0.05] = -0.0
    values[rng.random(shape) < 0.02] = 1e-42
    return values.astype(np.float32)


def digest():
    total = hashlib.sha256()
    for shape in SHAPES:
        w = weights(shape)
        for dtype, block in LAYOUTS:
            for axis in (None, *range(w.ndim)):
                if (block and (axis is None or shape[axis] % block)) or (not block and dtype == "int2" and axis):
                    continue
                rules = ["mlir"] if dtype == "int8" and not block else ["ai-edge-quantizer"]
                for rule in rules if block else [*rules, "tflite"]:
                    made = tq.quantize_weights(w, axis, dtype, rule=rule, block_size=block)
                    total.update(made.codes.tobytes() + np.asarray(made.scale).tobytes())
        for bad in (False, True):
            if bad:
                w.ravel()[:: max(1, w.size // 5)] = [np.nan, np.inf, -np.inf, 1, 2, 3][
                    : len(w.ravel()[:: max(1, w.size // 5)])
                ]
            for values in (w, w.astype(np.float64)):
                for axis in (None, 0, w.ndim - 1):
                    seen = tq.MinMaxObserver(axis).update(values)
                    for item in (seen.min, seen.max, seen.count, seen.nan_count, seen.infinite_count):
                        total.update(np.asarray(item).tobytes())
    return total.hexdigest()


def digest_with(**environment):
    path = os.pathsep.join(import_path(__file__))
    done = subprocess.run(
        [sys.executable, "-c", "import test_weight_variants as t; print(t.digest())"],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def scalar():
    return digest_with(TQ_DISABLE_CPU="avx512,avx2,neon", TQ_NUM_THREADS="1")


@pytest.mark.parametrize("mask", ["", "avx512"])
def test_instruction_sets_agree(mask, scalar):
    assert digest_with(TQ_DISABLE_CPU=mask, TQ_NUM_THREADS="1") == scalar


@pytest.mark.parametrize("threads", ["2", "5"])
def test_threads_agree(threads, scalar):
    assert digest_with(TQ_NUM_THREADS=threads) == scalar


def model(w):
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, w.shape[1]]), b.tensor("y", [1, w.shape[0]])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", w), None], [y])
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (33, 129), (1024, 1031), (700, 1024)])
@pytest.mark.parametrize(
    ("recipe", "dtype", "block"),
    [("dynamic_int8", "int8", None), ("weight_only_int4", "int4", None), ("blockwise_int4", "int4", 32)],
)
def test_what_is_made_while_a_model_is_written(shape, recipe, dtype, block, tmp_path):
    w = weights(shape)
    if block and shape[1] % block:
        block = None
    expected = tq.quantize_weights(w, 1 if block else 0, dtype, block_size=block)
    path = tmp_path / "out.tflite"
    made = tq.quantize_model(model(w), recipe, min_elements=0, output=path)
    assert path.read_bytes() == made
    found = next(t for t in tq.Model(made).tensors if t.name == "w")
    np.testing.assert_array_equal(np.asarray(found.data, np.int8), expected.codes)
    np.testing.assert_array_equal(np.asarray(found.quantization.scale, np.float32).ravel(), np.ravel(expected.scale))


@pytest.mark.parametrize("looked_at", [False, True])
def test_quantized_values_can_be_read_before_they_are_written(looked_at, tmp_path):
    w = weights((64, 96))
    expected = tq.quantize_weights(w, 0, "int4")
    with tq.edit(model(w)) as e:
        buffer, shape = add_quantized(e, w, 0, "int4", None, "these")
        again, _ = add_quantized(e, w, 0, "int8", None, "those")
        for name, index in (("codes", buffer), ("others", again)):
            made = e.main.add_tensor(name, w.shape, "float32")
            made.become_quantized(index, "int4" if name == "codes" else "int8", 0)
            assert made.quantization.scale_count == 64 == shape[0]
        if looked_at:
            np.testing.assert_array_equal(e.tensors["codes"].quantization.scale, expected.scale)
            np.testing.assert_array_equal(e.scales_of_buffer(buffer), expected.scale)
        written = e.to_bytes()  # made in place
        e.save(tmp_path / "a.tflite")  # made on the way to a file
        shared = e.to_bytes(share_constants=True)
        np.testing.assert_array_equal(np.asarray(e.tensors["codes"].data, np.int8), expected.codes)  # made to stay
        assert e.to_bytes() == written == (tmp_path / "a.tflite").read_bytes() == shared
    found = tq.Model(written).tensors
    np.testing.assert_array_equal(np.asarray(found["codes"].data, np.int8), expected.codes)
    np.testing.assert_array_equal(found["codes"].quantization.scale, expected.scale)
    np.testing.assert_array_equal(found["others"].data, tq.quantize_weights(w, 0).codes)
    np.testing.assert_array_equal(found["others"].quantization.scale, tq.quantize_weights(w, 0).scale)


def test_quantized_constants_are_refused_where_they_do_not_fit():
    with tq.edit(model(weights((4, 4)))) as e:
        ones = np.ones((2, 2), np.float32)
        with pytest.raises(ValueError, match="16 bits"):
            add_quantized(e, ones, 0, "int16", None, "these")
        with pytest.raises(ValueError, match="needs 'int8'"):
            add_quantized(e, ones, 0, "uint8", None, "these")
        for node in (e.root, None):
            with pytest.raises(TypeError, match="a table Buffer is needed"):
                tq._core._quantize_into(node, ones, 0, "int8", None, "these")
            with pytest.raises(TypeError, match="a table Tensor is needed"):
                tq._core._become_quantized(node, e._buffers[0], 0, 9, 0)
            with pytest.raises(TypeError, match="a table Buffer is needed"):
                tq._core._scales_of(node)
        with pytest.raises(ValueError, match="no quantized weights that are yet to be made"):
            e.tensors["w"].become_quantized(0, "int8", 0)
        e.tensors["w"].quantization = None
        other = tq.edit(model(ones))
        with pytest.raises(ValueError, match="another model"):
            tq._core._become_quantized(e.tensors["w"].node, other._buffers[0], 0, 9, 0)
        e.tensors["w"].quantization = None
        e.to_bytes()


@pytest.mark.parametrize(("axis", "shape"), [(0, (5, 300)), (1, (5, 300)), (None, (5, 300)), (0, (3, 200000))])
def test_non_finite_weights_are_reported_when_they_are_written(axis, shape, tmp_path):
    w = np.ones(shape, np.float32)
    w[2, 3] = np.nan
    channel = {0: 2, 1: 3, None: 0}[axis]
    with tq.edit(model(np.ones((4, 4), np.float32))) as e:
        index, _ = add_quantized(e, w, axis, "int8", None, "these weights")
        tensor = e.main.add_tensor("codes", shape, "float32")
        tensor.become_quantized(index, "int8", axis or 0)
        words = f"these weights: w holds nan in channel {channel}; weights must be finite"
        actions = e.to_bytes, lambda: e.save(tmp_path / "out"), lambda: tensor.data, lambda: e.scales_of_buffer(index)
        for action in actions:
            with pytest.raises(ValueError, match=words):
                action()
        tensor.buffer = 0
        tensor.quantization = None
        e._buffers[index].set("data", None)
        e.to_bytes()
    assert os.listdir(tmp_path) == []


def test_many_quantized_values_move_behind_a_flatbuffer_that_would_be_too_large():
    w = weights((64, 96))
    with tq.edit(model(w)) as e:
        index, _ = add_quantized(e, w, 0, "int8", None, "w")
        e.tensors["w"].buffer = index
        e.tensors["w"].type = "int8"
        e._store()
        whole = e.tree.write()
        data = e.tree.write(limit=len(whole) - 64)
        e.to_bytes()
    assert len(data) > 0 and data != whole
    np.testing.assert_array_equal(tq.Model(data).tensors["w"].data, tq.quantize_weights(w, 0).codes)


def layers(rows, wrong=()):
    """A model of products of one input, those at places `wrong` with a last weight that is no number."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 400])
    for place, count in enumerate(rows):
        w = weights((count, 400))
        if place in wrong:
            w[-1, -1] = np.nan
        y = b.tensor(f"y{place}", [1, count])
        b.operator("FULLY_CONNECTED", [x, b.constant(f"w{place}", w), None], [y])
        b.output(y)
    return b.to_bytes()


def test_threads_that_make_several_constants(monkeypatch):
    rows = (400, 300, 500, 2, 900)
    data = layers(rows)
    monkeypatch.setenv("TQ_NUM_THREADS", "1")
    alone = tq.quantize_model(data, "dynamic_int4", min_elements=0)
    monkeypatch.setenv("TQ_NUM_THREADS", "4")
    assert all(tq.quantize_model(data, "dynamic_int4", min_elements=0) == alone for _ in range(20))
    for place, count in enumerate(rows):
        found = tq.Model(alone).tensors[f"w{place}"]
        expected = tq.quantize_weights(weights((count, 400)), 0, "int4")
        np.testing.assert_array_equal(np.asarray(found.data, np.int8), expected.codes)


def test_the_first_of_several_wrong_constants_is_named(monkeypatch):
    """Though others are done before it."""
    monkeypatch.setenv("TQ_NUM_THREADS", "4")
    data = layers((2, 2, 2000, 2, 2), wrong=(2, 3, 4))
    for _ in range(20):
        with pytest.raises(ValueError, match=r"^<tq tensor 'w2': FLOAT32 .*: w holds nan in channel 1999"):
            tq.quantize_model(data, "dynamic_int8", min_elements=0)


def test_weights_that_lie_anywhere_in_memory():
    data = model(weights((64, 96)))
    expected = tq.quantize_model(data, "dynamic_int8")
    for shift in range(1, 4):
        moved = tq.Model(memoryview(bytes(shift) + data)[shift:])
        assert tq.quantize_model(moved, "dynamic_int8") == expected


def test_quantized_values_of_a_constant_of_the_same_model():
    w = weights((64, 96))
    with tq.edit(model(w)) as e:
        tensor = e.tensors["w"]
        source, node = e._buffers[tensor.buffer], e._buffers[e.add_buffer()]
        for shape in [(64, 95), (64, 96, 2), (-1, 96), (0, 96), (1 << 62, 1 << 62)]:
            assert tq._core._quantize_from(node, source, shape, 0, "int8", None, "w") is None
        assert tq._core._quantize_from(node, e._buffers[0], (64, 96), 0, "int8", None, "w") is None
        assert tq._core._quantize_from(node, source, (64, 96), 0, "int8", None, "w") == (64,)
        assert (
            tq._core._quantize_from(e._buffers[e.add_buffer()], node, (64, 24), 0, "int8", None, "w") is None
        )  # not yet made
        with pytest.raises(ValueError, match="another model"):
            tq._core._quantize_from(node, tq.edit(model(w))._buffers[0], (64, 96), 0, "int8", None, "w")
        for wrong in [("w", source), (node, "w"), (e.root, source)]:
            with pytest.raises(TypeError):
                tq._core._quantize_from(*wrong, (64, 96), 0, "int8", None, "w")
        with pytest.raises(ValueError, match="no quantized weights that are yet to be made"):
            tq._core._become_quantized(tensor.node, source, 1, 9, 0)
        for wrong in [(source, node), (tensor.node, tensor.node)]:
            with pytest.raises(TypeError):
                tq._core._become_quantized(*wrong, 1, 9, 0)
        tensor.node.set("buffer", 0)
        e.to_bytes()


def test_float16_rounds_and_limits_as_numpy(tmp_path):
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 32, (64, 1031), np.uint64).astype(np.uint32)
    w = bits.view(np.float32)
    w[~np.isfinite(w)] = 1e30
    w.ravel()[:8] = [65504, 65505, -65519.99, 65520, -65536, 2.0**-25, 1.5 * 2.0**-24, -0.0]
    with np.errstate(over="ignore"):
        expected = np.clip(w, -65504, 65504).astype(np.float16)
    made = tq.quantize_model(model(w), "float16", output=tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").read_bytes() == made
    np.testing.assert_array_equal(tq.Model(made).tensors["w"].data.view(np.uint16), expected.view(np.uint16))
    for shift in range(1, 4):
        assert tq.quantize_model(tq.Model(memoryview(bytes(shift) + model(w))[shift:]), "float16") == made
    with tq.edit(model(w)) as e:
        node, source = e._buffers[e.add_buffer()], e._buffers[e.tensors["w"].buffer]
        assert not tq._core._halves_from(node, source, (64, 1030))
        with pytest.raises(TypeError):
            tq._core._halves_from(node, "w", w.shape)
        e.to_bytes()


@pytest.mark.parametrize(("value", "words"), [(np.nan, "holds NaN; weights must"), (np.inf, "nothing to quantize")])
def test_float16_of_nan_and_infinity(value, words):
    w = np.ones((4, 5), np.float32)
    w[1, 2] = value
    with pytest.raises(ValueError, match=words):
        tq.quantize_model(model(w), "float16")
