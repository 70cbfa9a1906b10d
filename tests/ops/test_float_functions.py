# SPDX-License-Identifier: Apache-2.0
"""tq's own functions of float32 against NumPy's of float64."""

import math

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

FUNCTIONS = {"ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), "TANH": np.tanh, "EXP": np.exp}


def run(name, x):
    content = build_model([tensor("x", x.shape), tensor("y", x.shape)], [operator(name, [0], [1])], [0], [1])
    interpreter = tq.Interpreter(model_content=content, numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_floats_lies_within_0_51_units_in_the_last_place(name):
    every = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.linspace(-20, 20, 200_001, dtype=np.float32)
    x = np.concatenate([every[np.abs(every) < 80], near])
    expected = FUNCTIONS[name](x.astype(np.float64))
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(run(name, x) - expected) / unit) < 0.51


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ELU", [np.nan, np.inf, -1, 0, -0.0]), ("TANH", [np.nan, 1, -1, 0, -0.0]), ("EXP", [np.nan, np.inf, 0, 1, 1])],
)
def test_a_function_of_floats_keeps_nan_infinities_and_the_sign_of_zero(name, expected):
    got = run(name, np.array([np.nan, np.inf, -np.inf, 0, -0.0], np.float32))
    np.testing.assert_array_equal(got, np.array(expected, np.float32))
    assert np.signbit(got)[3:].tolist() == np.signbit(expected)[3:].tolist()


def test_exact_gelu_has_an_erfc_within_0_51_units_in_the_last_place():
    near = np.linspace(-15, 6, 100_001, dtype=np.float32)
    x = np.concatenate([near, np.geomspace(1e-45, 1, 10_000, dtype=np.float32), [-0.0, np.inf, -20, 20]]).astype("f4")
    argument = x * np.float32(-0.70710678118654752440)
    erfc = np.array([math.erfc(v) for v in argument.tolist()])
    nearest = erfc.astype(np.float32)
    half = np.float32(0.5) * x
    got = run("GELU", x)
    unit = np.spacing(nearest).astype(np.float64)
    near_tie = np.abs(np.abs(erfc - nearest) / unit - 0.5) < 0.01
    np.testing.assert_array_equal(got[~near_tie], (half * nearest)[~near_tie])
    other = nearest + np.copysign(unit, erfc - nearest).astype(np.float32)
    assert np.all((got == half * nearest) | (got == half * other))
    assert near_tie.mean() < 0.03
    assert np.isnan(run("GELU", np.array([np.nan], np.float32)))[0]
