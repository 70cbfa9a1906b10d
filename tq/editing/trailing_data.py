# SPDX-License-Identifier: Apache-2.0
"""Trailing data: bytes behind a model in its file that belong to none of its tables.  Editing preserves them.

Two kinds contain offsets from the file's first byte, which change with the size of the model:
  associated files   a zip archive, as TFLite's metadata tools append it: offsets in its directory
  bytecode           of accelerators, as LiteRT's compiler plugins append it: DISPATCH_OP operators have its offset in
                     their options, bytecode_offset (litert/core/dispatch_op_schema.cc)
Other data stay at their offset in the file where the new model ends before it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from tq import _core
from tq._core import Model, _Node

# From the zip format's specification (APPNOTE.TXT 4.3): the record that ends an archive, with the fields number of
# entries, size of the directory, its offset and the length of a comment; and a directory entry's fixed part.
_END = struct.Struct("<4s6xHIIH")
_END_OFFSET = 16
_ENTRY_SIZE, _ENTRY_LENGTHS, _ENTRY_OFFSET = 46, 28, 42
_LONGEST_COMMENT = 0xFFFF

_DISPATCH, _BYTECODE_OFFSET = "DISPATCH_OP", "bytecode_offset"
_MOST_ALIGNMENT = 4096
_MOST_PADDING = 1 << 16


class TrailingData(NamedTuple):
    """Bytes behind a model, from offset `start` of its file."""

    data: bytes
    start: int
    align: int  # its new offset is `start` modulo this power of two
    archive_offsets: list[int]  # positions in `data` of the archive's offsets
    bytecode: Mapping[_Node, int]  # {operator: its former bytecode_offset}

    def new_start(self, size: int) -> int:
        """Its offset behind a model of `size` bytes."""
        if not self.archive_offsets and not self.bytecode and self.start - _MOST_PADDING <= size <= self.start:
            return self.start
        return size + (self.start - size) % self.align

    def moved(self, size: int) -> bytes:
        """The bytes behind a model of `size` bytes: padding, and the data with their offsets adapted."""
        start = self.new_start(size)
        data = bytearray(self.data)
        for at in self.archive_offsets:
            (old,) = struct.unpack_from("<I", data, at)
            struct.pack_into("<I", data, at, (old - self.start + start) & 0xFFFFFFFF)
        return bytes(start - size) + bytes(data)

    def point_operators(self, size: int) -> None:
        """Sets each operator's bytecode_offset for a model of `size` bytes.  The size of the options does not change.

        ValueError: the offset does not fit the bytes that an operator has for it.
        """
        for operator, old in self.bytecode.items():
            options = bytearray(operator.get("custom_options").tobytes())
            found = _core._flexbuffer_number_at(options, _BYTECODE_OFFSET)
            if found is None:
                continue  # options that have been replaced
            at, width = found
            value = old - self.start + self.new_start(size)
            if value >= 1 << 8 * width:
                raise ValueError(
                    f"operator {_DISPATCH} has {width} bytes for its bytecode_offset, which would be {value}"
                )
            options[at : at + width] = value.to_bytes(width, "little")
            operator.set("custom_options", bytes(options))


# ---- archives ----


def _find_end(data: bytes) -> int | None:
    """The position of the record that ends an archive, if the archive ends with the data."""
    at = data.rfind(b"PK\5\6")
    first = len(data) - _END.size - _LONGEST_COMMENT
    while at >= max(0, first):
        if at + _END.size <= len(data) and at + _END.size + _END.unpack_from(data, at)[4] == len(data):
            return at
        at = data.rfind(b"PK\5\6", 0, at)
    return None


def _entries(directory: bytes, count: int) -> list[int] | None:
    """The positions of the directory's entries; None: they do not agree with its record."""
    at, found = 0, []
    for _ in range(count):
        if directory[at : at + 4] != b"PK\1\2" or at + _ENTRY_SIZE > len(directory):
            return None
        found.append(at)
        at += _ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, at + _ENTRY_LENGTHS))
    return found if at == len(directory) else None


def _archive_offsets(data: bytes, start: int) -> list[int]:
    """The positions in trailing data of an archive's offsets from the file's first byte; [] without an archive."""
    end = _find_end(data)
    if end is None:
        return []
    _signature, count, size, offset, _comment = _END.unpack_from(data, end)
    entries = _entries(data[end - size : end], count) if size <= end else None
    directory = end - size
    if entries is None or offset != start + directory:
        return []  # no archive, or offsets that count from its own start
    return [directory + at + _ENTRY_OFFSET for at in entries] + [end + _END_OFFSET]


# ---- bytecode ----


def _bytecode(root: _Node, end: int, size: int) -> dict[_Node, int]:
    """{operator: bytecode_offset} of operators with bytecode behind the model, at offsets from `end` below `size`."""
    codes = root.get("operator_codes") or []
    dispatch = {index for index, code in enumerate(codes) if code.get("custom_code") == _DISPATCH}
    found = {}
    for graph in (root.get("subgraphs") or []) if dispatch else []:
        for operator in graph.get("operators") or []:
            options = operator.get("custom_options")
            if operator.get("opcode_index") not in dispatch or options is None:
                continue
            position = _core._flexbuffer_number_at(options, _BYTECODE_OFFSET)
            if position is not None:
                at, width = position
                offset = int.from_bytes(options[at : at + width].tobytes(), "little")
                if end <= offset < size:
                    found[operator] = offset
    return found


def find_trailing_data(model: Model, tree: _core._Tree) -> TrailingData | None:
    """The trailing data of a model; None: there are only zeros."""
    behind = model._file[tree.end :].tobytes()
    if not behind.strip(b"\0"):
        return None
    bytecode = _bytecode(tree.root, tree.end, model.nbytes)
    start = min([tree.end + len(behind) - len(behind.lstrip(b"\0")), *bytecode.values()])
    align = min([_MOST_ALIGNMENT, *(offset & -offset for offset in bytecode.values())]) if bytecode else 1
    data = behind[start - tree.end :]
    return TrailingData(data, start, align, _archive_offsets(data, start), bytecode)
