# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter: what cannot run, control flow and variables."""

import numpy as np
import pytest
from interpreter_models import X, allocated, counter, variable_model
from interrupts import ended_by_ctrl_c
from models import build_model, make_model, operator, pack, subgraph, tensor

import tq
from tq.running.interpreter import Interpreter

# ---- what cannot run ----


def test_every_missing_or_invalid_operator_is_listed():
    data = build_model(
        [tensor("x", [4]), tensor("a", [4]), tensor("b", [4]), tensor("c", [4]), tensor("i", [4], "STRING")],
        [
            operator("NoSuchOperator", [0], [1]),
            operator("NEG", [4], [2]),
            operator("Another", [0], [3]),
        ],
        [0, 4],
        [1, 2, 3],
    )
    with pytest.raises(tq.RunError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    text = str(caught.value)
    assert "Encountered unresolved custom op: NoSuchOperator." in text and "Another" in text
    assert "operator 1 (NEG)" in text
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, tq.Error)
    assert caught.value.code == "UNSUPPORTED"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ethos-u", "is compiled for an Arm Ethos-U accelerator; run the model from before vela"),
        ("edgetpu-custom-op", "is compiled for a Coral Edge TPU"),
        ("DISPATCH_OP", "is compiled for an accelerator"),
        ("MTKEXT_CONV_2D", "is of MediaTek's accelerators"),
        ("FlexErf", "is TensorFlow's own, and needs TensorFlow to run"),
        ("Flex", "is TensorFlow's own, and needs TensorFlow to run"),
        ("Fle", "is not one that tq knows; tq.register_op can add it"),
        ("ethos-u2", "is not one that tq knows"),
        ("tftext:WhitespaceTokenizer", "is of TensorFlow Text"),
        ("", "is not one that tq knows"),
    ],
)
def test_what_a_custom_operator_is_that_cannot_run(name, text):
    data = build_model([tensor("x", [4]), tensor("y", [4])], [operator(name, [0], [1])], [0], [1])
    with pytest.raises(tq.RunError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    assert f"Encountered unresolved custom op: {name}. Operator 0 {text}" in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "operators", "inputs", "outputs", "text"),
    [
        (2, [("NEG", [0], [0])], [0], [0], "input"),
        (2, [("NEG", [1], [1])], [], [1], "input 0"),
        (2, [("NEG", [0], [1]), ("NEG", [0], [1])], [0], [1], "written by operator 0"),
        (3, [("NEG", [2], [1]), ("NEG", [0], [2])], [0], [1], "no operator before"),
        (2, [("NEG", [7], [1])], [0], [1], "does not exist"),
        (2, [("NEG", [0], [1])], [9], [1], "input 0 of the subgraph is tensor 9"),
        (2, [("NEG", [0], [1])], [0], [-1], "output 0 of the subgraph is tensor -1"),
        (2, [], [0], [1], "no operator writes it"),
    ],
)
def test_graphs_that_contradict_themselves(tensors, operators, inputs, outputs, text):
    data = build_model(
        [tensor(f"t{k}", [2]) for k in range(tensors)],
        [operator(name, ins, outs) for name, ins, outs in operators],
        inputs,
        outputs,
    )
    with pytest.raises(RuntimeError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    assert text in str(caught.value)


def test_inputs_that_nothing_writes_hold_zeros():
    data = build_model(
        [tensor("x", [2]), tensor("nobody", [2]), tensor("y", [2]), tensor("z", [2])],
        [
            operator("ADD", [0, 1], [2]),
            operator("ADD", [2, 1], [3]),
        ],
        [0],
        [3],
    )
    made = allocated(data)
    for _ in range(2):
        made.set_tensor(0, X[0, :2])
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(3), X[0, :2])


def test_an_error_in_running_leaves_the_interpreter_usable():
    data = build_model(
        [tensor("x", [4]), tensor("shape", [2], "INT32"), tensor("y", [2, 2], shape_signature=[-1, -1])],
        [operator("RESHAPE", [0, 1], [2])],
        [0, 1],
        [2],
    )
    made = allocated(data)
    made.set_tensor(0, X[0])
    made.set_tensor(1, np.array([3, -1], np.int32))
    with pytest.raises(RuntimeError, match=r"operator 0 \(RESHAPE\)"):
        made.invoke()
    made.set_tensor(1, np.array([4, -1], np.int32))
    made.invoke()
    assert made.get_tensor(2).shape == (4, 1)
    assert made.get_output_details()[0]["shape"].tolist() == [4, 1]


# ---- control flow and variables ----


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_while(n):
    made = allocated(counter())
    made.set_tensor(1, np.int32(n))
    made.set_tensor(2, np.array([1, -2], np.float32))
    made.invoke()
    assert made.get_tensor(3) == n
    np.testing.assert_array_equal(made.get_tensor(5), np.array([1, -2]) * (-1) ** n)


def test_a_loop_without_end_can_be_interrupted():
    made = allocated(counter())
    made.set_tensor(1, np.int32(2**31 - 1))
    with ended_by_ctrl_c():
        made.invoke()
    made.set_tensor(1, np.int32(1))
    made.invoke()
    assert made.get_tensor(3) == 1


@pytest.mark.parametrize("callee", [0, 9, -1])
def test_recursion_and_missing_subgraphs_are_refused(callee):
    main = subgraph(
        [tensor("c", [], "BOOL"), tensor("x", [2]), tensor("y", [2])],
        [operator("IF", [0, 1], [2], then_subgraph_index=callee, else_subgraph_index=callee)],
        [0, 1],
        [2],
    )
    with pytest.raises(RuntimeError, match=r"operator 0 \(IF\)"):
        Interpreter(model_content=pack(make_model(subgraphs=[main]))).allocate_tensors()


def test_variables_keep_their_value():
    made = allocated(variable_model())
    for total in (1, 2, 3):
        made.set_tensor(0, np.ones(2, np.float32))
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(3), [5 + total, 6 + total])
