# SPDX-License-Identifier: Apache-2.0
"""What stands behind a model in its file and belongs to none of its tables; it is kept, whatever it is.

Two kinds are known, and have offsets that count from the file's first byte, which move along with them:
  associated files   a zip archive, as TFLite's metadata tools append it: offsets in its directory
  bytecode           of accelerators, as LiteRT's compiler plugins append it: DISPATCH_OP operators find it by
                     bytecode_offset in their options (litert/core/dispatch_op_schema.cc)
Anything else keeps its place in the file where the model in front of it leaves that free.
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
    """Bytes behind a model, from `start` in its file."""

    data: bytes
    start: int
    align: int  # what its place is a multiple of, as its first
    archive_offsets: list[int]  # where the offsets stand in data that move along
    bytecode: Mapping[_Node, int]  # operators, and the bytecode_offset that each of them had

    def place(self, size: int) -> int:
        """Where it goes behind `size` bytes."""
        if not self.archive_offsets and not self.bytecode and self.start - _MOST_PADDING <= size <= self.start:
            return self.start
        return size + (self.start - size) % self.align

    def moved(self, size: int) -> bytes:
        """What follows `size` bytes: padding, and the tail as it must be there."""
        place = self.place(size)
        data = bytearray(self.data)
        for at in self.archive_offsets:
            (old,) = struct.unpack_from("<I", data, at)
            struct.pack_into("<I", data, at, (old - self.start + place) & 0xFFFFFFFF)
        return bytes(place - size) + bytes(data)

    def point_operators(self, size: int) -> None:
        """Tells the operators where their bytecode will be.  The size of their options stays."""
        for operator, old in self.bytecode.items():
            options = bytearray(operator.get("custom_options").tobytes())
            place = _core._flexbuffer_number_at(options, _BYTECODE_OFFSET)
            if place is None:
                continue  # options that have been replaced
            at, width = place
            value = old - self.start + self.place(size)
            if value >= 1 << 8 * width:
                raise ValueError(
                    f"operator {_DISPATCH} has {width} bytes for its bytecode_offset, which would be {value}"
                )
            options[at : at + width] = value.to_bytes(width, "little")
            operator.set("custom_options", bytes(options))


# ---- archives ----


def _find_end(tail: bytes) -> int | None:
    """Where the record is that ends an archive which reaches to the end."""
    at = tail.rfind(b"PK\5\6")
    first = len(tail) - _END.size - _LONGEST_COMMENT
    while at >= max(0, first):
        if at + _END.size <= len(tail) and at + _END.size + _END.unpack_from(tail, at)[4] == len(tail):
            return at
        at = tail.rfind(b"PK\5\6", 0, at)
    return None


def _entries(directory: bytes, count: int) -> list[int] | None:
    """Where the directory's entries start; None if they are not what its record says."""
    at, found = 0, []
    for _ in range(count):
        if directory[at : at + 4] != b"PK\1\2" or at + _ENTRY_SIZE > len(directory):
            return None
        found.append(at)
        at += _ENTRY_SIZE + sum(struct.unpack_from("<3H", directory, at + _ENTRY_LENGTHS))
    return found if at == len(directory) else None


def _archive_offsets(tail: bytes, start: int) -> list[int]:
    """Where an archive in the tail has offsets that count from the file's first byte."""
    end = _find_end(tail)
    if end is None:
        return []
    _signature, count, size, offset, _comment = _END.unpack_from(tail, end)
    entries = _entries(tail[end - size : end], count) if size <= end else None
    directory = end - size
    if entries is None or offset != start + directory:
        return []  # no archive, or offsets that count from its own start
    return [directory + at + _ENTRY_OFFSET for at in entries] + [end + _END_OFFSET]


# ---- bytecode ----


def _bytecode(root: _Node, end: int, size: int) -> dict[_Node, int]:
    """The operators whose bytecode stands behind the model, and where."""
    codes = root.get("operator_codes") or []
    dispatch = {index for index, code in enumerate(codes) if code.get("custom_code") == _DISPATCH}
    found = {}
    for graph in (root.get("subgraphs") or []) if dispatch else []:
        for operator in graph.get("operators") or []:
            options = operator.get("custom_options")
            if operator.get("opcode_index") not in dispatch or options is None:
                continue
            place = _core._flexbuffer_number_at(options, _BYTECODE_OFFSET)
            if place is not None:
                offset = int.from_bytes(options[place[0] : place[0] + place[1]].tobytes(), "little")
                if end <= offset < size:
                    found[operator] = offset
    return found


def find_trailing_data(model: Model, tree: _core._Tree) -> TrailingData | None:
    """What stands behind a model, or None where nothing but zeros does."""
    tail = model._file[tree.end :].tobytes()
    if not tail.strip(b"\0"):
        return None
    bytecode = _bytecode(tree.root, tree.end, model.nbytes)
    start = min([tree.end + len(tail) - len(tail.lstrip(b"\0")), *bytecode.values()])
    align = min([_MOST_ALIGNMENT, *(offset & -offset for offset in bytecode.values())]) if bytecode else 1
    data = tail[start - tree.end :]
    return TrailingData(data, start, align, _archive_offsets(data, start), bytecode)
