# SPDX-License-Identifier: Apache-2.0
"""Commands that run models on samples; JSON and CSV of every command; editing; hints."""

import csv
import io
import json
import sys
import types
from functools import cache

import numpy as np
import pytest
from commands import DEMO
from labelled import IMAGES, TRUE, classifier

import tq
from tq.cli import arguments, demo_float
from tq.cli.commands import complain, in_options

INT8 = ("--recipe", "int8", "--samples", "s.npz", "--min-elements", "0")


@cache
def unsigned():
    return tq.quantize_model(classifier(), "uint8", default_ranges=(-4, 4))


@pytest.fixture
def folder(tmp_path):
    """A float model, samples with labels, and the folder where commands run."""
    (tmp_path / "f.tflite").write_bytes(classifier())
    np.savez(tmp_path / "s.npz", image=IMAGES, labels=TRUE)
    (tmp_path / "uint8.tflite").write_bytes(unsigned())
    demo_float.write(str(tmp_path))
    np.savez(tmp_path / "wide.npz", image=np.zeros((1, 4, 4, 3), np.float32))
    return tmp_path


@pytest.fixture
def tq_(folder, monkeypatch, capsys):
    """Runs the command line in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(folder)

    def call(*words):
        code = arguments.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_run_holds_the_outputs_of_all_samples(tq_, folder):
    assert tq_("run", "f.tflite", "--samples", "s.npz", "-o", "y.npz")[0] == 0
    found = np.load(folder / "y.npz")["scores"]
    assert found.shape == (6, 1, 3) and np.argmax(found, axis=-1).ravel().tolist() == TRUE
    assert tq_("run", "f.tflite", "--samples", "s.npz", "--max-samples", "2", "-o", "y.npz")[0] == 0
    assert np.load(folder / "y.npz")["scores"].shape == (2, 1, 3)


def test_compare_takes_samples(tq_):
    """On random inputs alone the guide's own example said 10 dB where samples give 46."""
    assert (
        tq_("quantize", "f.tflite", "q.tflite", "--recipe", "int8", "--samples", "s.npz", "--min-elements", "0")[0] == 0
    )
    for pair in (("f.tflite", "q.tflite"), ("q.tflite", "f.tflite")):
        code, out, _ = tq_("compare", *pair, "--samples", "s.npz", "--json")
        row = next(row for row in json.loads(out)["rows"] if row["is_output"])
        assert code == 1 and row["sqnr_db"] > 25
    assert "over 6 samples" in tq_("compare", "f.tflite", "q.tflite", "--samples", "s.npz")[1]


def test_inputs_beside_samples_are_refused(tq_):
    code, _, err = tq_("run", "f.tflite", "--samples", "s.npz", "--seed", "3")
    assert code == 2 and "--samples give the inputs" in err


@pytest.mark.parametrize("words", [("--mean", "1"), ("--std", "1"), ("--max-samples", "2")], ids=lambda words: words[0])
@pytest.mark.parametrize("command", [("run", "f.tflite"), ("compare", "f.tflite", "f.tflite"), ("check", "f.tflite")])
def test_options_of_samples_without_samples_are_refused(command, words, tq_):
    code, _, err = tq_(*command, *words)
    known = not (command[0] == "check" and words[0] == "--max-samples")
    assert code == 2 and (f"{words[0]} is given and has no effect without --samples" in err or not known)


