# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of integers: tensors outside and inside have the same parameters, or stay float."""

import numpy as np
import pytest
from test_quantize_model import normal, outputs
from test_quantize_static import RESOLVERS, check, quantized

import tq

WIDTH = 8
TYPES = {"int8": "INT8", "int16x8": "INT16"}


def dense(graph, x, seed, name="w", **options):
    y = graph.tensor(f"{name}_out", [1, WIDTH])
    graph.operator(
        "FULLY_CONNECTED", [x, graph.constant(name, normal(WIDTH, WIDTH, seed=seed) / 2), None], [y], **options
    )
    return y


def below(graph, x, limit):
    """Whether an int32 number is."""
    less = graph.tensor("less", [1], "bool")
    graph.operator("LESS", [x, graph.constant("limit", np.array([limit], np.int32))], [less])
    return less


def recurrent(steps=6, start=None, activation="TANH", more=None):
    """A loop of a counter, a state and an input that it does not change: h = activation(dense(h) + dense(x))."""
    b = tq.ModelBuilder()
    x = b.input("x", [1, WIDTH])
    h = b.constant("start", start) if start is not None else b.input("h", [1, WIDTH])
    zero = b.constant("zero", np.array([0], np.int32))
    ends = [b.tensor("count_end", [1], "int32"), b.tensor("h_end", [1, WIDTH]), b.tensor("x_end", [1, WIDTH])]
    condition, body = b.subgraph("condition"), b.subgraph("body")
    n, *_rest = (condition.input(name, shape, type_) for name, shape, type_ in state())
    condition.output(below(condition, n, steps))
    n, g, u = (body.input(name, shape, type_) for name, shape, type_ in state())
    next_n, total, next_h = (
        body.tensor("m", [1], "int32"),
        body.tensor("total", [1, WIDTH]),
        body.tensor("f", [1, WIDTH]),
    )
    body.operator("ADD", [n, body.constant("one", np.array([1], np.int32))], [next_n])
    body.operator("ADD", [dense(body, g, 3), dense(body, u, 4, "v")], [total])
    body.operator(activation, [total], [next_h])
    if more:
        more(body, u)
    body.output(next_n, next_h, u)
    b.operator("WHILE", [zero, h, x], ends, cond_subgraph_index=1, body_subgraph_index=2)
    b.output(dense(b.graph, ends[1], 5))
    return b.to_bytes()


def state():
    return ("n", [1], "int32"), ("h", [1, WIDTH], "float32"), ("u", [1, WIDTH], "float32")


def ends(graph):
    return [tensor.type.name for tensor in (*graph.inputs, *graph.outputs)]


def parameters(*tensors):
    return {(t.quantization.scale[0], t.quantization.zero_point[0]) for t in tensors}


START = np.linspace(-1.3, 1.3, WIDTH, dtype=np.float32).reshape(1, WIDTH)


@pytest.mark.parametrize(("activation", "start"), [("TANH", None), ("RELU6", None), ("TANH", START)])
@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_loops(recipe, activation, start):
    model = recurrent(start=start, activation=activation)
    data = quantized(model, recipe)
    graphs, type_ = tq.Model(data).subgraphs, TYPES[recipe]
    assert ends(graphs[1]) == ["INT32", type_, type_, "BOOL"]
    assert ends(graphs[2]) == ["INT32", type_, type_] * 2
    (loop,) = (op for op in graphs[0].operators if op.name == "WHILE")
    for place in (1, 2):
        carried = [loop.inputs[place], loop.outputs[place], graphs[1].inputs[place]]
        assert len(parameters(*carried, graphs[2].inputs[place], graphs[2].outputs[place])) == 1
    assert not [op.name for op in graphs[2].operators if op.name == "DEQUANTIZE"]
    check(model, data, least=20)


@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_floats_that_a_loop_does_not_change_stay(recipe):
    """Where a float operator of the body reads them."""

    def more(body, u):
        cosine = body.tensor("cosine", [1, WIDTH])
        body.operator("COS", [u], [cosine])

    model = recurrent(more=more)
    data = quantized(model, recipe)
    type_ = TYPES[recipe]
    assert ends(tq.Model(data).subgraphs[2]) == ["INT32", type_, "FLOAT32"] * 2
    check(model, data, least=20)


