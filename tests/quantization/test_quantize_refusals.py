# SPDX-License-Identifier: Apache-2.0
"""Refusals of quantize_model and calibrate: each error names the cause, and no part of a file is left behind."""

import os
import subprocess
import sys

import numpy as np
import pytest
from commands import TQ, environment
from models import calibrated
from two_inputs import network as two_inputs

import tq
from tq.quantization.recipes import FLOAT, RECIPES

ALL = [name for name, recipe in RECIPES.items() if recipe.form != FLOAT]
linux = pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="only files without names leave nothing when killed")


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def dense(weights=None, bias=None, extra=None):
    """y = x W + b; `extra` adds an operator."""
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 64], shape_signature=[-1, 64]), b.tensor("y", [1, 32])
    w = b.constant("w", normal(32, 64) if weights is None else weights)
    bias = b.constant("bias", normal(32, seed=1) if bias is None else bias)
    b.operator("FULLY_CONNECTED", [x, w, bias], [y])
    b.output(extra(b, y) if extra else y)
    return b.to_bytes()


def samples(count=3):
    return [normal(1, 64, seed=seed) for seed in range(count)]


def refused(words, model, recipe, folder, *, calibration=None, error=ValueError):
    """Refuses with those words, and writes nothing."""
    given = calibrated(recipe, samples()) if calibration is None else {"calibration": calibration}
    with pytest.raises(error, match=words):
        tq.quantize_model(model, recipe, **given, min_elements=0, output=folder / "out.tflite")
    assert os.listdir(folder) == []


@pytest.mark.parametrize("recipe", ALL)
@pytest.mark.parametrize("first", ["int8", "dynamic_int8", "weight_only_int4"])
def test_a_model_that_is_quantized_already(recipe, first, tmp_path):
    model = tq.quantize_model(dense(), first, **calibrated(first, samples()), min_elements=0)
    refused("the model is quantized already: <tq tensor '(w|[xy]_int8)'", model, recipe, tmp_path)


@pytest.mark.parametrize("recipe", ALL)
def test_non_finite_weights_are_refused(recipe, tmp_path):
    weights = normal(32, 64)
    weights[7, 9] = np.nan
    refused("'w'.*(?i:nan)", dense(weights), recipe, tmp_path)


def test_non_finite_biases_are_refused(tmp_path):
    bias = normal(32)
    bias[3] = np.nan
    refused("of operator FULLY_CONNECTED: .*nan", dense(bias=bias), "int8", tmp_path)


def unknown(b, y):
    z = b.tensor("z", [1, 32])
    b.operator("TheirOwnOperator", [y], [z], custom_options=b"")
    return z


def test_operators_without_float_kernels(tmp_path):
    refused("TheirOwnOperator", dense(extra=unknown), "int8", tmp_path, error=tq.RunError)
    made = tq.Model(tq.quantize_model(dense(extra=unknown), "dynamic_int8", min_elements=0))  # which runs nothing
    assert [operator.name for operator in made.operators] == ["FULLY_CONNECTED", "TheirOwnOperator"]


def not_there(b, y):
    """Float32 in an operator that takes integers alone."""
    z = b.tensor("z", [1, 32])
    b.operator("BITWISE_XOR", [y, y], [z])
    return z


def test_types_that_an_operator_has_no_kernel_for(tmp_path):
    refused("BITWISE_XOR", dense(extra=not_there), "int8", tmp_path, error=tq.RunError)


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        ([], "calibration set is empty"),
        (iter([]), "calibration set is empty"),
        ([np.zeros((1, 64))], "sample 0: input 'x' is of float32, not float64"),
        ([normal(1, 64), normal(1, 63)], r"sample 1: input 'x' has the shape \[-1, 64\], not \[1, 63\]"),
        ([normal(0, 64)], r"sample 0: input 'x' has dimension 0 open; the shape \[0, 64\] has length 0 there"),
        ([{"y": normal(1, 64)}], "sample 0: no input is called 'y'; there are: x"),
        ([[normal(1, 64), normal(1, 64)]], "sample 0 has 2 inputs; the model has 1"),
        ([np.full((1, 64), np.nan, np.float32)], "tensor 'x' had no finite value in 1 samples"),
        (tq.Calibration({}, {}), "the calibration is empty"),
    ],
)
def test_calibration_that_does_not_fit(calibration, words, tmp_path):
    refused(words, dense(), "int8", tmp_path, calibration=calibration)


