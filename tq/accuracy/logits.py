# SPDX-License-Identifier: Apache-2.0
"""The inputs of a last SOFTMAX or LOGISTIC (logits).  Errors are measured there: behind these operators the errors of
confident answers vanish, and int8 values have steps of 1/256."""

from __future__ import annotations

from tq._core import Model, Tensor
from tq.editing.extraction import extract

_LAST = ("SOFTMAX", "LOGISTIC")


def logits(model: Model) -> list[Tensor]:
    """The outputs; in place of those that a SOFTMAX or LOGISTIC writes, what it reads.

    The outputs themselves where the model has several subgraphs."""
    outputs = [tensor for tensor in model.outputs if tensor is not None]
    found = [_before(tensor) for tensor in outputs]
    is_plain = len(model.subgraphs) == 1 and not any(tensor.is_constant for tensor in found)
    return found if is_plain and len({tensor.index for tensor in found}) == len(found) else outputs


def without_last(model: Model) -> Model:
    """A model whose outputs are these."""
    found = [tensor.index for tensor in logits(model)]
    if found == [tensor.index for tensor in model.outputs if tensor is not None]:
        return model
    return Model(extract(model, [tensor.index for tensor in model.inputs if tensor is not None], found))


def _before(tensor: Tensor) -> Tensor:
    """The tensor that the last operator reads, also before a DEQUANTIZE."""
    behind = _source(tensor, ("DEQUANTIZE",))
    found = _source(behind, _LAST)
    return tensor if found is behind else found


def _source(tensor: Tensor, names: tuple[str, ...]) -> Tensor:
    """The first input of the operator that writes the tensor, if it is one of these; else the tensor."""
    writer = tensor.producer
    if writer is None or writer.name not in names:
        return tensor
    return next((item for item in writer.inputs if item is not None), tensor)
