# SPDX-License-Identifier: Apache-2.0
"""Products whose weights are stored sparse: rows of weights, or of blocks of them, of which the zeros are left out."""

import numpy as np

from generators import generator
from generators.recurrent import Lstm, clips


def index_vector(m, items):
    """Whole numbers in one of the types that hold them."""
    largest = max(items, default=0)
    name = m.pick(*(["Uint8Vector"] if largest < 256 else []), "Uint16Vector", "Int32Vector")
    return {"type": name, "values": items}


def compressed_rows(m, keep, block):
    """The sparsity parameters of values [rows, places * block], of which `keep` [rows, places] are stored."""
    rows, _ = keep.shape
    segments = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).tolist()
    segments, indices = (index_vector(m, items) for items in (segments, np.nonzero(keep)[1].tolist()))
    dimensions = [
        {"format": "DENSE", "dense_size": rows},
        {"format": "SPARSE_CSR", "array_segments": segments, "array_indices": indices},
    ]
    if block == 1:
        return {"traversal_order": [0, 1], "dim_metadata": dimensions}
    dimensions.append({"format": "DENSE", "dense_size": block})
    return {"traversal_order": [0, 1, 2], "block_map": [1], "dim_metadata": dimensions}


def sparse_weights(m, type, rows, columns, block, chance=0.5, **parameters):
    """A constant [rows, columns] of which some blocks of 1 x `block` are stored; at least one is."""
    keep = m.rng.random((rows, columns // block)) < chance
    keep[0, 0] = True
    count = int(keep.sum()) * block
    values = m.rng.normal(0, 0.4, [count]) if type == "float32" else m.integers(type, [count], -127, 127)
    x = m.constant(type, values, shape=[rows, columns], **parameters)
    m.tensors[x].fields["sparsity"] = compressed_rows(m, keep, block)
    return x


@generator("FULLY_CONNECTED", "hybrid-sparse", "float32-sparse", "int8-sparse")
def fully_connected(m, kind):
    block = 16 if kind != "float32-sparse" else m.pick(1, 4)
    rows, columns, units = m.integer(1, 6), block * m.integer(1, 5), m.dimension(30)
    options = {"fused_activation_function": m.activation(), "keep_num_dims": m.chance(0.4)}
    if kind == "int8-sparse":
        x = m.input("int8", [rows, columns])
        count = units if m.chance(0.4) else 1
        scales = np.float32(m.scale() * 2 ** m.rng.uniform(-1, 1, count))
        w = sparse_weights(m, "int8", units, columns, block, scale=scales, zero_point=[0] * count)
        scales = np.float32(m.parameters[x]["scale"]) * scales
        bias = m.integers("int32", [units], -9999, 9999)
        bias = m.constant("int32", bias, scale=scales, zero_point=[0] * count)
        y = m.output("int8", **m.affine("int8", float(scales[0]) * 128 * 70 * np.sqrt(columns)))
    else:
        x = m.input("float32", [rows, columns], draw=lambda: m.floats([rows, columns], special=0))
        count = units if m.chance(0.3) else 1
        scales = np.float32(m.scale() * 2 ** m.rng.uniform(-1, 1, count))
        parameters = {"scale": scales, "zero_point": [0] * count} if kind == "hybrid-sparse" else {}
        w = sparse_weights(m, "int8" if parameters else "float32", units, columns, block, **parameters)
        bias = m.constant("float32", m.floats([units], special=0)) if m.chance(0.7) else -1
        options["asymmetric_quantize_inputs"] = m.chance(0.5)
        y = m.output("float32")
    m.operator("FULLY_CONNECTED", [x, w, bias], [y], **options, version=9)
    m.fixed = True


class SparseLstm(Lstm):
    """An LSTM whose input weights and projection are sparse.  Of recurrent ones LiteRT takes the input's scale for the
    state's, and of asymmetric inputs it leaves out the zero points: tests/deviations_products.py."""

    def __init__(self, m, width, batch):
        super().__init__(m, "hybrid", width, batch)
        self.units, self.projected, self.size = 16 * m.integer(1, 2), True, m.dimension(12)

    def matrix(self, rows, columns):
        if columns % 16 or columns == self.size:
            return super().matrix(rows, columns)
        parameters = {"scale": self.m.scale_for("int8", 0.8, wild=0), "zero_point": 0}
        return sparse_weights(self.m, "int8", rows, columns, 16, **parameters)


@generator("LSTM", "hybrid-sparse")
def lstm(m, kind):
    batch, width = m.integer(1, 6), 16 * m.integer(1, 3)
    m.runs, m.fixed = m.integer(1, 3), True
    x = m.input("float32", [batch, width], draw=lambda: m.floats([batch, width], special=0))
    cell = SparseLstm(m, width, batch)
    inputs = [x, *cell.weights(), *cell.states(), *cell.norms()]
    options = {"fused_activation_function": "TANH", "cell_clip": clips(m), "proj_clip": clips(m)}
    m.operator("LSTM", inputs, [m.output("float32")], **options, version=4)
