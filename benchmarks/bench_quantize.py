# SPDX-License-Identifier: Apache-2.0
"""Quantizing a float model with tq and, where they are installed, with ai-edge-quantizer and TensorFlow's converter.

    python benchmarks/bench_quantize.py float.tflite ...
    python benchmarks/bench_quantize.py --mb 100          # a model of that size, of CONV_2D and FULLY_CONNECTED
    python benchmarks/bench_quantize.py --memory ...      # peak memory in place of time
    python benchmarks/bench_quantize.py --converter       # TFLiteConverter on MobileNetV2 with random weights

The peers run interleaved in one process.  Prints, for each model and recipe, the best of --runs for each and their
ratio.  int8 has 16 random samples, and is for models of one input with a signature.
"""

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import tq

PEERS = {
    "dynamic_int8": "dynamic_wi8_afp32",
    "dynamic_int4": "dynamic_wi4_afp32",
    "weight_only_int8": "weight_only_wi8_afp32",
    "weight_only_int4": "weight_only_wi4_afp32",
    "blockwise_int4": "dynamic_wi4b32_afp32",
    "int8": "static_wi8_ai8",
}
SAMPLES = 16


def samples(path):
    (tensor,) = tq.Model(path).inputs
    return np.random.default_rng(0).uniform(-1, 1, (SAMPLES, *tensor.shape)).astype(np.float32)


def with_tq(path, recipe):
    inputs = list(samples(path)) if recipe == "int8" else None
    return lambda: tq.quantize_model(path, recipe, calibration=inputs, min_elements=0)


def with_peer(path, recipe):
    from ai_edge_quantizer import quantizer
    from ai_edge_quantizer import recipe as recipes

    data = None
    if recipe == "int8":
        (signature,) = tq.Model(path).signatures
        (name,) = signature.inputs
        data = {signature.key: [{name: value} for value in samples(path)]}

    def run():
        made = quantizer.Quantizer(path)
        made.load_quantization_recipe(getattr(recipes, PEERS[recipe])())
        return made.quantize(made.calibrate(data) if data else None).quantized_model

    return run


MAKERS = {"tq": with_tq, "ai-edge-quantizer": with_peer}


def large_model(path, megabytes, channels=512, width=2048):
    """Convolutions and matrix products, of some megabytes each but for few channels."""
    rng = np.random.default_rng(0)
    b = tq.ModelBuilder()
    x = last = b.input("x", [1, 8, 8, channels])

    def weights(*shape):
        return b.constant(f"w{shape}{len(b.tensors)}", rng.standard_normal(shape, np.float32) / shape[-1] ** 0.5)

    for place in range(max(1, round((megabytes - 38) / 9.4))):
        y = b.tensor(f"conv{place}", [1, 8, 8, channels])
        inputs = [last, weights(channels, 3, 3, channels), weights(channels)]
        b.operator("CONV_2D", inputs, [y], padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU")
        last = y
    y = b.tensor("flat", [1, channels])
    b.operator("MEAN", [last, b.constant("axes", np.array([1, 2], np.int32))], [y])
    last, columns = y, channels
    for place in range(3):
        y = b.tensor(f"dense{place}", [1, width])
        b.operator("FULLY_CONNECTED", [last, weights(width, columns), weights(width)], [y])
        last, columns = y, width
    b.output(last)
    b.signature(inputs={"x": x}, outputs={"y": last})
    b.save(path)


# ---- time ----


@contextlib.contextmanager
def silence():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


clock = time.perf_counter


def seconds(function):
    with silence():
        start = clock()
        function()
        return clock() - start


def measure_time(path, recipe, makers, runs):
    functions = [make(path, recipe) for make in makers]
    times = [[seconds(function) for function in functions] for _ in range(runs)]
    best = [min(column) for column in zip(*times, strict=True)]
    ratio = f"  {best[1] / best[0]:.1f} times" if len(best) > 1 else ""
    print(f"{path}  {recipe:18}" + "".join(f"{1e3 * value:9.1f} ms" for value in best) + ratio)


def measure_converter(runs):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    network = tf.keras.applications.MobileNetV2(weights=None)
    with silence():
        model = tf.lite.TFLiteConverter.from_keras_model(network).convert()
    inputs = [value[None] for value in np.random.default_rng(0).uniform(-1, 1, (SAMPLES, 224, 224, 3)).astype("f4")]

    def convert():
        converter = tf.lite.TFLiteConverter.from_keras_model(network)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([value] for value in inputs)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        return converter.convert()

    both = [(seconds(lambda: tq.quantize_model(model, calibration=inputs)), seconds(convert)) for _ in range(runs)]
    best = [min(column) for column in zip(*both, strict=True)]
    print(f"MobileNetV2  int8  tq {best[0]:.3f} s  TFLiteConverter {best[1]:.2f} s  {best[1] / best[0]:.1f} times")


# ---- memory ----


def resident(key):
    """MiB of this process: VmRSS now, VmHWM at its highest since the last reset."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(key))


def report_memory(who, path, recipe):
    """In a process of its own: the growth of memory by quantizing, beyond the file and the result."""
    with tempfile.TemporaryDirectory() as folder, silence():
        large_model(f"{folder}/small.tflite", 1, channels=32, width=32)
        MAKERS[who](f"{folder}/small.tflite", recipe)()  # imports and caches do not count
    function = MAKERS[who](path, recipe)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident("VmRSS")
    with silence():
        result = function()
    grown, size, made = resident("VmHWM") - before, os.path.getsize(path) / 2**20, len(result) / 2**20
    beyond = max(0.0, grown - size - made)
    print(
        f"{path}  {recipe:18} {who:18} grows by {grown:.1f} MiB: file {size:.1f}, result {made:.1f}, "
        f"beyond {beyond:.1f} ({beyond / size:.2f} of the file)"
    )


def measure_memory(path, recipe, makers):
    for who, make in MAKERS.items():
        if make in makers:
            command = [sys.executable, __file__, "--memory-of", who, recipe, path]
            print(subprocess.run(command, capture_output=True, text=True, check=True).stdout, end="", flush=True)


def main():
    global clock
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--mb", type=float, help="also a model of this size")
    parser.add_argument("--recipe", action="append", choices=PEERS, help="only these")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="processor time of all threads, for a busy machine")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--converter", action="store_true")
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cpu:
        clock = time.process_time
    if args.memory_of:
        return report_memory(args.memory_of[0], args.models[0], args.memory_of[1])
    makers = [with_tq]
    with contextlib.suppress(ImportError):
        import ai_edge_quantizer  # noqa: F401

        makers.append(with_peer)
    with tempfile.TemporaryDirectory() as folder:
        if args.mb:
            args.models.append(os.path.join(folder, f"{args.mb:g}MB.tflite"))
            large_model(args.models[-1], args.mb)
        for path in args.models:
            for recipe in args.recipe or PEERS:
                if args.memory:
                    measure_memory(path, recipe, makers)
                else:
                    measure_time(path, recipe, makers, args.runs)
    if args.converter:
        measure_converter(args.runs)


if __name__ == "__main__":
    main()
