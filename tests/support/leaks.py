# SPDX-License-Identifier: Apache-2.0
"""Whether an action leaves Python objects or C memory behind."""

import gc
import os
import sys
from pathlib import Path

import pytest

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


needs_own_memory = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer keeps freed memory")


def resident():
    if not Path("/proc/self/statm").exists():
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


ROUNDS = 12


def growth(action, repeats):
    """(Python memory blocks, resident bytes) that `repeats` calls leave behind."""
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resident()
    for _ in range(repeats):
        action()
    gc.collect()
    return sys.getallocatedblocks() - blocks, resident() - memory


def assert_no_leak(action, repeats):
    """Free lists and caches fill up in the first rounds; a leak shows in every round.

    One object a call is `repeats` blocks; a page for every eight calls is the least leak of C memory that shows.
    """
    found = []
    for _ in range(ROUNDS):
        found.append(growth(action, repeats))
        blocks, memory = found[-1]
        if blocks < repeats // 2 and memory <= repeats * PAGE // 8:
            return
    raise AssertionError(f"(blocks, bytes) of rounds of {repeats} calls: {found}")
