# SPDX-License-Identifier: Apache-2.0
"""tq.check: findings, their form, specs, rules to ignore, effects; files of any kind."""

import json
import pathlib
import warnings
from collections import Counter

import checking_table
import damage
import generators
import misquantized
import numpy as np
import oracle
import pytest
import retyped
import specification_cases as cases
import zoo
from generators.draft import Draft

import tq
from tq.enums import by_name
from tq.specification.rules import RULES
from tq.specification.table import CALLING, FLOAT, INTEGER, SPECS, form_of

KEYS = ["level", "rule", "operator", "tensor", "found", "needed", "effect", "kernels"]


@pytest.fixture(scope="module")
def off():
    """CONV_2D whose bias is 100 times off."""
    return cases.broken(cases.base("CONV_2D", "int8"), "bias-scale").model


def test_a_finding_says_what_was_found_and_what_is_needed(off):
    (finding,) = tq.check(off)
    model = tq.Model(off)
    op = model.operators[finding.operator]
    weights, bias = op.inputs[1], op.inputs[2]
    assert (finding.level, finding.rule, finding.row, finding.subgraph) == ("violates", "bias-scale", "CONV_2D", 0)
    assert finding.tensor == bias.name
    assert "input scale * weight scale" in finding.needed and finding.found.startswith("scale ")
    needed = op.inputs[0].quantization.scale * weights.quantization.scale
    assert any(f"{scale:.9g}" in finding.needed for scale in needed)
    assert finding.effect > 0
    assert dict(finding.kernels) == {"reference": "runs", "optimized": "runs", "xnnpack": "runs"}


def test_findings_print_as_a_table_and_as_a_page(off):
    findings = tq.check(off)
    assert isinstance(findings, list) and isinstance(findings, tq.Findings) and isinstance(findings[0], tq.Finding)
    assert "bias-scale" in str(findings) and str(findings).endswith("1 violates, 0 unusual")
    assert "bias-scale" in str(findings[0]) and "bias-scale" in findings._repr_html_()
    assert findings.counts() == {"bias-scale": 1} and findings.violations == findings
    assert str(tq.check(cases.base("CONV_2D", "int8").model)) == "no findings"


def test_json_has_the_keys_of_a_finding(off):
    (finding,) = tq.check(off)
    (row,) = json.loads(json.dumps([finding.to_dict()]))
    assert list(row) == [*KEYS, "subgraph", "row"]
    assert all(row[key] == getattr(finding, key) for key in row)


@pytest.mark.parametrize("name", ["LSTM", "SVDF"])
def test_operators_with_states_have_an_effect(name):
    (finding,) = tq.check(cases.broken(cases.base(name, "int8"), "weights-zero-point").model)
    assert finding.effect is not None and finding.unmeasured == ""


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("weights-per-tensor", "there is no repair"),
        ("scale-value", "it cannot be repaired: nothing says what its scale is"),
        ("weights-type", "the operator does not run as it is: operator 0"),
    ],
)
def test_an_effect_that_is_not_known_has_a_reason(how, why):
    finding = next(f for f in tq.check(cases.broken(cases.base("CONV_2D", "int8"), how).model) if f.rule == how)
    assert finding.effect is None and finding.unmeasured.startswith(why)
    assert finding.to_dict()["unmeasured"] == finding.unmeasured and why in str(finding)


def test_a_model_that_the_reference_kernels_refuse_has_an_effect():
    """ELU has none."""
    (finding,) = tq.check(cases.broken(cases.base("ELU", "int8"), "zero-point-range").model)
    assert finding.kernels["reference"] == "refuses" and finding.effect is not None


@pytest.mark.parametrize(("type_", "other"), [("int8", "uint8"), ("int16", "int8")])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM"])
def test_a_tensor_of_another_type_that_is_read_twice(name, type_, other):
    b = tq.ModelBuilder()
    x = b.input("x", (1, 4), other, scale=0.5, zero_point=0)
    y = b.tensor("y", (1, 4), type_, scale=0.5, zero_point=0)
    b.operator(name, [x, x], [y])
    b.output(y)
    finding = next(f for f in tq.check(b.to_bytes()) if f.rule == "type")
    made = cases.Base(name, "", b.to_bytes(), 0, ({0: np.zeros((1, 4), other)},), {})
    assert dict(finding.kernels) == cases.verdicts(made)


