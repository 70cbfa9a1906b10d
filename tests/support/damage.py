# SPDX-License-Identifier: Apache-2.0
"""Damaged files."""

import random
import struct

EXTREMES = [0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF]


def damaged(data, seed):
    """A copy with one to four words set to an extreme, to a neighbour of what stood there, or to another's."""
    draw = random.Random(seed)
    copy = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4])):
        width, form = draw.choice([(1, "<B"), (2, "<H"), (4, "<I")])
        at = draw.randrange(0, max(1, len(copy) - width + 1), width)
        (old,) = struct.unpack_from(form, copy, at)
        (other,) = struct.unpack_from(form, copy, draw.randrange(0, len(copy) - width + 1, width))
        value = draw.choice([*EXTREMES, old + 1, old - 1, old + 4, old - 4, len(copy) - at, len(copy), other])
        struct.pack_into(form, copy, at, value % (1 << 8 * width))
    return bytes(copy)
