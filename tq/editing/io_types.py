# SPDX-License-Identifier: Apache-2.0
"""Changes of the types of a model's inputs and outputs among float32, int8, uint8 and int16.

As tf.lite's modify_model_interface, in both directions.  A QUANTIZE or DEQUANTIZE at the interface is removed or
changed where that gives the wanted type; elsewhere one is inserted.  int8 and uint8 represent the same real values with
zero points that differ by 128.  The interface's tensors keep their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tq import enums
from tq.editing.constants import type_number
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.editing.parts import renumber
from tq.enums import name_of
from tq.nearest import hint

_FLOAT = "FLOAT32"
_QUANTIZED = ("INT8", "UINT8", "INT16")
_SHIFT = {("INT8", "UINT8"): 128, ("UINT8", "INT8"): -128}


def _check_scale(tensor: TensorPart) -> None:
    scale, zero_point = tensor.quantization.scale, tensor.quantization.zero_point
    if len(scale) != 1 or len(zero_point) > 1 or tensor.quantization.details:
        raise ValueError(
            f"tensor {tensor.name!r} needs one scale and one zero point to change its type; it has {len(scale)} scales"
        )


def _parameters(tensor: TensorPart, wanted: str) -> dict[str, Any]:
    """The parameters of a tensor of type `wanted` with the same real values as `tensor`."""
    _check_scale(tensor)
    old = tensor.quantization
    zero_point = int(old.zero_point[0]) if len(old.zero_point) else 0
    made: dict[str, Any] = {
        "scale": old.scale,
        "zero_point": [zero_point + _SHIFT.get((name_of(tensor.type), wanted), 0)],
    }
    for field in ("min", "max"):
        if len(getattr(old, field)):
            made[field] = getattr(old, field)
    return made


def _same_parameters(a: TensorPart, b: TensorPart) -> bool:
    """Whether two tensors have the same parameters, up to the shift of 128 between int8 and uint8."""
    if len(b.quantization.scale) != 1 or len(a.quantization.scale) != 1:
        return False
    wanted = _parameters(a, name_of(b.type))
    zero_point = int(b.quantization.zero_point[0]) if len(b.quantization.zero_point) else 0
    return bool(b.quantization.scale[0] == wanted["scale"][0] and zero_point == wanted["zero_point"][0])


class _Side:
    """The inputs or the outputs of a subgraph; `also`: the other side, for a tensor that is input and output."""

    def __init__(self, graph: SubgraphPart, field: str, also: tuple[str, ...] = ()) -> None:
        self.graph = graph
        self.field = field
        self.fields = (field, *also)

    def refusal(self, tensor: TensorPart, wanted: str, why: str) -> ValueError:
        return ValueError(
            f"{self.field[:-1]} {tensor.name!r} of type {name_of(tensor.type)} cannot become {wanted}: {why}"
        )

    def replace(self, old: TensorPart, new: TensorPart) -> None:
        """Replaces the interface's tensor, in signatures too; `new` takes over the old name."""
        for field in self.fields:
            self.graph.replace_ends(field, {old: new})
        old.name, new.name = f"{old.name}_{name_of(old.type).lower()}", old.name

    def insert(self, tensor: TensorPart, wanted: str) -> None:
        """Inserts a tensor of the wanted type, with an operator between it and the old one."""
        _check_scale(tensor)
        quantization = None if wanted == _FLOAT else _parameters(tensor, wanted)
        made = self.graph.add_tensor(
            tensor.name,
            tensor.shape,
            wanted,
            shape_signature=tensor.shape_signature,
            quantization=quantization,
        )
        self.replace(tensor, made)
        if self.field == "inputs":
            self.graph.add_operator("QUANTIZE", [made], [tensor], at=0)
        else:
            self.graph.add_operator("DEQUANTIZE" if wanted == _FLOAT else "QUANTIZE", [tensor], [made])

    def remove(self, operators: list[OperatorPart], tensors: list[TensorPart]) -> None:
        for operator in operators:
            self.graph.remove_operator(operator)
        self.graph.remove_unused(tensors)


