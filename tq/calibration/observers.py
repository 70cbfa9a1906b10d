# SPDX-License-Identifier: Apache-2.0
"""Observers: what a calibration set teaches about a tensor, a batch at a time.

An observer takes arrays with `update`, takes in another observer's knowledge with `merge`, and answers with
`quantization(dtype, ...)`.  It can be pickled, so a calibration set can be split over threads, processes or machines.
For MinMaxObserver and HistogramObserver the result is a function of the values alone, however they were split, ordered
or merged; a MovingAverageObserver depends on the order of its batches, as any moving average does.

NaN and the infinities lie in no range: they are counted (`nan_count`, `infinite_count`) and otherwise passed over.
With `axis`, everything is kept for each index along that axis.  Every method may be called from several threads; the
array work of `update` runs without the GIL and outside the lock, on at most `num_threads` threads (None: as many as
pay, up to TQ_NUM_THREADS or the processors); results do not depend on how many.
"""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tq import _core

Array = NDArray[Any]


# One for all observers, since no array work is done under it.  A fork waits until no thread has it, so that the child
# finds whole observers and a free lock; it is reentrant for signal handlers that fork.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class _Observer:
    """What all observers share: the axis, counts of values, the lock, pickling."""

    _lock = _LOCK

    by_order = False  # whether the order of batches matters
    _fields: tuple[str, ...] = ("axis", "_counts")  # what is pickled, and compared

    def __init__(self, axis: int | None = None) -> None:
        self.axis = None if axis is None else _integer(axis, "axis")
        self._counts: Any = None  # uint64 [channels, 3]: finite, NaN, infinite

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: _copy(getattr(self, name)) for name in self._fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in self._fields:
            setattr(self, name, state[name])

    # Without __hash__: equality is that of the contents, which change.
    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        a, b = self.__getstate__(), other.__getstate__()
        return all(_same(a[name], b[name]) for name in self._fields)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        if self._counts is None:
            return f"tq.{type(self).__name__}({arguments}): empty"
        channels = "" if self.axis is None else f" over {len(self._counts)} channels"
        return f"tq.{type(self).__name__}({arguments}): {int(self._counts[:, 0].sum())} values{channels}"

    def _arguments(self) -> dict[str, Any]:
        return {"axis": self.axis}

    def _count(self, column: int) -> Any:
        if self._counts is None:
            return 0 if self.axis is None else np.zeros(0, np.int64)
        return self._present(self._counts[:, column].astype(np.int64))

    @property
    def count(self) -> Any:
        """How many finite values were seen; with axis, an array."""
        return self._count(0)

    @property
    def nan_count(self) -> Any:
        return self._count(1)

    @property
    def infinite_count(self) -> Any:
        return self._count(2)

    def _present(self, per_channel: Array) -> Any:
        """A channel's array as the user sees it: without axis, its one value."""
        if self.axis is not None:
            return per_channel.copy()
        return per_channel[0].item() if per_channel.dtype == np.int64 else per_channel[0]

    def _check_channels(self, channels: int, name: str) -> None:
        if self._counts is not None and len(self._counts) != channels:
            raise ValueError(
                f"{name} has {channels} channels along axis {self.axis}; the observer has {len(self._counts)}"
            )

    def _check_merge(self, other: _Observer) -> None:
        if type(other) is not type(self):
            raise TypeError(f"other is {type(other).__name__}; it must be {type(self).__name__}")
        mine, theirs = self._arguments(), other._arguments()
        if mine != theirs:
            raise ValueError(f"other was made with {theirs}; it must have {mine}")

    def _check_filled(self) -> None:
        if self._counts is None:
            raise ValueError("the observer has seen no values; update it first")
        empty = np.flatnonzero(self._counts[:, 0] == 0)
        if empty.size:
            where = "" if self.axis is None else f" in channel {empty[0]}"
            raise ValueError(f"the observer has seen no finite values{where}")

    def _snapshot(self, other: _Observer) -> dict[str, Any]:
        """Another observer's state, taken under its own lock, never under both."""
        self._check_merge(other)
        return other.__getstate__()


