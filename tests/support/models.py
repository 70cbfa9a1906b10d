# SPDX-License-Identifier: Apache-2.0
"""Small models for tests as tables of tensors and operators, which tq.ModelBuilder makes.

    data = build_model(
        tensors=[
            tensor("x", [1, 4]),
            tensor("w", [2, 4], "INT8", data=np.ones((2, 4), np.int8), scale=0.5),
            tensor("y", [1, 2]),
        ],
        operators=[operator("FULLY_CONNECTED", [0, 1, -1], [2], fused_activation_function="RELU", version=4)],
        inputs=[0],
        outputs=[2],
    )

`tensor` and `operator` take what the builder's methods of that name take, but operators name tensors by their places,
which may lead anywhere: files of tests have indices that no builder should let through.  `make_model` returns the
ModelBuilder, for what its parts and their store() change afterwards; `pack` its bytes; `build_model` does both.
"""

from dataclasses import dataclass, field

import numpy as np

import tq


@dataclass
class Tensor:
    name: str
    shape: list
    type: str = "FLOAT32"
    data: object = None
    fields: dict = field(default_factory=dict)  # further arguments of add_tensor

    def add(self, graph):
        data = self.data
        if isinstance(data, np.ndarray) and data.size == np.prod(self.shape):
            data = data.reshape(self.shape)
        made = graph.tensor(self.name, self.shape or (), self.type, data=data, **self.fields)
        if self.shape is None:
            made.store("shape", None)


@dataclass
class Operator:
    name: str
    inputs: list
    outputs: list
    fields: dict  # further arguments of add_operator

    def add(self, graph):
        made = graph.operator(self.name, (), (), **self.fields)
        made.store("inputs", self.inputs)
        made.store("outputs", self.outputs)


@dataclass
class Subgraph:
    tensors: list
    operators: list
    inputs: list
    outputs: list
    name: str

    def add(self, graph):
        graph.name = self.name
        for part in (*self.tensors, *self.operators):
            part.add(graph)
        graph.store("inputs", self.inputs)
        graph.store("outputs", self.outputs)


def tensor(name, shape, type="FLOAT32", data=None, **fields):
    """data: bytes, or as many values as the shape has.  fields: scale, zero_point, min, max, quantized_dimension,
    shape_signature, is_variable, buffer ..."""
    return Tensor(name, shape, type, data, fields)


def operator(name, inputs, outputs, /, **fields):
    """fields: version, custom_options, intermediates, and the options.  A name that is no builtin operator's makes a
    custom operator."""
    return Operator(name, inputs, outputs, fields)


def subgraph(tensors=(), operators=(), inputs=(), outputs=(), name="main"):
    return Subgraph(list(tensors), list(operators), list(inputs), list(outputs), name)


def signature(key, inputs, outputs, subgraph_index=0):
    """A SignatureDef from dicts of name to tensor index."""

    def maps(names):
        return [{"name": name, "tensor_index": index} for name, index in names.items()]

    return {
        "signature_key": key,
        "inputs": maps(inputs),
        "outputs": maps(outputs),
        "subgraph_index": subgraph_index,
    }


def make_model(
    tensors=(),
    operators=(),
    inputs=(),
    outputs=(),
    *,
    name="main",
    subgraphs=None,
    signatures=(),
    metadata=None,
    buffers=(),
    description="made for a test",
):
    """A ModelBuilder of one subgraph, or of `subgraphs`.

    buffers: the contents (bytes) of buffers 1, 2, ..., for tensors with `buffer=`; those of tensors with `data`
    and of `metadata` (a dict of name to bytes) follow them.
    """
    if subgraphs is None:
        subgraphs = [subgraph(tensors, operators, inputs, outputs, name)]
    model = tq.ModelBuilder(description)
    for content in buffers:
        model.add_buffer(content)
    for place, part in enumerate(subgraphs):
        part.add(model.subgraph() if place else model.graph)
    if not subgraphs:
        model.store("subgraphs", None)
    if signatures:
        model.store("signature_defs", list(signatures))
    model.metadata.update(metadata or {})
    return model


def pack(model, identifier=b"TFL3"):
    """The bytes of a ModelBuilder; identifier: in the place of the file's, which may be none of tq's business."""
    data = model.to_bytes()
    return data if identifier == data[4:8] else data[:4] + identifier + data[8:]


def build_model(*args, **kwargs):
    """make_model, packed."""
    return pack(make_model(*args, **kwargs))


def calibrated(recipe, samples):
    """The arguments of quantize_model for a recipe: with samples where activations become integers."""
    return {"calibration": samples} if recipe in ("int8", "int16x8", "int4", "int16x4", "uint8") else {}
