# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter: operator by operator, its time and its memory."""

import numpy as np
import pytest
from interpreter_models import X, allocated, relu_chain
from models import build_model, operator, tensor

import tq


def test_run_from_and_until():
    made = allocated(relu_chain(3), experimental_preserve_all_tensors=True)
    x = np.arange(64, dtype=np.float32)
    made.set_tensor(0, x)
    made.run(until=2)
    np.testing.assert_array_equal(made.get_tensor(2), x)
    made.set_tensor(2, 2 * x)
    made.run(start=2)
    np.testing.assert_array_equal(made.get_tensor(3), -2 * x)
    with pytest.raises(IndexError):
        made.run(start=3, until=9)


def test_trace_profile_and_plan():
    made = allocated(relu_chain(3))
    x = np.arange(64, dtype=np.float32)
    made.set_tensor(0, x)
    for k, step in enumerate(made.trace()):
        assert (step.index, step.operator.name) == (k, "NEG")
        assert repr(step) == f"<tq.Step {k} NEG: float32 (64,)>"
        np.testing.assert_array_equal(step.outputs[0], x * (-1) ** (k + 1))
    profile = made.profile(runs=3)
    assert [row.name for row in profile.rows] == ["NEG"] * 3 and profile.microseconds > 0
    assert profile.rows[0].bytes == 512 and "NEG" in str(profile)
    plan = made.memory_plan()
    assert {item.tensor for item in plan.placed} == {0, 1, 2, 3}
    assert plan.lower_bound <= plan.arena <= 4 * 256
    for a in plan.placed:
        for b in plan.placed:
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            in_place = a.offset == b.offset and (a.last == b.first or b.last == a.first)
            assert a is b or apart or in_place or a.last < b.first or b.last < a.first
    assert str(plan.arena) in str(plan)


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    made = allocated(relu_chain(3))
    assert len(made.profile(2).plot().patches) == 3
    assert len(made.memory_plan().plot().patches) == 4


def test_compare():
    def scaled(factor):
        parts = [tensor("x", [4]), tensor("c", [], data=np.float32(factor)), tensor("m", [4]), tensor("y", [4])]
        return build_model(parts, [operator("MUL", [0, 1], [2]), operator("NEG", [2], [3])], [0], [3])

    a, b = scaled(2), scaled(3)
    assert a != b
    same = tq.compare(a, tq.Model(a), {"x": X[0]})
    assert same.equal and same.first_difference is None and "equal" in str(same)
    other = tq.compare(a, b, [X[0]])
    first = other.first_difference
    assert (first.name, first.operator, first.operator_name, first.different) == ("m", 0, "MUL", 4)
    assert first.max_error == 4 and abs(first.sqnr_db - 20 * np.log10(2)) < 1e-9
    for inputs in ({"nobody": X}, [X[0], X[0]], [X.astype(np.int8)]):
        with pytest.raises(ValueError):
            tq.compare(a, b, inputs)
