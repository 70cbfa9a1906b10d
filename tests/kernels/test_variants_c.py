# SPDX-License-Identifier: Apache-2.0
"""tests/c/variants.c and products.c: the kernels without Python, under sanitizers and by each compiler.

tests/whole/test_machines.py runs them on other machines.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from c_sources import BASE, SOURCES
from compiled import SANITIZED, compiled, link

ROOT = Path(__file__).parents[2]
PROGRAMS = ("variants", "products")


def build(compiler, objects, folder, *flags):
    """Paths of the programs."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    mains = [ROOT / "tests/c" / f"{name}.c" for name in PROGRAMS]
    made = compiled(objects, compiler, flags, [*mains, *SOURCES])
    mains, core = made[: len(mains)], made[len(mains) :]
    return [link(compiler, flags, [main, *core], folder / name) for main, name in zip(mains, PROGRAMS, strict=True)]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return int(done.stdout.split()[0])


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_under_sanitizers(compiler, objects, tmp_path):
    variants, products = build(compiler, objects, tmp_path, *SANITIZED)
    run(str(variants))
    assert run(str(products), "150") >= 150


@pytest.mark.slow
def test_products_at_length(objects, tmp_path):
    """Optimized, as they are shipped."""
    _, products = build("gcc", objects, tmp_path, "-O3")
    assert run(str(products)) >= 1500


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_threads_under_a_race_detector(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    program = tmp_path / "threads"
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=thread", f"-I{ROOT / 'src'}", "-pthread"]
    sources = [str(ROOT / "tests/c/threads.c"), *map(str, BASE)]
    subprocess.run([compiler, *flags, *sources, "-o", str(program)], check=True)
    assert run(str(program)) == 400
