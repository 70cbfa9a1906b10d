# SPDX-License-Identifier: Apache-2.0
"""The C files that test programs are built from."""

import shutil
import subprocess
from pathlib import Path

import pytest
from compiled import compiled, link

ROOT = Path(__file__).parents[2]

CORE = [path for path in sorted((ROOT / "src").rglob("*.c")) if "python" not in path.parts]


def sources(*names):
    """The fuzzer's own files, and the core's files of the rooms that it includes."""
    rooms = {"base", "flatbuffer", "model"}
    core = [path for path in CORE if path.relative_to(ROOT / "src").parts[0] in rooms]
    return [ROOT / "tests" / "fuzz" / name for name in names] + core


def compile_with(compiler, flags, files, objects, out):
    """Compiles, or skips where the compiler or its sanitizer runtime is missing."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not on the PATH")
    probe = out.with_suffix(".probe.c")
    probe.write_text(
        "int main(void) { return 0; }\n"
        if "fuzzer" not in " ".join(flags)
        else "#include <stddef.h>\nint LLVMFuzzerTestOneInput(const void *d, size_t n) { return !d && n; }\n"
    )
    tried = subprocess.run([compiler, *flags, probe, "-o", probe.with_suffix("")], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"{compiler} has no runtime for {' '.join(flags)}")
    return link(compiler, flags, compiled(objects, compiler, flags, files), out)


def core_sources():
    """What reads files, and what plans memory.

    Not the kernels, which have a test of their own.
    """
    rooms = ("base", "flatbuffer", "model", "quant")
    planning = [ROOT / "src" / "runtime" / "arena_offsets.c"]
    return sorted(path for room in rooms for path in (ROOT / "src" / room).rglob("*.c")) + planning


def own_sources():
    others = ("threads.c", "run_threads.c", "variants.c", "products.c", "models.c")  # programs of their own
    return [path for path in sorted((ROOT / "tests" / "c").rglob("*.c")) if path.name not in others]


BASE = sorted((ROOT / "src/base").rglob("*.c"))


SOURCES = [*sorted((ROOT / "src/kernels").rglob("*.c")), *sorted((ROOT / "src/quant").rglob("*.c")), *BASE]
