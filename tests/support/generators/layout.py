# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements about."""

import numpy as np

from generators import generator
from generators.draft import QUANTIZED

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
    if np.prod(m.shape_of(x)) == 1 and m.chance(0.3):  # to a scalar; some converters give an empty list no buffer
        wanted = m.tensor("int32", [0]) if m.chance(0.5) else m.constant("int32", np.int32([]))
        m.operator("RESHAPE", [x, wanted], [m.output(kind, [], **same(m, x))])
        return
    shape = factors(m, int(np.prod(m.shape_of(x))))
    y = m.output(kind, shape, **same(m, x))
    wanted = list(shape)
    if m.chance(0.4):
        wanted[m.integer(0, len(shape) - 1)] = -1
    if m.chance(0.3):
        m.operator("RESHAPE", [x], [y], new_shape=wanted)
    else:
        second = m.input_or_constant("int32", [len(wanted)], wanted, chance=0.7)
        m.operator("RESHAPE", [x, second], [y], options={"new_shape": wanted} if m.chance(0.5) else None)


@generator("CONCATENATION", *MOVED, "int4", "uint8-rescaled")
def concatenation(m, kind):
    type, *rescaled = kind.split("-")
    shape = m.shape(1, 5, 300)
    axis = m.integer(0, len(shape) - 1)
    parameters = {"scale": None} if type not in QUANTIZED else m.affine(type)
    if type == "int4":
        parameters = m.affine(type)
    inputs = []
    for _ in range(m.integer(1, 6)):
        part = list(shape)
        part[axis] = m.dimension(17)
        own = m.affine(type) if rescaled else parameters
        inputs.append(m.input_or_constant(type, part, chance=0.15, **own))
    if m.chance(0.1):
        inputs.append(inputs[0])
    options = {"axis": m.pick(axis, axis - len(shape))}
    m.operator(
        "CONCATENATION", inputs, [m.output(type, **(m.affine(type) if rescaled else parameters))], **options, version=4
    )


@generator("PAD", *MOVED)
@generator("PADV2", "float32", "int8", "uint8", "int16", "int32", "int64")
@generator("MIRROR_PAD", "float32", "int8", "uint8", "int16", "int32", "int64")
def pad(m, kind):
    shape = m.shape(1, 5 if m.name != "MIRROR_PAD" else 4, 300)
    x = m.input(kind, shape)
    reflect = m.chance(0.5)
    most = [min(n - reflect, 3) if m.name == "MIRROR_PAD" else 3 for n in shape]
    widths = [[m.integer(0, n) if m.chance(0.7) else 0 for _ in range(2)] for n in most]
    padding = m.input_or_constant(m.pick("int32", "int64"), [len(shape), 2], widths, chance=0.8)
    inputs, y = [x, padding], m.output(kind, **same(m, x))
    if m.name == "PADV2":
        inputs.append(m.input_or_constant(kind, m.pick([], [1]), chance=0.8, **same(m, x)))
    options = {"mode": "REFLECT" if reflect else "SYMMETRIC"} if m.name == "MIRROR_PAD" else {}
    m.operator(m.name, inputs, [y], **options, version=3 if kind == "int16" and m.name != "MIRROR_PAD" else 2)


def bits(m, rank, probability):
    return sum(1 << i for i in range(rank) if m.chance(probability))


@generator("STRIDED_SLICE", *MOVED, "uint32", "string")
def strided_slice(m, kind):
    shape = m.shape(1, 4)
    x = m.input(kind, shape)
    rank = m.integer(1, len(shape)) if m.chance(0.2) else len(shape)
    begin, end, strides = [], [], []
    shrink = 0
    for i, size in enumerate(shape[:rank]):
        step = m.pick(1, 1, 1, 2, 3, -1, -2)
        a, b = sorted(m.integer(-1, size + 1) for _ in range(2))
        a, b = max(a, 0), max(b, a + 1) if m.chance(0.9) else b
        if m.chance(0.12):
            shrink |= 1 << i
            a = m.integer(0, size - 1)
            b, step = a + 1, 1
            if m.chance(0.3):
                a, b = a - size, a - size + 1
        elif step < 0:
            a, b = min(b, size) - 1, a - 1
            b = b if b >= 0 else -size - 1
        begin.append(a)
        end.append(b)
        strides.append(step)
    masks = {"begin_mask": bits(m, rank, 0.2) & ~shrink, "end_mask": bits(m, rank, 0.2) & ~shrink}
    masks["shrink_axis_mask"] = shrink
    if m.chance(0.1) and rank < 4 and not shrink:
        masks["new_axis_mask"] = 1 << m.integer(0, rank - 1)
    elif m.chance(0.1) and not shrink:
        masks["ellipsis_mask"] = 1 << m.integer(0, rank - 1)
    chance = m.pick(1, 1, 1, 0)
    parts = [m.input_or_constant("int32", [rank], values, chance=chance) for values in (begin, end, strides)]
    m.operator("STRIDED_SLICE", [x, *parts], [m.output(kind, **same(m, x))], **masks, version=4)


