# SPDX-License-Identifier: Apache-2.0
"""Uses models that are not sound, in processes of their own, since a mistake may end them.

    python tests/support/damaged_runs.py KIND SEED FROM COUNT [--operator NAME] [--through NAME,...] [--stop]

KIND: `damaged`, models of one operator (generators) with a few words of their structure or constants set to
extremes or at random; `impossible`, well-formed ones of impossible.py.  Each goes through all that a user can do
with a model, which are the functions under `@through`.  An exception must be one of tq's own errors, or a builtin one
that the documents name.  A process that dies, or that a signal does not end, is told of with the number of its model,
and another goes on behind it; with --stop none does.  The exit code is 1 where anything was wrong.
"""

import argparse
import collections
import contextlib
import math
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import ml_dtypes
import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))  # PYTHONSAFEPATH may be set
    if not any(p.suffix in (".so", ".pyd") for folder in sys.path for p in Path(folder).glob("tq/_core.*")):
        sys.path.append(str(Path(__file__).parents[2]))

import differential
import generators
import impossible
import walk

import tq
from tq.quantization.recipes import RECIPES

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
ADDRESSES = 4 << 30  # bytes for a process: what has no limit of its own gets a MemoryError
SECONDS = 10  # after which a signal ends what is being done with a model
DEAF = 30  # and so long the process may go on without a word before it counts as deaf
# The exceptions that may be raised: docs/files.md.
ALLOWED = (tq.Error, ValueError, IndexError, MemoryError)
PYTHON_OWN = ("list index", "tuple index", "list assignment")  # how IndexErrors begin that nobody meant


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
        if math.prod(map(int, shape)) > MEMORY:  # strings have no memory before they are set
            raise ValueError("more elements than these runs set")
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


# ---- what a user does with a model ----

THROUGH = {}


def through(function):
    """Enters a function of a file's bytes and a random generator."""
    THROUGH[function.__name__] = function
    return function


def resize(interpreter, random):
    """One input to other sizes, mostly small, and sometimes to another rank."""
    inputs = interpreter.get_input_details()
    if not inputs:
        return
    chosen = inputs[int(random.integers(len(inputs)))]
    rank = len(chosen["shape"]) if random.random() < 0.9 else int(random.integers(0, 7))
    interpreter.resize_tensor_input(chosen["index"], [int(random.integers(0, 5)) for _ in range(rank)])


def run(data, random, numerics):
    extreme = bool(random.integers(2))
    interpreter = tq.Interpreter(
        model_content=data,
        max_memory=MEMORY,
        max_multiply_adds=int(random.choice([0, 0, 1000, 10**7])) or None,
        experimental_preserve_all_tensors=bool(random.integers(2)),
        num_threads=int(random.integers(1, 3)),
        numerics=numerics,
    )
    if interpreter.model.subgraphs:  # else an IndexError
        str(interpreter.backends())
    interpreter.allocate_tensors()
    str(interpreter.memory_plan())
    for _ in range(2):
        fill(interpreter, random, extreme)
        interpreter.invoke()
        look(interpreter)
    resize(interpreter, random)
    look(interpreter)
    with contextlib.suppress(ValueError):
        fill(interpreter, random, extreme)
    interpreter.allocate_tensors()
    fill(interpreter, random, extreme)
    interpreter.invoke()
    look(interpreter)
    interpreter.reset_all_variables()


@through
def reference(data, random):
    run(data, random, "reference")


@through
def optimized(data, random):
    run(data, random, "optimized")


@through
def xnnpack(data, random):
    run(data, random, "xnnpack")


@through
def signatures(data, random):
    interpreter = tq.Interpreter(model_content=data, max_memory=MEMORY)
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        values = {
            name: np.zeros(details["shape"], details["dtype"]) for name, details in runner.get_input_details().items()
        }
        runner(**values)


@through
def pages(data, random):
    model = tq.Model(data)
    for text in (model.summary, model.problems, model.__str__, model._repr_html_):
        str(text() if callable(text) else text)
    if random.random() < 0.1:  # every attribute of every part
        walk.walk(model)


@through
def editing(data, random):
    with tq.edit(data) as editor:
        again = editor.to_bytes()
        str(tq.diff(data, again))
        for operator in list(editor.operators)[:3]:
            str((operator, operator.inputs, operator.outputs, operator.options))
        editor.prune()
        editor.main.remove_operator(editor.operators[0])
        with contextlib.suppress(ALLOWED):
            editor.set_io_types(inputs="float32", outputs="float32")
        str(tq.diff(data, editor.to_bytes()))


def dtype_of(tensor):
    """The dtype of an array that fits a tensor; float32 for unknown types."""
    names = dict(enumerate(row[2] for row in tq._core.tensor_types()))
    name = names.get(int(tensor.type), "float32")
    return np.dtype(getattr(ml_dtypes, name[len("ml_dtypes.") :]) if name.startswith("ml_dtypes.") else name)


