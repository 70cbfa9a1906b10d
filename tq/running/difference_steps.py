# SPDX-License-Identifier: Apache-2.0
"""The reason why an element of two runs differs: the accumulator, and each run's steps from it to the quantized value.

An operator that requantizes one exact integer sum is a row of `_ACCUMULATORS`; the others have their formulas in
`_FORMULAS`.  Sources: LiteRT f6745779, tflite/kernels; XNNPACK 75db3c09, src.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tq.inspection.explain import RequantizeExplanation, explain_requantize

if TYPE_CHECKING:
    from tq._core import Operator, Tensor

# The rounding rules of the kernels of each name, the usual one first.  Some kernels have another rule for the last
# channels of a tensor, or for one kind of scales.
_ROUNDINGS = {
    "reference": ("double", "float64-away"),
    "optimized": ("up", "double", "float64-away"),
    "xnnpack": ("float32-even", "up", "double", "float64-away"),
}
_ANY = ("double", "up", "float32-even", "float64-away")

_Labels: TypeAlias = "tuple[str | None, str | None]"
_TRIES = 16  # elements tried, for one without an activation's clamp

_SUM = {
    "reference": "MBQM(S - n * z_in, m, e) + z_out, the multiplier divided by n; ties away from zero",
    "optimized": "MEAN over height and width: a fixed-point multiplier with 1 / n in it, ties up, the zero points "
    "folded into one; SUM: away(f32(f32(S * k) + b)) + z_out",
    "xnnpack": "rne(f32(f32(S * k) + z')), k = f32(s_in / s_out) (/ n), z' = f32(z_out - f32(n * z_in * k))",
}
_TABLE = {
    "reference": "a table of away(f32(f(x) / s_out)) + z_out",
    "xnnpack": "a table of rne(f32(f32(f(x) * f32(1 / s_out)) + z_out)): the zero point is inside the rounding",
}
_SUM_OF_TWO = {
    "reference": "each input * 2^20 times a fixed-point multiplier, their sum times a third; each rounded",
    "xnnpack": "(2^(n-1) + m_a * (a - z_a) + m_b * (b - z_b)) >> n: one rounding, ties up",
}
_FORMULAS = {
    "ADD": _SUM_OF_TWO,
    "SUB": _SUM_OF_TWO,
    "LEAKY_RELU": {
        "reference": "fixed-point multiplier of 31 bits, ties away from zero",
        "xnnpack": "((x - z_in) * m + 128) >> 8, m = rne(256 * ratio): eight fractional bits",
    },
    "QUANTIZE": {
        "reference": "away(f32(x / s)) + z",
        "optimized": "whole blocks of 8: rne(f32(x * f32(1 / s))) + z; the rest: away(f64(x) / f64(s)) + z",
        "xnnpack": "floats: rne(f32(x * f32(1 / s))) + z; integers: ((q - z_in) * m + 128) >> 8, m = rne(256 * ratio)",
    },
    "DEQUANTIZE": {
        "reference": "f32(s * (q - z))",
        "optimized": "whole blocks of 8: f32(f32(q * s) + f32(-z * s)); the rest: s * (q - z) by way of float64",
        "xnnpack": "f32(s * (q - z))",
    },
    "MEAN": _SUM,
    "SUM": _SUM,
    "RESIZE_BILINEAR": {
        "reference": "int8: fixed-point weights of 10 bits; uint8: float32, truncated",
        "optimized": "uint8: the products of weights formed first, in float32",
        "xnnpack": "fixed-point weights of 11 bits, ties up",
    },
    "SOFTMAX": {
        "reference": "fixed-point exponentials and a fixed-point reciprocal of their sum",
        "optimized": "a float32 table of exponentials; away(e * f32(1 / f32(sum * s_out))) + z_out",
    },
    "LOGISTIC": _TABLE,
    "TANH": _TABLE,
    "ELU": _TABLE,
}


class _Sum(NamedTuple):
    """An exact sum and its real multiplier, in float64 and by XNNPACK's float32 steps."""

    accumulator: int
    multiplier: float
    multiplier_f32: float


@dataclass(frozen=True)
class DifferenceSteps:
    """One element that two runs compute differently from the same inputs.  `str()` is a few lines."""

    tensor: str
    operator: int
    operator_name: str
    element: tuple[int, ...]
    labels: tuple[str, str]  #: the numerics of the two runs, or 'a' and 'b'
    values: tuple[Any, Any]  #: the element of each run
    accumulator: int | None  #: where the operator requantizes one exact sum
    steps: tuple[RequantizeExplanation | None, RequantizeExplanation | None]
    formulas: tuple[str | None, str | None]  #: of each run, where there are no steps

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        element = ", ".join(map(str, self.element))
        yield f"operator {self.operator} ({self.operator_name}), element [{element}] of '{self.tensor}':"
        for label, value, steps, formula in zip(self.labels, self.values, self.steps, self.formulas, strict=True):
            yield f"  {label}: {value}" + (f"   {formula}" if formula else "")
            if steps is not None:
                yield from (f"    {line}" for line in str(steps).splitlines())