class _RangeObserver(_Observer):
    """An observer that knows a least and a greatest value."""

    _fields = (*_Observer._fields, "_min", "_max")

    def __init__(self, axis: int | None = None) -> None:
        super().__init__(axis)
        self._min: Any = None  # float64 [channels]
        self._max: Any = None

    @property
    def min(self) -> Any:
        """The least finite value (for a moving average, its average), float64; +infinity if there is none."""
        return self._extreme(self._min, np.inf)

    @property
    def max(self) -> Any:
        """The greatest finite value (for a moving average, its average), float64; -infinity if there is none."""
        return self._extreme(self._max, -np.inf)

    def _extreme(self, per_channel: Array | None, empty: float) -> Any:
        if per_channel is None:
            return np.float64(empty) if self.axis is None else np.zeros(0)
        return self._present(per_channel)

    def _take_range(self, low: Array, high: Array, counts: Array, name: str = "x") -> None:
        """Widens the range; the lock is held."""
        self._check_channels(len(counts), name)
        if self._counts is None:
            self._min, self._max, self._counts = low, high, counts
        else:
            self._min, self._max = np.minimum(self._min, low), np.maximum(self._max, high)
            self._counts = self._counts + counts

    def _parameters(self, low: Array, high: Array, **options: Any) -> _core.QuantizationParams:
        return _core.choose_quantization_params(self._present(low), self._present(high), **options)


class MinMaxObserver(_RangeObserver):
    """Keeps the least and the greatest value.

    axis: the axis along which each index has its own range, or None.
    """

    __module__ = "tq"  # pickles name it so, wherever it is defined

    def update(self, x: ArrayLike, *, num_threads: int | None = None) -> MinMaxObserver:
        """Observes an array of real numbers. Returns the observer."""
        low, high, counts = _core._observe(x, self.axis, num_threads)
        with self._lock:
            self._take_range(low, high, counts)
        return self

    def merge(self, other: MinMaxObserver) -> MinMaxObserver:
        """Takes in what another observer saw. Returns this one."""
        theirs = self._snapshot(other)
        if theirs["_counts"] is not None:
            with self._lock:
                self._take_range(theirs["_min"], theirs["_max"], theirs["_counts"], "other")
        return self

    def quantization(
        self,
        dtype: DTypeLike = "int8",
        *,
        symmetric: bool = False,
        narrow_range: bool = False,
        rule: str = "toco",
    ) -> _core.QuantizationParams:
        """QuantizationParams for the observed range; the arguments are choose_quantization_params'."""
        with self._lock:
            self._check_filled()
            low, high = self._min, self._max
        return self._parameters(low, high, dtype=dtype, symmetric=symmetric, narrow_range=narrow_range, rule=rule)


