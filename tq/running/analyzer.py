# SPDX-License-Identifier: Apache-2.0
"""`tf.lite.experimental.Analyzer` as tq has it: `print(model)`, with LiteRT's lines on the GPU delegate.

LiteRT's own analyzer (tflite/python/analyzer_wrapper/model_analyzer.cc, revision f6745779) checks nothing for these
lines: it prints them for every model.
"""

from __future__ import annotations

import os

from tq._core import Model
from tq.inspection.listing import RULE

# The runtime version in the analyzer of the release that numerics.md names.
RUNTIME_VERSION = "2.22.0-dev0+selfbuilt"

_COMPATIBLE = (
    f"Your model looks compatible with GPU delegate on TFLite runtime version {RUNTIME_VERSION}.",
    "This does not guarantee that your model will work well with GPU delegate because there could still be runtime "
    "incompatibililties.",
)


class Analyzer:
    """In the place of `tf.lite.experimental.Analyzer`."""

    @staticmethod
    def analyze(
        model_path: str | bytes | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        gpu_compatibility: bool = False,
        *,
        experimental_use_mlir: bool = False,
    ) -> None:
        """Prints the model's listing, and for gpu_compatibility what LiteRT's analyzer says of every model.

        ValueError: neither a path nor content is given, or both, of which TensorFlow's leaves the content out, or
        experimental_use_mlir, which needs TensorFlow.  TypeError: content is a str.  OSError, ModelError: the model
        cannot be opened.
        """
        if not model_path and not model_content:
            raise ValueError("neither `model_path` nor `model_content` is provided")
        if model_path and model_content:
            raise ValueError("`model_path` and `model_content` are provided; give one of them")
        if isinstance(model_content, str):
            raise TypeError("`model_content` is a str; it needs the bytes of a model, and `model_path` a path")
        if experimental_use_mlir:
            raise ValueError("experimental_use_mlir needs TensorFlow's converter; tq lists models without it")
        if model_path:
            model = Model(os.fsdecode(model_path))
        else:
            assert model_content is not None
            model = Model(model_content)
        lines = str(model).split("\n")
        if gpu_compatibility:
            place = lines.index(RULE) if RULE in lines else len(lines)
            lines[place:place] = ["", *_COMPATIBLE]
        print(f"=== {os.fsdecode(model_path)} ===\n" if model_path else "=== TFLite ModelAnalyzer ===\n")
        print("\n".join(lines))
