# SPDX-License-Identifier: Apache-2.0
"""Modules that pickles of earlier versions name, where classes stood that are tq's own names now.

They stand in sys.modules alone: a file of such a name would hide a function of tq, as `tq.explain`.
"""

import sys
from types import ModuleType
from typing import Any


class _Earlier(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(sys.modules["tq"], name)


for _name in ("tq.explain", "tq.observers", "tq.recipes"):
    sys.modules.setdefault(_name, _Earlier(_name))
