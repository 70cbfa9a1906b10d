# SPDX-License-Identifier: Apache-2.0
"""Quantizing a float model with tq and, where it is installed, with ai-edge-quantizer, interleaved in one process.

    python benchmarks/bench_quantize.py float.tflite ...

Prints, for each model and recipe, the best of --runs for each and their ratio.  int8 has 16 random samples, and is for
models of one input with a signature.
"""

import argparse
import contextlib
import io
import time

import numpy as np

import tq

PEERS = {
    "dynamic_int8": "dynamic_wi8_afp32",
    "dynamic_int4": "dynamic_wi4_afp32",
    "weight_only_int8": "weight_only_wi8_afp32",
    "weight_only_int4": "weight_only_wi4_afp32",
    "int8": "static_wi8_ai8",
}


def samples(path):
    (tensor,) = tq.Model(path).inputs
    return np.random.default_rng(0).uniform(-1, 1, (16, *tensor.shape)).astype(np.float32)


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


def seconds(function):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        function()
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    try:
        import ai_edge_quantizer  # noqa: F401

        makers = [with_tq, with_peer]
    except ImportError:
        makers = [with_tq]
    for path in args.models:
        for recipe in PEERS:
            functions = [make(path, recipe) for make in makers]
            times = [[seconds(function) for function in functions] for _ in range(args.runs)]
            best = [min(column) for column in zip(*times, strict=True)]
            ratio = f"  {best[1] / best[0]:.1f} times" if len(best) > 1 else ""
            print(f"{path}  {recipe:18}" + "".join(f"{1e3 * value:9.1f} ms" for value in best) + ratio)


if __name__ == "__main__":
    main()
