# SPDX-License-Identifier: Apache-2.0
"""Second-order rounding: weights are rounded for the inputs that samples give their layer, in the order of execution.

The inputs of a layer come from the quantized model with all earlier layers rounded, so that a layer is fitted to the
inputs that it will have.  Its weights w become s q with a scale s and integers q, which make the error
(w - s q) H (w - s q) small; H holds the second moments of the inputs about their mean
(src/kernels/rounding/round_rows.h).  The bias corrects the mean of the outputs: for the rounding of these weights, and
for the errors of earlier layers.

Weights, their scales, and biases change.  Shapes, options and activations stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import Model, Operator, Tensor
from tq.accuracy.matching import constant_of, match
from tq.accuracy.measuring import Samples
from tq.calibration.hessians import (
    LAYERS,
    HessianObserver,
    Shape,
    filter_of,
    matrices_of,
    mirror,
    shape_of,
    weights_of,
)
from tq.editing.editor import Editor
from tq.editing.extraction import extract
from tq.editing.graph import OperatorPart, TensorPart
from tq.progress import tracked
from tq.quantization import moments
from tq.quantization.pieces import Chunk
from tq.quantization.segments import Segments
from tq.quantization.shift import damping, shifted
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

Array = NDArray[Any]

METHODS = ("gptq", "comq")
BIASES = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
NOT_ROUNDED = f"no weights of its own that a {', '.join(LAYERS)} reads are int8, int4 or int2 with zero point 0"
_WEIGHTS = 1  # the input of all layers with the weights

# The least and greatest integer of a type.  -128 is left out as in all int8 weights.
_LIMITS = {"INT8": (-127, 127), "INT4": (-8, 7), "INT2": (-2, 1)}
# Multiples of the usual scale to try: a smaller scale saturates the largest weights, and has finer steps.
FACTORS = {
    "INT8": (1.03, 1.015, 1.0, 0.985, 0.97, 0.955, 0.94, 0.92, 0.9),
    "INT4": (1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.62),
    "INT2": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4),
}
SWEEPS = {"gptq": 3, "comq": 4}
# With more columns, rounding takes seconds: fewer scales are tried, and fewer sweeps follow.
_MANY = 1024
_MOST_PAIRED = 640  # columns of weights that correct errors of earlier layers (shift.py)
_MOST_BIAS = 2.0**30  # steps of an int32 bias
_LEAST_HELD = 8 << 20  # bytes of activations to hold beside a small model


class Layer(NamedTuple):
    """A layer of the float model and of the quantized one."""

    exact: Operator
    rounded: Operator
    weights: Tensor  # of the quantized model
    shape: Shape


class Rounded(NamedTuple):
    """The new constants of a layer.  scales: float32, as many as before; bias: real values; None: it stays."""

    values: Array
    scales: Array
    bias: Array | None


def round_weights(
    model: Model,
    quantized: Model,
    samples: Samples,
    methods: Callable[[Operator], str],
    *,
    limits: Limits = NONE,
    num_threads: int | None = None,
    executor: Any = None,
) -> bytes | None:
    """The quantized model with weights rounded by the method of each layer; None: no layer has one of METHODS."""
    layers = [layer for layer in layers_of(model, quantized) if methods(layer.exact) in METHODS]
    if not layers:
        return None
    most = max(_LEAST_HELD, model.nbytes // 2)
    runs: dict[str, Any] = {"limits": limits, "num_threads": num_threads, "executor": executor}
    exact, found = (Segments(item, samples, most, **runs) for item in (model, quantized))
    changes: dict[int, Callable[[OperatorPart], None]] = {}
    for layer in tracked(layers, layers, "rounding weights", unit=" layers"):
        found.advance(layer.rounded.index, changes)
        exact.advance(layer.exact.index)
        made = _round(model, layer, exact, found, methods(layer.exact), num_threads, executor)
        if made is not None:
            changes[layer.rounded.index] = _writer(layer, made)
    editor = Editor(quantized)
    try:
        for index, change in changes.items():
            change(editor.main.operators[index])
        return editor.to_bytes()
    finally:
        editor.close()


# ---- layers ----


def layers_of(model: Model, quantized: Model) -> list[Layer]:
    """The layers that can be rounded, in the order of execution."""
    readers: dict[int, int] = {}
    for op in quantized.subgraphs[0].operators:
        for index in op.input_indices:
            readers[index] = readers.get(index, 0) + 1
    found = [_layer(one, two, readers) for one, two in match(model, quantized).operators if one.name in LAYERS]
    return sorted((layer for layer in found if layer is not None), key=lambda layer: layer.rounded.index)


def _layer(one: Operator, two: Operator, readers: dict[int, int]) -> Layer | None:
    if len(two.inputs) <= _WEIGHTS:
        return None
    read, weights = two.inputs[_WEIGHTS], constant_of(two, _WEIGHTS)
    if read is None or weights is None or not weights.is_constant or weights.type.name not in _LIMITS:
        return None
    shape = shape_of(one, weights.shape)
    data = two.inputs[LAYERS[one.name][0]]
    if shape is None or data is None or data.is_constant or not weights.quantization:
        return None
    if readers[read.index] > 1 or readers[weights.index] > 1 or np.any(weights.quantization.zero_point):
        return None
    return Layer(one, two, weights, shape)


def _constant_values(model: Model, operator: Operator, place: int) -> Array | None:
    """The real values of a constant input, or of one that operators compute from constants; None: no such input."""
    tensor = operator.inputs[place] if place < len(operator.inputs) else None
    if tensor is None:
        return None
    if tensor.is_constant and tensor.data is not None:
        return np.asarray(tensor.data)
    part = Model(extract(model, [], [tensor.index]))
    interpreter = Interpreter(model=part, numerics="reference")
    interpreter.allocate_tensors()
    interpreter.invoke()
    output = part.outputs[0]
    assert output is not None
    return np.array(interpreter.get_tensor(output.index))


# ---- rounding ----


def _round(
    model: Model,
    layer: Layer,
    exact: Segments,
    found: Segments,
    method: str,
    num_threads: int | None,
    executor: Any,
) -> Rounded | None:
    weights = _constant_values(model, layer.exact, _WEIGHTS)
    if weights is None or not np.isfinite(weights).all() or layer.exact.index < exact.position:
        return None
    bias = _bias_of(model, layer)
    met = _meet(layer, exact if bias is not None else None, found, num_threads, executor)
    gathered = met.rounded
    if not np.isfinite(gathered.products).all():
        return None
    matrices = matrices_of(layer.exact, layer.shape, weights.astype(np.float64))
    parts, wanted = gathered.shrinkage(), matrices
    if halves := met.take_halves():
        wanted = shifted(matrices, halves, parts, num_threads)
    del halves
    values, scales = _round_matrices(layer, wanted, gathered, parts, bias is not None, method, num_threads)
    new_bias = None
    if bias is not None:
        rounded = values * _spread(layer, scales)
        expected = np.einsum("grk,gk->gr", matrices, met.exact.mean())
        new_bias = bias + (expected - np.einsum("grk,gk->gr", rounded, gathered.mean())).ravel()
        if not _fits(layer, new_bias, scales):
            return None
    return Rounded(weights_of(layer.exact, values, weights.shape), scales, new_bias)


def _fits(layer: Layer, bias: Array, scales: Array) -> bool:
    """Whether a bias has quantized values that leave room for the products' sum."""
    data = layer.rounded.inputs[LAYERS[layer.exact.name][0]]
    assert data is not None
    if data.type.name != "INT8":
        return bool(np.isfinite(bias).all())
    step = scales.astype(np.float64) * float(data.quantization.scale[0])
    return bool((np.abs(bias) < _MOST_BIAS * step).all())


