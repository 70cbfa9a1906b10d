# SPDX-License-Identifier: Apache-2.0
"""Tensor.plot(): what is drawn, and where; and what is refused."""

import sys

import numpy as np
import pytest
from models import build_model, tensor

import tq

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

SCALE, ZERO = 0.012566017, 3


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def only_tensor(*args, **kwargs):
    return tq.Model(build_model([tensor(*args, **kwargs)], [], [0], [0])).tensors[0]


@pytest.fixture
def per_tensor():
    codes = np.repeat(np.arange(-100, 101, dtype=np.int8), 3).reshape(67, 9)
    return only_tensor("a/weight$s", [67, 9], "INT8", codes, scale=SCALE, zero_point=ZERO, min=-1.6488091, max=1.555525)


@pytest.fixture
def per_axis():
    codes = np.array([[-127, 0, 127], [10, 20, 30]], np.int8)
    return only_tensor("rows", [2, 3], "INT8", codes, scale=[0.5, 2.0], min=[-60.0, 15.0], max=[61.0, 70.0])


def lines_at(ax):
    """Where vertical lines stand, by the first word of their label; both ends of a range share it."""
    found, word = {}, None
    for line in ax.lines:
        if not line.get_label().startswith("_"):
            word = line.get_label().split()[0]
        found.setdefault(word, []).append(line.get_xdata()[0])
    return found


def histogram(ax):
    (stairs,) = [p for p in ax.patches if hasattr(p, "get_data")]
    return stairs.get_data()


def test_histogram_and_ranges(per_tensor):
    ax = per_tensor.plot()
    counts, edges, _ = histogram(ax)
    # One bin for each quantized value, each edge half a step from its value.
    assert counts.tolist() == [3] * 201
    scale = np.float64(np.float32(SCALE))
    np.testing.assert_allclose(edges, scale * (np.arange(202) - 100.5 - ZERO), rtol=1e-12)
    at = lines_at(ax)
    np.testing.assert_allclose(at["stored"], np.float32([-1.6488091, 1.555525]), rtol=1e-7)
    np.testing.assert_allclose(at["representable"], [scale * (-128 - ZERO), scale * (127 - ZERO)], rtol=1e-6)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["603 values", "stored −1.64881 … 1.55552", "representable −1.64615 … 1.55819"]
    assert ax.get_xlabel() == "value" and ax.get_ylabel() == "count"
    assert ax.get_title() == "a/weight$s\nINT8  [67, 9]  per-tensor"
    ax.figure.canvas.draw()


def test_histogram_of_quantized_values_as_stored(per_tensor):
    ax = per_tensor.plot(dequantized=False, bins=67, log=True)
    counts, edges, _ = histogram(ax)
    assert counts.tolist() == [9] * 67
    assert (edges[0], edges[-1]) == (-100.5, 100.5)
    assert ax.lines[:] == []
    assert ax.get_xlabel() == "quantized value q" and ax.get_yscale() == "log"


def test_per_axis_ranges_are_over_all_channels(per_axis):
    ax = per_axis.plot(bins=10)
    counts, edges, _ = histogram(ax)
    assert counts.sum() == 6 and len(counts) == 10
    assert (edges[0], edges[-1]) == (-63.5, 63.5)
    at = lines_at(ax)
    assert at == {"stored": [-60, 70], "representable": [-256, 254]}
    assert "over 2 scales" in ax.get_legend().get_texts()[1].get_text()


def test_channels(per_axis):
    ax = per_axis.plot(kind="channels")
    bars = [(p.get_y(), p.get_y() + p.get_height()) for p in ax.patches]
    assert bars == [(-64, 63.5), (-256, 254), (-63.5, 63.5), (20, 60)]
    (stored,) = ax.collections
    assert sorted(segment[0][1] for segment in stored.get_segments()) == [-60, 15, 61, 70]
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"representable", "values", "stored"}


def test_given_axes_are_used_and_returned(per_tensor):
    _, ax = pyplot.subplots()
    assert per_tensor.plot(ax=ax) is ax
    assert per_tensor.plot(ax) is ax
    assert len(pyplot.get_fignums()) == 1


def test_float_values_and_those_not_finite():
    item = only_tensor("f", [5], "FLOAT32", np.float32([0, 1, 2, np.nan, np.inf]))
    ax = item.plot(bins=4)
    counts, edges, _ = histogram(ax)
    assert counts.tolist() == [1, 0, 1, 1] and edges.tolist() == [0, 0.5, 1, 1.5, 2]
    assert ax.get_legend().get_texts()[0].get_text() == "5 values (2 not finite, left out)"


def test_a_range_far_wider_than_the_values_does_not_set_the_axis():
    item = only_tensor("bias", [3], "INT32", np.int32([-400, 0, 400]), scale=1e-3)
    ax = item.plot()
    assert ax.get_xlim()[1] < 1
    assert lines_at(ax)["representable"][1] == pytest.approx(2147483.647)
    assert "beyond the picture" in ax.get_legend().get_texts()[1].get_text()


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("INT4", bytes(range(8))),
        ("BOOL", bytes([0, 1] * 8)),
        ("BFLOAT16", bytes(range(32))),
        ("UINT8", bytes(range(16))),
    ],
)
def test_other_types(type, data):
    counts, _, _ = histogram(only_tensor("t", [16], type, data).plot())
    assert counts.sum() == 16


@pytest.mark.parametrize("values", [[7, 7], [3e38, -3e38], [1e30, 1e30 * (1 + 1e-6)], [1e-45, 0]])
def test_extreme_values(values):
    item = only_tensor("t", [2], "FLOAT32", np.float32(values))
    item.plot().figure.canvas.draw()


def test_refusals(per_tensor):
    with pytest.raises(ValueError, match=r"tensor 0 'image' has no data"):
        only_tensor("image", [1, 4]).plot()
    with pytest.raises(ValueError, match=r"tensor 0 'names' holds STRING"):
        only_tensor("names", [1], "STRING", [b"a"]).plot()
    with pytest.raises(ValueError, match=r"'nothing' has no elements|'nothing' has no data"):
        only_tensor("nothing", [0], "FLOAT32", b"").plot()
    with pytest.raises(ValueError, match=r"'nan' has no finite value"):
        only_tensor("nan", [1], "FLOAT32", np.float32([np.nan])).plot()
    with pytest.raises(ValueError, match=r"kind='channels' needs per-axis quantization .* this is per-tensor"):
        per_tensor.plot(kind="channels")
    with pytest.raises(ValueError, match="kind is 'pie'"):
        per_tensor.plot(kind="pie")
    with pytest.raises(ValueError, match="bins is 0"):
        per_tensor.plot(bins=0)


def test_without_matplotlib(per_tensor, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        per_tensor.plot()
