# SPDX-License-Identifier: Apache-2.0
"""The rows of the table of deviations, and the look-up of rows."""

from collections.abc import Callable
from dataclasses import dataclass

ROWS = []
EVERY = ("reference", "optimized", "xnnpack")
NOT_XNNPACK = EVERY[:2]
UNPROMISED = object()  # an output that is neither LiteRT's nor said


@dataclass(frozen=True, eq=False)
class Deviation:
    operators: tuple
    when: str
    litert: str
    tq: str
    outputs: Callable
    example: Callable
    numerics: tuple = EVERY
    on: str = ""  # the feature of processors on which LiteRT does it; "": on all

    def __str__(self):
        return f"{', '.join(self.operators)}: {self.when}"


def deviation(*operators, when, litert, tq, example, numerics=EVERY, on=""):
    """Enters the function below as a row.  numerics: those of LiteRT's kernels that do it, on: on which processors."""

    def enter(function):
        ROWS.append(Deviation(operators, when, litert, tq, function, example, numerics, on))
        return function

    return enter


def find(node):
    """The row that a node falls under, or None."""
    rows = (row for row in ROWS if node.name in row.operators and node.numerics in row.numerics)
    return next((row for row in rows if row.outputs(node) is not None), None)
