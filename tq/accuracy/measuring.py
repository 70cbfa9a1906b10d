# SPDX-License-Identifier: Apache-2.0
"""Errors of a quantized model's real values against its float model, over a set of samples.

Signal to quantization noise: SQNR = 10 log10(sum a^2 / sum (a - b)^2), with sums over all samples, a the float values
and b the real values of the quantized ones.  Equal elements have no error, also where they are not finite.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tq._core import Model
from tq.accuracy.matching import type_kind
from tq.calibration.samples import Calls, Data
from tq.progress import tracked
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

if TYPE_CHECKING:
    from tq._core import Tensor

Array = NDArray[Any]


# The kernels that judge quantized models, and whose errors weights and biases correct: those of LiteRT's default.
# The reference kernels have other errors: XNNPACK's QUANTIZE from int8 to int8 has a multiplier of 8 bits, say.
KERNELS = "xnnpack"
UNRELATED = "the two models do not belong together"

_ARRAY_TYPES = ("int8", "uint8", "int16", "uint16", "int32")  # types of whole bytes that tq.dequantize takes
_PART = 1 << 15  # elements summed at a time, which fit the cache


class Noise:
    """Sums over a signal and its error."""

    def __init__(self) -> None:
        self.signal = self.noise = self.error = self.largest = 0.0
        self.count = 0

    def add(self, a: Array, b: Array) -> None:
        """Adds the exact values a and their approximations b, of the same shape."""
        one, two = np.ravel(a), np.ravel(b)
        with np.errstate(all="ignore"):  # NaN and infinities are expected
            for start in range(0, one.size, _PART):
                self._add(one[start : start + _PART].astype(np.float64), two[start : start + _PART].astype(np.float64))
        self.count += one.size

    def _add(self, x: Array, y: Array) -> None:
        error = y - x
        noise = _dot(error)
        if not math.isfinite(noise):  # equal elements have no error, also where they are not finite
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
        """sum (a - b)^2 / sum a^2; infinite where the signal is 0 and the noise is not."""
        if self.noise == 0:
            return 0.0
        return self.noise / self.signal if self.signal else math.inf

    @property
    def sqnr_db(self) -> float:
        """The SQNR in dB; infinite where there is no noise."""
        return decibels(self.ratio)

    @property
    def mean_error(self) -> float:
        """The mean of b - a."""
        return self.error / self.count if self.count else 0.0


def _dot(x: Array) -> float:
    """sum x^2, without BLAS, whose threads would wait for each other here."""
    return float(np.einsum("i,i->", x, x))


def decibels(ratio: float) -> float:
    """The SQNR in dB of a ratio of noise to signal."""
    if math.isnan(ratio):
        return -math.inf
    if ratio == 0:
        return math.inf
    return -10 * math.log10(ratio) if ratio < math.inf else -math.inf


def together(noises: Iterable[Noise]) -> float:
    """The SQNR in dB of the mean of several outputs' ratios of noise to signal, in which every output counts the same.

    Outputs without float values are left out; NaN: none is left.
    """
    ratios = [noise.ratio for noise in noises if noise.count]
    return decibels(float(np.mean(ratios))) if ratios else math.nan


def real(value: Array, tensor: Tensor) -> Array | None:
    """The real values of a tensor's array, in its shape; None: the type is not numeric.

    ValueError: the tensor has several scales and a type without per-axis dequantization.
    """
    if value.dtype.kind not in "biuf":
        return None
    quantization = tensor.quantization
    if not quantization or value.dtype.kind not in "iu" or not len(quantization.scale):
        return value
    if value.dtype.name in _ARRAY_TYPES:
        found: Array = quantization.dequantize(value)
        return found
    if quantization.scale.size > 1 or quantization.zero_point.size > 1:
        raise ValueError(f"{tensor!r} has one scale a channel: {value.dtype} values are measured with one scale")
    zero_point = quantization.zero_point.flat[0] if quantization.zero_point.size else 0
    with np.errstate(all="ignore"):
        return (np.asarray(value, np.float64) - float(zero_point)) * float(quantization.scale.flat[0])


@contextlib.contextmanager
def telling_unrelated(shapes: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Iterator[None]:
    """Turns an error of allocating into a ValueError that says why, where the inputs of two models differ.

    shapes: of each input in the first model and in the second, which is being allocated.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        for number, (a, b) in enumerate(shapes):
            if list(a) != list(b):
                said = f"input {number} has the shape {[*map(int, a)]} in one, {[*map(int, b)]} in the other"
                raise ValueError(f"{UNRELATED}: {said}") from error
        raise


