# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB and MUL of 8 bits, every pair of values: the reference's formula in NumPy, also where results are ties."""

import differential
import numpy as np
import pytest

import tq

SCALES = {  # of the inputs and the output
    "any": (0.0473, 0.0192, 0.0611),
    "ties": (0.5, 0.25, 1.0),
    "equal": (0.1, 0.1, 0.1),
    "apart": (0.9, 0.001, 0.05),
    "fine output": (0.3, 0.2, 0.004),
    "coarse output": (0.003, 0.002, 0.7),
    "sixteenths": (0.0625, 0.0625, 0.0625),
    "far below": (0.25, 0.0078125, 0.9),
    "nearer to a tie than floats tell": (0.0212, 0.0123, 0.457),  # MUL
}


def multiply(x, real):
    """MultiplyByQuantizedMultiplier of int64 arrays, with its two roundings."""
    fraction, shift = np.frexp(real)
    fixed = int(np.floor(fraction * 2**31 + 0.5))
    if fixed == 2**31:
        fixed, shift = 2**30, shift + 1
    product = x * 2 ** max(int(shift), 0) * fixed
    rounded = product + np.where(product >= 0, 2**30, 1 - 2**30)
    high = np.sign(rounded) * (np.abs(rounded) >> 31)  # towards zero
    right = max(-int(shift), 0)
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL"])
def test_every_pair_of_values_gives_the_formula(operator, name, kind):
    info, zeros = np.iinfo(kind), (3, -7, 5) if kind == "int8" else (120, 131, 99)
    values = np.arange(info.min, info.max + 1)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    first, second, out = (float(np.float32(x)) for x in SCALES[name])
    m = differential.Draft(0)
    m.fixed = True
    inputs = [
        m.input(kind, [a.size], value.astype(kind), scale=scale, zero_point=zero)
        for value, scale, zero in zip((a, b), SCALES[name], zeros, strict=False)
    ]
    m.operator(operator, inputs, [m.output(kind, [a.size], scale=SCALES[name][2], zero_point=zeros[2])])
    case = m.case()
    interpreter = tq.Interpreter(model_content=case.model, numerics="reference")
    interpreter.allocate_tensors()
    for index, value in case.runs[0].items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    twice = 2 * max(first, second)
    x = multiply((a - zeros[0]) << 20, first / twice)
    y = multiply((b - zeros[1]) << 20, second / twice) * (1 if operator == "ADD" else -1)
    if operator == "MUL":
        real = multiply(
            (a - zeros[0]) * (b - zeros[1]), float(np.float32(np.float32(first) * np.float32(second)) / np.float32(out))
        )
    else:
        real = multiply(x + y, twice / (2**20 * out))
    want = np.clip(real + zeros[2], info.min, info.max)
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), want)


@pytest.mark.parametrize("numerics", ["reference", "xnnpack"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE"])
def test_one_element_gives_what_copies_of_it_give(operator, kind, numerics):
    if (operator, kind) == ("SQUARED_DIFFERENCE", "uint8"):
        pytest.skip("LiteRT has no such kernel")
    info, middle = np.iinfo(kind), 128 if kind == "uint8" else 0
    many = np.resize(np.arange(info.min, info.max + 1), 1500).astype(kind)
    for element, side in [(info.min, 0), (info.max, 1), (middle + 1, 0), (middle + 37, 1)]:
        results = []
        for count in (1, many.size):
            values = [many, many]
            values[side] = np.full(count, element, kind)
            build = tq.ModelBuilder()
            inputs = [build.input("in", x.shape, kind, scale=0.05, zero_point=middle - 101) for x in values]
            build.operator(operator, inputs, [build.tensor("out", many.shape, kind, scale=0.07, zero_point=middle)])
            build.output(build.tensors[-1])
            interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics=numerics)
            interpreter.allocate_tensors()
            for index, value in enumerate(values):
                interpreter.set_tensor(index, value)
            if operator == "DIV" and side == 0:  # no divisor may be 0
                interpreter.set_tensor(1, np.where(many == middle - 101, middle, many).astype(kind))
            interpreter.invoke()
            results.append(interpreter.get_tensor(2))
        np.testing.assert_array_equal(*results, err_msg=str((element, side)))
