# SPDX-License-Identifier: Apache-2.0
"""Builds tq._core.  Everything else about the package stands in pyproject.toml.

TQ_CFLAGS adds compiler flags (a sanitizer, -Werror); they come last, so that they win.

TQ_REPOSITORY, at a release, is where the repository's files are read, with the release's tag:
https://HOST/OWNER/NAME/blob/v0.1.0.  The package's page links there; README.md itself has relative links, for readers
of the repository.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, FileError

ROOT = Path(__file__).parent

# -ffp-contract=off: a*b+c is two roundings unless a kernel says otherwise.
# -fno-math-errno, -fno-trapping-math: sqrtf sets no errno and comparisons raise no flags that anyone reads; no
# result changes, and loops become vectors.
# -fvisibility=hidden: only the module's init symbol is exported.
# -fno-asynchronous-unwind-tables: C needs none, and they are a twentieth of the wheel.
FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-asynchronous-unwind-tables",
    "-fvisibility=hidden",
]
LINK = ["-lm", "-pthread"]
if sys.platform == "linux" and "-fsanitize" not in os.environ.get("TQ_CFLAGS", ""):
    # No debug symbols in what people install: not even made, which takes as long as all other code.
    FLAGS += ["-g0"]
    LINK += ["-Wl,-s"]
# Where another level is as fast: the first row whose prefix a source has takes the place of -O3.  Rooms without long
# loops are smaller and sooner compiled at -O2, and at -O1 where they compute nothing.  Operators' loops are to become
# vectors, as at -O3, but are not to be split, unswitched and peeled, which doubles their code.  clang has one level
# that does the like, -O3.
VECTORS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic"]
# Passes that take a twentieth of the time and give these loops nothing.
LEAN = ["-fno-tree-vrp", "-fno-schedule-insns2", "-fno-gcse"]
# -O3 without its copies of loops and functions, which kernels of intrinsics have no use for: a tenth of their time.
UNCOPIED = ["-O3", "-fno-unswitch-loops", "-fno-split-loops", "-fno-peel-loops", "-fno-ipa-cp-clone"]
UNCOPIED += ["-fno-version-loops-for-strides", "-fno-loop-unroll-and-jam", "-fno-loop-interchange"]
UNCOPIED += ["-fno-tree-loop-distribution", "-fno-tree-partial-pre", "-fno-split-paths"]
UNCOPIED += ["-fno-gcse-after-reload", "-fno-predictive-commoning"]
# gcc clears records by `rep stos`, whose start takes as long as a small operator.  By vectors and calls in its place,
# nets of some microseconds run a twentieth faster.  x86 alone has the flag.
RECORDS = ["-mmemset-strategy=libcall:-1:noalign"]
# Of operators these lose up to a half of their speed without the copies.
COPIED = ["detection/", "movement/", "recurrent/", "signal/"]
COPIED += ["products/fully_connected_shuffled", "products/transpose_conv_gather"]
COPIED += ["reductions/pool.c", "reductions/reduce"]
LEVELS = {
    "src/ops/elementwise/div.c": ["-O3"],
    # Where a bound is chosen gcc computes what follows for it beforehand, and blends in place of a minimum.
    **{f"src/ops/elementwise/{name}.c": [*VECTORS, *LEAN, "-fno-tree-pre"] for name in ("mul", "unary")},
    # Threaded jumps split its loops over blocks of sums: hybrid convolutions run 1.2 times as fast without.  Partial
    # results that are passed on keep vectors from sixteen rows' parameters.
    "src/ops/products/hybrid": ["-O3", *LEAN, "-fno-thread-jumps", "-fno-tree-pre"],
    **{f"src/ops/{prefix}": ["-O3", *LEAN] for prefix in COPIED},
    "src/base/": ["-O2", *LEAN],
    "src/convert/": ["-O1"],
    "src/delegate/": ["-O1"],
    "src/flatbuffer/": ["-O2", *LEAN],
    "src/kernels/elementwise/elementwise_scalar": ["-O1"],
    # Coalesced, each accumulator is copied twice a step: 1.15 times the time.
    "src/kernels/blockwise/": [*UNCOPIED, "-fno-tree-coalesce-vars"],
    "src/kernels/elementwise/": UNCOPIED + LEAN,
    "src/kernels/": UNCOPIED,
    "src/model/": ["-O1"],
    "src/ops/": VECTORS + LEAN,
    "src/python/": ["-O1"],
    "src/quant/": VECTORS + LEAN,
    "src/runtime/": ["-O2", *LEAN],
}
# Headers that take longer to read than many a file to compile.  gcc reads them once for all files of a pattern, which
# include them first, and makes the same objects.
PRECOMPILED = {
    "src/kernels/arrays/fixed_16.c": "immintrin.h",
    "src/kernels/arrays/lookup.c": "immintrin.h",
    "src/kernels/blockwise/*_avx*.c": "immintrin.h",
    "src/kernels/depthwise/*_avx*.c": "immintrin.h",
    "src/kernels/float_arrays_avx*.c": "immintrin.h",
    "src/kernels/libm_arrays.c": "immintrin.h",
    "src/kernels/gemm/*_avx*.c": "immintrin.h",
    "src/kernels/winograd/*_avx*.c": "immintrin.h",
    "src/ops/*.c": "ops/check.h",
    "src/python/*/*.c": "python/state.h",
}
EXTRA = shlex.split(os.environ.get("TQ_CFLAGS", ""))
if "-Werror" in EXTRA:  # to look for warnings takes time too
    FLAGS += ["-Wall", "-Wextra", "-Wmissing-prototypes"]


REPOSITORY = os.environ.get("TQ_REPOSITORY", "").rstrip("/")


def long_description():
    """README.md, with absolute links where the address is known; a picture's is that of its bytes."""
    text = (ROOT / "README.md").read_text("utf-8")
    if not REPOSITORY:
        return text
    text = re.sub(r"(!\[[^]]*\])\((?!\w+:)", rf"\1({REPOSITORY.replace('/blob/', '/raw/')}/", text)
    return re.sub(r"\]\((?!\w+:|#)", f"]({REPOSITORY}/", text)


