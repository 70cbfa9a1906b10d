# SPDX-License-Identifier: Apache-2.0
"""Each rule on each row of the table: a model that breaks it, one that just does not, and what LiteRT does with it."""

import pytest
import specification_cases as cases

import tq
from tq.specification.rules import RULES

ROWS = list(cases.rows())
# Rules about what the table does not have: test_check.py.
OF_NO_ROW = {"spec", "no-row"}


def rules_found(model, place):
    return {finding.rule for finding in tq.check(model) if finding.operator == place}


def test_every_rule_is_broken_and_just_not_broken():
    assert {how.split()[0] for how in cases.BREAKS} == set(RULES) - OF_NO_ROW == set(cases.NEARLY)


def test_every_rule_is_broken_on_some_row():
    found = {how.split()[0] for row in ROWS for how in cases.BREAKS if cases.broken(cases.base(*row), how)}
    assert found == set(RULES) - OF_NO_ROW


@pytest.mark.parametrize(("name", "spec"), ROWS, ids=[f"{name}-{spec}" for name, spec in ROWS])
class TestRow:
    def test_a_valid_model_breaks_nothing(self, name, spec):
        made = cases.base(name, spec)
        assert made is not None, "a generator for its type, or a model in specification_cases.py, is needed"
        assert rules_found(made.model, made.place) == set()

    def test_what_breaks_a_rule_is_found_and_what_nearly_does_is_not(self, name, spec):
        made = cases.base(name, spec)
        for how in cases.BREAKS:
            if (other := cases.broken(made, how)) is not None:
                assert how.split()[0] in rules_found(other.model, other.place), how
        for rule, change in cases.NEARLY.items():
            if (other := cases.changed(made, change)) is not None:
                assert rule not in rules_found(other.model, other.place), rule

    def test_kernels_do_what_the_finding_says(self, name, spec):
        wrong = []
        for made in cases.bases(name, spec):
            for how in cases.BREAKS:
                other = cases.broken(made, how)
                if other is None:
                    continue
                rule = how.split()[0]
                said = next(f for f in tq.check(other.model) if f.operator == other.place and f.rule == rule)
                does = cases.verdicts(other)
                if dict(said.kernels) != does:
                    wrong.append((how, dict(said.kernels), does))
        assert wrong == []
