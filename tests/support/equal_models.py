# SPDX-License-Identifier: Apache-2.0
"""Whether two files hold the same model: by tq's reader, and by the upstream schema's."""

import struct

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from tq import _core
from tq.editing import fields


def same_value(a, b):
    if isinstance(a, _core._Node):
        return same_node(a, b)
    if isinstance(a, list):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return struct.pack("<d", a) == struct.pack("<d", b) if isinstance(a, float) else a == b


def same_node(a, b):
    assert a.type == b.type
    assert a.unknown_slots() == b.unknown_slots(), a.type
    if a.type is None:
        return True
    for field in fields.rows(a.type):
        if (a.type, field) in [("Buffer", "offset"), ("Operator", "large_custom_options_offset")]:
            continue  # where outside bytes stand; the bytes themselves are what `data` gives
        assert a.has(field) == b.has(field), f"{a.type}.{field}"
        assert same_value(a.get(field), b.get(field)), f"{a.type}.{field}"
    return True


def assert_equal_models(before, after):
    """Every field, whether it is stored, every buffer's bytes and alignment, and what the reader makes of them."""
    assert same_node(_core._Tree(before).root, _core._Tree(after).root)
    assert before.has_identifier == after.has_identifier
    assert [(p.code, p.place) for p in before.problems] == [(p.code, p.place) for p in after.problems]
    for old, new in zip(before.buffers, after.buffers, strict=True):
        assert old.nbytes == new.nbytes and old.is_inline == new.is_inline
        if new.nbytes:
            assert new.offset % 16 == 0
            assert np.array_equal(old.data, new.data)
    for index in range(len(before.subgraphs)):
        old, new = before.get_tensor_details(index), after.get_tensor_details(index)
        assert repr(old) == repr(new)
        for x, y in zip(before.subgraphs[index].operators, after.subgraphs[index].operators, strict=True):
            assert (x.name, x.version, x.input_indices, x.output_indices) == (
                (y.name, y.version, y.input_indices, y.output_indices)
            )
            assert repr(x.options) == repr(y.options) and x.custom_options == y.custom_options


def flattened(value, path=""):
    """{path: value} of an object of the upstream schema, whose own reader made it."""
    if isinstance(value, list):
        return {key: item for i, part in enumerate(value) for key, item in flattened(part, f"{path}[{i}]").items()}
    if isinstance(value, np.ndarray):
        return {path: value.tobytes()}
    if hasattr(value, "__dict__"):
        found = {path: type(value).__name__}
        for name, part in vars(value).items():
            found |= flattened(part, f"{path}.{name}")
        return found
    return {path: repr(value)}


def upstream(data):
    return flattened(schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(data), 0)))
