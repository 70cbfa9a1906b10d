# SPDX-License-Identifier: Apache-2.0
"""An operator of a run that keeps its tensors, with the parameters of its tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tq._core import Operator, Tensor
from tq.enums import LIMITS
from tq.explanation.fixed_point import away, clamp, even, f32, multiply, multiply_once, parts

RANGES = {name: LIMITS[name.lower()] for name in ("INT8", "UINT8", "INT16")}
# The fused activations that kernels of quantized values apply, with their bounds.  Kernels ignore the others.
_BOUNDS = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
# The bounds of operators that are activations.
ACTIVATIONS = {**_BOUNDS, "RELU_0_TO_1": (0.0, 1.0)}


class Node:
    """values: an array per input; zero_point, scale: an input's parameters; element: the index in output `place`."""

    def __init__(
        self, run: Any, op: Operator, numerics: str, element: tuple[int, ...], single: bool, place: int = 0
    ) -> None:
        self.run, self.op, self.numerics, self.element, self.single = run, op, numerics, element, single
        self.options, self.place = op.options or {}, place
        out = op.outputs[place]
        assert out is not None
        self.out: Tensor = out
        self.shape: tuple[int, ...] = run.get_tensor(out.index).shape

    def tensor(self, place: int) -> Tensor | None:
        return self.op.inputs[place] if place < len(self.op.inputs) else None

    def needed(self, place: int) -> Tensor:
        tensor = self.tensor(place)
        assert tensor is not None
        return tensor

    def type_of(self, place: int) -> str:
        return self._type_in_run(self.needed(place))

    @property
    def out_type(self) -> str:
        return self._type_in_run(self.out)

    def _type_in_run(self, tensor: Tensor) -> str:
        """The file's type, or the quantized one that the operator before it gave."""
        name = str(tensor.type.name)
        if name not in RANGES or tensor.is_constant:
            return name
        return str(self.run.get_tensor(tensor.index).dtype).upper()

    def values(self, place: int) -> Any:
        """An input's quantized values, as int64."""
        tensor = self.needed(place)
        if not tensor.is_constant:
            return np.asarray(self.run.get_tensor(tensor.index)).astype(np.int64)
        return np.asarray(tensor.data if tensor.sparsity is None else tensor.densify()).astype(np.int64)

    def zero_point(self, place: int) -> int:
        zeros = self.needed(place).quantization.zero_point
        return int(zeros[0]) if len(zeros) else 0

    def scale(self, place: int, channel: int = 0) -> np.float32:
        scales = self.needed(place).quantization.scale
        return np.float32(scales[channel if len(scales) > 1 else 0])

    def scale_count(self, place: int) -> int:
        return len(self.needed(place).quantization.scale)

    def real(self, place: int) -> Any:
        """An input's values as they are: of FLOAT32."""
        tensor = self.needed(place)
        return np.asarray(tensor.data if tensor.is_constant else self.run.get_tensor(tensor.index))

    def channel_scale(self, element: tuple[int, ...]) -> np.float32:
        """The output's scale for an element."""
        return np.float32(self._of_channel(self.out.quantization.scale, element))

    def channel_zero_point(self, element: tuple[int, ...]) -> int:
        """The output's zero point for an element."""
        return int(self._of_channel(self.out.quantization.zero_point, element))

    def real_value(self, q: int) -> float:
        """The real value of a quantized value of the element, also of one beyond its type."""
        return float(self.channel_scale(self.element)) * (q - self.channel_zero_point(self.element))

    def _of_channel(self, values: Any, element: tuple[int, ...]) -> Any:
        return values[element[self.out.quantization.quantized_dimension] if len(values) > 1 else 0]

    @property
    def out_scale(self) -> np.float32:
        return np.float32(self.out.quantization.scale[0])

    @property
    def out_zero_point(self) -> int:
        zeros = self.out.quantization.zero_point
        return int(zeros[0]) if len(zeros) else 0

    @property
    def limits(self) -> tuple[int, int]:
        """The output type's range."""
        return RANGES[self.out_type]

    def option(self, name: str, default: Any = None) -> Any:
        """An option; of an enum the name."""
        value = self.options.get(name, default)
        return getattr(value, "name", value)

    def rule(self, name: str) -> str:
        """A rule of tq.rules()["requantize"], "single" in place of "double" where the kernels are built so: all but
        UINT8 DEPTHWISE_CONV_2D's."""
        always = self.op.name == "DEPTHWISE_CONV_2D" and self.out_type == "UINT8"
        return "single" if name == "double" and self.single and not always else name

    def multiply(self, x: int, by: tuple[int, int]) -> int:
        """x times a fixed-point multiplier, as the kernels round."""
        return (multiply_once if self.single else multiply)(x, by)

    def parts(self, real: float) -> tuple[int, int]:
        """A real multiplier's fixed-point parts, as the kernels have them."""
        return parts(real, "single" if self.single else "double")

    @property
    def activation(self) -> str:
        return str(self.option("fused_activation_function", "NONE") or "NONE")

    @property
    def bounds(self) -> tuple[int, int]:
        """The range that the fused activation leaves of the output type's."""
        low, high = self.limits
        bounds = ACTIVATIONS.get(self.op.name) or _BOUNDS.get(self.activation)
        least, most = bounds or (None, None)
        return (
            low if least is None else self._quantized(least, low, high),
            high if most is None else self._quantized(most, low, high),
        )

    def _quantized(self, real: float, low: int, high: int) -> int:
        quotient = f32(f32(real) / self.out_scale)
        if self.numerics == "xnnpack":
            return even(float(np.clip(f32(quotient + f32(self.out_zero_point)), low, high)))
        return clamp(away(float(quotient)) + self.out_zero_point, low, high)
