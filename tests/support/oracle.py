# SPDX-License-Identifier: Apache-2.0
"""LiteRT's answers, from subprocesses: a file that aborts LiteRT must not abort the tests.

    for answer in oracle.ask("details", [path, data, ...]): ...

A subprocess answers many questions, one after the other; where one dies, that question's answer is an `Abort` and the
next question gets a fresh process.  A question that LiteRT refuses is answered by a `Refusal`.  A question is a path or
a model's bytes, or a tuple that begins with one; what it is asked is one of the functions named `answer_*` below.

tq answers `tensors` here too: what crashes it must not end the tests either.
"""

import atexit
import collections
import concurrent.futures
import contextlib
import importlib.util
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass

# An answer may take so long, from a file or from bytes; then its process is ended by SIGALRM.
SECONDS, SECONDS_BYTES = 600, 30
MEMORY = 2**30  # bytes that tq may take for a model from bytes


@dataclass
class Refusal:
    """An exception was raised: `text` is its type and message, `stage` what it was asked to do."""

    text: str
    stage: str = ""


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
    """The text of TFLite's Model Analyzer; a file that it cannot open is a Refusal."""
    from ai_edge_litert._pywrap_analyzer_wrapper import ModelAnalyzer

    is_path = not isinstance(source, bytes)
    text = ModelAnalyzer(os.fspath(source) if is_path else source, is_path, False)
    return text if "\nTensors of Subgraph#" in text or "Model size:" in text else Refusal(text)


def answer_gpu_lines(source):
    """The lines of TFLite's Model Analyzer on the GPU delegate, with the empty line before them."""
    from ai_edge_litert._pywrap_analyzer_wrapper import ModelAnalyzer

    plain, checked = (ModelAnalyzer(source, False, check) for check in (False, True))
    start = next(i for i, (a, b) in enumerate(zip(plain, checked, strict=False)) if a != b)
    return "\n" + checked[start : start + len(checked) - len(plain) - 1]


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


def answer_delegated(source):
    """The tensors of subgraph 0 that nodes which the XNNPACK delegate takes write, each node by itself: a set."""
    from ai_edge_litert.interpreter import Interpreter

    where = {"model_content": source} if isinstance(source, bytes) else {"model_path": os.fspath(source)}
    interpreter = Interpreter(**where, experimental_preserve_all_tensors=True, num_threads=1)
    interpreter.allocate_tensors()
    rows = interpreter._get_ops_details()
    return {int(index) for row in rows if row["op_name"] == "DELEGATE" for index in row["outputs"]}


def answer_tensors(question):
    """The values of tensors of subgraph 0 after each invoke: a list, an invoke, of dicts from index to array.

    question: (a path or a model's bytes, OpResolverType's name or one of "TQ", "TQ optimized", "TQ xnnpack", "MICRO",
    "PUBLISHED", runs, shapes, indices).  runs: a dict of index to array for each invoke; shapes: a dict of inputs to
    resize; indices: which tensors of the file to return.  A further False: without experimental_preserve_all_tensors,
    with which XNNPACK computes every operator by itself; then indices may only be the model's outputs.
    A tensor that cannot be read is a Refusal, or an empty array where its shape holds nothing.
    """
    source, resolver, runs, shapes, indices, *rest = question
    preserve = rest[0] if rest else True
    where = {"model_content": source} if isinstance(source, bytes) else {"model_path": os.fspath(source)}
    stage = "construct"
    try:
        if resolver.startswith("TQ"):
            import tq

            numerics = resolver[3:] or "reference"

            more = {"max_memory": MEMORY} if isinstance(source, bytes) else {}
            interpreter = tq.Interpreter(
                **where, experimental_preserve_all_tensors=preserve, numerics=numerics, num_threads=1, **more
            )
        elif resolver == "MICRO":
            interpreter = _Micro(source)
        elif resolver == "PUBLISHED":
            import published

            interpreter = published.Interpreter(source)
        else:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType

            interpreter = Interpreter(
                **where,
                experimental_op_resolver_type=OpResolverType[resolver],
                experimental_preserve_all_tensors=preserve,
                num_threads=1,
            )
        stage = "allocate"
        for index, shape in shapes.items():
            interpreter.resize_tensor_input(index, shape)
        interpreter.allocate_tensors()
        answers = []
        for values in runs:
            stage = "set"
            for index, value in values.items():
                interpreter.set_tensor(index, value)
            stage = "invoke"
            interpreter.invoke()
            stage = "get"
            answers.append({index: _value(interpreter, index) for index in indices})
        return answers
    except Exception as error:
        return Refusal(f"{type(error).__name__}: {error}", stage)


