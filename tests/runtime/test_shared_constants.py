# SPDX-License-Identifier: Apache-2.0
"""Interpreters of one open model have packed weights, and what else is made of constants, in common; nobody can tell
but by memory and time."""

import os
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest
from leaks import assert_no_leak, needs_own_memory
from models import build_model, operator, tensor
from repository import import_path

import tq

pytestmark = needs_own_memory

RNG = np.random.default_rng(5)
CHANNELS = 48
NUMERICS = ("reference", "optimized", "xnnpack")


def convolution():
    """Floats: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED of float16 weights, BATCH_MATMUL."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, 6, 6, CHANNELS])

    def constant(name, *shape, dtype=np.float32):
        return b.constant(name, RNG.standard_normal(shape).astype(dtype))

    def step(code, inputs, shape, **options):
        out = b.tensor(f"{code}{len(b.tensors)}", shape)
        b.operator(code, inputs, [out], **options)
        return out

    strides = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    bias = step("DEQUANTIZE", [constant("b", CHANNELS, dtype=np.float16)], [CHANNELS])  # small: computed in prepare
    y = step("CONV_2D", [x, constant("w", CHANNELS, 3, 3, CHANNELS), bias], [1, 6, 6, CHANNELS], **strides)
    y = step(
        "DEPTHWISE_CONV_2D", [y, constant("d", 1, 3, 3, CHANNELS), constant("e", CHANNELS)], [1, 6, 6, CHANNELS],
        depth_multiplier=1, **strides,
    )  # fmt: skip
    size = b.constant("size", np.array([1, 12, 12, 8], np.int32))
    twice = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    y = step("TRANSPOSE_CONV", [size, constant("t", 8, 3, 3, CHANNELS), y], [1, 12, 12, 8], **twice)
    y = step("RESHAPE", [y, b.constant("flat", np.array([12, 96], np.int32))], [12, 96])
    wide = b.tensor("wide", [40, 96])
    b.operator("DEQUANTIZE", [b.constant("half", RNG.standard_normal((40, 96)).astype(np.float16))], [wide])
    y = step("FULLY_CONNECTED", [y, wide], [12, 40])
    y = step("BATCH_MATMUL", [y, constant("m", 40, 8)], [12, 8])
    b.output(y)
    return b.to_bytes()


def hybrid():
    """Quantized values of 8 and 4 bits beside floats, and a constant that is both unpacked and read."""
    weights = RNG.integers(-127, 128, (CHANNELS, 64)).astype(np.int8)
    nibbles = RNG.integers(0, 256, CHANNELS * CHANNELS // 2).astype(np.uint8)
    return build_model(
        tensors=[
            tensor("x", [3, 64]),
            tensor("w", [CHANNELS, 64], "INT8", data=weights, scale=[0.01] * CHANNELS, zero_point=[0] * CHANNELS),
            tensor("y", [3, CHANNELS]),
            tensor("v", [CHANNELS, CHANNELS], "INT4", data=nibbles.tobytes(), scale=0.1, zero_point=0),
            tensor("z", [3, CHANNELS]),
        ],
        operators=[
            operator("FULLY_CONNECTED", [0, 1, -1], [2]),
            operator("FULLY_CONNECTED", [2, 3, -1], [4]),
        ],
        inputs=[0],
        outputs=[4],
    )


MODELS = {"floats": convolution(), "hybrid": hybrid()}
MODELS["codes"] = tq.quantize_model(
    MODELS["floats"], "int8", calibration=[RNG.standard_normal((1, 6, 6, CHANNELS), np.float32)]
)


def sample(model, seed):
    made = tq.Model(model) if isinstance(model, bytes) else model
    return np.random.default_rng(seed).standard_normal(made.subgraphs[0].inputs[0].shape).astype(np.float32)


def open_run(model, numerics="reference"):
    made = tq.Interpreter(model=model, numerics=numerics)
    made.allocate_tensors()
    return made


def result(made, seed=0):
    made.set_tensor(made.get_input_details()[0]["index"], sample(made.model, seed))
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])


def alone(data, numerics, seed=0):
    return result(open_run(tq.Model(data), numerics), seed)


@pytest.mark.parametrize("name", MODELS)
def test_the_second_interpreter_takes_no_memory_for_them(name):
    model = tq.Model(MODELS[name])
    first = open_run(model)
    wanted = result(first)
    second = open_run(model)
    few, many = second._memory_used()[0], first._memory_used()[0]
    bytes_of_constants = sum(t.nbytes for t in model.subgraphs[0].tensors if t.is_constant)
    assert many - few >= bytes_of_constants // 2
    del first
    np.testing.assert_array_equal(result(second), wanted)
    third = open_run(model)
    assert third._memory_used()[0] == few
    np.testing.assert_array_equal(result(third), wanted)
    del second, third
    assert open_run(model)._memory_used()[0] == many  # they went with the last user


def least_limit(model):
    """The least max_memory that a first run needs."""

    def is_enough(limit):
        try:
            made = tq.Interpreter(model=model, max_memory=limit, numerics="reference")
            made.allocate_tensors()
            result(made)
        except tq.Error as error:
            assert error.code == "MEMORY_LIMIT"
            return False
        return True

    low, high = 0, 1 << 22
    assert is_enough(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@pytest.mark.parametrize("name", MODELS)
def test_a_limit_counts_what_others_have_too(name):
    model = tq.Model(MODELS[name])
    limit = least_limit(model)
    assert limit > sum(t.nbytes for t in model.subgraphs[0].tensors if t.is_constant)
    first = open_run(model)
    assert least_limit(model) == limit  # before they are made
    result(first)
    assert least_limit(model) == limit


@pytest.mark.parametrize("name", MODELS)
def test_each_numerics_has_its_own(name):
    model = tq.Model(MODELS[name])
    made = {numerics: open_run(model, numerics) for numerics in NUMERICS}
    for numerics, run in made.items():
        np.testing.assert_array_equal(result(run), alone(MODELS[name], numerics), err_msg=numerics)


@pytest.mark.parametrize("channels", [3, 8, 20])  # filter rows that fit a vector, and not; more than 16 in place
def test_images_of_other_sizes(channels):
    """Small images are copied with their padding, for which weights are packed another way."""
    b = tq.ModelBuilder()
    x, weights = b.input("x", [1, 6, 6, channels]), RNG.standard_normal((CHANNELS, 3, 3, channels)).astype(np.float32)
    y = b.tensor("y", [1, 6, 6, CHANNELS])
    b.operator("CONV_2D", [x, b.constant("w", weights)], [y], padding="SAME", stride_h=1, stride_w=1)
    b.output(y)
    sample = RNG.standard_normal((1, 6, 6, channels), np.float32)
    data = tq.quantize_model(b.to_bytes(), "int8", calibration=[sample])
    images = [RNG.standard_normal(size, np.float32) for size in product((1, 2), (6, 60), (5, 70), (channels,))]

    def resized(model, image):
        made = tq.Interpreter(model=model, numerics="reference")
        made.resize_tensor_input(0, image.shape)
        made.allocate_tensors()
        return made

    def run(made, image):
        made.set_tensor(0, image)
        made.invoke()
        return made.get_tensor(made.get_output_details()[0]["index"])

    model = tq.Model(data)
    together = [resized(model, image) for image in images]
    for made, image in zip(together, images, strict=True):
        np.testing.assert_array_equal(run(made, image), run(resized(tq.Model(data), image), image))


def large():
    """Weights that take a while to pack."""
    weights = RNG.standard_normal((1500, 1500)).astype(np.float32)
    return build_model(
        tensors=[tensor("x", [1, 1500]), tensor("w", [1500, 1500], data=weights), tensor("y", [1, 1500])],
        operators=[operator("FULLY_CONNECTED", [0, 1, -1], [2])],
        inputs=[0],
        outputs=[2],
    )


@pytest.mark.parametrize("name", [*MODELS, "large"])
def test_first_runs_that_race(name):
    data = MODELS[name] if name in MODELS else large()
    wanted = {numerics: alone(data, numerics) for numerics in NUMERICS}
    for _round in range(6):
        model, got, failed = tq.Model(data), [], []
        gate = threading.Barrier(8)

        def work(numerics, model=model, gate=gate, got=got, failed=failed):
            try:
                gate.wait()
                got.append((numerics, result(open_run(model, numerics))))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(NUMERICS[n // 3],)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed and len(got) == 8
        for numerics, array in got:
            np.testing.assert_array_equal(array, wanted[numerics])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_others_make_them():
    """The child's copies of threads that packed, or had the table's lock, do not go on: it takes over from them."""
    script = """
