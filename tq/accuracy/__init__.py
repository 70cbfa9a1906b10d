# SPDX-License-Identifier: Apache-2.0
"""How far a quantized model's values are from those of its float model."""
