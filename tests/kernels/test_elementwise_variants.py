# SPDX-License-Identifier: Apache-2.0
"""Element-by-element operators give the same bits whatever instruction sets they may use, and on any number of
threads."""

import hashlib
import os
import subprocess
import sys

import differential
import generators
import numpy as np
import pytest

import tq

ROWS = [
    *(("ADD", kind) for kind in ("float32", "int8", "uint8", "int16")),
    *(("SUB", kind) for kind in ("float32", "int8", "int16")),
    *(("MUL", kind) for kind in ("float32", "int8", "uint8", "int16")),
    *(("MAXIMUM", kind) for kind in ("float32", "int8", "uint8")),
    *(("PRELU", kind) for kind in ("float32", "int8", "uint8", "int16")),
    *(("RELU", kind) for kind in ("float32", "int8", "int16")),
    *(("LEAKY_RELU", kind) for kind in ("float32", "int8", "uint8", "int16")),
    *(("LOGISTIC", kind) for kind in ("float32", "int8", "int16")),
    *(("TANH", kind) for kind in ("float32", "uint8", "int16")),
    *(("SOFTMAX", kind) for kind in ("float32", "int8", "uint8", "int16")),
    *((name, "float32") for name in ("EXP", "ELU", "GELU", "LOG", "SIN", "COS", "ROUND", "HARD_SWISH", "RSQRT")),
    *(("LOG_SOFTMAX", kind) for kind in ("float32", "int8", "uint8")),
    ("RFFT2D", "float32"),
    *(("CAST", kind) for kind in ("bool", "int8", "uint8", "int16", "int32", "int64", "float32")),
    *(("QUANTIZE", kind) for kind in ("float32-int8", "int8-int8", "int8-uint8", "uint8-int8")),
    ("DEQUANTIZE", "int8"),
    ("SQUARED_DIFFERENCE", "int8"),
]
CASES = 12
FUNCTIONS = {name: {} for name in ("EXP", "LOGISTIC", "ELU", "TANH", "LOG", "SIN", "COS", "ROUND")}
FUNCTIONS |= {"SOFTMAX": {"beta": 1.0}, "GELU": {"approximate": False}}


def run(case, num_threads=1, numerics="reference"):
    """The outputs of each invoke; all NaNs are alike."""
    interpreter = tq.Interpreter(model_content=case.model, num_threads=num_threads, numerics=numerics)
    for index, shape in case.shapes.items():
        interpreter.resize_tensor_input(index, shape)
    interpreter.allocate_tensors()
    for values in case.runs:
        for index, value in values.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        for item in interpreter.get_output_details():
            value = interpreter.get_tensor(item["index"])
            yield np.where(np.isnan(value), value.dtype.type(np.nan), value) if value.dtype.kind == "f" else value


def every_code(operator, scale):
    """The operator on all numbers of INT16, and one more."""
    m = differential.Draft(0)
    m.fixed = True
    count = 2**16 + 1
    x = m.input("int16", [count], np.arange(count).astype(np.int16), scale=scale, zero_point=0)
    m.operator(operator, [x], [m.output("int16", [count], scale=2.0**-15, zero_point=0)])
    return m.case()


def every_byte(operator, kinds):
    """The operator on all bytes, and some more, between scales and zero points of many ratios."""
    rng = np.random.default_rng(0)
    options = {"alpha": 0.2} if operator == "LEAKY_RELU" else {}
    for ratio in (0.31, 0.5, 0.997, 1, 1.37, 3.9):
        m = differential.Draft(0)
        m.fixed = True
        values = np.arange(256 + 77).astype(np.uint8).view(kinds[0])
        places = [int(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1)) for kind in kinds]
        x = m.input(kinds[0], [len(values)], values, scale=0.05 * ratio, zero_point=places[0])
        m.operator(operator, [x], [m.output(kinds[-1], scale=0.05, zero_point=places[-1])], version=2, **options)
        yield m.case()


def every_pair(operator, kind):
    """The operator on all pairs of bytes, and on rows that end within a vector."""
    for scale, output in ((0.05, 0.07), (0.05, 3.1), (0.0625, 0.125), (0.01, 0.00099)):
        for columns in (256, 77):
            m = differential.Draft(0)
            m.fixed = True
            first = np.repeat(np.arange(256), columns).reshape(256, columns).astype(np.uint8).view(kind)
            second = np.arange(256)[np.newaxis, :columns].astype(np.uint8).view(kind)
            center = 0 if kind == "int8" else 128
            x = m.input(kind, first.shape, first, scale=scale, zero_point=center + 3)
            y = m.input(kind, second.shape, second, scale=scale * 0.7, zero_point=center - 2)
            m.operator(operator, [x, y], [m.output(kind, scale=output, zero_point=center - 5)], version=2)
            yield m.case()


def every_exponent(operator, **options):
    """The operator on seven rows of 1003 floats from below the least exponent to above the greatest one."""
    m = differential.Draft(0)
    m.fixed = True
    values = np.random.default_rng(0).permutation(np.linspace(-115, 95, 7 * 1003)).astype(np.float32)
    if operator != "SOFTMAX":
        values[:9] = np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 1000, -1e30
        values[9:999] *= 1e-3
    x = m.input("float32", [7, 1003], values.reshape(7, 1003))
    m.operator(operator, [x], [m.output("float32", [7, 1003])], **options)
    return m.case()


