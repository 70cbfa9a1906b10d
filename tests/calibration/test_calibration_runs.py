# SPDX-License-Identifier: Apache-2.0
"""tq.calibrate however the work is split: threads, executors, Dask; forms of data, choices among them, progress."""

import concurrent.futures
import importlib.util
import io
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_inputs import network, samples

import tq
from tq import progress
from tq.calibration.samples import Reservoir, chosen

NAMES = ["minmax", "moving_average", "histogram", "percentile", "mse", "entropy"]
needs_dask = pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="dask is not installed")
needs_tqdm = pytest.mark.skipif(importlib.util.find_spec("tqdm") is None, reason="tqdm is not installed")


def one_input():
    return tq.extract(network(), inputs=["x"], outputs=["y"])


def save(path, data):
    np.savez(path, x=np.stack([x for x, _ in data]), u=np.stack([u for _, u in data]))
    return path


# ---- forms ----


def test_files_and_stacked_arrays(tmp_path):
    data = samples(6)
    expected = tq.calibrate(network(), data)
    whole = save(tmp_path / "all.npz", data)
    parts = [save(tmp_path / f"{at}.npz", data[at : at + 2]) for at in (0, 2, 4)]
    single = tmp_path / "single.npz"
    np.savez(single, first=data[0][0], second=data[0][1])
    stacked = {"x": np.concatenate([x for x, _ in data]), "u": np.stack([u for _, u in data])}
    for form in (whole, str(whole), parts, [*map(str, parts)], iter(parts), [parts[0], *data[2:]], stacked):
        assert tq.calibrate(network(), form) == expected
    assert tq.calibrate(network(), [single]) == tq.calibrate(network(), data[:1])
    x = np.stack([x for x, _ in data])
    expected = tq.calibrate(one_input(), list(x))
    for form in (x, x.reshape(6, 8), {"x": x}, ({"x": item} for item in x), [[item] for item in x]):
        assert tq.calibrate(one_input(), form) == expected


def test_a_generator_may_use_its_arrays_again():
    data = samples(20)

    def generate():
        array = [np.empty((1, 8), np.float32) for _ in range(2)]
        for sample in data:
            for to, value in zip(array, sample, strict=True):
                to[:] = value
            yield array

    for options in ({"num_threads": 1}, {"num_threads": 3}, {"max_samples": 20}):
        assert tq.calibrate(network(), generate(), **options) == tq.calibrate(network(), data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"abc", "calibration data are of type bytes; an iterable of samples is needed"),
        (5, "calibration data are of type int"),
        (np.zeros((4, 1, 8), np.float32), "are one array; the model has 2 inputs"),
        ({"x": np.zeros((4, 1, 8), np.float32), "u": np.zeros((3, 1, 8), np.float32)}, "different numbers of samples"),
        (
            {"x": np.zeros((4, 1, 9, 9), np.float32)},
            r"array 'x' of shape \[4, 1, 9, 9\] holds no inputs of shape \[1, 8",
        ),
        ({"q": np.zeros((4, 1, 8), np.float32)}, "no input is called 'q'"),
        ([3.5], "calibration sample 0 is 3.5; an array, a list of arrays or a dict"),
        ([[None, 1]], "sample 0 has no input 'x'"),
        ([[[[0.0] * 8], [["a"] * 8]]], "sample 0: input 'u' needs an array of float32"),
        ([[np.zeros((0, 8), np.float32)] * 2], r"sample 0: input 'x' has dimension 0 open; the shape \[0, 8\]"),
    ],
)
def test_data_that_do_not_fit(data, words):
    with pytest.raises(ValueError, match=words):
        tq.calibrate(network(), data)


def test_files_that_hold_no_samples(tmp_path):
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(ValueError, match=r"text.npz' is no .npz file of arrays"):
        tq.calibrate(network(), tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        tq.calibrate(network(), [tmp_path / "none.npz"])


def test_signatures():
    with tq.edit(network()) as e:
        e.add_signature("swapped", {"first": "u", "second": "x"}, {"z": "z"})
        other = e.add_subgraph("other")
        other.inputs = [other.add_tensor("a", [1])]
        other.outputs = other.inputs
        e.add_signature("elsewhere", {"a": 0}, {"a": 0}, subgraph=1)
        model = e.to_bytes()
    data = samples()
    named = [{"first": u, "second": x} for x, u in data]
    assert tq.calibrate(model, named, signature="swapped") == tq.calibrate(model, data)
    assert tq.calibrate(model, named, signature="serving_default") != tq.calibrate(model, data)
    with pytest.raises(ValueError, match="sample 0: no input is called 'first'; there are: a"):
        tq.calibrate(model, named, signature="elsewhere")
    with pytest.raises(ValueError, match="no signature is called 'none'; there are: serving_default, swapped"):
        tq.calibrate(model, named, signature="none")


# ---- the same whole ----


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 12),
    st.sampled_from(NAMES),
    st.integers(2, 5),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_any_number_of_threads(count, observer, threads, seed, is_generator):
    data = samples(count, seed=seed)
    expected = tq.calibrate(network(), data, observer=observer, num_threads=1)
    given = (sample for sample in data) if is_generator else data
    assert tq.calibrate(network(), given, observer=observer, num_threads=threads) == expected


