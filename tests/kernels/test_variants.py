# SPDX-License-Identifier: Apache-2.0
"""Every variant of every elementwise kernel equals the scalar one, bit for bit; dispatch; and the pool of threads.
The variants of the products are in test_product_variants.py and test_blockwise.py."""

import ctypes
import itertools
import json
import mmap
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from oracles import RANGES, floats_for

import tq
from tq import _core

ALL = _core.kernel_variants()
ROWS = [row for row in ALL if not row["name"].startswith(("gemm_", "winograd_", "depthwise_", "blockwise_"))]
ISAS = sorted({row["isa"] for row in ROWS if row["available"] and row["isa"] != "scalar"})
AVX512 = {"avx512", "avx512vnni", "avx512vbmi"}  # each is built on the first
LONGEST = 4 * 4 * 16  # four blocks of four of the widest vectors
SHORT = {
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
}
RULES = {
    "double": "double",
    "single": "single",
    "up": "up",
    "float64_away": "float64-away",
    "float32_even": "float32-even",
}

pytestmark = pytest.mark.skipif(not ISAS, reason="this machine has only scalar kernels")


def names():
    return sorted({row["name"] for row in ROWS if row["isa"] in ISAS})


def dtype_of(name):
    return ml_dtypes.bfloat16 if name == "bf16" else np.dtype(SHORT[name])


