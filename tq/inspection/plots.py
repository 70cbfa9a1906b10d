# SPDX-License-Identifier: Apache-2.0
"""Pictures with matplotlib (the extra `plot`): `Tensor.plot()`.  matplotlib is imported when a picture is drawn."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tq.extras import missing
from tq.inspection import histograms
from tq.texts import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from numpy.typing import NDArray

    from tq._core import Quantization, Tensor

# Colors that stay apart in print and for color-blind readers, on white and on dark figures.
_VALUES, _STORED, _RANGE = "#7b8da3", "#d5690f", "#3a8ee0"
_MOST_SPANS = 25  # a range wider than this many spans of the values (an int32 bias) does not set the axis
_MOST_BINS = 256  # quantized values with a bin each; where there are more, a bin holds several


def new_axes() -> "Axes":
    """The axes of a new figure.  ImportError: matplotlib is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(missing("drawing", "matplotlib", "plot")) from error
    _, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    return ax


def _title(tensor: "Tensor") -> str:
    name = visible(tensor.name[:60]) + ("…" if len(tensor.name) > 60 else "")
    kind = tensor.quantization.kind if tensor.quantization else ""
    facts = [
        getattr(tensor.type, "name", f"type {tensor.type}"),
        str(list(tensor.shape)),
        "" if kind == "none" else kind,
    ]
    return f"{name or f'tensor {tensor.index}'}\n{'  '.join(f for f in facts if f)}"


def _values(tensor: "Tensor", dequantized: bool) -> "NDArray[Any]":
    """The constant's values, flat: real values of a quantized tensor where `dequantized`, else the stored ones.

    ValueError: the tensor is no constant, has no elements, or its type is not numeric."""
    name = f"tensor {tensor.index} '{tensor.name}'"
    if tensor.data is None:
        raise ValueError(f"{name} has no data to plot: it is not a constant of the model")
    if not histograms.is_numeric(tensor.dtype):
        raise ValueError(f"{name} holds {getattr(tensor.type, 'name', tensor.type)}: which is not numeric")
    if dequantized and tensor.quantization.kind != "none":
        data = tensor.dequantized()
    else:
        data = tensor.densify() if tensor.sparsity else tensor.data
    if data.size == 0:
        raise ValueError(f"{name} has no elements to plot: its shape is {list(tensor.shape)}")
    return data.reshape(-1)


def _by_quantized_value(
    tensor: "Tensor", bins: int | None, dequantized: bool
) -> "tuple[NDArray[Any], NDArray[Any]] | None":
    """Counts and edges of bins that hold whole quantized values; None: several scales, or no integer type."""
    quantization = tensor.quantization
    how = histograms.parameters_per_value(quantization, tensor.shape) if dequantized else "none"
    if how not in ("none", "scalar") or not histograms.is_whole(tensor.dtype) or tensor.sparsity:
        return None
    stored = _values(tensor, False)
    if stored.dtype.kind == "V" or stored.dtype == np.bool_:
        stored = stored.astype(np.int8 if stored.dtype.name != "bool" else np.uint8)
    counts, edges = histograms.count_quantized(stored, min(bins or _MOST_BINS, _MOST_BINS) if stored.size else 1)
    if how == "scalar":
        edges = (edges - float(quantization.zero_point[0])) * float(quantization.scale[0])
    if not np.all(np.isfinite(edges)) or edges[0] == edges[-1]:
        return None
    return (counts, edges) if edges[0] < edges[-1] else (counts[::-1], edges[::-1])


def _ranges(quantization: "Quantization") -> list[tuple[str, str, str, "NDArray[Any]", "NDArray[Any]"]]:
    """The tensor's ranges: label, color, line style, least values, greatest values."""
    found = [
        ("stored", _STORED, "--", quantization.min, quantization.max),
        ("representable", _RANGE, "-", quantization.range_min, quantization.range_max),
    ]
    return [r for r in found if np.size(r[3]) and np.size(r[4])]


