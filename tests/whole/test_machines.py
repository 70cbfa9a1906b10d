# SPDX-License-Identifier: Apache-2.0
"""The C core on each machine of tests/support/machines.py: it reads the same, and runs models to the same bits."""

import importlib.util
import shutil
import subprocess
import sys

import pytest
import zoo
from c_sources import CORE, SOURCES, core_sources, own_sources, sources
from compiled import FLAGS
from machines import HOST, MACHINES, ROOT, parameters


@pytest.fixture
def machine(request, tmp_path_factory, monkeypatch):
    missing = request.param.missing()
    if missing:
        pytest.skip(f"no {missing} (packages {request.param.packages})")
    # wine makes its folders there, once for all tests of a run
    monkeypatch.setenv("WINEPREFIX", str(tmp_path_factory.getbasetemp().parent / "wine"))
    return request.param


def test_rows_have_names_of_their_own():
    assert len({machine.name for machine in [HOST, *MACHINES]}) == len(MACHINES) + 1


@pytest.mark.parametrize("machine", parameters(), indirect=True)
def test_core(machine, objects, tmp_path):
    program = machine.build(objects, [*core_sources(), *own_sources()], tmp_path / "core")
    assert machine.run(program, folder=tmp_path).endswith(" checks, 0 failed\n")


@pytest.mark.parametrize("machine", parameters(), indirect=True)
def test_kernels(machine, objects, tmp_path):
    """Every row of the kernels' tables that the machine has, against the scalar one."""
    for name, least in [("variants", 10000), ("products", 300)]:
        program = machine.build(objects, [ROOT / f"tests/c/{name}.c", *SOURCES], tmp_path / name)
        assert int(machine.run(program, *(["300"] if name == "products" else [])).split()[0]) >= least


# ---- files ----


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    for name, data in zoo.MODELS.items():
        (folder / name).write_bytes(data)
    return [*sorted(folder.iterdir()), ROOT / "tq/demo.tflite"]


def replayer(machine, objects, folder):
    files = sources("fuzz_model.c", "fuzz_walk.c", "fuzz_rewrite.c", "replay.c")
    return machine.build(objects, files, folder / machine.name)


@pytest.mark.parametrize("machine", parameters(), indirect=True)
def test_reads_what_the_host_reads(machine, objects, tmp_path, seeds):
    here, there = replayer(HOST, objects, tmp_path), replayer(machine, objects, tmp_path)
    digests = HOST.run(here, "digest", *seeds)
    assert len(set(digests.split())) > len(seeds) / 2
    assert machine.run(there, "digest", *seeds) == digests
    machine.run(there, "run", *seeds)
    machine.run(there, "truncate", *seeds)
    machine.run(there, "havoc", 3, 300, *seeds)


# ---- models ----


@pytest.fixture(scope="module")
def models(tmp_path_factory, seeds):
    """The made models, and a random one of each operator and kind of types."""
    import differential
    import generators

    folder = tmp_path_factory.mktemp("models")
    for operator, kind in generators.rows():
        (folder / f"{operator}-{kind}").write_bytes(differential.draw(operator, kind, 5, 0).model)
    return [*seeds, *sorted(folder.iterdir())]


def results(machine, objects, folder, models):
    """The outcome of each model: {(name, numerics): (status, digest)}."""
    sources = [ROOT / "tests/c/models.c", *CORE]
    program = machine.build(objects, sources, folder / f"{machine.name}-models", "-O0")  # all of the core: in seconds
    lines = "".join(machine.run(program, *models[i : i + 50]) for i in range(0, len(models), 50))
    fields = [line.split() for line in lines.splitlines()]
    return {(row[0], *row[1:2]): tuple(row[2:]) for row in fields}


@pytest.mark.slow
@pytest.mark.parametrize("machine", parameters(tier=False), indirect=True)
def test_runs_models_as_the_host_does(machine, objects, tmp_path, models):
    """Bit for bit, or not at all; those of the C library's own functions may differ where that is another."""
    here = results(HOST, objects, tmp_path, models)
    there = results(machine, objects, tmp_path, models)
    assert here.keys() == there.keys()
    assert sum(row[:1] == ("OK",) for row in here.values()) > 300
    if not machine.runs_models:
        assert {row[0] for row in there.values() if row} <= {"MACHINE"}
        return
    different = sorted({key[0] for key in here if here[key] != there[key]})
    assert [name for name in different if not machine.may_differ(name)] == []


# ---- what is refused ----


@pytest.mark.parametrize(
    ("compiler", "flags", "said"),
    [
        ("gcc", ["-ffast-math"], "-ffast-math"),
        ("gcc", ["-U__GNUC__"], "mingw-w64"),
        ("i686-linux-gnu-gcc", ["-mno-sse"], "-msse2 -mfpmath=sse"),
        ("i686-linux-gnu-gcc", ["-msse2"], "-msse2 -mfpmath=sse"),
    ],
)
def test_compilers_without_the_arithmetic_are_refused(compiler, flags, said):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    command = [compiler, *FLAGS, *flags, "-fsyntax-only", ROOT / "src/base/status.c"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0
    assert said in done.stderr


def test_microsofts_compiler_is_refused():
    """In a process of its own: setuptools must come before whatever imports distutils."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    program = """
import runpy, types, setuptools
said = {}
setuptools.setup = lambda **given: said.update(given)
runpy.run_path("setup.py")
command = said["cmdclass"]["build_ext"](setuptools.Distribution())
command.compiler = types.SimpleNamespace(compiler_type="msvc")
command.build_extensions()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "mingw-w64" in done.stderr
