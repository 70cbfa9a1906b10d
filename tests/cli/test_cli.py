# SPDX-License-Identifier: Apache-2.0
"""The command line, run as a process from an empty folder: what it prints, and its exit codes."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import DEMO, TQ, environment, failed, fine
from models import build_model, make_model, operator, pack, tensor

import tq
from tq.inspection import jsonable
from tq.inspection.listing import listing


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(
        build_model(
            [
                tensor("x", [1, 3], "INT8", scale=0.1, zero_point=3, min=-1.0, max=float("nan")),
                tensor("w", [2, 3], "INT8", np.arange(6, dtype=np.int8), scale=[0.5, np.inf]),
                tensor("y", [1, 2], "INT8", scale=0.2, zero_point=2**62 + 1),
            ],
            [operator("FULLY_CONNECTED", [0, 1, -1], [2], keep_num_dims=True)],
            [0],
            [2],
            metadata={"blob": b"\x00\xff"},
        )
    )
    return path


# ---- show, details, summary, problems, demo ----


def test_show(run, model):
    opened = tq.Model(model)
    assert fine(run("show", model)) == f"{opened}\n"
    assert fine(run("show", "--tensors", model)) == listing(opened, operators=False) + "\n"
    assert fine(run("show", model, "--ops")) == listing(opened, tensors=False) + "\n"
    assert fine(run("show", model, "--ops", "--tensors")) == f"{opened}\n"


def reject(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_show_json(run, model):
    shown = json.loads(fine(run("show", model, "--json")), parse_constant=reject)
    assert (shown["version"], shown["nbytes"], shown["path"]) == (3, model.stat().st_size, str(model))
    (graph,) = shown["subgraphs"]
    assert graph["operators"] == [
        {
            "index": 0,
            "name": "FULLY_CONNECTED",
            "version": 1,
            "inputs": [0, 1, -1],
            "outputs": [2],
            "intermediates": [],
            "options_type": "FullyConnectedOptions",
            "options": jsonable.plain(tq.Model(model).operators[0].options),
        }
    ]
    assert graph["operators"][0]["options"]["keep_num_dims"] is True
    assert graph["operators"][0]["options"]["fused_activation_function"] == "NONE"
    x, w, y = graph["tensors"]
    assert (x["name"], x["type"], x["shape"], x["is_constant"]) == ("x", "INT8", [1, 3], False)
    assert x["quantization"]["scale"] == [float(np.float32(0.1))]
    assert x["quantization"]["max"] == ["NaN"]
    assert w["quantization"]["scale"] == [0.5, "Infinity"]
    assert w["quantization"]["kind"] == "per-axis"
    assert y["quantization"]["zero_point"] == [2**62 + 1]
    assert shown["metadata"] == {"blob": {"base64": "AP8="}}
    only = json.loads(fine(run("show", model, "--json", "--ops")))
    assert "tensors" not in only["subgraphs"][0] and "operators" in only["subgraphs"][0]


def test_details(run, model):
    text = fine(run("details", model))
    assert text.startswith("0 'x'\n    shape: [1, 3]\n")
    assert "        scales: [0.1]\n" in text
    assert "        min: [-1.]\n" in text
    details = json.loads(fine(run("details", "--json", model)), parse_constant=reject)
    expected = tq.Model(model).get_tensor_details()
    assert [d["name"] for d in details] == ["x", "w", "y"]
    assert details[0]["dtype"] == "int8"
    for got, wanted in zip(details, expected, strict=True):
        assert list(got) == list(wanted)
        scales = got["quantization_parameters"]["scales"]
        assert np.array_equal(np.array(scales, np.float32), wanted["quantization_parameters"]["scales"])
    failed(run("details", model, "--subgraph", 1), "m.tflite", "no subgraph 1")
    failed(run("details", model, "--subgraph", -1), "--subgraph", "-1")
    failed(run("details", model, "--subgraph", "one"), "--subgraph", "invalid number value: 'one'")


def test_summary(run, model):
    assert fine(run("summary", model)) == f"{tq.Model(model).summary()}\n"
    assert json.loads(fine(run("summary", "--json", model))) == tq.Model(model).summary().to_dict()


def test_problems(run, model, tmp_path):
    assert fine(run("problems", DEMO)) == ""
    assert json.loads(fine(run("problems", DEMO, "--json"))) == []
    bad = make_model([tensor("x", [1], buffer=77)], [operator("ADD", [0, 5], [0])])
    (tmp_path / "bad.tflite").write_bytes(pack(bad))
    problems = tq.Model(tmp_path / "bad.tflite").problems
    assert problems
    text = fine(run("problems", tmp_path / "bad.tflite"), code=1)
    assert text == "".join(f"{p.severity} {p.code}: {p.place}: {p.text}\n" for p in problems)
    rows = json.loads(fine(run("problems", "--json", tmp_path / "bad.tflite"), code=1))
    fields = ("code", "place", "text", "severity")
    assert rows == [{name: getattr(p, name) for name in fields} for p in problems]


def test_demo(run):
    text = fine(run("demo"))
    assert text.startswith(str(tq.Model(DEMO)))
    assert "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838\n" in text
    assert "[[127, -127]], which stand for [[0.9961 0.0039]]" in text


def test_run(run, tmp_path):
    demo = tq.Model(DEMO)
    x = np.random.default_rng(1).integers(-128, 128, demo.inputs[0].shape).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", **{demo.inputs[0].name: x})
    expected = tq.Interpreter(model=demo)
    expected.allocate_tensors()
    expected.set_tensor(demo.inputs[0].index, x)
    expected.invoke()
    y = expected.get_tensor(demo.outputs[0].index)
    for file in ("x.npy", "x.npz"):
        assert fine(run("run", DEMO, "--input", file, "-o", "y.npz")) == "1 array in y.npz\n"
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")[demo.outputs[0].name], y)
    assert str(y.tolist()[0][0]) in fine(run("run", DEMO, "--input", "x.npy"))
    fine(run("run", DEMO, "--seed", "3", "--all", "--threads", "2", "-o", "all.npz"))
    assert len(np.load(tmp_path / "all.npz").files) == len(demo.tensors)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--input", "none.npy"], "none.npy"),
        (["--input", "wrong.npy"], "input 'image' has the shape [-1, 8, 8, 3]; --input gives [3]"),
        (["--input", "text.npy"], "no array of NumPy"),
        (["--input", "wrong.npz"], "no input is called 'z'"),
    ],
)
def test_run_refuses_wrong_inputs_in_a_line(run, tmp_path, arguments, text):
    np.save(tmp_path / "wrong.npy", np.zeros(3, np.int8))
    np.savez(tmp_path / "wrong.npz", z=np.zeros(3))
    (tmp_path / "text.npy").write_text("hello")
    done = run("run", DEMO, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert text in done.stderr and done.stderr.count("\n") == 1


def test_run_says_what_cannot_run(run, tmp_path):
    data = build_model([tensor("x", [1]), tensor("y", [1])], [operator("NoSuchOperator", [0], [1])], [0], [1])
    (tmp_path / "m.tflite").write_bytes(data)
    done = run("run", "m.tflite")
    assert done.returncode == 2 and "NoSuchOperator" in done.stderr


def test_compare_and_profile(run, tmp_path):
    assert f"all {_compared(DEMO)} tensors are equal" in fine(run("compare", DEMO, DEMO))
    other = bytearray(DEMO.read_bytes())
    weights = tq.Model(DEMO).operators[0].inputs[1].data.tobytes()
    at = bytes(other).index(weights)
    other[at] ^= 1
    (tmp_path / "other.tflite").write_bytes(other)
    text = fine(run("compare", DEMO, "other.tflite"), code=1)
    assert "tensors differ; the first is" in text and "CONV_2D" in text
    text = fine(run("profile", DEMO, "--runs", "2"))
    assert "CONV_2D" in text and "the median of 2 runs" in text


def test_profile_tells_the_part_of_the_machines_peak(run):
    text = fine(run("profile", DEMO, "--runs", "2", "--peak"))
    assert "GMAC/s" in text and "of peak" in text
    rows = json.loads(fine(run("profile", DEMO, "--runs", "2", "--peak", "--json")))["rows"]
    for row in rows:
        multiplies = row["operator"] in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
        assert (row["peak_gmacs"] is not None) == multiplies and (not multiplies or row["peak_gmacs"] > 0)
    assert all(
        row["peak_gmacs"] is None for row in json.loads(fine(run("profile", DEMO, "--runs", "2", "--json")))["rows"]
    )


def _compared(path):
    """An input, and what each operator writes."""
    graph = tq.Model(path).subgraphs[0]
    return len(graph.inputs) + sum(len(op.outputs) for op in graph.operators)


def test_version_and_help(run):
    assert fine(run("--version")) == f"tq {tq.__version__}\n"
    text = fine(run("--help"))
    assert all(f"\n    {name}" in text for name in ("show", "details", "summary", "problems", "export", "diff", "demo"))
    assert fine(run("show", "--help")).startswith("usage: tq show")


def test_metadata_that_share_a_large_buffer_are_cut_in_json():
    model = make_model(metadata={"one": bytes(5000)})
    (one,) = model.stored("metadata")
    model.store("metadata", [one, *({"name": str(i), "buffer": one["buffer"]} for i in range(50))])
    opened = tq.Model(pack(model))
    shown = json.loads(jsonable.dumps(jsonable.model(opened)))["metadata"]
    assert len(shown) == 51 and opened.metadata["49"] == bytes(5000)
    assert "base64" in shown["one"] and shown["49"] == {"nbytes": 5000}
    metadata = opened.metadata
    assert metadata["49"] is metadata["one"]  # not copied for each


# ---- export and diff ----


def test_export(run, model, tmp_path):
    assert fine(run("export", model, "-o", "out.npz")) == "1 array in out.npz\n"
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["w"], np.arange(6, dtype=np.int8).reshape(2, 3))
    fine(run("export", model, "--output", "out.npz", "--dequantized"))
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["w"][0], np.float32([0, 0.5, 1]))


def test_export_of_what_cannot_be_read_says_so(run, tmp_path):
    (tmp_path / "m.tflite").write_bytes(build_model([tensor("s", [9], "INT8", b"1"), tensor("t", [1], "INT8", b"1")]))
    process = run("export", "m.tflite", "-o", "out.npz")
    assert (process.returncode, process.stdout) == (1, "1 array in out.npz\n")
    assert process.stderr.startswith("tq: m.tflite: subgraph 0, tensor 0 's': not exported: ")
    assert process.stderr.count("\n") == 1


def test_export_to_a_place_that_cannot_be_written(run, model, tmp_path):
    failed(run("export", model, "-o", "no/out.npz"), "no/out.npz: No such file")
    failed(run("export", model, "-o", model), "m.tflite", "the model itself")
    failed(run("export", model), "-o/--output")
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_diff(run, model, tmp_path):
    assert fine(run("diff", model, model)) == ""
    assert json.loads(fine(run("diff", model, model, "--json"))) == {"differences": [], "left_out": 0}
    differences = tq.diff(tq.Model(model), tq.Model(DEMO))
    assert len(differences) > 5
    text = fine(run("diff", model, DEMO), code=1)
    assert text == "".join(f"{d}\n" for d in differences)
    assert text.isascii() or "≤" not in text
    cut = fine(run("diff", model, DEMO, "--limit", 2), code=1).split("\n")
    assert cut == [*map(str, differences[:2]), f"... and {len(differences) - 2} more (--limit 0 shows all)", ""]
    assert fine(run("diff", model, DEMO, "--limit", 0), code=1) == text
    rows = json.loads(fine(run("diff", model, DEMO, "--json", "--limit", 3), code=1))
    assert rows["left_out"] == len(differences) - 3
    assert rows["differences"][0] == {name: getattr(differences[0], name) for name in ("kind", "place", "what", "text")}
    failed(run("diff", model), "B")
    failed(run("diff", model, "gone.tflite"), "gone.tflite: No such file")


# ---- bad use and unreadable files ----


@pytest.mark.parametrize("command", ["show", "details", "summary", "problems", "diff"])
def test_files_that_cannot_be_read(run, tmp_path, command):
    def ask(name):
        return run(command, name, *([name] if command == "diff" else []))

    (tmp_path / "text.tflite").write_text("this is no model, not at all")
    (tmp_path / "empty.tflite").write_bytes(b"")
    (tmp_path / "cut.tflite").write_bytes(DEMO.read_bytes()[:1000])
    failed(ask("gone.tflite"), "gone.tflite: No such file")
    failed(ask("."), ".: Is a directory")
    failed(ask("text.tflite"), "text.tflite: no TensorFlow Lite model: byte 0: ")
    failed(ask("empty.tflite"), "empty.tflite: ")
    failed(ask("cut.tflite"), "cut.tflite: no TensorFlow Lite model: byte ")
    failed(ask("line\nbreak.tflite"), "line.break.tflite: No such file")


def test_bad_use(run):
    failed(run(), "a command is needed")
    failed(run("shwo"), "'shwo'")
    failed(run("show"), "FILE")
    failed(run("show", "a", "b"), "b")
    failed(run("show", "--what", DEMO), "--what")
    failed(run("--js"), "--js")
    failed(run("diff", DEMO, DEMO, "--limit", "-1"), "--limit")


def test_main_returns_the_code(capsys):
    from tq.cli.arguments import main

    assert main(["show", str(DEMO)]) == 0
    assert main(["show"]) == 2
    assert main(["--help"]) == 0
    assert "usage" in capsys.readouterr().out


# ---- pipes, encodings, signals ----


@pytest.fixture
def long_model(tmp_path):
    path = tmp_path / "long.tflite"
    path.write_bytes(build_model([tensor(f"tensor {i}", [1]) for i in range(20000)]))
    return path


@pytest.mark.parametrize("size", ["short", "long"])
@pytest.mark.parametrize("command", ["show", "details", "summary", "--help"])
def test_a_pipe_that_closes_early_is_no_error(size, command, long_model, tmp_path):
    arguments = [command] if command == "--help" else [command, long_model if size == "long" else DEMO]
    process = subprocess.Popen(
        [*TQ, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    if size == "long":
        assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_differences_are_found_though_the_pipe_closes(long_model, tmp_path):
    process = subprocess.Popen(
        [*TQ, "diff", long_model, DEMO, "--limit", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_head_in_a_shell(long_model, tmp_path):
    command = f"set -o pipefail; '{sys.executable}' -m tq show '{long_model}' | head -1"
    process = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8"
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.startswith("TensorFlow Lite model")


def test_a_terminal_that_knows_only_ascii(run, tmp_path):
    (tmp_path / "m.tflite").write_bytes(build_model([tensor("é≤\U0001f600", [1])], [operator("Ünfug", [0], [0])]))
    for changes in ({"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}):
        assert "\\u2264 0.012566016986966133 * (q - 3)" in fine(run("demo", **changes))
        for command in ("show", "summary", "details", "problems"):
            process = run(command, "m.tflite", **changes)
            assert process.returncode in (0, 1) and process.stderr == ""
    posix = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    assert "\\u2264 0.012566016986966133 * (q - 3)" in fine(run("demo", **posix))
    failed(run("show", "ü≤.tflite", **posix), "No such file")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said(tmp_path):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*TQ, "demo"], stdout=full, stderr=subprocess.PIPE, env=environment(), cwd=tmp_path, encoding="utf-8"
        )
    assert (process.returncode, process.stderr) == (2, "tq: cannot write: No space left on device\n")


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_no_standard_output_at_all(tmp_path):
    process = subprocess.run(
        ["bash", "-c", f"exec '{sys.executable}' -m tq demo >&-"], cwd=tmp_path, env=environment(), capture_output=True
    )
    assert (process.returncode, process.stderr) == (0, b"")


def test_an_interrupt_is_quiet(tmp_path):
    code = (
        "import signal, sys, time, tq.cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "def demo(args): print('ready', file=sys.stderr, flush=True); time.sleep(60)\n"
        "tq.cli.quantize.demo = demo\n"
        "sys.exit(tq.cli.main(['demo']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, cwd=tmp_path, env=environment(), encoding="utf-8"
    )
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 130


def test_the_core_is_not_slowed_by_the_command_line(tmp_path):
    heavy = ("argparse", "html", "json", "zipfile", "ml_dtypes")
    code = f"import sys, tq; print([m for m in {heavy} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", env=environment())
    bare = subprocess.run(
        [sys.executable, "-c", code.replace(", tq", ", numpy")],
        capture_output=True,
        encoding="utf-8",
        env=environment(),
    )
    assert (process.stdout, process.stderr) == (bare.stdout, "")


# ---- every real model ----


@pytest.mark.corpus
def test_every_real_model_becomes_json(corpus):
    for path in corpus:
        model = tq.Model(path)
        shown = json.loads(jsonable.dumps(jsonable.model(model)), parse_constant=reject)
        for graph, written in zip(model.subgraphs, shown["subgraphs"], strict=True):
            assert [t.name for t in graph.tensors] == [t["name"] for t in written["tensors"]]
            for item, row in zip(graph.tensors, written["tensors"], strict=True):
                if item.quantization:
                    # float() understands the strings that stand for NaN and infinities
                    floats = np.array(row["quantization"]["scale"], dtype=object).astype(float).astype(np.float32)
                    assert floats.tobytes() == item.quantization.scale.astype(np.float32).tobytes()
                    assert row["quantization"]["zero_point"] == item.quantization.zero_point.tolist()


def test_quantize_prints_its_plan_and_writes_nothing(run, tmp_path):
    run("demo", "--write", ".")
    files = sorted(tmp_path.iterdir())
    done = run("quantize", "demo_float.tflite", "--recipe", "int8", "--samples", "demo_samples.npz", "--plan")
    assert done.returncode == 0 and "operators:" in done.stdout and "CONV_2D" in done.stdout
    assert sorted(tmp_path.iterdir()) == files
    for more in (["out.tflite"], ["--equalize"], ["--fallback", "int16x8"]):
        done = run("quantize", "demo_float.tflite", *more, "--recipe", "dynamic_int8", "--plan")
        assert done.returncode == 2 and "--plan" in done.stderr
