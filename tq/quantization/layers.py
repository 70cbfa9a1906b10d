# SPDX-License-Identifier: Apache-2.0
"""The layers of a quantized model whose weights can be rounded for their inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Operator, Tensor
from tq.accuracy.matching import constant_of, match
from tq.calibration.hessians import LAYERS, Shape, shape_of
from tq.editing.extraction import extract
from tq.running.interpreter import Interpreter

Array = NDArray[Any]

METHODS = ("gptq", "comq")
BIASES = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
NOT_ROUNDED = f"no weights that only {', '.join(LAYERS)} read are int8, int4 or int2 with zero point 0"
WEIGHTS = 1  # the input of all layers with the weights

# The least and greatest integer of a type.  -128 is left out as in all int8 weights.
LIMITS = {"INT8": (-127, 127), "INT4": (-8, 7), "INT2": (-2, 1)}
_MOST_BIAS = 2.0**30  # steps of an int32 bias


class Layer(NamedTuple):
    """A layer of the float model and of the quantized one."""

    exact: Operator
    rounded: Operator
    weights: Tensor  # of the quantized model
    shape: Shape


def layers_of(model: Model, quantized: Model, methods: Callable[[Operator], str]) -> list[Layer]:
    """The layers to round, in the order of execution."""
    by_weights: dict[int, list[Layer]] = {}
    for one, two in match(model, quantized).operators:
        if one.name in LAYERS and methods(one) in METHODS and (layer := _layer(one, two)) is not None:
            by_weights.setdefault(layer.weights.index, []).append(layer)
    readers = _readers(quantized)
    kept: list[Layer] = []
    for index, layers in by_weights.items():
        if len(layers) == readers[index] and len({_facts(layer, methods) for layer in layers}) == 1:
            kept += layers
    order = sorted(kept, key=lambda layer: layer.rounded.index)
    furthest = accumulate((layer.exact.index for layer in order), max)
    late = {layer.weights.index for layer, most in zip(order, furthest, strict=True) if layer.exact.index < most}
    return [layer for layer in order if layer.weights.index not in late]


def _readers(quantized: Model) -> Counter[int]:
    """How many operators read each constant, directly or behind a DEQUANTIZE."""
    found: Counter[int] = Counter()
    for op in quantized.subgraphs[0].operators:
        for place in range(len(op.inputs) if op.name != "DEQUANTIZE" else 0):
            tensor = constant_of(op, place)
            if tensor is not None:
                found[tensor.index] += 1
    return found


def _facts(layer: Layer, methods: Callable[[Operator], str]) -> tuple[Any, ...]:
    """What layers that read the same weights must agree in."""
    exact = layer.exact
    return exact.name, layer.shape, exact.options.get("adj_y"), exact.input_indices[WEIGHTS], methods(exact)


def _layer(one: Operator, two: Operator) -> Layer | None:
    weights = constant_of(two, WEIGHTS)
    if weights is None or not weights.is_constant or weights.type.name not in LIMITS:
        return None
    shape = shape_of(one, weights.shape)
    data = two.inputs[LAYERS[one.name][0]]
    if shape is None or data is None or data.is_constant or not weights.quantization:
        return None
    return None if np.any(weights.quantization.zero_point) else Layer(one, two, weights, shape)


def constant_values(model: Model, operator: Operator, place: int) -> Array | None:
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


def fits(layer: Layer, bias: Array, scales: Array) -> bool:
    """Whether a bias has quantized values that leave room for the products' sum."""
    data = layer.rounded.inputs[LAYERS[layer.exact.name][0]]
    assert data is not None
    if data.type.name != "INT8":
        return bool(np.isfinite(bias).all())
    step = scales.astype(np.float64) * float(data.quantization.scale[0])
    return bool((np.abs(bias) < _MOST_BIAS * step).all())


def bias_of(model: Model, layer: Layer) -> Array | None:
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
    values = constant_values(model, layer.exact, place)
    count = layer.shape.groups * layer.shape.rows
    return np.zeros(count) if values is None else values.astype(np.float64)