def samples_of(data, random):
    """Two samples that fit the inputs."""
    found = []
    for _ in range(2):
        sample = []
        for tensor in tq.Model(data).inputs:
            if tensor is not None:
                if math.prod(tensor.shape) > MEMORY:
                    raise ValueError("more elements than a sample of these runs has")
                sample.append(random.integers(0, 2, tensor.shape).astype(dtype_of(tensor)))
        found.append(sample)
    return found


@through
def quantizing(data, random):
    name = list(RECIPES)[int(random.integers(len(RECIPES)))]
    static, balanced = RECIPES[name].activations != "float32", bool(random.random() < 0.2)
    samples = samples_of(data, random)
    made = tq.quantize_model(
        data,
        name,
        calibration=samples if static else None,
        min_elements=int(random.integers(2)),  # which no recipe refuses as one without effect
        equalize=balanced,
        samples=samples if balanced else None,
        max_memory=MEMORY,
    )
    tq.Model(made).summary()


@through
def comparing(data, random):
    pair = ["reference", ["optimized", "xnnpack"][int(random.integers(2))]]
    rows = tq.compare(data, inputs=samples_of(data, random)[0], numerics=pair, max_memory=MEMORY)
    str(rows)
    str(rows.first_difference)


@through
def reporting(data, random):
    made = tq.report(data, data, samples_of(data, random), max_memory=MEMORY)
    str(made)
    made.to_html()


# ---- many models ----


def damaged_model(seed, number, operator):
    rows = generators.rows(operator)
    random = np.random.default_rng([seed, number])
    draw = number // 4
    name, kind = rows[draw % len(rows)]
    case = differential.draw(name, kind, seed, draw // len(rows))
    if draw % 2:  # with the shapes that XNNPACK asks for
        case = differential.shaped(case)
    return f"{name} {kind}", damaged(case.model, random) if number % 4 else case.model


KINDS = {"damaged": damaged_model, "impossible": impossible.impossible}


class Slow(Exception):
    """A model took too long."""


def alarm(*_):
    raise Slow


def use(function, data, random):
    """The outcome: "ran", the name of an error, or "slow".  Other exceptions are raised."""
    signal.alarm(SECONDS)
    try:
        function(data, random)
        return "ran"
    except Slow:
        return "slow"
    except ALLOWED as error:
        if str(error).startswith(PYTHON_OWN):
            raise
        return getattr(error, "code", None) or type(error).__name__
    finally:
        signal.alarm(0)


def work(options):
    """The models one after the other; the line of each is printed before anything is done with it."""
    signal.signal(signal.SIGALRM, alarm)
    if "LD_PRELOAD" not in os.environ:  # sanitizers take all addresses for themselves
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    outcomes, wrong = collections.Counter(), 0
    for number in range(options.first, options.first + options.count):
        text, data = KINDS[options.kind](options.seed, number, options.operator)
        for place, name in enumerate(options.through):
            print(number, name, text, flush=True)
            random = np.random.default_rng([options.seed, number, place])
            try:
                outcomes[f"{name} {use(THROUGH[name], data, random)}"] += 1
            except Exception:
                wrong += 1
                print(f"WRONG {number} {name} {text}\n{traceback.format_exc()}", flush=True)
    print("DONE", wrong, dict(sorted(outcomes.items())), flush=True)


def follow(process):
    """Reads what a worker says until it ends, is deaf, or has done all; (its last line, whether it is done)."""
    last, rest = "", b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], DEAF)
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not chunk:
            return last, False, not ready
        *lines, rest = (rest + chunk).split(b"\n")
        for line in map(bytes.decode, lines):
            if line[:1].isdigit():
                last = line
            else:
                print(line, flush=True)
            if line.startswith("DONE"):
                return last, line.split()[1] == "0", False


def watch(options):
    """Workers until all models were used; returns the exit code."""
    first, end, wrong = options.first, options.first + options.count, False
    while first < end:
        command = [sys.executable, __file__, options.kind, options.seed, first, end - first, "--work"]
        command += ["--operator", options.operator] if options.operator else []
        command += ["--through", ",".join(options.through)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors)
            last, sound, deaf = follow(process)
            if deaf:
                process.kill()
            code = process.wait()
            errors.seek(0)
            told = errors.read().decode(errors="replace")[-3000:]
        if code == 0:
            return int(wrong or not sound)
        wrong = True
        print(f"{'DEAF' if deaf else 'DEATH'} {code} {options.kind} seed {options.seed}: {last}\n{told}", flush=True)
        if options.stop or not last:
            break
        first = int(last.split()[0]) + 1
    return int(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    for name in ("seed", "first", "count"):
        parser.add_argument(name, type=int)
    parser.add_argument("--operator")
    parser.add_argument("--through", type=lambda text: text.split(","), default=list(THROUGH))
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options)
    else:
        sys.exit(watch(options))


if __name__ == "__main__":
    main()
