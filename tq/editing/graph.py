# SPDX-License-Identifier: Apache-2.0
"""Graphs of a model that is being edited: subgraphs, their tensors and operators.

Each of the three leads to the others, and so all stand here: a tensor has its producer, an operator its inputs, both
their subgraph.  Fields that lead to no other part are those of tensor.py and operator.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from tq import enums
from tq._core import Quantization, _Node
from tq.editing import fields
from tq.editing.constants import encode, type_number, type_of_array
from tq.editing.operator import OperatorFields, check_name
from tq.editing.parts import Part, Parts, as_tuple, empty_if_parts, listed, renumber, renumber_one
from tq.editing.tables import Tables
from tq.editing.tensor import QuantizationPart, TensorFields
from tq.nearest import hint

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})  # all options have their defaults

# Fields with tensor indices of their subgraph.
_DETAILS_INDICES = ("scales", "zero_points")
_OPERATOR_INDICES = ("inputs", "outputs", "intermediates")
_GRAPH_INDICES = ("inputs", "outputs")
_SIGNATURE_INDICES = ("inputs", "outputs")


def _names_tensor(field: str, value: int | None) -> bool:
    """Whether a field of quantization details names a tensor.

    Zero points are optional; 0 is also the default of a field that is not stored.
    """
    return value is not None and (field != "zero_points" or value != 0)


class TensorPart(TensorFields):
    """A tensor of a model that is being edited.

    subgraph: the SubgraphPart that has it.
    """

    def __init__(self, editor: Tables, node: _Node, subgraph: SubgraphPart) -> None:
        super().__init__(editor, node)
        self.subgraph = subgraph

    @property
    def index(self) -> int:
        """Its index in its subgraph; ValueError once it is removed."""
        return self.subgraph.index_of(self)

    @property
    def producer(self) -> OperatorPart | None:
        """The first operator that writes it; None: no operator.  ValueError: the tensor was removed."""
        index = self.index
        return next((op for op in self.subgraph.operators if index in op.output_indices), None)

    @property
    def consumers(self) -> list[OperatorPart]:
        """The operators that read it, in execution order.  ValueError: the tensor was removed."""
        index = self.index
        return [op for op in self.subgraph.operators if index in op.input_indices]


TensorLike = Union[TensorPart, int, str, None]  # noqa: UP007 - evaluated on Python 3.10 too


class OperatorPart(OperatorFields):
    """An operator of a model that is being edited.

    subgraph: the SubgraphPart that has it.
    """

    def __init__(self, editor: Tables, node: _Node, subgraph: SubgraphPart) -> None:
        super().__init__(editor, node)
        self.subgraph = subgraph

    @property
    def index(self) -> int:
        """Its position in the order of execution; ValueError once it is removed."""
        try:
            return self.subgraph.operators.index(self)
        except ValueError:
            raise ValueError("the operator was removed from its subgraph") from None

    def become(
        self, name: str, inputs: Iterable[TensorLike] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Makes it another builtin operator, of version 1, at the same position.

        inputs: None: unchanged.  options: the new options, others get their defaults; None: unchanged.
        ValueError: the schema has no such operator or option, or there is no such tensor."""
        if name not in enums.by_name("BuiltinOperator").__members__:
            raise ValueError(f"{self._where()}: the schema has no operator {name!r}")
        if options is not None:
            self.write_options(name, options)
        if inputs is not None:
            self.inputs = inputs
        self.put("opcode_index", self.editor.code_of(name, 1))

    @property
    def inputs(self) -> tuple[TensorPart | None, ...]:
        """Its input tensors; None: left out, or an index out of range.  Assign tensors, their names or their
        indices, and None for an input that is left out.

        ValueError: an assigned value is no list, or the subgraph has no such tensor.
        """
        return self.subgraph.tensors_at(self.input_indices)

    @inputs.setter
    def inputs(self, value: Iterable[TensorLike]) -> None:
        self.put("inputs", self.subgraph.indices_of(value, self._where()))

    def set_input(self, position: int, tensor: TensorLike) -> None:
        """Sets one input; None leaves it out.  Inputs between the last one and a new one are left out.

        ValueError: the position is negative, or there is no such tensor.
        """
        if position < 0:
            raise ValueError(f"{self._where()}: there is no input {position}")
        indices = list(self.input_indices)
        indices += [-1] * (position + 1 - len(indices))
        (indices[position],) = self.subgraph.indices_of([tensor], self._where())
        self.put("inputs", indices)

    def replace_inputs(self, new: Mapping[TensorPart, TensorPart]) -> None:
        """Replaces inputs; new: {old: new}.  ValueError: a new tensor is not of the operator's subgraph."""
        indices, tensors = self.input_indices, self.inputs
        changed = [
            self.subgraph.index_of(new[t]) if t is not None and t in new else i
            for i, t in zip(indices, tensors, strict=True)
        ]
        if changed != list(indices):
            self.put("inputs", changed)

    @property
    def outputs(self) -> tuple[TensorPart | None, ...]:
        """Its output tensors, as `inputs`.  ValueError: as for `inputs`."""
        return self.subgraph.tensors_at(self.output_indices)

    @outputs.setter
    def outputs(self, value: Iterable[TensorLike]) -> None:
        self.put("outputs", self.subgraph.indices_of(value, self._where()))

    @property
    def intermediates(self) -> tuple[TensorPart | None, ...]:
        """The tensors with the parameters of an LSTM's inner values, as `inputs`; () where none are stored.

        ValueError: as for `inputs`.
        """
        return self.subgraph.tensors_at(as_tuple(self.node.get("intermediates")))

    @intermediates.setter
    def intermediates(self, value: Iterable[TensorLike]) -> None:
        self.put("intermediates", self.subgraph.indices_of(value, self._where()))


