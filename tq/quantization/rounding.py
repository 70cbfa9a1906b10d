# SPDX-License-Identifier: Apache-2.0
"""Second-order rounding: weights are rounded for the inputs that samples give their layer, in the order of execution.

The inputs of a layer come from the quantized model with all earlier layers rounded, so that a layer is fitted to the
inputs that it will have.  Its weights w become s q with a scale s and integers q, which make the error
(w - s q) H (w - s q) small; H holds the second moments of the inputs about their mean
(src/kernels/rounding/round_rows.h).  The bias corrects the mean of the outputs: for the rounding of these weights, and
for the errors of earlier layers.

Weights that several layers read are rounded at the first of them, with H of the inputs that all have in the float
model: at the first, the later ones have no inputs in the quantized model yet.

Weights, their scales, and biases change.  Shapes, options and activations stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Operator
from tq.accuracy.measuring import Samples
from tq.calibration.hessians import LAYERS, HessianObserver, filter_of, matrices_of, weights_of
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, TensorPart
from tq.progress import tracked
from tq.quantization import moments
from tq.quantization.layers import BIASES, WEIGHTS, Layer, bias_of, constant_values, fits, layers_of
from tq.quantization.pieces import Chunk
from tq.quantization.rounded_matrices import round_matrices, spread
from tq.quantization.segments import Segments
from tq.quantization.shift import shifted
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

Array = NDArray[Any]

_MOST_PAIRED = 640  # columns of weights that correct errors of earlier layers (shift.py)
_LEAST_HELD = 8 << 20  # bytes of activations to hold beside a small model


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
    layers = layers_of(model, quantized, methods)
    if not layers:
        return None
    most = max(_LEAST_HELD, model.nbytes // 2)
    runs: dict[str, Any] = {"limits": limits, "num_threads": num_threads, "executor": executor}
    shared = _Shared(model, layers)
    if shared.users:
        shared.gather(samples, num_threads, limits)
    exact, found = (Segments(item, samples, most, **runs) for item in (model, quantized))
    changes: dict[int, Callable[[OperatorPart], None]] = {}
    for layer in tracked(layers, layers, "rounding weights", unit=" layers"):
        found.advance(layer.rounded.index, changes)
        if not shared.has(layer):
            exact.advance(layer.exact.index)
        made = _round(model, layer, exact, found, shared, methods(layer.exact), num_threads, executor)
        if made is not None:
            changes[layer.rounded.index] = _writer(layer, made)
    editor = Editor(quantized)
    try:
        for index, change in changes.items():
            change(editor.main.operators[index])
        return editor.to_bytes()
    finally:
        editor.close()


# ---- rounding ----


class _Shared:
    """Weights that several layers read, {the weights: their layers}, and what becomes of them."""

    def __init__(self, model: Model, layers: list[Layer]) -> None:
        self._model = model
        self.users: dict[int, list[Layer]] = {}
        for layer in layers:
            self.users.setdefault(layer.weights.index, []).append(layer)
        self.users = {index: users for index, users in self.users.items() if len(users) > 1}
        # By the weights, for the inputs of all layers; by the layer, for its own.
        self._moments = {index: HessianObserver(users[0].shape) for index, users in self.users.items()}
        self._means = {
            layer.exact.index: HessianObserver(layer.shape, with_products=False)
            for users in self.users.values()
            for layer in users
        }
        self._rounded: dict[int, tuple[Array, Array] | None] = {}

    def has(self, layer: Layer) -> bool:
        return layer.weights.index in self.users

    def gather(self, samples: Samples, num_threads: int | None, limits: Limits) -> None:
        """Gathers the moments of the inputs that all have in the float model, which runs once a sample: pieces of it
        would be as many as layers, and take as long as the model is large."""
        interpreter = Interpreter(
            model=self._model,
            num_threads=num_threads,
            experimental_preserve_all_tensors=True,
            numerics="reference",
            **limits._asdict(),
        )
        for _ in tracked(samples.each(interpreter), samples, "inputs of shared weights"):
            interpreter.invoke()
            for index, users in self.users.items():
                for layer in users:
                    data = layer.exact.inputs[LAYERS[layer.exact.name][0]]
                    assert data is not None
                    value = interpreter.get_tensor(data.index)
                    for observer in (self._moments[index], self._means[layer.exact.index]):
                        observer.update(filter_of(layer.exact), layer.weights.shape, value, num_threads=num_threads)

    def mean(self, layer: Layer) -> Array:
        """The mean of the layer's inputs in the float model."""
        return self._means[layer.exact.index].mean()

    def round(self, layer: Layer, matrices: Array, method: str, num_threads: int | None) -> tuple[Array, Array] | None:
        """The integers and scales for all layers; None: they stay."""
        index = layer.weights.index
        if index not in self._rounded:
            self._rounded[index] = self._made(layer, matrices, method, num_threads)
        return self._rounded[index]

    def _made(self, layer: Layer, matrices: Array, method: str, num_threads: int | None) -> tuple[Array, Array] | None:
        users, gathered = self.users[layer.weights.index], self._moments.pop(layer.weights.index)
        if not np.isfinite(gathered.products).all():
            return None
        biases = [bias_of(self._model, user) for user in users]
        centered = all(bias is not None for bias in biases)
        parts = gathered.shrinkage()
        made = round_matrices(layer, matrices, gathered, parts, centered, method, num_threads)
        fit = (bias is None or fits(user, bias, made[1]) for user, bias in zip(users, biases, strict=True))
        return made if all(fit) else None


