# SPDX-License-Identifier: Apache-2.0
"""numerics="xnnpack" against LiteRT's default kernels, on models of one operator that XNNPACK takes.

Integers are compared bit for bit; floats too, where every x86 processor with FMA makes the same of them (BITS) or those
with AVX2 and without AVX-512 do (AVX2), or those with AVX-512 (AVX512)."""

from itertools import islice

import differential
import generators
import numpy as np
import oracle
import processor
import pytest
from generators.draft import Draft

import tq

generators.rows()  # enters them all
QUICK, SLOW = 6, 1000  # cases a row
EIGHT = ("int8", "uint8")
CODES = {
    "ADD": EIGHT,
    "BATCH_MATMUL": ("int8-symmetric",),
    "CONCATENATION": ("int8",),
    "CONV_2D": EIGHT,
    "DEPTHWISE_CONV_2D": EIGHT,
    "DEQUANTIZE": EIGHT,
    "ELU": ("int8",),
    "FULLY_CONNECTED": (*EIGHT, "int4", "int2"),
    "LEAKY_RELU": EIGHT,
    "LOGISTIC": EIGHT,
    "MAX_POOL_2D": EIGHT,
    "MEAN": EIGHT,
    "MUL": EIGHT,
    "PAD": EIGHT,
    "QUANTIZE": ("float32-int8", "float32-uint8", "int8-int8", "uint8-uint8"),
    "REDUCE_MAX": EIGHT,
    "REDUCE_MIN": EIGHT,
    "RESIZE_BILINEAR": EIGHT,
    "SUB": EIGHT,
    "SUM": EIGHT,
    "TANH": EIGHT,
    "TRANSPOSE_CONV": EIGHT,
}
PLAIN = """
    ABS ADD AVERAGE_POOL_2D CEIL COS DIV FLOOR GELU HARD_SWISH LEAKY_RELU LOG MAXIMUM MAX_POOL_2D MINIMUM MUL NEG PRELU
    REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RESIZE_BILINEAR ROUND SIN SQUARED_DIFFERENCE SUB TANH
"""
BITS = {
    **dict.fromkeys(PLAIN.split(), ("float32",)),
    "BATCH_MATMUL": ("float32", "hybrid"),
    "CONV_2D": ("float32", "float16", "hybrid"),
    "DEPTHWISE_CONV_2D": ("float32", "float16"),
    "FULLY_CONNECTED": ("float32", "float16", "hybrid", "hybrid-int4", "hybrid-int2"),
    "Convolution2DTransposeBias": ("float32",),
    "TRANSPOSE_CONV": ("float32", "hybrid"),
    "moe": ("float32", "hybrid", "hybrid-int4"),
}
AVX2 = {
    "FULLY_CONNECTED": ("blockwise-int4",),
    **dict.fromkeys(("LOGISTIC", "MEAN", "SOFTMAX", "SUM"), ("float32",)),
}
AVX512 = {"ELU": ("float32",)}
NEAR = dict.fromkeys(("EXP", "RSQRT", "SQRT"), ("float32",))  # within the harness's tolerance


def rows(*tables):
    return [(name, kind) for table in tables for name, kinds in table.items() for kind in kinds]


def is_tall(item):
    """Pools by a filter that is higher than the image, of which XNNPACK adds the rows in another order."""
    return item.name == "AVERAGE_POOL_2D" and item.options["filter_height"] > item.inputs[0].shape[1]


def taken(operator, kind, count, seed):
    """The drawn models of which XNNPACK takes every operator that LiteRT's delegate has not computed before."""
    for number in range(count):
        case = differential.shaped(differential.draw(operator, kind, seed, number))
        if case.shapes:
            continue
        model = tq.Model(case.model)
        whose = differential.backends(model, "xnnpack")
        left = [item for item in model.subgraphs[0].operators if not differential.is_folded(item, "xnnpack")]
        if left and all(whose[item.index] == "xnnpack" and not is_tall(item) for item in left):
            yield case


