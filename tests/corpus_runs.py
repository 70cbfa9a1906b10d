# SPDX-License-Identifier: Apache-2.0
"""Real models: inputs for them, and models of one operator that are cut out of them."""

import copy
import zlib
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import old_models as models
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
    """What a TRANSPOSE_CONV must be told, from the shapes of its input and weights."""
    (count, *kernel, _), (batch, *size, _) = item.inputs[1].shape, item.inputs[2].shape
    strides = item.options["stride_h"], item.options["stride_w"]
    if item.options["padding"].name == "SAME":
        size = [n * s for n, s in zip(size, strides, strict=True)]
    else:
        size = [(n - 1) * s + k for n, s, k in zip(size, strides, kernel, strict=True)]
    return np.array([batch, *size, count], np.int32)


def unpacked(path):
    """A file as the schema's ModelT."""
    data = path if isinstance(path, bytes) else Path(path).read_bytes()
    return schema.ModelT.InitFromPackedBuf(data, 0)


def blockwise_tensors(tensor):
    """The tensors that hold a tensor's scales and zero points (-1: none), or ()."""
    q = tensor.quantization
    if q is None or q.detailsType != schema.QuantizationDetails.BlockwiseQuantization:
        return ()
    return q.details.scales, q.details.zeroPoints


def cut(model, number, values):
    """The bytes of a model of operator `number` of subgraph 0, and what to feed it.

    model: a ModelT, left as it is.  values: tensor index to array, for the inputs that are not constants.  A
    quantized_dimension without meaning is taken away, since LiteRT refuses the file for it.
    """
    graph = model.subgraphs[0]
    item = graph.operators[number]
    used = list(dict.fromkeys(int(i) for i in (*item.inputs, *item.outputs) if i >= 0))
    used += [i for old in used for i in blockwise_tensors(graph.tensors[old]) if i >= 0]
    place = {old: new for new, old in enumerate(used)}
    buffers, tensors = [models.Buffer()], []
    for old in used:
        tensor = graph.tensors[old]
        result = schema.TensorT(
            name=tensor.name,
            shape=tensor.shape,
            type=tensor.type,
            isVariable=tensor.isVariable,
            sparsity=tensor.sparsity,
            quantization=copy.deepcopy(tensor.quantization),
        )
        quantization = result.quantization
        if quantization is not None and quantization.quantizedDimension >= np.size(tensor.shape):
            quantization.quantizedDimension = 0
        if blockwise_tensors(tensor):
            scales, zero_points = blockwise_tensors(tensor)
            quantization.details.scales = place[scales]
            quantization.details.zeroPoints = place.get(zero_points, -1)
        content = model.buffers[tensor.buffer].data
        if content is not None and len(content):
            result.buffer = len(buffers)
            buffers.append(models.Buffer(data=bytes(content)))
        if old in values and old in item.inputs and not result.isVariable:
            result.shape = list(values[old].shape)
        tensors.append(result)
    fed = {place[int(i)]: values[int(i)] for i in item.inputs if i >= 0 and int(i) in values}
    fed = {i: value for i, value in fed.items() if not tensors[i].buffer and not tensors[i].isVariable}
    item = schema.OperatorT(
        opcodeIndex=0,
        inputs=[place.get(int(i), -1) for i in item.inputs],
        outputs=[place.get(int(i), -1) for i in item.outputs],
        builtinOptions=item.builtinOptions,
        builtinOptionsType=item.builtinOptionsType,
        builtinOptions2=item.builtinOptions2,
        builtinOptions2Type=item.builtinOptions2Type,
        customOptions=item.customOptions,
    )
    code = model.operatorCodes[graph.operators[number].opcodeIndex]
    alone = schema.ModelT(version=3, operatorCodes=[code], buffers=buffers)
    alone.subgraphs = [models.subgraph(tensors, [item], sorted(fed), item.outputs)]
    return models.pack(alone), fed, item.outputs
