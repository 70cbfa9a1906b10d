# SPDX-License-Identifier: Apache-2.0
"""How long Ctrl-C waits while an operator computes.

    python tests/support/delays.py [OPERATOR] [--types KIND ...] [--scale 2000] [--limit 0.1]

Each row of generators draws models whose tensors are `scale` times as large.  A timer sends a signal every two
milliseconds while one is allocated and run.  Its handler notes the time: Python calls it when the runtime asks whether
to stop.  The longest time between two such moments is the longest that Ctrl-C would have waited.  A wait beyond the
limit is measured again, since other processes may have had the processor, and printed as DEAF.
"""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    import built  # noqa: F401

import generators
from generators.draft import Draft

import tq

MEMORY = 1 << 30
ELEMENTS = 20_000_000  # of one drawn tensor


class Large(Draft):
    """A draft whose shapes have `factor` times as many elements."""

    factor = 1

    def shape(self, low=1, high=4, elements=1000, rank=None, empty=0.0):
        dims = super().shape(low, high, elements, rank, 0)
        if dims and np.prod(dims) < ELEMENTS // self.factor:
            at = self.integer(0, len(dims) - 1)
            dims[at] *= self.factor
        return dims

    def dimension(self, most=40):
        return super().dimension(most) * (4 if self.factor > 1 else 1)

    def draw(self, type, shape):
        """A drawn block, again and again: drawing millions of values takes longer than the operator."""
        count = int(np.prod(shape))
        if count <= 10_000 or type == "string":
            return super().draw(type, shape)
        return np.resize(super().draw(type, [9973]), shape)


def draw(operator, kind, number, scale):
    """A large case of a row, or None where the row's generator gives none."""
    draft = Large(7, operator, kind, number, name=operator)
    draft.factor = scale
    draft.plain = True
    try:
        generators.ROWS[operator, kind](draft, kind)
        return draft.case(operator, kind, 7, number)
    except (ValueError, IndexError, TypeError, AssertionError, OverflowError, MemoryError):
        return None  # the generator computes constants from a shape that it takes to be small


@contextlib.contextmanager
def ticking(moments, clock):
    """Notes the moments at which Python gets to handle signals."""
    before = signal.signal(signal.SIGALRM, lambda *_: moments.append(clock()))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def longest(run, clock):
    """The seconds that run() takes, and the longest that no signal was handled."""
    moments = [clock()]
    with ticking(moments, clock):
        run()
    moments.append(clock())
    return moments[-1] - moments[0], float(np.max(np.diff(moments)))


def delay(case, numerics, threads):
    """The seconds that a case takes, and the longest that Ctrl-C waits in it; (0, 0) where it does not run."""
    interpreter = tq.Interpreter(model_content=case.model, num_threads=threads, numerics=numerics, max_memory=MEMORY)
    clock = time.thread_time if threads == 1 else time.perf_counter  # what other processes take does not count
    found = []
    try:
        for index, shape in case.shapes.items():
            interpreter.resize_tensor_input(index, shape)
        found.append(longest(interpreter.allocate_tensors, clock))
        for index, array in case.runs[0].items():
            interpreter.set_tensor(index, array)
        found.append(longest(interpreter.invoke, clock))
    except (tq.Error, MemoryError):
        pass
    return tuple(map(max, zip(*found, strict=True))) if found else (0.0, 0.0)


def measure(rows, scale, limit, cases=2, numerics=("reference", "optimized", "xnnpack"), threads=(1, 2), show=print):
    """Yields (row, seconds, delay) of what waits longer than the limit, three times in a row."""
    for operator, kind in rows:
        slowest = worst = 0.0
        for number in range(cases):
            case = draw(operator, kind, number, scale)
            if case is None:
                continue
            for rule in numerics:
                for count in threads:
                    tries = 0
                    seconds, waits = delay(case, rule, count)
                    while waits > limit and tries < 2:
                        waits = min(waits, delay(case, rule, count)[1])
                        tries += 1
                    slowest, worst = max(slowest, seconds), max(worst, waits)
                    if waits > limit:
                        yield (operator, kind, number, rule, count), seconds, waits
        show(f"{operator} {kind}: {slowest:.3f} s, Ctrl-C waits {worst:.3f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operator", nargs="?")
    parser.add_argument("--types", nargs="*")
    parser.add_argument("--scale", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=0.1)
    parser.add_argument("--cases", type=int, default=2)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--numerics", nargs="*", default=["reference", "optimized", "xnnpack"])
    args = parser.parse_args()
    bad = 0
    for row, seconds, waits in measure(
        generators.rows(args.operator, args.types), args.scale, args.limit, args.cases, args.numerics, args.threads
    ):
        bad += 1
        print("DEAF", *row, f"takes {seconds:.3f} s, waits {waits:.3f} s", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
