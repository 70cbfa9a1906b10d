# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, pressed by a test."""

import _thread
import contextlib
import signal
import threading

import pytest


@contextlib.contextmanager
def ended_by_ctrl_c(after=0.3):
    """What runs inside is interrupted, and has to raise KeyboardInterrupt.

    Also where the tests' own process was started to ignore it, as in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
