# SPDX-License-Identifier: Apache-2.0
"""Softmax and its kin."""

import numpy as np

from deviations.table import deviation
from deviations.values import is_known, is_quantized, kind, multiplier, nearest, real, scale


def softmax(values):
    with np.errstate(all="ignore"):
        exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
    return exponentials, exponentials.sum(axis=-1, keepdims=True)


def many_logits(name, count):
    def draw(m):
        s, z = {"SOFTMAX": (1 / 256, -128), "LOG_SOFTMAX": (1 / 16, 127)}[name]
        x = m.input("int8", [2, count], np.zeros([2, count]), scale=0.1, zero_point=0)
        options = {"beta": 1.0} if name == "SOFTMAX" else {}
        m.operator(name, [x], [m.output("int8", scale=s, zero_point=z)], **options, version=2)

    return draw


@deviation(
    "SOFTMAX",
    when="INT8 or UINT8 to 8 bits, exponentials that sum to 512 or more (such as 512 equal logits)",
    litert="ends the process; from 4096 on its sum overflows",
    tq="the quotients",
    example=many_logits("SOFTMAX", 600),
)
def crowded_softmax(node):
    if (
        not is_quantized(node)
        or not is_known(node)
        or kind(node.inputs[0]) == "int16"
        or kind(node.outputs[0]) == "int16"
    ):
        return None
    exponentials, total = softmax(real(node.inputs[0]) * node.options.get("beta", 1.0))
    if (total < 511).all():
        return None
    return [(nearest(node.outputs[0], exponentials / total), 1)]


def far_logits(m):
    x = m.input("int16", [4, 40], m.integers("int16", [4, 40], -30000, 30000), scale=8.5, zero_point=0)
    m.operator("SOFTMAX", [x], [m.output("int16", scale=1 / 32768, zero_point=0)], beta=1.0, version=3)


@deviation(
    "SOFTMAX",
    when="INT16, a difference of logits times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="counts it as far below",
    example=far_logits,
)
def far_softmax_of_words(node):
    if not is_quantized(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    beta = np.float32(node.options.get("beta", 1.0))
    _, e = multiplier(float(scale(node.inputs[0]) * beta) / (10 / 65535))
    x = node.inputs[0].value.astype(np.int64)
    if e <= 0 or x.size == 0 or not ((x.max(axis=-1, keepdims=True) - x) * 2.0**e >= 2**31).any():
        return None
    values = real(node.inputs[0]) * float(beta)
    below = values - values.max(axis=-1, keepdims=True)
    exponentials, total = softmax(np.maximum(below, -10))  # its table's end
    return [(nearest(node.outputs[0], exponentials / total), 4 + x.shape[-1])]


@deviation(
    "LOG_SOFTMAX",
    when="INT8 or UINT8, exponentials that sum to 4096 or more",
    litert="its sum overflows: any values",
    tq="the logarithms",
    example=many_logits("LOG_SOFTMAX", 9000),
)
def crowded_log_softmax(node):
    if not is_quantized(node) or not is_known(node):
        return None
    x = real(node.inputs[0])
    _, total = softmax(x)
    if (total < 4095).all():
        return None
    return [(nearest(node.outputs[0], x - x.max(axis=-1, keepdims=True) - np.log(total)), 1)]


def local_response(m):
    x = m.input("float32", [1, 2, 2, 12])
    m.operator("LOCAL_RESPONSE_NORMALIZATION", [x], [m.output("float32")], radius=2, bias=1.0, alpha=0.5, beta=0.75)


@deviation(
    "LOCAL_RESPONSE_NORMALIZATION",
    when="always, where the radius is not 0",
    litert="sums the squares from -radius to radius - 1",
    tq="to radius, as LiteRT's optimized kernel and TensorFlow do",
    example=local_response,
)
def local_response_normalization(node):
    x, radius = node.inputs[0].value, node.options.get("radius", 0)
    if x is None or x.ndim != 4:
        return None
    with np.errstate(all="ignore"):
        squares = np.pad(x**2, [(0, 0)] * 3 + [(radius, radius)])
        sums = sum(squares[..., k : k + x.shape[-1]] for k in range(2 * radius + 1))
        factor = (node.options["bias"] + node.options["alpha"] * sums) ** -node.options["beta"]
        result = (x * factor).astype(np.float32)
    finite = np.abs(result[np.isfinite(result)])
    return [(result, 2e-6 * float(finite.max(initial=0)))]
