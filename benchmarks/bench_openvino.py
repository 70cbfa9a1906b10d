# SPDX-License-Identifier: Apache-2.0
"""Running models with AVX2 alone: tq beside OpenVINO (`pip install openvino`), one thread, in turn.

Each has a process of its own.  tq is kept from AVX-512 and AVX-VNNI by TQ_DISABLE_CPU, OpenVINO by ONEDNN_MAX_CPU_ISA;
OpenVINO's results are not exact.  A ratio is OpenVINO's time over tq's, of the least times: above 1 tq is faster.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np

MASKS = {
    "tq": {"TQ_DISABLE_CPU": "avx512,avx512vnni,avx512vbmi,avxvnni"},
    "openvino": {"ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1"},
}
ROUND = 0.25  # seconds


def values(shape, dtype):
    rng = np.random.default_rng(0)
    floats = np.dtype(dtype).kind == "f"
    return rng.standard_normal(shape).astype(dtype) if floats else rng.integers(0, 100, shape).astype(dtype)


def tq_run(path, numerics):
    import tq

    interpreter = tq.Interpreter(path, num_threads=1, numerics=numerics)
    interpreter.allocate_tensors()
    for item in interpreter.get_input_details():
        interpreter.set_tensor(item["index"], values(item["shape"], item["dtype"]))
    return interpreter.invoke, ""


def openvino_run(path, numerics):
    """Its invoke, and the kinds of its convolutions' kernels."""
    import openvino

    model = openvino.Core().read_model(path)
    fixed = {p.get_any_name(): [n.get_length() if n.is_static else 1 for n in p.partial_shape] for p in model.inputs}
    model.reshape(fixed)
    options = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    options |= {"INFERENCE_PRECISION_HINT": "f32"}  # of floats: otherwise bfloat16, which AVX2 lacks
    requests = []
    for more in ({"PERF_COUNT": True}, {}):
        request = openvino.Core().compile_model(model, "CPU", options | more).create_infer_request()
        for port in model.inputs:
            x = values(list(port.shape), port.element_type.to_dtype())
            request.set_tensor(port.get_any_name(), openvino.Tensor(x))
        request.infer()
        requests.append(request)
    kinds = {info.exec_type for info in requests[0].get_profiling_info() if "Convolution" in info.node_type}
    return requests[1].infer, " ".join(sorted(kinds))


def child(name, path, numerics):
    run, note = {"tq": tq_run, "openvino": openvino_run}[name](path, numerics)
    print(note, flush=True)
    for _ in sys.stdin:
        best, end = float("inf"), time.perf_counter() + ROUND
        while time.perf_counter() < end:
            start = time.perf_counter_ns()
            run()
            best = min(best, time.perf_counter_ns() - start)
        print(best / 1e6, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--numerics", default="reference", choices=["reference", "optimized", "xnnpack"])
    parser.add_argument("--child", choices=list(MASKS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.models[0], args.numerics)
        return
    print("| model | tq, ms | OpenVINO, ms | ratio | OpenVINO's convolutions |\n|---|---:|---:|---:|---|")
    for path in args.models:
        command = [sys.executable, __file__, path, "--numerics", args.numerics, "--child"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        peers = {name: subprocess.Popen([*command, name], env=os.environ | MASKS[name], **pipes) for name in MASKS}
        notes = {name: peer.stdout.readline().strip() for name, peer in peers.items()}
        best = dict.fromkeys(peers, float("inf"))
        for _ in range(args.rounds):
            for name, peer in peers.items():
                print(file=peer.stdin, flush=True)
                best[name] = min(best[name], float(peer.stdout.readline()))
        for peer in peers.values():
            peer.stdin.close()
            peer.wait()
        ratio = best["openvino"] / best["tq"]
        print(f"| {path} | {best['tq']:.2f} | {best['openvino']:.2f} | {ratio:.2f} | {notes['openvino']} |", flush=True)


if __name__ == "__main__":
    main()
