# SPDX-License-Identifier: Apache-2.0
"""tests/c/run_threads.c: runs of one model in several threads, without Python, under a race detector."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled import compiled, link

import tq

ROOT = Path(__file__).parents[2]
FLAGS = ["-O0", "-g1", "-fsanitize=thread"]  # all of the core: unoptimized, so that it compiles fast
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


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_runs_of_one_model_in_several_threads(compiler, objects, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    core = sorted(path for path in (ROOT / "src").rglob("*.c") if "python" not in path.parts)
    made = compiled(objects, compiler, FLAGS, [ROOT / "tests/c/run_threads.c", *core])
    program = link(compiler, FLAGS, made, tmp_path / "run_threads")
    paths = []
    for dtype in ("FLOAT32", "INT8"):
        paths.append(tmp_path / f"{dtype}.tflite")
        paths[-1].write_bytes(layers(dtype))
    done = subprocess.run([program, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert done.stdout == f"{RUNS * len(paths)} runs\n"
