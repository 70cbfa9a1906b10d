# SPDX-License-Identifier: Apache-2.0
"""Pairs of operators and tensors of a float model and a model that was quantized from it.

Quantizers insert QUANTIZE and DEQUANTIZE, rename tensors and change their indices, but keep the order of operators.  So
operators are matched by position, and tensors by the operators that write and read them.  If a quantizer also removed
or added operators, the longest equal sequences of operators are matched, and other tensors by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tq._core import Model, Operator, Subgraph, Tensor

BETWEEN = ("QUANTIZE", "DEQUANTIZE")  # operators that change the form of values, not the values
_LONGEST = 3000  # operators; the search for equal sequences takes quadratic time


class Matching(NamedTuple):
    """Pairs of the first subgraphs of a float model a and a quantized model b."""

    operators: list[tuple[Operator, Operator]]
    constants: list[tuple[Tensor, Tensor]]  # in the order of the operators that read them; each of a once
    activations: list[tuple[Tensor, Tensor]]  # inputs and operators' outputs, in the order of execution


def match(a: Model, b: Model) -> Matching:
    """The pairs of a float model and a model that was quantized from it.

    An input of a is paired with the quantized values behind a QUANTIZE, which the first operator of b reads.
    A tensor of a has no partner where its shape differs in b.
    """
    one, two = a.subgraphs[0], b.subgraphs[0]
    operators = list(_operators(one, two))
    producers_a, producers_b = _producers(one), _producers(two)
    constants: dict[int, tuple[Tensor, Tensor]] = {}
    activations: dict[int, tuple[Tensor, Tensor]] = {}
    ends = {tensor.index for tensor in one.inputs if tensor is not None}
    for op_a, op_b in operators:
        for left, right in zip(op_a.inputs, op_b.inputs, strict=False):
            if left is None or right is None or left.is_variable:
                continue
            x, y = _constant(left, producers_a), _constant(right, producers_b)
            if x is not None and y is not None:
                if x.index not in constants and x.shape == y.shape:
                    constants[x.index] = (x, y)
            elif left.index in ends and left.index not in activations and left.shape == right.shape:
                activations[left.index] = (left, right)
        for left, right in zip(op_a.outputs, op_b.outputs, strict=False):
            if left is not None and right is not None and left.shape == right.shape:
                activations.setdefault(left.index, (left, right))
    matched = {op_a.index for op_a, _ in operators}
    lost = [tensor for op in one.operators if op.index not in matched for tensor in op.outputs if tensor is not None]
    taken = {right.index for _, right in activations.values()}
    for left, right in _by_name(lost, [tensor for tensor in two.tensors if not tensor.is_constant]):
        if left.index not in activations and right.index not in taken:
            activations[left.index] = (left, right)
    order = {index: position for position, index in enumerate(_order(one))}
    rows = sorted(activations.values(), key=lambda pair: order.get(pair[0].index, -1))
    return Matching(operators, list(constants.values()), rows)


def constant_of(operator: Operator, position: int) -> Tensor | None:
    """The constant input of an operator at a position, directly or through a DEQUANTIZE; None: it is no constant."""
    inputs = operator.inputs
    tensor = inputs[position] if position < len(inputs) else None
    if tensor is None or tensor.is_constant:
        return tensor
    producer = tensor.producer
    return producer.inputs[0] if producer is not None and producer.name == "DEQUANTIZE" and producer.inputs else None


def type_kind(tensor: Tensor) -> str:
    """NumPy's letter of a tensor's dtype: "f", "i", "u" ...; "" for an unknown type."""
    dtype: Any = tensor.dtype
    return "" if dtype is None else str(dtype.kind)


def is_computed(operator: Operator) -> bool:
    """Whether an operator is neither QUANTIZE nor DEQUANTIZE."""
    return operator.name not in BETWEEN


def _operators(one: Subgraph, two: Subgraph) -> Iterator[tuple[Operator, Operator]]:
    a, b = list(filter(is_computed, one.operators)), list(filter(is_computed, two.operators))
    names_a, names_b = [op.name for op in a], [op.name for op in b]
    if names_a == names_b:
        yield from zip(a, b, strict=True)
    elif max(len(a), len(b)) <= _LONGEST:
        for first, second, size in SequenceMatcher(None, names_a, names_b, autojunk=False).get_matching_blocks():
            yield from zip(a[first : first + size], b[second : second + size], strict=True)
    else:
        outputs_b = {(op.name, _first_output(op)): op for op in b}
        for op in a:
            other = outputs_b.get((op.name, _first_output(op)))
            if other is not None:
                yield op, other


def _first_output(op: Operator) -> str:
    return next((tensor.name for tensor in op.outputs if tensor is not None), "")


def _producers(graph: Subgraph) -> dict[int, Operator]:
    return {index: op for op in graph.operators for index in op.output_indices}


def _constant(tensor: Tensor, producers: dict[int, Operator]) -> Tensor | None:
    """The tensor if it is a constant, or the constant that a DEQUANTIZE reads for it; else None."""
    if tensor.is_constant:
        return tensor
    producer = producers.get(tensor.index)
    if producer is None or producer.name != "DEQUANTIZE" or not producer.inputs:
        return None
    source = producer.inputs[0]
    return source if source is not None and source.is_constant else None


def _by_name(a: Sequence[Tensor], b: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    names = {tensor.name: tensor for tensor in b if tensor.name}
    for tensor in a:
        other = names.get(tensor.name)
        if other is not None and other.shape == tensor.shape:
            yield tensor, other


def _order(graph: Subgraph) -> Iterator[int]:
    yield from graph.input_indices
    for op in graph.operators:
        yield from op.output_indices
