# SPDX-License-Identifier: Apache-2.0
"""Two runs of the same inputs, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TensorComparison:
    """A tensor of two runs."""

    index: int  # in the first model's subgraph 0
    index_b: int
    name: str
    operator: int | None  # of the first model, that writes it
    operator_name: str
    dtype: str
    shape: tuple[int, ...]
    equal: bool  # in every bit
    different: int  # elements
    max_error: float  # of real values: integer codes times their scale
    sqnr_db: float  # inf where nothing differs


@dataclass
class Comparison:
    """Two runs of the same inputs, tensor by tensor in the order of execution.  `str()` is a table."""

    rows: list[TensorComparison]
    unmatched: list[str]  # names of the first model's tensors that the second does not have, or not in that shape

    @property
    def equal(self) -> bool:
        """Whether no tensor differs."""
        return all(row.equal for row in self.rows)

    @property
    def first_difference(self) -> TensorComparison | None:
        """The first tensor that differs."""
        return next((row for row in self.rows if not row.equal), None)

    def __str__(self) -> str:
        lines = ["tensor operator             dtype    different    max error  SQNR dB  name"]
        for row in self.rows:
            lines.append(
                f"{row.index:6} {row.operator_name[:20]:20} {row.dtype:8} {row.different:9} {row.max_error:12.6g}"
                f" {row.sqnr_db:8.2f}  {row.name[:60]}"
            )
        first = self.first_difference
        if first is None:
            lines.append(f"all {len(self.rows)} tensors are equal")
        else:
            lines.append(
                f"{sum(not row.equal for row in self.rows)} of {len(self.rows)} tensors differ; the first is "
                f"{first.index} '{first.name}', of operator {first.operator} ({first.operator_name})"
            )
        if self.unmatched:
            lines.append(f"{len(self.unmatched)} tensors have no partner: {', '.join(self.unmatched[:8])}")
        return "\n".join(lines)


def _interpreter(source: Any) -> Any:
    """An interpreter, tq's or one like it, that keeps every tensor."""
    if hasattr(source, "invoke") and hasattr(source, "get_tensor"):
        return source
    import tq
    from tq.interpreter import Interpreter

    model = source if isinstance(source, tq.Model) else tq.Model(source)
    return Interpreter(model=model, experimental_preserve_all_tensors=True)


def feed(interpreter: Any, inputs: Any) -> None:
    """Allocates an interpreter for inputs (an array, a list in input order, a dict by name) and sets them.

    ValueError: they do not fit the model.
    """
    details = interpreter.get_input_details()
    if isinstance(inputs, Mapping):
        by_name = {item["name"]: item for item in details}
        unknown = [name for name in inputs if name not in by_name]
        if unknown:
            raise ValueError(f"no input is called {unknown[0]!r}; the inputs are {', '.join(by_name)}")
        pairs = [(by_name[name], value) for name, value in inputs.items()]
    else:
        values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(values) != len(details):
            raise ValueError(f"{len(values)} inputs are given; the model has {len(details)}")
        pairs = list(zip(details, values, strict=True))
    values_of = [(item, np.asarray(value)) for item, value in pairs]
    for item, value in values_of:
        if tuple(item["shape"]) != value.shape:
            interpreter.resize_tensor_input(item["index"], value.shape)
    interpreter.allocate_tensors()
    for item, value in values_of:
        interpreter.set_tensor(item["index"], value)


def _value(interpreter: Any, index: int) -> Any:
    try:
        return np.asarray(interpreter.get_tensor(index))
    except ValueError:
        return None


def _real(value: np.ndarray, details: dict[str, Any]) -> np.ndarray:
    """float64 values; codes times their scale where they have one."""
    if value.dtype.kind not in "iuf" or value.dtype.kind == "f":
        result: np.ndarray = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        return result
    parameters = details["quantization_parameters"]
    scales, zeros = parameters["scales"], parameters["zero_points"]
    real: np.ndarray = value.astype(np.float64)
    if len(scales) == 0:
        return real
    shape = [1] * value.ndim
    if len(scales) > 1:
        shape[parameters["quantized_dimension"]] = len(scales)
    real = (real - zeros.astype(np.float64).reshape(shape)) * scales.astype(np.float64).reshape(shape)
    return real


