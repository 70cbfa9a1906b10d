# SPDX-License-Identifier: Apache-2.0
"""Graphs that LiteRT's delegate gets in whole partitions, as where no tensors are preserved, which is the usual way:
their outputs are LiteRT's; and which operators XNNPACK then makes one table of, by the one that this changes."""

import differential
import generators
import numpy as np
import oracle
import processor
import pytest
from generators.draft import Draft

import tq

KINDS = [kind for _, kind in generators.rows("PARTITION")]
QUICK, SLOW = 10, 1000  # cases a row


def check(kind, cases, seed, numerics):
    outcome = differential.compare("PARTITION", kind, cases, seed, numerics=numerics, whole=True)
    if outcome.mismatches:
        pytest.fail("\n".join([differential.explain(*outcome.mismatches[0]), str(outcome)]), pytrace=False)
    assert outcome.accepted >= 0.8 * cases, outcome


@pytest.mark.parametrize("kind", KINDS)
def test_whole_partitions_agree(kind):
    check(kind, QUICK, 1, "xnnpack")


@pytest.mark.thorough
@pytest.mark.parametrize("numerics", generators.NUMERICS)
@pytest.mark.parametrize("kind", KINDS)
def test_whole_partitions_agree_thousands_of_times(kind, numerics):
    check(kind, SLOW, 2, numerics)


