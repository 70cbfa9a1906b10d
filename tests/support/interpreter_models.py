# SPDX-License-Identifier: Apache-2.0
"""Small models that tests of the interpreter run."""

import numpy as np
from models import build_model, make_model, operator, pack, signature, subgraph, tensor

from tq.running.interpreter import Interpreter


def permute(**kwargs):
    """y = x reversed, by a matrix product without bias."""
    return build_model(
        [
            tensor("input", [1, 4]),
            tensor("weights", [4, 4], data=np.eye(4, dtype=np.float32)[::-1]),
            tensor("output", [1, 4]),
        ],
        [operator("FULLY_CONNECTED", [0, 1, -1], [2])],
        [0],
        [2],
        **kwargs,
    )


def relu_chain(count=4, size=64):
    """Tensors of one size, each dead as soon as the next is there."""
    return build_model(
        [tensor(f"t{k}", [size]) for k in range(count + 1)],
        [operator("NEG", [k], [k + 1]) for k in range(count)],
        [0],
        [count],
    )


def allocated(data, **kwargs):
    made = Interpreter(model_content=data, **kwargs)
    made.allocate_tensors()
    return made


def counter(body_operators=None):
    """x: float [2]; i = 0; while i < n: x = -x, i = i + 1."""
    scalar = {"type": "INT32"}
    condition = subgraph(
        [tensor("i", [], **scalar), tensor("n", [], **scalar), tensor("x", [2]), tensor("less", [], "BOOL")],
        [operator("LESS", [0, 1], [3])],
        [0, 1, 2],
        [3],
        "condition",
    )
    body = subgraph(
        [
            tensor("i", [], **scalar),
            tensor("n", [], **scalar),
            tensor("x", [2]),
            tensor("one", [], "INT32", data=np.int32(1)),
            tensor("next", [], **scalar),
            tensor("negated", [2]),
        ],
        [
            operator("ADD", [0, 3], [4]),
            operator("NEG", [2], [5]),
        ],
        [0, 1, 2],
        [4, 1, 5],
        "body",
    )
    main = subgraph(
        [
            tensor("start", [], "INT32", data=np.int32(0)),
            tensor("n", [], **scalar),
            tensor("x", [2]),
            tensor("i", [], **scalar),
            tensor("m", [], **scalar),
            tensor("y", [2]),
        ],
        [operator("WHILE", [0, 1, 2], [3, 4, 5], cond_subgraph_index=1, body_subgraph_index=2)],
        [1, 2],
        [3, 5],
    )
    return pack(make_model(subgraphs=[main, condition, body]))


def variable_model():
    handle = {"container": "c", "shared_name": "v"}
    once = subgraph(
        [tensor("h", [], "RESOURCE"), tensor("zero", [2], data=np.array([5, 6], np.float32))],
        [operator("VAR_HANDLE", [], [0], **handle), operator("ASSIGN_VARIABLE", [0, 1], [])],
        [],
        [],
        "once",
    )
    main = subgraph(
        [tensor("x", [2]), tensor("h", [], "RESOURCE"), tensor("old", [2]), tensor("new", [2])],
        [
            operator("CALL_ONCE", [], [], init_subgraph_index=1),
            operator("VAR_HANDLE", [], [1], **handle),
            operator("READ_VARIABLE", [1], [2]),
            operator("ADD", [0, 2], [3]),
            operator("ASSIGN_VARIABLE", [1, 3], []),
        ],
        [0],
        [3],
    )
    return pack(make_model(subgraphs=[main, once]))


def two_signatures():
    def graph(name):
        tensors = [tensor(f"{name}_x", [1], shape_signature=[-1]), tensor(f"{name}_y", [1])]
        return subgraph(tensors, [operator("NEG", [0], [1])], [0], [1], name)

    return pack(
        make_model(
            subgraphs=[graph("a"), graph("b")],
            signatures=[signature("one", {"x": 0}, {"y": 1}), signature("two", {"u": 0}, {"v": 1}, 1)],
        )
    )


def strings(shape):
    return build_model([tensor("x", shape, "STRING")], [], [0], [0])


def custom(outputs=1, shape=(4,)):
    return build_model(
        [tensor("x", [4]), *(tensor(f"y{k}", list(shape)) for k in range(outputs))],
        [operator("Mine", [0], list(range(1, outputs + 1)), custom_options=b"options")],
        [0],
        list(range(1, outputs + 1)),
    )


X = np.array([[1, 2, 3, 4]], np.float32)
