# SPDX-License-Identifier: Apache-2.0
"""Types that no generator draws: where LiteRT's reference kernels and tq both run a model, they agree; and what LiteRT
runs, tq runs too, unless the types make no sense."""

import differential
import generators
import oracle
import pytest
import retyped

import tq

ROWS = [
    row
    for row in generators.rows()
    if generators.RESOLVERS[row] == generators.REFERENCE and row[0] not in generators.GRAPHS
]
KINDS = 3  # of an operator
OPERATORS = sorted({operator for operator, _ in ROWS})

# LiteRT reads what these have as of another type than it is, or gives the output one that the file does not.
UNCHECKED = {
    "ARG_MAX": "the output, as the options say",
    "ARG_MIN": "the output",
    "BATCH_TO_SPACE_ND": "block and crops",
    "CONV_2D": "filters beside floats",
    "EMBEDDING_LOOKUP": "a table to floats",
    "FAKE_QUANT": "the input",
    "FULLY_CONNECTED": "a bias of INT64 beside 8 bits",
    "LSH_PROJECTION": "hash functions",
    "ONE_HOT": "the depth",
    "PRELU": "slopes",
    "SHAPE": "the output, as the options say",
    "SPACE_TO_BATCH_ND": "block and paddings",
    "SPLIT": "the dimension",
    "SPLIT_V": "the sizes",
    "SVDF": "the bias and the state",
    "TRANSPOSE": "the permutation",
}
NONSENSE = ("has no scale", "zero point", "that of input", "output 0", "output 1", "differ")


def is_empty(answer):
    return all(value.size == 0 for value in answer[0].values() if not isinstance(value, oracle.Refusal))


def wrong(operator, case, theirs, mine):
    """What is wrong about tq's answer, or None."""
    if isinstance(mine, oracle.Abort):
        return f"tq's process ended with code {mine.code}"
    if isinstance(theirs, oracle.Refusal | oracle.Abort) or is_empty(theirs) or operator in UNCHECKED:
        return None
    if isinstance(mine, oracle.Refusal):
        return None if any(text in mine.text for text in NONSENSE) else f"LiteRT runs it; tq: {mine.text}"
    found, _ = differential.compare_runs(tq.Model(case.model), case.runs, mine, theirs)
    return found and found[2]


@pytest.mark.thorough
@pytest.mark.parametrize("operator", OPERATORS)
def test_other_types(operator):
    """A process that LiteRT has made read past a tensor is not asked again."""
    drawn = [
        (f"{kind}: {change}", case)
        for kind in [kind for name, kind in ROWS if name == operator][:KINDS]
        for change, case in retyped.cases(operator, kind)
    ]
    indices = [differential.compared(tq.Model(case.model)) for _, case in drawn]

    def ask(who):
        parts = zip(drawn, indices, strict=True)
        return oracle.ask("tensors", ((c.model, who, c.runs, c.shapes, i) for (_, c), i in parts), 1)

    found = []
    for (change, case), theirs, mine in zip(drawn, ask("BUILTIN_REF"), ask("TQ"), strict=True):
        text = wrong(operator, case, theirs, mine)
        if text:
            found.append(f"{change}: {text}")
    assert not found, "\n".join(found)
