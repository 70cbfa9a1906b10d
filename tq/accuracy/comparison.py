# SPDX-License-Identifier: Apache-2.0
"""Two runs of the same inputs, tensor by tensor; tq.compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tq.accuracy.measuring import UNRELATED, Samples, telling_unrelated
from tq.nearest import hint
from tq.pages.tables import Result, Table, aligned
from tq.progress import tracked
from tq.running.difference_steps import DifferenceSteps, Kernels, explain_element
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits
from tq.sources import opened
from tq.texts import middle


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
    different: int  # elements that differ
    max_error: float  # of real values
    sqnr_db: float  # inf where nothing differs
    max_codes: int | None  # the largest difference of quantized values, or of other integers; None for other types
    is_output: bool  # of the first model's subgraph 0


@dataclass(repr=False)
class Comparison(Result):
    """Two runs of the same inputs, tensor by tensor in the order of execution.  `str()` is a table."""

    rows: list[TensorComparison]
    unmatched: list[str]  # names of the first model's tensors without a partner of the same shape in the second
    steps: DifferenceSteps | None = None  # of an element of the first difference, where both run the same operators
    samples: int = 1  # runs, over which the rows hold sums and maxima

    @property
    def equal(self) -> bool:
        """Whether no tensor differs."""
        return all(row.equal for row in self.rows)

    @property
    def first_difference(self) -> TensorComparison | None:
        """The first tensor that differs."""
        return next((row for row in self.rows if not row.equal), None)

    @property
    def outputs(self) -> list[TensorComparison]:
        """The rows of the first model's outputs."""
        return [row for row in self.rows if row.is_output]

    def table(self) -> Table:
        """A row for each tensor."""
        heads = ("#tensor", "operator", "dtype", "#different", "#max_error", "#sqnr_db", "equal", "is_output", "name")
        rows = [
            (r.index, r.operator_name, r.dtype, r.different, r.max_error, r.sqnr_db, r.equal, r.is_output, r.name)
            for r in self.rows
        ]
        return Table(heads, rows)

    def text(self, width: int | None = None) -> str:
        heads = ("#tensor", "operator", "dtype", "#different", "#max error", "#SQNR dB", "name")
        rows = [
            [
                f"{row.index}", middle(row.operator_name, 40), row.dtype, f"{row.different}", f"{row.max_error:.6g}",
                f"{row.sqnr_db:.2f}", middle(row.name),
            ]
            for row in self.rows
        ]  # fmt: skip
        lines = aligned(heads, rows, width)
        lines += self.summary()
        if self.steps is not None:
            lines.append(str(self.steps))
        return "\n".join(lines)

    def summary(self) -> list[str]:
        """Lines: the first tensor that differs, and the differences of the outputs."""
        runs = f" over {self.samples} samples" if self.samples > 1 else ""
        first = self.first_difference
        if not self.rows:
            lines = [f"{UNRELATED}: they have no tensors in common"]
        elif first is None:
            lines = [f"all {len(self.rows)} tensors are equal{runs}"]
        else:
            lines = [
                f"{sum(not row.equal for row in self.rows)} of {len(self.rows)} tensors differ{runs}; the first is "
                f"{first.index} '{first.name}', of operator {first.operator} ({first.operator_name})"
            ]
            lines += [f"output {row.index} '{row.name}': {_how_far(row, self.samples)}" for row in self.outputs]
        if self.unmatched:
            lines.append(f"{len(self.unmatched)} tensors have no partner: {', '.join(self.unmatched[:8])}")
        return lines


def _how_far(row: TensorComparison, samples: int) -> str:
    if row.equal:
        return "equal"
    most = "" if row.max_codes is None else f", by up to {row.max_codes}"
    count = int(np.prod(row.shape)) * samples
    error = f"largest error {row.max_error:.6g}, SQNR {row.sqnr_db:.2f} dB"
    return f"{row.different} of {count} elements differ{most}; {error}"


def _interpreter(source: Any, numerics: str | None, rounding: str | None, limits: Limits) -> Any:
    """An interpreter, tq's or LiteRT's, with memory for every tensor."""
    if hasattr(source, "invoke") and hasattr(source, "get_tensor"):
        if numerics is not None:
            raise ValueError(f"numerics={numerics!r} needs a model; {source!r} is an interpreter, which has its own")
        if limits != NONE:
            raise ValueError(f"max_memory and max_multiply_adds need a model; {source!r} is an interpreter")
        return source
    model = opened(source)
    return Interpreter(
        model=model,
        experimental_preserve_all_tensors=True,
        numerics=numerics,
        rounding=rounding,
        **limits._asdict(),
    )


