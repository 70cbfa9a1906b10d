# SPDX-License-Identifier: Apache-2.0
"""tq: reads, checks and explains TensorFlow Lite models."""

from tq._core import (
    Error,
    ModelError,
    QuantizationParams,
    QuantizedWeights,
    bias_quantization_params,
    choose_quantization_params,
    fake_quant,
    fake_quant_gradient,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    quantize_bias,
    quantize_multiplier,
    quantize_weights,
    rounding_divide_by_pot,
    rules,
    saturating_rounding_doubling_high_mul,
)
from tq.explain import RequantizeExplanation, explain_requantize
from tq.observers import HistogramObserver, MinMaxObserver, MovingAverageObserver

__all__ = [
    "Error",
    "HistogramObserver",
    "MinMaxObserver",
    "ModelError",
    "MovingAverageObserver",
    "QuantizationParams",
    "QuantizedWeights",
    "RequantizeExplanation",
    "bias_quantization_params",
    "choose_quantization_params",
    "explain_requantize",
    "fake_quant",
    "fake_quant_gradient",
    "multiply_by_quantized_multiplier",
    "multiply_by_quantized_multiplier_int64",
    "quantize_bias",
    "quantize_multiplier",
    "quantize_weights",
    "rounding_divide_by_pot",
    "rules",
    "saturating_rounding_doubling_high_mul",
]
