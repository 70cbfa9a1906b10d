# SPDX-License-Identifier: Apache-2.0
"""tq.ModelBuilder, tq.extract and changed types of inputs and outputs, held against LiteRT where it runs them."""

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import oracle
import pytest
import zoo
from equal_models import upstream
from models import build_model, tensor

import tq
from tq.editing import fields


def ask(what, *questions):
    answers = list(oracle.ask(what, questions))
    assert not any(isinstance(answer, oracle.Refusal | oracle.Abort) for answer in answers), answers
    return answers


def outputs(*models, seed=0, resolver="BUILTIN_REF"):
    return ask("outputs", *((model, resolver, seed) for model in models))


# ---- the builder ----


def small_network():
    """A quantized network as its docstring would show it."""
    b = tq.ModelBuilder("small")
    x = b.input("x", [1, 4, 4, 1], "int8", scale=0.5, zero_point=-1)
    w = b.constant("w", np.arange(18, dtype=np.int8).reshape(2, 3, 3, 1), scale=[0.1, 0.2], quantized_dimension=0)
    bias = b.constant("bias", np.int32([5, -7]), scale=[0.05, 0.1])
    y = b.tensor("y", [1, 2, 2, 2], "int8", scale=2.0, zero_point=3, min=-262, max=248)
    b.operator("CONV_2D", [x, w, bias], [y], padding="VALID", stride_w=1, stride_h=1, version=3)
    z = b.tensor("z", [1, 2, 2, 2], "int8", scale=2.0, zero_point=3)
    b.operator("RELU", [y], [z], version=2)
    b.output(z)
    b.signature()
    b.metadata["note"] = b"made by a test"
    return b


def test_a_model_in_a_few_lines():
    m = small_network().to_model()
    assert m.problems == [] and m.description == "small" and m.version == 3 and m.has_identifier
    assert [op.name for op in m.operators] == ["CONV_2D", "RELU"] and [op.version for op in m.operators] == [3, 2]
    assert m.operators[0].options["padding"] == tq.Padding.VALID and m.operators[0].options["dilation_w_factor"] == 1
    assert m.tensors["w"].quantization.scale.tolist() == np.float32([0.1, 0.2]).tolist()
    assert m.tensors["w"].quantization.zero_point.tolist() == [0, 0]
    assert (m.tensors["y"].quantization.min[0], m.tensors["y"].quantization.max[0]) == (-262, 248)
    assert m.metadata == {"note": b"made by a test"}
    assert m.signatures["serving_default"].outputs == {"z": 4}
    assert m.buffers[0].nbytes == 0 and not m.tensors["x"].is_constant
    assert outputs(small_network().to_bytes())[0][0].shape == (1, 2, 2, 2)


def test_it_equals_what_the_upstream_schema_makes():
    """The same model by the classes of LiteRT's schema: the same in every field."""

    def tensor(name, buffer=0, **parameters):
        parts = {"name": name, "shape": [1, 2], "type": schema.TensorType.INT8, "buffer": buffer}
        return schema.TensorT(**parts, quantization=schema.QuantizationParametersT(**parameters))

    add = schema.BuiltinOperator.ADD
    item = schema.OperatorT(inputs=[0, 1], outputs=[2])
    item.builtinOptions = schema.AddOptionsT(fusedActivationFunction=1)
    item.builtinOptionsType = schema.BuiltinOptions.AddOptions
    theirs = schema.ModelT(
        version=3,
        description="made for a test",
        operatorCodes=[schema.OperatorCodeT(deprecatedBuiltinCode=add, builtinCode=add, version=2)],
        subgraphs=[
            schema.SubGraphT(
                tensors=[
                    tensor("x", scale=[0.5], zeroPoint=[3]),
                    tensor("w", 1, scale=[0.25], zeroPoint=[0]),
                    tensor("y", scale=[1.0], zeroPoint=[0]),
                ],
                operators=[item],
                inputs=[0],
                outputs=[2],
                name="main",
            )
        ],
        buffers=[schema.BufferT(), schema.BufferT(data=[1, 2]), schema.BufferT(data=list(b"v"))],
        signatureDefs=[
            schema.SignatureDefT(
                signatureKey="s",
                inputs=[schema.TensorMapT(name="a", tensorIndex=0)],
                outputs=[schema.TensorMapT(name="b", tensorIndex=2)],
            )
        ],
        metadata=[schema.MetadataT(name="k", buffer=2)],
    )
    packed = flatbuffers.Builder()
    packed.Finish(theirs.Pack(packed), b"TFL3")
    b = tq.ModelBuilder("made for a test")
    x = b.input("x", [1, 2], "int8", scale=0.5, zero_point=3)
    w = b.constant("w", np.int8([[1, 2]]), scale=0.25)
    y = b.tensor("y", [1, 2], tq.TensorType.INT8, scale=1.0)
    b.operator("ADD", [x, w], [y], fused_activation_function=tq.ActivationFunctionType.RELU, version=2)
    b.output(y)
    b.signature("s", {"a": x}, {"b": y})
    b.metadata["k"] = b"v"
    assert upstream(b.to_bytes()) == upstream(packed.Output())


