# SPDX-License-Identifier: Apache-2.0
"""The part of rewrite.py that writes constants beside float activations: each once, and operators read it themselves
or through a DEQUANTIZE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.editing import versions
from tq.editing.constants import encode, type_number
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.grids import Weights
from tq.quantization.recipes import DEQUANTIZED, GATHERED, WEIGHTS
from tq.quantization.weights import Target, Use

_INTEGERS = ("INT8", "UINT8", "INT16", "INT4", "UINT4", "INT2")


def rewrite_weights(editor: Editor, uses: Sequence[Sequence[Use]]) -> None:
    """Gives the operators of each subgraph their quantized constants."""
    constants = _Constants(editor)
    for graph, chosen in zip(editor.subgraphs, uses, strict=True):
        _rewrite_graph(graph, chosen, constants)
    constants.release()


class _Quantized(NamedTuple):
    buffer: int
    parameters: dict[str, Any] | None  # of the tensor's quantization; None: the scales of the buffer
    block_scales: NDArray[Any] | None = None
    scales_buffer: int = 0
    has_own_scales: bool = True


class _Constants:
    """Quantizes each constant once, however many tensors and operators share it."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._made: dict[tuple[Any, ...], _Quantized] = {}  # by buffer, shape, target without its form, values
        self._old: set[int] = set()

    def of(self, use: Use) -> _Quantized:
        tensor, target = use.tensor, use.target
        on_grid = None if use.on_grid is None else id(use.on_grid)
        key = (tensor.buffer, tensor.shape, target[1:], on_grid)
        made = self._made.get(key)
        if made is None:
            self._old.add(tensor.buffer)
            made = self._made[key] = self._quantize(tensor, target, use.on_grid)
        return made

    def _quantize(self, tensor: TensorPart, target: Target, on_grid: Weights | None) -> _Quantized:
        editor = self._editor
        if on_grid is not None:
            content, _ = encode(on_grid.values, type_number(on_grid.type), tensor.shape, repr(tensor))
            axis = target.channel_axis if target.channels else target.axis
            return _Quantized(editor.add_buffer(content), _parameters(on_grid.scale, axis or 0))
        if target.type == "float16":
            return _Quantized(editor.add_float16_buffer(tensor), None, has_own_scales=False)
        block = target.block_size or None
        axis = len(tensor.shape) - 1 if block else target.axis
        buffer, shape = editor.add_quantized_buffer(tensor, axis, target.type, block)
        if block:
            scales = editor.scales_of_buffer(buffer).reshape(shape).astype(np.float16)
            return _Quantized(buffer, None, scales, editor.add_buffer(scales.tobytes()), False)
        if target.channels:
            scale = np.repeat(editor.scales_of_buffer(buffer), target.channels)
            return _Quantized(buffer, _parameters(scale, target.channel_axis))
        return _Quantized(buffer, None)

    def release(self) -> None:
        """Empties the buffers of float constants that nothing reads any more."""
        self._editor.forget_users()
        for buffer in self._old:
            self._editor.release_buffer(buffer)


def _parameters(scale: NDArray[Any], axis: int) -> dict[str, Any]:
    return {"scale": scale, "zero_point": np.zeros(len(scale), np.int64), "quantized_dimension": axis}


def _rewrite_graph(graph: SubgraphPart, uses: Sequence[Use], constants: _Constants) -> None:
    groups: dict[tuple[TensorPart, Target], list[Use]] = {}
    for use in uses:
        groups.setdefault((use.tensor, use.target), []).append(use)
    readers = _readers(graph)
    made = {key: constants.of(group[0]) for key, group in groups.items()}
    dequantized = []
    for (tensor, target), group in groups.items():
        read = quantized = tensor
        if readers[tensor.index] > len(group):  # others go on reading the float values
            read = quantized = graph.add_tensor(f"{tensor.name}_{target.type}", tensor.shape)
        _become(quantized, target, made[tensor, target])
        if target.form == DEQUANTIZED:
            read = graph.add_tensor(f"{tensor.name}_dequantized", tensor.shape)
            dequantized.append((group[0].operator, quantized, read))
        for use in group:
            use.operator.set_input(use.input, read)
    for use in uses:
        if use.target.form == GATHERED:
            _gather(graph, use)
    _finish(dict.fromkeys(use.operator for use in uses))
    _insert(graph, dequantized)


def _readers(graph: SubgraphPart) -> Counter[int]:
    """How often each tensor is read: by operators, and as an input or output of the subgraph."""
    found = Counter(index for operator in graph.operators for index in operator.input_indices)
    found.update(tensor.index for tensor in (*graph.inputs, *graph.outputs) if tensor is not None)
    return found


def _become(tensor: TensorPart, target: Target, made: _Quantized) -> None:
    """Makes a float constant the quantized one."""
    if made.has_own_scales and made.parameters is None:
        tensor.become_quantized(made.buffer, target.type, target.axis or 0)
        return
    tensor.buffer = made.buffer
    tensor.type = target.type
    tensor.quantization = made.parameters
    if made.block_scales is None:
        return
    scales = tensor.subgraph.add_tensor(
        f"{tensor.name}_scales", made.block_scales.shape, "float16", buffer=made.scales_buffer
    )
    tensor.quantization.details = {
        "type": "BlockwiseQuantization",
        "scales": scales.index,
        "zero_points": -1,
        "block_size": target.block_size,
    }


def _gather(graph: SubgraphPart, use: Use) -> None:
    """Lets the operator take rows of quantized values, and dequantizes these."""
    operator, table = use.operator, use.operator.inputs[use.input]
    real = operator.outputs[0]
    assert table is not None and real is not None
    rows = graph.add_tensor(
        f"{real.name}_{use.target.type}", real.shape, use.target.type, shape_signature=real.shape_signature
    )
    rows.quantization = table.quantization
    operator.outputs = [rows]
    made = graph.insert_after(operator, "DEQUANTIZE", [rows], [real])
    made.share_version(versions.needed(made))


def _finish(operators: Iterable[OperatorPart]) -> None:
    """Options and versions of operators that read integers."""
    for operator in operators:
        if operator.name in WEIGHTS and any(t is not None and t.type_name in _INTEGERS for t in operator.inputs):
            options = operator.options
            if "asymmetric_quantize_inputs" in options:
                options["asymmetric_quantize_inputs"] = True
            operator.share_version(versions.needed(operator))


def _insert(graph: SubgraphPart, dequantized: Sequence[tuple[OperatorPart, TensorPart, TensorPart]]) -> None:
    """Puts each DEQUANTIZE right before the first operator that reads its result."""
    indices = {operator: index for index, operator in enumerate(graph.operators)}
    for before, source, real in sorted(dequantized, key=lambda row: indices[row[0]], reverse=True):
        operator = graph.add_operator("DEQUANTIZE", [source], [real], at=indices[before])
        operator.share_version(versions.needed(operator))
