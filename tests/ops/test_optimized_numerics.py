# SPDX-License-Identifier: Apache-2.0
"""numerics="optimized" against LiteRT's kernels without delegates, on one thread: integers bit for bit, and so the
products of floats with integers, and most other floats; and what the rules are, on numbers that show them."""

import differential
import generators
import numpy as np
import oracle
import pytest
from generators.draft import Draft

import tq

ROWS = [row for row in generators.rows() if generators.RESOLVERS[row] in (generators.REFERENCE, generators.OPTIMIZED)]
QUICK, SLOW = 8, 1000  # cases a row
EIGHT = ("int8", "uint8")
# The rows whose arithmetic is not the reference's.
OWN = {
    "ADD": (*EIGHT, "int16"),
    "CONV_2D": (*EIGHT, "int4", "int16-bias32", "hybrid"),
    "DEPTHWISE_CONV_2D": (*EIGHT, "hybrid"),
    "DEQUANTIZE": EIGHT,
    "FULLY_CONNECTED": (*EIGHT, "int4", "int16", "int16-bias32", "hybrid-int4", "uint8-shuffled"),
    "LOGISTIC": ("int16",),
    "LOG_SOFTMAX": EIGHT,
    "MEAN": EIGHT,
    "QUANTIZE": ("float32-int8", "float32-uint8", "float32-int16", "int8-int8", "int8-uint8", "uint8-uint8"),
    "RESIZE_BILINEAR": ("uint8",),
    "SOFTMAX": (*EIGHT, "int8-int16", "uint8-int16"),
    "SUM": (*EIGHT, "int16"),
    "TANH": ("int16",),
    "TRANSPOSE_CONV": EIGHT,
    "GRAPH": ("int8", "uint8", "int16"),
}
FLOATS = {name: ("float32",) for name in ("HARD_SWISH", "RESIZE_BILINEAR")}  # likewise
# Operators whose floats differ from LiteRT's within the harness's tolerance: the processor chooses the order of their
# sums, or Eigen or the C library computes their functions.
NEAR = """
    ATAN2 AudioSpectrogram BIDIRECTIONAL_SEQUENCE_LSTM CONV_2D CONV_3D CONV_3D_TRANSPOSE COS DEPTHWISE_CONV_2D ELU EXP
    Convolution2DTransposeBias FULLY_CONNECTED GELU GRAPH L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOG LOGISTIC LSTM Mfcc
    LOG_SOFTMAX MULTINOMIAL POW RANDOM_STANDARD_NORMAL RFFT2D SIN SOFTMAX TANH TRANSPOSE_CONV
    UNIDIRECTIONAL_SEQUENCE_LSTM
"""


def is_exact(operator, kind):
    if kind == "float32":
        return operator not in NEAR.split()
    return operator != "GRAPH" and (kind.startswith("hybrid") or not kind.startswith(("float", "blockwise")))


def check(operator, kind, cases, seed):
    tolerance = 0 if is_exact(operator, kind) else None
    outcome = differential.compare(operator, kind, cases, seed, numerics="optimized", tolerance=tolerance)
    if outcome.mismatches:
        pytest.fail("\n".join([differential.explain(*outcome.mismatches[0]), str(outcome)]), pytrace=False)
    assert outcome.accepted >= 0.6 * cases, outcome  # LiteRT's DEPTHWISE_CONV_2D ends without a bias


@pytest.mark.parametrize(
    ("operator", "kind"), [(name, kind) for table in (OWN, FLOATS) for name, kinds in table.items() for kind in kinds]
)
def test_agrees(operator, kind):
    check(operator, kind, QUICK, seed=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("operator", "kind"), ROWS)
def test_agrees_thousands_of_times(operator, kind):
    check(operator, kind, SLOW, seed=2)


# ---- what the rules are ----


def run(case, numerics="optimized", threads=1):
    interpreter = tq.Interpreter(model_content=case.model, numerics=numerics, num_threads=threads)
    interpreter.allocate_tensors()
    for index, value in case.runs[0].items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def in_litert(case):
    (output,) = [tensor.index for tensor in tq.Model(case.model).subgraphs[0].outputs]
    (answer,) = oracle.ask("tensors", [(case.model, generators.OPTIMIZED, case.runs, {}, [output])])
    return answer[0][output]


def drafted():
    m = Draft(0)
    m.fixed = True
    return m


def products(name, channels, batch=1):
    """Each channel's sum is -6, and becomes -1.5: a tie."""
    m = drafted()
    x = m.input("int8", [batch, 1, 1, channels], np.full([batch, 1, 1, channels], -6), scale=1.0, zero_point=0)
    w = m.constant(
        "int8", np.ones([1, 1, 1, channels]), scale=[0.25] * channels, zero_point=[0] * channels, quantized_dimension=3
    )
    b = m.constant("int32", np.zeros(channels), scale=[0.25] * channels, zero_point=[0] * channels)
    y = m.output("int8", [batch, 1, 1, channels], scale=1.0, zero_point=0)
    m.operator(name, [x, w, b], [y], depth_multiplier=1, stride_w=1, stride_h=1, version=3)
    return m.case()


