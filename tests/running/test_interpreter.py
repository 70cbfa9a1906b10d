# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter in the place of LiteRT's: what its users and its own tests lean on.

Where a test has a twin in LiteRT's python/interpreter_test.py, the behaviour asked for is that one's.
"""

import gc
import threading
import weakref

import numpy as np
import pytest
from interpreter_models import X, allocated, permute, relu_chain, strings
from models import build_model, operator, tensor

import tq
from tq.running.interpreter import Interpreter, OpResolverType

# ---- construction ----


@pytest.mark.parametrize("as_path", [str, lambda path: path, bytes])
def test_paths_are_str_bytes_or_path_like(tmp_path, as_path):
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


def integer_input(**quantization):
    x = tensor("x", [2, 2], "INT8", **quantization)
    return allocated(
        build_model([x, tensor("y", [2, 2], "INT8", **quantization)], [operator("NEG", [0], [1])], [0], [1])
    )


def test_real_numbers_for_an_integer_input_are_told_the_call_that_converts():
    made = integer_input(scale=0.1, zero_point=3)
    text = "expected type INT8 for input 0, name: x . It has scale 0.10000000149011612 and zero point 3: "
    with pytest.raises(ValueError) as caught:
        made.set_tensor(0, np.ones((2, 2), np.float32))
    assert str(caught.value).startswith("Cannot set tensor: Got value of type FLOAT32 but " + text)
    call = "tq.quantize(value, 0.10000000149011612, 3, dtype='int8')"
    assert str(caught.value).endswith(f": {call} converts real numbers")
    made.set_tensor(0, eval(call, {"tq": tq, "value": np.ones((2, 2), np.float32)}))
    assert made.get_tensor(0).tolist() == [[13, 13], [13, 13]]


def test_an_input_with_many_scales_is_told_their_dimension():
    made = integer_input(scale=[0.1, 0.2], zero_point=[0, 0], quantized_dimension=1)
    with pytest.raises(ValueError, match=r"It has 2 scales along dimension 1: tq.quantize\(value, .*'int8', axis=1\)"):
        made.set_tensor(0, np.ones((2, 2)))


@pytest.mark.parametrize(
    ("quantization", "value"), [({}, np.ones((2, 2))), ({"scale": 0.1, "zero_point": 0}, np.ones((2, 2), np.int32))]
)
def test_no_conversion_is_named_where_there_is_none(quantization, value):
    with pytest.raises(ValueError, match=r"name: x $"):
        integer_input(**quantization).set_tensor(0, value)


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


def test_a_view_of_a_handle_is_none_of_its_memory():
    """NumPy took the numbers in it for Python objects."""
    b = tq.ModelBuilder()
    x, y, handles = b.input("x", [2]), b.tensor("y", [2]), [b.tensor(f"h{k}", [], "RESOURCE") for k in range(2)]
    for k, handle in enumerate(handles):
        b.operator("VAR_HANDLE", [], [handle], container="c", shared_name=f"v{k}")
        b.operator("ASSIGN_VARIABLE", [handle, x], [])
    b.operator("READ_VARIABLE", [handles[1]], [y])
    b.output(y)
    made = allocated(b.to_bytes())
    made.set_tensor(0, np.float32([1, 2]))
    made.invoke()
    for details in made.get_tensor_details():
        if details["name"].startswith("h"):
            view = made.tensor(details["index"])()
            assert view.flags.owndata and view.tolist() is None
