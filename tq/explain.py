# SPDX-License-Identifier: Apache-2.0
"""tq.RequantizeExplanation, where pickles of earlier versions look for it."""

from tq.inspection.explain import RequantizeExplanation

__all__ = ["RequantizeExplanation"]
