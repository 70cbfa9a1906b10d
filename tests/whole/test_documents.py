# SPDX-License-Identifier: Apache-2.0
"""The documents hold: their Python blocks and tq commands run, in their order, in one folder; every public name stands
in the reference, with an example."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from document_program import program
from readme import ROOT

import tq

REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
PAGES = ["README.md", "docs/guide.md", "docs/index.md"]
PAGES += [str(path.relative_to(ROOT)) for path in [*sorted((ROOT / "docs" / "howto").glob("*.md")), *REFERENCE]]
# One program makes pictures, another runs pytest.
NEEDS = {"docs/howto/keras.md": "PIL"}


@pytest.mark.parametrize("document", PAGES)
def test_every_example_runs(document, tmp_path):
    if document in NEEDS:
        pytest.importorskip(NEEDS[document])
    text, last = program(document)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(Path(tq.__file__).parents[1])
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"block {last}\n" in done.stdout


def sections():
    """{public name: the text behind its directive, up to the next example's end}, of all reference pages."""
    found = {}
    for path in REFERENCE:
        parts = re.split(r"^::: tq\.(\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for i, name in enumerate(parts[::2]):
            assert name not in found, f"{name} stands twice in the reference"
            found[name] = next(part for part in parts[2 * i + 1 :: 2] if "```python" in part)
    return found


def test_every_public_name_stands_in_the_reference_with_an_example_that_uses_it():
    found = sections()
    assert sorted(found) == sorted(tq.__all__)
    unused = {name for name, text in found.items() if not re.search(rf"\b{name}\b", text)}
    assert unused == set()


def test_every_public_name_has_a_docstring():
    assert [name for name in tq.__all__ if not (getattr(tq, name).__doc__ or "").strip()] == []


def test_every_document_stands_in_the_sites_navigation():
    """The navigation of mkdocs.yml; `mkdocs build --strict` checks it too, where mkdocs is installed."""
    listed = set(re.findall(r"([\w/-]+\.md)", (ROOT / "mkdocs.yml").read_text("utf-8")))
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert documents <= listed
    made = {"benchmarks.md", "changelog.md", "contributing.md", "reference/command-line.md"}  # by docs/site/pages.py
    assert listed - documents == made
