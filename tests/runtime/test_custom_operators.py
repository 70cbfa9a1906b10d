# SPDX-License-Identifier: Apache-2.0
"""Custom operators written in Python."""

import numpy as np
import pytest
from interpreter_models import X, allocated, custom
from models import build_model, operator, tensor

import tq
from tq.running import interpreter as interpreter_module
from tq.running.interpreter import Interpreter


@pytest.fixture
def register():
    before = dict(interpreter_module._registered)
    yield tq.register_op
    interpreter_module._registered.clear()
    interpreter_module._registered.update(before)


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


def test_a_registered_operator_takes_what_it_likes(register):
    """Under the name of one that tq has, whose two inputs nothing asks of it."""
    register("Mfcc", lambda shapes, options: shapes[:1], lambda inputs, options: inputs[0] + 1)
    made = allocated(build_model([tensor("x", [2]), tensor("y", [2])], [operator("Mfcc", [0], [1])], [0], [1]))
    made.set_tensor(0, np.float32([1, 2]))
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(1), [2, 3])
