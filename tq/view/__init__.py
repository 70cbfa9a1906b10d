# SPDX-License-Identifier: Apache-2.0
"""Pages that show a model's graph, and its exports for other viewers."""
