# SPDX-License-Identifier: Apache-2.0
"""Tensor.densify and Tensor.sparsity against LiteRT's DENSIFY, against NumPy, and against contradictions."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import build_model, operator, tensor

import tq

DENSE, CSR = tq.DimensionType.DENSE, tq.DimensionType.SPARSE_CSR
VECTORS = {4: "Int32Vector", 2: "Uint16Vector", 1: "Uint8Vector"}


# ---- an encoder ----


def expand(dense, order, blocks):
    """The array with one axis a level: `blocks` is {dimension: size}, `order` the traversal order."""
    inner = {dimension: dense.ndim + place for place, dimension in enumerate(blocks)}
    shape, axis_of = [], {}
    for dimension, size in enumerate(dense.shape):
        axis_of[dimension] = len(shape)
        shape.append(size // blocks.get(dimension, 1))
        if dimension in blocks:
            axis_of[inner[dimension]] = len(shape)
            shape.append(blocks[dimension])
    return dense.reshape(shape).transpose([axis_of[dimension] for dimension in order])


def encode(dense, order, formats, blocks):
    """Stored values, and [dense size] or [segments, indices] a level."""
    expanded, levels = expand(dense, order, blocks), []
    parts = [expanded]
    for size, format in zip(expanded.shape, formats, strict=True):
        if format == DENSE:
            levels.append([size])
            parts = [item for part in parts for item in part]
            continue
        kept = [[i for i, item in enumerate(part) if np.any(item)] for part in parts]
        levels.append([np.cumsum([0, *map(len, kept)]).tolist(), [i for indices in kept for i in indices]])
        parts = [part[i] for part, indices in zip(parts, kept, strict=True) for i in indices]
    return np.array(parts, dense.dtype), levels


def dimension(level, width):
    if len(level) == 1:
        return {"format": DENSE, "dense_size": level[0]}
    segments, indices = ({"type": VECTORS[width], "values": values} for values in level)
    return {"format": CSR, "array_segments": segments, "array_indices": indices}


def sparse_tensor(shape, type, stored, order, levels, block_map=(), width=4):
    sparsity = {
        "traversal_order": list(order),
        "block_map": list(block_map) or None,
        "dim_metadata": [dimension(level, width) for level in levels],
    }
    return tensor("sparse", list(shape), type, data=bytes(stored), sparsity=sparsity)


def model_of(item):
    """A model that densifies the tensor."""
    shape = item.shape
    output = tensor("dense", shape, item.type)
    return build_model([item, output], [operator("DENSIFY", [0], [1])], [], [1])


# ---- two oracles ----


def densify(shape, sparsity, stored):
    """What schema.fbs says, in NumPy: the coordinates of every stored value."""
    order = sparsity["traversal_order"].tolist()
    blocks = sparsity.get("block_map", np.array([], np.int32)).tolist()
    coordinates = np.zeros((len(order), 1), np.int64)
    sizes = {}
    for place, (dim, level) in enumerate(zip(order, sparsity["dim_metadata"], strict=True)):
        if level["format"] == DENSE:
            counts = sizes[dim] = level["dense_size"]
            index = np.tile(np.arange(counts), coordinates.shape[1])
        else:
            counts, index = np.diff(level["array_segments"]), level["array_indices"]
        coordinates = np.repeat(coordinates, counts, axis=1)
        coordinates[place] = index
    where = [coordinates[order.index(d)] for d in range(len(shape))]
    for place, dim in enumerate(blocks):
        inside = len(shape) + place
        where[dim] = where[dim] * sizes[inside] + coordinates[order.index(inside)]
    dense = np.zeros(shape, stored.dtype)
    dense[tuple(where)] = stored[: coordinates.shape[1]]
    return dense


LITERT = """
import pickle, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
answers = []
for source in pickle.load(sys.stdin.buffer):
    interpreter = Interpreter(
        **({"model_content": source} if isinstance(source, bytes) else {"model_path": source}),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    interpreter.invoke()
    operators = [op for op in interpreter._get_ops_details() if op["op_name"] == "DENSIFY"]
    answers.append({int(op["inputs"][0]): interpreter.get_tensor(op["outputs"][0]) for op in operators})
pickle.dump(answers, sys.stdout.buffer)
"""


def ask_litert(sources):
    """For each model (path or bytes), {index of a sparse tensor: what its DENSIFY gives}."""
    ran = subprocess.run([sys.executable, "-c", LITERT], input=pickle.dumps(sources), capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return pickle.loads(ran.stdout[ran.stdout.index(b"\x80") :])


def check(item, expected):
    """densify, and its arguments as Python sees them."""
    found = tq.Model(model_of(item)).tensors[0]
    dense = found.densify()
    assert dense.dtype == expected.dtype and dense.shape == expected.shape
    assert dense.tobytes() == expected.tobytes()
    assert densify(found.shape, found.sparsity, found.data).tobytes() == expected.tobytes()
    return found


# ---- encodings of every sort ----


@st.composite
def encodings(draw, max_rank=4):
    rank = draw(st.integers(1, max_rank))
    blocked = draw(st.permutations(range(rank)).map(lambda p: p[: draw(st.integers(0, rank))]))
    blocks = {dim: draw(st.integers(1, 3)) for dim in blocked}
    shape = [draw(st.integers(1, 4)) * blocks.get(dim, 1) for dim in range(rank)]
    order = draw(st.permutations(range(rank))) + draw(st.permutations(range(rank, rank + len(blocks))))
    formats = draw(st.lists(st.sampled_from([DENSE, CSR]), min_size=rank, max_size=rank)) + [DENSE] * len(blocks)
    seed, density = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    return shape, order, formats, blocks, seed, density


def random_dense(shape, seed, density, dtype):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < density, rng.integers(1, 100, shape), 0).astype(dtype)


TYPES = {"INT8": "i1", "BOOL": "?", "FLOAT16": "<f2", "INT32": "<i4", "FLOAT32": "<f4", "INT64": "<i8"}
TYPES["COMPLEX128"] = "<c16"


@settings(deadline=None, max_examples=200)
@given(encodings(), st.sampled_from(sorted(TYPES)), st.sampled_from([1, 2, 4]))
def test_encodings(encoding, type, width):
    shape, order, formats, blocks, seed, density = encoding
    dense = random_dense(shape, seed, density, TYPES[type])
    stored, levels = encode(dense, order, formats, blocks)
    if any(level[0][-1] > 255 for level in levels if len(level) == 2):
        width = max(width, 2)
    check(sparse_tensor(shape, type, stored, order, levels, blocks, width), dense)


def litert_cases():
    """Encodings that LiteRT reads as the schema says: block_map rises, and at most two blocks are swapped."""
    rng = np.random.default_rng(3)
    for type in ("FLOAT32", "FLOAT16", "INT8"):
        for shape, blocks in (
            ((6,), {}),
            ((6,), {0: 3}),
            ((4, 6), {}),
            ((4, 6), {1: 3}),
            ((4, 6), {0: 2, 1: 3}),
            ((2, 4, 6), {0: 1, 2: 2}),
            ((2, 2, 2, 8), {3: 4}),
        ):
            rank = len(shape)
            for _ in range(4):
                order = [*rng.permutation(rank).tolist(), *(rank + rng.permutation(len(blocks))).tolist()]
                formats = [*rng.integers(0, 2, rank).tolist(), *[DENSE] * len(blocks)]
                dense = random_dense(shape, int(rng.integers(1000)), 0.4, TYPES[type])
                stored, levels = encode(dense, order, formats, blocks)
                yield dense, sparse_tensor(shape, type, stored, order, levels, blocks)


def test_litert_agrees():
    cases = list(litert_cases())
    answers = ask_litert([model_of(item) for _, item in cases])
    for (dense, item), answer in zip(cases, answers, strict=True):
        check(item, dense)
        assert answer[0].dtype == dense.dtype
        assert answer[0].tobytes() == dense.tobytes()


@pytest.mark.corpus
def test_real_models(corpus):
    paths, tensors = [], {}
    others = [path for folder in {path.parent for path in corpus} for path in folder.glob("*sparse*.bin")]
    for path in [*corpus, *sorted(others)]:
        try:
            model = tq.Model(path)
        except tq.ModelError:
            continue
        found = [item for item in model.tensors if item.sparsity is not None]
        for item in found:
            assert item.densify().tobytes() == densify(item.shape, item.sparsity, item.data).tobytes()
        if found and any(op.name == "DENSIFY" for op in model.operators):
            paths.append(str(path))
            tensors[str(path)] = found
    if not paths:
        pytest.skip("no sparse models")
    for path, answers in zip(paths, ask_litert(paths), strict=True):
        assert answers.keys() == {item.index for item in tensors[path]}
        for item in tensors[path]:
            assert item.densify().tobytes() == answers[item.index].tobytes(), (path, item.index)


# ---- what Python sees ----


def example(**changes):
    """[[0, 7], [5, 6]] as compressed rows."""
    arguments = {
        "shape": (2, 2),
        "type": "INT8",
        "stored": np.array([7, 5, 6], np.int8),
        "order": [0, 1],
        "levels": [[2], [[0, 1, 3], [1, 0, 1]]],
    }
    return sparse_tensor(**{**arguments, **changes})


@pytest.mark.parametrize("width", [1, 2, 4])
def test_dictionary(width):
    found = check(example(width=width), np.array([[0, 7], [5, 6]], np.int8))
    sparsity = found.sparsity
    assert list(sparsity) == ["traversal_order", "dim_metadata"]
    assert sparsity["traversal_order"].dtype == np.int32
    assert sparsity["dim_metadata"][0] == {"format": 0, "dense_size": 2}
    compressed = sparsity["dim_metadata"][1]
    assert compressed["format"] == 1
    for key, expected in (("array_segments", [0, 1, 3]), ("array_indices", [1, 0, 1])):
        assert compressed[key].dtype == np.int32
        assert compressed[key].tolist() == expected
    assert found.data.tolist() == [7, 5, 6]


def test_dense_tensors_have_no_sparsity():
    found = tq.Model(build_model([tensor("x", [2], "INT8", data=np.array([1, 2], np.int8))])).tensors[0]
    assert found.sparsity is None
    assert found.densify().tolist() == [1, 2]


def test_litert_takes_the_later_of_two_values_at_one_place():
    item = example(levels=[[2], [[0, 2, 3], [1, 1, 0]]])
    check(item, np.array([[0, 5], [6, 0]], np.int8))
    assert ask_litert([model_of(item)])[0][0].tolist() == [[0, 5], [6, 0]]


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"order": [0]}, "BAD_SPARSITY", "traversal_order has 1 items"),
        ({"order": [1, 1]}, "BAD_SPARSITY", "dimension 1 twice"),
        ({"order": [0, 2]}, "BAD_SPARSITY", r"traversal_order\[1\] is 2"),
        ({"shape": (2, 2, 1)}, "BAD_SPARSITY", "dim_metadata has 2 items"),
        ({"shape": (3, 2)}, "BAD_SPARSITY", "level 0 has dense_size 2; the shape gives 3"),
        ({"shape": (2, 1)}, "BAD_SPARSITY", r"array_indices\[0\] is 1; the dimension has size 1"),
        ({"shape": (2, -2)}, "BAD_SHAPE", "dimension 1 is -2"),
        ({"block_map": [0]}, "BAD_SPARSITY", "dim_metadata has 2 items"),
        ({"levels": [[2], [[0, 3], [1, 0, 1]]]}, "BAD_SPARSITY", "level 1 has 2 array_segments"),
        ({"levels": [[2], [[0, 2, 1], [1]]]}, "BAD_SPARSITY", r"array_segments\[2\] is 1"),
        ({"levels": [[2], [[0, 1, 4], [1, 0, 1]]]}, "BAD_SPARSITY", "array_segments end at 4"),
        ({"stored": np.array([7, 5], np.int8)}, "DATA_SIZE", "describe 3 values; the buffer's 2 bytes hold 2"),
        ({"type": "INT4", "stored": b"\x57\x06"}, "BAD_TYPE", "whole bytes"),
    ],
)
def test_contradictions(changes, code, text):
    found = tq.Model(model_of(example(**changes))).tensors[0]
    with pytest.raises(tq.ModelError, match=text) as info:
        found.densify()
    assert info.value.code == code
    assert found.sparsity is not None  # what is wrong can still be looked at


@settings(deadline=None, max_examples=300)
@given(encodings(3), st.data())
def test_any_change_densifies_or_is_refused(encoding, data):
    shape, order, formats, blocks, seed, density = encoding
    dense = random_dense(shape, seed, density, "i1")
    stored, levels = encode(dense, order, formats, blocks)
    item = sparse_tensor(shape, "INT8", stored, order, levels, blocks, 4)
    values = st.sampled_from([-(2**31), -1, 0, 1, 2, 5, 2**31 - 1])
    sparsity = item.fields["sparsity"]
    lists = [item.shape, sparsity["traversal_order"], sparsity["block_map"] or [0]]
    for level in sparsity["dim_metadata"]:
        if level["format"] == CSR:
            lists += [level["array_segments"]["values"], level["array_indices"]["values"]]
        elif data.draw(st.booleans()):
            level["dense_size"] = data.draw(values)
    for target in lists:
        if target and data.draw(st.integers(0, 3)) == 0:
            target[data.draw(st.integers(0, len(target) - 1))] = data.draw(values)
    found = tq.Model(model_of(item)).tensors[0]
    try:
        result = found.densify()
    except tq.ModelError as error:
        assert error.code in ("BAD_SPARSITY", "BAD_SHAPE", "DATA_SIZE")
    except MemoryError:
        pass  # a dense tensor of 2^60 elements, honestly described
    else:
        assert result.shape == found.shape
        assert result.nbytes < 1 << 40


def test_no_elements():
    """Sizes that multiply past 2^64 before they meet a 0."""
    huge = 2**31 - 1
    item = sparse_tensor([huge, huge, 0], "INT8", b"", [0, 1, 2], [[huge], [huge], [0]])
    assert tq.Model(model_of(item)).tensors[0].densify().shape == (huge, huge, 0)