class _Node:
    """An operator of a run whose tensors can be read."""

    def __init__(self, interpreter: Any, op: Operator) -> None:
        self.interpreter, self.op = interpreter, op
        self.options = op.options or {}

    def tensor(self, position: int) -> Tensor | None:
        return self.op.inputs[position] if position < len(self.op.inputs) else None

    def centered(self, position: int) -> Any:
        """An input's quantized values less its zero point, int64."""
        tensor = self.tensor(position)
        assert tensor is not None
        if not tensor.is_constant:
            value = self.interpreter.get_tensor(tensor.index)
        else:
            value = tensor.data if tensor.sparsity is None else tensor.densify()
        return np.asarray(value).astype(np.int64) - self.zero_point(tensor)

    @staticmethod
    def zero_point(tensor: Tensor) -> int:
        zeros = tensor.quantization.zero_point
        return int(zeros[0]) if len(zeros) else 0

    @staticmethod
    def scale(tensor: Tensor, channel: int = 0) -> np.float32:
        scales = tensor.quantization.scale
        return np.float32(scales[channel if len(scales) > 1 else 0])

    def bias(self, channel: int) -> int:
        tensor = self.tensor(2)
        return 0 if tensor is None else int(self.centered(2).reshape(-1)[channel])

    def product(self, accumulator: int, channel: int, first: int = 0, second: int = 1) -> _Sum:
        """A sum of products of two inputs, with the multiplier of their scales and the output's."""
        a, b, out = self.tensor(first), self.tensor(second), self.op.outputs[0]
        assert a is not None and b is not None and out is not None
        x, w, y = self.scale(a), self.scale(b, channel), self.scale(out)
        rounded = x * w
        exact = float(rounded) if a.type.name == "UINT8" or self.op.name == "MUL" else float(x) * float(w)
        multiplier = float(rounded / y) if self.op.name == "MUL" else exact / float(y)
        return _Sum(int(accumulator), multiplier, float(rounded / y))


def _window(node: _Node, size: int, taps: int, axis: str, at: int, out: int) -> tuple[int, int]:
    """(first input position of the window of output position `at`, distance of its taps)."""
    stride = int(node.options[f"stride_{axis}"])
    dilation = int(node.options.get(f"dilation_{axis}_factor", 1) or 1)
    reach = (taps - 1) * dilation + 1
    before = 0
    if getattr(node.options["padding"], "name", node.options["padding"]) == "SAME":
        before = max((out - 1) * stride + reach - size, 0) // 2
    return at * stride - before, dilation


