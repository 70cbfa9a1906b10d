# SPDX-License-Identifier: Apache-2.0
"""tq.explain: how one element of a run came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import index as integer
from typing import Any, cast

import numpy as np

from tq._core import Operator, Tensor
from tq.explanation import activations, elementwise, movement, products, reductions, resizing, roots, states, tables
from tq.explanation.log_softmax import log_softmax
from tq.explanation.node import ACTIVATIONS, RANGES, Node
from tq.explanation.softmax import softmax
from tq.explanation.steps import Explanation, Trail
from tq.nearest import hint

Explain = Callable[[Trail, Node], int]


def _add_way(way: str) -> Explain:
    return lambda trail, node: elementwise.add_or_sub(trail, node, way)


# {operator: the ways in which its kernels compute an element}; the first that gives the element is the one.  Only the
# optimized ADD has more than one: its vectors scale inputs in another way, for whole blocks of elements.
_OPERATORS: dict[str, tuple[Explain, ...]] = {
    "CONV_2D": (products.conv_2d,),
    "DEPTHWISE_CONV_2D": (products.depthwise_conv_2d,),
    "TRANSPOSE_CONV": (products.transpose_conv,),
    "FULLY_CONNECTED": (products.fully_connected,),
    "BATCH_MATMUL": (products.batch_matmul,),
    "ADD": tuple(map(_add_way, (elementwise.PLAIN, elementwise.FOLDED, elementwise.UNROUNDED))),
    "SUB": (elementwise.add_or_sub,),
    "MUL": (elementwise.mul,),
    "QUANTIZE": (elementwise.quantize,),
    "AVERAGE_POOL_2D": (reductions.average_pool,),
    "MAX_POOL_2D": (reductions.max_pool,),
    "MEAN": (reductions.mean_or_sum,),
    "SUM": (reductions.mean_or_sum,),
    "REDUCE_MAX": (reductions.extreme,),
    "REDUCE_MIN": (reductions.extreme,),
    "SOFTMAX": (softmax,),
    "LOG_SOFTMAX": (log_softmax,),
    "SQRT": (roots.sqrt,),
    "RSQRT": (roots.rsqrt,),
    "L2_NORMALIZATION": (roots.l2_normalization,),
    "READ_VARIABLE": (states.read_variable,),
    "SVDF": (states.svdf,),
    "RESIZE_BILINEAR": (resizing.bilinear,),
    "RESIZE_NEAREST_NEIGHBOR": (resizing.nearest,),
    "LEAKY_RELU": (activations.leaky_relu,),
    "HARD_SWISH": (activations.hard_swish,),
    **dict.fromkeys(ACTIVATIONS, (activations.relu,)),
    **dict.fromkeys(tables.NAMES, (tables.table,)),
    **dict.fromkeys(movement.NAMES, (movement.moved,)),
}
# The input whose type counts, of operators that take values of other types before it.
_DATA = {"TRANSPOSE_CONV": 2, "SPLIT": 1, "SELECT": 1, "SELECT_V2": 1}
# Types of that input beside those of RANGES.
_MORE_TYPES = {"QUANTIZE": ("INT32", "FLOAT32"), "READ_VARIABLE": ("RESOURCE",)}


def _tensor(run: Any, tensor: int | str) -> Tensor:
    tensors: Any = run.model.subgraphs[0].tensors
    if isinstance(tensor, str):
        found = [item for item in tensors if item.name == tensor]
        if not found:
            raise KeyError(f"no tensor is called {tensor!r}{hint(tensor, (item.name for item in tensors))}")
        return cast(Tensor, found[0])
    place = integer(tensor)
    if not 0 <= place < len(tensors):
        raise IndexError(f"there is no tensor {place}; the model has {len(tensors)}")
    return cast(Tensor, tensors[place])


def _element(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An index of each dimension, or one into the flat array; negative ones count from the end."""
    if isinstance(index, np.ndarray) and index.ndim:
        index = index.tolist()
    if not isinstance(index, (tuple, list)):
        flat, count = integer(index), int(np.prod(shape))
        if not -count <= flat < count:
            raise IndexError(f"index {flat} is outside of the tensor's {count} elements")
        return tuple(int(i) for i in np.unravel_index(flat % count, shape))
    if len(index) != len(shape):
        raise IndexError(f"{len(index)} indices were given; the tensor has the shape {list(shape)}")
    for given, size in zip(index, shape, strict=True):
        if not -size <= integer(given) < size:
            raise IndexError(f"index {list(index)} is outside of the shape {list(shape)}")
    return tuple(integer(given) % size for given, size in zip(index, shape, strict=True))


def _writer(run: Any, tensor: Tensor) -> Operator:
    for op in run.model.subgraphs[0].operators:
        if tensor.index in op.output_indices:
            return cast(Operator, op)
    what = "a constant" if tensor.is_constant else "no operator's output"
    raise ValueError(f"tensor {tensor.index} ({tensor.name!r}) is {what}: there is nothing to explain")


def _check(op: Operator, tensor: Tensor) -> tuple[Explain, ...]:
    kind = str(tensor.type.name)
    if op.name not in _OPERATORS:
        raise ValueError(f"operator {op.index} ({op.name}) is not explained; explained are {', '.join(_OPERATORS)}")
    place = _DATA.get(op.name, 0)
    types = [str(item.type.name) for item in op.inputs[place : place + 1] if item is not None]
    known = {*RANGES, *_MORE_TYPES.get(op.name, ())}
    if kind not in RANGES or not types or types[0] not in known:
        raise ValueError(
            f"operator {op.index} ({op.name}) computes {kind} from {', '.join(types)}; "
            "explained are values of INT8, UINT8 and INT16"
        )
    if len(tensor.quantization.scale) == 0:
        raise ValueError(f"tensor {tensor.index} ({tensor.name!r}) has no scale: its values are integers of their own")
    for item in (tensor, *op.inputs):
        if item is not None and item.quantization.scale.ndim > 1:
            raise ValueError(
                f"tensor {item.index} ({item.name!r}) has a scale for each block; explained are tensors with one "
                "scale, or one for each channel"
            )
    return _OPERATORS[op.name]


