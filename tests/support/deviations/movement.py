# SPDX-License-Identifier: Apache-2.0
"""Elements that change their position."""

import math

import numpy as np

from deviations.table import deviation
from deviations.values import away, f32, is_known, is_quantized, kind, known, scale


def odd_slices(m):
    x = m.constant("int4", m.codes("int4", [6, 3]), scale=0.1, zero_point=0)
    where = m.input("int32", [4], [5, 1, 0, 3])
    m.operator("GATHER", [x, where], [m.output("int4", [4, 3], scale=0.1, zero_point=0)], axis=0, version=7)


@deviation(
    "GATHER",
    when="INT4, slices of an odd number of elements",
    litert="copies half as many whole bytes, rounded down: other elements, or none",
    tq="the slices",
    example=odd_slices,
)
def gather_odd(node):
    x, where = node.inputs
    axis, batch = node.options["axis"], node.options["batch_dims"]
    axis, batch = axis % len(x.shape), batch % (len(where.shape) + 1) if batch < 0 else batch
    if kind(x) != "int4" or not is_known(node) or math.prod(x.shape[axis + 1 :]) % 2 == 0:
        return None
    lead, coordinates = x.shape[:batch], where.value.shape[batch:]
    values = x.value.astype(np.int8).reshape(-1, *x.shape[batch:])
    indices = where.value.reshape(values.shape[0], -1)
    taken = [np.take(v, p, axis - batch) for v, p in zip(values, indices, strict=True)]
    return [np.stack(taken).reshape((*lead, *x.shape[batch:axis], *coordinates, *x.shape[axis + 1 :]))]


def far_values(m):
    x = m.input("uint8", [2, 200], scale=10.0, zero_point=5)
    y = m.output("uint8", [2, 200], scale=1e-7, zero_point=3)
    m.operator("CONCATENATION", [x], [y], axis=1, version=2)


@deviation(
    "CONCATENATION",
    when="UINT8, an input's value of 2^31 or more of the output's scale",
    litert="converts out of range; on x86 all give 0",
    tq="saturates",
    example=far_values,
)
def far_join(node):
    out = node.outputs[0]
    if not is_quantized(node) or not is_known(node) or kind(out) != "uint8":
        return None
    parts, far = [], False
    for x in node.inputs:
        factor = np.float32(scale(x) * (np.float32(1) / scale(out)))
        bias = np.float32(-float(x.zero_point[0])) * factor
        with np.errstate(over="ignore"):
            values = x.value.astype(np.float32) * factor + bias
        rescaled = scale(x) != scale(out) or x.zero_point[0] != out.zero_point[0]
        far |= rescaled and bool((abs(values) >= 2**31).any())
        q = np.clip(away(values.astype(np.float64)) + int(out.zero_point[0]), 0, 255)
        parts.append(q.astype(np.uint8) if rescaled else x.value)
    return [np.concatenate(parts, node.options["axis"])] if far else None


def with_nans(m):
    x = m.input("float32", [6], np.float32([1, np.nan, 2, 1, np.nan, 3]))
    outputs = [m.output("float32", [4]), m.output("int32", [6])]
    m.operator("UNIQUE", [x], outputs, idx_out_type="INT32")


@deviation(
    "UNIQUE",
    when="FLOAT32 with NaN",
    litert="orders NaN as equal to every value",
    tq="NaNs of the same bits are equal to each other",
    example=with_nans,
)
def unique_nan(node):
    x = node.inputs[0].value
    if kind(node.inputs[0]) != "float32" or not is_known(node) or not np.isnan(x).any():
        return None
    keys = np.where(x == 0, np.float32(0), x).view(np.uint32)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return [x[first[order]], ranks[inverse].astype(kind(node.outputs[1]))]


def wide_diagonal(m):
    x = m.input("float64", [2, 3], [[1, 2, 3], [4, 5, 6]])
    m.operator("MATRIX_DIAG", [x], [m.output("float64")])


@deviation(
    "MATRIX_DIAG",
    "MATRIX_SET_DIAG",
    when="elements that are not of 4 bytes, and not INT8, UINT8, INT16 or INT64",
    litert="moves 4 bytes an element",
    tq="moves the elements",
    example=wide_diagonal,
)
def other_diagonals(node):
    x = node.inputs[0].value
    if x is None or x.dtype.itemsize == 4 or str(x.dtype) in ("int8", "uint8", "int16", "int64"):
        return None
    if node.name == "MATRIX_DIAG":
        out = np.zeros((*x.shape, x.shape[-1]), x.dtype)
        values = x
    else:
        out, values = x.copy(), node.inputs[1].value
    for k in range(values.shape[-1]):
        out[..., k, k] = values[..., k]
    return [out]


def mixed_bounds(m):
    x = m.input("float32", [6, 5])
    begin, size = m.constant("int32", [1, 2]), m.constant("int64", [3, -1])
    m.operator("SLICE", [x, begin, size], [m.output("float32")])