def check(operator, kind, count, seed, tolerance=None):
    cases = list(islice(taken(operator, kind, 8 * count, seed), count))
    assert len(cases) >= count / 2, f"XNNPACK takes {len(cases)} of {8 * count} models"
    indices = [differential.compared(tq.Model(case.model)) for case in cases]
    asked = list(zip(cases, indices, strict=True))
    theirs, mine = (
        oracle.ask("tensors", [differential.question(c.model, who, c.runs, c.shapes, i) for c, i in asked])
        for who in ("BUILTIN", "TQ xnnpack")
    )
    agree = 0
    for case, a, b in zip(cases, mine, theirs, strict=True):
        if isinstance(b, oracle.Abort | oracle.Refusal):
            continue
        wrong, _ = differential.compare_runs(tq.Model(case.model), case.runs, a, b, "xnnpack", tolerance)
        if wrong:
            pytest.fail(differential.explain(case, str(wrong)), pytrace=False)
        agree += 1
    assert agree >= 0.8 * len(cases)


@pytest.fixture
def plain_floats(monkeypatch):
    """Numbers that are finite and not denormal."""
    floats = Draft.floats
    monkeypatch.setattr(
        Draft,
        "floats",
        lambda self, shape, type="float32", special=0, magnitude=1.0: floats(self, shape, type, 0, magnitude),
    )


def needs(*features):
    if not processor.features() >= {*features}:
        pytest.skip(f"LiteRT's float kernels differ without {', '.join(features)}")


@pytest.mark.parametrize(("operator", "kind"), rows(CODES))
def test_codes(operator, kind):
    check(operator, kind, QUICK, seed=1)


@pytest.mark.parametrize(("operator", "kind"), rows(BITS))
def test_floats_bit_for_bit(operator, kind, plain_floats):
    needs("fma")
    check(operator, kind, QUICK, seed=1, tolerance=0)


@pytest.mark.parametrize(("operator", "kind"), rows(AVX2))
def test_floats_bit_for_bit_without_avx512(operator, kind, plain_floats):
    needs("fma", "avx2")
    check(operator, kind, QUICK, seed=1, tolerance=1e-6 if "avx512f" in processor.features() else 0)


@pytest.mark.parametrize(("operator", "kind"), rows(AVX512))
def test_floats_bit_for_bit_with_avx512(operator, kind, plain_floats):
    check(operator, kind, QUICK, seed=1, tolerance=0 if "avx512f" in processor.features() else 1e-6)


