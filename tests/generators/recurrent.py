# SPDX-License-Identifier: Apache-2.0
"""Operators that remember: SVDF, RNN, LSTM, in their sequences and directions."""

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from generators import generator

ACTIVATION = schema.ActivationFunctionType


def matrix(m, kind, shape, magnitude=0.5):
    """Constant weights: floats, or symmetric int8 codes with one scale."""
    if kind == "float32":
        return m.constant("float32", m.floats(shape, special=0, magnitude=magnitude))
    codes = np.clip(np.round(m.rng.normal(0, 50, shape)), -127, 127)
    return m.constant("int8", codes, scale=float(np.float32(magnitude / 40 * 2 ** m.rng.uniform(-1, 1))), zero_point=0)


def vector(m, count, magnitude=0.5):
    return m.constant("float32", m.floats([count], special=0, magnitude=magnitude))


def rows(m, shape, zero=0.1):
    """Floats without infinities or NaN; some rows, or all of them, may be zero."""

    def draw():
        values = m.floats(shape, special=0)
        if m.chance(zero):
            values[m.integer(0, shape[0] - 1)] = 0
        return values * np.float32(0 if m.chance(zero / 4) else 1)

    return m.input("float32", shape, draw=draw)


def activation(m):
    return m.pick(ACTIVATION.NONE, ACTIVATION.RELU, ACTIVATION.RELU_N1_TO_1, ACTIVATION.RELU6, ACTIVATION.TANH)


def sequence(m, width):
    """A shape [batch, time, width] or [time, batch, width], the batch, and whether time is major."""
    batch, time, major = m.integer(1, 4), m.integer(1, 6), m.chance(0.5)
    return [time, batch, width] if major else [batch, time, width], batch, major


# ---- SVDF ----