def _bias_of(model: Model, layer: Layer) -> Array | None:
    """The float bias, zeros where the layer has none and may get one; None: it cannot change."""
    place = BIASES.get(layer.exact.name)
    if place is None:
        return None
    inputs = layer.rounded.inputs
    rounded = inputs[place] if place < len(inputs) else None
    if rounded is not None and not rounded.is_constant:
        return None
    if rounded is None and layer.exact.name == "TRANSPOSE_CONV":
        return None
    values = _constant_values(model, layer.exact, place)
    count = layer.shape.groups * layer.shape.rows
    return np.zeros(count) if values is None else values.astype(np.float64)


def _meet(
    layer: Layer, exact: Segments | None, found: Segments, num_threads: int | None, executor: Any
) -> moments.Moments:
    """Moments of the layer's inputs in both models.  exact: None: in the quantized model alone."""

    def chunks(operator: Operator, segments: Segments) -> Iterator[Chunk]:
        data = operator.inputs[LAYERS[operator.name][0]]
        assert data is not None
        return segments.chunks(data.index)

    pairs = exact is not None and layer.shape.length <= _MOST_PAIRED
    seen = moments.Layer(filter_of(layer.exact), layer.weights.shape, layer.shape, pairs)
    others = None if exact is None else chunks(layer.exact, exact)
    return moments.gather(seen, chunks(layer.rounded, found), others, num_threads, executor)