class Samples:
    """Checked samples of a float model's inputs, for interpreters of it and of models quantized from it.

    samples: as tq.calibrate takes them.  most: the greatest number of samples; None: all.
    quantizes: whether real values are quantized for an integer input of `model`.
    ValueError: there are no samples for the first subgraph, or one does not fit.
    """

    def __init__(
        self,
        model: Model,
        samples: Data,
        most: int | None = None,
        quantizes: bool = False,
    ) -> None:
        self.model = model
        self.values: list[dict[int, Array]] = []
        self.others: list[tuple[str, Any]] = []  # (signature, sample) of other subgraphs
        for number, (inputs, sample) in enumerate(Calls(model, quantizes=quantizes).each(samples, "the samples")):
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
        """At most `most` samples of the first subgraph."""
        return self.only(range(min(most, len(self))))

    def only(self, which: Iterable[int]) -> Samples:
        """These samples of the first subgraph."""
        made = Samples.__new__(Samples)
        made.model, made.values, made.others = self.model, [self.values[place] for place in which], []
        return made

    def lists(self) -> list[list[Array]]:
        """The samples of the first subgraph as tq.calibrate takes them: lists of arrays in the order of the inputs."""
        return [list(values.values()) for values in self.values]

    def all(self) -> list[Any]:
        """The same, with the samples of other signatures."""
        return [*self.lists(), *self.others]

    def each(self, interpreter: Interpreter) -> Iterator[int]:
        """Sets the inputs of an interpreter to one sample after another, and yields its number; the caller runs it.

        Inputs of another model are matched by name where all names are equal, else by order; integer inputs get the
        samples quantized by their own parameters.  ValueError: the number or type of inputs differs, or the other model
        does not run with inputs of these shapes.
        """
        partners = self.partners(interpreter.model)
        shapes: dict[int, tuple[int, ...]] | None = None
        for number, values in enumerate(self.values):
            now = {partners[index].index: value.shape for index, value in values.items()}
            if now != shapes:
                pairs = [(tensor.shape, partners[tensor.index].shape) for tensor in self.model.inputs if tensor]
                with telling_unrelated(pairs):
                    for index, shape in now.items():
                        interpreter.resize_tensor_input(index, shape)
                    interpreter.allocate_tensors()
                shapes = now
            interpreter.reset_all_variables()
            for index, value in values.items():
                interpreter.set_tensor(partners[index].index, as_input(value, partners[index]))
            yield number

    def partners(self, model: Model) -> dict[int, Tensor]:
        """The input of another model for each input of the float one, by its index."""
        mine = [tensor for tensor in self.model.inputs if tensor is not None]
        theirs = [tensor for tensor in model.inputs if tensor is not None]
        if len(mine) != len(theirs):
            raise ValueError(f"{UNRELATED}: one has {len(mine)} inputs, the other {len(theirs)}")
        names = {tensor.name: tensor for tensor in theirs}
        if len(names) == len(theirs) and all(tensor.name in names for tensor in mine):
            theirs = [names[tensor.name] for tensor in mine]
        return {tensor.index: other for tensor, other in zip(mine, theirs, strict=True)}


def as_input(value: Array, tensor: Tensor) -> Array:
    """A sample's array in the type of an input: quantized by its parameters if the input is of integers.

    ValueError: neither the types nor the parameters fit.
    """
    if value.dtype == tensor.dtype:
        return value
    if value.dtype.kind == "f" and type_kind(tensor) in ("i", "u") and len(tensor.quantization.scale):
        quantized: Array = tensor.quantization.quantize(value)
        return quantized
    raise ValueError(f"input {tensor.name!r} is of {tensor.dtype}, and the samples are of {value.dtype}")


def outputs(
    model: Model,
    samples: Samples,
    num_threads: int | None = None,
    limits: Limits = NONE,
    numerics: str = "reference",
) -> list[list[Array]]:
    """For each sample the real values of a model's outputs; empty arrays for types that are not numeric."""
    interpreter = Interpreter(model=model, num_threads=num_threads, numerics=numerics, **limits._asdict())
    found = []
    tensors = [tensor for tensor in model.outputs if tensor is not None]
    for _ in tracked(samples.each(interpreter), samples, "measuring the outputs"):
        interpreter.invoke()
        row = [real(np.array(interpreter.get_tensor(tensor.index)), tensor) for tensor in tensors]
        found.append([np.empty(0) if item is None else item for item in row])
    return found


def output_noises(exact: list[list[Array]], found: list[list[Array]]) -> list[Noise]:
    """The error of each output over all samples.  ValueError: the outputs' shapes differ."""
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
