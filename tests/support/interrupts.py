# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, pressed by a test."""

import _thread
import contextlib
import signal
import threading

import pytest


@contextlib.contextmanager
def ended_by_ctrl_c(after=0.3, start=True):
    """The block is interrupted in `after` seconds, and has to raise KeyboardInterrupt.

    Yields the function that starts the clock, for a block that does so itself (start=False): on a loaded machine a
    short time is over before the block begins.

    Also where the tests' own process was started to ignore it, as in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, _thread.interrupt_main)
    if start:
        timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield timer.start
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
