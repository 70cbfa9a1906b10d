# SPDX-License-Identifier: Apache-2.0
"""Well-formed files that say impossible things (impossible.py) end nothing: the C core, run by fuzz/fuzz_run.c.

tests/test_hostile_run.py takes them through Python.
"""

import re
import struct
import subprocess

import impossible
import pytest
import zoo
from compiled import SANITIZED
from test_fuzz import CORE, ROOT, compile_with

TARGET = [ROOT / "tests" / "fuzz" / name for name in ("fuzz_run.c", "fuzz_walk.c")]
REPLAY = [ROOT / "tests" / "fuzz" / name for name in ("fuzz_rewrite.c", "replay.c")]


@pytest.fixture(scope="module")
def replay(objects, tmp_path_factory):
    """Runs the replayer on the run target, built with sanitizers; returns how many cases it ran.

    clang's sanitizers see more than gcc's: casts of floats that do not fit, and sums with null pointers."""
    out = tmp_path_factory.mktemp("run") / "replay"
    program = compile_with("clang", SANITIZED, [*TARGET, *REPLAY, *CORE], objects, out)

    def run(*arguments, data=None, seconds=600):
        done = subprocess.run([program, *map(str, arguments)], input=data, capture_output=True, timeout=seconds)
        assert done.returncode == 0, done.stderr[-4000:].decode(errors="replace")
        return int(re.search(rb"(\d+) cases\n$", done.stdout)[1])

    return run


def stream(seed, begin, count):
    files = [impossible.impossible(seed, number)[1] for number in range(begin, begin + count)]
    return b"".join(struct.pack("<I", len(data)) + data for data in files)


def sound_models(folder, step):
    """Models of one operator as files, of every nth row."""
    paths = []
    for row in range(0, len(impossible.rows_of(None)), step):
        paths.append(folder / f"{row}.tflite")
        paths[-1].write_bytes(impossible.sound(7, row, None).model)
    return paths


def test_every_break_breaks_something():
    """What no model of a thousand shows would not be generated at all."""
    texts = [impossible.impossible(1, number)[0] for number in range(0, 13504, 13)]
    found = {name for text in texts for name in text.split(": ")[1].split(", ")}
    assert found >= set(impossible.BREAKS)


def test_a_number_is_one_model():
    assert [impossible.impossible(3, n)[1] for n in (5, 400, 5)] == [
        impossible.impossible(3, n)[1] for n in (5, 400, 5)
    ]


def test_the_c_core_runs_impossible_models(replay):
    assert replay("stream", data=stream(11, 0, 3000)) == 3000


def test_the_c_core_runs_the_zoo_and_damaged_models(replay, tmp_path):
    for name, data in zoo.MODELS.items():
        (tmp_path / f"zoo_{name}.tflite").write_bytes(data)
    made = sorted(tmp_path.iterdir())
    assert replay("run", *made) == len(made)
    sound = sound_models(tmp_path, 20)
    assert replay("havoc", 5, 30, *sound) == 30 * len(sound)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_impossible_models_through_the_c_core(replay, seed):
    assert replay("stream", data=stream(seed, 0, 40000), seconds=3600) == 40000


@pytest.mark.slow
def test_many_damaged_models_through_the_c_core(replay, tmp_path):
    sound = sound_models(tmp_path, 1)
    assert replay("havoc", 6, 100, *sound, seconds=3600) == 100 * len(sound)


@pytest.mark.slow
def test_libfuzzer_runs_models(objects, tmp_path):
    """A minute of coverage-guided search from models of one operator."""
    flags = ["-O1", "-g1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    program = compile_with("clang", flags, [*TARGET, *CORE], objects, tmp_path / "fuzz")
    seeds, found = tmp_path / "seeds", tmp_path / "corpus"
    seeds.mkdir()
    found.mkdir()
    sound_models(seeds, 5)
    command = [
        program,
        found,
        seeds,
        "-max_total_time=60",
        "-max_len=4096",
        "-timeout=25",
        f"-artifact_prefix={tmp_path}/",
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, errors="replace")
    assert done.returncode == 0, done.stderr[-4000:]
