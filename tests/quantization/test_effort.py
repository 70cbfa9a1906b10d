# SPDX-License-Identifier: Apache-2.0
"""effort= and budget= of tq.quantize_model: what the passes change, what they gain, what is refused."""

import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
from commands import failed, fine
from repository import import_path

import tq
from tq.accuracy import measuring
from tq.accuracy.logits import logits, without_last
from tq.cli import demo_float
from tq.editing.editor import Editor
from tq.quantization import budget, channel_scales, judgement, range_search, recipes
from tq.quantization.effort import Passes, parts
from tq.quantization.judgement import Sums, gains, is_settled
from tq.quantization.options import Options
from tq.quantization.prelu import fuse_prelus
from tq.quantization.range_search import choose_ranges, groups_of
from tq.quantization.recipes import Rule

FLOAT = demo_float.float_model()
PICTURES = list(demo_float.pictures(24)[0])
SEEN, HELD_OUT = PICTURES[:16], PICTURES[16:]
CONV = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "dilation_h_factor": 1, "dilation_w_factor": 1}
GAINS = (4.0 ** np.linspace(-2, 2, 8)).astype(np.float32)  # of 8 channels


class Net:
    """A float model of 8 channels, built operator by operator."""

    def __init__(self, shape=(1, 6, 6, 3), seed=0):
        self.random = np.random.default_rng(seed)
        self.b = tq.ModelBuilder()
        self.x = self.b.input("x", shape)
        self.count = 0

    def constant(self, data, dtype=np.float32):
        self.count += 1
        return self.b.constant(f"c{self.count}", np.asarray(data, dtype))

    def op(self, name, inputs, shape, **options):
        self.count += 1
        y = self.b.tensor(f"t{self.count}", shape)
        self.b.operator(name, inputs, [y], **options)
        return y

    def layer(self, x, inputs, shape, filter=3, gains=None, **options):
        weights = self.random.normal(size=(shape[-1], filter, filter, inputs)).astype(np.float32)
        bias = self.random.normal(size=shape[-1])
        if gains is not None:
            weights, bias = weights * gains[:, None, None, None], bias * gains
        return self.op("CONV_2D", [x, self.constant(weights), self.constant(bias)], shape, **{**CONV, **options})

    def bytes(self, *outputs):
        for output in outputs:
            self.b.output(output)
        return self.b.to_bytes()


def normalized(n, x):
    """A layer normalization with uneven gains, as converters write it out."""
    whole, one = (1, 6, 6, 8), (1, 6, 6, 1)
    axis = n.constant([3], np.int32)
    apart = n.op("SUB", [x, n.op("MEAN", [x, axis], one, keep_dims=True)], whole)
    spread = n.op("MEAN", [n.op("MUL", [apart, apart], whole), axis], one, keep_dims=True)
    shrunk = n.op("MUL", [apart, n.op("RSQRT", [n.op("ADD", [spread, n.constant([1e-3])], one)], one)], whole)
    gained = n.op("MUL", [shrunk, n.constant(GAINS)], whole)
    return n.op("ADD", [gained, n.constant(n.random.normal(size=8) * GAINS)], whole)


ALPHA = np.linspace(-0.5, 0.5, 8)
BETWEEN = {
    "nothing": lambda n, x: x,
    "RELU": lambda n, x: n.op("RELU", [x], (1, 6, 6, 8)),
    "PRELU": lambda n, x: n.op("PRELU", [x, n.constant(ALPHA.reshape(1, 1, 8))], (1, 6, 6, 8)),
    "LEAKY_RELU": lambda n, x: n.op("LEAKY_RELU", [x], (1, 6, 6, 8), alpha=0.25),
    "pools": lambda n, x: n.op(
        "MAX_POOL_2D", [x], (1, 3, 3, 8), stride_h=2, stride_w=2, filter_height=2, filter_width=2, padding="VALID"
    ),
    "PAD": lambda n, x: n.op("PAD", [x, n.constant([[0, 0], [1, 0], [0, 1], [0, 0]], np.int32)], (1, 7, 7, 8)),
    "PAD of channels": lambda n, x: n.op(
        "PAD", [x, n.constant([[0, 0], [0, 0], [0, 0], [1, 2]], np.int32)], (1, 6, 6, 11)
    ),
    "ADD of a constant": lambda n, x: n.op("ADD", [x, n.constant(ALPHA)], (1, 6, 6, 8)),
    "MUL by a constant": lambda n, x: n.op("MUL", [n.constant(ALPHA), x], (1, 6, 6, 8)),
    "MAXIMUM": lambda n, x: n.op("MAXIMUM", [x, n.constant(np.abs(ALPHA) * GAINS)], (1, 6, 6, 8)),
    "residual": lambda n, x: n.op("ADD", [x, n.layer(x, 8, (1, 6, 6, 8), gains=GAINS)], (1, 6, 6, 8)),
    "SUB": lambda n, x: n.op("SUB", [n.layer(n.x, 3, (1, 6, 6, 8), gains=GAINS), x], (1, 6, 6, 8)),
    "CONCATENATION": lambda n, x: n.op("CONCATENATION", [x, n.op("RELU", [x], (1, 6, 6, 8))], (1, 6, 6, 16), axis=-1),
    "gate": lambda n, x: n.op(
        "MUL", [x, n.op("LOGISTIC", [n.layer(x, 8, (1, 6, 6, 8), filter=1)], (1, 6, 6, 8))], (1, 6, 6, 8)
    ),
    "normalization": normalized,
    "DEPTHWISE_CONV_2D": lambda n, x: n.op(
        "DEPTHWISE_CONV_2D",
        [x, n.constant(n.random.normal(size=(1, 3, 3, 16))), n.constant(np.ones(16))],
        (1, 6, 6, 16),
        depth_multiplier=2,
        **CONV,
    ),
    "RESHAPE": lambda n, x: n.op("RESHAPE", [x, n.constant([1, 3, 12, 8], np.int32)], (1, 3, 12, 8)),
}