import os, signal, sys, threading, time
sys.path[:0] = sys.argv[1:]
from test_shared_constants import *
data, parents = large(), 0
wanted = alone(data, "reference")
for turn in range(24):
    model = tq.Model(data)
    threads = [threading.Thread(target=lambda: result(open_run(model))) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(turn * 1e-4)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if np.array_equal(result(open_run(model)), wanted) else 1)
    parents += any(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join()
    assert os.waitpid(child, 0)[1] == 0
assert parents > 1, "no thread was at work"
"""
    command = [sys.executable, "-W", "ignore", "-c", script, *import_path(__file__)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_view_outlives_all_users():
    model = tq.Model(MODELS["floats"])
    wide = next(t for t in model.subgraphs[0].tensors if t.name == "wide")
    made = open_run(model)
    view = made.tensor(wide.index)()
    kept = view.copy()
    assert not view.flags.writeable
    del made
    other = open_run(model)
    result(other)
    np.testing.assert_array_equal(view, kept)


def test_preparing_again_takes_no_more_memory():
    """The memory that another shape takes is an arena's."""
    weights = RNG.standard_normal((400, 96)).astype(np.float32)
    data = build_model(
        tensors=[tensor("x", [1, 96]), tensor("w", [400, 96], data=weights), tensor("y", [1, 400])],
        operators=[operator("FULLY_CONNECTED", [0, 1, -1], [2])],
        inputs=[0],
        outputs=[2],
    )
    made = tq.Interpreter(model_content=data, max_memory=290_000)  # once the weights, not twice
    for rows in (1, 3, 2):
        made.resize_tensor_input(0, [rows, 96])
        made.allocate_tensors()
        x = RNG.standard_normal((rows, 96)).astype(np.float32)
        made.set_tensor(0, x)
        made.invoke()
        np.testing.assert_allclose(made.get_tensor(2), x @ weights.T, rtol=1e-4, atol=1e-4)


def test_preparing_again_finds_what_prepare_computed():
    """The bias is computed in prepare, and has to be where it was for the packed weights to be found."""
    weights, half = RNG.standard_normal((400, 96)).astype(np.float32), RNG.standard_normal(400).astype(np.float16)
    tensors = [
        tensor("x", [1, 96]),
        tensor("w", [400, 96], data=weights),
        tensor("h", [200], "FLOAT16", data=half[:200]),
        tensor("b", [200]),
        tensor("c", [400]),
        tensor("y", [1, 400]),
    ]
    operators = [
        operator("DEQUANTIZE", [2], [3]),
        operator("CONCATENATION", [3, 3], [4], axis=0),
        operator("FULLY_CONNECTED", [0, 1, 4], [5]),
    ]
    model = tq.Model(build_model(tensors, operators, [0], [5]))
    runs, bias = [open_run(model) for _ in range(3)], np.tile(half[:200], 2).astype(np.float32)
    used = [run._memory_used()[0] for run in runs]
    assert used[0] - used[1] >= weights.nbytes and used[1] == used[2]
    for rows in (1, 3, 2, 1):
        for made in runs:
            made.resize_tensor_input(0, [rows, 96])
            made.allocate_tensors()
            x = RNG.standard_normal((rows, 96)).astype(np.float32)
            made.set_tensor(0, x)
            made.invoke()
            np.testing.assert_allclose(made.get_tensor(5), x @ weights.T + bias, rtol=1e-4, atol=1e-4)
        del runs[0]
        runs.append(open_run(model))
        assert runs[-1]._memory_used()[0] == used[1]


def test_constants_that_follow_from_shapes_are_nobody_elses():
    """The weights are the number of rows, and so is what is packed of them."""
    tensors = [
        tensor("x", [1, 32]),
        tensor("shape", [2], "INT32"),
        tensor("floats", [2]),
        tensor("first", [1], "INT32", data=np.array([0], np.int32)),
        tensor("one", [1], "INT32", data=np.array([1], np.int32)),
        tensor("rows", [1]),
        tensor("tiles", [2], "INT32", data=np.array([32, 32], np.int32)),
        tensor("flat", [2], "INT32", data=np.array([1, 1], np.int32)),
        tensor("row", [1, 1]),
        tensor("w", [32, 32]),
        tensor("y", [1, 32]),
    ]
    operators = [
        operator("SHAPE", [0], [1], out_type="INT32"),
        operator("CAST", [1], [2]),
        operator("SLICE", [2, 3, 4], [5]),
        operator("RESHAPE", [5, 7], [8]),
        operator("TILE", [8, 6], [9]),
        operator("FULLY_CONNECTED", [0, 9, -1], [10]),
    ]
    model, runs = tq.Model(build_model(tensors, operators, [0], [10])), {}
    for rows in (2, 3, 1):
        made = tq.Interpreter(model=model)
        made.resize_tensor_input(0, [rows, 32])
        made.allocate_tensors()
        assert made._memory_plan(0)[3], "the weights are computed before the first run"
        runs[rows] = made
    for rows, made in runs.items():
        x = np.ones((rows, 32), np.float32)
        made.set_tensor(0, x)
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(10), rows * (x @ np.ones((32, 32), np.float32)))


