# SPDX-License-Identifier: Apache-2.0
"""Operators that run other subgraphs, and variables."""

import flatbuffers.flexbuffers
import numpy as np

from generators import OPTIMIZED, generator

TYPES = ("float32", "int32")


def step(g, kind, x, shape):
    """One or two operators on a tensor; the result's index."""
    for _ in range(g.integer(1, 2)):
        other = g.constant(kind, g.draw(kind, g.broadcast(shape)), **{"scale": None})
        y = g.inner(kind, shape)
        name = g.pick("ADD", "SUB", "MUL", "MAXIMUM")
        g.operator(name, [x, other], [y])
        x = y
    return x


def body(m, kind, shapes):
    """A subgraph with inputs and outputs of these shapes; what it computes, at random."""
    g = m.graph()
    inputs = [g.input(kind, shape) for shape in shapes]
    for x, shape in zip(inputs, shapes, strict=True):
        g.outputs.append(step(g, kind, x, shape))
    return m.subgraph_index(g)


@generator("IF", *TYPES)
def if_(m, kind):
    shapes = [m.shape(0, 3, 50) for _ in range(m.integer(1, 3))]
    then, otherwise = body(m, kind, shapes), body(m, kind, shapes)
    m.runs = 3
    condition = m.input("bool", m.pick([], [1]), draw=None)
    inputs = [m.input_or_constant(kind, shape, chance=0.1) for shape in shapes]
    m.operator(
        "IF",
        [condition, *inputs],
        [m.output(kind, shape) for shape in shapes],
        then_subgraph_index=then,
        else_subgraph_index=otherwise,
    )


@generator("WHILE", *TYPES)
def while_(m, kind):
    """Counts up to a limit, and does something to other tensors each time."""
    shapes = [m.shape(0, 3, 50) for _ in range(m.integer(0, 2))]
    limit = m.integer(0, 6)
    condition = m.graph()
    i = condition.input("int32", [], scale=None)
    for shape in shapes:
        condition.input(kind, shape)
    less = condition.output("bool", [])
    condition.operator("LESS", [i, condition.constant("int32", limit)], [less])
    loop = m.graph()
    i = loop.input("int32", [], scale=None)
    inputs = [loop.input(kind, shape) for shape in shapes]
    following = loop.output("int32", [])
    loop.operator("ADD", [i, loop.constant("int32", 1)], [following])
    for x, shape in zip(inputs, shapes, strict=True):
        loop.outputs.append(step(loop, kind, x, shape))
    condition, loop = m.subgraph_index(condition), m.subgraph_index(loop)
    m.runs = 2
    inputs = [m.input("int32", [], m.integer(-2, 3)), *(m.input(kind, shape) for shape in shapes)]
    outputs = [m.output("int32", []), *(m.output(kind, shape) for shape in shapes)]
    m.operator("WHILE", inputs, outputs, cond_subgraph_index=condition, body_subgraph_index=loop)


def handle(g, name, container=""):
    y = g.inner("resource", [])
    g.operator("VAR_HANDLE", [], [y], container=container, shared_name=name)
    return y


@generator("CALL_ONCE", "float32", "int32", "int8")
def call_once(m, kind):
    """A variable is set once, then read and added to in each invoke."""
    parameters = m.affine("int8") if kind == "int8" else {}
    shape = m.shape(1, 3, 50)
    once = m.graph()
    constant = once.constant(kind, once.draw(kind, shape), **parameters)
    once.operator("ASSIGN_VARIABLE", [handle(once, "v"), constant], [])
    m.operator("CALL_ONCE", [], [], init_subgraph_index=m.subgraph_index(once))
    m.runs = 3
    x = m.input(kind, shape, **parameters)
    variable = handle(m, "v")
    before, after = m.output(kind, shape, **parameters), m.output(kind, shape, **parameters)
    m.operator("READ_VARIABLE", [variable], [before])
    m.operator("ADD", [before, x], [after], version=2 if kind == "int8" else 1)
    m.operator("ASSIGN_VARIABLE", [variable, after], [])