def feed(interpreter: Any, inputs: Any) -> None:
    """Allocates an interpreter for inputs (an array, a list in input order, a dict by name) and sets them.

    ValueError: they do not fit the model.
    """
    details = interpreter.get_input_details()
    if isinstance(inputs, Mapping):
        by_name = {item["name"]: item for item in details}
        unknown = [name for name in inputs if name not in by_name]
        if unknown:
            raise ValueError(
                f"no input is called {unknown[0]!r}; the inputs are {', '.join(by_name)}"
                f"{hint(str(unknown[0]), by_name)}"
            )
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
    """Real values, float64: of integers with a scale by their parameters; complex types stay complex."""
    if value.dtype.kind not in "iuf" or value.dtype.kind == "f":
        result: np.ndarray = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        return result
    parameters = details["quantization_parameters"]
    scales, zeros = parameters["scales"], parameters["zero_points"]
    real: np.ndarray = value.astype(np.float64)
    if len(scales) == 0:
        return real
    shape, axis = [1] * value.ndim, parameters["quantized_dimension"]
    along = len(scales) > 1
    if len(zeros) not in (1, len(scales)) or (along and value.shape[axis : axis + 1] != (len(scales),)):
        return real  # parameters that do not fit the shape: compare the stored values
    if along:
        shape[axis] = -1
    with np.errstate(all="ignore"):
        real = (real - zeros.astype(np.float64).reshape(shape)) * scales.astype(np.float64).reshape(shape)
    return real