class SubgraphPart(Part):
    """A subgraph of a model that is being edited."""

    def __init__(self, editor: Tables, node: _Node) -> None:
        super().__init__(editor, node)
        self._tensors = [TensorPart(editor, item, self) for item in self.nodes("tensors")]
        self._operators = [OperatorPart(editor, item, self) for item in self.nodes("operators")]
        self._indices: dict[TensorPart, int] | None = None
        self._is_stored = True  # whether the node has the lists above

    def stored(self, field: str) -> Any:
        """As Part.stored."""
        self.write_lists()
        return super().stored(field)

    def store(self, field: str, value: Any) -> None:
        """As Part.store.  "tensors" and "operators" take None alone, which removes all of them.

        ValueError: as Part.store, or another value for "tensors" or "operators".
        """
        lists: dict[str, list[Any]] = {"tensors": self._tensors, "operators": self._operators}
        if empty_if_parts(self.node, field, value, lists, self.write_lists):
            self._indices = None
            self.editor.forget_users()
        super().store(field, value)

    @property
    def index(self) -> int:
        """Its index in the model; ValueError once it is removed."""
        return self.editor.subgraph_index(self)

    @property
    def name(self) -> str | None:
        """Its name; None: not stored.  ValueError: an assigned value is no str."""
        name: str | None = self.node.get("name")
        return name

    @name.setter
    def name(self, value: str | None) -> None:
        self.put("name", value)

    @property
    def tensors(self) -> Parts[TensorPart]:
        """Its tensors, by index or name.  KeyError, IndexError: there is no such tensor."""
        return Parts("tensor", self._tensors, lambda tensor: tensor.name)

    @property
    def operators(self) -> Parts[OperatorPart]:
        """Its operators in execution order, by index or name ("CONV_2D": the first).  KeyError, IndexError: there is
        no such operator."""
        return Parts("operator", self._operators, lambda operator: operator.name)

    @property
    def inputs(self) -> tuple[TensorPart | None, ...]:
        """Its input tensors; None: an index out of range.  Assign tensors, their names or their indices.

        ValueError: an assigned value is no list, or the subgraph has no such tensor.
        """
        return self.tensors_at(self.node.numbers("inputs"))

    @inputs.setter
    def inputs(self, value: Iterable[TensorLike]) -> None:
        self.put("inputs", self.indices_of(value, "the subgraph's inputs"))

    @property
    def outputs(self) -> tuple[TensorPart | None, ...]:
        """Its output tensors, as `inputs`.  ValueError: as for `inputs`."""
        return self.tensors_at(self.node.numbers("outputs"))

    @outputs.setter
    def outputs(self, value: Iterable[TensorLike]) -> None:
        self.put("outputs", self.indices_of(value, "the subgraph's outputs"))

    # -- indices

    def index_of(self, tensor: TensorPart) -> int:
        """A tensor's index; ValueError: the subgraph does not have the tensor."""
        if self._indices is None:
            self._indices = {item: position for position, item in enumerate(self._tensors)}
        try:
            return self._indices[tensor]
        except KeyError:
            raise ValueError("the tensor was removed from its subgraph, or belongs to another") from None

    def tensors_at(self, indices: Iterable[int]) -> tuple[TensorPart | None, ...]:
        """The tensors of indices; None for an index out of range, such as -1."""
        tensors, count = self._tensors, len(self._tensors)
        return tuple([tensors[index] if 0 <= index < count else None for index in indices])

    def find(self, given: TensorLike) -> TensorPart:
        """A tensor, given as itself, its index or its name.  ValueError: the subgraph has none such."""
        if isinstance(given, TensorPart):
            self.index_of(given)
            return given
        if isinstance(given, str):
            for tensor in self._tensors:
                if tensor.name == given:
                    return tensor
            raise ValueError(
                f"subgraph {self.index} has no tensor {given!r}{hint(given, (t.name for t in self._tensors))}"
            )
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if 0 <= given < len(self._tensors):
                return self._tensors[int(given)]
            raise ValueError(f"subgraph {self.index} has no tensor {given}: it has {len(self._tensors)}")
        raise ValueError(f"a tensor is given as itself, its name or its index, not as {given!r}")

    def indices_of(self, value: Iterable[TensorLike], where: str) -> list[int]:
        """The indices of tensors (as find takes them), -1 for None.  ValueError: not a list, or no such tensor."""
        return [self._optional_index(item) for item in listed(value, where, "a list of tensors")]

    def _optional_index(self, given: TensorLike) -> int:
        if isinstance(given, TensorPart):
            return self.index_of(given)
        return -1 if given is None or given == -1 else self.index_of(self.find(given))

    def _position(self, given: OperatorPart | int) -> int:
        """The position of an operator, given as itself or by its index.  ValueError, IndexError: none such."""
        operator = given if isinstance(given, OperatorPart) else self.operators[given]
        if operator.subgraph is not self:
            raise ValueError("the operator belongs to another subgraph")
        return operator.index

    # -- adding

    def add_tensor(
        self,
        name: str | None,
        shape: Iterable[int] | None = None,
        type: Any = None,
        *,
        data: Any = None,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike | None = None,
        min: ArrayLike | None = None,
        max: ArrayLike | None = None,
        quantized_dimension: int = 0,
        details: Mapping[str, Any] | None = None,
        quantization: Quantization | Mapping[str, Any] | QuantizationPart | None = None,
        shape_signature: Iterable[int] | None = None,
        buffer: int | None = None,
        **others: Any,
    ) -> TensorPart:
        """A new last tensor.

        type: as TensorPart.type takes it; by default the type of `data`'s dtype, or FLOAT32.
        shape: by default `data`'s.
        data: an array or bytes: the tensor is a constant with a buffer of its own.
        buffer: the index of an existing buffer.
        scale, zero_point, min, max: one value or one a channel.  A scale without zero_point gets zeros; zero_point=[]
            stores none.
        quantized_dimension: the axis of several scales.
        details: a dict with its table's name under "type", such as BlockwiseQuantization.
        quantization: all parameters at once, in place of the five above.
        others: further fields of the schema's Tensor, as store() takes them: is_variable, has_rank, sparsity,
            variant_tensors, external_buffer.
        ValueError: there is no shape, or data, type, shape or a field do not fit; the message names the tensor.
        """
        where = f"tensor {name!r}"
        if quantization is not None and any(p is not None for p in (scale, zero_point, min, max, details)):
            raise ValueError(f"{where}: quantization= holds all parameters; leave out scale, min and the others")
        if type is None:
            type = "FLOAT32" if data is None or isinstance(data, bytes) else type_of_array(np.asarray(data))
        number = type_number(type)
        wanted = None if shape is None else tuple(listed(shape, f"{where}, shape"))
        content: bytes | None = None
        if data is not None:
            content, found = encode(data, number, wanted, where)
            wanted = found if wanted is None else wanted
        if wanted is None:
            raise ValueError(f"{where} needs a shape")
        tensor = TensorPart(self.editor, self.editor.tree.make("Tensor"), self)
        tensor.put("shape", list(wanted))
        if number:
            tensor.put("type", number)
        tensor.put("name", name)
        if buffer is not None:
            tensor.buffer = buffer
        if shape_signature is not None:
            tensor.shape_signature = shape_signature
        for field, value in others.items():
            tensor.put(field, value)
        if scale is not None and zero_point is None:
            zero_point = np.zeros(np.size(scale), np.int64)
        given = {"min": min, "max": max, "scale": scale, "zero_point": zero_point, "details": details}
        for field, value in {**given, "quantized_dimension": quantized_dimension or None}.items():
            if value is not None:
                setattr(tensor.quantization, field, value)
        if quantization is not None:
            tensor.quantization = quantization
        if content is not None:
            self.editor.set_data(tensor.node, content)
        if self._indices is not None:
            self._indices[tensor] = len(self._tensors)
        self._tensors.append(tensor)
        self.editor.forget_users()
        self._is_stored = False
        return tensor

    def add_operator(
        self,
        name: str,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        /,
        *,
        at: int | None = None,
        version: int = 1,
        custom_options: bytes | None = None,
        intermediates: Iterable[TensorLike] | None = None,
        options: Mapping[str, Any] | None = NO_OPTIONS,
        **more_options: Any,
    ) -> OperatorPart:
        """A new operator at position `at` of the order of execution (None: last).

        name: a builtin operator's ("CONV_2D"), or a custom operator's.  A custom name that is similar to a builtin one
            needs custom_options (which may be b"").
        inputs, outputs, intermediates: tensors, their names or indices; None for an optional input that is left out.
        options, more_options: the builtin options by the schema's names; others have the schema's defaults.
            options=None: no table of options is stored.
        ValueError: there is no such position, tensor or option, or the name may be a misspelt builtin operator.
        """
        where = f"operator {name}"
        position = len(self._operators) if at is None else at
        if not 0 <= position <= len(self._operators):
            raise ValueError(f"{where}: there is no position {at} among {len(self._operators)} operators")
        if custom_options is None:
            check_name(name)
        operator = OperatorPart(self.editor, self.editor.tree.make("Operator"), self)
        operator.put("inputs", self.indices_of(inputs, where))
        operator.put("outputs", self.indices_of(outputs, where))
        if intermediates is not None:
            operator.put("intermediates", self.indices_of(intermediates, where))
        if custom_options is not None:
            operator.custom_options = custom_options
        given = None if options is None and not more_options else {**(options or {}), **more_options}
        operator.write_options(name, given)
        operator.put("opcode_index", self.editor.code_of(name, version))
        self._operators.insert(position, operator)
        self._is_stored = False
        return operator

    def constant(self, name: str | None, data: Any, type: Any = None, **parameters: Any) -> TensorPart:
        """A new constant; data: an array, which gives shape and type unless `shape` and `type` are given.

        parameters: as for add_tensor.
        ValueError: as for add_tensor.
        """
        return self.add_tensor(name, parameters.pop("shape", None), type, data=data, **parameters)

    def insert_before(
        self,
        operator: OperatorPart,
        name: str,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        /,
        **more: Any,
    ) -> OperatorPart:
        """A new operator directly before another one; `more` as for add_operator.

        ValueError: as for add_operator, or `operator` is not of this subgraph.
        """
        return self.add_operator(name, inputs, outputs, at=self._position(operator), **more)

    def insert_after(
        self,
        operator: OperatorPart,
        name: str,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        /,
        **more: Any,
    ) -> OperatorPart:
        """A new operator directly behind another one; `more` as for add_operator.

        ValueError: as for add_operator, or `operator` is not of this subgraph.
        """
        return self.add_operator(name, inputs, outputs, at=self._position(operator) + 1, **more)

    # -- removing

    def remove_operator(self, operator: OperatorPart | int) -> None:
        """Removes an operator, given as itself or by its index; its tensors stay (see Editor.prune).

        ValueError, IndexError: the subgraph has no such operator.
        """
        del self._operators[self._position(operator)]
        self._is_stored = False

    def replace_operator(
        self,
        operator: OperatorPart | int,
        name: str,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        /,
        **arguments: Any,
    ) -> OperatorPart:
        """Replaces an operator, given as itself or by its index, by a new one at the same position.

        arguments: as for add_operator.
        ValueError: as for add_operator.  ValueError, IndexError: the subgraph has no such operator.
        """
        position = self._position(operator)
        made = self.add_operator(name, inputs, outputs, at=position, **arguments)
        del self._operators[position + 1]
        return made

    def replace_tensor(self, old: TensorLike, new: TensorLike) -> None:
        """Replaces `old` by `new` wherever it is read, written or named, and removes `old`.

        ValueError: the subgraph has no such tensor.
        """
        gone, made = self.find(old), self.find(new)
        if gone != made:
            self._renumber_tensors({gone.index: made.index}, self._tensors)
            self.remove_tensors({gone})

    def remove_tensor(self, tensor: TensorLike) -> None:
        """Removes a tensor.  ValueError: it is used (the message names a user), or the subgraph has no such tensor."""
        found = self.find(tensor)
        user = self.users().get(found.index)
        if user:
            raise ValueError(f"tensor {found.name!r} is used by {user}")
        self.remove_tensors({found})

    def remove_unused(self, tensors: Iterable[TensorPart]) -> None:
        """Removes the given tensors that nothing uses.  ValueError: one is not of this subgraph."""
        users = self.users()
        self.remove_tensors({tensor for tensor in tensors if self.index_of(tensor) not in users})

    def replace_ends(self, side: str, new: Mapping[TensorPart, TensorPart]) -> None:
        """Replaces inputs or outputs of the subgraph and its signatures; new: {old: new}.

        side: "inputs" or "outputs".
        ValueError: another side, or a tensor is not of this subgraph.
        """
        if side not in _GRAPH_INDICES:
            raise ValueError(f"side is 'inputs' or 'outputs', not {side!r}")
        indices = {self.index_of(old): self.index_of(made) for old, made in new.items()}
        renumber(self.node, side, indices)
        for signature in self.editor.signature_nodes(self.index):
            for item in signature.get(side) or ():
                renumber_one(item, "tensor_index", indices)

    def keep_operators(self, operators: Iterable[OperatorPart]) -> None:
        """Removes all other operators; these get the given order."""
        self._operators[:] = operators
        self._is_stored = False

    def close(self) -> None:
        """Empties the lists of parts: see Editor.close."""
        self._tensors.clear()
        self._operators.clear()
        self._indices = None

    def users(self) -> dict[int, str]:
        """{tensor index: a text that names a user}, of used tensors."""
        found: dict[int, str] = {}
        for tensor in self._tensors:
            details = tensor.quantization.details
            for field in _DETAILS_INDICES:
                if details and _names_tensor(field, details.get(field)):
                    found[details[field]] = f"the quantization of tensor {tensor.name!r}"
        for position, operator in enumerate(self._operators):
            for field in _OPERATOR_INDICES:
                for index in operator.node.numbers(field):
                    found[index] = f"operator {position} {operator.name}"
        for field in _GRAPH_INDICES:
            for index in self.node.numbers(field):
                found[index] = f"the subgraph's {field}"
        for signature in self.editor.signature_nodes(self.index):
            for field in _SIGNATURE_INDICES:
                for item in signature.get(field) or ():
                    found[int(item.get("tensor_index"))] = f"signature {signature.get('signature_key') or ''!r}"
        return found

    def remove_tensors(self, gone: Set[TensorPart]) -> None:
        """Removes tensors, used or not, and renumbers the others; a removed tensor's index becomes -1."""
        if not gone:
            return
        left = [tensor for tensor in self._tensors if tensor not in gone]
        new = {position: -1 for position, tensor in enumerate(self._tensors) if tensor in gone}
        new |= {self.index_of(tensor): position for position, tensor in enumerate(left)}
        self._renumber_tensors(new, left)
        self._tensors[:] = left
        self._indices = None
        self.editor.forget_users()
        self._is_stored = False
        for tensor in gone:
            self.editor.release_buffer(tensor.buffer)

    def _renumber_tensors(self, new: Mapping[int, int], tensors: Iterable[TensorPart]) -> None:
        """Maps tensor indices in operators, inputs, outputs, signatures, and quantization details of `tensors`."""
        for tensor in tensors:
            node = tensor.quantization.node()
            details = node.get("details") if node else None
            if details is None or details.type is None:
                continue
            for field in _DETAILS_INDICES:
                if field in fields.rows(details.type) and _names_tensor(field, details.get(field)):
                    renumber_one(details, field, new)
        for operator in self._operators:
            for field in _OPERATOR_INDICES:
                renumber(operator.node, field, new)
        for field in _GRAPH_INDICES:
            renumber(self.node, field, new)
        for signature in self.editor.signature_nodes(self.index):
            for field in _SIGNATURE_INDICES:
                for item in signature.get(field) or ():
                    renumber_one(item, "tensor_index", new)

    def write_lists(self) -> None:
        """Stores the lists of tensors and operators in the node, if they have changed."""
        if not self._is_stored:
            self.node.set("tensors", [tensor.node for tensor in self._tensors])
            self.node.set("operators", [operator.node for operator in self._operators])
            self._is_stored = True

    def __repr__(self) -> str:
        return f"<tq subgraph {self.name!r}: {len(self._tensors)} tensors, {len(self._operators)} operators>"
