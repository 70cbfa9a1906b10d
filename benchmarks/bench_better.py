# SPDX-License-Identifier: Apache-2.0
"""The effect of each option of tq.quantize_model on the outputs' SQNR, on the float models of ../shared/models.

    python benchmarks/bench_better.py [--most-bytes N] [--match TEXT] [--models FOLDER]

Inputs are smooth random pictures, noise where an input is no picture: 16 samples to calibrate with and 16 others to
measure with, under tq's reference numerics.  A model takes part where tq runs it and recipe int8 turns an operator
with weights into an integer one.  Random inputs are no data set: compare columns, not rows.
"""

import argparse
import math
import os
import statistics
import time
from pathlib import Path

import numpy as np

import tq
from tq.accuracy import measuring

OBSERVERS = ("minmax", "mse", "percentile", "entropy", "moving_average")
FALLBACK = 6.0  # dB above plain rounding, for the column of target_sqnr


def smooth(shape, random):
    """A random picture with waves of several lengths, within -1 and 1."""
    if len(shape) != 4 or min(shape[1:3]) < 16:
        return random.uniform(-1, 1, shape).astype(np.float32)
    total = np.zeros(shape)
    for cells in (2, 4, 8, 16):
        coarse = random.normal(size=(shape[0], cells, cells, shape[3]))
        rows, columns = (np.arange(size) * cells // size for size in shape[1:3])
        total += coarse[:, rows][:, :, columns]
    return np.clip(total / 3, -1, 1).astype(np.float32)


def samples_of(model, count, seed):
    random = np.random.default_rng(seed)
    return [[smooth(tensor.shape, random) for tensor in model.inputs] for _ in range(count)]


def candidates(folder, most, match):
    for path in sorted(folder.rglob("*.tflite")):
        if match in str(path) and 20_000 <= path.stat().st_size <= most:
            try:
                model = tq.Model(path.read_bytes())
            except tq.Error:
                continue
            graph = model.subgraphs[0]
            floats = all(t is not None and t.dtype == np.float32 for t in graph.inputs)
            plain = not any(len(t.quantization.scale) for t in graph.tensors)
            small = sum(t.nbytes for t in graph.inputs) <= 1_200_000
            layers = any(op.name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED") for op in graph.operators)
            small = small and len(graph.operators) <= 1000
            if floats and small and graph.inputs and plain and layers and len(model.subgraphs) == 1:
                yield path, model


class Bench:
    """One model: its float outputs, and what the options give."""

    def __init__(self, model):
        self.model = model
        self.calibration, test = samples_of(model, 16, 1), samples_of(model, 16, 2)
        self.test = measuring.Samples(model, test)
        self.exact = measuring.outputs(model, self.test)
        self.seconds = 0.0

    def sqnr(self, source=None, **options):
        start = time.perf_counter()
        options.setdefault("calibration", self.calibration)
        data = tq.quantize_model(self.model if source is None else source, "int8", **options)
        self.seconds = time.perf_counter() - start
        found = measuring.outputs(tq.Model(data), self.test)
        return measuring.together(measuring.output_noises(self.exact, found))

    def row(self):
        found = {}
        for name in OBSERVERS:
            found[name] = self.sqnr(observer=name)
        found["bias"] = self.sqnr(bias_correction=True)
        found["equalize"] = self.sqnr(equalize=True)
        try:
            found["target"] = self.sqnr(target_sqnr=found["minmax"] + FALLBACK)
        except ValueError:  # the calibration samples do not get there
            found["target"] = math.nan
        found["per tensor"] = self.sqnr(per_axis=False)
        found["pt bias"] = self.sqnr(per_axis=False, bias_correction=True)
        found["pt equalize"] = self.sqnr(per_axis=False, equalize=True)
        found["pt both"] = self.sqnr(per_axis=False, equalize=True, bias_correction=True)
        return found


def summary(rows):
    heads = list(rows[0])
    print("| | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(heads))
    print("| median dB | " + " | ".join(f"{statistics.median(column(rows, head)):.1f}" for head in heads) + " |")
    gains = {}
    for head in heads:
        base = "per tensor" if head.startswith("pt ") else "minmax"
        gains[head] = [row[head] - row[base] for row in rows if math.isfinite(row[head] - row[base])]
    for name, function in (("median gain", statistics.median), ("mean gain", statistics.fmean),
                           ("least", min), ("most", max)):  # fmt: skip
        print(f"| {name} | " + " | ".join(f"{function(gains[head]):+.1f}" for head in heads) + " |")
    better = (
        f"{sum(gain > 0.5 for gain in gains[head])}, {sum(gain < -0.5 for gain in gains[head])}" for head in heads
    )
    print("| better, worse by 0.5 dB | " + " | ".join(better) + " |")


def column(rows, head):
    return [row[head] for row in rows if math.isfinite(row[head])] or [math.nan]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("TQ_MODELS") or Path(__file__).resolve().parents[2] / "shared" / "models")
    parser.add_argument("--models", type=Path, default=default)
    parser.add_argument("--most-bytes", type=int, default=3_000_000)
    parser.add_argument("--match", default="")
    args = parser.parse_args()
    rows = []
    for path, model in candidates(args.models, args.most_bytes, args.match):
        try:
            row = Bench(model).row()
        except (tq.Error, ValueError, MemoryError) as error:
            print(f"{path.name}: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        rows.append(row)
        print(f"{path.name[-60:]:60} " + " ".join(f"{key} {value:.1f}" for key, value in row.items()), flush=True)
    if rows:
        print(f"\n{len(rows)} models")
        summary(rows)


if __name__ == "__main__":
    main()
