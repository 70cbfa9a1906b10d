# SPDX-License-Identifier: Apache-2.0
"""Running a model: the interpreter, its measurements, and two runs side by side."""