def test_profile_and_explain_take_a_sample(tq_):
    code, out, _ = tq_("profile", "f.tflite", "--samples", "s.npz", "--runs", "3", "--warm-up", "1", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and [row["operator"] for row in rows] == ["FULLY_CONNECTED"] and float(rows[0]["median_us"]) > 0


def test_evaluate(tq_):
    code, out, _ = tq_("evaluate", "f.tflite", "--samples", "s.npz", "--json")
    assert code == 0 and json.loads(out)["rows"] == [{"metric": "top-1", "mean": 1.0, "samples": 6}]
    assert tq_("evaluate", "f.tflite", "--samples", "s.npz")[1] == "top-1: 1 over 6 samples\n"


@pytest.mark.parametrize("words", [["evaluate"], ["quantize", "q.tflite", "--recipe", "int8"]], ids=lambda w: w[0])
def test_a_missing_optional_library_is_told_in_a_line(words, tq_, folder, monkeypatch):
    (folder / "pictures" / "0").mkdir(parents=True)
    (folder / "pictures" / "0" / "a.png").write_bytes(b"")
    for name in ("PIL", "PIL.Image"):  # another test may have loaded it
        monkeypatch.setitem(sys.modules, name, None)
    samples = ("--samples", "pictures", "--mean", "1", "--std", "1")
    code, out, err = tq_(words[0], "f.tflite", *words[1:], *samples)
    assert (
        (code, out) == (2, "") and err.endswith("pip install pillow (it is in tq[pictures])\n") and err.count("\n") == 1
    )


def test_evaluate_takes_a_folder_of_pictures(tq_, folder):
    image = pytest.importorskip("PIL.Image")
    for name in ("0", "2"):
        (folder / "pictures" / name).mkdir(parents=True)
        image.new("RGB", (2, 2), (100, 0, 0)).save(folder / "pictures" / name / "a.png")
    words = ("evaluate", "f.tflite", "--samples", "pictures")
    assert "--mean 127.5 --std 127.5" in tq_(*words)[2]
    code, out, _ = tq_(*words, "--mean", "127.5", "--std", "127.5,127.5,100", "--metric", "top-5")
    assert code == 0 and out == "top-5: 1 over 2 samples\n"
    assert (
        "--mean and --std are for a folder"
        in tq_("evaluate", "f.tflite", "--samples", "s.npz", "--mean", "1", "--std", "1")[2]
    )


def test_calibrate_writes_what_quantize_reads(tq_, folder):
    for name in ("c.npz", "c.json"):
        assert tq_("calibrate", "f.tflite", "--samples", "s.npz", "-o", name)[0] == 0
        options = ("--recipe", "int8", "--min-elements", "0", "--calibration", name)
        assert tq_("quantize", "f.tflite", "q.tflite", *options)[0] == 0
        assert tq.compare(classifier(), folder / "q.tflite", samples=IMAGES).outputs[0].sqnr_db > 25


def test_calibrate_refuses_names_of_other_formats(tq_, folder):
    code, _, error = tq_("calibrate", "f.tflite", "--samples", "s.npz", "-o", "c.txt")
    assert code == 2 and "'c.txt' ends neither in .npz nor in .json" in error and not (folder / "c.txt").exists()


def test_quantize_says_what_stays_float_and_why(tq_, tmp_path):
    assert tq_("demo", "--write", tmp_path)[0] == 0
    words = ("quantize", "demo_float.tflite", "q.tflite", "--recipe", "int8", "--samples", "demo_samples.npz")
    assert "stay float32" not in tq_(*words)[1]
    out = tq_(*words, "--operator", "SOFTMAX=float")[1]
    assert "operators stay float32: SOFTMAX" in out and "(--plan lists all)" in out


def test_quantize_says_which_stored_ranges_do_not_count(tq_, tmp_path):
    b = tq.ModelBuilder()
    x, w = b.input("x", [1, 64]), b.constant("w", np.ones((8, 64), np.float32))
    y = b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, w], [y])
    b.output(y)
    editor = tq.edit(b.to_bytes())
    editor.tensors["w"].quantization = {"min": [-3.0], "max": [2.0]}
    (tmp_path / "ranges.tflite").write_bytes(editor.to_bytes())
    words = ("quantize", "ranges.tflite", "r4.tflite", "--recipe", "blockwise_int4", "--min-elements", "0")
    note = "'w' does not get the scale of the min and max that the file stores"
    assert note in tq_(*words)[1]
    (said,) = json.loads(tq_(*words, "--json")[1])["notes"]
    assert said.startswith(note)


def test_another_shape_asks_for_resize(tq_):
    code, _, err = tq_("run", "f.tflite", "--input", "wide.npz")
    assert code == 2 and "has the shape [1, 2, 2, 3]; --input gives [1, 4, 4, 3]: --resize runs the model so" in err
    assert tq_("run", "f.tflite", "--input", "wide.npz", "--resize")[2] != err
    for command in ("run", "profile"):
        assert "--resize is given and has no effect: --input gives no shapes" in tq_(command, "f.tflite", "--resize")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing", "0"), "tq: no tensor is called 'nothing'"),
        (("0", "99999999"), "there is nothing to explain"),
        (("77", "0"), "there is no tensor 77"),
    ],
)
def test_an_element_that_there_is_not_is_named_in_a_line(tq_, words, said):
    code, _, err = tq_("explain", "f.tflite", *words)
    assert code == 2 and said in err and err.count("\n") == 1


def test_a_range_from_a_negative_number_on_needs_no_equals_sign(tq_):
    words = ("quantize", "f.tflite", "q.tflite", "--recipe", "int8", "--min-elements", "0", "--default-ranges")
    assert [tq_(*words, ends)[0] for ends in ("-1,6", "-.5,1")] == [0, 0]
    assert "--default-ranges: expected one argument" in tq_(*words)[2]


# ---- JSON and CSV ----

