# SPDX-License-Identifier: Apache-2.0
"""Rows: the version of an operator that its types need.

Source: LiteRT f6745779, tflite/converter/tools/versioning/op_version.cc: the first row whose
condition holds gives the version.  That file has none for weights of 4 bits beside float activations; their row has the
version that introduced such weights.  Convolutions and FULLY_CONNECTED of int16 activations get the versions of its
comments for int16, though its conditions need int16 weights too; CONV_2D of int16 activations and weights of 4 bits,
which has no row there, that of such weights.  DEPTH_TO_SPACE and TILE keep their version with int8,
where that file says 2 and 3: LiteRT's reference resolver (register_ref.cc) knows no such versions, though its kernels
take int8.
"""

from __future__ import annotations

from collections.abc import Callable

from tq.editing.graph import OperatorPart, TensorPart


def _scale(tensor: TensorPart | None) -> float:
    if tensor is None or not tensor.quantization.scale_count:
        return 0.0
    return float(tensor.quantization.scale[0])


class Signature:
    """The types, shapes, scales and options of an operator, on which its version depends."""

    def __init__(self, operator: OperatorPart) -> None:
        self._operator = operator
        self._inputs = operator.inputs
        self._types = ["" if tensor is None else tensor.type_name for tensor in self._inputs]

    @property
    def count(self) -> int:
        """The number of inputs."""
        return len(self._inputs)

    def _tensor(self, index: int) -> TensorPart | None:
        return self._inputs[index] if index < len(self._inputs) else None

    def type(self, index: int) -> str:
        """The type of an input; "": left out."""
        return self._types[index] if index < len(self._types) else ""

    def is_per_channel(self, index: int) -> bool:
        tensor = self._tensor(index)
        return tensor is not None and tensor.quantization.scale_count > 1

    def shape(self, index: int) -> tuple[int, ...]:
        tensor = self._tensor(index)
        return () if tensor is None else tensor.shape

    def scale(self, index: int) -> float:
        """The first scale of an input; 0: it has none."""
        return _scale(self._tensor(index))

    @property
    def output_type(self) -> str:
        outputs = self._operator.outputs
        return "" if not outputs or outputs[0] is None else outputs[0].type_name

    @property
    def output_scale(self) -> float:
        outputs = self._operator.outputs
        return _scale(outputs[0] if outputs else None)

    def option(self, name: str) -> int:
        return int(self._operator.options.get(name) or 0)


Condition = Callable[[Signature], object]


def _hybrid(weights: int, type: str = "INT8") -> Condition:
    return lambda s: s.type(0) == "FLOAT32" and s.type(weights) == type


def _per_channel(weights: int) -> Condition:
    return lambda s: s.type(0) == "FLOAT32" and s.type(weights) == "INT8" and s.is_per_channel(weights)


def _asymmetric(weights: int) -> Condition:
    return lambda s: _hybrid(weights)(s) and s.option("asymmetric_quantize_inputs")


def _int8(data: int = 0) -> Condition:
    return lambda s: s.type(data) == "INT8"


def _int16(data: int = 0) -> Condition:
    return lambda s: s.type(data) == "INT16"


def _int4(activations: str) -> Condition:
    """Weights of 4 bits beside integer activations."""
    return lambda s: s.type(0) == activations and s.type(1) == "INT4"


def _narrow(data: int = 0) -> Condition:
    return lambda s: s.type(data) in ("INT8", "INT16")


def _rank(least: int) -> Condition:
    return lambda s: len(s.shape(0)) >= least


def _broadcasts(s: Signature) -> bool:
    """Whether the inputs broadcast over more than the 4 dimensions of version 2."""
    return s.shape(0) != s.shape(1) and max(len(s.shape(0)), len(s.shape(1))) > 4


def _rescales_up(s: Signature) -> bool:
    """Whether the scale of the int8 product is at least that of the output."""
    return s.type(0) == "INT8" and s.scale(0) * s.scale(1) >= s.output_scale > 0


_CENTERED = (lambda s: s.option("half_pixel_centers"), 3)
_INT8 = """LOG_SOFTMAX L2_NORMALIZATION SQUARED_DIFFERENCE SPLIT_V SPACE_TO_DEPTH GELU GREATER LESS LESS_EQUAL
    GREATER_EQUAL EQUAL NOT_EQUAL ARG_MAX ARG_MIN TOPK_V2"""
_INT8_INT16 = """MEAN RELU RELU6 RSQRT ABS LOGISTIC TANH SOFTMAX AVERAGE_POOL_2D MAX_POOL_2D CONCATENATION PACK
    MIRROR_PAD REDUCE_MAX REDUCE_MIN"""

