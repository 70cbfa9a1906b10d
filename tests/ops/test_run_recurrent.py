# SPDX-License-Identifier: Apache-2.0
"""Operators that remember: what they refuse, and that their states start at zero, last, and follow a reset.  Random
models against LiteRT are in test_ops.py."""

import generators
import numpy as np
import pytest
from generators.draft import Draft
from models import build_model, operator, tensor

import tq

STEPS, BATCH, INPUTS, CELLS = 3, 2, 4, 5


def one(name, options, tensors, inputs):
    """A model of one operator.  tensors: name to keywords of `tensor`, None for one that is left out; the first is the
    model's input, the last, "y", its output."""
    tensors = {key: value for key, value in tensors.items() if value is not None}
    places = {key: place for place, key in enumerate(tensors)}
    made = [tensor(key, **value) for key, value in tensors.items()]
    item = operator(name, [places.get(key, -1) for key in inputs], [places["y"]], **options)
    return build_model(tensors=made, operators=[item], inputs=[0], outputs=[places["y"]])


def merged(parts, changes):
    """parts with some of their tensors changed; None leaves one out."""
    for key, change in changes.items():
        parts[key] = None if change is None else {**(parts.get(key) or {}), **change}
    return parts


def filled(parts, seed=0):
    """Data for every tensor of FLOAT32 or INT8 that is constant and has none."""
    rng = np.random.default_rng(seed)
    for key, part in parts.items():
        if key in ("x", "y") or part is None or part.get("is_variable") or "data" in part:
            continue
        values = rng.uniform(-1, 1, part["shape"])
        kinds = {"INT8": (127, np.int8), "INT16": (9999, np.int16), "INT32": (99, np.int32)}
        scale, dtype = kinds.get(part.get("type"), (1, np.float32))
        part["data"] = (values * scale).astype(dtype)
    return parts


def lstm(options=None, **changes):
    """UNIDIRECTIONAL_SEQUENCE_LSTM of floats without extras."""
    gates = ("i", "f", "c", "o")
    parts = {"x": {"shape": [STEPS, BATCH, INPUTS]}}
    parts |= {f"w{g}": {"shape": [CELLS, INPUTS]} for g in gates}
    parts |= {f"r{g}": {"shape": [CELLS, CELLS]} for g in gates}
    parts |= {f"b{g}": {"shape": [CELLS]} for g in gates}
    parts |= {key: {"shape": [BATCH, CELLS], "is_variable": True} for key in ("state", "cell")}
    parts = filled(merged(parts, changes))
    parts["y"] = {"shape": [STEPS, BATCH, CELLS], **parts.pop("y", {})}
    order = [f"{kind}{g}" for kind in "wr" for g in gates]
    order += ["pi", "pf", "po", *(f"b{g}" for g in gates), "p", "pb", "state", "cell", *(f"n{g}" for g in gates)]
    options = {"fused_activation_function": "TANH", "time_major": True, **(options or {})}
    return one("UNIDIRECTIONAL_SEQUENCE_LSTM", options, parts, ["x", *order])


def rnn(options=None, name="RNN", **changes):
    parts = {
        "x": {"shape": [BATCH, INPUTS]},
        "w": {"shape": [CELLS, INPUTS]},
        "r": {"shape": [CELLS, CELLS]},
        "b": {"shape": [CELLS]},
        "state": {"shape": [BATCH, CELLS], "is_variable": True},
    }
    parts = filled(merged(parts, changes))
    parts["y"] = {"shape": [BATCH, CELLS], **parts.pop("y", {})}
    options = {"fused_activation_function": "RELU", **(options or {})}
    return one(name, options, parts, ["x", "w", "r", "b", "state"])


def svdf(options=None, **changes):
    parts = {
        "x": {"shape": [BATCH, INPUTS]},
        "feature": {"shape": [2 * CELLS, INPUTS]},
        "time": {"shape": [2 * CELLS, 6]},
        "b": {"shape": [CELLS]},
        "state": {"shape": [BATCH, 12 * CELLS], "is_variable": True},
    }
    parts = filled(merged(parts, changes))
    parts["y"] = {"shape": [BATCH, CELLS], **parts.pop("y", {})}
    options = {"rank": 2, "fused_activation_function": "RELU", **(options or {})}
    return one("SVDF", options, parts, ["x", "feature", "time", "b", "state"])


def refused(data):
    interpreter = tq.Interpreter(model_content=data)
    with pytest.raises(RuntimeError) as caught:
        interpreter.allocate_tensors()
    return str(caught.value)


WIDE = {f"{kind}{g}": {"type": "INT8", "scale": 0.01} for kind in "wr" for g in "ifco"}


