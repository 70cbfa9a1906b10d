# SPDX-License-Identifier: Apache-2.0
"""Helpers of the rows' oracles: operands as real values, and TFLite's fixed-point arithmetic."""

import math

import numpy as np

f32 = np.float32
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
QUANTIZED = ("int8", "uint8", "int16")
INT32 = RANGES["int32"]


def kind(operand):
    """The type's name: INT4 is held in int8."""
    return operand.type


def limits(operand):
    return RANGES.get(kind(operand), INT32)


def is_quantized(node, inputs=None):
    """Whether the first inputs and output 0 are quantized, with one scale each."""
    operands = [*node.inputs[:inputs], node.outputs[0]]
    return all(o is not None and kind(o) in RANGES and len(o.scale) == 1 for o in operands)


def is_same(node):
    """Whether the padding is SAME; else it is VALID."""
    return getattr(node.options["padding"], "name", "SAME") == "SAME"


def window_counts(node):
    """How many windows there are down and across an image; below 1: none."""
    sizes = []
    for n, axis, name in zip(node.inputs[0].shape[1:3], "hw", ("height", "width"), strict=True):
        reach, stride = node.options[f"filter_{name}"], node.options[f"stride_{axis}"]
        sizes.append(-(-n // stride) if is_same(node) else (n + stride - reach) // stride)
    return sizes


def is_known(node):
    return all(o is None or o.value is not None for o in node.inputs)


def known(*operands):
    return all(o is not None and o.value is not None for o in operands)


def option(node, name):
    return getattr(node.options[name], "name", node.options[name])


def scale(operand):
    return np.float32(operand.scale[0])


def centered(operand):
    """Quantized values less their zero point, which weights have where they are UINT8 or have one scale."""
    zero = int(operand.zero_point[0]) if len(operand.scale) == 1 else 0
    return operand.value.astype(np.int64) - zero


def real(operand):
    return centered(operand) * float(operand.scale[0])


def away(x):
    return np.trunc(x + np.copysign(0.5, x))


def nearest(operand, values):
    """The nearest quantized values of real values; NaN as the zero point."""
    with np.errstate(all="ignore"):
        q = away(values / float(operand.scale[0])) + int(operand.zero_point[0])
    q = np.where(np.isnan(q), int(operand.zero_point[0]), q)
    return np.clip(q, *limits(operand)).astype(operand.value.dtype if operand.value is not None else kind(operand))


def activation(node):
    """The bounds that a fused activation puts on real values."""
    name = getattr(node.options.get("fused_activation_function"), "name", "NONE")
    return {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}.get(name, (-np.inf, np.inf))


def activated(node, values):
    """Floats after the fused activation."""
    if option(node, "fused_activation_function") == "TANH":
        return np.tanh(values)
    low, high = activation(node)
    return np.clip(values, f32(low), f32(high))


def bounded(node, values):
    return nearest(node.outputs[0], np.clip(values, *activation(node)))


def multiplier(value):
    """quantize_multiplier of a float: (m, e); of infinity it makes 0."""
    if value == 0 or math.isinf(value):
        return 0, 0
    fraction, exponent = math.frexp(float(value))
    fixed = math.floor(abs(fraction) * 2**31 + 0.5) * (1 if fraction > 0 else -1)
    if fixed == 2**31:
        fixed, exponent = fixed // 2, exponent + 1
    return (0, 0) if exponent < -31 else (fixed, exponent)


def multiply(x, m, e):
    """MultiplyByQuantizedMultiplier of an int64 array; its shift to the left saturates."""
    left = np.clip(x * 2 ** max(min(e, 31), 0), *INT32)
    high = np.clip((left * m + 2**30) >> 31, *INT32)
    if e >= 0:
        return high
    n = min(-e, 62)
    return (high + (1 << (n - 1)) - (high < 0)) >> n
