# SPDX-License-Identifier: Apache-2.0
"""Large graphs whose operators XNNPACK takes here and refuses there: islands of floats among integers and of integers
among floats, several consumers, constants that several operators read, outputs in the middle, inputs that are outputs,
shapes that are known only while the model runs.

The row's operator is "PARTITION".  LiteRT gives its delegate whole partitions of such a graph, unless all tensors are
to be preserved; so differential.py compares it both ways.  A tensor is `loose` where LiteRT's own steps with floats are
not tq's: no codes are made of it, which could then differ.
"""

import numpy as np

from generators import generator

CODES = ("int8", "uint8")
CURVES = {  # operator: the scale and zero point that the kernels need of an output
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
}
EXACT = ("ABS", "NEG", "SQUARE", "RELU", "RELU6", "RELU_N1_TO_1")
LOOSE = ("TANH", "LOGISTIC", "HARD_SWISH", "GELU")
STEEP = ("FLOOR", "SIN", "COS")  # what makes much of a small difference


class Plan:
    """A draft whose tensors so far can be chosen among, with what is known of each."""

    def __init__(self, m, kind):
        self.m, self.kind = m, kind
        self.there, self.loose, self.later, self.constants = [], set(), set(), {}
        self.is_chain = kind.startswith("chain")
        self.types = {"int8": ["int8"], "uint8": ["uint8"]}.get(kind.removeprefix("chain-"), CODES)

    # ---- tensors ----

    def scale(self, type, magnitude):
        """In chains a power of two, with which results often lie between two quantized values."""
        scale = self.m.scale_for(type, min(max(magnitude, 0.02), 100.0), wild=0)
        return 2.0 ** round(np.log2(scale)) if self.is_chain else scale

    def codes(self, type, shape, magnitude):
        m = self.m
        return m.inner(type, shape, scale=self.scale(type, magnitude), zero_point=m.zero_point(type))

    def like(self, x, shape, parameters=None):
        """A tensor of x's type, and, unless others are given, its parameters."""
        m = self.m
        return m.inner(m.types[x], shape, **(parameters or m.parameters[x] or {"scale": None}))

    def fresh(self, x, shape, magnitude):
        """A tensor of x's type, with parameters for values up to a magnitude."""
        m = self.m
        return self.codes(m.types[x], shape, magnitude) if m.types[x] in CODES else m.inner(m.types[x], shape)

    def add(self, name, inputs, outputs, loose=False, **fields):
        m = self.m
        m.operator(name, inputs, outputs, **fields)
        spread = loose or any(i in self.loose for i in inputs if i >= 0)
        for y in outputs:
            self.there.append(y)
            if spread:
                self.loose.add(y)
            if any(i in self.later for i in inputs):
                self.later.add(y)

    def indices(self, values):
        """A constant that steers; some are shared by all operators that want the same."""
        key = tuple(np.shape(values)), tuple(np.ravel(values).tolist())
        if key not in self.constants or self.m.chance(0.3):
            self.constants[key] = self.m.constant("int32", np.asarray(values, np.int32))
        return self.constants[key]

    def constant(self, x, shape):
        """A constant to go with x; often one that is there already."""
        m = self.m
        key = m.types[x], tuple(shape)
        if key not in self.constants or m.chance(0.5):
            if m.types[x] in CODES:
                scale = self.scale(m.types[x], m.largest(x))
                self.constants[key] = m.constant(
                    m.types[x], m.draw(m.types[x], shape), scale=scale, zero_point=m.zero_point(m.types[x])
                )
            else:
                self.constants[key] = m.constant("float32", m.floats(shape, special=0))
        return self.constants[key]

    def pick(self, fits=lambda x: True):
        """A tensor for which fits holds: mostly one of the last; None where there is none."""
        m = self.m
        found = [x for x in self.there if m.types[x] in (*CODES, "float32") and fits(x)]
        if not found:
            return None
        if self.is_chain and m.chance(0.8):
            return found[-1]
        return found[-1 - int(m.rng.integers(0, min(len(found), 3 if m.chance(0.7) else len(found))))]