def explain(run: Any, tensor: int | str, index: Any, *, float_run: Any = None) -> Explanation:
    """How one element of a run came about: every step from the inputs' quantized values to its own.

    run: a tq.Interpreter with experimental_preserve_all_tensors=True, after invoke; its `numerics` say whose kernels'
    arithmetic is shown.  tensor: an index or a name of the first subgraph, of type INT8, UINT8 or INT16.  index: one
    integer a dimension, or one into the flat array.  float_run: the float model's interpreter, after invoke on the same
    inputs, also with all tensors preserved: its element stands beside, if the tensor has the same name there, or
        the real values that a QUANTIZE or DEQUANTIZE changes from or to it, and the error of each step by which the
        result has a real value.

    The operators are CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED, BATCH_MATMUL, ADD, SUB, MUL,
    QUANTIZE, pooling, MEAN, SUM, REDUCE_MAX, REDUCE_MIN, SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, SQRT, RSQRT, SVDF,
    RELU and its kin, LEAKY_RELU, HARD_SWISH, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, READ_VARIABLE,
    those of tables (LOGISTIC, TANH ...) and those that move values (RESHAPE, PAD, CONCATENATION ...).
    The result's `code` equals the element.
    ValueError: another operator or type, or a tensor that is no operator's output.  IndexError, KeyError: no such
    element or tensor.  RuntimeError: the run did not keep the tensors.
    """
    for name, given in (("run", run), ("float_run", float_run)):
        if not hasattr(given, "get_tensor") and (name == "run" or given is not None):
            raise TypeError(f"{name} is a {type(given).__name__}; it must be a tq.Interpreter after invoke")
    found = _tensor(run, tensor)
    op = _writer(run, found)
    place = list(op.output_indices).index(found.index)
    if place > 0 and op.name not in movement.NAMES:
        raise ValueError(
            f"tensor {found.index} ({found.name!r}) is a further output of operator {op.index} ({op.name})"
        )
    _check(op, found)
    actual = np.asarray(run.get_tensor(found.index))
    element = _element(index, actual.shape)
    numerics, single = run.backends()[op.index].numerics, run.rounding == "single"
    made = explain_as(run, op, element, int(actual[element]), numerics, single, place)
    if made is None:
        raise RuntimeError(
            f"operator {op.index} ({op.name}) computes {int(actual[element])} for element {list(element)}, and the "
            "explanation by the tensors of its inputs gives another value: without "
            "experimental_preserve_all_tensors=True and an invoke inputs may be overwritten; with both, the "
            "explanation is at fault"
        )
    real = _float_value(float_run, run, found, element)
    if real is None:
        return made
    steps = tuple(s if s.real is None else s._replace(error=s.real - real) for s in made.steps)
    return replace(made, steps=steps, real=real, errors=_errors(real, made.value, made.scale))


def explain_as(
    run: Any, op: Operator, element: tuple[int, ...], code: int, numerics: str, single: bool, place: int = 0
) -> Explanation | None:
    """How the kernels of `numerics` come to a quantized value from the operator's inputs in `run`; None: they do not.

    single: with TFLITE_SINGLE_ROUNDING.  place: which output.  ValueError: another operator or type."""
    tensor = op.outputs[place]
    assert tensor is not None
    for way in _check(op, tensor):
        trail, node = Trail(), Node(run, op, numerics, element, single, place)
        with np.errstate(all="ignore"):  # infinities and NaN are values like others
            found = way(trail, node)
        if found == code:
            break
    else:
        return None
    scale, zero = node.channel_scale(element), node.channel_zero_point(element)
    value = float(scale * np.float32(code - zero))
    trail.add("real value", value, f"scale {float(scale)!r} * (quantized value - {zero})", value)
    steps = tuple(trail.steps)
    rounding = "single" if single else "double"
    return Explanation(
        tensor.name, element, op.index, op.name, numerics, rounding, trail.accumulator, steps, code, value, float(scale)
    )


def _real_names(quantized: Any, tensor: Tensor) -> Iterator[str]:
    """The tensor's name, and those of the real values that a QUANTIZE makes it of and a DEQUANTIZE makes of it."""
    yield tensor.name
    for op in quantized.model.subgraphs[0].operators:
        if op.name == "QUANTIZE" and tensor.index in op.output_indices:
            yield op.inputs[0].name
        if op.name == "DEQUANTIZE" and tensor.index in op.input_indices:
            yield op.outputs[0].name


def _float_value(run: Any, quantized: Any, tensor: Tensor, element: tuple[int, ...]) -> float | None:
    if run is None:
        return None
    names = {item.name for item in run.model.subgraphs[0].tensors}
    name = next((name for name in _real_names(quantized, tensor) if name in names), tensor.name)
    values = np.asarray(run.get_tensor(_tensor(run, name).index))
    if values.ndim != len(element) or any(i >= n for i, n in zip(element, values.shape, strict=True)):
        raise ValueError(f"tensor {name!r} has the shape {list(values.shape)} in the float model")
    return float(values[element])


def _errors(real: float, value: float, scale: float) -> dict[str, float]:
    nearest_value = round(real / scale) * scale
    return {
        "real value - float model's": value - real,
        "of that by rounding to the output's steps alone": nearest_value - real,
        "of that by inputs, weights and clamping": value - nearest_value,
    }
