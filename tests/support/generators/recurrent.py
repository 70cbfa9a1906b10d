# SPDX-License-Identifier: Apache-2.0
"""Recurrences: SVDF, LSTMs, RNNs.  Each is invoked a few times, so that its state matters."""

import numpy as np

from generators import generator


@generator("SVDF", "float32", "hybrid", "int8")
def svdf(m, kind):
    batch, width, units, rank = m.integer(1, 3), m.dimension(40), m.dimension(20), m.integer(1, 3)
    filters, memory = units * rank, m.integer(1, 12)
    if kind == "int8" and m.chance(0.15):  # longer than the rows that are added at once
        width, memory = m.integer(1, 5000), m.integer(1, 5000)
    m.runs = m.integer(1, 4)
    options = {"rank": rank, "fused_activation_function": m.pick("NONE", "RELU")}
    has_bias = m.chance(0.7)
    if kind == "int8":
        options["fused_activation_function"] = "RELU"
        x = m.input("int8", [batch, width], **m.affine("int8", 1.0))
        codes, scale = m.codes("int8", [filters, width]), m.scale_for("int8", 0.5)
        feature = m.input_or_constant("int8", [filters, width], codes, chance=0.8, scale=scale, zero_point=0)
        time = m.constant("int16", m.codes("int16", [filters, memory]) // 64, scale=2.0**-9, zero_point=0)
        size = m.parameters[feature]["scale"] * 60 * np.sqrt(width)
        state_scale = m.scale_for("int16", 4 * size)
        bias_scale = float(np.float32(state_scale * 2.0**-9))
        bias = m.constant("int32", m.integers("int32", [units], -(10**5), 10**5), scale=bias_scale, zero_point=0)
        state = m.variable("int16", [batch, memory * filters], scale=state_scale, zero_point=0)
        y = m.output("int8", **m.affine("int8", size * np.sqrt(memory * rank)))
    else:
        x = m.input("float32", [batch, width], draw=lambda: m.floats([batch, width], special=0))
        if kind == "hybrid":
            options["asymmetric_quantize_inputs"] = m.chance(0.5)
            codes = m.integers("int8", [filters, width], -127, 127)
            feature = m.constant("int8", codes, scale=m.scale_for("int8", 0.5), zero_point=0)
            codes = m.integers("int8", [filters, memory], -127, 127)
            time = m.constant("int8", codes, scale=m.scale_for("int8", 0.5), zero_point=0)
        else:
            feature = m.input_or_constant("float32", [filters, width], chance=0.8)
            time = m.input_or_constant("float32", [filters, memory], chance=0.8)
        bias = m.input_or_constant("float32", [units], chance=0.8)
        state = m.variable("float32", [batch, memory * filters])
        y = m.output("float32")
    m.operator("SVDF", [x, feature, time, bias if has_bias else -1, state], [y], **options, version=4)


# ---- LSTM ----

GATES = ("input", "forget", "cell", "output")


class Lstm:
    """The inputs of one direction of an LSTM, in the operators' order."""

    def __init__(self, m, kind, width, batch):
        self.m, self.kind, self.width = m, kind, width
        self.units = m.dimension(20)
        self.projected = m.chance(0.3)
        self.size = m.dimension(12) if self.projected else self.units
        self.coupled, self.peepholes = m.chance(0.3), m.chance(0.3)
        if kind == "int8" and self.size != self.units:
            self.peepholes = False  # LiteRT takes one for each output: tests/deviations_products.py
        if kind == "int8" and self.peepholes and m.chance(0.7):
            self.units = self.size = m.integer(16, 36)  # sixteen are taken together
        self.normalized = m.chance(0.3) if kind in ("float32", "int8") else m.chance(0.2)
        self.batch = batch
        self.products_8 = kind == "int8-products8"
        if self.products_8:
            self.kind = kind = "int8"
            self.projected = self.coupled = self.normalized = True
            self.size, self.peepholes = m.dimension(12), False
        if kind == "int8":
            self.cell_scale = 2.0**-15 if self.products_8 else 2.0 ** -m.integer(9, 12)
            self.hidden = {"scale": m.scale_for("int8", 1.0, wild=0), "zero_point": m.zero_point("int8")}
            self.state = self.hidden if not self.projected else m.affine("int8", 1.0)

    def matrix(self, rows, columns):
        m = self.m
        if self.kind == "float32":
            return m.constant("float32", m.rng.normal(0, 0.4, [rows, columns]))
        codes = m.integers("int8", [rows, columns], -127, 127)
        return m.constant("int8", codes, scale=m.scale_for("int8", 0.8, wild=0), zero_point=0)

    def vector(self, size, integer="int16", scale=None):
        """A bias or a norm: of float32 where the arithmetic is."""
        m = self.m
        if self.kind != "int8":
            return m.constant("float32", m.rng.normal(0, 0.5, [size]))
        if integer == "int32":
            values = m.integers("int32", [size], -(2**14), 2**14)
        else:
            values = m.integers("int16", [size], -(2**15) + 1, 2**15 - 1)
            if m.chance(0.5):
                values = values >> 6 << 6
        return m.constant(integer, values, scale=scale or m.scale_for("int16", 1.0, wild=0), zero_point=0)

    def peephole(self):
        """Quantized as the matrices are; by a power of two, products are often ties."""
        if self.kind != "hybrid":
            return self.vector(self.units, scale=2.0 ** -self.m.integer(13, 15) if self.m.chance(0.5) else None)
        codes = self.m.integers("int8", [self.units], -127, 127)
        return self.m.constant("int8", codes, scale=self.m.scale_for("int8", 0.8, wild=0), zero_point=0)

    def gate(self, name, make):
        return -1 if name == "input" and self.coupled else make()

    def weights(self):
        """Inputs 1 to 17."""
        units, size = self.units, self.size
        found = [self.gate(name, lambda: self.matrix(units, self.width)) for name in GATES]
        found += [self.gate(name, lambda: self.matrix(units, size)) for name in GATES]
        for name in ("input", "forget", "output"):
            found.append(self.gate(name, self.peephole) if self.peepholes else -1)
        found += [self.gate(name, lambda: self.vector(units, "int32", 2.0**-20)) for name in GATES]
        if self.projected:
            found.append(self.matrix(size, units))
            found.append(self.vector(size, "int32", 2.0**-15) if self.products_8 or self.m.chance(0.5) else -1)
        else:
            found += [-1, -1]
        return found

    def states(self):
        """Inputs 18 and 19: what was put out last, and the cells."""
        m = self.m
        if self.kind == "int8":
            return [
                m.variable("int8", [self.batch, self.size], **self.state),
                m.variable("int16", [self.batch, self.units], scale=self.cell_scale, zero_point=0),
            ]
        return [m.variable("float32", [self.batch, n]) for n in (self.size, self.units)]

    def norms(self):
        if not self.normalized:
            return []
        return [self.gate(name, lambda: self.vector(self.units)) for name in GATES]

    def intermediates(self):
        if self.kind != "int8":
            return None
        m = self.m
        if self.products_8:  # of a gate's sum, and of its two products
            scales = [m.scale_for("int8", reach, wild=0) for _ in GATES for reach in (8.0, 2.0, 2.0)]
            scales = [scale / 2**8 if k % 3 == 0 else scale for k, scale in enumerate(scales)]
            return [m.tensor("int8", [], scale=scale, zero_point=m.zero_point("int8")) for scale in scales]
        found = [
            m.tensor(
                "int16", [], scale=m.scale_for("int16", 8.0, wild=0) if self.normalized else 2.0**-12, zero_point=0
            )
            for _ in GATES
        ]
        return [*found, m.tensor("int8", [], **self.hidden)]


def clips(m):
    return m.pick(0.0, 0.0, float(np.float32(m.rng.uniform(0.3, 3))))


@generator("LSTM", "float32", "hybrid", "int8", "int8-products8")
@generator("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32", "hybrid", "int8")
def lstm(m, kind):
    batch, steps, width = m.integer(1, 3), m.integer(1, 5), m.dimension(20)
    m.runs = m.integer(1, 3)
    sequence = m.name != "LSTM"
    time_major = sequence and m.chance(0.5)
    shape = [batch, width]
    if sequence:
        shape = [steps, batch, width] if time_major else [batch, steps, width]
    if kind.startswith("int8"):
        x = m.input("int8", shape, **m.affine("int8", 1.0))
    else:
        x = m.input("float32", shape, draw=lambda: m.floats(shape, special=0))
    cell = Lstm(m, kind, width, batch)
    inputs = [x, *cell.weights(), *cell.states(), *cell.norms()]
    if len(inputs) == 20 and sequence:
        inputs += [-1] * 4
    options = {
        "cell_clip": clips(m),
        "proj_clip": clips(m) if cell.projected else 0.0,
        "fused_activation_function": "TANH",
        "asymmetric_quantize_inputs": kind == "hybrid" and m.chance(0.5),
    }
    if sequence:
        options["time_major"] = time_major
    y = m.output("int8", **cell.state) if cell.kind == "int8" else m.output("float32")
    m.operator(m.name, inputs, [y], **options, intermediates=cell.intermediates(), version=4 if m.name == "LSTM" else 3)


@generator("LSTM", "float32-basic", "uint8-basic")
def basic_lstm(m, kind):
    """The old form: one matrix, one bias, states that are passed in and out."""
    batch, width, units = m.integer(1, 3), m.dimension(16), m.dimension(16)
    options = {"kernel_type": "BASIC", "fused_activation_function": "TANH"}
    shapes = {"x": [batch, width], "h": [batch, units], "w": [4 * units, width + units], "b": [4 * units]}
    if kind == "uint8-basic":
        unit = {"scale": 1 / 128, "zero_point": 128}
        x, h = m.input("uint8", shapes["x"], **unit), m.input("uint8", shapes["h"], **unit)
        w = {"scale": m.scale_for("uint8", 1.0, wild=0), "zero_point": m.integer(100, 150)}
        w = m.constant("uint8", m.codes("uint8", shapes["w"]), **w)
        scale = float(np.float32(m.parameters[w]["scale"] / 128))
        b = m.constant("int32", m.integers("int32", shapes["b"], -20000, 20000), scale=scale, zero_point=0)
        c = {"scale": 2.0**-11, "zero_point": 0}
        state = m.input("int16", shapes["h"], **c)
        outputs = [m.output("uint8", **unit), m.output("int16", **c)]
        outputs += [m.output("uint8", **unit), m.output("int16", **c)]
    else:

        def small(shape):
            return m.input("float32", shape, draw=lambda: m.floats(shape, special=0))

        x, h = small(shapes["x"]), small(shapes["h"])
        w = m.constant("float32", m.rng.normal(0, 0.4, shapes["w"]))
        b = m.constant("float32", m.rng.normal(0, 0.4, shapes["b"]))
        state = small(shapes["h"])
        outputs = [m.output("float32") for _ in range(4)]
    m.operator("LSTM", [x, h, w, b, state], outputs, **options, version=2 if kind == "uint8-basic" else 1)


@generator("BIDIRECTIONAL_SEQUENCE_LSTM", "float32", "hybrid")
def bidirectional_lstm(m, kind):
    batch, steps, width = m.integer(1, 3), m.integer(1, 5), m.dimension(16)
    m.runs = m.integer(1, 2)
    time_major, merged = m.chance(0.5), m.chance(0.5)
    if merged and not time_major:
        batch = 1  # LiteRT misplaces the states of others: tests/deviations_products.py
    shape = [steps, batch, width] if time_major else [batch, steps, width]
    x = m.input("float32", shape, draw=lambda: m.floats(shape, special=0))
    forward, backward = Lstm(m, kind, width, batch), Lstm(m, kind, width, batch)
    backward.units, backward.size, backward.projected = forward.units, forward.size, forward.projected
    weights = [*forward.weights(), *backward.weights()]
    states = [*forward.states(), *backward.states()]
    inputs = [x, *weights, *states, *[-1] * 9]
    options = {
        "fused_activation_function": "TANH",
        "cell_clip": clips(m),
        "proj_clip": 0.0,
        "merge_outputs": merged,
        "time_major": time_major,
        "asymmetric_quantize_inputs": kind == "hybrid" and m.chance(0.5),
    }
    outputs = [m.output("float32") for _ in range(1 if merged else 2)]
    m.operator("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, **options, version=3)


# ---- RNN ----


def rnn_parts(m, kind, width, batch):
    units = m.dimension(16)

    def matrix(columns):
        if kind == "float32":
            return m.constant("float32", m.rng.normal(0, 0.4, [units, columns]))
        codes = m.integers("int8", [units, columns], -127, 127)
        return m.constant("int8", codes, scale=m.scale_for("int8", 0.8, wild=0), zero_point=0)

    parts = [matrix(width), matrix(units), m.constant("float32", m.rng.normal(0, 0.4, [units]))]
    return [*parts, m.variable("float32", [batch, units])]


@generator("RNN", "float32", "hybrid")
@generator("UNIDIRECTIONAL_SEQUENCE_RNN", "float32", "hybrid")
@generator("BIDIRECTIONAL_SEQUENCE_RNN", "float32", "hybrid")
def rnn(m, kind):
    batch, steps, width = m.integer(1, 3), m.integer(1, 5), m.dimension(16)
    m.runs = m.integer(1, 3)
    time_major = m.name != "RNN" and m.chance(0.5)
    if m.name.startswith("BIDIRECTIONAL") and kind == "hybrid":
        time_major = False  # LiteRT runs these several times: tests/deviations_products.py
    shape = [batch, width] if m.name == "RNN" else [steps, batch, width] if time_major else [batch, steps, width]
    x = m.input("float32", shape, draw=lambda: m.floats(shape, special=0))
    options = {
        "fused_activation_function": m.pick("NONE", "RELU", "TANH", "RELU6"),
        "asymmetric_quantize_inputs": kind == "hybrid" and m.chance(0.5),
    }
    inputs, outputs = [x, *rnn_parts(m, kind, width, batch)], [m.output("float32")]
    if m.name != "RNN":
        options["time_major"] = time_major
    if m.name == "BIDIRECTIONAL_SEQUENCE_RNN":
        merged = options["merge_outputs"] = m.chance(0.5)
        inputs += [*rnn_parts(m, kind, width, batch), -1, -1, -1]
        outputs += [] if merged else [m.output("float32")]
    m.operator(m.name, inputs, outputs, **options, version=3)
