# SPDX-License-Identifier: Apache-2.0
"""Each row of tests/support/deviations: LiteRT does what it says, and tq what the operator means."""

from pathlib import Path

import deviation_table
import deviations
import differential
import generators
import oracle
import processor
import pytest
import refusals

import tq

ROOT = Path(__file__).parents[2]


def known(case, answer):
    return {**case.runs[-1], **answer[-1]}


@pytest.mark.parametrize("row", deviations.ROWS, ids=str)
def test_row(row):
    draft = differential.Draft(7, str(row))
    row.example(draft)
    case = draft.case()
    numerics = row.numerics[0]
    wanted = differential.compared(tq.Model(case.model))
    who = differential.candidate_of(numerics)
    (mine,) = oracle.ask("tensors", [(case.model, who, case.runs, case.shapes, wanted)])
    assert isinstance(mine, list), mine
    item = tq.Model(case.model).subgraphs[0].operators[0]
    node = differential.node(item, known(case, mine), differential.backends(tq.Model(case.model), numerics)[0])
    assert deviations.find(node) is row
    means = [meant if isinstance(meant, tuple) else (meant, None) for meant in row.outputs(node)]
    for index, (meant, slack) in zip(item.output_indices, means, strict=True):
        if meant is not deviations.UNPROMISED:
            assert differential.difference(mine[-1][index], meant, slack) is None

    (theirs,) = oracle.ask("tensors", [(case.model, generators.NUMERICS[numerics], case.runs, case.shapes, wanted)])
    if isinstance(theirs, oracle.Abort | oracle.Refusal) or row.on not in {"", *processor.features()}:
        return
    wrong = [
        differential.difference(theirs[-1][index], mine[-1][index] if meant is deviations.UNPROMISED else meant, slack)
        for index, (meant, slack) in zip(item.output_indices, means, strict=True)
    ]
    assert any(wrong), "LiteRT agrees: the row is not needed"


@pytest.mark.parametrize("row", refusals.ROWS, ids=str)
def test_what_litert_runs_and_tq_refuses(row):
    draft = differential.Draft(7, str(row))
    draft.fixed = True
    row.example(draft)
    case = draft.case()
    questions = [differential.question(case.model, who, case.runs) for who in generators.NUMERICS.values()]
    assert not all(isinstance(answer, oracle.Refusal) for answer in oracle.ask("tensors", questions))
    for numerics in generators.NUMERICS:
        with pytest.raises(tq.RunError, match=row.message):
            tq.Interpreter(model_content=case.model, numerics=numerics).allocate_tensors()


def test_the_document_is_the_table():
    assert (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8") == deviation_table.document()
