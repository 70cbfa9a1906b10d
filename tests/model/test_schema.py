# SPDX-License-Identifier: Apache-2.0
"""Every row of schema/*.def against the schema module that LiteRT ships, both ways.

flatc generates that module: `XAddY(builder, y)` calls `builder.Prepend<Kind>Slot(slot, y, default)`, the accessor
`X.Y` shows what an offset leads to, and classes of nothing but integers are enums and unions.  The names of the
enums of fields are not in it; Netron's schema has them, where it is installed.
"""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import ai_edge_litert.schema_py_generated as upstream
import pytest

from tq import _core

SCALARS = {
    "Bool": "BOOL",
    "Int8": "I8",
    "Uint8": "U8",
    "Int16": "I16",
    "Uint16": "U16",
    "Int32": "I32",
    "Uint32": "U32",
    "Int64": "I64",
    "Uint64": "U64",
    "Float32": "F32",
    "Float64": "F64",
}


def pascal(name):
    """flatc's Python name of a field: fused_activation_function -> FusedActivationFunction."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


@cache
def source():
    return ast.parse(Path(upstream.__file__).read_text())


@cache
def classes():
    return {node.name: node for node in source().body if isinstance(node, ast.ClassDef)}


@cache
def functions():
    return {node.name: node for node in source().body if isinstance(node, ast.FunctionDef)}


def methods(node):
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def calls(node):
    """(method, call) of every call of a method within the node."""
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
            yield item.func.attr, item


@cache
def tables():
    return [name for name, node in classes().items() if "GetRootAs" in methods(node)]


def constants(node):
    """{name: value} of a class that holds nothing but integers, else None."""
    if not all(isinstance(item, ast.Assign) for item in node.body):
        return None
    return {item.targets[0].id: ast.literal_eval(item.value) for item in node.body}


def offset_kind(table, field):
    """What an offset field leads to, by what its accessor does with it."""
    text = ast.unparse(methods(classes()[table])[field])
    made = re.search(r"obj = (\w+)\(\)", text)
    vector = "self._tab.Vector(o)" in text
    if "self._tab.Union(" in text:
        return "UNION"
    if "self._tab.String(" in text:
        return "VEC_STRING" if vector else "STRING"
    if made:
        return f"{'VEC_' if vector else ''}TABLE({made[1]})"
    return "VEC_" + SCALARS[re.search(r"number_types\.(\w+)Flags, a \+", text)[1]]


@cache
def upstream_fields(table):
    """{flatc's field name: (slot, kind, default)}; the type byte of a union belongs to the union."""
    found = {}
    for name, function in functions().items():
        field = name.removeprefix(table + "Add")
        if field == name or field not in methods(classes()[table]):
            continue
        ((method, call),) = [pair for pair in calls(function) if pair[0].endswith("Slot")]
        slot, default = call.args[0].value, ast.literal_eval(call.args[2])
        kind = method.removeprefix("Prepend").removesuffix("Slot")
        if kind == "UOffsetTRelative":
            found[field] = slot, offset_kind(table, field), "NONE"
        else:
            found[field] = slot, SCALARS[kind], default
    for field, (_slot, kind, _default) in list(found.items()):
        if kind == "UNION":
            del found[field + "Type"]
    return found


def slot_count(table):
    ((_, call),) = [pair for pair in calls(functions()[table + "Start"]) if pair[0] == "StartObject"]
    return call.args[0].value


ENUM_BASES = {
    match[1]: match[2]
    for name in ("enums.def", "builtins.def")
    for match in re.finditer(
        r"^ENUM\((\w+), (\w+)\)", (Path(__file__).parents[2] / "schema" / name).read_text(), re.MULTILINE
    )
}


def base_kind(kind):
    """The kind as bytes: an enum is its base, a union any union."""
    kind = re.sub(r"ENUM\((\w+)\)", lambda match: ENUM_BASES[match[1]], kind)
    return re.sub(r"^UNION\(\w+\)", "UNION", kind)


def literal(text):
    return text if text == "NONE" else ast.literal_eval(text)


def test_every_table_and_no_other():
    assert set(_core.schema_tables()) == set(tables())
    assert len(tables()) > 160


@pytest.mark.parametrize("table", _core.schema_tables())
def test_every_field_of_a_table(table):
    rows = _core.schema_tables()[table]
    ours = {pascal(name): (slot, base_kind(kind), literal(default)) for name, slot, kind, default in rows}
    assert ours == upstream_fields(table)
    assert len(ours) == len(rows), "two rows of one name"
    assert [row[1] for row in rows] == sorted(row[1] for row in rows), "rows stand by rising slot"


# Fields that the schema once had: their slots stay empty.
DEPRECATED = {"ResizeBilinearOptions": {0, 1}, "SignatureDef": {3}}


@pytest.mark.parametrize("table", _core.schema_tables())
def test_no_slot_is_left_out(table):
    slots = set(DEPRECATED.get(table, ()))
    for _name, slot, kind, _default in _core.schema_tables()[table]:
        slots |= {slot - 1, slot} if kind.startswith("UNION") else {slot}
    assert slots == set(range(slot_count(table)))


def test_every_enumerator():
    ours = {name: dict(rows) for name, rows in _core.schema_enums().items()}
    theirs = {name: constants(node) for name, node in classes().items() if constants(node) is not None}
    unions = {name for name in theirs if name + "Creator" in functions()}
    assert ours == {name: values for name, values in theirs.items() if name not in unions}
    assert all(len(values) == len(_core.schema_enums()[name]) for name, values in ours.items()), "two rows of one name"


def test_every_union_member():
    ours = {name: {"NONE": 0, **dict(rows)} for name, rows in _core.schema_unions().items()}
    theirs = {name.removesuffix("Creator") for name in functions() if name.endswith("Creator")}
    assert ours == {name: constants(classes()[name]) for name in theirs}


def test_every_union_field_names_its_union():
    """The object API makes a union's object with the Creator of that union."""
    for table, rows in _core.schema_tables().items():
        text = ast.unparse(classes()[table + "T"])
        for name, _slot, kind, _default in rows:
            if kind.startswith("UNION"):
                assert f"{kind[6:-1]}Creator(self.{pascal(name)[0].lower()}{pascal(name)[1:]}Type" in text


def test_a_scalar_of_an_enum_defaults_to_an_enumerator():
    enums = {name: dict(rows).values() for name, rows in _core.schema_enums().items()}
    for table, rows in _core.schema_tables().items():
        for name, _slot, kind, default in rows:
            if kind.startswith("ENUM"):
                assert literal(default) in enums[kind[5:-1]], (table, name)


# Operators that share an options table, or whose table is not called after them.  Source: the operators' builders in
# LiteRT's converter/core/c/builtin_op_data and flatbuffer_conversions.cc.
OPTIONS_BY_OTHER_NAMES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "MULTINOMIAL": "RandomOptions",
}


