# SPDX-License-Identifier: Apache-2.0
"""Models that break the quantization specification: what LiteRT's kernels run, tq runs with their bits."""

import generators
import misquantized
import numpy as np
import oracle
import pytest
from generators.draft import Draft

import tq

NUMERICS = list(generators.NUMERICS)
QUICK = 4  # of so many breaks each row meets one here


def differences(rows, seeds, names_of):
    found = []
    for place, row in enumerate(rows):
        broken = [b for seed in seeds for b in misquantized.cases(*row, seed, names_of(place))]
        for numerics in NUMERICS if broken else ():
            if numerics == "reference" and generators.RESOLVERS[row] != generators.REFERENCE:
                continue
            answers = misquantized.compare(broken, numerics, 2)
            found += [f"{numerics}: {b}: {text}" for b, _, text in answers if text]
    return found


@pytest.mark.parametrize("part", range(4))
def test_one_break_of_each_row_does_what_litert_does(part):
    names = list(misquantized.BREAKS)
    rows = misquantized.ROWS[part::4]
    found = differences(rows, [1], lambda place: names[(place + part) % QUICK :: QUICK])
    assert not found, "\n".join(found[:20])


@pytest.mark.thorough
@pytest.mark.parametrize("row", misquantized.ROWS, ids="-".join)
def test_every_break_of_each_row_does_what_litert_does(row):
    found = differences([row], range(2, 12), lambda _: None)
    assert not found, "\n".join(found[:20])


# ---- each rule that LiteRT does not hold ----

SCALES = [0.01, 0.02, 0.03, 0.04]


def along(scales, axis):
    return {"scale": scales, "zero_point": [0] * len(scales), "quantized_dimension": axis}


def logistic(m):
    x = m.input("int8", [3, 9], scale=0.05, zero_point=3)
    m.operator("LOGISTIC", [x], [m.output("int8", [3, 9], scale=0.0042, zero_point=-128)])


def layer(m, **bias):
    x = m.input("int8", [3, 9], scale=0.05, zero_point=3)
    w = m.constant("int8", m.integers("int8", [4, 9], -127, 127), scale=0.01, zero_point=0)
    b = m.constant("int32", m.integers("int32", [4], -99, 99), **{"scale": 0.0005, "zero_point": 0, **bias})
    m.operator("FULLY_CONNECTED", [x, w, b], [m.output("int8", [3, 4], scale=0.3, zero_point=-5)], version=4)


def convolution(m, name="CONV_2D", image=None, **bias):
    deep = name == "DEPTHWISE_CONV_2D"
    x = m.input("int8", [1, 5, 5, 4], **(image or {"scale": 0.05, "zero_point": 3}))
    shape = [1, 2, 2, 4] if deep else [4, 2, 2, 4]
    w = m.constant("int8", m.integers("int8", shape, -127, 127), **along(SCALES, 3 if deep else 0))
    usual = along([0.05 * s for s in SCALES], 0)
    b = m.constant("int32", m.integers("int32", [4], -99, 99), **{**usual, **bias})
    options = {"stride_w": 1, "stride_h": 1} | ({"depth_multiplier": 1} if deep else {})
    m.operator(name, [x, w, b], [m.output("int8", [1, 5, 5, 4], scale=0.2, zero_point=-7)], **options, version=3)


def per_axis(name):
    def draw(m):
        x = m.input("int8", [2, 3, 3, 4], **along(SCALES, 3))
        output = m.output("int8", [2, 3, 3, 4], scale=1 / 128, zero_point=0)
        if name == "MEAN":
            output = m.output("int8", [2, 4], scale=1 / 128, zero_point=0)
            m.outputs.pop(0)
        others = {"MUL": [m.input("int8", [2, 3, 3, 4], scale=0.1, zero_point=2)] if name == "MUL" else []}
        others["MEAN"] = [m.constant("int32", [1, 2])] if name == "MEAN" else []
        m.operator(name, [x, *others.get(name, [])], [output], version=2)

    return draw


def sum_of(zero_point):
    def draw(m):
        x, y = (
            m.input("int8", [3, 20], scale=0.05, zero_point=zero_point),
            m.input("int8", [20], scale=0.07, zero_point=3),
        )
        m.operator("ADD", [x, y], [m.output("int8", [3, 20], scale=0.1, zero_point=0)], version=2)

    return draw


def int16(name):
    """An operator of INT16 whose inputs and output have zero points."""

    def draw(m):
        x = m.input("int16", [3, 20], scale=0.002, zero_point=300)
        others = {"PRELU": [m.constant("int8", m.integers("int8", [20], -99, 99), scale=0.01, zero_point=7)]}
        others["EQUAL"] = [m.input("int16", [3, 20], scale=0.003, zero_point=-77)] if name == "EQUAL" else []
        y = m.output("bool", [3, 20]) if name == "EQUAL" else m.output("int16", [3, 20], scale=0.002, zero_point=-45)
        m.operator(name, [x, *others.get(name, [])], [y])

    return draw