def many_floats(operator, **options):
    """The operator on floats of usual sizes, so many that some results lie next to the middle between two floats."""
    m = differential.Draft(0)
    m.fixed = True
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(2**19 + 7) * rng.choice([0.01, 1, 5], 2**19 + 7)).astype(np.float32)
    m.operator(operator, [m.input("float32", values.shape, values)], [m.output("float32", values.shape)], **options)
    return m.case()


def casts(kind):
    """To each type that is cast to in one step, of random bytes or of floats beside the ends of types' ranges."""
    rng = np.random.default_rng(0)
    ends = np.array([0, 0.5, 1, *(2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63)), 1e-40, np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        ends = np.concatenate([ends, ends - 0.5, np.nextafter(ends.astype(np.float32), np.float32(0))])
    values = rng.choice(np.concatenate([ends, -ends]), 500).astype(np.float32)
    if kind != "float32":
        values = np.frombuffer(rng.bytes(4000), "bool" if kind == "bool" else kind)[:500]
    for target in ("bool", "int8", "uint8", "int16", "int32", "int64", "float32"):
        m = differential.Draft(0)
        m.fixed = True
        x = m.input(kind, [len(values)], values, scale=None)
        m.operator("CAST", [x], [m.output(target, scale=None)], in_data_type=kind.upper(), out_data_type=target.upper())
        yield m.case()


def softmaxes(operator, kind):
    """Of many short rows, which are computed together, and of long ones."""
    for rows, length in ((700, 3), (130, 21), (37, 70), (9, 255), (3, 256), (2, 1030)):
        m = differential.Draft(0)
        m.fixed = True
        values = np.random.default_rng(length).normal(0, 50, (rows, length))
        scales = [{}, {}]
        if kind == "float32":
            values = values.astype(np.float32) / 10
        else:
            values = (values + 128).clip(0, 255).astype(np.uint8).view(kind)
            ends = np.iinfo(kind)
            scale, zero_point = (1 / 256, ends.min) if operator == "SOFTMAX" else (16 / 256, ends.max)
            scales = [{"scale": 0.03, "zero_point": 5}, {"scale": scale, "zero_point": zero_point}]
        x = m.input(kind, [rows, length], values, **scales[0])
        y = m.output(kind, [rows, length], **scales[1])
        m.operator(operator, [x], [y], **({"beta": 1.0} if operator == "SOFTMAX" else {}))
        yield m.case()


def digest():
    """One line a row: a digest of all its cases' outputs."""
    generators.rows()
    for operator, kind in ROWS:
        cases = [differential.draw(operator, kind, 3, number) for number in range(CASES)]
        if operator in ("LOGISTIC", "TANH") and kind == "int16":
            cases += [every_code(operator, 2.0**power) for power in (-12, -11)]
        if operator in FUNCTIONS and kind == "float32":
            cases.append(every_exponent(operator, **FUNCTIONS[operator]))
            cases.append(many_floats(operator, **FUNCTIONS[operator]))
        if operator == "GELU":
            cases.append(many_floats(operator, approximate=True))
        if operator == "CAST":
            cases += casts(kind)
        if operator in ("LEAKY_RELU", "QUANTIZE") and all(part in ("int8", "uint8") for part in kind.split("-")):
            cases += every_byte(operator, kind.split("-"))
        if operator in ("ADD", "MUL", "SQUARED_DIFFERENCE") and kind in ("int8", "uint8"):
            cases += every_pair(operator, kind)
        if operator in ("SOFTMAX", "LOG_SOFTMAX") and kind != "int16":
            cases += softmaxes(operator, kind)
        for numerics in generators.NUMERICS:
            found = hashlib.sha256()
            for case in cases:
                for value in run(case, numerics=numerics):
                    found.update(str(value.shape).encode() + np.ascontiguousarray(value).tobytes())
            print(operator, kind, numerics, found.hexdigest())


def digests(disabled):
    """The lines, of a process that may not use some instruction sets."""
    environment = {**os.environ, "TQ_DISABLE_CPU": disabled, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def scalar():
    return digests("avx512vbmi,avx512,avx2,neon")


@pytest.mark.parametrize("disabled", ["", "avx512vbmi", "avx512"])
def test_instruction_sets_agree(disabled, scalar):
    found = digests(disabled)
    assert len(scalar) == len(ROWS) * len(generators.NUMERICS)
    assert found == scalar


@pytest.mark.parametrize("name", ["ADD", "MUL", "RELU", "SOFTMAX", "PRELU"])
def test_threads_agree(name):
    """Shapes large enough to be shared out: equal ones, a channel operand, a scalar, rows."""
    draft = differential.Draft(1)
    shape = [8 if name == "RELU" else 2, 130, 131, 7]
    x = draft.input("int8", shape, scale=0.05, zero_point=3)
    others = {"ADD": shape, "MUL": shape[-1:], "PRELU": [7]}
    inputs = [x] + ([draft.input("int8", others[name], scale=0.02, zero_point=-1)] if name in others else [])
    options = {"beta": 1.0} if name == "SOFTMAX" else {}
    parameters = {"scale": 1 / 256, "zero_point": -128} if name == "SOFTMAX" else {"scale": 0.07, "zero_point": 1}
    draft.operator(name, inputs, [draft.output("int8", **parameters)], **options, version=2)
    case = draft.case()
    one, four = list(run(case)), list(run(case, num_threads=4))
    assert all((a == b).all() for a, b in zip(one, four, strict=True))


if __name__ == "__main__":
    digest()
