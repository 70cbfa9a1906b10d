# SPDX-License-Identifier: Apache-2.0
"""Well-formed files that say impossible things.

    python tests/support/impossible.py write SEED NUMBER FILE          one of them
    python tests/support/impossible.py stream SEED FROM COUNT          many, each behind its length in 4 bytes, for
                                                               tests/fuzz/replay.c's `stream`

A model of generators, of any row of operator and type, is read into a tree of tables, one to four things in it
are broken, and the tree is written again: every offset of the file is sound, and its meaning is not.  A break is a
function under `@breaks`.  damaged_runs.py runs these models through Python, tests/runtime/test_impossible.py through
the C core.
"""

import random
import struct
import sys
from functools import cache, lru_cache

if __name__ == "__main__":
    import built  # noqa: F401

import differential
import generators

import tq
from tq import _core
from tq.editing import fields

A_DRAW = 16  # models that are made of one drawn model
INTEGERS = [0, 1, 2, 3, 4, 5, 7, 8, 64, 127, 128, 255, 256, 65535, 65536, 2**20, 2**24, 2**30, 2**31 - 1]
INTEGERS += [2**31, 2**32 - 1, -1, -2, -3, -7, -128, -129, -65536, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
SMALL = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 9, 31, 32, 33, 64, 100]
REALS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e38, 3.4e38, -1e38, float("inf"), float("-inf"), float("nan"), 0.5, 1e-6]
DIMENSIONS = [0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 255, 1000, 65536, 2**20, 2**30, 2**31 - 1, -1, -2, -(2**31)]
TYPES = len(_core.tensor_types())

BREAKS = {}
OFTEN = ("odd_option", "odd_values", "another_callee", "odd_option", "odd_values")  # many models have none to break


def breaks(function):
    """Enters a function of a `Hand`; what it stores may not fit a field (ValueError) or not be there (LookupError)."""
    BREAKS[function.__name__] = function
    return function


@cache
def defaults():
    return {name: table for name, _code, table in _core.schema_builtins()}


class Hand:
    """A model's tree, and the part of it that is about to be broken."""

    def __init__(self, data, chance):
        self.tree = _core._Tree(tq.Model(data))
        self.chance = chance

    def choose(self):
        """Any subgraph, one of its operators, and any tensor, mostly one of its; LookupError: there is none."""
        pick = self.chance.choice
        self.graphs = self.nodes(self.tree.root, "subgraphs")
        self.graph = pick(self.graphs)
        self.tensors = self.nodes(self.graph, "tensors")
        self.operator = pick(self.nodes(self.graph, "operators"))
        self.side = pick(["inputs", "inputs", "outputs"])
        self.operands = list(self.operator.numbers(self.side))
        known = [i for i in self.operands if 0 <= i < len(self.tensors)]
        self.index = pick(known) if known and self.chance.random() < 0.85 else self.chance.randrange(len(self.tensors))
        self.tensor = self.tensors[self.index]

    def nodes(self, node, field):
        return list(node.get(field) or [])

    def put(self, node, field, value):
        fields.put(node, field, value)

    def twice(self, nodes):
        return [*nodes, *map(self.tree.copy, nodes)]

    def any_tensor(self):
        return self.chance.randrange(len(self.tensors))

    def bytes(self):
        return self.tree.write()


# ---- operands ----


@breaks
def left_out(hand):
    hand.operands[hand.chance.randrange(len(hand.operands))] = -1
    hand.put(hand.operator, hand.side, hand.operands)


@breaks
def too_few(hand):
    count = hand.chance.randrange(len(hand.operands))
    hand.put(hand.operator, hand.side, hand.chance.choice([hand.operands[:count], hand.operands[:count], [], None]))


@breaks
def too_many(hand):
    more = [hand.any_tensor() for _ in range(hand.chance.choice([1, 1, 2, 3, 40]))]
    hand.put(hand.operator, hand.side, hand.operands + more)


@breaks
def no_such_tensor(hand):
    hand.operands[hand.chance.randrange(len(hand.operands))] = hand.chance.choice(
        [len(hand.tensors), 2**31 - 1, -2, -(2**31)]
    )
    hand.put(hand.operator, hand.side, hand.operands)


@breaks
def another_tensor(hand):
    hand.operands[hand.chance.randrange(len(hand.operands))] = hand.any_tensor()
    hand.put(hand.operator, hand.side, hand.operands)


