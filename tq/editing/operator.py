# SPDX-License-Identifier: Apache-2.0
"""The fields of an operator, with its options; tq/editing/graph.py adds its place in the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from tq import enums
from tq._core import _Node
from tq.editing import fields
from tq.editing.parts import OnlyPart
from tq.editing.tables import CUSTOM
from tq.nearest import builtin_hint, hint


class Options(MutableMapping[str, Any]):
    """An operator's builtin options by the schema's names; options that are not stored have their defaults.

    Values are int, float, bool, str, enum members, and lists of them.  Enums are assigned as members, names or numbers.
    KeyError: a read or deleted option does not exist; the message names similar ones.
    ValueError: an assigned option does not exist, or does not hold the value.
    """

    def __init__(self, operator: OperatorFields) -> None:
        self._operator = operator

    def node(self) -> _Node | None:
        """The stored table; None: not stored."""
        for field in ("builtin_options", "builtin_options_2"):
            node: _Node | None = self._operator.node.get(field)
            if node is not None:
                return node
        return None

    @property
    def type(self) -> str | None:
        """The options table's name, also where it is not stored; None: the operator has no builtin options."""
        return self._table(self.node())

    def _table(self, node: _Node | None) -> str | None:
        if node is not None:
            return node.type
        name = self._operator.builtin_name
        return None if name is None else fields.options_table(name)

    def _made(self) -> _Node:
        node = self.node()
        if node is None:
            name = self._table(node)
            if name is None:
                raise ValueError(f"{self._operator._where()} has no builtin options")
            node = self._operator.node.tree.make(name)
            union = "builtin_options" if name in fields.members("BuiltinOptions") else "builtin_options_2"
            self._operator.node.set(union, node)
        return node

    def __getitem__(self, name: str) -> Any:
        node = self.node()
        table = self._table(node)
        if table is None or name not in fields.rows(table):
            raise KeyError(f"{name!r} is no option{hint(name, self)}")
        return fields.plain(node or self._operator.node.tree.make(table), name)

    def __setitem__(self, name: str, value: Any) -> None:
        fields.put(self._made(), name, value)

    def __delitem__(self, name: str) -> None:
        """Restores the default."""
        if name not in self:
            raise KeyError(f"{name!r} is no option{hint(name, self)}")
        self[name] = None

    def __contains__(self, name: object) -> bool:
        table = self.type
        return table is not None and name in fields.rows(table)

    def __iter__(self) -> Iterator[str]:
        return iter(fields.rows(self.type) if self.type else ())

    def __len__(self) -> int:
        return len(fields.rows(self.type)) if self.type else 0

    def __repr__(self) -> str:
        return repr(dict(self))


def check_name(name: str) -> None:
    """ValueError: no builtin operator has the name, and it is similar to one's."""
    builtin = enums.by_name("BuiltinOperator").__members__
    if name not in builtin and (like := builtin_hint(name, builtin)):
        raise ValueError(
            f'the schema has no operator {name!r}{like}  For a custom operator give custom_options, or b""'
        )


class OperatorFields(OnlyPart):
    """An operator's own fields.  ValueError: an assigned value does not fit the field; the message names it."""

    def _code(self) -> _Node | None:
        codes = self.editor.code_nodes()
        index = int(self.node.get("opcode_index"))
        return codes[index] if index < len(codes) else None

    @property
    def builtin_name(self) -> str | None:
        """The schema's name of its operator code; "CUSTOM" of a custom operator; None: the schema does not know it."""
        names, index = self.editor.code_names(), self.node.get("opcode_index")
        return names[index] if index < len(names) else None

    @property
    def name(self) -> str:
        """ "CONV_2D", or a custom operator's own name."""
        name = self.builtin_name
        code = self._code() if name == CUSTOM else None
        if code is not None and code.get("custom_code"):
            return str(code.get("custom_code"))
        return name or "(unknown operator)"

    @property
    def version(self) -> int:
        """The version of its operator code.  An assignment changes this operator alone: others with the same code keep
        theirs.

        ValueError: an assigned value is no int32, or the operator's code does not exist.
        """
        code = self._code()
        return 1 if code is None else int(code.get("version"))

    @version.setter
    def version(self, value: int) -> None:
        code = self._code()
        if code is None:
            raise ValueError(f"{self._where()}: its operator code does not exist, and so has no version")
        index = int(self.node.get("opcode_index"))
        if self.editor.code_users(index) == 1:
            fields.put(code, "version", value)
            self.editor.forget_versions()
        else:
            self.put("opcode_index", self.editor.code_of_version(index, value))

    def share_version(self, value: int) -> None:
        """Sets the version, with one operator code for all operators of a name and version.  Editor.prune removes
        unused operator codes.  Nothing happens where its operator code does not exist.

        ValueError: the value is no int32.
        """
        if self._code() is not None and value != self.version:
            self.put("opcode_index", self.editor.code_of_version(int(self.node.get("opcode_index")), value))

    @property
    def input_indices(self) -> tuple[int, ...]:
        """Tensor indices as stored; -1: left out."""
        return self.node.numbers("inputs")

    @property
    def output_indices(self) -> tuple[int, ...]:
        """Tensor indices as stored."""
        return self.node.numbers("outputs")

    @property
    def options(self) -> Options:
        """The builtin options, which can be changed one by one.  Assign a dict to set all: others get their defaults;
        None stores no table of options.

        ValueError: the schema does not know the operator, or it has no assigned option.
        """
        return Options(self)

    @options.setter
    def options(self, value: Mapping[str, Any] | None) -> None:
        name = self.builtin_name
        if name is None:
            raise ValueError(f"{self._where()}: an operator that the schema does not know has no known options")
        self.write_options(name, value)

    def write_options(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Sets all options as those of operator `name`.  ValueError: it has no such option, or is custom."""
        table = fields.options_table(name) if name in enums.by_name("BuiltinOperator").__members__ else None
        if table is None and value:
            raise ValueError(f"operator {name} has no builtin options, and so no {next(iter(value))!r}")
        made = None
        if table is not None and value is not None:
            tree = self.node.tree
            made = fields.table(tree, table, value, f"operator {name}") if value else tree.make(table)
        union = "builtin_options" if table in fields.members("BuiltinOptions") else "builtin_options_2"
        for field in ("builtin_options", "builtin_options_2"):
            self.node.set(field, made if field == union else None)

    @property
    def custom_options(self) -> bytes | None:
        """A custom operator's options as stored; None: not stored.  Assign bytes.

        ValueError: an assigned value holds no uint8 values.
        """
        value = self.node.get("custom_options")
        return None if value is None else bytes(value)

    @custom_options.setter
    def custom_options(self, value: bytes | None) -> None:
        self.put("custom_options", value)

    def _where(self) -> str:
        """Its name in messages."""
        return f"operator {self.name}"

    def __repr__(self) -> str:
        return f"<tq operator {self.name}: {list(self.input_indices)} -> {list(self.output_indices)}>"
