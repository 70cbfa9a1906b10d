# SPDX-License-Identifier: Apache-2.0
"""Constants behind operators: weights that a file keeps as float16, or sparse, become plain float32 constants.

A DEQUANTIZE of float16 and a DENSIFY compute the same numbers whenever they run; without them the operators behind read
constants, which can be quantized.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart

FOLDED = {"DEQUANTIZE", "DENSIFY"}
_TYPES = ("FLOAT32", "FLOAT16")


def fold_constants(graph: SubgraphPart, model: Model, wanted: Iterable[OperatorPart]) -> None:
    """Makes results of such operators constants, where one of the operators `wanted` reads them.

    model: what the graph was opened from; nothing has changed in it yet.
    """
    results = dict(_foldable(graph, model))
    if not results:
        return
    used = {index for op in wanted for index in op.input_indices}
    used -= {tensor.index for tensor in graph.outputs if tensor is not None}
    gone = set()
    for op, (target, data) in results.items():
        if target.index in used and _name(target) == "FLOAT32":
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
    """Operators with their result and its numbers, in their order."""
    made: dict[TensorPart, NDArray[Any]] = {}
    sources = model.subgraphs[graph.index].tensors
    for op in graph.operators:
        if op.builtin_name not in FOLDED:
            continue
        source, target = (op.inputs or (None,))[0], (op.outputs or (None,))[0]
        if source is None or target is None or _name(source) not in _TYPES or _name(target) not in _TYPES:
            continue
        data = made.get(source)
        if data is None and source.is_constant:
            data = sources[source.index].densify()
        if data is not None and data.shape == target.shape:
            made[target] = data
            yield op, (target, data)


def _name(tensor: TensorPart) -> str:
    return str(getattr(tensor.type, "name", ""))
