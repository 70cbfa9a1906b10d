# SPDX-License-Identifier: Apache-2.0
"""Builds tq._core.  Everything else about the package stands in pyproject.toml.

TQ_CFLAGS adds compiler flags (a sanitizer, -Werror); they come last, so that they win.
"""

import os
import shlex
import sys
from pathlib import Path

import numpy
from setuptools import Extension, setup

ROOT = Path(__file__).parent

if sys.platform == "win32":
    FLAGS = ["/std:c11", "/O2", "/fp:precise"]
    LINK = []
else:
    # -ffp-contract=off: a*b+c is two roundings unless a kernel says otherwise.
    # -fvisibility=hidden: only the module's init symbol is exported.
    FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"]
    LINK = ["-lm", "-pthread"]
    if sys.platform == "linux" and "-fsanitize" not in os.environ.get("TQ_CFLAGS", ""):
        LINK += ["-Wl,-s"]  # no debug symbols in what people install
EXTRA = shlex.split(os.environ.get("TQ_CFLAGS", ""))


def files(*patterns):
    return sorted(str(p.relative_to(ROOT)) for pattern in patterns for p in ROOT.glob(pattern))


setup(
    ext_modules=[
        Extension(
            "tq._core",
            sources=files("src/**/*.c"),
            depends=files("src/**/*.h", "src/**/*.def", "schema/*"),
            include_dirs=["src", ".", numpy.get_include()],
            define_macros=[
                ("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION"),
                ("NPY_TARGET_VERSION", "NPY_1_23_API_VERSION"),
            ],
            extra_compile_args=FLAGS + EXTRA,
            extra_link_args=LINK + EXTRA,
        )
    ]
)
