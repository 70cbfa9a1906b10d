# SPDX-License-Identifier: Apache-2.0
"""Post-training quantization: tq.quantize_model.

    tq.quantize_model("float.tflite", "dynamic_int8", output="int8.tflite")

What is chosen first, operator by operator, is which constants become what (_chosen); then each is quantized once
(_Constants), and the operators read the result, themselves or through a DEQUANTIZE (_apply).  The arithmetic of weights
is tq.quantize_weights'; what is not quantized is written as it was.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tq import _core, better, effects, ranges, recipes, saving, versions
from tq._core import Model, QuantizationParams
from tq.bodies import callees, place_of
from tq.calibration import Calibration, calibrate
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.editor import Editor
from tq.integer import FLOAT as STAYS_FLOAT
from tq.recipes import DEQUANTIZED, FLOAT, HYBRID, STATIC, WEIGHTS, Recipe, Rule
from tq.sources import Source, kept

_CODES = ("INT8", "UINT8", "INT16", "INT4", "UINT4", "INT2")
_IO_TYPES = ("float32", "int8", "uint8", "int16")


class _Target(NamedTuple):
    """What a constant becomes."""

    form: str
    type: str
    axis: int | None = None
    block_size: int = 0
    channels: int = 0  # how many scales are written where axis is None and there are several; 0: one
    channel_axis: int = 0


class _Use(NamedTuple):
    """A constant that an operator reads, and what it is to become there."""

    operator: OperatorPart
    input: int
    tensor: TensorPart
    target: _Target


class Options(NamedTuple):
    """What quantize_model is asked for, checked."""

    recipe: Recipe
    rules: tuple[Rule, ...]
    per_axis: bool
    min_elements: int
    block_size: int
    places: Mapping[OperatorPart, int] = {}  # in the model as it was, where rules ask for them


def quantize_model(
    model: Source,
    recipe: str = "int8",
    *,
    calibration: Calibration | Iterable[Any] | None = None,
    observer: str | None = None,
    percentile: float = 99.99,
    io: str = "float32",
    per_axis: bool = True,
    rules: Iterable[Rule] = (),
    overrides: Mapping[str, tuple[float, float] | QuantizationParams] | None = None,
    min_elements: int = 1024,
    block_size: int = 32,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    equalize: bool = False,
    bias_correction: bool = False,
    target_sqnr: float | None = None,
    fallback: str = "float",
    samples: Iterable[Any] | Mapping[str, Any] | None = None,
) -> bytes:
    """A float model, quantized.

    model: a path, bytes or a tq.Model, which stays as it is.
    recipe: "int8", "int16x8": int8 weights, and activations of int8 or int16, whose ranges come from calibration;
        operators without an integer kernel stay float32 between DEQUANTIZE and QUANTIZE (docs/quantization.md lists
        them).  The other recipes leave activations float32
        and need no calibration.  "dynamic_int8", "dynamic_int4": integer weights, which kernels multiply with
        activations that they quantize to 8 bits as they run.  "blockwise_int4": so, with a scale for each `block_size`
        weights of a row; of FULLY_CONNECTED alone.  "weight_only_int8", "weight_only_int4", "float16": weights behind a
        DEQUANTIZE (for float16, all float constants of two numbers and more).
    calibration: a tq.Calibration of this model, or samples as tq.calibrate takes them, of one signature or several;
        subgraphs that only signatures without samples run stay float32.  FAKE_QUANT operators go, and
        their ranges are taken before a calibration's; those that the file stores as min and max, where there is none.
    observer, percentile: how ranges are found, as for tq.calibrate: "minmax" by default, "moving_average",
        "percentile", "mse", "entropy".  Of a tq.Calibration, whose own choice is the default, it asks for histograms.
    io: the type of each signature's inputs and outputs that are integers inside: "float32"; "int8" or "uint8" where
        those are int8, "int16" where they are int16.
    per_axis: a scale for each channel, where the operator's kernel takes them; else one for each constant.
    rules: tq.Rule objects, for operators that get another recipe; the last that holds is taken.
    overrides: for activations of recipes "int8" and "int16x8", by the tensor's name: a range (low, high), or the
        parameters, tq.QuantizationParams((scale, zero_point)).  A name that the first subgraph lacks is looked for in
        the others.  Tensors that must have equal parameters get them too.
    min_elements: weights with fewer stay float32; TFLiteConverter's number by default.  Does not concern float16.
    block_size: of blockwise_int4: 32, 64, 128 or 256; rows that it does not divide get a scale each.
    output: a path to write the model to as well; the file appears whole or not at all.
    in_place: `output` may be the path of `model`.
    equalize: scale channels first so that they quantize better: see tq.equalize.
    bias_correction: take what rounding shifts mean outputs by back through biases: see tq.correct_biases.
    target_sqnr: in dB: while the outputs' signal to noise over all samples is under it, the operators that cost
        most (tq.sensitivity) get the recipe `fallback`: "float", or "int16x8" where the others are int8.
    samples: what these three run, as tq.calibrate takes them; by default the calibration, where that is samples.

    Returns the quantized model.  int8 weights are TFLiteConverter's, int4 weights ai-edge-quantizer's to the bit
    (but no scale of a block is 0).
    Operators are given the versions that their kernels have.  Weights that several operators share stay shared.
    ValueError: no such recipe; a model that is quantized already, weights that are not finite, nothing to quantize;
    a calibration that is missing, empty, of another model, or without a finite value of a tensor; overrides of a tensor
    that does not exist, or that contradict each other; an io that an input or output is not inside; a rule, an override
    or an option that has no effect.  OSError: output is the model's own path, an input, no regular file, or read-only.
    """
    model, rules = kept(model), tuple(rules)
    goal = saving.target(output, calibration, samples, model=model, in_place=in_place)
    options = _options(recipe, rules, per_axis, min_elements, block_size)
    if io not in _IO_TYPES:
        raise ValueError(f"io is {io!r}; it must be one of {', '.join(map(repr, _IO_TYPES))}")
    arguments = {name: value for name, value in locals().items() if name in _ARGUMENTS}
    effects.check_options(arguments)
    asked = {name: arguments.pop(name) for name in _BETTER}
    result = better.quantize(arguments, asked, build) if effects.runs_samples(asked) else build(**arguments)
    if goal is not None:
        goal.save(result)
    return result


# What build() takes, and what tq.better does around it.
_BUILD = (
    "model", "recipe", "calibration", "observer", "percentile", "io", "per_axis", "rules", "overrides", "min_elements",
    "block_size",
)  # fmt: skip
_BETTER = ("equalize", "bias_correction", "target_sqnr", "fallback", "samples")
_ARGUMENTS = frozenset((*_BUILD, *_BETTER))


def build(
    model: Model,
    recipe: str,
    *,
    calibration: Calibration | Iterable[Any] | None,
    observer: str | None,
    percentile: float,
    io: str,
    per_axis: bool,
    rules: Sequence[Rule],
    overrides: Mapping[str, tuple[float, float] | QuantizationParams] | None,
    min_elements: int,
    block_size: int,
    own_rules: Sequence[Rule] = (),
    own_overrides: Mapping[str, QuantizationParams] | None = None,
) -> bytes:
    """tq.quantize_model of arguments that are checked.

    own_rules, own_overrides: of tq itself, behind the caller's rules and before the caller's overrides.  What the
    caller asks for need not have an effect where own_rules take operators away.
    """
    options = _options(recipe, (*rules, *own_rules), per_axis, min_elements, block_size)
    asked = _Asked((), (), False) if own_rules else _Asked(tuple(rules), tuple(overrides or ()), io != "float32")
    every = {**(own_overrides or {}), **(overrides or {})}
    editor = Editor(model)
    try:
        return _quantized(editor, model, options, calibration, observer, percentile, io, every, asked)
    finally:
        editor.close()


class _Asked(NamedTuple):
    """What the caller asks for, which must have an effect."""

    rules: tuple[Rule, ...]
    overrides: tuple[str, ...]
    io: bool


def _quantized(
    editor: Editor,
    opened: Model,
    options: Options,
    calibration: Calibration | Iterable[Any] | None,
    observer: str | None,
    percentile: float,
    io: str,
    overrides: Mapping[str, tuple[float, float] | QuantizationParams],
    asked: _Asked,
) -> bytes:
    _check_float(editor)
    if not editor.subgraphs:
        raise ValueError("the model has no subgraphs")
    options = options._replace(places=_places(editor, options.rules))
    given = ranges.check_overrides(overrides, editor.subgraphs)
    known = []
    if _has_static(options):
        known = [ranges.Ranges(graph, found) for graph, found in zip(editor.subgraphs, given, strict=True)]
    _fold(editor, opened, options)
    effects.check_rules(options.recipe, asked.rules, _ruled(editor, options) if asked.rules else ())
    for place, operators in enumerate(_static(editor, options)):
        if options.recipe.form != FLOAT or options.rules:
            trained = ranges.fold_fake_quant(editor.subgraphs[place], bool(operators))
            if known:
                known[place].train(trained)
    uses = [list(_chosen(graph, options)) for graph in editor.subgraphs]
    static = _static(editor, options)
    if any(static):
        seen = _calibration(opened, calibration, observer, percentile, known, options)
        for found in known:
            found.calibrate(seen)
    constants = _Constants(editor)
    for graph, chosen in zip(editor.subgraphs, uses, strict=True):
        _apply(graph, chosen, constants)
    constants.release()
    made = []
    if any(static):
        entries = [0, *(item.subgraph_index for item in opened.signatures)]
        made = _make_static(editor, static, known, options.per_axis, entries)
    if not made and not any(uses):
        raise ValueError(_nothing(options))
    if asked.overrides:
        used = [name for found in known for name in found.used]
        effects.check_overrides(asked.overrides, used, (name for found in known for name in found.names()))
    if not _set_io(editor, opened, io) and asked.io:
        raise ValueError(f"io is {io!r} and has no effect: no input or output is an integer inside")
    editor.prune_operator_codes()
    return editor.to_bytes()


def _fold(editor: Editor, model: Model, options: Options) -> None:
    """Float weights that are kept otherwise, where they are to become codes."""
    from tq.folding import FOLDED, fold_constants

    if FOLDED.isdisjoint(editor.code_names()):
        return
    for graph in editor.subgraphs:
        found = [(op, _recipe_of(op, graph.index, options)) for op in graph.operators]
        fold_constants(graph, model, [op for op, row in found if row.form != FLOAT and row.weights != "float16"])


def _has_static(options: Options) -> bool:
    return any(row.form == STATIC for row in (options.recipe, *(recipes.find(rule.recipe) for rule in options.rules)))


def _static(editor: Editor, options: Options) -> list[dict[str, list[OperatorPart]]]:
    """The operators of each subgraph that get integer activations, by the type of these."""
    found: list[dict[str, list[OperatorPart]]] = [{} for _ in editor.subgraphs]
    if not _has_static(options):
        return found
    for graph, operators in zip(editor.subgraphs, found, strict=True):
        for op in graph.operators:
            recipe = _recipe_of(op, graph.index, options)
            if recipe.form == STATIC:
                operators.setdefault(recipe.activations, []).append(op)
    return found


def _calibration(
    model: Model,
    given: Calibration | Iterable[Any] | None,
    observer: str | None,
    percentile: float,
    known: Sequence[ranges.Ranges],
    options: Options,
) -> Calibration | None:
    if given is None:
        if any(known):
            return None
        name = options.recipe.name if options.recipe.form == STATIC else "int8"
        raise ValueError(
            f"recipe {name!r} needs calibration=: a tq.Calibration, or samples as tq.calibrate takes them; "
            "the model holds no ranges"
        )
    if not isinstance(given, Calibration):
        return calibrate(model, given, observer=observer or "minmax", percentile=percentile)
    if observer is not None:
        given = given.with_observer(observer, percentile)
    if not given.samples:
        raise ValueError("the calibration is empty")
    for key, name in given.names.items():
        subgraph, index = place_of(key)
        tensors = model.subgraphs[subgraph].tensors if subgraph < len(model.subgraphs) else ()
        found = tensors[index].name if index < len(tensors) else None
        if found != name:
            raise ValueError(f"the calibration is of another model: its tensor {index} is {name!r}, not {found!r}")
    return given


def _make_static(
    editor: Editor,
    operators: Sequence[Mapping[str, Sequence[OperatorPart]]],
    known: Sequence[ranges.Ranges],
    per_axis: bool,
    entries: Sequence[int],
) -> list[OperatorPart]:
    from tq.static import quantize

    made = quantize(editor.subgraphs, operators, known, per_axis, entries)
    for operator in made:
        _set_version(operator, versions.needed(operator))
    return made


def _ruled(editor: Editor, options: Options) -> list[effects.Ruled]:
    """All operators, as rules see them."""
    found = []
    for graph in editor.subgraphs:
        for place, op in enumerate(graph.operators):
            can = partial(_can_change, op, options=options)
            at = options.places.get(op, place)
            found.append(effects.Ruled(graph.index, at, op.name, _ruled_names(op), can))
    return found


def _can_change(operator: OperatorPart, recipe: Recipe, *, options: Options) -> bool:
    """Whether a recipe may make something else of an operator."""
    if recipe.form == STATIC:
        return operator.name not in STAYS_FLOAT and (operator.builtin_name or "CUSTOM") != "CUSTOM"
    if recipe.form == FLOAT:
        return False
    if recipe.weights == "float16":
        return any(_is_plain_float(tensor) and prod(tensor.shape) > 1 for tensor in operator.inputs if tensor)
    return any(_codes(operator, recipe, options))


def _set_io(editor: Editor, model: Model, io: str) -> bool:
    """Changes those inputs and outputs of the first subgraph, and of those that signatures run, that the model turns
    into codes, or makes from them.  A subgraph that operators call keeps what these give it.  False: there are none."""
    if io == "float32":
        return False
    called = {place for graph in model.subgraphs for op in graph.operators for place in callees(model, op)}
    places = dict.fromkeys([0, *(item.subgraph_index for item in model.signatures)])
    graphs = [editor.subgraphs[i] for i in places if i not in called and 0 <= i < len(editor.subgraphs)]
    return any([_set_graph_io(graph, io) for graph in graphs])


def _set_graph_io(graph: SubgraphPart, io: str) -> bool:
    wanted = {"inputs": {}, "outputs": {}}  # type: dict[str, dict[TensorPart, str]]
    for tensor in graph.inputs:
        readers = tensor.consumers if tensor is not None else []
        if tensor is not None and readers and all(op.name == "QUANTIZE" for op in readers):
            codes = [item for op in readers for item in op.outputs if item is not None]
            wanted["inputs"][tensor] = _io_type("input", tensor, codes, io)
            if tensor in graph.outputs:  # handed through
                wanted["outputs"][tensor] = wanted["inputs"][tensor]
    for tensor in graph.outputs:
        producer = tensor.producer if tensor is not None else None
        if tensor is not None and producer is not None and producer.name == "DEQUANTIZE":
            codes = [item for item in producer.inputs if item is not None]
            wanted["outputs"][tensor] = _io_type("output", tensor, codes, io)
    from tq.io_types import set_io_types

    set_io_types(graph, wanted["inputs"], wanted["outputs"])
    return any(wanted.values())


def _io_type(what: str, tensor: TensorPart, codes: Sequence[TensorPart], io: str) -> str:
    inside = {str(getattr(item.type, "name", "")).lower() for item in codes}
    fitting = {"int16": {"int16"}}.get(io, {"int8"})
    if inside != fitting:
        raise ValueError(f"io is {io!r}, but {what} {tensor.name!r} is {' and '.join(sorted(inside))} inside")
    return io


def _options(recipe: str, rules: Iterable[Rule], per_axis: bool, min_elements: int, block_size: int) -> Options:
    found = recipes.find(recipe)
    rows = tuple(rules)
    for rule in rows:
        if not isinstance(rule, Rule):
            raise TypeError(f"rules must be tq.recipes.Rule objects, not {rule!r}")
    if block_size not in (32, 64, 128, 256):
        raise ValueError(f"block_size is {block_size}; TFLite's kernels take 32, 64, 128 and 256")
    if min_elements < 0:
        raise ValueError(f"min_elements is {min_elements}; it must not be negative")
    return Options(found, rows, bool(per_axis), min_elements, block_size)


def _places(editor: Editor, rules: Sequence[Rule]) -> dict[OperatorPart, int]:
    if all(rule.index is None for rule in rules):
        return {}
    return {op: place for graph in editor.subgraphs for place, op in enumerate(graph.operators)}


def _nothing(options: Options) -> str:
    if options.recipe.form == STATIC:
        why = "no operator has an integer kernel, and a range with an end for what it reads and writes"
        return f"recipe {options.recipe.name!r} finds nothing to quantize: {why}"
    least = f" of at least {options.min_elements} elements" if options.recipe.weights != "float16" else ""
    return f"recipe {options.recipe.name!r} finds nothing to quantize: no operator it is for has float32 weights{least}"


def _check_float(editor: Editor) -> None:
    for graph in editor.subgraphs:
        for tensor in graph.tensors:
            if tensor.type_name in _CODES and len(tensor.quantization.scale):
                raise ValueError(f"the model is quantized already: {tensor!r} in subgraph {graph.index} holds codes")


# ---- what becomes what ----


def _recipe_of(operator: OperatorPart, graph: int, options: Options) -> Recipe:
    if not options.rules:
        return options.recipe
    names = _ruled_names(operator)
    name, found = operator.name, options.recipe
    for rule in options.rules:
        if rule.holds(name, graph, names, options.places.get(operator)):
            found = recipes.find(rule.recipe)
    return found


def _ruled_names(operator: OperatorPart) -> list[str]:
    """The names that a rule's `tensor` is searched for in."""
    tensors = [*operator.outputs, *(tensor for tensor in operator.inputs if tensor and tensor.is_constant)]
    return [tensor.name for tensor in tensors if tensor is not None]


