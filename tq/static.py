# SPDX-License-Identifier: Apache-2.0
"""Integer activations: the recipe int8.

Each operator that has an integer kernel (INTEGER) gets int8 inputs and outputs.  Tensors that must share parameters
form a group; a group's range is that of all its tensors, or is fixed by the kernel that writes it.  Where a float
operator meets an integer one there stand QUANTIZE and DEQUANTIZE.

Arithmetic: rule "mlir" of tq.choose_quantization_params, tq.fit_scales_to_bias.  Source of which operators share or fix
parameters: LiteRT f6745779, tflite/converter/tools/optimize/operator_property.cc.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq.calibration import Calibration
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.parts import renumber, renumber_one

FREE, SAME = "free", "same"  # an output with its own range; inputs and outputs with the same parameters


class Integer(NamedTuple):
    """How an operator's integer kernel wants its tensors."""

    output: str | tuple[float, int]  # FREE, SAME, or a fixed scale and zero point
    weights: int | None = None
    bias: int | None = None
    axis: int = 0  # of the weights


_SAME = """AVERAGE_POOL_2D MAX_POOL_2D BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND SPACE_TO_DEPTH DEPTH_TO_SPACE SPLIT SPLIT_V
    CONCATENATION EXPAND_DIMS GATHER GATHER_ND MAXIMUM MINIMUM PACK UNPACK PAD PADV2 MIRROR_PAD RESHAPE RESIZE_BILINEAR
    RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SLICE SQUEEZE STRIDED_SLICE TILE TRANSPOSE REDUCE_MAX REDUCE_MIN SELECT SELECT_V2
    BROADCAST_TO"""
_FREE = """ADD SUB MUL MEAN SQUARED_DIFFERENCE BATCH_MATMUL RELU RELU6 RELU_N1_TO_1 LEAKY_RELU PRELU ELU GELU
    HARD_SWISH ABS"""

INTEGER = {
    "CONV_2D": Integer(FREE, weights=1, bias=2),
    "DEPTHWISE_CONV_2D": Integer(FREE, weights=1, bias=2, axis=3),
    "FULLY_CONNECTED": Integer(FREE, weights=1, bias=2),
    "TRANSPOSE_CONV": Integer(FREE, weights=1, bias=3),
    "SOFTMAX": Integer((1 / 256, -128)),
    "LOGISTIC": Integer((1 / 256, -128)),
    "TANH": Integer((1 / 128, 0)),
    "L2_NORMALIZATION": Integer((1 / 128, 0)),
    "LOG_SOFTMAX": Integer((1 / 16, 127)),
    **{name: Integer(SAME) for name in _SAME.split()},
    **{name: Integer(FREE) for name in _FREE.split()},
}

# Fused activations that integer kernels have; they ignore others.
_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
# An ADD or SUB whose output scale is below 2^-19 of an input's ends the process under LiteRT.
_LEAST_OF_SUM = 2.0**-10


class Parameters(NamedTuple):
    """Of a group of tensors."""

    scale: np.float32
    zero_point: int
    low: float
    high: float


def _is_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and int(tensor.type) == 0


def _is_constant_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and _is_float(tensor) and tensor.is_constant and not tensor._node.has("sparsity")


class _Insertion(NamedTuple):
    place: int  # in the order of operators as it was
    order: int
    operator: str
    source: TensorPart
    target: TensorPart


