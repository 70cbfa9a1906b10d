# SPDX-License-Identifier: Apache-2.0
"""The shape of the house: which room may include which, what is exported, what an import costs."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import operator_files
import pytest
from compiled import SANITIZED, compiled
from repository import committed

import tq
from tq import _core

ROOT = Path(__file__).parents[2]
# A room includes only itself and these.  Two wings, files and numbers, stand on base and meet in ops.
FILES, NUMBERS = ["base", "flatbuffer", "model"], ["base", "quant", "kernels"]
BELOW = {
    "base": [],
    "flatbuffer": ["base"],
    "model": ["base", "flatbuffer"],
    "quant": ["base"],
    "kernels": ["base", "quant"],
    "ops": [*FILES, *NUMBERS],
    "delegate": [*FILES, *NUMBERS, "ops"],
    "runtime": [*FILES, *NUMBERS, "ops", "delegate"],
    "convert": [*FILES, *NUMBERS],
    "python": [*FILES, *NUMBERS, "ops", "delegate", "runtime", "convert"],
}
# In a room with families: a family includes and calls its room's own files and families before it.
FAMILIES = {
    "kernels": ["elementwise", "arrays", "gemm", "depthwise"],
    "model": ["problems"],
    "ops": [
        "elementwise",
        "movement",
        "reductions",
        "search",
        "products",
        "recurrent",
        "random",
        "signal",
        "detection",
    ],
    "python": ["arrays", "model", "edit", "interpreter"],
}
# Tables of functions that their room's families define.
LISTS = {ROOT / "src/kernels/kernels.c", ROOT / "src/python/module.c"}
ROOMS = list(BELOW)
SOURCES = sorted(path for suffix in ("c", "h", "def") for path in (ROOT / "src").rglob(f"*.{suffix}"))


def text_of(path):
    return path.read_text(encoding="utf-8")


def includes(path):
    return re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', text_of(path), re.MULTILINE)


def name(path):
    return str(path.relative_to(ROOT))


def room_of(path):
    """The first folder below src; "" for a file of src itself."""
    parts = path.relative_to(ROOT / "src").parts
    return parts[0] if len(parts) > 1 else ""


def family_of(path):
    """The second folder below src; "" for a file of a room itself."""
    parts = path.relative_to(ROOT / "src").parts
    return parts[1] if len(parts) > 2 else ""


def may_call(path, other):
    """Whether what `path` calls may be defined in `other`, by rooms and families."""
    room = room_of(path)
    if room_of(other) != room or not family_of(other) or path in LISTS:
        return room_of(other) in {room, *BELOW[room]}
    order = ["", *FAMILIES[room]]
    return order.index(family_of(other)) <= order.index(family_of(path))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_rooms_include_only_rooms_below_them(path):
    room = room_of(path)
    for header in includes(path):
        first = header.split("/")[0]
        if first in ROOMS:
            assert room == "" or first == room or first in BELOW[room], f"{name(path)} includes {header}"
            assert (ROOT / "src" / header).is_file(), header


# A test of the arrows that the linker sees: a header may declare what a room above defines.
needs_objects = pytest.mark.skipif(
    "LD_PRELOAD" in os.environ or not (shutil.which("nm") and shutil.which("clang")),
    reason="needs nm, clang, and objects that a run without a preloaded library compiles",
)


@pytest.fixture(scope="module")
def calls(objects):
    """(file, symbol, file that defines it) below `python`, of the objects of tests/runtime/test_impossible.py.

    Nothing below `python` finds its symbols there, so none may be missing.
    """
    core = [path for path in SOURCES if path.suffix == ".c" and room_of(path) != "python"]
    defined, needed = {}, []
    for path, made in zip(core, compiled(objects, "clang", SANITIZED, core), strict=True):
        listed = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
        for kind, symbol in re.findall(r"(?m)^[0-9a-f ]+ (\w) (tq_\w+)$", listed):
            if kind == "U":
                needed.append((path, symbol))
            elif kind.isupper():
                defined[symbol] = path
    assert len(needed) > 1000
    return [(path, symbol, defined[symbol]) for path, symbol in needed]


@needs_objects
def test_rooms_and_families_call_only_what_is_below_them(calls):
    wrong = [call for call in calls if not may_call(call[0], call[2])]
    assert [f"{name(path)} needs {symbol} of {name(other)}" for path, symbol, other in wrong] == []


def circles(arrows):
    """The sets of nodes that reach one another; arrows: a node to its targets."""

    def reach(start):
        found, rest = set(), [start]
        while rest:
            new = arrows.get(rest.pop(), set()) - found
            found |= new
            rest += new
        return found

    reached = {node: reach(node) for node in arrows}
    return {frozenset(other for other in reached[node] if node in reached.get(other, ())) for node in arrows} - {
        frozenset()
    }


@needs_objects
def test_files_of_ops_form_no_circle(calls):
    """A file and its header are one: each includes and calls only files that need it nowhere."""
    arrows = {}
    for path in SOURCES:
        for header in includes(path):
            arrows.setdefault(path.with_suffix(""), set()).add((ROOT / "src" / header).with_suffix(""))
    for path, _, other in calls:
        arrows.setdefault(path.with_suffix(""), set()).add(other.with_suffix(""))
    arrows = {file: others - {file} for file, others in arrows.items() if room_of(file) == "ops"}
    assert [sorted(map(name, circle)) for circle in circles(arrows)] == []


IN_FAMILIES = [path for path in SOURCES if room_of(path) in FAMILIES and path not in LISTS]


@pytest.mark.parametrize("path", IN_FAMILIES, ids=name)
def test_families_include_only_families_above(path):
    room, family = room_of(path), family_of(path)
    allowed = FAMILIES[room][: FAMILIES[room].index(family) + 1] if family else []
    for header in includes(path):
        if header.startswith(f"{room}/") and header.count("/") > 1:
            assert header.split("/")[1] in allowed, f"{name(path)} includes {header}"


def test_every_family_says_what_it_is():
    folders = {(room, path.name) for room in FAMILIES for path in (ROOT / "src" / room).iterdir() if path.is_dir()}
    assert folders == {(room, family) for room, families in FAMILIES.items() for family in families}
    for room, family in folders:
        assert (ROOT / "src" / room / family / "README.md").is_file()


# Where LiteRT's schema classes stand in tests: as an oracle, or for files that tq would not write.
ORACLES = {
    "test_builder.py",
    "test_details.py",
    "test_netron.py",
    "test_schema.py",
    "test_writer.py",
    "equal_models.py",
}
ODD_FILES = {"test_damaged_files.py", "problem_cases.py", "zoo.py"}


def test_tests_make_their_models_with_the_builder():
    borrowed = re.compile(r"^\s*(?:import|from) ai_edge_litert(?:\.| import )schema_py_generated", re.MULTILINE)
    found = {path.name for path in (ROOT / "tests").rglob("*.py") if borrowed.search(text_of(path))}
    assert found == ORACLES | ODD_FILES, "tests/support/models.py makes models, with tq.ModelBuilder"


def test_every_folder_of_src_is_a_room():
    assert {path.name for path in (ROOT / "src").iterdir() if path.is_dir()} <= set(ROOMS)


def test_every_room_says_what_it_is():
    missing = [
        room for room in ROOMS if (ROOT / "src" / room).is_dir() and not (ROOT / "src" / room / "README.md").is_file()
    ]
    assert missing == []


def test_the_table_of_operators_names_their_files():
    assert operator_files.document(text_of(operator_files.README)) == text_of(operator_files.README), (
        "python tests/support/operator_files.py makes the table anew"
    )


PACKAGES = [ROOT / "tq", *sorted(path.parent for path in (ROOT / "tq").glob("*/__init__.py"))]


@pytest.mark.parametrize("folder", PACKAGES, ids=name)
def test_every_module_says_where_it_belongs(folder):
    said = set(re.findall(r"`(\w+\.py)`", text_of(folder / "README.md")))
    modules = {path.name for path in folder.glob("*.py")} - ({"__init__.py"} if folder.name != "tq" else set())
    assert said == modules


def parsed(path):
    return ast.parse(text_of(path))


QUANTIZER = sorted((ROOT / "tq" / "quantization").glob("*.py"))
EDITOR = sorted((ROOT / "tq" / "editing").glob("*.py"))


@pytest.mark.parametrize("path", [*QUANTIZER, *EDITOR], ids=name)
def test_the_quantizer_and_the_editor_use_public_names_of_other_modules(path):
    """`x._name` where no class or function of the module itself defines or stores `_name`."""
    tree = parsed(path)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")}
    named = {"_asdict", "_replace", "_fields", "_file"}  # NamedTuple's, and the core's for the editor
    used = {node.attr for node in attributes if re.match(r"_[a-z]", node.attr)} - own - named
    core = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "_core"}
    assert used - core == set()


@pytest.mark.parametrize("path", QUANTIZER, ids=name)
def test_the_quantizer_needs_no_ignored_type_and_no_late_import_of_its_own(path):
    assert "type: ignore" not in text_of(path)
    inside = [item for item in ast.walk(parsed(path)) if isinstance(item, ast.FunctionDef)]
    late = [node.module for item in inside for node in ast.walk(item) if isinstance(node, ast.ImportFrom)]
    assert [module for module in late if module.startswith("tq.quantization")] == []


def imported(path):
    """The modules of tq that a module imports, also late and for types."""
    found = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)]
    for node in found:
        if node.module == "tq":
            yield from (f"tq.{alias.name}" for alias in node.names)
        elif node.module and node.module.startswith("tq."):
            yield node.module


def test_packages_import_only_packages_above_them():
    """In the order of the table in tq/README.md; what stands in tq itself imports none of them."""
    order = re.findall(r"^\| `(\w+)` \|", text_of(ROOT / "tq" / "README.md"), re.MULTILINE)
    assert sorted(order) == [folder.name for folder in PACKAGES[1:]]
    doors = {"__init__.py", "__main__.py", "pytest_plugin.py"}
    wrong = []
    for path in sorted((ROOT / "tq").rglob("*.py")):
        parts = path.relative_to(ROOT / "tq").parts
        if len(parts) == 1 and path.name in doors:
            continue
        above = order[: order.index(parts[0]) + 1] if len(parts) > 1 else []
        packages = [module.split(".")[1] for module in imported(path)]
        wrong += [
            f"{name(path)} imports {package}" for package in packages if package in order and package not in above
        ]
    assert wrong == []


def test_the_quantizers_modules_import_only_modules_above_them():
    order = re.findall(r"`(\w+)\.py`", text_of(ROOT / "tq" / "quantization" / "README.md").split("|---|---|")[1])
    place = {module: order.index(module) for module in order}
    place["quantize"] = place["improve"] + 0.5  # it stands first because users begin there
    wrong = []
    for path in QUANTIZER:
        found = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom) and node.module]
        modules = [node.module.split(".")[-1] for node in found if node.module.startswith("tq.quantization.")]
        modules += [alias.name for node in found if node.module == "tq.quantization" for alias in node.names]
        wrong += [(path.stem, module) for module in modules if place[module] >= place[path.stem]]
    assert wrong == []


@pytest.mark.parametrize("path", [path for path in committed() if path.suffix == ".md"], ids=name)
def test_documents_name_what_there_is(path):
    """Links that stay in the repository, and paths of its folders in code marks, `*` among them."""
    text = text_of(path)
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
    paths = re.findall(r"`((?:benchmarks|docs|schema|src|tests|tq)/[\w./*]+)`", text)
    assert [item for item in paths if not list(ROOT.glob(item.rstrip("/")))] == []


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_binding_knows_python(path):
    if room_of(path) != "python":
        headers = includes(path)
        assert "Python.h" not in headers
        assert not any("numpy" in header for header in headers)
        assert "PyObject" not in text_of(path)


C_FILES = [path for path in committed() if path.suffix in (".c", ".h", ".def")]


def test_one_header_asks_the_system_for_more_than_c11():
    """macOS hides madvise and others from a file that asks for POSIX by name."""
    asks = re.compile(r"^#\s*define _\w+_SOURCE\b", re.MULTILINE)
    assert [name(path) for path in C_FILES if asks.search(text_of(path))] == ["src/base/system.h"]


def test_files_that_ask_for_more_do_so_before_all_else():
    """It changes what the system's headers declare."""
    users = [path for path in C_FILES if "base/system.h" in includes(path)]
    assert len(users) >= 6
    assert [name(path) for path in users if includes(path)[0] != "base/system.h"] == []


