# SPDX-License-Identifier: Apache-2.0
"""Scatters and windows whose bodies are subgraphs, tables of keys, and spectra."""

import models
import numpy as np
from flatbuffers import flexbuffers

from generators import generator

ADDED = ("float32", "int8", "uint8", "int16", "int32", "int64")


def body(m, kind, name):
    """Appends a subgraph of one operator on two scalars; no name: of none.  Its index."""
    tensors = [models.tensor(n, [], kind) for n in "abc"]
    operators = [models.operator(name, [0, 1], [2])] if name else []
    outputs = [2] if name else [1]
    m.subgraphs.append(models.subgraph(tensors, operators, [0, 1], outputs, "body"))
    return len(m.subgraphs)


@generator("STABLEHLO_SCATTER", *ADDED)
def stablehlo_scatter(m, kind):
    shape = m.shape(1, 4, 200)
    rank = len(shape)
    placed = m.subset(range(rank), least=1)
    inserted = sorted(d for d in m.subset(range(rank)) if m.chance(0.6))
    window = [1 if m.chance(0.3) else m.integer(1, n) for d, n in enumerate(shape) if d not in inserted]
    batch = m.shape(0, 2, 12)
    vector_dim = m.integer(0, len(batch))
    indices_shape = [*batch[:vector_dim], len(placed), *batch[vector_dim:]]
    window_dims = sorted(m.rng.permutation(len(batch) + len(window))[: len(window)].tolist())
    updates, parts, sizes = [], iter(window), iter(batch)
    for d in range(len(batch) + len(window)):
        updates.append(next(parts) if d in window_dims else next(sizes))
    x = m.input(kind, shape, scale=None)
    limit = max(shape)
    which = m.pick("int32", "int64")
    where = m.input_or_constant(which, indices_shape, m.integers(which, indices_shape, -1, limit))
    y = m.input(kind, updates, scale=None)
    name = m.pick(None, "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
    options = {
        "update_window_dims": window_dims,
        "inserted_window_dims": inserted,
        "scatter_dims_to_operand_dims": placed,
        "index_vector_dim": vector_dim,
        "update_computation_subgraph_index": body(m, kind, name),
    }
    m.operator("STABLEHLO_SCATTER", [x, where, y], [m.output(kind, shape, scale=None)], **options)


BODIES = {
    "ADD": ("ADD", "STABLEHLO_ADD"),
    "MUL": ("MUL", "STABLEHLO_MULTIPLY"),
    "MAXIMUM": ("MAXIMUM", "STABLEHLO_MAXIMUM"),
    "MINIMUM": ("MINIMUM", "STABLEHLO_MINIMUM"),
}


def window(m, kind):
    """The input, its initial value, and window sizes, strides and dilations."""
    shape = m.shape(1, 4, 200)
    x = m.input(kind, shape, scale=None)
    start = m.input_or_constant(kind, [], m.integers(kind, [], 0, 2) if kind != "float32" else 0.5, scale=None)
    size = [m.integer(1, min(n, 4)) for n in shape]
    return shape, x, start, size, [m.integer(1, 3) for _ in shape], [m.integer(1, 2) for _ in shape]


@generator("REDUCE_WINDOW", *ADDED)
def reduce_window(m, kind):
    shape, x, start, size, strides, dilations = window(m, kind)
    parts = [m.constant("int64", values) for values in (size, strides, dilations)]
    function = m.pick("ADD", "MUL", "MAXIMUM", "MINIMUM", "ALL", "ANY")
    m.operator("REDUCE_WINDOW", [x, start, *parts], [m.output(kind, shape, scale=None)], reduce_function=function)


@generator("STABLEHLO_REDUCE_WINDOW", *ADDED)
def stablehlo_reduce_window(m, kind):
    shape, x, start, size, strides, dilations = window(m, kind)
    base = [m.pick(1, 1, 2) for _ in shape] if m.chance(0.4) else [1] * len(shape)
    padding = [[m.integer(0, 2), m.integer(0, 2)] for _ in shape] if m.chance(0.5) else [[0, 0]] * len(shape)
    options = {
        "window_dimensions": size,
        "window_strides": strides,
        "window_dilations": dilations,
        "base_dilations": base,
        "padding": np.ravel(padding).tolist(),
        "body_subgraph_index": body(m, kind, m.pick(*BODIES[m.pick(*BODIES)])),
    }
    m.operator("STABLEHLO_REDUCE_WINDOW", [x, start], [m.output(kind, shape, scale=None)], **options)


@generator("HASHTABLE_LOOKUP", "float32", "int32", "uint8", "string")
def hashtable_lookup(m, kind):
    count = m.integer(1, 12)
    keys = np.sort(m.rng.choice(40, count, replace=False) - 10)
    wanted = [m.integer(1, 15)]
    x = m.input("int32", wanted, draw=lambda: m.integers("int32", wanted, -11, 30))
    values = m.input_or_constant(kind, [count, *(m.shape(0, 2, 20) if kind != "string" else [])], scale=None)
    outputs = [m.output(kind, scale=None), m.output("uint8", wanted, scale=None)]
    m.operator("HASHTABLE_LOOKUP", [x, m.constant("int32", keys), values], outputs)


@generator("LSH_PROJECTION", "float32", "int32", "uint8")
def lsh_projection(m, kind):
    """Items of up to some 300 bytes: hashes have another way for each of several lengths."""
    seeds = m.input_or_constant("float32", [m.integer(1, 5), m.integer(1, 20)])
    shape = [m.integer(1, 6), *m.shape(0, 2, 80)]
    inputs = [seeds, m.input(kind, shape, scale=None)]
    if m.chance(0.5):
        inputs.append(m.input("float32", shape[:1]))
    type = m.pick("SPARSE", "DENSE")
    m.operator("LSH_PROJECTION", inputs, [m.output("int32")], type=type)


@generator("SKIP_GRAM", "string")
def skip_gram(m, kind):
    text = "".join(m.pick("a", "bc", "def", " ", " ", "  ", "\t", "g h") for _ in range(m.integer(0, 12)))
    size = m.integer(0, 4)
    options = {"ngram_size": size, "max_skip_size": m.integer(0, 3), "include_all_ngrams": m.chance(0.5)}
    x = m.input("string", [1], np.array([text.encode()], object))
    m.operator("SKIP_GRAM", [x], [m.output("string")], **options)


@generator("AudioSpectrogram", "float32")
def audio_spectrogram(m, kind):
    size = m.integer(2, 70)
    options = {"window_size": size, "stride": m.integer(1, 60), "magnitude_squared": m.chance(0.5)}
    shape = [m.integer(size, 4 * size), m.integer(1, 3)]
    x = m.input(kind, shape, draw=lambda: m.floats(shape, special=0))
    m.operator("AudioSpectrogram", [x], [m.output(kind)], custom_options=flexbuffers.Dumps(options))


@generator("Mfcc", "float32")
def mfcc(m, kind):
    shape = [m.integer(1, 2), m.integer(1, 5), m.integer(9, 257)]
    low, channels = m.integer(0, 100), m.integer(1, 40)
    options = {
        "upper_frequency_limit": m.integer(low + 1, 4000),
        "lower_frequency_limit": low,
        "filterbank_channel_count": channels,
        "dct_coefficient_count": m.integer(1, channels),
    }
    x = m.input(kind, shape, draw=lambda: np.abs(m.floats(shape, special=0)))
    rate = m.input_or_constant("int32", m.pick([], [1]), m.integer(8000, 44100))
    m.operator("Mfcc", [x, rate], [m.output(kind)], custom_options=flexbuffers.Dumps(options))
