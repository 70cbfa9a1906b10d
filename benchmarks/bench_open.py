# SPDX-License-Identifier: Apache-2.0
"""Opening a model and reading every tensor's details: tq, LiteRT and the tflite package, side by side.

For every model over --min-bytes, a process of its own (LiteRT may abort) times the readers in turn, several rounds, and
keeps each one's best (and, for a second geometric mean, its first, which includes what a library sets up once):

  tq      tq.Model(path), then get_tensor_details(i) for every subgraph i, and a look at every dict
  call    the same without the look: tq makes the dicts when the list is first looked at, so this is less work than
          the other readers do, and is told apart from the comparison of like with like
  LiteRT  Interpreter(model_path=path), then get_tensor_details(i) for every subgraph i
  tflite  the same facts (name, shape, shape_signature, type; scale, zero_point, min, max and quantized_dimension)
          through the generated accessors of the `tflite` package over a memory-mapped file, arrays by its AsNumpy

All files are in the page cache, dropping the results is not timed, and the garbage collector rests, as in timeit.  A
ratio is how many times longer than tq the other takes.  Nothing here fails on a slow machine: the targets of the last
lines are told, not enforced.
"""

import argparse
import gc
import json
import math
import mmap
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"litert": "LiteRT", "tflite": "tflite package"}
TARGETS = {"litert": (10, 3), "tflite": (20, None)}  # geometric mean, and any one model, at least


def use_tq(path):
    import tq

    def run():
        model = tq.Model(path)
        # list(...) looks at the whole list, whatever kind of list it is.
        return model, [list(model.get_tensor_details(i)) for i in range(len(model.subgraphs))]

    return run


def use_litert(path):
    from ai_edge_litert.interpreter import Interpreter

    def run():
        interpreter = Interpreter(model_path=path)
        return interpreter, [interpreter.get_tensor_details(i) for i in range(interpreter.num_subgraphs())]

    return run


def use_tflite(path):
    import tflite

    def details(tensor, index):
        quantization = tensor.Quantization()
        facts = {
            "name": tensor.Name(),
            "index": index,
            "shape": tensor.ShapeAsNumpy(),
            "shape_signature": tensor.ShapeSignatureAsNumpy(),
            "type": tensor.Type(),
        }
        if quantization is not None:
            facts["scales"] = quantization.ScaleAsNumpy()
            facts["zero_points"] = quantization.ZeroPointAsNumpy()
            facts["min"] = quantization.MinAsNumpy()
            facts["max"] = quantization.MaxAsNumpy()
            facts["quantized_dimension"] = quantization.QuantizedDimension()
        return facts

    def run():
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        model = tflite.Model.GetRootAsModel(data, 0)
        found = []
        for i in range(model.SubgraphsLength()):
            graph = model.Subgraphs(i)
            found.append([details(graph.Tensors(k), k) for k in range(graph.TensorsLength())])
        return data, found

    return run


def use_tq_call(path):
    import tq

    def run():
        model = tq.Model(path)
        return model, [model.get_tensor_details(i) for i in range(len(model.subgraphs))]

    return run


READERS = {"tq": use_tq, "call": use_tq_call, "litert": use_litert, "tflite": use_tflite}


def measure(path, names, rounds):
    """Best seconds of each reader, in turn in this process; a reader that refuses the file is left out."""
    runs, first, best, tensors = {}, {}, {}, 0
    Path(path).read_bytes()  # into the page cache, for whoever comes first
    for name in names:
        run = READERS[name](path)
        try:
            start = time.perf_counter()
            result = run()
            first[name] = time.perf_counter() - start
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        tensors = max(tensors, sum(map(len, result[1])))
        runs[name], best[name] = run, math.inf
        del result
    gc.collect()
    gc.disable()  # as timeit does
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            result = run()
            best[name] = min(best[name], time.perf_counter() - start)
            del result
    return {"tensors": tensors, "seconds": best, "first": first}


