# SPDX-License-Identifier: Apache-2.0
"""max_memory and max_multiply_adds: what a run may take, of every function and command that runs a model."""

import time

import numpy as np
import pytest
from models import build_model, operator, subgraph, tensor

import tq
from tq.cli.arguments import main

FIRST = np.linspace(-1, 1, 70, dtype=np.float32).reshape(7, 10)
X = np.ones((4, 10), np.float32)
WORK = 4 * 10 * 7  # of the dense layer
DENSE = build_model(
    [tensor("x", [4, 10]), tensor("w", [7, 10], data=FIRST), tensor("y", [4, 7])],
    [operator("FULLY_CONNECTED", [0, 1, -1], [2])],
    inputs=[0],
    outputs=[2],
)


def loop(body):
    """WHILE over a BOOL, which the condition gives back, and a number: it ends where the BOOL is false."""
    both = [tensor("go", [], "BOOL"), tensor("n", [2])]
    turns = operator("WHILE", [0, 1], [2, 3], cond_subgraph_index=1, body_subgraph_index=2)
    return build_model(
        subgraphs=[
            subgraph([*both, tensor("go_", [], "BOOL"), tensor("n_", [2])], [turns], [0, 1], [2, 3]),
            subgraph(both, [], [0, 1], [0]),
            subgraph([*both, tensor("m", [2])], body, [0, 1], [0, 2 if body else 1]),
        ],
    )


def allocated(data, **limits):
    made = tq.Interpreter(model_content=data, **limits)
    made.allocate_tensors()
    return made


def test_work_equal_to_the_limit_runs():
    made = allocated(DENSE, max_multiply_adds=WORK)
    made.set_tensor(0, X)
    made.invoke()
    made.invoke()  # each call counts anew
    np.testing.assert_array_equal(made.get_tensor(2), X @ FIRST.T)


def strings(name, times):
    """An operator that makes 10^`times` strings of one."""
    counts = np.full(times, 10, np.int32)
    text = np.array([b"a"], object) if name == "TILE" else np.array(b"a", object)
    shape = [1] * times if name == "TILE" else []
    tensors = [tensor("s", shape, "STRING", text), tensor("n", [times], "INT32", counts), tensor("y", [], "STRING")]
    return build_model(tensors, [operator(name, [0, 1] if name == "TILE" else [1, 0], [2])], [], [2])


@pytest.mark.parametrize("name", ["FILL", "TILE"])
def test_strings_that_pass_a_limit_are_refused_before_they_are_counted(name):
    begin = time.process_time()
    with pytest.raises(tq.RunError, match="max_memory"):
        allocated(strings(name, 8), max_memory=1 << 20).invoke()
    assert time.process_time() - begin < 0.3  # counting them takes more


def test_prepare_refuses_more_and_says_both_numbers():
    with pytest.raises(
        tq.RunError, match=rf"operator 0 \(FULLY_CONNECTED\): .* {WORK}; the limit is {WORK - 1} "
    ) as found:
        allocated(DENSE, max_multiply_adds=WORK - 1)
    assert found.value.code == "WORK_LIMIT"


def test_the_shapes_that_run_count_and_not_those_of_the_file():
    made = allocated(DENSE, max_multiply_adds=WORK)
    made.resize_tensor_input(0, [8, 10])
    with pytest.raises(tq.RunError, match=f"to {2 * WORK}; the limit is {WORK} "):
        made.allocate_tensors()


def test_operators_of_a_graph_add_up():
    tensors = [tensor(f"t{i}", [50]) for i in range(4)]
    data = build_model(tensors, [operator("RELU", [i], [i + 1]) for i in range(3)], inputs=[0], outputs=[3])
    allocated(data, max_multiply_adds=150).invoke()
    with pytest.raises(tq.RunError, match=r"operator 2 \(RELU\): brings the multiply-adds to 150; the limit is 149 "):
        allocated(data, max_multiply_adds=149)


@pytest.mark.parametrize(
    ("name", "inputs", "output", "options", "count"),
    [
        ("TILE", [tensor("a", [1]), tensor("b", [1], "INT32", data=[5000])], [5000], {}, 5000),
        ("BROADCAST_TO", [tensor("a", [1]), tensor("b", [2], "INT32", data=[50, 60])], [50, 60], {}, 3000),
        ("SUM", [tensor("a", [9, 9]), tensor("b", [2], "INT32", data=[0, 1])], [], {}, 81),
        ("CUMSUM", [tensor("a", [77]), tensor("b", [], "INT32", data=np.int32(0))], [77], {}, 77),
        (
            "MAX_POOL_2D",
            [tensor("a", [1, 8, 8, 2])],
            [1, 8, 8, 2],
            {"filter_height": 3, "filter_width": 99, "stride_h": 1, "stride_w": 1, "padding": "SAME"},
            8 * 8 * 2 * 3 * 8,
        ),
        ("LOCAL_RESPONSE_NORMALIZATION", [tensor("a", [1, 2, 2, 9])], [1, 2, 2, 9], {"radius": 1}, 36 * 3),
    ],
)
def test_other_operators_count_elements_and_windows(name, inputs, output, options, count):
    tensors = [*inputs, tensor("y", output)]
    last = len(inputs)
    data = build_model(tensors, [operator(name, list(range(last)), [last], **options)], inputs=[0], outputs=[last])
    allocated(data, max_multiply_adds=count)
    with pytest.raises(tq.RunError, match=f"to {count}; the limit is {count - 1} "):
        allocated(data, max_multiply_adds=count - 1)