def _errors(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Largest absolute error, SQNR in dB of b against a; both ignore elements that are equal, be they not finite."""
    with np.errstate(all="ignore"):
        same = (a == b) | ((a != a) & (b != b))
        error = np.where(same, 0, np.abs(a - b))
        noise, signal = float(np.sum(error**2)), float(np.sum(np.abs(np.where(np.isfinite(a), a, 0)) ** 2))
        if noise == 0:
            return 0.0, float("inf")
        return float(np.max(error)), float(10 * np.log10(signal / noise)) if signal else float("-inf")


def _producers(interpreter: Any) -> dict[int, tuple[int, str]]:
    return {
        int(tensor): (op["index"], op["op_name"])
        for op in interpreter._get_ops_details()
        if op["op_name"] != "DELEGATE"
        for tensor in op["outputs"]
    }


def compare(a: Any, b: Any, inputs: Any) -> Comparison:
    """Runs two models on the same inputs, and compares every tensor that both have.

    a, b: paths, bytes, tq.Model or interpreters, tq's or LiteRT's; make those with
        experimental_preserve_all_tensors=True, or their intermediate tensors do not count.
    inputs: an array, a list of arrays in input order, or a dict by input name.

    Tensors are matched by name (those of one name in their order), and where the first model has the same number of
    tensors as the second, by index.  Quantized values are compared as codes for equality, and as real numbers for
    errors, so a float model can stand beside a quantized one.
    ValueError: the inputs do not fit a model.
    """
    one, two = _interpreter(a), _interpreter(b)
    for interpreter in (one, two):
        feed(interpreter, inputs)
        interpreter.invoke()
    details_a = {item["index"]: item for item in one.get_tensor_details()}
    details_b = {item["index"]: item for item in two.get_tensor_details()}
    partners = _partners(details_a, details_b)
    producers = _producers(one)
    ends = [item["index"] for item in one.get_input_details()]
    order = ends + [index for index in producers if index in details_a]
    rows, unmatched = [], []
    for index in order:
        row = _compare_tensor(one, two, details_a[index], details_b.get(partners.get(index, -1)), producers.get(index))
        if row is None:
            unmatched.append(details_a[index]["name"])
        else:
            rows.append(row)
    return Comparison(rows, unmatched)


def _partners(a: dict[int, Any], b: dict[int, Any]) -> dict[int, int]:
    same_layout = [(i, d["name"]) for i, d in a.items()] == [(i, d["name"]) for i, d in b.items()]
    if same_layout:
        return {index: index for index in a}
    places: dict[str, list[int]] = {}
    for index in reversed(list(b)):
        places.setdefault(b[index]["name"], []).append(index)
    return {i: places[d["name"]].pop() for i, d in a.items() if places.get(d["name"])}


def _compare_tensor(
    one: Any, two: Any, details: Any, other: Any, producer: tuple[int, str] | None
) -> TensorComparison | None:
    if other is None:
        return None
    x, y = _value(one, details["index"]), _value(two, other["index"])
    if x is None or y is None or x.shape != y.shape:
        return None
    operator, name = producer if producer else (None, "input")
    equal = x.dtype == y.dtype and (x.tobytes() == y.tobytes() if x.dtype != object else bool(np.all(x == y)))
    if x.dtype.kind in "OSU" or x.dtype.kind == "V":
        different, error, sqnr = int(np.sum(x != y)), float("nan"), float("nan")
    else:
        real_x, real_y = _real(x, details), _real(y, other)
        left, right = (x, y) if x.dtype == y.dtype else (real_x, real_y)
        different = int(np.sum(~((left == right) | ((left != left) & (right != right)))))
        error, sqnr = _errors(real_x, real_y)
    return TensorComparison(
        details["index"],
        other["index"],
        details["name"],
        operator,
        name,
        str(x.dtype),
        x.shape,
        equal,
        different,
        error,
        sqnr,
    )
