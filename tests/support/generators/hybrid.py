# SPDX-License-Identifier: Apache-2.0
"""Products of floats with integers, of int16 with int8, and what directions of recurrences read beside their input."""

import numpy as np

from generators import OPTIMIZED, ROWS, generator
from generators.matrices import weights
from generators.recurrent import Lstm, rnn_parts


def small(m, shape):
    """Floats without infinities or NaN."""
    return m.input("float32", shape, draw=lambda: m.floats(shape, special=0))


@generator("BATCH_MATMUL", "hybrid", "16x8")
def batch_matmul(m, kind):
    # LiteRT: scales of columns count in hybrid products alone, of which one dimension of batches works
    lead = m.shape(1, 3 if kind == "16x8" else 1, 6) if m.chance(0.7) else []
    rows, depth, columns = m.dimension(), m.dimension(60), m.dimension()
    adj_x, adj_y = m.chance(0.3), m.chance(0.3)
    a = [*lead, depth, rows] if adj_x else [*lead, rows, depth]
    b = [*lead, columns, depth] if adj_y else [*lead, depth, columns]
    codes = m.integers("int8", b, -127, 127)
    if kind == "hybrid":
        x, z = small(m, a), m.output("float32")
        per_column = m.chance(0.4)
        count = columns if per_column else 1
        scales = np.float32(10 ** m.rng.uniform(-3, -1, count))
        y = m.constant(
            "int8",
            codes,
            scale=scales,
            zero_point=[0] * count,
            quantized_dimension=(len(b) - 2 + (not adj_y)) * per_column,
        )
    else:
        x = m.input("int16", a)
        y = m.constant("int8", codes, scale=m.scale(), zero_point=0)
        z = m.output("int16", **m.affine("int16", m.largest(x) * m.largest(y) * np.sqrt(depth) / 3))
    m.operator(
        "BATCH_MATMUL", [x, y], [z], adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=m.chance(0.5), version=4
    )


@generator("TRANSPOSE_CONV", "hybrid")
def transpose_conv(m, kind):
    height, width = m.integer(1, 8), m.integer(1, 8)
    kh, kw, sh, sw = (m.integer(1, 4) for _ in range(4))
    depth, count, batch = m.dimension(20), m.dimension(20), m.integer(1, 2)
    if m.chance(0.5):
        padding = "SAME"
        shape = [batch, height * sh - m.integer(0, sh - 1), width * sw - m.integer(0, sw - 1), count]
    else:
        padding = "VALID"
        shape = [batch, (height - 1) * sh + kh, (width - 1) * sw + kw, count]
    w = weights(m, "int8", [count, kh, kw, depth], 0, m.chance(0.5))
    inputs = [m.input_or_constant("int32", [4], shape), w, small(m, [batch, height, width, depth])]
    if m.chance(0.5):
        inputs.append(m.constant("float32", m.floats([count], special=0)))
    options = {"padding": padding, "stride_h": sh, "stride_w": sw, "fused_activation_function": m.activation()}
    m.operator("TRANSPOSE_CONV", inputs, [m.output("float32")], **options, version=3)


