# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md: what tq runs.

    python tests/support/operator_table.py > docs/operators.md

The operators are the rows of src/ops/ops.def; the types are those whose random models are compared with LiteRT
(generators), in the words of the generators.
"""

import built  # noqa: F401
import generators

import tq

HEAD = """# Operators

What `tq.Interpreter` runs: {builtins} builtin operators and {customs} custom ones. The types are those whose random
models the tests compare with LiteRT, tensor by tensor (those of tflite-micro's audio frontend with tflite-micro, where
it is installed, and MediaPipe's with their published definitions): `tests/support/generators` says what each word
stands for,
and [deviations.md](deviations.md) where LiteRT does not compute what an operator means. Others that LiteRT's kernels
take run as well where moving data or plain arithmetic makes no difference between types. This file is made by
`tests/support/operator_table.py`.

| operator | compared on |
|---|---|
"""


def document():
    """The file's text."""
    kinds = {}
    for operator, kind in generators.rows():
        kinds.setdefault(operator, []).append(kind)
    builtins, customs = tq._core.operators()
    text = HEAD.format(builtins=len(builtins), customs=len(customs))
    for name in sorted(builtins) + sorted(customs):
        text += f"| {name} | {', '.join(sorted(kinds.get(name, [])))} |\n"
    return text


if __name__ == "__main__":
    print(document(), end="")
