# SPDX-License-Identifier: Apache-2.0
"""Networks trained with quantization: FAKE_QUANT, and QUANTIZE before DEQUANTIZE, are removed and leave ranges.

take_fake_quants   removes FAKE_QUANT: leaves the range of an activation, the grid of a constant
take_constants     removes DEQUANTIZE of a constant: leaves its grid, per-tensor or per-axis
complete_pairs     integer inputs before a DEQUANTIZE get a QUANTIZE, integer outputs of a QUANTIZE get a DEQUANTIZE
take_pairs         removes QUANTIZE before DEQUANTIZE: leaves the scale and zero point of an activation
fold_moves_before  computes TRANSPOSE, RESHAPE and their like of a constant before FAKE_QUANT or QUANTIZE
fold_moves         computes TRANSPOSE, RESHAPE and their like of a constant with a trained grid
spread             RELU, RESHAPE and their like hand the range of a trained input or output to the other side
separate           inserts a requantization where an operator needs equal parameters and training chose several; not
                   where a tensor is read by one concatenation alone, whose parameters it then gets

toco does take_fake_quants and spread (hardcode_min_max.cc: change_concat_input_ranges), TFLiteConverter take_pairs and
separate.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq import _core
from tq._core import QuantizationParams
from tq.calibration.encodings import Encoding
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.enums import LIMITS
from tq.quantization import clipping
from tq.quantization.grids import KERNELS, SIGNED, Grid, Grids, of_fake_quant, of_parameters, of_range
from tq.quantization.preparation import ends
from tq.quantization.ranges import Ranges, Trained
from tq.quantization.view import REQUANTIZING, View, is_float
from tq.running.recurrent import inside
from tq.specification.table import FREE, SAME

_INTEGERS = ("INT4", "UINT4", "INT8", "UINT8", "INT16", "INT32", "INT64")
_ACTIVATIONS = ("INT8", "UINT8", "INT16")
_MOVES = ("TRANSPOSE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
_TRAINED = ("FAKE_QUANT", "QUANTIZE")
_MOST_SWEEPS = 8  # of spread; one sweep carries ranges along a whole chain


# ---- FAKE_QUANT ----


def take_fake_quants(graph: SubgraphPart, activations: bool, grids: Grids) -> dict[TensorPart, Trained]:
    """Removes FAKE_QUANT operators, of constants alone or of `activations` too, and returns the ranges that they set.

    A constant takes the operator's result.  Operators of different ranges that read the same tensor, or one that stands
    between an input and an output, stay.  ValueError: a number of bits that no type has.
    """
    found: dict[TensorPart, Trained] = {}
    gone: set[OperatorPart] = set()
    for op in [op for op in graph.operators if op.builtin_name == "FAKE_QUANT"]:
        source, target = ends(op)
        low, high = float(op.options.get("min") or 0), float(op.options.get("max") or 0)
        if op in gone or source is None or target is None or not is_float(source) or not is_float(target):
            continue
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            continue
        if source.is_constant:
            _fold_constant(graph, op, source, target, grids)
        elif activations and source in found and found[source] != _trained(op, low, high, target):
            found[target] = _trained(op, low, high, target)
            op.become(REQUANTIZING, [source], {})  # one behind the other: each rounds
        elif activations and (kept := _skip(graph, op, source, target, gone)) is not None:
            found.pop(source, None)
            found[kept] = _trained(op, low, high, kept)
    return found


def _bits(op: OperatorPart) -> int:
    return int(op.options.get("num_bits") or 8)


def _is_narrow(op: OperatorPart) -> bool:
    return bool(op.options.get("narrow_range"))


def _trained(op: OperatorPart, low: float, high: float, tensor: TensorPart) -> Trained:
    if _bits(op) not in (8, 16):
        raise ValueError(f"{tensor!r}: FAKE_QUANT of {_bits(op)} bits; activations have 8 or 16")
    low, high = min(low, 0.0), max(high, 0.0)
    grid = of_fake_quant(low, high, _bits(op), _is_narrow(op), f"{tensor!r}")
    if _bits(op) == 16 and grid.ends is not None:
        low, high = (float(end[0]) for end in grid.ends)
        if grid.zero_point.any():  # kernels of int16 take 0 alone
            return Trained(low, high)
    made = QuantizationParams((grid.scale[0], np.int32(grid.zero_point[0])))
    return Trained(low, high, type=f"int{_bits(op)}", parameters=made)


def _fold_constant(graph: SubgraphPart, op: OperatorPart, source: TensorPart, target: TensorPart, grids: Grids) -> None:
    data = source.data
    if data is None or source.is_sparse or target in graph.outputs:
        return
    low, high, bits, narrow = float(op.options["min"]), float(op.options["max"]), _bits(op), _is_narrow(op)
    grid = of_fake_quant(low, high, bits, narrow, f"{source!r}")
    try:
        made = _core.fake_quant(data, low, high, num_bits=bits, narrow_range=narrow)
    except ValueError as error:
        raise ValueError(f"{source!r}, which FAKE_QUANT reads: {error}") from None
    graph.remove_operator(op)
    target.data = np.asarray(made, np.float32).reshape(data.shape)
    given = grids.by_tensor.get(source)
    grids.add(target, given if given is not None and given.source == "override" else grid)
    graph.remove_unused([source])


# ---- what a calibration knows by name ----


def take_constant_encodings(graph: SubgraphPart, encodings: Mapping[str, Encoding], grids: Grids) -> None:
    """Gives constants without a grid one from the calibration's encodings."""
    for tensor in graph.tensors if encodings else ():
        item = encodings.get(tensor.name)
        if item is None or not is_float(tensor) or not tensor.is_constant:
            continue
        if (grid := grids.by_tensor.get(tensor)) is None or grid.source == "stored":
            grids.add(tensor, _grid_of(item, tensor))