def in_process(path, rounds):
    """`measure` in a fresh process; again without LiteRT where it took the process down."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    for names in (list(READERS), ["tq", "call", "tflite"]):
        command = [sys.executable, __file__, "--one", str(path), "--readers", ",".join(names), "--rounds", str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, errors="replace")
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
    print(f"{path.name}: no reader came back: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return None


def cpu_name():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def verdict(ratios, want_mean, want_each):
    """The geometric mean and the lowest of some ratios, against their targets."""
    told = []
    for name, found, want in (
        ("geometric mean", geometric_mean(ratios), want_mean),
        ("lowest", min(ratios), want_each),
    ):
        told.append(
            f"{name} {found:.1f}" + (f" (target {want}: {'met' if found >= want else 'MISSED'})" if want else "")
        )
    return ", ".join(told)


def report(results, worst):
    print(f"\n{cpu_name()}, Python {platform.python_version()}, {len(results)} models")
    total = sum(r["seconds"]["tq"] for r in results.values())
    tensors = sum(r["tensors"] for r in results.values())
    call = sum(r["seconds"]["call"] for r in results.values())
    print(f"tq: {total * 1e3:.1f} ms for all of them, {total / tensors * 1e9:.0f} ns a tensor", end="")
    print(f"; {call * 1e3:.1f} ms where no dict is looked at")
    for peer, title in PEERS.items():
        pairs = [
            (r["seconds"][peer] / r["seconds"]["tq"], r["tensors"], r["seconds"], name)
            for name, r in results.items()
            if peer in r["seconds"]
        ]
        if not pairs:
            print(f"\n{title}: read none of them")
            continue
        pairs.sort()
        want_mean, want_each = TARGETS[peer]
        print(f"\n{title} / tq, the {min(worst, len(pairs))} lowest of {len(pairs)}:")
        print(f"{'ratio':>8} {'tensors':>8} {title.split()[0] + ' us':>12} {'tq us':>9}  model")
        for ratio, tensors, seconds, name in pairs[:worst]:
            print(f"{ratio:8.1f} {tensors:8} {seconds[peer] * 1e6:12.0f} {seconds['tq'] * 1e6:9.0f}  {name}")
        print(f"every dict looked at: {verdict([p[0] for p in pairs], want_mean, want_each)}")
        calls = [p[2][peer] / p[2]["call"] for p in pairs]
        print(f"no dict looked at:    {verdict(calls, want_mean, want_each)}")
        firsts = [r["first"][peer] / r["first"]["tq"] for r in results.values() if peer in r["seconds"]]
        print(f"first reading in a process: geometric mean {geometric_mean(firsts):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("TQ_MODELS", ROOT.parent / "shared" / "models")
    parser.add_argument("--models", type=Path, default=default, help="a folder of models (default: %(default)s)")
    parser.add_argument(
        "--min-bytes", type=int, default=100_000, help="smaller files are left out (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=25, help="times that each reader reads a model (default: %(default)s)"
    )
    parser.add_argument("--worst", type=int, default=10, help="models to list for each peer (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--readers", default=",".join(READERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print("\n" + json.dumps(measure(options.one, options.readers.split(","), options.rounds)))
        return
    files = [p for p in sorted(options.models.rglob("*")) if p.is_file() and p.suffix not in (".json", ".md")]
    files = [p for p in files if p.stat().st_size >= options.min_bytes]
    results = {}
    for i, path in enumerate(files):
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(files)} {path.name[:70]:<70}", end="", file=sys.stderr)
        found = in_process(path, options.rounds)
        if found and "tq" in found["seconds"]:
            results[str(path.relative_to(options.models))] = found
        elif found:
            print(f"{path.name}: tq does not open it; left out", file=sys.stderr)
    if not results:
        sys.exit(f"no model of {options.min_bytes} bytes or more that tq opens in {options.models}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    report(results, options.worst)


if __name__ == "__main__":
    main()
