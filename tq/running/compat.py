# SPDX-License-Identifier: Apache-2.0
"""tq in the place of TFLite's packages.

    tq.stand_in()                       # from now on
    with tq.stand_in(): ...             # for a while
    def test_x(tq_stand_in): ...        # in a test; see tq.pytest_plugin

Then `import ai_edge_litert.interpreter`, `import tflite_runtime.interpreter` and, where TensorFlow is not installed,
`import tensorflow.lite` give tq's Interpreter.  What was imported before keeps what it has.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import tq.running.interpreter as shim

_PACKAGES = ("ai_edge_litert", "tflite_runtime")
_NAMES = ("Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate")


def _module(name: str, names: dict[str, Any], package: bool = False) -> ModuleType:
    module = ModuleType(name, "tq stands in for this module: see tq.stand_in.")
    module.__dict__.update(names)
    if package:
        module.__path__ = []
    return module


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


def _modules() -> dict[str, ModuleType]:
    """What to put into sys.modules."""
    names = {name: getattr(shim, name) for name in _NAMES}
    result: dict[str, ModuleType] = {}
    for package in _PACKAGES:
        module = _module(f"{package}.interpreter", names)
        result[module.__name__] = module
        if not _installed(package):
            result[package] = _module(package, {"interpreter": module}, package=True)
    if not _installed("tensorflow"):
        experimental = _module(
            "tensorflow.lite.experimental", {name: names[name] for name in ("OpResolverType", "load_delegate")}
        )
        lite = _module(
            "tensorflow.lite", {"Interpreter": names["Interpreter"], "experimental": experimental}, package=True
        )
        result |= {module.__name__: module for module in (experimental, lite)}
        result["tensorflow"] = _module("tensorflow", {"lite": lite}, package=True)
    return result


class StandIn:
    """In force from when it is made until `end()`, or the end of a `with` block."""

    def __init__(self) -> None:
        self._before: dict[str, ModuleType | None] = {}
        self._attributes: list[tuple[ModuleType, ModuleType | None]] = []
        for name, module in _modules().items():
            self._before[name] = sys.modules.get(name)
            sys.modules[name] = module
            parent = sys.modules.get(name.rpartition(".")[0])
            if parent is not None and name.endswith(".interpreter"):
                self._attributes.append((parent, parent.__dict__.get("interpreter")))
                parent.__dict__["interpreter"] = module

    def end(self) -> None:
        """Puts everything back as it was.  A second call does nothing."""
        for parent, before in reversed(self._attributes):
            if before is not None:
                parent.__dict__["interpreter"] = before
            elif "interpreter" in parent.__dict__:
                del parent.__dict__["interpreter"]
        for name, module in self._before.items():
            if module is not None:
                sys.modules[name] = module
            else:
                sys.modules.pop(name, None)
        self._attributes, self._before = [], {}

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def stand_in() -> StandIn:
    """Puts tq in the place of TFLite's Python packages: for good, or for a `with` block.

    Returns an object whose `end()` puts everything back.
    """
    return StandIn()
