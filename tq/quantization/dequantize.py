# SPDX-License-Identifier: Apache-2.0
"""tq.dequantize_model: a float model of the real values that a quantized one stands for.

Constants become their real values, activations float32, QUANTIZE and DEQUANTIZE go.  Tensors keep their range as min
and max, from which tq.quantize_model makes the same scales and zero points again; or FAKE_QUANT operators do what
rounding did.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core, saving
from tq._core import Model
from tq.editing import versions
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.enums import LIMITS
from tq.quantization import ends
from tq.quantization.grids import BITS, SIGNED, of_fake_quant
from tq.quantization.passes import NothingToQuantize
from tq.quantization.preparation import ends as first_ends
from tq.quantization.quantize import quantize_model
from tq.quantization.recipes import WEIGHTS
from tq.quantization.recurrent import TIME_MOST
from tq.running.recurrent import TIME
from tq.sources import Source, snapshot
from tq.specification.applying import complete
from tq.specification.table import FLOAT, FREE, INTEGER, SAME

DTYPES = ("float32", "float16")
_NARROW = ("INT2", "INT4", "UINT4", "INT8", "UINT8", "INT16")
_WIDE = ("INT32", "INT64")  # of biases
_MOST = {"INT2": 1, "INT4": 7, "UINT4": 7, "INT8": 127, "UINT8": 127, "INT16": 32767}
_LEAST = {name: LIMITS[name.lower()][0] for name in ("INT8", "UINT8")}
_BETWEEN = ("QUANTIZE", "DEQUANTIZE")
# Custom operators that take real values as well as quantized ones.
_CUSTOM = ("TFLite_Detection_PostProcess",)
# Operators of quantized values, not of the real values behind them; others of FLOAT compute the same of both.
_OF_QUANTIZED = frozenset(FLOAT) - {*_BETWEEN, "CALL_ONCE", "DENSIFY", "UNIQUE", "WHERE"}


class _Real(NamedTuple):
    """The quantization of a tensor before it became float."""

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    axis: int
    type: str

    @property
    def ends(self) -> tuple[float, float]:
        """The range of an activation."""
        rule = "toco" if self.type == "UINT8" else "mlir"  # as recipe "uint8" has it
        type_, shift = SIGNED.get(self.type, (self.type.lower(), 0))
        scale, zero = float(self.scale[0]), int(self.zero_point[0]) - shift
        zeros = type_ == "int8" and ends.of_zeros(scale, zero, type_)
        return zeros or ends.of_activation(scale, zero, type_, rule)

    @property
    def bits(self) -> int:
        return int(self.type.removeprefix("U").removeprefix("INT"))

    @property
    def fake_quant(self) -> dict[str, Any]:
        """The options of a FAKE_QUANT, without narrow_range, which LiteRT's kernel refuses."""
        type_, shift = SIGNED.get(self.type, (self.type.lower(), 0))
        half, bits = 1 << (self.bits - 1), self.bits

        def made(low: float, high: float) -> tuple[np.float32, int]:
            grid = of_fake_quant(low, high, bits, False, type_)
            return grid.scale[0], int(grid.zero_point[0])

        low, high = ends.searched(float(self.scale[0]), int(self.zero_point[0]) - shift, (-half, half - 1), made)
        return {"min": low, "max": high, "num_bits": bits, "narrow_range": False}