def squash(name):
    return name.replace("_", "").lower()


def test_builtins_name_their_options():
    """An operator's options table carries its name; those that do not are listed above, and a table that carries an
    operator's name belongs to it."""
    options = {name: table for name, _code, table in _core.schema_builtins()}
    members = [table for rows in _core.schema_unions().values() for table, _type in rows if table.endswith("Options")]
    by_name = {squash(table.removesuffix("Options")): table for table in members}
    for name, table in options.items():
        assert table == OPTIONS_BY_OTHER_NAMES.get(name, by_name.get(squash(name))), name
    assert {name: dict(_core.schema_enums()["BuiltinOperator"])[name] for name in options} == {
        name: code for name, code, _table in _core.schema_builtins()
    }


def netron_schema():
    found = importlib.util.find_spec("netron")
    path = found and Path(found.origin).with_name("tflite-schema.js")
    if not path or not path.exists():
        pytest.skip("netron is not installed; no other upstream source names the enums of fields")
    return path.read_text()


def test_enum_fields_name_their_enum():
    text = netron_schema()
    theirs = {}
    for table in _core.schema_tables():
        body = re.search(rf"^tflite\.{table} = class .*?^}};", text, re.MULTILINE | re.DOTALL)
        for name, enum in re.findall(r"\$\.(\w+) = tflite\.(\w+)\[json\.\1\]", body[0] if body else ""):
            theirs[table, name] = f"ENUM({enum})"
    ours = {
        (table, name): kind
        for table, rows in _core.schema_tables().items()
        for name, _slot, kind, _default in rows
        if kind.startswith("ENUM")
    }
    assert len(theirs) > 40
    assert {key: ours.get(key) for key in theirs} == theirs
    assert {table for table, _name in set(ours) - set(theirs)} <= {
        table for table in _core.schema_tables() if f"tflite.{table} = class" not in text
    }


def test_types_of_quantized_values_have_the_ranges_of_their_bits():
    for name, least, most in _core.integer_types():
        bits = int(re.sub(r"\D", "", name))
        unsigned = name.startswith("u")
        assert (least, most) == ((0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)), name
