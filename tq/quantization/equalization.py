# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalization: channels of one layer are divided by factors, and the next layer multiplies by these.

Where a layer's output passes only through what keeps f(x s) = f(x) s for s > 0, its channel i may be divided by any s_i
> 0 (weights and bias) and the next layer's weights for that channel multiplied by it; the model computes the same.
With r_i the range of a channel and w_i that of the next layer's weights for it, s_i = sqrt(r_i / w_i) makes both
equal, and so one scale a tensor fits all channels (Nagel et al. 2019, Data-Free Quantization Through Weight
Equalization and Bias Correction).  Here s_i is the nearest power of two, so that float results keep every bit.

RELU6 does not scale: it is left alone, or written out as RELU and MINIMUM(6 / s_i).
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.calibration.samples import Data
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.progress import tracked
from tq.quantization.preparation import fold_constants
from tq.running.limits import Limits
from tq.saving import target
from tq.sources import Source, snapshot

Array = NDArray[Any]

# The axis of a layer's weights that its output's channels are, and the axis that its input's are.
_OUTPUT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}
_INPUT_AXIS = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 1}
_RANKS = {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 4, "FULLY_CONNECTED": 2}

# Operators that scale with their first input, channel by channel.
_SCALING = {
    "ABS", "AVERAGE_POOL_2D", "LEAKY_RELU", "MAX_POOL_2D", "MEAN", "PAD", "PRELU", "RELU", "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
}  # fmt: skip
CLAMPED = "_before_minimum"  # behind the name of a RELU6's output: the tensor that MINIMUM reads
_LIMIT = 16  # of a scale's exponent: real values stay far from the ends of float32
_ROUNDS = 8  # over all pairs: chains settle in two or three
_ENOUGH = 0.6  # of a power of two: less is not worth moving, and two pairs would move it to and fro


@dataclass
class Pair:
    """Two layers, between which channels can be scaled."""

    first: OperatorPart
    second: OperatorPart
    channels: int
    clamp: bool  # a RELU6 stands between them, fused into the first
    passed: list[TensorPart]  # from the first layer's output to the second's input

    @property
    def weights(self) -> tuple[TensorPart, TensorPart]:
        """The weights of both layers."""
        first, second = _weights(self.first), _weights(self.second)
        assert first is not None and second is not None
        return first, second

    @property
    def between(self) -> TensorPart:
        """The first layer's output."""
        (tensor,) = self.first.outputs
        assert tensor is not None
        return tensor


NOTHING = "equalize changes nothing: no two layers of the model can be scaled"