@pytest.fixture(scope="module", params=["threads", "processes"])
def executor(request):
    kind = {"threads": concurrent.futures.ThreadPoolExecutor, "processes": concurrent.futures.ProcessPoolExecutor}
    with kind[request.param](2) as made:
        yield made


@pytest.mark.parametrize("observer", NAMES)
def test_executors(executor, observer):
    data = samples(11)
    expected = tq.calibrate(network(), data, observer=observer, num_threads=1)
    assert tq.calibrate(network(), data, observer=observer, executor=executor) == expected
    assert tq.calibrate(network(), iter(data), observer=observer, executor=executor) == expected
    expected = tq.calibrate(network(), data, observer=observer, max_samples=5, seed=3)
    assert tq.calibrate(network(), data, observer=observer, max_samples=5, seed=3, executor=executor) == expected


def test_errors_of_workers(executor):
    data = [*samples(3), [np.zeros((1, 8), np.float32), np.zeros((1, 9), np.float32)], *samples(3)]
    with pytest.raises(ValueError, match="calibration sample 3: input 'u' has the shape"):
        tq.calibrate(network(), data, executor=executor)
    with pytest.raises(ValueError, match="calibration set is empty"):
        tq.calibrate(network(), [], executor=executor)


def branches():
    """A gather, which fails where the index is out of range."""
    b = tq.ModelBuilder()
    index, x = b.input("index", [1], "int32"), b.constant("x", np.arange(4, dtype=np.float32))
    b.operator("GATHER", [x, index], [b.tensor("y", [1])])
    b.output("y")
    return b.to_bytes()


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 4}, {"executor": "threads"}])
def test_the_first_sample_that_fails_is_named(options):
    data = [np.array([i], np.int32) for i in (0, 1, 2, 9, 3, 8, 7, 2, 1)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        options = {key: pool if value == "threads" else value for key, value in options.items()}
        for _ in range(5):
            with pytest.raises(tq.RunError, match=r"calibration sample 3: .*GATHER"):
                tq.calibrate(branches(), data, **options)


def test_state_does_not_leak_between_samples():
    b = tq.ModelBuilder()
    shape = b.input("shape", [1], "int32")
    b.operator("RANDOM_UNIFORM", [shape], [b.tensor("y", [3])], seed=5, seed2=6)
    b.output("y")
    data = [np.array([3], np.int32)] * 6
    one = tq.calibrate(b.to_bytes(), data[:1])
    assert tq.calibrate(b.to_bytes(), data, num_threads=1).range("y") == one.range("y")
    assert tq.calibrate(b.to_bytes(), data, num_threads=4).range("y") == one.range("y")


def test_what_a_generator_raises_comes_through():
    def generate():
        yield from samples(5)
        raise KeyError("the data's own")

    for threads in (1, 3):
        with pytest.raises(KeyError, match="the data's own"):
            tq.calibrate(network(), generate(), num_threads=threads)
    with pytest.raises(ValueError, match="num_threads is 0"):
        tq.calibrate(network(), samples(), num_threads=0)


# ---- Dask ----


@pytest.fixture(scope="module")
def cluster():
    """A local cluster of two processes, or Dask's own pool of processes."""
    dask = pytest.importorskip("dask")
    try:
        from distributed import Client
    except ImportError:
        with dask.config.set(scheduler="processes", num_workers=2):
            yield
        return
    with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None):
        yield


def dask_forms(data):
    import dask
    import dask.bag

    yield dask.bag.from_sequence(data, npartitions=3)
    yield dask.delayed(list)(data)
    yield [dask.delayed(tuple)(sample) for sample in data]


@needs_dask
def test_dask(cluster):
    data = samples(10)
    for observer in ("minmax", "moving_average", "mse"):
        for most in (None, 4):
            expected = tq.calibrate(network(), data, observer=observer, max_samples=most, num_threads=1)
            for form in dask_forms(data):
                assert tq.calibrate(network(), form, observer=observer, max_samples=most) == expected


@needs_dask
def test_errors_from_dask(cluster):
    import dask
    import dask.bag

    wrong = [*samples(3), [np.zeros((1, 8)), np.zeros((1, 8), np.float32)]]
    with pytest.raises(ValueError, match="calibration sample 1 of partition 1: input 'x' is of float32, not float64"):
        tq.calibrate(network(), dask.bag.from_sequence(wrong, npartitions=2))
    with pytest.raises(ValueError, match="executor is given"):
        tq.calibrate(network(), [dask.delayed(tuple)(item) for item in wrong], executor=object())
    with pytest.raises(ValueError, match="calibration set is empty"):
        tq.calibrate(network(), dask.delayed(list)([]))


