# SPDX-License-Identifier: Apache-2.0
"""Runs of a model on calibration data: in this thread, in several, in an executor's workers, or in Dask's.

The result of each is a list of parts in the order of the samples; merged, they are the same for every split of the
work.  If the order of batches matters to the observers, a part is one sample; else a part is all samples of a worker.
"""

from __future__ import annotations

import importlib
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar, Union

from numpy.typing import NDArray

from tq import _core
from tq._core import Model, RunError
from tq.calibration.samples import Calls, Reservoir, Values
from tq.progress import Progress
from tq.running import recurrent, watching
from tq.running.interpreter import Interpreter
from tq.running.limits import NONE, Limits

_MOST_MEMORY = 1 << 30  # of the sum of the model's bytes over interpreters, whose activations grow with them
_MOST_CHUNK = 32  # samples sent to a worker at once
# Operators with a state that outlasts a run and is not reset with the variables.
_STATEFUL = {"ASSIGN_VARIABLE", "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"}

Result = TypeVar("Result")
Payload = Union[str, bytes]  # noqa: UP007 - evaluated on Python 3.10 too
Numbered = tuple[str, int, Values]  # a sample's name in errors, its subgraph, its arrays


class Part(NamedTuple):
    """The observers of some samples, by key, and the number of the samples."""

    observers: dict[int, Any]
    samples: int


class Task(NamedTuple):
    """The work on all samples.  With the model it is a worker's input, which can be pickled where the observer can.

    model: by path where external buffers need it, else by its bytes; None: this process has it open."""

    observer: Callable[[], Any]
    by_order: bool  # whether the order of batches matters to the observer
    signature: str | None
    resets: bool = True  # whether variables are reset before each sample
    limits: Limits = NONE  # of each run
    model: Payload | None = None

    def with_model(self, model: Model) -> Task:
        is_whole = model.path is None or not len(model.external_buffers)
        return self._replace(model=bytes(model._file) if is_whole else model.path)

    def opened(self) -> Model:
        assert self.model is not None
        return Model(self.model)


def task_of(observer: Callable[[], Any], signature: str | None, resets: bool, limits: Limits) -> Task:
    """observer: makes an observer; the other arguments are the task's fields."""
    return Task(observer, bool(getattr(type(observer()), "by_order", True)), signature, resets, limits)


def observed_tensors(model: Model) -> dict[int, str]:
    """{key: name} of the tensors to observe.

    These are the float32 inputs and operators' outputs of the first subgraph, of the subgraphs of signatures, and of
    those that their operators call; and the tensors that stand for inner values of recurrent operators
    (tq/running/recurrent.py).  key: as in tq/running/watching.py.
    ValueError: the model has no subgraphs.
    """
    if not model.subgraphs:
        raise ValueError("the model has no subgraphs")
    found: dict[int, str] = {}
    for subgraph in watching.reached(model):
        graph = model.subgraphs[subgraph]
        tensors = [*graph.inputs, *(tensor for operator in graph.operators for tensor in operator.outputs)]
        indices = [tensor.index for tensor in tensors if tensor is not None and watching.is_float32(tensor)]
        inner = [index for operator in graph.operators for index in recurrent.inner_indices(operator)]
        for index in (*indices, *inner):
            tensor = graph.tensors[index]
            name = recurrent.inside(tensor.name) if tensor.is_constant else tensor.name
            found[watching.key_of(subgraph, index)] = name
    return found