def test_data_that_only_moves_beside_a_loop_stays_float():
    with tq.edit(recurrent()) as e:
        loop = next(op for op in e.operators if op.name == "WHILE")
        zero, h, x = loop.inputs
        moved = e.main.add_tensor("moved", [1, WIDTH])
        shape = e.main.add_tensor("shape", [2], "int32", data=np.array([1, WIDTH], np.int32))
        e.main.add_operator("RESHAPE", [x, shape], [moved], at=0)
        loop.inputs = [zero, h, moved]
        model = e.to_bytes()
    data = quantized(model)
    (reshape,) = (op for op in tq.Model(data).subgraphs[0].operators if op.name == "RESHAPE")
    assert reshape.inputs[0].type.name == reshape.outputs[0].type.name == "FLOAT32"
    assert ends(tq.Model(data).subgraphs[2]) == ["INT32", "INT8", "INT8"] * 2
    check(model, data, least=20)


def branches(second="LEAKY_RELU", shared=False):
    """IF of two inputs, of which the first goes to an integer operator and the second to `second`."""
    b = tq.ModelBuilder()
    x, go = b.input("x", [1, WIDTH]), b.input("go", [1], "bool")
    graphs = [b.subgraph("then")] if shared else [b.subgraph("then"), b.subgraph("else")]
    for seed, graph in enumerate(graphs):
        u, v = graph.input("u", [1, WIDTH]), graph.input("v", [1, WIDTH])
        made = graph.tensor("made", [1, WIDTH])
        graph.operator(second if seed else "LEAKY_RELU", [v], [made])
        graph.output(dense(graph, u, seed + 1), made)
    ends = [b.tensor("p", [1, WIDTH]), b.tensor("q", [1, WIDTH])]
    b.operator("IF", [go, x, dense(b.graph, x, 7)], ends, then_subgraph_index=1, else_subgraph_index=len(graphs))
    y = b.tensor("y", [1, WIDTH])
    b.operator("ADD", ends, [y])
    b.output(y)
    return b.to_bytes()


def samples():
    rng = np.random.default_rng(0)
    made = [[rng.uniform(-1, 1, (1, WIDTH)).astype(np.float32), np.array([go])] for go in (False, True) * 20]
    return [*made, *([np.full((1, WIDTH), end, np.float32), np.array([go])] for end in (-1, 1) for go in (False, True))]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("recipe", ["int8", "int16x8"])
def test_branches(recipe, shared):
    model = branches(shared=shared)
    data = quantized(model, recipe, calibration=samples())
    graphs = tq.Model(data).subgraphs
    assert [ends(graph) for graph in graphs[1:]] == [[TYPES[recipe]] * 4] * (1 if shared else 2)
    names = [op.name for op in graphs[0].operators]
    assert names == ["QUANTIZE", "FULLY_CONNECTED", "IF", "ADD", "DEQUANTIZE"]
    (call,) = (op for op in graphs[0].operators if op.name == "IF")
    for place in (0, 1):
        assert len(parameters(call.inputs[place + 1], *(graph.inputs[place] for graph in graphs[1:]))) == 1
        assert len(parameters(call.outputs[place], *(graph.outputs[place] for graph in graphs[1:]))) == 1
    check(model, data, least=25)


def test_what_one_branch_takes_as_floats():
    """The other input and output are integers all the same."""
    model = branches("COS")
    data = quantized(model, calibration=samples())
    for graph in tq.Model(data).subgraphs[1:]:
        assert ends(graph) == ["INT8", "FLOAT32"] * 2
    check(model, data, least=25)


@pytest.mark.parametrize("rule", [{"operator": "IF"}, {"subgraph": 1}])
def test_rules(rule):
    data = quantized(branches(), calibration=samples(), rules=[tq.Rule("float", **rule)])
    for graph in tq.Model(data).subgraphs[1:]:
        assert set(ends(graph)) == {"FLOAT32"}
    for resolver in RESOLVERS:
        outputs(data, resolver)


def test_a_branch_of_another_type():
    data = quantized(branches(), calibration=samples(), rules=[tq.Rule("int16x8", subgraph=2)])
    for graph in tq.Model(data).subgraphs[1:]:
        assert set(ends(graph)) == {"FLOAT32"} and any(op.name == "QUANTIZE" for op in graph.operators)
    check(branches(), data, least=25)


