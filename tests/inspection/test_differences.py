# SPDX-License-Identifier: Apache-2.0
"""tq.diff: what differs between two models."""

import numpy as np
import pytest
from models import build_model, make_model, operator, pack, signature, tensor

import tq

WEIGHTS = np.arange(12, dtype=np.int8).reshape(4, 3)


def network(order=(0, 1, 2, 3, 4)):
    """order: the tensors' places."""
    x, w, b, y, z = (order.index(tensor) for tensor in range(5))
    tensors = [
        tensor("x", [1, 3], "INT8", scale=0.1, zero_point=3, min=-1.0, max=1.0),
        tensor("w", [4, 3], "INT8", WEIGHTS, scale=[0.1, 0.2, 0.3, 0.4]),
        tensor("b", [4], "INT32", np.arange(4, dtype=np.int32), scale=0.01),
        tensor("y", [1, 4], "INT8", scale=0.2, zero_point=0),
        tensor("z", [1, 4], "INT8", scale=0.2, zero_point=0),
    ]
    return make_model(
        [tensors[i] for i in order],
        [operator("FULLY_CONNECTED", [x, w, b], [y]), operator("RELU", [y], [z])],
        [x],
        [z],
        signatures=[signature("serve", {"x": x}, {"z": z})],
        metadata={"note": b"1", "min_runtime_version": b"1.5.0"},
    )


def differences(change):
    """tq.diff between the network and one that `change` changed, as (kind, place, what, text)."""
    changed = network()
    change(changed, changed.main)
    found = tq.diff(tq.Model(pack(network())), tq.Model(pack(changed)))
    for difference in found:
        assert str(difference) == f"{difference.place}: {difference.what}: {difference.text}"
        assert "\n" not in str(difference) and len(str(difference)) < 400
    return [(d.kind, d.place, d.what, d.text) for d in found]


def assign(path, value):
    """A change that sets a field: assign("tensors.1.name", "v")."""

    def change(model, graph):
        *steps, last = path.split(".")
        item = graph if hasattr(graph, steps[0] if steps else last) else model
        for step in steps:
            item = item[int(step)] if step.isdigit() else getattr(item, step)
        if steps and steps[-1] == "options":
            item[last] = value
        else:
            setattr(item, last, value)

    return change


def test_models_are_taken_as_other_functions_take_them(tmp_path):
    a, changed = pack(network()), network()
    changed.description = "another"
    b = pack(changed)
    (tmp_path / "b.tflite").write_bytes(b)
    expected = tq.diff(tq.Model(a), tq.Model(b))
    assert expected and tq.diff(a, tmp_path / "b.tflite") == tq.diff(bytearray(a), b) == expected


def test_equal_models_do_not_differ():
    assert differences(lambda model, graph: None) == []


X, W, FC = "subgraph 0, tensor 0 'x'", "subgraph 0, tensor 1 'w'", "subgraph 0, operator 0 FULLY_CONNECTED"
CHANNELS, ACTIVATION = "2 of 4 differ, first at 2: [0] -> [1]", "options['fused_activation_function']"