def test_a_repair_leaves_parameters_that_a_kernel_writes_by():
    """SOFTMAX of int8 writes int16 values from -32768 on, which QUANTIZE makes INT32: micro's keyword models."""
    b = tq.ModelBuilder()
    x = b.input("x", (1, 4), "int8", scale=0.1, zero_point=0)
    y = b.tensor("y", (1, 4), "int16", scale=2.0**-16, zero_point=-32768)
    z = b.tensor("z", (1, 4), "int32", scale=2.0**-15, zero_point=0)
    b.operator("SOFTMAX", [x], [y], beta=1.0)
    b.operator("QUANTIZE", [y], [z])
    b.output(z)
    (finding,) = [f for f in tq.check(b.to_bytes()) if f.rule == "activation-symmetric"]
    made = cases.Base("", "", b.to_bytes(), 1, ({0: np.zeros((1, 4), np.int8)},), {})
    assert dict(finding.kernels) == cases.verdicts(made) and finding.operator == 1
    repaired = tq.repair(b.to_bytes())
    assert repaired.changes == [] and "activation-symmetric" in repaired.unrepaired.counts()


def test_an_input_of_an_unknown_type_leaves_the_effect_unknown():
    with tq.edit(zoo.MODELS["conv"]) as e:
        e.tensors[0].store("type", -4)
        e.tensors[3].quantization.zero_point = [300]
        model = e.to_bytes()
    assert [item.rule for item in tq.check(model)]


def test_samples_decide_the_effect(off):
    model = tq.Model(off)
    (tensor,) = model.inputs
    zero = np.full(tensor.shape, tensor.quantization.zero_point[0], np.int8)
    effects = [tq.check(off, samples=[zero])[0].effect, tq.check(off)[0].effect]
    assert all(effect > 0 for effect in effects)
    with pytest.raises(ValueError, match="is of int8, not float64"):
        tq.check(off, samples=[np.zeros(3, np.float64)])


def test_rules_can_be_ignored(off):
    assert tq.check(off, ignore=["bias-scale"]) == []
    assert tq.check(off, ignore="bias-scale") == []
    with pytest.raises(ValueError, match=r"there is no rule 'bias-scael'.*did you mean 'bias-scale'"):
        tq.check(off, ignore=["bias-scael"])


def test_a_spec_that_all_operators_must_mean(off):
    model = cases.base("ADD", "uint8").model
    assert tq.check(model, "uint8") == tq.check(model) == []
    found = tq.check(model, "int8")
    assert [(f.level, f.rule, f.found, f.needed) for f in found] == [
        ("violates", "spec", "uint8 activations", "int8 activations")
    ]
    with pytest.raises(ValueError, match=r"there is no spec 'int4'.*int8"):
        tq.check(off, "int4")


def test_float_operators_are_left_alone_but_unusual_under_a_spec():
    builder = tq.ModelBuilder()
    x, y = builder.input("x", (2, 2)), builder.tensor("y", (2, 2))
    builder.operator("RELU", [x], [y])
    builder.output(y)
    model = builder.to_bytes()
    assert tq.check(model) == []
    assert [(f.level, f.rule) for f in tq.check(model, "int8")] == [("unusual", "spec")]


def quantized(name, type_="int8", **options):
    """An operator of one quantized input and output."""
    builder = tq.ModelBuilder()
    x = builder.input("x", (2, 2), type_, scale=0.5, zero_point=0)
    y = builder.tensor("y", (2, 2), type_, scale=0.5, zero_point=0)
    builder.operator(name, [x], [y], **options)
    builder.output(y)
    return builder.to_bytes()


def test_an_operator_without_a_row_says_so():
    """The list of operators is the schema's."""
    special = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
    for name in set(by_name("BuiltinOperator").__members__) - special:
        has_row = form_of(name, SPECS["int8"]) is not None or name in (*FLOAT, *CALLING)
        assert ("no-row" in {finding.rule for finding in tq.check(quantized(name))}) is not has_row, name


