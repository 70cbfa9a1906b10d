# SPDX-License-Identifier: Apache-2.0
"""Optional libraries, each of which an extra of the package brings."""


def missing(user: str, library: str, extra: str) -> str:
    """The message where a library is not installed.  user: the function or option that needs it."""
    return f"{user} needs {library}, which is not installed: pip install {library.lower()} (it is in tq[{extra}])"
