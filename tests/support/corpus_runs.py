# SPDX-License-Identifier: Apache-2.0
"""Real models: inputs for them, and models of one operator that are cut out of them."""

import zlib
from pathlib import Path

import models
import numpy as np

import tq


def inputs(path, seed=0):
    """A dict of tensor index to array for each input of subgraph 0, of the file's shapes (1 where one is open).

    floats lie in [-1, 1]; codes of quantized tensors are any; whole numbers without quantization, which mostly are
    indices, sizes or tokens, lie in [0, 3], but for the output shape of a TRANSPOSE_CONV, which is what it must be."""
    graph = tq.Model(path).subgraphs[0]
    rng = np.random.default_rng([seed, zlib.crc32(Path(path).name.encode())])
    drawn = {tensor.index: values(tensor, rng) for tensor in graph.inputs}
    for item in graph.operators:
        if item.name == "TRANSPOSE_CONV" and item.input_indices[0] in drawn:
            drawn[item.input_indices[0]] = output_shape(item)
    return drawn


def values(tensor, rng):
    shape = [n if n > 0 else 1 for n in tensor.shape]
    if tensor.type.name == "STRING":
        return np.array([b"word"] * int(np.prod(shape)), object).reshape(shape)
    dtype = np.dtype(tensor.dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        q = tensor.quantization
        if q is not None and len(q.scale) and dtype.itemsize < 4:
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return rng.integers(0, 3, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def output_shape(item):
    """The output shape of a TRANSPOSE_CONV, from the shapes of its input and weights."""
    (count, *kernel, _), (batch, *size, _) = item.inputs[1].shape, item.inputs[2].shape
    strides = item.options["stride_h"], item.options["stride_w"]
    if item.options["padding"].name == "SAME":
        size = [n * s for n, s in zip(size, strides, strict=True)]
    else:
        size = [(n - 1) * s + k for n, s, k in zip(size, strides, kernel, strict=True)]
    return np.array([batch, *size, count], np.int32)


def blockwise_tensors(tensor):
    """The tensors that hold a tensor's scales and zero points (-1: none), or ()."""
    details = (tensor.stored("quantization") or {}).get("details")
    if details is None or details["type"] != "BlockwiseQuantization":
        return ()
    return details["scales"], details["zero_points"]


def quantization(tensor, place):
    """A tensor's parameters where tensors have other places, without a quantized_dimension that LiteRT would refuse."""
    stored = tensor.stored("quantization")
    if stored is None:
        return None
    if stored["quantized_dimension"] >= len(tensor.shape):
        stored["quantized_dimension"] = 0
    if blockwise_tensors(tensor):
        for field in ("scales", "zero_points"):
            stored["details"][field] = place.get(stored["details"][field], -1)
    return stored


def cut(model, number, values):
    """The bytes of a model of operator `number` of subgraph 0, what to feed it, and its outputs.

    values: tensor index to array, for the inputs that are not constants."""
    graph = model.subgraphs[0]
    item = graph.operators[number]
    used = list(dict.fromkeys(i for i in (*item.input_indices, *item.output_indices) if i >= 0))
    used += [i for old in used for i in blockwise_tensors(graph.tensors[old]) if i >= 0]
    place = {old: new for new, old in enumerate(used)}
    tensors, fed = [], {}
    for old in used:
        tensor = graph.tensors[old]
        content = model.buffers[tensor.buffer].data
        data = None if content is None or not len(content) else bytes(content)
        shape = list(tensor.shape)
        if old in values and old in item.input_indices and not tensor.is_variable:
            shape = list(values[old].shape)
            if data is None:
                fed[place[old]] = values[old]
        fields = {"is_variable": tensor.is_variable, "sparsity": tensor.stored("sparsity")}
        fields["quantization"] = quantization(tensor, place)
        tensors.append(models.tensor(tensor.name, shape, tensor.type, data, **fields))
    inputs, outputs = ([place.get(i, -1) for i in indices] for indices in (item.input_indices, item.output_indices))
    kept = {"options": item.options} if item.custom_options is None else {"custom_options": item.custom_options}
    alone = models.operator(item.name, inputs, outputs, version=item.version, **kept)
    return models.build_model(tensors, [alone], sorted(fed), outputs), fed, outputs
