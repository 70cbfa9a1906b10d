# SPDX-License-Identifier: Apache-2.0
"""Associated files: a zip archive that stands behind a model in its file, as TFLite's metadata tools append it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tq._core import Model

# From the zip format's specification (APPNOTE.TXT 4.3): the record that ends an archive, with the fields number of
# entries, size of the directory, its offset and the length of a comment; and a directory entry's fixed part.
_END = struct.Struct("<4s6xHIIH")
_ENTRY_SIZE, _ENTRY_LENGTHS, _ENTRY_OFFSET = 46, 28, 42
_LONGEST_COMMENT = 0xFFFF


class Archive(NamedTuple):
    """An archive's bytes, and where the offsets stand in it that count from the file's first byte."""

    data: bytes
    start: int  # in the file that it was found in
    offsets: list[int]

    def moved(self, start: int) -> bytes:
        """The archive as it must be when it starts there."""
        data = bytearray(self.data)
        for at in self.offsets:
            (old,) = struct.unpack_from("<I", data, at)
            struct.pack_into("<I", data, at, old - self.start + start)
        return bytes(data)


def _find_end(file: memoryview) -> int | None:
    """Where the record is that ends an archive which reaches to the file's end."""
    first = max(0, len(file) - _END.size - _LONGEST_COMMENT)
    tail = bytes(file[first:])
    at = tail.rfind(b"PK\5\6")
    while at >= 0:
        if at + _END.size <= len(tail) and at + _END.size + _END.unpack_from(tail, at)[4] == len(tail):
            return first + at
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


def find_archive(model: Model) -> Archive | None:
    """The archive behind a model, or None where its file ends with none."""
    file = model._file.data
    end = _find_end(file)
    if end is None:
        return None
    _signature, count, size, offset, _comment = _END.unpack_from(file, end)
    entries = _entries(bytes(file[max(0, end - size) : end]), count) if size <= end else None
    if entries is None:
        return None
    base = end - size - offset  # what the archive's offsets count from
    directory = end - size
    headers = [struct.unpack_from("<I", file, directory + at + _ENTRY_OFFSET)[0] + base for at in entries]
    start = min(headers, default=directory)
    in_constants = any(buffer.offset is not None and buffer.offset + buffer.nbytes > start for buffer in model.buffers)
    if not 8 <= start <= directory or in_constants or any(bytes(file[at : at + 4]) != b"PK\3\4" for at in headers):
        return None
    offsets = [] if base else [directory + at + _ENTRY_OFFSET - start for at in entries] + [end + 16 - start]
    return Archive(bytes(file[start:]), start, offsets)
