# SPDX-License-Identifier: Apache-2.0
"""The machines and C libraries that the C core is tested for, beside the one that runs the tests: a row each.

A row compiles on any machine that has its compiler, and runs there by an emulator, or natively.  docs/machines.md says
what each row has shown.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from compiled import compiled, link

ROOT = Path(__file__).parents[2]


# Operators that call functions of the C library that no standard makes exact: docs/numerics.md.
OF_THE_LIBRARY = frozenset(
    [
        "AUDIO_SPECTROGRAM",
        "ATAN2",
        "COS",
        "ELU",
        "EXP",
        "GELU",
        "GRAPH",
        "LOCAL_RESPONSE_NORMALIZATION",
        "LOG",
        "LOGISTIC",
        "LOG_SOFTMAX",
        "LSTM",
        "MFCC",
        "NON_MAX_SUPPRESSION_V5",
        "PARTITION",
        "POW",
        "RANDOM_STANDARD_NORMAL",
        "REDUCE_PROD",
        "RFFT2D",
        "SIN",
        "SOFTMAX",
        "TANH",
    ]
)


@dataclass(frozen=True)
class Machine:
    name: str
    compiler: str
    packages: str  # of Debian
    emulators: tuple = ()  # any of them; none: its programs run here as they are
    flags: tuple = ()
    linker: str = ""  # the compiler, unless it says another
    linked: tuple = ("-static",)
    suffix: str = ""  # of programs
    runs_models: bool = True
    has_glibc: bool = True  # of 64 bits: its functions have the bits that LiteRT has
    slow: bool = True  # run by --slow alone
    environment: dict = field(default_factory=dict)

    def missing(self):
        """The tool that this machine's row lacks here, or None."""
        for tool in (self.compiler, self.linker or self.compiler):
            if not shutil.which(tool):
                return tool
        return None if not self.emulators or self.emulator() else " or ".join(self.emulators)

    def may_differ(self, model):
        """Whether a model of generators rests on functions that this machine's C library has otherwise."""
        return not self.has_glibc and model.split("-")[0] in OF_THE_LIBRARY

    def emulator(self):
        return next(filter(shutil.which, self.emulators), None)

    def build(self, objects, sources, program, optimize="-O2"):
        """The program's path."""
        made = compiled(objects, self.compiler, [optimize, *self.flags], sources)
        return link(self.linker or self.compiler, self.linked, made, program.with_suffix(self.suffix))

    def run(self, program, *arguments, seconds=600, folder=None):
        """The output of the program."""
        command = [*filter(None, [self.emulator()]), program, *arguments]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            errors="replace",
            cwd=folder,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout


def qemu(name):
    return (f"qemu-{name}", f"qemu-{name}-static")


HOST = Machine("host", "gcc", "gcc", linked=())
CLANG_ARM = ("--target=aarch64-linux-gnu",)
MACHINES = [
    Machine("aarch64", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu qemu-user", qemu("aarch64"), slow=False),
    Machine(
        "aarch64-clang",
        "clang",
        "clang gcc-aarch64-linux-gnu qemu-user",
        qemu("aarch64"),
        CLANG_ARM,
        "aarch64-linux-gnu-gcc",
    ),
    Machine("riscv64", "riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu qemu-user", qemu("riscv64")),
    Machine("s390x", "s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu qemu-user", qemu("s390x"), runs_models=False),
    Machine(
        "i686",
        "i686-linux-gnu-gcc",
        "gcc-i686-linux-gnu",
        flags=("-msse2", "-mfpmath=sse", "-Wno-type-limits"),
        has_glibc=False,
    ),
    Machine("musl", "musl-gcc", "musl-tools", has_glibc=False),
    Machine(
        "windows",
        "x86_64-w64-mingw32-gcc",
        "gcc-mingw-w64-x86-64 wine wine64",
        ("wine",),
        suffix=".exe",
        has_glibc=False,
        environment={"WINEDEBUG": "-all"},
    ),
]


def parameters(machines=MACHINES, tier=True):
    """For pytest.mark.parametrize; those of the slow tier marked so."""
    return [pytest.param(m, id=m.name, marks=[pytest.mark.slow] if tier and m.slow else []) for m in machines]