def net(between, seed=0):
    """A layer with uneven channels, what stands between, and a layer for which they count the same, as training makes
    it."""
    n = Net(seed=seed)
    x = between(n, n.layer(n.x, 3, (1, 6, 6, 8), gains=GAINS))
    begin = n.bytes(x)
    model = tq.Model(begin)
    channels = model.outputs[0].shape[-1]
    (found,) = zip(*measuring.outputs(model, measuring.Samples(model, noise(model, 4, 9))), strict=True)
    sizes = np.stack(found).reshape(-1, channels).std(axis=0)
    shape = model.outputs[0].shape
    weights = n.random.normal(size=(5, 3, 3, channels)) / (sizes + sizes.max() / 1000)
    with tq.edit(begin) as editor:
        graph = editor.main
        (x,) = graph.outputs
        y = graph.add_tensor("y", [*shape[:3], 5], "FLOAT32")
        w, b = graph.constant("w", weights.astype(np.float32)), graph.constant("b", np.zeros(5, np.float32))
        graph.add_operator("CONV_2D", [x, w, b], [y], **CONV)
        graph.outputs = [y]
        return editor.to_bytes()


def opened(model):
    return model if isinstance(model, tq.Model) else tq.Model(model)


def noise(model, count, seed):
    shapes = [tensor.shape for tensor in opened(model).inputs]
    random = np.random.default_rng(seed)
    return [[random.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(count)]


def outputs(model, samples):
    model = without_last(opened(model))
    return measuring.outputs(model, measuring.Samples(model, samples))


def decibels(model, data, samples):
    noises = measuring.output_noises(outputs(model, samples), outputs(data, samples))
    return measuring.together(noises)


def scaled(model, samples, **options):
    model = tq.Model(model)
    return channel_scales.scale_channels(model, measuring.Samples(model, samples), **options)


# ---- channels ----


@pytest.mark.parametrize("name", BETWEEN)
def test_scaled_channels_compute_the_same_and_quantize_better(name):
    model = net(BETWEEN[name])
    seen, held_out = noise(model, 8, 1), noise(model, 8, 2)
    made = scaled(model, seen)
    for exact, found in zip(outputs(model, held_out), outputs(made, held_out), strict=True):
        for a, b in zip(exact, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(a).max())
    plain = tq.quantize_model(model, calibration=seen)
    better = tq.quantize_model(made, calibration=seen)
    assert decibels(model, better, held_out) > decibels(model, plain, held_out) + 1


def test_no_range_grows_when_channels_are_scaled():
    for name, between in BETWEEN.items():
        model = net(between, seed=3)
        samples = noise(model, 8, 1)
        before, after = tq.calibrate(model, samples), tq.calibrate(scaled(model, samples), samples)
        names = {label: index for index, label in after.names.items()}
        for index, label in before.names.items():
            if label in names:
                (a, b), (c, d) = before.range(index), after.range(names[label])
                assert c >= min(a, 0) * 1.0001 and d <= max(b, 0) * 1.0001, (name, label)


STAY = {
    "LOGISTIC": lambda n, x: n.op("LOGISTIC", [n.layer(x, 3, (1, 6, 6, 8), gains=GAINS)], (1, 6, 6, 8)),
    "an output": lambda n, x: n.layer(x, 3, (1, 6, 6, 8), gains=GAINS),
}


@pytest.mark.parametrize("name", STAY)
def test_channels_stay_where_a_factor_would_change_results(name):
    n = Net()
    x = STAY[name](n, n.x)
    y = n.layer(x, 8, (1, 6, 6, 5))
    model = n.bytes(*([x, y] if name == "an output" else [y]))
    model = tq.Model(model)
    assert channel_scales.scale_channels(model, measuring.Samples(model, noise(model, 2, 1))) is model


def test_weights_that_two_layers_share_and_tensors_of_the_caller_stay():
    n = Net(shape=(1, 6, 6, 8))
    weights = n.constant(n.random.normal(size=(8, 3, 3, 8)))
    x = n.op("CONV_2D", [n.x, weights], (1, 6, 6, 8), **CONV)
    shared = tq.Model(n.bytes(n.op("CONV_2D", [x, weights], (1, 6, 6, 8), **CONV)))
    assert channel_scales.scale_channels(shared, measuring.Samples(shared, noise(shared, 2, 1))) is shared
    model = tq.Model(net(BETWEEN["nothing"]))
    samples = measuring.Samples(model, noise(model, 2, 1))
    between = model.subgraphs[0].operators[0].outputs[0].name
    assert channel_scales.scale_channels(model, samples, [between]) is model
    assert channel_scales.scale_channels(model, samples) is not model


def test_channels_that_relu6_never_cuts_are_scaled_and_others_stay():
    n = Net()
    gains = np.array([1, 1, 1, 1, 1, 1, 0.05, 0.01])
    x = n.layer(n.x, 3, (1, 6, 6, 8), gains=gains, fused_activation_function="RELU6")
    data = n.bytes(n.layer(x, 8, (1, 6, 6, 5)))
    model, seen, held_out = tq.Model(data), noise(data, 8, 1), noise(data, 8, 2)
    made = scaled(data, seen)
    before, after = (np.abs(m.subgraphs[0].operators[0].inputs[1].data).max(axis=(1, 2, 3)) for m in (model, made))
    assert (after[:6] == before[:6]).all() and (after[6:] > 2 * before[6:]).all()
    for (a,), (b,) in zip(outputs(model, held_out), outputs(made, held_out), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(a).max())


# ---- ranges ----


def outlier_net():
    """One channel of many hardly counts, and reaches far."""
    n = Net(seed=5)
    x = n.layer(n.x, 3, (1, 6, 6, 8), filter=1, gains=np.array([8, 1, 1, 1, 1, 1, 1, 1]))
    gates = n.op("RELU", [x], (1, 6, 6, 8))
    weights = n.random.normal(size=(5, 1, 1, 8)).astype(np.float32)
    weights[..., 0] /= 1000
    return n.bytes(n.op("CONV_2D", [gates, n.constant(weights)], (1, 6, 6, 5), **CONV))


def rare(model, count, seed):
    """Samples in which a few values are far from the others."""
    random = np.random.default_rng(seed)
    found = noise(model, count, seed)
    for (x,) in found:
        x[random.random(x.shape) < 0.002] *= 6
    return found


def test_ranges_leave_out_values_that_hardly_count():
    model = tq.Model(outlier_net())
    seen, held_out = rare(model, 16, 1), rare(model, 16, 2)
    calibration = tq.calibrate(model, seen)
    options = Options(recipes.find("int8"), calibration=calibration)
    made = choose_ranges(model, options, measuring.Samples(model, seen)).of(calibration)
    assert any(made.range(index)[1] < calibration.range(index)[1] for index in calibration.names)
    plain, better = (tq.quantize_model(model, calibration=item) for item in (calibration, made))
    assert decibels(model, better, held_out) > decibels(model, plain, held_out)


def test_ranges_are_wider_than_the_samples_where_each_sample_may_reach_farther():
    n = Net(shape=(1, 4))
    weights = n.constant(n.random.normal(size=(3, 4)))
    model = tq.Model(n.bytes(n.op("FULLY_CONNECTED", [n.x, weights], (1, 3))))
    random = np.random.default_rng(4)
    seen, held_out = ([[random.laplace(size=(1, 4)).astype(np.float32)] for _ in range(count)] for count in (16, 64))
    calibration = tq.calibrate(model, seen)
    options = Options(recipes.find("int8"), calibration=calibration)
    made = choose_ranges(model, options, measuring.Samples(model, seen)).of(calibration)
    assert any(made.range(index)[1] > calibration.range(index)[1] for index in calibration.names)
    plain, better = (tq.quantize_model(model, calibration=item) for item in (calibration, made))
    assert decibels(model, better, held_out) > decibels(model, plain, held_out) + 1


@pytest.mark.parametrize("heads", [1, 2])
def test_candidates_that_cannot_be_the_best_are_given_up_and_the_same_are_chosen(heads, monkeypatch):
    """A second output, which the group does not reach, hides no loss."""
    runs, run = [], range_search._Search._run
    monkeypatch.setattr(range_search._Search, "_run", lambda *args: runs.append(0) or run(*args))
    n = Net(seed=5)
    x = n.layer(n.x, 3, (1, 6, 6, 8), filter=1, gains=np.array([8, 1, 1, 1, 1, 1, 1, 1]))
    ends = [n.layer(n.op("RELU", [x], (1, 6, 6, 8)), 8, (1, 6, 6, 5)), n.layer(n.x, 3, (1, 6, 6, 5))][:heads]
    model = tq.Model(n.bytes(*ends))
    seen = rare(model, 16, 1)
    options = Options(recipes.find("int8"), calibration=tq.calibrate(model, seen))
    found = []
    for won_back in (range_search._WON_BACK, np.full_like(range_search._WON_BACK, np.inf)):
        runs.clear()
        monkeypatch.setattr(range_search, "_WON_BACK", won_back)
        found.append((choose_ranges(model, options, measuring.Samples(model, seen)).of(options.calibration), len(runs)))
    (some, few), (all_, many) = found
    assert some == all_ and few < 0.6 * many


def test_groups_leave_fixed_parameters_out():
    n = Net()
    x = n.op("LOGISTIC", [n.layer(n.x, 3, (1, 6, 6, 8))], (1, 6, 6, 8))
    model = tq.Model(n.bytes(n.layer(x, 8, (1, 6, 6, 5))))
    calibration = tq.calibrate(model, noise(model, 2, 1))
    found = groups_of(model, Options(recipes.find("int8"), calibration=calibration))
    gate = model.subgraphs[0].operators[1].outputs[0].index
    assert found and not any(gate in group.tensors for group in found)


def test_factors_hold_for_the_ranges_of_other_samples():
    model = tq.Model(outlier_net())
    seen, others = rare(model, 16, 1), noise(model, 4, 7)
    calibration, other = tq.calibrate(model, seen), tq.calibrate(model, others)
    options = Options(recipes.find("int8"), calibration=calibration)
    chosen = choose_ranges(model, options, measuring.Samples(model, seen))
    made, found = chosen.of(calibration), chosen.of(other)
    factors = {made.range(index)[1] / calibration.range(index)[1] for index in calibration.names}
    assert factors - {1.0}
    for index in calibration.names:
        if other.range(index)[1] <= calibration.range(index)[1]:
            factor = made.range(index)[1] / calibration.range(index)[1]
            assert found.range(index)[1] / other.range(index)[1] == pytest.approx(factor, rel=1e-6)


def test_a_range_that_the_caller_gives_stays():
    model = tq.Model(outlier_net())
    seen = rare(model, 8, 1)
    name = model.subgraphs[0].operators[0].outputs[0].name
    for effort in ("better", "best"):
        data = tq.quantize_model(model, calibration=seen, effort=effort, overrides={name: (0.0, 25.5)})
        tensor = next(t for t in tq.Model(data).tensors if t.name == name)
        assert tensor.quantization.scale == np.float32(0.1)


# ---- effort ----


def test_fast_gives_the_bytes_of_no_effort():
    for recipe in ("int8", "int16x8"):
        assert tq.quantize_model(FLOAT, recipe, calibration=SEEN, effort="fast") == tq.quantize_model(
            FLOAT, recipe, calibration=SEEN
        )
    assert tq.quantize_model(FLOAT, "dynamic_int8", effort="fast") == tq.quantize_model(FLOAT, "dynamic_int8")


@pytest.mark.parametrize("recipe", ["int8", "int16x8", "int4", "uint8", "weight_only_int4", "dynamic_int8"])
@pytest.mark.parametrize("effort", ["better", "best"])
def test_more_effort_is_not_worse_on_samples_that_the_passes_have_not_seen(recipe, effort):
    form = recipes.find(recipe).form
    given = SEEN if form == "static" else None
    plain = tq.quantize_model(FLOAT, recipe, calibration=given)
    made = tq.quantize_model(FLOAT, recipe, calibration=SEEN, effort=effort)
    assert decibels(FLOAT, made, HELD_OUT) >= decibels(FLOAT, plain, HELD_OUT) - 0.5


@pytest.mark.parametrize("surely", [False, True])
def test_passes_that_do_not_surely_gain_on_samples_that_they_have_not_seen_leave_fast_s_bytes(surely, monkeypatch):
    model = net(BETWEEN["residual"], seed=1)
    seen = noise(model, 8, 1)
    fast = tq.quantize_model(model, calibration=seen)
    monkeypatch.setattr(judgement, "gains", lambda before, after: surely)
    made = tq.quantize_model(model, calibration=seen, effort="better")
    assert (made != fast) == surely


def test_beside_float_activations_the_passes_are_compared_with_rounding_alone():
    """Factors of channels before a RELU6 gain over rounding to nearest here, and lose to rounding alone."""
    n = Net(seed=1)
    x = n.layer(n.x, 3, (1, 6, 6, 8), gains=np.repeat([1, 0.1], 4), fused_activation_function="RELU6")
    model = n.bytes(n.layer(x, 8, (1, 6, 6, 5)))
    random = np.random.default_rng(101)
    seen = [[x * np.exp(random.normal() * 0.6, dtype=np.float32)] for (x,) in noise(model, 16, 1)]
    options = {"recipe": "weight_only_int8", "calibration": seen, "min_elements": 1}
    made, rounded = (
        tq.quantize_model(model, **options, **item) for item in ({"effort": "better"}, {"weight_rounding": "gptq"})
    )
    assert made == rounded


def test_beside_float_activations_channels_are_scaled_where_that_gains_over_rounding_alone():
    model = net(BETWEEN["normalization"], seed=1)
    seen, held_out = noise(model, 16, 1), noise(model, 16, 2)
    options = {"recipe": "weight_only_int4", "calibration": seen, "min_elements": 1}
    made, rounded = (
        tq.quantize_model(model, **options, **item) for item in ({"effort": "better"}, {"weight_rounding": "gptq"})
    )
    assert decibels(model, made, held_out) > decibels(model, rounded, held_out) + 3


@pytest.mark.parametrize("effort", ["better", "best"])
@pytest.mark.parametrize("is_settled", [False, True])
def test_parts_of_the_samples_are_left_out_where_the_others_leave_no_doubt(effort, is_settled, monkeypatch):
    model, models = net(BETWEEN["residual"], seed=1), []
    plain = Passes.plain
    monkeypatch.setattr(Passes, "plain", lambda self, samples: models.append(len(samples)) or plain(self, samples))
    monkeypatch.setattr(judgement, "is_settled", lambda before, after: is_settled)
    tq.quantize_model(model, calibration=noise(model, 16, 1), effort=effort)
    count = {"better": 2, "best": 4}[effort]
    part = 16 - 16 // count
    # One for the samples of all, then two for each part: in plain quantization, and in the passes.
    assert models.count(part) == 2 * (1 if is_settled else count)


def sums(*noise, outputs=1, values=1):
    """Samples of signal 1 with these errors, the same at each output."""
    errors = np.repeat(np.array(noise, float)[:, None], outputs, axis=1)
    return Sums(np.ones_like(errors), errors, np.full(errors.shape, values))


EVEN = [1.0] * 16
SPREAD = [1.0, 4.0] * 8
GAINS_OF = {
    "a third less each": (EVEN, [0.6] * 16, True),
    "a third more each": (EVEN, [1.5] * 16, False),
    "nothing": (EVEN, EVEN, False),
    "less, within what samples differ by": (SPREAD, [4.0, 0.9] * 8, False),
    "two samples that saturated no longer do, for a little more in each": (
        [*EVEN[:14], 400.0, 300.0],
        [1.2] * 16,
        True,
    ),
    "one sample that saturated no longer does, for more in each": ([*EVEN[:15], 400.0], [1.2] * 16, False),
    "one sample's error alone is less": ([*EVEN[:15], 2.0], EVEN, False),
    "all but one sample, which has most of the error": ([*EVEN[:15], 100.0], [*[0.2] * 15, 110.0], True),
    "one sample": ([2.0], [1.0], True),
    "one sample's error is gone": ([2.0], [0.0], True),
    "errors without a signal": ([0.0] * 3, [0.0] * 3, False),
}


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", GAINS_OF)
def test_a_gain_counts_beyond_its_standard_error(name, outputs):
    before, after, expected = GAINS_OF[name]
    assert gains(sums(*before, outputs=outputs), sums(*after, outputs=outputs)) == expected


SETTLED = {
    "much less each": (EVEN, [0.1] * 16, True),
    "much more each": (EVEN, [10.0] * 16, True),
    "nothing": (EVEN, EVEN, False),
    "less, within what samples differ by": (SPREAD, [4.0, 0.9] * 8, False),
    "less in most samples, which is a gain": ([1.0] * 16, [*[0.7] * 12, *[1.5] * 4], False),
    "more each, but one sample that saturated no longer does": ([*EVEN[:15], 400.0], [1.2] * 16, False),
    "much less in few samples": (EVEN[:7], [0.1] * 7, False),
}


@pytest.mark.parametrize("name", SETTLED)
def test_a_verdict_is_settled_far_beyond_its_standard_error(name):
    before, after, expected = SETTLED[name]
    assert is_settled(sums(*before), sums(*after)) == expected


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("values", [1, 10, 100000])
def test_one_sample_with_most_of_the_error_tells_more_with_more_values(values, outputs):
    before, much, little = (sums(*EVEN[:15], rest, outputs=outputs, values=values) for rest in (400.0, 40.0, 300.0))
    assert gains(before, much) == (values >= 10)
    assert not gains(before, little) and not gains(much, before)


def test_outputs_without_float_values_do_not_count_in_the_judgement():
    def row(noise):
        found = measuring.Noise()
        found.add(np.ones(4), np.full(4, 1 + noise))
        return [measuring.Noise(), found]

    made = Sums.of([row(0.5), row(0.25)])
    assert made.signal.tolist() == [[4.0], [4.0]] and made.noise.tolist() == [[1.0], [0.25]]
    assert made.counts.tolist() == [[4], [4]]
    assert made.levels() == pytest.approx([10 * np.log10(4), 10 * np.log10(16)])
    assert made.total().levels() == pytest.approx(10 * np.log10(8 / 1.25))
    nothing = Sums.of([[measuring.Noise()]] * 2)
    assert not gains(nothing, nothing)


def test_effort_gains_on_held_out_inputs():
    model = net(BETWEEN["residual"], seed=1)
    seen, held_out = noise(model, 8, 1), noise(model, 8, 2)
    fast, better, best = (
        decibels(model, tq.quantize_model(model, calibration=seen, effort=effort), held_out)
        for effort in ("fast", "better", "best")
    )
    assert better > fast + 2 and best > fast + 2


@pytest.mark.parametrize("options", [{"recipe": "uint8"}, {"per_axis": False}])
def test_effort_gains_where_the_weights_of_a_layer_have_one_scale(options):
    """Channels stay: greater factors would take steps from the others."""
    n = Net(seed=1)
    weights, bias = (
        n.random.normal(size=(8, 3, 3, 3)),
        np.repeat([0, -16], 4),
    )  # half of the channels are seldom above 0
    x = n.op(
        "CONV_2D", [n.x, n.constant(weights), n.constant(bias)], (1, 6, 6, 8), **CONV, fused_activation_function="RELU"
    )
    model = n.bytes(n.layer(x, 8, (1, 6, 6, 5)))
    seen, held_out = rare(model, 16, 1), rare(model, 64, 2)
    fast, best = (
        decibels(model, tq.quantize_model(model, calibration=seen, effort=effort, **options), held_out)
        for effort in ("fast", "best")
    )
    assert best > fast + 1


def test_the_measure_stands_before_a_last_softmax():
    model = tq.Model(FLOAT)
    (found,) = logits(model)
    last = model.outputs[0].producer
    assert (last.name, found.index) == ("SOFTMAX", last.inputs[0].index)
    assert without_last(without_last(model)).nbytes == without_last(model).nbytes


def test_the_measure_is_what_litert_gives_by_default():
    model = tq.Model(FLOAT)
    fast = tq.quantize_model(FLOAT, calibration=SEEN)
    samples = measuring.Samples(model, SEEN)
    ours = [measuring.outputs(without_last(tq.Model(data)), samples, numerics="xnnpack") for data in (FLOAT, fast)]
    answers = []
    for data in (FLOAT, fast):
        (end,), (start,) = logits(tq.Model(data)), tq.Model(data).inputs
        cut = bytes(tq.extract(data, [start.index], [end.index]))
        last = tq.Model(cut).outputs[0]
        fed = [{tq.Model(cut).inputs[0].index: sample} for sample in SEEN]
        (answer,) = oracle.ask("tensors", [(cut, "AUTO", fed, {}, [last.index])])
        answers.append(np.stack([measuring.real(row[last.index], last) for row in answer]).astype(float))
    exact, found = answers
    expected = 10 * np.log10(np.square(exact).sum() / np.square(exact - found).sum())
    assert measuring.together(measuring.output_noises(*ours)) == pytest.approx(expected, abs=0.01)


def test_each_sample_is_measured_once_by_passes_that_have_not_seen_it():
    model = tq.Model(FLOAT)
    samples = measuring.Samples(model, SEEN)
    places = {id(row): place for place, row in enumerate(samples.values)}
    for effort, count in (("better", 2), ("best", 4)):
        found = []
        for seen, held_out in parts(samples, effort):
            rows = [[places[id(row)] for row in item.values] for item in (seen, held_out)]
            assert sorted(rows[0] + rows[1]) == list(range(16)) and len(rows[1]) == 16 // count
            found += rows[1]
        assert sorted(found) == list(range(16))
    few = measuring.Samples(model, SEEN[:7])
    assert parts(few, "best") == [(few, few)]


# ---- PRELU ----


def prelu_net(negated, rest):
    """A layer, operators that make a PRELU of it, and a layer.  negated: whether the constant is -alpha."""
    n = Net()
    shape = (1, 6, 6, 8)
    x = n.layer(n.x, 3, shape, gains=GAINS)
    values = n.op("RELU", [n.op("NEG", [x], shape)], shape)
    if not negated:
        values = n.op("NEG", [values], shape)
    below = n.op("MUL", [n.constant(-ALPHA if negated else ALPHA), values], shape)
    y = n.op("ADD", [n.op("RELU", [x], shape), below], shape)
    return n.bytes(n.layer(y, 8, (1, 6, 6, 5)), *([values] if rest else []))


@pytest.mark.parametrize("negated", [False, True])
def test_operators_that_make_a_prelu_become_one_with_the_same_values(negated):
    model = tq.Model(prelu_net(negated, rest=False))
    made = fuse_prelus(model)
    assert [op.name for op in made.subgraphs[0].operators] == ["CONV_2D", "PRELU", "CONV_2D"]
    seen = noise(model, 8, 1)
    for (a,), (b,) in zip(outputs(model, seen), outputs(made, seen), strict=True):
        np.testing.assert_array_equal(a, b)
    better = tq.quantize_model(model, calibration=seen, effort="better")
    assert [op.name for op in tq.Model(better).subgraphs[0].operators].count("PRELU") == 1
    assert decibels(model, better, noise(model, 8, 2)) > decibels(
        model, tq.quantize_model(model, calibration=seen), noise(model, 8, 2)
    )


def test_a_prelu_leaves_what_others_read_and_what_is_fixed():
    model = tq.Model(prelu_net(False, rest=True))
    names = [op.name for op in fuse_prelus(model).subgraphs[0].operators]
    assert names.count("RELU") == names.count("NEG") - 1 == 1 and "MUL" not in names
    inner = next(op for op in model.subgraphs[0].operators if op.name == "MUL").outputs[0].name
    assert fuse_prelus(model, [inner]) is model
    plain = tq.Model(FLOAT)
    assert fuse_prelus(plain) is plain


def test_a_saved_calibration_keeps_the_model_and_takes_ranges_and_rounding():
    calibration = tq.calibrate(FLOAT, SEEN)
    made = tq.quantize_model(FLOAT, calibration=calibration, samples=SEEN, effort="best")
    assert decibels(FLOAT, made, SEEN) >= decibels(FLOAT, tq.quantize_model(FLOAT, calibration=calibration), SEEN)


def test_a_rounding_that_the_caller_asks_for_is_taken():
    model = net(BETWEEN["gate"])
    seen = noise(model, 4, 1)
    rounded = tq.quantize_model(model, calibration=seen, effort="better", weight_rounding="comq")
    assert decibels(model, rounded, seen) >= decibels(
        model, tq.quantize_model(model, calibration=seen, weight_rounding="comq"), seen
    )


def test_a_target_is_reached_with_fewer_float_operators():
    model = net(BETWEEN["residual"], seed=1)
    seen = noise(model, 8, 1)
    level = decibels(model, tq.quantize_model(model, calibration=seen, effort="better"), seen)
    made = tq.quantize_model(model, calibration=seen, effort="better", target_sqnr=level - 0.1)
    assert made == tq.quantize_model(model, calibration=seen, effort="better")


def quantized():
    return tq.quantize_model(net(BETWEEN["PRELU"]), calibration=noise(net(BETWEEN["PRELU"]), 6, 1), effort="best")


def test_the_same_bytes_for_any_number_of_threads_and_from_the_command_line(run, tmp_path):
    code = """if 1:
        import sys; sys.path[:0] = sys.argv[1:]
        import test_effort as t
        sys.stdout.buffer.write(t.quantized())"""
    for threads in ("1", "3"):
        environment = {**os.environ, "TQ_NUM_THREADS": threads}
        command = [sys.executable, "-c", code, *import_path(__file__)]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert done.stdout == quantized(), threads
    for effort in ("fast", "better", "best"):
        assert_command_gives_the_bytes_of_the_function(run, tmp_path, "effort", effort)


def assert_command_gives_the_bytes_of_the_function(run, folder, option, value):
    demo_float.write(folder)
    words = ("--recipe", "int8", "--samples", "demo_samples.npz", f"--{option}", value)
    fine(run("quantize", "demo_float.tflite", "out.tflite", *words))
    samples = dict(np.load(folder / "demo_samples.npz"))
    expected = tq.quantize_model(folder / "demo_float.tflite", calibration=samples, **{option: value})
    assert (folder / "out.tflite").read_bytes() == expected


# ---- budget ----


@pytest.mark.parametrize("fallback", ["float", "int16x8"])
def test_a_budget_buys_accuracy_and_is_kept(fallback):
    model = net(BETWEEN["residual"], seed=1)
    seen = noise(model, 8, 1)
    plain = tq.quantize_model(model, calibration=seen)
    levels = [decibels(model, plain, seen)]
    for given in (1500, 4000, "+400%"):
        made = tq.quantize_model(model, calibration=seen, budget=given, fallback=fallback)
        most = given if isinstance(given, int) else 4 * len(plain)
        assert len(made) - len(plain) <= most
        levels.append(decibels(model, made, seen))
    assert levels == sorted(levels) and levels[-1] > levels[0] + 3


def test_a_budget_from_the_command_line_gives_the_same_bytes(run, tmp_path):
    assert_command_gives_the_bytes_of_the_function(run, tmp_path, "budget", "60%")


BUDGETS = {
    4000: (4000, False, False), "10%": (10, True, False), "+12.5 %": (12.5, True, False), "500us": (500, False, True),
    "+2 ms": (2000, False, True), "0.5s": (500000, False, True), "10% time": (10, True, True),
}  # fmt: skip


@pytest.mark.parametrize("given", BUDGETS)
def test_budgets(given):
    assert budget.Budget.of(given) == BUDGETS[given]


@pytest.mark.parametrize("fallback", ["float", "int16x8"])
def test_a_budget_of_time_buys_accuracy(fallback):
    model = net(BETWEEN["residual"], seed=1)
    seen = noise(model, 8, 1)
    plain = tq.quantize_model(model, calibration=seen)
    made = tq.quantize_model(model, calibration=seen, budget="5 s", fallback=fallback)
    assert decibels(model, made, seen) > decibels(model, plain, seen) + 3


@pytest.mark.parametrize(("given", "most"), [("23us", 2), ("80% time", 8), ("1us", 0)])
def test_a_budget_of_time_is_kept(given, most, monkeypatch):
    """Each operator takes 1 us as int8 and 11 as float."""
    model = net(BETWEEN["residual"], seed=1)
    seen = noise(model, 8, 1)

    def floats(data):
        ops = [op for op in tq.Model(data).subgraphs[0].operators if op.name not in ("QUANTIZE", "DEQUANTIZE")]
        return sum(op.outputs[0].type.name == "FLOAT32" for op in ops)

    def in_turns(self, *models):
        return [100.0 + 10 * floats(bytes(item._file)) for item in models]

    def by_operator(self, model, other):
        quantized = other is not model
        return {op.index: 1.0 if quantized else 11.0 for op in model.subgraphs[0].operators}

    monkeypatch.setattr(budget.Time, "_in_turns", in_turns)
    monkeypatch.setattr(budget.Time, "_by_operator", by_operator)
    if not most:
        with pytest.raises(ValueError, match="1 microseconds, and has no effect: no operator"):
            tq.quantize_model(model, calibration=seen, budget=given)
        return
    made = tq.quantize_model(model, calibration=seen, budget=given)
    assert 0 < floats(made) <= most


# ---- refused ----


REFUSED = {
    "unknown": (dict(effort="bets"), "did you mean 'best'"),
    "float16": (dict(recipe="float16", effort="best"), "makes no integers"),
    "equalize": (dict(effort="better", equalize=True), "equalize is given and has no effect"),
    "no samples": (dict(effort="better", calibration=tq.calibrate(FLOAT, SEEN)), "samples= is needed"),
    "no number": (dict(budget="ten"), "budget is 'ten'"),
    "zero": (dict(budget=0), "budget is 0"),
    "NaN": (dict(budget="nan%"), "budget is 'nan%'"),
    "no time": (dict(budget="0ms"), "budget is '0ms'"),
    "less time": (dict(budget="-5% time"), "budget is '-5% time'; it must be"),
    "bytes of time": (dict(budget="500 time"), "budget is '500 time'"),
    "two points": (dict(budget="1.2.3"), "budget is '1.2.3'"),
    "budget and target": (dict(budget=1, target_sqnr=3), "budget is given and has no effect"),
    "budget and the same recipe": (dict(budget=1, fallback="int8"), "'int8' is the recipe itself"),
    "fallback alone": (dict(fallback="int16x8"), "fallback is given and has no effect"),
}


def test_a_budget_without_effect_is_refused():
    n = Net()
    model = n.bytes(n.layer(n.x, 3, (1, 6, 6, 8)))
    with pytest.raises(ValueError, match="budget is 1, 1 bytes, and has no effect: no operator that costs accuracy"):
        tq.quantize_model(model, calibration=noise(model, 4, 1), budget=1)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        tq.quantize_model(FLOAT, **{"calibration": SEEN, **options})


def test_refused_on_the_command_line(run, tmp_path):
    demo_float.write(tmp_path)
    files = ["quantize", "demo_float.tflite", "out.tflite", "--recipe", "int8"]
    failed(run(*files, "--effort", "best"), "--samples is needed")
    failed(run(*files, "--budget", "10%"), "--samples is needed")
    plan = [*files[:2], *files[3:], "--plan", "--samples", "demo_samples.npz"]
    failed(run(*plan, "--effort", "best"), "--plan is without --effort")
    failed(run(*plan, "--budget", "9"), "--plan is without --effort")


def test_rules_by_index_hold_for_the_same_operators():
    model = net(BETWEEN["RELU"])
    with tq.edit(model) as editor:  # weights as float16 behind DEQUANTIZE
        halves = halved(editor)
    seen = noise(model, 4, 1)
    index = len(tq.Model(halves).subgraphs[0].operators) - 1
    made = tq.Model(tq.quantize_model(halves, calibration=seen, effort="better", rules=[Rule("float", index=index)]))
    last = [op for op in made.subgraphs[0].operators if op.name == "CONV_2D"][-1]
    assert str(last.outputs[0].dtype) == "float32"


def halved(editor: Editor) -> bytes:
    graph = editor.main
    for op in list(graph.operators):
        weights = op.inputs[1] if op.name == "CONV_2D" else None
        if weights is not None:
            half = graph.constant(f"{weights.name}_half", np.asarray(weights.data, np.float16))
            made = graph.add_tensor(f"{weights.name}_made", weights.shape, "FLOAT32")
            graph.insert_before(op, "DEQUANTIZE", [half], [made])
            op.inputs = [made if item == weights else item for item in op.inputs]
    editor.prune()
    return editor.to_bytes()
