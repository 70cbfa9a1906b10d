# SPDX-License-Identifier: Apache-2.0
"""docs/deviations.md: the rows of deviations.

python tests/support/deviation_table.py > docs/deviations.md
"""

import deviations

HEAD = """# Where tq and TFLite's reference kernels differ

tq's integer results are those of LiteRT's reference kernels (BUILTIN_REF 2.3.0), bit for bit, but for the cases
below, where these end the process, leave C++'s defined behaviour or do not compute what the operator means. Each row is
pinned by a test (`tests/ops/test_deviations.py`). This file is made by `tests/support/deviation_table.py`.

The optimized kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES) and XNNPACK (BUILTIN) have most of them too, and a few of
their own: `in` says where.

| operator | in | when | LiteRT | tq |
|---|---|---|---|---|
"""


def document():
    """The file's text."""
    rows = sorted(deviations.ROWS, key=lambda row: (row.operators, row.when))
    where = {row: "all" if row.numerics == deviations.EVERY else ", ".join(row.numerics) for row in rows}
    return HEAD + "".join(f"| {', '.join(r.operators)} | {where[r]} | {r.when} | {r.litert} | {r.tq} |\n" for r in rows)


if __name__ == "__main__":
    print(document(), end="")
