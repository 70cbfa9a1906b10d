# SPDX-License-Identifier: Apache-2.0
"""The model that tq carries: made by its script, sound, and run by LiteRT."""

import os
import subprocess
import sys
from pathlib import Path

import make_demo_model
import numpy as np
import oracle
import pytest

import tq

DEMO = Path(tq.__file__).with_name("demo.tflite")


def test_the_script_makes_it_byte_for_byte(tmp_path):
    paths = os.pathsep.join([str(Path(tq.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, make_demo_model.__file__, tmp_path / "out.tflite"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths})
    assert (tmp_path / "out.tflite").read_bytes() == DEMO.read_bytes() == make_demo_model.make()


def test_it_shows_what_tq_is_for():
    model = tq.Model(DEMO)
    assert str(model.inputs[0].quantization) == (
        "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838"
    )
    weights = model.tensors["edges/filter"]
    assert weights.quantization.kind == "per-axis"
    assert weights.quantization.min.tolist() == [-1, -0.8125, -1.25, -0.6875]
    np.testing.assert_allclose(weights.dequantized(), make_demo_model.filters(), atol=0.006)
    assert not model.problems
    assert model.min_runtime_version == "1.14.0"
    assert [op.name for op in model.operators] == ["CONV_2D", "DEPTHWISE_CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX"]
    assert DEMO.stat().st_size < 4096


def stripes():
    """[vertical, horizontal] as int8 values of the demo's input."""
    image = np.where(np.arange(8) // 2 % 2, 1.2, -1.2) * np.ones((8, 1))
    codes = np.round(np.stack([image, image.T]) / 0.012566017).astype(np.int8) + 3
    return np.repeat(codes[:, None, :, :, None], 3, -1).astype(np.int8)


@pytest.mark.parametrize("resolver", ["AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"])
def test_litert_runs_it_and_it_tells_stripes_apart(resolver):
    (answer,) = oracle.ask("run", [(str(DEMO), resolver, list(stripes()))])
    assert not isinstance(answer, oracle.Refusal | oracle.Abort), answer
    vertical, horizontal = answer
    assert vertical.shape == (1, 2) and vertical.dtype == np.int8
    assert vertical[0, 0] > 100 and horizontal[0, 1] > 100
