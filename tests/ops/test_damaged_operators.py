# SPDX-License-Identifier: Apache-2.0
"""Models that were valid before something in them was changed: tq runs them or raises, and its process lives on."""

import random

import differential
import generators
import numpy as np
import oracle
import pytest

import tq

ROWS = [row for row in generators.rows() if row[0] not in ("WHILE",)]  # changed, it may have no end
QUICK, SLOW = 3, 100  # changed models a row
NUMBERS = [-(2**31), -65536, -2, -1, 0, 1, 2, 3, 7, 255, 65536, 2**30, 2**31 - 1]
FLOATS = [0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan")]


def change_shape(rng, graph, item):
    tensor = rng.choice(graph.tensors)
    shape = list(tensor.shape)
    if shape and rng.random() < 0.6:
        shape[rng.randrange(len(shape))] = rng.choice([0, 1, 2, 3, 5, 64, 2**20, 2**31 - 1])
    else:
        shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randrange(10))]
    tensor.shape = shape


def change_type(rng, graph, item):
    rng.choice(graph.tensors).type = rng.randrange(23)


def change_scale(rng, graph, item):
    quantized = [t.quantization for t in graph.tensors if t.quantization.scale_count]
    if quantized:
        q = rng.choice(quantized)
        scale, zero_point = q.scale.tolist(), q.zero_point.tolist()
        scale[rng.randrange(len(scale))] = rng.choice([*FLOATS, 2.0, 1e-4])
        zero_point[rng.randrange(len(zero_point))] = rng.choice([*NUMBERS, 2**40])
        q.scale, q.zero_point = scale, zero_point


def change_option(rng, graph, item):
    numbers = {name: value for name, value in item.options.items() if isinstance(value, int | float)}
    if numbers:
        name = rng.choice(list(numbers))
        if isinstance(numbers[name], bool):
            item.options[name] = not numbers[name]
        else:
            item.options[name] = rng.choice(NUMBERS if isinstance(numbers[name], int) else FLOATS)


def change_operand(rng, graph, item):
    operands = list(item.input_indices)
    if not operands or rng.random() < 0.2:
        operands.append(rng.randrange(len(graph.tensors)))
    elif rng.random() < 0.3:
        operands.pop()
    else:
        operands[rng.randrange(len(operands))] = rng.choice([-1, *range(len(graph.tensors))])
    item.inputs = operands


def change_constant(rng, graph, item):
    constants = [t for t in graph.tensors if t.is_constant and len(t.raw_data)]
    if not constants:
        return
    tensor = rng.choice(constants)
    data = bytearray(tensor.raw_data)
    if tensor.type == tq.TensorType.INT32 and len(data) >= 4:
        at = 4 * rng.randrange(len(data) // 4)
        data[at : at + 4] = np.int32(rng.choice(NUMBERS)).tobytes()
    elif tensor.type == tq.TensorType.INT64 and len(data) >= 8:
        at = 8 * rng.randrange(len(data) // 8)
        data[at : at + 8] = np.int64(rng.choice([*NUMBERS, 2**40, -(2**63)])).tobytes()
    else:
        data[rng.randrange(len(data))] = rng.randrange(256)
    tensor.data = bytes(data)


CHANGES = (change_shape, change_type, change_scale, change_option, change_operand, change_constant)


def changed(case, seed):
    """The case's model after one to three changes, and its inputs, some of them with extreme integers."""
    rng = random.Random(seed)
    editor = tq.edit(case.model)
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(rng, editor.main, rng.choice(editor.operators))
    runs = [dict(values) for values in case.runs]
    for values in runs:
        for index, value in values.items():
            if value.dtype in (np.int32, np.int64) and value.size and rng.random() < 0.3:
                values[index] = value = value.copy()
                value.flat[rng.randrange(value.size)] = rng.choice(NUMBERS)
    return editor.to_bytes(), runs


def check(operator, kind, count, seed):
    made = []
    for number in range(count):
        case = differential.draw(operator, kind, seed, number)
        try:
            made.append((case, *changed(case, number)))
        except ValueError:
            continue  # what the field cannot hold
    questions = [(model, "TQ", runs, {}, []) for _, model, runs in made]
    for (case, _, _), answer in zip(made, oracle.ask("tensors", questions, 2), strict=True):
        if isinstance(answer, oracle.Abort):
            pytest.fail(f"{case}, changed: tq's process ended with code {answer.code}", pytrace=False)


@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_changed_models_do_no_harm(operator, kind):
    check(operator, kind, QUICK, seed=5)


@pytest.mark.thorough
@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_many_changed_models_do_no_harm(operator, kind):
    check(operator, kind, SLOW, seed=6)