SINGLE = [
    ("version", 2, ("structure", "model", "version", "3 -> 2")),
    ("description", "other", ("structure", "model", "description", "'made for a test' -> 'other'")),
    ("name", "other", ("structure", "subgraph 0", "name", "'main' -> 'other'")),
    ("inputs", [0, 1], ("structure", "subgraph 0", "inputs", "['x'] -> ['x', 'w']")),
    ("outputs", [], ("structure", "subgraph 0", "outputs", "['z'] -> []")),
    ("tensors.0.shape", [2, 3], ("structure", X, "shape", "[1, 3] -> [2, 3]")),
    ("tensors.0.shape_signature", [-1, 3], ("structure", X, "shape_signature", "[1, 3] -> [-1, 3]")),
    ("tensors.0.type", 3, ("structure", X, "type", "INT8 -> UINT8")),
    ("tensors.0.is_variable", True, ("structure", X, "is_variable", "False -> True")),
    ("tensors.0.quantization.scale", [0.25], ("quantization", X, "scale", "[0.100000001] -> [0.25]")),
    ("tensors.0.quantization.zero_point", [2**62], ("quantization", X, "zero_point", "[3] -> [4611686018427387904]")),
    ("tensors.0.quantization.min", [-2.0], ("quantization", X, "min", "[-1] -> [-2]")),
    ("tensors.0.quantization.max", [], ("quantization", X, "max", "[1] -> []")),
    ("tensors.1.quantization.quantized_dimension", 1, ("quantization", W, "quantized_dimension", "0 -> 1")),
    ("tensors.1.quantization.zero_point", [0, 0, 1, 2], ("quantization", W, "zero_point", CHANNELS)),
    ("operators.0.inputs", [0, 1, -1], ("structure", FC, "inputs", "['x', 'w', 'b'] -> ['x', 'w', '#-1']")),
    ("operators.0.intermediates", [3], ("structure", FC, "intermediates", "[] -> ['y']")),
    ("operators.0.options.keep_num_dims", True, ("structure", FC, "options['keep_num_dims']", "False -> True")),
    ("operators.0.options.fused_activation_function", 1, ("structure", FC, ACTIVATION, "NONE -> RELU")),
    ("operators.0.version", 9, ("structure", FC, "version", "1 -> 9")),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "expected"), SINGLE, ids=[field for field, _, _ in SINGLE])
def test_each_field_that_differs_is_named(field, value, expected):
    found = differences(assign(field, value))
    assert expected in found
    follows = {"tensors.0.shape": "shape_signature"}.get(field)  # equals the shape where none is stored
    assert {row[2] for row in found} <= {expected[2], follows}


def renamed(metadata, name):
    metadata["memo"] = metadata.pop(name)


def test_metadata_and_signatures():
    assert differences(lambda model, graph: renamed(model.metadata, "note")) == [
        ("structure", "model", "metadata['note']", "b'1' -> none"),
        ("structure", "model", "metadata['memo']", "none -> b'1'"),
    ]
    assert differences(assign("signatures.0.key", "call")) == [
        ("structure", "model", "signature 'serve'", "[0, {'x': 'x'}, {'z': 'z'}] -> none"),
        ("structure", "model", "signature 'call'", "none -> [0, {'x': 'x'}, {'z': 'z'}]"),
    ]
    found = differences(lambda model, graph: renamed(model.metadata, "min_runtime_version"))
    assert found[0][2] == "min_runtime_version"


def test_signs_of_zero_and_nan():
    def scale(value):
        return lambda model, graph: setattr(graph.tensors[0].quantization, "scale", [value])

    first, second = network(), network()
    scale(float("nan"))(first, first.main)
    scale(float("nan"))(second, second.main)
    assert tq.diff(tq.Model(pack(first)), tq.Model(pack(second))) == []
    scale(0.0)(first, first.main)
    scale(-0.0)(second, second.main)
    assert [d.what for d in tq.diff(tq.Model(pack(first)), tq.Model(pack(second)))] == ["scale"]


def data(model, index, array):
    model.tensors[index].data = array.tobytes()


def test_weights():
    other = WEIGHTS.copy()
    other[1, 2], other[3, 0] = 6, 0  # from 5, by 1 step of 0.2, and from 9, by 9 steps of 0.4
    text = "2 of 12 elements differ, by up to 9; largest difference 3.6, SQNR 6.9 dB"  # 10 log10(63.78 / 13)
    assert differences(lambda model, graph: data(model, 1, other)) == [("weights", W, "data", text)]


def test_weights_of_another_type_compare_by_their_values():
    real = (WEIGHTS * np.array([[0.1], [0.2], [0.3], [0.4]], np.float32)).astype(np.float32)

    def change(model, graph, values=real):
        graph.tensors[1].type, graph.tensors[1].quantization = "FLOAT32", None
        data(model, 1, values)

    assert {row[2] for row in differences(change)} == {"type", "kind", "scale", "zero_point"}
    near = real.copy()
    near[0, 0] = 0.5
    assert ("weights", W, "data") in [row[:3] for row in differences(lambda model, graph: change(model, graph, near))]


