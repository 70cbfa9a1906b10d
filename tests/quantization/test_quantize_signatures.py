# SPDX-License-Identifier: Apache-2.0
"""Models of several signatures: calibrated by samples of each, and quantized in every subgraph that one runs."""

import concurrent.futures
import importlib.util

import numpy as np
import oracle
import pytest
from commands import failed, fine
from test_quantize_model import noise_db, normal
from test_quantize_static import RESOLVERS

import tq

needs_dask = pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="dask is not installed")


def model(layers=1):
    """ "encode": subgraph 0, "decode": subgraph 1 which calls 2 in an IF, "score": subgraph 3, of two inputs.

    layers: of "encode"."""
    b = tq.ModelBuilder()

    def dense(graph, x, seed, name="y"):
        y = graph.tensor(name, [1, 8])
        graph.operator("FULLY_CONNECTED", [x, graph.constant(f"w{name}", normal(8, 8, seed=seed)), None], [y])
        return y

    x = b.input("x", [1, 8])
    y = dense(b.graph, x, 1)
    for layer in range(1, layers):
        y = dense(b.graph, y, 10 + layer, f"y{layer}")
    b.output(y)
    decode, branch, score = (b.subgraph(name) for name in ("decode", "branch", "score"))
    z, up, m = decode.input("z", [1, 8]), decode.input("up", [1], "bool"), decode.tensor("m", [1, 8])
    decode.operator("IF", [up, z], [m], then_subgraph_index=2, else_subgraph_index=2)
    decode.output(dense(decode, m, 2))
    u = branch.input("u", [1, 8])
    branch.output(dense(branch, u, 3))
    p, q = score.input("p", [1, 8]), score.input("q", [1, 8])
    total = score.tensor("total", [1, 8])
    score.operator("ADD", [p, q], [total])
    score.output(dense(score, total, 4))
    b.signature("encode", {"x": x}, {"y": y})
    b.signature("decode", {"z": z, "up": up}, {"out": decode.outputs[0]}, subgraph=1)
    b.signature("score", {"p": p, "q": q}, {"out": score.outputs[0]}, subgraph=3)
    return b.to_bytes()


def numbers(rng, scale=1.0):
    return (scale * rng.uniform(-1, 1, (1, 8))).astype(np.float32)


