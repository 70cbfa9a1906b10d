# SPDX-License-Identifier: Apache-2.0
"""tq.plan_quantization, and the passes of the quantizer alone."""

import numpy as np
import oracle
import pytest
from test_quantize_model import RESOLVERS, normal
from test_quantize_static import draws, variable

import tq
from tq.editing.editor import Editor
from tq.editing.graph import SubgraphPart
from tq.quantization.agreement import choose_all
from tq.quantization.boundaries import boundaries
from tq.quantization.choice import start
from tq.quantization.eligible import reason_against
from tq.quantization.groups import group
from tq.quantization.options import Options, check
from tq.quantization.parameters import choose
from tq.quantization.ranges import Ranges, main_ran
from tq.quantization.recipes import RECIPES, Rule
from tq.quantization.view import View

SHAPE = (1, 4, 4, 8)


def mixed():
    """x -> CONV_2D -> RESHAPE -> LOGISTIC -> y; CONV_2D -> COS -> z, which stays float."""
    b = tq.ModelBuilder()
    x, h, flat, y, z = (
        b.tensor(name, SHAPE if name != "flat" and name != "y" else (1, 128)) for name in ["x", "h", "flat", "y", "z"]
    )
    b.graph.inputs = [x]
    b.operator(
        "CONV_2D", [x, b.constant("w", normal(8, 1, 1, 8)), b.constant("b", normal(8))], [h], stride_w=1, stride_h=1
    )
    b.operator("RESHAPE", [h, b.constant("shape", np.array([1, 128], np.int32))], [flat])
    b.operator("LOGISTIC", [flat], [y])
    b.operator("COS", [h], [z])
    b.output(y, z)
    return b.to_bytes()


def view_of(data, type_="int8"):
    editor = Editor(data)
    calibration = tq.calibrate(data, draws(data), progress=False)
    ranges = Ranges(editor.main)
    ranges.calibrate(calibration, main_ran(calibration))
    return editor, View.of(editor.main, ranges, type_)


def planned(data, recipe="int8", **options):
    if "calibration" not in options and recipe in ("int8", "int16x8", "int4", "int16x4", "uint8"):
        options["calibration"] = draws(data)
    return tq.plan_quantization(data, recipe, **options)


# ---- the passes ----


def test_eligibility_has_a_reason_for_each_operator_that_stays_float():
    editor, view = view_of(mixed())
    assert [reason_against(view, op) for op in editor.operators] == ["", "", "", "no int8 kernel computes it"]


def test_groups_join_what_operators_share():
    editor, view = view_of(mixed())
    groups = group(view, list(editor.operators)[:3])
    members = {frozenset(tensor.name for tensor in tensors) for tensors in groups.members().values()}
    assert members == {frozenset("x"), frozenset(("h", "flat")), frozenset("y")}


def test_parameters_are_the_ranges_of_groups_or_the_kernels():
    editor, view = view_of(mixed())
    operators = list(editor.operators)[:3]
    parameters = choose(view, operators, group(view, operators), {})
    low, high = view.ranges.of(editor.tensors["h"])
    expected = tq.choose_quantization_params(low, high, "int8", rule="mlir")
    assert parameters.of(editor.tensors["h"])[:2] == (np.float32(expected.scale), expected.zero_point)
    assert parameters.of(editor.tensors["y"])[:2] == (np.float32(1 / 256), -128)


def test_a_choice_leaves_operators_alone_that_only_move_data():
    editor, view = view_of(mixed())
    choice = start(view, [editor.operators[1]])
    assert not choice.operators and choice.reasons[editor.operators[1]].startswith("it only moves data")


def test_boundaries_stand_where_floats_and_integers_meet():
    editor, view = view_of(mixed())
    found = {item.tensor.name: item for item in boundaries(start(view, editor.operators))}
    assert found["x"].quantize and not found["flat"].dequantize
    assert found["h"].dequantize and not found["h"].is_output and found["y"].is_output


def test_passes_change_nothing():
    data = mixed()
    editor, view = view_of(data)
    choice = start(view, editor.operators)
    boundaries(choice)
    graph = editor.main
    choose_all([graph], {graph: list(graph.operators)}, {graph: "int8"}, {graph: view.ranges}, [0])
    assert editor.to_bytes() == Editor(data).to_bytes()


