# SPDX-License-Identifier: Apache-2.0
"""Tables that all parts of a model share: operator codes, buffers, signatures and metadata entries.

Parts know these tables, and no part is known here: tq.edit's Editor has the subgraphs, and counts their tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tq import _core, enums
from tq._core import Model, _Node
from tq.editing import fields

CUSTOM = "CUSTOM"
_LAST_OLD_CODE = 127  # deprecated_builtin_code is a byte: PLACEHOLDER_FOR_GREATER_OP_CODES


class Tables(ABC):
    """The tree of a model that is being edited, with its shared tables."""

    def __init__(self, model: Model | None) -> None:
        self.tree = _core._Tree(model)
        self.root = self.tree.root
        self._rows: dict[str, list[_Node]] = {}  # signatures and metadata entries by field
        self._new_rows: set[str] = set()  # fields with entries that the root does not have yet
        self._metadata_rows: dict[str, _Node] | None = None  # by name
        self._buffers = self.root_nodes("buffers")
        self._are_buffers_stored = True
        self._users: Counter[int] | None = None
        self._codes: list[_Node] | None = None
        self._names: list[str | None] | None = None
        self._versions: dict[
            tuple[str | int, int], int
        ] = {}  # operator codes by (name or index of another code, version)

    @abstractmethod
    def subgraph_index(self, graph: object) -> int:
        """The index of a subgraph, given as its part; ValueError once it is removed."""

    @abstractmethod
    def tensor_nodes(self) -> Iterator[_Node]:
        """The tensors of all subgraphs."""

    @abstractmethod
    def operator_nodes(self) -> Iterator[_Node]:
        """The operators of all subgraphs."""

    # -- signatures and metadata

    def root_nodes(self, field: str) -> list[_Node]:
        """The tables of a field of the model, added ones among them."""
        if field in self._rows:
            return self._rows[field]
        nodes: list[_Node] | None = self.root.get(field)
        return nodes or []

    def _add_row(self, field: str, node: _Node) -> None:
        """Adds a signature or metadata entry.  _store gives the root all new ones at once."""
        if field not in self._rows:
            self._rows[field] = self.root_nodes(field)
        self._rows[field].append(node)
        self._new_rows.add(field)

    def set_rows(self, field: str, nodes: list[_Node]) -> None:
        """Replaces all signatures or all metadata entries."""
        self._forget_rows(field)
        self.root.set(field, nodes or None)

    def _forget_rows(self, field: str) -> None:
        self._rows.pop(field, None)
        self._new_rows.discard(field)
        if field == "metadata":
            self._metadata_rows = None

    def metadata_entry(self, name: str) -> _Node | None:
        """The last entry of a name, which Model.metadata shows; None: there is none."""
        if self._metadata_rows is None:
            self._metadata_rows = {item.get("name") or "": item for item in self.root_nodes("metadata")}
        return self._metadata_rows.get(name)

    def add_metadata(self, name: str, node: _Node) -> None:
        """Adds a metadata entry of a name."""
        self._add_row("metadata", node)
        if self._metadata_rows is not None:
            self._metadata_rows[name] = node

    def signature_nodes(self, subgraph: int) -> list[_Node]:
        """The signatures of a subgraph."""
        return [node for node in self.root_nodes("signature_defs") if int(node.get("subgraph_index")) == subgraph]

    # -- operator codes

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
        """The index of an operator code equal to this one, which is added if there is none."""
        codes = self.code_nodes()
        brief = ("builtin_code", "version")  # a cheap comparison that tells most operator codes apart
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
        """The operator codes."""
        if self._codes is None:
            self._codes = self.root_nodes("operator_codes")
        return self._codes

    def code_names(self) -> list[str | None]:
        """The builtin operators' names of the operator codes; None: the schema does not know the number."""
        if self._names is None:
            numbers = [max(c.get("deprecated_builtin_code"), c.get("builtin_code")) for c in self.code_nodes()]
            members = enums.members_by_value("BuiltinOperator")
            self._names = [members[number].name if number in members else None for number in numbers]
        return self._names

    def code_of(self, name: str, version: int) -> int:
        """The index of the operator code of a name and version, which is added if there is none."""
        key = (name, version)
        if key not in self._versions:
            self._versions[key] = self._intern_code(self._make_code(name, version))
        return self._versions[key]

    def code_of_version(self, index: int, version: int) -> int:
        """The index of the operator code `index` with another version, which is added if there is none."""
        key = (index, version)
        if key not in self._versions:
            copy = self.tree.copy(self.code_nodes()[index])
            fields.put(copy, "version", version)
            self._versions[key] = self._intern_code(copy)
        return self._versions[key]

    def forget_versions(self) -> None:
        """Empties the caches of operator codes, after one was changed or removed."""
        self._codes = self._names = None
        self._versions.clear()

    def code_users(self, index: int) -> int:
        """The number of operators with an operator code."""
        return sum(node.get("opcode_index") == index for node in self.operator_nodes())

    # -- buffers

    def buffer_node(self, index: int) -> _Node | None:
        """The table of a buffer; None: the index is out of range."""
        return self._buffers[index] if index < len(self._buffers) else None

    def add_buffer(self, data: bytes | None = None, **others: Any) -> int:
        """A new buffer; returns its index, at least 1.  Index 0 is the empty buffer of tensors without data.

        others: further fields of the schema's Buffer, as store() takes them: offset and size of data behind the
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

    def forget_users(self) -> None:
        """Empties the cache of buffer_users."""
        self._users = None

    def buffer_users(self, index: int) -> int:
        """The number of tensors and metadata entries that name a buffer."""
        if self._users is None:
            self._users = Counter(int(node.get("buffer")) for node in self.tensor_nodes())
            self._users.update(int(entry.get("buffer")) for entry in self.root_nodes("metadata"))
            self._users.update(self.root.numbers("metadata_buffer"))  # metadata without names, of old schemas
        return self._users[index]

    def set_buffer(self, tensor: _Node, index: int) -> None:
        """Makes a buffer that of a tensor."""
        fields.put(tensor, "buffer", index)
        self.forget_users()

    def set_data(self, tensor: _Node, content: bytes | None) -> None:
        """Sets a tensor's data, in a buffer of its own if others use its buffer; None removes the data."""
        index = int(tensor.get("buffer"))
        node = self.buffer_node(index) if index else None
        if node is not None and self.buffer_users(index) <= 1:
            node.set("data", content)
        elif content is None:
            self.set_buffer(tensor, 0)
        else:
            self.set_buffer(tensor, self.add_buffer(content))

    def release_buffer(self, index: int) -> None:
        """Empties a buffer that nothing names."""
        node = self.buffer_node(index)
        if index and node is not None and not self.buffer_users(index):
            node.set("data", None)

    def _store_tables(self) -> None:
        """Stores changed lists in the tree."""
        if not self._are_buffers_stored:
            self.root.set("buffers", self._buffers)
            self._are_buffers_stored = True
        for field in self._new_rows:
            self.root.set(field, self._rows[field])
        self._new_rows.clear()