def test_a_constant_that_is_computed_in_the_other_model():
    found = differences(lambda model, graph: setattr(graph.tensors[1], "buffer", 0))
    assert found == [("structure", W, "is_constant", "constant -> computed")]


def test_constants_that_cannot_be_read():
    short = WEIGHTS.ravel()[:5]
    (row,) = differences(lambda model, graph: data(model, 1, short))
    assert row[:3] == ("weights", W, "data") and row[3].startswith("the bytes differ (")
    broken = network()
    data(broken, 1, short)
    assert tq.diff(tq.Model(pack(broken)), tq.Model(pack(broken))) == []


def test_floats_in_weights():
    def model(values):
        return tq.Model(pack(make_model([tensor("f", [3], "FLOAT32", np.array(values, np.float32))])))

    nan = float("nan")
    assert tq.diff(model([nan, 0.0, 1]), model([nan, 0.0, 1])) == []
    (found,) = tq.diff(model([nan, 0.0, 1]), model([nan, -0.0, 1]))
    assert found.text.startswith("1 of 3 elements differ")
    (found,) = tq.diff(model([nan, 0.0, 4]), model([1, 0.0, 1]))
    assert found.text.startswith("2 of 3 elements differ")
    (found,) = tq.diff(model([0, 0, 0]), model([np.inf, 0, 0]))
    assert "largest difference inf" in found.text


def test_tensors_are_matched_by_name_when_their_places_differ():
    assert tq.diff(tq.Model(pack(network())), tq.Model(pack(network(order=(4, 2, 0, 1, 3))))) == []


def test_tensors_and_operators_of_one_model_only():
    def change(model, graph):
        graph.add_tensor("extra", [1])
        graph.add_operator("RELU", ["y"], ["extra"], at=1)
        graph.operators[2].inputs = ["extra"]

    assert differences(change) == [
        ("structure", "subgraph 0, operator 1 RELU", "inputs", "['y'] -> ['extra']"),
        ("structure", "subgraph 0, operator 1 RELU", "operator", "only in the second model"),
        ("structure", "subgraph 0, tensor 5 'extra'", "tensor", "only in the second model"),
    ]


def test_an_operator_replaced_by_another():
    found = differences(lambda model, graph: graph.replace_operator(1, "TANH", ["y"], ["z"]))
    assert [row[1:] for row in found] == [
        ("subgraph 0, operator 1 RELU", "operator", "only in the first model"),
        ("subgraph 0, operator 1 TANH", "operator", "only in the second model"),
    ]


def test_subgraphs_of_one_model_only():
    found = differences(lambda model, graph: model.subgraph())
    assert ("structure", "model", "number of subgraphs", "1 -> 2") in found


def test_custom_operators_and_details():
    def model(options, dimension):
        details = {"type": "BlockwiseQuantization", "scales": 0, "block_size": dimension}
        custom = operator("Mine", [0], [0], custom_options=options)
        return tq.Model(build_model([tensor("x", [2, 2], details=details)], [custom]))

    found = {d.what for d in tq.diff(model(b"abc", 32), model(b"abd", 16))}
    assert {"custom_options", "block_size"} <= found
    assert tq.diff(model(b"abc", 32), model(b"abc", 32)) == []


@pytest.mark.corpus
def test_no_real_model_differs_from_itself_and_neighbours_do(corpus):
    models = [tq.Model(path) for path in corpus]
    for path, model in zip(corpus, models, strict=True):
        assert tq.diff(model, tq.Model(path.read_bytes())) == [], path
    for first, second in zip(models[::7], models[1::7], strict=False):
        found = tq.diff(first, second)
        assert len(found) == len(tq.diff(second, first))
        assert all(len(str(d)) < 5000 for d in found)
