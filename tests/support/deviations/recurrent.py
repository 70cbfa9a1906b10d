# SPDX-License-Identifier: Apache-2.0
"""Recurrent operators, on their first invoke: states are zero."""

import numpy as np

from deviations.hybrid import hybrid_products, quantized
from deviations.table import UNPROMISED, deviation
from deviations.values import activated, f32, kind, known, multiplier, multiply, nearest, option, real

RECURRENT = ("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "SVDF")
RECURRENT += ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_direction(node, first, x, aux, aux_weights, reverse):
    """[time, batch, unit] of an RNN whose x is [time, batch, input]."""
    w, r, bias, _ = (node.inputs[first + i] for i in range(4))
    hybrid = kind(w) == "int8"
    asymmetric = bool(node.options["asymmetric_quantize_inputs"])

    def product(rows, matrix):
        if not hybrid:
            return rows @ matrix.value.T
        out = []
        for row in rows:
            q, scale = quantized(row, asymmetric)
            out.append((matrix.value.astype(np.int64) @ q).astype(f32) * (matrix.scale.astype(f32) * scale))
        return np.array(out, f32)

    h = np.zeros((x.shape[1], w.value.shape[0]), f32)
    out = np.zeros((*x.shape[:2], h.shape[1]), f32)
    for t in reversed(range(x.shape[0])) if reverse else range(x.shape[0]):
        h = bias.value + product(x[t], w) + (product(aux[t], aux_weights) if aux_weights else 0) + product(h, r)
        h = activated(node, h.astype(f32))
        out[t] = h
    return out


def both_directions(node):
    major = bool(node.options["time_major"])

    def by_time(operand):
        return operand and (operand.value if major else np.swapaxes(operand.value, 0, 1))

    x, aux = by_time(node.inputs[0]), by_time(node.inputs[9]) if node.inputs[9] else None
    crossed = node.inputs[10] is not None
    forward = rnn_direction(node, 1, x, aux, node.inputs[10] if crossed else None, False)
    back_x = aux if aux is not None and not crossed else x
    backward = rnn_direction(node, 5, back_x, aux, node.inputs[11] if crossed else None, True)
    found = [forward, backward]
    if node.options["merge_outputs"]:
        found = [np.concatenate(found, axis=2)]
    found = [v if major else np.swapaxes(v, 0, 1) for v in found]
    return [(v, 1e-5) for v in found]


def bidirectional(m, kind_, major, aux):
    shape = [3, 2, 4] if major else [2, 3, 4]
    x = m.input("float32", shape, draw=lambda: m.floats(shape, special=0))
    parts = []
    for _ in range(2):
        for columns in (4, 5):
            values = m.integers("int8", [5, columns], -127, 127)
            if kind_ == "int8":
                parts.append(m.constant("int8", values, scale=0.004, zero_point=0))
            else:
                parts.append(m.constant("float32", values * f32(0.004)))
        parts += [m.constant("float32", np.zeros(5)), m.variable("float32", [2, 5])]
    options = {"time_major": major, "merge_outputs": True, "fused_activation_function": "RELU6"}
    beside = m.input("float32", shape, draw=lambda: m.floats(shape, special=0)) if aux else -1
    m.operator("BIDIRECTIONAL_SEQUENCE_RNN", [x, *parts, beside, -1, -1], [m.output("float32")], **options, version=3)


def is_bidirectional(node):
    return known(node.inputs[0], *node.inputs[1:4], *node.inputs[5:8])


@deviation(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    when="hybrid and time-major, more than one step",
    litert="runs the sequence as often as it has steps, from where it stands",
    tq="once",
    example=lambda m: bidirectional(m, "int8", True, False),
)
def repeated_sequence(node):
    if not is_bidirectional(node) or kind(node.inputs[1]) != "int8" or not node.options["time_major"]:
        return None
    return both_directions(node) if node.inputs[0].shape[0] > 1 else None


@deviation(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    when="an auxiliary input without weights, batch-major",
    litert="the backward direction reads the input",
    tq="the backward direction reads the auxiliary input, as in time-major sequences",
    example=lambda m: bidirectional(m, "float32", False, True),
)
def unread_input(node):
    if not is_bidirectional(node) or node.options["time_major"] or not node.inputs[9] or node.inputs[10]:
        return None
    return both_directions(node)


def plain_lstm(node, first, states, x, act=np.tanh):
    """[time, batch, cell] of a float LSTM without peepholes, projection or clips; x: [time, batch, input]."""
    w, r, b = ([node.inputs[first + start + gate].value.astype(float) for gate in range(4)] for start in (0, 4, 11))
    h = np.zeros((x.shape[1], w[1].shape[0]))
    c = h.copy()
    out = []
    for step in x:
        i, f, g, o = (step @ w[k].T + h @ r[k].T + b[k] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * act(g)
        h = sigmoid(o) * act(c)
        out.append(h)
    return np.array(out)


def merged(m):
    x = m.input("float32", [6, 3, 4], draw=lambda: m.floats([6, 3, 4], special=0))

    def matrix(*shape):
        return m.constant("float32", m.floats(shape, special=0, magnitude=0.5))

    parts, states = [], []
    for _ in range(2):
        parts += [matrix(5, 4) for _ in range(4)] + [matrix(5, 5) for _ in range(4)] + [-1] * 3
        parts += [matrix(5) for _ in range(4)] + [-1, -1]
        states += [m.variable("float32", [6, 5]), m.variable("float32", [6, 5])]
    options = {"time_major": False, "merge_outputs": True, "fused_activation_function": "TANH"}
    m.operator(
        "BIDIRECTIONAL_SEQUENCE_LSTM", [x, *parts, *states, *[-1] * 9], [m.output("float32")], **options, version=3
    )


@deviation(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    when="merged outputs, batch-major, more than one batch",
    litert="reads the states of further batches at the distance of the merged output's rows",
    tq="as they lie",
    example=merged,
)
def merged_outputs(node):
    if not node.options["merge_outputs"] or node.options["time_major"] or node.inputs[0].shape[0] < 2:
        return None
    simple = all(node.inputs[i] is None for i in (9, 10, 11, 16, 26, 27, 28, 33, 39))
    if not simple or not known(node.inputs[0], node.inputs[1], node.inputs[18]) or kind(node.inputs[2]) != "float32":
        return None
    x = np.swapaxes(node.inputs[0].value.astype(float), 0, 1)
    back = plain_lstm(node, 18, 37, x[::-1])[::-1]
    both = np.concatenate([plain_lstm(node, 1, 35, x), back], axis=2)
    return [(np.swapaxes(both, 0, 1).astype(f32), 1e-5)]


def projected_peepholes(m):
    x = m.input("int8", [2, 4], scale=0.02, zero_point=0)

    def matrix(*shape):
        return m.constant("int8", m.integers("int8", shape, -127, 127), scale=0.01, zero_point=0)

    def peephole():
        return m.constant("int16", np.full(6, 32767), scale=2.0**-12, zero_point=0)

    tensors = [matrix(6, 4) for _ in range(4)] + [matrix(6, 2) for _ in range(4)] + [peephole() for _ in range(3)]
    tensors += [m.constant("int32", np.full(6, 9000), scale=0.0002, zero_point=0) for _ in range(4)]
    tensors += [matrix(2, 6), -1]
    state = {"scale": 0.02, "zero_point": 0}
    tensors += [m.variable("int8", [2, 2], **state), m.variable("int16", [2, 6], scale=2.0**-11, zero_point=0)]
    between = [m.tensor("int16", [], scale=2.0**-12, zero_point=0) for _ in range(4)]
    between.append(m.tensor("int8", [], scale=1 / 128, zero_point=0))
    m.operator(
        "LSTM",
        [x, *tensors],
        [m.output("int8", **state)],
        fused_activation_function="TANH",
        intermediates=between,
        version=4,
    )


@deviation(
    "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    when="INT8, peepholes and a projection, more or fewer outputs than cells",
    litert="takes as many peepholes a batch as there are outputs",
    tq="as there are cells",
    example=projected_peepholes,
)
def short_peepholes(node):
    if kind(node.inputs[0]) != "int8" or node.inputs[11] is None or node.inputs[16] is None or node.inputs[1] is None:
        return None
    normalized = len(node.inputs) > 21 and node.inputs[21] is not None
    if node.name != "LSTM" or normalized or not known(node.inputs[0], *node.inputs[1:9], node.inputs[11]):
        return None
    cells, outputs = node.inputs[8].shape
    if outputs == cells:
        return None
    x = real(node.inputs[0])
    s_x = float(node.inputs[0].scale[0])
    i, g, o = (
        x @ real(node.inputs[k]).T + node.inputs[k + 11].value * float(node.inputs[k].scale[0]) * s_x for k in (1, 3, 4)
    )
    c = sigmoid(i) * np.tanh(g)  # the state was zero
    h = sigmoid(o + c * real(node.inputs[11])) * np.tanh(c)
    return [(nearest(node.outputs[0], h @ real(node.inputs[16]).T), 4)]


def far_gates(m):
    x = m.input("int8", [2, 12], np.full([2, 12], 120), scale=1.5, zero_point=-128)

    def matrix(*shape):
        return m.constant("int8", m.integers("int8", shape, 60, 127), scale=2.5, zero_point=0)

    tensors = [matrix(6, 12) for _ in range(4)] + [matrix(6, 6) for _ in range(4)] + [-1] * 3
    tensors += [m.constant("int32", np.zeros(6), scale=3.75, zero_point=0) for _ in range(4)] + [-1, -1]
    state = {"scale": 1 / 128, "zero_point": 0}
    tensors += [m.variable("int8", [2, 6], **state), m.variable("int16", [2, 6], scale=2.0**-11, zero_point=0)]
    between = [m.tensor("int16", [], scale=2.0**-12, zero_point=0) for _ in range(4)] + [m.tensor("int8", [], **state)]
    options = {"fused_activation_function": "TANH", "intermediates": between, "version": 4}
    m.operator("LSTM", [x, *tensors], [m.output("int8", **state)], **options)


@deviation(
    "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    when="INT8, a gate's sum times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any values",
    tq="saturates",
    example=far_gates,
)
def gates_beyond_32_bits(node):
    if kind(node.inputs[0]) != "int8" or any(node.inputs[20:24]) or not known(node.inputs[0], *node.inputs[2:5]):
        return None
    x = node.inputs[0].value.astype(np.int64) - int(node.inputs[0].zero_point[0])
    gates, is_far = {}, False
    for k in range(1, 5):
        w, bias = node.inputs[k], node.inputs[k + 11]
        if w is None or bias is None:
            continue
        step = float(node.inputs[0].scale[0]) * float(w.scale[0])
        sums = x @ w.value.astype(np.int64).T + bias.value
        is_far |= bool((abs(sums) * 2.0 ** max(multiplier(step * 4096)[1], 0) >= 2**31).any())
        gates[k] = sums * step
    if not is_far:
        return None
    if node.name != "LSTM" or len(gates) < 4 or any(node.inputs[9:12]) or node.inputs[16] or node.options["cell_clip"]:
        return [UNPROMISED]  # said for the plainest form only, from a state of zero
    with np.errstate(over="ignore"):
        c = sigmoid(gates[1]) * np.tanh(gates[3])
        return [(nearest(node.outputs[0], sigmoid(gates[4]) * np.tanh(c)), 4)]


def small_states(m):
    x = m.input("int8", [1, 8], scale=0.01, zero_point=3)
    feature = m.constant("int8", m.integers("int8", [6, 8], -100, 100), scale=0.01, zero_point=0)
    time = m.constant("int8", m.integers("int8", [6, 40], -100, 100), scale=0.01, zero_point=0)
    bias = m.constant("int32", [300, -300, 0], scale=0.0001, zero_point=0)
    state = m.variable("int8", [1, 240], scale=0.02, zero_point=-5)
    options = {"rank": 2, "fused_activation_function": "RELU"}
    y = m.output("int8", scale=0.01, zero_point=7)
    m.operator("SVDF", [x, feature, time, bias, state], [y], **options, version=3)


@deviation(
    "SVDF",
    when="INT8 with INT8 time weights and state, as in tflite-micro",
    litert="reads them as INT16, and past them; may end the process",
    tq="tflite-micro's arithmetic",
    example=small_states,
)
def small_states_of_svdf(node):
    x, feature, time, bias, state = node.inputs
    if not known(x, feature, time) or kind(time) != "int8" or kind(x) != "int8" or bias is None:
        return None
    out = node.outputs[0]
    acc = (x.value.astype(np.int64) - int(x.zero_point[0])) @ feature.value.astype(np.int64).T
    scale = f32(x.scale[0]) * f32(feature.scale[0]) / f32(state.scale[0])
    zero = int(state.zero_point[0])
    newest = np.clip(multiply(acc, *multiplier(scale)) + zero, -128, 127) - zero  # the other steps are still 0
    sums = (newest * time.value[:, -1].astype(np.int64)).reshape(len(newest), -1, node.options["rank"]).sum(axis=2)
    scale = f32(state.scale[0]) * f32(time.scale[0]) / f32(out.scale[0])
    q = multiply(sums + bias.value, *multiplier(scale)) + int(out.zero_point[0])
    return [np.clip(q, -128, 127).astype(np.int8)]


def scales_of_rows(m):
    x = m.input("float32", [2, 6], draw=lambda: m.floats([2, 6], special=0))
    parts = []
    for columns in (6, 4):
        values, scales = m.integers("int8", [4, columns], -127, 127), [0.01, 0.02, 0.005, 0.03]
        parts.append(m.constant("int8", values, scale=scales, zero_point=[0] * 4, quantized_dimension=0))
    parts += [m.constant("float32", np.float32([0.5, 0, -0.5, 1])), m.variable("float32", [2, 4])]
    m.operator("RNN", [x, *parts], [m.output("float32")], fused_activation_function="RELU", version=3)


@deviation(
    *RECURRENT,
    when="FLOAT32 with INT8 weights, a scale for each row",
    litert="takes the scales for 0",
    tq="each row's scale",
    example=scales_of_rows,
)
def rows_of_scales(node):
    if not any(o is not None and len(o.scale) > 1 for o in node.inputs):
        return None
    if node.name != "RNN":
        return [None] * len(node.outputs)
    x, _, _, bias, _ = node.inputs  # from a state of zero
    return [activated(node, bias.value + hybrid_products(node, x.value, asymmetric=False))]


def least_weights(m):
    x = m.input("float32", [1, 32], -np.linspace(1, 2, 32).reshape(1, 32))
    parts = [m.constant("int8", np.full((4, n), value), scale=0.01, zero_point=0) for n, value in ((32, -128), (4, 1))]
    parts += [m.constant("float32", np.float32([0.5, 0, -0.5, 1])), m.variable("float32", [1, 4])]
    m.operator("RNN", [x, *parts], [m.output("float32")], fused_activation_function="NONE", version=3)


@deviation(
    *RECURRENT,
    when="FLOAT32 with INT8 weights of which one is -128",
    litert="takes it for 128 beside a negative quantized value",
    tq="-128",
    example=least_weights,
)
def least_values(node):
    weights = [o for o in node.inputs[1:] if o is not None and kind(o) in ("int8", "uint8") and len(o.shape) == 2]
    values = [o.value for o in weights if o.value is not None]
    if kind(node.inputs[0]) != "float32" or not any((np.asarray(v).view(np.int8) == -128).any() for v in values):
        return None
    if node.name != "RNN" or kind(node.inputs[1]) != "int8" or node.options["asymmetric_quantize_inputs"]:
        return [UNPROMISED] * len(node.outputs)
    x, _, _, bias, _ = node.inputs  # from a state of zero
    return [activated(node, bias.value + hybrid_products(node, x.value, asymmetric=False))]


def sparse_states(m):
    """Two invokes on the same input: the first starts from a state of zero."""
    from generators.sparse import sparse_weights

    m.runs = 2
    x = m.input("float32", [1, 16], np.linspace(-9, 9, 16).reshape(1, 16))
    recurrent, matrices = [], []
    for _ in range(4):
        q = m.integers("int8", [16, 16], -127, 127)
        matrices.append(m.constant("int8", q, scale=0.0005, zero_point=0))
        recurrent.append(sparse_weights(m, "int8", 16, 16, 16, scale=0.02, zero_point=0))
    matrices[3] = sparse_weights(m, "int8", 16, 16, 16, scale=0.0005, zero_point=0)
    biases = [m.constant("float32", np.full(16, 0.5, f32)) for _ in range(4)]
    projection = sparse_weights(m, "int8", 16, 16, 16, chance=1, scale=0.01, zero_point=0)
    states = [m.variable("float32", [1, 16]) for _ in range(2)]
    inputs = [x, *matrices, *recurrent, -1, -1, -1, *biases, projection, -1, *states]
    m.operator("LSTM", inputs, [m.output("float32")], fused_activation_function="TANH", version=4)


def by_weights(operand_, row):
    """A row of floats, quantized, times weights."""
    q, scale = quantized(row, False)
    return (operand_.value.astype(np.int64) @ q) * float(scale) * float(operand_.scale[0])


@deviation(
    "LSTM",
    when="FLOAT32 with sparse INT8 weights of the state, or of anything if asymmetric_quantize_inputs",
    litert="takes the input's scale for the state's, and leaves out zero points",
    tq="as of dense weights",
    example=sparse_states,
)
def sparse_states_of_lstm(node):
    if len(node.inputs) < 20 or not node.inputs[8] or not node.inputs[8].is_sparse:
        return None
    x, w, r = node.inputs[0].value[0], node.inputs[1:5], node.inputs[5:9]
    b = [o.value for o in node.inputs[12:16]]
    h = c = np.zeros(len(b[0]))
    for _ in range(2):
        i, f, g, o = (b[k] + by_weights(w[k], x) + by_weights(r[k], h) for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = by_weights(node.inputs[16], sigmoid(o) * np.tanh(c))
    return [(f32(h)[None], 0.02)]


def sparse_projection(m):
    from generators.sparse import sparse_weights

    x = m.input("float32", [2, 16], np.linspace(-9, 9, 32).reshape(2, 16))
    matrices = [
        m.constant("int8", m.integers("int8", [16, 16], -127, 127), scale=0.0005, zero_point=0) for _ in range(8)
    ]
    biases = [m.constant("float32", np.full(16, 0.5, f32)) for _ in range(4)]
    projection = sparse_weights(m, "int8", 16, 16, 16, scale=0.01, zero_point=0)
    states = [m.variable("float32", [2, 16]) for _ in range(2)]
    inputs = [x, *matrices, -1, -1, -1, *biases, projection, -1, *states]
    m.operator("LSTM", inputs, [m.output("float32")], fused_activation_function="TANH", version=4)


@deviation(
    "LSTM",
    when="FLOAT32 with sparse INT8 weights, while those of the input to the output gate are dense",
    litert="reads the stored weights as if none were left out, and past their end",
    tq="the weights",
    example=sparse_projection,
)
def sparse_without_output_gate(node):
    if len(node.inputs) < 20 or not any(o is not None and o.is_sparse for o in node.inputs) or node.inputs[4].is_sparse:
        return None
    clipped = node.options["cell_clip"] or node.options["proj_clip"]
    if not known(*node.inputs[1:9], *node.inputs[12:17]) or any(node.inputs[9:12]) or node.inputs[20:] or clipped:
        return [UNPROMISED]  # said for the plainest form only, from a state of zero
    rows = []
    for x in node.inputs[0].value:
        i, _, g, o = (node.inputs[12 + k].value + by_weights(node.inputs[1 + k], x) for k in range(4))
        rows.append(by_weights(node.inputs[16], sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(g))))
    return [(f32(rows), 0.02)]


def linear_lstm(m):
    x = m.input("float32", [3, 2, 4], draw=lambda: m.floats([3, 2, 4], special=0))
    matrices = [m.constant("float32", m.rng.normal(0, 0.4, [5, n])) for n in (4, 4, 4, 4, 5, 5, 5, 5)]
    biases = [m.constant("float32", m.rng.normal(0, 0.4, [5])) for _ in range(4)]
    states = [m.variable("float32", [2, 5]) for _ in range(2)]
    inputs = [x, *matrices, -1, -1, -1, *biases, -1, -1, *states, *[-1] * 4]
    m.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [m.output("float32")], time_major=True, version=3)


@deviation(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    when="FLOAT32 without a fused activation",
    litert="gives memory that another gate left, instead of the cells",
    tq="the cells",
    example=linear_lstm,
)
def linear_lstms(node):
    if (
        len(node.inputs) < 20
        or kind(node.inputs[0]) != "float32"
        or option(node, "fused_activation_function") != "NONE"
    ):
        return None
    optional = (*node.inputs[9:12], *node.inputs[16:18], *node.inputs[20:])
    weights = (*node.inputs[:9], *node.inputs[12:16])
    plain = node.name == "UNIDIRECTIONAL_SEQUENCE_LSTM" and not any(optional) and known(*weights)
    if not plain or kind(node.inputs[1]) != "float32" or not node.options["time_major"]:
        return [None] * len(node.outputs)  # said for the plainest form only
    out = plain_lstm(node, 1, 0, node.inputs[0].value, act=lambda v: v)
    return [(f32(out), 1e-4)]