def _chosen(graph: SubgraphPart, options: Options) -> Iterator[_Use]:
    place = graph.index
    for operator in graph.operators:
        recipe = _recipe_of(operator, place, options)
        if recipe.form in (FLOAT, STATIC):
            continue
        if recipe.weights == "float16":
            yield from _halves(operator)
        else:
            yield from _codes(operator, recipe, options)


def _is_plain_float(tensor: TensorPart | None) -> bool:
    return (
        tensor is not None
        and tensor.type_name == "FLOAT32"
        and tensor.is_constant
        and not tensor.is_variable
        and not tensor.is_sparse
    )


def _halves(operator: OperatorPart) -> Iterator[_Use]:
    """All float constants of a builtin operator.  But not single numbers, where nothing is saved and an epsilon becomes
    0, and those with infinities, which float16's greatest number cannot stand for."""
    if operator.name in recipes.READ_WHEN_PREPARED or operator.builtin_name in (None, "CUSTOM"):
        return
    for place, tensor in enumerate(operator.inputs):
        data = tensor.data if tensor is not None and _is_plain_float(tensor) else None
        if tensor is None or data is None or data.size < 2:
            continue
        _, _, ((_, nans, infinities),) = _core._observe(data, None, None)
        if infinities:
            continue
        if nans:
            raise ValueError(f"{tensor!r} holds NaN; weights must be numbers")
        yield _Use(operator, place, tensor, _Target(DEQUANTIZED, "float16"))


