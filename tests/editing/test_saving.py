# SPDX-License-Identifier: Apache-2.0
"""Functions that write files replace no input and nothing but regular files; a failure leaves the old file."""

import errno
import os
import re
import shutil
import socket
import stat
import subprocess
import sys

import numpy as np
import pytest
from commands import DEMO, environment, failed, fine

import tq
from tq import saving
from tq.cli import demo_float
from tq.inspection.export import write_npz
from tq.saving import Target

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX's files")


@pytest.fixture
def folder(tmp_path):
    demo_float.write(tmp_path)
    shutil.copyfile(DEMO, tmp_path / "small.tflite")
    tq.calibrate(tmp_path / "demo_float.tflite", str(tmp_path / "demo_samples.npz"), max_samples=1).save(
        tmp_path / "ranges.npz"
    )
    np.save(tmp_path / "x.npy", np.load(tmp_path / "demo_samples.npz")["picture"][0])
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


FLOAT, SAMPLES = "demo_float.tflite", "demo_samples.npz"
STATIC = ["--recipe", "int8", "--samples", SAMPLES]
OVERWRITING = {
    "quantize": ["quantize", FLOAT, FLOAT, "--recipe", "dynamic_int8", "--min-elements", "0"],
    "quantize samples": ["quantize", FLOAT, SAMPLES, *STATIC],
    "quantize calibration": ["quantize", FLOAT, "ranges.npz", "--recipe", "int8", "--calibration", "ranges.npz"],
    "quantize better": ["quantize", FLOAT, FLOAT, *STATIC, "--equalize"],
    "equalize": ["equalize", FLOAT, FLOAT],
    "equalize samples": ["equalize", FLOAT, SAMPLES, "--samples", SAMPLES],
    "report first": ["report", FLOAT, "small.tflite", "--samples", SAMPLES, "-o", FLOAT],
    "report second": ["report", FLOAT, "small.tflite", "--samples", SAMPLES, "-o", "small.tflite"],
    "report samples": ["report", FLOAT, "small.tflite", "--samples", SAMPLES, "-o", SAMPLES],
    "run": ["run", FLOAT, "-o", FLOAT],
    "run input": ["run", FLOAT, "--input", "x.npy", "-o", "x.npy"],
    "export": ["export", FLOAT, "-o", FLOAT],
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_no_command_writes_over_what_it_reads(name, run, folder):
    before = contents(folder)
    failed(run(*OVERWRITING[name]), "would be overwritten")
    assert contents(folder) == before


@posix
@pytest.mark.parametrize("how", ["relative", "symlink", "hard link", "folder link"])
def test_an_input_is_a_file_and_not_a_name(how, run, folder):
    (folder / "in").symlink_to(".")
    other = {"relative": f"../{folder.name}/{FLOAT}", "folder link": f"in/{FLOAT}"}.get(how, "other.tflite")
    if how == "symlink":
        (folder / other).symlink_to(FLOAT)
    if how == "hard link":
        os.link(folder / FLOAT, folder / other)
    before = contents(folder)
    for arguments in (["quantize", FLOAT, other, *STATIC], ["equalize", other, FLOAT], ["run", FLOAT, "-o", other]):
        failed(run(*arguments), "the model itself" if arguments[0] != "run" else "an input")
    assert contents(folder) == before


def test_in_place(run, folder):
    whole = (folder / FLOAT).read_bytes()
    expected = tq.quantize_model(whole, "dynamic_int8", min_elements=0)
    options = ["--recipe", "dynamic_int8", "--min-elements", "0", "--in-place"]
    fine(run("quantize", FLOAT, *options))
    assert (folder / FLOAT).read_bytes() == expected
    (folder / FLOAT).write_bytes(whole)
    fine(run("quantize", FLOAT, f"./{FLOAT}", *options))
    assert (folder / FLOAT).read_bytes() == expected
    (folder / FLOAT).write_bytes(whole)
    failed(run("quantize", FLOAT, "new.tflite", *options), "--in-place", "'new.tflite'")
    failed(run("quantize", FLOAT, *options[:-1]), "OUT is needed")
    fine(run("equalize", FLOAT, "--in-place"))
    assert (folder / FLOAT).read_bytes() == tq.equalize(whole) and not (folder / "new.tflite").exists()


def test_functions_write_over_no_input(folder, monkeypatch):
    path, samples = folder / FLOAT, folder / SAMPLES
    model, before = tq.Model(path), contents(folder)
    mapped = np.load(folder / "x.npy", mmap_mode="r")
    codes = tq.Model(tq.quantize_model(path, calibration=str(samples)))
    report = tq.report(model, codes, str(samples))
    calibration = tq.calibrate(model, str(samples))
    attempts = [
        lambda: tq.quantize_model(model, "dynamic_int8", min_elements=0, output=path),
        lambda: tq.quantize_model(path, calibration=[samples], output=samples),
        lambda: tq.quantize_model(path, calibration=calibration, output=samples),
        lambda: tq.quantize_model(path, calibration=[mapped], output=folder / "x.npy"),
        lambda: tq.quantize_model(path, calibration=np.load(samples), bias_correction=True, output=samples),
        lambda: tq.equalize(path, output=path),
        lambda: tq.correct_biases(path, codes, str(samples), output=path),
        lambda: tq.report(path, codes, str(samples), output=path),
        lambda: report.save(path),
        lambda: report.save(samples),
        lambda: calibration.save(path),
        lambda: calibration.with_observer("minmax").save(samples),
        lambda: tq.export_npz(model, path),
        lambda: tq.edit(path).save(path),
        lambda: tq.edit(model).save(path),
    ]
    for attempt in attempts:
        with pytest.raises(OSError, match="would be overwritten"):
            attempt()
    assert contents(folder) == before
    monkeypatch.chdir(folder)
    model = tq.Model(FLOAT)
    monkeypatch.chdir("/")  # the model's path is that of another folder now; the file is the same
    with pytest.raises(OSError, match="the model itself would be overwritten"):
        tq.equalize(model, output=path)
    assert contents(folder) == before


def test_an_external_buffer_s_file_is_an_input(tmp_path):
    class Buffer:
        group = "side.bin"

    class Opened:
        path, external_buffers = str(tmp_path / "m.tflite"), [Buffer]

    assert list(saving._side_files(Opened)) == [str(tmp_path / "side.bin")]


def test_saving_in_place_says_so(folder):
    path = folder / FLOAT
    model = tq.Model(path)
    weights, first = model.tensors["scores/bias"], model.tensors["scores/bias"].data.copy()
    for save in (
        lambda e: e.save(),
        lambda e: e.save(path, in_place=True),
        lambda e: e.save(f"{folder}/./{FLOAT}", in_place=True),
    ):
        with tq.edit(path) as e:
            e.description += "x"
            save(e)
            e.description += "y"
            save(e)  # and again, over the file that it wrote
    assert tq.Model(path).description.endswith("xyxyxy")
    np.testing.assert_array_equal(weights.data, first)  # the old file's memory
    with tq.edit(path) as e, pytest.raises(ValueError, match="is not the file of the model"):
        e.save(folder / "new.tflite", in_place=True)
    tq.equalize(path, output=path, in_place=True)
    with pytest.raises(ValueError, match="in_place is True, but there is no output"):
        tq.quantize_model(path, "dynamic_int8", in_place=True)


WRITERS = {
    "quantize": lambda path: tq.quantize_model(demo_float.float_model(), "dynamic_int8", min_elements=0, output=path),
    "equalize": lambda path: tq.equalize(demo_float.float_model(), output=path),
    "edit": lambda path: tq.edit(demo_float.float_model()).save(path),
    "builder": lambda path: tq.ModelBuilder().save(path),
    "export": lambda path: tq.export_npz(DEMO, path),
    "npz": lambda path: write_npz(path, {"x": np.zeros(3)}),
    "calibration": lambda path: tq.Calibration({}, {}).save(path),
}


def special(kind, path):
    """Something that is no regular file; and what tells that it is still there."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(path))
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # as /dev/full
        except OSError as error:
            pytest.skip(f"no device can be made: {error}")
    return os.lstat(path)


@posix
@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "device"])
@pytest.mark.parametrize("name", WRITERS)
def test_only_regular_files_are_replaced(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = special(kind, tmp_path / "out")
    (tmp_path / "link").symlink_to("out")
    for path in ("out", "link"):
        with pytest.raises(OSError, match="Is a directory" if kind == "folder" else "not a regular file"):
            WRITERS[name](tmp_path / path)
    assert os.path.samestat(os.lstat(tmp_path / "out"), there) and sorted(os.listdir(tmp_path)) == ["link", "out"]


@posix
@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_file_is_refused(name, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"mine")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        WRITERS[name](path)
    assert path.read_bytes() == b"mine" and stat.S_IMODE(path.stat().st_mode) == 0o444


@posix
@pytest.mark.parametrize("unnamed", [True, False])
def test_mode_and_owner_stay(unnamed, tmp_path, monkeypatch):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "out"
    path.write_bytes(b"old")
    owner = (1234, 4321) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(path, *owner)
    path.chmod(0o2751)
    (tmp_path / "link").symlink_to("out")
    Target(tmp_path / "link").save(b"new")
    found = path.stat()
    assert (path.read_bytes(), (found.st_uid, found.st_gid)) == (b"new", owner)
    assert stat.S_IMODE(found.st_mode) == 0o2751 and (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


@posix
@pytest.mark.parametrize("unnamed", [True, False])
def test_a_new_file_gets_what_the_umask_leaves(unnamed, tmp_path, monkeypatch):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    old = os.umask(0o027)
    try:
        Target(tmp_path / "out").save(b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
def test_a_disk_that_is_full_leaves_the_old_file(name, when, tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    if when == "write":
        monkeypatch.setattr(saving, "write_all", full)
        if name in ("edit", "builder", "export", "npz"):
            pytest.skip("they write by the core and by zipfile: the other moments, and test_quantize_bad.py")
    else:
        monkeypatch.setattr(os, when, full)
    with pytest.raises(OSError, match=rf"No space left on device: '{re.escape(str(path))}'"):
        WRITERS[name](path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


@posix
@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_standard_output(out, folder):
    def piped(*arguments):
        command = [sys.executable, "-m", "tq", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"tq: ")  # what is said of the file
        return done.stdout

    expected = tq.quantize_model(folder / FLOAT, "dynamic_int8", min_elements=0)
    assert piped("quantize", FLOAT, out, "--recipe", "dynamic_int8", "--min-elements", "0") == expected
    assert piped("equalize", FLOAT, out) == tq.equalize(folder / FLOAT)
    assert piped("report", FLOAT, FLOAT, "--samples", SAMPLES, "-o", out).startswith(b"<!")
    for arguments in (("run", FLOAT, "-o", out), ("export", FLOAT, "-o", out)):
        (folder / "made.npz").write_bytes(piped(*arguments))
        assert np.load(folder / "made.npz").files
    before = contents(folder)
    with open(folder / FLOAT, "ab") as file:  # as a shell's >> does
        command = [sys.executable, "-m", "tq", "equalize", FLOAT, out]
        done = subprocess.run(command, cwd=folder, env=environment(), stdout=file, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 2 and b"would be overwritten" in done.stderr and contents(folder) == before


def test_a_path_of_bytes_and_a_loop_of_links(tmp_path):
    Target(os.fsencode(tmp_path / "out")).save(b"new")
    assert (tmp_path / "out").read_bytes() == b"new"
    if os.name == "posix":
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(OSError, match="loop"):
            Target(tmp_path / "loop").save(b"new")
