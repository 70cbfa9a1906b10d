# SPDX-License-Identifier: Apache-2.0
"""The result of tq.quantize_model: the model's bytes, and the number of constants on a trained grid."""

from __future__ import annotations


class QuantizedModel(bytes):
    """A quantized model.

    weights_on_grid: (n, of): of the constants to which training gave a scale, n have it; (0, 0) where none was trained.
    """

    weights_on_grid: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, data: bytes, weights_on_grid: tuple[int, int]) -> QuantizedModel:
        made = cls(data)
        made.weights_on_grid = weights_on_grid
        return made
