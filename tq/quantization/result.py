# SPDX-License-Identifier: Apache-2.0
"""The result of tq.quantize_model: the model's bytes, and where constants have scales that were given."""

from __future__ import annotations


class QuantizedModel(bytes):
    """A quantized model.

    weights_on_grid: (n, of): of the constants to which training gave a scale, n have it; (0, 0) where none was trained.
    notes: a sentence for each constant that does not get the scale of its training, of the calibration, or of the min
        and max that the file stores: which, and why.
    """

    weights_on_grid: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: bytes, weights_on_grid: tuple[int, int], notes: tuple[str, ...] = ()) -> QuantizedModel:
        made = cls(data)
        made.weights_on_grid, made.notes = weights_on_grid, notes
        return made
