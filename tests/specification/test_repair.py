# SPDX-License-Identifier: Apache-2.0
"""tq.repair: nothing is found afterwards, LiteRT runs the result, and its outputs are within the stated effect."""

import json
import pickle
from dataclasses import replace

import numpy as np
import oracle
import pytest
import specification_cases as cases

import tq
from tq.specification.applying import of_operator
from tq.specification.repairs import REPAIRS

ROWS = list(cases.rows())
IDS = [f"{name}-{spec}" for name, spec in ROWS]
# Rules that cannot be repaired: no other fact of the file gives the scale.
LOST = ("scale-missing", "scale-value")
# Operators of a variable, whose parameters must agree, and rules that concern one tensor.
OF_VARIABLES, OF_ONE = (
    ("READ_VARIABLE", "ASSIGN_VARIABLE"),
    ("zero-point-range", "activation-per-axis", "activation-symmetric"),
)
# LiteRT's int16 kernels read past the ends of biases and weights of other types.
MISREAD = ("bias-type", "weights-type")
# Operators whose kernels refuse values of a zero point out of range or of another type.
OF_POSITIVE = ("SQRT", "RSQRT", "LOG")


def repaired_cases(name, spec):
    made = cases.base(name, spec)
    for how in cases.BREAKS:
        rule = how.split()[0]
        if rule in REPAIRS and rule not in LOST and (other := cases.broken(made, how)) is not None:
            found = of_operator(tq.edit(other.model).main.operators[other.place])
            said = next(item for item in found if item.rule == rule)
            if said.level == "violates" and not (name in OF_VARIABLES and rule in OF_ONE):
                yield how, other


def outputs(made):
    """The outputs of LiteRT's reference kernels; None where they do not run the model."""
    (answer,) = oracle.ask("tensors", [next(cases.questions(made))])
    return answer[0] if isinstance(answer, list) else None


def real(tensor, value):
    return (value.astype(np.float64) - tensor.quantization.zero_point[0]) * np.float64(tensor.quantization.scale[0])


def is_plain(tensor):
    scale = tensor.quantization.scale
    return len(scale) == 1 and np.isfinite(scale[0]) and scale[0] > 0


@pytest.mark.parametrize(("name", "spec"), ROWS, ids=IDS)
def test_nothing_is_left_and_litert_runs_it_with_outputs_within_the_effect(name, spec):
    for how, other in repaired_cases(name, spec):
        (sample,) = cases.retyped(tq.Model(other.model).subgraphs[0], other.runs)
        result = tq.repair(other.model, samples=[list(sample.values())])
        assert [f for f in result.unrepaired if f.level == "violates"] == [], how
        assert any(change.finding.rule == how.split()[0] for change in result.changes), how
        fixed = replace(other, model=bytes(result))
        if name not in OF_POSITIVE and (name, how) != ("LSTM", "type"):
            does = cases.verdicts(fixed)
            if name in cases.WITHOUT_REFERENCE:
                does.pop("reference")
            assert set(does.values()) == {"runs"}, how
        if not (spec == "int16x8" and how in MISREAD):
            assert_within_the_effect(other, fixed, [change.finding.effect for change in result.changes], how)


def assert_within_the_effect(other, fixed, effects, how):
    """Where LiteRT's reference kernels run both models, and the inputs keep their parameters."""
    before, after = tq.Model(other.model), tq.Model(fixed.model)
    inputs = [[str(t.quantization) for t in model.inputs] for model in (before, after)]
    first, second = outputs(other), outputs(fixed)
    if None in effects or inputs[0] != inputs[1] or first is None or second is None:
        return
    for a, b in zip(before.outputs, after.outputs, strict=True):
        if is_plain(a):
            x, y = real(a, first[a.index]), real(b, second[b.index])
            steps = np.abs(x - y).max(initial=0) / a.quantization.scale[0]
            assert steps <= max(effects) + 1e-3, how


def convolution(weights_zero_point=0, low=-100, bias_factor=1, **options):
    """CONV_2D of int8 with 1x1 weights."""
    random = np.random.default_rng(0)
    builder = tq.ModelBuilder()
    x = builder.input("x", (1, 4, 4, 3), "int8", scale=0.5, zero_point=-3)
    scale = np.array([0.25, 0.5], np.float32)
    w = builder.constant(
        "w",
        random.integers(low, 101, (2, 1, 1, 3)).astype(np.int8),
        scale=scale,
        zero_point=[weights_zero_point] * 2,
    )
    b = builder.constant(
        "b", np.array([1000, -2000], np.int32), scale=np.float32(0.5) * scale * np.float32(bias_factor)
    )
    y = builder.tensor("y", (1, 4, 4, 2), "int8", scale=40.0, zero_point=0)
    builder.operator("CONV_2D", [x, w, b], [y], stride_w=1, stride_h=1, version=3, **options)
    builder.output(y)
    return builder.to_bytes()