def _draw_histogram(ax: "Axes", tensor: "Tensor", bins: int | None, dequantized: bool) -> None:
    values = _values(tensor, dequantized)
    counted = _by_quantized_value(tensor, bins, dequantized) or histograms.count_values(values, bins or 128)
    if counted is None:
        raise ValueError(f"tensor {tensor.index} '{tensor.name}' has no finite value to plot")
    counts, edges = counted
    left_out = values.size - int(counts.sum())
    label = f"{values.size:,} values" + (f" ({left_out:,} not finite, left out)" if left_out else "")
    ax.stairs(counts, edges, fill=True, color=_VALUES, label=label)
    near = True
    if dequantized:
        for name, color, line, low, high in _ranges(tensor.quantization):
            ends = histograms.envelope(low, high)
            if ends is None:
                continue
            many = f" over {np.size(low):,} scales" if np.size(low) > 1 else ""
            beyond = " (beyond the picture)" if ends[1] - ends[0] > _MOST_SPANS * (edges[-1] - edges[0]) else ""
            near = near and not beyond
            text = f"{name} {ends[0]:.6g} … {ends[1]:.6g}{many}{beyond}".replace("-", "−")
            ax.axvline(ends[0], color=color, linestyle=line, linewidth=1.4, label=text)
            ax.axvline(ends[1], color=color, linestyle=line, linewidth=1.4)
    if not near:
        margin = 0.05 * (edges[-1] - edges[0])
        ax.set_xlim(edges[0] - margin, edges[-1] + margin)
    quantized = tensor.quantization.kind != "none"
    ax.set_xlabel("value" if dequantized or not quantized else "quantized value q")
    ax.set_ylabel("count")


def _channel_ends(tensor: "Tensor", dequantized: bool) -> "tuple[NDArray[Any], NDArray[Any]]":
    """The lowest and the highest value of every channel."""
    axis = tensor.quantization.quantized_dimension
    data = _values(tensor, dequantized).reshape(tensor.shape)
    others = tuple(i for i in range(data.ndim) if i != axis)
    return data.min(axis=others), data.max(axis=others)


def _draw_channels(ax: "Axes", tensor: "Tensor") -> None:
    quantization = tensor.quantization
    if histograms.parameters_per_value(quantization, tensor.shape) != "axis":
        raise ValueError(
            f"tensor {tensor.index} '{tensor.name}': kind='channels' needs per-axis quantization "
            f"that fits the shape, and this is {quantization.kind}; kind='histogram' draws any"
        )
    channels = np.arange(np.size(quantization.scale))
    low, high = _channel_ends(tensor, True)
    stored, representable = (
        next((r for r in _ranges(quantization) if r[0] == n), None) for n in ("stored", "representable")
    )
    if representable:
        ax.bar(
            channels,
            representable[4] - representable[3],
            0.9,
            representable[3],
            color=_RANGE,
            alpha=0.45,
            label="representable",
        )
    ax.bar(channels, high - low, 0.5, low, color=_VALUES, label="values")
    if stored and np.size(stored[3]) == np.size(stored[4]) == channels.size:
        ax.hlines(
            [*stored[3], *stored[4]],
            np.tile(channels, 2) - 0.45,
            np.tile(channels, 2) + 0.45,
            color=_STORED,
            linewidth=1.4,
            label="stored",
        )
    ax.axhline(0, color="0.5", linewidth=0.8)
    ax.use_sticky_edges = False
    ax.margins(x=0.01, y=0.05)
    ax.set_xlabel(f"channel (dimension {quantization.quantized_dimension})")
    ax.set_ylabel("value")


def plot_tensor(
    tensor: "Tensor",
    ax: "Axes | None" = None,
    *,
    bins: int | None = None,
    dequantized: bool = True,
    kind: str = "histogram",
    log: bool = False,
) -> "Axes":
    """Draws a constant tensor's values with its stored and its representable range.

    ax: where to draw; None: a new figure.
    bins: the greatest number of bins; None: one for each value of an integer type (with more than 256, several values
        share one), 128 of equal width for other types.
    dequantized: real values by the tensor's quantization, where it has one; False: the stored values.
    kind: "histogram", or "channels": one column for each channel of a per-axis tensor, with its representable range,
        the range of its values, and the range stored in the file.
    log: a logarithmic axis of counts (of values, symmetric about 0, for "channels").

    Returns the Axes.  ValueError: the tensor has no data, is not numeric, or has no channels where `kind` asks for
    them.
    ImportError: matplotlib is not installed.
    """
    if kind not in ("histogram", "channels"):
        raise ValueError(f"kind is {kind!r}, not 'histogram' or 'channels'")
    if bins is not None and bins < 1:
        raise ValueError(f"bins is {bins}, and at least 1 is needed")
    _values(tensor, False)  # its errors come before an empty figure
    ax = new_axes() if ax is None else ax
    if kind == "channels":
        _draw_channels(ax, tensor)
        if log:
            ax.set_yscale("symlog", linthresh=float(np.min(np.abs(tensor.quantization.scale))) or 1.0)
    else:
        _draw_histogram(ax, tensor, bins, dequantized)
        if log:
            ax.set_yscale("log")
    ax.set_title(_title(tensor), fontsize=10, parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        fontsize=8.5,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
        ncols=3 if kind == "channels" else 1,
    )
    return ax
