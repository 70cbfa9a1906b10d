# SPDX-License-Identifier: Apache-2.0
"""Changing models: tq.edit() opens one, and what is not changed is written as it was.

    with tq.edit("in.tflite") as e:
        e.tensors["conv/weights"].quantization.scale = scales
        e.operators[3].options["fused_activation_function"] = "RELU"
        e.save("out.tflite")

Parts are objects and stay what they are while others come and go: a tensor knows its index, and whoever uses it is
renumbered when it moves.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core, enums, saving
from tq._core import Model, ModelError, _Node
from tq.editing import fields, io_types
from tq.editing.graph import SubgraphPart
from tq.editing.names import Metadata, SignaturePart
from tq.editing.operator import CUSTOM, OperatorPart, TensorLike
from tq.editing.parts import Part, Parts, as_tuple, empty_if_parts, renumber, renumber_one
from tq.editing.tensor import TensorPart
from tq.editing.trailing_data import find_trailing_data
from tq.sources import Source, opened

_HALF_MAX = 65504.0
_LAST_OLD_CODE = 127  # deprecated_builtin_code is a byte: PLACEHOLDER_FOR_GREATER_OP_CODES


class Editor:
    """A model that can be changed; see tq.edit."""

    _graph_type = SubgraphPart

    def __init__(self, source: Source | None = None) -> None:
        model = None if source is None else _open(source)
        self._path = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else None
        self._model = model
        self.tree = _core._Tree(model)
        self.trailing = None if model is None else find_trailing_data(model, self.tree)
        self.root = self.tree.root
        self._rows: dict[str, list[_Node]] = {}  # signatures and metadata, which grow one by one
        self._new_rows: set[str] = set()  # the fields of them that the root has not got yet
        self._metadata_rows: dict[str, _Node] | None = None  # by name
        self._subgraphs = [self._graph_type(self, node) for node in self.root_nodes("subgraphs")]
        self._buffers = self.root_nodes("buffers")
        self._are_subgraphs_stored = self._are_buffers_stored = True
        self._users: Counter[int] | None = None
        self._codes: list[_Node] | None = None
        self._names: list[str | None] | None = None
        self._versions: dict[tuple[str | int, int], int] = {}  # operator codes by what they were made of
        self._saved = self.tree.changes

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, kind: object, *_rest: object) -> None:
        self._store()
        if kind is None and self.tree.changes != self._saved:
            warnings.warn("the changes were never saved: call save() or to_bytes()", stacklevel=2)

    # -- the model's own fields

    @property
    def description(self) -> str:
        return self.root.get("description") or ""

    @description.setter
    def description(self, value: str | None) -> None:
        fields.put(self.root, "description", value)

    @property
    def version(self) -> int:
        """Of the schema."""
        return int(self.root.get("version"))

    @version.setter
    def version(self, value: int) -> None:
        fields.put(self.root, "version", value)

    @property
    def metadata(self) -> Metadata:
        return Metadata(self)

    @property
    def subgraphs(self) -> Parts[SubgraphPart]:
        return Parts("subgraph", self._subgraphs, lambda graph: graph.name)

    @property
    def main(self) -> SubgraphPart:
        """The first subgraph."""
        return self.subgraphs[0]

    @property
    def tensors(self) -> Parts[TensorPart]:
        """Those of the first subgraph, as are operators, inputs and outputs."""
        return self.main.tensors

    @property
    def operators(self) -> Parts[OperatorPart]:
        return self.main.operators

    @property
    def inputs(self) -> tuple[TensorPart | None, ...]:
        return self.main.inputs

    @inputs.setter
    def inputs(self, value: Iterable[TensorLike]) -> None:
        self.main.inputs = value

    @property
    def outputs(self) -> tuple[TensorPart | None, ...]:
        return self.main.outputs

    @outputs.setter
    def outputs(self, value: Iterable[TensorLike]) -> None:
        self.main.outputs = value

    def constant(self, name: str | None, data: Any, type: Any = None, **parameters: Any) -> TensorPart:
        """SubgraphPart.constant of the first subgraph."""
        return self.main.constant(name, data, type, **parameters)

    def stored(self, field: str) -> Any:
        """A field of the schema's Model as plain Python values, None where it is not stored: see Part.stored."""
        self._store()
        return Part(self, self.root).stored(field)

    def store(self, field: str, value: Any) -> None:
        """Stores a field of the schema's Model as it is given: operator_codes, external_buffers, metadata_buffer, as
        Part.store does.  Subgraphs and buffers, which have methods of their own, only go (None), all of them."""
        lists: dict[str, list[Any]] = {"subgraphs": self._subgraphs, "buffers": self._buffers}
        empty_if_parts(self.root, field, value, lists, self._store)
        fields.put(self.root, field, value)
        self._forget_rows(field)
        self.forget_users()
        self.forget_versions()

    # -- signatures

    @property
    def signatures(self) -> Parts[SignaturePart]:
        found = [SignaturePart(self, node) for node in self.root_nodes("signature_defs")]
        return Parts("signature", found, lambda signature: signature.key)

    def add_signature(
        self, key: str, inputs: Mapping[str, TensorLike], outputs: Mapping[str, TensorLike], subgraph: int = 0
    ) -> SignaturePart:
        """A new signature of a subgraph: names for tensors of it."""
        self.subgraphs[subgraph]
        signature = SignaturePart(self, self.tree.make("SignatureDef"))
        signature.put("subgraph_index", subgraph)
        signature.inputs = inputs
        signature.outputs = outputs
        signature.key = key
        self._add_row("signature_defs", signature.node)
        return signature

    def remove_signature(self, key: str) -> None:
        gone = self.signatures[key].node
        self.set_rows("signature_defs", [node for node in self.root_nodes("signature_defs") if node != gone])

    def signatures_of(self, graph: SubgraphPart) -> list[SignaturePart]:
        index = graph.index
        return [signature for signature in self.signatures if signature.subgraph_index == index]

    def add_subgraph(self, name: str | None = None) -> SubgraphPart:
        """A new, empty subgraph, behind the others."""
        node = self.tree.make("SubGraph")
        for field in ("tensors", "operators"):
            node.set(field, [])
        for field in ("inputs", "outputs"):
            fields.put(node, field, [])
        graph = self._graph_type(self, node)
        if name is not None:
            graph.name = name
        self._subgraphs.append(graph)
        self._are_subgraphs_stored = False
        return graph

    # -- shared rows

    def root_nodes(self, field: str) -> list[_Node]:
        if field in self._rows:
            return self._rows[field]
        nodes: list[_Node] | None = self.root.get(field)
        return nodes or []

    def _add_row(self, field: str, node: _Node) -> None:
        """One more signature or metadata entry.  The root gets all new ones at once, when it is asked (_store)."""
        if field not in self._rows:
            self._rows[field] = self.root_nodes(field)
        self._rows[field].append(node)
        self._new_rows.add(field)

    def set_rows(self, field: str, nodes: list[_Node]) -> None:
        """All signatures or all metadata entries."""
        self._forget_rows(field)
        self.root.set(field, nodes or None)

    def _forget_rows(self, field: str) -> None:
        self._rows.pop(field, None)
        self._new_rows.discard(field)
        if field == "metadata":
            self._metadata_rows = None

    def metadata_entry(self, name: str) -> _Node | None:
        """The last of that name, which Model.metadata shows."""
        if self._metadata_rows is None:
            self._metadata_rows = {item.get("name") or "": item for item in self.root_nodes("metadata")}
        return self._metadata_rows.get(name)

    def add_metadata(self, name: str, node: _Node) -> None:
        """One more metadata entry."""
        self._add_row("metadata", node)
        if self._metadata_rows is not None:
            self._metadata_rows[name] = node

    def _make_code(self, name: str, version: int) -> _Node:
        """An operator code; both of its code fields are set, as the converter sets them."""
        code = self.tree.make("OperatorCode")
        member = enums.by_name("BuiltinOperator").__members__.get(name)
        number = int(enums.by_name("BuiltinOperator")[CUSTOM] if member is None else member)
        fields.put(code, "deprecated_builtin_code", min(number, _LAST_OLD_CODE))
        if member is None:
            fields.put(code, "custom_code", name)
        if version != 1:
            fields.put(code, "version", version)
        if number:
            fields.put(code, "builtin_code", number)
        return code

    def _intern_code(self, code: _Node) -> int:
        """The index of an operator code like this one, which is added where there is none."""
        codes = self.code_nodes()
        brief = ("builtin_code", "version")  # tells nearly all codes apart, at a fraction of what all fields cost
        found = [code.get(field) for field in brief]
        for index, other in enumerate(codes):
            if [other.get(field) for field in brief] != found or other.unknown_slots():
                continue
            if fields.as_dict(other) == fields.as_dict(code):
                return index
        self.root.set("operator_codes", [*codes, code])
        self._codes = self._names = None
        return len(codes)

    def code_nodes(self) -> list[_Node]:
        if self._codes is None:
            self._codes = self.root_nodes("operator_codes")
        return self._codes

    def code_names(self) -> list[str | None]:
        """The builtin operators of the operator codes, None for one that the schema does not know."""
        if self._names is None:
            numbers = [max(c.get("deprecated_builtin_code"), c.get("builtin_code")) for c in self.code_nodes()]
            members = enums.members_by_value("BuiltinOperator")
            self._names = [members[number].name if number in members else None for number in numbers]
        return self._names

    def code_of(self, name: str, version: int) -> int:
        """The index of the operator code of that name and version."""
        key = (name, version)
        if key not in self._versions:
            self._versions[key] = self._intern_code(self._make_code(name, version))
        return self._versions[key]

    def code_of_version(self, index: int, version: int) -> int:
        """The index of an operator code like another one, of another version."""
        key = (index, version)
        if key not in self._versions:
            copy = self.tree.copy(self.code_nodes()[index])
            fields.put(copy, "version", version)
            self._versions[key] = self._intern_code(copy)
        return self._versions[key]

    def forget_versions(self) -> None:
        """What is known of operator codes, of which one changed or went."""
        self._codes = self._names = None
        self._versions.clear()

    def code_users(self, index: int) -> int:
        return sum(op.node.get("opcode_index") == index for graph in self._subgraphs for op in graph.operators)

    # -- buffers

    def buffer_node(self, index: int) -> _Node | None:
        return self._buffers[index] if index < len(self._buffers) else None

    @property
    def buffers(self) -> Parts[Part]:
        """The model's buffers, whose fields stored() and store() read and set; a tensor's `data` is the usual way."""
        return Parts("buffer", [Part(self, node) for node in self._buffers], lambda buffer: None)

    def add_buffer(self, data: bytes | None = None, **others: Any) -> int:
        """A new buffer; returns its index.  Index 0 stays the empty buffer that tensors without data name.

        others: further fields of the schema's Buffer, as store() takes them: offset and size of what stands behind the
        flatbuffer."""
        node = self.tree.make("Buffer")
        if data is not None:
            node.set("data", data)
        for field, value in others.items():
            fields.put(node, field, value)
        if not self._buffers:
            self._buffers.append(self.tree.make("Buffer"))
        self._buffers.append(node)
        self._are_buffers_stored = False
        return len(self._buffers) - 1

    def add_quantized_buffer(
        self, tensor: TensorPart, axis: int | None, dtype: str, block_size: int | None
    ) -> tuple[int, tuple[int, ...]]:
        """A new buffer with the quantized values of a float constant, and the shape of their scales: those of
        tq.quantize_weights, packed.  They are computed when the model is written, of the constant as it is now; a
        constant that is not finite is a ValueError then.  TensorPart.become_quantized puts the buffer to use."""
        index, source, label = self.add_buffer(), self.buffer_node(tensor.buffer), repr(tensor)
        if source is not None:
            made = _core._codes_from(self._buffers[index], source, tensor.shape, axis, dtype, block_size, label)
            if made is not None:
                return index, made
        data = tensor.data
        if data is None:
            raise ModelError(f"{tensor!r} has no data")
        # a copy: what the tree keeps must be no view of it, or neither is ever freed
        return index, _core._codes_into(self._buffers[index], data.copy(), axis, dtype, block_size, label)

    def add_float16_buffer(self, tensor: TensorPart) -> int:
        """A new buffer with a float constant of this model as float16, made when the model is written.  Numbers beyond
        float16's greatest become that; none is NaN."""
        index, source = self.add_buffer(), self.buffer_node(tensor.buffer)
        if source is None or not _core._halves_from(self._buffers[index], source, tensor.shape):
            data = tensor.data
            if data is None:
                raise ModelError(f"{tensor!r} has no data")
            halves = np.clip(data, -_HALF_MAX, _HALF_MAX).astype("<f2")
            self._buffers[index].set("data", halves.tobytes())
        return index

    def close(self) -> None:
        """Takes apart the parts, which refer to each other: they and the source are freed now, not by the collector."""
        for graph in self._subgraphs:
            graph.close()
        self._subgraphs.clear()

    def scales_of_buffer(self, buffer: int) -> NDArray[np.float32]:
        """The scales of a buffer that add_quantized_buffer added, computed now."""
        return _core._scales_of(self._buffers[buffer])

    def forget_users(self) -> None:
        self._users = None

    def buffer_users(self, index: int) -> int:
        """How many tensors and metadata entries name a buffer."""
        if self._users is None:
            self._users = Counter(tensor.buffer for graph in self._subgraphs for tensor in graph.tensors)
            self._users.update(int(entry.get("buffer")) for entry in self.root_nodes("metadata"))
            self._users.update(as_tuple(self.root.get("metadata_buffer")))  # metadata of before there were names
        return self._users[index]

    def set_data(self, tensor: TensorPart, content: bytes | None) -> None:
        index = tensor.buffer
        node = self.buffer_node(index) if index else None
        if node is not None and self.buffer_users(index) <= 1:
            node.set("data", content)
        elif content is None:
            tensor.buffer = 0
        else:
            tensor.buffer = self.add_buffer(content)

    def release_buffer(self, index: int) -> None:
        """Empties a buffer that nothing names any more."""
        node = self.buffer_node(index)
        if index and node is not None and not self.buffer_users(index):
            node.set("data", None)

    def keep_subgraphs(self, graphs: Iterable[SubgraphPart]) -> None:
        """Takes all other subgraphs away; these stand in the order in which they are given."""
        self._subgraphs[:] = graphs
        self._are_subgraphs_stored = False
        self.forget_users()

    # -- tidying

    def prune(self) -> None:
        """Removes tensors, buffers and operator codes that nothing uses, and renumbers the others."""
        for graph in self._subgraphs:
            users = graph.users()
            graph.remove_tensors({tensor for place, tensor in enumerate(graph.tensors) if place not in users})
        self._prune_buffers()
        self.prune_operator_codes()

    def _prune_buffers(self) -> None:
        self.forget_users()
        buffers = self._buffers
        kept = [index for index in range(len(buffers)) if index == 0 or self.buffer_users(index)]
        if len(kept) == len(buffers):
            return
        new = {old: place for place, old in enumerate(kept)}
        for node in [t.node for g in self._subgraphs for t in g.tensors] + self.root_nodes("metadata"):
            renumber_one(node, "buffer", new)
        renumber(self.root, "metadata_buffer", new)
        self._buffers = [buffers[index] for index in kept]
        self._are_buffers_stored = False
        self.forget_users()

    def prune_operator_codes(self) -> None:
        """Removes operator codes that no operator uses, and renumbers the others."""
        codes = self.code_nodes()
        used = {int(op.node.get("opcode_index")) for graph in self._subgraphs for op in graph.operators}
        kept = [index for index in range(len(codes)) if index in used]
        if len(kept) == len(codes):
            return
        new = {old: place for place, old in enumerate(kept)}
        for graph in self._subgraphs:
            for operator in graph.operators:
                renumber_one(operator.node, "opcode_index", new)
        self.root.set("operator_codes", [codes[index] for index in kept])
        self.forget_versions()

    # -- types of inputs and outputs

    def set_io_types(self, inputs: Any = None, outputs: Any = None, subgraph: int = 0) -> None:
        """Changes the types of a subgraph's inputs and outputs: see tq.editing.io_types.set_io_types."""
        io_types.set_io_types(self.subgraphs[subgraph], inputs, outputs)

    # -- writing

    def to_bytes(self, *, share_constants: bool = False, allow_loss: bool = False) -> bytes:
        """The model as it is now.

        share_constants: constants of equal bytes are stored once.
        ModelError: the source has a part that cannot be kept (docs/editing.md); allow_loss leaves it out.
        """
        self._prepare(allow_loss)
        data = self.tree.write(share_constants=share_constants, tail=self._prepare_tail(share_constants))
        self._saved = self.tree.changes
        return data

    def save(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        in_place: bool = False,
        share_constants: bool = False,
        allow_loss: bool = False,
    ) -> None:
        """Writes the model to `path`; without one, over the file that it came from.  Other arguments as for to_bytes.

        in_place: `path` may be the file that the model came from, too.
        The new file takes the old one's place when all of it is on the disk: a save that fails leaves what was there.
        Its mode and owner stay.  OSError: `path` is the file that the model came from, no regular file, or read-only.
        """
        self._prepare(allow_loss)
        if path is None:
            if self._path is None:
                raise ValueError("the model did not come from a file: save() needs a path")
            path, in_place = self._path, os.path.exists(self._path)
        tail = self._prepare_tail(share_constants)
        saving.Target(path, self._model, model=self._path or self._model, in_place=in_place).save(
            lambda descriptor: self.tree.write(descriptor, share_constants=share_constants, tail=tail)
        )
        self._saved = self.tree.changes

    def to_model(self) -> Model:
        """The model as it is now, open."""
        return Model(self.to_bytes())

    def _store(self) -> None:
        """Gives the tree the lists that are kept here while they grow."""
        for graph in self._subgraphs:
            graph.write_lists()
        if not self._are_subgraphs_stored:
            self.root.set("subgraphs", [graph.node for graph in self._subgraphs])
            self._are_subgraphs_stored = True
        if not self._are_buffers_stored:
            self.root.set("buffers", self._buffers)
            self._are_buffers_stored = True
        for field in self._new_rows:
            self.root.set(field, self._rows[field])
        self._new_rows.clear()

    def _prepare(self, allow_loss: bool) -> None:
        self._store()
        if self.tree.lost and not allow_loss:
            raise ModelError(
                f"{self.tree.lost} fields of the source cannot be kept: unions of a type that this schema does not "
                "know, whose bytes are no table; allow_loss=True leaves them out"
            )

    def _prepare_tail(self, share_constants: bool) -> Callable[[int], bytes] | None:
        if self.trailing is None:
            return None
        if self.trailing.bytecode:
            self.trailing.point_operators(self.tree.size(share_constants))
        return self.trailing.moved

    def __repr__(self) -> str:
        return f"<tq editor of {self._path!r}: {len(self._subgraphs)} subgraphs>"


def _open(source: Source) -> Model:
    if sys.platform == "win32" and isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:  # a mapped file could not be replaced there
            return Model(file.read())
    return opened(source)


def edit(source: Source) -> Editor:
    """Opens a model to change it: a path, bytes, or a tq.Model, which itself stays as it is.

        with tq.edit("in.tflite") as e:
            e.tensors["x"].quantization.zero_point = 3
            e.save("out.tflite")

    Only what is changed differs in the result: every other field, known to this schema or not, keeps its bytes, and
    every vector its order.  ModelError: the source is no model.
    """
    return Editor(source)
