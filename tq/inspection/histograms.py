# SPDX-License-Identifier: Apache-2.0
"""Values of a tensor ready for counting: a bounded sample, codes turned into real numbers, bins that fit whole codes.

The notebook pages and the pictures draw from here.  The arithmetic is float64 and for drawing only; exact values come
from `Tensor.dequantized()`.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tq._core import Quantization, Tensor

SAMPLE = 16384  # values that a sample holds at most
_RUN = 256  # neighbours taken together, so that a memory-mapped file is touched in few places
_UNPACK = 1 << 24  # types of less than a byte are unpacked whole by `Tensor.data`; larger ones are left alone


class Sample(NamedTuple):
    """Some of a tensor's values: float64, with the place of each in row-major order, and how many there are in all."""

    codes: "NDArray[np.float64]"
    places: "NDArray[np.int64]"
    total: int
    whole_numbers: bool  # the stored type is an integer type


def is_numeric(dtype: "np.dtype[Any]") -> bool:
    """True for the types that a histogram can count: not strings, objects or complex numbers."""
    # ml_dtypes' types are of kind "V" to NumPy, like void; unlike void they have a name of their own.
    return dtype.kind in "biuf" or (dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void"))


def is_whole(dtype: "np.dtype[Any]") -> bool:
    """True for integer and bool types, ml_dtypes' int2 to uint4 among them."""
    return dtype.kind in "biu" or dtype.name in ("int2", "int4", "uint2", "uint4")


def sample(tensor: "Tensor", most: int = SAMPLE) -> Sample | None:
    """At most `most` values of a constant, in evenly spaced runs; None where it has none that can be counted.

    Raises what `Tensor.data` raises.
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
        places = np.arange(total)
    else:
        runs = max(most // _RUN, 1)
        starts = np.linspace(0, total - min(_RUN, most), runs).astype(np.int64)
        places = (starts[:, None] + np.arange(min(_RUN, most))).reshape(-1)
    return Sample(flat[places].astype(np.float64), places, total, is_whole(data.dtype))


def parameters_per_value(quantization: "Quantization", shape: tuple[int, ...]) -> str:
    """How `real` can turn codes of this shape into numbers: "none", "scalar", "axis", or "" where it cannot."""
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
    """The real numbers that the sampled codes stand for; None where the quantization is of a kind not handled here."""
    quantization = tensor.quantization
    how = parameters_per_value(quantization, tensor.shape)
    if how == "none":
        return taken.codes
    with np.errstate(invalid="ignore"):  # a signalling NaN among the scales is a NaN like any other
        scales, zeros = quantization.scale.astype(np.float64), quantization.zero_point.astype(np.float64)
    numbers: NDArray[np.float64]
    if how == "scalar":
        numbers = (taken.codes - zeros[0]) * scales[0]
        return numbers
    # A sparse tensor's stored values have no place in the shape.
    if how != "axis" or tensor.sparsity or taken.total != math.prod(tensor.shape):
        return None
    axis = quantization.quantized_dimension
    if zeros.size == 1:
        zeros = np.full(scales.size, zeros[0])
    channel = taken.places // math.prod(tensor.shape[axis + 1 :]) % scales.size
    numbers = (taken.codes - zeros[channel]) * scales[channel]
    return numbers


def count_quantized(codes: "NDArray[Any]", most: int) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
    """Counts of integers in at most `most` bins that each hold the same number of codes, and the bins' edges.

    A bin that held more codes than its neighbour would show as a comb that is not in the data.
    """
    low, high = int(codes.min()), int(codes.max())
    per_bin = -(-(high - low + 1) // most)
    bins = -(-(high - low + 1) // per_bin)
    return np.histogram(codes, bins=bins, range=(low - 0.5, low - 0.5 + bins * per_bin))


def count_values(values: "NDArray[Any]", bins: int) -> "tuple[NDArray[np.int64], NDArray[np.float64]] | None":
    """Counts of the finite values in `bins` bins of equal width; None where no value is finite."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    # Where floats are too coarse for so many bins between low and high, or the span is not a float, NumPy refuses.
    if not math.isfinite(high - low):
        return None
    if high - low <= abs(high) * 1e-13 * bins:
        margin = abs(high) / 2 or 0.5
        low, high = low - margin, high + margin
    counts, edges = np.histogram(finite.astype(np.float64, copy=False), bins=bins, range=(low, high))
    return counts, edges


def envelope(low: "NDArray[Any]", high: "NDArray[Any]") -> tuple[float, float] | None:
    """The lowest finite of `low` and the highest finite of `high`; None where either has none."""
    below, above = (np.asarray(a, dtype=np.float64) for a in (low, high))
    below, above = below[np.isfinite(below)], above[np.isfinite(above)]
    if below.size == 0 or above.size == 0:
        return None
    return float(below.min()), float(above.max())