def _taps(node: _Node, x: Any, w: Any, element: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """(input pixel, weights) of each tap that lies inside the input; w: [tap row, tap column, ...]."""
    top, down = _window(node, x.shape[1], w.shape[0], "h", element[1], shape[1])
    left, across = _window(node, x.shape[2], w.shape[1], "w", element[2], shape[2])
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            row, column = top + i * down, left + j * across
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                yield x[element[0], row, column], w[i, j]


def _convolution(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    x, w, channel = node.centered(0), node.centered(1), element[3]
    group = channel * (x.shape[3] // w.shape[3]) // w.shape[0]
    x = x[..., group * w.shape[3] : (group + 1) * w.shape[3]]
    total = sum(int(np.dot(pixel, taps)) for pixel, taps in _taps(node, x, w[channel], element, shape))
    return node.product(total + node.bias(channel), channel)


def _depthwise(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    x, w, channel = node.centered(0), node.centered(1), element[3]
    source = channel // (w.shape[3] // x.shape[3])
    total = sum(int(pixel[source] * tap) for pixel, tap in _taps(node, x, w[0, ..., channel], element, shape))
    return node.product(total + node.bias(channel), channel)


def _fully_connected(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    w, channel = node.centered(1), element[-1]
    row = node.centered(0).reshape(-1, w.shape[1])[int(np.ravel_multi_index(element, shape)) // w.shape[0]]
    return node.product(int(np.dot(row, w[channel])) + node.bias(channel), channel)


def _batch_matmul(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    a, b = node.centered(0), node.centered(1)
    a = np.swapaxes(a, -1, -2) if node.options.get("adj_x") else a
    b = np.swapaxes(b, -1, -2) if node.options.get("adj_y") else b
    a = np.broadcast_to(a, shape[:-2] + a.shape[-2:])
    b = np.broadcast_to(b, shape[:-2] + b.shape[-2:])
    row, column = a[element[:-1]], np.swapaxes(b, -1, -2)[(*element[:-2], element[-1])]
    return node.product(int(np.dot(row, column)), 0)


def _mul(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    a, b = (int(np.broadcast_to(node.centered(position), shape)[element]) for position in (0, 1))
    return node.product(a * b, 0)


def _requantize(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum:
    tensor, out = node.tensor(0), node.op.outputs[0]
    assert tensor is not None and out is not None
    ratio = node.scale(tensor) / node.scale(out)
    real = float(node.scale(tensor)) / float(node.scale(out))
    return _Sum(int(node.centered(0)[element]), real, float(ratio))


_ACCUMULATORS: dict[str, Callable[[_Node, tuple[int, ...], tuple[int, ...]], _Sum]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "MUL": _mul,
    "QUANTIZE": _requantize,
}


def _accumulate(node: _Node, element: tuple[int, ...], shape: tuple[int, ...]) -> _Sum | None:
    """The exact sum of an element; None: the operator has none, or it exceeds int32."""
    out = node.op.outputs[0]
    quantized = [node.tensor(0), node.tensor(1), out] if node.op.name != "QUANTIZE" else [node.tensor(0), out]
    if getattr(node.options.get("weights_format"), "name", "DEFAULT") != "DEFAULT":
        return None  # shuffled
    if node.op.name not in _ACCUMULATORS or any(t is None or len(t.quantization.scale) == 0 for t in quantized):
        return None
    found = _ACCUMULATORS[node.op.name](node, element, shape)
    return found if -(2**31) <= found.accumulator < 2**31 else None


def _explain(found: _Sum, out: Tensor, code: int, numerics: str | None) -> RequantizeExplanation | None:
    """The steps of these kernels' first rule that gives the quantized value `code`; None: no rule does, as where an
    activation clamps it."""
    dtype = str(np.dtype(out.dtype))
    for rounding in _ROUNDINGS.get(numerics or "", _ANY):
        real = found.multiplier_f32 if rounding == "float32-even" else found.multiplier
        steps = explain_requantize(found.accumulator, real, _Node.zero_point(out), dtype=dtype, rounding=rounding)
        if steps.code == code:
            return steps
    return None


def _formula(op: Operator, numerics: str | None) -> str | None:
    known = _FORMULAS.get(op.name, {})
    return known.get(numerics or "") or (known.get("reference") if numerics == "optimized" else None)


def _both(
    node: _Node,
    tensor: Tensor,
    values: tuple[Any, Any],
    element: tuple[int, ...],
    labels: tuple[str | None, str | None],
) -> tuple[_Sum | None, RequantizeExplanation | None, RequantizeExplanation | None]:
    a, b = values
    if a.dtype.kind not in "iu" or a.dtype != b.dtype:
        return None, None, None
    found = _accumulate(node, element, a.shape)
    if found is None:
        return None, None, None
    one, two = (_explain(found, tensor, int(v[element]), n) for v, n in zip(values, labels, strict=True))
    return found, one, two


def explain_element(
    interpreter: Any, op: Operator, tensor: Tensor, values: tuple[Any, Any], labels: _Labels
) -> DifferenceSteps | None:
    """The steps of an element in which `values`, two outputs of `op` for the same inputs, differ; None where only signs
    of zeros or bits of NaN differ.

    The element: of the first _TRIES that differ, the first with steps of both runs; else the first.
    interpreter: of either run; it has the operator's inputs.
    labels: the kernels of each run: 'reference', 'optimized', 'xnnpack', or None: not known.
    """
    a, b = values
    node = _Node(interpreter, op)
    different = [tuple(int(i) for i in row) for row in np.argwhere((a != b) & ~((a != a) & (b != b)))[:_TRIES]]
    if not different:
        return None
    tried = [(element, *_both(node, tensor, values, element, labels)) for element in different[:1]]
    for element in different[1:]:
        if None not in tried[-1][2:] or tried[0][1] is None:
            break
        tried.append((element, *_both(node, tensor, values, element, labels)))
    element, found, *steps = tried[-1] if None not in tried[-1] else tried[0]
    formulas = [_formula(op, n) if s is None else None for s, n in zip(steps, labels, strict=True)]
    return DifferenceSteps(
        tensor=tensor.name,
        operator=op.index,
        operator_name=op.name,
        element=element,
        labels=(labels[0] or "a", labels[1] or "b"),
        values=(a[element], b[element]),
        accumulator=None if found is None else found.accumulator,
        steps=(steps[0], steps[1]),
        formulas=(formulas[0], formulas[1]),
    )