def shuffled(m):
    x = m.input("uint8", [1, 32], scale=0.05, zero_point=7)
    w = m.constant("uint8", m.integers("uint8", [8, 32], 0, 255), scale=0.01, zero_point=99)
    b = m.constant("int32", m.integers("int32", [8], -99, 99), scale=0.0005, zero_point=0)
    outputs = [m.output("int16", [1, 8], scale=0.001, zero_point=5), m.output("uint8", [1, 32], scale=None)]
    m.operator("FULLY_CONNECTED", [x, w, b], outputs, weights_format="SHUFFLED4x16INT8", version=2)


def narrow(kind):
    """FULLY_CONNECTED of INT4 weights that XNNPACK takes for unsigned ones, less 8."""

    def draw(m):
        known = {} if kind == "float32" else {"scale": 0.05, "zero_point": 3}
        x = m.input(kind, [3, 10], **known)
        zero = {"scale": SCALES, "zero_point": [8] * 4, "quantized_dimension": 0}
        w = m.constant("int4", m.integers("int4", [4, 10], -8, 7), **zero)
        y = m.output(kind, [3, 4], **({} if kind == "float32" else {"scale": 0.05, "zero_point": -5}))
        m.operator("FULLY_CONNECTED", [x, w], [y], version=4)

    return draw


def bounded(m):
    """RELU6 of a zero point so far below the type that its upper bound is none of the type."""
    x = m.input("uint8", [3, 9], scale=0.05, zero_point=3)
    w = m.constant("uint8", m.integers("uint8", [4, 9], 1, 255), scale=0.01, zero_point=99)
    y = m.output("uint8", [3, 4], scale=0.3, zero_point=-72)
    m.operator("FULLY_CONNECTED", [x, w], [y], fused_activation_function="RELU6", version=2)


def relu6(m):
    x = m.input("int8", [3, 20], scale=0.05, zero_point=3)
    m.operator("RELU6", [x], [m.output("int8", [3, 20], scale=0.05, zero_point=-1000)])


RULES = {
    "FULLY_CONNECTED of INT8 by INT4 with the zero point 8": (narrow("int8"), ["xnnpack"]),
    "FULLY_CONNECTED of floats by INT4 with the zero point 8": (narrow("float32"), ["xnnpack"]),
    "FULLY_CONNECTED with an upper bound below its type": (bounded, ["reference", "optimized"]),
    "LOGISTIC with a scale of 0.0042": (logistic, ["xnnpack"]),
    "FULLY_CONNECTED with a bias zero point of 5": (lambda m: layer(m, zero_point=5), NUMERICS),
    "FULLY_CONNECTED with a bias scale 100 times off": (lambda m: layer(m, scale=0.05), ["xnnpack"]),
    "CONV_2D with bias zero points": (lambda m: convolution(m, zero_point=[5] * 4), ["reference", "optimized"]),
    "DEPTHWISE_CONV_2D with bias zero points": (
        lambda m: convolution(m, "DEPTHWISE_CONV_2D", zero_point=[5] * 4),
        ["reference", "optimized"],
    ),
    "CONV_2D of a per-axis input": (lambda m: convolution(m, image=along(SCALES, 3)), NUMERICS),
    **{f"{name} of a per-axis input": (per_axis(name), NUMERICS) for name in ("MUL", "MEAN", "TANH")},
    **{f"{name} of INT16 with zero points": (int16(name), NUMERICS) for name in ("EQUAL", "GELU", "PRELU")},
    "shuffled weights with zero points": (shuffled, NUMERICS),
    "ADD with a zero point of 200": (sum_of(200), ["reference", "optimized"]),
    "CONV_2D with a zero point of 1000": (
        lambda m: convolution(m, image={"scale": 0.05, "zero_point": 1000}),
        ["reference", "optimized"],
    ),
    "RELU6 with an upper bound below its type": (relu6, NUMERICS),
    "ADD with a zero point of 1792": (sum_of(1792), ["reference", "optimized"]),
}


@pytest.mark.parametrize("rule", RULES)
def test_what_litert_runs_against_the_specification(rule):
    draw, runs = RULES[rule]
    m = Draft(3)
    m.fixed = True
    draw(m)
    broken = misquantized.Broken(m.case("", "", 3), rule, "")
    for numerics in NUMERICS:
        ((_, theirs, text),) = misquantized.compare([broken], numerics)
        assert misquantized.is_run(theirs) == (numerics in runs), (numerics, theirs)
        assert text is None, (numerics, text)
        (row,) = tq.Interpreter(model_content=broken.case.model, numerics=numerics).backends()
        if numerics == "xnnpack" and not isinstance(theirs, list):
            assert row.litert or row.numerics == "optimized"


