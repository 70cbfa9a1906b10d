# SPDX-License-Identifier: Apache-2.0
"""The list that get_tensor_details returns makes its dicts when first looked at, and is a list in every other way."""

import copy
import gc
import operator
import pickle
import weakref
from pathlib import Path

import pytest

import tq

DEMO = Path(tq.__file__).parent / "demo.tflite"
COUNT = 13


@pytest.fixture
def fresh():
    """A list that nothing has looked at yet."""
    return tq.Model(DEMO).get_tensor_details()


# Every way to look at a list that does not change it: the result of the left is that of a plain list.
LOOKS = {
    "len": len,
    "bool": bool,
    "first": lambda x: x[0]["name"],
    "last": lambda x: x[-1]["index"],
    "slice": lambda x: [d["index"] for d in x[2:5]],
    "iterate": lambda x: [d["index"] for d in x],
    "star": lambda x: [d["index"] for d in [*x]],
    "unpack": lambda x: operator.itemgetter("name")((lambda a, *rest: a)(*x)),
    "reversed": lambda x: [d["index"] for d in reversed(x)],
    "sorted": lambda x: [d["index"] for d in sorted(x, key=lambda d: -d["index"])],
    "tuple": lambda x: len(tuple(x)),
    "left of +": lambda x: len(x + [1]),  # noqa: RUF005
    "right of +": lambda x: len([1] + x),  # noqa: RUF005
    "both of +": lambda x: len(x + x),
    "repeat": lambda x: (len(x * 2), len(2 * x)),
    "extend": lambda x: (lambda a: (a.extend(x), len(a))[1])([1]),
    "slice assign": lambda x: (lambda a: (operator.setitem(a, slice(0, 1), x), len(a))[1])([1, 2]),
    "copy": lambda x: (len(x.copy()), len(copy.copy(x)), len(copy.deepcopy(x))),
    "equal": lambda x: (x == [], [] == x, x != [], x == x),  # noqa: SIM300
    "contains": lambda x: 5 in x,
    "count": lambda x: x.count(5),
    "repr": lambda x: repr(x)[:10],
    "zip": lambda x: [b["index"] for _, b in zip(range(3), x, strict=False)],
    "pickle": lambda x: (type(pickle.loads(pickle.dumps(x))), len(pickle.loads(pickle.dumps(x)))),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_looks_like_a_list(fresh, look):
    plain = list(tq.Model(DEMO).get_tensor_details())
    assert type(plain) is list and len(plain) == COUNT
    assert look(fresh) == look(plain)


CHANGES = {
    "append": lambda x: x.append(1),
    "extend": lambda x: x.extend([1, 2]),
    "insert": lambda x: x.insert(0, 1),
    "pop": lambda x: x.pop(0),
    "delete": lambda x: operator.delitem(x, 0),
    "delete slice": lambda x: operator.delitem(x, slice(0, 3)),
    "assign": lambda x: operator.setitem(x, 1, None),
    "clear": lambda x: x.clear(),
    "reverse": lambda x: x.reverse(),
    "sort": lambda x: x.sort(key=lambda d: -d["index"]),
    "+=": lambda x: operator.iadd(x, [1]),
    "*=": lambda x: operator.imul(x, 2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_like_a_list(fresh, change):
    plain = list(tq.Model(DEMO).get_tensor_details())
    change(fresh)
    change(plain)
    assert [d["index"] if isinstance(d, dict) else d for d in fresh] == [
        d["index"] if isinstance(d, dict) else d for d in plain
    ]


def test_holds_plain_dicts(fresh):
    assert isinstance(fresh, list)
    assert {type(d) for d in fresh} == {dict}
    assert type(fresh[0]["quantization_parameters"]) is dict


def test_refuses_what_a_list_refuses(fresh):
    with pytest.raises(TypeError):
        hash(fresh)
    with pytest.raises(TypeError):
        fresh + (1,)  # noqa: RUF005
    with pytest.raises(IndexError):
        fresh[COUNT]


def test_outlives_the_model_and_lets_it_go():
    class Model(tq.Model):
        pass

    model = Model(DEMO)
    gone = weakref.ref(model)
    details = model.get_tensor_details()
    del model
    gc.collect()
    assert gone() is not None, "an untouched list still needs its model"
    assert len(details) == COUNT
    gc.collect()
    assert gone() is None, "a filled one does not"
