# SPDX-License-Identifier: Apache-2.0
"""model.summary(): rows, groups, totals, and multiply-adds against counts made element by element."""

import itertools
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest
from models import build_model, make_model, operator, pack, subgraph, tensor

import tq
from tq._core import counted_operators
from tq.inspection.summary import GroupSummary


def one(name, inputs, output, options=None):
    """The operator of a model that has one; inputs are shapes, None for one that is left out."""
    tensors = [tensor(f"t{i}", shape or []) for i, shape in enumerate(inputs)] + [tensor("out", output)]
    indices = [-1 if shape is None else i for i, shape in enumerate(inputs)]
    op = operator(name, indices, [len(inputs)], options=options)
    return tq.Model(build_model(tensors, [op])).operators[0]


# ---- formulas against definitions ----


def convolution(out, kernel, inputs_a_group):
    """Multiplications of a convolution, counted one output element at a time."""
    return sum(1 for _ in itertools.product(*map(range, out)) for _ in range(math.prod(kernel) * inputs_a_group))


def transposed(x, kernel, outputs):
    """Each input element is multiplied with each tap of each output channel."""
    return sum(math.prod(kernel) * outputs for _ in itertools.product(*map(range, x)))


LSTM_WEIGHTS = [[4, 3]] * 4 + [[4, 2]] * 4 + [[4]] * 3 + [[4]] * 4 + [[2, 4], [2]]
LSTM_STATE = [[5, 2], [5, 4]]
LSTM_MACS = 4 * 4 * 3 + 4 * 4 * 2 + 3 * 4 + 2 * 4  # a step of one batch
CIFG = [None, *LSTM_WEIGHTS[1:4], None, *LSTM_WEIGHTS[5:8], None, None, None, None, *LSTM_WEIGHTS[12:15], None, None]