@generator("SLICE", *MOVED, "string", "uint32")
def slice_(m, kind):
    shape = m.shape(1, 5)
    x = m.input(kind, shape)
    begin = [m.integer(0, n - 1) for n in shape]
    size = [
        -1 if m.chance(0.2) else m.integer(0 if m.chance(0.05) else 1, n - b) for n, b in zip(shape, begin, strict=True)
    ]
    type, chance = m.pick("int32", "int64"), m.pick(1, 1, 0)
    parts = [m.input_or_constant(type, [len(shape)], values, chance=chance) for values in (begin, size)]
    m.operator("SLICE", [x, *parts], [m.output(kind, **same(m, x))], version=5)


@generator("TRANSPOSE", *MOVED)
def transpose(m, kind):
    shape = m.shape(1, 6, empty=0.02)
    order = m.rng.permutation(len(shape))
    order = [int(axis) - (len(shape) if m.chance(0.1) else 0) for axis in order]
    x = m.input(kind, shape)
    second = m.input_or_constant("int32", [len(shape)], order, chance=0.8)
    m.operator("TRANSPOSE", [x, second], [m.output(kind, **same(m, x))], version=6)


@generator("SPLIT", "float32", "int8", "uint8", "int16", "int32")
def split(m, kind):
    shape = m.shape(1, 4, 200)
    axis, count = m.integer(0, len(shape) - 1), m.integer(1, 5)
    shape[axis] *= count
    x = m.input(kind, shape)
    where = m.input_or_constant("int32", m.pick([], [1]), m.pick(axis, axis - len(shape)), chance=0.8)
    outputs = [m.output(kind, **same(m, x)) for _ in range(count)]
    m.operator("SPLIT", [where, x], outputs, num_splits=count, version=4)


@generator("SPLIT_V", "float32", "int8", "uint8", "int16", "int32", "int64")
def split_v(m, kind):
    shape = m.shape(1, 4, 200)
    axis = m.integer(0, len(shape) - 1)
    sizes = [m.integer(0 if m.chance(0.05) else 1, 5) for _ in range(m.integer(1, 5))]
    shape[axis] = sum(sizes) or 1
    if not sum(sizes):
        sizes[0] = 1
    x = m.input(kind, shape)
    given = list(sizes)
    if m.chance(0.3):
        given[m.integer(0, len(sizes) - 1)] = -1
    chance = m.pick(1, 1, 1, 0)
    second = m.input_or_constant(m.pick("int32", "int64"), [len(sizes)], given, chance=chance)
    third = m.input_or_constant("int32", m.pick([], [1]), m.pick(axis, axis - len(shape)), chance=chance)
    outputs = [m.output(kind, **same(m, x)) for _ in sizes]
    m.operator("SPLIT_V", [x, second, third], outputs, num_splits=len(sizes), version=2)


@generator("PACK", *(type for type in MOVED if type != "bool"), "uint32")
def pack(m, kind):
    shape = m.shape(0, 4, 200)
    count = m.integer(1, 5)
    parameters = m.affine(kind) if kind in QUANTIZED else {}
    inputs = [m.input_or_constant(kind, shape, chance=0.15, **parameters) for _ in range(count)]
    options = {"values_count": count, "axis": m.integer(-len(shape) - 1, len(shape))}
    m.operator("PACK", inputs, [m.output(kind, **parameters)], **options, version=3)


