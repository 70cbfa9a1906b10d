# SPDX-License-Identifier: Apache-2.0
"""Models that have problems: how they are made and entered as cases."""

import ai_edge_litert.schema_py_generated as schema
import numpy as np
from models import make_model, operator, pack, signature, tensor

import tq

KINDS = {code: (severity, text) for code, severity, text in tq._core.problem_kinds()}
CASES = []  # (code, name, function that returns a file's bytes)


def case(code):
    """Registers a function whose model has exactly the problem `code`."""

    def register(function):
        CASES.append((code, function.__name__.replace("_", " "), function))
        return function

    return register


def cases(*rows):
    """Registers models as (code, name, bytes)."""
    CASES.extend((code, name, lambda data=data: data) for code, name, data in rows)


def codes(data):
    """The codes of a file's problems."""
    return {problem.code for problem in tq.Model(data).problems}


# ---- models to break ----


def relu(first=None, **changes):
    """x -> RELU -> y, as a ModelBuilder; `first` in the place of x."""
    return make_model([first or x(1, 4), y(1, 4)], [operator("RELU", [0], [1])], [0], [1], **changes)


def one(*arguments, **fields):
    """The bytes of one_model's."""
    return pack(one_model(*arguments, **fields))


def one_model(name, inputs, outputs, **fields):
    """A model of one operator; tensors of `inputs` without data are the graph's inputs.  fields: as of `operator`."""
    tensors = [t for t in [*inputs, *outputs] if t is not None]
    places = {id(t): i for i, t in enumerate(tensors)}
    given = [t for t in inputs if t is not None and t.data is None and not t.fields.get("is_variable")]
    made = [t for t in outputs if t is not None]
    item = operator(name, *([places.get(id(t), -1) for t in side] for side in (inputs, outputs)), **fields)
    return make_model(tensors, [item], *([places[id(t)] for t in side] for side in (given, made)))


def x(*shape, **kwargs):
    return tensor("x", list(shape), **kwargs)


def y(*shape, **kwargs):
    return tensor("y", list(shape), **kwargs)


def ints(values, type="INT32"):
    array = np.array(values, {"INT32": np.int32, "INT64": np.int64}[type])
    return tensor("constant", list(array.shape), type, array)


def quantized(shape=(4, 8), type="INT8", **parameters):
    """A graph input with these quantization parameters."""
    return pack(relu(tensor("x", list(shape), type, **parameters)))


def conv(**options):
    weights = tensor("w", [2, 1, 1, 3], data=np.zeros((2, 1, 1, 3), np.float32))
    return one("CONV_2D", [x(1, 4, 4, 3), weights], [y(1, 4, 4, 2)], **{"stride_w": 1, "stride_h": 1, **options})


def coded(**code):
    """The operator code has these fields."""
    model = relu()
    model.store("operator_codes", [code])
    return pack(model)


def with_byte(data, table, slot, value):
    """A file in which a field of one byte holds what no schema knows.  table: a function of the schema's SubGraph."""
    data = bytearray(data)
    found = table(schema.Model.GetRootAs(data).Subgraphs(0))._tab
    data[found.Pos + found.Offset(4 + 2 * slot)] = value
    return bytes(data)


def signed(*signatures):
    return relu(signatures=list(signatures) or [signature("f", {"x": 0}, {"y": 1})])
