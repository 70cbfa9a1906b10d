# SPDX-License-Identifier: Apache-2.0
"""Running models: tq beside LiteRT's optimized kernels, its XNNPACK default and its reference, in turn.

For every model with a convolution or a matrix product, a process of its own (LiteRT may abort) makes an interpreter of
each kind, gives all the same random inputs, and times them in turn, several rounds, keeping each one's best:

  invoke  invoke() alone
  call    set_tensor of every input, invoke(), get_tensor of every output
  make    the constructor and allocate_tensors()

A ratio is the other's time over tq's: above 1 tq is faster.  "tq" follows the reference's numerics,
"tq optimized" and "tq XNNPACK" those of LiteRT's other kernels: each is compared with the kernels whose bits it has,
and with tq's reference.  Models are sorted into kinds by the type of their first convolution's or matrix product's
input and weights; a file that lies twice in the folder counts once.  `--operators` times nothing beside tq: it
sums tq's own time by kind of operator over all these models, with the time of a multiply-add and of a byte.
Nothing here fails on a slow machine.
"""

import argparse
import collections
import gc
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from bench_open import cpu_name, geometric_mean

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"BUILTIN_WITHOUT_DEFAULT_DELEGATES": "optimized", "AUTO": "XNNPACK", "BUILTIN_REF": "reference"}
TQ = {"tq": "reference", "tq optimized": "optimized", "tq XNNPACK": "xnnpack"}  # numerics of each
PAIRS = [  # rows of the table: an interpreter of tq, and its peer
    *(("tq", peer) for peer in PEERS),
    ("tq optimized", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    ("tq optimized", "tq"),
    ("tq XNNPACK", "AUTO"),
    ("tq XNNPACK", "tq"),
]
KINDS = {
    ("INT8", "INT8"): "int8",
    ("UINT8", "UINT8"): "uint8",
    ("FLOAT32", "FLOAT32"): "float32",
    ("INT16", "INT8"): "16x8",
    ("FLOAT32", "INT8"): "hybrid",
    ("FLOAT32", "INT4"): "hybrid",
}
LOW = 0.75  # the ratio below which a model counts as slow
WHAT = ("invoke", "call", "make")
LONG = 0.005  # seconds that a round of one interpreter lasts at least
SHORT = 0.0001  # seconds of calls that are timed together: what interrupts one such time spoils no other


def kind_of(model):
    """int8 and so on; None for models without convolutions and matrix products."""
    for op in model.subgraphs[0].operators:
        if op.name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED") and None not in op.inputs[:2]:
            types = [t.type.name if hasattr(t.type, "name") else "?" for t in op.inputs[:2]]
            return KINDS.get(tuple("FLOAT32" if t == "FLOAT16" else t for t in types))
    return None


def random_input(details, random):
    import numpy as np

    dtype, shape = np.dtype(details["dtype"]), tuple(details["shape"])
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype.itemsize <= 2 and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, int(info.max) + 1, shape).astype(dtype)
    return np.zeros(shape, dtype)


def make(name, path, threads):
    if name in TQ:
        import tq

        return tq.Interpreter(model_path=path, num_threads=threads, numerics=TQ[name])
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    return Interpreter(model_path=path, num_threads=threads, experimental_op_resolver_type=OpResolverType[name])


def prepared(name, path, threads):
    """(an allocated interpreter with inputs, {"invoke": function, "call": function, "make": function})"""
    import numpy as np

    run = make(name, path, threads)
    run.allocate_tensors()
    random = np.random.default_rng(0)
    inputs = [(d["index"], random_input(d, random)) for d in run.get_input_details()]
    outputs = [d["index"] for d in run.get_output_details()]

    def call():
        for index, value in inputs:
            run.set_tensor(index, value)
        run.invoke()
        for index in outputs:
            run.get_tensor(index)

    call()
    return {"invoke": run.invoke, "call": call, "make": lambda: make(name, path, threads).allocate_tensors()}