class MovingAverageObserver(_RangeObserver):
    """Keeps exponential moving averages of each batch's least and greatest value.

    The first batch sets them; every later one moves them by `averaging` of the difference, in float64. A batch
    without finite values (of a channel) does not count. `a.merge(b)` gives what a would hold had it seen b's batches
    after its own, to float64 rounding: merging is associative, and its order matters as that of the batches does.

    averaging: over 0 and at most 1. axis: as MinMaxObserver's.
    """

    __module__ = "tq"  # pickles name it so, wherever it is defined

    by_order = True
    _fields = (*_RangeObserver._fields, "averaging", "_first_min", "_first_max", "_batches")

    def __init__(self, averaging: float = 0.01, axis: int | None = None) -> None:
        super().__init__(axis)
        averaging = _real(averaging, "averaging")
        if not 0 < averaging <= 1:
            raise ValueError(f"averaging is {averaging!r}; it must be over 0 and at most 1")
        self.averaging = averaging
        self._first_min: Any = None  # what merging needs of the first batch
        self._first_max: Any = None
        self._batches: Any = None  # int64 [channels]

    def _arguments(self) -> dict[str, Any]:
        return {"averaging": self.averaging, "axis": self.axis}

    def update(self, x: ArrayLike, *, num_threads: int | None = None) -> MovingAverageObserver:
        """Observes an array of real numbers as one batch. Returns the observer."""
        low, high, counts = _core._observe(x, self.axis, num_threads)
        batch = {"_counts": counts, "_min": low, "_max": high, "_first_min": low, "_first_max": high}
        batch["_batches"] = (counts[:, 0] > 0).astype(np.int64)
        with self._lock:
            self._append(batch)
        return self

    def merge(self, other: MovingAverageObserver) -> MovingAverageObserver:
        """Takes in another observer's batches, as if they came after this one's. Returns this one."""
        theirs = self._snapshot(other)
        if theirs["_counts"] is not None:
            with self._lock:
                self._append(theirs, "other")
        return self

    def _append(self, later: dict[str, Any], name: str = "x") -> None:
        """Where m is the average so far and b the first of n later batches, whose average alone is m':
        those batches would have moved m to (m' - keep * b) + keep * m, where keep is (1 - averaging)^n. The weights of
        the values in m' - keep * b sum to 1 - keep, so that no part of it is greater than the greatest value."""
        self._check_channels(len(later["_counts"]), name)
        if self._counts is None:
            for name, value in later.items():
                if name not in ("axis", "averaging"):
                    setattr(self, name, value)
            return
        with np.errstate(under="ignore"):
            self._average(later)
        self._batches = self._batches + later["_batches"]
        self._counts = self._counts + later["_counts"]

    def _average(self, later: dict[str, Any]) -> None:
        keep = (1 - self.averaging) ** later["_batches"]
        old, new = self._batches > 0, later["_batches"] > 0
        for name in ("_min", "_max"):
            mine, theirs, first = getattr(self, name), later[name], later["_first" + name]
            both = np.where(old & new, theirs, 0) - keep * np.where(old & new, first, 0)
            both += keep * np.where(old & new, mine, 0)
            setattr(self, name, np.where(old & new, both, np.where(old, mine, theirs)))
            setattr(self, "_first" + name, np.where(old, getattr(self, "_first" + name), first))

    quantization = MinMaxObserver.quantization


