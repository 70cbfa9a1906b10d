# SPDX-License-Identifier: Apache-2.0
"""Small models for tests, made with the object API of an upstream schema.

    data = build_model(
        tensors=[
            tensor("x", [1, 4]),
            tensor("w", [2, 4], "INT8", data=np.ones((2, 4), np.int8), scale=0.5, zero_point=0),
            tensor("y", [1, 2]),
        ],
        operators=[operator("FULLY_CONNECTED", [0, 1], [2], options=schema.FullyConnectedOptionsT())],
        inputs=[0], outputs=[2],
    )

`tensor`, `operator`, `subgraph`, `signature` return the schema's own objects (TensorT and so on): set any other
field on them before they are packed.  `make_model` returns the ModelT for further changes, `pack` its bytes, and
`build_model` does both.  Field names are the schema's (`shapeSignature`); parameters here are tq's.
"""

import struct

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

PLACEHOLDER = schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES


class Buffer(schema.BufferT):
    """A BufferT whose data is aligned to 16 bytes, as the schema asks and the generated code does not do."""

    def Pack(self, builder):
        if self.data is not None:
            content = bytes(self.data)
            builder.StartVector(1, len(content), 16)
            builder.head -= len(content)
            builder.Bytes[builder.head : builder.head + len(content)] = content
            data = builder.EndVector()
        schema.BufferStart(builder)
        if self.data is not None:
            schema.BufferAddData(builder, data)
        schema.BufferAddOffset(builder, self.offset)
        schema.BufferAddSize(builder, self.size)
        return schema.BufferEnd(builder)


def listed(value):
    """None stays None, a scalar becomes a list of one, and anything else a list."""
    return None if value is None else np.ravel(value).tolist()


def quantization(scale=None, zero_point=None, min=None, max=None, axis=0, details=None):
    """A QuantizationParametersT; scalars become lists of one, None an absent field.

    A scale without a zero point gets zeros, as TFLite's converter writes them; pass zero_point=[] for none.
    """
    scale, zero_point = listed(scale), listed(zero_point)
    if scale is not None and zero_point is None:
        zero_point = [0] * len(scale)
    name = type(details).__name__.removesuffix("T")
    return schema.QuantizationParametersT(
        min=listed(min),
        max=listed(max),
        scale=scale,
        zeroPoint=zero_point,
        quantizedDimension=axis,
        details=details,
        detailsType=getattr(schema.QuantizationDetails, name) if details is not None else 0,
    )


def tensor(name, shape, type="FLOAT32", data=None, *, buffer=None, shape_signature=None, **parameters):
    """A TensorT.  `data` (array or bytes; of sub-byte types as they stand packed) gets a buffer of its own;
    `buffer` sets the index of an existing one.  Other parameters are those of `quantization`."""
    number = getattr(schema.TensorType, type) if isinstance(type, str) else type
    result = schema.TensorT(name=name, shape=shape, type=number, shapeSignature=shape_signature)
    if buffer is not None:
        result.buffer = buffer
    if parameters:
        result.quantization = quantization(**parameters)
    result.content = data if data is None or isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
    return result


def operator(name, inputs, outputs, *, options=None, version=1, custom_options=None, intermediates=None):
    """An OperatorT.  A name that is no builtin operator's makes a custom operator.  `options` is an object of the
    schema: schema.Conv2DOptionsT(strideW=1, strideH=1)."""
    result = schema.OperatorT(inputs=inputs, outputs=outputs, intermediates=intermediates)
    result.code = (name, version)
    if options is not None:
        kind = type(options).__name__.removesuffix("T")
        if hasattr(schema.BuiltinOptions, kind):
            result.builtinOptions, result.builtinOptionsType = options, getattr(schema.BuiltinOptions, kind)
        else:
            result.builtinOptions2, result.builtinOptions2Type = options, getattr(schema.BuiltinOptions2, kind)
    if custom_options is not None:
        result.customOptions = list(custom_options)
    return result


def subgraph(tensors=(), operators=(), inputs=(), outputs=(), name="main"):
    """A SubGraphT."""
    return schema.SubGraphT(
        tensors=list(tensors), operators=list(operators), inputs=list(inputs), outputs=list(outputs), name=name
    )


def signature(key, inputs, outputs, subgraph_index=0):
    """A SignatureDefT from dicts of name to tensor index."""

    def maps(names):
        return [schema.TensorMapT(name=name, tensorIndex=index) for name, index in names.items()]

    return schema.SignatureDefT(
        signatureKey=key, inputs=maps(inputs), outputs=maps(outputs), subgraphIndex=subgraph_index
    )


def operator_code(name, version):
    """An OperatorCodeT; both code fields are set, as the converter sets them."""
    number = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
    custom = name if number == schema.BuiltinOperator.CUSTOM else None
    return schema.OperatorCodeT(
        builtinCode=number, deprecatedBuiltinCode=min(number, PLACEHOLDER), customCode=custom, version=version
    )


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
    """A ModelT of one subgraph, or of `subgraphs`.

    buffers: the contents (bytes) of buffers 1, 2, ..., for tensors with `buffer=`; those of tensors with `data`
    and of `metadata` (a dict of name to bytes) follow them.
    """
    if subgraphs is None:
        subgraphs = [subgraph(tensors, operators, inputs, outputs, name)]
    all_buffers = [Buffer(), *(Buffer(data=content) for content in buffers)]
    codes = []
    for graph in subgraphs:
        for item in graph.tensors or ():
            if getattr(item, "content", None) is not None:
                item.buffer = len(all_buffers)
                all_buffers.append(Buffer(data=item.content))
        for item in graph.operators or ():
            code = getattr(item, "code", None)
            if code is not None:
                if code not in codes:
                    codes.append(code)
                item.opcodeIndex = codes.index(code)
    entries = []
    for key, content in (metadata or {}).items():
        entries.append(schema.MetadataT(name=key, buffer=len(all_buffers)))
        all_buffers.append(Buffer(data=content))
    return schema.ModelT(
        version=3,
        description=description,
        operatorCodes=[operator_code(*code) for code in codes],
        subgraphs=list(subgraphs),
        buffers=all_buffers,
        signatureDefs=list(signatures) or None,
        metadata=entries or None,
    )


def pack(model, identifier=b"TFL3"):
    """The bytes of a ModelT.  identifier=None leaves the file identifier out."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=identifier)
    return bytes(builder.Output())


def build_model(*args, **kwargs):
    """make_model, packed."""
    return pack(make_model(*args, **kwargs))


def strings(items):
    """The buffer of a string tensor that holds these bytes objects."""
    offsets = np.cumsum([4 * (len(items) + 2), *map(len, items)])
    return struct.pack(f"<i{len(offsets)}i", len(items), *offsets.tolist()) + b"".join(items)
