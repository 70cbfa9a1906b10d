# SPDX-License-Identifier: Apache-2.0
"""The differences between two models: structure, quantization and weights."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tq._core import Error
from tq.inspection.export import constant_array
from tq.pages.tables import Result, Table
from tq.sources import Source, opened

if TYPE_CHECKING:
    from tq._core import Model, Operator, Quantization, Subgraph, Tensor


class Difference(NamedTuple):
    """One difference.  `str()` is a line of text."""

    kind: str  # "structure", "quantization" or "weights"
    place: str  # "subgraph 0, tensor 4 'conv/weights'"; "model"
    what: str  # the field: "shape", "scale", "data", ...
    a: Any  # its value in the first model; None: the first model does not have it
    b: Any
    text: str  # the difference as text

    def __str__(self) -> str:
        return f"{self.place}: {self.what}: {self.text}"


class Differences(Result, list[Difference]):
    """The differences between two models, in the order of the file.  `str()` has a line for each."""

    def table(self) -> Table:
        """A row for each difference."""
        return Table(("kind", "place", "what", "text"), [(d.kind, d.place, d.what, d.text) for d in self])

    def summary(self) -> list[str]:
        """How many differences there are of each kind."""
        counts = Counter(item.kind for item in self)
        return [", ".join(f"{count} of {kind}" for kind, count in counts.items()) or "no differences"]

    def text(self, width: int | None = None) -> str:
        return "\n".join(map(str, self)) or self.summary()[0]


def _short(value: Any) -> str:
    """A value as text of about 100 characters at most."""
    if isinstance(value, np.ndarray):
        head = ", ".join(repr(v) if isinstance(v, int) else f"{v:.9g}" for v in value.ravel()[:4].tolist())
        return f"[{head}{f', ... {value.size} in all' if value.size > 4 else ''}]"
    if isinstance(value, bytes):
        return f"{value[:16]!r}{f'... {len(value)} bytes' if len(value) > 16 else ''}"
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        more = f", ... {len(value)} in all" if len(value) > 6 else ""
        return f"[{', '.join(map(_short, value[:6]))}{more}]"
    if isinstance(value, dict):
        more = f", ... {len(value)} in all" if len(value) > 6 else ""
        return f"{{{', '.join(f'{_short(k)}: {_short(v)}' for k, v in list(value.items())[:6])}{more}}}"
    if isinstance(value, str):
        return repr(value if len(value) <= 100 else value[:97] + "...")
    text = getattr(value, "name", None) or str(value)
    return text if len(text) <= 100 else text[:97] + "..."


_PLAIN = (str, int, bool, bytes, type(None))  # types of which == compares every bit


def _same(a: Any, b: Any) -> bool:
    """Equality of bits: NaN equals itself, 0.0 differs from -0.0."""
    if a is b or (type(a) is type(b) and type(a) in _PLAIN and a == b):
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _alike(a, b) and a.tobytes() == b.tobytes()
    if isinstance(a, float) and isinstance(b, float):
        return repr(a) == repr(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def _field(kind: str, place: str, what: str, a: Any, b: Any) -> Iterator[Difference]:
    if not _same(a, b):
        yield Difference(kind, place, what, a, b, f"{_short(a)} -> {_short(b)}")


def _only(place: str, what: str, a: Any, b: Any) -> Difference:
    where = "first" if b is None else "second"
    return Difference("structure", place, what, a, b, f"only in the {where} model")


# ---- tensors ----


def _match(keys_a: list[Any], keys_b: list[Any]) -> list[tuple[int | None, int | None]]:
    """Pairs of indices with equal keys: the k-th of a key with the k-th of the same key; None: no partner."""
    by_key: dict[Any, list[int]] = {}
    for index in reversed(range(len(keys_b))):
        by_key.setdefault(keys_b[index], []).append(index)
    pairs: list[tuple[int | None, int | None]] = []
    for index, key in enumerate(keys_a):
        rest = by_key.get(key)
        pairs.append((index, rest.pop() if rest else None))
    return pairs + [(None, index) for index in sorted(index for rest in by_key.values() for index in rest)]


def matched_tensors(a: Subgraph, b: Subgraph) -> list[tuple[int | None, int | None]]:
    """Pairs of indices of the tensors that diff() compares; None: no partner."""
    return _match(_tensor_names(a), _tensor_names(b))


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _channels(a: np.ndarray, b: np.ndarray) -> str | None:
    """The difference of two arrays of one dtype and shape, one element a channel, as text; None: equal bits."""
    bytes_a, bytes_b = (np.ascontiguousarray(x).view(np.uint8).reshape(x.size, -1) for x in (a, b))
    channels = np.flatnonzero((bytes_a != bytes_b).any(axis=1))
    if not channels.size:
        return None
    first = slice(int(channels[0]), int(channels[0]) + 1)
    values = f"{_short(a.ravel()[first])} -> {_short(b.ravel()[first])}"
    return f"{channels.size} of {a.size} differ, first at {first.start}: {values}"


def _quantization(place: str, a: Quantization, b: Quantization) -> Iterator[Difference]:
    for what in ("kind", "scale", "zero_point", "min", "max", "quantized_dimension", "block_size", "details"):
        value_a, value_b = getattr(a, what), getattr(b, what)
        if not (isinstance(value_a, np.ndarray) and value_a.size > 1 and _alike(value_a, value_b)):
            yield from _field("quantization", place, what, value_a, value_b)
            continue
        text = _channels(value_a, value_b)
        if text is not None:
            yield Difference("quantization", place, what, value_a, value_b, text)


def _real(tensor: Tensor) -> np.ndarray | None:
    """A constant's real values as float64; None: its type is not numeric."""
    values = constant_array(tensor, dequantized=True)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64) if values.dtype.kind in "biuf" else None


