# SPDX-License-Identifier: Apache-2.0
"""Integer activations: the recipes int8 and int16x8.

Each operator that has an integer kernel (tq/integer.py) gets int8 or int16 inputs and outputs.  Tensors that must share
parameters form a group; a group's range is that of all its tensors, or is fixed by the kernel that writes it.
Constants belong to no group: each operator has its own codes of them, where it needs others.  Where a float operator
meets an integer one there stand QUANTIZE and DEQUANTIZE.

Arithmetic: rule "mlir" of tq.choose_quantization_params, tq.fit_scales_to_bias; biases of int16 operators are int64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core, recurrent
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.integer import CENTERED, FREE, INSTEAD, INTEGER, LIMITS, READS, RELATIVE, SAME, Output, Scales
from tq.parts import renumber, renumber_one
from tq.ranges import Parameters, Ranges

_SHARE, _IDLE = (SAME, CENTERED), (SAME, CENTERED, READS)
# Fused activations that integer kernels have; they ignore others.
_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
# Biases of int64 whose codes pass 2^47 are more than the 64-bit requantization takes; half of that is left to sums.
_MOST_BIAS = 2.0**46
# Numbers beyond stand for infinities: bounds and paddings of constants, masks of activations.
_INFINITE = 1e30
# The range with which a constant's codes are the steps in which kernels compare.
_LEAST_COMPARED = 255 / 256


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
    """Turns operators of a subgraph into integer ones.

    activations: "int8" or "int16".
    """

    def __init__(self, graph: SubgraphPart, ranges: Ranges, per_axis: bool, activations: str = "int8") -> None:
        self.graph = graph
        self.ranges = ranges
        self.per_axis = per_axis
        self.type = activations
        self.least, self.most = LIMITS[activations]
        self.parents: dict[TensorPart, TensorPart] = {}
        self.operators: dict[OperatorPart, int] = {}
        self.names: dict[OperatorPart, str] = {}
        self.producers = {t: op for op in graph._operators for t in op.outputs if t is not None}
        self.codes: dict[TensorPart, TensorPart] = {}  # what integer operators read for a float tensor
        self.reals: dict[TensorPart, TensorPart] = {}  # what float operators read for an integer one
        self.constants: dict[tuple[OperatorPart, int], TensorPart] = {}  # what an operator reads at a place instead
        self.insertions: list[_Insertion] = []
        self.made: dict[tuple[TensorPart, str, bytes, int], TensorPart] = {}  # constants by what they were made of
        self.readers: dict[TensorPart, list[OperatorPart]] = {}
        for op in graph._operators:
            for tensor in dict.fromkeys(op.inputs):
                if tensor is not None:
                    self.readers.setdefault(tensor, []).append(op)

    def run(self, operators: Iterable[OperatorPart]) -> list[OperatorPart]:
        """Makes those of the operators integer ones that can be, and returns them with what was put between."""
        wanted = set(operators)
        for op in list(wanted):
            if self._name(op) == "SUM":
                wanted |= self._split_sum(op)
        for place, op in enumerate(self.graph._operators):
            if op in wanted and self._can(op):
                self.operators[op] = place
        while self._settle():
            pass
        if not self.operators:
            return []
        for op in [op for op in self.operators if self._name(op) in INSTEAD]:
            self._become_product(op)
        counts = Counter(index for op in self.graph._operators for index in op.input_indices)
        counts.update(tensor.index for tensor in self.graph.outputs if tensor is not None)
        for op in self.operators:
            self._weigh(op, counts)
        self._quantize_constants(counts)
        self._convert()
        self._rewire()
        self._set_options()
        inserted = self._insert()
        users = self.graph._users()
        replaced = {key[0] for key in self.made}
        self.graph._remove_tensors({tensor for tensor in replaced if tensor.index not in users})
        return [*self.operators, *inserted]

    # -- which

    def _rule(self, op: OperatorPart) -> Output | None:
        row = INTEGER.get(self._name(op))
        return None if row is None else row.int8 if self.type == "int8" else row.int16

    def _name(self, op: OperatorPart) -> str:
        """Of a builtin operator."""
        if op not in self.names:
            self.names[op] = op._code_name() or ""
        return self.names[op]

    def _places(self, op: OperatorPart) -> list[int]:
        """Where it reads activations, or constants that are quantized like them."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        skipped = (row.weights, row.bias) if self._has_weights(op) else (row.bias,)
        wanted = row.data if row.data is not None else [i for i in range(len(inputs)) if i not in skipped]
        return [i for i in wanted if i < len(inputs) and _is_float(inputs[i])]

    def _has_weights(self, op: OperatorPart) -> bool:
        """Constant ones.  Those that are computed are activations."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        return row.weights is not None and row.weights < len(inputs) and _is_constant_float(inputs[row.weights])

    def _data(self, op: OperatorPart) -> list[TensorPart]:
        """The activations that it reads."""
        inputs = op.inputs
        read = [inputs[i] for i in self._places(op)]
        return [tensor for tensor in read if tensor is not None and not tensor.is_constant]

    def _outputs(self, op: OperatorPart) -> list[TensorPart]:
        return [tensor for tensor in op.outputs if tensor is not None and _is_float(tensor)]

    def _can(self, op: OperatorPart) -> bool:
        rule = self._rule(op)
        if rule is None or self._name(op) == "SUM":
            return False
        if INTEGER[self._name(op)].recurrent and not recurrent.can(op, self):
            return False
        activation = op.options.get("fused_activation_function")
        if (
            activation is not None
            and not INTEGER[self._name(op)].recurrent
            and getattr(activation, "name", "") not in _ACTIVATIONS
        ):
            return False
        inputs, outputs, places = op.inputs, self._outputs(op), self._places(op)
        read = [inputs[i] for i in places]
        if self._name(op) in INSTEAD and 0 not in places:
            return False
        if not read or bool(outputs) == (rule == READS) or not self._can_weigh(op):
            return False
        if self._name(op) == "DIV" and not self._divides_by_numbers(op):
            return False
        narrow = INTEGER[self._name(op)].narrow
        if narrow is not None and self.type != "int8" and not any(_is_constant_float(t) for t in inputs[narrow:]):
            return False
        return not any(t is not None and (t.is_variable or t._node.has("sparsity")) for t in (*read, *outputs))

    def _can_weigh(self, op: OperatorPart) -> bool:
        row, inputs = INTEGER[self._name(op)], op.inputs
        if row.weights is None:
            return True
        if all(place == row.weights for place in self._places(op)) or not all(t.shape for t in self._outputs(op)):
            return False
        weights = inputs[row.weights] if row.weights < len(inputs) else None
        bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
        if weights is None or not _is_float(weights) or (bias is not None and not _is_constant_float(bias)):
            return False
        if not weights.is_constant and self.type != "int8":
            return False  # weights stay int8 beside int16 activations
        return self._name(op) != "FULLY_CONNECTED" or len(weights.shape) == 2

    def _divides_by_numbers(self, op: OperatorPart) -> bool:
        divisor = op.inputs[1] if len(op.inputs) > 1 else None
        data = divisor.data if divisor is not None and _is_constant_float(divisor) else None
        if data is None:
            return False
        with np.errstate(divide="ignore", over="ignore"):
            return bool(np.isfinite(data).all() and np.isfinite(np.float32(1) / data).all())

    # -- groups

    def _root(self, tensor: TensorPart) -> TensorPart:
        while self.parents.setdefault(tensor, tensor) != tensor:
            tensor = self.parents[tensor]
        return tensor

    def _settle(self) -> bool:
        """Groups and parameters.  True: operators were left out for them, and it is to be done anew."""
        count = len(self.operators)
        self._group()
        self._drop_idle()
        if len(self.operators) == count:
            self._choose()
            self._drop_limited()
        return len(self.operators) < count

    def _group(self) -> None:
        self.parents.clear()
        centered = []
        for op in self.operators:
            rule, data = self._rule(op), self._data(op)
            tensors = [*data, *self._outputs(op)]
            for tensor in tensors:
                self._root(tensor)
            if rule in _SHARE:
                for tensor in tensors[1:]:
                    self.parents[self._root(tensor)] = self._root(tensors[0])
            if rule == CENTERED:
                centered.append(tensors[0])
            row = INTEGER[self._name(op)]
            if row.weights is not None and not self._has_weights(op):
                centered.append(op.inputs[row.weights])  # type: ignore[arg-type]
        self.centered = {self._root(tensor) for tensor in centered}

    def _drop_idle(self) -> None:
        """Takes out operators that only move data where no other integer operator reads or writes it, and those of
        tensors whose range is not known or has no end."""
        busy, known, infinite = set(), set(), set()
        for op in self.operators:
            rule, outputs = self._rule(op), self._outputs(op)
            tensors = (*self._data(op), *outputs)
            if rule not in _IDLE:
                busy |= {self._root(tensor) for tensor in tensors}
            known |= {self._root(tensor) for tensor in tensors if self.ranges.knows(tensor)}
            infinite |= {self._root(tensor) for tensor in tensors if self._is_infinite(tensor)}
            if isinstance(rule, tuple):
                known |= {self._root(tensor) for tensor in outputs}
        for op in list(self.operators):
            roots = {self._root(tensor) for tensor in (*self._data(op), *self._outputs(op))}
            if roots & infinite:
                self._check_constants(op)
            if not roots <= known or roots & infinite or (self._rule(op) in _IDLE and not roots & busy):
                del self.operators[op]

    def _check_constants(self, op: OperatorPart) -> None:
        """ValueError: infinite activations come from weights or a bias that are no numbers."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        for place in (row.weights, row.bias):
            tensor = inputs[place] if place is not None and place < len(inputs) else None
            data = tensor.data if _is_constant_float(tensor) and tensor is not None else None
            if data is not None and not np.isfinite(data).all():
                wrong = data[~np.isfinite(data)].ravel()[0]
                raise ValueError(f"{tensor!r} of operator {op.name}: it holds {wrong}")

    def _is_infinite(self, tensor: TensorPart) -> bool:
        return self.ranges.knows(tensor) and max(map(abs, self.ranges.of(tensor))) >= _INFINITE

    def _choose(self) -> None:
        """The parameters of each group."""
        members: dict[TensorPart, list[TensorPart]] = {}
        constants: dict[TensorPart, list[TensorPart]] = {}
        for op in self.operators:
            tensors = [*self._data(op), *self._outputs(op)]
            for tensor in tensors:
                members.setdefault(self._root(tensor), []).append(tensor)
            if self._rule(op) in _SHARE:
                inputs = op.inputs
                found = [inputs[i] for i in self._places(op)]
                constants.setdefault(self._root(tensors[0]), []).extend(t for t in found if t and t.is_constant)
        self.given = {root: given for root, tensors in members.items() if (given := self._given(tensors)) is not None}
        self.parameters = {
            root: self.given.get(root) or self._parameters(root, list(dict.fromkeys(tensors)), constants.get(root, ()))
            for root, tensors in members.items()
        }
        for _ in range(8):  # what widens one group may narrow another operator's inputs
            if not any([self._widen(op) for op in self.operators]):
                break

    def _given(self, tensors: Sequence[TensorPart]) -> Parameters | None:
        """What the caller gives; ValueError where tensors that must be equal get different ones."""
        found: dict[tuple[float, int], TensorPart] = {}
        for tensor in tensors:
            given = self.ranges.fixed(tensor)
            if given is not None:
                found.setdefault((float(given.scale), int(given.zero_point)), tensor)
        if len(found) > 1:
            names = " and ".join(repr(tensor.name) for tensor in list(found.values())[:2])
            raise ValueError(f"overrides: tensors {names} must have the same parameters, and get different ones")
        for (scale, zero), tensor in found.items():
            if not self.least <= zero <= self.most or (self.type == "int16" and zero):
                needed = "0" if self.type == "int16" else f"{self.least} to {self.most}"
                raise ValueError(f"overrides: the zero point of {tensor.name!r} is {zero}; {self.type} needs {needed}")
            return self._of_scale(scale, zero)
        return None

    def _parameters(
        self, root: TensorPart, tensors: Sequence[TensorPart], constants: Sequence[TensorPart]
    ) -> Parameters:
        fixed, others = set(), bool(constants) or root in self.centered
        for tensor in tensors:
            producer = self.producers.get(tensor)
            rule = self._rule(producer) if producer in self.operators and producer is not None else FREE
            if isinstance(rule, tuple):
                fixed.add(rule)
            elif rule not in _SHARE:
                others = True
        if len(fixed) == 1 and not others:
            return self._of_scale(*next(iter(fixed)))
        ranges = [self.ranges.of(tensor) for tensor in tensors if self.ranges.knows(tensor)]
        ranges += [self._range_of(tensor) for tensor in constants]
        ranges += [self._of_scale(*rule)[2:] for rule in fixed if not ranges]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        if root in self.centered and self.type == "int8":
            high = max(abs(low), abs(high))
            low = -high
        return self._of_range(low, high, root in self.centered)

    @staticmethod
    def _range_of(tensor: TensorPart) -> tuple[float, float]:
        """Of a constant."""
        data = tensor.data
        if data is None or not data.size:
            return 0.0, 0.0
        if np.isnan(data).any():
            raise ValueError(f"{tensor!r} holds values that are not numbers")
        real = data[np.abs(data) < _INFINITE]  # the others saturate, as they are meant to
        return (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)

    def _of_range(self, low: float, high: float, centered: bool = False) -> Parameters:
        made = _core.choose_quantization_params(
            low, high, self.type, symmetric=centered, narrow_range=centered, rule="mlir"
        )
        return Parameters(np.float32(made.scale), int(made.zero_point), low, high)

    def _of_scale(self, scale: float, zero: int) -> Parameters:
        return Parameters(np.float32(scale), zero, scale * (self.least - zero), scale * (self.most - zero))

    def _constant_parameters(self, op: OperatorPart, place: int, tensor: TensorPart) -> Parameters:
        if self._rule(op) in _SHARE:
            return self.of((*self._data(op), *self._outputs(op))[0])
        low, high = self._range_of(tensor)
        if INTEGER[self._name(op)].narrow == place:
            made = _core.choose_quantization_params(low, high, "int8", rule="mlir")
            return Parameters(np.float32(made.scale), int(made.zero_point), low, high)
        if self._rule(op) == READS:
            high = max(high, low + _LEAST_COMPARED)
        return self._of_range(low, high)

    # -- limits of kernels

    def _scales(self, op: OperatorPart) -> Scales:
        inputs, outputs = op.inputs, self._outputs(op)
        places = [i for i in self._places(op) if inputs[i] is not None]
        read: list[TensorPart] = [inputs[i] for i in places]  # type: ignore[misc]
        found = [
            self._constant_parameters(op, i, t) if t.is_constant else self.of(t)
            for i, t in zip(places, read, strict=True)
        ]
        codes = [float(p.scale) * (self.least - p.zero_point) for p in found]
        lows = [
            self._range_of(t)[0] if t.is_constant else self.ranges.of(t)[0] if self.ranges.knows(t) else code
            for t, code in zip(read, codes, strict=True)
        ]
        beta = op.options.get("beta")
        return Scales(
            self.type,
            tuple(float(p.scale) for p in found),
            tuple(t.is_constant for t in read),
            tuple(lows),
            tuple(codes),
            float(self.of(outputs[0]).scale) if outputs else 0.0,
            1.0 if beta is None else float(beta),
        )

    def _widen(self, op: OperatorPart) -> bool:
        """Grows an output's scale to what the kernel takes."""
        limit = INTEGER[self._name(op)].limit
        if limit is None or limit.least is None:
            return False
        root = self._root(self._outputs(op)[0])
        least, have = limit.least(self._scales(op)), self.parameters[root]
        if have.scale >= least or root in self.given:
            return False
        least *= 1.0001  # float32 rounds the scale
        low, high = min(have.low, self.least * least), max(have.high, self.most * least)
        self.parameters[root] = self._of_range(low, high, root in self.centered)
        return True

    def _drop_limited(self) -> None:
        for op in list(self.operators):
            limit = INTEGER[self._name(op)].limit
            if op not in self.operators or limit is None or limit.holds(self._scales(op)):
                continue
            del self.operators[op]
            if limit.relative:
                self._drop_writers(op)

    def _drop_writers(self, op: OperatorPart) -> None:
        """Leaves float what writes an operator's input, and before that what gives small results for small inputs."""
        waiting = [writer for t in self._data(op) if (writer := self.producers.get(t)) is not None]
        first, seen = set(waiting), set[OperatorPart]()
        while waiting:
            writer = waiting.pop()
            if writer in seen or not (writer in first or self._name(writer) in RELATIVE):
                continue
            seen.add(writer)
            self.operators.pop(writer, None)
            if self._name(writer) in RELATIVE:
                found = [self.producers.get(t) for t in writer.inputs if t is not None]
                waiting += [item for item in found if item is not None]

    def of(self, tensor: TensorPart) -> Parameters:
        return self.parameters[self._root(tensor)]

    # -- weights, biases, constants

    def _split_sum(self, op: OperatorPart) -> set[OperatorPart]:
        """A SUM as the MEAN times the count, where it will be of integers.  Returns what was put in."""
        x, axes, outputs = op.inputs[0] if op.inputs else None, op.inputs[1] if len(op.inputs) > 1 else None, op.outputs
        y = outputs[0] if outputs else None
        if x is None or y is None or axes is None or not _is_float(x) or not _is_float(y) or x.is_constant:
            return set()
        if axes.data is None:
            return set()
        if not self.ranges.knows(x) or not self.ranges.knows(y) or self._is_infinite(x) or self._is_infinite(y):
            return set()
        sizes = x.shape_signature or x.shape
        summed = [sizes[i] for i in {int(axis) % len(sizes) for axis in axes.data.ravel()}] if sizes else []
        count = int(np.prod(summed))
        if min(summed, default=1) <= 0:
            return set()
        mean = self.graph.add_tensor(f"{y.name}_mean", y.shape, shape_signature=y.shape_signature)
        low, high = self.ranges.of(y)
        self.ranges.train({mean: (low / count, high / count)})
        op._put("opcode_index", op._editor._intern_code(op._editor._make_code("MEAN", 1)))
        op.outputs = [mean]
        factor = self.graph.add_tensor(f"{y.name}_count", (), data=np.float32(count))
        made = self.graph.add_operator("MUL", [mean, factor], [y], at=op.index + 1)
        self.names[op] = "MEAN"
        self.producers |= {mean: op, y: made}
        self.readers[mean] = self.readers[factor] = [made]
        return {made}

    def _become_product(self, op: OperatorPart) -> None:
        """The operator as a MUL."""
        name, inputs = self._name(op), op.inputs
        x, divisor = inputs[0], inputs[-1]
        if name == "SQUARE":
            other = x
        elif name == "NEG":
            other = self.graph.add_tensor(f"{self._outputs(op)[0].name}_minus", (), data=np.float32(-1))
        else:
            other = self.graph.add_tensor(f"{divisor.name}_reciprocal", data=np.float32(1) / divisor.data)  # type: ignore[union-attr,operator]
        activation = op.options.get("fused_activation_function")
        op._put("opcode_index", op._editor._intern_code(op._editor._make_code("MUL", 1)))
        op._set_options("MUL", {} if activation is None else {"fused_activation_function": activation})
        op.inputs = [x, other]
        self.names[op] = "MUL"

    def _weigh(self, op: OperatorPart, counts: Counter[int]) -> None:
        row = INTEGER[self._name(op)]
        if row.recurrent:
            recurrent.Recurrent(op, self, counts).run()
        if row.weights is None:
            return
        inputs = op.inputs
        weights = inputs[row.weights]
        bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
        activation = next(t for i in self._places(op) if i != row.weights and (t := inputs[i]) is not None)
        input_scale = self._activation_scale(op, activation)
        if weights is None:
            return
        try:
            if self._has_weights(op):
                scale = self._weigh_constant(op, weights, bias, input_scale, counts)
            else:
                scale = np.atleast_1d(self.of(weights).scale)
            self._weigh_bias(op, bias, np.asarray(np.float32(input_scale) * scale, np.float32), counts)
        except ValueError as error:
            raise ValueError(f"{weights!r} of operator {op.name}: {error}") from None

    def _activation_scale(self, op: OperatorPart, tensor: TensorPart) -> np.float32:
        if tensor.is_constant:
            return self._constant_parameters(op, op.inputs.index(tensor), tensor).scale
        return self.of(tensor).scale

    def _weigh_constant(
        self,
        op: OperatorPart,
        weights: TensorPart,
        bias: TensorPart | None,
        input_scale: np.float32,
        counts: Counter[int],
    ) -> NDArray[np.float32]:
        """Quantizes weights, and gives their scales."""
        row = INTEGER[self._name(op)]
        axis = row.axis if self.per_axis else None
        made = _core.quantize_weights(weights.data, axis, "int8")  # type: ignore[arg-type]
        scale = made.scale
        if bias is not None and bias.data is not None:
            fitted = self._fitted(made.scale, input_scale, bias.data)
            if not np.array_equal(fitted, made.scale):
                made = _core.quantize_weights(weights.data, axis, "int8", scale=fitted)  # type: ignore[arg-type]
                scale = fitted
        parameters = np.atleast_1d(np.asarray(scale, np.float32))
        place: int = row.weights  # type: ignore[assignment]
        self.constants[op, place] = self._constant(weights, made.codes, "int8", parameters, axis or 0, counts)
        return parameters

    def _fitted(
        self, scale: NDArray[np.float32], input_scale: np.float32, bias: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Scales of weights with which the bias has codes."""
        if self.type == "int8":
            return _core.fit_scales_to_bias(scale, input_scale, bias)[0]  # type: ignore[no-any-return]
        least = np.abs(bias) / np.float32(_MOST_BIAS) / input_scale
        if not np.ndim(scale):
            least = least.max(initial=0)
        return np.maximum(scale, np.asarray(least, np.float32))

    def _weigh_bias(
        self, op: OperatorPart, bias: TensorPart | None, scale: NDArray[np.float32], counts: Counter[int]
    ) -> None:
        row = INTEGER[self._name(op)]
        if row.bias is None or (bias is None and not row.needs_bias):
            return
        type_ = "int32" if self.type == "int8" else "int64"
        if bias is None:
            channels = self._outputs(op)[0].shape[-1]
            name = f"{self._outputs(op)[0].name}_bias"
            made = self.graph.add_tensor(name, (channels,), type_, data=np.zeros(channels, type_), scale=scale)
        else:
            codes = np.asarray(_core.quantize_bias(bias.data, scale, 1, dtype=type_))  # type: ignore[arg-type]
            made = self._constant(bias, codes, type_, scale, 0, counts)
        self.constants[op, row.bias] = made

    def _quantize_constants(self, counts: Counter[int]) -> None:
        """Constants that are read like activations."""
        for op in self.operators:
            inputs = op.inputs
            for place in self._places(op):
                tensor = inputs[place]
                if tensor is None or not tensor.is_constant:
                    continue
                p = self._constant_parameters(op, place, tensor)
                type_ = "int8" if INTEGER[self._name(op)].narrow == place else self.type
                codes = _core.quantize(tensor.data, p.scale, p.zero_point, dtype=type_)  # type: ignore[arg-type]
                made = self._constant(tensor, codes, type_, np.array([p.scale]), 0, counts, p.zero_point)
                self.constants[op, place] = made

    def _constant(
        self,
        tensor: TensorPart,
        codes: NDArray[np.integer],
        type: str,
        scale: NDArray[np.float32],
        axis: int,
        counts: Counter[int],
        zero_point: int = 0,
    ) -> TensorPart:
        """The constant with these codes: the float one itself where nothing else reads it."""
        key = (tensor, type, scale.tobytes(), zero_point)
        if key in self.made:
            return self.made[key]
        target = tensor
        if counts[tensor.index] > 1:
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
        tensor.type = self.type
        tensor.quantization = {"scale": [p.scale], "zero_point": [p.zero_point], "min": [p.low], "max": [p.high]}

    def _twin(self, tensor: TensorPart, name: str) -> TensorPart:
        made = self.graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)
        self.ranges.alias(made, tensor)
        return made

    def _convert(self) -> None:
        places = {op: place for place, op in enumerate(self.graph._operators)}
        for tensor in dict.fromkeys(t for op in self.operators for t in (*self._data(op), *self._outputs(op))):
            producer = self.producers.get(tensor)
            p = self.of(tensor)
            if producer in self.operators and producer is not None:
                self._written(tensor, producer, p)
            else:
                twin = self._twin(tensor, f"{tensor.name}_{self.type}")
                self._set(twin, p)
                self.codes[tensor] = twin
                place = 0 if producer is None else places[producer] + 1
                self.insertions.append(_Insertion(place, 0, "QUANTIZE", tensor, twin))

    def _written(self, tensor: TensorPart, producer: OperatorPart, p: Parameters) -> None:
        """A tensor that an integer operator writes."""
        place = self.operators[producer] + 1
        self._set(tensor, p)
        self.codes[tensor] = tensor
        rule = self._rule(producer)
        if isinstance(rule, tuple) and (np.float32(rule[0]), rule[1]) != (p.scale, p.zero_point):
            fixed = self._twin(tensor, f"{tensor.name}_fixed")
            self._set(fixed, self._of_scale(*rule))
            producer.outputs = [fixed if item == tensor else item for item in producer.outputs]
            self.insertions.append(_Insertion(place, 0, "QUANTIZE", fixed, tensor))
        floats = [op for op in self.readers.get(tensor, ()) if op not in self.operators]
        is_output = tensor in self.graph.outputs
        if floats or is_output:
            name = tensor.name
            if is_output:
                tensor.name = f"{name}_{self.type}"
            real = self._twin(tensor, name if is_output else f"{name}_float32")
            self.reals[tensor] = real
            self.insertions.append(_Insertion(place, 1, "DEQUANTIZE", tensor, real))

    def _rewire(self) -> None:
        codes = {tensor.index: made.index for tensor, made in self.codes.items()}
        reals = {tensor.index: made.index for tensor, made in self.reals.items()}
        for (op, place), made in self.constants.items():
            indices = list(op.input_indices)
            indices += [-1] * (place + 1 - len(indices))
            indices[place] = made.index
            op._put("inputs", indices)
        for op in self.graph._operators:
            renumber(op._node, "inputs", codes if op in self.operators else reals)
        renumber(self.graph._node, "outputs", reals)
        for signature in self.graph._editor._signatures_of(self.graph):
            for item in signature._nodes("outputs"):
                renumber_one(item, "tensor_index", reals)

    def _set_options(self) -> None:
        for op in self.operators if self.type == "int16" else ():
            for name, value in INTEGER[self._name(op)].options:
                op.options[name] = value

    def _insert(self) -> list[OperatorPart]:
        made = []
        for row in sorted(self.insertions, key=lambda row: row[:2], reverse=True):
            made.append(self.graph.add_operator(row.operator, [row.source], [row.target], at=row.place))
        return made


def join(graph: SubgraphPart, made: Sequence[OperatorPart]) -> list[OperatorPart]:
    """Where codes of one type become those of another by way of float numbers, one QUANTIZE does it.  Returns those of
    the operators that are left."""
    producers = {tensor: op for op in graph._operators for tensor in op.outputs if tensor is not None}
    uses = Counter(index for op in graph._operators for index in op.input_indices)
    uses.update(tensor.index for tensor in graph.outputs if tensor is not None)
    ours, gone = set(made), set[OperatorPart]()
    tensors: set[TensorPart] = set()
    for op in made:
        real = op.inputs[0] if op.name == "QUANTIZE" else None
        source = producers.get(real) if real is not None else None
        if real is None or source is None or source.name != "DEQUANTIZE" or source not in ours:
            continue
        op._put("inputs", source.input_indices)
        uses[real.index] -= 1
        if not uses[real.index]:
            gone.add(source)
            tensors.add(real)
    for op in gone:
        graph.remove_operator(op)
    graph._remove_tensors(tensors)
    return [op for op in made if op not in gone]