def test_several_subgraphs_and_control_flow():
    b = tq.ModelBuilder()
    condition = b.input("condition", [], "bool")
    x = b.input("x", [2])
    y = b.tensor("y", [2])
    for name, kind in (("then", "RELU"), ("else", "NEG")):
        graph = b.subgraph(name)
        a = graph.input("a", [2])
        c = graph.tensor("c", [2])
        graph.operator(kind, [a], [c])
        graph.output(c)
    b.operator("IF", [condition, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    b.output(y)
    m = b.to_model()
    assert m.problems == [] and [g.name for g in m.subgraphs] == ["main", "then", "else"]
    assert outputs(b.to_bytes())[0][0].shape == (2,)


def test_an_empty_model_is_one():
    m = tq.ModelBuilder().to_model()
    assert len(m.subgraphs) == 1 and m.description == "" and len(m.buffers) == 1


BAD = [
    (
        lambda b, x: b.operator("CONV_2D", [x], [x], stride=1),
        "Conv2DOptions has no field 'stride'; its fields are: pad",
    ),
    (lambda b, x: b.operator("RELU", [x], [x], alpha=1), "operator RELU has no builtin options, and so no 'alpha'"),
    (lambda b, x: b.operator("CONV_2D", [x], [x], padding="BOTH"), "Padding has no 'BOTH'; it has: SAME, VALID"),
    (lambda b, x: b.constant("c", np.zeros(3), shape=[2]), r"tensor 'c': its shape is \[2\], the data's is \[3\]"),
    (lambda b, x: b.constant("c", np.zeros(3), "int8"), "its type is INT8, which takes int8, not float64"),
    (lambda b, x: b.tensor("t", [1], "float"), "no tensor type is called 'float'; there are: float32"),
    (lambda b, x: b.tensor("t", [1], scale="a"), r"QuantizationParameters\.scale needs numbers"),
    (lambda b, x: b.output("nothing"), "subgraph 0 has no tensor 'nothing'"),
    (lambda b, x: b.signature("s", {"a": "no"}), "subgraph 0 has no tensor 'no'"),
    (lambda b, x: b.tensor("t", [1], is_varible=True), "Tensor has no field 'is_varible'; its fields are: shape"),
    (lambda b, x: b.tensor("t", [1], details={"scales": 1}), "needs a dict with its table's name under 'type', one of"),
    (lambda b, x: b.tensor("t", [1], details={}, quantization={}), "leave out scale, min and the others"),
    (lambda b, x: b.tensors[0].store("shape", "1"), r"Tensor\.shape needs integers"),
    (lambda b, x: b.main.store("tensors", []), r"SubGraph\.tensors takes None here; add_tensor adds to them"),
    (lambda b, x: b.store("buffers", []), r"Model\.buffers takes None here; add_buffer adds to them"),
    (lambda b, x: b.store("name", "m"), "Model has no field 'name'"),
    (lambda b, x: b.add_buffer(length=4), "Buffer has no field 'length'; its fields are: data, offset, size"),
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=range(len(BAD)))
def test_errors_name_what_would_fit(make, text):
    b = tq.ModelBuilder()
    x = b.input("x", [1])
    before = b.to_bytes()
    with pytest.raises(ValueError, match=text):
        make(b, x)
    assert b.to_bytes() == before, "and leaves nothing behind"


def test_saving(tmp_path):
    small_network().save(tmp_path / "m.tflite")
    assert (tmp_path / "m.tflite").read_bytes() == small_network().to_bytes()
    with pytest.raises(ValueError, match=r"save\(\) needs a path"):
        tq.ModelBuilder().save()


# ---- what few models have ----


def test_options_that_are_also_names_of_arguments():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1]), b.tensor("y", [1])
    b.operator("STABLEHLO_COMPOSITE", [x], [y], name="my.own", options={"version": 4}, version=2)
    composite = b.to_model().operators[0]
    assert (composite.options["name"], composite.options["version"], composite.version) == ("my.own", 4, 2)


