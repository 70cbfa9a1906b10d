# SPDX-License-Identifier: Apache-2.0
"""Where LiteRT's reference kernels do not compute what an operator means, and tq does.

    @deviation("MUL", when="...", litert="...", tq="...", example=draw)
    def multiply(node):
        ...  # None where the row does not apply to this node, else what its outputs are

Each output is an array, a pair (array, largest difference), None: LiteRT's, or UNPROMISED.  `node` is a
differential.Node.
example: a function of a Draft that draws a model on which LiteRT does what the row says; tests/test_deviations.py runs
it.  docs/deviations.md is this table:  python tests/deviations.py > docs/deviations.md
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROWS = []
EVERY = ("reference", "optimized", "xnnpack")
NOT_XNNPACK = EVERY[:2]
UNPROMISED = object()  # an output that is neither LiteRT's nor said


@dataclass(frozen=True, eq=False)
class Deviation:
    operators: tuple
    when: str
    litert: str
    tq: str
    outputs: Callable
    example: Callable
    numerics: tuple = EVERY

    def __str__(self):
        return f"{', '.join(self.operators)}: {self.when}"


def deviation(*operators, when, litert, tq, example, numerics=EVERY):
    """Enters the function below as a row.  numerics: those of LiteRT's kernels that do it."""

    def enter(function):
        ROWS.append(Deviation(operators, when, litert, tq, function, example, numerics))
        return function

    return enter


def find(node):
    """The row that a node falls under, or None."""
    rows = (row for row in ROWS if node.name in row.operators and node.numerics in row.numerics)
    return next((row for row in rows if row.outputs(node) is not None), None)


def only_where(node, strange, meant):
    """`meant` where LiteRT does something strange, and elsewhere what it does: the numerics' own rounding."""
    value = node.outputs[0].value
    return meant if node.numerics == "reference" or value is None else np.where(strange, meant, value)


# ---- arithmetic ----

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
CODES = ("int8", "uint8", "int16")
INT32 = RANGES["int32"]


def kind(operand):
    """The type's name: INT4 is held in int8."""
    return operand.type


def limits(operand):
    return RANGES.get(kind(operand), INT32)


def is_coded(node, inputs=None):
    """Whether the first inputs and output 0 are codes with one scale each."""
    operands = [*node.inputs[:inputs], node.outputs[0]]
    return all(o is not None and kind(o) in RANGES and len(o.scale) == 1 for o in operands)


def is_known(node):
    return all(o is None or o.value is not None for o in node.inputs)


def scale(operand):
    return np.float32(operand.scale[0])


def centered(operand):
    """Codes less their zero point, as int64."""
    return operand.value.astype(np.int64) - int(operand.zero_point[0])


def real(operand):
    return centered(operand) * float(operand.scale[0])


def away(x):
    return np.trunc(x + np.copysign(0.5, x))


def coded(operand, values, low=None, high=None):
    """The nearest codes of real numbers; NaN as the zero point."""
    least, most = limits(operand)
    with np.errstate(all="ignore"):
        codes = away(values / float(operand.scale[0])) + int(operand.zero_point[0])
    codes = np.where(np.isnan(codes), int(operand.zero_point[0]), codes)
    codes = np.clip(codes, least if low is None else max(least, low), most if high is None else min(most, high))
    return codes.astype(operand.value.dtype if operand.value is not None else kind(operand))


def activation(node):
    """The bounds that a fused activation puts on real numbers."""
    name = getattr(node.options.get("fused_activation_function"), "name", "NONE")
    return {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}.get(name, (-np.inf, np.inf))


def bounded(node, values):
    return coded(node.outputs[0], np.clip(values, *activation(node)))


def multiplier(value):
    """quantize_multiplier of a float: (m, e); of infinity it makes 0."""
    if value == 0 or math.isinf(value):
        return 0, 0
    fraction, exponent = math.frexp(float(value))
    fixed = math.floor(abs(fraction) * 2**31 + 0.5) * (1 if fraction > 0 else -1)
    if fixed == 2**31:
        fixed, exponent = fixed // 2, exponent + 1
    return (0, 0) if exponent < -31 else (fixed, exponent)


def multiply(x, m, e):
    """MultiplyByQuantizedMultiplier of an int64 array; its shift to the left saturates."""
    left = np.clip(x * 2 ** max(min(e, 31), 0), *INT32)
    high = np.clip((left * m + 2**30) >> 31, *INT32)
    if e >= 0:
        return high
    n = min(-e, 62)
    return (high + (1 << (n - 1)) - (high < 0)) >> n


def bit_length(x):
    return np.where(x > 0, np.floor(np.log2(np.maximum(x, 1))).astype(np.int64) + 1, 0)


# ---- sums ----


def sum_multiplier(node, bits, squares=1):
    """The output multiplier of ADD, SUB and SQUARED_DIFFERENCE."""
    twice = float(np.float32(2) * max(scale(node.inputs[0]), scale(node.inputs[1])))
    return twice**squares / float(np.float32(2.0 ** (bits * squares)) * scale(node.outputs[0]))


def absurd_sum(name):
    def draw(m):
        x = m.input("int8", [40], scale=1.0, zero_point=0)
        y = m.input("int8", [40], scale=0.5, zero_point=0)
        z = m.output("int8", scale=1e-7 if name != "SQUARED_DIFFERENCE" else 1e-5, zero_point=0)
        m.operator(name, [x, y], [z], version=2)

    return draw


def large_sum(node, function, squares=1):
    if not is_coded(node) or not is_known(node):
        return None
    bits = 7 if squares == 2 else 15 if kind(node.inputs[0]) == "int16" else 20
    if sum_multiplier(node, bits, squares) < 1:
        return None
    with np.errstate(over="ignore"):
        return [(bounded(node, function(real(node.inputs[0]), real(node.inputs[1]))), 1)]


@deviation(
    "ADD",
    when="codes, twice the larger input scale is at least 2^20 (INT16: 2^15) times the output's",
    litert="ends the process",
    tq="the sum, with the shift to the left that its multiplier needs",
    example=absurd_sum("ADD"),
)
def large_add(node):
    return large_sum(node, np.add)


def steep_sum(m):

    x = m.input("int8", [40], scale=0.0629, zero_point=0)
    y = m.input("int8", [40], scale=0.0031, zero_point=-95)
    m.operator("ADD", [x, y], [m.output("int8", scale=0.000185, zero_point=54)], version=2)


