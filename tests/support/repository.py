# SPDX-License-Identifier: Apache-2.0
"""The repository's files, and where processes of tests find modules."""

import shutil
import subprocess
from pathlib import Path

import tq

ROOT = Path(__file__).parents[2]


def committed():
    """The repository's files, by git where it is one, else by looking."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:
            return [ROOT / item for item in listed.stdout.split("\0") if item and (ROOT / item).is_file()]
    folders = ("src", "schema", "tq", "tests", "benchmarks")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return [path for path in found if path.is_file() and path.suffix not in (".so", ".pyd", ".pyc")]


def import_path(test):
    """Folders for a process that imports tq, a test's own module and what stands beside this one."""
    return [str(Path(tq.__file__).parents[1]), str(Path(test).parent), str(Path(__file__).parent)]
