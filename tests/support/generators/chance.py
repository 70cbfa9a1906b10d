# SPDX-License-Identifier: Apache-2.0
"""Random numbers, whose seeds are given."""

import numpy as np

from generators import OPTIMIZED, generator


def seeds(m):
    """Two seeds whose lower 32 bits are not all 0, which would stand for any."""
    first = m.pick(0, 1, -1, m.integer(-(2**63), 2**63 - 1) | 1)
    second = m.integer(-(2**63), 2**63 - 1) | 1 if first == 0 or m.chance(0.5) else 0
    return {"seed": first, "seed2": second}


@generator("RANDOM_UNIFORM", "float32", resolver=OPTIMIZED)
@generator("RANDOM_STANDARD_NORMAL", "float32", resolver=OPTIMIZED)
def random(m, kind):
    """LiteRT writes behind an odd count of normal numbers."""
    shape = [*m.shape(0, 3, 100), 2]
    x = m.input_or_constant("int32", [len(shape)], shape, chance=0.6)
    m.operator(m.name, [x], [m.output(kind)], **seeds(m))
    m.runs, m.fixed = 3, True


@generator("MULTINOMIAL", "int32", "int64", resolver=OPTIMIZED)
def multinomial(m, kind):
    shape = m.shape(2, 2, 100)
    logits = m.input("float32", shape, draw=lambda: m.floats(shape, special=0.2, magnitude=2))
    count = m.input_or_constant("int32", [], m.integer(0, 20), chance=0.6)
    m.operator("MULTINOMIAL", [logits, count], [m.output(kind)], **seeds(m))
    m.runs, m.fixed = 3, True


@generator("STABLEHLO_RNG_BIT_GENERATOR", "int32", "int64", "uint32", "uint64", resolver=OPTIMIZED)
def bits(m, kind):
    algorithm = m.pick(*("DEFAULT", "PHILOX", "THREEFRY"))
    count = m.integer(2, 2 if algorithm == "THREEFRY" else 3)
    carry = m.chance(0.2)  # into the counter's second word

    def state():
        found = m.codes("uint64", [count])
        return found | np.uint64([0, 2**32 - 2, 0][:count]) if carry else found

    x = m.input("uint64", [count], draw=state)
    m.operator(
        m.name, [x], [m.output("uint64", [count]), m.output(kind, m.shape(0, 3, 60), scale=None)], algorithm=algorithm
    )
    m.fixed = True
