# SPDX-License-Identifier: Apache-2.0
"""Errors of quantized models beside their float model: tq's and ai-edge-quantizer's, on the same calibration data.

    python benchmarks/bench_accuracy.py [--recipe int8] [--samples 32] [--best] [float.tflite ...]
    python benchmarks/bench_accuracy.py --rounding [--recipe weight_only_int4] [float.tflite ...]
    python benchmarks/bench_accuracy.py --tasks [float.tflite ...]
    python benchmarks/bench_accuracy.py --effort [--recipe int8] [--samples 16] [--seed 1] [float.tflite ...]

Prints for each model the signal-to-noise ratio in dB, the mean over the float outputs, by LiteRT's default resolver, of
32 random samples after calibration with 8 others; with --best also that of effort="best", where tq is less near than
ai-edge-quantizer.  The end says on how many models tq is at least as near, and lists the others.  A model without a
signature gets one before ai-edge-quantizer reads it.  Each model has a process of its own, since LiteRT may end it.

With --rounding: the ratio with each weight_rounding of tq.quantize_model, before a last SOFTMAX or LOGISTIC, and the
seconds of quantizing: 16 samples to calibrate with and 16 others to measure with, smooth random pictures
(bench_better.py).
With --effort: the same for each effort, beside ai-edge-quantizer and the bound: the ratio if the outputs alone were
int8.  --seed N: the number of the calibration samples, N + 1 that of the others.
With --tasks: the accuracy on scikit-learn's handwritten digits, of the net of digits.py, trained anew, and of the
nets that are named, whose pictures may have another size; and the mean average precision of the detector of
shapes.py, trained anew.
Without models: the float ones under 15 MB in ../shared/models, or in the folder that TQ_MODELS names; with --rounding
and --effort its convolutional ones of 20 KB and more.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_better import candidates, samples_of

import tq
from tq.quantization.recipes import EFFORTS, RECIPES, ROUNDINGS
from tq.specification.table import INTEGER

FOLDER = Path(os.environ.get("TQ_MODELS") or Path(__file__).resolve().parents[2] / "shared" / "models")
NEAR = 0.05  # dB: "at least as near"
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


def measure(path, recipe, count, best):
    """{"tq": dB or an error's text, "peer": the same, and "best", if asked for}."""
    model = tq.Model(path)
    with open(path, "rb") as file:
        data = file.read()
    calibration, inputs = draw(model, 8, 0), draw(model, count, 1)
    exact = run(data, inputs)
    found = {}
    given = calibration if recipe in STATIC else None
    makers = {
        "tq": lambda: tq.quantize_model(data, recipe, calibration=given),
        "peer": lambda: with_peer(data, recipe, calibration),
        "best": lambda: tq.quantize_model(data, recipe, calibration=calibration, effort="best"),
    }
    for who, make in makers.items():
        if who == "best" and not (best and is_less_near(found)):
            continue
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


def floats():
    """The paths of different float models under 15 MB."""
    seen = set()
    for path in sorted(FOLDER.rglob("*.tflite")):
        data = path.read_bytes() if path.stat().st_size < 15_000_000 else b""
        digest = hashlib.sha256(data).digest()
        try:
            graph = tq.Model(data).subgraphs[0]
        except tq.Error:
            continue
        if digest not in seen and graph.operators and not any(len(t.quantization.scale) for t in graph.tensors):
            seen.add(digest)
            yield str(path)


def compare_peers(paths, recipe, samples, best):
    columns = {"tq": "tq, dB", **({"best": 'effort="best"'} if best else {}), "peer": "ai-edge-quantizer, dB"}
    print(f"| model | {' | '.join(columns.values())} |\n|---" + "|---" * len(columns) + "|")
    rows = {}
    for path in paths:
        asked = ["--recipe", recipe, "--samples", str(samples), *["--best"] * best]
        command = [sys.executable, __file__, "--one", *asked, path]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=1800)
        lines = done.stdout.strip().splitlines()
        found = json.loads(lines[-1]) if lines else {}
        default = "ended the process" if done.returncode < 0 else "failed"
        shown = [found.get(who, "" if who == "best" else default) for who in columns]
        cells = [f"{item:.1f}" if isinstance(item, float) else str(item) for item in shown]
        print(f"| {path.rsplit('/', 1)[-1]} | {' | '.join(cells)} |", flush=True)
        if all(isinstance(found.get(who), float) for who in ("tq", "peer")):
            rows[path] = found
    if rows:
        summarize(rows)


