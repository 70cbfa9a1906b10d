# SPDX-License-Identifier: Apache-2.0
"""Well-formed files that say impossible things (impossible.py) end nothing: the C core, run by fuzz/fuzz_run.c.

tests/runtime/test_damaged_runs.py takes them through Python.
"""

import re
import struct
import subprocess

import impossible
import numpy as np
import pytest
import zoo
from c_sources import CORE, ROOT, compile_with
from compiled import SANITIZED
from models import build_model, operator, tensor

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


def test_sums_and_casts_of_prepare_stay_in_range(replay, tmp_path):
    """A float's extreme as an integer, 2^64 as an int64, and a place in scratch memory of no bytes were none."""
    pair = {
        "least": [tensor("x", [2, 3]), tensor("axes", [1], "INT32", data=np.array([1], np.int32)), tensor("y", [2])],
        "unsigned": [tensor("x", [2], "UINT64"), tensor("z", [2], "UINT64"), tensor("y", [2], "UINT64")],
        "product": [tensor("x", [2, 3]), tensor("z", [3, 4]), tensor("y", [2, 4])],
        "nothing": [tensor("x", [0, 3]), tensor("z", [3, 4]), tensor("y", [0, 4])],
        "no depth": [tensor(n, s, "INT16", scale=0.5) for n, s in (("x", [4, 0]), ("z", [0, 4]), ("y", [4, 4]))],
    }
    names = {"least": "REDUCE_MAX", "unsigned": "STABLEHLO_ADD"}
    for case, tensors in pair.items():
        inputs = [0] if case == "least" else [0, 1]
        model = build_model(tensors, [operator(names.get(case, "BATCH_MATMUL"), [0, 1], [2])], inputs, [2])
        (tmp_path / f"{case}.tflite").write_bytes(model)
    assert replay("run", *tmp_path.iterdir()) == len(pair)


def test_strides_of_an_input_that_memory_cannot_hold_stay_in_range(replay, tmp_path):
    """2^61 elements of four bytes: a graph's input gets its memory after prepare."""
    shape, ones = [1, 1, 1718878209, 1954047348], np.ones(4, np.int64)
    tensors = [tensor("x", shape, "INT32"), tensor("start", [], "INT32", data=np.zeros(1, np.int32))]
    tensors += [tensor(name, [4], "INT64", data=ones) for name in ("window", "strides", "dilations")]
    window = operator("REDUCE_WINDOW", [0, 1, 2, 3, 4], [5], reduce_function="ADD")
    path = tmp_path / "large.tflite"
    path.write_bytes(build_model([*tensors, tensor("y", shape, "INT32")], [window], [0], [5]))
    assert replay("run", path) == 1


def test_every_break_breaks_something():
    """A break that none of a thousand models shows is not generated at all."""
    texts = [impossible.impossible(1, number)[0] for number in range(0, 1039 * 101, 101)]
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_impossible_models_through_the_c_core(replay, seed):
    assert replay("stream", data=stream(seed, 0, 40000), seconds=3600) == 40000


@pytest.mark.thorough
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