# ---- steps: each takes one tensor and leaves some more, or does nothing where it cannot ----


def is_codes(p, x):
    return p.m.types[x] in CODES


def curve(p, x):
    m = p.m
    if not is_codes(p, x):
        loose = m.chance(0.4)
        name = m.pick(*LOOSE, *["ELU"] * m.plain) if loose else m.pick(*EXACT)
        if x not in p.loose and m.chance(0.1):
            name, loose = m.pick(*STEEP), True
        return p.add(name, [x], [m.inner("float32", m.shape_of(x))], loose=loose)
    names = ["LOGISTIC", "TANH", "LOGISTIC", "TANH", "LEAKY_RELU", "LEAKY_RELU", "RELU", "RELU6", "HARD_SWISH"]
    name = m.pick(*names, *["ELU"] * 2 * (m.types[x] == "int8" and m.plain))
    y = p.fresh(x, m.shape_of(x), m.largest(x))
    if name in CURVES:
        scale, zero = CURVES[name][m.types[x]]
        y = p.like(x, m.shape_of(x), {"scale": scale, "zero_point": zero})
    options = {"alpha": m.pick(0.1, 0.3, -0.5)} if name == "LEAKY_RELU" else {}
    p.add(name, [x], [y], **options, version=1 if name in ("HARD_SWISH", "ELU") else 2)


def activation(m):
    return m.pick("NONE", "NONE", "NONE", "RELU", "RELU_N1_TO_1", "RELU6")


def binary(p, x):
    """With itself, a constant, one element, what broadcasts, or another tensor."""
    m = p.m
    shape, how = m.shape_of(x), m.rng.random()
    if how < (0.4 if p.is_chain else 0.2):
        y = x
    elif how < 0.65 or x in p.later:
        y = p.constant(x, m.pick([1], [1], shape[-1:], shape) if shape and x not in p.later else [1])
    else:
        y = p.pick(lambda t: m.types[t] == m.types[x] and m.shape_of(t) == shape and t not in p.later)
    name = m.pick("ADD", "ADD", "MUL", "MUL", "SUB", *["MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"] * (y != x))
    if name == "SQUARED_DIFFERENCE" and is_codes(p, x):
        name = "ADD"
    inputs = [x, y] if name in ("MAXIMUM", "SUB") or m.chance(0.6) else [y, x]
    options = {"fused_activation_function": activation(m)} if name in ("ADD", "MUL", "SUB") else {}
    if name in ("ADD", "SUB"):
        options["pot_scale_int16"] = False
    if name in ("MAXIMUM", "MINIMUM") and is_codes(p, x):
        if m.parameters[x] != m.parameters[y]:
            return
        z = p.like(x, shape)
    else:
        z = p.fresh(x, shape, m.largest(x) * m.largest(y) / 2 if name == "MUL" else m.largest(x) + m.largest(y))
    p.add(name, inputs, [z], **options, version=2)


def convert(p, x):
    """Integers to other integers, to floats and back."""
    m = p.m
    shape = m.shape_of(x)
    if is_codes(p, x):
        if m.chance(0.5):
            return p.add("DEQUANTIZE", [x], [m.inner("float32", shape)], version=2)
        other = m.types[x] if m.chance(0.7) else m.pick(*CODES)
        return p.add("QUANTIZE", [x], [p.codes(other, shape, m.largest(x))], version=2)
    if x in p.loose:
        return None
    return p.add("QUANTIZE", [x], [p.codes(m.pick(*p.types), shape, 3.0)])


