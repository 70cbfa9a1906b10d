# SPDX-License-Identifier: Apache-2.0
"""CONV_3D sums tap by tap, CONV_3D_TRANSPOSE cell by cell, within these channel by channel, each product and each sum
rounded: to the bit."""

import numpy as np
import pytest

import tq

CASES = [  # input, filter, strides, dilations, padding
    ([2, 5, 7, 19, 3], [3, 3, 3, 3, 21], (1, 2, 1), (1, 1, 1), "SAME"),
    ([1, 4, 6, 40, 5], [2, 1, 4, 5, 16], (2, 1, 3), (1, 1, 1), "VALID"),
    ([1, 6, 9, 13, 2], [2, 3, 3, 2, 7], (1, 1, 1), (2, 2, 3), "SAME"),
    ([1, 3, 3, 2, 4], [3, 3, 5, 4, 4], (1, 1, 1), (1, 1, 1), "SAME"),
    ([1, 6, 14, 27, 1], [2, 2, 2, 1, 3], (2, 2, 2), (1, 1, 1), "SAME"),
    ([1, 3, 15, 31, 2], [1, 5, 3, 2, 3], (1, 2, 4), (1, 3, 6), "SAME"),
]


def window(size, taps, stride, dilation, padding):
    """The output's size, and the padding before the input."""
    reach = (taps - 1) * dilation + 1
    out = -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1
    return out, max((out - 1) * stride + reach - size, 0) // 2 if padding == "SAME" else 0


def result(name, inputs, shape, case):
    """Of arrays, all constant but the image."""
    _, _, strides, dilations, padding = CASES[case]
    build = tq.ModelBuilder()
    out = build.tensor("y", shape, "float32")
    options = {f"stride_{n}": v for n, v in zip("dhw", strides, strict=True)}
    options |= {f"dilation_{n}_factor": v for n, v in zip("dhw", dilations, strict=True)}
    fed = 2 if name == "CONV_3D_TRANSPOSE" else 0
    tensors = [
        build.input("x", x.shape, "float32") if i == fed else build.tensor(f"c{i}", data=x)
        for i, x in enumerate(inputs)
    ]
    build.operator(name, tensors, [out], padding=padding, **options)
    build.output(out)
    interpreter = tq.Interpreter(model_content=build.to_bytes(), numerics="reference")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], inputs[fed])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("case", range(len(CASES)))
def test_each_sum_has_the_references_order(case):
    shape, taps, strides, dilations, padding = CASES[case]
    rng = np.random.default_rng(case)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (shape, taps))
    bias = rng.standard_normal(taps[4]).astype(np.float32)
    fits = [window(shape[k + 1], taps[k], strides[k], dilations[k], padding) for k in range(3)]
    want = np.zeros([shape[0], *(out for out, _ in fits), taps[4]], np.float32)
    for at in np.ndindex(*want.shape[:4]):
        for tap in np.ndindex(*taps[:3]):
            cell = [at[k + 1] * strides[k] - fits[k][1] + tap[k] * dilations[k] for k in range(3)]
            if all(0 <= cell[k] < shape[k + 1] for k in range(3)):
                for c in range(shape[4]):
                    want[at] += x[at[0], cell[0], cell[1], cell[2], c] * w[tap][c]
    want += bias
    np.testing.assert_array_equal(result("CONV_3D", [x, w, bias], want.shape, case), want)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_each_transposed_sum_has_the_references_order(case):
    """The case's input is the output here."""
    shape, taps, strides, dilations, padding = CASES[case]
    rng = np.random.default_rng(case)
    fits = [window(shape[k + 1], taps[k], strides[k], dilations[k], padding) for k in range(3)]
    x = rng.standard_normal([shape[0], *(out for out, _ in fits), taps[4]]).astype(np.float32)
    w = rng.standard_normal(taps).astype(np.float32)
    bias = rng.standard_normal(shape[4]).astype(np.float32)
    want = np.zeros(shape, np.float32)
    for cell in np.ndindex(*x.shape[:4]):
        for tap in np.ndindex(*taps[:3]):
            at = [cell[k + 1] * strides[k] - fits[k][1] + tap[k] * dilations[k] for k in range(3)]
            if all(0 <= at[k] < shape[k + 1] for k in range(3)):
                for c in range(taps[4]):
                    want[cell[0], at[0], at[1], at[2]] += x[cell][c] * w[tap][:, c]
    want += bias
    given = np.array(shape, np.int32)
    np.testing.assert_array_equal(result("CONV_3D_TRANSPOSE", [given, w, x, bias], shape, case), want)
