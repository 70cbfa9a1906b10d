# SPDX-License-Identifier: Apache-2.0
"""The listing of a model: `print(model)`.

Subgraph, operator, tensor, signature and size lines are those of TFLite's Model Analyzer
(tflite/python/analyzer_wrapper/model_analyzer.cc in LiteRT, revision f6745779), so that
knowledge of its output applies here:

    Subgraph#0 main(T#0) -> [T#2]
      Op#0 RESHAPE(T#0, T#1[512, 512]) -> [T#2]

    Tensors of Subgraph#0
      T#1(shape) shape:[2], type:INT32 RO 8 bytes, buffer: 1, data:[512, 512]

tq adds numeric data of every type (the analyzer prints characters, or "??"), constants that lie behind the model or in
other files, and, below a tensor, its quantization line.  As in the analyzer, a byte that is not
printable ASCII shows as "."; only the quantization lines hold other characters.  Models that the analyzer refuses,
or dies of, are listed all the same.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tq._core import ModelError
from tq.enums import name_of

if TYPE_CHECKING:
    from tq._core import Buffer, Model, Operator, Subgraph, Tensor

RULE = "-" * 63
PREVIEW = 5  # elements shown of a constant, as in the analyzer
CHANNELS = 8  # lines shown of a per-axis quantization
ITEM_BYTES = 32  # bytes shown of a string tensor's element
LIMIT_SLACK, LIMIT_GROWTH = 16 << 20, 16  # a real model's listing has at most some 5 characters a byte of the file

# ---- text ----

_AS_ANALYZED = bytes(b if b == 10 or 32 <= b < 127 else ord(".") for b in range(256))
_UNDECODED = re.compile(r"\\x[89a-f][0-9a-f]")


def printable(text: str) -> str:
    """`text` as the analyzer prints it: "." for each byte of its UTF-8 that is neither printable ASCII nor a newline.

    The core writes a byte that is not UTF-8 as "\\xNN"; it counts as one byte.
    """
    if text.isascii() and text.isprintable() and "\\x" not in text:
        return text
    return _UNDECODED.sub(".", text).encode("utf-8", "replace").translate(_AS_ANALYZED).decode("ascii")


def integers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


# ---- constants ----


def _float_text(value: float) -> str:
    """A float as a C++ stream writes it: 6 significant digits; the sign of a NaN is shown."""
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return f"{value:g}"


def _fixed(code: str, text: Callable[[Any], str] = str) -> Callable[[bytes], list[str]]:
    """The function from bytes to the texts of elements of a little-endian NumPy type."""

    def show(raw: bytes) -> list[str]:
        return [text(value) for value in np.frombuffer(raw, np.dtype(code)).tolist()]

    return show


def _complex_text(value: complex) -> str:
    return f"({_float_text(value.real)},{_float_text(value.imag)})"  # as a C++ stream writes std::complex


def _bfloat16(raw: bytes) -> list[str]:
    return [_float_text(v) for v in (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").tolist()]


def _float8(name: str) -> Callable[[bytes], list[str]]:
    def show(raw: bytes) -> list[str]:
        import ml_dtypes

        return [_float_text(float(value)) for value in np.frombuffer(raw, getattr(ml_dtypes, name))]

    return show


def _packed(bits: int, signed: bool) -> Callable[[bytes], list[str]]:
    """The same for elements of less than a byte, low bits first."""

    def show(raw: bytes) -> list[str]:
        values = [byte >> shift & (1 << bits) - 1 for byte in raw for shift in range(0, 8, bits)]
        return [str(value - (1 << bits) if signed and value >> (bits - 1) else value) for value in values]

    return show


# TensorType: bits of an element, and the function from bytes to texts.
_TYPES: dict[str, tuple[int, Callable[[bytes], list[str]]]] = {
    "FLOAT32": (32, _fixed("<f4", _float_text)),
    "FLOAT16": (16, _fixed("<f2", _float_text)),
    "INT32": (32, _fixed("<i4")),
    "UINT8": (8, _fixed("u1")),
    "INT64": (64, _fixed("<i8")),
    "BOOL": (8, _fixed("u1")),
    "INT16": (16, _fixed("<i2")),
    "COMPLEX64": (64, _fixed("<c8", _complex_text)),
    "INT8": (8, _fixed("i1")),
    "FLOAT64": (64, _fixed("<f8", _float_text)),
    "COMPLEX128": (128, _fixed("<c16", _complex_text)),
    "UINT64": (64, _fixed("<u8")),
    "UINT32": (32, _fixed("<u4")),
    "UINT16": (16, _fixed("<u2")),
    "INT4": (4, _packed(4, True)),
    "BFLOAT16": (16, _bfloat16),
    "INT2": (2, _packed(2, True)),
    "UINT4": (4, _packed(4, False)),
    "FLOAT8_E4M3FN": (8, _float8("float8_e4m3fn")),
    "FLOAT8_E5M2": (8, _float8("float8_e5m2")),
}
_BYTES = (8, _fixed("u1"))  # RESOURCE, VARIANT and unknown types: bytes


def _strings(data: np.ndarray) -> tuple[list[str], int]:
    """The first elements of a string tensor's buffer as Python writes bytes (without the b), and the number of
    elements."""
    count = struct.unpack_from("<i", data[:4].tobytes())[0] if data.size >= 4 else -1
    if not 0 <= count <= data.size // 4 - 2:
        return ["??"], 1
    shown = min(count, PREVIEW)
    offsets = np.frombuffer(data[4 : 4 * (shown + 2)].tobytes(), "<i4").tolist()
    items = []
    for start, end in pairwise(offsets):
        if not 0 <= start <= end <= data.size:
            return ["??"], 1
        more = "..." if end - start > ITEM_BYTES else ""
        items.append(repr(data[start : min(end, start + ITEM_BYTES)].tobytes())[1:] + more)
    return items, count


def preview(type_name: str, data: np.ndarray) -> str:
    """`[1, 100, 8, 64]`: the first elements of a constant.  `data` is its buffer, of bytes, and is not copied."""
    if type_name == "STRING":
        items, count = _strings(data)
    else:
        bits, show = _TYPES.get(type_name, _BYTES)
        count = data.size * 8 // bits
        whole = min(count, PREVIEW) * bits // 8 if bits >= 8 else min(data.size, -(-PREVIEW * bits // 8))
        items = show(data[:whole].tobytes())[:PREVIEW]
    return f"[{', '.join(items)}{', ...' if count > len(items) else ''}]"


# ---- lines ----


def tensor_name(index: int, subgraph_index: int) -> str:
    """`T#5`, in a further subgraph `T#1_5`; a tensor that is left out is `T#-1`."""
    return f"T#{subgraph_index}_{index}" if subgraph_index and index != -1 else f"T#{index}"


def _tensor_names(indices: Iterable[int], subgraph_index: int) -> str:
    return ", ".join(tensor_name(index, subgraph_index) for index in indices)


def quantization_lines(tensor: Tensor) -> list[str]:
    """The lines about a tensor's quantization, of at most CHANNELS channels; none where the file stores none."""
    quantization = tensor.quantization
    if not quantization:
        return []
    lines = str(quantization).split("\n")
    if lines in ([""], ["q"]):
        return []
    left_out = len(lines) - CHANNELS
    return lines if left_out <= 0 else [*lines[:CHANNELS], f"... {left_out} more channel{'s' if left_out > 1 else ''}"]


