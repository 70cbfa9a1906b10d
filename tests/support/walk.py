# SPDX-License-Identifier: Apache-2.0
"""Reads everything that a model offers: every attribute of every part, every method without arguments, every text.

What the file itself makes impossible (a constant outside the file, a dense form that contradicts its shape) raises
tq.ModelError or another ValueError, and is collected; any other exception goes on to the caller.  Only the data of an
external buffer may raise OSError, for the file that holds it.
"""

import functools
import inspect
import math

import numpy as np

import tq

NOT_CALLED = {"plot"}
TENSOR_FIELDS = [row[0] for row in tq._core.schema_tables()["Tensor"]]
# A dense array of any size may be asked for, so that memory may run out; nothing else may take that much.
MAY_LACK_MEMORY = {"densify", "dequantized"}


@functools.cache
def needs_nothing(function):
    """Whether it can be called on an instance without arguments, as its docstring's signature says."""
    _, *parameters = inspect.signature(function).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


class Walk:
    def __init__(self):
        self.refusals = []
        self.answers = 0

    def attempt(self, function, *args, may_lack_memory=False, may_lack_a_file=False):
        """The function's result, or None where it refuses."""
        try:
            result = function(*args)
        except ValueError as error:  # ModelError is one
            if isinstance(error, tq.ModelError):
                assert error.code and (error.offset is None or error.offset >= 0)
            assert str(error), "a refusal says what is wrong"
            self.refusals.append(error)
            return None
        except OSError as error:  # the file of an external buffer
            if not may_lack_a_file:
                raise
            self.refusals.append(error)
            return None
        except MemoryError:
            if not may_lack_memory:
                raise
            return None
        self.answers += 1
        return result

    def read(self, part):
        """All attributes and texts of one object; returns its attributes as a dict."""
        found = {}
        elsewhere = getattr(part, "external_buffer", None) is not None
        self.attempt(repr, part)
        self.attempt(str, part)
        html = getattr(part, "_repr_html_", None)
        if html:
            self.attempt(html)
        for name in dir(part):
            if name.startswith("_") or name in NOT_CALLED:
                continue
            value = self.attempt(getattr, part, name, may_lack_a_file=elsewhere)
            if callable(value) and not isinstance(value, type) and needs_nothing(getattr(type(part), name)):
                value = self.attempt(value, may_lack_memory=name in MAY_LACK_MEMORY, may_lack_a_file=elsewhere)
            found[name] = value
        return found

    def round_trip(self, item):
        """Real numbers of a tensor's shape to its quantized values and back, where both are few."""
        shape, quantization = item.shape, item.quantization
        if quantization.dtype not in ("int8", "uint8", "int16", "int32", "int4", "uint4", "int2"):
            return  # a TypeError, the caller's own fault
        if len(shape) <= 8 and all(0 <= size <= 64 for size in shape) and math.prod(shape) <= 256 and quantization:
            codes = self.attempt(quantization.quantize, np.ones(shape, np.float32))
            if codes is not None:
                self.attempt(quantization.dequantize, codes)

    def graph(self, model, index):
        graph = model.subgraphs[index]
        self.read(graph)
        for method in (model.get_tensor_details, model.get_input_details, model.get_output_details):
            self.attempt(method, index)
        for item in graph.tensors:
            self.read(item)
            self.read(item.quantization)
            self.round_trip(item)
            for field in TENSOR_FIELDS:
                self.attempt(item.stored, field)
        for item in graph.operators:
            self.read(item)

    def model(self, model):
        found = self.read(model)
        for index in range(len(model.subgraphs)):
            self.graph(model, index)
        for item in model.buffers:
            self.read(item)
        for sequence in (model.operator_codes, model.signatures, model.external_buffers):
            self.attempt(list, sequence)
        metadata = found["metadata"]
        if metadata is not None:
            for key in metadata:
                self.attempt(metadata.__getitem__, key)


def walk(model):
    """Walks a model; returns (answers, refusals)."""
    result = Walk()
    result.model(model)
    return result.answers, result.refusals


def open_and_walk(source):
    """Opens and walks; returns the ModelError of a source that is no model, else None."""
    try:
        model = tq.Model(source)
    except tq.ModelError as error:
        assert error.code in {name for name, _exception, _text in tq._core.statuses()}
        assert error.offset is None or isinstance(error.offset, int)
        return error
    walk(model)
    return None