class Static:
    """Turns operators of a subgraph into integer ones."""

    def __init__(self, graph: SubgraphPart, calibration: Calibration, per_axis: bool) -> None:
        self.graph = graph
        self.calibration = calibration
        self.per_axis = per_axis
        self.parents: dict[TensorPart, TensorPart] = {}
        self.operators: dict[OperatorPart, int] = {}
        self.producers = {t: op for op in graph._operators for t in op.outputs if t is not None}
        self.codes: dict[TensorPart, TensorPart] = {}  # what integer operators read for a float tensor
        self.reals: dict[TensorPart, TensorPart] = {}  # what float operators read for an integer one
        self.insertions: list[_Insertion] = []
        self.made: dict[tuple[TensorPart, str, bytes], TensorPart] = {}  # constants by what they were made of
        self.readers: dict[TensorPart, list[OperatorPart]] = {}
        for op in graph._operators:
            for tensor in dict.fromkeys(op.inputs):
                if tensor is not None:
                    self.readers.setdefault(tensor, []).append(op)

    def run(self, operators: Iterable[OperatorPart]) -> list[OperatorPart]:
        """Makes those of the operators integer ones that can be, and returns them with what was put between."""
        wanted = set(operators)
        found = {op: place for place, op in enumerate(self.graph._operators)}
        self.operators = {op: place for op, place in found.items() if op in wanted and self._can(op)}
        self._group()
        self._drop_idle()
        if not self.operators:
            return []
        self._choose()
        readers = Counter(index for op in self.graph._operators for index in op.input_indices)
        readers.update(tensor.index for tensor in self.graph.outputs if tensor is not None)
        for op in self.operators:
            self._weigh(op, readers)
        self._convert(readers)
        self._rewire()
        inserted = self._insert()
        users = self.graph._users()
        replaced = {tensor for tensor, _type, _scale in self.made}
        self.graph._remove_tensors({tensor for tensor in replaced if tensor.index not in users})
        return [*self.operators, *inserted]

    # -- which

    def _data(self, op: OperatorPart) -> list[TensorPart]:
        row = INTEGER[op.name]
        inputs = enumerate(op.inputs)
        return [t for i, t in inputs if t is not None and _is_float(t) and i not in (row.weights, row.bias)]

    def _outputs(self, op: OperatorPart) -> list[TensorPart]:
        return [tensor for tensor in op.outputs if tensor is not None]

    def _can(self, op: OperatorPart) -> bool:
        row = INTEGER.get(op._code_name() or "")
        if row is None:
            return False
        activation = op.options.get("fused_activation_function")
        if activation is not None and getattr(activation, "name", "") not in _ACTIVATIONS:
            return False
        data, outputs = self._data(op), self._outputs(op)
        if not data or not outputs or not all(_is_float(tensor) for tensor in outputs):
            return False
        inputs = op.inputs
        if row.weights is not None:
            weights = inputs[row.weights] if row.weights < len(inputs) else None
            if not _is_constant_float(weights) or (op.name == "FULLY_CONNECTED" and len(weights.shape) != 2):  # type: ignore[union-attr]
                return False
            bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
            if bias is not None and not _is_constant_float(bias):
                return False
        return all(self._is_known(tensor) for tensor in (*data, *outputs))

    def _is_known(self, tensor: TensorPart) -> bool:
        if tensor.is_variable or tensor._node.has("sparsity"):
            return False
        return tensor.is_constant or tensor.index in self.calibration.observers

    # -- groups

    def _root(self, tensor: TensorPart) -> TensorPart:
        while self.parents.setdefault(tensor, tensor) != tensor:
            tensor = self.parents[tensor]
        return tensor

    def _group(self) -> None:
        for op in self.operators:
            tensors = [*self._data(op), *self._outputs(op)]
            for tensor in tensors:
                self._root(tensor)
            if INTEGER[op.name].output == SAME:
                for tensor in tensors[1:]:
                    self.parents[self._root(tensor)] = self._root(tensors[0])

    def _drop_idle(self) -> None:
        """Operators that only move data stay float where no other integer operator reads or writes it."""
        busy = set()
        for op in self.operators:
            if INTEGER[op.name].output != SAME:
                busy |= {self._root(tensor) for tensor in (*self._data(op), *self._outputs(op))}
        for op in [op for op in self.operators if INTEGER[op.name].output == SAME]:
            if self._root(self._outputs(op)[0]) not in busy:
                del self.operators[op]

    def _range(self, tensor: TensorPart) -> tuple[float, float]:
        if not tensor.is_constant:
            return self.calibration.range(tensor.index)
        data = tensor.data
        if data is None or not data.size:
            return 0.0, 0.0
        if not np.isfinite(data).all():
            raise ValueError(f"{tensor!r} holds values that are not finite")
        return float(data.min()), float(data.max())

    def _choose(self) -> None:
        """The parameters of each group."""
        members: dict[TensorPart, list[TensorPart]] = {}
        for tensor in dict.fromkeys(t for op in self.operators for t in (*self._data(op), *self._outputs(op))):
            members.setdefault(self._root(tensor), []).append(tensor)
        self.parameters = {root: self._parameters(tensors) for root, tensors in members.items()}
        for op in self.operators:
            if op.name in ("ADD", "SUB"):
                self._widen(op)

    def _parameters(self, tensors: Sequence[TensorPart]) -> Parameters:
        fixed, others = set(), False
        for tensor in tensors:
            producer = self.producers.get(tensor)
            output = INTEGER[producer.name].output if producer in self.operators and producer is not None else FREE
            if isinstance(output, tuple):
                fixed.add(output)
            elif output != SAME:
                others = True
        if len(fixed) == 1 and not others:
            scale, zero_point = next(iter(fixed))
            return Parameters(np.float32(scale), zero_point, scale * (-128 - zero_point), scale * (127 - zero_point))
        ranges = [self._range(tensor) for tensor in tensors]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        return self._of_range(low, high)

    @staticmethod
    def _of_range(low: float, high: float) -> Parameters:
        made = _core.choose_quantization_params(low, high, "int8", rule="mlir")
        return Parameters(np.float32(made.scale), int(made.zero_point), low, high)

    def _widen(self, op: OperatorPart) -> None:
        root = self._root(self._outputs(op)[0])
        least = max(float(self.parameters[self._root(t)].scale) for t in self._data(op)) * _LEAST_OF_SUM
        have = self.parameters[root]
        if have.scale < least:
            self.parameters[root] = self._of_range(min(have.low, -128 * least), max(have.high, 127 * least))

    def of(self, tensor: TensorPart) -> Parameters:
        return self.parameters[self._root(tensor)]

    # -- weights and biases

    def _weigh(self, op: OperatorPart, readers: Counter[int]) -> None:
        row = INTEGER[op.name]
        if row.weights is None:
            return
        inputs = list(op.inputs)
        weights = inputs[row.weights]
        bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
        if weights is None or weights.data is None:
            return
        axis = row.axis if self.per_axis else None
        input_scale = self.of(self._data(op)[0]).scale
        try:
            made = _core.quantize_weights(weights.data, axis, "int8")
            scale = np.atleast_1d(made.scale)
            if bias is not None and bias.data is not None:
                fitted, bias_scale = _core.fit_scales_to_bias(made.scale, input_scale, bias.data)
                if not np.array_equal(fitted, made.scale):
                    made = _core.quantize_weights(weights.data, axis, "int8", scale=fitted)
                    scale = np.atleast_1d(fitted)
                codes = _core.quantize_bias(bias.data, bias_scale, 1)
                found = self._constant(bias, np.asarray(codes), "int32", np.atleast_1d(bias_scale), 0, readers)
                inputs[row.bias] = found  # type: ignore[index]
        except ValueError as error:
            raise ValueError(f"{weights!r} of operator {op.name}: {error}") from None
        inputs[row.weights] = self._constant(weights, made.codes, "int8", scale, axis or 0, readers)
        op.inputs = inputs

    def _constant(
        self,
        tensor: TensorPart,
        codes: NDArray[np.integer],
        type: str,
        scale: NDArray[np.float32],
        axis: int,
        readers: Counter[int],
        zero_point: int = 0,
    ) -> TensorPart:
        """The constant with these codes: the float one itself where nothing else reads it."""
        key = (tensor, type, scale.tobytes())
        if key in self.made:
            return self.made[key]
        target = tensor
        if readers[tensor.index] > 1:
            target = self.made[key] = self.graph.add_tensor(f"{tensor.name}_{type}", tensor.shape)
        target.type = type
        target.quantization = {
            "scale": scale,
            "zero_point": np.full(len(scale), zero_point, np.int64),
            "quantized_dimension": axis,
        }
        target.data = codes
        return target

    # -- activations

    def _set(self, tensor: TensorPart, p: Parameters) -> None:
        tensor.type = "int8"
        tensor.quantization = {"scale": [p.scale], "zero_point": [p.zero_point], "min": [p.low], "max": [p.high]}

    def _twin(self, tensor: TensorPart, name: str) -> TensorPart:
        return self.graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)

    def _convert(self, readers: Counter[int]) -> None:
        used = Counter(tensor for op in self.operators for tensor in op.inputs if tensor is not None)
        places = {op: place for place, op in enumerate(self.graph._operators)}
        for tensor in dict.fromkeys(t for op in self.operators for t in (*self._data(op), *self._outputs(op))):
            producer = self.producers.get(tensor)
            p = self.of(tensor)
            if tensor.is_constant:
                codes = _core.quantize(tensor.data, p.scale, p.zero_point, dtype="int8")  # type: ignore[arg-type]
                alone = readers[tensor.index] == used[tensor]
                count = Counter({tensor.index: 1 if alone else 2})
                made = self._constant(tensor, codes, "int8", np.array([p.scale]), 0, count, p.zero_point)
                self.codes[tensor] = made
            elif producer in self.operators and producer is not None:
                self._written(tensor, producer, p)
            else:
                twin = self._twin(tensor, f"{tensor.name}_int8")
                self._set(twin, p)
                self.codes[tensor] = twin
                place = 0 if producer is None else places[producer] + 1
                self.insertions.append(_Insertion(place, 0, "QUANTIZE", tensor, twin))

    def _written(self, tensor: TensorPart, producer: OperatorPart, p: Parameters) -> None:
        """A tensor that an integer operator writes."""
        place = self.operators[producer] + 1
        self._set(tensor, p)
        self.codes[tensor] = tensor
        output = INTEGER[producer.name].output
        if isinstance(output, tuple) and (np.float32(output[0]), output[1]) != (p.scale, p.zero_point):
            fixed = self._twin(tensor, f"{tensor.name}_fixed")
            scale, zero = output
            self._set(fixed, Parameters(np.float32(scale), zero, scale * (-128 - zero), scale * (127 - zero)))
            producer.outputs = [fixed if item == tensor else item for item in producer.outputs]
            self.insertions.append(_Insertion(place, 0, "QUANTIZE", fixed, tensor))
        floats = [op for op in self.readers.get(tensor, ()) if op not in self.operators]
        is_output = tensor in self.graph.outputs
        if floats or is_output:
            name = tensor.name
            if is_output:
                tensor.name = f"{name}_int8"
            real = self._twin(tensor, name if is_output else f"{name}_float32")
            self.reals[tensor] = real
            self.insertions.append(_Insertion(place, 1, "DEQUANTIZE", tensor, real))

    def _rewire(self) -> None:
        codes = {tensor.index: made.index for tensor, made in self.codes.items()}
        reals = {tensor.index: made.index for tensor, made in self.reals.items()}
        for op in self.graph._operators:
            renumber(op._node, "inputs", codes if op in self.operators else reals)
        renumber(self.graph._node, "outputs", reals)
        for signature in self.graph._editor._signatures_of(self.graph):
            for item in signature._nodes("outputs"):
                renumber_one(item, "tensor_index", reals)

    def _insert(self) -> list[OperatorPart]:
        made = []
        for row in sorted(self.insertions, key=lambda row: row[:2], reverse=True):
            made.append(self.graph.add_operator(row.operator, [row.source], [row.target], at=row.place))
        return made
