# SPDX-License-Identifier: Apache-2.0
"""tq.Rule, where pickles of earlier versions look for it."""

from tq.quantization.recipes import Rule

__all__ = ["Rule"]
