# SPDX-License-Identifier: Apache-2.0
"""Models of one operator that break one rule of the specification each, and ones that just do not.

A model is made from a row of tq/specification/table.py: a random valid one (generators), of which one tensor is
changed.

    python tests/support/specification_cases.py CONV_2D

prints what LiteRT's three sets of kernels do with each.
"""

import sys
from dataclasses import dataclass, replace
from functools import cache

import built  # noqa: F401
import differential
import generators
import numpy as np
import oracle

import tq
from tq.specification.applying import of_operator
from tq.specification.operands import at, needs_scales, operands, type_of, zero_points
from tq.specification.recurrent import parts_of, states_of
from tq.specification.table import CALLING, INTEGER, SPECS, form_of

MOST_DRAWS = 40
KERNELS = {"reference": "BUILTIN_REF", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}
WITHOUT_REFERENCE = ("ELU",)
OTHER = {"int8": "uint8", "uint8": "int8", "int16": "int8"}


@dataclass(frozen=True)
class Base:
    """A valid model of an operator, and what to feed it."""

    name: str
    spec: str
    model: bytes
    place: int  # of the operator
    runs: tuple
    shapes: dict


def rows():
    """(operator, spec) of all rows with a form."""
    for name in INTEGER:
        for spec in SPECS.values():
            if name not in CALLING and form_of(name, spec) is not None:
                yield name, spec.name


def kinds(name, spec):
    """The generators' kinds of an operator, the plain one of the spec's type first."""
    type_ = SPECS[spec].type
    found = [kind for _, kind in generators.rows(name) if type_ in kind.split("-")]
    return sorted(found, key=lambda kind: kind != type_)


def base(name, spec):
    """A Base, or None where no generator makes one."""
    return next(iter(bases(name, spec)), None)


@cache
def bases(name, spec, most=1):
    """The first `most`, and the first that XNNPACK's delegate takes."""
    found, taken = [], []
    if name in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
        return (_variable(name, spec),)
    for kind in kinds(name, spec):
        for number in range(MOST_DRAWS):
            made = _base(differential.draw(name, kind, 7, number, plain=True), name, spec)
            if made is None or not _runs(made):
                continue
            if len(found) < most:
                found.append(made)
            elif number > 2 * most + 8:
                break
            elif not taken and _is_delegated(made):
                taken.append(made)
            if len(found) == most and (taken or any(map(_is_delegated, found))):
                return (*found, *taken)
    return (*found, *taken)


def _runs(made):
    """Whether all kernels run it that LiteRT has."""
    found = verdicts(made)
    if made.name in WITHOUT_REFERENCE:
        assert found.pop("reference") == "refuses"
    return set(found.values()) == {"runs"}


def _is_delegated(made):
    rows = tq.Interpreter(model_content=made.model, numerics="xnnpack").backends()
    return rows[made.place].numerics == "xnnpack"


def _base(case, name, spec):
    editor = tq.edit(case.model)
    op = next((item for item in editor.main.operators if item.builtin_name == name), None)
    if op is None:
        return None
    for tensor in dict.fromkeys((*op.inputs, *op.outputs)):
        if tensor is not None and type_of(tensor) == SPECS[spec].type and not tensor.quantization.scale.size:
            tensor.quantization = {"scale": [0.05], "zero_point": [0 if spec == "int16x8" else 3]}
    v = operands(op)
    if v is not None and v.rule in ("same", "centered"):
        _share(v)
    for part in parts_of(v) if v is not None else ():
        if part.bias is not None and part.bias_scale() is not None:
            part.bias.tensor.quantization = {"scale": part.bias_scale(), "zero_point": [0]}
    if v is None or v.spec.name != spec or v.rule is None or of_operator(op):
        return None
    if any(0 in t.shape for t in (*op.inputs, *op.outputs) if t is not None):
        return None
    return Base(name, spec, editor.to_bytes(), op.index, tuple(case.runs[:1]), case.shapes)


