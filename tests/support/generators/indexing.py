# SPDX-License-Identifier: Apache-2.0
"""Tables, segments, diagonals, boxes, and what else goes by index; complex numbers."""

import flatbuffers.flexbuffers
import numpy as np

from generators import OPTIMIZED, generator
from generators.draft import QUANTIZED
from generators.layout import same
from generators.sparse import compressed_rows


@generator("EMBEDDING_LOOKUP", "float32", "int8", "int8-float32", "int4-float32", "int2-float32", "uint8-float32")
def embedding_lookup(m, kind):
    source, *target = kind.split("-")
    target = target[0] if target else source
    rows = m.integer(1, 12)
    shape = [rows, *m.shape(1, 3, 60)] if source in ("float32", "int8", "uint8") else [rows, 4 * m.integer(1, 9)]
    ids = m.shape(rank=1)
    where = m.input_or_constant("int32", ids, m.integers("int32", ids, 0, rows - 1))
    parameters = {}
    if source != "float32":
        parameters = {"scale": m.scale(), "zero_point": 0}
        if source != "uint8" and m.chance(0.5) and len(shape) == 2:
            parameters = {"scale": [m.scale() for _ in range(rows)], "zero_point": [0] * rows, "quantized_dimension": 0}
    if source == target and source != "float32":
        parameters = {"scale": m.scale(), "zero_point": 0}
    if source == "float32":
        table = m.input_or_constant(source, shape)
    else:
        table = m.constant(source, m.codes(source, shape), **parameters)
    out = m.output(target, **(parameters if target == source and parameters else {"scale": None}))
    m.operator("EMBEDDING_LOOKUP", [where, table], [out], version=4 if source in ("int4", "int2") else 3)


@generator("DYNAMIC_UPDATE_SLICE", "float32", "int8", "int32", "int64", "bool", "float16", "int16")
def dynamic_update_slice(m, kind):
    shape = m.shape(1, 4, 300)
    part = [m.integer(1, n) for n in shape]
    x = m.input(kind, shape)
    update = m.input_or_constant(kind, part, chance=0.2, **same(m, x))
    type = m.pick("int32", "int64")
    begin = [m.integer(-1, n - p + 1) for n, p in zip(shape, part, strict=True)]
    where = m.input_or_constant(type, [len(shape)], begin)
    m.operator("DYNAMIC_UPDATE_SLICE", [x, update, where], [m.output(kind, **same(m, x))], version=4)


@generator("UNSORTED_SEGMENT_SUM", "float32", "int32")
@generator("UNSORTED_SEGMENT_PROD", "float32", "int32")
@generator("UNSORTED_SEGMENT_MAX", "float32", "int32")
@generator("UNSORTED_SEGMENT_MIN", "float32", "int32")
def unsorted_segment(m, kind):
    shape = m.shape(1, 4, 200)
    x = m.input(kind, shape)
    lead = shape[: m.integer(1, len(shape))]
    count = m.integer(1, 6)
    where = m.input_or_constant("int32", lead, m.integers("int32", lead, m.pick(-1, 0), count - 1))
    inputs = [x, where, m.input_or_constant("int32", m.pick([], [1]), count, chance=0.7)]
    m.operator(m.name, inputs, [m.output(kind)])


@generator("SEGMENT_SUM", "float32", "int32", resolver=OPTIMIZED)
def segment_sum(m, kind):
    shape = m.shape(1, 4, 200)
    steps = m.integers("int32", shape[:1], 0, 1)
    steps[0] = 0
    where = m.input_or_constant("int32", shape[:1], np.cumsum(steps))
    m.operator("SEGMENT_SUM", [m.input(kind, shape), where], [m.output(kind)])


@generator("MATRIX_DIAG", "float32", "int8", "uint8", "int16", "int32", "int64")
def matrix_diag(m, kind):
    x = m.input(kind, m.shape(1, 3, 80))
    m.operator("MATRIX_DIAG", [x], [m.output(kind, **same(m, x))])


@generator("MATRIX_SET_DIAG", "float32", "int8", "uint8", "int16", "int32", "int64")
def matrix_set_diag(m, kind):
    shape = m.shape(2, 4, 300)
    x = m.input(kind, shape)
    diagonal = m.input(kind, [*shape[:-2], min(shape[-2:])], **same(m, x))
    m.operator("MATRIX_SET_DIAG", [x, diagonal], [m.output(kind, **same(m, x))])


