# SPDX-License-Identifier: Apache-2.0
"""TFLite's quantization specification as rows, and what holds models against them: README.md."""
