# SPDX-License-Identifier: Apache-2.0
"""Damaged models and inputs never end the process that runs them: see tests/support/damaged_runs.py."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import damaged_runs
import numpy as np
import pytest
import zoo
from models import build_model, operator, tensor

import tq

SCRIPT = Path(damaged_runs.__file__)


def run(kind, seed, count):
    """Nothing of these models dies, is deaf, or raises something unexpected."""
    paths = [str(Path(tq.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, SCRIPT, kind, str(seed), "0", str(count), "--stop"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_of_one_operator(seed):
    run("damaged", seed, 160)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_damaged_models_of_one_operator(seed):
    run("damaged", seed, 4000)


@pytest.mark.parametrize("seed", (21, 22))
def test_impossible_models(seed):
    run("impossible", seed, 300)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(30, 34))
def test_many_impossible_models(seed):
    run("impossible", seed, 5000)


HUGE = 2**31 - 1
AXIS = np.array(0, np.int32)
EMPTY = {  # operators whose loops go over dimensions of tensors without elements
    "CUMSUM": (tensor("x", [1, 1, 1]), AXIS, tensor("y", []), {}),
    "ARG_MAX": (tensor("x", [1, 1, 1]), AXIS, tensor("y", [], "INT64"), {"output_type": "INT64"}),
    "TILE": (tensor("x", [1, 1, 1]), np.array([1, 1, 1], np.int32), tensor("y", []), {}),
    "REVERSE_V2": (tensor("x", [1, 1, 1]), AXIS.reshape(1), tensor("y", []), {}),
}


@pytest.mark.parametrize("numerics", ("reference", "optimized", "xnnpack"))
@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements_take_no_time(name, numerics):
    x, steering, y, options = EMPTY[name]
    steers = tensor("steering", list(steering.shape), "INT32", data=steering)
    model = build_model([x, steers, y], [operator(name, [0, 1], [2], **options)], [0], [2])
    interpreter = tq.Interpreter(model_content=model, numerics=numerics, max_memory=64 << 20)
    interpreter.resize_tensor_input(0, [1, HUGE, 0])
    began = time.monotonic()
    with contextlib.suppress(tq.Error):
        interpreter.allocate_tensors()
        interpreter.invoke()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_the_zoo_runs_or_is_refused(name):
    try:
        interpreter = tq.Interpreter(model_content=zoo.MODELS[name], max_memory=64 << 20)
        interpreter.allocate_tensors()
        interpreter.invoke()
    except (tq.Error, ValueError):
        pass


def memory_models():
    """A model of each of many operators, drawn at random."""
    import generators

    rows = generators.rows()
    return [(name, kind) for name, kind in rows if kind in ("int8", "float32", "hybrid", "int16", "string")]


def test_every_allocation_may_be_refused():
    """max_memory at every size up to what is needed: the nth block is the first that is too much, for every n."""
    import differential

    for number, (name, kind) in enumerate(memory_models()):
        case = differential.shaped(differential.draw(name, kind, 5, 0))
        numerics = ("reference", "optimized", "xnnpack")[number % 3]
        model = tq.Model(case.model)
        sizes, needed = set(), None
        limit = 1
        while needed is None:
            try:
                made = tq.Interpreter(model=model, max_memory=limit, numerics=numerics)
                made.allocate_tensors()
                made.invoke()
                needed = made._memory_used()[1]
            except (tq.Error, MemoryError) as error:
                text = str(error)
                if getattr(error, "code", "MEMORY_LIMIT") != "MEMORY_LIMIT":
                    break  # refused for another reason: nothing is left to allocate
                asked, used = (int(text.split(word)[0].split()[-1]) for word in (" bytes more", " are in use"))
                assert asked + used > limit and (asked, used) not in sizes, (name, kind, text)
                sizes.add((asked, used))
                limit = asked + used
        else:
            assert len(sizes) > 3, (name, kind)