@breaks
def all_one_tensor(hand):
    hand.put(hand.operator, hand.side, [hand.chance.choice(hand.operands)] * len(hand.operands))


@breaks
def other_order(hand):
    hand.chance.shuffle(hand.operands)
    hand.put(hand.operator, hand.side, hand.operands)


@breaks
def output_is_input(hand):
    inputs, outputs = list(hand.operator.numbers("inputs")), list(hand.operator.numbers("outputs"))
    outputs[hand.chance.randrange(len(outputs))] = hand.chance.choice([*inputs, *hand.graph.numbers("inputs")])
    hand.put(hand.operator, "outputs", outputs)


@breaks
def other_intermediates(hand):
    hand.put(hand.operator, "intermediates", [hand.any_tensor() for _ in range(hand.chance.randrange(6))])


@breaks
def other_ends(hand):
    """Other inputs or outputs of the subgraph: constants, outputs of operators, one twice, none, wrong indices."""
    side = hand.chance.choice(["inputs", "outputs"])
    ends = list(hand.graph.numbers(side))
    how = hand.chance.randrange(5)
    if how == 0:
        ends = [hand.any_tensor() for _ in range(hand.chance.randrange(5))]
    elif how == 1:
        ends += [hand.any_tensor()]
    elif how == 2:
        ends += ends
    elif how == 3:
        ends[hand.chance.randrange(len(ends))] = hand.chance.choice([-1, len(hand.tensors), -5, 2**31 - 1])
    else:
        ends = None
    hand.put(hand.graph, side, ends)


# ---- operators ----


@breaks
def another_operator(hand):
    """The same operands and, one time in two, options, under another name."""
    codes = hand.nodes(hand.tree.root, "operator_codes")
    code = codes[int(hand.operator.get("opcode_index"))]
    name = hand.chance.choice(list(defaults()))
    number = int(tq.BuiltinOperator[name])
    hand.put(code, "builtin_code", number)
    hand.put(code, "deprecated_builtin_code", min(number, 127))
    if hand.chance.random() < 0.5:
        fresh_options(hand, defaults()[name])


@breaks
def another_version(hand):
    code = hand.chance.choice(hand.nodes(hand.tree.root, "operator_codes"))
    hand.put(code, "version", hand.chance.choice(SMALL))


@breaks
def another_name(hand):
    code = hand.chance.choice(hand.nodes(hand.tree.root, "operator_codes"))
    hand.put(
        code, "custom_code", hand.chance.choice([None, "", "TFLite_Detection_PostProcess", "Hadamard", "x", b"\xff"])
    )
    hand.put(code, "builtin_code", 32)
    hand.put(code, "deprecated_builtin_code", 32)


@breaks
def other_steps(hand):
    """Operators again, in another order, or fewer."""
    operators = hand.nodes(hand.graph, "operators")
    how = hand.chance.randrange(4)
    if how == 0:
        operators = hand.twice(operators)
    elif how == 1:
        hand.chance.shuffle(operators)
    elif how == 2:
        del operators[hand.chance.randrange(len(operators))]
    else:
        hand.put(hand.operator, "opcode_index", hand.chance.choice(INTEGERS))
        return
    hand.put(hand.graph, "operators", operators)


def options_of(hand):
    """The field that holds options, and its table."""
    for field in ("builtin_options", "builtin_options_2"):
        if hand.operator.get(field) is not None:
            return field, hand.operator.get(field)
    raise LookupError("no options")


def fresh_options(hand, table):
    """Options as their table's defaults have them, in the union that knows the table, if any does."""
    for field in ("builtin_options", "builtin_options_2"):
        union = fields.kind_of(hand.operator, field)[len("UNION(") : -1]
        known = table in fields.members(union)
        hand.put(hand.operator, field, {"type": table} if known else None)


@breaks
def no_options(hand):
    hand.put(hand.operator, options_of(hand)[0], None)


@breaks
def options_of_another(hand):
    fresh_options(hand, hand.chance.choice([table for table in defaults().values() if table]))


@breaks
def odd_option(hand):
    _field, options = options_of(hand)
    for _ in range(hand.chance.choice([1, 1, 2])):
        odd_field(hand, options)


