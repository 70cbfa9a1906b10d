# SPDX-License-Identifier: Apache-2.0
"""Operators that move quantized values: the input's element from which an output's element came.

Each map takes an array of places for each input, in the input's shape, and moves it as the operator moves values.
Sources: src/ops/movement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tq.explanation import fixed_point as fx
from tq.explanation.fixed_point import f32
from tq.explanation.node import Node
from tq.explanation.requantization import finish
from tq.explanation.steps import Trail

_BORDER = -1  # the place of an element that no input has
_Map = Callable[[Node, "list[Any]"], Any]


def _places(node: Node) -> list[Any]:
    """An array for each input: its elements' places, counted through all inputs."""
    made: list[Any] = []
    start = 0
    for place in range(len(node.op.inputs)):
        shape = () if node.tensor(place) is None else node.values(place).shape
        made.append(np.arange(start, start + int(np.prod(shape))).reshape(shape))
        start += made[-1].size
    return made


def _pairs(node: Node, place: int) -> list[tuple[int, int]]:
    return [(int(before), int(after)) for before, after in node.values(place).reshape(-1, 2)]


def _pad(node: Node, x: list[Any]) -> Any:
    fill = int(x[2].reshape(-1)[0]) if len(x) > 2 else _BORDER
    return np.pad(x[0], _pairs(node, 1), constant_values=fill)


def _mirror_pad(node: Node, x: list[Any]) -> Any:
    edge = node.option("mode") == "SYMMETRIC"
    return np.pad(x[0], _pairs(node, 1), mode="symmetric" if edge else "reflect")


def _slice(node: Node, x: list[Any]) -> Any:
    begins, sizes = node.values(1).reshape(-1), node.values(2).reshape(-1)
    return x[0][tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begins, sizes, strict=True))]


def _strided_slice(node: Node, x: list[Any]) -> Any:
    lists = [node.values(place).reshape(-1).tolist() for place in (1, 2, 3)]
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = [int(node.options.get(name, 0)) for name in names]
    index: list[Any] = []
    for i, (begin, end, stride) in enumerate(zip(*lists, strict=True)):
        begin_open, end_open, ellipsis, new, one = (mask >> i & 1 for mask in masks)
        if ellipsis:
            index.append(...)
        elif new:
            index.append(None)
        elif one:
            index.append(0 if begin_open else begin)
        else:
            stop = begin + end if node.options.get("offset") else end
            index.append(slice(None if begin_open else begin, None if end_open else stop, stride))
    return x[0][tuple(index)]


def _split(node: Node, x: list[Any]) -> Any:
    """One of several parts, which lie along the axis one behind the other."""
    data, axis = (1, 0) if node.op.name == "SPLIT" else (0, 2)
    along = int(node.values(axis).reshape(-1)[0]) % x[data].ndim
    sizes = [node.run.get_tensor(index).shape[along] for index in node.op.output_indices]
    begin = sum(sizes[: node.place])
    return x[data].take(range(begin, begin + sizes[node.place]), along)


def _gather(node: Node, x: list[Any]) -> Any:
    indices, batches = node.values(1), int(node.options.get("batch_dims", 0))
    batches += indices.ndim if batches < 0 else 0
    axis = int(node.options.get("axis", 0)) % x[0].ndim
    if batches == 0:
        return x[0].take(indices, axis)
    count = int(np.prod(x[0].shape[:batches]))
    parts = zip(
        x[0].reshape(count, *x[0].shape[batches:]), indices.reshape(count, *indices.shape[batches:]), strict=True
    )
    return np.stack([part.take(chosen, axis - batches) for part, chosen in parts]).reshape(node.shape)


