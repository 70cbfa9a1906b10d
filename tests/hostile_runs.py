# SPDX-License-Identifier: Apache-2.0
"""Runs damaged models: a process of its own, since a mistake may end it.

    python tests/hostile_runs.py SEED COUNT [OPERATOR]

Each model is a random one of one operator (tests/generators), with a few words of its structure or constants set to
extremes or at random; every other one has damaged inputs as well.  It is opened, allocated, fed and run twice, resized
and run again.  What is raised must be one of tq's own errors or a ValueError.  The last line printed is what was
being done, so that the parent can tell.
"""

import collections
import contextlib
import signal
import struct
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))  # PYTHONSAFEPATH may be set
    if not any(p.suffix in (".so", ".pyd") for folder in sys.path for p in Path(folder).glob("tq/_core.*")):
        sys.path.append(str(Path(__file__).parents[1]))

import differential
import generators

import tq

EXTREMES = [
    0,
    1,
    2,
    3,
    7,
    -1,
    -2,
    -3,
    127,
    128,
    255,
    2**15,
    2**16,
    2**20,
    2**24,
    2**30,
    2**31 - 1,
    -(2**31),
    -(2**31) + 1,
]
MEMORY = 4 << 20  # enough for any sound one
SECONDS = 20  # that one model may take


def damaged(data, random):
    """Some bytes, with one to four changes."""
    data = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        at = int(random.integers(8, len(data) - 4))
        how = random.random()
        if how < 0.5:  # a word where words lie
            at -= at % 4
            struct.pack_into("<i", data, at, EXTREMES[random.integers(len(EXTREMES))])
        elif how < 0.8:  # a small change of a small number, be it type, axis or index
            data[at] = (data[at] + int(random.integers(-3, 4))) % 256
        else:
            data[at] = int(random.integers(256))
    return bytes(data)


def fill(interpreter, random, extreme):
    """Random values in every input, or for `extreme` such as hardly fit."""
    for details in interpreter.get_input_details():
        shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
        if dtype.kind in "SO":
            value = np.full(shape, b"text", object)
        elif dtype.kind == "b":
            value = random.integers(0, 2, shape).astype(bool)
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            low, high = (max(info.min, -3), 4) if not extreme else (info.min, int(info.max) + 1)
            value = random.integers(low, high, shape, dtype=np.int64 if info.min < 0 or info.bits < 64 else np.uint64)
            value = np.asarray(value).astype(dtype)
        else:
            value = random.standard_normal(shape) * (1e38 if extreme else 1)
            if extreme and value.size:
                value.flat[0] = np.nan
                value.flat[-1] = np.inf
            with np.errstate(all="ignore"):
                value = np.asarray(value).astype(dtype)
        interpreter.set_tensor(details["index"], value)


def look(interpreter):
    """Reads every byte of what can be had of every tensor."""
    for details in interpreter.get_tensor_details():
        for get in (interpreter.get_tensor, lambda index: interpreter.tensor(index)()):
            try:
                value = np.asarray(get(details["index"]))
            except ValueError:
                continue
            value.tolist() if value.dtype == object else value.tobytes()


def use(data, random, extreme):
    """Everything that a user does with a model."""
    keep = bool(random.integers(2))
    numerics = list(generators.NUMERICS)[int(random.integers(3))]
    interpreter = tq.Interpreter(
        model_content=data, max_memory=MEMORY, experimental_preserve_all_tensors=keep, numerics=numerics
    )
    if interpreter.model.subgraphs:  # else an IndexError
        str(interpreter.backends())
    interpreter.allocate_tensors()
    for _ in range(2):
        fill(interpreter, random, extreme)
        interpreter.invoke()
    look(interpreter)
    inputs = interpreter.get_input_details()
    if inputs:
        chosen = inputs[int(random.integers(len(inputs)))]
        shape = [int(random.integers(0, 5)) for _ in chosen["shape"]]
        interpreter.resize_tensor_input(chosen["index"], shape)
        look(interpreter)
        with contextlib.suppress(ValueError):
            fill(interpreter, random, extreme)
        interpreter.allocate_tensors()
        fill(interpreter, random, extreme)
        interpreter.invoke()
    interpreter.reset_all_variables()


class Slow(Exception):
    """A model took too long."""


def alarm(*_):
    raise Slow


def main(seed, count, operator=None):
    random = np.random.default_rng(seed)
    rows = generators.rows(operator)
    outcomes = collections.Counter()
    signal.signal(signal.SIGALRM, alarm)
    for number in range(count):
        name, kind = rows[int(random.integers(len(rows)))]
        case = differential.draw(name, kind, seed, number)
        if number % 2:  # with the shapes that XNNPACK asks for
            case = differential.shaped(case)
        for attempt in range(4):
            data = damaged(case.model, random) if attempt else case.model
            print(f"{name} {kind} seed {seed} case {number} attempt {attempt}", flush=True)
            signal.alarm(SECONDS)
            try:
                use(data, random, extreme=attempt % 2 == 1)
                outcomes["ran"] += 1
            except (tq.Error, ValueError, MemoryError) as error:
                outcomes[getattr(error, "code", type(error).__name__)] += 1
            finally:
                signal.alarm(0)
    print(dict(outcomes))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4])
