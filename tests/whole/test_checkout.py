# SPDX-License-Identifier: Apache-2.0
"""tq works in the folder where it was installed from: the sources there stand in front of the installed package."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
import readme
from document_program import program
from repository import committed

import tq
from tq import _core

ROOT = Path(__file__).parents[2]
EXTENSION = Path(_core.__file__).name


def copy_to(folder, *, whole=True):
    """A checkout as it is after cloning.  whole: with the C core; else with the smallest extension in its place."""
    for path in committed():
        name = path.relative_to(ROOT)
        if name.parts[0] in ("src", "schema", "tests", "benchmarks") and not whole:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, folder / name)
    if not whole:
        (folder / "src").mkdir()
        (folder / "src" / "core.c").write_text(
            "#include <Python.h>\n"
            'static struct PyModuleDef core = {PyModuleDef_HEAD_INIT, "tq._core", NULL, -1, NULL};\n'
            "PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&core); }\n"
        )
    return folder


def run(*command, folder, **changes):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return subprocess.run(
        list(map(str, command)), cwd=folder, env={**environment, **changes}, capture_output=True, encoding="utf-8",
        timeout=1800,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """With the extension that this Python has, as building leaves it."""
    folder = copy_to(tmp_path_factory.mktemp("checkout"))
    shutil.copyfile(_core.__file__, folder / "tq" / EXTENSION)
    return folder


def test_every_example_of_the_readme_runs_in_the_checkout(checkout):
    text, last = program("README.md")
    done = run(sys.executable, "-c", text, folder=checkout)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"block {last}\n" in done.stdout


def test_the_command_runs_in_the_checkout(checkout):
    done = run(sys.executable, "-m", "tq", "--version", folder=checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tq {tq.__version__}\n", "")


def test_a_checkout_that_is_not_built_says_what_to_run(tmp_path):
    shutil.copytree(ROOT / "tq", tmp_path / "tq", ignore=shutil.ignore_patterns("_core.*"))
    done = run(sys.executable, "-c", "import tq", folder=tmp_path)
    wanted = f"ImportError: tq is not built for this Python here: run 'python -m pip install .' in {tmp_path}"
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == wanted


needs_setuptools = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("setuptools", "wheel", "pip")),
    reason="needs setuptools, wheel and pip",
)


def build(folder, kind, **changes):
    """Builds a wheel or an sdist without asking the network; its files."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('out')"
    (folder / "out").mkdir(exist_ok=True)
    done = run(sys.executable, "-c", code, folder=folder, **changes)
    assert done.returncode == 0, done.stderr[-2000:]
    (made,) = (folder / "out").glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return zipfile.ZipFile(made).namelist() if kind == "wheel" else tarfile.open(made).getnames()


@needs_setuptools
@pytest.mark.skipif(sys.platform == "win32", reason="the flags are a POSIX compiler's")
def test_building_leaves_the_extension_beside_the_sources_and_once_in_what_is_shipped(tmp_path):
    copy_to(tmp_path, whole=False)
    earlier = tmp_path / "tq" / EXTENSION
    earlier.write_bytes(b"of another build")
    os.utime(earlier, (time.time() + 60,) * 2)  # no older than the new one
    first = build(tmp_path, "wheel")
    assert [path.name for path in (tmp_path / "tq").glob("_core.*") if path.suffix != ".pyi"] == [EXTENSION]
    again = build(tmp_path, "wheel")  # now that it lies there
    for names in (first, again):
        assert [name for name in names if name.endswith((".so", ".pyd"))] == [f"tq/{EXTENSION}"]
    assert not [name for name in build(tmp_path, "sdist") if name.endswith((".so", ".pyd"))]
    done = run(sys.executable, "-c", "import tq._core; print(tq._core.__file__)", folder=tmp_path)
    assert "cannot import name" in done.stderr  # tq's Python parts ask the smallest extension for more than it has


def metadata(folder, **changes):
    """The METADATA of a wheel, the files beside it, and what setuptools prints."""
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('out'))"
    (folder / "out").mkdir(exist_ok=True)
    done = run(sys.executable, "-c", code, folder=folder, **changes)
    assert done.returncode == 0, done.stderr[-2000:]
    made = folder / "out" / done.stdout.splitlines()[-1]
    files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    return (made / "METADATA").read_text("utf-8"), files, done.stdout + done.stderr


@needs_setuptools
def test_the_sdist_has_all_files_of_the_repository(tmp_path):
    """And so passes the tests, some of which read the documents and the READMEs of folders."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("git knows the repository's files")
    folder = copy_to(tmp_path)
    wanted = {path.relative_to(ROOT).as_posix() for path in committed()}
    for name in wanted:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    names = {name.partition("/")[2] for name in build(folder, "sdist")}
    assert wanted - names == set()


@needs_setuptools
def test_the_licence_is_stated_as_spdx_and_its_files_are_shipped(tmp_path):
    text, files, said = metadata(copy_to(tmp_path, whole=False))
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert {"licenses/LICENSE", "licenses/NOTICE"} <= set(files)
    assert "deprecated" not in said.lower()


@needs_setuptools
def test_links_of_a_release_are_absolute(tmp_path):
    """A package index shows README.md without the repository's files."""
    folder = copy_to(tmp_path, whole=False)
    place = "https://host.invalid/owner/tq/blob/v1"
    text, _files, _said = metadata(folder, TQ_REPOSITORY=place)
    links = re.findall(r"\]\(([^)]*)\)", text.split("\n\n", 1)[1])
    assert len(links) > 20 and all(link.startswith("https://") for link in links)
    assert f"({place}/docs/guide.md)" in text and f"({place.replace('/blob/', '/raw/')}/docs/overview.svg)" in text
    assert "Project-URL: Source, https://host.invalid/owner/tq\n" in text
    plain, _files, _said = metadata(folder)
    assert "](docs/guide.md)" in plain and "Project-URL" not in plain


@needs_setuptools
@pytest.mark.skipif(sys.platform == "win32", reason="the flags are a POSIX compiler's")
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_sources_that_cannot_be_written_do_not_keep_it_from_building(tmp_path):
    copy_to(tmp_path, whole=False)
    (tmp_path / "tq").chmod(0o555)
    try:
        assert f"tq/{EXTENSION}" in build(tmp_path, "wheel")
    finally:
        (tmp_path / "tq").chmod(0o755)


@pytest.mark.slow
def test_the_readme_in_a_fresh_clone_and_environment(tmp_path):
    """`.ci/run` does the same for each change."""
    folder = copy_to(tmp_path / "tq")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    path = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    readme.run(folder, {**os.environ, "PATH": path})