@pytest.mark.parametrize("channels", [1, 7, 8, 9, 16, 21, 40, 67])
def test_depthwise_ties_go_up_in_whole_blocks_of_eight_channels(channels):
    case = products("DEPTHWISE_CONV_2D", channels, 2)
    whole = channels // 8 * 8
    expected = [[-1] * whole + [-2] * (channels - whole)] * 2
    assert run(case).reshape(2, channels).tolist() == expected
    assert in_litert(case).reshape(2, channels).tolist() == expected
    assert (run(case, "reference") == -2).all()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 130])
def test_requantized_ties_go_up_in_whole_blocks_of_sixteen(count):
    m = drafted()
    x = m.input("int8", [count], np.full(count, -6), scale=1.0, zero_point=0)
    m.operator("QUANTIZE", [x], [m.output("int8", [count], scale=4.0, zero_point=0)], version=2)
    whole = count // 16 * 16
    expected = [-1] * whole + [-2] * (count - whole)
    case = m.case()
    assert run(case).tolist() == expected == in_litert(case).tolist()


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_values_are_multiplied_in_whole_blocks_of_eight_and_divided_in_the_rest(count):
    m = drafted()
    x = m.input("float32", [count], np.full(count, 2.5), scale=None)
    m.operator("QUANTIZE", [x], [m.output("int8", [count], scale=1.0, zero_point=0)], version=2)
    whole = count // 8 * 8
    expected = [2] * whole + [3] * (count - whole)  # ties to even, ties away from zero
    case = m.case()
    assert run(case).tolist() == expected == in_litert(case).tolist()


def large_sum(type, one, two):
    m = drafted()
    shift = 0 if type == "int16" else 3
    a = m.input(type, one, scale=0.013, zero_point=shift)
    b = m.input(type, two, scale=0.0007, zero_point=-shift if type == "int8" else shift)
    y = m.output(type, scale=0.011, zero_point=shift)
    m.operator("ADD", [a, b], [y], pot_scale_int16=False, version=2)
    return m.case()


SHAPES = [([64, 1001], [64, 1001]), ([30, 5, 77], [30, 1, 77]), ([50, 333], [333]), ([9, 1, 40], [9, 30, 1])]


@pytest.mark.parametrize("type", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_large_sums(type, shapes):
    """An input's shift is folded into the other, or not rounded: one element in 10^5 can tell."""
    case = large_sum(type, *shapes)
    assert (run(case) == in_litert(case)).all()
    assert (run(case, threads=4) == run(case)).all()


@pytest.mark.parametrize("shape", [[1, 2, 3, 8], [2, 1, 1, 16]])
def test_eightfold_sizes(shape):
    """LiteRT has a kernel of its own for these, in fixed point: the same bits."""
    batch, height, width, depth = shape
    m = drafted()
    x = m.input("uint8", shape, scale=0.1, zero_point=3)
    y = m.output("uint8", [batch, 8 * height, 8 * width, depth], scale=0.1, zero_point=3)
    m.operator(
        "RESIZE_BILINEAR", [x, m.constant("int32", [8 * height, 8 * width])], [y], half_pixel_centers=True, version=3
    )
    case = m.case()
    assert (run(case) == in_litert(case)).all()


@pytest.mark.parametrize("steps", [2.0**8, 2.0**9, 2.0**12, 2.0**20])
def test_hard_swish_divides_by_more_than_its_sixteen_bits(steps):
    """Then gemmlowp's division is never nearest to 0: one step more, of negative numbers one less."""
    m = drafted()
    codes = np.arange(-128, 128).astype(np.int8)
    x = m.input("int8", [256], codes, scale=0.01, zero_point=-20)
    m.operator("HARD_SWISH", [x], [m.output("int8", [256], scale=0.01 * steps, zero_point=7)])
    case = m.case()
    assert run(case).tolist() == run(case, "reference").tolist() == in_litert(case).tolist()
    if steps >= 2**12:
        assert set(run(case).tolist()) == {6, 8}


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_change_nothing(threads):
    """The bits are those of one thread, though LiteRT's MEAN depends on how many there are."""
    for seed in range(3):
        m = Draft(seed)
        m.fixed = True
        x = m.input("int8", [2, 40, 40, 77], scale=0.1, zero_point=3)
        y = m.output("int8", [2, 1, 1, 77], scale=0.013, zero_point=-2)
        m.operator("MEAN", [x, m.constant("int32", [1, 2])], [y], keep_dims=True, version=2)
        case = m.case()
        assert (run(case, threads=threads) == run(case)).all()
        assert (run(case) == in_litert(case)).all()