@deviation(
    "SLICE",
    when="an INT32 begin and an INT64 size, or the other way round",
    litert="reads the size as of the begin's type",
    tq="reads each as its own type",
    example=mixed_bounds,
)
def mixed_slices(node):
    x, begin, size = node.inputs
    if kind(begin) == kind(size) or not is_known(node):
        return None
    ends = [n if s < 0 else b + s for n, b, s in zip(x.shape, begin.value.tolist(), size.value.tolist(), strict=True)]
    return [x.value[tuple(slice(int(b), int(e)) for b, e in zip(begin.value, ends, strict=True))]]


def long_blocks(m):
    x = m.input("int32", [4, 2, 3, 1])
    block, crops = m.constant("int64", [2, 2]), m.constant("int64", [[0, 1], [2, 0]])
    m.operator("BATCH_TO_SPACE_ND", [x, block, crops], [m.output("int32")], version=2)


@deviation(
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    when="an INT64 block, or INT64 crops or paddings",
    litert="reads them as INT32",
    tq="reads them as INT64",
    example=long_blocks,
)
def long_batches(node):
    x, block, ends = node.inputs[0], *node.inputs[1:]
    if "int64" not in (kind(block), kind(ends)) or not is_known(node) or len(x.shape) != 4 or node.name[0] != "B":
        return None
    (bh, bw), ((top, bottom), (left, right)) = block.value.tolist(), ends.value.tolist()
    batch, height, width, depth = x.shape
    out = x.value.reshape(bh, bw, batch // (bh * bw), height, width, depth).transpose(2, 3, 0, 4, 1, 5)
    out = out.reshape(batch // (bh * bw), height * bh, width * bw, depth)
    return [out[:, top : height * bh - bottom, left : width * bw - right]]


def long_permutation(m):
    x = m.input("float32", [2, 3, 4])
    m.operator("TRANSPOSE", [x, m.constant("int64", [2, 0, 1])], [m.output("float32")], version=4)


@deviation(
    "TRANSPOSE",
    when="an INT64 permutation",
    litert="reads it as INT32",
    tq="reads it as INT64",
    example=long_permutation,
)
def long_permutations(node):
    if kind(node.inputs[1]) != "int64" or not is_known(node):
        return None
    return [node.inputs[0].value.transpose(node.inputs[1].value.tolist())]


def looked_up(ids, table):
    """Rows of a quantized table, as floats."""
    scale = table.scale.astype(f32) if len(table.scale) == 1 else table.scale.astype(f32)[ids.value]
    return table.value[ids.value].astype(f32) * scale.reshape(-1, *[1] * (table.value.ndim - 1))


def unsigned(m):
    x = m.input("int32", [3], [0, 2, 1])
    table = m.constant("uint8", np.arange(12).reshape(3, 4) * 20, scale=0.5, zero_point=0)
    m.operator("EMBEDDING_LOOKUP", [x, table], [m.output("float32")], version=4)


@deviation(
    "EMBEDDING_LOOKUP",
    when="a UINT8 table to floats",
    litert="reads it as INT8",
    tq="as UINT8",
    example=unsigned,
)
def unsigned_table(node):
    ids, table = node.inputs
    if not known(ids, table) or kind(table) != "uint8" or kind(node.outputs[0]) != "float32":
        return None
    return [looked_up(ids, table)]


def odd_nibbles(m):
    x = m.input("int32", [3], [0, 2, 1])
    table = m.constant("int4", m.integers("int4", [3, 5], -8, 7), scale=0.5, zero_point=0)
    m.operator("EMBEDDING_LOOKUP", [x, table], [m.output("float32")], version=4)


@deviation(
    "EMBEDDING_LOOKUP",
    when="a table of 4 or 2 bits to floats, rows that do not begin at a byte",
    litert="reads such rows from the byte's first element on",
    tq="from their own",
    example=odd_nibbles,
)
def odd_rows_of_nibbles(node):
    ids, table = node.inputs
    if not known(ids, table) or kind(table) not in ("int4", "int2") or kind(node.outputs[0]) != "float32":
        return None
    width = int(np.prod(table.value.shape[1:]))
    if width % (2 if kind(table) == "int4" else 4) == 0 or not len(table.scale):
        return None
    return [looked_up(ids, table)]


def padded_to_nothing(m):
    x = m.input("float32", [2, 3])
    options = {"edge_padding_low": [0, -3], "edge_padding_high": [1, 0], "interior_padding": [0, 0]}
    m.operator("STABLEHLO_PAD", [x, m.constant("float32", np.float32(7))], [m.output("float32")], **options)


@deviation(
    "STABLEHLO_PAD",
    when="a result that has a dimension of 0, and others",
    litert="gives all dimensions as 0",
    tq="the others as they are",
    example=padded_to_nothing,
)
def nothing_padded(node):
    x, options = node.inputs[0], node.options
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, between = (np.asarray(options[name]) for name in names)
    if x.value is None or not len(x.value.shape) == len(low) == len(high) == len(between):
        return None
    sizes = np.array(x.value.shape)
    shape = np.maximum(sizes + low + high + np.maximum(sizes - 1, 0) * between, 0)
    return [np.zeros(shape, x.value.dtype)] if 0 in shape and shape.any() else None
