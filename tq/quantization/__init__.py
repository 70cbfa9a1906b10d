# SPDX-License-Identifier: Apache-2.0
"""Post-training quantization: README.md tells the modules in reading order."""
