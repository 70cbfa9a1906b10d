# SPDX-License-Identifier: Apache-2.0
"""PRELU in place of the operators that some converters write for it: max(x, 0) - a max(-x, 0).

The real values are the same.  As integers, each of those operators would round, and PRELU rounds once.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tq._core import Model
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization.view import is_constant_float

_PARTS = ("RELU", "NEG", "MUL")


def fuse_prelus(model: Model, fixed: Collection[str] = ()) -> Model:
    """The model with PRELUs; the given model where there are none to make.

    fixed: names of tensors.  Where a RELU, NEG or MUL reads or writes one of them, the given model is returned.
    """
    editor = Editor(model)
    try:
        graph = editor.main
        parts = [op for op in graph.operators if op.name in _PARTS]
        if any(t is not None and t.name in fixed for op in parts for t in (*op.inputs, *op.outputs)):
            return model
        if not [op for op in graph.operators if op.name == "ADD" and _fuse(op)]:
            return model
        for op in reversed(parts):
            if not any(t in graph.outputs or t.consumers for t in op.outputs if t is not None):
                graph.remove_operator(op)
        editor.prune()
        return Model(editor.to_bytes())
    finally:
        editor.close()


def _fuse(add: OperatorPart) -> bool:
    """Makes an ADD a PRELU where it adds max(x, 0) and -a max(-x, 0).  Returns whether it did."""
    if _fused(add) != "NONE" or len(add.inputs) != 2:
        return False
    for first, second in (add.inputs, add.inputs[::-1]):
        x, product = _read(first, "RELU"), _writer(second, "MUL")
        if x is None or product is None or _fused(product) != "NONE":
            continue
        for alpha, negative in (product.inputs, product.inputs[::-1]):
            if alpha is None or not is_constant_float(alpha) or not _is_of_channels(alpha, x):
                continue
            inner = _read(negative, "NEG")
            source = _read(_read(negative if inner is None else inner, "RELU"), "NEG")
            if source == x:
                data = np.asarray(alpha.data, np.float32).reshape([1] * max(len(x.shape) - 2, 0) + [-1])
                slope = add.subgraph.constant(f"{alpha.name}_slope", -data if inner is None else data)
                add.become("PRELU", [x, slope], {})
                return True
    return False


def _fused(op: OperatorPart) -> str:
    return str(getattr(op.options.get("fused_activation_function"), "name", "NONE"))


def _writer(tensor: TensorPart | None, name: str) -> OperatorPart | None:
    producer = None if tensor is None else tensor.producer
    return producer if producer is not None and producer.name == name else None


def _read(tensor: TensorPart | None, name: str) -> TensorPart | None:
    """The first input of the operator of this name that writes the tensor; None: another operator does, or none."""
    producer = _writer(tensor, name)
    return None if producer is None else producer.inputs[0]


def _is_of_channels(alpha: TensorPart, x: TensorPart) -> bool:
    return bool(x.shape) and alpha.shape[-1:] == x.shape[-1:] and int(np.prod(alpha.shape)) == x.shape[-1]
