# SPDX-License-Identifier: Apache-2.0
"""Models whose parameters and indices do not fit have a stated outcome in everything that looks at them."""

import numpy as np
import pytest
from models import build_model, operator, signature, tensor

import tq
from tq.running.difference_steps import Kernels, explain_element


def sum_model(type="INT64", **quantization):
    x, y = tensor("x", [1, 2], type, **quantization), tensor("y", [1, 2], type, **quantization)
    c = tensor("c", [2], type, data=np.array([1, 2], type.lower()), **quantization)
    return build_model([x, c, y], [operator("ADD", [0, 1], [2])], [0], [2])


def test_a_report_measures_int64_values_with_a_scale():
    data = sum_model(scale=0.5, zero_point=0)
    made = tq.report(data, data, [[np.ones((1, 2), np.int64)]])
    assert [output.name for output in made.outputs] == ["y"]


def test_a_comparison_of_values_whose_scales_do_not_fit_is_of_the_values():
    data = sum_model("INT32", scale=[0.5, 0.5, 0.5], zero_point=[0, 0, 0], quantized_dimension=7)
    rows = tq.compare(data, inputs=[np.ones((1, 2), np.int32)], numerics=["reference", "optimized"])
    assert rows.equal


def test_block_scales_without_dimensions_are_one_scale():
    blocks = {"type": "BlockwiseQuantization", "scales": 1, "zero_points": -1, "block_size": 32}
    scales = tensor("scales", [], "FLOAT32", data=np.array(0.25, np.float32))
    data = build_model([tensor("w", [1, 32], "INT8", details=blocks), scales])
    assert tq.Model(data).tensors[0].quantization.scale.tolist() == [0.25]


def test_a_signature_of_a_tensor_that_is_not_there_says_so():
    made = build_model(
        [tensor("x", [1]), tensor("y", [1])],
        [operator("ABS", [0], [1])],
        [0],
        [1],
        signatures=[signature("serve", {"x": 64}, {"y": 1})],
    )
    runner = tq.Interpreter(model_content=made).get_signature_runner("serve")
    with pytest.raises(ValueError, match="says that 'x' is tensor 64; subgraph 0 has 2 tensors"):
        runner.get_input_details()


def test_zeros_that_differ_in_sign_alone_have_no_steps():
    """A comparison is of bits; which number is right is not asked where the numbers are equal."""
    model = tq.Model(build_model([tensor("x", [1]), tensor("y", [1])], [operator("ABS", [0], [1])], [0], [1]))
    interpreter = tq.Interpreter(model=model)
    interpreter.allocate_tensors()
    values = np.array([0.0], np.float32), np.array([-0.0], np.float32)
    kernels = Kernels("reference"), Kernels("optimized")
    assert explain_element(interpreter, model.operators[0], model.tensors[1], values, kernels) is None