TABLES = {
    "show": ["show", DEMO],
    "details": ["details", DEMO],
    "summary": ["summary", DEMO],
    "check": ["check", DEMO],
    "diff": ["diff", DEMO, "f.tflite"],
    "compare": ["compare", DEMO, "--numerics", "reference,xnnpack"],
    "profile": ["profile", DEMO, "--runs", "1"],
    "run": ["run", DEMO],
    "backends": ["backends", DEMO],
    "evaluate": ["evaluate", "f.tflite", "--samples", "s.npz"],
    "sensitivity": ["sensitivity", "f.tflite", "--samples", "s.npz", "--recipe", "int8"],
    "view": ["view", DEMO, "-o", "v.html"],
    "explain": ["explain", DEMO, "logits", "0", "--seed", "1"],
    "problems": ["problems", DEMO],
    "demo": ["demo"],
    "export": ["export", DEMO, "-o", "c.npz"],
    "quantize": ["quantize", "f.tflite", "q.tflite", "--recipe", "int8", "--samples", "s.npz"],
    "dequantize": ["dequantize", DEMO, "d.tflite"],
    "transcode": ["transcode", "uint8.tflite", "i.tflite"],
    "equalize": ["equalize", "demo_float.tflite", "e.tflite"],
    "calibrate": ["calibrate", "f.tflite", "--samples", "s.npz", "-o", "c.npz"],
    "edit": ["edit", "f.tflite", "e.tflite", "--description", "another"],
    "extract": ["extract", DEMO, "x.tflite", "--inputs", "image", "--outputs", "blur"],
    "report": ["report", "f.tflite", DEMO, "--samples", "s.npz", "-o", "r.html"],
}


@pytest.mark.parametrize("command", sorted(set(TABLES) - {"report"}))
def test_every_command_has_json_and_csv(command, tq_):
    code, out, err = tq_(*TABLES[command], "--json")
    assert (code in (0, 1), err) == (True, "") and json.loads(out) is not None
    code, out, err = tq_(*TABLES[command], "--csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert (code in (0, 1), err) == (True, "") and len({len(row) for row in rows}) == 1
    assert command in ("check", "problems") or len(rows) > 1  # nothing is found in these


@pytest.mark.parametrize("words", [["quantize", "--recipe", "int8", "--plan"], ["demo", "--write"]], ids=lambda w: w[0])
def test_other_results_of_commands_have_json_and_csv(words, tq_):
    files = ["f.tflite", "--samples", "s.npz"] if words[0] == "quantize" else ["."]
    read = json.loads(tq_(*words, *files, "--json")[1])
    rows = list(csv.DictReader(io.StringIO(tq_(*words, *files, "--csv")[1])))
    if words[0] == "quantize":
        assert rows[0]["becomes"] == read["operators"][0]["becomes"]
    else:
        assert [row["file"] for row in rows] == read["files"]


def test_pages_and_exports_have_json(tq_, folder):
    code, out, _ = tq_("diff", DEMO, "f.tflite", "--html", "-o", "d.html", "--json")
    assert code == 1 and json.loads(out)["output"] == "d.html" and json.loads(out)["differences"] > 0
    out = tq_("view", DEMO, "--export", "dot", "-o", "g.dot", "--json")[1]
    assert json.loads(out)["operators"] == 5 and (folder / "g.dot").exists()


ONE_SAMPLE = {"profile": "times the first sample alone", "explain": "explains an element of the first sample"}
REPEATED = {"--json", "--csv", "--samples", "--threads", "--max-samples"}


@pytest.mark.parametrize("command", sorted(arguments._parser().commands()))
def test_every_command_has_the_options_that_commands_share(command):
    parser = arguments._parser().commands()[command]
    has = REPEATED & {name for action in parser.arguments() for name in action.option_strings}
    needed = {"--json", "--csv"}
    if "--samples" in has:
        needed |= {"--samples", "--threads"} | (set() if command in ONE_SAMPLE else {"--max-samples"})
    assert has == needed and command in TABLES


def test_threads_change_no_result_and_are_refused_where_nothing_runs(tq_, folder):
    for count in ("1", "2"):
        words = ("--samples", "demo_samples.npz", "--threads", count)
        assert tq_("quantize", "f.tflite", f"q{count}.tflite", *INT8, "--threads", count, "--bias-correction")[0] == 0
        assert tq_("equalize", "demo_float.tflite", f"e{count}.tflite", *words)[0] == 0
        assert tq_("check", f"e{count}.tflite", *words)[0] == 0
    for name in "qe":
        assert (folder / f"{name}1.tflite").read_bytes() == (folder / f"{name}2.tflite").read_bytes()
    for words in (
        ("quantize", "f.tflite", "d.tflite", "--recipe", "dynamic_int8"),
        ("equalize", "demo_float.tflite", "x.tflite"),
    ):
        code, _, err = tq_(*words, "--threads", "2")
        assert code == 2 and "--threads is given and has no effect: no samples are run" in err


# ---- editing ----


def test_edit_changes_what_is_asked_and_nothing_else(tq_, folder):
    (folder / "note").write_bytes(b"a note")
    words = ("--rename", "blur=soft", "--scale", "logits=0.5", "--zero-point", "logits=3", "--metadata", "note=note")
    assert tq_("edit", DEMO, "e.tflite", *words, "--description", "mine")[0] == 0
    made, was = tq.Model(folder / "e.tflite"), tq.Model(DEMO)
    assert made.description == "mine" and made.metadata["note"] == b"a note"
    assert (made.tensors["logits"].quantization.scale[0], made.tensors["logits"].quantization.zero_point[0]) == (0.5, 3)
    assert made.tensors["soft"].index == was.tensors["blur"].index
    assert tq_("edit", "e.tflite", "--in-place", "--remove-metadata", "note")[0] == 0
    assert "note" not in tq.Model(folder / "e.tflite").metadata


def test_edit_refuses_what_is_not_there(tq_):
    assert "nothing is to be changed" in tq_("edit", DEMO, "e.tflite")[2]
    assert "blurr" in tq_("edit", DEMO, "e.tflite", "--rename", "blurr=x")[2]
    assert "no metadata are called 'x'" in tq_("edit", DEMO, "e.tflite", "--remove-metadata", "x")[2]
    assert tq_("edit", DEMO, "--in-place", "--scale", "blur=none")[0] == 2


def test_extract_writes_a_part(tq_, folder):
    assert tq_("extract", DEMO, "x.tflite", "--inputs", "image", "--outputs", "blur")[0] == 0
    made = tq.Model(folder / "x.tflite")
    assert [op.name for op in made.operators] == ["CONV_2D", "DEPTHWISE_CONV_2D"]


# ---- hints ----


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["quantise", "f.tflite"], "invalid choice: 'quantise'; did you mean 'quantize' or"),
        (["run", "f.tflite", "--sample", "s.npz"], "unrecognized arguments: --sample s.npz; did you mean '--samples'"),
        (["run", "s.npz"], "this is a zip archive (.npz, .keras, .pt?), not a TFLite model"),
        (["run", "f.tflite", "--input", "f.tflite"], "it is a TFLite model"),
    ],
)
def test_misspelt_words_and_wrong_files_are_told(words, hint, tq_):
    code, out, err = tq_(*words)
    assert (code, out) == (2, "") and hint in err and err.count("\n") == 1 and "allow_pickle" not in err