def weights(p, x, shape, axis):
    """For products of x.  Some scales lie along an axis; some floats are unpacked from float16 or
    integers, some inputs of floats meet integers."""
    m, type = p.m, p.m.types[x]
    terms = np.prod(shape) / shape[axis]
    if type == "uint8":
        scale = float(np.float32(0.7 / (70 * np.sqrt(terms))))
        return m.constant("uint8", m.codes("uint8", shape), scale=scale, zero_point=m.zero_point("uint8"))
    how = m.rng.random()
    if type == "float32" and how < 0.6:
        values = m.floats(shape, special=0, magnitude=0.7 / np.sqrt(terms))
        if how < 0.35:
            return m.constant("float32", values)
        half = m.constant("float16", values)
        wide = m.inner("float32", shape)
        m.operator("DEQUANTIZE", [half], [wide], version=3)
        return wide
    values = m.rng.integers(-127, 127, shape, endpoint=True)
    middle = float(np.float32(0.7 / (70 * np.sqrt(terms))))
    deep = type == "float32" and axis == 3  # LiteRT reads a scale for each channel
    if not deep and m.chance(0.4):
        w = m.constant("int8", values, scale=middle, zero_point=0)
    else:
        scales = np.float32(middle * 2.0 ** m.rng.uniform(-1, 1, shape[axis]))
        w = m.constant("int8", values, scale=scales, zero_point=[0] * shape[axis], quantized_dimension=axis)
    if type == "float32" and (how < 0.8 or x in p.loose):
        wide = m.inner("float32", shape)
        m.operator("DEQUANTIZE", [w], [wide], version=3)
        return wide
    return w


def bias(p, x, w, count):
    m = p.m
    if not is_codes(p, x):
        return m.constant("float32", m.floats([count], special=0))
    scale = np.float32(np.float32(m.parameters[x]["scale"]) * np.float32(m.parameters[w]["scale"]))
    values = m.rng.integers(-4000, 4000, count)
    return m.constant("int32", values, scale=scale, zero_point=np.zeros_like(scale, int))