@generator("UNPACK", "float32", "int8", "uint8", "int16", "int32", "bool")
def unpack(m, kind):
    shape = m.shape(1, 5, 200)
    axis = m.integer(0, len(shape) - 1)
    shape[axis] = count = min(shape[axis], 6)
    x = m.input(kind, shape)
    options = {"num": count, "axis": m.pick(axis, axis - len(shape))}
    m.operator("UNPACK", [x], [m.output(kind, **same(m, x)) for _ in range(count)], **options, version=4)


@generator("SQUEEZE", *MOVED, "string")
def squeeze(m, kind):
    shape = [1 if m.chance(0.4) else n for n in m.shape(1, 6, 300)]
    x = m.input(kind, shape)
    ones = [i - (len(shape) if m.chance(0.3) else 0) for i, n in enumerate(shape) if n == 1]
    options = {"squeeze_dims": m.pick([], m.subset(ones))}
    m.operator("SQUEEZE", [x], [m.output(kind, **same(m, x))], **options)


@generator("EXPAND_DIMS", *MOVED, "string")
def expand_dims(m, kind):
    shape = m.shape(0, 5)
    x = m.input(kind, shape)
    axis = m.integer(-len(shape) - 1, len(shape))
    second = m.input_or_constant(m.pick("int32", "int64"), m.pick([], [1]), axis, chance=0.8)
    m.operator("EXPAND_DIMS", [x, second], [m.output(kind, **same(m, x))])


@generator("TILE", *MOVED, "string")
def tile(m, kind):
    shape = m.shape(1, 4, 100)
    x = m.input(kind, shape)
    times = [m.integer(0 if m.chance(0.03) else 1, 3) for _ in shape]
    second = m.input_or_constant(m.pick("int32", "int64"), [len(shape)], times, chance=0.8)
    m.operator("TILE", [x, second], [m.output(kind, **same(m, x))], version=2)


@generator("BROADCAST_TO", *MOVED)
def broadcast_to(m, kind):
    whole = m.shape(1, 5, 500)
    x = m.input(kind, m.broadcast(whole, 0.9))
    second = m.input_or_constant(m.pick("int32", "int64"), [len(whole)], whole, chance=0.8)
    m.operator("BROADCAST_TO", [x, second], [m.output(kind, **same(m, x))], version=3)


@generator("REVERSE_V2", "float32", "int8", "uint8", "int16", "int32", "int64", "bool")
def reverse(m, kind):
    shape = m.shape(1, 5)
    x = m.input(kind, shape)
    start = m.integer(0, len(shape) - 1)
    axes = list(range(start, m.integer(start, len(shape) - 1) + 1))
    second = m.constant("int32", axes)
    m.operator("REVERSE_V2", [x, second], [m.output(kind, **same(m, x))], version=3)


@generator("REVERSE_SEQUENCE", "float32", "uint8", "int16", "int32", "int64")
def reverse_sequence(m, kind):
    shape = m.shape(2, 4)
    batch, seq = (int(i) for i in m.rng.permutation(len(shape))[:2])
    x = m.input(kind, shape, scale=None)
    type = m.pick("int32", "int64")
    lengths = m.input_or_constant(type, [shape[batch]], m.integers(type, [shape[batch]], 1, shape[seq]), chance=0.3)
    m.operator("REVERSE_SEQUENCE", [x, lengths], [m.output(kind, scale=None)], seq_dim=seq, batch_dim=batch)


@generator("SPACE_TO_DEPTH", "float32", "int8", "uint8", "int32", "int64")
@generator("DEPTH_TO_SPACE", "float32", "int8", "uint8", "int32", "int64")
def depth_and_space(m, kind):
    batch, height, width, depth = m.shape(rank=4, elements=150)
    block = m.integer(1, 4)
    if m.name == "SPACE_TO_DEPTH":
        shape, version = [batch, height * block, width * block, depth], 2
    else:
        shape, version = [batch, height, width, depth * block**2], 1
    x = m.input(kind, shape)
    m.operator(m.name, [x], [m.output(kind, **same(m, x))], block_size=block, version=version)