def _depth(node: Node, x: list[Any]) -> Any:
    block, (n, h, w, c) = int(node.options["block_size"]), x[0].shape
    if node.op.name == "SPACE_TO_DEPTH":
        cut = x[0].reshape(n, h // block, block, w // block, block, c)
    else:
        cut = x[0].reshape(n, h, w, block, block, c // block**2)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(node.shape)


def _space_to_batch(node: Node, x: list[Any]) -> Any:
    blocks, m = node.values(1).reshape(-1).tolist(), node.values(1).size
    padded = np.pad(x[0], [(0, 0), *_pairs(node, 2), *[(0, 0)] * (x[0].ndim - 1 - m)], constant_values=_BORDER)
    sides = [part for size, block in zip(padded.shape[1:], blocks, strict=False) for part in (size // block, block)]
    cut = padded.reshape(padded.shape[0], *sides, *padded.shape[1 + m :])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, cut.ndim)]
    return cut.transpose(order).reshape(node.shape)


def _batch_to_space(node: Node, x: list[Any]) -> Any:
    blocks, m = node.values(1).reshape(-1).tolist(), node.values(1).size
    batch, *sizes = x[0].shape
    cut = x[0].reshape(*blocks, batch // int(np.prod(blocks)), *sizes)
    sides = [axis for i in range(m) for axis in (m + 1 + i, i)]
    whole = cut.transpose([m, *sides, *range(2 * m + 1, cut.ndim)])
    joined = whole.reshape(-1, *(size * block for size, block in zip(sizes, blocks, strict=False)), *sizes[m:])
    return joined[
        (slice(None), *(slice(a, n - b) for (a, b), n in zip(_pairs(node, 2), joined.shape[1:], strict=False)))
    ]


def _select(node: Node, x: list[Any]) -> Any:
    condition = node.values(0)
    if node.op.name == "SELECT" and condition.ndim == 1 < x[1].ndim:  # one condition for each row
        condition = condition.reshape(-1, *[1] * (x[1].ndim - 1))
    return np.where(condition != 0, x[1], x[2]).reshape(node.shape)  # kernels make scalars of single elements


def _extreme(node: Node, x: list[Any]) -> Any:
    a, b = node.values(0), node.values(1)
    return np.where(a >= b if node.op.name == "MAXIMUM" else a <= b, x[0], x[1])


def _update(node: Node, x: list[Any]) -> Any:
    size = x[1].shape
    begins = [min(max(int(b), 0), n - k) for b, n, k in zip(node.values(2).reshape(-1), x[0].shape, size, strict=True)]
    made = x[0].copy()
    made[tuple(slice(begin, begin + k) for begin, k in zip(begins, size, strict=True))] = x[1]
    return made


_MAPS: dict[str, _Map] = {
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), lambda node, x: x[0].reshape(node.shape)),
    "TRANSPOSE": lambda node, x: x[0].transpose(node.values(1)),
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _mirror_pad,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "DYNAMIC_UPDATE_SLICE": _update,
    "CONCATENATION": lambda node, x: np.concatenate(x, int(node.options.get("axis", 0))),
    "PACK": lambda node, x: np.stack(x, int(node.options.get("axis", 0))),
    "UNPACK": lambda node, x: np.moveaxis(x[0], int(node.options.get("axis", 0)), 0)[node.place],
    "SPLIT": _split,
    "SPLIT_V": _split,
    "GATHER": _gather,
    "GATHER_ND": lambda node, x: x[0][tuple(np.moveaxis(node.values(1), -1, 0))],
    "TILE": lambda node, x: np.tile(x[0], node.values(1).reshape(-1)),
    "REVERSE_V2": lambda node, x: np.flip(x[0], tuple(node.values(1).reshape(-1).tolist())),
    "BROADCAST_TO": lambda node, x: np.broadcast_to(x[0], node.shape),
    "SPACE_TO_DEPTH": _depth,
    "DEPTH_TO_SPACE": _depth,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "SELECT": _select,
    "SELECT_V2": _select,
    "MAXIMUM": _extreme,
    "MINIMUM": _extreme,
}
NAMES: tuple[str, ...] = tuple(_MAPS)


def moved(trail: Trail, node: Node) -> int:
    places = _places(node)
    source = int(_MAPS[node.op.name](node, places)[node.element])
    if source == _BORDER:
        zero = node.out_zero_point
        return int(trail.add("quantized value", zero, "outside of the input: the zero point"))
    place = next(i for i, array in enumerate(places) if array.size and source <= array.reshape(-1)[-1])
    q = _read(trail, node, place, source - int(places[place].reshape(-1)[0]))
    if node.op.name == "CONCATENATION" and node.out_type == "UINT8" and _differ(node, place):
        return _rescaled(trail, node, place, q)
    return int(trail.add("quantized value", q, "as it is"))


def _read(trail: Trail, node: Node, place: int, flat: int) -> int:
    values = node.values(place)
    index: Sequence[int] = [int(i) for i in np.unravel_index(flat, values.shape)]
    scale = float(node.scale(place)) if node.scale_count(place) else None
    text = f"input {place}, {node.needed(place).name!r} {list(index)}"
    note = f"{text}; zero point {node.zero_point(place)}, scale {scale!r}"
    return int(trail.add("q", int(values.reshape(-1)[flat]), note))


def _differ(node: Node, place: int) -> bool:
    return (node.scale(place), node.zero_point(place)) != (node.out_scale, node.out_zero_point)


def _rescaled(trail: Trail, node: Node, place: int, q: int) -> int:
    """The kernel of UINT8 values takes inputs of other scales than the output's."""
    ratio = f32(node.scale(place) * f32(f32(1) / node.out_scale))
    trail.add("k", float(ratio), "s / so, in float32")
    bias = f32(f32(-node.zero_point(place)) * ratio)
    product = trail.add("q k - z k", float(f32(f32(f32(q) * ratio) + bias)), "in float32")
    return finish(trail, node, trail.add("rounded", fx.away(product), "to the nearest, ties away from zero"))
