# SPDX-License-Identifier: Apache-2.0
"""Files with many parts: four times as many take about four times as long, and Ctrl-C is heard meanwhile."""

import signal
import sys
import time
from functools import cache

import numpy as np
import pytest

import tq

X = np.ones((1, 4), np.float32)


def chain(count):
    made = tq.ModelBuilder()
    last = made.input("t", [1, 4])
    for place in range(count):
        following = made.tensor(f"t{place}", [1, 4])
        made.operator("RELU", [last], [following])
        last = following
    made.output(last)
    return made


def variables(count):
    made = chain(1)
    for place in range(count):
        handle = made.tensor(f"v{place}", [], "RESOURCE")
        made.operator("VAR_HANDLE", [], [handle], shared_name=f"v{place}")
    return made


def tables(count):
    made = chain(1)
    for place in range(count):
        handle = made.tensor(f"h{place}", [1], "RESOURCE")
        made.operator("HASHTABLE", [], [handle], table_id=place, key_dtype="STRING", value_dtype="INT64")
    return made


def subgraphs(count):
    made = chain(1)
    for place in range(count):
        graph = made.subgraph(f"g{place}")
        x, y = graph.input("x", [1, 4]), graph.tensor("y", [1, 4])
        graph.operator("RELU", [x], [y])
        graph.output(y)
    return made


def signatures(count):
    made = chain(1)
    for place in range(count):
        made.signature(f"key{place}")
    return made


def metadata(count):
    made = chain(1)
    made.metadata.update({f"m{place}": b"" for place in range(count)})
    return made


@cache
def opened(make, count):
    return make(count).to_model()


def allocate(make):
    return lambda count: tq.Interpreter(model=opened(make, count)).allocate_tensors()


CASES = {
    "variables": (allocate(variables), 3000),
    "hash tables": (allocate(tables), 3000),
    "metadata": (metadata, 3000),
    "signatures": (signatures, 1000),
    "subgraphs": (lambda count: tq.quantize_model(opened(subgraphs, count), calibration=[X]), 500),
    "summary": (lambda count: str(opened(chain, count).summary()), 4000),
    "problems": (lambda count: opened(chain, count).problems, 10_000),
    "diff": (lambda count: tq.diff(opened(chain, count), chain(count).to_model()), 2000),
    "plan": (allocate(chain), 10_000),
}


def seconds(run, count):
    """Processor time: the least of three, since other work of the machine only adds to it."""
    run(count)  # makes what is made once
    times = []
    for _ in range(3):
        begin = time.process_time()
        run(count)
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize(("run", "count"), CASES.values(), ids=CASES)
def test_four_times_as_many_parts_take_less_than_ten_times_as_long(run, count):
    for _ in range(3):
        ratio = seconds(run, 4 * count) / seconds(run, count)
        if ratio < 10:  # what takes the square of the number takes 16 times as long
            return
    raise AssertionError(f"{4 * count} take {ratio:.1f} times as long as {count}")


def calls(run):
    """How many functions, of Python and of C, Python calls in `run`."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_equal_operators_and_tensors_are_compared_without_python():
    few, many = ([chain(count).to_model() for _ in range(2)] for count in (10, 500))
    assert tq.diff(*few) == tq.diff(*many) == []
    assert calls(lambda: tq.diff(*many)) == calls(lambda: tq.diff(*few))


def test_a_summary_takes_a_few_calls_an_operator():
    few, many = opened(chain, 100), opened(chain, 1100)
    few.summary()
    assert calls(many.summary) - calls(few.summary) <= 10 * 1000


def interrupted_after(run, delay, processor=False):
    """How long `run` went on behind a signal that comes after `delay` seconds, of the processor's time or the clock's.

    None: it had ended.
    """

    def ring(*_):
        raise KeyboardInterrupt

    timer, number, clock = signal.ITIMER_REAL, signal.SIGALRM, time.perf_counter
    if processor:
        timer, number, clock = signal.ITIMER_PROF, signal.SIGPROF, time.process_time
    before = signal.signal(number, ring)
    begin = clock()
    try:
        signal.setitimer(timer, delay)
        run()
        signal.setitimer(timer, 0)
    except KeyboardInterrupt:
        return clock() - begin - delay
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
    return None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_problems_hears_ctrl_c():
    model = opened(chain, 40_000)
    begin = time.perf_counter()
    assert model.problems == []
    whole = time.perf_counter() - begin
    waits = [interrupted_after(lambda: model.problems, whole / 5) for _ in range(5)]
    assert min(wait for wait in waits if wait is not None) < whole / 4


MANY = 40_000
HEARING = {
    "opening": lambda model: tq.Interpreter(model=model),
    "allocating": lambda model: tq.Interpreter(model=model).allocate_tensors(),
    "backends": lambda model: tq.Interpreter(model=model).backends(),
    "editing": lambda model: tq.edit(model),
    "details": lambda model: len(model.get_tensor_details()),
    "summary": lambda model: model.summary(),
    "diff": lambda model: tq.diff(model, chain(MANY).to_model()),
    "listing": lambda model: str(model),
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("run", HEARING.values(), ids=HEARING)
def test_ctrl_c_is_heard(run):
    """With a fifth of the operators that the promise of 100 ms is about, and by the processor's time."""
    model = opened(chain, MANY)
    begin = time.process_time()
    run(model)
    whole = time.process_time() - begin
    for part in (0.3, 0.7):
        waits = [interrupted_after(lambda: run(model), whole * part, processor=True) for _ in range(3)]
        heard = [wait for wait in waits if wait is not None]
        assert not heard or min(heard) < 0.1


def test_signatures_and_metadata_are_read_while_they_are_added():
    made = chain(1)
    made.metadata["a"] = b"1"
    made.signature("s")
    made.metadata["b"] = b"2"
    assert dict(made.metadata) == {"a": b"1", "b": b"2"} == dict(made.to_model().metadata)
    made.metadata["a"] = b"3"
    made.signature("t")
    assert [one.key for one in made.signatures] == ["s", "t"] == [one.key for one in made.to_model().signatures]
    del made.metadata["b"]
    made.remove_signature("s")
    assert dict(made.to_model().metadata) == {"a": b"3"} == dict(made.metadata)
    assert [one.key for one in made.to_model().signatures] == ["t"]
    assert len(made.stored("metadata")) == 1
    made.store("metadata", None)
    assert not made.metadata