def test_shapes_that_wait_for_data_count_when_they_are_known():
    tensors = [tensor("n", [1], "INT32"), tensor("v", []), tensor("y", [1]), tensor("z", [1])]
    operators = [operator("FILL", [0, 1], [2]), operator("NEG", [2], [3])]
    data = build_model(tensors, operators, inputs=[0, 1], outputs=[3])
    made = allocated(data, max_multiply_adds=1999)
    made.set_tensor(0, np.int32([999]))
    made.invoke()
    made.set_tensor(0, np.int32([1000]))
    with pytest.raises(tq.RunError, match=r"operator 1 \(NEG\): brings the multiply-adds to 2000; the limit is 1999 "):
        made.invoke()
    made.set_tensor(0, np.int32([10]))
    made.invoke()
    assert len(made.get_tensor(3)) == 10


@pytest.mark.parametrize("body", [[operator("NEG", [1], [2])], []], ids=["a body", "an empty body"])
def test_a_loop_without_an_end_ends(body):
    made = allocated(loop(body), max_multiply_adds=100_000)
    made.set_tensor(0, np.bool_(True))
    with pytest.raises(tq.RunError, match="the limit is 100000 ") as found:
        made.invoke()
    assert found.value.code == "WORK_LIMIT"
    made.set_tensor(0, np.bool_(False))
    made.invoke()


@pytest.mark.parametrize("name", ["max_memory", "max_multiply_adds"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "9", True, 2**64])
def test_a_limit_is_a_number_from_one(name, value):
    with pytest.raises(ValueError, match=f"{name} is "):
        tq.Interpreter(model_content=DENSE, **{name: value})


# ---- functions ----

RUNS = {
    "compare": lambda **limits: tq.compare(DENSE, DENSE, X, **limits),
    "calibrate": lambda **limits: tq.calibrate(DENSE, [X], **limits),
    "quantize_model": lambda **limits: tq.quantize_model(DENSE, calibration=[X], min_elements=1, **limits),
    "target_sqnr": lambda **limits: tq.quantize_model(
        DENSE, calibration=[X], min_elements=1, target_sqnr=1.0, bias_correction=True, **limits
    ),
    "sensitivity": lambda **limits: tq.sensitivity(DENSE, [X], min_elements=1, **limits),
    "sensitivity of weights": lambda **limits: tq.sensitivity(
        DENSE, [X], recipe="weight_only_int8", min_elements=1, **limits
    ),
    "report": lambda **limits: tq.report(DENSE, QUANTIZED, [X], **limits),
}
QUANTIZED = tq.quantize_model(DENSE, calibration=[X], min_elements=1)


@pytest.mark.parametrize("limits", [{"max_memory": 64}, {"max_multiply_adds": WORK - 1}], ids=lambda x: next(iter(x)))
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_functions_that_run_models_pass_limits_on(run, limits):
    run(max_memory=1 << 24, max_multiply_adds=1 << 20)
    with pytest.raises(tq.RunError, match=next(iter(limits))):
        run(**limits)


def test_an_interpreter_has_its_own_limits():
    with pytest.raises(ValueError, match="max_multiply_adds need a model"):
        tq.compare(tq.Interpreter(model_content=DENSE), DENSE, X, max_multiply_adds=WORK)


# ---- commands ----


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.tflite").write_bytes(DENSE)
    (tmp_path / "q.tflite").write_bytes(QUANTIZED)
    np.save(tmp_path / "x.npy", X[None])
    return tmp_path


COMMANDS = {
    "run": ["run", "a.tflite"],
    "compare": ["compare", "a.tflite", "a.tflite"],
    "profile": ["profile", "a.tflite"],
    "quantize": ["quantize", "a.tflite", "out.tflite", "--recipe", "int8", "--samples", "x.npy", "--min-elements", "1"],
    "report": ["report", "a.tflite", "q.tflite", "--samples", "x.npy", "-o", "out.html"],
}


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
def test_commands_take_limits(files, argv, monkeypatch, capsys):
    monkeypatch.chdir(files)
    assert main([*argv, "--max-memory", str(1 << 24), "--max-multiply-adds", str(1 << 20)]) == 0
    for option, value in (("--max-memory", 64), ("--max-multiply-adds", WORK - 1)):
        capsys.readouterr()
        assert main([*argv, option, str(value)]) == 2
        error = capsys.readouterr().err
        assert f"the limit of {value} (--max-memory)" in error or f"the limit is {value} (--max-multiply-adds)" in error
    assert main([*argv, "--max-memory", "0"]) == 2