def answer_signatures(question):
    """The results of signatures: (a model's bytes, OpResolverType's name or "TQ", [(key, {name: array}), ...])."""
    source, resolver, calls = question
    if resolver == "TQ":
        import tq

        interpreter = tq.Interpreter(model_content=source, numerics="reference")
    else:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(model_content=source, experimental_op_resolver_type=OpResolverType[resolver])
    return [interpreter.get_signature_runner(key)(**values) for key, values in calls]


def answer_signature_list(source):
    """[(key, [("inputs", names), ("outputs", names)]), ...]: get_signature_list, with its order."""
    from ai_edge_litert.interpreter import Interpreter

    found = Interpreter(model_content=source).get_signature_list()
    return [(key, list(sides.items())) for key, sides in found.items()]


class _Micro:
    """tflite-micro's interpreter under the names that LiteRT's has."""

    def __init__(self, source):
        from tflite_micro.python.tflite_micro import runtime

        open_model = runtime.Interpreter.from_bytes if isinstance(source, bytes) else runtime.Interpreter.from_file
        config = runtime.InterpreterConfig.kPreserveAllTensors
        self.interpreter = open_model(source, arena_size=1 << 22, intrepreter_config=config)
        self.invoke = self.interpreter.invoke
        self.reset_all_variables = self.interpreter.reset

        import tq

        graph = tq.Model(source).subgraphs[0]
        self.inputs = {index: place for place, index in enumerate(graph.input_indices)}

    def resize_tensor_input(self, index, shape):
        raise NotImplementedError("tflite-micro resizes nothing")

    def allocate_tensors(self):
        pass

    def set_tensor(self, index, value):
        self.interpreter.set_input(value, self.inputs[index])

    def get_tensor(self, index):
        return self.interpreter.GetTensor(index, 0)["tensor_data"].copy()


def _value(interpreter, index):
    try:
        return interpreter.get_tensor(index)
    except Exception as error:
        details = {item["index"]: item for item in interpreter.get_tensor_details()}.get(index)
        if details and 0 in details["shape"]:
            return _empty(details)
        return Refusal(f"{type(error).__name__}: {error}", "get")


def _empty(details):
    """The value of an empty tensor, which LiteRT does not let be read."""
    import numpy as np

    return np.empty(details["shape"], details["dtype"])


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
        spec = importlib.util.find_spec("tq")
        beside = [os.path.dirname(os.path.dirname(spec.origin))] if spec and spec.origin else []
        path = os.pathsep.join([*beside, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path},
        )

    def ask(self, question):
        try:
            _send(self.process.stdin, question)
            return _receive(self.process.stdout)
        except (EOFError, BrokenPipeError):
            return Abort(self.process.wait())

    def alive(self):
        return self.process.poll() is None

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


_idle = queue.LifoQueue()  # workers that wait for the next question


def ask(what, sources, workers=1):
    """Yields an answer, a Refusal or an Abort for each source, in order; `workers` processes share them."""

    def one(source):
        try:
            worker = _idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
        answer = worker.ask((what, source))
        if worker.alive():
            _idle.put(worker)
        else:
            worker.close()
        return answer

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting = collections.deque()
        for source in sources:
            waiting.append(pool.submit(one, source))
            if workers == 1 or len(waiting) > 4 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@atexit.register
def _close():
    with contextlib.suppress(queue.Empty):
        while True:
            _idle.get_nowait().close()


def _answer(questions, out):
    while True:
        try:
            what, source = _receive(questions)
        except EOFError:
            return
        if hasattr(signal, "alarm"):
            first = source[0] if isinstance(source, tuple) else source
            signal.alarm(SECONDS_BYTES if isinstance(first, bytes) else SECONDS)
        try:
            answer = globals()["answer_" + what](source)
        except Exception as error:
            answer = Refusal(f"{type(error).__name__}: {error}")
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        _send(out, answer)


def _serve():
    # LiteRT writes to the standard output; what it says there must not mix with the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    if not hasattr(os, "fork"):
        return _answer(questions, out)
    # A child answers, and where it dies another one takes its place: no time is lost with imports.
    import ai_edge_litert.interpreter  # noqa: F401

    while True:
        child = os.fork()
        if not child:
            _answer(questions, out)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not code:
            return None
        _send(out, Abort(code))


if __name__ == "__main__":
    # Answers are pickled as `oracle.Refusal`, which the parent can find, not as `__main__.Refusal`.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import oracle

    oracle._serve()
