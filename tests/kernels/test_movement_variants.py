# SPDX-License-Identifier: Apache-2.0
"""Operators whose loops are compiled for several instruction sets and run on threads give the same bits with each:
large random models, run with instruction sets masked and on several threads."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from models import build_model, operator, tensor
from repository import import_path

import tq

FLOATS, CODES = ("float32",), ("int8", "uint8", "int16")
I32 = np.int32


def pool(size, stride):
    sides = {"stride_w": stride, "stride_h": stride, "filter_width": size, "filter_height": size}
    return {"padding": "SAME", "fused_activation_function": "RELU", **sides}


def cases():
    """name, input type, input shape, constants, options."""
    for type in FLOATS + CODES:
        for shape, size in (([2, 59, 57, 61], 3), ([1, 13, 14, 300], 12), ([1, 40, 40, 1], 2)):
            for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", *(["L2_POOL_2D"] if type == "float32" else [])):
                yield name, type, shape, [], pool(size, 2)
        yield "RESIZE_BILINEAR", type, [2, 9, 11, 37], [I32([140, 33])], {}
        yield "RESIZE_BILINEAR", type, [1, 30, 31, 3], [I32([61, 200])], {"half_pixel_centers": True}
        nearest = {"align_corners": True}
        yield "RESIZE_NEAREST_NEIGHBOR", type, [2, 9, 11, 37], [I32([140, 133])], nearest
        for axes in ([1, 2], [3], [0, 2], [0, 1, 2, 3]):
            for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
                yield name, type, [3, 11, 13, 530], [I32(axes)], {"keep_dims": True}
        for axes in ([1], [0]):
            for name in ("REDUCE_MAX", "REDUCE_MIN"):
                yield name, type, [130, 70], [I32(axes)], {}
        if type == "float32":
            for rows, length in ((3, 5), (37, 70), (5, 1030), (2, 17000)):
                yield "SOFTMAX", type, [rows, length], [], {"beta": 1.5}
                yield "SUM", type, [rows, length], [I32([1])], {}
        for order in ([0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 1, 0]):
            yield "TRANSPOSE", type, [2, 61, 35, 67], [I32(order)], {}
        for rows in (2, 3, 4, 5, 9, 15, 17):
            for shape in ([rows, 1030], [1030, rows]):
                yield "TRANSPOSE", type, shape, [I32([1, 0])], {}
        pads = I32([[0, 0], [3, 2], [0, 1], [0, 0]])
        yield "PAD", type, [1, 190, 191, 33], [pads], {}
        yield "SLICE", type, [3, 90, 91, 43], [I32([1, 2, 3, 1]), I32([2, 85, 80, 41])], {}
        yield "SLICE", type, [30000, 43], [I32([5, 1]), I32([29990, 41])], {}
        yield "TILE", type, [3, 5, 71], [I32([7, 2, 50])], {}
        if type != "int16":
            for length in (2, 6, 21, 64):
                yield "ARG_MAX", type, [3700, length], [I32(1)], {"output_type": "INT32"}
            yield "ARG_MIN", type, [600, 301], [I32(-1)], {"output_type": "INT64"}
            yield "ARG_MAX", type, [5, 33, 517], [I32(1)], {"output_type": "INT32"}
    for axes in ([1], [0], [0, 1]):
        for name in ("REDUCE_ANY", "REDUCE_ALL"):
            yield name, "bool", [130, 70], [I32(axes)], {}


def digest(threads):
    """A hash of what all cases compute."""
    total = hashlib.sha256()
    for number, (name, type, shape, constants, options) in enumerate(cases()):
        rng = np.random.default_rng(number)
        scale = {"scale": 0.05, "zero_point": 0} if type in CODES else {}
        out = options.get("output_type", type)
        tensors = [tensor("x", shape, type, **scale)]
        tensors += [tensor(f"c{k}", list(value.shape), "INT32", value) for k, value in enumerate(constants)]
        tensors.append(tensor("y", [1] * len(shape), out, **({} if name.startswith("ARG") else scale)))
        last = len(tensors) - 1
        item = operator(name, list(range(last)), [last], **options, version=2)
        interpreter = tq.Interpreter(model_content=build_model(tensors, [item], [0], [last]), num_threads=threads)
        interpreter.allocate_tensors()
        if type in CODES:
            values = rng.integers(np.iinfo(type).min, np.iinfo(type).max, shape, type, endpoint=True)
        elif type == "bool":
            values = rng.random(shape) < (0.01 if name == "REDUCE_ANY" else 0.99)
        else:
            values = np.where(rng.random(shape) < 0.02, np.nan, rng.normal(size=shape)).astype(type)
            values = values if name.startswith(("ARG", "MAX", "REDUCE")) else np.nan_to_num(values)
        interpreter.set_tensor(0, values)
        interpreter.invoke()
        result = interpreter.get_tensor(last)
        total.update(f"{number} {result.shape} {result.dtype}".encode() + result.tobytes())
    return total.hexdigest()


def digest_with(mask):
    """The digest on one thread of a process in which these instruction sets are masked."""
    path = os.pathsep.join(import_path(__file__))
    code = "import test_movement_variants as t; print(t.digest(1))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TQ_DISABLE_CPU": mask, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def scalar():
    return digest_with("avx512,avx2,neon")


@pytest.mark.parametrize("mask", ["", "avx512"])
def test_instruction_sets_agree(mask, scalar):
    assert digest_with(mask) == scalar


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_agree(threads, scalar):
    assert digest(threads) == scalar


@pytest.mark.parametrize("type", ["float32", "int64", "int16", "bool"])
@pytest.mark.parametrize(
    "shape, order",
    [
        ([270, 300], [1, 0]),
        *(([261, few], [1, 0]) for few in (2, 3, 4, 5, 12)),
        *(([few, 261], [1, 0]) for few in (2, 3, 4, 5, 12)),
        ([2, 3, 7, 300], [0, 2, 3, 1]),
        ([512, 130], [1, 0]),
        ([130, 512], [1, 0]),
        ([6, 35, 4, 19], [3, 2, 1, 0]),
    ],
)
def test_transpose_equals_numpy(type, shape, order):
    out = [shape[d] for d in order]
    tensors = [tensor("x", shape, type), tensor("order", [len(order)], "INT32", I32(order)), tensor("y", out, type)]
    interpreter = tq.Interpreter(model_content=build_model(tensors, [operator("TRANSPOSE", [0, 1], [2])], [0], [2]))
    interpreter.allocate_tensors()
    values = np.random.default_rng(0).integers(0, 2 if type == "bool" else 1 << 20, shape).astype(type)
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), values.transpose(order))
