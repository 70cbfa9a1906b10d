# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter in the place of LiteRT's: what its users and its own tests lean on.

Where a test has a twin in LiteRT's python/interpreter_test.py, the behaviour asked for is that one's.
"""

import gc
import sys
import threading
import weakref

import numpy as np
import oracle
import pytest
from interrupts import ended_by_ctrl_c
from models import build_model, make_model, operator, pack, signature, subgraph, tensor

import tq
from tq import interpreter as interpreter_module
from tq.interpreter import Interpreter, OpResolverType, SignatureRunner
from tq.pytest_plugin import tq_stand_in  # noqa: F401


def permute(**kwargs):
    """y = x reversed, by a matrix product without bias."""
    return build_model(
        [
            tensor("input", [1, 4]),
            tensor("weights", [4, 4], data=np.eye(4, dtype=np.float32)[::-1]),
            tensor("output", [1, 4]),
        ],
        [operator("FULLY_CONNECTED", [0, 1, -1], [2])],
        [0],
        [2],
        **kwargs,
    )


def chain(count=3, **kwargs):
    """x -> RESHAPE [4] -> RESHAPE [2, 2] -> RESHAPE [4] ..."""
    shapes = [[1, 4]] + [[4] if k % 2 == 0 else [2, 2] for k in range(count)]
    return build_model(
        [tensor(f"t{k}", shape) for k, shape in enumerate(shapes)],
        [operator("RESHAPE", [k], [k + 1], new_shape=shapes[k + 1]) for k in range(count)],
        [0],
        [count],
        **kwargs,
    )


def relu_chain(count=4, size=64):
    """Tensors of one size, each dead as soon as the next is there."""
    return build_model(
        [tensor(f"t{k}", [size]) for k in range(count + 1)],
        [operator("NEG", [k], [k + 1]) for k in range(count)],
        [0],
        [count],
    )


def allocated(data, **kwargs):
    made = Interpreter(model_content=data, **kwargs)
    made.allocate_tensors()
    return made


X = np.array([[1, 2, 3, 4]], np.float32)

# ---- construction ----


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_paths_are_str_or_path_like(tmp_path, as_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(permute())
    made = Interpreter(model_path=as_path(path))
    made.allocate_tensors()
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_threads": -1}, "num_threads should >= 1"),
        ({"num_threads": 0}, "num_threads should >= 1"),
        ({"num_threads": 4.2}, "type of num_threads should be int"),
        ({"experimental_op_resolver_type": "test"}, "Unrecognized passed in op resolver type: test"),
        ({"experimental_delegates": [object()]}, "delegates"),
        ({"numerics": "exact"}, "numerics"),
        ({"model_content": None}, "`model_path` or `model_content` must be specified."),
        ({"model_content": b""}, "`model_path` or `model_content` must be specified."),
        ({"model_content": b"short"}, "The model is not a valid Flatbuffer buffer"),
        ({"model_content": b"wrong_identifier"}, "The model is not a valid Flatbuffer buffer"),
        ({"model_path": "there/is/none", "model_content": None}, "Could not open 'there/is/none'"),
        ({"model_path": "a.tflite"}, "Can't both provide `model_path` and `model_content`"),
    ],
)
def test_wrong_arguments_are_value_errors_with_litert_texts(arguments, text):
    with pytest.raises(ValueError) as caught:
        Interpreter(**{"model_content": permute(), **arguments})
    assert text in str(caught.value)
    assert not isinstance(caught.value, OSError)


def test_a_model_can_be_shared(tmp_path):
    model = tq.Model(permute())
    one, two = Interpreter(model=model), Interpreter(model=model)
    for made, factor in ((one, 1), (two, 2)):
        made.allocate_tensors()
        made.set_tensor(0, X * factor)
    one.invoke()
    two.invoke()
    np.testing.assert_array_equal(one.get_tensor(2), X[:, ::-1])
    np.testing.assert_array_equal(two.get_tensor(2), 2 * X[:, ::-1])
    with pytest.raises(ValueError):
        Interpreter(model_content=permute(), model=model)


@pytest.mark.parametrize("resolver", list(OpResolverType))
def test_every_resolver_type_runs(resolver):
    made = allocated(permute(), experimental_op_resolver_type=resolver, num_threads=2)
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


def test_subclasses_work():
    class Mine(Interpreter):
        def __init__(self, data):
            super().__init__(model_content=data)
            self.calls = 0

        def invoke(self):
            self.calls += 1
            super().invoke()

    made = Mine(permute())
    made.allocate_tensors()
    made.set_tensor(0, X)
    made.invoke()
    assert made.calls == 1


# ---- indices and readiness ----


@pytest.mark.parametrize("call", ["get_tensor", "_get_tensor_details"])
def test_tensor_indices_out_of_range(call):
    made = allocated(permute())
    for index in (3, 4, -1):
        with pytest.raises(ValueError, match=f"Invalid tensor index {index} exceeds max tensor index 3"):
            getattr(made, call)(index)


def test_operator_and_subgraph_indices_out_of_range():
    made = allocated(permute())
    with pytest.raises(ValueError, match="Invalid node index"):
        made._get_op_details(4)
    for index in (1, -1):
        with pytest.raises(ValueError, match="subgraph_index is out of range"):
            made.get_tensor_details(subgraph_index=index)
    with pytest.raises(ValueError, match="subgraph index"):
        made.get_tensor(0, 1)


def test_invoke_before_allocation():
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        Interpreter(model_content=permute()).invoke()


def test_details_and_constants_before_allocation():
    made = Interpreter(model_content=permute())
    assert [d["name"] for d in made.get_tensor_details()] == ["input", "weights", "output"]
    np.testing.assert_array_equal(made.get_tensor(1), np.eye(4, dtype=np.float32)[::-1])
    for index in (0, 2):
        with pytest.raises(ValueError, match="Tensor data is null"):
            made.get_tensor(index)


def test_operator_details():
    made = allocated(permute())
    (details,) = made._get_ops_details()
    assert (details["index"], details["op_name"]) == (0, "FULLY_CONNECTED")
    np.testing.assert_array_equal(details["inputs"], [0, 1, -1])
    np.testing.assert_array_equal(details["outputs"], [2])
    assert details["operand_types"] == [np.float32, np.float32]
    assert details["result_types"] == [np.float32]


# ---- setting and getting ----


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            X.astype(np.float64),
            "Cannot set tensor: Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: i",
        ),
        (X.astype(np.int8), "Cannot set tensor: Got value of type INT8 but expected type FLOAT32 for input 0"),
        (np.array([["a"]]), "Cannot set tensor: Got value of type STRING but expected type FLOAT32"),
        (X[0], "Cannot set tensor: Dimension mismatch. Got 1 but expected 2 for input 0."),
        (X[:, :3], "Cannot set tensor: Dimension mismatch. Got 3 but expected 4 for dimension 1 of input 0."),
    ],
)
def test_values_that_do_not_fit(value, text):
    made = allocated(permute())
    with pytest.raises(ValueError) as caught:
        made.set_tensor(0, value)
    assert str(caught.value).startswith(text)


def test_set_tensor_takes_any_layout_and_keywords():
    made = allocated(permute())
    big = np.zeros((1, 8), ">f4")
    big[:, ::2] = X
    made.set_tensor(tensor_index=0, value=big[:, ::2])
    np.testing.assert_array_equal(made.get_tensor(tensor_index=0), X)
    made.set_tensor(0, np.asfortranarray(X))
    np.testing.assert_array_equal(made.get_tensor(0, 0), X)
    for call in (
        lambda: made.set_tensor(0),
        lambda: made.set_tensor(0, X, 0, 0),
        lambda: made.get_tensor(),
        lambda: made.get_tensor(0, tensor_index=0),
        lambda: made.get_tensor(value=0),
    ):
        with pytest.raises(TypeError):
            call()


def test_constants_cannot_be_set():
    with pytest.raises(ValueError, match="constant"):
        allocated(permute()).set_tensor(1, np.zeros((4, 4), np.float32))


def test_a_scalar_comes_as_numpys_scalar():
    made = allocated(build_model([tensor("x", [])], [], [0], [0]))
    made.set_tensor(0, np.float32(3))
    value = made.get_tensor(0)
    assert value == 3 and isinstance(value, np.float32)


def test_get_tensor_is_a_copy_and_tensor_a_view():
    made = allocated(permute())
    made.set_tensor(0, X)
    copy, view = made.get_tensor(0), made.tensor(0)
    view()[...] = 2 * X
    np.testing.assert_array_equal(copy, X)
    np.testing.assert_array_equal(made.get_tensor(0), 2 * X)
    assert np.shares_memory(view(), view())


def test_a_live_view_keeps_its_memory_and_hinders_nothing():
    made = allocated(permute())
    view = made.tensor(0)()
    view[...] = X
    assert made._safe_to_run()
    made.invoke()
    out = made.tensor(2)()
    np.testing.assert_array_equal(out, X[:, ::-1])
    made.resize_tensor_input(0, [2, 4])
    made.allocate_tensors()
    np.testing.assert_array_equal(view, X)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(view, X)
    np.testing.assert_array_equal(out, X[:, ::-1])


def test_a_view_of_a_constant_is_read_only():
    assert not allocated(permute()).tensor(1)().flags.writeable


def test_intermediates_that_were_not_kept():
    made = allocated(relu_chain())
    made.set_tensor(0, np.arange(64, dtype=np.float32))
    made.invoke()
    with pytest.raises(ValueError, match="Tensor data is null"):
        made.get_tensor(1)
    kept = allocated(relu_chain(), experimental_preserve_all_tensors=True)
    kept.set_tensor(0, np.arange(64, dtype=np.float32))
    kept.invoke()
    np.testing.assert_array_equal(kept.get_tensor(1), -np.arange(64, dtype=np.float32))
    np.testing.assert_array_equal(kept.get_tensor(4), made.get_tensor(4))


@pytest.mark.parametrize(("type", "dtype", "low", "high"), [("INT4", np.int8, -8, 7), ("UINT4", np.uint8, 0, 15)])
def test_four_bit_tensors_take_and_give_bytes(type, dtype, low, high):
    made = allocated(build_model([tensor("x", [3], type)], [], [0], [0]))
    value = np.array([low, 1, high], dtype)
    made.set_tensor(0, value)
    got = made.get_tensor(0)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, value)
    with pytest.raises(ValueError, match=f"Values for {type} input must be between {low} and {high}"):
        made.set_tensor(0, np.array([0, high + 1, 0], dtype))


def test_packed_constants_come_unpacked():
    data = build_model([tensor("w", [3], "INT4", data=bytes([0x2F, 0x08]))], [], [], [0])
    np.testing.assert_array_equal(allocated(data).get_tensor(0), np.array([-1, 2, -8], np.int8))


# ---- strings ----


def strings(shape):
    return build_model([tensor("x", shape, "STRING")], [], [0], [0])


def test_string_inputs_are_str_or_bytes():
    made = allocated(strings([3]))
    assert made.get_input_details()[0]["dtype"] is np.bytes_
    for value in (
        np.array(["a", "bé", ""]),
        np.array([b"a", "bé".encode(), b""]),
        np.array(["a", b"b\xc3\xa9", ""], object),
    ):
        made.set_tensor(0, value)
        assert made.get_tensor(0).tolist() == [b"a", "bé".encode(), b""]
    with pytest.raises(ValueError, match="Cannot use numpy array of type"):
        made.set_tensor(0, np.zeros(3))
    with pytest.raises(ValueError):
        made.set_tensor(0, np.array([1, 2, 3], object))


def test_a_0d_bytes_value_keeps_its_last_nuls():
    made = allocated(strings([]))
    value = b"abcd" + bytes(16)
    made.set_tensor(0, np.array(value, f"S{len(value)}"))
    assert made.get_tensor(0).item() == value


# ---- resizing ----


def test_resizing():
    made = allocated(permute())
    made.resize_tensor_input(0, (3, 4))
    with pytest.raises(RuntimeError, match="not ready"):
        made.invoke()
    made.allocate_tensors()
    assert made.get_input_details()[0]["shape"].tolist() == [3, 4]
    assert made.get_output_details()[0]["shape"].tolist() == [3, 4]
    assert made.get_output_details()[0]["shape_signature"].tolist() == [3, 4]
    made.set_tensor(0, np.repeat(X, 3, 0))
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), np.repeat(X[:, ::-1], 3, 0))


def test_resizing_to_the_same_shape_changes_nothing():
    made = allocated(permute())
    made.set_tensor(0, X)
    made.resize_tensor_input(0, [1, 4])
    made.allocate_tensors()
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


def test_strict_resizing():
    data = build_model(
        [tensor("x", [1, 4], shape_signature=[-1, 4]), tensor("y", [1, 4])],
        [operator("NEG", [0], [1])],
        [0],
        [1],
    )
    made = allocated(data)
    made.resize_tensor_input(0, [3, 4], strict=True)
    made.allocate_tensors()
    assert made.get_input_details()[0]["shape_signature"].tolist() == [-1, 4]
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict only allows mutating unknown dimensions"):
        made.resize_tensor_input(0, [3, 5], strict=True)


@pytest.mark.parametrize(
    ("index", "size"),
    [(9, [1, 4]), (-1, [1, 4]), (0, [[1, 4]]), (0, [1, -4]), (0, [1.5]), (0, [2**31, 1]), (1, [4, 5])],
)
def test_sizes_that_cannot_be(index, size):
    made = allocated(permute())
    with pytest.raises((ValueError, RuntimeError)):
        made.resize_tensor_input(index, size)
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), X[:, ::-1])


def test_a_size_beyond_memory_is_an_error():
    made = Interpreter(model_content=relu_chain(), max_memory=1 << 20)
    made.resize_tensor_input(0, [1 << 20])
    with pytest.raises(RuntimeError, match="max_memory"):
        made.allocate_tensors()
    made.resize_tensor_input(0, [64])
    made.allocate_tensors()
    made.invoke()


def test_memory_that_data_ask_for_is_blamed_on_the_operator():
    data = build_model(
        tensors=[tensor("dims", [2], "INT32"), tensor("value", []), tensor("y", [])],
        operators=[operator("FILL", [0, 1], [2])],
        inputs=[0, 1],
        outputs=[2],
    )
    made = allocated(data, max_memory=1 << 20)
    made.set_tensor(0, np.array([1 << 20, 1 << 20], np.int32))
    with pytest.raises(RuntimeError, match=r"operator 0 \(FILL\): output 0 of shape \[1048576,1048576\]: .*max_memory"):
        made.invoke()
    made.set_tensor(0, np.array([2, 3], np.int32))
    made.invoke()
    assert made.get_tensor(2).shape == (2, 3)


# ---- signatures ----


def two_signatures():
    def graph(name):
        tensors = [tensor(f"{name}_x", [1], shape_signature=[-1]), tensor(f"{name}_y", [1])]
        return subgraph(tensors, [operator("NEG", [0], [1])], [0], [1], name)

    return pack(
        make_model(
            subgraphs=[graph("a"), graph("b")],
            signatures=[signature("one", {"x": 0}, {"y": 1}), signature("two", {"u": 0}, {"v": 1}, 1)],
        )
    )


def test_signatures():
    made = Interpreter(model_content=two_signatures())
    assert made.num_subgraphs() == 2
    assert made.get_signature_list() == {
        "one": {"inputs": ["x"], "outputs": ["y"]},
        "two": {"inputs": ["u"], "outputs": ["v"]},
    }
    runner = made.get_signature_runner("two")
    assert isinstance(runner, SignatureRunner)
    assert runner.get_input_details()["u"]["name"] == "b_x"
    np.testing.assert_array_equal(runner(u=np.array([1, 2, 3], np.float32))["v"], [-1, -2, -3])
    assert runner.get_output_details()["v"]["shape"].tolist() == [3]
    np.testing.assert_array_equal(made.get_signature_runner("one")(x=np.ones(2, np.float32))["y"], [-1, -1])


def test_an_empty_input():
    runner = Interpreter(model_content=two_signatures()).get_signature_runner("one")
    assert runner(x=np.zeros([0], np.float32))["y"].shape == (0,)


def test_wrong_signatures_and_inputs():
    made = Interpreter(model_content=two_signatures())
    with pytest.raises(ValueError, match="None is only allowed when the model has 1 SignatureDef"):
        made.get_signature_runner()
    with pytest.raises(ValueError, match='Invalid signature_key provided: "three"'):
        made.get_signature_runner("three")
    runner = made.get_signature_runner("one")
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(z\) for SignatureDef"):
        runner(z=X)


def test_a_model_without_signatures_runs_by_tensor_names():
    made = Interpreter(model_content=permute())
    assert made.get_signature_list() == {}
    np.testing.assert_array_equal(made.get_signature_runner()(input=X)["output"], X[:, ::-1])


# ---- what cannot run ----


def test_every_missing_or_invalid_operator_is_listed():
    data = build_model(
        [tensor("x", [4]), tensor("a", [4]), tensor("b", [4]), tensor("c", [4]), tensor("i", [4], "STRING")],
        [
            operator("NoSuchOperator", [0], [1]),
            operator("NEG", [4], [2]),
            operator("Another", [0], [3]),
        ],
        [0, 4],
        [1, 2, 3],
    )
    with pytest.raises(tq.RunError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    text = str(caught.value)
    assert "Encountered unresolved custom op: NoSuchOperator." in text and "Another" in text
    assert "operator 1 (NEG)" in text
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, tq.Error)
    assert caught.value.code == "UNSUPPORTED"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ethos-u", "is compiled for an Arm Ethos-U accelerator; run the model from before vela"),
        ("edgetpu-custom-op", "is compiled for a Coral Edge TPU"),
        ("DISPATCH_OP", "is compiled for an accelerator"),
        ("MTKEXT_CONV_2D", "is of MediaTek's accelerators"),
        ("FlexErf", "is TensorFlow's own, and needs TensorFlow to run"),
        ("Flex", "is TensorFlow's own, and needs TensorFlow to run"),
        ("Fle", "is not one that tq knows; tq.register_op can add it"),
        ("ethos-u2", "is not one that tq knows"),
        ("tftext:WhitespaceTokenizer", "is of TensorFlow Text"),
        ("", "is not one that tq knows"),
    ],
)
def test_what_a_custom_operator_is_that_cannot_run(name, text):
    data = build_model([tensor("x", [4]), tensor("y", [4])], [operator(name, [0], [1])], [0], [1])
    with pytest.raises(tq.RunError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    assert f"Encountered unresolved custom op: {name}. Operator 0 {text}" in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "operators", "inputs", "outputs", "text"),
    [
        (2, [("NEG", [0], [0])], [0], [0], "input"),
        (2, [("NEG", [1], [1])], [], [1], "input 0"),
        (2, [("NEG", [0], [1]), ("NEG", [0], [1])], [0], [1], "written by operator 0"),
        (3, [("NEG", [2], [1]), ("NEG", [0], [2])], [0], [1], "no operator before"),
        (2, [("NEG", [7], [1])], [0], [1], "does not exist"),
        (2, [("NEG", [0], [1])], [9], [1], "input 0 of the subgraph is tensor 9"),
        (2, [("NEG", [0], [1])], [0], [-1], "output 0 of the subgraph is tensor -1"),
        (2, [], [0], [1], "no operator writes it"),
    ],
)
def test_graphs_that_contradict_themselves(tensors, operators, inputs, outputs, text):
    data = build_model(
        [tensor(f"t{k}", [2]) for k in range(tensors)],
        [operator(name, ins, outs) for name, ins, outs in operators],
        inputs,
        outputs,
    )
    with pytest.raises(RuntimeError) as caught:
        Interpreter(model_content=data).allocate_tensors()
    assert text in str(caught.value)


def test_inputs_that_nothing_writes_hold_zeros():
    data = build_model(
        [tensor("x", [2]), tensor("nobody", [2]), tensor("y", [2]), tensor("z", [2])],
        [
            operator("ADD", [0, 1], [2]),
            operator("ADD", [2, 1], [3]),
        ],
        [0],
        [3],
    )
    made = allocated(data)
    for _ in range(2):
        made.set_tensor(0, X[0, :2])
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(3), X[0, :2])


def test_an_error_in_running_leaves_the_interpreter_usable():
    data = build_model(
        [tensor("x", [4]), tensor("shape", [2], "INT32"), tensor("y", [2, 2], shape_signature=[-1, -1])],
        [operator("RESHAPE", [0, 1], [2])],
        [0, 1],
        [2],
    )
    made = allocated(data)
    made.set_tensor(0, X[0])
    made.set_tensor(1, np.array([3, -1], np.int32))
    with pytest.raises(RuntimeError, match=r"operator 0 \(RESHAPE\)"):
        made.invoke()
    made.set_tensor(1, np.array([4, -1], np.int32))
    made.invoke()
    assert made.get_tensor(2).shape == (4, 1)
    assert made.get_output_details()[0]["shape"].tolist() == [4, 1]


# ---- control flow and variables ----


def counter(body_operators=None):
    """x: float [2]; i = 0; while i < n: x = -x, i = i + 1."""
    scalar = {"type": "INT32"}
    condition = subgraph(
        [tensor("i", [], **scalar), tensor("n", [], **scalar), tensor("x", [2]), tensor("less", [], "BOOL")],
        [operator("LESS", [0, 1], [3])],
        [0, 1, 2],
        [3],
        "condition",
    )
    body = subgraph(
        [
            tensor("i", [], **scalar),
            tensor("n", [], **scalar),
            tensor("x", [2]),
            tensor("one", [], "INT32", data=np.int32(1)),
            tensor("next", [], **scalar),
            tensor("negated", [2]),
        ],
        [
            operator("ADD", [0, 3], [4]),
            operator("NEG", [2], [5]),
        ],
        [0, 1, 2],
        [4, 1, 5],
        "body",
    )
    main = subgraph(
        [
            tensor("start", [], "INT32", data=np.int32(0)),
            tensor("n", [], **scalar),
            tensor("x", [2]),
            tensor("i", [], **scalar),
            tensor("m", [], **scalar),
            tensor("y", [2]),
        ],
        [operator("WHILE", [0, 1, 2], [3, 4, 5], cond_subgraph_index=1, body_subgraph_index=2)],
        [1, 2],
        [3, 5],
    )
    return pack(make_model(subgraphs=[main, condition, body]))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_while(n):
    made = allocated(counter())
    made.set_tensor(1, np.int32(n))
    made.set_tensor(2, np.array([1, -2], np.float32))
    made.invoke()
    assert made.get_tensor(3) == n
    np.testing.assert_array_equal(made.get_tensor(5), np.array([1, -2]) * (-1) ** n)


def test_a_loop_without_end_can_be_interrupted():
    made = allocated(counter())
    made.set_tensor(1, np.int32(2**31 - 1))
    with ended_by_ctrl_c():
        made.invoke()
    made.set_tensor(1, np.int32(1))
    made.invoke()
    assert made.get_tensor(3) == 1


@pytest.mark.parametrize("callee", [0, 9, -1])
def test_recursion_and_missing_subgraphs_are_refused(callee):
    main = subgraph(
        [tensor("c", [], "BOOL"), tensor("x", [2]), tensor("y", [2])],
        [operator("IF", [0, 1], [2], then_subgraph_index=callee, else_subgraph_index=callee)],
        [0, 1],
        [2],
    )
    with pytest.raises(RuntimeError, match=r"operator 0 \(IF\)"):
        Interpreter(model_content=pack(make_model(subgraphs=[main]))).allocate_tensors()


def variable_model():
    handle = {"container": "c", "shared_name": "v"}
    once = subgraph(
        [tensor("h", [], "RESOURCE"), tensor("zero", [2], data=np.array([5, 6], np.float32))],
        [operator("VAR_HANDLE", [], [0], **handle), operator("ASSIGN_VARIABLE", [0, 1], [])],
        [],
        [],
        "once",
    )
    main = subgraph(
        [tensor("x", [2]), tensor("h", [], "RESOURCE"), tensor("old", [2]), tensor("new", [2])],
        [
            operator("CALL_ONCE", [], [], init_subgraph_index=1),
            operator("VAR_HANDLE", [], [1], **handle),
            operator("READ_VARIABLE", [1], [2]),
            operator("ADD", [0, 2], [3]),
            operator("ASSIGN_VARIABLE", [1, 3], []),
        ],
        [0],
        [3],
    )
    return pack(make_model(subgraphs=[main, once]))


def test_variables_keep_their_value():
    made = allocated(variable_model())
    for total in (1, 2, 3):
        made.set_tensor(0, np.ones(2, np.float32))
        made.invoke()
        np.testing.assert_array_equal(made.get_tensor(3), [5 + total, 6 + total])


# ---- looking ----


def test_run_from_and_until():
    made = allocated(relu_chain(3), experimental_preserve_all_tensors=True)
    x = np.arange(64, dtype=np.float32)
    made.set_tensor(0, x)
    made.run(until=2)
    np.testing.assert_array_equal(made.get_tensor(2), x)
    made.set_tensor(2, 2 * x)
    made.run(start=2)
    np.testing.assert_array_equal(made.get_tensor(3), -2 * x)
    with pytest.raises(IndexError):
        made.run(start=3, until=9)


def test_trace_profile_and_plan():
    made = allocated(relu_chain(3))
    x = np.arange(64, dtype=np.float32)
    made.set_tensor(0, x)
    for k, step in enumerate(made.trace()):
        assert (step.index, step.operator.name) == (k, "NEG")
        assert repr(step) == f"<tq.Step {k} NEG: float32 (64,)>"
        np.testing.assert_array_equal(step.outputs[0], x * (-1) ** (k + 1))
    profile = made.profile(runs=3)
    assert [row.name for row in profile.rows] == ["NEG"] * 3 and profile.microseconds > 0
    assert profile.rows[0].bytes == 512 and "NEG" in str(profile)
    plan = made.memory_plan()
    assert {item.tensor for item in plan.placed} == {0, 1, 2, 3}
    assert plan.lower_bound <= plan.arena <= 4 * 256
    for a in plan.placed:
        for b in plan.placed:
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert a is b or apart or a.last < b.first or b.last < a.first
    assert str(plan.arena) in str(plan)


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    made = allocated(relu_chain(3))
    assert len(made.profile(2).plot().patches) == 3
    assert len(made.memory_plan().plot().patches) == 4


def test_compare():
    def scaled(factor):
        parts = [tensor("x", [4]), tensor("c", [], data=np.float32(factor)), tensor("m", [4]), tensor("y", [4])]
        return build_model(parts, [operator("MUL", [0, 1], [2]), operator("NEG", [2], [3])], [0], [3])

    a, b = scaled(2), scaled(3)
    assert a != b
    same = tq.compare(a, tq.Model(a), {"x": X[0]})
    assert same.equal and same.first_difference is None and "equal" in str(same)
    other = tq.compare(a, b, [X[0]])
    first = other.first_difference
    assert (first.name, first.operator, first.operator_name, first.different) == ("m", 0, "MUL", 4)
    assert first.max_error == 4 and abs(first.sqnr_db - 20 * np.log10(2)) < 1e-9
    for inputs in ({"nobody": X}, [X[0], X[0]], [X.astype(np.int8)]):
        with pytest.raises(ValueError):
            tq.compare(a, b, inputs)


# ---- custom operators ----


@pytest.fixture
def register():
    before = dict(interpreter_module._registered)
    yield tq.register_op
    interpreter_module._registered.clear()
    interpreter_module._registered.update(before)


def custom(outputs=1, shape=(4,)):
    return build_model(
        [tensor("x", [4]), *(tensor(f"y{k}", list(shape)) for k in range(outputs))],
        [operator("Mine", [0], list(range(1, outputs + 1)), custom_options=b"options")],
        [0],
        list(range(1, outputs + 1)),
    )


def test_custom_operators(register):
    seen = []

    def prepare(shapes, options):
        seen.append((shapes, options))
        return [shapes[0], (1,)]

    register("Mine", prepare, lambda inputs, options: [inputs[0] * 2, inputs[0].sum(keepdims=True)])
    made = allocated(custom(2))
    assert seen == [(((4,),), b"options")]
    made.set_tensor(0, X[0])
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(1), 2 * X[0])
    np.testing.assert_array_equal(made.get_tensor(2), [10])


def test_a_custom_operator_whose_shape_waits(register):
    register("Mine", lambda shapes, options: [None], lambda inputs, options: inputs[0][inputs[0] > 2])
    made = allocated(custom())
    made.set_tensor(0, X[0])
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(1), [3, 4])


@pytest.mark.parametrize(
    ("prepare", "eval", "where", "exception"),
    [
        (lambda s, o: 1 / 0, None, "allocate", ZeroDivisionError),
        (lambda s, o: [], None, "allocate", ValueError),
        (lambda s, o: [(-1,)], None, "allocate", ValueError),
        (lambda s, o: [("a",)], None, "allocate", TypeError),
        (lambda s, o: s, lambda i, o: {}["x"], "invoke", KeyError),
        (lambda s, o: s, lambda i, o: i[0][:2], "invoke", ValueError),
        (lambda s, o: s, lambda i, o: [i[0], i[0]], "invoke", ValueError),
        (lambda s, o: s, lambda i, o: 3, "invoke", TypeError),
        (lambda s, o: s, lambda i, o: i[0].astype(np.int32), "invoke", ValueError),
    ],
)
def test_what_custom_operators_raise_reaches_the_caller(register, prepare, eval, where, exception):
    register("Mine", prepare, eval or (lambda i, o: i[0]))
    made = Interpreter(model_content=custom())
    if where == "allocate":
        with pytest.raises(exception):
            made.allocate_tensors()
        return
    made.allocate_tensors()
    with pytest.raises(exception):
        made.invoke()
    with pytest.raises(exception):
        made.invoke()


def test_a_custom_operator_cannot_use_its_interpreter(register):
    made = None
    register("Mine", lambda s, o: s, lambda i, o: made.get_tensor(0))
    made = allocated(custom())
    with pytest.raises(RuntimeError, match="running"):
        made.invoke()


def test_register_op_takes_functions_only():
    with pytest.raises(TypeError):
        tq.register_op("Mine", 1, print)


# ---- threads and leaks ----


def test_one_model_in_many_threads():
    model = tq.Model(relu_chain(8, 4096))
    failures = []

    def work(seed):
        made = Interpreter(model=model)
        made.allocate_tensors()
        x = np.random.default_rng(seed).standard_normal(4096).astype(np.float32)
        for _ in range(50):
            made.set_tensor(0, x)
            made.invoke()
            if not np.array_equal(made.get_tensor(8), x):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_interpreter_in_many_threads_is_taken_in_turns():
    made = allocated(relu_chain(4, 4096))
    made.set_tensor(0, np.ones(4096, np.float32))
    errors = []

    def work():
        try:
            for _ in range(50):
                made.invoke()
                made.get_tensor(4)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ---- standing in ----


def test_stand_in():
    import ai_edge_litert.interpreter as real

    with tq.stand_in():
        import ai_edge_litert.interpreter as one
        import tflite_runtime.interpreter as two

        assert one.Interpreter is two.Interpreter is Interpreter
        assert {name for name in ("OpResolverType", "SignatureRunner", "load_delegate") if hasattr(one, name)} == {
            "OpResolverType",
            "SignatureRunner",
            "load_delegate",
        }
        from ai_edge_litert.interpreter import Interpreter as imported

        assert imported is Interpreter
    import ai_edge_litert.interpreter as after

    assert after is real
    assert "tflite_runtime" not in sys.modules


def test_stand_in_fixture(tq_stand_in):  # noqa: F811
    from tflite_runtime.interpreter import Interpreter as imported

    assert imported is Interpreter


def test_load_delegate_is_refused():
    with pytest.raises(ValueError, match=r"Failed to load delegate from x\.so"):
        interpreter_module.load_delegate("x.so")


def test_litert_can_be_compared_with(tmp_path):
    """A LiteRT interpreter takes part in tq.compare by its methods alone."""
    path = tmp_path / "m.tflite"
    path.write_bytes(permute())
    (answer,) = oracle.ask("run", [(str(path), "BUILTIN_REF", [X])])
    assert not isinstance(answer, (oracle.Refusal, oracle.Abort))
    made = allocated(permute())
    made.set_tensor(0, X)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(2), answer[0])


def reshapes(*shapes):
    """NEG, then a RESHAPE for each shape, then ABS: x[12] -> -x -> ... -> |x|."""
    tensors = [tensor("x", [12]), tensor("n", [12])]
    operators = [operator("NEG", [0], [1])]
    for shape in shapes:
        tensors.append(tensor(f"r{len(tensors)}", shape))
        operators.append(operator("RESHAPE", [len(tensors) - 2], [len(tensors) - 1], new_shape=shape))
    tensors.append(tensor("y", shapes[-1]))
    operators.append(operator("ABS", [len(tensors) - 2], [len(tensors) - 1]))
    return tensors, operators


def test_a_reshaped_tensor_takes_over_the_place_of_what_it_was():
    tensors, operators = reshapes([3, 4], [2, 6])
    made = allocated(build_model(tensors, operators, [0], [4]))
    places = {item.tensor: item.offset for item in made.memory_plan().placed}
    assert places[1] == places[2] == places[3] != places[0]
    assert made.memory_plan().lower_bound <= made.memory_plan().arena
    x = np.arange(12, dtype=np.float32)
    made.set_tensor(0, x)
    for step, outputs in enumerate(step.outputs for step in made.trace()):
        assert (np.ravel(outputs[0]) == (x if step == 3 else -x)).all()
    np.testing.assert_array_equal(made.get_tensor(4), x.reshape(2, 6))
    kept = tq.Interpreter(
        model_content=build_model(tensors, operators, [0], [4]), experimental_preserve_all_tensors=True
    )
    kept.allocate_tensors()
    assert len({item.offset for item in kept.memory_plan().placed}) == 5


@pytest.mark.parametrize("reader", ["the graph", "an operator behind", "the caller"])
def test_a_tensor_that_is_read_again_keeps_its_place(reader):
    tensors, operators = reshapes([3, 4])
    inputs, outputs = [0], [3]
    if reader == "the graph":
        outputs = [3, 1]
    elif reader == "an operator behind":
        tensors.append(tensor("z", [12]))
        operators.append(operator("NEG", [1], [4]))
        outputs = [3, 4]
    else:  # who may set it again, and read what it was made of before
        operators, inputs = operators[1:], [1]
    made = allocated(build_model(tensors, operators, inputs, outputs))
    places = {item.tensor: item.offset for item in made.memory_plan().placed}
    assert places[1] != places[2]
    x = np.arange(12, dtype=np.float32) - 3
    made.set_tensor(inputs[0], x)
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(3).ravel(), np.abs(x))
    for index, expected in {1: -x, 4: x}.items():
        if index in outputs:
            np.testing.assert_array_equal(made.get_tensor(index), expected)
