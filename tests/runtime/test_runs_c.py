# SPDX-License-Identifier: Apache-2.0
"""tests/c/run_threads.c: runs of one model in several threads, without Python, under a race detector; and under a leak
detector, which counts what is left at the end."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled import SANITIZED, compiled, link

import tq

ROOT = Path(__file__).parents[2]
RACES = ["-O0", "-g1", "-fsanitize=thread"]  # all of the core: unoptimized, so that it compiles fast
LEAKS = SANITIZED  # the objects of tests/runtime/test_impossible.py; the address sanitizer looks for leaks, too
RUNS = 4 * 3 * 4  # threads, runs of each, numerics, that of single rounding among them


def layers(dtype):
    """Two layers whose weights are packed, and shared between the runs; 512 outputs, so that threads pay."""
    scale = {} if dtype == "FLOAT32" else {"scale": 0.1, "zero_point": 0}
    rng = np.random.default_rng(0)
    b = tq.ModelBuilder()
    last = b.input("x", [8, 256], dtype, **scale)
    for name in ("first", "second"):
        values = rng.integers(-9, 9, (256, 256)).astype(np.float32 if dtype == "FLOAT32" else np.int8)
        weights = b.constant(name, values, **scale)
        following = b.tensor(f"{name}_out", [8, 256], dtype, **scale)
        b.operator("FULLY_CONNECTED", [last, weights], [following])
        last = following
    b.output(last)
    return b.to_bytes()


def program_of(compiler, flags, objects, folder):
    """run_threads, or a skip where the compiler has no such sanitizer."""
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    if not shutil.which(compiler) or subprocess.run([compiler, *flags, probe, "-o", folder / "probe"]).returncode:
        pytest.skip(f"no {compiler} with {flags[-1]}")
    core = sorted(path for path in (ROOT / "src").rglob("*.c") if "python" not in path.parts)
    made = compiled(objects, compiler, flags, [ROOT / "tests/c/run_threads.c", *core])
    return link(compiler, flags, made, folder / "run_threads")


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        pytest.param("clang", RACES, id="races"),  # compiles in a third of gcc's time
        pytest.param("gcc", RACES, marks=pytest.mark.slow, id="races, gcc"),
        pytest.param("clang", LEAKS, id="leaks"),
    ],
)
def test_runs_of_one_model_in_several_threads(compiler, flags, objects, tmp_path):
    program = program_of(compiler, flags, objects, tmp_path)
    paths = []
    for dtype in ("FLOAT32", "INT8"):
        paths.append(tmp_path / f"{dtype}.tflite")
        paths[-1].write_bytes(layers(dtype))
    done = subprocess.run([program, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert done.stdout == f"{RUNS * len(paths)} runs\n"


@pytest.mark.skipif(sys.platform != "linux", reason="where the address sanitizer looks for leaks")
def test_the_leak_detector_finds_a_leak(tmp_path):
    if not shutil.which("clang"):
        pytest.skip("no clang")
    source, program = tmp_path / "leak.c", tmp_path / "leak"
    source.write_text("#include <stdlib.h>\nvoid *volatile p;\nint main(void) { p = malloc(9); p = NULL; return 0; }\n")
    if subprocess.run(["clang", *LEAKS, source, "-o", program]).returncode:
        pytest.skip("clang has no sanitizer runtimes")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode != 0 and "9 byte(s) leaked" in done.stderr
