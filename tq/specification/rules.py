# SPDX-License-Identifier: Apache-2.0
"""All rules of the specification, each with its stable name and a function that finds what breaks it.

Such a function gets an operator under its row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator

from tq.editing.graph import OperatorPart, TensorPart
from tq.specification import rules_of_activations, rules_of_biases, rules_of_weights
from tq.specification.findings import UNUSUAL, VIOLATES
from tq.specification.operands import (
    FLOATS,
    Operand,
    Operands,
)
from tq.specification.rule import Found, Rule
from tq.specification.table import SPECS

_SPEC = Rule("spec", "operators mean the spec that was asked for", lambda v: iter(()))
_ALL = (_SPEC, *rules_of_activations.RULES, *rules_of_weights.RULES, *rules_of_biases.RULES)
RULES: dict[str, Rule] = {rule.name: rule for rule in _ALL}


def of_another_spec(op: OperatorPart, v: Operands | None, spec: str) -> list[Found]:
    """An operator that does not mean the spec that was asked for.  Conversions stand between."""
    output = next((t for t in op.outputs if t is not None), None)
    if output is None or op.name in ("QUANTIZE", "DEQUANTIZE") or (v is not None and v.spec.name == spec):
        return []
    operand = Operand("outputs", op.outputs.index(output), output)
    if v is not None:
        return [Found("spec", VIOLATES, v, operand, f"{v.spec.name} activations", f"{spec} activations")]
    if not any(t is not None and t.type_name in FLOATS for t in (*op.inputs, *op.outputs)):
        return []
    own = Operands(op, op.name, SPECS[spec], None, None, (), (), None, None)
    return [Found("spec", UNUSUAL, own, operand, "float activations", f"{spec} activations")]


def found_in(v: Operands) -> Iterator[Found]:
    """All that breaks a rule, a tensor at most once a rule."""
    for rule in RULES.values():
        seen: set[TensorPart] = set()
        for operand, level, found, needed in rule.find(v):
            if operand is None or operand.tensor not in seen:
                yield Found(rule.name, level, v, operand, found, needed)
            if operand is not None:
                seen.add(operand.tensor)
