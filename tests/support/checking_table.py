# SPDX-License-Identifier: Apache-2.0
"""docs/checking.md: the rules of tq.check, what LiteRT does, and what real models break.

    python tests/support/checking_table.py > docs/checking.md

Rules, repairs and verdicts are rows of tq/specification; COUNTS is held against the models of TQ_MODELS by a test.
"""

import built  # noqa: F401

from tq.specification.repairs import REPAIRS
from tq.specification.rules import RULES
from tq.specification.verdicts import DELEGATED, ROWS

HEAD = """# Models against the quantization specification

`tq.check(model)` and `tq check FILE` hold each operator of a model against its row of TFLite's quantization
specification (`tq/specification/table.py`, by which `tq.quantize_model` writes), and say what breaks a rule, what is
needed, by how many output steps the operator's result changes when that is repaired, and what LiteRT's three sets of
kernels do with the operator as it is. `tq.repair(model)` and `tq check FILE --fix -o OUT` write a model without it.

Each operator means int8, int16x8 or uint8 by the types of its activations; with `spec="int8"` all must mean that one.
Operators of float activations, dynamic-range ones among them, are left alone, as are custom ones and those that take
quantized values for plain integers (CAST, BITCAST ...). A finding's level is `violates`, or `unusual`: the
specification allows it, or does not know it, and converters write something else. The exit code is 1 where something
violates.

The effect is measured with tq's reference kernels, or the first other set that runs the operator, on `samples=` or on
one random input, from states of 0, tensor by tensor, and for activations, which depend on each other, together. Where
there is no repair, or the operator does not run as it is, there is none, and `unmeasured` says why. This file is made
by `tests/support/checking_table.py`.

## Rules

| rule | asks that | repaired |
|---|---|---|
"""

REPAIRED = {
    "type": "by QUANTIZE before the operator",
    "scale-missing": "where it follows: of a bias, a fixed output, an operator that moves values",
    "scale-value": "scales of 0: of channels that are 0, and as above",
    "activation-per-axis": "by one scale that covers all",
    "zero-point-range": "by parameters that cover its range",
    "activation-symmetric": "by parameters that cover its range",
    "same-scale": "by QUANTIZE before an input, or behind an output",
    "fixed-output": "by QUANTIZE behind the operator",
    "state": "by parameters that cover its range",
    "zero-is-zero": "by QUANTIZE before and behind the operator",
    "weights-type": "by moving the values, exactly where they fit, else by new values and scales",
    "weights-range": "by one step",
    "weights-zero-point": "by moving the values, exactly where they fit, else with a new scale",
    "weights-axis": "by new values and scales",
    "weights-per-axis": "by new values and one scale",
    "bias-missing": "by zeros",
    "bias-type": "by the same real values",
    "bias-zero-point": "by the same real values",
    "bias-scale": "by the same real values",
}

KERNELS_HEAD = """
Each change says its loss: by how many steps of its new scale a tensor's real values moved at most; 0 is exact. A change
of weights or of an activation calls for another one of the bias. `unrepaired` of the result are the findings that are
left, each with the reason as `unrepairable`. `effect` of the result is by how many steps the model's own outputs
change: a later operator may enlarge the effect of an earlier one. New parameters of a model's own input or output
change what its callers must give it or get of it.

## What LiteRT does

LiteRT 2.3.0, asked with a model for each operator, type and rule (`tests/specification/test_rules.py`). The first row
that holds counts; where none does, the kernels run. XNNPACK's delegate takes operators before their own kernels look
at them: then these run, but for the second table, and but for parameters that XNNPACK itself refuses. When it asks
about a QUANTIZE with such parameters, or a BATCH_MATMUL whose first input has them, it ends the process, whatever it
would answer (`src/delegate/backends.def`).

| rules | specs | operators | reference | optimized |
|---|---|---|---|---|
"""

DELEGATED_HEAD = """
| rules | operators that the delegate takes | XNNPACK |
|---|---|---|
"""

# Findings of the models that tests use where they are there, by level and rule, and in how many files.
COUNTS = {
    ("violates", "activation-per-axis"): (4, 4, "int8 constants of BATCH_MATMUL: LiteRT takes their scale for 0"),
    ("violates", "activation-symmetric"): (2, 2, "a QUANTIZE behind a SOFTMAX of int8 to int16"),
    ("violates", "same-scale"): (2, 2, "RESIZE_BILINEAR of uint8, 2.4 and 2.8 times off: results are, too"),
    ("violates", "scale-missing"): (3, 1, "ADD of int8, which ends LiteRT's process"),
    ("violates", "weights-range"): (124, 100, "-128 in CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED and SVDF"),
    ("unusual", "same-scale"): (22, 2, "CONCATENATION of uint8, which LiteRT's kernel rescales"),
    ("unusual", "type"): (9, 2, "SOFTMAX of int8 to int16, SVDF with int8 states: kernels for microcontrollers"),
    ("unusual", "weights-per-tensor"): (52, 1, "a network that was converted so"),
    ("unusual", "weights-range"): (66, 7, "0 among uint8 weights, of early converters"),
}

COUNTS_HEAD = """
## Real models

769 public models and such of TFLiteConverter, of which 496 have operators of quantized activations. Each kind of
finding was looked at once; what TFLiteConverter wrote violates nothing.

| level | rule | findings | files | |
|---|---|---|---|---|
"""


def words(text, every):
    return ", ".join(text.split()) or every


def document():
    """The file's text."""
    text = HEAD
    for rule in RULES.values():
        text += f"| `{rule.name}` | {rule.says} | {REPAIRED[rule.name] if rule.name in REPAIRS else 'no'} |\n"
    text += KERNELS_HEAD
    for row in ROWS:
        rules, specs, names = words(row.rules, "all"), words(row.specs, "all"), words(row.operators, "all")
        some = " (some)" if row.holds is not None else ""
        text += f"| {rules}{some} | {specs} | {names} | {row.reference} | {row.optimized} |\n"
    text += DELEGATED_HEAD
    text += "".join(f"| {words(rules, 'all')} | {words(names, 'all')} | {does} |\n" for rules, names, does in DELEGATED)
    text += COUNTS_HEAD
    for (level, rule), (findings, files, remark) in COUNTS.items():
        text += f"| {level} | `{rule}` | {findings} | {files} | {remark} |\n"
    return text


if __name__ == "__main__":
    print(document(), end="")
