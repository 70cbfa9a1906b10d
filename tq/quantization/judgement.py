# SPDX-License-Identifier: Apache-2.0
"""Whether one quantized model is nearer to the float model than another, by samples that neither was made with.

A few samples tell a gain badly: of an output of one value, 16 tell the SQNR to about 1.5 dB, and one sample that
saturates may have most of the error.  So a gain counts where it is greater than its standard error.  It is one of two:

all      the gain of the sums over all samples, as the SQNR is defined, with the standard error by the jackknife: from
         the gains without each sample in turn
each     the mean of the samples' own gains, in which a sample with most of the error counts as one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.accuracy.measuring import Noise

_ERRORS = 1.1  # standard errors: where one sample alone gains, its gain is one of them
_MOST_DECIBELS = 120.0  # of an output, so that one exact output does not hide the others' errors

Array = NDArray[Any]


class Sums(NamedTuple):
    """[samples, outputs]: of the squares of float outputs, and of their errors' squares."""

    signal: Array
    noise: Array

    @classmethod
    def of(cls, rows: Sequence[Sequence[Noise]]) -> Sums:
        """rows: of each sample the noise of its outputs, of which those without float values are left out."""
        columns = [column for column in zip(*rows, strict=True) if any(noise.count for noise in column)]
        found = np.array([[(noise.signal, noise.noise) for noise in column] for column in columns])
        return cls(*found.reshape(len(columns), len(rows), 2).T)

    def without(self, sample: int) -> Sums:
        return Sums(np.delete(self.signal, sample, axis=0), np.delete(self.noise, sample, axis=0))

    def total(self) -> Sums:
        return Sums(self.signal.sum(axis=0), self.noise.sum(axis=0))

    def levels(self) -> Array:
        """The mean SQNR of the outputs in dB."""
        with np.errstate(all="ignore"):
            found = -10 * np.log10(np.where(self.noise == 0, 0, self.noise / self.signal))
        limited = np.clip(np.nan_to_num(found, nan=-_MOST_DECIBELS), -_MOST_DECIBELS, _MOST_DECIBELS)
        levels: Array = limited.mean(axis=-1) if limited.shape[-1] else np.zeros(limited.shape[:-1])
        return levels


def gains(before: Sums, after: Sums) -> bool:
    """Whether the outputs `after` are surely nearer to the float model's than those `before`."""
    return any(gain > _ERRORS * error for gain, error in (_of_all(before, after), _of_each(before, after)))


def _of_all(before: Sums, after: Sums) -> tuple[float, float]:
    """The gain and its standard error in dB."""

    def gain(one: Sums, other: Sums) -> float:
        return float(other.total().levels() - one.total().levels())

    count = len(before.noise)
    others = [gain(before.without(i), after.without(i)) for i in range(count)]
    return gain(before, after), float(np.sqrt(count - 1) * np.std(others))


def _of_each(before: Sums, after: Sums) -> tuple[float, float]:
    found = after.levels() - before.levels()
    return float(found.mean()), float(found.std() / np.sqrt(max(len(found) - 1, 1)))
