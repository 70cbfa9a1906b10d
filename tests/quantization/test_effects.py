# SPDX-License-Identifier: Apache-2.0
"""Nothing that a user says is ignored: what has no effect is an error that names it, and the nearest names."""

import numpy as np
import pytest
from commands import failed, fine

import tq
from tq.cli import demo_float
from tq.nearest import builtin_hint, hint, nearest, pattern_hint
from tq.quantization.options import Options, check
from tq.quantization.recipes import RECIPES, Rule

FLOAT = demo_float.float_model()
PICTURES = list(demo_float.pictures(4)[0])
FILES = ["quantize", "demo_float.tflite", "out.tflite"]
STATIC = ["--recipe", "int8", "--samples", "demo_samples.npz"]
DYNAMIC = ["--recipe", "dynamic_int8", "--min-elements", "0"]

# Options of `tq quantize` that have no effect, and words of the error.
IDLE = [
    ([*STATIC, "--tensor", "^socres=float"], ["tensor '^socres'", "did you mean 'scores"]),
    ([*STATIC, "--operator", "CONV=float"], ["operator 'CONV'", "did you mean 'CONV_2D'"]),
    ([*STATIC, "--operator", "Conv2D=float"], ["did you mean 'CONV_2D'"]),
    ([*STATIC, "--operator", "ADD=float"], ["no operator 'ADD'", "there are: ", "SOFTMAX"]),
    ([*STATIC, "--tensor", "^energy=float", "--tensor", ".=int16x8"], ["'^energy'", "later rules"]),
    ([*DYNAMIC, "--operator", "SOFTMAX=float"], ["operator 'SOFTMAX'", "has no effect", "changes SOFTMAX here"]),
    ([*STATIC, "--range", "energi=0,1"], ["no tensor 'energi'", "did you mean 'energy'"]),
    ([*STATIC, "--range", "energy/bias=0,1"], ["'energy/bias' has no effect", "no integer operator"]),
    ([*DYNAMIC, "--range", "energy=0,1"], ["--range", "has no effect"]),
    ([*DYNAMIC, "--io", "int8"], ["--io is given and has no effect", "'dynamic_int8'"]),
    ([*DYNAMIC, "--samples", "demo_samples.npz"], ["calibration", "has no effect"]),
    ([*DYNAMIC, "--observer", "mse"], ["observer", "has no effect"]),
    ([*STATIC, "--percentile", "99"], ["percentile", "only observer 'percentile'"]),
    ([*STATIC, "--observer", "mse", "--percentile", "99"], ["percentile", "only observer 'percentile'"]),
    ([*STATIC, "--fallback", "int16x8"], ["fallback", "--target-sqnr"]),
    ([*STATIC, "--fallback", "int8", "--target-sqnr", "10"], ["fallback", "the recipe itself"]),
    ([*STATIC, "--min-elements", "5000"], ["--min-elements", "weights of any size"]),
    ([*STATIC, "--block-size", "64"], ["--block-size", "blockwise_int4"]),
    (["--recipe", "float16", "--per-tensor"], ["--per-tensor", "has no scales of channels"]),
    (["--recipe", "int9"], ["there is no recipe 'int9'", "did you mean 'int8'"]),
    ([*STATIC[:2], "--samples", "nokey=demo_samples.npz"], ["no signature is called 'nokey'"]),
]


@pytest.mark.parametrize(("options", "words"), IDLE, ids=lambda value: " ".join(value)[-40:])
def test_options_of_quantize_without_effect(options, words, run, tmp_path):
    demo_float.write(tmp_path)
    failed(run(*FILES, *options), *words)
    assert not (tmp_path / "out.tflite").exists()


def test_defaults_that_are_given_are_no_errors(run, tmp_path):
    demo_float.write(tmp_path)
    options = ["--io", "float32", "--percentile", "99.99", "--fallback", "float", "--block-size", "32"]
    fine(run(*FILES, *DYNAMIC, *options, "--observer", "minmax", "--operator", "CONV_2D=dynamic_int8"))
    fine(run(*FILES, *STATIC, *options, "--min-elements", "1024", "--operator", "CONV_2D=int8"))


