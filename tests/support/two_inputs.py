# SPDX-License-Identifier: Apache-2.0
"""A float model of two inputs and two outputs, and samples for it."""

import numpy as np

import tq


def network():
    """y = relu(x W), z = x + u: two inputs, one with an open dimension."""
    rng = np.random.default_rng(0)
    b = tq.ModelBuilder()
    x = b.input("x", [1, 8], shape_signature=[-1, 8])
    u = b.input("u", [1, 8], shape_signature=[-1, 8])
    y, z = b.tensor("y", [1, 5]), b.tensor("z", [1, 8])
    b.operator(
        "FULLY_CONNECTED",
        [x, b.constant("w", rng.standard_normal((5, 8)).astype(np.float32)), None],
        [y],
        fused_activation_function="RELU",
    )
    b.operator("ADD", [x, u], [z])
    b.output(y, z)
    b.signature(inputs={"first": x, "second": u}, outputs={"y": y, "z": z})
    return b.to_bytes()


def samples(count=5, rows=1, seed=1):
    rng = np.random.default_rng(seed)
    return [[rng.standard_normal((rows, 8)).astype(np.float32) for _ in range(2)] for _ in range(count)]
