# SPDX-License-Identifier: Apache-2.0
"""How far a quantized model's numbers are from those of its float model, over a set of samples.

Ratios of signal to noise are of sums over all samples: 10 log10(sum a^2 / sum (a - b)^2), where b's codes stand for
real numbers.  Elements that are equal, be they not finite, have no error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.matching import type_kind
from tq.calibration.samples import Calls
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

if TYPE_CHECKING:
    from tq._core import Tensor

Array = NDArray[Any]


_ARRAY_TYPES = ("int8", "uint8", "int16", "uint16", "int32")  # that tq.dequantize takes; LiteRT's types of a byte
_PART = 1 << 15  # elements that are summed at a time, so that all stays in the cache


class Noise:
    """Sums of a signal and of the error beside it."""

    def __init__(self) -> None:
        self.signal = self.noise = self.error = self.largest = 0.0
        self.count = 0

    def add(self, a: Array, b: Array) -> None:
        """Takes in the numbers a and what stands for them."""
        one, two = np.ravel(a), np.ravel(b)
        with np.errstate(all="ignore"):  # NaN and infinities are no news here
            for start in range(0, one.size, _PART):
                self._add(one[start : start + _PART].astype(np.float64), two[start : start + _PART].astype(np.float64))
        self.count += one.size

    def _add(self, x: Array, y: Array) -> None:
        error = y - x
        noise = _dot(error)
        if not math.isfinite(noise):  # elements that are equal have no error, be they not finite
            error[(x == y) | ((x != x) & (y != y))] = 0
            x = np.where(np.isfinite(x), x, 0)
            noise = _dot(error)
        self.signal += _dot(x)
        self.noise += noise
        self.error += float(error.sum())
        np.abs(error, out=error)
        self.largest = float(np.maximum(self.largest, error.max()))

    @property
    def ratio(self) -> float:
        """Noise over signal."""
        if self.noise == 0:
            return 0.0
        return self.noise / self.signal if self.signal else math.inf

    @property
    def sqnr_db(self) -> float:
        """Infinite where there is no noise."""
        return decibels(self.ratio)

    @property
    def mean_error(self) -> float:
        """Of b less a."""
        return self.error / self.count if self.count else 0.0


def _dot(x: Array) -> float:
    """Not by BLAS, whose threads wait for each other here."""
    return float(np.einsum("i,i->", x, x))


def decibels(ratio: float) -> float:
    """A ratio of noise to signal as a SQNR."""
    if math.isnan(ratio):
        return -math.inf
    if ratio == 0:
        return math.inf
    return -10 * math.log10(ratio) if ratio < math.inf else -math.inf


def together(noises: Iterable[Noise]) -> float:
    """The SQNR in dB of several outputs: of the mean of their ratios of noise to signal, so that none hides behind a
    louder one.  Outputs without a float are left out; NaN where none is left."""
    ratios = [noise.ratio for noise in noises if noise.count]
    return decibels(float(np.mean(ratios))) if ratios else math.nan


def real(value: Array, tensor: Tensor) -> Array | None:
    """The numbers that a tensor's value stands for; None for what is no number."""
    if value.dtype.kind not in "biuf":
        return None
    quantization = tensor.quantization
    if not quantization or value.dtype.kind not in "iu" or not len(quantization.scale):
        return value
    if value.dtype.name in _ARRAY_TYPES:
        numbers: Array = quantization.dequantize(value)
        return numbers
    if quantization.scale.size > 1 or quantization.zero_point.size > 1:
        raise ValueError(f"{tensor!r} has one scale a channel: {value.dtype} values are measured with one scale")
    zero_point = quantization.zero_point.flat[0] if quantization.zero_point.size else 0
    with np.errstate(all="ignore"):
        return (np.asarray(value, np.float64) - float(zero_point)) * float(quantization.scale.flat[0])