def dequantize_model(
    model: Source,
    output: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    fake_quant: bool = False,
    in_place: bool = False,
) -> bytes:
    """A quantized model as a float model.

    model: a path, bytes or a tq.Model, which stays as it is: of int8, uint8 or int16 activations, or of integer weights
        beside float activations, whichever program made it.
    output: a path to write the model to as well; the file appears whole or not at all.
    dtype: of constants: "float32"; "float16" keeps them behind a DEQUANTIZE.
    in_place: `output` may be the path of `model`.
    fake_quant: FAKE_QUANT operators of 4, 8 and 16 bits stand where activations were quantized, and weights of one
        scale: the model computes what the quantized one does, but for rounding inside operators.

    Inputs and outputs become float32.  Tensors keep the range that they had as min and max, by which
    tq.quantize_model(made, recipe) without calibration gives the scales, zero points and quantized values that were.

    Operators whose least quantized value is 0.0 get a fused RELU, or RELU6: toco took it away, since the range does it.
    Other ranges do not clamp; FAKE_QUANT operators do.

    A QUANTIZE from one scale to another goes: one tensor stays, of the second scale.  FAKE_QUANT operators keep both.

    ValueError: nothing is quantized; an operator of quantized values, not of real ones, such as CAST; or a custom one.
    OSError: as tq.quantize_model.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(map(repr, DTYPES))}")
    model = snapshot(model)
    goal = saving.target(output, model=model, in_place=in_place)
    editor = Editor(model)
    try:
        complete(editor)
        if not any([_Graph(graph, model, bool(fake_quant)).run() for graph in editor.subgraphs]):
            raise ValueError("the model holds no quantized values")
        editor.prune()
        data = editor.to_bytes()
    finally:
        editor.close()
    if dtype == "float16":
        with contextlib.suppress(NothingToQuantize):  # there are no weights
            data = bytes(quantize_model(data, "float16"))
    if goal is not None:
        goal.save(data)
    return data


class _Graph:
    """One subgraph on its way."""

    def __init__(self, graph: SubgraphPart, model: Model, fake_quant: bool) -> None:
        self._graph, self._fake_quant = graph, fake_quant
        self._source = model.subgraphs[graph.index].tensors
        self._readers: dict[TensorPart, list[tuple[OperatorPart, int]]] = {}
        for op in graph.operators:
            for place, tensor in enumerate(op.inputs):
                if tensor is not None:
                    self._readers.setdefault(tensor, []).append((op, place))

    def run(self) -> bool:
        """False: nothing of it is quantized."""
        found = {tensor: real for tensor in self._graph.tensors if (real := self._real(tensor)) is not None}
        biases = self._biases_without_scale(found)
        self._check(found)
        for tensor, real in found.items():
            self._become_float(tensor, real)
        for tensor, scale in biases.items():
            values = np.asarray(tensor.data)
            tensor.type = "float32"
            tensor.data = _real_bias(values, scale)
        if self._fake_quant:
            self._insert_fake_quants(found)
        else:
            self._restore_clamps(found)
        self._skip_between(found)
        for op in self._graph.operators:
            _reset_options(op)
        return bool(found)

    # -- what is quantized

    def _real(self, tensor: TensorPart) -> _Real | None:
        q = tensor.quantization
        scale = np.asarray(q.scale, np.float32)
        blocks = q.details is not None and q.details.get("type") == "BlockwiseQuantization"
        if tensor.type_name in _WIDE:
            if not self._is_bias(tensor) or not scale.size or not (scale > 0).all():
                return None
        elif tensor.type_name not in _NARROW or not (blocks or (scale.size and (scale > 0).all())):
            return None
        zero = np.asarray(q.zero_point, np.int64) if len(q.zero_point) else np.zeros(1, np.int64)
        return _Real(scale, np.broadcast_to(zero, scale.shape), q.quantized_dimension, tensor.type_name)

    def _is_bias(self, tensor: TensorPart) -> bool:
        """A constant that all of its readers take as a bias, or a tensor between QUANTIZE and DEQUANTIZE."""
        readers = self._readers.get(tensor, [])
        if not tensor.is_constant:
            writer = tensor.producer
            users = [op.builtin_name for op, _ in readers] + ([writer.builtin_name] if writer is not None else [])
            return bool(users) and set(users) <= set(_BETWEEN)
        return bool(readers) and all(_takes_bias(op, place) for op, place in readers)

    def _biases_without_scale(self, found: Mapping[TensorPart, _Real]) -> dict[TensorPart, NDArray[np.float32]]:
        """Biases of which the file does not say that their scale is the input's times the weights'."""
        scales = {}
        for tensor, readers in self._readers.items():
            if tensor in found or tensor.type_name not in _WIDE or not self._is_bias(tensor):
                continue
            op = readers[0][0]
            row = INTEGER.get(op.builtin_name or "")
            weights = op.inputs[row.weights] if row is not None and row.weights is not None else None
            place = 2 if op.builtin_name == "TRANSPOSE_CONV" else 0
            data = op.inputs[place] if place < len(op.inputs) else None
            one, other = (found.get(t) if t is not None else None for t in (data, weights))
            if one is not None and other is not None:
                scales[tensor] = np.asarray(one.scale * other.scale, np.float32)
        return scales

    def _check(self, found: Mapping[TensorPart, _Real]) -> None:
        for op in self._graph.operators:
            mine = [t for t in (*op.inputs, *op.outputs) if t is not None and t in found]
            name = op.builtin_name or "CUSTOM"
            if mine and (name in _OF_QUANTIZED or (name == "CUSTOM" and op.name not in _CUSTOM)):
                why = FLOAT.get(name, "a custom operator may take quantized values for what they are")
                raise ValueError(f"operator {op.index} ({op.name}) with {mine[0]!r} has no float form: {why}")

    # -- writing

    def _become_float(self, tensor: TensorPart, real: _Real) -> None:
        if tensor.is_constant and tensor.raw_data is not None and len(tensor.raw_data):
            source, values = self._source[tensor.index], np.asarray(tensor.data)
            is_bias = real.type in _WIDE and not real.zero_point.any() and values.ndim == 1
            data = _real_bias(values, real.scale) if is_bias else source.dequantized()
            low, high = self._ends_of_constant(tensor, real)
            tensor.store("sparsity", None)
            tensor.type = "float32"
            tensor.data = np.asarray(data, np.float32).reshape(tensor.shape)
        else:
            low, high = _stored(tensor, real)
            tensor.type = "float32"
        many = len(low) > 1
        tensor.quantization = None
        if len(low):
            tensor.quantization = {"min": low, "max": high, **({"quantized_dimension": real.axis} if many else {})}

    def _ends_of_constant(self, tensor: TensorPart, real: _Real) -> tuple[NDArray[Any], NDArray[Any]]:
        """The min and max of a constant: of weights, or of one that is read like an activation.  A bias has none."""
        none = np.empty(0, np.float32)
        if real.type in _WIDE or not real.scale.size:
            return none, none
        if real.scale.size == 1 and real.type == "UINT8":  # from 1 to 255: recipe "uint8"
            scale, zero = float(real.scale[0]), int(real.zero_point[0])
            if any(_takes_weights(op, place) for op, place in self._readers.get(tensor, [])):
                low, high = ends.of_unsigned_weights(scale, zero)
                return np.array([low], np.float32), np.array([high], np.float32)
        if real.scale.size > 1 or any(_takes_weights(op, place) for op, place in self._readers.get(tensor, [])):
            return ends.of_weights(real.scale, self._most(tensor, real))
        if real.type not in ("INT8", "UINT8", "INT16"):
            return none, none
        low, high = self._ends_beside(tensor, real) or real.ends
        return np.array([low], np.float32), np.array([high], np.float32)

    def _most(self, tensor: TensorPart, real: _Real) -> int:
        """The greatest quantized value of weights."""
        readers = self._readers.get(tensor, [])
        is_time = real.type == "INT16" and any(op.name == "SVDF" and place == TIME for op, place in readers)
        return TIME_MOST if is_time else _MOST[real.type]

    def _ends_beside(self, tensor: TensorPart, real: _Real) -> tuple[float, float] | None:
        """The range that the file has for an activation that must have the constant's parameters."""
        for op, _ in self._readers.get(tensor, []):
            row = INTEGER.get(op.builtin_name or "")
            others = (*op.outputs, *op.inputs) if row is not None and row.int8 == SAME else ()
            for place in (other.index for other in others if other is not None and not other.is_constant):
                q = self._source[place].quantization
                if len(q.min) == len(q.max) == 1 and list(q.scale) == list(real.scale):
                    return float(q.min[0]), float(q.max[0])
        return None

    def _skip_between(self, found: Mapping[TensorPart, _Real]) -> None:
        """Takes QUANTIZE and DEQUANTIZE away, and lets one tensor stand for both."""
        graph = self._graph
        for op in [op for op in graph.operators if op.builtin_name in _BETWEEN]:
            source, target = first_ends(op)
            if source is None or target is None or {source.type_name, target.type_name} != {"FLOAT32"}:
                continue  # of float16, say
            graph.remove_operator(op)
            range_ = source if op.builtin_name == "DEQUANTIZE" else target
            stays = target in graph.outputs and source not in graph.inputs and source not in graph.outputs
            gone, left = (source, target) if stays else (target, source)
            if source.is_constant and not target.is_constant:
                gone, left = target, source
            if range_ == gone:
                left.quantization = gone.quantization
            graph.replace_tensor(gone, left)

    def _restore_clamps(self, found: Mapping[TensorPart, _Real]) -> None:
        """Gives operators the RELU that toco takes away where the least quantized value is 0.0: without it the values
        of a float network of a hundred layers may pass all bounds."""
        for op in self._graph.operators:
            real = found.get(op.outputs[0]) if op.outputs and op.outputs[0] is not None else None
            if real is None or not _takes_clamp(op) or real.scale.size != 1 or real.type not in _LEAST:
                continue
            if int(real.zero_point[0]) == _LEAST[real.type]:
                scale = float(real.scale[0])
                op.options["fused_activation_function"] = "RELU6" if abs(255 * scale - 6) < scale else "RELU"
                op.share_version(max(op.version, versions.needed(op)))

    def _insert_fake_quants(self, found: Mapping[TensorPart, _Real]) -> None:
        graph = self._graph
        producers = {t: op for op in graph.operators for t in op.outputs if t is not None}
        for tensor, real in found.items():
            is_used = tensor in producers or any(not _is_recurrent(op) for op, _ in self._readers.get(tensor, []))
            if real.scale.size != 1 or real.bits not in BITS or tensor.is_variable or not is_used:
                continue
            producer = producers.get(tensor)
            is_requantized = any(op.builtin_name == "QUANTIZE" for op, _ in self._readers.get(tensor, []))
            if producer is not None and not is_requantized and _only_moves(producer, real, found):
                continue
            if producer is not None and producer.builtin_name == "QUANTIZE" and producer.inputs:  # it becomes one
                producer.become("FAKE_QUANT", [producer.inputs[0]], real.fake_quant)
                continue
            self._insert_fake_quant(tensor, producer, real.fake_quant)

    def _insert_fake_quant(self, tensor: TensorPart, producer: OperatorPart | None, options: dict[str, Any]) -> None:
        graph = self._graph
        made = graph.add_tensor(f"{tensor.name}_float", tensor.shape, shape_signature=tensor.shape_signature)
        if producer is None:  # an input, or a constant: readers get what is made of it
            for op in graph.operators:
                op.replace_inputs({tensor: made})
            place = min([op.index for op, _ in self._readers.get(tensor, [])], default=0)
            graph.add_operator("FAKE_QUANT", [tensor], [made], at=place, options=options)
        else:
            producer.outputs = [made if t == tensor else t for t in producer.outputs]
            graph.insert_after(producer, "FAKE_QUANT", [made], [tensor], options=options)


