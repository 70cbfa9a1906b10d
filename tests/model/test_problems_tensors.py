# SPDX-License-Identifier: Apache-2.0
"""Problems of tensors: their types, sizes and quantization."""

import struct

import numpy as np
import pytest
from models import build_model, tensor
from problem_cases import case, cases, codes, quantized, x

# ---- tensors ----


cases(
    ("type-unknown", "type of the future", build_model([x(4, type=99)], [], [0], [0])),
    ("dimension-negative", "dimension below zero", build_model([x(4, -1)], [], [0], [0])),
    ("shape-overflow", "shape that wraps", build_model([x(*[2**31 - 1] * 3)], [], [0], [0])),
    ("signature-rank", "signature of another rank", build_model([x(1, 4, shape_signature=[-1])], [], [0], [0])),
    ("signature-shape", "signature of another shape", build_model([x(1, 4, shape_signature=[-1, 5])], [], [0], [0])),
)


def constant(shape, type, data):
    return build_model([tensor("w", shape, type, data)], [], [], [0])


cases(
    ("data-short", "constant too short", constant([4], "FLOAT32", bytes(15))),
    ("data-long", "constant too long", constant([4], "FLOAT32", bytes(17))),
)


@pytest.mark.parametrize(
    ("type", "count", "size"),
    [("INT4", 5, 3), ("INT2", 5, 2), ("BOOL", 3, 3), ("FLOAT16", 3, 6), ("COMPLEX128", 2, 32)],
)
def test_sizes_of_constants(type, count, size):
    assert codes(constant([count], type, bytes(size - 1))) == {"data-short"}
    assert codes(constant([count], type, bytes(size))) == set()
    assert codes(constant([count], type, bytes(size + 1))) == {"data-long"}


@case("strings")
def strings_past_the_end():
    return constant([1], "STRING", struct.pack("<3i", 1, 12, 99) + b"abc")


@pytest.mark.parametrize(
    "content", [b"", b"\1", struct.pack("<i", -1), struct.pack("<i", 2**31 - 1), struct.pack("<3i", 1, 20, 4)]
)
def test_malformed_strings(content):
    assert codes(constant([1], "STRING", content)) == {"strings"}


@case("string-count")
def strings_of_another_shape():
    return constant([2], "STRING", struct.pack("<3i", 1, 12, 15) + b"abc")


def sparse(segments, stored=2):
    segments, indices = ({"type": "Int32Vector", "values": values} for values in (segments, [0, 1]))
    compressed = {"format": "SPARSE_CSR", "array_segments": segments, "array_indices": indices}
    sparsity = {"traversal_order": [0, 1], "dim_metadata": [{"format": "DENSE", "dense_size": 2}, compressed]}
    return build_model([tensor("w", [2, 2], data=bytes(4 * stored), sparsity=sparsity)], [], [], [0])


cases(
    ("sparsity", "segments that fall", sparse([0, 2, 1])),
    ("sparsity", "segments past the indices", sparse([0, 1, 9])),
)


def test_a_sound_sparse_tensor_is_no_problem():
    assert codes(sparse([0, 1, 2])) == set()


cases(
    (
        "type-unknown",
        "variant of the future",
        build_model([x(4, type="VARIANT", variant_tensors=[{"shape": [1], "type": 77}])], [], [0], [0]),
    ),
    ("sparsity", "fewer values than described", sparse([0, 1, 2], stored=1)),
)


# ---- quantization ----


cases(
    ("scale-missing", "zero point alone", quantized(zero_point=[3])),
    ("zero-point-count", "scale without zero point", quantized(scale=[0.5], zero_point=[])),
    ("zero-point-count", "two zero points", quantized(scale=[0.5], zero_point=[0, 0])),
    ("scale-count", "three scales for four channels", quantized(scale=[1, 2, 3], zero_point=[0, 0, 0])),
    ("quantized-dimension", "axis past the rank", quantized(scale=[1] * 4, zero_point=[0] * 4, quantized_dimension=2)),
    ("quantized-dimension", "axis past the rank per tensor", quantized(scale=0.5, quantized_dimension=-1)),
    ("scale-value", "scale below zero", quantized(scale=-0.5)),
)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), float("-inf"), -1e-40])
def test_scales_that_are_no_scales(scale):
    assert codes(quantized(scale=scale)) == {"scale-value"}