def _variable(name, spec):
    """A variable that is written and read."""
    dtype, scale = SPECS[spec].type, {"scale": [0.5], "zero_point": [0]}
    builder = tq.ModelBuilder()
    x, y = (builder.tensor(n, (2, 3), dtype, **scale) for n in "xy")
    handle = builder.tensor("handle", (), "RESOURCE")
    builder.operator("VAR_HANDLE", [], [handle], shared_name="v")
    builder.operator("ASSIGN_VARIABLE", [handle, x], [])
    builder.operator("READ_VARIABLE", [handle], [y])
    builder.inputs, builder.outputs = [x], [y]
    place = 1 if name == "ASSIGN_VARIABLE" else 2
    return Base(name, spec, builder.to_bytes(), place, ({0: np.zeros((2, 3), dtype)},), {})


def _share(v):
    """The same parameters for all activations; zero point 0 where the row asks for it."""
    first = v.shared[0].tensor.quantization
    for item in v.shared:
        zero = first.zero_point if v.rule == "same" else [0]
        item.tensor.quantization = {"scale": first.scale, "zero_point": zero}


# ---- breaking: each changes the operator's tensors, and says whether it could ----


def _first(v):
    return next((item for item in v.activations if not item.tensor.is_constant), None)


def _constant(tensor, value):
    data = tensor.data.copy()
    data.flat[0] = value
    tensor.data = data


def _per_axis(v):
    item = next((i for i in v.activations if max(i.tensor.shape, default=0) > 1), None)
    if item is None or v.rule == "converts":
        return False
    tensor = item.tensor
    axis = int(np.argmax(tensor.shape))
    count, scale = tensor.shape[axis], tensor.quantization.scale[0]
    tensor.quantization = {
        "scale": scale * np.linspace(0.5, 1, count, dtype=np.float32),
        "zero_point": [int(zero_points(tensor)[0])] * count,
        "quantized_dimension": axis,
    }
    return True


def _set(part, field):
    """Sets a field of the quantization of one operand."""

    def change(value):
        def apply(v):
            item = part(v)
            if item is None or not item.tensor.quantization.scale.size:
                return False
            q = item.tensor.quantization
            made = value(v, item, getattr(q, field))
            if made is None:
                return False
            setattr(q, field, made)
            return True

        return apply

    return change


def _output(v):
    return v.outputs[0] if v.outputs else None


def _parts(v):
    """The operands with weights: of the operator itself, or of each part of an LSTM or SVDF."""
    return [v, *parts_of(v)] if v.row is not None and v.row.recurrent else [v]


def _constant_weights(v):
    return next((p.weights for p in _parts(v) if p.weights is not None and p.weights.tensor.is_constant), None)


def _constant_bias(v):
    known = [p.bias for p in _parts(v) if p.bias is not None and p.bias_scale() is not None]
    return next((bias for bias in known if bias.tensor.is_constant), None)


def _state(v):
    """One that is int16."""
    place = next((place for place, kind in states_of(v) if kind != "output"), None)
    return None if place is None else at(v.op, place)


def _drop_scale(v):
    item = _first(v)
    if item is None or not needs_scales(v.name, v.rule):
        return False
    item.tensor.quantization = None
    return True


def _other_type(v):
    item = next((i for i in v.data if not i.tensor.is_constant), None)
    if item is None or v.rule in ("converts",) or len(v.activations) < 2 or v.rule == "reads":
        return False
    item.tensor.type = OTHER[v.spec.type]
    return True


def _other_shared(v):
    rest = v.shared[:1] if len(v.shared) > 1 else ()
    if v.rule not in ("same",) or not rest or rest[0].tensor == v.shared[-1].tensor:
        return False
    rest[0].tensor.quantization.scale = rest[0].tensor.quantization.scale * np.float32(1.5)
    return True


def _least_weight(value):
    def change(v):
        item = _constant_weights(v)
        if item is None or type_of(item.tensor) not in ("int8", "uint8", "int4"):
            return False
        _constant(item.tensor, {"int8": -128, "uint8": 0, "int4": -8}[type_of(item.tensor)] + value)
        return True

    return change