@generator("FULLY_CONNECTED", "blockwise-int4", resolver=OPTIMIZED)
def fully_connected(m, kind):
    """Sizes and constants with which LiteRT's optimized kernel, the only one that has it, runs."""
    block = m.pick(2, 4, 16, 32)
    blocks = m.integer(max(1, -(-32 // block)), 6 + 32 // block)
    columns, units, rows = block * blocks, 4 * m.integer(1, 8), m.integer(1, 5)
    scales = m.constant("float16", (10 ** m.rng.uniform(-3, -1, [units, blocks])).astype(np.float16))
    w = m.constant("int4", m.integers("int4", [units, columns], -8, 7))
    details = {"type": "BlockwiseQuantization", "scales": scales, "zero_points": -1, "block_size": block}
    m.tensors[w].fields["details"] = details
    bias = m.constant("float32", m.floats([units], special=0)) if m.chance(0.5) else -1
    options = {"asymmetric_quantize_inputs": m.chance(0.5)}
    m.operator("FULLY_CONNECTED", [small(m, [rows, columns]), w, bias], [m.output("float32")], **options, version=13)


def sequence(m, width, time_major):
    time, batch = m.integer(1, 5), m.integer(1, 3)
    return ([time, batch, width] if time_major else [batch, time, width]), batch


@generator("BIDIRECTIONAL_SEQUENCE_RNN", "aux-float32", "aux-hybrid")
def bidirectional_rnn(m, kind):
    """LiteRT: hybrid time-major sequences run as often as they have steps; batch-major ones without auxiliary weights
    do not read the auxiliary input."""
    kind = kind.removeprefix("aux-")
    width, time_major, merged = m.dimension(16), kind == "float32" and m.chance(0.5), m.chance(0.5)
    shape, batch = sequence(m, width, time_major)
    m.runs = m.integer(1, 2)
    forward, backward = rnn_parts(m, kind, width, batch), rnn_parts(m, kind, width, batch)
    aux = [small(m, shape), -1, -1]
    if not time_major or m.chance(0.6):  # both directions add it; as wide as the input, which LiteRT takes it to be

        def matrix(units):
            if kind == "float32":
                return m.constant("float32", m.rng.normal(0, 0.4, [units, width]))
            codes = m.integers("int8", [units, width], -127, 127)
            return m.constant("int8", codes, scale=m.scale_for("int8", 0.8, wild=0), zero_point=0)

        aux[1:] = [matrix(m.shape_of(part[0])[0]) for part in (forward, backward)]
    options = {
        "time_major": time_major,
        "merge_outputs": merged,
        "fused_activation_function": "RELU6",
        "asymmetric_quantize_inputs": m.chance(0.5),
    }
    outputs = [m.output("float32") for _ in range(1 if merged else 2)]
    m.operator(m.name, [small(m, shape), *forward, *backward, *aux], outputs, **options, version=3)


@generator("BIDIRECTIONAL_SEQUENCE_LSTM", "aux-float32", "aux-hybrid")
def bidirectional_lstm(m, kind):
    kind = kind.removeprefix("aux-")
    width, merged = m.dimension(16), m.chance(0.5)
    shape, batch = sequence(m, width, True)
    forward, backward = Lstm(m, kind, width, batch), Lstm(m, kind, width, batch)
    backward.units, backward.size, backward.projected = forward.units, forward.size, forward.projected
    backward.coupled = forward.coupled
    parts = [*forward.weights(), *backward.weights(), *forward.states(), *backward.states()]
    aux = [small(m, shape), *[-1] * 8]
    if m.chance(0.6):
        for first, cell in ((1, forward), (5, backward)):
            aux[first : first + 4] = [
                cell.gate(name, lambda cell=cell: cell.matrix(cell.units, width))
                for name in ("input", "forget", "cell", "output")
            ]
    options = {
        "time_major": True,
        "merge_outputs": merged,
        "fused_activation_function": "TANH",
        "asymmetric_quantize_inputs": m.chance(0.5),
    }
    outputs = [m.output("float32") for _ in range(1 if merged else 2)]
    m.operator(m.name, [small(m, shape), *parts, *aux], outputs, **options, version=3)


OLD = ["CONV_2D", "FULLY_CONNECTED", "SVDF", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN",
       "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"]  # fmt: skip


def as_old_models_say(m, kind):
    """Hybrid weights whose type is UINT8, and whose bytes are int8's all the same."""
    ROWS[m.name, "hybrid"](m, "hybrid")
    codes = [tensor for tensor in m.tensors if tensor.type == "int8"]
    if m.name == "CONV_2D":  # which knows no groups of them, and one scale
        x, w, *_ = m.operators[-1].inputs
        codes = codes if m.shape_of(x)[3] == m.shape_of(w)[3] else []
        for tensor in codes:
            tensor.fields["scale"] = np.full_like(tensor.fields["scale"], np.ravel(tensor.fields["scale"])[0])
    if all(tensor.data is not None for tensor in codes):
        for tensor in codes:
            tensor.type, tensor.data = "uint8", tensor.data.view(np.uint8)


for name in OLD:
    generator(name, "hybrid-uint8")(as_old_models_say)