def _codes(operator: OperatorPart, recipe: Recipe, options: Options) -> Iterator[_Use]:
    """The weights of an operator, if all of them can become codes."""
    row = WEIGHTS.get(operator.builtin_name or "")
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
        if not _is_plain_float(tensor):
            return
        found.append((place, tensor, tensor.shape))
    if max((prod(shape) for _, _, shape in found), default=0) < max(options.min_elements, 1):
        return
    for place, tensor, shape in found:
        yield _Use(operator, place, tensor, _target(shape, row, recipe, options))


def _target(shape: tuple[int, ...], row: recipes.Weights, recipe: Recipe, options: Options) -> _Target:
    axis = row.axis if row.axis is not None and row.axis < len(shape) else None
    if recipe.in_blocks and shape[-1] % options.block_size == 0:
        return _Target(recipe.form, recipe.weights, block_size=options.block_size)
    if axis is None or options.per_axis:
        return _Target(recipe.form, recipe.weights, axis)
    if recipe.form == HYBRID and row.scale_per_channel:
        return _Target(recipe.form, recipe.weights, None, channels=shape[axis], channel_axis=axis)
    return _Target(recipe.form, recipe.weights)


# ---- constants ----


class _Quantized(NamedTuple):
    buffer: int
    parameters: dict[str, Any] | None  # of the tensor's quantization; None: the scales that are made with the codes
    block_scales: NDArray[Any] | None
    scales_buffer: int
    is_codes: bool = True