def _is_output(tensor: TensorPart) -> bool:
    return tensor.index in [item.index for item in tensor.subgraph.outputs if item]


def _only_through(tensor: TensorPart, name: str) -> list[OperatorPart]:
    """The consumers of an input, if all of them have the name; else []."""
    readers = tensor.consumers
    return readers if all(op.name == name for op in readers) else []


def _targets(readers: list[OperatorPart]) -> list[TensorPart]:
    return [target for op in readers for target in op.outputs if target is not None]


def _skip_readers(side: _Side, tensor: TensorPart, readers: list[OperatorPart]) -> None:
    """Makes the first reader's output the input, in the place of the other readers' outputs too."""
    first, *others = _targets(readers)
    replaced = dict.fromkeys(others, first)
    for operator in side.graph.operators:
        operator.replace_inputs(replaced)
    renumber(side.graph.node, "outputs", {other.index: first.index for other in others})
    if first.shape_signature is None:
        first.shape_signature = tensor.shape_signature
    side.replace(tensor, first)
    side.remove(readers, [tensor, *others])


def _change_float_input(side: _Side, tensor: TensorPart, wanted: str) -> None:
    if _is_output(tensor) and "outputs" not in side.fields:
        raise side.refusal(tensor, wanted, "it is an output, too, which would have to change with it")
    readers = _only_through(tensor, "QUANTIZE")
    targets = _targets(readers)
    if not targets or any(name_of(target.type) not in _QUANTIZED for target in targets):
        names = ", ".join(op.name for op in tensor.consumers) or "nothing"
        raise side.refusal(tensor, wanted, f"only QUANTIZE may read it, which {names} does")
    for target in targets:
        _check_scale(target)
    if any(not _same_parameters(targets[0], target) or target.type != targets[0].type for target in targets[1:]):
        raise side.refusal(tensor, wanted, "it is quantized in several ways")
    found = name_of(targets[0].type)
    if found == wanted:
        _skip_readers(side, tensor, readers)
    elif (found, wanted) in _SHIFT:
        parameters = _parameters(targets[0], wanted)
        tensor.type = wanted
        tensor.quantization = parameters
    else:
        raise side.refusal(tensor, wanted, f"the model quantizes it to {found}")


def _change_input(side: _Side, tensor: TensorPart, wanted: str) -> None:
    have = name_of(tensor.type)
    if have == _FLOAT:
        _change_float_input(side, tensor, wanted)
        return
    skipped = [] if _is_output(tensor) else _only_through(tensor, "DEQUANTIZE" if wanted == _FLOAT else "QUANTIZE")
    targets = _targets(skipped)
    fits = [
        name_of(target.type) == wanted and (wanted == _FLOAT or _same_parameters(tensor, target)) for target in targets
    ]
    if targets and all(fits):
        _skip_readers(side, tensor, skipped)
    elif wanted == _FLOAT or (have, wanted) in _SHIFT:
        side.insert(tensor, wanted)
    else:
        raise side.refusal(tensor, wanted, "int16 values have no 8-bit form")


def _change_float_output(side: _Side, tensor: TensorPart, wanted: str) -> None:
    producer = tensor.producer
    source = producer.inputs[0] if producer is not None and producer.name == "DEQUANTIZE" else None
    if producer is None or source is None or name_of(source.type) not in _QUANTIZED:
        written_by = "no operator writes it" if producer is None else f"{producer.name} does"
        raise side.refusal(tensor, wanted, f"only DEQUANTIZE of integers may write it; {written_by}")
    _check_scale(source)
    found = name_of(source.type)
    if found != wanted and (found, wanted) not in _SHIFT:
        raise side.refusal(tensor, wanted, f"the model makes it from {found}")
    is_read = bool(tensor.consumers)
    if found == wanted:
        side.replace(tensor, source)
        side.remove([] if is_read else [producer], [tensor])
    elif is_read:  # its consumers still read the float tensor
        made = side.graph.add_tensor(
            tensor.name,
            tensor.shape,
            wanted,
            shape_signature=tensor.shape_signature,
            quantization=_parameters(source, wanted),
        )
        side.graph.add_operator("QUANTIZE", [source], [made])
        side.replace(tensor, made)
    else:
        parameters = _parameters(source, wanted)
        side.graph.replace_operator(producer, "QUANTIZE", [source], [tensor])
        tensor.type = wanted
        tensor.quantization = parameters