def test_options_are_frozen_and_checked():
    options = check(Options(RECIPES["int8"], calibration=[]))
    with pytest.raises(AttributeError):
        options.io = "int8"
    with pytest.raises(ValueError, match="io is 'int4'"):
        check(Options(RECIPES["int8"], io="int4"))


# ---- the plan ----


def test_a_plan_tells_of_each_operator_what_it_becomes_and_why():
    rows = {row.name: row for row in planned(mixed()).operators}
    assert [rows[name].becomes for name in ("CONV_2D", "RESHAPE", "LOGISTIC", "COS")] == ["int8"] * 3 + ["float32"]
    assert rows["COS"].why == "no int8 kernel computes it"
    rows = {row.name: row for row in planned(mixed(), rules=[Rule("float", operator="CONV_2D")]).operators}
    assert rows["CONV_2D"].why == "a rule leaves it float"
    assert [row.name for row in planned(mixed()).floats] == ["COS"]


def test_a_plans_groups_are_the_models_parameters_with_their_source():
    plan = planned(mixed(), overrides={"x": (-2.0, 2.0)})
    model = tq.Model(tq.quantize_model(mixed(), "int8", calibration=draws(mixed()), overrides={"x": (-2.0, 2.0)}))
    written = {tensor.name: tensor.quantization for tensor in model.tensors}
    for row in plan.groups:
        for name in row.tensors:
            found = written[name if written[name] else f"{name}_int8"]
            assert (row.scale, row.zero_point) == (float(found.scale[0]), found.zero_point[0])
    assert {row.tensors: row.source for row in plan.groups} == {
        ("x",): "override",
        ("h", "flat"): "calibration",
        ("y",): "kernel",
    }


def test_a_plans_conversions_are_the_models_operators():
    for data in (mixed(), variable()):
        names = [row.operator for row in planned(data).conversions]
        model = tq.Model(tq.quantize_model(data, "int8", calibration=draws(data)))
        written = [op.name for op in model.operators if op.name in ("QUANTIZE", "DEQUANTIZE")]
        assert sorted(names) == sorted(written)


def test_a_plan_tells_constants_and_constraints():
    rows = {row.name: row for row in planned(mixed()).constants}
    assert rows["w"].becomes == "int8 along axis 0" and rows["b"].becomes == "int32" and rows["w"].readers == (0,)
    (row,) = planned(variable()).constraints
    assert (row.name, row.becomes) == ("variable state", "int8")
    (row,) = planned(mixed(), "weight_only_int8", min_elements=0).constants
    assert row.becomes == "int8 along axis 0 behind DEQUANTIZE"


def test_a_plan_prints_and_changes_no_model(tmp_path):
    (tmp_path / "m.tflite").write_bytes(mixed())
    plan = planned(tmp_path / "m.tflite", calibration=draws(mixed()))
    assert (tmp_path / "m.tflite").read_bytes() == mixed()
    assert repr(plan) == "<tq quantization plan: int8, 3 of 4 operators quantized>"
    assert "COS" in str(plan) and "no int8 kernel computes it" in str(plan)
    assert "no int8 kernel computes it" in plan._repr_html_()


def test_a_plan_of_two_types_tells_both():
    plan = planned(mixed(), rules=[Rule("int16x8", operator="LOGISTIC")])
    assert {row.type for row in plan.groups} == {"int8", "int16"}


def test_a_plan_refuses_what_quantize_model_refuses():
    with pytest.raises(ValueError, match="needs calibration="):
        tq.plan_quantization(mixed())
    with pytest.raises(ValueError, match="block_size is given and has no effect"):
        planned(mixed(), block_size=64)


# ---- the edit API that the quantizer uses ----


def test_inputs_are_set_one_by_one():
    editor = Editor(mixed())
    op, extra = editor.operators[3], editor.constant("extra", np.zeros(3, np.float32))
    op.set_input(2, extra)
    assert op.inputs == (editor.tensors["h"], None, extra)
    op.set_input(2, None)
    assert op.inputs == (editor.tensors["h"], None, None)
    with pytest.raises(ValueError, match="no input -1"):
        op.set_input(-1, extra)
    op.replace_inputs({editor.tensors["h"]: editor.tensors["x"]})
    assert op.inputs[0] == editor.tensors["x"]


