# SPDX-License-Identifier: Apache-2.0
"""tests/c/variants.c: the kernels without Python, under sanitizers, by each compiler, and on an emulated processor."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = [ROOT / "tests/c/variants.c", *(ROOT / "src" / f"base/{n}.c" for n in ("cpu", "status", "threads"))]
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}", f"-I{ROOT}"]


def build(compiler, out, *flags):
    """Each file by a compiler of its own: two of them take a minute each under sanitizers."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")

    def command(*arguments):
        done = subprocess.run([compiler, *FLAGS, *flags, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    sources = [*sorted((ROOT / "src/kernels").glob("*.c")), *SOURCES]
    objects = [out.with_name(f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source, made: command("-c", source, "-o", made), sources, objects))
    command(*objects, "-lm", "-pthread", "-o", out)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return int(done.stdout.split()[0])


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_under_sanitizers(compiler, tmp_path):
    program = tmp_path / "variants"
    build(compiler, program, "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    run(str(program))


def test_on_aarch64(tmp_path):
    if not shutil.which("qemu-aarch64"):
        pytest.skip("no qemu-aarch64")
    program = tmp_path / "variants"
    build("aarch64-linux-gnu-gcc", program, "-static")
    assert run("qemu-aarch64", str(program)) > 10000


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_threads_under_a_race_detector(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    program = tmp_path / "threads"
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=thread", f"-I{ROOT / 'src'}", "-pthread"]
    sources = [str(ROOT / "tests/c/threads.c"), str(ROOT / "src/base/threads.c")]
    subprocess.run([compiler, *flags, *sources, "-o", str(program)], check=True)
    assert run(str(program)) == 400
