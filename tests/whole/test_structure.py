# SPDX-License-Identifier: Apache-2.0
"""The shape of the house: which room may include which, what is exported, what an import costs."""

import ast
import graphlib
import importlib.util
import os
import platform
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
    "kernels": ["elementwise", "arrays", "gemm", "winograd", "depthwise", "blockwise", "rounding"],
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


@pytest.fixture(scope="module")
def symbols(objects):
    """What the linker sees of the core: {symbol: the file that defines it}, [(file, symbol that it needs)].

    The objects are those of tests/runtime/test_impossible.py.
    """
    if "LD_PRELOAD" in os.environ:
        pytest.skip("its objects are compiled by a run without a preloaded library")
    if not (shutil.which("nm") and shutil.which("clang")):
        pytest.skip("needs nm and clang")
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
    return defined, needed


def test_rooms_and_families_call_only_what_is_below_them(symbols):
    """No room below `python` finds python's symbols here, so none may be missing."""
    defined, needed = symbols
    wrong = [(path, symbol) for path, symbol in needed if not may_call(path, defined[symbol])]
    assert [f"{name(path)} needs {symbol} of {name(defined[symbol])}" for path, symbol in wrong] == []


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


def test_files_of_ops_form_no_circle(symbols):
    """A file and its header are one: each includes and calls only files that need it nowhere."""
    defined, needed = symbols
    arrows = {}
    for path in SOURCES:
        for header in includes(path):
            arrows.setdefault(path.with_suffix(""), set()).add((ROOT / "src" / header).with_suffix(""))
    for path, symbol in needed:
        arrows.setdefault(path.with_suffix(""), set()).add(defined[symbol].with_suffix(""))
    arrows = {file: others - {file} for file, others in arrows.items() if room_of(file) == "ops"}
    assert [sorted(map(name, circle)) for circle in circles(arrows)] == []


def test_headers_declare_what_their_own_folder_defines(symbols):
    defined, _ = symbols
    words = {path: set(re.findall(r"\btq_\w+", declarations(path))) for path in SOURCES if path.suffix == ".h"}
    wrong = [
        f"{name(header)} declares {symbol} of {name(defined[symbol])}"
        for header, found in words.items()
        for symbol in sorted(found & defined.keys())
        if defined[symbol].parent != header.parent
    ]
    assert len(set.union(*words.values()) & defined.keys()) > 500
    assert wrong == []


def declarations(path):
    """The lines of a header that declare functions and arrays: none of comments, nor of bodies, which are indented."""
    text = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.DOTALL)
    return "\n".join(re.findall(r"(?m)^\w[^#{}=;]*\b(tq_\w+)\s*[(\[;]", text))


def test_no_file_needs_itself_through_others(symbols):
    """Neither headers by their includes, nor C files by their symbols, form a circle."""
    defined, needed = symbols
    headers = {path: {ROOT / "src" / header for header in includes(path)} for path in SOURCES if path.suffix == ".h"}
    calls = {}
    for path, symbol in needed:
        if defined.get(symbol, path) != path:
            calls.setdefault(path, set()).add(defined[symbol])
    for arrows in (headers, calls):
        graphlib.TopologicalSorter(arrows).prepare()


IN_FAMILIES = [path for path in SOURCES if room_of(path) in FAMILIES and path not in LISTS]


@pytest.mark.parametrize("path", IN_FAMILIES, ids=name)
def test_families_include_only_families_above(path):
    room, family = room_of(path), family_of(path)
    allowed = FAMILIES[room][: FAMILIES[room].index(family) + 1] if family else []
    for header in includes(path):
        if header.startswith(f"{room}/") and header.count("/") > 1:
            assert header.split("/")[1] in allowed, f"{name(path)} includes {header}"


def test_every_folder_with_families_orders_them():
    folders = {(room, path.name) for room in FAMILIES for path in (ROOT / "src" / room).iterdir() if path.is_dir()}
    assert folders == {(room, family) for room, families in FAMILIES.items() for family in families}


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


def test_every_folder_says_what_it_is():
    """A README.md in each folder of src and tq, and one for all of tests."""
    folders = {path.parent for path in committed() if path.relative_to(ROOT).parts[0] in ("src", "tq")}
    assert len(folders) > 25
    assert [name(folder) for folder in sorted(folders) if not (folder / "README.md").is_file()] == []


def test_the_tests_readme_names_every_folder_and_every_module_of_support():
    named = set(re.findall(r"`([\w.]+)`", text_of(ROOT / "tests" / "README.md")))
    parts = [path.relative_to(ROOT / "tests").parts for path in committed() if path.is_relative_to(ROOT / "tests")]
    folders = {folder for folder, *below in parts if below}
    support = {below[0] for folder, *below in parts if folder == "support"}
    assert (folders | support) - named == set()


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


