# SPDX-License-Identifier: Apache-2.0
"""Names similar to one that does not exist, for the error about it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MOST = 20_000  # names compared: difflib takes time for each


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """At most three known names similar to `name`, the most similar first; case does not count.

    cutoff: the least similarity, 0 to 1 (difflib.SequenceMatcher.ratio).
    """
    import difflib
    from itertools import islice

    by_folded: dict[str, str] = {}
    for item in islice(known, _MOST):
        by_folded.setdefault(item.casefold(), item)
    folded, names = name.casefold()[:200], list(by_folded)
    found = difflib.get_close_matches(folded, names, 9, cutoff)
    found.sort(key=lambda item: (-difflib.SequenceMatcher(None, item, folded).ratio(), names.index(item)))
    return [by_folded[item] for item in found[:3]]


def hint(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: "; did you mean 'CONV_2D'?", or ""."""
    found = nearest(name, known)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def pair_hint(name_and_known: tuple[str, list[str]]) -> str:
    """hint(name, known); the core calls it."""
    return hint(*name_and_known)


def builtin_hint(name: str, known: Iterable[str]) -> str:
    """hint() for a name that may be a misspelt builtin operator, such as "CONV" or "Conv2D"; else "".

    Custom operators may have any name.  A name counts as misspelt if it differs from a builtin one in underscores and
    case alone, or if it is all capitals and similar to one.
    """
    builtin = [item for item in known if item not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")]
    same = [item for item in builtin if item.replace("_", "") == name.replace("_", "").upper()]
    found = same or (nearest(name, builtin, 0.7) if name.isupper() else [])
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def pattern_hint(pattern: str, known: Iterable[str]) -> str:
    """hint() for a regular expression that no name matches: names similar to its text, or with a similar part."""
    names = list(known)
    parts = {part: name for name in reversed(names) for part in (*re.split(r"[/:;.]", name), name) if part}
    text = re.sub(r"\\.|[^\w/]+", "", pattern)
    found = dict.fromkeys(parts[item] for item in nearest(text, parts))
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
