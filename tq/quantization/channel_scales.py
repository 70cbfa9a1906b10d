# SPDX-License-Identifier: Apache-2.0
"""Divides channels of activations by factors, across branches: AWQ and SmoothQuant for networks of convolutions.

One scale serves all channels of a quantized activation, so channels with small values get few steps.  If every
operator f on a channel has f(x / s) = f(x) / s, its values may be divided by any s > 0: the weights and bias of layers
that write it are divided by s, the weights of layers that read it are multiplied by s, and constants that are added to
it are divided by s.  The model computes the same, except for float32's rounding.

tq.equalize does so between two layers.  Here a channel is followed through ADD, CONCATENATION, PAD, MUL and others, so
that a factor holds for all tensors of a residual network that have the channel.  Channels that must have equal factors
form a class.  A layer lets the channels before and behind it have different factors; so does a MUL by a constant with a
value for each channel, such as the gain of a normalization.

The factor s of a class has two bounds, and the greater is taken.
- In each tensor t of the class, channel c fills the part r[t, c] of the tensor's range.  Where s is at least the
  greatest of these parts and at most 1, no range grows, and the errors of activations can only fall.
- A smaller s enlarges the inputs of a layer, and with them the errors from rounding its weights.  Let the layer have N
  rows of weights w with steps u, and inputs of variance v with steps d.  The error from channel c is proportional to
  N u^2 v / s^2 + d^2 s^2 |w_c|^2, which is least at s^4 = N u^2 v / (d^2 |w_c|^2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.measuring import Samples
from tq.calibration.observers import MinMaxObserver
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization import clipping
from tq.quantization.preparation import fold_constants
from tq.quantization.view import is_constant_float, is_float
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

Array = NDArray[Any]

_LEAST = 2.0**-6  # the least factor: channels with tiny values in the samples may have greater ones later
# How much greater a channel's range may be on other samples: a factor, and a part that is divided by the square root of
# the number of values.
_MARGIN = 1.1, 4.0
_LINEAR = ("NONE", *clipping.BOUNDS)  # fused activations that scale


class _Layer(NamedTuple):
    """The inputs of a layer (data, weights, bias), and the axes of its weights that are channels."""

    data: int
    weights: int
    bias: int
    rank: int
    output_axis: int
    input_axis: int


_LAYERS = {
    "CONV_2D": _Layer(0, 1, 2, 4, 0, 3),
    "DEPTHWISE_CONV_2D": _Layer(0, 1, 2, 4, 3, 3),
    "FULLY_CONNECTED": _Layer(0, 1, 2, 2, 0, 1),
    "TRANSPOSE_CONV": _Layer(2, 1, 3, 4, 0, 3),
}
# Operators whose output's channel c is f of channel c of the first input alone, with f(x / s) = f(x) / s.
_SCALING = (
    "ABS", "AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "LEAKY_RELU", "MAX_POOL_2D", "MIRROR_PAD", "PAD", "PRELU", "RELU",
    "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND",
)  # fmt: skip
_REDUCING = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
_ALIKE = ("ADD", "SUB", "MAXIMUM", "MINIMUM")  # operands and result have equal factors
_PINNED = 0  # the channel whose factor is 1


def scale_channels(
    model: Model,
    samples: Samples,
    fixed: Collection[str] = (),
    limits: Limits = NONE,
    num_threads: int | None = None,
) -> Model:
    """The model with channels scaled by factors from the samples; the given model where no channel can be scaled.

    fixed: names of tensors, activations or weights, that stay as they are."""
    editor = Editor(model)
    try:
        graph = editor.main
        fold_constants(graph, model, [op for op in graph.operators if op.name in _RULES])
        folded = Model(editor.to_bytes()) if len(graph.operators) < len(model.subgraphs[0].operators) else model
    finally:
        editor.close()
    editor = Editor(folded)
    try:
        channels = _Channels(editor.main, fixed)
        if not channels.free.any():
            return model
        factors = _factors(channels, _observed(folded, channels, samples, limits, num_threads))
        if (factors == 1).all():
            return model
        _write(editor.main, channels, factors)
        return Model(editor.to_bytes())
    finally:
        editor.close()


# ---- channels ----


class _Channels:
    """The channels of all activations of a subgraph, and classes of channels that have equal factors.

    of: {tensor: its channels}; a channel is a number, different in each tensor.  classes: the class of each channel.
    free: whether its factor may differ from 1.  readers, writers: layers whose weights are multiplied, and divided.
    constants: (operator, input, the channels of its last axis): constants that are divided.  gains: (operator, input,
    the channels that it multiplies, the channels of the products).
    """

    def __init__(self, graph: SubgraphPart, fixed: Collection[str] = ()) -> None:
        self.graph = graph
        self.of: dict[TensorPart, Array] = {}
        self.readers: list[OperatorPart] = []
        self.writers: list[OperatorPart] = []
        self.constants: list[tuple[OperatorPart, int, Array]] = []
        self.gains: list[tuple[OperatorPart, int, Array, Array]] = []
        self._fixed = frozenset(fixed)
        self._reads = Counter(index for op in graph.operators for index in op.input_indices)
        self._pairs: list[tuple[Array, Array]] = []
        count = 1
        for tensor in graph.tensors:
            if is_float(tensor) and not tensor.is_constant and tensor.shape and tensor.shape[-1] > 0:
                self.of[tensor] = np.arange(count, count + tensor.shape[-1])
                count += tensor.shape[-1]
        for end in (*graph.inputs, *graph.outputs):
            self._pin(end)
        for tensor in self.of:
            if tensor.is_variable or tensor.name in self._fixed:
                self._pin(tensor)
        for op in graph.operators:
            if not _RULES.get(op.name, _never)(self, op):
                for end in (*op.inputs, *op.outputs):
                    self._pin(end)
        self.classes = _joined(count, self._pairs)
        self.free = self.classes != self.classes[_PINNED]

    def _pin(self, tensor: TensorPart | None) -> None:
        if tensor is not None and tensor in self.of:
            self.join(self.of[tensor], np.full(len(self.of[tensor]), _PINNED))

    def join(self, a: Array, b: Array) -> None:
        """Channels a[i] and b[i] have equal factors."""
        self._pairs.append((a, b))

    def known(self, *tensors: TensorPart | None) -> list[Array] | None:
        """The channels of tensors; None: one has none."""
        found = [self.of[tensor] for tensor in tensors if tensor is not None and tensor in self.of]
        return found if len(found) == len(tensors) else None

    def is_own(self, tensor: TensorPart) -> bool:
        """Whether the tensor is a float constant that may change and that one operator alone reads."""
        can_change = is_constant_float(tensor) and not tensor.is_variable and tensor.name not in self._fixed
        return can_change and self._reads[tensor.index] == 1


def _joined(count: int, pairs: list[tuple[Array, Array]]) -> Array:
    """The least number of each class."""
    labels = np.arange(count)
    if not pairs:
        return labels
    a, b = (np.concatenate(items) for items in zip(*pairs, strict=True))
    while True:
        least = np.minimum(labels[a], labels[b])
        before = labels.copy()
        np.minimum.at(labels, a, least)
        np.minimum.at(labels, b, least)
        np.minimum.at(labels, before, labels)  # a class takes the least number that one of its members found
        labels = labels[labels]
        if (labels == before).all():
            return labels


# ---- rules: whether an operator keeps factors, which it joins ----


def _never(_channels: _Channels, _op: OperatorPart) -> bool:
    return False


def _is_linear(op: OperatorPart) -> bool:
    return getattr(op.options.get("fused_activation_function"), "name", "NONE") in _LINEAR


def _layer(channels: _Channels, op: OperatorPart) -> bool:
    row, inputs = _LAYERS[op.name], op.inputs
    data = inputs[row.data] if row.data < len(inputs) else None
    weights = inputs[row.weights] if row.weights < len(inputs) else None
    bias = inputs[row.bias] if row.bias < len(inputs) else None
    known = channels.known(data, op.outputs[0])
    if known is None or weights is None or not channels.is_own(weights) or len(weights.shape) != row.rank:
        return False
    read, written = known
    own_bias = bias is None or channels.is_own(bias)
    if weights.shape[row.output_axis] == len(written) and own_bias and _is_linear(op):
        channels.writers.append(op)
    else:
        channels._pin(op.outputs[0])
    width = weights.shape[row.input_axis]
    if width == len(read) or (op.name == "DEPTHWISE_CONV_2D" and width % len(read) == 0):
        channels.readers.append(op)
    else:
        channels._pin(data)  # a convolution in groups
    return True


def _scaling(channels: _Channels, op: OperatorPart) -> bool:
    known = channels.known(op.inputs[0], op.outputs[0])
    if known is None or not _is_linear(op):
        return False
    read, written = known
    start = _padded(op, len(written))
    if start is None or start + len(read) > len(written) or (op.name != "PAD" and len(read) != len(written)):
        return False
    if op.name == "PRELU" and not all(t is not None and t not in channels.of for t in op.inputs[1:]):
        return False
    channels.join(read, written[start : start + len(read)])
    return True


def _padded(op: OperatorPart, channels: int) -> int | None:
    """The channels that a PAD puts before the others; None: not known."""
    if op.name not in ("PAD", "MIRROR_PAD"):
        return 0
    amounts = op.inputs[1].data if op.inputs[1] is not None and op.inputs[1].is_constant else None
    if amounts is None or len(amounts) == 0:
        return None
    before, after = (int(item) for item in amounts[-1])
    return before if op.name == "PAD" or before == after == 0 else None


def _reducing(channels: _Channels, op: OperatorPart) -> bool:
    known = channels.known(op.inputs[0], op.outputs[0])
    axes = op.inputs[1].data if len(op.inputs) > 1 and op.inputs[1] is not None else None
    if known is None or axes is None or len(known[0]) != len(known[1]):
        return False
    rank = len(op.inputs[0].shape) if op.inputs[0] is not None else 0
    if any(int(axis) % rank == rank - 1 for axis in np.ravel(axes)):
        return False
    channels.join(*known)
    return True


def _alike(channels: _Channels, op: OperatorPart) -> bool:
    known = channels.known(op.outputs[0])
    if known is None or not _is_linear(op) or len(op.inputs) != 2:
        return False
    (written,) = known
    for tensor in op.inputs:
        if tensor is None:
            return False
        if tensor in channels.of:
            if len(channels.of[tensor]) != len(written):
                return False
        elif not channels.is_own(tensor) or tensor.shape[-1:] not in ((len(written),), (1,), ()):
            return False
    for place, tensor in enumerate(op.inputs):
        if tensor in channels.of:
            channels.join(channels.of[tensor], written)
        else:
            channels.constants.append((op, place, written))
    return True


def _product(channels: _Channels, op: OperatorPart) -> bool:
    """x times gates or a constant: x and the product have equal factors, except for a constant with a value for each
    channel, which takes up both factors."""
    known = channels.known(op.outputs[0])
    if known is None or not _is_linear(op) or len(op.inputs) != 2 or None in op.inputs:
        return False
    (written,) = known
    tensors = [tensor for tensor in op.inputs if tensor is not None]
    x = max(tensors, key=lambda tensor: (tensor in channels.of, int(np.prod(tensor.shape, dtype=np.int64))))
    if x not in channels.of or len(channels.of[x]) != len(written) or (op.name == "DIV" and x is not tensors[0]):
        return False
    if tensors[0] is tensors[1]:
        return False
    place = 1 - tensors.index(x)
    if op.name == "MUL" and channels.is_own(tensors[place]) and tensors[place].shape[-1:] == (len(written),):
        channels.gains.append((op, place, channels.of[x], written))
        return True
    channels._pin(tensors[place])
    channels.join(channels.of[x], written)
    return True


def _concatenation(channels: _Channels, op: OperatorPart) -> bool:
    known = channels.known(*op.inputs, op.outputs[0])
    if known is None or not _is_linear(op) or op.outputs[0] is None:
        return False
    *read, written = known
    rank = len(op.outputs[0].shape)
    if int(op.options["axis"]) % rank == rank - 1:
        if sum(map(len, read)) != len(written):
            return False
        channels.join(np.concatenate(read), written)
    elif all(len(item) == len(written) for item in read):
        for item in read:
            channels.join(item, written)
    else:
        return False
    return True


def _reshape(channels: _Channels, op: OperatorPart) -> bool:
    """Joins where the longer last dimension is a whole number of rows of the shorter one."""
    known = channels.known(op.inputs[0], op.outputs[0])
    if known is None:
        return False
    narrow, wide = sorted(known, key=len)
    if len(wide) % len(narrow):
        return False
    channels.join(np.tile(narrow, len(wide) // len(narrow)), wide)
    return True


_Rule = Callable[[_Channels, OperatorPart], bool]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_LAYERS, _layer),
    **dict.fromkeys(_SCALING, _scaling),
    **dict.fromkeys(_REDUCING, _reducing),
    **dict.fromkeys(_ALIKE, _alike),
    "MUL": _product,
    "DIV": _product,
    "CONCATENATION": _concatenation,
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
}


# ---- factors ----


class _Observed(NamedTuple):
    """For each channel, over the samples: the ends of its values, widened by the margin, and those of its tensor."""

    low: Array
    high: Array
    tensor_low: Array
    tensor_high: Array


def _observed(
    model: Model, channels: _Channels, samples: Samples, limits: Limits, num_threads: int | None
) -> _Observed:
    wanted = {t.index: (t, ids) for t, ids in channels.of.items() if channels.free[ids].any()}
    seen = {index: MinMaxObserver(axis=len(t.shape) - 1) for index, (t, _) in wanted.items()}
    interpreter = Interpreter(
        model=model,
        num_threads=num_threads,
        experimental_preserve_all_tensors=True,
        numerics="reference",
        **limits._asdict(),
    )
    for _ in samples.each(interpreter):
        interpreter.invoke()
        for index, observer in seen.items():
            observer.update(interpreter.get_tensor(index), num_threads=num_threads)
    names = {op: op.name for op in channels.graph.operators}
    passing = clipping.passing(channels.graph, names, {})
    found = _Observed(*(np.zeros(len(channels.free)) for _ in _Observed._fields))
    for index, (tensor, ids) in wanted.items():
        observer = seen[index]
        least, most = passing.get(tensor, clipping.ALL)
        low, high = np.clip(np.minimum(observer.min, 0), least, 0), np.clip(np.maximum(observer.max, 0), 0, most)
        margin = _MARGIN[0] + _MARGIN[1] / np.sqrt(np.maximum(observer.count, 1))
        found.tensor_low[ids], found.tensor_high[ids] = low.min(), high.max()
        found.low[ids], found.high[ids] = low * margin, high * margin
    return found


def _factors(channels: _Channels, seen: _Observed) -> Array:
    """The factor of each channel, at most 1."""
    count, classes = len(channels.free), channels.classes
    parts = [_ratio(seen.low, seen.tensor_low), _ratio(seen.high, seen.tensor_high)]
    least = np.zeros(count)
    np.maximum.at(least, classes, np.maximum(*parts))
    steps = np.zeros(count)
    np.add.at(steps, classes, np.square((seen.tensor_high - seen.tensor_low) / 255))
    of_weights, of_inputs = np.zeros(count), np.zeros(count)
    for op in channels.readers:
        ids = channels.of[_input(op, _LAYERS[op.name].data)]
        for sums, values in zip((of_weights, of_inputs), _errors(op, ids, seen), strict=True):
            np.add.at(sums, classes[ids], values)
    best = np.sqrt(np.sqrt(_ratio(of_weights, of_inputs * steps)))
    made = np.clip(np.maximum(least, best), _LEAST, 1.0)[classes]
    made[~channels.free] = 1.0
    made[seen.tensor_high[classes] == seen.tensor_low[classes]] = 1.0
    return made.astype(np.float32).astype(np.float64)


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(len(a)), where=b != 0)


def _input(op: OperatorPart, place: int) -> TensorPart:
    tensor = op.inputs[place]
    assert tensor is not None
    return tensor


def _errors(op: OperatorPart, ids: Array, seen: _Observed) -> Iterator[Array]:
    """For each channel that a layer reads: the errors from weights and from inputs of step 1, over the power of the
    layer's outputs."""
    row = _LAYERS[op.name]
    data = _input(op, row.weights).data
    assert data is not None
    values = np.moveaxis(data.astype(np.float64), row.input_axis, -1)
    power = np.square(np.maximum(seen.high[ids], -seen.low[ids]) / 4)
    if op.name == "DEPTHWISE_CONV_2D":  # a channel's weights have a scale of their own
        squares = np.square(values).sum(axis=tuple(range(values.ndim - 1))).reshape(len(ids), -1).sum(axis=1)
        of_weights = np.zeros(len(ids))
    else:
        squares = np.square(values).sum(axis=tuple(range(values.ndim - 1)))
        rows = np.abs(np.moveaxis(data, row.output_axis, 0)).reshape(data.shape[row.output_axis], -1)
        steps = np.square(rows.max(axis=1, initial=0).astype(np.float64) / 127).sum()
        of_weights = power * steps * (data[0].size / data.shape[row.input_axis] if row.rank == 4 else 1)
    total = float((power * squares).sum()) or 1.0
    yield of_weights / total
    yield squares / total