def test_an_operator_without_options():
    b = tq.ModelBuilder()
    x, y = b.input("x", [2]), b.tensor("y", [2])
    first = b.operator("CAST", [x], [y], options=None)
    second = b.operator("CAST", [x], [y])
    assert [op.options_type for op in b.to_model().operators] == [None, "CastOptions"]
    first.options, second.options = {"out_data_type": "int8"}, None
    assert [op.options_type for op in b.to_model().operators] == ["CastOptions", None]
    assert b.to_model().operators[0].options["out_data_type"] == tq.TensorType.INT8


def test_further_fields_of_tensors_and_buffers():
    b = tq.ModelBuilder()
    levels = ({"type": "Uint8Vector", "values": values} for values in ([0, 1, 2], [1, 0]))
    rows = {"format": "SPARSE_CSR", **dict(zip(("array_segments", "array_indices"), levels, strict=True))}
    sparsity = {"traversal_order": [0, 1], "dim_metadata": [{"format": "DENSE", "dense_size": 2}, rows]}
    b.constant("sparse", np.float32([3, 4]).tobytes(), "float32", shape=[2, 2], sparsity=sparsity)
    b.tensor("scales", [2, 1], "float16", data=np.float16([[1], [2]]))
    blocks = {"type": "BlockwiseQuantization", "scales": 1, "zero_points": -1, "block_size": 32}
    b.constant("blocks", np.ones([2, 32], np.int8), "int4", details=blocks)
    b.tensor("list", [], "variant", variant_tensors=[{"shape": [1], "type": "INT8", "has_rank": True}])
    b.tensor("state", [1], is_variable=True, has_rank=True)
    b.tensor("beside", [4], "int8", external_buffer=7)
    b.store("external_buffer_groups", [{"name": "weights.bin"}])
    b.store("external_buffers", [{"id": 7, "group": 0, "offset": 0, "length": 4}])
    assert b.add_buffer(offset=1 << 40, size=16) == 4
    m = b.to_model()
    assert m.tensors["sparse"].densify().tolist() == [[0, 3], [4, 0]]
    assert m.tensors["blocks"].dequantized()[:, 0].tolist() == [1, 2]
    assert m.tensors["list"].stored("variant_tensors") == [{"shape": [1], "type": tq.TensorType.INT8, "has_rank": True}]
    assert m.tensors["state"].is_variable and m.tensors["state"].stored("has_rank") is True
    assert m.tensors["beside"].stored("external_buffer") == 7
    assert {problem.code for problem in m.problems} == {"buffer-range"}


@pytest.mark.parametrize("name", sorted(set(zoo.MODELS) - {"outside", "unknown_fields"}))
def test_store_takes_what_stored_gives(name):
    """For every field of every part, also where indices and texts are invalid."""
    data = zoo.MODELS[name]
    e = tq.edit(data)
    parts = {"Model": [e], "SubGraph": e.subgraphs, "SignatureDef": e.signatures, "Buffer": e.buffers}
    parts["Tensor"] = [tensor for graph in e.subgraphs for tensor in graph.tensors]
    parts["Operator"] = [item for graph in e.subgraphs for item in graph.operators]
    for table, items in parts.items():
        for field in set(fields.rows(table)) - {"subgraphs", "buffers", "tensors", "operators"}:
            for part in items:
                part.store(field, part.stored(field))
    assert upstream(e.to_bytes()) == upstream(data)