class Samples:
    """Samples of a float model's inputs, checked, to feed to interpreters of it and of models quantized from it."""

    def __init__(self, model: Model, samples: Iterable[Any] | Mapping[str, Any], most: int | None = None) -> None:
        self.model = model
        self.values: list[dict[int, Array]] = []
        self.others: list[tuple[str, Any]] = []  # of signatures that run other subgraphs: their keys, and samples
        for number, (inputs, sample) in enumerate(Calls(model).each(samples, "the samples")):
            if most is not None and number >= most:
                break
            values = inputs.values(sample, f"sample {number}")
            if inputs.subgraph:
                self.others.append((str(inputs.signature), list(values.values())))
            else:
                self.values.append(values)
        if not self.values:
            raise ValueError("there are no samples: at least one is needed")

    def __len__(self) -> int:
        return len(self.values)

    def first(self, most: int) -> Samples:
        """Some of the samples."""
        made = Samples.__new__(Samples)
        made.model, made.values, made.others = self.model, self.values[:most], []
        return made

    def lists(self) -> list[list[Array]]:
        """The samples as tq.calibrate takes them: arrays in the order of the inputs."""
        return [list(values.values()) for values in self.values]

    def all(self) -> list[Any]:
        """So, and those of other signatures."""
        return [*self.lists(), *self.others]

    def each(self, interpreter: Interpreter) -> Iterator[int]:
        """Feeds one sample after the other, and yields its number; the caller runs the interpreter.

        An interpreter of another model gets its inputs by name, where all names are the same, else in their order, and
        where it takes codes, those of its parameters.
        """
        places = self._places(interpreter.model)
        shapes: dict[int, tuple[int, ...]] | None = None
        for number, values in enumerate(self.values):
            now = {places[index].index: value.shape for index, value in values.items()}
            if now != shapes:
                for index, shape in now.items():
                    interpreter.resize_tensor_input(index, shape)
                interpreter.allocate_tensors()
                shapes = now
            interpreter.reset_all_variables()
            for index, value in values.items():
                interpreter.set_tensor(places[index].index, as_input(value, places[index]))
            yield number

    def _places(self, model: Model) -> dict[int, Tensor]:
        mine = [tensor for tensor in self.model.inputs if tensor is not None]
        theirs = [tensor for tensor in model.inputs if tensor is not None]
        if len(mine) != len(theirs):
            raise ValueError(f"the float model has {len(mine)} inputs, the quantized one {len(theirs)}")
        names = {tensor.name: tensor for tensor in theirs}
        if len(names) == len(theirs) and all(tensor.name in names for tensor in mine):
            theirs = [names[tensor.name] for tensor in mine]
        return {tensor.index: other for tensor, other in zip(mine, theirs, strict=True)}


def as_input(value: Array, tensor: Tensor) -> Array:
    """A sample's value as an input takes it: codes where it is of codes."""
    if value.dtype == tensor.dtype:
        return value
    if value.dtype.kind == "f" and type_kind(tensor) in ("i", "u") and len(tensor.quantization.scale):
        codes: Array = tensor.quantization.quantize(value)
        return codes
    raise ValueError(f"input {tensor.name!r} is of {tensor.dtype}, and the samples are of {value.dtype}")


def outputs(model: Model, samples: Samples, num_threads: int | None = None, limits: Limits = NONE) -> list[list[Array]]:
    """For each sample a model's outputs, as real numbers; empty arrays for what is no number."""
    interpreter = Interpreter(model=model, num_threads=num_threads, numerics="reference", **limits._asdict())
    found = []
    tensors = [tensor for tensor in model.outputs if tensor is not None]
    for _ in samples.each(interpreter):
        interpreter.invoke()
        row = [real(np.array(interpreter.get_tensor(tensor.index)), tensor) for tensor in tensors]
        found.append([np.empty(0) if item is None else item for item in row])
    return found


def output_noises(exact: list[list[Array]], found: list[list[Array]]) -> list[Noise]:
    """The error of each output over all samples.  ValueError: models with other outputs."""
    noises = [Noise() for _ in exact[0]]
    for row, other in zip(exact, found, strict=True):
        if [item.shape for item in row] != [item.shape for item in other]:
            raise ValueError(
                f"the float model's outputs have the shapes {[list(item.shape) for item in row]}, "
                f"the quantized one's {[list(item.shape) for item in other]}"
            )
        for noise, x, y in zip(noises, row, other, strict=True):
            if x.dtype.kind == "f":
                noise.add(x, y)
    return noises