class _Constants:
    """Quantizes each constant once, however many tensors and operators share it."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self._made: dict[tuple[int, tuple[int, ...], tuple[Any, ...]], _Quantized] = {}  # targets without their form
        self._old: set[int] = set()

    def of(self, tensor: TensorPart, target: _Target) -> _Quantized:
        old = tensor.buffer
        key = (old, tensor.shape, target[1:])
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._quantize(tensor, target)
            self._old.add(old)
        return made

    def _quantize(self, tensor: TensorPart, target: _Target) -> _Quantized:
        if target.type == "float16":
            return _Quantized(self.editor.add_float16_buffer(tensor), None, None, 0, False)
        block = target.block_size or None
        axis = len(tensor.shape) - 1 if block else target.axis
        buffer, shape = self.editor.add_quantized_buffer(tensor, axis, target.type, block)
        if block:
            scales = self.editor.scales_of_buffer(buffer).reshape(shape).astype(np.float16)
            return _Quantized(buffer, None, scales, self.editor.add_buffer(scales.tobytes()), False)
        if target.channels:
            scale = np.repeat(self.editor.scales_of_buffer(buffer), target.channels)
            parameters = {"scale": scale, "zero_point": np.zeros(len(scale), np.int64)}
            return _Quantized(buffer, parameters | {"quantized_dimension": target.channel_axis}, None, 0)
        return _Quantized(buffer, None, None, 0)

    def release(self) -> None:
        """Empties the buffers of float constants that nothing reads any more."""
        self.editor.forget_users()
        for buffer in self._old:
            self.editor.release_buffer(buffer)


# ---- the graph ----


def _readers(graph: SubgraphPart) -> Counter[int]:
    """How often each tensor is read: by operators, and as an input or output of the subgraph."""
    found = Counter(index for operator in graph.operators for index in operator.input_indices)
    found.update(tensor.index for tensor in (*graph.inputs, *graph.outputs) if tensor is not None)
    return found


def _become(tensor: TensorPart, target: _Target, made: _Quantized) -> None:
    """Makes a float constant the quantized one."""
    if made.is_codes and made.parameters is None:
        tensor.become_quantized(made.buffer, target.type, target.axis or 0)
        return
    tensor.buffer = made.buffer
    tensor.type = target.type
    tensor.quantization = made.parameters
    if made.block_scales is None:
        return
    scales = tensor.subgraph.add_tensor(
        f"{tensor.name}_scales", made.block_scales.shape, "float16", buffer=made.scales_buffer
    )
    tensor.quantization.details = {
        "type": "BlockwiseQuantization",
        "scales": scales.index,
        "zero_points": -1,
        "block_size": target.block_size,
    }


def _apply(graph: SubgraphPart, uses: Sequence[_Use], constants: _Constants) -> None:
    """Gives the operators of a subgraph the constants that were chosen for them."""
    groups: dict[tuple[TensorPart, _Target], list[_Use]] = {}
    for use in uses:
        groups.setdefault((use.tensor, use.target), []).append(use)
    readers = _readers(graph)
    made = {key: constants.of(*key) for key in groups}
    inputs = {use.operator: list(use.operator.input_indices) for use in uses}
    dequantized = []
    for (tensor, target), group in groups.items():
        codes = tensor
        if readers[tensor.index] > len(group):  # others go on reading the float numbers
            codes = graph.add_tensor(f"{tensor.name}_{target.type}", tensor.shape)
        _become(codes, target, made[tensor, target])
        read = codes
        if target.form == DEQUANTIZED:
            read = graph.add_tensor(f"{tensor.name}_dequantized", tensor.shape)
            dequantized.append((group[0].operator, codes, read))
        for use in group:
            inputs[use.operator][use.input] = read.index
    for operator, indices in inputs.items():
        operator.put("inputs", indices)
    _finish(inputs)
    _insert(graph, dequantized)


def _finish(operators: Iterable[OperatorPart]) -> None:
    """Options and versions of operators that read codes."""
    for operator in operators:
        if operator.name in WEIGHTS and any(_is_codes(tensor) for tensor in operator.inputs):
            options = operator.options
            if "asymmetric_quantize_inputs" in options:
                options["asymmetric_quantize_inputs"] = True
            _set_version(operator, versions.needed(operator))


def _set_version(operator: OperatorPart, version: int) -> None:
    """By an operator code that all operators of that version share; what nothing uses any more is pruned later."""
    code = operator._code()
    if code is not None and version != operator.version:
        index = int(operator.node.get("opcode_index"))
        operator.put("opcode_index", operator.editor.code_of_version(index, version))


def _is_codes(tensor: TensorPart | None) -> bool:
    return tensor is not None and tensor.type_name in _CODES


def _insert(graph: SubgraphPart, dequantized: Sequence[tuple[OperatorPart, TensorPart, TensorPart]]) -> None:
    """Puts each DEQUANTIZE right before the first operator that reads its result."""
    places = {operator: place for place, operator in enumerate(graph.operators)}
    for before, codes, real in sorted(dequantized, key=lambda row: places[row[0]], reverse=True):
        operator = graph.add_operator("DEQUANTIZE", [codes], [real], at=places[before])
        _set_version(operator, versions.needed(operator))