def _error(a: np.ndarray, b: np.ndarray) -> str:
    """The largest absolute difference and the ratio of signal to error in dB, as text."""
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        largest = float(error.max())
        signal, noise = float(np.sum(a * a)), float(np.sum(error * error))
    text = f"largest difference {largest:.6g}"
    if noise > 0 and signal > 0 and math.isfinite(signal) and math.isfinite(noise):
        text += f", SQNR {10 * math.log10(signal / noise):.1f} dB"
    return text


def _weights_text(a: Tensor, b: Tensor) -> str | None:
    """The difference of two constants as text; None: equal values."""
    if a.type == b.type and a.shape == b.shape:
        stored_a, stored_b = constant_array(a), constant_array(b)
        unlike = stored_a != stored_b
        if stored_a.dtype.kind == "f":  # NaN equals NaN; -0.0 differs from 0.0
            unlike &= ~(np.isnan(stored_a) & np.isnan(stored_b))
            unlike |= np.signbit(stored_a) != np.signbit(stored_b)
        count = int(np.count_nonzero(unlike))
        if not count:
            return None
        text = f"{count} of {stored_a.size} elements differ"
        if stored_a.dtype.kind in "iu":
            wide = np.abs(stored_a.astype(np.float64) - stored_b.astype(np.float64))
            text += f", by up to {wide.max():.0f}"
    elif a.shape == b.shape:
        text = "types differ"
    else:
        return None  # another line tells the shapes
    real_a, real_b = _real(a), _real(b)
    if real_a is None or real_b is None or real_a.size == 0:
        return text if a.type == b.type else None
    if a.type != b.type and np.array_equal(real_a, real_b, equal_nan=True):
        return None
    return f"{text}; {_error(real_a, real_b)}"


def _bytes_of(tensor: Tensor) -> Any:
    """The bytes of a tensor's buffer in the file, as a memoryview (which compares fast); None: it has none."""
    buffers = tensor.model.buffers
    try:
        data = buffers[tensor.buffer].data if 0 < tensor.buffer < len(buffers) else None
    except Error:  # it lies outside the file
        return None
    return None if data is None else data.data


def _weights(place: str, a: Tensor, b: Tensor) -> Iterator[Difference]:
    if a.is_constant != b.is_constant:
        kinds = ("constant", "computed")
        yield Difference(
            "structure", place, "is_constant", a.is_constant, b.is_constant,
            f"{kinds[not a.is_constant]} -> {kinds[not b.is_constant]}",
        )  # fmt: skip
        return
    if not a.is_constant:
        return
    bytes_a, bytes_b = _bytes_of(a), _bytes_of(b)
    if bytes_a is not None and bytes_b is not None and a.type == b.type and bytes_a == bytes_b:
        return
    try:
        text = _weights_text(a, b)
    except (Error, ValueError, TypeError, OSError) as error:  # the constant cannot be read
        same = bytes_a == bytes_b and _same(a.external_buffer, b.external_buffer)
        text = None if same else f"the bytes differ ({error})"
    if text is not None:
        yield Difference("weights", place, "data", None, None, text)