def test_store_takes_fields_away():
    b = tq.ModelBuilder()
    b.input("x", [1], scale=0.5)
    b.tensors[0].store("quantization", None)
    assert b.to_model().tensors[0].stored("quantization") is None
    b.main.store("tensors", None)
    assert len(b.to_model().tensors) == len(b.tensors) == 0
    assert b.tensor("new", [1]).index == 0
    item = b.operator("LSH_PROJECTION", [], [], type="DENSE")
    item.store("builtin_options", {"type": "LSHProjectionOptions"})  # whose own field of that name goes
    assert b.to_model().operators[0].options["type"] == tq.LSHProjectionType.UNKNOWN
    b.store("subgraphs", None)
    b.store("buffers", None)
    assert (len(b.to_model().subgraphs), len(b.to_model().buffers)) == (0, 0)


# ---- cutting out ----


def chain():
    """x -> RELU -> a -> ADD(constant) -> b -> NEG -> c, and b -> RELU6 -> d."""
    b = tq.ModelBuilder()
    x = b.input("x", [3])
    parts = {name: b.tensor(name, [3]) for name in "abcd"}
    constant = b.constant("constant", np.float32([1, 2, 3]))
    b.constant("unused", np.zeros(1000, np.float32))
    b.operator("RELU", [x], ["a"])
    b.operator("ADD", ["a", constant], ["b"])
    b.operator("NEG", ["b"], ["c"])
    b.operator("RELU6", ["b"], ["d"])
    b.output(parts["c"], parts["d"])
    b.signature()
    return b.to_bytes()


def test_cutting_out_the_middle():
    part = tq.Model(tq.extract(chain(), ["a"], ["c"]))
    assert [op.name for op in part.operators] == ["ADD", "NEG"]
    assert [t.name for t in part.tensors] == ["a", "b", "c", "constant"]
    assert [t.name for t in part.inputs + part.outputs] == ["a", "c"]
    assert part.problems == [] and len(part.buffers) == 2 and part.nbytes < 1500
    assert part.signatures["serving_default"].inputs == {"a": 0}
    assert {code.name for code in part.operator_codes} == {"ADD", "NEG"}


def test_the_parts_together_are_the_whole():
    whole = chain()
    first, second = tq.extract(whole, ["x"], ["b"]), tq.extract(whole, ["b"], ["c", "d"])
    x = np.random.default_rng(0).standard_normal(3).astype(np.float32)
    ((b,),) = ask("outputs", (first, "BUILTIN_REF", 0))
    c, d = ask("outputs", (whole, "BUILTIN_REF", 0))[0]
    assert np.array_equal(-b, c) and np.array_equal(np.clip(b, 0, 6), d) and len(x) == 3
    assert [t.name for t in tq.Model(second).outputs] == ["c", "d"]


def test_cutting_is_by_name_index_or_all():
    whole = chain()
    assert tq.extract(whole, [0], [3]) == tq.extract(whole, ["x"], ["c"])
    assert [op.name for op in tq.Model(tq.extract(tq.Model(whole), ["x"], ["c"])).operators] == ["RELU", "ADD", "NEG"]


def test_a_tensor_that_is_missing_is_named():
    with pytest.raises(ValueError, match="tensor 'x' is needed and nothing computes it: it must be one of the inputs"):
        tq.extract(chain(), [], ["c"])
    with pytest.raises(ValueError, match="subgraph 0 has no tensor 'e'"):
        tq.extract(chain(), ["e"], ["c"])
    with pytest.raises(ValueError, match="at least one tensor"):
        tq.extract(chain(), ["x"], [])


def test_an_operator_that_makes_an_input_of_the_cut():
    b = tq.ModelBuilder()
    x = b.input("x", [4])
    axis = b.constant("axis", np.int32(0))
    parts = [b.tensor(f"part{i}", [2]) for i in range(2)]
    y = b.tensor("y", [2])
    b.operator("SPLIT", [axis, x], parts, num_splits=2)
    b.operator("ADD", parts, [y])
    with pytest.raises(ValueError, match="operator 0 SPLIT is needed, and also writes 'part0'"):
        tq.extract(b.to_bytes(), ["x", "part0"], ["y"])
    assert [op.name for op in tq.Model(tq.extract(b.to_bytes(), parts and ["part0", "part1"], ["y"])).operators] == [
        "ADD"
    ]


