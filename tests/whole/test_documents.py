# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/guide.md hold: their Python blocks and tq commands run, in their order, in one folder."""

import subprocess
import sys
from pathlib import Path

import pytest
from document_program import program

import tq


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_every_example_runs(document, tmp_path):
    text, last = program(document)
    where = str(Path(tq.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {where!r})\n{text}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"block {last}\n" in done.stdout
