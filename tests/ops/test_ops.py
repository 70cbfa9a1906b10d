# SPDX-License-Identifier: Apache-2.0
"""Every operator against LiteRT's reference kernels, on random valid models of it."""

from importlib.util import find_spec
from pathlib import Path

import corpus_runs
import differential
import generators
import oracle
import pytest

import tq

ROWS = generators.rows()
QUICK, SLOW = 30, 1000  # cases a row


def operators():
    """The names in tq's table of operators."""
    builtin, custom = tq._core.operators()
    return {*builtin, *custom}


def skip_unknown(operator, kind):
    if operator not in operators() and operator not in generators.GRAPHS:
        pytest.skip("not in tq's table")
    if generators.RESOLVERS[operator, kind] == generators.MICRO and not find_spec("tflite_micro"):
        pytest.skip("tflite_micro is not installed")


def report(outcome):
    texts = [differential.explain(case, text, full=k == 0) for k, (case, text) in enumerate(outcome.mismatches[:10])]
    return "\n".join([*reversed(texts), str(outcome)])


def check(operator, kind, cases, seed):
    outcome = differential.compare(operator, kind, cases, seed)
    if outcome.mismatches:
        pytest.fail(report(outcome), pytrace=False)
    assert outcome.accepted >= 0.8 * cases, f"{outcome}: the generator makes too few valid models"


def test_every_operator_has_a_generator():
    missing = operators() - {operator for operator, _ in ROWS}
    assert not missing, f"tests/support/generators has nothing for {sorted(missing)}"


@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_agrees(operator, kind):
    skip_unknown(operator, kind)
    check(operator, kind, QUICK, seed=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_agrees_thousands_of_times(operator, kind):
    skip_unknown(operator, kind)
    check(operator, kind, SLOW, seed=2)


def test_a_seed_makes_the_same_case_again():
    one, two, other = (differential.draw("CONV_2D", "int8", 5, number) for number in (7, 7, 8))
    assert one.model == two.model != other.model
    assert all((a == b).all() for a, b in zip(one.runs[0].values(), two.runs[0].values(), strict=True))


def test_sees_a_difference_of_one():
    """The optimized kernels, which round some ties another way, are not the reference's."""
    outcome = differential.compare("CONV_2D", "int8", 100, 0, candidate="BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    assert outcome.mismatches and outcome.agree
    assert "largest difference 1" in outcome.mismatches[0][1]


def test_operators_cut_out_of_a_network_give_what_they_gave_in_it():
    case = differential.draw("GRAPH", "int8", 4, 0)
    model = tq.Model(case.model)
    graph = model.subgraphs[0]
    everything = [tensor.index for tensor in graph.tensors if not tensor.is_constant]
    (whole,) = oracle.ask("tensors", [(case.model, "BUILTIN_REF", case.runs, {}, everything)])
    for item in graph.operators:
        data, fed, outputs = corpus_runs.cut(model, item.index, whole[0])
        (alone,) = oracle.ask("tensors", [(data, "BUILTIN_REF", [fed], {}, outputs)])
        for index, output in zip(item.output_indices, outputs, strict=True):
            assert differential.difference(whole[0][index], alone[0][output]) is None
            assert differential.difference(whole[0][index] + 1, alone[0][output])


def test_survives_an_abort():
    """256 * 2 equal logits end LiteRT's process; the questions before and after are answered."""
    sources = [differential.question(*args) for args in (sane(), aborting(), sane(), aborting(), sane())]
    answers = list(oracle.ask("tensors", sources, workers=2))
    assert [isinstance(answer, oracle.Abort) for answer in answers] == [False, True, False, True, False]


def sane():
    case = differential.draw("CONV_2D", "int8", 0, 0)
    return case.model, "BUILTIN_REF", case.runs


def aborting():
    """A quantized SOFTMAX whose sum of exponentials overflows the reference's."""
    draft = differential.Draft(0)
    x = draft.input("int8", [1, 600], values=[[5] * 600], scale=0.1, zero_point=0)
    y = draft.output("int8", [1, 600], scale=1 / 256, zero_point=-128)
    draft.operator("SOFTMAX", [x], [y], beta=1.0)
    case = draft.case()
    return case.model, "BUILTIN_REF", case.runs


def test_the_table_of_operators_is_true():
    import operator_table

    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    assert text == operator_table.document(), "python tests/support/operator_table.py > docs/operators.md"
