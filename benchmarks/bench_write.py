# SPDX-License-Identifier: Apache-2.0
"""Writing models: tq beside memcpy and, for a small change, the schema's object API.

    python benchmarks/bench_write.py [--mb 100]

One model with constants of the given size in 64 buffers; each line is the best of several rounds, and its ratio to a
memcpy of as many bytes in the same run.
"""

import argparse
import os
import tempfile
import time

import numpy as np

import tq


def best(function, rounds=7):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def make(megabytes):
    b = tq.ModelBuilder()
    for i in range(64):
        b.constant(f"w{i}", np.random.default_rng(i).standard_normal(megabytes * (1 << 20) // 64 // 4, np.float32))
    return b.to_bytes()


def upstream(data):
    """Read, change one scale, write: by the classes that come with LiteRT."""
    import ai_edge_litert.schema_py_generated as schema
    import flatbuffers

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(data), 0))
    model.subgraphs[0].tensors[0].name = "new"
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def change(data):
    with tq.edit(data) as e:
        e.tensors[0].name = "new"
        return e.to_bytes()


def change_file(source, target):
    with tq.edit(source) as e:
        e.tensors[0].name = "new"
        e.save(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100, help="size of the constants")
    data = make(parser.parse_args().mb)
    target = np.empty(len(data), np.uint8)
    source = np.frombuffer(data, np.uint8)
    copy = best(lambda: np.copyto(target, source))
    with tempfile.TemporaryDirectory() as folder:
        old, new = os.path.join(folder, "old.tflite"), os.path.join(folder, "new.tflite")
        with open(old, "wb") as file:
            file.write(data)
        rows = [
            ("memcpy, memory that is there", copy),
            ("memcpy, fresh memory", best(lambda: bytes(source.data))),
            ("tq: open, change a name, to_bytes", best(lambda: change(data))),
            ("tq: the same, equal constants once", best(lambda: tq.edit(data).to_bytes(share_constants=True))),
            ("tq: open, change a name, save", best(lambda: change_file(old, new))),
            ("schema classes: the same in memory", best(lambda: upstream(data), rounds=1)),
        ]
    print(f"{len(data) / 1e6:.1f} MB")
    for name, seconds in rows:
        print(f"{name:38} {seconds * 1e3:9.2f} ms {seconds / copy:8.2f} x memcpy")


if __name__ == "__main__":
    main()