def test_weights_whose_zero_point_fits_are_moved_exactly():
    model = convolution(weights_zero_point=20)
    (change,) = tq.repair(model).changes
    assert change.loss == 0
    before, after = tq.Model(model).tensors["w"], tq.Model(bytes(tq.repair(model))).tensors["w"]
    np.testing.assert_array_equal(after.data, before.data.astype(int) - 20)
    np.testing.assert_array_equal(after.dequantized(), before.dequantized())


def test_weights_whose_zero_point_does_not_fit_get_a_new_scale_of_stated_loss():
    model = convolution(weights_zero_point=90)
    result = tq.repair(model)
    weights = next(change for change in result.changes if change.finding.rule == "weights-zero-point")
    assert 0 < weights.loss <= 0.5
    before, after = tq.Model(model).tensors["w"], tq.Model(bytes(result)).tensors["w"]
    error = np.abs(before.dequantized() - after.dequantized())
    assert (error <= after.quantization.scale.reshape(2, 1, 1, 1) * (weights.loss + 1e-3)).all()
    assert tq.check(bytes(result)) == []


def test_biases_keep_their_real_values():
    model = convolution(bias_factor=29)
    result = tq.repair(model)
    (change,) = result.changes
    assert change.finding.rule == "bias-scale" and change.finding.effect > 0
    before, after = tq.Model(model).tensors["b"], tq.Model(bytes(result)).tensors["b"]
    np.testing.assert_allclose(after.dequantized(), before.dequantized(), rtol=1e-6)
    np.testing.assert_array_equal(after.data, [29000, -58000])


def test_a_bias_that_two_operators_share_is_repaired_for_each():
    editor = tq.edit(convolution())
    first = editor.operators[0]
    x = editor.main.add_tensor("x2", (1, 4, 4, 3), "int8", scale=[2.0], zero_point=[0])
    y = editor.main.add_tensor("y2", (1, 4, 4, 2), "int8", scale=[40.0], zero_point=[0])
    inputs = [x, first.inputs[1], first.inputs[2]]
    editor.main.add_operator("CONV_2D", inputs, [y], version=3, stride_w=1, stride_h=1)
    editor.inputs, editor.outputs = [*editor.inputs, x], [*editor.outputs, y]
    model = editor.to_bytes()
    assert [finding.operator for finding in tq.check(model)] == [1]
    result = tq.repair(model)
    assert tq.check(bytes(result)) == []
    before, after = tq.Model(model), tq.Model(bytes(result))
    np.testing.assert_array_equal(after.tensors["b"].data, before.tensors["b"].data)


def test_what_needs_no_repair_is_written_as_it_was():
    model = convolution()
    result = tq.repair(model)
    assert bytes(result) == model
    assert result.changes == [] and result.unrepaired == [] and str(result.changes) == "nothing to repair"


def test_an_add_without_a_scale_is_left_and_said():
    editor = tq.edit(cases.base("ADD", "int8").model)
    op = editor.operators[0]
    op.inputs[0].quantization = None
    result = tq.repair(editor.to_bytes())
    assert [finding.rule for finding in result.unrepaired] == ["scale-missing"]
    assert result.changes == []