def test_operators_are_inserted_beside_others():
    editor = Editor(mixed())
    graph: SubgraphPart = editor.main
    made = graph.add_tensor("made", SHAPE)
    first = graph.insert_before(graph.operators[3], "SIN", [graph.tensors["h"]], [made])
    last = graph.insert_after(graph.operators[0], "SIN", [graph.tensors["h"]], [made])
    assert (first.index, last.index) == (4, 1)


def test_an_operator_becomes_another():
    editor = Editor(mixed())
    op = editor.operators[3]
    op.become("MUL", [editor.tensors["h"], editor.tensors["h"]], {"fused_activation_function": "RELU"})
    assert (op.name, op.version, len(op.inputs)) == ("MUL", 1, 2)
    assert op.options["fused_activation_function"].name == "RELU"
    op.become("ADD")
    assert editor.to_model().operators[3].name == "ADD"
    with pytest.raises(ValueError, match="the schema has no operator 'NONE_SUCH'"):
        op.become("NONE_SUCH")


def test_versions_are_shared():
    editor = Editor(mixed())
    before = len(editor.stored("operator_codes"))
    editor.operators[0].share_version(3)
    assert editor.operators[0].version == 3 and len(editor.stored("operator_codes")) == before + 1
    editor.prune()
    assert len(editor.stored("operator_codes")) == before


def test_ends_are_replaced_in_signatures_too():
    editor = Editor(mixed())
    editor.add_signature("serving_default", {"x": "x"}, {"out": "y", "other": "z"})
    editor.main.replace_ends("outputs", {editor.tensors["y"]: editor.tensors["flat"]})
    assert [tensor.name for tensor in editor.outputs] == ["flat", "z"]
    assert editor.signatures[0].outputs["out"].name == "flat"


def test_unused_tensors_go_and_others_stay():
    editor = Editor(mixed())
    spare = editor.main.add_tensor("spare", SHAPE)
    editor.main.remove_unused([spare, editor.tensors["h"]])
    assert "spare" not in [tensor.name for tensor in editor.tensors] and editor.tensors["h"].index >= 0


@pytest.mark.parametrize(("recipe", "type_"), [("int4", "int8"), ("int16x4", "int16")])
def test_the_plan_says_why_weights_are_no_int4_ones(recipe, type_):
    """LiteRT's reference kernels refuse them in a DEPTHWISE_CONV_2D; the others run them."""
    b = tq.ModelBuilder()
    x, y, z = b.input("x", [1, 4, 4, 4]), b.tensor("y", [1, 4, 4, 4]), b.tensor("z", [1, 4, 4, 2])
    options = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    w, v = np.ones((1, 3, 3, 4), np.float32), np.ones((2, 1, 1, 4), np.float32)
    first = [x, b.constant("w", w), b.constant("zeros", np.zeros(4, np.float32))]
    b.operator("DEPTHWISE_CONV_2D", first, [y], depth_multiplier=1, **options)
    b.operator("CONV_2D", [y, b.constant("v", v), b.constant("bias", np.zeros(2, np.float32))], [z], **options)
    b.output(z)
    given = {"default_ranges": (-1.0, 1.0)}
    depthwise, plain = tq.plan_quantization(b.to_bytes(), recipe, **given).operators
    assert depthwise.becomes == plain.becomes == type_ and plain.why == ""
    assert depthwise.why == "its weights are int8: one of LiteRT's kernel sets or more take no int4 ones"
    made = tq.quantize_model(b.to_bytes(), recipe, **given)
    types = {t.name: t.type.name for t in tq.Model(made).tensors}
    assert types["w"] == "INT8" and types["v"] == "INT4"

    editor = tq.edit(made)  # so it would be refused
    w = editor.tensors["w"]
    values = np.clip(w.data, -7, 7)
    w.type = "int4"
    w.data = values
    editor.operators[1].version = 7
    feed = [{tq.Model(made).inputs[0].index: np.zeros((1, 4, 4, 4), np.float32)}]
    asked = [(editor.to_bytes(), kernels, feed, {}, [tq.Model(made).outputs[0].index]) for kernels in RESOLVERS]
    does = [isinstance(answer, list) for answer in oracle.ask("tensors", asked)]
    assert dict(zip(RESOLVERS, does, strict=True)) == {name: name != "BUILTIN_REF" for name in RESOLVERS}
