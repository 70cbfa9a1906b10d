# SPDX-License-Identifier: Apache-2.0
"""Hash tables and STABLEHLO_CASE: what the comparison with LiteRT cannot show."""

import numpy as np
import pytest
from models import build_model, operator, subgraph, tensor

import tq


def declare(output, key="INT64", value="STRING", table_id=3):
    return operator("HASHTABLE", [], [output], table_id=table_id, key_dtype=key, value_dtype=value)


def model(operators, **changed):
    tensors = {
        "handle": tensor("handle", [1], "RESOURCE"),
        "keys": tensor("keys", [4], "INT64", np.int64([5, -1, 5, 2**62])),
        "values": tensor("values", [4], "STRING", [b"five", b"minus", b"other", b""]),
        "wanted": tensor("wanted", [3], "INT64"),
        "default": tensor("default", [1], "STRING", [b"none"]),
        "found": tensor("found", [3], "STRING"),
        "size": tensor("size", [1], "INT64"),
    } | changed
    fed = [3] if any(3 in item.inputs for item in operators) else []
    results = [index for index in (5, 6) if any(index in item.outputs for item in operators)]
    made = tq.Interpreter(model_content=build_model(list(tensors.values()), operators, fed, results))
    made.allocate_tensors()
    return made


IMPORT, FIND = operator("HASHTABLE_IMPORT", [0, 1, 2], []), operator("HASHTABLE_FIND", [0, 3, 4], [5])
SIZE = operator("HASHTABLE_SIZE", [0], [6])


def test_the_first_of_equal_keys_stays():
    made = model([declare(0), SIZE, IMPORT, IMPORT, FIND])
    for count in (0, 3):
        made.set_tensor(3, np.int64([5, 7, 2**62]))
        made.invoke()
        assert made.get_tensor(5).tolist() == [b"five", b"none", b""] and made.get_tensor(6) == [count]
        made.reset_all_variables()


def test_a_table_is_filled_before_it_is_looked_up():
    made = model([declare(0), FIND, IMPORT])
    made.set_tensor(3, np.int64([5, 7, 9]))
    with pytest.raises(tq.RunError, match="table 3 is looked up before it is filled"):
        made.invoke()


def test_two_handles_of_a_table_are_one_table():
    tensors = [tensor("a", [1], "RESOURCE"), tensor("b", [1], "RESOURCE")]
    tensors += [tensor("k", [2], "INT64", np.int64([1, 2])), tensor("v", [2], "STRING", [b"x", b"y"])]
    tensors.append(tensor("n", [1], "INT64"))
    nodes = [declare(0), declare(1), operator("HASHTABLE_IMPORT", [0, 2, 3], []), operator("HASHTABLE_SIZE", [1], [4])]
    made = tq.Interpreter(model_content=build_model(tensors, nodes, [], [4]))
    made.allocate_tensors()
    made.invoke()
    assert made.get_tensor(4) == [2]


BAD = [
    ([declare(0, "INT64", "INT64")], {}, "it needs INT64 and STRING"),
    ([declare(0), operator("HASHTABLE_IMPORT", [0, 1, 1], [])], {}, "it needs INT64 and STRING"),
    (
        [declare(0), IMPORT],
        {"values": tensor("v", [2], "STRING", [b"", b""])},
        "has another shape than the keys",
    ),
    ([declare(0), FIND], {"default": tensor("d", [0], "STRING", [])}, "it needs a default"),
    ([operator("HASHTABLE_SIZE", [1], [6])], {}, "input 0"),
]


@pytest.mark.parametrize(("operators", "changed", "text"), BAD, ids=[text for *_, text in BAD])
def test_what_breaks_a_contract_is_named(operators, changed, text):
    with pytest.raises(tq.RunError) as caught:
        model(operators, **changed)
    assert text in str(caught.value) and "HASHTABLE" in str(caught.value)


def test_a_table_of_other_types_is_data():
    made = model([declare(0, "STRING", "INT64"), IMPORT])
    with pytest.raises(tq.RunError, match="table 3 is of STRING to INT64, not of INT64 to STRING"):
        made.invoke()


def test_a_handle_that_names_no_table_is_data():
    nodes = [operator("VAR_HANDLE", [], [0], shared_name="v"), SIZE]
    with pytest.raises(tq.RunError, match="there is no table 0"):
        model(nodes).invoke()


def branch(value):
    parts = [tensor("x", [1]), tensor("c", [1], data=np.float32([value])), tensor("y", [1])]
    return subgraph(parts, [operator("ADD", [0, 1], [2])], [0], [2], "branch")


def choose(branches, index=()):
    tensors = [tensor("i", list(index), "INT32"), tensor("x", [1]), tensor("y", [1])]
    main = subgraph(tensors, [operator("STABLEHLO_CASE", [0, 1], [2], branch_subgraph_indices=branches)], [0, 1], [2])
    made = tq.Interpreter(model_content=build_model(subgraphs=[main, branch(10), branch(20)]))
    made.allocate_tensors()
    return made


def test_an_index_that_names_no_branch_means_the_last():
    made = choose([2, 1])
    made.set_tensor(1, np.float32([1]))
    for index, wanted in ((0, 21), (1, 11), (2, 11), (-1, 11), (-(2**31), 11)):
        made.set_tensor(0, np.array(index, np.int32))
        made.invoke()
        assert made.get_tensor(2) == [wanted]


@pytest.mark.parametrize(("branches", "index"), [([], ()), ([0], ()), ([1, 7], ()), ([1, -1], ()), ([1, 2], (2,))])
def test_branches_that_cannot_be_taken(branches, index):
    with pytest.raises(tq.RunError, match=r"STABLEHLO_CASE|calls itself"):
        choose(branches, index)