def equalize(
    model: Source,
    *,
    samples: Data | None = None,
    relu6: str = "keep",
    per_axis: bool = True,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> bytes:
    """A float model whose channels are scaled so that they quantize better; it computes the same to the last bit.

    Layers are CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED with constant weights that nothing else reads (those that
    the file keeps as float16 or sparse, behind DEQUANTIZE or DENSIFY, become plain float32); between two
    of them may stand RELU, LEAKY_RELU, PRELU, ABS, pools, PAD, MEAN over other axes than the channels', resizing and,
    before FULLY_CONNECTED, RESHAPE.

    samples: as tq.calibrate takes them: the ranges of a layer's channels are then its output's, which is
        quantized with one scale; without samples, its weights'.
    relu6: "keep" leaves layers with a fused RELU6 as they are; "minimum" gives them a RELU and a MINIMUM in its place.
    per_axis: weights are to be quantized with a scale for each channel, so those of a DEPTHWISE_CONV_2D may be any.
    output: a path to write the model to as well.  in_place: it may be the path of `model`.
    num_threads, max_memory, max_multiply_adds: of runs of samples, as tq.Interpreter takes them.

    Returns the model; the same, with a RuntimeWarning, where no two layers can be scaled.  relu6="minimum" without such
    a RELU6 warns, too.  Results keep their bits unless values pass below 2^-126 or above 2^127.  ValueError: a
    quantized model, weights that are not finite, samples that do not fit.
    """
    if relu6 not in ("keep", "minimum"):
        raise ValueError(f"relu6 is {relu6!r}; it must be 'keep' or 'minimum'")
    if num_threads is not None and samples is None:
        raise ValueError("num_threads is given and has no effect: no samples are run")
    model = snapshot(model)
    goal = target(output, samples, model=model, in_place=in_place)
    limits = Limits(max_memory, max_multiply_adds)
    result, found = scaled(model, samples, limits, relu6=relu6, per_axis=per_axis, num_threads=num_threads)
    if not found:
        warnings.warn(NOTHING, RuntimeWarning, stacklevel=2)
    elif relu6 == "minimum" and not any(pair.clamp for pair in found):
        warnings.warn("relu6='minimum' changes nothing: no layer to scale has a RELU6", RuntimeWarning, stacklevel=2)
    if goal is not None:
        goal.save(result)
    return result


def scaled(
    model: Model,
    samples: Data | None,
    limits: Limits,
    *,
    relu6: str,
    per_axis: bool,
    num_threads: int | None = None,
) -> tuple[bytes, list[Pair]]:
    """The model that `equalize` returns, and the pairs of layers that it scales."""
    folded = _folded(model)
    editor = Editor(folded)
    found = pairs(editor.main, with_relu6=relu6 == "minimum")
    ranges = _ranges(folded, found, samples, limits, num_threads) if samples is not None else {}
    _Scaling(found, ranges, per_axis).write(editor.main)
    return (editor if found else Editor(model)).to_bytes(), found


def _folded(model: Model) -> Model:
    """A model whose layers' weights are constants, where it keeps them as float16 or sparse."""
    editor = Editor(model)
    layers = [op for op in editor.main.operators if op.name in _OUTPUT_AXIS]
    fold_constants(editor.main, model, layers)
    return editor.to_model() if len(editor.main.operators) < len(model.subgraphs[0].operators) else model


# ---- pairs ----


def pairs(graph: SubgraphPart, with_relu6: bool = False) -> list[Pair]:
    """The pairs of layers of a subgraph that can be scaled, in order."""
    readers: dict[int, list[OperatorPart]] = {}
    for op in graph.operators:
        for index in op.input_indices:
            readers.setdefault(index, []).append(op)
    ends = {tensor.index for tensor in graph.outputs if tensor is not None}
    ends |= {tensor.index for tensor in graph.tensors if tensor.is_variable}
    found = []
    for op in graph.operators:
        pair = _pair(op, readers, ends)
        if pair is not None and (with_relu6 or not pair.clamp):
            found.append(pair)
    return found


def _activation(op: OperatorPart) -> str:
    return str(getattr(op.options.get("fused_activation_function"), "name", "NONE"))


def _weights(op: OperatorPart) -> TensorPart | None:
    """A layer's weights, where they can be changed."""
    inputs = op.inputs
    tensor = inputs[1] if len(inputs) > 1 else None
    fits = tensor is not None and _is_float_constant(tensor) and len(tensor.shape) == _RANKS[op.name]
    return tensor if fits else None


def _is_float_constant(tensor: TensorPart) -> bool:
    return tensor.is_constant and tensor.type_name == "FLOAT32" and not tensor.is_variable and not tensor.is_sparse


def _alone(tensor: TensorPart, readers: dict[int, list[OperatorPart]], ends: set[int]) -> OperatorPart | None:
    """The one operator that reads a tensor, which is no output."""
    found = readers.get(tensor.index, [])
    return found[0] if len(found) == 1 and tensor.index not in ends else None


def _is_layer(op: OperatorPart, readers: dict[int, list[OperatorPart]], ends: set[int]) -> bool:
    if op.name not in _OUTPUT_AXIS or len(op.outputs) != 1:
        return False
    constants = [tensor for tensor in op.inputs[1:3] if tensor is not None]
    if _weights(op) is None or not all(map(_is_float_constant, constants)):
        return False
    return all(_alone(tensor, readers, ends) is not None for tensor in constants)


def _pair(op: OperatorPart, readers: dict[int, list[OperatorPart]], ends: set[int]) -> Pair | None:
    if not _is_layer(op, readers, ends):
        return None
    activation, tensor = _activation(op), op.outputs[0]
    if activation not in ("NONE", "RELU", "RELU6") or tensor is None or int(tensor.type) != 0:
        return None
    weights = _weights(op)
    assert weights is not None
    channels = weights.shape[_OUTPUT_AXIS[op.name]]
    if not tensor.shape or tensor.shape[-1] != channels or channels < 1:
        return None
    flat, passed = False, [tensor]
    after = _alone(tensor, readers, ends)
    while after is not None and after.name not in _OUTPUT_AXIS:
        if after.name == "RESHAPE":
            flat = True
        elif flat or not _scales_through(after, tensor, channels):
            return None
        if len(after.outputs) != 1 or after.input_indices[0] != tensor.index or after.outputs[0] is None:
            return None
        tensor = after.outputs[0]
        passed.append(tensor)
        after = _alone(tensor, readers, ends)
    if after is None or after.input_indices[0] != tensor.index or not _is_layer(after, readers, ends):
        return None
    if not _takes(after, channels, flat):
        return None
    return Pair(op, after, channels, activation == "RELU6", passed)


def _scales_through(op: OperatorPart, tensor: TensorPart, channels: int) -> bool:
    """Whether an operator between two layers scales with its input."""
    if op.name not in _SCALING or _activation(op) not in ("NONE", "RELU"):
        return False
    out = op.outputs[0] if op.outputs else None
    if out is None or not out.shape or out.shape[-1] != channels:
        return False
    if op.name == "MEAN":
        axes = op.inputs[1].data if len(op.inputs) > 1 and op.inputs[1] is not None else None
        rank = len(tensor.shape)
        return axes is not None and all(-rank <= int(a) < rank and int(a) % rank != rank - 1 for a in np.ravel(axes))
    if op.name == "PRELU":
        return len(op.inputs) > 1 and op.inputs[1] is not None and op.inputs[1].is_constant
    return True


def _takes(op: OperatorPart, channels: int, flat: bool) -> bool:
    """Whether a layer's weights have these channels as inputs."""
    weights = _weights(op)
    if weights is None:
        return False
    size = weights.shape[_INPUT_AXIS[op.name]]
    if op.name == "CONV_2D":
        return size == channels and not flat  # else in groups
    return size % channels == 0 and size > 0 and (op.name == "FULLY_CONNECTED" or not flat)


# ---- scales ----


def _ranges(
    model: Model, found: list[Pair], samples: Data, limits: Limits, num_threads: int | None
) -> dict[int, Array]:
    """{index of a first layer's output: the greatest magnitude of each channel over the samples}."""
    from tq.accuracy.measuring import Samples
    from tq.running.interpreter import Interpreter

    wanted = {pair.between.index: np.zeros(pair.channels) for pair in found}
    if not wanted:
        return {}
    interpreter = Interpreter(
        model=model,
        experimental_preserve_all_tensors=True,
        numerics="reference",
        num_threads=num_threads,
        **limits._asdict(),
    )
    fed = Samples(model, samples)
    for _ in tracked(fed.each(interpreter), fed, "equalizing"):
        interpreter.invoke()
        for index, have in wanted.items():
            value = np.abs(interpreter.get_tensor(index)).reshape(-1, len(have))
            np.maximum(have, value.max(axis=0, initial=0), out=have)
    return wanted


def _magnitudes(data: Array, axis: int) -> Array:
    others = tuple(index for index in range(data.ndim) if index != axis)
    return np.asarray(np.abs(data).max(axis=others, initial=0), np.float64)


class _Scaling:
    """The layers' constants while channels are scaled."""

    def __init__(self, found: list[Pair], ranges: dict[int, Array], per_axis: bool) -> None:
        self.pairs, self.ranges, self.per_axis = found, ranges, per_axis
        self.exponents = [np.zeros(pair.channels, np.int64) for pair in found]
        self.data: dict[TensorPart, Array] = {}
        for pair in found:
            for tensor in (*pair.first.inputs[1:3], pair.second.inputs[1]):
                if tensor is not None and tensor not in self.data:
                    self.data[tensor] = _finite(tensor)
        self.first_data = dict(self.data)
        for _ in range(_ROUNDS):
            if not any([self._settle(index) for index in range(len(found))]):
                break

    def _settle(self, index: int) -> bool:
        """Scales the channels of a pair; whether that changed any."""
        pair, have = self.pairs[index], self.exponents[index]
        step = np.clip(have + self._step(pair, have), -_LIMIT, _LIMIT) - have
        if not step.any():
            return False
        self.exponents[index] = have + step
        divide, multiply = np.ldexp(np.float32(1), -step), np.ldexp(np.float32(1), step)
        self._scale(pair.first.inputs[1], divide, _OUTPUT_AXIS[pair.first.name])
        self._scale(pair.first.inputs[2] if len(pair.first.inputs) > 2 else None, divide, 0)
        self._scale(pair.second.inputs[1], self._wide(pair, multiply), _INPUT_AXIS[pair.second.name])
        return True

    def _scale(self, tensor: TensorPart | None, factors: Array, axis: int) -> None:
        if tensor is not None:
            data = self.data[tensor]
            shape = [1] * data.ndim
            shape[axis] = -1
            self.data[tensor] = (data * factors.reshape(shape)).astype(np.float32)

    @staticmethod
    def _wide(pair: Pair, factors: Array) -> Array:
        """Factors of channels for the inputs of the second layer's weights, of which a channel may have several."""
        repeats = pair.weights[1].shape[_INPUT_AXIS[pair.second.name]] // pair.channels
        return np.repeat(factors, repeats) if pair.second.name == "DEPTHWISE_CONV_2D" else np.tile(factors, repeats)

    def _outer(self, pair: Pair, have: Array) -> Array:
        """The range of each channel between the layers."""
        index = pair.between.index
        if index in self.ranges:
            return np.asarray(self.ranges[index] / 2.0**have)
        return _magnitudes(self.data[pair.weights[0]], _OUTPUT_AXIS[pair.first.name])

    def _inner(self, pair: Pair) -> Array:
        """The range of the second layer's weights for each channel."""
        found = _magnitudes(self.data[pair.weights[1]], _INPUT_AXIS[pair.second.name])
        if pair.second.name == "DEPTHWISE_CONV_2D":
            return np.asarray(found.reshape(pair.channels, -1).max(axis=1))
        return np.asarray(found.reshape(-1, pair.channels).max(axis=0))

    def _step(self, pair: Pair, have: Array) -> NDArray[np.int64]:
        """Exponents of 2: of sqrt(outer / inner); where the inner ones may be any, of outer over the greatest."""
        outer, inner = self._outer(pair, have), self._inner(pair)
        usable = (outer > 0) & (inner > 0)
        step = np.zeros(len(outer), np.int64)
        if not usable.any():
            return step
        if pair.second.name == "DEPTHWISE_CONV_2D" and self.per_axis:
            wanted = np.log2(outer[usable])
            wanted -= wanted.max()
        else:
            wanted = (np.log2(outer[usable]) - np.log2(inner[usable])) / 2
            wanted -= np.median(wanted)  # a factor that all channels share would change nothing
        step[usable] = np.where(np.abs(wanted) > _ENOUGH, np.rint(wanted), 0).astype(np.int64)
        return step

    def write(self, graph: SubgraphPart) -> None:
        for tensor, data in self.data.items():
            if data is not self.first_data[tensor]:
                tensor.data = data
                _forget_range(tensor)
        for pair, exponents in zip(self.pairs, self.exponents, strict=True):
            for tensor in pair.passed if exponents.any() else ():
                _forget_range(tensor)
            if pair.clamp and exponents.any():
                _write_clamp(graph, pair, np.ldexp(np.float32(6), -exponents))


def _forget_range(tensor: TensorPart) -> None:
    """The file may tell the range of a float tensor, which is another now."""
    if tensor.quantization:
        tensor.quantization = None


def _finite(tensor: TensorPart) -> Array:
    data = tensor.data
    assert data is not None
    if not np.isfinite(data).all():
        raise ValueError(f"{tensor!r} holds values that are not finite")
    return data


# ---- writing ----


def _write_clamp(graph: SubgraphPart, pair: Pair, tops: Array) -> None:
    """RELU6 of channels that were divided: RELU, then MINIMUM."""
    clamped = pair.between
    name = clamped.name
    pair.first.options["fused_activation_function"] = "RELU"
    open_end = graph.add_tensor(f"{name}{CLAMPED}", clamped.shape, shape_signature=clamped.shape_signature)
    pair.first.outputs = [open_end]
    constant = graph.add_tensor(f"{name}_top", data=tops.astype(np.float32))
    graph.add_operator("MINIMUM", [open_end, constant], [clamped], at=pair.first.index + 1)
