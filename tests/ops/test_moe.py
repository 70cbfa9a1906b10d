# SPDX-License-Identifier: Apache-2.0
"""moe, a mixture of experts: models and indices that it refuses, and rows of 4 bits as LiteRT reads them."""

import differential
import flatbuffers.flexbuffers as flexbuffers
import numpy as np
import oracle
import pytest
from models import build_model, operator, tensor

import tq

OPTIONS = {"num_experts": 3, "num_active_experts": 2, "model_dim": 5, "hidden_dim": 4, "weight_type": "fp32"}
SHAPES = {"fp32": [(2, 5), (2, 2), (2, 2), (12, 5), (12, 5), (15, 4), (3,)]}
SCALED = [(2, 5), (2, 2), (2, 2), (12, 5), (12,), (12, 5), (12,), (15, 4), (15,), (3,)]
SHAPES |= {"int8": SCALED, "int4": SCALED}


def model(constants=None, **options):
    """A small mixture; options: others than OPTIONS, None: none; constants: of input k others than random ones."""
    options = {key: value for key, value in (OPTIONS | options).items() if value is not None}
    draw, constants, tensors = np.random.default_rng(0), constants or {}, []
    shapes = SHAPES.get(options.get("weight_type"), SHAPES["fp32"])
    for k, shape in enumerate(shapes):
        values = constants.get(k, draw.normal(0, 1, shape).astype(np.float32) if k > 2 else None)
        if k in (3, 5, 7) and len(shapes) == 10 and k not in constants:
            values = draw.integers(-8, 8, shape).astype(np.int8)
        type = str(values.dtype).upper() if values is not None else "INT32" if k == 2 else "FLOAT32"
        if options.get("weight_type") == "int4" and type == "INT8":
            tensors.append(tensor(f"x{k}", list(values.shape), "INT4", values, scale=1.0, zero_point=0))
        else:
            tensors.append(tensor(f"x{k}", list(shape if values is None else values.shape), type, values))
    inputs = list(range(len(tensors)))
    node = operator("moe", inputs, [len(tensors)], custom_options=flexbuffers.Dumps(options))
    return build_model([*tensors, tensor("y", [2, 5])], [node], inputs[:3], [len(tensors)])


def run(data, numerics, indices):
    interpreter = tq.Interpreter(model_content=data, numerics=numerics)
    interpreter.allocate_tensors()
    for index, value in enumerate(fed(indices).values()):
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def fed(indices):
    draw = np.random.default_rng(1)
    floats = [draw.normal(0, 1, shape).astype(np.float32) for shape in [(2, 5), (2, 2)]]
    return {0: floats[0], 1: floats[1], 2: np.int32(indices)}


BAD = [
    ({"num_experts": 0}, "has option num_experts 0"),
    ({"num_experts": None}, "has no option num_experts"),
    ({"num_active_experts": 4}, "has option num_active_experts 4; it needs one from 1 to 3"),
    ({"model_dim": 2**31 - 1}, "has option model_dim 2147483647"),
    ({"hidden_dim": 2**28}, "has option hidden_dim 268435456"),
    ({"weight_type": None}, "has no option weight_type"),
    ({"weight_type": "int2"}, "has the option weight_type int2; it needs fp32"),
    ({"weight_type": 7}, "has an option weight_type that is no string"),
    ({"activation": "relu"}, "has the option activation relu"),
    ({"model_dim": 3}, "has 10 elements; it needs a multiple of model_dim, 3"),
    ({"num_active_experts": 1}, "has 4 elements; it needs 2"),
    ({"hidden_dim": 6}, "has 60 elements; it needs 90"),
    ({"constants": {3: np.int8([0] * 60)}}, "input 3"),
    ({"constants": {6: np.float32([1])}}, "has 1 elements; it needs 3"),
    ({"constants": {4: np.float32([1] * 13)}, "weight_type": "int8"}, "has 13 elements; it needs 12"),
    ({"constants": {4: np.float32([1] * 13)}, "weight_type": "int4"}, "it needs a multiple of the 12 rows"),
]


@pytest.mark.parametrize(("changes", "text"), BAD, ids=[text for _, text in BAD])
def test_what_litert_refuses_is_named(changes, text):
    data = model(**changes)
    with pytest.raises(tq.RunError) as caught:
        tq.Interpreter(model_content=data).allocate_tensors()
    assert text in str(caught.value) and "operator 0 (moe)" in str(caught.value)
    (answer,) = oracle.ask("tensors", [differential.question(data, "BUILTIN", [fed([[0, 1], [1, 2]])], None, [])])
    assert isinstance(answer, oracle.Refusal)


@pytest.mark.parametrize("index", [3, -4, 2**31 - 1, -(2**31)])
def test_experts_that_there_are_not_are_bad_data(index):
    with pytest.raises(tq.RunError, match=f"element 3 of input 2 is expert {index} of 3"):
        run(model(), "xnnpack", [[0, 1], [1, index]])


@pytest.mark.parametrize("weight_type", SHAPES)
def test_an_expert_may_serve_a_token_twice_and_indices_count_from_the_end(weight_type):
    data, indices = model(weight_type=weight_type), [[1, 1], [-1, 2]]
    mine = run(data, "xnnpack", indices)
    last = tq.Model(data).subgraphs[0].outputs[0].index
    (theirs,) = oracle.ask("tensors", [differential.question(data, "BUILTIN", [fed(indices)], None, [last])])
    np.testing.assert_array_equal(mine, theirs[0][last])
    np.testing.assert_allclose(run(data, "reference", indices), mine, rtol=1e-4, atol=1e-4)


def test_more_tokens_than_an_expert_takes_at_once_give_the_same_rows():
    data, indices = model(), [[0, 1], [2, 0]]
    once, many = run(data, "xnnpack", indices), 150
    interpreter = tq.Interpreter(model_content=data, numerics="xnnpack")
    for place, value in fed(indices).items():
        interpreter.resize_tensor_input(place, [2 * many, *value.shape[1:]])
    interpreter.allocate_tensors()
    for place, value in fed(indices).items():
        interpreter.set_tensor(place, np.tile(value, (many, 1)))
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(found, np.tile(once, (many, 1)))
