# SPDX-License-Identifier: Apache-2.0
"""`str(tensor.quantization)` is Netron's line, character for character.

Three things stand on the other side: a port of Netron's rule to Python, which runs everywhere; JavaScript's own
number formatting, where `node` is on the PATH; and Netron's own classes, where the package `netron` is installed too.
Netron is MIT-licensed; nothing of it is copied here, its rule is (netron 9, view.js, view.Quantization).
"""

import importlib.util
import json
import random
import re
import shutil
import struct
import subprocess
from decimal import Decimal
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest
import zoo
from hypothesis import example, given
from hypothesis import strategies as st
from models import build_model, tensor

import tq

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(not NODE, reason="node is not on the PATH")


# ---- the port ----


def js_number(value):
    """Number.prototype.toString of a double (ECMA-262, Number::toString with radix 10)."""
    if value != value:
        return "NaN"
    if value == 0:
        return "0"
    if value < 0:
        return "-" + js_number(-value)
    if value == float("inf"):
        return "Infinity"
    # repr has the shortest digits that read back as the same double, the nearest of those: what ECMA-262 asks for.
    _sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    k, n = len(digits), len(digits) + exponent
    if k <= n <= 21:
        return digits + "0" * (n - k)
    if 0 < n <= 21:
        return f"{digits[:n]}.{digits[n:]}"
    if -6 < n <= 0:
        return "0." + "0" * -n + digits
    mantissa = digits if k == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if n > 0 else '-'}{abs(n - 1)}"


def netron_line(scale, zero_point, minimum, maximum):
    """The line for float32 scales and ranges and int64 zero points; one line an index where there are several."""
    length = max(len(scale), len(zero_point), len(minimum), len(maximum))
    lines = []
    for i in range(length):
        text, bracket = "q", False
        if i < len(zero_point) and zero_point[i] != 0:
            text = f"q {'-' if zero_point[i] > 0 else '+'} {abs(zero_point[i])}"
            bracket = True
        if i < len(scale) and scale[i] != 1:
            text = f"{js_number(scale[i])} * {f'({text})' if bracket else text}"
        if i < len(minimum) and minimum[i] != 0:
            text = f"{js_number(minimum[i])} ≤ {text}"
        if i < len(maximum) and maximum[i] != 0:
            text = f"{text} ≤ {js_number(maximum[i])}"
        lines.append(f"{str(i).rjust(len(str(length)))}: {text}" if length > 1 else text)
    return "\n".join(lines)


def test_the_port_on_numbers_from_the_standard():
    cases = {
        1e21: "1e+21",
        123456789012345680000.0: "123456789012345680000",
        1e-6: "0.000001",
        1e-7: "1e-7",
        1.5e-9: "1.5e-9",
        5e-324: "5e-324",
        -0.0: "0",
        100.0: "100",
        0.1: "0.1",
        -2.5: "-2.5",
        float("-inf"): "-Infinity",
        float(np.float32(5.245450302027166e-05)): "0.00005245450302027166",
        1.7976931348623157e308: "1.7976931348623157e+308",
    }
    assert {value: js_number(value) for value in cases} == cases


# ---- what a file stores, read without tq ----


def stored(data):
    """[(scale, zero_point, min, max)] as lists, of each tensor of each subgraph; None for no quantization."""
    model = schema.Model.GetRootAs(data, 0)
    result = []
    for g in range(model.SubgraphsLength()):
        graph = model.Subgraphs(g)
        for t in range(graph.TensorsLength()):
            q = graph.Tensors(t).Quantization()
            if q is None:
                result.append(None)
                continue
            arrays = (q.ScaleAsNumpy(), q.ZeroPointAsNumpy(), q.MinAsNumpy(), q.MaxAsNumpy())
            result.append(tuple([] if isinstance(a, int) else a.tolist() for a in arrays))
    return result


def lines_of(data):
    return [str(item.quantization) for graph in tq.Model(data).subgraphs for item in graph.tensors]


def expected_lines(data):
    return ["" if q is None else netron_line(*q) for q in stored(data)]


def test_the_seed_example():
    line = "-1.6488090753555298 ≤ 0.012566016986966133 * (q - 3) ≤ 1.5555250644683838"
    ends = {"min": -1.6488090753555298, "max": 1.5555250644683838}
    data = build_model([tensor("t", [4], "INT8", scale=0.012566017, zero_point=3, **ends)])
    assert lines_of(data) == [line] == expected_lines(data)


@pytest.mark.parametrize("name", [make.__name__ for make in zoo.MAKERS])
def test_made_models(name):
    data = zoo.MODELS[name]
    assert lines_of(data) == expected_lines(data)


@pytest.mark.corpus
def test_corpus(corpus):
    count = 0
    for path in corpus:
        data = path.read_bytes()
        ours, theirs = lines_of(data), expected_lines(data)
        assert ours == theirs, path
        count += sum(line != "" for line in theirs)
    assert count > 1000