class _Constant(NamedTuple):
    """A buffer's bytes; none of a buffer outside the file."""

    nbytes: int
    data: np.ndarray | None
    in_flatbuffer: bool  # False: behind the flatbuffer, at an offset; the analyzer does not count those


def _constant(buffer: Buffer) -> _Constant:
    try:
        return _Constant(buffer.nbytes, buffer.data, buffer.is_inline)
    except ModelError:
        return _Constant(0, None, False)


class _Constants:
    """The model's buffers, each looked up once; tensors may share them."""

    def __init__(self, model: Model) -> None:
        self._buffers = model.buffers
        self._count = len(model.buffers)
        self._known: dict[int, _Constant] = {}

    def buffer(self, index: int) -> _Constant | None:
        """The buffer of a constant tensor; None for buffer 0 (no data) and for an index out of range."""
        if not 0 < index < self._count:
            return None
        if index not in self._known:
            self._known[index] = _constant(self._buffers[index])
        return self._known[index]

    def inlined(self, tensor: Tensor, kind: str) -> str:
        """The values after a tensor's name among an operator's inputs: `[512, 512]` for a constant of INT32, else
        ""."""
        buffer = self.buffer(tensor.buffer) if kind == "INT32" else None
        if buffer is None or not buffer.in_flatbuffer:
            return ""
        return preview(kind, buffer.data) if buffer.data is not None else "[]"

    def ending(self, tensor: Tensor, kind: str) -> str:
        """The text after a tensor's type: ` RO 8 bytes, buffer: 1, data:[512, 512]` for a constant, else ""."""
        buffer = self.buffer(tensor.buffer)
        if buffer is not None and buffer.data is not None and buffer.nbytes:
            return f" RO {buffer.nbytes} bytes, buffer: {tensor.buffer}, data:{preview(kind, buffer.data)}"
        external = tensor.external_buffer
        if external is not None:
            where = f"'{printable(external.group)}'" if external.group is not None else "an unnamed file"
            return f" RO {external.length} bytes, external buffer: {external.id} in {where} at {external.offset}"
        return ""


