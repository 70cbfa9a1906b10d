# SPDX-License-Identifier: Apache-2.0
"""Where LiteRT's kernels do not compute what an operator means, and tq does.

    @deviation("MUL", when="...", litert="...", tq="...", example=draw)
    def multiply(node):
        ...  # None where the row does not apply to this node, else what its outputs are

Each output is an array, a pair (array, largest difference), None: LiteRT's, or UNPROMISED.  `node` is a
differential.Node.
example: a function of a Draft that draws a model on which LiteRT does what the row says; tests/ops/test_deviations.py
runs it.  docs/deviations.md is this table (deviation_table.py).  A family of operators is a module; the first row that
applies to a node counts.
"""

from deviations import (  # noqa: F401  (each enters its rows)
    binary,
    boxes,
    hybrid,
    movement,
    normalization,
    products,
    recurrent,
    reductions,
    unary,
    unwritten,
    windows,
    xnnpack,
)
from deviations.table import EVERY, ROWS, UNPROMISED, find

__all__ = ["EVERY", "ROWS", "UNPROMISED", "find"]