def _block_scales(weights: Tensor) -> tuple[Array, int] | None:
    details = weights.quantization.details
    if not details or details.get("type") != "BlockwiseQuantization":
        return None
    scales = weights.subgraph.tensors[details["scales"]]
    return np.asarray(scales.data, np.float32), int(details["block_size"])


def _spread(layer: Layer, scales: Array) -> Array:
    """The scales of all weights, [groups, rows, length] or what broadcasts to it."""
    shape = layer.shape
    if scales.ndim == 2:
        return np.repeat(scales, shape.length // scales.shape[1], axis=1)[None].astype(np.float64)
    if len(scales) == 1:
        return scales.astype(np.float64)
    return scales.reshape(shape.groups, shape.rows, 1).astype(np.float64)


def _round_matrices(
    layer: Layer,
    matrices: Array,
    gathered: HessianObserver,
    parts: Array,
    centered: bool,
    method: str,
    num_threads: int | None,
) -> tuple[Array, Array]:
    """The integers [groups, rows, length], and the scales as the tensor has them."""
    shape, kind = layer.shape, layer.weights.type.name
    in_blocks = _block_scales(layer.weights)
    stored = layer.weights.quantization.scale if in_blocks is None else in_blocks[0]
    steps = _Steps(shape.length if in_blocks is None else in_blocks[1], in_blocks is not None, *_LIMITS[kind])
    given = np.broadcast_to(stored.reshape(-1, steps.count(shape)), (shape.groups * shape.rows, steps.count(shape)))
    scales = np.array(given.reshape(shape.groups, shape.rows, -1).swapaxes(1, 2), np.float32, order="C")
    values = np.empty(matrices.shape, np.int8)
    if in_blocks is None and (len(stored) == 1 or bool((stored == stored[0]).all())):
        squares = [
            _Square(gathered, group, parts[group], centered, method, num_threads) for group in range(shape.groups)
        ]
        best = np.inf
        for factor in _factors(kind, shape):
            found = [square.round(matrices[g], scales[g], (factor,), steps, False) for g, square in enumerate(squares)]
            error = sum(float(errors.sum()) for _, _, errors in found)
            if error < best:
                best, made = error, float(np.float32(factor * float(stored[0])))
                for group, item in enumerate(found):
                    values[group] = item[0]
        return values, np.full(len(stored), made, np.float32)
    for group in range(shape.groups):
        square = _Square(gathered, group, parts[group], centered, method, num_threads)
        found_rows = square.round(matrices[group], scales[group], _factors(kind, shape), steps, True)
        values[group], scales[group] = found_rows[:2]
    by_row = scales.swapaxes(1, 2).reshape(shape.groups * shape.rows, -1)
    return values, by_row if in_blocks is not None else by_row.ravel()


def _factors(kind: str, shape: Shape) -> tuple[float, ...]:
    return FACTORS[kind][::2] if shape.length > _MANY else FACTORS[kind]


class _Steps(NamedTuple):
    """The scales of quantized weights.  block: weights of a row with one scale; halves: scales are float16 values."""

    block: int
    halves: bool
    least: int
    most: int

    def count(self, shape: Shape) -> int:
        """The scales of a row."""
        return shape.length // self.block


class _Square:
    """The damped second moments of a group, in the order of rounding, with their factor.

    One matrix has both: the moments stand below its diagonal, and the factor above and on it.
    """

    def __init__(
        self, gathered: HessianObserver, group: int, part: float, centered: bool, method: str, num_threads: int | None
    ) -> None:
        self._method, self._num_threads = method, num_threads
        moments = gathered.moments(group, release=gathered.shape.groups == 1)
        if centered:
            mean = gathered.mean()[group]
            for row, value in zip(moments, mean, strict=True):  # a matrix may be as large as the model
                row -= value * mean
        more = damping(moments, gathered.count, part)
        diagonal = np.maximum(np.diag(moments), 0) + more
        self._order = np.argsort(diagonal, kind="stable").astype(np.int64)
        _reorder(moments, self._order)
        self._square, self._diagonal = moments, diagonal[self._order]
        np.fill_diagonal(moments, self._diagonal)
        while method == "gptq" and not _core._cholesky(moments, num_threads):
            self._diagonal += more
            mirror(moments.T)
            np.fill_diagonal(moments, self._diagonal)

    def round(
        self, rows: Array, scales: Array, factors: tuple[float, ...], steps: _Steps, refit: bool
    ) -> tuple[Array, Array, Array]:
        """The integers of rows of weights, their scales, and the remaining errors."""
        return _core._round_rows(
            self._method,
            np.ascontiguousarray(rows, np.float64),
            self._order,
            self._square,
            self._diagonal,
            np.ascontiguousarray(scales, np.float32),
            steps.block,
            steps.halves,
            np.array(factors),
            SWEEPS[self._method] if len(self._order) <= _MANY else 1 + (self._method == "comq"),
            refit,
            steps.least,
            steps.most,
            self._num_threads,
        )


def _reorder(matrix: Array, order: Array) -> None:
    """Puts rows and columns into an order, in place."""
    for row in matrix:
        row[:] = row[order]
    left = set(range(len(order)))
    while left:
        start = at = left.pop()
        first = matrix[start].copy()
        while (source := int(order[at])) != start:
            matrix[at] = matrix[source]
            left.remove(source)
            at = source
        matrix[at] = first


# ---- writing ----


def _writer(layer: Layer, made: Rounded) -> Callable[[OperatorPart], None]:
    def write(part: OperatorPart) -> None:
        weights = part.inputs[_WEIGHTS]
        assert weights is not None
        if not weights.is_constant:
            producer = weights.producer
            assert producer is not None
            weights = producer.inputs[0]
            assert weights is not None
        weights.data = made.values
        details = weights.quantization.details
        if made.scales.ndim == 2:
            assert details is not None
            weights.subgraph.tensors[details["scales"]].data = made.scales.astype(np.float16)
        else:
            weights.quantization.scale = made.scales
        if made.bias is not None:
            _write_bias(part, BIASES[layer.exact.name], weights, made)

    return write


def _write_bias(part: OperatorPart, place: int, weights: TensorPart, made: Rounded) -> None:
    inputs = list(part.inputs)
    assert made.bias is not None
    old = inputs[place] if place < len(inputs) else None
    x = inputs[LAYERS[part.name][0]]
    graph = part.subgraph
    name = f"{weights.name}_bias" if old is None else old.name
    if x is None or x.type_name == "FLOAT32":
        new = graph.add_tensor(name, data=made.bias.astype(np.float32))
    else:
        wide = x.type_name == "INT16" if old is None else old.type_name == "INT64"
        kind = np.int64 if wide else np.int32
        scale = np.asarray(x.quantization.scale[0] * made.scales, np.float32)
        most = np.iinfo(np.int32).max
        values = np.clip(np.rint(made.bias / scale.astype(np.float64)), -most, most).astype(kind)
        new = graph.add_tensor(name, data=values, scale=scale)
        new.quantization.zero_point = np.zeros(len(scale), np.int64)
    inputs[place : place + 1] = [new]
    part.inputs = inputs
    if old is not None and old.index not in graph.users():
        graph.remove_tensors({old})