@pytest.mark.parametrize(
    "data, text",
    [
        (lstm(state={"is_variable": False}), "'state' is a state; it must be a variable"),
        (lstm(cell={"is_variable": False}), "'cell' is a state; it must be a variable"),
        (lstm(state=None), "input 18 is left out (-1); it is needed"),
        (lstm(cell=None), "input 19 is left out (-1); it is needed"),
        (lstm(state={"shape": [BATCH, CELLS + 1]}), "'state' is a state of 12 elements; 10 are needed"),
        (lstm(cell={"type": "INT16", "scale": 2**-11}), "'cell'"),
        (lstm(x={"shape": [BATCH, INPUTS]}), "'x' has 2 dimensions"),
        (lstm(x={"shape": [STEPS, BATCH, INPUTS + 1]}), "'wf' has the shape [5,4]; it must be [5,5]"),
        (lstm(wf=None), "input 2 is left out"),
        (lstm(wi=None), "'ri' is there; the input gate's weights"),
        (lstm(bo=None), "input 15 is left out (-1); it is needed"),
        (lstm(bc={"shape": [CELLS + 1]}), "'bc' has the shape [6]; it must be [5]"),
        (lstm(rc={"shape": [CELLS, INPUTS]}), "'rc' has the shape [5,4]; it must be [5,5]"),
        (lstm(ro={"shape": [CELLS + 1]}), "it must be [5,6]"),
        (lstm(p={"shape": [CELLS, CELLS + 1]}), "'p' has the shape [5,6]; it must be [5,5]"),
        (lstm(pb={"shape": [CELLS]}), "'pb' is a projection's bias"),
        (lstm(wf={"type": "INT8", "scale": 0.01}), "'wf'"),
        (lstm(**{**WIDE, "wc": {"type": "INT8"}}), "'wc' has no scale"),
        (lstm({"cell_clip": -1.0}), "cell_clip is -1"),
        (lstm(pi={"shape": [1]}), "input 11 is left out; input 9, the same tensor of another gate, is there"),
        (lstm(pf={"shape": [1]}), "input 11 is left out; input 10, the same tensor of another gate, is there"),
        (lstm(no={"shape": [1]}), "input 21 is left out; input 23, the same tensor of another gate, is there"),
        (lstm({"proj_clip": float("nan")}), "proj_clip nan"),
        (lstm({"fused_activation_function": 17}), "activation"),
        (lstm(y={"type": "INT8", "scale": 0.1}), "'y'"),
        (rnn(state={"is_variable": False}), "'state' is a state; it must be a variable"),
        (rnn(state=None), "input 4 is left out"),
        (rnn(state={"shape": [BATCH + 1, CELLS]}), "'state' is a state of 15 elements; 10 are needed"),
        (rnn(r={"shape": [CELLS, CELLS + 1]}), "'r' has the shape [5,6]; it must be [5,5]"),
        (rnn(b={"shape": [CELLS + 1]}), "'b' has 6 elements; there are 5 units"),
        (rnn(w={"shape": [CELLS, INPUTS + 1]}), "'w' has the shape [5,5]; it must be [5,4]"),
        (rnn({"fused_activation_function": 17}), "activation"),
        (svdf(state={"is_variable": False}), "'state' is a state; it must be a variable"),
        (svdf(state=None), "input 4 is left out (-1); it is needed"),
        (svdf(state={"shape": [BATCH, 11 * CELLS]}), "'state' is a state of 110 elements; 120 are needed"),
        (svdf({"rank": 0}), "rank is 0"),
        (svdf({"rank": 3}), "rank is 3; it must be positive and divide the 10 filters"),
        (svdf(feature={"shape": [2 * CELLS, INPUTS + 1]}), "'feature' takes 5 inputs; the input has 4"),
        (svdf(time={"shape": [2 * CELLS + 2, 6]}), "'time' has 12 filters"),
        (svdf(b={"shape": [CELLS + 1]}), "'b' has 6 elements; there are 5 units"),
    ],
)  # fmt: skip
def test_refuses(data, text):
    message = refused(data)
    assert text in message
    assert "perator 0 (" in message


def test_a_state_is_no_operators_output():
    """Another operator's prepare would give it another shape than that which the state's operator was prepared for."""
    with tq.edit(rnn()) as e:
        (y,) = e.outputs
        e.main.add_operator("CONCATENATION", [y, y], [e.tensors["state"]], axis=1)
        data = e.to_bytes()
    assert "operator 1 (CONCATENATION): output 0 'state' is a variable" in refused(data)


def invoke(interpreter, x):
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("data", [lstm(), lstm(**WIDE), rnn(), svdf()], ids=["lstm", "hybrid lstm", "rnn", "svdf"])
def test_a_state_starts_at_zero_lasts_and_follows_a_reset(data):
    interpreter = tq.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    x = np.random.default_rng(1).uniform(-1, 1, interpreter.get_input_details()[0]["shape"]).astype(np.float32)
    first, second = (invoke(interpreter, x) for _ in range(2))
    assert (first != second).any()
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(invoke(interpreter, x), first)
    np.testing.assert_array_equal(invoke(interpreter, x), second)


