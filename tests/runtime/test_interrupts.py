# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while operators compute: heard soon, in every walk that they share, and the interpreter goes on."""

import signal
import threading
import time

import delays
import generators
import numpy as np
import pytest
from interrupts import ended_by_ctrl_c
from models import build_model, make_model, operator, pack, subgraph, tensor

import tq

NUMERICS = ("reference", "optimized", "xnnpack")
HEARD = 0.1  # seconds, of the thread's own time


def windows(size, window):
    """STABLEHLO_REDUCE_WINDOW: a window of `window` cells for each of `size` elements, of which padding is most."""
    body = subgraph([tensor(n, []) for n in "abc"], [operator("ADD", [0, 1], [2])], [0, 1], [2])
    options = {"window_dimensions": [window], "window_strides": [1], "base_dilations": [1], "window_dilations": [1]}
    options |= {"padding": [window - 1, 0], "body_subgraph_index": 1}
    tensors = [tensor("x", [size]), tensor("start", [], data=np.float32(0)), tensor("y", [size])]
    main = subgraph(tensors, [operator("STABLEHLO_REDUCE_WINDOW", [0, 1], [2], **options)], [0], [2])
    return pack(make_model(subgraphs=[main, body]))


def one(name, inputs, output, types=None, **options):
    """A model of one operator; inputs: shapes, or arrays of constants."""
    tensors, fed = [], []
    for i, item in enumerate(inputs):
        if isinstance(item, np.ndarray):
            tensors.append(tensor(f"k{i}", list(item.shape), item.dtype.name.upper(), data=item))
        else:
            tensors.append(tensor(f"x{i}", item, (types or {}).get(i, "FLOAT32")))
            fed.append(i)
    tensors.append(tensor("y", output, (types or {}).get("y", "FLOAT32")))
    count = len(inputs)
    return build_model(
        tensors=tensors, operators=[operator(name, list(range(count)), [count], **options)], inputs=fed, outputs=[count]
    )


LONG = {  # models that compute for seconds, each in a walk of its own
    "matrix product": lambda: one("BATCH_MATMUL", [[4096, 4096], [4096, 4096]], [4096, 4096]),
    "local response": lambda: one(
        "LOCAL_RESPONSE_NORMALIZATION", [[1, 1, 1, 400_000]], [1, 1, 1, 400_000],
        radius=200_000, bias=1.0, alpha=1.0, beta=0.5,
    ),
    "windows": lambda: windows(100_000, 100_000),
    "transform": lambda: one(
        "RFFT2D", [[1, 4096, 4096], np.array([4096, 4096], np.int32)], [1, 4096, 2049], {"y": "COMPLEX64"}
    ),
    "pool": lambda: one(
        "AVERAGE_POOL_2D", [[1, 2000, 2000, 1]], [1, 2000, 2000, 1],
        padding="SAME", stride_h=1, stride_w=1, filter_height=301, filter_width=301,
    ),
    "volume": lambda: one(
        "CONV_3D", [[1, 64, 64, 64, 16], np.ones((9, 9, 9, 16, 16), np.float32)], [1, 64, 64, 64, 16],
        padding="SAME", stride_d=1, stride_h=1, stride_w=1,
        dilation_d_factor=1, dilation_h_factor=1, dilation_w_factor=1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_what_would_take_seconds(name, threads):
    """And is heard soon: of the time after it, this process takes no more than a tenth of a second a thread."""
    made = tq.Interpreter(model_content=LONG[name](), num_threads=threads)
    made.allocate_tensors()
    pressed = []

    def handler(*_):
        signal.default_int_handler(signal.SIGINT, None)

    def press():
        pressed.append(time.process_time())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.2, press)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                made.invoke()
        heard = time.process_time()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert heard - pressed[0] < HEARD * threads


@pytest.mark.parametrize("numerics", NUMERICS)
def test_the_next_invoke_is_right(numerics):
    data = one("BATCH_MATMUL", [[1500, 1500], [1500, 1500]], [1500, 1500])
    made = tq.Interpreter(model_content=data, num_threads=2, numerics=numerics)
    made.allocate_tensors()
    x = np.random.default_rng(0).normal(size=(1500, 1500)).astype(np.float32)
    with ended_by_ctrl_c(0.05, start=False) as start:
        start()
        for _ in range(1000):
            made.invoke()
    for index in (0, 1):
        made.set_tensor(index, x)
    made.invoke()
    again = tq.Interpreter(model_content=data, num_threads=2, numerics=numerics)
    again.allocate_tensors()
    for index in (0, 1):
        again.set_tensor(index, x)
    again.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), again.get_tensor(2))


def constant_windows():
    """A constant that takes seconds to compute, and an operator of it."""
    body = subgraph([tensor(n, []) for n in "abc"], [operator("ADD", [0, 1], [2])], [0, 1], [2])
    options = {"window_dimensions": [100_000], "window_strides": [1], "base_dilations": [1], "window_dilations": [1]}
    options |= {"padding": [99_999, 0], "body_subgraph_index": 1}
    tensors = [
        tensor("k", [100_000], data=np.zeros(100_000, np.float32)),
        tensor("start", [], data=np.float32(0)),
        tensor("y", [100_000]),
        tensor("x", [100_000]),
        tensor("z", [100_000]),
    ]
    steps = [operator("STABLEHLO_REDUCE_WINDOW", [0, 1], [2], **options), operator("ADD", [2, 3], [4])]
    return pack(make_model(subgraphs=[subgraph(tensors, steps, [3], [4]), body]))


def test_ctrl_c_while_a_constant_is_folded_is_raised_there():
    made = tq.Interpreter(model_content=constant_windows())
    with ended_by_ctrl_c():
        made.allocate_tensors()
    with pytest.raises(RuntimeError, match="not ready"):
        made.invoke()  # and no KeyboardInterrupt is left over


def test_ctrl_c_while_packing_is_not_kept():
    """Weights that another interpreter shares are packed anew."""
    weights = np.random.default_rng(0).normal(size=(3000, 3000)).astype(np.float32)
    data = one("FULLY_CONNECTED", [[1, 3000], weights, np.zeros(3000, np.float32)], [1, 3000])
    model = tq.Model(data)
    x = np.ones((1, 3000), np.float32)
    for _ in range(5):
        made = tq.Interpreter(model=model)
        made.allocate_tensors()
        made.set_tensor(0, x)
        with ended_by_ctrl_c(0.002, start=False) as start:
            start()
            for _ in range(100_000):
                made.invoke()
        made.invoke()
        np.testing.assert_allclose(made.get_tensor(3)[0], weights.sum(axis=1), rtol=1e-2, atol=1e-2)


SLOWEST = ["BATCH_MATMUL", "CONV_2D", "CUMSUM", "RESIZE_BILINEAR", "SOFTMAX", "TOPK_V2", "TRANSPOSE", "UNIQUE"]


@pytest.mark.parametrize("operator", SLOWEST)
def test_every_operator_hears_ctrl_c(operator):
    rows = [row for row in generators.rows(operator) if row[1] in ("float32", "int8")]
    found = list(
        delays.measure(rows, 1000, HEARD, cases=1, numerics=("xnnpack",), threads=(1,), show=lambda *_, **__: 0)
    )
    assert not found


@pytest.mark.thorough
@pytest.mark.parametrize("operator", sorted({operator for operator, _ in generators.rows()}))
def test_every_operator_hears_ctrl_c_on_large_tensors(operator):
    assert not list(delays.measure(generators.rows(operator), 2000, HEARD, cases=2, show=lambda *_, **__: 0))
