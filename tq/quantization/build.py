# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model by checked options: the passes in their order.

preparation.py    float weights and ranges as they are needed
weights.py        which constants become what beside float activations; write_weights.py writes them
agreement.py      which operators get integer activations, with which parameters; write_activations.py writes them
interface.py      types of inputs and outputs

Where rules ask for int8 and int16 activations in one subgraph, it is planned and written for the one type, then for the
other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from tq._core import Model
from tq.calibration.calibrate import Calibration, calibrate
from tq.calibration.encodings import Encoding
from tq.editing import versions
from tq.editing.editor import Editor
from tq.editing.graph import SubgraphPart
from tq.editing.operator import OperatorPart
from tq.editing.tensor import TensorPart
from tq.nearest import hint
from tq.quantization import unsigned, write_activations, write_weights
from tq.quantization.agreement import choose_all
from tq.quantization.choice import Choice, start
from tq.quantization.describe import PlanBuilder
from tq.quantization.interface import set_io
from tq.quantization.options import Options
from tq.quantization.plan import QuantizationPlan
from tq.quantization.preparation import FOLDED, fold_constants, split_sums
from tq.quantization.ranges import Ranges, Trained, grids_of, input_ranges, main_ran, overrides_of
from tq.quantization.recipes import FLOAT, STATIC
from tq.quantization.recurrent import inner_states
from tq.quantization.result import QuantizedModel
from tq.quantization.rules import Ruled, Ruling, check_overrides, check_rules, tensor_names
from tq.quantization.trained import (
    complete_pairs,
    fold_moves,
    has_pairs,
    join_left,
    separate,
    spread,
    take_constant_encodings,
    take_constants,
    take_encodings,
    take_fake_quants,
    take_pairs,
)
from tq.quantization.view import View
from tq.quantization.weights import can_change, check_custom_weights, find_uses
from tq.running.watching import subgraph_and_index

# What the quantizer adds to the names of tensors that it makes: a calibration of its result has those too.
_MADE = re.compile("_(u?int8|int16|int4|float32|float|dequantized|fixed|requantized|bias|hidden|mean|count|gate[0-9])$")
# The operators of a subgraph that may get integer activations, by the type of these.
Wanted = Mapping[str, Sequence[OperatorPart]]


def build(model: Model, options: Options) -> QuantizedModel:
    """The quantized model."""
    with _closing(Editor(model)) as editor:
        work = _Build(editor, model, options)
        work.run(None)
        editor.prune_operator_codes()
        return QuantizedModel.of(editor.to_bytes(), work.grids.count())


def plan(model: Model, options: Options) -> QuantizationPlan:
    """The decisions of build, on a copy of the model that nobody gets."""
    with _closing(Editor(model)) as editor:
        work = _Build(editor, model, options)
        made = PlanBuilder(editor.subgraphs, work.ruling, options.recipe)
        work.run(made)
        return made.finished()


@contextmanager
def _closing(editor: Editor) -> Iterator[Editor]:
    try:
        yield editor
    finally:
        editor.close()


