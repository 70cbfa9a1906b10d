# SPDX-License-Identifier: Apache-2.0
"""Second-order rounding of weights in tq.quantize_model: what it changes, what it gains, what it refuses."""

import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import oracle
import pytest
from commands import failed, fine
from repository import import_path

import tq
from tq import progress
from tq.accuracy import measuring
from tq.accuracy.matching import constant_of
from tq.calibration.hessians import HessianObserver, PairObserver, Shape, filter_of, matrices_of, shape_of, weights_of
from tq.cli import demo_float
from tq.quantization import moments, rounding
from tq.quantization.layers import METHODS
from tq.quantization.recipes import Rule
from tq.quantization.segments import Segments
from tq.quantization.shift import damping, shifted

FLOAT = demo_float.float_model()
PICTURES = list(demo_float.pictures(24)[0])
SEEN, HELD_OUT = PICTURES[:16], PICTURES[16:]
RECIPES = ("weight_only_int4", "weight_only_int8", "dynamic_int8", "int16x8")


def net(*layers, shape=(1, 8, 8, 6), seed=0):
    """A float model of operators in a row, with random weights: (name, weights' shape, options)."""
    random = np.random.default_rng(seed)
    builder = tq.ModelBuilder()
    x = builder.input("x", shape)
    for number, (name, weights, out, options) in enumerate(layers):
        w = builder.constant(f"w{number}", random.normal(size=weights).astype(np.float32))
        y = builder.tensor(f"y{number}", out)
        inputs = [x, w]
        if name == "TRANSPOSE_CONV":
            inputs = [builder.constant(f"s{number}", np.array(out, np.int32)), w, x]
        builder.operator(name, inputs, [y], **options)
        x = y
    builder.output(x)
    return builder.to_bytes()


def smooth(shape, count, seed):
    """Samples whose neighbouring values and channels go together, so that H is far from diagonal."""
    random = np.random.default_rng(seed)
    mix = random.normal(size=(shape[-1], shape[-1])) * np.exp(-np.arange(shape[-1]))
    samples = random.normal(size=(count, *shape)) @ mix
    return [np.float32(np.cumsum(item, axis=1) if len(shape) > 2 else item) for item in samples]


def sqnr(model, data, samples):
    given = measuring.Samples(tq.Model(model), samples)
    exact, found = (measuring.outputs(tq.Model(item), given) for item in (model, data))
    return measuring.together(measuring.output_noises(exact, found))


CONV = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "dilation_h_factor": 1, "dilation_w_factor": 1}
NETS = {
    "conv": net(("CONV_2D", (8, 3, 3, 6), (1, 8, 8, 8), CONV), ("CONV_2D", (4, 1, 1, 8), (1, 8, 8, 4), CONV)),
    "groups": net(("CONV_2D", (8, 3, 3, 3), (1, 8, 8, 8), CONV)),
    "depthwise": net(("DEPTHWISE_CONV_2D", (1, 3, 3, 12), (1, 8, 8, 12), {**CONV, "depth_multiplier": 2})),
    "transposed": net(
        ("TRANSPOSE_CONV", (5, 3, 3, 6), (1, 16, 16, 5), {"stride_h": 2, "stride_w": 2, "padding": "SAME"})
    ),
    "dense": net(("FULLY_CONNECTED", (7, 40), (3, 7), {}), shape=(3, 40)),
    "product": net(("BATCH_MATMUL", (40, 7), (3, 7), {}), shape=(3, 40)),
    "products": net(("BATCH_MATMUL", (2, 7, 40), (2, 3, 7), {"adj_y": True}), shape=(2, 3, 40)),
}


@pytest.mark.parametrize("method", ["gptq", "comq"])
@pytest.mark.parametrize("name", NETS)
def test_each_layer_gains(name, method):
    model = NETS[name]
    shape = tuple(tq.Model(model).inputs[0].shape)
    seen, held_out = smooth(shape, 16, 1), smooth(shape, 8, 1)
    options = {"min_elements": 1}
    plain = tq.quantize_model(model, "weight_only_int4", **options)
    made = tq.quantize_model(model, "weight_only_int4", calibration=seen, weight_rounding=method, **options)
    assert sqnr(model, made, held_out) > sqnr(model, plain, held_out) + 1


