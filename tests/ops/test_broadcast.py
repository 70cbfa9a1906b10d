# SPDX-License-Identifier: Apache-2.0
"""Operators that broadcast give what they give for inputs that are repeated beforehand, at every length of a row."""

import numpy as np
import pytest

import tq

SHAPES = [  # rows that are short, beside many; rows of 1, 2 and 4 bytes on both sides of the limit for copies
    ((3, 40, 41, 1), (3, 40, 1, 7)),
    ((8, 33, 29, 1), (1, 33, 29, 5)),
    ((1, 200, 1, 17), (1, 1, 60, 17)),
    ((2, 70, 1, 64), (2, 1, 9, 64)),
    ((500, 1), (500, 3)),
    ((100, 1), (1, 47)),
    ((2, 3, 4, 1, 2, 5), (2, 1, 4, 300, 1, 5)),
    ((30, 191), (30, 1)),
    ((30, 192), (30, 1)),
    ((5, 1, 1000), (5, 3, 1)),
]
QUANTIZED = {"scale": 0.05, "zero_point": 3}
ROWS = [
    ("ADD", "int8", QUANTIZED),
    ("SUB", "uint8", QUANTIZED),
    ("MUL", "int8", QUANTIZED),
    ("ADD", "int16", {"scale": 0.05, "zero_point": 0}),
    ("ADD", "float32", {}),
    ("MAXIMUM", "int64", {}),
    ("GREATER", "float32", {}),
    ("SELECT_V2", "float32", {}),
]


def run(operator, kind, parameters, values, numerics):
    build = tq.ModelBuilder()
    inputs = [
        build.input(f"in{i}", x.shape, str(x.dtype), **({} if x.dtype == bool else parameters))
        for i, x in enumerate(values)
    ]
    shape = np.broadcast_shapes(*(x.shape for x in values))
    out = build.tensor("out", shape, "bool" if operator == "GREATER" else kind, **parameters)
    build.operator(operator, inputs, [out])
    build.output(out)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics=numerics)
    interpreter.allocate_tensors()
    for index, value in enumerate(values):
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return interpreter.get_tensor(len(values))


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize(("operator", "kind", "parameters"), ROWS)
def test_repeated_inputs_give_the_same(operator, kind, parameters, numerics):
    rng = np.random.default_rng(0)
    for shapes in SHAPES:
        whole = np.broadcast_shapes(*shapes)
        for a, b in (shapes, shapes[::-1]):
            values = [rng.integers(0, 100, s).astype(kind) for s in (a, b)]
            if operator == "SELECT_V2":
                values = [rng.random(b) < 0.5, *values]
            repeated = [np.ascontiguousarray(np.broadcast_to(x, whole)) for x in values]
            got, want = (run(operator, kind, parameters, x, numerics) for x in (values, repeated))
            np.testing.assert_array_equal(got, want, err_msg=str((a, b)))