def test_litert_refuses_a_product_of_uint8_matrices():
    m = Draft(3)
    m.fixed = True
    known = {"scale": 0.1, "zero_point": 3}
    x, y = m.input("uint8", [2, 3, 4], **known), m.input("uint8", [2, 4, 3], **known)
    m.operator("BATCH_MATMUL", [x, y], [m.output("uint8", [2, 3, 3], **known)])
    (found,) = tq.check(m.case().model)
    assert (found.rule, set(dict(found.kernels).values())) == ("no-row", {"refuses"})


def quantized_as(name, kind, spec):
    """A model of a generator's row, whose tensors of its first type are quantized values of a spec's type; or None."""
    for source in ("int8", "uint8", "int16", "float32"):
        draft = retyped.draw(name, kind, 1)
        draft.fixed = True
        if source in retyped.sources(draft) and retyped.retype(draft, source, SPECS[spec].type, True):
            return draft.case(name, kind, 1, 0)
    return None


# Operators without a row: {answer of all three kernel sets: operators by specification}.
WITHOUT_ROW = {
    "runs": {"uint8": "DILATE EMBEDDING_LOOKUP FILL", "int16x8": "GREATER LESS", "int8": "STABLEHLO_ADD"},
    "refuses": {
        "uint8": "ABS BATCH_MATMUL EXP LOG NEG REDUCE_PROD SQRT SQUARED_DIFFERENCE FLOOR SIN",
        "int16x8": "ARG_MAX DEPTH_TO_SPACE HARD_SWISH L2_NORMALIZATION LOG_SOFTMAX RELU_0_TO_1 SCATTER_ND",
        "int8": "REVERSE_SEQUENCE SQUARE ADD_N CUMSUM L2_POOL_2D POW",
    },
    "dies": {"int8": "FAKE_QUANT", "uint8": "FAKE_QUANT"},
}


@pytest.mark.parametrize("does", WITHOUT_ROW)
def test_litert_does_with_operators_without_a_row_what_the_finding_says(does):
    for spec, names in WITHOUT_ROW[does].items():
        for name in names.split():
            drawn = filter(None, (quantized_as(name, kind, spec) for _, kind in generators.rows(name)))
            each = ((case, f) for case in drawn for f in tq.check(case.model) if f.rule == "no-row")
            case, found = next(each)
            made = cases.Base(name, spec, case.model, 0, tuple(case.runs[:1]), case.shapes)
            assert dict(found.kernels) == cases.verdicts(made) == dict.fromkeys(cases.KERNELS, does), (name, spec)


def test_the_effect_of_scales_that_litert_takes_for_0(tmp_path):
    """BATCH_MATMUL of a constant with a scale for each column: LiteRT gives zeros, and tq each column's product."""
    m = Draft(3)
    m.fixed = True
    x = m.input("int16", [2, 3, 4], scale=0.001, zero_point=0)
    columns = {"scale": [0.01, 0.02, 0.03, 0.04, 0.05], "zero_point": [0] * 5, "quantized_dimension": 2}
    w = m.constant("int8", m.integers("int8", [2, 4, 5], -127, 127), **columns)
    m.operator("BATCH_MATMUL", [x, w], [m.output("int16", [2, 3, 5], scale=0.003, zero_point=0)], version=4)
    case = m.case()
    (sample,) = case.runs
    (found,) = tq.check(case.model, samples=[list(sample.values())])
    results = []
    for model in (case.model, bytes(tq.repair(case.model))):
        (answer,) = oracle.ask("tensors", [(model, "BUILTIN", case.runs, {}, [2], False)])
        results.append(answer[0][2].astype(np.int64))
    assert found.effect == np.abs(results[0] - results[1]).max() > 10000


