# SPDX-License-Identifier: Apache-2.0
"""tq.report: where a quantized model's accuracy went."""