def samples(count=4, seed=0):
    """As a converter's representative data set yields them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield "encode", {"x": numbers(rng)}
        yield "decode", {"z": numbers(rng, 4), "up": np.array([True])}
        yield "score", {"p": numbers(rng, 2), "q": numbers(rng, 3)}


def by_key():
    found = {}
    for key, values in samples():
        found.setdefault(key, []).append(values)
    return found


def answers(data, resolver, cast=None):
    calls = [(key, {k: cast(key, k, v) if cast else v for k, v in values.items()}) for key, values in samples(2, 9)]
    (answer,) = oracle.ask("signatures", [(data, resolver, calls)])
    assert isinstance(answer, list), (resolver, answer)
    return [value for outputs in answer for value in outputs.values()]


def test_every_form_of_samples_is_the_same(tmp_path):
    expected = tq.calibrate(model(), samples())
    assert expected.samples == 12
    assert {name for name in expected.names.values()} == {"x", "y", "z", "m", "u", "p", "q", "total"}
    stacked = {key: {name: np.stack([s[name] for s in of]) for name in of[0]} for key, of in by_key().items()}
    for key, arrays in stacked.items():
        np.savez(tmp_path / f"{key}.npz", **arrays)
    paths = {key: tmp_path / f"{key}.npz" for key in stacked}
    bare = [values for _key, values in samples()]
    for form in (by_key(), stacked, paths, list(paths.items()), bare, [(k, list(v.values())) for k, v in samples()]):
        assert tq.calibrate(model(), form) == expected
    alone = tq.calibrate(model(), by_key()["score"], signature="score")
    assert alone == tq.calibrate(model(), {"score": by_key()["score"]})
    parts = [tq.calibrate(model(), of, signature=key) for key, of in by_key().items()]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged == expected
    merged.save(tmp_path / "ranges.npz")
    assert tq.Calibration.load(tmp_path / "ranges.npz") == expected


@pytest.mark.parametrize("observer", ["minmax", "moving_average", "mse"])
def test_however_the_work_is_split(observer):
    expected = tq.calibrate(model(), samples(), observer=observer, num_threads=1)
    assert tq.calibrate(model(), samples(), observer=observer, num_threads=3) == expected
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert tq.calibrate(model(), samples(), observer=observer, executor=executor) == expected


@needs_dask
def test_dask():
    import dask
    import dask.bag

    expected = tq.calibrate(model(), samples())
    with dask.config.set(scheduler="synchronous"):
        assert tq.calibrate(model(), dask.bag.from_sequence(list(samples()), npartitions=3)) == expected
        delayed = [dask.delayed(tuple)(item) for item in samples()]
        assert tq.calibrate(model(), delayed) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([("nothing", {})], "no signature is called 'nothing'; there are: encode, decode, score"),
        ([("score", {"p": np.zeros((1, 8), np.float32)})], "sample 0 has no input 'q'"),
        ([("encode", {"z": 1})], "no input is called 'z'; there are: x"),
        ([{"p": np.zeros((1, 8), np.float32)}], "no input is called 'p'; there are: x"),
        ({"score": 5}, "of signature 'score' are of type int"),
        ({"score": [], "encode": []}, "the calibration set is empty"),
    ],
)
def test_samples_that_do_not_fit(data, words):
    with pytest.raises(ValueError, match=words):
        tq.calibrate(model(), data)


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_every_signature_is_quantized(recipe):
    data = tq.quantize_model(model(), recipe, calibration=samples(100))
    wanted = {"int8": "INT8", "int16x8": "INT16"}[recipe]
    for graph in tq.Model(data).subgraphs:
        dense = [op for op in graph.operators if op.name == "FULLY_CONNECTED"]
        assert [op.inputs[0].type.name for op in dense] == [wanted] * len(dense) and dense
    assert not tq.Model(data).problems
    exact = answers(model(), "TQ")
    found = {resolver: answers(data, resolver) for resolver in RESOLVERS}
    for resolver, given in found.items():
        for one, other in zip(exact, given, strict=True):
            assert noise_db(one, other) > 20, resolver
    for one, other in zip(found["TQ"], found["BUILTIN_REF"], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("recipe", "io"), [("int8", "int8"), ("int8", "uint8"), ("int16x8", "int16")])
def test_io_is_for_each_signature(recipe, io):
    data = tq.quantize_model(model(), recipe, calibration=samples(), io=io)
    made = tq.Model(data)
    for place in (0, 3):
        ends = [*made.subgraphs[place].inputs, *made.subgraphs[place].outputs]
        assert {t.type.name for t in ends} == {io.upper()}
    decode, branch = made.subgraphs[1], made.subgraphs[2]
    assert decode.outputs[0].type.name == io.upper()
    inside = {"uint8": "INT8"}.get(io, io.upper())
    assert {t.type.name for t in (*branch.inputs, *branch.outputs)} == {inside}  # it is called
    inputs = {
        (s.key, name): made.subgraphs[s.subgraph_index].tensors[i]
        for s in made.signatures
        for name, i in s.inputs.items()
    }

    def cast(key, name, value):
        tensor = inputs[key, name]
        return value if tensor.type.name in ("FLOAT32", "BOOL") else tensor.quantization.quantize(value)

    found = {resolver: answers(data, resolver, cast) for resolver in RESOLVERS}
    for one, other in zip(found["TQ"], found["BUILTIN_REF"], strict=True):
        assert one.dtype == np.dtype(io)
        np.testing.assert_array_equal(one, other)


def handed_through():
    """An input that is an output, too: of the subgraph and of its signature."""
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 8]), b.tensor("y", [1, 8])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(8, 8)), None], [y])
    b.output(y, x)
    b.signature("serve", {"x": x}, {"y": y, "same": x})
    return b.to_bytes()


@pytest.mark.parametrize(("recipe", "io"), [("int8", "int8"), ("int8", "uint8"), ("int16x8", "int16")])
def test_io_of_inputs_that_are_outputs(recipe, io):
    calibration = [numbers(np.random.default_rng(k)) for k in range(4)]
    made = tq.Model(data := tq.quantize_model(handed_through(), recipe, calibration=calibration, io=io))
    assert [t.type.name for t in (*made.inputs, *made.outputs)] == [io.upper()] * 3 and not made.problems
    assert [t.name for t in (*made.inputs, *made.outputs)] == ["x", "y", "x"]
    value = made.inputs[0].quantization.quantize(calibration[0])
    calls = [("serve", {"x": value})]
    for found in oracle.ask("signatures", [(data, resolver, calls) for resolver in ("BUILTIN_REF", "TQ")]):
        np.testing.assert_array_equal(found[0]["same"], value)


def test_what_had_no_samples_stays_float():
    seen = {key: values for key, values in by_key().items() if key == "score"}
    graphs = tq.Model(tq.quantize_model(model(), "int8", calibration=seen)).subgraphs
    assert [any(op.name == "QUANTIZE" for op in graph.operators) for graph in graphs] == [False, False, False, True]


def test_overrides_of_another_subgraph():
    data = tq.quantize_model(model(), "int8", calibration=samples(), overrides={"total": (-64, 64), "y": (-1, 1)})
    of = {
        (graph.index, t.name.removesuffix("_int8")): t
        for graph in tq.Model(data).subgraphs
        for t in graph.tensors
        if len(t.quantization.scale) == 1
    }
    assert of[3, "total"].quantization.scale[0] == np.float32(128 / 255)
    assert of[0, "y"].quantization.scale[0] == np.float32(2 / 255)
    assert of[1, "y"].quantization.scale[0] != np.float32(2 / 255)  # the first subgraph has that name
    with pytest.raises(ValueError, match="overrides: the model has no tensor 'none'"):
        tq.quantize_model(model(), "int8", calibration=samples(), overrides={"none": (0, 1)})


def test_options_that_run_samples_keep_those_of_other_signatures():
    made = model(layers=2)  # equalization scales one through the other
    data = tq.quantize_model(made, "int8", calibration=list(samples()), bias_correction=True, equalize=True)
    assert all(any(op.name == "QUANTIZE" for op in tq.Model(data).subgraphs[place].operators) for place in (0, 3))


def test_command_line(run, tmp_path):
    """Files of samples, each for its signature; those without a key for the first subgraph, in any number."""
    (tmp_path / "m.tflite").write_bytes(model())
    for key, of in by_key().items():
        np.savez(tmp_path / f"{key}.npz", **{name: np.stack([s[name] for s in of]) for name in of[0]})
    x = np.concatenate([sample["x"] for sample in by_key()["encode"]])
    np.save(tmp_path / "a=b.npy", x[:1])  # its name is no signature's
    np.save(tmp_path / "rest.npy", x[1:])
    command = ["quantize", "m.tflite", "out.tflite", "--recipe", "int8"]
    others = ["--samples", "decode=decode.npz", "--samples", "score=score.npz"]
    for encode in (["encode=encode.npz"], ["encode.npz"], ["a=b.npy", "--samples", "rest.npy"], ["encode=rest.npy"]):
        fine(run(*command, "--samples", *encode, *others))
        given = {**by_key(), "encode": by_key()["encode"][encode == ["encode=rest.npy"] :]}
        assert (tmp_path / "out.tflite").read_bytes() == tq.quantize_model(model(), "int8", calibration=given)
    failed(run(*command, "--samples", "encoder=encode.npz"), "no signature is called 'encoder'", "decode")
    failed(run(*command, "--samples", "score=encode.npz"), "score=encode.npz", "no input is called 'x'")
    failed(run(*command, "--samples", "score=rest.npy"), "there are 2 inputs", "an .npz")
    failed(run(*command, "--samples", "score=none.npz"), "none.npz")
