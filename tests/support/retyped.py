# SPDX-License-Identifier: Apache-2.0
"""The generators' models with tensors of another type, for types that no generator draws.

    for change, case in retyped.cases("ADD", "float32"):
        ...  # change: "float32 -> int64", or "int4, quantized -> ..."

All tensors of a type that the operator reads or writes become another; constants and what the model is fed are
converted.  Most of these models are not valid.  What matters is that LiteRT and tq agree where both run them."""

import generators
import ml_dtypes
import numpy as np
from generators.draft import Draft

WHOLE = {
    **{name: np.dtype(name) for name in ("float32", "float16", "float64", "int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
TYPES = (*WHOLE, "string")
QUANTIZED = ("int8", "uint8", "int16")
PARAMETERS = ("scale", "zero_point", "min", "max", "quantized_dimension", "details")


def converted(values, type):
    """The nearest values of a type; strings become numbers and numbers strings."""
    values = np.asarray(values)
    if values.dtype.kind in "OSU":
        values = np.arange(values.size).reshape(values.shape)
    if type == "string":
        finite = np.nan_to_num(values.astype(np.complex128).real)
        return np.array([b"%d" % int(v) for v in finite.reshape(-1)], object).reshape(values.shape)
    target = WHOLE[type]
    with np.errstate(all="ignore"):
        if values.dtype.kind == "c" and target.kind != "c":
            values = values.real
        if target.kind in "iu":
            low, high = max(np.iinfo(target).min, -(2.0**62)), min(np.iinfo(target).max, 2.0**62)
            values = np.clip(np.nan_to_num(values.astype(np.float64)), low, high)
        return values.astype(target)


def draw(operator, kind, seed):
    draft = Draft(seed, operator, kind, 0, name=operator)
    generators.ROWS[operator, kind](draft, kind)
    return draft


def sources(draft):
    """The types that the operators' tensors have."""
    used = {i for item in draft.operators for i in (*item.inputs, *item.outputs) if i >= 0}
    return sorted({draft.tensors[i].type for i in used})


def retype(draft, source, type, quantize):
    """Whether it could be done.  LiteRT takes no string alone, and no compressed rows of other types."""
    if type == "string" and any(not tensor.shape for tensor in draft.tensors if tensor.type == source):
        return False
    for index, tensor in enumerate(draft.tensors):
        if tensor.type != source:
            continue
        if "sparsity" in tensor.fields:
            return False
        if tensor.data is not None:
            values = tensor.data if source in WHOLE else np.arange(tensor.data.size).reshape(tensor.data.shape) % 4
            tensor.data = converted(values, type)
        if index in draft.values:
            fed = draft.values[index]
            draft.values[index] = lambda fed=fed: converted(fed(), type)
        tensor.type = type
        if not quantize or tensor.fields.get("scale") is None:
            for name in PARAMETERS:
                tensor.fields.pop(name, None)
            tensor.fields |= {"scale": 0.05, "zero_point": 0} if quantize else {}
    return True


def cases(operator, kind, seed=5):
    """(what was changed, Case) of one model of a row."""
    for source in sources(draw(operator, kind, seed)):
        for type in TYPES:
            for quantize in (False, True) if type in QUANTIZED else (False,):
                draft = draw(operator, kind, seed)
                if type != source and retype(draft, source, type, quantize):
                    change = f"{source} -> {type}{', quantized' if quantize else ''}"
                    yield change, draft.case(operator, kind, seed, 0)