def measure(path, names, what, threads, rounds):
    """{what: {name: best seconds}}, the names in turn."""
    runs = {}
    for name in names:
        try:
            runs[name] = prepared(name, path, threads)
        except Exception as error:
            print(f"{name}: {str(error)[:300]}", file=sys.stderr)
    gc.collect()
    gc.disable()
    best = {}
    for key in what:
        counts, best[key] = {}, {}
        for name, functions in runs.items():
            start = time.perf_counter()
            functions[key]()
            counts[name] = max(1, math.ceil(SHORT / max(time.perf_counter() - start, 1e-7)))
            best[key][name] = math.inf
        for _ in range(rounds):
            for name, functions in runs.items():
                function, count = functions[key], counts[name]
                begin = start = time.perf_counter()
                while start < begin + LONG:
                    for _ in range(count):
                        function()
                    now = time.perf_counter()
                    best[key][name] = min(best[key][name], (now - start) / count)
                    start = now
    return best


def in_process(path, names, what, threads, rounds):
    """`measure` in a fresh process; again without the reference, and without LiteRT, where that took it down."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    for left_out in ((), ("BUILTIN_REF",), ("BUILTIN_REF", "AUTO"), tuple(PEERS)):  # one that aborts ends the process
        chosen = [name for name in names if name not in left_out]
        command = [sys.executable, __file__, "--one", str(path), "--interpreters", ",".join(chosen)]
        command += ["--what", ",".join(what), "--threads", str(threads), "--rounds", str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, errors="replace")
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
    print(f"{path.name}: nothing came back: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return None


def operator_times(path, threads, numerics, runs):
    """[[operator, microseconds, multiply-adds, bytes] of each operator]: its least time of several profiles."""
    import tq

    run = tq.Interpreter(model_path=str(path), num_threads=threads, numerics=numerics)
    run.allocate_tensors()
    rng = __import__("numpy").random.default_rng(0)
    for details in run.get_input_details():
        run.set_tensor(details["index"], random_input(details, rng))
    profiles = [run.profile(runs=3) for _ in range(runs)]
    return [
        [rows[0].name, min(row.microseconds for row in rows), rows[0].multiply_adds or 0, rows[0].bytes]
        for rows in zip(*(profile.rows for profile in profiles), strict=True)
    ]


def report_operators(found, numerics):
    """found: {model: [[operator, microseconds, multiply-adds, bytes]]}.  Shares are means over the models."""
    sums = collections.defaultdict(lambda: [0.0, 0.0, 0, 0])
    for rows in found.values():
        whole = sum(row[1] for row in rows) or 1
        for name, *numbers in rows:
            for i, x in enumerate((100 * numbers[0] / whole / len(found), *numbers)):
                sums[name][i] += x
    print(f"\n{cpu_name()}, {numerics}, {len(found)} models\n")
    print("| operator | mean share of a model's time, % | ms in all | ns a multiply-add | ns a byte |")
    print("|---|---:|---:|---:|---:|")
    for name, (share, micro, products, size) in sorted(sums.items(), key=lambda item: -item[1][0]):
        each = f"{1000 * micro / products:.4f}" if products else ""
        print(f"| {name} | {share:.2f} | {micro / 1000:.2f} | {each} | {1000 * micro / max(size, 1):.3f} |")


def ratios(results, what, mine, peer):
    return sorted(
        (r[what][peer] / r[what][mine], r[what][mine], name)
        for name, r in results.items()
        if what in r and peer in r[what] and mine in r[what]
    )


def row(kind, what, mine, peer, found):
    """A line of the table; nothing where there is nothing to compare."""
    if found:
        mean, title = geometric_mean([ratio for ratio, _, _ in found]), PEERS.get(peer, peer)
        least, most = found[0][0], found[-1][0]
        slow = sum(ratio < LOW for ratio, _, _ in found)
        print(f"| {kind} | {len(found)} | {what} | {mine} | {title} | {mean:.2f} | {slow} | {least:.2f} | {most:.2f} |")


def report(results, kinds, threads, worst):
    print(f"\n{cpu_name()}, {threads} thread{'s' if threads > 1 else ''}; how many times longer than tq\n")
    print(f"| kind | models | what | tq | peer | geometric mean | below {LOW} | lowest | highest |")
    print("|---|---:|---|---|---|---:|---:|---:|---:|")
    for kind in dict.fromkeys(kinds.values()):
        chosen = {name: r for name, r in results.items() if kinds[name] == kind}
        for what in ("invoke", "make"):
            for mine, peer in PAIRS:
                row(kind, what, mine, peer, ratios(chosen, what, mine, peer))
    small = {name: r for name, r in results.items() if r.get("invoke", {}).get("tq", 1) < 100e-6}
    for peer in PEERS:
        row("under 100 µs", "call", "tq", peer, ratios(small, "call", "tq", peer))
    for mine, peer in PAIRS:
        found = ratios(results, "invoke", mine, peer)[:worst]
        if found and peer != "BUILTIN_REF":
            print(f"\nslowest of {mine} beside {PEERS.get(peer, peer)}:")
        for ratio, seconds, name in found if peer != "BUILTIN_REF" else ():
            print(f"  {ratio:6.2f}  {seconds * 1e6:10.1f} us  {kinds[name]:8} {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("TQ_MODELS", ROOT.parent / "shared" / "models")
    parser.add_argument("--models", type=Path, default=default, help="a folder of models (default: %(default)s)")
    parser.add_argument("--min-bytes", type=int, default=20_000, help="smaller models are left out (%(default)s)")
    parser.add_argument("--match", default="", help="only models with this in their path")
    parser.add_argument("--kinds", default=",".join(KINDS.values()), help="(%(default)s)")
    parser.add_argument("--numerics", default=",".join(TQ.values()), help="tq's (%(default)s)")
    parser.add_argument("--what", default=",".join(WHAT), help="what to time (%(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worst", type=int, default=12, help="how many of the lowest ratios to print")
    parser.add_argument("--no-reference", action="store_true", help="leave LiteRT's reference out: it is slow")
    parser.add_argument("--operators", action="store_true", help="tq's time by kind of operator instead")
    parser.add_argument("--json", type=Path, help="keep every measurement in this file")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--interpreters", help=argparse.SUPPRESS)
    args = parser.parse_args()
    what = [key for key in WHAT if key in args.what.split(",")]
    if args.one:
        print(json.dumps(measure(str(args.one), args.interpreters.split(","), what, args.threads, args.rounds)))
        return
    import tq

    names = [name for name, numerics in TQ.items() if numerics in args.numerics.split(",")]
    names += [name for name in PEERS if not (args.no_reference and name == "BUILTIN_REF")]
    results, kinds, seen, operators = {}, {}, set(), {}
    for path in sorted(args.models.rglob("*.tflite")):
        if path.stat().st_size < args.min_bytes or args.match not in str(path):
            continue
        try:
            kind = kind_of(tq.Model(path))
        except tq.Error:
            continue
        digest = hashlib.sha256(path.read_bytes()).digest()
        if kind not in args.kinds.split(",") or digest in seen:
            continue
        seen.add(digest)
        if args.operators:
            try:
                operators[str(path)] = operator_times(path, args.threads, args.numerics.split(",")[0], args.rounds)
            except tq.Error as error:
                print(f"{path.name}: {error}", file=sys.stderr)
            continue
        found = in_process(path, names, what, args.threads, args.rounds)
        if found and TQ.keys() & found[what[0]].keys() and len(found[what[0]]) > 1:
            name = str(path.relative_to(args.models))
            results[name], kinds[name] = found, kind
    if args.operators:
        report_operators(operators, args.numerics.split(",")[0])
    else:
        report(results, kinds, args.threads, args.worst)
    if args.json:
        args.json.write_text(json.dumps({"threads": args.threads, "kinds": kinds, "results": results}, indent=1))


if __name__ == "__main__":
    main()
