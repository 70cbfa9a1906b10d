# SPDX-License-Identifier: Apache-2.0
"""Conditions of the rows of verdicts.py: what a kernel of LiteRT looks at, beside the rule that an operator breaks."""

from __future__ import annotations

import numpy as np

from tq.editing.graph import TensorPart
from tq.specification.operands import one_scale, type_of, zero_points
from tq.specification.rule import Found

# The farthest bound of each fused activation.
_BOUNDS = {"RELU": 0, "RELU6": 6, "RELU_N1_TO_1": 1}


def read_scale(tensor: TensorPart | None) -> np.float32:
    """As kernels that take one scale read it: 0 where there is none, or several."""
    scale = None if tensor is None else one_scale(tensor)
    return np.float32(0) if scale is None else scale


def own_scale(item: Found) -> np.float32:
    return read_scale(None if item.operand is None else item.operand.tensor)


def is_far(item: Found) -> bool:
    """Whether kernels of one weight scale take the scales for those of another operator."""
    v = item.operands
    first, output = v.data[0].tensor if v.data else v.op.inputs[0], v.op.outputs[0]
    if v.weights is None or v.weights.tensor.quantization.scale_count != 1:
        return False
    with np.errstate(all="ignore"):
        needed = np.float64(read_scale(first)) * np.float64(read_scale(v.weights.tensor))
        if v.bias is None:
            return not needed >= 0
        apart = abs(np.float64(read_scale(v.bias.tensor)) - needed)
        return not needed >= 0 or not apart / np.float64(read_scale(output)) <= 0.02


def is_bias(item: Found) -> bool:
    return item.operand is not None and item.operand == item.operands.bias


def is_channels_bias(item: Found) -> bool:
    return is_bias(item) and has_channels(item)


def is_unbounded(item: Found) -> bool:
    """Whether a fused activation's bounds are no quantized values of the output."""
    activation = getattr(item.operands.op.options.get("fused_activation_function"), "name", "NONE")
    if not is_output(item) or activation not in _BOUNDS:
        return False
    with np.errstate(all="ignore"):
        steps = np.float32(_BOUNDS[activation]) / own_scale(item)
    return not abs(float(steps)) <= 2.0**31


def is_nothing(item: Found) -> bool:
    """Whether it is an input whose scale is 0, negative or NaN."""
    return is_input(item) and not own_scale(item) > 0


def is_below(item: Found) -> bool:
    """Whether it is an input whose scale is negative or NaN, beside a quantized output."""
    return is_input(item) and bool(item.operands.outputs) and not own_scale(item) >= 0


def is_no_sum(item: Found) -> bool:
    """Whether the scales of a sum make a multiplier of 1 or more, or none."""
    scale = own_scale(item)
    return not is_input(item) or not (scale > 0 and np.isfinite(scale))


def is_tiny(item: Found) -> bool:
    return bool(0 < own_scale(item) < np.finfo(np.float32).tiny)


def is_tiny_input(item: Found) -> bool:
    return is_input(item) and is_tiny(item)


def is_tiny_output(item: Found) -> bool:
    return is_output(item) and is_tiny(item)


def is_no_number(item: Found) -> bool:
    """Whether it is an output whose scale is negative or not finite."""
    scale = own_scale(item)
    return is_output(item) and not (scale >= 0 and np.isfinite(scale))


def is_one_bias(item: Found) -> bool:
    return is_bias(item) and item.operand is not None and item.operand.tensor.quantization.scale_count == 1


def is_all_negative(item: Found) -> bool:
    """Whether the zero point of the input lies above its type, and all its values below 0."""
    if not is_input(item) or item.operand is None:
        return False
    tensor = item.operand.tensor
    return bool((zero_points(tensor) > np.iinfo(type_of(tensor)).max).any())