@pytest.mark.thorough
@pytest.mark.parametrize("numerics", generators.NUMERICS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_agrees_thousands_of_times(kind, numerics):
    outcome = differential.compare("PARTITION", kind, SLOW, 3, numerics=numerics)
    assert not outcome.mismatches, outcome.mismatches[0][1]


# ---- MUL of a tensor with itself: multiplied in a table, a square elsewhere ----


SHAPE = [1, 16, 16, 1]


class Chain:
    """A model of all 256 values; squares of some lie between two values; an odd zero point tells the roundings."""

    def __init__(self):
        self.m = Draft(0)
        self.m.fixed = True
        self.last = self.m.input("int8", SHAPE, np.arange(-128, 128).reshape(SHAPE), scale=2.0**-5, zero_point=3)

    def add(self, name, inputs, scale=2.0**-5, type="int8", **options):
        parameters = {"scale": scale, "zero_point": 3} if type == "int8" else {"scale": None}
        y = self.m.inner(type, SHAPE, **parameters)
        self.m.operator(name, inputs, [y], **options, version=2)
        self.last = y
        return y

    def leak(self, times=1):
        for _ in range(times):
            self.add("LEAKY_RELU", [self.last], alpha=0.5)
        return self.last

    def multiply(self, activation="NONE"):
        x = self.last
        return self.add("MUL", [x, x], 2.0**-3, fused_activation_function=activation)

    def outputs(self, source, preserve):
        """(what is squared, what comes of it), as the model's outputs beside the last one."""
        self.m.outputs = list(dict.fromkeys([*self.m.outputs, self.last]))
        (answer,) = oracle.ask(
            "tensors", [(self.m.case().model, source, self.m.case().runs, {}, self.m.outputs, preserve)]
        )
        assert isinstance(answer, list), answer
        return [answer[0][index] for index in self.m.outputs]


def alone(c):
    c.multiply()


def after_another(c):
    c.leak()
    c.multiply()


def clamped(c):
    c.leak()
    c.multiply(activation="RELU")


def tenth(c):
    c.leak(9)
    c.multiply()


def eleventh(c):
    c.leak(10)
    c.multiply()


def begins_another_table(c):
    """The MUL is no link by itself, and what follows it has its own chain."""
    c.multiply()
    c.leak(2)


def read_twice(c):
    x = c.leak()
    y = c.multiply()
    c.m.outputs.append(x)
    c.last = y


def read_by_another(c):
    x = c.leak()
    y = c.multiply()
    c.add("RELU", [x])
    c.m.outputs.append(y)


def through_floats(c):
    x = c.add("DEQUANTIZE", [c.last], type="float32")
    x = c.add("ABS", [x], type="float32")
    c.add("QUANTIZE", [x])
    c.multiply()


def behind_what_is_refused(c):
    c.add("RELU", [c.last])
    c.multiply()


def a_tensor_and_its_function(c):
    x = c.last
    y = c.leak()
    c.add("ADD", [x, y], 2.0**-4, pot_scale_int16=False)
    c.multiply()


def by_a_constant(c):
    one = c.m.constant("int8", [[[[5]]]], scale=2.0**-3, zero_point=0)
    c.add("ADD", [c.last, one], pot_scale_int16=False)
    c.multiply()


def through_a_pool_of_one(c):
    options = {"filter_height": 1, "filter_width": 1, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    c.add("MAX_POOL_2D", [c.last], **options)
    c.multiply()


IN_A_TABLE = (
    through_a_pool_of_one,
    after_another,
    clamped,
    tenth,
    through_floats,
    a_tensor_and_its_function,
    by_a_constant,
)
SQUARES = (alone, eleventh, begins_another_table, read_twice, read_by_another, behind_what_is_refused)


@pytest.mark.parametrize("draw", IN_A_TABLE + SQUARES)
def test_multiplied_by_itself(draw):
    c = Chain()
    draw(c)
    whole, single = c.outputs("TQ xnnpack", False), c.outputs("TQ xnnpack", True)
    for mine, preserve in ((whole, False), (single, True)):
        for a, b in zip(mine, c.outputs("BUILTIN", preserve), strict=True):
            assert (a == b).all()
    changed = any((a != b).any() for a, b in zip(whole, single, strict=True))
    assert changed == (draw in IN_A_TABLE)


def sum_of_squares(m):
    x = m.input("float32", [3, 21, 37], draw=lambda: m.floats([3, 21, 37], special=0))
    squares, y = m.inner("float32", [3, 21, 37]), m.output("float32", [3, 21])
    m.operator("SQUARE", [x], [squares])
    m.operator("MEAN", [squares, m.constant("int32", [2])], [y], version=2)


def product_of_codes(m):
    x = m.input("float32", [2, 9, 41], draw=lambda: m.floats([2, 9, 41], special=0))
    codes = m.input("int8", [2, 13, 41], scale=0.013, zero_point=0)
    floats, y = m.inner("float32", [2, 13, 41]), m.output("float32", [2, 9, 13])
    m.operator("DEQUANTIZE", [codes], [floats], version=2)
    m.operator("BATCH_MATMUL", [x, floats], [y], adj_y=True, version=3)


@pytest.mark.parametrize("draw", [sum_of_squares, product_of_codes])
def test_floats_that_neighbours_change(draw):
    """In their last bits: XNNPACK computes two operators in one step.  That of squares has the bits of two
    on processors without AVX-512."""
    m = Draft(1)
    m.fixed = True
    draw(m)
    case, (y,) = m.case(), m.outputs
    alone, whole, mine = (
        next(oracle.ask("tensors", [(case.model, who, case.runs, {}, [y], preserve)]))[0][y]
        for who, preserve in (("BUILTIN", True), ("BUILTIN", False), ("TQ xnnpack", False))
    )
    assert (whole != alone).any() or (draw is sum_of_squares and "avx512f" not in processor.features())
    assert np.abs(whole - mine).max() <= 1e-6 * np.abs(whole).max()


def test_backends_are_the_same_either_way():
    c = Chain()
    after_another(c)
    c.m.outputs = [c.last]
    rows = [
        tq.Interpreter(
            model_content=c.m.case().model, numerics="xnnpack", experimental_preserve_all_tensors=p
        ).backends()
        for p in (False, True)
    ]
    assert [row.numerics for row in rows[0]] == [row.numerics for row in rows[1]] == ["xnnpack", "xnnpack"]