def test_a_constant_can_become_an_input():
    part = tq.Model(tq.extract(chain(), ["a", "constant"], ["b"]))
    assert not part.tensors["constant"].is_constant and len(part.inputs) == 2


def test_called_subgraphs_come_along_and_are_renumbered():
    b = tq.ModelBuilder()
    condition, x = b.input("condition", [], "bool"), b.input("x", [2])
    y, z = b.tensor("y", [2]), b.tensor("z", [2])
    b.subgraph("not called").tensor("nothing", [1])
    for name in ("then", "else"):
        graph = b.subgraph(name)
        graph.output(graph.input("a", [2]))
    b.operator("IF", [condition, x], [y], then_subgraph_index=2, else_subgraph_index=3)
    b.operator("NEG", [y], [z])
    b.output(z)
    part = tq.Model(tq.extract(b.to_bytes(), ["condition", "x"], ["y"]))
    assert [g.name for g in part.subgraphs] == ["main", "then", "else"]
    assert part.operators[0].options["then_subgraph_index"] == 1
    assert part.operators[0].options["else_subgraph_index"] == 2
    inner = tq.Model(tq.extract(b.to_bytes(), ["a"], ["a"], subgraph=3))
    assert [g.name for g in inner.subgraphs] == ["else"]


def test_variables_come_with_what_fills_them():
    b = tq.ModelBuilder()
    x, y, unrelated = b.input("x", [1]), b.tensor("y", [1]), b.tensor("unrelated", [1])
    handle, old = b.tensor("handle", [], "resource"), b.tensor("old", [1])
    graph = b.subgraph("init")
    inner = graph.tensor("handle", [], "resource")
    graph.operator("VAR_HANDLE", [], [inner], shared_name="v")
    graph.operator("ASSIGN_VARIABLE", [inner, graph.constant("zero", np.float32([0]))], [])
    b.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    b.operator("VAR_HANDLE", [], [handle], shared_name="v")
    b.operator("READ_VARIABLE", [handle], [old])
    b.operator("ADD", [x, old], [y])
    b.operator("ASSIGN_VARIABLE", [handle, y], [])
    b.operator("NEG", [x], [unrelated])
    b.output(y, unrelated)
    names = [op.name for op in tq.Model(tq.extract(b.to_bytes(), ["x"], ["y"])).operators]
    assert names == ["CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE"]
    assert [op.name for op in tq.Model(tq.extract(b.to_bytes(), ["x"], ["unrelated"])).operators] == ["NEG"]