def test_a_branch_that_a_signature_runs_too():
    with tq.edit(branches()) as e:
        graph = e.subgraphs[1]
        names = {t.name: t for t in graph.inputs}, {t.name: t for t in graph.outputs}
        e.add_signature("then", *names, subgraph=1)
        e.add_signature("main", {t.name: t for t in e.inputs}, {"y": e.outputs[0]})
        model = e.to_bytes()
    data = quantized(model, calibration=samples())
    for graph in tq.Model(data).subgraphs[1:]:
        assert set(ends(graph)) == {"FLOAT32"}


def test_a_branch_that_gives_a_constant():
    b = tq.ModelBuilder()
    x, go, y = b.input("x", [1, WIDTH]), b.input("go", [1], "bool"), b.tensor("y", [1, WIDTH])
    then, other = b.subgraph("then"), b.subgraph("other")
    then.output(dense(then, then.input("u", [1, WIDTH]), 1))
    other.input("u", [1, WIDTH])
    other.output(other.constant("c", normal(1, WIDTH)))
    b.operator("IF", [go, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    b.output(y)
    data = quantized(b.to_bytes(), calibration=samples())
    graphs = tq.Model(data).subgraphs
    assert ends(graphs[1]) == ends(graphs[2]) == ["INT8", "FLOAT32"]
    check(b.to_bytes(), data, least=20)


def test_a_loop_in_a_branch_in_a_loop():
    """One range for all."""
    b = tq.ModelBuilder()
    x, zero, y = b.input("x", [1, WIDTH]), b.constant("zero", np.array([0], np.int32)), b.tensor("y", [1, WIDTH])
    more, body, then, other, again, inner = (
        b.subgraph(name) for name in ("more", "body", "then", "other", "again", "inner")
    )

    def pair(graph):
        return graph.input("n", [1], "int32"), graph.input("u", [1, WIDTH])

    more.output(below(more, pair(more)[0], 3))
    n, u = pair(body)
    m, v = body.tensor("m", [1], "int32"), body.tensor("v", [1, WIDTH])
    body.operator("ADD", [n, body.constant("one", np.array([1], np.int32))], [m])
    body.operator("IF", [below(body, n, 1), u], [v], then_subgraph_index=3, else_subgraph_index=4)
    body.output(m, v)
    then.output(dense(then, then.input("u", [1, WIDTH]), 1))
    u, w = other.input("u", [1, WIDTH]), other.tensor("w", [1, WIDTH])
    start, last = other.constant("start", np.array([0], np.int32)), other.tensor("last", [1], "int32")
    other.operator("WHILE", [start, u], [last, w], cond_subgraph_index=5, body_subgraph_index=6)
    other.output(w)
    again.output(below(again, pair(again)[0], 2))
    n, u = pair(inner)
    m, c = inner.tensor("m", [1], "int32"), inner.tensor("c", [1, WIDTH])
    inner.operator("ADD", [n, inner.constant("one", np.array([1], np.int32))], [m])
    inner.operator("RELU6", [dense(inner, u, 2)], [c])
    inner.output(m, c)
    b.operator("WHILE", [zero, x], [b.tensor("last", [1], "int32"), y], cond_subgraph_index=1, body_subgraph_index=2)
    b.output(y)
    model = b.to_bytes()
    data = quantized(model, "int16x8")
    graphs = tq.Model(data).subgraphs
    integers = [
        t for graph in graphs[1:] for t in (*graph.inputs, *graph.outputs) if t.type.name not in ("INT32", "BOOL")
    ]
    assert {t.type.name for t in integers} == {"INT16"} and len(parameters(*integers)) == 1
    check(model, data, least=18)
    check(model, quantized(model), least=15)


# ---- composites ----


def composites():
    """A CONV_2D, and a composite whose subgraph has an ADD and a composite with a MUL."""
    b = tq.ModelBuilder()
    inner, innermost = b.subgraph("inner"), b.subgraph("innermost")
    shape = [1, 4, 4, 2]
    for graph, name, named in ((innermost, "MUL", None), (inner, "ADD", 2)):
        start, end = graph.input(f"{name}_in", shape), graph.tensor(f"{name}_out", shape)
        between = end if named is None else graph.tensor(f"{name}_sum", shape)
        graph.operator(name, [start, start], [between], fused_activation_function="NONE")
        if named is not None:
            graph.operator("STABLEHLO_COMPOSITE", [between], [end], name="two", decomposition_subgraph_index=named)
        graph.output(end)
    weights = b.constant("w", np.random.default_rng(0).normal(size=(2, 3, 3, 2)).astype(np.float32))
    x, y, z = b.input("x", shape), b.tensor("y", shape), b.tensor("z", shape)
    steps = {"stride_h": 1, "stride_w": 1, "padding": "SAME", "dilation_h_factor": 1, "dilation_w_factor": 1}
    b.operator("CONV_2D", [x, weights], [y], **steps)
    b.operator("STABLEHLO_COMPOSITE", [y], [z], name="one", decomposition_subgraph_index=1)
    b.output(z)
    return b.to_bytes()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], {"CONV_2D": "INT8", "ADD": "INT8", "MUL": "INT8"}),
        ([tq.Rule("float", operator="STABLEHLO_COMPOSITE")], {"CONV_2D": "INT8", "ADD": "FLOAT32", "MUL": "FLOAT32"}),
        (
            [tq.Rule("float", operator="STABLEHLO_COMPOSITE", subgraph=1)],
            {"CONV_2D": "INT8", "ADD": "INT8", "MUL": "FLOAT32"},
        ),
        (
            [tq.Rule("float", operator="STABLEHLO_COMPOSITE"), tq.Rule("int16x8", operator="ADD")],
            {"CONV_2D": "INT8", "ADD": "INT16", "MUL": "FLOAT32"},
        ),
        ([tq.Rule("float", tensor="^z$")], {"CONV_2D": "INT8", "ADD": "FLOAT32", "MUL": "FLOAT32"}),
        ([tq.Rule("float", index=1, subgraph=0)], {"CONV_2D": "INT8", "ADD": "FLOAT32", "MUL": "FLOAT32"}),
        ([tq.Rule("float", tensor="^ADD_out$")], {"CONV_2D": "INT8", "ADD": "INT8", "MUL": "FLOAT32"}),
        ([tq.Rule("float", subgraph=0)], {"CONV_2D": "FLOAT32", "ADD": "INT8", "MUL": "INT8"}),
    ],
)
def test_a_rule_for_composites_holds_for_the_operators_of_their_subgraphs(rules, expected):
    model = composites()
    seen = [np.random.default_rng(number).normal(size=(1, 4, 4, 2)).astype(np.float32) for number in range(4)]
    made = tq.Model(tq.quantize_model(model, calibration=seen, rules=rules))
    found = {op.name: op.outputs[0].type.name for graph in made.subgraphs for op in graph.operators}
    assert {name: found[name] for name in expected} == expected