def take_encodings(graph: SubgraphPart, encodings: Mapping[str, Encoding]) -> dict[TensorPart, Trained]:
    """The calibration's encodings of activations, and of values inside LSTMs, which are under a constant's name."""
    found = {}
    for tensor in graph.tensors if encodings else ():
        item = encodings.get(inside(tensor.name) if tensor.is_constant else tensor.name)
        if item is not None and is_float(tensor):
            is_whole = len(item.scale) == 1 and item.type in LIMITS
            made = QuantizationParams((np.float32(item.scale[0]), np.int32(item.zero_point[0]))) if is_whole else None
            type_ = item.type if is_whole else ""
            found[tensor] = Trained(min(item.min), max(item.max), "calibration", type_, made)
    return found


def _grid_of(item: Encoding, tensor: TensorPart) -> Grid:
    axis = KERNELS if item.axis is None else item.axis
    if item.axis is not None and item.axis < 0:
        axis += len(tensor.shape)
    if item.scale:
        return of_parameters(item.scale, item.zero_point, axis, item.type.upper(), "calibration")
    return of_range(item.min, item.max, axis, "calibration")


def fold_moves_before(graph: SubgraphPart) -> None:
    """Makes what TRANSPOSE, RESHAPE and their like make of constants constants, where FAKE_QUANT or QUANTIZE reads it:
    training chose the grid of the result."""
    unread = []
    for op in [op for op in graph.operators if op.builtin_name in _MOVES]:
        source, target = ends(op)
        if source is None or target is None or not source.is_constant or source.is_sparse or not is_float(source):
            continue
        readers = target.consumers
        if target in graph.outputs or not readers or any(op.builtin_name not in _TRAINED for op in readers):
            continue
        moved, _ = _moved(op, np.asarray(source.data), target.shape, None)
        if moved is not None:
            _become_constant(graph, op, target, moved)
            unread += [source, *(tensor for tensor in op.inputs[1:] if tensor is not None)]
    graph.remove_unused([tensor for tensor in unread if not tensor.consumers])


def _become_constant(graph: SubgraphPart, op: OperatorPart, target: TensorPart, data: NDArray[Any]) -> None:
    graph.remove_operator(op)
    target.shape = data.shape
    target.data = np.ascontiguousarray(data)


def fold_moves(graph: SubgraphPart, grids: Grids) -> None:
    """Makes what TRANSPOSE, RESHAPE and their like make of constants with a trained grid constants of that grid."""
    unread = []
    for op in [op for op in graph.operators if op.builtin_name in _MOVES]:
        source, target = ends(op)
        grid = grids.get(source) if source is not None and source in grids.trained else None
        if grid is None or source is None or target is None or target in graph.outputs:
            continue
        data = np.asarray(source.data)
        moved, axis = _moved(op, data, target.shape, grid.axis)
        if moved is None or (axis is None and grid.axis is not None):
            continue
        _become_constant(graph, op, target, moved)
        grids.add(target, replace(grid, axis=axis))
        unread.append(source)
    gone = [tensor for tensor in unread if not tensor.consumers]
    grids.trained.difference_update(gone)
    graph.remove_unused(gone)