def _tensor_line(tensor: Tensor, kind: str, subgraph_index: int, ending: str) -> str:
    name = f"({printable(tensor.name)}) " if tensor.stored("name") is not None else ""
    signature = tensor.stored("shape_signature")
    if signature is not None:
        shape = f"shape_signature:[{integers(signature)}]"
    elif tensor.shape or tensor.stored("shape") is not None:
        shape = f"shape:[{integers(tensor.shape)}]"
    else:
        shape = "shape:n/a"
    return f"{tensor_name(tensor.index, subgraph_index)}{name}{shape}, type:{kind}{ending}"


# Subgraphs that an operator names in its options: the text before each, and the option's name.
_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "CALL_ONCE": (("", "init_subgraph_index"),),
    "IF": ((", Then: ", "then_subgraph_index"), (", Else: ", "else_subgraph_index")),
    "WHILE": ((", Cond: ", "cond_subgraph_index"), (", Body: ", "body_subgraph_index")),
}


def _is_builtin(operator: Operator) -> bool:
    return getattr(operator.code, "name", "CUSTOM") != "CUSTOM"


def _called(operator: Operator) -> str:
    calls = _CALLS.get(operator.name)
    if calls is None or not _is_builtin(operator):
        return ""
    options = operator.options
    return "".join(f"{text}Subgraph#{options.get(option, '?')}" for text, option in calls)


def _operator_line(operator: Operator, subgraph_index: int, inlined: dict[int, str]) -> str:
    inputs = ", ".join(tensor_name(i, subgraph_index) + inlined.get(i, "") for i in operator.input_indices)
    outputs = _tensor_names(operator.output_indices, subgraph_index)
    return f"Op#{operator.index} {printable(operator.name)}({inputs}{_called(operator)}) -> [{outputs}]"


class _SubgraphLines:
    """A subgraph's lines, and the bytes of the flatbuffer's buffers that its tensors refer to."""

    def __init__(self, subgraph: Subgraph, constants: _Constants) -> None:
        self.buffer_bytes = 0
        self.tensors: list[str] = []
        self._subgraph = subgraph
        self._inlined: dict[int, str] = {}
        index = subgraph.index
        for tensor in subgraph.tensors:
            kind = name_of(tensor.type)
            inlined = constants.inlined(tensor, kind)
            if inlined:
                self._inlined[tensor.index] = inlined
            buffer = constants.buffer(tensor.buffer)
            if buffer is not None and buffer.in_flatbuffer:
                self.buffer_bytes += buffer.nbytes
            self.tensors.append("  " + _tensor_line(tensor, kind, index, constants.ending(tensor, kind)))
            self.tensors.extend("      " + line for line in quantization_lines(tensor))

    def head(self) -> str:
        graph = self._subgraph
        name = "" if graph.name is None else " " + printable(graph.name)
        inputs = _tensor_names(graph.input_indices, graph.index)
        return f"Subgraph#{graph.index}{name}({inputs}) -> [{_tensor_names(graph.output_indices, graph.index)}]"

    def operators(self) -> Iterator[str]:
        for operator in self._subgraph.operators:
            yield "  " + _operator_line(operator, self._subgraph.index, self._inlined)


# ---- sizes ----


def _all_zero(data: np.ndarray) -> bool:
    """Whether all bytes are 0.  Time: the verifier bounds the bytes of all buffers, shared ones counted each time, by a
    multiple of the file's size; the search ends soon after the first other byte."""
    step = 1 << 16
    return not any(data[start : start + step].any() for start in range(0, data.size, step))


