# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter: inputs resized, and signatures.

Where a test has a twin in LiteRT's python/interpreter_test.py, the behaviour asked for is that one's.
"""

import numpy as np
import oracle
import pytest
from interpreter_models import X, allocated, permute, relu_chain, two_signatures
from models import build_model, operator, signature, tensor

from tq.running.interpreter import Interpreter, SignatureRunner

# ---- resizing ----


def test_resizing():
    made = allocated(permute())
    made.resize_tensor_input(0, (3, 4))
    with pytest.raises(RuntimeError, match="not ready"):
        made.invoke()
    made.allocate_tensors()
    assert made.get_input_details()[0]["shape"].tolist() == [3, 4]
    assert made.get_output_details()[0]["shape"].tolist() == [3, 4]
    assert made.get_output_details()[0]["shape_signature"].tolist() == [3, 4]
    made.set_tensor(0, np.repeat(X, 3, 0))
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), np.repeat(X[:, ::-1], 3, 0))


def test_resizing_to_the_same_shape_changes_nothing():
    made = allocated(permute())
    made.set_tensor(0, X)
    made.resize_tensor_input(0, [1, 4])
    made.allocate_tensors()
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


def test_strict_resizing():
    data = build_model(
        [tensor("x", [1, 4], shape_signature=[-1, 4]), tensor("y", [1, 4])],
        [operator("NEG", [0], [1])],
        [0],
        [1],
    )
    made = allocated(data)
    made.resize_tensor_input(0, [3, 4], strict=True)
    made.allocate_tensors()
    assert made.get_input_details()[0]["shape_signature"].tolist() == [-1, 4]
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict only allows mutating unknown dimensions"):
        made.resize_tensor_input(0, [3, 5], strict=True)


@pytest.mark.parametrize(
    ("index", "size", "error"),
    [
        (9, [1, 4], RuntimeError),
        (-1, [1, 4], RuntimeError),
        (0, [1, -4], RuntimeError),
        (1, [4, 5], RuntimeError),  # a constant
        (0, [2**16, 2**16, 2**16, 2**16], RuntimeError),
        (0, [[1, 4]], ValueError),
        (0, 4, ValueError),
        (0, ["a"], ValueError),
        (0, None, TypeError),
        (0, [2**31, 1], OverflowError),
        (0, np.int64([2**32 + 1, 4]), OverflowError),  # which LiteRT takes for 1
    ],
)
def test_sizes_that_cannot_be(index, size, error):
    made = allocated(permute())
    with pytest.raises(error):
        made.resize_tensor_input(index, size)
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


@pytest.mark.parametrize("size", [(3, 4), range(3, 5), [3.0, 4.7], np.uint8([3, 4]), np.float32([3, 4]), ["3", "4"]])
def test_sizes_are_what_numpy_makes_int32(size):
    made = allocated(permute())
    made.resize_tensor_input(0, size)
    assert made.get_input_details()[0]["shape"].tolist() == [3, 4]


@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_a_resized_input_has_no_memory_before_it_is_allocated(rows):
    """Its old memory is of another size: a view led behind it, and what was set was read as if it had that size."""
    made = allocated(permute())
    made.resize_tensor_input(0, [2, 4])
    made.allocate_tensors()
    made.resize_tensor_input(0, [rows, 4])
    for call in (made.get_tensor, lambda index: made.tensor(index)()):
        with pytest.raises(ValueError, match=r"Tensor data is null\. Run allocate_tensors"):
            call(0)
    with pytest.raises(ValueError, match=r"Cannot set tensor: Tensor is unallocated\. Try"):
        made.set_tensor(0, np.ones((rows, 4), np.float32))
    made.allocate_tensors()
    made.set_tensor(0, np.ones((rows, 4), np.float32))
    made.invoke()
    assert made.get_tensor(2).shape == made.tensor(0)().shape == (rows, 4)


def test_a_constant_may_keep_its_shape():
    made = allocated(permute())
    made.resize_tensor_input(1, [4, 4])
    made.set_tensor(0, X)
    made.invoke()


def test_a_size_beyond_memory_is_an_error():
    made = Interpreter(model_content=relu_chain(), max_memory=1 << 20)
    made.resize_tensor_input(0, [1 << 20])
    with pytest.raises(RuntimeError, match="max_memory"):
        made.allocate_tensors()
    made.resize_tensor_input(0, [64])
    made.allocate_tensors()
    made.invoke()


def test_memory_that_data_ask_for_is_blamed_on_the_operator():
    data = build_model(
        tensors=[tensor("dims", [2], "INT32"), tensor("value", []), tensor("y", [])],
        operators=[operator("FILL", [0, 1], [2])],
        inputs=[0, 1],
        outputs=[2],
    )
    made = allocated(data, max_memory=1 << 20)
    made.set_tensor(0, np.array([1 << 20, 1 << 20], np.int32))
    with pytest.raises(RuntimeError, match=r"operator 0 \(FILL\): output 0 of shape \[1048576,1048576\]: .*max_memory"):
        made.invoke()
    made.set_tensor(0, np.array([2, 3], np.int32))
    made.invoke()
    assert made.get_tensor(2).shape == (2, 3)


# ---- signatures ----


def test_signatures():
    made = Interpreter(model_content=two_signatures())
    assert made.num_subgraphs() == 2
    assert made.get_signature_list() == {
        "one": {"inputs": ["x"], "outputs": ["y"]},
        "two": {"inputs": ["u"], "outputs": ["v"]},
    }
    runner = made.get_signature_runner("two")
    assert isinstance(runner, SignatureRunner)
    assert runner.get_input_details()["u"]["name"] == "b_x"
    np.testing.assert_array_equal(runner(u=np.array([1, 2, 3], np.float32))["v"], [-1, -2, -3])
    assert runner.get_output_details()["v"]["shape"].tolist() == [3]
    np.testing.assert_array_equal(made.get_signature_runner("one")(x=np.ones(2, np.float32))["y"], [-1, -1])


def test_signatures_name_their_tensors_in_litert_s_order():
    tensors = [tensor(name, [2]) for name in "xuyz"]
    operators = [operator("ABS", [0], [2]), operator("NEG", [1], [3])]
    signatures = [
        signature("two", {"x": 0, "u": 1}, {"z": 3, "\u00e9": 2, "Y": 2}),
        signature("one", {"x": 0, "a": 1}, {"z": 3}),
    ]
    data = build_model(tensors, operators, [0, 1], [2, 3], signatures=signatures)
    (theirs,) = oracle.ask("signature_list", [data])
    mine = Interpreter(model_content=data).get_signature_list()
    assert [(key, list(sides.items())) for key, sides in mine.items()] == theirs
    runner = Interpreter(model_content=data).get_signature_runner("two")
    assert list(runner.get_input_details()) == ["u", "x"]
    assert list(runner(x=np.ones(2, np.float32), u=np.ones(2, np.float32))) == ["Y", "z", "\u00e9"]


def test_an_empty_input():
    runner = Interpreter(model_content=two_signatures()).get_signature_runner("one")
    assert runner(x=np.zeros([0], np.float32))["y"].shape == (0,)


def test_wrong_signatures_and_inputs():
    made = Interpreter(model_content=two_signatures())
    with pytest.raises(ValueError, match="None is only allowed when the model has 1 SignatureDef"):
        made.get_signature_runner()
    with pytest.raises(ValueError, match='Invalid signature_key provided: "three"'):
        made.get_signature_runner("three")
    runner = made.get_signature_runner("one")
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(z\) for SignatureDef"):
        runner(z=X)


def test_a_model_without_signatures_runs_by_tensor_names():
    made = Interpreter(model_content=permute())
    assert made.get_signature_list() == {}
    np.testing.assert_array_equal(made.get_signature_runner()(input=X)["output"], X[:, ::-1])