@generator("SPACE_TO_BATCH_ND", "float32", "int8", "uint8", "int16", "int32", "int64")
@generator("BATCH_TO_SPACE_ND", "float32", "int8", "uint8", "int16", "int32", "int64")
def batch_and_space(m, kind):
    batch, *space, depth = m.shape(rank=m.pick(3, 4, 4), elements=150)
    block = [m.integer(1, 3) for _ in space]
    if m.name == "SPACE_TO_BATCH_ND":
        before = [m.integer(0, 2) for _ in space]
        after = [-(n + p) % b + (b if m.chance(0.2) else 0) for n, p, b in zip(space, before, block, strict=True)]
        shape = [batch, *space, depth]
    else:
        shape = [batch * int(np.prod(block)), *space, depth]
        before = [m.integer(0, min(n * b - 1, 2)) if m.chance(0.5) else 0 for n, b in zip(space, block, strict=True)]
        after = [m.integer(0, min(n * b - p - 1, 2)) for n, b, p in zip(space, block, before, strict=True)]
    x = m.input(kind, shape)
    chance = m.pick(1, 1, 1, 0)
    second = m.input_or_constant("int32", [len(space)], block, chance=chance)
    third = m.input_or_constant("int32", [len(space), 2], np.transpose([before, after]), chance=chance)
    m.operator(m.name, [x, second, third], [m.output(kind, **same(m, x))], version=3)


# ---- by index ----


@generator("GATHER", *MOVED, "string", "int4")
def gather(m, kind):
    shape = m.shape(1, 1 if kind == "string" else 4, 300)
    axis = m.integer(0, len(shape) - 1) if kind != "int4" else 0
    batch = m.integer(1, axis) if axis and m.chance(0.3) else 0
    if kind == "int4":
        x = m.constant(kind, m.codes(kind, shape), **m.affine(kind))
    else:
        x = m.input_or_constant(kind, shape, chance=0.3 if kind != "string" else 0)
    type = m.pick("int32", "int64", "int32", "int64", "int16") if kind != "string" else m.pick("int32", "int64")
    lead = shape[:batch] + m.shape(0 if not batch else 1, 2, 20)
    where = m.input_or_constant(type, lead, m.integers(type, lead, 0, shape[axis] - 1), scale=None)
    options = {"axis": m.pick(axis, axis - len(shape)), "batch_dims": batch}
    m.operator("GATHER", [x, where], [m.output(kind, **same(m, x))], **options, version=7)


@generator("GATHER_ND", "float32", "int8", "uint8", "int16", "int32", "int64", "bool", "string")
def gather_nd(m, kind):
    shape = m.shape(1, 4, 300)
    x = m.input(kind, shape)
    depth = m.integer(1, len(shape))
    lead = m.shape(1, 3, 20)
    type = m.pick("int32", "int64")
    values = np.stack([m.integers(type, lead, 0, n - 1) for n in shape[:depth]], axis=-1)
    where = m.input_or_constant(type, values.shape, values)
    m.operator("GATHER_ND", [x, where], [m.output(kind, **same(m, x))], version=5)


@generator("SCATTER_ND", "float32", "int8", "uint8", "int32", "int64", "bool")
def scatter_nd(m, kind):
    shape = m.shape(1, 4, 300)
    depth = m.integer(1, len(shape))
    lead = m.shape(1, 2, 12)
    values = np.stack([m.integers("int32", lead, 0, n - 1) for n in shape[:depth]], axis=-1)
    where = m.input_or_constant("int32", values.shape, values)
    updates = m.input(kind, [*lead, *shape[depth:]], scale=None)
    wanted = m.input_or_constant("int32", [len(shape)], shape, chance=0.7)
    m.operator("SCATTER_ND", [where, updates, wanted], [m.output(kind, scale=None)])


@generator("ONE_HOT", "float32", "int32", "int64", "int8", "uint8", "bool")
def one_hot(m, kind):
    shape = m.shape(0, 3, 60)
    depth = m.integer(1, 9)
    type = m.pick("int32", "int64")
    where = m.input(type, shape, m.integers(type, shape, -1, depth))
    inputs = [where, m.input_or_constant("int32", [], depth, chance=0.8)]
    inputs += [m.input_or_constant(kind, [], scale=None) for _ in range(2)]
    options = {"axis": m.integer(-1, len(shape))}
    m.operator("ONE_HOT", inputs, [m.output(kind, scale=None)], **options)


