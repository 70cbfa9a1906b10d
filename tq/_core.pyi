# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

class Error(Exception): ...

class ModelError(Error, ValueError):
    code: str
    offset: int | None

class KernelVariant(TypedDict):
    name: str
    isa: str
    available: bool
    chosen: bool

QuantizeRounding = Literal["away", "even"]
RequantizeRounding = Literal["double", "single", "up", "float64-away", "float32-even"]
NarrowType = Literal["int4", "uint4", "int2"]

@overload
def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    dtype: Literal["int8"] = "int8",
    axis: int | None = None,
    block_size: int | None = None,
    narrow_range: bool = False,
    rounding: QuantizeRounding = "away",
    out: NDArray[np.int8] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.int8]: ...
@overload
def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    dtype: DTypeLike | NarrowType,
    axis: int | None = None,
    block_size: int | None = None,
    narrow_range: bool = False,
    rounding: QuantizeRounding = "away",
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def dequantize(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    dtype: Literal["float32"] = "float32",
    out: NDArray[np.float32] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.float32]: ...
@overload
def dequantize(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    dtype: DTypeLike,
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def requantize(
    q: ArrayLike,
    multiplier: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    input_zero_point: ArrayLike = 0,
    dtype: Literal["int8"] = "int8",
    axis: int | None = None,
    rounding: RequantizeRounding = "double",
    out: NDArray[np.int8] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.int8]: ...
@overload
def requantize(
    q: ArrayLike,
    multiplier: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    input_zero_point: ArrayLike = 0,
    dtype: DTypeLike,
    axis: int | None = None,
    rounding: RequantizeRounding = "double",
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
def pack(values: ArrayLike, dtype: DTypeLike | NarrowType) -> NDArray[np.uint8]: ...
def unpack(
    packed: bytes | bytearray | memoryview | NDArray[Any], shape: int | Sequence[int], dtype: DTypeLike | NarrowType
) -> NDArray[Any]: ...
def kernel_variants() -> list[KernelVariant]: ...
def _force_isa(isa: str | None) -> None: ...

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