class HistogramObserver(_RangeObserver):
    """Keeps a histogram beside the least and the greatest value.

    Bin widths are powers of two, edges their multiples; a width is the least for which all values fit, and when the
    range grows bins are added up in pairs. So no count is ever moved across an edge, and the histogram depends on the
    values alone.

    bins: a power of two; half of them lie on each side of zero. axis: as MinMaxObserver's.
    """

    __module__ = "tq"  # pickles name it so, wherever it is defined

    _fields = (*_RangeObserver._fields, "bins", "_exponents", "_bin_counts")

    def __init__(self, bins: int = 4096, axis: int | None = None) -> None:
        super().__init__(axis)
        self.bins = _integer(bins, "bins")
        if not _core._LEAST_BINS <= self.bins <= _core._MOST_BINS or self.bins & (self.bins - 1):
            raise ValueError(
                f"bins is {bins}; it must be a power of two from {_core._LEAST_BINS} to {_core._MOST_BINS}"
            )
        self._exponents: Any = None  # int32 [channels]
        self._bin_counts: Any = None  # uint64 [channels, bins]

    def _arguments(self) -> dict[str, Any]:
        return {"bins": self.bins, "axis": self.axis}

    def update(self, x: ArrayLike, *, num_threads: int | None = None) -> HistogramObserver:
        """Observes an array of real numbers. Returns the observer."""
        x = _core._reals(x)
        low, high, counts = _core._observe(x, self.axis, num_threads)
        exponents, none = self._empty(len(counts))
        _core._histogram_grow(exponents, none, low, high)
        bin_counts = _core._histogram_counts(x, self.axis, exponents, self.bins, num_threads)
        with self._lock:
            self._take(low, high, counts, exponents, bin_counts)
        return self

    def merge(self, other: HistogramObserver) -> HistogramObserver:
        """Takes in what another observer saw. Returns this one."""
        theirs = self._snapshot(other)
        if theirs["_counts"] is not None:
            with self._lock:
                low, high, counts = theirs["_min"], theirs["_max"], theirs["_counts"]
                self._take(low, high, counts, theirs["_exponents"], theirs["_bin_counts"], "other")
        return self

    def _empty(self, channels: int) -> tuple[Array, Array]:
        return np.full(channels, _core._LEAST_EXPONENT, np.int32), np.zeros((channels, self.bins), np.uint64)

    def _take(
        self, low: Array, high: Array, counts: Array, exponents: Array, bin_counts: Array, name: str = "x"
    ) -> None:
        """Adds one histogram to this one, both folded to the higher exponent; the arguments become its own."""
        first = self._counts is None
        self._take_range(low, high, counts, name)
        if first:
            self._exponents, self._bin_counts = exponents, bin_counts
            return
        common = np.maximum(self._exponents, exponents)
        _core._histogram_fold(exponents, bin_counts, common)
        _core._histogram_fold(self._exponents, self._bin_counts, common)
        self._bin_counts += bin_counts

    def histogram(self, channel: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(counts, edges): integer counts and the float64 edges of every bin, one more than counts. Edges past the
        greatest float64 are infinite.

        channel: the index along axis; None for an observer without axis.
        """
        if (channel is None) != (self.axis is None):
            raise ValueError(f"channel is {channel!r} and axis is {self.axis!r}; give both or neither")
        at = 0 if channel is None else _integer(channel, "channel")
        with self._lock:
            if self._counts is None:
                raise ValueError("the observer has seen no values; update it first")
            channels = len(self._counts)
            if not -channels <= at < channels:
                raise ValueError(f"channel is {channel}; it must be from {-channels} to {channels - 1}")
            counts = self._bin_counts[at].astype(np.int64)
            exponent = int(self._exponents[at])
        with np.errstate(over="ignore"):
            return counts, np.ldexp(np.arange(-(self.bins // 2), self.bins // 2 + 1, dtype=np.float64), exponent)

    def range(
        self,
        method: str = "mse",
        *,
        percentile: float = 99.99,
        dtype: DTypeLike = "int8",
        symmetric: bool = False,
        narrow_range: bool = False,
        rule: str = "toco",
    ) -> tuple[Any, Any]:
        """(min, max) to quantize, float64, by a method of tq.rules()['histogram']: 'minmax', 'percentile', 'mse' or
        'entropy'. The quantization's dtype and options matter to the last two, symmetric to all but the first."""
        low, high = self._range(method, percentile, dtype, symmetric, narrow_range, rule)
        return self._present(low), self._present(high)

    def quantization(
        self,
        dtype: DTypeLike = "int8",
        *,
        method: str = "mse",
        percentile: float = 99.99,
        symmetric: bool = False,
        narrow_range: bool = False,
        rule: str = "toco",
    ) -> _core.QuantizationParams:
        """QuantizationParams for the range that `method` chooses; the rest is choose_quantization_params'."""
        low, high = self._range(method, percentile, dtype, symmetric, narrow_range, rule)
        return self._parameters(low, high, dtype=dtype, symmetric=symmetric, narrow_range=narrow_range, rule=rule)

    def _range(
        self, method: str, percentile: float, dtype: DTypeLike, symmetric: bool, narrow_range: bool, rule: str
    ) -> tuple[Array, Array]:
        percentile = _real(percentile, "percentile")
        with self._lock:
            self._check_filled()
            exponents, counts = self._exponents.copy(), self._bin_counts.copy()
            low, high = self._min.copy(), self._max.copy()
        return _core._histogram_range(
            exponents, counts, low, high, method, percentile, dtype, symmetric, narrow_range, rule
        )


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None


def _real(value: Any, name: str) -> float:
    if not isinstance(value, str):
        with contextlib.suppress(TypeError, ValueError):
            return float(value)
    raise TypeError(f"{name} is {value!r}; it must be a number")


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b)