def summarize(rows):
    """rows: {a path: what measure() found}."""
    above = [row["tq"] - row["peer"] for row in rows.values()]
    near = sum(not is_less_near(row) for row in rows.values())
    print(f"\nBoth make {len(above)} that LiteRT runs; tq is at least as near (to {NEAR} dB) on {near}.")
    print(f"Median of tq's dB above the other's: {statistics.median(above):.1f}.  Less near:\n")
    for path, row in rows.items():
        if not is_less_near(row):
            continue
        best = row.get("best")
        fixed = [op.name for op in tq.Model(path).subgraphs[0].operators if is_fixed(op.name)]
        notes = [f"the output scale of {' and '.join(sorted(set(fixed)))} is fixed"] if fixed else []
        if isinstance(best, float) and best >= row["peer"] - NEAR:
            notes = ['effort="best" is as near']
        values = [f"{item:.2f}" for item in (row["tq"], best, row["peer"]) if isinstance(item, float)]
        print(f"- {Path(path).name}: {', '.join(values)}: {'; '.join(notes) or 'not as near'}")


def is_less_near(found):
    ours, theirs = found["tq"], found["peer"]
    return isinstance(ours, float) and isinstance(theirs, float) and ours < theirs - NEAR


def is_fixed(name):
    """Whether an integer kernel writes its output with one scale, whatever its values."""
    return name in INTEGER and isinstance(INTEGER[name].int8, tuple)


# ---- weight_rounding ----


def before_softmax(data):
    """The model without a last SOFTMAX or LOGISTIC, and without a DEQUANTIZE beside it."""
    graph = tq.Model(data).subgraphs[0]
    ends = []
    for tensor in graph.outputs:
        at = tensor
        while at.producer is not None and at.producer.name in ("SOFTMAX", "LOGISTIC", "DEQUANTIZE"):
            tensor = at if at.producer.name == "DEQUANTIZE" else at.producer.inputs[0]
            at = at.producer.inputs[0]
        ends.append(tensor.index)
    return tq.extract(data, [tensor.index for tensor in graph.inputs], list(dict.fromkeys(ends)))


def measure_rounding(path, recipe):
    """{a rounding: [dB, seconds]}."""
    with open(path, "rb") as file:
        data = file.read()
    model = tq.Model(data)
    calibration, inputs = samples_of(model, 16, 1), samples_of(model, 16, 2)
    exact, found = run(before_softmax(data), inputs), {}
    for rounding in ROUNDINGS:
        needed = rounding != "nearest" or RECIPES[recipe].form == "static"
        start = time.perf_counter()
        made = tq.quantize_model(
            data, recipe, calibration=calibration if needed else None, weight_rounding=rounding, min_elements=1024
        )
        seconds = time.perf_counter() - start
        found[rounding] = [decibels(exact, run(before_softmax(made), inputs)), seconds]
    return found


def measure_effort(path, recipe, count, seed):
    """{an effort, "peer": [dB, seconds], "bound": [dB, 0]}."""
    with open(path, "rb") as file:
        data = file.read()
    model = tq.Model(data)
    calibration, inputs = samples_of(model, 16, seed), samples_of(model, count, seed + 1)
    exact, found = run(before_softmax(data), inputs), {}
    for effort in EFFORTS:
        start = time.perf_counter()
        made = tq.quantize_model(data, recipe, calibration=calibration, effort=effort)
        seconds = time.perf_counter() - start
        found[effort] = [decibels(exact, run(before_softmax(made), inputs)), seconds]
        if effort == "fast":
            found["bound"] = [decibels(exact, rounded(exact, before_softmax(made))), 0.0]
    print(json.dumps(found), flush=True)
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        made = with_peer(data, recipe, calibration)
    found["peer"] = [decibels(exact, run(before_softmax(made), inputs)), time.perf_counter() - start]
    return found


def rounded(exact, data):
    """The float outputs in the quantized model's outputs' own integers."""
    ends = []
    for tensor in tq.Model(data).outputs:
        at = (
            tensor.producer.inputs[0]
            if tensor.producer is not None and tensor.producer.name == "DEQUANTIZE"
            else tensor
        )
        ends.append(at.quantization)
    return [
        [item.dequantize(item.quantize(x)) if len(item.scale) else x for x, item in zip(row, ends, strict=True)]
        for row in exact
    ]