class _Build:
    """One model on its way.  ruling, and the ranges of overrides and of the file, are those of the model as it was."""

    def __init__(self, editor: Editor, model: Model, options: Options) -> None:
        self._editor, self._model, self._options = editor, model, options
        self._paired = {graph for graph in editor.subgraphs if has_pairs(graph)}  # not written as integers yet
        _check_float(editor, self._paired)
        if not editor.subgraphs:
            raise ValueError("the model has no subgraphs")
        self.ruling = Ruling(editor.subgraphs, options)
        stats = input_ranges(options.input_stats, editor.subgraphs, options.recipe)
        given = overrides_of({**options.all_overrides, **stats}, editor.subgraphs)
        self.grids = grids_of(editor.subgraphs, given)
        pairs = zip(editor.subgraphs, given, strict=True) if options.is_static else ()
        self._ranges = {graph: Ranges(graph, found, self.grids) for graph, found in pairs}
        for ranges in self._ranges.values():
            ranges.default, ranges.is_unsigned = options.default_ranges, options.is_unsigned
        self._used: set[str] = set()  # the names of the overrides of activations that have an effect
        self._takes_default = False

    def run(self, plan: PlanBuilder | None) -> None:
        """Changes the model; `plan` gets the decisions."""
        editor, options = self._editor, self._options
        self._fold_constants()
        asks = not options.own_rules  # whether all that the caller asks for must have an effect
        if asks and options.rules:
            check_rules(options.recipe, options.rules, self._ruled())
        self._take_trained()
        if plan is not None:
            plan.add_prepared(editor.subgraphs)
        uses = [list(find_uses(graph, self.ruling, options)) for graph in editor.subgraphs]
        check_custom_weights(options.custom_weights, editor.subgraphs, uses)
        wanted = self._wanted()
        if any(wanted.values()):
            self._calibrate()
        if plan is not None:
            plan.add_weights(uses)
        write_weights.write(editor, uses, self.grids)
        made = self._write_activations(wanted, plan) if any(wanted.values()) else []
        if not made and not any(uses):
            raise ValueError(_nothing(options))
        given = [*options.overrides, *options.input_stats]
        if asks and given:
            names = (name for ranges in self._ranges.values() for name in ranges.names())
            check_overrides(given, self._used | self.grids.used, names)
        if asks and options.default_ranges is not None and not self._takes_default:
            raise ValueError("default_ranges is given and has no effect: the range of every activation is known")
        if asks and not any(wanted.values()):
            self._check_encodings(use.tensor for chosen in uses for use in chosen)
        if not set_io(editor, self._model, options.io) and asks and options.io != "float32":
            raise ValueError(f"io is {options.io!r} and has no effect: no input or output is an integer inside")

    # -- preparation

    def _fold_constants(self) -> None:
        """Float weights that the file keeps otherwise, where they are to become integers."""
        for graph in self._editor.subgraphs:
            if any(op.builtin_name in FOLDED for op in graph.operators):
                found = [(op, self.ruling.recipe(op, graph.index)) for op in graph.operators]
                wanted = [op for op, row in found if row.form != FLOAT and row.weights != "float16"]
                fold_constants(graph, self._model, wanted)

    def _take_trained(self) -> None:
        """The parameters that training chose (trained.py)."""
        if self._options.recipe.form == FLOAT and not self._options.all_rules:
            return
        given = self._options.calibration
        encodings = given.encodings if isinstance(given, Calibration) else {}
        _check_names(self._editor, encodings)
        wanted = self._wanted()
        for graph, operators in wanted.items():
            if graph in self._paired:
                take_constants(graph, self.grids)
            trained = self._take_pairs(graph) if graph in self._paired and operators else {}
            trained |= take_fake_quants(graph, bool(operators), self.grids)
            fold_moves(graph, self.grids)
            take_constant_encodings(graph, encodings, self.grids)
            if graph in self._ranges and operators:
                ranges, type_ = self._ranges[graph], next(iter(operators))
                trained = take_encodings(graph, encodings) | trained
                ranges.train(trained)
                if trained:
                    spread(graph, ranges, type_)
                    separate(graph, ranges, type_)
        _check_float(self._editor, [graph for graph in self._paired if not wanted[graph]])

    def _take_pairs(self, graph: SubgraphPart) -> dict[TensorPart, Trained]:
        complete_pairs(graph, self._ranges[graph])
        return take_pairs(graph, self.grids)

    def _check_encodings(self, weights: Iterable[TensorPart]) -> None:
        """ValueError: none of the weights got the scale that the calibration has for it."""
        given = self._options.calibration
        if not isinstance(given, Calibration) or not given.encodings or self._options.runs_samples:
            return
        if not any(tensor.name in given.encodings for tensor in weights if self.grids.holds(tensor)):
            raise ValueError("calibration is given and has no effect: no weights can have the scales that it has")

    def _wanted(self) -> dict[SubgraphPart, Wanted]:
        found: dict[SubgraphPart, dict[str, list[OperatorPart]]] = {graph: {} for graph in self._editor.subgraphs}
        if self._options.is_static:
            for graph, operators in found.items():
                for op in graph.operators:
                    recipe = self.ruling.recipe(op, graph.index)
                    lacks = recipe.weights == "uint8" and op.builtin_name in unsigned.WITHOUT
                    if recipe.form == STATIC and not lacks:
                        operators.setdefault(recipe.activations, []).append(op)
        return dict(found)

    def _ruled(self) -> list[Ruled]:
        """All operators, as rules see them."""
        found = []
        for graph in self._editor.subgraphs:
            for place, op in enumerate(graph.operators):
                can = partial(can_change, op, options=self._options)
                found.append(Ruled(graph.index, self.ruling.place(op, place), op.name, tensor_names(op), can))
        return found

    def _calibrate(self) -> None:
        known = any(self._ranges.values()) or self._options.default_ranges is not None
        seen = _calibration(self._model, self._options, known)
        ran = main_ran(seen)
        for ranges in self._ranges.values():
            ranges.calibrate(seen, ran)

    # -- integer activations

    def _write_activations(self, wanted: Mapping[SubgraphPart, Wanted], plan: PlanBuilder | None) -> list[OperatorPart]:
        """Returns the integer operators and what was put between, each with its version."""
        entries = [0, *(item.subgraph_index for item in self._model.signatures)]
        other = max((type_ for operators in wanted.values() for type_ in list(operators)[:1]), default="int8")
        types = {graph: next(iter(operators), other) for graph, operators in wanted.items()}
        first = {graph: self._prepared(graph, wanted[graph].get(types[graph], ())) for graph in wanted}
        choices, constraints = choose_all(list(wanted), first, types, self._ranges, entries)
        if plan is not None:
            plan.add_constraints(constraints)
        made = []
        for choice in choices:
            here = self._write(choice, plan)
            for type_ in list(wanted[choice.graph])[1:]:
                operators = self._prepared(choice.graph, wanted[choice.graph][type_])
                view = View.of(choice.graph, self._ranges[choice.graph], type_)
                here += self._write(start(view, operators), plan)
            made += write_activations.join(here) if len(wanted[choice.graph]) > 1 else here
            join_left(choice.graph)
        for operator in made:
            operator.share_version(versions.needed(operator))
        return made

    def _prepared(self, graph: SubgraphPart, operators: Sequence[OperatorPart]) -> list[OperatorPart]:
        return [*operators, *split_sums(graph, operators, self._ranges[graph])]

    def _write(self, choice: Choice, plan: PlanBuilder | None) -> list[OperatorPart]:
        self._used |= _used_overrides(choice)
        self._takes_default |= bool(choice.parameters.defaults)
        if plan is not None:
            plan.add_choice(choice, self._options.per_axis, self._options.is_unsigned)
        narrow = [op for op in choice.operators if self.ruling.recipe(op, choice.graph.index).weights == "int4"]
        return write_activations.write(choice, self._options.per_axis, narrow, self._options.is_unsigned)


