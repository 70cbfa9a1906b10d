# SPDX-License-Identifier: Apache-2.0
"""Writing tensors with other parameters, and the error of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.editing.graph import OperatorPart, TensorPart
from tq.specification.operands import type_of, zero_points

Reals = NDArray[np.float64]


class Parameters(NamedTuple):
    """Quantization parameters with one scale."""

    type: str
    scale: np.float32
    zero_point: int

    @property
    def range(self) -> tuple[float, float]:
        """The real values of the least and the greatest quantized value."""
        info = np.iinfo(self.type)
        low, high = (float(self.scale) * (end - self.zero_point) for end in (info.min, info.max))
        return low, high


def of(tensor: TensorPart) -> Parameters:
    """The parameters of a tensor with one scale."""
    return Parameters(type_of(tensor), np.float32(tensor.quantization.scale[0]), int(zero_points(tensor)[0]))


def covering(type_: str, low: float, high: float) -> Parameters:
    """Parameters of a range."""
    found = _core.choose_quantization_params(min(low, 0.0), max(high, 0.0), type_, rule="mlir")
    return Parameters(type_, np.float32(found.scale), int(found.zero_point))


def along(tensor: TensorPart, values: NDArray[Any]) -> NDArray[Any]:
    """One value for each scale, in a shape that broadcasts to the tensor's data."""
    if values.size == 1 or not tensor.shape:
        return values.reshape(-1)[:1] if not tensor.shape else values.reshape(())
    shape = [1] * len(tensor.shape)
    shape[tensor.quantization.quantized_dimension] = values.size
    return values.reshape(shape)


def real(tensor: TensorPart) -> Reals:
    """The real values of a quantized constant."""
    data = np.asarray(tensor.data).astype(np.float64)
    scale = along(tensor, tensor.quantization.scale.astype(np.float64))
    return np.asarray((data - along(tensor, zero_points(tensor).astype(np.float64))) * scale).reshape(tensor.shape)


def range_of(tensor: TensorPart) -> tuple[float, float]:
    """The least and the greatest real value that the tensor can hold."""
    info = np.iinfo(type_of(tensor))
    scale, zero = tensor.quantization.scale.astype(np.float64), zero_points(tensor)
    return float((scale * (info.min - zero)).min()), float((scale * (info.max - zero)).max())


def own(op: OperatorPart, place: int) -> TensorPart:
    """The constant that an operator reads at a place, as one that nothing else reads."""
    tensor = op.inputs[place]
    assert tensor is not None
    others = [item for item in tensor.consumers if item != op]
    if not others and op.input_indices.count(tensor.index) == 1 and tensor not in op.subgraph.outputs:
        return tensor
    made = op.subgraph.add_tensor(
        f"{tensor.name}_{op.index}",
        tensor.shape,
        tensor.type,
        quantization=tensor.quantization if tensor.quantization else None,
        buffer=tensor.buffer,
    )
    op.set_input(place, made)
    return made


def holder(type_: str) -> str:
    """The NumPy type of a tensor type's values."""
    return type_ if type_ in np.sctypeDict else "int8"


def put(tensor: TensorPart, type_: str, scale: NDArray[Any], zero: int = 0, axis: int = 0) -> None:
    """Gives a tensor parameters.  The stored range, of others, goes."""
    tensor.type = type_
    tensor.quantization = {
        "scale": np.asarray(scale, np.float32),
        "zero_point": np.full(np.size(scale), zero, np.int64),
        "quantized_dimension": axis,
    }


def write(
    tensor: TensorPart, values: Reals, type_: str, scale: NDArray[Any], low: int, high: int, **more: int
) -> float:
    """Real values as a constant of other parameters; the greatest error in steps of its scale."""
    put(tensor, type_, np.atleast_1d(np.asarray(scale, np.float32)), **more)
    steps = along(tensor, tensor.quantization.scale.astype(np.float64))
    zero = more.get("zero", 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.where(steps > 0, values / steps, 0.0) + zero
    rounded = np.clip(np.trunc(exact + np.copysign(0.5, exact)), low, high)
    tensor.data = rounded.reshape(tensor.shape).astype(holder(type_))
    # Float32 scales differ from their exact quotients in the last bits: no loss of a quantized value.
    error = np.abs(exact - rounded)
    return float(np.where(error < np.abs(exact) * 2.0**-22 + 1e-6, 0.0, error).max(initial=0.0))


def requantized(op: OperatorPart, side: str, place: int, to: Parameters) -> tuple[OperatorPart, float]:
    """Puts a QUANTIZE before an input of an operator, which it then reads with the parameters `to`; or behind an
    output, which the operator then writes so.  Returns it, and its loss in its result's steps."""
    graph = op.subgraph
    tensor = (op.inputs if side == "inputs" else op.outputs)[place]
    assert tensor is not None
    made = graph.add_tensor(
        f"{tensor.name}_requantized_{op.index}",
        tensor.shape,
        to.type,
        scale=[to.scale],
        zero_point=[to.zero_point],
        shape_signature=tensor.shape_signature,
    )
    if side == "inputs":
        added = graph.insert_before(op, "QUANTIZE", [tensor], [made])
        op.inputs = [made if item == tensor else item for item in op.inputs]
        return added, _loss(of(tensor), to)
    op.outputs = [made if i == place else item for i, item in enumerate(op.outputs)]
    return graph.insert_after(op, "QUANTIZE", [made], [tensor]), _loss(to, of(tensor))


def _loss(before: Parameters, after: Parameters) -> float:
    """The loss of a requantization, in steps: half a step, and the part of the range that is cut off."""
    low, high = before.range
    least, most = after.range
    cut = max(least - low, high - most, 0.0) / float(after.scale)
    same = before.scale == after.scale
    return (0.0 if same else 0.5) + (cut if cut > 0.5 or same else 0.0)