def test_nobody_calls_the_c_librarys_round():
    """mingw-w64's rounds the number below 1/2 to 1: tq_round_f32 and tq_round_f64 do not."""
    calls = re.compile(r"(?<![\w`])(?:l{0,2}round\(|l{0,2}roundf\b|(?<=POINTS\(double, )round\b)")
    comments = re.compile(r"/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL)
    assert [name(path) for path in SOURCES if calls.search(comments.sub("", text_of(path)))] == []


def test_every_source_begins_with_its_license():
    expected = {
        **dict.fromkeys([".c", ".h", ".def"], "/* SPDX-License-Identifier: Apache-2.0"),
        **dict.fromkeys([".py", ".pyi"], "# SPDX-License-Identifier: Apache-2.0"),
    }
    files = [path for path in committed() if path.suffix in expected]
    assert len(files) > 40
    wrong = [name(path) for path in files if not text_of(path).startswith(expected[path.suffix])]
    assert wrong == []


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizer builds export more")
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="needs nm")
def test_only_the_init_function_is_exported():
    listed = subprocess.run(["nm", "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    symbols = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert symbols - {"_init", "_fini"} == {"PyInit__core"}


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("ldd"), reason="needs ldd")
def test_the_extension_needs_libc_libm_and_threads_alone():
    listed = subprocess.run(["ldd", _core.__file__], capture_output=True, text=True, check=True).stdout
    libraries = {line.split()[0].split("/")[-1].split(".so")[0] for line in listed.splitlines()}
    allowed = {"linux-vdso", "libc", "libm", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64", "libgcc_s"}
    assert libraries - allowed - {"libasan", "libubsan", "libstdc++", "librt", "libresolv"} == set()


def test_importing_tq_imports_nothing_heavy():
    where = str(Path(_core.__file__).parents[1])
    program = f"""
import sys
sys.path.insert(0, {where!r})
import numpy
before = set(sys.modules)
import tq
print(*(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    new = set(done.stdout.split())
    heavy = {"argparse", "html", "json", "matplotlib", "ml_dtypes", "typing_extensions", "unittest", "dataclasses"}
    assert {item for item in new if item.split(".")[0] in heavy} == set()
    assert len({item for item in new if not item.startswith("tq")}) <= 4, new


def test_completion_offers_what_tq_promises_and_no_module_behind_it():
    offered = {name for name in dir(tq) if not name.startswith("__")}
    assert offered == {name for name in tq.__all__ if not name.startswith("__")}
    assert all(getattr(tq, name) is not None for name in offered)


@pytest.mark.slow
def test_the_wheel_is_small(tmp_path):
    """A stripped wheel under 2 MB, which holds what it must."""
    import zipfile

    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, ROOT]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 2_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tq/py.typed", "tq/_core.pyi", "tq/__init__.py"} <= set(names)
    assert any(re.fullmatch(r"tq/_core\..*", item) and not item.endswith(".pyi") for item in names)
    assert not any(item.startswith(("tests/", "src/", "benchmarks/")) for item in names)