def test_other_commands(run, tmp_path):
    demo_float.write(tmp_path)
    np.save(tmp_path / "x.npy", PICTURES[0])
    np.savez(tmp_path / "typo.npz", pictur=PICTURES[0])
    for command in (
        ["run", "demo_float.tflite"],
        ["compare", *["demo_float.tflite"] * 2],
        ["profile", "demo_float.tflite"],
    ):
        failed(run(*command, "--input", "x.npy", "--seed", "1"), "--seed", "no effect")
        failed(run(*command, "--input", "typo.npz"), "'pictur'", "did you mean 'picture'")
        failed(run(*command, "--threads", "0"), "--threads", "number of 1 or more")
    fine(run("run", "demo_float.tflite", "--input", "x.npy", "--seed", "0"))
    failed(run("profile", "demo_float.tflite", "--runs", "0"), "--runs")
    failed(run("run", "demo_float.tflite", "--input", "x.npy", "--input", "typo.npz"), "one .npz holds all inputs")
    fine(run("sensitivity", "demo_float.tflite", "--recipe", "weight_only_int8", "--samples", "demo_samples.npz"))


def quantized(recipe="int8", **options):
    if recipe in ("int8", "int16x8", "int4", "int16x4", "uint8"):
        options.setdefault("calibration", PICTURES)
    return tq.quantize_model(FLOAT, recipe, **options)


def one_layer(columns=64):
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, columns]), b.tensor("y", [1, 32])
    weights = np.random.default_rng(0).standard_normal((32, columns)).astype(np.float32)
    b.operator("FULLY_CONNECTED", [x, b.constant("w", weights)], [y])
    b.output(y)
    return b.to_bytes()


