# SPDX-License-Identifier: Apache-2.0
"""Bias correction: rounding weights shifts a layer's mean output; its bias takes the shift back.

A layer with weights W, rounded to V, gives on inputs x a mean output that is off by E[(V - W) x], channel by channel.
Both are linear in x, so the mean of x at each position of the filter is enough: E[W x] = sum W m with m[i, j, c] the
mean of the values of channel c under the filter's position (i, j), padding's zeros among them, over the samples in the
float model.
Source: Nagel et al. 2019, Data-Free Quantization Through Weight Equalization and Bias Correction.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Operator
from tq.accuracy.matching import constant_of, match
from tq.accuracy.measuring import Samples, real
from tq.calibration.samples import Data
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.progress import tracked
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits
from tq.saving import target
from tq.sources import Source, opened

Array = NDArray[Any]
_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def correct_biases(
    float_model: Source,
    quantized: Source,
    samples: Samples | Data,
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    num_threads: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> bytes:
    """A quantized model whose layers have the mean outputs of the float model's.

    quantized: made from float_model by any recipe; of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED with quantized
        weights, the biases change, or are added.
    samples: as tq.calibrate takes them.  output: a path to write the model to as well.
    in_place: it may be the path of `quantized`.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    Corrections of an integer bias are rounded to its steps, and end at int32's ends.
    ValueError: samples that do not fit, or models that have no layers in common.
    """
    a, b = opened(float_model), opened(quantized)
    goal = target(output, a, samples, model=b, in_place=in_place)
    fed = samples if isinstance(samples, Samples) else Samples(a, samples)
    layers = layers_of(a, b)
    if not layers:
        raise ValueError("the models have no layer in common whose weights are quantized")
    means = _means(a, [one for one, _ in layers], fed, num_threads, Limits(max_memory, max_multiply_adds))
    editor = Editor(b)
    for (one, two), mean in zip(layers, means, strict=True):
        shift = _expected(one, _numbers(one), mean) - _expected(one, _numbers(two), mean)
        if np.isfinite(shift).all():
            _add(editor.main, editor.main.operators[two.index], shift)
    result = editor.to_bytes()
    if goal is not None:
        goal.save(result)
    return result


def layers_of(a: Model, b: Model) -> list[tuple[Operator, Operator]]:
    """The layers of a float model and of a quantized one whose biases can be corrected."""
    return [(one, two) for one, two in match(a, b).operators if _is_layer(one, two)]


def _is_layer(one: Operator, two: Operator) -> bool:
    if one.name not in _LAYERS or len(two.inputs) < 2:
        return False
    weights, quantized = constant_of(one, 1), constant_of(two, 1)
    if weights is None or quantized is None or not weights.is_constant or not quantized.is_constant:
        return False
    rank = 2 if one.name == "FULLY_CONNECTED" else 4
    if not quantized.quantization or weights.shape != quantized.shape or len(weights.shape) != rank:
        return False
    bias = two.inputs[2] if len(two.inputs) > 2 else None
    return bias is None or bias.is_constant


def _numbers(operator: Operator) -> Array:
    tensor = constant_of(operator, 1)
    assert tensor is not None
    data = tensor.dequantized() if tensor.quantization else tensor.data
    assert data is not None
    return data.astype(np.float64)


# ---- means ----


def _means(
    model: Model, layers: list[Operator], samples: Samples, num_threads: int | None, limits: Limits = NONE
) -> list[Array]:
    """For each layer the mean of its input at each position of the filter."""
    interpreter = Interpreter(
        model=model,
        num_threads=num_threads,
        experimental_preserve_all_tensors=True,
        numerics="reference",
        **limits._asdict(),
    )
    sums: list[Array | None] = [None] * len(layers)
    for _ in tracked(samples.each(interpreter), samples, "correcting biases"):
        interpreter.invoke()
        for position, layer in enumerate(layers):
            tensor = layer.inputs[0]
            assert tensor is not None
            value = real(np.asarray(interpreter.get_tensor(tensor.index)), tensor)
            assert value is not None
            mean = _mean(layer, value)
            have = sums[position]
            sums[position] = mean if have is None else have + mean
    return [item / len(samples) for item in sums if item is not None]


def _mean(layer: Operator, x: Array) -> Array:
    weights = constant_of(layer, 1)
    assert weights is not None
    if layer.name == "FULLY_CONNECTED":
        return np.asarray(x.reshape(-1, weights.shape[1]).mean(axis=0, dtype=np.float64))
    _, height, width, _ = weights.shape
    rows, columns = _positions(layer, "h", x.shape[1], height), _positions(layer, "w", x.shape[2], width)
    # Means over columns first, for each of the filter's, then over rows: (i, j) needs no pass of its own.
    narrow = np.stack([_mean_over(x, 2, at) for at in columns], axis=-1)  # [n, h, c, j]
    found = np.stack([_mean_over(narrow, 1, at) for at in rows], axis=1)  # [n, i, c, j]
    return np.asarray(found.mean(axis=0).transpose(0, 2, 1))  # [i, j, c]


def _mean_over(x: Array, axis: int, at: tuple[range, int]) -> Array:
    """The mean over these positions of an axis; padding is 0."""
    positions, count = at
    part = x[(slice(None),) * axis + (slice(positions.start, positions.stop, positions.step),)]
    return np.asarray(part.sum(axis=axis, dtype=np.float64) / count)


def _positions(layer: Operator, axis: str, size: int, filter: int) -> list[tuple[range, int]]:
    """For each position of the filter along an axis: where in the input it stands, and for how many outputs."""
    options = layer.options
    stride, dilation = int(options.get(f"stride_{axis}") or 1), int(options.get(f"dilation_{axis}_factor") or 1)
    reach = (filter - 1) * dilation + 1
    if getattr(options.get("padding"), "name", "SAME") == "SAME":
        count = -(-size // stride)
        before = max((count - 1) * stride + reach - size, 0) // 2
    else:
        count, before = (size - reach) // stride + 1, 0
    found = []
    for position in range(filter):
        first = position * dilation - before
        skip = -(-max(-first, 0) // stride)
        start = first + skip * stride
        stop = min(size, first + (count - 1) * stride + 1)
        found.append((range(start, max(stop, start), stride), count))
    return found


def _expected(layer: Operator, weights: Array, mean: Array) -> Array:
    """The mean output of each channel, without its bias."""
    if layer.name == "FULLY_CONNECTED":
        return np.asarray(weights @ mean)
    if layer.name == "DEPTHWISE_CONV_2D":
        return np.asarray((weights[0] * np.repeat(mean, weights.shape[3] // mean.shape[2], axis=2)).sum(axis=(0, 1)))
    groups = mean.shape[2] // weights.shape[3]
    parts = weights.reshape(groups, -1, *weights.shape[1:])
    means = mean.reshape(*mean.shape[:2], groups, -1)
    return np.asarray(np.einsum("gohwc,hwgc->go", parts, means).ravel())


# ---- writing ----


def _add(graph: SubgraphPart, operator: OperatorPart, shift: Array) -> None:
    """Adds to an operator's bias, without a change to other operators'."""
    inputs = list(operator.inputs)
    bias = inputs[2] if len(inputs) > 2 else None
    weights = inputs[1]
    assert weights is not None
    scale = _bias_scale(operator, bias, weights)
    name = f"{weights.name}_bias" if bias is None else bias.name
    if scale is None:  # a float bias
        data = np.zeros(len(shift), np.float32) if bias is None else np.asarray(bias.data)
        made = graph.add_tensor(name, data=(data + shift).astype(np.float32))
    else:
        kind = _bias_dtype(operator) if bias is None else np.asarray(bias.data).dtype
        ends = np.iinfo(kind)
        values = [0] * len(shift) if bias is None else np.asarray(bias.data).tolist()
        steps = np.rint(np.clip(shift / scale.astype(np.float64), -(2.0**62), 2.0**62)).tolist()
        moved = [min(max(value + int(step), ends.min), ends.max) for value, step in zip(values, steps, strict=True)]
        made = graph.add_tensor(name, data=np.array(moved, kind), scale=scale if len(scale) > 1 else scale[:1])
    operator.inputs = [*inputs[:2], made, *inputs[3:]]
    if bias is not None and bias.index not in graph.users():
        graph.remove_tensors({bias})


def _bias_dtype(operator: OperatorPart) -> np.dtype[Any]:
    """The dtype of the bias that an operator gets: LiteRT reads biases of INT16 operators as INT64, whatever the
    tensor's type is, unless the option says INT32."""
    x = operator.inputs[0]
    said = getattr(operator.options.get("quantized_bias_type"), "name", "")
    is_wide = x is not None and x.type_name == "INT16" and said != "INT32"
    return np.dtype(np.int64 if is_wide else np.int32)


def _bias_scale(operator: OperatorPart, bias: TensorPart | None, weights: TensorPart) -> NDArray[np.float32] | None:
    """The steps of an integer bias; None for a float one."""
    x = operator.inputs[0]
    if bias is not None:
        return bias.quantization.scale if len(bias.quantization.scale) else None
    if x is None or x.type_name == "FLOAT32":
        return None
    return np.asarray(x.quantization.scale[0] * weights.quantization.scale, np.float32)
