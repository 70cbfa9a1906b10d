# SPDX-License-Identifier: Apache-2.0
"""What stands for a model: paths, bytes, open files, open models; and files that are something else."""

import io
import pathlib

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq

WEIGHTS = np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1024, 2)
NETWORK = build_model(
    [tensor("x", shape=[1, 2]), tensor("w", shape=[1024, 2], data=WEIGHTS), tensor("y", shape=[1, 1024])],
    [operator("FULLY_CONNECTED", [0, 1, -1], [2])],
    inputs=[0],
    outputs=[2],
)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "m.tflite").write_bytes(NETWORK)
    return tmp_path / "m.tflite"


FORMS = {
    "str": str,
    "path": pathlib.Path,
    "bytes": lambda path: path.read_bytes(),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "array": lambda path: np.frombuffer(path.read_bytes(), np.uint8),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "open file": lambda path: path.open("rb"),
    "model": lambda path: tq.Model(path),
}
TAKERS = {
    "Interpreter": tq.Interpreter,
    "Interpreter, by keyword": lambda source: tq.Interpreter(model=source),
    "edit": lambda source: tq.edit(source).to_bytes(),
    "diff": lambda source: tq.diff(source, NETWORK),
    "check": tq.check,
    "extract": lambda source: tq.extract(source, ["x"], ["y"]),
    "quantize_model": lambda source: tq.quantize_model(source, "float16"),
    "compare": lambda source: tq.compare(source, NETWORK, np.zeros([1, 2], np.float32)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("taker", TAKERS)
def test_every_form_of_a_model_is_taken_everywhere(taker, form, path):
    source = FORMS[form](path)
    TAKERS[taker](source)
    if form == "open file":
        source.close()


def test_an_interpreter_runs_what_quantize_model_returns():
    """Its bytes were taken for a path."""
    for source in (tq.quantize_model(NETWORK, "float16"), tq.Model(NETWORK), io.BytesIO(NETWORK)):
        run = tq.Interpreter(source)
        run.allocate_tensors()
        run.set_tensor(0, np.float32([[0, 1]]))
        run.invoke()
        assert abs(run.get_tensor(run.get_output_details()[0]["index"])[0, -1] - 1) < 0.01


def test_bytes_without_a_zero_byte_are_an_interpreters_path(path):
    assert tq.Interpreter(str(path).encode()).model.path == str(path)


def test_an_open_file_is_read_from_where_it_stands():
    file = io.BytesIO(b"head" + NETWORK)
    file.seek(4)
    assert tq.Model(file).nbytes == len(NETWORK)


@pytest.mark.parametrize("source", [3, None, object()])
def test_what_is_no_model_is_named(source):
    with pytest.raises(TypeError, match=f"path, hold bytes or be an open file, not {type(source).__name__}"):
        tq.Model(source)


def test_a_file_open_for_text_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"gives str; open the file for bytes, as open\(path, 'rb'\)"):
        tq.Model(io.StringIO("text"))


def test_a_file_whose_read_fails_raises_its_error():
    class Broken:
        def read(self):
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        tq.Model(Broken())


def saved(save, *args):
    file = io.BytesIO()
    save(file, *args)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (saved(lambda file: np.savez(file, x=np.zeros(9))), "a zip archive"),
        (saved(np.save, np.zeros(9)), "a NumPy array"),
        (b"\x89HDF\r\n\x1a\n" + bytes(64), "an HDF5 file"),
        (b"\x08\x07\x12\x07pytorch" + bytes(64), "perhaps an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html><head></head></html>", "a page of HTML"),
        (b'{"version": 3, "subgraphs": []}', "JSON"),
        (b"Dear reader, this is no model at all.", "text"),
    ],
)
def test_a_refusal_says_what_the_file_is(data, kind):
    with pytest.raises(tq.ModelError, match=f"this is {kind}.*, not a TFLite model"):
        tq.Model(data)


def test_a_damaged_model_is_called_nothing_else():
    damaged = b"<\0\0\0" + NETWORK[4:200]
    with pytest.raises(tq.ModelError) as refused:
        tq.Model(damaged)
    assert "this is" not in str(refused.value)
