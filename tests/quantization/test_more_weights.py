# SPDX-License-Identifier: Apache-2.0
"""Weights of GATHER and of custom operators, where activations stay float."""

import numpy as np
import pytest
from test_quantize_model import RESOLVERS, noise_db, normal, outputs

import tq


def names(data):
    return [op.name for op in tq.Model(data).operators]


def text_model(**options):
    """Words -> a table's rows -> their mean -> FULLY_CONNECTED"""
    b = tq.ModelBuilder()
    x = b.input("words", [1, 6], "int32")
    rows, mean, y = b.tensor("rows", [1, 6, 32]), b.tensor("mean", [1, 32]), b.tensor("y", [1, 4])
    b.operator("GATHER", [b.constant("table", normal(500, 32)), x], [rows], axis=0, **options)
    b.operator("MEAN", [rows, b.constant("axes", np.int32([1]))], [mean])
    b.operator("FULLY_CONNECTED", [mean, b.constant("w", normal(4, 32)), b.constant("b", normal(4))], [y])
    b.output(y)
    return b.to_bytes()


@pytest.mark.parametrize("recipe", ["dynamic_int8", "weight_only_int8"])
def test_tables_that_gather_takes_rows_of(recipe):
    """The rows are dequantized, and not the table."""
    model = text_model()
    data = tq.quantize_model(model, recipe)
    assert names(data)[:2] == ["GATHER", "DEQUANTIZE"] and len(data) < len(model) / 3.3
    table = tq.Model(data).tensors["table"]
    assert table.type.name == "INT8" and len(table.quantization.scale) == 1 and not tq.Model(data).problems
    for resolver in RESOLVERS:
        assert noise_db(outputs(model, "TQ"), outputs(data, resolver)) > 35


def test_a_table_of_int4_stands_behind_a_dequantize():
    data = tq.quantize_model(text_model(), "weight_only_int4")
    assert names(data)[:2] == ["DEQUANTIZE", "GATHER"]


def custom():
    b = tq.ModelBuilder()
    x, y = b.input("x", [1, 32]), b.tensor("y", [1, 32])
    inputs = [x, b.constant("a", normal(32, 64)), b.constant("c", normal(32, 64, seed=1))]
    b.operator("MyOp", inputs, [y], custom_options=b"")
    b.output(y)
    return b.to_bytes()


def test_weights_of_custom_operators():
    data = tq.quantize_model(custom(), "weight_only_int8", custom_weights={"MyOp": [1, 2]})
    assert names(data) == ["DEQUANTIZE", "DEQUANTIZE", "MyOp"]
    model = tq.Model(tq.quantize_model(custom(), "dynamic_int8", custom_weights={"MyOp": [2]}))
    assert [t.type.name for t in model.operators[0].inputs] == ["FLOAT32", "FLOAT32", "INT8"]
    assert model.tensors["c"].quantization.scale == np.float32(np.abs(normal(32, 64, seed=1)).max() / np.float32(127))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"MyOps": [1]}, "no custom operator 'MyOps'"),
        ({"MyOp": [0]}, r"'MyOp' has no effect: its inputs \[0\] are no float32 constants"),
        ({"MyOp": [1, 7]}, "'MyOp' has no weights at input 7"),
        ({"MyOp": ["a"]}, "the indices of inputs are needed"),
        ({"MyOp": 1}, "'MyOp' gets 1; the indices of inputs are needed"),
        ({"MyOp": [True]}, "the indices of inputs are needed"),
    ],
)
def test_custom_weights_that_are_none(given, words):
    with pytest.raises(ValueError, match=words):
        tq.quantize_model(custom(), "dynamic_int8", custom_weights=given)


@pytest.mark.parametrize("recipe", ["float16", "dynamic_int2", "blockwise_int4"])
def test_custom_weights_beside_recipes_that_leave_them(recipe):
    with pytest.raises(ValueError, match=f"custom_weights is given and has no effect: recipe '{recipe}' leaves them"):
        tq.quantize_model(custom(), recipe, custom_weights={"MyOp": [1]})
