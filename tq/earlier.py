# SPDX-License-Identifier: Apache-2.0
"""Former modules of public classes, for pickles of earlier versions.

They exist in sys.modules only: a submodule file of such a name would shadow an attribute of `tq`.
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
