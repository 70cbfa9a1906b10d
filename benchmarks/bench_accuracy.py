# SPDX-License-Identifier: Apache-2.0
"""How near quantized models stay to the float model: tq's beside ai-edge-quantizer's, on the same calibration data.

    python benchmarks/bench_accuracy.py [--recipe int8] [--samples 32] float.tflite ...

Prints for each model the signal-to-noise ratio in dB, the mean over the float outputs, by LiteRT's default resolver, of
32 random samples after calibration with 8 others.  A model without a signature gets one before ai-edge-quantizer reads
it.  Each model is run in a process of its own, since LiteRT may end it.
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys

import numpy as np

import tq

PEERS = {"int8": "static_wi8_ai8", "int16x8": "static_wi8_ai16", "dynamic_int8": "dynamic_wi8_afp32"}
STATIC = ("int8", "int16x8")


def draw(model, count, seed):
    """Samples: floats in [-1, 1), small integers."""
    rng = np.random.default_rng(seed)

    def one(tensor):
        if tensor.dtype.kind == "f":
            return rng.uniform(-1, 1, tensor.shape).astype(tensor.dtype)
        return rng.integers(0, 2, tensor.shape).astype(tensor.dtype)

    return [[one(tensor) for tensor in model.inputs] for _ in range(count)]


def run(data, inputs):
    """Outputs of each sample as floats, by LiteRT; integer inputs get the samples quantized."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=data)
    interpreter.allocate_tensors()
    found = []
    for sample in inputs:
        for item, value in zip(interpreter.get_input_details(), sample, strict=True):
            scale, zero = item["quantization"]
            if scale and value.dtype.kind == "f" and np.dtype(item["dtype"]).kind != "f":
                value = tq.quantize(value, scale, zero, dtype=np.dtype(item["dtype"]))
            interpreter.set_tensor(item["index"], value)
        interpreter.invoke()
        found.append([real(item, interpreter.get_tensor(item["index"])) for item in interpreter.get_output_details()])
    return found


def real(item, value):
    scale, zero = item["quantization"]
    return tq.dequantize(value, scale, zero) if scale and value.dtype.kind != "f" else value


def decibels(exact, found):
    """The mean over float outputs; each between -20 and 120."""
    ratios = []
    for ours, theirs in zip(zip(*exact, strict=True), zip(*found, strict=True), strict=True):
        a, b = (np.concatenate([np.ravel(x) for x in items]) for items in (ours, theirs))
        if a.dtype.kind != "f" or not np.isfinite(a).all() or not a.any():
            continue
        noise = np.square(a.astype(float) - b).sum()
        noise = noise if np.isfinite(noise) else np.inf
        ratios.append(np.clip(10 * np.log10(np.square(a, dtype=float).sum() / max(noise, 1e-300)), -20, 120))
    return float(np.mean(ratios)) if ratios else None


def with_peer(data, recipe, inputs):
    from ai_edge_quantizer import quantizer
    from ai_edge_quantizer import recipe as recipes

    model = tq.Model(data)
    if not model.signatures:
        with tq.edit(data) as editor:
            names = {t.name: t for t in editor.inputs}, {t.name: t for t in editor.outputs}
            editor.add_signature("serving_default", *names)
            data = editor.to_bytes()
        model = tq.Model(data)
    signature = model.signatures[0]
    positions = {tensor.index: position for position, tensor in enumerate(model.inputs)}
    fed = [{name: sample[positions[index]] for name, index in signature.inputs.items()} for sample in inputs]
    made = quantizer.Quantizer(bytearray(data))
    made.load_quantization_recipe(getattr(recipes, PEERS[recipe])())
    ranges = made.calibrate({signature.key: fed}) if recipe in STATIC else None
    return bytes(made.quantize(ranges).quantized_model)


def measure(path, recipe, count):
    """{"tq": dB or an error's text, "peer": the same}."""
    model = tq.Model(path)
    with open(path, "rb") as file:
        data = file.read()
    calibration, inputs = draw(model, 8, 0), draw(model, count, 1)
    exact = run(data, inputs)
    found = {}
    makers = {
        "tq": lambda: tq.quantize_model(data, recipe, calibration=calibration if recipe in STATIC else None),
        "peer": lambda: with_peer(data, recipe, calibration),
    }
    for who, make in makers.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                made = make()
        except Exception as error:
            found[who] = f"not quantized: {type(error).__name__}: {error}"[:120]
            continue
        try:
            found[who] = decibels(exact, run(made, inputs))
        except Exception as error:
            found[who] = f"does not run: {error}"[:120]
        print(json.dumps(found), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--recipe", choices=PEERS, default="int8")
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.models[0], options.recipe, options.samples)))
        return
    print("| model | tq, dB | ai-edge-quantizer, dB |\n|---|---|---|")
    for path in options.models:
        asked = ["--recipe", options.recipe, "--samples", str(options.samples)]
        command = [sys.executable, __file__, "--one", *asked, path]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=1800)
        lines = done.stdout.strip().splitlines()
        found = json.loads(lines[-1]) if lines else {}
        default = "ended the process" if done.returncode < 0 else "failed"
        shown = [found.get(who, default) for who in ("tq", "peer")]
        cells = [f"{item:.1f}" if isinstance(item, float) else str(item) for item in shown]
        print(f"| {path.rsplit('/', 1)[-1]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