FLOATS = st.floats(width=32, allow_subnormal=True) | st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 1e-6, 1e-7, 9.999999e-7, 1e21, 1e20, 3.4028235e38, 1e-45, 16777216.0]
)
ZERO_POINTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-130, 130)


@given(
    st.lists(FLOATS, max_size=12),
    st.lists(ZERO_POINTS, max_size=12),
    st.lists(FLOATS, max_size=12),
    st.lists(FLOATS, max_size=12),
)
@example([0.5] * 11, [0] * 11, [], [])
@example([float("nan")], [-(2**63)], [-0.0], [float("-inf")])
def test_any_numbers(scale, zero_point, minimum, maximum):
    data = build_model([tensor("t", [2], "INT8", scale=scale, zero_point=zero_point, min=minimum, max=maximum)])
    assert lines_of(data) == expected_lines(data)


# ---- JavaScript itself ----


def node(script, value):
    """What a script prints that reads JSON from its standard input and writes JSON."""
    program = f"const input = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n{script}\n"
    done = subprocess.run([NODE, "-e", program], input=json.dumps(value), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def float32s(count):
    """Bit patterns: all exponents, short decimals, integers and their neighbours."""
    draw = random.Random(3)
    bits = [draw.getrandbits(32) for _ in range(count)]
    bits += [exponent << 23 | draw.getrandbits(1) << 31 for exponent in range(256)]
    for value in [10.0**e for e in range(-45, 39)] + [float(2**e) for e in range(70)] + [e / 100 for e in range(500)]:
        near = struct.unpack("<I", struct.pack("<f", value))[0]
        bits += [near - 1 & 0xFFFFFFFF, near, near + 1]
    return bits


@needs_node
def test_numbers_print_as_in_javascript():
    bits = float32s(20000)
    script = "console.log(JSON.stringify(input.map(b => String(new Float32Array(new Uint32Array([b]).buffer)[0]))));"
    theirs = node(script, bits)
    values = np.array(bits, np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        assert [js_number(value) for value in values.astype(np.float64).tolist()] == theirs
    # and tq's own, through a per-axis tensor; a scale of exactly 1 is left out
    data = build_model([tensor("t", [len(bits)], "INT8", scale=values, zero_point=[0] * len(bits))])
    (text,) = lines_of(data)
    width = len(str(len(bits)))
    assert text.split("\n") == [
        f"{str(i).rjust(width)}: {'q' if number == '1' else number + ' * q'}" for i, number in enumerate(theirs)
    ]


# ---- Netron itself ----


def netron_class():
    """The source of view.Quantization, read from the installed package while the test runs."""
    found = importlib.util.find_spec("netron")
    path = found and Path(found.origin).with_name("view.js")
    if not path or not path.exists():
        pytest.skip("the package netron is not installed")
    return re.search(r"^view\.Quantization = class \{.*?^\};", path.read_text(), re.MULTILINE | re.DOTALL)[0]


NETRON_SCRIPT = """
const view = {Error: Error};
%s
const floats = words => new Float32Array(new Uint32Array(words).buffer);
console.log(JSON.stringify(input.map(q => q === null ? '' : new view.Quantization({
    type: 'linear', scale: floats(q[0]), offset: q[1].map(BigInt), min: floats(q[2]), max: floats(q[3]),
}).toString())));
"""


def netron_lines(quantizations):
    def words(values):
        return np.array(values, np.float32).view(np.uint32).tolist()

    # int64 does not pass through JSON's doubles; text does.
    sent = [q and (words(q[0]), [str(z) for z in q[1]], words(q[2]), words(q[3])) for q in quantizations]
    return node(NETRON_SCRIPT % netron_class(), sent)


@needs_node
def test_made_models_in_netron():
    for name, data in zoo.MODELS.items():
        assert lines_of(data) == netron_lines(stored(data)), name


@needs_node
def test_the_port_in_netron():
    draw = random.Random(5)

    def some(make):
        return [make() for _ in range(draw.choice([0, 1, 1, 3, 11]))]

    def number():
        return struct.unpack("<f", struct.pack("<I", draw.getrandbits(32)))[0] if draw.random() < 0.8 else 0.0

    def code():
        return draw.choice([0, 1, -1, draw.randint(-(2**63), 2**63 - 1)])

    cases = [(some(number), some(code), some(number), some(number)) for _ in range(2000)]
    assert [netron_line(*case) for case in cases] == netron_lines(cases)


@needs_node
@pytest.mark.corpus
def test_corpus_in_netron(corpus):
    quantizations = [q for path in corpus for q in stored(path.read_bytes())]
    assert [(q and netron_line(*q)) or "" for q in quantizations] == netron_lines(quantizations)