def _moved(
    op: OperatorPart, data: NDArray[Any], shape: tuple[int, ...], axis: int | None
) -> tuple[NDArray[Any] | None, int | None]:
    """The operator's result, and the position of an axis in it.  None: the result is not known."""
    if op.builtin_name == "TRANSPOSE":
        order = op.inputs[1] if len(op.inputs) > 1 else None
        values = None if order is None or order.data is None else [int(item) for item in order.data.ravel()]
        if values is None or sorted(values) != list(range(data.ndim)):
            return None, None
        return data.transpose(values), None if axis is None else values.index(axis)
    if min(shape, default=1) < 0 or math.prod(shape) != data.size:
        return None, None
    found = None
    if axis is not None:
        before, count = math.prod(data.shape[:axis]), data.shape[axis]
        places = [i for i, size in enumerate(shape) if size == count and math.prod(shape[:i]) == before]
        found = places[0] if places else None
    return data.reshape(shape), found


def _skip(
    graph: SubgraphPart, op: OperatorPart, source: TensorPart, target: TensorPart, gone: set[OperatorPart]
) -> TensorPart | None:
    """Lets the readers of the operator's output read its input; the tensor keeps the output's name, unless it is an
    input of the subgraph.  Other operators of the same range that read the input go too.  None: it must stay."""
    same = [reader for reader in source.consumers if reader.builtin_name == "FAKE_QUANT"]
    is_input = source in graph.inputs
    targets = [tensor for reader in same for tensor in reader.outputs if tensor is not None]
    if any(dict(reader.options) != dict(op.options) for reader in same) or len(targets) != len(same):
        return None
    if (source.producer is None and not is_input) or (not is_input and source in graph.outputs):
        return None
    if any(t in graph.outputs for t in targets) and (is_input or len(targets) > 1):
        return None
    for reader in same:
        graph.remove_operator(reader)
    gone.update(same)
    kept = source if is_input else target
    for tensor in (*(t for t in targets if t != kept), source):
        if tensor != kept:
            graph.replace_tensor(tensor, kept)
    return kept


# ---- QUANTIZE before DEQUANTIZE ----


def has_pairs(graph: SubgraphPart) -> bool:
    """Whether all integers with a scale stand between QUANTIZE and DEQUANTIZE, some of them activations.

    An input of integers that DEQUANTIZE alone reads, and an output of integers that QUANTIZE writes, are halves of
    pairs, of which the caller has the other."""
    pairs = 0
    for op in graph.operators:
        tensors = [t for t in (*op.inputs, *op.outputs) if t is not None and t.type_name in _INTEGERS]
        if op.builtin_name not in ("QUANTIZE", "DEQUANTIZE") and any(len(t.quantization.scale) for t in tensors):
            return False
        source = ends(op)[0]
        is_first = op.builtin_name == "QUANTIZE" or source in graph.inputs
        pairs += bool(tensors) and is_first and source is not None and not source.is_constant
    return pairs > 0 and not any(tensor in graph.outputs for tensor in _integer_ends(graph.inputs))


def _integer_ends(tensors: Iterable[TensorPart | None]) -> dict[TensorPart, None]:
    found = [t for t in tensors if t is not None and t.type_name in _ACTIVATIONS and len(t.quantization.scale)]
    return dict.fromkeys(found)


def complete_pairs(graph: SubgraphPart, ranges: Ranges) -> None:
    """Makes inputs and outputs of integers float: QUANTIZE behind inputs, DEQUANTIZE behind outputs, as pairs inside
    have both.  The float tensors take the names."""
    for tensor in _integer_ends(graph.inputs):
        made = _float_end(graph, ranges, tensor)
        graph.replace_ends("inputs", {tensor: made})
        graph.add_operator("QUANTIZE", [made], [tensor], at=0)
    for tensor in _integer_ends(graph.outputs):
        made = _float_end(graph, ranges, tensor)
        graph.replace_ends("outputs", {tensor: made})
        graph.add_operator("DEQUANTIZE", [tensor], [made])


