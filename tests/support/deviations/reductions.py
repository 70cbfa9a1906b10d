# SPDX-License-Identifier: Apache-2.0
"""Many elements made one."""

import math

import numpy as np

from deviations.table import deviation
from deviations.values import (
    INT32,
    centered,
    is_known,
    is_quantized,
    kind,
    limits,
    multiplier,
    multiply,
    nearest,
    scale,
)


def reduced(node):
    """The quantized values of each output in a row, and the output's shape."""
    x = node.inputs[0].value
    axes = sorted({int(a) % x.ndim for a in np.ravel(node.inputs[1].value)}) if x.ndim else []
    kept = [d for d in range(x.ndim) if d not in axes]
    keep = node.options.get("keep_dims")
    shape = [1 if d in axes else x.shape[d] for d in range(x.ndim) if d in kept or keep]
    rows = centered(node.inputs[0]).transpose(kept + axes)
    return rows.reshape(math.prod(x.shape[d] for d in kept), -1), shape


def values_to_sum(m):
    x = m.input("int8", [4, 9], scale=0.1, zero_point=3)
    y = m.output("int8", [4], scale=0.2, zero_point=-5)
    m.operator("SUM", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "SUM",
    when="INT8 or INT16",
    litert="reads and writes the quantized values as UINT8",
    tq="the sums, as of UINT8",
    example=values_to_sum,
    numerics=("reference",),
)
def sum_of_integers(node):
    if not is_quantized(node, 1) or not is_known(node) or kind(node.inputs[0]) not in ("int8", "int16"):
        return None
    out = node.outputs[0]
    rows, shape = reduced(node)
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(out)))
    q = multiply(rows.sum(axis=1), m, e) + int(out.zero_point[0])
    written = node.inputs[0]  # an output of the other type of 8 bits is written as the input's
    return [np.clip(q, *limits(written)).astype(kind(written)).reshape(shape).view(kind(out))]


def wide_factors(m):
    x = m.input("int16", [3, 6], np.full([3, 6], 30000), scale=1.0, zero_point=0)
    y = m.output("int16", [3], scale=0.01, zero_point=0)
    m.operator("REDUCE_PROD", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "REDUCE_PROD",
    when="quantized values, a product that is 2^31 or more on its way",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=wide_factors,
)
def wide_products(node):
    if not is_quantized(node, 1) or not is_known(node) or node.inputs[0].value.size == 0:
        return None
    out = node.outputs[0]
    rows, shape = reduced(node)
    if rows.shape[1] == 0:
        return None
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(out)) ** (1 / rows.shape[1]))
    factor, bits = (m + 2**15) >> 16 if m < 0x7FFF0000 else 0x7FFF, 15 - max(-31, min(14, e))
    wide, results = e > 14, []
    for row in rows.tolist():
        product = row[0]
        for other in [*row[1:], 1]:
            exact = (max(-(2**47), min(2**47 - 1, product * other)) * factor + (1 << (bits - 1))) >> bits
            product = max(INT32[0], min(INT32[1], exact))
            wide |= product != exact
        results.append(product + int(out.zero_point[0]))
    return [np.clip(results, *limits(out)).astype(kind(out)).reshape(shape)] if wide else None


def one_factor(m):
    x = m.input("int8", [8, 1], scale=0.1, zero_point=3)
    y = m.output("int8", [8], scale=0.2, zero_point=-5)
    m.operator("REDUCE_PROD", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "REDUCE_PROD",
    when="quantized values, products of one factor",
    litert="gives the input's quantized values",
    tq="quantized values of the output's scale",
    numerics=("optimized",),
    example=one_factor,
)
def single_factors(node):
    if not is_quantized(node, 1) or not is_known(node) or node.inputs[0].value.size == 0:
        return None
    rows, shape = reduced(node)
    if rows.shape[1] != 1:
        return None
    values = rows[:, 0] * float(scale(node.inputs[0]))
    return [(nearest(node.outputs[0], values).reshape(shape), 1)]


def lanes_of_nan(m):
    values = np.float32([[np.nan, 1, 5, 3, np.nan, 4, 2, 7], [1, np.nan, 3, 2, 4, np.nan, 9, 0]])
    x = m.input("float32", values.shape, values)
    y = m.output("int32", [2])
    m.operator("ARG_MAX", [x, m.constant("int32", 1)], [y], output_type="INT32")


@deviation(
    "ARG_MAX",
    "ARG_MIN",
    when="FLOAT32 with NaN, along the last dimension, or one with only dimensions of 1 behind it",
    litert="compares four parts of a row, of which one may be all NaN: on x86 any index",
    tq="the index of the greatest or least value; 0 if there is none",
    example=lanes_of_nan,
)
def arg_of_nan(node):
    x = node.inputs[0]
    if kind(x) != "float32" or not is_known(node) or not np.isnan(x.value).any():
        return None
    axis = int(np.ravel(node.inputs[1].value)[0]) % x.value.ndim
    if math.prod(x.value.shape[axis + 1 :]) != 1:
        return None
    worst = -np.inf if node.name == "ARG_MAX" else np.inf
    known_values = np.where(np.isnan(x.value), worst, x.value)
    best = known_values.max(axis, keepdims=True) if node.name == "ARG_MAX" else known_values.min(axis, keepdims=True)
    indices = np.argmax(x.value == best, axis=axis)  # the first; 0 where all are NaN
    return [indices.astype(kind(node.outputs[0]))]
