# SPDX-License-Identifier: Apache-2.0
"""The fields of a tensor, with its quantization; tq/editing/graph.py adds its place in the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tq import _core, enums
from tq._core import ModelError, Quantization, QuantizationParams, _Node
from tq.editing import fields
from tq.editing.constants import dtype_of, encode, type_number, type_row
from tq.editing.parts import OnlyPart, as_tuple


@cache
def _types() -> dict[int, Any]:
    return dict(enums.members_by_value("TensorType"))


@cache
def _type_names() -> dict[int, str]:
    return {number: member.name for number, member in _types().items()}


class QuantizationPart:
    """A tensor's quantization parameters.  Each is a read-only array, empty where none is stored; assign to change.

    An assignment changes its field alone: a new zero_point leaves every bit of scale, min and max.
    """

    def __init__(self, tensor: _Node) -> None:
        self._tensor = tensor

    def node(self) -> _Node | None:
        node: _Node | None = self._tensor.get("quantization")
        return node

    def _made(self) -> _Node:
        node = self.node()
        if node is None:
            node = self._tensor.tree.make("QuantizationParameters")
            self._tensor.set("quantization", node)
        return node

    def _get(self, field: str, dtype: Any) -> NDArray[Any]:
        node = self.node()
        value = node.get(field) if node else None
        if value is None:
            value = np.empty(0, dtype)
            value.flags.writeable = False
        array: NDArray[Any] = value
        return array

    def _set(self, field: str, value: ArrayLike | None) -> None:
        fields.put(self._made(), field, value if value is None else np.ravel(value))

    @property
    def scale(self) -> NDArray[np.float32]:
        """float32: one scale, or one a channel."""
        return self._get("scale", np.float32)

    @scale.setter
    def scale(self, value: ArrayLike | None) -> None:
        self._set("scale", value)

    @property
    def scale_count(self) -> int:
        """The number of scales."""
        node = self.node()
        return node.length("scale") if node else 0

    @property
    def zero_point(self) -> NDArray[np.int64]:
        """int64: one a scale, or one."""
        return self._get("zero_point", np.int64)

    @zero_point.setter
    def zero_point(self, value: ArrayLike | None) -> None:
        self._set("zero_point", value)

    @property
    def min(self) -> NDArray[np.float32]:
        """The stored least real value, float32; one, or one a channel."""
        return self._get("min", np.float32)

    @min.setter
    def min(self, value: ArrayLike | None) -> None:
        self._set("min", value)

    @property
    def max(self) -> NDArray[np.float32]:
        """The stored greatest real value, float32; one, or one a channel."""
        return self._get("max", np.float32)

    @max.setter
    def max(self, value: ArrayLike | None) -> None:
        self._set("max", value)

    @property
    def quantized_dimension(self) -> int:
        """The axis of several scales."""
        node = self.node()
        return int(node.get("quantized_dimension")) if node else 0

    @quantized_dimension.setter
    def quantized_dimension(self, value: int) -> None:
        fields.put(self._made(), "quantized_dimension", value)

    @property
    def details(self) -> dict[str, Any] | None:
        """The table of the details union as a dict, with its name under "type"; None: not stored."""
        node = self.node()
        details: dict[str, Any] | None = fields.plain(node, "details") if node else None
        return details

    @details.setter
    def details(self, value: Mapping[str, Any] | None) -> None:
        fields.put(self._made(), "details", value)

    def __bool__(self) -> bool:
        return self.node() is not None

    def __repr__(self) -> str:
        if not self:
            return "<tq quantization: none>"
        return f"<tq quantization: scale {self.scale.tolist()}, zero_point {self.zero_point.tolist()}>"


class TensorFields(OnlyPart):
    """A tensor's own fields."""

    @property
    def name(self) -> str:
        return self.node.get("name") or ""

    @name.setter
    def name(self, value: str) -> None:
        self.put("name", value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.numbers("shape")

    @shape.setter
    def shape(self, value: Iterable[int]) -> None:
        self.put("shape", list(value))

    @property
    def shape_signature(self) -> tuple[int, ...] | None:
        """The shape with -1 for dimensions of any length; None: not stored."""
        value = self.node.get("shape_signature")
        return None if value is None else as_tuple(value)

    @shape_signature.setter
    def shape_signature(self, value: Iterable[int] | None) -> None:
        self.put("shape_signature", None if value is None else list(value))

    @property
    def type(self) -> Any:
        """A TensorType, or an int that the schema does not know.  Assign a member, name or dtype; the data do not
        change."""
        number = self.node.get("type")
        return _types().get(number, number)

    @type.setter
    def type(self, value: Any) -> None:
        self.put("type", type_number(value))

    @property
    def type_name(self) -> str:
        """The type's name in the schema; "" for an unknown type."""
        return _type_names().get(self.node.get("type"), "")

    @property
    def is_variable(self) -> bool:
        return bool(self.node.get("is_variable"))

    @is_variable.setter
    def is_variable(self, value: bool) -> None:
        self.put("is_variable", value)

    @property
    def is_sparse(self) -> bool:
        """Whether it stores `sparsity`, so that its data are the non-zero elements alone."""
        return self.node.has("sparsity")

    @property
    def has_rank(self) -> bool:
        return bool(self.node.get("has_rank"))

    @has_rank.setter
    def has_rank(self, value: bool) -> None:
        self.put("has_rank", value)

    @property
    def buffer(self) -> int:
        """The index of its buffer; 0: no data."""
        return int(self.node.get("buffer"))

    @buffer.setter
    def buffer(self, value: int) -> None:
        self.editor.set_buffer(self.node, value)

    def store(self, field: str, value: Any) -> None:
        super().store(field, value)
        self.editor.forget_users()

    def become_quantized(self, buffer: int, type: str, axis: int) -> None:
        """Makes it a quantized constant: a buffer of Editor.add_quantized_buffer, its scales, and zero points 0.

        type: the tensor type of the values; axis: of the scales.
        """
        quantized = self.editor.buffer_node(buffer)
        assert quantized is not None
        _core._become_quantized(self.node, quantized, buffer, type_number(type), axis)
        self.editor.forget_users()

    @property
    def quantization(self) -> QuantizationPart:
        return QuantizationPart(self.node)

    @quantization.setter
    def quantization(
        self, value: QuantizationPart | Quantization | QuantizationParams | Mapping[str, Any] | None
    ) -> None:
        """None removes all parameters; a dict has the names of QuantizationParameters' fields; several scales of
        tq.QuantizationParams are those of dimension 0."""
        if isinstance(value, QuantizationPart):
            node = value.node()
            value = None if node is None else fields.as_dict(node)
        elif isinstance(value, Quantization):
            names = ("scale", "zero_point", "min", "max")
            arrays = {name: getattr(value, name) for name in names if len(getattr(value, name))}
            value = {**arrays, "quantized_dimension": value.quantized_dimension}
        elif isinstance(value, QuantizationParams):
            scale, zero = np.broadcast_arrays(np.atleast_1d(value.scale), value.zero_point)
            value = {"scale": scale, "zero_point": zero}
        elif value is not None and not isinstance(value, Mapping):
            raise TypeError(
                f"quantization is a {type(value).__name__}; it must be a dict of scale, zero_point and other fields, "
                "tq.QuantizationParams, another tensor's quantization, or None"
            )
        self.node.set("quantization", None)
        if value is not None:
            made = {name: item for name, item in value.items() if item is not None}
            self.put("quantization", made)

    @property
    def raw_data(self) -> NDArray[np.uint8] | None:
        """The buffer's bytes, a read-only view; None: no data."""
        index = self.node.get("buffer")
        node = self.editor.buffer_node(index) if index else None  # some files' buffer 0 holds data that no tensor has
        data: NDArray[np.uint8] | None = None if node is None else node.get("data")
        return data

    @property
    def data(self) -> NDArray[Any] | None:
        """The constant in its shape and dtype, read-only; None: no constant.  Sparse and string tensors: raw bytes.

        ModelError: the buffer does not have the size that shape and type need.
        """
        data, row = self.raw_data, type_row(int(self.type))
        if data is None or row is None or not row[1] or self.is_sparse:
            return data
        if row[1] < 8:
            return _core.unpack(data, self.shape, row[0].lower())
        try:
            return np.frombuffer(data, dtype_of(row).newbyteorder("<")).reshape(self.shape)
        except ValueError:
            raise ModelError(
                f"{self._where()}: {len(data)} bytes are no array of shape {list(self.shape)} and type {row[0]}"
            ) from None

    @data.setter
    def data(self, value: Any) -> None:
        """An array of the tensor's shape and dtype (elements of less than a byte get packed), strings, the buffer's
        bytes, or None.  If others use the buffer, the tensor gets a new one."""
        content = None
        if value is not None:
            content, _shape = encode(value, int(self.type), self.shape, self._where())
        self.editor.set_data(self.node, content)

    @property
    def is_constant(self) -> bool:
        index = self.node.get("buffer")
        node = self.editor.buffer_node(index) if index else None
        return node is not None and node.has("data")

    def _where(self) -> str:
        return f"tensor {self.name!r}"

    def __repr__(self) -> str:
        return f"<tq tensor {self.name!r}: {self.type_name or self.type} {list(self.shape)}>"
