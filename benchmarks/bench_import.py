# SPDX-License-Identifier: Apache-2.0
"""The time that `import tq` adds to `import numpy`, and the part of a 1 GB model that opening it reads.

Import: fresh processes in turn, `import numpy` alone and `import numpy; import tq`; the median of the time inside the
second statement, and the difference of the whole processes' medians as a check.

Touch (Linux): a sparse file with one constant of 1 GB is made in a temporary folder, in both of the format's layouts
(the data as a vector in the flatbuffer; the data after it, by Buffer.offset and size).  A fresh process opens it and
reads all details; the resident part of its mapping of the file, by /proc/self/smaps, is the part read, rounded up to
the pages that the kernel maps around a fault.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GIGABYTE = 1 << 30
TARGET_MS, TARGET_MB = 5, 2

IMPORT = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
{statement}
print((time.perf_counter() - middle) * 1e3, (time.perf_counter() - start) * 1e3)
"""

TOUCH = """
import json, sys, tq

def resident(path):
    total = here = 0
    for line in open("/proc/self/smaps"):
        if "-" in line.split()[0]:
            here = line.rstrip().endswith(path)
        elif here and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total

path = sys.argv[1]
model = tq.Model(path)
opened = resident(path)
details = [list(model.get_tensor_details(i)) for i in range(len(model.subgraphs))]
described = resident(path)
problems = model.problems
checked = resident(path)
print(json.dumps([opened, described, checked, model.nbytes, model.tensors[1].data.nbytes]))
"""


def run(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    # -S and the like would change what numpy's own import costs; -B keeps the two kinds of process alike.
    command = [sys.executable, "-B", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


def bench_import(rounds):
    run(IMPORT.format(statement="import tq"))  # compiled files and the page cache are warm from here on
    inside, alone, together = [], [], []
    for _ in range(rounds):
        alone.append(float(run(IMPORT.format(statement="")).split()[1]))
        added, total = map(float, run(IMPORT.format(statement="import tq")).split())
        inside.append(added)
        together.append(total)
    added = statistics.median(inside)
    print(f"import numpy                  {statistics.median(alone):7.2f} ms")
    print(f"import numpy, import tq       {statistics.median(together):7.2f} ms")
    verdict = "met" if added <= TARGET_MS else "MISSED"
    print(f"import tq, after numpy        {added:7.2f} ms (least {min(inside):.2f}; target {TARGET_MS}: {verdict})")


def write_model(path, layout):
    """A model of two tensors, the second a constant of 1 GB that takes no room on the disk."""
    import tq

    with tq.ModelBuilder() as b:
        buffer = b.add_buffer(bytes(64)) if layout == "vector" else b.add_buffer(offset=4096, size=GIGABYTE)
        x = b.input("x", [1, 4])
        w = b.tensor("w", [1 << 14, 1 << 16], "INT8", scale=0.5, buffer=buffer)
        y = b.tensor("y", [1, 4])
        b.operator("FULLY_CONNECTED", [x, w], [y])
        b.output(y)
        content = bytearray(b.to_bytes())
    start = 4096
    if layout == "vector":  # it is the last: grow it, with its count before it
        start = tq.Model(bytes(content)).buffers[buffer].offset
        content[start - 4 : start] = GIGABYTE.to_bytes(4, "little")
    with open(path, "wb") as file:
        file.write(content)
        file.truncate(start + GIGABYTE)


def bench_touch():
    if not Path("/proc/self/smaps").exists():
        print("touched pages: only measured on Linux")
        return
    for layout in ("vector", "offset"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder).resolve() / "large.tflite"
            write_model(path, layout)
            opened, described, checked, total, constant = json.loads(run(TOUCH, path))
        assert total > GIGABYTE and constant == GIGABYTE
        verdict = "met" if checked < TARGET_MB << 20 else "MISSED"
        print(
            f"1 GB model, data by {layout}: {opened >> 10} KB touched by opening, {described >> 10} KB with details, "
            f"{checked >> 10} KB with problems (target under {TARGET_MB} MB: {verdict})"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41, help="processes of each kind (default: %(default)s)")
    options = parser.parse_args()
    print(f"Python {platform.python_version()} on {platform.platform()}")
    bench_import(options.rounds)
    bench_touch()


if __name__ == "__main__":
    main()
