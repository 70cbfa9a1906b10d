# SPDX-License-Identifier: Apache-2.0
"""`tq check`: exit codes, JSON, --fix."""

import json

import pytest
import specification_cases as cases
from commands import failed, fine

import tq


@pytest.fixture
def files(tmp_path):
    made = cases.base("CONV_2D", "int8")
    for name, model in (
        ("fine", made.model),
        ("off", cases.broken(made, "bias-scale").model),
        ("unusual", cases.broken(made, "weights-per-tensor").model),
    ):
        (tmp_path / f"{name}.tflite").write_bytes(model)
    return tmp_path


def test_exit_codes(run, files):
    assert fine(run("check", "fine.tflite")) == "no findings\n"
    assert "weights-per-tensor" in fine(run("check", "unusual.tflite"))
    assert "bias-scale" in fine(run("check", "off.tflite"), code=1)
    fine(run("check", "off.tflite", "--ignore", "bias-scale"))
    assert "spec" in fine(run("check", "fine.tflite", "--spec", "int16x8"), code=1)


def test_json_is_a_list_of_findings(run, files):
    (row,) = json.loads(fine(run("check", "off.tflite", "--json"), code=1))
    (finding,) = tq.check(files / "off.tflite")
    assert row == finding.to_dict()
    assert json.loads(fine(run("check", "fine.tflite", "--json"))) == []


def test_fix_writes_a_repaired_file(run, files):
    assert "bias-scale" in fine(run("check", "off.tflite", "--fix", "-o", "out.tflite"))
    assert tq.check(files / "out.tflite") == []
    fine(run("check", "out.tflite"))
    made = json.loads(fine(run("check", "off.tflite", "--fix", "-o", "out.tflite", "--json")))
    assert [change["rule"] for change in made["changes"]] == ["bias-scale"] and made["findings"] == []
    assert {"did", "loss"} <= set(made["changes"][0])


def test_fix_with_what_cannot_be_repaired_is_code_1(run, files):
    editor = tq.edit(cases.base("ADD", "int8").model)
    editor.operators[0].inputs[0].quantization = None
    editor.save(files / "add.tflite")
    assert "scale-missing" in fine(run("check", "add.tflite", "--fix", "-o", "out.tflite"), code=1)


def test_bad_use(run, files):
    failed(run("check", "off.tflite", "--fix"), "-o OUT")
    failed(run("check", "off.tflite", "-o", "out.tflite"), "--fix")
    failed(run("check", "off.tflite", "--ignore", "bias-scael"), "bias-scale")
    failed(run("check", "off.tflite", "--fix", "-o", "off.tflite"), "overwritten")
    failed(run("check", "missing.tflite"), "missing.tflite")
    failed(run("check", "fine.tflite", "--spec", "int9"), "int9")
