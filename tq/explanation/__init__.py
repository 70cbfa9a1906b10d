# SPDX-License-Identifier: Apache-2.0
"""One element of a run, step by step: tq.explain."""