@pytest.mark.parametrize("name", MODELS)
def test_nothing_leaks(name):
    model = tq.Model(MODELS[name])

    def use():
        made = [open_run(model, numerics) for numerics in ("reference", "reference", "xnnpack")]
        for run in made:
            result(run)

    assert_no_leak(use, 60)


def test_a_depthwise_convolution_is_packed_for_each_size_of_its_input():
    """Its integer weights may be packed for the rows of its scan, which a resized input changes."""
    rng = np.random.default_rng(3)
    q = {"scale": 0.1, "zero_point": 3}
    weights = tensor(
        "w", [1, 3, 3, 8], "INT8", rng.integers(-127, 128, [1, 3, 3, 8], np.int8), scale=0.01, zero_point=0
    )
    tensors = [tensor("x", [1, 9, 21, 8], "INT8", **q), weights, tensor("y", [1, 9, 21, 8], "INT8", **q)]
    tensors.append(tensor("b", [8], "INT32", np.arange(8, dtype=np.int32), scale=0.001, zero_point=0))
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    content = build_model(tensors, [operator("DEPTHWISE_CONV_2D", [0, 1, 3], [2], **options)], [0], [2])

    def result(interpreter, x):
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        return interpreter.get_tensor(2)

    first = tq.Interpreter(model_content=content)
    result(first, np.zeros([1, 9, 21, 8], np.int8))
    for height, width in ((40, 5), (3, 60), (2, 2), (9, 22)):
        x = rng.integers(-128, 128, [1, height, width, 8], np.int8)
        alone = tq.Interpreter(model_content=content)
        for interpreter in (first, alone):
            interpreter.resize_tensor_input(0, x.shape)
        assert result(first, x).tobytes() == result(alone, x).tobytes()
