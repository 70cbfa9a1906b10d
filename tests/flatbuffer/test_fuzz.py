# SPDX-License-Identifier: Apache-2.0
"""The C core under the address and undefined-behaviour sanitizers, on millions of damaged files.

tests/fuzz/fuzz_model.c opens a file, walks all of it and writes it again; tests/fuzz/replay.c feeds it files,
truncations of them at every length and mutations of every structural byte.  Both are compiled here with each compiler
that is found.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import zoo
from c_sources import compile_with, sources
from compiled import SANITIZED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["gcc", "clang"])
def replay(request, objects, tmp_path_factory):
    """Runs the replayer; returns how many cases it ran."""
    out = tmp_path_factory.mktemp(request.param) / "replay"
    files = sources("fuzz_model.c", "fuzz_walk.c", "fuzz_rewrite.c", "replay.c")
    program = compile_with(request.param, SANITIZED, files, objects, out)

    def run(*arguments, seconds=300):
        done = subprocess.run(
            [program, *map(str, arguments)], capture_output=True, text=True, timeout=seconds, errors="replace"
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return int(re.search(r"(\d+) cases\n$", done.stdout)[1])

    run.compiler = request.param
    return run


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """The made models as files, and the demonstration model where the package carries it."""
    folder = tmp_path_factory.mktemp("seeds")
    for name, data in zoo.MODELS.items():
        (folder / f"{name}.tflite").write_bytes(data)
    demo = ROOT / "tq" / "demo.tflite"
    if demo.exists():
        shutil.copy(demo, folder)
    return sorted(folder.iterdir())


def total_size(files):
    return sum(path.stat().st_size for path in files)


def test_made_models(replay, seeds):
    assert replay("run", *seeds) == len(seeds)


def test_truncated_at_every_length(replay, seeds):
    assert replay("truncate", *seeds) == total_size(seeds) + len(seeds)


def test_every_structural_byte_and_word_mutated(replay, seeds):
    small = [path for path in seeds if path.stat().st_size < 1 << 16]
    if replay.compiler != "gcc":  # the slower of the two need not see all
        small = small[::4]
    # A word has some 24 extremes, twice; alignment leaves 1 + 1/2 + 1/4 places a byte.  Not all bytes are structure.
    assert replay("mutate", *small, seconds=600) > 20 * total_size(small)


def test_several_mutations_at_once(replay, seeds):
    assert replay("havoc", 1, 3000, *seeds) > 2000 * len(seeds)


def test_tiny_files(replay):
    assert replay("tiny") > 100_000


@pytest.mark.corpus
def test_corpus(replay, corpus):
    assert replay("run", *corpus) == len(corpus)


@pytest.mark.corpus
def test_damaged_corpus(replay, corpus):
    """A handful of real files: their structure, cut and mutated."""
    small = [path for path in corpus if path.stat().st_size < 2500]
    chosen = small[:: max(1, len(small) // 8)]
    assert replay("truncate", *chosen)
    assert replay("havoc", 2, 300, *corpus[::8])
    if replay.compiler == "gcc":
        assert replay("mutate", *chosen, seconds=600)


@pytest.mark.slow
def test_libfuzzer(seeds, objects, tmp_path):
    """Twenty seconds of coverage-guided search from the made models."""
    flags = ["-O1", "-g1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    program = compile_with(
        "clang", flags, sources("fuzz_model.c", "fuzz_walk.c", "fuzz_rewrite.c"), objects, tmp_path / "fuzz"
    )
    found = tmp_path / "corpus"
    found.mkdir()
    command = [program, found, seeds[0].parent, "-max_total_time=20", "-max_len=4096", f"-artifact_prefix={tmp_path}/"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, errors="replace")
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.corpus
def test_more_of_the_corpus_mutated(replay, corpus):
    chosen = [path for path in corpus if path.stat().st_size < 20_000][::10]
    assert replay("mutate", *chosen, seconds=3600)
