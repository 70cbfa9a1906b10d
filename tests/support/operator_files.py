# SPDX-License-Identifier: Apache-2.0
"""src/ops/README.md's table: which file has an operator.

    python tests/support/operator_files.py        # writes the table anew

The operators are the rows of src/ops/ops.def and src/runtime/operators.def; an operator's file defines its prepare
function.
"""

import re
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
README = SRC / "ops" / "README.md"
TABLES = ["ops/ops.def", "runtime/operators.def"]
BEGIN, END = "<!-- operators: made by tests/support/operator_files.py -->\n", "<!-- end of operators -->\n"


def rows():
    """(operator, prepare function's name) of each row."""
    row = re.compile(r'^(?:CUSTOM_)?OP\("?([^",]+)"?, (\w+),', re.MULTILINE)
    return [found for table in TABLES for found in row.findall((SRC / table).read_text(encoding="utf-8"))]


def definitions():
    """A prepare function's name to its file below src."""
    define = re.compile(r"^tq_status tq_prepare_(\w+)\([^;]*?\)\n\{", re.MULTILINE)
    files = [path for room in ("ops", "runtime") for path in sorted((SRC / room).rglob("*.c"))]
    return {
        name: path.relative_to(SRC).as_posix()
        for path in files
        for name in define.findall(path.read_text(encoding="utf-8"))
    }


def table():
    """The README's lines, sorted by operator."""
    files = definitions()
    lines = ["| operator | file |\n", "|---|---|\n"]
    for operator, prepare in sorted(rows(), key=lambda row: row[0].lower()):
        room, _, path = files[prepare].partition("/")
        lines.append(f"| {operator} | `{path if room == 'ops' else files[prepare]}` |\n")
    return "".join(lines)


def document(text):
    """A README with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    README.write_text(document(README.read_text(encoding="utf-8")), encoding="utf-8")
