# SPDX-License-Identifier: Apache-2.0
"""docs/quantization.md: the quantized form of each operator.

    python tests/support/quantization_table.py > docs/quantization.md

The operators and their rules are the rows of tq/specification/table.py and tq/quantization/recipes.py; the kernels
are those that the tests compare with LiteRT (generators).
"""

import built  # noqa: F401
import generators

from tq.quantization import unsigned
from tq.quantization.recipes import WEIGHTS
from tq.specification.table import CALLING, CENTERED, FLOAT, FREE, INSTEAD, INTEGER, NOT_INT16, READS, SAME

HEAD = """# Operators in quantized models

`tq.quantize_model` with the recipes `int8` and `int16x8` gives an operator integer inputs and outputs where LiteRT has
a kernel for them that is correct. Other operators stay float32 between DEQUANTIZE and QUANTIZE, and so do operators
with tensors of unknown range or with values of 1e30 and beyond (as masks have them), and operators that move data alone
without an integer operator beside them. RNN, UNIDIRECTIONAL_SEQUENCE_RNN and the
BIDIRECTIONAL operators have no integer kernels. This file is made by `tests/support/quantization_table.py`.

All decisions on a model are made before anything is written, as one plan. `tq.plan_quantization` and
`tq quantize --plan` show it: each operator, its type, or the reason for which it stays float; groups of activations
that share parameters, and the source of their range; variables and control flow; constants; QUANTIZE and DEQUANTIZE.

Recipes `int4` and `int16x4` do the same with int4 weights of {INT4}. Those of other operators stay int8,
since a file that tq writes runs in all of LiteRT's kernel sets: its reference kernels refuse int4 weights of
DEPTHWISE_CONV_2D (version 7), which the optimized ones and XNNPACK run. The plan says so of each. Recipe
`uint8` has uint8 values and weights of one scale and zero point. For lack of uint8 kernels these stay float there:
{UINT8}.

Weights are int8, with a scale for each channel where the kernel takes them; biases are int32, or int64 beside int16
activations, of scale s_input * s_weights; where a bias would not fit, the weights' scale grows. Computed weights are
activations with zero point 0 beside int8 activations, and int8 values behind a QUANTIZE beside int16 ones.
Constants that several operators share are written once for each pair of parameters.

Operators such as CONCATENATION and MAXIMUM need equal parameters for what they read and write. With int8 and uint8
activations, a tensor of measured range (by calibration, or stored) that other operators read too, or that is an output
of the model, keeps its own parameters where the common range would be twice as wide or more: a QUANTIZE gives the
operator its values. Where the operator alone reads a tensor, they share.

The fused activations TANH and SIGN_BIT do not prevent quantization: LiteRT's float and integer kernels ignore them, or
refuse to run (FULLY_CONNECTED, L2_NORMALIZATION and CONCATENATION, which do not change). An SVDF gets integers with
RELU alone, an LSTM with TANH alone: LiteRT's integer kernels have no other activation.

READ_VARIABLE and ASSIGN_VARIABLE copy quantized values if all operators on the variable, in every subgraph, have a
range and an integer operator beside them: then all have one type and the same parameters, by the union of their ranges.
Calibration observes a variable's values with `reset_variables=False`, where samples are the steps of a stream.

IF, STABLEHLO_CASE and WHILE pass quantized values, with the same parameters on both sides, under three conditions: all
branches read the values with integer operators, or all write them with integer operators; an integer operator in a
loop's body writes the values for the next round; and with 8 bits the union of the ranges is at most 1.5 times each of
them. Other inputs and outputs stay float, as do branches that no sample takes. A rule that leaves the operator float
leaves all its inputs and outputs float.
Compared with float inputs and outputs (loops of 50 steps, 8 and 128 values wide) tq took 1.1 to 1.9 times less time and
LiteRT 1.0 to 1.2 times less, for at most 0.8 dB, since a loop's first values and its results have one range. The
subgraph of STABLEHLO_COMPOSITE has float inputs and outputs, since other programs may run the composite by its name.
Inside, operators are quantized as elsewhere. `tq.Rule("float", operator="STABLEHLO_COMPOSITE")` leaves them float:
normalizations of few values need that, and a program that knows the name computes in float too.

Parameters of an output:

- free: by its own range, without the values that its readers clamp (RELU, MINIMUM and MAXIMUM with a constant)
- same: those of the inputs, by the union of their ranges
- centered: the same, with zero point 0, since the kernel writes the quantized value 0 for 0.0
- fixed: a scale and a zero point that the kernel demands
- reads: the inputs are quantized; the outputs are indices, truth values or shapes
- none: the operator stays float

| operator | int8 | int16 | |
|---|---|---|---|
"""

INSTEAD_HEAD = """
## Written as other operators

| operator | form, and reason |
|---|---|
"""

FLOAT_HEAD = """
## Float although a kernel takes integers

| operator | |
|---|---|
"""

