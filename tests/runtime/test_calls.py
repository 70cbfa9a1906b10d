# SPDX-License-Identifier: Apache-2.0
"""Subgraphs that call one another: how deep, how often, and in a thread of a small stack."""

import threading
import time

import numpy as np
import pytest
from interrupts import ended_by_ctrl_c
from models import make_model, operator, pack, subgraph, tensor

import tq
from tq.editing.parts import Part

DEPTH = 32  # TQ_CALL_DEPTH in src/runtime/run.h
SMALL_STACK = 256 << 10


def call(name, callee):
    """An operator of tensors 0 (what chooses), 1 (input), 2 (output), which runs a subgraph."""
    if name == "IF":
        return operator("IF", [0, 0, 1], [2], then_subgraph_index=callee, else_subgraph_index=callee)
    if name == "STABLEHLO_CASE":
        return operator("STABLEHLO_CASE", [0, 0, 1], [2], branch_subgraph_indices=[callee])
    if name == "CALL_ONCE":
        return operator("CALL_ONCE", [], [], init_subgraph_index=callee)
    assert name == "STABLEHLO_COMPOSITE"
    return operator("STABLEHLO_COMPOSITE", [0, 1], [2], decomposition_subgraph_index=callee, name="test")


def chain(levels, name="IF"):
    """`levels` subgraphs, each of which calls the next one."""
    graphs = []
    for level in range(levels):
        tensors = [tensor("c", [], "INT32" if name == "STABLEHLO_CASE" else "BOOL"), tensor("x", [2]), tensor("y", [2])]
        calls = [call(name, level + 1)] if level + 1 < levels else []
        ends = [] if name == "CALL_ONCE" else [0, 1], [] if name == "CALL_ONCE" else [2]
        last = [operator("NEG", [1], [2])] if not calls and name != "CALL_ONCE" else []
        graphs.append(subgraph(tensors, [*calls, *last], *ends))
    return pack(make_model(subgraphs=graphs))


def loops(levels):
    """WHILE operators in each other's bodies, each of which runs once."""
    graphs = []
    for level in range(levels):
        tensors = [tensor("i", [], "INT32"), tensor("j", [], "INT32"), tensor("one", [], "INT32", data=np.int32(1))]
        tensors.append(tensor("k", [], "INT32"))
        inner = [operator("WHILE", [0], [1], cond_subgraph_index=levels, body_subgraph_index=level + 1)]
        inner += [operator("ADD", [1, 2], [3])]
        last = [operator("ADD", [0, 2], [3])]
        graphs.append(subgraph(tensors, inner if level + 1 < levels else last, [0], [3]))
    tensors = [tensor("i", [], "INT32"), tensor("one", [], "INT32", data=np.int32(1)), tensor("go", [], "BOOL")]
    graphs.append(subgraph(tensors, [operator("LESS", [0, 1], [2])], [0], [2]))
    return pack(make_model(subgraphs=graphs))


def forked(levels, again=()):
    """Subgraphs each of which calls the next one twice, with two shapes."""
    graphs = []
    for level in range(levels):
        tensors = [tensor("c", [], "BOOL"), tensor("x", [2]), tensor("y", [2])]
        tensors += [
            tensor("two", [2], data=np.zeros(2, np.float32)),
            tensor("three", [3], data=np.zeros(3, np.float32)),
        ]
        tensors += [tensor("z", [3])]
        branches = {"then_subgraph_index": level + 1, "else_subgraph_index": level + 1}
        calls = [operator("IF", [0, 0, 3], [2], **branches), operator("IF", [0, 0, 4], [5], **branches)]
        graphs.append(subgraph(tensors, calls if level + 1 < levels else [operator("NEG", [1], [2])], [0, 1], [2]))
    return pack(make_model(subgraphs=graphs))


def run(data):
    made = tq.Interpreter(model_content=data)
    made.allocate_tensors()
    made.invoke()
    return made


def in_small_stack(function, *args):
    """The result of a function, or its exception, in a thread whose stack is small."""
    answer = []

    def catch():
        try:
            answer.append(function(*args))
        except Exception as error:
            answer.append(error)

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=catch)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return answer[0]


@pytest.mark.parametrize("name", ["IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "CALL_ONCE"])
def test_calls_nest_as_deep_as_the_budget_in_a_small_stack(name):
    assert isinstance(in_small_stack(run, chain(DEPTH, name)), tq.Interpreter)


@pytest.mark.parametrize("levels", [DEPTH + 1, 200, 8000])
@pytest.mark.parametrize("name", ["IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "CALL_ONCE"])
def test_calls_that_nest_deeper_are_refused_in_a_small_stack(name, levels):
    error = in_small_stack(run, chain(levels, name))
    assert isinstance(error, tq.RunError) and error.code == "CALL_BUDGET"
    assert f"subgraph {DEPTH} is number {DEPTH + 1} of a chain" in str(error) and f"limit is {DEPTH}" in str(error)


def test_loops_in_loops_count():
    made = in_small_stack(run, loops(DEPTH - 1))
    assert isinstance(made, tq.Interpreter), made
    error = in_small_stack(run, loops(DEPTH + 5))
    assert isinstance(error, tq.RunError) and error.code == "CALL_BUDGET"


def test_an_error_deep_inside_names_the_innermost_subgraph():
    data = tq.edit(chain(20))
    data.subgraphs[19].operators[0].store("inputs", [0])  # NEG of a BOOL
    with pytest.raises(tq.RunError, match=r"subgraph 19: operator 0 \(NEG\)"):
        run(data.to_bytes())


def test_preparing_again_and_again_is_refused():
    begin = time.perf_counter()
    with pytest.raises(tq.RunError, match=r"other shapes again and again: \d+ .* the limit is 1000000") as caught:
        tq.Interpreter(model_content=forked(30)).allocate_tensors()
    assert caught.value.code == "CALL_BUDGET"
    assert time.perf_counter() - begin < 60  # without the limit, an hour


def test_preparing_a_few_times_is_not():
    run(forked(8))


def test_ctrl_c_is_heard_while_calls_double():
    made = tq.Interpreter(model_content=forked(17))
    made.allocate_tensors()
    with ended_by_ctrl_c():
        for _ in range(1000):
            made.invoke()


def test_int8_looks_at_each_of_many_subgraphs_a_few_times(monkeypatch):
    """The time grows with the number of subgraphs, not with its square."""
    compared = []
    equal = Part.__eq__

    def counted(part, other):
        compared.append(part)
        return equal(part, other)

    monkeypatch.setattr(Part, "__eq__", counted)
    with pytest.raises(ValueError, match="needs calibration"):
        tq.quantize_model(chain(500, "STABLEHLO_COMPOSITE"), "int8")
    assert len(compared) < 5000  # where each was looked for among all, 100 times as many
