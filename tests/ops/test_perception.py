# SPDX-License-Identifier: Apache-2.0
"""Custom operators of images and of quantization's tools: what they refuse, and what is wrong with their data."""

import flatbuffers.flexbuffers as flexbuffers
import numpy as np
import pytest
from models import build_model, operator, tensor

import tq


def record(*numbers):
    return np.array(numbers, "<i4").tobytes()


def made(name, shapes, custom, types=()):
    """An interpreter of one operator; inputs of these shapes, FLOAT32 unless `types` says else."""
    types = [*types, *["FLOAT32"] * len(shapes)]
    codes = {"INT8": {"scale": 0.5, "zero_point": 1}}
    tensors = [tensor(f"x{k}", list(n), types[k], **codes.get(types[k], {})) for k, n in enumerate(shapes)]
    fed = list(range(len(shapes)))
    node = operator(name, fed, [len(fed)], custom_options=custom)
    interpreter = tq.Interpreter(model_content=build_model([*tensors, tensor("y", [1])], [node], fed, [len(fed)]))
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter, *values):
    for index, value in enumerate(values):
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return interpreter.get_tensor(len(values))


IMAGE, WINDOW = (1, 4, 4, 3), (2, 3, 3, 3)
CONV, UNPOOL, VERIFY, ROTATE = "Convolution2DTransposeBias", "MaxUnpooling2D", "NumericVerify", "aeq.hadamard_rotation"
HUGE = 2**31 - 1
BAD = [
    (CONV, [IMAGE, WINDOW, (2,)], record(1, 2), (), "has 8 bytes of options; it needs 12"),
    (CONV, [IMAGE, WINDOW, (2,)], b"", (), "has 0 bytes of options"),
    (CONV, [IMAGE, WINDOW, (2,)], record(0, 2, 2), (), "has padding 0"),
    (CONV, [IMAGE, WINDOW, (2,)], record(1, 0, 2), (), "has a stride or filter of 0"),
    (CONV, [IMAGE, WINDOW, (2,)], record(1, HUGE, 2), (), "would have a side of"),
    (CONV, [IMAGE, WINDOW, (3,)], record(1, 2, 2), (), "has 3 elements for 2 channels"),
    (CONV, [IMAGE, (2, 3, 3, 4), (2,)], record(1, 2, 2), (), "of 4 channels; the input has 3"),
    (CONV, [(1, 0, 4, 3), WINDOW, (2,)], record(1, 2, 2), (), "is an image of 0 x 4"),
    (CONV, [IMAGE, WINDOW, (2,)], record(1, 2, 2), ("INT8",), "input 0"),
    (UNPOOL, [IMAGE, IMAGE], record(1, 2, 2, 2), ("FLOAT32", "INT32"), "has 16 bytes of options; it needs 20"),
    (UNPOOL, [IMAGE, (1, 4, 4, 2)], record(1, 2, 2, 2, 2), ("FLOAT32", "INT32"), "has another shape than input 0"),
    (UNPOOL, [IMAGE, IMAGE], record(1, HUGE, 2, 2, 2), ("FLOAT32", "INT32"), "would have a side of"),
    (UNPOOL, [IMAGE, IMAGE], record(2, 2, 2, -1, 2), ("FLOAT32", "INT32"), "has a stride or filter of -1"),
    (VERIFY, [(4,), (5,)], flexbuffers.Dumps({"tolerance": 1.0}), ("INT8",), "has 5 elements to verify 4"),
    (VERIFY, [(4,), (4,)], flexbuffers.Dumps({"tolerance": "x"}), ("INT8",), "tolerance that is no number"),
    (ROTATE, [(2, 6)], flexbuffers.Dumps({"hadamard_size": 6}), (), "it needs a power of two"),
    (ROTATE, [(2, 6)], flexbuffers.Dumps({"hadamard_size": 4}), (), "for rows of 6"),
    (ROTATE, [(2, 6)], flexbuffers.Dumps({"hadamard_size": 0}), (), "option hadamard_size 0"),
    (ROTATE, [(2, 6)], flexbuffers.Dumps({}), (), "no option hadamard_size"),
    (ROTATE, [(6,)], flexbuffers.Dumps({"hadamard_size": 2}), (), "input 0"),
]


@pytest.mark.parametrize(("name", "shapes", "custom", "types", "text"), BAD, ids=[text for *_, text in BAD])
def test_what_breaks_a_contract_is_named(name, shapes, custom, types, text):
    with pytest.raises(tq.RunError) as caught:
        made(name, shapes, custom, types)
    assert text in str(caught.value) and f"operator 0 ({name})" in str(caught.value)


def test_positions_outside_the_image_are_bad_data():
    interpreter = made(UNPOOL, [(2, 1, 1, 2)] * 2, record(1, 2, 2, 2, 2), ("FLOAT32", "INT32"))
    x = np.ones((2, 1, 1, 2), np.float32)
    for position in (-1, 8, 2**31 - 1, -(2**31)):
        with pytest.raises(tq.RunError, match=f"element 3 of input 1 is position {position} of 8"):
            run(interpreter, x, np.int32([0, 7, 1, position]).reshape(x.shape))
    assert run(interpreter, x, np.int32([0, 7, 1, 1]).reshape(x.shape)).sum() == 3


def test_values_land_at_their_positions():
    """Each value lands at its position, and all other elements are 0."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 4, 2)
    positions = np.int32([2, 3, 4, 5, 6, 7, 16, 17]).reshape(x.shape)
    found = run(made(UNPOOL, [x.shape] * 2, record(1, 2, 2, 2, 2), ("FLOAT32", "INT32")), x, positions).ravel()
    assert found.shape == (32,) and np.count_nonzero(found) == 8
    assert found[positions.ravel()].tolist() == x.ravel().tolist()


def test_a_difference_beyond_the_tolerance_is_data():
    custom = flexbuffers.Dumps({"tolerance": 2.0, "log_if_failed": True})
    interpreter = made(VERIFY, [(2,)] * 2, custom, ("INT8",))
    codes = np.int8([3, -1])  # 1 and -1
    assert run(interpreter, codes, np.float32([0.5, 0])).tolist() == [0.5, -1]
    with pytest.raises(tq.RunError, match=r"element 1 is -1, and 0\.5 in the reference"):
        run(interpreter, codes, np.float32([0.5, 0.5]))


def test_two_rotations_give_the_rows_back():
    x = np.random.default_rng(3).normal(0, 1, (2, 3, 128)).astype(np.float32)
    interpreter = made(ROTATE, [x.shape], flexbuffers.Dumps({"hadamard_size": 64}))
    once = run(interpreter, x)
    np.testing.assert_allclose(once[0, 0, 0], x[0, 0, :64].sum() / 8, rtol=1e-5)
    np.testing.assert_allclose(run(interpreter, once), x, atol=1e-5)
