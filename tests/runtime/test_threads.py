# SPDX-License-Identifier: Apache-2.0
"""docs/threads.md: forks, the pool of threads, how many there are, and cycles through interpreters."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from interpreter_models import X, allocated, custom, relu_chain
from interrupts import ended_by_ctrl_c
from repository import import_path

import tq
from tq import _core
from tq.running import interpreter as interpreter_module

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_tasks = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


@pytest.fixture
def register():
    before = dict(interpreter_module._registered)
    yield tq.register_op
    interpreter_module._registered.clear()
    interpreter_module._registered.update(before)


def python(script, timeout=60, **environment):
    """A process of its own: what it prints."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        f"import sys; sys.path[:0] = sys.argv[1:]\n{script}",
        *import_path(__file__),
    ]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- fork ----

RUNNING = """
import os, signal, threading
import numpy as np, tq
from interpreter_models import X, allocated, custom, relu_chain
entered, done = threading.Event(), threading.Event()

def wait(inputs, options):
    entered.set()
    done.wait(20)
    return inputs[0]

tq.register_op("Mine", lambda shapes, options: shapes, wait)
model = tq.Model(custom())
made = tq.Interpreter(model=model)
made.allocate_tensors()
thread = threading.Thread(target=made.invoke)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    try:
        in_child()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
done.set()
thread.join()
made.get_tensor(1)  # the parent's goes on
assert os.waitpid(child, 0)[1] == 0
"""


@needs_fork
def test_an_interpreter_that_another_thread_ran_answers_after_a_fork():
    python(
        """
def in_child():
    for call in (made.invoke, made.allocate_tensors, lambda: made.get_tensor(0), made.reset_all_variables):
        try:
            call()
        except RuntimeError as error:
            assert "when this process forked" in str(error) and "make another" in str(error), error
        else:
            raise AssertionError("it answered")
"""
        + RUNNING
    )


@needs_fork
def test_all_else_works_after_such_a_fork():
    python(
        """
def in_child():
    done.set()
    other = tq.Interpreter(model=model, num_threads=4)  # shares the constants
    other.allocate_tensors()
    other.set_tensor(0, X[0])
    other.invoke()
    np.testing.assert_array_equal(other.get_tensor(1), X[0])
    chain = allocated(relu_chain(4, 4096), num_threads=4)
    chain.set_tensor(0, np.ones(4096, np.float32))
    chain.invoke()
    x = np.linspace(-1, 1, 1 << 20, dtype=np.float32)
    np.testing.assert_array_equal(tq.quantize(x, 0.01, 0, num_threads=4), tq.quantize(x, 0.01, 0, num_threads=1))
    assert model.tensors[0].name == "x"
"""
        + RUNNING
    )


@needs_fork
def test_an_interpreter_that_nobody_runs_works_after_a_fork():
    made = allocated(relu())
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        made.invoke()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def relu():
    b = tq.ModelBuilder()
    x = b.input("x", [4])
    y = b.tensor("y", [4])
    b.operator("RELU", [x], [y])
    b.output(y)
    return b.to_bytes()


@needs_fork
def test_an_operator_may_fork(register):
    """The child's copy of the run is its own: the thread that runs it exists there."""
    parent, child = os.getpid(), []

    def fork(inputs, options):
        child.append(os.fork())
        return inputs[0]

    register("Mine", lambda shapes, options: shapes, fork)
    made = allocated(custom())
    made.set_tensor(0, X[0])
    made.invoke()
    if os.getpid() != parent:
        signal.alarm(10)
        os._exit(0 if np.array_equal(made.get_tensor(1), X[0]) else 1)
    assert os.waitpid(child[0], 0)[1] == 0


@needs_fork
def test_an_observer_that_another_thread_updates_works_after_a_fork():
    """The lock is taken in the parent at the time of the fork, again and again: no child finds it taken."""
    python(
        """
import os, signal, threading
import numpy as np, tq
observer, stop = tq.MinMaxObserver(), threading.Event()

def hold():
    while not stop.is_set():
        with observer._lock:
            stop.wait(0.01)

thread = threading.Thread(target=hold)
thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        observer.update(np.ones(4, np.float32))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
observer.update(np.ones(4, np.float32))
"""
    )


# ---- an interpreter in use ----


def test_ctrl_c_ends_a_wait_for_an_interpreter(register):
    entered, done = threading.Event(), threading.Event()

    def wait(inputs, options):
        entered.set()
        done.wait(20)
        return inputs[0]

    register("Mine", lambda shapes, options: shapes, wait)
    made = allocated(custom())
    thread = threading.Thread(target=made.invoke)
    thread.start()
    entered.wait()
    began = time.monotonic()
    try:
        with ended_by_ctrl_c():
            made.get_tensor(0)
        assert time.monotonic() - began < 5
    finally:
        done.set()
        thread.join()


# ---- the pool ----

SWITCHES = """
import contextlib, os, time
import numpy as np, tq

def switches():
    found = {}
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/status") as file:  # it may end meanwhile
            found[task] = next(line for line in file if line.startswith("voluntary_ctxt_switches"))
    return found

before = set(switches())
x = np.zeros(1 << 22, np.float32)
tq.fake_quant(x, -1, 1, num_threads=64)
workers = set(switches()) - before
assert len(workers) > 32, len(workers)
time.sleep(0.5)  # all sleep
"""


@needs_tasks
def test_a_job_wakes_as_many_workers_as_it_wants():
    woken = python(
        SWITCHES
        + """
before = switches()
tq.fake_quant(x, -1, 1, num_threads=3)
time.sleep(0.2)
after = switches()
print(sum(after.get(task) != before[task] for task in workers))
"""
    )
    assert 1 <= int(woken) <= 4


