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
from tq.calibration.samples import Calls, Progress, chosen
from tq.nearest import hint
from tq.running.limits import Limits
from tq.saving import Target, files_of
from tq.sources import Source, opened

Observer = observers.MinMaxObserver | observers.MovingAverageObserver | observers.HistogramObserver
_CLASSES: dict[str, Any] = {
    "MinMaxObserver": observers.MinMaxObserver,
    "MovingAverageObserver": observers.MovingAverageObserver,
    "HistogramObserver": observers.HistogramObserver,
}
_FORMAT = 1  # of the files


class _Kind(NamedTuple):
    """What a name for observers stands for: what watches, and how a range is chosen from what it saw."""

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
    """What calibration data taught about the float activations of a model.

    observers: {tensor index: observer}; of another subgraph than the first, the index is that and 2^32 times the
    subgraph's.  names: {tensor index: the tensor's name}, by which merge and load make sure
    that it is the same model.  samples: how many were run.
    method: how `range` chooses one: "minmax", or, from tq.HistogramObserver objects, "percentile", "mse" or "entropy".
    percentile: of that method, the part of the values, of 100, that lies inside.
    encodings: {a tensor's name: tq.calibration.encodings.Encoding}: ranges, scales and zero points that come from a
    model or a file of JSON, weights' too, and not from samples.  tq.quantize_model takes them as they are, before what
    observers saw.
    """

    __module__ = "tq"  # pickles name it so, wherever it is defined

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
        )  # of the model and samples, which save() leaves alone

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
        """What calibrate(..., observer=observer) would have given, from what was seen.  The observers are shared.

        ValueError: there is no such name, or what was seen does not tell: only histograms tell "percentile", "mse" and
        "entropy", and "moving_average" is found only while the samples run.
        """
        _check_percentile(observer, percentile)
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
        """(least, greatest) value of a tensor, by its index or name: what was seen, or what `method` chooses of it.

        dtype, symmetric: the codes that the range is for, which "mse" and "entropy" look at.
        KeyError: it was not observed.  ValueError: it never had a finite value.
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
        """Takes in what another calibration of the same model saw.  Returns this one.

        ValueError: another model, other observers or another method.
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
        """Writes it to a file, which load reads; the file appears whole or not at all.

        An .npz holds all that was seen.  A file whose name ends in .json holds the ranges that were chosen, by the
        names of tensors, to be read, compared and edited; of encodings scales and zero points, too.

        OSError: it is the file of the model or of samples that were run, no regular file, or read-only.
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
        """What save wrote, or the ranges of a file of JSON: ONNX Runtime's and AIMET's are read, too.

        ValueError: the file is something else."""
        try:
            if (text := _json_of(path)) is not None:
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


def _json_of(path: str | os.PathLike[str]) -> str | None:
    """The text of a file that begins as JSON does; None: it is none."""
    with open(path, "rb") as file:
        begin = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not begin.startswith((b"{", b"[")):
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
    """Runs a float model on data, and observes every float32 activation of its first subgraph, of those that other
    signatures run, and of all that these call.

    samples: an iterable, be it a generator, of one sample a run: a dict of arrays by the names of the inputs (the
        signature's or the tensors'), a list in the order of the inputs, or an array where there is one input.  Arrays
        have the inputs' dtypes and shapes; dimensions that the file leaves open may be any.  An item may be the path of
        an .npz file with arrays by input name, each of one sample or of several stacked along the first axis; such a
        path, a dict or an array of stacked samples may also be all of `samples`.
        Samples of several signatures: (key, sample) pairs, as converters' representative data sets yield them, in any
        order; or a dict of data by the signatures' keys.  A dict of just the names of another signature's inputs is a
        sample of that one too.  All others are for `signature`, or for the first subgraph.
        From Dask: a bag of samples, a list of delayed samples, or a delayed list of samples; the model is run where
        Dask's scheduler puts the work.
    observer: how ranges are found: "minmax"; "moving_average"; "percentile", "mse" and "entropy" from histograms, and
        "histogram", which keeps those and takes least and greatest.  Or a function that makes the observer of a tensor.
    percentile: of observer "percentile".
    signature: the key of the signature that samples are for, and whose names they use.
    max_samples: take at most so many, a fair choice that depends on `seed` and on how many there are alone.
    num_threads: how many interpreters run samples at the same time, on one copy of the model.  None: as many as
        processors (TQ_NUM_THREADS), and fewer for a large model.
    executor: any concurrent.futures executor: its workers run the samples, a few at a time, and send back what their
        observers saw.  The samples are read here.
    progress: a bar of tqdm's.  None: on a terminal or in a notebook, if tqdm is installed.

    reset_variables: before each sample.  False: samples are the steps of one stream, in their order, as a model that
        keeps a state meets them; in this thread alone.
    max_memory, max_multiply_adds: limits of each run, as tq.Interpreter takes them.

    The operators run one by one, so that memory is that of a plain run.
    The result is the same for any number of threads or workers, and however samples are split among them; workers
    whose processors have other instruction sets may compute other last bits of float activations.

    ValueError: no samples, or one that does not fit: the message names the sample and the input.  RunError: the model
    cannot be run.
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
    task = calibration_runs.task_of(model, make, signature, bool(reset_variables), limits)
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
    """ValueError: an option of calibrate that has no effect."""
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
            raise ValueError("executor is given; Dask's own scheduler runs what is delayed")
        yield from calibration_runs.in_dask(task, data, most, seed)
        return
    samples: Iterable[Numbered] = _numbered(Calls(model, task.signature), data)
    if most is not None:
        samples = chosen(samples, most, seed)
    with Progress(progress, samples if most is not None else data) as bar:
        if executor is not None:
            total = len(data) if hasattr(data, "__len__") and not isinstance(data, (str, Mapping)) else None
            yield from calibration_runs.in_executor(executor, task, samples, total, bar)
        else:
            yield from calibration_runs.in_threads(model, task, samples, num_threads, bar)


def _numbered(calls: Calls, data: Any) -> Iterator[Numbered]:
    """The samples with what errors call them.  Those of a generator, which may use its arrays again, are copies."""
    lasts = isinstance(data, (list, tuple, np.ndarray, Mapping, str, os.PathLike))
    for number, (inputs, sample) in enumerate(calls.each(data)):
        where = f"calibration sample {number}"
        values = inputs.values(sample, where)
        if not lasts:
            values = {index: value.copy() for index, value in values.items()}
        yield where, inputs.subgraph, values
