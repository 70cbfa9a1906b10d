# SPDX-License-Identifier: Apache-2.0
"""One small made model for each thing that a file can hold: `zoo.MODELS` maps names to bytes.

Tests of the details, of Netron's line, of hostile files and of leaks walk all of it, and it seeds the fuzzer.
"""

import struct
from functools import cache

import ai_edge_litert.schema_py_generated as schema
import flatbuffers.flexbuffers
import ml_dtypes
import numpy as np
from models import build_model, make_model, operator, pack, signature, subgraph, tensor

import tq

ALL_TYPES = [type.name for type in tq.TensorType]
# Bytes of 6 elements of each type that has a size.
SIX = {
    "FLOAT32": 24, "FLOAT16": 12, "INT32": 24, "UINT8": 6, "INT64": 48, "BOOL": 6, "INT16": 12, "COMPLEX64": 48,
    "INT8": 6, "FLOAT64": 48, "COMPLEX128": 96, "UINT64": 48, "UINT32": 24, "UINT16": 12, "INT4": 3, "BFLOAT16": 12,
    "INT2": 2, "UINT4": 3, "FLOAT8_E4M3FN": 6, "FLOAT8_E5M2": 6,
}  # fmt: skip


def types():
    return build_model([tensor(name.lower(), [2, 3], name) for name in ALL_TYPES], inputs=[0], outputs=[1])


def constants():
    content = [tensor(name, [2, 3], name, data=bytes(range(1, size + 1))) for name, size in SIX.items()]
    content.append(tensor("words", [3], "STRING", data=["one", "", "zwölf"]))
    content.append(tensor("no elements", [0, 3], "INT8", data=b""))
    return build_model(content)


def shapes():
    return build_model(
        [
            tensor("scalar", []),
            tensor(None, None),
            tensor("", [1, 1, 1, 1, 1, 1, 1, 1]),
            tensor("dynamic", [1, 8], shape_signature=[-1, 8]),
            tensor("equal", [2], shape_signature=[2]),
            tensor("empty signature", [2], shape_signature=[]),
            tensor("constant", [1, 2], data=np.zeros(2, np.float32), shape_signature=[-1, 2]),
            tensor("other rank", [4], shape_signature=[-1, -1]),
        ],
        inputs=[3, 0],
        outputs=[4],
    )


def variables():
    return build_model(
        [
            tensor("state", [1, 4], shape_signature=[-1, 4], is_variable=True),
            tensor("codes", [2], "INT8", scale=0.5, zero_point=-3, is_variable=True, has_rank=True),
        ]
    )


def per_tensor():
    """The seed example's numbers, each integer type, and scales and zero points at their edges."""
    line = {"scale": 0.012566017, "zero_point": 3, "min": -1.6488091, "max": 1.555525}
    result = [tensor("seed", [4], "INT8", **line)]
    for name in ("UINT8", "INT16", "INT32", "INT64", "INT4", "UINT4", "INT2", "UINT16", "UINT32", "UINT64", "FLOAT32"):
        result.append(tensor(name, [4], name, scale=0.1, zero_point=1))
    for scale in (1.0, 1e-7, 1.1754944e-38, 1e-45, 3.4e38, 0.0, -0.25, -0.0, float("nan"), float("inf"), 1e21, 5e-5):
        result.append(tensor(f"scale {scale}", [4], "INT8", scale=scale, zero_point=0))
    for zero_point in (0, 127, -128, 2**31 - 1, -(2**31), 2**33 + 5, 2**63 - 1, -(2**63)):
        result.append(tensor(f"zero point {zero_point}", [4], "INT8", scale=0.5, zero_point=zero_point))
    return build_model(result)


def min_max():
    """Stored ranges without scales, with other lengths, zero, negative zero, and not finite."""
    inf, nan = float("inf"), float("nan")
    cases = [
        {"min": -1.0, "max": 1.0},
        {"min": -1.0},
        {"max": 6.0},
        {"min": 0.0, "max": 0.0, "scale": 0.1, "zero_point": 3},
        {"min": -0.0, "max": 255.0, "scale": 1.0, "zero_point": 0},
        {"min": [-1.0, -2.0, -3.0], "max": [1.0], "scale": 0.1, "zero_point": 3},
        {"min": -inf, "max": inf, "scale": 0.1},
        {"min": nan, "max": nan, "scale": 0.1},
        {"zero_point": 7},
        {"scale": [], "zero_point": [], "min": [], "max": []},
    ]
    return build_model([tensor(f"case {i}", [2, 3], "INT8", **case) for i, case in enumerate(cases)])


