# SPDX-License-Identifier: Apache-2.0
"""What the processor has: LiteRT's kernels, and so some of its results, differ by it."""

from pathlib import Path


def features():
    """The words of /proc/cpuinfo, "avx512f" among them; none where there is no such file."""
    try:
        return set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return set()
