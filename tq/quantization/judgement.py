# SPDX-License-Identifier: Apache-2.0
"""Whether one quantized model is nearer to the float model than another, by samples that neither was made with.

A few samples tell a gain badly: of an output of one value, 16 tell the SQNR to about 1.5 dB, and one sample that
saturates may have most of the error.  So a gain counts where it is greater than its standard error.  It is one of two:

all      the gain of the sums over all samples, as the SQNR is defined, with the smaller of two standard errors: by the
         jackknife, from the gains without each sample in turn; and by the number of values, whose errors are taken as
         independent: the jackknife alone cannot tell the gain of one sample with most of the error from chance
each     the mean of the samples' own gains, in which a sample with most of the error counts as one
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.accuracy.measuring import Noise

_ERRORS = 1.1  # standard errors: where one sample alone gains, its gain is one of them
_SETTLED = 3.0  # standard errors: more samples hardly change a verdict beyond them,
_LEAST = 8  # where there are so many samples: fewer tell a standard error badly
_INDEPENDENT = 16  # values of an output at most: near values of a picture have like errors
_MOST_DECIBELS = 120.0  # of an output, so that one exact output does not hide the others' errors

Array = NDArray[Any]


class Sums(NamedTuple):
    """[samples, outputs]: of the squares of float outputs, and of their errors' squares; the numbers of values."""

    signal: Array
    noise: Array
    counts: Array

    @classmethod
    def of(cls, rows: Sequence[Sequence[Noise]]) -> Sums:
        """rows: of each sample the noise of its outputs, of which those without float values are left out."""
        columns = [column for column in zip(*rows, strict=True) if any(noise.count for noise in column)]
        found = np.array([[(noise.signal, noise.noise, noise.count) for noise in column] for column in columns])
        return cls(*found.reshape(len(columns), len(rows), 3).T)

    def without(self, sample: int) -> Sums:
        return Sums(*(np.delete(item, sample, axis=0) for item in self))

    def total(self) -> Sums:
        return Sums(*(item.sum(axis=0) for item in self))

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


def is_settled(before: Sums, after: Sums) -> bool:
    """Whether more samples would hardly change what gains() says."""
    found = _of_all(before, after), _of_each(before, after)
    is_gain = any(gain > _SETTLED * error for gain, error in found)
    is_loss = all(gain < -_SETTLED * error for gain, error in found)
    return len(before.noise) >= _LEAST and (is_gain or is_loss)


def _of_all(before: Sums, after: Sums) -> tuple[float, float]:
    """The gain and its standard error in dB."""

    def gain(one: Sums, other: Sums) -> float:
        return float(other.total().levels() - one.total().levels())

    count = len(before.noise)
    others = [gain(before.without(i), after.without(i)) for i in range(count)]
    jackknife = float(np.sqrt(count - 1) * np.std(others))
    return gain(before, after), min(jackknife, float(np.hypot(_by_values(before), _by_values(after))))


def _by_values(sums: Sums) -> float:
    """The standard error of the level of all samples.

    The logarithm of a sample's error has a variance of 2 / (n - 1) with n independent normal values; one value tells
    none.  The samples' variances add up by the squares of their parts of the error; outputs err alike.
    """
    values = np.minimum(sums.counts, _INDEPENDENT)
    if not values.size or (values < 2).any():
        return math.inf
    total = sums.noise.sum(axis=0)
    parts = np.divide(sums.noise, total, out=np.ones_like(sums.noise), where=total > 0)
    variances = (parts**2 * 2 / (values - 1)).sum(axis=0)
    return float(10 / np.log(10) * np.sqrt(variances).mean())


def _of_each(before: Sums, after: Sums) -> tuple[float, float]:
    found = after.levels() - before.levels()
    return float(found.mean()), float(found.std() / np.sqrt(max(len(found) - 1, 1)))