def per_axis():
    def channels(name, count, shape, axis, type="INT8"):
        scales = np.float32(0.001) * np.arange(1, count + 1, dtype=np.float32)
        return tensor(
            name,
            shape,
            type,
            data=np.arange(np.prod(shape)).astype(np.int8),
            scale=scales,
            zero_point=np.arange(count) % 3,
            min=-scales * 128,
            max=scales * 127,
            quantized_dimension=axis,
        )

    return build_model(
        [
            channels("first", 12, [12, 2], 0),
            channels("last", 3, [2, 2, 3], 2),
            channels("one", 1, [1, 5], 0),
            tensor("float16", [2], "FLOAT16", scale=[0.5, 0.25], zero_point=[0, 0]),
            tensor("int4", [2, 2], "INT4", data=b"\x21\x43", scale=[0.5, 0.25], zero_point=[0, 0]),
        ]
    )


def conv():
    """A small network: a per-axis int8 convolution with bias, and what goes before and after it."""
    options = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "fused_activation_function": "RELU6"}
    scales = np.float32([0.01, 0.02])
    return build_model(
        [
            tensor("image", [1, 5, 5, 1], "INT8", scale=0.5, zero_point=-1, min=-64, max=63.5),
            tensor(
                "weights", [2, 3, 3, 1], "INT8", data=np.arange(18).astype(np.int8), scale=scales, zero_point=[0, 0]
            ),
            tensor("bias", [2], "INT32", data=np.int32([5, -7]), scale=scales * 0.5, zero_point=[0, 0]),
            tensor("features", [1, 2, 2, 2], "INT8", scale=0.25, zero_point=3),
            tensor("shape", [2], "INT32", data=np.int32([1, 8])),
            tensor("flat", [1, 8], "INT8", scale=0.25, zero_point=3, shape_signature=[-1, 8]),
        ],
        [
            operator("CONV_2D", [0, 1, 2], [3], **options, version=3),
            operator("RESHAPE", [3, 4], [5], new_shape=[1, 8]),
        ],
        inputs=[0],
        outputs=[5],
        signatures=[signature("serving_default", {"image": 0}, {"flat": 5})],
        metadata={"min_runtime_version": b"2.3.0\0\0\0\0\0\0\0\0\0\0\0", "TFLITE_METADATA": b"\x01\x02"},
    )


def blockwise():
    """int4 weights whose scales stand in another tensor, with and without zero points."""
    scales = np.float16([[0.5, 0.25], [1.0, 2.0]])

    def weights(name, type="BlockwiseQuantization", **indices):
        details = {"type": type, "scales": 1, "block_size": 32, **indices}
        return tensor(name, [2, 64], "INT4", data=bytes(range(64)), details=details)

    custom = {"type": "CustomQuantization", "custom": [1, 2, 3]}
    return build_model(
        [
            tensor("input", [1, 64]),
            tensor("scales", [2, 2], "FLOAT16", data=scales),
            tensor("zero points", [2, 2], "INT32", data=np.int32([[0, 1], [2, -3]])),
            weights("with zero points", zero_points=2),
            weights("without", zero_points=-1),
            weights("left out"),
            weights("multi-axis", "MultiAxisQuantization", zero_points=-1, quantized_dimensions=[0, 1]),
            tensor("custom", [2], "INT8", scale=0.5, details=custom),
            tensor("custom alone", [2], "INT8", details=custom),
        ]
    )


def compressed(segments, indices, kind="Int32Vector"):
    vectors = ({"type": kind, "values": values} for values in (segments, indices))
    return {"format": "SPARSE_CSR", **dict(zip(("array_segments", "array_indices"), vectors, strict=True))}


def dense(size):
    return {"format": "DENSE", "dense_size": size}


def sparse():
    """CSR with each width of index, and blocks of 2 x 2."""
    result = []
    for kind in ("Int32Vector", "Uint16Vector", "Uint8Vector"):
        rows = [dense(3), compressed([0, 2, 2, 3], [0, 3, 1], kind)]
        sparsity = {"traversal_order": [0, 1], "dim_metadata": rows}
        result.append(tensor(kind, [3, 4], data=np.float32([1, 2, 3]).tobytes(), sparsity=sparsity))
    sparsity = {
        "traversal_order": [0, 1, 2, 3],
        "block_map": [0, 1],
        "dim_metadata": [dense(2), compressed([0, 1, 2], [0, 1]), dense(2), dense(2)],
    }
    blocks = tensor("blocks", [4, 4], "INT8", data=bytes(range(8)), scale=0.5, sparsity=sparsity)
    return build_model([*result, blocks])