@pytest.mark.parametrize(("operator", "kind"), rows(NEAR))
def test_floats_nearly(operator, kind, plain_floats):
    check(operator, kind, QUICK, seed=1, tolerance=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(("operator", "kind"), rows(CODES, NEAR, AVX2, AVX512))
def test_thousands_of_integers_and_floats_nearly(operator, kind, plain_floats):
    check(operator, kind, SLOW, seed=2, tolerance=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(("operator", "kind"), rows(BITS))
def test_thousands_of_floats_bit_for_bit(operator, kind, plain_floats):
    needs("fma")
    check(operator, kind, SLOW, seed=2, tolerance=0)


# ---- what the rules are, on numbers that show them ----


def run(draft, numerics="xnnpack", threads=1):
    case = draft.case()
    interpreter = tq.Interpreter(model_content=case.model, numerics=numerics, num_threads=threads)
    interpreter.allocate_tensors()
    for index, value in case.runs[0].items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    assert {row.numerics for row in interpreter.backends()} <= {numerics, "xnnpack"}
    return interpreter.get_tensor(draft.outputs[0])


def layer(values, scale, activation="NONE"):
    """FULLY_CONNECTED of one column with the weight 1: what its requantization makes of the values."""
    m = Draft(0)
    m.fixed = True
    x = m.input("int8", [len(values), 1], values, scale=1.0, zero_point=0)
    w = m.constant("int8", [[1]], scale=1.0, zero_point=0)
    b = m.constant("int32", [0], scale=1.0, zero_point=0)
    y = m.output("int8", [len(values), 1], scale=scale, zero_point=1)
    m.operator("FULLY_CONNECTED", [x, w, b], [y], fused_activation_function=activation)
    return m


def test_sums_round_ties_to_even_before_the_zero_point():
    codes = np.int8([-5, -3, -1, 1, 3, 5])
    assert run(layer(codes, 2.0)).reshape(-1).tolist() == [-1, -1, 1, 1, 3, 3]  # of -2.5, -1.5, -0.5, 0.5, 1.5, 2.5
    assert run(layer(codes, 2.0), "reference").reshape(-1).tolist() == [-2, -1, 0, 2, 3, 4]


def test_bounds_of_activations_have_the_zero_point_inside_the_rounding():
    codes = np.int8([100, -100])
    assert run(layer(codes, 4.0, "RELU6")).reshape(-1).tolist() == [2, 1]  # even(6 / 4 + 1)
    assert run(layer(codes, 4.0, "RELU6"), "reference").reshape(-1).tolist() == [3, 1]  # 1 + away(6 / 4)


def codes(operator, values, scale, zero_point, again=False, **options):
    """An operator of quantized values of scale 1, and of itself again or not."""
    m = Draft(0)
    m.fixed = True
    x = m.input("int8", [len(values)], np.int8(values), scale=1.0, zero_point=0)
    y = m.output("int8", [len(values)], scale=scale, zero_point=zero_point)
    inputs = [x, x] if again else [x]
    if operator in ("ADD", "SUB"):
        inputs.append(m.input("int8", [len(values)], np.zeros(len(values)), scale=1.0, zero_point=0))
    m.operator(operator, inputs, [y], **options)
    return m


def test_sums_of_two_tensors_round_ties_up():
    assert run(codes("ADD", [-3, -1, 1, 3], 2.0, 0)).tolist() == [-1, 0, 1, 2]
    assert run(codes("SUB", [-3, -1, 1, 3], 2.0, 0)).tolist() == [-1, 0, 1, 2]


def sum_of_codes(a, b, first, second, output, bits=20):
    """XNNPACK's formula of ADD for zero points of 0; 20: its own bits."""
    ratios = np.float32([first, second]) / np.float32(output)
    n = bits - int(np.floor(np.log2(ratios.max())))
    m = np.rint(ratios * 2.0**n).astype(np.int64)
    return np.clip((2 ** (n - 1) + m[0] * a + m[1] * b) >> n, -128, 127)


def test_multipliers_of_sums_have_21_bits():
    """All pairs of quantized values with which one bit less would show."""
    rng = np.random.default_rng(3)
    a, b = (grid.reshape(-1) for grid in np.mgrid[-128:128, -128:128])
    exact = coarse = None
    while exact is None or (exact == coarse).all():
        scales = np.float32(rng.uniform(0.1, 1, 3))
        exact, coarse = (sum_of_codes(a, b, *scales, bits) for bits in (20, 19))
    m = Draft(0)
    m.fixed = True
    x, y = (m.input("int8", [a.size], np.int8(v), scale=s, zero_point=0) for v, s in ((a, scales[0]), (b, scales[1])))
    z = m.output("int8", [a.size], scale=scales[2], zero_point=0)
    m.operator("ADD", [x, y], [z])
    assert (run(m) == exact).all()


def test_multipliers_of_products_are_rounded_from_left_to_right():
    """f32(f32(s_x s_w) / s_o) is the float next to 1 / 6, and f32(f32(s_x / s_o) s_w) the one below."""
    f32, sums = np.float32, np.arange(-99, 102, 6)
    s_x, s_w, s_o = f32(17), f32(1) / f32(17), f32(6)
    meant, other = (np.rint(f32(sums) * k) for k in (s_x * s_w / s_o, s_x / s_o * s_w))
    assert (meant != other).any()
    m = Draft(0)
    m.fixed = True
    x = m.input("int8", [1, 1], [[0]], scale=s_x, zero_point=0)
    w = m.constant("int8", np.ones([len(sums), 1]), scale=s_w, zero_point=0)
    b = m.constant("int32", sums, scale=1.0, zero_point=0)
    y = m.output("int8", [1, len(sums)], scale=s_o, zero_point=0)
    m.operator("FULLY_CONNECTED", [x, w, b], [y])
    assert (run(m)[0] == meant).all()


def test_tables_have_the_zero_point_inside_the_rounding():
    assert run(codes("ELU", [1, 3, 5], 2.0, 1)).tolist() == [2, 2, 4]  # even of 1.5, 2.5, 3.5
    assert run(codes("ELU", [1, 3, 5], 2.0, 0)).tolist() == [0, 2, 2]


def test_the_square_of_a_tensor_is_a_table_and_a_product_of_two_is_none():
    relu6 = {"fused_activation_function": "RELU6"}
    assert run(codes("MUL", [1, 3, 9], 2.0, 1, again=True, **relu6)).tolist() == [2, 4, 4]  # even(1.5), even(5.5) and 4
    m = codes("MUL", [1, 3, 9], 2.0, 1, **relu6)
    m.operators[0].inputs = [0, m.input("int8", [3], np.int8([1, 3, 9]), scale=1.0, zero_point=0)]
    assert run(m).tolist() == [1, 4, 4]  # 1 + even(0.5), and bounds


def product(values, factor):
    m = Draft(0)
    m.fixed = True
    x = m.input("float32", np.shape(values), values)
    y = m.input("float32", np.shape(values), np.full(np.shape(values), factor))
    m.operator("MUL", [x, y], [m.output("float32", np.shape(values))])
    return m


@pytest.mark.parametrize("threads", [1, 4])
def test_denormal_numbers_are_zero_on_every_thread_and_only_there(threads):
    values = np.full(1 << 20, 1e-30, np.float32)
    assert not run(product(values, 1e-10), threads=threads).any()
    assert run(product(values, 1e-10), "reference", threads).all()
    assert (np.full(4, 1e-30, np.float32) * np.float32(1e-10)).all()  # the caller's arithmetic is as it was


def test_denormal_numbers_are_zero_in_those_operators_alone_that_xnnpack_runs():
    b = tq.ModelBuilder()
    x, tiny = b.input("x", [4], "float32"), b.constant("tiny", np.float32([1e-10]))
    axis, shape = b.constant("axis", np.int32(0)), b.constant("shape", np.int32([2, 2]))
    results = [b.tensor(name, [4], "float32") for name in ("product", "sums", "again")]
    copy = b.tensor("copy", [2, 2], "float32")
    b.operator("MUL", [x, tiny], [results[0]])
    b.operator("RESHAPE", [x, shape], [copy])
    b.operator("CUMSUM", [x, axis], [results[1]])  # no operator of XNNPACK
    b.operator("MUL", [x, tiny], [results[2]])
    for output in [*results, copy]:
        b.output(output)
    it = tq.Interpreter(model_content=b.to_bytes(), numerics="xnnpack")
    it.allocate_tensors()
    denormal = np.full(4, 1e-40, np.float32)
    it.set_tensor(it.get_input_details()[0]["index"], denormal)
    for _ in range(2):
        it.invoke()
        product, sums, again, copied = (it.get_tensor(d["index"]) for d in it.get_output_details())
        assert not product.any()
        assert sums.all()
        assert not again.any()
        assert (copied == denormal[0]).all()
        assert (denormal * np.float32(0.5)).all()  # the caller's arithmetic is as it was


def test_an_infinity_stays_one_without_an_activation():
    assert np.isinf(run(product(np.float32([3e38]), 10))).all()
    assert run(product(np.float32([3e38]), 10), "reference") == np.finfo(np.float32).max


def test_products_of_few_channels_are_fused_too():
    """They have loops of their own in kernels/gemm/gemm_loops.c."""
    needs("fma")
    questions, mine = [], []
    for number, (channels, depth, rows) in enumerate([(1, 1, 40), (1, 7, 3), (1, 60, 33), (2, 4, 17), (4, 3, 70)]):
        draw, b = np.random.default_rng(number), tq.ModelBuilder()
        x = b.input("x", [rows, depth], "float32")
        w = b.constant("w", draw.standard_normal((channels, depth)).astype(np.float32))
        bias = b.constant("bias", draw.standard_normal(channels).astype(np.float32))
        y = b.tensor("y", [rows, channels], "float32")
        b.operator("FULLY_CONNECTED", [x, w, bias], [y])
        b.output(y)
        values = draw.standard_normal((rows, depth)).astype(np.float32)
        questions.append((b.to_bytes(), "BUILTIN", [{0: values}], {}, [3]))
        made = tq.Interpreter(model_content=questions[-1][0], numerics="xnnpack")
        made.allocate_tensors()
        made.set_tensor(0, values)
        made.invoke()
        mine.append(made.get_tensor(3))
    for expected, found in zip(oracle.ask("tensors", questions), mine, strict=True):
        np.testing.assert_array_equal(found, expected[0][3])


@pytest.mark.parametrize(("name", "value"), [("REDUCE_MAX", -np.inf), ("REDUCE_MIN", np.inf)])
def test_maxima_without_elements_are_the_lowest_value(name, value):
    m = Draft(0)
    m.fixed = True
    x, axis = m.input("float32", [4, 2, 0]), m.constant("int32", [2])
    m.operator(name, [x, axis], [m.output("float32", [4, 2])], version=2)
    for who in ("TQ xnnpack", "BUILTIN"):
        (answer,) = oracle.ask("tensors", [differential.question(m.case().model, who, m.case().runs)])
        assert (answer[0][2] == value).all()


def test_matrices_of_six_dimensions():
    """One more than the other kernels take."""
    m = Draft(0)
    m.fixed = True
    a, b = (m.input("int8", shape, scale=0.1, zero_point=0) for shape in ([2, 1, 2, 1, 3, 5], [2, 2, 3, 5, 4]))
    y = m.output("int8", [2, 2, 2, 3, 3, 4], scale=3.0, zero_point=1)
    m.operator("BATCH_MATMUL", [a, b], [y], version=3)
    case = m.case()
    mine, theirs, reference = (
        next(oracle.ask("tensors", [differential.question(case.model, who, case.runs)]))
        for who in ("TQ xnnpack", "BUILTIN", "TQ")
    )
    assert (mine[0][y] == theirs[0][y]).all()
    assert isinstance(reference, oracle.Refusal)


@pytest.mark.parametrize("filter_size", [3, 4])
@pytest.mark.parametrize("kind, weights", [("float32", "float32"), ("int8", "int8"), ("float32", "int8")])
def test_transposed_convolutions_of_more_images(kind, weights, filter_size):
    """A constant output shape says 1 image; XNNPACK asks the input, which was resized."""
    m = Draft(0)
    m.fixed = True
    q = {"scale": 0.1, "zero_point": 0}
    x = m.input(kind, [1, 4, 5, 6], **(q if kind == "int8" else {}))
    w = m.constant(weights, m.draw(weights, [7, filter_size, filter_size, 6]), **(q if weights == "int8" else {}))
    y = m.output(kind, [1, 8, 10, 7], **({"scale": 30.0, "zero_point": 5} if kind == "int8" else {}))
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    m.operator("TRANSPOSE_CONV", [m.constant("int32", [1, 8, 10, 7]), w, x], [y], **options, version=3)
    for batch in (1, 3):
        shape = [batch, 4, 5, 6]
        runs = [{x: m.draw(kind, shape)}]
        mine, theirs = (
            next(oracle.ask("tensors", [(m.case().model, who, runs, {x: shape}, [y])]))
            for who in ("TQ xnnpack", "BUILTIN")
        )
        assert mine[0][y].shape == theirs[0][y].shape == (batch, 8, 10, 7)
        np.testing.assert_array_equal(mine[0][y], theirs[0][y])


def test_exponentials_end_where_xnnpack_ends_them():
    """An infinity comes before float32 ends, and 0 with the last normal number."""
    ends = [np.float32(end) + np.arange(-40, 40) * np.spacing(np.float32(end)) for end in (88.376263, -87.336655)]
    x = np.concatenate(ends).astype(np.float32)
    m = Draft(0)
    m.fixed = True
    m.operator("EXP", [m.input("float32", [x.size], x)], [m.output("float32", [x.size])])
    mine, theirs = (
        next(oracle.ask("tensors", [differential.question(m.case().model, who, m.case().runs)]))[0][1]
        for who in ("TQ xnnpack", "BUILTIN")
    )
    for special in (np.isinf, np.logical_not):
        assert 0 < special(theirs).sum() < 80
        assert (special(mine) == special(theirs)).all()
