# SPDX-License-Identifier: Apache-2.0
"""Writes a Plan into the model that it is of, through the public methods of tq.edit.  It decides nothing.

Of constants each operator reads the quantized values that it needs; the float constant itself becomes them where
nothing else reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tq.editing import versions
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization import unsigned
from tq.quantization.boundaries import Boundary
from tq.quantization.plan import Activations, Plan, SubgraphPlan
from tq.quantization.ranges import Parameters
from tq.quantization.records import ComputedWeights, Constant, Intermediates, Product, Record, State
from tq.quantization.rewrite_weights import rewrite_weights


def rewrite(editor: Editor, plan: Plan) -> None:
    """Changes the model of which `plan` is."""
    rewrite_weights(editor, [subgraph.uses for subgraph in plan.subgraphs])
    made = [op for subgraph in plan.subgraphs for op in _rewrite_activations(subgraph)]
    for operator in made:
        operator.share_version(versions.needed(operator))


def _rewrite_activations(subgraph: SubgraphPlan) -> list[OperatorPart]:
    """Returns the integer operators and the QUANTIZE and DEQUANTIZE between; their versions are to be set."""
    floats: dict[TensorPart, TensorPart] = {}
    made: list[OperatorPart] = []
    for activations in subgraph.activations:
        made += _Writer(subgraph.graph, activations, floats).write()
    if subgraph.joined:
        made = _join(subgraph, made)
    for op in subgraph.unjoined:
        _remove(subgraph.graph, op)
    return made


class _Insertion(NamedTuple):
    position: int  # in the order of operators before any is inserted
    order: int
    operator: str
    source: TensorPart
    target: TensorPart


class _Writer:
    """Writes the activations of one type: products, constants, boundaries; then lets operators read them.

    floats: the float tensors that hold the values of tensors that became integers; the next type reads these."""

    def __init__(self, graph: SubgraphPart, plan: Activations, floats: dict[TensorPart, TensorPart]) -> None:
        self._graph, self._plan, self._choice, self._type = graph, plan, plan.choice, plan.choice.type
        self._before, self._after = dict(floats), floats
        self._producers = {t: op for op in graph.operators for t in op.outputs if t is not None}
        self._constants: dict[tuple[OperatorPart, int], TensorPart] = {}  # read by an operator instead of its input
        self._made: dict[
            tuple[TensorPart, str, bytes, int], TensorPart
        ] = {}  # by the float constant, type, scale and zero point
        self._integers: dict[TensorPart, TensorPart] = {}  # read by integer operators for a float tensor
        self._floats: dict[TensorPart, TensorPart] = {}  # read by float operators for an integer tensor
        self._computed: dict[TensorPart, TensorPart] = {}  # int8 values of int16 activations that are weights
        self._insertions: list[_Insertion] = []

    def write(self) -> list[OperatorPart]:
        """Returns the integer operators and the QUANTIZE and DEQUANTIZE between."""
        if not self._choice.operators and not self._plan.boundaries:
            return []
        for product in self._plan.products.values():
            _become_product(product)
        self._indices = {op: index for index, op in enumerate(self._graph.operators)}
        self._reads = Counter(index for op in self._graph.operators for index in op.input_indices)
        self._reads.update(tensor.index for tensor in self._graph.outputs if tensor is not None)
        for record in self._plan.records:
            self._write(record)
        for boundary in self._plan.boundaries:
            self._write_boundary(boundary)
        self._rewire()
        made = [*self._choice.operators, *self._insert()]
        if self._plan.is_unsigned:
            unsigned.shift(made, self._integers.values())
        return made

    # -- constants

    def _write(self, record: Record) -> None:
        if isinstance(record, Constant):
            self._constants[record.operator, record.input] = self._constant(record)
        elif isinstance(record, ComputedWeights):
            self._constants[record.operator, record.input] = self._computed_weights(record)
        elif isinstance(record, State):
            record.tensor.type = record.type
            record.tensor.quantization = {"scale": [record.scale], "zero_point": [record.zero_point]}
        else:
            _add_intermediates(record)

    def _constant(self, record: Constant) -> TensorPart:
        """The constant with these quantized values: the float one itself where nothing else reads it."""
        tensor = record.operator.inputs[record.input] if record.input < len(record.operator.inputs) else None
        if tensor is None:
            shape = record.values.shape
            return self._graph.add_tensor(record.name, shape, record.type, data=record.values, scale=record.scale)
        key = tensor, record.type, record.scale.tobytes(), record.zero_point
        if key in self._made:
            return self._made[key]
        target = tensor
        if self._reads[tensor.index] > 1:
            target = self._made[key] = self._graph.add_tensor(f"{tensor.name}_{record.type}", tensor.shape)
        target.type = record.type
        target.quantization = {
            "scale": record.scale,
            "zero_point": [record.zero_point] * len(record.scale),
            "quantized_dimension": record.axis,
        }
        target.data = record.values
        return target

    def _computed_weights(self, record: ComputedWeights) -> TensorPart:
        tensor = self._now(record.tensor)
        if tensor not in self._computed:
            made = self._computed[tensor] = self._twin(tensor, f"{tensor.name}_int8")
            made.type = "int8"
            most = record.magnitude
            made.quantization = {"scale": [record.scale], "zero_point": [0], "min": [-most], "max": [most]}
            self._insertions.append(_Insertion(self._index_behind(tensor), 2, "QUANTIZE", tensor, made))
        return self._computed[tensor]

    # -- activations

    def _now(self, tensor: TensorPart) -> TensorPart:
        """The float tensor of its values, where another type made it an integer."""
        return self._before.get(tensor, tensor)

    def _set(self, tensor: TensorPart, p: Parameters) -> None:
        tensor.type = self._type
        tensor.quantization = {"scale": [p.scale], "zero_point": [p.zero_point], "min": [p.low], "max": [p.high]}

    def _twin(self, tensor: TensorPart, name: str) -> TensorPart:
        """A new tensor of the same real values."""
        return self._graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)

    def _index_behind(self, tensor: TensorPart) -> int:
        producer = self._producers.get(tensor)
        return 0 if producer is None else self._indices[producer] + 1

    def _write_boundary(self, boundary: Boundary) -> None:
        tensor = self._now(boundary.tensor)
        index = self._index_behind(tensor)
        if boundary.quantize:
            twin = self._integers[tensor] = self._twin(tensor, f"{tensor.name}_{self._type}")
            self._set(twin, boundary.parameters)
            self._insertions.append(_Insertion(index, 0, "QUANTIZE", tensor, twin))
            return
        self._set(tensor, boundary.parameters)
        self._integers[tensor] = tensor
        if boundary.demanded is not None and boundary.producer is not None:
            fixed = self._twin(tensor, f"{tensor.name}_fixed")
            self._set(fixed, boundary.demanded)
            boundary.producer.outputs = [fixed if t == tensor else t for t in boundary.producer.outputs]
            self._insertions.append(_Insertion(index, 0, "QUANTIZE", fixed, tensor))
        if boundary.dequantize:
            name = tensor.name
            if boundary.is_output:
                tensor.name = f"{name}_{self._type}"
            real = self._twin(tensor, name if boundary.is_output else f"{name}_float32")
            self._floats[tensor] = self._after[tensor] = real
            self._insertions.append(_Insertion(index, 1, "DEQUANTIZE", tensor, real))

    # -- operators

    def _rewire(self) -> None:
        """Lets operators, outputs and signatures read the tensors that were made for them."""
        for (op, index), made in self._constants.items():
            op.set_input(index, made)
        for op in self._graph.operators:
            is_integer = op in self._choice.operators
            if is_integer and op in self._choice.view.ends:
                self._rewire_ends(op)
            else:
                op.replace_inputs(self._integers if is_integer else self._floats)
        integers = self._choice.view.graph_ends("outputs")
        self._graph.replace_ends("outputs", {t: real for t, real in self._floats.items() if t not in integers})
        for op, options in self._plan.options.items():
            op.options.update(options)

    def _rewire_ends(self, op: OperatorPart) -> None:
        """Control flow hands over integers at some inputs, floats at others."""
        ends = self._choice.view.ends[op]
        for index, tensor in enumerate(op.inputs):
            if tensor is not None:
                known = self._integers if ("inputs", index) in ends else self._floats
                op.set_input(index, known.get(tensor, tensor))

    def _insert(self) -> list[OperatorPart]:
        """Puts QUANTIZE and DEQUANTIZE in, and takes float constants away that nothing reads any more."""
        rows = sorted(self._insertions, key=lambda row: row[:2], reverse=True)
        made = [self._graph.add_operator(row.operator, [row.source], [row.target], at=row.position) for row in rows]
        self._graph.remove_unused(dict.fromkeys(key[0] for key in self._made))
        return made


def _become_product(product: Product) -> None:
    op = product.operator
    x = op.inputs[0]
    other = x if product.factor is None else op.subgraph.constant(product.name, product.factor)
    activation = op.options.get("fused_activation_function")
    op.become("MUL", [x, other], {} if activation is None else {"fused_activation_function": activation})


def _add_intermediates(record: Intermediates) -> None:
    """The intermediate tensors of a float LSTM, which hold ranges, become integers."""
    graph, have = record.operator.subgraph, record.operator.intermediates
    made = []
    for number, item in enumerate(record.tensors):
        tensor = have[number] if number < len(have) else None
        tensor = graph.add_tensor(item.name, ()) if tensor is None else tensor
        tensor.type, tensor.quantization = item.type, None
        if item.scale is not None:
            tensor.quantization = {"scale": [item.scale], "zero_point": [item.zero_point]}
        made.append(tensor)
    record.operator.intermediates = made


def _join(subgraph: SubgraphPlan, made: Sequence[OperatorPart]) -> list[OperatorPart]:
    """Lets one QUANTIZE take integers of one type to those of the other, where a DEQUANTIZE stands before it.  Returns
    the operators that are left."""
    graph = subgraph.graph
    producers = {tensor: op for op in graph.operators for tensor in op.outputs if tensor is not None}
    uses = Counter(index for op in graph.operators for index in op.input_indices)
    uses.update(tensor.index for tensor in graph.outputs if tensor is not None)
    gone: dict[OperatorPart, TensorPart] = {}
    for op in made:
        real = op.inputs[0] if op.name == "QUANTIZE" else None
        source = producers.get(real) if real is not None else None
        if real is None or source is None or source.name != "DEQUANTIZE" or source.inputs[0] not in subgraph.joined:
            continue
        op.set_input(0, source.inputs[0])
        uses[real.index] -= 1
        if not uses[real.index]:
            gone[source] = real
    for op in gone:
        graph.remove_operator(op)
    graph.remove_tensors(set(gone.values()))
    return [op for op in made if op not in gone]


def _remove(graph: SubgraphPart, op: OperatorPart) -> None:
    """Takes a float operator that was to requantize away, unless it stands between two ends of the subgraph."""
    source, target = op.inputs[0], op.outputs[0]
    is_output = target in graph.outputs
    if is_output and (source in graph.inputs or source in graph.outputs):
        return
    graph.remove_operator(op)
    graph.replace_tensor(*((source, target) if is_output else (target, source)))