CASES = [
    ("CONV_2D", [[2, 8, 8, 3], [4, 3, 5, 3], [4]], [2, 6, 4, 4], None, convolution([2, 6, 4, 4], [3, 5], 3)),
    ("CONV_2D", [[1, 8, 8, 6], [4, 3, 3, 3], None], [1, 6, 6, 4], None, convolution([1, 6, 6, 4], [3, 3], 3)),  # groups
    ("CONV_2D", [[0, 8, 8, 6], [4, 3, 3, 3]], [0, 6, 6, 4], None, 0),
    ("DEPTHWISE_CONV_2D", [[1, 8, 8, 3], [1, 3, 3, 6], [6]], [1, 4, 4, 6], None, convolution([1, 4, 4, 6], [3, 3], 1)),
    ("TRANSPOSE_CONV", [[4], [5, 2, 3, 7], [1, 4, 4, 7]], [1, 8, 8, 5], None, transposed([1, 4, 4, 7], [2, 3], 5)),
    ("Convolution2DTransposeBias", [[1, 4, 4, 7], [5, 2, 3, 7], [5]], [1, 8, 8, 5], None, 4 * 4 * 7 * 2 * 3 * 5),
    ("CONV_3D", [[1, 4, 5, 6, 3], [2, 3, 1, 3, 8]], [1, 3, 3, 6, 8], None, convolution([1, 3, 3, 6, 8], [2, 3, 1], 3)),
    ("CONV_3D_TRANSPOSE", [[5], [2, 3, 1, 8, 3], [1, 2, 2, 2, 3]], [1, 4, 4, 2, 8], None, 2 * 2 * 2 * 3 * 6 * 8),
    ("FULLY_CONNECTED", [[4, 10], [7, 10], [7]], [4, 7], None, 4 * 10 * 7),
    ("FULLY_CONNECTED", [[2, 5, 4], [7, 10]], [4, 7], None, 4 * 10 * 7),
    ("FULLY_CONNECTED", [[1, 1], [7, 10]], [1, 7], None, 70),  # an input shape not known, as converters write it
    ("FULLY_CONNECTED", [[4, 10], [7, 10]], [], None, 4 * 10 * 7),
    ("BATCH_MATMUL", [[2, 3, 4, 5], [2, 3, 5, 6]], [2, 3, 4, 6], None, 2 * 3 * 4 * 5 * 6),
    ("BATCH_MATMUL", [[3, 5, 4], [1, 5, 6]], [3, 4, 6], {"adj_x": True}, 3 * 4 * 5 * 6),
    ("LSTM", [[5, 3], *LSTM_WEIGHTS, *LSTM_STATE], [5, 2], None, 5 * LSTM_MACS),
    ("LSTM", [[5, 3], [5, 4], [16, 7], [16], [5, 4]], [5, 4], None, 5 * 16 * 7),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", [[9, 5, 3], *LSTM_WEIGHTS, *LSTM_STATE], [9, 5, 2], None, 45 * LSTM_MACS),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", [[9, 5, 3], *CIFG, *LSTM_STATE], [9, 5, 4], None, 45 * (3 * 12 + 3 * 8)),
    (
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        [[9, 5, 3], *LSTM_WEIGHTS, *LSTM_WEIGHTS, *LSTM_STATE, *LSTM_STATE, [9, 5, 3], *[[4, 3]] * 8],
        [9, 5, 2],
        None,
        45 * (2 * LSTM_MACS + 8 * 12),
    ),
    ("RNN", [[5, 3], [4, 3], [4, 4], [4], [5, 4]], [5, 4], None, 5 * (12 + 16)),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", [[9, 5, 3], [4, 3], [4, 4], [4], [5, 4]], [9, 5, 4], None, 45 * (12 + 16)),
    (
        "BIDIRECTIONAL_SEQUENCE_RNN",
        [[9, 5, 3], *[[4, 3], [4, 4], [4], [5, 4]] * 2, [9, 5, 3], [4, 3], [4, 3]],
        [9, 5, 4],
        None,
        45 * (2 * (12 + 16) + 24),
    ),
    ("SVDF", [[2, 3], [8, 3], [8, 10], [8], [2, 80]], [2, 8], None, 2 * (8 * 3 + 8 * 10)),
    (
        "STABLEHLO_DOT_GENERAL",
        [[2, 4, 5], [2, 5, 6]],
        [2, 4, 6],
        {"lhs_contracting_dimensions": [2], "rhs_contracting_dimensions": [1]},
        2 * 4 * 5 * 6,
    ),
    (
        "STABLEHLO_CONVOLUTION",
        [[1, 8, 8, 3], [3, 3, 3, 5]],
        [1, 6, 6, 5],
        {"kernel_output_feature_dimension": 3},
        convolution([1, 6, 6, 5], [3, 3], 3),
    ),
]


@pytest.mark.parametrize(("name", "inputs", "output", "options", "count"), CASES)
def test_multiply_adds(name, inputs, output, options, count):
    assert one(name, inputs, output, options).multiply_adds == count


def test_every_formula_has_a_case():
    assert set(counted_operators()) == {name for name, *_ in CASES}


@pytest.mark.parametrize(("name", "inputs", "output", "options", "count"), CASES)
def test_odd_shapes_give_a_count_or_none(name, inputs, output, options, count):
    odd = (None, [], [-1, 3], [0], [2] * 7, [2**31 - 1] * 100)
    changed = [
        [shape if i == index else s for i, s in enumerate(inputs)] for index in range(len(inputs)) for shape in odd
    ]
    answers = [one(name, shapes, output, options).multiply_adds for shapes in changed]
    answers += [one(name, inputs, shape or [], options).multiply_adds for shape in odd]
    assert all(answer is None or answer >= 0 for answer in answers)
    assert answers.count(None) >= 4
    assert one(name, [], output, options).multiply_adds is None


def test_a_left_out_input_is_unknown():
    assert one("CONV_2D", [[1, 8, 8, 3], None], [1, 8, 8, 4]).multiply_adds is None
    assert one("CONV_2D", [[1, 8, 8, 3], [5, 3, 3, 3]], [1, 8, 8, 4]).multiply_adds is None  # 5 filters, 4 channels
    assert one("RNN", [[5, 3], None, [4, 4]], [5, 4]).multiply_adds is None


def test_other_operators():
    assert one("ADD", [[5], [5]], [5]).multiply_adds == 0
    assert one("MyOwn", [[5], [5]], [5]).multiply_adds is None
    model = make_model([tensor("x", [1])], [operator("ADD", [0], [0])])
    model.store("operator_codes", [{"builtin_code": 5000}])
    assert tq.Model(pack(model)).operators[0].multiply_adds is None


