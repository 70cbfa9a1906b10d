# SPDX-License-Identifier: Apache-2.0
"""Models that were valid before something in them was changed: tq runs them or raises, and its process lives on."""

import random

import ai_edge_litert.schema_py_generated as schema
import differential
import generators
import old_models as models
import numpy as np
import oracle
import pytest

ROWS = [row for row in generators.rows() if row[0] not in ("WHILE",)]  # changed, it may have no end
QUICK, SLOW = 3, 100  # changed models a row
NUMBERS = [-(2**31), -65536, -2, -1, 0, 1, 2, 3, 7, 255, 65536, 2**30, 2**31 - 1]
FLOATS = [0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan")]


def change_shape(rng, model, graph, item):
    tensor = rng.choice(graph.tensors)
    tensor.shape = list(tensor.shape if tensor.shape is not None else [])
    if tensor.shape and rng.random() < 0.6:
        tensor.shape[rng.randrange(len(tensor.shape))] = rng.choice([0, 1, 2, 3, 5, 64, 2**20, 2**31 - 1])
    else:
        tensor.shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randrange(10))]


def change_type(rng, model, graph, item):
    rng.choice(graph.tensors).type = rng.randrange(23)


def change_scale(rng, model, graph, item):
    quantized = [
        t.quantization for t in graph.tensors if t.quantization is not None and t.quantization.scale is not None
    ]
    if quantized:
        q = rng.choice(quantized)
        q.scale, q.zeroPoint = list(q.scale), list(q.zeroPoint)
        q.scale[rng.randrange(len(q.scale))] = rng.choice([*FLOATS, 2.0, 1e-4])
        q.zeroPoint[rng.randrange(len(q.zeroPoint))] = rng.choice([*NUMBERS, 2**40])


def change_option(rng, model, graph, item):
    options = item.builtinOptions or item.builtinOptions2
    names = [name for name, value in vars(options).items() if isinstance(value, int | float)] if options else []
    if names:
        name = rng.choice(names)
        value = getattr(options, name)
        if isinstance(value, bool):
            setattr(options, name, not value)
        elif isinstance(value, int):
            setattr(options, name, rng.choice(NUMBERS))
        else:
            setattr(options, name, rng.choice(FLOATS))


def change_operand(rng, model, graph, item):
    operands = [int(i) for i in item.inputs]
    if not operands or rng.random() < 0.2:
        operands.append(rng.randrange(len(graph.tensors)))
    elif rng.random() < 0.3:
        operands.pop()
    else:
        operands[rng.randrange(len(operands))] = rng.choice([-1, *range(len(graph.tensors))])
    item.inputs = operands


def change_constant(rng, model, graph, item):
    constants = [t for t in graph.tensors if t.buffer and model.buffers[t.buffer].data is not None]
    constants = [t for t in constants if len(model.buffers[t.buffer].data)]
    if not constants:
        return
    tensor = rng.choice(constants)
    data = bytearray(bytes(model.buffers[tensor.buffer].data))
    if tensor.type == schema.TensorType.INT32 and len(data) >= 4:
        at = 4 * rng.randrange(len(data) // 4)
        data[at : at + 4] = np.int32(rng.choice(NUMBERS)).tobytes()
    elif tensor.type == schema.TensorType.INT64 and len(data) >= 8:
        at = 8 * rng.randrange(len(data) // 8)
        data[at : at + 8] = np.int64(rng.choice([*NUMBERS, 2**40, -(2**63)])).tobytes()
    else:
        data[rng.randrange(len(data))] = rng.randrange(256)
    model.buffers[tensor.buffer].data = bytes(data)


CHANGES = (change_shape, change_type, change_scale, change_option, change_operand, change_constant)


def changed(case, seed):
    """The case's model after one to three changes, and its inputs, some of them with extreme integers."""
    rng = random.Random(seed)
    model = schema.ModelT.InitFromPackedBuf(case.model, 0)
    for _ in range(rng.randint(1, 3)):
        graph = model.subgraphs[0]
        rng.choice(CHANGES)(rng, model, graph, rng.choice(graph.operators))
    for i, buffer in enumerate(model.buffers):
        model.buffers[i] = models.Buffer(data=None if buffer.data is None else bytes(buffer.data))
    runs = [dict(values) for values in case.runs]
    for values in runs:
        for index, value in values.items():
            if value.dtype in (np.int32, np.int64) and value.size and rng.random() < 0.3:
                values[index] = value = value.copy()
                value.flat[rng.randrange(value.size)] = rng.choice(NUMBERS)
    return models.pack(model), runs


def check(operator, kind, count, seed):
    made = []
    for number in range(count):
        case = differential.draw(operator, kind, seed, number)
        try:
            made.append((case, *changed(case, number)))
        except (ValueError, TypeError, OverflowError, AssertionError):
            continue  # what the flatbuffer cannot hold
    questions = [(model, "TQ", runs, {}, []) for _, model, runs in made]
    for (case, _, _), answer in zip(made, oracle.ask("tensors", questions, 2), strict=True):
        if isinstance(answer, oracle.Abort):
            pytest.fail(f"{case}, changed: tq's process ended with code {answer.code}", pytrace=False)


@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_changed_models_do_no_harm(operator, kind):
    check(operator, kind, QUICK, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_many_changed_models_do_no_harm(operator, kind):
    check(operator, kind, SLOW, seed=6)
