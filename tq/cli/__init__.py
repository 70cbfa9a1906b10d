# SPDX-License-Identifier: Apache-2.0
"""The command line: `tq`, and `python -m tq`."""

from tq.cli.arguments import main

__all__ = ["main"]
