# SPDX-License-Identifier: Apache-2.0
"""Signatures and metadata of a model that is being edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from tq._core import _Node
from tq.editing import fields
from tq.editing.graph import SubgraphPart, TensorLike, TensorPart
from tq.editing.parts import Part, Parts, mapped
from tq.editing.tables import Tables
from tq.nearest import hint


class SignaturePart(Part):
    """A signature: names for a subgraph's inputs and outputs.

    ValueError: an assigned value does not fit the field, or the subgraph has no such tensor.
    """

    def __init__(self, editor: Tables, node: _Node, subgraphs: Parts[SubgraphPart]) -> None:
        super().__init__(editor, node)
        self._subgraphs = subgraphs  # of the model

    @property
    def key(self) -> str:
        """Its name; "" where none is stored."""
        return self.node.get("signature_key") or ""

    @key.setter
    def key(self, value: str) -> None:
        self.put("signature_key", value)

    @property
    def subgraph_index(self) -> int:
        """The index of its subgraph, as stored."""
        return int(self.node.get("subgraph_index"))

    def _tensor_map(self, field: str) -> dict[str, TensorPart | None]:
        index = self.subgraph_index
        graphs = self._subgraphs
        found = {}
        for item in self.nodes(field):
            indices = (int(item.get("tensor_index")),)
            (tensor,) = graphs[index].tensors_at(indices) if index < len(graphs) else (None,)
            found[item.get("name") or ""] = tensor
        return found

    def _set_map(self, field: str, value: Mapping[str, TensorLike]) -> None:
        given = mapped(value, f"signature {self.key!r}, {field}")
        graph = self._subgraphs[self.subgraph_index]
        self.put(field, [{"name": name, "tensor_index": graph.find(item).index} for name, item in given.items()])

    @property
    def inputs(self) -> dict[str, TensorPart | None]:
        """{name: tensor}; None: an index out of range.  Assign a dict of tensors, their names or their indices.

        ValueError: the subgraph has no assigned tensor.  IndexError: the model does not have the subgraph.
        """
        return self._tensor_map("inputs")

    @inputs.setter
    def inputs(self, value: Mapping[str, TensorLike]) -> None:
        self._set_map("inputs", value)

    @property
    def outputs(self) -> dict[str, TensorPart | None]:
        """{name: tensor}, as `inputs`.  ValueError, IndexError: as for `inputs`."""
        return self._tensor_map("outputs")

    @outputs.setter
    def outputs(self, value: Mapping[str, TensorLike]) -> None:
        self._set_map("outputs", value)

    def __repr__(self) -> str:
        return f"<tq signature {self.key!r}: {list(self.inputs)} -> {list(self.outputs)}>"


class Metadata(MutableMapping[str, bytes]):
    """The model's metadata, {name: bytes}; of equal names the last counts.

    KeyError: a read or deleted name does not exist.  ValueError: an assigned value is neither bytes nor str.
    """

    def __init__(self, editor: Tables) -> None:
        self.editor = editor

    def _entries(self) -> list[_Node]:
        return self.editor.root_nodes("metadata")

    def __getitem__(self, name: str) -> bytes:
        entry = self.editor.metadata_entry(name)
        if entry is None:
            raise KeyError(f"no metadata are named {name!r}{hint(name, self)}")
        buffer = self.editor.buffer_node(int(entry.get("buffer")))
        data = buffer.get("data") if buffer else None
        return b"" if data is None else bytes(data)

    def __setitem__(self, name: str, value: bytes) -> None:
        content = fields.text(value, f"metadata {name!r}")
        entry = self.editor.metadata_entry(name)
        buffer = None if entry is None else self.editor.buffer_node(int(entry.get("buffer")))
        if entry is not None and buffer is not None and self.editor.buffer_users(int(entry.get("buffer"))) == 1:
            buffer.set("data", content)
            return
        index = self.editor.add_buffer(content)
        if entry is None:
            entry = self.editor.tree.make("Metadata")
            fields.put(entry, "name", name)
            self.editor.add_metadata(name, entry)
        fields.put(entry, "buffer", index)
        self.editor.forget_users()

    def __delitem__(self, name: str) -> None:
        gone = [item for item in self._entries() if (item.get("name") or "") == name]
        if not gone:
            raise KeyError(f"no metadata are named {name!r}{hint(name, self)}")
        self.editor.set_rows("metadata", [item for item in self._entries() if item not in gone])
        self.editor.forget_users()
        for item in gone:
            self.editor.release_buffer(int(item.get("buffer")))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(item.get("name") or "" for item in self._entries()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"<tq metadata {list(self)}>"