@generator("BUCKETIZE", "float32", "float64", "int32", "int64")
def bucketize(m, kind):
    shape = m.shape(0, 4)
    bounds = np.unique(np.round(m.rng.normal(0, 3, m.integer(1, 9)), 1)).tolist()
    if "int" in kind:
        x = m.input(kind, shape, draw=lambda: m.integers(kind, shape, -9, 9))
    else:
        x = m.input(kind, shape, draw=lambda: np.round(m.floats(shape, kind, magnitude=3), 1))
    m.operator("BUCKETIZE", [x], [m.output("int32")], boundaries=bounds)


@generator("SPARSE_TO_DENSE", "float32", "int32", "int64", "int8", "uint8")
def sparse_to_dense(m, kind):
    shape = m.shape(1, 4, 200)
    count = m.integer(1, 9)
    type = m.pick("int32", "int64")
    flat = np.sort(m.rng.choice(int(np.prod(shape)), min(count, int(np.prod(shape))), replace=False))
    places = np.stack(np.unravel_index(flat, shape), axis=-1)
    count = len(flat)
    if len(shape) == 1 and m.chance(0.5):
        places = places[:, 0]
    where = m.input_or_constant(type, places.shape, places)
    wanted = m.input_or_constant(type, [len(shape)], shape, chance=0.7)
    values = m.input(kind, m.pick([], [count]), scale=None)
    rest = m.input_or_constant(kind, [], scale=None)
    m.operator("SPARSE_TO_DENSE", [where, wanted, values, rest], [m.output(kind, scale=None)], version=3)


SIZES = {"float32": 4, "int32": 4, "uint32": 4, "int8": 1, "uint8": 1, "int16": 2, "int64": 8, "float64": 8}


