# SPDX-License-Identifier: Apache-2.0
"""The float model from which tq.quantize_model plans: it computes the same, in a form that can be quantized.

This is the only step that edits the model before there is a plan: float weights become plain constants
(preparation.py), operators of training go and leave ranges and grids (trained.py), calibration runs the samples, SUM
becomes MEAN and MUL, and narrow tensors get a QUANTIZE before operators that widen their range (narrow.py).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from tq._core import Model
from tq.calibration.calibrate import Calibration, calibrate
from tq.calibration.encodings import Encoding
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart
from tq.nearest import hint
from tq.quantization import unsigned
from tq.quantization.grids import Grids
from tq.quantization.narrow import requantize_narrow
from tq.quantization.options import Options
from tq.quantization.preparation import FOLDED, fold_constants, split_sums
from tq.quantization.ranges import Ranges, grids_of, input_ranges, main_ran, overrides_of
from tq.quantization.recipes import FLOAT, STATIC, Recipe
from tq.quantization.rules import Ruled, Ruling, check_rules
from tq.quantization.trained import (
    complete_pairs,
    fold_moves,
    fold_moves_before,
    has_pairs,
    separate,
    spread,
    take_constant_encodings,
    take_constants,
    take_encodings,
    take_fake_quants,
    take_pairs,
)
from tq.quantization.weights import can_change, check_custom_weights, find_uses
from tq.running.recurrent import inside
from tq.running.watching import subgraph_and_index

# The operators of a subgraph that may get integer activations, by the type of these.
Wanted = Mapping[str, Sequence[OperatorPart]]

# The endings of names that the quantizer gives new tensors.  A calibration of a quantized model has such names too.
_MADE = re.compile("_(u?int8|int16|int4|float32|float|dequantized|fixed|requantized|bias|hidden|mean|count|gate[0-9])$")
_INTEGERS = ("INT8", "UINT8", "INT16", "INT4", "UINT4", "INT2")


@dataclass(frozen=True)
class Original:
    """An operator of the model as it was, and its recipe."""

    operator: OperatorPart
    subgraph: int
    index: int
    name: str
    recipe: Recipe


@dataclass(frozen=True)
class Prepared:
    """The input of the passes; none of them changes it.

    ruling, and the ranges of overrides and of the file, are those of the model as it was.
    ranges: of each subgraph, where operators may get integer activations.
    entries: subgraphs that a caller of the model runs.
    """

    options: Options
    original: tuple[Original, ...]
    graphs: tuple[SubgraphPart, ...]
    ruling: Ruling
    grids: Grids
    ranges: Mapping[SubgraphPart, Ranges]
    wanted: Mapping[SubgraphPart, Wanted]
    entries: tuple[int, ...]

    def recipe(self, op: OperatorPart) -> Recipe:
        return self.ruling.recipe(op, op.subgraph.index)


def prepare(editor: Editor, model: Model, options: Options) -> Prepared:
    """Changes the editor's model, which is `model`.

    ValueError: a model that is quantized already; rules, overrides or custom weights without effect or without their
    operator or tensor; a calibration that is missing or of another model."""
    pairs = frozenset(graph for graph in editor.subgraphs if has_pairs(graph))
    _check_float(editor, pairs)
    if not editor.subgraphs:
        raise ValueError("the model has no subgraphs")
    read = _read(editor, model, options)
    _fold_constants(read, model)
    if not options.own_rules and options.rules:
        check_rules(options.recipe, options.rules, _ruled(read))
    _take_trained(read, pairs)
    _check_float(editor, [graph for graph, operators in _wanted(read).items() if graph in pairs and not operators])
    if options.custom_weights:
        uses = [list(find_uses(graph, read.ruling, options)) for graph in read.graphs]
        check_custom_weights(options.custom_weights, read.graphs, uses)
    wanted = _wanted(read)
    if any(wanted.values()):
        _calibrate(read, model)
    split = {graph: _split(graph, wanted[graph], read.ranges) for graph in wanted}
    return replace(read, wanted=MappingProxyType(split))


def _read(editor: Editor, model: Model, options: Options) -> Prepared:
    """The model as it is, with the ranges that the caller and the file give."""
    graphs = tuple(editor.subgraphs)
    ruling = Ruling(graphs, options)
    stats = input_ranges(options.input_stats, graphs, options.recipe)
    given = overrides_of({**options.all_overrides, **stats}, graphs)
    grids = grids_of(graphs, given)
    pairs = zip(graphs, given, strict=True) if options.is_static else ()
    ranges = {graph: Ranges(graph, found, grids) for graph, found in pairs}
    for item in ranges.values():
        item.default, item.is_unsigned = options.default_ranges, options.is_unsigned
    entries = (0, *(item.subgraph_index for item in model.signatures))
    for graph, item in ranges.items():
        item.has_integer_ends = options.io != "float32" and graph.index in entries
    original = tuple(
        Original(op, graph.index, index, op.name, ruling.recipe(op, graph.index))
        for graph in graphs
        for index, op in enumerate(graph.operators)
    )
    return Prepared(options, original, graphs, ruling, grids, MappingProxyType(ranges), {}, entries)


def _fold_constants(read: Prepared, model: Model) -> None:
    """Weights that the file stores as float16 or sparse become float32, where they are to become integers."""
    for graph in read.graphs:
        if any(op.builtin_name in FOLDED for op in graph.operators):
            found = [(op, read.recipe(op)) for op in graph.operators]
            wanted = [op for op, row in found if row.form != FLOAT and row.weights != "float16"]
            fold_constants(graph, model, wanted)


def _ruled(read: Prepared) -> list[Ruled]:
    """All operators, as rules see them."""
    found = []
    for graph in read.graphs:
        for index, op in enumerate(graph.operators):
            can = partial(can_change, op, options=read.options)
            found.append(read.ruling.ruled(op, graph.index, read.ruling.index(op, index), can))
    return found


def _take_trained(read: Prepared, pairs: Collection[SubgraphPart]) -> None:
    """The parameters that training chose.  pairs: the subgraphs in which QUANTIZE before DEQUANTIZE sets some."""
    options, grids = read.options, read.grids
    if options.recipe.form == FLOAT and not options.all_rules:
        return
    given = options.calibration
    encodings = given.encodings if isinstance(given, Calibration) else {}
    _check_names(read.graphs, encodings)
    for graph, operators in _wanted(read).items():
        fold_moves_before(graph)
        if graph in pairs:
            take_constants(graph, grids)
        trained = {}
        if graph in pairs and operators:
            complete_pairs(graph, read.ranges[graph])
            trained = take_pairs(graph, read.ranges[graph])
        trained |= take_fake_quants(graph, bool(operators), grids)
        fold_moves(graph, grids)
        take_constant_encodings(graph, encodings, grids)
        if graph in read.ranges and operators:
            ranges, type_ = read.ranges[graph], next(iter(operators))
            trained = take_encodings(graph, encodings) | trained
            ranges.train(trained)
            if trained:
                spread(graph, ranges, type_)
                separate(graph, ranges, type_)


def _wanted(read: Prepared) -> dict[SubgraphPart, Wanted]:
    found: dict[SubgraphPart, dict[str, list[OperatorPart]]] = {graph: {} for graph in read.graphs}
    if read.options.is_static:
        for graph, operators in found.items():
            for op in graph.operators:
                recipe = read.recipe(op)
                lacks = recipe.weights == "uint8" and op.builtin_name in unsigned.WITHOUT
                if recipe.form == STATIC and not lacks:
                    operators.setdefault(recipe.activations, []).append(op)
    return dict(found)


def _split(graph: SubgraphPart, wanted: Wanted, ranges: Mapping[SubgraphPart, Ranges]) -> Wanted:
    """The operators, with the MULs that SUMs among them need, and the QUANTIZEs of narrow tensors."""
    found: dict[str, Sequence[OperatorPart]] = {}
    for type_, operators in wanted.items():
        found[type_] = (*operators, *split_sums(graph, operators, ranges[graph]))
        if type_ == "int8":
            found[type_] = (*found[type_], *requantize_narrow(graph, found[type_], ranges[graph]))
    return MappingProxyType(found)


def _calibrate(read: Prepared, model: Model) -> None:
    known = any(read.ranges.values()) or read.options.default_ranges is not None
    seen = _calibration(model, read.options, known)
    ran = main_ran(seen)
    for ranges in read.ranges.values():
        ranges.calibrate(seen, ran)


def _calibration(model: Model, options: Options, has_ranges: bool) -> Calibration | None:
    given = options.calibration
    if given is None:
        if has_ranges:
            return None
        name = options.recipe.name if options.recipe.form == STATIC else "int8"
        raise ValueError(
            f"recipe {name!r} needs calibration=: a tq.Calibration, or samples as tq.calibrate takes them; "
            "the model holds no ranges"
        )
    if not isinstance(given, Calibration):
        return calibrate(
            model,
            given,
            observer=options.observer or "minmax",
            percentile=options.percentile,
            num_threads=options.num_threads,
            executor=options.executor,
            **options.limits._asdict(),
        )
    if options.observer is not None:
        given = given.with_observer(options.observer, options.percentile)
    if not given.samples and not given.encodings:
        raise ValueError("the calibration is empty")
    for key, name in given.names.items():
        subgraph, index = subgraph_and_index(key)
        tensors = model.subgraphs[subgraph].tensors if subgraph < len(model.subgraphs) else ()
        found = tensors[index].name if index < len(tensors) else None
        if found is None or name not in (found, inside(found)):
            raise ValueError(f"the calibration is of another model: its tensor {index} is {name!r}, not {found!r}")
    return given


def _check_names(graphs: Sequence[SubgraphPart], encodings: Mapping[str, Encoding]) -> None:
    known = {tensor.name for graph in graphs for tensor in graph.tensors} if encodings else set()
    if encodings and not known & encodings.keys():
        raise ValueError(f"the calibration is of another model, which has no tensor {next(iter(encodings))!r}")
    known |= set(map(inside, known))
    missing = [name for name in encodings if name not in known and _MADE.sub("", name) not in known]
    if missing:
        near = hint(missing[0], known)
        warnings.warn(
            f"the calibration has ranges of {len(missing)} tensors that the model lacks, as {missing[0]!r}{near}",
            RuntimeWarning,
            stacklevel=2,
        )


def _check_float(editor: Editor, pairs: Collection[SubgraphPart]) -> None:
    """ValueError: a subgraph that is not among `pairs` holds integers that stand for real values."""
    for graph in [graph for graph in editor.subgraphs if graph not in pairs]:
        for tensor in graph.tensors:
            if tensor.type_name in _INTEGERS and len(tensor.quantization.scale):
                raise ValueError(
                    f"the model is quantized already: {tensor!r} in subgraph {graph.index} holds quantized values; "
                    "tq.dequantize_model makes a float model of it"
                )