def _errors(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """(largest absolute error, noise, signal) of b against a; equal elements, non-finite ones too, have no error."""
    with np.errstate(all="ignore"):
        same = (a == b) | ((a != a) & (b != b))
        error = np.where(same, 0, np.abs(a - b))
        noise, signal = float(np.sum(error**2)), float(np.sum(np.abs(np.where(np.isfinite(a), a, 0)) ** 2))
        return (float(np.max(error)) if noise else 0.0), noise, signal


def _sqnr(noise: float, signal: float) -> float:
    if noise == 0:
        return float("inf")
    with np.errstate(all="ignore"):
        return float(10 * np.log10(signal / noise)) if signal else float("-inf")


def _integer_error(x: np.ndarray, y: np.ndarray) -> int | None:
    if x.dtype.kind not in "iu" or x.dtype != y.dtype or x.size == 0:
        return None
    wide = x.dtype.itemsize == 8  # differences of int64 may exceed it: Python's integers
    apart = np.abs(x.astype(object) - y.astype(object)) if wide else np.abs(x.astype(np.int64) - y.astype(np.int64))
    return int(np.max(apart))


def _producers(interpreter: Any) -> dict[int, tuple[int, str]]:
    return {
        int(tensor): (op["index"], op["op_name"])
        for op in interpreter._get_ops_details()
        if op["op_name"] != "DELEGATE"
        for tensor in op["outputs"]
    }


def compare(
    a: Any,
    b: Any = None,
    inputs: Any = None,
    *,
    samples: Any = None,
    max_samples: int | None = None,
    numerics: Sequence[str] | None = None,
    rounding: Sequence[str] | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Runs two models on the same inputs, and compares each pair of tensors.

    a, b: paths, bytes, tq.Model or interpreters, tq's or LiteRT's.  Without experimental_preserve_all_tensors=True the
        intermediate tensors of an interpreter are not compared.  b may be left out where numerics or rounding is
        given: the same model twice.
    inputs: one sample: an array, a list of arrays in input order, or a dict by input name.
    samples: many samples, in place of inputs, as tq.evaluate takes them, with or without labels: real values, which are
        quantized for integer inputs, so that a float model may stand beside one quantized from it.  Rows then hold the
        sums and maxima over all.  a and b must be models, or tq's interpreters.
    max_samples: the greatest number of samples to run.  progress: as of tq.calibrate.
    numerics: two names, as ("reference", "xnnpack"): the kernels of a and of b (see Interpreter).
    rounding: two names, as ("double", "single"): how the reference kernels of a and of b round (see Interpreter).
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them; interpreters have their own.

    Tensors are matched by index where both models have the same tensors, else by name (those of one name in their
    order).  Equality compares stored values; errors compare real values, so a float model can be compared with a
    quantized one.  Where both run the same operators, `Comparison.steps` has, for an element of the first tensor that
    differs, the accumulator and each run's steps from it to the quantized value.
    ValueError: the inputs do not fit a model; the models do not belong together; numerics or rounding is not two
    names.  TypeError: inputs and samples are missing, or b with numerics and rounding.  RunError: a model cannot be
    run.
    """
    names: Sequence[str | None] = (None, None) if numerics is None else tuple(numerics)
    if isinstance(numerics, str) or len(names) != 2:
        raise ValueError(f"numerics is {numerics!r}; it must be two names, as ('reference', 'xnnpack')")
    rounds: Sequence[str | None] = (None, None) if rounding is None else tuple(rounding)
    if isinstance(rounding, str) or len(rounds) != 2:
        raise ValueError(f"rounding is {rounding!r}; it must be two names, as ('double', 'single')")
    if (inputs is None and samples is None) or (b is None and numerics is None and rounding is None):
        raise TypeError(f"compare() needs {'inputs' if inputs is samples is None else 'b, or numerics, or rounding'}")
    if inputs is not None and (samples is not None or max_samples is not None):
        raise ValueError("inputs are one sample: samples and max_samples cannot be given too")
    if rounding is not None and numerics is None:
        names = ("reference", "reference")
    if b is None:
        b = a = opened(a)
    limits = Limits(max_memory, max_multiply_adds)
    one, two = _interpreter(a, names[0], rounds[0], limits), _interpreter(b, names[1], rounds[1], limits)
    if samples is not None:
        return _compare_samples(one, two, samples, max_samples, progress)
    ends = [each.get_input_details() for each in (one, two)]
    feed(one, inputs)
    one.invoke()
    with telling_unrelated([(x["shape"], y["shape"]) for x, y in zip(*ends, strict=False)]):
        feed(two, inputs)
    two.invoke()
    pair = _Pair(one, two)
    pair.add()
    return pair.comparison()


def _compare_samples(one: Any, two: Any, data: Any, most: int | None, progress: bool | None) -> Comparison:
    for interpreter in (one, two):
        if not isinstance(interpreter, Interpreter):
            raise ValueError(f"samples need models, or tq's interpreters; {interpreter!r} is none: give inputs")
    if most is not None and most < 1:
        raise ValueError(f"max_samples is {most}; it must be at least 1")
    base = two if _takes_integers(one) and not _takes_integers(two) else one
    fed = Samples(base.model, data, most, quantizes=True)
    pair: _Pair | None = None
    for _ in tracked(zip(fed.each(one), fed.each(two), strict=True), fed, "comparing", progress):
        one.invoke()
        two.invoke()
        pair = pair or _Pair(one, two)
        pair.add()
    assert pair is not None
    return pair.comparison()


def _takes_integers(interpreter: Interpreter) -> bool:
    return any(item["dtype"] != np.float32 for item in interpreter.get_input_details())


class _Pair:
    """Two interpreters, and sums over their runs."""

    def __init__(self, one: Any, two: Any) -> None:
        self._one, self._two = one, two
        details_b = {item["index"]: item for item in two.get_tensor_details()}
        self._details = {item["index"]: item for item in one.get_tensor_details()}
        partners = _partners(self._details, details_b)
        self._producers = _producers(one)
        ends = [item["index"] for item in one.get_input_details()]
        order = ends + [index for index in self._producers if index in self._details]
        self._others = {index: details_b.get(partners.get(index, -1)) for index in dict.fromkeys(order)}
        self._sums: dict[int, _Sum] = {}
        self._unmatched: dict[int, None] = {}
        self._steps: DifferenceSteps | None = None
        self._runs = 0

    def add(self) -> None:
        """Adds the values of the interpreters' last run."""
        for index, other in self._others.items():
            x = None if other is None else _value(self._one, index)
            y = None if other is None else _value(self._two, other["index"])
            if x is None or y is None or x.shape != y.shape:
                self._unmatched[index] = None
            else:
                self._sums.setdefault(index, _Sum()).add(x, y, self._details[index], other)
        self._runs += 1
        if self._runs == 1:
            self._steps = _steps(self._one, self._two, self.comparison().first_difference)

    def comparison(self) -> Comparison:
        """The sums so far."""
        outputs = {item["index"] for item in self._one.get_output_details()}
        rows = []
        for index, total in self._sums.items():
            operator, name = self._producers.get(index, (None, "input"))
            other, item = self._others[index], self._details[index]
            assert other is not None
            if index not in self._unmatched:
                rows.append(total.row(item, other["index"], operator, name, index in outputs))
        names = [self._details[index]["name"] for index in self._unmatched]
        return Comparison(rows, names, self._steps, self._runs)


class _Sum:
    """Differences of a tensor's values, over runs."""

    def __init__(self) -> None:
        self.equal = True
        self.different = 0
        self.error = self.noise = self.signal = 0.0
        self.largest: int | None = None
        self.dtype, self.shape = "", ()

    def add(self, x: np.ndarray, y: np.ndarray, details: Any, other: Any) -> None:
        """Adds two values of the same shape."""
        self.dtype, self.shape = str(x.dtype), x.shape
        self.equal &= x.dtype == y.dtype and (x.tobytes() == y.tobytes() if x.dtype != object else bool(np.all(x == y)))
        if x.dtype.kind in "OSUV":
            self.different += int(np.sum(x != y))
            self.error = self.noise = float("nan")
            return
        real_x, real_y = _real(x, details), _real(y, other)
        left, right = (x, y) if x.dtype == y.dtype else (real_x, real_y)
        self.different += int(np.sum(~((left == right) | ((left != left) & (right != right)))))
        error, noise, signal = _errors(real_x, real_y)
        self.error = float(np.maximum(self.error, error))
        self.noise, self.signal = self.noise + noise, self.signal + signal
        largest = _integer_error(x, y)
        if largest is not None:
            self.largest = max(largest, self.largest or 0)

    def row(self, details: Any, other: int, operator: int | None, name: str, is_output: bool) -> TensorComparison:
        """The sums as a row."""
        return TensorComparison(
            details["index"],
            other,
            details["name"],
            operator,
            name,
            self.dtype,
            self.shape,
            self.equal,
            self.different,
            self.error,
            self.noise if self.noise != self.noise else _sqnr(self.noise, self.signal),
            self.largest,
            is_output,
        )


def _kernels(interpreter: Any, operator: int) -> Kernels:
    """The kernels whose arithmetic an operator of a run has."""
    if not isinstance(interpreter, Interpreter):
        return Kernels(None)
    return Kernels(interpreter._backends()[operator][0], interpreter.rounding == "single")


def _steps(one: Any, two: Any, first: TensorComparison | None) -> DifferenceSteps | None:
    """The steps of the first difference, where both runs have the same operators and at least one is tq's."""
    known = next((item for item in (one, two) if isinstance(item, Interpreter)), None)
    if first is None or first.operator is None or first.index != first.index_b or known is None:
        return None
    op = known.model.subgraphs[0].operators[first.operator]
    tensor = known.model.subgraphs[0].tensors[first.index]
    theirs = two._get_op_details(first.operator) if hasattr(two, "_get_op_details") else None
    if op.output_indices[:1] != (first.index,) or theirs is None or theirs["op_name"] != op.name:
        return None
    reads = [index for index in op.input_indices if index >= 0]
    if any(_differs(_value(one, index), _value(two, index)) for index in reads):
        return None
    values = _value(one, first.index), _value(two, first.index)
    if any(value.dtype.kind not in "iuf" for value in values):
        return None
    return explain_element(known, op, tensor, values, (_kernels(one, op.index), _kernels(two, op.index)))


def _differs(x: Any, y: Any) -> bool:
    """Whether an operator's inputs differed, or one of them cannot be read."""
    return x is None or y is None or x.shape != y.shape or x.tobytes() != y.tobytes()


def _partners(a: dict[int, Any], b: dict[int, Any]) -> dict[int, int]:
    same_layout = [(i, d["name"]) for i, d in a.items()] == [(i, d["name"]) for i, d in b.items()]
    if same_layout:
        return {index: index for index in a}
    by_name: dict[str, list[int]] = {}
    for index in reversed(list(b)):
        by_name.setdefault(b[index]["name"], []).append(index)
    return {i: by_name[d["name"]].pop() for i, d in a.items() if by_name.get(d["name"])}