@pytest.mark.parametrize("method", ["gptq", "comq"])
def test_blocks_gain(method):
    model = net(("FULLY_CONNECTED", (9, 64), (40, 9), {}), shape=(40, 64))
    seen, held_out = smooth((40, 64), 16, 1), smooth((40, 64), 8, 1)
    plain = tq.quantize_model(model, "blockwise_int4", min_elements=1)
    made = tq.quantize_model(model, "blockwise_int4", calibration=seen, weight_rounding=method, min_elements=1)
    assert sqnr(model, made, held_out) > sqnr(model, plain, held_out) + 1
    one, two = (tq.Model(item).subgraphs[0].operators[0].inputs[1].quantization for item in (plain, made))
    assert one.details["block_size"] == two.details["block_size"] == 32


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("method", ["gptq", "comq"])
def test_the_demo_gains_on_samples_that_were_not_seen(recipe, method):
    plain = tq.quantize_model(FLOAT, recipe, calibration=SEEN if recipe == "int16x8" else None, min_elements=1)
    made = tq.quantize_model(FLOAT, recipe, calibration=SEEN, weight_rounding=method, min_elements=1)
    assert sqnr(FLOAT, made, HELD_OUT) > sqnr(FLOAT, plain, HELD_OUT) + 1


@pytest.mark.parametrize("recipe", [*RECIPES, "dynamic_int4", "int8", "int4", "blockwise_int4"])
def test_only_weights_scales_and_biases_change(recipe):
    is_static = recipe in ("int8", "int4", "int16x8")
    plain = tq.Model(tq.quantize_model(FLOAT, recipe, calibration=SEEN if is_static else None, min_elements=1))
    made = tq.Model(tq.quantize_model(FLOAT, recipe, calibration=SEEN, weight_rounding="gptq", min_elements=1))
    one, two = plain.subgraphs[0], made.subgraphs[0]
    assert [op.name for op in one.operators] == [op.name for op in two.operators]
    changed = 0
    for a, b in zip(one.operators, two.operators, strict=True):
        assert a.options == b.options
        for x, y in zip(a.inputs, b.inputs, strict=False):
            if x is None or y is None:
                continue
            assert (x.type, x.shape) == (y.type, y.shape)
            if not x.is_constant:
                assert np.array_equal(x.quantization.scale, y.quantization.scale)
            else:
                changed += not np.array_equal(x.data, y.data)
    assert changed
    assert not made.problems


def test_uncorrelated_inputs_give_nearest_rounding():
    model, rows = NETS["dense"], np.concatenate([np.eye(40), -np.eye(40)])
    samples = [np.float32(rows[i : i + 1].repeat(3, 0)) for i in range(80)]
    made = tq.Model(
        tq.quantize_model(model, "weight_only_int4", calibration=samples, weight_rounding="gptq", min_elements=1)
    )
    weights = made.subgraphs[0].operators[0].inputs[0]
    exact = tq.Model(model).subgraphs[0].operators[0].inputs[1].data.astype(float)
    nearest = np.clip(np.rint(exact / weights.quantization.scale.astype(float)[:, None]), -8, 7)
    assert np.array_equal(np.asarray(weights.data, int), nearest)


def test_the_same_bytes_for_any_number_of_threads_and_from_the_command_line(run, tmp_path):
    demo_float.write(tmp_path)
    code = """if 1:
        import sys; sys.path[:0] = sys.argv[1:]
        import test_weight_rounding as t
        sys.stdout.buffer.write(t.rounded())"""
    made = set()
    for threads in ("1", "2", "5"):
        environment = {**os.environ, "TQ_NUM_THREADS": threads}
        command = [sys.executable, "-c", code, *import_path(__file__)]
        made.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert made == {bytes(rounded())}
    options = ["--recipe", "int8", "--samples", "demo_samples.npz", "--weight-rounding", "gptq"]
    fine(run("quantize", "demo_float.tflite", "out.tflite", *options))
    samples = dict(np.load(tmp_path / "demo_samples.npz"))
    expected = tq.quantize_model(tmp_path / "demo_float.tflite", "int8", calibration=samples, weight_rounding="gptq")
    assert (tmp_path / "out.tflite").read_bytes() == expected


def rounded():
    return tq.quantize_model(FLOAT, "int8", calibration=SEEN, weight_rounding="gptq")