def _weights_type(v):
    item = _constant_weights(v)
    if item is None:
        return False
    other = {"int8": "int16", "uint8": "int8"}[type_of(item.tensor)]
    data = item.tensor.data.astype(other)
    item.tensor.type = other
    item.tensor.data = data
    return True


def _weights_axis(v):
    item = _constant_weights(v)
    if item is None or v.row.axis is None or v.spec.type == "uint8":
        return False
    axis = next((i for i, n in enumerate(item.tensor.shape) if i != v.row.axis and n > 1), None)
    if axis is None:
        return False
    count, scale = item.tensor.shape[axis], item.tensor.quantization.scale[0]
    item.tensor.quantization = {
        "scale": [scale] * count,
        "zero_point": [0] * count,
        "quantized_dimension": axis,
    }
    return True


def _weights_scales(v):
    item = _constant_weights(v)
    if item is None or v.spec.type != "uint8" or item.tensor.shape[0] < 2:
        return False
    count, q = item.tensor.shape[0], item.tensor.quantization
    item.tensor.quantization = {"scale": [q.scale[0]] * count, "zero_point": [q.zero_point[0]] * count}
    return True


def _one_weight_scale(v):
    item = _constant_weights(v)
    if item is None or v.row.axis is None or item.tensor.quantization.scale_count < 2 or v.name == "FULLY_CONNECTED":
        return False
    q = item.tensor.quantization
    item.tensor.quantization = {"scale": q.scale[:1], "zero_point": [0]}
    if v.bias is not None:
        v.bias.tensor.quantization = {"scale": v.bias_scale(), "zero_point": [0]}
    return True


def _no_bias(v):
    if not v.row.needs_bias or v.bias is None:
        return False
    v.op.inputs = v.op.inputs[: v.row.bias]
    return True


def _bias_type(v):
    item = _constant_bias(v)
    if item is None:
        return False
    other = {"int32": "int64", "int64": "int32"}[type_of(item.tensor)]
    data = item.tensor.data.astype(other)
    item.tensor.type = other
    item.tensor.data = data
    return True


def _zeros(v, item, value):
    return np.full(item.tensor.quantization.scale_count, value, np.int64)


def _off(v):
    return {"int8": 200, "uint8": 300, "int16": 40000}[v.spec.type]


BREAKS = {
    "type": _other_type,
    "scale-missing": _drop_scale,
    "scale-value": _set(_first, "scale")(lambda v, item, s: np.zeros_like(s)),
    "activation-per-axis": _per_axis,
    "zero-point-range": _set(_first, "zero_point")(lambda v, item, z: [_off(v)]),
    "activation-symmetric": _set(_first, "zero_point")(lambda v, item, z: [5] if v.spec.type == "int16" else None),
    "same-scale": _other_shared,
    "fixed-output": _set(_output, "scale")(lambda v, i, s: s * np.float32(1.1) if isinstance(v.rule, tuple) else None),
    "fixed-output zero": _set(_output, "zero_point")(
        lambda v, i, z: [3] if isinstance(v.rule, tuple) and v.spec.type != "int16" else None
    ),
    "state": _set(_state, "zero_point")(lambda v, item, z: [3]),
    "zero-is-zero": _set(_output, "zero_point")(lambda v, i, z: [3] if v.rule == "centered" else None),
    "weights-type": _weights_type,
    "weights-range": _least_weight(0),
    "weights-zero-point": _set(_constant_weights, "zero_point")(
        lambda v, item, z: _zeros(v, item, 3) if v.spec.type != "uint8" else None
    ),
    "weights-axis": _weights_axis,
    "weights-per-axis": _weights_scales,
    "weights-per-tensor": _one_weight_scale,
    "bias-missing": _no_bias,
    "bias-type": _bias_type,
    "bias-zero-point": _set(_constant_bias, "zero_point")(lambda v, item, z: _zeros(v, item, 5)),
    "bias-scale": _set(_constant_bias, "scale")(lambda v, item, s: s * np.float32(100)),
    "bias-scale slightly": _set(_constant_bias, "scale")(lambda v, item, s: s * np.float32(1.001)),
    "bias-scale one": _set(_constant_bias, "scale")(lambda v, item, s: s[:1] if s.size > 1 else None),
}