@generator("VAR_HANDLE", "float32", "int32", "int64", "bool")
@generator("ASSIGN_VARIABLE", "float32", "int32", "int64", "bool")
@generator("READ_VARIABLE", "float32", "int32", "int64", "bool")
def variables(m, kind):
    """Two variables, or one by two handles, of the same or other names and containers."""
    shape = m.shape(0, 3, 50)
    m.runs = 2
    one = handle(m, "a", m.pick("", "box"))
    two = handle(m, m.pick("a", "b"), m.pick("", "box"))
    for variable in (one, two):
        m.operator("ASSIGN_VARIABLE", [variable, m.input(kind, shape)], [])
    for variable in (one, two):
        m.operator("READ_VARIABLE", [variable], [m.output(kind, shape)])


@generator("STABLEHLO_COMPOSITE", *TYPES)
def composite(m, kind):
    shapes = [m.shape(0, 3, 50) for _ in range(m.integer(1, 3))]
    options = {
        "name": "test.composite",
        "decomposition_subgraph_index": body(m, kind, shapes),
        "composite_attributes": list(flatbuffers.flexbuffers.Dumps({"level": m.integer(0, 9)})),
    }
    inputs = [m.input(kind, shape) for shape in shapes]
    m.operator("STABLEHLO_COMPOSITE", inputs, [m.output(kind, shape) for shape in shapes], **options)


@generator("STABLEHLO_CASE", *TYPES, resolver=OPTIMIZED)
def case(m, kind):
    shapes = [m.shape(0, 3, 50) for _ in range(m.integer(1, 3))]
    count = m.integer(1, 4)
    branches = [body(m, kind, shapes) for _ in range(count)]
    m.runs = 3
    index = m.input("int32", m.pick([], [1]), draw=lambda: np.int32(m.integer(-1, count)).reshape(m.shape_of(index)))
    inputs = [m.input(kind, shape) for shape in shapes]
    m.operator(
        "STABLEHLO_CASE",
        [index, *inputs],
        [m.output(kind, shape) for shape in shapes],
        branch_subgraph_indices=branches,
    )


# ---- hash tables ----


def words(m, count):
    """Strings, some of them equal."""
    return np.array([b"key%d" % m.integer(0, 9) * m.integer(0, 2) for _ in range(count)], object)


@generator("HASHTABLE", "int64", "string", resolver=OPTIMIZED)
@generator("HASHTABLE_IMPORT", "int64", "string", resolver=OPTIMIZED)
@generator("HASHTABLE_FIND", "int64", "string", resolver=OPTIMIZED)
@generator("HASHTABLE_SIZE", "int64", "string", resolver=OPTIMIZED)
def hashtable(m, kind):
    """A table with keys of a type is filled, counted and looked up."""
    value = "string" if kind == "int64" else "int64"

    def values(type, count):
        return words(m, count) if type == "string" else m.integers("int64", [count], -5, 5)

    count, wanted = m.integer(1, 12), m.shape(1, 2, 20)
    table = m.inner("resource", [1])
    m.operator("HASHTABLE", [], [table], table_id=m.integer(0, 99), key_dtype=kind, value_dtype=value)
    filling = [m.constant(type, values(type, count)) for type in (kind, value)]
    m.operator("HASHTABLE_IMPORT", [table, *filling], [])
    size = int(np.prod(wanted))
    keys = m.input(kind, wanted, draw=lambda: values(kind, size).reshape(wanted), scale=None)
    default = m.constant(value, values(value, m.integer(1, 2)))
    m.operator("HASHTABLE_FIND", [table, keys, default], [m.output(value, wanted, scale=None)])
    m.operator("HASHTABLE_SIZE", [table], [m.output("int64", [1], scale=None)])
    m.runs, m.fixed = 2, True
