# SPDX-License-Identifier: Apache-2.0
"""The Plan of the quantizer: its passes change nothing, it is frozen, and the rewriter writes what it says."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from test_quantize_model import normal
from test_quantize_plan import SHAPE, mixed
from test_quantize_static import draws, lstm, variable

import tq
from tq.editing.editor import Editor
from tq.quantization import passes
from tq.quantization.constants import constants, products
from tq.quantization.options import Options, check
from tq.quantization.prepare import prepare
from tq.quantization.recipes import RECIPES, Rule
from tq.quantization.records import ComputedWeights, Constant
from tq.quantization.rewrite import rewrite

CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")


def arithmetic():
    """x -> FAKE_QUANT -> NEG -> DIV by a constant -> SQUARE -> SUM -> y, all of which are written as others."""
    b = tq.ModelBuilder()
    x, clamped, n, d, s = (b.tensor(name, SHAPE) for name in ["x", "clamped", "n", "d", "s"])
    y = b.tensor("y", (1, 4, 4, 1))
    b.graph.inputs = [x]
    b.operator("FAKE_QUANT", [x], [clamped], min=-1.0, max=1.0, num_bits=8)
    b.operator("NEG", [clamped], [n])
    b.operator("DIV", [n, b.constant("divisor", np.full(8, 3, np.float32))], [d])
    b.operator("SQUARE", [d], [s])
    b.operator("SUM", [s, b.constant("axes", np.array([3], np.int32))], [y], keep_dims=True)
    b.output(y)
    return b.to_bytes()


def computed():
    """x, w -> FULLY_CONNECTED -> y: its weights are no constant."""
    b = tq.ModelBuilder()
    x, w, y = b.input("x", [2, 8]), b.input("w", [4, 8]), b.tensor("y", [2, 4])
    b.operator("FULLY_CONNECTED", [x, w], [y])
    b.output(y)
    return b.to_bytes()


CASES = {
    "int8": {},
    "int16x8": {},
    "uint8": {},
    "int4": {},
    "dynamic_int8": {"min_elements": 0},
    "weight_only_int4": {"min_elements": 0},
    "float16": {},
    "two types": {"rules": (Rule("int16x8", index=(2, 3)),)},
}


def options_of(data, case):
    recipe = RECIPES["int8" if case == "two types" else case]
    calibration = draws(data) if recipe.form == "static" else None
    return check(Options(recipe, calibration=calibration, **CASES[case]))


def planned(data, case):
    editor, options = Editor(data), options_of(data, case)
    prepared = prepare(editor, tq.Model(data), options)
    return editor, prepared, passes.plan(prepared)


STATIC = ("int8", "int16x8", "uint8", "int4")
WEIGHTS = ("dynamic_int8", "weight_only_int4")
# {model: the cases that quantize something in it}.
FOUND = {
    mixed: CASES,
    arithmetic: (*STATIC, "two types"),
    computed: ("int8", "int16x8", "int4"),
    lstm: ("int8", "int4", *WEIGHTS, "float16"),
    variable: STATIC,
}
PAIRS = [pytest.param(make(), case, id=f"{make.__name__}-{case}") for make, cases in FOUND.items() for case in cases]


# ---- passes ----


@pytest.mark.parametrize(("data", "case"), PAIRS)
def test_planning_changes_no_byte_of_the_model_and_gives_the_same_twice(data, case):
    editor, options = Editor(data), options_of(data, case)
    prepared = prepare(editor, tq.Model(data), options)
    before = editor.to_bytes()
    first, second = passes.plan(prepared), passes.plan(prepared)
    assert editor.to_bytes() == before
    assert str(first) == str(second)


def test_the_pass_of_constants_gives_weights_bias_and_their_parameters():
    _, _, plan = planned(mixed(), "int8")
    ((weights, bias),) = [[row for row in plan.subgraphs[0].activations[0].records if isinstance(row, Constant)]]
    expected = tq.quantize_weights(normal(8, 1, 1, 8), 0, "int8")
    np.testing.assert_array_equal(weights.values, expected.codes)
    np.testing.assert_array_equal(weights.scale, expected.scale)
    assert (weights.input, weights.type, str(weights)) == (1, "int8", "int8 along axis 0")
    assert (bias.input, bias.type, bias.values.dtype) == (2, "int32", np.int32)
    choice = plan.subgraphs[0].activations[0].choice
    (per_tensor, _) = constants(choice, per_axis=False)
    assert per_tensor.scale.shape == (1,) and str(per_tensor) == "int8"


def test_products_and_their_factors_are_planned():
    _, _, plan = planned(arithmetic(), "int8")
    (activations,) = plan.subgraphs[0].activations
    factors = [row.factor for row in products(activations.choice).values()]
    assert [None if row is None else float(np.ravel(row)[0]) for row in factors] == [-1.0, np.float32(1) / 3, None]
    rows = {row.name: row for row in activations.records if row.name}
    assert set(rows) == {"n_minus", "divisor_reciprocal"} and all(row.tensor is None for row in rows.values())


def test_computed_weights_of_int16_operators_are_planned():
    _, _, plan = planned(computed(), "int16x8")
    (record,) = [row for row in plan.subgraphs[0].activations[0].records if isinstance(row, ComputedWeights)]
    assert (record.tensor.name, record.input, record.magnitude) == ("w", 1, 1.0)
    assert sorted(row.tensor for row in plan.tables.conversions) == ["w", "x", "y"]


# ---- the plan ----


def test_a_plan_is_frozen_in_all_its_parts():
    _, _, plan = planned(mixed(), "int8")
    (activations,) = plan.subgraphs[0].activations
    for item in (plan, plan.subgraphs[0], activations, activations.choice, activations.boundaries[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(item, dataclasses.fields(item)[0].name, None)
    maps = [plan.constraints, plan.subgraphs[0].joined, activations.products, activations.options]
    for item in (*maps, activations.choice.operators, activations.choice.reasons):
        with pytest.raises(TypeError, match="does not support item assignment"):
            item[None] = None
    with pytest.raises(ValueError, match="read-only"):
        activations.records[0].values[:] = 0


def test_a_plan_prints_as_tq_plan_quantization_does():
    _, _, plan = planned(mixed(), "int8")
    public = tq.plan_quantization(mixed(), "int8", calibration=draws(mixed()))
    assert (str(plan), repr(plan), plan._repr_html_()) == (str(public), repr(public), public._repr_html_())


@pytest.mark.parametrize(("data", "case"), PAIRS)
def test_a_plans_conversions_are_all_that_the_rewriter_inserts(data, case):
    editor, prepared, plan = planned(data, case)
    old = set(editor.operators)
    rewrite(editor, plan)
    inserted = sorted(op.name for op in editor.operators if op not in old and op.name in CONVERSIONS)
    if prepared.options.is_static:
        assert inserted == sorted(row.operator for row in plan.tables.conversions)


def test_between_two_integer_types_stands_one_quantize():
    _, _, plan = planned(mixed(), "two types")
    (subgraph,) = plan.subgraphs
    assert {tensor.name: is_float_too for tensor, is_float_too in subgraph.joined.items()} == {"flat": False}
    assert [row.operator for row in plan.tables.conversions if row.tensor == "flat"] == ["QUANTIZE"]


def test_operators_of_another_integer_type_do_not_widen_a_range():
    """Operators of int16 read the tensor behind a DEQUANTIZE, where operators of int8 do not."""
    b = tq.ModelBuilder()
    x, h, y, z = b.input("x", SHAPE), b.tensor("h", SHAPE), b.tensor("y", SHAPE), b.tensor("z", SHAPE)
    b.operator("LEAKY_RELU", [x], [h], alpha=0.5)
    b.operator("RELU", [h], [y])
    b.operator("LEAKY_RELU", [h], [z], alpha=0.25)
    b.output(y, z)
    model = b.to_bytes()
    plan = tq.plan_quantization(model, calibration=draws(model), rules=[Rule("int16x8", operator="RELU")])
    lows = {row.type: row.low for row in plan.groups if row.tensors == ("h",)}
    assert lows == {"int8": -0.5, "int16": 0.0}


# ---- the rewriter ----


@pytest.mark.parametrize(("data", "case"), PAIRS)
def test_the_rewritten_model_is_the_quantized_one(data, case):
    editor, prepared, plan = planned(data, case)
    rewrite(editor, plan)
    editor.prune_operator_codes()
    given = {"calibration": prepared.options.calibration} if prepared.options.is_static else {}
    assert editor.to_bytes() == tq.quantize_model(data, prepared.options.recipe.name, **given, **CASES[case])


def test_the_rewriter_writes_another_plan_as_it_says():
    editor, _, plan = planned(mixed(), "int8")
    (subgraph,) = plan.subgraphs
    (activations,) = subgraph.activations
    weights = dataclasses.replace(activations.records[0], values=np.full((8, 1, 1, 8), 7, np.int8))
    changed = dataclasses.replace(activations, records=(weights, *activations.records[1:]))
    rewrite(editor, dataclasses.replace(plan, subgraphs=(dataclasses.replace(subgraph, activations=(changed,)),)))
    assert (editor.tensors["w"].data == 7).all()


def test_the_rewriter_changes_nothing_by_an_empty_plan():
    editor, _, plan = planned(mixed(), "int8")
    before = editor.to_bytes()
    empty = dataclasses.replace(plan.subgraphs[0], uses=(), activations=(), unjoined=())
    rewrite(editor, dataclasses.replace(plan, subgraphs=(empty,)))
    assert editor.to_bytes() == before


@pytest.mark.parametrize("name", ["rewrite.py", "rewrite_weights.py"])
def test_the_rewriter_knows_neither_ranges_nor_rules_nor_options(name):
    path = Path(passes.__file__).with_name(name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    deciding = "agreement choice constants constraints eligible groups options parameters passes prepare rules view"
    assert found & {f"tq.quantization.{item}" for item in deciding.split()} == set()
    assert not {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names} & {
        "_core",
        "Ranges",
        "Grids",
    }
