# SPDX-License-Identifier: Apache-2.0
"""tq.repair: a model without what breaks TFLite's quantization specification."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tq import saving
from tq._core import Model
from tq.calibration.samples import Data
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart
from tq.sources import Source, opened
from tq.specification.applying import apply, each, key_of
from tq.specification.check import check, checked, ignored, to_finding
from tq.specification.effects import Effect, Effects
from tq.specification.findings import Finding, Findings
from tq.specification.repairs import REPAIRS, Done
from tq.specification.rule import Found


@dataclass(frozen=True)
class Change:
    """A finding that was repaired."""

    __module__ = "tq"

    finding: Finding
    did: str
    loss: float  #: the greatest error of the tensor's real values, in steps of its new scale; 0: none

    def to_dict(self) -> dict[str, Any]:
        return {**self.finding.to_dict(), "did": self.did, "loss": self.loss}

    def __str__(self) -> str:
        f = self.finding
        lost = "exact" if self.loss == 0 else f"loss {self.loss:.3g} steps"
        return f"{f.rule}: operator {f.operator} {f.row}, {f.tensor!r}: {self.did}; {lost}"


class Changes(list[Change]):
    """The changes of tq.repair.  `str()` has a line for each."""

    __module__ = "tq"

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing to repair"


class Repaired(bytes):
    """A repaired model.

    changes: one for each finding that was repaired.
    unrepaired: the findings that are left; `unrepairable` of each is the reason.
    effect: by how many steps the first subgraph's outputs change, on the samples or a random input.  None: it is not
        known, and `unmeasured` says why.
    """

    __module__ = "tq"

    changes: Changes
    unrepaired: Findings
    effect: float | None
    unmeasured: str


def repair(
    model: Source,
    output: str | os.PathLike[str] | None = None,
    *,
    spec: str | None = None,
    ignore: Iterable[str] = (),
    samples: Data | None = None,
    num_threads: int | None = None,
    in_place: bool = False,
) -> Repaired:
    """A model without what tq.check finds.

    Biases are rescaled; weights of -128 become -127; weights with a zero point are moved, exactly where they fit, else
    they get a new scale; QUANTIZE stands where scales must be equal, and behind fixed outputs.

    model: a path, bytes or a tq.Model, which stays as it is.
    output, in_place: as of tq.quantize_model.
    spec, ignore, samples, num_threads: as of tq.check.

    Returns the model, bytes.  Their `changes` say of each finding what was done and what it lost; `unrepaired` are the
    findings that are left, and why; `effect` is the change of the model's outputs.
    ValueError: as tq.check.  OSError: as tq.quantize_model.
    """
    model = opened(model)
    rules = ignored(ignore)
    goal = saving.target(output, samples, model=model, in_place=in_place)
    editor = Editor(model)
    effects = Effects(model, samples, num_threads)
    before = list(checked(model, editor, spec, rules, effects))
    places = {op: op.index for graph in editor.subgraphs for op in graph.operators}
    done, refused = apply(editor, lambda item: item.rule not in rules) if before else ([], {})
    result = Repaired(editor.to_bytes())
    left = list(each(editor, spec))
    kept = {key_of(item) for item in left}
    reasons = {_place(to_finding(item, Effect(None))): refused.get(key_of(item), _reason(item)) for item in left}
    findings = check(bytes(result), spec, ignore=rules)
    result.unrepaired = Findings(replace(item, unrepairable=reasons.get(_place(item), "")) for item in findings)
    result.changes = Changes(_changes([row for row in before if key_of(row[0]) not in kept], done, places))
    result.effect, result.unmeasured = effects.of_model(Model(bytes(result))) if done else Effect(0.0)
    if goal is not None:
        goal.save(result)
    return result


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.subgraph, finding.operator, finding.tensor


def _reason(item: Found) -> str:
    return "another repair brings it back" if item.rule in REPAIRS else "the rule has no repair"


def _changes(
    before: Iterable[tuple[Found, Finding]], done: Iterable[tuple[Found, Done]], places: Mapping[OperatorPart, int]
) -> Iterator[Change]:
    """A change for each finding that is gone, then those that repairs called for in the model's own operators."""
    by_key = {key_of(item): what for item, what in done}
    for item, finding in before:
        what = by_key.pop(key_of(item), Done("gone with another repair", 0.0))
        yield Change(finding, what.did, what.loss)
    for item, what in done:
        if key_of(item) in by_key and item.operands.op in places:
            finding = replace(
                to_finding(item, Effect(None, "another repair called for this one")), operator=places[item.operands.op]
            )
            yield Change(finding, what.did, what.loss)
