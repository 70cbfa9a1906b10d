# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/guide.md hold: their Python blocks and tq commands run, in their order, in one folder."""

import subprocess
import sys
from pathlib import Path

import pytest
from readme import blocks

import tq


def program(document):
    """The document as one Python program that prints the number of each block; its commands go through tq.cli."""
    lines = ["import shlex", "from tq.cli.arguments import main"]
    for number, (language, text) in enumerate(blocks(document)):
        if language == "python":
            lines.append(text)
        else:
            commands = [line for line in text.splitlines() if line.startswith("tq ")]
            lines += [f"assert main(shlex.split({line!r}, comments=True)[1:]) in (0, 1, None)" for line in commands]
        lines.append(f"print('block', {number})")
    return "\n".join(lines), number


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_every_example_runs(document, tmp_path):
    text, last = program(document)
    where = str(Path(tq.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {where!r})\n{text}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"block {last}\n" in done.stdout
