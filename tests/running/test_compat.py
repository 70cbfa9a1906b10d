# SPDX-License-Identifier: Apache-2.0
"""tq in the place of TFLite's packages."""

import os
import sys

import numpy as np
import oracle
import pytest
from interpreter_models import X, allocated, permute
from models import build_model, operator, tensor

import tq
from tq.pytest_plugin import tq_stand_in  # noqa: F401
from tq.running import compat
from tq.running import interpreter as interpreter_module
from tq.running.interpreter import Interpreter


def test_stand_in():
    import ai_edge_litert.interpreter as real

    with tq.stand_in():
        import ai_edge_litert.interpreter as one
        import tflite_runtime.interpreter as two

        assert one.Interpreter is two.Interpreter is Interpreter
        assert {name for name in ("OpResolverType", "SignatureRunner", "load_delegate") if hasattr(one, name)} == {
            "OpResolverType",
            "SignatureRunner",
            "load_delegate",
        }
        from ai_edge_litert.interpreter import Interpreter as imported

        assert imported is Interpreter
    import ai_edge_litert.interpreter as after

    assert after is real
    assert "tflite_runtime" not in sys.modules


def test_stand_in_fixture(tq_stand_in):  # noqa: F811
    from tflite_runtime.interpreter import Interpreter as imported

    assert imported is Interpreter


def listed(capsys, **arguments):
    with tq.stand_in():
        from tensorflow.lite.experimental import Analyzer

        Analyzer.analyze(**arguments)
    return capsys.readouterr().out


@pytest.mark.skipif(compat._installed("tensorflow"), reason="TensorFlow is installed")
def test_the_analyzer_prints_the_listing_with_litert_s_lines_on_the_gpu(capsys, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(permute())
    listing = str(tq.Model(permute()))
    assert listed(capsys, model_content=permute()) == f"=== TFLite ModelAnalyzer ===\n\n{listing}\n"
    for given in (path, str(path), os.fsencode(path)):
        assert listed(capsys, model_path=given) == f"=== {path} ===\n\n{listing}\n"
    (of_litert,) = oracle.ask("gpu_lines", [permute()])
    with_lines = listed(capsys, model_content=permute(), gpu_compatibility=True)
    assert of_litert in with_lines
    assert with_lines.replace(of_litert, "") == f"=== TFLite ModelAnalyzer ===\n\n{listing}\n"


@pytest.mark.skipif(compat._installed("tensorflow"), reason="TensorFlow is installed")
def test_the_analyzer_refuses_what_it_cannot_do(capsys):
    with pytest.raises(ValueError, match="neither `model_path` nor `model_content` is provided"):
        listed(capsys)
    with pytest.raises(ValueError, match="experimental_use_mlir needs TensorFlow's converter"):
        listed(capsys, model_content=permute(), experimental_use_mlir=True)
    with pytest.raises(tq.ModelError):
        listed(capsys, model_content=b"no model at all")
    with pytest.raises(ValueError, match="`model_path` and `model_content` are provided; give one of them"):
        listed(capsys, model_path="m.tflite", model_content=permute())
    with pytest.raises(TypeError, match="`model_content` is a str; it needs the bytes of a model"):
        listed(capsys, model_content="m.tflite")


def test_load_delegate_is_refused():
    with pytest.raises(ValueError, match=r"Failed to load delegate from x\.so"):
        interpreter_module.load_delegate("x.so")


def test_litert_can_be_compared_with(tmp_path):
    """A LiteRT interpreter takes part in tq.compare by its methods alone."""
    path = tmp_path / "m.tflite"
    path.write_bytes(permute())
    (answer,) = oracle.ask("run", [(str(path), "BUILTIN_REF", [X])])
    assert not isinstance(answer, (oracle.Refusal, oracle.Abort))
    made = allocated(permute())
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), answer[0])


def reshapes(*shapes):
    """NEG, then a RESHAPE for each shape, then ABS: x[12] -> -x -> ... -> |x|."""
    tensors = [tensor("x", [12]), tensor("n", [12])]
    operators = [operator("NEG", [0], [1])]
    for shape in shapes:
        tensors.append(tensor(f"r{len(tensors)}", shape))
        operators.append(operator("RESHAPE", [len(tensors) - 2], [len(tensors) - 1], new_shape=shape))
    tensors.append(tensor("y", shapes[-1]))
    operators.append(operator("ABS", [len(tensors) - 2], [len(tensors) - 1]))
    return tensors, operators


def test_a_reshaped_tensor_takes_over_the_place_of_what_it_was():
    tensors, operators = reshapes([3, 4], [2, 6])
    made = allocated(build_model(tensors, operators, [0], [4]))
    places = {item.tensor: item.offset for item in made.memory_plan().placed}
    assert places[1] == places[2] == places[3] != places[0]
    assert made.memory_plan().lower_bound <= made.memory_plan().arena
    x = np.arange(12, dtype=np.float32)
    made.set_tensor(0, x)
    for step, outputs in enumerate(step.outputs for step in made.trace()):
        assert (np.ravel(outputs[0]) == (x if step == 3 else -x)).all()
    np.testing.assert_array_equal(made.get_tensor(4), x.reshape(2, 6))
    kept = tq.Interpreter(
        model_content=build_model(tensors, operators, [0], [4]), experimental_preserve_all_tensors=True
    )
    kept.allocate_tensors()
    assert len({item.offset for item in kept.memory_plan().placed}) == 5


@pytest.mark.parametrize("reader", ["the graph", "an operator behind", "the caller"])
def test_a_tensor_that_is_read_again_keeps_its_place(reader):
    tensors, operators = reshapes([3, 4])
    inputs, outputs = [0], [3]
    if reader == "the graph":
        outputs = [3, 1]
    elif reader == "an operator behind":
        tensors.append(tensor("z", [12]))
        operators.append(operator("NEG", [1], [4]))
        outputs = [3, 4]
    else:  # who may set it again, and read what it was made of before
        operators, inputs = operators[1:], [1]
    made = allocated(build_model(tensors, operators, inputs, outputs))
    places = {item.tensor: item.offset for item in made.memory_plan().placed}
    assert places[1] != places[2]
    x = np.arange(12, dtype=np.float32) - 3
    made.set_tensor(inputs[0], x)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(3).ravel(), np.abs(x))
    for index, expected in {1: -x, 4: x}.items():
        if index in outputs:
            np.testing.assert_array_equal(made.get_tensor(index), expected)
