# SPDX-License-Identifier: Apache-2.0
"""Random valid models of one operator, for comparison with LiteRT.

A row is a function under `@generator`; each of its kinds names a combination of types:

    @generator("ADD", "float32", "int8")
    def add(m, kind):
        x = m.input(kind, m.shape())
        y = m.input_or_constant(kind, m.shape_like(x))
        m.operator("ADD", [x, y], [m.output("float32")], fused_activation_function=m.activation())

`m` is a `Draft` (generators/draft.py): it draws at random, always the same for a seed, and collects the model and
its inputs.  The modules of this package are found by themselves.  At least 90 % of a row's models must be ones that
LiteRT's reference kernels run: `python tests/support/differential.py ADD --litert` says how many are.
"""

import importlib
import pkgutil

REFERENCE, OPTIMIZED = "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
DELEGATE = "BUILTIN"  # for operators that only the XNNPACK delegate has
MICRO = "MICRO"  # tflite-micro's interpreter, where its package is installed
PUBLISHED = "PUBLISHED"  # the functions of published.py, of operators that no installed runtime has

GRAPHS = ("GRAPH", "PARTITION")  # rows of several operators

NUMERICS = {"reference": REFERENCE, "optimized": OPTIMIZED, "xnnpack": "BUILTIN"}  # tq's names: LiteRT's resolvers

ROWS = {}  # (operator, kind): function
RESOLVERS = {}  # (operator, kind): the kernels that it is compared with


def generator(operator, *kinds, resolver=REFERENCE):
    """Enters the function below as the generator of these kinds of an operator.

    resolver: OPTIMIZED for what the reference kernels do not have, DELEGATE for what neither has, MICRO or
    PUBLISHED for what LiteRT does not have."""

    def enter(function):
        for kind in kinds:
            assert (operator, kind) not in ROWS, f"{operator} {kind} has two generators"
            ROWS[operator, kind] = function
            RESOLVERS[operator, kind] = resolver
        return function

    return enter


def rows(operator=None, kinds=None):
    """The (operator, kind) pairs that there are, of all operators or one."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
    return [row for row in sorted(ROWS) if operator in (None, row[0]) and (kinds is None or row[1] in kinds)]
