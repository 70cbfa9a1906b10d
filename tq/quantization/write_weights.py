# SPDX-License-Identifier: Apache-2.0
"""Writes constants as tq/quantization/weights.py chose them: each once, and operators read it themselves or through a
DEQUANTIZE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq.editing import versions
from tq.editing.constants import encode, type_number
from tq.editing.editor import Editor
from tq.editing.graph import SubgraphPart
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.quantization.grids import WEIGHT_LIMITS, Grid, Grids
from tq.quantization.recipes import DEQUANTIZED, GATHERED, WEIGHTS
from tq.quantization.weights import Target, Use

INTEGERS = ("INT8", "UINT8", "INT16", "INT4", "UINT4", "INT2")


def write(editor: Editor, uses: Sequence[Sequence[Use]], grids: Grids) -> None:
    """Gives the operators of each subgraph the constants that were chosen for them."""
    constants = _Constants(editor, grids)
    for graph, chosen in zip(editor.subgraphs, uses, strict=True):
        _write_graph(graph, chosen, constants)
    constants.release()


class _Quantized(NamedTuple):
    buffer: int
    parameters: dict[str, Any] | None  # of the tensor's quantization; None: the scales of the buffer
    block_scales: NDArray[Any] | None
    scales_buffer: int
    has_own_scales: bool = True


class _Constants:
    """Quantizes each constant once, however many tensors and operators share it."""

    def __init__(self, editor: Editor, grids: Grids) -> None:
        self._editor, self._grids = editor, grids
        self._made: dict[tuple[Any, ...], _Quantized] = {}  # by buffer, shape, target without its form, grid
        self._old: set[int] = set()

    def of(self, tensor: TensorPart, target: Target) -> _Quantized:
        old = tensor.buffer
        grid = self._grids.get(tensor)
        key = (old, tensor.shape, target[1:], grid)
        made = self._made.get(key)
        if made is None:
            on_grid = None if grid is None else self._on_grid(tensor, target, grid)
            made = self._made[key] = on_grid or self._quantize(tensor, target)
            self._old.add(old)
        return made

    def _on_grid(self, tensor: TensorPart, target: Target, grid: Grid) -> _Quantized | None:
        """On the grid that training, the caller or the file chose; None: the target has no such."""
        data = tensor.data
        if target.type not in WEIGHT_LIMITS or target.block_size or data is None or not np.isfinite(data).all():
            return None
        axis = target.channel_axis if target.channels else target.axis
        made = grid.weights(data, target.axis, (target.type,))
        if made is None or made.type != target.type:
            return None
        scales = np.atleast_1d(made.scale)
        if axis is not None and len(scales) == 1:
            scales = np.repeat(scales, tensor.shape[axis])
        content, _ = encode(made.values, type_number(made.type), tensor.shape, repr(tensor))
        self._grids.note(tensor)
        parameters = {"scale": scales, "zero_point": np.zeros(len(scales), np.int64), "quantized_dimension": axis or 0}
        return _Quantized(self._editor.add_buffer(content), parameters, None, 0)

    def _quantize(self, tensor: TensorPart, target: Target) -> _Quantized:
        editor = self._editor
        if target.type == "float16":
            return _Quantized(editor.add_float16_buffer(tensor), None, None, 0, False)
        block = target.block_size or None
        axis = len(tensor.shape) - 1 if block else target.axis
        buffer, shape = editor.add_quantized_buffer(tensor, axis, target.type, block)
        if block:
            scales = editor.scales_of_buffer(buffer).reshape(shape).astype(np.float16)
            return _Quantized(buffer, None, scales, editor.add_buffer(scales.tobytes()), False)
        if target.channels:
            scale = np.repeat(editor.scales_of_buffer(buffer), target.channels)
            parameters = {"scale": scale, "zero_point": np.zeros(len(scale), np.int64)}
            return _Quantized(buffer, parameters | {"quantized_dimension": target.channel_axis}, None, 0)
        return _Quantized(buffer, None, None, 0)

    def release(self) -> None:
        """Empties the buffers of float constants that nothing reads any more."""
        self._editor.forget_users()
        for buffer in self._old:
            self._editor.release_buffer(buffer)


def _write_graph(graph: SubgraphPart, uses: Sequence[Use], constants: _Constants) -> None:
    groups: dict[tuple[TensorPart, Target], list[Use]] = {}
    for use in uses:
        groups.setdefault((use.tensor, use.target), []).append(use)
    readers = _readers(graph)
    made = {key: constants.of(*key) for key in groups}
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
        if operator.name in WEIGHTS and any(t is not None and t.type_name in INTEGERS for t in operator.inputs):
            options = operator.options
            if "asymmetric_quantize_inputs" in options:
                options["asymmetric_quantize_inputs"] = True
            operator.share_version(versions.needed(operator))


def _insert(graph: SubgraphPart, dequantized: Sequence[tuple[OperatorPart, TensorPart, TensorPart]]) -> None:
    """Puts each DEQUANTIZE right before the first operator that reads its result."""
    places = {operator: place for place, operator in enumerate(graph.operators)}
    for before, source, real in sorted(dequantized, key=lambda row: places[row[0]], reverse=True):
        operator = graph.add_operator("DEQUANTIZE", [source], [real], at=places[before])
        operator.share_version(versions.needed(operator))
