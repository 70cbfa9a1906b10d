# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter: in the place of TFLite's, with its arguments, methods and results.

    interpreter = tq.Interpreter(model_path="model.tflite")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tq import _core


class Interpreter(_core.Interpreter):
    """Runs a model."""

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Any = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = None,
        experimental_preserve_all_tensors: bool = False,
        *,
        model: _core.Model | None = None,
        numerics: str = "reference",
        max_memory: int | None = None,
    ) -> None:
        super().__init__()
        if model is None:
            source = model_path if model_path is not None else model_content
            if source is None:
                raise ValueError("`model_path` or `model_content` must be specified.")
            model = _core.Model(source)
        self.model = model
        self._open(model, numerics, num_threads or 1, experimental_preserve_all_tensors, max_memory or 0, {})

    def allocate_tensors(self) -> None:
        """Prepares every operator and gives every tensor its memory."""
        self._allocate()

    def invoke(self) -> None:
        """Runs the model on what set_tensor gave it."""
        self._invoke()

    def get_input_details(self) -> list[dict[str, Any]]:
        """The details of the model's inputs."""
        return self.model.get_input_details()

    def get_output_details(self) -> list[dict[str, Any]]:
        """The details of the model's outputs."""
        return self.model.get_output_details()

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """The details of every tensor of a subgraph."""
        return self.model.get_tensor_details(subgraph_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Gives an input another shape; allocate_tensors has to be called again."""
        self._resize(input_index, tuple(np.asarray(tensor_size, np.int32).tolist()))