def test_a_huge_scale_gives_no_warning_and_weights_of_int16_no_error():
    """int16 weights of an SVDF with a zero point cannot be written anew."""
    for operator, change, place in (
        ("FULLY_CONNECTED", "a huge scale", "input 0"),
        ("SVDF", "another zero point", "input 2"),
    ):
        broken = next(b for b in misquantized.cases(operator, "int8", 1, [change]) if b.place == place)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert tq.check(broken.case.model)


def test_rows_of_the_table_are_operators_of_the_schema():
    assert set(INTEGER) | set(FLOAT) - {"NumericVerify"} <= set(by_name("BuiltinOperator").__members__)


def test_plain_integers_are_no_quantized_values():
    builder = tq.ModelBuilder()
    x, y = builder.input("x", (2, 2), "int8"), builder.tensor("y", (4,), "int8")
    builder.operator("RESHAPE", [x, builder.constant("shape", np.array([4], np.int32))], [y])
    builder.output(y)
    assert tq.check(builder.to_bytes()) == []


def test_per_tensor_weights_of_convolutions_are_unusual():
    made = cases.broken(cases.base("CONV_2D", "int8"), "weights-per-tensor")
    assert [(f.level, f.rule) for f in tq.check(made.model)] == [("unusual", "weights-per-tensor")]


def test_what_tq_writes_breaks_nothing():
    from tq.cli.quantize import DEMO

    assert tq.check(DEMO) == []


def test_damaged_files_are_checked_and_repaired_or_refused():
    bases = [cases.broken(cases.base("CONV_2D", "int8"), "weights-zero-point"), cases.base("CONCATENATION", "int8")]
    opened = 0
    for seed in range(400):
        data = damage.damaged(bases[seed % 2].model, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                model = tq.Model(data)
                tq.check(model)
                tq.repair(model)
                opened += 1
            except tq.ModelError:
                continue
    assert opened > 100


@pytest.mark.corpus
def test_files_of_tflite_converter_violate_nothing(corpus):
    made = [path for path in corpus if path.parent.name == "keras"]
    assert len(made) > 5
    assert {path.name: list(tq.check(path).violations) for path in made} == {path.name: [] for path in made}


def test_specs_are_named_alike():
    from tq.cli.arguments import SPECS as names

    assert set(names) == set(SPECS)
    assert len(RULES) > 20


def test_the_document_is_made_of_the_rows():
    path = pathlib.Path(__file__).parents[2] / "docs" / "checking.md"
    command = "python tests/support/checking_table.py > docs/checking.md"
    assert path.read_text("utf-8") == checking_table.document(), command


@pytest.mark.corpus
def test_the_document_counts_what_real_models_break(corpus):
    found, files = Counter(), Counter()
    for path in corpus:
        keys = Counter((finding.level, finding.rule) for finding in tq.check(path))
        found += keys
        files.update(keys.keys())
    if len(corpus) == 769:
        assert {key: (found[key], files[key]) for key in found} == {
            key: counts[:2] for key, counts in checking_table.COUNTS.items()
        }


def test_a_loop_without_end_ends_the_measurement():
    """WHILE whose condition always holds, beside an operator that breaks a rule."""
    builder = tq.ModelBuilder()
    x = builder.input("x", (2, 2), "int8", scale=0.5, zero_point=0)
    y = builder.tensor("y", (2, 2), "int8", scale=0.25, zero_point=0)
    made = builder.tensor("z", (), "int32")
    one = builder.constant("one", np.int32(1))
    builder.operator("RESHAPE", [x, builder.constant("shape", np.array([2, 2], np.int32))], [y])
    builder.operator("WHILE", [one], [made], cond_subgraph_index=1, body_subgraph_index=2)
    builder.output(y)
    builder.output(made)
    for name in ("cond", "body"):
        graph = builder.add_subgraph(name)
        start = graph.add_tensor("i", (), "int32")
        end = graph.add_tensor("end", (), "bool" if name == "cond" else "int32")
        inputs = [start, start]
        graph.add_operator("GREATER_EQUAL" if name == "cond" else "MINIMUM", inputs, [end])
        graph.inputs, graph.outputs = [start], [end]
    (finding,) = tq.check(builder.to_bytes())
    assert finding.rule == "same-scale" and finding.effect > 0
