# SPDX-License-Identifier: Apache-2.0
"""Changing models: tq.edit() opens one; unchanged parts are written as they were.

    with tq.edit("in.tflite") as e:
        e.tensors["conv/weights"].quantization.scale = scales
        e.operators[3].options["fused_activation_function"] = "RELU"
        e.save("out.tflite")

Parts are objects that stay valid while others are added and removed: a tensor has its current index, and its users are
renumbered when the index changes.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core, saving
from tq._core import Model, ModelError, _Node
from tq.editing import fields, io_types
from tq.editing.graph import OperatorPart, SubgraphPart, TensorLike, TensorPart
from tq.editing.names import Metadata, SignaturePart
from tq.editing.parts import Part, Parts, empty_if_parts, renumber, renumber_one
from tq.editing.tables import Tables
from tq.editing.trailing_data import find_trailing_data
from tq.sources import Source, opened

_HALF_MAX = 65504.0


class Editor(Tables):
    """A model that can be changed; see tq.edit."""

    _graph_type = SubgraphPart

    def __init__(self, source: Source | None = None) -> None:
        model = None if source is None else _open(source)
        self._path = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else None
        self._model = model
        super().__init__(model)
        self.trailing = None if model is None else find_trailing_data(model, self.tree)
        self._subgraphs = [self._graph_type(self, node) for node in self.root_nodes("subgraphs")]
        self._are_subgraphs_stored = True
        self._positions: dict[int, int] = {}  # indices of subgraphs by id() when one was last looked up
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
        """The model's description; "" where none is stored.  ValueError: an assigned value is no str."""
        return self.root.get("description") or ""

    @description.setter
    def description(self, value: str | None) -> None:
        fields.put(self.root, "description", value)

    @property
    def version(self) -> int:
        """The schema's version.  ValueError: an assigned value is no uint32."""
        return int(self.root.get("version"))

    @version.setter
    def version(self, value: int) -> None:
        fields.put(self.root, "version", value)

    @property
    def metadata(self) -> Metadata:
        """{name: bytes}, which can be changed."""
        return Metadata(self)

    @property
    def subgraphs(self) -> Parts[SubgraphPart]:
        """The subgraphs, by index or name.  KeyError, IndexError: there is no such subgraph."""
        return Parts("subgraph", self._subgraphs, lambda graph: graph.name)

    def subgraph_index(self, graph: object) -> int:
        """The index of a subgraph; ValueError once it is removed."""
        graphs, position = self._subgraphs, self._positions.get(id(graph), -1)
        if not 0 <= position < len(graphs) or graphs[position] is not graph:
            self._positions = {id(item): position for position, item in enumerate(graphs)}
            position = self._positions.get(id(graph), -1)
        if position < 0:
            raise ValueError("the subgraph was removed from its model")
        return position

    def tensor_nodes(self) -> Iterator[_Node]:
        """The tables of all subgraphs' tensors."""
        return (tensor.node for graph in self._subgraphs for tensor in graph.tensors)

    def operator_nodes(self) -> Iterator[_Node]:
        """The tables of all subgraphs' operators."""
        return (operator.node for graph in self._subgraphs for operator in graph.operators)

    @property
    def main(self) -> SubgraphPart:
        """The first subgraph.  IndexError: the model has none."""
        return self.subgraphs[0]

    @property
    def tensors(self) -> Parts[TensorPart]:
        """SubgraphPart.tensors of the first subgraph."""
        return self.main.tensors

    @property
    def operators(self) -> Parts[OperatorPart]:
        """SubgraphPart.operators of the first subgraph."""
        return self.main.operators

    @property
    def inputs(self) -> tuple[TensorPart | None, ...]:
        """SubgraphPart.inputs of the first subgraph."""
        return self.main.inputs

    @inputs.setter
    def inputs(self, value: Iterable[TensorLike]) -> None:
        self.main.inputs = value

    @property
    def outputs(self) -> tuple[TensorPart | None, ...]:
        """SubgraphPart.outputs of the first subgraph."""
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
        Part.store does.  "subgraphs" and "buffers", which have methods of their own, take None alone: it removes all.

        ValueError: as Part.store, or another value for "subgraphs" or "buffers".
        """
        lists: dict[str, list[Any]] = {"subgraphs": self._subgraphs, "buffers": self._buffers}
        empty_if_parts(self.root, field, value, lists, self._store)
        fields.put(self.root, field, value)
        self._forget_rows(field)
        self.forget_users()
        self.forget_versions()

    # -- signatures

    @property
    def signatures(self) -> Parts[SignaturePart]:
        """The signatures, by index or key.  KeyError, IndexError: there is no such signature."""
        found = [SignaturePart(self, node, self.subgraphs) for node in self.root_nodes("signature_defs")]
        return Parts("signature", found, lambda signature: signature.key)

    def add_signature(
        self, key: str, inputs: Mapping[str, TensorLike], outputs: Mapping[str, TensorLike], subgraph: int = 0
    ) -> SignaturePart:
        """A new signature: names for inputs and outputs of a subgraph.  IndexError, ValueError: no such subgraph or
        tensor."""
        self.subgraphs[subgraph]
        signature = SignaturePart(self, self.tree.make("SignatureDef"), self.subgraphs)
        signature.put("subgraph_index", subgraph)
        signature.inputs = inputs
        signature.outputs = outputs
        signature.key = key
        self._add_row("signature_defs", signature.node)
        return signature

    def remove_signature(self, key: str) -> None:
        """Removes a signature.  KeyError: there is none of that key."""
        gone = self.signatures[key].node
        self.set_rows("signature_defs", [node for node in self.root_nodes("signature_defs") if node != gone])

    def signatures_of(self, graph: SubgraphPart) -> list[SignaturePart]:
        """The signatures of a subgraph.  ValueError: the subgraph was removed."""
        index = graph.index
        return [signature for signature in self.signatures if signature.subgraph_index == index]

    def add_subgraph(self, name: str | None = None) -> SubgraphPart:
        """A new, empty, last subgraph."""
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

    # -- buffers

    @property
    def buffers(self) -> Parts[Part]:
        """The model's buffers, whose fields stored() and store() read and set; a tensor's `data` is the usual way."""
        return Parts("buffer", [Part(self, node) for node in self._buffers], lambda buffer: None)

    def add_quantized_buffer(
        self, tensor: TensorPart, axis: int | None, dtype: str, block_size: int | None
    ) -> tuple[int, tuple[int, ...]]:
        """(the index of a new buffer with a float constant's quantized values, the shape of their scales).

        The values are those of tq.quantize_weights, packed.  They are computed from the current constant when the model
        is written; a non-finite constant is a ValueError then.  TensorPart.become_quantized assigns the buffer.
        axis, dtype, block_size: as for tq.quantize_weights.  ModelError: the tensor has no data."""
        index, source, label = self.add_buffer(), self.buffer_node(tensor.buffer), repr(tensor)
        if source is not None:
            made = _core._quantize_from(self._buffers[index], source, tensor.shape, axis, dtype, block_size, label)
            if made is not None:
                return index, made
        data = tensor.data
        if data is None:
            raise ModelError(f"{tensor!r} has no data")
        # a copy: a view of the tree that the tree holds would keep both alive for ever
        return index, _core._quantize_into(self._buffers[index], data.copy(), axis, dtype, block_size, label)

    def add_float16_buffer(self, tensor: TensorPart) -> int:
        """The index of a new buffer with a float constant as float16, computed when the model is written.

        Values beyond float16's range become its greatest or least value; the constant has no NaN.  ModelError: the
        tensor has no data."""
        index, source = self.add_buffer(), self.buffer_node(tensor.buffer)
        if source is None or not _core._halves_from(self._buffers[index], source, tensor.shape):
            data = tensor.data
            if data is None:
                raise ModelError(f"{tensor!r} has no data")
            halves = np.clip(data, -_HALF_MAX, _HALF_MAX).astype("<f2")
            self._buffers[index].set("data", halves.tobytes())
        return index

    def close(self) -> None:
        """Breaks the references between the parts, so that they and the source are freed without the cycle
        collector."""
        for graph in self._subgraphs:
            graph.close()
        self._subgraphs.clear()

    def scales_of_buffer(self, buffer: int) -> NDArray[np.float32]:
        """The scales, flat, of a buffer that add_quantized_buffer added; computed at the call."""
        return _core._scales_of(self._buffers[buffer])

    def keep_subgraphs(self, graphs: Iterable[SubgraphPart]) -> None:
        """Removes all other subgraphs; these get the given order."""
        self._subgraphs[:] = graphs
        self._are_subgraphs_stored = False
        self.forget_users()

    # -- tidying

    def prune(self) -> None:
        """Removes tensors, buffers and operator codes that nothing uses, and renumbers the others."""
        for graph in self._subgraphs:
            users = graph.users()
            graph.remove_tensors({tensor for index, tensor in enumerate(graph.tensors) if index not in users})
        self._prune_buffers()
        self.prune_operator_codes()

    def _prune_buffers(self) -> None:
        self.forget_users()
        buffers = self._buffers
        used = [index for index in range(len(buffers)) if index == 0 or self.buffer_users(index)]
        if len(used) == len(buffers):
            return
        new = {old: index for index, old in enumerate(used)}
        for node in [*self.tensor_nodes(), *self.root_nodes("metadata")]:
            renumber_one(node, "buffer", new)
        renumber(self.root, "metadata_buffer", new)
        self._buffers = [buffers[index] for index in used]
        self._are_buffers_stored = False
        self.forget_users()

    def prune_operator_codes(self) -> None:
        """Removes operator codes that no operator uses, and renumbers the others."""
        codes = self.code_nodes()
        named = {int(node.get("opcode_index")) for node in self.operator_nodes()}
        used = [index for index in range(len(codes)) if index in named]
        if len(used) == len(codes):
            return
        new = {old: index for index, old in enumerate(used)}
        for node in self.operator_nodes():
            renumber_one(node, "opcode_index", new)
        self.root.set("operator_codes", [codes[index] for index in used])
        self.forget_versions()

    # -- types of inputs and outputs

    def set_io_types(self, inputs: Any = None, outputs: Any = None, subgraph: int = 0) -> None:
        """Changes the types of a subgraph's inputs and outputs: see tq.editing.io_types.set_io_types.

        IndexError: there is no such subgraph.  ValueError: as there.
        """
        io_types.set_io_types(self.subgraphs[subgraph], inputs, outputs)

    # -- writing

    def to_bytes(self, *, share_constants: bool = False, allow_loss: bool = False) -> bytes:
        """The bytes of the model.

        share_constants: store constants of equal bytes once.
        allow_loss: leave out parts of the source that cannot be written (docs/editing.md).
        ModelError: there are such parts and allow_loss is False.
        """
        self._prepare(allow_loss)
        data = self.tree.write(share_constants=share_constants, trailing=self._trailing_bytes(share_constants))
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
        """Writes the model to `path`; None: over its source file.  Other arguments as for to_bytes.

        in_place: `path` may be the source file.
        The new file replaces the old one after all bytes are on the disk, with its mode and owner: a failed save leaves
        the old file.  OSError: `path` is the source file, no regular file, or read-only.  ValueError: path is None, and
        the model did not come from a file.
        """
        self._prepare(allow_loss)
        if path is None:
            if self._path is None:
                raise ValueError("the model did not come from a file: save() needs a path")
            path, in_place = self._path, os.path.exists(self._path)
        trailing = self._trailing_bytes(share_constants)
        saving.Target(path, self._model, model=self._path or self._model, in_place=in_place).save(
            lambda descriptor: self.tree.write(descriptor, share_constants=share_constants, trailing=trailing)
        )
        self._saved = self.tree.changes

    def to_model(self) -> Model:
        """The model, written and opened.  ModelError: as for to_bytes."""
        return Model(self.to_bytes())

    def _store(self) -> None:
        """Stores the lists of parts in the tree."""
        for graph in self._subgraphs:
            graph.write_lists()
        if not self._are_subgraphs_stored:
            self.root.set("subgraphs", [graph.node for graph in self._subgraphs])
            self._are_subgraphs_stored = True
        self._store_tables()

    def _prepare(self, allow_loss: bool) -> None:
        self._store()
        if self.tree.lost and not allow_loss:
            raise ModelError(
                f"{self.tree.lost} fields of the source cannot be written: unions of a type that this schema does not "
                "know, whose bytes are no table; allow_loss=True leaves them out"
            )

    def _trailing_bytes(self, share_constants: bool) -> Callable[[int], bytes] | None:
        """The function from the model's size to the bytes behind it."""
        if self.trailing is None:
            return None
        if self.trailing.bytecode:
            self.trailing.point_operators(self.tree.size(share_constants))
        return self.trailing.moved

    def __repr__(self) -> str:
        return f"<tq editor of {self._path!r}: {len(self._subgraphs)} subgraphs>"


def _open(source: Source) -> Model:
    if sys.platform == "win32" and isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:  # Windows does not replace a mapped file
            return Model(file.read())
    return opened(source)


def edit(source: Source) -> Editor:
    """Opens a model to change it: a path, bytes, or a tq.Model, which does not change.

        with tq.edit("in.tflite") as e:
            e.tensors["x"].quantization.zero_point = 3
            e.save("out.tflite")

    Only changed fields differ in the result: every other field, known to this schema or not, keeps its bytes, and every
    vector its order.  ModelError, OSError: as tq.Model.
    """
    return Editor(source)