def project_urls():
    """Links for the package's page."""
    pages = {"Documentation": "docs/guide.md", "Changelog": "CHANGELOG.md", "Benchmarks": "benchmarks/README.md"}
    if not REPOSITORY:
        return {}
    source = REPOSITORY.split("/blob/")[0]
    return {"Source": source, "Issues": f"{source}/issues"} | {
        name: f"{REPOSITORY}/{path}" for name, path in pages.items()
    }


def files(*patterns):
    return sorted(str(p.relative_to(ROOT)) for pattern in patterns for p in ROOT.glob(pattern))


def flags_of(source, flags, clang):
    """The flags of one source, from those of all."""
    source = Path(source).as_posix()
    level = next((level for prefix, level in LEVELS.items() if source.startswith(prefix)), ["-O3"])
    if clang:  # its levels have no such parts
        level = ["-O3"] if "-ftree-vectorize" in level else level[:1]
    elif sysconfig.get_platform().endswith(("x86_64", "amd64")):
        level = level + RECORDS
    return [item for flag in flags for item in (level if flag == "-O3" else [flag])]


class ParallelBuild(build_ext):
    """Compiles several files at once: setuptools takes one after the other, and the kernels are large."""

    def finalize_options(self):
        import numpy  # here: pip runs this file twice before it builds

        super().finalize_options()
        self.include_dirs.append(numpy.get_include())

    def run(self):
        """Leaves the extension beside the sources too, where it can be written: these stand in front of what is
        installed for whoever runs Python in the checkout."""
        self.reads_headers_once = not self.inplace  # files that are compiled again and again have caches of compilers
        super().run()
        if not self.inplace:
            self.force = True  # times count whole seconds: an extension of the same second would stay
            with contextlib.suppress(OSError, FileError):
                self.copy_extensions_to_source()

    def build_extensions(self):
        compiler = self.compiler
        if compiler.compiler_type == "msvc":
            raise SystemExit(
                "tq needs gcc or clang, and this is Microsoft's compiler: with mingw-w64 on the PATH, run "
                "`python setup.py build_ext --compiler=mingw32`; docs/machines.md says which machines are tested"
            )
        compile_one, link, running = compiler._compile, compiler.link_shared_object, []
        clang = "clang" in subprocess.run([*compiler.compiler_so, "--version"], capture_output=True, text=True).stdout
        included = {}

        def compile_later(obj, source, extension, cc_args, flags, pp_opts):
            flags = flags_of(source, flags, clang)
            header = next((header for pattern, header in PRECOMPILED.items() if fnmatch(source, pattern)), None)
            if header and self.reads_headers_once and not clang:
                key = (header, *flags)
                if key not in included:
                    included[key] = precompiled(header, cc_args, flags, pp_opts)
                flags = included[key] + flags
            running.append(pool.submit(compile_one, obj, source, extension, cc_args, flags, pp_opts))

        def precompiled(header, cc_args, flags, pp_opts):
            """The flags that include a header compiled with these flags, or none where the compiler cannot."""
            folder = Path(self.build_temp, "precompiled", str(len(included)))
            folder.mkdir(parents=True, exist_ok=True)
            own, empty = folder / Path(header).name, folder / "empty.c"
            own.write_text(f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n")
            empty.write_text("")
            include = ["-include", str(own)]
            try:
                compile_one(f"{own}.gch", str(own), ".h", cc_args, flags, pp_opts)
                compile_one(f"{empty}.o", str(empty), ".c", cc_args, include + flags, pp_opts)
            except CompileError:
                return []
            return include

        def link_when_compiled(*args, **kwargs):
            for job in running:
                job.result()
            return link(*args, **kwargs)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiler._compile = compile_later
            compiler.link_shared_object = link_when_compiled
            super().build_extensions()


setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    project_urls=project_urls(),
    cmdclass={"build_ext": ParallelBuild},
    ext_modules=[
        Extension(
            "tq._core",
            sources=files("src/**/*.c"),
            depends=files("setup.py", "src/**/*.h", "src/**/*.def", "schema/*"),
            include_dirs=["src", "."],
            define_macros=[
                ("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION"),
                ("NPY_TARGET_VERSION", "NPY_1_23_API_VERSION"),
            ],
            extra_compile_args=FLAGS + EXTRA,
            extra_link_args=LINK + EXTRA,
        )
    ],
)
