# SPDX-License-Identifier: Apache-2.0
"""C files as objects, compiled once for all tests, and for all of their processes, that want them with the same flags.

An object's place is a digest of its compiler, its flags and all C sources there are, in the folder TQ_OBJECTS or, for
tests, in one of their run.
`python tests/support/compiled.py COMPILER FLAG... FILE...` compiles into TQ_OBJECTS and prints the paths.
"""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-ffp-contract=off", "-fno-omit-frame-pointer"]
FLAGS += ["-Wall", "-Wextra", "-Wmissing-prototypes", "-Werror"]
FLAGS += [f"-I{ROOT / folder}" for folder in ("src", ".", "tests/c")]
# Reports name lines, which is -g1.
SANITIZED = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def digest(compiler, flags):
    """A digest of all sources and flags: any change makes all objects anew."""
    found = hashlib.sha256()
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    found.update(repr((str(compiler), version, flags)).encode())
    for path in sorted(path for folder in ("src", "schema", "tests") for path in (ROOT / folder).rglob("*.[chd]*")):
        if path.suffix in (".c", ".h", ".def"):
            found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()[:16]


def compile_one(compiler, flags, source, made):
    """One process compiles, others that want the same wait for it."""
    import fcntl

    with open(made.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            return
        part = made.with_suffix(".part")
        command = [compiler, *flags, "-c", source, "-o", part]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-5000:]
        part.replace(made)


def compiled(folder, compiler, flags, sources):
    """The objects of `sources`, with FLAGS and `flags`, somewhere in `folder`."""
    flags = [*FLAGS, *flags]
    folder = Path(folder) / digest(compiler, flags)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [Path(source).resolve() for source in sources]
    made = [folder / ("-".join(source.relative_to(ROOT).parts) + ".o") for source in sources]
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ThreadPoolExecutor(processors) as pool:
        list(pool.map(lambda pair: compile_one(compiler, flags, *pair), zip(sources, made, strict=True)))
    return made


def link(compiler, flags, objects, program):
    """A program of objects."""
    command = [compiler, *flags, *objects, "-lm", "-pthread", "-o", program]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return program


if __name__ == "__main__":
    options = [argument for argument in sys.argv[2:] if argument.startswith("-")]
    files = [argument for argument in sys.argv[2:] if not argument.startswith("-")]
    print(*compiled(os.environ["TQ_OBJECTS"], sys.argv[1], options, files))
