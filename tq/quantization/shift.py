# SPDX-License-Identifier: Apache-2.0
"""Weights that correct errors of earlier layers.

A layer gets x in the quantized model and y in the float one.  Beside its own rounding it can make up for a part of
y - x, which follows from x: with H the second moments of x and D those of y - x with x, both about the means,

    w + a w D H^-1

is nearest to w y for a = 1, if H and D are those of all inputs.  They are those of few samples; so a is the best for
half of the samples with the H and D of the other half, and the other way round.  The idea is GPTAQ's (Li et al. 2025),
where a is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.calibration.hessians import PairObserver

Array = NDArray[Any]

# Parts of the mean of H's diagonal that are added to the diagonal.  They keep weights near w, since samples do not show
# every input.  SHRINK is multiplied by the number of weights over the number of patches.
DAMPING = 0.01
SHRINK = 3.0
_MOST = 0.99  # of the moments to be replaced by the identity
# a is rounded to this: it does not depend on the last bits of sums.
_STEP = 1 / 64


def damping(moments: Array, count: int, part: float) -> float:
    """The damping: a number to add to the diagonal of second moments of `count` patches.

    part: HessianObserver.shrinkage."""
    diagonal = np.maximum(np.diag(moments), 0)
    level = float(diagonal.mean())
    part = min(part, _MOST)
    more = DAMPING * (1 + SHRINK * diagonal.size / max(count, 1)) + part / (1 - part)
    return level * more if level > 0 else 1.0


def shifted(matrices: Array, halves: Sequence[PairObserver], parts: Array, threads: int | None) -> Array:
    """The weights [groups, rows, length].  halves: of the samples; parts: HessianObserver.shrinkage."""
    matrices = np.ascontiguousarray(matrices)
    product = square = 0.0
    for fit, check in (halves, halves[::-1]):
        for group, rows in enumerate(matrices):
            made = _solution(rows, fit, group, parts[group], threads)
            if made is None:
                return matrices
            own, cross = check.moments(group)
            product += float((_core._multiply_rows(rows, cross, None, threads) * made).sum())
            square += float((_core._multiply_rows(made, own, None, threads) * made).sum())
    share = round(min(max(product / square, 0.0), 1.0) / _STEP) * _STEP if square > 0 and np.isfinite(product) else 0.0
    if not share:
        return matrices
    both = halves[0].merge(halves[1])
    found = matrices.copy()
    for group, rows in enumerate(matrices):
        made = _solution(rows, both, group, parts[group], threads)
        if made is not None:
            found[group] += share * made
    return found


def _solution(rows: Array, pair: PairObserver, group: int, part: float, threads: int | None) -> Array | None:
    """w D H^-1; None: H has no factor."""
    own, cross = pair.moments(group)
    np.fill_diagonal(own, np.diag(own) + damping(own, pair.count, part))
    if not np.isfinite(cross).all() or not _core._cholesky(own, threads):
        return None
    return _core._multiply_rows(rows, cross, own, threads)