def test_a_rule_says_how_an_operator_is_rounded():
    def weights(**options):
        data = tq.quantize_model(NETS["conv"], "weight_only_int4", min_elements=1, **options)
        layers = [op for op in tq.Model(data).subgraphs[0].operators if op.name == "CONV_2D"]
        return [np.array(constant_of(op, 1).data) for op in layers]

    seen = smooth((1, 8, 8, 6), 8, 1)
    first, second = (Rule("weight_only_int4", index=i, weight_rounding="comq") for i in (0, 1))
    plain, one = weights(), weights(rules=[first], calibration=seen)
    two = weights(rules=[second], calibration=seen)
    rest = weights(
        rules=[Rule("weight_only_int4", index=0, weight_rounding="nearest")], weight_rounding="comq", calibration=seen
    )

    def same(a, b):
        return [np.array_equal(x, y) for x, y in zip(a, b, strict=True)]

    assert same(plain, one) == [False, True]
    assert same(plain, two) == [True, False]
    assert same(two, rest) == [True, True]


REFUSED = {
    "unknown": (lambda: made(weight_rounding="gtpq"), "did you mean 'gptq'"),
    "unknown in a rule": (lambda: Rule("int8", weight_rounding="adaround"), "there are: nearest, gptq, comq"),
    "no samples": (lambda: made("weight_only_int4", weight_rounding="gptq", calibration=None), "samples= is needed"),
    "a saved calibration": (
        lambda: made(weight_rounding="gptq", calibration=tq.calibrate(FLOAT, SEEN)),
        "a tq.Calibration, which holds no samples",
    ),
    "float16": (lambda: made("float16", weight_rounding="gptq"), "makes no int8, int4 or int2 weights"),
    "uint8": (lambda: made("uint8", weight_rounding="gptq"), "makes no int8, int4 or int2 weights"),
    "no layer": (
        lambda: made("int8", weight_rounding="gptq", rules=[Rule("int8", weight_rounding="nearest")]),
        "weight_rounding has no effect",
    ),
}


def made(recipe="int8", **options):
    return tq.quantize_model(FLOAT, recipe, **{"calibration": SEEN, **options})


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, words = REFUSED[case]
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        call()


def test_refused_on_the_command_line(run, tmp_path):
    demo_float.write(tmp_path)
    files = ["quantize", "demo_float.tflite", "out.tflite", "--weight-rounding", "gptq"]
    failed(run(*files, "--recipe", "weight_only_int4"), "--samples is needed")
    options = ["--recipe", "int8", "--plan", "--samples", "demo_samples.npz"]
    failed(run(*files[:2], *files[3:], *options), "--plan is without")