@generator("BITCAST", "float32", "int32", "int8", "int16", "int64")
def bitcast(m, kind):
    target = m.pick(*SIZES)
    a, b = SIZES[kind], SIZES[target]
    shape = m.shape(0, 3, 100)
    if b > a:
        shape = [*shape, b // a]
    x = m.input(kind, shape, scale=None)
    m.operator("BITCAST", [x], [m.output(target, scale=None)])


# ---- complex numbers ----


@generator("REAL", "complex64", "complex128")
@generator("IMAG", "complex64", "complex128")
@generator("COMPLEX_ABS", "complex64", "complex128")
def complex_part(m, kind):
    x = m.input(kind, m.shape(0, 4))
    m.operator(m.name, [x], [m.output("float32" if kind == "complex64" else "float64")])


@generator("RFFT2D", "float32")
def rfft2d(m, kind):
    shape = m.shape(2, 4, 300)
    length = [2 ** m.integer(0, 4) for _ in range(2)]
    length[1] = max(length[1], 2)
    second = m.input_or_constant("int32", [2], length, chance=0.7)
    x = m.input(kind, shape, draw=lambda: m.floats(shape, special=0))
    m.operator("RFFT2D", [x, second], [m.output("complex64")])


# ---- boxes ----


def boxes(m, count):
    """count boxes as y1, x1, y2, x2, some of them on top of others."""
    middle = m.rng.uniform(0, 1, (count, 2))
    if count > 3:
        middle[: count // 2] = middle[0] + m.rng.normal(0, 0.05, (count // 2, 2))
    size = m.rng.uniform(0.05, 0.3, (count, 2))
    found = np.concatenate([middle - size, middle + size], axis=1)
    if m.chance(0.3):
        found = found[:, [2, 3, 0, 1]]
    if m.chance(0.15):
        found[m.rng.integers(0, count, 2)] = m.pick(0, 0.5)  # without area, as padding
    return found.astype(np.float32)


@generator("NON_MAX_SUPPRESSION_V4", "float32")
@generator("NON_MAX_SUPPRESSION_V5", "float32")
def non_max_suppression(m, kind):
    count = m.integer(1, 30)
    inputs = [
        m.input("float32", [count, 4], draw=lambda: boxes(m, count)),
        m.input("float32", [count], draw=lambda: m.rng.permutation(count).astype(np.float32) / count),
        m.input_or_constant("int32", [], m.integer(1, 12), chance=0.7),
        m.input_or_constant("float32", [], m.rng.uniform(0.1, 0.9)),
        m.input_or_constant("float32", [], m.rng.uniform(0, 0.5)),
    ]
    outputs = [m.output("int32"), m.output("int32")]
    options = {}
    if m.name.endswith("V5"):
        inputs.append(m.input_or_constant("float32", [], m.pick(0.0, m.rng.uniform(0.1, 1))))
        outputs.insert(1, m.output("float32"))
        options = {}
    m.operator(m.name, inputs, outputs, **options)


@generator("TFLite_Detection_PostProcess", "float32", "uint8")
def detection_postprocess(m, kind):
    count, classes = m.integer(2, 25), m.pick(*range(1, 6), 12, 20)
    options = {
        "max_detections": m.integer(1, 8),
        "max_classes_per_detection": m.integer(1, 6),
        "detections_per_class": m.integer(1, 5),
        "use_regular_nms": m.chance(0.5),
        "nms_score_threshold": float(np.float32(m.rng.uniform(0, 0.4))),
        "nms_iou_threshold": float(np.float32(m.rng.uniform(0.2, 0.8))),
        "num_classes": classes,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    if kind == "uint8":
        codes = {"scale": 0.05, "zero_point": m.integer(100, 150)}
        encoded = m.input(kind, [1, count, 4], **codes)
        background = m.integer(0, 1)
        scores = m.input(kind, [1, count, classes + background], scale=1 / 256, zero_point=0)
        anchors = m.constant(kind, m.codes(kind, [count, 4]), scale=0.02, zero_point=0)
    else:
        encoded = m.input(kind, [1, count, 4], draw=lambda: m.floats([1, count, 4], special=0))
        scores = m.input(
            kind, [1, count, classes + 1], draw=lambda: m.rng.random((1, count, classes + 1)).astype(np.float32)
        )
        found = np.abs(boxes(m, count))
        anchors = m.constant(kind, np.concatenate([found[:, :2], found[:, 2:] * 0.3 + 0.05], axis=1))
    outputs = [m.output("float32") for _ in range(4)]
    custom = flatbuffers.flexbuffers.Dumps(options)
    m.operator("TFLite_Detection_PostProcess", [encoded, scores, anchors], outputs, custom_options=custom)


# ---- StableHLO ----


@generator("STABLEHLO_ADD", "float32", "int32", "int64")
@generator("STABLEHLO_MULTIPLY", "float32", "int32", "int64")
@generator("STABLEHLO_MAXIMUM", "float32", "int32", "int64")
@generator("STABLEHLO_MINIMUM", "float32", "int32", "int64")
def stablehlo_binary(m, kind):
    shape = m.shape(1, 4)
    m.operator(m.name, [m.input(kind, shape), m.input_or_constant(kind, shape, chance=0.2)], [m.output(kind)])


@generator("STABLEHLO_PAD", "float32", "int8", "int32", "int64")
def stablehlo_pad(m, kind):
    shape = m.shape(1, 4, 100)
    inner = [m.integer(0, 2) for _ in shape]
    low = [m.integer(-1, 2) for _ in shape]
    high = [m.integer(-1 if n + a > 1 else 0, 2) for n, a in zip(shape, low, strict=True)]
    low = [a if n + a > 0 else 0 for n, a in zip(shape, low, strict=True)]
    x = m.input(kind, shape)
    value = m.input_or_constant(kind, [], chance=0.6, **same(m, x))
    m.operator(
        "STABLEHLO_PAD",
        [x, value],
        [m.output(kind, **same(m, x))],
        edge_padding_low=low,
        edge_padding_high=high,
        interior_padding=inner,
    )


@generator("DILATE", "float32", "int8", "int16", "int32", "int64")
def dilate(m, kind):
    shape = m.shape(1, 4, 60)
    x = m.input(kind, shape)
    factors = m.input_or_constant("int32", [len(shape)], [m.integer(1, 3) for _ in shape], chance=0.7)
    value = m.input_or_constant(kind, [], chance=0.6, **same(m, x))
    m.operator("DILATE", [x, factors, value], [m.output(kind, **same(m, x))])


# ---- products of two tensors ----


@generator("BATCH_MATMUL", "float32", "int8", "int16", "int8-int32", "int8-symmetric")
def batch_matmul(m, kind):
    symmetric = kind.endswith("-symmetric")  # on the right, as XNNPACK wants it
    source, *target = kind.removesuffix("-symmetric").split("-")
    lead_a, lead_b = m.broadcast_pair(0, 3, 12) if m.chance(0.7) else ([], [])
    rows, depth, columns = m.dimension(20), m.dimension(40), m.dimension(20)
    adj_x, adj_y = m.chance(0.3), m.chance(0.3)
    a = [*lead_a, depth, rows] if adj_x else [*lead_a, rows, depth]
    b = [*lead_b, columns, depth] if adj_y else [*lead_b, depth, columns]
    parameters = m.affine(source) if source in QUANTIZED else {}
    x = m.input(source, a, **parameters)
    y = m.input_or_constant(source, b, **({"scale": m.scale(), "zero_point": 0} if symmetric else {}))
    if target:
        z = m.output(target[0])
    elif source in QUANTIZED:
        z = m.output(source, **m.affine(source, m.largest(x) * m.largest(y) * np.sqrt(depth) / 3))
    else:
        z = m.output(source)
    m.operator("BATCH_MATMUL", [x, y], [z], adj_x=adj_x, adj_y=adj_y, version=4)


@generator("EMBEDDING_LOOKUP_SPARSE", "float32")
def embedding_lookup_sparse(m, kind):
    rows, width = m.integer(1, 9), m.shape(1, 2, 20)
    rank = m.integer(2, 3)
    dense = [m.integer(1, 4) for _ in range(rank)]
    count = m.integer(1, 8)
    flat = np.sort(m.rng.integers(0, int(np.prod(dense)), count))
    places = np.stack(np.unravel_index(flat, dense), axis=-1).astype(np.int32)
    inputs = [
        m.input("int32", [count], m.integers("int32", [count], 0, rows - 1)),
        m.input_or_constant("int32", [count, rank], places, chance=0),
        m.input_or_constant("int32", [rank], dense),
        m.input("float32", [count], draw=lambda: np.abs(m.floats([count], special=0)) + np.float32(0.1)),
        m.input_or_constant("float32", [rows, *width]),
    ]
    options = {"combiner": m.integer(0, 2)}
    m.operator("EMBEDDING_LOOKUP_SPARSE", inputs, [m.output("float32")], **options)


@generator("STABLEHLO_AND", "bool", "int8", "int16", "int32", resolver=OPTIMIZED)
@generator("STABLEHLO_SHIFT_LEFT", "int8", "int16", "int32", resolver=OPTIMIZED)
def stablehlo_bits(m, kind):
    shape = m.shape(1, 4)
    x = m.input(kind, shape, scale=None)
    if m.name == "STABLEHLO_SHIFT_LEFT":
        y = m.input_or_constant(kind, shape, m.integers(kind, shape, 0, 8 * np.dtype(kind).itemsize - 1), scale=None)
    else:
        y = m.input_or_constant(kind, shape, scale=None)
    m.operator(m.name, [x, y], [m.output(kind, scale=None)])


@generator("STABLEHLO_GATHER", "float32", "int32", "int64", "int8", "int16", "bool")
def stablehlo_gather(m, kind):
    """Windows of the operand at given places; some window dimensions of 1 are left out."""
    shape = m.shape(1, 4, 200)
    rank = len(shape)
    x = m.input(kind, shape, scale=None)
    mapped = [int(i) for i in m.rng.permutation(rank)[: m.integer(1, rank)]]
    sizes = [m.integer(1, n) for n in shape]
    collapsed = sorted(i for i in range(rank) if sizes[i] == 1 and m.chance(0.5))
    type = m.pick("int32", "int64")
    lead = m.shape(1, 2, 12)
    starts = np.stack([m.integers(type, lead, -1, shape[i] - sizes[i] + 1) for i in mapped], axis=-1)
    where = m.input_or_constant(type, starts.shape, starts)
    kept = rank - len(collapsed)
    offset = list(range(len(lead), len(lead) + kept)) if m.chance(0.6) else list(range(kept))
    options = {
        "offset_dims": offset,
        "collapsed_slice_dims": collapsed,
        "start_index_map": mapped,
        "index_vector_dim": len(lead),
        "slice_sizes": sizes,
        "indices_are_sorted": False,
    }
    # The kernel reads the rank from the file's shape.
    windows = [n for i, n in enumerate(sizes) if i not in collapsed]
    places = iter(lead)
    out = [windows[offset.index(i)] if i in offset else next(places) for i in range(len(lead) + kept)]
    m.operator("STABLEHLO_GATHER", [x, where], [m.output(kind, out, scale=None)], **options)


@generator("DENSIFY", "float32", "int8", "float16")
def densify(m, kind):
    """A constant in compressed rows; in half of the models of float32 with blocks of 1x4 as well."""
    rows, columns = m.integer(1, 12), m.integer(1, 12)
    blocked = kind == "float32" and m.chance(0.5)
    keep = m.rng.random((rows, columns)) < 0.4
    width = 4 if blocked else 1
    values = m.draw(kind, [int(keep.sum()) * width])
    parameters = {"scale": m.scale(), "zero_point": 0} if kind == "int8" else {}
    x = m.constant(kind, values, shape=[rows, columns * width], **parameters)
    m.tensors[x].fields["sparsity"] = compressed_rows(m, keep, width)
    y = m.output(kind, [rows, columns * width], **(parameters or {"scale": None}))
    m.operator("DENSIFY", [x], [y])
