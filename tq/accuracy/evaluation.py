# SPDX-License-Identifier: Apache-2.0
"""tq.evaluate: a model against the labels of its samples.

print(tq.evaluate("model.tflite", "photos", "top-5"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model, Tensor
from tq.accuracy import measuring
from tq.calibration.samples import Calls, Data, Inputs
from tq.nearest import hint
from tq.pages.tables import Result, Table
from tq.progress import tracked
from tq.running.interpreter import Interpreter
from tq.running.limits import Limits
from tq.sources import Source, opened

Array = NDArray[Any]
Metric = Callable[[Mapping[str, Array], Any], Any]
_TOP = {"top-1": 1, "top-5": 5}


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """The mean of a metric over labelled samples."""

    means: dict[str, float]  # by the metric's name
    samples: int
    values: list[dict[str, float]]  # of each sample

    @property
    def value(self) -> float:
        """The mean of the metric; of the first, where a function gives several."""
        return next(iter(self.means.values()))

    def __float__(self) -> float:
        return self.value

    def table(self) -> Table:
        """One row for each metric."""
        rows = [(name, mean, self.samples) for name, mean in self.means.items()]
        return Table(("metric", "#mean", "#samples"), rows)

    def summary(self) -> list[str]:
        """The means in words."""
        return [f"{name}: {mean:.6g} over {self.samples} samples" for name, mean in self.means.items()]


def evaluate(
    model: Source,
    dataset: Data,
    metric: str | Metric = "top-1",
    *,
    numerics: str | None = None,
    num_threads: int | None = None,
    max_samples: int | None = None,
    max_memory: int | None = None,
    max_multiply_adds: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """The mean of a metric over a data set of (sample, label) pairs.

        tq.evaluate("int8.tflite", [(image, 3), ...])
        tq.evaluate("int8.tflite", "photos", lambda outputs, label: abs(outputs["angle"][0] - label))

    model: a path, bytes, an open file or a tq.Model.
    dataset: what tq.calibrate takes, with a label beside each sample: (sample, label) pairs; arrays by input name with
        another of the name "labels"; an .npz file of these; a folder of pictures in a folder for each class (see
        tq.pictures); or a function that returns one of them.  An integer input takes samples of its type, or real
        values, which are quantized by its parameters, so the same set fits a float model and one quantized from it.
    metric: "top-1", "top-5": the share of samples whose label (a number, or one-hot) has one of the greatest values of
        the first output.  Or a function of the outputs' real values by name and the label, which returns a number, or
        a dict of numbers by name.  Outputs have a signature's names where the file has one signature of them, else the
        tensors'.
    numerics, num_threads, max_memory, max_multiply_adds: as of tq.Interpreter.
    max_samples: the greatest number of samples to run.  progress: as of tq.calibrate.

    `float(result)` is the mean; `result.values` has the metric of each sample.
    ValueError: a sample does not fit or has no label, the label does not fit the output, or there are no samples.
    RunError: the model cannot be run.
    """
    measured = _metric(metric)
    if max_samples is not None and max_samples < 1:
        raise ValueError(f"max_samples is {max_samples}; it must be at least 1")
    run = _Run(opened(model), numerics, num_threads, Limits(max_memory, max_multiply_adds))
    values: list[dict[str, float]] = []
    samples = Calls(run.model, quantizes=True).labelled(dataset, "the data set")
    for number, (inputs, sample, label) in enumerate(tracked(samples, dataset, "evaluating", progress)):
        if max_samples is not None and number >= max_samples:
            break
        if label is None:
            raise ValueError(f"sample {number} has no label: a data set of (sample, label) pairs is needed")
        values.append(_numbers(measured(run.outputs(inputs, sample, number), label), metric, number))
    if not values:
        raise ValueError("the data set is empty: at least one sample is needed")
    names = values[0]
    if any(item.keys() != names.keys() for item in values):
        raise ValueError("the metric gives other names for other samples")
    return Evaluation({name: float(np.mean([item[name] for item in values])) for name in names}, len(values), values)


def _metric(metric: str | Metric) -> Metric:
    if callable(metric):
        return metric
    if metric not in _TOP:
        raise ValueError(
            f"metric is {metric!r}; it must be {' or '.join(map(repr, _TOP))}, or a function of the outputs and the "
            f"label{hint(str(metric), _TOP)}"
        )
    return lambda outputs, label: _top(next(iter(outputs.values())), label, _TOP[metric])


def _top(scores: Array, label: Any, k: int) -> float:
    """The share of rows whose label is among the k greatest scores; of equal ones the first counts."""
    classes = scores.shape[-1] if scores.ndim else 1
    rows, wanted = scores.reshape(-1, classes), np.asarray(label)
    if wanted.size == scores.size and wanted.size > len(rows):  # one-hot
        wanted = np.argmax(wanted.reshape(-1, classes), axis=1)
    wanted = np.ravel(wanted)
    if wanted.dtype.kind not in "iub" or wanted.size != len(rows):
        raise ValueError(f"the label {label!r} is no class of an output of the shape {list(scores.shape)}")
    if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < classes:
        raise ValueError(f"the label {label!r} is no class: the output has {classes}")
    best = np.argsort(-rows, axis=1, kind="stable")[:, :k]
    return float(np.mean((best == wanted[:, None]).any(axis=1)))


def _numbers(found: Any, metric: Any, number: int) -> dict[str, float]:
    """A sample's metrics by name."""
    own = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
    given = found if isinstance(found, Mapping) else {"metric" if own == "<lambda>" else own: found}
    try:
        return {str(name): float(value) for name, value in given.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"the metric of sample {number} is {found!r}; a number is needed: {error}") from None


class _Run:
    """A model that gives its outputs' real values by name."""

    def __init__(self, model: Model, numerics: str | None, num_threads: int | None, limits: Limits) -> None:
        self.model = model
        self._run = Interpreter(model=model, numerics=numerics, num_threads=num_threads, **limits._asdict())
        self._outputs = _named_outputs(model)
        self._shapes: dict[int, tuple[int, ...]] | None = None

    def outputs(self, inputs: Inputs, sample: Any, number: int) -> dict[str, Array]:
        """The outputs of one sample."""
        if inputs.subgraph:
            raise ValueError(f"sample {number} is for subgraph {inputs.subgraph}; only the first is evaluated")
        values = inputs.values(sample, f"sample {number}")
        shapes = {index: value.shape for index, value in values.items()}
        if shapes != self._shapes:
            for index, shape in shapes.items():
                self._run.resize_tensor_input(index, shape)
            self._run.allocate_tensors()
            self._shapes = shapes
        self._run.reset_all_variables()
        for index, value in values.items():
            self._run.set_tensor(index, value)
        self._run.invoke()
        found = {}
        for name, tensor in self._outputs.items():
            value = np.asarray(self._run.get_tensor(tensor.index))
            real = measuring.real(value, tensor)
            found[name] = value if real is None else real
        return found


def _named_outputs(model: Model) -> dict[str, Tensor]:
    """The first subgraph's outputs, by a signature's names where it has one."""
    outputs = {tensor.index: tensor for tensor in model.outputs if tensor is not None}
    signatures = [item for item in model.signatures if item.subgraph_index == 0]
    names = {index: name for name, index in signatures[0].outputs.items()} if len(signatures) == 1 else {}
    return {names.get(index, tensor.name): tensor for index, tensor in outputs.items()}
