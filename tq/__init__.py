# SPDX-License-Identifier: Apache-2.0
"""tq: reads, checks and explains TensorFlow Lite models."""

from tq._core import Error, ModelError, dequantize, pack, quantize, requantize, unpack

__all__ = ["Error", "ModelError", "dequantize", "pack", "quantize", "requantize", "unpack"]
