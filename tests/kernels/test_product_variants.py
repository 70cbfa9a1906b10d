# SPDX-License-Identifier: Apache-2.0
"""Every row of gemm.def and depthwise.def that this machine can run gives the scalar row's bits, in the operators that
stand on it.  Kernels by themselves, of other machines too: test_variants_c.py."""

import differential
import generators
import numpy as np
import pytest

import tq

ROWS = [row for row in tq._core.kernel_variants() if row["name"].startswith(("gemm_", "depthwise_"))]
ISAS = sorted({row["isa"] for row in ROWS if row["available"] and row["isa"] != "scalar"})
KINDS = {"i8": "int8", "u8": "uint8", "i16": "int16", "f32": "float32", "f32_fused": "float32"}
CASES = 12


def outputs(case, isa, numerics):
    """The outputs of a model, as bytes, with the kernels of this instruction set."""
    tq._core._force_isa(isa)
    try:
        interpreter = tq.Interpreter(model_content=case.model, numerics=numerics, num_threads=1)
        for index, shape in case.shapes.items():
            interpreter.resize_tensor_input(index, shape)
        interpreter.allocate_tensors()
        for index, value in case.runs[0].items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
    finally:
        tq._core._force_isa(None)
    found = [interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()]
    return b"".join(np.ascontiguousarray(value).tobytes() for value in found)


@pytest.mark.skipif(not ISAS, reason="this machine has only scalar kernels")
@pytest.mark.parametrize("isa", ISAS)
def test_every_row_gives_the_bits_of_the_scalar_one(isa):
    generators.rows()
    for name in sorted({row["name"] for row in ROWS if row["isa"] == isa}):
        family, kind = name.split("_", 1)
        for operator in ["DEPTHWISE_CONV_2D"] if family == "depthwise" else ["CONV_2D", "FULLY_CONNECTED"]:
            for number in range(CASES):
                case = differential.draw(operator, KINDS[kind], 4, number)
                numerics = "xnnpack" if kind == "f32_fused" else "reference"
                assert outputs(case, isa, numerics) == outputs(case, "scalar", numerics), (name, str(case))


def test_listing():
    assert len({(row["name"], row["isa"]) for row in ROWS}) == len(ROWS)
    for name in {row["name"] for row in ROWS}:
        rows = [row for row in ROWS if row["name"] == name]
        assert rows[0]["isa"] == "scalar" and rows[0]["available"], "the scalar row is the definition"
        chosen = [row for row in rows if row["chosen"]]
        assert chosen == [row for row in rows if row["available"]][-1:], "of those the machine has, the last"