def has_uint8_weights(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and type_of(weights.tensor) == "uint8"


def has_one_uint8_scale(item: Found) -> bool:
    return has_uint8_weights(item) and not has_channels(item)


def has_packed_weights(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and type_of(weights.tensor) in ("int4", "int2")


def is_mixed(item: Found) -> bool:
    return item.operands.mixed is not None


def is_no_mixed_output(item: Found) -> bool:
    return is_output(item) and not is_mixed(item)


def has_no_bias(item: Found) -> bool:
    return item.operands.bias is None


def has_no_mixed_bias(item: Found) -> bool:
    return is_mixed(item) and has_no_bias(item)


def has_no_shuffled_bias(item: Found) -> bool:
    weights_format = getattr(item.operands.op.options.get("weights_format"), "name", "DEFAULT")
    return weights_format != "DEFAULT" and has_no_bias(item)


def others_have_scales(item: Found) -> bool:
    return any(other.tensor.quantization.scale_count for other in item.operands.activations)


def pads_otherwise(item: Found) -> bool:
    """Whether the value that is put around has other parameters than the output."""
    value, output = item.operands.op.inputs[2], item.operands.op.outputs[0]
    if value is None or output is None:
        return False
    a, b = ((read_scale(t), zero_points(t).tolist()[:1]) for t in (value, output))
    return a != b


def writes_another_type(item: Found) -> bool:
    """Whether the inputs have one type, and the output another, which the kernel does not look at."""
    v = item.operands
    types = {type_of(operand.tensor) for operand in v.data}
    return len(types) == 1 and types != {type_of(operand.tensor) for operand in v.outputs}


def counts_others(item: Found) -> bool:
    """Whether there is not a scale for each channel of the operator, or for each index of the dimension they name."""
    v = item.operands
    if v.weights is None or v.row is None or v.row.axis is None:
        return False
    tensor = v.weights.tensor
    count, along = tensor.quantization.scale_count, tensor.quantization.quantized_dimension
    others = along < len(tensor.shape) and count > 1 and count != tensor.shape[along]
    return others or count != tensor.shape[v.row.axis]


def is_first(item: Found) -> bool:
    return is_input(item) and item.operand is not None and item.operand.place == 0


def types_of(item: Found) -> tuple[str, str, str]:
    """Types of the first two inputs and of the output; "": there is none."""
    inputs, outputs = [*item.operands.op.inputs, None, None], [*item.operands.op.outputs, None]
    first, second, output = (t.type_name.lower() if t is not None else "" for t in (*inputs[:2], outputs[0]))
    return first, second, output


def reads_int8(item: Found) -> bool:
    return types_of(item)[0] == "int8"


def is_int8_to_uint8(item: Found) -> bool:
    return types_of(item)[::2] == ("int8", "uint8")


def is_integer_lstm(item: Found) -> bool:
    """Whether LSTM of INT8 gates writes UINT8; the basic kernel has five inputs."""
    return is_int8_to_uint8(item) and len(item.operands.op.inputs) > 5


def is_packed_to_uint8(item: Found) -> bool:
    return is_int8_to_uint8(item) and has_packed_weights(item)


def is_int16_to_uint8(item: Found) -> bool:
    return types_of(item)[::2] == ("int16", "uint8")


def is_uint8_by_int8_to_int16(item: Found) -> bool:
    return types_of(item) == ("uint8", "int8", "int16")


def has_uint8_channels(item: Found) -> bool:
    return has_uint8_weights(item) and has_channels(item)


def is_far_output(item: Found) -> bool:
    return is_output(item) and is_far(item)


def is_nan_output(item: Found) -> bool:
    return is_output(item) and bool(np.isnan(own_scale(item)))


def is_of_second_version(item: Found) -> bool:
    return item.operands.op.version > 1


def is_beyond_16_bits(item: Found) -> bool:
    """Whether the zero point is none of INT16."""
    return item.operand is not None and bool((np.abs(zero_points(item.operand.tensor).astype(np.int64)) > 32768).any())


def lacks_scale(item: Found, place: int) -> bool:
    inputs = item.operands.op.inputs
    tensor = inputs[place] if place < len(inputs) else None
    return tensor is not None and not tensor.quantization.scale_count


def lacks_second_scale(item: Found) -> bool:
    return lacks_scale(item, 1) and not lacks_scale(item, 0)


def lacks_svdf_state_scale(item: Found) -> bool:
    return lacks_scale(item, 4)


def lacks_cell_state_scale(item: Found) -> bool:
    return lacks_scale(item, 19)


# Weights that kernels take for INT8 without a look at their type.
_UNREAD = {"LSTM": (4, 8, 16), "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 3, 16), "SVDF": (1,)}


def is_unread(item: Found) -> bool:
    if item.operand is None or item.operand.place not in _UNREAD.get(item.operands.name, ()):
        return False
    # the kernel of sequences takes values of another width, too
    return item.operands.name.endswith("SEQUENCE_LSTM") or type_of(item.operand.tensor) == "uint8"


def is_input(item: Found) -> bool:
    return item.operand is not None and item.operand.side == "inputs"


def reads_one_type(item: Found) -> bool:
    """Whether the operator writes another type than all that it reads have, such as a tensor that it reads twice."""
    v = item.operands
    types = {type_of(operand.tensor) for operand in v.data}
    return len(v.data) > 1 and len(types) == 1 and types != {type_of(operand.tensor) for operand in v.outputs}


def is_outside(item: Found) -> bool:
    """Whether the zero point, too, is none of the tensor's type."""
    tensor = None if item.operand is None else item.operand.tensor
    if tensor is None or type_of(tensor) not in ("int8", "uint8"):
        return False
    info = np.iinfo(type_of(tensor))
    return any(not info.min <= zero <= info.max for zero in zero_points(tensor))


def is_outside_first(item: Found) -> bool:
    return is_first(item) and is_outside(item)


def has_channels(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and weights.tensor.quantization.scale_count > 1


def is_output(item: Found) -> bool:
    return item.operand is not None and item.operand.side == "outputs"


def converts(item: Found) -> bool:
    """Whether the input has another type than the output."""
    inputs, outputs = item.operands.op.inputs, item.operands.op.outputs
    types = {tensor.type_name for tensor in (*inputs[:1], *outputs[:1]) if tensor is not None}
    return len(types) > 1


def has_other_scale(item: Found) -> bool:
    rule = item.operands.rule
    own = None if item.operand is None else one_scale(item.operand.tensor)
    return isinstance(rule, tuple) and own is not None and own != np.float32(rule[0])


def is_narrow(item: Found) -> bool:
    weights = item.operands.weights
    return weights is not None and type_of(weights.tensor) == "int4"


def is_unsigned(item: Found) -> bool:
    """Whether XNNPACK takes the weights for unsigned ones, less 8."""
    weights = item.operands.weights
    if not is_narrow(item) or weights is None or item.rule != "weights-zero-point":
        return False
    return has_channels(item) and set(zero_points(weights.tensor).tolist()) <= {0, 8}
