# SPDX-License-Identifier: Apache-2.0
"""export_npz: all constants in a file that numpy.load reads."""

import os
import zipfile

import ml_dtypes
import numpy as np
import pytest
from models import build_model, make_model, pack, subgraph, tensor

import tq


def export(model, path, **options):
    """(the written arrays by key, the skipped constants)."""
    model = model if isinstance(model, tq.Model) else tq.Model(model)
    result = tq.export_npz(model, path, **options)
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    assert list(arrays) == list(result.arrays)
    for key, (graph, index) in result.arrays.items():
        assert model.subgraphs[graph].tensors[index].is_constant, key
    return arrays, result.skipped


CODES = np.array([[-128, 0], [5, 127]], np.int8)


def test_raw_and_dequantized(tmp_path):
    data = build_model(
        [
            tensor("x", [1]),
            tensor("w", [2, 2], "INT8", CODES, scale=[0.5, 0.25], zero_point=[0, -1]),
            tensor("b", [2], "INT32", np.array([3, -4], np.int32), scale=0.1),
            tensor("shape", [2], "INT32", np.array([3, -4], np.int32)),
            tensor("f", [2], "FLOAT32", np.array([0.1, np.nan], np.float32)),
            tensor("scalar", [], "INT64", np.array(-(2**63))),
        ]
    )
    raw, skipped = export(data, tmp_path / "raw.npz")
    assert not skipped
    assert {key: (a.dtype.name, a.shape) for key, a in raw.items()} == {
        "w": ("int8", (2, 2)),
        "b": ("int32", (2,)),
        "shape": ("int32", (2,)),
        "f": ("float32", (2,)),
        "scalar": ("int64", ()),
    }
    np.testing.assert_array_equal(raw["w"], CODES)
    assert raw["scalar"] == -(2**63)
    tq.export_npz(data, tmp_path / "bytes.npz")
    assert (tmp_path / "bytes.npz").read_bytes() == (tmp_path / "raw.npz").read_bytes()
    real, skipped = export(data, tmp_path / "real.npz", dequantized=True)
    assert not skipped
    np.testing.assert_array_equal(real["w"], np.array([[-64, 0], [1.5, 32]], np.float32))
    np.testing.assert_array_equal(real["b"], np.float32(0.1) * np.array([3, -4], np.float32))
    assert real["w"].dtype == real["b"].dtype == np.float32
    np.testing.assert_array_equal(real["shape"], raw["shape"])  # no scale, so no real values
    assert real["shape"].dtype == np.int32
    np.testing.assert_array_equal(real["f"], raw["f"])


NARROW = [
    ("INT4", bytes([0x87, 0x0F]), np.array([7, -8, -1, 0], np.int8)),
    ("UINT4", bytes([0x87, 0x0F]), np.array([7, 8, 15, 0], np.uint8)),
    ("INT2", bytes([0b11100100]), np.array([0, 1, -2, -1], np.int8)),
    ("BFLOAT16", np.array([1, -2.5, 3e38, 0], ml_dtypes.bfloat16), np.array([1, -2.5, 3e38, 0], np.float32)),
    ("FLOAT8_E4M3FN", np.array([0x38, 0x7E, 0xFE, 0], np.uint8).tobytes(), np.array([1, 448, -448, 0], np.float32)),
    ("FLOAT8_E5M2", np.array([0x3C, 0x7B, 0xFC, 0], np.uint8).tobytes(), np.array([1, 57344, -np.inf, 0], np.float32)),
    ("FLOAT16", np.array([1, 65504, -2, 0], np.float16), np.array([1, 65504, -2, 0], np.float16)),
    ("BOOL", np.array([True, False, True, True]), np.array([True, False, True, True])),
    ("COMPLEX64", np.array([1j, 2, 3, 4], np.complex64), np.array([1j, 2, 3, 4], np.complex64)),
    ("STRING", [b"ab", b"", b"c\0d", b"e"], np.array([b"ab", b"", b"c\0d", b"e"])),
]


@pytest.mark.parametrize(("kind", "data", "values"), NARROW)
def test_every_type_becomes_one_that_numpy_knows(tmp_path, kind, data, values):
    arrays, skipped = export(build_model([tensor("t", [4], kind, data)]), tmp_path / "t.npz")
    assert not skipped
    assert arrays["t"].dtype == values.dtype
    if kind == "BFLOAT16":
        values = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(arrays["t"], values)


def test_strings_that_numpy_cannot_hold_are_skipped(tmp_path):
    uneven = [b"", *[b"a"] * 3000, b"b" * 100_000]
    data = build_model(
        [
            tensor("nul", [1], "STRING", [b"a\0"]),
            tensor("uneven", [len(uneven)], "STRING", uneven),
            tensor("empty", [0], "STRING", []),
        ]
    )
    arrays, skipped = export(data, tmp_path / "t.npz")
    assert list(arrays) == ["empty"]
    assert [place for place, _ in skipped] == ["subgraph 0, tensor 0 'nul'", "subgraph 0, tensor 1 'uneven'"]


