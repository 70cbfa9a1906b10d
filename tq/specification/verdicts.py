# SPDX-License-Identifier: Apache-2.0
"""What LiteRT's three sets of kernels do with an operator that breaks a rule: rows, which tests hold against LiteRT."""

from __future__ import annotations

from tq.specification.rules import Found

KERNELS = ("reference", "optimized", "xnnpack")


def kernels_of(item: Found) -> dict[str, str]:
    return dict.fromkeys(KERNELS, "runs")
