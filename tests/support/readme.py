# SPDX-License-Identifier: Apache-2.0
"""The examples of a document, and a program that runs README.md's as a reader does.

python tests/support/readme.py      in a checkout, in whose folder all of it runs: its shell commands, `pip install .`
                                    among them, by a shell, and its Python blocks by the same Python
"""

import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TESTS = " && python -m pytest"  # what runs the tests, of which this is one


def blocks(document):
    """(language, text) of each example."""
    return BLOCK.findall((ROOT / document).read_text("utf-8"))


def run(folder, environment=None):
    """Runs README.md's examples in a folder, where it lies.  CalledProcessError: one of them fails."""
    for language, group in groupby(blocks(folder / "README.md"), lambda block: block[0]):
        text = "".join(text for _language, text in group)
        command = ["bash", "-ec", text.replace(TESTS, "")] if language == "sh" else ["python", "-c", text]
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=1800)


if __name__ == "__main__":
    try:
        run(Path.cwd())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{failed.cmd[-1]}\n\nfailed with exit code {failed.returncode}")
