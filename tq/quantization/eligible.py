# SPDX-License-Identifier: Apache-2.0
"""Why an operator cannot become an integer operator by its own form: its kernel, inputs, weights and options.

Its neighbours and ranges come later: tq/quantization/groups.py.
"""

from __future__ import annotations

import numpy as np

from tq.editing.graph import OperatorPart, TensorPart
from tq.quantization import recurrent
from tq.quantization.view import View, is_constant_float, is_float
from tq.specification.table import CALLING, FLOAT, INSTEAD, NOT_INT16, READS, VARIABLES

# Fused activations that integer kernels have.  For the others float kernels are no better: most ignore TANH and
# SIGN_BIT, and these refuse them.
_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_REFUSING = ("CONCATENATION", "FULLY_CONNECTED", "L2_NORMALIZATION")


def reason_against(view: View, op: OperatorPart) -> str:
    """Why it stays float; "" where it need not."""
    name = op.builtin_name or ""
    rule = view.rule(op)
    if op in view.ranges.read_real and not view.ranges.has_integer_ends and not view.graph_ends("inputs"):
        return "it reads the real values of an input"
    if rule is None or name == "SUM":
        return _without_kernel(view, name)
    row = view.row(op)
    if row.recurrent and not recurrent.is_eligible(op, view.readers, view.ranges):
        return "its weights, states, options or ranges are not those of the integer kernel"
    activation = _option(op, "fused_activation_function")
    if activation not in _ACTIVATIONS and name in _REFUSING:
        return f"kernels refuse the fused activation {activation}"
    outputs, activation_inputs, read = view.outputs(op), view.activation_inputs(op), view.read(op)
    if row.only is not None and (value := _option(op, row.only[0])) not in row.only[1]:
        return f"the kernel's {row.only[0]} {value} of quantized values is not the operator's of real ones"
    if name in INSTEAD and 0 not in activation_inputs:
        return "its input is not float32"
    if name in CALLING:
        return "" if view.ends.get(op) else "no tensor that it hands over can be an integer on both sides"
    if name in VARIABLES:
        return "" if op in view.variables and (outputs or activation_inputs) else "its variable cannot be told"
    if not activation_inputs or bool(outputs) == (rule == READS):
        return "its inputs or outputs are not float32"
    return _about_tensors(view, op, [*(tensor for _, tensor in read), *outputs])


def _option(op: OperatorPart, name: str) -> str:
    """The name of an option's enumerator; "NONE" where it has none."""
    return str(getattr(op.options.get(name), "name", "NONE"))


def _without_kernel(view: View, name: str) -> str:
    if name == "SUM":
        return "its axes, shape or range are not known"
    if name in FLOAT:
        return FLOAT[name]
    if view.type == "int16" and name in NOT_INT16:
        return NOT_INT16[name]
    return f"no {view.type} kernel computes it"


def _about_tensors(view: View, op: OperatorPart, activations: list[TensorPart]) -> str:
    narrow = view.row(op).narrow
    if not _has_weights(view, op):
        return "its weights or bias are not those of the integer kernel"
    if op.builtin_name == "DIV" and not _has_reciprocal(op):
        return "its divisor is no constant with finite reciprocals"
    if narrow is not None and view.type != "int8" and not any(is_constant_float(t) for t in op.inputs[narrow:]):
        return f"input {narrow} is no constant"
    if any(tensor.is_variable or tensor.is_sparse for tensor in activations):
        return "a tensor of it is a variable, or sparse"
    return ""


def _has_weights(view: View, op: OperatorPart) -> bool:
    """Whether weights and bias are as the kernel wants them, where it wants any."""
    row, inputs = view.row(op), op.inputs
    if row.weights is None:
        return True
    if all(index == row.weights for index in view.activation_inputs(op)) or not all(t.shape for t in view.outputs(op)):
        return False
    weights = inputs[row.weights] if row.weights < len(inputs) else None
    bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
    if weights is None or not is_float(weights) or (bias is not None and not is_constant_float(bias)):
        return False
    if not weights.is_constant and view.type != "int8":
        return view.ranges.knows(weights) and not view.is_infinite(weights) and not weights.is_variable
    return op.builtin_name != "FULLY_CONNECTED" or len(weights.shape) == 2


def _has_reciprocal(op: OperatorPart) -> bool:
    divisor = op.inputs[1] if len(op.inputs) > 1 else None
    data = divisor.data if divisor is not None and is_constant_float(divisor) else None
    if data is None:
        return False
    with np.errstate(divide="ignore", over="ignore"):
        return bool(np.isfinite(data).all() and np.isfinite(np.float32(1) / data).all())