# Keywords of functions that have no effect, and words of the error.
CALLS = {
    "rule tensor": (lambda: quantized(rules=[Rule("float", tensor="^socres")]), "did you mean 'scores"),
    "rule subgraph": (lambda: quantized(rules=[Rule("float", subgraph=3)]), "the subgraphs with operators are 0"),
    "rule index": (lambda: quantized(rules=[Rule("float", index=77)]), "the last operator is 5"),
    "rule indices": (lambda: quantized(rules=[Rule("float", index=(1, 77))]), "holds for no operator 77"),
    "rule recipe": (lambda: Rule("flaot"), "did you mean 'float'"),
    "samples": (lambda: quantized(samples=PICTURES), "samples is given and has no effect"),
    "calibration": (lambda: quantized("float16", calibration=PICTURES), "calibration is given and has no effect"),
    "saved calibration": (
        lambda: quantized("dynamic_int8", calibration=tq.calibrate(FLOAT, PICTURES), samples=PICTURES, equalize=True),
        "calibration is given and has no effect",
    ),
    "bias_correction": (
        lambda: quantized("float16", samples=PICTURES, bias_correction=True),
        "bias_correction has no effect",
    ),
    "max_memory": (
        lambda: quantized("dynamic_int8", calibration=None, max_memory=1 << 30),
        "max_memory is given and has no effect: it limits runs, and nothing is run",
    ),
    "per_axis in blocks": (
        lambda: tq.quantize_model(one_layer(), "blockwise_int4", per_axis=False),
        "per_axis is given and has no effect: all weights have scales of blocks",
    ),
    "block_size of no row": (
        lambda: tq.quantize_model(one_layer(96), "blockwise_int4", block_size=64),
        "block_size is given and has no effect: 64 divides no row",
    ),
    "range of int2 weights": (
        lambda: tq.quantize_model(one_layer(), "dynamic_int2", overrides={"w": (-1.0, 1.0)}),
        "'w' cannot have these parameters: int2 weights get scales of their own values",
    ),
    "range of weights in blocks": (
        lambda: tq.quantize_model(one_layer(), "blockwise_int4", overrides={"w": (-1.0, 1.0)}),
        "'w' cannot have these parameters: int4 weights in blocks get scales of their own values",
    ),
    "range of 0 to 0": (
        lambda: tq.quantize_model(one_layer(), "dynamic_int8", overrides={"w": (0.0, 0.0)}),
        "'w' cannot have these parameters: its values pass -127 or 127",
    ),
    "scales of int4 weights": (
        lambda: tq.quantize_model(one_layer(), "dynamic_int4", overrides={"w": tq.QuantizationParams((0.01, 0))}),
        "'w' cannot have these parameters: its values pass -8 or 7",
    ),
    "observer": (lambda: quantized(observer="percentil"), "did you mean 'percentile'"),
    "calibrate percentile": (lambda: tq.calibrate(FLOAT, PICTURES, percentile=99), "percentile is given"),
    "calibrate seed": (lambda: tq.calibrate(FLOAT, PICTURES, seed=3), "seed is given"),
    "with_observer": (
        lambda: tq.calibrate(FLOAT, PICTURES, observer="histogram").with_observer("mse", 99),
        "percentile is given",
    ),
    "calibrate signature": (lambda: tq.calibrate(FLOAT, PICTURES, signature="x"), "no signature is called 'x'"),
    "sample names": (lambda: tq.calibrate(FLOAT, {"pictures": np.array(PICTURES)}), "did you mean 'picture'"),
    "compare": (lambda: tq.compare(FLOAT, FLOAT, {"pictures": PICTURES[0]}), "did you mean 'picture'"),
    "extract": (lambda: tq.extract(FLOAT, ["picture"], ["scors"]), "did you mean 'scores'"),
    "range": (lambda: tq.calibrate(FLOAT, PICTURES).range("enrgy"), "did you mean 'energy'"),
    "tensors": (lambda: tq.Model(FLOAT).tensors["enrgy"], "did you mean 'energy'"),
    "edit tensors": (lambda: tq.edit(FLOAT).tensors["enrgy"], "did you mean 'energy'"),
    "options": (lambda: tq.edit(FLOAT).operators[0].options["stride"], "did you mean 'stride_"),
    "io types": (lambda: tq.edit(FLOAT).set_io_types({"pictur": "int8"}), "did you mean 'picture'"),
    "operator": (lambda: tq.ModelBuilder().operator("CONV", [], []), "did you mean 'CONV_2D'"),
    "add_operator": (lambda: tq.edit(FLOAT).main.add_operator("softmax", [], []), "did you mean 'SOFTMAX'"),
    "signature": (
        lambda: tq.Interpreter(model_content=FLOAT).get_signature_runner("serving"),
        'Invalid signature_key provided: "serving"',
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_and_names_without_effect(name):
    call, words = CALLS[name]
    with pytest.raises((ValueError, KeyError)) as refused:
        call()
    assert words in str(refused.value)


def test_an_io_that_no_input_or_output_has_inside():
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 8]), b.tensor("y", [1, 8]), b.tensor("z", [1, 8])
    b.operator("ABS", [x], [y])
    b.operator("ABS", [y], [z])
    b.output(z)
    model = b.to_bytes()
    data = [np.ones((1, 8), np.float32)]
    rules = [Rule("float", index=(0, 1))]
    with pytest.raises(ValueError, match="nothing to quantize"):
        tq.quantize_model(model, calibration=data, io="int8", rules=rules)
    b = tq.edit(model)
    with pytest.raises(ValueError, match="is none of the inputs"):
        b.set_io_types({"y": "int8"})


def test_custom_operators_may_have_any_name_that_is_said_to_be_theirs():
    for name, options in (("CONV", b""), ("MyOp", None), ("TFLite_Detection_PostProcess", None), ("MY_OWN", None)):
        b = tq.ModelBuilder()
        b.operator(name, [b.input("x", [1])], [b.tensor("y", [1])], custom_options=options)
        assert b.to_model().operators[0].name == name


def test_nearest_names():
    assert nearest("conv2d", ["CONV_2D", "ADD"]) == ["CONV_2D"]
    assert hint("x", ["abc"]) == "" and hint("", []) == ""
    assert pattern_hint(r"^socres$", ["a/scores/bias", "b"]) == "; did you mean 'a/scores/bias'?"
    assert pattern_hint("(", ["b"]) == "" and builtin_hint("MyCustomOp", ["CUSTOM", "ADD"]) == ""


def test_every_recipe_takes_what_its_checks_let_through():
    """An option that check() calls idle is idle: the same bytes come out without it."""
    plain = {name: quantized(name, min_elements=0) for name in RECIPES if name not in ("float", "blockwise_int4")}
    for name, data in plain.items():
        for option in ({"block_size": 64}, {"per_axis": False}):
            try:
                check(Options(RECIPES[name], **{"min_elements": 0, **option}))
            except ValueError:
                continue
            assert quantized(name, min_elements=0, **option) != data, (name, option)