MODULES = sorted((ROOT / "tq").rglob("*.py"))
QUANTIZER = [path for path in MODULES if path.parent.name == "quantization"]

PUBLIC_BY_CONVENTION = {"_asdict", "_replace", "_fields"}  # NamedTuple's
OF_LITERT = {"_get_op_details", "_get_ops_details"}  # LiteRT's interpreters have no public name for these


def private_names_of_the_core():
    """Names that the core gives tq's Python and no user."""
    return set(re.findall(r"\b_[a-zA-Z]\w*", text_of(ROOT / "tq" / "_core.pyi")))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_use_public_names_of_other_modules(path):
    """No `x._name` and no import of `_name` where the module itself neither defines nor stores `_name`."""
    tree = parsed(path)
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")}
    used = {node.attr for node in attributes} - own
    used |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    private = {item for item in used if re.match(r"_[a-zA-Z]", item)} - {"_core"}
    assert private - PUBLIC_BY_CONVENTION - OF_LITERT - private_names_of_the_core() == set()


# Modules that import others of tq inside functions, to stay fast: tq/README.md says why.
LATE = {
    "tq/calibration/__init__.py",
    "tq/cli/checking.py",
    "tq/cli/commands.py",
    "tq/cli/editing.py",
    "tq/cli/peaks.py",
    "tq/cli/quantize.py",
    "tq/cli/running.py",
    "tq/cli/samples.py",
    "tq/cli/viewing.py",
    "tq/quantization/equalization.py",
    "tq/quantization/plan.py",
    "tq/running/interpreter.py",
}


def test_modules_import_at_their_top():
    late = set()
    for path in MODULES:
        functions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]
        inside = [node for item in functions for node in ast.walk(item) if isinstance(node, ast.ImportFrom)]
        late |= {path.relative_to(ROOT).as_posix() for node in inside if (node.module or "").split(".")[0] == "tq"}
    assert late == LATE


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_type_is_ignored(path):
    assert "type: ignore" not in text_of(path)


@pytest.mark.parametrize("path", QUANTIZER, ids=name)
def test_the_quantizer_imports_its_own_modules_at_their_top(path):
    functions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]
    late = [node.module for item in functions for node in ast.walk(item) if isinstance(node, ast.ImportFrom)]
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


def module_name(path):
    """As other modules import it: support's modules and packages stand on Python's path, tests beside one another."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts if parts[0] == "tq" else parts[2:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path, files):
    """The modules among `files` (by name) that a module of tq or tests imports."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name(path)} has a relative import"
            modules = {f"{node.module}.{alias.name}" for alias in node.names} & files.keys() | {"tq._core"}
            yield from modules
            if any(f"{node.module}.{alias.name}" not in modules for alias in node.names):
                yield node.module


def test_modules_form_no_circle():
    """Neither in tq nor in tests; imports for types alone and imports in functions count."""
    files = {module_name(path): path for path in [*MODULES, *(ROOT / "tests").glob("*/**/*.py")]}
    arrows = {module: set(imports_of(path, files)) & files.keys() - {module} for module, path in files.items()}
    assert len(files) > 300 and sum(map(len, arrows.values())) > 1000
    assert [sorted(circle) for circle in circles(arrows)] == []


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


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("objdump"), reason="needs x86-64 and objdump")
def test_compilers_fuse_no_product_and_sum_of_complex_pairs():
    """gcc 12 does so for loops over real and imaginary parts, in spite of -ffp-contract=off; the source never does."""
    lines = subprocess.run(["objdump", "-d", _core.__file__], capture_output=True, text=True, check=True).stdout
    assert re.search(r"\bvfmadd\d+ps\b", lines)
    assert sorted(set(re.findall(r"\bvfm(?:addsub|subadd)\d*p[sd]\b", lines))) == []


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


def test_each_row_of_compiler_flags_and_precompiled_headers_has_sources():
    """In a process of its own: setuptools must come before whatever imports distutils."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    program = """
import runpy, setuptools
setuptools.setup = lambda **given: None
tables = runpy.run_path("setup.py")
print(*tables["LEVELS"], *(pattern.split("*")[0] for pattern in tables["PRECOMPILED"]), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("src/**/*.c")]
    rows = done.stdout.split()
    assert len(rows) > 10
    assert [row for row in rows if not any(source.startswith(row) for source in sources)] == []
