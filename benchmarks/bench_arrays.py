# SPDX-License-Identifier: Apache-2.0
"""quantize, dequantize and requantize beside a memcpy that moves the same bytes, NumPy, torch, onnxruntime, ml_dtypes.

    python benchmarks/bench_arrays.py [--sizes 1024,65536] [--threads 2]

Peers that are not installed are left out.  Everything runs interleaved in one process, round after round, on buffers
that are there before; a figure is the best round.  Ratios are speeds: 2.00 under "x numpy" means twice NumPy's speed,
0.90 under "x memcpy" means nine tenths of memcpy's.  Timings depend on the machine: compare ratios.
"""

import argparse
import platform
import time
import warnings

import numpy as np

import tq
from tq import _core

SIZES = [16, 1 << 10, 1 << 16, 1 << 20, 1 << 24]
SCALE, ZERO = 0.05, 3


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def best_times(functions, seconds=0.15, rounds=7):
    """The best time of each function a call, over rounds in which each is called in turn."""
    repeats, times = {}, dict.fromkeys(functions, float("inf"))
    for name, f in functions.items():
        f()
        start = time.perf_counter()
        f()
        once = max(time.perf_counter() - start, 1e-7)
        repeats[name] = max(1, int(seconds / rounds / once))
    for _ in range(rounds):
        for name, f in functions.items():
            count = repeats[name]
            inner = max(1, min(count, 20)) if count > 100 else 1
            for _ in range(max(1, count // inner)):
                start = time.perf_counter()
                for _ in range(inner):
                    f()
                times[name] = min(times[name], (time.perf_counter() - start) / inner)
    return times


def turns(first, functions, calls=300):
    """{name: best time of `first` over the function's}, with alternating calls, so that neither finds its own data in
    the caches, as it does in best_times."""
    ratios = {}
    for name, f in functions.items():
        times = [float("inf"), float("inf")]
        for _ in range(calls):
            for k, call in enumerate((first, f)):
                start = time.perf_counter()
                call()
                times[k] = min(times[k], time.perf_counter() - start)
        ratios[name] = times[0] / times[1]
    return ratios


def memcpy(moved):
    source, target = np.ones(moved // 2, np.uint8), np.zeros(moved // 2, np.uint8)
    return lambda: np.copyto(target, source)


RULES = ("double", "single", "up", "float64-away", "float32-even")


def requantizing(acc, multiplier, out, rule="double", zero_point=ZERO, axis=1):
    return lambda: tq.requantize(acc, multiplier, zero_point, axis=axis, rounding=rule, out=out, num_threads=1)


def prepared(acc, multiplier, out, rule="double", zero_point=ZERO, axis=1):
    layer = tq.Requantization(multiplier, zero_point, axis=axis, rounding=rule)
    return lambda: layer.requantize(acc, out=out, num_threads=1)


def onnx_session(op, count, threads=1):
    """A model of one node, its protobuf written out here, so that onnx itself is not needed."""
    import onnxruntime as ort

    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        value = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(value)) + value

    def tensor(name, kind, raw):
        return field(2, kind) + field(8, name) + field(9, raw)

    def value(name, kind):
        shape = field(2, field(1, field(1, count)))
        return field(1, name) + field(2, field(1, field(1, kind) + shape))

    kinds = (1, 3) if op == "QuantizeLinear" else (3, 1)
    node = b"".join(field(1, n) for n in ("x", "s", "z")) + field(2, "y") + field(4, op)
    graph = field(1, node) + field(2, "g") + field(5, tensor("s", 1, np.float32(SCALE).tobytes()))
    graph += (
        field(5, tensor("z", 3, np.int8(ZERO).tobytes()))
        + field(11, value("x", kinds[0]))
        + field(12, value("y", kinds[1]))
    )
    model = field(1, 8) + field(7, graph) + field(8, field(2, 13))
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def bind(x, y):
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y", "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        return lambda: session.run_with_iobinding(binding)

    return bind


def numpy_quantize(x, out):
    np.copyto(out, np.clip(np.round(x / np.float32(SCALE)) + ZERO, -128, 127), casting="unsafe")


def numpy_dequantize(q, out):
    np.multiply(q.astype(np.float32) - ZERO, np.float32(SCALE), out=out)


def numpy_requantize(acc, multiplier, out):
    np.copyto(out, np.clip(np.round(acc * multiplier) + ZERO, -128, 127), casting="unsafe")


def cases(n, missing):
    """(title, bytes moved, {who: function}) for each array of n elements."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 3, n).astype(np.float32)
    q, y = np.empty(n, np.int8), np.empty(n, np.float32)
    quantize = {"tq": lambda: tq.quantize(x, SCALE, ZERO, out=q, num_threads=1), "numpy": lambda: numpy_quantize(x, q)}
    quantized = tq.quantize(x, SCALE, ZERO)
    dequantize = {
        "tq": lambda: tq.dequantize(quantized, SCALE, ZERO, out=y, num_threads=1),
        "numpy": lambda: numpy_dequantize(quantized, y),
    }
    try:
        import torch

        torch.set_num_threads(1)
        tx = torch.from_numpy(x)
        warnings.simplefilter("ignore")  # torch deprecates its quantized tensors
        tq_tensor = torch.quantize_per_tensor(tx, SCALE, ZERO, torch.qint8)
        quantize["torch"] = lambda: torch.quantize_per_tensor(tx, SCALE, ZERO, torch.qint8)
        dequantize["torch"] = lambda: torch.dequantize(tq_tensor)
    except ImportError:
        missing.add("torch")
    try:
        quantize["onnxruntime"] = onnx_session("QuantizeLinear", n)(x, q)
        dequantize["onnxruntime"] = onnx_session("DequantizeLinear", n)(quantized, y)
    except ImportError:
        missing.add("onnxruntime")
    yield "quantize float32 to int8", 5 * n, quantize
    yield "dequantize int8 to float32", 5 * n, dequantize

    channels = 64 if n >= 64 else n
    acc = rng.integers(-30000, 30000, (n // channels, channels)).astype(np.int32)
    multiplier = rng.uniform(0.001, 0.005, channels)
    r = np.empty(acc.shape, np.int8)
    yield (
        "requantize int32 to int8, 64 channels",
        5 * n,
        {"tq": requantizing(acc, multiplier, r), "numpy": lambda: numpy_requantize(acc, multiplier, r)}
        | {f"tq {rule}": requantizing(acc, multiplier, r, rule) for rule in RULES[1:]},
    )
    yield (
        "the same, prepared (Requantization)",
        5 * n,
        {"tq": prepared(acc, multiplier, r), "numpy": lambda: numpy_requantize(acc, multiplier, r)}
        | {f"tq {rule}, prepared": prepared(acc, multiplier, r, rule) for rule in RULES[1:]},
    )

    import ml_dtypes

    q4 = np.empty(n, ml_dtypes.int4)
    codes4 = tq.quantize(x, SCALE, dtype=ml_dtypes.int4)
    yield (
        "quantize float32 to ml_dtypes.int4",
        5 * n,
        {
            "tq": lambda: tq.quantize(x, SCALE, dtype=ml_dtypes.int4, out=q4, num_threads=1),
            "ml_dtypes": lambda: np.copyto(q4, np.clip(np.round(x / np.float32(SCALE)), -8, 7), casting="unsafe"),
        },
    )
    yield (
        "dequantize ml_dtypes.int4 to float32",
        5 * n,
        {
            "tq": lambda: tq.dequantize(codes4, SCALE, out=y, num_threads=1),
            "ml_dtypes": lambda: np.multiply(codes4.astype(np.float32), np.float32(SCALE), out=y),
        },
    )


def line(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def header(*columns):
    line(*columns)
    print("|" + "|".join(" --- " if i == 0 else " ---: " for i, _ in enumerate(columns)) + "|")


def show_peers(sizes):
    missing, others = set(), ["memcpy", "numpy", "torch", "onnxruntime", "ml_dtypes"]
    header("one thread", "elements", "tq, µs", *(f"x {name}" for name in others))
    rules = []
    for n in sizes:
        for title, moved, functions in cases(n, missing):
            times = best_times({"memcpy": memcpy(moved), **functions})
            ratios = [f"{times[name] / times['tq']:.2f}" if name in times else "" for name in others]
            line(title, str(n), f"{times['tq'] * 1e6:.2f}", *ratios)
            rules += [(n, name, times["memcpy"] / t) for name, t in times.items() if name.startswith("tq ")]
    print()
    header("requantize by other rules", "elements", "x memcpy")
    for n, name, ratio in rules:
        line(name[3:], str(n), f"{ratio:.2f}")
    if missing:
        print("\nNot installed:", ", ".join(sorted(missing)))


def show_turns(n=1 << 20):
    """Requantize and memcpy, a call of each by turns."""
    rng = np.random.default_rng(4)
    flat = rng.integers(-30000, 30000, n).astype(np.int32)
    quantized, copy = np.empty(n, np.int8), memcpy(5 * n)

    def row(title, shape, multiplier, rule, zero_point=ZERO, axis=1):
        acc, out = flat.reshape(shape), quantized.reshape(shape)
        ratios = turns(copy, {f: f(acc, multiplier, out, rule, zero_point, axis) for f in (requantizing, prepared)})
        line(f'"{rule}", {title}', *(f"{ratio:.2f}" for ratio in ratios.values()))

    print()
    header(f"requantize, {n} elements, x memcpy, calls by turns", "requantize", "prepared")
    channels, multiplier = (n // 64, 64), rng.uniform(0.001, 0.005, 64)
    for rule in RULES:
        for zero_point in (0, ZERO, -128):
            row(f"64 channels, zero point {zero_point}", channels, multiplier, rule, zero_point)
    row("multipliers of 0.0005 to 0.001", channels, rng.uniform(0.0005, 0.001, 64), "double")
    row("multipliers of 0.0002 to 0.0004", channels, rng.uniform(0.0002, 0.0004, 64), "double")
    row("64 rows", (64, n // 64), multiplier, "double", axis=0)
    row("one multiplier", (n,), 0.003, "double", axis=None)


def axis_functions(n, row):
    rng = np.random.default_rng(1)
    x = rng.normal(0, 3, (n // row, row)).astype(np.float32)
    q, y = np.empty(x.shape, np.int8), np.empty(x.shape, np.float32)
    quantized = tq.quantize(x, SCALE)
    first, last = (rng.uniform(0.02, 0.1, k).astype(np.float32) for k in x.shape)
    zeros = [rng.integers(-5, 6, k) for k in x.shape]
    channels = max(1, min(16, len(x) // 4))
    blocks = len(x) // channels
    x3, q3, y3, quantized3 = (a[: blocks * channels].reshape(blocks, channels, row) for a in (x, q, y, quantized))
    middle = first[:channels]
    return {
        "q": lambda: tq.quantize(x, SCALE, out=q, num_threads=1),
        "q0": lambda: tq.quantize(x, first, axis=0, out=q, num_threads=1),
        "qm": lambda: tq.quantize(x3, middle, axis=1, out=q3, num_threads=1),
        "q1": lambda: tq.quantize(x, last, axis=1, out=q, num_threads=1),
        "q0z": lambda: tq.quantize(x, first, zeros[0], axis=0, out=q, num_threads=1),
        "q1z": lambda: tq.quantize(x, last, zeros[1], axis=1, out=q, num_threads=1),
        "d": lambda: tq.dequantize(quantized, SCALE, out=y, num_threads=1),
        "d0": lambda: tq.dequantize(quantized, first, axis=0, out=y, num_threads=1),
        "dm": lambda: tq.dequantize(quantized3, middle, axis=1, out=y3, num_threads=1),
        "d1": lambda: tq.dequantize(quantized, last, axis=1, out=y, num_threads=1),
        "d0z": lambda: tq.dequantize(quantized, first, zeros[0], axis=0, out=y, num_threads=1),
        "d1z": lambda: tq.dequantize(quantized, last, zeros[1], axis=1, out=y, num_threads=1),
    }


def show_axes(n=1 << 20):
    """Per-axis parameters against per-tensor ones, by the length of a row and the axis; the last two columns have zero
    points (int64) that differ."""
    print()
    columns = ("row", "first axis", "middle axis", "last axis", "first, zero points", "last, zero points")
    header(f"per axis, {n} elements, against per tensor", *columns)
    for row in (16, 64, 65, 100, 256, 1000, 4096, 100000):
        times = best_times(axis_functions(n, row))
        for name, what in (("q", "quantize"), ("d", "dequantize")):
            line(what, str(row), *(f"{times[name] / times[name + axis]:.2f}" for axis in ("0", "m", "1", "0z", "1z")))


def channel_times(n, channels):
    rng = np.random.default_rng(3)
    rows = n // channels
    acc = rng.integers(-30000, 30000, (rows, channels)).astype(np.int32)
    multiplier, out = rng.uniform(0.001, 0.005, channels), np.empty(acc.shape, np.int8)
    functions = {"memcpy": memcpy(5 * acc.size)}
    for rule in ("double", "single"):
        functions[rule] = requantizing(acc, multiplier, out, rule)
        functions[f"{rule}, prepared"] = prepared(acc, multiplier, out, rule)
    return best_times(functions)


def show_channels(n=1 << 20):
    """Requantize by the number of channels, which lie along rows."""
    print()
    columns = ("double", "double, prepared", "single", "single, prepared")
    header(f"requantize, {n} elements, x memcpy", "channels", *columns)
    for channels in (3, 24, 32, 40, 64, 96, 128, 160, 192, 256, 512, 1000):
        times = channel_times(n, channels)
        ratios = [f"{times['memcpy'] / times[name]:.2f}" for name in columns]
        line("", str(channels), *ratios)


def thread_times(n, threads):
    rng = np.random.default_rng(2)
    x = rng.normal(0, 3, n).astype(np.float32)
    acc = rng.integers(-30000, 30000, n).astype(np.int32)
    q, r, y = np.empty(n, np.int8), np.empty(n, np.int8), np.empty(n, np.float32)
    quantized = tq.quantize(x, SCALE)
    functions = {}
    for k in (1, threads):
        functions[f"q{k}"] = lambda k=k: tq.quantize(x, SCALE, out=q, num_threads=k)
        functions[f"d{k}"] = lambda k=k: tq.dequantize(quantized, SCALE, out=y, num_threads=k)
        functions[f"r{k}"] = lambda k=k: tq.requantize(acc, 0.003, out=r, num_threads=k)
    return best_times(functions)


def show_threads(threads):
    print()
    header(f"{threads} threads against one", "elements", "quantize", "dequantize", "requantize")
    for n in (1 << 16, 1 << 18, 1 << 20, 1 << 22):
        times = thread_times(n, threads)
        gains = [f"{times[f'{c}1'] / times[f'{c}{threads}']:.2f}" for c in "qdr"]
        line("", str(n), *gains)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    isas = sorted({row["isa"] for row in _core.kernel_variants() if row["chosen"]})
    print(f"{cpu_name()}; kernels: {', '.join(isas)}; NumPy {np.__version__}\n")
    show_peers([int(n) for n in options.sizes.split(",")])
    show_turns()
    show_channels()
    show_axes()
    show_threads(options.threads)


if __name__ == "__main__":
    main()
