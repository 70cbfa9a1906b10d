# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts, which LiteRT's delegate alone runs."""

import flatbuffers.flexbuffers as flexbuffers
import numpy as np

from generators import DELEGATE, generator


def expert_weights(m, kind, rows, columns):
    """The inputs of one product: weights, and their scales where they are integers."""
    if kind == "float32":
        return [m.constant(kind, m.floats([rows, columns], special=0))]
    values = m.integers("int8", [rows, columns], *((-7, 7) if kind == "hybrid-int4" else (-127, 127)))
    groups = m.integer(1, 4) if kind == "hybrid-int4" else 1
    scales = np.float32(10 ** m.rng.uniform(-2, -1, rows * groups))
    if kind == "hybrid-int4" and m.chance(0.5):  # two in a byte
        nibbles = np.append(values.ravel(), np.int8([0] * (values.size % 2))) & 15
        values = (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8).view(np.int8)
    elif kind == "hybrid-int4":
        return [m.constant("int4", values, scale=1.0, zero_point=0), m.constant("float32", scales)]
    return [m.constant("int8", values), m.constant("float32", scales)]


@generator("moe", "float32", "hybrid", "hybrid-int4", resolver=DELEGATE)
def moe(m, kind):
    experts, model, hidden = m.integer(1, 5), m.dimension(40), m.dimension(40)
    active = m.integer(1, experts)
    lead = m.shape(1, 2, 100)
    tokens = int(np.prod(lead))
    x = m.input("float32", [*lead, model], draw=lambda: m.floats([*lead, model], special=0))
    routes = [tokens, active]
    weights = m.input("float32", routes, draw=lambda: m.floats(routes, special=0))
    indices = m.input("int32", routes, draw=lambda: m.integers("int32", routes, -experts, experts - 1))
    matrices = [(hidden * experts, model), (hidden * experts, model), (model * experts, hidden)]
    inputs = [part for rows, columns in matrices for part in expert_weights(m, kind, rows, columns)]
    scales = m.constant("float32", m.floats([experts], special=0))
    options = {
        "num_experts": experts,
        "num_active_experts": active,
        "model_dim": model,
        "hidden_dim": hidden,
        "weight_type": {"float32": "fp32", "hybrid": "int8", "hybrid-int4": "int4"}[kind],
    }
    options |= {"activation": m.pick("gelu", "gelu_tanh")} if m.chance(0.7) else {}
    out = m.output("float32", [*lead, model])
    m.operator(m.name, [x, weights, indices, *inputs, scales], [out], custom_options=flexbuffers.Dumps(options))
    m.fixed = True