def test_int4_weights_with_the_zero_point_8_are_explained_and_their_kernels_named():
    m = Draft(3)
    m.fixed = True
    narrow("int8")(m)
    case = m.case("", "", 3)
    run = tq.Interpreter(model_content=case.model, numerics="xnnpack", experimental_preserve_all_tensors=True)
    run.allocate_tensors()
    x, y = run.get_input_details()[0], run.get_output_details()[0]
    run.set_tensor(x["index"], np.arange(30, dtype=np.int8).reshape(3, 10))
    run.invoke()
    got = run.get_tensor(y["index"])
    assert [tq.explain(run, y["index"], at).code for at in np.ndindex(got.shape)] == got.ravel().tolist()
    (kernels,) = (f.kernels for f in tq.check(case.model) if f.rule == "weights-zero-point")
    assert dict(kernels) == {"reference": "refuses", "optimized": "refuses", "xnnpack": "runs"}


def test_an_output_has_the_type_that_litert_gives_it_and_operators_behind_read_it_so():
    """ADD's output is INT16 in the file; RESHAPE and DEQUANTIZE read what ADD writes."""
    builder = tq.ModelBuilder()
    grid = {"scale": [0.05], "zero_point": [3]}
    x, y = (builder.tensor(name, (3, 20), "int8", **grid) for name in "xy")
    total = builder.tensor("total", (3, 20), "int16", **grid)
    flat, real = builder.tensor("flat", (60,), "uint8", **grid), builder.tensor("real", (3, 20), "float32")
    builder.operator("ADD", [x, y], [total], version=2)
    builder.operator("RESHAPE", [total], [flat], new_shape=[60])
    builder.operator("DEQUANTIZE", [total], [real], version=2)
    builder.inputs, builder.outputs = [x, y], [total, flat, real]
    model = builder.to_bytes()
    values = {i: np.random.default_rng(i).integers(-128, 128, (3, 20)).astype(np.int8) for i in (0, 1)}
    for numerics, resolver in generators.NUMERICS.items():
        questions = [(model, who, [values] * 2, {}, [2, 3, 4], False) for who in (resolver, f"TQ {numerics}")]
        theirs, mine = oracle.ask("tensors", questions)
        assert [str(v.dtype) for v in theirs[1].values()] == ["int8", "uint8", "float32"]
        for index in theirs[1]:
            assert mine[1][index].dtype == theirs[1][index].dtype
            assert np.array_equal(mine[1][index], theirs[1][index]), (numerics, index)
    run = tq.Interpreter(model_content=model, experimental_preserve_all_tensors=True)
    run.allocate_tensors()
    for index, value in values.items():
        run.set_tensor(index, value)
    run.invoke()
    assert [tq.explain(run, 2, at).code for at in np.ndindex(3, 20)] == run.get_tensor(2).ravel().tolist()
    again = tq.Interpreter(model_content=model, num_threads=1)
    for shape in ((2, 30), (3, 20)):
        again.resize_tensor_input(0, shape)
        again.resize_tensor_input(1, shape)
        again.allocate_tensors()
        assert again.get_output_details()[0]["dtype"] == np.int8


def test_zero_points_too_far_outside_the_type_are_refused():
    m = Draft(3)
    m.fixed = True
    sum_of(1793)(m)
    interpreter = tq.Interpreter(model_content=m.case().model)
    with pytest.raises(tq.RunError, match="zero point far outside its type; it needs one from -1792 to 1792"):
        interpreter.allocate_tensors()


def test_a_difference_is_seen():
    """LOGISTIC's scale is read by XNNPACK alone: beside other kernels the same answers differ."""
    m = Draft(3)
    m.fixed = True
    logistic(m)
    case = m.case("", "", 3)
    broken = misquantized.Broken(case, "another scale", "output 0")
    (theirs,) = misquantized.ask([broken], "BUILTIN")
    (mine,) = misquantized.ask([broken], "TQ xnnpack")
    assert misquantized.wrong(broken, mine, theirs, "xnnpack") is None
    other = [{index: np.asarray(values) + np.int8(1) for index, values in mine[0].items()}]
    assert "elements differ" in misquantized.wrong(broken, other, theirs, "xnnpack")
    assert "refuses to allocate" in misquantized.wrong(broken, oracle.Refusal("no", "allocate"), theirs, "xnnpack")