# ---- writing ----


def _write(graph: SubgraphPart, channels: _Channels, factors: Array) -> None:
    for op in channels.readers:
        row = _LAYERS[op.name]
        ids, weights = channels.of[_input(op, row.data)], _input(op, row.weights)
        repeats = weights.shape[row.input_axis] // len(ids)
        _multiply(weights, np.repeat(factors[ids], repeats), row.input_axis)
    for op in channels.writers:
        row, output = _LAYERS[op.name], op.outputs[0]
        assert output is not None
        inverse = 1 / factors[channels.of[output]]
        _multiply(_input(op, row.weights), inverse, row.output_axis)
        if row.bias < len(op.inputs) and op.inputs[row.bias] is not None:
            _multiply(_input(op, row.bias), inverse, 0)
    constants = [(op, place, 1 / factors[ids]) for op, place, ids in channels.constants]
    constants += [(op, place, factors[read] / factors[written]) for op, place, read, written in channels.gains]
    for op, place, changes in constants:
        if (changes != 1).any():
            tensor = _input(op, place)
            data = np.asarray(tensor.data, np.float64) * changes
            op.inputs = [
                graph.constant(tensor.name, data.astype(np.float32)) if index == place else item
                for index, item in enumerate(op.inputs)
            ]
    for tensor, ids in channels.of.items():
        if tensor.quantization and (factors[ids] != 1).any():
            tensor.quantization = None  # the file may store the range of a float tensor, which changes


def _multiply(tensor: TensorPart, factors: Array, axis: int) -> None:
    if (factors == 1).all():
        return
    data = np.asarray(tensor.data)
    shape = [1] * data.ndim
    shape[axis] = -1
    tensor.data = (data.astype(np.float64) * factors.reshape(shape)).astype(np.float32)
    if tensor.quantization:
        tensor.quantization = None
