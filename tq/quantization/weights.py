# SPDX-License-Identifier: Apache-2.0
"""The quantized form of constants beside float activations, operator by operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tq import _core
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.nearest import hint
from tq.quantization import recipes
from tq.quantization.grids import WEIGHT_LIMITS, Grid, Grids, Weights, passes
from tq.quantization.options import Options
from tq.quantization.recipes import DEQUANTIZED, FLOAT, GATHERED, HYBRID, STATIC, WEIGHTS, Recipe
from tq.quantization.rules import Ruling
from tq.quantization.view import is_constant_float
from tq.specification.table import FLOAT as STAYS_FLOAT


class Target(NamedTuple):
    """The quantized form of a constant."""

    form: str
    type: str
    axis: int | None = None
    block_size: int = 0
    channels: int = 0  # how many scales are written where axis is None and there are several; 0: one
    channel_axis: int = 0

    def __str__(self) -> str:
        blocks = f" in blocks of {self.block_size}" if self.block_size else ""
        axis = f" along axis {self.axis}" if self.axis is not None else ""
        return f"{self.type}{blocks or axis}{' behind DEQUANTIZE' if self.form == DEQUANTIZED else ''}"


class Use(NamedTuple):
    """A constant that an operator reads, and its quantized form there.

    on_grid: its values on the grid that training, the caller or the file chose; None: its own least and greatest value
    give the scales."""

    operator: OperatorPart
    input: int
    tensor: TensorPart
    target: Target
    on_grid: Weights | None = None


def find_uses(graph: SubgraphPart, ruling: Ruling, options: Options) -> Iterator[Use]:
    """The constants of a subgraph that recipes of float activations quantize."""
    for operator in graph.operators:
        recipe = ruling.recipe(operator, graph.index)
        if recipe.form in (FLOAT, STATIC):
            continue
        if recipe.weights == "float16":
            yield from _float16(operator)
        else:
            yield from _integers(operator, recipe, options)


def place_on_grids(uses: Iterable[Use], grids: Grids) -> list[Use]:
    """The uses, with the values of constants that have a grid."""
    made: dict[tuple[Any, ...], Weights | None] = {}
    found = []
    for use in uses:
        grid = grids.get(use.tensor)
        if grid is None:
            found.append(use)
            continue
        key = use.tensor, *use.target[1:]  # the form changes no value
        if key not in made:
            made[key] = _on_grid(use.tensor, use.target, grid)
        if made[key] is None:
            grids.leave(use.tensor, _why_not(use.target))
        found.append(use._replace(on_grid=made[key]))
    return found


def _why_not(target: Target) -> str:
    if target.type in WEIGHT_LIMITS and not target.block_size:
        return passes(target.type)
    return f"{target.type} weights{' in blocks' if target.block_size else ''} get scales of their own values"


def _on_grid(tensor: TensorPart, target: Target, grid: Grid) -> Weights | None:
    """None: the target has no values on the grid."""
    data = tensor.data
    if target.type not in WEIGHT_LIMITS or target.block_size or data is None or not np.isfinite(data).all():
        return None
    made = grid.weights(data, target.axis, (target.type,))
    if made is None or made.type != target.type:
        return None
    scales, axis = np.atleast_1d(made.scale), target.channel_axis if target.channels else target.axis
    if axis is not None and len(scales) == 1:
        scales = np.repeat(scales, tensor.shape[axis])
    return made._replace(scale=scales)


def check_custom_weights(
    given: Mapping[str, Sequence[int]], graphs: Sequence[SubgraphPart], uses: Sequence[Sequence[Use]]
) -> None:
    """ValueError: an operator that the model lacks, or of which nothing becomes integers."""
    names = {op.name for graph in graphs for op in graph.operators if op.builtin_name == "CUSTOM"}
    used: dict[str, set[int]] = {}
    for use in (use for chosen in uses for use in chosen):
        used.setdefault(use.operator.name, set()).add(use.input)
    for name, indices in given.items():
        if name not in names:
            raise ValueError(f"custom_weights: the model has no custom operator {name!r}{hint(name, names)}")
        if name not in used:
            wanted = f"its inputs {list(indices)} are no float32 constants with enough elements"
            raise ValueError(f"custom_weights: {name!r} has no effect: {wanted}")
        if missing := [index for index in indices if index not in used[name]]:
            raise ValueError(f"custom_weights: {name!r} has no weights at input {missing[0]}")


def can_change(operator: OperatorPart, recipe: Recipe, options: Options) -> bool:
    """Whether a recipe may change an operator."""
    if recipe.form == STATIC:
        return operator.name not in STAYS_FLOAT and (operator.builtin_name or "CUSTOM") != "CUSTOM"
    if recipe.form == FLOAT:
        return False
    if recipe.weights == "float16":
        return any(
            tensor is not None and _can_quantize(tensor) and prod(tensor.shape) > 1 for tensor in operator.inputs
        )
    return any(_integers(operator, recipe, options))


def _can_quantize(tensor: TensorPart) -> bool:
    return is_constant_float(tensor) and not tensor.is_variable


def _float16(operator: OperatorPart) -> Iterator[Use]:
    """All float constants of a builtin operator, without single values, where nothing is saved and an epsilon becomes
    0, and without constants with infinities, which float16's greatest value cannot stand for."""
    if operator.name in recipes.READ_WHEN_PREPARED or operator.builtin_name in (None, "CUSTOM"):
        return
    for index, tensor in enumerate(operator.inputs):
        data = tensor.data if tensor is not None and _can_quantize(tensor) else None
        if tensor is None or data is None or data.size < 2:
            continue
        _, _, ((_, nans, infinities),) = _core._observe(data, None, None)
        if infinities:
            continue
        if nans:
            raise ValueError(f"{tensor!r} holds NaN; weights must be numbers")
        yield Use(operator, index, tensor, Target(DEQUANTIZED, "float16"))