class _Runner:
    """An interpreter, and the observers of its operators' outputs."""

    def __init__(self, model: Model, task: Task) -> None:
        self._model = model
        self._by_order = task.by_order
        self._make = task.observer
        self._resets = task.resets
        self._limits = task.limits
        self._names = observed_tensors(model)
        self._is_stateful = task.resets and any(code.name in _STATEFUL for code in model.operator_codes)
        self._interpreter: Interpreter | None = None
        self._watcher: watching.Watcher | None = None
        self._shapes: dict[int, dict[int, tuple[int, ...]]] = {}  # by subgraph
        self._whole = Part(self._observers(), 0)

    def _observers(self) -> dict[int, Any]:
        return {index: self._make() for index in self._names}

    def run(self, where: str, subgraph: int, values: Values) -> Part | None:
        """Runs one sample.  Returns its part where the order of batches matters; else adds to `parts`.

        RunError, which begins with `where`: the model cannot be run.
        """
        observers = self._observers() if self._by_order else self._whole.observers
        try:
            self._observe(self._fed(subgraph, values), subgraph, observers)
        except RunError as error:
            refused = RunError(f"{where}: {error}")
            refused.code, refused.offset = error.code, error.offset
            raise refused from error
        if self._by_order:
            return Part(observers, 1)
        self._whole = self._whole._replace(samples=self._whole.samples + 1)
        return None

    def parts(self) -> list[Part]:
        """The part of all samples; [] where run returned one for each."""
        return [] if self._by_order else [self._whole]

    def _fed(self, subgraph: int, values: Values) -> Interpreter:
        shapes = {index: value.shape for index, value in values.items()}
        if self._interpreter is None or self._is_stateful:
            self._interpreter = Interpreter(model=self._model, numerics="reference", **self._limits._asdict())
            self._shapes = {}
            self._watcher = watching.Watcher(self._model, self._limits)
        interpreter = self._interpreter
        if shapes != self._shapes.get(subgraph):
            for index, shape in shapes.items():
                interpreter._resize(index, shape, subgraph)
            interpreter._allocate(subgraph)
            self._shapes[subgraph] = shapes
        if self._resets:
            interpreter.reset_all_variables()
        for index, value in values.items():
            interpreter.set_tensor(index, value, subgraph)
        return interpreter

    def _observe(self, interpreter: Interpreter, subgraph: int, observers: Mapping[int, Any]) -> None:
        def update(subgraph: int, index: int, values: NDArray[Any]) -> None:
            observer = observers.get(watching.key_of(subgraph, index))
            if observer is not None:
                observer.update(values, num_threads=1)

        assert self._watcher is not None
        self._watcher.watch(interpreter, subgraph, update)


# ---- on this machine ----