def test_the_file_is_written(tmp_path):
    (tmp_path / "in.tflite").write_bytes(convolution(bias_factor=29))
    result = tq.repair(tmp_path / "in.tflite", tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").read_bytes() == bytes(result)
    with pytest.raises(OSError, match="the model itself would be overwritten"):
        tq.repair(tmp_path / "in.tflite", tmp_path / "in.tflite")
    tq.repair(tmp_path / "in.tflite", tmp_path / "in.tflite", in_place=True)
    assert tq.check(tmp_path / "in.tflite") == []


def test_ignored_rules_are_not_repaired():
    model = convolution(bias_factor=29)
    result = tq.repair(model, ignore=["bias-scale"])
    assert bytes(result) == model and result.unrepaired == []


def test_results_can_be_pickled():
    result = tq.repair(convolution(bias_factor=29))
    again = pickle.loads(pickle.dumps(result))
    assert again == result and again.changes == result.changes and again.unrepaired == []
    assert pickle.loads(pickle.dumps(tq.check(convolution(bias_factor=29)))) == tq.check(convolution(bias_factor=29))


def variable(assigned=(0.5, 0), read=(0.5, 0)):
    """x -> RESHAPE -> a, which a variable gets; y, which it gives."""
    b = tq.ModelBuilder()
    x = b.input("x", (2, 3), "int8", scale=0.5, zero_point=0)
    a, y = (
        b.tensor(name, (2, 3), "int8", scale=scale, zero_point=zero, quantized_dimension=np.ndim(scale))
        for name, (scale, zero) in {"a": assigned, "y": read}.items()
    )
    handle = b.tensor("handle", (), "RESOURCE")
    b.operator("VAR_HANDLE", [], [handle], shared_name="v")
    b.operator("RESHAPE", [x, b.constant("shape", np.array([2, 3], np.int32))], [a], new_shape=[2, 3])
    b.operator("ASSIGN_VARIABLE", [handle, a], [])
    b.operator("READ_VARIABLE", [handle], [y])
    b.output(y)
    return b.to_bytes()


def test_a_variable_is_read_with_the_parameters_that_it_was_written_with():
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    verdicts = {}
    for model in (variable(read=(0.75, 0)), bytes(tq.repair(variable(read=(0.75, 0))))):
        output = tq.Model(model).outputs[0].index
        asked = [(model, resolver, [{0: x}], {}, [output], False) for resolver in cases.KERNELS.values()]
        answers = list(oracle.ask("tensors", asked))
        verdicts[model] = dict(zip(cases.KERNELS, map(cases.verdict, answers), strict=True))
    (finding,) = tq.check(variable(read=(0.75, 0)))
    assert (finding.rule, finding.row, finding.tensor) == ("same-scale", "READ_VARIABLE", "y")
    before, after = verdicts.values()
    assert dict(finding.kernels) == before and set(after.values()) == {"runs"}
    np.testing.assert_array_equal(answers[0][0][output], np.floor(x * 0.5 / 0.75 + 0.5))
    assert tq.check(variable()) == []


@pytest.mark.parametrize("wrong", [(0.5, 200), ([0.5, 0.25, 0.125], [0, 0, 0])])
@pytest.mark.parametrize("side", ["assigned", "read"])
def test_variables_keep_the_parameters_that_one_operator_has_right(side, wrong):
    model = variable(**{side: wrong})
    result = tq.repair(model)
    assert result.unrepaired == [] and tq.check(bytes(result)) == []
    output = tq.Model(bytes(result)).outputs[0]
    assert (output.quantization.scale, output.quantization.zero_point) == (0.5, 0)
    asked = [
        (bytes(result), resolver, [{0: np.ones((2, 3), np.int8)}], {}, [output.index], False)
        for resolver in cases.KERNELS.values()
    ]
    assert all(isinstance(answer, list) for answer in oracle.ask("tensors", asked))


def test_parameters_of_activations_follow_from_their_operators_rows():
    for name in ("SOFTMAX", "RESHAPE"):
        made = cases.base(name, "int8").model
        right = str(tq.Model(made).outputs[0].quantization)
        for wrong in (None, {"scale": [0.0], "zero_point": [0]}):
            editor = tq.edit(made)
            editor.operators[0].outputs[0].quantization = wrong
            result = tq.repair(editor.to_bytes())
            rules = {change.finding.rule: change.loss for change in result.changes}
            assert (
                result.unrepaired == []
                and set(rules) - {"same-scale", "fixed-output"} <= set(LOST)
                and set(rules.values()) == {0}
            )
            assert str(tq.Model(bytes(result)).outputs[0].quantization) == right


def test_a_repair_that_calls_for_one_of_an_operator_of_its_own_is_told_once():
    """The QUANTIZE before RESHAPE gets the zero point that the type does not have."""
    result = tq.repair(variable(assigned=(0.5, 200)))
    operators = len(tq.Model(variable()).operators)
    assert result.changes and all(change.finding.operator < operators for change in result.changes)


def test_a_finding_that_is_left_says_why():
    b = tq.ModelBuilder()
    x = b.input("x", (1, 8), "int8", scale=0.05, zero_point=3)
    m = b.tensor("m", (1, 8), "int16", scale=2**-16, zero_point=-32768)
    y = b.tensor("y", (1, 8), "int8", scale=2**-8, zero_point=-128)
    b.operator("SOFTMAX", [x], [m], beta=1.0)
    b.operator("QUANTIZE", [m], [y])
    b.output(y)
    result = tq.repair(b.to_bytes())
    reasons = {finding.rule: finding.unrepairable for finding in result.unrepaired}
    assert "SOFTMAX of these types writes it with parameters of its own" in reasons["activation-symmetric"]
    assert all(reasons.values()) and all(
        finding.effect is not None or finding.unmeasured for finding in tq.check(b.to_bytes())
    )
    assert "it is left: SOFTMAX of these types" in str(result.unrepaired[-1])
    assert json.loads(json.dumps(result.unrepaired[-1].to_dict()))["unrepairable"]


def test_the_result_says_by_how_many_steps_the_models_outputs_change():
    """The effect of a finding is of its operator's; a later operator enlarges it."""
    b = tq.ModelBuilder()
    x, y = b.input("x", (1, 4), "int8", scale=0.1, zero_point=0), b.tensor("y", (1, 4), "int8", scale=1.0, zero_point=0)
    z = b.tensor("z", (1, 4), "int8", scale=0.25, zero_point=0)
    w = b.constant("w", np.eye(4, dtype=np.int8), scale=0.1, zero_point=0)
    bias = b.constant("bias", np.full(4, 100, np.int32), scale=0.03)
    b.operator("FULLY_CONNECTED", [x, w, bias], [y], version=4)
    b.operator("QUANTIZE", [y], [z])
    b.output(z)
    model = b.to_bytes()
    samples = [[np.full((1, 4), 10, np.int8)]]
    result = tq.repair(model, samples=iter(samples))
    assert [(change.finding.rule, change.finding.effect) for change in result.changes] == [("bias-scale", 2.0)]
    assert result.effect == 8.0 and result.unmeasured == ""
    assert tq.repair(bytes(result)).effect == 0
    outputs = []
    for data in (model, bytes(result)):
        question = (data, "BUILTIN_REF", [{0: samples[0][0]}], {}, [tq.Model(data).outputs[0].index])
        outputs.append(next(iter(oracle.ask("tensors", [question])))[0])
    (first,), (second,) = (values.values() for values in outputs)
    assert np.abs(first.astype(int) - second).max() == result.effect


def narrow(weights, zero, type_="int4"):
    """FULLY_CONNECTED of int8 with weights of 4 bits, a scale a channel."""
    b = tq.ModelBuilder()
    scale = np.array([0.5, 0.25], np.float32)
    x, y = (b.tensor(name, (1, size), "int8", scale=0.5, zero_point=0) for name, size in (("x", 4), ("y", 2)))
    w = b.constant("w", np.array(weights, np.int8), type_, scale=scale, zero_point=[zero] * 2)
    bias = b.constant("bias", np.array([5, -7], np.int32), scale=np.float32(0.5) * scale, zero_point=[0, 0])
    b.operator("FULLY_CONNECTED", [x, w, bias], [y])
    b.inputs, b.outputs = [x], [y]
    return b.to_bytes()


def runs_everywhere(model):
    x = {0: np.array([[3, -5, 7, 2]], np.int8)}
    output = tq.Model(bytes(model)).outputs[0].index
    asked = [(bytes(model), resolver, [x], {}, [output], False) for resolver in cases.KERNELS.values()]
    answers = oracle.ask("tensors", asked)
    return [answer[0][output] if isinstance(answer, list) else None for answer in answers]


def test_int4_weights_of_zero_point_8_are_moved_exactly_where_they_fit():
    """XNNPACK, which alone runs them, takes them for unsigned ones."""
    model = narrow([[1, 7, -1, -7], [2, 3, -2, -7]], 8)
    before = runs_everywhere(model)
    assert before[:2] == [None, None]
    result = tq.repair(model)
    (change,) = result.changes
    assert (change.finding.rule, change.loss, change.finding.effect, result.effect) == ("weights-zero-point", 0, 0, 0)
    weights = tq.Model(bytes(result)).tensors["w"]
    assert weights.type == tq.TensorType.INT4
    np.testing.assert_array_equal(weights.data, [[-7, -1, 7, 1], [-6, -5, 6, 1]])
    np.testing.assert_array_equal(runs_everywhere(result), [before[2]] * 3)


def test_int4_weights_that_do_not_fit_get_a_new_scale_in_their_channel():
    """-8 is unsigned 0 less 8."""
    result = tq.repair(narrow([[0, 7, -1, -8], [2, 3, -2, -7]], 8))
    (change,) = (change for change in result.changes if change.finding.rule == "weights-zero-point")
    assert 0 < change.loss <= 0.5 and result.unrepaired == []
    weights = tq.Model(bytes(result)).tensors["w"]
    np.testing.assert_array_equal(weights.quantization.scale, np.array([0.5 * 8 / 7, 0.25], np.float32))
    np.testing.assert_array_equal(weights.data[1], [-6, -5, 6, 1])
    error = np.abs(weights.dequantized()[0] - 0.5 * np.array([-8, -1, 7, 0])) / weights.quantization.scale[0]
    np.testing.assert_allclose(error.max(), change.loss, rtol=1e-5)
    assert all(value is not None for value in runs_everywhere(result))


def test_uint4_weights_become_int8_exactly():
    model = narrow(np.arange(8).reshape(2, 4) * 2, 8, "uint4")
    result = tq.repair(model)
    assert all(change.loss == 0 for change in result.changes) and result.unrepaired == []
    before, after = tq.Model(model).tensors["w"], tq.Model(bytes(result)).tensors["w"]
    assert after.type == tq.TensorType.INT8
    np.testing.assert_array_equal(after.dequantized(), before.dequantized())
    assert all(value is not None for value in runs_everywhere(result))
