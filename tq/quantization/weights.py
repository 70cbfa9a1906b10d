# SPDX-License-Identifier: Apache-2.0
"""Which constants become what where activations stay float, operator by operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from tq import _core
from tq.editing.graph import SubgraphPart
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.nearest import hint
from tq.quantization import recipes
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
    """A constant that an operator reads, and what it is to become there."""

    operator: OperatorPart
    input: int
    tensor: TensorPart
    target: Target


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


def check_custom_weights(
    given: Mapping[str, Sequence[int]], graphs: Sequence[SubgraphPart], uses: Sequence[Sequence[Use]]
) -> None:
    """ValueError: an operator that the model lacks, or of which nothing becomes integers."""
    names = {op.name for graph in graphs for op in graph.operators if op.builtin_name == "CUSTOM"}
    used: dict[str, set[int]] = {}
    for use in (use for chosen in uses for use in chosen):
        used.setdefault(use.operator.name, set()).add(use.input)
    for name, places in given.items():
        if name not in names:
            raise ValueError(f"custom_weights: the model has no custom operator {name!r}{hint(name, names)}")
        if name not in used:
            wanted = f"its inputs {list(places)} are no float32 constants with enough elements"
            raise ValueError(f"custom_weights: {name!r} has no effect: {wanted}")
        if missing := [place for place in places if place not in used[name]]:
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
    for place, tensor in enumerate(operator.inputs):
        data = tensor.data if tensor is not None and _can_quantize(tensor) else None
        if tensor is None or data is None or data.size < 2:
            continue
        _, _, ((_, nans, infinities),) = _core._observe(data, None, None)
        if infinities:
            continue
        if nans:
            raise ValueError(f"{tensor!r} holds NaN; weights must be numbers")
        yield Use(operator, place, tensor, Target(DEQUANTIZED, "float16"))


def _integers(operator: OperatorPart, recipe: Recipe, options: Options) -> Iterator[Use]:
    """The weights of an operator, if all of them can become integers."""
    row = row_of(operator, options)
    if row is None or (recipe.form == HYBRID and recipe.weights not in row.hybrid):
        return
    if recipe.in_blocks and not row.in_blocks:
        return
    inputs = operator.inputs
    found = []
    for place in row.inputs:
        tensor = inputs[place] if place < len(inputs) else None
        if tensor is None:
            continue
        if not _can_quantize(tensor):
            return
        found.append((place, tensor, tensor.shape))
    if max((prod(shape) for _, _, shape in found), default=0) < max(options.min_elements, 1):
        return
    for place, tensor, shape in found:
        yield Use(operator, place, tensor, _target(shape, row, recipe, options))


def row_of(operator: OperatorPart, options: Options) -> recipes.Weights | None:
    """The weights of an operator, of a custom one as the caller says."""
    if operator.builtin_name == "CUSTOM":
        places = options.custom_weights.get(operator.name)
        return None if places is None else recipes.Weights(tuple(places), None, ("int8", "int4"))
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