def _tensor(place: str, a: Tensor, b: Tensor) -> Iterator[Difference]:
    for what in ("name", "type", "shape", "shape_signature", "is_variable"):
        value_a, value_b = getattr(a, what), getattr(b, what)
        if value_a != value_b or type(value_a) is not type(value_b):
            yield from _field("structure", place, what, value_a, value_b)
    for what in ("sparsity", "variant_tensors"):
        yield from _field("structure", place, what, getattr(a, what), getattr(b, what))
    yield from _quantization(place, a.quantization, b.quantization)
    yield from _weights(place, a, b)


# ---- operators ----


def _tensor_names(subgraph: Subgraph) -> list[str]:
    """Interned, so that comparing a long name many times stays cheap."""
    return [sys.intern(tensor.name) for tensor in subgraph.tensors]


def _names(indices: tuple[int, ...], tensor_names: list[str]) -> list[str]:
    """Tensors by name, for comparing models whose indices differ."""
    return [tensor_names[i] or f"#{i}" if 0 <= i < len(tensor_names) else f"#{i}" for i in indices]


def _names_in(subgraph: Subgraph, indices: tuple[int, ...]) -> list[str]:
    """The same of some tensors of a subgraph."""
    tensors = subgraph.tensors
    return [tensors[i].name or f"#{i}" if 0 <= i < len(tensors) else f"#{i}" for i in indices]


def _operator(place: str, a: Operator, b: Operator, tensors_a: list[str], tensors_b: list[str]) -> Iterator[Difference]:
    for what in ("name", "version", "custom_options", "mutating_variable_inputs"):
        value_a, value_b = getattr(a, what), getattr(b, what)
        if value_a != value_b:
            yield from _field("structure", place, what, value_a, value_b)
    for what in ("input_indices", "output_indices", "intermediate_indices"):
        indices_a, indices_b = getattr(a, what), getattr(b, what)
        if indices_a == indices_b and tensors_a is tensors_b:
            continue
        names_a, names_b = _names(indices_a, tensors_a), _names(indices_b, tensors_b)
        if names_a != names_b:
            yield from _field("structure", place, what.replace("_indices", "s"), names_a, names_b)
    if a.custom_options is not None and a.custom_options == b.custom_options:
        return
    options_a, options_b = a.options, b.options
    if not options_a and not options_b:
        return
    if not isinstance(options_a, dict) or not isinstance(options_b, dict):  # a flexbuffer may hold any value
        yield from _field("structure", place, "options", options_a, options_b)
        return
    for key in dict.fromkeys((*options_a, *options_b)):
        yield from _field("structure", place, f"options[{key!r}]", options_a.get(key), options_b.get(key))


def _match_operators(a: list[Any], b: list[Any]) -> list[tuple[int | None, int | None]]:
    """Pairs of indices; a and b hold (name, outputs); None: no partner.

    By index where both have the same names in the same order; else by name and outputs, and the rest by name.
    """
    names_a, names_b = [name for name, _ in a], [name for name, _ in b]
    if names_a == names_b:
        return [(i, i) for i in range(len(a))]
    first = _match(a, b)
    rest_a = [i for i, j in first if j is None and i is not None]
    rest_b = [j for i, j in first if i is None and j is not None]
    second = _match([names_a[i] for i in rest_a], [names_b[j] for j in rest_b])
    pairs = [pair for pair in first if None not in pair]
    pairs += [(None if i is None else rest_a[i], None if j is None else rest_b[j]) for i, j in second]
    return sorted(pairs, key=lambda pair: (pair[0] is None, pair[0], pair[1]))


def _operator_keys(operators: Iterable[Operator], tensor_names: list[str]) -> list[Any]:
    return [(op.name, tuple(_names(op.output_indices, tensor_names))) for op in operators]


def matched_operators(a: Subgraph, b: Subgraph) -> list[tuple[int | None, int | None]]:
    """Pairs of indices of the operators that diff() compares; None: no partner."""
    return _match_operators(
        _operator_keys(a.operators, _tensor_names(a)), _operator_keys(b.operators, _tensor_names(b))
    )


def _operators(
    prefix: str, a: Subgraph, b: Subgraph, tensors_a: list[str], tensors_b: list[str]
) -> Iterator[Difference]:
    list_a, list_b = list(a.operators), list(b.operators)
    for i, j in _match_operators(_operator_keys(list_a, tensors_a), _operator_keys(list_b, tensors_b)):
        if i is not None and j is not None:
            yield from _operator(f"{prefix}operator {i} {list_a[i].name}", list_a[i], list_b[j], tensors_a, tensors_b)
        elif i is not None:
            yield _only(f"{prefix}operator {i} {list_a[i].name}", "operator", list_a[i].name, None)
        elif j is not None:
            yield _only(f"{prefix}operator {j} {list_b[j].name}", "operator", None, list_b[j].name)