def _size_line(label: str, count: int, total: int) -> str:
    """`Label:  123 bytes (01.23 %)`, divided in float32 as in the analyzer."""
    share = float(np.float32(count) / np.float32(total) * np.float32(100)) if total else 0.0
    return f"{label}: {count:>10} bytes ({share:05.2f} %)"


def _size_lines(model: Model, usage: list[int]) -> Iterator[str]:
    constants = [_constant(buffer) for buffer in model.buffers]
    own = [c.data for c in constants if c.in_flatbuffer and c.data is not None]
    zero_bytes = sum(data.size for data in own if _all_zero(data))
    data_bytes = sum(data.size for data in own)
    by_offset = sum(c.nbytes for c in constants if not c.in_flatbuffer)

    yield f"{'Model size':>24}: {model.nbytes:>10} bytes"
    yield _size_line(f"{'Non-data buffer size':>24}", max(model.nbytes - data_bytes, 0), model.nbytes)
    yield _size_line(f"{'Total data buffer size':>24}", data_bytes, model.nbytes)
    if len(usage) > 1:
        for index, count in enumerate(usage):
            yield _size_line(f"          - {f'Subgraph#{index}':<12}", count, model.nbytes)
    yield _size_line(f"{'(Zero value buffers)':>24}", zero_bytes, model.nbytes)
    if by_offset:
        yield _size_line(f"{'(Data by offset)':>24}", by_offset, model.nbytes)
    external = sum(buffer.length for buffer in model.external_buffers)
    if external:
        yield f"{'(In external buffers)':>24}: {external:>10} bytes"


# ---- the whole ----


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _header(model: Model) -> str:
    facts = [f"schema version {model.version}"]
    if model.description:
        facts.append(f"description '{model.description}'")
    if model.min_runtime_version:
        facts.append(f"needs runtime {model.min_runtime_version}")
    tensors = sum(len(graph.tensors) for graph in model.subgraphs)
    operators = sum(len(graph.operators) for graph in model.subgraphs)
    counts = [_plural(len(model.subgraphs), "subgraph"), _plural(operators, "operator"), _plural(tensors, "tensor")]
    return printable(f"TensorFlow Lite model: {', '.join(facts)}.\n{', '.join(counts)}; T#n is tensor n.")


def _signature_lines(model: Model) -> Iterator[str]:
    signatures = model.signatures
    if not len(signatures):
        return
    yield RULE
    yield f"Your TFLite model has '{len(signatures)}' signature_def(s).\n"
    for index, signature in enumerate(signatures):
        yield printable(f"Signature#{index} key: '{signature.key}'")
        yield f"- Subgraph: Subgraph#{signature.subgraph_index}"
        for title, tensors in (("Inputs", signature.inputs), ("Outputs", signature.outputs)):
            yield f"- {title}: "
            for name, tensor in tensors.items():
                yield printable(f"    '{name}' : {tensor_name(tensor, signature.subgraph_index)}")
        yield ""


def _lines(model: Model, operators: bool, tensors: bool) -> Iterator[str]:
    constants = _Constants(model)
    yield _header(model)
    usage = []
    for subgraph in model.subgraphs:
        part = _SubgraphLines(subgraph, constants)
        usage.append(part.buffer_bytes)
        yield ""
        yield part.head()
        if operators:
            yield from part.operators()
        if tensors:
            yield f"\nTensors of Subgraph#{subgraph.index}"
            yield from part.tensors
    if not (operators and tensors):
        return
    yield ""
    yield from _signature_lines(model)
    yield RULE
    yield from _size_lines(model, usage)
    yield "\nRO: constants, which only reading touches.  Sizes count the flatbuffer's own buffers."


def listing(model: Model, *, operators: bool = True, tensors: bool = True) -> str:
    """The text of `print(model)`; the module's docstring shows its form.

    operators, tensors: whether to list them; if one is False, signatures and sizes are left out too.

    Operators of a hostile file may share long lists of inputs.  A listing longer than LIMIT_SLACK + LIMIT_GROWTH times
    the file is cut, with a note at its end.
    """
    left = LIMIT_SLACK + LIMIT_GROWTH * model.nbytes
    lines = []
    for line in _lines(model, operators, tensors):
        left -= len(line) + 1
        if left < 0:
            lines.append("\nThe rest is left out: parts that many others share would make it too long.")
            break
        lines.append(line)
    return "\n".join(lines)
