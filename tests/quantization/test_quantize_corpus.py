# SPDX-License-Identifier: Apache-2.0
"""Float models of the corpus, quantized by each recipe: LiteRT runs the results, and tq gives its reference's bits."""

import numpy as np
import oracle
import pytest

import tq
from tq.quantization.recipes import FLOAT, RECIPES, STATIC

pytestmark = [pytest.mark.slow, pytest.mark.corpus]
MOST = 1 << 20  # bytes of a file
RESOLVERS = ("AUTO", "BUILTIN_REF", "TQ")
# Words of refusals that a float model of the same operators gets too, or that a resolver has for them.
REFUSED = ("unresolved custom op", "Didn't find op for builtin opcode 'ELU'", "code=-14")  # SIGALRM: it took too long
# A tensor that random inputs leave empty has no range.
UNFIT = ("nothing to quantize", "had no finite value")
QUANTIZED = ("INT8", "UINT8", "INT16", "INT4")


def float_models(files):
    for path in files:
        if path.stat().st_size > MOST:
            continue
        try:
            model = tq.Model(path)
        except tq.Error:
            continue
        types = [str(getattr(t.type, "name", "")) for graph in model.subgraphs for t in graph.tensors if t.quantization]
        plain = all(t is not None and t.dtype.kind in "fiub" for t in model.inputs)
        if plain and model.subgraphs and not set(types) & set(QUANTIZED):
            yield path, model


def drawn(model, count, seed):
    rng = np.random.default_rng(seed)

    def one(tensor):
        if tensor.dtype.kind == "f":
            return rng.uniform(-1, 1, tensor.shape).astype(tensor.dtype)
        return rng.integers(0, 2, tensor.shape).astype(tensor.dtype)

    return [[one(tensor) for tensor in model.inputs] for _ in range(count)]


def answers(data, samples):
    """What each resolver gives: the outputs of each sample, or an Abort or Refusal."""
    model = tq.Model(data)
    inputs, outputs = ([t.index for t in tensors if t is not None] for tensors in (model.inputs, model.outputs))
    runs = [dict(zip(inputs, sample, strict=True)) for sample in samples]
    questions = [(data, resolver, runs, {}, outputs) for resolver in RESOLVERS]
    return dict(zip(RESOLVERS, oracle.ask("tensors", questions), strict=True))


def failure(recipe, path, model, calibration, samples):
    """What is wrong with one result; None where nothing is, or where there is nothing to quantize."""
    try:
        static = RECIPES[recipe].form == STATIC
        data = tq.quantize_model(path, recipe, calibration=calibration if static else None)
    except ValueError as error:
        return None if any(words in str(error) for words in UNFIT) else str(error)
    found = answers(data, samples)
    for resolver, answer in found.items():
        if not isinstance(answer, list) and not any(words in str(answer) for words in REFUSED):
            return f"{resolver}: {answer}"
    if not static or any(not isinstance(answer, list) for answer in found.values()):
        return None
    # Bits are those of integer kernels; what stays float may differ by the order of its sums.
    written = [t for t in tq.Model(data).outputs if t is not None]
    floats = [op.name for op in tq.Model(data).operators if op.name not in ("QUANTIZE", "DEQUANTIZE") and is_float(op)]
    if floats:
        return None
    for mine, theirs in zip(found["TQ"], found["BUILTIN_REF"], strict=True):
        for tensor in written:
            if not np.array_equal(
                mine[tensor.index], theirs[tensor.index], equal_nan=mine[tensor.index].dtype.kind == "f"
            ):
                return f"tensor {tensor.name!r} differs from LiteRT's reference"
    return None


def is_float(operator):
    return any(t is not None and t.type.name == "FLOAT32" for t in (*operator.inputs, *operator.outputs))


@pytest.mark.parametrize("recipe", [name for name, row in RECIPES.items() if row.form != FLOAT])
def test_results_run(corpus, recipe):
    wrong, count = {}, 0
    for path, model in float_models(corpus):
        try:
            samples = drawn(model, 3, 0)
            calibration = tq.calibrate(model, samples, progress=False)
        except (tq.Error, ValueError):
            continue  # the float model does not run, or not on such inputs
        problem = failure(recipe, path, model, calibration, samples[:1])
        count += 1
        if problem is not None:
            wrong[path.name] = problem
    assert wrong == {} and count > 100
