# SPDX-License-Identifier: Apache-2.0
"""A model's sequences of tensors, operators and signatures, asked by name."""

import pytest
from models import build_model, operator, tensor

import tq


@pytest.fixture
def model():
    tensors = [tensor("x", shape=[2]), tensor("scores", shape=[2]), tensor("scores", shape=[2])]
    return tq.Model(
        build_model(tensors, [operator("ABS", [0], [1]), operator("NEG", [1], [2])], inputs=[0], outputs=[2])
    )


def test_a_sequence_tells_whether_it_has_a_name(model):
    """`in` answered False for every name."""
    assert "scores" in model.tensors and "score" not in model.tensors
    assert "ABS" in model.operators and "scores" not in model.operators
    assert "ABS" in model.operator_codes


def test_a_sequence_holds_its_items(model):
    assert model.tensors[1] in model.tensors
    assert model.operators[0] not in model.tensors and None not in model.tensors


def test_get_gives_the_first_item_of_a_name_or_a_default(model):
    assert model.tensors.get("scores").index == 1
    assert model.tensors.get("score") is None
    assert model.tensors.get("score", 7) == 7
    with pytest.raises(TypeError):
        model.tensors.get(1)


def test_ipython_completes_names(model):
    assert model.tensors._ipython_key_completions_() == ["x", "scores", "scores"]
    assert model.buffers._ipython_key_completions_() == []


def test_an_editors_parts_answer_alike(model):
    parts = tq.edit(model).tensors
    assert "scores" in parts and "score" not in parts and parts[1] in parts and None not in parts
    assert parts.get("scores") is parts[1] and parts.get("score") is None
    assert parts._ipython_key_completions_() == ["x", "scores", "scores"]


def test_a_sequence_iterates(model):
    assert [t.name for t in model.tensors] == ["x", "scores", "scores"]
    assert [t.index for t in reversed(list(iter(model.tensors)))] == [2, 1, 0]
