# SPDX-License-Identifier: Apache-2.0
"""A float graph, written so that it can be quantized; it computes the same before and after.

fold_constants    weights that a file stores as float16, or sparse, become plain float32 constants
split_sums        SUM is MEAN times the count: LiteRT's reference kernel reads int8 values as uint8
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.ranges import Ranges, Trained
from tq.quantization.view import is_float, is_infinite

# ---- constants behind operators ----

FOLDED = frozenset(("DEQUANTIZE", "DENSIFY"))
_FOLDED_TYPES = ("FLOAT32", "FLOAT16")


def fold_constants(graph: SubgraphPart, model: Model, wanted: Iterable[OperatorPart]) -> None:
    """Makes the results of DEQUANTIZE of float16 and of DENSIFY constants, where one of the operators `wanted` reads
    them: they are the same whenever the operators run.

    model: the graph's source; the graph has not changed yet.
    """
    results = dict(_foldable(graph, model))
    if not results:
        return
    used = {index for op in wanted for index in op.input_indices}
    used -= {tensor.index for tensor in graph.outputs if tensor is not None}
    gone = set()
    for op, (target, data) in results.items():
        if target.index in used and is_float(target):
            gone.add(op)
            target.data = np.asarray(data, np.float32)
    reads = Counter(index for op in graph.operators if op not in gone for index in op.input_indices)
    reads.update(tensor.index for tensor in graph.outputs if tensor is not None)
    for op in reversed(results):  # a DENSIFY whose DEQUANTIZE went
        if op not in gone and not any(reads[index] for index in op.output_indices):
            gone.add(op)
            reads.subtract(op.input_indices)
    unread = {t for op in gone for t in (*op.inputs, *op.outputs) if t is not None and not reads[t.index]}
    for op in gone:
        graph.remove_operator(op)
    graph.remove_tensors(unread)


def _foldable(graph: SubgraphPart, model: Model) -> Iterator[tuple[OperatorPart, tuple[TensorPart, NDArray[Any]]]]:
    """Operators with their result and its values, in their order."""
    made: dict[TensorPart, NDArray[Any]] = {}
    sources = model.subgraphs[graph.index].tensors
    for op in graph.operators:
        if op.builtin_name not in FOLDED:
            continue
        source, target = ends(op)
        if source is None or target is None or not {source.type_name, target.type_name} <= set(_FOLDED_TYPES):
            continue
        data = made.get(source)
        if data is None and source.is_constant:
            data = sources[source.index].densify()
        if data is not None and data.shape == target.shape:
            made[target] = data
            yield op, (target, data)


def ends(op: OperatorPart) -> tuple[TensorPart | None, TensorPart | None]:
    """The first input and the first output."""
    return (op.inputs or (None,))[0], (op.outputs or (None,))[0]


# ---- SUM ----


def split_sums(graph: SubgraphPart, operators: Iterable[OperatorPart], ranges: Ranges) -> list[OperatorPart]:
    """Writes SUMs among the operators as MEAN and MUL, where shapes, axes and ranges are known.  Returns the MULs."""
    sums = [op for op in operators if op.builtin_name == "SUM"]
    return [made for op in sums if (made := _split_sum(graph, op, ranges)) is not None]


def _split_sum(graph: SubgraphPart, op: OperatorPart, ranges: Ranges) -> OperatorPart | None:
    (x, y), axes = ends(op), op.inputs[1] if len(op.inputs) > 1 else None
    if x is None or y is None or axes is None or not is_float(x) or not is_float(y) or x.is_constant:
        return None
    span = ranges.of_any(y)
    if axes.data is None or span is None or ranges.of_any(x) is None:
        return None
    if is_infinite(ranges, x) or is_infinite(ranges, y):
        return None
    sizes = x.shape_signature or x.shape
    summed = [sizes[i] for i in {int(axis) % len(sizes) for axis in axes.data.ravel()}] if sizes else []
    count = int(np.prod(summed))
    if min(summed, default=1) <= 0:
        return None
    mean = graph.add_tensor(f"{y.name}_mean", y.shape, shape_signature=y.shape_signature)
    ranges.train({mean: Trained(span[0] / count, span[1] / count)})
    op.become("MEAN")
    op.outputs = [mean]
    factor = graph.constant(f"{y.name}_count", np.float32(count), shape=())
    return graph.insert_after(op, "MUL", [mean, factor], [y])
