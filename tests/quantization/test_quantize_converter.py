# SPDX-License-Identifier: Apache-2.0
"""tq.quantize_model beside TFLiteConverter, where TensorFlow is installed: one network, the same calibration data."""

import numpy as np
import pytest
from test_quantize_model import noise_db

import tq

pytestmark = pytest.mark.slow
# Tensors that share parameters: in tq they have the range of them all, in the converter's model that of the last one,
# and with int16 some have their own, with a QUANTIZE between.  And what feeds the sum, which TFLite computes in place,
# so that its calibrator sees the sum there too.
SHARED = ("add", "pool", "twice", "both", "branch")


@pytest.fixture(scope="module")
def network():
    """(TensorFlow, Keras model, samples)."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    layers, rng = tf.keras.layers, np.random.default_rng(0)
    x = inputs = tf.keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, activation="relu", padding="same", name="first")(x)
    x = layers.DepthwiseConv2D(3, padding="same", name="deep")(x)
    x = layers.LeakyReLU(negative_slope=0.2, name="leaky")(x)
    x = layers.Add(name="add")([x, layers.Conv2D(8, 1, name="branch")(x)])
    x = layers.AveragePooling2D(2, name="pool")(x)
    x = layers.Concatenate(name="both")([x, layers.Multiply(name="twice")([x, x])])
    x = layers.GlobalAveragePooling2D(name="mean")(x)
    x = layers.Dense(12, activation="relu6", name="hidden")(x)
    x = layers.Dense(5, name="logits")(x)
    model = tf.keras.Model(inputs, layers.Softmax(name="last")(x))
    model.set_weights([(0.3 * rng.standard_normal(w.shape)).astype(np.float32) for w in model.get_weights()])
    return tf, model, [rng.uniform(-1, 1, (1, 16, 16, 3)).astype(np.float32) for _ in range(8)]


def converted(network, recipe):
    tf, model, samples = network
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if recipe is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in samples)
    if recipe == "int16x8":
        kind = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [kind]
    return converter.convert()


def run(data, sample):
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_weights_and_scales_are_the_converters(network, recipe):
    samples = network[2]
    float_model, theirs = converted(network, None), converted(network, recipe)
    ours = tq.quantize_model(float_model, recipe, calibration=[[sample] for sample in samples])
    mine, other = tq.Model(ours), tq.Model(theirs)
    kinds = [[op.name for op in model.operators if op.name != "QUANTIZE"] for model in (mine, other)]
    assert kinds[0] == kinds[1]
    found, weights = {tensor.name: tensor for tensor in mine.tensors}, 0
    for tensor in other.tensors:
        same = found.get(tensor.name)
        if same is None or not len(tensor.quantization.scale) or any(word in tensor.name for word in SHARED):
            continue
        if tensor.is_constant and tensor.type.name == "INT8":
            np.testing.assert_array_equal(same.quantization.scale, tensor.quantization.scale)
            np.testing.assert_array_equal(same.data, tensor.data)
            weights += 1
            continue
        # Ranges are of other runtimes' kernels, and so are off by some last bits.
        np.testing.assert_allclose(same.quantization.scale, tensor.quantization.scale, rtol=2e-5)
        np.testing.assert_array_equal(same.quantization.zero_point, tensor.quantization.zero_point)
        if tensor.is_constant:
            assert same.type == tensor.type
            np.testing.assert_allclose(same.data, tensor.data, atol=1, rtol=2e-5)
    assert weights == 4
    exact = np.concatenate([run(float_model, sample) for sample in samples])
    noise = [noise_db(exact, np.concatenate([run(data, sample) for sample in samples])) for data in (ours, theirs)]
    assert noise[0] > noise[1] - 3