@pytest.mark.corpus
def test_cutting_real_models_in_two(corpus):
    """Each half opens and has no problems that the whole has not; LiteRT runs the first."""
    firsts, tried = [], 0
    for path in [path for path in corpus if path.stat().st_size < 300_000][::12]:
        whole = tq.Model(path)
        operators = list(whole.operators)
        if len(operators) < 4 or None in whole.inputs:
            continue
        middle = operators[len(operators) // 2].output_indices[:1]
        inputs = [t.index for t in whole.inputs]
        try:
            first = tq.extract(whole, inputs, middle)
        except ValueError as error:
            assert "is needed" in str(error)
            continue
        tried += 1
        part = tq.Model(first)
        assert {p.code for p in part.problems} <= {p.code for p in whole.problems} | {"dangling", "tensor-unused"}, path
        assert [t.name for t in part.outputs] == [whole.tensors[middle[0]].name]
        runs = (oracle.Refusal, oracle.Abort)
        firsts.append(((path, "BUILTIN_REF", 0), (first, "BUILTIN_REF", 0)))
    assert tried > 10
    for before, after in zip(
        oracle.ask("outputs", [a for a, _ in firsts]), oracle.ask("outputs", [b for _, b in firsts]), strict=True
    ):
        assert isinstance(before, runs) or not isinstance(after, runs), after


# ---- types of inputs and outputs ----


def float_interface(codes="int8"):
    """float32 -> QUANTIZE -> RELU -> DEQUANTIZE -> float32."""
    b = tq.ModelBuilder()
    zero = {"int8": -3, "uint8": 125, "int16": 0}[codes]
    x, y = b.input("x", [1, 50], shape_signature=[-1, 50]), b.tensor("y", [1, 50])
    q = b.tensor("q", [1, 50], codes, scale=0.05, zero_point=zero, min=-6.25, max=6.5)
    r = b.tensor("r", [1, 50], codes, scale=0.05, zero_point=zero)
    b.operator("QUANTIZE", [x], [q])
    b.operator("RELU", [q], [r], version=2)
    b.operator("DEQUANTIZE", [r], [y], version=2)
    b.output(y)
    b.signature("s", {"in": x}, {"out": y})
    return b.to_bytes()


def with_types(data, inputs=None, outputs=None):
    with tq.edit(data) as e:
        e.set_io_types(inputs, outputs)
        return e.to_bytes()


def interface(data):
    m = tq.Model(data)
    assert m.problems == []
    (x,), (y,) = m.inputs, m.outputs
    assert m.signatures[0].inputs == {"in": x.index} and m.signatures[0].outputs == {"out": y.index}
    assert x.name == "x" and y.name == "y"
    return [x.type.name, *(op.name for op in m.operators), y.type.name]


def test_integer_interface_takes_the_operators_away():
    data = with_types(float_interface(), "int8", "int8")
    assert interface(data) == ["INT8", "RELU", "INT8"]
    m = tq.Model(data)
    assert len(m.tensors) == 2 and m.inputs[0].shape_signature == (-1, 50)
    assert m.inputs[0].quantization.min.tolist() == [-6.25]


def test_uint8_in_place_of_int8_requantizes():
    data = with_types(float_interface(), "uint8", "uint8")
    assert interface(data) == ["UINT8", "QUANTIZE", "RELU", "QUANTIZE", "UINT8"]
    assert tq.Model(data).inputs[0].quantization.zero_point.tolist() == [125]


def test_int16():
    assert interface(with_types(float_interface("int16"), "int16", "int16")) == ["INT16", "RELU", "INT16"]


@pytest.mark.parametrize("types", [("int8", "float32"), ("uint8", "int8"), ("float32", "uint8"), ("int8", "int8")])
def test_there_and_back(types):
    """To integers and back to float: the same model again, but for what stands first."""
    whole = float_interface()
    there = with_types(whole, *types)
    back = with_types(there, "float32", "float32")
    assert interface(back)[0] == interface(back)[-1] == "FLOAT32"
    a, b = outputs(whole, back)
    assert np.array_equal(a[0], b[0])


def test_there_and_back_between_int8_and_uint8():
    data = with_types(float_interface(), "int8", "int8")
    there = with_types(data, "uint8", "uint8")
    assert interface(there) == ["UINT8", "QUANTIZE", "RELU", "QUANTIZE", "UINT8"]
    assert interface(with_types(there, "int8", "int8")) == ["INT8", "RELU", "INT8"]


class Runs:
    """LiteRT on a model of one input and one output, real numbers in and out."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, data, x):
        path = self.folder / "m.tflite"
        path.write_bytes(data)
        m = tq.Model(data)
        x = m.inputs[0].quantization.quantize(x) if m.inputs[0].type.name != "FLOAT32" else x
        (answer,) = ask("run", (str(path), "BUILTIN_REF", [x]))
        y = answer[0]
        return m.outputs[0].quantization.dequantize(y) if m.outputs[0].type.name != "FLOAT32" else y


@pytest.mark.parametrize("inputs", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("results", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("codes", ["int8", "uint8"])
def test_litert_computes_the_same_whatever_the_types(tmp_path, inputs, results, codes):
    x = np.linspace(-7, 7, 50, dtype=np.float32).reshape(1, 50)
    run = Runs(tmp_path)
    whole = float_interface(codes)
    assert np.array_equal(run(with_types(whole, inputs, results), x), run(whole, x))


def test_a_part_of_the_interface():
    b = tq.ModelBuilder()
    ids, x, y = (
        b.input("ids", [1], "int32"),
        b.input("x", [1], "int8", scale=0.5),
        b.tensor("y", [1], "int8", scale=0.5),
    )
    b.operator("RELU", [x], [y])
    b.output(y, ids)
    m = tq.Model(with_types(b.to_bytes(), "float32"))
    assert [t.type.name for t in m.inputs] == ["INT32", "FLOAT32"] and [t.type.name for t in m.outputs] == [
        "INT8",
        "INT32",
    ]
    with tq.edit(b.to_bytes()) as e:
        with pytest.raises(ValueError, match="input 'ids' of type INT32 cannot become FLOAT32: types change among"):
            e.set_io_types({"ids": "float32"})
        with pytest.raises(ValueError, match="tensor 'y' is none of the inputs"):
            e.set_io_types({y.index: "float32"})
        e.set_io_types(outputs={"y": "float32"})
        assert [t.type.name for t in e.outputs] == ["FLOAT32", "INT32"]
        e.to_bytes()


def test_who_else_reads_the_output_keeps_it():
    b = tq.ModelBuilder()
    x = b.input("x", [4], "int8", scale=0.1)
    y, z = b.tensor("y", [4]), b.tensor("z", [4])
    b.operator("DEQUANTIZE", [x], [y])
    b.operator("NEG", [y], [z])
    b.output(y, z)
    for wanted, operators in (("int8", ["DEQUANTIZE", "NEG"]), ("uint8", ["DEQUANTIZE", "NEG", "QUANTIZE"])):
        with tq.edit(b.to_bytes()) as e:
            e.set_io_types(outputs={"y": wanted})
            m = e.to_model()
        assert [op.name for op in m.operators] == operators and m.problems == []
        assert [(t.name, t.type.name) for t in m.outputs] == [("y", wanted.upper()), ("z", "FLOAT32")]
        a, c = outputs(b.to_bytes(), m._file.tobytes())
        assert np.array_equal(a[1], c[1])


def quantized_and_handed_on():
    b = tq.ModelBuilder()
    x, q = b.input("x", [4]), b.tensor("q", [4], "int8", scale=0.1)
    b.operator("QUANTIZE", [x], [q])
    b.output(q, x)
    return b.to_bytes()


BAD_TYPES = [
    (zoo.MODELS["conv"], "int16", None, "input 'image' of type INT8 cannot become INT16"),
    (float_interface("int16"), "int8", None, "cannot become INT8: the model quantizes it to INT16"),
    (float_interface("int16"), None, "int8", "cannot become INT8: the model makes it from INT16"),
    (chain(), "int8", None, "only QUANTIZE may read it, which RELU does"),
    (quantized_and_handed_on(), "int8", None, "it is an output, too, which would have to change with it"),
    (chain(), None, "int8", "only DEQUANTIZE of integers may write it; NEG does"),
    (build_model([tensor("x", [1], "INT8")], inputs=[0]), "uint8", None, "needs one scale and one zero point"),
    (chain(), "bool", None, "cannot become BOOL"),
    (chain(), "int9", None, "no tensor type is called 'int9'"),
]


@pytest.mark.parametrize(("data", "inputs", "results", "text"), BAD_TYPES, ids=range(len(BAD_TYPES)))
def test_types_that_cannot_be(data, inputs, results, text):
    with pytest.raises(ValueError, match=text):
        with_types(data, inputs, results)


@pytest.mark.corpus
def test_types_of_real_models(corpus):
    """Quantized models with a float interface, given an integer one: LiteRT opens and runs all of them."""
    made = []
    for path in [path for path in corpus if path.stat().st_size < 1_500_000]:
        m = tq.Model(path)
        if not m.inputs or None in m.inputs or any(t.type != tq.TensorType.FLOAT32 for t in m.inputs):
            continue
        try:
            data = with_types(path, "int8", "int8")
        except (ValueError, UserWarning):
            continue
        assert all(t.type.name == "INT8" for t in tq.Model(data).inputs), path
        made.append((path, data))
    assert len(made) >= 3
    made = made[:12]
    before = oracle.ask("outputs", [(path, "BUILTIN_REF", 0) for path, _ in made])
    after = oracle.ask("outputs", [(data, "BUILTIN_REF", 0) for _, data in made])
    for (path, _), x, y in zip(made, before, after, strict=True):
        assert isinstance(x, oracle.Refusal | oracle.Abort) or isinstance(y, list), (path, y)