# ---- rows, groups and totals ----


def shared_weights():
    """Two dense layers with the same weights, and a reshape."""
    weights = np.ones((4, 4), np.int8)
    return tq.Model(
        build_model(
            [
                tensor("x", [1, 4], "INT8", scale=1.0),
                tensor("w", [4, 4], "INT8", weights, scale=0.5),
                tensor("b", [4], "INT32", np.ones(4, np.int32), scale=0.5),
                tensor("y", [1, 4], "INT8", scale=1.0),
                tensor("z", [1, 4], "INT8", scale=1.0),
                tensor("shape", [2], "INT32", np.array([2, 2], np.int32)),
                tensor("out", [2, 2], "INT8", scale=1.0),
                tensor("unread", [10], "FLOAT32", np.ones(10, np.float32)),
            ],
            [
                operator("FULLY_CONNECTED", [0, 1, 2], [3]),
                operator("FULLY_CONNECTED", [3, 1, -1], [4]),
                operator("RESHAPE", [4, 5], [6]),
                operator("Mine", [6], []),
            ],
            [0],
            [6],
        )
    )


def test_rows():
    rows = shared_weights().summary().operators
    assert [(r.subgraph, r.index, r.name, r.parameters, r.constant_bytes, r.macs) for r in rows] == [
        (0, 0, "FULLY_CONNECTED", 20, 32, 16),
        (0, 1, "FULLY_CONNECTED", 16, 16, 16),
        (0, 2, "RESHAPE", 0, 8, 0),
        (0, 3, "Mine", 0, 0, None),
    ]
    assert rows[0].inputs[1] == ("INT8", (4, 4))
    assert rows[1].inputs[2] is None
    assert rows[3].outputs == []
    assert str(rows[0].inputs[1]) == "INT8[4,4]"


def test_constants_that_are_shared_count_once_in_groups_and_totals():
    summary = shared_weights().summary()
    assert summary.groups[0] == GroupSummary("FULLY_CONNECTED", 2, 20, 32, 32, 0)
    assert [g.name for g in summary.groups] == ["FULLY_CONNECTED", "RESHAPE", "Mine"]
    assert (summary.parameters, summary.constant_bytes) == (30, 32 + 8 + 40)  # unread constants are in the file too
    assert (summary.macs, summary.macs_unknown) == (32, 1)


def test_two_buffers_of_the_same_bytes_count_once_and_equal_bytes_twice():
    model = make_model([tensor(n, [64], "INT8", np.arange(64, dtype=np.int8)) for n in "ab"])
    assert tq.Model(pack(model)).summary().constant_bytes == 128
    model.tensors[1].buffer = 1
    assert tq.Model(pack(model)).summary().constant_bytes == 64


def test_two_views_of_a_buffer_count_as_the_larger():
    model = make_model(
        [
            tensor("small", [2], "INT8", buffer=1),
            tensor("large", [8], "INT8", buffer=1),
            tensor("i", [2], "INT32", buffer=1),
        ],
        buffers=[bytes(8)],
    )
    summary = tq.Model(pack(model)).summary()
    assert (summary.parameters, summary.constant_bytes) == (8, 8)


def test_endless_shapes_have_no_product():
    assert one("BATCH_MATMUL", [[2**31 - 1] * 100, [1, 1]], [1]).multiply_adds is None
    assert one("BATCH_MATMUL", [[2**31 - 1] * 60, [1, 1]], [1]).multiply_adds == 2**31 - 1


def test_further_subgraphs_and_external_buffers_count():
    graph = subgraph([tensor("x", [3, 4], external_buffer=3)], [operator("ABS", [0], [0])])
    model = make_model(subgraphs=[subgraph(), graph])
    model.store("external_buffer_groups", [{"name": "side.bin"}])
    model.store("external_buffers", [{"id": 3, "group": 0, "offset": 0, "length": 48}])
    summary = tq.Model(pack(model)).summary()
    assert (summary.parameters, summary.constant_bytes, len(summary.operators)) == (12, 48, 1)
    assert summary.operators[0].subgraph == 1
    assert "\n1:0  ABS " in str(summary)