def subgraphs():
    """A loop over two further subgraphs, a signature each for two of them, and a graph with no name."""
    graphs = [
        subgraph(
            [tensor("i", [], "INT32"), tensor("n", [], "INT32")],
            [operator("WHILE", [0], [1], cond_subgraph_index=1, body_subgraph_index=2)],
            [0],
            [1],
        ),
        subgraph(
            [tensor("i", [], "INT32"), tensor("limit", [], "INT32", data=np.int32(10)), tensor("less", [], "BOOL")],
            [operator("LESS", [0, 1], [2])],
            [0],
            [2],
            name="cond",
        ),
        subgraph(
            [tensor("i", [], "INT32"), tensor("one", [], "INT32", data=np.int32(1)), tensor("sum", [], "INT32")],
            [operator("ADD", [0, 1], [2])],
            [0],
            [2],
            name=None,
        ),
    ]
    return build_model(
        subgraphs=graphs,
        signatures=[signature("count", {"i": 0}, {"n": 1}), signature("body", {"i": 0}, {"sum": 2}, 2)],
    )


def custom_operators():
    flexible = flatbuffers.flexbuffers.Dumps(
        {"name": "x", "values": [1, 2.5, None, True], "blob": b"\0\1", "nested": {"a": -1, "b": [[], {}]}}
    )
    return build_model(
        [tensor("a", [2]), tensor("b", [2])],
        [
            operator("MyOperator", [0, -1], [1], custom_options=flexible, intermediates=[1]),
            operator("Other", [], [], custom_options=b"\xff\x00garbage"),
            operator("Other", [0], [1], version=7),
        ],
        [0],
        [1],
    )


def stablehlo():
    dot = {"lhs_contracting_dimensions": [1], "rhs_contracting_dimensions": [0], "precision_config": [0, 2]}
    call = {"call_target_name": "f", "backend_config": "{}", "called_computations": [0]}
    return build_model(
        [tensor("a", [2, 2]), tensor("b", [2, 2])],
        [
            operator("STABLEHLO_DOT_GENERAL", [0, 0], [1], **dot),
            operator("STABLEHLO_CUSTOM_CALL", [0], [1], **call),
        ],
        [0],
        [1],
    )


def variants():
    elements = [{"shape": [1, 2], "type": "INT8", "has_rank": True}]
    return build_model([tensor("list", [], "VARIANT", variant_tensors=elements), tensor("table", [], "RESOURCE")])


def outside():
    """Buffers and custom options behind the flatbuffer, as in files over 2 GB."""
    model = make_model([tensor("far", [4], "INT8", buffer=1), tensor("x", [4], "INT8")], [operator("Big", [0], [1])])
    place = model.add_buffer(size=4)
    model.operators[0].store("large_custom_options_size", 3)
    size = 2  # until it is known
    for _ in range(2):
        model.buffers[place].store("offset", size)
        model.operators[0].store("large_custom_options_offset", size + 4)
        size = (len(pack(model)) + 15) // 16 * 16
    return pack(model).ljust(size, b"\0") + b"\1\2\3\4abc"


def external():
    names = {"weights": 5, "lost": 77}
    model = make_model([tensor(name, [4], "INT8", external_buffer=id) for name, id in names.items()])
    model.store("external_buffer_groups", [{"name": "weights.bin"}])
    rows = [{"id": id, "group": 0, "offset": 16 * id, "length": 4, "packing": "none"} for id in (9, 2, 5)]
    model.store("external_buffers", rows)
    return pack(model)


def plain():
    return pack(make_model([tensor("x", [1])], inputs=[0], outputs=[0]), identifier=bytes(4))


def trailing():
    return plain() + b"PK\x05\x06" + bytes(18)


def future():
    """Types, operators and union members that no schema knows yet."""
    model = make_model([tensor("t", [2], 99, data=b"\1\2"), tensor("y", [2])], [operator("ADD", [0, 0], [1])])
    model.store("operator_codes", [{"builtin_code": 5000}])
    return pack(model)


