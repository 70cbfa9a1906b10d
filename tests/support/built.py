# SPDX-License-Identifier: Apache-2.0
"""For scripts of this folder that run by themselves: importing this lets them find a tq that was built in place."""

import sys
from pathlib import Path

if not any(p.suffix in (".so", ".pyd") for folder in sys.path for p in Path(folder).glob("tq/_core.*")):
    sys.path.append(str(Path(__file__).parents[2]))