@pytest.mark.corpus
def test_numbers_that_real_models_are_known_for(corpus):
    known = {"k_mnv2_int8.tflite": (300_774_272, 65), "k_rn50_int8.tflite": (3_857_973_248, 75)}
    found = {path.name: path for path in corpus if path.name in known}
    if not found:
        pytest.skip("the corpus lacks the Keras models")
    for name, path in found.items():
        summary = tq.Model(path).summary()
        assert (summary.macs, len(summary.operators)) == known[name]
        assert summary.macs_unknown == 0


@pytest.mark.corpus
def test_every_real_model_has_a_summary(corpus):
    for path in corpus:
        model = tq.Model(path)
        summary = model.summary()
        assert len(summary.operators) == sum(len(graph.operators) for graph in model.subgraphs)
        assert sum(group.count for group in summary.groups) == len(summary.operators)
        assert sum(group.macs for group in summary.groups) == summary.macs
        assert sum(group.macs_unknown for group in summary.groups) == summary.macs_unknown
        json.loads(json.dumps(summary.to_dict(), allow_nan=False))
        assert str(summary)


# ---- how it looks ----


def test_text():
    text = str(shared_weights().summary())
    operators, groups, totals = text.split("\n\n")
    assert operators.split("\n") == [
        "Op  Name             Inputs                        Outputs    Parameters  Bytes  Multiply-adds",
        "--  ---------------  ----------------------------  ---------  ----------  -----  -------------",
        " 0  FULLY_CONNECTED  INT8[1,4] INT8[4,4] INT32[4]  INT8[1,4]          20     32             16",
        " 1  FULLY_CONNECTED  INT8[1,4] INT8[4,4] -         INT8[1,4]          16     16             16",
        " 2  RESHAPE          INT8[1,4] INT32[2]            INT8[2,2]           0      8              0",
        " 3  Mine             INT8[2,2]                                         0      0              ?",
    ]
    assert groups.split("\n")[2].split() == ["FULLY_CONNECTED", "2", "20", "32", "32"]
    assert totals.split("\n") == [
        "Operators          4",
        "Parameters         30",
        "Constant bytes     80",
        f"File bytes         {shared_weights().nbytes:,}",
        "Multiply-adds      32 + 1 operator unknown",
    ]
    assert repr(shared_weights().summary()) == (
        "<tq.Summary: 4 operators, 30 parameters, 32 + 1 operator unknown multiply-adds>"
    )


def test_names_cannot_break_the_table_or_the_page():
    name = "<script>\n\x1b[31m" + "x" * 300
    summary = tq.Model(build_model([tensor("t", [1])], [operator(name, [0] * 9, [0])])).summary()
    lines = str(summary).split("\n")
    assert lines[2].startswith(" 0  <script>..[31mxxx")
    assert lines[2].count("FLOAT32[1]") == 5 and " +5 " in lines[2]
    assert max(map(len, lines)) < 250
    assert "<script" not in summary._repr_html_()


def test_html_is_well_formed():
    open_tags = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag, attributes):
            open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    page = shared_weights().summary()._repr_html_()
    Checker().feed(page)
    assert open_tags == []
    assert "FULLY_CONNECTED" in page and "<details>" in page


def test_to_dict():
    table = shared_weights().summary().to_dict()
    assert json.loads(json.dumps(table, allow_nan=False))["operators"][1] == {
        "subgraph": 0,
        "index": 1,
        "name": "FULLY_CONNECTED",
        "inputs": [{"type": "INT8", "shape": [1, 4]}, {"type": "INT8", "shape": [4, 4]}, None],
        "outputs": [{"type": "INT8", "shape": [1, 4]}],
        "parameters": 16,
        "constant_bytes": 16,
        "macs": 16,
    }
    assert table["totals"]["macs_unknown"] == 1
    assert table["groups"][0]["name"] == "FULLY_CONNECTED"


def test_a_model_of_nothing():
    summary = tq.Model(build_model(subgraphs=[])).summary()
    assert (summary.operators, summary.groups, summary.macs, summary.parameters) == ([], [], 0, 0)
    assert str(summary).startswith("Operators          0\n")
