# SPDX-License-Identifier: Apache-2.0
"""Builds tests/c with every C file of the core under the address and undefined-behaviour sanitizers, and runs it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from c_sources import core_sources, own_sources
from compiled import SANITIZED, compiled, link

ROOT = Path(__file__).parents[2]
# Libraries that a Python with sanitizers preloads must not reach a program that has its own.
NO_PRELOAD = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def compiler_with_sanitizers(name, folder):
    """The compiler's path, or a skip where it is missing or lacks the sanitizers' runtime."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}")
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    built = subprocess.run([path, *SANITIZED, probe, "-o", folder / "probe"], capture_output=True, text=True)
    if built.returncode or subprocess.run([folder / "probe"], env=NO_PRELOAD, capture_output=True).returncode:
        pytest.skip(f"{name} cannot build and run with the sanitizers")
    return path


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_core(name, objects, tmp_path):
    compiler_with_sanitizers(name, tmp_path)
    made = compiled(objects, name, SANITIZED, [*core_sources(), *own_sources()])
    program = link(name, SANITIZED, made, tmp_path / "test_core")
    ran = subprocess.run([program], capture_output=True, text=True, env=NO_PRELOAD, timeout=300, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith(" checks, 0 failed\n")
