# SPDX-License-Identifier: Apache-2.0
"""Random numbers: what the comparison with LiteRT on given seeds cannot show."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq


def interpreter(name, inputs, type="FLOAT32", **seeds):
    """inputs: arrays that are constant, or a shape for an input of FLOAT32 or INT32."""
    tensors = []
    for k, given in enumerate(inputs):
        if isinstance(given, np.ndarray):
            tensors.append(tensor(f"x{k}", given.shape, given.dtype.name.upper(), given))
        else:
            tensors.append(tensor(f"x{k}", given, "FLOAT32" if name == "MULTINOMIAL" else "INT32"))
    fed = [k for k, given in enumerate(inputs) if not isinstance(given, np.ndarray)]
    node = operator(name, list(range(len(inputs))), [len(inputs)], **seeds)
    made = tq.Interpreter(model_content=build_model([*tensors, tensor("y", [1], type)], [node], fed, [len(inputs)]))
    made.allocate_tensors()
    return made


def drawn(made):
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])


def test_distributions():
    uniform = drawn(interpreter("RANDOM_UNIFORM", [np.int32([100000])], seed=1))
    assert 0 <= uniform.min() < 1e-3 and 1 - 1e-3 < uniform.max() < 1
    np.testing.assert_allclose([uniform.mean(), uniform.var()], [1 / 2, 1 / 12], atol=5e-3)
    normal = drawn(interpreter("RANDOM_STANDARD_NORMAL", [np.int32([99999])], seed=1))
    np.testing.assert_allclose([normal.mean(), normal.var(), (normal**3).mean()], [0, 1, 0], atol=3e-2)
    made = interpreter("MULTINOMIAL", [[1, 3], np.array(100000, np.int32)], "INT32", seed=1)
    made.set_tensor(0, np.log(np.float32([[1, 2, 5]])))
    np.testing.assert_allclose(np.bincount(drawn(made)[0]) / 100000, [1 / 8, 2 / 8, 5 / 8], atol=1e-2)


@pytest.mark.parametrize("name", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_the_stream_goes_on(name):
    one, two, other = (interpreter(name, [np.int32([3, 5])], seed=seed) for seed in (7, 7, 8))
    first = drawn(one)
    assert (first == drawn(two)).all() and (first != drawn(other)).any() and (first != drawn(one)).any()
    assert (drawn(two) != first).any()


def test_seeds_of_zero_stand_for_any():
    made = [drawn(interpreter("RANDOM_UNIFORM", [np.int32([8])])) for _ in range(3)]
    assert (made[0] != made[1]).any() and (made[1] != made[2]).any()


BAD = [
    ("RANDOM_UNIFORM", [np.int32([2, -1])], "-1"),
    ("RANDOM_UNIFORM", [np.int32([2**31 - 1] * 3)], "more than any memory holds"),
    ("RANDOM_UNIFORM", [np.ones(17, np.int32)], "17 dimensions"),
    ("RANDOM_UNIFORM", [np.array(3, np.int32)], "input 0"),
    ("RANDOM_STANDARD_NORMAL", [np.int64([3])], "input 0"),
    ("MULTINOMIAL", [[2, 0], np.array(3, np.int32)], "no classes"),
    ("MULTINOMIAL", [[2, 3], np.array(-3, np.int32)], "-3"),
    ("MULTINOMIAL", [[2, 3, 4], np.array(3, np.int32)], "input 0"),
]


@pytest.mark.parametrize(("name", "inputs", "text"), BAD, ids=[text for *_, text in BAD])
def test_what_breaks_a_contract_is_named(name, inputs, text):
    with pytest.raises(tq.RunError) as caught:
        interpreter(name, inputs, "INT32" if name == "MULTINOMIAL" else "FLOAT32", seed=1)
    assert text in str(caught.value) and f"operator 0 ({name})" in str(caught.value)


def test_a_shape_that_turns_out_bad_leaves_the_interpreter_usable():
    made = interpreter("RANDOM_UNIFORM", [[2]], seed=1)
    made.set_tensor(0, np.int32([2, -3]))
    with pytest.raises(tq.RunError, match="-3"):
        made.invoke()
    made.set_tensor(0, np.int32([2, 3]))
    assert drawn(made).shape == (2, 3)


@pytest.mark.parametrize(("count", "algorithm"), [(1, 0), (4, 1), (3, 2), (2, 3)])
def test_unknown_states_and_algorithms_are_refused(count, algorithm):
    options = {"algorithm": algorithm}
    tensors = [tensor("s", [count], "UINT64"), tensor("t", [count], "UINT64"), tensor("y", [3], "UINT32")]
    node = operator("STABLEHLO_RNG_BIT_GENERATOR", [0], [1, 2], **options)
    with pytest.raises(tq.RunError, match="STABLEHLO_RNG_BIT_GENERATOR"):
        tq.Interpreter(model_content=build_model(tensors, [node], [0], [1, 2])).allocate_tensors()
