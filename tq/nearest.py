# SPDX-License-Identifier: Apache-2.0
"""The nearest names that exist, for errors about one that does not."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MOST = 20_000  # names that are looked at: difflib takes time for each


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """At most three of the known names that are like `name`, the most alike first."""
    import difflib
    from itertools import islice

    by_folded: dict[str, str] = {}
    for item in islice(known, _MOST):
        by_folded.setdefault(item.casefold(), item)
    folded, places = name.casefold()[:200], list(by_folded)
    found = difflib.get_close_matches(folded, places, 9, cutoff)
    found.sort(key=lambda item: (-difflib.SequenceMatcher(None, item, folded).ratio(), places.index(item)))
    return [by_folded[item] for item in found[:3]]


def hint(name: str, known: Iterable[str]) -> str:
    """What an error about an unknown name ends with: "; did you mean 'CONV_2D'?", or nothing."""
    found = nearest(name, known)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def pair_hint(name_and_known: tuple[str, list[str]]) -> str:
    """hint() of both, for the core."""
    return hint(*name_and_known)


def builtin_hint(name: str, known: Iterable[str]) -> str:
    """hint() where a name that no builtin operator has looks like one of theirs, as "CONV" and "Conv2D" do; else "".

    The names of custom operators are their authors': only those in capitals, and those that differ in underscores and
    capitals alone, are taken for slips.
    """
    builtin = [item for item in known if item not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")]
    same = [item for item in builtin if item.replace("_", "") == name.replace("_", "").upper()]
    found = same or (nearest(name, builtin, 0.7) if name.isupper() else [])
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def pattern_hint(pattern: str, known: Iterable[str]) -> str:
    """The same for a regular expression that no name matches: names like the text in it, or with a part like it."""
    names = list(known)
    parts = {part: name for name in reversed(names) for part in (*re.split(r"[/:;.]", name), name) if part}
    text = re.sub(r"\\.|[^\w/]+", "", pattern)
    found = dict.fromkeys(parts[item] for item in nearest(text, parts))
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