def _integers(operator: OperatorPart, recipe: Recipe, options: Options) -> Iterator[Use]:
    """The weights of an operator, if all of them can become integers."""
    row = row_of(operator, options)
    if row is None or (recipe.form == HYBRID and recipe.weights not in row.hybrid):
        return
    if recipe.in_blocks and not row.in_blocks:
        return
    inputs = operator.inputs
    found = []
    for index in row.inputs:
        tensor = inputs[index] if index < len(inputs) else None
        if tensor is None:
            continue
        if not _can_quantize(tensor):
            return
        found.append((index, tensor, tensor.shape))
    if max((prod(shape) for _, _, shape in found), default=0) < max(options.min_elements, 1):
        return
    for index, tensor, shape in found:
        yield Use(operator, index, tensor, _target(shape, row, recipe, options))


def row_of(operator: OperatorPart, options: Options) -> recipes.Weights | None:
    """The weights of an operator, of a custom one as the caller says."""
    if operator.builtin_name == "CUSTOM":
        indices = options.custom_weights.get(operator.name)
        return None if indices is None else recipes.Weights(tuple(indices), None, recipes.CUSTOM_WEIGHTS)
    return WEIGHTS.get(operator.builtin_name or "")


def _target(shape: tuple[int, ...], row: recipes.Weights, recipe: Recipe, options: Options) -> Target:
    axis = row.axis if row.axis is not None and row.axis < len(shape) else None
    if recipe.in_blocks and shape[-1] % options.block_size == 0:
        return Target(recipe.form, recipe.weights, block_size=options.block_size)
    if row.gathers and recipe.weights in row.hybrid:
        return Target(GATHERED, recipe.weights)
    if axis is None or options.per_axis:
        return Target(recipe.form, recipe.weights, axis)
    if recipe.form == HYBRID and row.scale_per_channel:
        return Target(recipe.form, recipe.weights, None, channels=shape[axis], channel_axis=axis)
    return Target(recipe.form, recipe.weights)
