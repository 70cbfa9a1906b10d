# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

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
