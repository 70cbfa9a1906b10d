# SPDX-License-Identifier: Apache-2.0
"""LiteRT's answers, from subprocesses: a file that aborts LiteRT must not abort the tests.

    for answer in oracle.ask("details", [path, data, ...]): ...

One subprocess answers many questions; where one dies, that question's answer is an `Abort` and the next question gets
a fresh process.  A question that LiteRT refuses is answered by a `Refusal`.  A question is a path or a model's bytes;
what it is asked is one of the functions named `answer_*` below.
"""

import contextlib
import os
import pickle
import struct
import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Refusal:
    """LiteRT raised an exception; `text` is its message."""

    text: str


@dataclass
class Abort:
    """LiteRT ended the process, with this return code."""

    code: int


def answer_details(source):
    """{"tensors": [details of subgraph 0, 1, ...], "inputs": [...], "outputs": [...]}, before any allocation."""
    from ai_edge_litert.interpreter import Interpreter

    where = {"model_content": source} if isinstance(source, bytes) else {"model_path": os.fspath(source)}
    interpreter = Interpreter(**where)
    return {
        "tensors": [interpreter.get_tensor_details(i) for i in range(interpreter.num_subgraphs())],
        "inputs": _or_refusal(interpreter.get_input_details),
        "outputs": _or_refusal(interpreter.get_output_details),
    }


def answer_listing(source):
    """What TFLite's Model Analyzer prints; a file that it cannot open is a Refusal."""
    from ai_edge_litert._pywrap_analyzer_wrapper import ModelAnalyzer

    is_path = not isinstance(source, bytes)
    text = ModelAnalyzer(os.fspath(source) if is_path else source, is_path, False)
    return text if "\nTensors of Subgraph#" in text or "Model size:" in text else Refusal(text)


def answer_run(question):
    """The first output for each input: (path, OpResolverType's name, [array for the first input, ...])."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    path, resolver, inputs = question
    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=OpResolverType[resolver])
    interpreter.allocate_tensors()
    outputs = []
    for values in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return outputs


def answer_outputs(question):
    """All outputs for random inputs that `seed` draws: (source, OpResolverType's name, seed)."""
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    source, resolver, seed = question
    where = {"model_content": source} if isinstance(source, bytes) else {"model_path": os.fspath(source)}
    interpreter = Interpreter(**where, experimental_op_resolver_type=OpResolverType[resolver])
    interpreter.allocate_tensors()
    draw = np.random.default_rng(seed)
    for item in interpreter.get_input_details():
        dtype = np.dtype(item["dtype"])
        values = draw.standard_normal(item["shape"]) if dtype.kind == "f" else draw.integers(0, 100, item["shape"])
        interpreter.set_tensor(item["index"], values.astype(dtype))
    interpreter.invoke()
    return [interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()]


def _or_refusal(function):
    try:
        return function()
    except Exception as error:
        return Refusal(str(error))


def _send(stream, value):
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream):
    """The next value; EOFError where the other side is gone."""
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    data = stream.read(struct.unpack("<Q", header)[0])
    return pickle.loads(data)


class _Worker:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    def ask(self, question):
        try:
            _send(self.process.stdin, question)
            return _receive(self.process.stdout)
        except (EOFError, BrokenPipeError):
            return Abort(self.process.wait())

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


def ask(what, sources):
    """Yields an answer, a Refusal or an Abort for each source, in order."""
    worker = None
    try:
        for source in sources:
            worker = worker or _Worker()
            answer = worker.ask((what, source))
            if isinstance(answer, Abort):
                worker.close()
                worker = None
            yield answer
    finally:
        if worker:
            worker.close()


def _serve():
    # LiteRT writes to the standard output; what it says there must not mix with the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    while True:
        try:
            what, source = _receive(questions)
        except EOFError:
            return
        try:
            answer = globals()["answer_" + what](source)
        except Exception as error:
            answer = Refusal(f"{type(error).__name__}: {error}")
        _send(out, answer)


if __name__ == "__main__":
    # Answers are pickled as `oracle.Refusal`, which the parent can find, not as `__main__.Refusal`.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import oracle

    oracle._serve()
