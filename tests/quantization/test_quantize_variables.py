# SPDX-License-Identifier: Apache-2.0
"""Resource variables of integers, where every operator that touches one can be; and those that stay float."""

import concurrent.futures

import numpy as np
import oracle
import pytest
from test_quantize_model import noise_db, normal
from test_quantize_static import RESOLVERS

import tq

STEPS, WIDTH = 4, 8


def handle(graph, name="state", container=""):
    made = graph.tensor(f"handle_{name}", [1], "resource")
    graph.operator("VAR_HANDLE", [], [made], shared_name=name, container=container)
    return made


def begin(b, start):
    """A CALL_ONCE of a subgraph that assigns constants: {name: array}."""
    graph = b.subgraph("begin")
    for name, value in start.items():
        graph.operator("ASSIGN_VARIABLE", [handle(graph, name), graph.constant(f"start_{name}", value)], [])
    b.operator("CALL_ONCE", [], [], init_subgraph_index=graph.index)


def stream(start=0.0, rule="same"):
    """A window over the last steps, as streaming models keep it: read, joined with the input, and assigned.

    rule: what the new value is: "same" as what was read and joined, or "free", a number of its own.
    """
    b = tq.ModelBuilder()
    begin(b, {"state": np.full((1, STEPS, WIDTH), start, np.float32)})
    x, old, both = (
        b.input("x", [1, 1, WIDTH]),
        b.tensor("old", [1, STEPS, WIDTH]),
        b.tensor("both", [1, STEPS + 1, WIDTH]),
    )
    new, flat, y = b.tensor("new", [1, STEPS, WIDTH]), b.tensor("flat", [1, 40]), b.tensor("y", [1, 6])
    state = handle(b.graph)
    b.operator("READ_VARIABLE", [state], [old])
    b.operator("CONCATENATION", [old, x], [both], axis=1)
    ends = [np.array(row, np.int32) for row in ([0, 1, 0], [1, STEPS + 1, WIDTH], [1, 1, 1])]
    b.operator("STRIDED_SLICE", [both, *(b.constant(f"end{i}", row) for i, row in enumerate(ends))], [new])
    if rule == "free":
        scaled = b.tensor("scaled", [1, STEPS, WIDTH])
        b.operator("MUL", [new, b.constant("half", np.float32([0.5]))], [scaled])
        new = scaled
    b.operator("ASSIGN_VARIABLE", [state, new], [])
    b.operator("RESHAPE", [both, b.constant("shape", np.array([1, 40], np.int32))], [flat])
    b.operator("FULLY_CONNECTED", [flat, b.constant("w", normal(6, 40)), None], [y])
    b.output(y)
    b.signature("serving_default", {"x": x}, {"y": y})
    return b.to_bytes()


def samples(count=30, seed=0):
    rng = np.random.default_rng(seed)
    return [[rng.uniform(-1, 1, (1, 1, WIDTH)).astype(np.float32)] for _ in range(count)]


def answers(data, resolver, values):
    """The outputs of one invoke after the other."""
    made = tq.Model(data)
    place = made.outputs[0].index
    runs = [{made.inputs[0].index: value} for (value,) in values]
    (answer,) = oracle.ask("tensors", [(data, resolver, runs, {}, [place])])
    assert isinstance(answer, list), (resolver, answer)
    return np.stack([item[place] for item in answer])


def accesses(data):
    """{operator's place: the type of what is read or assigned}."""
    found = []
    for graph in tq.Model(data).subgraphs:
        for op in graph.operators:
            if op.name == "READ_VARIABLE":
                found.append(op.outputs[0])
            elif op.name == "ASSIGN_VARIABLE":
                found.append(op.inputs[1])
    return found


def check(model, data, type_, least=25):
    values = accesses(data)
    assert {t.type.name for t in values} == {type_}
    if type_ != "FLOAT32":
        assert len({(t.quantization.scale.tolist()[0], t.quantization.zero_point.tolist()[0]) for t in values}) == 1
    fed = samples(8, seed=3)
    exact = answers(model, "TQ", fed)
    found = {resolver: answers(data, resolver, fed) for resolver in RESOLVERS}
    for resolver, given in found.items():
        assert noise_db(exact, given) > least, resolver
    np.testing.assert_array_equal(found["TQ"], found["BUILTIN_REF"])


@pytest.mark.parametrize("rule", ["same", "free"])
@pytest.mark.parametrize("start", [0.0, 3.0])
@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_a_state_that_streams(recipe, start, rule):
    model = stream(start, rule)
    calibration = tq.calibrate(model, samples(), reset_variables=False)
    data = tq.quantize_model(model, recipe, calibration=calibration)
    assert not tq.Model(data).problems
    check(model, data, {"int8": "INT8", "int16x8": "INT16"}[recipe])
    names = [op.name for op in tq.Model(data).subgraphs[0].operators]
    assert names.count("QUANTIZE") == 1 and names.count("DEQUANTIZE") == 1  # at the ends


