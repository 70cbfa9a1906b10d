# SPDX-License-Identifier: Apache-2.0
"""tq.calibrate: ranges as LiteRT's tensors have them, forms of input, saving, merging, data that does not fit."""

import os

import numpy as np
import oracle
import pytest
from two_inputs import network, samples

import tq


def test_ranges_are_those_of_litert():
    data = samples()
    calibration = tq.calibrate(network(), data)
    assert calibration.samples == 5 and set(calibration.names.values()) == {"x", "u", "y", "z"}
    runs = [{0: x, 1: u} for x, u in data]
    places = list(calibration.names)
    (answer,) = oracle.ask("tensors", [(network(), "BUILTIN_REF", runs, {}, places)])
    for place in places:
        values = np.stack([run[place] for run in answer])
        low, high = calibration.range(place)
        np.testing.assert_allclose([low, high], [values.min(), values.max()], rtol=1e-5)
    for place, name in ((0, "x"), (1, "u")):
        values = np.stack([sample[place] for sample in data])
        assert calibration.range(name) == (values.min(), values.max())


def test_forms_of_input():
    data = samples()
    expected = tq.calibrate(network(), data)
    for form in (
        (tuple(sample) for sample in data),  # a generator
        [{"x": x, "u": u} for x, u in data],
        [{"first": x, "second": u} for x, u in data],
        [[x.tolist(), u] for x, u in data],
    ):
        assert tq.calibrate(network(), form) == expected
    assert tq.calibrate(tq.Model(network()), data, num_threads=2) == expected


def test_a_single_array_for_a_single_input():
    part = tq.extract(network(), inputs=["x"], outputs=["y"])
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
    assert tq.calibrate(part, [x]).range("x") == (-1, 1)


def test_shapes_may_change_where_the_file_leaves_them_open():
    calibration = tq.calibrate(network(), [*samples(1, rows=3), *samples(1, rows=1), *samples(1, rows=3)])
    assert calibration.observers[0].count == (3 + 1 + 3) * 8


def test_variables_are_reset_before_each_sample():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 2]), b.tensor("y", [1, 2])
    state = b.tensor("state", [1, 2], is_variable=True)
    one = b.constant("one", np.eye(2, dtype=np.float32))
    b.operator("RNN", [x, one, one, b.constant("bias", np.zeros(2, np.float32)), state], [y])
    b.output(y)
    data = [np.ones((1, 2), np.float32)] * 4
    assert tq.calibrate(b.to_bytes(), data).range("y") == (1, 1)
    assert tq.calibrate(b.to_bytes(), data, reset_variables=False).range("y") == (1, 4)


def test_merging_is_as_if_all_were_seen_at_once():
    data = samples(6)
    for observer in (tq.MinMaxObserver, tq.HistogramObserver):
        whole = tq.calibrate(network(), data, observer=observer)
        parts = [tq.calibrate(network(), data[at : at + 2], observer=observer) for at in (0, 2, 4)]
        assert parts[2].merge(parts[0]).merge(parts[1]) == whole


@pytest.mark.parametrize("observer", [tq.MinMaxObserver, tq.HistogramObserver, tq.MovingAverageObserver])
def test_saving(observer, tmp_path):
    calibration = tq.calibrate(network(), samples(), observer=observer)
    path = tmp_path / "ranges.npz"
    calibration.save(path)
    assert os.listdir(tmp_path) == ["ranges.npz"]
    loaded = tq.Calibration.load(path)
    assert loaded == calibration and repr(loaded) == "<tq calibration: 4 tensors, 5 samples>"
    more = tq.calibrate(network(), samples(2, seed=9), observer=observer)
    assert loaded.merge(more) == calibration.merge(more)


def test_merging_what_does_not_belong_together():
    calibration = tq.calibrate(network(), samples(1))
    part = tq.extract(network(), inputs=["x"], outputs=["y"])
    with pytest.raises(ValueError, match="different models: tensor"):
        calibration.merge(tq.calibrate(part, [samples(1)[0][0]]))
    with pytest.raises(ValueError, match="'x' has a MinMaxObserver in one, a HistogramObserver in the other"):
        calibration.merge(tq.calibrate(network(), samples(1), observer=tq.HistogramObserver))


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ([np.zeros((1, 8), np.float32)], r"sample 1 has 1 inputs; the model has 2"),
        ({"x": np.zeros((1, 8), np.float32)}, "sample 1 has no input 'u'"),
        ({"x": 0, "q": 1}, "sample 1: no input is called 'q'; there are: x, u, first, second"),
        ([np.zeros((1, 8)), np.zeros((1, 8), np.float32)], "input 'x' is of float32, not float64"),
        (
            [np.zeros((1, 8), np.float32), np.zeros((1, 9), np.float32)],
            r"input 'u' has the shape \[-1, 8\], not \[1, 9\]",
        ),
    ],
)
def test_samples_that_do_not_fit(sample, words):
    with pytest.raises(ValueError, match=words):
        tq.calibrate(network(), [samples(1)[0], sample])


def test_no_samples():
    with pytest.raises(ValueError, match="calibration set is empty"):
        tq.calibrate(network(), [])


def test_values_that_are_not_finite():
    sample = [np.full((1, 8), np.nan, np.float32), np.ones((1, 8), np.float32)]
    calibration = tq.calibrate(network(), [sample])
    with pytest.raises(ValueError, match="'x' had no finite value in 1 samples"):
        calibration.range("x")
    assert calibration.range("u") == (1, 1)
    with pytest.raises(KeyError, match="'w'"):
        calibration.range("w")


@pytest.mark.parametrize("content", [b"", b"nothing", network()])
def test_files_that_are_no_calibration(content, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no saved calibration"):
        tq.Calibration.load(path)
    np.savez(path, header=np.zeros(3))
    with pytest.raises(ValueError, match="no saved calibration"):
        tq.Calibration.load(path)
    with pytest.raises(FileNotFoundError):
        tq.Calibration.load(tmp_path / "none.npz")