@pytest.mark.parametrize("recipe", ["weight_only_int4", "weight_only_int2", "dynamic_int4", "dynamic_int8", "int16x8"])
def test_each_set_of_litert_s_kernels_computes_it_as_tq_does(recipe):
    plain = tq.quantize_model(FLOAT, recipe, calibration=SEEN if recipe == "int16x8" else None, min_elements=1)
    data = tq.quantize_model(FLOAT, recipe, calibration=SEEN, weight_rounding="gptq", min_elements=1)
    place, source = tq.Model(data).outputs[0].index, tq.Model(data).inputs[0].index
    fed = [{source: sample} for sample in HELD_OUT]
    exact = np.stack([row[0] for row in measuring.outputs(tq.Model(FLOAT), measured())])
    noise = np.square(np.stack([row[0] for row in measuring.outputs(tq.Model(plain), measured())]) - exact).sum()
    for resolver in ("AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        (answer,) = oracle.ask("tensors", [(bytes(data), resolver, fed, {}, [place])])
        assert isinstance(answer, list), answer
        assert np.square(np.stack([row[place] for row in answer]) - exact).sum() < 0.8 * noise, resolver


def measured():
    return measuring.Samples(tq.Model(FLOAT), HELD_OUT)


# ---- observers ----


def dense_layer():
    return tq.Model(NETS["dense"]).subgraphs[0].operators[0]


def observed(parts):
    layer = dense_layer()
    observer = HessianObserver(shape_of(layer, (7, 40)))
    for part in parts:
        observer.update(layer, (7, 40), part)
    return observer


def test_observers_merge_in_any_order_and_are_pickled():
    parts = smooth((3, 40), 9, 3)
    whole = observed(parts)
    split = [observed(parts[i : i + 3]) for i in (0, 3, 6)]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        merged = observed([])
        for i in order:
            merged.merge(pickle.loads(pickle.dumps(split[i])))
        assert merged.count == whole.count == 27
        np.testing.assert_allclose(merged.products, whole.products, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(merged.moments(0), whole.moments(0), rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(merged.mean(), whole.mean(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(merged.shrinkage(), whole.shrinkage(), rtol=1e-9)
    with pytest.raises(ValueError, match="the other of"):
        whole.merge(HessianObserver(Shape(1, 7, 39)))


def ledoit_wolf(moments):
    """Ledoit and Wolf 2004, lemma 3.3, of one matrix an observation."""
    mean = np.mean(moments, 0)
    target = np.eye(len(mean)) * np.trace(mean) / len(mean)
    noise = np.mean([np.square(item - mean).sum() for item in moments]) / (len(moments) - 1)
    return np.clip(noise / np.square(mean - target).sum(), 0, 1)


@pytest.mark.parametrize("rows", [1, 3])
def test_moments_shrink_by_what_samples_do_not_have_in_common(rows):
    random = np.random.default_rng(2)
    same = np.repeat(random.normal(size=(1, rows, 40)), 12, 0)
    alike = same + 0.3 * random.normal(size=same.shape)
    for samples, least, most in ((same, 0, 1e-9), (alike, 0.001, 0.3), (random.normal(size=same.shape), 0.4, 1)):
        samples = np.float32(samples)
        (found,) = observed(samples).shrinkage()
        exact = ledoit_wolf([x.T.astype(float) @ x / rows for x in samples])
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-9)
        assert least <= found <= most
    assert observed(same[:1]).shrinkage() == 0


def test_shrinkage_of_wide_weights_counts_samples_of_one_patch(monkeypatch):
    samples = smooth((1, 40), 9, 3)
    (expected,) = observed(samples).shrinkage()
    monkeypatch.setattr("tq.calibration.hessians.WIDE", 8)
    np.testing.assert_allclose(observed(samples).shrinkage(), [expected], rtol=1e-9)
    assert observed(smooth((3, 40), 9, 3)).shrinkage() == 0


def test_samples_with_nothing_in_common_round_no_worse_than_to_the_nearest():
    """Without shrinkage, rounding for a few random samples is worse on other samples than plain rounding."""
    model = net(("FULLY_CONNECTED", (60, 400), (1, 60), {}), shape=(1, 400))
    samples = list(np.random.default_rng(1).normal(size=(64, 1, 400)).astype(np.float32))
    for recipe in ("weight_only_int4", "weight_only_int8"):
        plain = tq.quantize_model(model, recipe, min_elements=1)
        for method in ("gptq", "comq"):
            made = tq.quantize_model(model, recipe, calibration=samples[:16], weight_rounding=method, min_elements=1)
            assert sqnr(model, made, samples[16:]) > sqnr(model, plain, samples[16:]) - 0.5


PAIRED = [name for name in NETS if not name.startswith("product")]


@pytest.mark.parametrize("name", PAIRED)
def test_pair_observers_agree_with_single_ones(name):
    layer = tq.Model(NETS[name]).subgraphs[0].operators[0]
    weights = layer.inputs[1].shape
    shape = shape_of(layer, weights)
    pair, x_only, sum_only = PairObserver(layer, shape, weights), HessianObserver(shape), HessianObserver(shape)
    given = tuple(tq.Model(NETS[name]).inputs[0].shape)
    for x, y in zip(smooth(given, 3, 1), smooth(given, 3, 2), strict=True):
        pair.update(x, y)
        x_only.update(layer, weights, x)
        sum_only.update(layer, weights, x + y)
    assert pair.count == x_only.count
    for group in range(shape.groups):
        own, cross = pair.moments(group)
        mean, both = x_only.mean()[group], sum_only.mean()[group]
        np.testing.assert_allclose(own, x_only.moments(group) - np.outer(mean, mean), rtol=1e-5, atol=1e-5)
        # (x + y)(x + y) = xx + xy + yx + yy: its symmetric part with xx and yy known gives xy + yx
        other = HessianObserver(shape)
        for y in smooth(given, 3, 2):
            other.update(layer, weights, y)
        rest = other.moments(group) - np.outer(other.mean()[group], other.mean()[group])
        total = sum_only.moments(group) - np.outer(both, both)
        xy = cross + own
        np.testing.assert_allclose(xy + xy.T, total - own - rest, rtol=1e-4, atol=1e-4)


def test_some_of_many_patches_are_left_out_of_pairs():
    layer = tq.Model(NETS["depthwise"]).subgraphs[0].operators[0]
    pair = PairObserver(layer, Shape(6, 2, 9), (1, 3, 3, 12))
    pair.update(*smooth((1, 64, 64, 6), 2, 1))
    assert 2 * 18 <= pair.count < 64 * 64 / 4


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_weights_correct_errors_of_earlier_layers(shift):
    """y = x + x M for all samples: the weights become w (1 + M); noise alone leaves them as they are."""
    random = np.random.default_rng(4)
    layer, shape = dense_layer(), Shape(1, 7, 40)
    matrices = random.normal(size=(1, 7, 40))
    turn = shift * random.normal(size=(40, 40)) / 6
    halves = [PairObserver(layer, shape, (7, 40)) for _ in range(2)]
    for sample in range(80):
        x = random.normal(size=(3, 40))
        y = x + (x @ turn if shift else 0.1 * random.normal(size=x.shape))
        halves[sample % 2].update(np.float32(x), np.float32(y))
    found = shifted(matrices, halves, np.zeros(1), 1)
    if shift:
        expected = matrices[0] + matrices[0] @ turn.T
        assert np.square(found[0] - expected).sum() < 0.02 * np.square(matrices[0] - expected).sum()
    else:
        assert np.square(found - matrices).sum() < 1e-3 * np.square(matrices).sum()


def test_damping_is_least_for_many_like_samples():
    h = np.diag([1.0, 3.0])
    assert damping(h, 10**9, 0.0) == pytest.approx(0.02, rel=1e-6)
    assert damping(h, 2, 0.0) == pytest.approx(0.08)
    assert damping(h, 10**9, 0.5) == pytest.approx(2.02, rel=1e-6)
    assert np.isfinite(damping(h, 2, 1.0)) and damping(np.zeros((2, 2)), 2, 0.0) == 1.0


@pytest.mark.parametrize("name", NETS)
def test_weights_as_matrices_and_back(name):
    layer = tq.Model(NETS[name]).subgraphs[0].operators[0]
    weights = np.asarray(layer.inputs[1].data)
    shape = shape_of(layer, weights.shape)
    matrices = matrices_of(layer, shape, weights)
    assert matrices.shape == tuple(shape)
    assert np.array_equal(weights_of(layer, matrices, weights.shape), weights)


@pytest.mark.parametrize("most", [0, 1 << 30])
@pytest.mark.parametrize("data", ["float", "int8"])
def test_pieces_of_a_model_give_what_the_whole_gives(data, most):
    """Whether tensors are held between pieces, or made again."""
    model = tq.Model(FLOAT if data == "float" else tq.quantize_model(FLOAT, "int8", calibration=SEEN))
    given = measuring.Samples(tq.Model(FLOAT), SEEN[:3])
    segments = Segments(model, given, most)
    interpreter = tq.Interpreter(model=model, numerics=measuring.KERNELS, experimental_preserve_all_tensors=True)
    for op in model.subgraphs[0].operators:
        segments.advance(op.index)
        tensor = op.inputs[0]
        values = (value for chunk in segments.chunks(tensor.index) for value in chunk.reals())
        for _, found in zip(given.each(interpreter), values, strict=True):
            interpreter.invoke()
            assert np.array_equal(measuring.real(interpreter.get_tensor(tensor.index), tensor), found)


def test_biases_correct_the_means_that_litert_has_by_default():
    """XNNPACK's QUANTIZE of int8 values has a multiplier of 8 bits: its mean is not the reference kernel's."""
    builder, random = tq.ModelBuilder(), np.random.default_rng(3)
    shape, both = (1, 8, 8, 8), (1, 8, 8, 16)
    x, wide, joined, y = builder.input("x", shape), *(builder.tensor(None, item) for item in (shape, both, shape))
    builder.operator("MUL", [x, builder.constant("factor", np.float32(9.4))], [wide])
    builder.operator("CONCATENATION", [x, wide], [joined], axis=3)
    w = np.concatenate([np.full((8, 1, 1, 8), 10), random.normal(size=(8, 1, 1, 8))], axis=3)
    constants = [builder.constant("w", np.float32(w)), builder.constant("b", np.zeros(8, np.float32))]
    builder.operator("CONV_2D", [joined, *constants], [y], **CONV)
    builder.output(y)
    model = builder.to_bytes()
    seen = [random.normal(0.2, 0.3, shape).clip(-1, 1).astype(np.float32) for _ in range(16)]
    made = tq.quantize_model(model, "int8", calibration=seen, weight_rounding="gptq")
    step = tq.Model(made).operators[-2].outputs[0].quantization.scale[0]
    fed = [{0: value} for value in seen]
    tasks = [(bytes(data), "AUTO", fed, {}, [tq.Model(data).outputs[0].index]) for data in (model, made)]
    exact, found = ([value for row in rows for value in row.values()] for rows in oracle.ask("tensors", tasks))
    means = np.mean(found, axis=(0, 1, 2, 3)) - np.mean(exact, axis=(0, 1, 2, 3))
    assert [op.name for op in tq.Model(made).operators].count("QUANTIZE") == 2
    assert np.abs(means / step).max() < 0.1


def test_large_activations_are_not_held():
    wide, count = (1, 64, 64, 64), 16
    model = net(
        ("CONV_2D", (64, 1, 1, 1), wide, CONV),
        *[("CONV_2D", (64, 1, 1, 64), wide, CONV)] * 3,
        ("CONV_2D", (1, 1, 1, 64), (1, 64, 64, 1), CONV),
        shape=(1, 64, 64, 1),
    )
    seen = smooth((1, 64, 64, 1), count, 1)
    tracemalloc.start()
    try:
        tq.quantize_model(model, "weight_only_int8", calibration=seen, weight_rounding="gptq")
        assert tracemalloc.get_traced_memory()[1] < count * 4 * np.prod(wide)  # of one layer, in one of the two models
    finally:
        tracemalloc.stop()


def test_weights_that_overrides_name_stay_as_they_are():
    name = tq.Model(NETS["conv"]).subgraphs[0].operators[0].inputs[1].name
    options = {"overrides": {name: (-4.0, 4.0)}, "min_elements": 1}
    plain = tq.Model(tq.quantize_model(NETS["conv"], "weight_only_int4", **options))
    seen = smooth((1, 8, 8, 6), 8, 1)
    rounded = tq.quantize_model(NETS["conv"], "weight_only_int4", calibration=seen, weight_rounding="gptq", **options)
    first, second = [
        np.array_equal(constant_of(a, 1).data, constant_of(b, 1).data)
        for a, b in zip(plain.subgraphs[0].operators, tq.Model(rounded).subgraphs[0].operators, strict=True)
        if a.name == "CONV_2D"
    ]
    assert first and not second


def test_weights_in_float16_are_rounded():
    half = tq.quantize_model(NETS["conv"], "float16")
    seen = smooth((1, 8, 8, 6), 8, 1)
    options = {"min_elements": 1}
    plain = tq.quantize_model(half, "weight_only_int4", **options)
    made = tq.quantize_model(half, "weight_only_int4", calibration=seen, weight_rounding="gptq", **options)
    assert sqnr(half, made, seen) > sqnr(half, plain, seen) + 1


def sharing():
    """Two CONV_2D in a row that read the same weights."""
    b = tq.ModelBuilder()
    x = b.input("x", (1, 8, 8, 6))
    w = b.constant("w", np.random.default_rng(0).normal(size=(6, 3, 3, 6)).astype(np.float32))
    for number in range(2):
        y = b.tensor(f"y{number}", (1, 8, 8, 6))
        b.operator("CONV_2D", [x, w, b.constant(f"b{number}", np.ones(6, np.float32))], [y], **CONV)
        x = y
    b.output(x)
    return b.to_bytes()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("recipe", ["weight_only_int4", "dynamic_int8", "int4", "int8", "int16x8"])
def test_weights_that_two_layers_read_are_rounded_for_both(recipe, method):
    model, seen = sharing(), smooth((1, 8, 8, 6), 16, 1)
    options = {"calibration": seen} if recipe in ("int4", "int8", "int16x8") else {"min_elements": 1}
    plain = tq.quantize_model(model, recipe, **options)
    made = tq.quantize_model(model, recipe, weight_rounding=method, **{**options, "calibration": seen})
    one, two = [op for op in tq.Model(made).subgraphs[0].operators if op.name == "CONV_2D"]
    assert constant_of(one, 1).index == constant_of(two, 1).index
    assert sqnr(model, made, seen) > sqnr(model, plain, seen) + (3 if "int4" in recipe else 0.1)
    assert not any(finding.level == "violates" for finding in tq.check(made))


def dense(*names):
    """Operators that read the same weights, each with an input and an output of its own."""
    b = tq.ModelBuilder()
    w = b.constant("w", np.random.default_rng(0).normal(size=(4, 40)).astype(np.float32))
    for number, name in enumerate(names):
        if name == "FULLY_CONNECTED":
            x, y = b.input(f"x{number}", (3, 40)), b.tensor(f"y{number}", (3, 4))
            b.operator(name, [x, w], [y])
        else:
            x, y = b.input(f"x{number}", (3,), "int32"), b.tensor(f"y{number}", (3, 40))
            b.operator(name, [x, w], [y])
        b.output(y)
    return b.to_bytes()


def test_weights_that_two_layers_read_are_those_of_one_layer_with_the_inputs_of_both():
    first, second = smooth((3, 40), 8, 1), smooth((3, 40), 8, 2)
    options = {"weight_rounding": "gptq", "min_elements": 1}
    one = tq.quantize_model(dense("FULLY_CONNECTED"), "weight_only_int4", calibration=first + second, **options)
    pairs = list(zip(first, second, strict=True))
    two = tq.quantize_model(dense(*["FULLY_CONNECTED"] * 2), "weight_only_int4", calibration=pairs, **options)
    a, b = (constant_of(tq.Model(data).subgraphs[0].operators[-1], 1) for data in (one, two))
    np.testing.assert_array_equal(a.data, b.data)
    np.testing.assert_array_equal(a.quantization.scale, b.quantization.scale)


def test_the_float_model_runs_whole_where_layers_share_all_weights(monkeypatch):
    """Not in pieces, which would be as many as layers: each takes as long to cut as the model is large."""
    model, cut, pieces = tq.Model(sharing()), Segments._extract, []
    monkeypatch.setattr(
        Segments, "_extract", lambda self, *args: pieces.append(self._model is model) or cut(self, *args)
    )
    options = {"weight_rounding": "gptq", "min_elements": 1}
    tq.quantize_model(model, "weight_only_int4", calibration=smooth((1, 8, 8, 6), 8, 1), **options)
    assert pieces and not any(pieces)


def test_weights_that_are_a_table_too_stay():
    x, rows = smooth((3, 40), 8, 1), np.array([0, 3, 1], np.int32)
    with pytest.raises(ValueError, match="weight_rounding has no effect: no weights that only"):
        tq.quantize_model(
            dense("FULLY_CONNECTED", "EMBEDDING_LOOKUP"),
            "weight_only_int4",
            calibration=[(item, rows) for item in x],
            weight_rounding="gptq",
            min_elements=1,
        )


def test_weights_whose_two_layers_get_different_roundings_stay():
    seen, options = smooth((1, 8, 8, 6), 8, 1), {"min_elements": 1}
    rules = [Rule("weight_only_int4", index=1, weight_rounding="gptq")]
    with pytest.raises(ValueError, match="weight_rounding has no effect"):
        tq.quantize_model(sharing(), "weight_only_int4", calibration=seen, rules=rules, **options)


def test_inputs_that_are_not_finite_leave_weights_as_they_are():
    seen = smooth((3, 40), 4, 1)
    seen[1][0, 3] = np.inf
    plain = tq.quantize_model(NETS["dense"], "weight_only_int4", min_elements=1)
    made = tq.quantize_model(
        NETS["dense"], "weight_only_int4", calibration=seen, weight_rounding="gptq", min_elements=1
    )
    assert made == plain


def test_inputs_of_zeros_give_nearest_rounding():
    made = tq.quantize_model(
        NETS["conv"],
        "weight_only_int4",
        calibration=[np.zeros((1, 8, 8, 6), np.float32)],
        weight_rounding="gptq",
        min_elements=1,
    )
    for op, exact in zip(
        [op for op in tq.Model(made).subgraphs[0].operators if op.name == "CONV_2D"],
        tq.Model(NETS["conv"]).subgraphs[0].operators,
        strict=True,
    ):
        weights = constant_of(op, 1)
        scale = weights.quantization.scale.astype(float)[:, None, None, None]
        nearest = np.clip(np.rint(np.asarray(exact.inputs[1].data, float) / scale), -8, 7)
        assert np.array_equal(np.asarray(weights.data, int), nearest)


def test_a_terminal_sees_the_layers(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    tq.quantize_model(FLOAT, "int8", calibration=SEEN[:2], weight_rounding="comq")
    assert "rounding weights 1 of 4 layers, 0 s" in terminal.getvalue()


# ---- executors ----


def many(**options):
    """A model made from more samples than a worker takes at a time."""
    seen = list(demo_float.pictures(40)[0])
    return tq.quantize_model(FLOAT, "int8", calibration=seen, weight_rounding="gptq", **options)


@pytest.mark.parametrize("most", [0, 1 << 30])
@pytest.mark.parametrize("kind", ["threads", "processes", "by turns"])
def test_an_executor_gives_the_same_bytes(kind, most, monkeypatch):
    monkeypatch.setattr(rounding, "_LEAST_HELD", most)
    context = multiprocessing.get_context("spawn")
    makers = {
        "threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: ProcessPoolExecutor(2, mp_context=context),
        "by turns": lambda: ByTurns(),
    }
    with makers[kind]() as executor:
        assert many(executor=executor) == many(num_threads=1)
    if kind == "by turns":
        assert {work.__name__ for work in executor.done} >= {"run_chunk", "of_chunk"}


class ByTurns(Executor):
    """Runs everything at once, after a pickle's way there and back."""

    def __init__(self):
        self.done = []

    def submit(self, work, /, *arguments):
        self.done.append(work)
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(work(*pickle.loads(pickle.dumps(arguments))))))
        return future


@pytest.mark.parametrize("options", [{"weight_rounding": "gptq"}, {"effort": "better"}, {}])
def test_an_executor_serves_each_option_that_it_concerns(options):
    with ThreadPoolExecutor(2) as executor:
        made = tq.quantize_model(FLOAT, "int8", calibration=SEEN, executor=executor, **options)
    assert made == tq.quantize_model(FLOAT, "int8", calibration=SEEN, **options)


@pytest.mark.parametrize("options", [{"recipe": "weight_only_int8"}, {"calibration": None, "recipe": "dynamic_int8"}])
def test_an_executor_without_work_is_refused(options):
    with pytest.raises(ValueError, match="executor is given and has no effect: its workers find ranges"):
        made(executor=object(), **{"calibration": None, **options})
    with pytest.raises(ValueError, match="executor is given and has no effect"):
        made(executor=object(), calibration=tq.calibrate(FLOAT, SEEN))


@pytest.mark.parametrize("form", ["bag", "list of delayed", "delayed"])
def test_samples_of_dask(form):
    dask, bag = pytest.importorskip("dask"), pytest.importorskip("dask.bag")
    makers = {
        "bag": lambda: bag.from_sequence(SEEN, npartitions=3),
        "list of delayed": lambda: [dask.delayed(np.array)(item) for item in SEEN],
        "delayed": lambda: dask.delayed(list)(SEEN),
    }
    with dask.config.set(scheduler="threads"):
        made = tq.quantize_model(FLOAT, "int8", calibration=makers[form](), weight_rounding="gptq")
    assert made == rounded()


def test_moments_of_chunks_merge_to_those_of_all():
    layer = moments.Layer(filter_of(dense_layer()), (7, 40), Shape(1, 7, 40), products=True, pairs=True)
    xs, ys = smooth((3, 40), 8, 1), smooth((3, 40), 8, 2)

    def of(places):
        found = moments.Moments(layer)
        for place in places:
            found.update(xs[place], ys[place], 1)
        return pickle.loads(pickle.dumps(found))

    whole = of(range(8))
    for parts in ([range(2), range(2, 8)], [range(4, 8), range(4)]):
        made = of(parts[0]).merge(of(parts[1]))
        assert made.rounded.count == whole.rounded.count and made.rounded.samples == 8
        np.testing.assert_allclose(made.rounded.products, whole.rounded.products, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(made.exact.sums, whole.exact.sums, rtol=1e-12, atol=1e-10)
        for one, two in zip(made.take_halves(), [*whole.halves], strict=True):
            assert one.count == two.count == 12
            for a, b in zip(one.moments(0), two.moments(0), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
