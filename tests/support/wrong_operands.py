# SPDX-License-Identifier: Apache-2.0
"""Well-formed models whose operator has other tensors than it takes: too few, too many, left out, of impossible types.

    for what, model in misfits.of("CONV_2D", "int8"):
        ...  # what: "3 inputs", "input 1 left out", "tensor 0 of type 36" ...; model: bytes

They are made of one sound random model of generators, so that whatever reads an operand before it is known to be
there meets the types, shapes and constants that it looks for.

    python tests/support/wrong_operands.py PART PARTS    one part of them all, in a process that a mistake may end

Each is opened under all numerics, with and without preserved tensors, looked at, allocated and run.  The last line
printed is what was being done, so that the parent can tell.
"""

import contextlib
import sys

if __name__ == "__main__":
    import built  # noqa: F401

import damaged_runs
import differential
import generators
import numpy as np

import tq

MORE = 2  # tensors beyond those of the sound model
IMPOSSIBLE_TYPES = (-1, 23, 31, 32, 36, 127)


NUMERICS = tuple(generators.NUMERICS)
# The codes of model.problems that concern an operator's operands.
CODES = {"input-count", "output-count", "optional-input", "optional-output"}


def kinds():
    """(operator, kind) of every operator that tq runs: float32 and int8, which XNNPACK takes, or its first kind."""
    found = {}
    for operator, kind in generators.rows():
        if operator not in generators.GRAPHS:
            found.setdefault(operator, []).append(kind)
    return [
        (operator, kind)
        for operator, kinds in sorted(found.items())
        for kind in [kind for kind in ("float32", "int8") if kind in kinds] or kinds[:1]
    ]


def _item(editor, operator):
    return next(item for item in editor.main.operators if item.name == operator)


def _changed(model, operator, change, *arguments):
    editor = tq.edit(model)
    change(editor, _item(editor, operator), *arguments)
    return editor.to_bytes()


def _outputs_without(editor, dropped):
    return [tensor for tensor in editor.main.outputs if tensor is None or tensor.index not in dropped]


def _extra(editor, like):
    """A further tensor of the type and shape of another."""
    type, shape = (like.type, like.shape) if like else ("FLOAT32", [1])
    return editor.main.add_tensor("extra", shape, type).index


def set_inputs(editor, item, count):
    """The first `count` inputs, or all and more."""
    have = list(item.input_indices)
    more = max(count - len(have), 0)
    last = have[-1] if have and have[-1] >= 0 else None
    if more and last is None:
        last = _extra(editor, None)
        editor.main.inputs = [*editor.main.inputs, last]
    item.inputs = have[:count] + [last] * more


def set_outputs(editor, item, count):
    have = list(item.output_indices)
    like = editor.main.tensors[have[-1]] if have and have[-1] >= 0 else None
    dropped = set(have[count:])
    have = have[:count] + [_extra(editor, like) for _ in range(count - len(have))]
    editor.main.outputs = _outputs_without(editor, dropped)
    item.outputs = have


def leave_out(editor, item, inputs, outputs):
    """-1 in the place of these inputs and outputs."""
    left = {item.output_indices[i] for i in outputs}
    editor.main.outputs = _outputs_without(editor, left)
    item.inputs = [-1 if i in inputs else tensor for i, tensor in enumerate(item.input_indices)]
    item.outputs = [-1 if i in outputs else tensor for i, tensor in enumerate(item.output_indices)]


def set_type(editor, item, places, type):
    for place in places:
        editor.main.tensors[place].type = type


def of(operator, kind, seed=5):
    """(what was changed, model) of one model of a row."""
    model = differential.draw(operator, kind, seed, 0).model
    item = _item(tq.edit(model), operator)
    inputs, outputs = list(item.input_indices), list(item.output_indices)
    for count in range(len(inputs) + MORE + 1):
        if count != len(inputs):
            yield f"{count} inputs", _changed(model, operator, set_inputs, count)
    for count in range(len(outputs) + MORE + 1):
        if count != len(outputs):
            yield f"{count} outputs", _changed(model, operator, set_outputs, count)
    for i, tensor in enumerate(inputs):
        if tensor >= 0:
            yield f"input {i} left out", _changed(model, operator, leave_out, {i}, ())
    for i, tensor in enumerate(outputs):
        if tensor >= 0:
            yield f"output {i} left out", _changed(model, operator, leave_out, (), {i})
    yield "all left out", _changed(model, operator, leave_out, range(len(inputs)), range(len(outputs)))
    tensors = sorted({i for i in (*inputs, *outputs) if i >= 0})
    for type in IMPOSSIBLE_TYPES:
        for i in tensors:
            yield f"tensor {i} of type {type}", _changed(model, operator, set_type, [i], type)
        yield f"all of type {type}", _changed(model, operator, set_type, tensors, type)


def told(model, operator):
    """The codes of model.problems for the operands of the operator: a set."""
    problems = tq.Model(model).problems
    return {item.code for item in problems if item.code in CODES and f" {operator}" in item.place}


def use(model, numerics, preserve):
    """All that can be asked of an Interpreter; whether it runs, or the error with which it refuses."""
    interpreter = tq.Interpreter(
        model_content=model,
        numerics=numerics,
        experimental_preserve_all_tensors=preserve,
        num_threads=1,
        max_memory=damaged_runs.MEMORY,
    )
    str(interpreter.backends())
    interpreter.get_tensor_details()
    with contextlib.suppress(tq.Error):
        str(interpreter.memory_plan())
    try:
        interpreter.allocate_tensors()
        damaged_runs.fill(interpreter, np.random.default_rng(1), False)
        interpreter.invoke()
        damaged_runs.look(interpreter)
    except (tq.Error, ValueError) as error:
        return error
    return None


def check(operator, kind):
    for what, model in of(operator, kind):
        print(operator, kind, what, flush=True)
        codes = told(model, operator)
        for numerics in NUMERICS:
            for preserve in (False, True):
                error = use(model, numerics, preserve)
                if codes and error is None:
                    sys.exit(f"{codes}, and it runs under {numerics}")
                if codes and f"({operator}): " not in str(error):
                    sys.exit(f"{codes}, and the error under {numerics} names no operator: {error}")


def main(part, parts):
    for operator, kind in kinds()[part::parts]:
        check(operator, kind)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