def in_threads(
    model: Model, task: Task, samples: Iterable[Numbered], wanted: int | None, bar: Progress
) -> Iterable[Part]:
    """The parts, by `wanted` interpreters of one model (None: a default); the caller's thread reads `samples`.

    ValueError: wanted is less than 1.
    """
    if wanted is None:
        wanted = min(_core._default_threads(), max(1, _MOST_MEMORY // max(1, model.nbytes)))
    wanted = wanted if task.resets else 1
    if wanted < 1:
        raise ValueError(f"num_threads is {wanted}; it must be at least 1")
    return _in_turn(model, task, samples, bar) if wanted == 1 else _Pool(model, task, bar).run(samples, wanted)


def _in_turn(model: Model, task: Task, samples: Iterable[Numbered], bar: Progress) -> Iterator[Part]:
    runner = _Runner(model, task)
    for where, subgraph, values in samples:
        part = runner.run(where, subgraph, values)
        bar.add()
        if part is not None:
            yield part
    yield from runner.parts()


class _Pool:
    """Threads with a runner each; a short queue gives them samples."""

    def __init__(self, model: Model, task: Task, bar: Progress) -> None:
        self._model, self._task, self._bar = model, task, bar
        self._lock = threading.Lock()
        self._parts: dict[int, Part] = {}  # by number of the sample
        self._rest: list[Part] = []
        self._failed: dict[int, BaseException] = {}

    def run(self, samples: Iterable[Numbered], count: int) -> list[Part]:
        line: queue.Queue[tuple[int, Numbered] | None] = queue.Queue(2 * count)
        threads: list[threading.Thread] = []
        try:
            for number, sample in enumerate(samples):
                if self._failed:
                    break
                if len(threads) < count:
                    threads.append(threading.Thread(target=self._work, args=(line,), daemon=True))
                    threads[-1].start()
                line.put((number, sample))
        except BaseException as error:
            self._failed[sys.maxsize] = error  # the error of an earlier sample comes first
        finally:
            for _ in threads:
                line.put(None)
            for thread in threads:
                thread.join()
        if self._failed:
            raise self._failed[min(self._failed)]
        return [*(part for _number, part in sorted(self._parts.items())), *self._rest]

    def _work(self, line: queue.Queue[tuple[int, Numbered] | None]) -> None:
        runner = _Runner(self._model, self._task)
        while (item := line.get()) is not None:
            number, (where, subgraph, values) = item
            if self._failed and min(self._failed) < number:  # emptied all the same, so that the queue never stays full
                continue
            try:
                part = runner.run(where, subgraph, values)
            except BaseException as error:
                self._failed[number] = error
                continue
            with self._lock:
                self._bar.add()
                if part is not None:
                    self._parts[number] = part
        with self._lock:
            self._rest += runner.parts()


# ---- elsewhere ----


def run_chunk(task: Task, samples: Iterable[Numbered]) -> list[Part]:
    """The work of an executor's worker: the parts of some samples."""
    return list(_in_turn(task.opened(), task, samples, Progress(False, None)))


def in_executor(
    executor: Any, task: Task, samples: Iterable[Numbered], total: int | None, bar: Progress
) -> Iterator[Part]:
    """The parts, by any concurrent.futures.Executor, with about two chunks of samples waiting for each worker.

    total: the number of samples; None: not known.
    """
    size = 8 if total is None else max(1, min(_MOST_CHUNK, -(-total // (2 * _workers(executor)))))
    rest, counts = iter(samples), deque[int]()

    def chunks() -> Iterator[tuple[Task, list[Numbered]]]:
        while chunk := list(islice(rest, size)):
            counts.append(len(chunk))
            yield task, chunk

    for parts in in_order(executor, run_chunk, chunks()):
        bar.add(counts.popleft())
        yield from parts


def in_order(executor: Any, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """The results of work(*task) by an executor's workers, in the order of the tasks, about two of which wait for each
    worker."""
    most, waiting = 2 * _workers(executor), deque[Any]()
    try:
        for task in tasks:
            waiting.append(executor.submit(work, *task))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _workers(executor: Any) -> int:
    return int(getattr(executor, "_max_workers", 0) or _core._default_threads())


def is_delayed(data: Any) -> bool:
    """Whether the data are Dask's: a bag, a delayed value, or a list of delayed ones."""
    if hasattr(type(data), "__dask_graph__"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(is_delayed(item) for item in data)


def computed(data: Any) -> Any:
    """Samples; Dask's are computed."""
    if not is_delayed(data):
        return data
    found = importlib.import_module("dask").compute(data)[0]
    return list(found)


def in_dask(task: Task, data: Any, most: int | None, seed: int) -> list[Part]:
    """The parts of a bag, of a delayed list of samples, or of a list of delayed samples, by Dask's scheduler."""
    dask: Any = importlib.import_module("dask")
    one_each = isinstance(data, (list, tuple))
    partitions = list(data) if one_each else list(data.to_delayed()) if hasattr(type(data), "to_delayed") else [data]
    chosen: list[frozenset[int] | None] = [None] * len(partitions)
    if most is not None:
        jobs = [] if one_each else [dask.delayed(_count)(partition, task) for partition in partitions]
        chosen = list(_chosen([1] * len(partitions) if one_each else dask.compute(*jobs), most, seed))
    shared = dask.delayed(task, pure=False)
    jobs = [
        dask.delayed(run_partition)(shared, partition, number, one_each, positions)
        for number, (partition, positions) in enumerate(zip(partitions, chosen, strict=True))
        if positions is None or positions
    ]
    return [part for parts in dask.compute(*jobs) for part in parts]


def _samples(task: Task, partition: Any, number: int, is_one: bool) -> Iterator[Numbered]:
    calls = Calls(task.opened(), task.signature)
    if is_one:
        where = f"calibration sample {number}"
        inputs, sample = calls.one(partition, where)
        yield where, inputs.subgraph, inputs.values(sample, where)
        return
    for position, (inputs, sample) in enumerate(calls.each(partition)):
        where = f"calibration sample {position} of partition {number}"
        yield where, inputs.subgraph, inputs.values(sample, where)


def run_partition(task: Task, partition: Any, number: int, is_one: bool, chosen: frozenset[int] | None) -> list[Part]:
    """The work of Dask's worker.  is_one: the partition is one sample; chosen: positions of its samples, None: all."""
    samples = _samples(task, partition, number, is_one)
    return run_chunk(task, (item for position, item in enumerate(samples) if chosen is None or position in chosen))


def _count(partition: Any, task: Task) -> int:
    return sum(1 for _ in Calls(task.opened(), task.signature).each(partition))


def _chosen(counts: Iterable[int], most: int, seed: int) -> Iterator[frozenset[int]]:
    """For each partition, of `counts` samples, the positions of a random choice of `most` samples in all."""
    counts = list(counts)
    reservoir, slots = Reservoir(most, seed), {}
    for number in range(sum(counts)):
        slot = reservoir.slot()
        if slot is not None:
            slots[slot] = number
    first, found = 0, set(slots.values())
    for count in counts:
        yield frozenset(number - first for number in found if first <= number < first + count)
        first += count