def _float_end(graph: SubgraphPart, ranges: Ranges, tensor: TensorPart) -> TensorPart:
    name = tensor.name
    tensor.name = f"{name}_{tensor.type_name.lower()}"
    made = graph.add_tensor(name, tensor.shape, shape_signature=tensor.shape_signature)
    ranges.move(tensor, made)
    return made


def take_pairs(graph: SubgraphPart, ranges: Ranges) -> dict[TensorPart, Trained]:
    """Removes pairs of QUANTIZE and DEQUANTIZE, and returns the parameters that they set.  Where a float input of the
    subgraph has several pairs, each of them reads its real values."""
    found: dict[TensorPart, Trained] = {}
    pairs: dict[TensorPart, list[OperatorPart]] = {}
    for op in graph.operators:
        source, target = ends(op)
        if op.builtin_name == "QUANTIZE" and source is not None and target is not None and is_float(source):
            pairs.setdefault(source, []).append(op)
    now: dict[TensorPart, TensorPart] = {}  # {a removed tensor: the tensor in its place}
    for first, quantizes in pairs.items():
        rows = [(op, row) for op in quantizes if (row := _pair(graph, op)) is not None]
        # The tensor itself gets the finest parameters; an integer input the widest, from which the others are computed.
        is_widest = first in graph.inputs and ranges.has_integer_ends
        rows.sort(key=lambda row: row[1].high - row[1].low, reverse=is_widest)
        for op, trained in rows:
            source = now.get(first, first)
            targets = [
                t for middle in op.outputs if middle for r in middle.consumers for t in r.outputs if t is not None
            ]
            kept = _take_pair(graph, source, op, source in found)
            now.update((tensor, kept) for tensor in (*targets, source) if tensor not in graph.tensors)
            found[kept] = trained
            if first in graph.inputs and op.builtin_name == REQUANTIZING and op in graph.operators:
                ranges.read_real.add(op)
    return found


def take_constants(graph: SubgraphPart, grids: Grids) -> None:
    """Removes DEQUANTIZE of constants, and QUANTIZE before it.  The scales become the constants' grids."""
    made: dict[TensorPart, NDArray[Any]] = {}
    gone, unread = [], []
    for op in graph.operators:
        source, target = ends(op)
        if source is None or target is None or target in graph.outputs:
            continue
        writes = op.builtin_name == "QUANTIZE" and target.type_name != "INT64" and _has_scale(target)
        if writes and source.is_constant and is_float(source):
            made[target] = _quantized(np.asarray(source.data), target)
        elif op.builtin_name == "DEQUANTIZE" and (source in made or source.is_constant) and _has_scale(source):
            values = made[source] if source in made else np.asarray(source.data)
            target.shape = values.shape
            target.data = _dequantized(values, source)
            grids.add(target, of_parameters(*_parameters(source), source.type_name, "QUANTIZE"))
        else:
            continue
        gone.append(op)
        unread += [source, target]
    for op in gone:
        graph.remove_operator(op)
    graph.remove_unused(unread)


def _has_scale(tensor: TensorPart) -> bool:
    scale, zero = np.asarray(tensor.quantization.scale), np.asarray(tensor.quantization.zero_point)
    return tensor.type_name in _INTEGERS and _fits(tensor, scale) and zero.size in (0, 1, scale.size)


def _fits(tensor: TensorPart, scale: NDArray[Any]) -> bool:
    """Whether there is one scale, or one for each index of an axis, all of them over 0."""
    axis, shape = tensor.quantization.quantized_dimension, tensor.shape
    is_whole = scale.size == 1 or (scale.size > 1 and 0 <= axis < len(shape) and shape[axis] == scale.size)
    return is_whole and bool((np.isfinite(scale) & (scale > 0)).all())


def _parameters(tensor: TensorPart) -> tuple[NDArray[Any], NDArray[Any], int | None]:
    """Scales, zero points and their axis."""
    q = tensor.quantization
    scale = np.asarray(q.scale)
    zero = np.asarray(q.zero_point) if len(q.zero_point) else np.zeros(1, np.int64)
    zero = np.broadcast_to(zero, scale.shape)
    return (scale, zero, q.quantized_dimension) if len(scale) > 1 else (scale, zero, None)


