# SPDX-License-Identifier: Apache-2.0
"""Subgraphs of a model that is being edited: adding and removing tensors and operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tq._core import Quantization, _Node
from tq.editing import fields
from tq.editing.constants import encode, type_number, type_of_array
from tq.editing.operator import OperatorPart, TensorLike, check_name
from tq.editing.parts import Part, Parts, empty_if_parts, renumber, renumber_one
from tq.editing.tensor import QuantizationPart, TensorPart
from tq.nearest import hint

if TYPE_CHECKING:
    from tq.editing.editor import Editor

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})  # none beyond the defaults

# Fields that name tensors of their subgraph.
_DETAILS_INDICES = ("scales", "zero_points")
_OPERATOR_INDICES = ("inputs", "outputs", "intermediates")
_GRAPH_INDICES = ("inputs", "outputs")
_SIGNATURE_INDICES = ("inputs", "outputs")


def _names_tensor(field: str, value: int | None) -> bool:
    """Whether a field of quantization details names a tensor.  Zero points are optional, and 0 is what a field reads as
    that is not stored."""
    return value is not None and (field != "zero_points" or value != 0)


class SubgraphPart(Part):
    """A subgraph of a model that is being edited."""

    def __init__(self, editor: Editor, node: _Node) -> None:
        super().__init__(editor, node)
        self._tensors = [TensorPart(editor, item, self) for item in self.nodes("tensors")]
        self._operators = [OperatorPart(editor, item, self) for item in self.nodes("operators")]
        self._places: dict[TensorPart, int] | None = None
        self._position = 0  # in the editor's list, as long as it stands there
        self._is_stored = True  # the node holds the lists above

    def stored(self, field: str) -> Any:
        self.write_lists()
        return super().stored(field)

    def store(self, field: str, value: Any) -> None:
        """As Part.store; tensors and operators, which have methods of their own, only go (None), all of them."""
        lists: dict[str, list[Any]] = {"tensors": self._tensors, "operators": self._operators}
        if empty_if_parts(self.node, field, value, lists, self.write_lists):
            self._places = None
            self.editor.forget_users()
        super().store(field, value)

    @property
    def index(self) -> int:
        graphs = self.editor.subgraphs
        if self._position >= len(graphs) or graphs[self._position] is not self:
            for place, graph in enumerate(graphs):
                graph.stand_at(place)
            if graphs[self._position] is not self:
                raise ValueError("the subgraph was removed from its model")
        return self._position

    def stand_at(self, place: int) -> None:
        """Remembers its place among the editor's subgraphs."""
        self._position = place

    @property
    def name(self) -> str | None:
        name: str | None = self.node.get("name")
        return name

    @name.setter
    def name(self, value: str | None) -> None:
        self.put("name", value)

    @property
    def tensors(self) -> Parts[TensorPart]:
        return Parts("tensor", self._tensors, lambda tensor: tensor.name)

    @property
    def operators(self) -> Parts[OperatorPart]:
        """In execution order."""
        return Parts("operator", self._operators, lambda operator: operator.name)

    @property
    def inputs(self) -> tuple[TensorPart | None, ...]:
        return self.tensors_at(self.node.numbers("inputs"))

    @inputs.setter
    def inputs(self, value: Iterable[TensorLike]) -> None:
        self.put("inputs", self.indices_of(value, "the subgraph's inputs"))

    @property
    def outputs(self) -> tuple[TensorPart | None, ...]:
        return self.tensors_at(self.node.numbers("outputs"))

    @outputs.setter
    def outputs(self, value: Iterable[TensorLike]) -> None:
        self.put("outputs", self.indices_of(value, "the subgraph's outputs"))

    # -- places

    def place_of(self, tensor: TensorPart) -> int:
        """A tensor's index; ValueError where it is not this subgraph's."""
        if self._places is None:
            self._places = {item: place for place, item in enumerate(self._tensors)}
        try:
            return self._places[tensor]
        except KeyError:
            raise ValueError("the tensor was removed from its subgraph, or belongs to another") from None

    def tensors_at(self, indices: Iterable[int]) -> tuple[TensorPart | None, ...]:
        """The tensors of these indices; None for an index that no tensor has."""
        tensors, count = self._tensors, len(self._tensors)
        return tuple([tensors[index] if 0 <= index < count else None for index in indices])

    def find(self, what: TensorLike) -> TensorPart:
        """A tensor by itself, its index or its name; ValueError where the subgraph has none such."""
        if isinstance(what, TensorPart):
            self.place_of(what)
            return what
        if isinstance(what, str):
            for tensor in self._tensors:
                if tensor.name == what:
                    return tensor
            raise ValueError(
                f"subgraph {self.index} has no tensor {what!r}{hint(what, (t.name for t in self._tensors))}"
            )
        if isinstance(what, (int, np.integer)) and not isinstance(what, bool):
            if 0 <= what < len(self._tensors):
                return self._tensors[int(what)]
            raise ValueError(f"subgraph {self.index} has no tensor {what}: it has {len(self._tensors)}")
        raise ValueError(f"a tensor is named by itself, its name or its index, not by {what!r}")

    def indices_of(self, value: Iterable[TensorLike], where: str) -> list[int]:
        """The indices of tensors, -1 for None; ValueError begins with `where`."""
        if isinstance(value, (str, TensorPart)):
            raise ValueError(f"{where}: a list of tensors is needed, not {value!r}")
        return [self._index_of(item) for item in value]

    def _index_of(self, what: TensorLike) -> int:
        if isinstance(what, TensorPart):
            return self.place_of(what)
        return -1 if what is None or what == -1 else self.place_of(self.find(what))

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
        """A new tensor, behind the others.

        type: as TensorPart.type takes it; by default that of `data`'s dtype, or FLOAT32.  shape: by default `data`'s.
        data: an array or bytes, which make it a constant with its own buffer.  buffer: the index of an existing one.
        scale and the names after it: quantization parameters.  A scale without zero points gets zeros; zero_point=[]
        stores none.  details: a dict with its table's name under "type", such as BlockwiseQuantization.
        others: further fields of the schema's Tensor, as store() takes them: is_variable, has_rank, sparsity,
        variant_tensors, external_buffer.
        """
        where = f"tensor {name!r}"
        if quantization is not None and any(p is not None for p in (scale, zero_point, min, max, details)):
            raise ValueError(f"{where}: quantization= holds all parameters; leave out scale, min and the others")
        if type is None:
            type = "FLOAT32" if data is None or isinstance(data, bytes) else type_of_array(np.asarray(data))
        number = type_number(type)
        wanted = None if shape is None else tuple(shape)
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
            self.editor.set_data(tensor, content)
        if self._places is not None:
            self._places[tensor] = len(self._tensors)
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
        """A new operator, at place `at` in the order of execution (default: last).

        name: a builtin operator's ("CONV_2D"); any other makes a custom operator, with custom_options.  ValueError: it
        looks like a builtin operator's, and custom_options, be they b"", do not say that it is none.
        inputs, outputs: tensors, their names or indices; None for an optional input that is left out.
        options, more_options: the builtin options by the schema's names; those left out have the schema's defaults.
        options=None: the operator stores none, not even their table.
        """
        where = f"operator {name}"
        place = len(self._operators) if at is None else at
        if not 0 <= place <= len(self._operators):
            raise ValueError(f"{where}: there is no place {at} among {len(self._operators)} operators")
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
        self._operators.insert(place, operator)
        self._is_stored = False
        return operator

    def constant(self, name: str | None, data: Any, type: Any = None, **parameters: Any) -> TensorPart:
        """A tensor with data: an array, whose shape and dtype it has unless `shape` and `type` say otherwise.
        parameters: as for add_tensor."""
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
        """A new operator right before another one; `more` as for add_operator."""
        return self.add_operator(name, inputs, outputs, at=operator.index, **more)

    def insert_after(
        self,
        operator: OperatorPart,
        name: str,
        inputs: Iterable[TensorLike],
        outputs: Iterable[TensorLike],
        /,
        **more: Any,
    ) -> OperatorPart:
        """A new operator right behind another one; `more` as for add_operator."""
        return self.add_operator(name, inputs, outputs, at=operator.index + 1, **more)

    # -- removing

    def remove_operator(self, operator: OperatorPart | int) -> None:
        """Takes an operator away; its tensors stay (see prune)."""
        self._operators.remove(operator if isinstance(operator, OperatorPart) else self.operators[operator])
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
        """A new operator in the place of an old one; arguments as for add_operator."""
        old = operator if isinstance(operator, OperatorPart) else self.operators[operator]
        made = self.add_operator(name, inputs, outputs, at=old.index, **arguments)
        self.remove_operator(old)
        return made

    def replace_tensor(self, old: TensorLike, new: TensorLike) -> None:
        """Makes everything that reads, writes or names `old` use `new` instead, and takes `old` away."""
        gone, made = self.find(old), self.find(new)
        if gone != made:
            self._renumber_tensors({gone.index: made.index}, self._tensors)
            self.remove_tensors({gone})

    def remove_tensor(self, tensor: TensorLike) -> None:
        """Takes a tensor away that nothing uses; ValueError names who still does."""
        found = self.find(tensor)
        user = self.users().get(found.index)
        if user:
            raise ValueError(f"tensor {found.name!r} is used by {user}")
        self.remove_tensors({found})

    def remove_unused(self, tensors: Iterable[TensorPart]) -> None:
        """Takes away those of the tensors that nothing uses."""
        users = self.users()
        self.remove_tensors({tensor for tensor in tensors if tensor.index not in users})

    def replace_ends(self, side: str, new: Mapping[TensorPart, TensorPart]) -> None:
        """Other tensors in place of the subgraph's inputs or outputs that are keys, in its signatures too.

        side: "inputs" or "outputs"."""
        indices = {old.index: made.index for old, made in new.items()}
        renumber(self.node, side, indices)
        for signature in self.editor.signatures_of(self):
            for item in signature.nodes(side):
                renumber_one(item, "tensor_index", indices)

    def keep_operators(self, operators: Iterable[OperatorPart]) -> None:
        """Takes all other operators away; these stand in the order in which they are given."""
        self._operators[:] = operators
        self._is_stored = False

    def close(self) -> None:
        """Takes the lists of parts apart: see Editor.close."""
        self._tensors.clear()
        self._operators.clear()
        self._places = None

    def users(self) -> dict[int, str]:
        """{index: text about one who uses the tensor}."""
        found: dict[int, str] = {}
        for tensor in self._tensors:
            details = tensor.quantization.details
            for field in _DETAILS_INDICES:
                if details and _names_tensor(field, details.get(field)):
                    found[details[field]] = f"the quantization of tensor {tensor.name!r}"
        for place, operator in enumerate(self._operators):
            for field in _OPERATOR_INDICES:
                for index in operator.node.numbers(field):
                    found[index] = f"operator {place} {operator.name}"
        for field in _GRAPH_INDICES:
            for index in self.node.numbers(field):
                found[index] = f"the subgraph's {field}"
        for signature in self.editor.signatures_of(self):
            for field in _SIGNATURE_INDICES:
                for item in signature.nodes(field):
                    found[int(item.get("tensor_index"))] = f"signature {signature.key!r}"
        return found

    def remove_tensors(self, gone: Set[TensorPart]) -> None:
        """Takes tensors away, used or not, and renumbers the others; an index of one that goes becomes -1."""
        if not gone:
            return
        kept = [tensor for tensor in self._tensors if tensor not in gone]
        new = {place: -1 for place, tensor in enumerate(self._tensors) if tensor in gone}
        new |= {self.place_of(tensor): place for place, tensor in enumerate(kept)}
        self._renumber_tensors(new, kept)
        self._tensors[:] = kept
        self._places = None
        self.editor.forget_users()
        self._is_stored = False
        for tensor in gone:
            self.editor.release_buffer(tensor.buffer)

    def _renumber_tensors(self, new: Mapping[int, int], tensors: Iterable[TensorPart]) -> None:
        """Maps the indices of tensors wherever they are named; the parameters of `tensors` may name some."""
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
        for signature in self.editor.signatures_of(self):
            for field in _SIGNATURE_INDICES:
                for item in signature.nodes(field):
                    renumber_one(item, "tensor_index", new)

    def write_lists(self) -> None:
        """Gives the node the lists of tensors and operators.  Once, however many came and went."""
        if not self._is_stored:
            self.node.set("tensors", [tensor.node for tensor in self._tensors])
            self.node.set("operators", [operator.node for operator in self._operators])
            self._is_stored = True

    def __repr__(self) -> str:
        return f"<tq subgraph {self.name!r}: {len(self._tensors)} tensors, {len(self._operators)} operators>"
