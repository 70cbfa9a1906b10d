# SPDX-License-Identifier: Apache-2.0
"""Types of the public names, as mypy sees them; stubtest holds the core's stub against the core in .ci/run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import enum_stubs
import pytest

import tq
from tq import _core

pytest.importorskip("mypy", reason="needs mypy")
CHECKOUT = Path(__file__).parents[2]
MODULES = {name: tq._LAZY.get(name, "tq._core") for name in tq.__all__}


def checked(program, folder):
    """mypy's messages of a program's lines: [(line, kind, text)]."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", CHECKOUT / ".mypy_cache", "program.py"]
    environment = {**os.environ, "MYPYPATH": str(CHECKOUT)}
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found = re.findall(r"(?m)^program\.py:(\d+): (\w+): (.*)$", said.stdout)
    return [(int(line), kind, text) for line, kind, text in found]


def revealed(expressions, modules, folder):
    """The type of each expression."""
    lines = [*(f"import {module}" for module in sorted(modules)), *(f"reveal_type({text})" for text in expressions)]
    types = {line: text for line, kind, text in checked("\n".join(lines) + "\n", folder) if kind == "note"}
    return [types[len(modules) + 1 + index] for index in range(len(expressions))]


def test_every_public_name_has_the_type_of_its_definition(tmp_path):
    """`Interpreter` was Any, and so were all names that are imported at their first use."""
    names = list(MODULES)
    expressions = [f"tq.{name}" for name in names] + [f"{MODULES[name]}.{name}" for name in names]
    found = revealed(expressions, {"tq", *MODULES.values()}, tmp_path)
    public, defined = found[: len(names)], found[len(names) :]
    assert dict(zip(names, public, strict=True)) == dict(zip(names, defined, strict=True))
    assert [name for name, text in zip(names, public, strict=True) if "Any" in text.split("(")[0]] == []


def test_every_enum_has_its_members(tmp_path):
    members = [f"{name}.{rows[-1][0]}" for name, rows in _core.schema_enums().items()]
    found = revealed([f"tq.{member}" for member in members], {"tq"}, tmp_path)
    assert [text for member, text in zip(members, found, strict=True) if f"tq.schema_enums.{member}" not in text] == []


def test_the_stub_of_the_enums_has_the_cores_rows():
    assert enum_stubs.STUB.read_text(encoding="utf-8") == enum_stubs.document(), (
        "python tests/support/enum_stubs.py makes the stub anew"
    )


def test_wrong_names_and_keywords_are_found(tmp_path):
    program = 'import tq\ntq.Interprete\ntq.quantize_model("x", calibratoin=1)\ntq.TensorType.INT9\n'
    errors = {line: text for line, kind, text in checked(program, tmp_path) if kind == "error"}
    assert sorted(errors) == [2, 3, 4]
    assert 'maybe "Interpreter"' in errors[2] and 'did you mean "calibration"' in errors[3]


def test_every_form_of_samples_has_the_type_that_functions_take(tmp_path):
    """A function as a data set ran, and was an error to type checkers."""
    program = """
import pathlib
from collections.abc import Iterator
import numpy as np
import tq
def representative_dataset() -> Iterator[list[np.ndarray]]:
    yield [np.zeros(3)]
tq.quantize_model("m", "int8", calibration=representative_dataset)
tq.calibrate("m", pathlib.Path("s.npz"))
tq.evaluate("m", [(np.zeros(3), 1)], lambda outputs, label: 0.5)
tq.sensitivity("m", {"x": np.zeros((4, 3))})
tq.check("m", samples=representative_dataset)
"""
    assert [text for _, kind, text in checked(program, tmp_path) if kind == "error"] == []


def test_parts_of_a_model_have_types(tmp_path):
    expressions = ['tq.Model("m").tensors["x"]', 'tq.Model("m").tensors.get("x")', 'tq.Model("m").signatures[0].inputs']
    assert [re.search('"(.*)"', text)[1] for text in revealed(expressions, {"tq"}, tmp_path)] == [
        "tq._core.Tensor",
        "tq._core.Tensor | None",
        "dict[str, int]",
    ]