@breaks
def odd_custom_options(hand):
    old = bytes(hand.operator.get("custom_options") or b"")
    more = hand.chance.randbytes(hand.chance.randrange(24))
    hand.put(hand.operator, "custom_options", hand.chance.choice([None, b"", old[: len(old) // 2], old + more, more]))


@breaks
def another_callee(hand):
    """Numbers of subgraphs: of this one, of any, of none."""
    _field, options = options_of(hand)
    names = [field for _operator, table, field, *_ in _core.callees() if table == options.type]
    numbers = [*range(len(hand.graphs)), len(hand.graphs), -1, 2**31 - 1]
    hand.put(options, hand.chance.choice(names), hand.chance.choice(numbers))


# ---- tensors ----


@breaks
def another_type(hand):
    hand.put(hand.tensor, "type", hand.chance.randrange(TYPES + 2))


@breaks
def one_type(hand):
    """The same for all operands: types that no kernel has."""
    type_ = hand.chance.randrange(TYPES)
    for index in [*hand.operator.numbers("inputs"), *hand.operator.numbers("outputs")]:
        if 0 <= index < len(hand.tensors):
            hand.put(hand.tensors[index], "type", type_)


@breaks
def another_dimension(hand):
    shape = list(hand.tensor.numbers("shape"))
    shape[hand.chance.randrange(len(shape))] = hand.chance.choice(DIMENSIONS)
    hand.put(hand.tensor, "shape", shape)


@breaks
def another_rank(hand):
    shape = list(hand.tensor.numbers("shape"))
    how = hand.chance.randrange(5)
    if how == 0:
        shape.insert(hand.chance.randrange(len(shape) + 1), 1)
    elif how == 1:
        del shape[hand.chance.randrange(len(shape))]
    elif how == 2:
        shape = [hand.chance.choice([1, 1, 1, 2, 0]) for _ in range(hand.chance.randrange(18))]
    else:
        shape = hand.chance.choice([None, []])
    hand.put(hand.tensor, "shape", shape)


@breaks
def another_shape_in_its_memory(hand):
    """As many elements in another shape."""
    shape = list(hand.tensor.numbers("shape"))
    hand.chance.shuffle(shape)
    hand.put(hand.tensor, "shape", shape)


@breaks
def odd_signature_of_shape(hand):
    shape = [hand.chance.choice([-1, -1, 0, 1, 5, -2]) for _ in range(hand.chance.randrange(6))]
    hand.put(hand.tensor, "shape_signature", shape)
    hand.put(hand.tensor, "has_rank", hand.chance.random() < 0.5)


@breaks
def variable(hand):
    hand.put(hand.tensor, "is_variable", not hand.tensor.get("is_variable"))


def quantization_of(hand):
    found = hand.tensor.get("quantization")
    if found is None:
        hand.put(hand.tensor, "quantization", {"scale": [0.5], "zero_point": [0]})
        found = hand.tensor.get("quantization")
    return found


@breaks
def no_quantization(hand):
    hand.put(hand.tensor, "quantization", hand.chance.choice([None, {}]))


@breaks
def odd_scale(hand):
    node = quantization_of(hand)
    scale = list(node.get("scale")) if node.get("scale") is not None else [1.0]
    scale[hand.chance.randrange(len(scale))] = hand.chance.choice(REALS)
    hand.put(node, "scale", scale)


@breaks
def odd_zero_point(hand):
    node = quantization_of(hand)
    zero_point = list(node.get("zero_point")) if node.get("zero_point") is not None else [0]
    zero_point[hand.chance.randrange(len(zero_point))] = hand.chance.choice(INTEGERS)
    hand.put(node, "zero_point", [int(value) for value in zero_point])


@breaks
def other_counts_of_scales(hand):
    node = quantization_of(hand)
    shape = [n for n in hand.tensor.numbers("shape") if 0 <= n < 1000]
    count = hand.chance.choice([0, 1, 2, 3, 5, *shape])
    for field, value in (("scale", 0.25), ("zero_point", 1)):
        if hand.chance.random() < 0.8:
            hand.put(node, field, [value] * count)
    hand.put(node, "quantized_dimension", hand.chance.choice(SMALL))


@breaks
def odd_blocks(hand):
    details = {
        "type": "BlockwiseQuantization",
        "scales": hand.chance.choice([hand.any_tensor(), -1, len(hand.tensors), 2**31 - 1]),
        "zero_points": hand.chance.choice([hand.any_tensor(), -1, -1, len(hand.tensors)]),
        "block_size": hand.chance.choice([0, 1, 2, 4, 8, 16, 32, -1, -32, 2**31 - 1]),
    }
    hand.put(quantization_of(hand), "details", details)


@breaks
def sparse(hand):
    """A sparsity that may fit the shape, or one that is there and gets an odd field."""
    there = hand.tensor.get("sparsity")
    rank = len(hand.tensor.numbers("shape"))
    if there is not None and hand.chance.random() < 0.7:
        odd_field(hand, hand.chance.choice([there, *hand.nodes(there, "dim_metadata")]))
        return
    order = list(range(rank + hand.chance.choice([0, 0, 0, 1, 2])))
    hand.chance.shuffle(order)
    dims = []
    for axis in order:
        size = list(hand.tensor.numbers("shape"))[axis % rank] if rank else 1
        dims.append({"format": hand.chance.choice([0, 0, 1]), "dense_size": hand.chance.choice([size, size, 0, 3, -1])})
    blocks = hand.chance.choice([None, None, [0], [rank], SMALL[: hand.chance.randrange(4)]])
    hand.put(hand.tensor, "sparsity", {"traversal_order": order, "block_map": blocks, "dim_metadata": dims})


# ---- buffers ----


def buffer_of(hand):
    return hand.nodes(hand.tree.root, "buffers")[int(hand.tensor.get("buffer"))]


@breaks
def another_buffer(hand):
    count = len(hand.nodes(hand.tree.root, "buffers"))
    hand.put(hand.tensor, "buffer", hand.chance.choice([0, count, 2**32 - 1, *range(min(count, 20))]))


@breaks
def other_length(hand):
    buffer = buffer_of(hand)
    data = bytes(buffer.get("data") if buffer.get("data") is not None else b"")
    cut = data[: hand.chance.randrange(len(data) + 1)]
    hand.put(buffer, "data", hand.chance.choice([cut, cut, data + bytes(hand.chance.randrange(9)), b"", None]))


@breaks
def constant_appears(hand):
    """A computed tensor has a value in the file, perhaps of the right size."""
    size = 1
    for n in hand.tensor.numbers("shape"):
        size *= max(n, 0)
    bits = _core.tensor_types()[int(hand.tensor.get("type")) % TYPES][1]
    data = hand.chance.randbytes(min(size * bits // 8, 4096))
    buffers = hand.nodes(hand.tree.root, "buffers")
    hand.put(hand.tree.root, "buffers", [*buffers, {"data": data}])
    hand.put(hand.tensor, "buffer", len(buffers))


@breaks
def constant_disappears(hand):
    hand.put(hand.tensor, "buffer", 0)


@breaks
def odd_values(hand):
    """Other values of a constant: axes, sizes, indices, begins, paddings."""
    constants = [tensor for tensor in map(hand.tensors.__getitem__, hand.operands) if tensor.get("buffer")]
    hand.tensor = hand.chance.choice(constants)
    buffer = buffer_of(hand)
    data = bytearray(bytes(buffer.get("data")))
    form, width = ("<q", 8) if int(hand.tensor.get("type")) == 4 else ("<i", 4)
    for _ in range(hand.chance.choice([1, 1, 2, 4])):
        at = width * hand.chance.randrange(len(data) // width)
        value = hand.chance.choice(hand.chance.choice([INTEGERS, SMALL]))
        struct.pack_into(form, data, at, (value + 2 ** (8 * width - 1)) % 2 ** (8 * width) - 2 ** (8 * width - 1))
    hand.put(buffer, "data", bytes(data))


@breaks
def elsewhere(hand):
    """Bytes behind the flatbuffer, or in another file."""
    hand.put(hand.tensor, "external_buffer", hand.chance.choice([0, 1, 2, 2**32 - 1]))
    hand.put(buffer_of(hand), "offset", hand.chance.choice([1, 2, 100, 2**31, 2**63]))
    hand.put(buffer_of(hand), "size", hand.chance.choice([0, 4, 100, 2**31, 2**63]))


# ---- the rest ----


@breaks
def tensors_again(hand):
    """The same tables twice in the list, or fewer of them."""
    count = hand.chance.choice([len(hand.tensors), hand.chance.randrange(len(hand.tensors))])
    hand.put(hand.graph, "tensors", hand.twice(hand.tensors) if count == len(hand.tensors) else hand.tensors[:count])


@breaks
def graphs_again(hand):
    hand.put(
        hand.tree.root, "subgraphs", hand.chance.choice([hand.twice(hand.graphs), hand.graphs[::-1], hand.graphs[:-1]])
    )


@breaks
def odd_signature(hand):
    names = ["x", "x", None, ""]
    maps = [{"name": hand.chance.choice(names), "tensor_index": hand.chance.choice(SMALL)} for _ in range(3)]
    row = {
        "inputs": maps[: hand.chance.randrange(4)],
        "outputs": maps[: hand.chance.randrange(4)],
        "signature_key": hand.chance.choice([None, "", "serving_default"]),
        "subgraph_index": hand.chance.choice([0, 1, 7, 2**32 - 1]),
    }
    hand.put(hand.tree.root, "signature_defs", [row] * hand.chance.choice([1, 2]))


def tables(node, found, depth=0):
    """All tables below one."""
    found.append(node)
    if node.type is None or depth > 6 or len(found) > 400:
        return found
    for field, kind in fields.rows(node.type).items():
        if kind.startswith(("TABLE(", "UNION(")):
            below = [node.get(field)]
        elif kind.startswith("VEC_TABLE("):
            below = node.get(field) or []
        else:
            continue
        for item in below:
            if item is not None:
                tables(item, found, depth + 1)
    return found


@breaks
def any_field(hand):
    odd_field(hand, hand.chance.choice(tables(hand.tree.root, [])))


def odd_field(hand, node):
    rows = fields.rows(node.type)
    field = hand.chance.choice(list(rows))
    hand.put(node, field, odd_value(hand, node, field, rows[field]))


def odd_value(hand, node, field, kind):
    """Something that the field's kind holds, or not."""
    chance = hand.chance
    if chance.random() < 0.1:
        return None
    if kind == "BOOL":
        return not node.get(field)
    if kind in ("F32", "F64"):
        return chance.choice(REALS)
    if kind.startswith("ENUM("):
        return chance.choice([*range(-2, 30), 127, 255])
    if kind == "STRING":
        return chance.choice([b"", b"x", b"\xff\x00", b"long" * 500])
    if kind.startswith("TABLE("):
        return {}
    if kind.startswith("UNION("):
        return {"type": chance.choice(fields.members(kind[len("UNION(") : -1]))}
    if kind.startswith("VEC_TABLE("):
        there = hand.nodes(node, field)
        return chance.choice([[], [{}], there[1:], hand.twice(there), [*there, {}]])
    if kind == "VEC_F32":
        return [chance.choice(REALS) for _ in range(chance.randrange(6))]
    if kind.startswith("VEC_"):
        there = [int(value) for value in node.numbers(field)] if kind != "VEC_STRING" else []
        if there and chance.random() < 0.6:
            there[chance.randrange(len(there))] = chance.choice(chance.choice([INTEGERS, SMALL]))
            return there
        return [chance.choice(SMALL) for _ in range(chance.randrange(8))]
    return chance.choice(chance.choice([INTEGERS, SMALL]))


# ---- a model ----


@cache
def rows_of(operator):
    return generators.rows(operator)


@lru_cache(2)
def sound(seed, draw, operator):
    """A drawn model, one in two with the shapes that XNNPACK asks for."""
    rows = rows_of(operator)
    case = differential.draw(*rows[draw % len(rows)], seed, draw // len(rows))
    return differential.shaped(case) if draw % 2 else case


def impossible(seed, number, operator=None):
    """Model `number` of a seed, of all operators or one: (what was done to which, its bytes)."""
    case = sound(seed, number // A_DRAW, operator)
    chance = random.Random(f"{seed} {number}")
    hand = Hand(case.model, chance)
    done = []
    wanted = chance.choice([1, 1, 1, 2, 2, 3, 4])
    for _ in range(40):
        name = chance.choice([*BREAKS, *OFTEN])
        try:
            hand.choose()
            BREAKS[name](hand)
        except (ValueError, LookupError, TypeError):  # there is nothing to break, or it cannot be broken so
            continue
        done.append(name)
        if len(done) == wanted:
            break
    return f"{case.operator} {case.kind}: {', '.join(done)}", hand.bytes()


def main(command, *arguments):
    if command == "write":
        seed, number, path = arguments
        text, data = impossible(int(seed), int(number))
        print(text)
        with open(path, "wb") as file:
            file.write(data)
        return
    seed, begin, count = map(int, arguments)
    for number in range(begin, begin + count):
        data = impossible(seed, number)[1]
        sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)


if __name__ == "__main__":
    main(*sys.argv[1:])