def test_version(tq_):
    assert tq_("-V") == tq_("--version") == (0, f"tq {tq.__version__}\n", "")


def test_completion_is_shtabs(tq_, monkeypatch):
    fake = types.SimpleNamespace(complete=lambda parser, shell: f"{parser.prog} {shell}")
    monkeypatch.setitem(sys.modules, "shtab", fake)
    assert tq_("--print-completion", "bash") == (0, "tq bash\n", "")
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, _, err = tq_("--print-completion", "zsh")
    assert code == 2 and "pip install shtab (it is in tq[completion])" in err


def test_messages_name_options(tq_):
    """They named arguments of Python: "recipe 'int8' needs calibration=: a tq.Calibration, or samples as ..."."""
    code, _, err = tq_("quantize", "f.tflite", "q.tflite", "--recipe", "int8")
    assert code == 2 and "needs --samples or --calibration" in err and "tq.Calibration" not in err
    assert in_options("give them, as in tq.pictures(folder, model, mean=127.5, std=127.5) or --mean 1") == (
        "give them, as --mean 1"
    )
    said = "max_memory is 3; tensor 'max_memory' of samples= in samples"
    assert in_options(said) == "--max-memory is 3; tensor 'max_memory' of --samples in samples"


def test_a_long_message_is_cut_in_its_middle(capsys):
    complain("begin " + "x" * 10_000 + " end")
    err = capsys.readouterr().err
    assert len(err) < 1600 and err.startswith("tq: begin x") and err.endswith("x end\n") and "…" in err


def test_the_manual_page_has_every_command_and_option(tq_):
    code, page, _ = tq_("--print-man")
    assert code == 0 and page.startswith(".TH TQ 1 ")
    for command in TABLES:
        assert f"\n.SS tq {command}\n" in page
    assert "\n.B \\-\\-max\\-samples N\n" in page
    assert all(
        line.split(" ")[0] in (".TH", ".SH", ".SS", ".TP", ".B", ".I") for line in page.split("\n") if line[:1] == "."
    )
