# SPDX-License-Identifier: Apache-2.0
"""The command line as a process of its own, for tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tq

DEMO = Path(tq.__file__).with_name("demo.tflite")


TQ = [sys.executable, "-m", "tq"]


def environment(**changes):
    """With the tq that the tests import, installed or not."""
    paths = [str(Path(tq.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8", **changes}


@pytest.fixture
def run(tmp_path):
    """Runs tq with arguments in an empty folder; the finished process, with text."""

    def run(*arguments, **changes):
        return subprocess.run(
            [*TQ, *map(str, arguments)],
            cwd=tmp_path,
            env=environment(**changes),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=120,
        )

    return run


def fine(process, code=0):
    assert (process.returncode, process.stderr) == (code, "")
    return process.stdout


def failed(process, *words):
    """Exit code 2, nothing on stdout, and one line on stderr that has these words."""
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.count("\n") == 1 and process.stderr.startswith("tq: ")
    for word in words:
        assert word in process.stderr
    return process.stderr
