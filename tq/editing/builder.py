# SPDX-License-Identifier: Apache-2.0
"""tq.ModelBuilder: new models.

b = tq.ModelBuilder()
x = b.input("x", [1, 4], "int8", scale=0.5, zero_point=3)
w = b.constant("w", weights, scale=scales, quantized_dimension=0)
y = b.tensor("y", [1, 2], "int8", scale=0.25)
b.operator("FULLY_CONNECTED", [x, w, None], [y], fused_activation_function="RELU")
b.output(y)
m = b.to_model()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tq.editing import fields
from tq.editing.editor import Editor
from tq.editing.graph import OperatorPart, SubgraphPart, TensorLike, TensorPart
from tq.editing.names import SignaturePart


class GraphBuilder(SubgraphPart):
    """A new subgraph.  Its tensors and operators have the order of their calls."""

    def tensor(
        self, name: str | None, shape: Iterable[int] | None = None, type: Any = None, **parameters: Any
    ) -> TensorPart:
        """A new tensor; parameters as for add_tensor: scale, zero_point, min, max, quantized_dimension, data ..."""
        return self.add_tensor(name, shape, type, **parameters)

    def input(self, name: str | None, shape: Iterable[int], type: Any = None, **parameters: Any) -> TensorPart:
        """A new tensor as the subgraph's next input; parameters as for add_tensor."""
        tensor = self.add_tensor(name, shape, type, **parameters)
        self.inputs = [*self.inputs, tensor]
        return tensor

    def operator(
        self, name: str, inputs: Iterable[TensorLike], outputs: Iterable[TensorLike], /, **arguments: Any
    ) -> OperatorPart:
        """A new last operator, builtin by its name in the schema, else custom (see add_operator).

        arguments: of add_operator, such as version and custom_options, and the options by the schema's names.
        ValueError: as add_operator.
        """
        return self.add_operator(name, inputs, outputs, **arguments)

    def output(self, *tensors: TensorLike) -> None:
        """Appends tensors to the subgraph's outputs."""
        self.outputs = [*self.outputs, *tensors]


class ModelBuilder(Editor):
    """A new model.  Its methods for tensors and operators work on the first subgraph; `subgraph` adds more.

    It has all methods of tq.edit's editor: metadata, save(), to_bytes(), to_model() ...
    ValueError: an option that the operator does not have, data of another shape or dtype; the message names them.
    """

    _graph_type = GraphBuilder

    def __init__(self, description: str | None = None, *, name: str = "main") -> None:
        super().__init__()
        self.root.set("operator_codes", [])
        self.add_subgraph(name)
        self._buffers = [self.tree.make("Buffer")]
        self._are_buffers_stored = False
        if description is not None:
            fields.put(self.root, "description", description)

    @property
    def graph(self) -> GraphBuilder:
        """The first subgraph."""
        graph = self._subgraphs[0]
        assert isinstance(graph, GraphBuilder)
        return graph

    def subgraph(self, name: str | None = None) -> GraphBuilder:
        """A new subgraph, with methods to build it."""
        graph = self.add_subgraph(name)
        assert isinstance(graph, GraphBuilder)
        return graph

    def tensor(
        self, name: str | None, shape: Iterable[int] | None = None, type: Any = None, **parameters: Any
    ) -> TensorPart:
        """GraphBuilder.tensor of the first subgraph."""
        return self.graph.tensor(name, shape, type, **parameters)

    def input(self, name: str | None, shape: Iterable[int], type: Any = None, **parameters: Any) -> TensorPart:
        """GraphBuilder.input of the first subgraph."""
        return self.graph.input(name, shape, type, **parameters)

    def operator(
        self, name: str, inputs: Iterable[TensorLike], outputs: Iterable[TensorLike], /, **arguments: Any
    ) -> OperatorPart:
        """GraphBuilder.operator of the first subgraph."""
        return self.graph.operator(name, inputs, outputs, **arguments)

    def output(self, *tensors: TensorLike) -> None:
        """GraphBuilder.output of the first subgraph."""
        self.graph.output(*tensors)

    def signature(
        self,
        key: str = "serving_default",
        inputs: Mapping[str, TensorLike] | None = None,
        outputs: Mapping[str, TensorLike] | None = None,
        subgraph: int = 0,
    ) -> SignaturePart:
        """A new signature of a subgraph.

        inputs, outputs: {name: tensor}; None: all, under their tensors' names.
        """
        graph = self.subgraphs[subgraph]
        if inputs is None:
            inputs = {tensor.name: tensor for tensor in graph.inputs if tensor}
        if outputs is None:
            outputs = {tensor.name: tensor for tensor in graph.outputs if tensor}
        return self.add_signature(key, inputs, outputs, subgraph)
