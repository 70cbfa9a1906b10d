# SPDX-License-Identifier: Apache-2.0
"""Fixed point, parameters, observers and fake quantization give back what they take, also where they refuse."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from leaks import assert_no_leak

import tq

X = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
ODD = X.astype(">f8")[:, ::2]  # neither dense nor of this machine's byte order
OBSERVERS = (
    lambda: tq.MinMaxObserver(axis=1),
    lambda: tq.MovingAverageObserver(axis=1),
    lambda: tq.HistogramObserver(64, axis=1),
)

CALLS = {
    "quantize_multiplier": lambda: (tq.quantize_multiplier(X), tq.quantize_multiplier(0.3)),
    "multiply": lambda: tq.multiply_by_quantized_multiplier(np.arange(64).astype(">i8"), [[5], [7]], -3, "single"),
    "multiply_int64": lambda: tq.multiply_by_quantized_multiplier_int64([1, 2], 5, 3),
    "divide": lambda: tq.rounding_divide_by_pot(np.arange(64), 3),
    "high_mul": lambda: tq.saturating_rounding_doubling_high_mul(np.arange(64), 3),
    "explain": lambda: (str(tq.explain_requantize(5, (2**30, -3))), tq.explain_requantize(5, 0.3, rounding="single")),
    "choose": lambda: (
        tq.choose_quantization_params(X.min(1), ODD.max(1), np.uint8),
        tq.choose_quantization_params(0, 1),
    ),
    "bias": lambda: (tq.bias_quantization_params(0.1, [0.2, 0.3]), tq.quantize_bias(X, 0.1, 0.2, "int64")),
    "fit": lambda: (tq.fit_scales_to_bias(0.1, 0.2, X[0]), tq.fit_scales_to_bias([0.1, 1], 0.2, [3, 4])),
    "weights": lambda: (tq.quantize_weights(ODD, None, "int16"), tq.quantize_weights(X, 0, scale=np.ones(8))),
    "blocks": lambda: (tq.quantize_weights(ODD, 0, "int4", block_size=4), tq.quantize_weights(X, None, "uint8", max=1)),
    "measures": lambda: (tq.mse(ODD, ODD, 0), tq.sqnr_db(X, X), tq.cosine(X[0], [1] * 64), tq.max_error(1.0, 2)),
    "requantization": lambda: (
        tq.Requantization(np.linspace(0.001, 0.01, 64), 3, axis=1).requantize(np.zeros((70, 64), np.int32)),
        repr(pickle.loads(pickle.dumps(tq.Requantization([0.1, 0.2], axis=0, dtype="int16")))),
    ),
    "rules": tq.rules,
    "fake_quant": lambda: (
        tq.fake_quant(ODD, -1, 1),
        tq.fake_quant(X, -np.ones(64), 1, axis=1),
        tq.fake_quant(0.3, 0, 1),
    ),
    "gradient": lambda: (tq.fake_quant_gradient(X, X, -1, 1, axis=0), tq.fake_quant_gradient(0.3, 0.4, -1, 1)),
    "pickle": lambda: pickle.loads(pickle.dumps(tq.choose_quantization_params([0, -1], 1))),
    "observers": lambda: [make().update(ODD).merge(make().update(ODD * 9)).quantization() for make in OBSERVERS],
    "methods": lambda: [
        tq.HistogramObserver(64).update(X).range(m) for m in ("minmax", "percentile", "mse", "entropy")
    ],
}

REFUSED = {
    "requantization": lambda: tq.Requantization([0.1, -1], axis=0),
    "requantization's codes": lambda: tq.Requantization(0.1, 300),
    "requantized": lambda: tq.Requantization([0.1, 0.2], axis=0).requantize([1, 2, 3]),
    "nan": lambda: tq.quantize_multiplier([1, np.nan]),
    "rounding": lambda: tq.multiply_by_quantized_multiplier(1, 1, 1, "no"),
    "wide": lambda: tq.rounding_divide_by_pot([1, 2**40], 1),
    "object": lambda: tq.rounding_divide_by_pot(1, object()),
    "broadcast": lambda: tq.multiply_by_quantized_multiplier([1, 2], [1, 2, 3], 1),
    "range": lambda: tq.choose_quantization_params([0, 1], [1, 0]),
    "dtype": lambda: tq.choose_quantization_params(0, 1, np.float32),
    "rule": lambda: tq.choose_quantization_params(0, 1, rule="no"),
    "bias": lambda: tq.quantize_bias(1, -1, 1),
    "fit": lambda: tq.fit_scales_to_bias([1, np.nan], 1, 1),
    "weights": lambda: tq.quantize_weights([1, np.nan], 0),
    "axis": lambda: tq.quantize_weights(X, 9),
    "scale": lambda: tq.quantize_weights(X, 0, scale=[1, 2]),
    "block": lambda: tq.quantize_weights(X, 0, block_size=3),
    "block scale": lambda: tq.quantize_weights(X, 0, block_size=2, scale=X),
    "toco": lambda: tq.quantize_weights(X, None, "uint8", min=0, max=0),
    "measured": lambda: tq.mse(X, X[0]),
    "measured type": lambda: tq.mse(X, ["a"]),
    "bits": lambda: tq.fake_quant(X, 0, 1, 99),
    "min": lambda: tq.fake_quant(X, [0, 1], 1, axis=0),
    "nudge": lambda: tq.fake_quant(X, np.ones(8), 1, axis=0),
    "shapes": lambda: tq.fake_quant_gradient(X, X[0], 0, 1),
    "method": lambda: tq.HistogramObserver(64).update(X).range("no"),
    "percentile": lambda: tq.HistogramObserver(64).update(X).range("percentile", percentile=-1),
    "channels": lambda: tq.MinMaxObserver(0).update(X).update(X.T),
    "pair": lambda: tq.explain_requantize(1, (1, 2, 3)),
    "state": lambda: tq._core._histogram_counts(X, None, np.zeros(2, np.int32), 64, None),
}


@pytest.mark.parametrize("name", CALLS)
def test_answers(name):
    assert_no_leak(CALLS[name], 300)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    def refused():
        try:
            REFUSED[name]()
        except (ValueError, TypeError):
            return
        raise AssertionError("not refused")

    assert_no_leak(refused, 300)


NO_MEMORY = """
import _testcapi
import numpy as np
import tq

x, acc, scale = np.ones((8, 64), np.float32), np.ones((80, 64), np.int32), np.full(64, 0.5)
layer = tq.Requantization(scale, 3, axis=1)
calls = [
    lambda: tq.quantize(x, scale, np.arange(64), axis=1),
    lambda: tq.dequantize([1, 2], 0.5),
    lambda: tq.requantize(acc, scale, axis=1),
    lambda: layer.requantize(acc),
    lambda: tq.choose_quantization_params([0, 1], 2),
    lambda: tq.quantize_multiplier(scale),
    lambda: tq.quantize_weights(x, 0),
    lambda: tq.fake_quant(x, 0, 1),
    lambda: tq.mse(x, x, 0),
]
failed = 0
for call in calls:
    call()
    for i in range(60):
        _testcapi.set_nomemory(i, i + 1)
        try:
            call()
        except MemoryError:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
assert failed > len(calls)
"""


def test_allocations_that_fail():
    """Each of Python's and NumPy's that a call makes: a MemoryError, and nothing worse."""
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-c", NO_MEMORY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
