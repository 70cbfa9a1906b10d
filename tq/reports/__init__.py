# SPDX-License-Identifier: Apache-2.0
"""tq.report: the errors of a quantized model, tensor by tensor."""
