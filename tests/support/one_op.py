# SPDX-License-Identifier: Apache-2.0
"""LiteRT's own answers: models of one operator, run by its reference kernels or others."""

import oracle
from models import build_model, operator, tensor


def model(array, dtype, before, after):
    """QUANTIZE, or DEQUANTIZE to float32; before, after: (scales, zero points, axis), no scales of floats."""

    def part(name, type, scale, zero_point, axis):
        parameters = {"scale": scale, "zero_point": zero_point, "quantized_dimension": axis} if len(scale) else {}
        return tensor(name, array.shape, type, **parameters)

    tensors = [part("in", array.dtype.name, *before), part("out", dtype, *after)]
    name = "DEQUANTIZE" if dtype == "float32" else "QUANTIZE"
    return build_model(tensors, [operator(name, [0], [1], version=3)], [0], [1])


def answers(jobs, resolver="BUILTIN_REF"):
    """What LiteRT computes for each (array, (scales, zero points, axis), out dtype, (scales, zero points, axis))."""
    questions = [
        (model(array, dtype, before, after), resolver, [{0: array}], {}, [1]) for array, before, dtype, after in jobs
    ]
    return [runs[0][1] for runs in oracle.ask("tensors", questions)]