def _change_output(side: _Side, tensor: TensorPart, wanted: str) -> None:
    have = name_of(tensor.type)
    if have == _FLOAT:
        _change_float_output(side, tensor, wanted)
        return
    producer = tensor.producer
    source = producer.inputs[0] if producer is not None and producer.name == "QUANTIZE" else None
    undoes = source is not None and name_of(source.type) == wanted != _FLOAT and _same_parameters(source, tensor)
    if producer is not None and source is not None and undoes and not tensor.consumers:
        side.replace(tensor, source)
        side.remove([producer], [tensor])
    elif wanted == _FLOAT or (have, wanted) in _SHIFT:
        side.insert(tensor, wanted)
    else:
        raise side.refusal(tensor, wanted, "int16 values have no 8-bit form")


def _wanted(graph: SubgraphPart, field: str, given: Any) -> list[tuple[TensorPart, str]]:
    """(tensor, wanted type) of the interface's tensors that change.  One type for all does not apply to ids, masks and
    texts."""
    interface = [tensor for tensor in dict.fromkeys(getattr(graph, field)) if tensor is not None]
    if given is None:
        return []
    if not isinstance(given, Mapping):
        type_number(given)
        all_of = {tensor: given for tensor in interface if name_of(tensor.type) in (_FLOAT, *_QUANTIZED)}
        if not all_of:
            raise ValueError(f"{field} is {given!r} and has no effect: none is of {_FLOAT}, {', '.join(_QUANTIZED)}")
        given = all_of
    found = []
    for key, type_ in given.items():
        tensor, name = graph.find(key), enums.by_name("TensorType")(type_number(type_)).name
        if tensor not in interface:
            names = [item.name for item in interface]
            raise ValueError(
                f"tensor {tensor.name!r} is none of the {field}: {', '.join(names)}{hint(tensor.name, names)}"
            )
        if name not in (_FLOAT, *_QUANTIZED) or name_of(tensor.type) not in (_FLOAT, *_QUANTIZED):
            raise ValueError(
                f"{field[:-1]} {tensor.name!r} of type {name_of(tensor.type)} cannot become {name}: "
                f"types change among {_FLOAT}, {', '.join(_QUANTIZED)}"
            )
        if name_of(tensor.type) != name:
            found.append((tensor, name))
    return found


def set_io_types(graph: SubgraphPart, inputs: Any = None, outputs: Any = None) -> None:
    """Changes the types of a subgraph's inputs and outputs.

    inputs, outputs: a type for all that are float32, int8, uint8 or int16; or a dict from tensor (name, index) to type;
        None: no change.
    ValueError: an input or output cannot have the type; the message names it and the reason.  Tensors before it have
    changed then.
    """
    ends = _wanted(graph, "outputs", outputs)
    for tensor, wanted in _wanted(graph, "inputs", inputs):
        is_float = name_of(tensor.type) == _FLOAT
        if is_float and (tensor, wanted) in ends:  # input and output: one tensor, which changes once
            ends.remove((tensor, wanted))
            _change_input(_Side(graph, "inputs", ("outputs",)), tensor, wanted)
        else:
            _change_input(_Side(graph, "inputs"), tensor, wanted)
    for tensor, wanted in ends:
        _change_output(_Side(graph, "outputs"), tensor, wanted)