def _keep(v):
    return True


def _narrow_bias(v):
    """int16 activations with a bias of int32, as the option allows."""
    if v.spec.type != "int16" or v.name not in ("CONV_2D", "FULLY_CONNECTED") or not _bias_type(v):
        return False
    v.op.options["quantized_bias_type"] = "INT32"
    return True


def _other_range(v):
    """The same parameters, and another range beside them."""
    if len(v.shared) < 2:
        return False
    v.shared[0].tensor.quantization.min, v.shared[0].tensor.quantization.max = [-100], [100]
    return True


def _one_ulp(v, item, s):
    return np.nextafter(s, np.float32(1))


# Cases that barely do not break a rule.
NEARLY = {
    "type": _keep,
    "scale-missing": _keep,
    "scale-value": _set(_first, "scale")(lambda v, item, s: np.full_like(s, np.finfo(np.float32).tiny)),
    "activation-per-axis": _set(_first, "quantized_dimension")(lambda v, item, z: 1 if item.tensor.shape[1:] else None),
    "zero-point-range": _set(_first, "zero_point")(lambda v, item, z: [np.iinfo(v.spec.type).max]),
    "activation-symmetric": _set(_first, "zero_point")(lambda v, item, z: [5] if v.spec.type != "int16" else [0]),
    "same-scale": _other_range,
    "fixed-output": _set(_output, "max")(lambda v, item, z: [1.5] if isinstance(v.rule, tuple) else None),
    "state": _set(_state, "zero_point")(lambda v, item, z: [0]),
    "zero-is-zero": _set(_output, "zero_point")(lambda v, i, z: [0] if v.rule == "centered" else None),
    "weights-type": _keep,
    "weights-range": _least_weight(1),
    "weights-zero-point": _set(_constant_weights, "zero_point")(
        lambda v, item, z: _zeros(v, item, 0) if v.spec.type != "uint8" else None
    ),
    "weights-axis": _keep,
    "weights-per-axis": _keep,
    "weights-per-tensor": _keep,
    "bias-missing": _keep,
    "bias-type": _narrow_bias,
    "bias-zero-point": _set(_constant_bias, "zero_point")(lambda v, item, z: _zeros(v, item, 0)),
    "bias-scale": _set(_constant_bias, "scale")(_one_ulp),
}


def changed(made, change):
    """A Base changed by one of BREAKS or NEARLY; None where it has nothing to change."""
    editor = tq.edit(made.model)
    v = operands(editor.main.operators[made.place])
    if not change(v):
        return None
    for part in _parts(v):
        if part.bias is not None:
            q = part.bias.tensor.quantization
            if q.zero_point.size != q.scale_count:
                q.zero_point = np.zeros(q.scale_count, np.int64)
    return replace(made, model=editor.to_bytes())


def broken(made, how):
    return changed(made, BREAKS[how])


def questions(made):
    graph = tq.Model(made.model).subgraphs[0]
    runs = made.runs
    outputs = [t.index for t in graph.outputs]
    for resolver in KERNELS.values():
        yield made.model, resolver, retyped(graph, runs), made.shapes, outputs, False


def retyped(graph, runs):
    """The same values as inputs of other types take them."""
    return [{i: np.asarray(v).astype(graph.tensors[i].dtype) for i, v in run.items()} for run in runs]


def verdict(answer):
    if isinstance(answer, oracle.Abort):
        return "dies"
    return "refuses" if isinstance(answer, oracle.Refusal) else "runs"


def verdicts(made):
    """{"reference": "runs", ...} of LiteRT."""
    answers = oracle.ask("tensors", list(questions(made)))
    return dict(zip(KERNELS, map(verdict, answers), strict=True))


if __name__ == "__main__":
    for name, spec in rows():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        made = base(name, spec)
        if made is None:
            print(name, spec, "no base")
            continue
        print(name, spec, "valid", *verdicts(made).values(), flush=True)
        for how in BREAKS:
            other = broken(made, how)
            if other is not None:
                print(name, spec, how.replace(" ", "_"), *verdicts(other).values(), flush=True)
