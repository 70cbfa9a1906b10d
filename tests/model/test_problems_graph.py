# SPDX-License-Identifier: Apache-2.0
"""Problems of graphs: what they read and write, and whom they call."""

import numpy as np
import pytest
from models import build_model, make_model, operator, pack, subgraph, tensor
from problem_cases import case, cases, codes, relu, x, y

# ---- the graph ----


@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("field", ["inputs", "outputs"])
def test_graph_indices(field, index):
    model = relu()
    model.main.store(field, [*model.main.stored(field), index])
    assert codes(pack(model)) == {"graph-index"}


@case("graph-index")
def graph_output_left_out():
    model = relu()
    model.outputs = [1, None]
    return pack(model)


@case("graph-duplicate")
def graph_input_twice():
    model = relu()
    model.inputs = [0, 0]
    return pack(model)


@case("input-constant")
def graph_input_is_constant():
    model = make_model([tensor("w", [1], data=np.zeros(1, np.float32)), y(1)], [operator("RELU", [0], [1])], [0], [1])
    return pack(model)


cases(
    ("never-written", "nothing writes it", build_model([x(4), y(4)], [operator("RELU", [0], [1])], [], [1])),
    (
        "never-written",
        "nothing writes what is given back",
        build_model([x(4), y(4), tensor("z", [4])], [operator("RELU", [0], [1])], [0], [1, 2]),
    ),
    (
        "written-later",
        "read before it is written",
        build_model([x(4), y(4), tensor("z", [4])], [operator("RELU", [1], [2]), operator("RELU", [0], [1])], [0], [2]),
    ),
    (
        "written-twice",
        "two writers",
        build_model([x(4), y(4)], [operator("RELU", [0], [1]), operator("TANH", [0], [1])], [0], [1]),
    ),
    (
        "written-twice",
        "two outputs of one",
        build_model([x(2), tensor("y", [])], [operator("UNPACK", [0], [1, 1], num=2)], [0], [1]),
    ),
    (
        "constant-written",
        "constant as output",
        build_model([x(1), tensor("w", [1], data=bytes(4))], [operator("RELU", [0], [1])], [0], [1]),
    ),
    ("input-written", "input as output", build_model([x(4), y(4)], [operator("RELU", [0], [1])], [0, 1], [1])),
    ("in-and-out", "same tensor in and out", build_model([x(4), y(4)], [operator("ADD", [0, 1], [1])], [0], [1])),
)


# ---- calls ----


def loop(condition=1, body=2, cond_outputs=1, constant=None):
    """WHILE over one tensor: subgraph 1 is its condition, 2 its body."""
    main = subgraph(
        [x(1), y(1)], [operator("WHILE", [0], [1], cond_subgraph_index=condition, body_subgraph_index=body)], [0], [1]
    )
    less = operator("LESS", [0, 0], [1])
    flag = tensor("flag", [1], "BOOL", constant)
    cond = subgraph([x(1), flag], [less] if constant is None else [], [0], [1] * cond_outputs, name="cond")
    step = subgraph([x(1), y(1)], [operator("RELU", [0], [1])], [0], [1], name="body")
    return build_model(subgraphs=[main, cond, step])


def test_a_sound_loop_is_no_problem():
    assert codes(loop()) == set()
    assert codes(loop(constant=b"\0")) == set()


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1])
def test_calls_of_no_subgraph(index):
    assert codes(loop(body=index)) == {"call-index"}


cases(
    ("call-index", "condition is no subgraph", loop(condition=3)),
    ("call-cycle", "body is the caller", loop(body=0)),
)


@case("call-cycle")
def two_that_call_each_other():
    def call(index):
        return subgraph([x(1), y(1)], [operator("CALL", [0], [1], subgraph=index)], [0], [1])

    return build_model(subgraphs=[call(1), call(2), call(1)])


cases(
    (
        "call-cycle",
        "call once of itself",
        build_model(subgraphs=[subgraph([], [operator("CALL_ONCE", [], [], init_subgraph_index=0)])]),
    ),
    ("call-arity", "condition gives nothing", loop(cond_outputs=0)),
)


@case("call-arity")
def branch_takes_too_much():
    options = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    branch = subgraph([x(1), y(1)], [operator("RELU", [0], [1])], [0], [1])
    main = subgraph([tensor("c", [], "BOOL"), y(1)], [operator("IF", [0], [1], **options)], [0], [1])
    return build_model(subgraphs=[main, branch])


@case("endless-loop")
def condition_is_true():
    return loop(constant=b"\1")


def test_a_deep_chain_of_calls():
    """No recursion in C: each of 20,000 subgraphs runs the next."""
    count = 20000

    def call(index):
        return subgraph([], [operator("CALL", [], [], subgraph=index)])

    graphs = [call(i + 1) for i in range(count)]
    assert codes(build_model(subgraphs=[*graphs, subgraph()])) == set()
    assert codes(build_model(subgraphs=[*graphs, call(0)])) == {"call-cycle"}
