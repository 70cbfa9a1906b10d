# SPDX-License-Identifier: Apache-2.0
"""python -m tq"""

import sys

from tq.cli.arguments import main

if __name__ == "__main__":
    sys.exit(main())