def _quantized(data: NDArray[Any], tensor: TensorPart) -> NDArray[Any]:
    scale, zero, axis = _parameters(tensor)
    type_ = tensor.type_name.lower()
    if axis is None:
        return np.asarray(_core.quantize(data, scale[0], int(zero[0]), dtype=type_))
    return np.asarray(_core.quantize(data, scale, zero, dtype=type_, axis=axis))


def _dequantized(values: NDArray[Any], tensor: TensorPart) -> NDArray[Any]:
    scale, zero, axis = _parameters(tensor)
    if axis is None:
        return np.asarray(np.float32(scale[0]) * (values.astype(np.int64) - int(zero[0])).astype(np.float32))
    shape = [1] * values.ndim
    shape[axis] = -1
    real = (values.astype(np.int64) - zero.reshape(shape)).astype(np.float32)
    return np.asarray(real * scale.reshape(shape).astype(np.float32))


def _pair(graph: SubgraphPart, op: OperatorPart) -> Trained | None:
    """The parameters that a QUANTIZE sets, if it can be removed; else None."""
    _, middle = ends(op)
    if middle is None or middle in graph.outputs or middle.type_name not in _ACTIVATIONS:
        return None
    readers, q = middle.consumers, middle.quantization
    if len(q.scale) != 1 or not readers or any(reader.builtin_name != "DEQUANTIZE" for reader in readers):
        return None
    type_, shift = SIGNED.get(middle.type_name, (middle.type_name.lower(), 0))
    scale, zero = float(q.scale[0]), int(q.zero_point[0]) - shift if len(q.zero_point) else -shift
    least, most = LIMITS[type_]
    if not (scale > 0 and math.isfinite(scale) and least <= zero <= most):
        return None
    made = QuantizationParams((np.float32(scale), np.int32(zero)))
    return Trained(scale * (least - zero), scale * (most - zero), "QUANTIZE", type_, made)


def _take_pair(graph: SubgraphPart, source: TensorPart, op: OperatorPart, is_second: bool) -> TensorPart:
    """Removes a QUANTIZE and the DEQUANTIZEs behind it.  Returns the float tensor that has its parameters."""
    middle = op.outputs[0]
    assert middle is not None
    readers = middle.consumers
    targets = [t for reader in readers for t in reader.outputs if t is not None]
    ends_here = [t for t in targets if t in graph.outputs]
    kept = ends_here[0] if ends_here else targets[0] if is_second else source
    for reader in readers:
        graph.remove_operator(reader)
    if is_second or (ends_here and (source in graph.inputs or source in graph.outputs)) or len(ends_here) > 1:
        kept = kept if kept != source else targets[0]
        op.become(REQUANTIZING, [source], {})
        op.outputs = [kept]
    else:
        graph.remove_operator(op)
        targets = [*targets, source]
    for tensor in targets:
        if tensor != kept and tensor not in graph.outputs:
            graph.replace_tensor(tensor, kept)
    graph.remove_unused([middle])
    return kept


# ---- tensors beside trained ones ----


def spread(graph: SubgraphPart, ranges: Ranges, type: str) -> None:
    """Gives the range of a trained tensor to tensors with the same values, and to those whose clamped values it has."""
    view = View.of(graph, ranges, type)
    rows = [op for op in graph.operators if view.rule(op) == SAME or op.builtin_name in clipping.BOUNDS]
    for _ in range(_MOST_SWEEPS):
        changes = sum([_backward(view, op) for op in reversed(rows)]) + sum([_forward(view, op) for op in rows])
        if not changes and not any([_unite(view, op) for op in rows]):
            return


def _known(view: View, tensors: Iterable[TensorPart]) -> list[Trained | None]:
    return [view.ranges.trained(tensor) for tensor in tensors]


def _forward(view: View, op: OperatorPart) -> bool:
    read, written = view.data(op), view.outputs(op)
    known = _known(view, read)
    new = [t for t in written if view.ranges.trained(t) is None]
    if not new or not known or known[0] is None or any(row != known[0] for row in known):
        return False
    view.ranges.train(dict.fromkeys(new, known[0]))
    return True