WEIGHTS_HEAD = """
## Weights alone

The recipes that leave activations float quantize the weights of these operators; `dynamic_...` and `blockwise_int4`
where a kernel multiplies such weights with float activations, the others behind a DEQUANTIZE. GATHER takes rows of an
int8 table, and a DEQUANTIZE stands behind it; inputs of custom operators become weights by `custom_weights=`. Weights
that a file keeps as float16, or sparse, count as float32.

| operator | inputs | scales | types beside float activations |
|---|---|---|---|
"""

PEERS_HEAD = """
## Beside TFLiteConverter and ai-edge-quantizer

From the same float model and calibration data the scales of int8 weights are TFLiteConverter's, and their values but
for single ones that differ by one; int4 weights are ai-edge-quantizer's; scales of activations are TFLiteConverter's
but for the last bits in which the runtimes' float kernels differ (`tests/quantization/test_quantize_converter.py` and
`tests/quantization/test_quantize_model.py`). What differs:

| subject | tq | others |
|---|---|---|
"""

PEERS = (
    (
        "tensors that share parameters",
        "the range of all of them",
        "TFLiteConverter: that of the last, which cuts off values of the others; QUANTIZE between with int16",
    ),
    (
        "an operand that TFLite overwrites with the sum",
        "its own range",
        "TFLiteConverter's calibrator sees the sum there too",
    ),
    (
        "tensors that only RELU, RELU6, MINIMUM or MAXIMUM with a constant read",
        "the range of the values that pass them; the constant widens no range",
        "TFLiteConverter: the whole range; ai-edge-quantizer: MINIMUM and MAXIMUM in float",
    ),
    (
        "slopes of PRELU beside int8",
        "from the least to the greatest of them",
        "TFLiteConverter: as far below 0 as above, with half as many quantized values",
    ),
    (
        "outputs that were always 0",
        "a scale with which XNNPACK takes the operator",
        "ranges of 1e-6: LiteRT's default resolver refuses the model",
    ),
    (
        "scales of blocks that float16 rounds to 0",
        "float16's least positive value",
        "ai-edge-quantizer: 0, with which LiteRT's default resolver refuses the model",
    ),
    (
        "versions of int16 operators",
        "those that brought int16",
        "TFLiteConverter: those of int8; ai-edge-quantizer: as they were",
    ),
    ("biases that pass int32", "the channel's scales grow until they fit", "ai-edge-quantizer: -2^31"),
    (
        "NEG, SQUARE, SUM, DIV by a constant",
        "written as MUL or MEAN",
        "kernels that compute something else, or float",
    ),
    (
        "masks, and logarithms of small values",
        "float, with what leads to the logarithm",
        "integers: what stands beside a mask is lost, and small values are 0",
    ),
    (
        "LOGISTIC",
        "the scale that LiteRT's kernels ask for",
        "ai-edge-quantizer: the output's own, which only XNNPACK takes",
    ),
)

WORDS = {FREE: "free", SAME: "same", CENTERED: "centered", READS: "reads", None: "none"}


def kernels(type_):
    """The builtin operators that LiteRT runs on integers of a type."""
    found = set()
    for operator, kind in generators.rows():
        if type_ in kind.split("-") and not operator.startswith("Signal") and operator not in generators.GRAPHS:
            found.add(operator)
    return found


def shown(output):
    if isinstance(output, tuple):
        return f"fixed: 1/{round(1 / output[0])}, {output[1]}"
    return WORDS[output]


def remarks(name, row):
    if name in INSTEAD:
        return f"written as {INSTEAD[name].split(':')[0]}"
    found = []
    if row.limit is not None:
        found.append(row.limit.why)
    if row.only is not None:
        found.append(f"{row.only[0]} {' or '.join(row.only[1])} alone")
    if name in NOT_INT16:
        found.append(NOT_INT16[name])
    if row.recurrent:
        found.append("states, and values between, by their ranges step by step; int16 cells")
    if name in CALLING:
        found.append("what goes in and out, each by its own range, where all subgraphs that it calls agree")
    if row.narrow is not None:
        found.append(f"input {row.narrow} is int8 beside int16 too")
    return "; ".join(found)


def document():
    """The file's text."""
    int4 = " and ".join(sorted(name for name, row in WEIGHTS.items() if "int4" in row.integer))
    text = HEAD.replace("{INT4}", int4).replace("{UINT8}", ", ".join(sorted(unsigned.WITHOUT)))
    for name, row in sorted(INTEGER.items()):
        text += f"| {name} | {shown(row.int8)} | {shown(row.int16)} | {remarks(name, row)} |\n"
    text += INSTEAD_HEAD + "".join(f"| {name} | {why} |\n" for name, why in INSTEAD.items())
    text += FLOAT_HEAD + "".join(f"| {name} | {why} |\n" for name, why in FLOAT.items())
    text += WEIGHTS_HEAD
    for name, row in sorted(WEIGHTS.items()):
        axis = "one" if row.axis is None else f"along axis {row.axis}"
        hybrid = ", ".join((*row.hybrid, *(["int4 in blocks"] if row.in_blocks else []))) or "none"
        text += f"| {name} | {', '.join(map(str, row.inputs))} | {axis} | {hybrid} |\n"
    return text + PEERS_HEAD + "".join(f"| {' | '.join(row)} |\n" for row in PEERS)


if __name__ == "__main__":
    print(document(), end="")