def inputs(kind, scale, out, rng, count):
    if kind in ("f32", "f64", "f16", "bf16"):
        x = floats_for(np.float32(scale), 0, out, rng, count)
        rng.shuffle(x)
        with np.errstate(all="ignore"):
            return np.resize(x, count).astype(dtype_of(kind))
    low, high = RANGES[SHORT[kind]]
    x = np.concatenate(
        [rng.integers(low, high + 1, count // 2), np.clip(rng.integers(-30000, 30000, count // 2), low, high)]
    )
    rng.shuffle(x)
    x[:: max(count // 7, 1)] = low
    x[3 :: max(count // 5, 1)] = high
    return x.astype(SHORT[kind])


def calls(name, rng, count):
    """(input, function of an input and an out) pairs that reach the kernel: a row, then lanes."""
    operation, of, to = name.rsplit("_", 2)
    zero = {"u8": 100, "u16": 3000}.get(to, -3)
    many = np.arange(count)
    if operation == "dequantize":
        scales = (0.01 + many * 1e-4).astype(np.float32)
        zeros = np.resize([0, 3, 7], count) if of != "i32" else np.zeros(count, int)
        x = inputs(of, 1, "int8", rng, count)
        fixed = 0 if of == "i32" else 3
        for s, z, axis in [(0.05, fixed, None), (scales, zeros, 0), (scales, fixed, 0), (0.05, 3, None)]:
            yield (
                x,
                np.dtype(np.float32),
                lambda x, out, n, s=s, z=z, axis=axis: tq.dequantize(x, *cut(n, s, z, axis), axis=axis, out=out),
            )
    elif operation.startswith("quantize"):
        rule = operation.split("_")[1]
        for scale in (0.0235, 2.0**-3, 2.0**-126, 2.0**127):
            x = inputs(of, scale, SHORT[to], rng, count)
            scales = np.float32(scale) * (np.float32(1) + (many % 97).astype(np.float32) / 100)
            zeros = np.resize([zero, 0, 5, RANGES[SHORT[to]][1], RANGES[SHORT[to]][0]], count)
            for s, z, axis, narrow in [
                (scale, zero, None, False),
                (scale, zero, None, True),
                (scales if scale < 1e9 else scale, zeros, 0, False),
                (scales if scale < 1e9 else scale, zero, 0, False),
            ]:
                yield (
                    x,
                    np.dtype(SHORT[to]),
                    lambda x, out, n, s=s, z=z, axis=axis, narrow=narrow: tq.quantize(
                        x, *cut(n, s, z, axis), axis=axis, dtype=SHORT[to], narrow_range=narrow, rounding=rule, out=out
                    ),
                )
    elif operation.startswith("requantize"):
        rule = RULES[operation.split("_", 1)[1]]
        x = inputs(of, 1, "int8", rng, count)
        spread = [2.0 ** (k % 37 - 34) * (1 + k % 5 / 7) for k in range(count)]
        for m, z, zi, axis in [
            (0.0031, zero, 0, None),
            (2.0**-8, zero, 2, None),
            (1.7, 0, 1, None),
            (0.9, 0, 0, None),
            (700.3, zero, 0, None),
            (2.0**-33, zero, 0, None),
            (np.array(spread), np.resize([zero, 0, 9], count), np.resize([0, 1, 2], count), 0),
            (np.array(spread), 0, 0, 0),
            (1e-3 * (1 + many % 13), zero, 0, 0),
        ]:
            yield (
                x,
                np.dtype(SHORT[to]),
                lambda x, out, n, m=m, z=z, zi=zi, axis=axis: tq.requantize(
                    x,
                    *cut(n, m, z, axis),
                    input_zero_point=cut(n, zi, 0, axis)[0],
                    axis=axis,
                    dtype=SHORT[to],
                    rounding=rule,
                    out=out,
                ),
            )
    elif to == "f32":  # convert, on the way into quantize
        x = inputs(of, 1.0, "int8", rng, count)
        if of != "f64":
            x = np.concatenate([np.arange(65536).astype(np.uint16).view(dtype_of(of)), x])[-count:]
        yield x, np.dtype(np.int16), lambda x, out, n: tq.quantize(x, 2.0**-8, dtype="int16", rounding="even", out=out)
    else:  # convert, on the way out of dequantize
        x = rng.integers(-(2**31), 2**31, count).astype(np.int32)
        for s in (2.0**-30, 2.0**-46, 1e-3, 1e30):
            yield x, np.dtype(dtype_of(to)), lambda x, out, n, s=s: tq.dequantize(x, s, dtype=dtype_of(to), out=out)


def cut(n, a, b, axis):
    return [v[:n] if axis is not None and np.ndim(v) else v for v in (a, b)]


def run(isa, function, x, dtype, n):
    out = np.empty(n, dtype)
    _core._force_isa(isa)
    try:
        function(x, out, n)
    finally:
        _core._force_isa(None)
    return out.tobytes()


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("isa", ISAS)
def test_every_length(isa, name):
    if not any(row["name"] == name and row["isa"] == isa for row in ROWS):
        pytest.skip("no such row")
    rng = np.random.default_rng(1)
    for case, (x, dtype, function) in enumerate(calls(name, rng, 1100)):
        for n in [*range(LONGEST + 3), 1000, 1100]:
            at = (n * 7) % (1100 - n + 1)
            part = x[at : at + n]
            assert run(isa, function, part, dtype, n) == run("scalar", function, part, dtype, n), (case, n)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("isa", ISAS)
def test_many_values(isa, name):
    rng = np.random.default_rng(2)
    for case, (x, dtype, function) in enumerate(calls(name, rng, 20000)):
        assert run(isa, function, x, dtype, len(x)) == run("scalar", function, x, dtype, len(x)), case


@pytest.mark.parametrize("isa", ISAS)
def test_every_misalignment(isa):
    rng = np.random.default_rng(3)
    memory, target = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    for name in [
        "quantize_away_f32_i8",
        "quantize_even_f32_i16",
        "dequantize_u8_f32",
        "requantize_double_i32_i8",
        "requantize_up_i8_u8",
    ]:
        _, of, to = name.rsplit("_", 2)
        size, out_size = np.dtype(SHORT[of]).itemsize, np.dtype(SHORT[to]).itemsize
        for x, dtype, function in itertools.islice(calls(name, rng, 150), 3):
            expected = run("scalar", function, x, dtype, 150)
            for a, b in itertools.product(range(0, 64, size), range(0, 64, out_size)):
                source = memory[a : a + 150 * size].view(SHORT[of])
                source[:] = x
                target[:] = 0xEE
                out = target[b : b + 150 * out_size].view(SHORT[to])
                _core._force_isa(isa)
                try:
                    function(source, out, 150)
                finally:
                    _core._force_isa(None)
                assert out.tobytes() == expected
                assert (target[:b] == 0xEE).all() and (target[b + 150 * out_size :] == 0xEE).all()


ROW_CASES = [
    ((150, 64), 3),
    ((150, 65), 0),
    ((90, 100), 12),
    ((40, 129), 1),
    ((30, 256), 12),
    ((9, 1000), 7),
    ((5, 3300), 12),
    ((3, 9001), 5),
    ((18, 3200), 12),
    ((18, 3200), 1),
    ((300, 72), 3),
    ((6, 7, 70), 12),
    ((3, 40, 64), 2),
    ((2, 3, 3500), 0),
    ((40, 5, 31), 9),
]


def tied(rng, scale, shape):
    """Half of them ties, or next to ties; the others anything; some infinite, or no number."""
    x = (rng.integers(-150, 150, shape) + np.float32(0.5)).astype(np.float32) * scale
    x = np.nextafter(
        x, np.float32(np.inf) * rng.choice([-1, 1], shape).astype(np.float32), where=rng.random(shape) < 0.5, out=x
    )
    x = np.where(rng.random(shape) < 0.5, x, rng.normal(0, 60, shape).astype(np.float32) * scale)
    x.ravel()[::997] = [np.inf, -np.inf, np.nan, 3e38][len(shape) % 4]
    return x.astype(np.float32)


@pytest.mark.parametrize("shape,shift", ROW_CASES)
@pytest.mark.parametrize("isa", ISAS)
def test_rows_that_follow_each_other(isa, shape, shift):
    """Blocks go on from row to row, and hold the parameters of two; along rows, parameters begin again."""
    rng = np.random.default_rng(6)
    size = int(np.prod(shape))
    memory, target, reals = (
        np.empty(size + 16, np.float32),
        np.empty(size + 16, np.int8),
        np.empty(size + 16, np.float32),
    )
    for axis in range(len(shape)):
        of_axis = [-1 if i == axis else 1 for i in range(len(shape))]
        scale = rng.uniform(0.01, 0.2, shape[axis]).astype(np.float32)
        x = memory[shift : shift + size].reshape(shape)
        x[:] = tied(rng, scale.reshape(of_axis), shape)
        zeros = rng.integers(-128, 128, shape[axis])
        for zero, rule, threads in [(0, "away", 1), (zeros, "away", 1), (3, "even", 2), (zeros, "even", 3)]:
            found = []
            for name in (isa, "scalar"):
                _core._force_isa(name if threads == 1 else None)  # forcing is of this thread
                try:
                    q = target[shift * 5 % 16 :][:size].reshape(shape)
                    q[:] = 77
                    if threads == 1 or name == isa:
                        tq.quantize(x, scale, zero, axis=axis, rounding=rule, out=q, num_threads=threads)
                    else:
                        _core._force_isa("scalar")
                        tq.quantize(x, scale, zero, axis=axis, rounding=rule, out=q, num_threads=1)
                    y = reals[shift * 3 % 16 :][:size].reshape(shape)
                    tq.dequantize(q, scale, zero, axis=axis, out=y, num_threads=threads)
                    narrow = tq.quantize(x, scale, 0, axis=axis, dtype="int4", rounding=rule)
                    wide = tq.quantize(x, scale, 5, axis=axis, dtype="int16", rounding=rule)
                    with np.errstate(all="ignore"):
                        half = tq.quantize(x.astype(np.float16), scale, zero, axis=axis, rounding=rule)
                finally:
                    _core._force_isa(None)
                found.append([a.tobytes() for a in (q, y, narrow, wide, half)])
            assert found[0] == found[1], (axis, rule, threads)


@pytest.mark.parametrize("position", [0, 7, 2046, 2047, 2048, 2063, 3199])
def test_one_slope_that_is_infinite(position):
    """Anywhere among the parameters: in a block of its own, and in a row that begins with it."""
    rng = np.random.default_rng(8)
    scale = rng.uniform(0.01, 0.2, 3200).astype(np.float32)
    scale[position] = 2e-38
    memory = np.empty(18 * 3200 + 16, np.float32)
    for zero, shift in itertools.product((0, rng.integers(-128, 128, 3200)), (0, 1, 12)):
        x = memory[shift : shift + 18 * 3200].reshape(18, 3200)
        x[:] = tied(rng, scale, x.shape)
        found = tq.quantize(x, scale, zero, axis=1, num_threads=1)
        _core._force_isa("scalar")
        try:
            assert found.tobytes() == tq.quantize(x, scale, zero, axis=1, num_threads=1).tobytes()
        finally:
            _core._force_isa(None)


@pytest.mark.parametrize("kind,low,high", [("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1)])
@pytest.mark.parametrize("isa", [*ISAS, "scalar"])
def test_narrow_values_in_bytes_of_their_own(isa, kind, low, high):
    """ml_dtypes keeps zeros above a value, and whatever is there is nothing to a reader."""
    rng = np.random.default_rng(9)
    dtype, mask = getattr(ml_dtypes, kind), high - low
    for shape in [(0,), (1,), (77,), (70, 64), (33, 300), (3, 9000), (1, 20001)]:
        codes = rng.integers(low, high + 1, shape).astype(np.int8)
        dirty = ((codes & mask) | (rng.integers(0, 256, shape) & ~mask)).astype(np.uint8).view(dtype)
        scale = np.exp2(rng.integers(-3, 3, shape[-1])).astype(np.float32)
        x = codes * scale
        _core._force_isa(isa)
        try:
            for axis, of_axis in [(None, np.float32(0.25)), (len(shape) - 1, scale)]:
                found = tq.dequantize(dirty, of_axis, low, axis=axis, num_threads=1)
                assert (found == (codes.astype(np.float32) - low) * of_axis).all()
                half = tq.dequantize(dirty, of_axis, low, axis=axis, dtype="float16", num_threads=1)
                assert (half == found.astype(np.float16)).all()
            for rule in ("away", "even"):
                q = tq.quantize(x, scale, axis=len(shape) - 1, dtype=dtype, rounding=rule, num_threads=1)
                assert (q.view(np.uint8) == (codes & mask)).all()
                ties = tq.quantize(x + scale * np.float32(0.5), scale, axis=-1, dtype=dtype, rounding=rule)
                wide = tq.quantize(x + scale * np.float32(0.5), scale, axis=-1, dtype=kind, rounding=rule)
                assert (ties.view(np.uint8) == (wide.astype(np.int8) & mask)).all()
        finally:
            _core._force_isa(None)


class Guarded:
    """Pages between two that fault when touched."""

    def __init__(self, pages=2):
        self.page, self.size = mmap.PAGESIZE, pages * mmap.PAGESIZE
        self.map = mmap.mmap(-1, self.size + 2 * self.page)
        self.base = np.frombuffer(self.map, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        for at in (0, self.page + self.size):
            assert libc.mprotect(ctypes.c_void_p(self.base.ctypes.data + at), self.page, 0) == 0

    def last(self, n, dtype):
        size = n * np.dtype(dtype).itemsize
        return self.base[self.page + self.size - size : self.page + self.size].view(dtype)

    def first(self, n, dtype):
        return self.base[self.page : self.page + n * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
@pytest.mark.parametrize("isa", [*ISAS, "scalar"])
def test_nothing_outside_the_arrays_is_touched(isa):
    rng = np.random.default_rng(4)
    source, target = Guarded(), Guarded()
    for name in names():
        for x, dtype, function in itertools.islice(calls(name, rng, LONGEST + 4), 0, 9, 2):
            if dtype.num >= 256 or x.dtype.num >= 256:
                continue
            for n in [*range(0, 70), 127, 128, 129, LONGEST, LONGEST + 4]:
                for place in ("first", "last"):
                    a, b = getattr(source, place)(n, x.dtype), getattr(target, place)(n, dtype)
                    a[:] = x[:n]
                    _core._force_isa(isa)
                    try:
                        function(a, b, n)
                    finally:
                        _core._force_isa(None)


@pytest.mark.parametrize("isa", [*ISAS, "scalar"])
def test_arrays_beyond_the_caches(isa):
    """Non-temporal stores begin on aligned addresses, and have ends."""
    rng = np.random.default_rng(5)
    n = 2**24 + 77
    x = rng.normal(0, 3, n).astype(np.float32)
    expected = (lambda t: np.copysign(np.floor(np.abs(t) + 0.5), t))(x[-10000:] / np.float32(0.05)).astype(np.float64)
    expected = np.clip(expected + 3, -128, 127).astype(np.int8)
    for start in (0, 1, 5):
        out = np.full(n + 64, 99, np.int8)
        _core._force_isa(isa)
        try:
            tq.quantize(x[start:], 0.05, 3, out=out[start + 32 : n + 32])
            back = np.full(n + 64, 99, np.float32)
            tq.dequantize(out[start + 32 : n + 32], 0.05, 3, out=back[start + 7 : n + 7])
        finally:
            _core._force_isa(None)
        assert (out[: start + 32] == 99).all() and (out[n + 32 :] == 99).all()
        assert (back[: start + 7] == 99).all() and (back[n + 7 :] == 99).all()
        assert (out[n + 32 - 10000 : n + 32] == expected).all()
        codes = out[start + 32 : n + 32].astype(np.int32) - 3
        assert (back[start + 7 : n + 7] == codes.astype(np.float32) * np.float32(0.05)).all()


# ---- dispatch ----


def best(name, rows):
    return [row["isa"] for row in rows if row["name"] == name and row["chosen"]]


def test_listing():
    keys = {(row["name"], row["isa"]) for row in ROWS}
    assert len(keys) == len(ROWS)
    for name in {row["name"] for row in ROWS}:
        assert (name, "scalar") in keys, "the scalar row is the definition"
        assert len(best(name, ROWS)) == 1
    assert all(row["available"] for row in ROWS if row["chosen"])


@pytest.mark.parametrize(
    "mask,gone",
    [
        ("avx512", AVX512),
        ("avx2", {"avx2", "avxvnni", *AVX512}),
        ("avx512vnni", {"avx512vnni", "avx512vbmi"}),
        ("avx512,avx2,neon", {"avx2", "avxvnni", *AVX512, "neon", "dotprod"}),
        (" neon, nonsense", {"neon", "dotprod"}),
        ("", set()),
        ("scalar", set()),
    ],
)
def test_the_environment_masks_instruction_sets(mask, gone):
    script = "import tq, json; print(json.dumps([r['isa'] for r in tq._core.kernel_variants() if r['available']]))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"TQ_DISABLE_CPU": mask},
        check=True,
    )
    assert set(json.loads(done.stdout)) == {row["isa"] for row in ALL if row["available"]} - gone


def test_forcing_is_refused_for_what_is_not_there():
    with pytest.raises(ValueError, match="isa is 'sse9'"):
        _core._force_isa("sse9")


# ---- threads ----


def work(seed):
    x = np.random.default_rng(seed).normal(0, 3, 300_000).astype(np.float32)
    return tq.quantize(x, 0.05, num_threads=3).tobytes() == tq.quantize(x, 0.05, num_threads=1).tobytes()


def test_many_callers_at_once():
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(all(work(k) for _ in range(20)))) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_pool_survives_fork():
    script = """
import os, signal, sys, threading, numpy as np, tq
x = np.random.default_rng(0).normal(0, 3, 300_000).astype(np.float32)
expected = tq.quantize(x, 0.05, num_threads=1).tobytes()
stop = False
def busy():
    while not stop:
        tq.quantize(x, 0.05, num_threads=3)
thread = threading.Thread(target=busy, daemon=True)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        good = all(tq.quantize(x, 0.05, num_threads=3).tobytes() == expected for _ in range(5))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
thread.join()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_threads_to_be_had():
    """With no room for stacks, the caller does the work alone."""
    script = """
import resource, numpy as np, tq
x = np.random.default_rng(0).normal(0, 3, 300_000).astype(np.float32)
expected = tq.quantize(x, 0.05, num_threads=1).tobytes()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
out = np.empty(x.shape, np.int8)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, used + 2**20))
assert tq.quantize(x, 0.05, num_threads=4, out=out).tobytes() == expected
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("uses RLIMIT_AS")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_environment_sets_the_number_of_threads():
    script = """
import threading, os, numpy as np, tq
x = np.zeros(2**21, np.float32)
tq.quantize(x, 0.05)
print(len(os.listdir("/proc/self/task")))
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("counts tasks in /proc")
    counts = {}
    for wanted in ("1", "3"):
        env = os.environ | {"TQ_NUM_THREADS": wanted, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)
        counts[wanted] = int(done.stdout)
    assert counts["3"] == counts["1"] + 2
