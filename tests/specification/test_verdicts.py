# SPDX-License-Identifier: Apache-2.0
"""What LiteRT's kernel sets do with models whose scales, zero points and types are broken, beside the findings."""

import generators
import misquantized
import oracle
import pytest
import specification_cases as cases

import tq

RANK = ["runs", "refuses", "dies"]
# Breaks of one tensor each: rows of verdicts.py that the cases of test_rules.py do not reach.
BROKEN = {
    "a scale below 0": "BATCH_MATMUL-int8 BATCH_MATMUL-16x8 SUB-int8 SQRT-int8 PADV2-int8 LESS-int8",
    "a scale of NaN": "BATCH_MATMUL-int8-symmetric FULLY_CONNECTED-int4 ADD-int8 CONV_2D-uint8 LESS-int8 SQRT-int16",
    "an infinite scale": "LESS-uint8 SUB-int16 SOFTMAX-int8 LOG_SOFTMAX-uint8",
    "a denormal scale": "ADD-int8 SUB-int16 EQUAL-int8 SOFTMAX-uint8 LOG_SOFTMAX-int8 HARD_SWISH-int8 MUL-int16 "
    "FULLY_CONNECTED-uint8-int16",
    "a scale of 0": "SUB-uint8 MUL-uint8 PADV2-int16 MAX_POOL_2D-int8 AVERAGE_POOL_2D-uint8 TRANSPOSE_CONV-uint8",
    "a scale for each channel": "LOGISTIC-int8 TANH-int16 EMBEDDING_LOOKUP-int8 PADV2-uint8 MUL-int16 SVDF-int8",
    "no scale": "PACK-int8 UNPACK-uint8 FILL-int8 REDUCE_MAX-int16 LOG-int16 CONV_2D-int8 REDUCE_PROD-int8 ABS-int16 "
    "CONV_2D-int16-int4 DEPTHWISE_CONV_2D-int16 SVDF-int8 EQUAL-int16-quantized MUL-int16-uint8",
    "another zero point": "MUL-int16-int8 CONV_2D-int16 FULLY_CONNECTED-int2 PADV2-int8",
    "a zero point outside the type": "PAD-int8 PADV2-int16 RSQRT-int8 SQRT-int8",
    "the other type of 8 bits": "DIV-int8 FILL-int8 SELECT-uint8 REDUCE_MAX-int8 CONV_2D-int16 SUB-uint8 "
    "EXP-int8 SQUARED_DIFFERENCE-int8 REDUCE_PROD-int8 LSTM-int8 UNIDIRECTIONAL_SEQUENCE_LSTM-int8 "
    "EMBEDDING_LOOKUP-int8 DILATE-int8 RESIZE_BILINEAR-int8 SVDF-int8",
    "another quantized_dimension": "CONV_2D-int8 CONV_2D-int4 DEPTHWISE_CONV_2D-int4",
    "a zero point far outside": "HARD_SWISH-int8 SQRT-int8",
}


def said_of(model):
    """The worst of the findings' verdicts, which depend on each other."""
    kernels = [found.kernels for found in tq.check(model) if found.operator == 0]
    return {name: max((k[name] for k in kernels), key=RANK.index) for name in cases.KERNELS} if kernels else None


@pytest.mark.parametrize("change", BROKEN)
def test_findings_say_what_litert_does(change):
    rows = [row.split("-", 1) for row in BROKEN[change].split()]
    broken = [b for row in rows for b in misquantized.cases(*row, 1, [change])]
    said = [(b, kernels) for b in broken if (kernels := said_of(b.case.model))]
    does = [dict.fromkeys(cases.KERNELS) for _ in said]
    for numerics, resolver in generators.NUMERICS.items():
        for found, answer in zip(does, misquantized.ask([b for b, _ in said], resolver, 2), strict=True):
            found[numerics] = cases.verdict(answer)
    wrong = [f"{b}: {kernels}, LiteRT {d}" for (b, kernels), d in zip(said, does, strict=True) if kernels != d]
    assert said
    assert not wrong, "\n".join(wrong)


def test_shuffled_weights_without_a_bias_end_litert():
    broken = next(misquantized.cases("FULLY_CONNECTED", "uint8-shuffled", 1, ["another scale"]))
    editor = tq.edit(broken.case.model)
    editor.main.operators[0].inputs = list(editor.main.operators[0].inputs)[:2]
    model = editor.to_bytes()
    for numerics, resolver in generators.NUMERICS.items():
        (row,) = tq.Interpreter(model_content=model, numerics=numerics).backends()
        (answer,) = oracle.ask("tensors", [(model, resolver, broken.case.runs, {}, [3], False)])
        assert isinstance(answer, oracle.Abort) and "process ends" in row.litert, (numerics, answer)
    assert said_of(model) == dict.fromkeys(cases.KERNELS, "dies")