def convolution(p, x):
    m = p.m
    shape = m.shape_of(x)
    if len(shape) != 4 or x in p.later:
        return None
    batch, height, width, depth = shape
    kh, kw = m.integer(1, min(height, 3)), m.integer(1, min(width, 3))
    stride, padding = m.pick(1, 1, 2), m.pick("SAME", "SAME", "VALID")
    size = [-(-n // stride) if padding == "SAME" else (n - k) // stride + 1 for n, k in ((height, kh), (width, kw))]
    common = {"padding": padding, "stride_h": stride, "stride_w": stride, "fused_activation_function": activation(m)}
    way = m.rng.random()
    if way < 0.3:
        w = weights(p, x, [1, kh, kw, depth], 3)
        y = p.fresh(x, [batch, *size, depth], 0.7 * m.largest(x))
        options = {**common, "depth_multiplier": 1}
        return p.add(
            "DEPTHWISE_CONV_2D", [x, w, bias(p, x, w, depth)], [y], **options, loose=m.types[x] == "float32", version=6
        )
    count = m.pick(1, 4, 8, 11, depth)
    if way < 0.45:
        stride = m.pick(1, 2)
        kh, kw = max(kh, stride), max(kw, stride)
        if padding == "SAME":
            size = [height * stride, width * stride]
        else:
            size = [(height - 1) * stride + kh, (width - 1) * stride + kw]
        if size[0] * size[1] * count > 3000:
            return None
        w = weights(p, x, [count, kh, kw, depth], 0)
        y = p.fresh(x, [batch, *size, count], 0.7 * m.largest(x))
        options = {"padding": padding, "stride_h": stride, "stride_w": stride}
        inputs = [p.indices([batch, *size, count]), w, x, bias(p, x, w, count)]
        return p.add("TRANSPOSE_CONV", inputs, [y], **options, loose=m.types[x] == "float32", version=3)
    w = weights(p, x, [count, kh, kw, depth], 0)
    y = p.fresh(x, [batch, *size, count], 0.7 * m.largest(x))
    return p.add("CONV_2D", [x, w, bias(p, x, w, count)], [y], **common, loose=m.types[x] == "float32", version=6)


def layer(p, x):
    m = p.m
    shape = m.shape_of(x)
    if not 2 <= len(shape) <= 4 or x in p.later:
        return None
    depth, count, keep = shape[-1], m.integer(1, 12), m.chance(0.5)
    w = weights(p, x, [count, depth], 0)
    lead = shape[:-1] if keep else [int(np.prod(shape[:-1]))]
    y = p.fresh(x, [*lead, count], 0.7 * m.largest(x))
    options = {"keep_num_dims": keep, "fused_activation_function": activation(m)}
    b = bias(p, x, w, count) if m.chance(0.7) else -1
    return p.add("FULLY_CONNECTED", [x, w, b], [y], **options, loose=m.types[x] == "float32", version=5)


def matmul(p, x):
    m = p.m
    shape = m.shape_of(x)
    if not 2 <= len(shape) <= 4 or x in p.later or (m.types[x] == "uint8"):
        return None
    other = p.pick(lambda t: m.types[t] == m.types[x] and m.shape_of(t) == shape and t not in p.later)
    if m.types[x] == "float32" and m.chance(0.5):  # integers, unpacked on the way
        codes = p.pick(lambda t: m.types[t] == "int8" and m.shape_of(t) == shape and t not in p.later)
        if codes is not None:
            other = m.inner("float32", shape)
            p.add("DEQUANTIZE", [codes], [other], version=2)
    y = p.fresh(x, [*shape[:-1], shape[-2]], m.largest(x) * m.largest(other) * np.sqrt(shape[-1]) / 3)
    p.add("BATCH_MATMUL", [x, other], [y], adj_y=True, loose=m.types[x] == "float32", version=4)


def pool(p, x):
    m = p.m
    shape = m.shape_of(x)
    if len(shape) != 4 or x in p.later:
        return None
    kh, kw, stride = m.integer(1, min(shape[1], 3)), m.integer(1, min(shape[2], 3)), m.pick(1, 2)
    options = {
        "padding": "SAME",
        "stride_w": stride,
        "stride_h": stride,
        "filter_width": kw,
        "filter_height": kh,
        "fused_activation_function": activation(m),
    }
    name = m.pick("MAX_POOL_2D", "AVERAGE_POOL_2D")
    y = p.like(x, [shape[0], -(-shape[1] // stride), -(-shape[2] // stride), shape[3]])
    return p.add(name, [x], [y], **options, loose=name == "AVERAGE_POOL_2D" and m.types[x] == "float32", version=3)


def reduction(p, x):
    m = p.m
    shape = m.shape_of(x)
    if len(shape) < 2 or x in p.later:
        return None
    axes = sorted(m.rng.choice(len(shape), m.integer(1, min(len(shape) - 1, 2)), replace=False).tolist())
    if len(shape) == 4 and m.chance(0.5):
        axes = [1, 2]
    keep, name = m.chance(0.6), m.pick("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    left = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
    terms = np.prod([shape[i] for i in axes])
    if name.startswith("REDUCE"):
        y = p.like(x, left)
    else:
        y = p.fresh(x, left, m.largest(x) * (np.sqrt(terms) if name == "SUM" else 1 / np.sqrt(terms)))
    loose = m.types[x] == "float32" and not name.startswith("REDUCE")
    return p.add(name, [x, p.indices(axes)], [y], keep_dims=keep, loose=loose, version=2)


def resize(p, x):
    m = p.m
    shape = m.shape_of(x)
    if len(shape) != 4 or x in p.later:
        return None
    size = [m.integer(1, min(2 * n, 16)) for n in shape[1:3]]
    half, corners = m.pick((False, False), (True, False), (False, True))
    name = m.pick("RESIZE_BILINEAR", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    y = p.like(x, [shape[0], *size, shape[3]])
    loose = m.types[x] == "float32" and name == "RESIZE_BILINEAR"
    options = {"align_corners": corners, "half_pixel_centers": half}
    return p.add(name, [x, p.indices(size)], [y], **options, loose=loose, version=3)


def joined(p, x):
    m = p.m
    shape = m.shape_of(x)
    if not shape or x in p.later:
        return None
    axis = m.integer(0, len(shape) - 1)

    def fits(t):
        other = m.shape_of(t)
        return (
            m.types[t] == m.types[x]
            and m.parameters[t] == m.parameters[x]
            and len(other) == len(shape)
            and t not in p.later
            and all(a == b for i, (a, b) in enumerate(zip(shape, other, strict=True)) if i != axis)
        )

    parts = [x] + [p.pick(fits) for _ in range(m.integer(1, 5))]
    size = sum(m.shape_of(t)[axis] for t in parts)
    whole = [size if i == axis else n for i, n in enumerate(shape)]
    if np.prod(whole) > 3000:
        return None
    return p.add("CONCATENATION", parts, [p.like(x, whole)], axis=axis, version=3)


def split(p, x):
    m = p.m
    shape = m.shape_of(x)
    ways = [(axis, n) for axis, size in enumerate(shape) for n in (2, 3, 5) if size % n == 0]
    if not ways or x in p.later:
        return None
    axis, count = ways[m.integer(0, len(ways) - 1)]
    part = [n // count if i == axis else n for i, n in enumerate(shape)]
    axis = m.constant("int32", np.int32(axis))
    return p.add("SPLIT", [axis, x], [p.like(x, part) for _ in range(count)], num_splits=count, version=2)


def moved(p, x):
    """The same elements, or some of them, elsewhere."""
    m = p.m
    shape = m.shape_of(x)
    if not shape or x in p.later:
        return None
    name = m.pick("PAD", "SLICE", "STRIDED_SLICE", "RESHAPE", "TRANSPOSE", "EXPAND_DIMS", "SPACE_TO_DEPTH", "GATHER")
    if name == "PAD" and len(shape) <= 4:
        widths = [[m.integer(0, 1), m.integer(0, 1)] if i else [0, 0] for i in range(len(shape))]
        y = p.like(x, [n + sum(w) for n, w in zip(shape, widths, strict=True)])
        return p.add(name, [x, p.indices(widths)], [y], version=2)
    if name in ("SLICE", "STRIDED_SLICE") and len(shape) <= 4:
        begin = [m.integer(0, (n - 1) // 2) for n in shape]
        end = [m.integer(b + 1, n) for b, n in zip(begin, shape, strict=True)]
        size = [b - a for a, b in zip(begin, end, strict=True)]
        y = p.like(x, size)
        if name == "SLICE":
            return p.add(name, [x, p.indices(begin), p.indices(size)], [y], version=2)
        parts = [p.indices(values) for values in (begin, end, [1] * len(shape))]
        return p.add(name, [x, *parts], [y], version=2)
    if name == "TRANSPOSE":
        order = m.rng.permutation(len(shape)).tolist()
        return p.add(name, [x, p.indices(order)], [p.like(x, [shape[i] for i in order])], version=2)
    if name == "EXPAND_DIMS" and len(shape) < 5:
        axis = m.integer(0, len(shape))
        y = p.like(x, [*shape[:axis], 1, *shape[axis:]])
        return p.add(name, [x, p.indices([axis])], [y])
    if name == "SPACE_TO_DEPTH" and len(shape) == 4 and shape[1] % 2 == shape[2] % 2 == 0:
        y = p.like(x, [shape[0], shape[1] // 2, shape[2] // 2, 4 * shape[3]])
        return p.add(name, [x], [y], block_size=2, version=2)
    if name == "GATHER":
        axis = m.integer(0, len(shape) - 1)
        places = m.rng.integers(0, shape[axis], m.integer(1, 4)).tolist()
        y = p.like(x, [*shape[:axis], len(places), *shape[axis + 1 :]])
        return p.add(name, [x, p.indices(places)], [y], axis=axis, version=2)
    count = int(np.prod(shape))
    first = m.pick(*(n for n in (1, 2, 3, 4, 6, shape[0]) if count % n == 0))
    whole = [1, first, 1, count // first] if m.chance(0.6) else [first, count // first]
    return p.add("RESHAPE", [x, p.indices(whole)], [p.like(x, whole)])


def unknown(p, x):
    """A shape that is known only when the model runs: what follows element by element has it too."""
    m = p.m
    shape = m.shape_of(x)
    if not shape or x in p.later:
        return
    size = m.inner("int32", [len(shape)], scale=None)
    p.m.operator("SHAPE", [x], [size], out_type="INT32")
    begin, y = p.indices([0] * len(shape)), p.like(x, shape)
    if m.chance(0.5):  # not folded: the shape depends on values
        limit = p.m.constant("int32", np.int32(shape))
        least = m.inner("int32", [len(shape)], scale=None)
        p.m.operator("MINIMUM", [size, limit], [least])
        size = least
    p.add("SLICE", [x, begin, size], [y], version=2)
    p.later.add(y)


def normalized(p, x):
    m = p.m
    name = m.pick("SOFTMAX", "SOFTMAX", "L2_NORMALIZATION")
    if x in p.later or not 1 <= len(m.shape_of(x)) <= 4:
        return
    parameters = {}
    if is_codes(p, x):
        parameters = dict(zip(("scale", "zero_point"), CURVES[name][m.types[x]], strict=True))
    y = p.like(x, m.shape_of(x), parameters or None)
    options = {"beta": m.pick(1.0, 1.0, 0.5)} if name == "SOFTMAX" else {}
    p.add(name, [x], [y], **options, loose=m.types[x] == "float32", version=2)


def chosen(p, x):
    """One of two, element by element, by a comparison."""
    m = p.m
    shape = m.shape_of(x)
    if x in p.later or x in p.loose or len(shape) > 4 or m.parameters[x].get("scale", 0) >= 1:
        return
    y = p.pick(lambda t: m.types[t] == m.types[x] and m.shape_of(t) == shape and t not in p.later and t not in p.loose)
    if m.parameters[y].get("scale", 0) >= 1:  # then LiteRT's comparisons give any answers
        return
    mask = m.inner("bool", shape)
    m.operator(m.pick("GREATER", "LESS_EQUAL"), [x, y], [mask], version=2)
    if m.parameters[x] == m.parameters[y]:
        p.add("SELECT_V2", [mask, x, y], [p.like(x, shape)], version=2)
    else:
        m.outputs.append(mask)


STEPS = (curve,) * 5 + (binary,) * 6 + (convert,) * 4 + (convolution,) * 4 + (layer,) * 2 + (moved,) * 3
STEPS += (reduction, reduction, pool, resize, joined, joined, split, matmul, normalized, chosen)
CHAIN = (curve,) * 4 + (binary,) * 4 + (convert,)


@generator("PARTITION", "int8", "uint8", "mixed", "float32", "chain-int8", "chain-uint8")
def partition(m, kind):
    p = Plan(m, kind)
    for _ in range(m.pick(1, 1, 2)):
        shape = [1, m.integer(2, 8), m.integer(2, 8), m.integer(1, 9)] if m.chance(0.7) else [m.integer(1, 4), 12]
        type = "float32" if kind == "float32" or (kind == "mixed" and m.chance(0.5)) else m.pick(*p.types)
        if type == "float32":
            p.there.append(m.input(type, shape, draw=lambda shape=shape: m.floats(shape, special=0)))
        else:
            scale = p.scale(type, m.pick(1.0, 3.0, 6.0))
            p.there.append(m.input(type, shape, scale=scale, zero_point=m.zero_point(type)))
    count = m.integer(8, 40)
    for _ in range(3 * count):
        if len(m.operators) >= count:
            break
        x = p.pick(lambda t: np.prod(m.shape_of(t)) <= 3000)
        (unknown if m.chance(0.02) else m.pick(*(CHAIN if p.is_chain else STEPS)))(p, x)
    read = {i for item in m.operators for i in item.inputs}
    ends = [x for x in p.there if x not in read and x not in m.inputs]
    middle = [x for x in p.there if x in read and m.chance(0.03 if p.is_chain else 0.1)]
    m.outputs += [x for x in ends + middle if x not in m.outputs]
    m.runs, m.fixed = 2, not p.is_chain
