# SPDX-License-Identifier: Apache-2.0
# What tq._core offers to users; its docstrings say what each does. Names with an underscore are tq's own.

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

class Error(Exception): ...

class ModelError(Error, ValueError):
    code: str
    offset: int | None

# ---- fixed point: an array where an argument is one, else a scalar ----

def quantize_multiplier(real: ArrayLike, *, rounding: str = "double") -> tuple[Any, Any]: ...
def multiply_by_quantized_multiplier(
    x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, rounding: str = "double"
) -> Any: ...
def multiply_by_quantized_multiplier_int64(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Any: ...
def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> Any: ...
def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> Any: ...

# ---- parameters ----

class QuantizationParams(NamedTuple):
    scale: Any
    zero_point: Any

class QuantizedWeights(NamedTuple):
    codes: NDArray[np.signedinteger[Any]]
    scale: Any

def choose_quantization_params(
    min: ArrayLike,
    max: ArrayLike,
    dtype: DTypeLike = "int8",
    *,
    symmetric: bool = False,
    narrow_range: bool = False,
    rule: str = "toco",
) -> QuantizationParams: ...
def bias_quantization_params(input_scale: ArrayLike, weight_scale: ArrayLike) -> QuantizationParams: ...
def quantize_bias(b: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, dtype: str = "int32") -> Any: ...
def quantize_weights(
    w: ArrayLike,
    axis: int | None,
    dtype: DTypeLike = "int8",
    *,
    rule: str | None = None,
    scale: ArrayLike | None = None,
) -> QuantizedWeights: ...
def fit_scales_to_bias(weight_scale: ArrayLike, input_scale: ArrayLike, b: ArrayLike) -> tuple[Any, Any]: ...
def rules() -> dict[str, dict[str, str]]: ...

# ---- fake quantization ----

def fake_quant(
    x: ArrayLike,
    min: ArrayLike,
    max: ArrayLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    axis: int | None = None,
    *,
    rule: str = "tflite",
) -> Any: ...
def fake_quant_gradient(
    dy: ArrayLike,
    x: ArrayLike,
    min: ArrayLike,
    max: ArrayLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    axis: int | None = None,
) -> tuple[Any, Any, Any]: ...

# ---- observers' array work; tq/observers.py ----

_LEAST_BINS: int
_MOST_BINS: int
_LEAST_EXPONENT: int

_Doubles = NDArray[np.float64]
_Exponents = NDArray[np.int32]
_Counts = NDArray[np.uint64]

def _observe(x: ArrayLike, axis: int | None) -> tuple[_Doubles, _Doubles, _Counts]: ...
def _histogram_grow(exponents: _Exponents, counts: _Counts, min: _Doubles, max: _Doubles) -> None: ...
def _histogram_fold(exponents: _Exponents, counts: _Counts, to: _Exponents) -> None: ...
def _histogram_counts(x: ArrayLike, axis: int | None, exponents: _Exponents, bins: int) -> _Counts: ...
def _histogram_range(
    exponents: _Exponents,
    counts: _Counts,
    min: _Doubles,
    max: _Doubles,
    method: str,
    percentile: float,
    dtype: DTypeLike,
    symmetric: bool,
    narrow_range: bool,
    rule: str,
) -> tuple[_Doubles, _Doubles]: ...
def _requantize_steps(
    acc: int, multiplier: float | tuple[int, int], zero_point: int, rounding: str, dtype: DTypeLike
) -> tuple[dict[str, Any], str, int, int]: ...
