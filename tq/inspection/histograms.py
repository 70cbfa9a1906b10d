# SPDX-License-Identifier: Apache-2.0
"""Histograms of a tensor: a bounded sample, real values of quantized ones, bins that hold whole quantized values.

The notebook pages and the pictures use it.  The arithmetic is float64 and for drawing only; `Tensor.dequantized()`
gives exact values.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tq._core import Quantization, Tensor

SAMPLE = 16384  # the most values of a sample
_RUN = 256  # consecutive values in a sample, so that few pages of a mapped file are read
_UNPACK = 1 << 24  # types of less than a byte are unpacked whole by `Tensor.data`; larger ones are left alone


class Sample(NamedTuple):
    """Some values of a tensor."""

    stored: "NDArray[np.float64]"  # as stored, widened
    indices: "NDArray[np.int64]"  # their positions in row-major order
    total: int  # elements of the tensor
    is_integer: bool  # the stored type is an integer type


def is_numeric(dtype: "np.dtype[Any]") -> bool:
    """Whether a histogram can count values of a dtype: not strings, objects or complex numbers."""
    # ml_dtypes' types are of kind "V" to NumPy, like void; unlike void they have a name of their own.
    return dtype.kind in "biuf" or (dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void"))


def is_whole(dtype: "np.dtype[Any]") -> bool:
    """Whether a dtype is an integer or bool type, ml_dtypes' int2 to uint4 among them."""
    return dtype.kind in "biu" or dtype.name in ("int2", "int4", "uint2", "uint4")


def sample(tensor: "Tensor", most: int = SAMPLE) -> Sample | None:
    """At most `most` values of a constant, in evenly spaced runs; None: no constant, no elements, or not numeric.

    Errors: as `Tensor.data`.
    """
    elements = math.prod(tensor.shape)
    if not is_numeric(tensor.dtype) or (tensor.nbytes < elements and elements > _UNPACK):
        return None
    data = tensor.data
    if data is None or data.size == 0:
        return None
    flat = data.reshape(-1)
    total = flat.size
    if total <= most:
        indices = np.arange(total)
    else:
        runs = max(most // _RUN, 1)
        starts = np.linspace(0, total - min(_RUN, most), runs).astype(np.int64)
        indices = (starts[:, None] + np.arange(min(_RUN, most))).reshape(-1)
    return Sample(flat[indices].astype(np.float64), indices, total, is_whole(data.dtype))


def parameters_per_value(quantization: "Quantization", shape: tuple[int, ...]) -> str:
    """How parameters apply to quantized values of a shape: "none", "scalar" (one scale), "axis" (one for each index of
    a dimension), or "" (blockwise, or parameters that do not fit the shape)."""
    scales, zeros = quantization.scale, quantization.zero_point
    if quantization.kind == "none":
        return "none"
    if quantization.kind not in ("per-tensor", "per-axis") or scales.size == 0 or zeros.size not in (1, scales.size):
        return ""
    if scales.size == 1:
        return "scalar"
    axis = quantization.quantized_dimension
    return "axis" if 0 <= axis < len(shape) and shape[axis] == scales.size else ""


def real(taken: Sample, tensor: "Tensor") -> "NDArray[np.float64] | None":
    """The real values of a sample; None: the quantization is blockwise or does not fit the shape."""
    quantization = tensor.quantization
    how = parameters_per_value(quantization, tensor.shape)
    if how == "none":
        return taken.stored
    with np.errstate(invalid="ignore"):  # a signalling NaN among the scales is a NaN like any other
        scales, zeros = quantization.scale.astype(np.float64), quantization.zero_point.astype(np.float64)
    values: NDArray[np.float64]
    if how == "scalar":
        values = (taken.stored - zeros[0]) * scales[0]
        return values
    # Stored values of a sparse tensor have no position in the shape.
    if how != "axis" or tensor.sparsity or taken.total != math.prod(tensor.shape):
        return None
    axis = quantization.quantized_dimension
    if zeros.size == 1:
        zeros = np.full(scales.size, zeros[0])
    channel = taken.indices // math.prod(tensor.shape[axis + 1 :]) % scales.size
    values = (taken.stored - zeros[channel]) * scales[channel]
    return values


def count_quantized(values: "NDArray[Any]", most: int) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
    """Counts of integers in at most `most` bins, and the bins' edges.

    Every bin holds the same number of integers: unequal bins would draw a comb that is not in the data.
    """
    low, high = int(values.min()), int(values.max())
    per_bin = -(-(high - low + 1) // most)
    bins = -(-(high - low + 1) // per_bin)
    return np.histogram(values, bins=bins, range=(low - 0.5, low - 0.5 + bins * per_bin))


def count_values(values: "NDArray[Any]", bins: int) -> "tuple[NDArray[np.int64], NDArray[np.float64]] | None":
    """Counts of the finite values in `bins` bins of equal width, and the bins' edges; None: no value is finite, or
    their span is not."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    # NumPy refuses a span that is not finite, and one too narrow for so many distinct edges.
    if not math.isfinite(high - low):
        return None
    if high - low <= abs(high) * 1e-13 * bins:
        margin = abs(high) / 2 or 0.5
        low, high = low - margin, high + margin
    counts, edges = np.histogram(finite.astype(np.float64, copy=False), bins=bins, range=(low, high))
    return counts, edges


def envelope(low: "NDArray[Any]", high: "NDArray[Any]") -> tuple[float, float] | None:
    """The least finite value of `low` and the greatest of `high`; None: one of them has none."""
    below, above = (np.asarray(a, dtype=np.float64) for a in (low, high))
    below, above = below[np.isfinite(below)], above[np.isfinite(above)]
    if below.size == 0 or above.size == 0:
        return None
    return float(below.min()), float(above.max())