# ---- models ----


def _matched(prefix: str, a: Subgraph, b: Subgraph) -> Iterator[Difference]:
    """Operators and tensors of subgraphs whose names differ."""
    names_a, names_b = _tensor_names(a), _tensor_names(b)
    if names_a == names_b:
        names_b = names_a  # equal indices now mean equal names
    yield from _operators(prefix, a, b, names_a, names_b)
    for i, j in _match(names_a, names_b):
        if i is not None and j is not None:
            tensor_a, tensor_b = a.tensors[i], b.tensors[j]
            if not tensor_a._is_same(tensor_b):
                yield from _tensor(f"{prefix}tensor {i} {names_a[i]!r}", tensor_a, tensor_b)
        elif i is not None:
            yield _only(f"{prefix}tensor {i} {names_a[i]!r}", "tensor", names_a[i], None)
        elif j is not None:
            yield _only(f"{prefix}tensor {j} {names_b[j]!r}", "tensor", None, names_b[j])


def _subgraph(index: int, a: Subgraph, b: Subgraph) -> Iterator[Difference]:
    prefix = f"subgraph {index}, "
    yield from _field("structure", f"subgraph {index}", "name", a.name, b.name)
    for what in ("input_indices", "output_indices"):
        value_a, value_b = _names_in(a, getattr(a, what)), _names_in(b, getattr(b, what))
        yield from _field("structure", f"subgraph {index}", what.replace("_indices", "s"), value_a, value_b)
    unlike = a._unlike(b)
    if unlike is None:
        yield from _matched(prefix, a, b)
        return
    operators, tensors = unlike  # names are the same, in the same order
    names = _tensor_names(a) if operators else []
    for i in operators:
        op = a.operators[i]
        yield from _operator(f"{prefix}operator {i} {op.name}", op, b.operators[i], names, names)
    for i in tensors:
        tensor = a.tensors[i]
        yield from _tensor(f"{prefix}tensor {i} {tensor.name!r}", tensor, b.tensors[i])


def _signature_table(model: Model) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for signature in model.signatures:
        if not 0 <= signature.subgraph_index < len(model.subgraphs):
            table[signature.key] = (signature.subgraph_index, signature.inputs, signature.outputs)
            continue
        graph = model.subgraphs[signature.subgraph_index]

        def tensors(named: dict[str, int], graph: Subgraph = graph) -> dict[str, str]:
            return dict(zip(named, _names_in(graph, tuple(named.values())), strict=True))

        table[signature.key] = (signature.subgraph_index, tensors(signature.inputs), tensors(signature.outputs))
    return table


def _model(a: Model, b: Model) -> Iterator[Difference]:
    for what in ("version", "description", "min_runtime_version"):
        yield from _field("structure", "model", what, getattr(a, what), getattr(b, what))
    metadata_a, metadata_b = dict(a.metadata), dict(b.metadata)
    for key in dict.fromkeys((*metadata_a, *metadata_b)):
        if key != "min_runtime_version":
            yield from _field("structure", "model", f"metadata[{key!r}]", metadata_a.get(key), metadata_b.get(key))
    signatures_a, signatures_b = _signature_table(a), _signature_table(b)
    for key in dict.fromkeys((*signatures_a, *signatures_b)):
        yield from _field("structure", "model", f"signature {key!r}", signatures_a.get(key), signatures_b.get(key))
    yield from _field("structure", "model", "number of subgraphs", len(a.subgraphs), len(b.subgraphs))
    for index, (subgraph_a, subgraph_b) in enumerate(zip(a.subgraphs, b.subgraphs, strict=False)):
        yield from _subgraph(index, subgraph_a, subgraph_b)


def diff(a: Source, b: Source) -> Differences:
    """The differences between two models in the order of the file: the model, then each subgraph's operators and
    tensors.

    a, b: open models, paths or bytes.
    Subgraphs are compared by index.  Tensors are matched by name, the k-th of a name with the k-th of that name;
    operators by index where both subgraphs have the same operators in the same order, else by name and outputs.
    Floats are compared as bits.  A tensor's index and the position of its data in the file do not count.

    A list, empty where nothing differs; `print` of it has a line for each.  ModelError, OSError: as tq.Model.
    """
    return Differences(_model(opened(a), opened(b)))