def _round(
    model: Model,
    layer: Layer,
    exact: Segments,
    found: Segments,
    shared: _Shared,
    method: str,
    num_threads: int | None,
    executor: Any,
) -> Rounded | None:
    weights = constant_values(model, layer.exact, WEIGHTS)
    if weights is None or not np.isfinite(weights).all():
        return None
    bias, is_shared = bias_of(model, layer), shared.has(layer)
    others = exact if bias is not None and not is_shared else None
    met = _meet(layer, others, found, not is_shared, num_threads, executor)
    matrices = matrices_of(layer.exact, layer.shape, weights.astype(np.float64))
    if is_shared:
        made = shared.round(layer, matrices, method, num_threads)
    else:
        made = _round_own(layer, matrices, met, bias is not None, method, num_threads)
    if made is None:
        return None
    values, scales = made
    new_bias = None
    if bias is not None:
        rounded = values * spread(layer, scales)
        wanted = shared.mean(layer) if is_shared else met.exact.mean()
        expected = np.einsum("grk,gk->gr", matrices, wanted)
        new_bias = bias + (expected - np.einsum("grk,gk->gr", rounded, met.rounded.mean())).ravel()
        if not fits(layer, new_bias, scales):
            if not is_shared:
                return None
            new_bias = bias  # which fits, as the first layer of these weights found
    return Rounded(weights_of(layer.exact, values, weights.shape), scales, new_bias)


def _round_own(
    layer: Layer, matrices: Array, met: moments.Moments, centered: bool, method: str, num_threads: int | None
) -> tuple[Array, Array] | None:
    """The integers and scales of weights that one layer reads; None: they stay."""
    gathered = met.rounded
    if not np.isfinite(gathered.products).all():
        return None
    parts, wanted = gathered.shrinkage(), matrices
    if halves := met.take_halves():
        wanted = shifted(matrices, halves, parts, num_threads)
    del halves
    return round_matrices(layer, wanted, gathered, parts, centered, method, num_threads)


def _meet(
    layer: Layer, exact: Segments | None, found: Segments, squares: bool, num_threads: int | None, executor: Any
) -> moments.Moments:
    """Moments of the layer's inputs in both models.  exact: None: in the quantized model alone; squares: whether second
    moments are among them."""
    pairs = squares and exact is not None and layer.shape.length <= _MOST_PAIRED
    seen = moments.Layer(filter_of(layer.exact), layer.weights.shape, layer.shape, squares, pairs)
    others = None if exact is None else _chunks(layer.exact, exact)
    return moments.gather(seen, _chunks(layer.rounded, found), others, num_threads, executor)


def _chunks(operator: Operator, segments: Segments) -> Iterator[Chunk]:
    """The data of a layer."""
    data = operator.inputs[LAYERS[operator.name][0]]
    assert data is not None
    return segments.chunks(data.index)


# ---- writing ----


def _writer(layer: Layer, made: Rounded) -> Callable[[OperatorPart], None]:
    def write(part: OperatorPart) -> None:
        weights = part.inputs[WEIGHTS]
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