@deviation(
    "ADD",
    when="INT8 or UINT8, an input scale is at least 2^7 times the output's",
    litert="loses the upper bits of what it adds up in 16",
    tq="the sum, saturated",
    numerics=("optimized",),
    example=steep_sum,
)
def steep_add(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) not in ("int8", "uint8"):
        return None
    if max(scale(operand) for operand in node.inputs[:2]) < 2**7 * scale(node.outputs[0]):
        return None
    with np.errstate(over="ignore"):
        return [(bounded(node, real(node.inputs[0]) + real(node.inputs[1])), 1)]


@deviation(
    "SUB",
    when="codes, twice the larger input scale is at least 2^20 (INT16: 2^15) times the output's",
    litert="shifts by a negative number of places: any codes",
    tq="the difference, with the shift to the left that its multiplier needs",
    example=absurd_sum("SUB"),
)
def large_sub(node):
    return large_sum(node, np.subtract)


@deviation(
    "SQUARED_DIFFERENCE",
    when="codes, the square of twice the larger input scale is at least 2^14 times the output's",
    litert="ends the process",
    tq="the square, with the shift to the left that its multiplier needs",
    example=absurd_sum("SQUARED_DIFFERENCE"),
)
def large_square(node):
    return large_sum(node, lambda a, b: (a - b) ** 2, squares=2)


def shifted_broadcast(m):

    x = m.input("int16", [4, 5], scale=2.0**-10, zero_point=0)
    y = m.input("int16", [5], scale=2.0**-12, zero_point=0)
    z = m.output("int16", scale=2.0**-10, zero_point=0)
    m.operator("ADD", [x, y], [z], pot_scale_int16=True, version=2)


@deviation(
    "ADD",
    when="INT16, pot_scale_int16, three scales that are powers of two, and broadcasting",
    litert="ends the process",
    tq="broadcasts, as its SUB does",
    example=shifted_broadcast,
)
def shifted_add(node):
    if not is_coded(node) or kind(node.inputs[0]) != "int16" or not node.options.get("pot_scale_int16"):
        return None
    powers = [math.log2(scale(o)) for o in (*node.inputs, node.outputs[0])]
    if node.inputs[0].shape == node.inputs[1].shape or any(p != round(p) for p in powers) or not is_known(node):
        return None
    return [(bounded(node, real(node.inputs[0]) + real(node.inputs[1])), 1)]


# ---- products and rescaling ----


def wide_product(m):

    x, y = (m.input("int16", [300], scale=1.0, zero_point=0) for _ in range(2))
    z = m.output("int16", scale=0.03, zero_point=0)
    m.operator("MUL", [x, y], [z], version=4)


@deviation(
    "MUL",
    when="INT16, a product of codes times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any codes",
    tq="saturates",
    example=wide_product,
)
def wide_multiply(node):
    if not is_coded(node) or not is_known(node) or kind(node.outputs[0]) != kind(node.inputs[0]):
        return None
    m, e = multiplier(scale(node.inputs[0]) * scale(node.inputs[1]) / scale(node.outputs[0]))
    product = centered(node.inputs[0]) * centered(node.inputs[1])
    if e <= 0 or not (abs(product) * 2.0**e >= 2**31).any():
        return None
    low, high = activation(node)
    codes = multiply(product, m, e) * float(scale(node.outputs[0]))
    return [coded(node.outputs[0], np.clip(codes, low, high))]


def steep_product(m):

    x, y = (m.input("int8", [40], np.full(40, 120), scale=0.01, zero_point=-50) for _ in range(2))
    m.operator("MUL", [x, y], [m.output("int8", scale=0.00005, zero_point=47)], version=2)


@deviation(
    "MUL",
    when="INT8 or UINT8, a product that is 2^15 steps of the output away from code 0",
    litert="adds the zero point in 16 bits, and wraps",
    tq="saturates",
    numerics=("optimized",),
    example=steep_product,
)
def steep_multiply(node):
    if not is_coded(node) or not is_known(node) or any(kind(o) not in ("int8", "uint8") for o in node.inputs):
        return None
    with np.errstate(over="ignore"):
        values = real(node.inputs[0]) * real(node.inputs[1])
    steps = values / float(scale(node.outputs[0])) + int(node.outputs[0].zero_point[0])
    return [(bounded(node, values), 1)] if (abs(steps) >= 2**15 - 1).any() else None


def wide_rescaling(m):

    x = m.input("int32", [20], np.full(20, 2**24), scale=1.0, zero_point=0)
    m.operator("QUANTIZE", [x], [m.output("int16", scale=0.001, zero_point=0)], version=3)


@deviation(
    "QUANTIZE",
    when="codes to codes, a code times the power of two in the multiplier is 2^31 or more",
    litert="wraps to 32 bits: any codes",
    tq="saturates",
    example=wide_rescaling,
)
def wide_requantize(node):
    if not is_coded(node) or not is_known(node):
        return None
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(node.outputs[0])))
    x = centered(node.inputs[0])
    if e <= 0 or not (abs(x) * 2.0**e >= 2**31).any():
        return None
    out = node.outputs[0]
    return [np.clip(multiply(x, m, e) + int(out.zero_point[0]), *limits(out)).astype(kind(out))]


def coarse_words(m):
    x = m.input("int16", [40], np.linspace(-(2**15), 2**15 - 1, 40).astype(np.int16), scale=8.7, zero_point=0)
    m.operator("TANH", [x], [m.output("int16", scale=2.0**-15, zero_point=0)])


