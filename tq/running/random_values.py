# SPDX-License-Identifier: Apache-2.0
"""Random values of a model's inputs, the same ones every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Tensor


def random_value(tensor: Tensor | None, seed: int = 0) -> NDArray[Any]:
    """Floats from -1 to 1, any bools, integers of up to 16 bits, zeros of wider ones; unknown dimensions are 1."""
    assert tensor is not None
    random = np.random.default_rng(seed)
    shape, dtype = [max(n, 1) if n < 0 else n for n in tensor.shape], np.dtype(tensor.dtype)
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.zeros(shape, dtype)
