# SPDX-License-Identifier: Apache-2.0
"""Calibration: the ranges of a model's activations, from running it on data.

calibration = tq.calibrate("float.tflite", samples)
calibration.save("ranges.npz")
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tq import _core
from tq._core import Model
from tq.calibration import encodings, observers
from tq.calibration import runs as calibration_runs
from tq.calibration.encodings import Encoding
from tq.calibration.runs import Numbered, Part
from tq.calibration.samples import Calls, chosen
from tq.nearest import hint
from tq.progress import Progress
from tq.running.limits import Limits
from tq.saving import Target, files_of
from tq.sources import Source, opened

Observer = observers.MinMaxObserver | observers.MovingAverageObserver | observers.HistogramObserver
_CLASSES: dict[str, Any] = {
    "MinMaxObserver": observers.MinMaxObserver,
    "MovingAverageObserver": observers.MovingAverageObserver,
    "HistogramObserver": observers.HistogramObserver,
}
_FORMAT = 1  # of saved files


class _Kind(NamedTuple):
    """An observer by name: its constructor, and the rule that chooses a range from its contents."""

    observer: Callable[[], Observer]
    method: str


KINDS = {
    "minmax": _Kind(observers.MinMaxObserver, "minmax"),
    "moving_average": _Kind(observers.MovingAverageObserver, "minmax"),
    "histogram": _Kind(observers.HistogramObserver, "minmax"),
    **{
        method: _Kind(observers.HistogramObserver, method)
        for method in _core.rules()["histogram"]
        if method != "minmax"
    },
}


class Calibration:
    """The ranges of a model's float activations, observed on samples.

    observers: {key: observer}; key: the tensor's index, plus 2^32 times the index of its subgraph.
    names: {key: the tensor's name}; merge compares them to tell models apart.
    samples: the number of samples run.
    method: the rule of `range`: "minmax", or, with tq.HistogramObserver objects, "percentile", "mse" or "entropy".
    percentile: of method "percentile": the percentage of values inside the range.
    encodings: {a tensor's name: tq.calibration.encodings.Encoding}: ranges, scales and zero points from a model or a
        JSON file, of weights too.  tq.quantize_model takes them before the observers' ranges.
    """

    __module__ = "tq"  # for pickles, which name the public place

    def __init__(
        self,
        names: Mapping[int, str],
        observers: Mapping[int, Observer],
        samples: int = 0,
        *,
        method: str = "minmax",
        percentile: float = 99.99,
        encodings: Mapping[str, Encoding] | None = None,
    ) -> None:
        self.names = dict(names)
        self.observers = dict(observers)
        self.samples = samples
        self.method = method
        self.percentile = percentile
        self.encodings = dict(encodings or {})
        self._input_files: frozenset[tuple[int, int]] = (
            frozenset()
        )  # of model and samples: save() does not overwrite them

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update({"encodings": {}, **state})  # pickles of earlier versions have none

    @classmethod
    def from_model(cls, model: Source) -> Calibration:
        """The ranges, scales and zero points of a quantized model, whichever program made it, by the names of its
        tensors: for tq.quantize_model of a float model with these names.

        ValueError: nothing of it is quantized."""
        opened_model = opened(model)
        found = encodings.of_model(opened_model)
        if not found:
            raise ValueError("the model holds no quantized values")
        made = cls({}, {}, encodings=found)
        made._input_files = files_of(opened_model)
        return made

    def set_range(self, tensor: str, low: float, high: float) -> None:
        """Another range for a tensor, an activation or weights, by its name; tq.quantize_model takes it before what
        was seen."""
        self.encodings[tensor] = Encoding((float(low),), (float(high),))

    def with_observer(self, observer: str, percentile: float = 99.99) -> Calibration:
        """The result of calibrate(..., observer=observer) on the same samples; it shares the observers.

        ValueError: there is no such name, or these observers do not hold enough: "percentile", "mse" and "entropy" need
        histograms, and "moving_average" must be observed while the samples run.
        """
        _check_percentile(observer, percentile)
        if not self.observers and observer != "minmax":
            raise ValueError(f"observer {observer!r} has no effect: the calibration holds ranges, and no values")
        wanted = type(_kind(observer).observer())
        for index, found in self.observers.items():
            tells = isinstance(found, wanted)
            if not tells and not (observer == "minmax" and isinstance(found, observers.HistogramObserver)):
                raise ValueError(
                    f"observer {observer!r} is a {wanted.__name__}; tensor {self.names[index]!r} has a "
                    f"{type(found).__name__}: calibrate with observer={observer!r}"
                )
        method = _kind(observer).method
        options: dict[str, Any] = {"method": method, "percentile": percentile, "encodings": self.encodings}
        made = Calibration(self.names, self.observers, self.samples, **options)
        made._input_files = self._input_files
        return made

    def range(self, tensor: int | str, *, dtype: Any = "int8", symmetric: bool = False) -> tuple[float, float]:
        """(least, greatest) value of a tensor, by its key or name: observed, or chosen by `method`.

        dtype, symmetric: of the quantization that the range is for; "mse" and "entropy" depend on them.
        KeyError: the tensor was not observed.  ValueError: it never had a finite value.
        """
        if isinstance(tensor, str) and tensor in self.encodings:
            return min(self.encodings[tensor].min), max(self.encodings[tensor].max)
        index = tensor if not isinstance(tensor, str) else self._index(tensor)
        observer = self.observers[index]
        low, high = float(observer.min), float(observer.max)
        if low > high:
            raise ValueError(f"tensor {self.names[index]!r} had no finite value in {self.samples} samples")
        if self.method != "minmax" and isinstance(observer, observers.HistogramObserver):
            options: dict[str, Any] = {"percentile": self.percentile, "dtype": dtype, "symmetric": symmetric}
            low, high = (float(limit) for limit in observer.range(self.method, **options))
        return low, high

    def _index(self, name: str) -> int:
        for index, found in self.names.items():
            if found == name:
                return index
        raise KeyError(f"no tensor {name!r} was observed{hint(name, [*self.names.values(), *self.encodings])}")

    def merge(self, other: Calibration) -> Calibration:
        """Adds the observations of another calibration of the same model.  Returns this one.

        ValueError: the models, observers or methods differ.
        """
        if (other.method, other.percentile) != (self.method, self.percentile):
            raise ValueError(f"one calibration chooses ranges by {self.method!r}, the other by {other.method!r}")
        if other.names != self.names:
            raise ValueError(f"the calibrations are of different models: {_first_difference(self.names, other.names)}")
        for index in self.names:
            observer: Any = self.observers[index]
            theirs: Any = other.observers[index]
            if type(theirs) is not type(observer):
                raise ValueError(
                    f"tensor {self.names[index]!r} has a {type(observer).__name__} in one, "
                    f"a {type(theirs).__name__} in the other"
                )
            observer.merge(theirs)
        self.samples += other.samples
        self.encodings.update(other.encodings)
        self._input_files |= other._input_files
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the calibration to a file, which load reads; the file appears whole or not at all.

        An .npz file holds every observer.  A file whose name ends in .json holds the chosen ranges, by the names of
        tensors, to be read, compared and edited; of encodings also scales and zero points.

        OSError: `path` is the file of the model or of its samples, no regular file, or read-only.
        """
        if os.fspath(path).endswith(".json"):
            text = encodings.to_json(self._all_encodings())
            Target(path, self).save(text.encode())
            return
        arrays: dict[str, Any] = {}
        rows: list[dict[str, Any]] = []
        for index, observer in self.observers.items():
            state = observer.__getstate__()
            rows.append({"index": index, "name": self.names[index], "class": type(observer).__name__, "plain": {}})
            for field, value in state.items():
                if isinstance(value, np.ndarray):
                    arrays[f"{index}/{field}"] = value
                else:
                    rows[-1]["plain"][field] = value
        chosen = {"method": self.method, "percentile": self.percentile}
        more = {"encodings": encodings.to_json(self.encodings)} if self.encodings else {}
        header = json.dumps({"format": _FORMAT, "samples": self.samples, **chosen, "observers": rows, **more})
        stream = io.BytesIO()
        np.savez_compressed(stream, header=np.frombuffer(header.encode(), np.uint8), **arrays)
        data = stream.getvalue()
        Target(path, self).save(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Reads a file that save wrote, or ranges as JSON: ONNX Runtime's (its calibration.cache too) and AIMET's.

        ValueError: another file.  OSError: it cannot be read."""
        try:
            if (text := _text_of(path)) is not None:
                return cls({}, {}, encodings=encodings.from_json(text))
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(bytes(file["header"]))
                if header["format"] != _FORMAT:
                    raise ValueError(f"format {header['format']}; this version of tq reads {_FORMAT}")
                names, found = {}, {}
                for row in header["observers"]:
                    prefix = f"{row['index']}/"
                    state = row["plain"] | {
                        key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)
                    }
                    observer = _CLASSES[row["class"]].__new__(_CLASSES[row["class"]])
                    observer.__setstate__(state)
                    names[int(row["index"])], found[int(row["index"])] = row["name"], observer
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(path)!r} is no saved calibration: {error}") from error
        options: dict[str, Any] = {key: header[key] for key in ("method", "percentile") if key in header}
        if "encodings" in header:
            options["encodings"] = encodings.from_json(header["encodings"])
        return cls(names, found, int(header["samples"]), **options)

    def _all_encodings(self) -> dict[str, Encoding]:
        """Also of what observers saw; of tensors of one name the first."""
        found = dict(self.encodings)
        for index, name in self.names.items():
            observer = self.observers[index]
            if name not in found and observer.min <= observer.max:
                low, high = self.range(index)
                found[name] = Encoding((low,), (high,))
        return found

    # Without __hash__: equality is that of the observers' contents, which change.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        return {**self.__dict__, "_input_files": None} == {**other.__dict__, "_input_files": None}

    def __repr__(self) -> str:
        known = f", {len(self.encodings)} encodings" if self.encodings else ""
        return f"<tq calibration: {len(self.observers)} tensors, {self.samples} samples{known}>"


def _text_of(path: str | os.PathLike[str]) -> str | None:
    """The text of a file; None: it is an archive of arrays, or no text."""
    with open(path, "rb") as file:
        begin = file.read(64)
        if not begin or b"\0" in begin:
            return None
        file.seek(0)
        return file.read().decode("utf-8-sig")


def _first_difference(mine: Mapping[int, str], theirs: Mapping[int, str]) -> str:
    for index in sorted(mine.keys() | theirs.keys()):
        if mine.get(index) != theirs.get(index):
            return f"tensor {index} is {mine.get(index)!r} in one and {theirs.get(index)!r} in the other"
    return "none"


def calibrate(
    model: Source,
    samples: Any,
    *,
    observer: str | Callable[[], Observer] = "minmax",
    percentile: float = 99.99,
    signature: str | None = None,
    max_samples: int | None = None,
    seed: int = 0,
    num_threads: int | None = None,
    executor: Any = None,
    progress: bool | None = None,
    reset_variables: bool = True,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
) -> Calibration:
    """Runs a float model on samples, and observes every float32 activation of its first subgraph, of the subgraphs of
    its signatures, and of all that these call.

    samples: an iterable (also a generator) of samples, one a run: a dict of arrays by the names of the inputs (the
        signature's or the tensors'), a list in the order of the inputs, or an array for a single input.  Arrays have
        the inputs' dtypes and shapes; a dimension that is -1 in the file may have any length over 0.  An item may be
        the path of an .npz file with arrays by input name, each of one sample or of several stacked along the first
        axis; such a path, a dict or an array of stacked samples may also be all of `samples`.
        Samples of several signatures: (key, sample) pairs, as converters' representative data sets yield them, in any
        order; a dict of data by the signatures' keys; or dicts with exactly the names of a signature's inputs.  Other
        samples are for `signature`, or for the first subgraph.
        From Dask: a bag of samples, a list of delayed samples, or a delayed list of samples; the model runs where
        Dask's scheduler puts the work.
    observer: how ranges are found: "minmax"; "moving_average"; "percentile", "mse" or "entropy", from histograms;
        "histogram": histograms, with least and greatest values as ranges.  Or a function that makes a tensor's
        observer.
    percentile: of observer "percentile", over 0 and at most 100: the middle part of the values.
    signature: the key of the signature that samples are for, and whose names they use.
    max_samples: the greatest number of samples to run, a uniform choice that depends on `seed` and the number of
        samples alone.
    num_threads: the number of interpreters that run samples at the same time, on one copy of the model.  None: the
        number of processors (TQ_NUM_THREADS), fewer for a large model.
    executor: any concurrent.futures executor: its workers run a few samples at a time and return their observers.  This
        process reads the samples.
    progress: a bar of tqdm's.  None: on a terminal or in a notebook, if tqdm is installed.
    reset_variables: reset variables before each sample.  False: samples are the steps of one stream, in order, for a
        model with a state; in this thread alone.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    Operators run one by one, so that memory is that of a plain run.  The result is the same for any number of threads
    or workers and any split of the samples; workers whose processors have other instruction sets may compute other last
    bits of float activations.

    ValueError: there are no samples, or one does not fit (the message names sample and input), or an option has no
    effect.  RunError: the model cannot be run.
    """
    _check_options(samples, observer, percentile, max_samples, seed, num_threads, executor, progress)
    if not reset_variables and (executor is not None or calibration_runs.is_delayed(samples)):
        raise ValueError("reset_variables is False: the samples' order matters, and only this thread can run them")
    model = opened(model)
    make, method = _kind(observer) if isinstance(observer, str) else _Kind(observer, "minmax")
    names = calibration_runs.observed_tensors(model)
    made = Calibration(names, {index: make() for index in names}, method=method, percentile=percentile)
    made._input_files = files_of(model, samples)
    limits = Limits(max_memory, max_multiply_adds)
    task = calibration_runs.task_of(make, signature, bool(reset_variables), limits)
    for part in _parts(model, task, samples, max_samples, seed, num_threads, executor, progress):
        made.merge(Calibration(names, part.observers, part.samples, method=method, percentile=percentile))
    if not made.samples:
        raise ValueError("the calibration set is empty: at least one sample is needed")
    return made


def _check_options(
    samples: Any,
    observer: Any,
    percentile: float,
    most: int | None,
    seed: int,
    num_threads: int | None,
    executor: Any,
    progress: bool | None,
) -> None:
    """ValueError: an option of calibrate has no effect."""
    delayed = calibration_runs.is_delayed(samples)
    _check_percentile(observer, percentile)
    for name, is_idle, why in (
        ("seed", seed != 0 and most is None, "it chooses among samples, of which max_samples says how many"),
        ("num_threads", num_threads is not None and executor is not None, "the executor's workers run the samples"),
        ("num_threads", num_threads is not None and delayed, "Dask's workers run the samples"),
        ("progress", bool(progress) and delayed, "Dask has bars of its own"),
    ):
        if is_idle:
            raise ValueError(f"{name} is given and has no effect: {why}")


def _check_percentile(observer: Any, percentile: float) -> None:
    if percentile != 99.99 and observer != "percentile":
        raise ValueError("percentile is given and has no effect: only observer 'percentile' has one")


def _kind(name: str) -> _Kind:
    if name not in KINDS:
        raise ValueError(f"there is no observer {name!r}; there are: {', '.join(KINDS)}{hint(name, KINDS)}")
    return KINDS[name]


def _parts(
    model: Model,
    task: calibration_runs.Task,
    data: Any,
    most: int | None,
    seed: int,
    num_threads: int | None,
    executor: Any,
    progress: bool | None,
) -> Iterator[Part]:
    if calibration_runs.is_delayed(data):
        if executor is not None:
            raise ValueError("executor is given; Dask's own scheduler runs delayed samples")
        yield from calibration_runs.in_dask(task.with_model(model), data, most, seed)
        return
    samples: Iterable[Numbered] = _numbered(Calls(model, task.signature), data)
    if most is not None:
        samples = chosen(samples, most, seed)
    with Progress(progress, samples if most is not None else data) as bar:
        if executor is not None:
            total = len(data) if hasattr(data, "__len__") and not isinstance(data, (str, Mapping)) else None
            yield from calibration_runs.in_executor(executor, task.with_model(model), samples, total, bar)
        else:
            yield from calibration_runs.in_threads(model, task, samples, num_threads, bar)


def _numbered(calls: Calls, data: Any) -> Iterator[Numbered]:
    """The samples with their names in errors.  A generator may reuse its arrays, so its samples are copied."""
    is_stored = isinstance(data, (list, tuple, np.ndarray, Mapping, str, os.PathLike))
    for number, (inputs, sample) in enumerate(calls.each(data)):
        where = f"calibration sample {number}"
        values = inputs.values(sample, where)
        if not is_stored:
            values = {index: value.copy() for index, value in values.items()}
        yield where, inputs.subgraph, values
