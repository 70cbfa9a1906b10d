# SPDX-License-Identifier: Apache-2.0
"""The operators of LiteRT's smart replies: n-grams and locality sensitive hashes."""

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from generators import OPTIMIZED, generator


@generator("SKIP_GRAM", "string", resolver=OPTIMIZED)
def skip_gram(m, kind):
    """Some texts begin or end with white space, or have more than one between words."""

    def text():
        words = [m.pick("a", "bc", "word", "\u00e9t\u00e9", "x" * m.integer(1, 9)) for _ in range(m.integer(1, 7))]
        spaces = [m.pick(" ", " ", " ", "  ", "\t", "\n \n") for _ in words]
        joined = "".join(part for pair in zip(words, spaces, strict=True) for part in pair)
        joined = joined if m.chance(0.3) else joined.rstrip()
        return np.array([(" " if m.chance(0.2) else "") + joined], object)

    x = m.input(kind, [1], draw=text)
    size, skip = m.integer(0, 4), m.integer(-1, 3)
    options = schema.SkipGramOptionsT(ngramSize=size, maxSkipSize=skip, includeAllNgrams=m.chance(0.5))
    m.operator("SKIP_GRAM", [x], [m.output(kind)], options)
    m.runs, m.fixed = 3, True


@generator("LSH_PROJECTION", "float32", "int32", "int8", "int64", resolver=OPTIMIZED)
def lsh_projection(m, kind):
    """Items of every size that the fingerprint treats in a way of its own."""
    hashes, bits = m.integer(1, 5), m.integer(1, m.pick(8, 31))
    shape = [m.integer(1, 6), *m.shape(0, 1, 9), m.integer(1, 30)]
    inputs = [m.input_or_constant("float32", [hashes, bits]), m.input(kind, shape, scale=None)]
    if m.chance(0.5):
        inputs.append(m.input_or_constant("float32", shape[:1], m.floats(shape[:1], special=0)))
    type = m.pick(schema.LSHProjectionType.DENSE, schema.LSHProjectionType.SPARSE)
    m.operator("LSH_PROJECTION", inputs, [m.output("int32")], schema.LSHProjectionOptionsT(type=type))
