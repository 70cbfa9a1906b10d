# SPDX-License-Identifier: Apache-2.0
"""The errors of a quantized model against its float model."""
