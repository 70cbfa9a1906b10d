# SPDX-License-Identifier: Apache-2.0
"""tq: reads, checks, explains, runs, quantizes, edits and builds TensorFlow Lite models.

    m = tq.Model("model.tflite")
    print(m)                              # every operator and tensor, with its quantization
    m.tensors["conv/weights"].data        # a NumPy view, nothing copied
    m.get_tensor_details()                # TFLite's dicts, with the min and max that TFLite drops
    tq.Interpreter("model.tflite")        # in the place of tf.lite.Interpreter
    tq.quantize(x, scale, zero_point)     # TFLite's arithmetic, on arrays
    tq.quantize_model("float.tflite", "int8", calibration=samples)
    tq.edit("model.tflite")               # and tq.ModelBuilder()

The schema's enums are here by name: tq.TensorType, tq.BuiltinOperator, tq.Padding ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import tq._core
except ModuleNotFoundError as error:
    if error.name != "tq._core":
        raise
    import os

    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    raise ImportError(f"tq is not built for this Python here: run 'python -m pip install .' in {folder}") from None

import tq.earlier  # noqa: F401
from tq._core import (
    Buffer,
    Error,
    ExternalBuffer,
    Model,
    ModelError,
    Operator,
    OperatorCode,
    Problem,
    Quantization,
    QuantizationParams,
    QuantizedMultiplier,
    QuantizedWeights,
    Requantization,
    RunError,
    Signature,
    Subgraph,
    Tensor,
    bias_quantization_params,
    choose_quantization_params,
    cosine,
    decode_flexbuffer,
    dequantize,
    fake_quant,
    fake_quant_gradient,
    fit_scales_to_bias,
    max_error,
    mse,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    pack,
    quantize,
    quantize_bias,
    quantize_multiplier,
    quantize_weights,
    requantize,
    rounding_divide_by_pot,
    rules,
    saturating_rounding_doubling_high_mul,
    sqnr_db,
    unpack,
)
from tq.version import __version__ as __version__

if TYPE_CHECKING:  # what __getattr__ finds at run time
    from tq.accuracy.comparison import compare
    from tq.accuracy.evaluation import evaluate
    from tq.calibration.calibrate import Calibration, calibrate
    from tq.calibration.observers import HistogramObserver, MinMaxObserver, MovingAverageObserver
    from tq.calibration.pictures import pictures
    from tq.editing.builder import ModelBuilder
    from tq.editing.editor import edit
    from tq.editing.extraction import extract
    from tq.explanation.element import explain
    from tq.explanation.explain_quantization_params import explain_quantization_params
    from tq.explanation.explain_requantize import RequantizeExplanation, explain_requantize
    from tq.inspection.differences import diff
    from tq.inspection.export import export_npz
    from tq.quantization.bias_correction import correct_biases
    from tq.quantization.dequantize import dequantize_model
    from tq.quantization.equalization import equalize
    from tq.quantization.quantize import plan_quantization, quantize_model
    from tq.quantization.recipes import Rule
    from tq.quantization.sensitivity import sensitivity
    from tq.quantization.transcode import transcode
    from tq.reports.report import report
    from tq.running.compat import stand_in
    from tq.running.interpreter import Interpreter, register_op
    from tq.schema_enums import *  # noqa: F403
    from tq.specification.check import check
    from tq.specification.findings import Finding, Findings
    from tq.specification.repair import Change, Changes, Repaired, repair

__all__ = [
    "Buffer",
    "Calibration",
    "Change",
    "Changes",
    "Error",
    "ExternalBuffer",
    "Finding",
    "Findings",
    "HistogramObserver",
    "Interpreter",
    "MinMaxObserver",
    "Model",
    "ModelBuilder",
    "ModelError",
    "MovingAverageObserver",
    "Operator",
    "OperatorCode",
    "Problem",
    "Quantization",
    "QuantizationParams",
    "QuantizedMultiplier",
    "QuantizedWeights",
    "Repaired",
    "Requantization",
    "RequantizeExplanation",
    "Rule",
    "RunError",
    "Signature",
    "Subgraph",
    "Tensor",
    "bias_quantization_params",
    "calibrate",
    "check",
    "choose_quantization_params",
    "compare",
    "correct_biases",
    "cosine",
    "decode_flexbuffer",
    "dequantize",
    "dequantize_model",
    "diff",
    "edit",
    "equalize",
    "evaluate",
    "explain",
    "explain_quantization_params",
    "explain_requantize",
    "export_npz",
    "extract",
    "fake_quant",
    "fake_quant_gradient",
    "fit_scales_to_bias",
    "max_error",
    "mse",
    "multiply_by_quantized_multiplier",
    "multiply_by_quantized_multiplier_int64",
    "pack",
    "pictures",
    "plan_quantization",
    "quantize",
    "quantize_bias",
    "quantize_model",
    "quantize_multiplier",
    "quantize_weights",
    "register_op",
    "repair",
    "report",
    "requantize",
    "rounding_divide_by_pot",
    "rules",
    "saturating_rounding_doubling_high_mul",
    "sensitivity",
    "sqnr_db",
    "stand_in",
    "transcode",
    "unpack",
]

# Public names defined in Python, imported at their first use: {name: module}.
_LAZY = {
    "Calibration": "tq.calibration.calibrate",
    "Change": "tq.specification.repair",
    "Changes": "tq.specification.repair",
    "Finding": "tq.specification.findings",
    "Findings": "tq.specification.findings",
    "HistogramObserver": "tq.calibration.observers",
    "Interpreter": "tq.running.interpreter",
    "MinMaxObserver": "tq.calibration.observers",
    "ModelBuilder": "tq.editing.builder",
    "MovingAverageObserver": "tq.calibration.observers",
    "Repaired": "tq.specification.repair",
    "RequantizeExplanation": "tq.explanation.explain_requantize",
    "Rule": "tq.quantization.recipes",
    "calibrate": "tq.calibration.calibrate",
    "correct_biases": "tq.quantization.bias_correction",
    "compare": "tq.accuracy.comparison",
    "check": "tq.specification.check",
    "dequantize_model": "tq.quantization.dequantize",
    "diff": "tq.inspection.differences",
    "edit": "tq.editing.editor",
    "equalize": "tq.quantization.equalization",
    "evaluate": "tq.accuracy.evaluation",
    "explain": "tq.explanation.element",
    "explain_quantization_params": "tq.explanation.explain_quantization_params",
    "explain_requantize": "tq.explanation.explain_requantize",
    "export_npz": "tq.inspection.export",
    "extract": "tq.editing.extraction",
    "pictures": "tq.calibration.pictures",
    "plan_quantization": "tq.quantization.quantize",
    "quantize_model": "tq.quantization.quantize",
    "register_op": "tq.running.interpreter",
    "repair": "tq.specification.repair",
    "report": "tq.reports.report",
    "sensitivity": "tq.quantization.sensitivity",
    "stand_in": "tq.running.compat",
    "transcode": "tq.quantization.transcode",
}


if not TYPE_CHECKING:  # else no name would be unknown to type checkers

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _LAZY:
            value = getattr(importlib.import_module(_LAZY[name]), name)
        elif name[:1].isupper():
            value = getattr(importlib.import_module("tq.enums"), name, None)
        else:
            value = None
        if value is None:
            raise AttributeError(f"module 'tq' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, for completion: also names not imported yet, and none of the modules that define them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
