# SPDX-License-Identifier: Apache-2.0
"""tq.check: a model against TFLite's quantization specification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tq._core import Model
from tq.calibration.samples import Data
from tq.editing.editor import Editor
from tq.nearest import hint
from tq.running.backends import Backend
from tq.sources import Source, snapshot
from tq.specification.applying import each
from tq.specification.effects import Effect, Effects
from tq.specification.findings import Finding, Findings
from tq.specification.rule import Found
from tq.specification.rules import RULES
from tq.specification.table import SPECS
from tq.specification.verdicts import Delegates, kernels_of


def check(
    model: Source,
    spec: str | None = None,
    *,
    ignore: Iterable[str] = (),
    samples: Data | None = None,
    num_threads: int | None = None,
) -> Findings:
    """The deviations of a model from TFLite's quantization specification.

    model: a path, bytes or a tq.Model.
    spec: "int8", "int16x8" or "uint8", which all operators must mean; None: each operator means the one of its types.
        Operators of float activations, dynamic-range ones among them, are left alone; with a spec they are unusual.
    ignore: names of rules whose findings are left out.
    samples: inputs, as tq.calibrate takes them, on which effects are measured; by default one that is drawn at random.
    num_threads: threads of a run; None: one.

    Returns findings in the order of the operators; print() shows a table, a notebook too.
    ValueError: no such spec or rule; samples that do not fit.
    """
    rules, opened = ignored(ignore), snapshot(model)
    effects = Effects(opened, samples, num_threads)
    return Findings(finding for _, finding in checked(opened, Editor(opened), spec, rules, effects))


def checked(
    model: Model,
    editor: Editor,
    spec: str | None,
    ignore: frozenset[str],
    effects: Effects,
) -> Iterator[tuple[Found, Finding]]:
    """All that breaks a rule, with its effect.  editor: of the model, as it is."""
    check_spec(spec)
    delegates = Delegates(model)
    for item in each(editor, spec):
        if item.rule not in ignore:
            op = item.operands.op
            backend = delegates.of(op.subgraph.index, op.index)
            yield item, to_finding(item, effects.of(item), backend)


def ignored(rules: Iterable[str]) -> frozenset[str]:
    """Names of rules; ValueError: there is no such rule."""
    names = frozenset([rules] if isinstance(rules, str) else rules)
    for name in sorted(names):
        if name not in RULES:
            raise ValueError(f"ignore: there is no rule {name!r}; there are: {', '.join(RULES)}{hint(name, RULES)}")
    return names


def check_spec(spec: str | None) -> None:
    """ValueError: there is no such spec."""
    if spec is not None and spec not in SPECS:
        raise ValueError(f"there is no spec {spec!r}; there are: {', '.join(SPECS)}{hint(str(spec), SPECS)}")


def to_finding(item: Found, effect: Effect, backend: Backend | None = None) -> Finding:
    op = item.operands.op
    about = item.operand or next(iter(item.operands.outputs), None)
    name = "" if about is None else about.tensor.name or f"tensor {about.tensor.index}"
    return Finding(
        item.level,
        item.rule,
        op.index,
        name,
        item.found,
        item.needed,
        effect.steps,
        kernels_of(item, backend),
        op.subgraph.index,
        item.operands.name,
        effect.why,
    )
