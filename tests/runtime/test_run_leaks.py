# SPDX-License-Identifier: Apache-2.0
"""A run gives back its memory, whether it succeeds or fails."""

import interpreter_models as models
import numpy as np
import pytest
from leaks import assert_no_leak, needs_own_memory

import tq
from tq.running import interpreter as interpreter_module

pytestmark = needs_own_memory

X = np.arange(64, dtype=np.float32)


def test_making_and_running():
    model = tq.Model(models.relu_chain(4))

    def use():
        made = tq.Interpreter(model=model)
        made.allocate_tensors()
        made.set_tensor(0, X)
        made.invoke()
        made.get_tensor(4)

    assert_no_leak(use, 1_000)


@pytest.mark.parametrize("make", [models.permute, models.counter, models.variable_model, models.two_signatures])
def test_making_other_models(make):
    data = make()

    def use():
        made = tq.Interpreter(model_content=data)
        made.allocate_tensors()
        made.invoke()

    assert_no_leak(use, 500)


def test_calls_of_one_interpreter():
    made = models.allocated(models.relu_chain(4))

    def use():
        made.set_tensor(0, X)
        made.invoke()
        made.get_tensor(4)
        made.tensor(4)()
        made.get_input_details()

    assert_no_leak(use, 2_000)


def test_resizing():
    made = models.allocated(models.relu_chain(4))
    sizes = iter(range(1, 10**9))

    def use():
        made.resize_tensor_input(0, [64 + next(sizes) % 7])
        made.allocate_tensors()
        made.invoke()

    assert_no_leak(use, 500)


def test_strings():
    made = models.allocated(models.strings([3]))
    value = np.array(["a", "bé", "c" * 100])
    assert_no_leak(lambda: (made.set_tensor(0, value), made.get_tensor(0)), 1_000)


def test_refusals():
    data = models.custom()
    wrong = np.zeros(3, np.int8)
    made = models.allocated(models.permute())

    def use():
        with pytest.raises(RuntimeError):
            tq.Interpreter(model_content=data).allocate_tensors()
        with pytest.raises(ValueError):
            made.set_tensor(0, wrong)

    assert_no_leak(use, 500)


def test_custom_operators():
    before = dict(interpreter_module._registered)
    tq.register_op("Mine", lambda shapes, options: [None], lambda inputs, options: inputs[0] * 2)
    data = models.custom()

    def use():
        made = tq.Interpreter(model_content=data)
        made.allocate_tensors()
        made.invoke()

    def fail():
        made = tq.Interpreter(model_content=data)
        made.allocate_tensors()
        with pytest.raises(ZeroDivisionError):
            made.invoke()

    try:
        assert_no_leak(use, 500)
        tq.register_op("Mine", lambda shapes, options: [None], lambda inputs, options: 1 / 0)
        assert_no_leak(fail, 500)
    finally:
        interpreter_module._registered.clear()
        interpreter_module._registered.update(before)
