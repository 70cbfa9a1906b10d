# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark as on a machine with AVX2 alone, LiteRT's XNNPACK included.

    python benchmarks/litert_avx2.py benchmarks/bench_run.py --no-reference --threads 1

XNNPACK asks the CPU itself which kernels it may choose, and has no option for it.  So a copy of the ai_edge_litert
package, in a temporary folder, gets the undefined instruction ud2 in place of each cpuid, and litert_avx2.c, which is
preloaded, answers its signals by what cpuid says, less AVX-512, AVX-VNNI and AMX.  tq is kept from these by
TQ_DISABLE_CPU.  Needs gcc and objdump, on x86-64 Linux.  `perf record` shows which kernels run: XNNPACK's names end in
avx2 and fma3.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = "libpywrap_litert_common.so"  # has XNNPACK
CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"
TQ_DISABLED = "avx512,avx512vnni,avx512vbmi,avxvnni"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def offset_of_text(library):
    """The address of the section .text less its place in the file."""
    found = re.search(r"\.text +\w+ +(\w+) +\w+ +(\w+)", output_of("objdump", "-h", library))
    return int(found[1], 16) - int(found[2], 16)


def replace_cpuids(library):
    offset = offset_of_text(library)
    data = bytearray(library.read_bytes())
    lines = output_of("objdump", "-d", "-j", ".text", "--no-show-raw-insn", library)
    for address in re.findall(r"^ *(\w+):\s+cpuid\s*$", lines, re.MULTILINE):
        at = int(address, 16) - offset
        assert data[at : at + 2] == CPUID, address
        data[at : at + 2] = UD2
    library.write_bytes(data)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python benchmarks/litert_avx2.py SCRIPT [ARGUMENT ...]")
    package = Path(importlib.util.find_spec("ai_edge_litert").origin).parent
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / package.name
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("vendors", "*WebGpu*"))
        replace_cpuids(copy / LIBRARY)
        preloaded = Path(folder) / "litert_avx2.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(
            ["gcc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", str(source), "-o", str(preloaded)], check=True
        )
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        changes = {"LD_PRELOAD": str(preloaded), "PYTHONPATH": os.pathsep.join(paths), "TQ_DISABLE_CPU": TQ_DISABLED}
        sys.exit(subprocess.run([sys.executable, *sys.argv[1:]], env=os.environ | changes).returncode)


if __name__ == "__main__":
    main()
