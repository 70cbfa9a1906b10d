# SPDX-License-Identifier: Apache-2.0
"""docs/deviations.md: the rows of deviations.

python tests/support/deviation_table.py > docs/deviations.md
"""

import deviations
import refusals

HEAD = """# Where tq and TFLite's reference kernels differ

tq's integer results are those of LiteRT's reference kernels (BUILTIN_REF 2.3.0), bit for bit, but for the cases
below, where these end the process, leave C++'s defined behaviour or do not compute what the operator means. Each row is
pinned by a test (`tests/ops/test_deviations.py`). This file is made by `tests/support/deviation_table.py`.

The optimized kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES) and XNNPACK (BUILTIN) have most of them too, and a few of
their own: `in` says where.

| operator | in | when | LiteRT | tq |
|---|---|---|---|---|
"""

REFUSALS = """
## What LiteRT runs and tq refuses

Where LiteRT runs models by reading or writing past its tensors, or beyond C++'s defined behaviour, tq says what it
needs (`tests/support/refusals.py`, pinned by `tests/ops/test_deviations.py`).

| operator | when | LiteRT | tq's error has |
|---|---|---|---|
"""


def document():
    """The file's text."""
    rows = sorted(deviations.ROWS, key=lambda row: (row.operators, row.when))
    where = {row: "all" if row.numerics == deviations.EVERY else ", ".join(row.numerics) for row in rows}
    table = "".join(f"| {', '.join(r.operators)} | {where[r]} | {r.when} | {r.litert} | {r.tq} |\n" for r in rows)
    refused = "".join(f"| {r.operators} | {r.when} | {r.litert} | `{r.message}` |\n" for r in refusals.ROWS)
    return HEAD + table + REFUSALS + refused


if __name__ == "__main__":
    print(document(), end="")
