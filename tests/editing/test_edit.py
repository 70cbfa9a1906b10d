# SPDX-License-Identifier: Apache-2.0
"""tq.edit: what changes, what must not, and files that are never left half written."""

import inspect
import io
import os
import random
import stat
import struct
import threading
import warnings
import zipfile

import numpy as np
import oracle
import pytest
import zoo
from damage import damaged
from equal_models import assert_equal_models, upstream
from models import build_model, operator, signature, tensor

import tq
from tq.editing import fields
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.editing.names import Metadata, SignaturePart
from tq.editing.operator import Options
from tq.editing.parts import Part, Parts
from tq.editing.tensor import QuantizationPart


def changes(before, after):
    """{path: (old, new)} of what the upstream schema's own reader finds different."""
    old, new = upstream(before), upstream(after)
    return {key: (old.get(key), new.get(key)) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def edited(source, change, **arguments):
    with tq.edit(source) as e:
        change(e)
        return e.to_bytes(**arguments)


CONV = zoo.MODELS["conv"]
GRAPH = ".subgraphs[0]"


# ---- only what was changed differs ----


def set_zero_point(e):
    e.tensors["features"].quantization.zero_point = 5


def set_axis(e):
    e.tensors["weights"].quantization.quantized_dimension = 3


def set_min(e):
    e.tensors["image"].quantization.min = [-1.5]


def add_max(e):
    """A field that was not stored, between two that are."""
    e.tensors["features"].quantization.max = [2.5]


def set_name(e):
    e.tensors["bias"].name = "beta"


def set_shape(e):
    e.tensors["flat"].shape = [8]


def set_type(e):
    e.tensors["image"].type = "uint8"


def set_data(e):
    e.tensors["bias"].data = np.int32([1, 2])


def set_option(e):
    e.operators[0].options["stride_w"] = 3


def set_description(e):
    e.description = "new"


def set_metadata(e):
    e.metadata["TFLITE_METADATA"] = b"\x01\x03"


def set_input_list(e):
    e.operators[1].inputs = ["features", None]


def set_outputs(e):
    e.outputs = ["features"]


def set_signature_key(e):
    e.signatures[0].key = "other"


SMALL_CHANGES = {
    set_zero_point: {f"{GRAPH}.tensors[3].quantization.zeroPoint": np.int64([5]).tobytes()},
    set_axis: {f"{GRAPH}.tensors[1].quantization.quantizedDimension": "3"},
    set_min: {f"{GRAPH}.tensors[0].quantization.min": np.float32([-1.5]).tobytes()},
    add_max: {f"{GRAPH}.tensors[3].quantization.max": np.float32([2.5]).tobytes()},
    set_name: {f"{GRAPH}.tensors[2].name": "b'beta'"},
    set_shape: {f"{GRAPH}.tensors[5].shape": np.int32([8]).tobytes()},
    set_type: {f"{GRAPH}.tensors[0].type": "3"},
    set_data: {".buffers[2].data": np.int32([1, 2]).tobytes()},
    set_option: {f"{GRAPH}.operators[0].builtinOptions.strideW": "3"},
    set_description: {".description": "b'new'"},
    set_metadata: {".buffers[5].data": b"\x01\x03"},
    set_input_list: {f"{GRAPH}.operators[1].inputs": np.int32([3, -1]).tobytes()},
    set_outputs: {f"{GRAPH}.outputs": np.int32([3]).tobytes()},
    set_signature_key: {".signatureDefs[0].signatureKey": "b'other'"},
}


@pytest.mark.parametrize("change", SMALL_CHANGES, ids=lambda change: change.__name__)
def test_one_change_changes_one_field(change):
    found = {key: new for key, (_old, new) in changes(CONV, edited(CONV, change)).items()}
    assert found == SMALL_CHANGES[change]


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_nothing_changed_changes_nothing(name):
    assert_equal_models(tq.Model(zoo.MODELS[name]), tq.Model(edited(zoo.MODELS[name], lambda e: None)))


@pytest.mark.corpus
def test_one_zero_point_of_real_models(corpus):
    """Every other bit of the model stays, as the upstream reader sees it."""
    seen = 0
    for path in [path for path in corpus if path.stat().st_size < 60_000][::8]:
        with tq.edit(path) as e:
            chosen = [
                (g.index, t)
                for g in e.subgraphs
                for t in g.tensors
                if len(t.quantization.zero_point) and t.type.name != "FLOAT32"
            ]
            if not chosen:
                continue
            graph, item = chosen[len(chosen) // 2]
            values = item.quantization.zero_point.copy()
            values[-1] += 1
            item.quantization.zero_point = values
            data = e.to_bytes()
        found = changes(path.read_bytes(), data)
        found = {key: new for key, (_old, new) in found.items() if not key.endswith(".offset")}
        key = f".subgraphs[{graph}].tensors[{item.index}].quantization.zeroPoint"
        assert found == {key: values.tobytes()}, path
        seen += 1
    assert seen > 10


# ---- tensors ----


def test_reading_parts():
    with tq.edit(CONV) as e:
        weights = e.tensors["weights"]
        assert (weights.index, weights.shape, weights.type) == (1, (2, 3, 3, 1), tq.TensorType.INT8)
        assert weights.data.tolist() == np.arange(18).reshape(2, 3, 3, 1).tolist()
        assert weights.quantization.scale.tolist() == np.float32([0.01, 0.02]).tolist()
        assert weights.is_constant and not e.tensors["image"].is_constant
        assert e.tensors["features"].producer == e.operators[0]
        assert e.tensors["features"].consumers == [e.operators["RESHAPE"]]
        assert e.tensors["flat"].shape_signature == (-1, 8) and e.tensors["image"].shape_signature is None
        assert e.operators[0].options["fused_activation_function"] == tq.ActivationFunctionType.RELU6
        assert e.operators[0].stored("large_custom_options_size") is None
        assert [t.name for t in e.inputs + e.outputs] == ["image", "flat"]
        assert e.signatures["serving_default"].inputs == {"image": e.tensors[0]}
        assert dict(e.metadata)["TFLITE_METADATA"] == b"\x01\x02"
        assert "weights" in repr(weights) and "CONV_2D" in repr(e.operators[0]) and repr(e.metadata)
        with pytest.raises(ValueError, match="read-only"):
            weights.quantization.scale[0] = 1
        with pytest.raises(KeyError, match="no tensor is named 'nothing'"):
            e.tensors["nothing"]
        with pytest.raises(IndexError, match="there is no operator 7"):
            e.operators[7]


def test_constants_in_every_type():
    with tq.edit(CONV) as e:
        made = {
            "int4": e.main.add_tensor("a", [3], "int4", data=np.int8([-8, 7, 1])),
            "float16": e.main.add_tensor("b", data=np.float16([0.5])),
            "string": e.main.add_tensor("c", [2], "STRING", data=["text", b"\xff"]),
            "bfloat16": e.main.add_tensor("d", [1], "bfloat16", data=[1.5]),
            "bool": e.main.add_tensor("e", data=np.array([True, False])),
            "scalar": e.main.add_tensor("f", data=np.int64(7)),
        }
        assert made["int4"].data.tolist() == [-8, 7, 1]
        m = e.to_model()
    assert m.tensors["a"].data.tolist() == [-8, 7, 1] and m.tensors["a"].dtype.name == "int4"
    assert m.tensors["b"].data.tolist() == [0.5]
    assert m.tensors["c"].data.tolist() == [b"text", b"\xff"]
    assert m.buffers[m.tensors["c"].buffer].data.tobytes() == struct.pack("<4i", 2, 16, 20, 21) + b"text\xff"
    assert m.tensors["d"].data.tolist() == [1.5]
    assert m.tensors["e"].data.tolist() == [True, False]
    assert m.tensors["f"].data == 7 and m.tensors["f"].shape == ()
    assert m.problems == tq.Model(CONV).problems


BAD_DATA = [
    (np.float32([1, 2]), "its type is INT32, which takes int32, not float32"),
    (np.int64([1, 2]), "takes int32, not int64"),
    (np.int32([1, 2, 3]), r"its shape is \[2\], the data's is \[3\]"),
    ([1.5, 2], "takes int32, not float64"),
    ([1 << 40, 2], "takes int32, not int64"),
]


@pytest.mark.parametrize(("value", "text"), BAD_DATA)
def test_data_that_does_not_fit(value, text):
    with tq.edit(CONV) as e:
        with pytest.raises(ValueError, match=f"tensor 'bias': .*{text}"):
            e.tensors["bias"].data = value
        assert_equal_models(tq.Model(CONV), e.to_model())


def test_data_of_a_shared_buffer_leaves_the_others_alone():
    data = build_model([tensor("a", [2], "INT8", buffer=1), tensor("b", [2], "INT8", buffer=1)], buffers=[b"\x01\x02"])

    def change(e):
        e.tensors["a"].data = np.int8([5, 6])

    after = tq.Model(edited(data, change))
    assert [t.data.tolist() for t in after.tensors] == [[5, 6], [1, 2]]
    assert [t.buffer for t in after.tensors] == [2, 1]


def test_data_is_copied_when_it_is_set():
    values = np.arange(10_000, dtype=np.int32)
    with tq.edit(build_model([tensor("x", [10_000], "INT32")])) as e:
        e.tensors[0].data = values
        values[:] = 0
        assert e.to_model().tensors[0].data.tolist() == list(range(10_000))


def test_data_can_be_taken_away():
    after = tq.Model(edited(CONV, lambda e: setattr(e.tensors["bias"], "data", None)))
    assert after.tensors["bias"].data is None and after.buffers[2].nbytes == 0


def test_quantization_as_a_whole():
    parameters = tq.Quantization([0.5, 0.25], [1, 2], dtype="int8", quantized_dimension=3, min=[-1, -2], max=[1, 2])

    def change(e):
        e.tensors["image"].quantization = parameters
        e.tensors["flat"].quantization = e.tensors["weights"].quantization
        e.tensors["bias"].quantization = None
        e.tensors["features"].quantization = {"scale": [0.125], "zero_point": [1]}

    m = tq.Model(edited(CONV, change))
    image = m.tensors["image"].quantization
    assert (image.scale.tolist(), image.zero_point.tolist(), image.quantized_dimension) == ([0.5, 0.25], [1, 2], 3)
    assert (image.min.tolist(), image.max.tolist()) == ([-1, -2], [1, 2])
    assert m.tensors["flat"].quantization.scale.tolist() == m.tensors["weights"].quantization.scale.tolist()
    assert m.tensors["bias"].stored("quantization") is None
    features = m.tensors["features"].stored("quantization")
    assert features["scale"] == [0.125] and features["min"] is None


@pytest.mark.parametrize(("scale", "zero", "needed"), [(0.5, 3, ([0.5], [3])), ([0.5, 0.25], 1, ([0.5, 0.25], [1, 1]))])
def test_quantization_may_be_params(scale, zero, needed):
    m = tq.Model(edited(CONV, lambda e: setattr(e.tensors[0], "quantization", tq.QuantizationParams((scale, zero)))))
    found = m.tensors[0].quantization
    assert (found.scale.tolist(), found.zero_point.tolist()) == needed


def test_quantization_of_another_type_is_an_error_and_changes_nothing():
    with tq.edit(CONV) as e:
        with pytest.raises(TypeError, match="quantization is a tuple; it must be a dict of scale"):
            e.tensors[0].quantization = (0.5, 3)
        assert e.to_bytes() == CONV


def test_blockwise_details_are_kept_and_renumbered():
    data = zoo.MODELS["blockwise"]
    before = tq.Model(data)

    def change(e):
        first = e.main.add_tensor("unused", [1])
        copy = e.tensors[0]
        copy.quantization = e.tensors[0].quantization
        e.main.remove_tensor(first)

    assert_equal_models(before, tq.Model(edited(data, change)))
    with tq.edit(data) as e:
        users = e.main.users()
        with pytest.raises(ValueError, match="is used by the quantization of tensor"):
            e.main.remove_tensor(next(i for i, user in users.items() if "quantization" in user and i > 0))


OTHER = tq.edit(CONV)

BAD_FIELDS = [
    (lambda e: setattr(e.tensors[0], "shape", [1.5]), r"Tensor\.shape needs integers, not float64"),
    (lambda e: setattr(e.tensors[0], "shape", [1 << 31]), "needs integers from -2147483648 to 2147483647"),
    (lambda e: setattr(e.tensors[0], "name", 5), r"Tensor\.name needs a str, not 5"),
    (lambda e: setattr(e.tensors[0], "type", "int7"), "no tensor type is called 'int7'; there are: float32, "),
    (lambda e: setattr(e.tensors[0], "buffer", -1), r"Tensor\.buffer needs an integer from 0 to 4294967295, not -1"),
    (lambda e: setattr(e.tensors[0].quantization, "zero_point", [0.5]), "zero_point needs integers"),
    (lambda e: setattr(e.tensors[0].quantization, "scale", ["a"]), "scale needs numbers"),
    (lambda e: e.operators[0].options.update(stride=1), "Conv2DOptions has no field 'stride'; its fields are: padding"),
    (lambda e: e.operators[0].options.update(padding="FULL"), "Padding has no 'FULL'; it has: SAME, VALID"),
    (lambda e: e.operators[0].options.update(stride_w="2"), r"Conv2DOptions\.stride_w needs an integer, not '2'"),
    (lambda e: setattr(e.operators[0], "inputs", ["no"]), "subgraph 0 has no tensor 'no'"),
    (lambda e: setattr(e.operators[0], "inputs", "image"), "operator CONV_2D: a list of tensors is needed"),
    (lambda e: setattr(e.operators[0], "inputs", [99]), "subgraph 0 has no tensor 99: it has 6"),
    (lambda e: setattr(e, "outputs", [1.5]), "a tensor is given as itself, its name or its index, not as 1.5"),
    (lambda e: e.metadata.update(x=5), "metadata 'x' needs a str, not 5"),
    (lambda e: e.main.remove_tensor("bias"), "tensor 'bias' is used by operator 0 CONV_2D"),
    (lambda e: e.main.remove_tensor("flat"), "tensor 'flat' is used by"),
    (lambda e: e.main.add_tensor("new"), "tensor 'new' needs a shape"),
    (lambda e: e.main.add_operator("RESHAPE", [0], [3], new_size=1), "ReshapeOptions has no field 'new_size'"),
    (
        lambda e: e.main.add_operator("Mine", [0], [3], alpha=1),
        "operator Mine has no builtin options, and so no 'alpha'",
    ),
    (lambda e: e.main.add_operator("RELU", [0], [3], at=9), "there is no position 9 among 2 operators"),
    (lambda e: e.add_signature("s", {"x": "no"}, {}), "subgraph 0 has no tensor 'no'"),
    (lambda e: setattr(e, "version", "3"), r"Model\.version needs an integer"),
    (lambda e: setattr(e.tensors[0], "shape", 3), "tensor 'image', shape: a list is needed, not 3"),
    (lambda e: setattr(e.tensors[0], "quantization", {"scales": 1}), "has no field 'scales'"),
    (lambda e: setattr(e.operators[0], "inputs", 3), "operator CONV_2D: a list of tensors is needed, not 3"),
    (lambda e: e.operators[0].replace_inputs({e.tensors[0]: OTHER.tensors[1]}), "belongs to another"),
    (lambda e: e.main.insert_before(OTHER.operators[0], "RELU", [0], [3]), "the operator belongs to another subgraph"),
    (lambda e: e.main.remove_operator(OTHER.operators[0]), "the operator belongs to another subgraph"),
    (lambda e: e.main.remove_unused([OTHER.tensors[0]]), "belongs to another"),
    (lambda e: e.main.replace_ends("inputs", {OTHER.tensors[0]: e.tensors[0]}), "belongs to another"),
    (lambda e: e.main.replace_ends("input", {}), "side is 'inputs' or 'outputs', not 'input'"),
]


@pytest.mark.parametrize(("change", "text"), BAD_FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_does_not_fit_is_refused_and_changes_nothing(change, text):
    with tq.edit(CONV) as e:
        with pytest.raises(ValueError, match=text):
            change(e)
        assert_equal_models(tq.Model(CONV), e.to_model())


PARTS = (
    TensorPart,
    OperatorPart,
    SubgraphPart,
    SignaturePart,
    QuantizationPart,
    Options,
    Metadata,
    Parts,
    Part,
    Editor,
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_member_of_a_part_has_a_docstring(part):
    members = {
        name: value for base in part.__mro__ if base.__module__.startswith("tq.") for name, value in vars(base).items()
    }
    told = {
        name: inspect.getdoc(value) for name, value in members.items() if isinstance(value, property) or callable(value)
    }
    assert [name for name, text in told.items() if not name.startswith("_") and not text] == []


# ---- operators ----


def test_a_version_of_one_operator_alone():
    relu = [operator("RELU", [0], [1], version=2), operator("RELU", [1], [2], version=2)]
    data = build_model([tensor(n, [1]) for n in "abc"], relu, [0], [2])
    after = tq.Model(edited(data, lambda e: setattr(e.operators[1], "version", 3)))
    assert [(op.name, op.version) for op in after.operators] == [("RELU", 2), ("RELU", 3)]
    alone = tq.Model(edited(CONV, lambda e: setattr(e.operators[0], "version", 5)))
    assert [op.version for op in alone.operators] == [5, 1] and len(alone.operator_codes) == 2


def test_adding_replacing_and_removing_operators():
    with tq.edit(CONV) as e:
        middle = e.main.add_tensor("middle", [1, 2, 2, 2], "INT8", scale=0.25, zero_point=3)
        relu = e.main.add_operator("RELU", ["features"], [middle], at=1)
        e.operators[2].inputs = [middle, "shape"]
        assert relu.index == 1 and [op.name for op in e.operators] == ["CONV_2D", "RELU", "RESHAPE"]
        m = e.to_model()
        assert [op.name for op in m.operators] == ["CONV_2D", "RELU", "RESHAPE"]
        assert m.operators[2].input_indices == (6, 4) and m.problems == tq.Model(CONV).problems
        new = e.main.replace_operator(relu, "RELU6", ["features"], [middle])
        assert [op.name for op in e.operators] == ["CONV_2D", "RELU6", "RESHAPE"]
        with pytest.raises(ValueError, match="the operator was removed"):
            _ = relu.index
        e.operators["RESHAPE"].inputs = ["features", "shape"]
        e.main.remove_operator(new)
        e.main.remove_tensor(middle)
        e.prune()
        assert_equal_models(tq.Model(CONV), e.to_model())


def test_a_custom_operator():
    def change(e):
        made = e.main.add_operator("Mine", ["flat"], ["flat"], custom_options=b"\x01\x02", version=7)
        assert made.name == "Mine" and made.options.type is None and len(made.options) == 0

    op = tq.Model(edited(CONV, change)).operators[2]
    assert (op.name, op.version, op.custom_options) == ("Mine", 7, b"\x01\x02")


def test_an_operator_with_options_of_the_second_union():
    def change(e):
        e.main.add_operator("STABLEHLO_CONCATENATE", ["flat"], ["flat"], dimension=1)

    op = tq.Model(edited(CONV, change)).operators[2]
    assert op.options_type == "StablehloConcatenateOptions" and op.options["dimension"] == 1


def test_options_are_a_mapping():
    with tq.edit(CONV) as e:
        options = e.operators[0].options
        assert options.type == "Conv2DOptions" and len(options) == len(list(options)) == 7
        del options["stride_w"]
        assert options["stride_w"] == 0 and "stride" not in options
        with pytest.raises(KeyError):
            options["stride"]
        e.operators[0].options = {"stride_h": 2, "padding": "same"}
        assert dict(options)["stride_h"] == 2 and options["fused_activation_function"] == 0
        assert "stride_h" in repr(options)
        e.to_bytes()


def test_every_operator_of_the_schema_can_be_added_with_its_options():
    """And what is read back is what was given: each field of each table a value of its own."""
    for name, _code, table in tq._core.schema_builtins():
        with tq.edit(build_model([tensor("x", [1])])) as e:
            made = e.main.add_operator(name, [0], [0])
            for field, kind in fields.rows(table).items() if table else ():
                given = {"STRING": "a", "F32": 0.5, "BOOL": True}.get(kind, [1] if kind.startswith("VEC") else 1)
                if "(" in kind and "ENUM" not in kind:
                    continue
                given = {"VEC_STRING": ["a", "b"], "VEC_BOOL": [True]}.get(kind, given)
                made.options[field] = given
                assert made.options[field] == (b"\x01" if kind == "VEC_U8" else given), (name, field)
            op = e.to_model().operators[0]
        assert op.name == name and op.options_type == table
        if table:
            assert op.options == dict(made.options) | {k: v for k, v in op.options.items() if k not in made.options}


# ---- tensors come and go ----


BLOCKS = {"type": "BlockwiseQuantization", "scales": 3, "block_size": 32}


def test_removing_tensors_renumbers_all_that_names_them():
    data = build_model(
        [
            tensor("unused", [1]),
            tensor("x", [1]),
            tensor("gone", [4], "INT8", data=np.int8([1, 2, 3, 4])),
            tensor("scales", [1], "FLOAT16", data=np.float16([0.5])),
            tensor("w", [1], "INT4", data=b"\x01", details=BLOCKS),
            tensor("y", [1]),
        ],
        [operator("ADD", [1, 4], [5], intermediates=[1])],
        inputs=[1],
        outputs=[5],
        signatures=[signature("s", {"in": 1}, {"out": 5})],
    )
    with tq.edit(data) as e:
        e.prune()
        m = e.to_model()
    assert [t.name for t in m.tensors] == ["x", "scales", "w", "y"]
    assert m.operators[0].input_indices == (0, 2) and m.operators[0].intermediate_indices == (0,)
    assert m.tensors["w"].quantization.details["scales"] == 1
    assert m.signatures[0].inputs == {"in": 0} and m.signatures[0].outputs == {"out": 3}
    assert [b.nbytes for b in m.buffers] == [0, 2, 1]
    assert {p.code for p in m.problems} == {"block-size"}, "which it had before"


def test_removing_a_tensor_takes_its_data_away():
    data = build_model([tensor("a", [1]), tensor("w", [5000], "INT8", data=np.ones(5000, np.int8))])
    after = edited(data, lambda e: e.main.remove_tensor("w"))
    assert len(after) < 1000 and len(tq.Model(after).buffers) == 2


def test_replacing_a_tensor():
    with tq.edit(CONV) as e:
        e.main.replace_tensor("features", "features")
        new = e.main.add_tensor("new", [1, 2, 2, 2], "INT8", scale=0.5)
        e.main.replace_tensor("features", new)
        last = e.main.add_tensor("last", [1, 8], "INT8", scale=0.5)
        e.main.replace_tensor("flat", last)
        m = e.to_model()
    assert [t.name for t in m.tensors] == ["image", "weights", "bias", "shape", "new", "last"]
    assert m.operators[0].outputs == [m.tensors["new"]] and m.operators[1].inputs[0] == m.tensors["new"]
    assert m.outputs == [m.tensors["last"]] and m.signatures[0].outputs == {"flat": 5}


def test_signatures_and_metadata():
    with tq.edit(CONV) as e:
        e.add_signature("second", {"a": "image"}, {"b": "features"})
        e.signatures["serving_default"].outputs = {"renamed": e.tensors["flat"]}
        e.metadata["new"] = b"\x00\x01"
        del e.metadata["TFLITE_METADATA"]
        assert list(e.metadata) == ["min_runtime_version", "new"] and len(e.metadata) == 2
        with pytest.raises(KeyError):
            e.metadata["TFLITE_METADATA"]
        with pytest.raises(KeyError):
            del e.metadata["TFLITE_METADATA"]
        m = e.to_model()
        assert m.metadata == {"min_runtime_version": tq.Model(CONV).metadata["min_runtime_version"], "new": b"\x00\x01"}
        assert m.signatures["second"].outputs == {"b": 3} and m.signatures[0].outputs == {"renamed": 5}
        assert b"\x01\x02" not in m.buffers[5].data.tobytes() if m.buffers[5].nbytes else True
        e.remove_signature("second")
        assert [s.key for s in e.to_model().signatures] == ["serving_default"]


def test_several_subgraphs():
    with tq.edit(CONV) as e:
        graph = e.add_subgraph("body")
        x = graph.add_tensor("x", [1])
        graph.inputs = graph.outputs = [x]
        with pytest.raises(ValueError, match="belongs to another"):
            graph.add_operator("RELU", [e.tensors[0]], [x])
        m = e.to_model()
    assert [g.name for g in m.subgraphs] == ["main", "body"] and m.subgraphs["body"].input_indices == (0,)


# ---- saving ----


def test_saving(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(CONV)
    path.chmod(0o640)
    with tq.edit(path) as e:
        set_description(e)
        e.save()
        assert tq.Model(path).description == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
        e.save(tmp_path / "other.tflite")
    assert (tmp_path / "other.tflite").read_bytes() == path.read_bytes() == edited(CONV, set_description)
    assert sorted(os.listdir(tmp_path)) == ["m.tflite", "other.tflite"]


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real.tflite").write_bytes(CONV)
    (tmp_path / "link.tflite").symlink_to("real.tflite")
    with tq.edit(tmp_path / "link.tflite") as e:
        set_description(e)
        e.save()
    assert (tmp_path / "link.tflite").is_symlink() and tq.Model(tmp_path / "real.tflite").description == "new"


@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch, when):
    path = tmp_path / "m.tflite"
    path.write_bytes(CONV)

    def fail(*arguments):
        raise OSError("no more")

    with tq.edit(path) as e:
        set_description(e)
        if when == "write":
            e.trailing = type("Failing", (), {"moved": staticmethod(fail), "bytecode": {}})
        else:
            monkeypatch.setattr(os, when, fail)
        with pytest.raises(OSError, match="no more"):
            e.save()
        monkeypatch.undo()
        assert path.read_bytes() == CONV and os.listdir(tmp_path) == ["m.tflite"]
        e.trailing = None
        e.save()
    assert tq.Model(path).description == "new"


def test_where_to_save(tmp_path):
    with tq.edit(CONV) as e, pytest.raises(ValueError, match=r"save\(\) needs a path"):
        e.save()
    with tq.edit(CONV) as e, pytest.raises(FileNotFoundError):
        e.save(tmp_path / "no folder" / "m.tflite")
    with pytest.raises(TypeError, match="a path, hold bytes or be an open file"):
        tq.edit(5)
    with pytest.raises(tq.ModelError):
        tq.edit(b"no model at all")


def test_reading_is_no_change():
    with warnings.catch_warnings(), tq.edit(build_model([tensor("x", [1])], [operator("ADD", [0], [0])])) as e:
        warnings.simplefilter("error")
        for graph in e.subgraphs:
            for item in [*graph.tensors, *graph.operators]:
                for name in dir(type(item)):
                    if not name.startswith("_"):
                        getattr(item, name)
            _ = [dict(op.options) for op in graph.operators], graph.stored("tensors"), repr(graph)
        _ = dict(e.metadata), list(e.signatures)


def test_forgotten_changes_are_told():
    with pytest.warns(UserWarning, match="never saved"), tq.edit(CONV) as e:
        set_description(e)


def test_writing_from_several_threads():
    with tq.edit(CONV) as e:
        expected, found = e.to_bytes(), []

        def write():
            for _ in range(50):
                try:
                    found.append(e.to_bytes() == expected)
                except RuntimeError as error:
                    found.append("another thread" in str(error))

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 200 and all(found)


# ---- associated files ----


def with_archive(data, files, relative=False):
    """A model with a zip behind it; relative: its offsets count from the archive's own start."""
    stream = io.BytesIO() if relative else io.BytesIO(data)
    with zipfile.ZipFile(stream, "w" if relative else "a") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data + stream.getvalue() if relative else stream.getvalue()


def files_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


FILES = {"labels.txt": b"cat\ndog\n", "folder/vocab.txt": bytes(range(256)) * 10}


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("files", [FILES, {}, {"one": b""}], ids=len)
def test_associated_files_stay(files, relative):
    data = with_archive(CONV, files, relative)
    before = data[len(CONV) :]
    for longer in ("", "x" * 1000):
        after = edited(data, lambda e, text=longer: setattr(e, "description", text))
        assert files_of(after) == files
        assert tq.Model(after).description == longer
        if relative:
            assert after.endswith(before), "offsets that count from the archive's start stay as they are"
        assert edited(after, lambda e: None) == after


def test_what_ends_like_an_archive_but_is_a_constant():
    inner = with_archive(b"", {"a": b"b"})
    data = build_model([tensor("x", [len(inner)], "UINT8", data=inner)])
    at = tq.Model(data).buffers[1].offset
    cut = data[: at + len(inner)] if data[at + len(inner) :].strip(b"\0") == b"" else data
    after = edited(cut, lambda e: None)
    assert tq.Model(after).tensors[0].data.tobytes() == inner
    assert after.count(b"PK\5\6") == 1


def directory_is_where_it_says(data):
    """Whether the directory's offset counts from the file's first byte, as most readers take it."""
    end = data.rfind(b"PK\5\6")
    size, offset = struct.unpack_from("<II", data, end + 12)
    return offset + size == end


@pytest.mark.corpus
def test_associated_files_of_real_models(corpus):
    found = 0
    for path in corpus:
        data = path.read_bytes()
        if b"PK\5\6" not in data[-65_557:] or not zipfile.is_zipfile(path):
            continue
        found += 1
        after = edited(path, lambda e: setattr(e, "description", e.description + " and more" * 9))
        assert files_of(after) == files_of(data), path
        assert directory_is_where_it_says(after) == directory_is_where_it_says(data)
    assert found >= 15


@pytest.mark.parametrize("tail", [b"anything", b"\x01" * 5000, b"PK\5\6 no archive"])
def test_whatever_stands_behind_a_model_stays(tail):
    data = CONV + tail
    for longer in ("", "x" * 1000):
        after = edited(data, lambda e, text=longer: setattr(e, "description", text))
        assert after.endswith(tail) and after.count(tail) == 1
        assert len(edited(after, lambda e: None)) == len(after), "and does not grow"


def test_unknown_trailing_data_keep_their_place_where_possible():
    data = CONV + bytes(1000) + b"found by its offset"
    assert edited(data, set_zero_point).index(b"found by") == data.index(b"found by")


@pytest.mark.corpus
def test_bytecode_of_real_models_is_found_where_the_operators_say(corpus):
    found = 0
    for path in corpus:
        if b"bytecode_offset" not in path.read_bytes():
            continue

        def bytecodes(data):
            ops = [op for g in tq.Model(data).subgraphs for op in g.operators if op.name == "DISPATCH_OP"]
            places = [(op.options["bytecode_offset"], op.options["bytecode_size"]) for op in ops]
            return [data[offset : offset + size] for offset, size in places], [at for at, _ in places]

        data = path.read_bytes()
        old, _ = bytecodes(data)
        with tq.edit(path) as e:
            for text in ("x" * 5000, "", "y" * 77):  # three times from one source
                e.description = text
                after = e.to_bytes()
                new, places = bytecodes(after)
                assert new == old and all(old), path
                assert all(place % 16 == 0 for place in places)
            assert len(after) < len(data) + 1000
        assert bytecodes(edited(after, lambda e: setattr(e, "description", "z" * 900)))[0] == old
        found += 1
    assert found >= 6


# ---- hostile files ----


def careless(e, draw):
    """Changes of all kinds, at random, in a file whose indices need not lead anywhere."""
    for graph in e.subgraphs:
        for item in list(graph.tensors)[:6]:
            item.name += "!"
            _ = (
                item.raw_data,
                item.is_constant,
                item.producer,
                item.consumers,
                repr(item.quantization),
                item.stored("shape"),
            )
            if draw.random() < 0.3:
                item.quantization.zero_point = [draw.randrange(100)]
        for item in list(graph.operators)[:6]:
            _ = item.name, item.version, item.inputs, item.outputs, item.intermediates, dict(item.options), repr(item)
        _ = graph.inputs, graph.outputs
        graph.add_operator("RELU", [], [])
    _ = [(s.key, s.inputs, s.outputs) for s in e.signatures], dict(e.metadata)
    e.metadata["new"] = b"x"
    e.description = "new"
    if draw.random() < 0.5:
        e.prune()


@pytest.mark.parametrize("name", sorted(zoo.MODELS))
def test_damaged_models_can_be_edited(name):
    opened = 0
    for seed in range(60):
        data = damaged(zoo.MODELS[name], seed)
        try:
            e = tq.edit(data)
        except tq.ModelError:
            continue
        opened += 1
        try:
            careless(e, random.Random(seed))
            after = e.to_bytes(allow_loss=True)
        except ValueError as error:  # what was damaged cannot be used
            assert str(error)
            continue
        assert tq.Model(after).description == "new"
    assert opened > 5


# ---- LiteRT ----


def test_litert_runs_what_was_edited():
    data = build_model(
        [tensor("x", [1, 4], "INT8", scale=0.5, zero_point=0), tensor("y", [1, 4], "INT8", scale=0.5, zero_point=0)],
        [operator("RELU", [0], [1])],
        inputs=[0],
        outputs=[1],
        signatures=[signature("serving_default", {"x": 0}, {"y": 1})],
    )

    def change(e):
        z = e.main.add_tensor("z", [1, 4], "INT8", scale=0.5, zero_point=0)
        c = e.main.add_tensor("c", data=np.int8([[1, 2, 3, 4]]), scale=0.5, zero_point=0)
        e.main.add_operator("ADD", ["y", c], [z], version=2)
        e.outputs = [z]
        e.signatures[0].outputs = {"z": z}

    before, after = oracle.ask("outputs", [(data, "BUILTIN_REF", 3), (edited(data, change), "BUILTIN_REF", 3)])
    assert np.array_equal(after[0], np.clip(before[0].astype(int) + np.arange(1, 5), -128, 127))
