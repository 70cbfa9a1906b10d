# SPDX-License-Identifier: Apache-2.0
"""Opening and reading give back their memory: Python objects are counted, C memory and mappings are measured."""

import contextlib
import gc
import os
import sys
from pathlib import Path

import leaks
import numpy as np
import pytest
import zoo
from damage import damaged
from leaks import assert_no_leak
from walk import open_and_walk, walk

import tq

pytestmark = leaks.needs_own_memory
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")


def test_opening_and_closing():
    data = zoo.MODELS["conv"]
    assert_no_leak(lambda: tq.Model(data), 5_000)


def test_opening_files(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(zoo.MODELS["external"])
    assert_no_leak(lambda: tq.Model(path), 2_000)


def test_details():
    model = tq.Model(zoo.MODELS["per_axis"])
    assert_no_leak(model.get_tensor_details, 1_000)


@pytest.mark.parametrize("name", [make.__name__ for make in zoo.MAKERS])
def test_walking(name):
    data = zoo.MODELS[name]
    assert_no_leak(lambda: walk(tq.Model(data)), 100)


def test_refusals():
    """Exceptions on their way out of C: damaged files, missing files, wrong arguments."""
    broken = [data for data in (damaged(zoo.MODELS["conv"], seed) for seed in range(60)) if not opens(data)]
    assert len(broken) > 5
    model = tq.Model(zoo.MODELS["conv"])

    def refuse():
        for data in broken:
            with pytest.raises(tq.ModelError):
                tq.Model(data)
        for source, kind in ((3, TypeError), ("/nowhere/at/all", OSError), ("/", OSError), (b"", tq.ModelError)):
            with pytest.raises(kind):
                tq.Model(source)
        with pytest.raises(IndexError):
            model.tensors[99]
        with pytest.raises(KeyError):
            model.tensors["none"]
        with pytest.raises(tq.ModelError):
            model.tensors[0].dequantized()

    assert_no_leak(refuse, 100)


def opens(data):
    try:
        tq.Model(data)
    except tq.ModelError:
        return False
    return True


def test_damaged_models():
    cases = [damaged(zoo.MODELS[make.__name__], seed) for make in zoo.MAKERS for seed in range(3)]

    def walk_all():
        for data in cases:
            open_and_walk(data)

    assert_no_leak(walk_all, 60)


@needs_proc
def test_views_keep_the_file_mapped_and_nothing_else_does(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(zoo.MODELS["conv"])

    def is_mapped():
        gc.collect()
        return str(path) in Path("/proc/self/maps").read_text()

    model = tq.Model(path)
    assert is_mapped()
    view = model.tensors[1].data
    expected = view.tolist()
    del model
    assert is_mapped()
    assert view.tolist() == expected
    del view
    assert not is_mapped()

    for part in ("tensors", "operators", "subgraphs", "buffers"):
        item = getattr(tq.Model(path), part)[0]
        assert is_mapped(), part
        assert repr(item)
        del item
        assert not is_mapped(), part


@needs_proc
def test_files_are_not_held_open(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(zoo.MODELS["conv"])
    before = len(os.listdir("/proc/self/fd"))
    models = [tq.Model(path) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(models) == 50


def test_a_cycle_through_a_model_is_collected():
    class Holder(list):
        alive = 0

        def __init__(self):
            Holder.alive += 1

        def __del__(self):
            Holder.alive -= 1

    for _ in range(3):
        holder = Holder()
        holder.append((tq.Model(zoo.MODELS["conv"]), holder))
        del holder
    gc.collect()
    assert Holder.alive == 0


def test_editing_and_building(tmp_path):
    """The editor's cycles (parts know their editor) go with the garbage collector; C memory with them."""
    path = tmp_path / "model.tflite"

    def edit():
        with tq.edit(zoo.MODELS["conv"]) as e:
            e.tensors[0].name = "new"
            e.tensors[0].quantization.scale = [1.0]
            e.tensors["bias"].data = np.int32([1, 2])
            e.metadata["x"] = bytes(5000)
            with contextlib.suppress(ValueError):
                e.operators[0].options["nothing"] = 1
            e.save(path)

    assert_no_leak(edit, 200)
    assert_no_leak(lambda: tq.extract(zoo.MODELS["conv"], ["image"], ["features"]), 200)
    broken = [data for data in (damaged(zoo.MODELS["conv"], seed) for seed in range(200, 260)) if opens(data)]

    def rewrite():
        for data in broken:
            with contextlib.suppress(ValueError):
                tq._core._Tree(tq.Model(data)).write()

    assert_no_leak(rewrite, 20)


@pytest.mark.parametrize("recipe", ["dynamic_int8", "blockwise_int4", "weight_only_int4", "float16", "int8"])
def test_quantizing_gives_the_model_back_at_once(recipe):
    """Without the garbage collector, which may run long after a large file was mapped."""
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64]), b.tensor("y", [1, 32])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", np.ones((32, 64), np.float32)), None], [y])
    b.output(y)
    data = b.to_bytes()
    calibration = [np.ones((1, 64), np.float32)] if recipe == "int8" else None
    tq.quantize_model(data, recipe, calibration=calibration)  # what is imported and kept
    model = tq.Model(data)
    before = sys.getrefcount(model)
    gc.disable()
    try:
        tq.quantize_model(model, recipe, calibration=calibration)
        assert sys.getrefcount(model) == before
    finally:
        gc.enable()
