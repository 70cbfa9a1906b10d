# SPDX-License-Identifier: Apache-2.0
"""SKIP_GRAM and LSH_PROJECTION: what the comparison with LiteRT cannot show."""

import numpy as np
import pytest
from models import build_model, operator, tensor

import tq


def grams(text, size, skip, all_sizes=False, shape=(1,)):
    node = operator("SKIP_GRAM", [0], [1], ngram_size=size, max_skip_size=skip, include_all_ngrams=all_sizes)
    data = build_model([tensor("x", list(shape), "STRING"), tensor("y", [1], "STRING")], [node], [0], [1])
    made = tq.Interpreter(model_content=data)
    made.allocate_tensors()
    made.set_tensor(0, np.array([text] * shape[0], object))
    made.invoke()
    return [gram.decode() for gram in made.get_tensor(1)]


def test_grams():
    """The sentence of the paper on skip-grams, Guthrie and others 2006."""
    text = "insurgents killed in ongoing fighting"
    assert grams(text, 2, 0) == ["insurgents killed", "killed in", "in ongoing", "ongoing fighting"]
    assert len(grams(text, 2, 2)) == 9 and len(grams(text, 3, 2)) == 10
    assert grams("a b", 2, 0, True) == ["a b", "a", "b"]
    for size in (-1, 0, 3, 2**31 - 1):
        assert grams("a b", size, 5) == []
    assert grams("", 1, 1) == []


def test_grams_without_end_are_refused():
    words = " ".join(["w" * 20000] * 60)
    for all_sizes in (False, True):
        with pytest.raises(tq.RunError, match="more than 2 GB of strings"):
            grams(words, 30, 60, all_sizes)


def test_most_words_of_many():
    """Every gram leaves out one word; walks that end in no gram are not made."""
    words = " ".join(f"w{k}" for k in range(45))
    assert len(grams(words, 44, 45)) == 45


def test_no_text():
    with pytest.raises(tq.RunError, match="SKIP_GRAM"):
        grams("", 1, 1, shape=(0,))


def project(seeds=(2, 8), items=(3, 4), weights=None, type="FLOAT32", kind=2):
    tensors = [tensor("s", list(seeds)), tensor("x", list(items), type)]
    tensors += [] if weights is None else [tensor("w", list(weights))]
    fed = list(range(len(tensors)))
    node = operator("LSH_PROJECTION", fed, [len(fed)], type=kind)
    tq.Interpreter(
        model_content=build_model([*tensors, tensor("y", [1], "INT32")], [node], fed, [len(fed)])
    ).allocate_tensors()


BAD = [
    ({"seeds": (2, 33)}, "has 33 bits for each hash"),
    ({"seeds": (8,)}, "input 0"),
    ({"items": (0, 4)}, "it needs at least 1, of a type of fixed size"),
    ({"items": ()}, "input 1"),
    ({"type": "STRING"}, "it needs at least 1, of a type of fixed size"),
    ({"weights": (4,)}, "has 4 weights for 3 items"),
    ({"kind": 0}, "it needs SPARSE or DENSE"),
    ({"kind": 7}, "it needs SPARSE or DENSE"),
    ({"seeds": (2**27, 32)}, "would have a dimension of 4294967296"),
]


@pytest.mark.parametrize(("changed", "text"), BAD, ids=[text for _, text in BAD])
def test_what_breaks_the_contract_is_named(changed, text):
    with pytest.raises(tq.RunError) as caught:
        project(**changed)
    assert text in str(caught.value) and "operator 0 (LSH_PROJECTION)" in str(caught.value)