# ---- choosing ----


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 2**32))
def test_choices(count, size, seed):
    found = chosen(range(count), size, seed)
    assert len(found) == min(size, count) and found == sorted(set(found)) and set(found) <= set(range(count))
    assert found == chosen(iter(range(count)), size, seed)


def test_choices_are_fair():
    counts = np.bincount([item for seed in range(3000) for item in chosen(range(12), 3, seed)], minlength=12)
    assert abs(counts - 750).max() < 120  # five standard deviations
    with pytest.raises(ValueError, match="max_samples is 0"):
        Reservoir(0, 1)


def test_max_samples():
    data = samples(9)
    made = tq.calibrate(network(), data, max_samples=4, seed=7)
    assert made == tq.calibrate(network(), chosen(data, 4, 7)) and made.samples == 4
    assert made == tq.calibrate(network(), iter(data), max_samples=4, seed=7, num_threads=3)
    assert made != tq.calibrate(network(), data, max_samples=4, seed=8)


# ---- ranges ----


def test_observers_by_name():
    data = samples(8, rows=64)
    whole = tq.calibrate(network(), data, observer="histogram")
    assert whole.range("y") == tq.calibrate(network(), data).range("y")
    for name in ("percentile", "mse", "entropy"):
        options = {"percentile": 99} if name == "percentile" else {}
        made = tq.calibrate(network(), data, observer=name, **options)
        index = next(index for index, tensor in made.names.items() if tensor == "y")
        expected = whole.observers[index].range(name, percentile=99)
        assert made.range("y") == tuple(map(float, expected)) != whole.range("y")
        assert whole.with_observer(name, **options) == made
        assert made.with_observer("histogram").range("y") == whole.range("y")
        assert made.range("y", symmetric=True) == tuple(
            map(float, whole.observers[index].range(name, percentile=99, symmetric=True))
        )
    with pytest.raises(ValueError, match="no observer 'q'; there are: minmax, moving_average, histogram"):
        tq.calibrate(network(), data, observer="q")
    with pytest.raises(ValueError, match="'mse' is a HistogramObserver; tensor 'x' has a MinMaxObserver"):
        tq.calibrate(network(), data).with_observer("mse")
    with pytest.raises(ValueError, match="one calibration chooses ranges by 'mse', the other by 'minmax'"):
        tq.calibrate(network(), data, observer="mse").merge(whole)


@pytest.mark.parametrize("observer", NAMES)
def test_models_get_the_ranges_of_their_observer(observer):
    data = samples(8, rows=32)
    options = {"observer": observer, **({"percentile": 99} if observer == "percentile" else {})}
    made = tq.quantize_model(network(), calibration=data, **options)
    calibration = tq.calibrate(network(), data, **options)
    assert made == tq.quantize_model(network(), calibration=calibration)
    low, high = calibration.range("x")
    scale = next(t for t in tq.Model(made).tensors if t.name == "x_int8").quantization.scale[0]
    assert scale == tq.choose_quantization_params(low, high, "int8", rule="mlir").scale
    if observer in ("percentile", "mse", "entropy"):
        whole = tq.calibrate(network(), data, observer="histogram")
        assert made == tq.quantize_model(network(), calibration=whole, **options)


def test_saving_keeps_the_method(tmp_path):
    made = tq.calibrate(network(), samples(), observer="percentile", percentile=95)
    made.save(tmp_path / "ranges.npz")
    loaded = tq.Calibration.load(tmp_path / "ranges.npz")
    assert loaded == made and loaded.range("y") == made.range("y") and loaded.method == "percentile"


# ---- progress ----


@needs_tqdm
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 3}, {"executor": None}])
def test_progress(options, monkeypatch):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        options = {key: value or pool for key, value in options.items()}
        tq.calibrate(network(), samples(7), progress=True, **options)
        assert "calibrating" in sys.stderr.getvalue() and "7/7" in sys.stderr.getvalue()


def test_no_progress_but_on_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    tq.calibrate(network(), samples())
    assert not sys.stderr.getvalue()
    monkeypatch.setitem(sys.modules, "tqdm", None)  # as if there were none
    monkeypatch.setattr(sys, "stderr", Terminal())
    tq.calibrate(network(), samples())
    assert not sys.stderr.getvalue()  # it takes less than a second
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    tq.calibrate(network(), samples(3), num_threads=1)
    assert "\rcalibrating 1 of 3 samples, 0 s" in sys.stderr.getvalue()
    with pytest.raises(ImportError, match="progress=True needs tqdm, which is not installed: pip install tqdm"):
        tq.calibrate(network(), samples(), progress=True)