def test_a_rule_for_one_of_two_composites_of_a_subgraph_holds_for_its_operators():
    b = tq.ModelBuilder()
    inner, shape = b.subgraph("inner"), [1, 4]
    start, end = inner.input("start", shape), inner.tensor("end", shape)
    inner.operator("ADD", [start, start], [end], fused_activation_function="NONE")
    inner.output(end)
    x, y, z, u = b.input("x", shape), *(b.tensor(name, shape) for name in "yzu")
    b.operator("MUL", [x, x], [y], fused_activation_function="NONE")
    b.operator("STABLEHLO_COMPOSITE", [y], [z], name="one", decomposition_subgraph_index=1)
    b.operator("STABLEHLO_COMPOSITE", [z], [u], name="one", decomposition_subgraph_index=1)
    b.output(u)
    seen = [np.random.default_rng(number).normal(size=(1, 4)).astype(np.float32) for number in range(4)]
    for name in "zu":
        rules = [tq.Rule("float", tensor=f"^{name}$")]
        made = tq.Model(tq.quantize_model(b.to_bytes(), calibration=seen, rules=rules))
        assert {op.outputs[0].type.name for op in made.subgraphs[1].operators} == {"FLOAT32"}


def test_a_rule_for_composites_that_later_rules_undo_is_an_error():
    seen = [np.ones((1, 4, 4, 2), np.float32)]
    rules = [tq.Rule("float", operator="STABLEHLO_COMPOSITE"), tq.Rule("int8")]
    with pytest.raises(ValueError, match="later rules hold for all of its operators"):
        tq.quantize_model(composites(), calibration=seen, rules=rules)
