# SPDX-License-Identifier: Apache-2.0
"""tests/c/variants.c and products.c: the kernels without Python, under sanitizers, by each compiler, and on an emulated
processor."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = [
    *sorted((ROOT / "src/kernels").glob("*.c")),
    *(ROOT / "src" / f"quant/{name}.c" for name in ("codes", "packing", "params", "weights")),
    *(ROOT / "src" / f"base/{name}.c" for name in ("alloc", "cpu", "pages", "status", "threads")),
]
PROGRAMS = ("variants", "products")
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}", f"-I{ROOT}"]


def build(compiler, folder, *flags):
    """Paths of the programs.  Each file by a compiler of its own: some of them take a minute each under sanitizers."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")

    def command(*arguments):
        done = subprocess.run([compiler, *FLAGS, *flags, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def compiled(source):
        made = folder / f"{source.stem}.o"
        command("-c", source, "-o", made)
        return made

    mains = [ROOT / "tests/c" / f"{name}.c" for name in PROGRAMS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, [*mains, *SOURCES]))
    programs = []
    for main in objects[: len(mains)]:
        programs.append(folder / main.stem)
        command(main, *objects[len(mains) :], "-lm", "-pthread", "-o", programs[-1])
    return programs


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return int(done.stdout.split()[0])


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_under_sanitizers(compiler, tmp_path):
    variants, products = build(compiler, tmp_path, "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    run(str(variants))
    assert run(str(products), "150") >= 150


def test_on_aarch64(tmp_path):
    if not shutil.which("qemu-aarch64"):
        pytest.skip("no qemu-aarch64")
    variants, products = build("aarch64-linux-gnu-gcc", tmp_path, "-static")
    assert run("qemu-aarch64", str(variants)) > 10000
    assert run("qemu-aarch64", str(products), "300") > 300


@pytest.mark.slow
def test_products_at_length(tmp_path):
    """Optimized, as they are shipped."""
    _, products = build("gcc", tmp_path, "-O3")
    assert run(str(products)) >= 1500


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_threads_under_a_race_detector(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    program = tmp_path / "threads"
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=thread", f"-I{ROOT / 'src'}", "-pthread"]
    base = ("threads.c", "shared.c", "alloc.c", "pages.c", "status.c")
    sources = [str(ROOT / "tests/c/threads.c"), *(str(ROOT / "src/base" / name) for name in base)]
    subprocess.run([compiler, *flags, *sources, "-o", str(program)], check=True)
    assert run(str(program)) == 400