def test_keys(tmp_path):
    names = ["a", "a", "a_2", "", "", "b/c:0", "/abs", "../up", "x.npy", "x.npy_", "n\n\0l", "back\\slash", "é≤", None]
    tensors = [tensor(name, [1], "INT8", bytes([i])) for i, name in enumerate(names)]
    further = subgraph([tensor("a", [1], "INT8", b"\x63"), tensor("file", [1], "INT8", b"\x62")])
    arrays, skipped = export(build_model(subgraphs=[subgraph(tensors), further]), tmp_path / "t.npz")
    assert not skipped
    assert {key: int(a[0]) for key, a in arrays.items()} == {
        "a": 0,
        "a_2": 1,
        "a_2_2": 2,
        "tensor_3": 3,
        "tensor_4": 4,
        "b/c:0": 5,
        "_/abs": 6,
        "_/up": 7,
        "x.npy_": 8,
        "x.npy__2": 9,
        "n__l": 10,
        "back_slash": 11,
        "é≤": 12,
        "tensor_13": 13,
        "a_3": 0x63,
        "file": 0x62,
    }


def test_blockwise_weights(tmp_path):
    codes = np.arange(-8, 8, dtype=np.int8)
    details = {"type": "BlockwiseQuantization", "scales": 1, "zero_points": -1, "block_size": 8}
    data = build_model(
        [
            tensor("w", [1, 16], "INT4", codes, details=details),
            tensor("s", [1, 2], "FLOAT16", np.array([0.5, 2], "<f2")),
        ]
    )
    arrays, skipped = export(data, tmp_path / "t.npz", dequantized=True)
    assert not skipped
    np.testing.assert_array_equal(arrays["w"], codes[None] * np.repeat(np.float32([0.5, 2]), 8))


def test_what_the_file_describes_wrongly_is_skipped(tmp_path):
    data = build_model(
        [tensor("short", [5], "INT8", b"123"), tensor("fine", [3], "INT8", b"123"), tensor("odd", [3], 99, b"123")]
    )
    arrays, skipped = export(data, tmp_path / "t.npz")
    assert list(arrays) == ["fine"]
    assert [place for place, _ in skipped] == ["subgraph 0, tensor 0 'short'", "subgraph 0, tensor 2 'odd'"]
    assert all(reason for _, reason in skipped)
    data = build_model([tensor("nowhere", [1], external_buffer=6)])
    assert export(data, tmp_path / "t.npz")[1][0][0] == "subgraph 0, tensor 0 'nowhere'"


def test_external_buffers(tmp_path):
    model = make_model([tensor("x", [4], "INT8", external_buffer=5)])
    model.store("external_buffer_groups", [{"name": "weights.bin"}])
    model.store("external_buffers", [{"id": 5, "group": 0, "offset": 1, "length": 4}])
    (tmp_path / "m.tflite").write_bytes(pack(model))
    arrays, skipped = export(tq.Model(tmp_path / "m.tflite"), tmp_path / "t.npz")
    assert not arrays and len(skipped) == 1  # the side file is not there
    (tmp_path / "weights.bin").write_bytes(bytes(range(8)))
    arrays, skipped = export(tq.Model(tmp_path / "m.tflite"), tmp_path / "t.npz")
    np.testing.assert_array_equal(arrays["x"], [1, 2, 3, 4])


def test_a_shared_buffer_cannot_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tq.inspection.export._SLACK", 0)
    tensors = [tensor(f"t{i}", [1 << 16], "INT8", buffer=1) for i in range(200)]
    data = build_model(tensors, buffers=[bytes(1 << 16)])
    arrays, skipped = export(data, tmp_path / "t.npz")
    assert 60 < len(arrays) < 100
    assert "shared" in skipped[-1][1]
    assert os.path.getsize(tmp_path / "t.npz") < 70 * len(data)


def test_equal_models_give_equal_files(tmp_path):
    data = build_model([tensor("w", [2, 2], "INT8", CODES)])
    for name in ("a.npz", "b.npz"):
        tq.export_npz(tq.Model(data), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.testzip() is None
        assert archive.getinfo("w.npy").date_time == (1980, 1, 1, 0, 0, 0)


def test_the_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    model = tq.Model(build_model([tensor("w", [2, 2], "INT8", CODES)]))
    target = tmp_path / "t.npz"
    target.write_bytes(b"before")

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        tq.export_npz(model, target)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["t.npz"]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "m.tflite").write_bytes(build_model([tensor("w", [2, 2], "INT8", CODES)]))
    model = tq.Model(tmp_path / "m.tflite")
    with pytest.raises(FileNotFoundError) as caught:
        tq.export_npz(model, tmp_path / "no" / "t.npz")
    assert caught.value.filename == str(tmp_path / "no" / "t.npz")
    for path in (tmp_path, tmp_path / "m.tflite", "/dev/null"):
        with pytest.raises(OSError):
            tq.export_npz(model, path)
    assert os.listdir(tmp_path) == ["m.tflite"]
    os.symlink(tmp_path / "real.npz", tmp_path / "link.npz")
    tq.export_npz(model, tmp_path / "link.npz")  # a link stays one
    assert os.path.islink(tmp_path / "link.npz") and (tmp_path / "real.npz").exists()


@pytest.mark.corpus
def test_constants_of_every_real_model(corpus, tmp_path):
    for path in corpus:
        model = tq.Model(path)
        arrays, skipped = export(model, tmp_path / "t.npz")
        assert not skipped, path
        for values, (graph, index) in zip(
            arrays.values(), tq.export_npz(model, tmp_path / "u.npz", True).arrays.values(), strict=True
        ):
            item = model.subgraphs[graph].tensors[index]
            dense = item.densify()
            assert values.shape == dense.shape
            if dense.dtype.isbuiltin == 1 and dense.dtype.kind != "O":
                assert values.tobytes() == dense.tobytes()
