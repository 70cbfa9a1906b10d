# SPDX-License-Identifier: Apache-2.0
"""Where QUANTIZE and DEQUANTIZE stand: between integer operators and the float operators, inputs and outputs around
them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization.choice import Choice
from tq.quantization.parameters import of_scale
from tq.quantization.ranges import Parameters


@dataclass(frozen=True)
class Boundary:
    """An activation of integer operators.

    parameters: with which they read it.  producer: the integer operator that writes it.
    quantize: it is float where it comes from.  demanded: the parameters that its producer's kernel demands, where they
    are others: it is requantized.  dequantize: float operators read it, or callers of the subgraph (is_output).
    """

    tensor: TensorPart
    parameters: Parameters
    producer: OperatorPart | None = None
    quantize: bool = False
    demanded: Parameters | None = None
    dequantize: bool = False
    is_output: bool = False


def boundaries(choice: Choice) -> list[Boundary]:
    """The boundaries of the integer operators' activations, in order, and of inputs that callers give as integers."""
    view, agreed = choice.view, choice.parameters.agreed
    entering = view.graph_ends("inputs")
    tensors = dict.fromkeys(tensor for op in choice.operators for tensor in view.activations(op))
    found = [_boundary(choice, tensor, tensor in entering) for tensor in tensors]
    unread = {tensor: key for tensor, key in entering.items() if tensor not in tensors}
    return [*found, *(_written(choice, tensor, None, agreed[key]) for tensor, key in unread.items())]


def _boundary(choice: Choice, tensor: TensorPart, enters: bool) -> Boundary:
    producer, parameters = choice.view.producers.get(tensor), choice.of(tensor)
    if choice.writes(tensor):
        return _written(choice, tensor, producer, parameters)
    if enters:
        return _written(choice, tensor, None, parameters)
    return Boundary(tensor, parameters, producer, quantize=True)


def _written(choice: Choice, tensor: TensorPart, producer: OperatorPart | None, p: Parameters) -> Boundary:
    """The boundary of a tensor that an integer operator writes, or that is an integer when the subgraph is called."""
    view = choice.view
    rule = None if producer is None else view.rule(producer)
    differs = isinstance(rule, tuple) and (np.float32(rule[0]), rule[1]) != (p.scale, p.zero_point)
    floats = [op for op in view.readers.get(tensor, ()) if not choice.reads(op, tensor)]
    is_output = tensor in view.graph.outputs and tensor not in view.graph_ends("outputs")
    return Boundary(
        tensor,
        p,
        producer,
        demanded=of_scale(view.limits, *rule) if isinstance(rule, tuple) and differs else None,
        dequantize=bool(floats) or is_output,
        is_output=is_output,
    )


def joined(choices: Sequence[Choice], read: Mapping[str, Collection[TensorPart]]) -> dict[TensorPart, bool]:
    """The tensors that integer operators of one type write and those of another type read, and whether float operators
    or callers of the subgraph read them too.

    read: the tensors that become integers of a type by a QUANTIZE."""
    found: dict[TensorPart, bool] = {}
    for choice in choices if len(choices) > 1 else ():
        others = [other for other in choices if other is not choice]
        for item in boundaries(choice):
            if item.dequantize and any(item.tensor in read[other.type] for other in others):
                floats = [op for op in choice.view.readers.get(item.tensor, ()) if not choice.reads(op, item.tensor)]
                left = [op for op in floats if not any(other.reads(op, item.tensor) for other in others)]
                found[item.tensor] = bool(left) or item.is_output
    return found