def _used_overrides(choice: Choice) -> set[str]:
    """The names of overrides of tensors that integer operators read or write."""
    states = [state for op in choice.operators if choice.view.row(op).recurrent for state in inner_states(op)]
    tensors = [*(tensor for tensor in choice.parameters.groups.roots if choice.is_integer(tensor)), *states]
    return {name for tensor in tensors if (name := choice.view.ranges.override_name(tensor)) is not None}


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
        observer, limits = options.observer or "minmax", options.limits._asdict()
        return calibrate(model, given, observer=observer, percentile=options.percentile, **limits)
    if options.observer is not None:
        given = given.with_observer(options.observer, options.percentile)
    if not given.samples and not given.encodings:
        raise ValueError("the calibration is empty")
    for key, name in given.names.items():
        subgraph, index = subgraph_and_index(key)
        tensors = model.subgraphs[subgraph].tensors if subgraph < len(model.subgraphs) else ()
        found = tensors[index].name if index < len(tensors) else None
        if found != name:
            raise ValueError(f"the calibration is of another model: its tensor {index} is {name!r}, not {found!r}")
    return given


def _check_names(editor: Editor, encodings: Mapping[str, Encoding]) -> None:
    known = {tensor.name for graph in editor.subgraphs for tensor in graph.tensors} if encodings else set()
    if encodings and not known & encodings.keys():
        raise ValueError(f"the calibration is of another model, which has no tensor {next(iter(encodings))!r}")
    missing = [name for name in encodings if name not in known and _MADE.sub("", name) not in known]
    if missing:
        near = hint(missing[0], known)
        warnings.warn(
            f"the calibration has ranges of {len(missing)} tensors that the model lacks, as {missing[0]!r}{near}",
            RuntimeWarning,
            stacklevel=2,
        )


def _nothing(options: Options) -> str:
    if options.recipe.form == STATIC:
        why = "no operator has an integer kernel, and a range with an end for what it reads and writes"
        return f"recipe {options.recipe.name!r} finds nothing to quantize: {why}"
    least = f" of at least {options.min_elements} elements" if options.recipe.weights != "float16" else ""
    return f"recipe {options.recipe.name!r} finds nothing to quantize: no operator it is for has float32 weights{least}"


def _check_float(editor: Editor, paired: Collection[SubgraphPart]) -> None:
    """ValueError: a subgraph that is not among the `paired` holds integers that stand for real values."""
    for graph in editor.subgraphs:
        if graph in paired:
            continue
        for tensor in graph.tensors:
            if tensor.type_name in write_weights.INTEGERS and len(tensor.quantization.scale):
                raise ValueError(
                    f"the model is quantized already: {tensor!r} in subgraph {graph.index} holds quantized values"
                )