def convolutional():
    for path, model in candidates(FOLDER, 20_000_000, ""):
        if any(op.name in ("CONV_2D", "DEPTHWISE_CONV_2D") for op in model.subgraphs[0].operators):
            yield str(path)


def compare_roundings(paths, recipe):
    others = ROUNDINGS[1:]
    print("| model | nearest, dB |" + "".join(f" {name} | s |" for name in others))
    print("|---|---:|" + "---:|---:|" * len(others))
    gains = {name: [] for name in others}
    for path in paths:
        command = [sys.executable, __file__, "--one", "--rounding", "--recipe", recipe, path]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=1800)
        lines = done.stdout.strip().splitlines()
        name = path.rsplit("/", 1)[-1]
        if done.returncode or not lines:
            print(f"| {name} | {(done.stderr.strip().splitlines() or ['ended the process'])[-1][:80]} |", flush=True)
            continue
        found = json.loads(lines[-1])
        base = found["nearest"][0]
        for other in others:
            gains[other].append(found[other][0] - base)
        cells = "".join(f" {found[other][0] - base:+.1f} | {found[other][1]:.1f} |" for other in others)
        print(f"| {name} | {base:.1f} |{cells}", flush=True)
    for name, function in (("median", statistics.median), ("worst", min)):
        cells = "".join(f" {function(gains[other]):+.1f} | |" for other in others if gains[other])
        print(f"| {name} of {len(gains[others[0]])} | |{cells}")


def compare_efforts(paths, recipe, count, seed):
    print("| model | fast, dB | better | s | best | s | ai-edge-quantizer | bound |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    gains, room = {"better": [], "best": [], "peer": []}, []
    for path in paths:
        asked = ["--effort", "--recipe", recipe, "--samples", str(count), "--seed", str(seed)]
        command = [sys.executable, __file__, "--one", *asked, path]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=3600)
        lines = done.stdout.strip().splitlines()
        name = path.rsplit("/", 1)[-1]
        if not lines:
            why = (done.stderr.strip().splitlines() or ["ended the process"])[-1]
            print(f"| {name} | {why[:80]} |", flush=True)
            continue
        found = json.loads(lines[-1])
        base = found["fast"][0]
        for other in gains:
            if other in found:
                gains[other].append(found[other][0] - base)
        if found["bound"][0] >= base + 3:
            room.append(found["best"][0] - base)
        cells = "".join(f" {found[other][0] - base:+.1f} | {found[other][1]:.1f} |" for other in ("better", "best"))
        peer = f"{found['peer'][0] - base:+.1f}" if "peer" in found else "none"
        print(f"| {name} | {base:.1f} |{cells} {peer} | {found['bound'][0]:.1f} |", flush=True)
    for name, function in (("median", statistics.median), ("worst", min)):
        better, best, peer = (f"{function(items):+.1f}" if items else "" for items in gains.values())
        print(f"| {name} of {len(gains['best'])} | | {better} | | {best} | | {peer} | |")
    if room:
        print(
            f"\nOf {len(room)} whose bound is 3 dB over fast: best gains {statistics.median(room):+.1f} in the median"
        )


# ---- tasks ----

# What is compared: a name, the recipe and options of tq.quantize_model; "peer": ai-edge-quantizer's recipe.
TASKS = [
    ("int8", "int8", {}),
    ('int8, "mse"', "int8", {"observer": "mse"}),
    ("int8, bias_correction", "int8", {"bias_correction": True}),
    ("int8, equalize", "int8", {"equalize": True}),
    ("int8, gptq", "int8", {"weight_rounding": "gptq"}),
    ("int8, better", "int8", {"effort": "better"}),
    ("int8, best", "int8", {"effort": "best"}),
    ("int8, ai-edge-quantizer", "int8", "peer"),
    *((f"{bits} weights, {rounding}", f"weight_only_{bits}", {"weight_rounding": rounding})
      for bits in ("int4", "int2") for rounding in ROUNDINGS),
    ("int4 weights, int8 activations", "int4", {}),
    ("the same, better", "int4", {"effort": "better"}),
    ("the same, best", "int4", {"effort": "best"}),
]  # fmt: skip


