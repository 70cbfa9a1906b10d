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


class Trained:
    """A block of MobileNetV2's and a head, of FakeQuant operators; `convert` gives the model without and with
    optimizations."""

    def __init__(self, tf, per_channel, narrow):
        rng = np.random.default_rng(5)
        self.tf, self.per_channel, self.narrow = tf, per_channel, narrow
        shapes = {"expand": (1, 1, 8, 24), "deep": (3, 3, 24, 1), "project": (1, 1, 24, 8), "dense": (8, 5)}
        self.weights = {name: (0.3 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
        self.biases = {name: (0.3 * rng.standard_normal(n)).astype(np.float32) for name, n in
                       {"expand": 24, "deep": 24, "project": 8, "dense": 5}.items()}  # fmt: skip

    def fake(self, x, low, high):
        return self.tf.quantization.fake_quant_with_min_max_vars(x, low, high)

    def trained(self, name):
        """Weights on their grid, whose ends cut some off."""
        quantization, w = self.tf.quantization, self.weights[name]
        if not self.per_channel or name == "dense":
            most = 0.9 * float(np.abs(w).max())
            return quantization.fake_quant_with_min_max_vars(w, -most, most, narrow_range=self.narrow)
        last = np.swapaxes(w, 2, 3) if name == "deep" else w
        most = 0.9 * np.abs(last).max(axis=(0, 1, 2))
        made = quantization.fake_quant_with_min_max_vars_per_channel(last, -most, most, narrow_range=self.narrow)
        return self.tf.reshape(made, w.shape) if name == "deep" else made

    def run(self, x):
        nn, fake, weights, biases = self.tf.nn, self.fake, self.trained, self.biases
        x = fake(x, -1.0, 1.0)
        y = fake(nn.relu6(nn.conv2d(x, weights("expand"), 1, "SAME") + biases["expand"]), 0.0, 6.0)
        y = nn.depthwise_conv2d(y, weights("deep"), [1, 1, 1, 1], "SAME")
        y = fake(nn.relu6(y + biases["deep"]), 0.0, 6.0)
        y = fake(nn.conv2d(y, weights("project"), 1, "SAME") + biases["project"], -4.0, 4.0)
        y = fake(x + y, -4.0, 4.0)
        z = fake(self.tf.concat([y, nn.max_pool2d(y, 3, 1, "SAME")], -1), -3.0, 4.0)
        z = fake(self.tf.reduce_mean(fake(z[..., :8] + z[..., 8:], -5.0, 5.0), [1, 2]), -3.0, 3.0)
        return fake(self.tf.matmul(z, weights("dense")) + biases["dense"], -5.0, 5.0)

    def convert(self, optimize):
        tf = self.tf
        function = tf.function(self.run).get_concrete_function(tf.TensorSpec([1, 8, 8, 8], tf.float32))
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if optimize else []
        return converter.convert()


@pytest.mark.parametrize(("per_channel", "narrow"), [(True, True), (False, True), (False, False)])
def test_trained_grids_are_the_converters(per_channel, narrow):
    """The converter's integer model equals the one that tq makes of the converter's model with QUANTIZE and DEQUANTIZE.
    Zero points of weights become 0: the real values are the same, except that -128 becomes -127."""
    net = Trained(pytest.importorskip("tensorflow", reason="TensorFlow is not installed"), per_channel, narrow)
    data, theirs = tq.quantize_model(net.convert(False), "int8"), tq.Model(net.convert(True))
    assert data.weights_on_grid == (4, 4)
    pairs = [[op for op in model.operators if op.name != "QUANTIZE"] for model in (tq.Model(data), theirs)]
    assert [op.name for op in pairs[0]] == [op.name for op in pairs[1]]
    for mine, other in zip(*pairs, strict=True):
        for a, b in zip((*mine.inputs, *mine.outputs), (*other.inputs, *other.outputs), strict=True):
            if not len(b.quantization.scale):
                continue
            assert a.type == b.type
            # The converter rounds the product of a bias's scales once, tq twice.
            np.testing.assert_allclose(
                a.quantization.scale, b.quantization.scale, rtol=2e-7 if a.type.name == "INT32" else 0
            )
            if not b.is_constant:
                np.testing.assert_array_equal(a.quantization.zero_point, b.quantization.zero_point)
                continue
            moved = b.data.astype(np.int64) - b.quantization.zero_point[0]
            np.testing.assert_array_equal(a.data, np.clip(moved, -127, 127) if a.type.name == "INT8" else moved)


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