VERSIONS: dict[str, tuple[tuple[Condition, int], ...]] = {
    "CONV_2D": (
        (_int4("INT16"), 7),
        (_int4("INT8"), 7),
        (_int16(), 4),
        (_int8(), 3),
        (_hybrid(1, "INT4"), 7),
        (_per_channel(1), 5),
        (_hybrid(1), 2),
    ),
    "DEPTHWISE_CONV_2D": ((_int16(), 5), (_int8(), 3), (_per_channel(1), 6), (_hybrid(1), 4)),
    "FULLY_CONNECTED": (
        (_hybrid(1, "INT2"), 14),
        (_int4("INT16"), 13),
        (_hybrid(1, "INT4"), 10),
        (_per_channel(1), 12),
        (_int16(), 7),
        (lambda s: s.count == 2, 6),
        (lambda s: s.option("keep_num_dims"), 5),
        (_int4("INT8"), 10),
        (_int8(), 4),
        (_asymmetric(1), 9),
        (_hybrid(1), 3),
    ),
    "TRANSPOSE_CONV": (
        (lambda s: s.option("fused_activation_function"), 4),
        (lambda s: s.type(3), 3),
        (lambda s: s.type(1) == "INT8", 2),
    ),
    "BATCH_MATMUL": ((_int16(), 3), (_int8(), 2), (_asymmetric(1), 4)),
    "EMBEDDING_LOOKUP": (
        (lambda s: s.type(1) == "INT4", 4),
        (lambda s: s.type(1) == "INT2", 5),
        (lambda s: s.type(1) == "INT8" and s.is_per_channel(1), 4),
    ),
    "SVDF": ((_int8(), 3), (_asymmetric(1), 4), (_hybrid(1), 2)),
    "RNN": ((_asymmetric(1), 3), (_hybrid(1), 2)),
    "UNIDIRECTIONAL_SEQUENCE_RNN": ((_asymmetric(1), 3), (_hybrid(1), 2)),
    "BIDIRECTIONAL_SEQUENCE_RNN": ((_asymmetric(1), 3), (_hybrid(1), 2)),
    "LSTM": ((_asymmetric(2), 4), (_hybrid(2), 3)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        (lambda s: s.option("diagonal_recurrent_tensors"), 4),
        (_asymmetric(2), 3),
        (_hybrid(2), 2),
    ),
    "BIDIRECTIONAL_SEQUENCE_LSTM": ((_asymmetric(2), 3), (_hybrid(2), 2)),
    **{name: ((_int8(), 2),) for name in _INT8.split()},
    **{name: ((_int16(), 3), (_int8(), 2)) for name in _INT8_INT16.split()},
    **{name: ((_narrow(), 2),) for name in ("EXP", "LOG", "REDUCE_PROD", "SQRT")},
    "TOPK_V2": ((_int16(), 3), (_int8(), 2)),
    "LEAKY_RELU": ((_int16(), 2),),
    "ADD": ((_int16(), 3), (_int8(), 2)),
    "SUB": ((_int16(), 5), (lambda s: s.type(0) == "INT8" and _broadcasts(s), 3), (_int8(), 2)),
    "MUL": ((_int16(), 4), (_rescales_up, 3), (_int8(), 2)),
    "MAXIMUM": ((_int16(), 4), (lambda s: s.type(0) == "INT8" and _broadcasts(s), 3), (_int8(), 2)),
    "MINIMUM": ((_int16(), 4), (lambda s: s.type(0) == "INT8" and _broadcasts(s), 3), (_int8(), 2)),
    "SPLIT": ((_int16(1), 4), (_int8(1), 2)),
    "UNPACK": ((_int16(), 4), (_int8(), 2)),
    "RESIZE_BILINEAR": ((_int16(), 4), _CENTERED, (_int8(), 2)),
    "RESIZE_NEAREST_NEIGHBOR": (
        (_int16(), 4),
        _CENTERED,
        (lambda s: s.option("align_corners"), 3),
        (_int8(), 2),
    ),
    "TRANSPOSE": ((_rank(7), 8), (_rank(6), 6), (_int16(), 5), (_rank(5), 4), (_int8(), 2)),
    "PAD": ((_rank(5), 4), (_int16(), 3), (_int8(), 2)),
    "PADV2": ((_rank(5), 4), (_int16(), 3), (_int8(), 2)),
    "SPACE_TO_BATCH_ND": ((_int16(), 4), (lambda s: len(s.shape(0)) != 4, 3), (_int8(), 2)),
    "BATCH_TO_SPACE_ND": ((_int16(), 4), (lambda s: len(s.shape(0)) != 4, 3), (_int8(), 2)),
    "REVERSE_V2": ((_int8(), 3),),
    "BROADCAST_TO": ((_narrow(), 3),),
    "FILL": ((_narrow(1), 3),),
    "SPARSE_TO_DENSE": ((_int8(2), 3),),
    "DYNAMIC_UPDATE_SLICE": ((_int16(), 4),),
    "GATHER": (
        (lambda s: s.type(1) == "INT16", 6),
        (lambda s: s.option("batch_dims"), 5),
        (_int16(), 4),
        (_int8(), 2),
    ),
    "GATHER_ND": ((_int16(), 3),),
    "SLICE": ((_rank(5), 5), (_int16(), 4), (_int8(), 2)),
    "STRIDED_SLICE": ((_rank(5), 4), (_int8(), 2)),
    "QUANTIZE": ((lambda s: s.output_type == "INT16", 2),),
    "DEQUANTIZE": (
        (lambda s: s.type(0) == "INT2", 7),
        (lambda s: s.type(0) == "INT4", 6),
        (lambda s: s.type(0) in ("INT16", "FLOAT16"), 3),
        (lambda s: s.type(0) == "INT8" and s.is_per_channel(0), 5),
        (lambda s: s.type(0) == "INT8", 2),
    ),
}


def needed(operator: OperatorPart) -> int:
    """The version for an operator's current types; at least its current version."""
    signature = Signature(operator)
    for holds, version in VERSIONS.get(operator.name, ()):
        if holds(signature):
            return max(version, operator.version)
    return operator.version
