# SPDX-License-Identifier: Apache-2.0
"""Damaged models and inputs never end the process that runs them: see hostile_runs.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import zoo

import tq

SCRIPT = Path(__file__).with_name("hostile_runs.py")


def run(seed, count, *operator):
    paths = [str(Path(tq.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, SCRIPT, str(seed), str(count), *operator],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    last = "\n".join(done.stdout.splitlines()[-2:])
    assert done.returncode == 0, f"code {done.returncode} at {last}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_of_one_operator(seed):
    run(seed, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_damaged_models_of_one_operator(seed):
    run(seed, 1000)


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_the_zoo_runs_or_is_refused(name):
    try:
        interpreter = tq.Interpreter(model_content=zoo.MODELS[name], max_memory=64 << 20)
        interpreter.allocate_tensors()
        interpreter.invoke()
    except (tq.Error, ValueError):
        pass