def test_calibration_of_another_model(tmp_path):
    other = tq.calibrate(two_inputs(), [[normal(1, 8), normal(1, 8)]])
    refused("the calibration is of another model: its tensor", dense(), "int8", tmp_path, calibration=other)


def test_open_dimensions_that_do_not_go_together(tmp_path):
    data = [[normal(2, 8), normal(2, 8)], [normal(2, 8), normal(3, 8)]]
    refused("calibration sample 1: .*ADD", two_inputs(), "int8", tmp_path, calibration=data, error=tq.RunError)


# ---- files ----

QUANTIZE = "tq.quantize_model('in.tflite', 'dynamic_int8', min_elements=0, output='out.tflite')"
SAVE = "e = tq.edit('in.tflite'); e.description = 'x'; e.save('out.tflite')"
CALIBRATION = """
import numpy as np
tq.calibrate('in.tflite', [np.ones((1, 64), np.float32)]).save('out.tflite')
"""


def run(script, folder):
    (folder / "in.tflite").write_bytes(dense())
    (folder / "out.tflite").write_bytes(b"what was there")
    command = [sys.executable, "-c", f"import tq, os, resource, signal\n{script}"]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)


def is_untouched(folder):
    return sorted(os.listdir(folder)) == ["in.tflite", "out.tflite"] and (
        (folder / "out.tflite").read_bytes() == b"what was there"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is POSIX's")
@pytest.mark.parametrize("action", [QUANTIZE, SAVE, CALIBRATION])
def test_a_full_disk(action, tmp_path):
    done = run(f"resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.RLIM_INFINITY))\n{action}", tmp_path)
    assert done.returncode == 1 and "OSError" in done.stderr and "File too large" in done.stderr
    assert is_untouched(tmp_path)


@linux
@pytest.mark.parametrize(
    ("action", "moment"),
    [(QUANTIZE, "fchmod"), (QUANTIZE, "fsync"), (QUANTIZE, "link"), (SAVE, "fsync"), (CALIBRATION, "fsync")],
)
def test_killed_while_it_writes(action, moment, tmp_path):
    done = run(f"os.{moment} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n{action}", tmp_path)
    assert done.returncode == -9
    assert is_untouched(tmp_path)


@linux
def test_killed_in_the_middle(tmp_path):
    half = "def half(d, data): write(d, data[: len(data) // 2]); os.kill(os.getpid(), signal.SIGKILL)"
    done = run(f"write = os.write\n{half}\nos.write = half\n{QUANTIZE}", tmp_path)
    assert done.returncode == -9
    assert is_untouched(tmp_path)


@pytest.mark.parametrize("missing", ["os.O_TMPFILE", "os.link"])
def test_systems_that_have_no_files_without_names(missing, tmp_path):
    gone = "def none(*a, **k): raise OSError('none')\n" + (
        f"{missing} = none" if missing == "os.link" else f"del {missing}"
    )
    if missing == "os.O_TMPFILE" and not hasattr(os, "O_TMPFILE"):
        gone = ""
    done = run(f"{gone}\n{QUANTIZE}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert tq.Model(tmp_path / "out.tflite").tensors["w"].dtype == np.int8
    assert sorted(os.listdir(tmp_path)) == ["in.tflite", "out.tflite"]


def test_the_command_reports_errors_in_a_line(tmp_path):
    weights = normal(32, 64)
    weights[0, 0] = np.nan
    (tmp_path / "in.tflite").write_bytes(dense(weights))
    command = [*TQ, "quantize", "in.tflite", "out.tflite", "--recipe", "dynamic_int8"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode != 0 and "'w'" in done.stderr and "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["in.tflite"]