cases(
    ("scale-zero", "scale is zero", quantized(scale=[1, 0, 1, 1], zero_point=[0] * 4)),
    ("scale-absurd", "scale is huge", quantized(scale=1e36)),
    ("scale-absurd", "scale is subnormal", quantized(scale=1e-40)),
    ("zero-point-range", "zero point of uint8", quantized(scale=0.5, zero_point=128)),
    ("zero-point-wide", "zero point of 64 bits", quantized(scale=0.5, zero_point=2**33 + 5)),
    ("quantization-type", "quantized bool", quantized(type="BOOL", scale=0.5)),
    ("range-count", "two minima", quantized(scale=0.5, min=[0, 0], max=[1])),
    ("range-count", "three ranges", quantized(scale=0.5, min=[0, 0, 0], max=[1, 1, 1])),
    ("range-order", "range upside down", quantized(scale=0.5, min=[1], max=[0])),
    ("range-not-finite", "range without end", quantized(scale=0.5, min=[0], max=[float("inf")])),
)


def test_quantization_that_is_sound():
    assert (
        codes(quantized(scale=[1] * 8, zero_point=[-128, 127] * 4, quantized_dimension=1, min=[0] * 8, max=[1] * 8))
        == set()
    )
    assert codes(quantized(type="FLOAT32", scale=0.5, zero_point=3000, min=[0], max=[1])) == set()  # trained for int8
    assert codes(quantized(min=[-1], max=[1])) == set()
    assert codes(quantized(type="UINT8", scale=0.5, zero_point=255)) == set()
    assert codes(quantized(type="INT16", scale=1e-30)) == set()


@case("scale-count")
def two_scales_for_a_scalar():
    return quantized(shape=(), scale=[1, 1], zero_point=[0, 0])


def blockwise(block_size=4, scales=1, zero_points=-1, scale_type="FLOAT16", scale_shape=(2, 2), shape=(2, 8)):
    details = {"type": "BlockwiseQuantization", "scales": scales, "zero_points": zero_points, "block_size": block_size}
    size = int(np.prod(scale_shape)) * (4 if scale_type == "FLOAT32" else 1 if scale_type == "INT8" else 2)
    weights = tensor("w", list(shape), "INT8", bytes(int(np.prod(shape))), details=details)
    return build_model([weights, tensor("s", list(scale_shape), scale_type, bytes(size))], [], [], [0])


@case("block-size")
def block_size_0():
    return blockwise(block_size=0)


@pytest.mark.parametrize("size", [-1, 3, 16, -(2**31)])
def test_block_sizes(size):
    assert codes(blockwise(block_size=size)) == {"block-size"}


cases(
    ("block-tensor", "scales in no tensor", blockwise(scales=2)),
    ("block-tensor", "zero points in no tensor", blockwise(zero_points=-7)),
    ("block-tensor", "scales are integers", blockwise(scale_type="INT8")),
    ("block-tensor", "too few scales", blockwise(scale_shape=(3,))),
    ("block-dimensions", "blocks of a scalar", blockwise(shape=())),
)


def multi_axis(axes, block_size=0, scales=4):
    details = {"type": "MultiAxisQuantization", "scales": 1, "zero_points": -1, "block_size": block_size}
    details["quantized_dimensions"] = axes
    weights = tensor("w", [2, 2, 4], "INT8", bytes(16), details=details)
    return build_model([weights, tensor("s", [scales], "FLOAT32", bytes(4 * scales))], [], [], [0])


@case("block-dimensions")
def axis_named_twice():
    return multi_axis([0, 0])


@pytest.mark.parametrize("axes", [[], [0, 3], [-1], [0, 1, 2, 0]])
def test_multi_axis_dimensions(axes):
    assert codes(multi_axis(axes)) == {"block-dimensions"}


def test_blocks_that_are_sound():
    assert codes(blockwise()) == set()
    assert codes(blockwise(scale_type="FLOAT32")) == set()
    assert codes(multi_axis([0, 1])) == set()
    assert codes(multi_axis([0, 2], block_size=2)) == set()
    assert codes(multi_axis([0, 2], block_size=2, scales=5)) == {"block-tensor"}