@generator("SELECT", *MOVED, "uint32")
@generator("SELECT_V2", *MOVED, "uint32")
def select(m, kind):
    if m.name == "SELECT":
        shape = m.shape(0, 4)
        shapes = [m.pick(shape, shape, shape[:1]), shape, shape]
    else:
        whole = m.shape(0, 4)
        shapes = [m.broadcast(whole, 0.3) for _ in range(3)]
    parameters = m.affine(kind) if kind in QUANTIZED else {"scale": None}
    condition = m.input("bool", shapes[0])
    parts = [m.input_or_constant(kind, shape, chance=0.2, **parameters) for shape in shapes[1:]]
    version = 3 if m.name == "SELECT" else 2
    m.operator(m.name, [condition, *parts], [m.output(kind, **parameters)], version=version)


@generator("WHERE", "bool", "float32", "int8", "uint8", "int32", "uint32", "int64")
def where(m, kind):
    shape = m.shape(1, 4, 200)

    def values():
        drawn = m.draw(kind, shape)
        return np.where(m.rng.random(shape) < 0.5, drawn.dtype.type(0), drawn)

    x = m.input(kind, shape, draw=values, scale=None)
    m.operator("WHERE", [x], [m.output("int64")], version=2)


@generator("TOPK_V2", "float32", "int8", "uint8", "int16", "int32", "int64")
def topk(m, kind):
    shape = m.shape(1, 3)
    x = m.input(kind, shape)
    k = m.input_or_constant("int32", m.pick([], [1]), m.integer(1, shape[-1]), chance=0.7)
    outputs = [m.output(kind, **same(m, x)), m.output("int32")]
    m.operator("TOPK_V2", [x, k], outputs, version=3)


@generator("UNIQUE", "float32", "int8", "uint8", "int16", "int32", "int64")
def unique(m, kind):
    shape = m.shape(rank=1, elements=60)
    values = np.round(m.floats(shape, special=0)) if kind == "float32" else m.integers(kind, shape, 0, 9)
    target = m.pick("int32", "int64")
    x = m.input(kind, shape, values, scale=None)
    m.operator("UNIQUE", [x], [m.output(kind, scale=None), m.output(target)], idx_out_type=target)


# ---- from shapes and numbers ----


@generator("SHAPE", *MOVED, "string")
@generator("RANK", *MOVED, "string")
def shape_of(m, kind):
    x = m.input(kind, m.shape(0, 6, empty=0.02))
    if m.name == "RANK":
        return m.operator("RANK", [x], [m.output("int32")])
    target = m.pick("int32", "int64")
    return m.operator("SHAPE", [x], [m.output(target)], out_type=target)


@generator("FILL", "float32", "int8", "int16", "int32", "int64", "bool", "string", "float16")
def fill(m, kind):
    shape = m.shape(1, 4)
    dims = m.input_or_constant(m.pick("int32", "int64"), [len(shape)], shape)
    value = m.input_or_constant(kind, [], chance=0.3)
    m.operator("FILL", [dims, value], [m.output(kind, **same(m, value))], version=4)


@generator("RANGE", "float32", "int32", "int64")
def range_(m, kind):
    if kind == "float32":
        step = float(np.float32(m.rng.uniform(0.1, 3)))
        start = float(np.float32(m.rng.normal(0, 5)))
        end = start + step * m.rng.uniform(0, 30)
    else:
        start, step = m.integer(-50, 50), m.integer(1, 7)
        end = start + m.integer(0, 60)
    if m.chance(0.3):
        start, end, step = end, start, -step
    chance = m.pick(0, 1)
    parts = [m.input_or_constant(kind, [], value, chance=chance) for value in (start, end, step)]
    m.operator("RANGE", parts, [m.output(kind)])


@generator("BROADCAST_ARGS", "int32", "int64")
def broadcast_args(m, kind):
    a, b = m.broadcast_pair(1, 5)
    inputs = [m.input_or_constant(kind, [len(shape)], shape) for shape in (a, b)]
    m.operator("BROADCAST_ARGS", inputs, [m.output(kind)])
