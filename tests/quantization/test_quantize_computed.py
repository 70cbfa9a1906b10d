# SPDX-License-Identifier: Apache-2.0
"""Integer operators whose weights are computed, and those with fused activations that no kernel has."""

import numpy as np
import pytest
from test_quantize_model import normal, outputs
from test_quantize_static import RESOLVERS, check, quantized

import tq

PADDED = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
WINDOW = {**PADDED, "filter_height": 2, "filter_width": 2}
FULL = (1, 4, 4, 8)
TRANSPOSED = np.array([1, 4, 4, 6], np.int32)
# operator: shapes of weights, input and output; whether it has a bias; options
COMPUTED = {
    "FULLY_CONNECTED": ((6, 8), (2, 8), (2, 6), {}),
    "CONV_2D": ((6, 3, 3, 8), FULL, (1, 4, 4, 6), PADDED),
    "DEPTHWISE_CONV_2D": ((1, 3, 3, 8), FULL, FULL, {**PADDED, "depth_multiplier": 1}),
    "TRANSPOSE_CONV": ((6, 3, 3, 8), FULL, (1, 4, 4, 6), PADDED),
}


def computed(name, maker, with_bias=True):
    shape, x_shape, y_shape, options = COMPUTED[name]
    b = tq.ModelBuilder()
    x, seed = b.input("x", x_shape), b.input("seed", shape)
    weights, y = b.tensor("weights", shape), b.tensor("y", y_shape)
    b.operator(maker, [seed], [weights])
    inputs = [x, weights] if name != "TRANSPOSE_CONV" else [b.constant("shape", TRANSPOSED), weights, x]
    if with_bias:
        inputs.append(b.constant("bias", normal(y_shape[-1])))
    b.operator(name, inputs, [y], **options)
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("maker", ["TANH", "COS"])  # of integers, and of floats
@pytest.mark.parametrize("name", COMPUTED)
def test_computed_weights_beside_int16(name, maker):
    model = computed(name, maker, with_bias=maker == "TANH")
    data = quantized(model, "int16x8")
    (op,) = (op for op in tq.Model(data).subgraphs[0].operators if op.name == name)
    place = 1
    assert op.inputs[place].type.name == "INT8" and op.inputs[place].quantization.zero_point.tolist() == [0]
    assert op.outputs[0].type.name == "INT16"
    (maker_of,) = (o for o in tq.Model(data).subgraphs[0].operators if op.inputs[place].index in o.output_indices)
    assert maker_of.name == "QUANTIZE"
    assert maker_of.inputs[0].type.name == ("INT16" if maker == "TANH" else "FLOAT32")
    check(model, data, least=35)


def test_computed_weights_of_two_operators_are_made_once():
    b = tq.ModelBuilder()
    x, seed = b.input("x", (2, 8)), b.input("seed", (8, 8))
    weights, y, z, t = b.tensor("weights", (8, 8)), b.tensor("y", (2, 8)), b.tensor("z", (2, 8)), b.tensor("t", (8, 8))
    b.operator("TANH", [seed], [weights])
    b.operator("FULLY_CONNECTED", [x, weights, None], [y])
    b.operator("FULLY_CONNECTED", [y, weights, None], [z])
    b.operator("FULLY_CONNECTED", [weights, weights, None], [t])
    b.output(z, t, weights)
    model = b.to_bytes()
    data = quantized(model, "int16x8")
    names = [op.name for op in tq.Model(data).subgraphs[0].operators]
    assert names.count("FULLY_CONNECTED") == 3 and names.count("QUANTIZE") == 3
    check(model, data, least=35)


# operator: constants beside the input, where they stand after it, the output's shape, options
FUSED = {
    "ADD": ([3 * normal(8)], FULL, {}),
    "SUB": ([3 * normal(8)], FULL, {}),
    "MUL": ([3 * normal(8)], FULL, {}),
    "DIV": ([3 * normal(8)], FULL, {}),
    "CONV_2D": ([3 * normal(6, 3, 3, 8), normal(6)], (1, 4, 4, 6), PADDED),
    "DEPTHWISE_CONV_2D": ([3 * normal(1, 3, 3, 8), normal(8)], FULL, {**PADDED, "depth_multiplier": 1}),
    "AVERAGE_POOL_2D": ([], FULL, WINDOW),
    "MAX_POOL_2D": ([], FULL, WINDOW),
    "TRANSPOSE_CONV": ([TRANSPOSED, 3 * normal(6, 3, 3, 8)], (1, 4, 4, 6), PADDED),
}


def fused(name, activation):
    constants, shape, options = FUSED[name]
    b = tq.ModelBuilder()
    x, h, y = b.input("x", FULL), b.tensor("h", FULL), b.tensor("y", shape)
    b.operator("LEAKY_RELU", [x], [h], alpha=0.1)
    inputs = [b.constant(f"c{place}", value) for place, value in enumerate(constants)]
    inputs.insert(2 if name == "TRANSPOSE_CONV" else 0, h)
    b.operator(name, inputs, [y], fused_activation_function=activation, **options)
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("activation", ["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("name", FUSED)
def test_activations_that_kernels_ignore(name, activation):
    """Kernels of floats ignore them as well as kernels of integers, so that both mean the same."""
    model, plain = fused(name, activation), fused(name, "NONE")
    for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "TQ"):
        np.testing.assert_array_equal(outputs(model, resolver), outputs(plain, resolver), err_msg=resolver)
    np.testing.assert_allclose(outputs(model, "AUTO"), outputs(plain, "AUTO"), rtol=1e-4, atol=1e-5)
    data = quantized(model)
    assert not any(op.inputs[0].type.name == "FLOAT32" for op in tq.Model(data).subgraphs[0].operators[1:])
    check(model, data)
    for resolver in RESOLVERS[1:]:
        np.testing.assert_array_equal(outputs(data, resolver), outputs(quantized(plain), resolver))


@pytest.mark.parametrize("name", ["FULLY_CONNECTED", "L2_NORMALIZATION", "CONCATENATION"])
def test_activations_that_kernels_refuse(name):
    b = tq.ModelBuilder()
    x, h, y = b.input("x", (2, 8)), b.tensor("h", (2, 8)), b.tensor("y", (2, 16 if name == "CONCATENATION" else 8))
    b.operator("LEAKY_RELU", [x], [h], alpha=0.1)
    more = {"FULLY_CONNECTED": [b.constant("w", normal(8, 8)), None], "CONCATENATION": [h], "L2_NORMALIZATION": []}
    b.operator(name, [h, *more[name]], [y], fused_activation_function="TANH")
    b.output(y)
    with tq.edit(b.to_bytes()) as e:
        for tensor in e.main.tensors[:3]:  # no calibration can run it
            tensor.quantization = {"min": [-1], "max": [1]}
        model = e.to_bytes()
    data = tq.quantize_model(model, "int8")
    assert [op.name for op in tq.Model(data).subgraphs[0].operators] == ["QUANTIZE", "LEAKY_RELU", "DEQUANTIZE", name]
    for resolver in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "TQ"):
        with pytest.raises(AssertionError, match="activation"):
            outputs(model, resolver)