def resized(pictures, shape):
    """Pictures of another size, by linear interpolation, within a border as in MNIST where there is room."""
    height, width = shape[1:3]
    inner = [size - 2 * (size // 7) if size > pictures.shape[1] else size for size in (height, width)]
    found = pictures
    for axis, size in zip((1, 2), inner, strict=True):
        places = (np.arange(size) + 0.5) * found.shape[axis] / size - 0.5
        low = np.clip(np.floor(places).astype(int), 0, found.shape[axis] - 1)
        high, part = np.minimum(low + 1, found.shape[axis] - 1), np.clip(places - low, 0, 1).astype(np.float32)
        part = part.reshape([-1 if at == axis else 1 for at in range(4)])
        found = np.take(found, low, axis) * (1 - part) + np.take(found, high, axis) * part
    edges = [
        ((total - size) // 2, total - size - (total - size) // 2)
        for total, size in zip((height, width), inner, strict=True)
    ]
    return np.pad(found, ((0, 0), *edges, (0, 0))).astype(np.float32)


class Task(NamedTuple):
    """A float model, samples to calibrate with, and the percentage that outputs for the pictures are worth."""

    name: str
    model: bytes
    seen: list
    pictures: np.ndarray
    score: Callable[[np.ndarray], float]

    def of(self, data):
        outputs = [row[0] for row in run(data, [[picture[None]] for picture in self.pictures])]
        return self.score(np.concatenate(outputs))


def tasks(paths):
    import digits
    import shapes

    (x, y), (pictures, labels) = digits.data()
    models = {"digits.py": digits.model(digits.train(x, y))}
    models |= {Path(path).name: Path(path).read_bytes() for path in paths}
    for name, data in models.items():
        shape = tq.Model(data).inputs[0].shape
        seen, fed = [[p[None]] for p in resized(x[:32], shape)], resized(pictures, shape)
        yield Task(name, data, seen, fed, lambda found: 100 * float(np.mean(found.argmax(-1) == labels)))
    (x, y), (pictures, cells) = shapes.data()
    model = shapes.model(shapes.train(x, y))
    score = partial(shapes.mean_average_precision, y=cells)
    yield Task("shapes.py", model, [[p[None]] for p in x[:32]], pictures, score)


def compare_tasks(paths):
    columns = list(tasks(paths))
    print("| | " + " | ".join(task.name for task in columns) + " |\n|---|" + "---:|" * len(columns))
    print(f"| float | {' | '.join(f'{task.of(task.model):.1f}' for task in columns)} |", flush=True)
    for title, recipe, options in TASKS:
        cells = []
        for task in columns:
            try:
                if options == "peer":
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                        made = with_peer(task.model, recipe, task.seen)
                else:
                    is_static = RECIPES[recipe].form == "static"
                    runs = is_static or options["weight_rounding"] != "nearest"
                    more = {} if is_static else {"min_elements": 64}
                    made = tq.quantize_model(
                        task.model, recipe, calibration=task.seen if runs else None, **more, **options
                    )
                cells.append(f"{task.of(made):.1f}")
            except (ImportError, ValueError):  # no ai-edge-quantizer; no layers that equalize could scale
                cells.append("")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--recipe")
    parser.add_argument("--rounding", action="store_true", help="compare tq's roundings of weights")
    parser.add_argument("--effort", action="store_true", help="compare tq's efforts")
    parser.add_argument("--tasks", action="store_true", help="accuracy on data with labels")
    parser.add_argument("--samples", type=int, help="to measure with")
    parser.add_argument("--seed", type=int, default=1, help="of the calibration samples of --effort")
    parser.add_argument("--best", action="store_true", help="a column of effort='best'")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounding:
        recipe = options.recipe or "weight_only_int4"
        if options.one:
            print(json.dumps(measure_rounding(options.models[0], recipe)))
        else:
            compare_roundings(options.models or convolutional(), recipe)
        return
    if options.tasks:
        compare_tasks(options.models)
        return
    options.recipe = options.recipe or "int8"
    if options.effort:
        asked = (options.recipe, options.samples or 16, options.seed)
        if options.one:
            print(json.dumps(measure_effort(options.models[0], *asked)))
        else:
            compare_efforts(options.models or convolutional(), *asked)
        return
    if options.recipe not in PEERS:
        parser.error(f"one of the recipes {', '.join(PEERS)} is needed")
    samples = options.samples or 32
    if options.one:
        print(json.dumps(measure(options.models[0], options.recipe, samples, options.best)))
    else:
        compare_peers(options.models or floats(), options.recipe, samples, options.best)


if __name__ == "__main__":
    main()
