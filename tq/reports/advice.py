# SPDX-License-Identifier: Apache-2.0
"""Options of tq.quantize_model that may help where a quantized model's results are poor, and what they gain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tq._core import Error, Model
from tq.accuracy import measuring
from tq.quantization.quantize import quantize_model
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits

POOR = 30.0  # dB; advice is given below


class Option(NamedTuple):
    """Arguments of quantize_model, and the same on the command line."""

    text: str
    why: str
    arguments: dict[str, Any]


OPTIONS = (
    Option("--recipe int8", "takes ranges from these samples", {"recipe": "int8"}),
    Option(
        "--recipe int8 --bias-correction", "takes shifts of means back", {"recipe": "int8", "bias_correction": True}
    ),
    Option(
        "--recipe int8 --equalize",
        "channels of very different ranges share a scale",
        {"recipe": "int8", "equalize": True},
    ),
    Option("--recipe int8 --observer mse", "outliers widen ranges", {"recipe": "int8", "observer": "mse"}),
    Option("--recipe int16x8", "activations of 16 bits", {"recipe": "int16x8"}),
    Option("--recipe dynamic_int8", "float activations, int8 products", {"recipe": "dynamic_int8"}),
    Option("--recipe weight_only_int8", "float arithmetic", {"recipe": "weight_only_int8"}),
)
_CALIBRATED = ("int8", "int16x8")


class Tried(NamedTuple):
    """An option on the report's samples."""

    option: Option
    sqnr_db: float  # of the outputs; NaN: it is not possible
    nbytes: int
    reason: str  # why it is not possible


def attempts(model: Model, fed: measuring.Samples, num_threads: int | None, limits: Limits) -> Iterator[Tried]:
    """Quantizes a float model with one option after another, and runs it on the samples."""
    for option in OPTIONS:
        arguments: dict[str, Any] = dict(option.arguments)
        if arguments["recipe"] in _CALIBRATED:
            arguments |= {"calibration": fed.all(), **limits._asdict()}
        try:
            data = quantize_model(model, **arguments)
            found = _sqnr(model, Model(data), fed, num_threads, limits)
        except (Error, ValueError) as error:
            yield Tried(option, math.nan, 0, str(error))
        else:
            yield Tried(option, found, len(data), "")


def _sqnr(a: Model, b: Model, fed: measuring.Samples, num_threads: int | None, limits: Limits) -> float:
    """The SQNR of the outputs over the samples."""

    def interpreter(model: Model) -> Interpreter:
        return Interpreter(model=model, num_threads=num_threads, numerics="reference", **limits._asdict())

    one, two = interpreter(a), interpreter(b)
    pairs = [(x, y) for x, y in zip(a.outputs, b.outputs, strict=True) if x is not None and y is not None]
    noises = [measuring.Noise() for _ in pairs]
    for _ in zip(fed.each(one), fed.each(two), strict=True):
        one.invoke()
        two.invoke()
        for noise, (left, right) in zip(noises, pairs, strict=True):
            x = np.asarray(one.get_tensor(left.index))
            y = measuring.real(np.asarray(two.get_tensor(right.index)), right)
            if x.dtype.kind == "f" and y is not None and x.shape == y.shape:
                noise.add(x, y)
    return measuring.together(noises)
