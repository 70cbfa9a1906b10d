# SPDX-License-Identifier: Apache-2.0
"""The constants of integer operators: weights, biases, and constants that kernels read like activations.

Arithmetic: rule "mlir" of tq.choose_quantization_params, tq.fit_scales_to_bias; biases of int16 operators are int64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from tq import _core
from tq.editing.graph import OperatorPart, TensorPart
from tq.enums import LIMITS
from tq.quantization import recurrent, unsigned
from tq.quantization.choice import Choice
from tq.quantization.grids import NARROW, Weights, own_scales, passes
from tq.quantization.parameters import of_range
from tq.quantization.ranges import Parameters
from tq.quantization.recipes import WEIGHTS
from tq.quantization.records import ComputedWeights, Constant, Floats, Product, Record
from tq.quantization.view import range_of_values
from tq.specification.table import INSTEAD

# The 64-bit requantization takes biases of at most 2^47; half of that is left to sums.
_MOST_BIAS = 2.0**46


def products(choice: Choice) -> dict[OperatorPart, Product]:
    """The operators that are written as MUL."""
    return {op: _product(op) for op in choice.operators if op.builtin_name in INSTEAD}


def _product(op: OperatorPart) -> Product:
    divisor, y = op.inputs[-1], op.outputs[0]
    name = "" if y is None else y.name
    if op.builtin_name == "SQUARE":
        return Product(op, "", None)
    if op.builtin_name == "NEG":
        return Product(op, f"{name}_minus", np.asarray(np.float32(-1)))
    assert divisor is not None
    return Product(op, f"{divisor.name}_reciprocal", np.asarray(np.float32(1) / np.asarray(divisor.data)))


def constants(
    choice: Choice, per_axis: bool, narrow: Collection[OperatorPart] = (), is_unsigned: bool = False
) -> tuple[Record, ...]:
    """The records of integer operators, in the order in which they are written.

    narrow: operators whose weights are to be int4, where their kernels take these.
    is_unsigned: all integers become uint8: weights are uint8 here, other constants the int8 values that
    unsigned.shift moves.
    ValueError: constants that are not finite; parameters that the caller gives and no kernel takes."""
    planner = _Planner(choice, per_axis, frozenset(op for op in narrow if "int4" in _types_of(op)), is_unsigned)
    made = [record for op in choice.operators for record in planner.weights(op)]
    return (*made, *(record for op in choice.operators for record in planner.read(op)))


class _Planner:
    """Plans the constants of one operator after another."""

    def __init__(self, choice: Choice, per_axis: bool, int4: frozenset[OperatorPart], is_unsigned: bool) -> None:
        self._choice, self._view, self._per_axis = choice, choice.view, per_axis
        self._int4, self._is_unsigned = int4, is_unsigned

    # -- weights and biases

    def weights(self, op: OperatorPart) -> Iterator[Record]:
        view, row = self._view, self._view.row(op)
        if row.recurrent:
            x, y = (self._choice.of(tensor) for tensor in (op.inputs[0], op.outputs[0]) if tensor is not None)
            yield from recurrent.plan(op, x, y, view.ranges)
        weights, bias = view.weights(op), view.bias(op)
        if row.weights is None or weights is None:
            return
        index, data = next((i, tensor) for i, tensor in view.read(op) if i != row.weights)
        constant = self._choice.parameters.of_constant
        input_scale = (constant(op, index, data) if data.is_constant else self._choice.of(data)).scale
        try:
            if view.has_constant_weights(op):
                plan = self._unsigned_weights if self._is_unsigned else self._constant_weights
                made = plan(op, row.weights, weights, bias, input_scale)
                scale = made.scale
                yield made
            elif view.type == "int8":
                scale = np.atleast_1d(self._choice.of(weights).scale)
            else:
                computed = self._computed_weights(op, row.weights, weights)
                scale = np.atleast_1d(np.float32(computed.scale))
                yield computed
            yield from self._bias(op, bias, np.asarray(np.float32(input_scale) * scale, np.float32))
        except ValueError as error:
            raise ValueError(f"{weights!r} of operator {op.name}: {error}") from None

    def _constant_weights(
        self, op: OperatorPart, index: int, weights: TensorPart, bias: TensorPart | None, input_scale: np.float32
    ) -> Constant:
        axis = self._view.row(op).axis if self._per_axis else None
        data = np.asarray(weights.data)
        type_ = "int4" if op in self._int4 else "int8"
        made = self._on_grid(op, weights, data, axis) or own_scales(data, axis, type_)
        if bias is not None and bias.data is not None:
            fitted = self._fitted(made.scale, input_scale, bias.data)
            if not np.array_equal(fitted, made.scale):
                self._view.ranges.grids.leave(weights, NARROW)
                made = own_scales(data, axis if np.ndim(fitted) else None, type_, fitted)
        is_per_axis, scales = bool(np.ndim(made.scale)), np.atleast_1d(np.asarray(made.scale, np.float32))
        return Constant(
            op,
            index,
            weights,
            made.values,
            made.type,
            scales,
            axis=axis or 0,
            is_per_axis=is_per_axis,
            is_on_grid=made.is_on_grid,
        )

    def _unsigned_weights(
        self, op: OperatorPart, index: int, weights: TensorPart, bias: TensorPart | None, input_scale: np.float32
    ) -> Constant:
        data = np.asarray(weights.data)
        made, grids = unsigned.weights(data, self._view.ranges.grids.get(weights)), self._view.ranges.grids
        if not made.is_on_grid:
            grids.leave(weights, "recipe 'uint8' takes one scale, and no range of 0 to 0")
        if bias is not None and bias.data is not None:
            fitted = np.float32(self._fitted(np.asarray(made.scale), input_scale, bias.data))
            if fitted != made.scale:
                grids.leave(weights, NARROW)
                made = unsigned.of_scale(data, fitted)
        scales = np.array([made.scale], np.float32)
        return Constant(op, index, weights, made.values, "uint8", scales, made.zero_point, is_on_grid=made.is_on_grid)

    def _on_grid(self, op: OperatorPart, weights: TensorPart, data: Floats, axis: int | None) -> Weights | None:
        """The weights on the grid that training, the caller or the file chose; None: they have none, or leave it."""
        grid = self._view.ranges.grids.get(weights)
        if grid is None:
            return None
        if grid.source == "FAKE_QUANT" and grid.most > np.iinfo(np.int8).max:
            raise ValueError("FAKE_QUANT of 16 bits; no kernel takes int16 weights, num_bits 4 or 8 is needed")
        types = ("int4",) if op in self._int4 else _types_of(op)
        made = grid.weights(data, axis, types)
        if made is None:
            self._view.ranges.grids.leave(weights, passes(types[0]))
        return made

    def _computed_weights(self, op: OperatorPart, index: int, weights: TensorPart) -> ComputedWeights:
        """int8 values beside int16 activations."""
        if not self._view.ranges.knows(weights):
            raise ValueError(
                f"operator {op.index} ({op.name}) computes with {weights.name!r}, whose range is not known"
            )
        most = max(map(abs, self._view.ranges.of(weights)))
        made = _core.choose_quantization_params(-most, most, "int8", symmetric=True, narrow_range=True, rule="mlir")
        return ComputedWeights(op, index, weights, float(made.scale), most)

    def _fitted(self, scale: Floats, input_scale: np.float32, bias: Floats) -> Floats:
        """Scales of weights with which the bias fits its type."""
        bias = np.ravel(bias)  # of rank 4 where a converter folded a normalization into a TRANSPOSE_CONV
        if self._view.type == "int8":
            return np.asarray(_core.fit_scales_to_bias(scale, input_scale, bias)[0])
        least = np.abs(bias) / np.float32(_MOST_BIAS) / input_scale
        if not np.ndim(scale):
            least = least.max(initial=0)
        return np.maximum(scale, np.asarray(least, np.float32))

    def _bias(self, op: OperatorPart, bias: TensorPart | None, scale: Floats) -> Iterator[Constant]:
        row = self._view.row(op)
        if row.bias is None or (bias is None and not row.needs_bias):
            return
        type_ = "int32" if self._view.type == "int8" else "int64"
        if bias is None:
            (output, *_) = self._view.outputs(op)
            values = np.zeros(output.shape[-1], type_)
            yield Constant(op, row.bias, None, values, type_, scale, name=f"{output.name}_bias")
        else:
            data = np.asarray(bias.data)
            values = np.asarray(_core.quantize_bias(np.ravel(data), scale, 1, dtype=type_))
            yield Constant(op, row.bias, bias, values.reshape(data.shape), type_, scale, axis=data.ndim - 1)

    # -- other constants

    def read(self, op: OperatorPart) -> Iterator[Constant]:
        """The constants that kernels read like activations."""
        if op.builtin_name in INSTEAD:
            yield from self._read_by_product(op)
            return
        for index, tensor in self._view.read(op):
            if tensor.is_constant:
                type_ = "int8" if self._view.row(op).narrow == index else self._view.type
                yield self._like_activation(op, index, tensor, type_)

    def _read_by_product(self, op: OperatorPart) -> Iterator[Constant]:
        product, x = _product(op), op.inputs[0]
        if x is not None and x.is_constant:
            for index in (0, 1) if product.factor is None else (0,):
                yield self._like_activation(op, index, x, self._view.type)
        if product.factor is not None:
            p = of_range(self._view.type, *range_of_values(product.factor), is_unsigned=self._view.ranges.is_unsigned)
            yield self._constant(op, 1, None, product.factor, p, self._view.type, product.name)

    def _like_activation(self, op: OperatorPart, index: int, tensor: TensorPart, type: str) -> Constant:
        p = self._choice.parameters.of_constant(op, index, tensor)
        return self._constant(op, index, tensor, np.asarray(tensor.data), p, type)

    def _constant(
        self,
        op: OperatorPart,
        index: int,
        tensor: TensorPart | None,
        data: Floats,
        p: Parameters,
        type: str,
        name: str = "",
    ) -> Constant:
        values = np.asarray(_core.quantize(data, p.scale, p.zero_point, dtype=type))
        grid = None if tensor is None else self._view.ranges.grids.get(tensor)
        chosen = None if grid is None else grid.parameters(type, LIMITS[type])
        is_on_grid = chosen == (float(p.scale), int(p.zero_point))
        scale = np.array([p.scale])
        return Constant(op, index, tensor, values, type, scale, p.zero_point, name=name, is_on_grid=is_on_grid)


def _types_of(op: OperatorPart) -> tuple[str, ...]:
    """The types of weights that its kernels take."""
    row = WEIGHTS.get(op.builtin_name or "")
    return () if row is None else row.integer