def _real_bias(values: NDArray[Any], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """Real values of which the quantized ones are made again: int64 has more of them than float32, where a neighbour of
    the product may be the one that was quantized."""
    made = np.asarray(values.astype(np.float64) * scale.astype(np.float64), np.float32)
    found = made.copy()
    for end in (np.inf, -np.inf):
        beside = np.nextafter(made, np.float32(end))
        is_exact = _core.quantize_bias(beside, scale, 1, dtype=values.dtype) == values
        is_wrong = _core.quantize_bias(found, scale, 1, dtype=values.dtype) != values
        found = np.where(is_wrong & is_exact, beside, found)
    return found


def _stored(tensor: TensorPart, real: _Real) -> tuple[NDArray[Any], NDArray[Any]]:
    """The range of an activation: as the file has it, where it gives the scale and the zero point, which it does in
    files of tq's."""
    none = np.empty(0, np.float32)
    if real.scale.size != 1 or real.type not in ("INT8", "UINT8", "INT16"):
        return none, none
    q = tensor.quantization
    if len(q.min) == len(q.max) == 1 and real.type != "UINT8":
        type_ = real.type.lower()
        centered = type_ == "int16"
        made = _core.choose_quantization_params(
            float(q.min[0]), float(q.max[0]), type_, symmetric=centered, narrow_range=centered, rule="mlir"
        )
        if (np.float32(made.scale), int(made.zero_point)) == (real.scale[0], int(real.zero_point[0])):
            return np.array(q.min), np.array(q.max)
    low, high = real.ends
    return np.array([low], np.float32), np.array([high], np.float32)


def _takes_clamp(op: OperatorPart) -> bool:
    row, fused = INTEGER.get(op.builtin_name or ""), op.options.get("fused_activation_function")
    return row is not None and row.int8 == FREE and not row.recurrent and getattr(fused, "name", "") == "NONE"


def _takes_bias(op: OperatorPart, place: int) -> bool:
    row = INTEGER.get(op.builtin_name or "")
    if op.builtin_name == "DEQUANTIZE":
        return True
    return row is not None and (row.bias == place or row.recurrent)


def _is_recurrent(op: OperatorPart) -> bool:
    """Its constants keep the scales of their own values."""
    row = INTEGER.get(op.builtin_name or "")
    return row is not None and row.recurrent


def _takes_weights(op: OperatorPart, place: int) -> bool:
    row = WEIGHTS.get(op.builtin_name or "")
    return op.builtin_name == "DEQUANTIZE" or (row is not None and place in row.inputs)


def _only_moves(op: OperatorPart, real: _Real, found: Mapping[TensorPart, _Real]) -> bool:
    """Whether its output's quantized values are its input's, which went through FAKE_QUANT."""
    row = INTEGER.get(op.builtin_name or "")
    if row is None or row.int8 != SAME or op.builtin_name == "AVERAGE_POOL_2D":
        return False
    read = [found[t] for t in op.inputs if t is not None and t in found]
    return bool(read) and all(item.scale.tolist() == real.scale.tolist() for item in read)


def _reset_options(op: OperatorPart) -> None:
    """Options of quantized operators, back to their defaults."""
    options = op.options
    for tensor in op.intermediates:  # of integer LSTMs; some have no scale
        if tensor is not None:
            tensor.type = "float32"
    for name in ("asymmetric_quantize_inputs", "quantized_bias_type"):
        if options.get(name):
            options[name] = None