def with_tensor_fields(make, first=11, count=8):
    """A model whose only tensor has more slots than the schema: make(builder) -> [(slot, add)]."""
    builder = flatbuffers.Builder()
    name = builder.CreateString("x")
    shape = builder.CreateNumpyVector(np.int32([7]))
    extra = make(builder)
    builder.StartObject(first + count)
    builder.PrependUOffsetTRelativeSlot(0, shape, 0)
    builder.PrependUOffsetTRelativeSlot(3, name, 0)
    for slot, add in extra:
        add(builder, slot)
    item = builder.EndObject()
    tensors = vector_of(builder, [item])
    schema.SubGraphStart(builder)
    schema.SubGraphAddTensors(builder, tensors)
    graphs = vector_of(builder, [schema.SubGraphEnd(builder)])
    schema.BufferStart(builder)
    buffers = vector_of(builder, [schema.BufferEnd(builder)])
    codes = vector_of(builder, [])
    schema.ModelStart(builder)
    schema.ModelAddVersion(builder, 3)
    schema.ModelAddOperatorCodes(builder, codes)
    schema.ModelAddSubgraphs(builder, graphs)
    schema.ModelAddBuffers(builder, buffers)
    builder.Finish(schema.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


def vector_of(builder, items):
    """A vector of offsets to what was made before."""
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()


def small_table(builder, number, name=None):
    """A table of a number in slot 0 and a name in slot 2."""
    text = builder.CreateString(name) if name else None
    builder.StartObject(3)
    builder.PrependInt32Slot(0, number, 0)
    if text:
        builder.PrependUOffsetTRelativeSlot(2, text, 0)
    return builder.EndObject()


def unknown_fields():
    """Fields of every kind that no schema knows yet: what a newer version may add."""

    def link(made):
        return lambda builder, slot: builder.PrependUOffsetTRelativeSlot(slot, made, 0)

    def make(builder):
        inner = small_table(builder, 5, "the inner one")
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(1, inner, 0)
        builder.PrependInt64Slot(0, 77, 0)
        outer = builder.EndObject()
        new_option = small_table(builder, 9, "a new option")
        builder.StartObject(8)
        builder.PrependUint8Slot(4, 250, 0)
        builder.PrependUOffsetTRelativeSlot(5, new_option, 0)
        quantization = builder.EndObject()
        return [
            (4, link(quantization)),
            (11, link(builder.CreateString("text"))),
            (12, link(builder.CreateNumpyVector(np.float64([1.5, -2])))),
            (13, link(outer)),
            (14, link(vector_of(builder, [small_table(builder, i, f"table {i}") for i in range(1, 4)]))),
            (15, link(vector_of(builder, [builder.CreateString(f"text {i}") for i in range(3)]))),
            (16, lambda builder, slot: builder.PrependUint16Slot(slot, 500, 0)),
            (17, lambda builder, slot: builder.PrependFloat64Slot(slot, 0.1, 0)),
            (18, lambda builder, slot: builder.PrependUint32Slot(slot, 64, 0)),
        ]

    return with_tensor_fields(make)


def odd_indices():
    """Everything out of range that still reads."""
    model = make_model(
        [tensor("x", [2], buffer=9), tensor("negative", [-1, 2]), tensor("huge", [2**31 - 1] * 4, "INT8", data=b"\1")],
        [operator("ADD", [0, 77], [-1]), operator("ADD", [], [])],
        [5, -1],
        [6],
        signatures=[signature("s", {"a": 99}, {}, 4)],
    )
    model.operators[1].store("opcode_index", 44)
    model.store("metadata", [{"name": "min_runtime_version", "buffer": 55}, {"buffer": 0}])
    return pack(model)


def bare():
    """A model of no parts."""
    model = make_model()
    for field in ("version", "description", "operator_codes", "subgraphs", "buffers"):
        model.store(field, None)
    return pack(model)


def bfloat16():
    values = np.float32([1.5, -2, 3]).astype(ml_dtypes.bfloat16)
    return build_model([tensor("b", [3], "BFLOAT16", data=values), tensor("x", [3])], inputs=[1], outputs=[1])


def bad_strings():
    return build_model(
        [
            tensor(f"bytes {i}", [2], "STRING", data=data)
            for i, data in enumerate(
                [b"", b"\1", struct.pack("<i", -1), struct.pack("<4i", 2, 16, 90, 16), struct.pack("<i", 2**31 - 1)]
            )
        ]
    )


def no_zero_points():
    """Quantization that LiteRT refuses, each a common mistake."""
    return build_model(
        [
            tensor("no zero point", [2], "INT8", scale=0.5, zero_point=[]),
            tensor("too few", [3], "INT8", scale=[0.1, 0.2, 0.3], zero_point=[1]),
            tensor("axis", [3], "INT8", scale=[0.1, 0.2, 0.3], zero_point=[1, 1, 1], quantized_dimension=7),
            tensor("negative axis", [3], "INT8", scale=[0.1, 0.2, 0.3], quantized_dimension=-1),
            tensor("other count", [3], "INT8", scale=[0.1, 0.2], zero_point=[1, 2]),
            tensor("more zero points", [3], "INT8", scale=0.5, zero_point=[1, 2, 3]),
        ]
    )


MAKERS = [
    types, constants, shapes, variables, per_tensor, min_max, per_axis, conv, blockwise, sparse, subgraphs,
    custom_operators, stablehlo, variants, outside, external, plain, trailing, future, odd_indices, bare, bfloat16,
    bad_strings, no_zero_points, unknown_fields,
]  # fmt: skip


@cache
def all_models():
    return {make.__name__: make() for make in MAKERS}


def __getattr__(name):
    if name == "MODELS":
        return all_models()
    raise AttributeError(name)