@deviation(
    "LOGISTIC",
    "TANH",
    when="INT16, a code times 12288 scales is 2^31 or more",
    litert="wraps to 32 bits: any codes",
    tq="saturates",
    example=coarse_words,
)
def coarse_curves(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    steps = centered(node.inputs[0]) * math.floor(float(scale(node.inputs[0])) * 12288)
    if not (abs(steps) >= 2**31).any():
        return None
    x = real(node.inputs[0])
    with np.errstate(over="ignore"):
        values = np.tanh(x) if node.name == "TANH" else 1 / (1 + np.exp(-x))
    return [(coded(node.outputs[0], values), 4)]


def far_pool(m):
    x, y = (make("int16", [1, 6, 5, 8], scale=2e-9, zero_point=0) for make in (m.input, m.output))
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    m.operator("MAX_POOL_2D", [x], [y], fused_activation_function="RELU6", version=3, **options)


def windows(node):
    """What each output element is made of: [row][column], an array [batch, taps, channels] of INT64."""
    values, options = node.inputs[0].value.astype(np.int64), node.options
    parts = []
    for n, axis, name in ((values.shape[1], "h", "height"), (values.shape[2], "w", "width")):
        reach, stride = options[f"filter_{name}"], options[f"stride_{axis}"]
        same = getattr(options["padding"], "name", "SAME") == "SAME"
        count = -(-n // stride) if same else (n + stride - reach) // stride
        before = max((count - 1) * stride + reach - n, 0) // 2 if same else 0
        parts.append([slice(max(k * stride - before, 0), k * stride - before + reach) for k in range(count)])
    return [[values[:, y, x].reshape(len(values), -1, values.shape[3]) for x in parts[1]] for y in parts[0]]


@deviation(
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    when="codes, a fused activation with a bound that is 2^31 steps of the output or more",
    litert="goes on with bounds that it has not computed: any codes",
    tq="saturates",
    example=far_pool,
    numerics=NOT_XNNPACK,
)
def far_pools(node):
    if not is_coded(node) or not is_known(node):
        return None
    low, high = activation(node)
    if not 2**31 * float(scale(node.outputs[0])) <= (high if high < np.inf else 0):
        return None
    way = np.max if node.name == "MAX_POOL_2D" else np.mean
    cells = np.array([[way(cell, axis=1) for cell in row] for row in windows(node)]).transpose(2, 0, 1, 3)
    least, most = limits(node.outputs[0])
    lowest = least if low < 0 else max(least, int(node.outputs[0].zero_point[0]))
    return [np.clip(away(cells), lowest, most).astype(kind(node.outputs[0]))]


def quotient(m):

    x = m.input("uint8", [256], np.arange(256), scale=0.02, zero_point=128)
    y = m.input("uint8", [256], np.full(256, 209), scale=0.01, zero_point=0)
    m.operator("DIV", [x, y], [m.output("uint8", scale=0.1, zero_point=100)], version=2)


@deviation(
    "DIV",
    when="codes, a quotient that is far smaller than the output's scale, such as 0 / x, or far greater",
    litert="shifts by more than 31 places, or by a negative number: 1 more, or any codes",
    tq="the quotient",
    example=quotient,
)
def far_quotient(node):
    if not is_coded(node) or not is_known(node):
        return None
    a, b = np.broadcast_arrays(centered(node.inputs[0]), centered(node.inputs[1]))
    _, e = multiplier(scale(node.inputs[0]) / (scale(node.inputs[1]) * scale(node.outputs[0])))
    a, b = np.where(b < 0, -a, a), abs(b)
    room = np.where(a == 0, 31, 31 - bit_length(np.where(a < 0, ~a, a)))
    places = e - (bit_length(b) - 1) - room
    if not ((places > 0) | (places < -31)).any():
        return None
    with np.errstate(all="ignore"):
        values = a * float(scale(node.inputs[0])) / (b * float(scale(node.inputs[1])))
    return [(bounded(node, values), 1)]


def far_root(m):
    x = m.input("int8", [16], np.arange(-120, 136, 16), scale=0.0164, zero_point=-128)
    m.operator("RSQRT", [x], [m.output("int8", scale=4e4, zero_point=-128)], version=2)


@deviation(
    "RSQRT",
    when="INT8, with an output's scale that is far greater or far smaller than its numbers",
    litert="shifts by more than 31 places, or out of 32 bits: any codes",
    tq="the code nearest to the number",
    example=far_root,
)
def far_roots(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) != "int8":
        return None
    value = centered(node.inputs[0])
    if (value < 0).any():
        return None
    _, e = multiplier(1 / (math.sqrt(scale(node.inputs[0])) * float(scale(node.outputs[0]))))
    places, least = e - 20, min(value[value > 0], default=1)
    if places >= -31 and (places <= 0 or 2.0 ** (20 + places) / math.sqrt(least) < 2**31):
        return None
    with np.errstate(divide="ignore"):
        return [(coded(node.outputs[0], 1 / np.sqrt(real(node.inputs[0]))), 1)]


def slopes(m):
    x = m.input("int16", [2, 8], scale=0.01, zero_point=0)
    y = m.constant("int16", m.integers("int16", [8], -3000, 3000), scale=0.0003, zero_point=0)
    m.operator("PRELU", [x, y], [m.output("int16", scale=0.01, zero_point=0)])


@deviation(
    "PRELU",
    when="INT16 with INT16 slopes",
    litert="reads the slopes as INT8",
    tq="reads what they are",
    example=slopes,
)
def wide_slopes(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[1]) != "int16":
        return None
    x, slope, out = (scale(o) for o in (*node.inputs, node.outputs[0]))
    value = centered(node.inputs[0])
    above = multiply(value, *multiplier(x / out))
    below = multiply(value * centered(node.inputs[1]), *multiplier(x * slope / out))
    return [np.clip(np.where(value >= 0, above, below), *RANGES["int16"]).astype(np.int16)]


# ---- numbers ----


def infinities(m):

    x = m.input("float32", [6], [np.inf, -np.inf, np.nan, 1e20, -1e20, 1.0])
    m.operator("QUANTIZE", [x], [m.output("int8", scale=0.1, zero_point=3)], version=2)


@deviation(
    "QUANTIZE",
    when="FLOAT32, a value of 2^31 scales or more, an infinity or NaN",
    litert="converts out of range; on x86 all give the least code, or with some zero points the greatest",
    tq="saturates; NaN gives the zero point",
    example=infinities,
)
def far_values(node):
    x, out = node.inputs[0], node.outputs[0]
    if kind(x) != "float32" or x.value is None or not len(out.scale):
        return None
    shape = [1] * x.value.ndim
    if len(out.scale) > 1:
        shape[out.axis] = -1
    s, z = np.float32(out.scale).reshape(shape), np.int64(out.zero_point).reshape(shape)
    with np.errstate(all="ignore"):
        steps = (x.value / s).astype(np.float32)
        if (abs(steps) < 2**31).all():
            return None
        low, high = {"int4": (-8, 7), "uint4": (0, 15)}.get(kind(out)) or limits(out)
        codes = np.where(np.isnan(steps), z, np.clip(away(np.clip(steps.astype(float), -1e15, 1e15)) + z, low, high))
        codes = only_where(node, ~(abs(steps) < 2**31), codes)
    return [codes.astype({"int4": "int8", "uint4": "uint8"}.get(kind(out), kind(out)))]


def least_by_minus_one(m):

    x = m.input("int8", [64], np.full(64, -128), scale=None)
    y = m.input("int8", [64], np.full(64, -1), scale=None)
    m.operator("FLOOR_DIV", [x, y], [m.output("int8", scale=None)], version=2)


@deviation(
    "FLOOR_DIV",
    when="the least integer divided by -1",
    litert="converts out of range: the greatest or the least integer",
    tq="wraps to the least integer",
    example=least_by_minus_one,
)
def wrapped_quotient(node):
    x, y = node.inputs
    if not is_known(node) or x.value.dtype.kind != "i":
        return None
    if not ((x.value == np.iinfo(x.value.dtype).min) & (y.value == -1)).any() or (y.value == 0).any():
        return None
    wide = x.value.astype(np.int64) // y.value.astype(np.int64)
    return [wide.astype(x.value.dtype)]


def large_powers(m):

    x = m.input("int32", [5], [3, -7, 12, 99, 2])
    y = m.input("int32", [5], [40, 33, 21, 9, 31])
    m.operator("POW", [x, y], [m.output("int32")])


@deviation(
    "POW",
    when="INT32, a power of 2^31 or more",
    litert="converts out of range: the least integer",
    tq="wraps, as products of INT32 do",
    example=large_powers,
)
def wrapped_power(node):
    if not is_known(node) or node.inputs[0].value.dtype != np.int32 or (node.inputs[1].value < 0).any():
        return None
    x, y = np.broadcast_arrays(node.inputs[0].value, node.inputs[1].value)
    if not (np.abs(x.astype(float)) ** y >= 2**31).any():
        return None
    wrapped = [pow(int(a), int(b), 2**32) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return [np.array(wrapped, np.uint32).astype(np.int32).reshape(x.shape)]


def unsigned_bounds(m):

    x, y = (m.input("uint32", [9], np.arange(9)) for _ in range(2))
    m.operator("MUL", [x, y], [m.output("uint32")], fused_activation_function="RELU_N1_TO_1", version=7)


@deviation(
    "MUL",
    when="UINT32 with RELU_N1_TO_1",
    litert="takes -1 as the greatest integer: always 1",
    tq="bounds to [0, 1]",
    example=unsigned_bounds,
)
def unsigned_product(node):
    if not is_known(node) or kind(node.inputs[0]) != "uint32" or activation(node) != (-1, 1):
        return None
    return [np.minimum(node.inputs[0].value * node.inputs[1].value, np.uint32(1))]


# ---- comparisons ----


def coarse(m):
    x = m.input("int8", [50], scale=1.5, zero_point=0)
    y = m.input("int8", [50], scale=2.5, zero_point=0)
    m.operator("LESS", [x, y], [m.output("bool")], version=2)


COMPARISONS = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


@deviation(
    *COMPARISONS,
    when="codes, a scale of 1 or more",
    litert="ends the process at 1; above, loses the multiplier's shift: any answers",
    tq="compares in steps of 1/256, as below 1",
    example=coarse,
)
def coarse_comparison(node):
    if not is_known(node) or any(kind(o) not in CODES or len(o.scale) != 1 for o in node.inputs):
        return None
    raw = kind(node.inputs[0]) == "int16" and node.name not in ("EQUAL", "NOT_EQUAL")
    if raw or max(scale(o) for o in node.inputs) < 1:
        return None
    sides = [multiply(centered(o) * 256, *multiplier(scale(o))) for o in node.inputs]
    return [COMPARISONS[node.name](*sides)]


def unscaled_words(m):
    x, y = (m.input("int16", [50], m.integers("int16", [50], 0, 2), scale=None) for _ in range(2))
    m.operator("NOT_EQUAL", [x, y], [m.output("bool")], version=4)


@deviation(
    "NOT_EQUAL",
    when="INT16 without a scale",
    litert="writes nothing: any answers",
    tq="compares the integers",
    example=unscaled_words,
)
def compared_words(node):
    if not is_known(node) or kind(node.inputs[0]) != "int16" or len(node.inputs[0].scale):
        return None
    return [node.inputs[0].value != node.inputs[1].value]


# ---- tables ----


def fine_six(m):
    x = m.input("int16", [4], [0, 1, 100, 32767], scale=1e-9, zero_point=0)
    m.operator("RELU6", [x], [m.output("int16", scale=1e-9, zero_point=0)])


RECTIFIERS = {"RELU6": (0, 6), "RELU_0_TO_1": (0, 1), "RELU_N1_TO_1": (-1, 1)}


@deviation(
    *RECTIFIERS,
    when="codes, an output scale with which a bound is 2^31 codes or more",
    litert="converts the bound out of range: on x86 the least integer",
    tq="saturates",
    example=fine_six,
)
def bound_of_fine_codes(node):
    low, high = RECTIFIERS[node.name]
    if not is_coded(node) or not is_known(node) or high / float(scale(node.outputs[0])) < 2**31:
        return None
    x, out = node.inputs[0], node.outputs[0]
    m, e = multiplier(np.float32(scale(x) / scale(out)))
    zero, (least, most) = int(out.zero_point[0]), limits(out)
    return [np.clip(multiply(centered(x), m, e) + zero, least if low else zero, most).astype(kind(out))]


def steep_words(m):

    x = m.input("int16", [512], np.arange(-(2**15), 2**15, 128), scale=0.01, zero_point=0)
    m.operator("EXP", [x], [m.output("int16", scale=0.01, zero_point=0)], version=2)


@deviation(
    "EXP",
    when="INT16, an input scale with which e^x overflows float32",
    litert="tabulates not-a-numbers: 0",
    tq="saturates to the greatest code",
    example=steep_words,
)
def steep_exponential_of_words(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    s, out = scale(node.inputs[0]), scale(node.outputs[0])
    if float(s) * 32767 < 88.7:
        return None
    f = np.float32
    with np.errstate(all="ignore"):
        low, high = s * f(-32768), s * f(32767)
        step = (high - low) / f(512)
        inverse = f(65536) / (out * f(32767) - out * f(-32768))

        def at(x):
            return np.exp(x.astype(f).astype(float)).astype(f)

        i = np.arange(512).astype(f)
        here, middle, after = at(low + i * step), at(low + i * step + step / f(2)), at(low + (i + f(1)) * step)
        sample = away(here * inverse).astype(f)
        bias = away((away((after * inverse + sample) / f(2)) - away(middle * inverse)) / f(2))
        points = np.where(np.isnan(bias), sample, sample - bias)
        points = np.append(points, away(at(np.asarray(high)) * inverse))
    points = np.clip(points, -32768, 32767).astype(np.int64)
    x = node.inputs[0].value.astype(np.int64)
    place, rest = 256 + (x >> 7), x & 127
    slope = (points[place + 1] - points[place]).astype(np.int16).astype(np.int64)
    return [((points[place] + ((slope * rest + 64) >> 7)).astype(np.int16), 2)]


# ---- normalizations ----


def softmax(values):
    with np.errstate(all="ignore"):
        exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
    return exponentials, exponentials.sum(axis=-1, keepdims=True)


def many_logits(name, count):
    def draw(m):
        s, z = {"SOFTMAX": (1 / 256, -128), "LOG_SOFTMAX": (1 / 16, 127)}[name]
        x = m.input("int8", [2, count], np.zeros([2, count]), scale=0.1, zero_point=0)
        options = {"beta": 1.0} if name == "SOFTMAX" else {}
        m.operator(name, [x], [m.output("int8", scale=s, zero_point=z)], **options, version=2)

    return draw


@deviation(
    "SOFTMAX",
    when="INT8 or UINT8 to 8 bits, exponentials that sum to 512 or more (such as 512 equal logits)",
    litert="ends the process; from 4096 on its sum overflows",
    tq="the quotients",
    example=many_logits("SOFTMAX", 600),
)
def crowded_softmax(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) == "int16" or kind(node.outputs[0]) == "int16":
        return None
    exponentials, total = softmax(real(node.inputs[0]) * node.options.get("beta", 1.0))
    if (total < 511).all():
        return None
    return [(coded(node.outputs[0], exponentials / total), 1)]


def far_logits(m):

    x = m.input("int16", [4, 40], m.integers("int16", [4, 40], -30000, 30000), scale=8.5, zero_point=0)
    m.operator("SOFTMAX", [x], [m.output("int16", scale=1 / 32768, zero_point=0)], beta=1.0, version=3)


@deviation(
    "SOFTMAX",
    when="INT16, a difference of logits times the power of two in its multiplier is 2^31 or more",
    litert="wraps to 32 bits: any codes",
    tq="counts it as far below",
    example=far_logits,
)
def far_softmax_of_words(node):
    if not is_coded(node) or not is_known(node) or kind(node.inputs[0]) != "int16":
        return None
    beta = np.float32(node.options.get("beta", 1.0))
    _, e = multiplier(float(scale(node.inputs[0]) * beta) / (10 / 65535))
    x = node.inputs[0].value.astype(np.int64)
    if e <= 0 or x.size == 0 or not ((x.max(axis=-1, keepdims=True) - x) * 2.0**e >= 2**31).any():
        return None
    values = real(node.inputs[0]) * float(beta)
    below = values - values.max(axis=-1, keepdims=True)
    exponentials, total = softmax(np.maximum(below, -10))  # its table's end
    return [(coded(node.outputs[0], exponentials / total), 4 + x.shape[-1])]


@deviation(
    "LOG_SOFTMAX",
    when="INT8 or UINT8, exponentials that sum to 4096 or more",
    litert="its sum overflows: any codes",
    tq="the logarithms",
    example=many_logits("LOG_SOFTMAX", 9000),
)
def crowded_log_softmax(node):
    if not is_coded(node) or not is_known(node):
        return None
    x = real(node.inputs[0])
    _, total = softmax(x)
    if (total < 4095).all():
        return None
    return [(coded(node.outputs[0], x - x.max(axis=-1, keepdims=True) - np.log(total)), 1)]


def local_response(m):

    x = m.input("float32", [1, 2, 2, 12])
    m.operator("LOCAL_RESPONSE_NORMALIZATION", [x], [m.output("float32")], radius=2, bias=1.0, alpha=0.5, beta=0.75)


@deviation(
    "LOCAL_RESPONSE_NORMALIZATION",
    when="always, where the radius is not 0",
    litert="sums the squares from -radius to radius - 1",
    tq="to radius, as LiteRT's optimized kernel and TensorFlow do",
    example=local_response,
)
def local_response_normalization(node):
    x, radius = node.inputs[0].value, node.options.get("radius", 0)
    if x is None or x.ndim != 4:
        return None
    with np.errstate(all="ignore"):
        squares = np.pad(x**2, [(0, 0)] * 3 + [(radius, radius)])
        sums = sum(squares[..., k : k + x.shape[-1]] for k in range(2 * radius + 1))
        factor = (node.options["bias"] + node.options["alpha"] * sums) ** -node.options["beta"]
        result = (x * factor).astype(np.float32)
    finite = np.abs(result[np.isfinite(result)])
    return [(result, 2e-6 * float(finite.max(initial=0)))]


# ---- movement, reductions, resizing ----


def odd_slices(m):

    x = m.constant("int4", m.codes("int4", [6, 3]), scale=0.1, zero_point=0)
    where = m.input("int32", [4], [5, 1, 0, 3])
    m.operator("GATHER", [x, where], [m.output("int4", [4, 3], scale=0.1, zero_point=0)], axis=0, version=7)


@deviation(
    "GATHER",
    when="INT4, slices of an odd number of elements",
    litert="copies half as many whole bytes, rounded down: other elements, or none",
    tq="the slices",
    example=odd_slices,
)
def gather_odd(node):
    x, where = node.inputs
    axis, batch = node.options["axis"], node.options["batch_dims"]
    axis, batch = axis % len(x.shape), batch % (len(where.shape) + 1) if batch < 0 else batch
    if kind(x) != "int4" or not is_known(node) or math.prod(x.shape[axis + 1 :]) % 2 == 0:
        return None
    lead, coordinates = x.shape[:batch], where.value.shape[batch:]
    values = x.value.astype(np.int8).reshape(-1, *x.shape[batch:])
    places = where.value.reshape(values.shape[0], -1)
    taken = [np.take(v, p, axis - batch) for v, p in zip(values, places, strict=True)]
    return [np.stack(taken).reshape((*lead, *x.shape[batch:axis], *coordinates, *x.shape[axis + 1 :]))]


def reduced(node):
    """The codes of each output in a row, and the output's shape."""
    x = node.inputs[0].value
    axes = sorted({int(a) % x.ndim for a in np.ravel(node.inputs[1].value)}) if x.ndim else []
    kept = [d for d in range(x.ndim) if d not in axes]
    keep = node.options.get("keep_dims")
    shape = [1 if d in axes else x.shape[d] for d in range(x.ndim) if d in kept or keep]
    rows = centered(node.inputs[0]).transpose(kept + axes)
    return rows.reshape(math.prod(x.shape[d] for d in kept), -1), shape


def far_codes(m):

    x = m.input("uint8", [2, 200], scale=10.0, zero_point=5)
    y = m.output("uint8", [2, 200], scale=1e-7, zero_point=3)
    m.operator("CONCATENATION", [x], [y], axis=1, version=2)


@deviation(
    "CONCATENATION",
    when="UINT8, an input's value of 2^31 or more of the output's scale",
    litert="converts out of range; on x86 all give 0",
    tq="saturates",
    example=far_codes,
)
def far_join(node):
    out = node.outputs[0]
    if not is_coded(node) or not is_known(node) or kind(out) != "uint8":
        return None
    parts, far = [], False
    for x in node.inputs:
        factor = np.float32(scale(x) * (np.float32(1) / scale(out)))
        bias = np.float32(-float(x.zero_point[0])) * factor
        with np.errstate(over="ignore"):
            values = x.value.astype(np.float32) * factor + bias
        rescaled = scale(x) != scale(out) or x.zero_point[0] != out.zero_point[0]
        far |= rescaled and bool((abs(values) >= 2**31).any())
        codes = np.clip(away(values.astype(np.float64)) + int(out.zero_point[0]), 0, 255)
        parts.append(codes.astype(np.uint8) if rescaled else x.value)
    return [np.concatenate(parts, node.options["axis"])] if far else None


def codes_to_sum(m):

    x = m.input("int8", [4, 9], scale=0.1, zero_point=3)
    y = m.output("int8", [4], scale=0.2, zero_point=-5)
    m.operator("SUM", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "SUM",
    when="INT8 or INT16",
    litert="reads and writes the codes as UINT8",
    tq="the sums, as of UINT8",
    example=codes_to_sum,
    numerics=("reference",),
)
def sum_codes(node):
    if not is_coded(node, 1) or not is_known(node) or kind(node.inputs[0]) not in ("int8", "int16"):
        return None
    out = node.outputs[0]
    rows, shape = reduced(node)
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(out)))
    codes = multiply(rows.sum(axis=1), m, e) + int(out.zero_point[0])
    return [np.clip(codes, *limits(out)).astype(kind(out)).reshape(shape)]


def wide_factors(m):

    x = m.input("int16", [3, 6], np.full([3, 6], 30000), scale=1.0, zero_point=0)
    y = m.output("int16", [3], scale=0.01, zero_point=0)
    m.operator("REDUCE_PROD", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "REDUCE_PROD",
    when="codes, a product that is 2^31 or more on its way",
    litert="wraps to 32 bits: any codes",
    tq="saturates",
    example=wide_factors,
)
def wide_products(node):
    if not is_coded(node, 1) or not is_known(node) or node.inputs[0].value.size == 0:
        return None
    out = node.outputs[0]
    rows, shape = reduced(node)
    if rows.shape[1] == 0:
        return None
    m, e = multiplier(float(scale(node.inputs[0])) / float(scale(out)) ** (1 / rows.shape[1]))
    factor, places = (m + 2**15) >> 16 if m < 0x7FFF0000 else 0x7FFF, 15 - max(-31, min(14, e))
    wide, results = e > 14, []
    for row in rows.tolist():
        product = row[0]
        for code in [*row[1:], 1]:
            exact = (max(-(2**47), min(2**47 - 1, product * code)) * factor + (1 << (places - 1))) >> places
            product = max(INT32[0], min(INT32[1], exact))
            wide |= product != exact
        results.append(product + int(out.zero_point[0]))
    return [np.clip(results, *limits(out)).astype(kind(out)).reshape(shape)] if wide else None


def one_factor(m):

    x = m.input("int8", [8, 1], scale=0.1, zero_point=3)
    y = m.output("int8", [8], scale=0.2, zero_point=-5)
    m.operator("REDUCE_PROD", [x, m.constant("int32", [1])], [y], version=2)


@deviation(
    "REDUCE_PROD",
    when="codes, products of one factor",
    litert="gives the input's codes",
    tq="codes of the output's scale",
    numerics=("optimized",),
    example=one_factor,
)
def single_factors(node):
    if not is_coded(node, 1) or not is_known(node) or node.inputs[0].value.size == 0:
        return None
    rows, shape = reduced(node)
    if rows.shape[1] != 1:
        return None
    values = rows[:, 0] * float(scale(node.inputs[0]))
    return [(coded(node.outputs[0], values).reshape(shape), 1)]


def lanes_of_nan(m):

    values = np.float32([[np.nan, 1, 5, 3, np.nan, 4, 2, 7], [1, np.nan, 3, 2, 4, np.nan, 9, 0]])
    x = m.input("float32", values.shape, values)
    y = m.output("int32", [2])
    m.operator("ARG_MAX", [x, m.constant("int32", 1)], [y], output_type="INT32")


@deviation(
    "ARG_MAX",
    "ARG_MIN",
    when="FLOAT32 with NaN, along the last dimension, or one with only dimensions of 1 behind it",
    litert="compares four parts of a row, of which one may be all NaN: on x86 any place",
    tq="the place of the greatest or least number; 0 if there is none",
    example=lanes_of_nan,
)
def arg_of_nan(node):
    x = node.inputs[0]
    if kind(x) != "float32" or not is_known(node) or not np.isnan(x.value).any():
        return None
    axis = int(np.ravel(node.inputs[1].value)[0]) % x.value.ndim
    if math.prod(x.value.shape[axis + 1 :]) != 1:
        return None
    worst = -np.inf if node.name == "ARG_MAX" else np.inf
    known_values = np.where(np.isnan(x.value), worst, x.value)
    best = known_values.max(axis, keepdims=True) if node.name == "ARG_MAX" else known_values.min(axis, keepdims=True)
    places = np.argmax(x.value == best, axis=axis)  # the first; 0 where all are NaN
    return [places.astype(kind(node.outputs[0]))]


def far_pixels(m):

    x = m.input("int8", [1, 10, 10, 2], scale=0.1, zero_point=0)
    y = m.output("int8", [1, 400, 400, 2], scale=0.1, zero_point=0)
    m.operator("RESIZE_BILINEAR", [x, m.constant("int32", [400, 400])], [y], version=3)


def fixed_places(node, dimension, size):
    """Lower and upper pixels and the way between them, of 1024; and whether the reference goes past the last."""
    count = node.inputs[0].shape[dimension]
    step = (1024 * count + size // 2) // size
    if node.options["align_corners"] and size > 1:
        step = (1024 * (count - 1) + (size - 1) // 2) // (size - 1)
    at = np.arange(size) * step + (step // 2 - 512 if node.options["half_pixel_centers"] else 0)
    low = np.maximum(at, 0) // 1024
    high = np.minimum(np.where(at > -1023, (at + 1023) // 1024, 0), count - 1)
    return np.minimum(low, count - 1), high, at - 1024 * np.minimum(low, count - 1), bool((low >= count).any())


@deviation(
    "RESIZE_BILINEAR",
    when="INT8 or INT16, a step that rounds up so far that its multiples pass the last pixel",
    litert="reads behind the row or the image",
    tq="the last pixel",
    example=far_pixels,
)
def far_resize(node):
    x = node.inputs[0]
    if kind(x) not in ("int8", "int16") or not is_known(node):
        return None
    height, width = (int(n) for n in node.inputs[1].value)
    top, bottom, down, below = fixed_places(node, 1, height)
    left, right, across, beside = fixed_places(node, 2, width)
    if not (below or beside):
        return None
    down, across = (np.where(a == b, 0, way) for a, b, way in ((top, bottom, down), (left, right, across)))
    pixels, down, across = x.value.astype(np.int64), down[:, None, None], across[:, None]
    total = (
        pixels[:, top][:, :, left] * (1024 - down) * (1024 - across)
        + pixels[:, bottom][:, :, left] * down * (1024 - across)
        + pixels[:, top][:, :, right] * (1024 - down) * across
        + pixels[:, bottom][:, :, right] * down * across
    )
    rounded = total + np.where(total > 0, 2**19, -(2**19))
    return [(np.sign(rounded) * (abs(rounded) >> 20)).astype(kind(x))]


def not_numbers(m):

    x = m.input("float32", [6], np.float32([1, np.nan, 2, 1, np.nan, 3]))
    outputs = [m.output("float32", [4]), m.output("int32", [6])]
    m.operator("UNIQUE", [x], outputs, idx_out_type="INT32")


@deviation(
    "UNIQUE",
    when="FLOAT32 with NaN",
    litert="orders NaN as equal to every number",
    tq="NaNs of the same bits are equal to each other",
    example=not_numbers,
)
def unique_nan(node):
    x = node.inputs[0].value
    if kind(node.inputs[0]) != "float32" or not is_known(node) or not np.isnan(x).any():
        return None
    keys = np.where(x == 0, np.float32(0), x).view(np.uint32)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return [x[first[order]], ranks[inverse].astype(kind(node.outputs[1]))]


# ---- detections ----


def lonely_detections(m):
    import flatbuffers.flexbuffers as flexbuffers

    options = dict.fromkeys(["y_scale", "x_scale", "h_scale", "w_scale"], 1.0)
    options |= {"max_detections": 3, "max_classes_per_detection": 2, "num_classes": 2, "nms_iou_threshold": 0.5}
    places = iter([[0.0, 10.0, 20.0], [0.0, 0.0, 0.0]])  # far from each other, then all in one place
    inputs = [
        m.input("float32", [1, 3, 4], draw=lambda: np.float32([[[y, 0, 0, 0] for y in next(places)]])),
        m.input("float32", [1, 3, 3], draw=lambda: m.rng.uniform(0.1, 1, (1, 3, 3)).astype(np.float32)),
        m.constant("float32", np.tile(np.float32([0.5, 0.5, 1, 1]), (3, 1))),
    ]
    outputs = [m.output("float32") for _ in range(4)]
    m.operator("TFLite_Detection_PostProcess", inputs, outputs, custom_options=flexbuffers.Dumps(options))
    m.runs, m.fixed = 2, True


@deviation(
    "TFLite_Detection_PostProcess",
    when="fewer detections are found than there is room for",
    litert="leaves some of the rest as it was in memory",
    tq="0 for all of the rest",
    example=lonely_detections,
)
def unfilled_detections(node):
    boxes, classes, scores, count = (output.value for output in node.outputs)
    if count is None or boxes is None:
        return None
    each = 1 if node.options.get("use_regular_nms") else node.options["max_classes_per_detection"]
    filled = np.zeros(scores.shape[1], bool)
    for k in range(min(each, node.options["num_classes"])):
        filled[k : int(count[0]) * each : each] = True
    if filled.all():
        return None
    filled = filled[None]
    return [
        np.where(filled[..., None], boxes, np.float32(0)),
        *(np.where(filled, x, np.float32(0)) for x in (classes, scores)),
        count,
    ]


def first_frame(name, **options):
    def draw(m):
        import flatbuffers.flexbuffers as flexbuffers

        outputs = [m.output("int16", [1, 8], scale=None), m.output("bool")]
        x = m.input("int16", [4], scale=None)
        m.operator(name, [x], outputs, custom_options=flexbuffers.Dumps(options))

    return draw


@deviation(
    "SignalFramer",
    when="a frame for which there are not samples enough yet",
    litert="tflite-micro leaves it as it was in memory",
    tq="0",
    example=first_frame("SignalFramer", frame_size=8, frame_step=4, prefill=False),
)
@deviation(
    "SignalStacker",
    when="not frames enough yet",
    litert="tflite-micro leaves the output as it was in memory",
    tq="0",
    example=first_frame(
        "SignalStacker", num_channels=4, stacker_left_context=0, stacker_right_context=1, stacker_step=1
    ),
)
def incomplete_frames(node):
    frames, valid = (output.value for output in node.outputs)
    if valid is None or valid or node.options.get("prefill"):
        return None
    return [np.zeros_like(frames), valid]


# ---- the document ----

# ---- movement ----


def wide_diagonal(m):

    x = m.input("float64", [2, 3], [[1, 2, 3], [4, 5, 6]])
    m.operator("MATRIX_DIAG", [x], [m.output("float64")])


@deviation(
    "MATRIX_DIAG",
    "MATRIX_SET_DIAG",
    when="elements that are not of 4 bytes, and not INT8, UINT8, INT16 or INT64",
    litert="moves 4 bytes an element",
    tq="moves the elements",
    example=wide_diagonal,
)
def other_diagonals(node):
    x = node.inputs[0].value
    if x is None or x.dtype.itemsize == 4 or str(x.dtype) in ("int8", "uint8", "int16", "int64"):
        return None
    if node.name == "MATRIX_DIAG":
        out = np.zeros((*x.shape, x.shape[-1]), x.dtype)
        values = x
    else:
        out, values = x.copy(), node.inputs[1].value
    for k in range(values.shape[-1]):
        out[..., k, k] = values[..., k]
    return [out]


def mixed_bounds(m):

    x = m.input("float32", [6, 5])
    begin, size = m.constant("int32", [1, 2]), m.constant("int64", [3, -1])
    m.operator("SLICE", [x, begin, size], [m.output("float32")])


@deviation(
    "SLICE",
    when="an INT32 begin and an INT64 size, or the other way round",
    litert="reads the size as of the begin's type",
    tq="reads each as what it is",
    example=mixed_bounds,
)
def mixed_slices(node):
    x, begin, size = node.inputs
    if kind(begin) == kind(size) or not is_known(node):
        return None
    ends = [n if s < 0 else b + s for n, b, s in zip(x.shape, begin.value.tolist(), size.value.tolist(), strict=True)]
    return [x.value[tuple(slice(int(b), int(e)) for b, e in zip(begin.value, ends, strict=True))]]


def long_blocks(m):

    x = m.input("int32", [4, 2, 3, 1])
    block, crops = m.constant("int64", [2, 2]), m.constant("int64", [[0, 1], [2, 0]])
    m.operator("BATCH_TO_SPACE_ND", [x, block, crops], [m.output("int32")], version=2)


@deviation(
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    when="an INT64 block, or INT64 crops or paddings",
    litert="reads them as INT32",
    tq="reads them as INT64",
    example=long_blocks,
)
def long_batches(node):
    x, block, ends = node.inputs[0], *node.inputs[1:]
    if "int64" not in (kind(block), kind(ends)) or not is_known(node) or len(x.shape) != 4 or node.name[0] != "B":
        return None
    (bh, bw), ((top, bottom), (left, right)) = block.value.tolist(), ends.value.tolist()
    batch, height, width, depth = x.shape
    out = x.value.reshape(bh, bw, batch // (bh * bw), height, width, depth).transpose(2, 3, 0, 4, 1, 5)
    out = out.reshape(batch // (bh * bw), height * bh, width * bw, depth)
    return [out[:, top : height * bh - bottom, left : width * bw - right]]


def long_permutation(m):

    x = m.input("float32", [2, 3, 4])
    m.operator("TRANSPOSE", [x, m.constant("int64", [2, 0, 1])], [m.output("float32")], version=4)


@deviation(
    "TRANSPOSE",
    when="an INT64 permutation",
    litert="reads it as INT32",
    tq="reads it as INT64",
    example=long_permutation,
)
def long_permutations(node):
    if kind(node.inputs[1]) != "int64" or not is_known(node):
        return None
    return [node.inputs[0].value.transpose(node.inputs[1].value.tolist())]


# ---- control flow ----


def kept_in_vain(m):

    condition, body = m.graph(), m.graph()
    i = condition.input("int32", [], scale=None)
    condition.input("float32", [6])
    limit = condition.constant("int32", 4)
    condition.operator("LESS", [i, limit], [condition.output("bool", [])])
    i, x = body.input("int32", [], scale=None), body.input("float32", [6])
    body.operator("ADD", [i, body.constant("int32", 1)], [body.output("int32", [])])
    body.outputs.append(x)
    options = {"cond_subgraph_index": m.subgraph_index(condition), "body_subgraph_index": m.subgraph_index(body)}
    inputs = [m.input("int32", [], 0), m.input("float32", [6], np.arange(1.0, 7.0))]
    m.operator("WHILE", inputs, [m.output("int32", []), m.inner("float32", [6])], **options)
    m.fixed = True


@deviation(
    "WHILE",
    when="an output that nothing reads, and whose input the body hands on",
    litert="does not write it",
    tq="the input",
    example=kept_in_vain,
)
def kept_in_vain_by_loops(node):
    """Whether the body hands it on is not known here."""
    if all(operand is None or operand.is_read for operand in node.outputs):
        return None
    return [operand and (operand.value if operand.is_read else UNPROMISED) for operand in node.outputs]


# ---- fake quantization ----


def empty_range(m):

    m.operator(
        "FAKE_QUANT",
        [m.input("float32", [3], [-1, 0, 2])],
        [m.output("float32")],
        min=0.0,
        max=0.0,
        num_bits=8,
        version=2,
    )


@deviation(
    "FAKE_QUANT",
    when="min and max are both 0",
    litert="divides by 0: NaN",
    tq="0, as in TensorFlow",
    example=empty_range,
)
def empty_ranges(node):
    x = node.inputs[0].value
    return [np.zeros_like(x)] if node.options["min"] == node.options["max"] == 0 and x is not None else None


HEAD = """# Where tq and TFLite's reference kernels differ

tq's integer results are those of LiteRT's reference kernels (BUILTIN_REF 2.3.0), bit for bit, but for the cases
below, where these end the process, leave C++'s defined behaviour or do not compute what the operator means. Each row is
pinned by a test (`tests/test_deviations.py`). This file is made from `tests/deviations.py`.

The optimized kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES) and XNNPACK (BUILTIN) have most of them too, and a few of
their own: `in` says where.

| operator | in | when | LiteRT | tq |
|---|---|---|---|---|
"""


def document():
    """docs/deviations.md."""
    rows = sorted(ROWS, key=lambda row: (row.operators, row.when))
    where = {row: "all" if row.numerics == EVERY else ", ".join(row.numerics) for row in rows}
    return HEAD + "".join(f"| {', '.join(r.operators)} | {where[r]} | {r.when} | {r.litert} | {r.tq} |\n" for r in rows)


if __name__ != "__main__":
    import deviations_products  # noqa: F401  (enters its rows)
    import deviations_sums  # noqa: F401
    import deviations_xnnpack  # noqa: F401

if __name__ == "__main__":
    import deviations  # not this module, whose table is another

    print(deviations.document(), end="")