@generator("SVDF", "float32", "hybrid", "int8")
def svdf(m, kind):
    batch, inputs, memory, rank = m.integer(1, 3), m.dimension(), m.integer(1, 12), m.integer(1, 3)
    filters = rank * m.integer(1, 12)
    m.runs = 3
    if kind == "int8":
        x = m.input("int8", [batch, inputs])
        scale = {name: float(np.float32(10 ** m.rng.uniform(-3, -1))) for name in ("feature", "time")}
        feature = m.constant(
            "int8", m.integers("int8", [filters, inputs], -127, 127), scale=scale["feature"], zero_point=0
        )
        time = m.constant("int16", m.codes("int16", [filters, memory]), scale=scale["time"] / 500, zero_point=0)
        size = m.parameters[x]["scale"] * 60 * scale["feature"] * 60 * np.sqrt(inputs)
        state_scale = m.scale_for("int16", size)
        terms = float(np.sqrt(memory * rank))
        bias_scale = float(np.float32(state_scale * scale["time"] / 500))
        bias = m.constant("int32", m.integers("int32", [filters // rank], -(2**20), 2**20), scale=bias_scale, zero_point=0)
        state = m.variable("int16", [batch, filters * memory], scale=state_scale, zero_point=0)
        output = m.output("int8", **m.affine("int8", size * scale["time"] / 500 * 2**14 * terms))
        act = ACTIVATION.RELU
    else:
        weights = "float32" if kind == "float32" else "int8"
        x = rows(m, [batch, inputs])
        feature, time = matrix(m, weights, [filters, inputs]), matrix(m, weights, [filters, memory])
        bias, state = vector(m, filters // rank), m.variable("float32", [batch, filters * memory])
        output, act = m.output("float32"), activation(m)
    options = schema.SVDFOptionsT(
        rank=rank, fusedActivationFunction=act, asymmetricQuantizeInputs=kind == "hybrid" and m.chance(0.5)
    )
    inputs = [x, feature, time, bias if m.chance(0.8) else -1, state]
    m.operator("SVDF", inputs, [output], options, 4)


# ---- RNN ----


def rnn_cell(m, weights, inputs, units, batch):
    """W, R, bias and the state."""
    return [
        matrix(m, weights, [units, inputs]),
        matrix(m, weights, [units, units], 1 / np.sqrt(units)),
        vector(m, units),
        m.variable("float32", [batch, units]),
    ]


@generator("RNN", "float32", "hybrid")
def rnn(m, kind):
    weights = "float32" if kind == "float32" else "int8"
    batch, inputs, units = m.integer(1, 4), m.dimension(), m.dimension()
    m.runs = 2
    cell = rnn_cell(m, weights, inputs, units, batch)
    options = schema.RNNOptionsT(fusedActivationFunction=m.pick(ACTIVATION.TANH, ACTIVATION.RELU6, ACTIVATION.RELU_N1_TO_1))
    options.asymmetricQuantizeInputs = m.chance(0.5)
    m.operator("RNN", [rows(m, [batch, inputs]), *cell], [m.output("float32")], options, 3)


@generator("UNIDIRECTIONAL_SEQUENCE_RNN", "float32", "hybrid")
def unidirectional_rnn(m, kind):
    weights = "float32" if kind == "float32" else "int8"
    inputs, units = m.dimension(), m.dimension()
    shape, batch, major = sequence(m, inputs)
    m.runs = 2
    cell = rnn_cell(m, weights, inputs, units, batch)
    options = schema.SequenceRNNOptionsT(timeMajor=major, asymmetricQuantizeInputs=m.chance(0.5))
    options.fusedActivationFunction = m.pick(ACTIVATION.TANH, ACTIVATION.RELU6, ACTIVATION.RELU_N1_TO_1)
    m.operator(m.name, [rows(m, shape), *cell], [m.output("float32")], options, 3)


@generator("BIDIRECTIONAL_SEQUENCE_RNN", "float32", "hybrid")
def bidirectional_rnn(m, kind):
    weights = "float32" if kind == "float32" else "int8"
    inputs, units, back = m.dimension(), m.dimension(), m.dimension()
    shape, batch, major = sequence(m, inputs)
    cells = [*rnn_cell(m, weights, inputs, units, batch), *rnn_cell(m, weights, inputs, back, batch)]
    mode = m.pick("plain", "crossed", "stacked")
    aux = [-1, -1, -1]
    if mode != "plain":
        aux[0] = rows(m, shape)
    if mode == "crossed":  # as wide as the input: LiteRT takes it to be
        aux[1:] = [matrix(m, weights, [units, inputs]), matrix(m, weights, [back, inputs])]
    merged = m.chance(0.5)
    options = schema.BidirectionalSequenceRNNOptionsT(timeMajor=major, mergeOutputs=merged)
    options.fusedActivationFunction = m.pick(ACTIVATION.TANH, ACTIVATION.RELU6, ACTIVATION.RELU_N1_TO_1)
    options.asymmetricQuantizeInputs = m.chance(0.5)
    outputs = [m.output("float32") for _ in range(1 if merged else 2)]
    m.operator(m.name, [rows(m, shape), *cells, *aux], outputs, options, 3)


# ---- LSTM ----


def sizes(m):
    """Inputs, cells, outputs, and whether there is a projection."""
    cells = m.dimension()
    projected = m.chance(0.4)
    return m.dimension(), cells, m.dimension() if projected else cells, projected


def lstm_cell(m, weights, inputs, cells, outputs, projected, peephole=None, cifg=None):
    """The 17 tensors from the input weights to the projection's bias; whether the input gate is left out."""
    cifg = m.chance(0.3) if cifg is None else cifg
    peephole = m.chance(0.3) if peephole is None else peephole
    gates = [not cifg, True, True, True]

    def of_gates(make, there=gates):
        return [make() if gate else -1 for gate in there]

    tensors = of_gates(lambda: matrix(m, weights, [cells, inputs]))
    tensors += of_gates(lambda: matrix(m, weights, [cells, outputs]))
    tensors += of_gates(lambda: matrix(m, weights, [cells]), [peephole and not cifg, peephole, peephole])
    tensors += of_gates(lambda: vector(m, cells))
    tensors += [matrix(m, weights, [outputs, cells]) if projected else -1]
    tensors += [vector(m, outputs) if projected and m.chance(0.5) else -1]
    return tensors, cifg


def clip(m):
    return float(m.pick(0, 0, 0, 0.5, 3))


def float_lstm(m, kind, shape, batch, inputs):
    """Inputs of an LSTM of floats or of floats and int8 weights."""
    weights = "float32" if kind == "float32" else "int8"
    _, cells, outputs, projected = sizes(m)
    tensors, cifg = lstm_cell(m, weights, inputs, cells, outputs, projected)
    states = [m.variable("float32", [batch, outputs]), m.variable("float32", [batch, cells])]
    norm = []
    if m.chance(0.5):
        norm = [-1] * 4
        if m.chance(0.6):
            norm = [-1 if cifg and gate == 0 else vector(m, cells, 1) for gate in range(4)]
    return [rows(m, shape), *tensors, *states, *norm]


def integer_lstm(m, shape, batch, inputs):
    """Inputs of an LSTM of int8 with 16-bit cells, its output's parameters and its intermediate tensors."""
    _, cells, outputs, projected = sizes(m)
    cifg, normed = m.chance(0.3), m.chance(0.4)
    peephole = m.chance(0.3) and not projected  # LiteRT's peepholes end at the number of outputs
    gates = [not cifg, True, True, True]
    x = m.input("int8", shape)
    s_x = m.parameters[x]["scale"] = float(np.float32(2 ** m.rng.uniform(-7, -4)))
    m.tensors[x].quantization.scale = [s_x]
    s_h, z_h = float(np.float32(2 ** m.rng.uniform(-8, -6))), m.zero_point("int8")

    def codes(shape, type="int8", magnitude=50, low=-7, high=-5):
        limit = 127 if type == "int8" else 32767
        values = np.clip(np.round(m.rng.normal(0, magnitude, shape)), -limit, limit)
        return m.constant(type, values, scale=float(np.float32(2 ** m.rng.uniform(low, high))), zero_point=0)

    def of_gates(make, there=gates):
        return [make() if gate else -1 for gate in there]

    def bias(count):
        return m.constant("int32", m.integers("int32", [count], -(2**14), 2**14), scale=2.0**-12, zero_point=0)

    tensors = of_gates(lambda: codes([cells, inputs]))
    tensors += of_gates(lambda: codes([cells, outputs]))
    tensors += of_gates(lambda: codes([cells], "int16", 8000, -15, -13), [peephole and not cifg, peephole, peephole])
    tensors += of_gates(lambda: bias(cells))
    tensors += [codes([outputs, cells]) if projected else -1]
    tensors += [bias(outputs) if projected and m.chance(0.5) else -1]
    cell_scale = 2.0 ** m.integer(-15, -9)
    states = [
        m.variable("int8", [batch, outputs], scale=s_h, zero_point=z_h),
        m.variable("int16", [batch, cells], scale=cell_scale, zero_point=0),
    ]
    norm = []
    if normed:
        norm = of_gates(lambda: codes([cells], "int16", 8000, -15, -12))
    elif m.chance(0.5):
        norm = [-1] * 4
    hidden = {"scale": float(np.float32(2 ** m.rng.uniform(-8, -7))), "zero_point": m.zero_point("int8")}
    if not projected:
        hidden = {"scale": s_h, "zero_point": z_h}
    intermediates = [
        m.tensor("int16", [], scale=float(np.float32(2 ** m.rng.uniform(-13, -10))), zero_point=0) for _ in range(4)
    ]
    intermediates.append(m.tensor("int8", [], **hidden))
    return [x, *tensors, *states, *norm], {"scale": s_h, "zero_point": z_h}, intermediates


def lstm_operator(m, kind, shape, batch, inputs, options, version):
    m.runs = 2
    if kind == "int8":
        tensors, output, intermediates = integer_lstm(m, shape, batch, inputs)
        options.fusedActivationFunction = ACTIVATION.TANH
        m.operator(m.name, tensors, [m.output("int8", **output)], options, version, intermediates=intermediates)
    else:
        tensors = float_lstm(m, kind, shape, batch, inputs)
        options.fusedActivationFunction = m.pick(ACTIVATION.TANH, ACTIVATION.TANH, ACTIVATION.RELU6)
        m.operator(m.name, tensors, [m.output("float32")], options, version)


@generator("LSTM", "float32", "hybrid", "int8")
def lstm(m, kind):
    batch, inputs = m.integer(1, 4), m.dimension()
    options = schema.LSTMOptionsT(cellClip=clip(m), projClip=clip(m), asymmetricQuantizeInputs=m.chance(0.5))
    lstm_operator(m, kind, [batch, inputs], batch, inputs, options, 4)


@generator("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32", "hybrid", "int8")
def unidirectional_lstm(m, kind):
    inputs = m.dimension()
    shape, batch, major = sequence(m, inputs)
    options = schema.UnidirectionalSequenceLSTMOptionsT(
        cellClip=clip(m), projClip=clip(m), timeMajor=major, asymmetricQuantizeInputs=m.chance(0.5)
    )
    lstm_operator(m, kind, shape, batch, inputs, options, 3)


@generator("BIDIRECTIONAL_SEQUENCE_LSTM", "float32", "hybrid")
def bidirectional_lstm(m, kind):
    weights = "float32" if kind == "float32" else "int8"
    inputs, cells, outputs, projected = sizes(m)
    shape, batch, major = sequence(m, inputs)
    if not major:
        batch, shape = 1, [1, *shape[1:]]  # LiteRT misplaces the states of further batches where outputs are merged
    back_cells, back_outputs, back_projected = cells, outputs, projected  # as LiteRT wants it
    mode = m.pick("plain", "crossed", "stacked")
    merged = m.chance(0.5)
    forward, cifg = lstm_cell(m, weights, inputs, cells, outputs, projected)
    backward, back_cifg = lstm_cell(m, weights, inputs, back_cells, back_outputs, back_projected, cifg=cifg)
    states = [
        m.variable("float32", [batch, n]) for n in (outputs, cells, back_outputs, back_cells)
    ]
    aux = [-1] * 9
    if mode != "plain":
        aux[0] = rows(m, shape)
    if mode == "crossed":
        for first, count, left_out in ((1, cells, cifg), (5, back_cells, back_cifg)):
            for gate in range(4):
                if gate or not left_out:
                    aux[first + gate] = matrix(m, weights, [count, inputs])
    options = schema.BidirectionalSequenceLSTMOptionsT(
        cellClip=clip(m), projClip=clip(m), timeMajor=major, mergeOutputs=merged, asymmetricQuantizeInputs=m.chance(0.5)
    )
    options.fusedActivationFunction = m.pick(ACTIVATION.TANH, ACTIVATION.RELU6)
    found = [m.output("float32") for _ in range(1 if merged else 2)]
    m.operator(m.name, [rows(m, shape), *forward, *backward, *states, *aux], found, options, 3)


@generator("LSTM", "basic-float32", "basic-uint8")
def basic_lstm(m, kind):
    batch, inputs, cells = m.integer(1, 4), m.dimension(), m.dimension()
    m.runs = 2
    if kind == "basic-float32":
        tensors = [
            rows(m, [batch, inputs]),
            m.variable("float32", [batch, cells]),
            matrix(m, "float32", [4 * cells, inputs + cells]),
            vector(m, 4 * cells),
            m.variable("float32", [batch, cells]),
        ]
        outputs = [m.output("float32") for _ in range(4)]
    else:
        one = {"scale": 1 / 128, "zero_point": 128}
        w = {"scale": float(np.float32(2 ** m.rng.uniform(-8, -5))), "zero_point": m.zero_point("uint8")}
        bias = {"scale": float(np.float32(w["scale"] / 128)), "zero_point": 0}
        tensors = [
            m.input("uint8", [batch, inputs], **one),
            m.variable("uint8", [batch, cells], **one),
            m.constant("uint8", m.codes("uint8", [4 * cells, inputs + cells]), **w),
            m.constant("int32", m.integers("int32", [4 * cells], -(2**15), 2**15), **bias),
            m.variable("int16", [batch, cells], scale=2.0**-11, zero_point=0),
        ]
        outputs = [
            m.output("uint8", **one),
            m.output("int16", scale=2.0**-11, zero_point=0),
            m.output("uint8", **one),
            m.output("int16", scale=2.0**-12, zero_point=0),
        ]
    options = schema.LSTMOptionsT(kernelType=schema.LSTMKernelType.BASIC, fusedActivationFunction=ACTIVATION.TANH)
    m.operator("LSTM", tensors, outputs, options, 2)
