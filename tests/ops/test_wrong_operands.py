# SPDX-License-Identifier: Apache-2.0
"""Operators with other tensors than they take are refused before anything reads the tensors.

tests/support/wrong_operands.py makes them.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import wrong_operands
from models import build_model, operator, subgraph, tensor

import tq

SCRIPT = Path(wrong_operands.__file__)
ARITY = SCRIPT.parents[2] / "src" / "model" / "arity.def"
PARTS = 4


def interpreter(model, numerics="xnnpack", preserve=False):
    return tq.Interpreter(model_content=model, numerics=numerics, experimental_preserve_all_tensors=preserve)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_wrong_operand_ends_the_process_and_each_is_refused_by_name(part):
    done = subprocess.run(
        [sys.executable, SCRIPT, str(part), str(PARTS)], capture_output=True, text=True, timeout=600, check=False
    )
    last = "\n".join(done.stdout.splitlines()[-1:])
    assert done.returncode == 0, f"code {done.returncode} at {last}\n{done.stderr[-3000:]}"


def test_every_operator_has_a_row_of_its_arity():
    builtin, custom = (set(names) for names in tq._core.operators())
    text = ARITY.read_text(encoding="utf-8")
    assert builtin - set(re.findall(r"^ARITY\((\w+),", text, re.MULTILINE)) == set()
    assert custom == set(re.findall(r'^CUSTOM_ARITY\("([^"]+)",', text, re.MULTILINE))


def reshape_without_inputs():
    """A RESHAPE that reads nothing, before operators that XNNPACK takes, and a sound subgraph."""
    x = [tensor(name, [1, 4]) for name in "xyz"]
    first = subgraph(x, [operator("RESHAPE", [], [1], new_shape=[1, 4]), operator("ABS", [1], [2])], [0], [2])
    second = subgraph([tensor(name, [4]) for name in "ab"], [operator("ABS", [0], [1])], [0], [1], "sound")
    return build_model(subgraphs=[first, second])


@pytest.mark.parametrize("numerics", wrong_operands.NUMERICS)
def test_a_wrong_operand_is_reported_and_all_else_works(numerics):
    model = reshape_without_inputs()
    assert "input-count" in {problem.code for problem in tq.Model(model).problems}
    opened = interpreter(model, numerics)
    rows = opened.backends()
    assert rows[1].numerics == numerics
    if numerics == "xnnpack":
        assert rows[0].rule == "its inputs or outputs do not fit the operator"
    assert "RESHAPE" in str(rows)
    with pytest.raises(tq.RunError, match=r"operator 0 \(RESHAPE\): has 0 inputs; it needs 1 to 2"):
        opened.allocate_tensors()


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "options", "message"),
    [
        ("ADD_N", [0], [1], {}, "has 1 inputs; it needs 2 or more"),
        ("LSTM", [0], [1], {}, "has 1 inputs; it needs 5 or 20 or 24"),
        ("LSTM", [0] * 5, [1], {}, "has 1 outputs; with 5 inputs it needs 4"),
        ("LSTM", [0, -1, 0, 0, 0], [1, 2, 3, 4], {"kernel_type": 1}, "input 1 is left out (-1); it is needed"),
        ("LSTM", [0] * 5, [1, 2, 3, 4], {}, "has 5 inputs; with kernel_type FULL (0) it needs 20 or 24"),
        ("LSTM", [0] * 20, [1], {"kernel_type": 1}, "has 20 inputs; with kernel_type BASIC (1) it needs 5"),
        ("FULLY_CONNECTED", [0, 0], [1, 2], {}, "has 2 outputs; with its options it needs 1"),
        ("FULLY_CONNECTED", [0, 0], [1], {"weights_format": 1}, "has 1 outputs; with its options it needs 2"),
        ("WHILE", [0, 0], [1], {}, "has 1 outputs; with 2 inputs it needs as many"),
        ("ADD", [0, -1], [1], {}, "input 1 is left out (-1); it is needed"),
        ("SPLIT_V", [0, 0, 0], [-1, 1], {}, "output 0 is left out (-1); it is needed"),
        ("Mfcc", [0], [1], {}, "has 1 inputs; it needs 2"),
        ("SignalFramer", [0], [1], {}, "has 1 outputs; with 1 inputs it needs 2"),
    ],
)
def test_the_error_says_what_was_found_and_what_is_needed(name, inputs, outputs, options, message):
    tensors = [tensor("x", [2, 2]), *(tensor(f"y{i}", [2, 2]) for i in range(1, 5))]
    model = build_model(tensors, [operator(name, inputs, outputs, **options)], [0], [i for i in outputs if i >= 0])
    for numerics in wrong_operands.NUMERICS:
        with pytest.raises(tq.RunError) as raised:
            interpreter(model, numerics).allocate_tensors()
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("IF", "BOOL", {"then_subgraph_index": 1, "else_subgraph_index": 1}),
        ("STABLEHLO_CASE", "INT32", {"branch_subgraph_indices": [1]}),
    ],
)
def test_an_argument_that_is_left_out_is_a_problem_and_refused(name, kind, options):
    tensors = [tensor("which", [1], kind), tensor("y", [4])]
    call = operator(name, [0, -1], [1], **options)
    callee = subgraph([tensor("a", [4]), tensor("b", [4])], [operator("ABS", [0], [1])], [0], [1])
    model = build_model(subgraphs=[subgraph(tensors, [call], [0], [1]), callee])
    assert {problem.code for problem in tq.Model(model).problems} == {"optional-input"}
    with pytest.raises(tq.RunError, match=rf"\({name}\).*left out"):
        interpreter(model).allocate_tensors()
