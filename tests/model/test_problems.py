# SPDX-License-Identifier: Apache-2.0
"""model.problems: for each row of src/model/problems/problems.def a made model that has this problem and no other."""

import json
import os
from pathlib import Path

import pytest
import test_problems_file  # noqa: F401  (its cases)
import test_problems_graph  # noqa: F401
import test_problems_operators  # noqa: F401
import test_problems_tensors  # noqa: F401
from models import build_model, operator, pack, tensor
from problem_cases import CASES, KINDS, case, conv, one, relu, signed, x, y

import tq

# ---- limits ----


@case("unchecked")
def shared_too_often():
    """25 operators read one constant of 1 MB: more than 4 times the file and 16 MiB."""
    indices = tensor("indices", [1 << 18], "INT32", bytes(1 << 20))
    tensors = [x(4), indices] + [tensor(f"y{i}", [1 << 18]) for i in range(25)]
    operators = [operator("GATHER", [0, 1], [2 + i]) for i in range(25)]
    return build_model(tensors, operators, [0], [2])


def test_a_thousand_of_a_kind_and_then_a_number():
    tensors = [tensor(f"t{i}", [1], "INT8", scale=0.0) for i in range(1234)]
    problems = tq.Model(build_model(tensors, [], [0], [0])).problems
    assert len(problems) == 1001 and {p.code for p in problems} == {"scale-zero"}
    assert problems[-1].place == "model" and problems[-1].text.startswith("and 234 more: ")


def test_names_are_printable_and_cut():
    (problem,) = tq.Model(pack(relu(tensor("a\n\x1b[2J" + "\u00e4" * 100, [-1])))).problems
    assert problem.place.startswith("subgraph 0, tensor 0 'a??[2J\u00e4") and problem.place.endswith("\u00e4...'")
    assert problem.place.isprintable()


# ---- all of them ----


def test_a_clean_model_has_no_problem():
    assert tq.Model(pack(relu())).problems == []
    assert tq.Model(conv()).problems == []
    assert tq.Model(pack(signed())).problems == []


@pytest.mark.parametrize(
    ("code", "make"), [(code, make) for code, name, make in CASES], ids=[f"{c}-{n}" for c, n, _ in CASES]
)
def test_case(code, make):
    problems = tq.Model(make()).problems
    assert {problem.code for problem in problems} == {code}
    for problem in problems:
        assert isinstance(problem, tq.Problem)
        assert problem.severity == KINDS[code][0]
        assert problem.place and problem.text and problem.place.isprintable() and problem.text.isprintable()


def test_every_kind_has_a_case():
    assert {code for code, _, _ in CASES} == set(KINDS)


def test_kinds_are_distinct_words():
    assert len(KINDS) == len(tq._core.problem_kinds())
    for code, (severity, text) in KINDS.items():
        assert code.replace("-", "").isalpha() and code == code.lower()
        assert severity in ("error", "warning") and text


def test_counts_are_told_in_words():
    def text(*parts):
        return next(p.text for p in tq.Model(one(*parts)).problems if p.code.endswith("-count"))

    assert text("CONV_2D", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 2 to 3"
    assert text("ADD_N", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 2 or more"
    assert text("LSTM", [x(1)], [y(1)]) == "the operator has 1 inputs; it takes 5 or 20 or 24"
    assert text("LSTM", [x(1) for _ in range(5)], [y(1)]) == "the operator has 1 outputs; with its 5 inputs it gives 4"


def test_a_long_name_is_cut_between_characters():
    for start in ("", "a"):
        (problem,) = tq.Model(pack(relu(tensor(start + "\u00e4" * 100, [-1])))).problems
        assert problem.place.endswith("\u00e4...'") and "\\x" not in problem.place


# ---- real models ----

CORPUS = Path(os.environ.get("TQ_MODELS") or Path(__file__).parents[3] / "shared" / "models")


@pytest.mark.corpus
def test_models_that_run_have_no_error():
    """What LiteRT loads, allocates and invokes has nothing that TFLite refuses.

    Allocating alone proves less: LiteRT looks at constant indices and at missing inputs only as it invokes.
    """
    if not (CORPUS / "MANIFEST.json").exists():
        pytest.skip(f"no models in {CORPUS}; TQ_MODELS names another folder")
    wrong, seen = [], 0
    for row in json.loads((CORPUS / "MANIFEST.json").read_text()):
        problems = tq.Model(CORPUS / row["file"]).problems
        runs = row["litert"]["allocate_ok"] and not (row["litert"]["invoke"] or "").startswith("error")
        seen += runs
        if runs:
            wrong += [(row["file"], p) for p in problems if p.severity == "error"]
    assert seen and not wrong


@pytest.mark.corpus
def test_person_detect_says_why_litert_refuses_it():
    path = CORPUS / "tensorflow+tflite-micro" / "tensorflow__lite__micro__models__person_detect.tflite"
    if not path.exists():
        pytest.skip(f"no {path.name} in {CORPUS}")
    problems = tq.Model(path).problems
    assert {p.code for p in problems} == {"quantized-dimension"}
    assert "quantized_dimension is 3; it needs to be from 0 to 0" in problems[0].text