def _unite(view: View, op: OperatorPart) -> bool:
    """Gives an output without a range that of all inputs, where these have parameters: they are requantized to the
    output's."""
    rows = [row for row in _known(view, view.data(op)) if row is not None and row.is_fixed]
    new = [t for t in view.outputs(op) if view.ranges.trained(t) is None]
    if not new or len(rows) < 2 or len(rows) != len(view.data(op)):
        return False
    span = Trained(min(row.low for row in rows), max(row.high for row in rows), rows[0].source)
    view.ranges.train(dict.fromkeys(new, span))
    return True


def _backward(view: View, op: OperatorPart) -> bool:
    if op.builtin_name not in clipping.BOUNDS and op.builtin_name not in clipping.MOVING:
        return False
    known = _known(view, view.outputs(op))
    if not known or known[0] is None or any(row != known[0] for row in known):
        return False
    read = view.data(op)
    alone = [t for t in read if view.readers[t] == [op] and t not in view.graph.outputs and t not in view.graph.inputs]
    new = [t for t in alone if view.ranges.trained(t) is None]
    if len(read) > 1 and not known[0].is_fixed:  # change_concat_input_ranges
        rows = zip(alone, _known(view, alone), strict=True)
        new = [t for t, row in rows if row != known[0] and (row is None or not row.is_fixed)]
    view.ranges.train(dict.fromkeys(new, known[0]))
    return bool(new)


# ---- several parameters where there must be one ----


def separate(graph: SubgraphPart, ranges: Ranges, type: str) -> None:
    """Inserts a requantization between tensors with different parameters where an operator needs equal ones."""
    view = View.of(graph, ranges, type)
    for op in [op for op in graph.operators if view.rule(op) == SAME]:
        read, written = view.data(op), view.outputs(op)
        if len(read) == 1:
            for tensor in written:
                if _differ(ranges, tensor, read[0]):
                    _requantize_output(graph, ranges, op, tensor, read[0])
        elif written:
            for tensor in dict.fromkeys(read):
                if not _differ(ranges, tensor, written[0]):
                    continue
                own = ranges.trained(written[0])
                if own is not None and _is_rescaled(view, op, tensor):
                    ranges.train({tensor: own})
                else:
                    _requantize_input(graph, ranges, op, tensor, written[0])


def _is_rescaled(view: View, op: OperatorPart, tensor: TensorPart) -> bool:
    """Whether the operator alone reads the tensor, and its kernel writes with any scale.  The tensor then gets the
    operator's parameters, as in toco's change_concat_input_ranges and TFLiteConverter."""
    producer = view.producers.get(tensor)
    if producer is None or producer.builtin_name == REQUANTIZING or tensor in view.graph.outputs:
        return False
    return view.rule(producer) == FREE and view.readers[tensor] == [op]


def _differ(ranges: Ranges, one: TensorPart, other: TensorPart) -> bool:
    """Whether training chose different ranges or parameters, and parameters for at least one."""
    a, b = ranges.trained(one), ranges.trained(other)
    if a is None or b is None or not (a.is_fixed or b.is_fixed):
        return False
    return a[:2] != b[:2] or a.parameters != b.parameters


def _twin(graph: SubgraphPart, ranges: Ranges, tensor: TensorPart, like: TensorPart) -> TensorPart:
    made = graph.add_tensor(f"{tensor.name}_requantized", tensor.shape, shape_signature=tensor.shape_signature)
    trained = ranges.trained(like)
    assert trained is not None
    ranges.train({made: trained})
    return made


def _requantize_output(
    graph: SubgraphPart, ranges: Ranges, op: OperatorPart, tensor: TensorPart, like: TensorPart
) -> None:
    made = _twin(graph, ranges, tensor, like)
    op.outputs = [made if t == tensor else t for t in op.outputs]
    graph.insert_after(op, REQUANTIZING, [made], [tensor])


def _requantize_input(
    graph: SubgraphPart, ranges: Ranges, op: OperatorPart, tensor: TensorPart, like: TensorPart
) -> None:
    made = _twin(graph, ranges, tensor, like)
    graph.insert_before(op, REQUANTIZING, [tensor], [made])
    op.replace_inputs({tensor: made})


def unjoined(graph: SubgraphPart, integers: Container[OperatorPart]) -> tuple[OperatorPart, ...]:
    """The inserted requantizations that stay float."""
    rows = [op for op in graph.operators if op.builtin_name == REQUANTIZING and op not in integers]
    return tuple(op for op in rows if all(map(is_float, ends(op))))
