# SPDX-License-Identifier: Apache-2.0
"""Real models run as in LiteRT's kernels of each name, in every tensor.

Models that these kernels refuse or abort on are taken apart: each operator is cut out, fed with what tq computed before
it, and compared with LiteRT's answer for it alone.  So are those in which a float tensor is too far off: a tolerance is
what an operator may add, and later ones may magnify it.
"""

import collections

import corpus_runs
import differential
import oracle
import pytest
from generators import NUMERICS, OPTIMIZED

import tq

pytestmark = pytest.mark.corpus
SMALL = 150_000  # bytes of a model that the default tier runs
WORKERS = 2


def both(paths, numerics):
    """(path, inputs, LiteRT's answer, tq's answer) for each."""
    prepared = [(str(path), [corpus_runs.inputs(path)]) for path in paths]
    wanted = [differential.compared(tq.Model(path)) for path, _ in prepared]

    def ask(who):
        parts = zip(prepared, wanted, strict=True)
        return oracle.ask("tensors", ((path, who, runs, {}, some) for (path, runs), some in parts), WORKERS // 2)

    for (path, runs), theirs, mine in zip(
        prepared, ask(NUMERICS[numerics]), ask(differential.candidate_of(numerics)), strict=True
    ):
        yield path, runs, theirs, mine


def name(path):
    return "/".join(path.split("/")[-2:])


def check(paths, numerics):
    failures, counts = [], collections.Counter()
    for path, runs, theirs, mine in both(paths, numerics):
        if isinstance(mine, oracle.Abort):
            failures.append(f"{name(path)}: tq's process ended with code {mine.code}; LiteRT's answer: {theirs}"[:500])
        elif isinstance(theirs, oracle.Abort | oracle.Refusal):
            if isinstance(mine, oracle.Refusal):
                counts["run by neither"] += 1
                if not may_refuse(path, theirs):
                    failures.append(f"{name(path)}: LiteRT's answer: {theirs}; tq's: {mine}"[:500])
            else:
                counts["run by tq alone"] += 1
                failures += apart(path, runs, counts, numerics)
        else:
            counts["run by both"] += 1
            wrong, _ = differential.compare_runs(tq.Model(path), runs, mine, theirs, numerics)
            if wrong and is_float(path, wrong):
                failures += apart(path, runs, counts, numerics)
            elif wrong:
                failures.append(f"{name(path)}: {place(path, wrong)}")
    print(dict(counts))
    assert not failures, f"{len(failures)} of {dict(counts)}:\n" + "\n".join(failures)


# Models that abort LiteRT, and whose contract tq finds broken: an ADD of int8 without scales.
BROKEN = ("litert__test__testdata__blockwise_quantized.tflite",)


def may_refuse(path, theirs):
    """Whether tq need not run a model either: a contract is broken, or an operator is known to neither.

    It must where LiteRT only lacks a kernel, dislikes a parameter without meaning, or aborts."""
    contract = isinstance(theirs, oracle.Refusal) and theirs.stage in ("allocate", "invoke")
    return contract or path.endswith(BROKEN)


def is_float(path, wrong):
    """Whether the tensor of a mismatch holds floats."""
    return wrong[1] is not None and tq.Model(path).subgraphs[0].tensors[wrong[1]].type.name.startswith("FLOAT")


def place(path, wrong):
    """Where a mismatch is: the operator that made the tensor."""
    _, index, text = wrong
    if index is None:
        return text
    makers = [o for o in tq.Model(path).subgraphs[0].operators if index in o.output_indices]
    return f"tensor {index} of {f'operator {makers[0].index} {makers[0].name}' if makers else 'none'}: {text}"


def alone(data, fed, outputs, numerics):
    """tq's answer for an operator that is cut out, which may then have other backends than in its place."""
    (answer,) = oracle.ask("tensors", [(data, differential.candidate_of(numerics), [fed], {}, outputs)])
    return answer


def apart(path, runs, counts, numerics):
    """Compares every operator of a model by itself; a list of texts."""
    model = tq.Model(path)
    graph = model.subgraphs[0]
    everything = [tensor.index for tensor in graph.tensors if not tensor.is_constant]
    (answer,) = oracle.ask("tensors", [(path, differential.candidate_of(numerics), runs, {}, everything)])
    known = {i: value for i, value in answer[0].items() if not isinstance(value, oracle.Refusal)}
    failures = []
    for item in graph.operators:
        data, fed, outputs = corpus_runs.cut(model, item.index, known)
        (theirs,) = oracle.ask("tensors", [(data, NUMERICS[numerics], [fed], {}, outputs)])
        if not isinstance(theirs, list) and numerics == "reference":
            (theirs,) = oracle.ask("tensors", [(data, OPTIMIZED, [fed], {}, outputs)])
        if not isinstance(theirs, list):
            counts["operators that LiteRT does not run alone"] += 1
            continue
        counts["operators alone"] += 1
        mine = [{output: known[index] for index, output in zip(item.output_indices, outputs, strict=True)}]
        mine = mine if numerics == "reference" else alone(data, fed, outputs, numerics)
        wrong, _ = differential.compare_runs(tq.Model(data), [fed], mine, theirs, numerics)
        if wrong:
            failures.append(f"{name(path)}: operator {item.index} {item.name}: {wrong[2]}")
    return failures


def test_small_models_agree(corpus):
    check([path for path in corpus if path.stat().st_size < SMALL], "reference")


@pytest.mark.slow
@pytest.mark.parametrize("numerics", ["optimized", "xnnpack"])
def test_small_models_agree_with_other_kernels(corpus, numerics):
    check([path for path in corpus if path.stat().st_size < SMALL], numerics)


@pytest.mark.slow
@pytest.mark.parametrize("numerics", NUMERICS)
def test_all_models_agree(corpus, numerics):
    check([path for path in corpus if path.stat().st_size >= SMALL], numerics)
