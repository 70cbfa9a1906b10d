# SPDX-License-Identifier: Apache-2.0
"""A model that is being drawn at random, and its inputs."""

import zlib
from dataclasses import dataclass, field

import ml_dtypes
import models
import numpy as np

RANGES = {
    "int2": (-2, 1),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
HOLDERS = {"int2": "int8", "int4": "int8", "uint4": "uint8", "string": "object", "bfloat16": ml_dtypes.bfloat16}
FLOATS = ("float16", "bfloat16", "float32", "float64")
QUANTIZED = ("int8", "uint8", "int16")


def holder(type):
    """The NumPy type that holds values of a tensor type."""
    return np.dtype(HOLDERS.get(type, type))


@dataclass
class Case:
    """A model, what to feed it (a dict of tensor index to array for each invoke), and inputs to resize first."""

    operator: str
    kind: str
    seed: int
    number: int
    model: bytes
    runs: list
    shapes: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.operator} {self.kind} --seed {self.seed} --case {self.number}"


class Draft:
    def __init__(self, *seed, name=""):
        self.name = name  # the operator that is wanted
        self.rng = np.random.default_rng(
            [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in seed]
        )
        self.tensors, self.operators, self.inputs, self.outputs = [], [], [], []
        self.subgraphs = []  # further ones: models.subgraph(...)
        self.types, self.values, self.parameters = [], {}, []
        self.runs = 1  # invokes; each gets other data
        self.resized = {}  # input: shape
        self.plain = False  # no infinities, NaN and denormals
        self.fixed = False  # inputs keep the shapes of the file

    # ---- choices ----

    def integer(self, low, high):
        """Both ends included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def pick(self, *choices):
        return choices[self.integer(0, len(choices) - 1)]

    def subset(self, items, least=0):
        """Some of the items, in any order."""
        items = list(items)
        count = self.integer(min(least, len(items)), len(items))
        return [items[i] for i in self.rng.permutation(len(items))[:count]]

    def activation(self):
        """A fused activation: mostly NONE, else one that reference kernels know."""
        return self.pick("NONE", "NONE", "NONE", "RELU", "RELU", "RELU_N1_TO_1", "RELU6", "RELU6")

    # ---- shapes ----

    def dimension(self, most=40):
        """Small, or about a multiple of what vector kernels take at a time."""
        if self.chance(0.8):
            return self.integer(1, min(most, 9))
        return min(most, self.pick(15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 70))

    def shape(self, low=1, high=4, elements=1000, rank=None, empty=0.0):
        """A shape of some rank in [low, high], or of `rank`; `empty`: how probable a dimension of 0 is."""
        rank = self.integer(low, high) if rank is None else rank
        dims = [self.dimension() for _ in range(rank)]
        while dims and np.prod(dims) > elements:
            largest = int(np.argmax(dims))
            dims[largest] = max(1, dims[largest] // 2)
        if dims and self.chance(empty):
            dims[self.integer(0, rank - 1)] = 0
        return dims

    def broadcast(self, shape, chance=0.5):
        """A shape that broadcasts to `shape`: with probability `chance` of lower rank or with dimensions of 1."""
        shape = list(shape)
        if not self.chance(chance):
            return shape
        cut = self.integer(0, len(shape))
        return [1 if self.chance(0.4) else n for n in shape[cut:]]

    def broadcast_pair(self, low=1, high=4, elements=1000, empty=0.0):
        """Two shapes that broadcast with each other; often they are equal."""
        whole = self.shape(low, high, elements, empty=empty)
        a, b = list(whole), self.broadcast(whole)
        for i in range(1, len(b) + 1):
            if b[-i] == a[-i] and self.chance(0.1):
                a[-i] = 1
        return (a, b) if self.chance(0.6) else (b, a)

    def shape_of(self, index):
        return list(self.tensors[index].shape)

    def type_of(self, index):
        return self.types[index]

    # ---- quantization ----

    def scale(self):
        """A scale as converters choose it; one time in five a power of two, a tiny or a huge one."""
        usual = 10 ** self.rng.uniform(-3, -0.7)
        which = self.rng.random()
        if which < 0.8:
            return float(np.float32(usual))
        if which < 0.95:
            return float(2.0 ** self.integer(-12, 0))
        return float(np.float32(10 ** self.rng.uniform(-7, 2)))

    def scale_for(self, type, magnitude, wild=0.05):
        """A scale with which the type just holds values up to `magnitude`, or a few times more or less."""
        low, high = RANGES[type]
        scale = 2 * max(magnitude, 1e-20) / (high - low) * 2 ** self.rng.normal(0, 0.7)
        if self.chance(wild):
            scale *= 2 ** self.rng.uniform(-8, 8)
        if self.chance(0.1):
            scale = 2.0 ** round(np.log2(scale))
        return float(np.float32(scale))

    def zero_point(self, type):
        """0 for int16 and wider, as kernels need it; else mostly near the middle, also anywhere and at the ends."""
        low, high = RANGES[type]
        if type not in ("int8", "uint8", "int4", "uint4", "int2"):
            return 0
        if self.chance(0.15):
            return self.pick(low, high)
        if self.chance(0.15):
            return self.integer(low, high)
        middle, width = (low + high + 1) // 2, (high - low + 1) // 4
        return middle if self.chance(0.2) else self.integer(middle - width, middle + width)

    def affine(self, type, magnitude=None):
        """scale and zero_point of a tensor of a quantized type; of another type an empty dict.

        magnitude: about the largest real value that it holds."""
        if type not in RANGES:
            return {}
        scale = self.scale() if magnitude is None else self.scale_for(type, magnitude)
        return {"scale": scale, "zero_point": self.zero_point(type)}

    def largest(self, index):
        """About the largest real value that a quantized tensor can hold, or that a float one is drawn with."""
        type, parameters = self.types[index], self.parameters[index]
        if not parameters.get("scale"):
            return 3.0
        low, high = RANGES[type]
        return float(np.max(parameters["scale"])) * (high - low) / 2

    # ---- values ----

    def codes(self, type, shape):
        """Integers: all over the range, at its ends, about its middle, or all the same."""
        low, high = RANGES[type]
        how = self.rng.random()
        if how < 0.65:
            values = self.rng.integers(low, high, shape, holder(type), endpoint=True)
        elif how < 0.75:
            values = self.rng.choice(np.array([low, low + 1, high - 1, high], holder(type)), shape)
        elif how < 0.95:
            width, middle = max((high - low) // 64, 1), (low + high + 1) // 2
            values = self.rng.integers(middle - width, middle + width, shape, holder(type), endpoint=True)
        else:
            values = np.full(shape, self.rng.integers(low, high, None, holder(type), endpoint=True))
        return np.asarray(values, holder(type))

    def integers(self, type, shape, low, high):
        """Integers in [low, high]."""
        return np.asarray(self.rng.integers(low, high, shape, holder(type), endpoint=True), holder(type))

    def floats(self, shape, type="float32", special=0.03, magnitude=1.0):
        """Normally distributed; with probability `special` some infinities, NaN, zeros of both signs, denormals:
        not where the draft is plain."""
        values = np.asarray(self.rng.normal(0, magnitude, shape))
        if self.chance(0.1):
            values = np.round(values * 4) / 4  # ties, equal elements
        if self.chance(special) and not self.plain:
            odd = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30]
            mask = self.rng.random(values.shape) < 0.15
            values = np.where(mask, self.rng.choice(odd, values.shape), values)
        with np.errstate(over="ignore"):
            return values.astype(holder(type))

    def draw(self, type, shape):
        """Values for a tensor of this type."""
        if type in FLOATS:
            return self.floats(shape, type)
        if type == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        if type in ("complex64", "complex128"):
            return (self.floats(shape, "float64", 0) + 1j * self.floats(shape, "float64", 0)).astype(type)
        if type == "string":
            words = [b"", b"a", b"tensor", "zw\u00f6lf".encode(), b"longer than the others", b"one two"]
            if not len(shape):  # LiteRT takes no 0-d array of objects
                return np.array(self.pick(*words[1:]))
            return np.array([self.pick(*words) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        return self.codes(type, shape)

    # ---- the model ----

    def tensor(self, type, shape, data=None, name=None, shape_signature=None, **parameters):
        """Any tensor; `data`: a constant's array.  Returns its index."""
        index = len(self.tensors)
        shape = [int(n) for n in shape]
        self.tensors.append(
            models.tensor(name or f"t{index}", shape, type, data, shape_signature=shape_signature, **parameters)
        )
        self.types.append(type)
        self.parameters.append(parameters)
        return index

    def input(self, type, shape, values=None, draw=None, **parameters):
        """An input of the model.  What it is fed: `values`, or draw() for each invoke, or any values of the type.

        Of a quantized type it gets parameters drawn at random, unless they are given (scale=None: none)."""
        if type in QUANTIZED and "scale" not in parameters:
            parameters = self.affine(type)
        index = self.tensor(type, shape, **{k: v for k, v in parameters.items() if parameters.get("scale") is not None})
        self.inputs.append(index)
        if values is not None:
            if type != "string" or len(shape):
                values = np.asarray(values, holder(type)).reshape(shape)
            self.values[index] = lambda: values
        else:
            self.values[index] = draw or (lambda: self.draw(type, shape))
        return index

    def constant(self, type, values, shape=None, **parameters):
        """A tensor with data.  Of a quantized type without scale= it gets no parameters."""
        values = np.asarray(values).astype(holder(type))
        shape = values.shape if shape is None else tuple(shape)
        data = values.reshape(shape) if values.size == np.prod(shape) else values.tobytes()  # a sparse tensor's
        parameters = {k: v for k, v in parameters.items() if parameters.get("scale") is not None}
        return self.tensor(type, shape, data, **parameters)

    def input_or_constant(self, type, shape, values=None, chance=0.5, **parameters):
        """One or the other; with the given values, or any."""
        if not self.chance(chance):
            return self.input(type, shape, values, **parameters)
        if type in QUANTIZED and "scale" not in parameters:
            parameters = self.affine(type)
        return self.constant(type, self.draw(type, shape) if values is None else values, shape, **parameters)

    def output(self, type, shape=(), **parameters):
        """An output of the model.  Its shape is for readers: the runtime computes it again."""
        if type in QUANTIZED and "scale" not in parameters:
            parameters = self.affine(type)
        parameters = {k: v for k, v in parameters.items() if parameters.get("scale") is not None}
        index = self.tensor(type, shape, **parameters)
        self.outputs.append(index)
        return index

    def inner(self, type, shape=(), **parameters):
        """As `output`, for a tensor that is not an output of the model."""
        index = self.output(type, shape, **parameters)
        self.outputs.remove(index)
        return index

    def variable(self, type, shape, **parameters):
        """A tensor that keeps its value from one invoke to the next."""
        index = self.tensor(type, shape, **{k: v for k, v in parameters.items() if v is not None})
        self.tensors[index].fields["is_variable"] = True
        return index

    def operator(self, name, inputs, outputs, /, **fields):
        """Appends an operator; fields: those of models.operator."""
        self.operators.append(models.operator(name, inputs, outputs, **fields))

    def graph(self):
        """A further subgraph, to be drawn like this one; m.subgraph_index(graph) ends it."""
        graph = Draft(0, name=self.name)
        graph.plain = self.plain
        graph.rng = self.rng
        return graph

    def subgraph_index(self, graph):
        """Appends a finished graph and returns its number in the model."""
        name = f"graph{len(self.subgraphs) + 1}"
        self.subgraphs.append(models.subgraph(graph.tensors, graph.operators, graph.inputs, graph.outputs, name))
        return len(self.subgraphs)

    def case(self, operator="", kind="", seed=0, number=0):
        """The draft as a Case.  One in twenty leaves its inputs' shapes open, and resizes them."""
        per_axis = any("quantized_dimension" in self.parameters[index] for index in self.inputs)
        if self.chance(0.05) and not self.resized and not self.fixed and not per_axis:
            self.resized = {index: self.shape_of(index) for index in self.inputs}
            for index in self.inputs:
                self.tensors[index].fields["shape_signature"] = [-1] * len(self.shape_of(index))
                self.tensors[index].shape = [1] * len(self.shape_of(index))
        main = models.subgraph(self.tensors, self.operators, self.inputs, self.outputs)
        model = models.build_model(subgraphs=[main, *self.subgraphs])
        runs = [{index: draw() for index, draw in self.values.items()} for _ in range(self.runs)]
        return Case(operator, kind, seed, number, model, runs, self.resized)