def test_samples_of_one_stream():
    model, data = stream(), samples(6)
    made = tq.calibrate(model, data, reset_variables=False)
    window = np.concatenate([np.zeros((1, STEPS, WIDTH), np.float32), *(x for (x,) in data)], axis=1)
    assert made.range("old") == (window[:, :-1].min(), window[:, :-1].max())
    assert made == tq.calibrate(model, data, reset_variables=False, num_threads=4)
    assert tq.calibrate(model, data).range("old") == (0, 0)
    with concurrent.futures.ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="reset_variables"):
        tq.calibrate(model, data, reset_variables=False, executor=executor)


def two_signatures(activation=True):
    """ "put" assigns what "get" reads, in another subgraph, beside numbers of another range."""
    b = tq.ModelBuilder()
    x, h, y = b.input("x", [1, WIDTH]), b.tensor("h", [1, WIDTH]), b.tensor("y", [1, WIDTH])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(WIDTH, WIDTH)), None], [h])
    b.operator("ASSIGN_VARIABLE", [handle(b.graph), h], [])
    b.operator("LOGISTIC" if activation else "COS", [h], [y])
    b.output(y)
    get = b.subgraph("get")
    z, old, total = get.input("z", [1, WIDTH]), get.tensor("old", [1, WIDTH]), get.tensor("total", [1, WIDTH])
    get.operator("ASSIGN_VARIABLE", [handle(get), z], [])
    get.operator("READ_VARIABLE", [handle(get)], [old])
    get.operator("MAXIMUM", [old, z], [total])
    out = get.tensor("out", [1, WIDTH])
    get.operator("FULLY_CONNECTED", [total, get.constant("v", normal(WIDTH, WIDTH)), None], [out])
    get.output(out)
    b.signature("put", {"x": x}, {"y": y})
    b.signature("get", {"z": z}, {"out": out}, subgraph=1)
    return b.to_bytes()


def calls(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield "put", {"x": rng.uniform(-1, 1, (1, WIDTH)).astype(np.float32)}
        yield "get", {"z": rng.uniform(-9, 9, (1, WIDTH)).astype(np.float32)}


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_subgraphs_agree(recipe):
    model = two_signatures()
    data = tq.quantize_model(model, recipe, calibration=calls(60))
    values = accesses(data)
    assert len(values) == 3 and {t.type.name for t in values} == {{"int8": "INT8", "int16x8": "INT16"}[recipe]}
    assert len({(t.quantization.scale[0], t.quantization.zero_point[0]) for t in values}) == 1
    assert values[0].quantization.max[0] >= 8  # what the other subgraph puts there
    found = {}
    for resolver in RESOLVERS:
        (found[resolver],) = oracle.ask("signatures", [(data, resolver, list(calls(3, seed=5)))])
        assert isinstance(found[resolver], list), (resolver, found[resolver])
    (exact,) = oracle.ask("signatures", [(model, "TQ", list(calls(3, seed=5)))])
    for place, wanted in enumerate(exact):
        for name, value in wanted.items():
            assert all(noise_db(value, found[resolver][place][name]) > 20 for resolver in RESOLVERS)
            np.testing.assert_array_equal(found["TQ"][place][name], found["BUILTIN_REF"][place][name])


@pytest.mark.parametrize("why", ["a rule", "one subgraph has no samples", "two types", "a handle from elsewhere"])
def test_all_or_none(why):
    model, options = two_signatures(), {"calibration": list(calls(20))}
    if why == "a rule":
        options["rules"] = [tq.Rule("float", operator="READ_VARIABLE")]
    elif why == "two types":
        options["rules"] = [tq.Rule("int16x8", subgraph=1)]
    elif why == "one subgraph has no samples":
        options["calibration"] = {"put": [values for key, values in calls(20) if key == "put"]}
    else:
        with tq.edit(model) as e:
            graph = e.subgraphs[1]
            read = next(op for op in graph.operators if op.name == "READ_VARIABLE")
            given = graph.add_tensor("given", [1], "resource")
            graph.inputs = [*graph.inputs, given]
            read.inputs = [given]
            model = e.to_bytes()
        options["calibration"] = {"put": [values for key, values in calls(20) if key == "put"]}
    data = tq.quantize_model(model, "int8", **options)
    assert {t.type.name for t in accesses(data)} == {"FLOAT32"}
    assert any(op.name == "QUANTIZE" for op in tq.Model(data).subgraphs[0].operators)


def test_a_constant_alone_stays_float():
    b = tq.ModelBuilder()
    begin(b, {"unread": np.ones((1, WIDTH), np.float32)})
    x, y = b.input("x", [1, WIDTH]), b.tensor("y", [1, WIDTH])
    b.operator("FULLY_CONNECTED", [x, b.constant("w", normal(WIDTH, WIDTH)), None], [y])
    b.output(y)
    data = tq.quantize_model(b.to_bytes(), "int8", calibration=[[np.ones((1, WIDTH), np.float32)]])
    assert {t.type.name for t in accesses(data)} == {"FLOAT32"}