@needs_tasks
def test_idle_workers_end():
    left = python(
        SWITCHES
        + """
end = time.monotonic() + 20
while workers & set(switches()) and time.monotonic() < end:
    time.sleep(0.1)
print(len(workers & set(switches())))
assert np.array_equal(tq.fake_quant(x, -1, 1, num_threads=4), x)  # others come
"""
    )
    assert int(left) == 0


# ---- how many ----


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
def test_the_default_follows_the_affinity_mask():
    script = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    count = "from tq import _core; print(_core._default_threads())"
    environment = {"TQ_NUM_THREADS": ""}
    assert python(script + count, **environment) == "1\n"
    assert int(python(count, **environment)) <= len(os.sched_getaffinity(0))


# ---- what the environment says ----


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TQ_NUM_THREADS", "abc", ["'abc'", "positive number"]),
        ("TQ_NUM_THREADS", "4x", ["'4x'", "positive number"]),
        ("TQ_NUM_THREADS", "0", ["'0'", "positive number"]),
        ("TQ_NUM_THREADS", "4", []),
        ("TQ_DISABLE_CPU", "avx512, avx3", ["'avx3'", "avx2"]),
        ("TQ_DISABLE_CPU", "avx512,neon", []),
    ],
)
def test_a_variable_that_means_nothing_is_warned_of(variable, value, words):
    script = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import tq._core
print(*(f"{one.category.__name__}: {one.message}" for one in caught), sep="\\n")
"""
    told = python(script, **{"TQ_NUM_THREADS": "", "TQ_DISABLE_CPU": ""} | {variable: value}).strip()
    assert bool(told) == bool(words)
    assert all(word in told for word in (["RuntimeWarning", variable, *words] if words else []))


def test_an_interpreter_opens_without_the_gil():
    """A thread that asks for it gets it at once; while the opening held it, the switch interval passed first."""
    model, opened = tq.Model(relu_chain(20_000, 4)), []
    interval = sys.getswitchinterval()
    start, seen = threading.Event(), []

    def look():
        start.wait()
        seen.append(bool(opened))

    thread = threading.Thread(target=look)
    thread.start()
    sys.setswitchinterval(60)
    try:
        start.set()
        _core.Interpreter()._open(model, "reference", 1, False, 0, 0, {})
        opened.append(True)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert seen == [False]


# ---- cycles ----


class OwnOperators(tq.Interpreter):
    """Its operators are methods of its own."""

    def __init__(self, **options):
        tq.register_op("Mine", self.prepare, self.evaluate)
        super().__init__(**options)

    def prepare(self, shapes, options):
        return shapes

    def evaluate(self, inputs, options):
        return inputs[0]


def with_methods():
    return OwnOperators(model_content=custom())


def with_closures():
    made = None
    tq.register_op("Mine", lambda shapes, options: (made, shapes)[1], lambda inputs, options: (made, inputs[0])[1])
    made = tq.Interpreter(model_content=custom())
    return made


@pytest.mark.parametrize("make", [with_methods, with_closures])
def test_cycles_through_operators_are_collected(register, make):
    made = make()
    made.allocate_tensors()
    made.set_tensor(0, X[0])
    made.invoke()
    np.testing.assert_array_equal(made.get_tensor(1), X[0])
    place, found = id(made), weakref.ref(made)
    interpreter_module._registered.pop("Mine")
    del made
    gc.collect()
    assert found() is None
    assert place not in map(id, gc.get_objects())  # weak references go first


def test_an_interpreter_that_is_being_collected_runs_no_operator(register):
    """Code that runs meanwhile may still reach it: its operators are gone, and say so."""
    ctypes = pytest.importorskip("ctypes")
    register("Mine", lambda shapes, options: shapes, lambda inputs, options: inputs[0])
    made = allocated(custom())
    function = ctypes.pythonapi.PyType_GetSlot
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    slot = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(function(_core.Interpreter, 51))  # Py_tp_clear
    slot(made)
    with pytest.raises(RuntimeError, match="being collected"):
        made.invoke()


# ---- Pythons ----


def test_a_subinterpreter_is_refused():
    """Where the interpreters share their GIL, by tq; elsewhere by Python, before tq is asked."""
    interpreters = pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    folder = str(Path(tq.__file__).parents[1])
    script = f"""
import sys; sys.path.insert(0, {folder!r})
try:
    import tq
except ImportError as error:
    assert "subinterpreters" in str(error), error
else:
    raise AssertionError("it was imported")
"""
    python(
        f"""
import {interpreters.__name__} as interpreters
assert not interpreters.run_string(interpreters.create(), {script!r})
"""
    )


def test_a_free_threaded_python_stays_without_a_gil():
    enabled = getattr(sys, "_is_gil_enabled", None)
    if enabled is None or "t" not in sys.abiflags:
        pytest.skip("this Python has a GIL")
    assert python("import sys, tq; print(sys._is_gil_enabled())", PYTHON_GIL="") == "False\n"


def test_threads_that_look_at_one_model_find_the_same():
    """Without a GIL these race for what is made when it is first asked for."""
    data = relu()
    for _ in range(20):
        details, tree, gate, found = (
            tq.Model(data).get_tensor_details(),
            _core._Tree(tq.Model(data)),
            threading.Barrier(6),
            [],
        )

        def look(details=details, tree=tree, gate=gate, found=found):
            gate.wait()
            names = [item["name"] for item in details]
            for _ in range(20):
                node = tree.make("Tensor")
                node.store("shape", [1, 2, 3])
                node.set("name", b"name")
            found.append((len(details), names, node.numbers("shape"), str(details[0]["dtype"])))

        threads = [threading.Thread(target=look) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 6 and found[1:] == found[:-1]