@pytest.mark.parametrize("data", [lstm(), lstm(**WIDE)], ids=["lstm", "hybrid lstm"])
def test_steps_in_one_invoke_are_steps_in_several(data):
    x = np.random.default_rng(2).uniform(-1, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)
    whole, single = (tq.Interpreter(model_content=data) for _ in range(2))
    whole.allocate_tensors()
    single.resize_tensor_input(0, [1, BATCH, INPUTS])
    single.allocate_tensors()
    steps = np.concatenate([invoke(single, x[i : i + 1]) for i in range(STEPS)])
    np.testing.assert_array_equal(invoke(whole, x), steps)


def test_an_lstm_of_no_input_gate_is_one_whose_input_gate_is_what_the_forget_gate_leaves():
    """One step from a state of zero, worked out by hand."""
    data = lstm(wi=None, ri=None, bi=None)
    weights = {t.name: np.float64(t.data) for t in tq.Model(data).subgraphs[0].tensors if t.is_constant}
    x = np.random.default_rng(3).uniform(-1, 1, (1, BATCH, INPUTS)).astype(np.float32)
    interpreter = tq.Interpreter(model_content=data)
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    gates = {g: np.float64(x[0]) @ weights[f"w{g}"].T + weights[f"b{g}"] for g in "fco"}
    forget, out = (1 / (1 + np.exp(-gates[g])) for g in "fo")
    expected = out * np.tanh((1 - forget) * np.tanh(gates["c"]))
    np.testing.assert_allclose(invoke(interpreter, x)[0], expected, rtol=1e-5, atol=1e-6)


CODES = {**WIDE, **{f"p{g}": {"type": "INT8", "shape": [CELLS]} for g in "ifo"}}


@pytest.mark.parametrize(
    "make, weights",
    [
        (lambda **c: rnn(w={"type": "INT8", **c}, r={"type": "INT8", **c}), CELLS),
        (lambda **c: lstm(**{key: {**part, **c} for key, part in CODES.items()}), CELLS),
        (lambda **c: svdf(feature={"type": "INT8", **c}, time={"type": "INT8", **c}), 2 * CELLS),
    ],
    ids=["rnn", "lstm", "svdf"],
)
def test_a_scale_for_each_row_of_weights_is_that_of_its_unit(make, weights):
    """From a state of zero, what a unit gives follows from its own rows."""
    scales = np.float32(0.01) * np.arange(1, CELLS + 1, dtype=np.float32)

    def first(data):
        interpreter = tq.Interpreter(model_content=data)
        interpreter.allocate_tensors()
        shape = interpreter.get_input_details()[0]["shape"]
        return invoke(interpreter, np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32))

    by_row = first(make(scale=np.repeat(scales, weights // CELLS)))
    alone = [first(make(scale=scale)) for scale in scales]
    if by_row.ndim == 3:
        by_row, alone = by_row[0], [y[0] for y in alone]
    assert by_row.any() and (by_row != alone[0]).any()
    for unit in range(CELLS):
        np.testing.assert_array_equal(by_row[:, unit], alone[unit][:, unit])


def products_of_8_bits(change):
    """An LSTM of 12 intermediate tensors, changed by change(draft, operator, tensors of its inputs)."""
    generators.rows()
    draft = Draft(1, "LSTM", "int8-products8", 0, name="LSTM")
    generators.ROWS["LSTM", "int8-products8"](draft, "int8-products8")
    item = draft.operators[0]
    change(draft, item, [draft.tensors[i] if i >= 0 else None for i in item.inputs])
    return draft.case().model


def with_input_gate(_, item, tensors):
    for place in (1, 5, 12, 20):
        item.inputs[place] = item.inputs[place + 1]


def without_norms(_, item, tensors):
    item.inputs[20:24] = [-1] * 4


def with_another_cell(_, item, tensors):
    tensors[19].fields["scale"] = 2.0**-14


def with_one_less(_, item, tensors):
    item.fields["intermediates"] = item.fields["intermediates"][:11]


def with_a_wide_zero_point(draft, item, tensors):
    draft.tensors[item.fields["intermediates"][4]].fields["zero_point"] = 300


@pytest.mark.parametrize(
    "change, text",
    [
        (with_input_gate, "no input gate and no peepholes"),
        (without_norms, "it must have layer normalizations and a projection"),
        (with_another_cell, "the cell state's scale is 6.10352e-05; it must be 2^-15"),
        (with_one_less, "there are 11 intermediate tensors; with int8 it has 5 or 12"),
        (with_a_wide_zero_point, "intermediate tensor 4 has the zero point 300; it needs one of int8"),
    ],
)
def test_what_products_of_8_bits_need(change, text):
    assert text in refused(products_of_8_bits(change))
