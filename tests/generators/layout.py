# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements about."""

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from generators import generator

MOVED = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")


def same(m, index):
    """The parameters of a tensor, for an output that must have the same."""
    return m.parameters[index] or {"scale": None}


def factors(m, count, most=5):
    """Dimensions whose product is `count`."""
    dims = []
    while count > 1 and len(dims) < most - 1:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        dims.append(m.pick(*divisors))
        count //= dims[-1]
    return [dims[i] for i in m.rng.permutation(len(dims))] + [count]


@generator("RESHAPE", *MOVED, "string")
def reshape(m, kind):
    x = m.input(kind, m.shape(0, 5))
    shape = factors(m, int(np.prod(m.shape_of(x))))
    y = m.output(kind, shape, **same(m, x))
    wanted = list(shape)
    if m.chance(0.4):
        wanted[m.integer(0, len(shape) - 1)] = -1
    if m.chance(0.3):
        m.operator("RESHAPE", [x], [y], schema.ReshapeOptionsT(newShape=wanted))
    else:
        second = m.input_or_constant("int32", [len(wanted)], wanted, chance=0.7)
        m.operator("RESHAPE", [x, second], [y], schema.ReshapeOptionsT(newShape=wanted) if m.chance(0.5) else None)
