# SPDX-License-Identifier: Apache-2.0
"""Integer activations: the recipes int8 and int16x8.

Each operator that has an integer kernel (tq/integer.py) gets int8 or int16 inputs and outputs, with the parameters of
its group (tq/groups.py).  Of constants each operator has its own codes, where it needs others.  Where a float operator
meets an integer one there stand QUANTIZE and DEQUANTIZE.

Arithmetic: rule "mlir" of tq.choose_quantization_params, tq.fit_scales_to_bias; biases of int16 operators are int64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core, recurrent, variables
from tq.agreement import agree
from tq.carried import find as find_carried
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.groups import Groups, is_float
from tq.integer import INSTEAD, INTEGER
from tq.parts import renumber, renumber_one
from tq.ranges import Parameters, Ranges

# Biases of int64 whose codes pass 2^47 are more than the 64-bit requantization takes; half of that is left to sums.
_MOST_BIAS = 2.0**46


class _Insertion(NamedTuple):
    place: int  # in the order of operators as it was
    order: int
    operator: str
    source: TensorPart
    target: TensorPart


class Static(Groups):
    """Turns operators of a subgraph into integer ones."""

    def __init__(self, graph: SubgraphPart, ranges: Ranges, per_axis: bool, activations: str = "int8") -> None:
        super().__init__(graph, ranges, activations)
        self.per_axis = per_axis
        self.codes: dict[TensorPart, TensorPart] = {}  # what integer operators read for a float tensor
        self.reals: dict[TensorPart, TensorPart] = {}  # what float operators read for an integer one
        self.constants: dict[tuple[OperatorPart, int], TensorPart] = {}  # what an operator reads at a place instead
        self.narrowed: dict[TensorPart, TensorPart] = {}  # of int16 activations that are weights: their int8 codes
        self.insertions: list[_Insertion] = []
        self.made: dict[tuple[TensorPart, str, bytes, int], TensorPart] = {}  # constants by what they were made of

    def start(self, operators: Iterable[OperatorPart]) -> None:
        """Chooses those of the operators that become integer ones."""
        wanted = list(operators)
        for op in [op for op in wanted if self._name(op) == "SUM"]:
            wanted += self._split_sum(op)
        self.choose(wanted)

    def finish(self) -> list[OperatorPart]:
        """Makes them integer ones, and returns them with what was put between."""
        if not self.operators and not self.tight(self.graph):
            return []
        for tensor in [tensor for tensor in self.parents if self.is_touched(tensor)]:
            self.ranges.use(tensor)
        for op in [op for op in self.operators if self._name(op) in INSTEAD]:
            self._become_product(op)
        counts = Counter(index for op in self.graph.operators for index in op.input_indices)
        counts.update(tensor.index for tensor in self.graph.outputs if tensor is not None)
        for op in self.operators:
            self._weigh(op, counts)
        self._quantize_constants(counts)
        self._convert()
        self._rewire()
        self._set_options()
        inserted = self._insert()
        users = self.graph.users()
        replaced = {key[0] for key in self.made}
        self.graph.remove_tensors({tensor for tensor in replaced if tensor.index not in users})
        return [*self.operators, *inserted]

    # -- weights, biases, constants

    def _split_sum(self, op: OperatorPart) -> list[OperatorPart]:
        """A SUM as the MEAN times the count, where it will be of integers.  Returns what was put in."""
        x, axes, outputs = op.inputs[0] if op.inputs else None, op.inputs[1] if len(op.inputs) > 1 else None, op.outputs
        y = outputs[0] if outputs else None
        if x is None or y is None or axes is None or not is_float(x) or not is_float(y) or x.is_constant:
            return []
        if axes.data is None:
            return []
        if not self.ranges.knows(x) or not self.ranges.knows(y) or self._is_infinite(x) or self._is_infinite(y):
            return []
        sizes = x.shape_signature or x.shape
        summed = [sizes[i] for i in {int(axis) % len(sizes) for axis in axes.data.ravel()}] if sizes else []
        count = int(np.prod(summed))
        if min(summed, default=1) <= 0:
            return []
        mean = self.graph.add_tensor(f"{y.name}_mean", y.shape, shape_signature=y.shape_signature)
        low, high = self.ranges.of(y)
        self.ranges.train({mean: (low / count, high / count)})
        op.put("opcode_index", op.editor.code_of("MEAN", 1))
        op.outputs = [mean]
        factor = self.graph.add_tensor(f"{y.name}_count", (), data=np.float32(count))
        made = self.graph.add_operator("MUL", [mean, factor], [y], at=op.index + 1)
        self.names[op] = "MEAN"
        self.producers |= {mean: op, y: made}
        self.readers[mean] = self.readers[factor] = [made]
        return [made]

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
        op.put("opcode_index", op.editor.code_of("MUL", 1))
        op.write_options("MUL", {} if activation is None else {"fused_activation_function": activation})
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
                scale = np.atleast_1d(self._weigh_computed(op, weights))
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

    def _weigh_computed(self, op: OperatorPart, weights: TensorPart) -> np.float32:
        """The scale of computed weights: int8 activations, and beside int16 ones int8 codes of them."""
        if self.type == "int8":
            return self.of(weights).scale
        place: int = INTEGER[self._name(op)].weights  # type: ignore[assignment]
        if weights not in self.narrowed:
            most = max(map(abs, self.ranges.of(weights)))
            made = _core.choose_quantization_params(-most, most, "int8", symmetric=True, narrow_range=True, rule="mlir")
            twin = self._twin(weights, f"{weights.name}_int8")
            twin.type = "int8"
            twin.quantization = {"scale": [made.scale], "zero_point": [0], "min": [-most], "max": [most]}
            self.narrowed[weights] = twin
            producer = self.producers.get(weights)
            after = 0 if producer is None else self.graph.operators.index(producer) + 1
            self.insertions.append(_Insertion(after, 2, "QUANTIZE", weights, twin))
        self.constants[op, place] = self.narrowed[weights]
        return np.float32(self.narrowed[weights].quantization.scale[0])

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
        places = {op: place for place, op in enumerate(self.graph.operators)}
        entering = self.ends("inputs")
        for tensor in dict.fromkeys(t for op in self.operators for t in (*self._data(op), *self._outputs(op))):
            producer = self.producers.get(tensor)
            p = self.of(tensor)
            if self.makes_codes(tensor) or tensor in entering:
                self._written(tensor, producer if self.makes_codes(tensor) else None, p)
            else:
                twin = self._twin(tensor, f"{tensor.name}_{self.type}")
                self._set(twin, p)
                self.codes[tensor] = twin
                place = 0 if producer is None else places[producer] + 1
                self.insertions.append(_Insertion(place, 0, "QUANTIZE", tensor, twin))
        for tensor, key in entering.items():  # those that no integer operator reads
            if tensor not in self.codes:
                self._written(tensor, None, self.agreed[key])

    def _written(self, tensor: TensorPart, producer: OperatorPart | None, p: Parameters) -> None:
        """A tensor that an integer operator writes, or that is codes when the subgraph is called."""
        place = 0 if producer is None else self.operators[producer] + 1
        self._set(tensor, p)
        self.codes[tensor] = tensor
        rule = None if producer is None else self._rule(producer)
        has_own = isinstance(rule, tuple) and (np.float32(rule[0]), rule[1]) != (p.scale, p.zero_point)
        if producer is not None and isinstance(rule, tuple) and has_own:
            fixed = self._twin(tensor, f"{tensor.name}_fixed")
            self._set(fixed, self._of_scale(*rule))
            producer.outputs = [fixed if item == tensor else item for item in producer.outputs]
            self.insertions.append(_Insertion(place, 0, "QUANTIZE", fixed, tensor))
        floats = [op for op in self.readers.get(tensor, ()) if not self.reads_codes(op, tensor)]
        is_output = tensor in self.graph.outputs and tensor not in self.ends("outputs")
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
            op.put("inputs", indices)
        for op in self.graph.operators:
            if op in self.operators and op in self.calls:
                tight = self.tight(op)
                indices = [
                    (codes if ("inputs", place) in tight else reals).get(index, index)
                    for place, index in enumerate(op.input_indices)
                ]
                op.put("inputs", indices)
            else:
                renumber(op.node, "inputs", codes if op in self.operators else reals)
        for tensor in self.ends("outputs"):
            reals.pop(tensor.index, None)
        renumber(self.graph.node, "outputs", reals)
        for signature in self.graph.editor.signatures_of(self.graph):
            for item in signature.nodes("outputs"):
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


def quantize(
    graphs: Sequence[SubgraphPart],
    wanted: Sequence[Mapping[str, Sequence[OperatorPart]]],
    known: Sequence[Ranges],
    per_axis: bool,
    entries: Sequence[int] = (0,),
) -> list[OperatorPart]:
    """Makes operators of subgraphs integer ones: `wanted`, of each by the type of the activations, where they can be.
    Returns them with what was put between.  Variables, and what goes in and out of branches and loops, are of integers
    where all that touch them are of one type.  entries: subgraphs that nothing in the model calls."""
    found = variables.users(graphs)
    carried = find_carried(graphs, entries)
    most = max((type_ for operators in wanted for type_ in list(operators)[:1]), default="int8")
    first: list[Static] = []
    for graph, operators, ranges in zip(graphs, wanted, known, strict=True):
        type_ = next(iter(operators), most)
        first.append(Static(graph, ranges, per_axis, type_))
        first[-1].variables = {op: found[op] for op in operators.get(type_, ()) if op in found}
    by_graph = dict(zip(graphs, first, strict=True))
    for bond in carried:
        bond.enter(by_graph)
    for static, operators in zip(first, wanted, strict=True):
        static.start(operators.get(static.type, ()))
    agree(first, [*variables.bonds(found, first), *carried])
    made = []
    for graph, operators, ranges, begun in zip(graphs, wanted, known, first, strict=True):
        here = begun.finish()
        for type_ in list(operators)[1:]:
            other = Static(graph, ranges, per_axis, type_)
            other.start(operators[type_])
            here += other.finish()
        made += join(graph, here) if len(operators) > 1 else here
    return made


def join(graph: SubgraphPart, made: Sequence[OperatorPart]) -> list[OperatorPart]:
    """Where codes of one type become those of another by way of float numbers, one QUANTIZE does it.  Returns those of
    the operators that are left."""
    producers = {tensor: op for op in graph.operators for tensor in op.outputs if tensor is not None}
    uses = Counter(index for op in graph.operators for index in op.input_indices)
    uses.update(tensor.index for tensor in graph.outputs if tensor is not None)
    ours, gone = set(made), set[OperatorPart]()
    tensors: set[TensorPart] = set()
    for op in made:
        real = op.inputs[0] if op.name == "QUANTIZE" else None
        source = producers.get(real) if real is not None else None
        if real is None or source is None or source.name != "DEQUANTIZE" or source not in ours:
            continue
        op.put("inputs", source.input_indices)
        uses[real.index] -= 1
        if not uses[real.index]:
            gone.add(source)
            tensors.add(real)
    for op in gone:
        graph.remove_operator(op)
    graph.remove_tensors(tensors)
    return [op for op in made if op not in gone]
